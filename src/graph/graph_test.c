/* Shape rules hit and missed for every op, the sticking error, the validator, live graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "fault_loop.h"
#include "graph/graph.h"

enum fixture {
    NO,
    IDS,
    POS,
    OUTS,
    X64,
    X64B,
    XHEAD,
    XK,
    XV,
    XOUT,
    TABLE,
    TABLE8,
    TABLE_ODD,
    SCORE,
    KV,
    KV_NEXT,
    KV_WINDOW,
    REC,
    REC_NEXT,
    SNAP,
    BEST_OUT,
    TOP_ID,
    TOP_W,
    X2,
    W_SQ,
    W_ODD,
    W_EXPERT,
    W_VEC64,
    W_VEC16,
    W_VEC4,
    W_ONE,
    W_KERNEL,
    W_VEC8,
    W_EMB,
    N_FIXTURE
};

static sinter_host *host_of(void)
{
    sinter_host *host;
    sinter_error err;
    assert_int_equal(sinter_host_create(NULL, &host, &err), SINTER_OK);
    return host;
}

static int weight(struct graph *g, const char *name, int id, int32_t n_row, int32_t n_col,
                  int n_mat)
{
    return graph_weight(g, name, (struct weight_slice){id, 0, n_row, n_row, 1, n_mat, 0, 0},
                        QUANT_F32, n_row, n_col);
}

static int add(struct graph *g, const char *name, enum op op, union attr at, int a, int b, int c)
{
    int n = c >= 0 ? 3 : b >= 0 ? 2 : 1;
    return graph_add(g, name, op, at, n, (int[]){a, b, c});
}

#define NONE        ((union attr){.word = {0}})
#define AT(op, ...) ((union attr){.op = {__VA_ARGS__}})

static void fill(struct graph *g, int v[N_FIXTURE])
{
    v[NO] = -1;
    v[IDS] = graph_input(g, PORT_IDS);
    v[POS] = graph_input(g, PORT_POS);
    v[OUTS] = graph_input(g, PORT_OUT_ROWS);
    v[W_SQ] = weight(g, "w_sq", 0, 64, 64, 1);
    v[W_ODD] = weight(g, "w_odd", 1, 32, 48, 1);
    v[W_EXPERT] = weight(g, "w_expert", 2, 32, 64, 8);
    v[W_VEC64] = weight(g, "w_vec64", 3, 1, 64, 1);
    v[W_VEC16] = weight(g, "w_vec16", 4, 1, 16, 1);
    v[W_VEC4] = weight(g, "w_vec4", 5, 1, 4, 1);
    v[W_ONE] = weight(g, "w_one", 6, 1, 1, 1);
    v[W_KERNEL] = weight(g, "w_kernel", 7, 64, 4, 1);
    v[W_VEC8] = weight(g, "w_vec8", 8, 1, 8, 1);
    v[W_EMB] = weight(g, "w_emb", 9, 100, 64, 1);
    int w_k = weight(g, "w_k", 10, 32, 64, 1), w_v = weight(g, "w_v", 11, 16, 64, 1);
    int w_r = weight(g, "w_router", 12, 8, 64, 1);
    v[X64] = add(g, "x64", OP_EMBED, NONE, v[W_EMB], v[IDS], -1);
    v[X64B] = add(g, "x64b", OP_SILU, NONE, v[X64], -1, -1);
    v[XHEAD] = add(g, "xhead", OP_MATMUL, AT(MATMUL, 4), v[X64], v[W_SQ], -1);
    v[XK] = add(g, "xk", OP_MATMUL, AT(MATMUL, 2), v[X64], w_k, -1);
    v[XV] = add(g, "xv", OP_MATMUL, AT(MATMUL, 2), v[X64], w_v, -1);
    v[XOUT] = add(g, "xout", OP_SELECT_ROWS, NONE, v[X64], v[OUTS], -1);
    v[TABLE] = add(g, "table", OP_ROPE_TABLE, AT(ROPE_TABLE, 16, 1e4f, 1), v[POS], -1, -1);
    v[TABLE8] = add(g, "table8", OP_ROPE_TABLE, AT(ROPE_TABLE, 8, 1e4f, 1), v[POS], -1, -1);
    v[TABLE_ODD] = add(g, "table32", OP_ROPE_TABLE, AT(ROPE_TABLE, 32, 1e4f, 1), v[POS], -1, -1);
    v[KV] = graph_slot(g, "kv", (struct state_slot){SLOT_KV, 0, 2, 16, 8, 0, 0, 0, 0});
    v[KV_NEXT] = add(g, "kv1", OP_KV_WRITE, NONE, v[KV], v[XK], v[XV]);
    v[KV_WINDOW] = graph_slot(g, "kvw", (struct state_slot){SLOT_KV, 1, 2, 16, 8, 32, 0, 0, 0});
    v[KV_WINDOW] = add(g, "kvw1", OP_KV_WRITE, NONE, v[KV_WINDOW], v[XK], v[XV]);
    v[SCORE] = add(g, "score", OP_QK, AT(QK, 1, 0, 0), v[XHEAD], v[KV_NEXT], -1);
    v[REC] = graph_slot(g, "rec", (struct state_slot){SLOT_REC, 0, 0, 0, 0, 0, 3, 64, 2});
    v[SNAP] = add(g, "conv", OP_CONV1D, AT(CONV1D, 2), v[X64], v[W_KERNEL], v[REC]);
    v[SNAP] = graph_out(g, v[SNAP], 1);
    v[REC_NEXT] = add(g, "rec1", OP_STATE_WRITE, NONE, v[REC], v[SNAP], -1);
    v[BEST_OUT] = add(g, "best", OP_ARGMAX, NONE, v[XOUT], -1, -1);
    int route = add(g, "route", OP_MATMUL, AT(MATMUL, 1), v[X64], w_r, -1);
    v[TOP_ID] = add(g, "top", OP_TOPK, AT(TOPK, 2, 1), route, -1, -1);
    v[TOP_W] = graph_out(g, v[TOP_ID], 1);
    v[X2] = add(g, "x2", OP_MATMUL_ID, AT(MATMUL_ID, 1), v[X64], v[W_EXPERT], v[TOP_ID]);
}

struct rule_case {
    enum op op;
    union attr at;
    enum fixture in[3];
    const char *says; /* NULL: fits */
    struct shape out[2];
};
#define TOK1(h, d)                                                                                 \
    {                                                                                              \
        {                                                                                          \
            AXIS_TOK, 1, h, d                                                                      \
        }                                                                                          \
    }
