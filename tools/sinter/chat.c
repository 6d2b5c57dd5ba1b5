/* Messages to prompt, prompt to answer, and the loop of a terminal. */
#include "chat.h"

#include <stdlib.h>
#include <string.h>

/* ---- What was said ----------------------------------------------------------------------------
 */

static void add_message(struct text *to, const char *role, const char *text, size_t n)
{
    if (to->n)
        text_puts(to, ",");
    text_puts(to, "{\"role\":\"");
    text_puts(to, role);
    text_puts(to, "\",\"content\":");
    text_json(to, text, n);
    text_puts(to, "}");
}

/* The spelling of a control token as JSON, "" where there is none. */
static sinter_status token_json(struct chat *c, int32_t id, struct text *out)
{
    char *text;
    size_t n;
    if (id < 0) {
        text_puts(out, "\"\"");
        return SINTER_OK;
    }
    TRY(sinter_detokenize(c->model, &id, 1, SINTER_TEXT_SPECIAL, &text, &n, &c->t->err));
    text_json(out, text, n);
    sinter_free(c->t->host, text);
    return SINTER_OK;
}

void chat_clear(struct chat *c)
{
    text_free(&c->messages);
    if (c->chat && c->args->system)
        add_message(&c->messages, "system", c->args->system, strlen(c->args->system));
}

/* The prompt that the messages make; think: "on", "off" or NULL for the template's own way. */
static sinter_status render(struct chat *c, const struct text *messages, const char *think,
                            char **text, size_t *n)
{
    struct text vars = {0};
    sinter_status status;
    text_puts(&vars, "{\"messages\":[");
    text_puts(&vars, messages->n ? messages->v : "");
    text_puts(&vars, "],\"tools\":null,\"add_generation_prompt\":true,\"bos_token\":");
    text_puts(&vars, c->bos.v);
    text_puts(&vars, ",\"eos_token\":");
    text_puts(&vars, c->eos.v);
    if (think)
        text_puts(&vars, !strcmp(think, "on") ? ",\"enable_thinking\":true"
                                              : ",\"enable_thinking\":false");
    text_puts(&vars, "}");
    if (vars.failed)
        status = FAIL(c->t, MEMORY, "out of memory");
    else
        status = sinter_template_render(c->t->host, c->model, NULL, vars.v, 0, text, n, &c->t->err);
    text_free(&vars);
    return status;
}

/* --think where the template does not ask for it would be lost without a word. */
static sinter_status check_think(struct chat *c)
{
    struct text probe = {0};
    char *on = NULL, *off = NULL;
    size_t n_on, n_off;
    sinter_status status;
    add_message(&probe, "user", "x", 1);
    TRY_OUT(render(c, &probe, "on", &on, &n_on));
    TRY_OUT(render(c, &probe, "off", &off, &n_off));
    if (n_on == n_off && !memcmp(on, off, n_on))
        status = warn(c->t, "the template knows no thinking: --think has no effect");
out:
    text_free(&probe);
    sinter_free(c->t->host, on);
    sinter_free(c->t->host, off);
    return status;
}

sinter_status chat_start(struct chat *c)
{
    TRY(token_json(c, c->info.bos, &c->bos));
    TRY(token_json(c, c->info.eos, &c->eos));
    if (c->bos.failed || c->eos.failed)
        return FAIL(c->t, MEMORY, "out of memory");
    chat_clear(c);
    if (c->args->think && c->chat)
        return check_think(c);
    return c->args->think ? warn(c->t, "without a chat template --think has no effect") : SINTER_OK;
}

void chat_end(struct chat *c)
{
    text_free(&c->messages);
    text_free(&c->bos);
    text_free(&c->eos);
}

/* ---- Answers ----------------------------------------------------------------------------------
 */

struct answer {
    struct chat *c;
    struct bar bar;
    struct text text;
};

