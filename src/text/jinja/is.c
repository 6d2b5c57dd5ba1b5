/* The tests of `x is name`, and the lookup and binding that all tables share. */
#include "text/jinja/jinja.h"

#include <string.h>

const struct jrow *jrow_find(const struct jrow *rows, size_t n, const char *name, size_t bytes)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(rows[i].name) == bytes && !memcmp(rows[i].name, name, bytes))
            return &rows[i];
    return NULL;
}

/* Number of the parameter `name` in "a b / c", or -1; '/' ends those without keywords. */
static int parameter(const char *params, const char *name, size_t bytes)
{
    int i = 0, first = 0, found = -1;
    for (const char *p = params; *p;) {
        const size_t n = strcspn(p, " ");
        if (n == 1 && *p == '/')
            first = i--;
        else if (n == bytes && !memcmp(p, name, n))
            found = i;
        i++;
        p += n + (p[n] == ' ');
    }
    if (first && first > found)
        return -1;
    return found;
}

static size_t n_parameter(const char *params)
{
    size_t n = 0;
    for (const char *p = params; *p;) {
        const size_t len = strcspn(p, " ");
        n += len != 1 || *p != '/';
        p += len + (p[len] == ' ');
    }
    return n;
}

sinter_status jrow_call(struct jinja *j, const struct jrow *row, const char *what,
                        const struct jargs *raw, struct jv *out)
{
    struct jv arg[JROW_MAX_ARG] = {{.kind = JV_ABSENT}};
    size_t n;
    if (!row->fn)
        return JFAIL(j, UNSUPPORTED, "the %s '%s' is not supported", what, row->name);
    if (!row->params)
        return row->fn(j, raw, arg, out);
    n = n_parameter(row->params);
    if (raw->n_pos > n)
        return JFAIL(j, DATA, "%s '%s' takes at most %zu arguments, %zu were given", what,
                     row->name, n, raw->n_pos);
    if (raw->n_pos)
        memcpy(arg, raw->pos, raw->n_pos * sizeof *arg);
    for (size_t i = 0; i < raw->n_kw; i++) {
        const struct jstr *name = raw->kw[i].name;
        const int at = parameter(row->params, name->text, name->bytes);
        if (at < 0 || arg[at].kind != JV_ABSENT)
            return JFAIL(j, DATA, "%s '%s' got an unexpected keyword argument '%.*s'", what,
                         row->name, JCUT(name));
        arg[at] = raw->kw[i].value;
    }
    for (size_t i = 0; i < row->n_min; i++)
        if (arg[i].kind == JV_ABSENT)
            return JFAIL(j, DATA, "%s '%s' needs %zu arguments", what, row->name, row->n_min);
    return row->fn(j, raw, arg, out);
}

sinter_status jarg_int(struct jinja *j, struct jv v, int64_t fallback, int64_t *out)
{
    if (v.kind == JV_ABSENT) {
        *out = fallback;
        return SINTER_OK;
    }
    if (!jv_is_int(v))
        return JFAIL(j, DATA, "'%s' object cannot be interpreted as an integer", jv_type(v));
    *out = jv_as_int(v);
    return SINTER_OK;
}

bool jarg_is(struct jv v, const char *text)
{
    return v.kind == JV_STR && jstr_is(v.s, text);
}

/* ---- Tests -------------------------------------------------------------------------------- */

