/* The vocabulary of dummies: byte-level BPE with all 256 bytes, a few merges and specials, so that
 * any text goes in and comes out; larger ones are filled up with made-up words. */
#include "model/dummy.h"

#include <stdio.h>
#include <string.h>

static const char *const specials[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
static const char *const merges[] = {
    "Ġ t", "Ġ a", "h e", "i n", "r e", "o n",  "Ġt he", "e r", "a t",
    "n d", "o u", "Ġ s", "l l", "Ġ w", "in g", "Ġa nd", "Ġ Ġ", "o r",
};
enum {
    N_SPECIAL = sizeof specials / sizeof specials[0],
    N_MERGE = sizeof merges / sizeof merges[0],
    N_BYTE = 256,
    N_SMALL = N_SPECIAL + N_BYTE + N_MERGE,
    TYPE_NORMAL = 1,
    TYPE_CONTROL = 3,
    TOKEN_BYTES = 16
};

static const char template[] =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

int dummy_vocab_small(void)
{
    return N_SMALL;
}

/* The printable character that byte-level vocabularies write for a byte, as UTF-8. */
static void byte_text(int byte, char text[4])
{
    int code = byte, n_before = 0;
    for (int b = 0; b <= byte; b++) {
        bool plain = (b >= 33 && b <= 126) || (b >= 161 && b != 173);
        if (!plain && b == byte)
            code = 256 + n_before;
        n_before += !plain;
    }
    if (code < 128) {
        snprintf(text, 4, "%c", code);
        return;
    }
    text[0] = (char)(0xc0 | code >> 6);
    text[1] = (char)(0x80 | (code & 0x3f));
    text[2] = 0;
}

/* "Ġt he" -> "Ġthe" */
static void merged(const char *merge, char *text)
{
    for (; *merge; merge++)
        if (*merge != ' ')
            *text++ = *merge;
    *text = 0;
}

static sinter_status put_tokens(struct gguf_writer *w, struct arena *a, int n, sinter_error *err)
{
    struct gguf_string *s = arena_alloc_n(a, (size_t)n, sizeof *s);
    char(*text)[TOKEN_BYTES] = arena_alloc_n(a, (size_t)n, TOKEN_BYTES);
    int32_t *type = arena_alloc_n(a, (size_t)n, sizeof *type);
    if (!s || !text || !type)
        return FAIL(err, MEMORY, "no memory for a vocabulary of %d tokens", n);
    for (int i = 0; i < n; i++) {
        type[i] = i < N_SPECIAL ? TYPE_CONTROL : TYPE_NORMAL;
        if (i < N_SPECIAL)
            snprintf(text[i], TOKEN_BYTES, "%s", specials[i]);
        else if (i < N_SPECIAL + N_BYTE)
            byte_text(i - N_SPECIAL, text[i]);
        else if (i < N_SMALL)
            merged(merges[i - N_SPECIAL - N_BYTE], text[i]);
        else
            snprintf(text[i], TOKEN_BYTES, "word%d", i);
        s[i] = (struct gguf_string){text[i], strlen(text[i])};
    }
    TRY(gguf_put_array(w, "tokenizer.ggml.tokens", GGUF_STRING, s, (size_t)n, err));
    return gguf_put_array(w, "tokenizer.ggml.token_type", GGUF_I32, type, (size_t)n, err);
}

sinter_status dummy_put_vocab(struct gguf_writer *w, struct arena *a, const char *pre, int n_vocab,
                              sinter_error *err)
{
    struct gguf_string s[N_MERGE];
    for (int i = 0; i < N_MERGE; i++)
        s[i] = (struct gguf_string){merges[i], strlen(merges[i])};
    TRY(gguf_put_string(w, "tokenizer.ggml.model", "gpt2", 4, err));
    TRY(gguf_put_string(w, "tokenizer.ggml.pre", pre, strlen(pre), err));
    TRY(put_tokens(w, a, n_vocab, err));
    TRY(gguf_put_array(w, "tokenizer.ggml.merges", GGUF_STRING, s, N_MERGE, err));
    TRY(gguf_put_u32(w, "tokenizer.ggml.bos_token_id", 1, err));
    TRY(gguf_put_u32(w, "tokenizer.ggml.eos_token_id", 2, err));
    TRY(gguf_put_u32(w, "tokenizer.ggml.unknown_token_id", 0, err));
    TRY(gguf_put_u32(w, "tokenizer.ggml.padding_token_id", 2, err));
    TRY(gguf_put_bool(w, "tokenizer.ggml.add_bos_token", false, err));
    TRY(gguf_put_bool(w, "tokenizer.ggml.add_space_prefix", false, err));
    return gguf_put_string(w, "tokenizer.chat_template", template, strlen(template), err);
}
