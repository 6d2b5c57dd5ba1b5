/* Engines and sessions behind sinter.h: options, mixed steps, cancelling, rows with NaN, full
 * contexts, memory, saved sessions, threads. */
#include "run/rig.h"

#include "gguf/gguf.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static const char *const cpu2[] = {"threads=2", NULL};

/* ---- Options ------------------------------------------------------------------------------------
 */

static void test_options(void **state)
{
    static const struct {
        sinter_engine_options o;
        sinter_status status;
        const char *part;
    } bad[] = {
        {{.n_ctx = -1}, SINTER_E_USAGE, "n_ctx"},
        {{.n_ctx = 1 << 25}, SINTER_E_USAGE, "16777216"},
        {{.n_session = -3}, SINTER_E_USAGE, "n_session"},
        {{.n_session = 1025}, SINTER_E_USAGE, "1024"},
        {{.n_chunk = -1}, SINTER_E_USAGE, "n_chunk"},
        {{.n_chunk = 1 << 17}, SINTER_E_USAGE, "65536"},
        {{.n_thread = -1}, SINTER_E_USAGE, "n_thread"},
        {{.type_k = "f33"}, SINTER_E_USAGE, "f33"},
        {{.type_v = "q4_0"}, SINTER_E_USAGE, "-ctv"},
        {{.type_k = "q8_0", .backend = "cpu"},
         SINTER_E_UNSUPPORTED,
         "cpu has no cache of type Q8_0; it has F32 F16"},
        {{.backend = "vulkan"}, SINTER_E_DEVICE, "cpu"},
    };
    struct rig r = rig_open("llama", "f32", cpu2, NULL);
    sinter_engine *e;
    sinter_error err;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(sinter_engine_create(r.model, &bad[i].o, &e, &err), bad[i].status);
        if (!strstr(err.message, bad[i].part))
            fail_msg("%zu: %s", i, err.message);
        assert_null(e);
    }
    /* more threads than the host has, or a longer context than trained: said, not silent */
    uint64_t before = host_warnings(r.host);
    OK(sinter_engine_create(r.model, &(sinter_engine_options){.n_thread = 7}, &e, err));
    assert_true(host_warnings(r.host) > before);
    sinter_engine_free(e);
    rig_close(&r);
    r.host = rig_host((const char *const[]){"threads=1", "strict=1", NULL});
    char path[TEMP_PATH];
    rig_write(r.host, "llama", "f32", rig_path("llama", "f32", path));
    OK(sinter_model_open(r.host, path, NULL, &r.model, err));
    REFUSED(sinter_engine_create(r.model, &(sinter_engine_options){.n_thread = 7}, &e, err), STRICT,
            "threads");
    sinter_model_close(r.model);
    OK(sinter_model_open(r.host, path, &(sinter_model_options){.vocab_only = true}, &r.model, err));
    REFUSED(sinter_engine_create(r.model, NULL, &e, err), USAGE, "vocabulary");
    sinter_model_close(r.model);
    sinter_host_free(r.host);
    unlink(path);
}

static void test_items(void **state)
{
    struct rig r = rig_open("llama", "f32", cpu2,
                            &(sinter_engine_options){.n_ctx = 32, .n_chunk = 16, .n_session = 2});
    sinter_session *s = rig_session(&r), *t = rig_session(&r), *u;
    int32_t id[64] = {0}, bad_id = r.n_vocab;
    sinter_item it = {.session = s, .ids = id, .n_id = 17};
    (void)state;
    REFUSED(sinter_session_create(r.engine, &u, err), STATE, "all 2");
    assert_null(u);
    REFUSED(sinter_engine_step(r.engine, &it, 1, err), LIMIT, "16");
    id[16] = -1; /* no id is read of what is too long */
    REFUSED(sinter_engine_step(r.engine, &it, 1, err), LIMIT, "16");
    it.n_id = 0;
    REFUSED(sinter_engine_step(r.engine, &it, 1, err), USAGE, "without tokens");
    it = (sinter_item){.session = s, .ids = &bad_id, .n_id = 1};
    REFUSED(sinter_engine_step(r.engine, &it, 1, err), USAGE, "not in the vocabulary");
    bad_id = -1;
    REFUSED(sinter_engine_step(r.engine, &it, 1, err), USAGE, "token id -1");
    it = (sinter_item){.ids = id, .n_id = 1};
    REFUSED(sinter_engine_step(r.engine, &it, 1, err), USAGE, "another engine");
    sinter_item three[3] = {{.session = s, .ids = id, .n_id = 1},
                            {.session = t, .ids = id, .n_id = 1}};
    REFUSED(sinter_engine_step(r.engine, three, 3, err), USAGE, "1..2");
    REFUSED(sinter_engine_step(r.engine, three, 0, err), USAGE, "1..2");
    three[1].session = s;
    REFUSED(sinter_engine_step(r.engine, three, 2, err), USAGE, "twice");
    rig_text(&r, s, 0, 16, NULL);
    rig_text(&r, s, 16, 10, NULL);
    it = (sinter_item){.session = s, .ids = id, .n_id = 7};
    REFUSED(sinter_engine_step(r.engine, &it, 1, err), CONTEXT,
            "26 tokens are in it, 7 more do not fit into 32");
    assert_int_equal(sinter_session_n_tok(s), 26);
    rig_text(&r, s, 26, 6, NULL);
    sinter_session_close(s);
    sinter_session_close(t);
    rig_close(&r);
}

