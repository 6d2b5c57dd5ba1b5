/* ROPE_TABLE and ROPE. Angles in double; cos and sin are kept as f32 (NUMERICS.md). */
#include "backend/ref/ref.h"

#include "fuse/names.h"

#include <math.h>
#include <string.h>

void ref_rope_table(const struct call *c)
{
    const struct node *n = group_node(c->graph, c->group, OP_ROPE_TABLE);
    int n_rot = n->at.ROPE_TABLE.n_rot;
    const float *freq = has(c, K) ? arg_f32(c, K, 0) : NULL;
    const int32_t *pos = arg_ids(c, I, 0);
    float *t = out_table(c, Y);
    struct span r = call_rows(c, Y);
    for (int row = r.lo; t && row < r.hi; row++)
        for (int i = 0; i < n_rot / 2; i++) {
            double theta = pos[row] / (double)n->at.ROPE_TABLE.factor *
                           pow((double)n->at.ROPE_TABLE.base, -2.0 * i / n_rot);
            theta /= freq ? (double)freq[i] : 1;
            float *at = t + (size_t)row * (size_t)n_rot + 2 * i;
            at[0] = (float)cos(theta);
            at[1] = (float)sin(theta);
        }
}

static void rotate(const float *x, float *y, const float *t, int n_rot, int d, bool neox)
{
    for (int i = 0; i < n_rot / 2; i++) {
        int a = neox ? i : 2 * i, b = neox ? i + n_rot / 2 : 2 * i + 1;
        double x0 = x[a], x1 = x[b], cos_ = t[2 * i], sin_ = t[2 * i + 1];
        y[a] = (float)(x0 * cos_ - x1 * sin_);
        y[b] = (float)(x0 * sin_ + x1 * cos_);
    }
    memcpy(y + n_rot, x + n_rot, (size_t)(d - n_rot) * sizeof *y);
}

void ref_rope(const struct call *c)
{
    bool neox = group_node(c->graph, c->group, OP_ROPE)->at.ROPE.neox != 0;
    struct shape s = val(c, Y, 0)->shape;
    int n_rot = c->graph->value[group_value_first(c->group, T, 0)].shape.d;
    const float *x = arg_f32(c, X, 0), *t = arg_table(c, T);
    float *y = out_f32(c, Y, 0);
    struct span r = call_rows(c, Y);
    for (int row = r.lo; y && row < r.hi; row++)
        for (int h = 0; h < s.n_head; h++) {
            size_t at = ((size_t)row * (size_t)s.n_head + (size_t)h) * (size_t)s.d;
            rotate(x + at, y + at, t + (size_t)row * (size_t)n_rot, n_rot, s.d, neox);
        }
}
