/* Expansion, matcher, needs, options, order, statistics, against a list made here: one line per row
 * without needs, some lines with one need of each kind, and the single ops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <cmocka.h>

#include "fault_loop.h"
#include "fuse/fuse_model_fixture.h"
#include "fuse/names.h"
#include "fuse/stats.h"
#include "fusion/generate.h"

enum { MAX_LINE = 96 };
struct mock {
    struct fuse_line line[MAX_LINE];
    struct fuse_list list;
};

static void mock_add(struct mock *m, const char *row)
{
    assert_true(m->list.n_line < MAX_LINE);
    m->line[m->list.n_line++] = (struct fuse_line){.row = row, .bits = BITS_SAME};
    m->list.line = m->line;
    m->list.backend = "mock";
}

static void mock_singles(struct mock *m)
{
    for (enum op op = OP_NONE + 1; op < OP_N; op++)
        mock_add(m, op_row(op)->name);
}

static sinter_host *host_of(void)
{
    sinter_host *host;
    sinter_error err;
    assert_int_equal(sinter_host_create(NULL, &host, &err), SINTER_OK);
    return host;
}

static struct fuse_table *table_of(sinter_host *host, const struct mock *m)
{
    struct fuse_table *t;
    sinter_error err;
    if (fuse_table_create(host, &m->list, &t, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    return t;
}

static const struct fuse_options all_on = {.fusion = true};

static struct fuse_result *match(sinter_host *host, const struct fuse_table *t,
                                 const struct graph *g, const struct fuse_key *key,
                                 const struct fuse_options *o)
{
    struct fuse_result *r;
    sinter_error err;
    if (fuse_match(host, t, g, key, o ? o : &all_on, NULL, 0, true, &r, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    return r;
}

/* Each node in exactly one group, ends as defined. */
static void check_result(const struct graph *g, const struct fuse_result *r)
{
    int seen = 0;
    for (int i = 0; i < r->n_group; i++) {
        assert_int_equal(r->group[i].id, i);
        assert_non_null(r->group[i].line);
        for (int k = 0; k < r->group[i].n_node; k++, seen++)
            assert_int_equal(r->group_of[r->group[i].node[k]], i);
        for (int o = 0; o < r->group[i].n_out; o++)
            assert_int_equal(r->group_of[g->value[r->group[i].out[o]].node], i);
    }
    assert_int_equal(seen, g->n_node);
    int order[512];
    sinter_error err;
    assert_true(r->n_group <= 512);
    if (fuse_order(r, g, 0, order, &err) != SINTER_OK)
        fail_msg("%s", err.message);
}

static bool need_is_kind(const struct need *a, const struct need *b)
{
    return a->kind == b->kind && a->a == b->a && a->b == b->b && a->c == b->c;
}

/* ---- Expansion ------------------------------------------------------------------------------ */

static void expansion(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    struct mock m = {0};
    mock_singles(&m);
    struct fuse_table *t = table_of(host, &m);
    static const char *const labels[] = {"ADD+RMS_NORM+MUL",
                                         "RMS_NORM+MUL",
                                         "RMS_NORM+MUL+ROPE",
                                         "ROPE+KV_WRITE",
                                         "MATMUL*2",
                                         "MATMUL*3",
                                         "MATMUL*2+ADD*2",
                                         "MATMUL*3+ADD*3",
                                         "MATMUL*2+SILU+MUL",
                                         "MATMUL*2+GELU+MUL",
                                         "MATMUL+ADD",
                                         "QK+SOFTMAX+PV",
                                         "MATMUL+ARGMAX",
                                         "CONV1D+STATE_WRITE",
                                         "ADD*2",
                                         "ADD*7",
                                         "MUL+SIN+SQR+MUL+ADD",
                                         "KV_WRITE"};
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++)
        if (!fuse_variant_find(t, labels[i]))
            fail_msg("no label %s", labels[i]);
    assert_null(fuse_variant_find(t, "ADD*8"));
    assert_int_equal(t->n_variant - t->n_single, OP_N - 1);
    const struct fuse_variant *kv = fuse_variant_find(t, "KV_WRITE");
    assert_int_equal(kv->id, t->n_single + OP_KV_WRITE - 1);
    assert_int_equal(kv->slot[0].name, S);
    assert_int_equal(kv->slot[1].name, X);
    assert_int_equal(kv->slot[2].name, V);
    assert_int_equal(kv->slot[3].name, S);
    assert_true(kv->slot[3].last && !kv->slot[0].last);
    const struct fuse_variant *bias = fuse_variant_find(t, "MATMUL*3+ADD*3");
    assert_int_equal(bias->n_node, 6);
    for (int j = 3; j < 6; j++) /* the bias of repetition j reads the product of j */
        assert_int_equal(bias->node[j].in[0], bias->node[j - 3].out[0]);
    struct text_buf b;
    sinter_error err;
    for (int json = 0; json < 2; json++) {
        text_buf_init(&b, host);
        fuse_list_print(t, &b, json);
        assert_int_equal(text_buf_end(&b, &err), SINTER_OK);
        assert_non_null(strstr(b.text, "MATMUL*3+ADD*3"));
        assert_non_null(strstr(b.text, "same_row:X,R"));
        text_buf_free(&b);
    }
    fuse_table_free(t);
    sinter_host_free(host);
}

static const struct {
    struct fuse_row row;
    const char *says;
} bad_rows[] = {
    {{"", {{{SILU}, {X}, {Y}}}}, "no name"},
    {{"none", {{{0}}}}, "no node"},
    {{"one", {{{SILU}, {X}, {Y}}}}, "have the label SILU"},
    {{"loose", {{{SILU}, {X}, {Y}}, {{GELU}, {Z}, {V}}}}, "nothing that was bound"},
    {{"many", {{{SILU}, {X, Y}, {Y}}, {{GELU}, {Y}, {V}}}}, "more operands"},
    {{"few", {{{MUL}, {X}, {Y}}, {{GELU}, {Y}, {V}}}}, "fewer operands"},
    {{"out", {{{CONV1D}, {X, W, S}, {Y}}, {{GELU}, {Y}, {V}}}}, "all outputs"},
    {{"rep", {{{ADD}, {X, EACH(Y)}, {X}, .repeat = {2, 9}}}}, "repeat"},
    {{"fat",
      {{{MATMUL}, {X, EACH(W)}, {EACH(Y)}, .repeat = {7, 7}},
       {{ADD}, {EACH(Y), EACH(B)}, {EACH(Y)}}}},
     "FUSE_MAX_NODE"},
    {{"each", {{{MATMUL}, {X, EACH(W)}, {Y}}, {{GELU}, {Y}, {V}}}}, "EACH without .repeat"},
    {{"bare", {{{MATMUL}, {X, EACH(W)}, {EACH(Y)}, .repeat = {2, 2}}, {{GELU}, {Y}, {V}}}},
     "read without EACH"},
    {{"name", {{{SILU}, {X}, {Y}}, {{GELU}, {Y}, {V}}}, {NEED_WEIGHT(Q)}}, "row lacks"},
    {{"always", {{{MATMUL}, {X, W}, {Y}}, {{GELU}, {Y}, {V}}}, {NEED_WEIGHT(W)}}, "always"},
    {{"never", {{{MATMUL}, {X, W}, {Y}}, {{GELU}, {Y}, {V}}}, {NEED_QUANT(Y, 1)}}, "never"},
    {{"tied", {{{SILU}, {X}, {Y}}, {{GELU}, {Y}, {V}}}, {NEED_SAME_ROW(X, Y)}}, "always"},
    {{"twice", {{{SILU}, {X}, {Y}}, {{GELU, GELU}, {Y}, {V}}}}, "both have the label"},
};

