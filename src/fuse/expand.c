/* Rows to variants: every choice of optional sets, op alternatives and repeat counts becomes one
 * little program over slots (SSA values of the row). All checks of the table are here: a row that
 * breaks a rule or a limit is an error that names it, at start. */
#include "fuse/internal.h"
#include "fuse/names.h"

#include <stdio.h>
#include <string.h>

struct expand {
    sinter_host *host;
    struct fuse_table *table;
    int cap;
};

/* One way to read a row. */
struct choice {
    bool optional[16];              /* by number */
    uint8_t op[FUSE_MAX_ROW_NODE];  /* index of the alternative */
    uint8_t rep[FUSE_MAX_ROW_NODE]; /* count, where the node has a repeat */
};

static int n_row_node(const struct fuse_row *row)
{
    int n = 0;
    while (n < FUSE_MAX_ROW_NODE && row->node[n].op[0] != OP_NONE)
        n++;
    return n;
}

static sinter_status row_wrong(const struct fuse_row *row, const char *what, sinter_error *err)
{
    return FAIL(err, INTERNAL, "fusion row %s: %s", row->name ? row->name : "(no name)", what);
}

/* ---- One variant ---------------------------------------------------------------------------- */

static int slot_latest(const struct fuse_variant *v, int name, int rep)
{
    for (int s = v->n_slot - 1; s >= 0; s--)
        if (v->slot[s].name == name && v->slot[s].rep == rep)
            return s;
    return -1;
}

static int n_rep_of(const struct fuse_variant *v, int name)
{
    int n = 0;
    for (int s = 0; s < v->n_slot; s++)
        if (v->slot[s].name == name && v->slot[s].rep >= n)
            n = v->slot[s].rep + 1;
    return n;
}

static int slot_new(struct fuse_variant *v, int name, int rep, bool input)
{
    if (v->n_slot == FUSE_MAX_SLOT)
        return -1;
    v->slot[v->n_slot] = (struct fuse_slot){(uint8_t)name, (uint8_t)rep, input, 0, 0, 0};
    return v->n_slot++;
}

/* How often node i stands in the variant: its own repeat, or along with an EACH that it reads. */
static int n_times(const struct fuse_variant *v, const struct fuse_node *n, int own,
                   const char **why)
{
    int along = 0;
    bool each = false;
    for (int k = 0; k < OP_MAX_IN && n->in[k]; k++) {
        if (!(n->in[k] & FUSE_EACH))
            continue;
        each = true;
        int have = n_rep_of(v, n->in[k] & 63);
        if (have && along && have != along)
            *why = "a node reads EACH names of unequal number";
        along = have ? have : along;
    }
    for (int k = 0; k < OP_MAX_OUT && n->out[k]; k++)
        each |= (n->out[k] & FUSE_EACH) != 0;
    if (n->repeat[1] && along)
        *why = "a node repeats and reads an EACH that was made before";
    if (each && !n->repeat[1] && !along)
        *why = "EACH without .repeat and without an EACH that was made before";
    return n->repeat[1] ? own : along ? along : 1;
}

static const char *node_inputs(struct fuse_variant *v, struct fuse_var_node *vn,
                               const struct fuse_node *n, int rep)
{
    const struct op_row *op = op_row(vn->op);
    bool bound = v->n_node == 0; /* only the first node may stand alone */
    int n_old = v->n_slot;
    for (int k = 0; k < (int)sizeof n->in && n->in[k]; k++) {
        int name = n->in[k] & 63, at = n->in[k] & FUSE_EACH ? rep : 0;
        if (k >= op->n_in)
            return "a node has more operands than its op";
        if (name >= FUSE_N_NAME)
            return "a name is out of range";
        if (!(n->in[k] & FUSE_EACH) && n_rep_of(v, name) > 1)
            return "an EACH is read without EACH";
        int s = slot_latest(v, name, at);
        bound |= s >= 0 && s < n_old;
        if (s < 0)
            s = slot_new(v, name, at, true);
        if (s < 0)
            return "too many values for FUSE_MAX_SLOT";
        v->slot[s].inner |= !v->slot[s].input;
        vn->in[vn->n_in++] = (uint8_t)s;
    }
    if (vn->n_in < op->n_in_min)
        return "a node has fewer operands than its op";
    return bound ? NULL : "a node after the first reads nothing that was bound before";
}

