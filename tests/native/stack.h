/* A backend with everything it needs for one graph, for tests below the engine: a dummy model's, or
 * a graph made by hand whose weights are random numbers. */
#ifndef TESTS_NATIVE_STACK_H
#define TESTS_NATIVE_STACK_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/cpu.h"
#include "base/options.h"
#include "model/model.h"
#include "native/state/state_impl.h"
#include "ok.h"
#include "temp_folder.h"

/* What is run: a dummy, or a graph (made again for every stack). */
struct subject {
    char name[64];
    struct dummy_options dummy;
    struct graph *(*make)(sinter_host *host);
};

struct stack_options {
    const char *backend, *mask; /* mask: cpu-mask, "" */
    int n_thread, page_rows, n_ctx, n_chunk, n_seq;
    int n_row; /* of the pool; 0: n_ctx for each sequence */
    bool no_fusion;
    enum quant_type type_k, type_v;
    enum exec_serial serial;
    uint64_t order_seed, offsets_seed;
    void (*offsets)(struct plan *p, uint64_t seed);
};

struct stack {
    sinter_host *host;
    const struct backend *backend;
    struct device *device;
    struct model *model;
    struct graph *graph;
    struct weights *weights;
    struct state_pool *state;
    struct state_options so;
    struct exec *exec;
    int n_vocab;
    unsigned want;
};

/* ---- Weights of graphs made by hand ---- */

static inline float stack_random(uint64_t i)
{
    i += 0x9e3779b97f4a7c15u;
    i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9u;
    i = (i ^ (i >> 27)) * 0x94d049bb133111ebu;
    return (float)((double)(i >> 40) / (1 << 23) - 1);
}

static inline sinter_status stack_read_random(void *ctx, const struct graph_weight *w, int mat,
                                              int64_t row, int64_t n, void *buf, sinter_error *err)
{
    const struct stack *k = ctx;
    int64_t n_col = 0;
    (void)err;
    for (int v = 0; v < k->graph->n_value; v++)
        if (k->graph->value[v].kind == VALUE_WEIGHT &&
            k->graph->weight[k->graph->value[v].index].slice.tensor == w->slice.tensor)
            n_col = k->graph->value[v].shape.d;
    char *at = buf;
    for (int64_t r = row; r < row + n; r++, at += quant_bytes(w->type, (size_t)n_col)) {
        float x[1024];
        assert_true(n_col <= 1024);
        for (int64_t i = 0; i < n_col; i++)
            x[i] = stack_random((uint64_t)w->slice.tensor * 1000003u + (uint64_t)mat * 65537u +
                                (uint64_t)(r * n_col + i));
        quant_row(w->type)->encode(x, at, (size_t)n_col);
    }
    return SINTER_OK;
}

static inline sinter_status stack_read_model(void *ctx, const struct graph_weight *w, int mat,
                                             int64_t row, int64_t n, void *buf, sinter_error *err)
{
    const struct stack *k = ctx;
    return model_read_rows(k->model, w, mat, row, n, buf, err);
}

/* ---- Opening ---- */

static char stack_path[TEMP_PATH]; /* of the dummy that was written last */

/* The dummy's file: written once for stacks of one subject that come one after another. */
static inline const char *stack_file(sinter_host *host, const struct subject *s)
{
    char name[sizeof s->name + 8], path[TEMP_PATH];
    snprintf(name, sizeof name, "%s.gguf", s->name);
    temp_path(name, path);
    if (strcmp(path, stack_path) == 0)
        return stack_path;
    unlink(stack_path);
    strcpy(stack_path, path);
    OK(dummy_write(host, &s->dummy, path, err));
    return stack_path;
}

static inline sinter_host *stack_host(const struct stack_options *o)
{
    sinter_host *host;
    char text[32];
    OK(sinter_host_create(NULL, &host, err));
    snprintf(text, sizeof text, "%d", o->n_thread > 0 ? o->n_thread : 1);
    OK(sinter_host_set(host, "threads", text, err));
    if (o->mask)
        OK(sinter_host_set(host, "cpu-mask", o->mask, err));
    return host;
}

static inline void stack_graph(struct stack *k, const struct subject *s, int n_ctx)
{
    if (s->make) {
        k->graph = s->make(k->host);
        return;
    }
    OK(model_open(k->host, stack_file(k->host, s), &k->model, err));
    struct model_variant v = {.n_ctx = n_ctx, .argmax = true};
    OK(model_graph(k->model, &v, &k->graph, err));
}

static inline struct exec_options stack_exec_options(const struct stack_options *o)
{
    return (struct exec_options){.n_thread = o->n_thread,
                                 .n_ctx = o->n_ctx,
                                 .n_chunk = o->n_chunk,
                                 .n_seq = o->n_seq,
                                 .fuse = {.fusion = !o->no_fusion, "", ""},
                                 .serial = o->serial,
                                 .order_seed = o->order_seed,
                                 .offsets = o->offsets,
                                 .offsets_seed = o->offsets_seed};
}

