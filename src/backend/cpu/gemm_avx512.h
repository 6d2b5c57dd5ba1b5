/* Matrix products for AVX-512 VNNI. Included by isa_avx512.c.
 *
 * gemv streams a group once for 1..4 tokens. gemm runs tiles of 32 rows x 6 tokens over a panel of
 * byte codes: 12 integer and 12 float accumulators, two weight vectors, one broadcast that serves
 * both. Codes are unsigned, x is signed; the accumulators start at -offset * sum(x), so the offset
 * costs no instruction. Formats with 16-wide scales turn it round: weights signed, x + 128
 * unsigned, start -128 * sum(w), because the sums of x are known for 32 columns only. */
#include "backend/cpu/unpack.h"

/* ---- Scales: [half of the rows] ---- */
struct scales {
    __m512 s[2][2]; /* [columns 0..15, 16..31] */
    __m512 m[2];
};

INLINE __m512 bytes_f32(__m256i planes, int h, int is_signed)
{
    const __m128i b = h ? _mm256_extracti128_si256(planes, 1) : _mm256_castsi256_si128(planes);
    return _mm512_cvtepi32_ps(is_signed ? _mm512_cvtepi8_epi32(b) : _mm512_cvtepu8_epi32(b));
}

/* d and m of the header; of a K format m is -dmin. */
INLINE void header_scales(const struct cpu_format f, const uint8_t *header, struct scales *s)
{
    for (int h = 0; h < 2; h++) {
        s->s[0][h] = s->s[1][h] = load_f16(header + 32 * h);
        if (format_has_min(f))
            s->m[h] = load_f16(header + 64 + 32 * h);
        if (f.scales == SCALES_K)
            s->m[h] = _mm512_xor_ps(s->m[h], _mm512_set1_ps(-0.0f));
    }
}

INLINE struct scales block_scales(const struct cpu_format f, const struct scales *of_header,
                                  const uint8_t *header, const uint8_t *block, int i)
{
    struct scales s = *of_header;
    if (f.scales == SCALES_K) {
        __m256i scale, min;
        k_bytes(header, i, &scale, &min);
        for (int h = 0; h < 2; h++) {
            s.s[0][h] = s.s[1][h] = _mm512_mul_ps(s.s[0][h], bytes_f32(scale, h, 0));
            s.m[h] = _mm512_mul_ps(s.m[h], bytes_f32(min, h, 0));
        }
    } else if (f.scales == SCALES_K16) {
        for (int k = 0; k < 2; k++) {
            const void *at = block + k * GROUP;
            const __m256i scale = _mm256_loadu_si256((const __m256i *)at);
            for (int h = 0; h < 2; h++)
                s.s[k][h] = _mm512_mul_ps(s.s[k][h], bytes_f32(scale, h, 1));
        }
    }
    return s;
}

/* ---- gemv ---- */
struct vec4 {
    __m512 v[2][CPU_FEW];
};

/* One block: integer sums of both halves of the columns, then the float steps. */
INLINE void gemv_block(const struct cpu_format f, const uint8_t *block, const struct scales *s,
                       const struct cpu_x *x, int b, const int n_tok, struct vec4 *acc)
{
    const int wide = f.scales == SCALES_K16; /* two sums of 16 columns */
    const int split = wide || n_tok == 1;    /* two accumulators, to hide the latency */
    const __m512i offset = _mm512_set1_epi8((char)f.offset);
    __m512i sum[2][2][CPU_FEW], off[2][CPU_FEW];
    for (int t = 0; t < n_tok; t++) {
        const int start = wide ? 0 : -f.offset * x->sum[(size_t)t * (size_t)x->n_block + (size_t)b];
        for (int h = 0; h < 2; h++) {
            sum[0][h][t] = f.offset ? _mm512_set1_epi32(start) : _mm512_setzero_si512();
            sum[1][h][t] = _mm512_setzero_si512();
            off[h][t] = _mm512_setzero_si512();
        }
    }
    for (int j = 0; j < 4; j++) {
        __m512i w[2][2];
        codes(f, block, j, 0, &w[0][0], &w[1][0]);
        codes(f, block, j, 1, &w[0][1], &w[1][1]);
        for (int t = 0; t < n_tok; t++) {
            const int8_t *at =
                x->code + ((size_t)t * (size_t)x->n_block + (size_t)b) * BLOCK + 4 * j;
            const __m512i xs[2] = {four(at), four(at + 16)};
            for (int k = 0; k < 2; k++) {
                for (int h = 0; h < 2; h++)
                    sum[split ? k : 0][h][t] =
                        _mm512_dpbusd_epi32(sum[split ? k : 0][h][t], w[k][h], xs[k]);
                if (wide)
                    off[k][t] = _mm512_dpbusd_epi32(off[k][t], offset, xs[k]);
            }
        }
    }
    for (int t = 0; t < n_tok; t++) {
        const size_t at = (size_t)t * (size_t)x->n_block + (size_t)b;
        const __m512 xs = _mm512_set1_ps(x->scale[at]);
        const __m512 xm = _mm512_set1_ps(x->scale[at] * (float)x->sum[at]);
        for (int h = 0; h < 2; h++) {
            __m512i i0 = sum[0][h][t], i1 = sum[1][h][t];
            if (wide) {
                i0 = _mm512_sub_epi32(i0, off[0][t]);
                i1 = _mm512_sub_epi32(i1, off[1][t]);
            } else if (split) {
                i0 = _mm512_add_epi32(i0, i1);
            }
            __m512 a = acc->v[h][t];
            a = _mm512_fmadd_ps(_mm512_cvtepi32_ps(i0), _mm512_mul_ps(s->s[0][h], xs), a);
            if (wide)
                a = _mm512_fmadd_ps(_mm512_cvtepi32_ps(i1), _mm512_mul_ps(s->s[1][h], xs), a);
            acc->v[h][t] = format_has_min(f) ? _mm512_fmadd_ps(s->m[h], xm, a) : a;
        }
    }
}

