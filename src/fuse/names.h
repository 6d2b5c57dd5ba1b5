/* Short names for the fusion table, the backends' lists and kernels only: ops without OP_, and the
 * operand names of rows. Not for headers (the names are short on purpose). */
#ifndef FUSE_NAMES_H
#define FUSE_NAMES_H

#include "fuse/fuse.h"

/* Rows and lines name the fields that they set; the rest is zero on purpose. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* clang-format off */
enum {
#define OP(name, class, in, out, shape, flags, attr) name = OP_##name,
#include "graph/ops.def"
#undef OP
};

/* Operand names; 0 ends a list. EACH(N) is one value per repetition. */
enum fuse_name {
    A = 1, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T, U, V, W, X, Y, Z, FUSE_N_NAME
};
/* clang-format on */
#define EACH(name) ((name) | FUSE_EACH)

#endif
