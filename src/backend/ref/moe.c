/* TOPK, SUM, ARGMAX. */
#include "backend/ref/ref.h"

#include "fuse/names.h"

#include <math.h>

static bool is_taken(const int32_t *ids, int n, int id)
{
    for (int i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* Softmax over all, the n_used best (ties to the lower id), renormalised if asked. */
static void route(const float *x, int n, int n_used, bool renorm, int32_t *ids, float *weight)
{
    double max = -HUGE_VAL, sum = 0, chosen = 0;
    for (int i = 0; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (int i = 0; i < n; i++)
        sum += exp(x[i] - max);
    for (int k = 0; k < n_used; k++) {
        int best = -1;
        for (int i = 0; i < n; i++)
            if (!is_taken(ids, k, i) && (best < 0 || x[i] > x[best]))
                best = i;
        ids[k] = best;
        chosen += exp(x[best] - max) / sum;
    }
    for (int k = 0; k < n_used; k++)
        weight[k] = (float)(exp(x[ids[k]] - max) / sum / (renorm ? chosen : 1));
}

static size_t n_used_of(const struct graph *graph, const struct group *g)
{
    return (size_t)group_node(graph, g, OP_TOPK)->at.TOPK.n_used;
}

size_t ref_topk_scratch(const struct graph *graph, const struct group *g)
{
    return n_used_of(graph, g) * (sizeof(int32_t) + sizeof(float));
}

/* An output that nobody reads has no memory: the scratch takes it. */
void ref_topk(const struct call *c)
{
    const struct node *node = group_node(c->graph, c->group, OP_TOPK);
    size_t n = (size_t)row_len(val(c, X, 0)), k = n_used_of(c->graph, c->group);
    const float *x = arg_f32(c, X, 0);
    int32_t *ids = out_ids(c, Y, 0), *no_ids = c->scratch;
    float *weight = out_f32(c, Z, 0), *no_weight = (float *)(void *)(no_ids + k);
    struct span r = call_rows(c, X);
    for (int row = r.lo; row < r.hi; row++)
        route(x + (size_t)row * n, (int)n, (int)k, node->at.TOPK.renorm != 0,
              ids ? ids + (size_t)row * k : no_ids, weight ? weight + (size_t)row * k : no_weight);
}

void ref_sum(const struct call *c)
{
    int k = group_node(c->graph, c->group, OP_SUM)->at.SUM.k, len = row_len(val(c, Y, 0));
    const float *x = arg_f32(c, X, 0);
    float *y = out_f32(c, Y, 0);
    struct span r = call_rows(c, Y);
    for (int row = r.lo; y && row < r.hi; row++)
        for (int i = 0; i < len; i++) {
            double sum = 0;
            for (int j = 0; j < k; j++)
                sum += x[((size_t)row * (size_t)k + (size_t)j) * (size_t)len + (size_t)i];
            y[(size_t)row * (size_t)len + (size_t)i] = (float)sum;
        }
}

void ref_argmax(const struct call *c)
{
    int n = row_len(val(c, X, 0));
    const float *x = arg_f32(c, X, 0);
    int32_t *ids = out_ids(c, Y, 0);
    struct span r = call_rows(c, Y);
    for (int row = r.lo; ids && row < r.hi; row++) {
        const float *at = x + (size_t)row * (size_t)n;
        int best = 0;
        bool nan = isnan(at[0]);
        for (int i = 1; i < n; i++) {
            nan |= isnan(at[i]);
            if (at[i] > at[best])
                best = i;
        }
        ids[row] = nan ? -1 : best;
    }
}
