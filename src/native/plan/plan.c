/* plan_create: the parts in order, and the round of bans. */
#include "native/plan/plan_impl.h"

#include <string.h>

enum { PLAN_MAX_ROUND = 1000 };

static sinter_status add_ban(sinter_host *host, struct plan_bans *bans,
                             const struct fuse_line *line, int node, sinter_error *err)
{
    void *block = bans->ban;
    TRY(host_grow(host, &block, &bans->cap, (size_t)bans->n + 1, sizeof *bans->ban, err));
    bans->ban = block;
    bans->ban[bans->n++] = (struct fuse_ban){line, node};
    return SINTER_OK;
}

/* The node of `to` whose first output has the name of the node's in `from`; -1 if it is not alive
 * there. */
static int same_node(const struct graph *from, int node, const struct graph *to)
{
    const char *name = from->value[from->node[node].out[0]].name;
    for (int v = 0; v < to->n_value; v++)
        if (strcmp(to->value[v].name, name) == 0)
            return to->value[v].node;
    return -1;
}

/* A ban of a SAME group concerns this plan. One of an OWN group bans all OWN lines of its row, in
 * all plans: else another plan could take another of them, and have other bits. */
static sinter_status ban_group(sinter_host *host, const struct fuse_table *table,
                               const struct graph *graph, const struct plan *p,
                               const struct group *g, struct plan_bans *mine,
                               struct plan_bans *bans, sinter_error *err)
{
    if (g->line->bits != BITS_OWN)
        return add_ban(host, mine, g->line, g->node[0], err);
    int node = same_node(p->graph, g->node[0], graph);
    for (int i = 0; i < table->list->n_line; i++) {
        const struct fuse_line *line = &table->list->line[i];
        if (line->bits != BITS_OWN || strcmp(line->row, g->line->row) != 0)
            continue;
        TRY(add_ban(host, mine, line, g->node[0], err));
        TRY(add_ban(host, bans, line, node, err));
    }
    return SINTER_OK;
}

/* The graph's bans by the live graph's node numbers. */
static sinter_status take_bans(sinter_host *host, const struct graph *graph, const struct plan *p,
                               const struct plan_bans *bans, struct plan_bans *mine,
                               sinter_error *err)
{
    for (int i = 0; i < bans->n; i++) {
        int node = same_node(graph, bans->ban[i].first_node, p->graph);
        if (node >= 0)
            TRY(add_ban(host, mine, bans->ban[i].line, node, err));
    }
    return SINTER_OK;
}

static void set_scratch(struct plan *p, const struct plan_options *o)
{
    enum { TILE_ROWS = 16, TILE_BYTES = 16 << 20 };
    p->n_key = o->n_key;
    for (int s = 0; s < p->n_step; s++) {
        const struct plan_step *step = &p->step[s];
        if (!step->group)
            continue;
        size_t (*scratch)(const struct graph *, const struct group *) = step->group->line->scratch;
        size_t bytes = scratch ? scratch(p->graph, step->group) : 0;
        if (bytes > p->scratch)
            p->scratch = (bytes + 63) & ~(size_t)63;
        if (!step->loop)
            continue;
        for (int i = 0; i < step->group->n_out; i++) {
            const struct value *v = &p->graph->value[step->group->out[i]];
            if (v->kind != VALUE_SCORE)
                continue;
            size_t row = (size_t)v->shape.n_head * (size_t)o->n_key * sizeof(float);
            size_t n = row ? TILE_BYTES / row : 1;
            n = n < 1 ? 1 : n > TILE_ROWS ? TILE_ROWS : n;
            if (n * row > p->score)
                p->score = (n * row + 63) & ~(size_t)63;
        }
    }
}

static void set_ports(struct plan *p)
{
    for (unsigned port = 1; port <= PORT_LAST; port *= 2) {
        p->port[port] = -1;
        for (int v = p->graph->n_value - 1; v >= 0; v--)
            if (p->graph->value[v].port & port)
                p->port[port] = v;
    }
}

static void set_bytes(struct plan *p)
{
    for (int b = 0; b < p->n_buf; b++) {
        size_t end = p->buf[b].off + p->buf[b].bytes * (size_t)p->buf[b].copies;
        if (end > p->bytes)
            p->bytes = end;
    }
}

