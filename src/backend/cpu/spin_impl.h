/* Loops that do nothing but the level's products, to measure what its units can do: 12 independent
 * accumulators, operands in registers. Each gives the multiply-adds that it did. */
#include <stdint.h>

#include "backend/cpu/vec.h"

static float spin_sink(vf a)
{
    float p[VW];
    v_store(p, a);
    return p[0];
}

#define SPIN_12(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11)

static double spin_f32(int64_t n, float *sink)
{
    const vf w = v_set(1.0001f), x = v_set(0.9999f);
#define X(i) vf a##i = v_set(i);
    SPIN_12(X)
#undef X
    for (int64_t k = 0; k < n; k++) {
#define X(i) a##i = v_fma(w, x, a##i);
        SPIN_12(X)
#undef X
#if defined(__AVX2__)
        __asm__ volatile("" : "+v"(a0), "+v"(a1), "+v"(a2), "+v"(a3), "+v"(a4), "+v"(a5));
        __asm__ volatile("" : "+v"(a6), "+v"(a7), "+v"(a8), "+v"(a9), "+v"(a10), "+v"(a11));
#endif
    }
#define X(i) *sink += spin_sink(a##i);
    SPIN_12(X)
#undef X
    return (double)n * 12 * VW;
}

#if defined(__AVX512F__)
static double spin_int8(int64_t n, float *sink)
{
    const __m512i w = _mm512_set1_epi8(3), x = _mm512_set1_epi8(5);
#define X(i) __m512i a##i = _mm512_set1_epi32(i);
    SPIN_12(X)
#undef X
    for (int64_t k = 0; k < n; k++) {
#define X(i) a##i = _mm512_dpbusd_epi32(a##i, w, x);
        SPIN_12(X)
#undef X
        __asm__ volatile("" : "+v"(a0), "+v"(a1), "+v"(a2), "+v"(a3), "+v"(a4), "+v"(a5));
        __asm__ volatile("" : "+v"(a6), "+v"(a7), "+v"(a8), "+v"(a9), "+v"(a10), "+v"(a11));
    }
#define X(i) *sink += (float)_mm512_reduce_add_epi32(a##i);
    SPIN_12(X)
#undef X
    return (double)n * 12 * 64;
}
#elif defined(__AVX2__)
static double spin_int8(int64_t n, float *sink) /* products of pairs, added in int16 */
{
    const __m256i w = _mm256_set1_epi8(3), x = _mm256_set1_epi8(1);
#define X(i) __m256i a##i = _mm256_set1_epi16(i);
    SPIN_12(X)
#undef X
    for (int64_t k = 0; k < n; k++) {
        __m256i v = x;
#define X(i)                                                                                       \
    __asm__ volatile("" : "+v"(v));                                                                \
    a##i = _mm256_add_epi16(a##i, _mm256_maddubs_epi16(w, v));
        SPIN_12(X)
#undef X
    }
#define X(i) *sink += (float)_mm256_extract_epi16(a##i, 0);
    SPIN_12(X)
#undef X
    return (double)n * 12 * 32;
}
#else
static double spin_int8(int64_t n, float *sink)
{
    int32_t a = 0;
    for (int64_t k = 0; k < n; k++)
        a += (int32_t)(k & 127) * (int32_t)(k & 63);
    *sink += (float)a;
    return (double)n;
}
#endif