#define ROW(axis, mult, h, d)                                                                      \
    {                                                                                              \
        {                                                                                          \
            axis, mult, h, d                                                                       \
        }                                                                                          \
    }

static const struct rule_case cases[] = {
    {OP_EMBED, {.word = {0}}, {W_EMB, IDS}, NULL, TOK1(1, 64)},
    {OP_EMBED, {.word = {0}}, {W_EMB, TOP_ID}, NULL, ROW(AXIS_TOK, 2, 1, 64)},
    {OP_EMBED, {.word = {0}}, {W_VEC64, TOP_ID}, "no more rows", TOK1(0, 0)},
    {OP_EMBED, {.word = {0}}, {W_EMB, BEST_OUT}, "token ids", TOK1(0, 0)},
    {OP_EMBED, {.word = {0}}, {W_EXPERT, IDS}, "one matrix", TOK1(0, 0)},
    {OP_EMBED, {.word = {0}}, {X64, IDS}, "wrong kind for role 'e'", TOK1(0, 0)},
    {OP_SELECT_ROWS, {.word = {0}}, {XHEAD, OUTS}, NULL, ROW(AXIS_OUT, 1, 4, 16)},
    {OP_SELECT_ROWS, {.word = {0}}, {XOUT, OUTS}, "one row per token", TOK1(0, 0)},
    {OP_SELECT_ROWS, {.word = {0}}, {X64, IDS}, "one id per OUT row", TOK1(0, 0)},
    {OP_SELECT_ROWS, {.word = {0}}, {X64, BEST_OUT}, "rows wanted", TOK1(0, 0)},
    {OP_SELECT_TABLE, {.word = {0}}, {TABLE, OUTS}, NULL, ROW(AXIS_OUT, 1, 1, 16)},
    {OP_SELECT_TABLE, {.word = {0}}, {X64, OUTS}, "wrong kind for role 't'", TOK1(0, 0)},
    {OP_ADD, {.word = {0}}, {X64, X64B}, NULL, TOK1(1, 64)},
    {OP_ADD, {.word = {0}}, {XHEAD, W_VEC64}, NULL, TOK1(4, 16)},
    {OP_ADD, {.word = {0}}, {XHEAD, W_VEC16}, NULL, TOK1(4, 16)},
    {OP_ADD, {.word = {0}}, {X64, W_VEC16}, "a row of operand 0", TOK1(0, 0)},
    {OP_ADD, {.word = {0}}, {X64, XOUT}, "rows of operand 0", TOK1(0, 0)},
    {OP_ADD, {.word = {0}}, {X64, W_SQ}, "one row for all", TOK1(0, 0)},
    {OP_MUL, {.word = {0}}, {X2, TOP_W}, NULL, ROW(AXIS_TOK, 2, 1, 32)},
    {OP_MUL, {.word = {0}}, {XHEAD, W_ONE}, NULL, TOK1(4, 16)},
    {OP_MUL, {.word = {0}}, {X64, TOP_W}, "rows of operand 0", TOK1(0, 0)},
    {OP_MUL, {.word = {0}}, {X64, TABLE}, "wrong kind for role 'v'", TOK1(0, 0)},
    {OP_SCALE, {.SCALE = {2}}, {XHEAD}, NULL, TOK1(4, 16)},
    {OP_SCALE, {.SCALE = {1.0f / 0.0f}}, {XHEAD}, "factor", TOK1(0, 0)},
    {OP_SILU, {.word = {0}}, {XOUT}, NULL, ROW(AXIS_OUT, 1, 1, 64)},
    {OP_SILU, {.word = {0}}, {W_SQ}, "wrong kind", TOK1(0, 0)},
    {OP_GELU, {.word = {0}}, {X2}, NULL, ROW(AXIS_TOK, 2, 1, 32)},
    {OP_GELU, {.word = {0}}, {SCORE}, "wrong kind", TOK1(0, 0)},
    {OP_TANH, {.word = {0}}, {X64}, NULL, TOK1(1, 64)},
    {OP_TANH, {.word = {0}}, {TOP_ID}, "wrong kind", TOK1(0, 0)},
    {OP_SIN, {.word = {0}}, {X64}, NULL, TOK1(1, 64)},
    {OP_SIN, {.word = {0}}, {KV}, "wrong kind", TOK1(0, 0)},
    {OP_SQR, {.word = {0}}, {X64}, NULL, TOK1(1, 64)},
    {OP_SQR, {.word = {0}}, {TABLE}, "wrong kind", TOK1(0, 0)},
    {OP_RMS_NORM, {.RMS_NORM = {1e-5f, 0}}, {XHEAD}, NULL, TOK1(4, 16)},
    {OP_RMS_NORM, {.RMS_NORM = {-1, 0}}, {XHEAD}, "eps", TOK1(0, 0)},
    {OP_RMS_NORM, {.RMS_NORM = {0, 2}}, {XHEAD}, "whole", TOK1(0, 0)},
    {OP_MATMUL, {.MATMUL = {4}}, {XHEAD, W_SQ}, NULL, TOK1(4, 16)},
    {OP_MATMUL, {.MATMUL = {3}}, {XHEAD, W_SQ}, "n_head", TOK1(0, 0)},
    {OP_MATMUL, {.MATMUL = {0}}, {XHEAD, W_SQ}, "n_head", TOK1(0, 0)},
    {OP_MATMUL, {.MATMUL = {1}}, {X64, W_ODD}, "columns", TOK1(0, 0)},
    {OP_MATMUL, {.MATMUL = {1}}, {X64, W_EXPERT}, "one matrix", TOK1(0, 0)},
    {OP_MATMUL_ID, {.MATMUL_ID = {2}}, {X64, W_EXPERT, TOP_ID}, NULL, ROW(AXIS_TOK, 2, 2, 16)},
    {OP_MATMUL_ID, {.MATMUL_ID = {1}}, {XOUT, W_EXPERT, TOP_ID}, "ids per row", TOK1(0, 0)},
    {OP_MATMUL_ID, {.MATMUL_ID = {1}}, {X2, W_EXPERT, TOP_ID}, "columns", TOK1(0, 0)},
    {OP_MATMUL_ID, {.MATMUL_ID = {1}}, {X64, W_SQ, TOP_ID}, "than matrices", TOK1(0, 0)},
    {OP_MATMUL_ID, {.MATMUL_ID = {1}}, {X64, W_EXPERT, IDS}, "a TOPK's", TOK1(0, 0)},
    {OP_TOPK, {.TOPK = {3, 0}}, {X64}, NULL, {{AXIS_TOK, 3, 1, 1}, {AXIS_TOK, 3, 1, 1}}},
    {OP_TOPK, {.TOPK = {65, 0}}, {X64}, "n_used", TOK1(0, 0)},
    {OP_TOPK, {.TOPK = {1, 3}}, {X64}, "renorm", TOK1(0, 0)},
    {OP_TOPK, {.TOPK = {1, 0}}, {XHEAD}, "one head", TOK1(0, 0)},
    {OP_SUM, {.SUM = {2}}, {X2}, NULL, TOK1(1, 32)},
    {OP_SUM, {.SUM = {2}}, {X64}, "k is 2", TOK1(0, 0)},
    {OP_ROPE_TABLE, {.ROPE_TABLE = {16, 1e6f, 8}}, {POS, W_VEC8}, NULL, TOK1(1, 16)},
    {OP_ROPE_TABLE, {.ROPE_TABLE = {15, 1e6f, 8}}, {POS}, "even", TOK1(0, 0)},
    {OP_ROPE_TABLE, {.ROPE_TABLE = {16, 0, 8}}, {POS}, "base", TOK1(0, 0)},
    {OP_ROPE_TABLE, {.ROPE_TABLE = {16, 1e4f, 0}}, {POS}, "factor", TOK1(0, 0)},
    {OP_ROPE_TABLE, {.ROPE_TABLE = {16, 1e4f, 1}}, {POS, W_VEC4}, "n_rot / 2", TOK1(0, 0)},
    {OP_ROPE, {.ROPE = {1}}, {XHEAD, TABLE8}, NULL, TOK1(4, 16)},
    {OP_ROPE, {.ROPE = {1}}, {XHEAD, TABLE_ODD}, "more columns", TOK1(0, 0)},
    {OP_ROPE, {.ROPE = {1}}, {XOUT, TABLE}, "rows of operand 0", TOK1(0, 0)},
    {OP_ROPE, {.ROPE = {5}}, {XHEAD, TABLE}, "neox", TOK1(0, 0)},
    {OP_KV_WRITE, {.word = {0}}, {KV_NEXT, XK, XV}, NULL, ROW(AXIS_SEQ, 1, 2, 24)},
    {OP_KV_WRITE, {.word = {0}}, {KV_NEXT, XV, XV}, "slot's K", TOK1(0, 0)},
    {OP_KV_WRITE, {.word = {0}}, {KV_NEXT, XK, XK}, "slot's V", TOK1(0, 0)},
    {OP_KV_WRITE, {.word = {0}}, {REC, XK, XV}, "other kind", TOK1(0, 0)},
    {OP_QK, {.QK = {0.5f, 50, 0}}, {XHEAD, KV_NEXT}, NULL, TOK1(4, 0)},
    {OP_QK, {.QK = {0.5f, 0, 32}}, {XHEAD, KV_WINDOW}, NULL, TOK1(4, 0)},
    {OP_QK, {.QK = {0.5f, 0, 33}}, {XHEAD, KV_WINDOW}, "window", TOK1(0, 0)},
    {OP_QK, {.QK = {0.5f, 0, 0}}, {XHEAD, KV_WINDOW}, "window", TOK1(0, 0)},
    {OP_QK, {.QK = {0.5f, -1, 0}}, {XHEAD, KV_NEXT}, "cap", TOK1(0, 0)},
    {OP_QK, {.QK = {0.5f, 0, 0}}, {XHEAD, KV}, "lacks this step's rows", TOK1(0, 0)},
    {OP_QK, {.QK = {0.5f, 0, 0}}, {X64, KV_NEXT}, "d_k columns", TOK1(0, 0)},
    {OP_QK, {.QK = {0.5f, 0, 0}}, {XHEAD, REC}, "other kind", TOK1(0, 0)},
    {OP_SOFTMAX, {.word = {0}}, {SCORE, W_VEC4}, NULL, TOK1(4, 0)},
    {OP_SOFTMAX, {.word = {0}}, {SCORE, NO}, NULL, TOK1(4, 0)},
    {OP_SOFTMAX, {.word = {0}}, {SCORE, W_VEC8}, "per head", TOK1(0, 0)},
    {OP_PV, {.word = {0}}, {SCORE, KV_NEXT}, NULL, TOK1(4, 8)},
    {OP_PV, {.word = {0}}, {SCORE, REC}, "other kind", TOK1(0, 0)},
    {OP_CONV1D,
     {.CONV1D = {2}},
     {X64B, W_KERNEL, REC},
     NULL,
     {{AXIS_TOK, 1, 1, 64}, {AXIS_SEQ, 2, 3, 64}}},
    {OP_CONV1D, {.CONV1D = {2}}, {X64B, W_KERNEL, REC_NEXT}, "last step left it", TOK1(0, 0)},
    {OP_CONV1D, {.CONV1D = {1}}, {X64B, W_KERNEL, REC}, "n_snap", TOK1(0, 0)},
    {OP_CONV1D, {.CONV1D = {2}}, {X64B, W_SQ, REC}, "n_kernel - 1", TOK1(0, 0)},
    {OP_CONV1D, {.CONV1D = {2}}, {XK, W_KERNEL, REC}, "row per channel", TOK1(0, 0)},
    {OP_STATE_WRITE, {.word = {0}}, {REC_NEXT, SNAP}, NULL, ROW(AXIS_SEQ, 1, 3, 64)},
    {OP_STATE_WRITE, {.word = {0}}, {REC_NEXT, X64}, "snapshots", TOK1(0, 0)},
    {OP_STATE_WRITE, {.word = {0}}, {KV_NEXT, SNAP}, "other kind", TOK1(0, 0)},
    {OP_ARGMAX, {.word = {0}}, {X2}, NULL, ROW(AXIS_TOK, 2, 1, 1)},
    {OP_ARGMAX, {.word = {0}}, {XHEAD}, "one head", TOK1(0, 0)},
};

