/* Vectors of f32 as wide as the object's ISA: 16 (AVX-512), 8 (AVX2), 1 (plain C). Every operation
 * is exact or correctly rounded per lane, and v_max gives its second operand where one is NaN, so
 * code over these names gives the same bits at every width. vec_impl.h and attention_impl.h are
 * compiled once per level. The integer vectors (vi) are for unpack.h: plain C has none. */
#ifndef CPU_VEC_H
#define CPU_VEC_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

INLINE float bits_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
INLINE uint32_t f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

#if defined(__AVX512F__)

enum { VW = 16 };
typedef __m512 vf;
#define v_set(x)        _mm512_set1_ps(x)
#define v_load(p)       _mm512_loadu_ps(p)
#define v_store(p, x)   _mm512_storeu_ps(p, x)
#define v_add(a, b)     _mm512_add_ps(a, b)
#define v_sub(a, b)     _mm512_sub_ps(a, b)
#define v_mul(a, b)     _mm512_mul_ps(a, b)
#define v_div(a, b)     _mm512_div_ps(a, b)
#define v_fma(a, b, c)  _mm512_fmadd_ps(a, b, c)
#define v_fnma(a, b, c) _mm512_fnmadd_ps(a, b, c)
#define v_max(a, b)     _mm512_max_ps(a, b)
INLINE __mmask16 v_tail(int n)
{
    return (__mmask16)((1u << n) - 1);
}
INLINE vf v_loadn(const float *p, int n)
{
    return _mm512_maskz_loadu_ps(v_tail(n), p);
}
INLINE void v_storen(float *p, int n, vf x)
{
    _mm512_mask_storeu_ps(p, v_tail(n), x);
}
/* a < b ? x : y; y where one is NaN */
INLINE vf v_if_lt(vf a, vf b, vf x, vf y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}
INLINE vf v_abs(vf x)
{
    return _mm512_abs_ps(x);
}
INLINE vf v_sign_of(vf x, vf sign)
{
    const __m512i bit = _mm512_set1_epi32((int)0x80000000);
    return _mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(bit, _mm512_castps_si512(sign), _mm512_castps_si512(x), 0xca));
}
/* x * 2^n, n an integer in the low bits of t = n + 1.5 * 2^23 */
INLINE vf v_scale_exp(vf x, vf t)
{
    return _mm512_castsi512_ps(
        _mm512_add_epi32(_mm512_castps_si512(x), _mm512_slli_epi32(_mm512_castps_si512(t), 23)));
}
INLINE vf v_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
INLINE vf v_load_bf16(const uint16_t *p)
{
    const __m256i h = _mm256_loadu_si256((const __m256i *)p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
INLINE void v_store_f16(uint16_t *p, vf x)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

typedef __m512i vi;
#define i_load(p)     _mm512_loadu_si512(p)
#define i_store(p, x) _mm512_storeu_si512(p, x)
#define i_set8(x)     _mm512_set1_epi8((char)(x))
#define i_set32(x)    _mm512_set1_epi32(x)
#define i_and(a, b)   _mm512_and_si512(a, b)
#define i_srl16(a, n) _mm512_srli_epi16(a, n)
#define i_sll16(a, n) _mm512_slli_epi16(a, n)
INLINE vi i_or_and(vi a, vi b, vi mask) /* a | (b & mask) */
{
    return _mm512_ternarylogic_epi32(a, b, mask, 0xf8);
}

#elif defined(__AVX2__)

enum { VW = 8 };
typedef __m256 vf;
#define v_set(x)        _mm256_set1_ps(x)
#define v_load(p)       _mm256_loadu_ps(p)
#define v_store(p, x)   _mm256_storeu_ps(p, x)
#define v_add(a, b)     _mm256_add_ps(a, b)
#define v_sub(a, b)     _mm256_sub_ps(a, b)
#define v_mul(a, b)     _mm256_mul_ps(a, b)
#define v_div(a, b)     _mm256_div_ps(a, b)
#define v_fma(a, b, c)  _mm256_fmadd_ps(a, b, c)
#define v_fnma(a, b, c) _mm256_fnmadd_ps(a, b, c)
#define v_max(a, b)     _mm256_max_ps(a, b)
INLINE __m256i v_tail(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINE vf v_loadn(const float *p, int n)
{
    return _mm256_maskload_ps(p, v_tail(n));
}
INLINE void v_storen(float *p, int n, vf x)
{
    _mm256_maskstore_ps(p, v_tail(n), x);
}
INLINE vf v_if_lt(vf a, vf b, vf x, vf y)
{
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
INLINE vf v_abs(vf x)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}
INLINE vf v_sign_of(vf x, vf sign)
{
    const vf bit = _mm256_set1_ps(-0.0f);
    return _mm256_or_ps(_mm256_andnot_ps(bit, x), _mm256_and_ps(bit, sign));
}
INLINE vf v_scale_exp(vf x, vf t)
{
    return _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_castps_si256(x), _mm256_slli_epi32(_mm256_castps_si256(t), 23)));
}
INLINE vf v_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
INLINE vf v_load_bf16(const uint16_t *p)
{
    const __m128i h = _mm_loadu_si128((const __m128i *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
INLINE void v_store_f16(uint16_t *p, vf x)
{
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

typedef __m256i vi;
#define i_load(p)       _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define i_store(p, x)   _mm256_storeu_si256((__m256i *)(void *)(p), x)
#define i_set8(x)       _mm256_set1_epi8((char)(x))
#define i_set32(x)      _mm256_set1_epi32(x)
#define i_and(a, b)     _mm256_and_si256(a, b)
#define i_srl16(a, n)   _mm256_srli_epi16(a, n)
#define i_sll16(a, n)   _mm256_slli_epi16(a, n)
INLINE vi i_or_and(vi a, vi b, vi mask) /* a | (b & mask) */
{
    return _mm256_or_si256(a, _mm256_and_si256(b, mask));
}

#else

#include "quant/quant.h"

enum { VW = 1 };
typedef float vf;
#define v_set(x)        ((float)(x))
#define v_load(p)       (*(p))
#define v_store(p, x)   ((void)(*(p) = (x)))
#define v_add(a, b)     ((a) + (b))
#define v_sub(a, b)     ((a) - (b))
#define v_mul(a, b)     ((a) * (b))
#define v_div(a, b)     ((a) / (b))
#define v_fma(a, b, c)  fmaf(a, b, c)
#define v_fnma(a, b, c) fmaf(-(a), b, c)
INLINE vf v_max(vf a, vf b)
{
    return a > b ? a : b;
}
INLINE vf v_loadn(const float *p, int n)
{
    return n ? *p : 0;
} /* n < VW never loads */
INLINE void v_storen(float *p, int n, vf x)
{
    if (n)
        *p = x;
}
INLINE vf v_if_lt(vf a, vf b, vf x, vf y)
{
    return a < b ? x : y;
}
INLINE vf v_abs(vf x)
{
    return fabsf(x);
}
INLINE vf v_sign_of(vf x, vf sign)
{
    return copysignf(x, sign);
}
INLINE vf v_scale_exp(vf x, vf t)
{
    return bits_f32(f32_bits(x) + (f32_bits(t) << 23));
}
INLINE vf v_load_f16(const uint16_t *p)
{
    return quant_f16_to_f32(*p);
}
INLINE void v_store_f16(uint16_t *p, vf x)
{
    *p = quant_f32_to_f16(x);
}

#endif

/* m things in tiles of `most` (2..6): `call` with `at`, the first of the tile, and N, how many it
 * has, a constant, so that accumulators are registers where `call` is inlined. */
#define TILES(most, m, call)                                                                       \
    do {                                                                                           \
        int i_ = 0;                                                                                \
        for (; i_ + (most) <= (m); i_ += (most)) {                                                 \
            enum { N = (most) };                                                                   \
            const int at = i_;                                                                     \
            call;                                                                                  \
        }                                                                                          \
        TILE_REST(5, most, m, call)                                                                \
        TILE_REST(4, most, m, call)                                                                \
        TILE_REST(3, most, m, call)                                                                \
        TILE_REST(2, most, m, call)                                                                \
        TILE_REST(1, most, m, call)                                                                \
    } while (0)
#define TILE_REST(n, most, m, call)                                                                \
    if ((n) < (most) && (m)-i_ == (n)) {                                                           \
        enum { N = (n) < (most) ? (n) : 1 };                                                       \
        const int at = i_;                                                                         \
        call;                                                                                      \
    }

#endif
