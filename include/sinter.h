/* sinter: an LLM inference engine. The stable C API: opaque types, no globals, no exit, no print.
 *
 * Conventions
 *   - A function that can fail returns sinter_status and fills `err` (which may be NULL) with a
 *     message that says what failed, where, why and what to do.
 *   - Structs of options and results: the caller sets the first member to sizeof the struct (0 =
 *     this header's size). Options that are all zero are the defaults.
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
#define SINTER_API  __attribute__((visibility("default")))
#define SINTER_CALL __attribute__((visibility("default"), warn_unused_result)) sinter_status
#else
#define SINTER_API
#define SINTER_CALL sinter_status
#endif

#define SINTER_VERSION_MAJOR 0
#define SINTER_VERSION_MINOR 1
#define SINTER_VERSION_PATCH 0

SINTER_API const char *sinter_version(void); /* "0.1.0"; any thread */

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
SINTER_CALL sinter_host_create(const sinter_host_options *options, sinter_host **out,
                               sinter_error *err);
/* All objects made from the host must be gone. */
SINTER_API void sinter_host_free(sinter_host *host);

/* Sets an option of src/base/options.def by its long name ("threads", "cpu-mask", "strict", …).
 * The text is parsed and range-checked; an unknown name is refused with the nearest known one.
 * Before the first model of the host, and before sinter_host_n_thread, only. */
SINTER_CALL sinter_host_set(sinter_host *host, const char *name, const char *value,
                            sinter_error *err);

/* Receives text in pieces; returns false to stop (the caller then fails with SINTER_E_IO). */
typedef bool (*sinter_write_fn)(void *ctx, const char *text, size_t bytes);

/* Row i of the library's options, false past the end; value: what it takes, "" for a switch. */
typedef struct sinter_option {
    const char *name, *value, *def, *help;
} sinter_option;
SINTER_API bool sinter_option_at(int32_t i, sinter_option *out);
/* Threads that steps run on: the option, or what it stands for; 1 where none could be started. */
SINTER_API int32_t sinter_host_n_thread(sinter_host *host);

/* ---- Models ------------------------------------------------------------------------------- */

typedef struct sinter_model sinter_model;

/* Reads header, keys and vocabulary, and checks every tensor and key strictly; no
 * weights yet. vocab_only: a file that holds nothing but a vocabulary will do. */
typedef struct sinter_model_options {
    size_t size;
    bool vocab_only;
} sinter_model_options;
SINTER_CALL sinter_model_open(sinter_host *host, const char *path,
                              const sinter_model_options *options, sinter_model **out,
                              sinter_error *err);
/* Counted: engines keep the model alive. */
SINTER_API void sinter_model_close(sinter_model *model);

typedef struct sinter_model_info {
    size_t size;
    const char *arch, *name; /* name: general.name or "" */
    int32_t n_vocab, n_layer, n_ctx_train, d_model;
    int32_t bos, eos;      /* -1: none */
    uint64_t weight_bytes; /* of the file's tensors that are read */
    uint64_t n_weight;     /* elements of them */
    bool has_vocab, has_template;
} sinter_model_info;
SINTER_API void sinter_model_describe(const sinter_model *model, sinter_model_info *info);
/* The file, the plan by layer, what was skipped and why; text or JSON. */
SINTER_CALL sinter_model_print(const sinter_model *model, bool json, sinter_write_fn write,
                               void *ctx, sinter_error *err);

/* ---- Text --------------------------------------------------------------------------------- */

enum {
    SINTER_TOKENIZE_SPECIAL = 1,       /* bos and eos as the file asks */
    SINTER_TOKENIZE_PARSE_SPECIAL = 2, /* spelt-out control tokens become their ids */
    SINTER_TEXT_SPECIAL = 4            /* to text: control tokens as their spelling */
};
/* *ids: freed by the caller with sinter_free. */
SINTER_CALL sinter_tokenize(const sinter_model *model, const char *text, size_t bytes,
                            unsigned flags, int32_t **ids, size_t *n_id, sinter_error *err);
/* The exact bytes of the ids. *text ends with NUL, which *bytes does not count; sinter_free. */
SINTER_CALL sinter_detokenize(const sinter_model *model, const int32_t *ids, size_t n_id,
                              unsigned flags, char **text, size_t *bytes, sinter_error *err);
