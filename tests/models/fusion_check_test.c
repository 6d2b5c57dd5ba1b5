/* `sinter fusion check` passes: all dummies, each backend, against the committed baselines; the
 * real models, without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "sinter.h"
#include "temp_folder.h"

static bool show(void *ctx, const char *text, size_t bytes)
{
    print_message("%s: %.*s", (const char *)ctx, (int)bytes, text);
    return true;
}

static void check(const sinter_fusion_check_options *o, const char *name)
{
    sinter_host *host;
    sinter_error err;
    assert_int_equal(sinter_host_create(NULL, &host, &err), SINTER_OK);
    sinter_status status = sinter_fusion_check(host, o, show, (void *)(uintptr_t)name, &err);
    sinter_host_free(host);
    if (status != SINTER_OK)
        fail_msg("%s", err.message);
}

static void dummies(void **state)
{
    char baseline[512];
    char *backend = *state;
    snprintf(baseline, sizeof baseline, "%s/tests/fusion/%s.csv", TEST_SOURCE_DIR, backend);
    check(&(sinter_fusion_check_options){.size = sizeof(sinter_fusion_check_options),
                                         .backend = backend,
                                         .baseline = baseline,
                                         .work = temp_folder()},
          backend);
}

static void real_models(void **state)
{
    static const char *const files[] = {
        TEST_MODELS_DIR "/SmolLM2-135M-Instruct.Q4_1.gguf",
        TEST_MODELS_DIR "/gemma-3-270m.Q4_K_M.gguf",
    };
    (void)state;
    if (access(files[0], R_OK) || access(files[1], R_OK)) { /* `make fetch` brings them */
        printf("SKIPPED: the 2 models are not in %s\n", TEST_MODELS_DIR);
        skip();
    }
    check(&(sinter_fusion_check_options){.size = sizeof(sinter_fusion_check_options),
                                         .backend = "cpu",
                                         .file = files,
                                         .n_file = 2},
          "real models on cpu");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(dummies, "ref"),
        cmocka_unit_test_prestate(dummies, "cpu"),
        cmocka_unit_test(real_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
