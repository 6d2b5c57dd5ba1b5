/* The host: accounted memory, typed file access, threads, log, options and the one pool.
 *
 * Every block has a head of one cache line in front of it, with its size (for the counts) and a
 * mark that catches a pointer which is no block; so the hooks' free needs no size. */
#include "base/host.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/host_impl.h"
#include "base/pool.h"

struct head {
    uint64_t mark;
    uint64_t bytes;
    char pad[48];
};
_Static_assert(sizeof(struct head) == 64, "blocks keep the hooks' alignment");

#define HEAD_LIVE       UINT64_C(0x73696e7465722021)
#define HEAD_DEAD       UINT64_C(0x64656164626c6f63)
#define ADD(counter, n) atomic_fetch_add_explicit(&(counter), (n), memory_order_relaxed)
#define SUB(counter, n) atomic_fetch_sub_explicit(&(counter), (n), memory_order_relaxed)
#define GET(counter)    atomic_load_explicit(&(counter), memory_order_relaxed)

/* errno's text; buf must hold 128 bytes. */
static const char *errno_text(int64_t negative_errno, char *buf)
{
    return strerror_r((int)-negative_errno, buf, 128);
}

/* ---- Memory ------------------------------------------------------------------------------- */

void *host_alloc_raw(sinter_host *host, size_t bytes)
{
    struct head *head;
    uint64_t now, max;
    if (bytes > (size_t)PTRDIFF_MAX - sizeof *head)
        return NULL;
    head = host->hooks.alloc(host->hooks.ctx, bytes + sizeof *head);
    if (!head)
        return NULL;
    head->mark = HEAD_LIVE;
    head->bytes = bytes;
    ADD(host->n_alloc, 1);
    ADD(host->n_live, 1);
    now = ADD(host->bytes, bytes) + bytes;
    max = GET(host->bytes_max);
    while (max < now &&
           !atomic_compare_exchange_weak_explicit(&host->bytes_max, &max, now, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
    return head + 1;
}

void *host_alloc(sinter_host *host, size_t bytes)
{
    void *block = host_alloc_raw(host, bytes);
    if (block)
        memset(block, 0, bytes);
    return block;
}

void *host_alloc_n(sinter_host *host, size_t n, size_t each)
{
    size_t bytes;
    return __builtin_mul_overflow(n, each, &bytes) ? NULL : host_alloc(host, bytes);
}

void host_free(sinter_host *host, void *block)
{
    struct head *head;
    if (!block)
        return;
    head = (struct head *)block - 1;
    assert(head->mark == HEAD_LIVE);
    head->mark = HEAD_DEAD;
    SUB(host->bytes, head->bytes);
    SUB(host->n_live, 1);
    host->hooks.free(host->hooks.ctx, head);
}

char *host_strndup(sinter_host *host, const char *text, size_t bytes)
{
    char *copy = bytes < SIZE_MAX ? host_alloc_raw(host, bytes + 1) : NULL;
    if (!copy)
        return NULL;
    if (bytes)
        memcpy(copy, text, bytes);
    copy[bytes] = 0;
    return copy;
}

struct host_usage host_usage(const sinter_host *host)
{
    return (struct host_usage){.bytes = GET(host->bytes),
                               .bytes_max = GET(host->bytes_max),
                               .n_alloc = GET(host->n_alloc),
                               .n_live = GET(host->n_live)};
}

sinter_status host_no_memory(sinter_error *err, size_t n, size_t each, const char *what)
{
    return FAIL(err, MEMORY,
                "out of memory: no %zu x %zu bytes for %s; close other programs, or take a smaller "
                "model or context",
                n, each, what);
}

sinter_status host_grow(sinter_host *host, void **block, size_t *cap, size_t n, size_t each,
                        sinter_error *err)
{
    size_t n_new = *cap > SIZE_MAX / 2 ? n : *cap * 2;
    char *grown;
    if (n <= *cap)
        return SINTER_OK;
    if (n_new < n)
        n_new = n;
    if (n_new < 16)
        n_new = 16;
    grown = host_alloc_n(host, n_new, each);
    if (!grown)
        return host_no_memory(err, n_new, each, "a growing list");
    if (*cap)
        memcpy(grown, *block, *cap * each);
    host_free(host, *block);
    *block = grown;
    *cap = n_new;
    return SINTER_OK;
}

/* ---- Files -------------------------------------------------------------------------------- */

sinter_status host_open(sinter_host *host, const char *path, bool for_write, int *handle,
                        sinter_error *err)
{
    char text[128];
    const int h = host->hooks.open(host->hooks.ctx, path, for_write);
    if (h >= 0) {
        *handle = h;
        return SINTER_OK;
    }
    *handle = -1;
    if (h == -EISDIR)
        return FAIL(err, IO, "%s: is a directory; name a file", path);
    if (for_write)
        return FAIL(err, IO, "%s: cannot be written: %s; check the folder and its permissions",
                    path, errno_text(h, text));
    if (h == -ENOENT || h == -ENOTDIR)
        return FAIL(err, NOT_FOUND, "%s: no such file; check the path", path);
    return FAIL(err, IO, "%s: cannot be opened: %s; check its permissions", path,
                errno_text(h, text));
}

sinter_status host_file_bytes(sinter_host *host, int handle, int64_t *bytes, sinter_error *err)
{
    char text[128];
    const int64_t n = host->hooks.file_bytes(host->hooks.ctx, handle);
    *bytes = n < 0 ? 0 : n;
    if (n == -ESPIPE)
        return FAIL(err, IO, "not a regular file: it has no size; copy it to a file first");
    if (n < 0)
        return FAIL(err, IO, "the file's size cannot be had: %s", errno_text(n, text));
    return SINTER_OK;
}

sinter_status host_pread(sinter_host *host, int handle, void *buf, size_t bytes, int64_t offset,
                         sinter_error *err)
{
    char text[128];
    size_t done = 0;
    if (offset < 0 || bytes > (size_t)(INT64_MAX - offset))
        return FAIL(err, INTERNAL, "a read of %zu bytes at offset %" PRId64 " is out of range",
                    bytes, offset);
    while (done < bytes) {
        const int64_t at = offset + (int64_t)done;
        const int64_t n =
            host->hooks.pread(host->hooks.ctx, handle, (char *)buf + done, bytes - done, at);
        if (n == -EINTR)
            continue;
        if (n < 0)
            return FAIL(err, IO, "reading %zu bytes at offset %" PRId64 " failed: %s", bytes - done,
                        at, errno_text(n, text));
        if (!n)
            return FAIL(err, IO,
                        "the file ends at offset %" PRId64 ", %zu bytes before what must be read; "
                        "it was cut or is still being written",
                        at, bytes - done);
        if ((uint64_t)n > bytes - done)
            return FAIL(err, USAGE, "the pread hook returned more bytes than were asked for");
        done += (size_t)n;
    }
    return SINTER_OK;
}

sinter_status host_write(sinter_host *host, int handle, const void *buf, size_t bytes,
                         sinter_error *err)
{
    char text[128];
    size_t done = 0;
    while (done < bytes) {
        const int64_t n =
            host->hooks.write(host->hooks.ctx, handle, (const char *)buf + done, bytes - done);
        if (n == -EINTR)
            continue;
        if (n <= 0)
            return FAIL(err, IO, "writing %zu bytes failed: %s; check the space left", bytes - done,
                        errno_text(n ? n : -EIO, text));
        if ((uint64_t)n > bytes - done)
            return FAIL(err, USAGE, "the write hook returned more bytes than it was given");
        done += (size_t)n;
    }
    return SINTER_OK;
}

sinter_status host_close(sinter_host *host, int handle, sinter_error *err)
{
    char text[128];
    const int e = host->hooks.close(host->hooks.ctx, handle);
    if (e < 0)
        return FAIL(err, IO, "closing the file failed: %s; what was written may be lost",
                    errno_text(e, text));
    return SINTER_OK;
}

sinter_status host_read_file(sinter_host *host, const char *path, size_t max_bytes, char **text,
                             size_t *bytes, sinter_error *err)
{
    sinter_status status;
    int64_t n = 0;
    int handle;
    char *block = NULL;
    *text = NULL;
    *bytes = 0;
    TRY(host_open(host, path, false, &handle, err));
    TRY_OUT(host_file_bytes(host, handle, &n, err));
    if ((uint64_t)n > max_bytes)
        FAIL_OUT(err, LIMIT, "%" PRId64 " bytes, but at most %zu are taken", n, max_bytes);
    block = host_alloc_raw(host, (size_t)n + 1);
    if (!block) {
        status = host_no_memory(err, (size_t)n + 1, 1, "the file's text");
        goto out;
    }
    TRY_OUT(host_pread(host, handle, block, (size_t)n, 0, err));
    block[n] = 0;
out:
    if (status == SINTER_OK)
        status = host_close(host, handle, err);
    else
        host->hooks.close(host->hooks.ctx, handle); /* the first failure is the one to report */
    if (status != SINTER_OK) {
        host_free(host, block);
        return status_prefix(err, status, "%s", path);
    }
    *text = block;
    *bytes = (size_t)n;
    return SINTER_OK;
}

/* ---- Threads and clock -------------------------------------------------------------------- */

sinter_status host_thread_start(sinter_host *host, void *(*fn)(void *), void *arg, void **thread,
                                sinter_error *err)
{
    char text[128];
    const int e = host->hooks.thread_start(host->hooks.ctx, fn, arg, thread);
    if (e < 0)
        return FAIL(err, THREAD, "a thread could not be started: %s; use fewer with --threads",
                    errno_text(e, text));
    return SINTER_OK;
}

void host_thread_join(sinter_host *host, void *thread)
{
    host->hooks.thread_join(host->hooks.ctx, thread);
}

uint64_t host_clock_ns(const sinter_host *host)
{
    return host->hooks.clock_ns(host->hooks.ctx);
}

sinter_status host_pool(sinter_host *host, struct pool **pool, sinter_error *err)
{
    sinter_status status = SINTER_OK;
    pthread_mutex_lock(&host->lock);
    if (!host->pool) {
        const int64_t n = host->options.threads;
        status = pool_create(host, n ? (int)n : cpu_threads_default(), &host->pool, err);
        if (status == SINTER_OK) /* a later number of threads would change nothing */
            host_freeze_options(host);
    }
    *pool = host->pool;
    pthread_mutex_unlock(&host->lock);
    return status;
}

/* ---- Life --------------------------------------------------------------------------------- */

/* Fills `to` with the caller's hooks, the built-in ones where a member is NULL. */
static sinter_status hooks_merge(sinter_hooks *to, const sinter_hooks *from, sinter_error *err)
{
    const size_t size = from && from->size ? from->size : sizeof *from;
    sinter_hooks h = {0};
    *to = host_built_in;
    if (!from)
        return SINTER_OK;
    if (size > sizeof h)
        return FAIL(err, USAGE,
                    "sinter_hooks has %zu bytes, this library knows %zu; use the "
                    "header that belongs to the library",
                    size, sizeof h);
    memcpy(&h, from, size);
    if (!h.alloc != !h.free)
        return FAIL(err, USAGE, "sinter_hooks: alloc and free must be given together");
    if (!h.thread_start != !h.thread_join)
        return FAIL(err, USAGE,
                    "sinter_hooks: thread_start and thread_join must be given together");
    if (h.open && (!h.file_bytes || !h.pread || !h.write || !h.close))
        return FAIL(err, USAGE,
                    "sinter_hooks: with open, all of file_bytes, pread, write and close "
                    "must be given: the handles are yours");
    to->ctx = h.ctx;
#define TAKE(member)                                                                               \
    if (h.member)                                                                                  \
        to->member = h.member;
    TAKE(alloc)
    TAKE(free)
    TAKE(open)
    TAKE(file_bytes)
    TAKE(pread)
    TAKE(write)
    TAKE(close)
    TAKE(thread_start)
    TAKE(thread_join)
    TAKE(clock_ns)
#undef TAKE
    return SINTER_OK;
}

/* ---- Options: their texts are copied, of any length ------------------------------------------ */

static sinter_status keep(sinter_host *host, const char *text, const char **out, sinter_error *err)
{
    const size_t bytes = strlen(text) + 1;
    struct kept *k = host->hooks.alloc(host->hooks.ctx, sizeof *k + bytes);
    if (!k)
        return host_no_memory(err, 1, sizeof *k + bytes, "the text of an option");
    memcpy(k->text, text, bytes);
    k->next = host->kept;
    host->kept = k;
    *out = k->text;
    return SINTER_OK;
}

static void drop_kept(sinter_host *host)
{
    struct kept *k = host->kept;
    host->kept = k->next;
    host->hooks.free(host->hooks.ctx, k);
}

/* The environment may change later: its texts are copied too. What it holds beside options is
 * said, and never an error: another program's variable may begin like ours. */
static sinter_status take_env(sinter_host *host, sinter_error *err)
{
    const char *variable;
    char near[64];
    size_t at = 0, bytes;
    TRY(options_from_env(&host->options, err));
    for (const struct option_row *row = option_rows; row < option_rows + option_n_row; row++) {
        const char **text = (const char **)(void *)((char *)&host->options + row->offset);
        if (row->type != OPTION_TEXT)
            continue;
        if (strcmp(*text, row->def))
            TRY(keep(host, *text, text, err));
        else
            *text = row->def;
    }
    while ((variable = options_env_unknown(&at, &bytes, near))) {
        atomic_fetch_add_explicit(&host->n_warning, 1, memory_order_relaxed);
        host_log(host, SINTER_LOG_WARN, "the environment variable %.*s names no option%s%s%s",
                 (int)(bytes < 200 ? bytes : 200), variable, *near ? "; did you mean " : "", near,
                 *near ? "?" : "; `sinter options` lists them");
    }
    return SINTER_OK;
}

sinter_status sinter_host_create(const sinter_host_options *options, sinter_host **out,
                                 sinter_error *err)
{
    sinter_host_options o = {0};
    sinter_hooks hooks;
    sinter_host *host;
    if (!out)
        return FAIL(err, USAGE, "sinter_host_create: out is NULL");
    *out = NULL;
    if (options) {
        const size_t size = options->size ? options->size : sizeof o;
        if (size > sizeof o)
            return FAIL(err, USAGE,
                        "sinter_host_options has %zu bytes, this library knows %zu; use "
                        "the header that belongs to the library",
                        size, sizeof o);
        memcpy(&o, options, size);
    }
    TRY(hooks_merge(&hooks, o.hooks, err));
    host = hooks.alloc(hooks.ctx, sizeof *host);
    if (!host)
        return host_no_memory(err, 1, sizeof *host, "the host");
    memset(host, 0, sizeof *host);
    if (pthread_mutex_init(&host->lock, NULL)) {
        hooks.free(hooks.ctx, host);
        return FAIL(err, THREAD, "a mutex could not be made; the system is out of resources");
    }
    host->hooks = hooks;
    host->log = o.log;
    host->log_ctx = o.log_ctx;
    host->log_level = o.log_level;
    const sinter_status status = take_env(host, err);
    if (status == SINTER_OK)
        *out = host;
    else
        sinter_host_free(host);
    return status;
}

void sinter_host_free(sinter_host *host)
{
    if (!host)
        return;
    pool_free(host->pool);
    assert(!GET(host->n_live)); /* an object made from the host still lives */
    while (host->kept)
        drop_kept(host);
    pthread_mutex_destroy(&host->lock);
    host->hooks.free(host->hooks.ctx, host);
}

sinter_status sinter_host_set(sinter_host *host, const char *name, const char *value,
                              sinter_error *err)
{
    if (!host || !name || !value)
        return FAIL(err, USAGE, "sinter_host_set: host, name and value must not be NULL");
    if (atomic_load_explicit(&host->frozen, memory_order_acquire))
        return FAIL(err, USAGE,
                    "option %s: set it before a model is opened or the threads are counted", name);
    TRY(keep(host, value, &value, err));
    const sinter_status status = options_set(&host->options, name, value, err);
    if (status != SINTER_OK)
        drop_kept(host);
    return status;
}

void host_freeze_options(sinter_host *host)
{
    atomic_store_explicit(&host->frozen, true, memory_order_release);
}

const struct options *host_options(const sinter_host *host)
{
    return &host->options;
}
