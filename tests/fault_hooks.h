/* Hooks that count, that fail the N-th call of a kind, and that may work on a file in memory: for
 * tests of every error path (fault_loop.h), for fuzz targets and what reads bytes made by hand.
 *
 *     struct fault fault = { .kind = FAULT_PREAD, .at = 3 };     the third pread fails
 *     sinter_hooks hooks = fault_hooks(&fault);
 *     sinter_host_create(&(sinter_host_options){ .hooks = &hooks }, &host, &err);
 *
 * A fault is done when `hit` is set. n[kind] counts the calls, also without a fault (.at = 0).
 * live counts blocks, files and threads that are there, so that a test can ask for 0 at the end.
 * With a `file` the path does not matter: reading gives its data, writing goes to `written`.
 * Usable from any thread (the file: from one at a time). */
#ifndef TESTS_FAULT_HOOKS_H
#define TESTS_FAULT_HOOKS_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sinter.h"

enum fault_kind { FAULT_ALLOC, FAULT_OPEN, FAULT_PREAD, FAULT_WRITE, FAULT_THREAD, FAULT_N_KIND };

static const char *const fault_names[FAULT_N_KIND] = {"alloc", "open", "pread", "write", "thread"};

/* What a call that fails gives at the library's border. */
static const sinter_status fault_status[FAULT_N_KIND] = {SINTER_E_MEMORY, SINTER_E_IO, SINTER_E_IO,
                                                         SINTER_E_IO, SINTER_E_THREAD};

struct memory_file {
    const uint8_t *data;
    size_t bytes;
    uint8_t *written; /* the owner frees it */
    size_t n_written, cap;
};

struct fault {
    enum fault_kind kind;
    uint64_t at;              /* which call fails, from 1; 0 = none */
    bool sticky;              /* and all calls of the kind after it */
    bool short_io;            /* pread and write do at most 7 bytes at a time */
    struct memory_file *file; /* NULL: the disk */
    _Atomic uint64_t n[FAULT_N_KIND];
    _Atomic bool hit;
    _Atomic int64_t live;   /* blocks, files and threads not yet given back */
    _Atomic uint64_t asked; /* bytes of all blocks that ever were */
};

static inline bool fault_now(struct fault *f, enum fault_kind kind)
{
    const uint64_t n = atomic_fetch_add(&f->n[kind], 1) + 1;
    if (f->kind != kind || !f->at || (f->sticky ? n < f->at : n != f->at))
        return false;
    atomic_store(&f->hit, true);
    return true;
}

static inline void *fault_alloc(void *ctx, size_t bytes)
{
    struct fault *f = ctx;
    void *block;
    if (fault_now(f, FAULT_ALLOC) || posix_memalign(&block, 64, bytes))
        return NULL;
    memset(block, 0xA5, bytes); /* the contract says: not cleared */
    atomic_fetch_add(&f->live, 1);
    atomic_fetch_add(&f->asked, bytes);
    return block;
}

static inline void fault_free(void *ctx, void *block)
{
    struct fault *f = ctx;
    atomic_fetch_sub(&f->live, 1);
    free(block);
}

static inline int fault_open(void *ctx, const char *path, bool for_write)
{
    struct fault *f = ctx;
    int fd = for_write;
    if (fault_now(f, FAULT_OPEN))
        return -EMFILE;
    if (!f->file)
        fd = open(path, for_write ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0666);
    else if (for_write)
        f->file->n_written = 0;
    if (fd < 0)
        return -errno;
    atomic_fetch_add(&f->live, 1);
    return fd;
}

static inline int64_t fault_file_bytes(void *ctx, int handle)
{
    const struct fault *f = ctx;
    struct stat st;
    if (f->file)
        return (int64_t)f->file->bytes;
    return fstat(handle, &st) ? -errno : (int64_t)st.st_size;
}

static inline ssize_t memory_pread(const struct memory_file *m, void *buf, size_t bytes,
                                   int64_t offset)
{
    if ((uint64_t)offset >= m->bytes)
        return 0;
    const size_t left = m->bytes - (size_t)offset, n = bytes < left ? bytes : left;
    memcpy(buf, m->data + offset, n);
    return (ssize_t)n;
}

static inline ssize_t memory_write(struct memory_file *m, const void *buf, size_t bytes)
{
    if (m->n_written + bytes > m->cap) {
        const size_t cap = 2 * (m->n_written + bytes);
        uint8_t *grown = realloc(m->written, cap);
        if (!grown)
            return -1;
        m->written = grown;
        m->cap = cap;
    }
    memcpy(m->written + m->n_written, buf, bytes);
    m->n_written += bytes;
    return (ssize_t)bytes;
}

static inline int64_t fault_pread(void *ctx, int handle, void *buf, size_t bytes, int64_t offset)
{
    struct fault *f = ctx;
    ssize_t n;
    if (fault_now(f, FAULT_PREAD))
        return -EIO;
    bytes = f->short_io && bytes > 7 ? 7 : bytes;
    n = f->file ? memory_pread(f->file, buf, bytes, offset) : pread(handle, buf, bytes, offset);
    return n < 0 ? -errno : n;
}

static inline int64_t fault_write(void *ctx, int handle, const void *buf, size_t bytes)
{
    struct fault *f = ctx;
    ssize_t n;
    if (fault_now(f, FAULT_WRITE))
        return -ENOSPC;
    bytes = f->short_io && bytes > 7 ? 7 : bytes;
    n = f->file ? memory_write(f->file, buf, bytes) : write(handle, buf, bytes);
    return n < 0 ? -errno : n;
}

static inline int fault_close(void *ctx, int handle)
{
    struct fault *f = ctx;
    atomic_fetch_sub(&f->live, 1);
    return !f->file && close(handle) ? -errno : 0;
}

static inline int fault_thread_start(void *ctx, void *(*fn)(void *arg), void *arg, void **thread)
{
    struct fault *f = ctx;
    pthread_t id;
    int e = fault_now(f, FAULT_THREAD) ? EAGAIN : pthread_create(&id, NULL, fn, arg);
    if (e)
        return -e;
    atomic_fetch_add(&f->live, 1);
    *thread = (void *)id;
    return 0;
}

static inline void fault_thread_join(void *ctx, void *thread)
{
    struct fault *f = ctx;
    pthread_join((pthread_t)thread, NULL);
    atomic_fetch_sub(&f->live, 1);
}

static inline uint64_t fault_clock_ns(void *ctx)
{
    struct timespec t;
    (void)ctx;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline sinter_hooks fault_hooks(struct fault *f)
{
    return (sinter_hooks){.ctx = f,
                          .alloc = fault_alloc,
                          .free = fault_free,
                          .open = fault_open,
                          .file_bytes = fault_file_bytes,
                          .pread = fault_pread,
                          .write = fault_write,
                          .close = fault_close,
                          .thread_start = fault_thread_start,
                          .thread_join = fault_thread_join,
                          .clock_ns = fault_clock_ns};
}

#endif
