/* The thread pool. One word per worker says when to go, one word counts who is not back yet, and
 * the barrier has a count and an epoch. Each word that a thread may sleep on keeps "someone sleeps"
 * in its lowest bit, set by compare-exchange and taken by the exchange that wakes: so no wake-up
 * can be lost, and a region or barrier in which nobody sleeps makes no system call.
 *
 * Order: what thread 0 wrote before pool_run is seen by the workers (exchange, acquire/release on
 * `go`), what the workers wrote is seen after it (`left`), and the barrier's epoch orders both.
 *
 * A region computes alike on all threads, whatever the caller or the thread that made the pool has
 * set: rounding to nearest, no flush to zero (threads inherit the modes of their maker). */
#include "base/pool.h"

#include <assert.h>
#include <fenv.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cpu.h"

enum { LINE = 64, SLEEPS = 1, STEP = 2 };

/* How often a waiting thread looks before it sleeps: 0.1 to 0.5 ms by the length of the CPU's
 * pause, more than the time between two steps of a decode. With more threads than CPUs, looking
 * only keeps the others from running. */
enum { N_SPIN = 10000, N_SPIN_CROWDED = 20 };

typedef _Atomic uint32_t word;

struct worker {
    _Alignas(LINE) word go; /* region number x STEP | SLEEPS */
    struct pool *pool;
    void *thread;
    int index;
};

struct pool {
    sinter_host *host;
    int n_thread, n_started;
    int n_spin;
    pthread_mutex_t turn;
    /* Of the running region: written before `go`, read after it. */
    void (*fn)(void *ctx, int thread, int n_thread); /* NULL: the workers end */
    void *ctx;
    int n_running;
    _Alignas(LINE) word left;              /* workers still running x STEP | SLEEPS */
    _Alignas(LINE) word n_here;            /* threads that reached the barrier */
    _Alignas(LINE) word epoch;             /* barriers passed x STEP | SLEEPS */
    _Alignas(LINE) struct worker worker[]; /* thread i + 1 */
};

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

static void futex_sleep(word *w, uint32_t value)
{
    syscall(SYS_futex, (uint32_t *)w, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(word *w)
{
    syscall(SYS_futex, (uint32_t *)w, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Returns once *w without its lowest bit differs from `old` (which has it clear). */
static void wait_changed(word *w, uint32_t old, int n_spin)
{
    uint32_t now;
    for (int i = 0; i < n_spin; i++) {
        if ((atomic_load_explicit(w, memory_order_acquire) & ~(uint32_t)SLEEPS) != old)
            return;
        relax();
    }
    for (;;) {
        now = old;
        atomic_compare_exchange_strong_explicit(w, &now, old | SLEEPS, memory_order_acquire,
                                                memory_order_acquire);
        if ((now & ~(uint32_t)SLEEPS) != old)
            return;
        futex_sleep(w, old | SLEEPS);
    }
}

/* Sets *w and wakes whoever sleeps on it. */
static void set_and_wake(word *w, uint32_t value)
{
    if (atomic_exchange_explicit(w, value, memory_order_acq_rel) & SLEEPS)
        futex_wake(w);
}

static void wait_left(struct pool *p)
{
    uint32_t now;
    while ((now = atomic_load_explicit(&p->left, memory_order_acquire) & ~(uint32_t)SLEEPS) != 0)
        wait_changed(&p->left, now, p->n_spin);
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct pool *p = w->pool;
    fesetenv(FE_DFL_ENV);
    for (uint32_t region = 0;; region += STEP) {
        wait_changed(&w->go, region, p->n_spin);
        if (!p->fn)
            return NULL;
        p->fn(p->ctx, w->index, p->n_running);
        if (atomic_fetch_sub_explicit(&p->left, STEP, memory_order_acq_rel) & SLEEPS)
            futex_wake(&p->left);
    }
}

/* Lets workers 1..n-1 go; fn, ctx and n_running are set. */
static void start_workers(struct pool *p, int n)
{
    for (int i = 0; i < n - 1; i++) {
        word *go = &p->worker[i].go;
        const uint32_t region = atomic_load_explicit(go, memory_order_relaxed) & ~(uint32_t)SLEEPS;
        set_and_wake(go, region + STEP);
    }
}

sinter_status pool_create(sinter_host *host, int n_thread, struct pool **out, sinter_error *err)
{
    struct pool *p;
    *out = NULL;
    if (n_thread < 1 || n_thread > 1024)
        return FAIL(err, USAGE, "a pool of %d threads: 1 to 1024 can be had", n_thread);
    p = host_alloc(host, sizeof *p + (size_t)(n_thread - 1) * sizeof *p->worker);
    if (!p)
        return host_no_memory(err, (size_t)n_thread, sizeof *p->worker, "the thread pool");
    p->host = host;
    p->n_thread = n_thread;
    p->n_spin = n_thread <= cpu_n_logical() ? N_SPIN : N_SPIN_CROWDED;
    if (pthread_mutex_init(&p->turn, NULL)) {
        host_free(host, p);
        return FAIL(err, THREAD, "a mutex could not be made; the system is out of resources");
    }
    for (int i = 0; i < n_thread - 1; i++) {
        struct worker *w = &p->worker[i];
        sinter_status status;
        w->pool = p;
        w->index = i + 1;
        status = host_thread_start(host, worker_main, w, &w->thread, err);
        if (status != SINTER_OK) {
            pool_free(p);
            return status_prefix(err, status, "thread %d of %d", i + 1, n_thread - 1);
        }
        p->n_started++;
    }
    *out = p;
    return SINTER_OK;
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    p->fn = NULL;
    start_workers(p, p->n_started + 1);
    for (int i = 0; i < p->n_started; i++)
        host_thread_join(p->host, p->worker[i].thread);
    pthread_mutex_destroy(&p->turn);
    host_free(p->host, p);
}

int pool_n_thread(const struct pool *p)
{
    return p->n_thread;
}

void pool_run(struct pool *p, int n_thread, void (*fn)(void *ctx, int thread, int n_thread),
              void *ctx)
{
    fenv_t callers;
    assert(n_thread >= 1 && n_thread <= p->n_thread);
    pthread_mutex_lock(&p->turn);
    fegetenv(&callers);
    fesetenv(FE_DFL_ENV);
    p->fn = fn;
    p->ctx = ctx;
    p->n_running = n_thread;
    atomic_store_explicit(&p->left, (uint32_t)(n_thread - 1) * STEP, memory_order_relaxed);
    start_workers(p, n_thread);
    fn(ctx, 0, n_thread);
    fesetenv(&callers);
    wait_left(p);
    pthread_mutex_unlock(&p->turn);
}

void pool_barrier(struct pool *p)
{
    const uint32_t n = (uint32_t)p->n_running;
    /* No barrier can be passed before this thread has reached it: the epoch stands still here. */
    const uint32_t epoch =
        atomic_load_explicit(&p->epoch, memory_order_relaxed) & ~(uint32_t)SLEEPS;
    if (n == 1)
        return;
    if (atomic_fetch_add_explicit(&p->n_here, 1, memory_order_acq_rel) == n - 1) {
        atomic_store_explicit(&p->n_here, 0, memory_order_relaxed);
        set_and_wake(&p->epoch, epoch + STEP);
    } else {
        wait_changed(&p->epoch, epoch, p->n_spin);
    }
}