#define TEST(name, condition)                                                                      \
    static JFN(is_##name)                                                                          \
    {                                                                                              \
        const struct jv v = arg[0];                                                                \
        *out = jv_bool(condition);                                                                 \
        return SINTER_OK;                                                                          \
    }

TEST(defined, v.kind != JV_UNDEFINED)
TEST(undefined, v.kind == JV_UNDEFINED)
TEST(none, v.kind == JV_NONE)
TEST(boolean, v.kind == JV_BOOL)
TEST(false, v.kind == JV_BOOL && !v.b)
TEST(true, v.kind == JV_BOOL && v.b)
TEST(integer, v.kind == JV_INT)
TEST(float, v.kind == JV_FLOAT)
TEST(number, jv_is_number(v))
TEST(string, v.kind == JV_STR)
TEST(mapping, v.kind == JV_DICT)
TEST(sequence, v.kind == JV_STR || v.kind == JV_DICT || v.kind == JV_UNDEFINED ||
                   (v.kind == JV_SEQ && v.seq->kind <= SEQ_RANGE))
TEST(iterable, jv_iterable(v) || v.kind == JV_LOOP)
TEST(callable,
     (v.kind >= JV_MACRO && v.kind <= JV_LOOP) || v.kind == JV_JOINER || v.kind == JV_UNDEFINED)
TEST(escaped, v.kind == JV_STR && v.s->safe)

#define COMPARE(name, op)                                                                          \
    static JFN(is_##name)                                                                          \
    {                                                                                              \
        out->kind = JV_BOOL;                                                                       \
        return jv_compare(j, op, arg[0], arg[1], &out->b);                                         \
    }

COMPARE(eq, J_EQ)
COMPARE(ne, J_NE)
COMPARE(lt, J_LT)
COMPARE(le, J_LE)
COMPARE(gt, J_GT)
COMPARE(ge, J_GE)
COMPARE(in, J_IN)

static sinter_status remainder_is(struct jinja *j, struct jv v, struct jv by, int64_t want,
                                  struct jv *out)
{
    struct jv rest;
    TRY(jop_binary(j, J_MOD, v, by, &rest));
    out->kind = JV_BOOL;
    return jv_equal(j, rest, jv_int(want), &out->b);
}

static JFN(is_odd)
{
    return remainder_is(j, arg[0], jv_int(2), 1, out);
}

static JFN(is_even)
{
    return remainder_is(j, arg[0], jv_int(2), 0, out);
}

static JFN(is_divisibleby)
{
    return remainder_is(j, arg[0], arg[1], 0, out);
}

static sinter_status case_test(struct jinja *j, struct jv v, const char *what, struct jv *out)
{
    const struct jstr *s;
    TRY(jv_str(j, v, &s));
    out->kind = JV_BOOL;
    return jstr_test(j, s, what, &out->b);
}

static JFN(is_lower)
{
    return case_test(j, arg[0], "islower", out);
}

static JFN(is_upper)
{
    return case_test(j, arg[0], "isupper", out);
}

/* Identity: certain for None, booleans, small integers and the same object; else refused. */
static JFN(is_sameas)
{
    const struct jv a = arg[0], b = arg[1];
    *out = jv_bool(false);
    if (a.kind != b.kind)
        return SINTER_OK;
    if (a.kind == JV_NONE || a.kind == JV_BOOL)
        *out = jv_bool(a.kind == JV_NONE || a.b == b.b);
    else if (a.kind == JV_INT && a.i != b.i)
        return SINTER_OK;
    else if (a.kind == JV_INT && a.i >= -5 && a.i <= 256)
        *out = jv_bool(true);
    else if (a.kind >= JV_SEQ)
        *out = jv_bool(a.seq == b.seq);
    else
        return JFAIL(j, UNSUPPORTED, "'sameas' of %s values is not supported; use ==", jv_type(a));
    return SINTER_OK;
}

static JFN(is_filter)
{
    TRY(jv_check_hashable(j, arg[0]));
    *out = jv_bool(arg[0].kind == JV_STR && jinja_filter_find(arg[0].s->text, arg[0].s->bytes));
    return SINTER_OK;
}

static JFN(is_test)
{
    TRY(jv_check_hashable(j, arg[0]));
    *out = jv_bool(arg[0].kind == JV_STR && jinja_test_find(arg[0].s->text, arg[0].s->bytes));
    return SINTER_OK;
}

static const struct jrow tests[] = {
    {"odd", "value", 1, is_odd},
    {"even", "value", 1, is_even},
    {"divisibleby", "value num", 2, is_divisibleby},
    {"defined", "value", 1, is_defined},
    {"undefined", "value", 1, is_undefined},
    {"filter", "value", 1, is_filter},
    {"test", "value", 1, is_test},
    {"none", "value", 1, is_none},
    {"boolean", "value", 1, is_boolean},
    {"false", "value", 1, is_false},
    {"true", "value", 1, is_true},
    {"integer", "value", 1, is_integer},
    {"float", "value", 1, is_float},
    {"lower", "value", 1, is_lower},
    {"upper", "value", 1, is_upper},
    {"string", "value", 1, is_string},
    {"mapping", "value", 1, is_mapping},
    {"number", "value", 1, is_number},
    {"sequence", "value", 1, is_sequence},
    {"iterable", "value", 1, is_iterable},
    {"callable", "obj", 1, is_callable},
    {"sameas", "value other", 2, is_sameas},
    {"escaped", "value", 1, is_escaped},
    {"in", "value seq", 2, is_in},
    {"==", "a b /", 2, is_eq},
    {"eq", "a b /", 2, is_eq},
    {"equalto", "a b /", 2, is_eq},
    {"!=", "a b /", 2, is_ne},
    {"ne", "a b /", 2, is_ne},
    {">", "a b /", 2, is_gt},
    {"gt", "a b /", 2, is_gt},
    {"greaterthan", "a b /", 2, is_gt},
    {">=", "a b /", 2, is_ge},
    {"ge", "a b /", 2, is_ge},
    {"<", "a b /", 2, is_lt},
    {"lt", "a b /", 2, is_lt},
    {"lessthan", "a b /", 2, is_lt},
    {"<=", "a b /", 2, is_le},
    {"le", "a b /", 2, is_le},
};

const struct jrow *jinja_test_find(const char *name, size_t bytes)
{
    return jrow_find(tests, sizeof tests / sizeof *tests, name, bytes);
}
