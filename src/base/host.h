/* The host inside the library: every allocation, file access, thread and clock goes through it.
 *
 * Memory: blocks are 64-byte aligned and zeroed; the host counts blocks and bytes (any thread).
 * Files: handles of the hooks; short reads and writes are completed or fail with a typed error. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include "base/status.h"

struct options;
struct pool;

struct host_usage {
    uint64_t bytes;     /* live now */
    uint64_t bytes_max; /* most ever live */
    uint64_t n_alloc;   /* allocations ever made: the difference over a token must be zero */
    uint64_t n_live;    /* blocks live now */
};

/* Zeroed block, or NULL; bytes = 0 gives a valid block. n * each is overflow-checked. */
void *host_alloc(sinter_host *host, size_t bytes);
void *host_alloc_n(sinter_host *host, size_t n, size_t each);
/* Not zeroed: for large buffers whose first touch should be the owner thread's. */
void *host_alloc_raw(sinter_host *host, size_t bytes);
void host_free(sinter_host *host, void *block); /* NULL is fine */
char *host_strndup(sinter_host *host, const char *text, size_t bytes);
struct host_usage host_usage(const sinter_host *host);

/* Grows *block (NULL at first) so that it holds n elements of `each` bytes; *cap is in elements.
 * Doubles; what is new is zeroed. */
CHECKED sinter_status host_grow(sinter_host *host, void **block, size_t *cap, size_t n, size_t each,
                                sinter_error *err);

/* p = n zeroed elements or `return`/`goto out` with SINTER_E_MEMORY naming bytes and what. */
sinter_status host_no_memory(sinter_error *err, size_t n, size_t each, const char *what);
#define NEW(host, p, n, err)                                                                       \
    do {                                                                                           \
        (p) = host_alloc_n((host), (size_t)(n), sizeof *(p));                                      \
        if (!(p)) {                                                                                \
            host_no_memory((err), (size_t)(n), sizeof *(p), #p);                                   \
            return SINTER_E_MEMORY;                                                                \
        }                                                                                          \
    } while (0)
#define NEW_OUT(host, p, n, err)                                                                   \
    do {                                                                                           \
        (p) = host_alloc_n((host), (size_t)(n), sizeof *(p));                                      \
        if (!(p)) {                                                                                \
            host_no_memory((err), (size_t)(n), sizeof *(p), #p);                                   \
            status = SINTER_E_MEMORY;                                                              \
            goto out;                                                                              \
        }                                                                                          \
    } while (0)

/* Files. A path that is a directory, or cannot be opened, gives NOT_FOUND or IO and
 * errno's text. */
CHECKED sinter_status host_open(sinter_host *host, const char *path, bool for_write, int *handle,
                                sinter_error *err);
CHECKED sinter_status host_file_bytes(sinter_host *host, int handle, int64_t *bytes,
                                      sinter_error *err);
/* Reads exactly `bytes`; the end of the file before that is SINTER_E_IO with the offset. */
CHECKED sinter_status host_pread(sinter_host *host, int handle, void *buf, size_t bytes,
                                 int64_t offset, sinter_error *err);
CHECKED sinter_status host_write(sinter_host *host, int handle, const void *buf, size_t bytes,
                                 sinter_error *err);
CHECKED sinter_status host_close(sinter_host *host, int handle, sinter_error *err);
/* Whole file into a fresh block (one NUL past the end); refuses more than max_bytes. */
CHECKED sinter_status host_read_file(sinter_host *host, const char *path, size_t max_bytes,
                                     char **text, size_t *bytes, sinter_error *err);

CHECKED sinter_status host_thread_start(sinter_host *host, void *(*fn)(void *), void *arg,
                                        void **thread, sinter_error *err);
void host_thread_join(sinter_host *host, void *thread);
uint64_t host_clock_ns(const sinter_host *host);

const struct options *host_options(const sinter_host *host);
/* From here on sinter_host_set is refused: called as the first model is opened, or the pool made.
 */
void host_freeze_options(sinter_host *host);
/* The host's one pool, made at first use with the option's number of threads. */
CHECKED sinter_status host_pool(sinter_host *host, struct pool **pool, sinter_error *err);

/* One line; nothing is formatted above the host's level. */
void host_log(sinter_host *host, sinter_log_level level, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Warns, counts, and under --strict fails with SINTER_E_STRICT: for everything that would
 * otherwise be silent. */
CHECKED sinter_status host_warn(sinter_host *host, sinter_error *err, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
uint64_t host_warnings(const sinter_host *host);

#endif
