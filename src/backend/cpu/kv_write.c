/* KV_WRITE, and ROPE + KV_WRITE: this step's rows of K and V into the cache, in the pool's type. In
 * a page K is [n_head_kv][d_k][page_rows], so that 64 keys of one column are one stream; V is
 * [n_head_kv][page_rows][d_v]. */
#include "backend/cpu/cpu.h"

#include <string.h>

#include "fuse/names.h"

size_t cpu_kv_write_bytes(const struct graph *graph, const struct group *g)
{
    const struct value *k = &graph->value[group_value_first(g, X, 0)];
    return (size_t)k->shape.d * (sizeof(float) + sizeof(uint16_t));
}

static void store_k(const struct cpu_isa *isa, const struct kv_view *kv, int row, int head,
                    const float *k, uint16_t *spare)
{
    const int d = kv->d_k, slot = row % kv->page_rows, step = kv->page_rows;
    char *page = kv_page(kv, row);
    const size_t at = (size_t)head * (size_t)d * (size_t)step + (size_t)slot;
    if (kv->type_k == QUANT_F32) {
        float *to = (float *)(void *)page + at;
        for (int i = 0; i < d; i++)
            to[i * step] = k[i];
    } else {
        uint16_t *to = (uint16_t *)(void *)page + at;
        isa->to_f16(spare, k, d);
        for (int i = 0; i < d; i++)
            to[i * step] = spare[i];
    }
}

static void store_v(const struct cpu_isa *isa, const struct kv_view *kv, int row, int head,
                    const float *v)
{
    char *page = kv_page(kv, row) + kv->v_offset;
    const size_t at =
        ((size_t)head * (size_t)kv->page_rows + (size_t)(row % kv->page_rows)) * (size_t)kv->d_v;
    if (kv->type_v == QUANT_F32)
        memcpy((float *)(void *)page + at, v, (size_t)kv->d_v * sizeof *v);
    else
        isa->to_f16((uint16_t *)(void *)page + at, v, kv->d_v);
}

void cpu_kv_write(const struct call *c)
{
    const struct cpu_isa *isa = call_isa(c);
    const struct shape shape = val(c, X, 0)->shape;
    const struct span row = call_rows(c, X), head = call_heads(c, shape.n_head);
    const float *k = arg_f32(c, X, 0), *v = arg_f32(c, V, 0);
    const float *table = has(c, T) ? arg_table(c, T) : NULL;
    const int n_rot = table ? val(c, T, 0)->shape.d : 0;
    const int neox = table ? group_node(c->graph, c->group, OP_ROPE)->at.ROPE.neox : 0;
    const size_t len_v = (size_t)row_len(val(c, V, 0));
    float *turned = c->scratch;
    uint16_t *spare = (uint16_t *)(void *)(turned + shape.d);
    for (int r = row.lo; r < row.hi; r++) {
        const struct place at = place(c, X, r);
        const struct kv_view kv = arg_kv(c, S, at.seg);
        for (int h = head.lo; h < head.hi; h++) {
            const float *kh = k + ((size_t)r * (size_t)shape.n_head + (size_t)h) * (size_t)shape.d;
            if (table) {
                isa->rope(turned, kh, table + (size_t)r * (size_t)n_rot, n_rot, shape.d, neox);
                kh = turned;
            }
            store_k(isa, &kv, at.row, h, kh, spare);
            store_v(isa, &kv, at.row, h, v + (size_t)r * len_v + (size_t)h * (size_t)kv.d_v);
        }
    }
}
