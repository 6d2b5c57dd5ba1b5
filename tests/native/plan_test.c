/* Plans of dummies and of graphs made by hand: barriers, memory, waits, groups; and that a step has
 * the same bits whatever the threads, their order, the schedule and the offsets. */
#include "native/plan/plan_impl.h"
#include "native/synthetic.h"

#include "fusion/generate.h"

enum { N_KEY = 5 };

/* Kinds of step: decode, few rows, many with the last wanted, none wanted, all wanted. */
static struct plan_key key_at(const struct stack *k, int i, const struct exec_options *o)
{
    static const struct {
        int n_row, n_out;
        unsigned ports;
    } kind[N_KEY] = {{1, 1, PORT_LOGITS},
                     {3, 1, PORT_LOGITS},
                     {64, 1, PORT_LOGITS},
                     {64, 0, 0},
                     {64, 64, PORT_LOGITS}};
    return exec_key(k->device->kind, o, kind[i].n_row, kind[i].n_out, kind[i].ports);
}

static struct plan *make_plan(const struct stack *k, int key, int n_thread, uint64_t order_seed,
                              bool fusion)
{
    struct exec_options o = {.n_thread = n_thread,
                             .n_ctx = 128,
                             .n_chunk = 64,
                             .n_seq = 4,
                             .fuse = {fusion, "", ""},
                             .order_seed = order_seed};
    struct plan_key pk = key_at(k, key, &o);
    struct plan *p;
    OK(exec_plan_for(k->host, k->device->kind, k->device->table, k->graph, &pk, &o, NULL, false, &p,
                     err));
    return p;
}

/* ---- One plan's claims ---------------------------------------------------------------------- */

/* Each group in one step and the same object; each node in one group; a legal order. */
static void check_groups(const struct plan *p)
{
    int order[2048], n = 0;
    bool *seen = calloc((size_t)p->match->n_group + 1, 1);
    for (int s = 0; s < p->n_step; s++) {
        const struct group *g = p->step[s].group;
        if (!g)
            continue;
        assert_true(g >= p->match->group && g < p->match->group + p->match->n_group);
        assert_false(seen[g - p->match->group]);
        seen[g - p->match->group] = true;
        for (int i = 0; i < g->n_node; i++) {
            assert_int_equal(p->match->group_of[g->node[i]], g->id);
            order[n++] = g->node[i];
        }
    }
    free(seen);
    assert_int_equal(n, p->graph->n_node);
    assert_true(graph_order_ok(p->graph, order));
}

static int root_of(const struct plan *p, int b)
{
    while (p->buf[b].alias >= 0)
        b = p->buf[b].alias;
    return b;
}

static bool bytes_meet(const struct buf *a, const struct buf *b)
{
    return a->off < b->off + b->bytes * (size_t)b->copies &&
           b->off < a->off + a->bytes * (size_t)a->copies;
}

/* Buffers of one place are separated by a barrier, unless one took the other's bytes over. */
static void check_memory(const struct plan *p)
{
    int *phase = calloc((size_t)p->n_step + 1, sizeof *phase), n = 0;
    for (int s = 0; s < p->n_step; s++)
        phase[s] = n += p->step[s].barrier;
    phase[p->n_step] = n + 1;
    for (int a = 0; a < p->n_buf; a++)
        for (int b = 0; b < p->n_buf; b++) {
            const struct buf *x = &p->buf[a], *y = &p->buf[b];
            if (a == b || !bytes_meet(x, y) || x->writer > y->writer)
                continue;
            if (root_of(p, a) == root_of(p, b) && x->last <= y->writer)
                continue; /* in place */
            bool apart = x->writer < y->writer && phase[x->last] < phase[y->writer];
            if (!apart)
                fail_msg("%s: %s and %s share bytes", p->graph->name,
                         p->graph->value[x->value].name, p->graph->value[y->value].name);
        }
    for (int b = 0; b < p->n_buf; b++)
        assert_true(p->buf[b].off + p->buf[b].bytes * (size_t)p->buf[b].copies <= p->bytes);
    free(phase);
}

