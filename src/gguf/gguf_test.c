/* The GGUF reader and writer: round trips, hostile files, faults, memory, real vocabularies. */
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text_buf.h"
#include "fault_loop.h"
#include "gguf/gguf.h"

static size_t n_case, n_ok; /* of the line `gguf: N/N` */

#define CASE(x)                                                                                    \
    do {                                                                                           \
        bool case_ok_ = (x);                                                                       \
        n_case++;                                                                                  \
        n_ok += case_ok_;                                                                          \
        if (!case_ok_)                                                                             \
            print_error("%s:%d: %s\n", __FILE__, __LINE__, #x);                                    \
    } while (0)

/* ---- Files made by hand: the writer must not be its own judge. ------------------------------ */

struct raw {
    uint8_t p[1 << 20];
    size_t n;
    struct {
        size_t at, bytes;
    } field[512]; /* every count, length, type, dimension, offset */
    size_t n_field;
};

static void raw_bytes(struct raw *r, const void *p, size_t n)
{
    assert_true(r->n + n <= sizeof r->p);
    memcpy(r->p + r->n, p, n);
    r->n += n;
}

static void raw_field(struct raw *r, uint64_t v, size_t bytes)
{
    if (r->n_field < 512) {
        r->field[r->n_field].at = r->n;
        r->field[r->n_field++].bytes = bytes;
    }
    raw_bytes(r, &v, bytes);
}

static void raw_text(struct raw *r, const char *text)
{
    raw_field(r, strlen(text), 8);
    raw_bytes(r, text, strlen(text));
}

static void raw_head(struct raw *r, uint32_t version, uint64_t n_tensor, uint64_t n_kv)
{
    r->n = r->n_field = 0;
    raw_bytes(r, "GGUF", 4);
    raw_field(r, version, 4);
    raw_field(r, n_tensor, 8);
    raw_field(r, n_kv, 8);
}

static void raw_u32(struct raw *r, const char *key, uint32_t v)
{
    raw_text(r, key);
    raw_field(r, GGUF_U32, 4);
    raw_bytes(r, &v, 4);
}

static void raw_array(struct raw *r, const char *key, enum gguf_type type, uint64_t n)
{
    raw_text(r, key);
    raw_field(r, GGUF_ARRAY, 4);
    raw_field(r, type, 4);
    raw_field(r, n, 8);
}

static void raw_tensor(struct raw *r, const char *name, uint32_t type, uint64_t d0, uint64_t d1,
                       uint64_t offset)
{
    raw_text(r, name);
    raw_field(r, d1 ? 2 : 1, 4);
    raw_field(r, d0, 8);
    if (d1)
        raw_field(r, d1, 8);
    raw_field(r, type, 4);
    raw_field(r, offset, 8);
}

static void raw_data(struct raw *r, size_t alignment, size_t bytes)
{
    static const uint8_t zeros[4096];
    raw_bytes(r, zeros, (alignment - r->n % alignment) % alignment);
    for (size_t i = 0; i < bytes; i++)
        raw_bytes(r, &(uint8_t){(uint8_t)i}, 1);
}

/* A small file with every kind of field. */
static void raw_small(struct raw *r)
{
    raw_head(r, 3, 3, 6);
    raw_text(r, "general.architecture");
    raw_field(r, GGUF_STRING, 4);
    raw_text(r, "llama");
    raw_u32(r, "general.alignment", 64);
    raw_array(r, "tokens", GGUF_STRING, 3);
    raw_text(r, "a");
    raw_text(r, "");
    raw_text(r, "ccc");
    raw_array(r, "heads", GGUF_I32, 4);
    raw_bytes(r, (int32_t[]){4, 2, -1, 8}, 16);
    raw_array(r, "flags", GGUF_BOOL, 2);
    raw_bytes(r, "\1\0", 2);
    raw_text(r, "x");
    raw_field(r, GGUF_F64, 4);
    raw_bytes(r, &(double){0.25}, 8);
    raw_tensor(r, "w", 8, 64, 2, 0);     /* Q8_0: 136 bytes */
    raw_tensor(r, "bias", 0, 3, 0, 192); /* F32: 12 bytes */
    raw_tensor(r, "new", 43, 7, 1, 256); /* a type of the future */
    raw_data(r, 64, 300);
}

/* ---- One open, checked for what must always hold -------------------------------------------- */

struct opened {
    struct memory_file m;
    struct fault fault;
    sinter_host *host;
    struct gguf *g;
    sinter_error err;
    int64_t live;
};

static sinter_status open_bytes(struct opened *o, const uint8_t *data, size_t bytes)
{
    *o = (struct opened){.m = {.data = data, .bytes = bytes}, .fault = {.file = &o->m}};
    o->host = fault_host(&o->fault);
    o->live = o->fault.live;
    const uint64_t asked = o->fault.asked;
    sinter_status s = gguf_open(o->host, "file.gguf", &o->g, &o->err);
    assert_true(o->fault.asked - asked <= 2 * bytes + 256 * 1024);
    assert_true((s == SINTER_OK) == (o->g != NULL));
    if (s != SINTER_OK) {
        assert_int_equal(o->err.status, s);
        assert_int_equal(o->fault.live, o->live);
    }
    return s;
}

static void print_both(struct opened *o)
{
    struct text_buf b;
    for (int json = 0; json < 2; json++) {
        text_buf_init(&b, o->host);
        gguf_print(o->g, &b, json != 0);
        assert_int_equal(text_buf_end(&b, NULL), SINTER_OK);
        text_buf_free(&b);
    }
}

static void close_opened(struct opened *o)
{
    if (o->g)
        print_both(o); /* touches every value */
    gguf_close(o->g);
    assert_int_equal(o->fault.live, o->live);
    sinter_host_free(o->host);
    assert_int_equal(o->fault.live, 0);
}

/* A writer on a host of its own, whose file is in memory. */
struct writing {
    struct memory_file m;
    struct fault fault;
    sinter_host *host;
    struct gguf_writer *w;
};

static struct gguf_writer *writing_new(struct writing *x)
{
    sinter_error err;
    *x = (struct writing){.fault = {.file = &x->m}};
    x->host = fault_host(&x->fault);
    assert_int_equal(gguf_writer_create(x->host, &x->w, &err), SINTER_OK);
    return x->w;
}

/* What was written stays, for the caller to free. */
static void writing_end(struct writing *x)
{
    gguf_writer_free(x->w);
    sinter_host_free(x->host);
    assert_int_equal(x->fault.live, 0);
}

static bool refused(const struct raw *r, sinter_status want, const char *text)
{
    struct opened o;
    sinter_status s = open_bytes(&o, r->p, r->n);
    bool ok = s == want && strstr(o.err.message, text) && strstr(o.err.message, ": byte ");
    if (!ok)
        print_error("%s\n", s == SINTER_OK ? "was taken" : o.err.message);
    close_opened(&o);
    return ok;
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static struct raw *raw_new(void)
{
    struct raw *r = calloc(1, sizeof *r);
    assert_non_null(r);
    return r;
}

static void small_file(void **state)
{
    (void)state;
    struct raw *r = raw_new();
    struct opened o;
    raw_small(r);
    for (uint32_t version = 2; version <= 3; version++) {
        memcpy(r->p + 4, &version, 4);
        assert_int_equal(open_bytes(&o, r->p, r->n), SINTER_OK);
        assert_int_equal(o.g->version, version);
        assert_int_equal(o.g->n_kv, 6);
        assert_int_equal(o.g->n_tensor, 3);
        assert_int_equal(o.g->alignment, 64);
        assert_int_equal(o.g->data_offset % 64, 0);
        assert_int_equal(o.g->data_offset, r->n - 300);
        const struct gguf_tensor *t = gguf_find_tensor(o.g, "w");
        assert_non_null(t);
        assert_int_equal(t->type, QUANT_Q8_0);
        assert_int_equal(t->bytes, 136);
        assert_int_equal(t->dim[1], 2);
        assert_int_equal(t->dim[2], 1);
        t = gguf_find_tensor(o.g, "bias");
        uint8_t buf[12];
        assert_int_equal(t->bytes, 12);
        assert_int_equal(gguf_read(o.g, t, 4, buf, 8, &o.err), SINTER_OK);
        assert_int_equal(buf[0], 196);
        assert_int_equal(gguf_read(o.g, t, 4, buf, 9, &o.err), SINTER_E_USAGE);
        assert_int_equal(gguf_read(o.g, t, UINT64_MAX, buf, 9, &o.err), SINTER_E_USAGE);
        t = gguf_find_tensor(o.g, "new");
        assert_int_equal(t->type, QUANT_N);
        assert_int_equal(t->type_id, 43);
        assert_int_equal(t->bytes, 0);
        assert_int_equal(gguf_read(o.g, t, 0, buf, 1, &o.err), SINTER_E_UNSUPPORTED);
        assert_non_null(strstr(o.err.message, "43"));
        assert_null(gguf_find_tensor(o.g, "W"));
        assert_null(gguf_find(o.g, ""));
        close_opened(&o);
    }
    free(r);
}

/* Every prefix is refused, but those that end past the last tensor's last byte. */
static void truncation(void **state)
{
    (void)state;
    struct raw *r = raw_new();
    struct opened o;
    raw_small(r);
    size_t last = r->n - 300 + 256 + 1; /* one byte of the tensor of unknown size */
    for (size_t n = 0; n < r->n; n++) {
        uint8_t *exact = malloc(n ? n : 1); /* so that a sanitizer sees a read past the end */
        memcpy(exact, r->p, n);
        sinter_status s = open_bytes(&o, exact, n);
        CASE(n < last ? s == SINTER_E_DATA && strstr(o.err.message, "file.gguf: byte ")
                      : s == SINTER_OK);
        close_opened(&o);
        free(exact);
    }
    free(r);
}

/* Every field at 0, 1, max, max - 1 and the sign bit; every byte of the header flipped. */
static void fields(void **state)
{
    (void)state;
    struct raw *r = raw_new();
    struct opened o;
    raw_small(r);
    size_t n_taken = 0;
    for (size_t f = 0; f < r->n_field; f++) {
        size_t bytes = r->field[f].bytes;
        uint64_t max = bytes == 8 ? UINT64_MAX : UINT32_MAX, save = 0, sign = max / 2 + 1;
        uint64_t values[] = {0, 1, max, max - 1, sign, sign - 1};
        memcpy(&save, r->p + r->field[f].at, bytes);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            memcpy(r->p + r->field[f].at, &values[i], bytes);
            sinter_status s = open_bytes(&o, r->p, r->n);
            bool typed = s == SINTER_E_DATA || s == SINTER_E_UNSUPPORTED || s == SINTER_E_LIMIT;
            CASE(s == SINTER_OK || (typed && strstr(o.err.message, ": byte ")));
            /* A type id or a small offset may be taken; no huge count, length or dimension may. */
            if (bytes == 8 && i >= 2 && i < 5)
                CASE(s != SINTER_OK);
            n_taken += s == SINTER_OK;
            close_opened(&o);
        }
        memcpy(r->p + r->field[f].at, &save, bytes);
    }
    assert_true(n_taken > 0 && n_taken < r->n_field * 3);
    for (size_t at = 0; at < r->n - 300; at++)
        for (int bit = 0; bit < 8; bit++) {
            r->p[at] ^= (uint8_t)(1 << bit);
            sinter_status s = open_bytes(&o, r->p, r->n);
            CASE(s == SINTER_OK || strstr(o.err.message, ": byte "));
            close_opened(&o);
            r->p[at] ^= (uint8_t)(1 << bit);
        }
    free(r);
}

static void versions(void **state)
{
    (void)state;
    struct raw *r = raw_new();
    raw_small(r);
    uint32_t bad[] = {0, 1, 4, UINT32_MAX, 0x02000000, 0x03000000};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memcpy(r->p + 4, &bad[i], 4);
        CASE(refused(r, SINTER_E_UNSUPPORTED, bad[i] == 0x03000000 ? "big endian" : "version"));
    }
    raw_small(r);
    r->p[3] = 'f';
    CASE(refused(r, SINTER_E_DATA, "no GGUF file"));
    free(r);
}

