/* Inside of the gguf module: limits, sizes of value types, the sort behind the look-ups. */
#ifndef GGUF_LOCAL_H
#define GGUF_LOCAL_H

#include <inttypes.h>
#include <string.h>

#include "gguf/gguf.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "GGUF files are little endian; a big-endian target needs swaps in src/gguf"
#endif

enum {
    GGUF_HEADER_BYTES = 24,
    GGUF_ALIGNMENT = 32,        /* without the key general.alignment */
    GGUF_NAME_BYTES = 65535,    /* longest key or tensor name */
    GGUF_MIN_KV_BYTES = 14,     /* one-letter key, one-byte value */
    GGUF_MIN_TENSOR_BYTES = 33, /* one-letter name, one dimension */
    GGUF_WINDOW_BYTES = 64 * 1024,
    GGUF_EXTRA_BYTES = 256 * 1024, /* memory beyond 2 x file that reading one may ask for */
    GGUF_PIECE_BYTES = 1024 * 1024 /* most the writer asks of `fill` at once */
};

struct gguf_priv {
    uint32_t *kv_order, *tensor_order; /* sorted by name: the look-up's index */
};

/* Bytes of a scalar in file and memory; 0 for strings and arrays. */
size_t gguf_type_bytes(enum gguf_type type);

/* order[0..n) = 0..n-1 so sorted that before(ctx, a, b) never holds for b standing before a.
 * Heap sort: in place, no worst case, so that a hostile file cannot make it slow. */
typedef bool (*gguf_before_fn)(const void *ctx, uint32_t a, uint32_t b);
void gguf_sort(uint32_t *order, size_t n, gguf_before_fn before, const void *ctx);

static inline uint64_t gguf_align(uint64_t at, uint64_t alignment)
{
    return (at + alignment - 1) & ~(alignment - 1);
}

static inline bool gguf_is_pow2(uint64_t n)
{
    return n && (n & (n - 1)) == 0;
}

#endif