static inline void stack_defaults(struct stack_options *o)
{
    o->backend = o->backend ? o->backend : "cpu";
    o->n_thread = o->n_thread ? o->n_thread : 1;
    o->page_rows = o->page_rows ? o->page_rows : 16;
    o->n_ctx = o->n_ctx ? o->n_ctx : 128;
    o->n_chunk = o->n_chunk ? o->n_chunk : 64;
    o->n_seq = o->n_seq ? o->n_seq : 4;
}

static inline struct stack stack_open(const struct subject *s, const struct stack_options *options)
{
    struct stack_options o = *options;
    stack_defaults(&o);
    struct stack k = {.want = PORT_LOGITS};
    k.host = stack_host(&o);
    stack_graph(&k, s, o.n_ctx);
    struct exec_options eo = stack_exec_options(&o);
    k.so = (struct state_options){.page_rows = o.page_rows,
                                  .type_k = o.type_k,
                                  .type_v = o.type_v,
                                  .n_seq = o.n_seq,
                                  .n_row = o.n_row ? o.n_row : o.n_ctx * o.n_seq,
                                  .n_ctx = o.n_ctx,
                                  .n_chunk = o.n_chunk};
    if (k.model)
        memcpy(k.so.model_hash, k.model->hash, sizeof k.so.model_hash);
    struct weight_source src = {NULL, s->make ? stack_read_random : stack_read_model, NULL};
    src.ctx = &k;
    OK(backend_find(o.backend, &k.backend, err));
    OK(k.backend->open(k.host, &k.device, err));
    OK(k.backend->refuse(k.device, k.graph, err));
    OK(k.backend->load(k.device, &k.graph, 1, &src, &k.weights, err));
    OK(k.backend->pool_make(k.device, k.graph, &k.so, &k.state, err));
    OK(k.backend->build(k.device, k.graph, k.weights, k.state, &eo, &k.exec, err));
    for (int v = 0; v < k.graph->n_value; v++)
        if (k.graph->value[v].port & PORT_LOGITS)
            k.n_vocab = row_len(&k.graph->value[v]);
    return k;
}

static inline void stack_close(struct stack *k)
{
    k->backend->free(k->exec);
    k->backend->pool_free(k->state);
    k->backend->unload(k->device, k->weights);
    k->backend->close(k->device);
    graph_free(k->graph);
    model_close(k->model);
    sinter_host_free(k->host);
}

static inline struct seq *stack_seq(const struct stack *k)
{
    struct seq *s;
    OK(k->backend->fork(k->state, NULL, &s, err));
    return s;
}

/* ---- Running ---- */

enum { STACK_MAX_ROWS = 256 };

/* Token i of a fixed text. */
static inline int32_t stack_id(int i)
{
    return (int32_t)(((uint32_t)(i + 1) * 2654435761u >> 8) % 61);
}

/* Rows [at, at + n) of the text on a sequence, without a commit; logits [n][n_vocab] or NULL. */
static inline sinter_status stack_submit(const struct stack *k, struct seq *s, int at, int n,
                                         float *logits, const atomic_int *cancel, sinter_error *err)
{
    int32_t id[STACK_MAX_ROWS];
    struct batch_out out[STACK_MAX_ROWS];
    struct batch_seg seg = {s, 0, n, at};
    struct result r;
    for (int i = 0; i < n; i++) {
        id[i] = stack_id(at + i);
        out[i] = (struct batch_out){i, k->want};
    }
    struct batch b = {1, n, logits ? n : 0, &seg, id, NULL, out, cancel};
    TRY(k->backend->reserve(k->exec, &b, err));
    TRY(k->backend->submit(k->exec, &b, err));
    TRY(k->backend->wait(k->exec, &r, err));
    if (logits)
        memcpy(logits, r.logits, (size_t)n * (size_t)k->n_vocab * sizeof *logits);
    return SINTER_OK;
}

/* Rows [from, to) of the text in chunks, committed; logits [to - from][n_vocab] or NULL. */
static inline void stack_text(const struct stack *k, struct seq *s, int from, int to, int chunk,
                              float *logits)
{
    for (int at = from; at < to;) {
        int n = to - at < chunk ? to - at : chunk;
        float *rows = logits ? logits + (size_t)(at - from) * (size_t)k->n_vocab : NULL;
        OK(stack_submit(k, s, at, n, rows, NULL, err));
        OK(k->backend->commit(s, n, err));
        at += n;
    }
}

static inline float *stack_logits(const struct stack *k, int n)
{
    float *x = calloc((size_t)n * (size_t)k->n_vocab, sizeof *x);
    assert_non_null(x);
    return x;
}

static inline size_t stack_bytes(const struct stack *k, int n)
{
    return (size_t)n * (size_t)k->n_vocab * sizeof(float);
}

/* Levels of cpu that this machine has, "" last: the best. */
static inline int stack_masks(const char *mask[4])
{
    static const char *const all[] = {"c", "avx2", "avx512"};
    int n = 0;
    for (int i = 0; i < 3; i++) {
        enum cpu_level level;
        if (cpu_level_masked(all[i], &level, NULL) == SINTER_OK &&
            strcmp(cpu_level_name(level), all[i]) == 0)
            mask[n++] = all[i];
    }
    return n;
}

#endif
