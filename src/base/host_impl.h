/* What the files of base share of the host; no other module includes this. */
#ifndef BASE_HOST_IMPL_H
#define BASE_HOST_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/host.h"
#include "base/options.h"

/* A text that lives as long as the host. */
struct kept {
    struct kept *next;
    char text[];
};

struct sinter_host {
    sinter_hooks hooks; /* complete: every member is set */
    sinter_log_fn log;  /* NULL = silent */
    void *log_ctx;
    sinter_log_level log_level;
    struct options options;
    struct kept *kept;    /* the options' texts */
    atomic_bool frozen;   /* a model or the pool exists: options stand */
    pthread_mutex_t lock; /* of pool */
    struct pool *pool;
    _Atomic uint64_t bytes, bytes_max, n_alloc, n_live, n_warning;
};

extern const sinter_hooks host_built_in; /* ctx is not used */

#endif
