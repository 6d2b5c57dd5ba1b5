/* Every micro-kernel of every level of this machine against its plain-C twin: the same bits, over
 * random and worst-case values and odd sizes, with canaries around what is written. Rows past a
 * matrix are part of it (32 at a time), so rows 1..33 are tested through packing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/functions.h"

static uint64_t seed, rng;
static int n_case, n_good;

static uint64_t next(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng * 0x2545F4914F6CDD1DULL >> 11;
}

static float uniform(void)
{
    return (float)((double)(next() & 0xffffff) / 0x800000 - 1);
}

static void check(int good, const char *fmt, ...)
{
    n_case++;
    n_good += good;
    if (good || n_case - n_good > 40)
        return;
    va_list a;
    va_start(a, fmt);
    fprintf(stderr, "  differs: ");
    vfprintf(stderr, fmt, a);
    fprintf(stderr, " (seed %llu)\n", (unsigned long long)seed);
    va_end(a);
}

/* The same bits; any NaN equals any. */
static int same(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof *a) && !(isnan(a[i]) && isnan(b[i])))
            return 0;
    return 1;
}

enum { GUARD = 64 };
static const float canary = 12345.0f;

static float *guarded(float *mem, size_t n)
{
    for (size_t i = 0; i < n + 2 * GUARD; i++)
        mem[i] = canary;
    return mem + GUARD;
}

static int guards_hold(const float *at, size_t n)
{
    for (int i = 0; i < GUARD; i++)
        if (at[-1 - i] != canary || at[n + (size_t)i] != canary)
            return 0;
    return 1;
}

/* Levels above plain C that run here. */
#define EACH_ISA(isa)                                                                              \
    for (int l_ = CPU_AVX2; l_ <= (int)cpu_level_native(); l_++)                                   \
        for (const struct cpu_isa *isa = cpu_isa((enum cpu_level)l_); isa; isa = NULL)

/* ---- Matrices ------------------------------------------------------------------------------- */
enum { MAX_COL = 2560, MAX_TOK = 33 };
enum pattern { RANDOM, LOWEST, HIGHEST, TINY, N_PATTERN };

static void put_f16(uint8_t *b, float x)
{
    uint16_t h = quant_f32_to_f16(x);
    memcpy(b, &h, 2);
}

/* Where a block's f16 scales stand. */
static int scale_at(enum quant_type t, int i)
{
    if (t == QUANT_Q6_K)
        return i == 0 ? 208 : -1;
    return i == 0 ? 0 : quant_row(t)->flags & QUANT_MIN ? 2 : -1;
}

static void fill_matrix(enum quant_type t, uint8_t *file, int n_row, int n_col,
                        enum pattern pattern)
{
    const struct quant_row *q = quant_row(t);
    const size_t bytes = (size_t)n_row * quant_bytes(t, (size_t)n_col);
    if (q->flags & QUANT_FLOAT) {
        for (size_t i = 0; i < bytes / (size_t)q->block_bytes; i++) {
            float x = pattern == TINY ? uniform() * 1e-39f : uniform();
            if (q->encode)
                q->encode(&x, file + i * (size_t)q->block_bytes, 1);
        }
        return;
    }
    for (size_t i = 0; i < bytes; i++)
        file[i] = pattern == LOWEST ? 0 : pattern == HIGHEST ? 0xff : (uint8_t)next();
    for (size_t i = 0; i < bytes; i += (size_t)q->block_bytes) {
        for (int k = 0; k < 2; k++)
            if (scale_at(t, k) >= 0)
                put_f16(file + i + scale_at(t, k),
                        pattern == TINY ? (next() & 3 ? uniform() * 3e-6f : 0.0f) : uniform());
        if (t == QUANT_Q8_0 && pattern == LOWEST)
            memset(file + i + 2, 0x80, 32);
        if (t == QUANT_Q8_0 && pattern == HIGHEST)
            memset(file + i + 2, 0x7f, 32);
        if (t == QUANT_Q6_K && pattern == LOWEST)
            memset(file + i + 192, 0x80, 16);
        if (t == QUANT_Q6_K && pattern == HIGHEST)
            memset(file + i + 192, 0x7f, 16);
    }
}

