/* The graph: nodes in SSA form over values, built once per variant by the model module.
 *
 * A value is [rows, n_head, d]: rows = (TOK tokens of the step | OUT rows wanted | SEQ sequences |
 * ONE) x mult; n_head and d are static. State is a value too: KV_WRITE and STATE_WRITE give the
 * slot's next version; versions of a slot form a chain, and readers of a version come before the
 * node that replaces it. Last versions are roots, as output ports are.
 *
 * The first builder error sticks in the graph: graph_add takes and gives -1, so block builders
 * read like formulas and graph_finish reports. Weights are slices of the file's tensors. */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "base/arena.h"
#include "base/text_buf.h"
#include "quant/quant.h"

enum op {
    OP_NONE,
#define OP(name, class, in, out, shape, flags, attr) OP_##name,
#include "graph/ops.def"
#undef OP
    OP_N
};

/* Typed attributes: node->at.RMS_NORM.eps. */
/* clang-format off */
union attr {
#define I(name) int32_t name;
#define F(name) float name;
#define OP(name, class, in, out, shape, flags, attr) struct { attr } name;
#include "graph/ops.def"
#undef OP
#undef I
#undef F
    int32_t word[4]; /* the same bytes, for copies and comparisons; unused ones are zero */
};
/* clang-format on */

#define ATTR_NONE ((union attr){.word = {0}})

enum { OP_MAX_IN = 4, OP_MAX_OUT = 2 };

struct op_attr {
    const char *name;
    char type; /* I or F */
};
struct op_row {
    const char *name, *in, *out; /* letters; a '?' at the end of in: the last may be absent */
    int n_in, n_in_min, n_out;
    bool state, commutes;
    const char *shape; /* its rule's name */
    int n_attr;
    struct op_attr attr[4];
};
const struct op_row *op_row(enum op op); /* OP_NONE gives NULL */
enum op op_from_name(const char *name);  /* OP_NONE: no such op */

enum axis { AXIS_TOK, AXIS_OUT, AXIS_SEQ, AXIS_ONE };

enum value_kind { VALUE_ACT, VALUE_IDS, VALUE_TABLE, VALUE_SCORE, VALUE_STATE, VALUE_WEIGHT };

struct shape {
    enum axis axis;
    int32_t mult;   /* rows = axis x mult; >= 1 */
    int32_t n_head; /* 1 if there is none */
    int32_t d;
};

/* Ports: what a step brings and what it may ask for. */
enum port {
    PORT_IDS = 1,      /* in, ids [TOK]: token ids */
    PORT_POS = 2,      /* in, ids [TOK]: RoPE positions */
    PORT_OUT_ROWS = 4, /* in, ids [OUT]: which rows of TOK are wanted */
    PORT_LOGITS = 8,   /* out, [OUT, 1, n_vocab] */
    PORT_ARGMAX = 16,  /* out, ids [OUT] */
    PORT_HIDDEN = 32,  /* out, [OUT, 1, d] after the last norm */
    PORT_INS = PORT_IDS | PORT_POS | PORT_OUT_ROWS,
    PORT_LAST = PORT_HIDDEN
};

/* Rows of a tensor: n_block blocks of n_row rows, the first at row0, `period` apart; so a fused
 * qkv, [gate, up] or [q|gate] per head are slices. n_mat matrices (experts) lie one after another,
 * each of tensor_row rows. One home is made per distinct slice. */
struct weight_slice {
    int tensor; /* index in the model's tensor list */
    int32_t row0, n_row, period, n_block;
    int32_t n_mat;
    int32_t col0, n_col; /* a piece of a vector (fused biases); n_col = 0: whole rows */
};

struct graph_weight {
    struct weight_slice slice;
    enum quant_type type;
    const char *name; /* the tensor's, with [row0:…] if sliced */
};

enum slot_kind { SLOT_KV, SLOT_REC };
struct state_slot {
    enum slot_kind kind;
    int32_t layer;
    int32_t n_head_kv, d_k, d_v; /* KV; K is [row, n_head_kv, d_k] */
    int32_t window;              /* KV: 0 = all rows are kept */
    int32_t n_row, d, n_snap;    /* REC: floats [n_row, d], kept after the last n_snap rows */
};

