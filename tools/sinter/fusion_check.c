/* sinter fusion check: runs the dummies against the baseline of the backend. */
#include "fusion.h"

#include <stdlib.h>
#include <string.h>

static void print_models(struct tool *t)
{
    char name[64];
    for (int32_t i = 0; sinter_dummy_name(i, false, name); i++)
        out_printf(t, "%s\n", name);
}

sinter_status fusion_check(struct tool *t)
{
    const struct fusion_args *a = t->args;
    const char *folder = getenv("TMPDIR");
    char baseline[64];
    snprintf(baseline, sizeof baseline, "tests/fusion/%.20s.csv", host_value(t, "backend"));
    sinter_fusion_check_options o = {.size = sizeof o,
                                     .baseline = a->baseline ? a->baseline : baseline,
                                     .record = a->record,
                                     .model = a->model,
                                     .work = a->work             ? a->work
                                             : folder && *folder ? folder
                                                                 : P_tmpdir};
    TRY(no_more_args(t));
    if (a->models) {
        print_models(t);
        return SINTER_OK;
    }
    sinter_status status = sinter_fusion_check(t->host, &o, out_write, t, &t->err);
    if (status == SINTER_E_DEVICE)
        out_printf(t, "SKIPPED: %s\n", t->err.message);
    if (status != SINTER_E_DATA)
        return status;
    fprintf(stderr, "sinter: %s\n", t->err.message); /* it ran, and found a difference */
    t->exit_code = 1;
    return SINTER_OK;
}
