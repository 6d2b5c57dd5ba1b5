/* sinter_engine: options, admission, graph, weights, state, exec. */
#include "run/run.h"

#include "base/options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static sinter_status cache_type(const char *name, const char *flag, enum quant_type *type,
                                sinter_error *err)
{
    *type = name ? quant_from_name(name) : QUANT_F16;
    if (*type != QUANT_F32 && *type != QUANT_F16 && *type != QUANT_Q8_0)
        return FAIL(err, USAGE, "%s '%s' is no cache type; use f32, f16 or q8_0", flag, name);
    return SINTER_OK;
}

/* Refuses what the backend does not hold, before anything is loaded, and says who does. */
static sinter_status cache_held(const struct backend *b, const char *flag, enum quant_type type,
                                sinter_error *err)
{
    char held[64] = "", holders[64] = "";
    if (b->kv_types >> type & 1)
        return SINTER_OK;
    for (enum quant_type t = 0; t < QUANT_N; t++)
        if (b->kv_types >> t & 1)
            snprintf(held + strlen(held), sizeof held - strlen(held), " %s", quant_row(t)->name);
    for (int i = 0; i < backend_n; i++)
        if (backend_list[i]->kv_types >> type & 1)
            snprintf(holders + strlen(holders), sizeof holders - strlen(holders), " %s",
                     backend_list[i]->name);
    return FAIL(err, UNSUPPORTED, "%s: backend %s has no cache of type %s; it has%s (%s:%s)", flag,
                b->name, quant_row(type)->name, held, quant_row(type)->name, holders);
}

static sinter_status range(const char *what, int32_t v, int32_t lo, int32_t hi, sinter_error *err)
{
    if (v < lo || v > hi)
        return FAIL(err, USAGE, "%s is %d; it may be %d..%d", what, v, lo, hi);
    return SINTER_OK;
}

sinter_status engine_options(sinter_model *model, const sinter_engine_options *options,
                             sinter_engine_options *o, struct state_options *state,
                             const struct backend **backend, sinter_error *err)
{
    const struct options *host = host_options(model->host);
    TRY(options_copy(o, sizeof *o, options, err));
    if (!model->model)
        return FAIL(err, USAGE, "the file was opened for its vocabulary only; it cannot be run");
    const struct model_plan *plan = &model->model->plan;
    int train = plan->n_ctx_train > 0 ? plan->n_ctx_train : 4096;
    o->backend = o->backend ? o->backend : host->backend;
    o->n_ctx = o->n_ctx ? o->n_ctx : train < 4096 ? train : 4096;
    o->n_session = o->n_session ? o->n_session : 1;
    o->n_chunk = o->n_chunk ? o->n_chunk : 512;
    TRY(range("the context (n_ctx)", o->n_ctx, 1, 1 << 24, err));
    TRY(range("the sessions (n_session)", o->n_session, 1, 1024, err));
    TRY(range("the chunk (n_chunk)", o->n_chunk, 1, 1 << 16, err));
    TRY(range("the threads (n_thread)", o->n_thread, 0, 1024, err));
    if (o->n_ctx > train)
        TRY(host_warn(model->host, err, "a context of %d: the model was trained with %d", o->n_ctx,
                      train));
    int64_t n_row = (int64_t)o->n_ctx * o->n_session;
    o->n_chunk = o->n_chunk > n_row ? (int32_t)n_row : o->n_chunk;
    TRY(backend_find(o->backend, backend, err));
    *state = (struct state_options){.page_rows = (int)host->page_rows == 16 ? 16 : 64,
                                    .n_seq = o->n_session,
                                    .n_row = n_row,
                                    .n_ctx = o->n_ctx,
                                    .n_chunk = o->n_chunk};
    memcpy(state->model_hash, model->model->hash, sizeof state->model_hash);
    TRY(cache_type(o->type_k, "-ctk", &state->type_k, err));
    TRY(cache_type(o->type_v, "-ctv", &state->type_v, err));
    TRY(cache_held(*backend, "-ctk", state->type_k, err));
    return cache_held(*backend, "-ctv", state->type_v, err);
}

struct exec_options engine_exec_options(sinter_host *h, const sinter_engine_options *o)
{
    const struct options *host = host_options(h);
    return (struct exec_options){.n_thread = o->n_thread,
                                 .n_ctx = o->n_ctx,
                                 .n_chunk = o->n_chunk,
                                 .n_seq = o->n_session,
                                 .fuse = {.fusion = host->fusion,
                                          .disable = host->disable,
                                          .ignore_need = host->ignore_need},
                                 .profile = o->profile,
                                 .budget = host->memory > 0 ? (size_t)host->memory << 20 : 0};
}

static size_t budget(const sinter_host *host)
{
    int64_t mib = host_options(host)->memory;
    if (mib > 0)
        return (size_t)mib << 20;
    long pages = sysconf(_SC_PHYS_PAGES), each = sysconf(_SC_PAGESIZE);
    return pages > 0 && each > 0 ? (size_t)pages * (size_t)each : SIZE_MAX;
}

