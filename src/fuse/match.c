/* The one matcher. Lines of rows with two or more nodes are asked in the list's order, their larger
 * variants first, anchors in graph order; what is found is taken at once if its members are free
 * and the graph of groups stays acyclic. Single ops take what is left. */
#include "fuse/match.h"

#include "fuse/stats.h"

#include <string.h>

/* ---- Legality ------------------------------------------------------------------------------- */

const struct need *match_need(const struct matcher *m, const struct group *g,
                              const struct fuse_line *line)
{
    const struct need *lists[2] = {g->variant->row->need, line->need};
    for (int l = 0; l < 2; l++)
        for (int i = 0; i < need_count(lists[l]); i++) {
            if (need_holds(&lists[l][i], m->graph, g, m->key))
                continue;
            bool ignored = false;
            for (int k = 0; k < m->n_ignore && !ignored; k++)
                ignored = m->ignore[k].variant == g->variant &&
                          need_is(&lists[l][i], m->ignore[k].need, m->ignore[k].bytes);
            if (!ignored)
                return &lists[l][i];
        }
    return NULL;
}

bool match_banned(const struct matcher *m, const struct group *g, const struct fuse_line *line)
{
    for (int b = 0; b < m->n_ban; b++)
        if (m->ban[b].line == line && m->ban[b].first_node == g->node[0])
            return true;
    return false;
}

/* Marks a node and the members of its group; puts them on the stack once. */
static void visit(struct matcher *m, int node, int *top)
{
    int g = m->group_of[node];
    int n = g < 0 ? 1 : m->group[g].n_node;
    if (m->stamp[node] == m->stamp_now)
        return;
    for (int i = 0; i < n; i++) {
        int k = g < 0 ? node : m->group[g].node[i];
        m->stamp[k] = m->stamp_now;
        m->stack[(*top)++] = k;
    }
}

/* Pushes the nodes that must come after `node`; true if one of them is a member (stamp = member)
 * and node is not. */
static bool push_after(struct matcher *m, int node, int member, bool from_member, int *top)
{
    const struct graph *graph = m->graph;
    const struct node *n = &graph->node[node];
    for (int o = 0; o < n->n_out; o++) {
        const struct value *v = &graph->value[n->out[o]];
        for (int r = 0; r < v->n_reader; r++) {
            if (m->stamp[v->reader[r]] != member)
                visit(m, v->reader[r], top);
            else if (!from_member)
                return true;
        }
    }
    for (int i = 0; i < n->n_in; i++) { /* readers of a version come before what replaces it */
        int after = m->replacer[n->in[i]];
        if (after < 0 || after == node)
            continue;
        if (m->stamp[after] != member)
            visit(m, after, top);
        else if (!from_member)
            return true;
    }
    return false;
}

/* Contracting the group makes a cycle if a way leads out of it and back in. */
static bool makes_cycle(struct matcher *m, const struct group *g)
{
    int member = ++m->stamp_now, top = 0;
    for (int i = 0; i < g->n_node; i++)
        m->stamp[g->node[i]] = member;
    m->stamp_now++;
    for (int i = 0; i < g->n_node; i++)
        push_after(m, g->node[i], member, true, &top);
    while (top > 0)
        if (push_after(m, m->stack[--top], member, false, &top))
            return true;
    return false;
}

/* ---- Taking --------------------------------------------------------------------------------- */

static void add_unique(int *list, int *n, int value)
{
    for (int i = 0; i < *n; i++)
        if (list[i] == value)
            return;
    list[(*n)++] = value;
}

/* What comes in and what leaves, in slot order. */
static void set_ends(const struct graph *graph, struct group *g, const int *group_of, int id)
{
    for (int s = 0; s < g->variant->n_slot; s++) {
        if (g->value[s] < 0)
            continue;
        const struct value *v = &graph->value[g->value[s]];
        if (g->variant->slot[s].input) {
            add_unique(g->in, &g->n_in, g->value[s]);
            continue;
        }
        bool leaves = v->port != 0 || v->kind == VALUE_STATE;
        for (int r = 0; r < v->n_reader && !leaves; r++)
            leaves = group_of[v->reader[r]] != id;
        if (leaves)
            add_unique(g->out, &g->n_out, g->value[s]);
    }
}

