/* An exec: a graph on a native backend: its weights, plans by key, buffers, and the running of
 * steps on the pool. Plans are made in reserve; submit and wait allocate nothing. */
#ifndef NATIVE_EXEC_H
#define NATIVE_EXEC_H

#include "base/pool.h"
#include "fuse/stats.h"
#include "native/plan/plan.h"

/* ---- Weights: loaded once per model and backend, shared by execs. ---- */
struct weight_source {
    void *ctx;
    /* File rows [row, row + n) of matrix `mat` of the slice. */
    sinter_status (*read)(void *ctx, const struct graph_weight *w, int mat, int64_t row, int64_t n,
                          void *buf, sinter_error *err);
    /* Bytes done of all; false cancels the load. May be NULL. */
    bool (*progress)(void *ctx, uint64_t done, uint64_t total);
};

struct weights {
    sinter_host *host;
    const struct native_kind *kind;
    struct device_mem mem;
    struct graph_weight *info; /* copies, so that weights outlive the graphs */
    char *names;
    int n;
    struct weight *weight; /* by the graphs' weight index */
    char *home;            /* of all of them */
    size_t bytes;          /* of it */
};

/* Graphs of one model share weight numbering; roles are gathered over all of them. */
CHECKED sinter_status weights_plan(sinter_host *host, const struct native_kind *kind,
                                   const struct device_mem *mem, struct graph *const *graph,
                                   int n_graph, struct weights **out, sinter_error *err);
CHECKED sinter_status weights_load(struct weights *w, const struct weight_source *src,
                                   struct pool *pool, sinter_error *err);
void weights_free(struct weights *w);

/* ---- Exec ---- */
enum exec_serial { EXEC_THREADS, EXEC_SERIAL_UP, EXEC_SERIAL_DOWN };
struct exec_options {
    int n_thread;
    int n_ctx, n_chunk, n_seq;
    struct fuse_options fuse;
    struct fuse_stats *stats; /* the device's; NULL: none */
    bool profile;
    size_t budget;           /* bytes that the host may use in all; 0: no limit */
    enum exec_serial serial; /* tests: see run_serial */
    uint64_t order_seed;     /* tests */
    void (*offsets)(struct plan *p, uint64_t seed); /* tests */
    uint64_t offsets_seed;
};

enum { EXEC_MAX_PLAN = 24 };
struct exec {
    sinter_host *host;
    const struct native_kind *kind;
    const struct fuse_table *table;
    const struct graph *graph;
    const struct weights *weights;
    struct state_pool *state;
    struct device_mem mem;
    struct pool *pool;
    struct exec_options o;
    struct plan_bans bans;
    int n_plan;
    struct plan *plan[EXEC_MAX_PLAN];
    uint64_t n_made, n_step; /* plans made, steps run: for reports */
    char *arena;             /* buffers of the plan that runs */
    size_t arena_bytes;
    char *scratch; /* per thread: line scratch, then score tile */
    size_t scratch_bytes, scratch_each;
    char *shared;
    size_t shared_bytes;
    struct exec_prof *prof; /* profile.h */
    struct exec_own *own;   /* OWN groups seen, by output name: exact mode */
    size_t own_cap;
    int n_own;
    /* the step that runs */
    struct plan *reserved; /* the plan of the step that is reserved; NULL: none */
    const struct plan *cur;
    const struct batch *batch;
    int n_tok, n_out, n_key;
    int32_t *row_seg, *row_abs; /* [n_chunk]: segment and absolute row of a TOK row */
    int32_t *out_row;           /* [n_chunk]: TOK row of an OUT row */
    bool *bad;                  /* [n_chunk] */
    struct result result;
    float *copy; /* results, where the device's memory cannot be read */
    size_t copy_bytes;
    bool submitted;
    atomic_bool cancelled; /* some thread saw the batch's flag */
};

/* Memory of a step: the largest of the ordinary plans, which are a decode and a full chunk whose
 * last rows are wanted. An exec starts with it, and grows for others (all rows of a chunk). */
struct exec_need {
    size_t arena, scratch_each, shared;
};
CHECKED sinter_status exec_need(sinter_host *host, const struct native_kind *kind,
                                const struct fuse_table *table, const struct graph *graph,
                                const struct exec_options *o, struct exec_need *need,
                                sinter_error *err);
size_t exec_need_bytes(const struct exec_need *need, int n_thread);
void exec_need_plan(struct exec_need *need, const struct plan *p); /* grows to what p takes */
/* The key of a step. */
struct plan_key exec_key(const struct native_kind *kind, const struct exec_options *o, int n_row,
                         int n_out, unsigned ports);
/* A plan outside of any exec; known: an exec's bans, NULL for none; notes: with fuse_match's, for
 * explain. */
CHECKED sinter_status exec_plan_for(sinter_host *host, const struct native_kind *kind,
                                    const struct fuse_table *table, const struct graph *graph,
                                    const struct plan_key *key, const struct exec_options *o,
                                    const struct plan_bans *known, bool notes, struct plan **out,
                                    sinter_error *err);

CHECKED sinter_status exec_create(sinter_host *host, const struct native_kind *kind,
                                  const struct fuse_table *table, const struct graph *graph,
                                  const struct weights *weights, struct state_pool *state,
                                  const struct device_mem *mem, struct pool *pool,
                                  const struct exec_options *o, struct exec **out,
                                  sinter_error *err);
void exec_free(struct exec *x);
/* Makes (or finds) the plan and its memory, then opens the step for all sequences or none. */
CHECKED sinter_status exec_reserve(struct exec *x, const struct batch *b, sinter_error *err);
CHECKED sinter_status exec_submit(struct exec *x, const struct batch *b, sinter_error *err);
/* SINTER_E_CANCELLED if the batch's flag was seen. */
CHECKED sinter_status exec_wait(struct exec *x, struct result *out, sinter_error *err);
size_t exec_bytes(const struct exec *x);

/* Runs a convert step: this thread's rows of the value to INT8 (call.c). */
void call_convert(const struct call *c);

#endif
