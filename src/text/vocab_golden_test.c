/* Tokenizers against Hugging Face (tests/golden/tokens_*.jsonl) and llama.cpp (.inp and .out beside
 * the vocabulary), on vocabulary-only files. They are no part of the tree: without them each counts
 * as skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "text/vocab_golden.h"

#define VOCAB  TEST_SHARED_DIR "/vocab/ggml-vocab-"
#define TOKENS TEST_SOURCE_DIR "/tests/golden/tokens_"

static size_t n_case, n_ok, n_skipped, n_file;

static void one(const char *path, const char *jsonl)
{
    struct golden t;
    sinter_error err = {0};
    n_file++;
    if (access(path, R_OK) != 0) {
        n_skipped++;
        return;
    }
    if (!golden_open(&t, path, &err) || !golden_inp_out(&t, path, &err))
        fail_msg("%s", err.message);
#ifdef HAVE_jansson
    if (jsonl && !golden_jsonl(&t, jsonl, 0))
        fail_msg("%s cannot be read", jsonl);
#endif
    for (int b = 0; b < 256; b++) {
        const char text[] = {(char)b, 'a', ' ', (char)b, (char)b, 'b'};
        t.n_case++;
        t.n_ok += golden_round_trips(&t, text, sizeof text, 0);
    }
    n_case += t.n_case;
    n_ok += t.n_ok;
    golden_close(&t);
}

static void known(void **state)
{
    (void)state;
    one(VOCAB "llama-bpe.gguf", TOKENS "llama-bpe.jsonl");
    one(VOCAB "qwen2.gguf", TOKENS "qwen2.jsonl");
    one(VOCAB "phi-3.gguf", TOKENS "phi-3.jsonl");
}

static void unknown(void **state)
{
    static const char *const path[] = {VOCAB "deepseek-coder.gguf", VOCAB "bert-bge.gguf"};
    static const char *const says[] = {"'deepseek-coder'", "'bert'"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct golden t;
        sinter_error err = {0};
        n_file++;
        if (access(path[i], R_OK) != 0) {
            n_skipped++;
            continue;
        }
        n_case++;
        n_ok += !golden_open(&t, path[i], &err) && err.status == SINTER_E_UNSUPPORTED &&
                strstr(err.message, says[i]);
        golden_close(&t);
    }
}

/* Files of the tree: with a tiny vocabulary, and with none. */
static void tiny(void **state)
{
    static const struct {
        const char *name;
        int32_t n;
        enum vocab_model model;
    } file[] = {{"llama", 288, VOCAB_BPE},    {"llama3", 288, VOCAB_BPE},
                {"qwen2", 288, VOCAB_BPE},    {"qwen3", 288, VOCAB_BPE},
                {"qwen3moe", 288, VOCAB_BPE}, {"gemma3", 256, VOCAB_NONE}};
    (void)state;
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        struct golden t;
        sinter_error err = {0};
        char path[512];
        snprintf(path, sizeof path, TEST_SOURCE_DIR "/tests/golden/tiny/%s.gguf", file[i].name);
        if (!golden_open(&t, path, &err))
            fail_msg("%s", err.message);
        n_case++;
        n_ok += vocab_n(t.v) == file[i].n && vocab_model(t.v) == file[i].model &&
                (!file[i].model || golden_round_trips(&t, "any \xFF\x00 bytes", 13, 0));
        golden_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known), cmocka_unit_test(unknown),
                                       cmocka_unit_test(tiny)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("tokens: %zu/%zu\n", n_ok, n_case);
    if (n_skipped)
        printf("SKIPPED %zu of %zu vocabularies: not in " TEST_SHARED_DIR "/vocab\n", n_skipped,
               n_file);
    return failed || n_ok != n_case ? 1 : n_skipped ? 77 : 0;
}