/* ---- Mixed steps --------------------------------------------------------------------------------
 */

/* Two chunks and a single token in one step: as each alone. */
static void mixes(const char *arch, const char *backend)
{
    struct rig r =
        rig_open(arch, "f32", cpu2,
                 &(sinter_engine_options){.backend = backend, .n_session = 6, .n_ctx = 64});
    sinter_session *s[6];
    int32_t id[3][20];
    const int at[3] = {5, 0, 17}, n[3] = {20, 7, 1};
    float *alone[3];
    size_t row = (size_t)r.n_vocab * sizeof(float);
    sinter_item it[3];
    for (int i = 0; i < 6; i++) {
        s[i] = rig_session(&r);
        if (at[i % 3])
            rig_text(&r, s[i], 0, at[i % 3], NULL);
    }
    for (int i = 0; i < 3; i++) {
        alone[i] = rig_logits(&r, n[i]);
        rig_text(&r, s[i], at[i], n[i], alone[i]);
        for (int k = 0; k < n[i]; k++)
            id[i][k] = rig_id(at[i] + k);
        it[i] = (sinter_item){.session = s[3 + i],
                              .ids = id[i],
                              .n_id = n[i],
                              .want = i == 1 ? SINTER_WANT_LAST : SINTER_WANT_ALL};
    }
    OK(sinter_engine_step(r.engine, it, 3, err));
    for (int i = 0; i < 3; i++) {
        int first = i == 1 ? n[i] - 1 : 0;
        assert_int_equal(it[i].n_out, n[i] - first);
        assert_int_equal(it[i].status, SINTER_OK);
        assert_memory_equal(it[i].logits, alone[i] + (size_t)first * (size_t)r.n_vocab,
                            (size_t)it[i].n_out * row);
        assert_int_equal(sinter_session_n_tok(s[3 + i]), at[i] + n[i]);
        free(alone[i]);
    }
    for (int i = 0; i < 6; i++)
        sinter_session_close(s[i]);
    rig_close(&r);
}

static void test_mixes(void **state)
{
    static const char *const arch[] = {"llama", "gemma3", "qwen3moe"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        mixes(arch[i], "ref");
        mixes(arch[i], "cpu");
    }
}

/* The greedy id is the argmax of the logits, alone and beside one that wants logits. */
static void test_argmax(void **state)
{
    struct rig r =
        rig_open("llama", "mixed", cpu2, &(sinter_engine_options){.n_session = 2, .n_ctx = 64});
    sinter_session *s = rig_session(&r), *t = rig_session(&r);
    float *x = rig_logits(&r, 12);
    int32_t id[12];
    (void)state;
    rig_text(&r, s, 0, 12, x);
    for (int i = 0; i < 12; i++)
        id[i] = rig_id(i);
    for (int both = 0; both < 2; both++) {
        OK(sinter_session_trim(s, 0, err));
        OK(sinter_session_trim(t, 0, err));
        sinter_item it[2] = {
            {.session = s, .ids = id, .n_id = 12, .want = SINTER_WANT_ALL, .want_argmax = true},
            {.session = t, .ids = id, .n_id = 3, .want = SINTER_WANT_LAST}};
        OK(sinter_engine_step(r.engine, it, 1 + both, err));
        assert_null(it[0].logits);
        for (int i = 0; i < 12; i++) {
            int best = 0;
            for (int v = 1; v < r.n_vocab; v++)
                if (x[i * r.n_vocab + v] > x[i * r.n_vocab + best])
                    best = v;
            assert_int_equal(it[0].argmax[i], best);
        }
        if (both)
            assert_memory_equal(it[1].logits, x + 2 * r.n_vocab, (size_t)r.n_vocab * sizeof *x);
    }
    free(x);
    sinter_session_close(s);
    sinter_session_close(t);
    rig_close(&r);
}

