/* sinter_generate: a prompt's text to an answer's text, on what the session already holds. */
#include "run/run.h"

struct answer {
    sinter_session *s;
    sinter_engine *e;
    const sinter_generate_options *o;
    sinter_generate_result *r;
    sinter_detok *detok;
    struct text_buf held; /* text that may yet turn out to begin a stop text */
    bool done;
};

/* Tokens of the prompt that the session already holds; at least one is left to run. */
static sinter_status reuse(struct answer *a, const int32_t *id, int32_t n, sinter_error *err)
{
    int32_t have = sinter_session_n_tok(a->s), same = 0;
    while (same < have && same < n - 1 && a->s->tok[same] == id[same])
        same++;
    sinter_error why;
    if (same < have && sinter_session_trim(a->s, same, &why) != SINTER_OK) {
        host_log(a->e->host, SINTER_LOG_INFO, "the prompt is run from its start: %s", why.message);
        same = 0;
        TRY(sinter_session_trim(a->s, 0, err));
    }
    a->r->n_cached = same;
    return SINTER_OK;
}

static sinter_status next_id(struct answer *a, const sinter_item *it, int32_t *id,
                             sinter_error *err)
{
    if (it->status != SINTER_OK)
        return FAIL(err, NUMERIC,
                    "the logits hold a value that is not a number; run `sinter "
                    "verify` on the model");
    if (!a->o->sampler) {
        *id = it->argmax[0];
        return SINTER_OK;
    }
    TRY(sinter_sampler_pick(a->o->sampler, it->logits, id, err));
    sinter_sampler_accept(a->o->sampler, *id);
    return SINTER_OK;
}

/* Runs n ids; picks the next one (may be *ids) while this thread has the engine, unless next is
 * NULL. */
static sinter_status step(struct answer *a, const int32_t *ids, int32_t n, int32_t *next,
                          sinter_error *err)
{
    sinter_item it = {.session = a->s,
                      .ids = ids,
                      .n_id = n,
                      .want = next ? SINTER_WANT_LAST : SINTER_WANT_NONE,
                      .want_argmax = !a->o->sampler};
    engine_take(a->e);
    sinter_status status = engine_step(a->e, &it, 1, err);
    if (status == SINTER_OK && next)
        status = next_id(a, &it, next, err);
    engine_give(a->e);
    return status;
}

static sinter_status prefill(struct answer *a, const int32_t *id, int32_t n, int32_t *next,
                             sinter_error *err)
{
    TRY(reuse(a, id, n, err));
    for (int32_t at = a->r->n_cached; at < n;) {
        int32_t left = n - at, take = left < a->e->o.n_chunk ? left : a->e->o.n_chunk;
        TRY(step(a, id + at, take, take == left ? next : NULL, err));
        at += take;
        if (a->o->progress && !a->o->progress(a->o->progress_ctx, (uint64_t)at, (uint64_t)n))
            return FAIL(err, CANCELLED, "the prompt was given up after %d of %d tokens", at, n);
    }
    return SINTER_OK;
}

/* ---- Stop texts -------------------------------------------------------------------------------
 */

/* Length of the longest end of text that is a proper beginning of stop. */
static size_t overlap(const char *text, size_t n, const char *stop)
{
    size_t n_stop = strlen(stop), most = n_stop ? n_stop - 1 : 0;
    for (size_t k = most < n ? most : n; k > 0; k--)
        if (memcmp(text + n - k, stop, k) == 0)
            return k;
    return 0;
}

static const char *find_stop(const struct answer *a)
{
    const char *first = NULL;
    for (int32_t i = 0; i < a->o->n_stop && a->held.text; i++) {
        size_t n = strlen(a->o->stop[i]);
        const char *at = n ? memmem(a->held.text, a->held.bytes, a->o->stop[i], n) : NULL;
        if (at && (!first || at < first))
            first = at;
    }
    return first;
}

static bool write_out(struct answer *a, size_t n)
{
    bool ok = !n || !a->o->write || a->o->write(a->o->write_ctx, a->held.text, n);
    if (n) {
        memmove(a->held.text, a->held.text + n, a->held.bytes - n);
        a->held.bytes -= n;
    }
    return ok;
}

/* Takes new text; writes what no stop text can claim any more. */
static sinter_status take_text(struct answer *a, const char *text, size_t bytes, bool end,
                               sinter_error *err)
{
    size_t keep = 0;
    text_buf_add(&a->held, text, bytes);
    TRY(text_buf_end(&a->held, err));
    const char *stop = find_stop(a);
    if (stop) {
        a->r->stop = SINTER_STOP_TEXT;
        a->done = true;
        if (!write_out(a, (size_t)(stop - a->held.text)))
            a->r->stop = SINTER_STOP_WRITE;
        return SINTER_OK;
    }
    for (int32_t i = 0; i < a->o->n_stop && !end && a->held.bytes; i++) {
        size_t k = overlap(a->held.text, a->held.bytes, a->o->stop[i]);
        keep = k > keep ? k : keep;
    }
    if (!write_out(a, a->held.bytes - keep)) {
        a->r->stop = SINTER_STOP_WRITE;
        a->done = true;
    }
    return SINTER_OK;
}

