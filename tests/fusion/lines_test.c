/* Every line of every backend's list, by lines.h, at every level of the cpu backend that this
 * machine has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fuse/names.h"
#include "fusion/lines.h"

static void all_lines(const struct native_kind *kind, const char *level)
{
    struct lines l = {.host = lines_host(), .kind = kind, .level = level, .run = true};
    sinter_error err;
    if (native_open(l.host, kind, NULL, NULL, &l.whole, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    for (int i = 0; i < kind->list->n_line; i++)
        if (lines_is_fusion(&kind->list->line[i]))
            lines_line(&l, &kind->list->line[i]);
    native_close(l.whole);
    sinter_host_free(l.host);
    print_message("%s: lines: %d/%d\n", level, l.n_ok, l.n_all);
    assert_true(l.n_all > 0);
    assert_int_equal(l.n_ok, l.n_all);
}

static void ref_lines(void **state)
{
    (void)state;
    all_lines(&ref_kind, "ref");
}

static void cpu_lines(void **state)
{
    char name[16];
    enum cpu_level level = *(enum cpu_level *)*state, have;
    sinter_error err;
    assert_int_equal(cpu_level_masked("", &have, &err), SINTER_OK);
    if (have < level) {
        print_message("SKIPPED: this machine lacks %s\n", cpu_level_name(level));
        skip();
    }
    snprintf(name, sizeof name, "cpu %s", cpu_level_name(level));
    all_lines(cpu_kind(level), name);
}

/* Rows whose cpu lines promise the bits of their nodes one by one. */
static void same_rows(void **state)
{
    (void)state;
    int n = 0;
    for (int r = 0; r < fuse_n_row; r++)
        for (int i = 0; i < cpu_list.n_line; i++)
            if (strcmp(cpu_list.line[i].row, fuse_rows[r].name) == 0) {
                n += cpu_list.line[i].bits == BITS_SAME;
                break;
            }
    print_message("rows with SAME lines on cpu: %d\n", n);
    assert_true(n >= 6);
}

/* The harness itself: a line that departs by one bit in one number is seen. */
static void (*true_adds)(const struct call *c);

static void adds_but_one_bit(const struct call *c)
{
    true_adds(c);
    float *x = out_f32(c, X, 0);
    if (call_rows(c, X).lo == 0 && call_rows(c, X).hi > 0)
        x[1] = nextafterf(x[1], INFINITY);
}

static void one_bit(void **state)
{
    (void)state;
    struct native_kind kind = ref_kind;
    struct fuse_list list = *kind.list;
    struct fuse_line line[LINES_MAX];
    struct lines l = {
        .host = lines_host(), .kind = &kind, .level = "ref", .run = true, .quiet = true};
    sinter_error err;
    assert_true(list.n_line <= LINES_MAX);
    memcpy(line, list.line, (size_t)list.n_line * sizeof *line);
    list.line = line;
    kind.list = &list;
    int at = 0;
    while (strcmp(line[at].row, "adds") != 0)
        at++;
    true_adds = line[at].run;
    line[at].run = adds_but_one_bit;
    assert_int_equal(native_open(l.host, &kind, NULL, NULL, &l.whole, &err), SINTER_OK);
    lines_line(&l, &line[at]);
    native_close(l.whole);
    sinter_host_free(l.host);
    assert_true(l.n_all > 0 && l.n_ok < l.n_all);
}

int main(void)
{
    static enum cpu_level level[] = {CPU_C, CPU_AVX2, CPU_AVX512};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_rows),
        cmocka_unit_test(one_bit),
        cmocka_unit_test(ref_lines),
        cmocka_unit_test_prestate(cpu_lines, &level[0]),
        cmocka_unit_test_prestate(cpu_lines, &level[1]),
        cmocka_unit_test_prestate(cpu_lines, &level[2]),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
