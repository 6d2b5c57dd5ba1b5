/* sinter fusion check: runs the dummies against the baseline of the backend. */
#include "fusion.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_models(struct tool *t)
{
    char name[64];
    for (int32_t i = 0; sinter_dummy_name(i, false, name); i++)
        out_printf(t, "%s\n", name);
}

/* A folder of its own, so that two checks at once do not meet. */
static sinter_status make_folder(struct tool *t, char path[512])
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, 512, "%s/sinter-XXXXXX", folder && *folder ? folder : P_tmpdir);
    if (!mkdtemp(path))
        return FAIL(t, IO, "%s: cannot be made: %s; set TMPDIR or give --work", path,
                    strerror(errno));
    return SINTER_OK;
}

static void remove_folder(const char *path)
{
    char name[64], file[640];
    for (int32_t i = 0; sinter_dummy_name(i, false, name); i++) {
        snprintf(file, sizeof file, "%s/%s.gguf", path, name);
        unlink(file);
    }
    rmdir(path);
}

sinter_status fusion_check(struct tool *t)
{
    const struct fusion_args *a = t->args;
    char baseline[64], folder[512];
    TRY(no_more_args(t));
    if (a->models) {
        print_models(t);
        return SINTER_OK;
    }
    snprintf(baseline, sizeof baseline, "tests/fusion/%.20s.csv", host_value(t, "backend"));
    if (!a->work)
        TRY(make_folder(t, folder));
    sinter_fusion_check_options o = {.size = sizeof o,
                                     .baseline = a->baseline ? a->baseline : baseline,
                                     .record = a->record,
                                     .model = a->model,
                                     .work = a->work ? a->work : folder};
    sinter_status status = sinter_fusion_check(t->host, &o, out_write, t, &t->err);
    if (!a->work)
        remove_folder(folder);
    if (status == SINTER_E_DEVICE)
        out_printf(t, "SKIPPED: %s\n", t->err.message);
    if (status != SINTER_E_DATA)
        return status;
    fprintf(stderr, "sinter: %s\n", t->err.message); /* it ran, and found a difference */
    t->exit_code = 1;
    return SINTER_OK;
}
