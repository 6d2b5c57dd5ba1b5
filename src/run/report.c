/* Reports, plans without loading, dummies and measurements behind sinter.h. */
#include "run/run.h"

#include <stdio.h>
#include <string.h>

static sinter_status give(struct text_buf *b, sinter_status status, sinter_write_fn write,
                          void *ctx, sinter_error *err)
{
    if (status == SINTER_OK)
        status = text_buf_flush(b, write, ctx, err);
    text_buf_free(b);
    return status;
}

static void summary(const sinter_engine *e, struct text_buf *b, bool json)
{
    struct exec_summary s = e->home->backend->summary(e->exec);
    double n = e->n_decode > 2 ? (double)(e->n_decode - 2) : 1;
    uint64_t warnings = host_warnings(e->host);
    if (warnings && !json)
        text_buf_printf(b, "warnings %llu\n", (unsigned long long)warnings);
    text_buf_printf(b,
                    json ? "{\"graphs\":1,\"plans\":%llu,\"allocs_per_token\":%g,"
                           "\"barriers_per_layer\":%d,\"fallbacks\":%d,\"warnings\":%llu}\n"
                         : "graphs 1 plans %llu allocs/token %g barriers/layer %d fallbacks %d\n",
                    (unsigned long long)s.n_plan, (double)e->decode_allocs / n,
                    s.barriers_per_layer, s.n_fallback, (unsigned long long)warnings);
}

static void memory(const struct device_bytes *d, struct text_buf *b, bool json)
{
    size_t total = d->weights + d->state + d->step;
    text_buf_printf(b,
                    json ? "{\"weights\":%zu,\"state\":%zu,\"step\":%zu,\"total\":%zu}\n"
                         : "weights %14zu\nstate   %14zu\nstep    %14zu\ntotal   %14zu\n",
                    d->weights, d->state, d->step, total);
}

sinter_status sinter_engine_report(sinter_engine *e, sinter_report what, bool json,
                                   sinter_write_fn write, void *ctx, sinter_error *err)
{
    static const enum device_report map[] = {
        [SINTER_REPORT_PLAN] = DEVICE_PLANS,
        [SINTER_REPORT_FUSION] = DEVICE_FUSION,
        [SINTER_REPORT_FUSION_LIST] = DEVICE_FUSION_LIST,
        [SINTER_REPORT_FUSION_WHY] = DEVICE_FUSION_WHY,
        [SINTER_REPORT_PROFILE] = DEVICE_PROFILE,
    };
    struct text_buf b;
    sinter_status status = SINTER_OK;
    text_buf_init(&b, e->host);
    engine_take(e);
    if (what == SINTER_REPORT_SUMMARY) {
        summary(e, &b, json);
    } else if (what == SINTER_REPORT_MEMORY) {
        struct device_bytes d = e->home->backend->summary(e->exec).bytes;
        memory(&d, &b, json);
    } else if ((size_t)what < sizeof map / sizeof map[0]) {
        status = e->home->backend->report(e->home->device, e->exec, map[what], json, &b, err);
    } else {
        status = FAIL(err, USAGE, "there is no report %d", (int)what);
    }
    engine_give(e);
    return give(&b, status, write, ctx, err);
}

static sinter_status plan_bytes(sinter_model *m, const sinter_engine_options *options,
                                struct text_buf *b, bool json, sinter_error *err)
{
    sinter_engine_options o;
    struct state_options so;
    const struct backend *backend;
    struct model_home *home;
    struct graph *graph;
    struct device_bytes bytes;
    TRY(engine_options(m, options, &o, &so, &backend, err));
    TRY(model_find_home(m, backend, &home, err));
    struct model_variant variant = {.n_ctx = o.n_ctx, .argmax = true};
    struct exec_options eo = engine_exec_options(m->host, &o);
    TRY(model_graph(m->model, &variant, &graph, err));
    sinter_status status = backend->refuse(home->device, graph, err);
    if (status == SINTER_OK)
        status = backend->bytes(home->device, graph, &so, &eo, &bytes, err);
    graph_free(graph);
    TRY(status);
    memory(&bytes, b, json);
    return engine_admit(m->host, &bytes, home->weights != NULL, err);
}

sinter_status sinter_plan_print(sinter_model *model, const sinter_engine_options *options,
                                bool json, sinter_write_fn write, void *ctx, sinter_error *err)
{
    struct text_buf b;
    sinter_error second;
    text_buf_init(&b, model->host);
    sinter_status status = plan_bytes(model, options, &b, json, err);
    if (status == SINTER_E_MEMORY && b.bytes) { /* the figures are shown all the same */
        sinter_status shown = text_buf_flush(&b, write, ctx, &second);
        text_buf_free(&b);
        return shown == SINTER_OK ? status : status_fail(err, shown, "%s", second.message);
    }
    return give(&b, status, write, ctx, err);
}

/* ---- Dummies -----------------------------------------------------------------------------------
 */

static sinter_status kind_of(const char *name, enum dummy_kind *kind, sinter_error *err)
{
    for (*kind = 0; *kind < DUMMY_N_KIND; ++*kind)
        if (strcmp(dummy_kind_name(*kind), name) == 0)
            return SINTER_OK;
    return FAIL(err, USAGE, "there is no dummy of kind '%s'; use mixed, f32, fused or optional",
                name);
}

sinter_status sinter_dummy_write(sinter_host *host, const sinter_dummy_options *options,
                                 const char *path, sinter_error *err)
{
    sinter_dummy_options from;
    TRY(options_copy(&from, sizeof from, options, err));
    struct dummy_options o = {
        .arch = from.arch, .like = from.like, .type = from.type, .seed = from.seed};
    if (from.kind)
        TRY(kind_of(from.kind, &o.kind, err));
    return dummy_write(host, &o, path, err);
}

const char *sinter_dummy_name(int32_t i, bool like, char name[64])
{
    struct dummy_options o;
    if (!like)
        return dummy_small(i, &o, name) ? name : NULL;
    for (int32_t k = 0; dummy_likes[k]; k++)
        if (k == i) {
            snprintf(name, 64, "%s", dummy_likes[k]);
            return name;
        }
    return NULL;
}

/* ---- Measurements -------------------------------------------------------------------------------
 */

static sinter_status measured(const struct backend **out, sinter_error *err)
{
    TRY(backend_find("cpu", out, err));
    if (!(*out)->bench || !(*out)->measure)
        return FAIL(err, UNSUPPORTED, "this build has no kernels to measure");
    return SINTER_OK;
}

sinter_status sinter_kernels_bench(sinter_host *host, bool json, sinter_write_fn write, void *ctx,
                                   sinter_error *err)
{
    const struct backend *backend;
    struct text_buf b;
    TRY(measured(&backend, err));
    text_buf_init(&b, host);
    return give(&b, backend->bench(host, json, &b, err), write, ctx, err);
}

sinter_status sinter_machine_measure(sinter_host *host, double *read_rate, double *int8_rate,
                                     sinter_error *err)
{
    const struct backend *backend;
    TRY(measured(&backend, err));
    return backend->measure(host, read_rate, int8_rate, err);
}
