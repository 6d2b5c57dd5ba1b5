/* Every small dummy: the file, plan, binding, graphs and rows; fused files give the same numbers
 * as split ones; refusals and overrides. What each key and tensor may do is in
 * tests/models/loader_test.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/host.h"
#include "fault_loop.h"
#include "model/dummy.h"
#include "model/model.h"

#include <cmocka.h>

static sinter_host *host;
static struct memory_file file;
static struct fault fault = {.file = &file};

/* Writes a dummy into the file in memory. */
static void make(const struct dummy_options *o)
{
    sinter_error err = {0};
    if (dummy_write(host, o, "dummy.gguf", &err) != SINTER_OK)
        fail_msg("%s", err.message);
    file.data = file.written;
    file.bytes = file.n_written;
}

static struct model *open_made(void)
{
    struct model *m;
    sinter_error err = {0};
    if (model_open(host, "dummy.gguf", &m, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    return m;
}

static struct graph *graph_of(const struct model *m, bool argmax)
{
    struct graph *g;
    sinter_error err = {0};
    if (model_graph(m, &(struct model_variant){.n_ctx = 64, .argmax = argmax}, &g, &err))
        fail_msg("%s", err.message);
    return g;
}

/* Bytes of all rows of a weight; the caller frees them. */
static uint8_t *rows(const struct model *m, const struct graph_weight *w, size_t *bytes)
{
    sinter_error err = {0};
    int64_t n = (int64_t)w->slice.n_row * w->slice.n_block;
    size_t one = model_row_bytes(m, w) * (size_t)n;
    *bytes = one * (size_t)w->slice.n_mat;
    uint8_t *buf = malloc(*bytes);
    for (int mat = 0; mat < w->slice.n_mat; mat++)
        if (model_read_rows(m, w, mat, 0, n, buf + (size_t)mat * one, &err) != SINTER_OK)
            fail_msg("%s", err.message);
    return buf;
}

/* All weights decode to finite numbers of sane size, not all equal. */
static void check_numbers(const struct model *m, const struct graph *g)
{
    for (int i = 0; i < g->n_weight; i++) {
        const struct graph_weight *w = &g->weight[i];
        const struct quant_row *row = quant_row(w->type);
        size_t bytes;
        uint8_t *buf = rows(m, w, &bytes);
        size_t n = bytes / (size_t)row->block_bytes * (size_t)row->block_elems;
        float *x = malloc(n * sizeof *x);
        double sum = 0;
        row->decode(buf, x, n);
        for (size_t k = 0; k < n; k++) {
            assert_true(isfinite(x[k]) && fabsf(x[k]) < 16);
            sum += (double)x[k] * (double)x[k];
        }
        if (n < 2 || !(sum / (double)n > 1e-4 && sum / (double)n < 10))
            fail_msg("%s: mean square %g of %zu", w->name, sum / (double)n, n);
        free(x);
        free(buf);
    }
}

static void check_live(const struct graph *g)
{
    static const unsigned ports[] = {0, PORT_LOGITS, PORT_ARGMAX, PORT_HIDDEN,
                                     PORT_LOGITS | PORT_ARGMAX | PORT_HIDDEN};
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++)
        for (int all = 0; all < 2; all++) {
            struct graph *live;
            sinter_error err = {0};
            if (graph_live(g, ports[i], all, &live, &err) != SINTER_OK)
                fail_msg("%s", err.message);
            assert_true(live->n_node <= g->n_node);
            graph_free(live);
        }
}

static void check_prints(const struct model *m)
{
    struct text_buf b;
    for (int json = 0; json < 2; json++) {
        text_buf_init(&b, host);
        model_print(m, &b, json);
        assert_int_equal(text_buf_end(&b, NULL), SINTER_OK);
        assert_non_null(strstr(b.text, m->plan.arch->name));
        assert_non_null(strstr(b.text, "general.architecture"));
        text_buf_free(&b);
    }
}

static void test_dummies(void **state)
{
    struct dummy_options o;
    char name[64];
    int n = 0;
    (void)state;
    for (; dummy_small(n, &o, name); n++) {
        make(&o);
        if (o.kind == DUMMY_F32 || o.kind == DUMMY_FUSED)
            assert_in_range(file.bytes, 1, 65536);
        struct model *m = open_made();
        assert_string_equal(m->plan.arch->name, o.arch);
        assert_int_equal(m->n_override, 0);
        struct graph *g = graph_of(m, true);
        assert_true(g->n_slot == m->plan.n_layer);
        check_numbers(m, g);
        check_live(g);
        check_prints(m);
        graph_free(g);
        model_close(m);
        assert_int_equal(host_usage(host).bytes, 0);
        print_message("%-20s %7zu bytes\n", name, file.bytes);
    }
    int n_arch = 0;
    while (arch_at(n_arch))
        n_arch++;
    assert_int_equal(n, n_arch * DUMMY_N_KIND);
    assert_int_equal(host_warnings(host), 0);
    print_message("dummies: %d/%d\n", n, n);
}

/* The bytes are specified: the same seed gives the same file on every machine, another seed not. */
static void test_bytes(void **state)
{
    static const struct {
        struct dummy_options o;
        uint64_t hash;
    } want[] = {
        {{.arch = "llama", .kind = DUMMY_F32}, 0xcdfee4016ccbd23fu},
        {{.arch = "qwen3moe", .kind = DUMMY_MIXED}, 0x74b2bc04c3b5514cu},
        {{.arch = "gemma3", .kind = DUMMY_OPTIONAL}, 0xa45782041a2699a6u},
        {{.arch = "llama", .kind = DUMMY_F32, .seed = 1}, 0x7c363c513f35fa8bu},
    };
    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        make(&want[i].o);
        uint64_t h = 0xcbf29ce484222325u;
        for (size_t k = 0; k < file.bytes; k++)
            h = (h ^ file.data[k]) * 0x100000001b3u;
        if (h != want[i].hash)
            fail_msg("%s %s: hash 0x%016llx", want[i].o.arch, dummy_kind_name(want[i].o.kind),
                     (unsigned long long)h);
    }
}

