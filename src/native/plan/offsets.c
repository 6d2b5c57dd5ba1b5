/* Liveness, in-place pairs, offsets, and FULL: the check of a finished plan's placement. */
#include "native/plan/plan_impl.h"

/* First barrier after step s: past it, all threads are done with s. */
static int barrier_after(const struct plan *p, int s)
{
    for (int i = s + 1; i < p->n_step; i++)
        if (p->step[i].barrier)
            return i;
    return p->n_step;
}

static int barrier_before(const struct plan *p, int s)
{
    while (s > 0 && !p->step[s].barrier)
        s--;
    return s;
}

static bool is_out_port(const struct plan *p, int value)
{
    return (p->graph->value[value].port & p->key.ports & ~(unsigned)PORT_INS) != 0;
}

static void set_last(const struct native_kind *kind, struct plan *p)
{
    struct read read[PLAN_MAX_READ];
    for (int b = 0; b < p->n_buf; b++)
        p->buf[b].last = p->buf[b].writer;
    for (int s = 0; s < p->n_step; s++) {
        int n = plan_reads(kind, p, s, read);
        for (int i = 0; i < n; i++)
            p->buf[p->buf_of[read[i].form][read[i].value]].last = s;
    }
    for (int b = 0; b < p->n_buf; b++)
        if (p->buf[b].form == FORM_F32 && is_out_port(p, p->buf[b].value))
            p->buf[b].last = p->n_step;
}

static int root(const struct plan *p, int b)
{
    while (p->buf[b].alias >= 0)
        b = p->buf[b].alias;
    return b;
}

/* Whoever reads b, or a buffer whose bytes b took over, between the barrier that s stands behind
 * and s itself, reads no more of it than the thread's own part of s overwrites; and s reads no
 * whole rows of it, whose first columns it would have overwritten when it comes to the last. */
static bool readers_agree(const struct native_kind *kind, const struct plan *p, int s,
                          const struct buf *b)
{
    struct read read[PLAN_MAX_READ];
    int home = root(p, (int)(b - p->buf));
    for (int i = barrier_before(p, s); i <= s; i++) {
        int n = plan_reads(kind, p, i, read);
        for (int j = 0; j < n; j++) {
            int r = p->buf_of[read[j].form][read[j].value];
            if (root(p, r) != home)
                continue;
            if ((i == s && read[j].whole) ||
                plan_crosses(p, &p->step[s], &p->step[i], &p->graph->value[read[j].value],
                             read[j].whole))
                return false;
        }
    }
    return true;
}

/* May `out` take over the bytes of `in` in step s? The input dies here, has the same bytes and
 * share, and is no port; whoever else read it did so before the barrier that s stands behind, or
 * its own part only. */
static bool can_take_over(const struct native_kind *kind, const struct plan *p, int s,
                          const struct buf *out, const struct buf *in)
{
    if (in->writer < 0 || in->last != s || in->bytes != out->bytes || in->copies != out->copies ||
        in->share != out->share || in->form != out->form || is_out_port(p, in->value))
        return false;
    const struct plan_step *w = &p->step[in->writer], *step = &p->step[s];
    const struct shape a = p->graph->value[in->value].shape, b = p->graph->value[out->value].shape;
    if (w->n_head_kv != step->n_head_kv || !shape_equal(a, b))
        return false;
    return readers_agree(kind, p, s, in);
}

static void take_over(const struct native_kind *kind, struct plan *p, int s)
{
    const struct group *g = p->step[s].group;
    if (!g)
        return;
    for (int i = 0; i < 2; i++) {
        const uint8_t *pair = g->line->inplace[i];
        if (!pair[0])
            continue;
        int out = group_value(g, pair[0], 0), in = group_value_first(g, pair[1], 0);
        if (out < 0 || in < 0 || p->graph->value[in].kind != VALUE_ACT)
            continue;
        int b_out = p->buf_of[FORM_F32][out], b_in = p->buf_of[FORM_F32][in];
        if (b_out < 0 || b_in < 0 || p->buf[b_out].writer != s || p->buf[b_out].alias >= 0)
            continue;
        if (can_take_over(kind, p, s, &p->buf[b_out], &p->buf[b_in]))
            p->buf[b_out].alias = b_in;
    }
}