INLINE void gemv_tok(const struct cpu_format f, const uint8_t *group, const struct cpu_x *x,
                     const int n_tok, float *out)
{
    struct vec4 acc;
    for (int t = 0; t < n_tok; t++)
        acc.v[0][t] = acc.v[1][t] = _mm512_setzero_ps();
    for (int b = 0; b < x->n_block; b += format_super(f)) {
        struct scales of_header;
        const uint8_t *block = group + format_header(f);
        cpu_ahead(group, format_header(f));
        header_scales(f, group, &of_header);
        for (int i = 0; i < format_super(f); i++, block += format_block(f)) {
            cpu_ahead(block, format_block(f));
            const struct scales s = block_scales(f, &of_header, group, block, i);
            gemv_block(f, block, &s, x, b + i, n_tok, &acc);
        }
        group += format_super_bytes(f);
    }
    for (int t = 0; t < n_tok; t++)
        for (int h = 0; h < 2; h++)
            _mm512_storeu_ps(out + t * GROUP + 16 * h, acc.v[h][t]);
}

/* ---- Panels ---- */
INLINE void expand_block(const struct cpu_format f, const uint8_t *block, const struct scales *s,
                         int b, struct panel *panel)
{
    const int wide = f.scales == SCALES_K16;
    uint8_t *code = panel->code[b];
    float *scale = panel->scale[b];
    for (int h = 0; h < 2; h++) {
        __m512i sum[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
        for (int j = 0; j < 4; j++) {
            __m512i w[2];
            codes(f, block, j, h, &w[0], &w[1]);
            for (int k = 0; k < 2; k++) {
                if (wide) {
                    w[k] = _mm512_sub_epi8(w[k], _mm512_set1_epi8((char)f.offset));
                    sum[k] = _mm512_dpbusd_epi32(sum[k], _mm512_set1_epi8(1), w[k]);
                }
                _mm512_storeu_si512(code + (k * 4 + j) * 128 + 64 * h, w[k]);
            }
        }
        _mm512_storeu_ps(scale + 16 * h, s->s[0][h]);
        if (format_has_min(f))
            _mm512_storeu_ps(panel->min[b] + 16 * h, s->m[h]);
        for (int k = 0; wide && k < 2; k++) {
            _mm512_storeu_ps(scale + 32 * k + 16 * h, s->s[k][h]);
            sum[k] = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(sum[k], 7));
            _mm512_storeu_si512(panel->start[b] + 32 * k + 16 * h, sum[k]);
        }
    }
}

INLINE void expand_n(const struct cpu_format f, const uint8_t *group, int col, int n,
                     struct panel *panel)
{
    for (int b = 0; b < n / BLOCK; b++) {
        const int at = col / BLOCK + b;
        const uint8_t *header = format_header_at(f, group, at),
                      *block = format_block_at(f, group, at);
        struct scales of_header;
        header_scales(f, header, &of_header);
        const struct scales s = block_scales(f, &of_header, header, block, at % format_super(f));
        expand_block(f, block, &s, b, panel);
    }
}

/* ---- gemm ---- */
enum { TOK = 6, MAX_BLOCK = CPU_CHUNK / BLOCK };

/* What a tile needs of x per block, gathered once: [token][block]. */
struct staged {
    int32_t start[TOK][MAX_BLOCK];
    float scale[TOK][MAX_BLOCK], sum[TOK][MAX_BLOCK];
    _Alignas(64) uint8_t code[TOK][CPU_CHUNK]; /* x + 128, for 16-wide scales */
};

