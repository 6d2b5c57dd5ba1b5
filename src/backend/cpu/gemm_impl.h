/* Matrix products above the tile, over vec.h: tokens in numbers that are constants where they are
 * inlined, so that sums stay in registers; and float weights. Included by isa_avx2.c and
 * isa_avx512.c after the level's gemv_tok (1..CPU_FEW tokens) and tile (1..TOK tokens). */

/* `call` with N = n_tok, 1..CPU_FEW. */
#define FEW_TOK(n_tok, call)                                                                       \
    do {                                                                                           \
        if ((n_tok) == 1)                                                                          \
            WITH_N(1, call)                                                                        \
        else if ((n_tok) == 2)                                                                     \
            WITH_N(2, call)                                                                        \
        else if ((n_tok) == 3)                                                                     \
            WITH_N(3, call)                                                                        \
        else                                                                                       \
            WITH_N(4, call)                                                                        \
    } while (0)
#define WITH_N(n, call)                                                                            \
    {                                                                                              \
        enum { N = (n) };                                                                          \
        call;                                                                                      \
    }
_Static_assert(CPU_FEW == 4, "FEW_TOK has a case for each number");

INLINE void gemv_n(const struct cpu_format f, const uint8_t *group, const struct cpu_x *x,
                   int n_tok, float *out)
{
    FEW_TOK(n_tok, gemv_tok(f, group, x, N, out));
}

INLINE void gemm_n(const struct cpu_format f, const struct panel *panel, const struct cpu_x *x,
                   int col, int n, int n_tok, float *acc)
{
    TILES(TOK, n_tok, tile(f, panel, x, at, col / BLOCK, n / BLOCK, N, acc + at * GROUP));
}

/* ---- Float weights ---- */
INLINE vf float_F32(const uint8_t *p)
{
    return v_load((const float *)(const void *)p);
}
INLINE vf float_F16(const uint8_t *p)
{
    return load_f16(p);
}
INLINE vf float_BF16(const uint8_t *p)
{
    return v_load_bf16((const uint16_t *)(const void *)p);
}

/* acc goes on over columns [col, col + n), for n_vec vectors of rows from vector v on; w is the
 * first column's 32 rows. */
#define FLOAT_TILE(name, size)                                                                     \
    INLINE void tile_##name(const uint8_t *w, const struct cpu_x *x, int tok, int col, int n,      \
                            int v, const int n_vec, const int stream, const int n_tok, float *out) \
    {                                                                                              \
        const float *xp[TOK];                                                                      \
        vf acc[N_VEC][TOK];                                                                        \
        for (int t = 0; t < n_tok; t++) {                                                          \
            xp[t] = x->f32 + (size_t)(tok + t) * (size_t)x->n_col + (size_t)col;                   \
            for (int i = 0; i < n_vec; i++)                                                        \
                acc[i][t] = v_load(out + t * GROUP + VW * (v + i));                                \
        }                                                                                          \
        w += VW * (size)*v;                                                                        \
        for (int k = 0; k < n; k++, w += GROUP * (size)) {                                         \
            if (stream)                                                                            \
                cpu_ahead(w, GROUP *(size));                                                       \
            for (int i = 0; i < n_vec; i++) {                                                      \
                const vf wi = float_##name(w + VW * (size)*i);                                     \
                for (int t = 0; t < n_tok; t++)                                                    \
                    acc[i][t] = v_fma(wi, v_set(xp[t][k]), acc[i][t]);                             \
            }                                                                                      \
        }                                                                                          \
        for (int t = 0; t < n_tok; t++)                                                            \
            for (int i = 0; i < n_vec; i++)                                                        \
                v_store(out + t * GROUP + VW * (v + i), acc[i][t]);                                \
    }                                                                                              \
    /* With few tokens all vectors of rows at once, if there are registers for the sums. */        \
    static void gemv_##name(const uint8_t *group, const struct cpu_x *x, int n_tok, float *out)    \
    {                                                                                              \
        memset(out, 0, (size_t)n_tok *GROUP * sizeof *out);                                        \
        FEW_TOK(n_tok, {                                                                           \
            enum { AT_ONCE = N < 4 ? N_VEC : 2 };                                                  \
            for (int v = 0; v < N_VEC; v += AT_ONCE)                                               \
                tile_##name(group, x, 0, 0, x->n_col, v, AT_ONCE, 1, N, out);                      \
        });                                                                                        \
    }                                                                                              \
    static void expand_##name(const uint8_t *group, int col, int n, uint8_t *panel)                \
    {                                                                                              \
        float *to = (float *)(void *)panel;                                                        \
        group += (size_t)col * GROUP * (size);                                                     \
        for (int i = 0; i < n * GROUP; i += VW)                                                    \
            v_store(to + i, float_##name(group + i * (size)));                                     \
    }
FLOAT_TILE(F32, 4)
FLOAT_TILE(F16, 2)
FLOAT_TILE(BF16, 2)

static void gemm_float(const uint8_t *panel, const struct cpu_x *x, int col, int n, int n_tok,
                       float *acc)
{
    for (int v = 0; v < N_VEC; v += 2)
        TILES(TOK, n_tok, tile_F32(panel, x, at, col, n, v, 2, 0, N, acc + at * GROUP));
}
