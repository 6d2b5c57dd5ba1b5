/* Filters on single values, and the table of all filters. arg[0] is the operand. */
#include "text/jinja/jinja.h"

#include <math.h>
#include <string.h>

#include "text/jinja/filter.h"

#define CASE_FILTER(name, how)                                                                     \
    static JFN(filter_##name)                                                                      \
    {                                                                                              \
        const struct jstr *s;                                                                      \
        TRY(jv_str(j, arg[0], &s));                                                                \
        return jstr_case(j, s, how, out);                                                          \
    }

CASE_FILTER(upper, CASE_UPPER)
CASE_FILTER(lower, CASE_LOWER)
CASE_FILTER(title, CASE_TITLE_FILTER)
CASE_FILTER(capitalize, CASE_CAPITALIZE)

static JFN(filter_trim)
{
    const struct jstr *s;
    TRY(jv_str(j, arg[0], &s));
    return jstr_strip(j, s, arg[1], 3, out);
}

static JFN(filter_string)
{
    out->kind = JV_STR;
    return jv_str(j, arg[0], &out->s);
}

static JFN(filter_safe)
{
    const struct jstr *s;
    if (arg[0].kind == JV_UNDEFINED)
        return jstr_share(j, "", 0, true, out);
    TRY(jv_str(j, arg[0], &s));
    return jstr_share(j, s->text, s->bytes, true, out);
}

static JFN(filter_escape)
{
    return jstr_escape(j, arg[0], out);
}

static JFN(filter_forceescape)
{
    const struct jstr *s;
    struct jv plain;
    TRY(jv_str(j, arg[0], &s));
    TRY(jstr_share(j, s->text, s->bytes, false, &plain));
    return jstr_escape(j, plain, out);
}

static JFN(filter_default)
{
    const bool use = arg[0].kind == JV_UNDEFINED || (jv_truth(arg[2]) && !jv_truth(arg[0]));
    if (use && arg[1].kind == JV_ABSENT)
        return jstr_share(j, "", 0, false, out);
    *out = use ? arg[1] : arg[0];
    return SINTER_OK;
}

static JFN(filter_replace)
{
    const struct jstr *s, *from, *to;
    struct jstr plain;
    int64_t count;
    TRY(jv_str(j, arg[0], &s));
    TRY(jv_str(j, arg[1], &from));
    TRY(jv_str(j, arg[2], &to));
    TRY(jarg_int(j, arg[3].kind == JV_NONE ? jv_absent() : arg[3], -1, &count));
    plain = *s;
    plain.safe = false; /* str() of markup is plain */
    return jstr_replace(j, &plain, from, to, count, out);
}

static JFN(filter_center)
{
    const struct jstr *s;
    int64_t width;
    TRY(jv_str(j, arg[0], &s));
    TRY(jarg_int(j, arg[1], 80, &width));
    return jstr_pad(j, s, width, ' ', 0, out);
}

static JFN(filter_format)
{
    struct jv args;
    const struct jstr *s;
    if (!raw->n_pos || (raw->n_pos > 1 && raw->n_kw))
        return JFAIL(j, DATA, "can't handle positional and keyword arguments at the same time");
    TRY(jv_str(j, raw->pos[0], &s));
    if (raw->n_kw) {
        struct jdict *d;
        TRY(jdict_new(j, raw->n_kw, &d));
        TRY(jdict_set_kw(j, d, raw));
        return jfmt_percent(j, s, (struct jv){.kind = JV_DICT, .dict = d}, out);
    }
    TRY(jseq_copy(j, SEQ_TUPLE, raw->pos + 1, raw->n_pos - 1, &args));
    return jfmt_percent(j, s, args, out);
}

static JFN(filter_tojson)
{
    return jjson_dump(j, arg, out);
}

/* Lines behind the first get the indentation; blank ones only if asked. */
static sinter_status indent_lines(struct jinja *j, const struct jseq *lines, const struct jstr *by,
                                  bool first, bool blank, struct text_buf *b)
{
    for (size_t i = 0; i < lines->n; i++) {
        const struct jstr *s = lines->item[i].s;
        if (i)
            text_buf_add(b, "\n", 1);
        if (i ? blank || s->bytes : first)
            text_buf_add(b, by->text, by->bytes);
        text_buf_add(b, s->text, s->bytes);
        TRY(jcharge(j, 1 + (by->bytes + s->bytes) / 16));
        if (b->bytes > j->limit.output_bytes)
            return JFAIL(j, LIMIT, "more than %zu bytes of text", j->limit.output_bytes);
    }
    return SINTER_OK;
}

static JFN(filter_indent)
{
    struct jv by = arg[1], text, lines, blank;
    struct text_buf b;
    sinter_status status;
    if (arg[0].kind == JV_UNDEFINED)
        return jundef_fail(j, arg[0]);
    if (arg[0].kind != JV_STR)
        return JFAIL(j, DATA, "indent: a string is needed, not '%s'", jv_type(arg[0]));
    if (by.kind != JV_STR) {
        TRY(jstr_share(j, " ", 1, false, &blank));
        TRY(jop_binary(j, J_MUL, blank, by.kind == JV_ABSENT ? jv_int(4) : by, &by));
    }
    TRY(jstr_share(j, "\n", 1, arg[0].s->safe, &text)); /* makes an empty last line one */
    TRY(jop_binary(j, J_ADD, arg[0], text, &text));
    TRY(jstr_lines(j, text.s, false, &lines));
    text_buf_init(&b, j->host);
    status = indent_lines(j, lines.seq, by.s, jv_truth(arg[2]), jv_truth(arg[3]), &b);
    return jstr_take(j, status, &b, arg[0].s->safe, out);
}

static JFN(filter_truncate)
{
    int64_t length, leeway;
    struct jv end, cut, parts;
    if (arg[0].kind != JV_STR || arg[0].s->safe)
        return JFAIL(j, UNSUPPORTED, "truncate of '%s' is not supported", jv_type(arg[0]));
    TRY(jarg_int(j, arg[1], 255, &length));
    TRY(jarg_int(j, arg[4].kind == JV_NONE ? jv_absent() : arg[4], 5, &leeway));
    TRY(jstr_share(j, "...", 3, false, &end));
    if (arg[3].kind == JV_STR)
        end = arg[3];
    if (length < (int64_t)end.s->n_char || leeway < 0)
        return JFAIL(j, DATA, "truncate: expected length >= %zu and leeway >= 0", end.s->n_char);
    if ((int64_t)arg[0].s->n_char <= length || (int64_t)arg[0].s->n_char - length <= leeway) {
        *out = arg[0];
        return SINTER_OK;
    }
    TRY(jop_slice(j, arg[0], jv_none(), jv_int(length - (int64_t)end.s->n_char), jv_none(), &cut));
    if (!jv_truth(arg[2])) {
        const struct jrow *rsplit = jrow_find(jinja_str_methods, jinja_n_str_method, "rsplit", 6);
        struct jv one[3] = {cut, {0}, jv_int(1)};
        TRY(jstr_share(j, " ", 1, false, &one[1]));
        TRY(rsplit->fn(j, NULL, one, &parts));
        cut = parts.seq->item[0];
    }
    return jop_binary(j, J_ADD, cut, end, out);
}

static JFN(filter_wordcount)
{
    const struct jstr *s;
    bool in_word = false;
    int64_t n = 0;
    size_t len;
    TRY(jv_str(j, arg[0], &s));
    TRY(jcharge(j, s->n_char / 4));
    for (size_t i = 0; i < s->bytes; i += len) {
        const uint32_t c = jchar_get(s->text + i, &len);
        const bool word = c == '_' || jchar_alpha(c) || jchar_numeric(c);
        n += word && !in_word;
        in_word = word;
    }
    *out = jv_int(n);
    return SINTER_OK;
}

/* ---- Numbers ------------------------------------------------------------------------------ */

static JFN(filter_abs)
{
    const struct jv v = arg[0];
    const bool negative = v.kind == JV_FLOAT ? signbit(v.f) != 0 : jv_is_int(v) && jv_as_int(v) < 0;
    if (v.kind == JV_UNDEFINED || !jv_is_number(v))
        return JFAIL(j, DATA, "bad operand type for abs(): '%s'", jv_type(v));
    return jop_unary(j, negative ? J_SUB : J_ADD, v, out);
}

/* Digits of an integer literal as Python's int(text, base) takes them. */
static bool parse_int(const char *s, size_t n, int base, int64_t *out, bool *overflow)
{
    const bool minus = n && *s == '-';
    bool digit = false;
    int64_t v = 0;
    if (n && (*s == '-' || *s == '+'))
        s++, n--;
    if (n > 2 && s[0] == '0' && base != 10) {
        const char c = (char)(s[1] | 0x20);
        const int prefix = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
        if (prefix && (base == prefix || base == 0)) {
            base = prefix;
            s += 2, n -= 2;
        }
    }
    if (base == 0)
        base = 10;
    for (size_t i = 0; i < n; i++) {
        const char c = s[i], low = (char)(c | 0x20);
        const int d = c >= '0' && c <= '9'       ? c - '0'
                      : low >= 'a' && low <= 'z' ? low - 'a' + 10
                                                 : 99;
        if (c == '_' && digit && i + 1 < n && s[i + 1] != '_')
            continue;
        if (d >= base)
            return false;
        digit = true;
        if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, minus ? -d : d, &v))
            *overflow = true;
    }
    *out = v;
    return digit;
}

