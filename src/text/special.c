/* Special tokens: their ids by key or text, the set that ends generation, and the trie that finds
 * them in a text. The tables below are the only place that knows names of special tokens. */
#include <string.h>

#include "base/options.h"
#include "text/vocab_priv.h"

struct special_row {
    size_t offset; /* in struct vocab_special */
    const char *key, *old_key;
    const char *text[8]; /* what it is called where no key says so, best first */
};

#define ID(field) offsetof(struct vocab_special, field)
static const struct special_row special_rows[] = {
    {ID(bos), "bos", NULL, {NULL}},
    {ID(eos), "eos", NULL, {NULL}},
    {ID(unk), "unknown", NULL, {NULL}},
    {ID(sep), "seperator", NULL, {NULL}}, /* the key is spelt so */
    {ID(pad), "padding", NULL, {NULL}},
    {ID(cls), "cls", NULL, {NULL}},
    {ID(mask), "mask", NULL, {NULL}},
    {ID(eot),
     "eot",
     NULL,
     {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<turn|>", "<|EOT|>", "<EOT>"}},
    {ID(eom), "eom", NULL, {"<|eom_id|>"}},
    {ID(fim_pre), "fim_pre", "prefix", {"<|fim_prefix|>", "<fim_prefix>", "<fim-prefix>", "<PRE>"}},
    {ID(fim_suf), "fim_suf", "suffix", {"<|fim_suffix|>", "<fim_suffix>", "<fim-suffix>", "<SUF>"}},
    {ID(fim_mid), "fim_mid", "middle", {"<|fim_middle|>", "<fim_middle>", "<fim-middle>", "<MID>"}},
    {ID(fim_pad), "fim_pad", NULL, {"<|fim_pad|>", "<fim_pad>", "<fim-pad>", "<PAD>"}},
    {ID(fim_rep),
     "fim_rep",
     NULL,
     {"<|fim_repo|>", "<|repo_name|>", "<repo_name>", "<reponame>", "<fim-repo>", "<REPO>"}},
    {ID(fim_sep), "fim_sep", NULL, {"<|file_sep|>", "<file_sep>"}},
};

/* Tokens of these texts end generation. A user-defined one counts too, but for </s>, which is a tag
 * of HTML in some vocabularies. */
static const char *const eog_texts[] = {
    "<|im_end|>",
    "<|end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<end_of_turn>",
    "<turn|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|EOT|>",
    "<EOT>",
    "_<EOT>",
    "<end_of_utterance>",
    "<|end_of_turn|>",
    "</s>",
    "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",
};

/* Keys of tokenizer.* beside those above that sinter reads, or that change nothing that it does. */
static const char *const known_keys[] = {
    "ggml.model",
    "ggml.pre",
    "ggml.tokens",
    "ggml.token_type",
    "ggml.scores",
    "ggml.merges",
    "ggml.add_bos_token",
    "ggml.add_eos_token",
    "ggml.added_tokens",
    "ggml.token_type_count",
    "ggml.add_space_prefix",
    "ggml.add_sep_token",
    "ggml.remove_extra_whitespaces",
    "chat_template",
    "chat_templates",
    "huggingface.json",
};

enum { KEY_BYTES = 64 };

const struct gguf_kv *vocab_key(const struct gguf *g, const char *key)
{
    return options_list_has(host_options(g->host)->skip_key, key) ? NULL : gguf_find(g, key);
}

static const char *key_name(char buf[KEY_BYTES], const char *name)
{
    size_t n = strlen(name);

    memcpy(buf, "tokenizer.ggml.", 15);
    memcpy(buf + 15, name, n);
    memcpy(buf + 15 + n, "_token_id", 10);
    return buf;
}

static int32_t *field(struct vocab_special *s, const struct special_row *row)
{
    return (int32_t *)(void *)((char *)s + row->offset);
}

static sinter_status read_id(struct vocab *v, const struct gguf *g, const char *name, int32_t *out,
                             sinter_error *err)
{
    char key[KEY_BYTES];
    const struct gguf_kv *kv = vocab_key(g, key_name(key, name));
    int64_t id = -1;
    sinter_status status;

    if (!kv)
        return SINTER_OK;
    if (kv->value.type == GGUF_ARRAY)
        return FAIL(err, DATA, "%s: %s is an array, not one id; leave it out with --skip-key %s",
                    v->path, key, key);
    status = gguf_value_int(kv, 0, &id, err);
    if (status != SINTER_OK)
        return status_prefix(err, status, "%s", v->path);
    if (id < 0 || id >= v->n)
        return FAIL(err, DATA,
                    "%s: %s = %lld is no token: the vocabulary has %d; leave the key out with "
                    "--skip-key %s",
                    v->path, key, (long long)id, v->n, key);
    *out = (int32_t)id;
    return SINTER_OK;
}

/* The id of a special token of that text, or -1. */
static int32_t find_special(const struct vocab *v, const char *text)
{
    int32_t id = vocab_index_find(&v->by_text, text, strlen(text));

    if (id < 0 || v->type[id] == VOCAB_CONTROL)
        return id;
    return v->type[id] == VOCAB_USER_DEFINED && strcmp(text, "</s>") != 0 ? id : -1;
}

static sinter_status load_ids(struct vocab *v, const struct gguf *g, sinter_error *err)
{
    for (size_t i = 0; i < sizeof special_rows / sizeof *special_rows; i++) {
        const struct special_row *row = &special_rows[i];
        int32_t *id = field(&v->special, row);
        *id = -1;
        TRY(read_id(v, g, row->key, id, err));
        if (*id < 0 && row->old_key)
            TRY(read_id(v, g, row->old_key, id, err));
        for (size_t k = 0; *id < 0 && k < 8 && row->text[k]; k++)
            *id = find_special(v, row->text[k]);
    }
    return SINTER_OK;
}

static void load_eog(struct vocab *v, const struct gguf *g)
{
    const struct vocab_special *s = &v->special;
    const int32_t ids[] = {s->eos, s->eot, s->eom, s->fim_pad, s->fim_rep, s->fim_sep};
    char key[KEY_BYTES];

    for (size_t i = 0; i < sizeof eog_texts / sizeof *eog_texts; i++) {
        int32_t id = find_special(v, eog_texts[i]);
        if (id >= 0)
            v->eog[id] = 1;
    }
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (ids[i] >= 0)
            v->eog[ids[i]] = 1;
    /* Vocabularies that end a turn with return and call use end between the parts of one. */
    int32_t end = find_special(v, "<|end|>");
    bool parts = (find_special(v, "<|return|>") >= 0 && find_special(v, "<|call|>") >= 0) ||
                 (find_special(v, "<|flush|>") >= 0 && find_special(v, "<|calls|>") >= 0);
    if (end < 0 || !parts || end == s->eos)
        return;
    if (end == s->eot && !vocab_key(g, key_name(key, "eot")))
        v->special.eot = -1;
    if (end != s->eot)
        v->eog[end] = 0;
}

static sinter_status read_flag(const struct gguf *g, const char *key, bool *out, sinter_error *err)
{
    return vocab_key(g, key) ? gguf_get_bool(g, key, out, err) : SINTER_OK;
}

static sinter_status load_flags(struct vocab *v, const struct gguf *g, sinter_error *err)
{
    const bool spm = v->model == VOCAB_SPM;
    bool sep = false, squeeze = false, asked = false;

    v->add_bos = (spm || (v->split->flags & SPLIT_ADD_BOS)) && v->special.bos >= 0;
    v->space_prefix = spm;
    if (vocab_key(g, "tokenizer.ggml.add_bos_token"))
        TRY(gguf_get_bool(g, "tokenizer.ggml.add_bos_token", &v->add_bos, err));
    TRY(read_flag(g, "tokenizer.ggml.add_eos_token", &v->add_eos, err));
    if (v->add_bos && v->special.bos < 0)
        return FAIL(err, DATA,
                    "%s: add_bos_token is set, but there is no bos_token_id; leave the "
                    "key out with --skip-key tokenizer.ggml.add_bos_token",
                    v->path);
    if (v->add_eos && v->special.eos < 0)
        return FAIL(err, DATA,
                    "%s: add_eos_token is set, but there is no eos_token_id; leave the "
                    "key out with --skip-key tokenizer.ggml.add_eos_token",
                    v->path);
    TRY(read_flag(g, "tokenizer.ggml.add_space_prefix", spm ? &v->space_prefix : &asked, err));
    TRY(read_flag(g, "tokenizer.ggml.add_sep_token", &sep, err));
    TRY(read_flag(g, "tokenizer.ggml.remove_extra_whitespaces", &squeeze, err));
    if (sep || squeeze || asked)
        return host_warn(v->host, err,
                         "%s: tokenizer.ggml.%s is set, but this kind of tokenizer "
                         "does not apply it",
                         v->path,
                         sep       ? "add_sep_token"
                         : squeeze ? "remove_extra_whitespaces"
                                   : "add_space_prefix");
    return SINTER_OK;
}

static bool is_known(const char *name)
{
    char key[KEY_BYTES];

    for (size_t i = 0; i < sizeof known_keys / sizeof *known_keys; i++)
        if (strcmp(name, known_keys[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof special_rows / sizeof *special_rows; i++)
        if (strcmp(name, key_name(key, special_rows[i].key) + 10) == 0 ||
            (special_rows[i].old_key &&
             strcmp(name, key_name(key, special_rows[i].old_key) + 10) == 0))
            return true;
    return strncmp(name, "chat_template.", 14) == 0;
}

static sinter_status warn_unknown(const struct vocab *v, const struct gguf *g, sinter_error *err)
{
    for (size_t i = 0; i < g->n_kv; i++) {
        const char *key = g->kv[i].key;
        if (strncmp(key, "tokenizer.", 10) == 0 && !is_known(key + 10) && vocab_key(g, key))
            TRY(host_warn(v->host, err,
                          "%s: unknown key %s has no effect; leave it out with --skip-key %s",
                          v->path, key, key));
    }
    return SINTER_OK;
}

/* ---- Trie ------------------------------------------------------------------------------------ */

static struct vocab_edge *edge_slot(const struct vocab *v, uint32_t node, uint8_t byte)
{
    const struct vocab_trie *t = &v->trie;
    const uint32_t key = (node << 8 | byte) + 1;
    uint32_t i = (uint32_t)vocab_mix(key ^ v->salt) & t->mask;

    while (t->edge[i].key != 0 && t->edge[i].key != key)
        i = (i + 1) & t->mask;
    return &t->edge[i];
}

static void trie_add(struct vocab *v, int32_t id)
{
    struct vocab_trie *t = &v->trie;
    const struct vocab_str s = v->text[id];
    uint32_t node = 0;

    t->first[(uint8_t)s.text[0]] |= special_is_control(v, id) ? 2 : 1;
    for (size_t i = 0; i < s.bytes; i++) {
        struct vocab_edge *e = edge_slot(v, node, (uint8_t)s.text[i]);
        if (e->key == 0) {
            e->key = (node << 8 | (uint8_t)s.text[i]) + 1;
            e->node = t->n_node;
            t->id[t->n_node++] = -1;
        }
        node = e->node;
    }
    t->id[node] = id;
}

static bool in_trie(const struct vocab *v, int32_t id)
{
    return v->text[id].bytes > 0 &&
           (special_is_control(v, id) || v->type[id] == VOCAB_USER_DEFINED);
}

static sinter_status load_trie(struct vocab *v, sinter_error *err)
{
    struct vocab_trie *t = &v->trie;
    size_t n_node = 1, n_slot = 16;

    for (int32_t id = 0; id < v->n; id++) {
        if (!in_trie(v, id))
            continue;
        if (v->text[id].bytes > VOCAB_SPECIAL_BYTES_MAX)
            return FAIL(err, LIMIT,
                        "%s: special token %d is %zu bytes long; sinter takes at most "
                        "%d",
                        v->path, id, v->text[id].bytes, VOCAB_SPECIAL_BYTES_MAX);
        n_node += v->text[id].bytes;
    }
    if (n_node >= 1u << 23)
        return FAIL(err, LIMIT,
                    "%s: the special tokens are %zu bytes together; sinter takes at "
                    "most %u",
                    v->path, n_node, 1u << 23);
    while (n_slot < n_node * 2)
        n_slot *= 2;
    t->edge = arena_alloc_n(&v->arena, n_slot, sizeof *t->edge);
    t->id = arena_alloc_n(&v->arena, n_node, sizeof *t->id);
    if (!t->edge || !t->id)
        return host_no_memory(err, n_slot, sizeof *t->edge, "trie of special tokens");
    t->mask = (uint32_t)n_slot - 1;
    t->n_node = 1;
    t->id[0] = -1;
    for (int32_t id = 0; id < v->n; id++)
        if (in_trie(v, id))
            trie_add(v, id);
    return SINTER_OK;
}

int32_t special_match(const struct vocab *v, const char *text, size_t bytes, bool all, size_t *len,
                      uint64_t *work)
{
    const struct vocab_trie *t = &v->trie;
    int32_t best = -1;
    uint32_t node = 0;

    if (!(t->first[(uint8_t)text[0]] & (all ? 3 : 1)))
        return -1;
    for (size_t i = 0; i < bytes; i++) {
        const struct vocab_edge *e = edge_slot(v, node, (uint8_t)text[i]);
        ++*work;
        if (e->key == 0)
            break;
        node = e->node;
        const int32_t id = t->id[node];
        if (id >= 0 && (all || !special_is_control(v, id))) {
            best = id;
            *len = i + 1;
        }
    }
    return best;
}

static void print_token(const struct vocab *v, const char *name, int32_t id, struct text_buf *b,
                        bool json)
{
    text_buf_printf(b, json ? "{\"as\":\"%s\",\"id\":%d,\"text\":" : "  %-8s %8d  ", name, id);
    text_buf_json(b, v->text[id].text, v->text[id].bytes);
    text_buf_printf(b, json ? "}" : "\n");
}

void special_print(const struct vocab *v, struct text_buf *b, bool json)
{
    const char *comma = "";

    text_buf_printf(b, json ? "[" : "");
    for (size_t i = 0; i < sizeof special_rows / sizeof *special_rows; i++) {
        const int32_t id =
            *(const int32_t *)(const void *)((const char *)&v->special + special_rows[i].offset);
        if (id < 0)
            continue;
        text_buf_printf(b, "%s", comma);
        print_token(v, special_rows[i].key, id, b, json);
        comma = json ? "," : "";
    }
    for (int32_t id = 0; v->eog && id < v->n; id++) {
        if (!v->eog[id])
            continue;
        text_buf_printf(b, "%s", comma);
        print_token(v, "ends", id, b, json);
        comma = json ? "," : "";
    }
    text_buf_printf(b, json ? "]" : "");
}

sinter_status special_load(struct vocab *v, const struct gguf *g, sinter_error *err)
{
    TRY(load_ids(v, g, err));
    load_eog(v, g);
    TRY(load_flags(v, g, err));
    TRY(warn_unknown(v, g, err));
    return load_trie(v, err);
}
