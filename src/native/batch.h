/* One step as the engine hands it to a backend. Arrays are the caller's until wait returns. */
#ifndef NATIVE_BATCH_H
#define NATIVE_BATCH_H

#include "graph/graph.h"

#include <stdatomic.h>

struct seq; /* a sequence's state in one pool; opaque above backend.h */

/* Rows [row0, row0 + n_row) of the step belong to one sequence; one segment per sequence, rows in
 * order without gaps. n_past is checked against the sequence's end. */
struct batch_seg {
    struct seq *seq;
    int row0, n_row, n_past;
};

/* A wanted row and what is wanted of it (PORT_LOGITS | PORT_ARGMAX | PORT_HIDDEN); ascending. */
struct batch_out {
    int32_t row;
    unsigned kinds;
};

struct batch {
    int n_seg, n_row, n_out;
    const struct batch_seg *seg;
    const int32_t *id;  /* [n_row] token ids, checked against the vocabulary */
    const int32_t *pos; /* [n_row] RoPE positions; NULL: n_past + index */
    const struct batch_out *out;
    const atomic_int *cancel; /* non-zero: stop between plan steps; NULL: never */
};

/* Borrowed until the next reserve. Row o belongs to batch->out[o]; a pointer is NULL if no row of
 * the batch asked for the kind. */
struct result {
    int n_out, n_vocab, d_model;
    const float *logits;   /* [n_out][n_vocab] */
    const int32_t *argmax; /* [n_out] */
    const float *hidden;   /* [n_out][d_model] */
    const bool *bad;       /* [n_out] NaN or infinity in the row: the request fails, not the step */
};

#endif
