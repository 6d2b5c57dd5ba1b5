/* Q4_1: f16 d, f16 m, 16 bytes of codes; byte i holds elements i (low) and i + 16 (high).
 * x = d * code + m, m the block's minimum. */
#include "quant/block.h"

static void decode(const uint8_t *b, float *x)
{
    float d = block_f16(b), m = block_f16(b + 2);
    for (int i = 0; i < 16; i++) {
        x[i] = d * (float)(b[4 + i] & 15) + m;
        x[i + 16] = d * (float)(b[4 + i] >> 4) + m;
    }
}

static void encode(const float *x, uint8_t *b)
{
    float min, max;
    block_range(x, 32, &min, &max);
    float d = (max - min) / 15, inverse = block_inverse(d);
    block_put_f16(b, d);
    block_put_f16(b + 2, min);
    for (int i = 0; i < 16; i++) {
        int lo = block_clip((x[i] - min) * inverse + 0.5f, 15);
        int hi = block_clip((x[i + 16] - min) * inverse + 0.5f, 15);
        b[4 + i] = (uint8_t)(lo | hi << 4);
    }
}

BLOCK_DECODE(Q4_1, 32, 20, decode)
BLOCK_ENCODE(Q4_1, 32, 20, encode)
