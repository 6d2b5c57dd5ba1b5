/* Text and JSON of `sinter fusion list` and `sinter fusion explain`. */
#include "fuse/internal.h"

#include <string.h>

const char *fuse_share_name(enum share share)
{
    static const char *const name[] = {
        [SHARE_ONE] = "one", [SHARE_EACH] = "each", [SHARE_ROW] = "row",
        [SHARE_COL] = "col", [SHARE_HEAD] = "head", [SHARE_ANY] = "any"};
    return name[share];
}

static const char *bits_name(enum fuse_bits bits)
{
    return bits == BITS_SAME ? "same" : "own";
}

static void print_needs(const struct need *needs, const char *before, const char *between,
                        const char *quote, struct text_buf *b)
{
    int n = need_count(needs);
    for (int i = 0; i < n; i++) {
        text_buf_printf(b, "%s%s", i ? between : before, quote);
        need_print(&needs[i], b);
        text_buf_printf(b, "%s", quote);
    }
}

void fuse_line_print(const struct fuse_list *list, const struct fuse_line *line, struct text_buf *b)
{
    text_buf_printf(b, "line %d: %s bits, share %s", (int)(line - list->line) + 1,
                    bits_name(line->bits), fuse_share_name(line->share));
    if (line->writes_forms)
        text_buf_printf(b, ", writes forms");
    for (int k = 0; k < 2 && line->inplace[k][0]; k++)
        text_buf_printf(b, ", %c in place of %c", 'A' + line->inplace[k][0] % FUSE_EACH - 1,
                        'A' + line->inplace[k][1] % FUSE_EACH - 1);
    print_needs(line->need, ", needs ", " ", "", b);
}

/* ---- list ----------------------------------------------------------------------------------- */

static void list_line_json(const struct fuse_list *list, int l, bool first, struct text_buf *b)
{
    const struct fuse_line *line = &list->line[l];
    text_buf_printf(b, "%s{\"line\":%d,\"bits\":\"%s\",\"share\":\"%s\",\"needs\":[",
                    first ? "" : ",", l + 1, bits_name(line->bits), fuse_share_name(line->share));
    print_needs(line->need, "", ",", "\"", b);
    text_buf_printf(b, "]}");
}

static void list_row(const struct fuse_table *t, int first, int end, struct text_buf *b, bool json)
{
    const struct fuse_row *row = t->variant[first].row;
    int n_line = 0;
    text_buf_printf(b, json ? "%s{\"row\":\"%s\",\"labels\":[" : "%s%-16s",
                    json && first ? "," : "", row->name);
    for (int v = first; v < end; v++)
        text_buf_printf(b, json ? "%s\"%s\"" : "%s%s",
                        v == first ? ""
                        : json     ? ","
                                   : "  ",
                        t->variant[v].label);
    text_buf_printf(b, json ? "],\"needs\":[" : "\n");
    print_needs(row->need, json ? "" : "    needs ", json ? "," : " ", json ? "\"" : "", b);
    if (!json && need_count(row->need))
        text_buf_printf(b, "\n");
    text_buf_printf(b, json ? "],\"lines\":[" : "%s", "");
    for (int l = 0; l < t->list->n_line; l++) {
        if (t->of_line[l].first != first)
            continue;
        if (json) {
            list_line_json(t->list, l, n_line == 0, b);
        } else {
            text_buf_printf(b, "    ");
            fuse_line_print(t->list, &t->list->line[l], b);
            text_buf_printf(b, "\n");
        }
        n_line++;
    }
    if (json)
        text_buf_printf(b, "]}");
    else if (n_line == 0)
        text_buf_printf(b, "    no line: backend %s runs its nodes one by one\n", t->list->backend);
}

void fuse_list_print(const struct fuse_table *t, struct text_buf *b, bool json)
{
    if (json) {
        text_buf_printf(b, "{\"backend\":");
        text_buf_json(b, t->list->backend, strlen(t->list->backend));
        text_buf_printf(b, ",\"rows\":[");
    } else {
        text_buf_printf(b, "fusions of backend %s: %d labels\n", t->list->backend, t->n_single);
    }
    for (int v = 0; v < t->n_single;) {
        int end = v + 1;
        while (end < t->n_single && t->variant[end].row == t->variant[v].row)
            end++;
        list_row(t, v, end, b, json);
        v = end;
    }
    text_buf_printf(b, "%s", json ? "]}\n" : "");
}

/* ---- explain -------------------------------------------------------------------------------- */

static const char *node_name(const struct graph *g, int node)
{
    return g->value[g->node[node].out[0]].name;
}

/* The rest of a note's line, after its labels. */
static void note_text(const struct fuse_table *t, const struct graph *g,
                      const struct fuse_result *r, const struct fuse_note *n, struct text_buf *b)
{
    switch (n->why) {
    case FUSE_TAKEN:
        text_buf_printf(b, "taken");
        break;
    case FUSE_BROKE:
        if (n->at < 0)
            text_buf_printf(b, "no: its operands are not those of the row's first node");
        else
            text_buf_printf(b, "broke off after %s: nothing fits there", node_name(g, n->at));
        break;
    case FUSE_LEAKS:
        text_buf_printf(b, "no: %s is also read elsewhere", g->value[n->at].name);
        break;
    case FUSE_NEED:
        text_buf_printf(b, "no: line %d needs ", (int)(n->line - t->list->line) + 1);
        need_print(&n->need, b);
        break;
    case FUSE_DISABLED:
        text_buf_printf(b, "switched off");
        break;
    case FUSE_LOST:
        text_buf_printf(b, "lost %s to %s", node_name(g, n->at),
                        r->group[n->winner].variant->label);
        break;
    case FUSE_CYCLE:
        text_buf_printf(b, "no: another group lies between its members");
        break;
    case FUSE_BANNED:
        text_buf_printf(b, "no: line %d was refused for where its values lie",
                        (int)(n->line - t->list->line) + 1);
        break;
    case FUSE_NO_LINE:
        text_buf_printf(b, "fits, but backend %s has no line for it", t->list->backend);
        break;
    }
}

