/* Attention over tiles of 64 keys, over vec.h; included once per level. A query's score is one fma
 * chain ascending over d; a value column is one fma chain ascending over the keys of the tile; the
 * sum of weights has 16 partials (key mod 16) and a fixed tree. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/functions.h"

#if defined(__AVX512F__)
enum { QT = 6, VT = 4 };
#elif defined(__AVX2__)
enum { QT = 6, VT = 2 };
#else
enum { QT = 2, VT = 8 };
#endif

/* nq <= QT queries x VT vectors of keys; nq is a constant where it is inlined. */
INLINE void qk_tile(float *s, const float *q, const float *k, int d_k, const int nq)
{
    vf acc[QT][VT];
    for (int i = 0; i < nq; i++)
        for (int j = 0; j < VT; j++)
            acc[i][j] = v_set(0.0f);
    for (int d = 0; d < d_k; d++) {
        vf kv[VT];
        for (int j = 0; j < VT; j++)
            kv[j] = v_load(k + d * CPU_KEYS + j * VW);
        for (int i = 0; i < nq; i++) {
            const vf qv = v_set(q[i * d_k + d]);
            for (int j = 0; j < VT; j++)
                acc[i][j] = v_fma(qv, kv[j], acc[i][j]);
        }
    }
    for (int i = 0; i < nq; i++)
        for (int j = 0; j < VT; j++)
            v_store(s + i * CPU_KEYS + j * VW, acc[i][j]);
}

static void attn_qk(float *s, const float *q, const float *k, int d_k, int m)
{
    for (int j = 0; j < CPU_KEYS; j += VT * VW)
        TILES(QT, m, qk_tile(s + at * CPU_KEYS + j, q + at * d_k, k + j, d_k, N));
}

/* scale, then cap * tanh(./cap) */
INLINE vf score_of(vf dot, float scale, float cap)
{
    vf s = v_mul(dot, v_set(scale));
    return cap > 0 ? v_mul(v_set(cap), v_tanh(v_div(s, v_set(cap)))) : s;
}

INLINE float max_of(const float *s, int n, float m)
{
    for (int i = 0; i < n; i++)
        m = s[i] > m ? s[i] : m;
    return m;
}

static float exp_one(float x)
{
    float a[VW];
    v_store(a, v_exp(v_set(x)));
    return a[0];
}

INLINE void soft_one(float *s, float scale, float cap, int k0, int k1, float *max, float *sum,
                     float *corr)
{
    float part[16];
    for (int j = 0; j < CPU_KEYS; j += VW)
        v_store(s + j, score_of(v_load(s + j), scale, cap));
    for (int j = 0; j < k0; j++)
        s[j] = -INFINITY;
    for (int j = k1; j < CPU_KEYS; j++)
        s[j] = -INFINITY;
    vf top = v_load(s);
    for (int j = VW; j < CPU_KEYS; j += VW)
        top = v_max(v_load(s + j), top);
    float lane[VW];
    v_store(lane, top);
    const float m = max_of(lane, VW, *max);
    /* No finite score yet: subtract 0, so that -inf stays a weight of 0 and not NaN. */
    const float base = m > -INFINITY ? m : 0.0f;
    *corr = exp_one(*max - base);
    for (int j = 0; j < 16; j += VW) {
        vf p = v_set(0.0f);
        for (int k = 0; k < CPU_KEYS; k += 16) {
            vf e = v_exp(v_sub(v_load(s + k + j), v_set(base)));
            v_store(s + k + j, e);
            p = v_add(p, e);
        }
        v_store(part + j, p);
    }
    *max = m;
    *sum = fmaf(*sum, *corr, tree16(part));
}

static void attn_soft(float *s, float scale, float cap, int k0, int k1, float *max, float *sum,
                      float *corr, int m)
{
    for (int i = 0; i < m; i++)
        soft_one(s + i * CPU_KEYS, scale, cap, k0, k1, max + i, sum + i, corr + i);
}

