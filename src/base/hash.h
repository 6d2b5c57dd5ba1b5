/* FNV-1a, 64 bits (Fowler, Noll, Vo): against damage and mistakes, not against forgery. Start with
 * FNV1A_START; go on with what the last call gave. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define FNV1A_START UINT64_C(0xcbf29ce484222325)
#define FNV1A_PRIME UINT64_C(0x100000001b3)

static inline uint64_t fnv1a(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * FNV1A_PRIME;
    return hash;
}

#endif
