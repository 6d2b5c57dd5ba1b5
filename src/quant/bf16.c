/* BF16: the upper half of an f32, rounded to nearest even; a NaN becomes quiet. */
#include "quant/block.h"

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

static void decode(const uint8_t *b, float *x)
{
    uint16_t h;
    memcpy(&h, b, sizeof h);
    x[0] = quant_bf16_to_f32(h);
}

static void encode(const float *x, uint8_t *b)
{
    uint16_t h = quant_f32_to_bf16(x[0]);
    memcpy(b, &h, sizeof h);
}

BLOCK_DECODE(BF16, 1, 2, decode)
BLOCK_ENCODE(BF16, 1, 2, encode)
