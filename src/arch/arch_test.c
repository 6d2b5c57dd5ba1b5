/* The list of descriptors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "arch/arch.h"

#include <cmocka.h>

static void test_list(void **state)
{
    const struct arch_desc *a;
    int n = 0;
    (void)state;
    for (; (a = arch_at(n)) != NULL; n++) {
        assert_ptr_equal(arch_find(a->name), a); /* also: names are unique */
        assert_true(strlen(a->name) < 32 && !strchr(a->name, '.'));
        assert_true(a->window.period >= 0);
        assert_true(a->window.period == 0 || a->window.base > 0);
        assert_true(a->ffn == FFN_MOE || !a->moe.renorm);
    }
    assert_true(n >= 4);
    assert_null(arch_at(-1));
    assert_null(arch_at(n + 1));
    assert_null(arch_find("no such"));
    assert_null(arch_find(""));
    print_message("descriptors: %d/%d\n", n, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_list)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