static sinter_status plan_round(sinter_host *host, const struct native_kind *kind,
                                const struct fuse_table *table, const struct plan_options *o,
                                const struct plan_bans *bans, struct plan *p, sinter_error *err)
{
    struct fuse_key key = {p->key.row_lo, p->key.row_hi, p->key.out_cap, p->key.seq_cap};
    TRY(fuse_match(host, table, p->graph, &key, &o->fuse, bans->ban, bans->n, o->notes, &p->match,
                   err));
    int *order = arena_alloc_n(&p->arena, (size_t)p->match->n_group + 1, sizeof *order);
    if (!order)
        return FAIL(err, MEMORY, "no memory for the order of graph %s", p->graph->name);
    TRY(fuse_order(p->match, p->graph, o->order_seed, order, err));
    TRY(plan_forms(kind, p, order, err));
    plan_shares(kind, p);
    plan_liveness(kind, p);
    TRY(plan_offsets(p, err));
    if (o->offsets)
        o->offsets(p, o->offsets_seed);
    set_scratch(p, o);
    set_bytes(p);
    set_ports(p);
    return SINTER_OK;
}

static void reset_round(struct plan *p)
{
    fuse_result_free(p->match);
    p->match = NULL;
    p->n_step = p->n_buf = p->n_barrier = p->n_convert = 0;
    p->bytes = p->scratch = p->score = 0;
}

/* One refused group: banned, or (a single op or a convert) an error of the planner. */
static sinter_status refuse(sinter_host *host, const struct fuse_table *table,
                            const struct graph *graph, struct plan *p, int step,
                            struct plan_bans *mine, struct plan_bans *bans, sinter_error *err)
{
    const struct group *g = p->step[step].group;
    if (!g || g->n_node == 1 || p->n_round > PLAN_MAX_ROUND)
        return FAIL(err, INTERNAL,
                    "plan of graph %s: step %d (%s) overlaps what is alive and cannot be split",
                    graph->name, step, g ? g->variant->label : "convert");
    TRY(ban_group(host, table, graph, p, g, mine, bans, err));
    p->n_ban++;
    reset_round(p);
    return SINTER_OK;
}

sinter_status plan_create(sinter_host *host, const struct native_kind *kind,
                          const struct fuse_table *table, const struct graph *graph,
                          const struct plan_key *key, const struct plan_options *o,
                          struct plan_bans *bans, bool *own_ban, struct plan **out,
                          sinter_error *err)
{
    sinter_status status = SINTER_OK;
    struct plan_bans mine = {0};
    int n_own = bans->n;
    struct plan *p;
    NEW(host, p, 1, err);
    arena_init(&p->arena, host);
    p->key = *key;
    p->n_thread = o->n_thread;
    *own_ban = false;
    TRY_OUT(graph_live(graph, key->ports, key->all_rows, &p->graph, err));
    TRY_OUT(take_bans(host, graph, p, bans, &mine, err));
    for (int refused = 0; refused >= 0;) {
        TRY_OUT(plan_round(host, kind, table, o, &mine, p, err));
        p->n_round++;
        refused = plan_full(kind, p);
        if (refused >= 0)
            TRY_OUT(refuse(host, table, graph, p, refused, &mine, bans, err));
    }
    TRY_OUT(plan_set_after(kind, p, err));
    *own_ban = bans->n > n_own;
    *out = p;
    p = NULL;
out:
    host_free(host, mine.ban);
    plan_free(p);
    return status;
}

void plan_free(struct plan *p)
{
    if (!p)
        return;
    sinter_host *host = p->arena.host;
    fuse_result_free(p->match);
    graph_free(p->graph);
    arena_free(&p->arena);
    host_free(host, p);
}

int plan_barriers_per_layer(const struct plan *p)
{
    int most = 0;
    for (int s = 0; s < p->n_step;) {
        int layer = p->step[s].layer, n = 0, e = s;
        for (; e < p->n_step && p->step[e].layer == layer; e++)
            n += p->step[e].barrier;
        if (layer >= 0 && n > most)
            most = n;
        s = e;
    }
    return most;
}
