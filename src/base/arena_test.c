#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/arena.h"
#include "fault_loop.h"

static void test_blocks(void **state)
{
    enum { N = 4000 };
    static unsigned char *block[N];
    static size_t size[N];
    struct arena a;
    sinter_host *host;
    (void)state;
    assert_int_equal(sinter_host_create(NULL, &host, NULL), SINTER_OK);
    arena_init(&a, host);
    for (size_t i = 0; i < N; i++) {
        size[i] = i % 97 == 0 ? 300000 : i * 7919 % 211;
        block[i] = arena_alloc(&a, size[i]);
        assert_non_null(block[i]);
        assert_int_equal((uintptr_t)block[i] % 16, 0);
        for (size_t j = 0; j < size[i]; j++)
            assert_int_equal(block[i][j], 0);
        memset(block[i], (int)(i & 255), size[i]);
    }
    for (size_t i = 0; i < N; i++) /* nothing overlaps */
        for (size_t j = 0; j < size[i]; j++)
            assert_int_equal(block[i][j], i & 255);
    assert_true(host_usage(host).bytes >= a.bytes);
    assert_true(host_usage(host).bytes < a.bytes + (3 << 20)); /* little is lost */
    arena_free(&a);
    assert_int_equal(host_usage(host).n_live, 0);
    assert_non_null(arena_alloc(&a, 5)); /* may be used again */
    arena_free(&a);
    sinter_host_free(host);
}

static void test_text(void **state)
{
    struct arena a;
    sinter_host *host;
    char *text;
    (void)state;
    assert_int_equal(sinter_host_create(NULL, &host, NULL), SINTER_OK);
    arena_init(&a, host);
    text = arena_strndup(&a, "layer\0norm", 10);
    assert_memory_equal(text, "layer\0norm", 11);
    assert_string_equal(arena_strndup(&a, NULL, 0), "");
    assert_string_equal(arena_printf(&a, "blk.%d.%s", 31, "attn_norm"), "blk.31.attn_norm");
    text = arena_printf(&a, "%5000d", 1);
    assert_int_equal(strlen(text), 5000);
    arena_free(&a);
    sinter_host_free(host);
}

static void test_no_memory(void **state)
{
    struct fault fault = {.kind = FAULT_ALLOC, .at = 3};
    struct arena a;
    sinter_host *host = fault_host(&fault);
    (void)state;
    arena_init(&a, host);
    assert_non_null(arena_alloc(&a, 100));
    assert_null(arena_alloc(&a, 100000)); /* the third allocation: host, chunk, chunk */
    assert_non_null(arena_alloc(&a, 100));
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - 15));
    assert_null(arena_alloc_n(&a, SIZE_MAX / 2, 3));
    assert_null(arena_strndup(&a, "", SIZE_MAX));
    fault.at = fault.n[FAULT_ALLOC] + 1;
    assert_null(arena_printf(&a, "%9000d", 1));
    arena_free(&a);
    sinter_host_free(host);
    assert_int_equal(fault.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks), cmocka_unit_test(test_text),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