static void shape_rules(void **state)
{
    sinter_host *host = host_of();
    int hit[OP_N] = {0}, missed[OP_N] = {0}, n_op = 0;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct rule_case *c = &cases[i];
        struct graph *g;
        sinter_error err;
        int v[N_FIXTURE], in[3], n = 0;
        assert_int_equal(graph_create(host, "rules", &g, &err), SINTER_OK);
        fill(g, v);
        assert_int_equal(g->error.status, SINTER_OK);
        for (; n < 3 && (c->in[n] != NO || (n == 1 && c->op == OP_SOFTMAX)); n++)
            in[n] = v[c->in[n]];
        int y = graph_add(g, "y", c->op, c->at, n, in);
        if (c->says) {
            if (y >= 0 || !strstr(g->error.message, c->says))
                fail_msg("case %zu of %s: wanted \"%s\", is \"%s\"", i, op_row(c->op)->name,
                         c->says, g->error.message);
            assert_non_null(strstr(g->error.message, "node y: "));
            missed[c->op]++;
        } else {
            if (y < 0)
                fail_msg("case %zu of %s: %s", i, op_row(c->op)->name, g->error.message);
            for (int o = 0; o < op_row(c->op)->n_out; o++)
                assert_true(shape_equal(g->value[graph_out(g, y, o)].shape, c->out[o]));
            hit[c->op]++;
        }
        graph_free(g);
    }
    for (enum op op = OP_NONE + 1; op < OP_N; op++) {
        if (!hit[op] || !missed[op])
            print_message("%s: hit %d, missed %d\n", op_row(op)->name, hit[op], missed[op]);
        n_op += hit[op] && missed[op];
    }
    print_message("shape rules: %d/%d\n", n_op, OP_N - 1);
    assert_int_equal(n_op, OP_N - 1);
    sinter_host_free(host);
}