/* Each piece is shown at once. */
static bool write_piece(void *ctx, const char *text, size_t bytes)
{
    struct answer *a = ctx;
    bar_end(&a->bar);
    text_add(&a->text, text, bytes);
    if (interrupt_count() || a->text.failed)
        return false;
    return a->c->args->json || (out_write(a->c->t, text, bytes) && out_flush(a->c->t));
}

static const char *stop_name(sinter_stop stop)
{
    static const char *const name[] = {[SINTER_STOP_END] = "end",
                                       [SINTER_STOP_LENGTH] = "length",
                                       [SINTER_STOP_TEXT] = "stop text",
                                       [SINTER_STOP_WRITE] = "interrupted",
                                       [SINTER_STOP_CANCELLED] = "interrupted",
                                       [SINTER_STOP_CONTEXT] = "context"};
    return name[stop];
}

static double per_second(int32_t n, uint64_t ns)
{
    return ns ? (double)n * 1e9 / (double)ns : 0;
}

static void print_json(struct answer *a, const sinter_generate_result *r)
{
    struct tool *t = a->c->t;
    out_printf(t, "{\"text\":");
    out_json(t, a->text.v ? a->text.v : "", a->text.n);
    out_printf(t,
               ",\"stop\":\"%s\",\"n_prompt\":%d,\"n_cached\":%d,\"n_made\":%d,"
               "\"prompt_ms\":%.3f,\"made_ms\":%.3f}\n",
               stop_name(r->stop), r->n_prompt, r->n_cached, r->n_made, (double)r->prompt_ns * 1e-6,
               (double)r->made_ns * 1e-6);
}

static void tell(struct answer *a, const sinter_generate_result *r)
{
    struct tool *t = a->c->t;
    int32_t n_tok = sinter_session_n_tok(a->c->session); /* less than the prompt: interrupted */
    int32_t fresh = (n_tok < r->n_prompt ? n_tok : r->n_prompt) - r->n_cached;
    if (t->verbose > 0) {
        note(t, "prompt: cached %d, new %d, %.3f s, %.1f t/s", r->n_cached, fresh,
             (double)r->prompt_ns * 1e-9, per_second(fresh, r->prompt_ns));
        note(t, "answer: %d tokens, %.3f s, %.1f t/s, ended by: %s", r->n_made,
             (double)r->made_ns * 1e-9, per_second(r->n_made, r->made_ns), stop_name(r->stop));
    }
}

/* Runs prompt[n]; the answer's text is left in a->text. */
static sinter_status generate(struct answer *a, const char *prompt, size_t n,
                              sinter_generate_result *r)
{
    struct chat *c = a->c;
    struct tool *t = c->t;
    sinter_generate_options o = {.size = sizeof o,
                                 .n_max = c->args->n > 0 ? (int32_t)c->args->n : 0,
                                 .ignore_eos = c->args->ignore_eos,
                                 .stop = c->args->stop.v,
                                 .n_stop = c->args->stop.n,
                                 .tokenize = SINTER_TOKENIZE_PARSE_SPECIAL,
                                 .sampler = c->sampler,
                                 .write = write_piece,
                                 .write_ctx = a,
                                 .progress = bar_update,
                                 .progress_ctx = &a->bar};
    if (!c->chat) /* a template writes bos itself */
        o.tokenize |= SINTER_TOKENIZE_SPECIAL;
    r->size = sizeof *r;
    bar_start(&a->bar, t, "prompt");
    interrupt_watch(c->session);
    if (interrupt_count()) /* it came before the session could be told */
        sinter_session_cancel(c->session);
    sinter_status status = sinter_generate(c->session, prompt, n, &o, r, &t->err);
    if (status == SINTER_OK && r->stop == SINTER_STOP_CANCELLED && !interrupt_count())
        status =
            sinter_generate(c->session, prompt, n, &o, r, &t->err); /* that was the last one's */
    interrupt_watch(NULL);
    bar_end(&a->bar);
    if (status == SINTER_OK && a->text.failed)
        return FAIL(t, MEMORY, "out of memory for the answer");
    return status;
}