static struct weight make_weight(enum quant_type t, int n_row, int n_col, const uint8_t *file)
{
    struct weight w = {
        .roles = ROLE_MATRIX | ROLE_LOOKUP, .type = t, .n_mat = 1, .n_row = n_row, .n_col = n_col};
    cpu_weight.plan(&w);
    w.bytes = w.mat_bytes;
    w.data = aligned_alloc(64, (w.bytes + 127) / 64 * 64);
    assert_non_null(w.data);
    memset(w.data, 0xa5, w.bytes);
    for (int r = 0; r < n_row; r += 16) {
        int n = n_row - r < 16 ? n_row - r : 16;
        cpu_weight.pack(&w, 0, r, n, file + (size_t)r * quant_bytes(t, (size_t)n_col));
    }
    return w;
}

struct acts {
    int8_t code[MAX_TOK * MAX_COL];
    float scale[MAX_TOK * MAX_COL / 32], f32[MAX_TOK * MAX_COL];
    int32_t sum[MAX_TOK * MAX_COL / 32];
};

static void fill_acts(struct acts *a, int n_col, enum pattern pattern)
{
    const int n_block = n_col / 32;
    for (int i = 0; i < MAX_TOK * n_col; i++)
        a->f32[i] = pattern == RANDOM || pattern == TINY ? uniform() * 3 : next() & 1 ? 1 : -1;
    for (int i = 0; i < n_col && pattern != RANDOM; i++) /* a whole row of one sign */
        a->f32[i] = 1, a->f32[n_col + i] = -1;
    for (int t = 0; t < MAX_TOK; t++)
        cpu_isa_c.to_int8(a->f32 + t * n_col, n_col, a->code + t * n_col, a->scale + t * n_block,
                          a->sum + t * n_block);
}

static struct cpu_x x_of(enum quant_type t, const struct acts *a, int n_col)
{
    struct cpu_x x = {a->code, a->scale, a->sum, NULL, n_col / 32, n_col};
    if (quant_row(t)->flags & QUANT_FLOAT)
        x = (struct cpu_x){.f32 = a->f32, .n_col = n_col};
    return x;
}

static void product(const struct cpu_isa *isa, enum quant_type t, const uint8_t *group,
                    const struct cpu_x *x, int n_tok, float *acc)
{
    static _Alignas(64) uint8_t panel[CPU_PANEL];
    memset(acc, 0, (size_t)n_tok * GROUP * sizeof *acc);
    for (int col = 0; col < x->n_col; col += CPU_CHUNK) {
        int n = x->n_col - col < CPU_CHUNK ? x->n_col - col : CPU_CHUNK;
        isa->expand[t](group, col, n, panel);
        isa->gemm[t](panel, x, col, n, n_tok, acc);
    }
}

static float mem[MAX_TOK * GROUP + 2 * GUARD], want[MAX_TOK * GROUP];

static void products_of(enum quant_type t, int n_col, enum pattern pattern, struct acts *a)
{
    static uint8_t file[33 * MAX_COL * 4];
    const char *name = quant_row(t)->name;
    fill_matrix(t, file, 33, n_col, pattern);
    fill_acts(a, n_col, pattern);
    struct weight w = make_weight(t, 33, n_col, file);
    const struct cpu_x x = x_of(t, a, n_col);
    for (int g = 0; g < 2; g++) {
        const uint8_t *group = (const uint8_t *)w.data + (size_t)g * cpu_group_bytes(t, n_col);
        product(&cpu_isa_c, t, group, &x, MAX_TOK, want);
        for (int n = 1; n <= CPU_FEW; n++) {
            float *out = guarded(mem, (size_t)n * GROUP);
            cpu_isa_c.gemv[t](group, &x, n, out);
            check(same(out, want, (size_t)n * GROUP), "c %s gemv %d columns %d", name, n, n_col);
        }
        EACH_ISA(isa)
        {
            for (int n = 1; n <= MAX_TOK; n++) {
                float *out = guarded(mem, (size_t)n * GROUP);
                product(isa, t, group, &x, n, out);
                check(same(out, want, (size_t)n * GROUP) && guards_hold(out, (size_t)n * GROUP),
                      "%s %s gemm %d tokens, %d columns, pattern %d", cpu_level_name(isa->level),
                      name, n, n_col, pattern);
            }
            for (int n = 1; n <= CPU_FEW; n++) {
                float *out = guarded(mem, (size_t)n * GROUP);
                isa->gemv[t](group, &x, n, out);
                check(same(out, want, (size_t)n * GROUP) && guards_hold(out, (size_t)n * GROUP),
                      "%s %s gemv %d tokens, %d columns, pattern %d", cpu_level_name(isa->level),
                      name, n, n_col, pattern);
            }
        }
    }
    free(w.data);
}

