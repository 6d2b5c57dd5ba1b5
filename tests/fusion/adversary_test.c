/* Random legal graphs (adversary.h), each run in many ways that must agree: fused and not, on one
 * thread and more, threads one after the other up and down (what lacks a barrier then reads what is
 * not yet written), in random legal schedules; cpu against ref where all weights are F32 and no
 * router decides.
 *
 *     fusion_adversary_test [first seed] [number of seeds] [labels to disable] */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fusion/adversary.h"

struct way {
    bool fusion;
    int n_thread;
    enum exec_serial serial;
    uint64_t order_seed;
};

static const struct way ways[] = {
    {false, 1, EXEC_THREADS, 0},     {true, 1, EXEC_THREADS, 0},     {true, 2, EXEC_SERIAL_UP, 0},
    {true, 2, EXEC_SERIAL_DOWN, 1},  {true, 3, EXEC_SERIAL_DOWN, 0}, {true, 3, EXEC_SERIAL_UP, 2},
    {false, 2, EXEC_SERIAL_DOWN, 0}, {false, 3, EXEC_SERIAL_UP, 3},  {true, 3, EXEC_THREADS, 4},
};
enum { N_WAY = sizeof ways / sizeof ways[0] };

static struct lines_seen seen[2 * N_WAY];
static struct device *devices[2]; /* ref, cpu */
static sinter_host *host;
static const char *disable = "";
static int n_all, n_ok, n_group, n_graph;

/* One step of some of the sequences; rows, wanted rows and ports by the seed. */
static void step(struct exec *x, struct seq *const *seq, unsigned has, uint64_t *s,
                 struct lines_seen *to)
{
    struct batch_seg seg[ADV_N_SEQ];
    struct batch_out out[ADV_CHUNK];
    int32_t id[ADV_CHUNK];
    struct result r;
    sinter_error err;
    struct batch b = {.seg = seg, .id = id, .out = out};
    int few = (int)(adv_next(s) % 2), want = (int)(adv_next(s) % 4);
    unsigned kinds = (unsigned)adv_next(s) & has;
    for (int i = 0; i < ADV_N_SEQ; i++) {
        int past = seq_rows(seq[i]), room = ADV_CHUNK - b.n_row;
        int n = (int)(adv_next(s) % (few ? 3 : 18));
        n = n > room ? room : n > ADV_CTX - past ? ADV_CTX - past : n;
        if (adv_next(s) % 3 == 0)
            continue;
        seg[b.n_seg++] = (struct batch_seg){seq[i], b.n_row, n, past};
        for (int k = 0; k < n; k++)
            id[b.n_row++] = (int32_t)(adv_next(s) % GENERATE_VOCAB);
    }
    for (int i = 0; want && i < b.n_row; i++)
        if (want == 1 || adv_next(s) % (want == 2 ? 2 : 6) == 0)
            out[b.n_out++] = (struct batch_out){i, kinds};
    if (exec_reserve(x, &b, &err) != SINTER_OK || exec_submit(x, &b, &err) != SINTER_OK ||
        exec_wait(x, &r, &err) != SINTER_OK)
        fail_msg("%s: %s", x->graph->name, err.message);
    for (int i = 0; i < b.n_seg; i++)
        assert_int_equal(seq_commit(seg[i].seq, seg[i].n_row, &err), SINTER_OK);
    size_t n = (size_t)b.n_out;
    if (r.logits && n)
        lines_see(to, r.logits, n * (size_t)r.n_vocab);
    if (r.hidden && n)
        lines_see(to, r.hidden, n * (size_t)r.d_model);
    if (r.argmax && n)
        lines_see(to, r.argmax, n);
}

static void run(struct device *d, const struct weights *w, const struct graph *g,
                const struct way *way, uint64_t seed, struct lines_seen *to)
{
    const struct state_options so = {.page_rows = 16,
                                     .type_k = QUANT_F32,
                                     .type_v = QUANT_F32,
                                     .n_seq = ADV_N_SEQ,
                                     .n_row = ADV_N_SEQ * ADV_CTX,
                                     .n_ctx = ADV_CTX,
                                     .n_chunk = ADV_CHUNK};
    const struct exec_options eo = {.n_thread = way->n_thread,
                                    .n_ctx = ADV_CTX,
                                    .n_chunk = ADV_CHUNK,
                                    .n_seq = ADV_N_SEQ,
                                    .fuse = {way->fusion, disable, ""},
                                    .stats = d->stats,
                                    .serial = way->serial,
                                    .order_seed = way->order_seed};
    struct state_pool *pool;
    struct exec *x;
    struct seq *seq[ADV_N_SEQ];
    unsigned has = 0;
    sinter_error err;
    if (native_pool_make(d, g, &so, &pool, &err) != SINTER_OK ||
        native_build(d, g, w, pool, &eo, &x, &err) != SINTER_OK)
        fail_msg("%s: %s", g->name, err.message);
    for (int i = 0; i < ADV_N_SEQ; i++)
        assert_int_equal(seq_fork(pool, NULL, &seq[i], &err), SINTER_OK);
    for (int v = 0; v < g->n_value; v++)
        has |= g->value[v].port & ~(unsigned)PORT_INS;
    *to = (struct lines_seen){.x = to->x};
    fuse_stats_reset(d->stats);
    uint64_t s = seed * 0x2545f4914f6cdd1du + 7;
    for (int i = 0; i < ADV_N_STEP; i++)
        step(x, seq, has, &s, to);
    lines_count_step(d, -1, 0, to);
    for (int i = 0; i < ADV_N_SEQ; i++) {
        lines_see_state(to, g, seq[i]);
        seq_drop(seq[i]);
    }
    exec_free(x);
    state_pool_free(pool);
}

