/* Samplers: which tokens can come, how often they do, and that a seed tells all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sinter.h"

enum { N = 50, DRAWS = 20000 };

static sinter_host *host;
static float logits[N];

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < N; i++) /* a spread of 6, no order */
        logits[i] = (float)((i * 37 % N) * 6.0 / N - 3);
    return sinter_host_create(NULL, &host, NULL) != SINTER_OK;
}

static int teardown(void **state)
{
    (void)state;
    sinter_host_free(host);
    return 0;
}

static sinter_sampler *sampler(const sinter_sampler_options *o)
{
    sinter_sampler *s;
    sinter_error err = {0};
    if (sinter_sampler_create(host, N, o, &s, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    return s;
}

static int32_t pick(sinter_sampler *s, const float *x)
{
    int32_t id = -1;
    sinter_error err = {0};
    if (sinter_sampler_pick(s, x, &id, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    assert_in_range(id, 0, N - 1);
    return id;
}

/* Probabilities by the definitions: sort, cut, renormalise. Slow and plain. */
static void expected(const sinter_sampler_options *o, double p[N])
{
    int order[N], n = N;
    double sum = 0, top = 0;
    for (int i = 0; i < N; i++)
        order[i] = i;
    for (int i = 0; i < N; i++)
        for (int j = i + 1; j < N; j++)
            if (logits[order[j]] > logits[order[i]]) {
                int swap = order[i];
                order[i] = order[j];
                order[j] = swap;
            }
    n = o->top_k > 0 && o->top_k < n ? o->top_k : n;
    for (int i = 0; i < N; i++)
        p[i] = 0;
    for (int i = 0; i < n; i++)
        sum += p[order[i]] = exp((double)logits[order[i]] / (double)o->temperature);
    for (int i = 0; i < n; i++) {
        if (o->top_p > 0 && top >= (double)o->top_p * sum)
            p[order[i]] = 0;
        top += p[order[i]];
        if (p[order[i]] < (double)o->min_p * p[order[0]])
            p[order[i]] = 0;
    }
    sum = 0;
    for (int i = 0; i < N; i++)
        sum += p[i];
    for (int i = 0; i < N; i++)
        p[i] /= sum;
}

/* Pearson's chi-squared over the tokens that may come; none may come that may not. */
static void check_distribution(const sinter_sampler_options *o)
{
    double p[N], chi = 0;
    int count[N] = {0}, df = -1;
    sinter_sampler *s = sampler(o);
    expected(o, p);
    for (int i = 0; i < DRAWS; i++)
        count[pick(s, logits)]++;
    for (int i = 0; i < N; i++) {
        if (p[i] == 0) {
            assert_int_equal(count[i], 0);
            continue;
        }
        double want = p[i] * DRAWS;
        chi += (count[i] - want) * (count[i] - want) / want;
        df++;
    }
    /* mean df, variance 2 df: 6 sigma, and the seed is fixed */
    if (chi > df + 6 * sqrt(2.0 * df) + 6)
        fail_msg("chi-squared %g with %d degrees of freedom", chi, df);
    sinter_sampler_free(s);
}

static void test_distributions(void **state)
{
    static const sinter_sampler_options o[] = {
        {.temperature = 1, .seed = 1},
        {.temperature = 0.5f, .seed = 2},
        {.temperature = 3, .seed = 3},
        {.temperature = 1, .top_k = 1, .seed = 4},
        {.temperature = 1, .top_k = 7, .seed = 5},
        {.temperature = 1, .top_p = 0.5f, .seed = 6},
        {.temperature = 1, .top_p = 0.01f, .seed = 7},
        {.temperature = 1, .min_p = 0.2f, .seed = 8},
        {.temperature = 0.8f, .top_k = 20, .top_p = 0.9f, .min_p = 0.05f, .seed = 9},
        {.temperature = 2, .top_k = N, .top_p = 1, .seed = 10},
    };
    (void)state;
    for (size_t i = 0; i < sizeof o / sizeof o[0]; i++)
        check_distribution(&o[i]);
}

static void test_greedy(void **state)
{
    float x[N] = {0};
    (void)state;
    sinter_sampler *s = sampler(NULL);
    assert_int_equal(pick(s, x), 0); /* ties to the lower id */
    x[9] = x[4] = 1;
    assert_int_equal(pick(s, x), 4);
    sinter_sampler_free(s);
    s = sampler(&(sinter_sampler_options){.temperature = 1, .top_k = 1, .seed = 1});
    assert_int_equal(pick(s, x), 4);
    x[4] = -INFINITY;
    assert_int_equal(pick(s, x), 9);
    sinter_sampler_free(s);
}

/* A seed tells all draws, and draw n does not depend on what the others saw. */
static void test_seeds(void **state)
{
    sinter_sampler_options o = {.temperature = 1, .seed = 77};
    sinter_sampler *a = sampler(&o), *b = sampler(&o);
    float flat[N] = {0};
    int n_same = 0;
    (void)state;
    assert_true(sinter_sampler_seed(a) == 77);
    for (int i = 0; i < 100; i++) {
        int32_t id = pick(a, logits);
        if (i % 2)
            assert_int_equal(id, pick(b, logits));
        else
            pick(b, flat);
    }
    sinter_sampler_free(b);
    o.seed = 78;
    b = sampler(&o);
    for (int i = 0; i < 100; i++)
        n_same += pick(a, logits) == pick(b, logits);
    assert_true(n_same < 50);
    sinter_sampler_free(a);
    sinter_sampler_free(b);
    o.seed = 0; /* from the clock, told, and good for a second run */
    a = sampler(&o);
    o.seed = sinter_sampler_seed(a);
    assert_true(o.seed != 0);
    b = sampler(&o);
    for (int i = 0; i < 50; i++)
        assert_int_equal(pick(a, logits), pick(b, logits));
    sinter_sampler_free(a);
    sinter_sampler_free(b);
}

static void test_penalty(void **state)
{
    float x[N];
    (void)state;
    for (int i = 0; i < N; i++)
        x[i] = -10;
    x[3] = 4;
    x[5] = 3;
    x[7] = -1;
    sinter_sampler *s = sampler(&(sinter_sampler_options){.repeat_penalty = 2, .repeat_last = 3});
    assert_int_equal(pick(s, x), 3);
    sinter_sampler_accept(s, 3); /* 4 / 2 < 3 */
    assert_int_equal(pick(s, x), 5);
    sinter_sampler_accept(s, 3); /* twice seen is once penalised: 2 > 1.5 */
    sinter_sampler_accept(s, 5);
    assert_int_equal(pick(s, x), 3);
    sinter_sampler_accept(s, 8);
    sinter_sampler_accept(s, 8); /* 3 has left the window of 3, 5 has not */
    assert_int_equal(pick(s, x), 3);
    x[3] = -1.5f; /* negative ones are multiplied: -3 < -2 = 2 * -1 of none */
    sinter_sampler_accept(s, 3);
    sinter_sampler_accept(s, 8);
    sinter_sampler_accept(s, 8);
    x[5] = -20;
    assert_int_equal(pick(s, x), 7);
    sinter_sampler_accept(s, -1); /* ids of no vocabulary are not looked at */
    sinter_sampler_accept(s, N);
    sinter_sampler_accept(s, N);
    assert_int_equal(pick(s, x), 7);
    sinter_sampler_free(s);
}

static void only_odd(void *ctx, uint64_t *mask, int32_t n_vocab);

/* Of equal logits at the edge of the top k the lower ids come. */
static void test_ties(void **state)
{
    float x[N] = {0};
    int count[N] = {0};
    (void)state;
    x[40] = 1;
    sinter_sampler *s = sampler(&(sinter_sampler_options){.temperature = 9, .top_k = 4, .seed = 3});
    for (int i = 0; i < 400; i++)
        count[pick(s, x)]++;
    for (int i = 0; i < N; i++)
        assert_int_equal(count[i] > 0, i < 3 || i == 40);
    sinter_sampler_free(s);
}

/* Penalties and temperatures at the ends of their ranges: no infinity takes part, and what the mask
 * forbids never comes. */
static void test_extremes(void **state)
{
    static const float penalty[] = {0x1p-140f, 0x1p-126f, 0x1p127f}, heat[] = {0x1p-140f, 1, 3e38f};
    float x[N];
    int n_call = 0, n = 0;
    (void)state;
    for (int i = 0; i < N; i++)
        x[i] = i % 2 ? 5.0f : 90.0f;
    x[0] = x[2] = -3e38f;
    for (int p = 0; p < 3; p++)
        for (int t = 0; t < 3; t++, n++) {
            sinter_sampler *s = sampler(&(sinter_sampler_options){.temperature = heat[t],
                                                                  .repeat_penalty = penalty[p],
                                                                  .seed = 11,
                                                                  .mask = only_odd,
                                                                  .mask_ctx = &n_call});
            sinter_sampler_accept(s, 1);
            sinter_sampler_accept(s, 3);
            for (int i = 0; i < 50; i++) {
                int32_t id = pick(s, x);
                assert_int_equal(id % 2, 1);
                if (t < 2) /* far ahead, both of them, or far behind */
                    assert_int_equal(id == 1 || id == 3, penalty[p] < 1);
            }
            sinter_sampler_free(s);
        }
    print_message("extremes: %d/9\n", n);
}

static void only_odd(void *ctx, uint64_t *mask, int32_t n_vocab)
{
    ++*(int *)ctx;
    for (int32_t i = 0; i < n_vocab; i += 2)
        mask[i / 64] &= ~((uint64_t)1 << (i % 64));
}

static void none_at_all(void *ctx, uint64_t *mask, int32_t n_vocab)
{
    (void)ctx;
    memset(mask, 0, ((size_t)n_vocab + 63) / 64 * sizeof *mask);
}

static void test_mask(void **state)
{
    int n_call = 0;
    sinter_error err;
    int32_t id;
    (void)state;
    sinter_sampler_options o = {
        .temperature = 2, .seed = 1, .mask = only_odd, .mask_ctx = &n_call, .top_k = 10};
    sinter_sampler *s = sampler(&o);
    for (int i = 0; i < 200; i++)
        assert_int_equal(pick(s, logits) % 2, 1);
    assert_int_equal(n_call, 200);
    sinter_sampler_free(s);
    o.mask = none_at_all;
    s = sampler(&o);
    assert_int_equal(sinter_sampler_pick(s, logits, &id, &err), SINTER_E_USAGE);
    assert_non_null(strstr(err.message, "no token"));
    sinter_sampler_free(s);
}

static void test_refusals(void **state)
{
    static const struct {
        sinter_sampler_options o;
        const char *part;
    } bad[] = {
        {{.temperature = -1}, "temperature"},
        {{.temperature = NAN}, "temperature"},
        {{.temperature = INFINITY}, "0 or more"},
        {{.top_k = -1}, "top-k"},
        {{.top_p = 1.5f}, "top-p"},
        {{.top_p = NAN}, "top-p"},
        {{.min_p = -0.1f}, "min-p"},
        {{.repeat_penalty = -2}, "repeat-penalty"},
        {{.repeat_penalty = NAN}, "penalty"},
        {{.repeat_last = -1}, "repeat-last"},
        {{.repeat_last = 1 << 30}, "1048576"},
    };
    sinter_sampler *s;
    sinter_error err;
    int32_t id;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(sinter_sampler_create(host, N, &bad[i].o, &s, &err), SINTER_E_USAGE);
        assert_non_null(strstr(err.message, bad[i].part));
        assert_null(s);
    }
    assert_int_equal(sinter_sampler_create(host, 0, NULL, &s, &err), SINTER_E_USAGE);
    s = sampler(&(sinter_sampler_options){.temperature = 1, .seed = 1});
    float x[N] = {0};
    x[20] = NAN;
    assert_int_equal(sinter_sampler_pick(s, x, &id, &err), SINTER_E_NUMERIC);
    assert_non_null(strstr(err.message, "logit 20"));
    x[20] = INFINITY;
    assert_int_equal(sinter_sampler_pick(s, x, &id, &err), SINTER_E_NUMERIC);
    for (int i = 0; i < N; i++)
        x[i] = -INFINITY;
    assert_int_equal(sinter_sampler_pick(s, x, &id, &err), SINTER_E_NUMERIC);
    sinter_sampler_free(s);
}

/* A caller's shorter struct (an older header's) leaves the rest at its default. */
static void test_size(void **state)
{
    sinter_sampler_options o = {
        .size = offsetof(sinter_sampler_options, top_k), .temperature = 0, .top_k = -5};
    (void)state;
    sinter_sampler_free(sampler(&o));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distributions), cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_seeds),         cmocka_unit_test(test_penalty),
        cmocka_unit_test(test_mask),          cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_size),          cmocka_unit_test(test_ties),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