/* ---- Tokens ------------------------------------------------------------------------------------
 */

static void stop(struct answer *a, sinter_stop why)
{
    a->r->stop = why;
    a->done = true;
}

/* Takes *id into the answer and runs it for the one behind it. */
static sinter_status one_token(struct answer *a, int32_t *id, sinter_error *err)
{
    const char *text;
    size_t bytes;
    if (!a->o->ignore_eos && sinter_is_eog(a->e->model, *id)) {
        stop(a, SINTER_STOP_END);
        return SINTER_OK;
    }
    a->r->n_made++;
    TRY(sinter_detok_push(a->detok, *id, &text, &bytes, err));
    TRY(take_text(a, text, bytes, false, err));
    if (a->done)
        return SINTER_OK;
    if (a->o->n_max > 0 && a->r->n_made >= a->o->n_max)
        stop(a, SINTER_STOP_LENGTH);
    else if (sinter_session_n_tok(a->s) >= a->e->o.n_ctx)
        stop(a, SINTER_STOP_CONTEXT);
    if (a->done)
        return SINTER_OK;
    return step(a, id, 1, id, err);
}

static sinter_status answer(struct answer *a, int32_t id, sinter_error *err)
{
    const char *text;
    size_t bytes;
    while (!a->done)
        TRY(one_token(a, &id, err));
    if (a->r->stop == SINTER_STOP_TEXT || a->r->stop == SINTER_STOP_WRITE)
        return SINTER_OK;
    sinter_stop why = a->r->stop;
    TRY(sinter_detok_flush(a->detok, &text, &bytes, err));
    TRY(take_text(a, text, bytes, true, err));
    a->r->stop = a->r->stop == SINTER_STOP_WRITE ? a->r->stop : why;
    return SINTER_OK;
}

static sinter_status run(struct answer *a, const int32_t *id, int32_t n, sinter_error *err)
{
    int32_t next;
    uint64_t start = host_clock_ns(a->e->host);
    for (int32_t i = 0; a->o->sampler && i < n; i++)
        sinter_sampler_accept(a->o->sampler, id[i]);
    sinter_status status = prefill(a, id, n, &next, err);
    uint64_t mid = host_clock_ns(a->e->host);
    a->r->prompt_ns = mid - start;
    TRY(status);
    status = answer(a, next, err);
    a->r->made_ns = host_clock_ns(a->e->host) - mid;
    return status;
}

static sinter_status check_options(const sinter_engine *e, const sinter_generate_options *o,
                                   sinter_error *err)
{
    int32_t n_vocab = e->model->model->plan.n_vocab;
    if (o->n_max < 0)
        return FAIL(err, USAGE, "n_max is %d; it must be 0 (no limit) or more", o->n_max);
    if (o->n_stop < 0)
        return FAIL(err, USAGE, "n_stop is %d; it must be 0 or more", o->n_stop);
    for (int32_t i = 0; i < o->n_stop; i++)
        if (!o->stop || !o->stop[i])
            return FAIL(err, USAGE, "stop text %d of %d is missing", i, o->n_stop);
    if (o->sampler && sampler_n_vocab(o->sampler) != n_vocab)
        return FAIL(err, USAGE, "the sampler is over %d tokens, the model has %d",
                    sampler_n_vocab(o->sampler), n_vocab);
    return SINTER_OK;
}

sinter_status sinter_generate(sinter_session *s, const char *prompt, size_t bytes,
                              const sinter_generate_options *options,
                              sinter_generate_result *result, sinter_error *err)
{
    sinter_engine *e = s->engine;
    sinter_generate_options o;
    sinter_generate_result r = {0};
    int32_t *id = NULL;
    size_t n = 0;
    TRY(options_copy(&o, sizeof o, options, err));
    TRY(check_options(e, &o, err));
    struct answer a = {.s = s, .e = e, .o = &o, .r = &r};
    sinter_status status = SINTER_OK;
    text_buf_init(&a.held, e->host);
    TRY_OUT(sinter_tokenize(e->model, prompt, bytes, a.o->tokenize, &id, &n, err));
    a.r->n_prompt = (int32_t)n;
    if (!n)
        FAIL_OUT(err, USAGE, "the prompt has no tokens; give at least one character");
    if (n > (size_t)e->o.n_ctx)
        FAIL_OUT(err, CONTEXT,
                 "the prompt has %zu tokens, the context holds %d; use a larger context (-c) or a "
                 "shorter prompt",
                 n, e->o.n_ctx);
    TRY_OUT(sinter_detok_create(e->model, 0, &a.detok, err));
    status = run(&a, id, (int32_t)n, err);
    if (status == SINTER_E_CANCELLED) {
        a.r->stop = SINTER_STOP_CANCELLED;
        status = SINTER_OK;
    }
out:
    sinter_detok_free(a.detok);
    text_buf_free(&a.held);
    host_free(e->host, id);
    if (result)
        result_copy(result, &r, sizeof r);
    return status;
}
