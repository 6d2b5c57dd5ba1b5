/* Nothing in a descriptor or in a file's keys is idle: whatever is flipped, the logits of `ref`
 * move by more than 1e-12 (NMSE), or the load is refused. Else the dummies would not test it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "models/mutant.h"
#include "run/run.h"

#include <cmocka.h>

enum { N_TOK = 40 }; /* longer than every window of a dummy */

/* Logits of all rows; NULL: the load was refused. The caller frees them. */
static float *logits(const struct arch_desc *as, size_t *n)
{
    sinter_model *sm;
    sinter_engine *e = NULL;
    sinter_session *s = NULL;
    sinter_error err = {0};
    float *copy = NULL;
    int32_t ids[N_TOK];
    if (as) { /* the file's own descriptor may refuse it: only this one counts */
        struct model *m;
        if (model_open_as(host, "x", as, &m, &err) != SINTER_OK)
            return NULL;
        assert_int_equal(sinter_model_open(host, "x", NULL, &sm, &err), SINTER_OK);
        model_close(sm->model);
        sm->model = m;
    } else if (sinter_model_open(host, "x", NULL, &sm, &err) != SINTER_OK) {
        return NULL;
    }
    int n_vocab = sm->model->plan.n_vocab;
    for (int i = 0; i < N_TOK; i++)
        ids[i] = (i * 37 + 5) % n_vocab;
    sinter_engine_options o = {.backend = "ref", .n_ctx = 64, .type_k = "f32", .type_v = "f32"};
    if (sinter_engine_create(sm, &o, &e, &err) != SINTER_OK ||
        sinter_session_create(e, &s, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    sinter_item item = {.session = s, .ids = ids, .n_id = N_TOK, .want = SINTER_WANT_ALL};
    if (sinter_engine_step(e, &item, 1, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    assert_int_equal(item.n_out, N_TOK);
    *n = (size_t)N_TOK * (size_t)n_vocab;
    copy = malloc(*n * sizeof *copy);
    memcpy(copy, item.logits, *n * sizeof *copy);
    sinter_session_close(s);
    sinter_engine_free(e);
    sinter_model_close(sm);
    return copy;
}

/* How far a flip moves the logits; infinite: refused. */
static double moved(const float *want, size_t n, const struct arch_desc *as)
{
    size_t n_is = 0;
    float *is = logits(as, &n_is);
    double diff = 0, all = 0;
    if (!is)
        return INFINITY;
    for (size_t i = 0; i < n && n == n_is; i++) {
        diff += ((double)is[i] - want[i]) * ((double)is[i] - want[i]);
        all += (double)want[i] * want[i];
    }
    free(is);
    return n == n_is ? diff / all : INFINITY;
}

/* ---- Descriptors ---------------------------------------------------------------------------- */

/* A flip changes the descriptor, or says that it is at its permissive value: files that load then
 * mean the same. */
struct flip {
    const char *name;
    bool (*apply)(struct arch_desc *a, int n_layer);
};

static bool flip_place(struct arch_desc *a, int n_layer)
{
    (void)n_layer;
    a->place = a->place == PLACE_PRE ? PLACE_SANDWICH : PLACE_PRE;
    return true;
}

static bool flip_qk_norm(struct arch_desc *a, int n_layer)
{
    (void)n_layer;
    a->qk_norm = a->qk_norm == QK_NORM_HEAD ? QK_NORM_NONE : QK_NORM_HEAD;
    return true;
}

static bool flip_rope(struct arch_desc *a, int n_layer)
{
    (void)n_layer;
    a->rope = a->rope == ROPE_PAIRS ? ROPE_HALVES : ROPE_PAIRS;
    return true;
}

static bool flip_act(struct arch_desc *a, int n_layer)
{
    (void)n_layer;
    a->act = a->act == ACT_SILU ? ACT_GELU : ACT_SILU;
    return true;
}

static bool flip_emb(struct arch_desc *a, int n_layer)
{
    (void)n_layer;
    a->emb = a->emb == EMB_PLAIN ? EMB_SQRT_D : EMB_PLAIN;
    return true;
}

static bool flip_ffn(struct arch_desc *a, int n_layer)
{
    (void)n_layer;
    a->ffn = a->ffn == FFN_MOE ? FFN_GATED : FFN_MOE;
    return true;
}

static bool flip_final_cap(struct arch_desc *a, int n_layer)
{
    (void)n_layer;
    if (a->final_cap == CAP_NONE)
        return false;
    a->final_cap = CAP_NONE;
    return true;
}

static bool flip_qkv_bias(struct arch_desc *a, int n_layer)
{
    (void)n_layer;
    if (a->qkv_bias)
        return false;
    a->qkv_bias = true;
    return true;
}

static bool flip_rope_freqs(struct arch_desc *a, int n_layer)
{
    (void)n_layer;
    if (!a->rope_freqs)
        return false;
    a->rope_freqs = false;
    return true;
}

static bool flip_rope_partial(struct arch_desc *a, int n_layer)
{
    (void)n_layer;
    if (!a->rope_partial)
        return false;
    a->rope_partial = false;
    return true;
}

static bool flip_scale_key(struct arch_desc *a, int n_layer)
{
    (void)n_layer;
    if (!a->scale_key)
        return false;
    a->scale_key = false;
    return true;
}

static bool flip_window_off(struct arch_desc *a, int n_layer)
{
    (void)n_layer;
    if (!a->window.period)
        return false;
    a->window.period = 0;
    return true;
}

static bool flip_window_period(struct arch_desc *a, int n_layer)
{
    (void)n_layer;
    if (!a->window.period)
        return false;
    a->window.period = 1; /* all full */
    return true;
}

static bool flip_window_base(struct arch_desc *a, int n_layer)
{
    (void)n_layer;
    a->window.base *= 2;
    return a->window.period > 0;
}

static bool flip_window_scaling(struct arch_desc *a, int n_layer)
{
    (void)n_layer;
    a->window.scaling = a->window.scaling == SCOPE_FULL ? SCOPE_ALL : SCOPE_FULL;
    return a->window.period > 0;
}

static bool flip_renorm(struct arch_desc *a, int n_layer)
{
    (void)n_layer;
    a->moe.renorm = !a->moe.renorm;
    return a->ffn == FFN_MOE;
}

static bool flip_scale_rule(struct arch_desc *a, int n_layer)
{
    a->scale_rule.n_layer = n_layer;
    a->scale_rule.width_over_heads = true;
    return true;
}

#define FLIP(name)                                                                                 \
    {                                                                                              \
#name, flip_##name                                                                         \
    }
static const struct flip flips[] = {
    FLIP(place),     FLIP(qk_norm),    FLIP(rope),          FLIP(act),         FLIP(emb),
    FLIP(ffn),       FLIP(final_cap),  FLIP(qkv_bias),      FLIP(rope_freqs),  FLIP(rope_partial),
    FLIP(scale_key), FLIP(window_off), FLIP(window_period), FLIP(window_base), FLIP(window_scaling),
    FLIP(renorm),    FLIP(scale_rule),
};
enum { N_FLIP = sizeof flips / sizeof flips[0] };
/* A new field needs a flip above, then its size here. */
_Static_assert(sizeof(struct arch_desc) == 64, "struct arch_desc has changed: add its flip");

/* Keys that would hide a descriptor's default. */
static void drop_keys(void)
{
    static const enum key_id drop[] = {KEY_PATTERN, KEY_BASE_SWA, KEY_EXPERT_NORM};
    for (size_t d = 0; d < sizeof drop / sizeof drop[0]; d++)
        for (size_t i = 0; i < base.n_kv; i++)
            if (strstr(base.kv[i].key, key_rows[drop[d]].name) &&
                strlen(base.kv[i].key) ==
                    strlen(base.arch->name) + 1 + strlen(key_rows[drop[d]].name)) {
                base.kv[i--] = base.kv[--base.n_kv];
            }
}

static void flip_all(double best[N_FLIP], bool applies[N_FLIP])
{
    size_t n = 0;
    assemble(base.kv, base.n_kv, base.tensor, base.n_tensor);
    float *want = logits(NULL, &n);
    assert_non_null(want);
    assert_true(moved(want, n, base.arch) == 0); /* the same again: the same bits */
    for (int f = 0; f < N_FLIP; f++) {
        struct arch_desc a = *base.arch;
        if (!flips[f].apply(&a, base.kind == DUMMY_F32 ? 2 : base.kind == DUMMY_MIXED ? 4 : 3))
            continue;
        applies[f] = true;
        double m = best[f] > 1e-12 ? 0 : moved(want, n, &a);
        best[f] = m > best[f] ? m : best[f];
    }
    free(want);
}

static void test_descriptors(void **state)
{
    static const enum dummy_kind kinds[] = {DUMMY_F32, DUMMY_OPTIONAL, DUMMY_MIXED};
    const struct arch_desc *a;
    int n = 0, n_ok = 0;
    (void)state;
    for (int i = 0; (a = arch_at(i)) != NULL; i++) {
        double best[N_FLIP] = {0};
        bool applies[N_FLIP] = {false};
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            take_apart(&(struct dummy_options){.arch = a->name, .kind = kinds[k]});
            flip_all(best, applies);
            drop_keys();
            flip_all(best, applies);
            put_away();
        }
        for (int f = 0; f < N_FLIP; f++) {
            if (!applies[f])
                continue;
            n++;
            n_ok += best[f] > 1e-12;
            if (!(best[f] > 1e-3)) /* too weak for a backend with less than doubles to see */
                print_message("%s %s: %s %g\n", a->name, flips[f].name,
                              best[f] > 1e-12 ? "weak," : "IDLE,", best[f]);
        }
    }
    print_message("flips of descriptors: %d/%d\n", n_ok, n);
    assert_int_equal(n_ok, n);
}

/* ---- Keys ----------------------------------------------------------------------------------- */

static struct {
    uint32_t u;
    float f;
    uint8_t b;
    int32_t list[16];
} changed;

/* Another legal value of the key. */
static struct gguf_value other(const struct key_row *row, const struct gguf_kv *kv)
{
    static const struct gguf_string none = {"none", 4};
    struct gguf_value v = kv->value;
    int64_t n = 0;
    double x = 0;
    if (v.type == GGUF_ARRAY) {
        assert_true(v.elem_type == GGUF_I32 && v.n <= 16);
        memcpy(changed.list, v.data, v.n * sizeof *changed.list);
        changed.list[0]++;
        v.data = changed.list;
    } else if (row->type == KEY_INT) {
        assert_int_equal(gguf_value_int(kv, 0, &n, NULL), SINTER_OK);
        changed.u = (uint32_t)n + (row == &key_rows[KEY_ROT] ? 2 : 1);
        if (row == &key_rows[KEY_ROT] && n > 4)
            changed.u = (uint32_t)n - 2;
        v = (struct gguf_value){GGUF_U32, GGUF_U32, 1, &changed.u};
    } else if (row->type == KEY_FLOAT) {
        assert_int_equal(gguf_value_float(kv, 0, &x, NULL), SINTER_OK);
        changed.f = (float)x * (row == &key_rows[KEY_EPS] ? 4.0F : 1.5F);
        v = (struct gguf_value){GGUF_F32, GGUF_F32, 1, &changed.f};
    } else if (row->type == KEY_BOOL) {
        changed.b = !*(const uint8_t *)v.data;
        v.data = &changed.b;
    } else {
        v.data = &none;
    }
    return v;
}

static int row_of(const char *key)
{
    size_t n = strlen(base.arch->name);
    for (int r = 0; r < KEY_N; r++)
        if (strncmp(key, base.arch->name, n) == 0 && key[n] == '.' &&
            strcmp(key_rows[r].name, key + n + 1) == 0)
            return r;
    return -1;
}

static void test_keys(void **state)
{
    struct dummy_options o;
    char name[64];
    int n_key = 0, n_ok = 0;
    (void)state;
    for (int i = 0; dummy_small(i, &o, name); i++) {
        size_t n = 0;
        if (o.kind == DUMMY_FUSED)
            continue;
        take_apart(&o);
        assemble(base.kv, base.n_kv, base.tensor, base.n_tensor);
        float *want = logits(NULL, &n);
        for (size_t k = 0; k < base.n_kv; k++) {
            int r = row_of(base.kv[k].key);
            struct gguf_kv keep = base.kv[k];
            if (r < 0 || r == KEY_CONTEXT) /* a limit, not a part of the computation */
                continue;
            base.kv[k].value = other(&key_rows[r], &keep);
            assemble(base.kv, base.n_kv, base.tensor, base.n_tensor);
            double m = moved(want, n, NULL);
            base.kv[k] = keep;
            n_key++;
            n_ok += m > 1e-12;
            if (!(m > 1e-3))
                print_message("%s %s: %s %g\n", name, keep.key, m > 1e-12 ? "weak," : "IDLE,", m);
        }
        free(want);
        put_away();
    }
    print_message("flips of keys: %d/%d\n", n_ok, n_key);
    assert_int_equal(n_ok, n_key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_keys),
    };
    host = fault_host(&fault);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sinter_host_free(host);
    free(file.written);
    return failed;
}
