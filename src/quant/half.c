/* F16 (IEEE 754 half precision) and BF16 (the upper half of an f32) from and to f32: nearest even,
 * a NaN becomes quiet. In integers, so that nothing depends on the compiler's half type or on the
 * CPU's flush-to-zero modes. */
#include "quant/quant.h"

#include <string.h>

float quant_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = (h >> 10) & 31, fraction = h & 0x3ff;
    uint32_t bits;
    float x;
    if (exponent == 31) {
        bits = 0x7f800000 | fraction << 13;
    } else if (exponent) {
        bits = (exponent + 112) << 23 | fraction << 13;
    } else {
        x = (float)fraction * 0x1p-24f;
        memcpy(&bits, &x, sizeof bits);
    }
    bits |= sign;
    memcpy(&x, &bits, sizeof x);
    return x;
}

uint16_t quant_f32_to_f16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, a = bits & 0x7fffffff, h;
    if (a > 0x7f800000) {
        h = 0x7e00 | (a >> 13 & 0x3ff);
    } else if (a >= 0x477ff000) { /* 65520: halfway from the largest to infinity */
        h = 0x7c00;
    } else if (a >= 0x38800000) { /* 2^-14: the smallest normal */
        h = ((a + 0xfff + (a >> 13 & 1)) >> 13) - (112 << 10);
    } else if (a > 0x33000000) { /* past 2^-25, the tie that goes to zero */
        uint32_t shift = 126 - (a >> 23), fraction = (a & 0x7fffff) | 0x800000;
        uint32_t rest = fraction & ((1u << shift) - 1), half = 1u << (shift - 1);
        h = fraction >> shift;
        h += rest > half || (rest == half && (h & 1));
    } else {
        h = 0;
    }
    return (uint16_t)(sign | h);
}

float quant_bf16_to_f32(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

uint16_t quant_f32_to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