SINTER_API void sinter_free(sinter_host *host, void *block);
/* Does the token end an answer? */
SINTER_API bool sinter_is_eog(const sinter_model *model, int32_t id);

/* Streaming: whole UTF-8 only; the text is borrowed until the next call, the model until free. */
typedef struct sinter_detok sinter_detok;
SINTER_CALL sinter_detok_create(const sinter_model *model, unsigned flags, sinter_detok **out,
                                sinter_error *err);
SINTER_API void sinter_detok_free(sinter_detok *d);
SINTER_CALL sinter_detok_push(sinter_detok *d, int32_t id, const char **text, size_t *bytes,
                              sinter_error *err);
SINTER_CALL sinter_detok_flush(sinter_detok *d, const char **text, size_t *bytes,
                               sinter_error *err);

/* Renders a chat template: source NULL = the model's. vars is a JSON object: {"messages": […],
 * "bos_token": "…", "add_generation_prompt": true, …}. now: seconds since 1970 for strftime_now;
 * 0 = the clock. A template that raises is SINTER_E_DATA with its message. *text: sinter_free. */
SINTER_CALL sinter_template_render(sinter_host *host, const sinter_model *model, const char *source,
                                   const char *vars, int64_t now, char **text, size_t *bytes,
                                   sinter_error *err);

/* ---- Engines and sessions ----------------------------------------------------------------- */

typedef struct sinter_engine sinter_engine;
typedef struct sinter_session sinter_session;

