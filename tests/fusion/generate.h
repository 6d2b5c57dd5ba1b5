/* Graphs out of rows of the fusion table, for tests: one in which a variant fires, each of its
 * needs missed, an inner value made to leave, operands commuted. Shapes come from the ops' rules
 * and the needs, so a new row needs nothing here; a new need kind needs a case in generate_setup.
 *
 *     struct generated out;
 *     sinter_status s = generate_fires(host, table, variant, line, &out, &err);
 *     … fuse_match(…, out.graph, &out.key, …); graph_free(out.graph);
 *
 * line may be NULL: the row's own needs only. To try one line, match with a table of that line
 * and single ops: an earlier line of the backend may take the same group. Activations are
 * [TOK, n_head, d / n_head]. */
#ifndef TESTS_FUSION_GENERATE_H
#define TESTS_FUSION_GENERATE_H

#include <stdio.h>
#include <string.h>

#include "fuse/fuse.h"

enum { GENERATE_VOCAB = 40 }; /* rows of the lookup matrices */

/* Beyond what the variant asks for; zero: 64 columns, F32 matrices, no window. */
struct generate_shape {
    int d;
    enum quant_type type; /* of the variant's matrices, where no need speaks of it */
    int window;           /* of attention, with a cap on its scores */
};

struct generated {
    struct graph *graph;
    struct fuse_key key;
    int node[FUSE_MAX_NODE];  /* the variant's nodes */
    int value[FUSE_MAX_SLOT]; /* its values */
};

struct generator {
    struct graph *g;
    const struct fuse_variant *v;
    struct need need[12];
    int n_need, miss;  /* need[miss] must fail; -1: none */
    int leak, commute; /* slot made to leave; node whose operands are exchanged; -1: none */
    int d, n_head, window;
    enum quant_type type, other_type; /* other_type: of the last repetition, for same_type */
    int n_name, n_tensor;
    int ids, pos, out_rows, table, score_state;
    unsigned ports;
    struct generated *out;
};

static inline const char *generate_name(struct generator *x)
{
    static _Thread_local char name[32];
    snprintf(name, sizeof name, "n%d", x->n_name++);
    return name;
}

static inline int generate_port(struct generator *x, int *value, enum port port)
{
    if (*value < 0)
        *value = graph_input(x->g, port);
    return *value;
}

static inline int generate_weight(struct generator *x, enum quant_type type, int n_row, int n_col,
                                  int n_mat)
{
    struct weight_slice s = {x->n_tensor++, 0, n_row, n_row, 1, n_mat, 0, 0};
    return graph_weight(x->g, generate_name(x), s, type, n_row, n_col);
}

static inline int generate_op(struct generator *x, enum op op, union attr at, int a, int b, int c)
{
    int n = c >= 0 ? 3 : b >= 0 ? 2 : 1;
    return graph_add(x->g, generate_name(x), op, at, n, (int[]){a, b, c});
}

/* A fresh activation [TOK, n_head, d]. */
static inline int generate_act(struct generator *x, int n_head, int d)
{
    int e = generate_weight(x, QUANT_F32, GENERATE_VOCAB, n_head * d, 1);
    int y = generate_op(x, OP_EMBED, ATTR_NONE, e, generate_port(x, &x->ids, PORT_IDS), -1);
    if (n_head == 1)
        return y;
    int w = generate_weight(x, QUANT_F32, n_head * d, n_head * d, 1);
    return generate_op(x, OP_MATMUL, (union attr){.MATMUL = {n_head}}, y, w, -1);
}

static inline int generate_kv(struct generator *x, int n_head, int d_k, int d_v)
{
    struct state_slot s = {.kind = SLOT_KV, .n_head_kv = n_head, .d_k = d_k, .d_v = d_v};
    return graph_slot(x->g, generate_name(x), s);
}

static inline int generate_rec(struct generator *x, int d)
{
    struct state_slot s = {.kind = SLOT_REC, .n_row = 3, .d = d, .n_snap = 2};
    return graph_slot(x->g, generate_name(x), s);
}

/* A cache that holds this step's rows too: what QK and PV read. */
static inline int generate_written_kv(struct generator *x)
{
    int d = x->d / x->n_head, n_head = x->n_head / 2 ? x->n_head / 2 : 1;
    struct state_slot s = {
        .kind = SLOT_KV, .n_head_kv = n_head, .d_k = d, .d_v = d, .window = x->window};
    int kv = graph_slot(x->g, generate_name(x), s);
    int k = generate_act(x, n_head, d), v = generate_act(x, n_head, d);
    return generate_op(x, OP_KV_WRITE, ATTR_NONE, kv, k, v);
}

