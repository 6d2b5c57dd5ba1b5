/* Parts of cpu.c that its test feeds with made-up trees of /proc and /sys. */
#ifndef BASE_CPU_IMPL_H
#define BASE_CPU_IMPL_H

#include "base/cpu.h"

/* Physical cores among the CPUs for which allowed[cpu] holds, by root's sysfs; CPUs of which it
 * says nothing count as cores. */
int cpu_n_core(const char *root, const bool *allowed, int n_cpu);

/* CPUs that the cgroup's quota allows (rounded up), cgroup v2 or v1; 0 = no limit. */
int cpu_quota(const char *root);

#endif