static void hostile_keys(void **state)
{
    (void)state;
    struct raw *r = raw_new();
    raw_head(r, 3, 0, 3);
    raw_u32(r, "a", 1);
    raw_u32(r, "b", 1);
    raw_u32(r, "a", 2);
    CASE(refused(r, SINTER_E_DATA, "twice"));
    raw_head(r, 3, 0, 1);
    raw_array(r, "nested", GGUF_ARRAY, 1);
    raw_bytes(r, (uint32_t[]){GGUF_U8, 0, 0}, 12);
    CASE(refused(r, SINTER_E_UNSUPPORTED, "array of arrays"));
    raw_head(r, 3, 0, 1);
    raw_text(r, "bool");
    raw_field(r, GGUF_BOOL, 4);
    raw_bytes(r, "\2xxx", 4);
    CASE(refused(r, SINTER_E_DATA, "bool"));
    raw_head(r, 3, 0, 1);
    raw_field(r, 3, 8);
    raw_bytes(r, "a\0b", 3);
    raw_field(r, GGUF_U32, 4);
    raw_bytes(r, &(uint32_t){0}, 4);
    CASE(refused(r, SINTER_E_DATA, "NUL"));
    for (uint64_t n = 0; n <= 65536; n = n ? n + 1 : 65535) { /* the lengths about both limits */
        struct opened o;
        raw_head(r, 3, 0, 1);
        raw_field(r, n, 8);
        memset(r->p + r->n, 'k', n);
        r->n += n;
        raw_field(r, GGUF_U32, 4);
        raw_bytes(r, &(uint64_t){0}, 8);
        if (n == 65535) {
            CASE(open_bytes(&o, r->p, r->n) == SINTER_OK);
            close_opened(&o);
        } else {
            CASE(refused(r, SINTER_E_DATA, "1 to 65535"));
        }
    }
    uint32_t alignments[] = {0, 3, 33, UINT32_MAX};
    for (int i = 0; i < 4; i++) {
        raw_head(r, 3, 0, 1);
        raw_u32(r, "general.alignment", alignments[i]);
        CASE(refused(r, SINTER_E_DATA, "power of two"));
    }
    raw_head(r, 3, 0, 1);
    raw_text(r, "general.alignment");
    raw_field(r, GGUF_U64, 4);
    raw_bytes(r, &(uint64_t){32}, 8);
    CASE(refused(r, SINTER_E_DATA, "u64, not u32"));
    free(r);
}

