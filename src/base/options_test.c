#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/options.h"

static void test_rows(void **state)
{
    struct options def, o;
    sinter_error err;
    (void)state;
    options_default(&def);
    for (int i = 0; i < option_n_row; i++) {
        const struct option_row *row = &option_rows[i];
        memset(&o, 0x55, sizeof o); /* the default's text, parsed, is the default's value */
        if (options_set(&o, row->name, row->def, &err) != SINTER_OK)
            fail_msg("%s: %s", row->name, err.message);
        switch (row->type) {
        case OPTION_BOOL:
            assert_int_equal(*((bool *)&o + row->offset), *((bool *)&def + row->offset));
            break;
        case OPTION_INT:
            assert_memory_equal((char *)&o + row->offset, (char *)&def + row->offset, 8);
            break;
        case OPTION_TEXT:
            assert_string_equal(*(const char **)((char *)&o + row->offset),
                                *(const char **)((char *)&def + row->offset));
            break;
        }
        assert_true(strlen(row->help) > 10);
    }
    assert_int_equal(def.page_rows, 64);
    assert_true(def.fusion);
    assert_string_equal(def.backend, "cpu");
    printf("options: %d/%d\n", option_n_row, option_n_row);
}

static void test_set(void **state)
{
    static const struct {
        const char *name, *value;
        sinter_status status;
        const char *says; /* what the message must contain */
    } cases[] = {
        {"threads", "8", SINTER_OK, NULL},
        {"threads", "-1", SINTER_E_USAGE, "0 to 1024"},
        {"threads", "1025", SINTER_E_USAGE, "0 to 1024"},
        {"threads", "99999999999999999999", SINTER_E_USAGE, "0 to 1024"},
        {"threads", "", SINTER_E_USAGE, "whole number"},
        {"threads", "8x", SINTER_E_USAGE, "\"8x\""},
        {"threads", " 8", SINTER_E_USAGE, "whole number"},
        {"cpu-mask", "avx2", SINTER_OK, NULL},
        {"cpu_mask", "c", SINTER_OK, NULL},
        {"cpu_mask", "", SINTER_OK, NULL},
        {"cpu_mask", "sse9", SINTER_E_USAGE, "c,avx2,avx512"},
        {"page-rows", "16", SINTER_OK, NULL},
        {"page-rows", "32", SINTER_E_USAGE, "16,64"},
        {"strict", "on", SINTER_OK, NULL},
        {"strict", "maybe", SINTER_E_USAGE, "neither on nor off"},
        {"thread", "8", SINTER_E_USAGE, "did you mean threads?"},
        {"skip-tensro", "x", SINTER_E_USAGE, "did you mean skip-tensor?"},
        {"quite-unlike-any", "x", SINTER_E_USAGE, "--help"},
        {"", "x", SINTER_E_USAGE, "unknown option"},
    };
    struct options o;
    sinter_error err;
    char big[300];
    (void)state;
    options_default(&o);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        err.message[0] = 0;
        assert_int_equal(options_set(&o, cases[i].name, cases[i].value, &err), cases[i].status);
        if (cases[i].says && !strstr(err.message, cases[i].says))
            fail_msg("\"%s\" lacks \"%s\"", err.message, cases[i].says);
    }
    assert_int_equal(o.threads, 8);
    assert_int_equal(o.page_rows, 16);
    assert_true(o.strict);
    memset(big, 'a', sizeof big - 1);
    big[sizeof big - 1] = 0;
    assert_int_equal(options_set(&o, "disable", big, &err), SINTER_OK);
    assert_string_equal(o.disable, big);
    assert_int_equal(options_set(&o, big, "1", &err), SINTER_E_USAGE);
}

static void test_env(void **state)
{
    struct options o;
    sinter_error err;
    (void)state;
    setenv("SINTER_PAGE_ROWS", "16", 1);
    setenv("SINTER_FUSION", "off", 1);
    assert_int_equal(options_from_env(&o, &err), SINTER_OK);
    assert_int_equal(o.page_rows, 16);
    assert_false(o.fusion);
    setenv("SINTER_PAGE_ROWS", "many", 1);
    assert_int_equal(options_from_env(&o, &err), SINTER_E_USAGE);
    assert_non_null(strstr(err.message, "SINTER_PAGE_ROWS"));
    unsetenv("SINTER_PAGE_ROWS");
    unsetenv("SINTER_FUSION");
    assert_int_equal(options_from_env(&o, &err), SINTER_OK);
    assert_true(o.fusion);
}

