/* CONV1D and STATE_WRITE: a causal depthwise convolution whose older rows are recurrent state. */
#include "backend/ref/ref.h"

#include "fuse/names.h"

#include <string.h>

/* Input row `row` of segment s; negative ones come from the state (zero if there is none). */
static float input(const float *x, const float *state, int row, int n_old, int col, int len)
{
    if (row >= 0)
        return x[(size_t)row * (size_t)len + (size_t)col];
    return state ? state[(size_t)(n_old + row) * (size_t)len + (size_t)col] : 0;
}

static void conv_seg(const struct call *c, int i, int n_kernel, int len)
{
    struct seg_view s = seg(c, i);
    const float *x = arg_f32(c, X, 0) + (size_t)s.row0 * (size_t)len;
    const float *state = arg_rec(c, S, i), *w = arg_f32(c, W, 0);
    float *y = out_f32(c, Y, 0);
    for (int r = 0; y && r < s.n_row; r++)
        for (int col = 0; col < len; col++) {
            double sum = 0;
            for (int j = 0; j < n_kernel; j++)
                sum += (double)w[(size_t)col * (size_t)n_kernel + (size_t)j] *
                       input(x, state, r - n_kernel + 1 + j, n_kernel - 1, col, len);
            y[(size_t)(s.row0 + r) * (size_t)len + (size_t)col] = (float)sum;
        }
}

/* The last n_kernel - 1 rows after row n_row - n_snap + 1 + snap of the segment. */
static void snapshot(const struct call *c, int i, int snap, int n_snap, int n_old, int len,
                     float *dst)
{
    struct seg_view s = seg(c, i);
    const float *x = arg_f32(c, X, 0) + (size_t)s.row0 * (size_t)len;
    const float *state = arg_rec(c, S, i);
    int end = s.n_row - n_snap + 1 + snap; /* rows of the segment that are in */
    for (int r = 0; r < n_old; r++)
        for (int col = 0; col < len; col++) {
            int at = (end < 0 ? 0 : end) - n_old + r;
            dst[(size_t)r * (size_t)len + (size_t)col] = input(x, state, at, n_old, col, len);
        }
}

static void conv1d(const struct call *c, bool in_slots)
{
    const struct node *n = group_node(c->graph, c->group, OP_CONV1D);
    int len = row_len(val(c, Y, 0)), n_snap = n->at.CONV1D.n_snap;
    int n_kernel = c->graph->value[group_value_first(c->group, W, 0)].shape.d;
    size_t each = (size_t)(n_kernel - 1) * (size_t)len;
    for (int i = 0; c->thread == 0 && i < n_seg(c); i++) {
        conv_seg(c, i, n_kernel, len);
        for (int k = 0; k < n_snap; k++) {
            float *dst = in_slots ? out_rec(c, S, i, k) : out_f32(c, Z, 0);
            if (!in_slots && dst)
                dst += ((size_t)i * (size_t)n_snap + (size_t)k) * each;
            if (dst)
                snapshot(c, i, k, n_snap, n_kernel - 1, len, dst);
        }
    }
}

void ref_conv1d(const struct call *c)
{
    conv1d(c, false);
}

void ref_conv_state(const struct call *c)
{
    conv1d(c, true);
}

void ref_state_write(const struct call *c)
{
    struct shape s = c->graph->value[group_value_first(c->group, X, 0)].shape;
    size_t each = (size_t)s.n_head * (size_t)s.d;
    const float *x = arg_f32(c, X, 0);
    for (int i = 0; c->thread == 0 && i < n_seg(c); i++)
        for (int k = 0; k < s.mult; k++)
            memcpy(out_rec(c, S, i, k), x + ((size_t)i * (size_t)s.mult + (size_t)k) * each,
                   each * sizeof *x);
}
