/* Text buffer: grows by doubling; the first failure sticks until text_buf_end or _flush tells it.
 */
#include "base/text_buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

void text_buf_init(struct text_buf *b, sinter_host *host)
{
    *b = (struct text_buf){.host = host};
}

/* Room for `bytes` more and the NUL. */
static bool reserve(struct text_buf *b, size_t bytes)
{
    void *block = b->text;
    if (b->failed)
        return false;
    if (bytes >= SIZE_MAX - b->bytes ||
        host_grow(b->host, &block, &b->cap, b->bytes + bytes + 1, 1, NULL) != SINTER_OK) {
        b->failed = true;
        return false;
    }
    b->text = block;
    return true;
}

void text_buf_add(struct text_buf *b, const char *text, size_t bytes)
{
    if (!reserve(b, bytes))
        return;
    if (bytes)
        memcpy(b->text + b->bytes, text, bytes);
    b->bytes += bytes;
    b->text[b->bytes] = 0;
}

void text_buf_printf(struct text_buf *b, const char *fmt, ...)
{
    va_list args;
    int n;
    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0)
        b->failed = true;
    else if (reserve(b, (size_t)n)) {
        va_start(args, fmt);
        vsnprintf(b->text + b->bytes, (size_t)n + 1, fmt, args);
        va_end(args);
        b->bytes += (size_t)n;
    }
}

static void json_escape(struct text_buf *b, char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = c ? strchr(from, c) : NULL;
    if (at)
        text_buf_add(b, (char[]){'\\', to[at - from]}, 2);
    else
        text_buf_printf(b, "\\u%04x", (unsigned)(unsigned char)c);
}

void text_buf_json(struct text_buf *b, const char *text, size_t bytes)
{
    size_t start = 0, i = 0; /* text[start..i) is plain and not yet added */
    text_buf_add(b, "\"", 1);
    while (i < bytes) {
        const size_t n = utf8_sequence(text + i, bytes - i);
        const bool plain = n && !utf8_is_control(text + i, n) && text[i] != '"' && text[i] != '\\';
        if (plain) {
            i += n;
            continue;
        }
        text_buf_add(b, text + start, i - start);
        if (n)
            json_escape(b, text[i + n - 1]); /* of U+0080 to U+009F the second byte is the number */
        else
            text_buf_add(b, "\xEF\xBF\xBD", 3);
        i += n ? n : 1;
        start = i;
    }
    text_buf_add(b, text + start, i - start);
    text_buf_add(b, "\"", 1);
}

sinter_status text_buf_end(struct text_buf *b, sinter_error *err)
{
    if (b->failed)
        return host_no_memory(err, b->bytes, 1, "a text being made");
    return SINTER_OK;
}

sinter_status text_buf_flush(struct text_buf *b, sinter_write_fn fn, void *ctx, sinter_error *err)
{
    TRY(text_buf_end(b, err));
    if (b->bytes && !fn(ctx, b->text, b->bytes))
        return FAIL(err, IO, "the receiver of the text took no more (is its output closed?)");
    b->bytes = 0;
    if (b->text)
        b->text[0] = 0;
    return SINTER_OK;
}

void text_buf_free(struct text_buf *b)
{
    host_free(b->host, b->text);
    text_buf_init(b, b->host);
}
