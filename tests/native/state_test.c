/* Pages and slots: a sequence that was cut, forked, trimmed, saved or half accepted goes on with
 * the bits of one that was not, or the call is refused with its reason. */
#include "native/synthetic.h"

#include <signal.h>
#include <sys/wait.h>

enum { LEN = 48 };

static int n_ok;

/* The fresh run: logits [LEN][n_vocab] of the text in one chunk. */
static float *fresh(const struct stack *k)
{
    struct seq *s = stack_seq(k);
    float *x = stack_logits(k, LEN);
    stack_text(k, s, 0, LEN, LEN, x);
    k->backend->drop(s);
    return x;
}

/* Goes on with rows [at, to) and compares with the fresh run. */
static void goes_on(const struct stack *k, struct seq *s, const float *want, int at, int to)
{
    float *x = stack_logits(k, to - at + 1);
    assert_int_equal(seq_rows(s), at);
    int one = at + 1 < to ? at + 1 : to;
    stack_text(k, s, at, one, 1, x); /* one alone, the rest together */
    stack_text(k, s, one, to, LEN, x + (size_t)(one - at) * (size_t)k->n_vocab);
    for (int r = at; r < to; r++)
        if (memcmp(x + (size_t)(r - at) * (size_t)k->n_vocab, want + (size_t)r * (size_t)k->n_vocab,
                   stack_bytes(k, 1)) != 0)
            fail_msg("row %d of %d.. differs from the fresh run", r, at);
    free(x);
    n_ok++;
}

static int n_free(const struct state_pool *p)
{
    int n = 0;
    for (int i = 0; i < p->n_class; i++)
        n += p->class[i].page.n_free;
    for (int r = 0; r < p->n_rec; r++)
        n += p->rec[r].n_free;
    return n;
}

static int window_of(const struct stack *k)
{
    int window = 0;
    for (int i = 0; i < k->graph->n_slot; i++)
        if (k->graph->slot[i].window)
            window = k->graph->slot[i].window;
    return window;
}

static struct seq *fork_of(const struct stack *k, struct seq *from)
{
    struct seq *s;
    OK(k->backend->fork(k->state, from, &s, err));
    return s;
}

/* ---- Lengths, forks, trims --------------------------------------------------------------------
 */

/* Two forks of a sequence of n rows go on, one of them trimmed; both as if alone. */
static void forks(const struct stack *k, const float *want, struct seq *s, int n)
{
    struct seq *a = fork_of(k, s), *b = fork_of(k, s);
    goes_on(k, a, want, n, n + 3);
    goes_on(k, s, want, n, n + 1);
    goes_on(k, b, want, n, LEN);
    k->backend->drop(a);
    k->backend->drop(b);
}

static void trims(const struct stack *k, const float *want, int n)
{
    int window = window_of(k), n_refused = 0;
    for (int to = 0; to <= n; to++) {
        struct seq *s = stack_seq(k);
        sinter_error err;
        stack_text(k, s, 0, n, 7, NULL);
        sinter_status status = k->backend->trim(s, to, &err);
        if (status == SINTER_OK) {
            goes_on(k, s, want, to, to + 2);
        } else {
            assert_int_equal(status, SINTER_E_STATE);
            assert_non_null(strstr(err.message, "window"));
            assert_true(window && to < n && to > 0);
            goes_on(k, s, want, n, n + 2); /* a refusal changes nothing */
            n_refused++;
        }
        k->backend->drop(s);
    }
    if (!window)
        assert_int_equal(n_refused, 0);
    REFUSED(seq_trim(stack_seq(k), 1, err), STATE, "the sequence has 0");
}

static void lengths(const struct subject *subject, const struct stack_options *o)
{
    struct stack k = stack_open(subject, o);
    int start = n_free(k.state), w = window_of(&k);
    float *want = fresh(&k);
    const int n[] = {15, 16, 17, 31, 32, 33, w - 1, w, w + 1, w + 16};
    for (int i = 0; i < 10; i++) {
        if (n[i] < 1 || n[i] > LEN - 4)
            continue;
        struct seq *s = stack_seq(&k);
        goes_on(&k, s, want, 0, n[i]);
        forks(&k, want, s, n[i]);
        k.backend->drop(s);
        assert_int_equal(n_free(k.state), start);
    }
    trims(&k, want, 40);
    free(want);
    stack_close(&k);
}

