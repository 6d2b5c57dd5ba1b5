/* QK + SOFTMAX + PV: flash attention. A work item is one KV head x a block of query rows; the heads
 * of the GQA group share each tile of K and V, which is turned to f32 once for all of them.
 *
 * Keys go in tiles of 64 and partials of 256, both cut at absolute rows of the sequence, and each
 * query's running maximum, sum and output depend on its own visible keys only: so the bits do not
 * depend on how rows are cut into steps, blocks or threads. Keys that a query may not see are never
 * touched in its sums (their weights would be 0, but 0 times a stale infinity is not). */
#include "backend/cpu/cpu.h"

#include <math.h>
#include <string.h>

#include "backend/cpu/tile.h"
#include "fuse/names.h"

enum { MAX_QUERY = 48 }; /* queries of a work item */

struct work {
    const struct cpu_isa *isa;
    struct cpu_tile tile;
    int d_k, d_v, n_head; /* of the query value */
    int group;            /* query heads per KV head */
    float scale, cap;
    int window;
    float *q, *s;      /* [MAX_QUERY][d_k], [MAX_QUERY][64] */
    float *part, *sum; /* [MAX_QUERY][d_v]: of this partial, of all before */
    float *max_p, *l_p, *max_s, *l_s, *corr;
};

/* One item: heads [head, head + n_head) of one KV head, rows [row, row + n_row) of a segment. */
struct item {
    int seg, head_kv, head, n_head, row, n_row, first;
}; /* first: its absolute row */

static size_t floats_needed(int d_k, int d_v)
{
    return (size_t)MAX_QUERY * (size_t)(d_k + CPU_KEYS + 2 * d_v + 5) +
           (size_t)CPU_KEYS * (size_t)(d_k + d_v);
}

size_t cpu_attention_bytes(const struct graph *graph, const struct group *g)
{
    const struct value *s = &graph->value[group_value_first(g, S, 0)];
    const struct state_slot *slot = &graph->slot[s->index];
    return floats_needed(slot->d_k, slot->d_v) * sizeof(float) + 12 * 64;
}

static float *take(char **at, size_t n)
{
    float *p = (float *)(void *)*at;
    *at += (n * sizeof(float) + 63) & ~(size_t)63;
    return p;
}

static struct work work_of(const struct call *c)
{
    const struct node *qk = group_node(c->graph, c->group, OP_QK);
    const struct value *x = val(c, X, 0);
    const struct state_slot *slot = &c->graph->slot[val(c, S, 0)->index];
    struct work w = {.isa = call_isa(c),
                     .d_k = slot->d_k,
                     .d_v = slot->d_v,
                     .n_head = x->shape.n_head,
                     .group = x->shape.n_head / slot->n_head_kv,
                     .scale = qk->at.QK.scale,
                     .cap = qk->at.QK.cap,
                     .window = qk->at.QK.window};
    char *at = c->scratch;
    w.q = take(&at, (size_t)MAX_QUERY * (size_t)w.d_k);
    w.s = take(&at, (size_t)MAX_QUERY * CPU_KEYS);
    w.part = take(&at, (size_t)MAX_QUERY * (size_t)w.d_v);
    w.sum = take(&at, (size_t)MAX_QUERY * (size_t)w.d_v);
    w.tile.k = take(&at, (size_t)CPU_KEYS * (size_t)w.d_k);
    w.tile.v = take(&at, (size_t)CPU_KEYS * (size_t)w.d_v);
    w.max_p = take(&at, MAX_QUERY);
    w.l_p = take(&at, MAX_QUERY);
    w.max_s = take(&at, MAX_QUERY);
    w.l_s = take(&at, MAX_QUERY);
    w.corr = take(&at, MAX_QUERY);
    return w;
}

/* First key that absolute row r may see. */
static int first_key(const struct work *w, int r)
{
    return w->window && r - w->window + 1 > 0 ? r - w->window + 1 : 0;
}

/* m queries from number q on, all of which see keys [k0, k1) of the tile. */
static void attend(const struct work *w, int q, int m, int k0, int k1)
{
    float *s = w->s + q * CPU_KEYS;
    w->isa->qk(s, w->q + (size_t)q * (size_t)w->d_k, w->tile.k, w->d_k, m);
    w->isa->soft(s, w->scale, w->cap, k0, k1, w->max_p + q, w->l_p + q, w->corr + q, m);
    w->isa->pv(w->part + (size_t)q * (size_t)w->d_v, s, w->corr + q, w->tile.v, w->d_v, k0, k1, m);
}

static void tile_step(const struct work *w, const struct item *it, int key)
{
    const int last = it->first + it->n_row - 1;
    if (first_key(w, last) <= key && key + CPU_KEYS - 1 <= it->first) {
        attend(w, 0, it->n_row * it->n_head, 0, CPU_KEYS);
        return;
    }
    for (int i = 0; i < it->n_row; i++) {
        const int r = it->first + i, lo = first_key(w, r);
        const int k0 = lo > key ? lo - key : 0,
                  k1 = r - key + 1 < CPU_KEYS ? r - key + 1 : CPU_KEYS;
        if (k0 < k1)
            attend(w, i * it->n_head, it->n_head, k0, k1);
    }
}

