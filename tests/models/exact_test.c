/* The same bits whatever threads, chunks and company: every dummy, each level of the cpu backend.
 */
#include "base/cpu.h"
#include "dummies.h"
#include "models/exact.h"

struct count {
    int ok, all;
};

static void levels(const struct dummy_file *d, void *ctx)
{
    struct count *n = ctx;
    for (int level = CPU_C; level <= (int)cpu_level_native(); level++, n->all++) {
        /* plain C takes its time: all tokens for the smallest ones only */
        bool slow = level == CPU_C && !strstr(d->name, "-f32");
        n->ok +=
            exact_verify(d->path, d->name, cpu_level_name((enum cpu_level)level), slow ? 72 : 0);
    }
}

static void dummies(void **state)
{
    struct count n = {0};
    (void)state;
    each_dummy(levels, &n);
    print_message("same bits: %d/%d dummies x levels\n", n.ok, n.all);
    assert_true(n.all > 0);
    assert_int_equal(n.ok, n.all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dummies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
