/* Ids to text: exact bytes at once, or a stream of whole UTF-8 sequences. */
#include <string.h>

#include "text/vocab_priv.h"

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* The bytes that the id adds to a text. *strip: the next blank was put there by the encoder. */
static sinter_status id_bytes(const struct vocab *v, int32_t id, unsigned flags, bool *strip,
                              struct vocab_str *out, sinter_error *err)
{
    if (v->model == VOCAB_NONE)
        return FAIL(err, UNSUPPORTED,
                    "%s: the file has no tokenizer, so ids can not be turned "
                    "into text; ask for ids, or use a file with a vocabulary",
                    v->path);
    if (id < 0 || id >= v->n)
        return FAIL(err, USAGE, "%s: id %d is no token: the vocabulary has %d", v->path, id, v->n);
    *out = v->piece[id];
    if (special_is_control(v, id) || v->type[id] == VOCAB_USER_DEFINED) {
        if (special_is_control(v, id) && !(flags & DETOK_SPECIAL))
            out->bytes = 0;
        *strip = (flags & DETOK_START) && v->space_prefix;
    } else if (*strip && out->bytes > 0) {
        size_t n = out->text[0] == ' ';
        out->text += n;
        out->bytes -= n;
        *strip = false;
    }
    return SINTER_OK;
}

sinter_status vocab_decode(const struct vocab *v, const int32_t *id, size_t n, unsigned flags,
                           struct text_buf *out, sinter_error *err)
{
    bool strip = (flags & DETOK_START) && v->space_prefix;
    struct vocab_str s = {0};

    for (size_t i = 0; i < n; i++) {
        TRY(id_bytes(v, id[i], flags, &strip, &s, err));
        text_buf_add(out, s.text, s.bytes);
    }
    return SINTER_OK;
}

void detok_init(struct detok *d, const struct vocab *v, unsigned flags)
{
    *d = (struct detok){.v = v, .flags = flags, .strip = (flags & DETOK_START) && v->space_prefix};
}

/* Gives bytes to what is held back until it is whole or ill-formed. */
static void finish_held(struct detok *d, struct vocab_str *s, struct text_buf *out)
{
    size_t len;
    uint32_t point;

    while (d->n_held > 0 && s->bytes > 0) {
        d->held[d->n_held++] = *s->text++;
        s->bytes--;
        enum unicode_scan scan = unicode_scan(d->held, d->n_held, &len, &point);
        if (scan == UNICODE_CUT)
            continue;
        if (scan == UNICODE_VALID) {
            text_buf_add(out, d->held, d->n_held);
        } else { /* ill-formed by its last byte only, which begins something new */
            text_buf_add(out, replacement, 3);
            s->text--;
            s->bytes++;
        }
        d->n_held = 0;
    }
}

sinter_status detok_push(struct detok *d, int32_t id, struct text_buf *out, sinter_error *err)
{
    struct vocab_str s = {0};
    size_t len, whole = 0;
    uint32_t point;

    TRY(id_bytes(d->v, id, d->flags, &d->strip, &s, err));
    finish_held(d, &s, out);
    while (whole < s.bytes) {
        enum unicode_scan scan = unicode_scan(s.text + whole, s.bytes - whole, &len, &point);
        if (scan == UNICODE_VALID) {
            whole += len;
            continue;
        }
        text_buf_add(out, s.text, whole);
        s.text += whole;
        s.bytes -= whole;
        whole = 0;
        if (scan == UNICODE_CUT) {
            memcpy(d->held, s.text, s.bytes);
            d->n_held = (uint8_t)s.bytes;
            return SINTER_OK;
        }
        text_buf_add(out, replacement, 3);
        s.text += len;
        s.bytes -= len;
    }
    text_buf_add(out, s.text, s.bytes);
    return SINTER_OK;
}

void detok_flush(struct detok *d, struct text_buf *out)
{
    if (d->n_held > 0)
        text_buf_add(out, replacement, 3);
    d->n_held = 0;
}
