#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/text_buf.h"
#include "fault_loop.h"

static void test_add(void **state)
{
    struct text_buf b;
    sinter_host *host;
    sinter_error err;
    (void)state;
    assert_int_equal(sinter_host_create(NULL, &host, NULL), SINTER_OK);
    text_buf_init(&b, host);
    assert_int_equal(text_buf_end(&b, &err), SINTER_OK);
    text_buf_add(&b, "", 0);
    assert_string_equal(b.text, "");
    for (int i = 0; i < 1000; i++) {
        text_buf_printf(&b, "%d,", i);
        text_buf_add(&b, "\n", 1);
    }
    assert_int_equal(b.bytes, 10 * 2 + 90 * 3 + 900 * 4 + 1000);
    assert_int_equal(b.bytes, strlen(b.text));
    assert_string_equal(b.text + b.bytes - 10, "998,\n999,\n");
    text_buf_free(&b);
    sinter_host_free(host);
}

static void test_json(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
        const char *json;
    } cases[] = {
        {"", 0, "\"\""},
        {"plain", 5, "\"plain\""},
        {"a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\""},
        {"\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\""},
        {"\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\\u007f\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\xc2\x80\xc2\x9b\xc2\xa0", 6, "\"\\u0080\\u009b\xc2\xa0\""},
        {"x\xff\xc3y", 4, "\"x\xef\xbf\xbd\xef\xbf\xbdy\""},
        {"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xe2\x82", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    struct text_buf b;
    sinter_host *host;
    (void)state;
    assert_int_equal(sinter_host_create(NULL, &host, NULL), SINTER_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_buf_init(&b, host);
        text_buf_json(&b, cases[i].text, cases[i].bytes);
        assert_string_equal(b.text, cases[i].json);
        text_buf_free(&b);
    }
    sinter_host_free(host);
}

static bool take(void *ctx, const char *text, size_t bytes)
{
    char *to = ctx;
    if (!to)
        return false;
    memcpy(to, text, bytes);
    to[bytes] = 0;
    return true;
}

static void test_flush(void **state)
{
    struct text_buf b;
    sinter_host *host;
    sinter_error err;
    char got[64] = "untouched";
    (void)state;
    assert_int_equal(sinter_host_create(NULL, &host, NULL), SINTER_OK);
    text_buf_init(&b, host);
    assert_int_equal(text_buf_flush(&b, take, got, &err), SINTER_OK);
    assert_string_equal(got, "untouched"); /* nothing to hand over */
    text_buf_printf(&b, "hello %d", 1);
    assert_int_equal(text_buf_flush(&b, take, NULL, &err), SINTER_E_IO);
    assert_int_equal(text_buf_flush(&b, take, got, &err), SINTER_OK);
    assert_string_equal(got, "hello 1");
    assert_int_equal(b.bytes, 0);
    text_buf_free(&b);
    sinter_host_free(host);
}

static sinter_status many_lines(sinter_host *host, void *ctx, sinter_error *err)
{
    struct text_buf b;
    (void)ctx;
    text_buf_init(&b, host);
    for (int i = 0; i < 100; i++) {
        text_buf_printf(&b, "line %d", i);
        text_buf_json(&b, "\n", 1);
    }
    const sinter_status status = text_buf_end(&b, err);
    text_buf_free(&b);
    return status;
}

/* The first failure sticks, and later text does not hide it. */
static void test_no_memory(void **state)
{
    (void)state;
    assert_true(fault_loop_host("text", &(struct fault){0}, FAULT_ALLOC, many_lines, NULL) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_add), cmocka_unit_test(test_json),
                                       cmocka_unit_test(test_flush),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
