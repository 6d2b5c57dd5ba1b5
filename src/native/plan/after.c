/* `after`: which earlier steps a step must wait for, over bytes and state slots, as few as
 * possible. Devices turn it into edges; the CPU has its barriers. */
#include "native/plan/plan_impl.h"

static bool bytes_meet(const struct buf *a, const struct buf *b)
{
    return a->off < b->off + b->bytes * (size_t)b->copies &&
           b->off < a->off + a->bytes * (size_t)a->copies;
}

/* Does step s read (or, with `write`, write) the bytes of buffer b's interval? */
static bool touches(const struct plan *p, int s, const struct buf *b, bool write)
{
    for (int i = 0; i < p->n_buf; i++) {
        const struct buf *o = &p->buf[i];
        bool is_writer = o->writer == s;
        if (is_writer && bytes_meet(o, b))
            return true;
        if (write || is_writer || o->writer > s || o->last < s)
            continue;
        const struct plan_step *step = &p->step[s];
        bool reads = !step->group && step->value == o->value && o->form == FORM_F32;
        for (int j = 0; step->group && j < step->group->n_in; j++)
            reads |= step->group->in[j] == o->value;
        if (reads && bytes_meet(o, b))
            return true;
    }
    return false;
}

static bool reads_buf(const struct plan *p, int s, const struct buf *b)
{
    const struct plan_step *step = &p->step[s];
    if (b->writer == s || b->writer > s || b->last < s)
        return false;
    if (!step->group)
        return step->value == b->value && b->form == FORM_F32;
    for (int j = 0; j < step->group->n_in; j++)
        if (step->group->in[j] == b->value)
            return true;
    return false;
}

static bool same_slot(const struct plan *p, int s, int t)
{
    const struct group *a = p->step[s].group, *b = p->step[t].group;
    for (int i = 0; a && b && i < a->n_in; i++) {
        const struct value *v = &p->graph->value[a->in[i]];
        if (v->kind != VALUE_STATE)
            continue;
        for (int j = 0; j < b->n_out; j++) {
            const struct value *w = &p->graph->value[b->out[j]];
            if (w->kind == VALUE_STATE && w->index == v->index)
                return true;
        }
    }
    return false;
}

/* Must s come after t (t < s)? Read after write, write after read, write after write; state. */
static bool conflict(const struct plan *p, int s, int t)
{
    for (int i = 0; i < p->n_buf; i++) {
        const struct buf *b = &p->buf[i];
        if (b->writer == s && touches(p, t, b, false))
            return true;
        if (reads_buf(p, s, b) && touches(p, t, b, true))
            return true;
    }
    return same_slot(p, s, t) || same_slot(p, t, s);
}

/* Is `from` reached from `to` through conflicts among steps in (from, to)? Plans are short. */
static bool implied(const struct plan *p, int t, const int *after, int n)
{
    for (int i = 0; i < n; i++)
        if (after[i] > t && conflict(p, after[i], t))
            return true;
    return false;
}

int plan_after(const struct plan *p, int i, int *after, int cap)
{
    int n = 0;
    for (int t = i - 1; t >= 0 && n < cap; t--)
        if (conflict(p, i, t) && !implied(p, t, after, n))
            after[n++] = t;
    for (int a = 0; a < n / 2; a++) {
        int swap = after[a];
        after[a] = after[n - 1 - a];
        after[n - 1 - a] = swap;
    }
    return n;
}
