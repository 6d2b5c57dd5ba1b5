/* What a decoded token costs beside its arithmetic, of every dummy on cpu: no allocation, no
 * fallback, few barriers. A llama layer has five: before attention, its output matrix, the norm
 * with gate and up, the down matrix, and the next layer's norm. Experts add none, as the dummies
 * have so few that each thread does the router's work itself. A layer with one KV head has one
 * more, as one thread writes the key that all of them read. */
#include <stdio.h>
#include <stdlib.h>

#include "dummies.h"

static bool keep(void *ctx, const char *text, size_t bytes)
{
    char *out = ctx; /* [512] */
    size_t n = strlen(out);
    snprintf(out + n, 512 - n, "%.*s", (int)bytes, text);
    return true;
}

static double field(const char *json, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(json, key);
    assert_non_null(at);
    return strtod(at + strlen(key), NULL);
}

/* A prompt of 8 tokens, then 12 one by one, logits or ids. */
static void summary(sinter_host *host, const char *path, bool argmax, char out[512])
{
    sinter_model *model;
    sinter_engine *engine;
    sinter_session *session;
    sinter_error err;
    sinter_engine_options o = {.backend = "cpu", .n_ctx = 64, .n_thread = 2};
    if (sinter_model_open(host, path, NULL, &model, &err) != SINTER_OK ||
        sinter_engine_create(model, &o, &engine, &err) != SINTER_OK ||
        sinter_session_create(engine, &session, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    for (int i = 0; i < 13; i++) {
        static const int32_t ids[8] = {3, 1, 4, 1, 5, 9, 2, 6};
        sinter_item item = {.session = session,
                            .ids = ids,
                            .n_id = i ? 1 : 8,
                            .want = SINTER_WANT_LAST,
                            .want_argmax = argmax};
        if (sinter_engine_step(engine, &item, 1, &err) != SINTER_OK)
            fail_msg("%s", err.message);
    }
    out[0] = 0;
    assert_int_equal(sinter_engine_report(engine, SINTER_REPORT_SUMMARY, true, keep, out, &err),
                     SINTER_OK);
    sinter_session_close(session);
    sinter_engine_free(engine);
    sinter_model_close(model);
}

/* Most barriers of a layer. The optional dummies have two KV heads everywhere, the others have a
 * layer with one. */
static int expected(const char *kind)
{
    return strcmp(kind, "optional") == 0 ? 5 : 6;
}

struct count {
    int ok, all;
};

static void summaries(const struct dummy_file *d, void *ctx)
{
    struct count *n = ctx;
    char out[512];
    sinter_host *host;
    sinter_error err;
    assert_int_equal(sinter_host_create(NULL, &host, &err), SINTER_OK);
    assert_int_equal(sinter_host_set(host, "threads", "2", &err), SINTER_OK);
    for (int argmax = 0; argmax < 2; argmax++, n->all++) {
        summary(host, d->path, argmax, out);
        int barriers = (int)field(out, "barriers_per_layer");
        bool ok = barriers == expected(d->kind) && field(out, "fallbacks") == 0 &&
                  field(out, "allocs_per_token") == 0;
        if (!argmax || !ok)
            print_message("%-18s barriers/layer %d fallbacks %g allocs/token %g\n", d->name,
                          barriers, field(out, "fallbacks"), field(out, "allocs_per_token"));
        n->ok += ok;
    }
    sinter_host_free(host);
}

static void dummies(void **state)
{
    struct count n = {0};
    (void)state;
    each_dummy(summaries, &n);
    print_message("summaries: %d/%d\n", n.ok, n.all);
    assert_true(n.all > 0);
    assert_int_equal(n.ok, n.all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dummies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