static inline union attr generate_qk(const struct generator *x)
{
    return (union attr){.QK = {0.25f, x->window ? 2 : 0, x->window}};
}

static inline int generate_score(struct generator *x, int state)
{
    int n_head = x->n_head, d = x->d / n_head;
    if (state < 0)
        state = generate_written_kv(x);
    x->score_state = state;
    return generate_op(x, OP_QK, generate_qk(x), generate_act(x, n_head, d), state, -1);
}

/* Does a need of this kind, that is to hold, name the slot? */
static inline bool generate_needs(const struct generator *x, enum need_kind kind, int slot)
{
    for (int i = 0; i < x->n_need; i++)
        if (i != x->miss && x->need[i].kind == kind && x->need[i].a == x->v->slot[slot].name)
            return true;
    return false;
}

/* Is the need that must fail one of this kind about the slot (its last repetition)? */
static inline bool generate_misses(const struct generator *x, enum need_kind kind, int slot)
{
    if (x->miss < 0 || x->need[x->miss].kind != kind)
        return false;
    bool of_two = kind == NEED_same_row || kind == NEED_same_len; /* the second misses */
    int name = of_two ? x->need[x->miss].b : x->need[x->miss].a;
    for (int s = 0; s < x->v->n_slot; s++)
        if (x->v->slot[s].name == name && x->v->slot[s].input &&
            x->v->slot[s].rep > x->v->slot[slot].rep)
            return false;
    return x->v->slot[slot].name == name;
}

/* Operand 1 of an elementwise op beside x: weight or activation, as the needs want it. */
static inline int generate_beside(struct generator *x, int slot, int beside)
{
    struct shape s = x->g->value[beside].shape;
    bool weight = generate_needs(x, NEED_weight, slot) || generate_needs(x, NEED_vector, slot);
    weight |= generate_misses(x, NEED_same_row, slot);
    weight &= !generate_misses(x, NEED_weight, slot) && !generate_misses(x, NEED_vector, slot);
    if (generate_misses(x, NEED_same_len, slot))
        return generate_weight(x, QUANT_F32, 1, 1, 1);       /* one number */
    return weight ? generate_weight(x, QUANT_F32, 1, s.d, 1) /* one head for all heads */
                  : generate_act(x, s.n_head, s.d);
}

/* The matrix of a node; the result is a number per row where it must not have another's shape. */
static inline int generate_matrix(struct generator *x, const struct fuse_var_node *vn, int slot,
                                  int n_col)
{
    enum quant_type type = generate_misses(x, NEED_same_type, slot) ? x->other_type : x->type;
    int n_row = generate_misses(x, NEED_same_row, vn->out[0]) ? 1 : x->d;
    for (int i = 0; i < x->n_need; i++) {
        const struct need *n = &x->need[i];
        if (n->kind == NEED_narrow && n->a == x->v->slot[vn->out[0]].name)
            n_row = i == x->miss ? n->b + 1 : n->b < x->d ? n->b : x->d;
    }
    return generate_weight(x, type, n_row, n_col, vn->op == OP_MATMUL_ID ? 4 : 1);
}

/* An activation, as operand i of the node. */
static inline int generate_x(struct generator *x, const struct fuse_var_node *vn, int i)
{
    int first = vn->in[0] == FUSE_ABSENT ? -1 : x->out->value[vn->in[0]];
    int d_head = x->d / x->n_head, kv_head = x->n_head / 2 ? x->n_head / 2 : 1;
    if (vn->op == OP_STATE_WRITE) /* snapshots of some other convolution */
        return graph_out(
            x->g,
            generate_op(x, OP_CONV1D, (union attr){.CONV1D = {2}}, generate_act(x, 1, x->d),
                        generate_weight(x, QUANT_F32, x->d, 4, 1), generate_rec(x, x->d)),
            1);
    if (vn->op == OP_KV_WRITE) {
        struct shape have = {AXIS_TOK, 1, kv_head, 2 * d_head};
        if (first >= 0)
            have = x->g->value[first].shape;
        return generate_act(x, have.n_head, i == 1 && first >= 0 ? have.d - d_head : d_head);
    }
    if (vn->op == OP_ROPE || vn->op == OP_QK || vn->op == OP_RMS_NORM) {
        bool kv = vn->op == OP_ROPE && strstr(x->v->label, "KV_WRITE") != NULL;
        return generate_act(x, kv ? kv_head : x->n_head, d_head);
    }
    return generate_act(x, 1, x->d);
}

