/* Graphs of two layers as the model module would build them, by hand, for tests: a plain llama, one
 * with biases on Q, K and V, one with sandwich norms, QK-norms and GELU, one that writes each slot
 * twice, so that attention reads a version that the same step replaces. */
#ifndef FUSE_MODEL_FIXTURE_H
#define FUSE_MODEL_FIXTURE_H

#include <stdio.h>

#include "graph/graph.h"

enum { FIXTURE_LLAMA, FIXTURE_QWEN2, FIXTURE_GEMMA, FIXTURE_TWICE, FIXTURE_N };

struct fixture {
    struct graph *g;
    int which, layer, n_tensor;
    int ids, pos, out_rows, table, table_out;
    char name[2][64];
    int turn;
};

static inline const char *fixture_name(struct fixture *f, const char *what)
{
    char *name = f->name[f->turn ^= 1];
    if (f->layer >= 0)
        snprintf(name, 64, "blk.%d.%.48s", f->layer, what);
    else
        snprintf(name, 64, "%.60s", what);
    return name;
}

static inline int fixture_weight(struct fixture *f, const char *what, int n_row, int n_col)
{
    char w[64];
    snprintf(w, sizeof w, "%.48s.weight", what);
    return graph_weight(f->g, fixture_name(f, w),
                        (struct weight_slice){f->n_tensor++, 0, n_row, n_row, 1, 1, 0, 0},
                        QUANT_Q8_0, n_row, n_col);
}

static inline int fixture_op(struct fixture *f, const char *what, enum op op, union attr at, int a,
                             int b, int c)
{
    int n = c >= 0 ? 3 : b >= 0 ? 2 : 1;
    return graph_add(f->g, fixture_name(f, what), op, at, n, (int[]){a, b, c});
}

static inline int fixture_norm(struct fixture *f, const char *what, int x, int d)
{
    char rms[64];
    snprintf(rms, sizeof rms, "%s.rms", what);
    int y = fixture_op(f, rms, OP_RMS_NORM, (union attr){.RMS_NORM = {1e-6f, 0}}, x, -1, -1);
    return fixture_op(f, what, OP_MUL, ATTR_NONE, y, fixture_weight(f, what, 1, d), -1);
}

static inline int fixture_linear(struct fixture *f, const char *what, int x, int n_row, int n_col,
                                 int n_head, bool bias)
{
    char mm[64], b[64];
    snprintf(mm, sizeof mm, "%s%s", what, bias ? ".mm" : "");
    snprintf(b, sizeof b, "%s.bias", what);
    int y = fixture_op(f, mm, OP_MATMUL, (union attr){.MATMUL = {n_head}}, x,
                       fixture_weight(f, what, n_row, n_col), -1);
    return bias ? fixture_op(f, what, OP_ADD, ATTR_NONE, y, fixture_weight(f, b, 1, n_row), -1) : y;
}

static inline int fixture_attention(struct fixture *f, int xq, int x, bool last)
{
    bool bias = f->which == FIXTURE_QWEN2, norm = f->which == FIXTURE_GEMMA;
    struct state_slot slot = {
        .kind = SLOT_KV, .layer = f->layer, .n_head_kv = 2, .d_k = 16, .d_v = 16};
    union attr neox = {.ROPE = {1}};
    int q = fixture_linear(f, "attn_q", xq, 64, 64, 4, bias);
    int k = fixture_linear(f, "attn_k", x, 32, 64, 2, bias);
    int v = fixture_linear(f, "attn_v", x, 32, 64, 2, bias);
    if (norm)
        q = fixture_norm(f, "attn_q_norm", q, 16);
    q = fixture_op(f, "attn_q_rope", OP_ROPE, neox, q, last ? f->table_out : f->table, -1);
    if (norm)
        k = fixture_norm(f, "attn_k_norm", k, 16);
    k = fixture_op(f, "attn_k_rope", OP_ROPE, neox, k, f->table, -1);
    int kv = graph_slot(f->g, fixture_name(f, "kv"), slot);
    kv = fixture_op(f, "kv_write", OP_KV_WRITE, ATTR_NONE, kv, k, v);
    int c = fixture_op(f, "attn_score", OP_QK, (union attr){.QK = {0.25f, 0, 0}}, q, kv, -1);
    c = fixture_op(f, "attn_softmax", OP_SOFTMAX, ATTR_NONE, c, -1, -1);
    c = fixture_op(f, "attn_mix", OP_PV, ATTR_NONE, c, kv, -1);
    if (f->which == FIXTURE_TWICE) /* what attention has read is replaced after it */
        fixture_op(f, "kv_write.again", OP_KV_WRITE, ATTR_NONE, kv, k, v);
    return fixture_linear(f, "attn_out", c, 64, 64, 1, false);
}

