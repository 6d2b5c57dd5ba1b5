/* MATMUL*2 + SILU|GELU + MUL: 32 columns of gate and up at a time, activation and product on the
 * way out, in the forms that the next matrix reads. */
#include "backend/cpu/cpu.h"

#include "fuse/names.h"

void cpu_gate_up(const struct call *c)
{
    const struct cpu_isa *isa = call_isa(c);
    const struct cpu_work work = cpu_work(c);
    const struct weight *gate = arg_w(c, G, 0), *up = arg_w(c, U, 0);
    const struct cpu_x x_gate = cpu_x(c, X, gate), x_up = cpu_x(c, X, up);
    const struct span cols = call_cols(c, Y, 0), tok = call_rows(c, X);
    const bool silu = group_node(c->graph, c->group, OP_SILU) != NULL;
    for (int t0 = tok.lo; t0 < tok.hi; t0 += CPU_BAND) {
        const int n = tok.hi - t0 < CPU_BAND ? tok.hi - t0 : CPU_BAND;
        for (int g = cols.lo / GROUP; g * GROUP < cols.hi; g++) {
            const int lo = g * GROUP < cols.lo ? cols.lo : g * GROUP;
            const int hi = (g + 1) * GROUP < cols.hi ? (g + 1) * GROUP : cols.hi;
            float *a = work.acc[0] + (lo - g * GROUP), *b = work.acc[1] + (lo - g * GROUP);
            cpu_product(isa, gate, 0, g, &x_gate, t0, n, work.panel, work.acc[0]);
            cpu_product(isa, up, 0, g, &x_up, t0, n, work.panel, work.acc[1]);
            for (int t = 0; t < n; t++, a += GROUP, b += GROUP) {
                if (silu)
                    isa->silu_mul(a, a, b, hi - lo);
                else
                    isa->gelu_mul(a, a, b, hi - lo);
                put(c, Y, 0, t0 + t, lo, hi - lo, a);
            }
        }
    }
}