static void op_table(void **state)
{
    (void)state;
    assert_null(op_row(OP_NONE));
    assert_null(op_row(OP_N));
    const struct op_row *softmax = op_row(OP_SOFTMAX), *qk = op_row(OP_QK);
    assert_int_equal(softmax->n_in, 2);
    assert_int_equal(softmax->n_in_min, 1);
    assert_int_equal(qk->n_attr, 3);
    assert_string_equal(qk->attr[2].name, "window");
    assert_int_equal(qk->attr[2].type, 'I');
    assert_int_equal(qk->attr[0].type, 'F');
    assert_true(op_row(OP_KV_WRITE)->state && op_row(OP_ADD)->commutes);
    assert_false(op_row(OP_MATMUL)->state || op_row(OP_MATMUL)->commutes);
    for (enum op op = OP_NONE + 1; op < OP_N; op++) {
        const struct op_row *r = op_row(op);
        assert_int_equal(op_from_name(r->name), op);
        assert_in_range(r->n_in, 1, OP_MAX_IN);
        assert_in_range(r->n_out, 1, OP_MAX_OUT);
        for (int i = 0; i < r->n_in; i++) /* only the last operand may be absent */
            assert_non_null(strchr("xXwevksticc", r->in[i]));
        assert_true(!r->state || (r->in[0] == 's' && r->out[0] == 's'));
    }
    assert_int_equal(op_from_name("RMS"), OP_NONE);
    assert_int_equal(op_from_name("ADDX"), OP_NONE);
}

