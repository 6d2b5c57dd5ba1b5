/* Strict loading, by its own tables: for every dummy each key and tensor is removed, duplicated,
 * mistyped, put out of range or misshaped, and every key of keys.def is added; the outcome must be
 * what keys.def, tensors.def and skip.def say: a typed error that prints the way out, the named
 * default, or a counted warning. Nothing may leak. Ends with `loader: N mutations, N as the tables
 * say, 0 leaks`. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "model/internal.h"
#include "models/mutant.h"
#include "text/vocab.h"

#include <cmocka.h>

static sinter_host *strict_host;
static struct {
    size_t n, ok, leaks;
} count;

/* ---- Expectations --------------------------------------------------------------------------- */

enum {
    OK = 1u << SINTER_OK,
    DATA = 1u << SINTER_E_DATA,
    NOT_FOUND = 1u << SINTER_E_NOT_FOUND,
    USAGE = 1u << SINTER_E_USAGE,
    UNSUPPORTED = 1u << SINTER_E_UNSUPPORTED,
    STRICT = 1u << SINTER_E_STRICT
};

/* Opens what assemble has made: its status must be in `want`, an error's text must hold `says`. */
static void expect(const char *what, const char *name, sinter_host *h, unsigned want, int warnings,
                   const char *says)
{
    struct model *m = NULL;
    sinter_error err = {0};
    const int64_t live = fault.live;
    const uint64_t warned = host_warnings(h);
    sinter_status s = model_open(h, "mutant", &m, &err);
    if (s == SINTER_OK) { /* what loads must build, and print what it left out */
        struct graph *g;
        sinter_status built =
            model_graph(m, &(struct model_variant){.n_ctx = 8, .argmax = true}, &g, &err);
        if (built == SINTER_OK)
            graph_free(g);
        s = built;
    }
    model_close(m);
    bool ok = (want >> s & 1) && (s == SINTER_OK || err.status == s);
    ok = ok && (s == SINTER_OK || !says || strstr(err.message, says));
    ok = ok && (s != SINTER_OK || warnings < 0 || host_warnings(h) - warned == (uint64_t)warnings);
    count.n++;
    count.ok += ok;
    count.leaks += fault.live != live;
    if (!ok || fault.live != live)
        print_error("%s %s: %s of %s: status %d, wanted mask %#x, \"%s\", %d warnings, says: %s\n",
                    base.arch->name, dummy_kind_name(base.kind), what, name, (int)s, want,
                    says ? says : "", (int)(host_warnings(h) - warned), err.message);
}

static void set(sinter_host *h, const char *option, const char *value)
{
    sinter_error err = {0};
    if (sinter_host_set(h, option, value, &err) != SINTER_OK)
        fail_msg("%s", err.message);
}

static int key_row_of(const char *key)
{
    size_t n = strlen(base.arch->name);
    if (strncmp(key, base.arch->name, n) != 0 || key[n] != '.')
        return -1;
    for (int r = 0; r < key_n_row; r++)
        if (pattern_match(key_rows[r].name, key + n + 1))
            return r;
    return -1;
}

/* ---- Keys ----------------------------------------------------------------------------------- */

static void with_value(const char *what, size_t i, struct gguf_value v, unsigned want)
{
    struct gguf_kv keep = base.kv[i];
    base.kv[i].value = v;
    assemble(base.kv, base.n_kv, base.tensor, base.n_tensor);
    expect(what, keep.key, host, want, -1, want == OK ? NULL : keep.key);
    base.kv[i] = keep;
}

#define SCALAR(type, ctype, x) ((struct gguf_value){type, type, 1, &(const ctype){x}})
static const struct gguf_string some_text = {"some", 4};
#define TEXT ((struct gguf_value){GGUF_STRING, GGUF_STRING, 1, &some_text})

static void removed(size_t i, unsigned want)
{
    struct gguf_kv keep = base.kv[i];
    memmove(&base.kv[i], &base.kv[i + 1], (base.n_kv - i - 1) * sizeof *base.kv);
    assemble(base.kv, base.n_kv - 1, base.tensor, base.n_tensor);
    expect("removal", keep.key, host, want, -1, want == NOT_FOUND ? keep.key : NULL);
    memmove(&base.kv[i + 1], &base.kv[i], (base.n_kv - i - 1) * sizeof *base.kv);
    base.kv[i] = keep;
}

static void duplicated(size_t i)
{
    base.kv[base.n_kv] = base.kv[i];
    assemble(base.kv, base.n_kv + 1, base.tensor, base.n_tensor);
    expect("duplication", base.kv[i].key, host, DATA, -1, base.kv[i].key);
}

