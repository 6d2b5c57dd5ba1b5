/* Options: parsing, --help and nearest names out of the verbs' tables and the library's own. */
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Nearest names --------------------------------------------------------------------------- */

/* Edit distance; names of 40 bytes and more are near nothing. */
static int distance(const char *a, const char *b)
{
    int row[40];
    size_t n_a = strlen(a), n_b = strlen(b);
    if (n_a >= 40 || n_b >= 40)
        return 40;
    for (int j = 0; j <= (int)n_b; j++)
        row[j] = j;
    for (int i = 1; i <= (int)n_a; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= (int)n_b; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[n_b];
}

const char *nearest(const char *name, const char *const *list, int n)
{
    size_t length = strlen(name);
    int best = length < 3 ? 2 : length < 6 ? 3 : 4; /* short names are near everything */
    const char *found = NULL;
    for (int i = 0; i < n; i++) {
        int d = distance(name, list[i]);
        if (d < best) {
            best = d;
            found = list[i];
        }
    }
    for (int i = 0; !found && i < n; i++) { /* --temperature, --ctx: one begins as the other */
        const size_t n_mine = strlen(list[i]), shorter = n_mine < length ? n_mine : length;
        if (shorter >= 5 && !memcmp(name, list[i], shorter))
            found = list[i];
    }
    return found;
}

/* ---- Values -----------------------------------------------------------------------------------
 */

static sinter_status set_int(struct tool *t, const struct opt *o, int64_t *to, const char *flag,
                             const char *value)
{
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (end == value || *end)
        return FAIL(t, USAGE, "%s: \"%s\" is not a whole number", flag, value);
    if (errno || (double)n < o->lo || (double)n > o->hi)
        return FAIL(t, USAGE, "%s: %s is out of range; it may be %.0f to %.0f", flag, value, o->lo,
                    o->hi);
    *to = n;
    return SINTER_OK;
}

static sinter_status set_real(struct tool *t, const struct opt *o, double *to, const char *flag,
                              const char *value)
{
    char *end;
    double x = strtod(value, &end);
    if (end == value || *end)
        return FAIL(t, USAGE, "%s: \"%s\" is not a number", flag, value);
    if (!(x >= o->lo && x <= o->hi))
        return FAIL(t, USAGE, "%s: %s is out of range; it may be %g to %g", flag, value, o->lo,
                    o->hi);
    *to = x;
    return SINTER_OK;
}

static sinter_status set_ints(struct tool *t, const struct opt *o, struct ints *to,
                              const char *flag, const char *value)
{
    to->n = 0;
    for (const char *at = value; *at || at == value;) {
        char piece[24];
        int64_t n;
        size_t length = strcspn(at, ",");
        if (length >= sizeof piece)
            return FAIL(t, USAGE, "%s: \"%s\" is no list of numbers such as 1,2,3", flag, value);
        memcpy(piece, at, length);
        piece[length] = 0;
        if (to->n == (int)(sizeof to->v / sizeof *to->v))
            return FAIL(t, USAGE, "%s: at most %d numbers", flag, to->n);
        TRY(set_int(t, o, &n, flag, piece));
        to->v[to->n++] = (int32_t)n;
        at += length + (at[length] == ',');
    }
    return SINTER_OK;
}

static sinter_status set_word(struct tool *t, const struct opt *o, const char **to,
                              const char *flag, const char *value)
{
    size_t n = strlen(value);
    for (const char *at = o->value; *at;) {
        size_t length = strcspn(at, "|");
        if (length == n && !memcmp(at, value, n)) {
            *to = value;
            return SINTER_OK;
        }
        at += length + (at[length] == '|');
    }
    return FAIL(t, USAGE, "%s: \"%s\" is not one of %s", flag, value, o->value);
}

static sinter_status set_host(struct tool *t, const char *name, const char *value)
{
    if (t->n_set == MAX_HOST_SET)
        return FAIL(t, USAGE, "at most %d options of the library", MAX_HOST_SET);
    t->set[t->n_set++] = (struct host_set){name, value};
    return SINTER_OK;
}

static sinter_status set(struct tool *t, const struct opt *o, const char *flag, const char *value)
{
    void *to = (char *)t->args + o->at;
    switch (o->type) {
    case OPT_FLAG:
        *(bool *)to = true;
        return SINTER_OK;
    case OPT_INT:
        return set_int(t, o, to, flag, value);
    case OPT_REAL:
        return set_real(t, o, to, flag, value);
    case OPT_TEXT:
        *(const char **)to = value;
        return SINTER_OK;
    case OPT_WORD:
        return set_word(t, o, to, flag, value);
    case OPT_TEXTS: {
        struct texts *list = to;
        if (list->n == (int)(sizeof list->v / sizeof *list->v))
            return FAIL(t, USAGE, "%s: at most %d times", flag, list->n);
        list->v[list->n++] = value;
        return SINTER_OK;
    }
    case OPT_INTS:
        return set_ints(t, o, to, flag, value);
    case OPT_HOST:
        return set_host(t, o->name, value);
    }
    return FAIL(t, INTERNAL, "%s: the option has no type", flag);
}

/* ---- Parsing -----------------------------------------------------------------------------------
 */

/* The name of a library option as a flag: its underscores are dashes. */
static bool same_name(const char *row, const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!row[i] || (name[i] != row[i] && !(name[i] == '-' && row[i] == '_')))
            return false;
    return !row[n];
}

