/* Micro benchmark of the matrix kernels on the pool's threads, best of a few rounds: first the read
 * bandwidth and the bare units, then format x level x tokens. Weights are random bytes in the
 * packed layout; 1 and 3 tokens run over more bytes than caches hold, 64 over a few groups per
 * thread. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "base/options.h"
#include "base/pool.h"

enum { N_COL = 2048, STREAM_BYTES = 256 << 20, PANEL_BYTES = 8 << 20, N_TOK = 64, ROUNDS = 5 };

struct bench {
    sinter_host *host;
    struct pool *pool;
    uint8_t *weights;
    struct cpu_x x8, xf;
    uint8_t *panel;
    float *acc, *sink; /* per thread, CPU_BAND * GROUP floats and a cache line */
    double *done;      /* per thread: multiply-adds */
    /* of the running job */
    const struct cpu_isa *isa;
    enum quant_type type;
    int n_tok;
    int64_t n; /* groups, or rounds of a unit */
    size_t bytes;
    bool floats;
    double bandwidth, int8_unit, f32_unit; /* GB/s; GMAC/s of the level at hand */
};

static void read_job(void *ctx, int thread, int n_thread)
{
    struct bench *b = ctx;
    const uint64_t *p = (const uint64_t *)(const void *)b->weights;
    const size_t n = b->bytes / 8, lo = n * (size_t)thread / (size_t)n_thread / 8 * 8;
    const size_t hi = n * (size_t)(thread + 1) / (size_t)n_thread / 8 * 8;
    uint64_t s[8] = {0};
    for (size_t i = lo; i < hi; i += 8)
        for (size_t k = 0; k < 8; k++)
            s[k] ^= p[i + k];
    for (int k = 0; k < 8; k++)
        b->sink[thread * 16] += (float)(s[k] & 1);
}

static void unit_job(void *ctx, int thread, int n_thread)
{
    struct bench *b = ctx;
    (void)n_thread;
    b->done[thread * 8] =
        (b->floats ? b->isa->spin_f32 : b->isa->spin_int8)(b->n, b->sink + thread * 16);
}

static void product_job(void *ctx, int thread, int n_thread)
{
    struct bench *b = ctx;
    const size_t group = cpu_group_bytes(b->type, N_COL);
    const struct weight w = {
        .type = b->type, .n_col = N_COL, .mat_bytes = 0, .data = b->weights, .layout = CPU_GROUPS};
    const struct cpu_x *x = quant_row(b->type)->flags & QUANT_FLOAT ? &b->xf : &b->x8;
    const int64_t n = (int64_t)(b->bytes / group);
    for (int64_t g = n * thread / n_thread; g < n * (thread + 1) / n_thread; g++)
        cpu_product(b->isa, &w, 0, (int)g, x, 0, b->n_tok, b->panel + (size_t)thread * CPU_PANEL,
                    b->acc + (size_t)thread * N_TOK * GROUP);
}

/* Best seconds of a job. */
static double best(struct bench *b, void (*job)(void *ctx, int thread, int n_thread))
{
    double s = 1e30;
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t t0 = host_clock_ns(b->host);
        pool_run(b->pool, pool_n_thread(b->pool), job, b);
        const double t = (double)(host_clock_ns(b->host) - t0) * 1e-9;
        s = t < s ? t : s;
    }
    return s;
}

static double unit_rate(struct bench *b, bool floats)
{
    double macs = 0;
    b->floats = floats;
    b->n = b->isa->level == CPU_C ? 20000000 : 2000000;
    const double s = best(b, unit_job);
    for (int t = 0; t < pool_n_thread(b->pool); t++)
        macs += b->done[t * 8];
    return macs / s * 1e-9;
}

static void line(struct bench *b, enum quant_type type, int n_tok, struct text_buf *out)
{
    const size_t group = cpu_group_bytes(type, N_COL);
    const bool floats = quant_row(type)->flags & QUANT_FLOAT;
    b->type = type;
    b->n_tok = n_tok;
    b->bytes = (size_t)(n_tok > CPU_FEW ? PANEL_BYTES : STREAM_BYTES) / group * group;
    const double s = best(b, product_job);
    const double gb = (double)b->bytes / s * 1e-9;
    const double gmac = (double)(b->bytes / group) * GROUP * N_COL * n_tok / s * 1e-9;
    const double unit = floats ? b->f32_unit : b->int8_unit;
    if (n_tok > CPU_FEW)
        text_buf_printf(out, "%-5s %-7s %3d tokens %8.1f GMAC/s %4.0f %% of %s unit\n",
                        quant_row(type)->name, cpu_level_name(b->isa->level), n_tok, gmac,
                        gmac / unit * 100, floats ? "f32" : "int8");
    else
        text_buf_printf(out, "%-5s %-7s %3d tokens %8.1f GB/s   %4.0f %% of read bandwidth\n",
                        quant_row(type)->name, cpu_level_name(b->isa->level), n_tok, gb,
                        gb / b->bandwidth * 100);
}

