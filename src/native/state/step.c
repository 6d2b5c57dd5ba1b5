/* Steps: reserve (all sequences or none), commit, and the views that kernels get. */
#include "native/state/state_impl.h"

#include <string.h>

static sinter_status check_seg(const struct state_pool *p, const struct batch_seg *g,
                               sinter_error *err)
{
    int end = seq_end(g->seq);
    if (g->seq->pool != p)
        return FAIL(err, USAGE, "a sequence of another engine was given");
    if (g->n_past != end)
        return FAIL(err, STATE, "the step starts at row %d, but its sequence ends at %d", g->n_past,
                    end);
    if (g->n_row < 0 || g->n_row > p->o.n_chunk)
        return FAIL(err, LIMIT, "a step of %d rows; one may have %d", g->n_row, p->o.n_chunk);
    if (g->n_row > p->o.n_ctx - end)
        return FAIL(err, CONTEXT,
                    "the context is full: %d tokens are in it, %d more do not fit into %d; use a "
                    "larger context (-c) or a shorter prompt",
                    end, g->n_row, p->o.n_ctx);
    if (g->seq->n_open == STATE_MAX_OPEN)
        return FAIL(err, STATE, "%d steps of one sequence are open; commit one first",
                    STATE_MAX_OPEN);
    return SINTER_OK;
}

/* Does the first row written fall into a page that others hold too? (A restored window may start
 * behind it.) */
static bool must_copy(const struct state_pool *p, const struct seq *s, int class, int end)
{
    const struct seq_class *c = &s->class[class];
    int at = (end - c->first_row) / p->o.page_rows;
    return end >= c->first_row && at < c->n_page && p->class[class].page.count[c->page[at]] > 1;
}

int state_pages_wanted(const struct state_pool *p, const struct batch_seg *g, int class)
{
    const struct seq_class *c = &g->seq->class[class];
    if (!g->n_row)
        return 0;
    int last = (g->n_past + g->n_row - 1 - c->first_row) / p->o.page_rows;
    return last + 1 - c->n_page + must_copy(p, g->seq, class, g->n_past);
}

static sinter_status check_room(const struct state_pool *p, const struct batch *b,
                                sinter_error *err)
{
    for (int i = 0; i < p->n_class; i++) {
        int64_t want = 0;
        for (int j = 0; j < b->n_seg; j++)
            want += state_pages_wanted(p, &b->seg[j], i);
        if (want > p->class[i].page.n_free)
            return FAIL(err, MEMORY,
                        "the KV cache is full: the step needs %lld pages of %d rows, %d of %d are "
                        "free; close sequences or make the engine with more rows",
                        (long long)want, p->o.page_rows, p->class[i].page.n_free,
                        p->class[i].page.n);
    }
    for (int r = 0; r < p->n_rec; r++)
        if ((int64_t)b->n_seg * rec_n_snap(p, r) > p->rec[r].n_free)
            return FAIL(err, MEMORY,
                        "no recurrent slots left for %d sequences: run fewer in one "
                        "step",
                        b->n_seg);
    return SINTER_OK;
}

static void copy_page(struct state_pool *p, int class, int from, int to)
{
    for (int i = 0; i < p->n_slot; i++) {
        const struct slot_home *h = &p->slot[i];
        if (h->slot.kind == SLOT_KV && h->class == class)
            memcpy(h->base + (size_t)to * h->each, h->base + (size_t)from * h->each, h->each);
    }
}

static void take_pages(struct state_pool *p, const struct batch_seg *g, int class)
{
    struct seq_class *c = &g->seq->class[class];
    struct counted *page = &p->class[class].page;
    int want = state_pages_wanted(p, g, class);
    if (g->n_row && must_copy(p, g->seq, class, g->n_past)) {
        int at = (g->n_past - c->first_row) / p->o.page_rows, fresh = counted_take(page);
        copy_page(p, class, c->page[at], fresh);
        counted_drop(page, c->page[at]);
        c->page[at] = fresh;
        want--;
    }
    for (; want > 0; want--)
        c->page[c->n_page++] = counted_take(page);
}

sinter_status state_reserve(struct state_pool *p, const struct batch *b, sinter_error *err)
{
    for (int i = 0; i < b->n_seg; i++) {
        TRY(check_seg(p, &b->seg[i], err));
        for (int j = 0; j < i; j++)
            if (b->seg[j].seq == b->seg[i].seq)
                return FAIL(err, USAGE, "a sequence stands in the step twice (segments %d and %d)",
                            j, i);
    }
    TRY(check_room(p, b, err));
    for (int i = 0; i < b->n_seg; i++) {
        struct seq *s = b->seg[i].seq;
        for (int class = 0; class < p->n_class; class ++)
            take_pages(p, &b->seg[i], class);
        struct open_step *o = &s->open[s->n_open++];
        o->n_past = b->seg[i].n_past;
        o->n_row = b->seg[i].n_row;
        for (int r = 0; r < p->n_rec; r++)
            for (int k = 0; k < rec_n_snap(p, r); k++)
                o->fresh[r * rec_max_snap(p) + k] = counted_take(&p->rec[r]);
    }
    return SINTER_OK;
}

