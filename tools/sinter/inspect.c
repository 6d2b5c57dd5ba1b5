/* sinter inspect: the file's keys and tensors, the model's plan by layer, what was left out. */
#include "tool.h"

struct inspect_args {
    const char *model;
    bool json, vocab_only;
};
#define AT(member) offsetof(struct inspect_args, member)
static const struct opt opts[] = {OPT_MODEL(struct inspect_args),
                                  {"vocab-only", NULL, OPT_FLAG, AT(vocab_only), NULL, NULL, 0, 0,
                                   "the file and its vocabulary, whatever the model"},
                                  OPT_JSON(struct inspect_args),
                                  OPT_END};
#undef AT

static sinter_status run(struct tool *t)
{
    const struct inspect_args *a = t->args;
    sinter_model *model;
    const char *path;
    TRY(model_path(t, a->model, &path));
    TRY(no_more_args(t));
    TRY(open_model(t, path, a->vocab_only, &model));
    sinter_status status = sinter_model_print(model, a->json, out_write, t, &t->err);
    sinter_model_close(model);
    return status;
}

const struct verb verb_inspect = {.usage = "MODEL",
                                  .examples = "  sinter inspect model.gguf\n"
                                              "  sinter inspect model.gguf --json\n",
                                  .opt = opts,
                                  .args_bytes = sizeof(struct inspect_args),
                                  .run = run};