static void hostile_tensors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t type;
        uint64_t d0, d1, offset;
    } bad[] = {
        {"overlap", 0, 8, 0, 0},   /* on the first tensor */
        {"overlap", 43, 8, 0, 32}, /* within it, of unknown size */
        {"alignment", 0, 8, 0, 130},
        {"past the end", 0, 8, 0, 4096},
        {"past the end", 0, 8, 0, UINT64_MAX - 31},
        {"past the end", 0, 33, 1, 128},
        {"past the end", 43, 1, 1, 256},
        {"overflow", 0, INT64_MAX, 2, 128},
        {"overflow", 0, UINT64_C(1) << 32, UINT64_C(1) << 32, 128},
        {"overflow", 28, INT64_MAX, 1, 128},
        {"dimension", 0, UINT64_C(1) << 63, 1, 128},
        {"multiple", 2, 33, 1, 128},
        {"multiple", 12, 32, 8, 128},
        {"multiple", 39, 1, 32, 128}, /* MXFP4: no row, but a size */
    };
    struct raw *r = raw_new();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        raw_head(r, 3, 2, 0);
        raw_tensor(r, "first", 0, 20, 0, 0);
        raw_tensor(r, "second", bad[i].type, bad[i].d0, bad[i].d1, bad[i].offset);
        raw_data(r, 32, 256);
        CASE(refused(r, SINTER_E_DATA, bad[i].text));
    }
    raw_head(r, 3, 2, 0);
    raw_tensor(r, "same", 0, 8, 0, 0);
    raw_tensor(r, "same", 0, 8, 0, 32);
    raw_data(r, 32, 256);
    CASE(refused(r, SINTER_E_DATA, "two tensors"));
    raw_head(r, 3, 2, 0);
    raw_tensor(r, "b", 43, 8, 0, 32);
    raw_tensor(r, "a", 43, 8, 0, 32);
    raw_data(r, 32, 256);
    CASE(refused(r, SINTER_E_DATA, "overlap"));
    free(r);
}

