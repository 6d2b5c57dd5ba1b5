/* Expansion of rows, rules of the table, bans, options, statistics: against a list made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "fuse/fuse_mock.h"
#include "fuse/names.h"
#include "fusion/generate.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expansion),        cmocka_unit_test(table_errors),
        cmocka_unit_test(bans_and_options), cmocka_unit_test(no_line),
        cmocka_unit_test(statistics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
