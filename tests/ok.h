/* Calls that must work or must be refused, in cmocka tests; each may use `err`. */
#ifndef TESTS_OK_H
#define TESTS_OK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sinter.h"

/* The macros' err may shadow a test's own. */
#pragma GCC diagnostic ignored "-Wshadow"

#define OK(call)                                                                                   \
    do {                                                                                           \
        sinter_error ok_err = {0};                                                                 \
        sinter_error *err = &ok_err;                                                               \
        if ((call) != SINTER_OK)                                                                   \
            fail_msg("%s:%d: %s", __FILE__, __LINE__, ok_err.message);                             \
    } while (0)

/* Fails with the status, and a message that has `part` in it. */
#define REFUSED(call, name, part)                                                                  \
    do {                                                                                           \
        sinter_error ref_err = {0};                                                                \
        sinter_error *err = &ref_err;                                                              \
        sinter_status ref_status = (call);                                                         \
        if (ref_status != SINTER_E_##name || !strstr(ref_err.message, part))                       \
            fail_msg("%s:%d: status %d, '%s'; expected %s, '%s'", __FILE__, __LINE__,              \
                     (int)ref_status, ref_err.message, #name, part);                               \
    } while (0)

#endif