static size_t run(const char *s, size_t n, size_t i)
{
    while (i < n && ((s[i] >= '0' && s[i] <= '9') ||
                     (s[i] == '_' && i && s[i - 1] != '_' && i + 1 < n && s[i + 1] >= '0' &&
                      s[i + 1] <= '9' && s[i - 1] >= '0' && s[i - 1] <= '9')))
        i++;
    return i;
}

static bool word(const char *s, size_t n, const char *name)
{
    if (n != strlen(name))
        return false;
    for (size_t i = 0; i < n; i++)
        if ((s[i] | 0x20) != name[i])
            return false;
    return true;
}

/* Python's float(text): blanks around, one sign, digits with '_' between, inf and nan. */
static bool parse_float(const char *s, size_t n, double *out)
{
    const bool minus = n && *s == '-';
    char buf[512];
    size_t i, whole, k = 0;
    if (n && (*s == '-' || *s == '+'))
        s++, n--;
    if (word(s, n, "inf") || word(s, n, "infinity") || word(s, n, "nan")) {
        *out = word(s, n, "nan") ? (double)NAN : (double)INFINITY;
        *out = minus ? -*out : *out;
        return true;
    }
    i = whole = run(s, n, 0);
    if (i < n && s[i] == '.') {
        const size_t end = run(s, n, i + 1);
        if (!whole && end == i + 1)
            return false;
        i = end;
    } else if (!whole) {
        return false;
    }
    if (i < n && (s[i] | 0x20) == 'e') {
        size_t e = i + 1;
        e += e < n && (s[e] == '+' || s[e] == '-');
        i = run(s, n, e);
        if (i == e)
            return false;
    }
    if (i != n || n >= sizeof buf)
        return false;
    for (i = 0; i < n; i++)
        if (s[i] != '_')
            buf[k++] = s[i];
    if (!jfmt_parse_float(buf, k, out))
        return false;
    *out = minus ? -*out : *out;
    return true;
}