INLINE void stage(const struct cpu_format f, const struct cpu_x *x, int tok, int block, int n,
                  const int n_tok, struct staged *st)
{
    const __mmask8 m = (__mmask8)((1u << n) - 1);
    for (int t = 0; t < n_tok; t++) {
        const size_t at = (size_t)(tok + t) * (size_t)x->n_block + (size_t)block;
        const __m256 scale = _mm256_maskz_loadu_ps(m, x->scale + at);
        const __m256i sum = _mm256_maskz_loadu_epi32(m, x->sum + at);
        const __m256i start = _mm256_mullo_epi32(sum, _mm256_set1_epi32(-f.offset));
        _mm256_storeu_ps(st->scale[t], scale);
        _mm256_storeu_si256((__m256i *)st->start[t], start);
        _mm256_storeu_ps(st->sum[t], _mm256_mul_ps(scale, _mm256_cvtepi32_ps(sum)));
        for (int i = 0; f.scales == SCALES_K16 && i < n; i += 2) {
            const __m512i high = _mm512_set1_epi8((char)0x80);
            const __mmask16 half = i + 1 < n ? 0xffff : 0xff;
            const __m512i c = _mm512_maskz_loadu_epi32(half, x->code + (at + (size_t)i) * BLOCK);
            _mm512_storeu_si512(st->code[t] + i * BLOCK, _mm512_xor_si512(c, high));
        }
    }
}

struct acc6 {
    __m512 v[2][TOK];
};

/* acc += sums of `parts` weight vectors from part p0 on, scaled. */
INLINE void tile_sums(const uint8_t *code, const int8_t *const *x, int at, const int p0,
                      const int parts, const int wide, __m512i (*sum)[TOK], const int n_tok)
{
#pragma GCC unroll 8
    for (int p = p0; p < p0 + parts; p++) {
        const __m512i w0 = i_load(code + p * 128), w1 = i_load(code + p * 128 + 64);
#pragma GCC unroll 6
        for (int t = 0; t < n_tok; t++) {
            const __m512i xs = four(x[t] + at + p * 4);
            sum[0][t] = wide ? _mm512_dpbusd_epi32(sum[0][t], xs, w0)
                             : _mm512_dpbusd_epi32(sum[0][t], w0, xs);
            sum[1][t] = wide ? _mm512_dpbusd_epi32(sum[1][t], xs, w1)
                             : _mm512_dpbusd_epi32(sum[1][t], w1, xs);
        }
    }
}

INLINE void tile_step(const float *scale, const struct staged *st, int b, __m512i (*sum)[TOK],
                      struct acc6 *acc, const int n_tok)
{
    const __m512 s0 = _mm512_loadu_ps(scale), s1 = _mm512_loadu_ps(scale + 16);
    for (int t = 0; t < n_tok; t++) {
        const __m512 xs = _mm512_set1_ps(st->scale[t][b]);
        acc->v[0][t] =
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[0][t]), _mm512_mul_ps(s0, xs), acc->v[0][t]);
        acc->v[1][t] =
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[1][t]), _mm512_mul_ps(s1, xs), acc->v[1][t]);
    }
}

INLINE void tile(const struct cpu_format f, const struct panel *panel, const struct cpu_x *x,
                 int tok, int block, int n, const int n_tok, float *out)
{
    const int wide = f.scales == SCALES_K16;
    struct staged st;
    struct acc6 acc;
    const int8_t *xp[TOK];
    stage(f, x, tok, block, n, n_tok, &st);
    for (int t = 0; t < n_tok; t++) {
        const size_t at = (size_t)(tok + t) * (size_t)x->n_block + (size_t)block;
        xp[t] = wide ? (const int8_t *)st.code[t] : x->code + at * BLOCK;
        acc.v[0][t] = _mm512_loadu_ps(out + t * GROUP);
        acc.v[1][t] = _mm512_loadu_ps(out + t * GROUP + 16);
    }
    for (int b = 0; b < n; b++) {
        const uint8_t *code = panel->code[b];
        const float *scale = panel->scale[b];
        __m512i sum[2][TOK];
        for (int half = 0; half < (wide ? 2 : 1); half++) {
            for (int t = 0; t < n_tok; t++)
                for (int h = 0; h < 2; h++)
                    sum[h][t] = wide ? i_load(panel->start[b] + 32 * half + 16 * h)
                                     : _mm512_set1_epi32(st.start[t][b]);
            if (!wide)
                tile_sums(code, xp, b * BLOCK, 0, 8, 0, sum, n_tok);
            else if (half == 0)
                tile_sums(code, xp, b * BLOCK, 0, 4, 1, sum, n_tok);
            else
                tile_sums(code, xp, b * BLOCK, 4, 4, 1, sum, n_tok);
            tile_step(scale + 32 * half, &st, b, sum, &acc, n_tok);
        }
        for (int h = 0; format_has_min(f) && h < 2; h++) {
            const __m512 m = _mm512_loadu_ps(panel->min[b] + 16 * h);
            for (int t = 0; t < n_tok; t++)
                acc.v[h][t] = _mm512_fmadd_ps(m, _mm512_set1_ps(st.sum[t][b]), acc.v[h][t]);
        }
    }
    for (int t = 0; t < n_tok; t++)
        for (int h = 0; h < 2; h++)
            _mm512_storeu_ps(out + t * GROUP + 16 * h, acc.v[h][t]);
}
