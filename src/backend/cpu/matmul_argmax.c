/* MATMUL + ARGMAX: each thread keeps the best of its columns while it streams the matrix; logits
 * are stored only if somebody else reads them.
 *
 * The threads' bests meet in shared memory as one number per row that only grows: value in the
 * upper half, inverted id in the lower (ties go to the lower id). The thread that comes last turns
 * them into ids and leaves the memory zero. */
#include "backend/cpu/matmul_argmax.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "backend/cpu/vec.h"
#include "fuse/names.h"

struct meeting {
    _Atomic uint64_t best[CPU_ARGMAX_ROWS];
    _Atomic uint32_t n_done;
};
_Static_assert(sizeof(struct meeting) <= CPU_ARGMAX_SHARED, "the line asks for enough");

/* Greater floats give greater numbers; -0 is +0. Id -1 (something is not finite) beats all. */
static uint64_t key_of(float value, int id)
{
    uint32_t u = f32_bits(value + 0.0f);
    u = id < 0 ? UINT32_MAX : u >> 31 ? ~u : u | 0x80000000u;
    return (uint64_t)u << 32 | (uint32_t)~id;
}

static void grow(_Atomic uint64_t *best, uint64_t key)
{
    uint64_t old = atomic_load_explicit(best, memory_order_relaxed);
    while (old < key && !atomic_compare_exchange_weak_explicit(
                            best, &old, key, memory_order_relaxed, memory_order_relaxed))
        ;
}

static void take_best(const struct cpu_isa *isa, struct meeting *m, int row, const float *x,
                      int col, int n)
{
    float value;
    const int at = isa->argmax(x, n, &value);
    grow(&m->best[row], key_of(value, at < 0 ? -1 : col + at));
}

static void last_of_all(const struct call *c, struct meeting *m, int n_row)
{
    int32_t *ids = out_ids(c, Z, 0);
    for (int r = 0; r < n_row; r++) {
        const uint64_t key = atomic_load_explicit(&m->best[r], memory_order_relaxed);
        atomic_store_explicit(&m->best[r], 0, memory_order_relaxed);
        ids[r] = (int32_t) ~(uint32_t)key;
    }
    atomic_store_explicit(&m->n_done, 0, memory_order_relaxed);
}

void cpu_matmul_argmax(const struct call *c)
{
    const struct cpu_isa *isa = call_isa(c);
    const struct cpu_work work = cpu_work(c);
    const struct weight *w = arg_w(c, W, 0);
    const struct cpu_x x = cpu_x(c, X, w);
    const struct span cols = call_cols(c, Y, 0);
    const int n_tok = rows(c, X), n_row = row_len(val(c, Y, 0));
    float *out = out_f32(c, Y, 0);
    struct meeting *m = c->shared;
    for (int g = cols.lo / GROUP; g * GROUP < cols.hi && n_tok; g++) {
        const int lo = g * GROUP < cols.lo ? cols.lo : g * GROUP;
        const int hi = (g + 1) * GROUP < cols.hi ? (g + 1) * GROUP : cols.hi;
        cpu_product(isa, w, 0, g, &x, 0, n_tok, work.panel, work.acc[0]);
        for (int t = 0; t < n_tok; t++) {
            const float *acc = work.acc[0] + t * GROUP + (lo - g * GROUP);
            take_best(isa, m, t, acc, lo, hi - lo);
            if (out)
                memcpy(out + (size_t)t * (size_t)n_row + lo, acc, (size_t)(hi - lo) * sizeof *acc);
        }
    }
    if (atomic_fetch_add_explicit(&m->n_done, 1, memory_order_acq_rel) + 1 == (uint32_t)c->n_thread)
        last_of_all(c, m, n_tok);
}
