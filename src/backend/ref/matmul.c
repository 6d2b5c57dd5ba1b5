/* MATMUL and MATMUL_ID: each output one sum in double, ascending over the columns. Eight rows of x
 * go together (their sums are apart), so that a decoded row of w is used more than once. */
#include "backend/ref/ref.h"

#include "fuse/names.h"

enum { TOGETHER = 8 };

size_t ref_matmul_scratch(const struct graph *graph, const struct group *g)
{
    size_t n_col = (size_t)graph->value[group_value_first(g, W, 0)].shape.d;
    return n_col * (sizeof(float) + TOGETHER * sizeof(double)) + 64;
}

/* x[TOGETHER rows][n_col] to xt[n_col][TOGETHER]; missing rows are zero. */
static void transpose(const float *x, int n, size_t n_col, double *xt)
{
    for (size_t k = 0; k < n_col; k++)
        for (int t = 0; t < TOGETHER; t++)
            xt[k * TOGETHER + (size_t)t] = t < n ? x[(size_t)t * n_col + k] : 0;
}

static void dots(const float *w, const double *xt, size_t n_col, double *sum)
{
    for (int t = 0; t < TOGETHER; t++)
        sum[t] = 0;
    for (size_t k = 0; k < n_col; k++)
        for (int t = 0; t < TOGETHER; t++)
            sum[t] += (double)w[k] * xt[k * TOGETHER + (size_t)t];
}

static void one_block(const struct call *c, const struct weight *w, int row0, int n,
                      struct span cols)
{
    size_t n_col = (size_t)w->n_col, n_out = (size_t)row_len(val(c, Y, 0));
    double *xt = c->scratch;
    float *wrow = (float *)(void *)(xt + n_col * TOGETHER);
    float *y = out_f32(c, Y, 0);
    transpose(arg_f32(c, X, 0) + (size_t)row0 * n_col, n, n_col, xt);
    for (int o = cols.lo; o < cols.hi; o++) {
        double sum[TOGETHER];
        call_kind(c)->weight->row_f32(w, 0, o, wrow);
        dots(wrow, xt, n_col, sum);
        for (int t = 0; t < n; t++)
            y[(size_t)(row0 + t) * n_out + (size_t)o] = (float)sum[t];
    }
}

void ref_matmul(const struct call *c)
{
    struct span cols = call_cols(c, Y, 0);
    int n = rows(c, Y);
    for (int r = 0; out_f32(c, Y, 0) && r < n; r += TOGETHER)
        one_block(c, arg_w(c, W, 0), r, n - r < TOGETHER ? n - r : TOGETHER, cols);
}

void ref_matmul_id(const struct call *c)
{
    const struct weight *w = arg_w(c, W, 0);
    const int32_t *ids = arg_ids(c, I, 0);
    const float *x = arg_f32(c, X, 0);
    float *y = out_f32(c, Y, 0), *wrow = c->scratch;
    struct span cols = call_cols(c, Y, 0);
    int n = rows(c, Y);
    int per = n / (rows(c, X) ? rows(c, X) : 1); /* rows of y that read one row of x */
    size_t n_col = (size_t)w->n_col, n_out = (size_t)row_len(val(c, Y, 0));
    for (int r = 0; y && r < n; r++) {
        const float *xr = x + (size_t)(r / per) * n_col;
        for (int o = cols.lo; o < cols.hi; o++) {
            double sum = 0;
            call_kind(c)->weight->row_f32(w, ids[r], o, wrow);
            for (size_t k = 0; k < n_col; k++)
                sum += (double)wrow[k] * xr[k];
            y[(size_t)r * n_out + (size_t)o] = (float)sum;
        }
    }
}
