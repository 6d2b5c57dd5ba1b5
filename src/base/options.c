/* Options: the table of options.def as rows, parsing, the environment. The only reading
 * of the environment in the library stands here. */
#include "base/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEF_TEXT_BOOL(def) #def
#define DEF_TEXT_INT(def)  #def
#define DEF_TEXT_TEXT(def) def

const struct option_row option_rows[] = {
#define OPT(name, type, def, min, max, help)                                                       \
    {#name, OPTION_##type, DEF_TEXT_##type(def), help, min, max, offsetof(struct options, name)},
#include "base/options.def"
#undef OPT
};
const int option_n_row = sizeof option_rows / sizeof *option_rows;

/* Options that take one of a few words: option and its words, separated by commas. */
static const struct {
    const char *name, *words;
} choices[] = {
#define OPT(name, type, def, min, max, help)
#define CHOICE(name, words) {#name, words},
#include "base/options.def"
#undef CHOICE
#undef OPT
};

#define FIELD(o, row, type) (*(type *)(void *)((char *)(o) + (row)->offset))
static const char env_prefix[] = "SINTER_";

/* How the option is named in messages: "cpu-mask". */
static const char *flag_name(const struct option_row *row, char *buf, size_t bytes)
{
    snprintf(buf, bytes, "%s", row->name);
    for (char *c = buf; *c; c++)
        if (*c == '_')
            *c = '-';
    return buf;
}

static sinter_status set_bool(bool *to, const char *value, const char *what, sinter_error *err)
{
    static const char *const yes[] = {"1", "on", "true", "yes"};
    static const char *const no[] = {"0", "off", "false", "no"};
    for (size_t i = 0; i < 4; i++)
        if (!strcmp(value, yes[i]) || !strcmp(value, no[i])) {
            *to = !strcmp(value, yes[i]);
            return SINTER_OK;
        }
    return FAIL(err, USAGE, "%s: \"%s\" is neither on nor off", what, value);
}

static sinter_status set_int(const struct option_row *row, int64_t *to, const char *value,
                             const char *what, sinter_error *err)
{
    char *end;
    long long n;
    errno = 0;
    n = strtoll(value, &end, 10);
    if (end == value || *end || *value == ' ')
        return FAIL(err, USAGE, "%s: \"%s\" is not a whole number", what, value);
    if (errno || n < row->min || n > row->max)
        return FAIL(err, USAGE, "%s: %s is out of range; it must be %" PRId64 " to %" PRId64, what,
                    value, row->min, row->max);
    *to = n;
    return SINTER_OK;
}

static sinter_status check_choice(const struct option_row *row, const char *value, const char *what,
                                  sinter_error *err)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (!strcmp(choices[i].name, row->name) && strcmp(value, row->def) &&
            !options_list_has(choices[i].words, value))
            return FAIL(err, USAGE, "%s: \"%s\" is not one of %s", what, value, choices[i].words);
    return SINTER_OK;
}

/* `what` names the flag or the variable that the value comes from. */
static sinter_status set_row(struct options *o, const struct option_row *row, const char *value,
                             const char *what, sinter_error *err)
{
    TRY(check_choice(row, value, what, err));
    switch (row->type) {
    case OPTION_BOOL:
        return set_bool(&FIELD(o, row, bool), value, what, err);
    case OPTION_INT:
        return set_int(row, &FIELD(o, row, int64_t), value, what, err);
    case OPTION_TEXT:
        FIELD(o, row, const char *) = value;
        return SINTER_OK;
    }
    return FAIL(err, INTERNAL, "%s: the option has no type", what);
}

void options_default(struct options *o)
{
    *o = (struct options){
#define OPT(name, type, def, min, max, help) .name = def,
#include "base/options.def"
#undef OPT
    };
}

/* The environment's name of an option: "SINTER_CPU_MASK". */
static void env_name(const struct option_row *row, char name[64])
{
    snprintf(name, 64, "%s%s", env_prefix, row->name);
    for (char *c = name; *c; c++)
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
}

sinter_status options_from_env(struct options *o, sinter_error *err)
{
    options_default(o);
    for (const struct option_row *row = option_rows; row < option_rows + option_n_row; row++) {
        char name[64];
        const char *value;
        env_name(row, name);
        value = getenv(name);
        if (value)
            TRY(set_row(o, row, value, name, err));
    }
    return SINTER_OK;
}

static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_')))
            return false;
    return *a == *b;
}

sinter_status options_set(struct options *o, const char *name, const char *value, sinter_error *err)
{
    char flags[sizeof option_rows / sizeof *option_rows][32], what[64];
    const char *list[sizeof option_rows / sizeof *option_rows], *nearest;
    for (int i = 0; i < option_n_row; i++) {
        const struct option_row *row = option_rows + i;
        list[i] = flag_name(row, flags[i], sizeof flags[i]);
        if (same_name(row->name, name)) {
            snprintf(what, sizeof what, "option %.40s", list[i]);
            return set_row(o, row, value, what, err);
        }
    }
    nearest = options_nearest(name, list, option_n_row);
    if (nearest)
        return FAIL(err, USAGE, "unknown option %s; did you mean %s?", name, nearest);
    return FAIL(err, USAGE, "unknown option %s; --help lists what can be given", name);
}

bool options_list_has(const char *list, const char *item)
{
    const size_t n = strlen(item);
    while (*list) {
        const size_t length = strcspn(list, ",");
        if (length == n && !memcmp(list, item, n))
            return true;
        list += length + (list[length] == ',');
    }
    return false;
}

/* Edit distance of a and b, or more than `max` (it stops early). Names of 64 bytes and more are
 * near nothing. */
static int edit_distance(const char *a, const char *b, int max)
{
    int row[64];
    const int n_a = (int)strnlen(a, 64), n_b = (int)strnlen(b, 64);
    if (n_a > 63 || n_b > 63 || abs(n_a - n_b) > max)
        return max + 1;
    for (int j = 0; j <= n_b; j++)
        row[j] = j;
    for (int i = 1; i <= n_a; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n_b; j++) {
            int best = diagonal + !(a[i - 1] == b[j - 1]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[n_b];
}

const char *options_nearest(const char *name, const char *const *candidates, int n)
{
    const int length = (int)strnlen(name, 64);
    int best = length < 3 ? 1 : length < 6 ? 2 : 3; /* short names are near everything */
    const char *nearest = NULL;
    for (int i = 0; i < n; i++) {
        const int d = edit_distance(name, candidates[i], best);
        if (d < best || (d == best && !nearest)) {
            best = d;
            nearest = candidates[i];
        }
    }
    return nearest;
}

const char *options_env_unknown(size_t *at, size_t *bytes, char near[64])
{
    char known[sizeof option_rows / sizeof *option_rows][64], given[64];
    const char *list[sizeof option_rows / sizeof *option_rows];
    for (int i = 0; i < option_n_row; i++) {
        env_name(option_rows + i, known[i]);
        list[i] = known[i];
    }
    while (environ && environ[*at]) {
        const char *variable = environ[(*at)++];
        bool is_known = false;
        if (strncmp(variable, env_prefix, sizeof env_prefix - 1))
            continue;
        *bytes = strcspn(variable, "=");
        for (int i = 0; i < option_n_row; i++)
            is_known |= strlen(list[i]) == *bytes && !memcmp(list[i], variable, *bytes);
        if (is_known)
            continue;
        snprintf(given, sizeof given, "%.*s", (int)(*bytes < 63 ? *bytes : 63), variable);
        const char *found = options_nearest(given, list, option_n_row);
        snprintf(near, 64, "%s", found ? found : "");
        return variable;
    }
    return NULL;
}
