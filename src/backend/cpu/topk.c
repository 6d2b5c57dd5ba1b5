/* TOPK (routers) and ARGMAX: ties go to the lower id. */
#include "backend/cpu/cpu.h"

#include <math.h>
#include <stdbool.h>

#include "fuse/names.h"

size_t cpu_topk_bytes(const struct graph *graph, const struct group *g)
{
    const size_t n_used = (size_t)group_node(graph, g, OP_TOPK)->at.TOPK.n_used;
    return sizeof(float) * ((size_t)row_len(&graph->value[group_value(g, X, 0)]) + 2 * n_used);
}

/* Softmax over all, then the n best; renorm divides by the sum of the chosen, best first. */
static void topk_row(const struct cpu_isa *isa, const float *x, int n, int n_used, int renorm,
                     float *p, int32_t *ids, float *weight)
{
    float sum = 0;
    for (int i = 0; i < n; i++)
        p[i] = x[i];
    isa->softmax(p, n, NULL);
    for (int k = 0; k < n_used; k++) {
        int best = -1;
        for (int i = 0; i < n; i++) {
            bool taken = false;
            for (int j = 0; j < k; j++)
                taken |= ids[j] == i;
            if (!taken && (best < 0 || p[i] > p[best]))
                best = i;
        }
        ids[k] = best;
        weight[k] = p[best];
        sum += p[best];
    }
    for (int k = 0; renorm && k < n_used; k++)
        weight[k] = weight[k] / sum;
}

/* An output that nobody reads has no memory: the scratch takes it. */
void cpu_topk(const struct call *c)
{
    const struct node *n = group_node(c->graph, c->group, OP_TOPK);
    const size_t n_used = (size_t)n->at.TOPK.n_used, d = (size_t)row_len(val(c, X, 0));
    const struct span row = call_rows(c, X);
    const float *x = arg_f32(c, X, 0);
    int32_t *ids = out_ids(c, Y, 0);
    float *weight = out_f32(c, Z, 0), *p = c->scratch, *no_weight = p + d;
    int32_t *no_ids = (int32_t *)(void *)(no_weight + n_used);
    for (int r = row.lo; r < row.hi; r++)
        topk_row(call_isa(c), x + (size_t)r * d, (int)d, (int)n_used, n->at.TOPK.renorm, p,
                 ids ? ids + (size_t)r * n_used : no_ids,
                 weight ? weight + (size_t)r * n_used : no_weight);
}

void cpu_argmax(const struct call *c)
{
    const struct span row = call_rows(c, X);
    const int d = row_len(val(c, X, 0));
    const float *x = arg_f32(c, X, 0);
    int32_t *ids = out_ids(c, Y, 0);
    for (int r = row.lo; r < row.hi; r++) {
        float best;
        ids[r] = call_isa(c)->argmax(x + (size_t)r * (size_t)d, d, &best);
    }
}
