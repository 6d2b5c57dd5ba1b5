/* Q5_0: f16 d, u32 of fifth bits (bit i: element i), 16 bytes of low codes as in Q4_0.
 * x = d * (code - 16). The element of largest magnitude becomes code 0 (x = -16 d). */
#include "quant/block.h"

static void decode(const uint8_t *b, float *x)
{
    float d = block_f16(b);
    uint32_t high;
    memcpy(&high, b + 2, sizeof high);
    for (int i = 0; i < 16; i++) {
        int lo = (b[6 + i] & 15) | (int)(high >> i & 1) << 4;
        int hi = b[6 + i] >> 4 | (int)(high >> (i + 16) & 1) << 4;
        x[i] = d * (float)(lo - 16);
        x[i + 16] = d * (float)(hi - 16);
    }
}

static void encode(const float *x, uint8_t *b)
{
    float d = block_extreme(x, 32) / -16, inverse = block_inverse(d);
    uint32_t high = 0;
    for (int i = 0; i < 16; i++) {
        int lo = block_clip(x[i] * inverse + 16.5f, 31);
        int hi = block_clip(x[i + 16] * inverse + 16.5f, 31);
        b[6 + i] = (uint8_t)((lo & 15) | (hi & 15) << 4);
        high |= (uint32_t)(lo >> 4) << i | (uint32_t)(hi >> 4) << (i + 16);
    }
    block_put_f16(b, d);
    memcpy(b + 2, &high, sizeof high);
}

BLOCK_DECODE(Q5_0, 32, 22, decode)
BLOCK_ENCODE(Q5_0, 32, 22, encode)
