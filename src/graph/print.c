/* Text of a graph: one line a node, in the graph's order. */
#include "graph/shape.h"

#include <inttypes.h>

static void print_attr(const struct node *n, struct text_buf *b)
{
    const struct op_row *row = op_row(n->op);
    for (int a = 0; a < row->n_attr; a++) {
        float f;
        __builtin_memcpy(&f, &n->at.word[a], sizeof f);
        if (row->attr[a].type == 'F')
            text_buf_printf(b, " %s=%g", row->attr[a].name, (double)f);
        else
            text_buf_printf(b, " %s=%" PRId32, row->attr[a].name, n->at.word[a]);
    }
}

static void print_ports(const struct value *v, struct text_buf *b)
{
    static const struct {
        unsigned port;
        const char *name;
    } ports[] = {{PORT_LOGITS, "logits"}, {PORT_ARGMAX, "argmax"}, {PORT_HIDDEN, "hidden"}};
    for (size_t p = 0; p < sizeof ports / sizeof ports[0]; p++)
        if (v->port & ports[p].port)
            text_buf_printf(b, " port=%s", ports[p].name);
}

void graph_print(const struct graph *g, struct text_buf *b)
{
    char shape[64];
    text_buf_printf(b, "graph %s: %d nodes, %d values, %d weights, %d slots\n", g->name, g->n_node,
                    g->n_value, g->n_weight, g->n_slot);
    for (int k = 0; k < g->n_node; k++) {
        const struct node *n = &g->node[k];
        const struct value *y = &g->value[n->out[0]];
        text_buf_printf(b, "%4d %-24s %-12s %-16s", k, y->name, op_row(n->op)->name,
                        shape_text(y->shape, shape, sizeof shape));
        for (int i = 0; i < n->n_in; i++) {
            const struct value *x = &g->value[n->in[i]];
            text_buf_printf(b, " %s", x->name);
            if (x->kind == VALUE_WEIGHT)
                text_buf_printf(b, "%s", shape_text(x->shape, shape, sizeof shape));
        }
        print_attr(n, b);
        for (int o = 0; o < n->n_out; o++)
            print_ports(&g->value[n->out[o]], b);
        text_buf_printf(b, "\n");
    }
}
