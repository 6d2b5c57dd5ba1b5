/* RMS_NORM, + MUL by its weight, + ROPE: over the whole row or over each head. */
#include "backend/cpu/norm.h"

#include <math.h>

#include "fuse/names.h"

float cpu_norm_inv(float sum_sq, int n, float eps)
{
    return 1.0f / sqrtf(sum_sq / (float)n + eps);
}

void cpu_norm_row(const struct cpu_isa *isa, const struct cpu_norm *s, float *y, const float *x,
                  const float *r, float *a)
{
    const int n_stat = s->whole ? s->n_head * s->d : s->d;
    float inv = 0;
    for (int h = 0; h < s->n_head; h++) {
        const int at = h * s->d;
        const float *w = s->len_w > 1 ? s->w + (s->len_w > s->d ? at : 0) : NULL;
        if (h == 0 || !s->whole)
            inv = cpu_norm_inv(isa->sum_sq(a ? a + at : NULL, x + at, r ? r + at : NULL, n_stat),
                               n_stat, s->eps);
        isa->norm(y + at, a ? a + at : x + at, a || !r ? NULL : r + at, inv, w, s->d);
        if (s->len_w == 1)
            isa->mul_one(y + at, y + at, *s->w, s->d);
    }
}

struct cpu_norm cpu_norm_of(const struct call *c, int name)
{
    const struct node *n = group_node(c->graph, c->group, OP_RMS_NORM);
    const struct value *v = val(c, name, 0);
    struct cpu_norm s = {.n_head = v->shape.n_head,
                         .d = v->shape.d,
                         .eps = n->at.RMS_NORM.eps,
                         .whole = n->at.RMS_NORM.whole};
    if (has(c, W)) {
        s.w = arg_f32(c, W, 0);
        s.len_w = row_len(val(c, W, 0));
    }
    if (s.whole && s.len_w != s.d && s.len_w != 1) { /* one head as long as the row */
        s.d *= s.n_head;
        s.n_head = 1;
    }
    return s;
}

size_t cpu_norm_bytes(const struct graph *graph, const struct group *g)
{
    return 2 * sizeof(float) * (size_t)row_len(&graph->value[group_value(g, Y, 0)]);
}

void cpu_norm_mul(const struct call *c)
{
    const struct cpu_isa *isa = call_isa(c);
    const struct cpu_norm s = cpu_norm_of(c, X);
    const struct span row = call_rows(c, Y);
    const struct shape shape = val(c, Y, 0)->shape;
    const int len = shape.n_head * shape.d;
    const float *x = arg_f32(c, X, 0), *table = has(c, T) ? arg_table(c, T) : NULL;
    const int n_rot = table ? val(c, T, 0)->shape.d : 0;
    const int neox = table ? group_node(c->graph, c->group, OP_ROPE)->at.ROPE.neox : 0;
    float *out = out_f32(c, Y, 0);
    for (int r = row.lo; r < row.hi; r++) {
        float *y = out ? out + (size_t)r * (size_t)len : c->scratch;
        cpu_norm_row(isa, &s, y, x + (size_t)r * (size_t)len, NULL, NULL);
        for (int h = 0; table && h < shape.n_head; h++)
            isa->rope(y + h * shape.d, y + h * shape.d, table + (size_t)r * (size_t)n_rot, n_rot,
                      shape.d, neox);
        put(c, Y, 0, r, 0, len, y);
    }
}
