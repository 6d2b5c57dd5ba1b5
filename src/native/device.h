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
/* Bytes that loading would take. */
CHECKED sinter_status native_weight_bytes(struct device *d, struct graph *const *graph, int n_graph,
                                          size_t *bytes, sinter_error *err);
/* Every node of the graph has a line: else UNSUPPORTED with the op. */
CHECKED sinter_status native_refuse(struct device *d, const struct graph *g, sinter_error *err);
CHECKED sinter_status native_build(struct device *d, const struct graph *g,
                                   const struct weights *w, struct state_pool *state,
                                   const struct exec_options *o, struct exec **out,
                                   sinter_error *err);
/* A plan for a key, with notes: for `plan` and `fusion explain`; nothing is run. */
CHECKED sinter_status native_plan(struct device *d, const struct graph *g,
                                  const struct plan_key *key, const struct exec_options *o,
                                  struct plan **out, sinter_error *err);
CHECKED sinter_status native_pool_make(struct device *d, const struct graph *g,
                                       const struct state_options *o, struct state_pool **out,
                                       sinter_error *err);
CHECKED sinter_status native_save(struct device *d, struct seq *s, int row0, int row1,
                                  struct text_buf *out, sinter_error *err);
CHECKED sinter_status native_restore(struct device *d, struct seq *s, const void *data,
                                     size_t bytes, sinter_error *err);

#endif