static void begin(const struct work *w, int m, float *max, float *l, float *out)
{
    for (int i = 0; i < m; i++) {
        max[i] = -INFINITY;
        l[i] = 0;
    }
    memset(out, 0, (size_t)m * (size_t)w->d_v * sizeof *out);
}

/* The partial joins what came before; a query that saw none of its keys keeps what it has. */
static void end_part(const struct work *w, const struct item *it, int key, int end)
{
    for (int i = 0; i < it->n_row * it->n_head; i++) {
        const int r = it->first + i / it->n_head;
        const size_t at = (size_t)i * (size_t)w->d_v;
        if (first_key(w, r) >= end || r < key)
            continue;
        if (first_key(w, r) >= key) { /* its first partial */
            memcpy(w->sum + at, w->part + at, (size_t)w->d_v * sizeof *w->sum);
            w->max_s[i] = w->max_p[i];
            w->l_s[i] = w->l_p[i];
        } else {
            w->isa->merge(w->sum + at, &w->max_s[i], &w->l_s[i], w->part + at, w->max_p[i],
                          w->l_p[i], w->d_v);
        }
    }
}

static void run_item(const struct call *c, struct work *w, const struct item *it,
                     const struct kv_view *kv)
{
    const int m = it->n_row * it->n_head, last = it->first + it->n_row - 1;
    const float *x = arg_f32(c, X, 0);
    for (int i = 0; i < m; i++) {
        const size_t row = (size_t)(it->row + i / it->n_head);
        const size_t head = (size_t)(it->head + i % it->n_head);
        memcpy(w->q + (size_t)i * (size_t)w->d_k,
               x + (row * (size_t)w->n_head + head) * (size_t)w->d_k,
               (size_t)w->d_k * sizeof *w->q);
    }
    for (int key = first_key(w, it->first) / CPU_PART * CPU_PART; key <= last; key += CPU_PART) {
        begin(w, m, w->max_p, w->l_p, w->part);
        for (int t = key; t < key + CPU_PART && t <= last; t += CPU_KEYS) {
            if (t + CPU_KEYS <= first_key(w, it->first))
                continue;
            cpu_tile_load(w->isa, &w->tile, kv, it->head_kv, t, last + 1);
            tile_step(w, it, t);
        }
        end_part(w, it, key, key + CPU_PART);
    }
}

/* Columns [col.lo, col.hi) of the item's rows go out. */
static void store(const struct call *c, const struct work *w, const struct item *it,
                  struct span col)
{
    for (int i = 0; i < it->n_row * it->n_head; i++) {
        float *y = w->sum + (size_t)i * (size_t)w->d_v;
        const int at = (it->head + i % it->n_head) * w->d_v;
        const int lo = col.lo > at ? col.lo : at;
        const int hi = col.hi < at + w->d_v ? col.hi : at + w->d_v;
        w->isa->mul_one(y, y, 1.0f / w->l_s[i], w->d_v);
        if (lo < hi)
            put(c, Y, 0, it->row + i / it->n_head, lo, hi - lo, y + (lo - at));
    }
}

/* The rows of one item: consecutive in the value and in their sequence. */
static int rows_of_item(const struct call *c, int row, int end, int most)
{
    const struct place first = place(c, X, row);
    int n = 1;
    while (n < most && row + n < end) {
        const struct place at = place(c, X, row + n);
        if (at.seg != first.seg || at.row != first.row + n)
            break;
        n++;
    }
    return n;
}

static void run_heads(const struct call *c, struct work *w, struct item it, struct span col)
{
    const struct span row = call_rows(c, X);
    const int most = MAX_QUERY / it.n_head;
    for (it.row = row.lo; it.row < row.hi; it.row += it.n_row) {
        const struct place at = place(c, X, it.row);
        it.n_row = rows_of_item(c, it.row, row.hi, most);
        it.seg = at.seg;
        it.first = at.row;
        const struct kv_view kv = arg_kv(c, S, it.seg);
        run_item(c, w, &it, &kv);
        store(c, w, &it, col);
    }
}

void cpu_attention(const struct call *c)
{
    struct work w = work_of(c);
    const struct span col = call_cols(c, Y, 0);
    const int head_end = (col.hi + w.d_v - 1) / w.d_v;
    for (int head = col.lo / w.d_v, n; col.lo < col.hi && head < head_end; head += n) {
        n = w.group - head % w.group;
        n = n < head_end - head ? n : head_end - head;
        n = n < MAX_QUERY ? n : MAX_QUERY;
        run_heads(c, &w, (struct item){.head_kv = head / w.group, .head = head, .n_head = n}, col);
    }
}
