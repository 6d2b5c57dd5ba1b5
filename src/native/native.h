/* The native executor: everything that ref, cpu (and device backends) share behind backend.h:
 * weights loading, plans, state, running plan steps on the pool. A backend is a struct native_kind:
 * its list of lines, its weight layouts, its INT8 converter. */
#ifndef NATIVE_NATIVE_H
#define NATIVE_NATIVE_H

#include "native/call.h"

struct native_kind {
    const char *name;
    const struct fuse_list *list;
    const struct weight_ops *weight;
    bool int8; /* MATMULs read x in INT8 where the weight's type says INT8_X */
    /* n F32 values (n a multiple of 32 or the row's end) to codes, scales, sums; NULL if !int8 */
    void (*to_int8)(const float *x, int n, int8_t *code, float *scale, int32_t *sum);
    const void *isa; /* cpu: its table of micro-kernels */
    int rows_few;    /* plan intervals: 1..rows_few and rows_few+1..chunk; 0: one interval */
};

#endif
