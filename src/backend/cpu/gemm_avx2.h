/* Matrix products for AVX2. Included by isa_avx2.c.
 *
 * A byte product adds two neighbours into int16 with saturation, so every sum is kept inside int16
 * until it is widened: 4-bit codes fit with all 8 products of a block (8 * 2 * 15 * 127 < 2^15),
 * 5-bit codes with 4; 6-bit codes start at -32 * x, whose sum with 4 products fits again (sums may
 * wrap on the way, single products do not saturate). 8-bit codes take the sign trick: |w| times x
 * with w's sign, widened at once.
 * The unit of work is 8 rows x up to 4 tokens. */
#include "backend/cpu/cpu.h"

#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { LANES = 8, N_VEC = GROUP / LANES };

INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
INLINE __m256 load_f16(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
INLINE __m256i four(const int8_t *x) /* 4 codes of one token to all lanes */
{
    int32_t v;
    memcpy(&v, x, sizeof v);
    return _mm256_set1_epi32(v);
}

/* ---- Scales of 8 rows ---- */
struct scales {
    __m256 s[2], m;
};

INLINE __m256 bytes_f32(const uint8_t *p, int is_signed)
{
    const __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return _mm256_cvtepi32_ps(is_signed ? _mm256_cvtepi8_epi32(b) : _mm256_cvtepu8_epi32(b));
}

/* 6-bit scales and minima of block i of a K format, as bytes of all 32 rows. */
INLINE void k_bytes(const uint8_t *header, int i, uint8_t *scale, uint8_t *min)
{
    const uint8_t *p = header + 128;
    const __m256i low = _mm256_set1_epi8(15), top = _mm256_set1_epi8(0x30);
    __m256i s, m;
    if (i < 4) {
        s = _mm256_and_si256(load(p + i * GROUP), _mm256_set1_epi8(63));
        m = _mm256_and_si256(load(p + (4 + i) * GROUP), _mm256_set1_epi8(63));
    } else {
        const __m256i both = load(p + (4 + i) * GROUP);
        s = _mm256_and_si256(_mm256_srli_epi16(load(p + (i - 4) * GROUP), 2), top);
        m = _mm256_and_si256(_mm256_srli_epi16(load(p + i * GROUP), 2), top);
        s = _mm256_or_si256(s, _mm256_and_si256(both, low));
        m = _mm256_or_si256(m, _mm256_and_si256(_mm256_srli_epi16(both, 4), low));
    }
    _mm256_storeu_si256((__m256i *)(void *)scale, s);
    _mm256_storeu_si256((__m256i *)(void *)min, m);
}

/* Block i of a superblock: f32 scales [2][32] (one unless 16-wide) and minima [32]. */
INLINE void block_scales(const struct cpu_format f, const uint8_t *header, const uint8_t *block,
                         int i, float *scale, float *min)
{
    uint8_t ks[GROUP], km[GROUP];
    if (f.scales == SCALES_K)
        k_bytes(header, i, ks, km);
    for (int v = 0; v < N_VEC; v++) {
        const __m256 d = load_f16(header + 16 * v);
        __m256 s = d;
        if (f.scales == SCALES_K)
            s = _mm256_mul_ps(d, bytes_f32(ks + 8 * v, 0));
        if (f.scales == SCALES_K16) {
            s = _mm256_mul_ps(d, bytes_f32(block + 8 * v, 1));
            _mm256_storeu_ps(scale + GROUP + 8 * v,
                             _mm256_mul_ps(d, bytes_f32(block + GROUP + 8 * v, 1)));
        }
        _mm256_storeu_ps(scale + 8 * v, s);
        if (!format_has_min(f))
            continue;
        __m256 m = load_f16(header + 64 + 16 * v);
        if (f.scales == SCALES_K)
            m = _mm256_mul_ps(_mm256_xor_ps(m, _mm256_set1_ps(-0.0f)), bytes_f32(km + 8 * v, 0));
        _mm256_storeu_ps(min + 8 * v, m);
    }
}

/* ---- Codes ---- */

INLINE __m256i fifth(__m256i h, int j, int high)
{
    if (high)
        return j == 0   ? h
               : j == 1 ? _mm256_srli_epi16(h, 1)
               : j == 2 ? _mm256_srli_epi16(h, 2)
                        : _mm256_srli_epi16(h, 3);
    return j == 0   ? _mm256_slli_epi16(h, 4)
           : j == 1 ? _mm256_slli_epi16(h, 3)
           : j == 2 ? _mm256_slli_epi16(h, 2)
                    : _mm256_slli_epi16(h, 1);
}

INLINE __m256i sixth(__m256i h, int j)
{
    return j == 0   ? _mm256_slli_epi16(h, 4)
           : j == 1 ? _mm256_slli_epi16(h, 2)
           : j == 2 ? h
                    : _mm256_srli_epi16(h, 2);
}

/* Columns 4 j .. and 16 + 4 j .. of rows 8 v ..; 8-bit codes come signed. */
INLINE void codes(const struct cpu_format f, const uint8_t *block, int j, int v, __m256i *lo,
                  __m256i *hi)
{
    const uint8_t *low = block + format_low(f) + 32 * v, *high = block + format_high(f) + 32 * v;
    if (f.bits == 8) {
        const __m256i sign = _mm256_set1_epi8((char)0x80);
        *lo = _mm256_xor_si256(load(low + j * 128), sign);
        *hi = _mm256_xor_si256(load(low + (j + 4) * 128), sign);
        return;
    }
    const __m256i nibble = _mm256_set1_epi8(15), w = load(low + j * 128);
    *lo = _mm256_and_si256(w, nibble);
    *hi = _mm256_and_si256(_mm256_srli_epi16(w, 4), nibble);
    if (f.bits == 5) {
        const __m256i bit = _mm256_set1_epi8(0x10), h = load(high);
        *lo = _mm256_or_si256(*lo, _mm256_and_si256(fifth(h, j, 0), bit));
        *hi = _mm256_or_si256(*hi, _mm256_and_si256(fifth(h, j, 1), bit));
    } else if (f.bits == 6) {
        const __m256i bits = _mm256_set1_epi8(0x30);
        *lo = _mm256_or_si256(*lo, _mm256_and_si256(sixth(load(high), j), bits));
        *hi = _mm256_or_si256(*hi, _mm256_and_si256(sixth(load(high + 128), j), bits));
    }
}

/* ---- Products of one block ---- */

/* Per token: what the sums of columns 0..15 and 16..31 start at. */
struct starts {
    __m256i s[2][CPU_FEW];
};

/* 6 bits: -32 * (x of both neighbours), summed over the 4 products of each half. */
INLINE void center(const int8_t *x, __m256i *lo, __m256i *hi)
{
    __m256i p = _mm256_maddubs_epi16(_mm256_set1_epi8(32), load(x));
    p = _mm256_add_epi16(p, _mm256_shuffle_epi32(p, 0x4e));
    p = _mm256_add_epi16(p, _mm256_shuffle_epi32(p, 0xb1));
    p = _mm256_sub_epi16(_mm256_setzero_si256(), p);
    *lo = _mm256_permute4x64_epi64(p, 0x00);
    *hi = _mm256_permute4x64_epi64(p, 0xaa);
}

INLINE __m256i add_product(const struct cpu_format f, __m256i sum, __m256i w, __m256i abs,
                           __m256i x)
{
    if (f.bits == 8) {
        const __m256i p = _mm256_maddubs_epi16(abs, _mm256_sign_epi8(x, w));
        return _mm256_add_epi32(sum, _mm256_madd_epi16(p, _mm256_set1_epi16(1)));
    }
    return _mm256_add_epi16(sum, _mm256_maddubs_epi16(w, x));
}

/* The sums of both halves as int32, then the float steps on acc[8 rows] of one token. */
INLINE void finish(const struct cpu_format f, __m256i lo, __m256i hi, const float *scale,
                   const float *min, float xs, int32_t xsum, float *acc)
{
    const __m256i one = _mm256_set1_epi16(1);
    const __m256 x = _mm256_set1_ps(xs);
    __m256 a = _mm256_loadu_ps(acc);
    if (f.scales == SCALES_K16) {
        lo = _mm256_madd_epi16(lo, one);
        hi = _mm256_madd_epi16(hi, one);
        a = _mm256_fmadd_ps(_mm256_cvtepi32_ps(lo), _mm256_mul_ps(_mm256_loadu_ps(scale), x), a);
        a = _mm256_fmadd_ps(_mm256_cvtepi32_ps(hi),
                            _mm256_mul_ps(_mm256_loadu_ps(scale + GROUP), x), a);
        _mm256_storeu_ps(acc, a);
        return;
    }
    __m256i sum;
    if (f.bits == 4)
        sum = _mm256_madd_epi16(_mm256_add_epi16(lo, hi), one);
    else if (f.bits == 5)
        sum = _mm256_add_epi32(_mm256_madd_epi16(lo, one), _mm256_madd_epi16(hi, one));
    else
        sum = _mm256_add_epi32(lo, hi);
    if (f.offset && f.bits < 8)
        sum = _mm256_sub_epi32(sum, _mm256_set1_epi32(f.offset * xsum));
    a = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_mul_ps(_mm256_loadu_ps(scale), x), a);
    if (format_has_min(f))
        a = _mm256_fmadd_ps(_mm256_loadu_ps(min), _mm256_set1_ps(xs * (float)xsum), a);
    _mm256_storeu_ps(acc, a);
}

