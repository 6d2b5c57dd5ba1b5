/* Shape rules: one function per rule of ops.def. A rule reads operands and attributes, writes the
 * shapes of the outputs, and says which operand is wrong and why. */
#include "graph/shape.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { SHAPE_TEXT = 64 };

bool shape_equal(struct shape a, struct shape b)
{
    return a.axis == b.axis && a.mult == b.mult && a.n_head == b.n_head && a.d == b.d;
}

const char *shape_axis_name(enum axis axis)
{
    switch (axis) {
    case AXIS_TOK:
        return "TOK";
    case AXIS_OUT:
        return "OUT";
    case AXIS_SEQ:
        return "SEQ";
    case AXIS_ONE:
        return "ONE";
    }
    return "?";
}

const char *shape_text(struct shape s, char *buf, size_t bytes)
{
    char mult[16] = "";
    if (s.mult != 1)
        snprintf(mult, sizeof mult, "*%" PRId32, s.mult);
    if (s.d)
        snprintf(buf, bytes, "[%s%s,%" PRId32 ",%" PRId32 "]", shape_axis_name(s.axis), mult,
                 s.n_head, s.d);
    else
        snprintf(buf, bytes, "[%s%s,%" PRId32 ",keys]", shape_axis_name(s.axis), mult, s.n_head);
    return buf;
}

static int64_t row_size(struct shape s)
{
    return (int64_t)s.n_head * s.d;
}

static bool same_rows(struct shape a, struct shape b)
{
    return a.axis == b.axis && a.mult == b.mult;
}

/* Operand i does not fit; `want` says what would. */
static sinter_status wrong(const struct shape_case *c, int i, const char *want, sinter_error *err)
{
    char is[SHAPE_TEXT], x[SHAPE_TEXT];
    return FAIL(err, DATA, "%s: operand %d (%s) is %s, but %s (operand 0 is %s)", c->row->name, i,
                c->in[i]->name, shape_text(c->in[i]->shape, is, sizeof is), want,
                shape_text(c->in[0]->shape, x, sizeof x));
}

static sinter_status wrong_attr(const struct shape_case *c, const char *name, double is,
                                const char *want, sinter_error *err)
{
    return FAIL(err, DATA, "%s: attribute %s is %g, but %s", c->row->name, name, is, want);
}

#define IN(i) (c->in[i]->shape)

/* Output = operand 0; eps must be a number >= 0 where the op has one. */
static sinter_status shape_same(struct shape_case *c, sinter_error *err)
{
    c->out[0] = IN(0);
    if (c->op == OP_RMS_NORM && !(c->at.RMS_NORM.eps >= 0 && isfinite(c->at.RMS_NORM.eps)))
        return wrong_attr(c, "eps", c->at.RMS_NORM.eps, "it must be finite and >= 0", err);
    if (c->op == OP_RMS_NORM && (c->at.RMS_NORM.whole & ~1))
        return wrong_attr(c, "whole", c->at.RMS_NORM.whole, "it must be 0 or 1", err);
    if (c->op == OP_SCALE && !isfinite(c->at.SCALE.factor))
        return wrong_attr(c, "factor", c->at.SCALE.factor, "it must be finite", err);
    return SINTER_OK;
}

/* Output = operand 0. Operand 1: rows as operand 0's, or one row (ONE x 1) for all rows; columns
 * the same, or the whole row as one head, or one head for all heads, or one number for the row. */
static sinter_status shape_bcast(struct shape_case *c, sinter_error *err)
{
    struct shape x = IN(0), v = IN(1);
    c->out[0] = x;
    if (!same_rows(x, v) && !(v.axis == AXIS_ONE && v.mult == 1))
        return wrong(c, 1, "it must have the rows of operand 0, or be one row for all", err);
    bool whole = (v.n_head == x.n_head && v.d == x.d) || (v.n_head == 1 && v.d == row_size(x));
    if (!whole && !(v.n_head == 1 && (v.d == x.d || v.d == 1)))
        return wrong(c, 1, "it must be a row of operand 0, one head for all, or one number", err);
    return SINTER_OK;
}

/* Are the ids of operand i a router's, which chose among at most n columns? Kernels index by them
 * and do not look. */
static bool ids_of_topk(const struct shape_case *c, int i, int32_t n)
{
    const struct node *maker = c->in[i]->node < 0 ? NULL : &c->graph->node[c->in[i]->node];
    return maker && maker->op == OP_TOPK && c->graph->value[maker->in[0]].shape.d <= n;
}

