/* Byte-level BPE: each byte of a word is a token of its own; merges join them in file order. */
#include <string.h>

#include "text/vocab_priv.h"

/* ---- Load: tokens are spelt with one printable character for each byte ------------------------
 */

/* The byte that the character stands for, or -1. Printable Latin-1 stands for itself, the 68 other
 * bytes for U+0100, U+0101, … in rising order. */
static int byte_of(uint32_t point)
{
    int other = 0;

    if ((point >= 0x21 && point <= 0x7E) || (point >= 0xA1 && point <= 0xFF && point != 0xAD))
        return (int)point;
    if (point < 0x100 || point >= 0x100 + 68)
        return -1;
    for (int b = 0; b < 256; b++) {
        if (byte_of((uint32_t)b) == b)
            continue;
        if (other++ == (int)point - 0x100)
            return b;
    }
    return -1;
}

/* The bytes of a token's text into buf; false if a character of it stands for none. */
static bool piece_bytes(const int16_t byte[0x144], struct vocab_str text, char *buf, size_t *bytes)
{
    size_t len;
    uint32_t point;

    *bytes = 0;
    for (size_t i = 0; i < text.bytes; i += len) {
        if (unicode_scan(text.text + i, text.bytes - i, &len, &point) != UNICODE_VALID ||
            point >= 0x144 || byte[point] < 0)
            return false;
        buf[(*bytes)++] = (char)byte[point];
    }
    return true;
}

static sinter_status load_pieces(struct vocab *v, sinter_error *err)
{
    const bool index = v->split->flags & SPLIT_IGNORE_MERGES;
    int16_t byte[0x144];
    size_t total = 0, n;

    for (uint32_t p = 0; p < 0x144; p++)
        byte[p] = (int16_t)byte_of(p);
    for (int32_t id = 0; id < v->n; id++)
        total += v->text[id].bytes + 1;
    char *buf = arena_alloc(&v->arena, total);
    if (!buf)
        return host_no_memory(err, total, 1, "bytes of tokens");
    if (index)
        TRY(vocab_index_init(v, &v->by_piece, v->piece, err));
    for (int32_t id = 0; id < v->n; id++) {
        v->piece[id] = v->text[id];
        const bool normal = v->type[id] <= VOCAB_NORMAL;
        if ((!normal && v->type[id] != VOCAB_UNUSED) || !piece_bytes(byte, v->text[id], buf, &n))
            continue;
        v->piece[id] = (struct vocab_str){buf, n};
        buf += n + 1;
        if (normal && n == 1)
            v->byte_id[(uint8_t)v->piece[id].text[0]] = id;
        if (normal && n > 0 && index)
            vocab_index_add(&v->by_piece, v->piece[id], id);
    }
    return SINTER_OK;
}

static uint32_t pair_slot(const struct vocab *v, int32_t left, int32_t right)
{
    const uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;

    return (uint32_t)vocab_mix(pair ^ v->salt) & v->merge_mask;
}

/* A merge may only make what its halves say: no control token, no other bytes. */
static bool is_sound(const struct vocab *v, const struct vocab_merge *m)
{
    const struct vocab_str l = v->piece[m->left], r = v->piece[m->right], p = v->piece[m->id];

    return !special_is_control(v, m->id) && p.bytes == l.bytes + r.bytes &&
           memcmp(p.text, l.text, l.bytes) == 0 && memcmp(p.text + l.bytes, r.text, r.bytes) == 0;
}

/* The id of what a merge makes: mostly the one after that of the merge before. */
static int32_t find_joined(const struct vocab *v, const char *joined, size_t bytes, int32_t last)
{
    const int32_t next = last + 1;

    if (next < v->n && v->text[next].bytes == bytes &&
        memcmp(v->text[next].text, joined, bytes) == 0)
        return next;
    return vocab_index_find(&v->by_text, joined, bytes);
}