static bool note_alike(const struct fuse_note *a, const struct fuse_note *b)
{
    return a->variant->row == b->variant->row && a->node == b->node && a->why == b->why &&
           a->at == b->at && a->line == b->line && a->winner == b->winner &&
           (a->why == FUSE_BROKE || a->why == FUSE_LEAKS || a->why == FUSE_NO_LINE);
}

/* Notes of one row that say the same stand in one line. Returns the first note after. */
static int print_notes(const struct fuse_table *t, const struct graph *g,
                       const struct fuse_result *r, int i, bool here, struct text_buf *b)
{
    const struct fuse_note *n = &r->note[i];
    text_buf_printf(b, here ? "    %s" : "    broke off here: %s", n->variant->label);
    int end = i + 1;
    for (; end < r->n_note && note_alike(n, &r->note[end]); end++)
        text_buf_printf(b, ", %s", r->note[end].variant->label);
    if (here) {
        text_buf_printf(b, ": ");
        note_text(t, g, r, n, b);
    } else {
        text_buf_printf(b, " from %s", node_name(g, n->node));
    }
    text_buf_printf(b, "\n");
    return end;
}

static void explain_node(const struct fuse_table *t, const struct graph *g,
                         const struct fuse_result *r, int node, struct text_buf *b)
{
    const struct group *in = &r->group[r->group_of[node]];
    text_buf_printf(b, "%s %s: %s%s, ", node_name(g, node), op_row(g->node[node].op)->name,
                    in->n_node > 1 ? "in " : "alone", in->n_node > 1 ? in->variant->label : "");
    fuse_line_print(t->list, in->line, b);
    text_buf_printf(b, "\n");
    for (int i = 0; i < r->n_note;) {
        const struct fuse_note *n = &r->note[i];
        bool here = n->node == node;
        if (here || (n->why == FUSE_BROKE && n->at == node))
            i = print_notes(t, g, r, i, here, b);
        else if (n->why == FUSE_LOST && n->at == node) {
            text_buf_printf(b, "    wanted by %s from %s\n", n->variant->label,
                            node_name(g, n->node));
            i++;
        } else {
            i++;
        }
    }
}

static void json_name(struct text_buf *b, const char *key, const char *name)
{
    text_buf_printf(b, ",\"%s\":", key);
    text_buf_json(b, name, strlen(name));
}

static void note_json(const struct fuse_table *t, const struct graph *g,
                      const struct fuse_result *r, const struct fuse_note *n, struct text_buf *b)
{
    text_buf_printf(b, "{\"label\":\"%s\",\"why\":\"%s\"", n->variant->label,
                    fuse_why_name(n->why));
    if (n->line)
        text_buf_printf(b, ",\"line\":%d", (int)(n->line - t->list->line) + 1);
    if (n->why == FUSE_LEAKS)
        json_name(b, "at", g->value[n->at].name);
    else if (n->at >= 0)
        json_name(b, "at", node_name(g, n->at));
    if (n->why == FUSE_NEED) {
        text_buf_printf(b, ",\"need\":\"");
        need_print(&n->need, b);
        text_buf_printf(b, "\"");
    }
    if (n->why == FUSE_LOST)
        json_name(b, "winner", r->group[n->winner].variant->label);
    text_buf_printf(b, "}");
}

static void explain_json(const struct fuse_table *t, const struct graph *g,
                         const struct fuse_result *r, struct text_buf *b)
{
    text_buf_printf(b, "{\"graph\":");
    text_buf_json(b, g->name, strlen(g->name));
    text_buf_printf(b, ",\"nodes\":[");
    for (int k = 0; k < g->n_node; k++) {
        const struct group *in = &r->group[r->group_of[k]];
        text_buf_printf(b, "%s{\"name\":", k ? ",\n" : "\n");
        text_buf_json(b, node_name(g, k), strlen(node_name(g, k)));
        text_buf_printf(b, ",\"op\":\"%s\",\"group\":%d,\"label\":\"%s\",\"line\":%d,\"notes\":[",
                        op_row(g->node[k].op)->name, in->id, in->variant->label,
                        (int)(in->line - t->list->line) + 1);
        bool first = true;
        for (int i = 0; i < r->n_note; i++) {
            if (r->note[i].node != k)
                continue;
            text_buf_printf(b, "%s", first ? "" : ",");
            note_json(t, g, r, &r->note[i], b);
            first = false;
        }
        text_buf_printf(b, "]}");
    }
    text_buf_printf(b, "]}\n");
}

void fuse_explain_print(const struct fuse_table *t, const struct graph *graph,
                        const struct fuse_result *r, struct text_buf *b, bool json)
{
    if (json) {
        explain_json(t, graph, r, b);
        return;
    }
    for (int k = 0; k < graph->n_node; k++)
        explain_node(t, graph, r, k, b);
    for (int v = 0; v < t->n_single; v++)
        if (r->count[v].matched | r->count[v].refused | r->count[v].lost)
            text_buf_printf(b, "%-28s matched %d, refused %d, lost %d\n", t->variant[v].label,
                            (int)r->count[v].matched, (int)r->count[v].refused,
                            (int)r->count[v].lost);
}