static void take(struct matcher *m, const struct group *g, const struct fuse_line *line)
{
    struct group *to = &m->group[m->n_group];
    *to = *g;
    to->line = line;
    for (int i = 0; i < g->n_node; i++)
        m->group_of[g->node[i]] = m->n_group;
    m->n_group++;
    m->result->count[g->variant->id].matched++;
}

struct take_ctx {
    struct matcher *m;
    const struct fuse_line *line;
    const struct need *failed;
};

static bool accept_group(struct trial *t)
{
    struct take_ctx *x = t->ctx;
    const struct need *failed = match_need(x->m, &t->group, x->line);
    if (failed) {
        x->failed = failed;
        return false;
    }
    return !match_banned(x->m, &t->group, x->line) && !makes_cycle(x->m, &t->group);
}

/* All groups of a line, larger variants first, then by position. */
static void take_line(struct matcher *m, int l)
{
    const struct fuse_table *t = m->table;
    const struct fuse_variant *first = &t->variant[t->of_line[l].first];
    struct take_ctx x = {m, &t->list->line[l], NULL};
    struct trial trial;
    for (int size = FUSE_MAX_NODE; size > 1; size--)
        for (int k = 0; k < m->graph->n_node; k++)
            for (int v = 0; v < t->of_line[l].n; v++)
                if (first[v].n_node == size && m->graph->node[k].op == first[v].node[0].op &&
                    m->group_of[k] < 0 && !m->disabled[first[v].id] &&
                    trial_run(&trial, m, &first[v], k, true, accept_group, &x))
                    take(m, &trial.group, x.line);
}

static sinter_status no_line(const struct matcher *m, int node, const struct fuse_line *asked,
                             const struct need *failed, sinter_error *err)
{
    const struct node *n = &m->graph->node[node];
    struct text_buf b;
    sinter_status status;
    text_buf_init(&b, m->host);
    if (failed)
        need_print(failed, &b);
    status = text_buf_end(&b, err);
    if (status == SINTER_OK)
        status = FAIL(err, UNSUPPORTED, "graph %s: backend %s cannot run %s at %s: %s%s%s",
                      m->graph->name, m->table->list->backend, op_row(n->op)->name,
                      m->graph->value[n->out[0]].name,
                      failed  ? "needs "
                      : asked ? "its group was refused for where its values lie"
                              : "its list has no line for the op",
                      failed ? b.text : "", failed ? "" : "; use another backend");
    text_buf_free(&b);
    return status;
}

/* The node on its own: the first line of its op that takes it. */
static sinter_status take_single(struct matcher *m, int node, sinter_error *err)
{
    const struct fuse_table *t = m->table;
    const struct fuse_variant *v = &t->variant[t->n_single + (int)m->graph->node[node].op - 1];
    const struct fuse_line *asked = NULL;
    const struct need *failed = NULL;
    struct trial trial;
    for (int l = 0; l < t->list->n_line; l++) {
        if (t->of_line[l].first != v->id)
            continue;
        struct take_ctx x = {m, &t->list->line[l], NULL};
        asked = x.line;
        if (trial_run(&trial, m, v, node, true, accept_group, &x)) {
            take(m, &trial.group, x.line);
            return SINTER_OK;
        }
        failed = x.failed ? x.failed : failed;
    }
    return no_line(m, node, asked, failed, err);
}

/* ---- Setting up and handing over ------------------------------------------------------------ */

