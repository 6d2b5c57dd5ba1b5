/* A backend that has no kernel for a matrix's type refuses the graph by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "backend/backend.h"

#include <cmocka.h>

static bool takes_none(enum quant_type type)
{
    (void)type;
    return false;
}

static struct graph *one_matrix(sinter_host *host)
{
    struct graph *g;
    struct weight_slice whole = {.tensor = 0, .n_row = 32, .n_block = 1, .n_mat = 1};
    assert_int_equal(graph_create(host, "one", &g, NULL), SINTER_OK);
    int ids = graph_input(g, PORT_IDS);
    int w = graph_weight(g, "table", whole, QUANT_Q4_0, 32, 32);
    int x = graph_add(g, "x", OP_EMBED, ATTR_NONE, 2, (int[]){w, ids});
    int y = graph_add(g, "y", OP_MATMUL, (union attr){.MATMUL = {.n_head = 1}}, 2, (int[]){x, w});
    graph_port(g, y, PORT_LOGITS);
    sinter_error err = {0};
    if (graph_finish(g, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    return g;
}

static void test_refused(void **state)
{
    (void)state;
    sinter_host *host;
    sinter_error err = {0};
    struct device *d;
    assert_int_equal(sinter_host_create(NULL, &host, NULL), SINTER_OK);
    assert_int_equal(backend_list[0]->open(host, &d, NULL), SINTER_OK);
    struct graph *g = one_matrix(host);
    assert_int_equal(native_refuse(d, g, &err), SINTER_OK);
    struct weight_ops none = *d->kind->weight;
    struct native_kind kind = *d->kind;
    const struct native_kind *was = d->kind;
    none.takes = takes_none;
    kind.weight = &none;
    d->kind = &kind;
    assert_int_equal(native_refuse(d, g, &err), SINTER_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "table is Q4_0"));
    d->kind = was;
    graph_free(g);
    native_close(d);
    assert_int_equal(host_usage(host).n_live, 0);
    sinter_host_free(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
