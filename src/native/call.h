/* What a kernel sees of a call: operands by the names of the fusion row, this thread's share, the
 * segments of the step. Kernels never see the graph's node numbers, buffers or the plan.
 *
 * A value lives in forms: F32 rows, INT8 rows (codes, one scale and sum per 32 columns). INT8 is a
 * fixed function of the F32 row (NUMERICS.md), so forms never change bits. A kernel reads the form
 * it needs and writes with put, which stores every form that somebody reads.
 *
 * Rows of a value are dense: row r starts at r * n_head * d. */
#ifndef NATIVE_CALL_H
#define NATIVE_CALL_H

#include "fuse/fuse.h"
#include "native/state/state.h"
#include "native/weight.h"

struct exec;
struct native_kind;
struct plan_step;

struct call {
    const struct exec *exec;
    const struct graph *graph; /* for attributes: group_node(c->graph, c->group, OP_…) */
    const struct group *group;
    const struct plan_step *step;
    void *scratch; /* the line's bytes per thread, 64-byte aligned */
    void *shared;  /* the line's bytes for all threads, 64-byte aligned: zero at start */
    int thread, n_thread;
    int tile0, tile1; /* rows of a score tile; outside score loops all rows */
};

struct int8_rows {
    int8_t *code;       /* row r: code + r * code_stride; n_block * 32 codes, tail zero */
    float *scale;       /* row r: scale + r * n_block */
    int32_t *sum;       /* sum of the block's codes; likewise */
    size_t code_stride; /* n_block * 32 */
    int n_block;
};

/* The backend that runs the call. */
const struct native_kind *call_kind(const struct call *c);

/* Is `name` bound (optional operands and nodes)? */
bool has(const struct call *c, int name);
const struct value *val(const struct call *c, int name, int rep);
int n_rep(const struct call *c, int name);
/* Rows of the value in this step. */
int rows(const struct call *c, int name);
static inline int row_len(const struct value *v)
{
    return v->shape.n_head * v->shape.d;
}

/* Inputs: the first value of the name, in the form asked for (planned, never NULL). For a weight
 * with role v or k: its f32 home. */
const float *arg_f32(const struct call *c, int name, int rep);
struct int8_rows arg_int8(const struct call *c, int name, int rep);
const int32_t *arg_ids(const struct call *c, int name, int rep);
const struct weight *arg_w(const struct call *c, int name, int rep);
/* [rows][n_rot / 2][2]: cos, sin */
const float *arg_table(const struct call *c, int name);

/* Outputs: the last value of the name. out_f32 is NULL if nobody reads the F32 form. */
float *out_f32(const struct call *c, int name, int rep);
int32_t *out_ids(const struct call *c, int name, int rep);
float *out_table(const struct call *c, int name);
/* Stores columns [col, col + n) of row r in every form that is wanted; col is a multiple of 32, n
 * too except at the row's end, where a writer of INT8 forms cuts its share (call_cols does). */
void put(const struct call *c, int name, int rep, int row, int col, int n, const float *src);
/* Is the output read at all? */
bool wanted(const struct call *c, int name, int rep);

/* Scores of this thread's tile: [tile1 - tile0][n_head][n_key], n_key = score_keys(c). */
float *score(const struct call *c, int name);
int score_keys(const struct call *c);

/* Shares: this thread's part of n items, cut at multiples of `unit`. */
struct span {
    int lo, hi;
};
struct span call_span(const struct call *c, int n, int unit);
/* By the step's share: EACH all rows, ROW its rows, ONE all on thread 0, COL/HEAD all rows; the
 * tile inside a score loop. */
struct span call_rows(const struct call *c, int name);
/* Columns of a row of the output `name`, by the step's share: COL cut at multiples of
 * COL_UNIT, HEAD the columns of call_heads, else all. An elementwise kernel that loops over
 * call_rows x call_cols fits every share (SHARE_ANY). */
struct span call_cols(const struct call *c, int name, int rep);
/* Heads of this thread, for a value with n_head heads: all but under HEAD. There heads are cut by
 * the KV heads of the slot that the step reads or writes: a thread has whole GQA groups, of q as of
 * K and V. */
struct span call_heads(const struct call *c, int n_head);

/* Segments, and where a row of a TOK or OUT value stands. */
int n_seg(const struct call *c);
struct seg_view {
    int row0, n_row, n_past;
};
struct seg_view seg(const struct call *c, int i);
struct place {
    int seg, row;
}; /* row: absolute index in its sequence, n_past + … */
struct place place(const struct call *c, int name, int row);
/* The cache of segment i, for the slot that `name` is a version of. */
struct kv_view arg_kv(const struct call *c, int name, int i);
const float *arg_rec(const struct call *c, int name, int i);
float *out_rec(const struct call *c, int name, int i, int snap);

#endif