/* Every conflict is waited for, directly or not, and no wait follows from the others. */
static int check_after(const struct native_kind *kind, const struct plan *p)
{
    int n = p->n_step, n_after = 0;
    bool *reach = calloc((size_t)n * (size_t)n + 1, 1);
    for (int s = 0; s < n; s++) {
        const struct plan_step *step = &p->step[s];
        for (int i = 0; i < step->n_after; i++) {
            int t = step->after[i];
            assert_true(t >= 0 && t < s && (i == 0 || t > step->after[i - 1]));
            assert_true(plan_conflict(kind, p, s, t));
            for (int j = i + 1; j < step->n_after; j++)
                assert_false(reach[step->after[j] * n + t]); /* else t need not stand here */
            for (int u = 0; u < t; u++)
                reach[s * n + u] |= reach[t * n + u];
            reach[s * n + t] = true;
            n_after++;
        }
        for (int t = 0; t < s; t++)
            if (plan_conflict(kind, p, s, t))
                assert_true(reach[s * n + t]);
    }
    free(reach);
    return n_after;
}

/* A step conflicts with the writer of what it reads: by graph edges, not by bytes. */
static void check_edges(const struct native_kind *kind, const struct plan *p)
{
    for (int s = 0; s < p->n_step; s++) {
        const struct group *g = p->step[s].group;
        for (int i = 0; g && i < g->n_in; i++) {
            int maker = p->graph->value[g->in[i]].node;
            for (int t = 0; maker >= 0 && t < p->n_step; t++)
                if (p->step[t].group == &p->match->group[p->match->group_of[maker]]) {
                    bool via_int8 =
                        p->buf_of[FORM_F32][g->in[i]] < 0 || p->buf_of[FORM_INT8][g->in[i]] >= 0;
                    assert_true(t < s);
                    if (!via_int8 || p->graph->value[g->in[i]].kind == VALUE_STATE)
                        assert_true(plan_conflict(kind, p, s, t));
                }
        }
    }
}

static void test_plans(void **state)
{
    struct subject subject;
    bool ref_only;
    int n_plan = 0, n_after = 0;
    (void)state;
    for (int i = 0; subject_at(i, &subject, &ref_only); i++)
        for (int cpu = 0; cpu < (ref_only ? 1 : 2); cpu++) {
            struct stack k =
                stack_open(&subject, &(struct stack_options){.backend = cpu ? "cpu" : "ref"});
            for (int key = 0; key < N_KEY; key++)
                for (int n_thread = 1; n_thread <= 3; n_thread += 2)
                    for (uint64_t seed = 0; seed < 4; seed++) {
                        struct plan *p = make_plan(&k, key, n_thread, seed, seed < 3);
                        assert_int_equal(p->n_ban, 0); /* FULL has never refused our own plan */
                        assert_int_equal(p->n_round, 1);
                        check_groups(p);
                        check_memory(p);
                        check_edges(k.device->kind, p);
                        n_after += check_after(k.device->kind, p);
                        n_plan++;
                        plan_free(p);
                    }
            stack_close(&k);
        }
    printf("plans: %d, %d waits\n", n_plan, n_after);
}

static unsigned out_ports(const struct graph *g)
{
    unsigned ports = 0;
    for (int v = 0; v < g->n_value; v++)
        ports |= g->value[v].port & ~(unsigned)PORT_INS;
    return ports;
}

/* A graph around each variant of the table: what the dummies do not have. */
static int plan_variants(sinter_host *host, const struct backend *backend, int *n_all)
{
    struct device *d;
    int n = 0;
    OK(backend->open(host, &d, err));
    for (int v = 0; v < d->table->n_variant; v++) {
        struct generated g;
        OK(generate_fires(host, d->table, &d->table->variant[v], NULL, &g, err));
        ++*n_all;
        if (backend->refuse(d, g.graph, NULL) == SINTER_OK) /* it has ops the backend lacks */
            for (int i = 0; i < 8; i++) {
                struct exec_options o = {.n_thread = 1 + i / 4,
                                         .n_ctx = 128,
                                         .n_chunk = 64,
                                         .n_seq = 4,
                                         .fuse = {i % 4 < 3, "", ""},
                                         .order_seed = (uint64_t)i / 2};
                struct plan_key key = exec_key(d->kind, &o, i % 2 ? 40 : 1, 1, out_ports(g.graph));
                struct plan *p;
                OK(exec_plan_for(host, d->kind, d->table, g.graph, &key, &o, NULL, false, &p, err));
                assert_int_equal(p->n_ban, 0);
                check_groups(p);
                check_memory(p);
                check_after(d->kind, p);
                plan_free(p);
                n++;
            }
        graph_free(g.graph);
    }
    backend->close(d);
    return n;
}

static void test_variants(void **state)
{
    sinter_host *host;
    int n = 0, n_variant = 0;
    (void)state;
    OK(sinter_host_create(NULL, &host, err));
    for (int i = 0; i < backend_n; i++)
        n += plan_variants(host, backend_list[i], &n_variant);
    sinter_host_free(host);
    printf("plans of %d generated graphs: %d\n", n_variant, n);
}