/* The operand i of the variant's node, whose earlier operands are bound. */
static inline int generate_operand(struct generator *x, const struct fuse_var_node *vn, int i)
{
    const int *bound = x->out->value;
    int first = vn->in[0] == FUSE_ABSENT ? -1 : bound[vn->in[0]], slot = vn->in[i];
    struct shape s = first >= 0 ? x->g->value[first].shape : (struct shape){0};
    int d_head = x->d / x->n_head, kv_head = x->n_head / 2 ? x->n_head / 2 : 1;
    switch (op_row(vn->op)->in[i]) {
    case 'w':
        if (vn->op == OP_CONV1D)
            return generate_weight(x, QUANT_F32, s.n_head * s.d, 4, 1);
        return generate_matrix(x, vn, slot, s.n_head * s.d);
    case 'e':
        return generate_weight(x, x->type, GENERATE_VOCAB, x->d, 1);
    case 'k':
        return generate_weight(x, QUANT_F32, 1, d_head / 2, 1);
    case 'i':
        if (vn->op == OP_MATMUL_ID) { /* a router's choice of two of the four matrices */
            int w = generate_weight(x, QUANT_F32, 4, s.n_head * s.d, 1);
            int y = generate_op(x, OP_MATMUL, (union attr){.MATMUL = {1}}, first, w, -1);
            return generate_op(x, OP_TOPK, (union attr){.TOPK = {2, 1}}, y, -1, -1);
        }
        return vn->op == OP_ROPE_TABLE ? generate_port(x, &x->pos, PORT_POS)
               : vn->op == OP_SELECT_ROWS || vn->op == OP_SELECT_TABLE
                   ? generate_port(x, &x->out_rows, PORT_OUT_ROWS)
                   : generate_port(x, &x->ids, PORT_IDS);
    case 't':
        if (x->table < 0)
            x->table =
                generate_op(x, OP_ROPE_TABLE, (union attr){.ROPE_TABLE = {d_head & ~1, 1e4f, 1}},
                            generate_port(x, &x->pos, PORT_POS), -1, -1);
        return x->table;
    case 'c':
        return generate_score(x, vn->op == OP_PV ? bound[vn->in[1]] : -1);
    case 's': {
        if (vn->op == OP_CONV1D)
            return generate_rec(x, s.n_head * s.d);
        if (vn->op == OP_STATE_WRITE)
            return generate_rec(x, x->d);
        if (vn->op == OP_PV)
            return x->score_state;
        if (vn->op == OP_QK)
            return generate_written_kv(x);
        int k = vn->op == OP_KV_WRITE ? bound[vn->in[1]] : -1;
        struct shape ks = k >= 0 ? x->g->value[k].shape : (struct shape){0, 1, kv_head, d_head};
        return generate_kv(x, ks.n_head, ks.d, d_head);
    }
    case 'v':
        if (vn->op == OP_SOFTMAX)
            return generate_weight(x, QUANT_F32, 1, s.n_head, 1);
        return generate_beside(x, slot, first);
    default: /* x, X */
        break;
    }
    return generate_x(x, vn, i);
}

static inline union attr generate_attr(const struct generator *x, enum op op)
{
    union attr at = {.word = {0}};
    int d_head = x->d / x->n_head & ~1;
    switch (op) { /* what the rules do not take as zero */
    case OP_SCALE:
        at.SCALE.factor = 0.75f;
        break;
    case OP_RMS_NORM:
        at.RMS_NORM.eps = 1e-5f;
        break;
    case OP_MATMUL:
        at.MATMUL.n_head = 1;
        break;
    case OP_MATMUL_ID:
        at.MATMUL_ID.n_head = 1;
        break;
    case OP_TOPK:
        at.TOPK.n_used = 2;
        at.TOPK.renorm = 1;
        break;
    case OP_SUM:
        at.SUM.k = 1;
        break;
    case OP_ROPE_TABLE:
        at.ROPE_TABLE.n_rot = d_head;
        at.ROPE_TABLE.base = 1e4f;
        at.ROPE_TABLE.factor = 1;
        break;
    case OP_ROPE:
        at.ROPE.neox = 1;
        break;
    case OP_QK:
        at = generate_qk(x);
        break;
    case OP_CONV1D:
        at.CONV1D.n_snap = 2;
        break;
    default: /* tests may */
        break;
    }
    return at;
}