/* ---- Round trip ----------------------------------------------------------------------------- */

static const uint64_t numbers[4] = {0x8899aabbccddeeff, 1, 0x7f, 0};
static const uint8_t bools[4] = {1, 0, 0, 1};
static const struct gguf_string strings[4] = {{"one", 3}, {"", 0}, {"a\0b", 3}, {"\xff", 1}};

static const void *type_data(enum gguf_type type)
{
    return type == GGUF_BOOL ? bools : type == GGUF_STRING ? (const void *)strings : numbers;
}

static size_t type_bytes(enum gguf_type type)
{
    static const size_t bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return bytes[type];
}

static bool same_value(const struct gguf_value *v, enum gguf_type type, enum gguf_type elem,
                       size_t n)
{
    if (v->type != type || v->elem_type != elem || v->n != n)
        return false;
    if (elem != GGUF_STRING)
        return memcmp(v->data, type_data(elem), n * type_bytes(elem)) == 0 &&
               (uintptr_t)v->data % type_bytes(elem) == 0;
    for (size_t i = 0; i < n; i++) {
        const struct gguf_string *s = (const struct gguf_string *)v->data + i;
        if (s->bytes != strings[i].bytes || memcmp(s->text, strings[i].text, s->bytes) ||
            s->text[s->bytes])
            return false;
    }
    return true;
}

static uint8_t pattern(int tensor, uint64_t at)
{
    return (uint8_t)(at * 7 + at / 251 + (uint64_t)tensor * 31);
}

static sinter_status fill_pattern(void *ctx, int tensor, uint64_t offset, void *buf, size_t bytes,
                                  sinter_error *err)
{
    if (ctx && *(int *)ctx == tensor)
        return FAIL(err, CANCELLED, "the test's own failure");
    assert_true(bytes > 0 && bytes <= 1024 * 1024);
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)buf)[i] = pattern(tensor, offset + i);
    return SINTER_OK;
}

/* A writer with every value type as scalar and arrays of 0..4, every tensor type, 1..4 dims. */
static sinter_status put_all(struct gguf_writer *w, uint32_t alignment, sinter_error *err)
{
    char key[64];
    if (alignment)
        TRY(gguf_put_u32(w, "general.alignment", alignment, err));
    for (int type = 0; type < GGUF_N_TYPE; type++) {
        const void *data = type_data((enum gguf_type)type);
        if (type == GGUF_ARRAY)
            continue;
        snprintf(key, sizeof key, "scalar.%s", gguf_type_name((enum gguf_type)type));
        struct gguf_value v = {(enum gguf_type)type, (enum gguf_type)type, 1, data};
        TRY(gguf_put_value(w, key, &v, err));
        for (size_t n = 0; n <= 4; n++) {
            snprintf(key, sizeof key, "array.%s.%zu", gguf_type_name((enum gguf_type)type), n);
            TRY(gguf_put_array(w, key, (enum gguf_type)type, data, n, err));
        }
    }
    TRY(gguf_put_bool(w, "b", true, err));
    TRY(gguf_put_string(w, "s", "text", 4, err));
    for (int i = 0; i < QUANT_N; i++) {
        TRY(gguf_put_tensor(w, quant_row((enum quant_type)i)->name, (enum quant_type)i, i % 4 + 1,
                            (int64_t[]){256 * (1 + i % 3), 3, 2, 1 + i % 2}, err));
    }
    return gguf_put_tensor(w, "large", QUANT_F32, 2, (int64_t[]){1000, 600}, err);
}