/* One layer: a norm, K and V into the state, attention of the wanted rows, a head. */
static struct graph *try_small(sinter_host *host, sinter_error *err)
{
    struct graph *g;
    if (graph_create(host, "small", &g, err) != SINTER_OK)
        return NULL;
    int ids = graph_input(g, PORT_IDS), rows = graph_input(g, PORT_OUT_ROWS);
    int e = weight(g, "emb", 0, 50, 32, 1), wq = weight(g, "wq", 1, 32, 32, 1);
    int wk = weight(g, "wk", 2, 16, 32, 1), wv = weight(g, "wv", 3, 16, 32, 1);
    int x = add(g, "x", OP_EMBED, NONE, e, ids, -1);
    int h = add(g, "h", OP_RMS_NORM, AT(RMS_NORM, 1e-5f, 0), x, -1, -1);
    int hq = add(g, "h.out", OP_SELECT_ROWS, NONE, h, rows, -1);
    int xo = add(g, "x.out", OP_SELECT_ROWS, NONE, x, rows, -1);
    int q = add(g, "q", OP_MATMUL, AT(MATMUL, 2), hq, wq, -1);
    int kv = graph_slot(g, "kv", (struct state_slot){SLOT_KV, 0, 1, 16, 16, 0, 0, 0, 0});
    int k = add(g, "k", OP_MATMUL, AT(MATMUL, 1), h, wk, -1);
    int v = add(g, "v", OP_MATMUL, AT(MATMUL, 1), h, wv, -1);
    int kv1 = add(g, "kv1", OP_KV_WRITE, NONE, kv, k, v);
    int c = add(g, "c", OP_QK, AT(QK, 0.25f, 0, 0), q, kv1, -1);
    c = add(g, "p", OP_SOFTMAX, NONE, c, -1, -1);
    int y = add(g, "mix", OP_PV, NONE, c, kv1, -1);
    y = add(g, "flat", OP_MATMUL, AT(MATMUL, 1), y, wq, -1);
    y = add(g, "sum", OP_ADD, NONE, y, xo, -1);
    graph_port(g, y, PORT_HIDDEN);
    y = add(g, "logits", OP_MATMUL, AT(MATMUL, 1), y, e, -1);
    graph_port(g, y, PORT_LOGITS);
    graph_port(g, add(g, "best", OP_ARGMAX, NONE, y, -1, -1), PORT_ARGMAX);
    return g;
}