typedef struct sinter_engine_options {
    size_t size;
    const char *backend;         /* NULL: the option `backend` */
    int32_t n_ctx;               /* tokens a session may hold; 0 = min(n_ctx_train, 4096) */
    int32_t n_session;           /* sessions at once; 0 = 1 */
    int32_t n_chunk;             /* most tokens of one step; 0 = 512 */
    const char *type_k, *type_v; /* "f32", "f16" (default), "q8_0" (ref only) */
    int32_t n_thread;            /* 0 = the host's */
    bool profile;                /* measure time per row: SINTER_REPORT_PROFILE */
    /* Bytes done of all while loading; false cancels. */
    bool (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *progress_ctx;
} sinter_engine_options;

/* Builds the graphs, refuses what the backend lacks or memory cannot hold, loads the weights
 * (shared with other engines of the model on the same backend). One thread at a time per model. */
SINTER_CALL sinter_engine_create(sinter_model *model, const sinter_engine_options *options,
                                 sinter_engine **out, sinter_error *err);
/* Its sessions must be closed: with open ones it stays, and the log says so. */
SINTER_API void sinter_engine_free(sinter_engine *engine);
SINTER_API int32_t sinter_engine_n_ctx(const sinter_engine *engine);

/* What a step of n_row tokens behind n_past others does for its last row's logits: bytes of weights
 * and of K and V, each read once (experts: those of one token); multiply-adds with weights. */
typedef struct sinter_cost {
    uint64_t weight_bytes, kv_bytes, macs;
} sinter_cost;
SINTER_API void sinter_engine_cost(const sinter_engine *engine, int32_t n_past, int32_t n_row,
                                   sinter_cost *cost);
SINTER_CALL sinter_session_create(sinter_engine *engine, sinter_session **out, sinter_error *err);
/* A second session with the same tokens; shares memory until one of them goes on. */
SINTER_CALL sinter_session_fork(sinter_session *from, sinter_session **out, sinter_error *err);
SINTER_API void sinter_session_close(sinter_session *session);
SINTER_API int32_t sinter_session_n_tok(const sinter_session *session);
/* Keeps the first n tokens; exact, or SINTER_E_STATE with the reason. */
SINTER_CALL sinter_session_trim(sinter_session *session, int32_t n_tok, sinter_error *err);
/* Tokens [from, to) as bytes (sinter_free) and back, onto a session that ends at `from`; exact. */
SINTER_CALL sinter_session_save(sinter_session *session, int32_t from, int32_t to, void **data,
                                size_t *bytes, sinter_error *err);
SINTER_CALL sinter_session_restore(sinter_session *session, const void *data, size_t bytes,
                                   sinter_error *err);
/* Any thread: the session's running or next step ends with SINTER_E_CANCELLED within a layer. */
SINTER_API void sinter_session_cancel(sinter_session *session);

enum { SINTER_WANT_NONE = 0, SINTER_WANT_LAST = 1, SINTER_WANT_ALL = 2 };

/* One session's part of a step. Results are borrowed until the engine's next step. */
typedef struct sinter_item {
    sinter_session *session;
    const int32_t *ids;
    int32_t n_id;     /* <= n_chunk; with others' at most n_chunk in all */
    int32_t want;     /* SINTER_WANT_…: rows whose logits are wanted */
    bool want_argmax; /* the greedy id, made on the device, in place of logits */
    /* results */
    int32_t n_out;         /* rows that came */
    const float *logits;   /* [n_out][n_vocab]; NULL with want_argmax */
    const int32_t *argmax; /* [n_out] */
    sinter_status status;  /* of this item: SINTER_E_NUMERIC where a row had a NaN */
} sinter_item;

/* Runs all items as one batch on the caller's thread and commits their tokens. On failure nothing
 * is committed. A cancelled session ends the whole step; the others may be run again. */
SINTER_CALL sinter_engine_step(sinter_engine *engine, sinter_item *items, int32_t n_item,
                               sinter_error *err);

/* ---- Sampling ----------------------------------------------------------------------------- */

typedef struct sinter_sampler_options {
    size_t size;
    float temperature;    /* 0 = greedy */
    int32_t top_k;        /* 0 = all */
    float top_p;          /* 0 or 1 = all */
    float min_p;          /* 0 = all */
    float repeat_penalty; /* 0 or 1 = none */
    int32_t repeat_last;  /* tokens looked back at; 0 = 64 */
    uint64_t seed;        /* 0 = from the clock; sinter_sampler_seed tells */
    /* Clears bits of ids that may not come next, bit i of mask[i / 64]. In sinter_generate it must
     * not call the engine or its sessions: it has their turn. */
    void (*mask)(void *ctx, uint64_t *mask, int32_t n_vocab);
    void *mask_ctx;
} sinter_sampler_options;
typedef struct sinter_sampler sinter_sampler;
SINTER_CALL sinter_sampler_create(sinter_host *host, int32_t n_vocab,
                                  const sinter_sampler_options *options, sinter_sampler **out,
                                  sinter_error *err);
SINTER_API void sinter_sampler_free(sinter_sampler *sampler);
SINTER_API uint64_t sinter_sampler_seed(const sinter_sampler *sampler);
/* Picks an id from logits[n_vocab]. Draw number n of a seed depends on seed and n only. */
SINTER_CALL sinter_sampler_pick(sinter_sampler *sampler, const float *logits, int32_t *id,
                                sinter_error *err);
/* Tokens that stand before the next pick (prompt and picks), for the penalty. */
SINTER_API void sinter_sampler_accept(sinter_sampler *sampler, int32_t id);

/* ---- The short way: text to text ---------------------------------------------------------- */

typedef struct sinter_generate_options {
    size_t size;
    int32_t n_max; /* tokens to make; 0 = until the end or a full context */
    bool ignore_eos;
    const char *const *stop; /* n_stop texts: the answer ends before the first; "" never ends it */
    int32_t n_stop;
    unsigned tokenize;       /* SINTER_TOKENIZE_… for the prompt */
    sinter_sampler *sampler; /* NULL = greedy */
    sinter_write_fn write;   /* whole UTF-8 pieces; false stops the answer */
    void *write_ctx;
    bool (*progress)(void *ctx, uint64_t done, uint64_t total); /* tokens of the prompt; or NULL */
    void *progress_ctx;
} sinter_generate_options;

typedef enum sinter_stop {
    SINTER_STOP_END,    /* an end-of-generation token */
    SINTER_STOP_LENGTH, /* n_max */
    SINTER_STOP_TEXT,   /* a stop text */
    SINTER_STOP_WRITE,  /* write said so */
    SINTER_STOP_CANCELLED,
    SINTER_STOP_CONTEXT /* the context is full */
} sinter_stop;

typedef struct sinter_generate_result {
    size_t size;
    sinter_stop stop;
    int32_t n_prompt, n_cached, n_made; /* tokens: prompt, of it already in the session, answer */
    uint64_t prompt_ns, made_ns;
} sinter_generate_result;

/* Completes `prompt` in the session. What the session already holds is used as far as it is the
 * prompt's beginning; the rest is trimmed, or (where it cannot be) all is run again. A prompt that
 * does not fit is SINTER_E_CONTEXT with both numbers. */
SINTER_CALL sinter_generate(sinter_session *session, const char *prompt, size_t bytes,
                            const sinter_generate_options *options, sinter_generate_result *result,
                            sinter_error *err);

/* ---- Reports: what the engine does, as text or JSON --------------------------------------- */

typedef enum sinter_report {
    SINTER_REPORT_SUMMARY,     /* one line: graphs, plans, allocations, barriers, fallbacks */
    SINTER_REPORT_PLAN,        /* the plans: steps, shares, barriers, memory */
    SINTER_REPORT_MEMORY,      /* bytes per class */
    SINTER_REPORT_FUSION,      /* counters of the device */
    SINTER_REPORT_FUSION_LIST, /* the table with this backend's lines */
    SINTER_REPORT_FUSION_WHY,  /* explain: per node what matched, and what did not, and why */
    SINTER_REPORT_PROFILE      /* time per row since the last such report, sorted */
} sinter_report;
SINTER_CALL sinter_engine_report(sinter_engine *engine, sinter_report what, bool json,
                                 sinter_write_fn write, void *ctx, sinter_error *err);

/* Bytes an engine with these options would take, per class, without loading anything. */
SINTER_CALL sinter_plan_print(sinter_model *model, const sinter_engine_options *options, bool json,
                              sinter_write_fn write, void *ctx, sinter_error *err);

/* Runs every small dummy, or the files, fused and unfused under every kind of plan and compares
 * counters with the baseline, logits fused with unfused and with ref. Prints a line per finding and
 * `fusion: N/N`; SINTER_E_DATA if anything differs. A missing backend is SINTER_E_DEVICE. */
typedef struct sinter_fusion_check_options {
    size_t size;
    const char *backend;     /* NULL: the option `backend` */
    const char *baseline;    /* tests/fusion/cpu.csv; NULL: counts are not compared */
    bool record;             /* write the baseline instead */
    const char *work;        /* a folder that may be written to, for the dummies */
    const char *model;       /* one dummy ("llama-f32") or a file; NULL: all dummies */
    const char *const *file; /* [n_file]: these files in place of the dummies */
    int32_t n_file;
} sinter_fusion_check_options;
SINTER_CALL sinter_fusion_check(sinter_host *host, const sinter_fusion_check_options *options,
                                sinter_write_fn write, void *ctx, sinter_error *err);

/* Runs the model fused, unfused and on ref, and names the first layer that departs. exact: the same
 * bits whatever threads, chunks and company: a hash per setting, `same bits: 16/16`; without
 * it all caches are f32. SINTER_E_NUMERIC if something departs. n_ctx: so many tokens at most. */
SINTER_CALL sinter_verify(sinter_model *model, const sinter_engine_options *options, bool exact,
                          sinter_write_fn write, void *ctx, sinter_error *err);

/* Writes a model with random weights: arch (a small one; kind "mixed", "f32", "fused", "optional")
 * or like (real shape; type "q4_0", "q8_0", "bf16"). The same bytes on every machine. */
typedef struct sinter_dummy_options {
    size_t size;
    const char *arch, *kind;
    const char *like, *type;
    uint64_t seed;
} sinter_dummy_options;
SINTER_CALL sinter_dummy_write(sinter_host *host, const sinter_dummy_options *options,
                               const char *path, sinter_error *err);
/* Small dummy i ("llama-mixed") or, with like, real shape; NULL past the end. */
SINTER_API const char *sinter_dummy_name(int32_t i, bool like, char name[64]);

/* Speed of every matrix kernel of this machine; see `sinter bench --kernels`. */
SINTER_CALL sinter_kernels_bench(sinter_host *host, bool json, sinter_write_fn write, void *ctx,
                                 sinter_error *err);
/* Read bandwidth [byte/s] and int8 rate [MAC/s] of the host's threads, measured now. */
SINTER_CALL sinter_machine_measure(sinter_host *host, double *read_rate, double *int8_rate,
                                   sinter_error *err);

#ifdef __cplusplus
}
#endif
#endif
