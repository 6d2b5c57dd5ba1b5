/* sinter run: a conversation, one answer, or a plain completion.
 *
 * A conversation is a list of messages, rendered by the model's template before each answer; what
 * the session already holds is not run again. A model without a template is completed plainly: the
 * text so far, the new text, the answer. */
#include "chat.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(member) offsetof(struct run_args, member)
static const struct opt opts[] = {
    OPT_MODEL(struct run_args),
    {"prompt", "p", OPT_TEXT, AT(prompt), "TEXT", NULL, 0, 0,
     "the prompt; else the arguments, else stdin"},
    {"file", "f", OPT_TEXT, AT(file), "FILE", NULL, 0, 0,
     "the prompt from a file, without its last newline; - is stdin"},
    {"system-prompt", "sys", OPT_TEXT, AT(system), "TEXT", NULL, 0, 0,
     "what the model is told before the conversation"},
    {"raw", NULL, OPT_FLAG, AT(raw), NULL, NULL, 0, 0, "complete the text as it is, no template"},
    {"predict", "n", OPT_INT, AT(n), "N", "0", -1, INT32_MAX,
     "most tokens of an answer; 0 or -1 = no limit"},
    OPT_CTX(struct run_args),
    OPT_THREADS,
    OPT_CACHE_TYPES(struct run_args),
    {"seed", "s", OPT_INT, AT(seed), "N", "0", -1, 9007199254740992.0,
     "of the draws; 0 or -1 = another each time"},
    {"temp", NULL, OPT_REAL, AT(temp), "X", "0.8", 0, 100, "temperature; 0 = always the likeliest"},
    {"top-k", NULL, OPT_INT, AT(top_k), "N", "40", 0, INT32_MAX,
     "choose among the N likeliest tokens; 0 = all"},
    {"top-p", NULL, OPT_REAL, AT(top_p), "X", "0.95", 0, 1,
     "of these the likeliest up to a share of X; 1 = all"},
    {"min-p", NULL, OPT_REAL, AT(min_p), "X", "0.05", 0, 1,
     "of these from X times the likeliest's; 0 = all"},
    {"repeat-penalty", NULL, OPT_REAL, AT(penalty), "X", "1", 0, 100,
     "makes the last 64 tokens less likely; 1 = off"},
    {"ignore-eos", NULL, OPT_FLAG, AT(ignore_eos), NULL, NULL, 0, 0,
     "go on where the model would end"},
    {"think", NULL, OPT_WORD, AT(think), "on|off", NULL, 0, 0,
     "think before the answer, or not (if the template can)"},
    {"stop", NULL, OPT_TEXTS, AT(stop), "TEXT", NULL, 0, 0,
     "end before this text; may be repeated"},
    OPT_JSON(struct run_args),
    OPT_END};
#undef AT

static sinter_status make_sampler(struct chat *c)
{
    const struct run_args *a = c->args;
    sinter_sampler_options o = {.size = sizeof o,
                                .temperature = (float)a->temp,
                                .top_k = (int32_t)a->top_k,
                                .top_p = (float)a->top_p,
                                .min_p = (float)a->min_p,
                                .repeat_penalty = (float)a->penalty,
                                .seed = a->seed < 0 ? 0 : (uint64_t)a->seed};
    if (a->temp <= 0 && (a->penalty <= 0 || a->penalty == 1))
        return SINTER_OK; /* greedy: ids are made on the device */
    TRY(sinter_sampler_create(c->t->host, c->info.n_vocab, &o, &c->sampler, &c->t->err));
    if (c->t->verbose > 0 && a->temp > 0)
        note(c->t, "seed %llu", (unsigned long long)sinter_sampler_seed(c->sampler));
    return SINTER_OK;
}

/* What would be lost without a word. */
static sinter_status check_texts(struct chat *c)
{
    const struct run_args *a = c->args;
    size_t n = a->system ? strlen(a->system) : 0, bad = n ? utf8_bad(a->system, n) : 0;
    if (bad < n)
        return FAIL(c->t, DATA, "-sys: the text is not UTF-8 at byte %zu; convert it", bad);
    for (int i = 0; i < a->stop.n; i++)
        if (!*a->stop.v[i])
            return FAIL(c->t, USAGE, "--stop: an empty text ends nothing; give at least one byte");
    return SINTER_OK;
}

