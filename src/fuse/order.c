/* A legal order of groups. Groups that are tied by a score value are one unit: the unfused plan
 * runs them as a loop over row tiles, so they must be neighbours. Units come by Kahn's rule out of
 * a heap; the key is graph order, or a hash of the seed. */
#include "fuse/internal.h"

struct order {
    const struct fuse_result *r;
    const struct graph *graph;
    uint64_t seed;
    int *unit_of;      /* [n_group]: smallest group of its unit */
    int *n_before;     /* [n_group]: edges into the unit that are still open */
    int *replacer;     /* [n_value] */
    int *heap, n_heap; /* units that are ready */
    uint64_t *key;
};

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void heap_push(struct order *o, int unit)
{
    int i = o->n_heap++;
    for (; i > 0 && o->key[o->heap[(i - 1) / 2]] > o->key[unit]; i = (i - 1) / 2)
        o->heap[i] = o->heap[(i - 1) / 2];
    o->heap[i] = unit;
}

static int heap_pop(struct order *o)
{
    int top = o->heap[0], last = o->heap[--o->n_heap], i = 0;
    for (int c = 1; c < o->n_heap; i = c, c = 2 * i + 1) {
        if (c + 1 < o->n_heap && o->key[o->heap[c + 1]] < o->key[o->heap[c]])
            c++;
        if (o->key[last] <= o->key[o->heap[c]])
            break;
        o->heap[i] = o->heap[c];
    }
    o->heap[i] = last;
    return top;
}

/* Calls fn for each edge from a group to a node that must come after, within the node. */
static void edges(struct order *o, int node, void (*fn)(struct order *o, int from, int to))
{
    const struct graph *g = o->graph;
    const struct node *n = &g->node[node];
    int from = o->r->group_of[node];
    for (int k = 0; k < n->n_out; k++) {
        const struct value *v = &g->value[n->out[k]];
        for (int r = 0; r < v->n_reader; r++)
            fn(o, from, o->r->group_of[v->reader[r]]);
    }
    for (int i = 0; i < n->n_in; i++) {
        int after = o->replacer[n->in[i]];
        if (after >= 0 && after != node)
            fn(o, from, o->r->group_of[after]);
    }
}

static void count_edge(struct order *o, int from, int to)
{
    if (o->unit_of[from] != o->unit_of[to])
        o->n_before[o->unit_of[to]]++;
}

static void close_edge(struct order *o, int from, int to)
{
    int unit = o->unit_of[to];
    if (o->unit_of[from] != unit && --o->n_before[unit] == 0)
        heap_push(o, unit);
}

static void close_group(struct order *o, int g)
{
    for (int i = 0; i < o->r->group[g].n_node; i++)
        edges(o, o->r->group[g].node[i], close_edge);
}

/* Units: a score ties its maker's group to its reader's. */
static void set_units(struct order *o)
{
    const struct graph *g = o->graph;
    for (int k = 0; k < o->r->n_group; k++)
        o->unit_of[k] = k;
    for (int v = 0; v < g->n_value; v++) {
        if (g->value[v].kind != VALUE_SCORE || g->value[v].n_reader == 0)
            continue;
        int a = o->unit_of[o->r->group_of[g->value[v].node]];
        int b = o->unit_of[o->r->group_of[g->value[v].reader[0]]];
        for (int k = 0; k < o->r->n_group; k++) /* scores are few and units small */
            if (o->unit_of[k] == (a > b ? a : b))
                o->unit_of[k] = a > b ? b : a;
    }
}

/* The unit's groups; inside, scores go forward in graph order. */
static int emit(const struct order *o, int unit, int *order, int n)
{
    for (int g = unit; g < o->r->n_group; g++)
        if (o->unit_of[g] == unit)
            order[n++] = g;
    return n;
}

static sinter_status run(struct order *o, int *order, sinter_error *err)
{
    int n = 0;
    set_units(o);
    for (int v = 0; v < o->graph->n_value; v++)
        o->replacer[v] = -1;
    for (int k = 0; k < o->graph->n_node; k++)
        if (op_row(o->graph->node[k].op)->state)
            o->replacer[o->graph->node[k].in[0]] = k;
    for (int k = 0; k < o->graph->n_node; k++)
        edges(o, k, count_edge);
    for (int g = 0; g < o->r->n_group; g++) {
        o->key[g] = o->seed ? mix(o->seed + (uint64_t)g) : (uint64_t)g;
        if (o->unit_of[g] == g && o->n_before[g] == 0)
            heap_push(o, g);
    }
    while (o->n_heap > 0) {
        int first = n;
        n = emit(o, heap_pop(o), order, n);
        for (int i = first; i < n; i++)
            close_group(o, order[i]);
    }
    if (n != o->r->n_group)
        return FAIL(err, INTERNAL, "graph %s: its groups have no legal order: %d of %d placed",
                    o->graph->name, n, o->r->n_group);
    return SINTER_OK;
}

sinter_status fuse_order(const struct fuse_result *r, const struct graph *graph, uint64_t seed,
                         int *order, sinter_error *err)
{
    sinter_host *host = r->arena.host;
    struct order o = {.r = r, .graph = graph, .seed = seed};
    sinter_status status = SINTER_OK;
    NEW_OUT(host, o.unit_of, r->n_group + 1, err);
    NEW_OUT(host, o.n_before, r->n_group + 1, err);
    NEW_OUT(host, o.heap, r->n_group + 1, err);
    NEW_OUT(host, o.key, r->n_group + 1, err);
    NEW_OUT(host, o.replacer, graph->n_value + 1, err);
    TRY_OUT(run(&o, order, err));
out:
    host_free(host, o.unit_of);
    host_free(host, o.n_before);
    host_free(host, o.heap);
    host_free(host, o.key);
    host_free(host, o.replacer);
    return status;
}