void plan_liveness(const struct native_kind *kind, struct plan *p)
{
    set_last(kind, p);
    for (int s = 0; s < p->n_step; s++)
        take_over(kind, p, s);
    for (int b = 0; b < p->n_buf; b++) {
        struct buf *buf = &p->buf[b];
        buf->born = buf->writer;
        buf->dies = buf->last >= p->n_step ? p->n_step + 1 : barrier_after(p, buf->last);
    }
    for (int b = 0; b < p->n_buf; b++) {
        struct buf *r = &p->buf[root(p, b)];
        if (r->dies < p->buf[b].dies)
            r->dies = p->buf[b].dies;
    }
}

static bool overlap(size_t a, size_t n_a, size_t b, size_t n_b)
{
    return a < b + n_b && b < a + n_a;
}

static size_t buf_bytes(const struct buf *b)
{
    return b->bytes * (size_t)b->copies;
}

/* Lowest offset at which b meets no placed buffer of its time. placed = offsets ascending. */
static size_t find_room(const struct plan *p, const struct buf *b, const int *placed, int n)
{
    size_t off = 0;
    for (int i = 0; i < n; i++) {
        const struct buf *o = &p->buf[placed[i]];
        if (o->born < b->dies && b->born < o->dies &&
            overlap(off, buf_bytes(b), o->off, buf_bytes(o)))
            off = o->off + buf_bytes(o);
    }
    return off;
}

static void place_buf(struct plan *p, int b, int *placed, int *n)
{
    p->buf[b].off = find_room(p, &p->buf[b], placed, *n);
    int i = (*n)++;
    for (; i > 0 && p->buf[placed[i - 1]].off > p->buf[b].off; i--)
        placed[i] = placed[i - 1];
    placed[i] = b;
}

static int next_largest(const struct plan *p, const bool *done)
{
    int best = -1;
    for (int b = 0; b < p->n_buf; b++)
        if (!done[b] && p->buf[b].alias < 0 &&
            (best < 0 || buf_bytes(&p->buf[b]) > buf_bytes(&p->buf[best])))
            best = b;
    return best;
}

sinter_status plan_offsets(struct plan *p, sinter_error *err)
{
    int *placed = arena_alloc_n(&p->arena, (size_t)p->n_buf + 1, sizeof *placed), n = 0;
    bool *done = arena_alloc_n(&p->arena, (size_t)p->n_buf + 1, sizeof *done);
    if (!placed || !done)
        return FAIL(err, MEMORY, "no memory to place %d buffers", p->n_buf);
    for (int b = next_largest(p, done); b >= 0; b = next_largest(p, done)) {
        done[b] = true;
        place_buf(p, b, placed, &n);
    }
    for (int b = 0; b < p->n_buf; b++)
        p->buf[b].off = p->buf[root(p, b)].off;
    return SINTER_OK;
}

static bool is_pair(const struct plan *p, int s, const struct buf *out, const struct buf *in)
{
    const struct group *g = p->step[s].group;
    for (int i = 0; g && i < 2; i++)
        if (g->line->inplace[i][0] && group_value(g, g->line->inplace[i][0], 0) == out->value &&
            group_value_first(g, g->line->inplace[i][1], 0) == in->value)
            return in->last == s && in->off == out->off && in->bytes == out->bytes &&
                   in->copies == out->copies && in->share == out->share;
    return false;
}

static bool meet(const struct buf *a, const struct buf *b)
{
    return overlap(a->off, buf_bytes(a), b->off, buf_bytes(b));
}

/* Does anything alive in step s share bytes with what s writes? */
static bool step_overlaps(const struct native_kind *kind, const struct plan *p, int s)
{
    for (int o = 0; o < p->n_buf; o++) {
        const struct buf *out = &p->buf[o];
        if (out->writer != s)
            continue;
        for (int b = 0; b < p->n_buf; b++) {
            const struct buf *in = &p->buf[b];
            int dies = in->last >= p->n_step ? p->n_step + 1 : barrier_after(p, in->last);
            if (b == o || in->writer > s || dies <= s || !meet(out, in))
                continue;
            bool chain = in->last < s && out->alias >= 0 && root(p, o) == root(p, b);
            bool may = in->writer != s && (chain || is_pair(p, s, out, in));
            if (!may || !readers_agree(kind, p, s, in))
                return true;
        }
    }
    return false;
}

int plan_full(const struct native_kind *kind, const struct plan *p)
{
    for (int s = 0; s < p->n_step; s++)
        if (step_overlaps(kind, p, s))
            return s;
    return -1;
}
