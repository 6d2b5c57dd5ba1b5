/* sinter: an LLM inference engine. The stable C API: opaque types, no globals, no exit, no print.
 *
 * Conventions
 *   - A function that can fail returns sinter_status and fills `err` (which may be NULL) with a
 *     message that says what failed, where, why and what to do.
 *   - Option structs: all zero is the default; the first member is sizeof the struct (0 = this
 *     header's size).
 *   - create/open gives the caller ownership, free/close takes it; NULL may be freed.
 *   - "const char *" results are borrowed from the object that gave them.
 *   - Threads: an object may be used by one thread at a time unless its function says "any thread".
 *     Different objects may be used by different threads; what they share is locked inside.
 *   - Shapes stand in brackets, slowest axis first: float logits[n_row][n_vocab].
 */
#ifndef SINTER_H
#define SINTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SINTER_API __attribute__((visibility("default")))
#define SINTER_CHECKED __attribute__((visibility("default"), warn_unused_result))
#else
#define SINTER_API
#define SINTER_CHECKED
#endif

#define SINTER_VERSION_MAJOR 0
#define SINTER_VERSION_MINOR 1
#define SINTER_VERSION_PATCH 0

/* "0.1.0"; any thread. */
SINTER_API const char *sinter_version(void);

/* ---- Errors ------------------------------------------------------------------------------- */

/* One row each in src/base/errors.def (text, exit code); the order is the table's. */
typedef enum sinter_status {
    SINTER_OK = 0,
    SINTER_E_USAGE,       /* the caller's arguments contradict the contract */
    SINTER_E_DATA,        /* a file, template or text is malformed */
    SINTER_E_NOT_FOUND,   /* no such file, key, tensor or name */
    SINTER_E_UNSUPPORTED, /* well formed, but sinter has no code for it */
    SINTER_E_DEVICE,      /* a backend or device is missing or failed */
    SINTER_E_MEMORY,      /* an allocation failed or a budget would be exceeded */
    SINTER_E_IO,          /* open, read or write failed */
    SINTER_E_THREAD,      /* a thread could not be started */
    SINTER_E_CONTEXT,     /* the tokens do not fit into the context */
    SINTER_E_STATE,       /* a state cannot be trimmed, forked or restored as asked */
    SINTER_E_CANCELLED,   /* sinter_session_cancel was called */
    SINTER_E_NUMERIC,     /* NaN or infinity where a number was due */
    SINTER_E_LIMIT,       /* a fixed cap of sinter was reached */
    SINTER_E_STRICT,      /* --strict turned a counted warning into an error */
    SINTER_E_INTERNAL,    /* an invariant of sinter does not hold: a bug */
    SINTER_N_STATUS
} sinter_status;

typedef struct sinter_error {
    sinter_status status;
    char message[1012]; /* what, where, why, what to do; UTF-8, ends with NUL */
} sinter_error;

/* "out of memory" for SINTER_E_MEMORY …; any thread. */
SINTER_API const char *sinter_status_text(sinter_status status);
/* The exit code a program should end with (sysexits where one fits); any thread. */
SINTER_API int sinter_status_exit_code(sinter_status status);

/* ---- Host --------------------------------------------------------------------------------- */

/* Everything the library asks of the system goes through these. A NULL member = the built-in. */
typedef struct sinter_hooks {
    size_t size;
    void *ctx; /* first argument of every hook */
    /* 64-byte aligned block of `bytes` > 0, not cleared; NULL if there is none. */
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *block);
    /* A handle >= 0 or -errno. Reading: the file must exist. Writing: created or truncated. */
    int (*open)(void *ctx, const char *path, bool for_write);
    int64_t (*file_bytes)(void *ctx, int handle); /* size or -errno */
    int64_t (*pread)(void *ctx, int handle, void *buf, size_t bytes, int64_t offset);
    int64_t (*write)(void *ctx, int handle, const void *buf, size_t bytes);
    int (*close)(void *ctx, int handle); /* 0 or -errno */
    /* Runs fn(arg) on a new thread; 0 or -errno. *thread is passed to thread_join once. */
    int (*thread_start)(void *ctx, void *(*fn)(void *arg), void *arg, void **thread);
    void (*thread_join)(void *ctx, void *thread);
    uint64_t (*clock_ns)(void *ctx); /* monotonic */
} sinter_hooks;

typedef enum sinter_log_level {
    SINTER_LOG_ERROR,
    SINTER_LOG_WARN,
    SINTER_LOG_INFO,
    SINTER_LOG_DEBUG
} sinter_log_level;

typedef void (*sinter_log_fn)(void *ctx, sinter_log_level level, const char *line);

typedef struct sinter_host_options {
    size_t size;
    const sinter_hooks *hooks; /* copied; NULL = the built-in ones */
    sinter_log_fn log;         /* NULL = silent; called from any thread, one whole line, no '\n' */
    void *log_ctx;
    sinter_log_level log_level; /* lines above it are not made */
} sinter_host_options;

typedef struct sinter_host sinter_host;

/* The root of everything: hooks, log, options, one thread pool, devices, statistics. */
SINTER_CHECKED sinter_status sinter_host_create(const sinter_host_options *options,
                                                sinter_host **out, sinter_error *err);
/* All objects made from the host must be gone. */
SINTER_API void sinter_host_free(sinter_host *host);

/* Sets an option of src/base/options.def by its long name ("threads", "cpu-mask", "strict", …).
 * The text is parsed and range-checked; an unknown name is refused with the nearest known one.
 * Before the first model of the host only. */
SINTER_CHECKED sinter_status sinter_host_set(sinter_host *host, const char *name,
                                             const char *value, sinter_error *err);

/* Receives text in pieces; returns false to stop (the caller then fails with SINTER_E_IO). */
typedef bool (*sinter_write_fn)(void *ctx, const char *text, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
