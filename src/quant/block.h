/* What the format files share: unaligned little-endian access, the row loops, and conversions of
 * floats to codes. Every format file defines quant_decode_NAME and, if it can, quant_encode_NAME.
 *
 * Products and sums are written apart and compiled with -ffp-contract=off: an fma would give
 * other bits than the oracle. */
#ifndef QUANT_BLOCK_H
#define QUANT_BLOCK_H

#include <string.h>

#include "quant/quant.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "GGUF blocks are little endian; a big-endian target needs swaps in quant/block.h"
#endif

#define QUANT(name, id, elems, bytes, flags)                                                       \
    void quant_decode_##name(const void *src, float *dst, size_t n_elem);                          \
    void quant_encode_##name(const float *src, void *dst, size_t n_elem);
#include "quant/quants.def"
#undef QUANT

static inline float block_f16(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return quant_f16_to_f32(h);
}

static inline void block_put_f16(uint8_t *p, float x)
{
    uint16_t h = quant_f32_to_f16(x);
    memcpy(p, &h, sizeof h);
}

/* Truncates; what no int32 holds (infinities and NaN of a degenerate scale) is code 0, as the
 * oracle's x86 conversion leaves it. */
static inline int block_code(float x)
{
    return x > -2147483648.0f && x < 2147483648.0f ? (int)x : 0;
}

static inline uint8_t block_clip(float x, int hi)
{
    int code = block_code(x) & 0xff;
    return (uint8_t)(code < hi ? code : hi);
}

/* The inverse of a scale; a zero scale has the inverse zero. */
static inline float block_inverse(float d)
{
    return d == 0.0f ? 0.0f : 1.0f / d;
}

/* The element of the largest magnitude, the first of equals; a NaN wins at once. */
static inline float block_extreme(const float *x, int n)
{
    float max = x[0];
    for (int i = 0; i < n; i++) {
        if (x[i] != x[i])
            return x[i];
        if (__builtin_fabsf(x[i]) > __builtin_fabsf(max))
            max = x[i];
    }
    return max;
}

/* Smallest and largest element; both NaN if any element is. */
static inline void block_range(const float *x, int n, float *min, float *max)
{
    *min = *max = x[0];
    for (int i = 0; i < n; i++) {
        if (x[i] != x[i]) {
            *min = *max = x[i];
            return;
        }
        *min = x[i] < *min ? x[i] : *min;
        *max = x[i] > *max ? x[i] : *max;
    }
}

/* The loops over blocks; the copies make unaligned rows legal. */
#define BLOCK_DECODE(name, elems, bytes, decode_block)                                             \
    void quant_decode_##name(const void *src, float *dst, size_t n_elem)                           \
    {                                                                                              \
        const uint8_t *from = src;                                                                 \
        unsigned char *to = (unsigned char *)dst;                                                  \
        for (size_t i = 0; i < n_elem / (elems); i++) {                                            \
            float x[elems];                                                                        \
            decode_block(from + i * (bytes), x);                                                   \
            memcpy(to + i * sizeof x, x, sizeof x);                                                \
        }                                                                                          \
    }
#define BLOCK_ENCODE(name, elems, bytes, encode_block)                                             \
    void quant_encode_##name(const float *src, void *dst, size_t n_elem)                           \
    {                                                                                              \
        const unsigned char *from = (const unsigned char *)src;                                    \
        uint8_t *to = dst;                                                                         \
        for (size_t i = 0; i < n_elem / (elems); i++) {                                            \
            float x[elems];                                                                        \
            memcpy(x, from + i * sizeof x, sizeof x);                                              \
            encode_block(x, to + i * (bytes));                                                     \
        }                                                                                          \
    }

#endif