static void test_lengths(void **state)
{
    static const struct stack_options ways[] = {
        {.backend = "ref", .page_rows = 16, .type_k = QUANT_F16, .type_v = QUANT_F16},
        {.backend = "cpu", .page_rows = 16, .type_k = QUANT_F16, .type_v = QUANT_F16},
        {.backend = "cpu", .page_rows = 64, .type_k = QUANT_F32, .type_v = QUANT_F16},
        {.backend = "cpu",
         .page_rows = 16,
         .type_k = QUANT_F32,
         .type_v = QUANT_F32,
         .n_thread = 2},
    };
    struct subject subject;
    bool ref_only;
    (void)state;
    n_ok = 0;
    for (int i = 0; subject_at(i, &subject, &ref_only) && !subject.make; i++)
        for (int w = 0; w < 4 && subject.dummy.kind == DUMMY_F32; w++)
            lengths(&subject, &ways[w]);
    printf("pages: %d/%d\n", n_ok, n_ok);
}

/* Page sizes do not move a bit, nor does q8_0 on ref go on with other ones. */
static void test_page_sizes(void **state)
{
    struct subject subject = {.name = "gemma3-f32", .dummy = {.arch = "gemma3", .kind = DUMMY_F32}};
    (void)state;
    for (int cpu = 0; cpu < 2; cpu++) {
        float *x[2];
        size_t bytes = 0;
        for (int p = 0; p < 2; p++) {
            struct stack k =
                stack_open(&subject, &(struct stack_options){.backend = cpu ? "cpu" : "ref",
                                                             .page_rows = p ? 64 : 16,
                                                             .type_k = QUANT_F16,
                                                             .type_v = QUANT_F16});
            x[p] = fresh(&k);
            bytes = stack_bytes(&k, LEN);
            stack_close(&k);
        }
        assert_memory_equal(x[0], x[1], bytes);
        free(x[0]);
        free(x[1]);
    }
}

static void test_q8(void **state)
{
    struct subject subject = {.name = "llama-mixed",
                              .dummy = {.arch = "llama", .kind = DUMMY_MIXED}};
    struct stack_options o = {.backend = "ref", .type_k = QUANT_Q8_0, .type_v = QUANT_Q8_0};
    (void)state;
    struct stack k = stack_open(&subject, &(struct stack_options){.backend = "ref"});
    bool fits = true;
    for (int i = 0; i < k.graph->n_slot; i++)
        fits &= k.graph->slot[i].d_k % 32 == 0 && k.graph->slot[i].d_v % 32 == 0;
    if (!fits) { /* refused with the layer and what to use */
        struct state_pool *pool;
        struct state_options so = k.so;
        so.type_k = so.type_v = QUANT_Q8_0;
        REFUSED(k.backend->pool_make(k.device, k.graph, &so, &pool, err), UNSUPPORTED, "use f16");
    }
    stack_close(&k);
    if (fits)
        lengths(&subject, &o);
}

/* ---- Steps ------------------------------------------------------------------------------------
 */

static const struct subject llama = {.name = "llama-f32",
                                     .dummy = {.arch = "llama", .kind = DUMMY_F32}};
static const struct subject gemma = {.name = "gemma3-f32",
                                     .dummy = {.arch = "gemma3", .kind = DUMMY_F32}};

