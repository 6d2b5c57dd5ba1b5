/* Vocabularies: loading and checking of a file's tables, getters, and the driver of encoding. */
#include "text/vocab.h"

#include <stdint.h>
#include <string.h>

#include "base/options.h"
#include "text/vocab_priv.h"

enum { CACHE_BYTES_MIN = 2048, CACHE_SLOTS = 4096, CACHE_WORD_MAX = 64 };

/* ---- Index ----------------------------------------------------------------------------------- */

uint64_t vocab_hash_bytes(uint64_t salt, const char *text, size_t bytes)
{
    uint64_t h = salt ^ bytes, x;

    for (; bytes >= 8; bytes -= 8, text += 8) {
        memcpy(&x, text, 8);
        h = vocab_mix(h ^ x) * 0x9FB21C651E98DF25u;
    }
    x = 0;
    memcpy(&x, text, bytes);
    return vocab_mix(h ^ x);
}

sinter_status vocab_index_init(struct vocab *v, struct vocab_index *x, const struct vocab_str *str,
                               sinter_error *err)
{
    uint32_t n = 16, id_mask = 1;

    while (n < (uint32_t)v->n * 2)
        n *= 2;
    while (id_mask < (uint32_t)v->n)
        id_mask = id_mask * 2 + 1;
    *x = (struct vocab_index){.str = str, .salt = v->salt, .mask = n - 1, .id_mask = id_mask};
    x->slot = arena_alloc_n(&v->arena, n, sizeof *x->slot);
    return x->slot ? SINTER_OK : host_no_memory(err, n, sizeof *x->slot, "index of tokens");
}

/* The slot of the string, or the empty one where it belongs; *tag = the hash's bits in it. */
static uint32_t *index_slot(const struct vocab_index *x, const char *text, size_t bytes,
                            uint32_t *tag)
{
    const uint64_t h = vocab_hash_bytes(x->salt, text, bytes);
    uint32_t i = (uint32_t)h & x->mask;

    *tag = (uint32_t)(h >> 32) & ~x->id_mask;
    for (; x->slot[i] != 0; i = (i + 1) & x->mask) {
        if ((x->slot[i] & ~x->id_mask) != *tag)
            continue;
        const struct vocab_str *s = &x->str[(x->slot[i] & x->id_mask) - 1];
        if (s->bytes == bytes && memcmp(s->text, text, bytes) == 0)
            break;
    }
    return &x->slot[i];
}

int32_t vocab_index_add(struct vocab_index *x, struct vocab_str s, int32_t id)
{
    uint32_t tag, *slot = index_slot(x, s.text, s.bytes, &tag);

    if (*slot != 0)
        return (int32_t)(*slot & x->id_mask) - 1;
    *slot = tag | ((uint32_t)id + 1);
    return -1;
}

int32_t vocab_index_find(const struct vocab_index *x, const char *text, size_t bytes)
{
    uint32_t tag;

    return (int32_t)(*index_slot(x, text, bytes, &tag) & x->id_mask) - 1;
}

/* ---- Load ------------------------------------------------------------------------------------ */

static sinter_status load_texts(struct vocab *v, const struct gguf *g, sinter_error *err)
{
    const struct gguf_value *value;
    size_t total = 0;

    TRY(gguf_get_array(g, "tokenizer.ggml.tokens", GGUF_STRING, &value, err));
    if (value->n == 0)
        return FAIL(err, DATA, "%s: tokenizer.ggml.tokens is empty", v->path);
    if (value->n > INT32_MAX / 4)
        return FAIL(err, LIMIT, "%s: %zu tokens; sinter takes at most %d", v->path, value->n,
                    INT32_MAX / 4);
    v->n = (int32_t)value->n;
    const struct gguf_string *s = value->data;
    for (size_t i = 0; i < value->n; i++)
        total += s[i].bytes + 1;
    char *buf = arena_alloc(&v->arena, total);
    v->text = arena_alloc_n(&v->arena, value->n, sizeof *v->text);
    v->piece = arena_alloc_n(&v->arena, value->n, sizeof *v->piece);
    v->type = arena_alloc(&v->arena, value->n);
    v->eog = arena_alloc(&v->arena, value->n);
    if (!buf || !v->text || !v->piece || !v->type || !v->eog)
        return host_no_memory(err, total, 1, "texts of tokens");
    TRY(vocab_index_init(v, &v->by_text, v->text, err));
    for (int32_t id = 0; id < v->n; id++) {
        const size_t bytes = s[id].bytes;
        memcpy(buf, s[id].text, bytes);
        v->text[id] = (struct vocab_str){buf, bytes};
        buf += bytes + 1;
        int32_t same = bytes ? vocab_index_add(&v->by_text, v->text[id], id) : -1;
        if (same >= 0)
            return FAIL(err, DATA, "%s: tokens %d and %d are both \"%.80s\"; the file is damaged",
                        v->path, same, id, v->text[id].text);
    }
    return SINTER_OK;
}