/* ---- NaN ----------------------------------------------------------------------------------------
 */

/* Makes row `row` of the tensor all ones, which is NaN in every format that has floats. */
static void spoil(sinter_host *host, const char *path, const char *tensor, int row)
{
    struct gguf *g;
    OK(gguf_open(host, path, &g, err));
    const struct gguf_tensor *t = gguf_find_tensor(g, tensor);
    assert_non_null(t);
    size_t bytes = (size_t)t->bytes / (size_t)t->dim[1];
    char *ones = malloc(bytes);
    memset(ones, 0xff, bytes);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, ones, bytes, (off_t)(t->offset + (uint64_t)row * bytes)), bytes);
    close(fd);
    free(ones);
    gguf_close(g);
}

/* Token 9's embedding is NaN: whose step has it fails, the neighbour is as alone. */
static void nan_row(const char *backend, const char *mask, bool argmax)
{
    char path[TEMP_PATH], option[64];
    snprintf(option, sizeof option, "cpu-mask=%s", mask);
    struct rig r = {.host = rig_host((const char *const[]){"threads=2", option, NULL})};
    rig_write(r.host, "llama", "mixed", rig_path("llama", "mixed", path));
    spoil(r.host, path, "token_embd.weight", 9);
    OK(sinter_model_open(r.host, path, NULL, &r.model, err));
    unlink(path);
    sinter_engine_options o = {.backend = backend, .n_session = 3, .n_ctx = 32};
    sinter_model_info info = {0};
    sinter_model_describe(r.model, &info);
    r.n_vocab = info.n_vocab;
    OK(sinter_engine_create(r.model, &o, &r.engine, err));
    sinter_session *s = rig_session(&r), *t = rig_session(&r), *u = rig_session(&r);
    int32_t good[3] = {4, 5, 6}, bad[3] = {4, 9, 6};
    float *x = rig_logits(&r, 1);
    sinter_item it[2] = {
        {.session = s, .ids = good, .n_id = 3, .want = SINTER_WANT_LAST, .want_argmax = argmax}};
    OK(sinter_engine_step(r.engine, it, 1, err));
    int32_t best = argmax ? it[0].argmax[0] : 0;
    if (!argmax)
        memcpy(x, it[0].logits, (size_t)r.n_vocab * sizeof *x);
    it[0].session = t;
    it[0].ids = bad;
    it[1] = it[0];
    it[1].session = u;
    it[1].ids = good;
    OK(sinter_engine_step(r.engine, it, 2, err));
    if (it[0].status != SINTER_E_NUMERIC)
        fail_msg("%s %s: a row with NaN has status %d", backend, mask, (int)it[0].status);
    assert_int_equal(it[1].status, SINTER_OK);
    if (argmax)
        assert_int_equal(it[1].argmax[0], best);
    else
        assert_memory_equal(it[1].logits, x, (size_t)r.n_vocab * sizeof *x);
    free(x);
    sinter_session_close(s);
    sinter_session_close(t);
    sinter_session_close(u);
    rig_close(&r);
}

static void test_nan(void **state)
{
    static const char *const mask[] = {"c", "avx2", "avx512"};
    (void)state;
    for (int argmax = 0; argmax < 2; argmax++) {
        nan_row("ref", "", argmax);
        for (int i = 0; i < 3; i++) {
            sinter_host *host;
            OK(sinter_host_create(NULL, &host, err));
            bool has = sinter_host_set(host, "cpu-mask", mask[i], NULL) == SINTER_OK;
            sinter_host_free(host);
            if (has)
                nan_row("cpu", mask[i], argmax);
        }
    }
}

