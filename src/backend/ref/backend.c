/* The ref backend behind backend.h. With the option `far` its memory is PROT_NONE outside of its
 * own calls, so that no layer above can come to read a device's memory. */
#include "backend/backend.h"

#include "backend/ref/ref.h"
#include "base/options.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

struct far_block {
    struct far_block *next;
    void *mem;
    size_t bytes;
};
/* Engines of one device may be on threads of their own: who still computes keeps all readable. */
struct far_mem {
    sinter_host *host;
    pthread_mutex_t lock; /* of what follows */
    struct far_block *all;
    int depth;
};

static void protect(const struct far_mem *f, const struct far_block *b)
{
    if (mprotect(b->mem, b->bytes, f->depth ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
        host_log(f->host, SINTER_LOG_WARN, "ref --far: mprotect of %zu bytes failed", b->bytes);
}

static void *far_alloc(void *ctx, size_t bytes)
{
    struct far_mem *f = ctx;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct far_block *b = host_alloc(f->host, sizeof *b);
    if (!b)
        return NULL;
    b->bytes = (bytes + page - 1) / page * page;
    b->mem = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b->mem == MAP_FAILED) {
        host_free(f->host, b);
        return NULL;
    }
    pthread_mutex_lock(&f->lock);
    b->next = f->all;
    f->all = b;
    protect(f, b);
    pthread_mutex_unlock(&f->lock);
    return b->mem;
}

static void far_free(void *ctx, void *block)
{
    struct far_mem *f = ctx;
    pthread_mutex_lock(&f->lock);
    struct far_block **link = &f->all;
    while (*link && (*link)->mem != block)
        link = &(*link)->next;
    struct far_block *b = *link;
    if (b)
        *link = b->next;
    pthread_mutex_unlock(&f->lock);
    if (!b)
        return;
    munmap(b->mem, b->bytes);
    host_free(f->host, b);
}

static void far_access(void *ctx, bool on)
{
    struct far_mem *f = ctx;
    pthread_mutex_lock(&f->lock);
    f->depth += on ? 1 : -1;
    for (struct far_block *b = f->all; b && f->depth == (on ? 1 : 0); b = b->next)
        protect(f, b);
    pthread_mutex_unlock(&f->lock);
}

static void far_close(void *ctx)
{
    struct far_mem *f = ctx;
    while (f->all)
        far_free(f, f->all->mem);
    pthread_mutex_destroy(&f->lock);
    host_free(f->host, f);
}

static sinter_status open(sinter_host *host, struct device **out, sinter_error *err)
{
    if (!host_options(host)->far)
        return native_open(host, &ref_kind, NULL, NULL, out, err);
    struct far_mem *f;
    NEW(host, f, 1, err);
    f->host = host;
    if (pthread_mutex_init(&f->lock, NULL)) {
        host_free(host, f);
        return FAIL(err, THREAD, "a mutex could not be made; the system is out of resources");
    }
    struct device_mem mem = {f, far_alloc, far_free, far_access};
    return native_open(host, &ref_kind, &mem, far_close, out, err);
}

const struct backend backend_ref = {.name = "ref",
                                    .what = "reference, double sums",
                                    .kv_types =
                                        1u << QUANT_F32 | 1u << QUANT_F16 | 1u << QUANT_Q8_0,
                                    .open = open,
                                    BACKEND_NATIVE};
