/* The 12 bytes of 6-bit scales and minima that Q4_K and Q5_K share: scales 0..3 are the low bits
 * of bytes 0..3, minima 0..3 those of bytes 4..7; the rest has four bits in bytes 8..11 (scale
 * low, minimum high) and its top two in bytes 0..7. */
#ifndef QUANT_K_SCALES_H
#define QUANT_K_SCALES_H

#include <stdint.h>

static inline void k_scale_min(const uint8_t *b, int i, int *scale, int *min)
{
    if (i < 4) {
        *scale = b[i] & 63;
        *min = b[4 + i] & 63;
    } else {
        *scale = (b[4 + i] & 15) | (b[i - 4] >> 6) << 4;
        *min = b[4 + i] >> 4 | (b[i] >> 6) << 4;
    }
}

#endif
