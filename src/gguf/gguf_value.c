/* The table of value types, typed access to values, and the sort behind the look-ups. */
#include "gguf/local.h"

static const struct {
    const char *name;
    uint8_t bytes;
} types[GGUF_N_TYPE] = {
    [GGUF_U8] = {"u8", 1},       [GGUF_I8] = {"i8", 1},     [GGUF_U16] = {"u16", 2},
    [GGUF_I16] = {"i16", 2},     [GGUF_U32] = {"u32", 4},   [GGUF_I32] = {"i32", 4},
    [GGUF_F32] = {"f32", 4},     [GGUF_BOOL] = {"bool", 1}, [GGUF_STRING] = {"string", 0},
    [GGUF_ARRAY] = {"array", 0}, [GGUF_U64] = {"u64", 8},   [GGUF_I64] = {"i64", 8},
    [GGUF_F64] = {"f64", 8},
};

const char *gguf_type_name(enum gguf_type type)
{
    return (unsigned)type < GGUF_N_TYPE ? types[type].name : "?";
}

size_t gguf_type_bytes(enum gguf_type type)
{
    return types[type].bytes;
}

/* Element i of kv, or an error that names key, byte and what was wanted. */
static sinter_status element(const struct gguf_kv *kv, size_t i, const void **out,
                             sinter_error *err)
{
    const struct gguf_value *v = &kv->value;
    if (v->type != GGUF_ARRAY)
        i = 0;
    if (i >= v->n)
        return FAIL(err, DATA,
                    "key '%.64s' (byte %" PRIu64 ") has %zu elements, element %zu was wanted",
                    kv->key, kv->offset, v->n, i);
    *out = v->elem_type == GGUF_STRING
               ? (const void *)((const struct gguf_string *)v->data + i)
               : (const void *)((const uint8_t *)v->data + i * types[v->elem_type].bytes);
    return SINTER_OK;
}

static sinter_status wrong_type(const struct gguf_kv *kv, const char *want, sinter_error *err)
{
    bool array = kv->value.type == GGUF_ARRAY;
    return FAIL(err, DATA, "key '%.64s' (byte %" PRIu64 ") is %s%s, %s was wanted", kv->key,
                kv->offset, array ? "an array of " : "", gguf_type_name(kv->value.elem_type), want);
}

sinter_status gguf_value_int(const struct gguf_kv *kv, size_t i, int64_t *out, sinter_error *err)
{
    const void *p = NULL;
    TRY(element(kv, i, &p, err));
    switch (kv->value.elem_type) {
    case GGUF_U8:
        *out = *(const uint8_t *)p;
        return SINTER_OK;
    case GGUF_I8:
        *out = *(const int8_t *)p;
        return SINTER_OK;
    case GGUF_U16:
        *out = *(const uint16_t *)p;
        return SINTER_OK;
    case GGUF_I16:
        *out = *(const int16_t *)p;
        return SINTER_OK;
    case GGUF_U32:
        *out = *(const uint32_t *)p;
        return SINTER_OK;
    case GGUF_I32:
        *out = *(const int32_t *)p;
        return SINTER_OK;
    case GGUF_U64:
        if (*(const uint64_t *)p > INT64_MAX)
            return FAIL(err, DATA, "key '%.64s' (byte %" PRIu64 ") is %" PRIu64 ", too large",
                        kv->key, kv->offset, *(const uint64_t *)p);
        *out = (int64_t) * (const uint64_t *)p;
        return SINTER_OK;
    case GGUF_I64:
        *out = *(const int64_t *)p;
        return SINTER_OK;
    case GGUF_F32:
    case GGUF_F64:
    case GGUF_BOOL:
    case GGUF_STRING:
    case GGUF_ARRAY:
    case GGUF_N_TYPE:
        break;
    }
    return wrong_type(kv, "an integer", err);
}

