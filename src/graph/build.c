/* The builder: values and nodes are appended; the first error sticks and turns every later call
 * into -1, so callers need no tests. */
#include "graph/shape.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

sinter_status graph_create(sinter_host *host, const char *name, struct graph **out,
                           sinter_error *err)
{
    struct graph *g;
    *out = NULL;
    NEW(host, g, 1, err);
    arena_init(&g->arena, host);
    g->layer = -1;
    g->name = arena_strndup(&g->arena, name, strlen(name));
    if (!g->name) {
        graph_free(g);
        return FAIL(err, MEMORY, "graph %s: no memory for its name", name);
    }
    *out = g;
    return SINTER_OK;
}

void graph_free(struct graph *g)
{
    if (!g)
        return;
    sinter_host *host = g->arena.host;
    arena_free(&g->arena);
    host_free(host, g);
}

void graph_fail(struct graph *g, sinter_status status, const char *fmt, ...)
{
    char text[sizeof g->error.message - 128];
    va_list ap;
    if (g->error.status != SINTER_OK)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    status_fail(&g->error, status, "graph %.100s: %s", g->name, text);
}

/* Room for one more element; the old block stays in the arena. */
static bool grow(struct graph *g, void **block, int *cap, int n, size_t each)
{
    if (n < *cap)
        return true;
    int more = *cap ? *cap * 2 : 32;
    void *p = arena_alloc_n(&g->arena, (size_t)more, each);
    if (!p) {
        graph_fail(g, SINTER_E_MEMORY, "no memory for %d elements of %zu bytes", more, each);
        return false;
    }
    if (n)
        memcpy(p, *block, (size_t)n * each);
    *block = p;
    *cap = more;
    return true;
}

static int value_add(struct graph *g, const char *name, struct value v)
{
    if (!grow(g, (void **)&g->value, &g->cap_value, g->n_value, sizeof *g->value))
        return -1;
    v.name = arena_strndup(&g->arena, name, strlen(name));
    if (!v.name) {
        graph_fail(g, SINTER_E_MEMORY, "no memory for the name of value %s", name);
        return -1;
    }
    g->value[g->n_value] = v;
    return g->n_value++;
}

int graph_input(struct graph *g, enum port port)
{
    const char *name = port == PORT_IDS ? "ids" : port == PORT_POS ? "pos" : "out_rows";
    if (g->error.status != SINTER_OK)
        return -1;
    if (port != PORT_IDS && port != PORT_POS && port != PORT_OUT_ROWS) {
        graph_fail(g, SINTER_E_INTERNAL, "port %u is no input", (unsigned)port);
        return -1;
    }
    for (int i = 0; i < g->n_value; i++)
        if (g->value[i].port & port) {
            graph_fail(g, SINTER_E_INTERNAL, "input %s is made twice", name);
            return -1;
        }
    enum axis axis = port == PORT_OUT_ROWS ? AXIS_OUT : AXIS_TOK;
    return value_add(
        g, name,
        (struct value){
            .kind = VALUE_IDS, .shape = {axis, 1, 1, 1}, .node = -1, .index = -1, .port = port});
}

static bool slice_equal(struct weight_slice a, struct weight_slice b)
{
    return a.tensor == b.tensor && a.row0 == b.row0 && a.n_row == b.n_row && a.period == b.period &&
           a.n_block == b.n_block && a.n_mat == b.n_mat && a.col0 == b.col0 && a.n_col == b.n_col;
}

static const char *slice_wrong(struct weight_slice s, int32_t n_row, int32_t n_col)
{
    if (s.row0 < 0 || s.n_row < 1 || s.n_block < 1 || s.n_mat < 1 || n_col < 1)
        return "counts must be > 0";
    if (s.n_block > 1 && s.period < s.n_row)
        return "blocks overlap";
    if ((int64_t)s.n_row * s.n_block != n_row)
        return "n_row must be slice.n_row * slice.n_block";
    if (s.col0 < 0 || s.n_col < 0 || (s.n_col ? s.n_col != n_col : s.col0 != 0))
        return "n_col must be slice.n_col";
    return NULL;
}