/* ---- Cancelling ---------------------------------------------------------------------------------
 */

struct canceller {
    sinter_session *s;
    atomic_int go, end;
};

static void *cancel_soon(void *arg)
{
    struct canceller *c = arg;
    uint32_t n = 0;
    while (!atomic_load(&c->end)) {
        if (!atomic_load(&c->go))
            continue;
        for (volatile uint32_t i = 0; i < n % 20000; i++)
            ;
        n = n * 1664525u + 1013904223u;
        sinter_session_cancel(c->s);
        atomic_store(&c->go, 0);
    }
    return NULL;
}

/* However late the cancel comes: the step is done whole or not at all, and the session goes on. */
static void test_cancel(void **state)
{
    struct rig r =
        rig_open("llama", "f32", cpu2, &(sinter_engine_options){.n_ctx = 64, .n_session = 2});
    sinter_session *s = rig_session(&r), *t = rig_session(&r);
    float *want = rig_logits(&r, 40), *x = rig_logits(&r, 40);
    struct canceller c = {.s = s};
    pthread_t thread;
    int32_t id[40];
    int n_cancelled = 0;
    (void)state;
    for (int i = 0; i < 40; i++)
        id[i] = rig_id(i);
    rig_text(&r, t, 0, 40, want);
    sinter_session_cancel(s); /* before the step: the next one */
    sinter_item it = {.session = s, .ids = id, .n_id = 40, .want = SINTER_WANT_ALL};
    REFUSED(sinter_engine_step(r.engine, &it, 1, err), CANCELLED, "cancelled");
    assert_int_equal(it.status, SINTER_E_CANCELLED);
    assert_int_equal(sinter_session_n_tok(s), 0);
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &c), 0);
    for (int i = 0; i < 60; i++) {
        sinter_error err;
        atomic_store(&c.go, 1);
        sinter_status status = sinter_engine_step(r.engine, &it, 1, &err);
        while (atomic_load(&c.go))
            ;
        assert_true(status == SINTER_OK || status == SINTER_E_CANCELLED);
        n_cancelled += status != SINTER_OK;
        assert_int_equal(sinter_session_n_tok(s), status == SINTER_OK ? 40 : 0);
        if (status == SINTER_OK) { /* the cancel came too late: it is for the next step */
            sinter_item one = {.session = s, .ids = id, .n_id = 1};
            REFUSED(sinter_engine_step(r.engine, &one, 1, err), CANCELLED, "");
        }
        OK(sinter_session_trim(s, 0, err));
        rig_text(&r, s, 0, 40, x);
        assert_memory_equal(x, want, 40 * (size_t)r.n_vocab * sizeof *x);
        OK(sinter_session_trim(s, 0, err));
    }
    atomic_store(&c.end, 1);
    pthread_join(thread, NULL);
    printf("cancelled %d of 60\n", n_cancelled);
    free(want);
    free(x);
    sinter_session_close(s);
    sinter_session_close(t);
    rig_close(&r);
}

struct loading {
    uint64_t done, total;
    int n, stop_at;
};

static bool progress(void *ctx, uint64_t done, uint64_t total)
{
    struct loading *l = ctx;
    assert_true(done > l->done && done <= total);
    l->done = done;
    l->total = total;
    return ++l->n != l->stop_at;
}

static void test_progress(void **state)
{
    struct rig r = rig_open("qwen3moe", "mixed", cpu2, NULL);
    char path[TEMP_PATH];
    (void)state;
    sinter_engine_free(r.engine);
    sinter_model_close(r.model);
    rig_write(r.host, "qwen3moe", "mixed", rig_path("qwen3moe", "mixed", path));
    OK(sinter_model_open(r.host, path, NULL, &r.model, err));
    unlink(path);
    sinter_model_info info = {0};
    sinter_model_describe(r.model, &info);
    int last = 0;
    for (int stop_at = 1; stop_at < 12; stop_at += 3) {
        struct loading l = {.stop_at = stop_at};
        sinter_engine_options o = {.progress = progress, .progress_ctx = &l};
        REFUSED(sinter_engine_create(r.model, &o, &r.engine, err), CANCELLED, "cancelled at");
        last = l.n;
        assert_int_equal(last, stop_at);
    }
    struct loading l = {0};
    sinter_engine_options o = {.progress = progress, .progress_ctx = &l};
    OK(sinter_engine_create(r.model, &o, &r.engine, err));
    assert_true(l.done == l.total && l.total >= info.weight_bytes);
    l.n = 0; /* a second engine finds them loaded */
    sinter_engine *second;
    OK(sinter_engine_create(r.model, &o, &second, err));
    assert_int_equal(l.n, 0);
    sinter_engine_free(second);
    rig_close(&r);
}

