/* 64 keys of one KV head as f32, out of the cache's pages (tile.c). */
#ifndef CPU_TILE_H
#define CPU_TILE_H

#include "backend/cpu/cpu.h"

struct cpu_tile {
    float *k, *v;
}; /* [d_k][64], [64][d_v]; NULL: not wanted */

/* Keys [key, key + 64) of the sequence, of which rows below the view's first and from `end` on are
 * left as they are. key is a multiple of 64. */
void cpu_tile_load(const struct cpu_isa *isa, const struct cpu_tile *tile, const struct kv_view *kv,
                   int head, int key, int end);

#endif
