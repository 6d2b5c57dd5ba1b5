/* Q5_1: f16 d, f16 m, u32 of fifth bits (bit i: element i), 16 bytes of low codes as in Q4_0.
 * x = d * code + m, m the block's minimum. */
#include "quant/block.h"

static void decode(const uint8_t *b, float *x)
{
    float d = block_f16(b), m = block_f16(b + 2);
    uint32_t high;
    memcpy(&high, b + 4, sizeof high);
    for (int i = 0; i < 16; i++) {
        int lo = (b[8 + i] & 15) | (int)(high >> i & 1) << 4;
        int hi = b[8 + i] >> 4 | (int)(high >> (i + 16) & 1) << 4;
        x[i] = d * (float)lo + m;
        x[i + 16] = d * (float)hi + m;
    }
}

static void encode(const float *x, uint8_t *b)
{
    float min, max;
    block_range(x, 32, &min, &max);
    float d = (max - min) / 31, inverse = block_inverse(d);
    uint32_t high = 0;
    for (int i = 0; i < 16; i++) {
        int lo = block_clip((x[i] - min) * inverse + 0.5f, 31);
        int hi = block_clip((x[i + 16] - min) * inverse + 0.5f, 31);
        b[8 + i] = (uint8_t)((lo & 15) | (hi & 15) << 4);
        high |= (uint32_t)(lo >> 4) << i | (uint32_t)(hi >> 4) << (i + 16);
    }
    block_put_f16(b, d);
    block_put_f16(b + 2, min);
    memcpy(b + 4, &high, sizeof high);
}

BLOCK_DECODE(Q5_1, 32, 24, decode)
BLOCK_ENCODE(Q5_1, 32, 24, encode)
