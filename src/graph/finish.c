/* The end of building: readers, edges and the validator. */
#include "graph/shape.h"

#include "base/hash.h"

#include <string.h>

int graph_preds(const struct graph *g, int node, int *pred, int cap)
{
    const struct node *n = &g->node[node];
    const struct value *old = op_row(n->op)->state ? &g->value[n->in[0]] : NULL;
    int count = 0, n_reader = old ? old->n_reader : 0;
    for (int i = 0; i < n->n_in + n_reader; i++) {
        int p = i < n->n_in ? g->value[n->in[i]].node : old->reader[i - n->n_in];
        bool seen = p < 0 || p == node;
        for (int j = 0; j < i && !seen; j++)
            seen = p == (j < n->n_in ? g->value[n->in[j]].node : old->reader[j - n->n_in]);
        if (seen)
            continue;
        if (count < cap)
            pred[count] = p;
        count++;
    }
    return count;
}

/* Is p before position `at` of the order? */
static bool is_before(const int *order, int at, int p)
{
    if (!order)
        return p < at;
    for (int i = 0; i < at; i++)
        if (order[i] == p)
            return true;
    return false;
}

/* Every operand's maker, and every other reader of the version that it replaces, comes before. */
static int first_late(const struct graph *g, const int *order, int at)
{
    int node = order ? order[at] : at;
    const struct node *n = &g->node[node];
    for (int i = 0; i < n->n_in; i++) {
        int p = g->value[n->in[i]].node;
        if (p >= 0 && !is_before(order, at, p))
            return p;
    }
    if (!op_row(n->op)->state)
        return -1;
    const struct value *old = &g->value[n->in[0]];
    for (int i = 0; i < old->n_reader; i++)
        if (old->reader[i] != node && !is_before(order, at, old->reader[i]))
            return old->reader[i];
    return -1;
}

bool graph_order_ok(const struct graph *g, const int *order)
{
    for (int at = 0; at < g->n_node; at++) {
        int node = order ? order[at] : at;
        if (node < 0 || node >= g->n_node || is_before(order, at, node) ||
            first_late(g, order, at) >= 0)
            return false;
    }
    return true;
}

static bool reads(const struct node *n, int value, int n_in)
{
    for (int i = 0; i < n_in; i++)
        if (n->in[i] == value)
            return true;
    return false;
}

/* Reader lists: each reading node once, ascending. */
static sinter_status set_readers(struct graph *g, sinter_error *err)
{
    size_t total = 0;
    for (int v = 0; v < g->n_value; v++)
        g->value[v].n_reader = 0;
    for (int k = 0; k < g->n_node; k++)
        for (int i = 0; i < g->node[k].n_in; i++)
            if (!reads(&g->node[k], g->node[k].in[i], i)) {
                g->value[g->node[k].in[i]].n_reader++;
                total++;
            }
    int *list = arena_alloc_n(&g->arena, total + 1, sizeof *list);
    if (!list)
        return FAIL(err, MEMORY, "graph %s: no memory for %zu readers", g->name, total);
    for (int v = 0; v < g->n_value; v++) {
        g->value[v].reader = list;
        list += g->value[v].n_reader;
        g->value[v].n_reader = 0;
    }
    for (int k = 0; k < g->n_node; k++)
        for (int i = 0; i < g->node[k].n_in; i++)
            if (!reads(&g->node[k], g->node[k].in[i], i)) {
                struct value *v = &g->value[g->node[k].in[i]];
                ((int *)v->reader)[v->n_reader++] = k;
            }
    return SINTER_OK;
}

static sinter_status check_names(struct graph *g, sinter_error *err)
{
    size_t cap = 16;
    while (cap < 2 * (size_t)g->n_value)
        cap *= 2;
    int *table;
    NEW(g->arena.host, table, cap, err);
    sinter_status status = SINTER_OK;
    for (int v = 0; v < g->n_value && status == SINTER_OK; v++) {
        size_t at = fnv1a(FNV1A_START, g->value[v].name, strlen(g->value[v].name)) & (cap - 1);
        while (table[at] && strcmp(g->value[table[at] - 1].name, g->value[v].name) != 0)
            at = (at + 1) & (cap - 1);
        if (table[at])
            status =
                FAIL(err, INTERNAL, "graph %s: two values are named %s", g->name, g->value[v].name);
        table[at] = v + 1;
    }
    host_free(g->arena.host, table);
    return status;
}

/* The version that replaces v, made by a node, or -1. */
static int replacer(const struct graph *g, int v)
{
    for (int i = 0; i < g->value[v].n_reader; i++) {
        const struct node *n = &g->node[g->value[v].reader[i]];
        if (op_row(n->op)->state && n->in[0] == v)
            return g->value[v].reader[i];
    }
    return -1;
}

