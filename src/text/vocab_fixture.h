/* For tests and the fuzz target of src/text: small vocabularies written into memory, which a test
 * may damage before they are saved. */
#ifndef TEXT_VOCAB_FIXTURE_H
#define TEXT_VOCAB_FIXTURE_H

#include <stdio.h>

#include "fault_hooks.h"
#include "gguf/gguf.h"
#include "text/unicode.h"
#include "text/vocab_priv.h"

enum { FIXTURE_TOKENS = 1024 };

struct fixture {
    struct memory_file file;
    struct fault fault; /* counts what is live; reads and writes `file` */
    sinter_host *host;
    struct gguf *g;
    /* Contents: an absent text or n = 0 leaves the key out. */
    const char *model, *pre;
    struct gguf_string token[FIXTURE_TOKENS], merge[FIXTURE_TOKENS];
    int32_t type[FIXTURE_TOKENS];
    float score[FIXTURE_TOKENS];
    size_t n_token, n_type, n_score, n_merge;
    struct {
        const char *key;
        enum gguf_type type;
        uint32_t value;
    } more[16];
    size_t n_more;
    char text[1 << 16]; /* of tokens and merges */
    size_t n_text;
    uint64_t seed;
};

static inline struct gguf_string fixture_text(struct fixture *f, const char *text, size_t bytes)
{
    char *copy = f->text + f->n_text;
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    f->n_text += bytes + 1;
    return (struct gguf_string){copy, bytes};
}

static inline int32_t fixture_token(struct fixture *f, const char *text, int32_t type, float score)
{
    const size_t i = f->n_token++;
    f->token[i] = fixture_text(f, text, strlen(text));
    f->type[i] = type;
    f->score[i] = score;
    f->n_type = f->n_token;
    f->n_score = f->n_score ? f->n_token : 0;
    return (int32_t)i;
}

static inline void fixture_merge(struct fixture *f, const char *left, const char *right)
{
    char buf[256];
    const int n = snprintf(buf, sizeof buf, "%s %s", left, right);
    f->merge[f->n_merge++] = fixture_text(f, buf, (size_t)n);
}

static inline void fixture_more(struct fixture *f, const char *key, enum gguf_type type,
                                uint32_t value)
{
    f->more[f->n_more].key = key;
    f->more[f->n_more].type = type;
    f->more[f->n_more++].value = value;
}

/* The character that byte-level BPE spells the byte with. */
static inline size_t fixture_byte_char(int byte, char buf[5])
{
    int other = 0, i;
    uint32_t point = (uint32_t)byte;
    for (i = 0; i <= byte; i++) {
        const bool self = (i >= 0x21 && i <= 0x7E) || (i >= 0xA1 && i != 0xAD);
        if (i == byte && !self)
            point = 0x100 + (uint32_t)other;
        other += !self;
    }
    const size_t n = unicode_put(point, buf);
    buf[n] = 0;
    return n;
}

/* All 256 bytes (ids 0..255), some merges, special tokens from id 300 on. */
static inline void fixture_bpe(struct fixture *f)
{
    static const char *const pairs[][2] = {
        {"t", "h"},
        {"th", "e"},
        {"\xC4\xA0", "the"},
        {"a", "a"},
        {"aa", "aa"},
        {"aaaa", "aaaa"},
        {"\xC4\xA0", "\xC4\xA0"},
        {"\xC4\xA0\xC4\xA0", "\xC4\xA0\xC4\xA0"},
        {"1", "2"},
        {"12", "3"},
        {"h", "e"},
    };
    char buf[64];
    f->model = "gpt2";
    f->pre = "gpt-2";
    for (int b = 0; b < 256; b++) {
        fixture_byte_char(b, buf);
        fixture_token(f, buf, VOCAB_NORMAL, 0);
    }
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        snprintf(buf, sizeof buf, "%s%s", pairs[i][0], pairs[i][1]);
        fixture_token(f, buf, VOCAB_NORMAL, 0);
        fixture_merge(f, pairs[i][0], pairs[i][1]);
    }
    fixture_token(f, "whole", VOCAB_NORMAL, 0); /* no merges make it: only IGNORE_MERGES finds it */
    while (f->n_token < 300) {
        snprintf(buf, sizeof buf, "<unused%zu>", f->n_token);
        fixture_token(f, buf, VOCAB_UNUSED, 0);
    }
    fixture_token(f, "<|im_start|>", VOCAB_CONTROL, 0);
    fixture_token(f, "<|im_end|>", VOCAB_CONTROL, 0);
    fixture_token(f, "<tool>", VOCAB_USER_DEFINED, 0);
    fixture_token(f, "<tool><x>", VOCAB_USER_DEFINED, 0);
    fixture_token(f, "</s>", VOCAB_USER_DEFINED, 0);
    fixture_more(f, "tokenizer.ggml.bos_token_id", GGUF_U32, 300);
    fixture_more(f, "tokenizer.ggml.eos_token_id", GGUF_U32, 301);
}

