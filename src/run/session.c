/* sinter_session, and sinter_engine_step: items to one batch, and back. */
#include "run/run.h"

#include <string.h>

sinter_status sinter_session_create(sinter_engine *e, sinter_session **out, sinter_error *err)
{
    sinter_status status = SINTER_OK;
    sinter_session *s;
    *out = NULL;
    NEW(e->host, s, 1, err);
    s->engine = e;
    NEW_OUT(e->host, s->tok, e->o.n_ctx, err);
    TRY_OUT(e->home->backend->fork(e->state, NULL, &s->seq, err));
    e->n_session++;
    *out = s;
    return SINTER_OK;
out:
    host_free(e->host, s->tok);
    host_free(e->host, s);
    return status;
}

sinter_status sinter_session_fork(sinter_session *from, sinter_session **out, sinter_error *err)
{
    sinter_engine *e = from->engine;
    struct seq *seq;
    *out = NULL;
    TRY(e->home->backend->fork(e->state, from->seq, &seq, err));
    sinter_status status = SINTER_OK;
    sinter_session *s = host_alloc(e->host, sizeof *s);
    int32_t *tok = host_alloc_n(e->host, (size_t)e->o.n_ctx, sizeof *tok);
    if (!s || !tok) {
        status = host_no_memory(err, (size_t)e->o.n_ctx, sizeof *tok, "a session");
        e->home->backend->drop(seq);
        host_free(e->host, s);
        host_free(e->host, tok);
        return status;
    }
    s->engine = e;
    s->seq = seq;
    s->tok = tok;
    memcpy(tok, from->tok, (size_t)sinter_session_n_tok(from) * sizeof *tok);
    e->n_session++;
    *out = s;
    return SINTER_OK;
}

void sinter_session_close(sinter_session *s)
{
    if (!s)
        return;
    s->engine->n_session--;
    s->engine->home->backend->drop(s->seq);
    host_free(s->engine->host, s->tok);
    host_free(s->engine->host, s);
}

int32_t sinter_session_n_tok(const sinter_session *s)
{
    return s->engine->home->backend->rows(s->seq);
}

sinter_status sinter_session_trim(sinter_session *s, int32_t n_tok, sinter_error *err)
{
    return s->engine->home->backend->trim(s->seq, n_tok, err);
}

/* Saved bytes: the token ids, then the backend's canonical state. */
sinter_status sinter_session_save(sinter_session *s, int32_t from, int32_t to, void **data,
                                  size_t *bytes, sinter_error *err)
{
    sinter_engine *e = s->engine;
    struct text_buf b;
    *data = NULL;
    *bytes = 0;
    if (from < 0 || to < from || to > sinter_session_n_tok(s))
        return FAIL(err, STATE, "cannot save tokens %d..%d of a session of %d", from, to,
                    sinter_session_n_tok(s));
    text_buf_init(&b, e->host);
    uint32_t n = (uint32_t)(to - from);
    text_buf_add(&b, (const char *)&n, sizeof n);
    text_buf_add(&b, (const char *)(s->tok + from), n * sizeof *s->tok);
    sinter_status status = e->home->backend->save(e->home->device, s->seq, from, to, &b, err);
    if (status == SINTER_OK)
        status = text_buf_end(&b, err);
    if (status != SINTER_OK) {
        text_buf_free(&b);
        return status;
    }
    *data = b.text;
    *bytes = b.bytes;
    return SINTER_OK;
}

sinter_status sinter_session_restore(sinter_session *s, const void *data, size_t bytes,
                                     sinter_error *err)
{
    sinter_engine *e = s->engine;
    uint32_t n;
    int32_t at = sinter_session_n_tok(s);
    if (bytes < sizeof n)
        return FAIL(err, DATA, "this is no saved session (%zu bytes)", bytes);
    memcpy(&n, data, sizeof n);
    if (n > (bytes - sizeof n) / sizeof *s->tok)
        return FAIL(err, DATA, "the saved session names %u tokens in %zu bytes", n, bytes);
    if (n > (uint32_t)(e->o.n_ctx - at))
        return FAIL(err, CONTEXT, "%u saved tokens behind %d do not fit into a context of %d", n,
                    at, e->o.n_ctx);
    size_t head = sizeof n + n * sizeof *s->tok;
    TRY(e->home->backend->restore(e->home->device, s->seq, (const char *)data + head, bytes - head,
                                  err));
    memcpy(s->tok + at, (const char *)data + sizeof n, n * sizeof *s->tok);
    return SINTER_OK;
}

/* The canceller sets the flag, then looks whether the session is in a step; a step says that it is
 * in, then looks at the flag: one of the two sees the other. */
void sinter_session_cancel(sinter_session *s)
{
    atomic_store(&s->cancel, 1);
    if (atomic_load(&s->in_step))
        atomic_store(&s->engine->cancel, 1);
}

/* ---- Step ------------------------------------------------------------------------------------ */

static sinter_status check_item(const sinter_engine *e, const sinter_item *it, sinter_error *err)
{
    int n_vocab = e->model->model->plan.n_vocab;
    if (!it->session || it->session->engine != e)
        return FAIL(err, USAGE, "an item's session belongs to another engine");
    if (it->n_id < 1 || !it->ids)
        return FAIL(err, USAGE, "an item without tokens");
    for (int i = 0; i < it->n_id; i++)
        if (it->ids[i] < 0 || it->ids[i] >= n_vocab)
            return FAIL(err, USAGE, "token id %d is not in the vocabulary (0..%d)", it->ids[i],
                        n_vocab - 1);
    return SINTER_OK;
}

