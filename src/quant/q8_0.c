/* Q8_0: f16 d, 32 signed codes. x = d * code; halves round away from zero. */
#include "quant/block.h"

static void decode(const uint8_t *b, float *x)
{
    float d = block_f16(b);
    for (int i = 0; i < 32; i++)
        x[i] = d * (float)(int8_t)b[2 + i];
}

static void encode(const float *x, uint8_t *b)
{
    float d = __builtin_fabsf(block_extreme(x, 32)) / 127, inverse = block_inverse(d);
    block_put_f16(b, d);
    for (int i = 0; i < 32; i++)
        b[2 + i] = (uint8_t)block_code(__builtin_roundf(x[i] * inverse));
}

BLOCK_DECODE(Q8_0, 32, 34, decode)
BLOCK_ENCODE(Q8_0, 32, 34, encode)
