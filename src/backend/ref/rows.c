/* Rows in and out: EMBED, SELECT_ROWS, SELECT_TABLE. */
#include "backend/ref/ref.h"

#include "fuse/names.h"

#include <string.h>

void ref_embed(const struct call *c)
{
    const struct weight *w = arg_w(c, E, 0);
    const int32_t *ids = arg_ids(c, I, 0);
    struct span r = call_rows(c, Y);
    float *y = out_f32(c, Y, 0);
    for (int i = r.lo; y && i < r.hi; i++)
        call_kind(c)->weight->row_f32(w, 0, ids[i], y + (size_t)i * (size_t)w->n_col);
}

static void select_rows(const struct call *c, const float *x, int len)
{
    const int32_t *ids = arg_ids(c, I, 0);
    struct span r = call_rows(c, Y);
    float *y = out_f32(c, Y, 0);
    for (int i = r.lo; y && i < r.hi; i++)
        memcpy(y + (size_t)i * (size_t)len, x + (size_t)ids[i] * (size_t)len,
               (size_t)len * sizeof *y);
}

void ref_select_rows(const struct call *c)
{
    select_rows(c, arg_f32(c, X, 0), row_len(val(c, Y, 0)));
}

void ref_select_table(const struct call *c)
{
    select_rows(c, arg_table(c, T), row_len(val(c, Y, 0)));
}
