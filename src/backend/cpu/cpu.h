/* The cpu backend: one list of lines, and per ISA level a table of micro-kernels (struct cpu_isa)
 * that the kernels find through their call's native_kind. Micro-kernels take plain pointers and
 * give the same bits at every level: NUMERICS.md fixes the order of every sum.
 *
 * A matrix is packed in groups of 32 rows (layout.h). Few tokens (up to CPU_FEW) go through gemv;
 * more through expand, which turns CPU_CHUNK columns of a group into a panel of byte codes and f32
 * scales, and gemm, which runs all tokens over the panel. Both give the same bits. */
#ifndef CPU_CPU_H
#define CPU_CPU_H

#include "base/cpu.h"
#include "native/native.h"

#include "backend/cpu/layout.h"

enum {
    CPU_FEW = 4,                /* tokens that gemv takes at once */
    CPU_NARROW = 8,             /* rows of a matrix that each thread rather works through itself */
    CPU_BAND = 512,             /* tokens that a panel serves before it is made anew */
    CPU_CHUNK = 256,            /* columns of a panel, a multiple of the superblock */
    CPU_PANEL = 32 * 1024 + 64, /* bytes of a panel: CPU_CHUNK x 32 floats */
    CPU_KEYS = 64,              /* keys of an attention tile */
    CPU_PART = 256              /* keys of an attention partial */
};

/* Activations: rows of one value in the form that the matrix asks for. */
struct cpu_x {
    const int8_t *code; /* [n_tok][n_block * 32] */
    const float *scale; /* [n_tok][n_block] */
    const int32_t *sum; /* [n_tok][n_block] */
    const float *f32;   /* [n_tok][n_col], for float weights; else NULL */
    int n_block, n_col;
};

/* Asks for the lines of a weight stream before they are read, the far ones from memory, the near
 * ones from the caches behind: the hardware's own look-ahead ends at 4 KiB, and by itself reached
 * three quarters of what memory gives. Past the stream's end it asks for what is not read. */
enum { CPU_AHEAD_FAR = 16384, CPU_AHEAD_NEAR = 4096, CPU_LINE = 64 };
static inline void cpu_ahead(const void *at, int bytes)
{
    for (int i = 0; i < bytes; i += CPU_LINE) {
        const uintptr_t line = (uintptr_t)at + (uintptr_t)i;
        __builtin_prefetch((const void *)(line + CPU_AHEAD_FAR), 0, 2);
        __builtin_prefetch((const void *)(line + CPU_AHEAD_NEAR), 0, 3);
    }
}

/* One per ISA level; gemv, expand, gemm by quant type. */
struct cpu_isa {
    enum cpu_level level;
    /* out[n_tok][32] = group x columns; n_tok 1..CPU_FEW */
    void (*gemv[QUANT_N])(const uint8_t *group, const struct cpu_x *x, int n_tok, float *out);
    /* columns [col, col + n) of a group; col is a multiple of CPU_CHUNK, n <= CPU_CHUNK */
    void (*expand[QUANT_N])(const uint8_t *group, int col, int n, uint8_t *panel);
    /* acc[n_tok][32] goes on with the panel's columns */
    void (*gemm[QUANT_N])(const uint8_t *panel, const struct cpu_x *x, int col, int n, int n_tok,
                          float *acc);

    void (*to_int8)(const float *x, int n, int8_t *code, float *scale, int32_t *sum);
    /* Elementwise; y may be an operand. */
    void (*add)(float *y, const float *a, const float *b, int n);
    void (*add_one)(float *y, const float *a, float b, int n);
    void (*mul)(float *y, const float *a, const float *b, int n);
    void (*mul_one)(float *y, const float *a, float b, int n);
    void (*silu)(float *y, const float *a, int n);
    void (*gelu)(float *y, const float *a, int n);
    void (*tanh)(float *y, const float *a, int n);
    void (*silu_mul)(float *y, const float *a, const float *b, int n);
    void (*gelu_mul)(float *y, const float *a, const float *b, int n);
    /* Sum of squares of x, or of x + r; the sums go to a unless it is NULL. */
    float (*sum_sq)(float *a, const float *x, const float *r, int n);
    /* y = (x or x + r) * inv, then times w unless it is NULL */
    void (*norm)(float *y, const float *x, const float *r, float inv, const float *w, int n);
    /* y[d] = x rotated by table [n_rot / 2][cos, sin]; y may be x. */
    void (*rope)(float *y, const float *x, const float *table, int n_rot, int d, int neox);
    void (*to_f16)(uint16_t *y, const float *x, int n);
    void (*from_f16)(float *y, const uint16_t *x, int n);

