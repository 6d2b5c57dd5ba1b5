/* How near two ways of computing one model must be. */
#include "run/run.h"

double nmse(const float *a, const float *b, size_t n)
{
    double diff = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)a[i] - (double)b[i];
        diff += d * d;
        sum += (double)b[i] * (double)b[i];
    }
    return diff == 0 ? 0 : diff / sum;
}

double nmse_bound(const sinter_model *m)
{
    double bound = NMSE_F32;
    for (int i = 0; i < m->model->n_weight; i++) {
        enum quant_type type = m->model->weight[i].type;
        double own = quant_row(type)->flags & QUANT_INT8_X ? NMSE_INT8
                     : type == QUANT_F32                   ? NMSE_F32
                                                           : NMSE_F16;
        bound = own > bound ? own : bound;
    }
    return bound;
}
