/* Arena: many small blocks that die together. Blocks are zeroed and 16-byte aligned. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/host.h"

struct arena_chunk;
struct arena {
    sinter_host *host;
    struct arena_chunk *chunk;
    size_t bytes; /* given out, for accounting */
};

void arena_init(struct arena *a, sinter_host *host);
void *arena_alloc(struct arena *a, size_t bytes); /* NULL: no memory */
void *arena_alloc_n(struct arena *a, size_t n, size_t each);
char *arena_strndup(struct arena *a, const char *text, size_t bytes);
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
void arena_free(struct arena *a); /* all blocks; the arena may be used again */

#endif
