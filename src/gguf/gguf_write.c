/* GGUF writer (version 3). Keys are serialised as they are put, tensors are kept in a list; save
 * places the data (in order, each tensor aligned), writes the header and then the data in pieces.
 * What the reader would refuse is refused here, duplicates when the file is saved. */
#include "gguf/local.h"

struct bytes {
    uint8_t *data;
    size_t n, cap;
};

struct put_tensor {
    size_t name; /* where in `names` */
    enum quant_type type;
    int n_dim;
    int64_t dim[4];
    uint64_t bytes;
};

struct gguf_writer {
    sinter_host *host;
    struct bytes kv, names; /* serialised keys; NUL-terminated tensor names */
    size_t *key;            /* [n_kv] where in kv the key's length stands */
    struct put_tensor *tensor;
    size_t n_kv, kv_cap, n_tensor, tensor_cap;
    uint32_t alignment;
};

static sinter_status add(struct gguf_writer *w, struct bytes *b, const void *data, size_t n,
                         sinter_error *err)
{
    void *block = b->data;
    sinter_status s = host_grow(w->host, &block, &b->cap, b->n + n, 1, err);
    b->data = block;
    TRY(s);
    if (n > 0)
        memcpy(b->data + b->n, data, n);
    b->n += n;
    return SINTER_OK;
}

static sinter_status add_u32(struct gguf_writer *w, struct bytes *b, uint32_t v, sinter_error *err)
{
    return add(w, b, &v, sizeof v, err);
}

static sinter_status add_u64(struct gguf_writer *w, struct bytes *b, uint64_t v, sinter_error *err)
{
    return add(w, b, &v, sizeof v, err);
}

static sinter_status add_string(struct gguf_writer *w, struct bytes *b, const char *text, size_t n,
                                sinter_error *err)
{
    TRY(add_u64(w, b, n, err));
    return add(w, b, text, n, err);
}

sinter_status gguf_writer_create(sinter_host *host, struct gguf_writer **out, sinter_error *err)
{
    struct gguf_writer *w;
    *out = NULL;
    NEW(host, w, 1, err);
    w->host = host;
    w->alignment = GGUF_ALIGNMENT;
    *out = w;
    return SINTER_OK;
}

void gguf_writer_free(struct gguf_writer *w)
{
    if (!w)
        return;
    host_free(w->host, w->kv.data);
    host_free(w->host, w->names.data);
    host_free(w->host, w->key);
    host_free(w->host, w->tensor);
    host_free(w->host, w);
}

static sinter_status check_name(const char *name, const char *what, sinter_error *err)
{
    size_t n = strlen(name);
    if (n == 0 || n > GGUF_NAME_BYTES)
        return FAIL(err, USAGE, "writing GGUF: %s of %zu bytes, 1 to %d are allowed", what, n,
                    (int)GGUF_NAME_BYTES);
    return SINTER_OK;
}

static sinter_status add_elements(struct gguf_writer *w, const struct gguf_value *v,
                                  sinter_error *err)
{
    if (v->elem_type != GGUF_STRING)
        return add(w, &w->kv, v->data, v->n * gguf_type_bytes(v->elem_type), err);
    for (size_t i = 0; i < v->n; i++) {
        const struct gguf_string *s = (const struct gguf_string *)v->data + i;
        TRY(add_string(w, &w->kv, s->text, s->bytes, err));
    }
    return SINTER_OK;
}

static sinter_status add_kv(struct gguf_writer *w, const char *key, const struct gguf_value *v,
                            sinter_error *err)
{
    TRY(add_string(w, &w->kv, key, strlen(key), err));
    TRY(add_u32(w, &w->kv, (uint32_t)v->type, err));
    if (v->type == GGUF_ARRAY) {
        TRY(add_u32(w, &w->kv, (uint32_t)v->elem_type, err));
        TRY(add_u64(w, &w->kv, v->n, err));
    }
    return add_elements(w, v, err);
}

static sinter_status check_value(const char *key, const struct gguf_value *v, sinter_error *err)
{
    bool array = v->type == GGUF_ARRAY;
    size_t bytes;
    if ((unsigned)v->type >= GGUF_N_TYPE || (unsigned)v->elem_type >= GGUF_N_TYPE ||
        v->elem_type == GGUF_ARRAY || (!array && (v->n != 1 || v->elem_type != v->type)) ||
        __builtin_mul_overflow(v->n, gguf_type_bytes(v->elem_type), &bytes))
        return FAIL(err, USAGE, "writing GGUF: key '%.64s': no such value (%s of %zu %s)", key,
                    gguf_type_name(v->type), v->n, gguf_type_name(v->elem_type));
    for (size_t i = 0; v->elem_type == GGUF_BOOL && i < v->n; i++)
        if (((const uint8_t *)v->data)[i] > 1)
            return FAIL(err, USAGE, "writing GGUF: key '%.64s': a bool is %d, not 0 or 1", key,
                        ((const uint8_t *)v->data)[i]);
    return SINTER_OK;
}

