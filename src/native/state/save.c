/* Save and restore in one canonical layout, independent of page size, page tables and device.
 *
 *   "SNTS" | u32 version | u64 model_hash[2] | u32 type_k, type_v (GGUF ids) | u32 n_slot
 *   | i32 row0, row1 | per slot: KV: i32 first row, then rows [row][head] of K, then of V;
 *   REC: u32 present, floats | u64 FNV-1a of all before.
 * Little-endian; rows of K and V are encoded in the pool's types. A windowed slot holds the rows
 * that row1 can still see. */
#include "native/state/state_impl.h"

#include "base/hash.h"

#include <string.h>

enum { SAVE_VERSION = 1, SAVE_HEAD = 4 + 4 + 16 + 8 + 4 + 8 };

static void put_u32(struct text_buf *b, uint32_t v)
{
    text_buf_add(b, (const char *)&v, sizeof v);
}

static uint32_t get_u32(const unsigned char *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

/* First row of a slot that a sequence of n_row rows still needs, and not before row0. */
static int first_needed(const struct state_slot *slot, int row0, int n_row)
{
    int first = slot->window && n_row - slot->window + 1 > 0 ? n_row - slot->window + 1 : 0;
    return first > row0 ? first : row0;
}

static size_t head_bytes(enum quant_type type, int d)
{
    return quant_bytes(type, (size_t)d);
}

/* One row of K or V, all heads, through f32: exact, since encode inverts decode on its own values
 * for f32 and f16; q8_0 rows are copied as they lie. */
static void row_out(const struct kv_view *v, bool is_v, int row, unsigned char *dst, float *tmp)
{
    enum quant_type type = is_v ? v->type_v : v->type_k;
    int d = is_v ? v->d_v : v->d_k;
    size_t each = head_bytes(type, d);
    for (int h = 0; h < v->n_head_kv; h++, dst += each) {
        if (type == QUANT_Q8_0) {
            const char *part = kv_page(v, row) + (is_v ? v->v_offset : 0);
            size_t at = (size_t)h * (size_t)v->page_rows + (size_t)(row % v->page_rows);
            memcpy(dst, part + at * each, each);
            continue;
        }
        if (is_v)
            kv_get_v(v, row, h, tmp);
        else
            kv_get_k(v, row, h, tmp);
        quant_row(type)->encode(tmp, dst, (size_t)d);
    }
}

static void row_in(const struct kv_view *v, bool is_v, int row, const unsigned char *src,
                   float *tmp)
{
    enum quant_type type = is_v ? v->type_v : v->type_k;
    int d = is_v ? v->d_v : v->d_k;
    size_t each = head_bytes(type, d);
    for (int h = 0; h < v->n_head_kv; h++, src += each) {
        if (type == QUANT_Q8_0) {
            char *part = kv_page(v, row) + (is_v ? v->v_offset : 0);
            size_t at = (size_t)h * (size_t)v->page_rows + (size_t)(row % v->page_rows);
            memcpy(part + at * each, src, each);
            continue;
        }
        quant_row(type)->decode(src, tmp, (size_t)d);
        if (is_v)
            kv_put_v(v, row, h, tmp);
        else
            kv_put_k(v, row, h, tmp);
    }
}

static size_t kv_row_bytes(const struct state_pool *p, const struct state_slot *s)
{
    return (size_t)s->n_head_kv *
           (head_bytes(p->o.type_k, s->d_k) + head_bytes(p->o.type_v, s->d_v));
}

static int max_head(const struct state_pool *p)
{
    int most = 1;
    for (int i = 0; i < p->n_slot; i++) {
        const struct state_slot *s = &p->slot[i].slot;
        most = s->d_k > most ? s->d_k : most;
        most = s->d_v > most ? s->d_v : most;
    }
    return most;
}

static sinter_status save_kv(struct seq *s, int slot, int row0, int row1, struct text_buf *out,
                             float *tmp, sinter_error *err)
{
    const struct state_slot *desc = &s->pool->slot[slot].slot;
    struct kv_view v = seq_kv(s, slot);
    int first = first_needed(desc, row0, row1);
    int valid = s->class[s->pool->slot[slot].class].valid_row;
    if (first < valid)
        return FAIL(err, STATE,
                    "cannot save rows %d..%d: layer %d has a window of %d and has dropped the rows "
                    "before %d; save up to the end of the sequence",
                    row0, row1, desc->layer, desc->window, valid);
    unsigned char *row = host_alloc(s->pool->host, kv_row_bytes(s->pool, desc));
    if (!row)
        return host_no_memory(err, kv_row_bytes(s->pool, desc), 1, "a saved row");
    put_u32(out, (uint32_t)first);
    size_t k_bytes = (size_t)desc->n_head_kv * head_bytes(v.type_k, desc->d_k);
    for (int r = first; r < row1; r++) {
        row_out(&v, false, r, row, tmp);
        row_out(&v, true, r, row + k_bytes, tmp);
        text_buf_add(out, (const char *)row, kv_row_bytes(s->pool, desc));
    }
    host_free(s->pool->host, row);
    return SINTER_OK;
}

static void save_rec(struct seq *s, int slot, struct text_buf *out)
{
    const struct state_slot *desc = &s->pool->slot[slot].slot;
    const float *state = seq_rec_read(s, slot);
    put_u32(out, state != NULL);
    if (state)
        text_buf_add(out, (const char *)state,
                     (size_t)desc->n_row * (size_t)desc->d * sizeof(float));
}

sinter_status seq_save(struct seq *s, int row0, int row1, struct text_buf *out, sinter_error *err)
{
    struct state_pool *p = s->pool;
    sinter_status status = SINTER_OK;
    if (s->n_open)
        return FAIL(err, STATE, "cannot save a sequence while a step of it is open");
    if (row0 < 0 || row0 > row1 || row1 > s->n_row)
        return FAIL(err, STATE, "cannot save rows %d..%d of a sequence of %d", row0, row1,
                    s->n_row);
    if (p->n_rec && row1 != s->n_row)
        return FAIL(err, STATE,
                    "recurrent layers can be saved at their last row (%d) only, not at "
                    "%d",
                    s->n_row, row1);
    float *tmp;
    NEW(p->host, tmp, max_head(p), err);
    size_t start = out->bytes;
    text_buf_add(out, "SNTS", 4);
    put_u32(out, SAVE_VERSION);
    text_buf_add(out, (const char *)p->o.model_hash, sizeof p->o.model_hash);
    put_u32(out, quant_row(p->o.type_k)->gguf_id);
    put_u32(out, quant_row(p->o.type_v)->gguf_id);
    put_u32(out, (uint32_t)p->n_slot);
    put_u32(out, (uint32_t)row0);
    put_u32(out, (uint32_t)row1);
    for (int i = 0; i < p->n_slot; i++) {
        if (p->slot[i].slot.kind == SLOT_KV)
            TRY_OUT(save_kv(s, i, row0, row1, out, tmp, err));
        else
            save_rec(s, i, out);
    }
    if (!out->failed) {
        uint64_t sum = fnv1a(FNV1A_START, out->text + start, out->bytes - start);
        text_buf_add(out, (const char *)&sum, sizeof sum);
    }
    if (out->failed)
        FAIL_OUT(err, MEMORY, "no memory for a saved state of %d rows", row1 - row0);
out:
    host_free(p->host, tmp);
    return status;
}

struct saved {
    const unsigned char *at, *end;
    int row0, row1;
};

static sinter_status read_head(const struct seq *s, const void *data, size_t bytes,
                               struct saved *in, sinter_error *err)
{
    const struct state_pool *p = s->pool;
    const unsigned char *at = data;
    uint64_t sum;
    if (bytes < SAVE_HEAD + sizeof sum || memcmp(at, "SNTS", 4) != 0)
        return FAIL(err, DATA, "this is no saved state (%zu bytes)", bytes);
    memcpy(&sum, at + bytes - sizeof sum, sizeof sum);
    if (sum != fnv1a(FNV1A_START, at, bytes - sizeof sum))
        return FAIL(err, DATA, "the saved state is damaged: its checksum does not match");
    if (get_u32(at + 4) != SAVE_VERSION)
        return FAIL(err, UNSUPPORTED, "saved state of version %u, this sinter reads %d",
                    get_u32(at + 4), SAVE_VERSION);
    if (memcmp(at + 8, p->o.model_hash, sizeof p->o.model_hash) != 0)
        return FAIL(err, STATE, "the saved state belongs to another model");
    if (get_u32(at + 24) != quant_row(p->o.type_k)->gguf_id ||
        get_u32(at + 28) != quant_row(p->o.type_v)->gguf_id)
        return FAIL(err, STATE,
                    "the saved state has other cache types (ids %u, %u) than this "
                    "engine (%s, %s); set -ctk and -ctv",
                    get_u32(at + 24), get_u32(at + 28), quant_row(p->o.type_k)->name,
                    quant_row(p->o.type_v)->name);
    if (get_u32(at + 32) != (uint32_t)p->n_slot)
        return FAIL(err, STATE, "the saved state has %u slots, this model %d", get_u32(at + 32),
                    p->n_slot);
    in->row0 = (int)get_u32(at + 36);
    in->row1 = (int)get_u32(at + 40);
    in->at = at + SAVE_HEAD;
    in->end = at + bytes - sizeof sum;
    if (in->row0 < 0 || in->row1 < in->row0)
        return FAIL(err, DATA, "the saved state names rows %d..%d", in->row0, in->row1);
    if (in->row0 != s->n_row)
        return FAIL(err, STATE, "the saved rows start at %d, the sequence ends at %d", in->row0,
                    s->n_row);
    if (in->row1 > p->o.n_ctx)
        return FAIL(err, CONTEXT, "the saved state ends at row %d, the context holds %d", in->row1,
                    p->o.n_ctx);
    return SINTER_OK;
}

static size_t rec_bytes(const struct state_slot *d, const unsigned char *at)
{
    return 4 + (get_u32(at) ? (size_t)d->n_row * (size_t)d->d * sizeof(float) : 0);
}

/* Checks that the body is as long as its slots say, before anything is changed. */
static sinter_status check_body(const struct seq *s, const struct saved *in, sinter_error *err)
{
    const struct state_pool *p = s->pool;
    const unsigned char *at = in->at;
    for (int i = 0; i < p->n_slot; i++) {
        const struct state_slot *d = &p->slot[i].slot;
        size_t left = (size_t)(in->end - at), need;
        if (left < 4)
            return FAIL(err, DATA, "the saved state ends inside of slot %d", i);
        uint32_t word = get_u32(at);
        if (d->kind == SLOT_KV) {
            if ((int)word != first_needed(d, in->row0, in->row1))
                return FAIL(err, DATA, "slot %d starts at row %u", i, word);
            need = 4 + (size_t)(in->row1 - (int)word) * kv_row_bytes(p, d);
        } else {
            need = rec_bytes(d, at);
        }
        if (left < need)
            return FAIL(err, DATA, "the saved state ends inside of slot %d", i);
        at += need;
    }
    if (at != in->end)
        return FAIL(err, DATA, "the saved state has %zu bytes too many", (size_t)(in->end - at));
    return SINTER_OK;
}

static const unsigned char *restore_kv(struct seq *s, int slot, const struct saved *in,
                                       const unsigned char *at, float *tmp)
{
    const struct state_pool *p = s->pool;
    const struct state_slot *d = &p->slot[slot].slot;
    struct kv_view v = seq_kv(s, slot);
    int first = (int)get_u32(at);
    size_t k_bytes = (size_t)d->n_head_kv * head_bytes(v.type_k, d->d_k);
    at += 4;
    for (int r = first; r < in->row1; r++, at += kv_row_bytes(p, d)) {
        row_in(&v, false, r, at, tmp);
        row_in(&v, true, r, at + k_bytes, tmp);
    }
    return at;
}

/* Does the class need no row before the restored ones? Then its pages start at `first`. */
static bool starts_anew(const struct state_pool *p, int class, const struct saved *in, int *first)
{
    int window = p->class[class].window;
    *first = in->row1 - window + 1;
    return window && *first > in->row0;
}

static int unshared(const struct state_pool *p, const struct seq *s, int class)
{
    int n = 0;
    for (int i = 0; i < s->class[class].n_page; i++)
        n += p->class[class].page.count[s->class[class].page[i]] == 1;
    return n;
}

static sinter_status check_pages(const struct seq *s, const struct saved *in,
                                 const struct batch_seg *seg, sinter_error *err)
{
    const struct state_pool *p = s->pool;
    for (int i = 0; i < p->n_class; i++) {
        int first, want = state_pages_wanted(p, seg, i), have = p->class[i].page.n_free;
        if (starts_anew(p, i, in, &first)) {
            want = (in->row1 - 1) / p->o.page_rows - first / p->o.page_rows + 1;
            have += unshared(p, s, i);
        }
        if (want > have)
            return FAIL(err, MEMORY,
                        "the KV cache is full: the saved state needs %d pages of %d rows, %d are "
                        "free; close sequences",
                        want, p->o.page_rows, have);
    }
    for (int r = 0; r < p->n_rec; r++)
        if (rec_n_snap(p, r) > p->rec[r].n_free)
            return FAIL(err, MEMORY, "no recurrent slots left for a saved state; close sequences");
    return SINTER_OK;
}

/* Windowed classes whose old rows nobody can see any more start where the saved rows do. */
static void set_first_rows(struct seq *s, const struct saved *in)
{
    struct state_pool *p = s->pool;
    for (int i = 0; i < p->n_class; i++) {
        struct seq_class *c = &s->class[i];
        int first;
        if (!starts_anew(p, i, in, &first))
            continue;
        while (c->n_page)
            counted_drop(&p->class[i].page, c->page[--c->n_page]);
        c->first_row = first / p->o.page_rows * p->o.page_rows;
        c->valid_row = first;
    }
}

/* Opens a step of the saved rows, or changes nothing. */
static sinter_status open_step(struct seq *s, const struct saved *in, sinter_error *err)
{
    struct state_pool *p = s->pool;
    int n_row = in->row1 - in->row0, n_chunk = p->o.n_chunk;
    struct batch_seg seg = {.seq = s, .n_row = n_row, .n_past = s->n_row};
    struct batch b = {.n_seg = 1, .n_row = n_row, .seg = &seg};
    TRY(check_pages(s, in, &seg, err));
    set_first_rows(s, in);
    p->o.n_chunk = n_row > n_chunk ? n_row : n_chunk; /* a state may be longer than a step */
    sinter_status status = state_reserve(p, &b, err);
    p->o.n_chunk = n_chunk;
    return status;
}

static void restore_rec(struct seq *s, int slot, const unsigned char *at)
{
    const struct slot_home *h = &s->pool->slot[slot];
    size_t n = (size_t)h->slot.n_row * (size_t)h->slot.d * sizeof(float);
    float *dst = seq_rec_write(s, slot, rec_n_snap(s->pool, h->class) - 1);
    if (get_u32(at))
        memcpy(dst, at + 4, n);
    else
        memset(dst, 0, n);
}

sinter_status seq_restore(struct seq *s, int n_row, const void *data, size_t bytes,
                          sinter_error *err)
{
    struct state_pool *p = s->pool;
    struct saved in;
    if (s->n_open)
        return FAIL(err, STATE, "cannot restore into a sequence while a step of it is open");
    TRY(read_head(s, data, bytes, &in, err));
    if (in.row1 - in.row0 != n_row)
        return FAIL(err, DATA, "the saved state has %d rows where %d belong", in.row1 - in.row0,
                    n_row);
    TRY(check_body(s, &in, err));
    float *tmp;
    NEW(p->host, tmp, max_head(p), err);
    sinter_status status = open_step(s, &in, err);
    const unsigned char *at = in.at;
    for (int i = 0; status == SINTER_OK && i < p->n_slot; i++) {
        if (p->slot[i].slot.kind == SLOT_KV) {
            at = restore_kv(s, i, &in, at, tmp);
            continue;
        }
        restore_rec(s, i, at);
        at += rec_bytes(&p->slot[i].slot, at);
    }
    if (status == SINTER_OK)
        status = seq_commit(s, n_row, err);
    host_free(p->host, tmp);
    return status;
}
