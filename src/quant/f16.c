/* F16: IEEE 754 half precision, one value a block. */
#include "quant/block.h"

static void decode(const uint8_t *b, float *x)
{
    x[0] = block_f16(b);
}

static void encode(const float *x, uint8_t *b)
{
    block_put_f16(b, x[0]);
}

BLOCK_DECODE(F16, 1, 2, decode)
BLOCK_ENCODE(F16, 1, 2, encode)