/* ---- Memory -------------------------------------------------------------------------------------
 */

struct bytes {
    size_t weights, state, step, total;
};

static struct bytes bytes_of(const char *text)
{
    struct bytes b;
    assert_int_equal(sscanf(text, "weights %zu state %zu step %zu total %zu", &b.weights, &b.state,
                            &b.step, &b.total),
                     4);
    assert_int_equal(b.total, b.weights + b.state + b.step);
    return b;
}

/* What plan says is what is taken, class by class, also after ordinary steps. */
static void plan_is_taken(const char *arch, const char *kind, const char *backend, int n_thread)
{
    char option[32], path[TEMP_PATH];
    struct rig r = {0};
    struct rig_text plan = {0}, taken = {0};
    snprintf(option, sizeof option, "threads=%d", n_thread);
    r.host = rig_host((const char *const[]){option, NULL});
    rig_write(r.host, arch, kind, rig_path(arch, kind, path));
    OK(sinter_model_open(r.host, path, NULL, &r.model, err));
    unlink(path);
    sinter_model_info info = {0};
    sinter_model_describe(r.model, &info);
    r.n_vocab = info.n_vocab;
    sinter_engine_options o = {.backend = backend, .n_ctx = 200, .n_session = 3, .n_chunk = 100};
    OK(sinter_plan_print(r.model, &o, false, rig_take, &plan, err));
    struct host_usage before = host_usage(r.host);
    OK(sinter_engine_create(r.model, &o, &r.engine, err));
    uint64_t more = host_usage(r.host).bytes - before.bytes;
    struct bytes b = bytes_of(plan.text);
    bool far =
        getenv("SINTER_FAR") && strcmp(backend, "ref") == 0; /* its memory is not the host's */
    if (!far && (more < b.total || more > b.total + (1 << 20)))
        fail_msg("%s: planned %zu, the host counts %llu more", arch, b.total,
                 (unsigned long long)more);
    sinter_session *s = rig_session(&r);
    rig_text(&r, s, 0, 100, NULL);
    int32_t id[4] = {1, 2, 3, 4};
    for (int i = 0; i < 4; i++) {
        sinter_item it = {
            .session = s, .ids = id, .n_id = 1 + i, .want = SINTER_WANT_LAST, .want_argmax = i % 2};
        OK(sinter_engine_step(r.engine, &it, 1, err));
    }
    OK(sinter_engine_report(r.engine, SINTER_REPORT_MEMORY, false, rig_take, &taken, err));
    assert_string_equal(plan.text, taken.text);
    sinter_session_close(s);
    rig_close(&r);
}

static void test_plan_bytes(void **state)
{
    static const char *const arch[] = {"llama", "qwen3", "qwen3moe", "gemma3"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        plan_is_taken(arch[i], "f32", "ref", 1);
        plan_is_taken(arch[i], "mixed", "cpu", 2);
        plan_is_taken(arch[i], "optional", "cpu", 1);
    }
    printf("plan bytes: 12/12\n");
}