static void finish(struct answer *a, const sinter_generate_result *r)
{
    struct tool *t = a->c->t;
    if (a->c->args->json)
        print_json(a, r);
    else if (!a->text.n || a->text.v[a->text.n - 1] != '\n')
        out_write(t, "\n", 1);
    out_flush(t);
    tell(a, r);
}

/* The answer stands as far as it came, and is an error: it is no answer that would have ended so.
 */
static sinter_status cut(const struct chat *c, const sinter_generate_result *r)
{
    return FAIL(
        c->t, CONTEXT,
        "the answer was cut after %d tokens: with the prompt's %d the context of %d is full "
        "(the last one takes no room); use a larger one (-c)",
        r->n_made, r->n_prompt, sinter_engine_n_ctx(c->engine));
}

/* What is said next: the messages with the user's, or the text so far with the new one. */
static sinter_status next_prompt(struct chat *c, const char *text, size_t n, struct text *said,
                                 char **prompt, size_t *n_prompt)
{
    size_t bad = utf8_bad(text, n);
    if (c->chat && bad < n)
        return FAIL(c->t, DATA, "the prompt is not UTF-8 at byte %zu; convert it, or use --raw",
                    bad);
    text_add(said, c->messages.v ? c->messages.v : "", c->messages.n);
    if (c->chat)
        add_message(said, "user", text, n);
    else
        text_add(said, text, n);
    if (said->failed)
        return FAIL(c->t, MEMORY, "out of memory for the prompt");
    *prompt = said->v;
    *n_prompt = said->n;
    return c->chat ? render(c, said, c->args->think, prompt, n_prompt) : SINTER_OK;
}

sinter_status chat_answer(struct chat *c, const char *text, size_t n, bool *interrupted)
{
    struct answer a = {.c = c};
    struct text said = {0};
    sinter_generate_result r = {0};
    char *prompt = NULL;
    size_t n_prompt;
    sinter_status status;
    TRY_OUT(next_prompt(c, text, n, &said, &prompt, &n_prompt));
    TRY_OUT(generate(&a, prompt, n_prompt, &r));
    finish(&a, &r);
    *interrupted = interrupt_count() > 0;
    if (c->chat)
        add_message(&said, "assistant", a.text.v ? a.text.v : "", a.text.n);
    else
        text_add(&said, a.text.v, a.text.n);
    text_free(&c->messages);
    c->messages = said;
    said = (struct text){0};
    if (c->t->out_errno || c->messages.failed)
        status = FAIL(c->t, IO, "the answer could not be written");
    else if (r.stop == SINTER_STOP_CONTEXT)
        status = cut(c, &r);
out:
    if (c->chat)
        sinter_free(c->t->host, prompt);
    text_free(&said);
    text_free(&a.text);
    return status;
}

/* ---- The terminal ------------------------------------------------------------------------------
 */

static const char help_text[] =
    "  /clear   forget what was said     /exit   end (or Ctrl-D)\n"
    "  Ctrl-C stops an answer. A \\ at the end of a line goes on in the\n"
    "  next one; text between two lines of \"\"\" may have many lines.\n";

/* Does the line end in an odd number of backslashes? */
static bool goes_on(const struct text *line)
{
    size_t n = 0;
    while (n < line->n && line->v[line->n - 1 - n] == '\\')
        n++;
    return n % 2 == 1;
}

/* After """ up to the line that ends with """. */
static bool read_block(struct lines *l, struct text *text, bool *interrupted)
{
    struct text line = {0};
    bool more = true, closed = false;
    memmove(text->v, text->v + 3, text->n - 2);
    text->n -= 3;
    closed = text->n >= 3 && !strcmp(text->v + text->n - 3, "\"\"\"");
    while (!closed && more) {
        more = lines_read(l, "... ", &line, interrupted) && !*interrupted;
        if (!more)
            break;
        if (text->n)
            text_puts(text, "\n");
        text_add(text, line.v, line.n);
        closed = text->n >= 3 && !strcmp(text->v + text->n - 3, "\"\"\"");
    }
    if (closed)
        text->v[text->n -= 3] = 0;
    text_free(&line);
    return more;
}