static void test_refusals(void **state)
{
    struct stack k = stack_open(&llama, &(struct stack_options){.backend = "ref", .n_ctx = 32});
    struct seq *s = stack_seq(&k), *t;
    (void)state;
    stack_text(&k, s, 0, 10, 10, NULL);
    REFUSED(stack_submit(&k, s, 9, 1, NULL, NULL, err), STATE, "ends at 10");
    REFUSED(stack_submit(&k, s, 11, 1, NULL, NULL, err), STATE, "starts at row 11");
    REFUSED(stack_submit(&k, s, 10, 23, NULL, NULL, err), CONTEXT, "10 tokens are in it, 23 more");
    REFUSED(stack_submit(&k, s, 10, 65, NULL, NULL, err), LIMIT, "65");
    REFUSED(k.backend->commit(s, 0, err), STATE, "without an open step");
    OK(stack_submit(&k, s, 10, 2, NULL, NULL, err));
    REFUSED(k.backend->commit(s, 3, err), STATE, "the step has 2");
    REFUSED(k.backend->commit(s, -1, err), STATE, "-1");
    REFUSED(k.backend->trim(s, 5, err), STATE, "open");
    REFUSED(k.backend->fork(k.state, s, &t, err), STATE, "open");
    struct text_buf b;
    text_buf_init(&b, k.host);
    REFUSED(k.backend->save(k.device, s, 0, 5, &b, err), STATE, "open");
    REFUSED(k.backend->restore(k.device, s, 0, "", 0, err), STATE, "open");
    OK(k.backend->commit(s, 2, err));
    REFUSED(k.backend->trim(s, 13, err), STATE, "the sequence has 12");
    REFUSED(k.backend->save(k.device, s, 3, 13, &b, err), STATE, "of 12");
    for (int i = 0; i < 3; i++)
        (void)stack_seq(&k);
    REFUSED(k.backend->fork(k.state, NULL, &t, err), STATE, "all 4 sequences");
    /* one sequence twice in a step; a gap between segments; rows out of order */
    int32_t id[4] = {0};
    struct result r;
    struct batch_seg twice[2] = {{s, 0, 1, 12}, {s, 1, 1, 12}}, gap = {s, 1, 1, 12};
    struct batch_out out[2] = {{0, PORT_LOGITS}, {0, PORT_LOGITS}};
    REFUSED(k.backend->reserve(k.exec, &(struct batch){2, 2, 0, twice, id, NULL, out, NULL}, err),
            USAGE, "twice");
    REFUSED(k.backend->reserve(k.exec, &(struct batch){1, 1, 0, &gap, id, NULL, out, NULL}, err),
            USAGE, "starts at row 1");
    REFUSED(k.backend->reserve(k.exec, &(struct batch){1, 1, 2, twice, id, NULL, out, NULL}, err),
            USAGE, "out of order");
    REFUSED(k.backend->wait(k.exec, &r, err), USAGE, "without");
    REFUSED(k.backend->submit(k.exec, &(struct batch){1, 1, 0, twice, id, NULL, out, NULL}, err),
            USAGE, "reserved");
    text_buf_free(&b);
    stack_close(&k);
}

/* Both or none: the second sequence finds no page. */
static void test_full(void **state)
{
    struct stack k = stack_open(
        &llama,
        &(struct stack_options){.backend = "ref", .page_rows = 16, .n_seq = 2, .n_row = 32});
    struct seq *s = stack_seq(&k), *t = stack_seq(&k);
    int32_t id[64] = {0};
    (void)state;
    stack_text(&k, s, 0, 50, 50, NULL); /* 4 of 32 / 16 + 2 * 2 = 6 pages */
    int before = n_free(k.state);
    struct batch_seg seg[2] = {{s, 0, 14, 50}, {t, 14, 33, 0}};
    REFUSED(k.backend->reserve(k.exec, &(struct batch){2, 47, 0, seg, id, NULL, NULL, NULL}, err),
            MEMORY, "KV cache is full");
    assert_int_equal(n_free(k.state), before);
    assert_int_equal(s->n_open + t->n_open, 0);
    seg[1].n_row = 32;
    OK(k.backend->reserve(k.exec, &(struct batch){2, 46, 0, seg, id, NULL, NULL, NULL}, err));
    OK(k.backend->commit(s, 0, err)); /* never submitted: dropped */
    OK(k.backend->commit(t, 0, err));
    assert_int_equal(n_free(k.state), before);
    stack_close(&k);
}

