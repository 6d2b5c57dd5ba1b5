/* sinter: dispatch to the verbs of verbs.def, messages and exit codes. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERB(name, help) extern const struct verb verb_##name;
#include "verbs.def"
#undef VERB

const struct verb_row verb_rows[] = {
#define VERB(name, help) {#name, help, &verb_##name},
#include "verbs.def"
#undef VERB
};
const int verb_n_row = sizeof verb_rows / sizeof *verb_rows;

const struct verb_row *verb_find(struct tool *t, const char *name)
{
    const char *list[sizeof verb_rows / sizeof *verb_rows], *near;
    for (int i = 0; i < verb_n_row; i++) {
        list[i] = verb_rows[i].name;
        if (!strcmp(list[i], name))
            return &verb_rows[i];
    }
    near = nearest(name, list, verb_n_row);
    if (near)
        tool_fail(t, SINTER_E_USAGE, "there is no verb '%s'; did you mean %s?", name, near);
    else
        tool_fail(t, SINTER_E_USAGE, "there is no verb '%s'; sinter -h lists them", name);
    return NULL;
}

/* A closed stdin, stdout or stderr would be the next file that is opened: a model, or worse one
 * that is written. What stands in its place fails as the closed one would. */
static void hold_standard_files(void)
{
    static const int mode[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", mode[fd]) < 0)
            return;
}

static void log_line(void *ctx, sinter_log_level level, const char *line)
{
    static const char *const before[] = {"error: ", "warning: ", "", ""};
    const struct tool *t = ctx;
    if (t->verbose >= 0 || level == SINTER_LOG_ERROR)
        fprintf(stderr, "sinter: %s%s\n", before[level], line);
}

static sinter_status make_host(struct tool *t)
{
    sinter_host_options o = {.size = sizeof o, .log = log_line, .log_ctx = t};
    o.log_level = t->verbose > 1   ? SINTER_LOG_DEBUG
                  : t->verbose > 0 ? SINTER_LOG_INFO
                                   : SINTER_LOG_WARN;
    TRY(sinter_host_create(&o, &t->host, &t->err));
    for (int i = 0; i < t->n_set; i++)
        TRY(sinter_host_set(t->host, t->set[i].name, t->set[i].value, &t->err));
    return SINTER_OK;
}

static sinter_status run(struct tool *t, int argc, char **argv)
{
    if (argc < 2)
        return FAIL(t, USAGE, "name a verb, as in: sinter run MODEL.gguf; sinter -h lists them");
    if (!strcmp(argv[1], "--version")) {
        out_printf(t, "sinter %s\n", sinter_version());
        return SINTER_OK;
    }
    if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "--help-all")) {
        opt_print_program(t);
        return SINTER_OK;
    }
    t->row = verb_find(t, argv[1]);
    if (!t->row)
        return SINTER_E_USAGE;
    t->args = calloc(1, t->row->verb->args_bytes + 1);
    if (!t->args)
        return FAIL(t, MEMORY, "out of memory");
    TRY(opt_parse(t, argc - 2, argv + 2));
    if (t->help) {
        opt_print_verb(t, t->row, t->help_all);
        return SINTER_OK;
    }
    TRY(make_host(t));
    return t->row->verb->run(t);
}

int main(int argc, char **argv)
{
    struct tool *t;
    sinter_status status;
    hold_standard_files();
    signal(SIGPIPE, SIG_IGN); /* as errors of the write, which say more */
    signal(SIGXFSZ, SIG_IGN);
    t = calloc(1, sizeof *t);
    if (!t)
        return sinter_status_exit_code(SINTER_E_MEMORY);
    status = run(t, argc, argv);
    if (!out_flush(t)) /* that is the cause, whatever it led to */
        status = FAIL(t, IO, "standard output cannot be written: %s", strerror(t->out_errno));
    if (status != SINTER_OK)
        fprintf(stderr, "sinter: %s\n",
                t->err.message[0] ? t->err.message : sinter_status_text(status));
    int code = status == SINTER_OK ? t->exit_code : sinter_status_exit_code(status);
    sinter_host_free(t->host);
    free(t->args);
    free(t);
    return code;
}
