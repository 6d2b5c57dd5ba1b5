/* Operators and slices, with Python's semantics. Integers are 64 bits; overflow is refused. */
#include "text/jinja/jinja.h"

#include <math.h>
#include <string.h>

static sinter_status overflow(struct jinja *j)
{
    return JFAIL(j, UNSUPPORTED, "integer arithmetic beyond 64 bits is not supported");
}

static sinter_status mismatch(struct jinja *j, enum jop op, struct jv a, struct jv b)
{
    static const char *const text[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};
    if (op == J_ADD && a.kind == JV_STR)
        return JFAIL(j, DATA, "can only concatenate str (not \"%s\") to str", jv_type(b));
    return JFAIL(j, DATA, "unsupported operand type(s) for %s: '%s' and '%s'", text[op], jv_type(a),
                 jv_type(b));
}

sinter_status jstr_escape(struct jinja *j, struct jv v, struct jv *out)
{
    const struct jstr *s;
    struct text_buf b;
    TRY(jv_str(j, v, &s));
    if (s->safe) {
        *out = v;
        return SINTER_OK;
    }
    text_buf_init(&b, j->host);
    for (size_t i = 0; i < s->bytes; i++) {
        const char c = s->text[i];
        const char *to = c == '&'    ? "&amp;"
                         : c == '<'  ? "&lt;"
                         : c == '>'  ? "&gt;"
                         : c == '"'  ? "&#34;"
                         : c == '\'' ? "&#39;"
                                     : NULL;
        text_buf_add(&b, to ? to : &c, to ? strlen(to) : 1);
    }
    return jstr_take(j, SINTER_OK, &b, true, out);
}

static sinter_status add_strings(struct jinja *j, struct jv a, struct jv b, struct jv *out)
{
    const bool safe = a.s->safe || b.s->safe;
    char *text;
    if (safe) {
        TRY(jstr_escape(j, a, &a));
        TRY(jstr_escape(j, b, &b));
    }
    if (a.s->bytes + b.s->bytes > j->limit.output_bytes)
        return JFAIL(j, LIMIT, "more than %zu bytes of text", j->limit.output_bytes);
    TRY(jalloc(j, a.s->bytes + b.s->bytes, 1, &text));
    memcpy(text, a.s->text, a.s->bytes);
    memcpy(text + a.s->bytes, b.s->text, b.s->bytes);
    return jstr_share(j, text, a.s->bytes + b.s->bytes, safe, out);
}

static bool plain_seq(struct jv v)
{
    return v.kind == JV_SEQ && v.seq->kind <= SEQ_TUPLE;
}

static sinter_status add_seqs(struct jinja *j, struct jv a, struct jv b, struct jv *out)
{
    struct jv v;
    TRY(jseq_new(j, a.seq->kind, a.seq->n + b.seq->n, &v));
    memcpy(v.seq->item, a.seq->item, a.seq->n * sizeof *v.seq->item);
    memcpy(v.seq->item + a.seq->n, b.seq->item, b.seq->n * sizeof *v.seq->item);
    *out = v;
    return SINTER_OK;
}

static sinter_status repeat(struct jinja *j, struct jv v, int64_t times, struct jv *out)
{
    const size_t n = v.kind == JV_STR ? v.s->bytes : v.seq->n;
    const size_t k = times > 0 && n ? (size_t)times : 0;
    size_t total;
    struct jv list;
    if (__builtin_mul_overflow(n, k, &total) || total > j->limit.output_bytes)
        return JFAIL(j, LIMIT, "repeating gives more than %zu bytes", j->limit.output_bytes);
    TRY(jcharge(j, k));
    if (v.kind == JV_STR) {
        char *text;
        TRY(jalloc(j, total, 1, &text));
        for (size_t i = 0; i < k; i++)
            memcpy(text + i * n, v.s->text, n);
        return jstr_share(j, text, total, v.s->safe, out);
    }
    TRY(jseq_new(j, v.seq->kind, total, &list));
    for (size_t i = 0; i < k; i++)
        memcpy(list.seq->item + i * n, v.seq->item, n * sizeof *list.seq->item);
    *out = list;
    return SINTER_OK;
}

static sinter_status int_power(struct jinja *j, int64_t base, int64_t exponent, struct jv *out)
{
    int64_t v = 1;
    if (exponent < 0) {
        if (!base)
            return JFAIL(j, DATA, "0.0 cannot be raised to a negative power");
        *out = jv_float(pow((double)base, (double)exponent));
        return SINTER_OK;
    }
    for (bool square = false; exponent; exponent >>= 1, square = true) {
        if (square && __builtin_mul_overflow(base, base, &base))
            return overflow(j);
        if ((exponent & 1) && __builtin_mul_overflow(v, base, &v))
            return overflow(j);
    }
    *out = jv_int(v);
    return SINTER_OK;
}