/* slot_last is what the chain of versions ends at. */
static sinter_status check_states(const struct graph *g, sinter_error *err)
{
    for (int v = 0; v < g->n_value; v++) {
        const struct value *s = &g->value[v];
        if (s->kind != VALUE_STATE)
            continue;
        int next = replacer(g, v);
        bool last = g->slot_last[s->index] == v;
        if (last != (next < 0))
            return FAIL(err, INTERNAL, "graph %s: state %s (version %d) %s", g->name, s->name,
                        s->version, last ? "is last, but is replaced" : "is lost");
        if (next >= 0 && g->value[g->node[next].out[0]].version != s->version + 1)
            return FAIL(err, INTERNAL, "graph %s: state %s: versions are not a chain", g->name,
                        s->name);
    }
    return SINTER_OK;
}

/* Scores go from QK through SOFTMAX to PV over one state version, to one reader, and to no port. */
static sinter_status check_scores(const struct graph *g, sinter_error *err)
{
    for (int v = 0; v < g->n_value; v++) {
        const struct value *c = &g->value[v];
        if (c->kind != VALUE_SCORE)
            continue;
        if (c->n_reader != 1 || c->port)
            return FAIL(err, INTERNAL, "graph %s: score %s must have one reader and no port",
                        g->name, c->name);
        const struct node *n = &g->node[c->reader[0]];
        int from = c->node; /* back to the node that made the scores out of a state */
        while (g->value[g->node[from].in[0]].kind == VALUE_SCORE)
            from = g->value[g->node[from].in[0]].node;
        if (graph_role(n, 1) == 's' && n->in[1] != g->node[from].in[1])
            return FAIL(err, INTERNAL, "graph %s: %s reads another state than the scores %s",
                        g->name, g->value[n->out[0]].name, c->name);
    }
    return SINTER_OK;
}

/* Each node reaches a port or a last state version, and each input that was made is read. */
static sinter_status check_dead(const struct graph *g, sinter_error *err)
{
    bool *live;
    sinter_status status = SINTER_OK;
    NEW(g->arena.host, live, g->n_node + 1, err);
    for (int k = g->n_node - 1; k >= 0; k--)
        for (int o = 0; o < g->node[k].n_out; o++) {
            const struct value *v = &g->value[g->node[k].out[o]];
            live[k] |= v->port != 0 ||
                       (v->kind == VALUE_STATE && g->slot_last[v->index] == g->node[k].out[o]);
            for (int i = 0; i < v->n_reader; i++)
                live[k] |= live[v->reader[i]];
        }
    for (int k = 0; k < g->n_node; k++)
        if (!live[k])
            FAIL_OUT(err, INTERNAL, "graph %s: node %s leads to no output port and no state",
                     g->name, g->value[g->node[k].out[0]].name);
    for (int v = 0; v < g->n_value; v++)
        if (g->value[v].node < 0 && g->value[v].n_reader == 0)
            FAIL_OUT(err, INTERNAL, "graph %s: nothing reads %s", g->name, g->value[v].name);
out:
    host_free(g->arena.host, live);
    return status;
}

static sinter_status check_nodes(const struct graph *g, sinter_error *err)
{
    for (int k = 0; k < g->n_node; k++) {
        const struct node *n = &g->node[k];
        const char *name = g->value[n->out[0]].name;
        struct shape shape[OP_MAX_OUT];
        int late = first_late(g, NULL, k);
        if (late >= 0)
            return FAIL(err, INTERNAL,
                        "graph %s: node %s replaces %s before its reader %s: add the reader first",
                        g->name, name, g->value[n->in[0]].name,
                        g->value[g->node[late].out[0]].name);
        sinter_status status = shape_infer(g, n, shape, err);
        if (status != SINTER_OK)
            return status_prefix(err, status, "graph %s: node %s", g->name, name);
        for (int o = 0; o < n->n_out; o++)
            if (!shape_equal(shape[o], g->value[n->out[o]].shape))
                return FAIL(err, INTERNAL, "graph %s: output %d of %s has not its rule's shape",
                            g->name, o, name);
    }
    return SINTER_OK;
}

sinter_status graph_finish(struct graph *g, sinter_error *err)
{
    if (g->error.status != SINTER_OK) {
        if (err)
            *err = g->error;
        return g->error.status;
    }
    TRY(set_readers(g, err));
    TRY(check_nodes(g, err));
    TRY(check_names(g, err));
    TRY(check_states(g, err));
    TRY(check_scores(g, err));
    return check_dead(g, err);
}
