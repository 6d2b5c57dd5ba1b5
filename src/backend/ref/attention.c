/* KV_WRITE, QK, SOFTMAX, PV: scores of a tile in f32, sums in double. */
#include "backend/ref/ref.h"

#include "fuse/names.h"

#include <math.h>

void ref_kv_write(const struct call *c)
{
    struct shape k = c->graph->value[group_value_first(c->group, X, 0)].shape;
    struct shape v = c->graph->value[group_value_first(c->group, V, 0)].shape;
    const float *xk = arg_f32(c, X, 0), *xv = arg_f32(c, V, 0);
    struct span r = call_rows(c, X);
    for (int row = r.lo; row < r.hi; row++) {
        struct place at = place(c, X, row);
        struct kv_view view = arg_kv(c, S, at.seg);
        for (int h = 0; h < view.n_head_kv; h++) {
            kv_put_k(&view, at.row, h,
                     xk + ((size_t)row * (size_t)k.n_head + (size_t)h) * (size_t)k.d);
            kv_put_v(&view, at.row, h,
                     xv + ((size_t)row * (size_t)v.n_head + (size_t)h) * (size_t)v.d);
        }
    }
}

/* Keys [lo, hi) that a query at absolute row `row` may see. */
static struct span keys_of(int row, int window)
{
    int lo = window && row - window + 1 > 0 ? row - window + 1 : 0;
    return (struct span){lo, row + 1};
}

/* One row of K or V, and as many sums. */
size_t ref_attention_scratch(const struct graph *graph, const struct group *g)
{
    const struct state_slot *s = &graph->slot[graph->value[group_value_first(g, S, 0)].index];
    size_t d = (size_t)(s->d_k > s->d_v ? s->d_k : s->d_v);
    return d * (sizeof(double) + sizeof(float));
}

/* k: room for one row of K. */
static void qk_row(const struct node *n, const struct kv_view *kv, const float *q, int n_head,
                   struct span keys, float *out, int n_key, float *k)
{
    int group = n_head / kv->n_head_kv, d = kv->d_k;
    for (int h = 0; h < n_head; h++) {
        for (int i = 0; i < n_key; i++)
            out[(size_t)h * (size_t)n_key + (size_t)i] = -INFINITY;
        for (int i = keys.lo; i < keys.hi; i++) {
            double sum = 0;
            kv_get_k(kv, i, h / group, k);
            for (int j = 0; j < d; j++)
                sum += (double)q[(size_t)h * (size_t)d + (size_t)j] * k[j];
            sum *= (double)n->at.QK.scale;
            if (n->at.QK.cap > 0)
                sum = (double)n->at.QK.cap * tanh(sum / (double)n->at.QK.cap);
            out[(size_t)h * (size_t)n_key + (size_t)i] = (float)sum;
        }
    }
}

void ref_qk(const struct call *c)
{
    const struct node *n = group_node(c->graph, c->group, OP_QK);
    struct shape s = c->graph->value[group_value_first(c->group, X, 0)].shape;
    const float *x = arg_f32(c, X, 0);
    int n_key = score_keys(c);
    struct span r = call_rows(c, X);
    for (int row = r.lo; row < r.hi; row++) {
        struct place at = place(c, X, row);
        struct kv_view kv = arg_kv(c, S, at.seg);
        float *out = score(c, Y) + (size_t)(row - r.lo) * (size_t)s.n_head * (size_t)n_key;
        qk_row(n, &kv, x + (size_t)row * (size_t)s.n_head * (size_t)s.d, s.n_head,
               keys_of(at.row, n->at.QK.window), out, n_key, c->scratch);
    }
}

static void softmax(float *x, int n, const float *sink)
{
    double max = sink ? (double)*sink : -HUGE_VAL, sum = 0;
    for (int i = 0; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (int i = 0; i < n; i++)
        sum += exp(x[i] - max);
    sum += sink ? exp((double)*sink - max) : 0;
    for (int i = 0; i < n; i++)
        x[i] = (float)(exp(x[i] - max) / sum);
}

void ref_softmax(const struct call *c)
{
    int n_head = val(c, Y, 0)->shape.n_head, n_key = score_keys(c);
    const float *sink = has(c, V) ? arg_f32(c, V, 0) : NULL;
    struct span r = call_rows(c, Y);
    float *x = score(c, Y);
    for (int i = 0; i < (r.hi - r.lo) * n_head; i++)
        softmax(x + (size_t)i * (size_t)n_key, n_key, sink ? sink + i % n_head : NULL);
}

/* Window of the scores: keys before first_row of the pages have weight 0 and are not there. sum:
 * room for as many sums as a row of V has, then for the row. */
static void pv_row(const struct kv_view *kv, const float *score, int n_head, int n_key, int row,
                   double *sum, float *y)
{
    int group = n_head / kv->n_head_kv, d = kv->d_v;
    float *v = (float *)(void *)(sum + d);
    for (int h = 0; h < n_head; h++) {
        const float *p = score + (size_t)h * (size_t)n_key;
        for (int j = 0; j < d; j++)
            sum[j] = 0;
        for (int i = kv->first_row; i <= row; i++) {
            if (p[i] == 0)
                continue;
            kv_get_v(kv, i, h / group, v);
            for (int j = 0; j < d; j++)
                sum[j] += (double)p[i] * v[j];
        }
        for (int j = 0; j < d; j++)
            y[(size_t)h * (size_t)d + (size_t)j] = (float)sum[j];
    }
}

void ref_pv(const struct call *c)
{
    struct shape s = val(c, Y, 0)->shape;
    int n_key = score_keys(c);
    float *y = out_f32(c, Y, 0);
    struct span r = call_rows(c, Y);
    for (int row = r.lo; y && row < r.hi; row++) {
        struct place at = place(c, Y, row);
        struct kv_view kv = arg_kv(c, S, at.seg);
        pv_row(&kv, score(c, C) + (size_t)(row - r.lo) * (size_t)s.n_head * (size_t)n_key, s.n_head,
               n_key, at.row, c->scratch, y + (size_t)row * (size_t)s.n_head * (size_t)s.d);
    }
}
