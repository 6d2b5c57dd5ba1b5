/* The live graph of a plan key: what the wanted ports and the states need, and nothing else. */
#include "graph/graph.h"

#include <string.h>

struct live {
    const struct graph *from;
    struct graph *to;
    bool all_rows;
    bool *node;  /* [from->n_node]: lives */
    bool *value; /* [from->n_value]: read by a living node, or made by one */
    int *map;    /* [from->n_value]: its value in `to`, or -1 */
};

/* With all rows wanted, selections pass their operand on. */
static bool is_dropped(const struct live *l, int node)
{
    enum op op = l->from->node[node].op;
    return l->all_rows && (op == OP_SELECT_ROWS || op == OP_SELECT_TABLE);
}

static void mark(struct live *l, unsigned ports)
{
    const struct graph *g = l->from;
    for (int v = 0; v < g->n_value; v++)
        l->value[v] = (g->value[v].port & ports & ~(unsigned)PORT_INS) != 0;
    for (int s = 0; s < g->n_slot; s++)
        l->value[g->slot_last[s]] = true;
    for (int k = g->n_node - 1; k >= 0; k--) {
        const struct node *n = &g->node[k];
        for (int o = 0; o < n->n_out; o++)
            l->node[k] |= l->value[n->out[o]];
        if (!l->node[k])
            continue;
        for (int i = 0; i < (is_dropped(l, k) ? 1 : n->n_in); i++)
            l->value[n->in[i]] = true;
        for (int o = 0; o < n->n_out; o++)
            l->value[n->out[o]] = true;
    }
}

static sinter_status copy_values(struct live *l, unsigned ports, sinter_error *err)
{
    const struct graph *g = l->from;
    struct graph *to = l->to;
    for (int v = 0; v < g->n_value; v++) {
        const struct value *old = &g->value[v];
        unsigned port = old->port & (ports | PORT_INS);
        l->map[v] = -1;
        if (!l->value[v])
            continue;
        if (old->node >= 0 && is_dropped(l, old->node)) { /* its port goes to its operand */
            l->map[v] = l->map[g->node[old->node].in[0]];
            to->value[l->map[v]].port |= port;
            continue;
        }
        struct value *new = &to->value[to->n_value];
        *new = *old;
        new->name = arena_strndup(&to->arena, old->name, strlen(old->name));
        if (!new->name)
            return FAIL(err, MEMORY, "graph %s: no memory for a name", g->name);
        new->port = port;
        if (l->all_rows && new->shape.axis == AXIS_OUT)
            new->shape.axis = AXIS_TOK;
        l->map[v] = to->n_value++;
    }
    return SINTER_OK;
}

static void copy_nodes(struct live *l)
{
    const struct graph *g = l->from;
    for (int k = 0; k < g->n_node; k++) {
        if (!l->node[k] || is_dropped(l, k))
            continue;
        struct node *n = &l->to->node[l->to->n_node];
        *n = g->node[k];
        for (int i = 0; i < n->n_in; i++)
            n->in[i] = l->map[n->in[i]];
        for (int o = 0; o < n->n_out; o++) {
            n->out[o] = l->map[n->out[o]];
            l->to->value[n->out[o]].node = l->to->n_node;
        }
        l->to->n_node++;
    }
}

static sinter_status copy_tables(struct live *l, sinter_error *err)
{
    const struct graph *g = l->from;
    struct graph *to = l->to;
    to->n_weight = g->n_weight;
    to->n_slot = g->n_slot;
    to->weight = arena_alloc_n(&to->arena, (size_t)g->n_weight + 1, sizeof *to->weight);
    to->slot = arena_alloc_n(&to->arena, (size_t)g->n_slot + 1, sizeof *to->slot);
    to->slot_last = arena_alloc_n(&to->arena, (size_t)g->n_slot + 1, sizeof *to->slot_last);
    to->value = arena_alloc_n(&to->arena, (size_t)g->n_value + 1, sizeof *to->value);
    to->node = arena_alloc_n(&to->arena, (size_t)g->n_node + 1, sizeof *to->node);
    if (!to->weight || !to->slot || !to->slot_last || !to->value || !to->node)
        return FAIL(err, MEMORY, "graph %s: no memory for a live graph of %d nodes", g->name,
                    g->n_node);
    for (int w = 0; w < g->n_weight; w++) {
        to->weight[w] = g->weight[w];
        to->weight[w].name =
            arena_strndup(&to->arena, g->weight[w].name, strlen(g->weight[w].name));
        if (!to->weight[w].name)
            return FAIL(err, MEMORY, "graph %s: no memory for a name", g->name);
    }
    if (g->n_slot)
        memcpy(to->slot, g->slot, (size_t)g->n_slot * sizeof *to->slot);
    return SINTER_OK;
}

static sinter_status check_ports(const struct graph *g, unsigned ports, sinter_error *err)
{
    unsigned has = 0;
    for (int v = 0; v < g->n_value; v++)
        has |= g->value[v].port;
    if (ports & ~(has | PORT_INS))
        return FAIL(err, USAGE, "graph %s has no output port %u: ask for what it has (%u)", g->name,
                    ports & ~(has | PORT_INS), has & ~(unsigned)PORT_INS);
    return SINTER_OK;
}

sinter_status graph_live(const struct graph *g, unsigned ports, bool all_rows, struct graph **out,
                         sinter_error *err)
{
    sinter_host *host = g->arena.host;
    struct live l = {.from = g, .all_rows = all_rows};
    sinter_status status = SINTER_OK;
    *out = NULL;
    TRY(check_ports(g, ports, err));
    TRY(graph_create(host, g->name, &l.to, err));
    NEW_OUT(host, l.node, g->n_node + 1, err);
    NEW_OUT(host, l.value, g->n_value + 1, err);
    NEW_OUT(host, l.map, g->n_value + 1, err);
    mark(&l, ports);
    TRY_OUT(copy_tables(&l, err));
    TRY_OUT(copy_values(&l, ports, err));
    copy_nodes(&l);
    for (int s = 0; s < g->n_slot; s++)
        l.to->slot_last[s] = l.map[g->slot_last[s]];
    TRY_OUT(graph_finish(l.to, err));
    *out = l.to;
    l.to = NULL;
out:
    host_free(host, l.node);
    host_free(host, l.value);
    host_free(host, l.map);
    graph_free(l.to);
    return status;
}
