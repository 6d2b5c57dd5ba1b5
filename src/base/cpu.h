/* CPU features and topology, lowered by the option cpu-mask. */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include "base/status.h"

/* ISA levels in rising order; each includes those before it.
 *   C       plain C17
 *   AVX2    AVX2 + FMA + F16C
 *   AVX512  AVX-512 F/BW/DQ/VL + VNNI (Ice Lake server, Zen 4 and later) */
enum cpu_level { CPU_C, CPU_AVX2, CPU_AVX512, CPU_N_LEVEL };

enum cpu_level cpu_level_native(void); /* best level of this machine, also by what the OS saves */
const char *cpu_level_name(enum cpu_level level);    /* "c", "avx2", "avx512" */
const char *cpu_model_name(char *buf, size_t bytes); /* for reports */

/* Physical cores within the affinity mask and the cgroup's cpu.max (rounded up), >= 1. */
int cpu_threads_default(void);

/* Logical CPUs of the affinity mask, >= 1. */
int cpu_n_logical(void);

/* The level that the option cpu-mask allows here: "" = the native one. A level that this machine
 * lacks is refused (DEVICE), an unknown word is USAGE. */
CHECKED sinter_status cpu_level_masked(const char *mask, enum cpu_level *level, sinter_error *err);

#endif
