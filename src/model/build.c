/* Walks the plan and builds the trunk's graph with a few block builders: embed, rope tables,
 * attention, feed-forward, experts, head. Builder errors stick in the graph, so blocks read like
 * formulas. Rows that nobody wants are not computed: behind the last write of K and V only the
 * OUT rows go on. */
#include "model/internal.h"

#include <stdio.h>
#include <string.h>

struct table {    /* one per distinct RoPE */
    int all, out; /* values for TOK and OUT rows; -1: not made yet */
};

struct builder {
    const struct model *m;
    struct graph *g;
    const struct model_layer *l; /* NULL outside of layers */
    int ids, pos, out_rows;
    struct table *table; /* [n_layer]; that of the first layer with the same RoPE is used */
    char name[96];
};

/* "blk.3.<what>", or "<what>" outside of layers; good until the next call. */
static const char *name(struct builder *b, const char *what)
{
    if (b->l)
        snprintf(b->name, sizeof b->name, "blk.%d.%s", b->l->block, what);
    else
        snprintf(b->name, sizeof b->name, "%s", what);
    return b->name;
}

/* -1 where the model has no such tensor. */
static int weight(struct builder *b, enum tensor_id id)
{
    const struct model_weight *w = model_weight(b->m, b->l ? b->l->layer : -1, id);
    return w ? graph_weight(b->g, w->name, w->slice, w->type, w->n_row, w->n_col) : -1;
}

static bool has(const struct builder *b, enum tensor_id id)
{
    return model_weight(b->m, b->l ? b->l->layer : -1, id) != NULL;
}

#define NONE ((union attr){.word = {0}})

/* Functions, not macros: operands are whole before the node's name is made. */
static int node1(struct builder *b, const char *what, enum op op, union attr at, int x)
{
    return graph_add(b->g, name(b, what), op, at, 1, (int[]){x});
}

static int node2(struct builder *b, const char *what, enum op op, union attr at, int x, int y)
{
    return graph_add(b->g, name(b, what), op, at, 2, (int[]){x, y});
}

static int node3(struct builder *b, const char *what, enum op op, union attr at, int x, int y,
                 int z)
{
    return graph_add(b->g, name(b, what), op, at, 3, (int[]){x, y, z});
}

static int add(struct builder *b, const char *what, int x, int y)
{
    return node2(b, what, OP_ADD, NONE, x, y);
}

static int mul(struct builder *b, const char *what, int x, int y)
{
    return node2(b, what, OP_MUL, NONE, x, y);
}

static int scale(struct builder *b, const char *what, int x, float factor)
{
    return node1(b, what, OP_SCALE, (union attr){.SCALE = {.factor = factor}}, x);
}

/* x / rms(x) * w, per head */
static int norm(struct builder *b, const char *what, int x, enum tensor_id w)
{
    char rms[64];
    snprintf(rms, sizeof rms, "%s.rms", what);
    union attr at = {.RMS_NORM = {.eps = b->m->plan.norm_eps}};
    int y = node1(b, rms, OP_RMS_NORM, at, x);
    return mul(b, what, y, weight(b, w));
}

/* x w^T (+ bias), cut into heads */
static int linear(struct builder *b, const char *what, int x, enum tensor_id w, enum tensor_id bias,
                  int n_head)
{
    union attr at = {.MATMUL = {.n_head = n_head}};
    char product[64];
    if (bias == W_N || !has(b, bias))
        return node2(b, what, OP_MATMUL, at, x, weight(b, w));
    snprintf(product, sizeof product, "%s.mm", what);
    x = node2(b, product, OP_MATMUL, at, x, weight(b, w));
    return add(b, what, x, weight(b, bias));
}

static int act(struct builder *b, const char *what, int x)
{
    return node1(b, what, b->m->plan.arch->act == ACT_GELU ? OP_GELU : OP_SILU, NONE, x);
}

/* ---- Blocks --------------------------------------------------------------------------------- */

static int embed(struct builder *b)
{
    int x = node2(b, "embed", OP_EMBED, NONE, weight(b, W_TOKEN_EMBD), b->ids);
    return b->m->plan.emb_scale == 1 ? x : scale(b, "embed.scale", x, b->m->plan.emb_scale);
}

