/* GGUF reader. The header (keys, tensor descriptions) is walked twice with the same code: first
 * counting, then filling one block of exactly the counted size. So nothing grows, a count in the
 * file is never believed before its bytes were seen, and the memory asked for is known before it
 * is asked for. A file that changes between the walks is refused.
 *
 * Look-ups go through indices sorted by name: duplicates are neighbours, and no choice of names
 * makes them slow. */
#include "gguf/local.h"

/* A part of the block: counting while base is NULL, then handing out. */
struct region {
    uint8_t *base;
    uint64_t used, cap;
};

struct reader {
    sinter_host *host;
    sinter_error *err;
    const char *path;
    int handle;
    uint64_t file_bytes, pos;
    uint64_t end; /* of the header, known after the first walk */
    uint8_t *window;
    uint64_t window_at, window_bytes;
    struct region strings, scalars, text;
    bool fill;
    char name[64]; /* key or tensor being read, for messages */
};

/* Returns the status of a failed FAIL with file and byte before its message. */
static sinter_status at_byte(struct reader *r, uint64_t at, sinter_status status)
{
    return status_prefix(r->err, status, "%s: byte %" PRIu64, r->path, at);
}

#define BAD(r, at, name, ...) at_byte((r), (at), FAIL((r)->err, name, __VA_ARGS__))

static uint64_t left(const struct reader *r)
{
    return r->file_bytes - r->pos;
}

static sinter_status need(struct reader *r, uint64_t bytes, const char *what)
{
    if (bytes <= left(r))
        return SINTER_OK;
    return BAD(r, r->pos, DATA,
               "%s needs %" PRIu64 " bytes, %" PRIu64 " are left: the file is cut off or a length "
               "in it is wrong; fetch it again",
               what, bytes, left(r));
}

static sinter_status pread_at(struct reader *r, void *buf, size_t bytes, uint64_t at)
{
    sinter_status s = host_pread(r->host, r->handle, buf, bytes, (int64_t)at, r->err);
    return s == SINTER_OK ? s : status_prefix(r->err, s, "%s", r->path);
}

static sinter_status take(struct reader *r, void *dst, uint64_t bytes, const char *what)
{
    uint8_t *to = dst;
    TRY(need(r, bytes, what));
    while (bytes > 0) {
        uint64_t in = r->pos - r->window_at; /* wraps to a huge value before the window */
        if (in >= r->window_bytes) {
            uint64_t n = left(r) < GGUF_WINDOW_BYTES ? left(r) : GGUF_WINDOW_BYTES;
            r->window_bytes = 0;
            TRY(pread_at(r, r->window, (size_t)n, r->pos));
            r->window_at = r->pos;
            r->window_bytes = n;
            in = 0;
        }
        uint64_t n = r->window_bytes - in < bytes ? r->window_bytes - in : bytes;
        memcpy(to, r->window + in, (size_t)n);
        to += n;
        r->pos += n;
        bytes -= n;
    }
    return SINTER_OK;
}

static sinter_status take_u32(struct reader *r, uint32_t *v, const char *what)
{
    return take(r, v, sizeof *v, what);
}

static sinter_status take_u64(struct reader *r, uint64_t *v, const char *what)
{
    return take(r, v, sizeof *v, what);
}

/* Reads into the region, or only counts; *out is NULL while counting. */
static sinter_status take_into(struct reader *r, struct region *region, uint64_t bytes,
                               uint64_t align, void **out)
{
    uint64_t at = gguf_align(region->used, align);
    region->used = at + bytes;
    *out = NULL;
    if (!r->fill)
        return SINTER_OK;
    if (region->used > region->cap)
        return BAD(r, r->pos, DATA, "the file changed while it was read; try again");
    *out = region->base + at;
    return SINTER_OK;
}

