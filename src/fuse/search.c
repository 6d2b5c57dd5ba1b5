/* The search: one variant from one anchor, over edges only. Candidates for the next node are the
 * readers of a value that is bound already, so there is no position to be absolute or relative;
 * operands of commuting ops are tried both ways. Repetitions of one node ascend, so that a set of
 * siblings is found once. */
#include "fuse/match.h"

#include <string.h>

static bool is_member(const struct group *g, int n, int node)
{
    for (int i = 0; i < n; i++)
        if (g->node[i] == node)
            return true;
    return false;
}

/* Binds the variant's node j to the graph's node k; false: an operand is another value. */
static bool bind(struct trial *t, int j, int k, bool swap)
{
    struct group *g = &t->group;
    const struct fuse_var_node *vn = &g->variant->node[j];
    const struct node *n = &t->m->graph->node[k];
    for (int i = 0; i < vn->n_in; i++) {
        int *bound = &g->value[vn->in[i]];
        int value = i >= n->n_in ? -1 : n->in[swap && i < 2 ? 1 - i : i];
        if (*bound >= 0 && *bound != value)
            return false;
        *bound = value;
    }
    for (int o = 0; o < vn->n_out; o++)
        g->value[vn->out[o]] = n->out[o];
    g->node[j] = k;
    g->n_node = j + 1;
    return true;
}

/* Has the node the operands that the variant names, and no others? */
static bool arity_fits(const struct trial *t, const struct fuse_var_node *vn, const struct node *n)
{
    bool single = t->group.variant->id >= t->m->table->n_single;
    return n->op == vn->op && (single ? n->n_in <= vn->n_in : n->n_in == vn->n_in);
}

/* No input may be made by a member, and no inner value may leave. */
static bool is_closed(struct trial *t)
{
    const struct group *g = &t->group;
    const struct graph *graph = t->m->graph;
    for (int s = 0; s < g->variant->n_slot; s++) {
        const struct fuse_slot *slot = &g->variant->slot[s];
        if (g->value[s] < 0)
            continue;
        const struct value *v = &graph->value[g->value[s]];
        if (slot->input) {
            if (v->node >= 0 && is_member(g, g->n_node, v->node))
                return false;
            continue;
        }
        if (!slot->inner || slot->leaves)
            continue;
        bool leaks = v->port != 0;
        for (int r = 0; r < v->n_reader && !leaks; r++)
            leaks = !is_member(g, g->n_node, v->reader[r]);
        if (leaks) {
            t->leak = g->value[s];
            return false;
        }
    }
    return true;
}

/* Of the values that node j reads and that are bound, the one with the fewest readers. */
static int rarest_value(const struct trial *t, int j)
{
    const struct group *g = &t->group;
    const struct fuse_var_node *vn = &g->variant->node[j];
    int best = -1;
    for (int i = 0; i < vn->n_in; i++) {
        int v = g->value[vn->in[i]];
        if (v >= 0 &&
            (best < 0 || t->m->graph->value[v].n_reader < t->m->graph->value[best].n_reader))
            best = v;
    }
    return best;
}

static bool search(struct trial *t, int j);

static bool try_node(struct trial *t, int j, int k)
{
    const struct fuse_variant *v = t->group.variant;
    const struct fuse_var_node *vn = &v->node[j];
    const struct node *n = &t->m->graph->node[k];
    if (!arity_fits(t, vn, n) || is_member(&t->group, j, k) ||
        (t->free_only && t->m->group_of[k] >= 0))
        return false;
    if (vn->rep > 0 && v->row->node[vn->row_node].repeat[1] && k < t->group.node[j - 1])
        return false;
    bool commutes = op_row(n->op)->commutes && n->in[0] != n->in[1];
    int saved[FUSE_MAX_SLOT];
    memcpy(saved, t->group.value, sizeof saved);
    for (int swap = 0; swap <= commutes; swap++) {
        if (bind(t, j, k, swap) && search(t, j + 1))
            return true;
        memcpy(t->group.value, saved, sizeof saved);
        t->group.n_node = j;
    }
    return false;
}

static bool search(struct trial *t, int j)
{
    const struct fuse_variant *v = t->group.variant;
    if (j > t->deepest) {
        t->deepest = j;
        t->broke_at = t->group.node[j - 1];
    }
    if (j == v->n_node)
        return is_closed(t) && t->accept(t);
    int value = rarest_value(t, j);
    for (int r = 0; value >= 0 && r < t->m->graph->value[value].n_reader; r++)
        if (try_node(t, j, t->m->graph->value[value].reader[r]))
            return true;
    return false;
}

bool trial_run(struct trial *t, const struct matcher *m, const struct fuse_variant *v, int anchor,
               bool free_only, bool (*accept)(struct trial *t), void *ctx)
{
    t->m = m;
    t->group.variant = v;
    t->group.line = NULL;
    t->group.id = -1;
    t->group.n_node = t->group.n_out = t->group.n_in = 0;
    t->free_only = free_only;
    t->accept = accept;
    t->ctx = ctx;
    t->deepest = 0;
    t->broke_at = -1;
    t->leak = -1;
    for (int s = 0; s < FUSE_MAX_SLOT; s++)
        t->group.value[s] = -1;
    return try_node(t, 0, anchor);
}