/* Keys from which sizes follow: without them the default may contradict the tensors. */
static bool gives_sizes(int row)
{
    return row == KEY_D_K || row == KEY_D_V || row == KEY_HEAD_KV || row == KEY_ROT;
}

static void mutate_used_key(size_t i, int r)
{
    const struct key_row *row = &key_rows[r];
    struct gguf_value v = base.kv[i].value;
    bool number = row->type == KEY_INT || row->type == KEY_FLOAT;
    removed(i, row->need == KEY_MUST ? NOT_FOUND : gives_sizes(r) ? OK | DATA : OK);
    if (row->type == KEY_TEXT) {
        with_value("mistyping", i, SCALAR(GGUF_U32, uint32_t, 7), DATA);
        with_value("unknown word", i, TEXT, UNSUPPORTED);
    } else {
        with_value("mistyping", i, TEXT, DATA);
    }
    if (row->type == KEY_INT)
        with_value("mistyping as float", i, SCALAR(GGUF_F32, float, 2.5F), DATA);
    if (row->type == KEY_FLOAT)
        with_value("mistyping as bool", i, SCALAR(GGUF_BOOL, uint8_t, 1), DATA);
    if (number) {
        with_value("above range", i, SCALAR(GGUF_F64, double, row->hi * 2 + 1), DATA);
        with_value("NaN", i, SCALAR(GGUF_F64, double, NAN), DATA);
        with_value("below range", i, SCALAR(GGUF_I64, int64_t, (int64_t)row->lo - 1), DATA);
        with_value("far above", i, SCALAR(GGUF_U64, uint64_t, UINT64_MAX), DATA);
    }
    if (row->type == KEY_INT)
        with_value("just above", i, SCALAR(GGUF_I64, int64_t, (int64_t)row->hi + 1), DATA);
    if (row->span == SPAN_ONE) {
        const struct gguf_value one = {GGUF_ARRAY, v.elem_type, v.n, v.data};
        with_value("array", i, one, DATA);
    } else if (v.type == GGUF_ARRAY) {
        v.n--;
        with_value("short array", i, v, DATA);
    }
}

static void mutate_keys(void)
{
    for (size_t i = 0; i < base.n_kv; i++) {
        const char *key = base.kv[i].key;
        int r = key_row_of(key);
        duplicated(i);
        if (strcmp(key, "general.architecture") == 0) {
            removed(i, NOT_FOUND);
            with_value("mistyping", i, SCALAR(GGUF_U32, uint32_t, 7), DATA);
            with_value("unknown word", i, TEXT, UNSUPPORTED);
        } else if (r >= 0) {
            assert_true(key_rows[r].use && key_rows[r].use(base.arch)); /* dummies write no other */
            mutate_used_key(i, r);
        } else {
            assert_non_null(skip_key_reason(key));
            removed(i, OK);
            with_value("mistyping", i, TEXT, OK);
        }
    }
}

/* Adds a key; without and with the override that the refusal prints. */
static void added(const char *key, struct gguf_value v, unsigned want, int warnings)
{
    char says[160];
    base.kv[base.n_kv] = (struct gguf_kv){.key = key, .value = v};
    assemble(base.kv, base.n_kv + 1, base.tensor, base.n_tensor);
    snprintf(says, sizeof says, "--skip-key %s", key);
    expect("addition", key, host, want, warnings, says);
    set(host, "skip-key", key);
    expect("addition and --skip-key", key, host, OK, 0, NULL);
    set(host, "skip-key", "");
}

static bool in_file(const char *key)
{
    for (size_t i = 0; i < base.n_kv; i++)
        if (strcmp(base.kv[i].key, key) == 0)
            return true;
    return false;
}

/* Every row of keys.def that this family does not read, at a neutral value and at another. */
static void add_rows(void)
{
    for (int r = 0; r < key_n_row; r++) {
        const struct key_row *row = &key_rows[r];
        char key[128];
        snprintf(key, sizeof key, "%s.%s", base.arch->name, row->name);
        if (strchr(key, '*'))
            strcpy(strchr(key, '*'), "some");
        if ((row->use && row->use(base.arch)) || in_file(key))
            continue;
        bool any = isinf(row->neutral[0]), none = isnan(row->neutral[0]);
        added(key, SCALAR(GGUF_F32, float, 77), any ? OK : UNSUPPORTED, 0);
        added(key, TEXT, any ? OK : UNSUPPORTED, 0);
        for (int n = 0; n < 2 && !any && !none; n++)
            added(key, SCALAR(GGUF_F32, float, (float)row->neutral[n]), OK, 0);
        if (!any && !none && row->neutral[0] == 0)
            added(key, SCALAR(GGUF_BOOL, uint8_t, 0), OK, 0);
    }
}

