/* Hooks over one file in memory, for this module's tests and fuzz target: the path does not
 * matter, reading gives `data`, writing goes to `written`. Allocations are counted (`asked` is the
 * sum of all ever asked for), and the n-th call of a kind can be made to fail. */
#ifndef GGUF_MEMORY_HOOKS_H
#define GGUF_MEMORY_HOOKS_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sinter.h"

struct memory_file {
    const uint8_t *data;
    size_t bytes;
    uint8_t *written; /* the owner frees it */
    size_t n_written, cap;
    uint64_t asked, n_live;                     /* bytes; blocks and open files */
    uint64_t n_alloc, n_read, n_write;          /* calls */
    uint64_t fail_alloc, fail_read, fail_write; /* which call fails, from 1; 0: none */
};

static inline void *memory_alloc(void *ctx, size_t bytes)
{
    struct memory_file *m = ctx;
    void *block;
    if (++m->n_alloc == m->fail_alloc || posix_memalign(&block, 64, bytes))
        return NULL;
    m->asked += bytes;
    m->n_live++;
    return block;
}

static inline void memory_free(void *ctx, void *block)
{
    struct memory_file *m = ctx;
    m->n_live--;
    free(block);
}

static inline int memory_open(void *ctx, const char *path, bool for_write)
{
    struct memory_file *m = ctx;
    (void)path;
    m->n_live++;
    if (for_write)
        m->n_written = 0;
    return for_write ? 1 : 0;
}

static inline int64_t memory_file_bytes(void *ctx, int handle)
{
    struct memory_file *m = ctx;
    (void)handle;
    return (int64_t)m->bytes;
}

static inline int64_t memory_pread(void *ctx, int handle, void *buf, size_t bytes, int64_t offset)
{
    struct memory_file *m = ctx;
    (void)handle;
    if (++m->n_read == m->fail_read)
        return -EIO;
    if ((uint64_t)offset >= m->bytes)
        return 0;
    size_t left = m->bytes - (size_t)offset, n = bytes < left ? bytes : left;
    memcpy(buf, m->data + offset, n);
    return (int64_t)n;
}

static inline int64_t memory_write(void *ctx, int handle, const void *buf, size_t bytes)
{
    struct memory_file *m = ctx;
    (void)handle;
    if (++m->n_write == m->fail_write)
        return -ENOSPC;
    if (m->n_written + bytes > m->cap) {
        size_t cap = 2 * (m->n_written + bytes);
        uint8_t *grown = realloc(m->written, cap);
        if (!grown)
            return -ENOMEM;
        m->written = grown;
        m->cap = cap;
    }
    memcpy(m->written + m->n_written, buf, bytes);
    m->n_written += bytes;
    return (int64_t)bytes;
}

static inline int memory_close(void *ctx, int handle)
{
    struct memory_file *m = ctx;
    (void)handle;
    m->n_live--;
    return 0;
}

static inline sinter_hooks memory_hooks(struct memory_file *m)
{
    return (sinter_hooks){.ctx = m,
                          .alloc = memory_alloc,
                          .free = memory_free,
                          .open = memory_open,
                          .file_bytes = memory_file_bytes,
                          .pread = memory_pread,
                          .write = memory_write,
                          .close = memory_close};
}

#endif