/* Ctrl-D inside a text of several lines drops it, in words, and ends nothing. */
static bool drop_unfinished(struct lines *l, struct text *text, bool is_block)
{
    if (text->failed)
        return false;
    fprintf(stderr, "(not sent: the text was not finished; %s)\n",
            is_block ? "a line that ends with \"\"\" ends it"
                     : "a line without \\ at its end ends it");
    if (text->n)
        lines_remember(l, text->v);
    text->n = 0;
    return true;
}

/* One message, of one line or more; of none where it was not finished. */
static bool read_message(struct lines *l, struct text *text, bool *interrupted)
{
    struct text line = {0};
    bool more = lines_read(l, ">>> ", text, interrupted), is_block = false;
    const bool any = more;
    if (more && !*interrupted && text->n >= 3 && !memcmp(text->v, "\"\"\"", 3)) {
        is_block = true;
        more = read_block(l, text, interrupted);
    }
    while (more && !*interrupted && goes_on(text)) {
        text->v[text->n - 1] = '\n';
        more = lines_read(l, "... ", &line, interrupted);
        if (more)
            text_add(text, line.v, line.n);
    }
    text_free(&line);
    if (any && !more && !*interrupted)
        return drop_unfinished(l, text, is_block);
    return more;
}

/* An error ends one answer, not the conversation; but for what no other answer can cure. */
static sinter_status talk_once(struct chat *c, const struct text *text)
{
    bool interrupted;
    sinter_status status = chat_answer(c, text->v, text->n, &interrupted);
    if (status == SINTER_E_CONTEXT || status == SINTER_E_DATA || status == SINTER_E_NUMERIC) {
        fprintf(stderr, "sinter: %s; /clear starts anew\n", c->t->err.message);
        c->t->err.message[0] = 0;
        return SINTER_OK;
    }
    return status;
}

static sinter_status talk(struct chat *c, struct lines *l, struct text *text)
{
    int n_interrupt = 0;
    for (;;) {
        bool interrupted = false;
        interrupt_clear();
        text->n = 0;
        if (!read_message(l, text, &interrupted) && !interrupted)
            return text->failed ? FAIL(c->t, MEMORY, "out of memory for the text") : SINTER_OK;
        if (interrupted && ++n_interrupt > 1)
            return FAIL(c->t, CANCELLED, "interrupted");
        if (interrupted)
            fprintf(stderr, "(Ctrl-C again or /exit ends)\n");
        if (interrupted || !text->n)
            continue;
        n_interrupt = 0;
        lines_remember(l, text->v);
        if (!strcmp(text->v, "/exit") || !strcmp(text->v, "/quit") || !strcmp(text->v, "/bye"))
            return SINTER_OK;
        if (!strcmp(text->v, "/clear"))
            chat_clear(c);
        else if (!strcmp(text->v, "/help") || !strcmp(text->v, "/?"))
            fputs(help_text, stderr);
        else if (text->v[0] == '/' && !strpbrk(text->v + 1, "/ \n"))
            fprintf(stderr, "no command %s; /help lists them\n", text->v);
        else
            TRY(talk_once(c, text));
    }
}

sinter_status chat_talk(struct chat *c)
{
    struct lines *l = lines_open();
    struct text text = {0};
    if (!l)
        return FAIL(c->t, MEMORY, "out of memory");
    if (c->t->verbose >= 0) {
        char name[200];
        snprintf(name, sizeof name, "%s", *c->info.name ? c->info.name : c->info.arch);
        clean_line(name);
        fprintf(stderr, "%s. /help lists the commands.\n", name);
    }
    interrupt_watch(NULL);
    sinter_status status = talk(c, l, &text);
    text_free(&text);
    lines_close(l);
    return status;
}
