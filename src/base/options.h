/* The options of options.def as one struct: host_options(host)->threads. Order of precedence:
 * set by the program, then the environment (read once, in sinter_host_create), then the default.
 * A text is not copied here: it must live as long as the struct (the host keeps its own). */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include "base/status.h"

enum option_type { OPTION_BOOL, OPTION_INT, OPTION_TEXT };

struct options {
#define OPT(name, type, def, min, max, help) OPTION_FIELD_##type(name)
#define OPTION_FIELD_BOOL(name)              bool name;
#define OPTION_FIELD_INT(name)               int64_t name;
#define OPTION_FIELD_TEXT(name)              const char *name;
#include "base/options.def"
#undef OPT
#undef OPTION_FIELD_BOOL
#undef OPTION_FIELD_INT
#undef OPTION_FIELD_TEXT
};

struct option_row {
    const char *name; /* as in the table: "cpu_mask" */
    enum option_type type;
    const char *def, *help;
    int64_t min, max;
    size_t offset; /* in struct options */
};

extern const struct option_row option_rows[];
extern const int option_n_row;

void options_default(struct options *o);
/* Reads SINTER_<NAME> for every row; a bad value is an error that names the variable. */
CHECKED sinter_status options_from_env(struct options *o, sinter_error *err);
/* The next variable of the environment that begins with SINTER_ and names no option, from *at on
 * (0 at first), or NULL; *bytes of it are its name. near: the nearest variable, or "". */
const char *options_env_unknown(size_t *at, size_t *bytes, char near[64]);
/* `name` with dashes or underscores. Unknown: refused with the nearest name. */
CHECKED sinter_status options_set(struct options *o, const char *name, const char *value,
                                  sinter_error *err);
/* Is `item` one of the comma-separated items of `list`? */
bool options_list_has(const char *list, const char *item);
/* The candidate nearest to `name` (edit distance <= 3), or NULL. */
const char *options_nearest(const char *name, const char *const *candidates, int n);

#endif
