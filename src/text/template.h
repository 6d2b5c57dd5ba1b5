/* Chat templates: Jinja source compiled once, rendered with a JSON object of variables.
 *
 * The language is jinja2's as Hugging Face configures it: immutable sandbox, trim_blocks,
 * lstrip_blocks, loop controls, the generation tag; globals raise_exception and strftime_now;
 * tojson = json.dumps with ensure_ascii off. What the interpreter lacks is refused by
 * template_compile with line and column; what only the data can show is refused by
 * template_render: text is never rendered wrongly. There is no I/O, and all work is bounded.
 *
 * A compiled template is read only: any number of threads may render it at once. */
#ifndef TEXT_TEMPLATE_H
#define TEXT_TEMPLATE_H

#include "base/text_buf.h"

struct chat_template;

/* Source limits: 1 MiB of text, 4096 names, 100 levels of nesting. */
enum { TEMPLATE_MAX_BYTES = 1 << 20, TEMPLATE_MAX_NAMES = 4096, TEMPLATE_MAX_NESTING = 100 };

/* Bounds of one rendering; zero = the default. Passing one is SINTER_E_LIMIT. */
struct template_limits {
    uint64_t n_step;     /* nodes, elements and 16-byte pieces worked on; default 50 million */
    size_t output_bytes; /* of the text and of each captured piece; default 64 MiB */
    size_t memory_bytes; /* of all values; default 256 MiB */
    int depth;           /* of evaluation, macro calls and data; default 500, at most 1000 */
};

/* `source` is UTF-8 and copied. Errors: SINTER_E_DATA (syntax), SINTER_E_UNSUPPORTED (a construct
 * that jinja2 has and sinter has not), SINTER_E_LIMIT; each names line and column. */
CHECKED sinter_status template_compile(sinter_host *host, const char *source, size_t bytes,
                                       struct chat_template **out, sinter_error *err);
void template_free(struct chat_template *t);

/* Adds the text to `out` (nothing on failure). `vars` is a JSON object: messages, tools,
 * add_generation_prompt, bos_token, ...; integers beyond 64 bits are refused.
 * now: what strftime_now shows, in seconds since 1970-01-01 00:00 of the wall clock that the user
 * sees; 0 = the system's clock in UTC. `limits` may be NULL.
 * raise_exception(m) and what is an exception in jinja2 give SINTER_E_DATA with message, line and
 * column. */
CHECKED sinter_status template_render(const struct chat_template *t, const char *vars,
                                      size_t vars_bytes, int64_t now,
                                      const struct template_limits *limits, struct text_buf *out,
                                      sinter_error *err);

#endif