/* Any range of a stream is that part of the whole. */
static void test_draw(void **state)
{
    static const enum quant_type types[] = {QUANT_F32, QUANT_BF16, QUANT_Q4_0, QUANT_Q6_K};
    uint8_t whole[4096], part[4096];
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        struct draw d;
        assert_int_equal(draw_init(&d, types[t], INIT_LINEAR, 7, 0.1F, NULL), SINTER_OK);
        draw_bytes(&d, 0, whole, sizeof whole);
        for (size_t at = 0, n = 1; at + n <= sizeof whole; at += n, n = n * 5 % 509 + 1) {
            draw_bytes(&d, at, part, n);
            assert_memory_equal(whole + at, part, n);
        }
    }
}

static const struct graph_weight *weight_like(const struct model *m, const struct graph *g, int id,
                                              int layer)
{
    const struct model_weight *w = model_weight(m, layer, (enum tensor_id)id);
    for (int i = 0; w && i < g->n_weight; i++)
        if (memcmp(&g->weight[i].slice, &w->slice, sizeof w->slice) == 0)
            return &g->weight[i];
    return NULL;
}

/* Fused and split files: one graph, the same rows in every role. */
static void test_fused(void **state)
{
    const struct arch_desc *a;
    int n = 0;
    (void)state;
    for (int i = 0; (a = arch_at(i)) != NULL; i++) {
        static uint8_t *split_bytes[64][W_N];
        static size_t split_n[64][W_N];
        int n_node = 0;
        for (int fused = 0; fused < 2; fused++) {
            make(&(struct dummy_options){.arch = a->name, .kind = fused ? DUMMY_FUSED : DUMMY_F32});
            struct model *m = open_made();
            struct graph *g = graph_of(m, false);
            if (fused)
                assert_int_equal(g->n_node, n_node);
            n_node = g->n_node;
            for (int layer = 0; layer < m->plan.n_layer; layer++)
                for (int id = 0; id < W_N; id++) {
                    const struct graph_weight *w = weight_like(m, g, id, layer);
                    size_t bytes;
                    if (!w)
                        continue;
                    uint8_t *buf = rows(m, w, &bytes);
                    if (fused) {
                        assert_int_equal(bytes, split_n[layer][id]);
                        assert_memory_equal(buf, split_bytes[layer][id], bytes);
                        free(buf);
                        free(split_bytes[layer][id]);
                        n++;
                    } else {
                        split_bytes[layer][id] = buf;
                        split_n[layer][id] = bytes;
                    }
                }
            graph_free(g);
            model_close(m);
        }
    }
    print_message("fused = split: %d/%d\n", n, n);
}

/* Pieces of fused biases: the only dummies with biases are whole, so one is made by hand. */
static void test_vector_piece(void **state)
{
    (void)state;
    make(&(struct dummy_options){.arch = "llama", .kind = DUMMY_OPTIONAL});
    struct model *m = open_made();
    const struct model_weight *b = model_weight(m, 0, W_Q_B);
    assert_non_null(b);
    struct graph_weight whole = {b->slice, b->type, b->name}, piece = whole;
    float x[192], y[3];
    piece.slice.col0 = 5;
    piece.slice.n_col = 3;
    assert_int_equal(b->n_col, 192);
    assert_int_equal(model_row_bytes(m, &piece), 12);
    assert_int_equal(model_read_rows(m, &whole, 0, 0, 1, x, NULL), SINTER_OK);
    assert_int_equal(model_read_rows(m, &piece, 0, 0, 1, y, NULL), SINTER_OK);
    assert_memory_equal(x + 5, y, sizeof y);
    model_close(m);
}

