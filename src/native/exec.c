/* Plans by key, buffers, and the running of a step: one parallel region, a barrier where the plan
 * has one. A cancelled step still passes its barriers, so that threads never part. */
#include "native/exec.h"
#include "native/profile.h"

#include <string.h>

struct exec_own {
    const char *name;
    const struct fuse_variant *variant;
    bool is_own;
};

static bool is_own(const struct group *g)
{
    return g->line->bits == BITS_OWN && g->n_node > 1;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static sinter_status grow(struct exec *x, char **mem, size_t *have, size_t want, const char *what,
                          sinter_error *err)
{
    if (want <= *have)
        return SINTER_OK;
    size_t used = host_usage(x->host).bytes; /* `have` is in it, unless the device has its own */
    used = used > *have ? used - *have : 0;
    if (x->o.budget && (want > x->o.budget || used > x->o.budget - want))
        return FAIL(err, MEMORY,
                    "%s need %zu bytes, the budget is %zu with %zu in use; use a smaller chunk "
                    "(-ub) or raise --memory",
                    what, want, x->o.budget, used);
    if (*mem)
        x->mem.free(x->mem.ctx, *mem);
    *have = 0;
    *mem = x->mem.alloc(x->mem.ctx, want);
    if (!*mem)
        return FAIL(err, MEMORY, "no memory for %s (%zu bytes); use a smaller chunk (-ub)", what,
                    want);
    *have = want;
    return SINTER_OK;
}

static sinter_status fit_memory(struct exec *x, const struct exec_need *need, sinter_error *err)
{
    size_t each = need->scratch_each > x->scratch_each ? need->scratch_each : x->scratch_each;
    TRY(grow(x, &x->arena, &x->arena_bytes, need->arena, "the buffers of a step", err));
    TRY(grow(x, &x->scratch, &x->scratch_bytes, each * (size_t)x->o.n_thread,
             "the threads' scratch", err));
    x->scratch_each = each; /* only now: a step that was refused leaves smaller ones as they were */
    return grow(x, &x->shared, &x->shared_bytes, need->shared, "shared scratch", err);
}

/* ---- Making and freeing --------------------------------------------------------------------- */

sinter_status exec_create(sinter_host *host, const struct native_kind *kind,
                          const struct fuse_table *table, const struct graph *graph,
                          const struct weights *weights, struct state_pool *state,
                          const struct device_mem *mem, struct pool *pool,
                          const struct exec_options *o, struct exec **out, sinter_error *err)
{
    sinter_status status = SINTER_OK;
    struct exec_need need;
    struct exec *x;
    NEW(host, x, 1, err);
    *x = (struct exec){.host = host,
                       .kind = kind,
                       .table = table,
                       .graph = graph,
                       .weights = weights,
                       .state = state,
                       .mem = *mem,
                       .pool = pool,
                       .o = *o};
    NEW_OUT(host, x->row_seg, o->n_chunk + 1, err);
    NEW_OUT(host, x->row_abs, o->n_chunk + 1, err);
    NEW_OUT(host, x->out_row, o->n_chunk + 1, err);
    NEW_OUT(host, x->bad, o->n_chunk + 1, err);
    NEW_OUT(host, x->prof, table->n_variant + PROFILE_N_MORE, err);
    TRY_OUT(exec_need(host, kind, table, graph, o, &need, err));
    TRY_OUT(fit_memory(x, &need, err));
    *out = x;
    return SINTER_OK;
out:
    exec_free(x);
    return status;
}

static void free_plans(struct exec *x)
{
    for (int i = 0; i < x->n_plan; i++)
        plan_free(x->plan[i]);
    x->n_plan = 0;
    x->n_own = 0;
    x->reserved = NULL;
}

void exec_free(struct exec *x)
{
    if (!x)
        return;
    free_plans(x);
    host_free(x->host, x->bans.ban);
    host_free(x->host, x->own);
    if (x->arena)
        x->mem.free(x->mem.ctx, x->arena);
    if (x->scratch)
        x->mem.free(x->mem.ctx, x->scratch);
    if (x->shared)
        x->mem.free(x->mem.ctx, x->shared);
    host_free(x->host, x->row_seg);
    host_free(x->host, x->row_abs);
    host_free(x->host, x->out_row);
    host_free(x->host, x->bad);
    host_free(x->host, x->prof);
    host_free(x->host, x->copy);
    host_free(x->host, x);
}

size_t exec_bytes(const struct exec *x)
{
    return x->arena_bytes + x->scratch_bytes + x->shared_bytes;
}

/* ---- Plans ----------------------------------------------------------------------------------- */

static struct plan_key key_of(const struct exec *x, const struct batch *b)
{
    unsigned ports = 0;
    for (int i = 0; i < b->n_out; i++)
        ports |= b->out[i].kinds;
    return exec_key(x->kind, &x->o, b->n_row, b->n_out, ports);
}

static bool key_equal(const struct plan_key *a, const struct plan_key *b)
{
    return a->row_lo == b->row_lo && a->row_hi == b->row_hi && a->out_cap == b->out_cap &&
           a->seq_cap == b->seq_cap && a->ports == b->ports && a->all_rows == b->all_rows;
}

static sinter_status add_own(struct exec *x, const struct group *g, const char *name,
                             sinter_error *err)
{
    void *block = x->own;
    TRY(host_grow(x->host, &block, &x->own_cap, (size_t)x->n_own + 1, sizeof *x->own, err));
    x->own = block;
    for (int v = 0; v < x->graph->n_value; v++) /* the name of the whole graph outlives plans */
        if (strcmp(x->graph->value[v].name, name) == 0) {
            x->own[x->n_own++] = (struct exec_own){x->graph->value[v].name, g->variant, is_own(g)};
            return SINTER_OK;
        }
    return FAIL(err, INTERNAL, "%s is in a plan, but not in graph %s", name, x->graph->name);
}

/* Exact mode: what lies in an OWN group does so in every plan. */
static sinter_status check_own(struct exec *x, const struct plan *p, sinter_error *err)
{
    for (int i = 0; i < p->match->n_group; i++) {
        const struct group *g = &p->match->group[i];
        if (!g->n_out)
            continue;
        const char *name = p->graph->value[g->out[0]].name;
        int at = 0;
        while (at < x->n_own && strcmp(x->own[at].name, name) != 0)
            at++;
        if (at == x->n_own) {
            TRY(add_own(x, g, name, err));
            continue;
        }
        const struct exec_own *o = &x->own[at];
        if (o->variant != g->variant && (o->is_own || is_own(g)))
            return FAIL(err, INTERNAL,
                        "%s is %s in one plan of graph %s and %s in another, with other bits", name,
                        o->variant->label, x->graph->name, g->variant->label);
    }
    return SINTER_OK;
}

static void count_plan(const struct exec *x, const struct plan *p)
{
    if (x->o.stats)
        fuse_stats_add_plan(x->o.stats, p->match);
}

static struct plan *oldest(struct exec *x, int *at)
{
    *at = 0;
    for (int i = 1; i < x->n_plan; i++)
        if (x->plan[i]->used < x->plan[*at]->used)
            *at = i;
    return x->plan[*at];
}

static sinter_status make_plan(struct exec *x, const struct plan_key *key, struct plan **out,
                               sinter_error *err)
{
    struct plan_options o = {.n_thread = x->o.n_thread,
                             .n_key = x->o.n_ctx,
                             .fuse = x->o.fuse,
                             .order_seed = x->o.order_seed,
                             .offsets = x->o.offsets,
                             .offsets_seed = x->o.offsets_seed};
    bool own_ban = false;
    struct plan *p;
    TRY(plan_create(x->host, x->kind, x->table, x->graph, key, &o, &x->bans, &own_ban, &p, err));
    if (own_ban)
        free_plans(x); /* so that every plan takes the same OWN groups */
    sinter_status status = check_own(x, p, err);
    if (status != SINTER_OK) {
        plan_free(p);
        return status;
    }
    if (x->n_plan == EXEC_MAX_PLAN) {
        int at;
        const struct plan *old = oldest(x, &at);
        host_log(x->host, SINTER_LOG_INFO,
                 "graph %s: %d plans are kept; that of rows %d..%d made room for rows %d..%d",
                 x->graph->name, EXEC_MAX_PLAN, old->key.row_lo, old->key.row_hi, key->row_lo,
                 key->row_hi);
        plan_free(x->plan[at]);
        x->plan[at] = x->plan[--x->n_plan];
    }
    x->plan[x->n_plan++] = p;
    x->n_made++;
    count_plan(x, p);
    *out = p;
    return SINTER_OK;
}

static sinter_status find_plan(struct exec *x, const struct batch *b, struct plan **out,
                               sinter_error *err)
{
    struct plan_key key = key_of(x, b);
    *out = NULL;
    for (int i = 0; i < x->n_plan; i++)
        if (key_equal(&x->plan[i]->key, &key))
            *out = x->plan[i];
    if (!*out)
        TRY(make_plan(x, &key, out, err));
    (*out)->used = ++x->n_step;
    struct exec_need need = {0};
    exec_need_plan(&need, *out);
    return fit_memory(x, &need, err);
}

/* ---- Reserve --------------------------------------------------------------------------------- */

static sinter_status check_batch(const struct exec *x, const struct batch *b, sinter_error *err)
{
    int row = 0;
    if (b->n_row > x->o.n_chunk)
        return FAIL(err, LIMIT, "a step of %d rows; this engine takes %d", b->n_row, x->o.n_chunk);
    if (b->n_seg > x->o.n_seq)
        return FAIL(err, LIMIT, "a step of %d sequences; this engine takes %d", b->n_seg,
                    x->o.n_seq);
    for (int i = 0; i < b->n_seg; row += b->seg[i++].n_row)
        if (b->seg[i].row0 != row)
            return FAIL(err, USAGE, "segment %d starts at row %d, not %d", i, b->seg[i].row0, row);
    if (row != b->n_row)
        return FAIL(err, USAGE, "the segments have %d rows, the step %d", row, b->n_row);
    for (int i = 0; i < b->n_out; i++)
        if (b->out[i].row < (i ? b->out[i - 1].row + 1 : 0) || b->out[i].row >= b->n_row)
            return FAIL(err, USAGE, "wanted row %d of %d is out of order or range", b->out[i].row,
                        b->n_row);
    return SINTER_OK;
}

sinter_status exec_reserve(struct exec *x, const struct batch *b, sinter_error *err)
{
    struct plan *p;
    if (x->submitted)
        return FAIL(err, USAGE, "reserve before wait has taken the last step's results");
    x->reserved = NULL;
    TRY(check_batch(x, b, err));
    TRY(find_plan(x, b, &p, err));
    if (x->mem.access)
        x->mem.access(x->mem.ctx, true);
    sinter_status status = state_reserve(x->state, b, err);
    if (x->mem.access)
        x->mem.access(x->mem.ctx, false);
    if (status == SINTER_OK)
        x->reserved = p;
    return status;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* QK, SOFTMAX, PV as a loop over tiles of this thread's rows. Returns the loop's last step. */
static int run_loop(struct exec *x, struct call *c, int s)
{
    const struct plan *p = x->cur;
    int end = s;
    while (end + 1 < p->n_step && p->step[end + 1].loop == p->step[s].loop)
        end++;
    c->step = &p->step[s];
    c->group = p->step[s].group;
    const struct value *v = &p->graph->value[c->group->out[0]];
    c->tile1 = -1;
    int n = v->shape.axis == AXIS_OUT ? x->n_out : x->n_tok;
    struct span mine = call_span(c, n, 1);
    size_t row = (size_t)v->shape.n_head * (size_t)x->n_key * sizeof(float);
    int tile = row ? (int)(p->score / row) : 1;
    tile = tile < 1 ? 1 : tile > 16 ? 16 : tile;
    for (int r = mine.lo; r < mine.hi; r += tile) {
        c->tile0 = r;
        c->tile1 = least(r + tile, mine.hi);
        for (int i = s; i <= end; i++) {
            c->step = &p->step[i];
            c->group = p->step[i].group;
            c->group->line->run(c);
        }
    }
    c->tile1 = -1;
    return end;
}

/* Steps [s, last] have run: counters, and the time of a loop to its first step. */
static void count_steps(struct exec *x, int s, int last, uint64_t start)
{
    for (; s <= last; s++) {
        if (x->o.stats && x->cur->step[s].group)
            fuse_stats_executed(x->o.stats, x->cur->step[s].group);
        if (x->o.profile)
            start = profile_step(x, &x->cur->step[s], start);
    }
}

/* Threads may see the flag at different steps, and the last step may run in some only: what one
 * has seen counts for all. */
static bool is_cancelled(struct exec *x)
{
    const struct batch *b = x->batch;
    if (atomic_load_explicit(&x->cancelled, memory_order_relaxed))
        return true; /* the flag may be lowered again while the step runs */
    if (!b->cancel || !atomic_load_explicit(b->cancel, memory_order_relaxed))
        return false;
    atomic_store_explicit(&x->cancelled, true, memory_order_relaxed);
    return true;
}

/* Steps [first, end) on one thread. */
static void run_steps(struct exec *x, int thread, int n_thread, int first, int end)
{
    const struct plan *p = x->cur;
    bool cancelled = false;
    struct call c = {.exec = x,
                     .graph = p->graph,
                     .thread = thread,
                     .n_thread = n_thread,
                     .scratch = x->scratch + (size_t)thread * x->scratch_each,
                     .shared = x->shared,
                     .tile1 = -1};
    for (int s = first; s < end; s++) {
        const struct plan_step *step = &p->step[s];
        bool timed = x->o.profile && thread == 0;
        uint64_t start = timed ? host_clock_ns(x->host) : 0;
        if (step->barrier && !x->o.serial)
            pool_barrier(x->pool);
        if (timed && step->barrier)
            start = profile_wait(x, start);
        cancelled = cancelled || is_cancelled(x);
        if (cancelled)
            continue;
        c.step = step;
        c.group = step->group;
        int last = s;
        if (!step->group)
            call_convert(&c);
        else if (step->loop)
            last = run_loop(x, &c, s);
        else
            step->group->line->run(&c);
        if (thread == 0)
            count_steps(x, s, last, start);
        s = last;
    }
}

static void run_thread(void *ctx, int thread, int n_thread)
{
    struct exec *x = ctx;
    run_steps(x, thread, n_thread, 0, x->cur->n_step);
}

/* Tests: phase by phase, the threads one after the other, up or down. What lacks a barrier then
 * reads what is not yet written, or no longer there. */
static void run_serial(struct exec *x)
{
    int n = x->o.n_thread;
    for (int s = 0, end; s < x->cur->n_step; s = end) {
        for (end = s + 1; end < x->cur->n_step && !x->cur->step[end].barrier;)
            end++;
        for (int t = 0; t < n; t++)
            run_steps(x, x->o.serial == EXEC_SERIAL_UP ? t : n - 1 - t, n, s, end);
    }
}

static char *port_mem(const struct exec *x, enum port port)
{
    int v = x->cur->port[port];
    int b = v < 0 ? -1 : x->cur->buf_of[FORM_F32][v];
    return b < 0 ? NULL : x->arena + x->cur->buf[b].off;
}

static void set_inputs(struct exec *x, const struct batch *b)
{
    int32_t *ids = (int32_t *)(void *)port_mem(x, PORT_IDS);
    int32_t *pos = (int32_t *)(void *)port_mem(x, PORT_POS);
    int32_t *out = (int32_t *)(void *)port_mem(x, PORT_OUT_ROWS);
    x->n_tok = b->n_row;
    x->n_out = x->cur->key.all_rows ? b->n_row : b->n_out;
    x->n_key = 0;
    for (int i = 0; i < b->n_seg; i++) {
        const struct batch_seg *s = &b->seg[i];
        if (s->n_past + s->n_row > x->n_key)
            x->n_key = s->n_past + s->n_row;
        for (int r = 0; r < s->n_row; r++) {
            x->row_seg[s->row0 + r] = i;
            x->row_abs[s->row0 + r] = s->n_past + r;
        }
    }
    for (int r = 0; r < b->n_row; r++) {
        if (ids)
            ids[r] = b->id[r];
        if (pos)
            pos[r] = b->pos ? b->pos[r] : x->row_abs[r];
    }
    for (int o = 0; o < b->n_out; o++) {
        x->out_row[o] = b->out[o].row;
        if (out)
            out[o] = b->out[o].row;
    }
}

/* NaN and infinity have an exponent of ones. */
static bool has_bad(const float *x, size_t n)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &x[i], sizeof u);
        bad |= (u & 0x7f800000u) == 0x7f800000u;
    }
    return bad != 0;
}

