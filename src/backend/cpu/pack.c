/* Weights at home: which layout a tensor gets, packing of file rows, and single rows as f32 with
 * exactly the values that quant decodes. */
#include "backend/cpu/cpu.h"

#include <string.h>

#include "quant/block.h"
#include "quant/k_scales.h"

/* A file block taken apart: codes as the format numbers them, scale bytes as in the file. */
struct parts {
    uint16_t d, m;
    uint8_t scale[16];
    uint8_t code[256];
};

static uint16_t u16_at(const uint8_t *b)
{
    uint16_t h;
    memcpy(&h, b, sizeof h);
    return h;
}

static void nibbles(const uint8_t *b, uint8_t *code)
{
    for (int i = 0; i < 16; i++) {
        code[i] = b[i] & 15;
        code[i + 16] = b[i] >> 4;
    }
}

static void fifth_bits(const uint8_t *b, uint8_t *code)
{
    for (int i = 0; i < 32; i++)
        code[i] = (uint8_t)(code[i] | (b[i / 8] >> (i % 8) & 1) << 4);
}

static void take_q4_0(const uint8_t *b, struct parts *p)
{
    p->d = u16_at(b);
    nibbles(b + 2, p->code);
}

static void take_q4_1(const uint8_t *b, struct parts *p)
{
    p->d = u16_at(b);
    p->m = u16_at(b + 2);
    nibbles(b + 4, p->code);
}

static void take_q5_0(const uint8_t *b, struct parts *p)
{
    p->d = u16_at(b);
    nibbles(b + 6, p->code);
    fifth_bits(b + 2, p->code);
}

static void take_q5_1(const uint8_t *b, struct parts *p)
{
    p->d = u16_at(b);
    p->m = u16_at(b + 2);
    nibbles(b + 8, p->code);
    fifth_bits(b + 4, p->code);
}

static void take_q8_0(const uint8_t *b, struct parts *p)
{
    p->d = u16_at(b);
    for (int i = 0; i < 32; i++)
        p->code[i] = b[2 + i] ^ 0x80;
}