/* Interleaved rows: {row0, n_row, period}. */
static void test_period(void **state)
{
    (void)state;
    make(&(struct dummy_options){.arch = "llama", .kind = DUMMY_F32});
    struct model *m = open_made();
    const struct model_weight *w = model_weight(m, 0, W_Q); /* 32 rows of 16 */
    struct graph_weight whole = {w->slice, w->type, w->name}, odd = whole;
    static float x[32][16], y[9][16];
    odd.slice.row0 = 2;
    odd.slice.n_row = 3;
    odd.slice.period = 8;
    odd.slice.n_block = 4;
    assert_int_equal(model_read_rows(m, &whole, 0, 0, 32, x, NULL), SINTER_OK);
    assert_int_equal(model_read_rows(m, &odd, 0, 1, 9, y, NULL), SINTER_OK);
    for (int r = 0; r < 9; r++)
        assert_memory_equal(y[r], x[2 + (r + 1) / 3 * 8 + (r + 1) % 3], sizeof y[r]);
    model_close(m);
}

static sinter_status refuse_dummy(const struct dummy_options *o, const char *part)
{
    sinter_error err = {0};
    sinter_status status = dummy_write(host, o, "x", &err);
    assert_non_null(strstr(err.message, part));
    return status;
}

/* A file with no more than the name of its architecture. */
static void open_arch(const char *arch, size_t bytes, sinter_status status, const char *part)
{
    struct gguf_writer *w;
    struct model *m;
    sinter_error err = {0};
    assert_int_equal(gguf_writer_create(host, &w, &err), SINTER_OK);
    assert_int_equal(gguf_put_string(w, "general.architecture", arch, bytes, &err), SINTER_OK);
    assert_int_equal(gguf_writer_save(w, "x", NULL, NULL, &err), SINTER_OK);
    gguf_writer_free(w);
    file.data = file.written;
    file.bytes = file.n_written;
    assert_int_equal(model_open(host, "x", &m, &err), status);
    assert_non_null(strstr(err.message, part));
}

static void test_refused(void **state)
{
    struct model *m;
    sinter_error err = {0};
    (void)state;
    assert_int_equal(dummy_write(host, &(struct dummy_options){.arch = "no"}, "x", &err),
                     SINTER_E_USAGE);
    assert_int_equal(dummy_write(host, &(struct dummy_options){.like = "no"}, "x", &err),
                     SINTER_E_USAGE);
    assert_int_equal(
        dummy_write(host, &(struct dummy_options){.like = "qwen3-0.6b", .type = "f32"}, "x", &err),
        SINTER_E_USAGE);
    file.data = (const uint8_t *)"GGUF";
    file.bytes = 4;
    assert_int_equal(model_open(host, "x", &m, &err), SINTER_E_DATA);
    assert_null(m);
    assert_int_equal(refuse_dummy(&(struct dummy_options){.arch = "llama", .type = "q8_0"}, "type"),
                     SINTER_E_USAGE);
    assert_int_equal(
        refuse_dummy(&(struct dummy_options){.like = "qwen3-8b", .type = "q8_0", .arch = "llama"},
                     "arch"),
        SINTER_E_USAGE);
    assert_int_equal(
        refuse_dummy(&(struct dummy_options){.like = "qwen3-8b", .type = "q8_0", .kind = DUMMY_F32},
                     "kind"),
        SINTER_E_USAGE);
    open_arch("llama", 5, SINTER_E_NOT_FOUND, "block_count");
    open_arch("llama\0x", 7, SINTER_E_UNSUPPORTED, "unknown to sinter");
    make(&(struct dummy_options){.arch = "llama", .kind = DUMMY_F32});
    m = open_made();
    struct graph *g;
    assert_int_equal(model_graph(m, &(struct model_variant){0}, &g, &err), SINTER_E_USAGE);
    model_close(m);
}

static sinter_status open_and_build(void *ctx, sinter_error *err)
{
    struct model *m = NULL;
    struct graph *g = NULL;
    (void)ctx;
    sinter_status status = model_open(host, "dummy.gguf", &m, err);
    if (status == SINTER_OK)
        status = model_graph(m, &(struct model_variant){.n_ctx = 8, .argmax = true}, &g, err);
    graph_free(g);
    model_close(m);
    assert_int_equal(host_usage(host).bytes, 0);
    return status;
}

/* Each allocation and read of opening and building can fail: a typed error, nothing leaks. */
static void test_faults(void **state)
{
    (void)state;
    make(&(struct dummy_options){.arch = "qwen3moe", .kind = DUMMY_F32});
    for (int kind = FAULT_ALLOC; kind <= FAULT_PREAD; kind++)
        fault_loop("model", &fault, kind, open_and_build, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dummies),      cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_draw),         cmocka_unit_test(test_fused),
        cmocka_unit_test(test_vector_piece), cmocka_unit_test(test_period),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_faults),
    };
    host = fault_host(&fault);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sinter_host_free(host);
    free(file.written);
    return failed;
}