static void add_unknown(void)
{
    char key[128];
    snprintf(key, sizeof key, "%s.no_such_key", base.arch->name);
    added(key, SCALAR(GGUF_U32, uint32_t, 1), OK, 1);
    added("nobody.knows", SCALAR(GGUF_U32, uint32_t, 1), OK, 1);
    base.kv[base.n_kv] = (struct gguf_kv){.key = key, .value = SCALAR(GGUF_U32, uint32_t, 1)};
    assemble(base.kv, base.n_kv + 1, base.tensor, base.n_tensor);
    expect("addition under --strict", key, strict_host, STRICT, 0, key);
    static const char *const scalings[] = {"yarn", "longrope", "su", "llama3", "dynamic", ""};
    snprintf(key, sizeof key, "%s.rope.scaling.type", base.arch->name);
    for (size_t i = 0; i < sizeof scalings / sizeof scalings[0] && !in_file(key); i++) {
        struct gguf_string s = {scalings[i], strlen(scalings[i])};
        added(key, (struct gguf_value){GGUF_STRING, GGUF_STRING, 1, &s}, UNSUPPORTED, 0);
    }
    assemble(base.kv, base.n_kv, base.tensor, base.n_tensor);
    set(host, "skip-key", "no.such.key,general.name");
    expect("an override that names nothing", "no.such.key", host, OK, 1, NULL);
    set(host, "skip-key", "general.name,general.architecture");
    expect("an override of what is read first", "architecture", host, USAGE, 0,
           "--skip-key general.architecture: without it");
    set(host, "skip-key", "");
}

/* ---- Tensors -------------------------------------------------------------------------------- */

static bool starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* May the model do without this tensor? */
static enum tensor_need need_of(const char *name)
{
    const char *bare = starts(name, "blk.") ? strchr(name + 4, '.') + 1 : name;
    for (int f = 0; f < fused_n_row; f++)
        if (base.kind == DUMMY_FUSED && strcmp(fused_rows[f].name, bare) == 0)
            return tensor_rows[fused_rows[f].part[0]].need(base.arch);
    for (int id = 0; id < W_N; id++)
        if (strcmp(tensor_rows[id].name, bare) == 0)
            return tensor_rows[id].need(base.arch);
    fail_msg("%s is in no table", name);
    return TENSOR_NEVER;
}

static void tensor_case(const char *what, size_t i, struct gguf_tensor t, unsigned want)
{
    struct gguf_tensor keep = base.tensor[i];
    base.tensor[i] = t;
    assemble(base.kv, base.n_kv, base.tensor, base.n_tensor);
    expect(what, keep.name, host, want, -1, want == UNSUPPORTED ? keep.name : NULL);
    base.tensor[i] = keep;
}

static void tensor_removed(size_t i)
{
    struct gguf_tensor keep = base.tensor[i];
    bool must = need_of(keep.name) == TENSOR_MUST;
    memmove(&base.tensor[i], &base.tensor[i + 1], (base.n_tensor - i - 1) * sizeof keep);
    assemble(base.kv, base.n_kv, base.tensor, base.n_tensor - 1);
    expect("removal", keep.name, host, must ? NOT_FOUND : OK, 0,
           base.kind == DUMMY_FUSED ? NULL : keep.name);
    memmove(&base.tensor[i + 1], &base.tensor[i], (base.n_tensor - i - 1) * sizeof keep);
    base.tensor[i] = keep;
    assemble(base.kv, base.n_kv, base.tensor, base.n_tensor);
    set(host, "skip-tensor", keep.name);
    expect("--skip-tensor", keep.name, host, must ? NOT_FOUND : OK, 0, NULL);
    set(host, "skip-tensor", "");
}