static sinter_status walk_string(struct reader *r, struct gguf_string *s, const char *what)
{
    uint64_t n;
    void *text;
    TRY(take_u64(r, &n, what));
    TRY(need(r, n, what));
    *s = (struct gguf_string){"", (size_t)n};
    if (n == 0)
        return SINTER_OK;
    TRY(take_into(r, &r->text, n + 1, 1, &text));
    if (!text) {
        r->pos += n;
        return SINTER_OK;
    }
    TRY(take(r, text, n, what));
    ((char *)text)[n] = '\0';
    s->text = text;
    return SINTER_OK;
}

/* A key or a tensor's name; its beginning goes to r->name for messages. */
static sinter_status walk_name(struct reader *r, const char **out, const char *what)
{
    uint64_t start = r->pos, n;
    struct gguf_string s;
    TRY(take_u64(r, &n, what));
    if (n == 0 || n > GGUF_NAME_BYTES)
        return BAD(r, start, DATA, "%s has %" PRIu64 " bytes, 1 to %d are allowed", what, n,
                   (int)GGUF_NAME_BYTES);
    TRY(need(r, n, what));
    size_t shown = n < sizeof r->name ? (size_t)n : sizeof r->name - 1;
    TRY(take(r, r->name, shown, what));
    r->name[shown] = '\0';
    r->pos = start;
    TRY(walk_string(r, &s, what));
    if (r->fill && strlen(s.text) != s.bytes)
        return BAD(r, start, DATA, "%s '%s' contains a NUL", what, r->name);
    *out = s.text;
    return SINTER_OK;
}

static sinter_status walk_type(struct reader *r, enum gguf_type *type)
{
    uint64_t start = r->pos;
    uint32_t id;
    TRY(take_u32(r, &id, "a value's type"));
    if (id >= GGUF_N_TYPE)
        return BAD(r, start, DATA, "key '%s': value type %" PRIu32 " does not exist (0 to %d do)",
                   r->name, id, GGUF_N_TYPE - 1);
    *type = (enum gguf_type)id;
    return SINTER_OK;
}

static sinter_status walk_scalars(struct reader *r, struct gguf_value *v)
{
    uint64_t each = gguf_type_bytes(v->elem_type), start = r->pos;
    void *data;
    if (v->n > left(r) / each)
        return BAD(r, start, DATA,
                   "key '%s': %zu values of type %s do not fit into the %" PRIu64 " bytes left",
                   r->name, v->n, gguf_type_name(v->elem_type), left(r));
    TRY(take_into(r, &r->scalars, v->n * each, each, &data));
    if (!data) {
        r->pos += v->n * each;
        return SINTER_OK;
    }
    v->data = data;
    TRY(take(r, data, v->n * each, "a value"));
    for (size_t i = 0; v->elem_type == GGUF_BOOL && i < v->n; i++)
        if (((uint8_t *)data)[i] > 1)
            return BAD(r, start + i, DATA, "key '%s': a bool is %d, not 0 or 1", r->name,
                       ((uint8_t *)data)[i]);
    return SINTER_OK;
}

static sinter_status walk_strings(struct reader *r, struct gguf_value *v)
{
    void *data;
    if (v->n > left(r) / sizeof(uint64_t))
        return BAD(r, r->pos, DATA,
                   "key '%s': %zu strings do not fit into the %" PRIu64 " bytes left", r->name,
                   v->n, left(r));
    TRY(take_into(r, &r->strings, v->n * sizeof(struct gguf_string), sizeof(void *), &data));
    v->data = data;
    for (size_t i = 0; i < v->n; i++) {
        struct gguf_string s;
        TRY(walk_string(r, &s, "a string"));
        if (data)
            ((struct gguf_string *)data)[i] = s;
    }
    return SINTER_OK;
}