static int layer_barriers(const struct plan *p, int layer)
{
    int n = 0;
    for (int s = 0; s < p->n_step; s++)
        n += p->step[s].barrier && p->step[s].layer == layer;
    return n;
}

/* Barriers of a decoded layer on cpu: five; one more where a single KV head is shared by all
 * threads. The dummies' routers of eight experts add none: every thread works through them. */
static void test_barriers(void **state)
{
    struct subject subject;
    bool ref_only;
    (void)state;
    for (int i = 0; subject_at(i, &subject, &ref_only) && !subject.make; i++) {
        struct stack k = stack_open(&subject, &(struct stack_options){.backend = "cpu"});
        struct plan *p = make_plan(&k, 0, 2, 0, true);
        int n = plan_barriers_per_layer(p);
        printf("%-20s %d barriers/layer, %d converts\n", subject.name, n, p->n_convert);
        for (int l = 0; l < k.graph->n_slot; l++)
            assert_int_equal(layer_barriers(p, l), 5 + (k.graph->slot[l].n_head_kv == 1));
        plan_free(p);
        stack_close(&k);
    }
}

/* ---- Running ----------------------------------------------------------------------------------
 */

/* A prompt in one chunk, three rows, and single ones, on two sequences in turns. */
enum { N_ROWS = 20 + 3 + 2 };

static float *run_all(const struct subject *subject, const struct stack_options *o, int *n_ban)
{
    struct stack k = stack_open(subject, o);
    float *x = stack_logits(&k, 2 * N_ROWS), *other = x + (size_t)N_ROWS * (size_t)k.n_vocab;
    struct seq *s = stack_seq(&k), *t = stack_seq(&k);
    const int cut[] = {0, 20, 23, 24, N_ROWS};
    for (int i = 0; i < 4; i++) {
        stack_text(&k, s, cut[i], cut[i + 1], 64, x + (size_t)cut[i] * (size_t)k.n_vocab);
        stack_text(&k, t, cut[i], cut[i + 1], 64, other + (size_t)cut[i] * (size_t)k.n_vocab);
    }
    assert_memory_equal(x, other, stack_bytes(&k, N_ROWS));
    *n_ban = 0;
    for (int i = 0; i < k.exec->n_plan; i++)
        *n_ban += k.exec->plan[i]->n_ban;
    k.backend->drop(s);
    k.backend->drop(t);
    stack_close(&k);
    return x;
}

/* Puts outputs of fused groups over what is still read after them: FULL has to refuse. By the
 * output's name, so that a round does as the one before. */
static void hostile_offsets(struct plan *p, uint64_t seed)
{
    for (int b = 0; b < p->n_buf; b++) {
        int s = p->buf[b].writer;
        if (s < 0 || !p->step[s].group || p->step[s].group->n_node < 2)
            continue;
        uint64_t h = seed;
        for (const char *c = p->graph->value[p->buf[b].value].name; *c; c++)
            h = h * 6364136223846793005u + (unsigned char)*c;
        int victim = (int)((h >> 40) % (uint64_t)p->n_buf);
        for (int i = 0; h >> 62 && i < p->n_buf; i++, victim = (victim + 1) % p->n_buf)
            if (p->buf[victim].writer < s && p->buf[victim].last > s) {
                p->buf[b].off = p->buf[victim].off;
                break;
            }
    }
}

static void check_same(const char *name, const char *what, const float *want, float *got,
                       size_t bytes)
{
    if (memcmp(want, got, bytes) != 0)
        fail_msg("%s: other bits with %s", name, what);
    free(got);
}

static void check_near(const char *name, const float *want, float *got, size_t n)
{
    double diff = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        diff += ((double)got[i] - (double)want[i]) * ((double)got[i] - (double)want[i]);
        sum += (double)want[i] * (double)want[i];
    }
    if (!(diff <= 1e-3 * sum))
        fail_msg("%s: nmse %g with hostile offsets", name, diff / sum);
    free(got);
}

/* Threads at once and one after the other, schedules, with and without fusion. On cpu attention has
 * bits of its own: there each way has its own reference. */
static void check_threads(const struct subject *subject, const struct stack_options *base,
                          const float *want, size_t bytes, int *n_same)
{
    int n_ban;
    for (int n_thread = 2; n_thread <= 3; n_thread++)
        for (int serial = n_thread == 3; serial <= EXEC_SERIAL_DOWN; serial++) {
            struct stack_options o = *base;
            o.n_thread = n_thread;
            o.serial = (enum exec_serial)serial;
            o.order_seed = (uint64_t)(n_thread * 3 + serial - 1);
            check_same(subject->name, base->no_fusion ? "threads, unfused" : "threads", want,
                       run_all(subject, &o, &n_ban), bytes);
            ++*n_same;
        }
}

