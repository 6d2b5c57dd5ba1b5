/* Random legal graphs, and random steps on them: shapes that the table's rows like, and what nearly
 * is one. Values are read twice, go in as both operands, leave from inside, lie on TOK, OUT and
 * TOK x k rows; states have readers of several kinds, windows, layers in common. Everything that
 * nobody reads ends in a cache or in the logits, so that a run can be compared. */
#ifndef TESTS_FUSION_ADVERSARY_H
#define TESTS_FUSION_ADVERSARY_H

#include "fusion/lines.h"

enum {
    ADV_MAX_VALUE = 160,
    ADV_MAX_SLOT = 24,
    ADV_LOGITS = 48,
    ADV_CHUNK = 24,
    ADV_CTX = 96,
    ADV_N_SEQ = 3,
    ADV_N_STEP = 8
};

struct adv {
    struct graph *g;
    uint64_t s;
    bool ref;   /* ops that only ref has */
    bool exact; /* F32 matrices only */
    int ids, pos, out_rows;
    int act[ADV_MAX_VALUE], n_act;
    int kv[ADV_MAX_SLOT], n_kv; /* last versions, written in this step */
    int table, table_out, n_rot;
    int n_name, n_tensor;
    char name[32];
};

static inline uint64_t adv_next(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

/* 0 .. n - 1 */
static inline int adv_pick(struct adv *a, int n)
{
    return (int)(adv_next(&a->s) % (uint64_t)n);
}

static inline const char *adv_name(struct adv *a)
{
    snprintf(a->name, sizeof a->name, "n%d", a->n_name++);
    return a->name;
}

static inline struct shape adv_shape(const struct adv *a, int v)
{
    return a->g->value[v].shape;
}

static inline int adv_len(const struct adv *a, int v)
{
    return adv_shape(a, v).n_head * adv_shape(a, v).d;
}

static inline int adv_keep(struct adv *a, int v)
{
    if (v >= 0 && a->n_act < ADV_MAX_VALUE)
        a->act[a->n_act++] = v;
    return v;
}

static inline int adv_op(struct adv *a, enum op op, union attr at, int x, int y, int z)
{
    int n = z >= 0 ? 3 : y >= 0 ? 2 : 1;
    return graph_add(a->g, adv_name(a), op, at, n, (int[]){x, y, z});
}

static inline int adv_one(struct adv *a, enum op op, int x)
{
    union attr at = ATTR_NONE;
    if (op == OP_SCALE)
        at.SCALE.factor = 0.75f;
    return adv_keep(a, adv_op(a, op, at, x, -1, -1));
}

static inline int adv_two(struct adv *a, enum op op, int x, int y)
{
    return adv_keep(a, adv_op(a, op, ATTR_NONE, x, y, -1));
}

/* ---- Choosing ---- */

/* An activation, rather a late one. */
static inline int adv_any(struct adv *a)
{
    int n = a->n_act, near = n < 4 ? n : 4;
    return a->act[adv_pick(a, 3) ? n - 1 - adv_pick(a, near) : adv_pick(a, n)];
}

/* One of these rows (mult 1); another one if there is none. */
static inline int adv_on(struct adv *a, enum axis axis)
{
    int v = a->act[0];
    for (int i = 0; i < 8; i++) {
        v = adv_any(a);
        if (adv_shape(a, v).axis == axis && adv_shape(a, v).mult == 1)
            return v;
    }
    return a->act[0]; /* of TOK */
}

/* Another value of the same shape; x itself where there is none, and at times where there is. */
static inline int adv_alike(struct adv *a, int x)
{
    for (int i = 0; i < 12 && adv_pick(a, 8); i++) {
        int v = adv_any(a);
        if (v != x && shape_equal(adv_shape(a, v), adv_shape(a, x)))
            return v;
    }
    return x;
}

static inline int adv_weight(struct adv *a, enum quant_type type, int n_row, int n_col, int n_mat)
{
    struct weight_slice s = {a->n_tensor++, 0, n_row, n_row, 1, n_mat, 0, 0};
    return graph_weight(a->g, adv_name(a), s, type, n_row, n_col);
}

/* A vector beside x: a row, one head for all, or one number. */
static inline int adv_vector(struct adv *a, int x)
{
    struct shape s = adv_shape(a, x);
    const int len[] = {s.n_head * s.d, s.d, 1};
    return adv_weight(a, QUANT_F32, 1, len[adv_pick(a, 5) % 3], 1);
}

static inline enum quant_type adv_type(struct adv *a, int n_col)
{
    static const enum quant_type type[] = {QUANT_F32, QUANT_F16, QUANT_Q8_0, QUANT_Q4_0};
    enum quant_type t = a->exact ? QUANT_F32 : type[adv_pick(a, 4)];
    return n_col % quant_row(t)->block_elems ? QUANT_F32 : t;
}

static inline int adv_matmul(struct adv *a, int x, int n_head, int d)
{
    int n_col = adv_len(a, x), w = adv_weight(a, adv_type(a, n_col), n_head * d, n_col, 1);
    return adv_keep(a, adv_op(a, OP_MATMUL, (union attr){.MATMUL = {n_head}}, x, w, -1));
}

static inline void adv_heads(struct adv *a, int *n_head, int *d)
{
    static const int shape[][2] = {{1, 64}, {2, 32}, {4, 16}, {1, 64}, {1, 40}, {2, 20}, {1, 96}};
    int i = adv_pick(a, 7);
    *n_head = shape[i][0];
    *d = shape[i][1];
}

/* A matrix to some shape. */
static inline int adv_matmul_any(struct adv *a, int x)
{
    int n_head, d;
    adv_heads(a, &n_head, &d);
    return adv_matmul(a, x, n_head, d);
}

/* A matrix to the shape of `to`. */
static inline int adv_matmul_as(struct adv *a, int x, int to)
{
    return adv_matmul(a, x, adv_shape(a, to).n_head, adv_shape(a, to).d);
}

/* ---- What the rows look for, and what is near it ---- */

static inline void adv_elementwise(struct adv *a)
{
    static const enum op ops[] = {OP_SILU, OP_GELU, OP_TANH, OP_SCALE, OP_SIN, OP_SQR};
    int x = adv_any(a);
    switch (adv_pick(a, 4)) {
    case 0:
        adv_two(a, OP_ADD, x, adv_vector(a, x));
        break;
    case 1:
        adv_two(a, OP_MUL, x, adv_vector(a, x));
        break;
    default:
        adv_one(a, ops[adv_pick(a, a->ref ? 6 : 4)], x);
    }
}

static inline void adv_binary(struct adv *a)
{
    int x = adv_any(a);
    if (adv_pick(a, 4) == 0) { /* one number per row */
        int y = adv_op(a, OP_MATMUL, (union attr){.MATMUL = {1}}, x,
                       adv_weight(a, QUANT_F32, 1, adv_len(a, x), 1), -1);
        adv_two(a, OP_MUL, x, y);
        return;
    }
    adv_two(a, adv_pick(a, 3) ? OP_ADD : OP_MUL, x, adv_alike(a, x));
}

/* Matrices of one input; with biases for all, some or none. */
static inline void adv_siblings(struct adv *a)
{
    int x = adv_any(a), n = 2 + adv_pick(a, 3), bias = adv_pick(a, 3);
    for (int i = 0; i < n; i++) {
        int y = adv_matmul_any(a, x);
        if (bias && (bias == 1 || adv_pick(a, 2)))
            adv_two(a, OP_ADD, y, adv_vector(a, y));
    }
}

/* x W + r; r may be x itself, or what x was made of. */
static inline void adv_residual(struct adv *a)
{
    int x = adv_any(a), r = adv_pick(a, 3) ? x : adv_any(a);
    struct shape s = adv_shape(a, r);
    if (s.axis != adv_shape(a, x).axis || s.mult != adv_shape(a, x).mult)
        r = x;
    int y = adv_matmul_as(a, x, r);
    adv_two(a, OP_ADD, adv_pick(a, 2) ? y : r, adv_pick(a, 2) || y == r ? r : y);
    if (adv_pick(a, 4) == 0)
        adv_one(a, OP_TANH, y); /* leaves */
}

static inline void adv_gate_up(struct adv *a)
{
    int x = adv_any(a), n_head, d;
    adv_heads(a, &n_head, &d);
    int gate = adv_matmul(a, x, n_head, d);
    bool narrow = adv_pick(a, 4) == 0;
    int up = narrow ? adv_matmul(a, x, 1, 1) : adv_matmul(a, x, n_head, d);
    int y = adv_one(a, adv_pick(a, 2) ? OP_SILU : OP_GELU, gate);
    if (narrow || adv_pick(a, 2))
        adv_two(a, OP_MUL, y, up);
    else
        adv_two(a, OP_MUL, up, y);
    if (adv_pick(a, 5) == 0)
        adv_two(a, OP_ADD, gate, gate);
}

static inline int adv_table(struct adv *a, enum axis axis)
{
    if (a->table < 0)
        a->table = adv_op(a, OP_ROPE_TABLE, (union attr){.ROPE_TABLE = {a->n_rot, 1e4f, 1}}, a->pos,
                          -1, -1);
    if (axis == AXIS_TOK)
        return a->table;
    if (a->table_out < 0)
        a->table_out = adv_op(a, OP_SELECT_TABLE, ATTR_NONE, a->table, a->out_rows, -1);
    return a->table_out;
}

static inline int adv_rope(struct adv *a, int x)
{
    struct shape s = adv_shape(a, x);
    if (!a->n_rot || s.mult != 1 || s.d < a->n_rot)
        return x;
    union attr at = {.ROPE = {adv_pick(a, 2)}};
    return adv_keep(a, adv_op(a, OP_ROPE, at, x, adv_table(a, s.axis), -1));
}

/* [ADD +] RMS_NORM [+ MUL] [+ ROPE]; the sum goes on, or does not. */
static inline void adv_norm(struct adv *a)
{
    int x = adv_any(a);
    union attr at = {.RMS_NORM = {1e-2f, adv_pick(a, 2)}};
    if (adv_pick(a, 2))
        x = adv_two(a, OP_ADD, x, adv_alike(a, x));
    int y = adv_keep(a, adv_op(a, OP_RMS_NORM, at, x, -1, -1));
    if (adv_pick(a, 5))
        y = adv_two(a, OP_MUL, y, adv_pick(a, 8) ? adv_vector(a, y) : adv_alike(a, y));
    if (adv_pick(a, 3) == 0)
        y = adv_rope(a, y);
    if (adv_pick(a, 3) == 0)
        adv_two(a, OP_ADD, y, x);
}

static inline void adv_kv_write(struct adv *a)
{
    if (a->n_kv == ADV_MAX_SLOT / 2)
        return;
    int x = adv_on(a, AXIS_TOK), heads = 1 << adv_pick(a, 3), d_k = 8 << adv_pick(a, 2);
    int d_v = adv_pick(a, 3) ? d_k : 24;
    struct state_slot s = {.kind = SLOT_KV,
                           .layer = adv_pick(a, 4),
                           .n_head_kv = heads,
                           .d_k = d_k,
                           .d_v = d_v,
                           .window = adv_pick(a, 3) ? 0 : 1 + adv_pick(a, 40)};
    int k = adv_matmul(a, x, heads, d_k),
        v = d_v == d_k && adv_pick(a, 3) == 0 ? k : adv_matmul(a, x, heads, d_v);
    if (adv_pick(a, 2))
        k = adv_rope(a, k);
    int kv = graph_slot(a->g, adv_name(a), s);
    a->kv[a->n_kv++] = adv_op(a, OP_KV_WRITE, ATTR_NONE, kv, k, v);
}

/* The slot's next version, of other rows: its readers so far come before. */
static inline void adv_write_again(struct adv *a)
{
    if (!a->n_kv)
        return;
    int i = adv_pick(a, a->n_kv), x = adv_on(a, AXIS_TOK);
    const struct state_slot *s = &a->g->slot[a->g->value[a->kv[i]].index];
    int heads = s->n_head_kv, d_k = s->d_k, d_v = s->d_v;
    int k = adv_matmul(a, x, heads, d_k), v = adv_matmul(a, x, heads, d_v);
    a->kv[i] = adv_op(a, OP_KV_WRITE, ATTR_NONE, a->kv[i], k, v);
}

/* QK + SOFTMAX [with sinks] + PV on the rows of TOK or OUT. */
static inline void adv_attention(struct adv *a)
{
    if (!a->n_kv)
        adv_kv_write(a);
    int kv = a->kv[adv_pick(a, a->n_kv)], x = adv_on(a, adv_pick(a, 3) ? AXIS_TOK : AXIS_OUT);
    const struct state_slot *s = &a->g->slot[a->g->value[kv].index];
    int heads = s->n_head_kv << adv_pick(a, 2), d_k = s->d_k;
    int window = s->window ? 1 + adv_pick(a, s->window) : adv_pick(a, 4) ? 0 : 5;
    int q = adv_matmul(a, x, heads, d_k);
    if (adv_pick(a, 2))
        q = adv_rope(a, q);
    union attr at = {.QK = {0.25f, adv_pick(a, 3) ? 0 : 3, window}};
    int c = adv_op(a, OP_QK, at, q, kv, -1);
    int sink = adv_pick(a, 4) ? -1 : adv_weight(a, QUANT_F32, 1, heads, 1);
    c = adv_op(a, OP_SOFTMAX, ATTR_NONE, c, sink, -1);
    int y = adv_keep(a, adv_op(a, OP_PV, ATTR_NONE, c, kv, -1));
    if (adv_pick(a, 2))
        adv_two(a, OP_ADD, x, adv_matmul_as(a, y, x));
}

static inline void adv_select(struct adv *a)
{
    int x = adv_on(a, AXIS_TOK);
    adv_two(a, OP_SELECT_ROWS, x, a->out_rows);
    if (adv_pick(a, 2))
        adv_one(a, OP_SILU, x);
}

/* A router, its experts' matrices, their weights, the sum. */
static inline void adv_experts(struct adv *a)
{
    enum { N_EXPERT = 5 };
    int x = adv_any(a), k = 1 + adv_pick(a, 3);
    if (adv_shape(a, x).mult != 1)
        return;
    int logits = adv_op(a, OP_MATMUL, (union attr){.MATMUL = {1}}, x,
                        adv_weight(a, adv_type(a, adv_len(a, x)), N_EXPERT, adv_len(a, x), 1), -1);
    int ids = adv_op(a, OP_TOPK, (union attr){.TOPK = {k, adv_pick(a, 2)}}, logits, -1, -1);
    int weight = graph_out(a->g, ids, 1);
    int w = adv_weight(a, adv_type(a, adv_len(a, x)), 64, adv_len(a, x), N_EXPERT);
    int y = adv_keep(a, adv_op(a, OP_MATMUL_ID, (union attr){.MATMUL_ID = {1}}, x, w, ids));
    if (adv_pick(a, 2))
        y = adv_one(a, OP_SILU, y);
    if (adv_pick(a, 2)) { /* a matrix on TOK x k rows */
        w = adv_weight(a, QUANT_F32, 64, adv_len(a, y), N_EXPERT);
        y = adv_keep(a, adv_op(a, OP_MATMUL_ID, (union attr){.MATMUL_ID = {1}}, y, w, ids));
    }
    y = adv_two(a, OP_MUL, y, weight);
    adv_keep(a, adv_op(a, OP_SUM, (union attr){.SUM = {k}}, y, -1, -1));
}

static inline void adv_chain(struct adv *a)
{
    int x = adv_any(a), n = 2 + adv_pick(a, 4);
    for (int i = 0; i < n; i++) {
        int y = adv_pick(a, 3) ? adv_alike(a, x) : adv_matmul_as(a, x, x);
        x = adv_pick(a, 2) ? adv_two(a, OP_ADD, x, y) : adv_two(a, OP_ADD, y, x);
    }
}

/* One convolution, or two on one state: a reader of the version behind a reader. */
static inline void adv_conv(struct adv *a)
{
    enum { N_KERNEL = 4 };
    int x = adv_on(a, AXIS_TOK), d = adv_len(a, x), n_snap = 1 + adv_pick(a, 3);
    struct state_slot s = {.kind = SLOT_REC, .n_row = N_KERNEL - 1, .d = d, .n_snap = n_snap};
    union attr at = {.CONV1D = {n_snap}};
    int state = graph_slot(a->g, adv_name(a), s);
    int y = adv_op(a, OP_CONV1D, at, x, adv_weight(a, QUANT_F32, d, N_KERNEL, 1), state);
    if (adv_pick(a, 3) == 0) {
        int z = adv_op(a, OP_CONV1D, at, y, adv_weight(a, QUANT_F32, d, N_KERNEL, 1), state);
        adv_keep(a, z);
    }
    adv_keep(a, y);
    adv_op(a, OP_STATE_WRITE, ATTR_NONE, state, graph_out(a->g, y, 1), -1);
}

static inline void adv_snake(struct adv *a)
{
    int x = adv_any(a);
    int y = adv_two(a, OP_MUL, x, adv_vector(a, x));
    y = adv_one(a, OP_SQR, adv_one(a, OP_SIN, y));
    y = adv_two(a, OP_MUL, y, adv_vector(a, x));
    adv_two(a, OP_ADD, adv_pick(a, 2) ? y : x, y);
}

static void (*const adv_parts[])(struct adv *a) = {
    adv_elementwise, adv_binary,  adv_siblings, adv_residual,  adv_residual,  adv_gate_up,
    adv_norm,        adv_norm,    adv_kv_write, adv_attention, adv_attention, adv_write_again,
    adv_select,      adv_experts, adv_chain,    adv_conv,      adv_snake,
};
enum { ADV_N_PART = sizeof adv_parts / sizeof adv_parts[0], ADV_N_REF = 2 }; /* the last: ref */

/* ---- The end: what nobody reads is kept ---- */

static inline bool adv_is_read(const struct adv *a, int v)
{
    for (int k = 0; k < a->g->n_node; k++)
        for (int i = 0; i < a->g->node[k].n_in; i++)
            if (a->g->node[k].in[i] == v)
                return true;
    return false;
}

static inline void adv_sink(struct adv *a, int v)
{
    struct shape s = adv_shape(a, v);
    struct state_slot slot = {
        .kind = SLOT_KV, .layer = 9, .n_head_kv = s.n_head, .d_k = s.d, .d_v = s.d};
    adv_op(a, OP_KV_WRITE, ATTR_NONE, graph_slot(a->g, adv_name(a), slot), v, v);
}

static inline void adv_end(struct adv *a)
{
    int n = a->n_act, logits = -1;
    for (int i = 0; i < n; i++)
        if (!adv_is_read(a, a->act[i]) && adv_shape(a, a->act[i]).mult > 1)
            adv_keep(a, adv_op(a, OP_SUM, (union attr){.SUM = {adv_shape(a, a->act[i]).mult}},
                               a->act[i], -1, -1));
    adv_two(a, OP_SELECT_ROWS, adv_on(a, AXIS_TOK), a->out_rows);
    for (int i = 0; i < a->n_act; i++) {
        int v = a->act[i];
        if (adv_is_read(a, v))
            continue;
        if (adv_shape(a, v).axis == AXIS_TOK) {
            adv_sink(a, v);
            continue;
        }
        int y = adv_op(a, OP_MATMUL, (union attr){.MATMUL = {1}}, v,
                       adv_weight(a, QUANT_F32, ADV_LOGITS, adv_len(a, v), 1), -1);
        logits = logits < 0 ? y : adv_op(a, OP_ADD, ATTR_NONE, logits, y, -1);
    }
    graph_port(a->g, logits, PORT_LOGITS);
    int hidden = adv_on(a, AXIS_OUT);
    if (adv_shape(a, hidden).axis == AXIS_OUT)
        graph_port(a->g, hidden, PORT_HIDDEN);
    if (adv_pick(a, 2))
        graph_port(a->g, adv_op(a, OP_ARGMAX, ATTR_NONE, logits, -1, -1), PORT_ARGMAX);
}

/* Inputs, and what follows from them. */
static inline int adv_start(struct adv *a, sinter_host *host, const char *name)
{
    sinter_error err;
    assert_int_equal(graph_create(host, name, &a->g, &err), SINTER_OK);
    a->table = a->table_out = -1;
    a->ids = graph_input(a->g, PORT_IDS);
    a->out_rows = graph_input(a->g, PORT_OUT_ROWS);
    int e = adv_weight(a, QUANT_F32, GENERATE_VOCAB, 64, 1);
    return adv_keep(a, adv_op(a, OP_EMBED, ATTR_NONE, e, a->ids, -1));
}

static inline struct graph *adv_finish(struct adv *a)
{
    sinter_error err;
    a->g->layer = -1;
    adv_end(a);
    if (graph_finish(a->g, &err) != SINTER_OK)
        fail_msg("%s: %s", a->g->name, err.message);
    return a->g;
}

/* Attention whose heads are as wide as no model's. */
static inline struct graph *adv_wide(sinter_host *host)
{
    enum { D_K = 1100, D_V = 1536 };
    struct adv a = {.s = 1, .exact = true};
    int x = adv_start(&a, host, "wide");
    struct state_slot s = {.kind = SLOT_KV, .n_head_kv = 1, .d_k = D_K, .d_v = D_V};
    int k = adv_matmul(&a, x, 1, D_K), v = adv_matmul(&a, x, 1, D_V);
    a.kv[a.n_kv++] = adv_op(&a, OP_KV_WRITE, ATTR_NONE, graph_slot(a.g, "kv", s), k, v);
    adv_attention(&a);
    return adv_finish(&a);
}

static inline struct graph *adv_graph(sinter_host *host, uint64_t seed, bool ref)
{
    struct adv a = {.s = seed * 0x9e3779b97f4a7c15u + 1, .ref = ref};
    char name[32];
    snprintf(name, sizeof name, "seed %llu", (unsigned long long)seed);
    for (int i = 0; i < 8; i++)
        adv_next(&a.s);
    a.exact = adv_pick(&a, 2);
    a.n_rot = adv_pick(&a, 2) ? 8 : 16;
    int x = adv_start(&a, host, name);
    a.pos = graph_input(a.g, PORT_POS);
    adv_rope(&a, adv_matmul(&a, x, 2, 32)); /* so that pos is read */
    int n = 3 + adv_pick(&a, 9);
    for (int i = 0; i < n && a.n_act < ADV_MAX_VALUE / 2; i++) {
        a.g->layer = i / 3;
        adv_parts[adv_pick(&a, ADV_N_PART - (ref ? 0 : ADV_N_REF))](&a);
    }
    return adv_finish(&a);
}

#endif