static void check_all(struct opened *o, uint32_t alignment)
{
    char key[64];
    const struct gguf_kv *kv;
    for (int type = 0; type < GGUF_N_TYPE; type++) {
        if (type == GGUF_ARRAY)
            continue;
        snprintf(key, sizeof key, "scalar.%s", gguf_type_name((enum gguf_type)type));
        kv = gguf_find(o->g, key);
        CASE(kv && same_value(&kv->value, (enum gguf_type)type, (enum gguf_type)type, 1));
        for (size_t n = 0; n <= 4; n++) {
            snprintf(key, sizeof key, "array.%s.%zu", gguf_type_name((enum gguf_type)type), n);
            kv = gguf_find(o->g, key);
            CASE(kv && same_value(&kv->value, GGUF_ARRAY, (enum gguf_type)type, n));
        }
    }
    CASE(o->g->alignment == (alignment ? alignment : 32));
    CASE(o->g->n_tensor == QUANT_N + 1);
    for (int i = 0; i <= QUANT_N; i++) {
        const struct gguf_tensor *t = &o->g->tensor[i];
        uint8_t *buf = malloc(t->bytes);
        bool ok = gguf_read(o->g, t, 0, buf, t->bytes, &o->err) == SINTER_OK;
        for (uint64_t at = 0; at < t->bytes; at++)
            ok = ok && buf[at] == pattern(i, at);
        CASE(ok && t->offset % o->g->alignment == 0);
        CASE(i == QUANT_N || (t->type == (enum quant_type)i && t->n_dim == i % 4 + 1));
        CASE(gguf_find_tensor(o->g, t->name) == t);
        free(buf);
    }
}

static void round_trip(void **state)
{
    (void)state;
    uint32_t alignments[] = {0, 1, 8, 32, 256, 4096};
    for (int i = 0; i < 6; i++) {
        sinter_error err = {0};
        struct writing x;
        struct opened o;
        struct gguf_writer *w = writing_new(&x);
        assert_int_equal(put_all(w, alignments[i], &err), SINTER_OK);
        assert_int_equal(gguf_writer_save(w, "out", fill_pattern, NULL, &err), SINTER_OK);
        assert_int_equal(x.m.n_written % (alignments[i] ? alignments[i] : 32), 0);
        writing_end(&x);
        assert_int_equal(open_bytes(&o, x.m.written, x.m.n_written), SINTER_OK);
        check_all(&o, alignments[i]);
        close_opened(&o);
        free(x.m.written);
    }
}

/* The small file, built by hand and by the writer, is the same bytes. */
static void writer_bytes(void **state)
{
    (void)state;
    sinter_error err = {0};
    struct writing x;
    struct gguf_writer *w = writing_new(&x);
    struct raw *r = raw_new();
    raw_head(r, 3, 1, 2);
    raw_u32(r, "n", 7);
    raw_array(r, "t", GGUF_STRING, 1);
    raw_text(r, "abc");
    raw_tensor(r, "w", 0, 16, 0, 0);
    raw_data(r, 32, 0);
    for (uint64_t i = 0; i < 64; i++)
        raw_bytes(r, &(uint8_t){pattern(0, i)}, 1);
    assert_int_equal(gguf_put_u32(w, "n", 7, &err), SINTER_OK);
    assert_int_equal(gguf_put_array(w, "t", GGUF_STRING, &(struct gguf_string){"abc", 3}, 1, &err),
                     SINTER_OK);
    assert_int_equal(gguf_put_tensor(w, "w", QUANT_F32, 1, (int64_t[]){16}, &err), SINTER_OK);
    assert_int_equal(gguf_writer_save(w, "out", fill_pattern, NULL, &err), SINTER_OK);
    CASE(x.m.n_written == r->n && memcmp(x.m.written, r->p, r->n) == 0);
    writing_end(&x);
    free(x.m.written);
    free(r);
}

