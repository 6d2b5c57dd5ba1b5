/* The same bits whatever threads, chunks and company: every dummy, each level of the cpu backend.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "models/exact.h"

static void dummies(void **state)
{
    char work[] = TEST_BINARY_DIR "/sinter-XXXXXX", name[64], path[1024], arch[64];
    int n_ok = 0, n_all = 0;
    (void)state;
    assert_non_null(mkdtemp(work));
    for (int32_t i = 0; sinter_dummy_name(i, false, name); i++) {
        sinter_host *host;
        sinter_error err;
        snprintf(path, sizeof path, "%s/%s.gguf", work, name);
        snprintf(arch, sizeof arch, "%s", name);
        char *kind = strrchr(arch, '-');
        *kind++ = 0;
        assert_int_equal(sinter_host_create(NULL, &host, &err), SINTER_OK);
        sinter_dummy_options o = {.size = sizeof o, .arch = arch, .kind = kind};
        assert_int_equal(sinter_dummy_write(host, &o, path, &err), SINTER_OK);
        sinter_host_free(host);
        for (int level = CPU_C; level <= (int)cpu_level_native(); level++, n_all++) {
            /* plain C takes its time: all tokens for the smallest ones only */
            bool slow = level == CPU_C && !strstr(name, "-f32");
            n_ok += exact_verify(path, name, cpu_level_name((enum cpu_level)level), slow ? 72 : 0);
        }
        unlink(path);
    }
    rmdir(work);
    print_message("same bits: %d/%d dummies x levels\n", n_ok, n_all);
    assert_true(n_all > 0);
    assert_int_equal(n_ok, n_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dummies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