static double nmse(const struct lines_seen *a, const struct lines_seen *b)
{
    double diff = 0, sum = 0;
    for (size_t i = 0; i < b->n; i++) {
        double x = a->x[i], y = b->x[i];
        diff += (x - y) * (x - y);
        sum += y * y;
    }
    if (a->n != b->n)
        return INFINITY;
    return !isfinite(sum) ? 0 : sum > 0 ? diff / sum : diff; /* overflowed: nothing is near */
}

static bool same(const struct lines_seen *a, const struct lines_seen *b)
{
    return a->n == b->n && memcmp(a->x, b->x, a->n * sizeof *a->x) == 0;
}

static void count(bool ok, const struct graph *g, const char *backend, int way, const char *what,
                  double by)
{
    n_all++;
    n_ok += ok;
    if (!ok)
        print_message("%s on %s, way %d: %s (NMSE %g)\n", g->name, backend, way, what, by);
}

static bool has_op(const struct graph *g, enum op op)
{
    for (int k = 0; k < g->n_node; k++)
        if (g->node[k].op == op)
            return true;
    return false;
}

static bool is_f32(const struct graph *g)
{
    for (int w = 0; w < g->n_weight; w++)
        if (g->weight[w].type != QUANT_F32)
            return false;
    return true;
}

/* How far other rounding may lead. It may tip the int8 code of an activation; a router may take
 * another expert, and then there is no bound. */
static double bound(const struct graph *g)
{
    return has_op(g, OP_TOPK) ? INFINITY : is_f32(g) ? 1e-6 : 1e-3;
}

static void near(const struct lines_seen *a, const struct lines_seen *b, const struct graph *g,
                 const char *backend, int way, const char *what)
{
    if (isfinite(bound(g)))
        count(nmse(a, b) <= bound(g), g, backend, way, what, nmse(a, b));
}

/* All ways of one backend; seen[0] is the unfused one. OWN groups: bits by way of fusion. */
static void backend(struct device *d, const struct graph *g, uint64_t seed, int n_way,
                    struct lines_seen *to)
{
    const struct weight_source source = {.ctx = (void *)(uintptr_t)g, .read = lines_read};
    struct graph *graphs[1] = {(struct graph *)(uintptr_t)g};
    struct weights *w;
    sinter_error err;
    if (native_load(d, graphs, 1, &source, &w, &err) != SINTER_OK)
        fail_msg("%s: %s", g->name, err.message);
    for (int i = 0; i < n_way; i++) {
        run(d, w, g, &ways[i], seed, &to[i]);
        const struct lines_seen *like = ways[i].fusion && to[i].own ? &to[1] : &to[0];
        count(same(&to[i], like), g, d->kind->name, i, "other bits", nmse(&to[i], like));
        n_group += ways[i].fusion ? to[i].n_fused : 0;
        if (!ways[i].fusion)
            count(to[i].n_fused == 0, g, d->kind->name, i, "fusions in the unfused run", 0);
    }
    near(&to[1], &to[0], g, d->kind->name, 1, "far from unfused");
    native_unload(d, w);
}

static void one_graph(struct graph *g, uint64_t seed, bool ref_only, int n_way)
{
    backend(devices[0], g, seed, n_way, seen);
    if (!ref_only)
        backend(devices[1], g, seed, n_way, seen + N_WAY);
    if (!ref_only && is_f32(g))
        near(&seen[N_WAY], &seen[0], g, "cpu", 0, "far from ref");
    n_graph++;
    graph_free(g);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static uint64_t first_seed = 1, n_seed = 10;
#else
static uint64_t first_seed = 1, n_seed = 30;
#endif

static void random_graphs(void **state)
{
    sinter_error err;
    enum cpu_level level;
    (void)state;
    assert_int_equal(sinter_host_create(NULL, &host, &err), SINTER_OK);
    assert_int_equal(sinter_host_set(host, "threads", "3", &err), SINTER_OK);
    assert_int_equal(cpu_level_masked("", &level, &err), SINTER_OK);
    assert_int_equal(native_open(host, &ref_kind, NULL, NULL, &devices[0], &err), SINTER_OK);
    assert_int_equal(native_open(host, cpu_kind(level), NULL, NULL, &devices[1], &err), SINTER_OK);
    for (int i = 0; i < 2 * N_WAY; i++)
        seen[i].x = malloc(LINES_FLOATS * sizeof *seen[i].x);
    one_graph(adv_wide(host), 1, false, 2);
    for (uint64_t seed = first_seed; seed < first_seed + n_seed; seed++)
        one_graph(adv_graph(host, seed, seed % 3 == 0), seed, seed % 3 == 0, N_WAY);
    for (int i = 0; i < 2 * N_WAY; i++)
        free(seen[i].x);
    native_close(devices[0]);
    native_close(devices[1]);
    sinter_host_free(host);
    print_message("adversary: %d/%d, %d graphs, %d groups run\n", n_ok, n_all, n_graph, n_group);
    assert_true(n_group > n_graph);
    assert_int_equal(n_ok, n_all);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs)};
    if (argc > 1)
        first_seed = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        n_seed = strtoull(argv[2], NULL, 10);
    if (argc > 3)
        disable = argv[3];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
