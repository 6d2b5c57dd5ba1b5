/* What a group's names are bound to. */
#include "fuse/internal.h"

static int slot_of(const struct group *g, int name, int rep, bool first)
{
    const struct fuse_variant *v = g->variant;
    int found = -1;
    for (int s = 0; s < v->n_slot; s++) {
        if (v->slot[s].name != (name & ~FUSE_EACH) || v->slot[s].rep != rep)
            continue;
        found = s;
        if (first)
            break;
    }
    return found;
}

int group_value(const struct group *g, int name, int rep)
{
    int s = slot_of(g, name, rep, false);
    return s < 0 ? -1 : g->value[s];
}

int group_value_first(const struct group *g, int name, int rep)
{
    int s = slot_of(g, name, rep, true);
    return s < 0 ? -1 : g->value[s];
}

int group_n_rep(const struct group *g, int name)
{
    int n = 1;
    for (int s = 0; s < g->variant->n_slot; s++)
        if (g->variant->slot[s].name == (name & ~FUSE_EACH) && g->variant->slot[s].rep >= n)
            n = g->variant->slot[s].rep + 1;
    return n;
}

const struct node *group_node(const struct graph *graph, const struct group *g, enum op op)
{
    for (int i = 0; i < g->n_node; i++)
        if (graph->node[g->node[i]].op == op)
            return &graph->node[g->node[i]];
    return NULL;
}
