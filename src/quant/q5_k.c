/* Q5_K: as Q4_K, with 32 bytes of fifth bits before the codes: bit s of byte i belongs to
 * element i of sub-block s. */
#include "quant/block.h"
#include "quant/k_scales.h"

static void decode(const uint8_t *b, float *x)
{
    float d = block_f16(b), dmin = block_f16(b + 2);
    const uint8_t *high = b + 16;
    for (int sub = 0; sub < 8; sub++) {
        const uint8_t *q = b + 48 + sub / 2 * 32;
        int scale, min, shift = sub % 2 * 4;
        k_scale_min(b + 4, sub, &scale, &min);
        float ds = d * (float)scale, dm = dmin * (float)min;
        for (int i = 0; i < 32; i++) {
            int code = (q[i] >> shift & 15) | (high[i] >> sub & 1) << 4;
            x[sub * 32 + i] = ds * (float)code - dm;
        }
    }
}

BLOCK_DECODE(Q5_K, 256, 176, decode)