static sinter_status load_types(struct vocab *v, const struct gguf *g, sinter_error *err)
{
    const struct gguf_value *value;

    memset(v->type, VOCAB_NORMAL, (size_t)v->n);
    if (!vocab_key(g, "tokenizer.ggml.token_type"))
        return host_warn(v->host, err,
                         "%s: no key tokenizer.ggml.token_type: every token counts "
                         "as ordinary text",
                         v->path);
    TRY(gguf_get_array(g, "tokenizer.ggml.token_type", GGUF_I32, &value, err));
    if (value->n != (size_t)v->n)
        return FAIL(err, DATA,
                    "%s: tokenizer.ggml.token_type has %zu elements for %d tokens; the "
                    "file is damaged",
                    v->path, value->n, v->n);
    const int32_t *type = value->data;
    for (int32_t id = 0; id < v->n; id++) {
        if (type[id] < 0 || type[id] >= VOCAB_N_TYPE)
            return FAIL(err, DATA, "%s: tokenizer.ggml.token_type[%d] = %d is not in 0..%d",
                        v->path, id, type[id], VOCAB_N_TYPE - 1);
        v->type[id] = (uint8_t)type[id];
    }
    return SINTER_OK;
}

static sinter_status load_template(struct vocab *v, const struct gguf *g, sinter_error *err)
{
    struct gguf_string s;

    if (!vocab_key(g, "tokenizer.chat_template"))
        return SINTER_OK;
    TRY(gguf_get_string(g, "tokenizer.chat_template", &s, err));
    v->template.text = arena_strndup(&v->arena, s.text, s.bytes);
    v->template.bytes = s.bytes;
    return v->template.text ? SINTER_OK : host_no_memory(err, s.bytes, 1, "chat template");
}

static sinter_status find_model(struct vocab *v, const struct gguf *g, sinter_error *err)
{
    static const struct {
        const char *name;
        enum vocab_model model;
    } models[] = {
        {"gpt2", VOCAB_BPE}, {"llama", VOCAB_SPM}, {"none", VOCAB_NONE}, {"no_vocab", VOCAB_NONE}};
    struct gguf_string s;

    if (!vocab_key(g, "tokenizer.ggml.model")) {
        if (vocab_key(g, "tokenizer.ggml.tokens"))
            return FAIL(err, NOT_FOUND,
                        "%s: it has tokens, but no key tokenizer.ggml.model; leave "
                        "them out with --skip-key tokenizer.ggml.tokens",
                        v->path);
        v->model = VOCAB_NONE;
        return SINTER_OK;
    }
    TRY(gguf_get_string(g, "tokenizer.ggml.model", &s, err));
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strlen(models[i].name) == s.bytes && memcmp(models[i].name, s.text, s.bytes) == 0) {
            v->model = models[i].model;
            return SINTER_OK;
        }
    return FAIL(err, UNSUPPORTED,
                "%s: tokenizer '%.80s' (tokenizer.ggml.model) is not supported: "
                "sinter has gpt2 (byte-level BPE) and llama (SentencePiece BPE); to work with ids "
                "only, leave it out with --skip-key tokenizer.ggml.model,tokenizer.ggml.tokens",
                v->path, s.text);
}

/* Without a tokenizer only the number of tokens is known, if at all. */
static sinter_status load_none(struct vocab *v, const struct gguf *g, sinter_error *err)
{
    struct gguf_string arch;
    const struct gguf_kv *kv = NULL;
    sinter_status status;
    int64_t n = 0;
    char key[160];

    memset(&v->special, -1, sizeof v->special);
    if (gguf_find(g, "general.architecture")) {
        TRY(gguf_get_string(g, "general.architecture", &arch, err));
        if (arch.bytes < 128) {
            memcpy(key, arch.text, arch.bytes);
            memcpy(key + arch.bytes, ".vocab_size", 12);
            kv = vocab_key(g, key);
        }
    }
    if (!kv)
        return SINTER_OK;
    status = gguf_value_int(kv, 0, &n, err);
    if (status != SINTER_OK)
        return status_prefix(err, status, "%s", v->path);
    if (n < 0 || n > INT32_MAX / 4)
        return FAIL(err, DATA, "%s: %s = %lld is not in 0..%d", v->path, key, (long long)n,
                    INT32_MAX / 4);
    v->n = (int32_t)n;
    return SINTER_OK;
}

