/* Elementwise kernels, norms, RoPE and the INT8 form, over vec.h. Included by vec_c.c, vec_avx2.c
 * and vec_avx512.c, which take the addresses of these functions into their level's table. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/functions.h"

#define MAP(i, n, load, store, ...)                                                                \
    do {                                                                                           \
        int i = 0;                                                                                 \
        for (; i + VW <= (n); i += VW) {                                                           \
            enum { FULL = 1 };                                                                     \
            const int left = VW;                                                                   \
            __VA_ARGS__                                                                            \
        }                                                                                          \
        if (i < (n)) {                                                                             \
            enum { FULL = 0 };                                                                     \
            const int left = (n)-i;                                                                \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    } while (0)
#define LD(p)    (FULL ? v_load((p) + i) : v_loadn((p) + i, left))
#define ST(p, x) (FULL ? v_store((p) + i, x) : v_storen((p) + i, left, x))

static void vec_add(float *y, const float *a, const float *b, int n)
{
    MAP(i, n, , , { ST(y, v_add(LD(a), LD(b))); });
}

static void vec_add_one(float *y, const float *a, float b, int n)
{
    const vf vb = v_set(b);
    MAP(i, n, , , { ST(y, v_add(LD(a), vb)); });
}

static void vec_mul(float *y, const float *a, const float *b, int n)
{
    MAP(i, n, , , { ST(y, v_mul(LD(a), LD(b))); });
}

static void vec_mul_one(float *y, const float *a, float b, int n)
{
    const vf vb = v_set(b);
    MAP(i, n, , , { ST(y, v_mul(LD(a), vb)); });
}

static void vec_silu(float *y, const float *a, int n)
{
    MAP(i, n, , , { ST(y, v_silu(LD(a))); });
}

static void vec_gelu(float *y, const float *a, int n)
{
    MAP(i, n, , , { ST(y, v_gelu(LD(a))); });
}

static void vec_tanh(float *y, const float *a, int n)
{
    MAP(i, n, , , { ST(y, v_tanh(LD(a))); });
}

static void vec_silu_mul(float *y, const float *a, const float *b, int n)
{
    MAP(i, n, , , { ST(y, v_mul(v_silu(LD(a)), LD(b))); });
}

static void vec_gelu_mul(float *y, const float *a, const float *b, int n)
{
    MAP(i, n, , , { ST(y, v_mul(v_gelu(LD(a)), LD(b))); });
}

/* 32 partials, element i to partial i mod 32, then 32 -> 16 -> 8 -> 4 -> 2 -> 1. */
static float vec_sum_sq(float *a, const float *x, const float *r, int n)
{
    enum { N = 32 / VW };
    vf part[N];
    float p[32];
    int i = 0;
    for (int k = 0; k < N; k++)
        part[k] = v_set(0.0f);
    for (; i + 32 <= n; i += 32)
        for (int k = 0; k < N; k++) {
            vf v = v_load(x + i + k * VW);
            if (r)
                v = v_add(v, v_load(r + i + k * VW));
            if (a)
                v_store(a + i + k * VW, v);
            part[k] = v_fma(v, v, part[k]);
        }
    for (int k = 0; i < n; k++, i += VW) {
        const int left = n - i < VW ? n - i : VW;
        vf v = left == VW ? v_load(x + i) : v_loadn(x + i, left);
        if (r)
            v = v_add(v, left == VW ? v_load(r + i) : v_loadn(r + i, left));
        if (a && left == VW)
            v_store(a + i, v);
        else if (a)
            v_storen(a + i, left, v);
        part[k] = v_fma(v, v, part[k]);
    }
    for (int k = 0; k < N; k++)
        v_store(p + k * VW, part[k]);
    for (int k = 0; k < 16; k++)
        p[k] = p[k] + p[k + 16];
    return tree16(p);
}

static void vec_norm(float *y, const float *x, const float *r, float inv, const float *w, int n)
{
    const vf scale = v_set(inv);
    MAP(i, n, , , {
        vf v = LD(x);
        if (r)
            v = v_add(v, LD(r));
        v = v_mul(v, scale);
        if (w)
            v = v_mul(v, LD(w));
        ST(y, v);
    });
}

/* One pair: y0 = fma(x0, c, -(x1 s)), y1 = fma(x1, c, x0 s). */
INLINE void rotate_one(float *y0, float *y1, float x0, float x1, float c, float s)
{
    *y0 = fmaf(x0, c, -(x1 * s));
    *y1 = fmaf(x1, c, x0 * s);
}

