/* The parts of a packed group (layout.h) as vectors of the level, and the panel that expand makes
 * of them. Included by gemm_avx2.h and gemm_avx512.h; the 32 rows of a part are N_VEC vectors. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/vec.h"

enum { N_VEC = GROUP / VW, VB = 4 * VW }; /* VB: bytes of a vector */

INLINE vf load_f16(const uint8_t *p)
{
    return v_load_f16((const uint16_t *)(const void *)p);
}
INLINE vi four(const int8_t *x) /* 4 codes of one token to all lanes */
{
    int32_t v;
    memcpy(&v, x, sizeof v);
    return i_set32(v);
}

/* 32 bytes: plane i of a K format's header. */
INLINE __m256i plane(const uint8_t *header, int i)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)(header + 128 + i * GROUP));
}

/* 6-bit scales and minima of block i of a superblock of a K format, a byte per row. */
INLINE void k_bytes(const uint8_t *header, int i, __m256i *scale, __m256i *min)
{
    const __m256i low = _mm256_set1_epi8(15), top = _mm256_set1_epi8(0x30);
    if (i < 4) {
        *scale = _mm256_and_si256(plane(header, i), _mm256_set1_epi8(63));
        *min = _mm256_and_si256(plane(header, 4 + i), _mm256_set1_epi8(63));
        return;
    }
    const __m256i both = plane(header, 4 + i);
    const __m256i s = _mm256_srli_epi16(plane(header, i - 4), 2);
    const __m256i m = _mm256_srli_epi16(plane(header, i), 2);
    *scale = _mm256_or_si256(_mm256_and_si256(both, low), _mm256_and_si256(s, top));
    *min = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(both, 4), low),
                           _mm256_and_si256(m, top));
}

/* Bit j (of columns below 16) or j + 4 of each byte to bit 4. */
INLINE vi fifth(vi h, int j, int high)
{
    if (high)
        return j == 0 ? h : j == 1 ? i_srl16(h, 1) : j == 2 ? i_srl16(h, 2) : i_srl16(h, 3);
    return j == 0 ? i_sll16(h, 4) : j == 1 ? i_sll16(h, 3) : j == 2 ? i_sll16(h, 2) : i_sll16(h, 1);
}

/* Bits 2 j, 2 j + 1 of each byte to bits 4, 5. */
INLINE vi sixth(vi h, int j)
{
    return j == 0 ? i_sll16(h, 4) : j == 1 ? i_sll16(h, 2) : j == 2 ? h : i_srl16(h, 2);
}

/* Columns 4 j .. and 16 + 4 j .. of vector v of the rows, as unsigned codes. */
INLINE void codes(const struct cpu_format f, const uint8_t *block, int j, int v, vi *lo, vi *hi)
{
    const uint8_t *low = block + format_low(f) + VB * v, *high = block + format_high(f) + VB * v;
    if (f.bits == 8) {
        *lo = i_load(low + j * 128);
        *hi = i_load(low + (j + 4) * 128);
        return;
    }
    const vi nibble = i_set8(15), w = i_load(low + j * 128);
    *lo = i_and(w, nibble);
    *hi = i_and(i_srl16(w, 4), nibble);
    if (f.bits == 5) {
        const vi bit = i_set8(0x10), h = i_load(high);
        *lo = i_or_and(*lo, fifth(h, j, 0), bit);
        *hi = i_or_and(*hi, fifth(h, j, 1), bit);
    } else if (f.bits == 6) {
        const vi bits = i_set8(0x30);
        *lo = i_or_and(*lo, sixth(i_load(high), j), bits);
        *hi = i_or_and(*hi, sixth(i_load(high + 128), j), bits);
    }
}

/* What expand makes of up to CPU_CHUNK columns; of minima and starts the format has one or none. */
struct panel {
    uint8_t code[CPU_CHUNK / BLOCK][GROUP * BLOCK]; /* [8][32 rows][4] */
    float scale[CPU_CHUNK / BLOCK][2 * GROUP];      /* [half of the columns][32]; one if not K16 */
    union {
        float min[CPU_CHUNK / BLOCK][GROUP];
        int32_t start[CPU_CHUNK / BLOCK][2 * GROUP]; /* AVX-512, K16: where the sums start */
    };
};
_Static_assert(sizeof(struct panel) <= CPU_PANEL, "the panel holds a chunk");
