/* Graphs made by hand: what no model of ours has yet. Weights are F32 where nothing is said. */
#ifndef TESTS_NATIVE_SYNTHETIC_H
#define TESTS_NATIVE_SYNTHETIC_H

#include "native/stack.h"

enum { SYN_VOCAB = 64, SYN_D = 32, SYN_KERNEL = 4, SYN_SNAP = 3 };

struct synthetic {
    struct graph *g;
    int ids, out_rows, n_tensor;
};

static inline int syn_weight_of(struct synthetic *s, const char *name, enum quant_type type,
                                int n_row, int n_col)
{
    struct weight_slice slice = {s->n_tensor++, 0, n_row, n_row, 1, 1};
    return graph_weight(s->g, name, slice, type, n_row, n_col);
}

static inline int syn_weight(struct synthetic *s, const char *name, int n_row, int n_col)
{
    return syn_weight_of(s, name, QUANT_F32, n_row, n_col);
}

static inline int syn_op(struct synthetic *s, const char *name, enum op op, union attr at, int a,
                         int b, int c)
{
    int n = c >= 0 ? 3 : b >= 0 ? 2 : 1;
    return graph_add(s->g, name, op, at, n, (int[]){a, b, c});
}

/* The stream x = embedding of the ids. */
static inline int syn_start(struct synthetic *s, sinter_host *host, const char *name)
{
    OK(graph_create(host, name, &s->g, err));
    s->g->layer = -1;
    s->ids = graph_input(s->g, PORT_IDS);
    s->out_rows = graph_input(s->g, PORT_OUT_ROWS);
    int e = syn_weight(s, "embed.weight", SYN_VOCAB, SYN_D);
    return syn_op(s, "embed", OP_EMBED, ATTR_NONE, e, s->ids, -1);
}

/* Logits of the wanted rows of x. */
static inline struct graph *syn_end(struct synthetic *s, int x)
{
    union attr one = {.MATMUL = {1}};
    s->g->layer = -1;
    x = syn_op(s, "out", OP_SELECT_ROWS, ATTR_NONE, x, s->out_rows, -1);
    x = syn_op(s, "logits", OP_MATMUL, one, x, syn_weight(s, "head.weight", SYN_VOCAB, SYN_D), -1);
    graph_port(s->g, x, PORT_LOGITS);
    OK(graph_finish(s->g, err));
    return s->g;
}

/* x + conv(x), twice. */
static inline struct graph *syn_recurrent(sinter_host *host)
{
    struct synthetic s = {0};
    union attr conv = {.CONV1D = {SYN_SNAP}}, one = {.MATMUL = {1}};
    struct state_slot slot = {
        .kind = SLOT_REC, .n_row = SYN_KERNEL - 1, .d = SYN_D, .n_snap = SYN_SNAP};
    char name[64];
    int x = syn_start(&s, host, "recurrent");
    for (int l = 0; l < 2; l++) {
#define NAME(what) (snprintf(name, sizeof name, "blk.%d.%s", l, what), name)
        s.g->layer = slot.layer = l;
        int w = syn_weight(&s, NAME("conv.weight"), SYN_D, SYN_KERNEL);
        int state = graph_slot(s.g, NAME("state"), slot);
        int y = syn_op(&s, NAME("conv"), OP_CONV1D, conv, x, w, state);
        syn_op(&s, NAME("state_write"), OP_STATE_WRITE, ATTR_NONE, state, graph_out(s.g, y, 1), -1);
        w = syn_weight(&s, NAME("mix.weight"), SYN_D, SYN_D);
        y = syn_op(&s, NAME("mix"), OP_MATMUL, one, y, w, -1);
        y = syn_op(&s, NAME("act"), OP_TANH, ATTR_NONE, y, -1, -1);
        x = syn_op(&s, NAME("add"), OP_ADD, ATTR_NONE, x, y, -1);
#undef NAME
    }
    return syn_end(&s, x);
}

/* x + y0 + y1 + y2: the row `adds`. */
static inline struct graph *syn_adds(sinter_host *host)
{
    struct synthetic s = {0};
    union attr one = {.MATMUL = {1}};
    char name[64];
    int x = syn_start(&s, host, "adds"), y[3];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "w%d.weight", i);
        int w = syn_weight(&s, name, SYN_D, SYN_D);
        snprintf(name, sizeof name, "y%d", i);
        y[i] = syn_op(&s, name, OP_MATMUL, one, x, w, -1);
    }
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "sum%d", i);
        x = syn_op(&s, name, OP_ADD, ATTR_NONE, x, y[i], -1);
    }
    return syn_end(&s, x);
}

/* x + v sin(w x)^2: the row `snake`. */
static inline struct graph *syn_snake(sinter_host *host)
{
    struct synthetic s = {0};
    int x = syn_start(&s, host, "snake");
    int w = syn_weight(&s, "alpha.weight", 1, SYN_D), v = syn_weight(&s, "beta.weight", 1, SYN_D);
    int y = syn_op(&s, "scaled", OP_MUL, ATTR_NONE, x, w, -1);
    y = syn_op(&s, "sin", OP_SIN, ATTR_NONE, y, -1, -1);
    y = syn_op(&s, "sqr", OP_SQR, ATTR_NONE, y, -1, -1);
    y = syn_op(&s, "weighted", OP_MUL, ATTR_NONE, y, v, -1);
    return syn_end(&s, syn_op(&s, "snake", OP_ADD, ATTR_NONE, y, x, -1));
}

