/* The merge loop that BPE and SentencePiece share: the pair with the lowest key merges first, of
 * equal ones the leftmost. Short words scan all pairs, long ones keep a heap; both give the same
 * (vocab_test.c compares them). A heap entry is stale if its symbols have changed since. */
#include <string.h>

#include "text/vocab_priv.h"

enum { SMALL = 24 };
#define NONE UINT32_MAX

sinter_status merge_begin(struct encoder *e, size_t n, sinter_error *err)
{
    void *block = e->sym;
    sinter_status status = host_grow(e->host, &block, &e->sym_cap, n, sizeof *e->sym, err);

    e->sym = block;
    return status;
}

static void link_all(struct merge_sym *sym, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sym[i].prev = i == 0 ? NONE : (uint32_t)(i - 1);
        sym[i].next = i + 1 == n ? NONE : (uint32_t)(i + 1);
    }
}

struct small_pair {
    uint64_t key; /* UINT64_MAX: does not merge */
    int32_t id;
};

static struct small_pair small_pair(struct encoder *e, size_t i, merge_pair_fn pair)
{
    uint32_t key;
    int32_t id;

    e->work++;
    if (!pair(e, &e->sym[i], &e->sym[i + 1], &key, &id))
        return (struct small_pair){UINT64_MAX, -1};
    return (struct small_pair){key, id};
}

static void merge_small(struct encoder *e, size_t n, merge_pair_fn pair)
{
    struct small_pair p[SMALL];
    struct merge_sym *sym = e->sym;

    for (size_t i = 0; i + 1 < n; i++)
        p[i] = small_pair(e, i, pair);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (p[i].key < p[best].key)
                best = i;
        if (p[best].key == UINT64_MAX)
            break;
        sym[best].len += sym[best + 1].len;
        sym[best].id = p[best].id;
        n--;
        memmove(sym + best + 1, sym + best + 2, (n - best - 1) * sizeof *sym);
        memmove(p + best, p + best + 1, (n - best - 1) * sizeof *p);
        if (best > 0)
            p[best - 1] = small_pair(e, best - 1, pair);
        if (best + 1 < n)
            p[best] = small_pair(e, best, pair);
    }
    link_all(sym, n);
}

static bool before(const struct merge_entry *a, const struct merge_entry *b)
{
    return a->key != b->key ? a->key < b->key : a->left < b->left;
}

/* Adds the pair that begins at `left`, if it merges. */
static sinter_status heap_push(struct encoder *e, uint32_t left, merge_pair_fn pair,
                               sinter_error *err)
{
    const struct merge_sym *l = &e->sym[left];
    struct merge_entry x = {.left = left, .left_len = l->len};

    e->work++;
    if (l->next == NONE || !pair(e, l, &e->sym[l->next], &x.key, &x.id))
        return SINTER_OK;
    x.right_len = e->sym[l->next].len;
    if (e->n_heap == e->heap_cap) {
        void *block = e->heap;
        sinter_status status =
            host_grow(e->host, &block, &e->heap_cap, e->n_heap + 1, sizeof x, err);
        e->heap = block;
        TRY(status);
    }
    size_t i = e->n_heap++;
    for (; i > 0 && before(&x, &e->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        e->heap[i] = e->heap[(i - 1) / 2];
        e->work++;
    }
    e->heap[i] = x;
    return SINTER_OK;
}

static struct merge_entry heap_pop(struct encoder *e)
{
    struct merge_entry top = e->heap[0], x = e->heap[--e->n_heap];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;
        e->work++;
        if (child >= e->n_heap)
            break;
        if (child + 1 < e->n_heap && before(&e->heap[child + 1], &e->heap[child]))
            child++;
        if (!before(&e->heap[child], &x))
            break;
        e->heap[i] = e->heap[child];
        i = child;
    }
    e->heap[i] = x;
    return top;
}

static sinter_status merge_large(struct encoder *e, size_t n, merge_pair_fn pair, sinter_error *err)
{
    struct merge_sym *sym = e->sym;

    link_all(sym, n);
    e->n_heap = 0;
    for (size_t i = 0; i + 1 < n; i++)
        TRY(heap_push(e, (uint32_t)i, pair, err));
    while (e->n_heap > 0) {
        const struct merge_entry x = heap_pop(e);
        struct merge_sym *l = &sym[x.left];
        if (l->len != x.left_len || l->next == NONE || sym[l->next].len != x.right_len)
            continue;
        struct merge_sym *r = &sym[l->next];
        l->len += r->len;
        l->id = x.id;
        l->next = r->next;
        r->len = 0;
        if (l->next != NONE)
            sym[l->next].prev = x.left;
        TRY(heap_push(e, x.left, pair, err));
        if (l->prev != NONE)
            TRY(heap_push(e, l->prev, pair, err));
    }
    return SINTER_OK;
}

sinter_status merge_run(struct encoder *e, size_t n, merge_pair_fn pair, sinter_error *err)
{
    if (n > SMALL)
        return merge_large(e, n, pair, err);
    merge_small(e, n, pair);
    return SINTER_OK;
}