static double mib(size_t bytes)
{
    return (double)bytes / (1 << 20);
}

sinter_status engine_admit(sinter_host *host, const struct device_bytes *b, bool loaded,
                           sinter_error *err)
{
    size_t want = b->state + b->step + (loaded ? 0 : b->weights), used = host_usage(host).bytes;
    if (want > budget(host) || used > budget(host) - want)
        return FAIL(
            err, MEMORY,
            "the engine needs %.2f MiB (weights %.2f, state %.2f, step %.2f), the budget is %.2f "
            "MiB with %.2f in use; use a smaller context (-c), fewer sessions, a smaller "
            "chunk (-ub), or raise --memory",
            mib(want), mib(b->weights), mib(b->state), mib(b->step), mib(budget(host)), mib(used));
    return SINTER_OK;
}

/* The source's ctx serves both callbacks: the model to read, the engine to report to. */
struct source_ctx {
    const struct model *model;
    sinter_engine *engine;
};

static sinter_status source_read(void *ctx, const struct graph_weight *w, int mat, int64_t row,
                                 int64_t n, void *buf, sinter_error *err)
{
    const struct source_ctx *s = ctx;
    return model_read_rows(s->model, w, mat, row, n, buf, err);
}

static bool source_progress(void *ctx, uint64_t done, uint64_t total)
{
    const sinter_engine *e = ((const struct source_ctx *)ctx)->engine;
    return !e->o.progress || e->o.progress(e->o.progress_ctx, done, total);
}

static sinter_status load(sinter_engine *e, sinter_error *err)
{
    if (e->home->weights)
        return SINTER_OK;
    struct source_ctx ctx = {e->model->model, e};
    struct weight_source src = {&ctx, source_read, source_progress};
    return e->home->backend->load(e->home->device, &e->graph, 1, &src, &e->home->weights, err);
}

static sinter_status build(sinter_engine *e, const struct backend *backend,
                           const struct fuse_options *fuse, int tap, sinter_error *err)
{
    struct model_variant variant = {.n_ctx = e->o.n_ctx, .argmax = true, .tap = tap};
    struct exec_options eo = engine_exec_options(e->host, &e->o);
    struct device_bytes bytes;
    if (fuse)
        eo.fuse = *fuse;
    TRY(model_find_home(e->model, backend, &e->home, err));
    TRY(model_graph(e->model->model, &variant, &e->graph, err));
    TRY(backend->refuse(e->home->device, e->graph, err));
    TRY(backend->bytes(e->home->device, e->graph, &e->state_o, &eo, &bytes, err));
    TRY(engine_admit(e->host, &bytes, e->home->weights != NULL, err));
    TRY(backend->pool_make(e->home->device, e->graph, &e->state_o, &e->state, err));
    TRY(load(e, err));
    TRY(backend->build(e->home->device, e->graph, e->home->weights, e->state, &eo, &e->exec, err));
    NEW(e->host, e->seg, e->o.n_session, err);
    NEW(e->host, e->out, e->o.n_chunk, err);
    NEW(e->host, e->id, e->o.n_chunk, err);
    return SINTER_OK;
}

sinter_status engine_create(sinter_model *model, const sinter_engine_options *options,
                            const struct fuse_options *fuse, int tap, sinter_engine **out,
                            sinter_error *err)
{
    const struct backend *backend;
    sinter_engine *e;
    *out = NULL;
    NEW(model->host, e, 1, err);
    e->host = model->host;
    sinter_status status = engine_options(model, options, &e->o, &e->state_o, &backend, err);
    if (status == SINTER_OK && pthread_mutex_init(&e->turn, NULL))
        status = FAIL(err, THREAD, "a mutex could not be made; the system is out of resources");
    if (status != SINTER_OK) {
        host_free(e->host, e);
        return status;
    }
    e->model = model;
    atomic_fetch_add(&model->count, 1);
    status = build(e, backend, fuse, tap, err);
    if (status != SINTER_OK) {
        sinter_engine_free(e);
        return status;
    }
    *out = e;
    return SINTER_OK;
}

sinter_status sinter_engine_create(sinter_model *model, const sinter_engine_options *options,
                                   sinter_engine **out, sinter_error *err)
{
    return engine_create(model, options, NULL, 0, out, err);
}

void sinter_engine_free(sinter_engine *e)
{
    if (!e)
        return;
    if (e->n_session) {
        host_log(e->host, SINTER_LOG_ERROR,
                 "an engine with %d open sessions was to be freed; it stays: close them first",
                 e->n_session);
        return;
    }
    const struct backend *backend = e->home ? e->home->backend : NULL;
    if (backend && e->exec)
        backend->free(e->exec);
    if (backend && e->state)
        backend->pool_free(e->state);
    graph_free(e->graph);
    host_free(e->host, e->seg);
    host_free(e->host, e->out);
    host_free(e->host, e->id);
    sinter_model *model = e->model;
    pthread_mutex_destroy(&e->turn);
    host_free(e->host, e);
    model_unref(model);
}

int32_t sinter_engine_n_ctx(const sinter_engine *e)
{
    return e->o.n_ctx;
}
