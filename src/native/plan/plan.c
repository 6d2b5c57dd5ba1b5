/* plan_create: the parts in order, and the round of bans. */
#include "native/plan/plan_impl.h"

#include <string.h>

enum { PLAN_MAX_ROUND = 1000 };

static sinter_status add_ban(sinter_host *host, struct plan_bans *bans, const struct group *g,
                             sinter_error *err)
{
    void *block = bans->ban;
    TRY(host_grow(host, &block, &bans->cap, (size_t)bans->n + 1, sizeof *bans->ban, err));
    bans->ban = block;
    bans->ban[bans->n++] = (struct fuse_ban){g->line, g->node[0]};
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
    return SINTER_OK;
}

static void reset_round(struct plan *p)
{
    fuse_result_free(p->match);
    p->match = NULL;
    p->n_step = p->n_buf = p->n_barrier = p->n_convert = 0;
    p->bytes = p->scratch = p->score = 0;
}

sinter_status plan_create(sinter_host *host, const struct native_kind *kind,
                          const struct fuse_table *table, const struct graph *graph,
                          const struct plan_key *key, const struct plan_options *o,
                          struct plan_bans *bans, bool *own_ban, struct plan **out,
                          sinter_error *err)
{
    sinter_status status = SINTER_OK;
    struct plan *p;
    NEW(host, p, 1, err);
    arena_init(&p->arena, host);
    p->key = *key;
    p->n_thread = o->n_thread;
    *own_ban = false;
    TRY_OUT(graph_live(graph, key->ports, key->all_rows, &p->graph, err));
    for (;;) {
        TRY_OUT(plan_round(host, kind, table, o, bans, p, err));
        p->n_round++;
        int refused = plan_full(kind, p);
        if (refused < 0)
            break;
        const struct group *g = p->step[refused].group;
        if (!g || g->n_node == 1 || p->n_round > PLAN_MAX_ROUND)
            FAIL_OUT(err, INTERNAL,
                     "plan of graph %s: step %d (%s) overlaps what is alive and cannot be split",
                     graph->name, refused, g ? g->variant->label : "convert");
        if (g->line->bits == BITS_OWN)
            *own_ban = true;
        TRY_OUT(add_ban(host, bans, g, err));
        p->n_ban++;
        reset_round(p);
    }
    *out = p;
    return SINTER_OK;
out:
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