bool seq_is_open(const struct seq *s, int n_past, int n_row)
{
    const struct open_step *o = s->n_open ? &s->open[s->n_open - 1] : NULL;
    return o && o->n_past == n_past && o->n_row == n_row;
}

/* Pages that no row from n_row on can see go back. */
static void fall_off(struct seq *s)
{
    struct state_pool *p = s->pool;
    for (int i = 0; i < p->n_class; i++) {
        struct seq_class *c = &s->class[i];
        int need = s->n_row - p->class[i].window + 1, n = 0;
        if (!p->class[i].window || need <= c->first_row)
            continue;
        n = (need - c->first_row) / p->o.page_rows;
        n = n > c->n_page ? c->n_page : n;
        for (int j = 0; j < n; j++)
            counted_drop(&p->class[i].page, c->page[j]);
        memmove(c->page, c->page + n, (size_t)(c->n_page - n) * sizeof *c->page);
        c->n_page -= n;
        c->first_row += n * p->o.page_rows;
        c->valid_row = c->valid_row > c->first_row ? c->valid_row : c->first_row;
    }
}

static void drop_fresh(struct seq *s, struct open_step *o, int kept)
{
    struct state_pool *p = s->pool;
    for (int r = 0; r < p->n_rec; r++)
        for (int k = 0; k < rec_n_snap(p, r); k++)
            if (k != rec_n_snap(p, r) - 1 - kept)
                counted_drop(&p->rec[r], o->fresh[r * rec_max_snap(p) + k]);
}

/* Takes the snapshot after row n of the step; `back` rows before its last. */
static void keep_fresh(struct seq *s, struct open_step *o, int back)
{
    struct state_pool *p = s->pool;
    for (int r = 0; r < p->n_rec; r++) {
        if (s->rec[r] >= 0)
            counted_drop(&p->rec[r], s->rec[r]);
        s->rec[r] = o->fresh[r * rec_max_snap(p) + rec_n_snap(p, r) - 1 - back];
    }
    drop_fresh(s, o, back);
}

sinter_status seq_commit(struct seq *s, int n_row, sinter_error *err)
{
    struct state_pool *p = s->pool;
    if (!s->n_open)
        return FAIL(err, STATE, "commit without an open step");
    struct open_step o = s->open[0];
    if (n_row < 0 || n_row > o.n_row)
        return FAIL(err, STATE, "commit of %d rows, the step has %d", n_row, o.n_row);
    int back = o.n_row - n_row;
    for (int r = 0; n_row && r < p->n_rec; r++)
        if (back >= rec_n_snap(p, r))
            return FAIL(err, STATE,
                        "commit of %d of %d rows: recurrent layers kept the last %d only; commit 0 "
                        "and run the accepted rows again",
                        n_row, o.n_row, rec_n_snap(p, r));
    if (n_row)
        keep_fresh(s, &o, back);
    else
        drop_fresh(s, &o, -1);
    int n_drop = n_row < o.n_row ? s->n_open : 1;
    for (int i = 1; i < n_drop; i++)
        drop_fresh(s, &s->open[i], -1);
    s->n_row += n_row;
    if (n_drop == s->n_open) {
        s->n_open = 0;
        seq_release_from(s, s->n_row);
    } else {
        memmove(s->open, s->open + 1, sizeof s->open[0] * (STATE_MAX_OPEN - 1));
        s->open[STATE_MAX_OPEN - 1] = o; /* its array is used again */
        s->n_open--;
    }
    fall_off(s);
    return SINTER_OK;
}

struct kv_view seq_kv(const struct seq *s, int slot)
{
    const struct state_pool *p = s->pool;
    const struct slot_home *h = &p->slot[slot];
    const struct seq_class *c = &s->class[h->class];
    return (struct kv_view){.base = h->base,
                            .page_bytes = h->each,
                            .v_offset = h->v_offset,
                            .page = c->page,
                            .first_row = c->first_row,
                            .page_rows = p->o.page_rows,
                            .n_head_kv = h->slot.n_head_kv,
                            .d_k = h->slot.d_k,
                            .d_v = h->slot.d_v,
                            .type_k = p->o.type_k,
                            .type_v = p->o.type_v};
}

/* The state before the youngest open step: the last snapshot of the step before it that has rows.
 */
const float *seq_rec_read(const struct seq *s, int slot)
{
    const struct state_pool *p = s->pool;
    const struct slot_home *h = &p->slot[slot];
    int r = h->class, before = s->n_open - 2;
    while (before >= 0 && !s->open[before].n_row)
        before--;
    int id =
        before < 0 ? s->rec[r] : s->open[before].fresh[r * rec_max_snap(p) + rec_n_snap(p, r) - 1];
    return id < 0 ? NULL : (const float *)(const void *)(h->base + (size_t)id * h->each);
}

float *seq_rec_write(const struct seq *s, int slot, int snap)
{
    const struct state_pool *p = s->pool;
    const struct slot_home *h = &p->slot[slot];
    int id = s->open[s->n_open - 1].fresh[h->class * rec_max_snap(p) + snap];
    return (float *)(void *)(h->base + (size_t)id * h->each);
}