sinter_status gguf_put_value(struct gguf_writer *w, const char *key, const struct gguf_value *v,
                             sinter_error *err)
{
    size_t start = w->kv.n;
    void *block = w->key;
    TRY(check_name(key, "a key", err));
    TRY(check_value(key, v, err));
    if (strcmp(key, "general.alignment") == 0) {
        if (v->type != GGUF_U32 || !gguf_is_pow2(*(const uint32_t *)v->data))
            return FAIL(err, USAGE,
                        "writing GGUF: general.alignment must be a u32 and a power of two");
        w->alignment = *(const uint32_t *)v->data;
    }
    sinter_status s = host_grow(w->host, &block, &w->kv_cap, w->n_kv + 1, sizeof *w->key, err);
    w->key = block;
    TRY(s);
    s = add_kv(w, key, v, err);
    if (s != SINTER_OK) {
        w->kv.n = start; /* half a key must not stay */
        return s;
    }
    w->key[w->n_kv++] = start;
    return SINTER_OK;
}

sinter_status gguf_put_u32(struct gguf_writer *w, const char *key, uint32_t v, sinter_error *err)
{
    return gguf_put_value(w, key, &(struct gguf_value){GGUF_U32, GGUF_U32, 1, &v}, err);
}

sinter_status gguf_put_bool(struct gguf_writer *w, const char *key, bool v, sinter_error *err)
{
    uint8_t byte = v;
    return gguf_put_value(w, key, &(struct gguf_value){GGUF_BOOL, GGUF_BOOL, 1, &byte}, err);
}

sinter_status gguf_put_string(struct gguf_writer *w, const char *key, const char *text,
                              size_t bytes, sinter_error *err)
{
    struct gguf_string s = {text, bytes};
    return gguf_put_value(w, key, &(struct gguf_value){GGUF_STRING, GGUF_STRING, 1, &s}, err);
}

sinter_status gguf_put_array(struct gguf_writer *w, const char *key, enum gguf_type elem_type,
                             const void *data, size_t n, sinter_error *err)
{
    return gguf_put_value(w, key, &(struct gguf_value){GGUF_ARRAY, elem_type, n, data}, err);
}

sinter_status gguf_put_tensor(struct gguf_writer *w, const char *name, enum quant_type type,
                              int n_dim, const int64_t *dim, sinter_error *err)
{
    struct put_tensor t = {.name = w->names.n, .type = type, .n_dim = n_dim};
    uint64_t n = 1;
    void *block = w->tensor;
    TRY(check_name(name, "a tensor's name", err));
    if ((unsigned)type >= QUANT_N || n_dim < 1 || n_dim > 4)
        return FAIL(err, USAGE, "writing GGUF: tensor '%.64s': no such type or %d dimensions", name,
                    n_dim);
    const struct quant_row *row = quant_row(type);
    for (int i = 0; i < n_dim; i++) {
        t.dim[i] = dim[i];
        if (dim[i] < 1 || __builtin_mul_overflow(n, (uint64_t)dim[i], &n) || n > INT64_MAX / 8)
            return FAIL(err, USAGE, "writing GGUF: tensor '%.64s': dimension %d is %" PRId64, name,
                        i, dim[i]);
    }
    if (dim[0] % row->block_elems)
        return FAIL(err, USAGE,
                    "writing GGUF: tensor '%.64s': rows of %" PRId64 " elements are no multiple of "
                    "the %d in a block of %s",
                    name, dim[0], row->block_elems, row->name);
    t.bytes = n / (uint64_t)row->block_elems * (uint64_t)row->block_bytes;
    sinter_status s =
        host_grow(w->host, &block, &w->tensor_cap, w->n_tensor + 1, sizeof *w->tensor, err);
    w->tensor = block;
    TRY(s);
    TRY(add(w, &w->names, name, strlen(name) + 1, err));
    w->tensor[w->n_tensor++] = t;
    return SINTER_OK;
}

/* ---- Save ----------------------------------------------------------------------------------- */

static const char *tensor_name(const struct gguf_writer *w, uint32_t i)
{
    return (const char *)w->names.data + w->tensor[i].name;
}

static bool name_before(const void *ctx, uint32_t a, uint32_t b)
{
    int c = strcmp(tensor_name(ctx, a), tensor_name(ctx, b));
    return c < 0 || (c == 0 && a < b);
}

/* Keys compare as length and bytes: any order serves that makes equal ones neighbours. */
static int key_compare(const struct gguf_writer *w, uint32_t a, uint32_t b)
{
    uint64_t n, m;
    memcpy(&n, w->kv.data + w->key[a], sizeof n);
    memcpy(&m, w->kv.data + w->key[b], sizeof m);
    if (n != m)
        return n < m ? -1 : 1;
    return memcmp(w->kv.data + w->key[a] + sizeof n, w->kv.data + w->key[b] + sizeof m, (size_t)n);
}

