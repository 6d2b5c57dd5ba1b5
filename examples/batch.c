/* Two sessions in one step: both texts go on together, and each matrix is read once for both. What
 * a session gives does not depend on its company.
 *
 *     cc batch.c $(pkg-config --cflags --libs sinter) -o batch
 *     ./batch MODEL.gguf "Once upon a time" "The capital of France is"                          */
#include <sinter.h>

#include <stdio.h>
#include <string.h>

enum { N_SESSION = 2, N_STEP = 24 };

/* Feeds both prompts in one step, then step by step each session's best token back to it. */
static sinter_status run(sinter_host *host, sinter_model *model, sinter_engine *engine,
                         char *const *prompt, sinter_error *err)
{
    sinter_item item[N_SESSION] = {{0}};
    int32_t *ids[N_SESSION] = {NULL}, made[N_SESSION][N_STEP];
    sinter_status status = SINTER_OK;
    for (int i = 0; status == SINTER_OK && i < N_SESSION; i++) {
        size_t n = 0;
        status = sinter_tokenize(model, prompt[i], strlen(prompt[i]), SINTER_TOKENIZE_SPECIAL,
                                 &ids[i], &n, err);
        if (status == SINTER_OK)
            status = sinter_session_create(engine, &item[i].session, err);
        item[i].ids = ids[i];
        item[i].n_id = (int32_t)n;
        item[i].want = SINTER_WANT_LAST;
        item[i].want_argmax = true;
    }
    for (int n = 0; status == SINTER_OK && n < N_STEP; n++) {
        status = sinter_engine_step(engine, item, N_SESSION, err);
        for (int i = 0; status == SINTER_OK && i < N_SESSION; i++) {
            made[i][n] = item[i].argmax[0];
            item[i].ids = &made[i][n];
            item[i].n_id = 1;
        }
    }
    for (int i = 0; i < N_SESSION; i++) {
        char *text = NULL;
        size_t bytes;
        if (status == SINTER_OK)
            status = sinter_detokenize(model, made[i], N_STEP, 0, &text, &bytes, err);
        if (status == SINTER_OK)
            printf("%s%s\n\n", prompt[i], text);
        sinter_free(host, text);
        sinter_free(host, ids[i]);
        sinter_session_close(item[i].session);
    }
    return status;
}

int main(int argc, char **argv)
{
    sinter_engine_options options = {.n_session = N_SESSION, .n_ctx = 512};
    sinter_host *host = NULL;
    sinter_model *model = NULL;
    sinter_engine *engine = NULL;
    sinter_error err;
    if (argc != 2 + N_SESSION) {
        fprintf(stderr, "usage: batch MODEL.gguf TEXT TEXT\n");
        return 2;
    }
    sinter_status status = sinter_host_create(NULL, &host, &err);
    if (status == SINTER_OK)
        status = sinter_model_open(host, argv[1], NULL, &model, &err);
    if (status == SINTER_OK)
        status = sinter_engine_create(model, &options, &engine, &err);
    if (status == SINTER_OK)
        status = run(host, model, engine, argv + 2, &err);
    if (status != SINTER_OK)
        fprintf(stderr, "batch: %s\n", err.message);
    sinter_engine_free(engine);
    sinter_model_close(model);
    sinter_host_free(host);
    return sinter_status_exit_code(status);
}