    /* Attention, on a tile of CPU_KEYS keys; q, s, o are arrays of m queries.
     * s[m][64] = q[m][d_k] x k[d_k][64] */
    void (*qk)(float *s, const float *q, const float *k, int d_k, int m);
    /* Scores of keys [k0, k1) to weights: the running maximum and sum of each query go on; corr is
     * what its older output is to be multiplied by. Weights of other keys become 0. */
    void (*soft)(float *s, float scale, float cap, int k0, int k1, float *max, float *sum,
                 float *corr, int m);
    /* o[m][d_v] = o * corr + s[m][k0..k1) x v[64][d_v] */
    void (*pv)(float *o, const float *s, const float *corr, const float *v, int d_v, int k0, int k1,
               int m);
    /* The partial (max_b, sum_b, b[d_v]) joins (max, sum, a). */
    void (*merge)(float *a, float *max, float *sum, const float *b, float max_b, float sum_b,
                  int d_v);
    /* n scores in place: scale, cap; keys outside [k0, k1) become -inf. */
    void (*mask)(float *s, float scale, float cap, int n, int k0, int k1);
    /* Softmax over n scores in place; sink: one more score without a value, or NULL. */
    void (*softmax)(float *s, int n, const float *sink);
    /* Index of the greatest, the lower of equals, and its value to *best; -1 and NaN if any of them
     * is infinite or NaN. */
    int (*argmax)(const float *x, int n, float *best);

    /* n rounds of the bare unit; multiply-adds done. For bench.c. */
    double (*spin_int8)(int64_t n, float *sink);
    double (*spin_f32)(int64_t n, float *sink);
};

extern const struct cpu_isa cpu_isa_c;
#if defined(__x86_64__)
extern const struct cpu_isa cpu_isa_avx2, cpu_isa_avx512;
#endif

/* Micro benchmark: a line per format x level x {1, 3, 64} tokens, with shares of the read bandwidth
 * and of the units that it measures first; levels up to the option cpu-mask. */
CHECKED sinter_status cpu_bench(sinter_host *host, bool json, struct text_buf *out,
                                sinter_error *err);
/* Read bandwidth [byte/s] and int8 rate [multiply-adds/s] of all threads. */
CHECKED sinter_status cpu_measure(sinter_host *host, double *read_rate, double *int8_rate,
                                  sinter_error *err);

/* The micro-kernels of a level; levels that this build lacks give the one below. */
const struct cpu_isa *cpu_isa(enum cpu_level level);
const struct native_kind *cpu_kind(enum cpu_level level);
extern const struct fuse_list cpu_list;
extern const struct weight_ops cpu_weight;
/* Format of an INT8 type; bits = 0: it is no INT8 type. */
struct cpu_format cpu_format(enum quant_type type);

/* weight.layout */
enum cpu_layout {
    CPU_ROWS_F32,  /* [row][column] f32: vectors, constants */
    CPU_ROWS_FILE, /* rows as in the file: looked up only */
    CPU_GROUPS     /* layout.h */
};
size_t cpu_group_bytes(enum quant_type type, int64_t n_col);

struct call;
static inline const struct cpu_isa *call_isa(const struct call *c)
{
    return call_kind(c)->isa;
}

/* ---- What the matmul kernels share (matmul.c) ---- */
struct cpu_work {
    float *acc[2];
    uint8_t *panel;
}; /* in the call's scratch */
size_t cpu_work_bytes(const struct graph *graph, const struct group *g);
struct cpu_work cpu_work(const struct call *c);
/* The operand `name` as the matrix w wants it. */
struct cpu_x cpu_x(const struct call *c, int name, const struct weight *w);
/* acc[n_tok][32]: rows [32 group, 32 group + 32) of matrix `mat` times rows tok.. of x. */
void cpu_product(const struct cpu_isa *isa, const struct weight *w, int mat, int group,
                 const struct cpu_x *x, int tok, int n_tok, uint8_t *panel, float *acc);

#endif
