/* Counters of one device, per variant, across all engines: matched, refused and lost are added when
 * a plan is accepted, executed where a plan step is dispatched. Any thread; no locks. */
#ifndef FUSE_STATS_H
#define FUSE_STATS_H

#include "fuse/fuse.h"

#include <stdatomic.h>

struct fuse_stat {
    _Atomic uint64_t matched, refused, lost, executed;
};

struct fuse_stats {
    sinter_host *host;
    const struct fuse_table *table;
    int n; /* variants */
    struct fuse_stat *count;
    atomic_bool *off; /* by set_enabled */
};

/* The table must outlive the counters. */
CHECKED sinter_status fuse_stats_create(sinter_host *host, const struct fuse_table *t,
                                        struct fuse_stats **out, sinter_error *err);
void fuse_stats_free(struct fuse_stats *s);
void fuse_stats_reset(struct fuse_stats *s); /* counters to 0; what is off stays off */
struct fuse_count fuse_stats_get(const struct fuse_stats *s, int variant);
/* label NULL: all rows of two or more nodes. A single op or an unknown label is SINTER_E_USAGE.
 * Plans that exist keep their groups. */
CHECKED sinter_status fuse_stats_set_enabled(struct fuse_stats *s, const char *label, bool on,
                                             sinter_error *err);
bool fuse_stats_enabled(const struct fuse_stats *s, int variant);

void fuse_stats_add_plan(struct fuse_stats *s, const struct fuse_result *r);
static inline void fuse_stats_executed(struct fuse_stats *s, const struct group *g)
{
    atomic_fetch_add_explicit(&s->count[g->variant->id].executed, 1, memory_order_relaxed);
}

/* Text or JSON, rows of two or more nodes only; all = also those that are zero. */
void fuse_stats_print(const struct fuse_stats *s, bool all, struct text_buf *b, bool json);

#endif
