/* Tiles of keys: pages of 64 rows are one tile, smaller ones are put together. */
#include "backend/cpu/tile.h"

#include <string.h>

static void load_k(const struct cpu_isa *isa, float *to, const struct kv_view *kv, int head,
                   int row)
{
    const int n = kv->page_rows;
    const size_t at = (size_t)head * (size_t)kv->d_k * (size_t)n;
    const char *page = kv_page(kv, row);
    const float *f = (const float *)(const void *)page + at;
    const uint16_t *h = (const uint16_t *)(const void *)page + at;
    if (kv->type_k != QUANT_F32 && n == CPU_KEYS) {
        isa->from_f16(to, h, n * kv->d_k);
        return;
    }
    for (int d = 0; d < kv->d_k; d++, to += CPU_KEYS)
        if (kv->type_k == QUANT_F32)
            memcpy(to, f + d * n, (size_t)n * sizeof *to);
        else
            isa->from_f16(to, h + d * n, n);
}

static void load_v(const struct cpu_isa *isa, float *to, const struct kv_view *kv, int head,
                   int row)
{
    const int n = kv->page_rows * kv->d_v;
    const size_t at = (size_t)head * (size_t)n;
    const char *page = kv_page(kv, row) + kv->v_offset;
    if (kv->type_v == QUANT_F32)
        memcpy(to, (const float *)(const void *)page + at, (size_t)n * sizeof *to);
    else
        isa->from_f16(to, (const uint16_t *)(const void *)page + at, n);
}

void cpu_tile_load(const struct cpu_isa *isa, const struct cpu_tile *tile, const struct kv_view *kv,
                   int head, int key, int end)
{
    for (int row = key; row < key + CPU_KEYS && row < end; row += kv->page_rows) {
        if (row < kv->first_row)
            continue;
        if (tile->k)
            load_k(isa, tile->k + (row - key), kv, head, row);
        if (tile->v)
            load_v(isa, tile->v + (size_t)(row - key) * (size_t)kv->d_v, kv, head, row);
    }
}