static bool host_option(const char *name, size_t n, sinter_option *out)
{
    for (int i = 0; sinter_option_at(i, out); i++)
        if (same_name(out->name, name, n))
            return true;
    return false;
}

static const struct opt *find_opt(const struct tool *t, const char *flag, size_t n)
{
    bool is_long = flag[1] == '-';
    const char *name = flag + 1 + is_long;
    n -= 1 + is_long;
    for (const struct opt *o = t->row->verb->opt; o->name; o++) {
        const char *mine = is_long ? o->name : o->brief;
        if (mine && strlen(mine) == n && !memcmp(mine, name, n))
            return o;
    }
    return NULL;
}

static bool is_flag(const char *flag, size_t n, const char *name)
{
    return strlen(name) == n && !memcmp(flag, name, n);
}

/* -h, -v, … of every verb. */
static bool common(struct tool *t, const char *flag, size_t n)
{
    if (is_flag(flag, n, "-h")) {
        t->help = true;
    } else if (is_flag(flag, n, "--help") || is_flag(flag, n, "--help-all")) {
        t->help = t->help_all = true;
    } else if (is_flag(flag, n, "-v") || is_flag(flag, n, "--verbose")) {
        t->verbose = t->verbose < 0 ? 1 : t->verbose + 1;
    } else if (is_flag(flag, n, "-q") || is_flag(flag, n, "--quiet")) {
        t->verbose = -1;
    } else {
        return false;
    }
    return true;
}

static sinter_status unknown(struct tool *t, const char *flag, size_t n)
{
    static const char *const always[] = {"--help", "--help-all", "--verbose", "--quiet"};
    char name[256][40], given[40];
    const char *list[256];
    sinter_option row;
    int count = 0;
    for (const struct opt *o = t->row->verb->opt; o->name && count < 100; o++) {
        snprintf(name[count++], sizeof *name, "--%s", o->name);
        if (o->brief)
            snprintf(name[count++], sizeof *name, "-%s", o->brief);
    }
    for (int i = 0; i < (int)(sizeof always / sizeof *always); i++)
        snprintf(name[count++], sizeof *name, "%s", always[i]);
    for (int i = 0; count < 256 && sinter_option_at(i, &row); i++, count++) {
        snprintf(name[count], sizeof *name, "--%s", row.name);
        for (char *c = name[count]; *c; c++)
            *c = *c == '_' ? '-' : *c;
    }
    for (int i = 0; i < count; i++)
        list[i] = name[i];
    snprintf(given, sizeof given, "%.*s", (int)n, flag);
    const char *near = nearest(given, list, count);
    if (near)
        return FAIL(t, USAGE, "there is no option %s; did you mean %s?", given, near);
    return FAIL(t, USAGE, "there is no option %s; sinter %s --help lists them", given,
                t->row->name);
}

static bool is_on_or_off(const char *text)
{
    static const char *const words[] = {"on", "off", "true", "false", "yes", "no", "1", "0"};
    for (size_t i = 0; text && i < sizeof words / sizeof *words; i++)
        if (!strcmp(text, words[i]))
            return true;
    return false;
}

