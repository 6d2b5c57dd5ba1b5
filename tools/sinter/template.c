/* sinter template: a conversation as the text that the model gets. */
#include "tool.h"

#ifdef HAVE_jansson
#include <jansson.h>
#endif
#include <string.h>

struct template_args {
    const char *model, *file, *messages, *tools, *bos, *eos, *think;
    int64_t now;
    bool no_generation_prompt;
};
#define AT(member) offsetof(struct template_args, member)
static const struct opt opts[] = {
    OPT_MODEL(struct template_args),
    {"template", "t", OPT_TEXT, AT(file), "FILE", NULL, 0, 0,
     "the template, in place of the model's"},
    {"messages", NULL, OPT_TEXT, AT(messages), "FILE", "-", 0, 0,
     "JSON list of {\"role\", \"content\"}; - is stdin"},
    {"tools", NULL, OPT_TEXT, AT(tools), "FILE", NULL, 0, 0, "JSON list of tools"},
    {"bos", NULL, OPT_TEXT, AT(bos), "TEXT", NULL, 0, 0, "bos_token, in place of the model's"},
    {"eos", NULL, OPT_TEXT, AT(eos), "TEXT", NULL, 0, 0, "eos_token, in place of the model's"},
    {"now", NULL, OPT_INT, AT(now), "SECONDS", "0", 0, 253402300799.0,
     "since 1970, for strftime_now; 0 = the clock"},
    {"think", NULL, OPT_WORD, AT(think), "on|off", NULL, 0, 0, "the variable enable_thinking"},
    {"no-generation-prompt", NULL, OPT_FLAG, AT(no_generation_prompt), NULL, NULL, 0, 0,
     "without the beginning of an answer"},
    OPT_END};
#undef AT

/* One JSON value from a file; malformed JSON is told with its place in that file. */
static sinter_status add_json(struct tool *t, const char *path, const char *what, struct text *vars)
{
    struct text text = {0};
    sinter_status status = read_file(t, path, &text);
    path = strcmp(path, "-") ? path : "standard input";
#ifdef HAVE_jansson
    json_error_t why;
    json_t *json = status == SINTER_OK ? json_loadb(text.v, text.n, JSON_DECODE_ANY, &why) : NULL;
    if (status == SINTER_OK && !json)
        status = FAIL(t, DATA, "%s: line %d, column %d: %s; it must be JSON", path, why.line,
                      why.column, why.text);
    json_decref(json);
#endif
    const char *first = text.v ? text.v + strspn(text.v, " \t\r\n") : "";
    if (status == SINTER_OK && *first != '[')
        status = FAIL(t, DATA, "%s: %s must be a JSON list", path, what);
    text_puts(vars, ",\"");
    text_puts(vars, what);
    text_puts(vars, "\":");
    text_add(vars, text.v, text.n);
    text_free(&text);
    return status;
}

/* "bos_token" as given, else as the model spells it. */
static sinter_status add_token(struct tool *t, const sinter_model *model, const char *name,
                               const char *given, int32_t id, struct text *vars)
{
    char *text = NULL;
    size_t n;
    if (!given && (!model || id < 0))
        return SINTER_OK;
    if (!given)
        TRY(sinter_detokenize(model, &id, 1, SINTER_TEXT_SPECIAL, &text, &n, &t->err));
    text_puts(vars, ",\"");
    text_puts(vars, name);
    text_puts(vars, "\":");
    text_json(vars, given ? given : text, given ? strlen(given) : n);
    sinter_free(t->host, text);
    return SINTER_OK;
}

static sinter_status make_vars(struct tool *t, const sinter_model *model, struct text *vars)
{
    const struct template_args *a = t->args;
    sinter_model_info info = {.size = sizeof info, .bos = -1, .eos = -1};
    if (model)
        sinter_model_describe(model, &info);
    text_puts(vars, "{\"add_generation_prompt\":");
    text_puts(vars, a->no_generation_prompt ? "false" : "true");
    if (a->think)
        text_puts(vars, !strcmp(a->think, "on") ? ",\"enable_thinking\":true"
                                                : ",\"enable_thinking\":false");
    TRY(add_token(t, model, "bos_token", a->bos, info.bos, vars));
    TRY(add_token(t, model, "eos_token", a->eos, info.eos, vars));
    TRY(add_json(t, a->messages, "messages", vars));
    if (a->tools)
        TRY(add_json(t, a->tools, "tools", vars));
    else
        text_puts(vars, ",\"tools\":null");
    text_puts(vars, "}");
    return vars->failed ? FAIL(t, MEMORY, "out of memory") : SINTER_OK;
}

static sinter_status render(struct tool *t, const sinter_model *model, const char *source,
                            const char *vars)
{
    const struct template_args *a = t->args;
    char *text;
    size_t n;
    sinter_status status =
        sinter_template_render(t->host, model, source, vars, a->now, &text, &n, &t->err);
    if (status == SINTER_OK) {
        out_write(t, text, n);
        sinter_free(t->host, text);
    }
    return status;
}

static sinter_status run(struct tool *t)
{
    const struct template_args *a = t->args;
    struct text source = {0}, vars = {0};
    sinter_model *model = NULL;
    const char *path;
    sinter_status status = SINTER_OK;
    if (a->file)
        TRY_OUT(read_file(t, a->file, &source));
    if (source.v && strlen(source.v) != source.n)
        TRY_OUT(FAIL(t, DATA, "%s: holds a NUL byte; it must be a text file", a->file));
    if (!a->file || a->model || t->n_arg) {
        TRY_OUT(model_path(t, a->model, &path));
        TRY_OUT(open_model(t, path, true, &model));
    }
    TRY_OUT(no_more_args(t));
    TRY_OUT(make_vars(t, model, &vars));
    status = render(t, model, a->file ? source.v : NULL, vars.v);
out:
    sinter_model_close(model);
    text_free(&source);
    text_free(&vars);
    return status;
}

const struct verb verb_template = {
    .usage = "MODEL | -t FILE",
    .examples =
        "  echo '[{\"role\": \"user\", \"content\": \"Hi\"}]' | sinter template model.gguf\n"
        "  sinter template -t chat.jinja --messages talk.json --bos \"<s>\"\n",
    .opt = opts,
    .args_bytes = sizeof(struct template_args),
    .run = run};