sinter_status gguf_value_float(const struct gguf_kv *kv, size_t i, double *out, sinter_error *err)
{
    enum gguf_type type = kv->value.elem_type;
    const void *p = NULL;
    int64_t n;
    TRY(element(kv, i, &p, err));
    if (type == GGUF_F32) {
        *out = *(const float *)p;
    } else if (type == GGUF_F64) {
        *out = *(const double *)p;
    } else if (type == GGUF_U64) {
        *out = (double)*(const uint64_t *)p;
    } else if (type == GGUF_BOOL || type == GGUF_STRING) {
        return wrong_type(kv, "a number", err);
    } else {
        TRY(gguf_value_int(kv, i, &n, err));
        *out = (double)n;
    }
    return SINTER_OK;
}

static sinter_status find(const struct gguf *g, const char *key, const struct gguf_kv **out,
                          sinter_error *err)
{
    *out = gguf_find(g, key);
    if (!*out)
        return FAIL(err, NOT_FOUND, "%s: key '%s' is missing", g->path, key);
    return SINTER_OK;
}

static sinter_status in_file(const struct gguf *g, sinter_status status, sinter_error *err)
{
    return status == SINTER_OK ? status : status_prefix(err, status, "%s", g->path);
}

/* A key that is there and no array. */
static sinter_status find_scalar(const struct gguf *g, const char *key, const char *want,
                                 const struct gguf_kv **out, sinter_error *err)
{
    TRY(find(g, key, out, err));
    if ((*out)->value.type == GGUF_ARRAY)
        return in_file(g, wrong_type(*out, want, err), err);
    return SINTER_OK;
}

sinter_status gguf_get_bool(const struct gguf *g, const char *key, bool *out, sinter_error *err)
{
    const struct gguf_kv *kv;
    TRY(find_scalar(g, key, "bool", &kv, err));
    if (kv->value.type != GGUF_BOOL)
        return in_file(g, wrong_type(kv, "bool", err), err);
    *out = *(const uint8_t *)kv->value.data != 0;
    return SINTER_OK;
}

sinter_status gguf_get_string(const struct gguf *g, const char *key, struct gguf_string *out,
                              sinter_error *err)
{
    const struct gguf_kv *kv;
    TRY(find_scalar(g, key, "string", &kv, err));
    if (kv->value.type != GGUF_STRING)
        return in_file(g, wrong_type(kv, "string", err), err);
    *out = *(const struct gguf_string *)kv->value.data;
    return SINTER_OK;
}

sinter_status gguf_get_array(const struct gguf *g, const char *key, enum gguf_type elem_type,
                             const struct gguf_value **out, sinter_error *err)
{
    const struct gguf_kv *kv;
    TRY(find(g, key, &kv, err));
    if (kv->value.type != GGUF_ARRAY || kv->value.elem_type != elem_type) {
        sinter_status s =
            FAIL(err, DATA, "key '%.64s' (byte %" PRIu64 ") is %s%s, an array of %s was wanted",
                 kv->key, kv->offset, kv->value.type == GGUF_ARRAY ? "an array of " : "",
                 gguf_type_name(kv->value.elem_type), gguf_type_name(elem_type));
        return in_file(g, s, err);
    }
    *out = &kv->value;
    return SINTER_OK;
}

static void sift(uint32_t *order, size_t at, size_t n, gguf_before_fn before, const void *ctx)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(ctx, order[child], order[child + 1]))
            child++;
        if (!before(ctx, order[at], order[child]))
            return;
        uint32_t swap = order[at];
        order[at] = order[child];
        order[child] = swap;
    }
}

void gguf_sort(uint32_t *order, size_t n, gguf_before_fn before, const void *ctx)
{
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    for (size_t i = n / 2; i-- > 0;)
        sift(order, i, n, before, ctx);
    for (size_t i = n; i-- > 1;) {
        uint32_t swap = order[0];
        order[0] = order[i];
        order[i] = swap;
        sift(order, 0, i, before, ctx);
    }
}
