#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"

static void test_table(void **state)
{
    static const int codes[SINTER_N_STATUS] = {
        [SINTER_E_USAGE] = 2,   [SINTER_E_DATA] = 65,       [SINTER_E_NOT_FOUND] = 66,
        [SINTER_E_DEVICE] = 69, [SINTER_E_CANCELLED] = 130, [SINTER_E_IO] = 74,
        [SINTER_E_STRICT] = 78, [SINTER_E_INTERNAL] = 70,
    };
    int n = 0;
    (void)state;
    for (int s = 0; s < SINTER_N_STATUS; s++) {
        assert_true(strlen(sinter_status_text(s)) > 1);
        if (codes[s])
            assert_int_equal(sinter_status_exit_code(s), codes[s]);
        assert_int_equal(sinter_status_exit_code(s) == 0, s == SINTER_OK);
        for (int t = 0; t < s; t++)
            assert_string_not_equal(sinter_status_text(s), sinter_status_text(t));
        n++;
    }
    assert_string_equal(sinter_status_text((sinter_status)99), "unknown status");
    assert_int_equal(sinter_status_exit_code((sinter_status)-1), 70);
    printf("statuses: %d/%d\n", n, SINTER_N_STATUS);
}

static void test_version(void **state)
{
    char text[32];
    (void)state;
    snprintf(text, sizeof text, "%d.%d.%d", SINTER_VERSION_MAJOR, SINTER_VERSION_MINOR,
             SINTER_VERSION_PATCH);
    assert_string_equal(sinter_version(), text);
}

static void test_fail(void **state)
{
    sinter_error err = {0};
    (void)state;
    assert_int_equal(FAIL(&err, DATA, "%s: byte %d", "a.gguf", 12), SINTER_E_DATA);
    assert_int_equal(err.status, SINTER_E_DATA);
    assert_string_equal(err.message, "a.gguf: byte 12");
    assert_int_equal(status_prefix(&err, SINTER_E_IO, "layer %d", 3), SINTER_E_IO);
    assert_int_equal(err.status, SINTER_E_IO);
    assert_string_equal(err.message, "layer 3: a.gguf: byte 12");
    assert_int_equal(FAIL(&err, LIMIT, "again: %s", err.message), SINTER_E_LIMIT);
    assert_string_equal(err.message, "again: layer 3: a.gguf: byte 12");
    assert_int_equal(FAIL(NULL, DATA, "x"), SINTER_E_DATA);
    assert_int_equal(status_prefix(NULL, SINTER_E_DATA, "x"), SINTER_E_DATA);
}

/* Hostile text cannot break a terminal or the message's encoding. */
static void test_clean(void **state)
{
    sinter_error err;
    (void)state;
    (void)FAIL(&err, DATA, "key \"%s\"", "a\x1b[31m\x7f\xff\xc2\x9b\xc3\xa9\xe2\x82");
    assert_string_equal(err.message, "key \"a?[31m???\xc3\xa9??\"");
    (void)FAIL(&err, DATA, "a\nsinter: b\tc\r\n");
    assert_string_equal(err.message, "a sinter: b c? ");
}

static void test_long(void **state)
{
    char text[3000];
    sinter_error err;
    size_t n;
    (void)state;
    for (int shift = 0; shift < 4; shift++) { /* cut at every place within a sequence */
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = "\xe2\x82\xac"[i % 3];
        text[sizeof text - 1] = 0;
        (void)FAIL(&err, DATA, "%.*s%s", shift, "xxx", text);
        n = strlen(err.message);
        assert_true(n < sizeof err.message && n > sizeof err.message - 10);
        assert_string_equal(err.message + n - 3, "...");
        for (size_t i = 0; i < n;) {
            size_t length = utf8_sequence(err.message + i, n - i);
            assert_true(length > 0);
            assert_true(err.message[i] != '?');
            i += length;
        }
        assert_int_equal(status_prefix(&err, SINTER_E_DATA, "%s", text), SINTER_E_DATA);
        assert_true(strlen(err.message) < sizeof err.message);
    }
}

static sinter_status try_it(sinter_status inner, int *after)
{
    TRY(inner);
    ++*after;
    return SINTER_OK;
}

static sinter_status try_out(sinter_status inner, bool fail, sinter_error *err, int *after)
{
    sinter_status status;
    TRY_OUT(inner);
    if (fail)
        FAIL_OUT(err, STATE, "asked to");
    *after += 1;
out:
    *after += 10;
    return status;
}

static void test_try(void **state)
{
    sinter_error err;
    int after = 0;
    (void)state;
    assert_int_equal(try_it(SINTER_OK, &after), SINTER_OK);
    assert_int_equal(try_it(SINTER_E_IO, &after), SINTER_E_IO);
    assert_int_equal(after, 1);
    assert_int_equal(try_out(SINTER_OK, false, &err, &after), SINTER_OK);
    assert_int_equal(after, 12);
    assert_int_equal(try_out(SINTER_E_IO, false, &err, &after), SINTER_E_IO);
    assert_int_equal(try_out(SINTER_OK, true, &err, &after), SINTER_E_STATE);
    assert_int_equal(after, 32);
}

/* All sequences of one to three bytes, and the corners of four, against the definition. */
static void test_utf8(void **state)
{
    unsigned long n = 0;
    (void)state;
    for (unsigned cp = 0; cp <= 0x10FFFF; cp++) {
        char s[5] = {0};
        size_t length = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
        const bool surrogate = cp >= 0xD800 && cp <= 0xDFFF;
        for (size_t i = length; i-- > 1;)
            s[i] = (char)(0x80 | (cp >> 6 * (length - 1 - i) & 0x3F));
        s[0] = (char)(length == 1 ? cp : (0xF00 >> length & 0xFF) | cp >> 6 * (length - 1));
        assert_int_equal(utf8_sequence(s, 4), surrogate ? 0 : length);
        if (length > 1)
            assert_int_equal(utf8_sequence(s, length - 1), 0);
        n++;
    }
    assert_int_equal(utf8_sequence("\xC0\x80", 2), 0);
    assert_int_equal(utf8_sequence("\xE0\x9F\xBF", 3), 0);
    assert_int_equal(utf8_sequence("\xF0\x8F\xBF\xBF", 4), 0);
    assert_int_equal(utf8_sequence("\xF4\x90\x80\x80", 4), 0);
    assert_int_equal(utf8_sequence("\xC3(", 2), 0);
    printf("code points: %lu/%lu\n", n, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table), cmocka_unit_test(test_version), cmocka_unit_test(test_fail),
        cmocka_unit_test(test_clean), cmocka_unit_test(test_long),    cmocka_unit_test(test_try),
        cmocka_unit_test(test_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
