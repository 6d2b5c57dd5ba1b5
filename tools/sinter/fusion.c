/* sinter fusion list | explain | check. */
#include "fusion.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(member) offsetof(struct fusion_args, member)
static const struct opt opts[] = {
    {"model", "m", OPT_TEXT, AT(model), "FILE", NULL, 0, 0,
     "the model, a .gguf file; check: or the name of a dummy"},
    {"models", NULL, OPT_TEXT, AT(models), "FOLDER", NULL, 0, 0,
     "check: every .gguf file of a folder, not the dummies"},
    {"list", NULL, OPT_FLAG, AT(list), NULL, NULL, 0, 0, "check: list the dummies it runs"},
    {"baseline", NULL, OPT_TEXT, AT(baseline), "FILE", NULL, 0, 0,
     "check: counts that must come out (tests/fusion/BACKEND.csv)"},
    {"record", NULL, OPT_FLAG, AT(record), NULL, NULL, 0, 0, "check: write the baseline"},
    {"work", NULL, OPT_TEXT, AT(work), "FOLDER", NULL, 0, 0,
     "check: folder for the dummies (one in $TMPDIR)"},
    OPT_JSON(struct fusion_args),
    OPT_END};
#undef AT

static sinter_status report(struct tool *t, const char *path, sinter_report what)
{
    const struct fusion_args *a = t->args;
    sinter_engine_options o = {0};
    sinter_model *model;
    sinter_engine *engine = NULL;
    TRY(open_model(t, path, false, &model));
    sinter_status status = open_engine(t, model, &o, &engine);
    if (status == SINTER_OK)
        status = sinter_engine_report(engine, what, a->json, out_write, t, &t->err);
    sinter_engine_free(engine);
    sinter_model_close(model);
    return status;
}

/* The table does not depend on the model: a dummy serves where none is given. */
static sinter_status list_of_dummy(struct tool *t)
{
    const char *folder = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/sinter-XXXXXX", folder && *folder ? folder : P_tmpdir);
    int fd = mkstemp(path);
    if (fd < 0)
        return FAIL(t, IO, "%s: cannot be made: %s; set TMPDIR", path, strerror(errno));
    close(fd);
    sinter_dummy_options o = {.size = sizeof o, .arch = "llama", .kind = "f32", .seed = 1};
    sinter_status status = sinter_dummy_write(t->host, &o, path, &t->err);
    if (status == SINTER_OK)
        status = report(t, path, SINTER_REPORT_FUSION_LIST);
    unlink(path);
    return status;
}

/* What only check reads would be lost without a word. */
static sinter_status no_check_options(struct tool *t, const char *part)
{
    const struct fusion_args *a = t->args;
    const char *name = a->baseline ? "--baseline"
                       : a->record ? "--record"
                       : a->models ? "--models"
                       : a->list   ? "--list"
                       : a->work   ? "--work"
                                   : NULL;
    if (name)
        return FAIL(t, USAGE, "%s belongs to sinter fusion check; fusion %s does not take it", name,
                    part);
    return SINTER_OK;
}

static sinter_status run(struct tool *t)
{
    static const char *const part[] = {"list", "explain", "check"};
    const struct fusion_args *a = t->args;
    const char *name = t->n_arg ? t->arg[0] : "", *path;
    if (t->n_arg)
        memmove(t->arg, t->arg + 1, (size_t)--t->n_arg * sizeof *t->arg);
    if (!strcmp(name, "check"))
        return fusion_check(t);
    if (!strcmp(name, "list") || !strcmp(name, "explain"))
        TRY(no_check_options(t, name));
    if (!strcmp(name, "list") && !a->model && !t->n_arg)
        return list_of_dummy(t);
    if (!strcmp(name, "list") || !strcmp(name, "explain")) {
        TRY(model_path(t, a->model, &path));
        TRY(no_more_args(t));
        return report(t, path, *name == 'l' ? SINTER_REPORT_FUSION_LIST : SINTER_REPORT_FUSION_WHY);
    }
    const char *near = nearest(name, part, 3);
    return FAIL(t, USAGE, "sinter fusion takes list, explain or check, not '%s'%s%s", name,
                near ? "; did you mean " : "", near ? near : "");
}

const struct verb verb_fusion = {.usage = "list | explain MODEL | check",
                                 .examples = "  sinter fusion list\n"
                                             "  sinter fusion explain model.gguf\n"
                                             "  sinter fusion check --baseline "
                                             "tests/fusion/cpu.csv\n"
                                             "  sinter fusion check --models models "
                                             "--baseline models.csv --record\n",
                                 .opt = opts,
                                 .args_bytes = sizeof(struct fusion_args),
                                 .run = run};
