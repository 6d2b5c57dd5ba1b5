/* Weights at home: each distinct slice is packed once, in the layout its strictest role asks for;
 * every layout can also give single rows as f32. */
#ifndef NATIVE_WEIGHT_H
#define NATIVE_WEIGHT_H

#include "graph/graph.h"

enum weight_role { ROLE_MATRIX = 1, ROLE_LOOKUP = 2, ROLE_VECTOR = 4, ROLE_CONSTANT = 8 };

struct weight {
    const struct graph_weight *info;
    unsigned roles; /* bits of enum weight_role over all graphs of the model */
    enum quant_type type;
    int n_mat;
    int64_t n_row, n_col;    /* of one matrix */
    int layout;              /* the backend's own tag, >= 0; -1: f32 rows (vectors, constants) */
    size_t mat_bytes, bytes; /* home of one matrix, of all */
    void *data;              /* 64-byte aligned */
};

/* What a native backend does with weights. Vectors and constants are always f32 [n_row][n_col]. */
struct weight_ops {
    /* Can kernels multiply by a matrix of this type? NULL: by any. */
    bool (*takes)(enum quant_type type);
    /* Chooses layout and mat_bytes for type, n_row, n_col and roles (all set). */
    void (*plan)(struct weight *w);
    /* Packs file rows [row, row + n) of matrix `mat`; row is a multiple of 16, n too except at the
     * end. Any thread; different rows may be packed at once. */
    void (*pack)(const struct weight *w, int mat, int64_t row, int64_t n, const void *src);
    void (*row_f32)(const struct weight *w, int mat, int64_t row, float *dst);
};

#endif
