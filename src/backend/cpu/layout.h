/* clang-format off */
/* The packed layout of matrices: groups of 32 rows, one forward stream per group.
 *
 * INT8 formats. A group is a run of superblocks (32 columns, of K formats 256), each a header of
 * scales and then its blocks of 32 columns; all bytes of the file and no more, every part a
 * multiple of 64 bytes. Arrays below are [32 rows]:
 *
 *   header, by scales
 *     D     d f16
 *     DM    d f16, m f16
 *     K     d f16, dmin f16, 12 planes of one byte: byte i of the file's packed scales
 *     K16   d f16
 *   block, in this order
 *     K16 only        int8 scale of columns 0..15, int8 scale of columns 16..31
 *     high bits of 5  [32 rows][4]: bit g of byte i is bit 4 of column 4 g + i
 *     high bits of 6  [2][32 rows][4]: bits 2 g, 2 g + 1 of byte i of half h are bits 4, 5 of
 *                     column 16 h + 4 g + i
 *     low bits        [4][32 rows][4]: byte i of part j is column 4 j + i (low nibble) and column
 *                     16 + 4 j + i (high nibble)
 *     8-bit codes     [8][32 rows][4]: byte i of part j is column 4 j + i
 *
 * So 64 bytes are four columns of 16 rows: what one integer product of AVX-512 takes.
 *
 * Float formats: [column][32 rows], as the file's type. Rows past the matrix are zero. */
/* clang-format on */
#ifndef CPU_LAYOUT_H
#define CPU_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

enum { GROUP = 32, BLOCK = 32 }; /* rows of a group, columns of a block */

enum cpu_scales { SCALES_D, SCALES_DM, SCALES_K, SCALES_K16 };

struct cpu_format {
    int bits, offset;
    enum cpu_scales scales;
};

static inline int format_super(struct cpu_format f) /* blocks of a superblock */
{
    return f.scales == SCALES_K || f.scales == SCALES_K16 ? 8 : 1;
}
static inline int format_header(struct cpu_format f)
{
    return f.scales == SCALES_DM ? 128 : f.scales == SCALES_K ? 128 + 12 * GROUP : 64;
}
static inline int format_high(struct cpu_format f) /* where the high bits stand in a block */
{
    return f.scales == SCALES_K16 ? 2 * GROUP : 0;
}
static inline int format_low(struct cpu_format f)
{
    return format_high(f) + (f.bits == 8 ? 0 : (f.bits - 4) * 128);
}
static inline int format_block(struct cpu_format f)
{
    return format_low(f) + (f.bits == 8 ? 1024 : 512);
}
static inline int format_super_bytes(struct cpu_format f)
{
    return format_header(f) + format_super(f) * format_block(f);
}
static inline int format_has_min(struct cpu_format f)
{
    return f.scales == SCALES_DM || f.scales == SCALES_K;
}
/* Start of block b's superblock and of the block itself in a group. */
static inline const uint8_t *format_header_at(struct cpu_format f, const uint8_t *group, int b)
{
    return group + (size_t)(b / format_super(f)) * (size_t)format_super_bytes(f);
}
static inline const uint8_t *format_block_at(struct cpu_format f, const uint8_t *group, int b)
{
    return format_header_at(f, group, b) + format_header(f) + b % format_super(f) * format_block(f);
}

#endif