/* unk 0, bos 1, eos 2, bytes 3..258, then words with falling scores. */
static inline void fixture_spm(struct fixture *f)
{
    static const char *const words[] = {
        "\xE2\x96\x81",
        "t",
        "h",
        "e",
        "a",
        "th",
        "\xE2\x96\x81t",
        "he",
        "the",
        "aa",
        "aaaa",
        "\xE2\x96\x81the",
        "\xE2\x96\x81\xE2\x96\x81",
        "\xC3\xA9",
        "a\xE2\x96\x81t",
    };
    char buf[64];
    f->model = "llama";
    f->n_score = 1;
    fixture_token(f, "<unk>", VOCAB_UNKNOWN, 0);
    fixture_token(f, "<s>", VOCAB_CONTROL, 0);
    fixture_token(f, "</s>", VOCAB_CONTROL, 0);
    for (int b = 0; b < 256; b++) {
        snprintf(buf, sizeof buf, "<0x%02X>", (unsigned)b);
        fixture_token(f, buf, VOCAB_BYTE, 0);
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        fixture_token(f, words[i], VOCAB_NORMAL, -(float)i);
    fixture_token(f, "<tool>", VOCAB_USER_DEFINED, 0);
    fixture_token(f, "   ", VOCAB_USER_DEFINED, 0);
    fixture_more(f, "tokenizer.ggml.unknown_token_id", GGUF_U32, 0);
    fixture_more(f, "tokenizer.ggml.bos_token_id", GGUF_U32, 1);
    fixture_more(f, "tokenizer.ggml.eos_token_id", GGUF_U32, 2);
}

static inline sinter_status fixture_put(struct fixture *f, struct gguf_writer *w, sinter_error *err)
{
    if (f->model)
        TRY(gguf_put_string(w, "tokenizer.ggml.model", f->model, strlen(f->model), err));
    if (f->pre)
        TRY(gguf_put_string(w, "tokenizer.ggml.pre", f->pre, strlen(f->pre), err));
    if (f->n_token)
        TRY(gguf_put_array(w, "tokenizer.ggml.tokens", GGUF_STRING, f->token, f->n_token, err));
    if (f->n_type)
        TRY(gguf_put_array(w, "tokenizer.ggml.token_type", GGUF_I32, f->type, f->n_type, err));
    if (f->n_score)
        TRY(gguf_put_array(w, "tokenizer.ggml.scores", GGUF_F32, f->score, f->n_score, err));
    if (f->n_merge)
        TRY(gguf_put_array(w, "tokenizer.ggml.merges", GGUF_STRING, f->merge, f->n_merge, err));
    for (size_t i = 0; i < f->n_more; i++) {
        if (f->more[i].type == GGUF_BOOL)
            TRY(gguf_put_bool(w, f->more[i].key, f->more[i].value != 0, err));
        else
            TRY(gguf_put_u32(w, f->more[i].key, f->more[i].value, err));
    }
    return SINTER_OK;
}

/* Writes the contents to memory and opens them as f->g. */
static inline sinter_status fixture_open(struct fixture *f, sinter_error *err)
{
    const sinter_hooks hooks = fault_hooks(&f->fault);
    struct gguf_writer *w;
    TRY(sinter_host_create(&(sinter_host_options){.hooks = &hooks}, &f->host, err));
    TRY(gguf_writer_create(f->host, &w, err));
    sinter_status status = fixture_put(f, w, err);
    if (status == SINTER_OK)
        status = gguf_writer_save(w, "memory", NULL, NULL, err);
    gguf_writer_free(w);
    TRY(status);
    f->file.data = f->file.written;
    f->file.bytes = f->file.n_written;
    return gguf_open(f->host, "memory", &f->g, err);
}

static inline void fixture_close(struct fixture *f)
{
    gguf_close(f->g);
    sinter_host_free(f->host);
    free(f->file.written);
    free(f);
}

static inline struct fixture *fixture_new(void (*fill)(struct fixture *f))
{
    struct fixture *f = calloc(1, sizeof *f);
    f->seed = 88172645463325252u;
    f->fault.file = &f->file;
    fill(f);
    return f;
}

static inline uint32_t fixture_random(struct fixture *f, uint32_t n)
{
    f->seed ^= f->seed << 13;
    f->seed ^= f->seed >> 7;
    f->seed ^= f->seed << 17;
    return (uint32_t)(f->seed >> 33) % n;
}

#endif