static sinter_status float_to_int(struct jinja *j, double f, struct jv *out)
{
    if (!(f > -9.2e18 && f < 9.2e18))
        return JFAIL(j, UNSUPPORTED, "int: beyond 64 bits");
    *out = jv_int((int64_t)f);
    return SINTER_OK;
}

/* Digits beyond ASCII are numbers to Python, too. */
static bool other_digits(const struct jstr *s)
{
    size_t len;
    for (size_t i = 0; i < s->bytes; i += len) {
        const uint32_t c = jchar_get(s->text + i, &len);
        if (c >= 0x80 && jchar_decimal(c))
            return true;
    }
    return false;
}

static JFN(filter_int)
{
    const struct jv fallback = arg[1].kind == JV_ABSENT ? jv_int(0) : arg[1];
    int64_t base, v;
    struct jv s;
    double f;
    bool overflow = false;
    TRY(jarg_int(j, arg[2], 10, &base));
    if (arg[0].kind == JV_UNDEFINED)
        return jundef_fail(j, arg[0]);
    *out = fallback;
    if (jv_is_int(arg[0])) {
        *out = jv_int(jv_as_int(arg[0]));
    } else if (arg[0].kind == JV_FLOAT) {
        if (arg[0].f - arg[0].f != 0 && arg[0].f == arg[0].f)
            return JFAIL(j, DATA, "cannot convert float infinity to integer");
        if (arg[0].f == arg[0].f)
            return float_to_int(j, arg[0].f, out);
    } else if (arg[0].kind == JV_STR) {
        TRY(jstr_strip(j, arg[0].s, jv_absent(), 3, &s));
        if (other_digits(s.s))
            return JFAIL(j, UNSUPPORTED, "int of digits beyond ASCII is not supported");
        if (base != 0 && (base < 2 || base > 36))
            return JFAIL(j, UNSUPPORTED, "int: the base must be 0 or 2 to 36");
        if (parse_int(s.s->text, s.s->bytes, (int)base, &v, &overflow)) {
            if (overflow)
                return JFAIL(j, UNSUPPORTED, "int: beyond 64 bits");
            *out = jv_int(v);
        } else if (parse_float(s.s->text, s.s->bytes, &f) && f - f == 0) {
            return float_to_int(j, f, out);
        }
    }
    return SINTER_OK;
}

