/* Cost of nodes by the roles of their operands: ops.def says what w, e and s are. */
#include "graph/cost.h"

static uint64_t n_row_of(const struct shape *s, const struct cost_step *step)
{
    const int64_t axis[] = {[AXIS_TOK] = step->n_tok,
                            [AXIS_OUT] = step->n_out,
                            [AXIS_SEQ] = step->n_seq,
                            [AXIS_ONE] = 1};
    return (uint64_t)(axis[s->axis] * s->mult);
}

/* Matrices of a weight: all of them work on each row, unless ids choose one per row. */
static void add_matrix(const struct graph *g, const struct value *w, const struct value *out,
                       bool chosen, const struct cost_step *step, struct cost *sum)
{
    const struct graph_weight *info = &g->weight[w->index];
    const uint64_t each = (uint64_t)w->shape.mult * (uint64_t)w->shape.d;
    const uint64_t n_mat = info->slice.n_mat > 1 ? (uint64_t)info->slice.n_mat : 1;
    const uint64_t k = (uint64_t)out->shape.mult < n_mat ? (uint64_t)out->shape.mult : n_mat;
    const uint64_t rows = n_row_of(&out->shape, step);
    sum->macs += rows * each * (chosen ? 1 : n_mat);
    if (rows)
        sum->weight_bytes += quant_bytes(info->type, each) * (chosen ? k : n_mat);
}

/* A reader of K (it makes scores) or of V. */
static void add_kv(const struct graph *g, const struct value *state, const struct value *out,
                   const struct cost_step *step, struct cost *sum)
{
    const struct state_slot *slot = &g->slot[state->index];
    const bool is_k = out->kind == VALUE_SCORE;
    int64_t rows = step->n_past + step->n_tok;
    if (slot->kind != SLOT_KV)
        return;
    if (slot->window && rows > slot->window + step->n_tok - 1)
        rows = slot->window + step->n_tok - 1;
    sum->kv_bytes +=
        (uint64_t)(rows * slot->n_head_kv) *
        quant_bytes(is_k ? step->type_k : step->type_v, (size_t)(is_k ? slot->d_k : slot->d_v));
}

void cost_add(const struct graph *g, const struct node *n, const struct cost_step *step,
              struct cost *sum)
{
    const struct value *out = &g->value[n->out[0]];
    bool chosen = false;
    for (int i = 0; i < n->n_in; i++)
        chosen |= graph_role(n, i) == 'i';
    for (int i = 0; i < n->n_in; i++) {
        const struct value *v = n->in[i] < 0 ? NULL : &g->value[n->in[i]];
        const char role = graph_role(n, i);
        if (!v)
            continue;
        if (role == 'w' && v->kind == VALUE_WEIGHT)
            add_matrix(g, v, out, chosen, step, sum);
        else if (role == 'e' && v->kind == VALUE_WEIGHT)
            sum->weight_bytes += n_row_of(&out->shape, step) *
                                 quant_bytes(g->weight[v->index].type, (size_t)v->shape.d);
        else if (role == 's' && !op_row(n->op)->state)
            add_kv(g, v, out, step, sum);
    }
}
