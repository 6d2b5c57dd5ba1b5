/* Arena: chunks of growing size in a list; a block is never moved, and all die together. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ALIGN_BYTES = 16, FIRST_BYTES = 1 << 12, MAX_BYTES = 1 << 20 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, cap; /* of data */
    _Alignas(ALIGN_BYTES) char data[];
};

void arena_init(struct arena *a, sinter_host *host)
{
    *a = (struct arena){.host = host};
}

/* A chunk that holds `bytes`; a large block gets its own, behind the one still being filled. */
static struct arena_chunk *chunk_new(struct arena *a, size_t bytes)
{
    struct arena_chunk *old = a->chunk, *c;
    size_t cap = old ? old->cap * 2 : FIRST_BYTES;
    const bool own = bytes > MAX_BYTES / 4;
    if (cap > MAX_BYTES)
        cap = MAX_BYTES;
    if (cap < bytes || own)
        cap = bytes;
    if (cap > SIZE_MAX - sizeof *c)
        return NULL;
    c = host_alloc(a->host, sizeof *c + cap);
    if (!c)
        return NULL;
    c->cap = cap;
    if (own && old) {
        c->next = old->next;
        old->next = c;
    } else {
        c->next = old;
        a->chunk = c;
    }
    return c;
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    struct arena_chunk *c = a->chunk;
    size_t rounded;
    char *block;
    if (bytes > SIZE_MAX - ALIGN_BYTES)
        return NULL;
    rounded = (bytes + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1);
    if (!c || c->cap - c->used < rounded) {
        c = chunk_new(a, rounded);
        if (!c)
            return NULL;
    }
    block = c->data + c->used;
    c->used += rounded;
    a->bytes += rounded;
    return block;
}

void *arena_alloc_n(struct arena *a, size_t n, size_t each)
{
    size_t bytes;
    return __builtin_mul_overflow(n, each, &bytes) ? NULL : arena_alloc(a, bytes);
}

char *arena_strndup(struct arena *a, const char *text, size_t bytes)
{
    char *copy = bytes < SIZE_MAX ? arena_alloc(a, bytes + 1) : NULL;
    if (copy && bytes)
        memcpy(copy, text, bytes);
    return copy;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list args;
    char *text;
    int n;
    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    text = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
    if (text) {
        va_start(args, fmt);
        vsnprintf(text, (size_t)n + 1, fmt, args);
        va_end(args);
    }
    return text;
}

void arena_free(struct arena *a)
{
    while (a->chunk) {
        struct arena_chunk *next = a->chunk->next;
        host_free(a->host, a->chunk);
        a->chunk = next;
    }
    a->bytes = 0;
}
