/* Output, files, models and bars that the verbs share. */
#include "tool.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void tool_fail(struct tool *t, sinter_status status, const char *fmt, ...)
{
    va_list args;
    t->err.status = status;
    va_start(args, fmt);
    vsnprintf(t->err.message, sizeof t->err.message, fmt, args);
    va_end(args);
    clean_line(t->err.message);
}

/* ---- Output --------------------------------------------------------------------------------- */

bool out_flush(struct tool *t)
{
    size_t done = 0;
    while (done < t->n_out && !t->out_errno) {
        ssize_t n = write(STDOUT_FILENO, t->out + done, t->n_out - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR)
            t->out_errno = errno;
    }
    t->n_out = 0;
    return !t->out_errno;
}

bool out_write(void *ctx, const char *text, size_t bytes)
{
    struct tool *t = ctx;
    while (bytes && !t->out_errno) {
        size_t n = sizeof t->out - t->n_out;
        n = n < bytes ? n : bytes;
        memcpy(t->out + t->n_out, text, n);
        t->n_out += n;
        text += n;
        bytes -= n;
        if (t->n_out == sizeof t->out)
            out_flush(t);
    }
    return !t->out_errno;
}

void out_printf(struct tool *t, const char *fmt, ...)
{
    char line[4096];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (n > 0)
        out_write(t, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

void out_json(struct tool *t, const char *text, size_t bytes)
{
    struct text b = {0};
    text_json(&b, text, bytes);
    out_write(t, b.v, b.n);
    text_free(&b);
}

void note(struct tool *t, const char *fmt, ...)
{
    char line[2048];
    va_list args;
    if (t->verbose < 0)
        return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    clean_line(line);
    fprintf(stderr, "sinter: %s\n", line);
}

/* ---- Text ------------------------------------------------------------------------------------ */

void text_add(struct text *b, const char *v, size_t n)
{
    if (b->failed)
        return;
    if (b->cap - b->n <= n) {
        size_t cap = (b->cap + n) * 2 + 64;
        char *grown = realloc(b->v, cap);
        if (!grown) {
            b->failed = true;
            return;
        }
        b->v = grown;
        b->cap = cap;
    }
    if (n)
        memcpy(b->v + b->n, v, n);
    b->n += n;
    b->v[b->n] = 0;
}

void text_puts(struct text *b, const char *v)
{
    text_add(b, v, strlen(v));
}

/* Bytes of the UTF-8 sequence at v, or 0 if it is none. */
static size_t utf8_length(const unsigned char *v, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = v[0] < 0x80       ? 1
                    : v[0] >> 5 == 6  ? 2
                    : v[0] >> 4 == 14 ? 3
                    : v[0] >> 3 == 30 ? 4
                                      : 0;
    if (length <= 1 || length > n)
        return length == 1;
    uint32_t c = v[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (v[i] >> 6 != 2)
            return 0;
        c = c << 6 | (v[i] & 0x3fu);
    }
    return c < least[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : length;
}

size_t utf8_bad(const char *v, size_t n)
{
    size_t at = 0;
    while (at < n) {
        size_t length = utf8_length((const unsigned char *)v + at, n - at);
        if (!length)
            break;
        at += length;
    }
    return at;
}

/* Is the sequence v[0..length) a control character? Terminals obey U+0080 to U+009F too. */
static bool is_control(const unsigned char *v, size_t length)
{
    return length == 1 ? v[0] < 0x20 || v[0] == 0x7f : length == 2 && v[0] == 0xc2 && v[1] < 0xa0;
}

void clean_line(char *text)
{
    char *to = text;
    for (size_t i = 0, n = strlen(text), length; i < n; i += length) {
        const unsigned char *at = (const unsigned char *)text + i;
        length = utf8_length(at, n - i);
        if (!length || is_control(at, length)) {
            *to++ = *at == '\n' || *at == '\t' ? ' ' : '?';
            length = length ? length : 1;
        } else {
            memmove(to, at, length);
            to += length;
        }
    }
    *to = 0;
}

void text_json(struct text *b, const char *v, size_t n)
{
    text_puts(b, "\"");
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)v[i];
        size_t length = utf8_length((const unsigned char *)v + i, n - i);
        char escape[8];
        if (c == '"' || c == '\\') {
            snprintf(escape, sizeof escape, "\\%c", c);
            text_puts(b, escape);
        } else if (c == '\n' || c == '\t') {
            text_puts(b, c == '\n' ? "\\n" : "\\t");
        } else if (length && is_control((const unsigned char *)v + i, length)) {
            snprintf(escape, sizeof escape, "\\u%04x", length == 1 ? c : (unsigned char)v[i + 1]);
            text_puts(b, escape);
        } else if (length) {
            text_add(b, v + i, length);
        } else {
            text_puts(b, "\xef\xbf\xbd");
        }
        i += length ? length : 1;
    }
    text_puts(b, "\"");
}

void text_free(struct text *b)
{
    free(b->v);
    *b = (struct text){0};
}

/* ---- Bars -------------------------------------------------------------------------------------
 */

uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bar_start(struct bar *b, struct tool *t, const char *what)
{
    const char *term = getenv("TERM");
    *b = (struct bar){.t = t, .what = what, .start_ns = clock_ns()};
    b->on = t->verbose >= 0 && isatty(STDERR_FILENO) && term && strcmp(term, "dumb");
}

bool bar_update(void *ctx, uint64_t done, uint64_t total)
{
    enum { WIDTH = 30 };
    static const char full[] = "##############################";
    struct bar *b = ctx;
    uint64_t now = clock_ns();
    if (!b->on || !total || now - b->start_ns < 1000000000u || now - b->shown_ns < 100000000u)
        return true;
    int n = (int)((double)done / (double)total * WIDTH);
    n = n > WIDTH ? WIDTH : n;
    fprintf(stderr, "\r%s [%.*s%*s] %3d%%", b->what, n, full, WIDTH - n, "",
            (int)((double)done / (double)total * 100));
    fflush(stderr);
    b->shown = true;
    b->shown_ns = now;
    return true;
}

void bar_end(struct bar *b)
{
    if (b->shown)
        fprintf(stderr, "\r%*s\r", (int)strlen(b->what) + 40, "");
    b->on = b->shown = false;
}

/* ---- Files ------------------------------------------------------------------------------------
 */

sinter_status read_file(struct tool *t, const char *path, struct text *out)
{
    enum { MAX_MIB = 256 };
    char piece[16384];
    bool is_stdin = !strcmp(path, "-");
    FILE *f = is_stdin ? stdin : fopen(path, "rb");
    struct stat st;
    size_t n;
    int why = 0;
    if (!f && errno == ENOENT)
        return FAIL(t, NOT_FOUND, "%s: no such file; check the path", path);
    if (!f)
        return FAIL(t, IO, "%s: cannot be opened: %s", path, strerror(errno));
    if (!is_stdin && !fstat(fileno(f), &st) && S_ISDIR(st.st_mode)) {
        fclose(f);
        return FAIL(t, IO, "%s: is a directory; name a file", path);
    }
    text_add(out, "", 0);
    path = is_stdin ? "standard input" : path;
    while (!out->failed && out->n <= (size_t)MAX_MIB << 20 &&
           (n = fread(piece, 1, sizeof piece, f)) > 0)
        text_add(out, piece, n);
    if (ferror(f))
        why = errno;
    if (!is_stdin)
        fclose(f);
    if (out->failed)
        return FAIL(t, MEMORY, "%s: out of memory", path);
    if (out->n > (size_t)MAX_MIB << 20)
        return FAIL(t, LIMIT, "%s: more than %d MiB; give a shorter text", path, MAX_MIB);
    if (why)
        return FAIL(t, IO, "%s: cannot be read: %s", path, strerror(why));
    return SINTER_OK;
}

sinter_status write_file(struct tool *t, FILE **file, const char *path)
{
    *file = fopen(path, "wb");
    if (!*file)
        return FAIL(t, IO, "%s: cannot be written: %s; check the folder and its permissions", path,
                    strerror(errno));
    return SINTER_OK;
}

sinter_status close_file(struct tool *t, FILE *file, const char *path, sinter_status so_far)
{
    struct stat st;
    bool plain = !fstat(fileno(file), &st) && S_ISREG(st.st_mode); /* /dev/full is not removed */
    bool bad = ferror(file) != 0;
    int why = errno;
    if (fclose(file) && !bad) {
        bad = true;
        why = errno;
    }
    if (so_far == SINTER_OK && bad)
        so_far = FAIL(t, IO, "%s: cannot be written: %s", path, strerror(why));
    if (so_far != SINTER_OK && plain)
        remove(path);
    return so_far;
}

/* ---- Models ------------------------------------------------------------------------------------
 */

sinter_status no_more_args(struct tool *t)
{
    if (t->n_arg)
        return FAIL(t, USAGE, "'%s' is one argument too many; sinter %s -h shows how it is used",
                    t->arg[0], t->row->name);
    return SINTER_OK;
}

sinter_status model_path(struct tool *t, const char *given, const char **path)
{
    *path = given;
    if (given)
        return SINTER_OK;
    if (!t->n_arg)
        return FAIL(t, USAGE, "name a model, the path of a .gguf file: sinter %s %s", t->row->name,
                    t->row->verb->usage);
    *path = t->arg[0];
    memmove(t->arg, t->arg + 1, (size_t)--t->n_arg * sizeof *t->arg);
    return SINTER_OK;
}

static void add_models(const char *folder, char *list, size_t bytes)
{
    DIR *dir = opendir(folder);
    struct dirent *e;
    while (dir && (e = readdir(dir))) {
        size_t n = strlen(e->d_name), used = strlen(list);
        if (n > 5 && !strcmp(e->d_name + n - 5, ".gguf") && used + n + strlen(folder) + 4 < bytes)
            snprintf(list + used, bytes - used, "%s%s%s%s", used ? ", " : "",
                     strcmp(folder, ".") ? folder : "", strcmp(folder, ".") ? "/" : "", e->d_name);
    }
    if (dir)
        closedir(dir);
}

static sinter_status no_model(struct tool *t, const char *path)
{
    char list[400] = "";
    path = *path ? path : "''";
    add_models(".", list, sizeof list);
    add_models("models", list, sizeof list);
    if (*list)
        return FAIL(t, NOT_FOUND, "%s: no such model; give the path of a .gguf file, such as %s",
                    path, list);
    return FAIL(t, NOT_FOUND,
                "%s: no such model; give the path of a .gguf file (models are not fetched by name)",
                path);
}

sinter_status open_model(struct tool *t, const char *path, bool vocab_only, sinter_model **out)
{
    sinter_model_options o = {.size = sizeof o, .vocab_only = vocab_only};
    if (access(path, F_OK) && errno == ENOENT)
        return no_model(t, path);
    return sinter_model_open(t->host, path, &o, out, &t->err);
}

sinter_status open_engine(struct tool *t, sinter_model *model, sinter_engine_options *o,
                          sinter_engine **out)
{
    struct bar bar;
    bar_start(&bar, t, "loading");
    o->size = sizeof *o;
    o->progress = bar_update;
    o->progress_ctx = &bar;
    sinter_status status = sinter_engine_create(model, o, out, &t->err);
    bar_end(&bar);
    return status;
}

sinter_status prompt_text(struct tool *t, const char *prompt, const char *file, struct text *out,
                          bool *given)
{
    *given = true;
    if (prompt && file)
        return FAIL(t, USAGE, "both a prompt and a file (-f) are given; give one");
    if (prompt) {
        text_puts(out, prompt);
        return out->failed ? FAIL(t, MEMORY, "out of memory") : SINTER_OK;
    }
    if (file)
        return read_file(t, file, out);
    *given = !isatty(STDIN_FILENO);
    return *given ? read_file(t, "-", out) : SINTER_OK;
}

const char *host_value(const struct tool *t, const char *name)
{
    char variable[64];
    const char *value = NULL;
    sinter_option o;
    for (int i = 0; i < t->n_set; i++)
        if (!strcmp(t->set[i].name, name))
            value = t->set[i].value;
    snprintf(variable, sizeof variable, "SINTER_%s", name);
    for (char *c = variable; *c; c++)
        *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
    value = value ? value : getenv(variable);
    for (int i = 0; !value && sinter_option_at(i, &o); i++)
        if (!strcmp(o.name, name))
            value = o.def;
    return value ? value : "";
}

sinter_status warn(struct tool *t, const char *text)
{
    static const char *const yes[] = {"1", "on", "true", "yes"};
    const char *strict = host_value(t, "strict");
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (!strcmp(strict, yes[i]))
            return FAIL(t, STRICT, "%s (an error because of --strict)", text);
    note(t, "%s", text);
    return SINTER_OK;
}
