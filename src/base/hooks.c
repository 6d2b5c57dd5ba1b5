/* The built-in hooks: the C library's memory, POSIX files and threads, the monotonic clock.
 *
 * Blocks of 4 MiB and more are aligned to 2 MiB and offered to the system for huge pages: weights
 * are streamed once per token, and 4 KiB pages would cost a page walk every 64 lines. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/host_impl.h"

enum { HUGE_BYTES = 2 << 20, BIG_BYTES = 4 << 20, LINE_BYTES = 64 };

static void *hook_alloc(void *ctx, size_t bytes)
{
    const size_t align = bytes >= BIG_BYTES ? HUGE_BYTES : LINE_BYTES;
    void *block = NULL;
    (void)ctx;
    if (posix_memalign(&block, align, bytes))
        return NULL;
#ifdef MADV_HUGEPAGE
    if (align == HUGE_BYTES) /* a wish: where it is refused, small pages serve */
        (void)madvise(block, bytes & ~(size_t)(HUGE_BYTES - 1), MADV_HUGEPAGE);
#endif
    return block;
}

static void hook_free(void *ctx, void *block)
{
    (void)ctx;
    free(block);
}

static int hook_open(void *ctx, const char *path, bool for_write)
{
    /* A pipe that nobody writes to would be waited for; what has no size is refused anyway. */
    const int flags = for_write ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY | O_NONBLOCK;
    struct stat st;
    int fd;
    (void)ctx;
    do
        fd = open(path, flags | O_CLOEXEC, 0666);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return -errno;
    if (!fstat(fd, &st) && S_ISDIR(st.st_mode)) { /* opening one to read succeeds */
        close(fd);
        return -EISDIR;
    }
    return fd;
}

static int64_t hook_file_bytes(void *ctx, int handle)
{
    struct stat st;
    (void)ctx;
    if (fstat(handle, &st))
        return -errno;
    return S_ISREG(st.st_mode) ? (int64_t)st.st_size : -ESPIPE;
}

static int64_t hook_pread(void *ctx, int handle, void *buf, size_t bytes, int64_t offset)
{
    const ssize_t n = pread(handle, buf, bytes, (off_t)offset);
    (void)ctx;
    return n < 0 ? -errno : (int64_t)n;
}

static int64_t hook_write(void *ctx, int handle, const void *buf, size_t bytes)
{
    const ssize_t n = write(handle, buf, bytes);
    (void)ctx;
    return n < 0 ? -errno : (int64_t)n;
}

static int hook_close(void *ctx, int handle)
{
    (void)ctx;
    return close(handle) ? -errno : 0;
}

static int hook_thread_start(void *ctx, void *(*fn)(void *arg), void *arg, void **thread)
{
    pthread_t id;
    const int e = pthread_create(&id, NULL, fn, arg);
    (void)ctx;
    if (e)
        return -e;
    *thread = (void *)id;
    return 0;
}

static void hook_thread_join(void *ctx, void *thread)
{
    (void)ctx;
    pthread_join((pthread_t)thread, NULL);
}

static uint64_t hook_clock_ns(void *ctx)
{
    struct timespec t;
    (void)ctx;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

const sinter_hooks host_built_in = {
    .size = sizeof(sinter_hooks),
    .alloc = hook_alloc,
    .free = hook_free,
    .open = hook_open,
    .file_bytes = hook_file_bytes,
    .pread = hook_pread,
    .write = hook_write,
    .close = hook_close,
    .thread_start = hook_thread_start,
    .thread_join = hook_thread_join,
    .clock_ns = hook_clock_ns,
};
