/* Lines from the terminal: libedit with a history file, or getline where it is missing. Prompts and
 * echo go to stderr, so that stdout holds answers only. */
#include "chat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef HAVE_edit
#include <histedit.h>
#include <locale.h>
#include <wchar.h>
#endif

struct lines {
#ifdef HAVE_edit
    EditLine *edit;
    History *history;
    char path[512]; /* of the history; "": none */
    char held;      /* a byte that was read and belongs to the next character; 0: none */
#endif
    const char *prompt;
    char *line; /* getline's */
    size_t cap;
};

#ifdef HAVE_edit
static char *prompt_of(EditLine *edit)
{
    void *data;
    el_get(edit, EL_CLIENTDATA, &data);
    return (char *)(uintptr_t)((struct lines *)data)->prompt;
}

/* 1, 0 at the end, or -1; Ctrl-C gives up the line (libedit's own function would try again). */
static int read_byte(struct lines *l, char *byte)
{
    ssize_t n;
    *byte = l->held;
    l->held = 0;
    if (*byte)
        return 1;
    do {
        if (!interrupt_wait(STDIN_FILENO))
            return -1;
        n = read(STDIN_FILENO, byte, 1);
    } while (n < 0 && errno == EINTR);
    return (int)n;
}

/* Reads one character. A sequence that breaks off is one '?', and the byte behind it a new start:
 * it may be the end of the line. */
static int read_char(EditLine *edit, wchar_t *out)
{
    mbstate_t state = {0};
    void *data;
    el_get(edit, EL_CLIENTDATA, &data);
    for (bool inside = false;; inside = true) {
        struct lines *l = data;
        char byte;
        int n = read_byte(l, &byte);
        if (n <= 0)
            return n;
        size_t length = mbrtowc(out, &byte, 1, &state);
        if (length == (size_t)-1) {
            *out = L'?';
            l->held = inside ? byte : 0;
            return 1;
        }
        if (length != (size_t)-2)
            return 1;
    }
}

/* $XDG_STATE_HOME/sinter/history, else ~/.local/state/sinter/history; its folders are made. */
static void history_path(char *path, size_t bytes)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    *path = 0;
    if (state && *state)
        snprintf(path, bytes, "%s/sinter/history", state);
    else if (home && *home)
        snprintf(path, bytes, "%s/.local/state/sinter/history", home);
    for (char *at = *path ? strchr(path + 1, '/') : NULL; at; at = strchr(at + 1, '/')) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
}

struct lines *lines_open(void)
{
    struct lines *l = calloc(1, sizeof *l);
    HistEvent event;
    if (!l)
        return NULL;
    setlocale(LC_CTYPE, "");
    if (MB_CUR_MAX == 1) /* no language is set: text is UTF-8 all the same */
        setlocale(LC_CTYPE, "C.UTF-8");
    l->edit = el_init("sinter", stdin, stderr, stderr);
    l->history = history_init();
    if (!l->edit || !l->history) {
        lines_close(l);
        return NULL;
    }
    el_set(l->edit, EL_CLIENTDATA, l);
    el_set(l->edit, EL_PROMPT, prompt_of);
    el_set(l->edit, EL_EDITOR, "emacs");
    el_set(l->edit, EL_SIGNAL, 0);
    el_set(l->edit, EL_GETCFN, read_char);
    el_set(l->edit, EL_HIST, history, l->history);
    el_set(l->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
    history(l->history, &event, H_SETSIZE, 1000);
    history(l->history, &event, H_SETUNIQUE, 1);
    history_path(l->path, sizeof l->path);
    if (*l->path)
        history(l->history, &event, H_LOAD, l->path);
    el_source(l->edit, NULL);
    return l;
}

bool lines_read(struct lines *l, const char *prompt, struct text *line, bool *interrupted)
{
    int n = 0;
    l->prompt = prompt;
    l->held = 0;
    el_set(l->edit, EL_PREP_TERM, 1); /* before the prompt shows: keys are ours from then on */
    const char *got = el_gets(l->edit, &n);
    line->n = 0;
    text_add(line, "", 0);
    *interrupted = interrupt_count() > 0;
    if (*interrupted || !got || n <= 0) {
        fputc('\n', stderr);
        if (*interrupted)
            el_reset(l->edit);
        return *interrupted;
    }
    text_add(line, got, (size_t)n - (got[n - 1] == '\n'));
    return !line->failed;
}

void lines_remember(struct lines *l, const char *line)
{
    HistEvent event;
    history(l->history, &event, H_ENTER, line);
}

void lines_close(struct lines *l)
{
    HistEvent event;
    if (l->history && *l->path && history(l->history, &event, H_SAVE, l->path) >= 0)
        chmod(l->path, 0600);
    if (l->edit)
        el_end(l->edit);
    if (l->history)
        history_end(l->history);
    free(l);
}
#else
struct lines *lines_open(void)
{
    return calloc(1, sizeof(struct lines));
}

bool lines_read(struct lines *l, const char *prompt, struct text *line, bool *interrupted)
{
    fputs(prompt, stderr);
    ssize_t n = interrupt_wait(STDIN_FILENO) ? getline(&l->line, &l->cap, stdin) : -1;
    line->n = 0;
    text_add(line, "", 0);
    *interrupted = n < 0 && interrupt_count() > 0;
    if (n < 0) {
        clearerr(stdin);
        fputc('\n', stderr);
        return *interrupted;
    }
    text_add(line, l->line, (size_t)n - (l->line[n - 1] == '\n'));
    return !line->failed;
}

void lines_remember(struct lines *l, const char *line)
{
    (void)l;
    (void)line;
}

void lines_close(struct lines *l)
{
    free(l->line);
    free(l);
}
#endif
