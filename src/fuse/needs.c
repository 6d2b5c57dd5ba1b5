/* Needs: what must hold beyond the edges. A need speaks of the first value of a name (what the
 * group reads, where the name is assigned again); on EACH(N) it speaks of every repetition; on a
 * name that the variant lacks it says nothing. Kinds and their texts: needs.def. */
#include "fuse/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NEED(name, args) [NEED_##name] = {#name, args},
static const struct {
    const char *name, *args;
} kinds[NEED_N] = {
#include "fuse/needs.def"
};
#undef NEED

/* ---- Evaluation ----------------------------------------------------------------------------- */

static bool holds_weight(const struct need *need, const struct graph *g, const struct value *v,
                         const struct fuse_key *key)
{
    (void)need, (void)g, (void)key;
    return v->kind == VALUE_WEIGHT;
}

/* The plan's rows on v's axis, times mult. */
static bool holds_rows(const struct need *need, const struct graph *g, const struct value *v,
                       const struct fuse_key *key)
{
    (void)g;
    int64_t lo = 1, hi = 1;
    if (v->shape.axis == AXIS_TOK) {
        lo = key->row_lo;
        hi = key->row_hi;
    } else if (v->shape.axis == AXIS_OUT) {
        hi = key->out_cap;
    } else if (v->shape.axis == AXIS_SEQ) {
        hi = key->seq_cap;
    }
    return lo * v->shape.mult >= need->b && (need->c == 0 || hi * v->shape.mult <= need->c);
}

static bool holds_quant(const struct need *need, const struct graph *g, const struct value *v,
                        const struct fuse_key *key)
{
    (void)key;
    unsigned flags = (unsigned)need->b;
    return v->kind == VALUE_WEIGHT && (quant_row(g->weight[v->index].type)->flags & flags) == flags;
}

static bool holds_cols(const struct need *need, const struct graph *g, const struct value *v,
                       const struct fuse_key *key)
{
    (void)g, (void)key;
    return (int64_t)v->shape.n_head * v->shape.d % need->b == 0;
}

static bool holds_narrow(const struct need *need, const struct graph *g, const struct value *v,
                         const struct fuse_key *key)
{
    (void)g, (void)key;
    return (int64_t)v->shape.n_head * v->shape.d <= need->b;
}

static bool holds_vector(const struct need *need, const struct graph *g, const struct value *v,
                         const struct fuse_key *key)
{
    (void)need, (void)g, (void)key;
    return v->shape.axis == AXIS_ONE && v->shape.mult == 1;
}

static bool holds_heads(const struct need *need, const struct graph *g, const struct value *v,
                        const struct fuse_key *key)
{
    (void)g, (void)key;
    return v->shape.n_head >= need->b;
}

typedef bool (*holds_fn)(const struct need *need, const struct graph *g, const struct value *v,
                         const struct fuse_key *key);
/* Kinds that look at one value; the others compare values. */
static const holds_fn holds_one[NEED_N] = {
    [NEED_weight] = holds_weight, [NEED_rows] = holds_rows,     [NEED_quant] = holds_quant,
    [NEED_cols] = holds_cols,     [NEED_vector] = holds_vector, [NEED_heads] = holds_heads,
    [NEED_narrow] = holds_narrow,
};

static bool same_len(struct shape a, struct shape b)
{
    return (int64_t)a.n_head * a.d == (int64_t)b.n_head * b.d;
}

/* Of two names: one repetition by one, or the only value of the one with each of the other. */
static bool holds_pair(const struct need *need, const struct graph *graph, const struct group *g,
                       bool (*alike)(struct shape a, struct shape b))
{
    int n_a = group_n_rep(g, need->a), n_b = group_n_rep(g, need->b), n = n_a > n_b ? n_a : n_b;
    for (int r = 0; r < n; r++) {
        int a = group_value_first(g, need->a, n_a > 1 ? r : 0);
        int b = group_value_first(g, need->b, n_b > 1 ? r : 0);
        if (a >= 0 && b >= 0 && !alike(graph->value[a].shape, graph->value[b].shape))
            return false;
    }
    return true;
}

static bool holds_same_type(const struct need *need, const struct graph *graph,
                            const struct group *g)
{
    int first = -1;
    for (int r = 0; r < group_n_rep(g, need->a); r++) {
        int v = group_value_first(g, need->a, r);
        if (v < 0)
            continue;
        if (graph->value[v].kind != VALUE_WEIGHT)
            return false;
        int type = (int)graph->weight[graph->value[v].index].type;
        if (first >= 0 && type != first)
            return false;
        first = type;
    }
    return true;
}

bool need_holds(const struct need *need, const struct graph *graph, const struct group *g,
                const struct fuse_key *key)
{
    if (need->kind == NEED_same_row)
        return holds_pair(need, graph, g, shape_equal);
    if (need->kind == NEED_same_len)
        return holds_pair(need, graph, g, same_len);
    if (need->kind == NEED_same_type)
        return holds_same_type(need, graph, g);
    for (int r = 0; r < group_n_rep(g, need->a); r++) {
        int v = group_value_first(g, need->a, r);
        if (v >= 0 && !holds_one[need->kind](need, graph, &graph->value[v], key))
            return false;
    }
    return true;
}

