/* Counters per device. Plain relaxed atomics: they are read for reports only. */
#include "fuse/stats.h"

#include "fuse/internal.h"

#include <inttypes.h>
#include <string.h>

sinter_status fuse_stats_create(sinter_host *host, const struct fuse_table *t,
                                struct fuse_stats **out, sinter_error *err)
{
    struct fuse_stats *s;
    sinter_status status = SINTER_OK;
    *out = NULL;
    NEW(host, s, 1, err);
    s->host = host;
    s->table = t;
    s->n = t->n_variant;
    NEW_OUT(host, s->count, s->n, err);
    NEW_OUT(host, s->off, s->n, err);
    *out = s;
    s = NULL;
out:
    fuse_stats_free(s);
    return status;
}

void fuse_stats_free(struct fuse_stats *s)
{
    if (!s)
        return;
    host_free(s->host, s->count);
    host_free(s->host, s->off);
    host_free(s->host, s);
}

void fuse_stats_reset(struct fuse_stats *s)
{
    for (int v = 0; v < s->n; v++) {
        atomic_store_explicit(&s->count[v].matched, 0, memory_order_relaxed);
        atomic_store_explicit(&s->count[v].refused, 0, memory_order_relaxed);
        atomic_store_explicit(&s->count[v].lost, 0, memory_order_relaxed);
        atomic_store_explicit(&s->count[v].executed, 0, memory_order_relaxed);
    }
}

struct fuse_count fuse_stats_get(const struct fuse_stats *s, int variant)
{
    const struct fuse_stat *c = &s->count[variant];
    return (struct fuse_count){atomic_load_explicit(&c->matched, memory_order_relaxed),
                               atomic_load_explicit(&c->refused, memory_order_relaxed),
                               atomic_load_explicit(&c->lost, memory_order_relaxed),
                               atomic_load_explicit(&c->executed, memory_order_relaxed)};
}

sinter_status fuse_stats_set_enabled(struct fuse_stats *s, const char *label, bool on,
                                     sinter_error *err)
{
    const struct fuse_variant *v = NULL;
    if (label)
        TRY(fuse_label(s->host, s->table, label, strlen(label), &v, err));
    for (int k = 0; k < s->table->n_single; k++)
        if (!v || v->id == k)
            atomic_store_explicit(&s->off[k], !on, memory_order_relaxed);
    return SINTER_OK;
}

bool fuse_stats_enabled(const struct fuse_stats *s, int variant)
{
    return !atomic_load_explicit(&s->off[variant], memory_order_relaxed);
}

void fuse_stats_add_plan(struct fuse_stats *s, const struct fuse_result *r)
{
    for (int v = 0; v < s->n; v++) {
        atomic_fetch_add_explicit(&s->count[v].matched, r->count[v].matched, memory_order_relaxed);
        atomic_fetch_add_explicit(&s->count[v].refused, r->count[v].refused, memory_order_relaxed);
        atomic_fetch_add_explicit(&s->count[v].lost, r->count[v].lost, memory_order_relaxed);
    }
}

void fuse_stats_print(const struct fuse_stats *s, bool all, struct text_buf *b, bool json)
{
    int n = 0;
    if (json)
        text_buf_printf(b, "[");
    else
        text_buf_printf(b, "%-28s %9s %9s %9s %12s\n", "label", "matched", "refused", "lost",
                        "executed");
    for (int v = 0; v < s->table->n_single; v++) {
        struct fuse_count c = fuse_stats_get(s, v);
        const char *label = s->table->variant[v].label;
        if (!all && !(c.matched | c.refused | c.lost | c.executed))
            continue;
        if (json)
            text_buf_printf(b,
                            "%s{\"label\":\"%s\",\"matched\":%" PRIu64 ",\"refused\":%" PRIu64
                            ",\"lost\":%" PRIu64 ",\"executed\":%" PRIu64 "}",
                            n ? "," : "", label, c.matched, c.refused, c.lost, c.executed);
        else
            text_buf_printf(b, "%-28s %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %12" PRIu64 "\n",
                            label, c.matched, c.refused, c.lost, c.executed);
        n++;
    }
    if (json)
        text_buf_printf(b, "]\n");
}
