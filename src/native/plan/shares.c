/* Shares and barriers. No barrier between writer and reader if the writer is EACH, or if their
 * shares are equal and the reader takes its own part only, or whole rows under ROW. */
#include "native/plan/plan_impl.h"

/* What HEAD cuts by: the heads of the slot that the step reads or writes. */
static int step_head_kv(const struct plan *p, const struct plan_step *step)
{
    for (int i = 0; step->group && i < step->group->n_in; i++) {
        const struct value *v = &p->graph->value[step->group->in[i]];
        if (v->kind == VALUE_STATE && p->graph->slot[v->index].kind == SLOT_KV)
            return p->graph->slot[v->index].n_head_kv;
    }
    return 1;
}

/* The value whose rows and columns a step's share cuts. */
static const struct value *step_out(const struct plan *p, const struct plan_step *step)
{
    if (!step->group)
        return &p->graph->value[step->value];
    for (int i = 0; i < step->group->n_out; i++)
        if (p->graph->value[step->group->out[i]].kind != VALUE_STATE)
            return &p->graph->value[step->group->out[i]];
    const struct node *n = &p->graph->node[step->group->node[0]]; /* a write of state: its rows */
    return &p->graph->value[n->in[n->n_in > 1 ? 1 : 0]];
}

static void take_share(struct plan_step *step, const struct plan_step *from)
{
    step->share = from->share;
    step->n_head_kv = from->n_head_kv;
}

static bool makes_int8(const struct plan *p, int s)
{
    const struct group *g = p->step[s].group;
    for (int i = 0; g && i < g->n_out; i++) {
        int b = p->buf_of[FORM_INT8][g->out[i]];
        if (b >= 0 && p->buf[b].writer == s)
            return true;
    }
    return false;
}

/* ANY: as the first input was written, if the step's own INT8 forms allow it. */
static void resolve_any(const struct native_kind *kind, struct plan *p, int s)
{
    struct plan_step *step = &p->step[s];
    struct read read[PLAN_MAX_READ];
    int n = plan_reads(kind, p, s, read);
    step->share = SHARE_ROW;
    for (int i = 0; i < n; i++) {
        const struct buf *b = &p->buf[p->buf_of[read[i].form][read[i].value]];
        if (b->writer < 0)
            continue;
        const struct plan_step *from = &p->step[b->writer];
        const struct value *in = &p->graph->value[read[i].value], *out = step_out(p, step);
        bool by_col = from->share == SHARE_COL || from->share == SHARE_HEAD;
        if (by_col && (row_len(in) != row_len(out) || in->shape.n_head != out->shape.n_head))
            return;
        if (from->share == SHARE_HEAD && out->shape.d % COL_UNIT != 0 && makes_int8(p, s))
            return;
        take_share(step, from);
        return;
    }
}

/* A convert reads whole rows: every thread its own copy where the rows are few. */
static enum share convert_share(const struct native_kind *kind, const struct plan *p, int value)
{
    const struct value *v = &p->graph->value[value]; /* experts' rows: as many as their tokens */
    return plan_rows_cap(p, v) / v->shape.mult <= kind->rows_few ? SHARE_EACH : SHARE_ROW;
}

bool plan_crosses(const struct plan *p, const struct plan_step *w, const struct plan_step *r,
                  const struct value *v, bool whole)
{
    const struct value *out = step_out(p, r);
    switch (w->share) {
    case SHARE_EACH:
        return false;
    case SHARE_ONE:
        return r->share != SHARE_ONE;
    case SHARE_ROW:
        return r->share != SHARE_ROW || out->shape.axis != v->shape.axis;
    case SHARE_COL:
        return r->share != SHARE_COL || whole || row_len(out) != row_len(v);
    case SHARE_HEAD:
        return r->share != SHARE_HEAD || whole || r->n_head_kv != w->n_head_kv;
    case SHARE_ANY:
        break;
    }
    return true;
}

/* Do both cut a slot's rows the same way: by its heads, or all in one thread? */
static bool same_cut(const struct plan_step *a, const struct plan_step *b)
{
    return (a->share == SHARE_ONE && b->share == SHARE_ONE) ||
           (a->share == SHARE_HEAD && b->share == SHARE_HEAD && a->n_head_kv == b->n_head_kv);
}

/* Has the list a version of the slot? */
static bool has_slot(const struct plan *p, const int *value, int n, int slot)
{
    for (int i = 0; i < n; i++)
        if (p->graph->value[value[i]].kind == VALUE_STATE &&
            p->graph->value[value[i]].index == slot)
            return true;
    return false;
}

/* Rows of K and V that step s reads or writes over: another thread may still be writing them, or,
 * where s writes the slot's next version, reading them. */
static bool state_needs_barrier(const struct plan *p, int s, int last_barrier)
{
    const struct group *g = p->step[s].group;
    for (int i = last_barrier; g && i < s; i++) {
        const struct group *before = p->step[i].group;
        if (!before || same_cut(&p->step[i], &p->step[s]))
            continue;
        for (int v = 0; v < g->n_in; v++) {
            const struct value *value = &p->graph->value[g->in[v]];
            if (value->kind != VALUE_STATE)
                continue;
            if (has_slot(p, before->out, before->n_out, value->index) ||
                (has_slot(p, g->out, g->n_out, value->index) &&
                 has_slot(p, before->in, before->n_in, value->index)))
                return true;
        }
    }
    return false;
}

static bool reads_need_barrier(const struct native_kind *kind, const struct plan *p, int s,
                               int last_barrier)
{
    struct read read[PLAN_MAX_READ];
    int n = plan_reads(kind, p, s, read);
    for (int i = 0; i < n; i++) {
        const struct buf *b = &p->buf[p->buf_of[read[i].form][read[i].value]];
        if (b->writer < last_barrier || b->writer < 0)
            continue;
        if (plan_crosses(p, &p->step[b->writer], &p->step[s], &p->graph->value[b->value],
                         read[i].whole))
            return true;
    }
    return false;
}

void plan_shares(const struct native_kind *kind, struct plan *p)
{
    int last_barrier = 0;
    for (int s = 0; s < p->n_step; s++) {
        struct plan_step *step = &p->step[s];
        step->n_head_kv = step_head_kv(p, step);
        if (!step->group)
            step->share = convert_share(kind, p, step->value);
        else if (step->share == SHARE_ANY)
            resolve_any(kind, p, s);
        bool in_loop = step->loop && s > 0 && p->step[s - 1].loop == step->loop;
        step->barrier = !in_loop && s > 0 &&
                        (reads_need_barrier(kind, p, s, last_barrier) ||
                         state_needs_barrier(p, s, last_barrier));
        if (step->barrier) {
            last_barrier = s;
            p->n_barrier++;
        }
    }
    for (int b = 0; b < p->n_buf; b++) {
        if (p->buf[b].writer < 0)
            continue;
        p->buf[b].share = p->step[p->buf[b].writer].share;
        p->buf[b].copies = p->buf[b].share == SHARE_EACH ? p->n_thread : 1;
    }
}
