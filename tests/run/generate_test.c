/* sinter_generate: greedy text against steps by hand, what is used again, where it stops. */
#include "run/rig.h"

static const char prompt[] = "the and other in at";

static struct rig rig;

static int setup(void **state)
{
    (void)state;
    rig = rig_open("llama", "f32", (const char *const[]){"threads=2", NULL},
                   &(sinter_engine_options){.n_ctx = 96, .n_session = 2, .n_chunk = 8});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static sinter_generate_result generate(sinter_session *s, const char *text,
                                       const sinter_generate_options *options, struct rig_text *out)
{
    sinter_generate_options o = *options;
    sinter_generate_result r = {0};
    o.write = rig_take;
    o.write_ctx = out;
    OK(sinter_generate(s, text, strlen(text), &o, &r, err));
    return r;
}

/* n greedy ids behind the text, by single steps. */
static void by_hand(const char *text, int n, int32_t *made)
{
    sinter_session *s = rig_session(&rig);
    int32_t *ids;
    size_t n_id;
    OK(sinter_tokenize(rig.model, text, strlen(text), 0, &ids, &n_id, err));
    for (size_t i = 0; i < n_id + (size_t)n; i++) {
        int32_t id = i < n_id ? ids[i] : made[i - n_id];
        sinter_item it = {.session = s, .ids = &id, .n_id = 1, .want = SINTER_WANT_LAST};
        OK(sinter_engine_step(rig.engine, &it, 1, err));
        int best = 0;
        for (int v = 1; v < rig.n_vocab; v++)
            if (it.logits[v] > it.logits[best])
                best = v;
        if (i + 1 >= n_id && i + 1 - n_id < (size_t)n)
            made[i + 1 - n_id] = best;
    }
    sinter_free(rig.host, ids);
    sinter_session_close(s);
}

static void text_of(const int32_t *ids, int n, struct rig_text *t)
{
    char *text;
    size_t bytes;
    sinter_detok *d;
    const char *part;
    OK(sinter_detok_create(rig.model, 0, &d, err));
    for (int i = 0; i < n; i++) {
        OK(sinter_detok_push(d, ids[i], &part, &bytes, err));
        rig_take(t, part, bytes);
    }
    OK(sinter_detok_flush(d, &part, &bytes, err));
    rig_take(t, part, bytes);
    sinter_detok_free(d);
    (void)text;
}

static void test_greedy(void **state)
{
    int32_t made[40];
    struct rig_text want = {0}, got = {0};
    (void)state;
    by_hand(prompt, 40, made);
    text_of(made, 40, &want);
    sinter_session *s = rig_session(&rig);
    sinter_generate_result r =
        generate(s, prompt, &(sinter_generate_options){.n_max = 40, .ignore_eos = true}, &got);
    assert_string_equal(got.text, want.text);
    assert_int_equal(r.stop, SINTER_STOP_LENGTH);
    assert_int_equal(r.n_made, 40);
    assert_int_equal(r.n_cached, 0);
    assert_int_equal(sinter_session_n_tok(s), r.n_prompt + 39); /* the last one is not run */
    sinter_session_close(s);
}

/* The same prompt again runs one token; a longer one what is new; another one from where it
 * departs. The text is that of a fresh session. */
static void test_reuse(void **state)
{
    static const char *const text[] = {prompt, "the and other in at all", "the and one", "x"};
    sinter_generate_options o = {.n_max = 6, .ignore_eos = true};
    sinter_session *s = rig_session(&rig);
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct rig_text fresh = {0}, got = {0};
        sinter_session *f = rig_session(&rig);
        sinter_generate_result a = generate(f, text[i / 2], &o, &fresh);
        sinter_generate_result b = generate(s, text[i / 2], &o, &got);
        assert_string_equal(got.text, fresh.text);
        assert_int_equal(a.n_cached, 0);
        assert_int_equal(a.n_prompt, b.n_prompt);
        if (i % 2)
            assert_int_equal(b.n_cached, b.n_prompt - 1);
        else if (i == 0 || i == 6)
            assert_int_equal(b.n_cached, 0);
        else
            assert_true(b.n_cached > 0 && b.n_cached < b.n_prompt);
        sinter_session_close(f);
    }
    sinter_session_close(s);
}

