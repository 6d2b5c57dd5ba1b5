/* The tokenizers of the real models: ids as Hugging Face gives them, round trips of random bytes,
 * special tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "text/vocab_golden.h"

#define SMOLLM2 TEST_MODELS_DIR "/SmolLM2-135M-Instruct.Q4_1.gguf"
#define GEMMA3  TEST_MODELS_DIR "/gemma-3-270m.Q4_K_M.gguf"
#define TOKENS  TEST_SOURCE_DIR "/tests/golden/tokens_"

static size_t n_case, n_ok, n_skipped;
static uint64_t seed = 88172645463325252u;

static uint32_t rnd(uint32_t n)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (uint32_t)(seed >> 33) % n;
}

/* Random bytes, of those that the vocabulary can say, with whole characters among them. */
static void random_bytes(struct golden *t)
{
    static const char *const parts[] = {
        "the ",     "    ", "\n\n\n", "\xE2\x96\x81", "\xF0\x9F\xA6\x99", "<strong>", "<|im_end|>",
        "\xC3\xA9", "\t\t", "> </",   "1234"};
    for (int round = 0; round < 1000; round++) {
        char text[600];
        const size_t want = rnd(500);
        size_t n = 0;
        while (n < want) {
            const uint32_t r = rnd(30);
            const char byte = (char)rnd(256);
            if (r < sizeof parts / sizeof *parts) {
                memcpy(text + n, parts[r], strlen(parts[r]));
                n += strlen(parts[r]);
            } else if (t->v->byte_id[(uint8_t)byte] >= 0) {
                text[n++] = byte;
            }
        }
        t->n_case++;
        t->n_ok += golden_round_trips(t, text, n, round & 1 ? VOCAB_PARSE_SPECIAL : 0);
    }
}

static bool open_model(struct golden *t, const char *path)
{
    sinter_error err = {0};
    if (access(path, R_OK) != 0) {
        printf("SKIPPED %s: not there; `make test` fetches it\n", path);
        n_skipped++;
        return false;
    }
    if (!golden_open(t, path, &err))
        fail_msg("%s", err.message);
    assert_int_equal(host_warnings(t->host), 0);
    return true;
}

static void compare(struct golden *t, const char *jsonl)
{
#ifdef HAVE_jansson
    if (!golden_jsonl(t, jsonl, 0))
        fail_msg("%s cannot be read", jsonl);
#endif
    random_bytes(t);
    n_case += t->n_case;
    n_ok += t->n_ok;
    golden_close(t);
}

static void smollm2(void **state)
{
    struct golden t;
    struct vocab_ids ids = {0};
    sinter_error err = {0};
    (void)state;
    if (!open_model(&t, SMOLLM2))
        return;
    const struct vocab_special *s = vocab_special(t.v);
    assert_int_equal(vocab_n(t.v), 49152);
    assert_true(s->bos == 1 && s->eos == 2 && s->pad == 2 && s->unk == 0 && s->eot == 2);
    assert_false(t.v->add_bos);
    assert_true(vocab_is_eog(t.v, 0) && vocab_is_eog(t.v, 2) && !vocab_is_eog(t.v, 1));
    assert_int_equal(vocab_encode(t.v, "ok \x04", 4, 0, &ids, &err), SINTER_E_DATA);
    assert_non_null(strstr(err.message, "0x04"));
    vocab_ids_free(t.v, &ids);
    compare(&t, TOKENS "smollm2.jsonl");
}

static void gemma3(void **state)
{
    struct golden t;
    (void)state;
    if (!open_model(&t, GEMMA3))
        return;
    const struct vocab_special *s = vocab_special(t.v);
    assert_int_equal(vocab_n(t.v), 262144);
    assert_true(s->bos == 2 && s->eos == 1 && s->pad == 0 && s->unk == 3 && s->eot == 106);
    assert_true(t.v->add_bos && !t.v->add_eos);
    assert_true(vocab_is_eog(t.v, 1) && vocab_is_eog(t.v, 106));
    assert_false(vocab_is_eog(t.v, 212)); /* </s>: here a tag of HTML */
    compare(&t, TOKENS "gemma3.jsonl");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(smollm2), cmocka_unit_test(gemma3)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("tokens: %zu/%zu\n", n_ok, n_case);
    return failed || n_ok != n_case ? 1 : n_skipped ? 77 : 0;
}