/* Half accepted, none accepted, one step behind, younger steps dropped, cancelled. */
static void commits(const struct subject *subject, const char *backend)
{
    struct stack k = stack_open(subject, &(struct stack_options){.backend = backend});
    float *want = fresh(&k);
    int start = n_free(k.state);
    for (int n = 0; n <= 5; n++) { /* n of 5 rows are accepted */
        struct seq *s = stack_seq(&k);
        stack_text(&k, s, 0, 20, 20, NULL);
        OK(stack_submit(&k, s, 20, 5, NULL, NULL, err));
        OK(k.backend->commit(s, n, err));
        goes_on(&k, s, want, 20 + n, 20 + n + 8);
        k.backend->drop(s);
    }
    for (int n = 0; n <= 2; n++) { /* two open steps, n of the older one's 2 rows are accepted */
        struct seq *s = stack_seq(&k);
        stack_text(&k, s, 0, 30, 30, NULL);
        OK(stack_submit(&k, s, 30, 2, NULL, NULL, err));
        OK(stack_submit(&k, s, 32, 3, NULL, NULL, err));
        OK(k.backend->commit(s, n, err));
        assert_int_equal(s->n_open, n == 2);
        if (n == 2)
            OK(k.backend->commit(s, 3, err));
        goes_on(&k, s, want, n == 2 ? 35 : 30 + n, 40);
        k.backend->drop(s);
    }
    struct seq *s = stack_seq(&k);
    atomic_int cancel = 1;
    stack_text(&k, s, 0, 16, 16, NULL);
    REFUSED(stack_submit(&k, s, 16, 4, NULL, &cancel, err), CANCELLED, "cancelled");
    OK(k.backend->commit(s, 0, err));
    goes_on(&k, s, want, 16, 24);
    for (int i = 0; i < 4; i++) /* steps of nobody's commit go with the sequence */
        OK(stack_submit(&k, s, 24 + i, 1, NULL, NULL, err));
    REFUSED(stack_submit(&k, s, 28, 1, NULL, NULL, err), STATE, "4 steps");
    k.backend->drop(s);
    assert_int_equal(n_free(k.state), start);
    free(want);
    stack_close(&k);
}

static void test_commits(void **state)
{
    (void)state;
    n_ok = 0;
    commits(&llama, "ref");
    commits(&llama, "cpu");
    commits(&gemma, "cpu");
    printf("commits: %d/%d\n", n_ok, n_ok);
}

/* ---- Save and restore -------------------------------------------------------------------------
 */

static struct text_buf saved_of(const struct stack *k, struct seq *s, int from, int to)
{
    struct text_buf b;
    text_buf_init(&b, k->host);
    OK(k->backend->save(k->device, s, from, to, &b, err));
    OK(text_buf_end(&b, err));
    return b;
}

/* Saved at page size 16, whole and in two pieces, restored at 64; and the other way. */
static void saves(const struct subject *subject, const char *backend, enum quant_type type)
{
    struct stack_options o = {.backend = backend, .type_k = type, .type_v = type};
    struct stack k[2];
    float *want = NULL;
    for (int i = 0; i < 2; i++) {
        o.page_rows = i ? 64 : 16;
        k[i] = stack_open(subject, &o);
        free(want);
        want = fresh(&k[i]);
    }
    for (int i = 0; i < 2; i++)
        for (int n = 0; n <= 40; n += n < 14 || n > 17 ? 7 : 1) {
            struct seq *from = stack_seq(&k[i]), *to = stack_seq(&k[!i]);
            int start = n_free(k[!i].state), half = n / 2;
            stack_text(&k[i], from, 0, half, LEN, NULL);
            struct text_buf a = saved_of(&k[i], from, 0, half);
            stack_text(&k[i], from, half, n, LEN, NULL);
            struct text_buf b = saved_of(&k[i], from, half, n), all = saved_of(&k[i], from, 0, n);
            OK(k[!i].backend->restore(k[!i].device, to, n, all.text, all.bytes, err));
            goes_on(&k[!i], to, want, n, n + 4);
            k[!i].backend->drop(to);
            to = stack_seq(&k[!i]);
            OK(k[!i].backend->restore(k[!i].device, to, half, a.text, a.bytes, err));
            OK(k[!i].backend->restore(k[!i].device, to, n - half, b.text, b.bytes, err));
            goes_on(&k[!i], to, want, n, n + 4);
            k[!i].backend->drop(to);
            k[i].backend->drop(from);
            assert_int_equal(n_free(k[!i].state), start);
            text_buf_free(&a);
            text_buf_free(&b);
            text_buf_free(&all);
        }
    free(want);
    stack_close(&k[0]);
    stack_close(&k[1]);
}