/* ---- Text ----------------------------------------------------------------------------------- */

/* Longest: "same_type" or "same_row" with two letters, "rows" with two numbers. */
static void need_text(const struct need *need, char text[48])
{
    const int32_t word[3] = {need->a, need->b, need->c};
    const char *args = kinds[need->kind].args;
    int at = snprintf(text, 48, "%s", kinds[need->kind].name);
    for (int i = 0; i < 3 && args[i]; i++)
        at += args[i] == 'n'
                  ? snprintf(text + at, (size_t)(48 - at), "%c%c", i ? ',' : ':', 'A' + word[i] - 1)
                  : snprintf(text + at, (size_t)(48 - at), "%c%" PRId32, i ? ',' : ':', word[i]);
}

void need_print(const struct need *need, struct text_buf *b)
{
    char text[48];
    need_text(need, text);
    text_buf_printf(b, "%s", text);
}

bool need_is(const struct need *need, const char *text, size_t bytes)
{
    char own[48];
    need_text(need, own);
    return strlen(own) == bytes && memcmp(own, text, bytes) == 0;
}

int need_count(const struct need *needs)
{
    int n = 0;
    while (n < FUSE_N_NEED && needs[n].kind != NEED_NONE)
        n++;
    return n;
}

/* ---- Checks at start ------------------------------------------------------------------------ */

/* Calls fn for each operand (in) of the row that has the name; ops of a node share its letters. */
static void letters_of(const struct fuse_row *row, int name, bool *weight, bool *act, bool *other)
{
    for (int i = 0; i < FUSE_MAX_ROW_NODE; i++) {
        const struct fuse_node *n = &row->node[i];
        const struct op_row *op = op_row((enum op)n->op[0]);
        for (int k = 0; op && k < 2 && n->out[k]; k++)
            *other |= (n->out[k] & 63) == name;
        for (int k = 0; op && k < op->n_in && n->in[k]; k++) {
            if ((n->in[k] & 63) != name)
                continue;
            bool w = strchr("wek", op->in[k]) != NULL, v = op->in[k] == 'v';
            /* a commuting op takes a weight as either operand only through its letter v */
            v |= op->commutes && k < 2;
            *weight |= w;
            *act |= !w && !v;
        }
    }
}

static bool knows(const struct fuse_row *row, int name)
{
    for (int i = 0; i < FUSE_MAX_ROW_NODE; i++) {
        for (int k = 0; k < (int)sizeof row->node[i].in; k++)
            if (row->node[i].in[k] && (row->node[i].in[k] & 63) == name)
                return true;
        for (int k = 0; k < 2; k++)
            if (row->node[i].out[k] && (row->node[i].out[k] & 63) == name)
                return true;
    }
    return false;
}

/* Does a shape rule of the row tie the two names' shapes together? */
static bool tied(const struct fuse_row *row, int a, int b)
{
    for (int i = 0; i < FUSE_MAX_ROW_NODE; i++) {
        const struct fuse_node *n = &row->node[i];
        const struct op_row *op = op_row((enum op)n->op[0]);
        if (!op || (strcmp(op->shape, "same") != 0 && strcmp(op->shape, "rope") != 0))
            continue;
        int in = n->in[0] & 63, out = n->out[0] & 63;
        if ((in == a && out == b) || (in == b && out == a))
            return true;
    }
    return a == b;
}

const char *need_wrong(const struct need *need, const struct fuse_row *row)
{
    bool weight = false, act = false, made = false;
    if ((unsigned)need->kind >= NEED_N || need->kind == NEED_NONE)
        return "has no such kind";
    if (!knows(row, need->a))
        return "names a value that the row lacks";
    letters_of(row, need->a, &weight, &act, &made);
    bool is_weight = weight && !made, never = act || made;
    switch (need->kind) {
    case NEED_weight:
    case NEED_vector:
        return is_weight && need->kind == NEED_weight ? "always holds: the operand is a weight"
               : never && need->kind == NEED_weight   ? "never holds: the operand is no weight"
                                                      : NULL;
    case NEED_quant:
    case NEED_same_type:
        if (need->kind == NEED_quant && need->b == 0)
            return "asks for no flag";
        return never ? "never holds: the operand is no weight" : NULL;
    case NEED_same_row:
    case NEED_same_len:
        if (!knows(row, need->b))
            return "names a value that the row lacks";
        return tied(row, need->a, need->b) ? "always holds by the shape rules" : NULL;
    case NEED_rows:
        if (need->b <= 1 && need->c == 0)
            return "always holds";
        return need->b < 0 || (need->c && need->c < need->b) ? "never holds" : NULL;
    case NEED_cols:
    case NEED_heads:
        return need->b < 2 ? "always holds" : NULL;
    case NEED_narrow:
        return need->b < 1 ? "never holds" : NULL;
    case NEED_NONE:
    case NEED_N:
        break;
    }
    return "has no such kind";
}