/* Row ids[r] of the matrix: [rows of ids, 1, columns of the matrix]. */
static sinter_status shape_embed(struct shape_case *c, sinter_error *err)
{
    if (c->graph->weight[c->in[0]->index].slice.n_mat != 1)
        return wrong(c, 0, "it must be one matrix", err);
    if (!(c->in[1]->port & PORT_IDS) && !ids_of_topk(c, 1, IN(0).mult))
        return wrong(c, 1, "it must be the token ids, or a TOPK's over no more rows", err);
    c->out[0] = (struct shape){IN(1).axis, IN(1).mult, 1, IN(0).d};
    return SINTER_OK;
}

/* OUT rows of a TOK value. */
static sinter_status shape_select(struct shape_case *c, sinter_error *err)
{
    if (IN(0).axis != AXIS_TOK || IN(0).mult != 1)
        return wrong(c, 0, "it must be one row per token", err);
    if (IN(1).axis != AXIS_OUT || IN(1).mult != 1)
        return wrong(c, 1, "it must be one id per OUT row", err);
    if (!(c->in[1]->port & PORT_OUT_ROWS)) /* other ids may be no rows of the step */
        return wrong(c, 1, "it must be the rows wanted", err);
    c->out[0] = IN(0);
    c->out[0].axis = AXIS_OUT;
    return SINTER_OK;
}

static sinter_status matrix(struct shape_case *c, int32_t n_head, bool one, sinter_error *err)
{
    struct shape w = IN(1);
    if (row_size(IN(0)) != w.d)
        return wrong(c, 1, "its columns must be the row (heads x d) of operand 0", err);
    if (one && c->graph->weight[c->in[1]->index].slice.n_mat != 1)
        return wrong(c, 1, "it must be one matrix", err);
    if (n_head < 1 || w.mult % n_head)
        return wrong_attr(c, "n_head", n_head, "it must divide the matrix's rows", err);
    return SINTER_OK;
}

/* [rows of x, n_head, rows of w / n_head]; a row of x is read as heads x d columns of w. */
static sinter_status shape_matmul(struct shape_case *c, sinter_error *err)
{
    int32_t n_head = c->at.MATMUL.n_head;
    TRY(matrix(c, n_head, true, err));
    c->out[0] = (struct shape){IN(0).axis, IN(0).mult, n_head, IN(1).mult / n_head};
    return SINTER_OK;
}

/* As matmul, on the rows of the ids; each row of x serves ids.mult / x.mult consecutive ids. */
static sinter_status shape_matmul_id(struct shape_case *c, sinter_error *err)
{
    int32_t n_head = c->at.MATMUL_ID.n_head;
    TRY(matrix(c, n_head, false, err));
    if (IN(2).axis != IN(0).axis || IN(2).mult % IN(0).mult)
        return wrong(c, 2, "it must have a whole number of ids per row of operand 0", err);
    if (!ids_of_topk(c, 2, c->graph->weight[c->in[1]->index].slice.n_mat))
        return wrong(c, 2, "it must be a TOPK's over no more columns than matrices", err);
    c->out[0] = (struct shape){IN(2).axis, IN(2).mult, n_head, IN(1).mult / n_head};
    return SINTER_OK;
}

/* ids and weights of the chosen: both [rows of x * n_used, 1, 1]. */
static sinter_status shape_topk(struct shape_case *c, sinter_error *err)
{
    int32_t k = c->at.TOPK.n_used;
    if (IN(0).n_head != 1)
        return wrong(c, 0, "it must have one head", err);
    if (k < 1 || k > IN(0).d)
        return wrong_attr(c, "n_used", k, "it must be 1..columns", err);
    if (c->at.TOPK.renorm & ~1)
        return wrong_attr(c, "renorm", c->at.TOPK.renorm, "it must be 0 or 1", err);
    if (IN(0).mult > INT32_MAX / k)
        return wrong(c, 0, "that is too many rows", err);
    c->out[0] = c->out[1] = (struct shape){IN(0).axis, IN(0).mult * k, 1, 1};
    return SINTER_OK;
}

/* k consecutive rows become one. */
static sinter_status shape_sum(struct shape_case *c, sinter_error *err)
{
    int32_t k = c->at.SUM.k;
    if (k < 1 || IN(0).mult % k)
        return wrong_attr(c, "k", k, "it must divide the rows per token", err);
    c->out[0] = IN(0);
    c->out[0].mult /= k;
    return SINTER_OK;
}

