/* What the verbs share: the context of one run of the program, its options, output, files, bars.
 *
 * Data goes to stdout through out_*, all else to stderr through note and the host's log. A verb
 * returns a status and leaves the message in t->err; main prints it and gives the exit code. */
#ifndef TOOL_H
#define TOOL_H

#include "sinter.h"

#include <stdarg.h>
#include <stdio.h>

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define CHECKED                __attribute__((warn_unused_result))

enum { MAX_ARG = 1024, MAX_HOST_SET = 64, OUT_BYTES = 1 << 16 };

struct host_set {
    const char *name, *value;
};

struct tool {
    const struct verb_row *row;
    void *args; /* the verb's own struct, zeroed, then its defaults, then what was given */
    sinter_host *host;
    sinter_error err;
    int exit_code; /* of a verb that went well and found something: 1 = its check failed */
    int verbose;   /* -1 with -q, 0, 1 with -v, 2 with -v -v */
    bool help, help_all;
    const char *arg[MAX_ARG]; /* what is no option */
    int n_arg;
    uint64_t given;                    /* bit i: the verb's option i was given */
    struct host_set set[MAX_HOST_SET]; /* options of the library, applied once the host is there */
    int n_set;
    int out_errno; /* of the first write to stdout that failed */
    size_t n_out;
    char out[OUT_BYTES];
};

#define TRY(call)                                                                                  \
    do {                                                                                           \
        sinter_status try_status_ = (call);                                                        \
        if (try_status_ != SINTER_OK)                                                              \
            return try_status_;                                                                    \
    } while (0)
#define TRY_OUT(call)                                                                              \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != SINTER_OK)                                                                   \
            goto out;                                                                              \
    } while (0)
#define FAIL(t, name, ...) (tool_fail((t), SINTER_E_##name, __VA_ARGS__), SINTER_E_##name)