/* Keeps a value alive behind a node that no row fuses. */
static inline void generate_sink(struct generator *x, int value)
{
    if (x->g->error.status != SINTER_OK || value < 0)
        return;
    struct value v = x->g->value[value];
    struct shape s = v.shape;
    if (v.kind == VALUE_STATE)
        return;
    if (v.kind == VALUE_IDS) {
        graph_port(x->g, value, PORT_ARGMAX);
        return;
    }
    if (v.kind == VALUE_SCORE) {
        value = generate_op(x, OP_PV, ATTR_NONE, value, x->score_state, -1);
        generate_sink(x, value);
        return;
    }
    if (v.kind == VALUE_TABLE) {
        int y = generate_act(x, 1, s.d);
        if (s.axis == AXIS_OUT)
            y = generate_op(x, OP_SELECT_ROWS, ATTR_NONE, y, x->out_rows, -1);
        generate_sink(x, generate_op(x, OP_ROPE, ATTR_NONE, y, value, -1));
        return;
    }
    value = generate_op(x, OP_SCALE, (union attr){.SCALE = {0.5f}}, value, -1, -1); /* exact */
    if (s.axis == AXIS_TOK && s.mult == 1) {
        int kv = generate_kv(x, s.n_head, s.d, s.d);
        generate_op(x, OP_KV_WRITE, ATTR_NONE, kv, value, value);
        return;
    }
    enum port port = x->ports & PORT_LOGITS ? PORT_HIDDEN : PORT_LOGITS;
    x->ports |= port;
    graph_port(x->g, value, port);
}

/* Type, width, heads and key so that all needs hold but the one to miss. */
static inline void generate_setup(struct generator *x)
{
    x->n_head = 4;
    x->out->key = (struct fuse_key){1, 1, 4, 2};
    for (int i = 0; i < x->n_need; i++) {
        const struct need *n = &x->need[i];
        bool miss = i == x->miss;
        int lo = n->b > 1 ? n->b : 1, hi = n->c ? n->c : lo + 3;
        if (n->kind == NEED_rows && !miss)
            x->out->key = (struct fuse_key){lo, hi, hi, hi};
        if (n->kind == NEED_rows && miss)
            x->out->key = n->c ? (struct fuse_key){lo, n->c + 1, n->c + 1, n->c + 1}
                               : (struct fuse_key){lo - 1, lo, lo - 1, lo - 1};
        for (int t = 0; n->kind == NEED_quant && t < QUANT_N; t++) {
            const struct quant_row *row = quant_row((enum quant_type)t);
            bool has = ((int)row->flags & n->b) == n->b;
            if (has != miss && row->block_elems <= 32) {
                x->type = (enum quant_type)t;
                break;
            }
        }
        if (n->kind == NEED_cols)
            x->d = miss ? (n->b % 32 == 0 && n->b > 32 ? n->b + 32 : n->b + n->b / 2)
                        : n->b * ((63 + n->b) / n->b);
        if (n->kind == NEED_heads)
            x->n_head = miss ? n->b - 1 : n->b > 4 ? n->b : 4;
    }
    while (x->d % (2 * x->n_head) && x->n_head > 1)
        x->n_head--;
    x->other_type = x->type == QUANT_Q8_0 ? QUANT_Q4_0 : QUANT_Q8_0;
}

static inline void generate_nodes(struct generator *x)
{
    const struct fuse_variant *v = x->v;
    for (int s = 0; s < FUSE_MAX_SLOT; s++)
        x->out->value[s] = -1;
    for (int j = 0; j < v->n_node && x->g->error.status == SINTER_OK; j++) {
        const struct fuse_var_node *vn = &v->node[j];
        int in[OP_MAX_IN];
        /* a state's shape comes from what is written, a score's state from the score */
        bool back = vn->op == OP_KV_WRITE || vn->op == OP_STATE_WRITE;
        for (int k = 0; k < vn->n_in; k++) {
            int i = back ? vn->n_in - 1 - k : k, slot = vn->in[i];
            if (x->out->value[slot] < 0)
                x->out->value[slot] = generate_operand(x, vn, i);
            in[i] = x->out->value[slot];
            if (x->g->error.status != SINTER_OK)
                return;
        }
        if (j == x->commute) {
            int t = in[0];
            in[0] = in[1];
            in[1] = t;
        }
        int y = graph_add(x->g, generate_name(x), vn->op, generate_attr(x, vn->op), vn->n_in, in);
        for (int o = 0; o < vn->n_out; o++)
            x->out->value[vn->out[o]] = graph_out(x->g, y, o);
        x->out->node[j] = x->g->n_node - 1;
        if (vn->op == OP_QK)
            x->score_state = in[1];
    }
}