static void fill(struct bench *b, const float *x, int8_t *code, float *scale, int32_t *sum)
{
    uint64_t r = 88172645463325252u;
    for (size_t i = 0; i < STREAM_BYTES / 8; i++) {
        r ^= r << 13;
        r ^= r >> 7;
        r ^= r << 17;
        const uint64_t v = (r & 0x1b1b1b1b1b1b1b1bu) |
                           0x2020202020202020u; /* as f16, bf16, f32: small normal numbers */
        memcpy(b->weights + i * 8, &v, 8);
    }
    b->xf = (struct cpu_x){.f32 = x, .n_col = N_COL};
    b->x8 = (struct cpu_x){code, scale, sum, NULL, N_COL / BLOCK, N_COL};
    for (int t = 0; t < N_TOK; t++)
        cpu_isa_c.to_int8(x + t * N_COL, N_COL, code + t * N_COL, scale + t * (N_COL / BLOCK),
                          sum + t * (N_COL / BLOCK));
}

static void run_all(struct bench *b, enum cpu_level top, struct text_buf *out)
{
    static const enum quant_type types[] = {QUANT_Q4_0, QUANT_Q4_1, QUANT_Q5_0, QUANT_Q5_1,
                                            QUANT_Q8_0, QUANT_Q4_K, QUANT_Q5_K, QUANT_Q6_K,
                                            QUANT_F16,  QUANT_BF16};
    static const int tokens[] = {1, 3, N_TOK};
    b->bytes = STREAM_BYTES;
    b->bandwidth = STREAM_BYTES / best(b, read_job) * 1e-9;
    text_buf_printf(out, "%d threads, read bandwidth %.1f GB/s\n", pool_n_thread(b->pool),
                    b->bandwidth);
    int n = 0, n_level = 0;
    for (int l = top > CPU_C ? CPU_AVX2 : CPU_C; l <= (int)top; l++, n_level++) {
        b->isa = cpu_isa((enum cpu_level)l);
        b->int8_unit = unit_rate(b, false);
        b->f32_unit = unit_rate(b, true);
        text_buf_printf(out, "%s: int8 unit %.1f GMAC/s, f32 unit %.1f GMAC/s\n",
                        cpu_level_name((enum cpu_level)l), b->int8_unit, b->f32_unit);
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            for (size_t k = 0; k < 3; k++, n++)
                line(b, types[t], tokens[k], out);
    }
    text_buf_printf(out, "kernels measured: %d/%d\n", n, n_level * 30);
}

sinter_status cpu_bench(sinter_host *host, const char *mask, struct text_buf *out,
                        sinter_error *err)
{
    struct bench b = {.host = host};
    enum cpu_level top;
    sinter_status status = SINTER_OK;
    float *x = NULL, *scale = NULL;
    int8_t *code = NULL;
    int32_t *sum = NULL;
    TRY(cpu_level_masked(mask, &top, err));
    TRY(host_pool(host, &b.pool, err));
    const size_t n_thread = (size_t)pool_n_thread(b.pool);
    NEW_OUT(host, b.weights, STREAM_BYTES, err);
    NEW_OUT(host, b.panel, n_thread * CPU_PANEL, err);
    NEW_OUT(host, b.acc, n_thread * N_TOK * GROUP, err);
    NEW_OUT(host, b.sink, n_thread * 16, err);
    NEW_OUT(host, b.done, n_thread * 8, err);
    NEW_OUT(host, x, N_TOK * N_COL, err);
    NEW_OUT(host, code, N_TOK * N_COL, err);
    NEW_OUT(host, scale, N_TOK * N_COL / BLOCK, err);
    NEW_OUT(host, sum, N_TOK * N_COL / BLOCK, err);
    for (int i = 0; i < N_TOK * N_COL; i++)
        x[i] = (float)((i * 7919) % 1000 - 500) * 0.01f;
    fill(&b, x, code, scale, sum);
    run_all(&b, top, out);
    status = text_buf_end(out, err);
out:
    host_free(host, b.weights);
    host_free(host, b.panel);
    host_free(host, b.acc);
    host_free(host, b.sink);
    host_free(host, b.done);
    host_free(host, x);
    host_free(host, code);
    host_free(host, scale);
    host_free(host, sum);
    return status;
}