static void test_products(void **state)
{
    (void)state;
    static const int cols[] = {32, 64, 256, 512, 576, 640, MAX_COL};
    struct acts *a = malloc(sizeof *a);
    assert_non_null(a);
    for (int t = 0; t < QUANT_N; t++)
        for (size_t k = 0; k < sizeof cols / sizeof *cols; k++)
            for (int p = 0; p < N_PATTERN; p++)
                if (cols[k] % quant_row((enum quant_type)t)->block_elems == 0 &&
                    (cols[k] < MAX_COL ||
                     p == (t + (int)(seed & 1)) % N_PATTERN)) /* it takes long */
                    products_of((enum quant_type)t, cols[k], (enum pattern)p, a);
    for (int n_col = 1; n_col < 300; n_col += 13) /* floats take any number of columns */
        products_of(QUANT_F16, n_col, RANDOM, a);
    free(a);
    assert_int_equal(n_good, n_case);
}

/* The plain-C product against dequantised doubles: the formula itself. */
static void test_meaning(void **state)
{
    (void)state;
    static uint8_t file[32 * 512 * 4];
    static float row[512];
    struct acts *a = malloc(sizeof *a);
    assert_non_null(a);
    for (int t = 0; t < QUANT_N; t++) {
        fill_matrix((enum quant_type)t, file, 32, 512, RANDOM);
        fill_acts(a, 512, RANDOM);
        struct weight w = make_weight((enum quant_type)t, 32, 512, file);
        const struct cpu_x x = x_of((enum quant_type)t, a, 512);
        product(&cpu_isa_c, (enum quant_type)t, w.data, &x, MAX_TOK, want);
        double err = 0, all = 0;
        for (int r = 0; r < 32; r++) {
            cpu_weight.row_f32(&w, 0, r, row);
            for (int tok = 0; tok < MAX_TOK; tok++) {
                double sum = 0;
                for (int i = 0; i < 512; i++)
                    sum += (double)row[i] * (x.f32 ? (double)x.f32[tok * 512 + i]
                                                   : (double)a->code[tok * 512 + i] *
                                                         (double)a->scale[(tok * 512 + i) / 32]);
                err +=
                    (sum - (double)want[tok * GROUP + r]) * (sum - (double)want[tok * GROUP + r]);
                all += sum * sum;
            }
        }
        check(err <= 1e-12 * all, "%s: NMSE %g", quant_row((enum quant_type)t)->name, err / all);
        free(w.data);
    }
    free(a);
    assert_int_equal(n_good, n_case);
}

