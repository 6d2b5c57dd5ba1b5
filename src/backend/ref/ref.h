/* The ref backend: every op in plain C with sums in double, one rounding to f32 at the end; the
 * oracle of all kernels. Matrices keep the file's rows. Kernels are
 * named in their file and in list.c only. */
#ifndef BACKEND_REF_REF_H
#define BACKEND_REF_REF_H

#include "native/native.h"

extern const struct native_kind ref_kind;

#endif
