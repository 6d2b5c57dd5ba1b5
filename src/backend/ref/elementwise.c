/* Elementwise ops: in double, rounded once. */
#include "backend/ref/ref.h"

#include "fuse/names.h"

#include <math.h>

typedef double (*unary)(double x, double k);
typedef float (*binary)(float a, float b);

static double f_scale(double x, double k)
{
    return x * k;
}
static double f_silu(double x, double k)
{
    (void)k;
    return x / (1 + exp(-x));
}
static double f_tanh(double x, double k)
{
    (void)k;
    return tanh(x);
}
static double f_sin(double x, double k)
{
    (void)k;
    return sin(x);
}
static double f_sqr(double x, double k)
{
    (void)k;
    return x * x;
}
static float f_add(float a, float b)
{
    return a + b;
}
static float f_mul(float a, float b)
{
    return a * b;
}

/* sqrt(2 / pi) and 0.044715: the tanh approximation of Hendrycks and Gimpel (2016). */
static double f_gelu(double x, double k)
{
    (void)k;
    return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static void map(const struct call *c, unary f, double k)
{
    int len = row_len(val(c, Y, 0));
    const float *x = arg_f32(c, X, 0);
    float *y = out_f32(c, Y, 0);
    struct span r = call_rows(c, Y);
    for (size_t i = (size_t)r.lo * (size_t)len; y && i < (size_t)r.hi * (size_t)len; i++)
        y[i] = (float)f(x[i], k);
}

void ref_scale(const struct call *c)
{
    map(c, f_scale, group_node(c->graph, c->group, OP_SCALE)->at.SCALE.factor);
}

void ref_silu(const struct call *c)
{
    map(c, f_silu, 0);
}
void ref_gelu(const struct call *c)
{
    map(c, f_gelu, 0);
}
void ref_tanh(const struct call *c)
{
    map(c, f_tanh, 0);
}
void ref_sin(const struct call *c)
{
    map(c, f_sin, 0);
}
void ref_sqr(const struct call *c)
{
    map(c, f_sqr, 0);
}

/* Element i of row `row` of the second operand, as the bcast rule of shape.c reads it. */
static float second(const float *v, struct shape s, int row, int i, int len, int d)
{
    int v_len = s.n_head * s.d;
    const float *at = s.axis == AXIS_ONE ? v : v + (size_t)row * (size_t)v_len;
    return v_len == len ? at[i] : v_len == 1 ? at[0] : at[i % d];
}

static void zip(const struct call *c, const float *x, int x_name, int v_name, int rep, float *y,
                binary f)
{
    struct shape xs = val(c, x_name, 0)->shape;
    struct shape vs = c->graph->value[group_value_first(c->group, v_name, rep)].shape;
    const float *v = arg_f32(c, v_name, rep);
    int len = xs.n_head * xs.d;
    struct span r = call_rows(c, Y);
    for (int row = r.lo; row < r.hi; row++)
        for (int i = 0; i < len; i++) {
            size_t at = (size_t)row * (size_t)len + (size_t)i;
            y[at] = f(x[at], second(v, vs, row, i, len, xs.d));
        }
}

void ref_add(const struct call *c)
{
    if (out_f32(c, Y, 0))
        zip(c, arg_f32(c, X, 0), Y, V, 0, out_f32(c, Y, 0), f_add);
}

void ref_mul(const struct call *c)
{
    if (out_f32(c, Y, 0))
        zip(c, arg_f32(c, X, 0), Y, V, 0, out_f32(c, Y, 0), f_mul);
}

/* X + Y[0] + Y[1] + …, one after another. */
void ref_adds(const struct call *c)
{
    int len = row_len(val(c, X, 0)), n = n_rep(c, Y);
    const float *x = arg_f32(c, X, 0);
    float *out = out_f32(c, X, 0);
    struct span r = call_rows(c, X);
    for (size_t i = (size_t)r.lo * (size_t)len; out && i < (size_t)r.hi * (size_t)len; i++) {
        float sum = x[i];
        for (int k = 0; k < n; k++)
            sum += arg_f32(c, Y, k)[i];
        out[i] = sum;
    }
}

/* X + V sin(W X)^2 */
void ref_snake(const struct call *c)
{
    struct shape s = val(c, Y, 0)->shape,
                 ws = c->graph->value[group_value_first(c->group, W, 0)].shape,
                 vs = c->graph->value[group_value_first(c->group, V, 0)].shape;
    const float *x = arg_f32(c, X, 0), *w = arg_f32(c, W, 0), *v = arg_f32(c, V, 0);
    float *out = out_f32(c, Y, 0);
    int len = s.n_head * s.d;
    struct span r = call_rows(c, Y);
    for (int row = r.lo; out && row < r.hi; row++)
        for (int i = 0; i < len; i++) {
            size_t at = (size_t)row * (size_t)len + (size_t)i;
            float y = (float)f_sin(x[at] * second(w, ws, row, i, len, s.d), 0);
            y = (float)f_sqr(y, 0);
            out[at] = y * second(v, vs, row, i, len, s.d) + x[at];
        }
}
