/* Log lines and counted warnings. A line is made in a fixed buffer: logging never allocates. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/host_impl.h"
#include "base/utf8.h"

enum { LINE_BYTES = 2048 };

/* One line without control characters; one that had to be cut ends in "...". */
static void format_line(char line[static LINE_BYTES], const char *fmt, va_list args)
{
    const int n = vsnprintf(line, LINE_BYTES, fmt, args);
    size_t bytes = n < 0 ? 0 : (size_t)n < LINE_BYTES ? (size_t)n : LINE_BYTES - 1;
    line[bytes] = 0;
    if (n >= LINE_BYTES)
        memcpy(line + LINE_BYTES - 4, "...", 4);
    for (size_t i = 0, length; i < bytes; i += length) {
        length = utf8_sequence(line + i, bytes - i);
        if (!length || utf8_is_control(line + i, length)) {
            line[i] = line[i] == '\n' || line[i] == '\t' ? ' ' : '?';
            length = 1;
        }
    }
}

void host_log(sinter_host *host, sinter_log_level level, const char *fmt, ...)
{
    char line[LINE_BYTES];
    va_list args;
    if (!host->log || level > host->log_level)
        return;
    va_start(args, fmt);
    format_line(line, fmt, args);
    va_end(args);
    host->log(host->log_ctx, level, line);
}

sinter_status host_warn(sinter_host *host, sinter_error *err, const char *fmt, ...)
{
    char line[LINE_BYTES];
    va_list args;
    atomic_fetch_add_explicit(&host->n_warning, 1, memory_order_relaxed);
    va_start(args, fmt);
    format_line(line, fmt, args);
    va_end(args);
    if (host->options.strict)
        return FAIL(err, STRICT, "%s (an error because of --strict)", line);
    host_log(host, SINTER_LOG_WARN, "%s", line);
    return SINTER_OK;
}

uint64_t host_warnings(const sinter_host *host)
{
    return atomic_load_explicit(&host->n_warning, memory_order_relaxed);
}
