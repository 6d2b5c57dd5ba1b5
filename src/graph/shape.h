/* Inside the graph module: what a node does to kinds and shapes. */
#ifndef GRAPH_SHAPE_H
#define GRAPH_SHAPE_H

#include "graph/graph.h"

struct shape_case {
    const struct graph *graph;
    const struct op_row *row;
    enum op op;
    union attr at;
    int n_in;
    const struct value *in[OP_MAX_IN]; /* NULL: absent */
    struct shape out[OP_MAX_OUT];
};

/* Checks the number, kinds and shapes of n's operands and fills out_shape[n_out]. The message
 * names the op and the operand's value; the caller puts graph and node before it. */
CHECKED sinter_status shape_infer(const struct graph *g, const struct node *n,
                                  struct shape *out_shape, sinter_error *err);
/* The kind of a value behind an output letter. */
enum value_kind shape_out_kind(char letter);
/* "[TOK*2,9,64]", without rows' axis for a score's columns. */
const char *shape_axis_name(enum axis axis);
/* "[TOK*2,9,64]" into buf. */
const char *shape_text(struct shape s, char *buf, size_t bytes);

#endif
