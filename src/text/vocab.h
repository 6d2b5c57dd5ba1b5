/* Vocabularies and tokenizers: the tables of a GGUF file, checked once and then frozen, so that one
 * vocabulary may be used by any number of threads at once.
 *
 * Two kinds of tokenizer: byte-level BPE (`gpt2`; words are cut by the splitter that
 * pretokenizers.def names for `tokenizer.ggml.pre`) and SentencePiece BPE (`llama`; scores, byte
 * tokens). Any bytes may be encoded, and vocab_decode gives the same bytes back; a byte that the
 * vocabulary has no token for (SmolLM2 lacks 21 of the 256) is refused. Time is near-linear in the
 * text, whatever it is; hashes are salted, so that no file can make it otherwise. */
#ifndef TEXT_VOCAB_H
#define TEXT_VOCAB_H

#include "base/host.h"
#include "base/text_buf.h"

struct gguf;

enum vocab_model {
    VOCAB_NONE, /* ids only: asking for text is SINTER_E_UNSUPPORTED */
    VOCAB_BPE,
    VOCAB_SPM
};

enum vocab_type { /* the file's numbers */
                  VOCAB_UNDEFINED,
                  VOCAB_NORMAL,
                  VOCAB_UNKNOWN,
                  VOCAB_CONTROL,
                  VOCAB_USER_DEFINED,
                  VOCAB_UNUSED,
                  VOCAB_BYTE,
                  VOCAB_N_TYPE
};

/* Ids of special tokens, -1 where the vocabulary has none. */
struct vocab_special {
    int32_t bos, eos, eot, eom, unk, sep, pad, cls, mask;
    int32_t fim_pre, fim_suf, fim_mid, fim_pad, fim_rep, fim_sep;
};

struct vocab;

/* Copies all that it needs: g may be closed afterwards. pre_override: NULL or "" = the option
 * pre_tokenizer, and without it the file's. Unknown model or pre-tokenizer: UNSUPPORTED. */
CHECKED sinter_status vocab_open(const struct gguf *g, const char *pre_override, struct vocab **out,
                                 sinter_error *err);
void vocab_free(struct vocab *v);

enum vocab_model vocab_model(const struct vocab *v);
int32_t vocab_n(const struct vocab *v); /* tokens; VOCAB_NONE: <arch>.vocab_size, 0 if unknown */
const struct vocab_special *vocab_special(const struct vocab *v);
bool vocab_is_eog(const struct vocab *v, int32_t id); /* ends generation; false out of range */
/* The default chat template of the file (NUL-terminated), or NULL. */
const char *vocab_template(const struct vocab *v, size_t *bytes);

/* For `sinter inspect`: kind, size, special tokens; text or a JSON object. */
void vocab_print(const struct vocab *v, struct text_buf *b, bool json);

/* ---- Text to ids ----------------------------------------------------------------------------- */

struct vocab_ids { /* zero at first; freed by vocab_ids_free */
    int32_t *id;
    size_t n, cap;
};
void vocab_ids_free(const struct vocab *v, struct vocab_ids *ids);

enum {
    VOCAB_ADD_SPECIAL = 1, /* bos and eos as the file asks */
    VOCAB_PARSE_SPECIAL =
        2 /* spelt-out control tokens become their id; user-defined ones always do */
};
/* Appends to ids. */
CHECKED sinter_status vocab_encode(const struct vocab *v, const char *text, size_t bytes,
                                   unsigned flags, struct vocab_ids *ids, sinter_error *err);

/* ---- Ids to text ----------------------------------------------------------------------------- */

enum {
    DETOK_SPECIAL = 1, /* control tokens as their text; else they give nothing */
    DETOK_START = 2    /* the ids start a text: takes back the blank that encoding put before it */
};
/* The exact bytes, valid UTF-8 or not, appended to out. */
CHECKED sinter_status vocab_decode(const struct vocab *v, const int32_t *id, size_t n,
                                   unsigned flags, struct text_buf *out, sinter_error *err);

/* Streaming: what comes out is always whole, valid UTF-8. Bytes of an unfinished sequence are held
 * back; what can no longer become valid comes out as U+FFFD, one per maximal ill-formed part. */
struct detok {
    const struct vocab *v;
    unsigned flags;
    bool strip; /* the next blank is the encoder's */
    uint8_t n_held;
    char held[4];
};
void detok_init(struct detok *d, const struct vocab *v, unsigned flags);
CHECKED sinter_status detok_push(struct detok *d, int32_t id, struct text_buf *out,
                                 sinter_error *err);
/* At the end of the text: held-back bytes come out as U+FFFD. */
void detok_flush(struct detok *d, struct text_buf *out);

#endif
