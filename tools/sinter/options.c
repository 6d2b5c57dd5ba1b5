/* sinter options: the library's options, which every verb takes. */
#include "tool.h"

struct options_args {
    bool json;
};
static const struct opt opts[] = {OPT_JSON(struct options_args), OPT_END};

static sinter_status run(struct tool *t)
{
    const struct options_args *a = t->args;
    TRY(no_more_args(t));
    opt_print_host(t, a->json);
    return SINTER_OK;
}

const struct verb verb_options = {
    .usage = "", .opt = opts, .args_bytes = sizeof(struct options_args), .run = run};