static bool key_before(const void *ctx, uint32_t a, uint32_t b)
{
    int c = key_compare(ctx, a, b);
    return c < 0 || (c == 0 && a < b);
}

static sinter_status refuse_twice(const struct gguf_writer *w, uint32_t *order, sinter_error *err)
{
    gguf_sort(order, w->n_kv, key_before, w);
    for (size_t i = 1; i < w->n_kv; i++)
        if (key_compare(w, order[i - 1], order[i]) == 0)
            return FAIL(err, USAGE, "writing GGUF: key '%.64s' was put twice",
                        (const char *)w->kv.data + w->key[order[i]] + sizeof(uint64_t));
    gguf_sort(order, w->n_tensor, name_before, w);
    for (size_t i = 1; i < w->n_tensor; i++)
        if (strcmp(tensor_name(w, order[i - 1]), tensor_name(w, order[i])) == 0)
            return FAIL(err, USAGE, "writing GGUF: tensor '%.64s' was put twice",
                        tensor_name(w, order[i]));
    return SINTER_OK;
}

static sinter_status check_names(const struct gguf_writer *w, sinter_error *err)
{
    uint32_t *order;
    NEW(w->host, order, w->n_kv > w->n_tensor ? w->n_kv : w->n_tensor, err);
    sinter_status s = refuse_twice(w, order, err);
    host_free(w->host, order);
    return s;
}

/* All that stands before the data, padded to it. */
static sinter_status make_header(struct gguf_writer *w, struct bytes *b, sinter_error *err)
{
    uint64_t offset = 0;
    static const uint8_t zeros[64];
    TRY(add(w, b, "GGUF", 4, err));
    TRY(add_u32(w, b, 3, err));
    TRY(add_u64(w, b, w->n_tensor, err));
    TRY(add_u64(w, b, w->n_kv, err));
    TRY(add(w, b, w->kv.data, w->kv.n, err));
    for (uint32_t i = 0; i < w->n_tensor; i++) {
        const struct put_tensor *t = &w->tensor[i];
        TRY(add_string(w, b, tensor_name(w, i), strlen(tensor_name(w, i)), err));
        TRY(add_u32(w, b, (uint32_t)t->n_dim, err));
        for (int d = 0; d < t->n_dim; d++)
            TRY(add_u64(w, b, (uint64_t)t->dim[d], err));
        TRY(add_u32(w, b, quant_row(t->type)->gguf_id, err));
        TRY(add_u64(w, b, offset, err));
        offset = gguf_align(offset + t->bytes, w->alignment);
    }
    for (uint64_t pad = gguf_align(b->n, w->alignment) - b->n; pad > 0;) {
        size_t n = pad < sizeof zeros ? (size_t)pad : sizeof zeros;
        TRY(add(w, b, zeros, n, err));
        pad -= n;
    }
    return SINTER_OK;
}

static sinter_status write_data(struct gguf_writer *w, int handle, uint8_t *piece,
                                gguf_fill_fn fill, void *ctx, sinter_error *err)
{
    for (size_t i = 0; i < w->n_tensor; i++) {
        const struct put_tensor *t = &w->tensor[i];
        uint64_t padded = gguf_align(t->bytes, w->alignment);
        for (uint64_t at = 0; at < padded;) {
            uint64_t end = at < t->bytes ? t->bytes : padded; /* data, then padding */
            size_t n = end - at < GGUF_PIECE_BYTES ? (size_t)(end - at) : GGUF_PIECE_BYTES;
            if (at < t->bytes)
                TRY(fill(ctx, (int)i, at, piece, n, err));
            else
                memset(piece, 0, n);
            TRY(host_write(w->host, handle, piece, n, err));
            at += n;
        }
    }
    return SINTER_OK;
}

sinter_status gguf_writer_save(struct gguf_writer *w, const char *path, gguf_fill_fn fill,
                               void *ctx, sinter_error *err)
{
    sinter_status status = SINTER_OK;
    struct bytes header = {0};
    uint8_t *piece = NULL;
    int handle = -1;
    TRY_OUT(check_names(w, err));
    TRY_OUT(make_header(w, &header, err));
    piece = host_alloc_raw(w->host, GGUF_PIECE_BYTES);
    if (!piece)
        TRY_OUT(host_no_memory(err, GGUF_PIECE_BYTES, 1, "the writer's buffer"));
    TRY_OUT(host_open(w->host, path, true, &handle, err));
    status = host_write(w->host, handle, header.data, header.n, err);
    if (status == SINTER_OK)
        status = write_data(w, handle, piece, fill, ctx, err);
    if (status == SINTER_OK)
        status = host_close(w->host, handle, err);
    else if (host_close(w->host, handle, NULL) != SINTER_OK)
        host_log(w->host, SINTER_LOG_WARN, "%s: closing it failed too", path);
    if (status != SINTER_OK)
        status = status_prefix(err, status, "%s", path);
out:
    host_free(w->host, piece);
    host_free(w->host, header.data);
    return status;
}
