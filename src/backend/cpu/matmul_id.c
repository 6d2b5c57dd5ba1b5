/* MATMUL_ID: row r of the result is matrix ids[r] times the row of x that it serves. */
#include "backend/cpu/cpu.h"

#include <string.h>

#include "fuse/names.h"

void cpu_matmul_id(const struct call *c)
{
    const struct cpu_isa *isa = call_isa(c);
    const struct cpu_work work = cpu_work(c);
    const struct weight *w = arg_w(c, W, 0);
    const struct cpu_x x = cpu_x(c, X, w);
    const int32_t *ids = arg_ids(c, I, 0);
    const struct span cols = call_cols(c, Y, 0), row = call_rows(c, Y);
    const int n_row = row_len(val(c, Y, 0));
    const int per_x = val(c, I, 0)->shape.mult / val(c, X, 0)->shape.mult;
    float *out = out_f32(c, Y, 0);
    for (int r = row.lo; r < row.hi; r++)
        for (int g = cols.lo / GROUP; g * GROUP < cols.hi; g++) {
            const int lo = g * GROUP < cols.lo ? cols.lo : g * GROUP;
            const int hi = (g + 1) * GROUP < cols.hi ? (g + 1) * GROUP : cols.hi;
            cpu_product(isa, w, ids[r], g, &x, r / per_x, 1, work.panel, work.acc[0]);
            memcpy(out + (size_t)r * (size_t)n_row + lo, work.acc[0] + (lo - g * GROUP),
                   (size_t)(hi - lo) * sizeof *out);
        }
}