static void test_pack(void **state)
{
    (void)state;
    static uint8_t file[33 * MAX_COL * 4];
    static float got[MAX_COL], dec[MAX_COL];
    static const int cols[] = {32, 256, 640, 2560};
    for (int t = 0; t < QUANT_N; t++)
        for (int n_row = 1; n_row <= 33; n_row++)
            for (size_t k = 0; k < 4; k++) {
                const struct quant_row *q = quant_row((enum quant_type)t);
                if (cols[k] % q->block_elems)
                    continue;
                const size_t row = quant_bytes((enum quant_type)t, (size_t)cols[k]);
                fill_matrix((enum quant_type)t, file, n_row, cols[k], (enum pattern)(next() % 4));
                struct weight w = make_weight((enum quant_type)t, n_row, cols[k], file);
                int good = 1;
                for (int r = 0; r < n_row; r++) {
                    q->decode(file + (size_t)r * row, dec, (size_t)cols[k]);
                    cpu_weight.row_f32(&w, 0, r, got);
                    good &= same(got, dec, (size_t)cols[k]);
                }
                check(good, "%s: rows %d x %d packed and read back", q->name, n_row, cols[k]);
                check(w.mat_bytes == (size_t)((n_row + 31) / 32 * 32) * row, "%s: bytes", q->name);
                free(w.data);
            }
    assert_int_equal(n_good, n_case);
}

/* ---- Rows ------------------------------------------------------------------------------------ */
enum { MAX_N = 700 };
static float va[MAX_N], vb[MAX_N], vw[MAX_N], y_c[MAX_N + 2 * GUARD], y_i[MAX_N + 2 * GUARD];

static void fill_rows(int n, int special)
{
    for (int i = 0; i < n; i++) {
        va[i] = uniform() * (next() & 1 ? 1 : 90);
        vb[i] = uniform();
        vw[i] = uniform();
        if (special && next() % 8 == 0)
            va[i] =
                (float[]){0, -0.0f, INFINITY, -INFINITY, NAN, 1e-40f, 3e38f, -88.5f}[next() % 8];
    }
}

#define ROWS(what, n_out, call)                                                                    \
    do {                                                                                           \
        float *y = guarded(y_c, (size_t)(n_out));                                                  \
        const struct cpu_isa *k = &cpu_isa_c;                                                      \
        call;                                                                                      \
        y = guarded(y_i, (size_t)(n_out));                                                         \
        k = isa;                                                                                   \
        call;                                                                                      \
        check(same(y_c + GUARD, y_i + GUARD, (size_t)(n_out)) && guards_hold(y, (size_t)(n_out)),  \
              "%s " what " of %d", cpu_level_name(isa->level), n);                                 \
    } while (0)

static void rows_of(const struct cpu_isa *isa, int n, int special)
{
    fill_rows(n, special);
    ROWS("add", n, k->add(y, va, vb, n));
    ROWS("add_one", n, k->add_one(y, va, vb[0], n));
    ROWS("mul", n, k->mul(y, va, vb, n));
    ROWS("mul_one", n, k->mul_one(y, va, vb[0], n));
    ROWS("silu", n, k->silu(y, va, n));
    ROWS("gelu", n, k->gelu(y, va, n));
    ROWS("tanh", n, k->tanh(y, va, n));
    ROWS("silu_mul", n, k->silu_mul(y, va, vb, n));
    ROWS("gelu_mul", n, k->gelu_mul(y, va, vb, n));
    ROWS("sum_sq", 1, y[0] = k->sum_sq(NULL, va, NULL, n));
    ROWS("sum_sq of a sum", n, (void)k->sum_sq(y, va, vb, n));
    ROWS("norm", n, k->norm(y, va, NULL, 0.37f, vw, n));
    ROWS("norm of a sum", n, k->norm(y, va, vb, 0.37f, NULL, n));
    ROWS("softmax", n, (memcpy(y, vb, (size_t)n * 4), k->softmax(y, n, NULL)));
    ROWS("softmax with a sink", n, (memcpy(y, vb, (size_t)n * 4), k->softmax(y, n, vw)));
    ROWS("mask", n, (memcpy(y, vb, (size_t)n * 4), k->mask(y, 0.3f, 0.5f, n, n / 3, n - n / 4)));
    ROWS("argmax", 2, y[0] = (float)k->argmax(va, n, y + 1));
    uint16_t h_c[MAX_N], h_i[MAX_N];
    cpu_isa_c.to_f16(h_c, va, n);
    isa->to_f16(h_i, va, n);
    ROWS("from_f16", n, k->from_f16(y, h_c, n));
    if (!special)
        check(memcmp(h_c, h_i, (size_t)n * 2) == 0, "%s to_f16 of %d", cpu_level_name(isa->level),
              n);
    int8_t code[2][MAX_N + 32];
    float scale[2][MAX_N / 32 + 1];
    int32_t sum[2][MAX_N / 32 + 1];
    const size_t nb = (size_t)(n + 31) / 32;
    cpu_isa_c.to_int8(va, n, code[0], scale[0], sum[0]);
    isa->to_int8(va, n, code[1], scale[1], sum[1]);
    check(!memcmp(code[0], code[1], nb * 32) && !memcmp(sum[0], sum[1], nb * 4) &&
              same(scale[0], scale[1], nb),
          "%s to_int8 of %d", cpu_level_name(isa->level), n);
}

