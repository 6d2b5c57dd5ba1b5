/* sinter_engine_cost of a dummy against the count by hand; the rows of the options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sinter.h"
#include "temp_folder.h"

/* llama-f32: all F32, tied head, 277 tokens, width 16, 2 layers of 2 and 1 KV heads, K 8, V 12. */
enum { N_VOCAB = 277, WIDTH = 16, N_LAYER = 2, KV_HEADS = 3, K_AND_V = 20, F16_BYTES = 2 };
enum { LAST = WIDTH * (4 * 8 + 4 * 12 + 3 * 40) };

static void test_cost(void **state)
{
    char path[TEMP_PATH];
    sinter_dummy_options dummy = {.size = sizeof dummy, .arch = "llama", .kind = "f32", .seed = 1};
    sinter_model_info info = {.size = sizeof info};
    sinter_host *host;
    sinter_model *model;
    sinter_engine *engine;
    sinter_cost one, five;
    (void)state;
    temp_path("dummy.gguf", path);
    assert_int_equal(sinter_host_create(NULL, &host, NULL), SINTER_OK);
    assert_int_equal(sinter_dummy_write(host, &dummy, path, NULL), SINTER_OK);
    assert_int_equal(sinter_model_open(host, path, NULL, &model, NULL), SINTER_OK);
    assert_int_equal(sinter_engine_create(model, NULL, &engine, NULL), SINTER_OK);
    sinter_model_describe(model, &info);
    assert_int_equal(info.n_vocab, N_VOCAB);
    const uint64_t head = N_VOCAB * WIDTH, norms = WIDTH * (2 * N_LAYER + 1);
    sinter_engine_cost(engine, 9, 1, &one);
    assert_int_equal(one.macs, info.n_weight - norms);
    assert_int_equal(one.weight_bytes, 4 * (one.macs + WIDTH)); /* and the token's own row */
    assert_int_equal(one.kv_bytes, 10 * KV_HEADS * K_AND_V * F16_BYTES);
    sinter_engine_cost(engine, 0, 5, &five);
    /* Behind the last K and V only the last row goes on: its layer's q, output and ffn. */
    assert_int_equal(five.macs, 5 * (one.macs - head - LAST) + LAST + head);
    assert_int_equal(five.weight_bytes, one.weight_bytes + 4 * 4 * WIDTH);
    assert_int_equal(five.kv_bytes, 5 * KV_HEADS * K_AND_V * F16_BYTES);
    assert_true(sinter_host_n_thread(host) >= 1);
    sinter_engine_free(engine);
    sinter_model_close(model);
    sinter_host_free(host);
}

static void test_options(void **state)
{
    sinter_host *host;
    sinter_option o;
    int n = 0;
    (void)state;
    assert_int_equal(sinter_host_create(NULL, &host, NULL), SINTER_OK);
    for (; sinter_option_at(n, &o); n++) {
        assert_true(*o.name && *o.help);
        const char *value = *o.value ? o.def : "on";
        if (*value) /* each default is one of its own values */
            assert_int_equal(sinter_host_set(host, o.name, value, NULL), SINTER_OK);
    }
    assert_true(n > 5);
    assert_false(sinter_option_at(-1, &o));
    sinter_host_free(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cost), cmocka_unit_test(test_options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
