/* sinter verify: does a model compute what it should on this machine? */
#include "tool.h"

struct verify_args {
    const char *model, *type_k, *type_v;
    bool exact;
};
#define AT(member) offsetof(struct verify_args, member)
static const struct opt opts[] = {
    OPT_MODEL(struct verify_args),
    {"exact", NULL, OPT_FLAG, AT(exact), NULL, NULL, 0, 0,
     "same bits whatever threads, chunks and company (takes two threads; -ctk, -ctv)"},
    OPT_THREADS,
    OPT_CACHE_TYPES(struct verify_args),
    OPT_END};
#undef AT

static sinter_status run(struct tool *t)
{
    const struct verify_args *a = t->args;
    sinter_engine_options o = {.size = sizeof o, .type_k = a->type_k, .type_v = a->type_v};
    sinter_model *model;
    const char *path;
    TRY(model_path(t, a->model, &path));
    TRY(no_more_args(t));
    if (!a->exact && (opt_given(t, "cache-type-k") || opt_given(t, "cache-type-v")))
        return FAIL(t, USAGE,
                    "cache types (-ctk, -ctv) go with --exact; without it all caches are f32, so "
                    "that only kernels differ");
    TRY(open_model(t, path, false, &model));
    sinter_status status = sinter_verify(model, &o, a->exact, out_write, t, &t->err);
    sinter_model_close(model);
    if (status != SINTER_E_NUMERIC)
        return status;
    fprintf(stderr, "sinter: %s\n", t->err.message); /* it ran, and found a difference */
    t->exit_code = 1;
    return SINTER_OK;
}

const struct verb verb_verify = {.usage = "MODEL",
                                 .examples = "  sinter verify model.gguf\n"
                                             "  sinter verify model.gguf --exact -t 2\n",
                                 .opt = opts,
                                 .args_bytes = sizeof(struct verify_args),
                                 .run = run};