int graph_weight(struct graph *g, const char *name, struct weight_slice slice, enum quant_type type,
                 int32_t n_row, int32_t n_col)
{
    if (g->error.status != SINTER_OK)
        return -1;
    const char *why = slice_wrong(slice, n_row, n_col);
    if (why || (unsigned)type >= QUANT_N) {
        graph_fail(g, SINTER_E_INTERNAL, "weight %s: %s", name, why ? why : "no such type");
        return -1;
    }
    for (int i = 0; i < g->n_value; i++) {
        const struct value *v = &g->value[i];
        if (v->kind != VALUE_WEIGHT || !slice_equal(g->weight[v->index].slice, slice))
            continue;
        if (g->weight[v->index].type == type && v->shape.d == n_col)
            return i;
        graph_fail(g, SINTER_E_INTERNAL, "weight %s is used with two types or widths", name);
        return -1;
    }
    if (!grow(g, (void **)&g->weight, &g->cap_weight, g->n_weight, sizeof *g->weight))
        return -1;
    int v = value_add(g, name,
                      (struct value){.kind = VALUE_WEIGHT,
                                     .shape = {AXIS_ONE, n_row, 1, n_col},
                                     .node = -1,
                                     .index = g->n_weight});
    if (v < 0)
        return -1;
    g->weight[g->n_weight++] = (struct graph_weight){slice, type, g->value[v].name};
    return v;
}

static bool slot_ok(const struct state_slot *s)
{
    if (s->kind == SLOT_KV)
        return s->n_head_kv > 0 && s->d_k > 0 && s->d_v > 0 && s->window >= 0 &&
               s->d_k <= INT32_MAX - s->d_v;
    return s->kind == SLOT_REC && s->n_row > 0 && s->d > 0 && s->n_snap > 0;
}

int graph_slot(struct graph *g, const char *name, struct state_slot slot)
{
    if (g->error.status != SINTER_OK)
        return -1;
    if (!slot_ok(&slot)) {
        graph_fail(g, SINTER_E_INTERNAL, "slot %s: sizes must be > 0, the window >= 0", name);
        return -1;
    }
    int cap = g->cap_slot;
    if (!grow(g, (void **)&g->slot, &g->cap_slot, g->n_slot, sizeof *g->slot) ||
        !grow(g, (void **)&g->slot_last, &cap, g->n_slot, sizeof *g->slot_last))
        return -1;
    struct shape shape = slot.kind == SLOT_KV
                             ? (struct shape){AXIS_SEQ, 1, slot.n_head_kv, slot.d_k + slot.d_v}
                             : (struct shape){AXIS_SEQ, 1, slot.n_row, slot.d};
    int v = value_add(
        g, name,
        (struct value){.kind = VALUE_STATE, .shape = shape, .node = -1, .index = g->n_slot});
    if (v < 0)
        return -1;
    g->slot[g->n_slot] = slot;
    g->slot_last[g->n_slot++] = v;
    return v;
}

/* Copies the operands without absent ones at the end; false: an error sticks or was recorded. */
static bool operands(struct graph *g, const char *name, struct node *n, int n_in, const int *in)
{
    const struct op_row *row = op_row(n->op);
    if (!row || n_in > OP_MAX_IN) {
        graph_fail(g, SINTER_E_INTERNAL, "node %s: op %d with %d operands", name, (int)n->op, n_in);
        return false;
    }
    while (n_in > row->n_in_min && in[n_in - 1] < 0)
        n_in--;
    for (int i = 0; i < OP_MAX_IN; i++)
        n->in[i] = i < n_in ? in[i] : -1;
    n->n_in = n_in;
    for (int i = 0; i < n_in; i++)
        if (in[i] < 0) {
            graph_fail(g, SINTER_E_INTERNAL, "node %s: operand %d of %s is missing", name, i,
                       row->name);
            return false;
        }
    return true;
}