static sinter_status int_op(struct jinja *j, enum jop op, int64_t a, int64_t b, struct jv *out)
{
    int64_t v = 0;
    if ((op == J_DIV || op == J_FLOORDIV || op == J_MOD) && !b)
        return JFAIL(j, DATA, "%s",
                     op == J_DIV ? "division by zero" : "integer division or modulo by zero");
    if (op == J_ADD   ? __builtin_add_overflow(a, b, &v)
        : op == J_SUB ? __builtin_sub_overflow(a, b, &v)
        : op == J_MUL ? __builtin_mul_overflow(a, b, &v)
                      : op == J_FLOORDIV && a == INT64_MIN && b == -1)
        return overflow(j);
    if (op == J_POW)
        return int_power(j, a, b, out);
    if (op == J_DIV) {
        const int64_t exact = (int64_t)1 << 53;
        if (a > exact || a < -exact || b > exact || b < -exact)
            return overflow(j); /* Python rounds the quotient of the exact integers */
        *out = jv_float((double)a / (double)b);
        return SINTER_OK;
    }
    if (op == J_FLOORDIV)
        v = a / b - (a % b != 0 && (a < 0) != (b < 0));
    if (op == J_MOD) {
        v = b == -1 ? 0 : a % b;
        if (v && (v < 0) != (b < 0))
            v += b;
    }
    *out = jv_int(v);
    return SINTER_OK;
}

static double float_mod(double a, double b)
{
    double m = fmod(a, b);
    if (m != 0 ? (m < 0) != (b < 0) : false)
        m += b;
    return m != 0 ? m : copysign(0.0, b);
}

static double float_floordiv(double a, double b)
{
    const double m = float_mod(a, b);
    const double q = (a - m) / b;
    double f = floor(q);
    if (q == 0)
        return copysign(0.0, a / b);
    if (q - f > 0.5)
        f += 1;
    return f;
}

static sinter_status float_op(struct jinja *j, enum jop op, double a, double b, struct jv *out)
{
    double v = 0;
    if ((op == J_DIV || op == J_FLOORDIV || op == J_MOD) && b == 0)
        return JFAIL(j, DATA, "%s",
                     op == J_DIV        ? "float division by zero"
                     : op == J_FLOORDIV ? "float floor division by zero"
                                        : "float modulo");
    if (op == J_POW) {
        v = pow(a, b);
        if ((v != v && a == a && b == b) || (a == 0 && b < 0) ||
            (v - v != 0 && a - a == 0 && b - b == 0))
            return JFAIL(j, UNSUPPORTED, "this power is no finite real number");
    } else {
        v = op == J_ADD   ? a + b
            : op == J_SUB ? a - b
            : op == J_MUL ? a * b
            : op == J_DIV ? a / b
            : op == J_MOD ? float_mod(a, b)
                          : float_floordiv(a, b);
    }
    *out = jv_float(v);
    return SINTER_OK;
}

sinter_status jop_binary(struct jinja *j, enum jop op, struct jv a, struct jv b, struct jv *out)
{
    if (op == J_MOD && a.kind == JV_STR)
        return jfmt_percent(j, a.s, b, out);
    if (a.kind == JV_UNDEFINED || b.kind == JV_UNDEFINED)
        return jundef_fail(j, a.kind == JV_UNDEFINED ? a : b);
    if (jv_is_int(a) && jv_is_int(b))
        return int_op(j, op, jv_as_int(a), jv_as_int(b), out);
    if (jv_is_number(a) && jv_is_number(b))
        return float_op(j, op, jv_as_float(a), jv_as_float(b), out);
    if (op == J_ADD && a.kind == JV_STR && b.kind == JV_STR)
        return add_strings(j, a, b, out);
    if (op == J_ADD && plain_seq(a) && plain_seq(b) && a.seq->kind == b.seq->kind)
        return add_seqs(j, a, b, out);
    if (op == J_MUL && (a.kind == JV_STR || plain_seq(a)) && jv_is_int(b))
        return repeat(j, a, jv_as_int(b), out);
    if (op == J_MUL && jv_is_int(a) && (b.kind == JV_STR || plain_seq(b)))
        return repeat(j, b, jv_as_int(a), out);
    return mismatch(j, op, a, b);
}

