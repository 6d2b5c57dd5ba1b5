/* ROPE_TABLE and ROPE. Angles are double, from positions and frequencies in double. */
#include "backend/cpu/cpu.h"

#include <math.h>

#include "backend/cpu/functions.h"
#include "fuse/names.h"

void cpu_rope_table(const struct call *c)
{
    const struct node *n = group_node(c->graph, c->group, OP_ROPE_TABLE);
    const int half = n->at.ROPE_TABLE.n_rot / 2;
    const struct span row = call_rows(c, Y);
    const int32_t *pos = arg_ids(c, I, 0);
    const float *k = has(c, K) ? arg_f32(c, K, 0) : NULL;
    float *out = out_table(c, Y);
    for (int i = 0; i < half; i++) {
        double f = pow((double)n->at.ROPE_TABLE.base, -(double)i / half);
        f /= (double)n->at.ROPE_TABLE.factor;
        if (k)
            f /= (double)k[i];
        for (int r = row.lo; r < row.hi; r++) {
            float *cs = out + ((size_t)r * (size_t)half + (size_t)i) * 2;
            sincos_f64((double)pos[r] * f, cs + 1, cs);
        }
    }
}

void cpu_rope(const struct call *c)
{
    const struct cpu_isa *isa = call_isa(c);
    const struct shape shape = val(c, X, 0)->shape;
    const int n_rot = val(c, T, 0)->shape.d;
    const int neox = group_node(c->graph, c->group, OP_ROPE)->at.ROPE.neox;
    const struct span row = call_rows(c, Y), head = call_heads(c, shape.n_head);
    const float *x = arg_f32(c, X, 0), *table = arg_table(c, T);
    float *y = out_f32(c, Y, 0);
    for (int r = row.lo; r < row.hi; r++)
        for (int h = head.lo; h < head.hi; h++) {
            const size_t at = ((size_t)r * (size_t)shape.n_head + (size_t)h) * (size_t)shape.d;
            isa->rope(y + at, x + at, table + (size_t)r * (size_t)n_rot, n_rot, shape.d, neox);
        }
}
