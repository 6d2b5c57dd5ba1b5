/* After the groups are taken: what each variant of two or more nodes came to at each anchor. It
 * searches once more, without regard to what is taken, and keeps the best outcome. Subsets of a
 * group of the same row are no news and count as nothing. */
#include "fuse/match.h"

#include <string.h>

/* Outcomes of a whole candidate, best first. */
enum outcome { IS_TAKEN, IS_SUBSET, IS_LOST, IS_CYCLE, IS_BANNED, IS_NEED, IS_NO_LINE, IS_NONE };

struct verdict {
    enum outcome outcome;
    struct group group; /* of the best outcome */
    int winner, at;     /* of IS_LOST */
};

const char *fuse_why_name(enum fuse_why why)
{
    static const char *const name[] = {
        [FUSE_TAKEN] = "taken", [FUSE_BROKE] = "broke",       [FUSE_LEAKS] = "leaks",
        [FUSE_NEED] = "need",   [FUSE_DISABLED] = "disabled", [FUSE_LOST] = "lost",
        [FUSE_CYCLE] = "cycle", [FUSE_BANNED] = "banned",     [FUSE_NO_LINE] = "no_line"};
    return name[why];
}

static bool is_of(const struct fuse_table *t, int l, const struct fuse_variant *v)
{
    return t->variant[t->of_line[l].first].row == v->row;
}

/* Where the members are now. */
static enum outcome placed(const struct matcher *m, const struct group *g, int *winner, int *at)
{
    bool same = true, subset = true;
    for (int i = 0; i < g->n_node; i++) {
        const struct group *in = &m->result->group[m->group_of[g->node[i]]];
        same &= in->variant == g->variant && in->node[i] == g->node[i];
        subset &= in->variant->row == g->variant->row;
        if (in->n_node > 1 && in->variant->row != g->variant->row) {
            *winner = in->id;
            *at = g->node[i];
        }
    }
    return same ? IS_TAKEN : subset ? IS_SUBSET : *winner >= 0 ? IS_LOST : IS_CYCLE;
}

static bool judge(struct trial *t)
{
    struct verdict *best = t->ctx;
    const struct fuse_table *table = t->m->table;
    enum outcome outcome = IS_NO_LINE;
    int winner = -1, at = -1;
    for (int l = 0; l < table->list->n_line; l++) {
        if (!is_of(table, l, t->group.variant))
            continue;
        enum outcome now = IS_NEED;
        if (!match_need(t->m, &t->group, &table->list->line[l]))
            now = match_banned(t->m, &t->group, &table->list->line[l])
                      ? IS_BANNED
                      : placed(t->m, &t->group, &winner, &at);
        outcome = now < outcome ? now : outcome;
    }
    if (outcome < best->outcome)
        *best = (struct verdict){outcome, t->group, winner, at};
    return outcome == IS_TAKEN;
}

static sinter_status note_add(struct matcher *m, struct fuse_note note, sinter_error *err)
{
    struct fuse_result *r = m->result;
    if (r->n_note == m->cap_note) {
        int cap = m->cap_note ? m->cap_note * 2 : 256;
        struct fuse_note *more = arena_alloc_n(&r->arena, (size_t)cap, sizeof *more);
        if (!more)
            return FAIL(err, MEMORY, "graph %s: no memory for %d notes", m->graph->name, cap);
        if (r->n_note)
            memcpy(more, r->note, (size_t)r->n_note * sizeof *more);
        r->note = more;
        m->cap_note = cap;
    }
    r->note[r->n_note++] = note;
    return SINTER_OK;
}

/* One note per line that a need or a ban kept off. */
static sinter_status note_lines(struct matcher *m, const struct verdict *v, struct fuse_note note,
                                sinter_error *err)
{
    const struct fuse_table *t = m->table;
    for (int l = 0; l < t->list->n_line; l++) {
        if (!is_of(t, l, note.variant))
            continue;
        const struct need *failed = match_need(m, &v->group, &t->list->line[l]);
        note.line = &t->list->line[l];
        note.why = failed ? FUSE_NEED : FUSE_BANNED;
        note.need = failed ? *failed : (struct need){NEED_NONE, 0, 0, 0};
        TRY(note_add(m, note, err));
    }
    return SINTER_OK;
}

static sinter_status note_verdict(struct matcher *m, const struct trial *t, const struct verdict *v,
                                  int anchor, sinter_error *err)
{
    struct fuse_note note = {
        .variant = t->group.variant, .node = anchor, .at = -1, .winner = v->winner};
    switch (v->outcome) {
    case IS_SUBSET:
        return SINTER_OK;
    case IS_NEED:
    case IS_BANNED:
        if (!m->disabled[note.variant->id])
            return note_lines(m, v, note, err);
        break;
    case IS_TAKEN:
        note.why = FUSE_TAKEN;
        note.line = m->result->group[m->group_of[anchor]].line;
        break;
    case IS_LOST:
        note.why = FUSE_LOST;
        note.at = v->at;
        break;
    case IS_CYCLE:
        note.why = FUSE_CYCLE;
        break;
    case IS_NO_LINE:
        note.why = FUSE_NO_LINE;
        break;
    case IS_NONE:
        note.why = t->leak >= 0 ? FUSE_LEAKS : FUSE_BROKE;
        note.at = t->leak >= 0 ? t->leak : t->broke_at;
        break;
    }
    if (v->outcome != IS_NONE && m->disabled[note.variant->id])
        note.why = FUSE_DISABLED;
    return note_add(m, note, err);
}

static void count(struct matcher *m, const struct fuse_variant *v, enum outcome outcome)
{
    struct fuse_count *c = &m->result->count[v->id];
    if (m->disabled[v->id])
        return;
    c->lost += outcome == IS_LOST;
    c->refused += outcome == IS_NEED || outcome == IS_BANNED || outcome == IS_CYCLE;
}

sinter_status match_diagnose(struct matcher *m, bool notes, sinter_error *err)
{
    struct trial t;
    for (int k = 0; k < m->graph->n_node; k++)
        for (int i = 0; i < m->table->n_single; i++) {
            const struct fuse_variant *v = &m->table->variant[i];
            if (m->graph->node[k].op != v->node[0].op)
                continue;
            struct verdict best = {.outcome = IS_NONE, .winner = -1, .at = -1};
            trial_run(&t, m, v, k, false, judge, &best);
            count(m, v, best.outcome);
            /* inside a group of the same row, other ways to start are no news */
            const struct group *in = &m->result->group[m->group_of[k]];
            if (notes && (best.outcome != IS_NONE || in->variant->row != v->row))
                TRY(note_verdict(m, &t, &best, k, err));
        }
    return SINTER_OK;
}