static void add_outs(const sinter_engine *e, const sinter_item *it, struct batch *b)
{
    unsigned kinds = it->want_argmax ? PORT_ARGMAX : PORT_LOGITS;
    int row0 = b->n_row, first = it->want == SINTER_WANT_ALL ? 0 : it->n_id - 1;
    for (int r = first; it->want != SINTER_WANT_NONE && r < it->n_id; r++)
        e->out[b->n_out++] = (struct batch_out){row0 + r, kinds};
}

static sinter_status make_batch(sinter_engine *e, const sinter_item *item, int n_item,
                                struct batch *b, sinter_error *err)
{
    *b = (struct batch){.seg = e->seg, .id = e->id, .out = e->out, .cancel = &e->cancel};
    if (n_item < 1 || n_item > e->o.n_session)
        return FAIL(err, USAGE, "a step of %d items; the engine takes 1..%d", n_item,
                    e->o.n_session);
    for (int i = 0; i < n_item; i++) {
        TRY(check_item(e, &item[i], err));
        int n_past = sinter_session_n_tok(item[i].session);
        if (item[i].n_id > e->o.n_ctx - n_past)
            return FAIL(err, CONTEXT,
                        "the context is full: %d tokens are in it, %d more do not fit into %d; use "
                        "a larger context (-c) or a shorter prompt",
                        n_past, item[i].n_id, e->o.n_ctx);
        if (item[i].n_id > e->o.n_chunk - b->n_row)
            return FAIL(err, LIMIT, "a step of more than %d tokens; give them in chunks",
                        e->o.n_chunk);
        e->seg[b->n_seg++] =
            (struct batch_seg){item[i].session->seq, b->n_row, item[i].n_id, n_past};
        memcpy(e->id + b->n_row, item[i].ids, (size_t)item[i].n_id * sizeof *e->id);
        add_outs(e, &item[i], b);
        b->n_row += item[i].n_id;
    }
    return SINTER_OK;
}

static void commit_all(sinter_engine *e, sinter_item *item, int n_item, bool keep)
{
    for (int i = 0; i < n_item; i++) {
        sinter_session *s = item[i].session;
        int n_past = sinter_session_n_tok(s);
        if (keep)
            memcpy(s->tok + n_past, item[i].ids, (size_t)item[i].n_id * sizeof *s->tok);
        if (e->home->backend->commit(s->seq, keep ? item[i].n_id : 0, NULL) != SINTER_OK)
            host_log(e->host, SINTER_LOG_ERROR, "commit of an open step failed");
    }
}

static void give_results(const sinter_engine *e, const struct result *r, sinter_item *item,
                         int n_item)
{
    size_t n_vocab = (size_t)e->model->model->plan.n_vocab;
    int o = 0;
    for (int i = 0; i < n_item; i++) {
        sinter_item *it = &item[i];
        it->status = SINTER_OK;
        it->n_out = it->want == SINTER_WANT_NONE ? 0 : it->want == SINTER_WANT_ALL ? it->n_id : 1;
        it->logits =
            it->n_out && !it->want_argmax && r->logits ? r->logits + (size_t)o * n_vocab : NULL;
        it->argmax = it->n_out && it->want_argmax && r->argmax ? r->argmax + o : NULL;
        for (int k = 0; k < it->n_out; k++)
            if (r->bad[o + k])
                it->status = SINTER_E_NUMERIC;
        o += it->n_out;
    }
}

static sinter_status run_batch(sinter_engine *e, const struct batch *b, sinter_item *item,
                               int n_item, sinter_error *err)
{
    const struct backend *backend = e->home->backend;
    struct result r;
    TRY(backend->reserve(e->exec, b, err));
    sinter_status status = backend->submit(e->exec, b, err);
    if (status == SINTER_OK)
        status = backend->wait(e->exec, &r, err);
    commit_all(e, item, n_item, status == SINTER_OK);
    if (status == SINTER_OK)
        give_results(e, &r, item, n_item);
    return status;
}

static bool enter(sinter_engine *e, sinter_item *item, int n_item)
{
    bool cancelled = false;
    atomic_store(&e->cancel, 0);
    for (int i = 0; i < n_item; i++) {
        atomic_store(&item[i].session->in_step, 1);
        cancelled |= atomic_load(&item[i].session->cancel) != 0;
    }
    return cancelled;
}

/* A cancel that came counts for this step; which item it was stands in its status. */
static void leave(sinter_item *item, int n_item, bool failed)
{
    for (int i = 0; i < n_item; i++) {
        atomic_store(&item[i].session->in_step, 0);
        if (failed && atomic_exchange(&item[i].session->cancel, 0))
            item[i].status = SINTER_E_CANCELLED;
    }
}

sinter_status sinter_engine_step(sinter_engine *e, sinter_item *item, int32_t n_item,
                                 sinter_error *err)
{
    struct batch b;
    TRY(make_batch(e, item, n_item, &b, err));
    uint64_t n_alloc = host_usage(e->host).n_alloc;
    sinter_status status = SINTER_OK;
    if (enter(e, item, n_item))
        status = FAIL(err, CANCELLED, "the session was cancelled");
    else
        status = run_batch(e, &b, item, n_item, err);
    leave(item, n_item, status != SINTER_OK);
    if (status == SINTER_OK && b.n_row == n_item && ++e->n_decode > 2)
        e->decode_allocs += host_usage(e->host).n_alloc - n_alloc;
    return status;
}