/* One block x 8 rows x n_tok tokens; codes come packed (block) or as a panel (code). */
INLINE void block_rows(const struct cpu_format f, const uint8_t *block, const uint8_t *code, int v,
                       const float *scale, const float *min, const struct starts *st,
                       const struct cpu_x *x, int tok, int b, const int n_tok, float *out)
{
    __m256i sum[2][CPU_FEW];
    const size_t at0 = (size_t)tok * (size_t)x->n_block + (size_t)b;
    for (int t = 0; t < n_tok; t++)
        for (int k = 0; k < 2; k++)
            sum[k][t] = f.bits == 6 ? st->s[k][t] : _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        __m256i w[2], abs[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
        if (block) {
            codes(f, block, j, v, &w[0], &w[1]);
        } else {
            w[0] = load(code + j * 128 + 32 * v);
            w[1] = load(code + (j + 4) * 128 + 32 * v);
        }
        for (int k = 0; f.bits == 8 && k < 2; k++)
            abs[k] = _mm256_abs_epi8(w[k]);
#pragma GCC unroll 4
        for (int t = 0; t < n_tok; t++) {
            const int8_t *at = x->code + (at0 + (size_t)t * (size_t)x->n_block) * BLOCK + 4 * j;
            sum[0][t] = add_product(f, sum[0][t], w[0], abs[0], four(at));
            sum[1][t] = add_product(f, sum[1][t], w[1], abs[1], four(at + 16));
        }
    }
    for (int t = 0; t < n_tok; t++) {
        const size_t at = at0 + (size_t)t * (size_t)x->n_block;
        finish(f, sum[0][t], sum[1][t], scale + 8 * v, min + 8 * v, x->scale[at], x->sum[at],
               out + t * GROUP + 8 * v);
    }
}

