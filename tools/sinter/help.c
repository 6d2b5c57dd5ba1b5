/* sinter help: of the program, or of a verb. */
#include "tool.h"

static const struct opt opts[] = {OPT_END};

static sinter_status run(struct tool *t)
{
    const struct verb_row *row;
    if (!t->n_arg) {
        opt_print_program(t);
        return SINTER_OK;
    }
    if (t->n_arg > 1)
        return FAIL(t, USAGE, "help of one verb at a time, as in: sinter help run");
    row = verb_find(t, t->arg[0]);
    if (!row)
        return SINTER_E_USAGE;
    opt_print_verb(t, row, true);
    return SINTER_OK;
}

const struct verb verb_help = {.usage = "[VERB]", .opt = opts, .run = run};
