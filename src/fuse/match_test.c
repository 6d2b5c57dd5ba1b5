/* Matches of models and of graphs made by hand: which groups, orders of groups, cycles that
 * grouping would make; allocations that fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "fault_loop.h"
#include "fuse/fuse_mock.h"
#include "fuse/fuse_model_fixture.h"
#include "fuse/names.h"

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

/* ---- Cycles ---------------------------------------------------------------------------------- */

/* A sum that others may read too, and its product. */
static const struct fuse_row leave = {"leave",
                                      {{{ADD}, {X, R}, {A}, .leaves = true}, {{MUL}, {A, W}, {Y}}}};

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
    struct fuse_result *r = match_rows(host, &leave, 1, &m, &t, g);
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
    r = match_rows(host, &leave, 1, &m, &t, g);
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
        cmocka_unit_test(orders),           cmocka_unit_test(cycles),
        cmocka_unit_test(cycles_of_states), cmocka_unit_test(models),
        cmocka_unit_test(alloc_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