struct value {
    const char *name; /* "blk.3.attn_norm"; unique */
    enum value_kind kind;
    struct shape shape;
    int node, out; /* maker and its output number; node -1: input of the graph */
    int index;     /* WEIGHT: in weight[]; STATE: in slot[] */
    int version;   /* STATE */
    unsigned port; /* bits of enum port */
    int n_reader;
    const int *reader; /* nodes, ascending; set by graph_finish and graph_live */
};

struct node {
    enum op op;
    union attr at;
    int n_in, n_out;
    int in[OP_MAX_IN]; /* values; -1: absent */
    int out[OP_MAX_OUT];
    int layer; /* -1: none; for reports */
};

struct graph {
    struct arena arena;
    const char *name;
    int n_value, n_node, n_weight, n_slot;
    struct value *value;
    struct node *node;
    struct graph_weight *weight;
    struct state_slot *slot;
    int *slot_last; /* [n_slot]: last version's value */
    int layer;      /* given to nodes that are added now */
    int cap_value, cap_node, cap_weight, cap_slot;
    sinter_error error; /* first builder error */
};

CHECKED sinter_status graph_create(sinter_host *host, const char *name, struct graph **out,
                                   sinter_error *err);
void graph_free(struct graph *g);

/* Inputs. Each gives a value, or -1 once an error sticks. Names are copied.
 * A weight is [ONE x n_row, 1, n_col]; n_row = slice.n_row * slice.n_block, rows of one matrix;
 * the same slice gives the same value again. A vector is a weight of one row.
 * A slot's shape is only for reports: [SEQ, n_head_kv, d_k + d_v] or [SEQ, n_row, d]. */
int graph_input(struct graph *g, enum port port);
int graph_weight(struct graph *g, const char *name, struct weight_slice slice, enum quant_type type,
                 int32_t n_row, int32_t n_col);
int graph_slot(struct graph *g, const char *name, struct state_slot slot);

/* Adds a node and gives its output 0 (output o is graph_out(g, value, o)). in: n_in values, -1 for
 * an absent optional one (the last operand; n_in of the node is then smaller). Any other -1 gives
 * -1. */
int graph_add(struct graph *g, const char *name, enum op op, union attr at, int n_in,
              const int *in);
int graph_out(const struct graph *g, int value, int out);
void graph_port(struct graph *g, int value, enum port port); /* marks an output port */
/* Records an error of the builder itself. */
void graph_fail(struct graph *g, sinter_status status, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The first error; else readers are set and the validator has passed: SSA, kinds and roles, shapes,
 * unique names, state chains, the order of nodes legal under the one edge rule, scores only between
 * QK, SOFTMAX and PV (one reader each, one state version), no dead node, no unread input. */
CHECKED sinter_status graph_finish(struct graph *g, sinter_error *err);

/* The live graph of a plan key: nodes that reach a port in `ports` or a last state version. With
 * all_rows SELECT_ROWS and SELECT_TABLE are dropped and AXIS_OUT becomes AXIS_TOK. Weight and slot
 * indices stay those of g. */
CHECKED sinter_status graph_live(const struct graph *g, unsigned ports, bool all_rows,
                                 struct graph **out, sinter_error *err);

/* Operand letter of node's operand i ('X', 'w', …). */
char graph_role(const struct node *n, int i);
/* Is the graph's order (or `order`, n_node long) legal under data and state edges? */
bool graph_order_ok(const struct graph *g, const int *order);
/* Edges of the one rule: predecessors of a node, each once: makers of its operands, and, for a node
 * that replaces a state version, that version's other readers. Returns the count, writes <= cap. */
int graph_preds(const struct graph *g, int node, int *pred, int cap);

void graph_print(const struct graph *g, struct text_buf *b); /* one line a node */
bool shape_equal(struct shape a, struct shape b);

#endif
