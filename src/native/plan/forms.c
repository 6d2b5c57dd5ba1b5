/* Steps and buffers: which forms of which values exist, who writes them, where converts stand. */
#include "native/plan/plan_impl.h"

/* The form in which a node reads its operand i: INT8 where the matrix beside it asks for it. */
static enum form form_read(const struct native_kind *kind, const struct graph *g,
                           const struct node *n, int i)
{
    if (!kind->int8 || graph_role(n, i) != 'X')
        return FORM_F32;
    for (int j = 0; j < n->n_in; j++) {
        if (n->in[j] < 0 || graph_role(n, j) != 'w')
            continue;
        enum quant_type type = g->weight[g->value[n->in[j]].index].type;
        if (quant_row(type)->flags & QUANT_INT8_X)
            return FORM_INT8;
    }
    return FORM_F32;
}

static bool is_buffered(const struct value *v)
{
    return v->kind == VALUE_ACT || v->kind == VALUE_IDS || v->kind == VALUE_TABLE;
}

static bool is_outside(const struct group *g, int value)
{
    for (int i = 0; i < g->n_in; i++)
        if (g->in[i] == value)
            return true;
    return false;
}

int plan_reads(const struct native_kind *kind, const struct plan *p, int s, struct read *read)
{
    const struct plan_step *step = &p->step[s];
    if (!step->group) {
        read[0] = (struct read){step->value, FORM_F32, true};
        return 1;
    }
    int n_read = 0;
    for (int i = 0; i < step->group->n_node; i++) {
        const struct node *n = &p->graph->node[step->group->node[i]];
        for (int j = 0; j < n->n_in; j++) {
            int v = n->in[j];
            if (v < 0 || !is_buffered(&p->graph->value[v]) || !is_outside(step->group, v))
                continue;
            read[n_read++] = (struct read){v, form_read(kind, p->graph, n, j),
                                           graph_role(n, j) == 'X' || graph_role(n, j) == 'i'};
        }
    }
    return n_read;
}

static size_t form_bytes(const struct plan *p, int value, enum form form)
{
    const struct value *v = &p->graph->value[value];
    if (form == FORM_INT8)
        return plan_int8_parts(p, v).bytes;
    size_t n = (size_t)plan_rows_cap(p, v) * (size_t)row_len(v);
    return (n * sizeof(float) + 63) & ~(size_t)63;
}

static int add_buf(struct plan *p, int value, enum form form, int writer)
{
    int b = p->n_buf++;
    p->buf[b] = (struct buf){.value = value,
                             .form = form,
                             .writer = writer,
                             .share = SHARE_ONE,
                             .bytes = form_bytes(p, value, form),
                             .copies = 1,
                             .alias = -1};
    p->buf_of[form][value] = b;
    return b;
}

/* Score loops: SOFTMAX and PV stand directly behind their QK. Legal: what they read besides the
 * score is weights and the state that QK reads too. */
static int score_reader(const struct plan *p, const struct group *g)
{
    for (int i = 0; i < g->n_out; i++) {
        const struct value *v = &p->graph->value[g->out[i]];
        if (v->kind == VALUE_SCORE)
            return v->n_reader ? p->match->group_of[v->reader[0]] : -1;
    }
    return -1;
}

static bool reads_score(const struct plan *p, const struct group *g)
{
    for (int i = 0; i < g->n_in; i++)
        if (p->graph->value[g->in[i]].kind == VALUE_SCORE)
            return true;
    return false;
}

static void add_step(struct plan *p, const struct group *g, int loop)
{
    p->step[p->n_step++] = (struct plan_step){.group = g,
                                              .value = -1,
                                              .share = loop ? SHARE_ROW : g->line->share,
                                              .loop = loop,
                                              .layer = p->graph->node[g->node[0]].layer};
}

/* Marks which forms of each value anybody reads; wants = [n_value][FORM_N]. */
static void mark_wanted(const struct native_kind *kind, const struct plan *p, bool (*wants)[FORM_N])
{
    struct read read[PLAN_MAX_READ];
    for (int s = 0; s < p->n_step; s++) {
        int n = plan_reads(kind, p, s, read);
        for (int i = 0; i < n; i++)
            wants[read[i].value][read[i].form] = true;
    }
    for (int v = 0; v < p->graph->n_value; v++)
        if (p->graph->value[v].port & p->key.ports)
            wants[v][FORM_F32] = true;
}

/* A group can write INT8 itself if its line says so and its share can be cut at 32 columns; one
 * that is cut by columns may go by heads inside of its share (attention does). */
