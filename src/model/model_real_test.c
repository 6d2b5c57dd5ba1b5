/* The two real models: plan, binding, graphs and the bytes of their weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "model/model.h"

#include <cmocka.h>

#define SMOL  TEST_MODELS_DIR "/SmolLM2-135M-Instruct.Q4_1.gguf"
#define GEMMA TEST_MODELS_DIR "/gemma-3-270m.Q4_K_M.gguf"

static sinter_host *host;

static struct model *open_model(const char *path)
{
    struct model *m;
    sinter_error err = {0};
    if (access(path, R_OK) != 0) {
        print_message("SKIPPED: %s is not there\n", path);
        skip();
    }
    if (model_open(host, path, &m, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    return m;
}

static struct graph *graph_of(struct model *m, bool argmax)
{
    struct graph *g;
    sinter_error err = {0};
    struct model_variant v = {.n_ctx = 4096, .argmax = argmax};
    if (model_graph(m, &v, &g, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    return g;
}

static int count(const struct graph *g, enum op op)
{
    int n = 0;
    for (int i = 0; i < g->n_node; i++)
        n += g->node[i].op == op;
    return n;
}

static void close_model(struct model *m)
{
    model_close(m);
    assert_int_equal(host_usage(host).bytes, 0);
}

static void test_smol(void **state)
{
    (void)state;
    struct model *m = open_model(SMOL);
    const struct model_plan *p = &m->plan;
    assert_string_equal(p->arch->name, "llama");
    assert_int_equal(p->n_layer, 30);
    assert_int_equal(p->d_model, 576);
    assert_int_equal(p->n_vocab, 49152);
    assert_true(p->tied);
    assert_int_equal(p->layer[29].n_head, 9);
    assert_int_equal(p->layer[29].n_head_kv, 3);
    assert_int_equal(p->layer[29].d_k, 64);
    assert_int_equal(p->layer[29].n_rot, 64);
    assert_true(p->layer[0].rope_base == 1e5F);
    assert_true(p->layer[0].attn_scale == 0.125F);
    assert_int_equal(p->layer[7].window, 0);
    assert_int_equal(m->n_weight, 272);
    assert_int_equal(m->n_override, 0);
    struct graph *g = graph_of(m, false), *h = graph_of(m, true);
    assert_int_equal(count(g, OP_MATMUL), 30 * 7 + 1);
    assert_int_equal(count(g, OP_KV_WRITE), 30);
    assert_int_equal(count(g, OP_ROPE_TABLE), 1);
    assert_int_equal(count(g, OP_SELECT_ROWS), 2);
    assert_int_equal(count(g, OP_SELECT_TABLE), 1);
    assert_int_equal(g->n_weight, 272);
    assert_int_equal(h->n_node, g->n_node + 1);
    for (int i = 0; i < g->n_weight; i++)
        assert_int_equal(g->weight[i].slice.tensor, h->weight[i].slice.tensor);
    graph_free(g);
    graph_free(h);
    close_model(m);
}

static void test_gemma(void **state)
{
    (void)state;
    struct model *m = open_model(GEMMA);
    const struct model_plan *p = &m->plan;
    assert_string_equal(p->arch->name, "gemma3");
    assert_int_equal(p->n_layer, 18);
    assert_true(p->tied);
    assert_true(p->emb_scale > 25.298F && p->emb_scale < 25.299F);
    for (int i = 0; i < 18; i++) {
        bool full = i % 6 == 5;
        assert_int_equal(p->layer[i].window, full ? 0 : 512);
        assert_true(p->layer[i].rope_base == (full ? 1e6F : 1e4F));
        assert_true(p->layer[i].attn_scale == 0.0625F);
        assert_int_equal(p->layer[i].n_rot, 256);
    }
    assert_int_equal(m->n_weight, 236);
    struct graph *g = graph_of(m, true);
    assert_int_equal(count(g, OP_ROPE_TABLE), 2);
    assert_int_equal(count(g, OP_SELECT_TABLE), 1);
    assert_int_equal(count(g, OP_GELU), 18);
    assert_int_equal(count(g, OP_RMS_NORM), 18 * 6 + 1);
    assert_int_equal(count(g, OP_TANH), 0);
    graph_free(g);
    close_model(m);
}

/* Rows read through the slice are the bytes of the tensor. */
static void test_rows(void **state)
{
    (void)state;
    struct model *m = open_model(SMOL);
    struct graph *g = graph_of(m, false);
    sinter_error err = {0};
    size_t n_row = 0;
    for (int i = 0; i < g->n_weight; i += 17) {
        const struct graph_weight *w = &g->weight[i];
        const struct gguf_tensor *t = &m->gguf->tensor[w->slice.tensor];
        size_t bytes = model_row_bytes(m, w);
        uint8_t *a = malloc(bytes), *b = malloc(bytes);
        int64_t row = w->slice.n_row - 1;
        if (model_read_rows(m, w, 0, row, 1, a, &err) != SINTER_OK)
            fail_msg("%s", err.message);
        assert_int_equal(gguf_read(m->gguf, t, t->bytes - bytes, b, bytes, NULL), SINTER_OK);
        assert_memory_equal(a, b, bytes);
        assert_int_not_equal(model_read_rows(m, w, 0, row, 2, a, &err), SINTER_OK);
        assert_int_not_equal(model_read_rows(m, w, 1, 0, 1, a, &err), SINTER_OK);
        free(a);
        free(b);
        n_row++;
    }
    print_message("rows of real weights: %zu/%zu\n", n_row, n_row);
    graph_free(g);
    close_model(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smol),
        cmocka_unit_test(test_gemma),
        cmocka_unit_test(test_rows),
    };
    if (sinter_host_create(NULL, &host, NULL) != SINTER_OK)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sinter_host_free(host);
    return failed;
}
