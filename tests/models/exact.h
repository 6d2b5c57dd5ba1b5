/* `sinter verify --exact` of one file at one level of the cpu backend. */
#ifndef TESTS_MODELS_EXACT_H
#define TESTS_MODELS_EXACT_H

#include <stdio.h>
#include <string.h>

#include "sinter.h"

static inline bool exact_keep(void *ctx, const char *text, size_t bytes)
{
    char *out = ctx; /* [4096] */
    size_t n = strlen(out);
    snprintf(out + n, 4096 - n, "%.*s", (int)bytes, text);
    return true;
}

/* Is `same bits: 16/16` what it says? Prints that line, and all lines where it is not. n_tok: how
 * many are compared at most; 0: as many as verify takes. */
static inline bool exact_verify(const char *path, const char *name, const char *level, int n_tok)
{
    char out[4096] = "";
    sinter_host *host;
    sinter_model *model = NULL;
    sinter_error err = {0};
    sinter_engine_options o = {.size = sizeof o, .backend = "cpu", .n_ctx = n_tok};
    sinter_status status = sinter_host_create(NULL, &host, &err);
    if (status != SINTER_OK)
        return false;
    status = sinter_host_set(host, "threads", "2", &err);
    if (status == SINTER_OK)
        status = sinter_host_set(host, "cpu-mask", level, &err);
    if (status == SINTER_OK)
        status = sinter_model_open(host, path, NULL, &model, &err);
    if (status == SINTER_OK)
        status = sinter_verify(model, &o, true, exact_keep, out, &err);
    const char *last = strstr(out, "same bits: ");
    bool ok = status == SINTER_OK && last && strcmp(last, "same bits: 16/16\n") == 0;
    if (ok)
        printf("%-18s %-7s %s", name, level, last);
    else
        printf("%s %s: %s\n%s", name, level, err.message, out);
    fflush(stdout);
    sinter_model_close(model);
    sinter_host_free(host);
    return ok;
}

#endif