static struct graph *small(sinter_host *host)
{
    sinter_error err;
    return try_small(host, &err);
}

static int find(const struct graph *g, const char *name)
{
    for (int v = 0; v < g->n_value; v++)
        if (strcmp(g->value[v].name, name) == 0)
            return v;
    return -1;
}

static void readers_and_edges(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    struct graph *g = small(host);
    sinter_error err;
    assert_int_equal(graph_finish(g, &err), SINTER_OK);
    const struct value *kv = &g->value[find(g, "kv")], *kv1 = &g->value[find(g, "kv1")];
    assert_int_equal(kv->n_reader, 1);
    assert_int_equal(kv1->n_reader, 2); /* QK and PV */
    assert_int_equal(kv1->version, 1);
    assert_int_equal(g->slot_last[0], find(g, "kv1"));
    int pred[8];
    assert_int_equal(graph_preds(g, kv1->node, pred, 8), 2);
    assert_int_equal(graph_preds(g, kv1->node, pred, 0), 2);
    assert_int_equal(g->value[find(g, "emb")].n_reader, 2); /* tied: one value */
    assert_true(graph_order_ok(g, NULL));
    int order[64];
    for (int i = 0; i < g->n_node; i++)
        order[i] = i;
    assert_true(graph_order_ok(g, order));
    order[0] = 1;
    order[1] = 0;
    assert_false(graph_order_ok(g, order));
    order[0] = order[1] = 0; /* no permutation */
    assert_false(graph_order_ok(g, order));
    struct text_buf b;
    text_buf_init(&b, host);
    graph_print(g, &b);
    assert_int_equal(text_buf_end(&b, &err), SINTER_OK);
    assert_non_null(strstr(b.text, "logits                   MATMUL       [OUT,1,50]"));
    assert_non_null(strstr(b.text, "scale=0.25 cap=0 window=0"));
    assert_non_null(strstr(b.text, "port=logits"));
    text_buf_free(&b);
    graph_free(g);
    sinter_host_free(host);
}

