/* State of sequences: pages of KV rows and recurrent slots, counted, never written while shared.
 *
 * KV: rows live in pages of page_rows; one page table per sequence and window class (layers of one
 * window size share it), one memory pool per slot (layer): page id p of slot s is at
 * base[s] + p * page_bytes[s]. Pages that fell out of a window go back. The last page is copied
 * when a sequence that shares it writes.
 * Layout of a page: K then V. For f32 and f16: K [n_head_kv][d_k][page_rows], V
 * [n_head_kv][page_rows][d_v]; for q8_0 (ref only) both [n_head_kv][page_rows][blocks].
 * REC: slots of floats; a step writes fresh ones, commit keeps the one of its last row.
 *
 * A step: reserve opens it for all its sequences or none, commit closes the oldest. */
#ifndef NATIVE_STATE_STATE_H
#define NATIVE_STATE_STATE_H

#include "native/batch.h"

struct state_pool;

struct state_options {
    int page_rows;                  /* 64, 16 in tests */
    enum quant_type type_k, type_v; /* F32, F16; Q8_0 on ref */
    int n_seq;                      /* most sequences alive */
    int64_t n_row;                  /* rows that all sequences together may hold */
    int n_ctx;                      /* rows that one may hold */
    int n_chunk;                    /* most rows of one step */
    uint64_t model_hash[2];
};

/* Memory of a device: ref --far maps pages that can be made unreadable; else the host's. */
struct device_mem {
    void *ctx;
    void *(*alloc)(void *ctx, size_t bytes); /* zeroed, 64-byte aligned; NULL: none */
    void (*free)(void *ctx, void *block);
    void (*access)(void *ctx, bool on);          /* readable between on and off; NULL: always */
    void *(*alloc_raw)(void *ctx, size_t bytes); /* not cleared; NULL: alloc */
};

CHECKED sinter_status state_pool_create(sinter_host *host, const struct device_mem *mem,
                                        const struct state_slot *slot, int n_slot,
                                        const struct state_options *o, struct state_pool **out,
                                        sinter_error *err);
void state_pool_free(struct state_pool *p);
size_t state_pool_bytes(const struct state_pool *p);
/* The same without making anything: for `plan` and admission. */
size_t state_bytes_for(const struct state_slot *slot, int n_slot, const struct state_options *o);

CHECKED sinter_status seq_fork(struct state_pool *p, struct seq *from, struct seq **out,
                               sinter_error *err); /* from NULL: empty */
void seq_drop(struct seq *s);                      /* open steps are dropped too */
int seq_rows(const struct seq *s);                 /* committed rows */
CHECKED sinter_status seq_trim(struct seq *s, int n_row, sinter_error *err);

/* Rows [row0, row1) in one canonical layout, independent of page size and of the device. */
CHECKED sinter_status seq_save(struct seq *s, int row0, int row1, struct text_buf *out,
                               sinter_error *err);
/* Refused unless the data holds n_row rows that start at the sequence's end. */
CHECKED sinter_status seq_restore(struct seq *s, int n_row, const void *data, size_t bytes,
                                  sinter_error *err);

CHECKED sinter_status state_reserve(struct state_pool *p, const struct batch *b, sinter_error *err);
/* Is this the youngest open step? */
bool seq_is_open(const struct seq *s, int n_past, int n_row);
CHECKED sinter_status seq_commit(struct seq *s, int n_row, sinter_error *err);

/* What kernels see of one sequence's slot. Absolute row r (>= first_row) is in page
 * page[(r - first_row) / page_rows - …]: use kv_page. */
struct kv_view {
    char *base;
    size_t page_bytes, v_offset; /* V starts at v_offset in a page */
    const int32_t *page;         /* page ids, page[0] holds row first_row */
    int first_row;               /* multiple of page_rows */
    int page_rows;
    int n_head_kv, d_k, d_v;
    enum quant_type type_k, type_v;
};
static inline char *kv_page(const struct kv_view *v, int row)
{
    return v->base + (size_t)v->page[(row - v->first_row) / v->page_rows] * v->page_bytes;
}
struct kv_view seq_kv(const struct seq *s, int slot);

/* One row of one KV head, in and out of a page in the pool's type (kv.c). K and V have n values. */
void kv_put_k(const struct kv_view *v, int row, int head, const float *k);
void kv_put_v(const struct kv_view *v, int row, int head, const float *k);
void kv_get_k(const struct kv_view *v, int row, int head, float *k);
void kv_get_v(const struct kv_view *v, int row, int head, float *k);
size_t kv_k_bytes(const struct state_slot *slot, enum quant_type type_k, int page_rows);
size_t kv_v_bytes(const struct state_slot *slot, enum quant_type type_v, int page_rows);

/* Recurrent slot: what to read (NULL: zeros), and where snapshot i (state after row n_row - n_snap
 * + i) goes. */
const float *seq_rec_read(const struct seq *s, int slot);
float *seq_rec_write(const struct seq *s, int slot, int snap);

#endif