static void k_codes(const uint8_t *q, uint8_t *code)
{
    for (int i = 0; i < 256; i++)
        code[i] = q[i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15;
}

static void take_q4_k(const uint8_t *b, struct parts *p)
{
    p->d = u16_at(b);
    p->m = u16_at(b + 2);
    memcpy(p->scale, b + 4, 12);
    k_codes(b + 16, p->code);
}

static void take_q5_k(const uint8_t *b, struct parts *p)
{
    p->d = u16_at(b);
    p->m = u16_at(b + 2);
    memcpy(p->scale, b + 4, 12);
    k_codes(b + 48, p->code);
    for (int i = 0; i < 256; i++)
        p->code[i] = (uint8_t)(p->code[i] | (b[16 + i % 32] >> (i / 32) & 1) << 4);
}

static void take_q6_k(const uint8_t *b, struct parts *p)
{
    p->d = u16_at(b + 208);
    memcpy(p->scale, b + 192, 16);
    for (int i = 0; i < 256; i++) {
        int half = i / 128, run = i / 32 % 4, k = i % 32;
        int low = b[half * 64 + run % 2 * 32 + k] >> (run / 2 * 4) & 15;
        p->code[i] = (uint8_t)(low | (b[128 + half * 32 + k] >> (run * 2) & 3) << 4);
    }
}

struct format_row {
    struct cpu_format format;
    void (*take)(const uint8_t *block, struct parts *p);
};
static const struct format_row formats[QUANT_N] = {
#define FORMAT(name, bits, offset, scales, take)                                                   \
    [QUANT_##name] = {{bits, offset, SCALES_##scales}, take_##take},
#include "backend/cpu/formats.def"
#undef FORMAT
};

struct cpu_format cpu_format(enum quant_type type)
{
    return formats[type].format;
}

size_t cpu_group_bytes(enum quant_type type, int64_t n_col)
{
    const struct cpu_format f = formats[type].format;
    if (!f.bits)
        return (size_t)n_col * GROUP * (size_t)quant_row(type)->block_bytes;
    return (size_t)(n_col / BLOCK / format_super(f)) * (size_t)format_super_bytes(f);
}

/* Row r's part of a superblock's header and of its blocks. */
static void put_parts(struct cpu_format f, uint8_t *super, int r, const struct parts *p)
{
    memcpy(super + 2 * r, &p->d, 2);
    if (format_has_min(f))
        memcpy(super + 64 + 2 * r, &p->m, 2);
    if (f.scales == SCALES_K)
        for (int i = 0; i < 12; i++)
            super[128 + i * GROUP + r] = p->scale[i];
    for (int b = 0; b < format_super(f); b++) {
        uint8_t *block = super + format_header(f) + b * format_block(f);
        uint8_t *high = block + format_high(f) + 4 * r, *low = block + format_low(f) + 4 * r;
        const uint8_t *code = p->code + b * BLOCK;
        if (f.scales == SCALES_K16) {
            block[r] = p->scale[2 * b];
            block[GROUP + r] = p->scale[2 * b + 1];
        }
        if (f.bits == 8) {
            for (int i = 0; i < 32; i++)
                low[i / 4 * 128 + i % 4] = code[i];
            continue;
        }
        for (int i = 0; i < 16; i++)
            low[i / 4 * 128 + i % 4] = (uint8_t)((code[i] & 15) | (code[i + 16] & 15) << 4);
        for (int h = 0; h < f.bits - 4; h++)
            memset(high + h * 128, 0, 4);
        for (int i = 0; i < 32 && f.bits == 5; i++)
            high[i % 4] = (uint8_t)(high[i % 4] | code[i] >> 4 << (i / 4));
        for (int i = 0; i < 32 && f.bits == 6; i++) {
            uint8_t *to = high + i / 16 * 128 + i % 4;
            *to = (uint8_t)(*to | code[i] >> 4 << (i % 16 / 4 * 2));
        }
    }
}

static void pack_formats(const struct weight *w, uint8_t *mat, int64_t row, int64_t n,
                         const uint8_t *src)
{
    const struct format_row *f = &formats[w->type];
    const struct quant_row *q = quant_row(w->type);
    const size_t group = cpu_group_bytes(w->type, w->n_col),
                 row_bytes = quant_bytes(w->type, (size_t)w->n_col);
    const size_t n_super = row_bytes / (size_t)q->block_bytes;
    const size_t super_bytes = (size_t)format_super_bytes(f->format);
    for (int64_t r = row; r < row + n; r++, src += row_bytes)
        for (size_t s = 0; s < n_super; s++) {
            struct parts p;
            f->take(src + s * (size_t)q->block_bytes, &p);
            put_parts(f->format, mat + (size_t)(r / GROUP) * group + s * super_bytes,
                      (int)(r % GROUP), &p);
        }
}

static void pack_floats(const struct weight *w, uint8_t *mat, int64_t row, int64_t n,
                        const uint8_t *src)
{
    const size_t size = (size_t)quant_row(w->type)->block_bytes;
    const size_t group = cpu_group_bytes(w->type, w->n_col);
    for (int64_t r = row; r < row + n; r++) {
        uint8_t *to = mat + (size_t)(r / GROUP) * group + (size_t)(r % GROUP) * size;
        for (int64_t c = 0; c < w->n_col; c++, src += size)
            memcpy(to + (size_t)c * GROUP * size, src, size);
    }
}

/* Rows past the matrix: the same layout with zeros. */
static void pack_zeros(const struct weight *w, uint8_t *mat, int64_t row, int64_t end)
{
    static const uint8_t zero[4] = {0};
    const struct cpu_format f = formats[w->type].format;
    for (; row < end; row++) {
        uint8_t *group = mat + (size_t)(row / GROUP) * cpu_group_bytes(w->type, w->n_col);
        const int r = (int)(row % GROUP);
        const struct parts none = {0};
        if (f.bits) {
            for (int b = 0; b < w->n_col / BLOCK; b += format_super(f))
                put_parts(f, group + (size_t)(b / format_super(f)) * (size_t)format_super_bytes(f),
                          r, &none);
            continue;
        }
        const size_t size = (size_t)quant_row(w->type)->block_bytes;
        for (int64_t c = 0; c < w->n_col; c++)
            memcpy(group + ((size_t)c * GROUP + (size_t)r) * size, zero, size);
    }
}

static void plan(struct weight *w)
{
    if (w->roles & (ROLE_VECTOR | ROLE_CONSTANT)) {
        w->layout = CPU_ROWS_F32;
        w->mat_bytes = (size_t)w->n_row * (size_t)w->n_col * sizeof(float);
    } else if (!(w->roles & ROLE_MATRIX)) {
        w->layout = CPU_ROWS_FILE;
        w->mat_bytes = (size_t)w->n_row * quant_bytes(w->type, (size_t)w->n_col);
    } else {
        w->layout = CPU_GROUPS;
        w->mat_bytes =
            (size_t)((w->n_row + GROUP - 1) / GROUP) * cpu_group_bytes(w->type, w->n_col);
    }
}

static void pack(const struct weight *w, int mat, int64_t row, int64_t n, const void *src)
{
    uint8_t *home = (uint8_t *)w->data + (size_t)mat * w->mat_bytes;
    const size_t row_bytes = quant_bytes(w->type, (size_t)w->n_col);
    if (w->layout == CPU_ROWS_F32) {
        float *to = (float *)(void *)home + row * w->n_col;
        quant_row(w->type)->decode(src, to, (size_t)(n * w->n_col));
    } else if (w->layout == CPU_ROWS_FILE) {
        memcpy(home + (size_t)row * row_bytes, src, (size_t)n * row_bytes);
    } else {
        if (formats[w->type].format.bits)
            pack_formats(w, home, row, n, src);
        else
            pack_floats(w, home, row, n, src);
        if (row + n == w->n_row)
            pack_zeros(w, home, w->n_row, (w->n_row + GROUP - 1) / GROUP * GROUP);
    }
}

static int code_at(struct cpu_format f, const uint8_t *block, int r, int i)
{
    const uint8_t *low = block + format_low(f) + 4 * r, *high = block + format_high(f) + 4 * r;
    if (f.bits == 8)
        return low[i / 4 * 128 + i % 4];
    int code = low[i % 16 / 4 * 128 + i % 4] >> (i / 16 * 4) & 15;
    if (f.bits == 5)
        code |= (high[i % 4] >> (i / 4) & 1) << 4;
    if (f.bits == 6)
        code |= (high[i / 16 * 128 + i % 4] >> (i % 16 / 4 * 2) & 3) << 4;
    return code;
}

/* As quant's decoders write it: products and sums apart, no fma. */
static void block_f32(struct cpu_format f, const uint8_t *group, int b, int r, float *x)
{
    const uint8_t *header = format_header_at(f, group, b), *block = format_block_at(f, group, b);
    const float d = block_f16(header + 2 * r);
    const float m = format_has_min(f) ? block_f16(header + 64 + 2 * r) : 0;
    float scale[2] = {d, d}, min = m;
    if (f.scales == SCALES_K) {
        uint8_t bytes[12];
        int s, k;
        for (int i = 0; i < 12; i++)
            bytes[i] = header[128 + i * GROUP + r];
        k_scale_min(bytes, b % 8, &s, &k);
        scale[0] = scale[1] = d * (float)s;
        min = m * (float)k;
    } else if (f.scales == SCALES_K16) {
        scale[0] = d * (float)(int8_t)block[r];
        scale[1] = d * (float)(int8_t)block[GROUP + r];
    }
    for (int i = 0; i < BLOCK; i++) {
        float v = scale[i / 16] * (float)(code_at(f, block, r, i) - f.offset);
        x[i] = f.scales == SCALES_DM ? v + min : f.scales == SCALES_K ? v - min : v;
    }
}

static void row_f32(const struct weight *w, int mat, int64_t row, float *dst)
{
    const uint8_t *home = (const uint8_t *)w->data + (size_t)mat * w->mat_bytes;
    const struct quant_row *q = quant_row(w->type);
    if (w->layout == CPU_ROWS_F32) {
        memcpy(dst, home + (size_t)(row * w->n_col) * sizeof *dst, (size_t)w->n_col * sizeof *dst);
        return;
    }
    if (w->layout == CPU_ROWS_FILE) {
        q->decode(home + (size_t)row * quant_bytes(w->type, (size_t)w->n_col), dst,
                  (size_t)w->n_col);
        return;
    }
    const uint8_t *group = home + (size_t)(row / GROUP) * cpu_group_bytes(w->type, w->n_col);
    const int r = (int)(row % GROUP);
    const struct cpu_format f = formats[w->type].format;
    for (int b = 0; f.bits && b < w->n_col / BLOCK; b++)
        block_f32(f, group, b, r, dst + b * BLOCK);
    const size_t size = (size_t)q->block_bytes;
    for (int64_t c = 0; !f.bits && c < w->n_col; c++)
        q->decode(group + ((size_t)c * GROUP + (size_t)r) * size, dst + c, 1);
}

static bool takes(enum quant_type type)
{
    return formats[type].format.bits != 0 || (quant_row(type)->flags & QUANT_FLOAT) != 0;
}

const struct weight_ops cpu_weight = {takes, plan, pack, row_f32};
