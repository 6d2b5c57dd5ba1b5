/* Matrix products in plain C: what the vector levels compute, in the same order, written down.
 * Included by isa_c.c. */
#include "backend/cpu/cpu.h"

#include <math.h>
#include <string.h>

#include "quant/block.h"
#include "quant/k_scales.h"

/* Panel: per block codes [32 rows][32 columns] less the offset, scales of both halves, minima. */
struct block {
    int16_t code[GROUP][BLOCK];
    float scale[2][GROUP], min[GROUP];
};
_Static_assert(CPU_CHUNK / BLOCK * sizeof(struct block) <= CPU_PANEL, "the panel holds a chunk");

static void take_scales(struct cpu_format f, const uint8_t *header, const uint8_t *block, int b,
                        struct block *to)
{
    for (int r = 0; r < GROUP; r++) {
        const float d = block_f16(header + 2 * r);
        const float m = format_has_min(f) ? block_f16(header + 64 + 2 * r) : 0;
        to->scale[0][r] = to->scale[1][r] = d;
        to->min[r] = m;
        if (f.scales == SCALES_K) {
            uint8_t bytes[12];
            int s, k;
            for (int i = 0; i < 12; i++)
                bytes[i] = header[128 + i * GROUP + r];
            k_scale_min(bytes, b % 8, &s, &k);
            to->scale[0][r] = to->scale[1][r] = d * (float)s;
            to->min[r] = -(m * (float)k);
        } else if (f.scales == SCALES_K16) {
            to->scale[0][r] = d * (float)(int8_t)block[r];
            to->scale[1][r] = d * (float)(int8_t)block[GROUP + r];
        }
    }
}

static void take_codes(struct cpu_format f, const uint8_t *block, struct block *to)
{
    const uint8_t *low = block + format_low(f), *high = block + format_high(f);
    for (int r = 0; r < GROUP; r++)
        for (int i = 0; i < BLOCK; i++) {
            int code;
            if (f.bits == 8)
                code = low[i / 4 * 128 + r * 4 + i % 4];
            else
                code = low[i % 16 / 4 * 128 + r * 4 + i % 4] >> (i / 16 * 4) & 15;
            if (f.bits == 5)
                code |= (high[r * 4 + i % 4] >> (i / 4) & 1) << 4;
            if (f.bits == 6)
                code |= (high[i / 16 * 128 + r * 4 + i % 4] >> (i % 16 / 4 * 2) & 3) << 4;
            to->code[r][i] = (int16_t)(code - f.offset);
        }
}

static void expand_n(struct cpu_format f, const uint8_t *group, int col, int n, struct block *to)
{
    for (int b = col / BLOCK; b < (col + n) / BLOCK; b++, to++) {
        const uint8_t *block = format_block_at(f, group, b);
        take_scales(f, format_header_at(f, group, b), block, b, to);
        take_codes(f, block, to);
    }
}

static int dot(const int16_t *w, const int8_t *x, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += w[i] * x[i];
    return sum;
}

/* Per block: acc = fma(sum of codes, scale * x scale, acc), with 16-wide scales once for each half;
 * then acc = fma(min, x scale * sum of x codes, acc). */
static void gemm_n(struct cpu_format f, const struct block *panel, const struct cpu_x *x, int col,
                   int n, int n_tok, float *acc)
{
    const bool halves = f.scales == SCALES_K16;
    for (int t = 0; t < n_tok; t++, acc += GROUP) {
        const struct block *b = panel;
        for (int k = col / BLOCK; k < (col + n) / BLOCK; k++, b++) {
            const size_t at = (size_t)t * (size_t)x->n_block + (size_t)k;
            const int8_t *code = x->code + at * BLOCK;
            const float scale = x->scale[at], sum = scale * (float)x->sum[at];
            for (int r = 0; r < GROUP; r++) {
                const int16_t *w = b->code[r];
                float a =
                    fmaf((float)dot(w, code, halves ? 16 : 32), b->scale[0][r] * scale, acc[r]);
                if (halves)
                    a = fmaf((float)dot(w + 16, code + 16, 16), b->scale[1][r] * scale, a);
                acc[r] = format_has_min(f) ? fmaf(b->min[r], sum, a) : a;
            }
        }
    }
}

/* gemv is the same, chunk by chunk. */
static void gemv_n(struct cpu_format f, const uint8_t *group, const struct cpu_x *x, int n_tok,
                   float *out)
{
    struct block panel[CPU_CHUNK / BLOCK];
    memset(out, 0, (size_t)n_tok * GROUP * sizeof *out);
    for (int col = 0; col < x->n_col; col += CPU_CHUNK) {
        const int n = x->n_col - col < CPU_CHUNK ? x->n_col - col : CPU_CHUNK;
        expand_n(f, group, col, n, panel);
        gemm_n(f, panel, x, col, n, n_tok, out);
    }
}

/* ---- Float weights: one fma chain ascending over the columns ---- */
#define FLOATS(name, size)                                                                         \
    static void expand_##name(const uint8_t *group, int col, int n, uint8_t *panel)                \
    {                                                                                              \
        quant_decode_##name(group + (size_t)col * GROUP * (size), (float *)(void *)panel,          \
                            (size_t)n * GROUP);                                                    \
    }
FLOATS(F32, 4)
FLOATS(F16, 2)
FLOATS(BF16, 2)

static void gemm_float(const uint8_t *panel, const struct cpu_x *x, int col, int n, int n_tok,
                       float *acc)
{
    const float *w = (const float *)(const void *)panel;
    for (int t = 0; t < n_tok; t++)
        for (int k = 0; k < n; k++) {
            const float v = x->f32[(size_t)t * (size_t)x->n_col + (size_t)(col + k)];
            for (int r = 0; r < GROUP; r++)
                acc[t * GROUP + r] = fmaf(w[k * GROUP + r], v, acc[t * GROUP + r]);
        }
}

#define GEMV(name)                                                                                 \
    static void gemv_##name(const uint8_t *group, const struct cpu_x *x, int n_tok, float *out)    \
    {                                                                                              \
        float panel[CPU_CHUNK * GROUP];                                                            \
        memset(out, 0, (size_t)n_tok *GROUP * sizeof *out);                                        \
        for (int col = 0; col < x->n_col; col += CPU_CHUNK) {                                      \
            const int n = x->n_col - col < CPU_CHUNK ? x->n_col - col : CPU_CHUNK;                 \
            expand_##name(group, col, n, (uint8_t *)panel);                                        \
            gemm_float((const uint8_t *)panel, x, col, n, n_tok, out);                             \
        }                                                                                          \
    }
GEMV(F32)
GEMV(F16)
GEMV(BF16)
