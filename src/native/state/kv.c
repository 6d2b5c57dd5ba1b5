/* Rows in KV pages: where they lie for each type, and single rows in and out.
 * f32, f16: K [n_head_kv][d_k][page_rows] (a row is a column: scores of 16 keys are one vector),
 * V [n_head_kv][page_rows][d_v]. q8_0: both [n_head_kv][page_rows][blocks]. */
#include "native/state/state.h"

#include <string.h>

static size_t row_bytes(enum quant_type type, int d)
{
    const struct quant_row *q = quant_row(type);
    return (size_t)((d + q->block_elems - 1) / q->block_elems * q->block_bytes);
}

size_t kv_k_bytes(const struct state_slot *slot, enum quant_type type_k, int page_rows)
{
    return (size_t)slot->n_head_kv * (size_t)page_rows * row_bytes(type_k, slot->d_k);
}

size_t kv_v_bytes(const struct state_slot *slot, enum quant_type type_v, int page_rows)
{
    return (size_t)slot->n_head_kv * (size_t)page_rows * row_bytes(type_v, slot->d_v);
}

static bool is_blocked(enum quant_type type)
{
    return quant_row(type)->block_elems > 1;
}

static char *blocked_row(const struct kv_view *v, char *part, enum quant_type type, int d, int row,
                         int head)
{
    size_t at = (size_t)head * (size_t)v->page_rows + (size_t)(row % v->page_rows);
    return part + at * row_bytes(type, d);
}

/* Values i of a row lie `stride` elements apart, from `first`. */
static void put_strided(char *part, enum quant_type type, size_t first, size_t stride, int n,
                        const float *x)
{
    size_t each = (size_t)quant_row(type)->block_bytes;
    for (int i = 0; i < n; i++)
        quant_row(type)->encode(&x[i], part + (first + (size_t)i * stride) * each, 1);
}

static void get_strided(const char *part, enum quant_type type, size_t first, size_t stride, int n,
                        float *x)
{
    size_t each = (size_t)quant_row(type)->block_bytes;
    for (int i = 0; i < n; i++)
        quant_row(type)->decode(part + (first + (size_t)i * stride) * each, &x[i], 1);
}

static size_t k_first(const struct kv_view *v, int row, int head)
{
    return (size_t)head * (size_t)v->d_k * (size_t)v->page_rows + (size_t)(row % v->page_rows);
}

static size_t v_first(const struct kv_view *v, int row, int head)
{
    return ((size_t)head * (size_t)v->page_rows + (size_t)(row % v->page_rows)) * (size_t)v->d_v;
}

void kv_put_k(const struct kv_view *v, int row, int head, const float *k)
{
    char *part = kv_page(v, row);
    if (is_blocked(v->type_k))
        quant_row(v->type_k)->encode(k, blocked_row(v, part, v->type_k, v->d_k, row, head),
                                     (size_t)v->d_k);
    else
        put_strided(part, v->type_k, k_first(v, row, head), (size_t)v->page_rows, v->d_k, k);
}

void kv_put_v(const struct kv_view *v, int row, int head, const float *k)
{
    char *part = kv_page(v, row) + v->v_offset;
    if (is_blocked(v->type_v))
        quant_row(v->type_v)->encode(k, blocked_row(v, part, v->type_v, v->d_v, row, head),
                                     (size_t)v->d_v);
    else
        put_strided(part, v->type_v, v_first(v, row, head), 1, v->d_v, k);
}

void kv_get_k(const struct kv_view *v, int row, int head, float *k)
{
    char *part = kv_page(v, row);
    if (is_blocked(v->type_k))
        quant_row(v->type_k)->decode(blocked_row(v, part, v->type_k, v->d_k, row, head), k,
                                     (size_t)v->d_k);
    else
        get_strided(part, v->type_k, k_first(v, row, head), (size_t)v->page_rows, v->d_k, k);
}

void kv_get_v(const struct kv_view *v, int row, int head, float *k)
{
    char *part = kv_page(v, row) + v->v_offset;
    if (is_blocked(v->type_v))
        quant_row(v->type_v)->decode(blocked_row(v, part, v->type_v, v->d_v, row, head), k,
                                     (size_t)v->d_v);
    else
        get_strided(part, v->type_v, v_first(v, row, head), 1, v->d_v, k);
}