static inline int fixture_layer(struct fixture *f, int x, bool last)
{
    bool gemma = f->which == FIXTURE_GEMMA;
    int h = fixture_norm(f, "attn_norm", x, 64), hq = h;
    if (last) {
        hq = fixture_op(f, "attn_norm.out", OP_SELECT_ROWS, ATTR_NONE, h, f->out_rows, -1);
        x = fixture_op(f, "in.out", OP_SELECT_ROWS, ATTR_NONE, x, f->out_rows, -1);
    }
    h = fixture_attention(f, hq, h, last);
    if (gemma)
        h = fixture_norm(f, "attn_post_norm", h, 64);
    x = fixture_op(f, "attn_add", OP_ADD, ATTR_NONE, h, x, -1);
    h = fixture_norm(f, "ffn_norm", x, 64);
    int gate = fixture_linear(f, "ffn_gate", h, 96, 64, 1, false);
    int up = fixture_linear(f, "ffn_up", h, 96, 64, 1, false);
    gate = fixture_op(f, "ffn_act", gemma ? OP_GELU : OP_SILU, ATTR_NONE, gate, -1, -1);
    h = fixture_op(f, "ffn_glu", OP_MUL, ATTR_NONE, gate, up, -1);
    h = fixture_linear(f, "ffn_down", h, 64, 96, 1, false);
    if (gemma)
        h = fixture_norm(f, "ffn_post_norm", h, 64);
    return fixture_op(f, "ffn_add", OP_ADD, ATTR_NONE, h, x, -1);
}

/* NULL with err where an allocation failed. */
static inline struct graph *fixture_graph_try(sinter_host *host, int which, sinter_error *err)
{
    struct fixture f = {.which = which, .layer = -1};
    if (graph_create(host, "trunk", &f.g, err) != SINTER_OK)
        return NULL;
    f.ids = graph_input(f.g, PORT_IDS);
    f.pos = graph_input(f.g, PORT_POS);
    f.out_rows = graph_input(f.g, PORT_OUT_ROWS);
    int x = fixture_op(&f, "embed", OP_EMBED, ATTR_NONE, fixture_weight(&f, "token", 80, 64), f.ids,
                       -1);
    f.table = fixture_op(&f, "rope", OP_ROPE_TABLE, (union attr){.ROPE_TABLE = {16, 1e4f, 1}},
                         f.pos, -1, -1);
    f.table_out = fixture_op(&f, "rope.out", OP_SELECT_TABLE, ATTR_NONE, f.table, f.out_rows, -1);
    if (which == FIXTURE_GEMMA)
        x = fixture_op(&f, "embed.scale", OP_SCALE, (union attr){.SCALE = {8}}, x, -1, -1);
    for (f.layer = 0; f.layer < 2; f.layer++)
        x = fixture_layer(&f, x, f.layer == 1);
    f.layer = -1;
    x = fixture_norm(&f, "output_norm", x, 64);
    graph_port(f.g, x, PORT_HIDDEN);
    x = fixture_linear(&f, "output", x, 80, 64, 1, false);
    graph_port(f.g, x, PORT_LOGITS);
    graph_port(f.g, fixture_op(&f, "argmax", OP_ARGMAX, ATTR_NONE, x, -1, -1), PORT_ARGMAX);
    if (graph_finish(f.g, err) == SINTER_OK)
        return f.g;
    graph_free(f.g);
    return NULL;
}

static inline struct graph *fixture_graph(sinter_host *host, int which)
{
    sinter_error err;
    struct graph *g = fixture_graph_try(host, which, &err);
    if (!g)
        fail_msg("%s", err.message);
    return g;
}

#endif