/* "on" behind a flag that takes no value would be taken as a word of the prompt. */
static sinter_status no_value(struct tool *t, const char *flag, size_t n, const char *next)
{
    if (is_on_or_off(next))
        return FAIL(t, USAGE,
                    "%.*s takes no value, and '%s' behind it may be meant as one; leave it out, or "
                    "write a text '%s' before %.*s",
                    (int)n, flag, next, next, (int)n, flag);
    return SINTER_OK;
}

/* An option of the library: --name VALUE, --name=VALUE; a switch also bare and as --no-name. */
static sinter_status host_flag(struct tool *t, const char *flag, size_t n, const char *value,
                               const char *next, bool *took_next)
{
    sinter_option row;
    if (n > 2 && flag[1] == '-' && host_option(flag + 2, n - 2, &row)) {
        if (value)
            return set_host(t, row.name, value);
        if (!*row.value) {
            *took_next = is_on_or_off(next);
            return set_host(t, row.name, *took_next ? next : "on");
        }
        if (!next)
            return FAIL(t, USAGE, "%s needs a value (%s)", flag, row.value);
        *took_next = true;
        return set_host(t, row.name, next);
    }
    if (n > 5 && !memcmp(flag, "--no-", 5) && host_option(flag + 5, n - 5, &row) && !*row.value) {
        if (value)
            return FAIL(t, USAGE, "%.*s takes no value; --%.*s %s does", (int)n, flag, (int)n - 5,
                        flag + 5, value);
        TRY(no_value(t, flag, n, next));
        return set_host(t, row.name, "off");
    }
    return unknown(t, flag, n);
}

static sinter_status one_flag(struct tool *t, const char *flag, const char *next, bool *took_next)
{
    const char *value = strchr(flag, '=');
    size_t n = value ? (size_t)(value - flag) : strlen(flag);
    const struct opt *o = find_opt(t, flag, n);
    value += value != NULL;
    const bool is_common = !o && common(t, flag, n);
    if (!o && !is_common)
        return host_flag(t, flag, n, value, next, took_next);
    if ((is_common || o->type == OPT_FLAG) && value)
        return FAIL(t, USAGE, "%.*s takes no value", (int)n, flag);
    if (is_common || o->type == OPT_FLAG)
        TRY(no_value(t, flag, n, next));
    if (is_common)
        return SINTER_OK;
    if (o->type != OPT_FLAG && !value) {
        if (!next)
            return FAIL(t, USAGE, "%s needs a value (%s)", flag, o->value);
        *took_next = true;
        value = next;
    }
    char name[40];
    snprintf(name, sizeof name, "%.*s", (int)n, flag);
    t->given |= (uint64_t)1 << (o - t->row->verb->opt);
    return set(t, o, name, value);
}

bool opt_given(const struct tool *t, const char *name)
{
    const struct opt *all = t->row->verb->opt;
    for (int i = 0; all[i].name; i++)
        if (!strcmp(all[i].name, name))
            return t->given >> i & 1;
    return false;
}

sinter_status opt_not_with(struct tool *t, const char *mode, const char *name)
{
    if (opt_given(t, name))
        return FAIL(t, USAGE, "--%s has no meaning beside --%s; leave one of them out", name, mode);
    return SINTER_OK;
}

sinter_status opt_only_with(struct tool *t, const char *mode, const char *const *used)
{
    for (const struct opt *o = t->row->verb->opt; o->name; o++) {
        bool uses = !strcmp(o->name, mode);
        for (int u = 0; !uses && used[u]; u++)
            uses = !strcmp(o->name, used[u]);
        if (!uses)
            TRY(opt_not_with(t, mode, o->name));
    }
    return SINTER_OK;
}

