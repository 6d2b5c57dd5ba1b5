/* Work of a plan step: matrices are read once a call, the cache once per sequence and step (a GQA
 * group shares it), looked-up rows once each. Multiply-adds of matrices and attention only. */
#include "native/profile.h"

static uint64_t axis_rows(const struct exec *x, const struct value *v)
{
    const int n[] = {
        [AXIS_TOK] = x->n_tok, [AXIS_OUT] = x->n_out, [AXIS_SEQ] = x->batch->n_seg, [AXIS_ONE] = 1};
    return (uint64_t)n[v->shape.axis] * (uint64_t)v->shape.mult;
}

static const struct weight *weight_of(const struct exec *x, const struct node *n, int at)
{
    return &x->weights->weight[x->cur->graph->value[n->in[at]].index];
}

/* The operand of this role, -1 if there is none. */
static int operand(const struct node *n, char role)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && graph_role(n, i) == role)
            return i;
    return -1;
}

static void add_matrix(const struct exec *x, const struct node *n, int at, struct step_work *w)
{
    const struct weight *m = weight_of(x, n, at);
    uint64_t rows = axis_rows(x, &x->cur->graph->value[n->out[0]]);
    bool by_id = operand(n, 'i') >= 0;
    uint64_t used = by_id && rows < (uint64_t)m->n_mat ? rows : (uint64_t)m->n_mat;
    w->bytes += (by_id ? used : 1) * m->mat_bytes;
    w->macs += rows * (uint64_t)m->n_row * (uint64_t)m->n_col;
}

/* Keys that the rows of the step see: sum over sequences and rows, and the longest per sequence. */
static void add_attention(const struct exec *x, const struct node *n, int state,
                          struct step_work *w)
{
    const struct graph *g = x->cur->graph;
    bool makes_scores = g->value[n->out[0]].kind == VALUE_SCORE;
    const struct value *heads = &g->value[makes_scores ? n->in[0] : n->out[0]];
    const struct state_slot *slot = &g->slot[g->value[n->in[state]].index];
    uint64_t d = (uint64_t)(makes_scores ? slot->d_k : slot->d_v), seen = 0, read = 0;
    for (int i = 0; i < x->batch->n_seg; i++) {
        const struct batch_seg *s = &x->batch->seg[i];
        int most = 0;
        for (int r = 0; r < s->n_row; r++) {
            int keys = s->n_past + r + 1;
            keys = slot->window && keys > slot->window ? slot->window : keys;
            seen += (uint64_t)keys;
            most = keys > most ? keys : most;
        }
        read += (uint64_t)most;
    }
    if (heads->shape.axis == AXIS_OUT && x->n_tok)
        seen = seen * (uint64_t)x->n_out / (uint64_t)x->n_tok;
    w->macs += seen * (uint64_t)heads->shape.n_head * d;
    w->bytes += read * (uint64_t)slot->n_head_kv * d * 2;
}

struct step_work step_work(const struct exec *x, const struct plan_step *step)
{
    struct step_work w = {0, 0};
    for (int i = 0; step->group && i < step->group->n_node; i++) {
        const struct node *n = &x->cur->graph->node[step->group->node[i]];
        int matrix = operand(n, 'w'), table = operand(n, 'e'), state = operand(n, 's');
        bool scores = operand(n, 'c') >= 0 || x->cur->graph->value[n->out[0]].kind == VALUE_SCORE;
        if (matrix >= 0)
            add_matrix(x, n, matrix, &w);
        if (scores && state >= 0)
            add_attention(x, n, state, &w);
        if (table >= 0)
            w.bytes +=
                axis_rows(x, &x->cur->graph->value[n->out[0]]) *
                (weight_of(x, n, table)->mat_bytes / (uint64_t)weight_of(x, n, table)->n_row);
    }
    return w;
}
