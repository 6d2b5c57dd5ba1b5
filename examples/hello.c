/* Prompt in, text out: hello MODEL.gguf PROMPT
 * cc hello.c $(pkg-config --cflags --libs sinter) -o hello */
#include <sinter.h>

#include <stdio.h>
#include <string.h>

static bool show(void *ctx, const char *text, size_t bytes)
{
    (void)ctx;
    return fwrite(text, 1, bytes, stdout) == bytes && fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    sinter_generate_options options = {
        .n_max = 64, .tokenize = SINTER_TOKENIZE_SPECIAL, .write = show};
    sinter_host *host = NULL;
    sinter_model *model = NULL;
    sinter_engine *engine = NULL;
    sinter_session *session = NULL;
    sinter_error err = {.message = ""};
    if (argc != 3) {
        fprintf(stderr, "usage: hello MODEL.gguf PROMPT\n");
        return 2;
    }
    const char *prompt = argv[2];
    sinter_status status = sinter_host_create(NULL, &host, &err);
    if (status == SINTER_OK)
        status = sinter_model_open(host, argv[1], NULL, &model, &err);
    if (status == SINTER_OK)
        status = sinter_engine_create(model, NULL, &engine, &err);
    if (status == SINTER_OK)
        status = sinter_session_create(engine, &session, &err);
    if (status == SINTER_OK)
        status = sinter_generate(session, prompt, strlen(prompt), &options, NULL, &err);
    printf("\n");
    if (status != SINTER_OK)
        fprintf(stderr, "hello: %s\n", err.message);
    sinter_session_close(session);
    sinter_engine_free(engine);
    sinter_model_close(model);
    sinter_host_free(host);
    return sinter_status_exit_code(status);
}