/* How many variables name no option; *near: what is nearest to the last of them. */
static int n_unknown(const char *last, char near[64])
{
    size_t at = 0, bytes;
    const char *variable;
    int n = 0;
    while ((variable = options_env_unknown(&at, &bytes, near))) {
        n++;
        if (bytes == strlen(last) && !memcmp(variable, last, bytes))
            return n;
    }
    return n ? -n : 0;
}

static void test_env_unknown(void **state)
{
    char near[64], name[300];
    (void)state;
    setenv("SINTER_THREADS", "1", 1);
    assert_true(n_unknown("SINTER_THREADS", near) <= 0);
    unsetenv("SINTER_THREADS");
    setenv("SINTER_THREAD", "1", 1);
    assert_true(n_unknown("SINTER_THREAD", near) > 0);
    assert_string_equal(near, "SINTER_THREADS");
    unsetenv("SINTER_THREAD");
    setenv("SINTER_QUITE_UNLIKE_ANY", "", 1);
    assert_true(n_unknown("SINTER_QUITE_UNLIKE_ANY", near) > 0);
    assert_string_equal(near, "");
    unsetenv("SINTER_QUITE_UNLIKE_ANY");
    memset(name, 'A', sizeof name);
    memcpy(name, "SINTER_", 7);
    name[sizeof name - 1] = 0;
    setenv(name, "x", 1);
    assert_true(n_unknown(name, near) > 0);
    unsetenv(name);
    assert_true(n_unknown(name, near) <= 0);
}

/* The host keeps texts of its own, of any length, also those of the environment. */
static void test_texts(void **state)
{
    static char big[100001];
    char name[] = "a", second[] = "b,c";
    sinter_host *host;
    sinter_error err;
    (void)state;
    memset(big, 'x', sizeof big - 1);
    setenv("SINTER_SKIP_KEY", big, 1);
    assert_int_equal(sinter_host_create(NULL, &host, &err), SINTER_OK);
    unsetenv("SINTER_SKIP_KEY");
    assert_int_equal(sinter_host_set(host, "skip-tensor", name, &err), SINTER_OK);
    assert_int_equal(sinter_host_set(host, "disable", second, &err), SINTER_OK);
    assert_int_equal(sinter_host_set(host, "disabel", second, &err), SINTER_E_USAGE);
    name[0] = second[0] = '!';
    assert_string_equal(host_options(host)->skip_key, big);
    assert_string_equal(host_options(host)->skip_tensor, "a");
    assert_string_equal(host_options(host)->disable, "b,c");
    sinter_host_free(host);
}

static void test_list(void **state)
{
    (void)state;
    assert_true(options_list_has("a,bc,d", "a"));
    assert_true(options_list_has("a,bc,d", "bc"));
    assert_true(options_list_has("a,bc,d", "d"));
    assert_false(options_list_has("a,bc,d", "b"));
    assert_false(options_list_has("a,bc,d", "c"));
    assert_false(options_list_has("a,bc,d", "a,bc"));
    assert_false(options_list_has("", "a"));
    assert_true(options_list_has("a,,b", "b"));
}

static void test_nearest(void **state)
{
    static const char *const names[] = {"run", "bench", "tokenize", "template", "plan"};
    (void)state;
    assert_string_equal(options_nearest("tokenise", names, 5), "tokenize");
    assert_string_equal(options_nearest("bnech", names, 5), "bench");
    assert_string_equal(options_nearest("rn", names, 5), "run");
    assert_string_equal(options_nearest("templates", names, 5), "template");
    assert_null(options_nearest("serve", names, 5));
    assert_null(options_nearest("x", names, 5));
    assert_null(options_nearest("", names, 5));
    assert_null(options_nearest("run", names, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),    cmocka_unit_test(test_set),
        cmocka_unit_test(test_env),     cmocka_unit_test(test_list),
        cmocka_unit_test(test_nearest), cmocka_unit_test(test_env_unknown),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
