/* Q4_K: f16 d, f16 dmin, 12 bytes of scales and minima, 128 bytes of codes. Eight sub-blocks of
 * 32; sub-blocks 2j (low) and 2j + 1 (high) share bytes 32 j .. 32 j + 31.
 * x = (d * scale) * code - (dmin * min). */
#include "quant/block.h"
#include "quant/k_scales.h"

static void decode(const uint8_t *b, float *x)
{
    float d = block_f16(b), dmin = block_f16(b + 2);
    for (int sub = 0; sub < 8; sub++) {
        const uint8_t *q = b + 16 + sub / 2 * 32;
        int scale, min, shift = sub % 2 * 4;
        k_scale_min(b + 4, sub, &scale, &min);
        float ds = d * (float)scale, dm = dmin * (float)min;
        for (int i = 0; i < 32; i++)
            x[sub * 32 + i] = ds * (float)(q[i] >> shift & 15) - dm;
    }
}

BLOCK_DECODE(Q4_K, 256, 144, decode)