/* A window that has dropped the rows: the prompt is run from its start, with the same text. */
static void test_no_reuse(void **state)
{
    struct rig keep = rig;
    struct rig_text a = {0}, b = {0};
    sinter_generate_options o = {.n_max = 30, .ignore_eos = true};
    (void)state;
    rig = rig_open("gemma3", "f32", (const char *const[]){"threads=1", "page-rows=16", NULL},
                   &(sinter_engine_options){.n_ctx = 96, .n_session = 2});
    sinter_session *s = rig_session(&rig);
    generate(s, "one two three four five six", &o, &a);
    o.n_max = 5;
    struct rig_text fresh = {0};
    sinter_session *f = rig_session(&rig);
    generate(f, "one two", &o, &fresh);
    sinter_generate_result r = generate(s, "one two", &o, &b);
    assert_int_equal(r.n_cached, 0);
    assert_string_equal(b.text, fresh.text);
    sinter_session_close(s);
    sinter_session_close(f);
    rig_close(&rig);
    rig = keep;
}

/* Every piece of the answer as a stop text, alone and among others: the text ends before it. */
static void test_stops(void **state)
{
    struct rig_text whole = {0};
    sinter_session *s = rig_session(&rig);
    int n = 0;
    (void)state;
    generate(s, prompt, &(sinter_generate_options){.n_max = 24, .ignore_eos = true}, &whole);
    for (size_t at = 0; at < whole.n; at++)
        for (size_t len = 1; len <= 7 && at + len <= whole.n; len += 2) {
            char stop[16];
            struct rig_text got = {0};
            snprintf(stop, sizeof stop, "%.*s", (int)len, whole.text + at);
            if (!stop[0] || strlen(stop) != len)
                continue;
            const char *const stops[3] = {"never there", stop, ""};
            sinter_generate_result r =
                generate(s, prompt,
                         &(sinter_generate_options){
                             .n_max = 24, .ignore_eos = true, .stop = stops, .n_stop = 3},
                         &got);
            size_t first = (size_t)(strstr(whole.text, stop) - whole.text);
            assert_int_equal(r.stop, SINTER_STOP_TEXT);
            assert_int_equal(got.n, first);
            assert_memory_equal(got.text, whole.text, first);
            n++;
        }
    assert_true(n > 20);
    /* begins like a stop text, and is none: held back, then written */
    char almost[64];
    struct rig_text got = {0};
    snprintf(almost, sizeof almost, "%.*s!!", 6, whole.text + whole.n - 6);
    const char *const stops[] = {almost};
    sinter_generate_result r = generate(
        s, prompt,
        &(sinter_generate_options){.n_max = 24, .ignore_eos = true, .stop = stops, .n_stop = 1},
        &got);
    assert_string_equal(got.text, whole.text);
    assert_int_equal(r.stop, SINTER_STOP_LENGTH);
    sinter_session_close(s);
    printf("stop texts: %d/%d\n", n, n);
}

static bool not_yet(void *ctx, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    return ++*(int *)ctx < 2;
}