static void mutate_tensor(size_t i)
{
    const struct gguf_tensor *t = &base.tensor[i];
    struct gguf_tensor x = *t;
    tensor_removed(i);
    base.tensor[base.n_tensor] = x;
    assemble(base.kv, base.n_kv, base.tensor, base.n_tensor + 1);
    expect("duplication", x.name, host, DATA, -1, x.name);
    x.type_id = 24; /* I8: known to GGUF, nothing that can be decoded */
    bool fits = (uint64_t)(t->dim[0] * t->dim[1] * t->dim[2]) <= t->bytes;
    tensor_case("mistyping as I8", i, x, fits ? UNSUPPORTED : DATA); /* else it overlaps the next */
    x.type_id = 222;
    tensor_case("unknown type", i, x, UNSUPPORTED | DATA);
    x = *t;
    if (t->n_dim == 1 && t->dim[0] % 32 == 0) {
        x.type_id = quant_row(QUANT_Q8_0)->gguf_id;
        tensor_case("a vector in blocks", i, x, UNSUPPORTED);
    }
    x = *t;
    x.dim[0]--;
    tensor_case("fewer columns", i, x, DATA);
    x = *t;
    if (t->n_dim > 1) {
        x.dim[1]--;
        tensor_case("fewer rows", i, x, DATA | NOT_FOUND);
        x = *t;
        x.dim[0] /= 2;
        x.dim[1] *= 2;
        tensor_case("another cut", i, x, DATA | NOT_FOUND);
    }
    if (t->n_dim == 3) {
        x = *t;
        x.dim[2]--;
        tensor_case("fewer matrices", i, x, DATA);
        x = *t;
        x.n_dim = 2;
        x.dim[1] *= x.dim[2];
        tensor_case("two dimensions", i, x, DATA);
    }
    x = *t;
    x.offset = base.n + 32 - base.n % 32;
    tensor_case("data past the end", i, x, DATA);
}

/* One float of its own behind the dummy's data. */
static void tensor_added(const char *name, bool is_skipped)
{
    char says[160];
    uint64_t data = (base.n - base.g->data_offset + 31) / 32 * 32;
    base.tensor[base.n_tensor] = (struct gguf_tensor){.name = name,
                                                      .type_id = quant_row(QUANT_F32)->gguf_id,
                                                      .n_dim = 1,
                                                      .dim = {1, 1, 1, 1},
                                                      .offset = base.g->data_offset + data};
    assemble(base.kv, base.n_kv, base.tensor, base.n_tensor + 1);
    for (uint64_t i = base.n - base.g->data_offset; i < data + 32; i++)
        emit_int(0, 1);
    file.bytes = out.n;
    snprintf(says, sizeof says, "--skip-tensor %s", name);
    expect("addition", name, host, is_skipped ? OK : UNSUPPORTED, 0, says);
    set(host, "skip-tensor", name);
    expect("addition and --skip-tensor", name, host, OK, 0, NULL);
    set(host, "skip-tensor", "");
}