static void test_rows(void **state)
{
    (void)state;
    EACH_ISA(isa)
    for (int n = 1; n < MAX_N; n += n < 70 ? 1 : 97)
        for (int special = 0; special < 2; special++)
            rows_of(isa, n, special);
    EACH_ISA(isa)
    for (int n = 2; n <= 256; n += 2) { /* n rotated columns of 300 */
        fill_rows(MAX_N, 0);
        for (int neox = 0; neox < 2; neox++) {
            ROWS("rope", 300, k->rope(y, va, vb, n, 300, neox));
            ROWS("rope in place", 300, (memcpy(y, va, 1200), k->rope(y, y, vb, n, 300, neox)));
        }
    }
    assert_int_equal(n_good, n_case);
}

/* ---- Attention ------------------------------------------------------------------------------- */
enum { MAX_M = 13, MAX_D = 256 };
struct attn {
    float q[MAX_M * MAX_D], k[64 * MAX_D], v[64 * MAX_D], s[MAX_M * 64], o[MAX_M * MAX_D];
    float max[MAX_M], sum[MAX_M], corr[MAX_M];
};

static void attend(const struct cpu_isa *isa, struct attn *a, int m, int d_k, int d_v, int k0,
                   int k1, float cap)
{
    isa->qk(a->s, a->q, a->k, d_k, m);
    isa->soft(a->s, 0.125f, cap, k0, k1, a->max, a->sum, a->corr, m);
    isa->pv(a->o, a->s, a->corr, a->v, d_v, k0, k1, m);
    for (int i = 1; i < m; i++)
        isa->merge(a->o + i * d_v, a->max + i, a->sum + i, a->o, a->max[0], a->sum[0], d_v);
}

static void test_attention(void **state)
{
    (void)state;
    struct attn *a = malloc(3 * sizeof *a);
    assert_non_null(a);
    EACH_ISA(isa)
    for (int i = 0; i < 400; i++) {
        const int m = 1 + (int)(next() % MAX_M), d_k = 1 + (int)(next() % MAX_D);
        const int d_v = i % 2 ? 1 + (int)(next() % MAX_D) : 64 * (1 + (int)(next() % 4));
        const int k0 = i % 3 ? 0 : (int)(next() % 64);
        const int k1 = i % 3 == 2 ? 64 : k0 + 1 + (int)(next() % (uint64_t)(64 - k0));
        float *f = (float *)a;
        for (size_t j = 0; j < sizeof *a / 4; j++)
            f[j] = uniform() * 2;
        for (int j = 0; j < m; j++) {
            a->max[j] = i % 5 ? uniform() : -INFINITY;
            a->sum[j] = i % 5 ? 3 : 0;
        }
        a[2] = a[1] = a[0];
        attend(&cpu_isa_c, a + 1, m, d_k, d_v, k0, k1, i % 4 ? 0 : 30.0f);
        attend(isa, a + 2, m, d_k, d_v, k0, k1, i % 4 ? 0 : 30.0f);
        check(same((float *)(a + 1), (float *)(a + 2), sizeof *a / 4),
              "%s attention m %d d_k %d d_v %d keys %d..%d", cpu_level_name(isa->level), m, d_k,
              d_v, k0, k1);
    }
    free(a);
    assert_int_equal(n_good, n_case);
}