static sinter_status add_merge(struct vocab *v, const struct gguf_string *s, uint32_t rank,
                               char *joined, int32_t *last, sinter_error *err)
{
    const char *blank = s->bytes > 1 ? memchr(s->text + 1, ' ', s->bytes - 1) : NULL;
    struct vocab_merge m = {.rank = rank};

    if (!blank || blank + 1 == s->text + s->bytes)
        return FAIL(err, DATA,
                    "%s: tokenizer.ggml.merges[%u] \"%.40s\" is not two tokens with a blank "
                    "between; the file is damaged",
                    v->path, rank, s->text);
    size_t n = (size_t)(blank - s->text), rest = s->bytes - n - 1;
    memcpy(joined, s->text, n);
    memcpy(joined + n, blank + 1, rest);
    m.left = vocab_index_find(&v->by_text, s->text, n);
    m.right = vocab_index_find(&v->by_text, blank + 1, rest);
    m.id = *last = find_joined(v, joined, n + rest, *last);
    if (m.left < 0 || m.right < 0 || m.id < 0)
        return FAIL(err, DATA,
                    "%s: tokenizer.ggml.merges[%u] \"%.40s\": %s is no token of the vocabulary; "
                    "the file is damaged or was converted wrongly",
                    v->path, rank, s->text,
                    m.left < 0    ? "the first half"
                    : m.right < 0 ? "the second half"
                                  : "what it makes");
    if (!is_sound(v, &m))
        return FAIL(err, DATA,
                    "%s: tokenizer.ggml.merges[%u] \"%.40s\" makes token %d, which is a control "
                    "token or stands for other bytes; the file is damaged",
                    v->path, rank, s->text, m.id);
    uint32_t i = pair_slot(v, m.left, m.right);
    for (; v->merge[i].left >= 0; i = (i + 1) & v->merge_mask)
        if (v->merge[i].left == m.left && v->merge[i].right == m.right)
            return FAIL(err, DATA,
                        "%s: tokenizer.ggml.merges[%u] \"%.40s\" repeats merge %u; the file is "
                        "damaged",
                        v->path, rank, s->text, v->merge[i].rank);
    v->merge[i] = m;
    return SINTER_OK;
}

static sinter_status load_merges(struct vocab *v, const struct gguf *g, sinter_error *err)
{
    const struct gguf_value *value;
    uint32_t n_slot = 16;
    size_t longest = 0;
    int32_t last = -1;
    char *joined;
    sinter_status status = SINTER_OK;

    TRY(gguf_get_array(g, "tokenizer.ggml.merges", GGUF_STRING, &value, err));
    if (value->n > INT32_MAX / 4)
        return FAIL(err, LIMIT, "%s: %zu merges; sinter takes at most %d", v->path, value->n,
                    INT32_MAX / 4);
    while (n_slot < value->n + value->n / 2)
        n_slot *= 2;
    v->merge = arena_alloc_n(&v->arena, n_slot, sizeof *v->merge);
    if (!v->merge)
        return host_no_memory(err, n_slot, sizeof *v->merge, "merges");
    for (uint32_t i = 0; i < n_slot; i++)
        v->merge[i].left = -1;
    v->merge_mask = n_slot - 1;
    const struct gguf_string *s = value->data;
    for (size_t i = 0; i < value->n; i++)
        longest = s[i].bytes > longest ? s[i].bytes : longest;
    NEW(v->host, joined, longest + 1, err);
    for (size_t i = 0; i < value->n; i++)
        TRY_OUT(add_merge(v, &s[i], (uint32_t)i, joined, &last, err));
out:
    host_free(v->host, joined);
    return status;
}