/* nq queries x nv vectors of value columns from column d on. */
INLINE void pv_tile(float *o, const float *s, const float *corr, const float *v, int d_v, int k0,
                    int k1, const int nq, const int nv)
{
    vf acc[QT][VT];
    for (int i = 0; i < nq; i++)
        for (int j = 0; j < nv; j++)
            acc[i][j] = v_mul(v_load(o + i * d_v + j * VW), v_set(corr[i]));
    for (int k = k0; k < k1; k++) {
        vf vv[VT];
        for (int j = 0; j < nv; j++)
            vv[j] = v_load(v + k * d_v + j * VW);
        for (int i = 0; i < nq; i++) {
            const vf p = v_set(s[i * CPU_KEYS + k]);
            for (int j = 0; j < nv; j++)
                acc[i][j] = v_fma(p, vv[j], acc[i][j]);
        }
    }
    for (int i = 0; i < nq; i++)
        for (int j = 0; j < nv; j++)
            v_store(o + i * d_v + j * VW, acc[i][j]);
}

/* The columns past whole vectors. */
static void pv_rest(float *o, const float *s, const float *corr, const float *v, int d, int d_v,
                    int k0, int k1, int m)
{
    for (int i = 0; i < m; i++)
        for (int c = d; c < d_v; c++) {
            float acc = o[i * d_v + c] * corr[i];
            for (int k = k0; k < k1; k++)
                acc = fmaf(s[i * CPU_KEYS + k], v[k * d_v + c], acc);
            o[i * d_v + c] = acc;
        }
}

static void attn_pv(float *o, const float *s, const float *corr, const float *v, int d_v, int k0,
                    int k1, int m)
{
    int d = 0;
    for (; d + VT * VW <= d_v; d += VT * VW)
        TILES(QT, m,
              pv_tile(o + at * d_v + d, s + at * CPU_KEYS, corr + at, v + d, d_v, k0, k1, N, VT));
    for (; d + VW <= d_v; d += VW)
        TILES(QT, m,
              pv_tile(o + at * d_v + d, s + at * CPU_KEYS, corr + at, v + d, d_v, k0, k1, N, 1));
    if (d < d_v)
        pv_rest(o, s, corr, v, d, d_v, k0, k1, m);
}

static void attn_merge(float *a, float *max, float *sum, const float *b, float max_b, float sum_b,
                       int d_v)
{
    const float m = *max > max_b ? *max : max_b, base = m > -INFINITY ? m : 0.0f;
    const float fa = exp_one(*max - base), fb = exp_one(max_b - base);
    int i = 0;
    for (; i + VW <= d_v; i += VW)
        v_store(a + i, v_fma(v_load(a + i), v_set(fa), v_mul(v_load(b + i), v_set(fb))));
    for (; i < d_v; i++)
        a[i] = fmaf(a[i], fa, b[i] * fb);
    *max = m;
    *sum = fmaf(*sum, fa, sum_b * fb);
}

static void attn_mask(float *s, float scale, float cap, int n, int k0, int k1)
{
    int i = 0;
    for (; i + VW <= n; i += VW)
        v_store(s + i, score_of(v_load(s + i), scale, cap));
    if (i < n)
        v_storen(s + i, n - i, score_of(v_loadn(s + i, n - i), scale, cap));
    for (i = 0; i < k0; i++)
        s[i] = -INFINITY;
    for (i = k1; i < n; i++)
        s[i] = -INFINITY;
}

/* Sum in 16 partials (key mod 16) over all keys, then the tree; the sink comes last. */
static void attn_softmax(float *s, int n, const float *sink)
{
    const float m = max_of(s, n, sink ? *sink : -INFINITY), base = m > -INFINITY ? m : 0.0f;
    float part[16] = {0};
    int i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j += VW) {
            vf e = v_exp(v_sub(v_load(s + i + j), v_set(base)));
            v_store(s + i + j, e);
            v_store(part + j, v_add(v_load(part + j), e));
        }
    for (int j = 0; i < n; i++, j++) {
        s[i] = exp_one(s[i] - base);
        part[j] = part[j] + s[i];
    }
    float sum = tree16(part);
    if (sink)
        sum = sum + exp_one(*sink - base);
    const float inv = 1.0f / sum;
    for (i = 0; i < n; i++)
        s[i] = s[i] * inv;
}
