/* Time and work per row of the fusion table. */
#include "native/profile.h"

#include <string.h>

static struct exec_prof *more(struct exec *x, int which)
{
    return &x->prof[x->table->n_variant + which];
}

static void add(struct exec_prof *p, uint64_t ns)
{
    p->ns += ns;
    p->calls++;
}

uint64_t profile_wait(struct exec *x, uint64_t start)
{
    uint64_t now = host_clock_ns(x->host);
    add(more(x, PROFILE_BARRIER), now - start);
    return now;
}

/* What the running step is to cost_add: all sequences as one, behind their longest past. */
static struct cost_step step_of(const struct exec *x)
{
    struct cost_step s = {.n_tok = x->n_tok,
                          .n_out = x->n_out,
                          .n_seq = x->batch->n_seg,
                          .n_past = x->n_key - x->n_tok,
                          .type_k = QUANT_F16,
                          .type_v = QUANT_F16};
    if (s.n_past < 0)
        s.n_past = 0;
    for (int i = 0; i < x->cur->graph->n_slot && x->batch->n_seg; i++)
        if (x->cur->graph->slot[i].kind == SLOT_KV) {
            struct kv_view v = seq_kv(x->batch->seg[0].seq, i);
            s.type_k = v.type_k;
            s.type_v = v.type_v;
            break;
        }
    return s;
}

uint64_t profile_step(struct exec *x, const struct plan_step *step, uint64_t start)
{
    uint64_t now = host_clock_ns(x->host);
    const struct group *g = step->group;
    struct exec_prof *p = g ? &x->prof[g->variant->id] : more(x, PROFILE_CONVERT);
    struct cost_step cost = step_of(x);
    add(p, now - start);
    for (int i = 0; g && i < g->n_node; i++)
        cost_add(x->cur->graph, &x->cur->graph->node[g->node[i]], &cost, &p->cost);
    return now;
}

struct row {
    const char *label;
    const struct exec_prof *p;
};

/* The slowest first; few rows, and qsort may allocate past the host's hooks. */
static void sort_by_time(struct row *row, int n)
{
    for (int i = 1; i < n; i++) {
        const struct row moved = row[i];
        int at = i;
        for (; at > 0 && row[at - 1].p->ns < moved.p->ns; at--)
            row[at] = row[at - 1];
        row[at] = moved;
    }
}

static void print_row(const struct row *r, uint64_t total, bool json, bool first,
                      struct text_buf *b)
{
    const struct exec_prof *p = r->p;
    double ns = p->ns ? (double)p->ns : 1;
    text_buf_printf(
        b,
        json ? "%s{\"label\":\"%s\",\"calls\":%llu,\"ms\":%.3f,\"share\":%.4f,"
               "\"us_per_call\":%.3f,\"gb_per_s\":%.3f,\"gmac_per_s\":%.3f}"
             : "%s%-28s %9llu %11.3f %6.1f%% %9.2f %8.2f %8.2f\n",
        json && !first ? "," : "", r->label, (unsigned long long)p->calls, ns * 1e-6,
        (json ? 1 : 100) * ns / (double)(total ? total : 1), ns * 1e-3 / (double)p->calls,
        (double)(p->cost.weight_bytes + p->cost.kv_bytes) / ns, (double)p->cost.macs / ns);
}

sinter_status profile_print(struct exec *x, struct text_buf *b, bool json, sinter_error *err)
{
    static const char *const names[] = {
        [PROFILE_CONVERT] = "(to int8)", [PROFILE_BARRIER] = "(waiting at barriers)"};
    int n_all = x->table->n_variant + PROFILE_N_MORE, n = 0;
    uint64_t total = 0;
    struct row *row;
    NEW(x->host, row, n_all, err);
    for (int i = 0; i < n_all; i++) {
        const char *label =
            i < x->table->n_variant ? x->table->variant[i].label : names[i - x->table->n_variant];
        if (x->prof[i].calls)
            row[n++] = (struct row){label, &x->prof[i]};
        total += x->prof[i].ns;
    }
    sort_by_time(row, n);
    text_buf_printf(b, json ? "[" : "%-28s %9s %11s %7s %9s %8s %8s\n", "row", "calls", "ms",
                    "share", "us/call", "GB/s", "GMAC/s");
    for (int i = 0; i < n; i++)
        print_row(&row[i], total, json, i == 0, b);
    if (json)
        text_buf_printf(b, "]\n");
    host_free(x->host, row);
    memset(x->prof, 0, (size_t)n_all * sizeof *x->prof);
    return SINTER_OK;
}
