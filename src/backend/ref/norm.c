/* RMS_NORM over each head, or over the whole row. */
#include "backend/ref/ref.h"

#include "fuse/names.h"

#include <math.h>

void ref_rms_norm(const struct call *c)
{
    const struct node *n = group_node(c->graph, c->group, OP_RMS_NORM);
    struct shape s = val(c, Y, 0)->shape;
    int len = s.n_head * s.d, d = n->at.RMS_NORM.whole ? len : s.d;
    const float *x = arg_f32(c, X, 0);
    float *y = out_f32(c, Y, 0);
    struct span r = call_rows(c, Y);
    for (size_t at = (size_t)r.lo * (size_t)len; y && at < (size_t)r.hi * (size_t)len;
         at += (size_t)d) {
        double sum = 0;
        for (int i = 0; i < d; i++)
            sum += (double)x[at + (size_t)i] * x[at + (size_t)i];
        double scale = 1 / sqrt(sum / d + (double)n->at.RMS_NORM.eps);
        for (int i = 0; i < d; i++)
            y[at + (size_t)i] = (float)(x[at + (size_t)i] * scale);
    }
}
