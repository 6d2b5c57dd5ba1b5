/* ADD + RMS_NORM + MUL: the residual sum, which goes on, and its norm with weight. */
#include "backend/cpu/norm.h"

#include "fuse/names.h"

void cpu_add_norm_mul(const struct call *c)
{
    const struct cpu_isa *isa = call_isa(c);
    const struct cpu_norm s = cpu_norm_of(c, A);
    const struct span row = call_rows(c, Y);
    const int len = row_len(val(c, Y, 0));
    const float *x = arg_f32(c, X, 0), *res = arg_f32(c, R, 0);
    float *out = out_f32(c, Y, 0), *out_a = out_f32(c, A, 0);
    float *spare = c->scratch;
    for (int r = row.lo; r < row.hi; r++) {
        const size_t at = (size_t)r * (size_t)len;
        float *y = out ? out + at : spare, *a = out_a ? out_a + at : spare + len;
        cpu_norm_row(isa, &s, y, x + at, res + at, a);
        if (wanted(c, A, 0))
            put(c, A, 0, r, 0, len, a);
        put(c, Y, 0, r, 0, len, y);
    }
}