static void add_tensors(void)
{
    tensor_added("blk.0.attn_sub_norm.weight", false);
    tensor_added("blk.0.attn_sinks.weight", false);
    tensor_added("blk.99.attn_q.weight", false);
    tensor_added("token_embd_norm.weight", false);
    tensor_added("v.blk.0.attn_q.weight", true);
    tensor_added("mm.0.weight", true);
    tensor_added("blk.1.nextn.eh_proj.weight", true);
    for (int id = 0; id < W_N; id++) /* tensors of other families */
        if (tensor_rows[id].need(base.arch) == TENSOR_NEVER) {
            char name[TENSOR_NAME_BYTES];
            snprintf(name, sizeof name, "%s%s",
                     tensor_rows[id].scope == SCOPE_LAYER ? "blk.0." : "", tensor_rows[id].name);
            tensor_added(name, false);
        }
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void test_mutations(void **state)
{
    struct dummy_options o;
    char name[64];
    (void)state;
    for (int i = 0; dummy_small(i, &o, name); i++) {
        if (o.kind == DUMMY_MIXED) /* the same rows as the others, and 2 MB each time */
            continue;
        take_apart(&o);
        assemble(base.kv, base.n_kv, base.tensor, base.n_tensor);
        expect("nothing", "it", host, OK, 0, NULL);
        mutate_keys();
        add_rows();
        add_unknown();
        for (size_t t = 0; t < base.n_tensor; t++)
            mutate_tensor(t);
        add_tensors();
        put_away();
    }
    print_message("loader: %zu mutations, %zu as the tables say, %zu leaks\n", count.n, count.ok,
                  count.leaks);
    assert_int_equal(count.ok, count.n);
    assert_int_equal(count.leaks, 0);
    assert_true(count.n > 1000);
}

/* The vocabulary of every dummy takes any text. */
static void test_vocab(void **state)
{
    static const char text[] = "The 7 things and \xff\x00 that\n\tn\xc3\xa4me them";
    struct dummy_options o;
    char name[64];
    int n = 0;
    (void)state;
    for (; dummy_small(n, &o, name); n++) {
        struct vocab *v;
        struct vocab_ids ids = {0};
        struct text_buf b;
        size_t template_bytes;
        sinter_error err = {0};
        take_apart(&o);
        if (vocab_open(base.g, NULL, &v, &err) != SINTER_OK ||
            vocab_encode(v, text, sizeof text - 1, 0, &ids, &err) != SINTER_OK)
            fail_msg("%s: %s", name, err.message);
        assert_true(ids.n < sizeof text - 1); /* some merge was used */
        text_buf_init(&b, host);
        assert_int_equal(vocab_decode(v, ids.id, ids.n, 0, &b, NULL), SINTER_OK);
        assert_int_equal(b.bytes, sizeof text - 1);
        assert_memory_equal(b.text, text, b.bytes);
        assert_non_null(vocab_template(v, &template_bytes));
        text_buf_free(&b);
        vocab_ids_free(v, &ids);
        vocab_free(v);
        put_away();
    }
    print_message("vocabularies of dummies: %d/%d\n", n, n);
}

/* The tiny models that transformers made: each loads without a warning and builds. */
static void test_tiny(void **state)
{
    static const char dir[] = TEST_SOURCE_DIR "/tests/golden/tiny";
    sinter_host *h;
    int n = 0, n_ok = 0;
    (void)state;
    assert_int_equal(sinter_host_create(NULL, &h, NULL), SINTER_OK);
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[1024];
        struct model *m;
        struct graph *g;
        struct gguf *file_of;
        struct gguf_string arch;
        sinter_error err = {0};
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (strlen(path) < 5 || strcmp(path + strlen(path) - 5, ".gguf") != 0)
            continue;
        assert_int_equal(gguf_open(h, path, &file_of, NULL), SINTER_OK);
        assert_int_equal(gguf_get_string(file_of, "general.architecture", &arch, NULL), SINTER_OK);
        bool known = arch_find(arch.text) != NULL;
        gguf_close(file_of);
        n += known;
        if (!known) {
            assert_int_equal(model_open(h, path, &m, &err), SINTER_E_UNSUPPORTED);
        } else if (model_open(h, path, &m, &err) != SINTER_OK ||
                   model_graph(m, &(struct model_variant){.n_ctx = 64}, &g, &err) != SINTER_OK) {
            print_error("%s\n", err.message);
        } else {
            graph_free(g);
            model_close(m);
            n_ok++;
        }
    }
    closedir(d);
    assert_int_equal(host_warnings(h), 0);
    assert_int_equal(host_usage(h).bytes, 0);
    sinter_host_free(h);
    print_message("tiny models: %d/%d\n", n_ok, n);
    assert_true(n >= 6);
    assert_int_equal(n_ok, n);
}

/* An override is in the report, and makes another model of it. */
static void test_override_report(void **state)
{
    struct model *m;
    struct text_buf b;
    sinter_error err = {0};
    (void)state;
    take_apart(&(struct dummy_options){.arch = "llama", .kind = DUMMY_F32});
    base.kv[base.n_kv] =
        (struct gguf_kv){.key = "llama.attention.clamp_kqv", .value = SCALAR(GGUF_F32, float, 8)};
    assemble(base.kv, base.n_kv + 1, base.tensor, base.n_tensor);
    assert_int_equal(model_open(host, "x", &m, &err), SINTER_E_UNSUPPORTED);
    set(host, "skip-key", "llama.attention.clamp_kqv");
    assert_int_equal(model_open(host, "x", &m, &err), SINTER_OK);
    assert_int_equal(m->n_override, 1);
    text_buf_init(&b, host);
    model_print(m, &b, false);
    assert_non_null(strstr(b.text, "clamp_kqv: left out by --skip-key"));
    text_buf_free(&b);
    uint64_t hash = m->hash[0];
    model_close(m);
    set(host, "skip-key", "");
    assemble(base.kv, base.n_kv, base.tensor, base.n_tensor);
    assert_int_equal(model_open(host, "x", &m, &err), SINTER_OK);
    assert_true(m->hash[0] != hash);
    model_close(m);
    put_away();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_vocab),
        cmocka_unit_test(test_tiny),
        cmocka_unit_test(test_override_report),
    };
    host = fault_host(&fault);
    strict_host = fault_host(&fault);
    set(strict_host, "strict", "on");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sinter_host_free(host);
    sinter_host_free(strict_host);
    failed += fault.live != 0;
    free(file.written);
    return failed;
}
