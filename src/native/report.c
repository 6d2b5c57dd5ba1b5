/* What a native device tells: bytes, plans, counters, explanations, profile. */
#include "native/device.h"
#include "native/profile.h"

#include <stdlib.h>
#include <string.h>

static int at_least(int a, int b)
{
    return a > b ? a : b;
}

sinter_status native_bytes(struct device *d, struct graph *graph, const struct state_options *so,
                           const struct exec_options *o, struct device_bytes *bytes,
                           sinter_error *err)
{
    struct exec_options with = *o;
    struct exec_need need;
    struct weights *w;
    TRY(native_threads(d, &with, err));
    TRY(weights_plan(d->host, d->kind, &d->mem, &graph, 1, &w, err));
    bytes->weights = w->bytes;
    weights_free(w);
    bytes->state = state_bytes_for(graph->slot, graph->n_slot, so);
    TRY(exec_need(d->host, d->kind, d->table, graph, &with, &need, err));
    bytes->step = exec_need_bytes(&need, with.n_thread);
    return SINTER_OK;
}

static void print_plans(const struct exec *x, struct text_buf *b, bool json)
{
    if (json)
        text_buf_printf(b, "[");
    for (int i = 0; i < x->n_plan; i++) {
        if (json && i)
            text_buf_printf(b, ",");
        plan_print(x->plan[i], b, json);
    }
    if (json)
        text_buf_printf(b, "]\n");
}

static sinter_status explain(struct device *d, const struct exec *x, struct text_buf *b, bool json,
                             sinter_error *err)
{
    const struct plan_key key[2] = {exec_key(d->kind, &x->o, 1, 1, PORT_LOGITS),
                                    exec_key(d->kind, &x->o, x->o.n_chunk, 1, PORT_LOGITS)};
    static const char *const name[2] = {"decode", "prefill"};
    if (json)
        text_buf_printf(b, "{");
    for (int i = 0; i < 2; i++) {
        struct plan *p;
        TRY(exec_plan_for(d->host, d->kind, d->table, x->graph, &key[i], &x->o, &x->bans, true, &p,
                          err));
        if (json)
            text_buf_printf(b, "%s\"%s\":", i ? "," : "", name[i]);
        else
            text_buf_printf(b, "%s (rows %d..%d)\n", name[i], key[i].row_lo, key[i].row_hi);
        fuse_explain_print(d->table, p->graph, p->match, b, json);
        plan_free(p);
    }
    if (json)
        text_buf_printf(b, "}\n");
    return SINTER_OK;
}

sinter_status native_report(struct device *d, struct exec *x, enum device_report what, bool json,
                            struct text_buf *b, sinter_error *err)
{
    switch (what) {
    case DEVICE_PLANS:
        print_plans(x, b, json);
        break;
    case DEVICE_FUSION:
        fuse_stats_print(d->stats, true, b, json);
        break;
    case DEVICE_FUSION_LIST:
        fuse_list_print(d->table, b, json);
        break;
    case DEVICE_FUSION_WHY:
        TRY(explain(d, x, b, json, err));
        break;
    case DEVICE_PROFILE:
        TRY(profile_print(x, b, json, err));
        break;
    }
    return SINTER_OK;
}

struct exec_summary native_summary(const struct exec *x)
{
    struct exec_summary s = {
        .n_plan = x->n_made,
        .bytes = {x->weights->bytes, state_pool_bytes(x->state), exec_bytes(x)}};
    for (int i = 0; i < x->n_plan; i++) {
        const struct plan *p = x->plan[i];
        if (p->key.row_lo > 1)
            continue;
        int barriers = plan_barriers_per_layer(p);
        s.barriers_per_layer = at_least(s.barriers_per_layer, barriers);
        for (int j = 0; j < p->n_step; j++)
            s.n_fallback += p->step[j].loop && (!j || p->step[j - 1].loop != p->step[j].loop);
    }
    return s;
}

const struct fuse_table *native_table(const struct device *d)
{
    return d->table;
}

struct fuse_stats *native_stats(struct device *d)
{
    return d->stats;
}
