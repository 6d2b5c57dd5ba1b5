/* Raw rows of a weight slice, read from the file. */
#include "model/internal.h"

#include <inttypes.h>

static const struct gguf_tensor *tensor_of(const struct model *m, const struct graph_weight *w)
{
    return &m->gguf->tensor[w->slice.tensor];
}

size_t model_row_bytes(const struct model *m, const struct graph_weight *w)
{
    int64_t cols = w->slice.n_col ? w->slice.n_col : tensor_of(m, w)->dim[0];
    return quant_bytes(w->type, (size_t)cols);
}

sinter_status model_read_rows(const struct model *m, const struct graph_weight *w, int mat,
                              int64_t row, int64_t n, void *buf, sinter_error *err)
{
    const struct gguf_tensor *t = tensor_of(m, w);
    const struct weight_slice *s = &w->slice;
    uint64_t pitch = quant_bytes(w->type, (size_t)t->dim[0]); /* bytes of a row of the tensor */
    uint64_t col0 = quant_bytes(w->type, (size_t)s->col0);
    size_t bytes = model_row_bytes(m, w);
    uint8_t *to = buf;
    if (mat < 0 || mat >= s->n_mat || row < 0 || n < 0 || row > (int64_t)s->n_row * s->n_block - n)
        return FAIL(err, INTERNAL,
                    "%s: rows %" PRId64 "..%" PRId64 " of matrix %d asked, it has %" PRId64
                    " rows in %d matrices",
                    w->name, row, row + n, mat, (int64_t)s->n_row * s->n_block, s->n_mat);
    while (n > 0) { /* rows of one block follow one another in the file */
        int64_t block = row / s->n_row, in_block = row % s->n_row;
        int64_t run = s->n_row - in_block < n ? s->n_row - in_block : n;
        int64_t at = (int64_t)mat * t->dim[1] + s->row0 + block * s->period + in_block;
        if (s->n_col)
            run = 1; /* only a part of each row */
        TRY(gguf_read(m->gguf, t, (uint64_t)at * pitch + col0, to, (size_t)run * bytes, err));
        to += (size_t)run * bytes;
        row += run;
        n -= run;
    }
    return SINTER_OK;
}
