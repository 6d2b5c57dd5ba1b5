/* The contract between the engine and a backend. It knows graphs, weights, sequences and batches;
 * never a page, slot, arena or plan. Device memory is not readable above it.
 *
 * open close | load unload | refuse build free | pool_make pool_free | fork drop trim save restore
 * | reserve submit wait commit. ref and cpu are native kinds: src/native does all of it,
 * they bring kernels. */
#ifndef BACKEND_BACKEND_H
#define BACKEND_BACKEND_H

#include "native/batch.h"
#include "native/device.h"

struct backend {
    const char *name, *what;
    unsigned kv_types; /* bit 1 << type: caches of K and V that it holds */
    CHECKED sinter_status (*open)(sinter_host *host, struct device **out, sinter_error *err);
    void (*close)(struct device *d);
    sinter_status (*load)(struct device *d, struct graph *const *graph, int n_graph,
                          const struct weight_source *src, struct weights **out, sinter_error *err);
    void (*unload)(struct device *d, struct weights *w);
    /* What loading and building would take; nothing is made. */
    sinter_status (*bytes)(struct device *d, struct graph *graph, const struct state_options *so,
                           const struct exec_options *o, struct device_bytes *bytes,
                           sinter_error *err);
    sinter_status (*refuse)(struct device *d, const struct graph *g, sinter_error *err);
    sinter_status (*build)(struct device *d, const struct graph *g, const struct weights *w,
                           struct state_pool *state, const struct exec_options *o,
                           struct exec **out, sinter_error *err);
    void (*free)(struct exec *x);
    sinter_status (*pool_make)(struct device *d, const struct graph *g,
                               const struct state_options *o, struct state_pool **out,
                               sinter_error *err);
    void (*pool_free)(struct state_pool *p);
    sinter_status (*fork)(struct state_pool *p, struct seq *from, struct seq **out,
                          sinter_error *err);
    void (*drop)(struct seq *s);
    int (*rows)(const struct seq *s);
    sinter_status (*trim)(struct seq *s, int n_row, sinter_error *err);
    sinter_status (*save)(struct device *d, struct seq *s, int row0, int row1, struct text_buf *out,
                          sinter_error *err);
    sinter_status (*restore)(struct device *d, struct seq *s, int n_row, const void *data,
                             size_t bytes, sinter_error *err);
    sinter_status (*reserve)(struct exec *x, const struct batch *b, sinter_error *err);
    sinter_status (*submit)(struct exec *x, const struct batch *b, sinter_error *err);
    sinter_status (*wait)(struct exec *x, struct result *out, sinter_error *err);
    sinter_status (*commit)(struct seq *s, int n_row, sinter_error *err);
    sinter_status (*report)(struct device *d, struct exec *x, enum device_report what, bool json,
                            struct text_buf *b, sinter_error *err);
    struct exec_summary (*summary)(const struct exec *x);
    /* The rows of the fusion table that the device's lines speak of, and their counters. */
    const struct fuse_table *(*table)(const struct device *d);
    struct fuse_stats *(*stats)(struct device *d);
    /* Measures the device; NULL where there is nothing to measure. */
    sinter_status (*measure)(sinter_host *host, double *read_rate, double *int8_rate,
                             sinter_error *err);
    sinter_status (*bench)(sinter_host *host, bool json, struct text_buf *b, sinter_error *err);
};

/* All but name, what, kv_types and open, for a native kind. */
#define BACKEND_NATIVE                                                                             \
    .close = native_close, .load = native_load, .unload = native_unload, .bytes = native_bytes,    \
    .refuse = native_refuse, .build = native_build, .free = exec_free, .report = native_report,    \
    .summary = native_summary, .table = native_table, .stats = native_stats,                       \
    .pool_make = native_pool_make, .pool_free = state_pool_free, .fork = seq_fork,                 \
    .drop = seq_drop, .rows = seq_rows, .trim = seq_trim, .save = native_save,                     \
    .restore = native_restore, .reserve = exec_reserve, .submit = exec_submit, .wait = exec_wait,  \
    .commit = seq_commit

/* One row each in backends.def. */
extern const struct backend *const backend_list[];
extern const int backend_n;
/* An unknown name: DEVICE error that lists what can be given. */
CHECKED sinter_status backend_find(const char *name, const struct backend **out, sinter_error *err);

#endif
