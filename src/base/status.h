/* Status and error handling: the one idiom of all fallible functions.
 *
 *     sinter_status foo(..., sinter_error *err);
 *     TRY(foo(..., err));           returns the status if it is not OK
 *     TRY_OUT(foo(..., err));       sets `status` and goes to the function's one `out:` label
 *     return FAIL(err, DATA, "…%s…", what);
 *     FAIL_OUT(err, DATA, "…");     sets `status` and goes to `out:`
 *
 * Messages say what, where, why and what to do; assert() is for what is proven, never for input. */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include "sinter.h"

#define CHECKED __attribute__((warn_unused_result))
/* A parameter that the type of a function asks for. */
#define UNUSED                 __attribute__((unused))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

/* Fills err (may be NULL) and returns status. Never allocates. */
sinter_status status_fail(sinter_error *err, sinter_status status, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Puts "prefix: " before the message that err already holds; returns err's status. */
sinter_status status_prefix(sinter_error *err, sinter_status status, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* The status stands outside of the call so that the compiler sees that it is not OK. */
#define FAIL(err, name, ...) (status_fail((err), SINTER_E_##name, __VA_ARGS__), SINTER_E_##name)

#define TRY(call)                                                                                  \
    do {                                                                                           \
        sinter_status try_status_ = (call);                                                        \
        if (try_status_ != SINTER_OK)                                                              \
            return try_status_;                                                                    \
    } while (0)

#define TRY_OUT(call)                                                                              \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != SINTER_OK)                                                                   \
            goto out;                                                                              \
    } while (0)

#define FAIL_OUT(err, name, ...)                                                                   \
    do {                                                                                           \
        status = FAIL(err, name, __VA_ARGS__);                                                     \
        goto out;                                                                                  \
    } while (0)

#endif
