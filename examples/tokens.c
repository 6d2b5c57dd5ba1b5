/* Text to tokens and back: sinter as a tokenizer. No weights are read, so a file that holds only a
 * vocabulary will do.
 *
 *     cc tokens.c $(pkg-config --cflags --libs sinter) -o tokens
 *     ./tokens MODEL.gguf "Hello, world"                                                        */
#include <sinter.h>

#include <stdio.h>
#include <string.h>

/* One line a token: its id and its own text. */
static sinter_status print_tokens(sinter_host *host, const sinter_model *model, const int32_t *ids,
                                  size_t n_id, sinter_error *err)
{
    for (size_t i = 0; i < n_id; i++) {
        char *piece;
        size_t bytes;
        sinter_status status =
            sinter_detokenize(model, &ids[i], 1, SINTER_TEXT_SPECIAL, &piece, &bytes, err);
        if (status != SINTER_OK)
            return status;
        printf("%8d  \"%s\"\n", ids[i], piece);
        sinter_free(host, piece);
    }
    return SINTER_OK;
}

static sinter_status there_and_back(sinter_host *host, const sinter_model *model, const char *text,
                                    sinter_error *err)
{
    int32_t *ids = NULL;
    char *back = NULL;
    size_t n_id, bytes;
    sinter_status status = sinter_tokenize(model, text, strlen(text), 0, &ids, &n_id, err);
    if (status == SINTER_OK)
        status = print_tokens(host, model, ids, n_id, err);
    if (status == SINTER_OK)
        status = sinter_detokenize(model, ids, n_id, 0, &back, &bytes, err);
    if (status == SINTER_OK)
        printf("%zu tokens, %zu bytes back: %s\n", n_id, bytes,
               bytes == strlen(text) && !memcmp(back, text, bytes) ? "the same" : "not the same");
    sinter_free(host, back);
    sinter_free(host, ids);
    return status;
}

int main(int argc, char **argv)
{
    sinter_host *host = NULL;
    sinter_model *model = NULL;
    sinter_model_options options = {.vocab_only = true};
    sinter_error err;
    if (argc != 3) {
        fprintf(stderr, "usage: tokens MODEL.gguf TEXT\n");
        return 2;
    }
    sinter_status status = sinter_host_create(NULL, &host, &err);
    if (status == SINTER_OK)
        status = sinter_model_open(host, argv[1], &options, &model, &err);
    if (status == SINTER_OK)
        status = there_and_back(host, model, argv[2], &err);
    if (status != SINTER_OK)
        fprintf(stderr, "tokens: %s\n", err.message);
    sinter_model_close(model);
    sinter_host_free(host);
    return sinter_status_exit_code(status);
}
