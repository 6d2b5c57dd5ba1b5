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
    float *x, *scale;  /* operands of x8 and xf */
    int8_t *code;
    int32_t *sum;
    enum cpu_level top;
    struct text_buf *out;
    int n_line;
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
    for (size_t i = lo; i < hi; i += 8) {
        cpu_ahead(&p[i], CPU_LINE);
        for (size_t k = 0; k < 8; k++)
            s[k] ^= p[i + k];
    }
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

/* "Q4_0 avx512 64 tokens: 512.1 GMAC/s, 70 % of int8 unit" */
static void print_line(const struct bench *b, bool json, const char *measure, double rate,
                       const char *of, double share)
{
    const char *type = quant_row(b->type)->name, *level = cpu_level_name(b->isa->level);
    if (json)
        text_buf_printf(b->out,
                        "%s{\"type\":\"%s\",\"level\":\"%s\",\"tokens\":%d,\"%s\":%.2f,"
                        "\"share\":%.4f}",
                        b->n_line ? ",\n" : "", type, level, b->n_tok, measure, rate, share);
    else
        text_buf_printf(b->out, "%-5s %-7s %3d tokens %8.1f %-7s %4.0f %% of %s\n", type, level,
                        b->n_tok, rate, measure, share * 100, of);
}

static void line(struct bench *b, enum quant_type type, int n_tok, bool json)
{
    const size_t group = cpu_group_bytes(type, N_COL);
    const bool floats = quant_row(type)->flags & QUANT_FLOAT;
    b->type = type;
    b->n_tok = n_tok;
    b->bytes = (size_t)(n_tok > CPU_FEW ? PANEL_BYTES : STREAM_BYTES) / group * group;
    const double s = best(b, product_job), gb = (double)b->bytes / s * 1e-9;
    const double gmac = (double)(b->bytes / group) * GROUP * N_COL * n_tok / s * 1e-9;
    if (n_tok > CPU_FEW && floats)
        print_line(b, json, "GMAC/s", gmac, "f32 unit", gmac / b->f32_unit);
    else if (n_tok > CPU_FEW)
        print_line(b, json, "GMAC/s", gmac, "int8 unit", gmac / b->int8_unit);
    else
        print_line(b, json, "GB/s", gb, "read bandwidth", gb / b->bandwidth);
    b->n_line++;
}

static void fill(struct bench *b)
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
    b->xf = (struct cpu_x){.f32 = b->x, .n_col = N_COL};
    b->x8 = (struct cpu_x){b->code, b->scale, b->sum, NULL, N_COL / BLOCK, N_COL};
    for (int t = 0; t < N_TOK; t++)
        cpu_isa_c.to_int8(b->x + t * N_COL, N_COL, b->code + t * N_COL,
                          b->scale + t * (N_COL / BLOCK), b->sum + t * (N_COL / BLOCK));
}

static void measure_bandwidth(struct bench *b)
{
    b->bytes = STREAM_BYTES;
    b->bandwidth = STREAM_BYTES / best(b, read_job) * 1e-9;
}

static void run_level(struct bench *b, enum cpu_level level, bool json)
{
    static const enum quant_type types[] = {QUANT_Q4_0, QUANT_Q4_1, QUANT_Q5_0, QUANT_Q5_1,
                                            QUANT_Q8_0, QUANT_Q4_K, QUANT_Q5_K, QUANT_Q6_K,
                                            QUANT_F16,  QUANT_BF16};
    static const int tokens[] = {1, 3, N_TOK};
    b->isa = cpu_isa(level);
    b->int8_unit = unit_rate(b, false);
    b->f32_unit = unit_rate(b, true);
    if (!json)
        text_buf_printf(b->out, "%s: int8 unit %.1f GMAC/s, f32 unit %.1f GMAC/s\n",
                        cpu_level_name(level), b->int8_unit, b->f32_unit);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t k = 0; k < sizeof tokens / sizeof *tokens; k++)
            line(b, types[t], tokens[k], json);
}

static void bench_free(struct bench *b)
{
    host_free(b->host, b->weights);
    host_free(b->host, b->panel);
    host_free(b->host, b->acc);
    host_free(b->host, b->sink);
    host_free(b->host, b->done);
    host_free(b->host, b->x);
    host_free(b->host, b->code);
    host_free(b->host, b->scale);
    host_free(b->host, b->sum);
}

/* Memory and operands; bench_free also after a failure. */
static sinter_status bench_make(sinter_host *host, struct bench *b, sinter_error *err)
{
    *b = (struct bench){.host = host};
    TRY(cpu_level_masked(host_options(host)->cpu_mask, &b->top, err));
    TRY(host_pool(host, &b->pool, err));
    const size_t n_thread = (size_t)pool_n_thread(b->pool);
    NEW(host, b->weights, STREAM_BYTES, err);
    NEW(host, b->panel, n_thread * CPU_PANEL, err);
    NEW(host, b->acc, n_thread * N_TOK * GROUP, err);
    NEW(host, b->sink, n_thread * 16, err);
    NEW(host, b->done, n_thread * 8, err);
    NEW(host, b->x, N_TOK * N_COL, err);
    NEW(host, b->code, N_TOK * N_COL, err);
    NEW(host, b->scale, N_TOK * N_COL / BLOCK, err);
    NEW(host, b->sum, N_TOK * N_COL / BLOCK, err);
    for (int i = 0; i < N_TOK * N_COL; i++)
        b->x[i] = (float)((i * 7919) % 1000 - 500) * 0.01f;
    fill(b);
    return SINTER_OK;
}

sinter_status cpu_bench(sinter_host *host, bool json, struct text_buf *out, sinter_error *err)
{
    struct bench b;
    sinter_status status = SINTER_OK;
    TRY_OUT(bench_make(host, &b, err));
    b.out = out;
    measure_bandwidth(&b);
    text_buf_printf(out,
                    json ? "{\"threads\":%d,\"read_gb_s\":%.2f,\"lines\":[\n"
                         : "%d threads, read bandwidth %.1f GB/s\n",
                    pool_n_thread(b.pool), b.bandwidth);
    const enum cpu_level first = b.top > CPU_C ? CPU_AVX2 : CPU_C;
    for (enum cpu_level l = first; l <= b.top; l++)
        run_level(&b, l, json);
    text_buf_printf(out, json ? "\n]}\n" : "kernels measured: %d/%d\n", b.n_line,
                    ((int)b.top - (int)first + 1) * 30);
    status = text_buf_end(out, err);
out:
    bench_free(&b);
    return status;
}

sinter_status cpu_measure(sinter_host *host, double *read_rate, double *int8_rate,
                          sinter_error *err)
{
    struct bench b;
    sinter_status status = SINTER_OK;
    TRY_OUT(bench_make(host, &b, err));
    measure_bandwidth(&b);
    b.isa = cpu_isa(b.top);
    *read_rate = b.bandwidth * 1e9;
    *int8_rate = unit_rate(&b, false) * 1e9;
out:
    bench_free(&b);
    return status;
}