static JFN(filter_float)
{
    struct jv s;
    double f;
    if (arg[0].kind == JV_UNDEFINED)
        return jundef_fail(j, arg[0]);
    *out = arg[1].kind == JV_ABSENT ? jv_float(0) : arg[1];
    if (jv_is_number(arg[0])) {
        *out = jv_float(jv_as_float(arg[0]));
    } else if (arg[0].kind == JV_STR) {
        TRY(jstr_strip(j, arg[0].s, jv_absent(), 3, &s));
        if (other_digits(s.s))
            return JFAIL(j, UNSUPPORTED, "float of digits beyond ASCII is not supported");
        if (parse_float(s.s->text, s.s->bytes, &f))
            *out = jv_float(f);
    }
    return SINTER_OK;
}

static JFN(filter_round)
{
    const bool common = arg[2].kind == JV_ABSENT || jarg_is(arg[2], "common");
    int64_t precision;
    double scale, f;
    TRY(jarg_int(j, arg[1], 0, &precision));
    if (!common && !jarg_is(arg[2], "ceil") && !jarg_is(arg[2], "floor"))
        return JFAIL(j, DATA, "method must be common, ceil or floor");
    if (arg[0].kind == JV_UNDEFINED || !jv_is_number(arg[0]))
        return JFAIL(j, DATA, "type %s doesn't define __round__ method", jv_type(arg[0]));
    if (common && jv_is_int(arg[0])) {
        if (precision < 0)
            return JFAIL(j, UNSUPPORTED, "rounding to tens, hundreds, ... is not supported");
        *out = jv_int(jv_as_int(arg[0]));
        return SINTER_OK;
    }
    f = jv_as_float(arg[0]);
    if (common) {
        out->kind = JV_FLOAT;
        return jfmt_round(j, f, precision, &out->f);
    }
    if (precision < 0 || precision > 15 || !(fabs(f) < 1e15))
        return JFAIL(j, UNSUPPORTED, "round: this precision or size is not supported");
    scale = pow(10, (double)precision);
    f = jarg_is(arg[2], "ceil") ? ceil(f * scale) : floor(f * scale);
    *out = jv_float((f + 0.0) / scale);
    return SINTER_OK;
}