/* One row of n_rot numbers (cos and sin of n_rot / 2 angles) per position. */
static sinter_status shape_table(struct shape_case *c, sinter_error *err)
{
    int32_t n_rot = c->at.ROPE_TABLE.n_rot;
    double base = c->at.ROPE_TABLE.base, factor = c->at.ROPE_TABLE.factor;
    if (n_rot < 2 || n_rot % 2)
        return wrong_attr(c, "n_rot", n_rot, "it must be even and > 0", err);
    if (!(base > 0) || !isfinite(base))
        return wrong_attr(c, "base", base, "it must be finite and > 0", err);
    if (!(factor > 0) || !isfinite(factor))
        return wrong_attr(c, "factor", factor, "it must be finite and > 0", err);
    if (c->n_in > 1 && (IN(1).mult != 1 || IN(1).d != n_rot / 2))
        return wrong(c, 1, "it must be one row of n_rot / 2 factors", err);
    c->out[0] = (struct shape){IN(0).axis, IN(0).mult, 1, n_rot};
    return SINTER_OK;
}

static sinter_status shape_rope(struct shape_case *c, sinter_error *err)
{
    if (!same_rows(IN(0), IN(1)))
        return wrong(c, 1, "it must have the rows of operand 0", err);
    if (IN(1).d > IN(0).d)
        return wrong(c, 1, "it rotates more columns than a head of operand 0 has", err);
    if (c->at.ROPE.neox & ~1)
        return wrong_attr(c, "neox", c->at.ROPE.neox, "it must be 0 or 1", err);
    c->out[0] = IN(0);
    return SINTER_OK;
}

static const struct state_slot *slot_of(const struct shape_case *c, int i)
{
    return &c->graph->slot[c->in[i]->index];
}

static sinter_status need_slot(const struct shape_case *c, int i, enum slot_kind kind,
                               sinter_error *err)
{
    if (slot_of(c, i)->kind == kind)
        return SINTER_OK;
    return FAIL(err, DATA, "%s: operand %d (%s) is a slot of the other kind", c->row->name, i,
                c->in[i]->name);
}

/* KV_WRITE: K [TOK, n_head_kv, d_k] and V [TOK, n_head_kv, d_v]. STATE_WRITE: the snapshots
 * [SEQ * n_snap, n_row, d]. The next version has the state's shape. */
static sinter_status shape_state(struct shape_case *c, sinter_error *err)
{
    const struct state_slot *s = slot_of(c, 0);
    c->out[0] = IN(0);
    if (c->op == OP_KV_WRITE) {
        TRY(need_slot(c, 0, SLOT_KV, err));
        if (!shape_equal(IN(1), (struct shape){AXIS_TOK, 1, s->n_head_kv, s->d_k}))
            return wrong(c, 1, "the slot's K is [TOK, n_head_kv, d_k] of operand 0", err);
        if (!shape_equal(IN(2), (struct shape){AXIS_TOK, 1, s->n_head_kv, s->d_v}))
            return wrong(c, 2, "the slot's V is [TOK, n_head_kv, d_v] of operand 0", err);
        return SINTER_OK;
    }
    TRY(need_slot(c, 0, SLOT_REC, err));
    if (!shape_equal(IN(1), (struct shape){AXIS_SEQ, s->n_snap, s->n_row, s->d}))
        return wrong(c, 1, "the slot's snapshots are [SEQ * n_snap, n_row, d]", err);
    return SINTER_OK;
}

/* Scores [rows of x, n_head, keys]. */
static sinter_status shape_qk(struct shape_case *c, sinter_error *err)
{
    const struct state_slot *s = slot_of(c, 1);
    int32_t window = c->at.QK.window;
    TRY(need_slot(c, 1, SLOT_KV, err));
    if (c->in[1]->version == 0)
        return wrong(c, 1, "it lacks this step's rows, which are seen too: write them first", err);
    if (IN(0).n_head % s->n_head_kv || IN(0).d != s->d_k)
        return wrong(c, 0, "its heads must be a multiple of the slot's, of d_k columns", err);
    if (IN(0).mult != 1 || (IN(0).axis != AXIS_TOK && IN(0).axis != AXIS_OUT))
        return wrong(c, 0, "it must have one row per token", err);
    if (!isfinite(c->at.QK.scale))
        return wrong_attr(c, "scale", c->at.QK.scale, "it must be finite", err);
    if (!(c->at.QK.cap >= 0) || !isfinite(c->at.QK.cap))
        return wrong_attr(c, "cap", c->at.QK.cap, "it must be finite and >= 0", err);
    if (window < 0 || (s->window && (window == 0 || window > s->window)))
        return wrong_attr(c, "window", window, "the slot keeps fewer rows, or it is < 0", err);
    c->out[0] = (struct shape){IN(0).axis, 1, IN(0).n_head, 0};
    return SINTER_OK;
}