static sinter_status open_all(struct chat *c, const char *path)
{
    struct tool *t = c->t;
    const struct run_args *a = c->args;
    sinter_engine_options o = {.n_ctx = (int32_t)a->ctx, .type_k = a->type_k, .type_v = a->type_v};
    uint64_t start = clock_ns();
    TRY(open_model(t, path, false, &c->model));
    c->info.size = sizeof c->info;
    sinter_model_describe(c->model, &c->info);
    c->chat = c->info.has_template && !a->raw;
    if (a->system && !c->chat)
        return FAIL(t, USAGE, "a system prompt (-sys) needs a chat template%s",
                    a->raw ? "; leave --raw out" : ", and this model has none");
    if (!c->info.has_template && !a->raw)
        TRY(warn(t, "the model has no chat template: the text is completed plainly (as with "
                    "--raw)"));
    TRY(open_engine(t, c->model, &o, &c->engine));
    TRY(sinter_session_create(c->engine, &c->session, &t->err));
    TRY(make_sampler(c));
    if (t->verbose > 0)
        note(t, "loaded in %.2f s, context %d", (double)(clock_ns() - start) * 1e-9,
             sinter_engine_n_ctx(c->engine));
    return chat_start(c);
}

static sinter_status note_line(struct tool *t, struct text *line)
{
    if (line->failed)
        return FAIL(t, MEMORY, "out of memory");
    fwrite(line->v, 1, line->n, stderr);
    return SINTER_OK;
}

static bool add_to_text(void *ctx, const char *text, size_t bytes)
{
    text_add(ctx, text, bytes);
    return true;
}

/* The line that says whether anything fell back. */
static sinter_status summary(struct chat *c)
{
    struct text line = {0};
    sinter_status status = sinter_engine_report(c->engine, SINTER_REPORT_SUMMARY, false,
                                                add_to_text, &line, &c->t->err);
    if (status == SINTER_OK)
        status = note_line(c->t, &line);
    text_free(&line);
    return status;
}

/* PROMPT may be several words. */
static sinter_status find_prompt(struct chat *c, struct text *prompt, bool *given)
{
    struct tool *t = c->t;
    if (!t->n_arg) {
        TRY(prompt_text(t, c->args->prompt, c->args->file, prompt, given));
        if (*given && !c->args->prompt && prompt->n && prompt->v[prompt->n - 1] == '\n')
            prompt->v[--prompt->n] = 0; /* an editor's or echo's, not the writer's */
        return SINTER_OK;
    }
    if (c->args->prompt || c->args->file)
        return FAIL(t, USAGE, "'%s' is one prompt too many beside %s", t->arg[0],
                    c->args->prompt ? "-p" : "-f");
    for (int i = 0; i < t->n_arg; i++) {
        text_puts(prompt, i ? " " : "");
        text_puts(prompt, t->arg[i]);
    }
    *given = true;
    return prompt->failed ? FAIL(t, MEMORY, "out of memory") : SINTER_OK;
}

static sinter_status once(struct chat *c, const struct text *prompt)
{
    bool interrupted;
    sinter_status status = chat_answer(c, prompt->v, prompt->n, &interrupted);
    if (status == SINTER_OK && interrupted)
        return FAIL(c->t, CANCELLED, "interrupted");
    return status;
}

static sinter_status run(struct tool *t)
{
    struct chat c = {.t = t, .args = t->args};
    struct text prompt = {0};
    const char *path;
    bool given = false;
    sinter_status status;
    TRY_OUT(model_path(t, c.args->model, &path));
    TRY_OUT(check_texts(&c));
    TRY_OUT(find_prompt(&c, &prompt, &given));
    TRY_OUT(open_all(&c, path));
    TRY_OUT(given ? once(&c, &prompt) : chat_talk(&c));
    if (t->verbose > 0)
        TRY_OUT(summary(&c));
out:
    text_free(&prompt);
    chat_end(&c);
    sinter_sampler_free(c.sampler);
    sinter_session_close(c.session);
    sinter_engine_free(c.engine);
    sinter_model_close(c.model);
    return status;
}

const struct verb verb_run = {
    .usage = "MODEL [PROMPT]",
    .examples = "  sinter run model.gguf                        a conversation; /exit ends it\n"
                "  sinter run model.gguf \"Why is the sky blue?\" --temp 0\n"
                "  sinter run model.gguf -sys \"Be brief.\" <question.txt\n"
                "  sinter run model.gguf --raw -n 40 \"Once upon a time\"\n",
    .opt = opts,
    .args_bytes = sizeof(struct run_args),
    .run = run};
