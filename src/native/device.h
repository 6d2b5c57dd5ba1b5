/* A device of a native backend: the functions behind backend.h that ref and cpu share. */
#ifndef NATIVE_DEVICE_H
#define NATIVE_DEVICE_H

#include "native/exec.h"

struct device {
    sinter_host *host;
    const struct native_kind *kind;
    struct device_mem mem;
    struct fuse_table *table;
    struct fuse_stats *stats;
    void (*close_mem)(void *ctx); /* frees mem.ctx; may be NULL */
};

/* Takes over mem (and frees it on failure). mem NULL: the host's memory. */
CHECKED sinter_status native_open(sinter_host *host, const struct native_kind *kind,
                                  const struct device_mem *mem, void (*close_mem)(void *),
                                  struct device **out, sinter_error *err);
void native_close(struct device *d);

CHECKED sinter_status native_load(struct device *d, struct graph *const *graph, int n_graph,
                                  const struct weight_source *src, struct weights **out,
                                  sinter_error *err);
void native_unload(struct device *d, struct weights *w);
/* Bytes by class of an exec with these options; nothing is made. */
struct device_bytes {
    size_t weights, state, step;
};
CHECKED sinter_status native_bytes(struct device *d, struct graph *graph,
                                   const struct state_options *so, const struct exec_options *o,
                                   struct device_bytes *bytes, sinter_error *err);
/* o->n_thread within the host's pool. */
CHECKED sinter_status native_threads(const struct device *d, struct exec_options *o,
                                     sinter_error *err);
/* Every node of the graph has a line: else UNSUPPORTED with the op. */
CHECKED sinter_status native_refuse(struct device *d, const struct graph *g, sinter_error *err);
CHECKED sinter_status native_build(struct device *d, const struct graph *g, const struct weights *w,
                                   struct state_pool *state, const struct exec_options *o,
                                   struct exec **out, sinter_error *err);
CHECKED sinter_status native_pool_make(struct device *d, const struct graph *g,
                                       const struct state_options *o, struct state_pool **out,
                                       sinter_error *err);
CHECKED sinter_status native_save(struct device *d, struct seq *s, int row0, int row1,
                                  struct text_buf *out, sinter_error *err);
CHECKED sinter_status native_restore(struct device *d, struct seq *s, int n_row, const void *data,
                                     size_t bytes, sinter_error *err);

/* ---- Reports ---- */
enum device_report {
    DEVICE_PLANS,       /* the plans that the exec has made */
    DEVICE_FUSION,      /* counters */
    DEVICE_FUSION_LIST, /* the table with the backend's lines */
    DEVICE_FUSION_WHY,  /* explain, for a decode step and a full chunk */
    DEVICE_PROFILE      /* time per row of the table, sorted */
};
CHECKED sinter_status native_report(struct device *d, struct exec *x, enum device_report what,
                                    bool json, struct text_buf *b, sinter_error *err);
struct exec_summary {
    uint64_t n_plan;           /* plans made */
    int barriers_per_layer;    /* of the plan of one row; 0 if there is none */
    int n_fallback;            /* fused rows that the plan of one row runs as slow loops */
    struct device_bytes bytes; /* taken now */
};
struct exec_summary native_summary(const struct exec *x);
const struct fuse_table *native_table(const struct device *d);
struct fuse_stats *native_stats(struct device *d);

#endif
