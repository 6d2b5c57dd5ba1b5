/* One row of RMS_NORM [+ MUL], shared by the kernels of both rows (norm_mul.c). */
#ifndef CPU_NORM_H
#define CPU_NORM_H

#include "backend/cpu/cpu.h"

struct cpu_norm {
    int n_head, d; /* the row; one head where the statistic and the weight span it whole */
    int whole;
    float eps;
    const float *w; /* NULL: none */
    int len_w;      /* n_head * d, d, or 1; 0: none */
};

/* The norm of the group's RMS_NORM, for rows shaped as the value `name`; weight W. */
struct cpu_norm cpu_norm_of(const struct call *c, int name);
/* y = norm(x), or of x + r (which goes to a unless it is NULL). */
void cpu_norm_row(const struct cpu_isa *isa, const struct cpu_norm *s, float *y, const float *x,
                  const float *r, float *a);
float cpu_norm_inv(float sum_sq, int n, float eps);
/* Scratch: two rows, for outputs that are wanted as INT8 only. */
size_t cpu_norm_bytes(const struct graph *graph, const struct group *g);

#endif
