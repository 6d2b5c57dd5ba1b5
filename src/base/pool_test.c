#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fenv.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/pool.h"
#include "fault_loop.h"

enum { MAX_THREAD = 8 };

static sinter_host *host;

static int set_up(void **state)
{
    (void)state;
    return sinter_host_create(NULL, &host, NULL) != SINTER_OK;
}

static int tear_down(void **state)
{
    (void)state;
    sinter_host_free(host);
    return 0;
}

static struct pool *make(int n_thread)
{
    struct pool *p;
    sinter_error err;
    if (pool_create(host, n_thread, &p, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    return p;
}

/* Plain (not atomic) data: a missing order shows as a wrong sum, and in TSan as a race. */
struct sums {
    struct pool *pool;
    int n_round;
    uint64_t part[MAX_THREAD], bad[MAX_THREAD], n_call;
};

static uint64_t value_of(int round, int thread)
{
    return (uint64_t)(round * 31 + thread * 7 + 1);
}

/* Each round: write the own part, meet, check everybody's, meet. */
static void rounds(void *ctx, int thread, int n_thread)
{
    struct sums *s = ctx;
    for (int round = 0; round < s->n_round; round++) {
        s->part[thread] = value_of(round, thread);
        pool_barrier(s->pool);
        for (int i = 0; i < n_thread; i++)
            s->bad[thread] += s->part[i] != value_of(round, i);
        pool_barrier(s->pool);
    }
    if (!thread)
        s->n_call++;
}

static void test_barrier(void **state)
{
    uint64_t n = 0;
    (void)state;
    for (int n_thread = 1; n_thread <= MAX_THREAD; n_thread++) {
        struct sums s = {.pool = make(n_thread), .n_round = n_thread <= 2 ? 20000 : 300};
        assert_int_equal(pool_n_thread(s.pool), n_thread);
        for (int use = 1; use <= n_thread; use++) { /* also fewer than the pool has */
            memset(s.part, 0, sizeof s.part);
            pool_run(s.pool, use, rounds, &s);
            for (int i = 0; i < MAX_THREAD; i++)
                assert_int_equal(s.bad[i], 0);
            n += 2 * (uint64_t)s.n_round;
        }
        assert_int_equal(s.n_call, n_thread);
        pool_free(s.pool);
    }
    printf("barriers: %llu/%llu\n", (unsigned long long)n, (unsigned long long)n);
}

struct count {
    uint64_t n[MAX_THREAD];
    int seen[MAX_THREAD];
};

static void count(void *ctx, int thread, int n_thread)
{
    struct count *c = ctx;
    c->n[thread]++;
    c->seen[thread] = n_thread;
}

/* Many short regions; every 500th after a pause in which the workers fall asleep. */
static void test_regions(void **state)
{
    struct count c = {0};
    struct pool *p = make(4);
    uint64_t expected[MAX_THREAD] = {0};
    (void)state;
    for (int i = 0; i < 5000; i++) {
        const int use = 1 + i % 4;
        if (i % 500 == 0)
            usleep(3000);
        pool_run(p, use, count, &c);
        for (int t = 0; t < use; t++) {
            expected[t]++;
            assert_int_equal(c.seen[t], use);
        }
        for (int t = 0; t < 4; t++)
            assert_int_equal(c.n[t], expected[t]);
    }
    pool_free(p);
}

/* One thread is late: the others sleep at the barrier and at the end, and are woken. */
static void late(void *ctx, int thread, int n_thread)
{
    struct sums *s = ctx;
    for (int round = 0; round < n_thread; round++) {
        if (thread == round)
            usleep(5000);
        s->part[thread] = value_of(round, thread);
        pool_barrier(s->pool);
        for (int i = 0; i < n_thread; i++)
            s->bad[thread] += s->part[i] != value_of(round, i);
        pool_barrier(s->pool);
    }
    if (thread == n_thread - 1)
        usleep(5000);
}

static void test_sleep(void **state)
{
    struct sums s = {.pool = make(4)};
    (void)state;
    for (int i = 0; i < 5; i++)
        pool_run(s.pool, 4, late, &s);
    for (int i = 0; i < MAX_THREAD; i++)
        assert_int_equal(s.bad[i], 0);
    pool_free(s.pool);
}

static struct pool *shared;
static uint64_t shared_sum; /* plain: the pool's turn protects it */

static void add_one(void *ctx, int thread, int n_thread)
{
    (void)ctx;
    for (int i = 0; i < n_thread; i++) {
        if (i == thread)
            shared_sum++;
        pool_barrier(shared);
    }
}

static void *caller(void *arg)
{
    for (int i = 0; i < 200; i++)
        pool_run(shared, 1 + i % 3, add_one, NULL);
    return arg;
}

/* Engines take turns on one pool. */
static void test_turns(void **state)
{
    pthread_t id[3];
    uint64_t expected = 0;
    (void)state;
    shared = make(3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&id[i], NULL, caller, NULL), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(id[i], NULL);
    for (int i = 0; i < 200; i++)
        expected += 3 * (uint64_t)(1 + i % 3);
    assert_int_equal(shared_sum, expected);
    pool_free(shared);
}

static sinter_status make_four(sinter_host *h, void *ctx, sinter_error *err)
{
    struct pool *p;
    const sinter_status status = pool_create(h, 4, &p, err);
    (void)ctx;
    assert_true((status == SINTER_OK) == (p != NULL));
    pool_free(p);
    return status;
}

static void test_refusals(void **state)
{
    struct pool *p;
    sinter_error err;
    (void)state;
    assert_int_equal(pool_create(host, 0, &p, &err), SINTER_E_USAGE);
    assert_int_equal(pool_create(host, 1025, &p, &err), SINTER_E_USAGE);
    assert_null(p);
    pool_free(NULL);
    /* Those already started are ended. */
    assert_int_equal(fault_loop_host("pool", &(struct fault){0}, FAULT_THREAD, make_four, NULL), 3);
}

struct speed {
    struct pool *pool;
    uint64_t best; /* ns for N_MEET barriers */
};
enum { N_MEET = 50 };

static void meet(void *ctx, int thread, int n_thread)
{
    struct speed *s = ctx;
    (void)n_thread;
    for (int batch = 0; batch < 400; batch++) {
        const uint64_t start = host_clock_ns(host);
        uint64_t ns;
        for (int i = 0; i < N_MEET; i++)
            pool_barrier(s->pool);
        ns = host_clock_ns(host) - start;
        if (!thread && ns < s->best)
            s->best = ns;
    }
}

static void nothing(void *ctx, int thread, int n_thread)
{
    (void)ctx, (void)thread, (void)n_thread;
}

/* A figure, not a bar: the machine may be busy. */
static void test_speed(void **state)
{
    struct speed s = {.pool = make(2), .best = UINT64_MAX};
    uint64_t best_region = UINT64_MAX;
    (void)state;
    pool_run(s.pool, 2, meet, &s);
    for (int i = 0; i < 2000; i++) {
        const uint64_t start = host_clock_ns(host);
        uint64_t ns;
        pool_run(s.pool, 2, nothing, NULL);
        ns = host_clock_ns(host) - start;
        best_region = ns < best_region ? ns : best_region;
    }
    printf("2 threads: %.0f ns a barrier, %llu ns a region (best)\n", (double)s.best / N_MEET,
           (unsigned long long)best_region);
    pool_free(s.pool);
}

/* 1 + 2^-24 + 2^-25 rounds to 1 + 2^-23 to nearest, to 1 downwards; 2^-140 is subnormal. */
static float rounded(void)
{
    volatile float one = 1, small = 0x1.8p-24f, sum = one + small; /* not moved past a call */
    return sum;
}

static float subnormal(void)
{
    volatile float a = 0x1p-100f, b = 0x1p-40f, product = a * b;
    return product;
}

struct modes {
    int n_right;
    bool right[MAX_THREAD];
};

static void compute(void *ctx, int thread, int n_thread)
{
    struct modes *m = ctx;
    (void)n_thread;
    m->right[thread] = rounded() == 0x1.000002p0f && subnormal() == 0x1p-140f;
}

/* Neither the maker's modes nor the caller's reach a region; the caller's come back. */
static void test_modes(void **state)
{
    struct modes m = {0};
    (void)state;
    fesetround(FE_DOWNWARD);
#if defined(__SSE__)
    const unsigned mxcsr = __builtin_ia32_stmxcsr() | 0x8040; /* flush to zero */
    __builtin_ia32_ldmxcsr(mxcsr);
#endif
    struct pool *p = make(4);
    pool_run(p, 4, compute, &m);
    const bool kept = fegetround() == FE_DOWNWARD && rounded() == 1;
#if defined(__SSE__)
    const bool flushes = subnormal() == 0;
#else
    const bool flushes = true;
#endif
    fesetenv(FE_DFL_ENV);
    for (int i = 0; i < 4; i++)
        m.n_right += m.right[i];
    printf("modes: %d/4\n", m.n_right);
    assert_int_equal(m.n_right, 4);
    assert_true(kept);
    assert_true(flushes);
    pool_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barrier),  cmocka_unit_test(test_regions),
        cmocka_unit_test(test_sleep),    cmocka_unit_test(test_turns),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_modes),
        cmocka_unit_test(test_speed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
