/* Plan keys of steps, and the memory that ordinary ones take: known before anything is loaded, and
 * made when an exec is. */
#include "native/exec.h"

#include <string.h>

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Intervals are few and fixed, so that plans are few: few rows or many, few wanted or all. */
struct plan_key exec_key(const struct native_kind *kind, const struct exec_options *o, int n_row,
                         int n_out, unsigned ports)
{
    int few = kind->rows_few;
    struct plan_key key = {.row_lo = 1, .row_hi = o->n_chunk, .ports = ports};
    if (few && n_row <= few)
        key.row_hi = least(few, o->n_chunk);
    else if (few)
        key.row_lo = few + 1;
    int small = least(few > o->n_seq ? few : o->n_seq, key.row_hi);
    key.out_cap = n_out <= small ? small : key.row_hi;
    key.all_rows = n_out > 0 && n_out == n_row && key.out_cap == key.row_hi;
    key.seq_cap = least(key.row_hi, o->n_seq);
    return key;
}

static size_t max(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t shared_bytes(const struct plan *p)
{
    size_t most = 0;
    for (int s = 0; s < p->n_step; s++)
        if (p->step[s].group)
            most = max(most, p->step[s].group->line->shared);
    return (most + 63) & ~(size_t)63;
}

void exec_need_plan(struct exec_need *need, const struct plan *p)
{
    need->arena = max(need->arena, p->bytes + 64);
    need->scratch_each = max(need->scratch_each, (p->scratch + p->score + 127) & ~(size_t)63);
    need->shared = max(need->shared, shared_bytes(p) + 64);
}

size_t exec_need_bytes(const struct exec_need *need, int n_thread)
{
    return need->arena + need->scratch_each * (size_t)n_thread + need->shared;
}

sinter_status exec_plan_for(sinter_host *host, const struct native_kind *kind,
                            const struct fuse_table *table, const struct graph *graph,
                            const struct plan_key *key, const struct exec_options *o,
                            const struct plan_bans *known, bool notes, struct plan **out,
                            sinter_error *err)
{
    struct plan_options po = {.n_thread = o->n_thread > 0 ? o->n_thread : 1,
                              .n_key = o->n_ctx,
                              .fuse = o->fuse,
                              .notes = notes,
                              .order_seed = o->order_seed,
                              .offsets = o->offsets,
                              .offsets_seed = o->offsets_seed};
    sinter_status status = SINTER_OK;
    struct plan_bans bans = {0};
    bool own_ban;
    if (known && known->n) {
        NEW_OUT(host, bans.ban, known->n, err);
        memcpy(bans.ban, known->ban, (size_t)known->n * sizeof *bans.ban);
        bans.n = known->n;
        bans.cap = (size_t)known->n;
    }
    TRY_OUT(plan_create(host, kind, table, graph, key, &po, &bans, &own_ban, out, err));
out:
    host_free(host, bans.ban);
    return status;
}

sinter_status exec_need(sinter_host *host, const struct native_kind *kind,
                        const struct fuse_table *table, const struct graph *graph,
                        const struct exec_options *o, struct exec_need *need, sinter_error *err)
{
    unsigned ports = 0;
    for (int v = 0; v < graph->n_value; v++)
        ports |= graph->value[v].port & (PORT_LOGITS | PORT_ARGMAX);
    const int n_row[2] = {1, o->n_chunk};
    *need = (struct exec_need){0};
    for (int i = 0; i < 2; i++) {
        struct plan_key key = exec_key(kind, o, n_row[i], 1, ports);
        struct plan *p;
        TRY(exec_plan_for(host, kind, table, graph, &key, o, NULL, false, &p, err));
        exec_need_plan(need, p);
        plan_free(p);
    }
    return SINTER_OK;
}
