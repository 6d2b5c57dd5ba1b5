/* Statuses: texts and exit codes from errors.def, and the two functions that write messages.
 *
 * A message is always one line of valid UTF-8 without control characters, whatever the arguments
 * held (names come out of hostile files and end on terminals), and one that had to be cut ends in
 * "...". */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* errors.def and the enum in sinter.h are the same list. */
enum {
    STATUS_ROW_OK,
#define ERR(name, exit_code, text) STATUS_ROW_##name,
#include "base/errors.def"
#undef ERR
    STATUS_N_ROW
};
#define ERR(name, exit_code, text)                                                                 \
    _Static_assert((int)STATUS_ROW_##name == (int)SINTER_E_##name,                                 \
                   "errors.def and sinter.h differ at " #name);
#include "base/errors.def"
#undef ERR
_Static_assert((int)STATUS_N_ROW == (int)SINTER_N_STATUS, "errors.def lacks a row of sinter.h");

static const struct {
    int exit_code;
    const char *text;
} rows[] = {
    {0, "ok"},
#define ERR(name, exit_code, text) {exit_code, text},
#include "base/errors.def"
#undef ERR
};

#define STRING_OF(x)                      #x
#define VERSION_TEXT(major, minor, patch) STRING_OF(major) "." STRING_OF(minor) "." STRING_OF(patch)

const char *sinter_version(void)
{
    return VERSION_TEXT(SINTER_VERSION_MAJOR, SINTER_VERSION_MINOR, SINTER_VERSION_PATCH);
}

static bool is_status(sinter_status status)
{
    return (unsigned)status < (unsigned)SINTER_N_STATUS;
}

const char *sinter_status_text(sinter_status status)
{
    return is_status(status) ? rows[status].text : "unknown status";
}

int sinter_status_exit_code(sinter_status status)
{
    return is_status(status) ? rows[status].exit_code : rows[SINTER_E_INTERNAL].exit_code;
}

/* Copies what fits of text[0..bytes), cleaned; `cut`: more was there than text holds. */
static void message_set(sinter_error *err, const char *text, size_t bytes, bool cut)
{
    const size_t cap = sizeof err->message - sizeof "..."; /* so that the mark always fits */
    size_t n = 0;
    for (size_t i = 0; i < bytes;) {
        size_t length = utf8_sequence(text + i, bytes - i);
        const bool bad = !length || utf8_is_control(text + i, length);
        if (!length)
            length = 1;
        if (n + length > cap) {
            cut = true;
            break;
        }
        if (bad)
            err->message[n++] = text[i] == '\n' || text[i] == '\t' ? ' ' : '?';
        else
            memcpy(err->message + n, text + i, length), n += length;
        i += length;
    }
    if (cut)
        memcpy(err->message + n, "...", 3), n += 3;
    err->message[n] = 0;
}

/* Formats beside err first: an argument may be err's own message. */
static void message_format(sinter_error *err, const char *tail, const char *fmt, va_list args)
{
    char text[2 * sizeof err->message];
    const size_t room = sizeof err->message;
    int n = vsnprintf(text, room, fmt, args);
    size_t bytes = n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
    const bool cut = n < 0 || (size_t)n >= room;
    if (tail) {
        const size_t n_tail = strlen(tail);
        memcpy(text + bytes, ": ", 2);
        memcpy(text + bytes + 2, tail, n_tail);
        bytes += 2 + n_tail;
    }
    message_set(err, text, bytes, cut && !tail);
}

sinter_status status_fail(sinter_error *err, sinter_status status, const char *fmt, ...)
{
    if (err) {
        va_list args;
        va_start(args, fmt);
        message_format(err, NULL, fmt, args);
        va_end(args);
        err->status = status;
    }
    return status;
}

sinter_status status_prefix(sinter_error *err, sinter_status status, const char *fmt, ...)
{
    if (err) {
        char tail[sizeof err->message];
        va_list args;
        memcpy(tail, err->message, sizeof tail);
        tail[sizeof tail - 1] = 0;
        va_start(args, fmt);
        message_format(err, tail, fmt, args);
        va_end(args);
        err->status = status;
    }
    return status;
}
