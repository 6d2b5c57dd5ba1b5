/* `sinter fusion check` passes: all dummies, each backend, against the committed baselines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "sinter.h"
#include "temp_folder.h"

static bool show(void *ctx, const char *text, size_t bytes)
{
    print_message("%s: %.*s", (const char *)ctx, (int)bytes, text);
    return true;
}

static void passes(void **state)
{
    char baseline[512];
    sinter_host *host;
    sinter_error err;
    char *backend = *state;
    snprintf(baseline, sizeof baseline, "%s/tests/fusion/%s.csv", TEST_SOURCE_DIR, backend);
    sinter_fusion_check_options o = {
        .size = sizeof o, .backend = backend, .baseline = baseline, .work = temp_folder()};
    assert_int_equal(sinter_host_create(NULL, &host, &err), SINTER_OK);
    sinter_status status = sinter_fusion_check(host, &o, show, backend, &err);
    sinter_host_free(host);
    if (status != SINTER_OK)
        fail_msg("%s", err.message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(passes, "ref"),
        cmocka_unit_test_prestate(passes, "cpu"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