/* What the budget cannot hold is refused before a weight is read. */
static void test_budget(void **state)
{
    struct rig r = {.host = rig_host((const char *const[]){"threads=1", "memory=3", NULL})};
    struct rig_text plan = {0};
    struct loading l = {0};
    char path[TEMP_PATH];
    (void)state;
    rig_write(r.host, "llama", "mixed", rig_path("llama", "mixed", path));
    OK(sinter_model_open(r.host, path, NULL, &r.model, err));
    unlink(path);
    sinter_engine_options o = {
        .n_ctx = 4096, .n_session = 64, .progress = progress, .progress_ctx = &l};
    REFUSED(sinter_engine_create(r.model, &o, &r.engine, err), MEMORY, "the budget is 3");
    assert_int_equal(l.n, 0);
    REFUSED(sinter_plan_print(r.model, &o, true, rig_take, &plan, err), MEMORY, "--memory");
    assert_non_null(strstr(plan.text, "\"state\":")); /* the figures are shown all the same */
    /* a chunk all of whose rows are wanted would grow past it */
    o = (sinter_engine_options){.n_ctx = 512, .n_chunk = 512, .type_k = "f16"};
    sinter_error err;
    sinter_status status = sinter_engine_create(r.model, &o, &r.engine, &err);
    if (status == SINTER_OK) {
        sinter_session *s = rig_session(&r);
        int32_t id[512] = {0};
        sinter_item it = {.session = s, .ids = id, .n_id = 512, .want = SINTER_WANT_ALL};
        status = sinter_engine_step(r.engine, &it, 1, &err);
        assert_true(host_usage(r.host).bytes <= 3 << 20);
        assert_int_equal(sinter_session_n_tok(s), status == SINTER_OK ? 512 : 0);
        sinter_session_close(s);
    }
    assert_true(status == SINTER_OK || status == SINTER_E_MEMORY);
    rig_close(&r);
}

/* After warm-up a token allocates nothing. */
static void test_no_allocs(void **state)
{
    static const char *const backend[] = {"ref", "cpu"};
    (void)state;
    for (int b = 0; b < 2; b++)
        for (int argmax = 0; argmax < 2; argmax++) {
            struct rig r = rig_open(
                "llama", "mixed", cpu2,
                &(sinter_engine_options){.backend = backend[b], .n_ctx = 128, .n_session = 2});
            sinter_session *s[2] = {rig_session(&r), rig_session(&r)};
            int32_t id = 5;
            uint64_t before = 0;
            for (int i = 0; i < 100; i++) {
                sinter_item it[2] = {{.session = s[0],
                                      .ids = &id,
                                      .n_id = 1,
                                      .want = SINTER_WANT_LAST,
                                      .want_argmax = argmax}};
                it[1] = it[0];
                it[1].session = s[1];
                if (i == 2)
                    before = host_usage(r.host).n_alloc;
                OK(sinter_engine_step(r.engine, it, 2, err));
            }
            assert_int_equal(host_usage(r.host).n_alloc - before, 0);
            sinter_session_close(s[0]);
            sinter_session_close(s[1]);
            rig_close(&r);
        }
}

/* ---- Saved sessions -----------------------------------------------------------------------------
 */

static void test_saved(void **state)
{
    struct rig r =
        rig_open("gemma3", "f32", cpu2, &(sinter_engine_options){.n_ctx = 64, .n_session = 3});
    sinter_session *s = rig_session(&r), *t = rig_session(&r), *u;
    float *want = rig_logits(&r, 5), *x = rig_logits(&r, 5);
    unsigned char *data;
    void *block;
    size_t bytes;
    (void)state;
    rig_text(&r, s, 0, 20, NULL);
    OK(sinter_session_save(s, 0, 20, &block, &bytes, err));
    rig_text(&r, s, 20, 5, want);
    data = block;
    for (size_t i = 0; i < bytes; i += 1 + (i > 120) * 7) {
        data[i] ^= 0x10;
        sinter_error err;
        sinter_status status = sinter_session_restore(t, data, bytes, &err);
        if (status != SINTER_E_DATA)
            fail_msg("byte %zu: status %d", i, (int)status);
        data[i] ^= 0x10;
        assert_int_equal(sinter_session_n_tok(t), 0);
    }
    for (size_t i = 0; i < bytes; i += 1 + (i > 120) * 7)
        REFUSED(sinter_session_restore(t, data, i, err), DATA, "");
    OK(sinter_session_restore(t, data, bytes, err));
    OK(sinter_session_fork(t, &u, err));
    rig_text(&r, t, 20, 5, x);
    assert_memory_equal(x, want, 5 * (size_t)r.n_vocab * sizeof *x);
    rig_text(&r, u, 20, 5, x);
    assert_memory_equal(x, want, 5 * (size_t)r.n_vocab * sizeof *x);
    REFUSED(sinter_session_save(t, 3, 26, &block, &bytes, err), STATE, "session of 25");
    sinter_free(r.host, data);
    free(want);
    free(x);
    sinter_session_close(s);
    sinter_session_close(t);
    sinter_session_close(u);
    rig_close(&r);
}