static void test_ends(void **state)
{
    struct rig_text whole = {0}, got = {.stop_at = 3};
    sinter_session *s = rig_session(&rig);
    sinter_generate_result r = {0};
    (void)state;
    r = generate(s, prompt, &(sinter_generate_options){.ignore_eos = true}, &whole);
    assert_int_equal(r.stop, SINTER_STOP_CONTEXT); /* n_max 0: until it is full */
    assert_int_equal(sinter_session_n_tok(s), 96);
    assert_int_equal(r.n_prompt + r.n_made, 97);
    r = generate(s, prompt, &(sinter_generate_options){.ignore_eos = true}, &got);
    assert_int_equal(r.stop, SINTER_STOP_WRITE);
    assert_true(r.n_made < 10);
    sinter_session_cancel(s);
    got = (struct rig_text){0};
    r = generate(s, prompt, &(sinter_generate_options){.n_max = 5, .ignore_eos = true}, &got);
    assert_int_equal(r.stop, SINTER_STOP_CANCELLED);
    int n_call = 0;
    OK(sinter_session_trim(s, 0, err));
    sinter_generate_options o = {.n_max = 5, .progress = not_yet, .progress_ctx = &n_call};
    const char *text = "a b c d e f g h i j k l m n o p q r s t";
    OK(sinter_generate(s, text, strlen(text), &o, &r, err));
    assert_int_equal(r.stop, SINTER_STOP_CANCELLED);
    assert_true(r.prompt_ns > 0); /* of the part that was computed */
    assert_int_equal(n_call, 2);
    got = (struct rig_text){0};
    r = generate(s, prompt, &(sinter_generate_options){.n_max = 5, .ignore_eos = true}, &got);
    assert_memory_equal(got.text, whole.text, got.n);
    sinter_session_close(s);
}

/* The mask leaves an end-of-generation token only. */
static void only_end(void *ctx, uint64_t *mask, int32_t n_vocab)
{
    const sinter_model *m = ctx;
    for (int32_t i = 0; i < n_vocab; i++)
        if (!sinter_is_eog(m, i))
            mask[i / 64] &= ~((uint64_t)1 << (i % 64));
}

static void test_end_token(void **state)
{
    struct rig_text got = {0};
    sinter_sampler *sampler;
    sinter_sampler_options so = {.mask = only_end, .mask_ctx = rig.model};
    sinter_session *s = rig_session(&rig);
    (void)state;
    OK(sinter_sampler_create(rig.host, rig.n_vocab, &so, &sampler, err));
    sinter_generate_result r =
        generate(s, prompt, &(sinter_generate_options){.n_max = 5, .sampler = sampler}, &got);
    assert_int_equal(r.stop, SINTER_STOP_END);
    assert_int_equal(r.n_made, 0);
    assert_int_equal(got.n, 0);
    r = generate(s, prompt,
                 &(sinter_generate_options){.n_max = 5, .sampler = sampler, .ignore_eos = true},
                 &got);
    assert_int_equal(r.stop, SINTER_STOP_LENGTH);
    assert_int_equal(r.n_made, 5);
    sinter_sampler_free(sampler);
    sinter_session_close(s);
}

/* A seed gives one text, another seed another one. */
static void test_seeds(void **state)
{
    struct rig_text text[3] = {0};
    sinter_session *s = rig_session(&rig);
    (void)state;
    for (int i = 0; i < 3; i++) {
        sinter_sampler *sampler;
        sinter_sampler_options so = {.temperature = 1.5f, .seed = i == 2 ? 6 : 5};
        OK(sinter_sampler_create(rig.host, rig.n_vocab, &so, &sampler, err));
        generate(s, prompt,
                 &(sinter_generate_options){.n_max = 20, .sampler = sampler, .ignore_eos = true},
                 &text[i]);
        sinter_sampler_free(sampler);
    }
    assert_string_equal(text[0].text, text[1].text);
    assert_string_not_equal(text[0].text, text[2].text);
    sinter_session_close(s);
}

static void test_refusals(void **state)
{
    char text[400];
    sinter_session *s = rig_session(&rig);
    sinter_generate_options o = {.n_max = 1};
    (void)state;
    REFUSED(sinter_generate(s, "", 0, &o, NULL, err), USAGE, "no tokens");
    memset(text, '#', sizeof text);
    REFUSED(sinter_generate(s, text, sizeof text, &o, NULL, err), CONTEXT,
            "400 tokens, the context holds 96");
    assert_int_equal(sinter_session_n_tok(s), 0);
    OK(sinter_generate(s, text, 96, &o, NULL, err)); /* just fits */
    assert_int_equal(sinter_session_n_tok(s), 96);
    o.n_max = -1;
    REFUSED(sinter_generate(s, text, 1, &o, NULL, err), USAGE, "n_max is -1");
    o = (sinter_generate_options){.n_stop = -1};
    REFUSED(sinter_generate(s, text, 1, &o, NULL, err), USAGE, "n_stop is -1");
    o = (sinter_generate_options){.size = sizeof o.size - 1};
    REFUSED(sinter_generate(s, text, 1, &o, NULL, err), USAGE, "shorter than its first member");
    sinter_session_close(s);
}