static sinter_status find_split(struct vocab *v, const struct gguf *g, const char *pre,
                                sinter_error *err)
{
    const struct gguf_kv *kv = vocab_key(g, "tokenizer.ggml.pre");
    struct gguf_string name = {pre, strlen(pre)};
    const char *from = "--pre-tokenizer";

    if (!*pre) {
        if (!kv)
            return FAIL(err, NOT_FOUND,
                        "%s: no key tokenizer.ggml.pre, so how to cut a text into words is not "
                        "known; name the pre-tokenizer with --pre-tokenizer NAME",
                        v->path);
        TRY(gguf_get_string(g, kv->key, &name, err));
        from = kv->key;
    }
    v->split = split_find(name.text, name.bytes);
    if (v->split && *pre)
        host_log(v->host, SINTER_LOG_WARN, "%s: pre-tokenizer '%s' in place of the file's", v->path,
                 v->split->name);
    if (v->split)
        return SINTER_OK;
    const char *near = split_nearest(name.text);
    return FAIL(
        err, UNSUPPORTED,
        "%s: unknown pre-tokenizer '%.80s' (%s); if a known one cuts words in the same way, "
        "name it with --pre-tokenizer NAME (gpt-2, smollm, llama-bpe, qwen2, ...)%s%s",
        v->path, name.text, from, near ? "; nearest: " : "", near ? near : "");
}

sinter_status bpe_load(struct vocab *v, const struct gguf *g, const char *pre, sinter_error *err)
{
    TRY(find_split(v, g, pre, err));
    v->class = arena_alloc(&v->arena, UNICODE_N_CLASSED);
    if (!v->class)
        return host_no_memory(err, UNICODE_N_CLASSED, 1, "character classes");
    unicode_classes(v->class);
    TRY(load_pieces(v, err));
    return load_merges(v, g, err);
}

/* ---- Encode ---------------------------------------------------------------------------------- */

static bool bpe_pair(struct encoder *e, const struct merge_sym *left, const struct merge_sym *right,
                     uint32_t *key, int32_t *id)
{
    const struct vocab *v = e->v;

    for (uint32_t i = pair_slot(v, left->id, right->id);; i = (i + 1) & v->merge_mask) {
        const struct vocab_merge *m = &v->merge[i];
        if (m->left < 0)
            return false;
        if (m->left == left->id && m->right == right->id) {
            *key = m->rank;
            *id = m->id;
            return true;
        }
    }
}

static sinter_status encode_word(struct encoder *e, const char *word, size_t bytes,
                                 sinter_error *err)
{
    const struct vocab *v = e->v;

    e->word = word;
    TRY(merge_begin(e, bytes, err));
    for (size_t i = 0; i < bytes; i++) {
        int32_t id = v->byte_id[(uint8_t)word[i]];
        if (id < 0)
            return encoder_no_byte(e, word + i, err);
        e->sym[i] = (struct merge_sym){.start = (uint32_t)i, .len = 1, .id = id};
    }
    TRY(merge_run(e, bytes, bpe_pair, err));
    for (uint32_t i = 0; i != UINT32_MAX; i = e->sym[i].next)
        TRY(encoder_push(e, e->sym[i].id, err));
    return SINTER_OK;
}

sinter_status bpe_encode(struct encoder *e, const char *text, size_t bytes, sinter_error *err)
{
    const struct vocab *v = e->v;
    struct split_text t = {.class = v->class, .text = text, .bytes = bytes};
    const bool whole = v->split->flags & SPLIT_IGNORE_MERGES;
    bool hit;

    for (size_t pos = 0, end; pos < bytes; pos = end) {
        end = v->split->next(&t, pos);
        const char *word = text + pos;
        const size_t n = end - pos, first = e->ids->n;
        e->work += n;
        if (whole) {
            int32_t id = vocab_index_find(&v->by_piece, word, n);
            if (id >= 0) {
                TRY(encoder_push(e, id, err));
                continue;
            }
        }
        TRY(encoder_cached(e, word, n, &hit, err));
        if (hit)
            continue;
        TRY(encode_word(e, word, n, err));
        encoder_cache_put(e, word, n, first);
    }
    e->work += t.work;
    return SINTER_OK;
}