static sinter_status walk_kv(struct reader *r, struct gguf_kv *kv)
{
    struct gguf_value *v = &kv->value;
    uint64_t n = 1, start;
    kv->offset = r->pos;
    TRY(walk_name(r, &kv->key, "a key"));
    TRY(walk_type(r, &v->type));
    v->elem_type = v->type;
    if (v->type == GGUF_ARRAY) {
        start = r->pos;
        TRY(walk_type(r, &v->elem_type));
        TRY(take_u64(r, &n, "an array's length"));
        if (v->elem_type == GGUF_ARRAY)
            return BAD(r, start, UNSUPPORTED,
                       "key '%s' is an array of arrays, which no known key is", r->name);
    }
    v->n = (size_t)n;
    return v->elem_type == GGUF_STRING ? walk_strings(r, v) : walk_scalars(r, v);
}

/* Elements and bytes; also what may be known of a type that sinter cannot decode. */
static sinter_status size_tensor(struct reader *r, struct gguf_tensor *t, uint64_t start)
{
    int block_elems, block_bytes;
    uint64_t n = 1;
    for (int i = 0; i < 4; i++)
        if (__builtin_mul_overflow(n, (uint64_t)t->dim[i], &n) || n > INT64_MAX)
            return BAD(r, start, DATA, "tensor '%s': its dimensions' product overflows", r->name);
    if (!quant_gguf_block(t->type_id, &block_elems, &block_bytes))
        return SINTER_OK;
    if (t->dim[0] % block_elems)
        return BAD(r, start, DATA,
                   "tensor '%s': rows of %" PRId64 " elements are no multiple of the %d elements "
                   "in a block of %s",
                   r->name, t->dim[0], block_elems, quant_gguf_name(t->type_id));
    n /= (uint64_t)block_elems;
    if (__builtin_mul_overflow(n, (uint64_t)block_bytes, &t->bytes))
        return BAD(r, start, DATA, "tensor '%s': its size in bytes overflows", r->name);
    return SINTER_OK;
}

/* Makes t->offset absolute. A size that is not known counts as nothing here. */
static sinter_status place_tensor(struct reader *r, const struct gguf *g, struct gguf_tensor *t,
                                  uint64_t start)
{
    uint64_t room = g->data_offset < r->file_bytes ? r->file_bytes - g->data_offset : 0;
    if (t->offset % g->alignment)
        return BAD(r, start, DATA,
                   "tensor '%s': its offset %" PRIu64 " is no multiple of the alignment %" PRIu32,
                   r->name, t->offset, g->alignment);
    if (t->offset >= room || t->bytes > room - t->offset)
        return BAD(r, start, DATA,
                   "tensor '%s': %" PRIu64 " bytes at data offset %" PRIu64 " reach past the end "
                   "of the file, whose data part has %" PRIu64 " bytes: it is cut off or the "
                   "offset is wrong; fetch it again",
                   r->name, t->bytes, t->offset, room);
    t->offset += g->data_offset;
    return SINTER_OK;
}

static sinter_status walk_tensor(struct reader *r, const struct gguf *g, struct gguf_tensor *t)
{
    uint64_t start, dims;
    uint32_t n_dim;
    TRY(walk_name(r, &t->name, "a tensor's name"));
    start = r->pos;
    TRY(take_u32(r, &n_dim, "a tensor's number of dimensions"));
    if (n_dim < 1 || n_dim > 4)
        return BAD(r, start, DATA, "tensor '%s' has %" PRIu32 " dimensions, 1 to 4 are allowed",
                   r->name, n_dim);
    t->n_dim = (int)n_dim;
    dims = r->pos;
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t dim = 1;
        start = r->pos;
        if (i < n_dim)
            TRY(take_u64(r, &dim, "a tensor's dimension"));
        if (dim == 0 || dim > INT64_MAX)
            return BAD(r, start, DATA, "tensor '%s': dimension %" PRIu32 " is %" PRIu64, r->name, i,
                       dim);
        t->dim[i] = (int64_t)dim;
    }
    TRY(take_u32(r, &t->type_id, "a tensor's type"));
    t->type = quant_from_gguf(t->type_id);
    TRY(size_tensor(r, t, dims));
    start = r->pos;
    TRY(take_u64(r, &t->offset, "a tensor's offset"));
    return r->fill ? place_tensor(r, g, t, start) : SINTER_OK;
}