static sinter_status warn_unk(const struct vocab *v, sinter_error *err)
{
    if (v->model != VOCAB_SPM || v->has_bytes || v->special.unk < 0)
        return SINTER_OK;
    return host_warn(v->host, err,
                     "%s: the vocabulary has no byte tokens: characters that it does "
                     "not have become token %d (unknown) and are lost",
                     v->path, v->special.unk);
}

static sinter_status load(struct vocab *v, const struct gguf *g, const char *pre, sinter_error *err)
{
    v->path = arena_strndup(&v->arena, g->path, strlen(g->path));
    if (!v->path)
        return host_no_memory(err, strlen(g->path), 1, "path");
    memset(v->byte_id, -1, sizeof v->byte_id);
    TRY(find_model(v, g, err));
    if (*pre && v->model != VOCAB_BPE)
        return FAIL(err, USAGE,
                    "%s: --pre-tokenizer %.80s: this file's tokenizer has none; leave "
                    "the flag out",
                    v->path, pre);
    TRY(load_template(v, g, err));
    if (v->model == VOCAB_NONE) {
        TRY(load_none(v, g, err));
    } else {
        TRY(load_texts(v, g, err));
        TRY(load_types(v, g, err));
        TRY(v->model == VOCAB_BPE ? bpe_load(v, g, pre, err) : spm_load(v, g, err));
        TRY(special_load(v, g, err));
        TRY(warn_unk(v, err));
    }
    return SINTER_OK;
}

sinter_status vocab_open(const struct gguf *g, const char *pre_override, struct vocab **out,
                         sinter_error *err)
{
    struct vocab *v;
    sinter_status status;

    *out = NULL;
    NEW(g->host, v, 1, err);
    v->host = g->host;
    v->salt = vocab_mix(host_clock_ns(v->host) ^ (uintptr_t)v);
    arena_init(&v->arena, v->host);
    if (!pre_override || !*pre_override)
        pre_override = host_options(g->host)->pre_tokenizer;
    status = load(v, g, pre_override, err);
    if (status != SINTER_OK) {
        vocab_free(v);
        return status;
    }
    *out = v;
    return SINTER_OK;
}

void vocab_free(struct vocab *v)
{
    if (!v)
        return;
    arena_free(&v->arena);
    host_free(v->host, v);
}

/* ---- Getters --------------------------------------------------------------------------------- */

static bool has_id(const struct vocab *v, int32_t id)
{
    return v->model != VOCAB_NONE && id >= 0 && id < v->n;
}

enum vocab_model vocab_model(const struct vocab *v)
{
    return v->model;
}
int32_t vocab_n(const struct vocab *v)
{
    return v->n;
}
const struct vocab_special *vocab_special(const struct vocab *v)
{
    return &v->special;
}
bool vocab_is_eog(const struct vocab *v, int32_t id)
{
    return has_id(v, id) && v->eog[id];
}

const char *vocab_template(const struct vocab *v, size_t *bytes)
{
    *bytes = v->template.bytes;
    return v->template.text;
}

void vocab_print(const struct vocab *v, struct text_buf *b, bool json)
{
    static const char *const name[] = {"none", "byte-level BPE", "SentencePiece BPE"};
    const char *pre = v->split ? v->split->name : "";

    if (json) {
        text_buf_printf(b, "{\"tokenizer\":\"%s\",\"pre\":", name[v->model]);
        text_buf_json(b, pre, strlen(pre));
        text_buf_printf(b, ",\"n_token\":%d,\"add_bos\":%s,\"add_eos\":%s,\"special\":", v->n,
                        v->add_bos ? "true" : "false", v->add_eos ? "true" : "false");
    } else {
        text_buf_printf(b, "tokenizer: %s, %d tokens%s%s%s%s%s\n", name[v->model], v->n,
                        *pre ? ", words cut as by " : "", pre, v->add_bos ? ", bos added" : "",
                        v->add_eos ? ", eos added" : "", v->space_prefix ? ", blank added" : "");
    }
    special_print(v, b, json);
    if (json)
        text_buf_add(b, "}", 1);
}

/* ---- Encode ---------------------------------------------------------------------------------- */

void vocab_ids_free(const struct vocab *v, struct vocab_ids *ids)
{
    host_free(v->host, ids->id);
    *ids = (struct vocab_ids){0};
}

sinter_status encoder_push(struct encoder *e, int32_t id, sinter_error *err)
{
    struct vocab_ids *ids = e->ids;

    if (ids->n == ids->cap) {
        void *block = ids->id;
        sinter_status status = host_grow(e->host, &block, &ids->cap, ids->n + 1, sizeof id, err);
        ids->id = block;
        TRY(status);
    }
    ids->id[ids->n++] = id;
    return SINTER_OK;
}