/* Needs of the row, then of the line. */
static inline int generate_all_needs(const struct fuse_variant *v, const struct fuse_line *line,
                                     struct need need[12])
{
    int n = 0;
    for (int i = 0; i < 6 && v->row->need[i].kind != NEED_NONE; i++)
        need[n++] = v->row->need[i];
    for (int i = 0; line && i < 6 && line->need[i].kind != NEED_NONE; i++)
        need[n++] = line->need[i];
    return n;
}

static inline sinter_status generate(sinter_host *host, const struct fuse_variant *v,
                                     const struct fuse_line *line,
                                     const struct generate_shape *shape, int miss, int leak,
                                     int commute, struct generated *out, sinter_error *err)
{
    struct generator x = {.v = v,
                          .d = shape && shape->d ? shape->d : 64,
                          .type = shape ? shape->type : QUANT_F32,
                          .window = shape ? shape->window : 0,
                          .miss = miss,
                          .leak = leak,
                          .commute = commute,
                          .out = out,
                          .ids = -1,
                          .pos = -1,
                          .out_rows = -1,
                          .table = -1,
                          .score_state = -1};
    memset(out, 0, sizeof *out);
    x.n_need = generate_all_needs(v, line, x.need);
    TRY(graph_create(host, v->label, &x.g, err));
    generate_setup(&x);
    generate_nodes(&x);
    for (int s = 0; s < v->n_slot; s++) {
        if (v->slot[s].input)
            continue;
        if (s == leak)
            graph_port(x.g, out->value[s],
                       x.g->value[out->value[s]].kind == VALUE_IDS ? PORT_ARGMAX : PORT_LOGITS);
        if (s == leak)
            x.ports |= PORT_LOGITS;
    }
    for (int s = 0; s < v->n_slot; s++)
        if (!v->slot[s].input && !v->slot[s].inner)
            generate_sink(&x, out->value[s]);
    sinter_status status = graph_finish(x.g, err);
    if (status != SINTER_OK) {
        graph_free(x.g);
        return status;
    }
    out->graph = x.g;
    return SINTER_OK;
}

/* The variant fires: all needs of row and line hold. */
static inline sinter_status generate_fires(sinter_host *host, const struct fuse_table *t,
                                           const struct fuse_variant *v,
                                           const struct fuse_line *line, struct generated *out,
                                           sinter_error *err)
{
    (void)t;
    return generate(host, v, line, NULL, -1, -1, -1, out, err);
}

static inline bool generate_has_name(const struct fuse_variant *v, int name)
{
    for (int s = 0; s < v->n_slot; s++)
        if (v->slot[s].name == name)
            return true;
    return false;
}

/* Does the need say anything about this variant? */
static inline bool generate_speaks(const struct fuse_variant *v, const struct need *need)
{
    bool pair = need->kind == NEED_same_row || need->kind == NEED_same_len;
    return generate_has_name(v, need->a) && (!pair || generate_has_name(v, need->b));
}

/* As fires, but need number `need` of generate_all_needs fails. */
static inline sinter_status generate_near_miss(sinter_host *host, const struct fuse_table *t,
                                               const struct fuse_variant *v,
                                               const struct fuse_line *line, int need,
                                               struct generated *out, sinter_error *err)
{
    (void)t;
    return generate(host, v, line, NULL, need, -1, -1, out, err);
}

/* As fires, but the inner value of the slot is an output port too. */
static inline sinter_status generate_leak(sinter_host *host, const struct fuse_table *t,
                                          const struct fuse_variant *v,
                                          const struct fuse_line *line, int slot,
                                          struct generated *out, sinter_error *err)
{
    (void)t;
    return generate(host, v, line, NULL, -1, slot, -1, out, err);
}

/* As fires, with operands 0 and 1 of node j exchanged; SINTER_E_DATA where the shapes forbid it. */
static inline sinter_status generate_commuted(sinter_host *host, const struct fuse_table *t,
                                              const struct fuse_variant *v,
                                              const struct fuse_line *line, int j,
                                              struct generated *out, sinter_error *err)
{
    (void)t;
    return generate(host, v, line, NULL, -1, -1, j, out, err);
}

#endif
