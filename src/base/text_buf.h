/* A growing text buffer and the sink behind all printers (text and JSON). The first failure
 * sticks: later calls do nothing and text_buf_end reports it. */
#ifndef BASE_TEXT_BUF_H
#define BASE_TEXT_BUF_H

#include "base/host.h"

struct text_buf {
    sinter_host *host;
    char *text; /* always ends with NUL once anything was added */
    size_t bytes, cap;
    bool failed;
};

void text_buf_init(struct text_buf *b, sinter_host *host);
void text_buf_add(struct text_buf *b, const char *text, size_t bytes);
void text_buf_printf(struct text_buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* `text` as a JSON string with quotes; invalid UTF-8 becomes U+FFFD. */
void text_buf_json(struct text_buf *b, const char *text, size_t bytes);
CHECKED sinter_status text_buf_end(struct text_buf *b, sinter_error *err);
/* Hands the text to fn and empties the buffer. */
CHECKED sinter_status text_buf_flush(struct text_buf *b, sinter_write_fn fn, void *ctx,
                                     sinter_error *err);
void text_buf_free(struct text_buf *b);

#endif
