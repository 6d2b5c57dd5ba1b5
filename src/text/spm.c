/* SentencePiece BPE: characters merge by the score of what they make; what is no token at the end
 * becomes byte tokens.
 *
 * Tokens are kept in the form that they stand for: a blank is a blank here, never U+2581. So a
 * U+2581 of the text itself matches no token and survives as bytes. */
#include <math.h>
#include <string.h>

#include "text/vocab_priv.h"

/* ---- Load ------------------------------------------------------------------------------------ */

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte that "<0xAB>" spells, or -1. */
static int byte_token(struct vocab_str s)
{
    if (s.bytes != 6 || memcmp(s.text, "<0x", 3) != 0 || s.text[5] != '>' || hex(s.text[3]) < 0 ||
        hex(s.text[4]) < 0)
        return -1;
    return hex(s.text[3]) * 16 + hex(s.text[4]);
}

static sinter_status load_scores(struct vocab *v, const struct gguf *g, sinter_error *err)
{
    const struct gguf_value *value;

    TRY(gguf_get_array(g, "tokenizer.ggml.scores", GGUF_F32, &value, err));
    if (value->n != (size_t)v->n)
        return FAIL(err, DATA,
                    "%s: tokenizer.ggml.scores has %zu elements for %d tokens; the file is damaged",
                    v->path, value->n, v->n);
    v->score = arena_alloc_n(&v->arena, value->n, sizeof *v->score);
    if (!v->score)
        return host_no_memory(err, value->n, sizeof *v->score, "scores");
    memcpy(v->score, value->data, value->n * sizeof *v->score);
    for (int32_t id = 0; id < v->n; id++)
        if (isnan(v->score[id]))
            return FAIL(err, DATA,
                        "%s: tokenizer.ggml.scores[%d] is not a number; the file is "
                        "damaged",
                        v->path, id);
    return SINTER_OK;
}

/* Copies text with U+2581 made a blank; returns the bytes. */
static size_t unescape(struct vocab_str text, char *buf)
{
    size_t n = 0;

    for (size_t i = 0; i < text.bytes; i++) {
        if (text.bytes - i >= 3 && memcmp(text.text + i, "\xE2\x96\x81", 3) == 0) {
            buf[n++] = ' ';
            i += 2;
        } else {
            buf[n++] = text.text[i];
        }
    }
    return n;
}

static void note_joins(struct vocab *v, struct vocab_str piece)
{
    for (size_t i = 1; i < piece.bytes; i++)
        if (piece.text[i] == ' ' && piece.text[i - 1] != ' ')
            v->joins_blank[(uint8_t)piece.text[i - 1]] = 1;
    if (piece.bytes > v->piece_max)
        v->piece_max = piece.bytes;
}

static sinter_status load_byte(struct vocab *v, int32_t id, char *buf, sinter_error *err)
{
    int byte = byte_token(v->text[id]);

    if (byte < 0)
        return FAIL(err, DATA,
                    "%s: token %d has type byte, but \"%.40s\" is not <0x00> to <0xFF>; "
                    "the file is damaged",
                    v->path, id, v->text[id].text);
    v->byte_id[byte] = id;
    v->has_bytes = true;
    buf[0] = (char)byte;
    v->piece[id] = (struct vocab_str){buf, 1};
    return SINTER_OK;
}

static sinter_status load_pieces(struct vocab *v, sinter_error *err)
{
    size_t total = 0;

    for (int32_t id = 0; id < v->n; id++)
        total += v->text[id].bytes + 1;
    char *buf = arena_alloc(&v->arena, total);
    if (!buf)
        return host_no_memory(err, total, 1, "bytes of tokens");
    TRY(vocab_index_init(v, &v->by_piece, v->piece, err));
    for (int32_t id = 0; id < v->n; id++) {
        const enum vocab_type type = v->type[id];
        v->piece[id] = v->text[id];
        if (type == VOCAB_BYTE) {
            TRY(load_byte(v, id, buf, err));
            buf += 2;
        } else if (type <= VOCAB_NORMAL || type == VOCAB_UNUSED) {
            v->piece[id] = (struct vocab_str){buf, unescape(v->text[id], buf)};
            buf += v->piece[id].bytes + 1;
        }
        /* A normal token spelt with a real blank can not be made of a text's characters. */
        if (type <= VOCAB_NORMAL && v->text[id].bytes > 0 &&
            !memchr(v->text[id].text, ' ', v->text[id].bytes)) {
            vocab_index_add(&v->by_piece, v->piece[id], id);
            note_joins(v, v->piece[id]);
        }
    }
    return SINTER_OK;
}

