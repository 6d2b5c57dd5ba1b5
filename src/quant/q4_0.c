/* Q4_0: f16 d, 16 bytes of codes; byte i holds elements i (low) and i + 16 (high).
 * x = d * (code - 8). The element of largest magnitude becomes code 0 (x = -8 d). */
#include "quant/block.h"

static void decode(const uint8_t *b, float *x)
{
    float d = block_f16(b);
    for (int i = 0; i < 16; i++) {
        x[i] = d * (float)((b[2 + i] & 15) - 8);
        x[i + 16] = d * (float)((b[2 + i] >> 4) - 8);
    }
}

static void encode(const float *x, uint8_t *b)
{
    float d = block_extreme(x, 32) / -8, inverse = block_inverse(d);
    block_put_f16(b, d);
    for (int i = 0; i < 16; i++) {
        int lo = block_clip(x[i] * inverse + 8.5f, 15);
        int hi = block_clip(x[i + 16] * inverse + 8.5f, 15);
        b[2 + i] = (uint8_t)(lo | hi << 4);
    }
}

BLOCK_DECODE(Q4_0, 32, 18, decode)
BLOCK_ENCODE(Q4_0, 32, 18, encode)