/* Any damaged byte and any cut is refused, and leaves the sequence as it was. */
static void damages(const struct subject *subject)
{
    struct stack k = stack_open(subject, &(struct stack_options){.backend = "ref"});
    struct seq *s = stack_seq(&k), *to = stack_seq(&k);
    int n = 0;
    stack_text(&k, s, 0, 3, 3, NULL);
    struct text_buf b = saved_of(&k, s, 0, 3);
    int start = n_free(k.state);
    for (size_t i = 0; i < b.bytes; i++) {
        b.text[i] ^= (char)(1 << i % 8);
        REFUSED(k.backend->restore(k.device, to, 3, b.text, b.bytes, err), DATA, "");
        b.text[i] ^= (char)(1 << i % 8);
        REFUSED(k.backend->restore(k.device, to, 3, b.text, i, err), DATA, "");
        n += 2;
    }
    REFUSED(k.backend->restore(k.device, to, 2, b.text, b.bytes, err), DATA, "3 rows where 2");
    REFUSED(k.backend->restore(k.device, s, 3, b.text, b.bytes, err), STATE, "ends at 3");
    assert_int_equal(n_free(k.state), start);
    OK(k.backend->restore(k.device, to, 3, b.text, b.bytes, err));
    text_buf_free(&b);
    stack_close(&k);
    printf("damaged states: %d/%d refused\n", n, n);
}

static void test_saves(void **state)
{
    (void)state;
    n_ok = 0;
    saves(&llama, "ref", QUANT_F32);
    saves(&llama, "cpu", QUANT_F16);
    saves(&gemma, "cpu", QUANT_F16);
    saves(&gemma, "ref", QUANT_F16);
    printf("saves: %d/%d\n", n_ok, n_ok);
    damages(&llama);
    /* another model, other types, a smaller context */
    struct stack k = stack_open(&llama, &(struct stack_options){.backend = "ref"});
    struct seq *s = stack_seq(&k);
    stack_text(&k, s, 0, 20, 20, NULL);
    struct text_buf b = saved_of(&k, s, 0, 20);
    struct stack other = stack_open(&gemma, &(struct stack_options){.backend = "ref"});
    REFUSED(other.backend->restore(other.device, stack_seq(&other), 20, b.text, b.bytes, err),
            STATE, "another model");
    stack_close(&other);
    other = stack_open(&llama, &(struct stack_options){.backend = "ref", .type_v = QUANT_F16});
    REFUSED(other.backend->restore(other.device, stack_seq(&other), 20, b.text, b.bytes, err),
            STATE, "cache types");
    stack_close(&other);
    other = stack_open(&llama, &(struct stack_options){.backend = "ref", .n_ctx = 19});
    REFUSED(other.backend->restore(other.device, stack_seq(&other), 20, b.text, b.bytes, err),
            CONTEXT, "19");
    stack_close(&other);
    text_buf_free(&b);
    stack_close(&k);
}