static bool same_rope(const struct model_layer *a, const struct model_layer *b)
{
    return a->n_rot == b->n_rot && a->rope_base == b->rope_base &&
           a->rope_factor == b->rope_factor && a->rope_freqs == b->rope_freqs;
}

/* The table of this layer's RoPE, for all rows or for OUT rows; made once per distinct RoPE. */
static int rope_table(struct builder *b, bool out)
{
    const struct model_layer *l = b->l;
    int first = 0;
    char what[32];
    while (!same_rope(&b->m->plan.layer[first], l))
        first++;
    struct table *t = &b->table[first];
    union attr at = {
        .ROPE_TABLE = {.n_rot = l->n_rot, .base = l->rope_base, .factor = l->rope_factor}};
    b->l = NULL; /* the tables are the model's */
    int layer = b->g->layer;
    b->g->layer = -1;
    if (t->all < 0) {
        snprintf(what, sizeof what, "rope.%d", first);
        int k = l->rope_freqs ? weight(b, W_ROPE_FREQS) : -1;
        t->all = node2(b, what, OP_ROPE_TABLE, at, b->pos, k);
    }
    if (out && t->out < 0) {
        snprintf(what, sizeof what, "rope.%d.out", first);
        t->out = node2(b, what, OP_SELECT_TABLE, NONE, t->all, b->out_rows);
    }
    b->l = l;
    b->g->layer = layer;
    return out ? t->out : t->all;
}

static int rope(struct builder *b, const char *what, int x, bool out)
{
    union attr at = {.ROPE = {.neox = b->m->plan.arch->rope == ROPE_HALVES}};
    return node2(b, what, OP_ROPE, at, x, rope_table(b, out));
}

/* K, V of the rows of x into the state. */
static int keys_values(struct builder *b, int x)
{
    const struct model_layer *l = b->l;
    struct state_slot slot = {.kind = SLOT_KV,
                              .layer = l->layer,
                              .n_head_kv = l->n_head_kv,
                              .d_k = l->d_k,
                              .d_v = l->d_v,
                              .window = l->window};
    int k = linear(b, "attn_k", x, W_K, W_K_B, l->n_head_kv);
    int v = linear(b, "attn_v", x, W_V, W_V_B, l->n_head_kv);
    if (has(b, W_K_NORM))
        k = norm(b, "attn_k_norm", k, W_K_NORM);
    k = rope(b, "attn_k_rope", k, false);
    int s = graph_slot(b->g, name(b, "kv"), slot);
    return node3(b, "kv_write", OP_KV_WRITE, NONE, s, k, v);
}

/* Attention of the rows of xq over keys and values made of all rows; both already normed. */
static int attention(struct builder *b, int xq, int x, bool out)
{
    const struct model_layer *l = b->l;
    union attr qk = {.QK = {.scale = l->attn_scale, .window = l->window}};
    int q = linear(b, "attn_q", xq, W_Q, W_Q_B, l->n_head);
    int kv = keys_values(b, x);
    if (has(b, W_Q_NORM))
        q = norm(b, "attn_q_norm", q, W_Q_NORM);
    q = rope(b, "attn_q_rope", q, out);
    int c = node2(b, "attn_score", OP_QK, qk, q, kv);
    c = node2(b, "attn_softmax", OP_SOFTMAX, NONE, c, -1);
    int y = node2(b, "attn_mix", OP_PV, NONE, c, kv);
    return linear(b, "attn_out", y, W_O, W_O_B, 1);
}

static int ffn(struct builder *b, int x)
{
    int gate = linear(b, "ffn_gate", x, W_GATE, W_GATE_B, 1);
    int up = linear(b, "ffn_up", x, W_UP, W_UP_B, 1);
    int y = mul(b, "ffn_glu", act(b, "ffn_act", gate), up);
    return linear(b, "ffn_down", y, W_DOWN, W_DOWN_B, 1);
}