static const char *node_outputs(struct fuse_variant *v, struct fuse_var_node *vn,
                                const struct fuse_node *n, int rep, bool many)
{
    const struct op_row *op = op_row(vn->op);
    for (int k = 0; k < OP_MAX_OUT && n->out[k]; k++) {
        bool each = (n->out[k] & FUSE_EACH) != 0;
        if (many && !each && n_rep_of(v, n->out[k] & 63) == 0 && rep == 0)
            return "a repeated node's output is neither EACH nor a name that it reads";
        int s = slot_new(v, n->out[k] & 63, each ? rep : 0, false);
        if (s < 0)
            return "too many values for FUSE_MAX_SLOT";
        v->slot[s].leaves = n->leaves || (k < op->n_out && op->out[k] == 's');
        vn->out[vn->n_out++] = (uint8_t)s;
    }
    return vn->n_out == op->n_out ? NULL : "a node must name all outputs of its op";
}

static const char *variant_fill(struct fuse_variant *v, const struct fuse_row *row,
                                const struct choice *c)
{
    const char *why = NULL;
    for (int i = 0; i < n_row_node(row); i++) {
        const struct fuse_node *n = &row->node[i];
        if (n->optional && !c->optional[n->optional])
            continue;
        int n_rep = n_times(v, n, c->rep[i], &why);
        for (int r = 0; r < n_rep && !why; r++) {
            if (v->n_node == FUSE_MAX_NODE)
                return "too many nodes for FUSE_MAX_NODE";
            struct fuse_var_node *vn = &v->node[v->n_node];
            *vn = (struct fuse_var_node){
                .op = (enum op)n->op[c->op[i]], .row_node = i, .rep = r, .leaves = n->leaves};
            memset(vn->in, FUSE_ABSENT, sizeof vn->in);
            memset(vn->out, FUSE_ABSENT, sizeof vn->out);
            why = node_inputs(v, vn, n, r);
            if (!why)
                why = node_outputs(v, vn, n, r, n_rep > 1);
            v->n_node++;
        }
        if (why)
            return why;
    }
    for (int s = 0; s < v->n_slot; s++)
        v->slot[s].last = slot_latest(v, v->slot[s].name, v->slot[s].rep) == s;
    return v->n_node ? NULL : "a variant has no node";
}

/* "MATMUL*2+SILU+MUL" */
static const char *label_of(struct fuse_table *t, const struct fuse_variant *v, const char **why)
{
    char text[256];
    size_t at = 0;
    for (int i = 0; i < v->n_node;) {
        int run = i + 1;
        while (run < v->n_node && v->node[run].op == v->node[i].op)
            run++;
        int n = snprintf(text + at, sizeof text - at, run - i > 1 ? "%s%s*%d" : "%s%s",
                         i ? "+" : "", op_row(v->node[i].op)->name, run - i);
        if (n < 0 || (at += (size_t)n) >= sizeof text) {
            *why = "a label is too long";
            return NULL;
        }
        i = run;
    }
    return arena_strndup(&t->arena, text, at);
}

static sinter_status variant_add(struct expand *x, const struct fuse_row *row,
                                 const struct choice *c, sinter_error *err)
{
    struct fuse_table *t = x->table;
    if (t->n_variant == x->cap) {
        int cap = x->cap ? x->cap * 2 : 64;
        struct fuse_variant *more = arena_alloc_n(&t->arena, (size_t)cap, sizeof *more);
        if (!more)
            return FAIL(err, MEMORY, "fusion table: no memory for %d variants", cap);
        if (t->n_variant)
            memcpy(more, t->variant, (size_t)t->n_variant * sizeof *more);
        t->variant = more;
        x->cap = cap;
    }
    struct fuse_variant *v = &t->variant[t->n_variant];
    *v = (struct fuse_variant){.row = row, .id = t->n_variant};
    const char *why = variant_fill(v, row, c);
    if (!why)
        v->label = label_of(t, v, &why);
    if (why)
        return row_wrong(row, why, err);
    if (!v->label)
        return FAIL(err, MEMORY, "fusion table: no memory for a label of row %s", row->name);
    const struct fuse_variant *same = fuse_variant_find(t, v->label);
    if (same)
        return FAIL(err, INTERNAL, "fusion rows %s and %s both have the label %s", same->row->name,
                    row->name, v->label);
    t->n_variant++;
    return SINTER_OK;
}

/* ---- All variants of a row ------------------------------------------------------------------ */

struct digit {
    int lo, hi, node, optional;
}; /* node < 0: of an optional number */

