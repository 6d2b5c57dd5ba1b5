/* Q6_K: 128 bytes of low nibbles, 64 bytes of upper bit pairs, 16 signed scales, f16 d. Half h of
 * the block is four runs of 32: run r takes nibble r / 2 of bytes 64 h + 32 (r % 2) + i and bit
 * pair r of byte 32 h + i. x = (d * scale) * (code - 32), one scale per 16 elements. */
#include "quant/block.h"

static void decode(const uint8_t *b, float *x)
{
    const uint8_t *scale = b + 192;
    float d = block_f16(b + 208);
    for (int run = 0; run < 8; run++) {
        int half = run / 4, r = run % 4;
        const uint8_t *low = b + half * 64 + r % 2 * 32, *high = b + 128 + half * 32;
        for (int i = 0; i < 32; i++) {
            float ds = d * (float)(int8_t)scale[run * 2 + i / 16];
            int code = (low[i] >> (r / 2 * 4) & 15) | (high[i] >> (r * 2) & 3) << 4;
            x[run * 32 + i] = ds * (float)(code - 32);
        }
    }
}

BLOCK_DECODE(Q6_K, 256, 210, decode)
