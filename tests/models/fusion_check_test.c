/* `sinter fusion check` passes: all dummies, each backend, against the committed baselines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sinter.h"

static bool show(void *ctx, const char *text, size_t bytes)
{
    print_message("%s: %.*s", (const char *)ctx, (int)bytes, text);
    return true;
}

static void passes(void **state)
{
    char work[] = TEST_BINARY_DIR "/sinter-XXXXXX", baseline[512], name[64], path[2048];
    sinter_host *host;
    sinter_error err;
    char *backend = *state;
    assert_non_null(mkdtemp(work));
    snprintf(baseline, sizeof baseline, "%s/tests/fusion/%s.csv", TEST_SOURCE_DIR, backend);
    sinter_fusion_check_options o = {
        .size = sizeof o, .backend = backend, .baseline = baseline, .work = work};
    assert_int_equal(sinter_host_create(NULL, &host, &err), SINTER_OK);
    sinter_status status = sinter_fusion_check(host, &o, show, backend, &err);
    sinter_host_free(host);
    for (int32_t i = 0; sinter_dummy_name(i, false, name); i++) {
        snprintf(path, sizeof path, "%s/%s.gguf", work, name);
        unlink(path);
    }
    rmdir(work);
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
