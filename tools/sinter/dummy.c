/* sinter dummy: models with random weights, the same bytes on every machine. */
#include "tool.h"

#include <string.h>
#include <unistd.h>

struct dummy_args {
    const char *arch, *kind, *like, *type, *out;
    int64_t seed;
    bool list, json;
};
#define AT(member) offsetof(struct dummy_args, member)
static const struct opt opts[] = {
    {"arch", NULL, OPT_TEXT, AT(arch), "NAME", NULL, 0, 0, "a small model of this architecture"},
    {"kind", NULL, OPT_WORD, AT(kind), "mixed|f32|fused|optional", NULL, 0, 0,
     "with --arch: which one (mixed)"},
    {"like", NULL, OPT_TEXT, AT(like), "NAME", NULL, 0, 0, "the shape of a real model"},
    {"type", NULL, OPT_WORD, AT(type), "q4_0|q8_0|bf16", NULL, 0, 0,
     "with --like: its weights (q4_0)"},
    {"seed", "s", OPT_INT, AT(seed), "N", "1", 0, 9007199254740992.0, "of the weights"},
    {"output", "o", OPT_TEXT, AT(out), "FILE", NULL, 0, 0,
     "the .gguf file to write (must be given)"},
    {"list", NULL, OPT_FLAG, AT(list), NULL, NULL, 0, 0, "list the names"},
    OPT_JSON(struct dummy_args),
    OPT_END};
#undef AT

static void print_list(struct tool *t, bool like)
{
    const struct dummy_args *a = t->args;
    char name[64];
    if (a->json)
        out_printf(t, like ? ",\n \"like\":[" : "{\"small\":[");
    for (int32_t i = 0; sinter_dummy_name(i, like, name); i++)
        out_printf(t,
                   a->json ? "%s\"%s\""
                   : like  ? "%s--like %s\n"
                           : "%s%s\n",
                   a->json && i ? "," : "", name);
    if (a->json)
        out_printf(t, like ? "]}\n" : "]");
}

/* NAME as the list has it: a small one (its kind stands behind the last '-'), or a shape. */
static sinter_status take_name(struct tool *t, const char *given, sinter_dummy_options *o,
                               char arch[64])
{
    char name[2][64][64];
    const char *list[128], *near;
    int n = 0;
    for (int like = 0; like < 2; like++)
        for (int32_t i = 0; i < 64 && sinter_dummy_name(i, like, name[like][i]); i++) {
            list[n++] = name[like][i];
            if (strcmp(name[like][i], given) != 0)
                continue;
            if (like)
                o->like = given;
            snprintf(arch, 64, "%s", given);
            char *dash = like ? NULL : strrchr(arch, '-');
            if (dash) {
                *dash = 0;
                o->arch = arch;
                o->kind = strrchr(given, '-') + 1;
            }
            return SINTER_OK;
        }
    near = nearest(given, list, n);
    return FAIL(t, NOT_FOUND, "there is no dummy '%s'%s%s; sinter dummy --list lists them", given,
                near ? "; did you mean " : "", near ? near : "");
}

static sinter_status run(struct tool *t)
{
    const struct dummy_args *a = t->args;
    sinter_dummy_options o = {.size = sizeof o,
                              .arch = a->arch,
                              .kind = a->kind,
                              .like = a->like,
                              .type = a->type,
                              .seed = (uint64_t)a->seed};
    char arch[64];
    if (a->list) {
        static const char *const used[] = {"json", NULL};
        TRY(no_more_args(t));
        TRY(opt_only_with(t, "list", used));
        print_list(t, false);
        print_list(t, true);
        return SINTER_OK;
    }
    if ((a->arch != NULL) + (a->like != NULL) + (t->n_arg > 0) != 1 || t->n_arg > 1)
        return FAIL(t, USAGE,
                    "give one of NAME, --arch and --like; sinter dummy --list lists them");
    if (!a->out)
        return FAIL(t, USAGE, "give the file to write: -o FILE");
    if (!strcmp(a->out, "-"))
        return FAIL(t, USAGE, "-o -: a model is not written to standard output; name a file");
    if (a->json)
        return FAIL(t, USAGE, "--json goes with --list; a model is written to its file only");
    if (a->kind && !a->arch)
        return FAIL(t, USAGE, "--kind goes with --arch; NAME and --like say the kind themselves");
    if (t->n_arg)
        TRY(take_name(t, t->arg[0], &o, arch));
    if (a->type && !o.like)
        return FAIL(t, USAGE, "--type goes with --like; the kinds of a small model have their own");
    if (o.like && !o.type)
        o.type = "q4_0";
    bool existed = !access(a->out, F_OK);
    sinter_status status = sinter_dummy_write(t->host, &o, a->out, &t->err);
    if (status != SINTER_OK && !existed)
        remove(a->out); /* half a model */
    return status;
}

const struct verb verb_dummy = {.usage = "NAME -o FILE",
                                .examples =
                                    "  sinter dummy --list\n"
                                    "  sinter dummy llama-mixed -o small.gguf\n"
                                    "  sinter dummy --arch qwen3 --kind f32 --seed 7 -o f32.gguf\n"
                                    "  sinter dummy --like qwen3-0.6b --type q4_0 -o shape.gguf\n",
                                .opt = opts,
                                .args_bytes = sizeof(struct dummy_args),
                                .run = run};