INLINE void block_starts(const struct cpu_format f, const struct cpu_x *x, int tok, int b,
                         const int n_tok, struct starts *st)
{
    for (int t = 0; f.bits == 6 && t < n_tok; t++) {
        const size_t at = (size_t)(tok + t) * (size_t)x->n_block + (size_t)b;
        center(x->code + at * BLOCK, &st->s[0][t], &st->s[1][t]);
    }
}

INLINE void gemv_n(const struct cpu_format f, const uint8_t *group, const struct cpu_x *x,
                   const int n_tok, float *out)
{
    _Alignas(32) float scale[2 * GROUP], min[GROUP];
    struct starts st;
    memset(out, 0, (size_t)n_tok * GROUP * sizeof *out);
    for (int b = 0; b < x->n_block; b += format_super(f), group += format_super_bytes(f)) {
        const uint8_t *block = group + format_header(f);
        cpu_ahead(group, format_header(f));
        for (int i = 0; i < format_super(f); i++, block += format_block(f)) {
            cpu_ahead(block, format_block(f));
            block_scales(f, group, block, i, scale, min);
            block_starts(f, x, 0, b + i, n_tok, &st);
            for (int v = 0; v < N_VEC; v++)
                block_rows(f, block, NULL, v, scale, min, &st, x, 0, b + i, n_tok, out);
        }
    }
}