static int digits_of(const struct fuse_row *row, struct digit *d)
{
    int n = 0, n_node = n_row_node(row);
    for (int i = 0; i < n_node; i++) {
        bool seen = row->node[i].optional == 0;
        for (int k = 0; k < i; k++)
            seen |= row->node[k].optional == row->node[i].optional;
        if (!seen)
            d[n++] = (struct digit){0, 1, -1, row->node[i].optional};
    }
    for (int i = 0; i < n_node; i++) {
        int alt = 1;
        while (alt < 4 && row->node[i].op[alt] != OP_NONE)
            alt++;
        d[n++] = (struct digit){0, alt - 1, i, 0};
        if (row->node[i].repeat[1])
            d[n++] = (struct digit){row->node[i].repeat[0], row->node[i].repeat[1], i, 1};
    }
    return n;
}

/* The choice that the counter stands for; false if it only turns what is left out. */
static bool choice_of(const struct fuse_row *row, const struct digit *d, const int *count, int n,
                      struct choice *c)
{
    memset(c, 0, sizeof *c);
    for (int k = 0; k < n; k++)
        if (d[k].node < 0)
            c->optional[d[k].optional] = count[k] != 0;
    for (int k = 0; k < n; k++) {
        if (d[k].node < 0)
            continue;
        const struct fuse_node *node = &row->node[d[k].node];
        if (node->optional && !c->optional[node->optional] && count[k] != d[k].lo)
            return false;
        *(d[k].optional ? &c->rep[d[k].node] : &c->op[d[k].node]) = (uint8_t)count[k];
    }
    return true;
}

static sinter_status row_check(const struct fuse_row *row, sinter_error *err)
{
    int n = n_row_node(row);
    if (!row->name || !row->name[0])
        return row_wrong(row, "it has no name", err);
    if (n == 0)
        return row_wrong(row, "it has no node", err);
    for (int i = 0; i < n; i++) {
        const struct fuse_node *node = &row->node[i];
        if (node->optional >= 16)
            return row_wrong(row, "an optional number is above 15", err);
        if (node->repeat[1] && (node->repeat[0] < 1 || node->repeat[0] > node->repeat[1] ||
                                node->repeat[1] > FUSE_MAX_REP))
            return row_wrong(row, "a repeat is not 1 <= lo <= hi <= FUSE_MAX_REP", err);
        for (int k = 0; k < 4 && node->op[k]; k++)
            if (!op_row((enum op)node->op[k]))
                return row_wrong(row, "an op is unknown", err);
    }
    return SINTER_OK;
}

static sinter_status needs_check(const struct fuse_row *row, const struct need *needs,
                                 const char *where, sinter_error *err)
{
    for (int i = 0; i < need_count(needs); i++) {
        const char *why = need_wrong(&needs[i], row);
        if (why)
            return FAIL(err, INTERNAL, "%s, row %s: need %d %s", where, row->name, i + 1, why);
    }
    return SINTER_OK;
}

static sinter_status row_expand(struct expand *x, const struct fuse_row *row, sinter_error *err)
{
    struct digit d[4 * FUSE_MAX_ROW_NODE];
    int count[4 * FUSE_MAX_ROW_NODE];
    struct choice c;
    TRY(row_check(row, err));
    TRY(needs_check(row, row->need, "fusions.c", err));
    int n = digits_of(row, d);
    for (int k = 0; k < n; k++)
        count[k] = d[k].lo;
    for (;;) {
        if (choice_of(row, d, count, n, &c))
            TRY(variant_add(x, row, &c, err));
        int k = n - 1;
        while (k >= 0 && count[k] == d[k].hi) {
            count[k] = d[k].lo;
            k--;
        }
        if (k < 0)
            return SINTER_OK;
        count[k]++;
    }
}

/* ---- Single ops ----------------------------------------------------------------------------- */

/* Names by role; the second x is V, then A, B, D. */
static uint8_t role_name(char letter, int *n_x)
{
    static const uint8_t more[] = {X, V, A, B, D};
    if (letter == 'x' || letter == 'X')
        return more[(*n_x)++];
    return (uint8_t)(letter - 'a' + A);
}

static struct fuse_row *single_row(struct fuse_table *t, enum op op)
{
    const struct op_row *o = op_row(op);
    struct fuse_row *row = arena_alloc(&t->arena, sizeof *row);
    if (!row)
        return NULL;
    row->name = o->name;
    row->node[0].op[0] = (uint8_t)op;
    for (int k = 0, n_x = 0; k < o->n_in; k++)
        row->node[0].in[k] = role_name(o->in[k], &n_x);
    for (int k = 0; k < o->n_out; k++)
        row->node[0].out[k] = o->out[k] == 's' ? S : k == 0 ? Y : Z;
    return row;
}

