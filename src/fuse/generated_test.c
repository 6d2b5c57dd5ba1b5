/* For each row, and lines with needs of each kind, graphs made from the row itself: one that fires,
 * one near miss for each need, one leak for each inner value, one for each commuted node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "fuse/fuse_mock.h"
#include "fuse/names.h"
#include "fusion/generate.h"

static bool need_is_kind(const struct need *a, const struct need *b)
{
    return a->kind == b->kind && a->a == b->a && a->b == b->b && a->c == b->c;
}

/* The line of the mock's own for each row, then lines with needs. */
static void mock_needs(struct mock *m)
{
    static const struct fuse_line lines[] = {
        {.row = "matmul_add", .need = {NEED_QUANT(W, QUANT_INT8_X), NEED_COLS(X, 64)}},
        {.row = "matmul_add", .need = {NEED_NARROW(Y, 48)}},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generated_fire),
        cmocka_unit_test(needs_missed),
        cmocka_unit_test(leaks),
        cmocka_unit_test(commuted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
