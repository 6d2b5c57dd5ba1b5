/* BF16: the upper half of an f32, one value a block. */
#include "quant/block.h"

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