static void writer_refuses(void **state)
{
    (void)state;
    sinter_error err = {0};
    struct writing x;
    struct gguf_writer *w = writing_new(&x);
    int64_t dims[4] = {32, 1, 1, 1}, odd[1] = {33}, huge[2] = {INT64_MAX, 4}, zero[1] = {0};
    CASE(gguf_put_u32(w, "", 1, &err) == SINTER_E_USAGE);
    CASE(gguf_put_u32(w, "general.alignment", 24, &err) == SINTER_E_USAGE);
    CASE(gguf_put_array(w, "a", GGUF_ARRAY, dims, 1, &err) == SINTER_E_USAGE);
    CASE(gguf_put_array(w, "a", GGUF_BOOL, "\7", 1, &err) == SINTER_E_USAGE);
    CASE(gguf_put_array(w, "a", GGUF_U64, dims, SIZE_MAX, &err) == SINTER_E_USAGE);
    CASE(gguf_put_tensor(w, "t", QUANT_Q4_0, 1, odd, &err) == SINTER_E_USAGE);
    CASE(gguf_put_tensor(w, "t", QUANT_F32, 2, huge, &err) == SINTER_E_USAGE);
    CASE(gguf_put_tensor(w, "t", QUANT_F32, 1, zero, &err) == SINTER_E_USAGE);
    CASE(gguf_put_tensor(w, "t", QUANT_F32, 5, dims, &err) == SINTER_E_USAGE);
    CASE(gguf_put_tensor(w, "t", QUANT_N, 1, dims, &err) == SINTER_E_USAGE);
    CASE(gguf_put_tensor(w, "t", QUANT_F32, 1, dims, &err) == SINTER_OK);
    CASE(gguf_writer_save(w, "out", fill_pattern, &(int){0}, &err) == SINTER_E_CANCELLED);
    CASE(gguf_put_tensor(w, "t", QUANT_F32, 1, dims, &err) == SINTER_OK);
    CASE(gguf_writer_save(w, "out", fill_pattern, NULL, &err) == SINTER_E_USAGE &&
         strstr(err.message, "'t' was put twice"));
    writing_end(&x);
    free(x.m.written);
    w = writing_new(&x);
    CASE(gguf_put_u32(w, "key", 1, &err) == SINTER_OK);
    CASE(gguf_put_bool(w, "key", true, &err) == SINTER_OK);
    CASE(gguf_writer_save(w, "out", fill_pattern, NULL, &err) == SINTER_E_USAGE &&
         strstr(err.message, "'key"));
    writing_end(&x);
    free(x.m.written);
}

/* ---- Getters -------------------------------------------------------------------------------- */

static void put_getters(struct gguf_writer *w)
{
    sinter_error err;
#define PUT(key, type, ctype, ...)                                                                 \
    assert_int_equal(                                                                              \
        gguf_put_value(w, key, &(struct gguf_value){type, type, 1, &(ctype){__VA_ARGS__}}, &err),  \
        SINTER_OK)
    PUT("u8", GGUF_U8, uint8_t, 200);
    PUT("i8", GGUF_I8, int8_t, -3);
    PUT("i64", GGUF_I64, int64_t, 4294967296);
    PUT("u64", GGUF_U64, uint64_t, 4294967295u);
    PUT("u64.max", GGUF_U64, uint64_t, UINT64_MAX);
    PUT("f32", GGUF_F32, float, 1.5f);
    PUT("f64", GGUF_F64, double, 0.1);
    PUT("f64.huge", GGUF_F64, double, 1e300);
    PUT("f64.inf", GGUF_F64, double, INFINITY);
    PUT("bool", GGUF_BOOL, uint8_t, 1);
    PUT("string", GGUF_STRING, struct gguf_string, "abc", 3);
#undef PUT
    assert_int_equal(gguf_put_array(w, "layers", GGUF_I32, (int32_t[]){5, -6, 7}, 3, &err),
                     SINTER_OK);
    assert_int_equal(gguf_put_array(w, "floats", GGUF_F32, (float[]){5, -6.5f}, 2, &err),
                     SINTER_OK);
}

static void check_getters(const struct gguf *g)
{
    sinter_error err;
    bool b = false;
    int64_t n = 0;
    double d = 0;
    struct gguf_string s;
    const struct gguf_value *v;
    CASE(gguf_get_bool(g, "none", &b, &err) == SINTER_E_NOT_FOUND && strstr(err.message, "none") &&
         strstr(err.message, "file.gguf"));
    CASE(gguf_get_bool(g, "bool", &b, &err) == SINTER_OK && b);
    CASE(gguf_get_bool(g, "u8", &b, &err) == SINTER_E_DATA);
    CASE(gguf_get_string(g, "string", &s, &err) == SINTER_OK && !strcmp(s.text, "abc"));
    CASE(gguf_get_string(g, "u8", &s, &err) == SINTER_E_DATA);
    CASE(gguf_get_array(g, "layers", GGUF_I32, &v, &err) == SINTER_OK && v->n == 3);
    CASE(gguf_get_array(g, "layers", GGUF_U32, &v, &err) == SINTER_E_DATA);
    CASE(gguf_get_array(g, "u8", GGUF_U8, &v, &err) == SINTER_E_DATA);
    CASE(gguf_value_int(gguf_find(g, "layers"), 1, &n, &err) == SINTER_OK && n == -6);
    CASE(gguf_value_int(gguf_find(g, "layers"), 3, &n, &err) == SINTER_E_DATA);
    CASE(gguf_value_int(gguf_find(g, "u8"), 17, &n, &err) == SINTER_OK && n == 200);
    CASE(gguf_value_int(gguf_find(g, "u64"), 0, &n, &err) == SINTER_OK && n == UINT32_MAX);
    CASE(gguf_value_int(gguf_find(g, "i8"), 0, &n, &err) == SINTER_OK && n == -3);
    CASE(gguf_value_int(gguf_find(g, "f32"), 0, &n, &err) == SINTER_E_DATA &&
         strstr(err.message, "is f32"));
    CASE(gguf_value_int(gguf_find(g, "u64.max"), 0, &n, &err) == SINTER_E_DATA);
    CASE(gguf_value_int(gguf_find(g, "bool"), 0, &n, &err) == SINTER_E_DATA);
    CASE(gguf_value_float(gguf_find(g, "f32"), 0, &d, &err) == SINTER_OK && d == 1.5);
    CASE(gguf_value_float(gguf_find(g, "f64"), 0, &d, &err) == SINTER_OK && d == 0.1);
    CASE(gguf_value_float(gguf_find(g, "f64.inf"), 0, &d, &err) == SINTER_OK && isinf(d));
    CASE(gguf_value_float(gguf_find(g, "u64.max"), 0, &d, &err) == SINTER_OK && d == 0x1p64);
    CASE(gguf_value_float(gguf_find(g, "bool"), 0, &d, &err) == SINTER_E_DATA);
    CASE(gguf_value_float(gguf_find(g, "floats"), 1, &d, &err) == SINTER_OK && d == -6.5);
    CASE(gguf_value_float(gguf_find(g, "layers"), 2, &d, &err) == SINTER_OK && d == 7);
    CASE(gguf_value_float(gguf_find(g, "string"), 0, &d, &err) == SINTER_E_DATA);
}

