/* sinter_session, and sinter_engine_step: items to one batch, and back. */
#include "run/run.h"

#include "base/hash.h"

#include <string.h>

static sinter_status make(sinter_engine *e, const sinter_session *from, sinter_session **out,
                          sinter_error *err)
{
    sinter_status status = SINTER_OK;
    sinter_session *s;
    *out = NULL;
    NEW(e->host, s, 1, err);
    s->engine = e;
    NEW_OUT(e->host, s->tok, e->o.n_ctx, err);
    engine_take(e);
    status = e->home->backend->fork(e->state, from ? from->seq : NULL, &s->seq, err);
    e->n_session += status == SINTER_OK;
    engine_give(e);
    if (status != SINTER_OK)
        goto out;
    if (from)
        memcpy(s->tok, from->tok, (size_t)sinter_session_n_tok(from) * sizeof *s->tok);
    *out = s;
    return SINTER_OK;
out:
    host_free(e->host, s->tok);
    host_free(e->host, s);
    return status;
}

sinter_status sinter_session_create(sinter_engine *e, sinter_session **out, sinter_error *err)
{
    return make(e, NULL, out, err);
}

sinter_status sinter_session_fork(sinter_session *from, sinter_session **out, sinter_error *err)
{
    return make(from->engine, from, out, err);
}

void sinter_session_close(sinter_session *s)
{
    if (!s)
        return;
    sinter_engine *e = s->engine;
    engine_take(e);
    e->n_session--;
    e->home->backend->drop(s->seq);
    engine_give(e);
    host_free(e->host, s->tok);
    host_free(e->host, s);
}

int32_t sinter_session_n_tok(const sinter_session *s)
{
    return s->engine->home->backend->rows(s->seq);
}

sinter_status sinter_session_trim(sinter_session *s, int32_t n_tok, sinter_error *err)
{
    engine_take(s->engine);
    sinter_status status = s->engine->home->backend->trim(s->seq, n_tok, err);
    engine_give(s->engine);
    return status;
}

/* ---- Save and restore --------------------------------------------------------------------------
 * u32 number of tokens | ids | u64 FNV-1a of both | the backend's canonical state, which guards
 * itself. */

static void put_tokens(struct text_buf *b, const int32_t *tok, uint32_t n)
{
    text_buf_add(b, (const char *)&n, sizeof n);
    text_buf_add(b, (const char *)tok, n * sizeof *tok);
    if (b->failed)
        return;
    uint64_t sum = fnv1a(FNV1A_START, b->text, b->bytes);
    text_buf_add(b, (const char *)&sum, sizeof sum);
}

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
    put_tokens(&b, s->tok + from, (uint32_t)(to - from));
    engine_take(e);
    sinter_status status = e->home->backend->save(e->home->device, s->seq, from, to, &b, err);
    engine_give(e);
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

/* The tokens that stand before the saved state; `head` bytes in all. */
static sinter_status read_tokens(const sinter_session *s, const void *data, size_t bytes,
                                 uint32_t *n, size_t *head, sinter_error *err)
{
    const sinter_engine *e = s->engine;
    int32_t at = sinter_session_n_tok(s), id;
    uint64_t sum;
    if (bytes < sizeof *n + sizeof sum)
        return FAIL(err, DATA, "this is no saved session (%zu bytes)", bytes);
    memcpy(n, data, sizeof *n);
    if (*n > (bytes - sizeof *n - sizeof sum) / sizeof id)
        return FAIL(err, DATA, "the saved session names %u tokens in %zu bytes", *n, bytes);
    *head = sizeof *n + *n * sizeof id;
    memcpy(&sum, (const char *)data + *head, sizeof sum);
    if (sum != fnv1a(FNV1A_START, data, *head))
        return FAIL(err, DATA, "the saved session is damaged: its checksum does not match");
    if (*n > (uint32_t)(e->o.n_ctx - at))
        return FAIL(err, CONTEXT, "%u saved tokens behind %d do not fit into a context of %d", *n,
                    at, e->o.n_ctx);
    for (uint32_t i = 0; i < *n; i++) {
        memcpy(&id, (const char *)data + sizeof *n + i * sizeof id, sizeof id);
        if (id < 0 || id >= e->model->model->plan.n_vocab)
            return FAIL(err, DATA, "saved token %u is %d, not in the vocabulary", i, id);
    }
    *head += sizeof sum;
    return SINTER_OK;
}

