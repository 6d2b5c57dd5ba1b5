/* Inside of src/text's tokenizers: the frozen tables of a vocabulary, and what one call of
 * vocab_encode owns. Nothing here changes after vocab_open, so no lock is needed. */
#ifndef TEXT_VOCAB_PRIV_H
#define TEXT_VOCAB_PRIV_H

#include "base/arena.h"
#include "gguf/gguf.h"
#include "text/split.h"
#include "text/unicode.h"
#include "text/vocab.h"

struct vocab_str {
    const char *text;
    size_t bytes;
};

/* Open-addressed table from a string to an id; its size is a power of 2. A slot is 0 = empty, or
 * id + 1 with more bits of the hash above: most other strings need not be looked at. */
struct vocab_index {
    const struct vocab_str *str; /* by id */
    uint64_t salt;               /* the vocabulary's */
    uint32_t *slot;
    uint32_t mask, id_mask;
};

/* BPE: what the pair (left, right) merges to; left < 0 = empty slot. */
struct vocab_merge {
    int32_t left, right, id;
    uint32_t rank;
};

/* Special tokens by their text: a trie whose edges are an open-addressed table. Node 0 = root. */
struct vocab_edge {
    uint32_t key; /* (node << 8 | byte) + 1, 0 = empty */
    uint32_t node;
};
struct vocab_trie {
    struct vocab_edge *edge;
    uint32_t mask, n_node;
    int32_t *id;        /* by node, -1 = inner */
    uint8_t first[256]; /* 1 = begins a user-defined token, 2 = another special one */
};

struct vocab {
    sinter_host *host;
    struct arena arena;
    char *path; /* for messages */
    enum vocab_model model;
    int32_t n;
    uint64_t salt;                  /* of all hashes: a file cannot choose what falls together */
    struct vocab_str *text, *piece; /* by id */
    uint8_t *type, *eog;
    float *score;                         /* SPM */
    struct vocab_index by_text, by_piece; /* by_piece: normal tokens */
    struct vocab_trie trie;
    int32_t byte_id[256]; /* -1 = the vocabulary cannot say this byte */
    struct vocab_special special;
    bool add_bos, add_eos, space_prefix;
    struct vocab_str template;
    /* BPE */
    const struct split_row *split;
    uint8_t *class;
    struct vocab_merge *merge;
    uint32_t merge_mask;
    /* SPM: bytes that some token has right before a blank; before others a text may be cut. */
    uint8_t joins_blank[256];
    bool has_bytes;   /* byte tokens exist */
    size_t piece_max; /* bytes of the longest normal token */
};

/* Trie nodes may be as many as the bytes of special tokens, and matching looks at no more bytes
 * than this at each place of a text. */
enum { VOCAB_SPECIAL_BYTES_MAX = 1024 };

static inline uint64_t vocab_mix(uint64_t h)
{
    h ^= h >> 32;
    h *= 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
    return h;
}
uint64_t vocab_hash_bytes(uint64_t salt, const char *text, size_t bytes);

CHECKED sinter_status vocab_index_init(struct vocab *v, struct vocab_index *x,
                                       const struct vocab_str *str, sinter_error *err);
/* The id that `s` already has, or -1 and `id` is added. */
int32_t vocab_index_add(struct vocab_index *x, struct vocab_str s, int32_t id);
int32_t vocab_index_find(const struct vocab_index *x, const char *text, size_t bytes);

/* The key, or NULL if it is absent or named by the option skip_key. */
const struct gguf_kv *vocab_key(const struct gguf *g, const char *key);

/* special.c: reads special ids, add_*, end-of-generation set; builds the trie. */
CHECKED sinter_status special_load(struct vocab *v, const struct gguf *g, sinter_error *err);
/* The special tokens that there are: id and text of each. */
void special_print(const struct vocab *v, struct text_buf *b, bool json);
/* The longest special token that text begins with, or -1; `all`: also control tokens. */
int32_t special_match(const struct vocab *v, const char *text, size_t bytes, bool all, size_t *len,
                      uint64_t *work);
static inline bool special_is_control(const struct vocab *v, int32_t id)
{
    return v->type[id] == VOCAB_CONTROL || v->type[id] == VOCAB_UNKNOWN;
}

CHECKED sinter_status bpe_load(struct vocab *v, const struct gguf *g, const char *pre,
                               sinter_error *err);
CHECKED sinter_status spm_load(struct vocab *v, const struct gguf *g, sinter_error *err);

/* ---- One call of vocab_encode ---------------------------------------------------------------- */

struct merge_sym {
    uint32_t prev, next; /* UINT32_MAX = none */
    uint32_t start, len; /* bytes of the word; len = 0: merged away */
    int32_t id;          /* -1: no token */
};

struct merge_entry {
    uint32_t key, left; /* order: lowest key first, then leftmost */
    uint32_t left_len, right_len;
    int32_t id;
};

struct word_cache {
    const char *text;
    uint32_t bytes, n;
    size_t first; /* its ids are ids->id[first .. first + n) */
};

struct encoder {
    const struct vocab *v;
    sinter_host *host;
    struct vocab_ids *ids;
    const char *word; /* the word being merged */
    struct merge_sym *sym;
    struct merge_entry *heap;
    struct word_cache *cache; /* NULL: text too short to pay for it */
    size_t sym_cap, heap_cap, n_heap;
    const char *text; /* the whole text, for offsets in messages */
    size_t bytes;
    uint64_t work; /* steps taken, for the test of near-linear time */
};

/* Does the pair of neighbours merge? key: lower first. */
typedef bool (*merge_pair_fn)(struct encoder *e, const struct merge_sym *left,
                              const struct merge_sym *right, uint32_t *key, int32_t *id);

/* Room for n symbols of e->word. */
CHECKED sinter_status merge_begin(struct encoder *e, size_t n, sinter_error *err);
/* Merges e->sym[0 .. n) (start, len, id set; in order, without gaps) until no pair merges; what is
 * left hangs together by .next from e->sym[0] on. */
CHECKED sinter_status merge_run(struct encoder *e, size_t n, merge_pair_fn pair, sinter_error *err);

CHECKED sinter_status encoder_push(struct encoder *e, int32_t id, sinter_error *err);
/* The ids of a word seen before in this call: pushes them and says so in *hit. Else the caller
 * encodes and then calls put with ids->n as it was before. */
CHECKED sinter_status encoder_cached(struct encoder *e, const char *word, size_t bytes, bool *hit,
                                     sinter_error *err);
void encoder_cache_put(struct encoder *e, const char *word, size_t bytes, size_t first);
CHECKED sinter_status encoder_no_byte(struct encoder *e, const char *at, sinter_error *err);

CHECKED sinter_status bpe_encode(struct encoder *e, const char *text, size_t bytes,
                                 sinter_error *err);
CHECKED sinter_status spm_encode(struct encoder *e, const char *text, size_t bytes, bool prefix,
                                 sinter_error *err);
/* vocab_encode that tells its steps. */
CHECKED sinter_status vocab_encode_counted(const struct vocab *v, const char *text, size_t bytes,
                                           unsigned flags, struct vocab_ids *ids, uint64_t *work,
                                           sinter_error *err);

#endif