/* A windowed layer's restore that needs more pages than are free changes nothing. */
static void test_restore_full(void **state)
{
    struct stack_options o = {.backend = "ref", .n_seq = 2};
    struct stack k = stack_open(&gemma, &o);
    struct seq *s = stack_seq(&k);
    (void)state;
    stack_text(&k, s, 0, 100, 50, NULL);
    struct text_buf b = saved_of(&k, s, 0, 100);
    o.n_row = 32;
    struct stack small = stack_open(&gemma, &o);
    struct seq *to = stack_seq(&small);
    int start = n_free(small.state);
    REFUSED(small.backend->restore(small.device, to, 100, b.text, b.bytes, err), MEMORY, "full");
    assert_int_equal(n_free(small.state), start);
    float *want = fresh(&k);
    goes_on(&small, to, want, 0, 40); /* as an empty sequence */
    free(want);
    text_buf_free(&b);
    stack_close(&small);
    stack_close(&k);
}

/* ---- Recurrent ----------------------------------------------------------------------------------
 */

static void recurrent(bool fused)
{
    struct subject subject = {.name = "recurrent", .make = syn_recurrent};
    struct stack k =
        stack_open(&subject, &(struct stack_options){.backend = "ref", .no_fusion = !fused});
    float *want = fresh(&k);
    int start = n_free(k.state);
    for (int chunk = 1; chunk <= 9; chunk++) {
        struct seq *s = stack_seq(&k);
        float *x = stack_logits(&k, LEN);
        stack_text(&k, s, 0, LEN, chunk, x);
        assert_memory_equal(x, want, stack_bytes(&k, LEN));
        n_ok++;
        free(x);
        k.backend->drop(s);
    }
    for (int n = 0; n <= 5; n++) { /* the snapshot of row n, where there is one */
        struct seq *s = stack_seq(&k);
        stack_text(&k, s, 0, 10, 4, NULL);
        OK(stack_submit(&k, s, 10, 5, NULL, NULL, err));
        if (n > 0 && 5 - n >= SYN_SNAP) {
            REFUSED(k.backend->commit(s, n, err), STATE, "kept the last 3 only");
            OK(k.backend->commit(s, 0, err));
            goes_on(&k, s, want, 10, 20);
        } else {
            OK(k.backend->commit(s, n, err));
            goes_on(&k, s, want, 10 + n, 20);
        }
        k.backend->drop(s);
    }
    struct seq *s = stack_seq(&k);
    stack_text(&k, s, 0, 20, 6, NULL);
    OK(stack_submit(&k, s, 20, 2, NULL, NULL, err)); /* one step behind, */
    OK(stack_submit(&k, s, 22, 0, NULL, NULL, err)); /* and one without rows between */
    OK(stack_submit(&k, s, 22, 1, NULL, NULL, err));
    OK(k.backend->commit(s, 2, err));
    OK(k.backend->commit(s, 0, err));
    OK(k.backend->commit(s, 1, err));
    forks(&k, want, s, 23);
    REFUSED(k.backend->trim(s, 5, err), STATE, "no snapshot");
    struct text_buf b;
    text_buf_init(&b, k.host);
    REFUSED(k.backend->save(k.device, s, 0, 5, &b, err), STATE, "last row (24)");
    text_buf_free(&b);
    b = saved_of(&k, s, 0, 24);
    OK(k.backend->trim(s, 0, err));
    OK(k.backend->restore(k.device, s, 24, b.text, b.bytes, err));
    goes_on(&k, s, want, 24, 40);
    OK(k.backend->trim(s, 0, err));
    goes_on(&k, s, want, 0, 5);
    k.backend->drop(s);
    text_buf_free(&b);
    assert_int_equal(n_free(k.state), start);
    free(want);
    stack_close(&k);
}

static void test_recurrent(void **state)
{
    struct subject subject = {.name = "recurrent", .make = syn_recurrent};
    (void)state;
    n_ok = 0;
    recurrent(true);
    recurrent(false);
    damages(&subject);
    printf("recurrent: %d/%d\n", n_ok, n_ok);
}