static sinter_status find_alignment(struct reader *r, struct gguf *g)
{
    g->alignment = GGUF_ALIGNMENT;
    for (size_t i = 0; i < g->n_kv; i++) {
        const struct gguf_kv *kv = &g->kv[i];
        if (strcmp(kv->key, "general.alignment") != 0)
            continue;
        if (kv->value.type != GGUF_U32)
            return BAD(r, kv->offset, DATA, "key 'general.alignment' is %s, not u32",
                       gguf_type_name(kv->value.type));
        g->alignment = *(const uint32_t *)kv->value.data;
        if (!gguf_is_pow2(g->alignment))
            return BAD(r, kv->offset, DATA,
                       "key 'general.alignment' is %" PRIu32 ", not a power of two", g->alignment);
    }
    g->data_offset = gguf_align(r->end, g->alignment);
    return SINTER_OK;
}

static sinter_status walk(struct reader *r, struct gguf *g)
{
    r->pos = GGUF_HEADER_BYTES;
    for (size_t i = 0; i < g->n_kv; i++) {
        struct gguf_kv counted = {0};
        TRY(walk_kv(r, r->fill ? &g->kv[i] : &counted));
    }
    if (r->fill)
        TRY(find_alignment(r, g));
    for (size_t i = 0; i < g->n_tensor; i++) {
        struct gguf_tensor counted = {0};
        TRY(walk_tensor(r, g, r->fill ? &g->tensor[i] : &counted));
    }
    if (r->fill && r->pos != r->end)
        return BAD(r, r->pos, DATA, "the file changed while it was read; try again");
    r->end = r->pos;
    return SINTER_OK;
}

static sinter_status read_count(struct reader *r, size_t *out, uint64_t each, const char *what)
{
    uint64_t start = r->pos, n;
    TRY(take_u64(r, &n, what));
    if (n > left(r) / each || n > INT32_MAX)
        return BAD(r, start, DATA,
                   "%s is %" PRIu64 ", more than the %" PRIu64 " bytes left can hold: the file is "
                   "cut off or damaged",
                   what, n, left(r));
    *out = (size_t)n;
    return SINTER_OK;
}

static sinter_status read_header(struct reader *r, struct gguf *g)
{
    uint8_t magic[4];
    if (r->file_bytes < sizeof magic)
        return BAD(r, 0, DATA, "the file has %" PRIu64 " bytes: it is no GGUF file", r->file_bytes);
    TRY(take(r, magic, sizeof magic, "the magic"));
    if (memcmp(magic, "GGUF", 4) != 0)
        return BAD(r, 0, DATA,
                   "it is no GGUF file: it begins with %02x %02x %02x %02x, not with 'GGUF'; "
                   "convert the model to GGUF",
                   magic[0], magic[1], magic[2], magic[3]);
    TRY(take_u32(r, &g->version, "the version"));
    if (g->version != 2 && g->version != 3) {
        bool swapped = g->version && (g->version & 0xffff) == 0;
        return BAD(r, 4, UNSUPPORTED, "GGUF version %" PRIu32 " is not supported (2 and 3 are)%s",
                   g->version, swapped ? ": the file is big endian; convert it again" : "");
    }
    TRY(read_count(r, &g->n_tensor, GGUF_MIN_TENSOR_BYTES, "the number of tensors"));
    return read_count(r, &g->n_kv, GGUF_MIN_KV_BYTES, "the number of keys");
}