/* A single op's variant names all operands; the group's value is -1 where the node has none. */
static sinter_status singles(struct expand *x, sinter_error *err)
{
    x->table->n_single = x->table->n_variant;
    for (enum op op = OP_NONE + 1; op < OP_N; op++) {
        struct fuse_row *row = single_row(x->table, op);
        if (!row)
            return FAIL(err, MEMORY, "fusion table: no memory for the row of %s", op_row(op)->name);
        TRY(row_expand(x, row, err));
    }
    return SINTER_OK;
}

/* ---- Lines ---------------------------------------------------------------------------------- */

static bool row_assigns(const struct fuse_row *row, int name, bool out)
{
    for (int i = 0; i < n_row_node(row); i++) {
        const uint8_t *names = out ? row->node[i].out : row->node[i].in;
        for (int k = 0; k < (out ? 2 : (int)sizeof row->node[i].in) && names[k]; k++)
            if ((names[k] & 63) == (name & 63))
                return true;
    }
    return false;
}

static sinter_status line_check(struct fuse_table *t, int l, sinter_error *err)
{
    const struct fuse_line *line = &t->list->line[l];
    const char *backend = t->list->backend;
    int n = 0, first = 0;
    for (int v = 0; v < t->n_variant; v++)
        if (strcmp(t->variant[v].row->name, line->row) == 0 && n++ == 0)
            first = v;
    if (n == 0)
        return FAIL(err, INTERNAL, "list of %s, line %d: there is no row %s", backend, l + 1,
                    line->row);
    const struct fuse_row *row = t->variant[first].row;
    t->of_line[l].first = first;
    t->of_line[l].n = n;
    TRY(needs_check(row, line->need, backend, err));
    for (int k = 0; k < 2 && line->inplace[k][0]; k++)
        if (!row_assigns(row, line->inplace[k][0], true) ||
            !row_assigns(row, line->inplace[k][1], false))
            return FAIL(err, INTERNAL,
                        "list of %s, line %d (%s): in-place pair %d is not {output, input}",
                        backend, l + 1, line->row, k + 1);
    for (int k = 0; k < l; k++)
        if (t->of_line[k].first == first && t->list->line[k].bits != line->bits)
            return FAIL(err, INTERNAL, "list of %s: lines of row %s promise unequal bits", backend,
                        line->row);
    return SINTER_OK;
}

const struct fuse_variant *fuse_variant_find(const struct fuse_table *t, const char *label)
{
    for (int v = 0; v < t->n_variant; v++)
        if (strcmp(t->variant[v].label, label) == 0)
            return &t->variant[v];
    return NULL;
}

sinter_status fuse_table_create_rows(sinter_host *host, const struct fuse_row *row, int n_row,
                                     const struct fuse_list *list, struct fuse_table **out,
                                     sinter_error *err)
{
    struct expand x = {.host = host};
    sinter_status status = SINTER_OK;
    *out = NULL;
    NEW(host, x.table, 1, err);
    arena_init(&x.table->arena, host);
    x.table->list = list;
    for (int r = 0; r < n_row; r++) {
        for (int k = 0; k < r; k++)
            if (row[r].name && strcmp(row[r].name, row[k].name) == 0)
                FAIL_OUT(err, INTERNAL, "fusion row %s stands twice", row[r].name);
        TRY_OUT(row_expand(&x, &row[r], err));
    }
    TRY_OUT(singles(&x, err));
    x.table->of_line =
        arena_alloc_n(&x.table->arena, (size_t)list->n_line + 1, sizeof *x.table->of_line);
    if (!x.table->of_line)
        FAIL_OUT(err, MEMORY, "fusion table: no memory for %d lines", list->n_line);
    for (int l = 0; l < list->n_line; l++)
        TRY_OUT(line_check(x.table, l, err));
    *out = x.table;
    x.table = NULL;
out:
    fuse_table_free(x.table);
    return status;
}

sinter_status fuse_table_create(sinter_host *host, const struct fuse_list *list,
                                struct fuse_table **out, sinter_error *err)
{
    return fuse_table_create_rows(host, fuse_rows, fuse_n_row, list, out, err);
}

void fuse_table_free(struct fuse_table *t)
{
    if (!t)
        return;
    sinter_host *host = t->arena.host;
    arena_free(&t->arena);
    host_free(host, t);
}