/* ---- Panels: codes [block][8][32 rows][4], scales [block][2][32], minima [block][32] ---- */
enum { PANEL_SCALE = CPU_CHUNK * GROUP, PANEL_MIN = PANEL_SCALE + CPU_CHUNK / BLOCK * 256 };
_Static_assert(PANEL_MIN + CPU_CHUNK / BLOCK * 128 <= CPU_PANEL, "the panel holds a chunk");

INLINE void expand_n(const struct cpu_format f, const uint8_t *group, int col, int n,
                     uint8_t *panel)
{
    for (int b = 0; b < n / BLOCK; b++) {
        const int at = col / BLOCK + b;
        const uint8_t *block = format_block_at(f, group, at);
        block_scales(f, format_header_at(f, group, at), block, at % format_super(f),
                     (float *)(void *)(panel + PANEL_SCALE + b * 256),
                     (float *)(void *)(panel + PANEL_MIN + b * 128));
        for (int v = 0; v < N_VEC; v++)
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) {
                uint8_t *to = panel + b * 1024 + j * 128 + 32 * v;
                __m256i lo, hi;
                codes(f, block, j, v, &lo, &hi);
                _mm256_storeu_si256((__m256i *)(void *)to, lo);
                _mm256_storeu_si256((__m256i *)(void *)(to + 512), hi);
            }
    }
}

INLINE void tile(const struct cpu_format f, const uint8_t *panel, const struct cpu_x *x, int tok,
                 int block, int n, const int n_tok, float *out)
{
    struct starts st;
    for (int b = 0; b < n; b++) {
        block_starts(f, x, tok, block + b, n_tok, &st);
        for (int v = 0; v < N_VEC; v++)
            block_rows(f, NULL, panel + b * 1024, v,
                       (const float *)(const void *)(panel + PANEL_SCALE + b * 256),
                       (const float *)(const void *)(panel + PANEL_MIN + b * 128), &st, x, tok,
                       block + b, n_tok, out);
    }
}

#define TILE(f, n_tok) tile(f, panel, x, t, col / BLOCK, n / BLOCK, n_tok, acc + t * GROUP)

INLINE void gemm_n(const struct cpu_format f, const uint8_t *panel, const struct cpu_x *x, int col,
                   int n, int n_tok, float *acc)
{
    int t = 0;
    for (; t + 4 <= n_tok; t += 4)
        TILE(f, 4);
    if (n_tok - t == 3)
        TILE(f, 3);
    if (n_tok - t == 2)
        TILE(f, 2);
    if (n_tok - t == 1)
        TILE(f, 1);
}

