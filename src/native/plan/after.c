/* `after`: which earlier steps a step must wait for, over bytes, state slots and score tiles, as
 * few as possible. Devices turn it into edges and fences; the CPU has its barriers.
 *
 * Going back from a step, each earlier step that it conflicts with and that no step found so far
 * waits for is one to wait for: the transitive reduction, with one bit per earlier step. */
#include "native/plan/plan_impl.h"

enum space { SPACE_BYTES, SPACE_SLOT, SPACE_LOOP };

/* What a step reads or writes: bytes, a state slot, or the score tile of its loop. */
struct access {
    enum space space;
    size_t lo, hi;
    bool write;
};
enum { MAX_ACCESS = PLAN_MAX_READ + 4 * FUSE_MAX_SLOT + 1 };

static struct access buf_access(const struct buf *b, bool write)
{
    return (struct access){SPACE_BYTES, b->off, b->off + b->bytes * (size_t)b->copies, write};
}

static int slot_access(const struct plan *p, const int *value, int n, bool write,
                       struct access *out)
{
    int n_out = 0;
    for (int i = 0; i < n; i++) {
        const struct value *v = &p->graph->value[value[i]];
        if (v->kind == VALUE_STATE)
            out[n_out++] =
                (struct access){SPACE_SLOT, (size_t)v->index, (size_t)v->index + 1, write};
    }
    return n_out;
}

static int accesses(const struct native_kind *kind, const struct plan *p, int s, struct access *out)
{
    struct read read[PLAN_MAX_READ];
    const struct plan_step *step = &p->step[s];
    int n_read = plan_reads(kind, p, s, read), n = 0;
    for (int i = 0; i < n_read; i++)
        out[n++] = buf_access(&p->buf[p->buf_of[read[i].form][read[i].value]], false);
    for (int b = 0; b < p->n_buf; b++)
        if (p->buf[b].writer == s)
            out[n++] = buf_access(&p->buf[b], true);
    if (!step->group)
        return n;
    n += slot_access(p, step->group->in, step->group->n_in, false, out + n);
    n += slot_access(p, step->group->out, step->group->n_out, true, out + n);
    if (step->loop)
        out[n++] = (struct access){SPACE_LOOP, (size_t)step->loop, (size_t)step->loop + 1, true};
    return n;
}

static bool meet(const struct access *a, int n_a, const struct access *b, int n_b)
{
    for (int i = 0; i < n_a; i++)
        for (int j = 0; j < n_b; j++)
            if (a[i].space == b[j].space && a[i].lo < b[j].hi && b[j].lo < a[i].hi &&
                (a[i].write || b[j].write))
                return true;
    return false;
}

bool plan_conflict(const struct native_kind *kind, const struct plan *p, int s, int t)
{
    struct access a[MAX_ACCESS], b[MAX_ACCESS];
    return meet(a, accesses(kind, p, s, a), b, accesses(kind, p, t, b));
}

struct after {
    struct access **access; /* [n_step] */
    int *n_access;
    uint64_t *reach; /* [n_step][n_word]: bit t of row s: s waits for t, directly or not */
    size_t n_word;
    int *found;
};

static bool waits(const struct after *a, int s, int t)
{
    return a->reach[(size_t)s * a->n_word + (size_t)t / 64] >> (t % 64) & 1;
}

static void add_wait(const struct after *a, int s, int t)
{
    uint64_t *to = a->reach + (size_t)s * a->n_word, *from = a->reach + (size_t)t * a->n_word;
    for (size_t w = 0; w < a->n_word; w++)
        to[w] |= from[w];
    to[t / 64] |= (uint64_t)1 << (t % 64);
}

static bool set_step(struct plan *p, const struct after *a, int s)
{
    int n = 0;
    for (int t = s - 1; t >= 0; t--)
        if (!waits(a, s, t) && meet(a->access[s], a->n_access[s], a->access[t], a->n_access[t])) {
            add_wait(a, s, t);
            a->found[n++] = t;
        }
    int *after = arena_alloc_n(&p->arena, (size_t)n + 1, sizeof *after);
    for (int i = 0; after && i < n; i++)
        after[i] = a->found[n - 1 - i];
    p->step[s].after = after;
    p->step[s].n_after = after ? n : 0;
    return after != NULL;
}

static bool set_access(const struct native_kind *kind, struct plan *p, const struct after *a, int s)
{
    struct access all[MAX_ACCESS];
    int n = accesses(kind, p, s, all);
    a->n_access[s] = n;
    a->access[s] = arena_alloc_n(&p->arena, (size_t)n + 1, sizeof *all);
    for (int i = 0; a->access[s] && i < n; i++)
        a->access[s][i] = all[i];
    return a->access[s] != NULL;
}

sinter_status plan_set_after(const struct native_kind *kind, struct plan *p, sinter_error *err)
{
    size_t n = (size_t)p->n_step + 1;
    struct after a = {.n_word = n / 64 + 1};
    a.access = arena_alloc_n(&p->arena, n, sizeof *a.access);
    a.n_access = arena_alloc_n(&p->arena, n, sizeof *a.n_access);
    a.reach = arena_alloc_n(&p->arena, n * a.n_word, sizeof *a.reach);
    a.found = arena_alloc_n(&p->arena, n, sizeof *a.found);
    bool ok = a.access && a.n_access && a.reach && a.found;
    for (int s = 0; ok && s < p->n_step; s++)
        ok = set_access(kind, p, &a, s) && set_step(p, &a, s);
    return ok ? SINTER_OK
              : FAIL(err, MEMORY, "no memory for the waits of the plan of graph %s",
                     p->graph->name);
}