/* One block: index heads, keys, tensors, string structs, scalars, indices, text. */
static sinter_status make_block(struct reader *r, struct gguf *g)
{
    uint64_t kv_bytes = g->n_kv * sizeof *g->kv, tensor_bytes = g->n_tensor * sizeof *g->tensor;
    uint64_t order_bytes = (g->n_kv + g->n_tensor) * sizeof(uint32_t);
    uint64_t scalar_bytes = gguf_align(r->scalars.used, sizeof(uint64_t));
    uint64_t bytes = sizeof(struct gguf_priv) + kv_bytes + tensor_bytes + r->strings.used +
                     scalar_bytes + order_bytes + r->text.used;
    uint64_t used = sizeof *g + GGUF_WINDOW_BYTES + strlen(r->path) + 1;
    uint64_t limit = 2 * r->file_bytes + GGUF_EXTRA_BYTES - 4096; /* the host's own heads */
    if (bytes > limit || used > limit - bytes)
        return BAD(r, GGUF_HEADER_BYTES, LIMIT,
                   "%zu keys and %zu tensors need %" PRIu64 " bytes of memory, more than twice the "
                   "file: they are too many and too small to be a model's",
                   g->n_kv, g->n_tensor, bytes);
    uint8_t *p = host_alloc(r->host, (size_t)bytes);
    if (!p)
        return at_byte(r, GGUF_HEADER_BYTES,
                       host_no_memory(r->err, (size_t)bytes, 1, "keys and tensor descriptions"));
    struct gguf_priv *priv = g->priv = p;
    p += sizeof *priv;
    g->kv = (void *)p;
    p += kv_bytes;
    g->tensor = (void *)p;
    p += tensor_bytes;
    r->strings = (struct region){p, 0, r->strings.used};
    p += r->strings.cap;
    r->scalars = (struct region){p, 0, r->scalars.used};
    p += scalar_bytes;
    priv->kv_order = (void *)p;
    priv->tensor_order = priv->kv_order + g->n_kv;
    p += order_bytes;
    r->text = (struct region){p, 0, r->text.used};
    r->fill = true;
    return SINTER_OK;
}

static bool kv_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct gguf *g = ctx;
    int c = strcmp(g->kv[a].key, g->kv[b].key);
    return c < 0 || (c == 0 && a < b);
}

static bool tensor_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct gguf *g = ctx;
    int c = strcmp(g->tensor[a].name, g->tensor[b].name);
    return c < 0 || (c == 0 && a < b);
}

static bool offset_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct gguf *g = ctx;
    uint64_t x = g->tensor[a].offset, y = g->tensor[b].offset;
    return x < y || (x == y && a < b);
}

static sinter_status index_keys(struct reader *r, struct gguf *g, const struct gguf_priv *priv)
{
    gguf_sort(priv->kv_order, g->n_kv, kv_before, g);
    for (size_t i = 1; i < g->n_kv; i++) {
        const struct gguf_kv *a = &g->kv[priv->kv_order[i - 1]], *b = &g->kv[priv->kv_order[i]];
        if (strcmp(a->key, b->key) == 0)
            return BAD(r, b->offset, DATA,
                       "key '%.64s' stands in the file twice, first at byte %" PRIu64, b->key,
                       a->offset);
    }
    return SINTER_OK;
}

static sinter_status index_tensors(struct reader *r, struct gguf *g, const struct gguf_priv *priv)
{
    uint32_t *order = priv->tensor_order;
    gguf_sort(order, g->n_tensor, offset_before, g);
    for (size_t i = 1; i < g->n_tensor; i++) {
        const struct gguf_tensor *a = &g->tensor[order[i - 1]], *b = &g->tensor[order[i]];
        if (b->offset - a->offset < (a->bytes ? a->bytes : 1))
            return BAD(r, b->offset, DATA, "the data of tensors '%.64s' and '%.64s' overlap",
                       a->name, b->name);
    }
    gguf_sort(order, g->n_tensor, tensor_before, g);
    for (size_t i = 1; i < g->n_tensor; i++) {
        const struct gguf_tensor *a = &g->tensor[order[i - 1]], *b = &g->tensor[order[i]];
        if (strcmp(a->name, b->name) == 0)
            return BAD(r, b->offset, DATA,
                       "two tensors are called '%.64s'; the other one's data is at byte %" PRIu64,
                       b->name, a->offset);
    }
    return SINTER_OK;
}