static struct word_cache *cache_slot(struct encoder *e, const char *word, size_t bytes)
{
    return &e->cache[vocab_hash_bytes(e->v->salt, word, bytes) & (CACHE_SLOTS - 1)];
}

sinter_status encoder_cached(struct encoder *e, const char *word, size_t bytes, bool *hit,
                             sinter_error *err)
{
    *hit = false;
    if (!e->cache || bytes > CACHE_WORD_MAX)
        return SINTER_OK;
    const struct word_cache *c = cache_slot(e, word, bytes);
    if (c->bytes != bytes || memcmp(c->text, word, bytes) != 0)
        return SINTER_OK;
    *hit = true;
    for (uint32_t i = 0; i < c->n; i++)
        TRY(encoder_push(e, e->ids->id[c->first + i], err));
    return SINTER_OK;
}

void encoder_cache_put(struct encoder *e, const char *word, size_t bytes, size_t first)
{
    if (!e->cache || bytes > CACHE_WORD_MAX)
        return;
    *cache_slot(e, word, bytes) =
        (struct word_cache){word, (uint32_t)bytes, (uint32_t)(e->ids->n - first), first};
}

sinter_status encoder_no_byte(struct encoder *e, const char *at, sinter_error *err)
{
    const uintptr_t offset = (uintptr_t)at - (uintptr_t)e->text;

    return FAIL(err, DATA,
                "%s: the vocabulary has no token for the byte 0x%02X of the text (byte "
                "%zu of %zu); take it out of the text",
                e->v->path, (unsigned)(uint8_t)*at, offset < e->bytes ? (size_t)offset : 0,
                e->bytes);
}

static sinter_status encode_raw(struct encoder *e, const char *text, size_t bytes, bool prefix,
                                sinter_error *err)
{
    if (bytes == 0)
        return SINTER_OK;
    return e->v->model == VOCAB_BPE ? bpe_encode(e, text, bytes, err)
                                    : spm_encode(e, text, bytes, prefix, err);
}

/* Cuts the text at special tokens; what is between goes to the tokenizer piece by piece. */
static sinter_status encode_text(struct encoder *e, bool parse_special, sinter_error *err)
{
    const struct vocab *v = e->v;
    size_t from = 0, pos = 0, len = 1;

    while (pos < e->bytes) {
        int32_t id = special_match(v, e->text + pos, e->bytes - pos, parse_special, &len, &e->work);
        if (id < 0) {
            pos++;
            continue;
        }
        TRY(encode_raw(e, e->text + from, pos - from, v->space_prefix, err));
        TRY(encoder_push(e, id, err));
        from = pos += len;
    }
    return encode_raw(e, e->text + from, pos - from, v->space_prefix, err);
}

static sinter_status encode_all(struct encoder *e, unsigned flags, sinter_error *err)
{
    const struct vocab *v = e->v;

    if (v->model == VOCAB_NONE)
        return FAIL(err, UNSUPPORTED,
                    "%s: the file has no tokenizer, so text can not be turned "
                    "into ids; give ids, or use a file with a vocabulary",
                    v->path);
    if (e->bytes > INT32_MAX)
        return FAIL(err, LIMIT, "a text of %zu bytes; sinter takes at most %d at once", e->bytes,
                    INT32_MAX);
    if (e->bytes >= CACHE_BYTES_MIN)
        NEW(e->host, e->cache, CACHE_SLOTS, err);
    if ((flags & VOCAB_ADD_SPECIAL) && v->add_bos)
        TRY(encoder_push(e, v->special.bos, err));
    TRY(encode_text(e, flags & VOCAB_PARSE_SPECIAL, err));
    if ((flags & VOCAB_ADD_SPECIAL) && v->add_eos)
        TRY(encoder_push(e, v->special.eos, err));
    return SINTER_OK;
}

sinter_status vocab_encode_counted(const struct vocab *v, const char *text, size_t bytes,
                                   unsigned flags, struct vocab_ids *ids, uint64_t *work,
                                   sinter_error *err)
{
    struct encoder e = {.v = v, .host = v->host, .ids = ids, .text = text, .bytes = bytes};
    const size_t n = ids->n;
    sinter_status status = encode_all(&e, flags, err);

    if (status != SINTER_OK)
        ids->n = n;
    host_free(e.host, e.sym);
    host_free(e.host, e.heap);
    host_free(e.host, e.cache);
    *work = e.work;
    return status;
}

sinter_status vocab_encode(const struct vocab *v, const char *text, size_t bytes, unsigned flags,
                           struct vocab_ids *ids, sinter_error *err)
{
    uint64_t work;

    return vocab_encode_counted(v, text, bytes, flags, ids, &work, err);
}