/* A value read whole by one step while the next, its last reader, may not yet take its bytes. */
static inline struct graph *syn_inplace(sinter_host *host)
{
    struct synthetic s = {0};
    union attr one = {.MATMUL = {1}}, half = {.SCALE = {0.5f}}, eps = {.RMS_NORM = {1e-5f, 0}};
    int x = syn_start(&s, host, "inplace");
    int y = syn_op(&s, "y", OP_MATMUL, one, x, syn_weight(&s, "y.weight", SYN_D, SYN_D), -1);
    int n = syn_op(&s, "norm", OP_RMS_NORM, eps, y, -1, -1);
    int z = syn_op(&s, "half", OP_SCALE, half, y, -1, -1);
    z = syn_op(&s, "silu", OP_SILU, ATTR_NONE, z, -1, -1);
    return syn_end(&s, syn_op(&s, "sum", OP_ADD, ATTR_NONE, n, z, -1));
}

/* A residual that the product added to it reads whole too; and one that another product of the same
 * phase reads whole. Neither sum may take its residual's bytes. */
static inline struct graph *syn_residual(sinter_host *host)
{
    enum { WIDE = 96 }; /* three groups of rows */
    struct synthetic s = {0};
    union attr one = {.MATMUL = {1}};
    int x = syn_start(&s, host, "residual");
    int r = syn_op(&s, "r", OP_MATMUL, one, x, syn_weight(&s, "r.weight", WIDE, SYN_D), -1);
    int y = syn_op(&s, "y", OP_MATMUL, one, r, syn_weight(&s, "y.weight", WIDE, WIDE), -1);
    y = syn_op(&s, "own", OP_ADD, ATTR_NONE, y, r, -1);
    y = syn_op(&s, "act", OP_TANH, ATTR_NONE, y, -1, -1);
    x = syn_op(&s, "down", OP_MATMUL, one, y, syn_weight(&s, "down.weight", SYN_D, WIDE), -1);
    r = syn_op(&s, "r1", OP_MATMUL, one, x, syn_weight(&s, "r1.weight", WIDE, SYN_D), -1);
    int z = syn_op(&s, "z", OP_MATMUL, one, x, syn_weight(&s, "z.weight", WIDE, SYN_D), -1);
    int t = syn_op(&s, "t", OP_MATMUL, one, r, syn_weight(&s, "t.weight", WIDE, WIDE), -1);
    t = syn_op(&s, "t_act", OP_TANH, ATTR_NONE, t, -1, -1);
    y = syn_op(&s, "y1", OP_MATMUL, one, z, syn_weight(&s, "y1.weight", WIDE, WIDE), -1);
    y = syn_op(&s, "other", OP_ADD, ATTR_NONE, y, r, -1);
    y = syn_op(&s, "both", OP_ADD, ATTR_NONE, y, t, -1);
    x = syn_op(&s, "end", OP_MATMUL, one, y, syn_weight(&s, "end.weight", SYN_D, WIDE), -1);
    return syn_end(&s, x);
}

/* Attention whose heads of V are no multiple of 32 columns, behind it a matrix that reads INT8. */
static inline struct graph *syn_heads(sinter_host *host)
{
    enum { HEADS = 4, D_K = 8, D_V = 40 };
    struct synthetic s = {0};
    union attr one = {.MATMUL = {1}}, heads = {.MATMUL = {HEADS}}, qk = {.QK = {.scale = 0.35f}};
    struct state_slot slot = {.kind = SLOT_KV, .n_head_kv = 1, .d_k = D_K, .d_v = D_V};
    int x = syn_start(&s, host, "heads");
    s.g->layer = 0;
    int w = syn_weight(&s, "q.weight", HEADS * D_K, SYN_D);
    int q = syn_op(&s, "q", OP_MATMUL, heads, x, w, -1);
    int k = syn_op(&s, "k", OP_MATMUL, one, x, syn_weight(&s, "k.weight", D_K, SYN_D), -1);
    int v = syn_op(&s, "v", OP_MATMUL, one, x, syn_weight(&s, "v.weight", D_V, SYN_D), -1);
    int kv = graph_slot(s.g, "kv", slot);
    kv = syn_op(&s, "kv_write", OP_KV_WRITE, ATTR_NONE, kv, k, v);
    int c = syn_op(&s, "score", OP_QK, qk, q, kv, -1);
    c = graph_add(s.g, "softmax", OP_SOFTMAX, ATTR_NONE, 2, (int[]){c, -1});
    int y = syn_op(&s, "mix", OP_PV, ATTR_NONE, c, kv, -1);
    w = syn_weight_of(&s, "o.weight", QUANT_Q8_0, SYN_D, HEADS * D_V);
    y = syn_op(&s, "o", OP_MATMUL, one, y, w, -1);
    return syn_end(&s, syn_op(&s, "sum", OP_ADD, ATTR_NONE, y, x, -1));
}

/* Every subject of the tests: the dummies, then the graphs above (the last three: ref only). */
static inline bool subject_at(int i, struct subject *s, bool *ref_only)
{
    static const struct subject hand[] = {
        {.name = "inplace", .make = syn_inplace},   {.name = "heads", .make = syn_heads},
        {.name = "residual", .make = syn_residual}, {.name = "recurrent", .make = syn_recurrent},
        {.name = "adds", .make = syn_adds},         {.name = "snake", .make = syn_snake}};
    int n = 0;
    *s = (struct subject){0};
    *ref_only = false;
    while (dummy_small(n, &s->dummy, s->name)) {
        if (n++ == i)
            return true;
    }
    *ref_only = i > n + 2;
    if (i - n >= (int)(sizeof hand / sizeof hand[0]))
        return false;
    *s = hand[i - n];
    return true;
}

#endif