/* Rows and lines that break a rule of the table. */
static void table_errors(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    struct mock m = {0};
    mock_singles(&m);
    int n = (int)(sizeof bad_rows / sizeof bad_rows[0]), n_ok = 0;
    struct fuse_table *t;
    sinter_error err;
    for (int i = 0; i < n; i++) {
        assert_int_equal(fuse_table_create_rows(host, &bad_rows[i].row, 1, &m.list, &t, &err),
                         SINTER_E_INTERNAL);
        assert_null(t);
        if (strstr(err.message, bad_rows[i].says))
            n_ok++;
        else
            print_message("wanted \"%s\", is \"%s\"\n", bad_rows[i].says, err.message);
    }
    static const struct {
        struct fuse_line line[2];
        const char *says;
    } lines[] = {
        {{{.row = "nothing"}}, "no row nothing"},
        {{{.row = "norm_mul", .need = {NEED_WEIGHT(Q)}}}, "row lacks"},
        {{{.row = "norm_mul", .inplace = {{X, Y}}}}, "in-place"},
        {{{.row = "adds", .bits = BITS_OWN}, {.row = "adds", .bits = BITS_SAME}}, "unequal"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++, n++) {
        struct fuse_list list = {"mock", lines[i].line, lines[i].line[1].row ? 2 : 1};
        assert_int_equal(fuse_table_create(host, &list, &t, &err), SINTER_E_INTERNAL);
        if (strstr(err.message, lines[i].says))
            n_ok++;
        else
            print_message("wanted \"%s\", is \"%s\"\n", lines[i].says, err.message);
    }
    print_message("table errors: %d/%d\n", n_ok, n);
    assert_int_equal(n_ok, n);
    sinter_host_free(host);
}

/* ---- Generated graphs ----------------------------------------------------------------------- */

/* The line of the mock's own for each row, then lines with needs. */
static void mock_needs(struct mock *m)
{
    static const struct fuse_line lines[] = {
        {.row = "matmul_add", .need = {NEED_QUANT(W, QUANT_INT8_X), NEED_COLS(X, 64)}},
        {.row = "siblings", .need = {NEED_SAME_TYPE(W), NEED_ROWS(X, 2, 8)}},
        {.row = "gate_up", .need = {NEED_QUANT(G, QUANT_FLOAT), NEED_ROWS(X, 0, 4)}},
        {.row = "norm_mul", .need = {NEED_HEADS(X, 2), NEED_ROWS(X, 5, 0)}},
        {.row = "rope_kv_write", .need = {NEED_HEADS(X, 2), NEED_COLS(V, 32)}},
        {.row = "attention", .need = {NEED_HEADS(X, 4)}},
        {.row = "adds", .need = {NEED_COLS(X, 96)}},
        {.row = "snake", .need = {NEED_ROWS(X, 3, 3)}},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        m->line[m->list.n_line++] = lines[i];
}

/* A table with this one line and the singles. */
static struct fuse_table *table_of_line(sinter_host *host, struct mock *m,
                                        const struct fuse_line *line)
{
    *m = (struct mock){0};
    mock_add(m, line->row);
    m->line[0] = *line;
    mock_singles(m);
    return table_of(host, m);
}

static void all_lines(struct mock *m)
{
    for (int r = 0; r < fuse_n_row; r++)
        mock_add(m, fuse_rows[r].name);
    mock_needs(m);
}

/* Runs fn for each line x variant of its row. */
static void each_variant(sinter_host *host,
                         void (*fn)(sinter_host *host, const struct fuse_table *t,
                                    const struct fuse_variant *v, int count[2]),
                         int count[2])
{
    struct mock lines = {0}, m;
    all_lines(&lines);
    for (int l = 0; l < lines.list.n_line; l++) {
        struct fuse_table *t = table_of_line(host, &m, &lines.line[l]);
        for (int v = 0; v < t->of_line[0].n; v++)
            fn(host, t, &t->variant[t->of_line[0].first + v], count);
        fuse_table_free(t);
    }
}

static bool fires(sinter_host *host, const struct fuse_table *t, const struct fuse_variant *v,
                  const struct generated *g, const char *ignore)
{
    struct fuse_options o = {.fusion = true, .ignore_need = ignore};
    struct fuse_result *r = match(host, t, g->graph, &g->key, &o);
    check_result(g->graph, r);
    const struct group *in = &r->group[r->group_of[g->node[0]]];
    bool fired = r->count[v->id].matched == 1 && in->variant == v && in->line == &t->list->line[0];
    for (int j = 0; fired && j < v->n_node; j++)
        fired = r->group_of[g->node[j]] == in->id;
    for (int i = 0; fired && i < r->n_group; i++) /* alone: all others are single */
        fired = &r->group[i] == in || r->group[i].n_node == 1;
    fuse_result_free(r);
    return fired;
}

static void one_fires(sinter_host *host, const struct fuse_table *t, const struct fuse_variant *v,
                      int count[2])
{
    struct generated g;
    sinter_error err;
    count[1]++;
    if (generate_fires(host, t, v, &t->list->line[0], &g, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    bool ok = fires(host, t, v, &g, NULL);
    if (!ok)
        print_message("%s does not fire\n", v->label);
    /* unfused: no group of two */
    struct fuse_result *r = match(host, t, g.graph, &g.key, &(struct fuse_options){0});
    for (int i = 0; i < t->n_single; i++)
        ok &= r->count[i].matched + r->count[i].refused + r->count[i].lost == 0;
    ok &= r->n_group == g.graph->n_node;
    fuse_result_free(r);
    graph_free(g.graph);
    count[0] += ok;
}

static void generated_fire(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    int count[2] = {0};
    each_variant(host, one_fires, count);
    print_message("fusion: %d/%d\n", count[0], count[1]);
    assert_int_equal(count[0], count[1]);
    /* single ops too */
    struct mock m = {0};
    mock_singles(&m);
    struct fuse_table *t = table_of(host, &m);
    for (int v = t->n_single; v < t->n_variant; v++) {
        struct generated g;
        sinter_error err;
        if (generate_fires(host, t, &t->variant[v], NULL, &g, &err) != SINTER_OK)
            fail_msg("%s", err.message);
        struct fuse_result *r = match(host, t, g.graph, &g.key, NULL);
        check_result(g.graph, r);
        const struct group *in = &r->group[r->group_of[g.node[0]]];
        assert_ptr_equal(in->variant, &t->variant[v]);
        fuse_result_free(r);
        graph_free(g.graph);
    }
    fuse_table_free(t);
    sinter_host_free(host);
}

static void one_near_miss(sinter_host *host, const struct fuse_table *t,
                          const struct fuse_variant *v, int count[2])
{
    const struct fuse_line *line = &t->list->line[0];
    struct need all[12];
    for (int n = 0; n < generate_all_needs(v, line, all); n++) {
        struct need need = all[n];
        struct generated g;
        struct text_buf b;
        sinter_error err;
        if (!generate_speaks(v, &need))
            continue;
        if (need.kind == NEED_same_type && v->n_node < 2)
            continue;
        count[1]++;
        if (generate_near_miss(host, t, v, line, n, &g, &err) != SINTER_OK)
            fail_msg("%s", err.message);
        struct fuse_result *r = match(host, t, g.graph, &g.key, NULL);
        bool noted = false;
        for (int i = 0; i < r->n_note; i++)
            noted |= r->note[i].variant == v && r->note[i].node == g.node[0] &&
                     r->note[i].why == FUSE_NEED && need_is_kind(&r->note[i].need, &need);
        bool ok = noted && r->count[v->id].matched == 0 && r->count[v->id].refused == 1;
        fuse_result_free(r);
        text_buf_init(&b, host);
        text_buf_printf(&b, "%s.", v->label);
        need_print(&need, &b);
        assert_int_equal(text_buf_end(&b, &err), SINTER_OK);
        ok &= fires(host, t, v, &g, b.text); /* this need alone kept it off */
        if (!ok)
            print_message("near miss of %s: noted %d\n", b.text, noted);
        text_buf_free(&b);
        graph_free(g.graph);
        count[0] += ok;
    }
}

static void needs_missed(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    int count[2] = {0};
    each_variant(host, one_near_miss, count);
    print_message("needs %d/%d\n", count[0], count[1]);
    assert_int_equal(count[0], count[1]);
    sinter_host_free(host);
}

static void one_leak(sinter_host *host, const struct fuse_table *t, const struct fuse_variant *v,
                     int count[2])
{
    for (int s = 0; s < v->n_slot; s++) {
        struct generated g;
        sinter_error err;
        if (!v->slot[s].inner || v->slot[s].leaves)
            continue;
        sinter_status status = generate_leak(host, t, v, &t->list->line[0], s, &g, &err);
        if (status == SINTER_E_INTERNAL && strstr(err.message, "of another kind"))
            continue; /* a score is no port */
        if (status != SINTER_OK)
            fail_msg("%s", err.message);
        count[1]++;
        struct fuse_result *r = match(host, t, g.graph, &g.key, NULL);
        check_result(g.graph, r);
        bool ok = r->count[v->id].matched == 0, noted = false;
        for (int i = 0; i < r->n_note; i++)
            noted |= r->note[i].variant == v && r->note[i].why == FUSE_LEAKS &&
                     r->note[i].at == g.value[s];
        /* where a smaller variant took its place, there is no note */
        noted |= r->group[r->group_of[g.node[0]]].n_node > 1;
        if (!ok || !noted)
            print_message("leak of %s slot %d: matched %d, noted %d\n", v->label, s, !ok, noted);
        fuse_result_free(r);
        graph_free(g.graph);
        count[0] += ok && noted;
    }
}

static void leaks(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    int count[2] = {0};
    each_variant(host, one_leak, count);
    print_message("leaks %d/%d\n", count[0], count[1]);
    assert_int_equal(count[0], count[1]);
    sinter_host_free(host);
}

static void one_commuted(sinter_host *host, const struct fuse_table *t,
                         const struct fuse_variant *v, int count[2])
{
    for (int j = 0; j < v->n_node; j++) {
        struct generated g;
        sinter_error err;
        if (!op_row(v->node[j].op)->commutes)
            continue;
        sinter_status status = generate_commuted(host, t, v, &t->list->line[0], j, &g, &err);
        if (status == SINTER_E_DATA || status == SINTER_E_INTERNAL)
            continue; /* a weight is no operand 0 */
        count[1]++;
        bool ok = fires(host, t, v, &g, NULL);
        if (!ok)
            print_message("%s with node %d commuted does not fire\n", v->label, j);
        graph_free(g.graph);
        count[0] += ok;
    }
}

static void commuted(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    int count[2] = {0};
    each_variant(host, one_commuted, count);
    print_message("commuted %d/%d\n", count[0], count[1]);
    assert_int_equal(count[0], count[1]);
    assert_true(count[1] > 20);
    sinter_host_free(host);
}

/* ---- Random graphs against a naive matcher -------------------------------------------------- */

struct naive {
    const struct fuse_table *t;
    const struct graph *g;
    const struct fuse_key *key;
    bool edge[64][64]; /* must come before, between nodes */
    int group_of[64];  /* -1: free */
    int n_group;
    const struct fuse_variant *variant[64];
};

static int naive_value(const struct naive *n, const struct group *c, int slot, int upto)
{
    int value = -1;
    for (int j = 0; j < upto; j++) {
        const struct fuse_var_node *vn = &c->variant->node[j];
        for (int o = 0; o < vn->n_out; o++)
            if (vn->out[o] == slot)
                value = n->g->node[c->node[j]].out[o];
    }
    return value;
}

/* Contracts all groups and the candidate, and looks for a cycle in the transitive closure. */
static bool naive_acyclic(const struct naive *n, const struct group *c)
{
    static bool reach[64][64];
    int id[64], n_id = n->g->n_node;
    for (int k = 0; k < n->g->n_node; k++)
        id[k] = n->group_of[k] >= 0 ? n->group_of[k] : k;
    for (int j = 0; j < c->n_node; j++)
        id[c->node[j]] = c->node[0];
    memset(reach, 0, sizeof reach);
    for (int a = 0; a < n_id; a++)
        for (int b = 0; b < n_id; b++)
            if (n->edge[a][b] && id[a] != id[b])
                reach[id[a]][id[b]] = true;
    for (int k = 0; k < n_id; k++)
        for (int a = 0; a < n_id; a++)
            for (int b = 0; b < n_id; b++)
                reach[a][b] |= reach[a][k] && reach[k][b];
    for (int a = 0; a < n_id; a++)
        if (reach[a][a])
            return false;
    return true;
}

/* All operand orders are tried by brute force over 2^n_node swaps. */
static bool naive_bound(const struct naive *n, struct group *c, unsigned swaps)
{
    const struct fuse_variant *v = c->variant;
    for (int s = 0; s < v->n_slot; s++)
        c->value[s] = naive_value(n, c, s, v->n_node);
    for (int j = 0; j < v->n_node; j++) {
        const struct node *gn = &n->g->node[c->node[j]];
        bool swap = swaps >> j & 1;
        if (gn->n_in != v->node[j].n_in || (swap && !op_row(gn->op)->commutes))
            return false;
        for (int i = 0; i < gn->n_in; i++) {
            int have = gn->in[swap && i < 2 ? 1 - i : i], *want = &c->value[v->node[j].in[i]];
            if (*want < 0)
                *want = have;
            if (*want != have)
                return false;
        }
    }
    return true;
}

static bool naive_closed(const struct naive *n, const struct group *c)
{
    const struct fuse_variant *v = c->variant;
    for (int s = 0; s < v->n_slot; s++) {
        const struct value *value = &n->g->value[c->value[s]];
        bool member = false, outside = value->port != 0, read = false;
        for (int j = 0; j < c->n_node; j++)
            member |= value->node == c->node[j];
        if (v->slot[s].input && member)
            return false;
        for (int j = 0; j < v->n_node; j++)
            for (int i = 0; i < v->node[j].n_in; i++)
                read |= v->node[j].in[i] == s;
        for (int r = 0; r < value->n_reader; r++) {
            bool in = false;
            for (int j = 0; j < c->n_node; j++)
                in |= value->reader[r] == c->node[j];
            outside |= !in;
        }
        bool may = value->kind == VALUE_STATE;
        for (int j = 0; j < v->n_node; j++)
            for (int o = 0; o < v->node[j].n_out; o++)
                may |= v->node[j].out[o] == s && v->node[j].leaves;
        if (!v->slot[s].input && read && outside && !may)
            return false;
    }
    return true;
}

static bool naive_accepts(const struct naive *n, struct group *c, const struct fuse_line *line)
{
    for (unsigned swaps = 0; swaps < 1u << c->variant->n_node; swaps++) {
        if (!naive_bound(n, c, swaps) || !naive_closed(n, c))
            continue;
        bool ok = true;
        for (int i = 0; i < 6; i++) {
            const struct need *a = &c->variant->row->need[i], *b = &line->need[i];
            ok &= a->kind == NEED_NONE || need_holds(a, n->g, c, n->key);
            ok &= b->kind == NEED_NONE || need_holds(b, n->g, c, n->key);
        }
        if (ok && naive_acyclic(n, c))
            return true;
    }
    return false;
}

/* May the graph's node k be the variant's node j, by its op and by what is made inside? */
static bool naive_may(const struct naive *n, const struct group *c, int j, int k)
{
    const struct fuse_var_node *vn = &c->variant->node[j];
    const struct node *gn = &n->g->node[k];
    if (gn->op != vn->op || n->group_of[k] >= 0)
        return false;
    for (int i = 0; i < j; i++)
        if (c->node[i] == k)
            return false;
    if (j && vn->rep > 0 && c->variant->row->node[vn->row_node].repeat[1] && k < c->node[j - 1])
        return false;
    for (int i = 0; i < vn->n_in; i++) {
        int made = naive_value(n, c, vn->in[i], j), q = 0;
        while (made >= 0 && q < gn->n_in && gn->in[q] != made)
            q++;
        if (made >= 0 && q == gn->n_in)
            return false;
    }
    return true;
}

/* Node tuples in lexicographic order; the first that is accepted. */
static bool naive_tuple(const struct naive *n, struct group *c, int j, const struct fuse_line *line)
{
    if (j == c->variant->n_node)
        return naive_accepts(n, c, line);
    int first = j ? 0 : c->node[0], end = j ? n->g->n_node : first + 1;
    for (int k = first; k < end; k++) {
        if (!naive_may(n, c, j, k))
            continue;
        c->node[j] = k;
        if (naive_tuple(n, c, j + 1, line))
            return true;
    }
    return false;
}

static void naive_run(struct naive *n)
{
    for (int k = 0; k < n->g->n_node; k++)
        n->group_of[k] = -1;
    memset(n->edge, 0, sizeof n->edge);
    for (int k = 0; k < n->g->n_node; k++) {
        int pred[64], n_pred = graph_preds(n->g, k, pred, 64);
        for (int p = 0; p < n_pred; p++)
            n->edge[pred[p]][k] = true;
    }
    for (int l = 0; l < n->t->list->n_line; l++)
        for (int size = FUSE_MAX_NODE; size > 1; size--)
            for (int k = 0; k < n->g->n_node; k++)
                for (int v = 0; v < n->t->of_line[l].n; v++) {
                    struct group c = {.variant = &n->t->variant[n->t->of_line[l].first + v]};
                    c.n_node = c.variant->n_node;
                    c.node[0] = k;
                    if (c.n_node != size || !naive_tuple(n, &c, 0, &n->t->list->line[l]))
                        continue;
                    for (int j = 0; j < size; j++) {
                        n->group_of[c.node[j]] = k; /* its anchor names it */
                        n->variant[k] = c.variant;
                    }
                }
}

static uint64_t rng(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

struct random {
    struct graph *g;
    uint64_t s;
    int act[64], n_act, vec[2], mat[3], slot[2], table;
    char name[32];
};

static const char *random_name(struct random *r, const char *what, int i)
{
    snprintf(r->name, sizeof r->name, "%s%d", what, i);
    return r->name;
}

static int random_weight(struct random *r, const char *what, int i, int tensor, int n_row)
{
    struct weight_slice slice = {tensor, 0, n_row, n_row, 1, 1, 0, 0};
    return graph_weight(r->g, random_name(r, what, i), slice, QUANT_F32, n_row, 8);
}

static int random_pick(struct random *r, int n)
{
    return (int)(rng(&r->s) % (uint64_t)n);
}

static void random_inputs(struct random *r)
{
    struct state_slot slot = {.kind = SLOT_KV, .n_head_kv = 1, .d_k = 8, .d_v = 8};
    union attr at = {.ROPE_TABLE = {8, 1e4f, 1}};
    int ids = graph_input(r->g, PORT_IDS), pos = graph_input(r->g, PORT_POS);
    for (int i = 0; i < 3; i++) {
        r->mat[i] = random_weight(r, "m", i, i, 8);
        int e = random_weight(r, "e", i, i + 5, 9);
        r->act[r->n_act++] =
            graph_add(r->g, random_name(r, "x", i), OP_EMBED, ATTR_NONE, 2, (int[]){e, ids});
    }
    for (int i = 0; i < 2; i++) {
        r->vec[i] = random_weight(r, "v", i, i + 3, 1);
        r->slot[i] = graph_slot(r->g, random_name(r, "s", i), slot);
    }
    r->table = graph_add(r->g, "table", OP_ROPE_TABLE, at, 1, (int[]){pos});
}

static void random_node(struct random *r, int i)
{
    static const enum op ops[] = {OP_ADD,      OP_ADD,    OP_ADD,      OP_MUL,  OP_MUL,
                                  OP_RMS_NORM, OP_MATMUL, OP_MATMUL,   OP_SILU, OP_SIN,
                                  OP_SQR,      OP_ROPE,   OP_KV_WRITE, OP_TANH};
    enum op op = ops[random_pick(r, (int)(sizeof ops / sizeof ops[0]))];
    int a = r->act[random_pick(r, 3) ? r->n_act - 1 - random_pick(r, 3) : random_pick(r, r->n_act)];
    int b = r->act[random_pick(r, r->n_act)], q = random_pick(r, 2), in[3] = {a}, n_in = 1;
    union attr at = ATTR_NONE;
    if (op == OP_ADD || op == OP_MUL) {
        in[n_in++] = random_pick(r, 3) == 0 ? r->vec[q] : b;
        if (in[1] == b && random_pick(r, 2)) {
            in[0] = b;
            in[1] = a;
        }
    } else if (op == OP_MATMUL) {
        in[n_in++] = r->mat[random_pick(r, 3)];
        at.MATMUL.n_head = 1;
    } else if (op == OP_ROPE) {
        in[n_in++] = r->table;
    } else if (op == OP_KV_WRITE) {
        in[0] = r->slot[q];
        in[1] = a;
        in[2] = b;
        n_in = 3;
    }
    int y = graph_add(r->g, random_name(r, "n", i), op, at, n_in, in);
    if (op == OP_KV_WRITE)
        r->slot[q] = y;
    else
        r->act[r->n_act++] = y;
}

/* What nobody reads goes into the states, and every weight is read at least once. */
static void random_end(struct random *r)
{
    struct graph *g = r->g;
    for (int v = 0; v < r->n_act; v++) {
        bool read = v < 2;
        for (int k = 0; k < g->n_node && v >= 2; k++)
            for (int i = 0; i < g->node[k].n_in; i++)
                read |= g->node[k].in[i] == r->act[v];
        int in[3] = {r->slot[v & 1], r->act[v], r->act[v]};
        if (!read || v < 2)
            r->slot[v & 1] = graph_add(g, random_name(r, "end", v), OP_KV_WRITE, ATTR_NONE, 3, in);
    }
    int y = graph_add(g, "all_v0", OP_ADD, ATTR_NONE, 2, (int[]){r->act[0], r->vec[0]});
    y = graph_add(g, "all_v1", OP_MUL, ATTR_NONE, 2, (int[]){y, r->vec[1]});
    y = graph_add(g, "all_t", OP_ROPE, ATTR_NONE, 2, (int[]){y, r->table});
    for (int i = 0; i < 3; i++) {
        union attr one = {.MATMUL = {1}};
        y = graph_add(g, random_name(r, "all_m", i), OP_MATMUL, one, 2, (int[]){y, r->mat[i]});
    }
    graph_port(g, y, PORT_HIDDEN);
}

/* Up to 60 nodes that like to make the rows' shapes, and near misses of them. */
static struct graph *random_graph(sinter_host *host, uint64_t seed)
{
    struct random r = {.s = seed * 0x9e3779b97f4a7c15u + 1};
    sinter_error err;
    assert_int_equal(graph_create(host, "random", &r.g, &err), SINTER_OK);
    for (int i = 0; i < 8; i++)
        rng(&r.s);
    random_inputs(&r);
    int n = 6 + random_pick(&r, 24);
    for (int i = 0; i < n; i++)
        random_node(&r, i);
    random_end(&r);
    if (graph_finish(r.g, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    return r.g;
}

static const struct fuse_row random_rows[] = {
    /* more ways to leave and to make cycles */
    {"leave", {{{ADD}, {X, R}, {A}, .leaves = true}, {{MUL}, {A, W}, {Y}}}},
    {"square",
     {{{MUL}, {X, R}, {A}, .leaves = true},
      {{ADD}, {A, X}, {Y}},
      {{SILU}, {Y}, {Y}, .optional = 1}}},
    {"fork",
     {{{MATMUL}, {X, EACH(W)}, {EACH(Y)}, .repeat = {2, 4}},
      {{ADD}, {EACH(Y), EACH(R)}, {EACH(Y)}}}},
    {"three", {{{ADD}, {X, EACH(Y)}, {X}, .repeat = {3, 3}, .leaves = true}}},
};

static int compare_naive(sinter_host *host, const struct fuse_table *t, uint64_t seed, int *n_fused)
{
    struct graph *g = random_graph(host, seed);
    struct fuse_key key = {1, 4, 2, 2};
    assert_true(g->n_node <= 64);
    struct naive n = {.t = t, .g = g, .key = &key};
    naive_run(&n);
    struct fuse_result *r = match(host, t, g, &key, NULL);
    check_result(g, r);
    bool same = true;
    for (int k = 0; k < g->n_node; k++) {
        const struct group *in = &r->group[r->group_of[k]];
        int anchor = in->n_node > 1 ? in->node[0] : -1;
        same &= anchor == n.group_of[k] && (anchor < 0 || n.variant[anchor] == in->variant);
        *n_fused += anchor == k;
    }
    if (!same)
        print_message("seed %d: groups differ from the naive ones\n", (int)seed);
    fuse_result_free(r);
    graph_free(g);
    return same;
}

static void random_graphs(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    int n_same = 0, n = 0, n_fused = 0;
    for (int set = 0; set < 4; set++) {
        struct mock m = {0};
        const struct fuse_row *rows = set < 2 ? fuse_rows : random_rows;
        int n_row = set < 2 ? fuse_n_row : (int)(sizeof random_rows / sizeof random_rows[0]);
        for (int r = 0; r < n_row; r++)
            mock_add(&m, rows[set % 2 ? n_row - 1 - r : r].name);
        mock_singles(&m);
        struct fuse_table *t;
        sinter_error err;
        if (fuse_table_create_rows(host, rows, n_row, &m.list, &t, &err) != SINTER_OK)
            fail_msg("%s", err.message);
        for (uint64_t seed = 1; seed <= 150; seed++, n++)
            n_same += compare_naive(host, t, seed, &n_fused);
        fuse_table_free(t);
    }
    print_message("random graphs: %d/%d as the naive matcher, %d groups\n", n_same, n, n_fused);
    assert_int_equal(n_same, n);
    assert_true(n_fused > n);
    sinter_host_free(host);
}

/* ---- Order ---------------------------------------------------------------------------------- */

/* Groups in this order, members together: is it legal for the nodes? Within a group any order of
 * its members that is legal exists, as contraction is acyclic; graph order is one. */
static bool order_is_legal(const struct graph *g, const struct fuse_result *r, const int *order)
{
    int at[512], where = 0;
    for (int i = 0; i < r->n_group; i++)
        at[order[i]] = where++;
    for (int k = 0; k < g->n_node; k++) {
        int pred[256], n = graph_preds(g, k, pred, 256);
        assert_true(n <= 256);
        for (int p = 0; p < n; p++)
            if (r->group_of[pred[p]] != r->group_of[k] &&
                at[r->group_of[pred[p]]] > at[r->group_of[k]])
                return false;
    }
    for (int v = 0; v < g->n_value; v++) /* score loops stay together */
        if (g->value[v].kind == VALUE_SCORE &&
            r->group_of[g->value[v].node] != r->group_of[g->value[v].reader[0]] &&
            at[r->group_of[g->value[v].node]] + 1 != at[r->group_of[g->value[v].reader[0]]])
            return false;
    return true;
}

static void orders(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    struct mock m = {0};
    for (int r = 0; r < fuse_n_row; r++)
        mock_add(&m, fuse_rows[r].name);
    mock_singles(&m);
    struct fuse_table *t = table_of(host, &m);
    struct fuse_key key = {1, 512, 8, 4};
    int n = 0, n_ok = 0, n_moved = 0;
    for (int which = 0; which < FIXTURE_N; which++)
        for (int fusion = 0; fusion < 2; fusion++) {
            sinter_error err;
            struct graph *g = fixture_graph(host, which);
            struct fuse_options o = {.fusion = fusion};
            struct fuse_result *r = match(host, t, g, &key, &o);
            check_result(g, r);
            int order[512];
            for (uint64_t seed = 0; seed < 50; seed++, n++) {
                assert_int_equal(fuse_order(r, g, seed, order, &err), SINTER_OK);
                n_ok += order_is_legal(g, r, order);
                for (int i = 1; i < r->n_group; i++)
                    n_moved += order[i] < order[i - 1];
                if (fusion == 0) { /* groups are nodes */
                    int nodes[512];
                    for (int i = 0; i < r->n_group; i++)
                        nodes[i] = r->group[order[i]].node[0];
                    assert_true(graph_order_ok(g, nodes));
                }
            }
            fuse_result_free(r);
            graph_free(g);
        }
    print_message("orders: %d/%d legal, groups whole\n", n_ok, n);
    assert_int_equal(n_ok, n);
    assert_true(n_moved > n);
    fuse_table_free(t);
    sinter_host_free(host);
}

/* ---- Cycles, bans, options, statistics ------------------------------------------------------ */

static int op2(struct graph *g, const char *name, enum op op, int a, int b)
{
    return graph_add(g, name, op, ATTR_NONE, b >= 0 ? 2 : 1, (int[]){a, b});
}

static int embed(struct graph *g, const char *name, int tensor, int ids)
{
    char w[32];
    snprintf(w, sizeof w, "%s.w", name);
    int e = graph_weight(g, w, (struct weight_slice){tensor, 0, 9, 9, 1, 1, 0, 0}, QUANT_F32, 9, 8);
    return op2(g, name, OP_EMBED, e, ids);
}

static struct fuse_result *match_rows(sinter_host *host, const struct fuse_row *rows, int n_row,
                                      struct mock *m, struct fuse_table **t, struct graph *g)
{
    sinter_error err;
    if (graph_finish(g, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    *m = (struct mock){0};
    for (int i = 0; i < n_row; i++)
        mock_add(m, rows[i].name);
    mock_singles(m);
    assert_int_equal(fuse_table_create_rows(host, rows, n_row, &m->list, t, &err), SINTER_OK);
    struct fuse_key key = {1, 1, 1, 1};
    struct fuse_result *r = match(host, *t, g, &key, NULL);
    check_result(g, r);
    return r;
}

static int n_why(const struct fuse_result *r, enum fuse_why why)
{
    int n = 0;
    for (int i = 0; i < r->n_note; i++)
        n += r->note[i].why == why;
    return n;
}

static void cycles(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    struct fuse_table *t;
    struct mock m;
    struct graph *g;
    sinter_error err;
    /* a way out of the group and back in: y = a * tanh(a) */
    assert_int_equal(graph_create(host, "out_and_in", &g, &err), SINTER_OK);
    int ids = graph_input(g, PORT_IDS);
    int a = op2(g, "a", OP_ADD, embed(g, "x", 0, ids), embed(g, "r", 1, ids));
    graph_port(g, op2(g, "y", OP_MUL, a, op2(g, "t", OP_TANH, a, -1)), PORT_HIDDEN);
    struct fuse_result *r = match_rows(host, random_rows, 1, &m, &t, g);
    assert_int_equal(r->n_group, g->n_node);
    assert_int_equal(n_why(r, FUSE_CYCLE), 1);
    assert_int_equal(r->count[0].refused, 1);
    fuse_result_free(r);
    fuse_table_free(t);
    graph_free(g);
    /* two groups, each legal alone */
    assert_int_equal(graph_create(host, "crossed", &g, &err), SINTER_OK);
    ids = graph_input(g, PORT_IDS);
    int x = embed(g, "x", 0, ids), y = embed(g, "y", 1, ids);
    int p = op2(g, "p", OP_ADD, x, y), q = op2(g, "q", OP_ADD, x, embed(g, "z", 2, ids));
    int p2 = op2(g, "p2", OP_MUL, p, q), q2 = op2(g, "q2", OP_MUL, q, p);
    graph_port(g, p2, PORT_HIDDEN);
    graph_port(g, q2, PORT_LOGITS);
    r = match_rows(host, random_rows, 1, &m, &t, g);
    assert_int_equal(r->count[0].matched, 1);
    assert_int_equal(r->group_of[g->value[p].node], r->group_of[g->value[p2].node]);
    assert_int_not_equal(r->group_of[g->value[q].node], r->group_of[g->value[q2].node]);
    fuse_result_free(r);
    fuse_table_free(t);
    graph_free(g);
    sinter_host_free(host);
}

/* The same over the edge rule of states: a second reader of the version, behind the first. */
static void cycles_of_states(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    struct fuse_table *t;
    struct mock m;
    struct graph *g;
    sinter_error err;
    const struct fuse_row *conv = NULL;
    for (int i = 0; i < fuse_n_row; i++)
        if (strcmp(fuse_rows[i].name, "conv_state") == 0)
            conv = &fuse_rows[i];
    for (int second = 0; second < 2; second++) {
        assert_int_equal(graph_create(host, "state", &g, &err), SINTER_OK);
        int x = embed(g, "x", 0, graph_input(g, PORT_IDS));
        int w =
            graph_weight(g, "w", (struct weight_slice){1, 0, 8, 8, 1, 1, 0, 0}, QUANT_F32, 8, 4);
        int s = graph_slot(g, "s",
                           (struct state_slot){.kind = SLOT_REC, .n_row = 3, .d = 8, .n_snap = 1});
        union attr at = {.CONV1D = {1}};
        int y = graph_add(g, "conv", OP_CONV1D, at, 3, (int[]){x, w, s});
        int last = y;
        if (second)
            last = graph_add(g, "conv2", OP_CONV1D, at, 3, (int[]){y, w, s});
        op2(g, "write", OP_STATE_WRITE, s, graph_out(g, y, 1));
        graph_port(g, last, PORT_HIDDEN);
        struct fuse_result *r = match_rows(host, conv, 1, &m, &t, g);
        assert_int_equal(r->count[0].matched, second ? 0 : 1);
        assert_int_equal(n_why(r, FUSE_CYCLE), second);
        fuse_result_free(r);
        fuse_table_free(t);
        graph_free(g);
    }
    sinter_host_free(host);
}

static const struct {
    const char *disable, *ignore, *says;
} bad_options[] = {
    {"ADD*9", NULL, "did you mean ADD*"},
    {"ADD", NULL, "single operation"},
    {NULL, "MATMUL+ADD", "write LABEL.need"},
    {NULL, "MATMUL+AD.same_row:Y,R", "did you mean MATMUL+ADD"},
    {NULL, "MATMUL+ADD.same_row:Y,X", "has no need same_row:Y,X"},
    {NULL, "MATMUL+ADD.same_row:Y,R,ADD*2.rows", "has no need rows"},
};

static void bans_and_options(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    struct mock m = {0};
    mock_add(&m, "adds");
    mock_add(&m, "matmul_add");
    mock_singles(&m);
    struct fuse_table *t = table_of(host, &m);
    const struct fuse_variant *v = fuse_variant_find(t, "ADD*3");
    struct generated g;
    sinter_error err;
    assert_int_equal(generate_fires(host, t, v, NULL, &g, &err), SINTER_OK);
    /* a ban on the first anchor: the rest of the chain is taken from the next one */
    struct fuse_ban ban[2] = {{&m.line[0], g.node[0]}, {&m.line[0], g.node[1]}};
    struct fuse_result *r;
    assert_int_equal(fuse_match(host, t, g.graph, &g.key, &all_on, ban, 1, true, &r, &err),
                     SINTER_OK);
    assert_int_equal(r->count[v->id].matched, 0);
    assert_int_equal(r->count[fuse_variant_find(t, "ADD*2")->id].matched, 1);
    assert_int_equal(r->count[v->id].refused, 1);
    assert_true(n_why(r, FUSE_BANNED) > 0);
    fuse_result_free(r);
    /* a ban of a node's only line leaves it without one */
    int add_line = -1;
    for (int l = 0; l < m.list.n_line; l++)
        if (strcmp(m.line[l].row, "ADD") == 0)
            add_line = l;
    struct fuse_ban single = {&m.line[add_line], g.node[0]};
    struct fuse_options off = {0};
    assert_int_equal(fuse_match(host, t, g.graph, &g.key, &off, &single, 1, false, &r, &err),
                     SINTER_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "cannot run ADD at "));
    assert_null(r);
    /* labels */
    struct fuse_options o = {.fusion = true, .disable = "ADD*3, MATMUL+ADD"};
    r = match(host, t, g.graph, &g.key, &o);
    assert_int_equal(r->count[v->id].matched + r->count[v->id].refused, 0);
    assert_int_equal(r->count[fuse_variant_find(t, "ADD*2")->id].matched, 1);
    fuse_result_free(r);
    for (size_t i = 0; i < sizeof bad_options / sizeof bad_options[0]; i++) {
        o = (struct fuse_options){true, bad_options[i].disable, bad_options[i].ignore, NULL};
        assert_int_equal(fuse_match(host, t, g.graph, &g.key, &o, NULL, 0, false, &r, &err),
                         SINTER_E_USAGE);
        if (!strstr(err.message, bad_options[i].says))
            fail_msg("wanted \"%s\", is \"%s\"", bad_options[i].says, err.message);
    }
    graph_free(g.graph);
    fuse_table_free(t);
    sinter_host_free(host);
}

/* A node that no line takes names op, node, backend and need. */
static void no_line(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    struct mock m = {0};
    mock_singles(&m);
    for (int l = 0; l < m.list.n_line; l++)
        if (strcmp(m.line[l].row, "MUL") == 0)
            m.line[l].need[0] = (struct need)NEED_VECTOR(V);
    struct fuse_table *t = table_of(host, &m);
    const struct fuse_variant *v = fuse_variant_find(t, "MUL");
    const struct fuse_line *line = NULL;
    for (int l = 0; l < m.list.n_line; l++)
        if (strcmp(m.line[l].row, "MUL") == 0)
            line = &m.line[l];
    struct generated g;
    struct fuse_result *r;
    sinter_error err;
    assert_int_equal(generate_fires(host, t, v, line, &g, &err), SINTER_OK);
    fuse_result_free(match(host, t, g.graph, &g.key, NULL));
    graph_free(g.graph);
    assert_int_equal(generate_near_miss(host, t, v, line, 0, &g, &err), SINTER_OK);
    assert_int_equal(fuse_match(host, t, g.graph, &g.key, &all_on, NULL, 0, false, &r, &err),
                     SINTER_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "backend mock cannot run MUL at "));
    assert_non_null(strstr(err.message, "needs vector:V"));
    graph_free(g.graph);
    fuse_table_free(t);
    m.list.n_line--; /* ARGMAX has no line */
    t = table_of(host, &m);
    assert_int_equal(generate_fires(host, t, fuse_variant_find(t, "ARGMAX"), NULL, &g, &err),
                     SINTER_OK);
    assert_int_equal(fuse_match(host, t, g.graph, &g.key, &all_on, NULL, 0, false, &r, &err),
                     SINTER_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "has no line for the op"));
    graph_free(g.graph);
    fuse_table_free(t);
    sinter_host_free(host);
}

static void statistics(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    struct mock m = {0};
    mock_add(&m, "matmul_add");
    mock_singles(&m);
    struct fuse_table *t = table_of(host, &m);
    struct fuse_stats *s;
    struct generated g;
    sinter_error err;
    const struct fuse_variant *v = fuse_variant_find(t, "MATMUL+ADD");
    assert_int_equal(fuse_stats_create(host, t, &s, &err), SINTER_OK);
    assert_int_equal(generate_fires(host, t, v, NULL, &g, &err), SINTER_OK);
    struct fuse_options o = {.fusion = true, .stats = s};
    struct fuse_result *r = match(host, t, g.graph, &g.key, &o);
    fuse_stats_add_plan(s, r);
    fuse_stats_executed(s, &r->group[r->group_of[g.node[0]]]);
    fuse_stats_executed(s, &r->group[r->group_of[g.node[0]]]);
    fuse_result_free(r);
    assert_int_equal(fuse_stats_get(s, v->id).matched, 1);
    assert_int_equal(fuse_stats_get(s, v->id).executed, 2);
    struct text_buf b;
    text_buf_init(&b, host);
    fuse_stats_print(s, false, &b, true);
    fuse_stats_print(s, false, &b, false);
    assert_int_equal(text_buf_end(&b, &err), SINTER_OK);
    assert_non_null(strstr(b.text, "[{\"label\":\"MATMUL+ADD\",\"matched\":1,\"refused\":0,"
                                   "\"lost\":0,\"executed\":2}]"));
    text_buf_free(&b);
    fuse_stats_reset(s);
    assert_int_equal(fuse_stats_get(s, v->id).executed, 0);
    assert_int_equal(fuse_stats_set_enabled(s, "MATMUL+ADD", false, &err), SINTER_OK);
    r = match(host, t, g.graph, &g.key, &o);
    assert_int_equal(r->count[v->id].matched, 0);
    assert_int_equal(n_why(r, FUSE_DISABLED), 1);
    fuse_result_free(r);
    assert_int_equal(fuse_stats_set_enabled(s, NULL, true, &err), SINTER_OK);
    r = match(host, t, g.graph, &g.key, &o);
    assert_int_equal(r->count[v->id].matched, 1);
    fuse_result_free(r);
    assert_int_equal(fuse_stats_set_enabled(s, "ADD", false, &err), SINTER_E_USAGE);
    assert_int_equal(fuse_stats_set_enabled(s, "MATMUL+ADDD", false, &err), SINTER_E_USAGE);
    assert_true(fuse_stats_enabled(s, v->id));
    graph_free(g.graph);
    fuse_stats_free(s);
    fuse_table_free(t);
    sinter_host_free(host);
}

/* ---- Models --------------------------------------------------------------------------------- */

/* Few rows: the norm takes the residual; many: the matrix does. */
static void mock_cpu(struct mock *m)
{
    static const struct fuse_line few = {
        .row = "add_norm_mul", .bits = BITS_SAME, .need = {NEED_ROWS(X, 0, 4)}};
    mock_add(m, "attention");
    mock_add(m, "gate_up");
    mock_add(m, "siblings");
    mock_add(m, "rope_kv_write");
    mock_add(m, "add_norm_mul");
    m->line[m->list.n_line - 1] = few;
    mock_add(m, "matmul_add");
    mock_add(m, "add_norm_mul");
    mock_add(m, "norm_mul");
    mock_add(m, "matmul_argmax");
    mock_singles(m);
}

static const struct {
    int which;
    bool all;
    int row_hi;
    const char *labels;
} model_cases[] = {
    {FIXTURE_LLAMA, true, 1,
     "EMBED ROPE_TABLE RMS_NORM+MUL MATMUL*3 ROPE ROPE+KV_WRITE QK+SOFTMAX+PV MATMUL "
     "ADD+RMS_NORM+MUL MATMUL*2+SILU+MUL MATMUL ADD+RMS_NORM+MUL MATMUL*3 ROPE ROPE+KV_WRITE "
     "QK+SOFTMAX+PV MATMUL ADD+RMS_NORM+MUL MATMUL*2+SILU+MUL MATMUL ADD+RMS_NORM+MUL "
     "MATMUL+ARGMAX"},
    {FIXTURE_LLAMA, false, 512,
     "EMBED ROPE_TABLE SELECT_TABLE RMS_NORM+MUL MATMUL*3 ROPE ROPE+KV_WRITE QK+SOFTMAX+PV "
     "MATMUL+ADD RMS_NORM+MUL MATMUL*2+SILU+MUL MATMUL+ADD RMS_NORM+MUL SELECT_ROWS "
     "SELECT_ROWS MATMUL MATMUL*2 ROPE ROPE+KV_WRITE QK+SOFTMAX+PV MATMUL+ADD RMS_NORM+MUL "
     "MATMUL*2+SILU+MUL MATMUL+ADD RMS_NORM+MUL MATMUL+ARGMAX"},
    {FIXTURE_QWEN2, true, 1,
     "EMBED ROPE_TABLE RMS_NORM+MUL MATMUL*3+ADD*3 ROPE ROPE+KV_WRITE QK+SOFTMAX+PV MATMUL "
     "ADD+RMS_NORM+MUL MATMUL*2+SILU+MUL MATMUL ADD+RMS_NORM+MUL MATMUL*3+ADD*3 ROPE "
     "ROPE+KV_WRITE QK+SOFTMAX+PV MATMUL ADD+RMS_NORM+MUL MATMUL*2+SILU+MUL MATMUL "
     "ADD+RMS_NORM+MUL MATMUL+ARGMAX"},
    {FIXTURE_GEMMA, true, 1,
     "EMBED ROPE_TABLE SCALE RMS_NORM+MUL MATMUL*3 RMS_NORM+MUL+ROPE RMS_NORM+MUL "
     "ROPE+KV_WRITE QK+SOFTMAX+PV MATMUL RMS_NORM+MUL ADD+RMS_NORM+MUL MATMUL*2+GELU+MUL "
     "MATMUL RMS_NORM+MUL ADD+RMS_NORM+MUL MATMUL*3 RMS_NORM+MUL+ROPE RMS_NORM+MUL "
     "ROPE+KV_WRITE QK+SOFTMAX+PV MATMUL RMS_NORM+MUL ADD+RMS_NORM+MUL MATMUL*2+GELU+MUL "
     "MATMUL RMS_NORM+MUL ADD+RMS_NORM+MUL MATMUL+ARGMAX"},
};

static void models(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    struct mock m = {0};
    mock_cpu(&m);
    struct fuse_table *t = table_of(host, &m);
    for (size_t i = 0; i < sizeof model_cases / sizeof model_cases[0]; i++) {
        struct graph *g = fixture_graph(host, model_cases[i].which), *live;
        struct text_buf b;
        sinter_error err;
        int order[512];
        assert_int_equal(graph_live(g, PORT_ARGMAX, model_cases[i].all, &live, &err), SINTER_OK);
        struct fuse_key key = {1, model_cases[i].row_hi, model_cases[i].row_hi, 1};
        struct fuse_result *r = match(host, t, live, &key, NULL);
        check_result(live, r);
        assert_int_equal(fuse_order(r, live, 0, order, &err), SINTER_OK);
        text_buf_init(&b, host);
        for (int k = 0; k < r->n_group; k++)
            text_buf_printf(&b, "%s%s", k ? " " : "", r->group[order[k]].variant->label);
        assert_int_equal(text_buf_end(&b, &err), SINTER_OK);
        assert_string_equal(b.text, model_cases[i].labels);
        text_buf_free(&b);
        text_buf_init(&b, host);
        fuse_explain_print(t, live, r, &b, false);
        fuse_explain_print(t, live, r, &b, true);
        assert_int_equal(text_buf_end(&b, &err), SINTER_OK);
        if (i == 0) {
            assert_non_null(strstr(b.text, "MATMUL+ADD: lost blk.0.attn_add to ADD+RMS_NORM+MUL"));
            assert_non_null(strstr(b.text, "wanted by MATMUL+ADD from blk.0.attn_out"));
            assert_true(r->count[fuse_variant_find(t, "MATMUL+ADD")->id].lost == 4);
        }
        if (i == 1)
            assert_non_null(strstr(b.text, "    ADD+RMS_NORM+MUL: lost "));
        if (getenv("FUSE_TEST_PRINT"))
            print_message("%s\n", b.text);
        text_buf_free(&b);
        fuse_result_free(r);
        graph_free(live);
        graph_free(g);
    }
    fuse_table_free(t);
    sinter_host_free(host);
}

/* ---- Faults --------------------------------------------------------------------------------- */

static sinter_status whole(sinter_host *host, void *ctx, sinter_error *err)
{
    struct mock m = {0};
    struct fuse_table *t = NULL;
    struct fuse_stats *s = NULL;
    struct fuse_result *r = NULL;
    struct graph *g = fixture_graph_try(host, FIXTURE_QWEN2, err);
    struct fuse_key key = {1, 1, 1, 1};
    struct fuse_options o = {.fusion = true, .ignore_need = "MATMUL+ADD.same_row:Y,R"};
    int order[512];
    (void)ctx;
    mock_cpu(&m);
    sinter_status status = g ? fuse_table_create(host, &m.list, &t, err) : SINTER_E_MEMORY;
    if (status == SINTER_OK)
        status = fuse_stats_create(host, t, &s, err);
    if (status == SINTER_OK)
        status = fuse_match(host, t, g, &key, &o, NULL, 0, true, &r, err);
    if (status == SINTER_OK)
        status = fuse_order(r, g, 7, order, err);
    fuse_result_free(r);
    fuse_stats_free(s);
    fuse_table_free(t);
    graph_free(g);
    return status;
}

static void alloc_faults(void **state)
{
    (void)state;
    assert_true(fault_loop_host("fuse", &(struct fault){0}, FAULT_ALLOC, whole, NULL) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expansion),
        cmocka_unit_test(table_errors),
        cmocka_unit_test(generated_fire),
        cmocka_unit_test(needs_missed),
        cmocka_unit_test(leaks),
        cmocka_unit_test(commuted),
        cmocka_unit_test(random_graphs),
        cmocka_unit_test(orders),
        cmocka_unit_test(cycles),
        cmocka_unit_test(bans_and_options),
        cmocka_unit_test(cycles_of_states),
        cmocka_unit_test(no_line),
        cmocka_unit_test(statistics),
        cmocka_unit_test(models),
        cmocka_unit_test(alloc_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
