/* Tokens and templates behind sinter.h. */
#include "run/run.h"

#include <string.h>

static unsigned encode_flags(unsigned flags)
{
    return (flags & SINTER_TOKENIZE_SPECIAL ? VOCAB_ADD_SPECIAL : 0u) |
           (flags & SINTER_TOKENIZE_PARSE_SPECIAL ? VOCAB_PARSE_SPECIAL : 0u);
}

sinter_status sinter_tokenize(const sinter_model *m, const char *text, size_t bytes, unsigned flags,
                              int32_t **ids, size_t *n_id, sinter_error *err)
{
    struct vocab_ids out = {0};
    *ids = NULL;
    *n_id = 0;
    if (!text && bytes)
        return FAIL(err, USAGE, "a text of %zu bytes at NULL", bytes);
    sinter_status status = vocab_encode(m->vocab, text, bytes, encode_flags(flags), &out, err);
    if (status != SINTER_OK) {
        vocab_ids_free(m->vocab, &out);
        return status;
    }
    if (!out.id) /* no ids: a block all the same, so that the caller frees one */
        NEW(m->host, out.id, 1, err);
    *ids = out.id;
    *n_id = out.n;
    return SINTER_OK;
}

static sinter_status take_text(struct text_buf *b, sinter_status status, char **text, size_t *bytes,
                               sinter_error *err)
{
    if (status == SINTER_OK) {
        text_buf_add(b, "", 0);
        status = text_buf_end(b, err);
    }
    if (status == SINTER_OK && !b->text) {
        b->text = host_strndup(b->host, "", 0);
        if (!b->text)
            status = host_no_memory(err, 1, 1, "a text");
    }
    if (status != SINTER_OK) {
        text_buf_free(b);
        return status;
    }
    *text = b->text;
    *bytes = b->bytes;
    return SINTER_OK;
}

sinter_status sinter_detokenize(const sinter_model *m, const int32_t *ids, size_t n_id,
                                unsigned flags, char **text, size_t *bytes, sinter_error *err)
{
    struct text_buf b;
    unsigned f = DETOK_START | (flags & SINTER_TEXT_SPECIAL ? DETOK_SPECIAL : 0u);
    *text = NULL;
    text_buf_init(&b, m->host);
    return take_text(&b, vocab_decode(m->vocab, ids, n_id, f, &b, err), text, bytes, err);
}

void sinter_free(sinter_host *host, void *block)
{
    host_free(host, block);
}

bool sinter_is_eog(const sinter_model *m, int32_t id)
{
    return vocab_is_eog(m->vocab, id);
}

/* ---- Streaming ------------------------------------------------------------------------------ */

struct sinter_detok {
    sinter_host *host;
    struct detok d;
    struct text_buf text;
};

sinter_status sinter_detok_create(const sinter_model *m, unsigned flags, sinter_detok **out,
                                  sinter_error *err)
{
    sinter_detok *d;
    *out = NULL;
    NEW(m->host, d, 1, err);
    d->host = m->host;
    detok_init(&d->d, m->vocab, flags & SINTER_TEXT_SPECIAL ? DETOK_SPECIAL : 0u);
    text_buf_init(&d->text, m->host);
    *out = d;
    return SINTER_OK;
}

void sinter_detok_free(sinter_detok *d)
{
    if (!d)
        return;
    text_buf_free(&d->text);
    host_free(d->host, d);
}

static sinter_status give(sinter_detok *d, const char **text, size_t *bytes, sinter_error *err)
{
    *text = d->text.text ? d->text.text : "";
    *bytes = d->text.bytes;
    return text_buf_end(&d->text, err);
}

sinter_status sinter_detok_push(sinter_detok *d, int32_t id, const char **text, size_t *bytes,
                                sinter_error *err)
{
    d->text.bytes = 0;
    TRY(detok_push(&d->d, id, &d->text, err));
    return give(d, text, bytes, err);
}

sinter_status sinter_detok_flush(sinter_detok *d, const char **text, size_t *bytes,
                                 sinter_error *err)
{
    d->text.bytes = 0;
    detok_flush(&d->d, &d->text);
    return give(d, text, bytes, err);
}

/* ---- Templates ------------------------------------------------------------------------------ */

sinter_status sinter_template_render(sinter_host *host, const sinter_model *model,
                                     const char *source, const char *vars, int64_t now, char **text,
                                     size_t *bytes, sinter_error *err)
{
    struct chat_template *t;
    struct text_buf b;
    size_t n = source ? strlen(source) : 0;
    *text = NULL;
    *bytes = 0;
    if (!vars)
        return FAIL(err, USAGE, "the variables of a template are NULL; {} is none");
    if (!source && model)
        source = vocab_template(model->vocab, &n);
    if (!source)
        return FAIL(err, NOT_FOUND,
                    "the model has no chat template; give one, or complete plain "
                    "text");
    TRY(template_compile(host, source, n, &t, err));
    text_buf_init(&b, host);
    sinter_status status = template_render(t, vars, strlen(vars), now, NULL, &b, err);
    template_free(t);
    return take_text(&b, status, text, bytes, err);
}