/* A result struct of an older header, which is shorter, is filled as far as it goes. */
static void test_short_results(void **state)
{
    struct {
        sinter_generate_result r;
        sinter_model_info info;
    } x;
    sinter_session *s = rig_session(&rig);
    (void)state;
    memset(&x, 0x55, sizeof x);
    x.r.size = offsetof(sinter_generate_result, n_cached);
    x.info.size = offsetof(sinter_model_info, n_layer);
    OK(sinter_generate(s, prompt, strlen(prompt), &(sinter_generate_options){.n_max = 1}, &x.r,
                       err));
    sinter_model_describe(rig.model, &x.info);
    assert_int_equal(x.r.stop, SINTER_STOP_LENGTH);
    assert_true(x.r.n_prompt > 0 && x.r.n_prompt < 96);
    assert_int_equal(x.r.n_cached, 0x55555555);
    assert_int_equal(x.info.n_vocab, rig.n_vocab);
    assert_int_equal(x.info.n_layer, 0x55555555);
    x.info.size = 1; /* holds not even its size */
    x.info.n_vocab = -5;
    sinter_model_describe(rig.model, &x.info);
    assert_int_equal(x.info.n_vocab, -5);
    sinter_session_close(s);
}

/* An engine with open sessions stays, and they can go on. */
static void test_open_sessions(void **state)
{
    struct rig_text got = {0};
    sinter_session *s = rig_session(&rig);
    (void)state;
    sinter_engine_free(rig.engine);
    generate(s, prompt, &(sinter_generate_options){.n_max = 2, .ignore_eos = true}, &got);
    assert_true(got.n > 0);
    sinter_session_close(s);
}

/* A sampler over more tokens than the model has would read past the logits. */
static void test_foreign_sampler(void **state)
{
    sinter_session *s = rig_session(&rig);
    (void)state;
    for (int more = -1; more <= 1; more += 2) {
        sinter_generate_options o = {.n_max = 1};
        OK(sinter_sampler_create(rig.host, rig.n_vocab + more, NULL, &o.sampler, err));
        REFUSED(sinter_generate(s, prompt, strlen(prompt), &o, NULL, err), USAGE,
                "the sampler is over");
        sinter_sampler_free(o.sampler);
    }
    assert_int_equal(sinter_session_n_tok(s), 0);
    sinter_session_close(s);
}

/* Decoding allocates nothing, all of generate's parts together. */
static void test_no_allocs(void **state)
{
    struct rig_text summary = {0};
    uint64_t n[2];
    (void)state;
    teardown(NULL); /* an engine whose plans are all made by this */
    setup(NULL);
    sinter_session *s = rig_session(&rig);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 2; i++) {
            struct rig_text out = {0};
            uint64_t before = host_usage(rig.host).n_alloc;
            generate(s, prompt,
                     &(sinter_generate_options){.n_max = i ? 60 : 20, .ignore_eos = true}, &out);
            n[i] = host_usage(rig.host).n_alloc - before;
        }
    assert_true(n[1] <= n[0] + 1); /* 40 tokens more; a text buffer may double once */
    OK(sinter_engine_report(rig.engine, SINTER_REPORT_SUMMARY, false, rig_take, &summary, err));
    assert_non_null(strstr(summary.text, "allocs/token 0 "));
    assert_non_null(strstr(summary.text, "fallbacks 0"));
    sinter_session_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy),        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_no_reuse),      cmocka_unit_test(test_stops),
        cmocka_unit_test(test_ends),          cmocka_unit_test(test_end_token),
        cmocka_unit_test(test_seeds),         cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_allocs),     cmocka_unit_test(test_foreign_sampler),
        cmocka_unit_test(test_short_results), cmocka_unit_test(test_open_sessions),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
