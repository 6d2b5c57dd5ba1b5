/* Levels of the cpu backend: the micro-kernels and the native kind of each. */
#include "backend/cpu/cpu.h"

const struct cpu_isa *cpu_isa(enum cpu_level level)
{
#if defined(__x86_64__)
    static const struct cpu_isa *const isa[CPU_N_LEVEL] = {
        [CPU_C] = &cpu_isa_c, [CPU_AVX2] = &cpu_isa_avx2, [CPU_AVX512] = &cpu_isa_avx512};
    return isa[level];
#else
    (void)level;
    return &cpu_isa_c;
#endif
}

/* What native/plan and native/exec want to know; INT8 rows by the level's own converter. */
#define KIND(name_, table)                                                                         \
    static void to_int8_##table(const float *x, int n, int8_t *code, float *scale, int32_t *sum)   \
    {                                                                                              \
        cpu_isa_##table.to_int8(x, n, code, scale, sum);                                           \
    }                                                                                              \
    static const struct native_kind kind_##table = {.name = name_,                                 \
                                                    .list = &cpu_list,                             \
                                                    .weight = &cpu_weight,                         \
                                                    .int8 = true,                                  \
                                                    .to_int8 = to_int8_##table,                    \
                                                    .isa = &cpu_isa_##table,                       \
                                                    .rows_few = CPU_FEW};
KIND("cpu", c)
#if defined(__x86_64__)
KIND("cpu", avx2)
KIND("cpu", avx512)
#endif

const struct native_kind *cpu_kind(enum cpu_level level)
{
#if defined(__x86_64__)
    static const struct native_kind *const kind[CPU_N_LEVEL] = {
        [CPU_C] = &kind_c, [CPU_AVX2] = &kind_avx2, [CPU_AVX512] = &kind_avx512};
    return kind[level];
#else
    (void)level;
    return &kind_c;
#endif
}