static void errors_stick(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    struct graph *g;
    sinter_error err;
    int v[N_FIXTURE];
    assert_int_equal(graph_create(host, "stick", &g, &err), SINTER_OK);
    fill(g, v);
    int n_node = g->n_node, n_value = g->n_value;
    assert_int_equal(add(g, "bad", OP_ADD, NONE, v[X64], v[XK], -1), -1);
    assert_int_equal(add(g, "next", OP_SILU, NONE, -1, -1, -1), -1);
    assert_int_equal(add(g, "good", OP_SILU, NONE, v[X64], -1, -1), -1);
    assert_int_equal(weight(g, "w", 99, 1, 1, 1), -1);
    assert_int_equal(graph_slot(g, "s", (struct state_slot){0}), -1);
    assert_int_equal(graph_input(g, PORT_IDS), -1);
    graph_port(g, v[X64], PORT_LOGITS);
    graph_fail(g, SINTER_E_USAGE, "later");
    assert_int_equal(g->n_node, n_node);
    assert_int_equal(g->n_value, n_value);
    assert_int_equal(graph_finish(g, &err), SINTER_E_DATA);
    assert_non_null(strstr(err.message, "graph stick: node bad: ADD: operand 1 (xk)"));
    graph_free(g);
    sinter_host_free(host);
}

/* Each breaks one law; the message names it. */
static const char *const laws[] = {"leads to no output port",
                                   "nothing reads spare",
                                   "two values are named h",
                                   "before its reader late",
                                   "replaces version 0",
                                   "must have one reader",
                                   "reads another state",
                                   "twice",
                                   "is missing",
                                   "two types or widths",
                                   "blocks overlap",
                                   "of another kind",
                                   "sizes must be > 0",
                                   "n_row must be",
                                   "is no output",
                                   "is no input",
                                   "n_col must be"};

static void break_law(struct graph *g, int i)
{
    struct state_slot slot = {SLOT_KV, 1, 1, 16, 16, 0, 0, 0, 0};
    int x = find(g, "x"), h = find(g, "h"), k = find(g, "k"), v = find(g, "v"), c;
    if (i == 0)
        add(g, "dead", OP_SILU, NONE, x, -1, -1);
    if (i == 1)
        weight(g, "spare", 77, 1, 3, 1);
    if (i == 2)
        add(g, "h", OP_SILU, NONE, x, -1, -1);
    if (i == 3) { /* reads kv1 after kv2 replaced it */
        add(g, "kv2", OP_KV_WRITE, NONE, find(g, "kv1"), k, v);
        c = add(g, "late", OP_QK, AT(QK, 1, 0, 0), find(g, "q"), find(g, "kv1"), -1);
    }
    if (i == 4)
        add(g, "again", OP_KV_WRITE, NONE, find(g, "kv"), k, v);
    if (i == 5)
        add(g, "p2", OP_SOFTMAX, NONE, find(g, "c"), -1, -1);
    if (i == 6) {
        c = add(g, "c2", OP_QK, AT(QK, 1, 0, 0), find(g, "q"), find(g, "kv1"), -1);
        int s = add(g, "s1", OP_KV_WRITE, NONE, graph_slot(g, "s", slot), k, v);
        add(g, "mix2", OP_PV, NONE, c, s, -1);
    }
    if (i == 7)
        graph_port(g, h, PORT_HIDDEN);
    if (i == 8)
        graph_add(g, "hole", OP_ADD, NONE, 2, (int[]){x, -1});
    if (i == 9)
        graph_weight(g, "emb", (struct weight_slice){0, 0, 50, 50, 1, 1, 0, 0}, QUANT_F16, 50, 32);
    if (i == 10)
        graph_weight(g, "w", (struct weight_slice){9, 0, 4, 3, 2, 1, 0, 0}, QUANT_F16, 8, 32);
    if (i == 11)
        graph_port(g, find(g, "best"), PORT_LOGITS);
    if (i == 12)
        graph_slot(g, "bad", (struct state_slot){SLOT_KV, 1, 1, 0, 16, 0, 0, 0, 0});
    if (i == 13)
        graph_weight(g, "w", (struct weight_slice){9, 0, 4, 4, 2, 1, 0, 0}, QUANT_F16, 4, 32);
    if (i == 14)
        graph_port(g, h, PORT_IDS);
    if (i == 15)
        graph_input(g, PORT_LOGITS);
    if (i == 16)
        graph_weight(g, "w", (struct weight_slice){9, 0, 1, 1, 1, 1, 4, 8}, QUANT_F16, 1, 9);
}