/* Each row through its n_used best experts, summed with the router's weights in rank order. */
static int moe(struct builder *b, int x)
{
    const struct model_layer *l = b->l;
    union attr top = {.TOPK = {.n_used = l->n_expert_used, .renorm = l->renorm}};
    union attr one = {.MATMUL_ID = {.n_head = 1}};
    union attr k = {.SUM = {.k = l->n_expert_used}};
    int ids = node1(b, "ffn_top", OP_TOPK, top, linear(b, "ffn_router", x, W_ROUTER, W_N, 1));
    int share = graph_out(b->g, ids, 1);
    int gate = node3(b, "ffn_gate", OP_MATMUL_ID, one, x, weight(b, W_GATE_EXPS), ids);
    int up = node3(b, "ffn_up", OP_MATMUL_ID, one, x, weight(b, W_UP_EXPS), ids);
    int y = mul(b, "ffn_glu", act(b, "ffn_act", gate), up);
    y = node3(b, "ffn_down", OP_MATMUL_ID, one, y, weight(b, W_DOWN_EXPS), ids);
    return node1(b, "ffn_sum", OP_SUM, k, mul(b, "ffn_share", y, share));
}

/* One layer of the residual stream x. In the last one only the wanted rows go on. */
static int layer(struct builder *b, int x, bool last)
{
    const struct model_plan *p = &b->m->plan;
    int h = norm(b, "attn_norm", x, W_ATTN_NORM), hq = h;
    if (last) {
        hq = node2(b, "attn_norm.out", OP_SELECT_ROWS, NONE, h, b->out_rows);
        x = node2(b, "in.out", OP_SELECT_ROWS, NONE, x, b->out_rows);
    }
    h = attention(b, hq, h, last);
    if (p->arch->place == PLACE_SANDWICH)
        h = norm(b, "attn_post_norm", h, W_POST_ATTN_NORM);
    x = add(b, "attn_add", h, x);
    h = norm(b, "ffn_norm", x, W_FFN_NORM);
    h = p->arch->ffn == FFN_MOE ? moe(b, h) : ffn(b, h);
    if (p->arch->place == PLACE_SANDWICH)
        h = norm(b, "ffn_post_norm", h, W_POST_FFW_NORM);
    return add(b, "ffn_add", h, x);
}

static void head(struct builder *b, int x, const struct model_variant *v)
{
    const struct model_plan *p = &b->m->plan;
    x = norm(b, "output_norm", x, W_OUTPUT_NORM);
    if (!v->tap)
        graph_port(b->g, x, PORT_HIDDEN);
    int y = linear(b, "logits", x, p->tied ? W_TOKEN_EMBD : W_OUTPUT, W_OUTPUT_B, 1);
    if (p->final_cap > 0) { /* cap tanh(y / cap) */
        y = scale(b, "logits.down", y, 1 / p->final_cap);
        y = node1(b, "logits.tanh", OP_TANH, NONE, y);
        y = scale(b, "logits.cap", y, p->final_cap);
    }
    graph_port(b->g, y, PORT_LOGITS);
    if (v->argmax)
        graph_port(b->g, node1(b, "argmax", OP_ARGMAX, NONE, y), PORT_ARGMAX);
}

static void trunk(struct builder *b, const struct model_variant *v)
{
    const struct model_plan *p = &b->m->plan;
    b->ids = graph_input(b->g, PORT_IDS);
    b->pos = graph_input(b->g, PORT_POS);
    b->out_rows = graph_input(b->g, PORT_OUT_ROWS);
    int x = embed(b);
    for (int i = 0; i < p->n_layer; i++) {
        b->l = &p->layer[i];
        b->g->layer = b->l->layer;
        x = layer(b, x, i == p->n_layer - 1);
        if (v->tap == i + 1)
            graph_port(b->g, x, PORT_HIDDEN);
    }
    b->l = NULL;
    b->g->layer = -1;
    head(b, x, v);
}

sinter_status model_graph(const struct model *m, const struct model_variant *v, struct graph **out,
                          sinter_error *err)
{
    struct builder b = {.m = m};
    size_t n = (size_t)m->plan.n_layer;
    *out = NULL;
    if (v->n_ctx < 1)
        return FAIL(err, USAGE, "a graph for %d rows of context: at least 1 is needed", v->n_ctx);
    NEW(m->host, b.table, n, err);
    memset(b.table, 0xff, n * sizeof *b.table); /* -1 */
    sinter_status status = graph_create(m->host, "trunk", &b.g, err);
    if (status == SINTER_OK) {
        trunk(&b, v);
        status = graph_finish(b.g, err);
    }
    host_free(m->host, b.table);
    if (status != SINTER_OK) {
        graph_free(b.g);
        return status;
    }
    *out = b.g;
    return SINTER_OK;
}