/* An ARGMAX over a row with a NaN gives -1. */
static void find_bad(struct exec *x, const struct result *r)
{
    size_t n = (size_t)r->n_vocab;
    for (int o = 0; o < x->n_out; o++)
        x->bad[o] =
            (r->logits && has_bad(r->logits + (size_t)o * n, n)) || (r->argmax && r->argmax[o] < 0);
}

static sinter_status copy_results(struct exec *x, sinter_error *err)
{
    struct result *r = &x->result;
    const void *src[] = {r->logits, r->hidden, r->argmax};
    size_t n = (size_t)r->n_out;
    size_t bytes[] = {n * (size_t)r->n_vocab * 4, n * (size_t)r->d_model * 4, n * 4};
    size_t want = 64;
    for (int i = 0; i < 3; i++)
        want += src[i] ? bytes[i] : 0;
    if (want > x->copy_bytes) {
        host_free(x->host, x->copy);
        x->copy_bytes = 0;
        x->copy = host_alloc_raw(x->host, want);
        if (!x->copy)
            return host_no_memory(err, want, 1, "results");
        x->copy_bytes = want;
    }
    char *at = (char *)x->copy;
    for (int i = 0; i < 3; i++) {
        if (!src[i])
            continue;
        memcpy(at, src[i], bytes[i]);
        src[i] = at;
        at += bytes[i];
    }
    r->logits = src[0];
    r->hidden = src[1];
    r->argmax = src[2];
    return SINTER_OK;
}

