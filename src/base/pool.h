/* The thread pool: pthreads through the host's hooks and C11 atomics; order comes from
 * acquire/release, a futex only sleeps. The caller's thread is thread 0.
 *
 * pool_run is one parallel region; inside it pool_barrier separates phases. Engines take turns:
 * pool_run holds the pool's turn from start to end (any thread may call it; it blocks). */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "base/host.h"

struct pool;

CHECKED sinter_status pool_create(sinter_host *host, int n_thread, struct pool **out,
                                  sinter_error *err);
void pool_free(struct pool *p);
int pool_n_thread(const struct pool *p);

/* Runs fn(ctx, thread, n_thread) on threads 0..n_thread-1 and returns when all have returned.
 * n_thread <= the pool's. Never fails, never allocates. fn computes in the default floating point
 * environment (to nearest, no flush to zero); the caller's is as before afterwards. */
void pool_run(struct pool *p, int n_thread, void (*fn)(void *ctx, int thread, int n_thread),
              void *ctx);
/* All n_thread threads of the running region meet; memory written before is seen after. */
void pool_barrier(struct pool *p);

#endif