static sinter_status read_all(struct reader *r, struct gguf *g)
{
    TRY(read_header(r, g));
    TRY(walk(r, g));
    TRY(make_block(r, g));
    TRY(walk(r, g));
    TRY(index_keys(r, g, g->priv));
    return index_tensors(r, g, g->priv);
}

sinter_status gguf_open(sinter_host *host, const char *path, struct gguf **out, sinter_error *err)
{
    sinter_status status = SINTER_OK;
    struct reader r = {.host = host, .err = err, .handle = -1};
    struct gguf *g;
    int64_t file_bytes = 0;
    *out = NULL;
    NEW(host, g, 1, err);
    g->host = host;
    g->handle = -1;
    g->path = host_strndup(host, path, strlen(path));
    r.path = path;
    r.window = host_alloc_raw(host, GGUF_WINDOW_BYTES);
    if (!g->path || !r.window)
        TRY_OUT(host_no_memory(err, GGUF_WINDOW_BYTES, 1, "reading a GGUF header"));
    TRY_OUT(host_open(host, path, false, &g->handle, err));
    r.handle = g->handle;
    status = host_file_bytes(host, r.handle, &file_bytes, err);
    if (status != SINTER_OK) {
        status = status_prefix(err, status, "%s", path);
        goto out;
    }
    r.file_bytes = g->file_bytes = (uint64_t)file_bytes;
    TRY_OUT(read_all(&r, g));
    *out = g;
out:
    host_free(host, r.window);
    if (status != SINTER_OK)
        gguf_close(g);
    return status;
}

void gguf_close(struct gguf *g)
{
    if (!g)
        return;
    /* Nothing was written: a failing close loses nothing. */
    if (g->handle >= 0 && host_close(g->host, g->handle, NULL) != SINTER_OK)
        host_log(g->host, SINTER_LOG_WARN, "%s: closing it failed", g->path);
    host_free(g->host, g->priv);
    host_free(g->host, g->path);
    host_free(g->host, g);
}

const struct gguf_kv *gguf_find(const struct gguf *g, const char *key)
{
    const struct gguf_priv *priv = g->priv;
    for (size_t lo = 0, hi = g->n_kv; lo < hi;) {
        size_t mid = lo + (hi - lo) / 2;
        const struct gguf_kv *kv = &g->kv[priv->kv_order[mid]];
        int c = strcmp(key, kv->key);
        if (c == 0)
            return kv;
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

const struct gguf_tensor *gguf_find_tensor(const struct gguf *g, const char *name)
{
    const struct gguf_priv *priv = g->priv;
    for (size_t lo = 0, hi = g->n_tensor; lo < hi;) {
        size_t mid = lo + (hi - lo) / 2;
        const struct gguf_tensor *t = &g->tensor[priv->tensor_order[mid]];
        int c = strcmp(name, t->name);
        if (c == 0)
            return t;
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

sinter_status gguf_read(const struct gguf *g, const struct gguf_tensor *t, uint64_t offset,
                        void *buf, size_t bytes, sinter_error *err)
{
    if (t->bytes == 0)
        return FAIL(err, UNSUPPORTED,
                    "%s: tensor '%.64s' has type %" PRIu32 ", which sinter does not know", g->path,
                    t->name, t->type_id);
    if (offset > t->bytes || bytes > t->bytes - offset)
        return FAIL(err, USAGE,
                    "%s: bytes %" PRIu64 " to %" PRIu64 " of tensor '%.64s' were asked for, it has "
                    "%" PRIu64,
                    g->path, offset, offset + bytes, t->name, t->bytes);
    sinter_status s =
        host_pread(g->host, g->handle, buf, bytes, (int64_t)(t->offset + offset), err);
    return s == SINTER_OK ? s : status_prefix(err, s, "%s: tensor '%.64s'", g->path, t->name);
}