static sinter_status set_result(struct exec *x, sinter_error *err)
{
    const struct graph *g = x->cur->graph;
    int logits = x->cur->port[PORT_LOGITS], hidden = x->cur->port[PORT_HIDDEN];
    x->result = (struct result){.n_out = x->n_out, .bad = x->bad};
    if (logits >= 0)
        x->result.n_vocab = row_len(&g->value[logits]);
    if (hidden >= 0)
        x->result.d_model = row_len(&g->value[hidden]);
    if (x->cur->key.ports & PORT_LOGITS)
        x->result.logits = (const float *)(void *)port_mem(x, PORT_LOGITS);
    if (x->cur->key.ports & PORT_HIDDEN)
        x->result.hidden = (const float *)(void *)port_mem(x, PORT_HIDDEN);
    if (x->cur->key.ports & PORT_ARGMAX)
        x->result.argmax = (const int32_t *)(void *)port_mem(x, PORT_ARGMAX);
    find_bad(x, &x->result);
    return x->mem.access ? copy_results(x, err) : SINTER_OK;
}

sinter_status exec_submit(struct exec *x, const struct batch *b, sinter_error *err)
{
    if (x->submitted)
        return FAIL(err, USAGE, "submit before wait has taken the last step's results");
    TRY(check_batch(x, b, err));
    for (int i = 0; i < b->n_seg; i++)
        if (!seq_is_open(b->seg[i].seq, b->seg[i].n_past, b->seg[i].n_row))
            return FAIL(err, USAGE, "segment %d is not the step that was reserved last", i);
    const struct plan_key key = key_of(x, b);
    if (!x->reserved || !key_equal(&x->reserved->key, &key))
        return FAIL(err, USAGE, "the step that was reserved last has another plan");
    x->cur = x->reserved;
    x->reserved = NULL;
    x->batch = b;
    atomic_store(&x->cancelled, false);
    if (x->mem.access)
        x->mem.access(x->mem.ctx, true);
    set_inputs(x, b);
    if (b->n_row && x->o.serial)
        run_serial(x);
    else if (b->n_row)
        pool_run(x->pool, x->o.n_thread, run_thread, x);
    if (atomic_load(&x->cancelled)) /* a kernel that some threads have left leaves it dirty */
        memset(x->shared, 0, x->shared_bytes);
    sinter_status status = set_result(x, err);
    if (x->mem.access)
        x->mem.access(x->mem.ctx, false);
    x->submitted = status == SINTER_OK;
    return status;
}

sinter_status exec_wait(struct exec *x, struct result *out, sinter_error *err)
{
    if (!x->submitted)
        return FAIL(err, USAGE, "wait without a submitted step");
    x->submitted = false;
    *out = x->result;
    if (atomic_load(&x->cancelled))
        return FAIL(err, CANCELLED, "the step was cancelled; its rows are not kept");
    return SINTER_OK;
}