/* ---- Threads ------------------------------------------------------------------------------------
 */

struct talker {
    sinter_session *s;
    const char *prompt;
    struct rig_text out;
    sinter_status status;
};

static void *talk(void *arg)
{
    struct talker *t = arg;
    sinter_generate_options o = {
        .n_max = 20, .ignore_eos = true, .write = rig_take, .write_ctx = &t->out};
    sinter_generate_result result = {0};
    t->status = sinter_generate(t->s, t->prompt, strlen(t->prompt), &o, &result, NULL);
    return NULL;
}

/* Sessions of one engine on threads of their own: texts as alone. */
static void test_threads(void **state)
{
    static const char *const prompt[3] = {"the first", "and another one", "x"};
    struct rig r =
        rig_open("llama", "f32", cpu2, &(sinter_engine_options){.n_ctx = 64, .n_session = 6});
    struct talker alone[3] = {0}, t[3] = {0};
    pthread_t thread[3];
    (void)state;
    for (int i = 0; i < 3; i++) {
        alone[i] = (struct talker){.s = rig_session(&r), .prompt = prompt[i]};
        t[i] = (struct talker){.s = rig_session(&r), .prompt = prompt[i]};
        talk(&alone[i]);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, talk, &t[i]), 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(t[i].status, SINTER_OK);
        assert_string_equal(t[i].out.text, alone[i].out.text);
        sinter_session_close(t[i].s);
        sinter_session_close(alone[i].s);
    }
    rig_close(&r);
}

/* Engines of one model, with the same weights and the same pool, on threads of their own. */
static void engines(const char *const *options, const char *backend)
{
    enum { N = 3 };
    sinter_engine_options eo = {.n_ctx = 64, .backend = backend};
    struct rig r = rig_open("llama", "f32", options, &eo);
    sinter_engine *engine[N];
    struct talker t[N] = {0}, alone = {.s = rig_session(&r), .prompt = "the same"};
    pthread_t thread[N];
    talk(&alone);
    for (int i = 0; i < N; i++) {
        OK(sinter_engine_create(r.model, &eo, &engine[i], err));
        OK(sinter_session_create(engine[i], &t[i].s, err));
        t[i].prompt = alone.prompt;
    }
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, talk, &t[i]), 0);
    for (int i = 0; i < N; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(t[i].status, SINTER_OK);
        assert_string_equal(t[i].out.text, alone.out.text);
        sinter_session_close(t[i].s);
        sinter_engine_free(engine[i]);
    }
    sinter_session_close(alone.s);
    rig_close(&r);
}

static void test_engines(void **state)
{
    (void)state;
    engines(cpu2, "cpu");
    engines((const char *const[]){"threads=2", "far=1", NULL}, "ref");
}

static void test_reports(void **state)
{
    struct rig r = rig_open("llama", "mixed", cpu2, &(sinter_engine_options){.profile = true});
    sinter_session *s = rig_session(&r);
    (void)state;
    rig_text(&r, s, 0, 30, NULL);
    for (int what = 0; what <= SINTER_REPORT_PROFILE; what++)
        for (int json = 0; json < 2; json++) {
            struct rig_text *out = calloc(1, sizeof *out);
            sinter_error err;
            out->stop_at = 1; /* a closed pipe */
            sinter_status status =
                sinter_engine_report(r.engine, (sinter_report)what, json, rig_take, out, &err);
            if (what == SINTER_REPORT_SUMMARY || what == SINTER_REPORT_MEMORY)
                assert_int_equal(status, SINTER_E_IO);
            free(out);
        }
    REFUSED(sinter_engine_report(r.engine, (sinter_report)99, false, rig_take, NULL, err), USAGE,
            "99");
    sinter_session_close(s);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),  cmocka_unit_test(test_items),
        cmocka_unit_test(test_mixes),    cmocka_unit_test(test_argmax),
        cmocka_unit_test(test_nan),      cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_progress), cmocka_unit_test(test_plan_bytes),
        cmocka_unit_test(test_budget),   cmocka_unit_test(test_no_allocs),
        cmocka_unit_test(test_saved),    cmocka_unit_test(test_threads),
        cmocka_unit_test(test_engines),  cmocka_unit_test(test_reports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
