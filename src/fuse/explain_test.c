/* What explain says of rows that no backend has: here, one that starts at a node whose operands may
 * be other than the row's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "fuse/names.h"

static int add(struct graph *g, const char *name, enum op op, union attr at, int x, int y, int z)
{
    int n = z >= 0 ? 3 : y >= 0 ? 2 : 1;
    return graph_add(g, name, op, at, n, (int[]){x, y, z});
}

static int weight(struct graph *g, const char *name, int tensor, int n_row, int n_col)
{
    struct weight_slice s = {tensor, 0, n_row, n_row, 1, 1, 0, 0};
    return graph_weight(g, name, s, QUANT_F32, n_row, n_col);
}

/* Attention whose softmax has sinks; then x + x * v, which is no x + x. */
static struct graph *sinks(sinter_host *host)
{
    struct graph *g;
    sinter_error err;
    struct state_slot slot = {.kind = SLOT_KV, .n_head_kv = 1, .d_k = 8, .d_v = 8};
    assert_int_equal(graph_create(host, "sinks", &g, &err), SINTER_OK);
    int x = add(g, "x", OP_EMBED, ATTR_NONE, weight(g, "e", 0, 9, 8), graph_input(g, PORT_IDS), -1);
    int kv = add(g, "kv1", OP_KV_WRITE, ATTR_NONE, graph_slot(g, "kv", slot), x, x);
    int c = add(g, "score", OP_QK, (union attr){.QK = {1, 0, 0}}, x, kv, -1);
    c = add(g, "softmax", OP_SOFTMAX, ATTR_NONE, c, weight(g, "sink", 1, 1, 1), -1);
    int y = add(g, "mix", OP_PV, ATTR_NONE, c, kv, -1);
    int z = add(g, "scaled", OP_MUL, ATTR_NONE, x, weight(g, "v", 2, 1, 8), -1);
    y = add(g, "sum", OP_ADD, ATTR_NONE, y, z, -1);
    graph_port(g, add(g, "act", OP_SILU, ATTR_NONE, y, -1, -1), PORT_HIDDEN);
    if (graph_finish(g, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    return g;
}

static void none(const struct call *c)
{
    (void)c;
}

static const struct fuse_row rows[] = {
    {"softmax_pv", {{{SOFTMAX}, {C}, {C}}, {{PV}, {C, S}, {Y}}}},
    {"twice", {{{ADD}, {X, X}, {Y}}, {{SILU}, {Y}, {Y}}}},
};
enum { N_ROW = 2 };

static void first_node(void **state)
{
    sinter_host *host;
    sinter_error err;
    struct fuse_line line[OP_N + N_ROW] = {0};
    struct fuse_list list = {"none", line, 0};
    struct fuse_table *t;
    struct fuse_result *r;
    struct fuse_key key = {1, 4, 4, 1};
    struct fuse_options o = {.fusion = true};
    (void)state;
    assert_int_equal(sinter_host_create(NULL, &host, &err), SINTER_OK);
    for (int i = 0; i < N_ROW; i++)
        line[list.n_line++] = (struct fuse_line){rows[i].name, none, BITS_SAME, SHARE_ROW};
    for (enum op op = OP_NONE + 1; op < OP_N; op++)
        line[list.n_line++] = (struct fuse_line){op_row(op)->name, none, BITS_SAME, SHARE_ROW};
    if (fuse_table_create_rows(host, rows, N_ROW, &list, &t, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    struct graph *g = sinks(host);
    if (fuse_match(host, t, g, &key, &o, NULL, 0, true, &r, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    assert_int_equal(r->count[0].matched + r->count[1].matched, 0);
    for (int json = 0; json < 2; json++) {
        struct text_buf b;
        text_buf_init(&b, host);
        fuse_explain_print(t, g, r, &b, json);
        assert_int_equal(text_buf_end(&b, &err), SINTER_OK);
        const char *says = json ? "{\"label\":\"SOFTMAX+PV\",\"why\":\"broke\"}"
                                : "SOFTMAX+PV: no: its operands are not those";
        if (!strstr(b.text, says) || !strstr(b.text, "ADD+SILU"))
            fail_msg("%s", b.text);
        text_buf_free(&b);
    }
    fuse_result_free(r);
    fuse_table_free(t);
    graph_free(g);
    sinter_host_free(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_node)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
