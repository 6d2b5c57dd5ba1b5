/* Inside the run module: models, engines, sessions behind include/sinter.h. */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "backend/backend.h"
#include "model/model.h"
#include "text/template.h"
#include "text/vocab.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* A backend with the model's weights on it: made by the first engine, shared by the others. */
struct model_home {
    const struct backend *backend;
    struct device *device;
    struct weights *weights;
};

enum { MODEL_MAX_HOME = 4 };
struct sinter_model {
    sinter_host *host;
    atomic_int count;    /* the caller's and one per engine */
    struct model *model; /* NULL: vocabulary only */
    struct gguf *gguf;   /* vocabulary only */
    struct vocab *vocab;
    struct model_home home[MODEL_MAX_HOME];
    int n_home;
};

struct sinter_engine {
    sinter_host *host;
    sinter_model *model;
    struct model_home *home;
    struct graph *graph;
    struct state_pool *state;
    struct exec *exec;
    sinter_engine_options o; /* with the defaults filled in */
    struct state_options state_o;
    int n_session; /* open ones */
    atomic_int cancel;
    pthread_mutex_t turn; /* held by whoever uses what sessions share: one thread at a time */
    /* one step's arrays */
    struct batch_seg *seg; /* [n_session] */
    struct batch_out *out; /* [n_chunk] */
    int32_t *id;           /* [n_chunk] */
    /* For the summary: steps of one row a session, and what those after the first two allocated. */
    uint64_t n_decode, decode_allocs;
};

struct sinter_session {
    sinter_engine *engine;
    struct seq *seq;
    int32_t *tok; /* [n_ctx]: ids of the committed rows */
    atomic_int cancel, in_step;
};

/* *dst = *src as far as the caller's struct goes (its first member is its size, 0 = this header's);
 * the rest is zero, the default. src NULL: all of it. A larger one is of a newer header: USAGE. */
CHECKED sinter_status options_copy(void *dst, size_t bytes, const void *src, sinter_error *err);

/* *dst = *src but for the size, as far as the caller's struct goes (0: all of it). */
void result_copy(void *dst, const void *src, size_t bytes);

/* A step under the engine's turn, which the caller holds: results are good until it is given. */
CHECKED sinter_status engine_step(sinter_engine *e, sinter_item *item, int32_t n_item,
                                  sinter_error *err);
static inline void engine_take(sinter_engine *e)
{
    pthread_mutex_lock(&e->turn);
}
static inline void engine_give(sinter_engine *e)
{
    pthread_mutex_unlock(&e->turn);
}
/* Fills defaults and checks ranges and names. */
CHECKED sinter_status engine_options(sinter_model *model, const sinter_engine_options *options,
                                     sinter_engine_options *o, struct state_options *state,
                                     const struct backend **backend, sinter_error *err);
void model_unref(sinter_model *model);
/* fuse NULL: as the host's options say. tap: struct model_variant. */
CHECKED sinter_status engine_create(sinter_model *model, const sinter_engine_options *options,
                                    const struct fuse_options *fuse, int tap, sinter_engine **out,
                                    sinter_error *err);
/* The sum of (a - b)^2 over the sum of b^2; 0 for equal, infinity if b is all zero. */
double nmse(const float *a, const float *b, size_t n);
/* Up to which two ways of computing the model agree, on any tokens. F32 weights leave the order of
 * sums only. With INT8 activations one code that rounds to the other side counts most where a block
 * holds a huge value: Gemma comes to 1.3e-3 over a text, to 1.7e-3 over arbitrary ids. */
#define NMSE_F32  1e-10
#define NMSE_F16  1e-8
#define NMSE_INT8 3e-3
double nmse_bound(const sinter_model *m);
struct exec_options engine_exec_options(sinter_host *host, const sinter_engine_options *o);
/* Refuses what the budget (option memory, else the machine's memory) cannot hold. */
CHECKED sinter_status engine_admit(sinter_host *host, const struct device_bytes *b, bool loaded,
                                   sinter_error *err);
int32_t sampler_n_vocab(const sinter_sampler *s);
CHECKED sinter_status model_find_home(sinter_model *m, const struct backend *backend,
                                      struct model_home **out, sinter_error *err);

#endif