sinter_status opt_parse(struct tool *t, int n, char **argv)
{
    bool only_args = false;
    for (const struct opt *o = t->row->verb->opt; o->name; o++)
        if (o->def)
            TRY(set(t, o, o->name, o->def));
    for (int i = 0; i < n; i++) {
        bool took_next = false;
        if (!only_args && !strcmp(argv[i], "--")) {
            only_args = true;
        } else if (!only_args && argv[i][0] == '-' && argv[i][1]) {
            TRY(one_flag(t, argv[i], i + 1 < n ? argv[i + 1] : NULL, &took_next));
        } else {
            if (t->n_arg == MAX_ARG)
                return FAIL(t, USAGE, "more than %d arguments", MAX_ARG);
            t->arg[t->n_arg++] = argv[i];
        }
        i += took_next;
    }
    return SINTER_OK;
}

/* ---- Help --------------------------------------------------------------------------------------
 */

static void print_row(struct tool *t, const char *flag, const char *value, const char *help,
                      const char *def)
{
    int n = (int)(strlen(flag) + strlen(value) + 1);
    out_printf(t, "  %s %s%*s%s", flag, value, n < 35 ? 35 - n : 1, "", help);
    out_printf(t, def && *def ? " (default %s)\n" : "\n", def);
}

void opt_print_program(struct tool *t)
{
    out_printf(t,
               "sinter %s: runs language models (GGUF files) on this machine\n\n"
               "usage: sinter VERB [OPTIONS] [ARGUMENTS]\n\n",
               sinter_version());
    for (int i = 0; i < verb_n_row; i++)
        out_printf(t, "  %-10s %s\n", verb_rows[i].name, verb_rows[i].help);
    out_printf(t, "\nexamples:\n"
                  "  sinter run model.gguf                        a conversation\n"
                  "  sinter run model.gguf \"Why is the sky blue?\" one answer\n"
                  "  sinter bench -m model.gguf                   how fast it is here\n\n"
                  "sinter VERB -h shows a verb's options, sinter options those that all take.\n"
                  "Exit codes: 0 ok, 1 failed, 2 usage, 65 bad data, 66 not found, 69 no device,\n"
                  "70 internal, 71 memory, 74 input/output, 78 strict, 130 interrupted.\n");
}

void opt_print_host(struct tool *t, bool json)
{
    sinter_option o;
    if (json)
        out_printf(t, "[");
    for (int i = 0; sinter_option_at(i, &o); i++) {
        char flag[64];
        snprintf(flag, sizeof flag, "--%s", o.name);
        for (char *c = flag; *c; c++)
            *c = *c == '_' ? '-' : *c;
        if (!json) {
            print_row(t, flag, *o.value ? o.value : "[on|off]", o.help, o.def);
            continue;
        }
        out_printf(t, i ? ",\n {\"flag\":" : "{\"flag\":");
        out_json(t, flag, strlen(flag));
        out_printf(t, ",\"value\":");
        out_json(t, o.value, strlen(o.value));
        out_printf(t, ",\"default\":");
        out_json(t, o.def, strlen(o.def));
        out_printf(t, ",\"help\":");
        out_json(t, o.help, strlen(o.help));
        out_printf(t, "}");
    }
    if (json)
        out_printf(t, "]\n");
}

void opt_print_verb(struct tool *t, const struct verb_row *row, bool all)
{
    const struct verb *v = row->verb;
    out_printf(t, "sinter %s: %s\n\nusage: sinter %s [OPTIONS]%s%s\n\n", row->name, row->help,
               row->name, *v->usage ? " " : "", v->usage);
    for (const struct opt *o = v->opt; o->name; o++) {
        char flag[80];
        snprintf(flag, sizeof flag, "%s%s%s--%s", o->brief ? "-" : "", o->brief ? o->brief : "",
                 o->brief ? ", " : "", o->name);
        print_row(t, flag, o->value ? o->value : "", o->help, o->def);
    }
    print_row(t, "-v, --verbose", "", "say more on stderr; again: still more", NULL);
    print_row(t, "-q, --quiet", "", "errors only", NULL);
    if (all) {
        out_printf(t,
                   "\noptions of every verb (--NAME alone turns a switch on, --no-NAME off; the\n"
                   "environment variable SINTER_NAME, as in SINTER_CPU_MASK, gives another\n"
                   "default):\n");
        opt_print_host(t, false);
    } else {
        print_row(t, "-h, --help", "", "these; --help: and the options that every verb takes",
                  NULL);
    }
    if (v->examples)
        out_printf(t, "\nexamples:\n%s", v->examples);
}
