/* MATMUL + ADD: the residual is added to the product's rows while they are in registers or cache.
 */
#include "backend/cpu/cpu.h"

#include "fuse/names.h"

void cpu_matmul_add(const struct call *c)
{
    const struct cpu_isa *isa = call_isa(c);
    const struct cpu_work work = cpu_work(c);
    const struct weight *w = arg_w(c, W, 0);
    const struct cpu_x x = cpu_x(c, X, w);
    const struct span cols = call_cols(c, Y, 0), tok = call_rows(c, X);
    const int n_row = row_len(val(c, Y, 0));
    const float *r = arg_f32(c, R, 0);
    float *out = out_f32(c, Y, 0);
    for (int t0 = tok.lo; t0 < tok.hi; t0 += CPU_BAND) {
        const int n = tok.hi - t0 < CPU_BAND ? tok.hi - t0 : CPU_BAND;
        for (int g = cols.lo / GROUP; g * GROUP < cols.hi; g++) {
            const int lo = g * GROUP < cols.lo ? cols.lo : g * GROUP;
            const int hi = (g + 1) * GROUP < cols.hi ? (g + 1) * GROUP : cols.hi;
            cpu_product(isa, w, 0, g, &x, t0, n, work.panel, work.acc[0]);
            for (int t = 0; t < n; t++) {
                const size_t at = (size_t)(t0 + t) * (size_t)n_row + (size_t)lo;
                isa->add(out + at, work.acc[0] + t * GROUP + (lo - g * GROUP), r + at, hi - lo);
            }
        }
    }
}
