/* All dummy models, as files, for cmocka tests above sinter.h. */
#ifndef TESTS_DUMMIES_H
#define TESTS_DUMMIES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sinter.h"
#include "temp_folder.h"

struct dummy_file {
    char name[64]; /* ARCH-KIND */
    char arch[64];
    const char *kind;
    char path[TEMP_PATH];
};

/* Calls fn for each dummy, whose file is there for that long. */
static inline void each_dummy(void (*fn)(const struct dummy_file *d, void *ctx), void *ctx)
{
    struct dummy_file d;
    for (int32_t i = 0; sinter_dummy_name(i, false, d.name); i++) {
        sinter_host *host;
        sinter_error err;
        char file[sizeof d.name + 8];
        strcpy(d.arch, d.name);
        char *dash = strrchr(d.arch, '-');
        *dash = 0;
        d.kind = dash + 1;
        snprintf(file, sizeof file, "%s.gguf", d.name);
        temp_path(file, d.path);
        assert_int_equal(sinter_host_create(NULL, &host, &err), SINTER_OK);
        sinter_dummy_options o = {.size = sizeof o, .arch = d.arch, .kind = d.kind};
        if (sinter_dummy_write(host, &o, d.path, &err) != SINTER_OK)
            fail_msg("%s", err.message);
        sinter_host_free(host);
        fn(&d, ctx);
        unlink(d.path);
    }
}

#endif
