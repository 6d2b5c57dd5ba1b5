/* MATMUL and its siblings with one input (Q, K and V, gate and up), with their biases; and what all
 * kernels with a matrix share: panels, bands of tokens, the operand's form.
 *
 * Loop order: bands of tokens, then groups of 32 rows of the matrix, then chunks of columns; a
 * chunk is expanded once and meets all tokens of the band while it is in the first-level cache. */
#include "backend/cpu/cpu.h"

#include <math.h>
#include <string.h>

#include "fuse/names.h"

enum { ACC_BYTES = CPU_BAND * GROUP * (int)sizeof(float) };

size_t cpu_work_bytes(const struct graph *graph, const struct group *g)
{
    (void)graph, (void)g;
    return 2 * (size_t)ACC_BYTES + CPU_PANEL;
}

struct cpu_work cpu_work(const struct call *c)
{
    uint8_t *at = c->scratch;
    return (struct cpu_work){{(float *)(void *)at, (float *)(void *)(at + ACC_BYTES)},
                             at + 2 * ACC_BYTES};
}

struct cpu_x cpu_x(const struct call *c, int name, const struct weight *w)
{
    struct cpu_x x = {.n_col = (int)w->n_col};
    if (quant_row(w->type)->flags & QUANT_INT8_X) {
        const struct int8_rows rows8 = arg_int8(c, name, 0);
        x.code = rows8.code;
        x.scale = rows8.scale;
        x.sum = rows8.sum;
        x.n_block = rows8.n_block;
    } else {
        x.f32 = arg_f32(c, name, 0);
    }
    return x;
}

static struct cpu_x from_row(const struct cpu_x *x, int tok)
{
    struct cpu_x at = *x;
    const size_t row = (size_t)tok;
    if (x->f32) {
        at.f32 += row * (size_t)x->n_col;
    } else {
        at.code += row * (size_t)x->n_block * BLOCK;
        at.scale += row * (size_t)x->n_block;
        at.sum += row * (size_t)x->n_block;
    }
    return at;
}

void cpu_product(const struct cpu_isa *isa, const struct weight *w, int mat, int group,
                 const struct cpu_x *x, int tok, int n_tok, uint8_t *panel, float *acc)
{
    const struct cpu_x at = from_row(x, tok);
    const uint8_t *home = (const uint8_t *)w->data + (size_t)mat * w->mat_bytes +
                          (size_t)group * cpu_group_bytes(w->type, w->n_col);
    if (n_tok <= CPU_FEW) {
        isa->gemv[w->type](home, &at, n_tok, acc);
        return;
    }
    memset(acc, 0, (size_t)n_tok * GROUP * sizeof *acc);
    for (int col = 0; col < at.n_col; col += CPU_CHUNK) {
        const int n = at.n_col - col < CPU_CHUNK ? at.n_col - col : CPU_CHUNK;
        isa->expand[w->type](home, col, n, panel);
        isa->gemm[w->type](panel, &at, col, n, n_tok, acc);
    }
}

struct part {
    int rep, tok, n_tok;
    struct span cols;
};

static void matmul_part(const struct call *c, const struct part *p)
{
    const struct cpu_isa *isa = call_isa(c);
    const struct cpu_work work = cpu_work(c);
    const struct weight *w = arg_w(c, W, p->rep);
    const struct cpu_x x = cpu_x(c, X, w);
    const float *bias = has(c, B) ? arg_f32(c, B, p->rep) : NULL;
    float *out = out_f32(c, Y, p->rep);
    const int n_row = row_len(val(c, Y, p->rep));
    for (int g = p->cols.lo / GROUP; g * GROUP < p->cols.hi; g++) {
        const int lo = g * GROUP < p->cols.lo ? p->cols.lo : g * GROUP;
        const int hi = (g + 1) * GROUP < p->cols.hi ? (g + 1) * GROUP : p->cols.hi;
        cpu_product(isa, w, 0, g, &x, p->tok, p->n_tok, work.panel, work.acc[0]);
        for (int t = 0; t < p->n_tok; t++) {
            float *y = out + (size_t)(p->tok + t) * (size_t)n_row + lo;
            const float *acc = work.acc[0] + t * GROUP + (lo - g * GROUP);
            if (bias)
                isa->add(y, acc, bias + lo, hi - lo);
            else
                memcpy(y, acc, (size_t)(hi - lo) * sizeof *y);
        }
    }
}

void cpu_matmul(const struct call *c)
{
    const struct span tok = call_rows(c, X);
    for (int t = tok.lo; t < tok.hi; t += CPU_BAND)
        for (int rep = 0; rep < n_rep(c, W); rep++) {
            struct part p = {rep, t, tok.hi - t < CPU_BAND ? tok.hi - t : CPU_BAND,
                             call_cols(c, Y, rep)};
            if (wanted(c, Y, rep))
                matmul_part(c, &p);
        }
}