static void validator(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    int n = (int)(sizeof laws / sizeof laws[0]), n_ok = 0;
    for (int i = 0; i < n; i++) {
        struct graph *g = small(host);
        sinter_error err = {0};
        break_law(g, i);
        assert_int_not_equal(graph_finish(g, &err), SINTER_OK);
        if (strstr(err.message, laws[i]))
            n_ok++;
        else
            print_message("wanted \"%s\", is \"%s\"\n", laws[i], err.message);
        graph_free(g);
    }
    print_message("validator: %d/%d\n", n_ok, n);
    assert_int_equal(n_ok, n);
    sinter_host_free(host);
}

static void live(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    struct graph *g = small(host), *l;
    sinter_error err;
    assert_int_equal(graph_finish(g, &err), SINTER_OK);
    assert_int_equal(graph_live(g, PORT_LOGITS, false, &l, &err), SINTER_OK);
    assert_int_equal(l->n_node, g->n_node - 1); /* no argmax */
    assert_int_equal(l->value[find(l, "logits")].port, PORT_LOGITS);
    assert_int_equal(l->value[find(l, "sum")].port, 0); /* hidden is not wanted */
    assert_int_equal(l->n_weight, g->n_weight);
    assert_string_equal(l->weight[2].name, "wk");
    graph_free(l);
    /* a chunk in mid-prompt: nothing past the last state write */
    assert_int_equal(graph_live(g, 0, false, &l, &err), SINTER_OK);
    assert_int_equal(l->n_node, 5);
    assert_int_equal(find(l, "q"), -1);
    assert_int_equal(find(l, "out_rows"), -1);
    assert_int_equal(find(l, "wq"), -1);
    assert_int_equal(l->value[find(l, "wv")].index, 3);
    assert_int_equal(l->slot_last[0], find(l, "kv1"));
    graph_free(l);
    /* all rows: selections go, OUT is TOK */
    assert_int_equal(graph_live(g, PORT_ARGMAX | PORT_HIDDEN, true, &l, &err), SINTER_OK);
    assert_int_equal(l->n_node, g->n_node - 2);
    for (int v = 0; v < l->n_value; v++)
        assert_int_not_equal(l->value[v].shape.axis, AXIS_OUT);
    assert_int_equal(l->value[find(l, "h")].n_reader, 3); /* q, k, v */
    assert_int_equal(l->value[find(l, "x")].n_reader, 2); /* norm, sum */
    graph_free(l);
    assert_int_equal(graph_live(g, 1u << 20, false, &l, &err), SINTER_E_USAGE);
    assert_null(l);
    graph_free(g);
    sinter_host_free(host);
}

/* A port on a selection goes to what is selected from. */
static void live_port_of_selection(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    struct graph *g, *l;
    sinter_error err;
    assert_int_equal(graph_create(host, "sel", &g, &err), SINTER_OK);
    int ids = graph_input(g, PORT_IDS), rows = graph_input(g, PORT_OUT_ROWS);
    int x = add(g, "x", OP_EMBED, NONE, weight(g, "e", 0, 9, 8, 1), ids, -1);
    graph_port(g, add(g, "y", OP_SELECT_ROWS, NONE, x, rows, -1), PORT_HIDDEN);
    assert_int_equal(graph_finish(g, &err), SINTER_OK);
    assert_int_equal(graph_live(g, PORT_HIDDEN, true, &l, &err), SINTER_OK);
    assert_int_equal(l->n_node, 1);
    assert_int_equal(l->value[find(l, "x")].port, PORT_HIDDEN);
    graph_free(l);
    assert_int_equal(graph_live(g, 0, false, &l, &err), SINTER_OK);
    assert_int_equal(l->n_node, 0);
    graph_free(l);
    graph_free(g);
    sinter_host_free(host);
}

static sinter_status build(sinter_host *host, void *ctx, sinter_error *err)
{
    struct graph *g = try_small(host, err), *l = NULL;
    sinter_status status = g ? graph_finish(g, err) : err->status;
    bool *all_rows = ctx;
    *all_rows = !*all_rows;
    if (status == SINTER_OK)
        status = graph_live(g, PORT_LOGITS, *all_rows, &l, err);
    graph_free(l);
    graph_free(g);
    return status;
}

static void alloc_faults(void **state)
{
    (void)state;
    assert_true(fault_loop_host("graph", &(struct fault){0}, FAULT_ALLOC, build, &(bool){false}) >
                5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(op_table),
        cmocka_unit_test(shape_rules),
        cmocka_unit_test(errors_stick),
        cmocka_unit_test(readers_and_edges),
        cmocka_unit_test(validator),
        cmocka_unit_test(live),
        cmocka_unit_test(live_port_of_selection),
        cmocka_unit_test(alloc_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