static sinter_status set_up(struct matcher *m, sinter_error *err)
{
    size_t n_node = (size_t)m->graph->n_node + 1, n_value = (size_t)m->graph->n_value + 1;
    NEW(m->host, m->group, n_node, err);
    NEW(m->host, m->stamp, n_node, err);
    NEW(m->host, m->stack, n_node, err);
    NEW(m->host, m->replacer, n_value, err);
    NEW(m->host, m->disabled, m->table->n_variant, err);
    m->result->group_of = arena_alloc_n(&m->result->arena, n_node, sizeof *m->result->group_of);
    m->result->count =
        arena_alloc_n(&m->result->arena, (size_t)m->table->n_variant, sizeof *m->result->count);
    if (!m->result->group_of || !m->result->count)
        return FAIL(err, MEMORY, "graph %s: no memory for its groups", m->graph->name);
    m->group_of = m->result->group_of;
    for (int v = 0; v < m->graph->n_value; v++)
        m->replacer[v] = -1;
    for (int k = 0; k < m->graph->n_node; k++) {
        m->group_of[k] = -1;
        if (op_row(m->graph->node[k].op)->state)
            m->replacer[m->graph->node[k].in[0]] = k;
    }
    return match_options(m, err);
}

/* Groups in graph order of their first nodes, with ids, ends and arrays of their own. */
static sinter_status hand_over(struct matcher *m, sinter_error *err)
{
    struct fuse_result *r = m->result;
    int *new_id = m->stack;
    r->group = arena_alloc_n(&r->arena, (size_t)m->n_group + 1, sizeof *r->group);
    if (!r->group)
        return FAIL(err, MEMORY, "graph %s: no memory for %d groups", m->graph->name, m->n_group);
    for (int g = 0; g < m->n_group; g++)
        new_id[g] = -1;
    for (int k = 0; k < m->graph->n_node; k++) {
        int old = m->group_of[k];
        if (new_id[old] < 0) {
            new_id[old] = r->n_group;
            r->group[r->n_group] = m->group[old];
            r->group[r->n_group].id = r->n_group;
            r->n_group++;
        }
        m->group_of[k] = new_id[old];
    }
    for (int g = 0; g < r->n_group; g++)
        set_ends(m->graph, &r->group[g], r->group_of, g);
    return SINTER_OK;
}

static sinter_status match(struct matcher *m, bool notes, sinter_error *err)
{
    TRY(set_up(m, err));
    for (int l = 0; m->options->fusion && l < m->table->list->n_line; l++)
        if (m->table->of_line[l].first < m->table->n_single)
            take_line(m, l);
    for (int k = 0; k < m->graph->n_node; k++)
        if (m->group_of[k] < 0)
            TRY(take_single(m, k, err));
    TRY(hand_over(m, err));
    return m->options->fusion ? match_diagnose(m, notes, err) : SINTER_OK;
}

sinter_status fuse_match(sinter_host *host, const struct fuse_table *t, const struct graph *graph,
                         const struct fuse_key *key, const struct fuse_options *options,
                         const struct fuse_ban *ban, int n_ban, bool notes,
                         struct fuse_result **out, sinter_error *err)
{
    struct matcher m = {.host = host,
                        .table = t,
                        .graph = graph,
                        .key = key,
                        .options = options,
                        .ban = ban,
                        .n_ban = n_ban};
    *out = NULL;
    NEW(host, m.result, 1, err);
    arena_init(&m.result->arena, host);
    sinter_status status = match(&m, notes, err);
    host_free(host, m.group);
    host_free(host, m.stamp);
    host_free(host, m.stack);
    host_free(host, m.replacer);
    host_free(host, m.disabled);
    host_free(host, m.ignore);
    if (status != SINTER_OK) {
        fuse_result_free(m.result);
        return status;
    }
    *out = m.result;
    return SINTER_OK;
}

void fuse_result_free(struct fuse_result *r)
{
    if (!r)
        return;
    sinter_host *host = r->arena.host;
    arena_free(&r->arena);
    host_free(host, r);
}