sinter_status sinter_session_restore(sinter_session *s, const void *data, size_t bytes,
                                     sinter_error *err)
{
    sinter_engine *e = s->engine;
    uint32_t n;
    size_t head;
    int32_t at = sinter_session_n_tok(s);
    TRY(read_tokens(s, data, bytes, &n, &head, err));
    engine_take(e);
    sinter_status status = e->home->backend->restore(e->home->device, s->seq, (int)n,
                                                     (const char *)data + head, bytes - head, err);
    engine_give(e);
    if (status == SINTER_OK)
        memcpy(s->tok + at, (const char *)data + sizeof n, n * sizeof *s->tok);
    return status;
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
    if (!it->session || it->session->engine != e)
        return FAIL(err, USAGE, "an item's session belongs to another engine");
    if (it->n_id < 1 || !it->ids)
        return FAIL(err, USAGE, "an item without tokens");
    if (it->want < SINTER_WANT_NONE || it->want > SINTER_WANT_ALL)
        return FAIL(err, USAGE, "an item's want is %d; it is one of SINTER_WANT_…", it->want);
    return SINTER_OK;
}

static sinter_status check_ids(const sinter_engine *e, const sinter_item *it, sinter_error *err)
{
    int n_vocab = e->model->model->plan.n_vocab;
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
        TRY(check_ids(e, &item[i], err));
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

static bool is_cancelled(const sinter_item *item, int n_item)
{
    for (int i = 0; i < n_item; i++)
        if (atomic_load(&item[i].session->cancel))
            return true;
    return false;
}

static bool enter(sinter_engine *e, const sinter_item *item, int n_item)
{
    atomic_store(&e->cancel, 0);
    for (int i = 0; i < n_item; i++)
        atomic_store(&item[i].session->in_step, 1);
    return is_cancelled(item, n_item);
}

/* A cancel that ended this step is done with; which item it was stands in its status. One that came
 * while the step failed otherwise, or as it ended, counts for the next. */
static void leave(sinter_item *item, int n_item, bool cancelled)
{
    for (int i = 0; i < n_item; i++) {
        atomic_store(&item[i].session->in_step, 0);
        if (cancelled && atomic_exchange(&item[i].session->cancel, 0))
            item[i].status = SINTER_E_CANCELLED;
    }
}

static void clear_results(sinter_item *item, int n_item)
{
    for (int i = 0; i < n_item; i++) {
        item[i].n_out = 0;
        item[i].logits = NULL;
        item[i].argmax = NULL;
        item[i].status = SINTER_OK;
    }
}

sinter_status engine_step(sinter_engine *e, sinter_item *item, int32_t n_item, sinter_error *err)
{
    struct batch b;
    clear_results(item, n_item);
    TRY(make_batch(e, item, n_item, &b, err));
    uint64_t n_alloc = host_usage(e->host).n_alloc;
    sinter_status status = SINTER_OK;
    bool late;
    do { /* again if a canceller of an earlier step came late: none of these was meant */
        if (enter(e, item, n_item))
            status = FAIL(err, CANCELLED, "the session was cancelled");
        else
            status = run_batch(e, &b, item, n_item, err);
        late = status == SINTER_E_CANCELLED && !is_cancelled(item, n_item);
    } while (late);
    leave(item, n_item, status == SINTER_E_CANCELLED);
    if (status == SINTER_OK && b.n_row == n_item && ++e->n_decode > 2)
        e->decode_allocs += host_usage(e->host).n_alloc - n_alloc;
    return status;
}

sinter_status sinter_engine_step(sinter_engine *e, sinter_item *item, int32_t n_item,
                                 sinter_error *err)
{
    engine_take(e);
    sinter_status status = engine_step(e, item, n_item, err);
    engine_give(e);
    return status;
}