static void getters(void **state)
{
    (void)state;
    sinter_error err;
    struct writing x;
    struct opened o;
    struct text_buf b;
    put_getters(writing_new(&x));
    assert_int_equal(gguf_writer_save(x.w, "out", fill_pattern, NULL, &err), SINTER_OK);
    writing_end(&x);
    assert_int_equal(open_bytes(&o, x.m.written, x.m.n_written), SINTER_OK);
    check_getters(o.g);
    text_buf_init(&b, o.host);
    gguf_print(o.g, &b, false);
    assert_int_equal(text_buf_end(&b, &err), SINTER_OK);
    CASE(strstr(b.text, "i32[3]  [5, -6, 7]\n") && strstr(b.text, "f64  0.1\n"));
    text_buf_free(&b);
    text_buf_init(&b, o.host);
    gguf_print(o.g, &b, true);
    assert_int_equal(text_buf_end(&b, &err), SINTER_OK);
    CASE(strstr(b.text, "{\"key\": \"f64.inf\", \"type\": \"f64\", \"value\": \"inf\"}"));
    CASE(strstr(b.text, "\"elem_type\": \"i32\", \"n\": 3, \"first\": [5, -6, 7]}"));
    text_buf_free(&b);
    close_opened(&o);
    free(x.m.written);
}

/* ---- Faults and memory ---------------------------------------------------------------------- */

/* Each run was asked for its status and for what it left. */
static void tally(uint64_t n_fault)
{
    n_case += 2 * (n_fault + 1);
    n_ok += 2 * (n_fault + 1);
}

static sinter_status open_small(sinter_host *host, void *ctx, sinter_error *err)
{
    struct gguf *g;
    (void)ctx;
    const sinter_status status = gguf_open(host, "f", &g, err);
    gguf_close(g);
    return status;
}

static void open_faults(void **state)
{
    (void)state;
    struct raw *r = raw_new();
    raw_small(r);
    struct memory_file m = {.data = r->p, .bytes = r->n};
    for (int kind = FAULT_ALLOC; kind <= FAULT_PREAD; kind++)
        tally(fault_loop_host("open", &(struct fault){.file = &m}, kind, open_small, NULL));
    free(r);
}

static sinter_status save_all(sinter_host *host, void *ctx, sinter_error *err)
{
    struct gguf_writer *w;
    (void)ctx;
    sinter_status status = gguf_writer_create(host, &w, err);
    if (status == SINTER_OK)
        status = put_all(w, 0, err);
    if (status == SINTER_OK)
        status = gguf_writer_save(w, "out", fill_pattern, NULL, err);
    gguf_writer_free(w);
    return status;
}

static void save_faults(void **state)
{
    static const enum fault_kind kinds[] = {FAULT_ALLOC, FAULT_OPEN, FAULT_WRITE};
    (void)state;
    struct memory_file m = {0};
    for (int i = 0; i < 3; i++)
        tally(fault_loop_host("save", &(struct fault){.file = &m}, kinds[i], save_all, NULL));
    free(m.written);
}

struct dense {
    uint8_t *p;
    size_t n;
};

static void dense_add(struct dense *d, const void *p, size_t n)
{
    memcpy(d->p + d->n, p, n);
    d->n += n;
}