#define FORMAT(name, bits, offset, scales, take)                                                   \
    static void gemv_##name(const uint8_t *group, const struct cpu_x *x, int n_tok, float *out)    \
    {                                                                                              \
        const struct cpu_format f = {bits, offset, SCALES_##scales};                               \
        if (n_tok == 1)                                                                            \
            gemv_n(f, group, x, 1, out);                                                           \
        else if (n_tok == 2)                                                                       \
            gemv_n(f, group, x, 2, out);                                                           \
        else if (n_tok == 3)                                                                       \
            gemv_n(f, group, x, 3, out);                                                           \
        else                                                                                       \
            gemv_n(f, group, x, 4, out);                                                           \
    }                                                                                              \
    static void expand_##name(const uint8_t *group, int col, int n, uint8_t *panel)                \
    {                                                                                              \
        const struct cpu_format f = {bits, offset, SCALES_##scales};                               \
        expand_n(f, group, col, n, panel);                                                         \
    }                                                                                              \
    static void gemm_##name(const uint8_t *panel, const struct cpu_x *x, int col, int n,           \
                            int n_tok, float *acc)                                                 \
    {                                                                                              \
        const struct cpu_format f = {bits, offset, SCALES_##scales};                               \
        gemm_n(f, panel, x, col, n, n_tok, acc);                                                   \
    }
#include "backend/cpu/formats.def"
#undef FORMAT

/* ---- Float weights: 16 rows x up to 4 tokens ---- */
INLINE __m256 float_F32(const uint8_t *p)
{
    return _mm256_loadu_ps((const float *)(const void *)p);
}
INLINE __m256 float_F16(const uint8_t *p)
{
    return load_f16(p);
}
INLINE __m256 float_BF16(const uint8_t *p)
{
    const __m128i h = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

/* n_vec x 8 rows from row 8 v on. */
#define FLOAT_TILE(name, size)                                                                     \
    INLINE void tile_##name(const uint8_t *w, const struct cpu_x *x, int tok, int col, int n,      \
                            int v, const int n_vec, const int stream, const int n_tok, float *out) \
    {                                                                                              \
        const float *xp[CPU_FEW];                                                                  \
        __m256 acc[4][CPU_FEW];                                                                    \
        for (int t = 0; t < n_tok; t++) {                                                          \
            xp[t] = x->f32 + (size_t)(tok + t) * (size_t)x->n_col + (size_t)col;                   \
            for (int i = 0; i < n_vec; i++)                                                        \
                acc[i][t] = _mm256_loadu_ps(out + t * GROUP + 8 * (v + i));                        \
        }                                                                                          \
        w += 8 * (size)*v;                                                                         \
        for (int k = 0; k < n; k++, w += GROUP * (size)) {                                         \
            if (stream)                                                                            \
                cpu_ahead(w, GROUP *(size));                                                       \
            for (int i = 0; i < n_vec; i++) {                                                      \
                const __m256 wi = float_##name(w + 8 * (size)*i);                                  \
                for (int t = 0; t < n_tok; t++)                                                    \
                    acc[i][t] = _mm256_fmadd_ps(wi, _mm256_set1_ps(xp[t][k]), acc[i][t]);          \
            }                                                                                      \
        }                                                                                          \
        for (int t = 0; t < n_tok; t++)                                                            \
            for (int i = 0; i < n_vec; i++)                                                        \
                _mm256_storeu_ps(out + t * GROUP + 8 * (v + i), acc[i][t]);                        \
    }
FLOAT_TILE(F32, 4)
FLOAT_TILE(F16, 2)
FLOAT_TILE(BF16, 2)

#define FLOATS(name, size)                                                                         \
    static void gemv_##name(const uint8_t *group, const struct cpu_x *x, int n_tok, float *out)    \
    {                                                                                              \
        memset(out, 0, (size_t)n_tok *GROUP * sizeof *out);                                        \
        if (n_tok == 1)                                                                            \
            tile_##name(group, x, 0, 0, x->n_col, 0, 4, 1, 1, out);                                \
        else if (n_tok == 2)                                                                       \
            tile_##name(group, x, 0, 0, x->n_col, 0, 4, 1, 2, out);                                \
        else if (n_tok == 3)                                                                       \
            tile_##name(group, x, 0, 0, x->n_col, 0, 4, 1, 3, out);                                \
        else                                                                                       \
            for (int v = 0; v < N_VEC; v += 2)                                                     \
                tile_##name(group, x, 0, 0, x->n_col, v, 2, 1, 4, out);                            \
    }                                                                                              \
    static void expand_##name(const uint8_t *group, int col, int n, uint8_t *panel)                \
    {                                                                                              \
        float *to = (float *)(void *)panel;                                                        \
        group += (size_t)col * GROUP * (size);                                                     \
        for (int i = 0; i < n * GROUP; i += 8)                                                     \
            _mm256_storeu_ps(to + i, float_##name(group + i * (size)));                            \
    }
FLOATS(F32, 4)
FLOATS(F16, 2)
FLOATS(BF16, 2)

static void gemm_float(const uint8_t *panel, const struct cpu_x *x, int col, int n, int n_tok,
                       float *acc)
{
    for (int v = 0; v < N_VEC; v += 2) {
        int t = 0;
        for (; t + 4 <= n_tok; t += 4)
            tile_F32(panel, x, t, col, n, v, 2, 0, 4, acc + t * GROUP);
        for (; t < n_tok; t++)
            tile_F32(panel, x, t, col, n, v, 2, 0, 1, acc + t * GROUP);
    }
}