/* What is not finite comes to light: as a NaN scale, as id -1. */
static void test_not_finite(void **state)
{
    (void)state;
    for (int l = CPU_C; l <= (int)cpu_level_native(); l++)
        for (int i = 0; i < 70; i++)
            for (int kind = 0; kind < 3; kind++) {
                const struct cpu_isa *isa = cpu_isa((enum cpu_level)l);
                float x[70], scale[3], best;
                int8_t code[96];
                int32_t sum[3];
                for (int k = 0; k < 70; k++)
                    x[k] = uniform();
                x[i] = kind == 0 ? NAN : kind == 1 ? -INFINITY : -NAN;
                isa->to_int8(x, 70, code, scale, sum);
                check(isnan(scale[i / 32]) && !isnan(scale[(i / 32 + 1) % 3]),
                      "%s to_int8, %d is %g", cpu_level_name(isa->level), i, (double)x[i]);
                check(isa->argmax(x, 70, &best) == -1 && isnan(best), "%s argmax, %d is %g",
                      cpu_level_name(isa->level), i, (double)x[i]);
            }
    assert_int_equal(n_good, n_case);
}

/* functions.h against the C library in double. */
static double worst(double got, double exact, double so_far)
{
    const double e = fabs(got - exact) / (fabs(exact) + 1e-30);
    return e > so_far ? e : so_far;
}

static void test_functions(void **state)
{
    (void)state;
    double e_exp = 0, e_tanh = 0, e_silu = 0, e_gelu = 0, e_sin = 0;
    for (int i = 0; i < 200000; i++) {
        const float x = uniform() * (i % 2 ? 20 : 1) * (i % 3 ? 1 : 0.01f);
        float y, s[2] = {0, x};
        const double u =
            0.79788456080286535588 * ((double)x + 0.044715 * (double)x * (double)x * (double)x);
        cpu_isa_c.softmax(s, 2, NULL); /* 1 / (1 + exp(x)) */
        e_exp = worst(s[0], 1 / (1 + exp((double)x)), e_exp);
        cpu_isa_c.tanh(&y, &x, 1);
        e_tanh = worst(y, tanh((double)x), e_tanh);
        cpu_isa_c.silu(&y, &x, 1);
        e_silu = worst(y, (double)x / (1 + exp(-(double)x)), e_silu);
        cpu_isa_c.gelu(&y, &x, 1);
        if (x > -3) /* further out the tanh form cancels, and its result is nothing */
            e_gelu = worst(y, (double)x / (1 + exp(-2 * u)), e_gelu);
    }
    for (int i = 0; i < 100000; i++) {
        const double x = (double)uniform() * (i % 2 ? 1e6 : 4);
        float s, c;
        sincos_f64(x, &s, &c);
        e_sin = fmax(e_sin, fmax(fabs((double)s - sin(x)), fabs((double)c - cos(x))));
    }
    check(e_exp < 4e-7, "exp: error %g", e_exp);
    check(e_tanh < 4e-7, "tanh: error %g", e_tanh);
    check(e_silu < 4e-7, "silu: error %g", e_silu);
    check(e_gelu < 2e-6, "gelu: error %g", e_gelu);
    check(e_sin < 6e-8, "sincos: error %g", e_sin);
    assert_int_equal(n_good, n_case);
}

int main(void)
{
    const char *given = getenv("KERNELS_SEED");
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    rng = seed * 0x9E3779B97F4A7C15ULL | 1;
    fprintf(stderr, "seed %llu, levels up to %s\n", (unsigned long long)seed,
            cpu_level_name(cpu_level_native()));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack),      cmocka_unit_test(test_meaning),
        cmocka_unit_test(test_products),  cmocka_unit_test(test_rows),
        cmocka_unit_test(test_attention), cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_functions),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("kernels: %d/%d\n", n_good, n_case);
    return failed;
}