/* The densest files there can be: opened within the bound (checked by open_bytes) or refused. */
static void memory_bound(void **state)
{
    (void)state;
    uint32_t kinds[] = {GGUF_ARRAY, GGUF_STRING, GGUF_U8};
    struct dense d = {malloc(16 << 20), 0};
    struct opened o;
    assert_non_null(d.p);
    for (uint64_t length = 0; length < 4; length++) {
        uint64_t n = 300000, head[] = {0, 1};
        d.n = 0;
        dense_add(&d, "GGUF\3\0\0\0", 8);
        dense_add(&d, head, 16);
        dense_add(&d, "\1\0\0\0\0\0\0\0a", 9);
        dense_add(&d, kinds, 8);
        dense_add(&d, &n, 8);
        for (uint64_t i = 0; i < n; i++) {
            dense_add(&d, &length, 8);
            dense_add(&d, "xyzw", length);
        }
        CASE(open_bytes(&o, d.p, d.n) == SINTER_OK && o.g->kv[0].value.n == n);
        close_opened(&o);
    }
    uint64_t n = 200000, head[] = {0, n};
    d.n = 0;
    dense_add(&d, "GGUF\3\0\0\0", 8);
    dense_add(&d, head, 16);
    for (uint64_t i = 0; i < n; i++) { /* three-byte keys, one-byte values */
        uint64_t three = 3;
        uint8_t key[3] = {(uint8_t)(1 + i % 200), (uint8_t)(1 + i / 200 % 200),
                          (uint8_t)(1 + i / 40000)};
        dense_add(&d, &three, 8);
        dense_add(&d, key, 3);
        dense_add(&d, &kinds[2], 4);
        dense_add(&d, "v", 1);
    }
    CASE(open_bytes(&o, d.p, d.n) == SINTER_E_LIMIT);
    close_opened(&o);
    free(d.p);
}

/* 70 000 keys and tensors: every one is found, no name that is not there is. */
static void many(void **state)
{
    (void)state;
    sinter_error err;
    struct writing x;
    struct opened o;
    struct gguf_writer *w = writing_new(&x);
    char name[64];
    int n = 70000, n_found = 0;
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "arch.block.%d.some.key", i * 7919 % n);
        assert_int_equal(gguf_put_u32(w, name, (uint32_t)i, &err), SINTER_OK);
        snprintf(name, sizeof name, "blk.%d.weight", i);
        assert_int_equal(gguf_put_tensor(w, name, QUANT_F32, 1, (int64_t[]){1}, &err), SINTER_OK);
    }
    assert_int_equal(gguf_writer_save(w, "out", fill_pattern, NULL, &err), SINTER_OK);
    writing_end(&x);
    assert_int_equal(open_bytes(&o, x.m.written, x.m.n_written), SINTER_OK);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "arch.block.%d.some.key", i * 7919 % n);
        n_found += gguf_find(o.g, name) == &o.g->kv[i];
        snprintf(name, sizeof name, "blk.%d.weight", i);
        n_found += gguf_find_tensor(o.g, name) == &o.g->tensor[i];
        name[0] = 'B';
        n_found -= gguf_find_tensor(o.g, name) != NULL;
    }
    CASE(n_found == 2 * n);
    close_opened(&o);
    free(x.m.written);
}

/* ---- Real vocabularies ---------------------------------------------------------------------- */

static void real_files(void **state)
{
    (void)state;
    struct fault fault = {0};
    sinter_host *host = fault_host(&fault);
    sinter_error err = {0};
    struct dirent *e;
    size_t n = 0;
    DIR *dir = opendir(TEST_SHARED_DIR "/vocab");
    while (dir && (e = readdir(dir))) {
        char path[4096];
        struct gguf *g;
        const struct gguf_value *tokens;
        size_t bytes = strlen(e->d_name);
        if (bytes < 5 || strcmp(e->d_name + bytes - 5, ".gguf"))
            continue;
        snprintf(path, sizeof path, "%s/vocab/%s", TEST_SHARED_DIR, e->d_name);
        fault.asked = 0;
        sinter_status s = gguf_open(host, path, &g, &err);
        CASE(s == SINTER_OK && fault.asked <= 2 * g->file_bytes + 256 * 1024 &&
             gguf_get_array(g, "tokenizer.ggml.tokens", GGUF_STRING, &tokens, &err) == SINTER_OK &&
             tokens->n > 20000);
        if (s != SINTER_OK)
            print_error("%s\n", err.message);
        gguf_close(g);
        n++;
    }
    if (dir)
        closedir(dir);
    sinter_host_free(host);
    if (n == 0)
        printf("SKIPPED 1: no vocabularies in the shared data\n");
    else
        printf("real vocabularies: %zu/%zu\n", n, n);
}

static void summary(void **state)
{
    (void)state;
    printf("gguf: %zu/%zu\n", n_ok, n_case);
    assert_int_equal(n_ok, n_case);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_file),     cmocka_unit_test(truncation),
        cmocka_unit_test(fields),         cmocka_unit_test(versions),
        cmocka_unit_test(hostile_keys),   cmocka_unit_test(hostile_tensors),
        cmocka_unit_test(round_trip),     cmocka_unit_test(writer_bytes),
        cmocka_unit_test(writer_refuses), cmocka_unit_test(getters),
        cmocka_unit_test(open_faults),    cmocka_unit_test(save_faults),
        cmocka_unit_test(memory_bound),   cmocka_unit_test(many),
        cmocka_unit_test(real_files),     cmocka_unit_test(summary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