/* A state op takes the last version of its slot and makes the next one. */
static bool state_next(struct graph *g, const char *name, const struct node *n)
{
    const struct value *s = &g->value[n->in[0]];
    int last = g->slot_last[s->index];
    if (n->in[0] == last)
        return true;
    graph_fail(g, SINTER_E_INTERNAL,
               "node %s replaces version %d of %s, but %s (version %d) is the last", name,
               s->version, s->name, g->value[last].name, g->value[last].version);
    return false;
}

static int outputs(struct graph *g, const char *name, struct node *n, const struct shape *shape)
{
    const struct op_row *row = op_row(n->op);
    for (int o = 0; o < OP_MAX_OUT; o++)
        n->out[o] = -1;
    for (int o = 0; o < row->n_out; o++) {
        struct value v = {.kind = shape_out_kind(row->out[o]),
                          .shape = shape[o],
                          .node = g->n_node,
                          .out = o,
                          .index = -1};
        if (v.kind == VALUE_STATE) {
            v.index = g->value[n->in[0]].index;
            v.version = g->value[n->in[0]].version + 1;
        }
        char second[256];
        if (o) /* names stay unique */
            snprintf(second, sizeof second, "%.240s:%d", name, o);
        n->out[o] = value_add(g, o ? second : name, v);
        if (n->out[o] < 0)
            return -1;
    }
    n->n_out = row->n_out;
    return n->out[0];
}

int graph_add(struct graph *g, const char *name, enum op op, union attr at, int n_in, const int *in)
{
    struct node n = {.op = op, .at = at, .layer = g->layer};
    struct shape shape[OP_MAX_OUT];
    sinter_error e = {0};
    if (g->error.status != SINTER_OK || !operands(g, name, &n, n_in, in))
        return -1;
    if (shape_infer(g, &n, shape, &e) != SINTER_OK) {
        graph_fail(g, e.status, "node %s: %s", name, e.message);
        return -1;
    }
    if (op_row(op)->state && !state_next(g, name, &n))
        return -1;
    if (!grow(g, (void **)&g->node, &g->cap_node, g->n_node, sizeof *g->node) ||
        outputs(g, name, &n, shape) < 0)
        return -1;
    if (op_row(op)->state)
        g->slot_last[g->value[n.in[0]].index] = n.out[0];
    g->node[g->n_node++] = n;
    return n.out[0];
}

int graph_out(const struct graph *g, int value, int out)
{
    if (value < 0 || value >= g->n_value || g->value[value].node < 0)
        return -1;
    const struct node *n = &g->node[g->value[value].node];
    return out >= 0 && out < n->n_out ? n->out[out] : -1;
}

void graph_port(struct graph *g, int value, enum port port)
{
    static const struct {
        enum port port;
        enum value_kind kind;
        const char *name;
    } out[] = {
        {PORT_LOGITS, VALUE_ACT, "logits"},
        {PORT_ARGMAX, VALUE_IDS, "argmax"},
        {PORT_HIDDEN, VALUE_ACT, "hidden"},
    };
    if (g->error.status != SINTER_OK)
        return;
    for (size_t p = 0; p < sizeof out / sizeof out[0]; p++) {
        if (out[p].port != port)
            continue;
        if (value < 0 || g->value[value].node < 0 || g->value[value].kind != out[p].kind) {
            graph_fail(g, SINTER_E_INTERNAL, "port %s: the value is missing or of another kind",
                       out[p].name);
            return;
        }
        for (int i = 0; i < g->n_value; i++)
            if (g->value[i].port & port) {
                graph_fail(g, SINTER_E_INTERNAL, "port %s is given twice", out[p].name);
                return;
            }
        g->value[value].port |= port;
        return;
    }
    graph_fail(g, SINTER_E_INTERNAL, "port %u is no output", (unsigned)port);
}
