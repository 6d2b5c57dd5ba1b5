/* Devices of native backends: table and counters, loading, building. */
#include "native/device.h"

#include "base/options.h"

static void *host_mem_alloc(void *ctx, size_t bytes)
{
    return host_alloc(ctx, bytes);
}

static void *host_mem_alloc_raw(void *ctx, size_t bytes)
{
    return host_alloc_raw(ctx, bytes);
}

static void host_mem_free(void *ctx, void *block)
{
    host_free(ctx, block);
}

static void access_on(const struct device *d, bool on)
{
    if (d->mem.access)
        d->mem.access(d->mem.ctx, on);
}

sinter_status native_open(sinter_host *host, const struct native_kind *kind,
                          const struct device_mem *mem, void (*close_mem)(void *),
                          struct device **out, sinter_error *err)
{
    sinter_status status = SINTER_OK;
    struct device *d = host_alloc(host, sizeof *d);
    if (!d) {
        if (mem && close_mem)
            close_mem(mem->ctx);
        return host_no_memory(err, 1, sizeof *d, "a device");
    }
    *d = (struct device){.host = host,
                         .kind = kind,
                         .close_mem = close_mem,
                         .mem = {host, host_mem_alloc, host_mem_free, NULL, host_mem_alloc_raw}};
    if (mem)
        d->mem = *mem;
    TRY_OUT(fuse_table_create(host, kind->list, &d->table, err));
    TRY_OUT(fuse_stats_create(host, d->table, &d->stats, err));
    *out = d;
    return SINTER_OK;
out:
    native_close(d);
    return status;
}

void native_close(struct device *d)
{
    if (!d)
        return;
    fuse_stats_free(d->stats);
    fuse_table_free(d->table);
    if (d->close_mem)
        d->close_mem(d->mem.ctx);
    host_free(d->host, d);
}

sinter_status native_load(struct device *d, struct graph *const *graph, int n_graph,
                          const struct weight_source *src, struct weights **out, sinter_error *err)
{
    struct weights *w;
    struct pool *pool;
    TRY(host_pool(d->host, &pool, err));
    TRY(weights_plan(d->host, d->kind, &d->mem, graph, n_graph, &w, err));
    access_on(d, true);
    sinter_status status = weights_load(w, src, pool, err);
    access_on(d, false);
    if (status != SINTER_OK) {
        weights_free(w);
        return status;
    }
    *out = w;
    return SINTER_OK;
}

void native_unload(struct device *d, struct weights *w)
{
    (void)d;
    weights_free(w);
}

/* A matrix of a type that the backend has no kernel for. */
static sinter_status refuse_types(const struct device *d, const struct graph *g, sinter_error *err)
{
    for (int i = 0; i < g->n_node; i++)
        for (int j = 0; j < g->node[i].n_in; j++) {
            int v = g->node[i].in[j];
            if (v < 0 || graph_role(&g->node[i], j) != 'w' || !d->kind->weight->takes)
                continue;
            const struct graph_weight *w = &g->weight[g->value[v].index];
            if (!d->kind->weight->takes(w->type))
                return FAIL(err, UNSUPPORTED,
                            "%s is %s, and backend %s has no kernel for matrices of that type; use "
                            "another backend or another quantisation of the model",
                            w->name, quant_row(w->type)->name, d->kind->name);
        }
    return SINTER_OK;
}

sinter_status native_refuse(struct device *d, const struct graph *g, sinter_error *err)
{
    struct fuse_key key = {1, 1, 1, 1};
    struct fuse_options o = {.fusion = false, .disable = "", .ignore_need = ""};
    struct fuse_result *r;
    TRY(refuse_types(d, g, err));
    TRY(fuse_match(d->host, d->table, g, &key, &o, NULL, 0, false, &r, err));
    fuse_result_free(r);
    return SINTER_OK;
}

sinter_status native_threads(const struct device *d, struct exec_options *o, sinter_error *err)
{
    struct pool *pool;
    TRY(host_pool(d->host, &pool, err));
    if (o->n_thread <= 0 || o->n_thread > pool_n_thread(pool))
        o->n_thread = pool_n_thread(pool);
    return SINTER_OK;
}

sinter_status native_build(struct device *d, const struct graph *g, const struct weights *w,
                           struct state_pool *state, const struct exec_options *o,
                           struct exec **out, sinter_error *err)
{
    struct exec_options with = *o;
    struct pool *pool;
    TRY(host_pool(d->host, &pool, err));
    with.stats = d->stats;
    if (with.n_thread > pool_n_thread(pool))
        TRY(host_warn(d->host, err, "%d threads were asked for, the host has %d; set --threads",
                      with.n_thread, pool_n_thread(pool)));
    TRY(native_threads(d, &with, err));
    return exec_create(d->host, d->kind, d->table, g, w, state, &d->mem, pool, &with, out, err);
}

sinter_status native_pool_make(struct device *d, const struct graph *g,
                               const struct state_options *o, struct state_pool **out,
                               sinter_error *err)
{
    return state_pool_create(d->host, &d->mem, g->slot, g->n_slot, o, out, err);
}

sinter_status native_save(struct device *d, struct seq *s, int row0, int row1, struct text_buf *out,
                          sinter_error *err)
{
    access_on(d, true);
    sinter_status status = seq_save(s, row0, row1, out, err);
    access_on(d, false);
    return status;
}

sinter_status native_restore(struct device *d, struct seq *s, int n_row, const void *data,
                             size_t bytes, sinter_error *err)
{
    access_on(d, true);
    sinter_status status = seq_restore(s, n_row, data, bytes, err);
    access_on(d, false);
    return status;
}
