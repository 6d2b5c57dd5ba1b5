/* EMBED, SELECT_ROWS, SELECT_TABLE: rows by number. */
#include "backend/cpu/cpu.h"

#include <string.h>

#include "fuse/names.h"

void cpu_embed(const struct call *c)
{
    const struct weight *w = arg_w(c, E, 0);
    const int32_t *ids = arg_ids(c, I, 0);
    const struct span row = call_rows(c, Y);
    float *y = out_f32(c, Y, 0);
    for (int r = row.lo; r < row.hi; r++)
        cpu_weight.row_f32(w, 0, ids[r], y + (size_t)r * (size_t)w->n_col);
}

static void select_rows(const struct call *c, const float *from, float *to, int len)
{
    const int32_t *ids = arg_ids(c, I, 0);
    const struct span row = call_rows(c, Y);
    for (int r = row.lo; r < row.hi; r++)
        memcpy(to + (size_t)r * (size_t)len, from + (size_t)ids[r] * (size_t)len,
               (size_t)len * sizeof *to);
}

void cpu_select_rows(const struct call *c)
{
    select_rows(c, arg_f32(c, X, 0), out_f32(c, Y, 0), row_len(val(c, Y, 0)));
}

void cpu_select_table(const struct call *c)
{
    select_rows(c, arg_table(c, T), out_table(c, Y), row_len(val(c, Y, 0)));
}
