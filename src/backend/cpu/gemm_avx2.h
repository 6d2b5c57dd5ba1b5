/* Matrix products for AVX2. Included by isa_avx2.c.
 *
 * A byte product adds two neighbours into int16 with saturation, so every sum is kept inside int16
 * until it is widened: 4-bit codes fit with all 8 products of a block (8 * 2 * 15 * 127 < 2^15),
 * 5-bit codes with 4; 6-bit codes start at -32 * x, whose sum with 4 products fits again (sums may
 * wrap on the way, single products do not saturate). 8-bit codes take the sign trick: |w| times x
 * with w's sign, widened at once.
 * The unit of work is 8 rows x up to 4 tokens. */
#include "backend/cpu/unpack.h"

enum { TOK = 4 }; /* tokens of a tile */

/* ---- Scales of 8 rows ---- */
INLINE __m256 bytes_f32(const uint8_t *p, int is_signed)
{
    const __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return _mm256_cvtepi32_ps(is_signed ? _mm256_cvtepi8_epi32(b) : _mm256_cvtepu8_epi32(b));
}

/* Block i of a superblock: f32 scales [2][32] (one unless 16-wide) and minima [32]. */
INLINE void block_scales(const struct cpu_format f, const uint8_t *header, const uint8_t *block,
                         int i, float *scale, float *min)
{
    uint8_t ks[GROUP], km[GROUP];
    if (f.scales == SCALES_K) {
        __m256i s, m;
        k_bytes(header, i, &s, &m);
        i_store(ks, s);
        i_store(km, m);
    }
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

/* Columns 4 j .. and 16 + 4 j .. of rows 8 v ..; 8-bit codes come signed. */
INLINE void signed_codes(const struct cpu_format f, const uint8_t *block, int j, int v, __m256i *lo,
                         __m256i *hi)
{
    codes(f, block, j, v, lo, hi);
    if (f.bits == 8) {
        *lo = _mm256_xor_si256(*lo, i_set8(0x80));
        *hi = _mm256_xor_si256(*hi, i_set8(0x80));
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
    __m256i p = _mm256_maddubs_epi16(_mm256_set1_epi8(32), i_load(x));
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
            signed_codes(f, block, j, v, &w[0], &w[1]);
        } else {
            w[0] = i_load(code + j * 128 + 32 * v);
            w[1] = i_load(code + (j + 4) * 128 + 32 * v);
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

INLINE void gemv_tok(const struct cpu_format f, const uint8_t *group, const struct cpu_x *x,
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

INLINE void expand_n(const struct cpu_format f, const uint8_t *group, int col, int n,
                     struct panel *panel)
{
    for (int b = 0; b < n / BLOCK; b++) {
        const int at = col / BLOCK + b;
        const uint8_t *block = format_block_at(f, group, at);
        block_scales(f, format_header_at(f, group, at), block, at % format_super(f),
                     panel->scale[b], panel->min[b]);
        for (int v = 0; v < N_VEC; v++)
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) {
                uint8_t *to = panel->code[b] + j * 128 + 32 * v;
                __m256i lo, hi;
                signed_codes(f, block, j, v, &lo, &hi);
                i_store(to, lo);
                i_store(to + 512, hi);
            }
    }
}

INLINE void tile(const struct cpu_format f, const struct panel *panel, const struct cpu_x *x,
                 int tok, int block, int n, const int n_tok, float *out)
{
    struct starts st;
    for (int b = 0; b < n; b++) {
        block_starts(f, x, tok, block + b, n_tok, &st);
        for (int v = 0; v < N_VEC; v++)
            block_rows(f, NULL, panel->code[b], v, panel->scale[b], panel->min[b], &st, x, tok,
                       block + b, n_tok, out);
    }
}