sinter_status jop_unary(struct jinja *j, enum jop op, struct jv a, struct jv *out)
{
    int64_t v;
    if (a.kind == JV_UNDEFINED)
        return jundef_fail(j, a);
    if (a.kind == JV_FLOAT) {
        *out = jv_float(op == J_SUB ? -a.f : a.f);
        return SINTER_OK;
    }
    if (!jv_is_int(a))
        return JFAIL(j, DATA, "bad operand type for unary %c: '%s'", op == J_SUB ? '-' : '+',
                     jv_type(a));
    if (__builtin_sub_overflow(0, jv_as_int(a), &v) && op == J_SUB)
        return overflow(j);
    *out = jv_int(op == J_SUB ? v : jv_as_int(a));
    return SINTER_OK;
}

/* ---- Slices ------------------------------------------------------------------------------- */

static sinter_status slice_bound(struct jinja *j, struct jv v, int64_t n, int64_t step,
                                 bool is_stop, int64_t *out)
{
    const int64_t lowest = step < 0 ? -1 : 0, highest = step < 0 ? n - 1 : n;
    int64_t i;
    if (v.kind == JV_ABSENT || v.kind == JV_NONE) {
        *out = (step < 0) == is_stop ? lowest : highest;
        return SINTER_OK;
    }
    if (!jv_is_int(v))
        return JFAIL(j, DATA, "slice indices must be integers or None or have an __index__ method");
    i = jv_as_int(v);
    if (i < 0 && (i += n) < 0)
        i = lowest;
    *out = i > highest ? highest : i;
    return SINTER_OK;
}

static sinter_status slice_string(struct jinja *j, const struct jstr *s, int64_t lo, size_t n,
                                  int64_t step, struct jv *out)
{
    char *text;
    size_t bytes = 0;
    if (step == 1) {
        const size_t from = n ? jchar_offset(s, (size_t)lo) : 0;
        const struct jstr rest = {s->text + from, s->bytes - from, s->n_char - (n ? (size_t)lo : 0),
                                  false};
        return jstr_share(j, rest.text, jchar_offset(&rest, n), s->safe, out);
    }
    struct jv *item;
    size_t n_item;
    TRY(jv_elements(j, jv_text(s), &item, &n_item));
    TRY(jalloc(j, s->bytes, 1, &text));
    for (size_t i = 0; i < n; i++, lo += step) {
        memcpy(text + bytes, item[lo].s->text, item[lo].s->bytes);
        bytes += item[lo].s->bytes;
    }
    return jstr_share(j, text, bytes, s->safe, out);
}

sinter_status jop_slice(struct jinja *j, struct jv v, struct jv lo, struct jv hi, struct jv step,
                        struct jv *out)
{
    int64_t first, last, by = 1, n, count = 0;
    struct jv list;
    if (v.kind == JV_UNDEFINED)
        return jundef_fail(j, v);
    if (v.kind == JV_DICT)
        return JFAIL(j, DATA, "unhashable type: 'slice'");
    if (v.kind == JV_SEQ && v.seq->kind == SEQ_RANGE)
        return JFAIL(j, UNSUPPORTED, "slices of ranges are not supported; use |list first");
    if (v.kind != JV_STR && !plain_seq(v))
        return JFAIL(j, DATA, "'%s' object is not subscriptable", jv_type(v));
    if (step.kind != JV_ABSENT && step.kind != JV_NONE) {
        if (!jv_is_int(step))
            return JFAIL(j, DATA,
                         "slice indices must be integers or None or have an __index__ method");
        by = jv_as_int(step);
        if (!by)
            return JFAIL(j, DATA, "slice step cannot be zero");
        if (by > INT32_MAX || by < -INT32_MAX)
            by = by < 0 ? -INT32_MAX : INT32_MAX;
    }
    n = (int64_t)(v.kind == JV_STR ? v.s->n_char : v.seq->n);
    TRY(slice_bound(j, lo, n, by, false, &first));
    TRY(slice_bound(j, hi, n, by, true, &last));
    if (by > 0 ? last > first : last < first)
        count = (last - first + by + (by > 0 ? -1 : 1)) / by;
    TRY(jcharge(j, (size_t)count / 4));
    if (v.kind == JV_STR)
        return slice_string(j, v.s, first, (size_t)count, by, out);
    TRY(jseq_new(j, v.seq->kind, (size_t)count, &list));
    for (int64_t i = 0; i < count; i++)
        list.seq->item[i] = v.seq->item[first + i * by];
    *out = list;
    return SINTER_OK;
}