#if defined(__AVX512F__)
INLINE void rope_half(float *y, const float *x, const float *t, int half, int i)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd =
        _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    vf lo = v_load(t + 2 * i), hi = v_load(t + 2 * i + 16);
    vf c = _mm512_permutex2var_ps(lo, even, hi), s = _mm512_permutex2var_ps(lo, odd, hi);
    vf x0 = v_load(x + i), x1 = v_load(x + i + half);
    v_store(y + i, _mm512_fmsub_ps(x0, c, v_mul(x1, s)));
    v_store(y + i + half, v_fma(x1, c, v_mul(x0, s)));
}
INLINE void rope_pairs(float *y, const float *x, const float *t, int i)
{
    vf cs = v_load(t + i), v = v_load(x + i);
    vf c = _mm512_moveldup_ps(cs), s = _mm512_movehdup_ps(cs);
    v_store(y + i, _mm512_fmaddsub_ps(v, c, v_mul(_mm512_permute_ps(v, 0xb1), s)));
}
#elif defined(__AVX2__)
INLINE void rope_half(float *y, const float *x, const float *t, int half, int i)
{
    vf lo = v_load(t + 2 * i), hi = v_load(t + 2 * i + 8);
    vf a = _mm256_permute2f128_ps(lo, hi, 0x20), b = _mm256_permute2f128_ps(lo, hi, 0x31);
    vf c = _mm256_shuffle_ps(a, b, 0x88), s = _mm256_shuffle_ps(a, b, 0xdd);
    vf x0 = v_load(x + i), x1 = v_load(x + i + half);
    v_store(y + i, _mm256_fmsub_ps(x0, c, v_mul(x1, s)));
    v_store(y + i + half, v_fma(x1, c, v_mul(x0, s)));
}
INLINE void rope_pairs(float *y, const float *x, const float *t, int i)
{
    vf cs = v_load(t + i), v = v_load(x + i);
    vf c = _mm256_moveldup_ps(cs), s = _mm256_movehdup_ps(cs);
    v_store(y + i, _mm256_fmaddsub_ps(v, c, v_mul(_mm256_permute_ps(v, 0xb1), s)));
}
#else
INLINE void rope_half(float *y, const float *x, const float *t, int half, int i)
{
    rotate_one(y + i, y + i + half, x[i], x[i + half], t[2 * i], t[2 * i + 1]);
}
INLINE void rope_pairs(float *y, const float *x, const float *t, int i)
{
    (void)y, (void)x, (void)t, (void)i;
}
#endif

static void vec_rope(float *y, const float *x, const float *t, int n_rot, int d, int neox)
{
    const int half = n_rot / 2;
    int i = 0;
    if (neox) {
        for (; i + VW <= half; i += VW)
            rope_half(y, x, t, half, i);
        for (; i < half; i++)
            rotate_one(y + i, y + i + half, x[i], x[i + half], t[2 * i], t[2 * i + 1]);
    } else {
        for (; VW > 1 && i + VW <= n_rot; i += VW)
            rope_pairs(y, x, t, i);
        for (; i < n_rot; i += 2)
            rotate_one(y + i, y + i + 1, x[i], x[i + 1], t[i], t[i + 1]);
    }
    if (y != x && n_rot < d)
        memcpy(y + n_rot, x + n_rot, (size_t)(d - n_rot) * sizeof *y);
}

static void vec_to_f16(uint16_t *y, const float *x, int n)
{
    int i = 0;
    for (; i + VW <= n; i += VW)
        v_store_f16(y + i, v_load(x + i));
    if (i < n) {
        uint16_t h[VW];
        v_store_f16(h, v_loadn(x + i, n - i));
        memcpy(y + i, h, (size_t)(n - i) * sizeof *y);
    }
}

static void vec_from_f16(float *y, const uint16_t *x, int n)
{
    int i = 0;
    for (; i + VW <= n; i += VW)
        v_store(y + i, v_load_f16(x + i));
    if (i < n) {
        uint16_t h[VW] = {0};
        memcpy(h, x + i, (size_t)(n - i) * sizeof *x);
        v_storen(y + i, n - i, v_load_f16(h));
    }
}

/* The INT8 form of 32 columns. Infinity or NaN in x: scale NaN, codes 0. Too small to be scaled
 * (amax < 2^-119): scale 0, codes 0. */
enum { AMAX_TINY = 8 << 23, AMAX_INF = 255 << 23 };

