/* sinter tokenize: text to ids, one line each, or as one JSON list. */
#include "tool.h"

#include <string.h>

struct tokenize_args {
    const char *model, *prompt, *file;
    bool ids, no_bos, no_parse_special, json;
};
#define AT(member) offsetof(struct tokenize_args, member)
static const struct opt opts[] = {
    OPT_MODEL(struct tokenize_args),
    {"prompt", "p", OPT_TEXT, AT(prompt), "TEXT", NULL, 0, 0, "the text; else -f or stdin"},
    {"file", "f", OPT_TEXT, AT(file), "FILE", NULL, 0, 0, "read the text from a file; - is stdin"},
    {"ids", NULL, OPT_FLAG, AT(ids), NULL, NULL, 0, 0, "print the ids only: [1, 2, 3]"},
    {"no-bos", NULL, OPT_FLAG, AT(no_bos), NULL, NULL, 0, 0,
     "without the tokens that the model wants around a text"},
    {"no-parse-special", NULL, OPT_FLAG, AT(no_parse_special), NULL, NULL, 0, 0,
     "take spelt-out control tokens as text"},
    OPT_JSON(struct tokenize_args),
    OPT_END};
#undef AT

static void print_ids(struct tool *t, const int32_t *id, size_t n)
{
    out_write(t, "[", 1);
    for (size_t i = 0; i < n; i++)
        out_printf(t, i ? ", %d" : "%d", id[i]);
    out_printf(t, "]\n");
}

/* The bytes of one token. Decoding starts a text, which may cost the first token its blank; the
 * second of two equal ones keeps it and is the longer half. */
static sinter_status piece(struct tool *t, const sinter_model *model, int32_t id, struct text *out)
{
    const int32_t pair[2] = {id, id};
    char *text;
    size_t n;
    TRY(sinter_detokenize(model, pair, 2, SINTER_TEXT_SPECIAL, &text, &n, &t->err));
    out->n = 0;
    text_add(out, text + n / 2, n - n / 2);
    sinter_free(t->host, text);
    return out->failed ? FAIL(t, MEMORY, "out of memory") : SINTER_OK;
}

static sinter_status print_pieces(struct tool *t, const sinter_model *model, const int32_t *id,
                                  size_t n)
{
    const struct tokenize_args *a = t->args;
    struct text text = {0};
    sinter_status status = SINTER_OK;
    if (a->json)
        out_write(t, "[", 1);
    for (size_t i = 0; i < n; i++) {
        TRY_OUT(piece(t, model, id[i], &text));
        if (a->json)
            out_printf(t, "%s{\"id\":%d,\"text\":", i ? ",\n " : "", id[i]);
        else
            out_printf(t, "%8d  ", id[i]);
        out_json(t, text.v, text.n);
        out_printf(t, a->json ? "}" : "\n");
    }
    if (a->json)
        out_printf(t, "]\n");
out:
    text_free(&text);
    return status;
}

static sinter_status print(struct tool *t, const sinter_model *model, const struct text *text)
{
    const struct tokenize_args *a = t->args;
    unsigned flags = (a->no_bos ? 0u : SINTER_TOKENIZE_SPECIAL) |
                     (a->no_parse_special ? 0u : SINTER_TOKENIZE_PARSE_SPECIAL);
    sinter_status status = SINTER_OK;
    int32_t *id;
    size_t n;
    TRY(sinter_tokenize(model, text->v, text->n, flags, &id, &n, &t->err));
    if (a->ids)
        print_ids(t, id, n);
    else
        status = print_pieces(t, model, id, n);
    sinter_free(t->host, id);
    return status;
}

static sinter_status run(struct tool *t)
{
    const struct tokenize_args *a = t->args;
    sinter_model *model = NULL;
    struct text text = {0};
    const char *path;
    bool given;
    sinter_status status;
    TRY_OUT(model_path(t, a->model, &path));
    TRY_OUT(no_more_args(t));
    TRY_OUT(prompt_text(t, a->prompt, a->file, &text, &given));
    if (!given)
        status = FAIL(t, USAGE, "give a text: -p TEXT, -f FILE, or on standard input");
    if (given)
        TRY_OUT(open_model(t, path, true, &model));
    if (given)
        status = print(t, model, &text);
out:
    sinter_model_close(model);
    text_free(&text);
    return status;
}

const struct verb verb_tokenize = {.usage = "MODEL",
                                   .examples = "  sinter tokenize model.gguf -p \"Hello world\"\n"
                                               "  sinter tokenize model.gguf -f text.txt --ids\n",
                                   .opt = opts,
                                   .args_bytes = sizeof(struct tokenize_args),
                                   .run = run};