static bool writes_int8(const struct plan *p, const struct plan_step *step, int value)
{
    const struct value *v = &p->graph->value[value];
    if (!step->group->line->writes_forms || step->loop)
        return false;
    bool by_col = step->share == SHARE_HEAD || step->share == SHARE_COL;
    return !by_col || v->shape.d % 32 == 0;
}

/* Puts the convert of `value` before step s. */
static void insert_convert(struct plan *p, int s, int value)
{
    for (int i = p->n_step; i > s; i--)
        p->step[i] = p->step[i - 1];
    p->n_step++;
    p->step[s] = (struct plan_step){
        .group = NULL, .value = value, .share = SHARE_ROW, .layer = p->step[s + 1].layer};
    p->n_convert++;
}

static void insert_converts(const struct native_kind *kind, struct plan *p, bool (*wants)[FORM_N],
                            const bool *made)
{
    struct read read[PLAN_MAX_READ];
    for (int s = 0; s < p->n_step; s++) {
        if (!p->step[s].group)
            continue;
        int n = plan_reads(kind, p, s, read);
        for (int i = 0; i < n; i++) {
            int v = read[i].value;
            if (read[i].form != FORM_INT8 || made[v] || !wants[v][FORM_INT8])
                continue;
            wants[v][FORM_INT8] = false; /* one convert serves all its readers */
            wants[v][FORM_F32] = true;
            insert_convert(p, s, v);
            s++;
        }
    }
}

static void add_bufs(struct plan *p, bool (*wants)[FORM_N], const bool *made)
{
    for (int v = 0; v < p->graph->n_value; v++) {
        p->buf_of[FORM_F32][v] = p->buf_of[FORM_INT8][v] = -1;
        const struct value *val_ = &p->graph->value[v];
        if (val_->node < 0 && is_buffered(val_) && (val_->port & PORT_INS))
            add_buf(p, v, FORM_F32, -1);
    }
    for (int s = 0; s < p->n_step; s++) {
        const struct plan_step *step = &p->step[s];
        if (!step->group) {
            add_buf(p, step->value, FORM_INT8, s);
            continue;
        }
        for (int i = 0; i < step->group->n_out; i++) {
            int v = step->group->out[i];
            if (!is_buffered(&p->graph->value[v]))
                continue;
            if (wants[v][FORM_F32])
                add_buf(p, v, FORM_F32, s);
            if (made[v])
                add_buf(p, v, FORM_INT8, s);
        }
    }
}

static void make_steps(struct plan *p, const int *order)
{
    int loop = 0;
    for (int i = 0; i < p->match->n_group; i++) {
        const struct group *g = &p->match->group[order[i]];
        if (reads_score(p, g))
            continue;
        int next = score_reader(p, g);
        if (next >= 0)
            loop++;
        add_step(p, g, next >= 0 ? loop : 0);
        for (; next >= 0; next = score_reader(p, &p->match->group[next]))
            add_step(p, &p->match->group[next], loop);
    }
}

sinter_status plan_forms(const struct native_kind *kind, struct plan *p, const int *order,
                         sinter_error *err)
{
    size_t n_value = (size_t)p->graph->n_value;
    p->step = arena_alloc_n(&p->arena, (size_t)p->match->n_group + n_value, sizeof *p->step);
    p->buf = arena_alloc_n(&p->arena, 2 * n_value, sizeof *p->buf);
    p->buf_of[FORM_F32] = arena_alloc_n(&p->arena, n_value, sizeof(int));
    p->buf_of[FORM_INT8] = arena_alloc_n(&p->arena, n_value, sizeof(int));
    bool(*wants)[FORM_N] = arena_alloc_n(&p->arena, n_value, sizeof *wants);
    bool *made = arena_alloc_n(&p->arena, n_value, sizeof *made);
    if (!p->step || !p->buf || !p->buf_of[FORM_F32] || !p->buf_of[FORM_INT8] || !wants || !made)
        return FAIL(err, MEMORY, "no memory for the plan of graph %s", p->graph->name);
    make_steps(p, order);
    mark_wanted(kind, p, wants);
    for (int s = 0; s < p->n_step; s++)
        for (int i = 0; i < p->step[s].group->n_out; i++) {
            int v = p->step[s].group->out[i];
            made[v] = wants[v][FORM_INT8] && writes_int8(p, &p->step[s], v);
        }
    insert_converts(kind, p, wants, made);
    add_bufs(p, wants, made);
    return SINTER_OK;
}
