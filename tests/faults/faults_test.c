/* Each call of a hook fails once, over load, prefill, decode, generate and reports of a dummy: the
 * call that meets it gives a typed error, the same call works when tried again, the text is the
 * same, and nothing is left behind. */
#include "fault_loop.h"
#include "run/rig.h"

enum phase { P_WRITE, P_LOAD, P_PREFILL, P_DECODE, P_GENERATE, P_SAVE, P_REPORT, N_PHASE };
static const char *const phase_name[N_PHASE] = {"write",    "load", "prefill", "decode",
                                                "generate", "save", "report"};

struct scene {
    struct fault *fault;
    const char *backend, *far;
    enum phase phase;
    sinter_status status;  /* of the call that failed in this run */
    sinter_error *err;     /* what it said */
    int n_failed[N_PHASE]; /* of all runs */
    struct rig_text text, want;
    sinter_host *host;
};

/* A call that may fail once, with the expected status. */
#define MAY_FAIL(c, call)                                                                          \
    do {                                                                                           \
        sinter_error fail_err = {0};                                                               \
        sinter_error *err = &fail_err;                                                             \
        sinter_status fail_status = (call);                                                        \
        if (fail_status != SINTER_OK) {                                                            \
            note_failure((c), &fail_err, #call);                                                   \
            OK(call);                                                                              \
        }                                                                                          \
    } while (0)

static void note_failure(struct scene *c, const sinter_error *err, const char *call)
{
    if (c->status != SINTER_OK || !c->fault->hit)
        fail_msg("%s fault, %s: status %d after %d, '%s'", fault_names[c->fault->kind], call,
                 (int)err->status, (int)c->status, err->message);
    c->status = err->status;
    *c->err = *err;
    c->n_failed[c->phase]++;
}

static sinter_status make_host(const struct scene *c, const sinter_hooks *hooks, sinter_host **host,
                               sinter_error *err)
{
    sinter_status status = sinter_host_create(&(sinter_host_options){.hooks = hooks}, host, err);
    if (status == SINTER_OK)
        status = sinter_host_set(*host, "threads", "2", err);
    if (status == SINTER_OK)
        status = sinter_host_set(*host, "far", c->far, err);
    if (status != SINTER_OK)
        sinter_host_free(*host);
    return status;
}

static void steps(struct scene *c, sinter_engine *e)
{
    int32_t id[40];
    sinter_session *s, *fork;
    void *data;
    size_t bytes;
    for (int i = 0; i < 40; i++)
        id[i] = rig_id(i);
    c->phase = P_PREFILL;
    MAY_FAIL(c, sinter_session_create(e, &s, err));
    sinter_item it = {.session = s, .ids = id, .n_id = 20};
    MAY_FAIL(c, sinter_engine_step(e, &it, 1, err));
    it = (sinter_item){.session = s, .ids = id + 20, .n_id = 12, .want = SINTER_WANT_LAST};
    MAY_FAIL(c, sinter_engine_step(e, &it, 1, err));
    c->phase = P_DECODE;
    for (int i = 32; i < 36; i++) {
        it = (sinter_item){
            .session = s, .ids = id + i, .n_id = 1, .want = SINTER_WANT_LAST, .want_argmax = i % 2};
        MAY_FAIL(c, sinter_engine_step(e, &it, 1, err));
    }
    it.want = SINTER_WANT_ALL;
    it.n_id = 4;
    it.ids = id + 36;
    it.want_argmax = false;
    MAY_FAIL(c, sinter_engine_step(e, &it, 1, err));
    assert_int_equal(sinter_session_n_tok(s), 40);
    c->phase = P_SAVE;
    MAY_FAIL(c, sinter_session_fork(s, &fork, err));
    MAY_FAIL(c, sinter_session_save(fork, 0, 40, &data, &bytes, err));
    MAY_FAIL(c, sinter_session_trim(fork, 0, err));
    MAY_FAIL(c, sinter_session_restore(fork, data, bytes, err));
    it = (sinter_item){.session = fork, .ids = id, .n_id = 1, .want = SINTER_WANT_LAST};
    MAY_FAIL(c, sinter_engine_step(e, &it, 1, err));
    sinter_session_close(fork);
    sinter_session_close(s);
    sinter_free(c->host, data);
}

static sinter_status answer(struct scene *c, sinter_session *s, sinter_sampler *sampler,
                            sinter_error *err)
{
    static const char *const stop[] = {"never", "there"};
    static const char prompt[] = "the and other in at";
    sinter_generate_options o = {.n_max = 8,
                                 .ignore_eos = true,
                                 .stop = stop,
                                 .n_stop = 2,
                                 .sampler = sampler,
                                 .write = rig_take,
                                 .write_ctx = &c->text};
    c->text.n = 0;
    return sinter_generate(s, prompt, sizeof prompt - 1, &o, NULL, err);
}

static void generate(struct scene *c, sinter_model *m, sinter_engine *e)
{
    sinter_session *s;
    sinter_sampler *sampler;
    sinter_model_info info = {0};
    struct rig_text greedy;
    c->phase = P_GENERATE;
    sinter_model_describe(m, &info);
    MAY_FAIL(c, sinter_session_create(e, &s, err));
    MAY_FAIL(c, answer(c, s, NULL, err));
    greedy = c->text;
    MAY_FAIL(c, sinter_sampler_create(
                    c->host, info.n_vocab,
                    &(sinter_sampler_options){.temperature = 1, .seed = 3, .top_k = 20}, &sampler,
                    err));
    MAY_FAIL(c, answer(c, s, sampler, err));
    rig_take(&c->text, greedy.text, greedy.n);
    sinter_sampler_free(sampler);
    sinter_session_close(s);
}

static void reports(struct scene *c, sinter_model *m, sinter_engine *e)
{
    struct rig_text *out = calloc(1, sizeof *out);
    c->phase = P_REPORT;
    MAY_FAIL(c, (out->n = 0, sinter_plan_print(m, NULL, true, rig_take, out, err)));
    MAY_FAIL(c, (out->n = 0, sinter_model_print(m, false, rig_take, out, err)));
    for (int what = 0; what <= SINTER_REPORT_PROFILE; what++)
        if (what != SINTER_REPORT_FUSION_WHY) /* longer than out, and slow */
            MAY_FAIL(c, (out->n = 0,
                         sinter_engine_report(e, (sinter_report)what, true, rig_take, out, err)));
    free(out);
}

/* Gives the status of the one call that failed, which then worked. */
static sinter_status play(void *ctx, sinter_error *err)
{
    struct scene *c = ctx;
    sinter_hooks hooks = fault_hooks(c->fault);
    sinter_host *host = NULL;
    sinter_model *m;
    sinter_engine *e;
    char path[TEMP_PATH];
    sinter_engine_options o = {.backend = c->backend, .n_ctx = 64, .n_session = 2, .n_chunk = 32};
    sinter_dummy_options d = {.arch = "llama", .kind = "f32"};
    c->phase = P_WRITE;
    c->status = SINTER_OK;
    c->err = err;
    MAY_FAIL(c, make_host(c, &hooks, &host, err));
    c->host = host;
    rig_path("faults", "f32", path);
    MAY_FAIL(c, sinter_dummy_write(host, &d, path, err));
    c->phase = P_LOAD;
    MAY_FAIL(c, sinter_model_open(host, path, NULL, &m, err));
    MAY_FAIL(c, sinter_engine_create(m, &o, &e, err));
    steps(c, e);
    generate(c, m, e);
    reports(c, m, e);
    sinter_engine_free(e);
    sinter_model_close(m);
    sinter_host_free(host);
    unlink(path);
    if (c->want.n)
        assert_string_equal(c->text.text, c->want.text);
    else
        c->want = c->text;
    return c->status;
}

struct part {
    enum fault_kind kind;
    const char *backend, *far;
    uint64_t step; /* each call, or each step-th */
};

/* Once without a fault, for the text; then with each. */
static void faults(void **state)
{
    const struct part *p = *state;
    struct fault fault = {0};
    struct scene *c = calloc(1, sizeof *c);
    sinter_error err;
    *c = (struct scene){.fault = &fault, .backend = p->backend, .far = p->far};
    assert_int_equal(play(c, &err), SINTER_OK);
    assert_true(c->want.n > 0);
    const uint64_t n = fault_loop_step(p->backend, &fault, p->kind, p->step, play, c);
    uint64_t n_all = 0;
    printf("%s %s faults by phase:", p->backend, fault_names[p->kind]);
    for (int i = 0; i < N_PHASE; n_all += (uint64_t)c->n_failed[i++])
        if (c->n_failed[i])
            printf(" %s %d", phase_name[i], c->n_failed[i]);
    printf("\n");
    assert_int_equal(n_all, n); /* no failure went by unseen */
    free(c);
}

int main(void)
{
    static struct part part[] = {
        {FAULT_THREAD, "cpu", "0", 1}, {FAULT_OPEN, "cpu", "0", 1},  {FAULT_PREAD, "cpu", "0", 1},
        {FAULT_WRITE, "cpu", "0", 1},  {FAULT_ALLOC, "cpu", "0", 1}, {FAULT_ALLOC, "ref", "0", 3},
        {FAULT_ALLOC, "ref", "1", 7},
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(faults, &part[0]), cmocka_unit_test_prestate(faults, &part[1]),
        cmocka_unit_test_prestate(faults, &part[2]), cmocka_unit_test_prestate(faults, &part[3]),
        cmocka_unit_test_prestate(faults, &part[4]), cmocka_unit_test_prestate(faults, &part[5]),
        cmocka_unit_test_prestate(faults, &part[6]),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
