/* ADD, MUL, SCALE, SILU, GELU, TANH, SUM: any rows, any columns, so any share. */
#include "backend/cpu/cpu.h"

#include <string.h>

#include "fuse/names.h"

typedef void (*vec_fn)(float *y, const float *a, const float *b, int n);
typedef void (*one_fn)(float *y, const float *a, float b, int n);

/* Operand 1 is a whole row, one head for all heads, or one number; of each row, or one for all. */
static void binary(const struct call *c, vec_fn vec, one_fn one)
{
    const struct span row = call_rows(c, Y), col = call_cols(c, Y, 0);
    const struct value *v = val(c, V, 0);
    const int len = row_len(val(c, Y, 0)), len_v = row_len(v), d = val(c, X, 0)->shape.d;
    const bool for_all = v->shape.axis == AXIS_ONE && v->shape.mult == 1;
    const float *x = arg_f32(c, X, 0), *b = arg_f32(c, V, 0);
    float *y = out_f32(c, Y, 0);
    for (int r = row.lo; r < row.hi; r++) {
        const size_t at = (size_t)r * (size_t)len;
        const float *br = b + (for_all ? 0 : (size_t)r * (size_t)len_v);
        if (len_v == len) {
            vec(y + at + col.lo, x + at + col.lo, br + col.lo, col.hi - col.lo);
        } else if (len_v == 1) {
            one(y + at + col.lo, x + at + col.lo, *br, col.hi - col.lo);
        } else {
            for (int i = col.lo, n; i < col.hi; i += n) {
                n = d - i % d < col.hi - i ? d - i % d : col.hi - i;
                vec(y + at + i, x + at + i, br + i % d, n);
            }
        }
    }
}

void cpu_add(const struct call *c)
{
    binary(c, call_isa(c)->add, call_isa(c)->add_one);
}

void cpu_mul(const struct call *c)
{
    binary(c, call_isa(c)->mul, call_isa(c)->mul_one);
}

static void unary(const struct call *c, void (*fn)(float *y, const float *x, int n))
{
    const struct span row = call_rows(c, Y), col = call_cols(c, Y, 0);
    const size_t len = (size_t)row_len(val(c, Y, 0));
    const float *x = arg_f32(c, X, 0);
    float *y = out_f32(c, Y, 0);
    for (int r = row.lo; r < row.hi; r++) {
        const size_t at = (size_t)r * len + (size_t)col.lo;
        fn(y + at, x + at, col.hi - col.lo);
    }
}

void cpu_silu(const struct call *c)
{
    unary(c, call_isa(c)->silu);
}

void cpu_gelu(const struct call *c)
{
    unary(c, call_isa(c)->gelu);
}

void cpu_tanh(const struct call *c)
{
    unary(c, call_isa(c)->tanh);
}

void cpu_scale(const struct call *c)
{
    const struct span row = call_rows(c, Y), col = call_cols(c, Y, 0);
    const size_t len = (size_t)row_len(val(c, Y, 0));
    const float factor = group_node(c->graph, c->group, OP_SCALE)->at.SCALE.factor;
    const float *x = arg_f32(c, X, 0);
    float *y = out_f32(c, Y, 0);
    for (int r = row.lo; r < row.hi; r++) {
        const size_t at = (size_t)r * len + (size_t)col.lo;
        call_isa(c)->mul_one(y + at, x + at, factor, col.hi - col.lo);
    }
}

/* k consecutive rows, ascending. */
void cpu_sum(const struct call *c)
{
    const struct span row = call_rows(c, Y), col = call_cols(c, Y, 0);
    const size_t len = (size_t)row_len(val(c, Y, 0)), n = (size_t)(col.hi - col.lo);
    const int k = group_node(c->graph, c->group, OP_SUM)->at.SUM.k;
    const float *x = arg_f32(c, X, 0);
    float *y = out_f32(c, Y, 0);
    for (int r = row.lo; r < row.hi; r++) {
        float *to = y + (size_t)r * len + (size_t)col.lo;
        const float *from = x + (size_t)r * (size_t)k * len + (size_t)col.lo;
        memcpy(to, from, n * sizeof *to);
        for (int i = 1; i < k; i++)
            call_isa(c)->add(to, to, from + (size_t)i * len, (int)n);
    }
}
