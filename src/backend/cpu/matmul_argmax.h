/* Sizes of the MATMUL + ARGMAX kernel that its line in list.c states. */
#ifndef CPU_MATMUL_ARGMAX_H
#define CPU_MATMUL_ARGMAX_H

#include "backend/cpu/cpu.h"

enum { CPU_ARGMAX_ROWS = 64, CPU_ARGMAX_SHARED = CPU_ARGMAX_ROWS * 8 + 64 };

#endif
