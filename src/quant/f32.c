/* F32: plain little-endian floats. */
#include "quant/block.h"

void quant_decode_F32(const void *src, float *dst, size_t n_elem)
{
    memcpy(dst, src, n_elem * sizeof *dst);
}

void quant_encode_F32(const float *src, void *dst, size_t n_elem)
{
    memcpy(dst, src, n_elem * sizeof *src);
}