static JFN(filter_attr)
{
    bool found;
    if (arg[1].kind != JV_STR)
        return JFAIL(j, DATA, "attr: the name must be a string");
    TRY(jattr_python(j, arg[0], arg[1].s, &found, out));
    if (found)
        return SINTER_OK;
    return jundef_new(j, UNDEF_ATTR, jv_type(arg[0]), arg[1].s->text, arg[1].s->bytes, out);
}

/* ---- The table: jinja2's names; NULL = refused when compiling. ---------------------------- */

static const struct jrow filters[] = {
    {"abs", "x /", 1, filter_abs},
    {"attr", "obj name", 2, filter_attr},
    {"batch", "value linecount fill_with", 2, jfilter_batch},
    {"capitalize", "s", 1, filter_capitalize},
    {"center", "value width", 1, filter_center},
    {"count", "obj /", 1, jfilter_length},
    {"d", "value default_value boolean", 1, filter_default},
    {"default", "value default_value boolean", 1, filter_default},
    {"dictsort", "value case_sensitive by reverse", 1, jfilter_dictsort},
    {"e", "s /", 1, filter_escape},
    {"escape", "s /", 1, filter_escape},
    {"filesizeformat", NULL, 1, NULL},
    {"first", "seq", 1, jfilter_first},
    {"float", "value default", 1, filter_float},
    {"forceescape", "value", 1, filter_forceescape},
    {"format", NULL, 1, filter_format},
    {"groupby", "value attribute default case_sensitive", 2, jfilter_groupby},
    {"indent", "s width first blank", 1, filter_indent},
    {"int", "value default base", 1, filter_int},
    {"items", "value", 1, jfilter_items},
    {"join", "value d attribute", 1, jfilter_join},
    {"last", "seq", 1, jfilter_last},
    {"length", "obj /", 1, jfilter_length},
    {"list", "value", 1, jfilter_list},
    {"lower", "s", 1, filter_lower},
    {"map", NULL, 1, jfilter_map},
    {"max", "value case_sensitive attribute", 1, jfilter_max},
    {"min", "value case_sensitive attribute", 1, jfilter_min},
    {"pprint", NULL, 1, NULL},
    {"random", NULL, 1, NULL},
    {"reject", NULL, 1, jfilter_reject},
    {"rejectattr", NULL, 1, jfilter_rejectattr},
    {"replace", "s old new count", 3, filter_replace},
    {"reverse", "value", 1, jfilter_reverse},
    {"round", "value precision method", 1, filter_round},
    {"safe", "value", 1, filter_safe},
    {"select", NULL, 1, jfilter_select},
    {"selectattr", NULL, 1, jfilter_selectattr},
    {"slice", "value slices fill_with", 2, jfilter_slice},
    {"sort", "value reverse case_sensitive attribute", 1, jfilter_sort},
    {"string", "s /", 1, filter_string},
    {"striptags", NULL, 1, NULL},
    {"sum", "iterable attribute start", 1, jfilter_sum},
    {"title", "s", 1, filter_title},
    {"tojson", "x ensure_ascii indent separators sort_keys", 1, filter_tojson},
    {"trim", "value chars", 1, filter_trim},
    {"truncate", "s length killwords end leeway", 1, filter_truncate},
    {"unique", "value case_sensitive attribute", 1, jfilter_unique},
    {"upper", "s", 1, filter_upper},
    {"urlencode", NULL, 1, NULL},
    {"urlize", NULL, 1, NULL},
    {"wordcount", "s", 1, filter_wordcount},
    {"wordwrap", NULL, 1, NULL},
    {"xmlattr", NULL, 1, NULL},
};

const struct jrow *jinja_filter_find(const char *name, size_t bytes)
{
    return jrow_find(filters, sizeof filters / sizeof *filters, name, bytes);
}