static sinter_status shape_softmax(struct shape_case *c, sinter_error *err)
{
    if (c->n_in < 2) {
        c->out[0] = IN(0);
        return SINTER_OK;
    }
    if (IN(1).axis != AXIS_ONE || IN(1).mult != 1 || row_size(IN(1)) != IN(0).n_head)
        return wrong(c, 1, "it must be one row with a number per head", err);
    c->out[0] = IN(0);
    return SINTER_OK;
}

/* [rows of the scores, n_head, d_v]. */
static sinter_status shape_pv(struct shape_case *c, sinter_error *err)
{
    const struct state_slot *s = slot_of(c, 1);
    TRY(need_slot(c, 1, SLOT_KV, err));
    if (IN(0).n_head % s->n_head_kv)
        return wrong(c, 0, "its heads must be a multiple of the slot's", err);
    c->out[0] = (struct shape){IN(0).axis, 1, IN(0).n_head, s->d_v};
    return SINTER_OK;
}

/* y as x, and the snapshots [SEQ * n_snap, n_kernel - 1, channels]. */
static sinter_status shape_conv1d(struct shape_case *c, sinter_error *err)
{
    const struct state_slot *s = slot_of(c, 2);
    TRY(need_slot(c, 2, SLOT_REC, err));
    if (c->in[2]->version != 0)
        return wrong(c, 2, "it must be the state as the last step left it", err);
    if (IN(0).axis != AXIS_TOK || IN(0).mult != 1)
        return wrong(c, 0, "it must have one row per token", err);
    if (IN(1).mult != row_size(IN(0)) || c->graph->weight[c->in[1]->index].slice.n_mat != 1)
        return wrong(c, 1, "it must have one row per channel of operand 0", err);
    if (s->n_row != IN(1).d - 1 || s->d != row_size(IN(0)))
        return wrong(c, 2, "the slot must hold n_kernel - 1 rows of operand 0", err);
    if (c->at.CONV1D.n_snap != s->n_snap)
        return wrong_attr(c, "n_snap", c->at.CONV1D.n_snap, "the slot keeps another number", err);
    c->out[0] = IN(0);
    c->out[1] = (struct shape){AXIS_SEQ, s->n_snap, s->n_row, s->d};
    return SINTER_OK;
}

/* One id per row. */
static sinter_status shape_argmax(struct shape_case *c, sinter_error *err)
{
    if (IN(0).n_head != 1)
        return wrong(c, 0, "it must have one head", err);
    c->out[0] = (struct shape){IN(0).axis, IN(0).mult, 1, 1};
    return SINTER_OK;
}

#define OP(name, class, in, out, shape, flags, attr) [OP_##name] = shape_##shape,
static sinter_status (*const rules[OP_N])(struct shape_case *c, sinter_error *err) = {
#include "graph/ops.def"
};
#undef OP

enum value_kind shape_out_kind(char letter)
{
    return letter == 't'   ? VALUE_TABLE
           : letter == 'i' ? VALUE_IDS
           : letter == 'c' ? VALUE_SCORE
           : letter == 's' ? VALUE_STATE
                           : VALUE_ACT;
}

/* Does a value of this kind fit an operand letter? Letters v take weights and activations. */
static bool role_takes(char letter, enum value_kind kind)
{
    if (letter == 'w' || letter == 'e' || letter == 'k')
        return kind == VALUE_WEIGHT;
    if (letter == 'v')
        return kind == VALUE_WEIGHT || kind == VALUE_ACT;
    return kind == shape_out_kind(letter);
}

sinter_status shape_infer(const struct graph *g, const struct node *n, struct shape *out_shape,
                          sinter_error *err)
{
    struct shape_case c = {.graph = g, .row = op_row(n->op), .op = n->op, .at = n->at};
    if (!c.row)
        return FAIL(err, INTERNAL, "op %d is not in ops.def", (int)n->op);
    if (n->n_in > c.row->n_in || n->n_in < c.row->n_in_min)
        return FAIL(err, INTERNAL, "%s takes %d..%d operands, not %d", c.row->name, c.row->n_in_min,
                    c.row->n_in, n->n_in);
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] < 0 || n->in[i] >= g->n_value)
            return FAIL(err, INTERNAL, "%s: operand %d is no value of the graph", c.row->name, i);
        c.in[i] = &g->value[n->in[i]];
        if (!role_takes(c.row->in[i], c.in[i]->kind))
            return FAIL(err, INTERNAL, "%s: operand %d (%s) has the wrong kind for role '%c'",
                        c.row->name, i, c.in[i]->name, c.row->in[i]);
    }
    c.n_in = n->n_in;
    TRY(rules[n->op](&c, err));
    for (int o = 0; o < c.row->n_out; o++)
        out_shape[o] = c.out[o];
    return SINTER_OK;
}