sinter_status spm_load(struct vocab *v, const struct gguf *g, sinter_error *err)
{
    TRY(load_scores(v, g, err));
    return load_pieces(v, err);
}

/* ---- Encode ---------------------------------------------------------------------------------- */

/* Rising keys for falling scores. */
static uint32_t score_key(float score)
{
    uint32_t bits;
    float s = score + 0.0f; /* -0 = 0 */

    memcpy(&bits, &s, sizeof bits);
    return bits & 0x80000000u ? bits : ~(bits | 0x80000000u);
}

static bool spm_pair(struct encoder *e, const struct merge_sym *left, const struct merge_sym *right,
                     uint32_t *key, int32_t *id)
{
    const size_t bytes = (size_t)left->len + right->len;

    if (bytes > e->v->piece_max)
        return false;
    e->work += bytes / 8;
    *id = vocab_index_find(&e->v->by_piece, e->word + left->start, bytes);
    if (*id < 0)
        return false;
    *key = score_key(e->v->score[*id]);
    return true;
}

static sinter_status push_symbol(struct encoder *e, const struct merge_sym *sym, sinter_error *err)
{
    const struct vocab *v = e->v;
    const char *p = e->word + sym->start;
    int32_t id = sym->id;

    if (id < 0)
        id = vocab_index_find(&v->by_piece, p, sym->len);
    if (id < 0 && !v->has_bytes)
        id = v->special.unk; /* such a model was trained with it; warned of at load */
    if (id >= 0)
        return encoder_push(e, id, err);
    for (uint32_t i = 0; i < sym->len; i++) {
        id = v->byte_id[(uint8_t)p[i]];
        if (id < 0)
            return encoder_no_byte(e, p + i, err);
        TRY(encoder_push(e, id, err));
    }
    return SINTER_OK;
}

static sinter_status encode_chunk(struct encoder *e, const char *text, size_t bytes,
                                  sinter_error *err)
{
    size_t n = 0, len;
    uint32_t point;

    e->word = text;
    TRY(merge_begin(e, bytes, err));
    for (size_t i = 0; i < bytes; i += len, n++) {
        if (unicode_scan(text + i, bytes - i, &len, &point) != UNICODE_VALID)
            len = 1;
        e->sym[n] = (struct merge_sym){.start = (uint32_t)i, .len = (uint32_t)len, .id = -1};
    }
    TRY(merge_run(e, n, spm_pair, err));
    for (uint32_t i = 0; i != UINT32_MAX; i = e->sym[i].next)
        TRY(push_symbol(e, &e->sym[i], err));
    return SINTER_OK;
}

/* No token reaches over this place, so both sides can be merged on their own. */
static size_t chunk_end(const struct vocab *v, const char *text, size_t bytes, size_t pos)
{
    size_t i = pos + 1;

    while (i < bytes &&
           (text[i] != ' ' || text[i - 1] == ' ' || v->joins_blank[(uint8_t)text[i - 1]]))
        i++;
    return i;
}

/* The first chunk with the encoder's blank before it. */
static sinter_status encode_prefixed(struct encoder *e, const char *text, size_t bytes,
                                     sinter_error *err)
{
    char *copy;
    sinter_status status;

    NEW(e->host, copy, bytes + 1, err);
    copy[0] = ' ';
    memcpy(copy + 1, text, bytes);
    status = encode_chunk(e, copy, bytes + 1, err);
    host_free(e->host, copy);
    return status;
}

sinter_status spm_encode(struct encoder *e, const char *text, size_t bytes, bool prefix,
                         sinter_error *err)
{
    bool hit;

    e->work += bytes;
    for (size_t pos = 0, end; pos < bytes; pos = end) {
        const size_t first = e->ids->n;
        end = chunk_end(e->v, text, bytes, pos);
        if (prefix && pos == 0) {
            TRY(encode_prefixed(e, text, end, err));
            continue;
        }
        TRY(encoder_cached(e, text + pos, end - pos, &hit, err));
        if (hit)
            continue;
        TRY(encode_chunk(e, text + pos, end - pos, err));
        encoder_cache_put(e, text + pos, end - pos, first);
    }
    return SINTER_OK;
}
