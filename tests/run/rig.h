/* A host, a dummy model and an engine behind sinter.h, for tests. */
#ifndef TESTS_RUN_RIG_H
#define TESTS_RUN_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/host.h"
#include "ok.h"
#include "temp_folder.h"

struct rig {
    sinter_host *host;
    sinter_model *model;
    sinter_engine *engine;
    int n_vocab;
};

static inline const char *rig_path(const char *arch, const char *kind, char path[TEMP_PATH])
{
    char name[128];
    snprintf(name, sizeof name, "%s-%s.gguf", arch, kind);
    return temp_path(name, path);
}

/* options: "name=value" pairs, NULL ends. */
static inline sinter_host *rig_host(const char *const *options)
{
    sinter_host *host;
    char name[64];
    OK(sinter_host_create(NULL, &host, err));
    for (; options && *options; options++) {
        const char *eq = strchr(*options, '=');
        snprintf(name, sizeof name, "%.*s", (int)(eq - *options), *options);
        OK(sinter_host_set(host, name, eq + 1, err));
    }
    return host;
}

static inline void rig_write(sinter_host *host, const char *arch, const char *kind,
                             const char *path)
{
    sinter_dummy_options d = {.arch = arch, .kind = kind};
    OK(sinter_dummy_write(host, &d, path, err));
}

static inline struct rig rig_open(const char *arch, const char *kind, const char *const *options,
                                  const sinter_engine_options *eo)
{
    struct rig r = {0};
    char path[TEMP_PATH];
    sinter_model_info info = {0};
    r.host = rig_host(options);
    rig_write(r.host, arch, kind, rig_path(arch, kind, path));
    OK(sinter_model_open(r.host, path, NULL, &r.model, err));
    unlink(path);
    OK(sinter_engine_create(r.model, eo, &r.engine, err));
    sinter_model_describe(r.model, &info);
    r.n_vocab = info.n_vocab;
    return r;
}

/* Nothing is left. */
static inline void rig_close(struct rig *r)
{
    sinter_engine_free(r->engine);
    sinter_model_close(r->model);
    sinter_host_free(r->host);
}

static inline sinter_session *rig_session(const struct rig *r)
{
    sinter_session *s;
    OK(sinter_session_create(r->engine, &s, err));
    return s;
}

static inline int32_t rig_id(int i)
{
    return (int32_t)(((uint32_t)(i + 1) * 2654435761u >> 8) % 250);
}

/* Tokens [at, at + n) of a fixed text on a session; want all; logits copied to x if given. */
static inline void rig_text(const struct rig *r, sinter_session *s, int at, int n, float *x)
{
    int32_t id[512];
    for (int i = 0; i < n; i++)
        id[i] = rig_id(at + i);
    sinter_item it = {
        .session = s, .ids = id, .n_id = n, .want = x ? SINTER_WANT_ALL : SINTER_WANT_NONE};
    OK(sinter_engine_step(r->engine, &it, 1, err));
    if (x) {
        assert_int_equal(it.n_out, n);
        memcpy(x, it.logits, (size_t)n * (size_t)r->n_vocab * sizeof *x);
    }
}

static inline float *rig_logits(const struct rig *r, int n)
{
    float *x = calloc((size_t)n * (size_t)r->n_vocab, sizeof *x);
    assert_non_null(x);
    return x;
}

/* A text that is collected. */
struct rig_text {
    char text[65536];
    size_t n;
    size_t stop_at; /* refuse to take more than this; 0: never */
};

static inline bool rig_take(void *ctx, const char *text, size_t bytes)
{
    struct rig_text *t = ctx;
    assert_true(t->n + bytes < sizeof t->text);
    memcpy(t->text + t->n, text, bytes);
    t->n += bytes;
    t->text[t->n] = 0;
    return !t->stop_at || t->n < t->stop_at;
}

#endif
