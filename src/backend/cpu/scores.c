/* QK, SOFTMAX, PV one by one, over a tile of rows: scores [row][head][key], key = absolute row.
 * Their bits are not the fused kernel's: one softmax over all keys instead of a running one. */
#include "backend/cpu/tile.h"

#include <math.h>
#include <string.h>

#include "fuse/names.h"

/* Scratch: one tile of K or V, and 64 scores of one query. */
size_t cpu_scores_bytes(const struct graph *graph, const struct group *g)
{
    const struct value *s = &graph->value[group_value_first(g, S, 0)];
    const struct state_slot *slot = &graph->slot[s->index];
    const int d = slot->d_k > slot->d_v ? slot->d_k : slot->d_v;
    return (size_t)(d + 1) * CPU_KEYS * sizeof(float);
}

struct seen {
    int seg, lo, hi;
}; /* keys [lo, hi) that a row may see */

static struct seen seen_of(const struct call *c, int name, int row, int window)
{
    const struct place at = place(c, name, row);
    const int lo = window && at.row - window + 1 > 0 ? at.row - window + 1 : 0;
    return (struct seen){at.seg, lo, at.row + 1};
}

void cpu_qk(const struct call *c)
{
    const struct cpu_isa *isa = call_isa(c);
    const struct node *qk = group_node(c->graph, c->group, OP_QK);
    const struct shape shape = val(c, X, 0)->shape;
    const int n_key = score_keys(c), d = shape.d;
    const struct span row = call_rows(c, X);
    const float *x = arg_f32(c, X, 0);
    float *s = score(c, Y), *one = c->scratch;
    const struct cpu_tile tile = {.k = one + CPU_KEYS};
    for (int r = row.lo; r < row.hi; r++) {
        const struct seen see = seen_of(c, X, r, qk->at.QK.window);
        const struct kv_view kv = arg_kv(c, S, see.seg);
        const int group = shape.n_head / kv.n_head_kv;
        float *to = s + (size_t)(r - row.lo) * (size_t)shape.n_head * (size_t)n_key;
        for (int h = 0; h < shape.n_head; h++) {
            const float *q = x + ((size_t)r * (size_t)shape.n_head + (size_t)h) * (size_t)d;
            float *sh = to + (size_t)h * (size_t)n_key;
            for (int key = see.lo / CPU_KEYS * CPU_KEYS; key < see.hi; key += CPU_KEYS) {
                const int n = n_key - key < CPU_KEYS ? n_key - key : CPU_KEYS;
                cpu_tile_load(isa, &tile, &kv, h / group, key, see.hi);
                isa->qk(one, q, tile.k, d, 1);
                memcpy(sh + key, one, (size_t)n * sizeof *one);
            }
            isa->mask(sh, qk->at.QK.scale, qk->at.QK.cap, n_key, see.lo, see.hi);
        }
    }
}

void cpu_softmax(const struct call *c)
{
    const struct shape shape = val(c, C, 0)->shape;
    const int n_key = score_keys(c);
    const struct span row = call_rows(c, C);
    const float *sink = has(c, V) ? arg_f32(c, V, 0) : NULL;
    const float *from = score(c, C);
    float *s = score(c, Y);
    const size_t n = (size_t)(row.hi - row.lo) * (size_t)shape.n_head * (size_t)n_key;
    if (s != from && n)
        memcpy(s, from, n * sizeof *s);
    for (int r = 0; r < row.hi - row.lo; r++)
        for (int h = 0; h < shape.n_head; h++, s += n_key)
            call_isa(c)->softmax(s, n_key, sink ? sink + h : NULL);
}

void cpu_pv(const struct call *c)
{
    const struct cpu_isa *isa = call_isa(c);
    const struct shape shape = val(c, Y, 0)->shape;
    const int n_key = score_keys(c), d = shape.d;
    const struct span row = call_rows(c, Y);
    const float *s = score(c, C), keep = 1.0f;
    float *y = out_f32(c, Y, 0), *one = c->scratch;
    const struct cpu_tile tile = {.v = one + CPU_KEYS};
    for (int r = row.lo; r < row.hi; r++) {
        const struct place at = place(c, Y, r);
        const struct kv_view kv = arg_kv(c, S, at.seg);
        const int group = shape.n_head / kv.n_head_kv;
        for (int h = 0; h < shape.n_head; h++) {
            const float *p =
                s + ((size_t)(r - row.lo) * (size_t)shape.n_head + (size_t)h) * (size_t)n_key;
            float *o = y + ((size_t)r * (size_t)shape.n_head + (size_t)h) * (size_t)d;
            int key = 0;
            while (key <= at.row && p[key] == 0.0f) /* out of the window: maybe no page any more */
                key++;
            memset(o, 0, (size_t)d * sizeof *o);
            for (int k0 = key % CPU_KEYS, t = key - k0; t <= at.row; t += CPU_KEYS, k0 = 0) {
                const int k1 = at.row + 1 - t < CPU_KEYS ? at.row + 1 - t : CPU_KEYS;
                memcpy(one, p + t, (size_t)k1 * sizeof *one);
                cpu_tile_load(isa, &tile, &kv, h / group, t, at.row + 1);
                isa->pv(o, one, &keep, tile.v, d, k0, k1, 1);
            }
        }
    }
}