#if defined(__AVX512F__)
INLINE void int8_block(const float *x, int n, int8_t *code, float *scale, int32_t *sum)
{
    vf a = n >= 16 ? v_load(x) : v_loadn(x, n);
    vf b = n >= 32 ? v_load(x + 16) : n > 16 ? v_loadn(x + 16, n - 16) : v_set(0.0f);
    int amax = (int)_mm512_reduce_max_epu32(
        _mm512_max_epu32(_mm512_castps_si512(v_abs(a)), _mm512_castps_si512(v_abs(b))));
    if (amax < AMAX_TINY || amax >= AMAX_INF) {
        memset(code, 0, 32);
        *scale = amax < AMAX_TINY ? 0.0f : NAN;
        *sum = 0;
        return;
    }
    const vf inv = v_set(127.0f / bits_f32((uint32_t)amax));
    __m512i qa = _mm512_cvtps_epi32(v_mul(a, inv)), qb = _mm512_cvtps_epi32(v_mul(b, inv));
    _mm_storeu_si128((__m128i *)code, _mm512_cvtepi32_epi8(qa));
    _mm_storeu_si128((__m128i *)(code + 16), _mm512_cvtepi32_epi8(qb));
    *scale = bits_f32((uint32_t)amax) / 127.0f;
    *sum = _mm512_reduce_add_epi32(_mm512_add_epi32(qa, qb));
}
#elif defined(__AVX2__)
INLINE void int8_block(const float *x, int n, int8_t *code, float *scale, int32_t *sum)
{
    __m256i q[4];
    vf v[4];
    __m256i max = _mm256_setzero_si256();
    for (int k = 0; k < 4; k++) {
        int left = n - k * 8;
        v[k] = left >= 8 ? v_load(x + k * 8) : left > 0 ? v_loadn(x + k * 8, left) : v_set(0.0f);
        max = _mm256_max_epu32(max, _mm256_castps_si256(v_abs(v[k])));
    }
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(max), _mm256_extracti128_si256(max, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
    int amax = _mm_cvtsi128_si32(m);
    if (amax < AMAX_TINY || amax >= AMAX_INF) {
        memset(code, 0, 32);
        *scale = amax < AMAX_TINY ? 0.0f : NAN;
        *sum = 0;
        return;
    }
    const vf inv = v_set(127.0f / bits_f32((uint32_t)amax));
    for (int k = 0; k < 4; k++)
        q[k] = _mm256_cvtps_epi32(v_mul(v[k], inv));
    __m256i s = _mm256_add_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3]));
    __m256i w = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    w = _mm256_permutevar8x32_epi32(w, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((__m256i *)code, w);
    *scale = bits_f32((uint32_t)amax) / 127.0f;
    __m128i t = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
    t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0x4e));
    t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0xb1));
    *sum = _mm_cvtsi128_si32(t);
}
#else
INLINE void int8_block(const float *x, int n, int8_t *code, float *scale, int32_t *sum)
{
    uint32_t amax = 0;
    for (int i = 0; i < n; i++) {
        uint32_t a = f32_bits(x[i]) & 0x7fffffff;
        amax = a > amax ? a : amax;
    }
    memset(code, 0, 32);
    *sum = 0;
    if (amax < AMAX_TINY || amax >= AMAX_INF) {
        *scale = amax < AMAX_TINY ? 0.0f : NAN;
        return;
    }
    const float inv = 127.0f / bits_f32(amax);
    for (int i = 0; i < n; i++) {
        code[i] = (int8_t)rintf(x[i] * inv);
        *sum += code[i];
    }
    *scale = bits_f32(amax) / 127.0f;
}
#endif

static void vec_to_int8(const float *x, int n, int8_t *code, float *scale, int32_t *sum)
{
    for (int b = 0; b * 32 < n; b++)
        int8_block(x + b * 32, n - b * 32 < 32 ? n - b * 32 : 32, code + b * 32, scale + b,
                   sum + b);
}

/* -1 if anything is infinite or NaN: x * 0 is NaN then. */
static int vec_argmax(const float *x, int n, float *best)
{
    int i = 0, at = 0;
    float m = -INFINITY, bad = 0;
    if (n >= VW) {
        vf v = v_set(-INFINITY), b = v_set(0.0f);
        float p[VW], q[VW];
        for (; i + VW <= n; i += VW) {
            v = v_max(v_load(x + i), v);
            b = v_fma(v_load(x + i), v_set(0.0f), b);
        }
        v_store(p, v);
        v_store(q, b);
        for (int k = 0; k < VW; k++) {
            m = p[k] > m ? p[k] : m;
            bad += q[k];
        }
    }
    for (; i < n; i++) {
        m = x[i] > m ? x[i] : m;
        bad += x[i] * 0.0f;
    }
    *best = bad == 0 ? m : NAN;
    if (!(bad == 0))
        return -1;
    while (at < n - 1 && !(x[at] == m))
        at++;
    return at;
}