void tool_fail(struct tool *t, sinter_status status, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Makes a text one line of whole UTF-8 that cannot steer a terminal, in its place. */
void clean_line(char *text);

/* ---- Verbs and their options ---------------------------------------------------------------- */

enum opt_type {
    OPT_FLAG,  /* bool */
    OPT_INT,   /* int64_t in lo..hi */
    OPT_REAL,  /* double in lo..hi */
    OPT_TEXT,  /* const char * */
    OPT_WORD,  /* const char *, one of the words in `value`: "on|off" */
    OPT_TEXTS, /* struct texts: may be given again */
    OPT_INTS,  /* struct ints: 1,2,3 */
    OPT_HOST   /* an option of the library under a short name */
};

struct texts {
    const char *v[16];
    int n;
};
struct ints {
    int32_t v[16];
    int n;
};

struct opt {
    const char *name, *brief; /* --name, -brief or NULL */
    enum opt_type type;
    size_t at; /* in the verb's arguments */
    const char *value, *def;
    double lo, hi;
    const char *help;
};
#define OPT_END                                                                                    \
    {                                                                                              \
        .name = NULL                                                                               \
    }
#define OPT_THREADS                                                                                \
    {                                                                                              \
        "threads", "t", OPT_HOST, 0, "N", NULL, 0, 0, "threads; 0 = the physical cores (default)"  \
    }
#define OPT_JSON(args)                                                                             \
    {                                                                                              \
        "json", NULL, OPT_FLAG, offsetof(args, json), NULL, NULL, 0, 0, "print JSON for programs"  \
    }
#define OPT_MODEL(args)                                                                            \
    {                                                                                              \
        "model", "m", OPT_TEXT, offsetof(args, model), "FILE", NULL, 0, 0,                         \
            "the model, a .gguf file"                                                              \
    }
/* -c, -ctk, -ctv of verbs that make an engine. */
#define OPT_CTX(args)                                                                              \
    {                                                                                              \
        "ctx-size", "c", OPT_INT, offsetof(args, ctx), "N", "0", 0, 1 << 24,                       \
            "tokens of context; 0 = the model's, at most 4096"                                     \
    }
#define OPT_CACHE_TYPES(args)                                                                      \
    {"cache-type-k", "ctk", OPT_WORD, offsetof(args, type_k), "f32|f16|q8_0",                      \
     "f16",          0,     0,        "type of the K cache"},                                      \
    {                                                                                              \
        "cache-type-v", "ctv", OPT_WORD, offsetof(args, type_v), "f32|f16|q8_0", "f16", 0, 0,      \
            "type of the V cache"                                                                  \
    }

struct verb {
    const char *usage;     /* "MODEL [PROMPT]" */
    const char *examples;  /* lines */
    const struct opt *opt; /* up to OPT_END */
    size_t args_bytes;     /* of the struct that opt fills: t->args */
    sinter_status (*run)(struct tool *t);
};
struct verb_row {
    const char *name, *help; /* of verbs.def */
    const struct verb *verb;
};
extern const struct verb_row verb_rows[];
extern const int verb_n_row;
const struct verb_row *verb_find(struct tool *t, const char *name); /* NULL: t->err says why */

/* Reads argv[0..n) into the verb's arguments and t. Unknown: USAGE with the nearest name. */
CHECKED sinter_status opt_parse(struct tool *t, int n, char **argv);
/* Was the verb's option --name given? */
bool opt_given(const struct tool *t, const char *name);
/* Refuses --name, if it was given, beside --mode. */
CHECKED sinter_status opt_not_with(struct tool *t, const char *mode, const char *name);
/* Refuses an option of the verb that was given beside --mode, which uses only those of `used`
 * (names, NULL ends). */
CHECKED sinter_status opt_only_with(struct tool *t, const char *mode, const char *const *used);
void opt_print_program(struct tool *t); /* sinter -h */
void opt_print_verb(struct tool *t, const struct verb_row *row, bool all);
void opt_print_host(struct tool *t, bool json); /* the library's options */
/* The candidate nearest to name, or NULL if none is near. */
const char *nearest(const char *name, const char *const *list, int n);

/* ---- Output --------------------------------------------------------------------------------- */

/* A sinter_write_fn over struct tool: stdout, buffered. False once stdout failed. */
bool out_write(void *tool, const char *text, size_t bytes);
void out_printf(struct tool *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
void out_json(struct tool *t, const char *text, size_t bytes); /* a JSON string, with quotes */
bool out_flush(struct tool *t);
/* A line on stderr, but with -q. */
void note(struct tool *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A note, or with --strict an error. */
CHECKED sinter_status warn(struct tool *t, const char *text);

/* Growing text of the program. Out of memory: `failed` sticks. */
struct text {
    char *v;
    size_t n, cap;
    bool failed;
};
void text_add(struct text *b, const char *v, size_t n);
void text_puts(struct text *b, const char *v);
void text_json(struct text *b, const char *v, size_t n);
void text_free(struct text *b);

/* A bar on a terminal's stderr, for work that takes more than a second. */
struct bar {
    struct tool *t;
    const char *what;
    uint64_t start_ns, shown_ns;
    bool on, shown;
};
void bar_start(struct bar *b, struct tool *t, const char *what);
bool bar_update(void *bar, uint64_t done, uint64_t total); /* always true */
void bar_end(struct bar *b);
uint64_t clock_ns(void);

/* ---- Files and models ------------------------------------------------------------------------ */

/* "-" is stdin. */
CHECKED sinter_status read_file(struct tool *t, const char *path, struct text *out);
/* Writes a whole file; on failure none is left. */
CHECKED sinter_status write_file(struct tool *t, FILE **file, const char *path);
CHECKED sinter_status close_file(struct tool *t, FILE *file, const char *path,
                                 sinter_status so_far);
/* The model's path: -m, else the first argument (which is then taken away). */
CHECKED sinter_status model_path(struct tool *t, const char *given, const char **path);
CHECKED sinter_status open_model(struct tool *t, const char *path, bool vocab_only,
                                 sinter_model **out);
CHECKED sinter_status open_engine(struct tool *t, sinter_model *model, sinter_engine_options *o,
                                  sinter_engine **out);
CHECKED sinter_status no_more_args(struct tool *t);
/* What an option of the library stands at: given, from the environment, or the default. */
const char *host_value(const struct tool *t, const char *name);
/* Offset of the first byte that is not UTF-8, or n. */
size_t utf8_bad(const char *v, size_t n);
/* The text of -p, of -f, or of a piped stdin. NULL and no error: none was given. */
CHECKED sinter_status prompt_text(struct tool *t, const char *prompt, const char *file,
                                  struct text *out, bool *given);

/* ---- Ctrl-C ---------------------------------------------------------------------------------- */

/* From here on Ctrl-C cancels the session's running answer, and pressed again ends the program.
 * NULL: it is counted, and wakes interrupt_wait. */
void interrupt_watch(sinter_session *session);
int interrupt_count(void); /* since the last clear */
void interrupt_clear(void);
bool interrupt_wait(int fd); /* until there is something to read; false: Ctrl-C came first */

#endif