static void check_hostile(const struct subject *subject, const struct stack_options *base,
                          const float *want, size_t bytes, int *n_banned)
{
    for (uint64_t seed = 1; seed <= 2; seed++) {
        struct stack_options o = *base;
        int n_ban;
        o.n_thread = 2;
        o.serial = seed % 2 ? EXEC_SERIAL_UP : EXEC_SERIAL_DOWN;
        o.offsets = hostile_offsets;
        o.offsets_seed = seed;
        float *got = run_all(subject, &o, &n_ban);
        *n_banned += n_ban;
        if (strcmp(base->backend, "ref") == 0)
            check_same(subject->name, "hostile offsets", want, got, bytes);
        else /* bans of OWN groups change bits */
            check_near(subject->name, want, got, bytes / sizeof *want);
    }
}

static void same_bits(const struct subject *subject, const char *backend, const char *mask,
                      int *n_same, int *n_banned)
{
    struct stack_options o = {.backend = backend, .mask = mask};
    struct stack k = stack_open(subject, &o);
    size_t bytes = stack_bytes(&k, 2 * N_ROWS);
    int n_ban;
    stack_close(&k);
    float *fused = run_all(subject, &o, &n_ban);
    check_threads(subject, &o, fused, bytes, n_same);
    check_hostile(subject, &o, fused, bytes, n_banned);
    o.no_fusion = true;
    float *unfused = run_all(subject, &o, &n_ban);
    if (strcmp(backend, "ref") == 0)
        assert_memory_equal(fused, unfused, bytes);
    check_near(subject->name, unfused, fused, bytes / sizeof *fused);
    check_threads(subject, &o, unfused, bytes, n_same);
    free(unfused);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLOW_BUILD = 1 };
#else
enum { SLOW_BUILD = 0 };
#endif

/* The small ones of each family; the types of weights matter to kernels, not to plans, but for who
 * converts rows to INT8: one family has them all. */
static bool is_run(const struct dummy_options *d)
{
    return d->kind == DUMMY_F32 ||
           (d->kind != DUMMY_FUSED && strcmp(d->arch, "llama") == 0 && !SLOW_BUILD);
}

static void test_same_bits(void **state)
{
    struct subject subject;
    const char *mask[4];
    int n_mask = stack_masks(mask), n_same = 0, n_banned = 0;
    bool ref_only;
    (void)state;
    for (int i = 0; subject_at(i, &subject, &ref_only); i++) {
        if (!subject.make && !is_run(&subject.dummy))
            continue;
        same_bits(&subject, "ref", "", &n_same, &n_banned);
        for (int m = SLOW_BUILD ? n_mask - 1 : 0; !ref_only && m < n_mask; m++)
            same_bits(&subject, "cpu", mask[m], &n_same, &n_banned);
    }
    assert_true(n_banned > 0);
    printf("same bits: %d/%d, %d bans\n", n_same, n_same, n_banned);
}

/* A weight that is read in ways that no one layout serves is refused. */
static struct graph *two_roles(sinter_host *host)
{
    struct synthetic s = {0};
    union attr one = {.MATMUL = {1}};
    int x = syn_start(&s, host, "two_roles"), w = syn_weight(&s, "both.weight", 1, SYN_D);
    int y = syn_op(&s, "y", OP_MATMUL, one, x, w, -1);
    x = syn_op(&s, "x", OP_MUL, ATTR_NONE, x, w, -1);
    return syn_end(&s, syn_op(&s, "sum", OP_MUL, ATTR_NONE, x, y, -1));
}

static void test_two_roles(void **state)
{
    sinter_host *host;
    const struct backend *backend;
    struct device *device;
    struct weights *weights;
    (void)state;
    OK(sinter_host_create(NULL, &host, err));
    struct graph *g = two_roles(host);
    struct weight_source src = {NULL, stack_read_random, NULL};
    OK(backend_find("cpu", &backend, err));
    OK(backend->open(host, &device, err));
    REFUSED(backend->load(device, &g, 1, &src, &weights, err), UNSUPPORTED, "both.weight");
    backend->close(device);
    graph_free(g);
    sinter_host_free(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),     cmocka_unit_test(test_variants),
        cmocka_unit_test(test_barriers),  cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_two_roles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
