/* Tokenizers on small vocabularies: encoding against slow references, round trips of any bytes,
 * streaming, special tokens, hostile vocabularies, faults, linear time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault_loop.h"
#include "text/vocab_fixture.h"

static size_t n_case, n_ok; /* of the line `tokens: N/N` */

#define CASE(x)                                                                                    \
    do {                                                                                           \
        bool case_ok_ = (x);                                                                       \
        n_case++;                                                                                  \
        n_ok += case_ok_;                                                                          \
        if (!case_ok_)                                                                             \
            print_error("%s:%d: %s\n", __FILE__, __LINE__, #x);                                    \
    } while (0)

static struct vocab *open_vocab(struct fixture *f)
{
    sinter_error err = {0};
    struct vocab *v = NULL;
    if (fixture_open(f, &err) != SINTER_OK || vocab_open(f->g, NULL, &v, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    return v;
}

static void close_vocab(struct fixture *f, struct vocab *v)
{
    vocab_free(v);
    gguf_close(f->g);
    sinter_host_free(f->host);
    CASE(f->fault.live == 0);
    free(f->file.written);
    free(f);
}

/* Encodes and compares with the n ids given. */
static bool encodes(const struct vocab *v, const char *text, unsigned flags, int n, ...)
{
    struct vocab_ids ids = {0};
    sinter_error err = {0};
    bool same =
        vocab_encode(v, text, strlen(text), flags, &ids, &err) == SINTER_OK && ids.n == (size_t)n;
    va_list args;
    va_start(args, n);
    for (int i = 0; i < n; i++)
        same = (va_arg(args, int) == (i < (int)ids.n ? ids.id[i] : -1)) && same;
    va_end(args);
    if (!same) {
        print_error("'%s' %s:", text, err.message);
        for (size_t i = 0; i < ids.n; i++)
            print_error(" %d", ids.id[i]);
        print_error("\n");
    }
    vocab_ids_free(v, &ids);
    return same;
}

static bool decodes(const struct vocab *v, const int32_t *id, size_t n, unsigned flags,
                    const char *text, size_t bytes)
{
    struct text_buf b;
    sinter_error err;
    text_buf_init(&b, v->host);
    bool same = vocab_decode(v, id, n, flags, &b, &err) == SINTER_OK && b.bytes == bytes &&
                (!bytes || memcmp(b.text, text, bytes) == 0);
    text_buf_free(&b);
    return same;
}

static bool round_trips(const struct vocab *v, const char *text, size_t bytes, unsigned flags)
{
    struct vocab_ids ids = {0};
    sinter_error err;
    bool same = vocab_encode(v, text, bytes, flags, &ids, &err) == SINTER_OK &&
                decodes(v, ids.id, ids.n, DETOK_SPECIAL | DETOK_START, text, bytes);
    vocab_ids_free(v, &ids);
    return same;
}

static void bpe_small(void **state)
{
    struct fixture *f = fixture_new(fixture_bpe);
    struct vocab *v = open_vocab(f);
    (void)state;
    const int the = 257, s_the = 258, a2 = 259, a4 = 260, a8 = 261, blank2 = 262, n123 = 265;
    CASE(vocab_model(v) == VOCAB_BPE && strcmp(v->split->name, "gpt-2") == 0 && vocab_n(v) == 305);
    CASE(encodes(v, "", 0, 0));
    CASE(encodes(v, "the", 0, 1, the));
    CASE(encodes(v, "the the", 0, 2, the, s_the));
    CASE(encodes(v, "aaaaaaaaaaa", 0, 3, a8, a2, 'a'));
    CASE(encodes(v, "aaaa", 0, 1, a4));
    CASE(encodes(v, "123", 0, 1, n123));
    CASE(encodes(v, "   the", 0, 2, blank2, s_the));
    CASE(encodes(v, "whole", 0, 5, 'w', 'h', 'o', 'l', 'e'));
    CASE(encodes(v, "<|im_end|>", 0, 10, '<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|', '>'));
    CASE(encodes(v, "<|im_end|>a", VOCAB_PARSE_SPECIAL, 2, 301, 'a'));
    CASE(encodes(v, "a<tool><x><tool>", 0, 3, 'a', 303, 302));
    CASE(encodes(v, "the", VOCAB_ADD_SPECIAL, 1, the));
    CASE(encodes(v, "a\xFF", 0, 2, 'a', 0xFF));
    int32_t ids[] = {300, 'a', 301};
    CASE(decodes(v, ids, 3, 0, "a", 1));
    CASE(decodes(v, ids, 3, DETOK_SPECIAL, "<|im_start|>a<|im_end|>", 23));
    close_vocab(f, v);
}

static void bpe_flags(void **state)
{
    struct fixture *f = fixture_new(fixture_bpe);
    (void)state;
    f->pre = "llama-bpe";
    struct vocab *v = open_vocab(f);
    CASE(v->add_bos && !v->add_eos);
    CASE(encodes(v, "whole", VOCAB_ADD_SPECIAL, 2, 300, 267));
    CASE(encodes(v, "1234", 0, 2, 265, '4'));
    close_vocab(f, v);

    f = fixture_new(fixture_bpe);
    f->pre = "smollm";
    fixture_more(f, "tokenizer.ggml.add_bos_token", GGUF_BOOL, 1);
    fixture_more(f, "tokenizer.ggml.add_eos_token", GGUF_BOOL, 1);
    v = open_vocab(f);
    CASE(encodes(v, "123 the", VOCAB_ADD_SPECIAL, 6, 300, '1', '2', '3', 258, 301));
    close_vocab(f, v);
}

static void spm_small(void **state)
{
    struct fixture *f = fixture_new(fixture_spm);
    struct vocab *v = open_vocab(f);
    const int blank = 259, e = 262, a = 263, th = 264, he = 266, a4 = 269, blank2 = 271;
    (void)state;
    CASE(v->add_bos && vocab_model(v) == VOCAB_SPM);
    CASE(encodes(v, "", VOCAB_ADD_SPECIAL, 1, 1));
    CASE(encodes(v, "the", 0, 1, 270));
    CASE(encodes(v, "thhe", 0, 3, blank, th, he)); /* th scores above ▁t */
    CASE(encodes(v, "he", 0, 2, blank, he));
    CASE(encodes(v, " ", 0, 1, blank2));
    CASE(encodes(v, "x", 0, 2, blank, 3 + 'x'));
    CASE(encodes(v, "\xC3\xA9\xC3", 0, 3, blank, 272, 3 + 0xC3));
    CASE(encodes(v, "<tool>a", 0, 3, 274, blank, a));
    CASE(encodes(v, "\xE2\x96\x81", 0, 4, blank, 3 + 0xE2, 3 + 0x96, 3 + 0x81));
    CASE(encodes(v, "</s>", VOCAB_PARSE_SPECIAL, 1, 2));
    CASE(encodes(v, "aaaa", 0, 2, blank, a4));
    close_vocab(f, v);

    f = fixture_new(fixture_spm);
    fixture_more(f, "tokenizer.ggml.add_space_prefix", GGUF_BOOL, 0);
    v = open_vocab(f);
    CASE(encodes(v, "he", 0, 1, he));
    CASE(encodes(v, "a t", 0, 1, 273)); /* a token that reaches over a blank */
    CASE(encodes(v, "e t", 0, 2, e, 265));
    close_vocab(f, v);
}

/* ---- Against slow references ----------------------------------------------------------------- */

enum { LETTERS = 3, MERGES = 60, WORD = 90 };

struct slow {
    char sym[WORD][WORD + 1];
    int n;
};

static void slow_join(struct slow *s, int i)
{
    const size_t n = strlen(s->sym[i]);
    memmove(s->sym[i] + n, s->sym[i + 1], strlen(s->sym[i + 1]) + 1);
    memmove(s->sym[i + 1], s->sym[i + 2], (size_t)(s->n - i - 2) * sizeof s->sym[0]);
    s->n--;
}

static int merge_rank(const struct fixture *f, const char *left, const char *right)
{
    char both[2 * WORD + 2];
    snprintf(both, sizeof both, "%s %s", left, right);
    for (size_t i = 0; i < f->n_merge; i++)
        if (strcmp(f->merge[i].text, both) == 0)
            return (int)i;
    return -1;
}

static void slow_merge(const struct fixture *f, struct slow *s)
{
    for (;;) {
        int best = -1;
        double best_key = 0;
        for (int i = 0; i + 1 < s->n; i++) {
            char both[2 * WORD + 1];
            double key = -1;
            if (f->n_merge) {
                key = merge_rank(f, s->sym[i], s->sym[i + 1]);
            } else {
                snprintf(both, sizeof both, "%s%s", s->sym[i], s->sym[i + 1]);
                for (size_t k = 259; k < f->n_token; k++)
                    if (strcmp(f->token[k].text, both) == 0)
                        key = 1000 - f->score[k];
            }
            if (key >= 0 && (best < 0 || key < best_key)) {
                best = i;
                best_key = key;
            }
        }
        if (best < 0)
            return;
        slow_join(s, best);
    }
}

static bool as_slow(struct fixture *f, const struct vocab *v, const char *word)
{
    struct slow s = {.n = 0};
    struct vocab_ids ids = {0};
    sinter_error err;
    for (; word[s.n]; s.n++)
        snprintf(s.sym[s.n], sizeof s.sym[0], "%c", word[s.n]);
    slow_merge(f, &s);
    bool same =
        vocab_encode(v, word, strlen(word), 0, &ids, &err) == SINTER_OK && ids.n == (size_t)s.n;
    for (int i = 0; same && i < s.n; i++)
        same = ids.id[i] == vocab_index_find(&v->by_text, s.sym[i], strlen(s.sym[i]));
    vocab_ids_free(v, &ids);
    return same;
}

/* Random merges over three letters; equal scores and overlapping pairs are frequent. */
static void random_tokens(struct fixture *f, bool spm)
{
    const size_t first = f->n_token;
    char buf[WORD];
    for (int i = 0; spm && i < LETTERS; i++) {
        snprintf(buf, sizeof buf, "%c", 'p' + i);
        fixture_token(f, buf, VOCAB_NORMAL, 0);
    }
    for (int tries = 0; tries < MERGES * 4 && f->n_token < first + MERGES; tries++) {
        const char *half[2];
        for (int k = 0; k < 2; k++) {
            uint32_t r = fixture_random(f, LETTERS + (uint32_t)(f->n_token - first));
            half[k] = r < LETTERS ? f->token[spm ? first + r : 'p' + r].text
                                  : f->token[first + r - LETTERS].text;
        }
        bool known = strlen(half[0]) + strlen(half[1]) > 12;
        snprintf(buf, sizeof buf, "%s%s", half[0], half[1]);
        for (size_t i = 0; i < f->n_token; i++)
            known |= strcmp(f->token[i].text, buf) == 0;
        if (known)
            continue;
        fixture_token(f, buf, VOCAB_NORMAL, -(float)fixture_random(f, 20));
        if (!spm)
            fixture_merge(f, half[0], half[1]);
    }
}

static void against_slow(void **state)
{
    (void)state;
    for (int round = 0; round < 40; round++) {
        const bool spm = round & 1;
        struct fixture *f = fixture_new(spm ? fixture_spm : fixture_bpe);
        f->seed += (uint64_t)round * 977;
        f->n_merge = 0;
        random_tokens(f, spm);
        if (spm)
            fixture_more(f, "tokenizer.ggml.add_space_prefix", GGUF_BOOL, 0);
        struct vocab *v = open_vocab(f);
        for (int i = 0; i < 30; i++) {
            char word[WORD] = {0};
            const uint32_t n = 1 + fixture_random(f, WORD - 2);
            for (uint32_t k = 0; k < n; k++)
                word[k] = (char)('p' + fixture_random(f, LETTERS));
            CASE(as_slow(f, v, word));
        }
        close_vocab(f, v);
    }
}

/* A long text keeps a cache of words: it must give what its words give one by one. */
static void cached(void **state)
{
    enum { WORDS = 8000, LETTERS_IN_WORD = 7 };
    (void)state;
    for (int spm = 0; spm < 2; spm++) {
        struct fixture *f = fixture_new(spm ? fixture_spm : fixture_bpe);
        struct vocab_ids whole = {0}, part = {0};
        sinter_error err;
        size_t n = 0;
        f->n_merge = 0;
        random_tokens(f, spm);
        fixture_more(f, "tokenizer.ggml.add_space_prefix", GGUF_BOOL, 0);
        struct vocab *v = open_vocab(f);
        char *text = malloc(WORDS * (LETTERS_IN_WORD + 1));
        for (int i = 0; i < WORDS; i++) {
            char *word = text + n;
            word[0] = ' ';
            for (int k = 1; k <= LETTERS_IN_WORD; k++)
                word[k] = (char)('p' + fixture_random(f, LETTERS));
            n += LETTERS_IN_WORD + 1;
            if (vocab_encode(v, word, LETTERS_IN_WORD + 1, 0, &part, &err) != SINTER_OK)
                fail_msg("%s", err.message);
        }
        CASE(vocab_encode(v, text, n, 0, &whole, &err) == SINTER_OK && whole.n == part.n &&
             memcmp(whole.id, part.id, whole.n * sizeof *whole.id) == 0);
        free(text);
        vocab_ids_free(v, &whole);
        vocab_ids_free(v, &part);
        close_vocab(f, v);
    }
}

/* ---- Any bytes ------------------------------------------------------------------------------- */

static void any_bytes(void **state)
{
    static const char *const parts[] = {"the",
                                        " ",
                                        "  ",
                                        "\xC3\xA9",
                                        "\xE2\x96\x81",
                                        "<tool>",
                                        "</s>",
                                        "<|im_end|>",
                                        "\xF0\x9F\xA6\x99",
                                        "\xF0\x9F",
                                        "\xED\xA0\x80",
                                        "\xC0\x80",
                                        "\n",
                                        "\0",
                                        "aaaa",
                                        "<0x41>",
                                        "\xFF",
                                        "123",
                                        "'s"};
    char text[512];
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct fixture *f = fixture_new(kind ? fixture_spm : fixture_bpe);
        if (kind == 2)
            fixture_more(f, "tokenizer.ggml.add_space_prefix", GGUF_BOOL, 0);
        struct vocab *v = open_vocab(f);
        for (int round = 0; round < 400; round++) {
            size_t n = 0, want = fixture_random(f, 400);
            while (n < want) {
                uint32_t r = fixture_random(f, 40);
                if (r < sizeof parts / sizeof *parts) {
                    size_t len = strlen(parts[r]) + !*parts[r];
                    memcpy(text + n, parts[r], len);
                    n += len;
                } else {
                    text[n++] = (char)fixture_random(f, 256);
                }
            }
            CASE(round_trips(v, text, n, round & 1 ? VOCAB_PARSE_SPECIAL : 0));
        }
        close_vocab(f, v);
    }
}

/* What a stream gives for bytes pushed one id at a time. */
static bool streams(const struct vocab *v, const char *bytes, size_t n, const char *want)
{
    struct text_buf b;
    struct detok d;
    sinter_error err;
    bool whole = true;
    text_buf_init(&b, v->host);
    detok_init(&d, v, 0);
    for (size_t i = 0; i < n; i++) {
        whole &= detok_push(&d, v->byte_id[(uint8_t)bytes[i]], &b, &err) == SINTER_OK;
        for (size_t at = 0, len; at < b.bytes; at += len) {
            uint32_t point;
            whole &= unicode_scan(b.text + at, b.bytes - at, &len, &point) == UNICODE_VALID;
        }
    }
    detok_flush(&d, &b);
    bool same = whole && b.bytes == strlen(want) && memcmp(b.text, want, b.bytes) == 0;
    if (!same)
        print_error("streamed '%.*s' not '%s'\n", (int)b.bytes, b.bytes ? b.text : "", want);
    text_buf_free(&b);
    return same;
}

#define FFFD "\xEF\xBF\xBD"

static void streaming(void **state)
{
    struct fixture *f = fixture_new(fixture_bpe);
    struct vocab *v = open_vocab(f);
    sinter_error err;
    struct text_buf b;
    struct detok d;
    (void)state;
    CASE(streams(v, "h\xC3\xA9\xE2\x82\xAC\xF0\x9F\xA6\x99", 10,
                 "h\xC3\xA9\xE2\x82\xAC\xF0\x9F\xA6\x99"));
    CASE(streams(v, "\xF0\x9F\xA6", 3, FFFD));
    CASE(streams(v, "\xF0\x9F\x41", 3, FFFD "A"));
    CASE(streams(v, "\xE2\xC3\xA9", 3, FFFD "\xC3\xA9"));
    CASE(streams(v, "\x80\xC0\x80\xFF", 4, FFFD FFFD FFFD FFFD));
    CASE(streams(v, "\xED\xA0\x80", 3, FFFD FFFD FFFD));
    CASE(streams(v, "\xF0\x9F\xF0\x9F\xA6\x99", 6, FFFD "\xF0\x9F\xA6\x99"));
    text_buf_init(&b, f->host);
    detok_init(&d, v, 0);
    CASE(detok_push(&d, -1, &b, &err) == SINTER_E_USAGE);
    CASE(detok_push(&d, 305, &b, &err) == SINTER_E_USAGE && strstr(err.message, "305"));
    CASE(detok_push(&d, 301, &b, &err) == SINTER_OK && b.bytes == 0);
    text_buf_free(&b);
    close_vocab(f, v);

    /* The encoder's blank is taken back at the start and after special tokens, nowhere else. */
    f = fixture_new(fixture_spm);
    v = open_vocab(f);
    int32_t ids[] = {1, 259, 266, 259, 266, 2, 259, 266};
    CASE(decodes(v, ids, 8, DETOK_START, "he hehe", 7));
    CASE(decodes(v, ids, 8, 0, " he he he", 9));
    close_vocab(f, v);
}

/* ---- Special tokens -------------------------------------------------------------------------- */

static void special(void **state)
{
    struct fixture *f = fixture_new(fixture_bpe);
    (void)state;
    struct vocab *v = open_vocab(f);
    const struct vocab_special *s = vocab_special(v);
    CASE(s->bos == 300 && s->eos == 301 && s->eot == 301 && s->pad == -1 && s->unk == -1);
    CASE(vocab_is_eog(v, 301) && !vocab_is_eog(v, 300) && !vocab_is_eog(v, 304));
    CASE(!vocab_is_eog(v, -1) && !vocab_is_eog(v, 305));
    CASE(v->type[302] == VOCAB_USER_DEFINED && vocab_index_find(&v->by_text, "<tool>", 6) == 302);
    CASE(vocab_index_find(&v->by_text, "nothing", 7) == -1);
    close_vocab(f, v);

    f = fixture_new(fixture_bpe);
    fixture_token(f, "<|eot_id|>", VOCAB_CONTROL, 0);         /* 305 */
    fixture_token(f, "<|endoftext|>", VOCAB_USER_DEFINED, 0); /* 306 */
    fixture_token(f, "<end_of_turn>", VOCAB_NORMAL, 0);       /* 307: ordinary text */
    fixture_token(f, "<|fim_pad|>", VOCAB_CONTROL, 0);        /* 308 */
    fixture_token(f, "<|eom_id|>", VOCAB_CONTROL, 0);         /* 309 */
    fixture_more(f, "tokenizer.ggml.padding_token_id", GGUF_U32, 7);
    fixture_more(f, "tokenizer.ggml.prefix_token_id", GGUF_U32, 8);
    v = open_vocab(f);
    s = vocab_special(v);
    CASE(s->eot == 305 && s->eom == 309 && s->fim_pad == 308 && s->pad == 7 && s->fim_pre == 8);
    CASE(vocab_is_eog(v, 305) && vocab_is_eog(v, 306) && !vocab_is_eog(v, 307) &&
         vocab_is_eog(v, 308) && vocab_is_eog(v, 309) && vocab_is_eog(v, 301));
    close_vocab(f, v);

    /* With return and call, end stands between the parts of one turn. */
    f = fixture_new(fixture_spm);
    int32_t end = fixture_token(f, "<|end|>", VOCAB_CONTROL, 0);
    fixture_token(f, "<|return|>", VOCAB_CONTROL, 0);
    v = open_vocab(f);
    CASE(vocab_is_eog(v, end) && vocab_is_eog(v, end + 1));
    close_vocab(f, v);
    f = fixture_new(fixture_spm);
    fixture_token(f, "<|end|>", VOCAB_CONTROL, 0);
    fixture_token(f, "<|return|>", VOCAB_CONTROL, 0);
    fixture_token(f, "<|call|>", VOCAB_CONTROL, 0);
    v = open_vocab(f);
    CASE(!vocab_is_eog(v, end) && vocab_is_eog(v, end + 1) && vocab_is_eog(v, end + 2));
    CASE(vocab_special(v)->eot == -1);
    close_vocab(f, v);
}

static uint64_t unmix(uint64_t h)
{
    h ^= h >> 32;
    h *= 0xCFEE444D8B59A89Bu; /* the inverse of vocab_mix's factor */
    return h ^ h >> 32;
}

/* Tokens that would all fall on one slot if the hash were the same for every vocabulary. */
static void collisions(void **state)
{
    const uint32_t n_slot = 2 * FIXTURE_TOKENS;
    struct fixture *f = fixture_new(fixture_spm);
    uint32_t run = 0, longest = 0;
    uint64_t inverse = 0x9FB21C651E98DF25u;
    (void)state;
    for (int i = 0; i < 6; i++) /* Newton: 3 bits, 6, 12, ... */
        inverse *= 2 - 0x9FB21C651E98DF25u * inverse;
    CASE(unmix(vocab_mix(12345)) == 12345 && inverse * 0x9FB21C651E98DF25u == 1);
    while (f->n_token < FIXTURE_TOKENS) {
        const uint64_t x = unmix(unmix((uint64_t)f->n_token << 32) * inverse) ^ 8;
        const size_t i = f->n_token++;
        f->token[i] = fixture_text(f, (const char *)&x, sizeof x);
        f->type[i] = VOCAB_NORMAL;
        f->n_type = f->n_score = f->n_token;
    }
    struct vocab *v = open_vocab(f);
    for (uint32_t i = 0; i < n_slot && i <= v->by_text.mask; i++) {
        run = v->by_text.slot[i] ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    CASE(v->by_text.mask + 1 == n_slot && longest < 100);
    close_vocab(f, v);
}

static void printed(void **state)
{
    struct fixture *f = fixture_new(fixture_bpe);
    struct text_buf b;
    (void)state;
    struct vocab *v = open_vocab(f);
    text_buf_init(&b, f->host);
    vocab_print(v, &b, false);
    CASE(strncmp(b.text, "tokenizer: byte-level BPE, 305 tokens, words cut as by gpt-2", 60) == 0);
    CASE(strstr(b.text, "\n  bos           300  \"") &&
         strstr(b.text, "\n  ends          301  \""));
    b.bytes = 0;
    vocab_print(v, &b, true);
    CASE(strstr(b.text, "{\"tokenizer\":\"byte-level BPE\",\"pre\":\"gpt-2\",\"n_token\":305,") ==
         b.text);
    CASE(strstr(b.text, "\"special\":[{\"as\":\"bos\",\"id\":300,") && strstr(b.text, "\"}]}"));
    text_buf_free(&b);
    close_vocab(f, v);
}

/* ---- Files that are refused ------------------------------------------------------------------ */

static void bad_pre(struct fixture *f)
{
    f->pre = "llama-bpf";
}
static void no_pre(struct fixture *f)
{
    f->pre = NULL;
}
static void bad_model(struct fixture *f)
{
    f->model = "bert";
}
static void no_model(struct fixture *f)
{
    f->model = NULL;
}
static void no_tokens(struct fixture *f)
{
    f->n_token = 0;
}
static void short_types(struct fixture *f)
{
    f->n_type--;
}
static void long_types(struct fixture *f)
{
    f->n_type++;
}
static void type_7(struct fixture *f)
{
    f->type[5] = 7;
}
static void type_minus(struct fixture *f)
{
    f->type[5] = -1;
}
static void no_scores(struct fixture *f)
{
    f->n_score = 0;
}
static void short_scores(struct fixture *f)
{
    f->n_score--;
}
static void nan_score(struct fixture *f)
{
    f->score[260] = NAN;
}
static void twice(struct fixture *f)
{
    f->token[70] = f->token[71];
}
static void no_merges(struct fixture *f)
{
    f->n_merge = 0;
}
static void merge_left(struct fixture *f)
{
    fixture_merge(f, "zz", "a");
}
static void merge_right(struct fixture *f)
{
    fixture_merge(f, "a", "zz");
}
static void merge_makes(struct fixture *f)
{
    fixture_merge(f, "z", "z");
}
static void merge_blank(struct fixture *f)
{
    f->merge[3] = fixture_text(f, "aa", 2);
}
static void merge_half(struct fixture *f)
{
    f->merge[3] = fixture_text(f, "aa ", 3);
}
static void merge_twice(struct fixture *f)
{
    fixture_merge(f, "t", "h");
}
static void merge_empty(struct fixture *f)
{
    f->merge[3] = fixture_text(f, "", 0);
}
static void bos_range(struct fixture *f)
{
    f->more[0].value = 305;
}
static void eos_minus(struct fixture *f)
{
    f->more[1].value = UINT32_MAX;
}
static void bad_byte(struct fixture *f)
{
    f->token[10] = fixture_text(f, "<0xZZ>", 6);
}
static void merge_control(struct fixture *f)
{
    fixture_token(f, "ht", VOCAB_CONTROL, 0);
    fixture_merge(f, "h", "t");
}
static void add_eos_without(struct fixture *f)
{
    f->n_more = 1;
    fixture_more(f, "tokenizer.ggml.add_eos_token", GGUF_BOOL, 1);
}
static void add_bos_without(struct fixture *f)
{
    f->n_more = 0;
    fixture_more(f, "tokenizer.ggml.add_bos_token", GGUF_BOOL, 1);
}
static void bos_bool(struct fixture *f)
{
    f->more[0].type = GGUF_BOOL;
}
static void add_bos_u32(struct fixture *f)
{
    fixture_more(f, "tokenizer.ggml.add_bos_token", GGUF_U32, 1);
}
static void long_special(struct fixture *f)
{
    char text[VOCAB_SPECIAL_BYTES_MAX + 2];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    fixture_token(f, text, VOCAB_CONTROL, 0);
}

static const struct {
    void (*fill)(struct fixture *f), (*damage)(struct fixture *f);
    sinter_status status;
    const char *says;
} refused[] = {
    {fixture_bpe, bad_pre, SINTER_E_UNSUPPORTED, "'llama-bpf'"},
    {fixture_bpe, bad_pre, SINTER_E_UNSUPPORTED, "--pre-tokenizer"},
    {fixture_bpe, bad_pre, SINTER_E_UNSUPPORTED, "nearest: llama-bpe"},
    {fixture_bpe, no_pre, SINTER_E_NOT_FOUND, "--pre-tokenizer"},
    {fixture_bpe, bad_model, SINTER_E_UNSUPPORTED, "'bert'"},
    {fixture_bpe, no_model, SINTER_E_NOT_FOUND, "tokenizer.ggml.model"},
    {fixture_bpe, no_tokens, SINTER_E_NOT_FOUND, "tokenizer.ggml.tokens"},
    {fixture_bpe, short_types, SINTER_E_DATA, "token_type has 304 elements for 305"},
    {fixture_bpe, long_types, SINTER_E_DATA, "token_type has 306"},
    {fixture_bpe, type_7, SINTER_E_DATA, "token_type[5] = 7"},
    {fixture_bpe, type_minus, SINTER_E_DATA, "token_type[5] = -1"},
    {fixture_bpe, twice, SINTER_E_DATA, "tokens 70 and 71"},
    {fixture_bpe, no_merges, SINTER_E_NOT_FOUND, "tokenizer.ggml.merges"},
    {fixture_bpe, merge_left, SINTER_E_DATA, "first half"},
    {fixture_bpe, merge_right, SINTER_E_DATA, "second half"},
    {fixture_bpe, merge_makes, SINTER_E_DATA, "what it makes"},
    {fixture_bpe, merge_blank, SINTER_E_DATA, "merges[3]"},
    {fixture_bpe, merge_half, SINTER_E_DATA, "merges[3]"},
    {fixture_bpe, merge_empty, SINTER_E_DATA, "merges[3]"},
    {fixture_bpe, merge_twice, SINTER_E_DATA, "repeats merge 0"},
    {fixture_bpe, merge_control, SINTER_E_DATA, "control"},
    {fixture_bpe, bos_range, SINTER_E_DATA, "bos_token_id = 305"},
    {fixture_bpe, eos_minus, SINTER_E_DATA, "--skip-key tokenizer.ggml.eos_token_id"},
    {fixture_bpe, bos_bool, SINTER_E_DATA, "bos_token_id"},
    {fixture_bpe, add_bos_u32, SINTER_E_DATA, "add_bos_token"},
    {fixture_bpe, add_eos_without, SINTER_E_DATA, "eos_token_id"},
    {fixture_bpe, add_bos_without, SINTER_E_DATA, "bos_token_id"},
    {fixture_bpe, long_special, SINTER_E_LIMIT, "1024"},
    {fixture_spm, no_scores, SINTER_E_NOT_FOUND, "tokenizer.ggml.scores"},
    {fixture_spm, short_scores, SINTER_E_DATA, "scores has"},
    {fixture_spm, nan_score, SINTER_E_DATA, "scores[260]"},
    {fixture_spm, bad_byte, SINTER_E_DATA, "<0xZZ>"},
    {fixture_spm, twice, SINTER_E_DATA, "both"},
};

static void hostile(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct fixture *f = fixture_new(refused[i].fill);
        struct vocab *v = (void *)f;
        sinter_error err = {0};
        refused[i].damage(f);
        assert_int_equal(fixture_open(f, &err), SINTER_OK);
        sinter_status status = vocab_open(f->g, NULL, &v, &err);
        bool ok = status == refused[i].status && err.status == status && !v &&
                  strstr(err.message, refused[i].says) && strstr(err.message, "memory");
        if (!ok)
            print_error("%zu: %d not %d, '%s' should say '%s'\n", i, status, refused[i].status,
                        err.message, refused[i].says);
        CASE(ok);
        vocab_free(v);
        fixture_close(f);
    }
}

static void overrides(void **state)
{
    sinter_error err = {0};
    struct vocab *v;
    (void)state;
    struct fixture *f = fixture_new(fixture_bpe);
    f->pre = "of tomorrow";
    f->more[0].value = 9999;
    assert_int_equal(fixture_open(f, &err), SINTER_OK);
    CASE(vocab_open(f->g, "qwen2", &v, &err) == SINTER_E_DATA);
    CASE(sinter_host_set(f->host, "skip-key", "tokenizer.ggml.bos_token_id", &err) == SINTER_OK);
    CASE(vocab_open(f->g, "qwen2", &v, &err) == SINTER_OK && vocab_special(v)->bos == -1);
    CASE(strcmp(v->split->name, "qwen2") == 0);
    vocab_free(v);
    CASE(sinter_host_set(f->host, "pre-tokenizer", "smollm", &err) == SINTER_OK);
    CASE(vocab_open(f->g, NULL, &v, &err) == SINTER_OK && strcmp(v->split->name, "smollm") == 0);
    vocab_free(v);
    fixture_close(f);

    f = fixture_new(fixture_spm);
    assert_int_equal(fixture_open(f, &err), SINTER_OK);
    CASE(vocab_open(f->g, "qwen2", &v, &err) == SINTER_E_USAGE);
    fixture_close(f);
}

static void fill_none(struct fixture *f)
{
    f->model = "none";
    fixture_more(f, "x.vocab_size", GGUF_U32, 77);
}

static void without_tokenizer(void **state)
{
    struct fixture *f = fixture_new(fill_none);
    struct vocab *v = open_vocab(f);
    struct vocab_ids ids = {0};
    struct text_buf b;
    sinter_error err;
    (void)state;
    text_buf_init(&b, f->host);
    CASE(vocab_model(v) == VOCAB_NONE && vocab_n(v) == 0 && vocab_special(v)->eos == -1);
    CASE(vocab_encode(v, "a", 1, 0, &ids, &err) == SINTER_E_UNSUPPORTED &&
         strstr(err.message, "no tokenizer"));
    CASE(vocab_decode(v, (int32_t[]){1}, 1, 0, &b, &err) == SINTER_E_UNSUPPORTED);
    vocab_print(v, &b, false);
    CASE(!vocab_is_eog(v, 1) && strcmp(b.text, "tokenizer: none, 0 tokens\n") == 0);
    text_buf_free(&b);
    close_vocab(f, v);
}

static void no_byte_7(struct fixture *f)
{
    fixture_bpe(f);
    f->type[7] = VOCAB_UNUSED;
}

static void no_bytes(struct fixture *f)
{
    fixture_spm(f);
    for (int i = 3; i < 259; i++)
        f->type[i] = VOCAB_UNUSED;
}

static void missing_bytes(void **state)
{
    struct vocab_ids ids = {0};
    sinter_error err;
    (void)state;
    struct fixture *f = fixture_new(no_byte_7);
    struct vocab *v = open_vocab(f);
    CASE(vocab_encode(v, "the \a", 5, 0, &ids, &err) == SINTER_E_DATA && ids.n == 0 &&
         strstr(err.message, "0x07") && strstr(err.message, "byte 4 of 5"));
    vocab_ids_free(v, &ids);
    close_vocab(f, v);

    f = fixture_new(no_bytes);
    v = open_vocab(f);
    CASE(host_warnings(f->host) == 1);
    CASE(encodes(v, "ax", 0, 3, 259, 263, 0));
    close_vocab(f, v);
}

/* Every allocation of loading and encoding fails once: typed, and nothing stays behind. */
static sinter_status open_and_encode(void *ctx, sinter_error *err)
{
    struct fixture *f = ctx;
    struct vocab *v = NULL;
    struct vocab_ids ids = {0};
    char text[4000];
    memset(text, 'a', sizeof text);
    sinter_status status = vocab_open(f->g, NULL, &v, err);
    if (status == SINTER_OK)
        status = vocab_encode(v, text, sizeof text, 0, &ids, err);
    if (v)
        vocab_ids_free(v, &ids);
    vocab_free(v);
    return status;
}

static void faults(void **state)
{
    uint64_t n_fault = 0;
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct fixture *f = fixture_new(kind ? fixture_spm : fixture_bpe);
        sinter_error err = {0};
        assert_int_equal(fixture_open(f, &err), SINTER_OK);
        n_fault += fault_loop(kind ? "spm" : "bpe", &f->fault, FAULT_ALLOC, open_and_encode, f);
        fixture_close(f);
    }
    assert_true(n_fault > 20);
    n_case += n_fault + 2; /* and the two that work */
    n_ok += n_fault + 2;
}

/* ---- Linear time ----------------------------------------------------------------------------- */

static uint64_t steps(const struct vocab *v, const char *unit, size_t bytes)
{
    struct vocab_ids ids = {0};
    sinter_error err;
    uint64_t work;
    char *text = malloc(bytes);
    for (size_t i = 0, n = strlen(unit); i < bytes; i++)
        text[i] = unit[i % n];
    assert_int_equal(vocab_encode_counted(v, text, bytes, 0, &ids, &work, &err), SINTER_OK);
    vocab_ids_free(v, &ids);
    free(text);
    return work;
}

static void linear(void **state)
{
    static const char *const units[] = {"a", " ", "\n",       " \n", "the ",     "\xFF", "<tool",
                                        "'", "1", "\xC3\xA9", "t h", "<tool><x", "!"};
    static const char *const pres[] = {"gpt-2", "smollm", "llama-bpe", "qwen2", NULL};
    (void)state;
    for (int p = 0; p < 5; p++) {
        struct fixture *f = fixture_new(pres[p] ? fixture_bpe : fixture_spm);
        f->pre = pres[p];
        struct vocab *v = open_vocab(f);
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            const size_t small = 1 << 14, large = 1 << 20;
            const uint64_t a = steps(v, units[i], small), b = steps(v, units[i], large);
            const bool ok = b <= large * 100 && b <= a * (large / small) * 2;
            if (!ok)
                print_error("%s '%s': %llu steps for 16 KiB, %llu for 1 MiB\n",
                            pres[p] ? pres[p] : "spm", units[i], (unsigned long long)a,
                            (unsigned long long)b);
            CASE(ok);
        }
        close_vocab(f, v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bpe_small),
        cmocka_unit_test(bpe_flags),
        cmocka_unit_test(spm_small),
        cmocka_unit_test(against_slow),
        cmocka_unit_test(cached),
        cmocka_unit_test(any_bytes),
        cmocka_unit_test(streaming),
        cmocka_unit_test(special),
        cmocka_unit_test(collisions),
        cmocka_unit_test(hostile),
        cmocka_unit_test(printed),
        cmocka_unit_test(overrides),
        cmocka_unit_test(without_tokenizer),
        cmocka_unit_test(missing_bytes),
        cmocka_unit_test(faults),
        cmocka_unit_test(linear),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("tokens: %zu/%zu\n", n_ok, n_case);
    return failed || n_ok != n_case || n_case < 2000;
}