/* The rows that have a line for graphs made by hand fire there. */
static void test_rows_fire(void **state)
{
    static const struct {
        const char *label;
        struct subject subject;
    } row[] = {{"CONV1D+STATE_WRITE", {.name = "recurrent", .make = syn_recurrent}},
               {"ADD*3", {.name = "adds", .make = syn_adds}},
               {"MUL+SIN+SQR+MUL+ADD", {.name = "snake", .make = syn_snake}}};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct stack k = stack_open(&row[i].subject, &(struct stack_options){.backend = "ref"});
        const struct fuse_variant *v = fuse_variant_find(k.device->table, row[i].label);
        assert_non_null(v);
        free(fresh(&k));
        assert_true(fuse_stats_get(k.device->stats, v->id).executed > 0);
        stack_close(&k);
    }
}

/* What a page held before does not matter: all ones are NaN in every type. */
static void test_garbage(void **state)
{
    const char *mask[4];
    int n_mask = stack_masks(mask), n = 0;
    (void)state;
    for (int i = 0; i < 4 * (1 + n_mask); i++) {
        enum quant_type type = i % 2 ? QUANT_F16 : QUANT_F32;
        int m = i / 4 - 1;
        float *x[2];
        size_t bytes = 0;
        for (int spoilt = 0; spoilt < 2; spoilt++) {
            struct stack k = stack_open(i / 2 % 2 ? &gemma : &llama,
                                        &(struct stack_options){.backend = m < 0 ? "ref" : "cpu",
                                                                .mask = m < 0 ? "" : mask[m],
                                                                .type_k = type,
                                                                .type_v = type});
            for (int s = 0; spoilt && s < k.state->n_slot && !k.device->mem.access; s++)
                memset(k.state->slot[s].base, 0xff,
                       k.state->slot[s].each *
                           (size_t)k.state->class[k.state->slot[s].class].page.n);
            struct seq *s = stack_seq(&k);
            x[spoilt] = stack_logits(&k, LEN);
            stack_text(&k, s, 0, 20, 20, x[spoilt]);
            stack_text(&k, s, 20, LEN, 3, x[spoilt] + 20 * (size_t)k.n_vocab);
            bytes = stack_bytes(&k, LEN);
            stack_close(&k);
        }
        if (memcmp(x[0], x[1], bytes) != 0)
            fail_msg("case %d (%s): old contents of a page count", i, m < 0 ? "ref" : mask[m]);
        free(x[0]);
        free(x[1]);
        n++;
    }
    printf("pages of garbage: %d/%d\n", n, n);
}

/* ref --far: what lies on the device cannot be read from outside of its own calls. */
static void test_far(void **state)
{
    char *was = getenv("SINTER_FAR") ? strdup(getenv("SINTER_FAR")) : NULL;
    (void)state;
    for (int far = 0; far < 2; far++) {
        setenv("SINTER_FAR", far ? "1" : "0", 1);
        struct stack k = stack_open(&llama, &(struct stack_options){.backend = "ref"});
        struct seq *s = stack_seq(&k);
        stack_text(&k, s, 0, 3, 3, NULL);
        const char *const at[] = {k.state->slot[0].base, k.exec->arena, k.weights->weight[0].data};
        for (int i = 0; i < 3; i++) {
            int status;
            pid_t child = fork();
            if (child == 0) {
                signal(SIGSEGV, SIG_DFL);
                signal(SIGBUS, SIG_DFL);
                volatile char c = *(volatile const char *)at[i];
                (void)c;
                _exit(0);
            }
            assert_int_equal(waitpid(child, &status, 0), child);
            assert_int_equal(WIFSIGNALED(status), far);
        }
        stack_close(&k);
    }
    if (was)
        setenv("SINTER_FAR", was, 1);
    else
        unsetenv("SINTER_FAR");
    free(was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),   cmocka_unit_test(test_page_sizes),
        cmocka_unit_test(test_q8),        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_full),      cmocka_unit_test(test_commits),
        cmocka_unit_test(test_saves),     cmocka_unit_test(test_restore_full),
        cmocka_unit_test(test_recurrent), cmocka_unit_test(test_rows_fire),
        cmocka_unit_test(test_far),       cmocka_unit_test(test_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
