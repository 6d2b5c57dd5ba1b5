/* JSON: the variables of a rendering come in as text; tojson and from_json as Python's json. */
#include "text/jinja/jinja.h"

#include <string.h>

#include "base/utf8.h"

struct reader {
    struct jinja *j;
    const char *text;
    size_t bytes, pos;
};

static sinter_status parse(struct reader *r, struct jv *out);

static sinter_status fail(struct reader *r, const char *what)
{
    return JFAIL(r->j, DATA, "JSON byte %zu: %s", r->pos, what);
}

static char peek(const struct reader *r)
{
    return r->pos < r->bytes ? r->text[r->pos] : 0;
}

static char skip_space(struct reader *r)
{
    while (r->pos < r->bytes && strchr(" \t\n\r", r->text[r->pos]) && r->text[r->pos])
        r->pos++;
    return peek(r);
}

static sinter_status hex4(struct reader *r, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, r->pos++) {
        const char c = peek(r), low = (char)(c | 0x20);
        if (c >= '0' && c <= '9')
            *out = *out * 16 + (uint32_t)(c - '0');
        else if (low >= 'a' && low <= 'f')
            *out = *out * 16 + (uint32_t)(low - 'a' + 10);
        else
            return fail(r, "four hexadecimal digits must follow \\u");
    }
    return SINTER_OK;
}

/* Behind `\u`: one code point, of a surrogate pair if need be. */
static sinter_status unicode_escape(struct reader *r, char *to, size_t *n)
{
    uint32_t c, low;
    TRY(hex4(r, &c));
    if (c >= 0xD800 && c < 0xDC00) {
        if (peek(r) != '\\' || r->pos + 1 >= r->bytes || r->text[r->pos + 1] != 'u')
            return fail(r, "half of a surrogate pair");
        r->pos += 2;
        TRY(hex4(r, &low));
        if (low < 0xDC00 || low > 0xDFFF)
            return fail(r, "half of a surrogate pair");
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    } else if (c >= 0xDC00 && c < 0xE000) {
        return fail(r, "half of a surrogate pair");
    }
    *n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = *n - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3F));
    to[0] = (char)(c | (*n == 1 ? 0u : *n == 2 ? 0xC0u : *n == 3 ? 0xE0u : 0xF0u));
    return SINTER_OK;
}

static sinter_status string_escape(struct reader *r, char *to, size_t *n)
{
    static const char from[] = "\"\\/bfnrt", value[] = "\"\\/\b\f\n\r\t";
    const char c = r->pos + 1 < r->bytes ? r->text[r->pos + 1] : 0;
    const char *simple = c ? strchr(from, c) : NULL;
    if (!simple && c != 'u')
        return fail(r, "unknown escape in a string");
    r->pos += 2;
    if (c == 'u')
        return unicode_escape(r, to, n);
    *to = value[simple - from];
    *n = 1;
    return SINTER_OK;
}

static sinter_status parse_string(struct reader *r, struct jv *out)
{
    size_t end = ++r->pos, n = 0;
    char *to;
    while (end < r->bytes && r->text[end] != '"')
        end += r->text[end] == '\\' ? 2 : 1;
    if (end >= r->bytes)
        return fail(r, "this string has no end");
    TRY(jalloc(r->j, end - r->pos, 1, &to)); /* an escape is never shorter than its value */
    while (r->text[r->pos] != '"') {
        size_t len = 0;
        if (r->text[r->pos] == '\\') {
            TRY(string_escape(r, to + n, &len));
            n += len;
            continue;
        }
        len = utf8_sequence(r->text + r->pos, r->bytes - r->pos);
        if (!len)
            return fail(r, "not UTF-8");
        if ((unsigned char)r->text[r->pos] < 0x20)
            return fail(r, "control character in a string; write it as \\u00..");
        memcpy(to + n, r->text + r->pos, len);
        n += len;
        r->pos += len;
    }
    r->pos++;
    return jstr_share(r->j, to, n, false, out);
}

static size_t digits(struct reader *r)
{
    const size_t start = r->pos;
    while (peek(r) >= '0' && peek(r) <= '9')
        r->pos++;
    return r->pos - start;
}

static sinter_status parse_number(struct reader *r, struct jv *out)
{
    const size_t start = r->pos;
    const bool minus = peek(r) == '-';
    bool is_float = false;
    int64_t v = 0;
    r->pos += minus;
    if (peek(r) == '0')
        r->pos++;
    else if (!digits(r))
        return fail(r, "expected a value");
    if (peek(r) == '.' && (is_float = true)) {
        r->pos++;
        if (!digits(r))
            return fail(r, "a digit must follow the point");
    }
    if ((peek(r) | 0x20) == 'e' && (is_float = true)) {
        r->pos++;
        r->pos += peek(r) == '+' || peek(r) == '-';
        if (!digits(r))
            return fail(r, "a digit must follow the exponent's sign");
    }
    if (is_float) {
        out->kind = JV_FLOAT;
        if (!jfmt_parse_float(r->text + start, r->pos - start, &out->f))
            return fail(r, "this number is too long");
        return SINTER_OK;
    }
    for (size_t i = start + minus; i < r->pos; i++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, r->text[i] - '0', &v))
            return JFAIL(r->j, UNSUPPORTED, "JSON byte %zu: this integer needs more than 64 bits",
                         start);
    if (!minus && v == INT64_MIN)
        return JFAIL(r->j, UNSUPPORTED, "JSON byte %zu: this integer needs more than 64 bits",
                     start);
    *out = jv_int(minus ? v : -v);
    return SINTER_OK;
}

static sinter_status parse_array(struct reader *r, struct jv *out)
{
    size_t cap = 0;
    TRY(jseq_new(r->j, SEQ_LIST, 0, out));
    r->pos++;
    if (skip_space(r) != ']') {
        for (;;) {
            struct jv item;
            TRY(parse(r, &item));
            TRY(jseq_push(r->j, out->seq, &cap, item));
            if (skip_space(r) != ',')
                break;
            r->pos++;
        }
        if (peek(r) != ']')
            return fail(r, "expected ',' or ']'");
    }
    r->pos++;
    return SINTER_OK;
}

static sinter_status parse_object(struct reader *r, struct jv *out)
{
    struct jdict *d;
    TRY(jdict_new(r->j, 4, &d));
    r->pos++;
    if (skip_space(r) != '}') {
        for (;;) {
            struct jv key, value;
            if (skip_space(r) != '"')
                return fail(r, "expected a string as key");
            TRY(parse_string(r, &key));
            if (skip_space(r) != ':')
                return fail(r, "expected ':'");
            r->pos++;
            TRY(parse(r, &value));
            TRY(jdict_set(r->j, d, key, value));
            if (skip_space(r) != ',')
                break;
            r->pos++;
        }
        if (peek(r) != '}')
            return fail(r, "expected ',' or '}'");
    }
    r->pos++;
    *out = (struct jv){.kind = JV_DICT, .dict = d};
    return SINTER_OK;
}

static bool word(struct reader *r, const char *name)
{
    const size_t n = strlen(name);
    if (r->bytes - r->pos < n || memcmp(r->text + r->pos, name, n) != 0)
        return false;
    r->pos += n;
    return true;
}

static sinter_status parse(struct reader *r, struct jv *out)
{
    const char c = skip_space(r);
    TRY(jcharge(r->j, 1));
    if (c == '"')
        return parse_string(r, out);
    if (c == '[' || c == '{') {
        TRY(jenter(r->j));
        TRY(c == '[' ? parse_array(r, out) : parse_object(r, out));
        jleave(r->j);
        return SINTER_OK;
    }
    if (word(r, "true"))
        *out = jv_bool(true);
    else if (word(r, "false"))
        *out = jv_bool(false);
    else if (word(r, "null"))
        *out = jv_none();
    else
        return parse_number(r, out);
    return SINTER_OK;
}

sinter_status jjson_parse(struct jinja *j, const char *text, size_t bytes, struct jv *out)
{
    struct reader r = {j, text, bytes, 0};
    TRY(parse(&r, out));
    skip_space(&r);
    return r.pos == bytes ? SINTER_OK : fail(&r, "something follows the value");
}

/* ---- json.dumps --------------------------------------------------------------------------- */

struct writer {
    struct jinja *j;
    struct text_buf b;
    bool ascii, sort, pretty;
    const struct jstr *indent; /* of one level, when pretty */
    struct jstr comma, colon;
    size_t level;
};

static sinter_status dump(struct writer *w, struct jv v);

static void dump_string(struct writer *w, const struct jstr *s)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    size_t len;
    text_buf_add(&w->b, "\"", 1);
    for (size_t i = 0; i < s->bytes; i += len) {
        const uint32_t c = jchar_get(s->text + i, &len);
        const char *simple = c && c < 0x80 ? strchr(from, (int)c) : NULL;
        if (simple)
            text_buf_printf(&w->b, "\\%c", to[simple - from]);
        else if (c < 0x20 || (w->ascii && c > 0x7E && c < 0x10000))
            text_buf_printf(&w->b, "\\u%04x", c);
        else if (w->ascii && c > 0xFFFF)
            text_buf_printf(&w->b, "\\u%04x\\u%04x", 0xD800 + ((c - 0x10000) >> 10),
                            0xDC00 + (c & 0x3FF));
        else
            text_buf_add(&w->b, s->text + i, len);
    }
    text_buf_add(&w->b, "\"", 1);
}

static void dump_number(struct writer *w, struct jv v)
{
    char buf[40];
    if (v.kind == JV_INT) {
        text_buf_printf(&w->b, "%lld", (long long)v.i);
        return;
    }
    if (v.f != v.f)
        text_buf_printf(&w->b, "NaN");
    else if (v.f - v.f != 0)
        text_buf_printf(&w->b, v.f > 0 ? "Infinity" : "-Infinity");
    else {
        jfmt_float(v.f, buf);
        text_buf_printf(&w->b, "%s", buf);
    }
}

static void new_line(struct writer *w)
{
    if (!w->pretty)
        return;
    text_buf_add(&w->b, "\n", 1);
    for (size_t i = 0; i < w->level; i++)
        text_buf_add(&w->b, w->indent->text, w->indent->bytes);
}

static sinter_status dump_key(struct writer *w, struct jv key)
{
    if (key.kind == JV_STR)
        dump_string(w, key.s);
    else if (key.kind == JV_BOOL || key.kind == JV_NONE || key.kind == JV_INT ||
             key.kind == JV_FLOAT) {
        text_buf_add(&w->b, "\"", 1);
        TRY(dump(w, key));
        text_buf_add(&w->b, "\"", 1);
    } else {
        return JFAIL(w->j, DATA, "keys must be str, int, float, bool or None, not %s",
                     jv_type(key));
    }
    text_buf_add(&w->b, w->colon.text, w->colon.bytes);
    return SINTER_OK;
}

/* Pairs in the order of their keys (insertion sort by halves would move as much: dicts are small;
 * the steps are charged). */
static sinter_status sorted(struct jinja *j, const struct jdict *d, const struct jpair **out)
{
    struct jpair *p;
    TRY(jalloc(j, d->n, sizeof *p, &p));
    for (size_t i = 0; i < d->n; i++) {
        size_t k = i;
        for (; k; k--) {
            bool less;
            TRY(jv_less(j, d->pair[i].key, p[k - 1].key, &less));
            if (!less)
                break;
            p[k] = p[k - 1];
        }
        p[k] = d->pair[i];
    }
    *out = p;
    return SINTER_OK;
}

static sinter_status dump_dict(struct writer *w, const struct jdict *d)
{
    const struct jpair *p = d->pair;
    if (w->sort)
        TRY(sorted(w->j, d, &p));
    text_buf_add(&w->b, "{", 1);
    w->level++;
    for (size_t i = 0; i < d->n; i++) {
        if (i)
            text_buf_add(&w->b, w->comma.text, w->comma.bytes);
        new_line(w);
        TRY(dump_key(w, p[i].key));
        TRY(dump(w, p[i].value));
    }
    w->level--;
    if (d->n)
        new_line(w);
    text_buf_add(&w->b, "}", 1);
    return SINTER_OK;
}

static sinter_status dump_list(struct writer *w, const struct jseq *s)
{
    text_buf_add(&w->b, "[", 1);
    w->level++;
    for (size_t i = 0; i < s->n; i++) {
        if (i)
            text_buf_add(&w->b, w->comma.text, w->comma.bytes);
        new_line(w);
        TRY(dump(w, s->item[i]));
    }
    w->level--;
    if (s->n)
        new_line(w);
    text_buf_add(&w->b, "]", 1);
    return SINTER_OK;
}

static sinter_status dump(struct writer *w, struct jv v)
{
    TRY(jcharge(w->j, 1));
    if (w->b.bytes > w->j->limit.output_bytes)
        return JFAIL(w->j, LIMIT, "more than %zu bytes of JSON", w->j->limit.output_bytes);
    if (v.kind == JV_NONE) {
        text_buf_printf(&w->b, "null");
    } else if (v.kind == JV_BOOL) {
        text_buf_printf(&w->b, v.b ? "true" : "false");
    } else if (v.kind == JV_INT || v.kind == JV_FLOAT) {
        dump_number(w, v);
    } else if (v.kind == JV_STR) {
        TRY(jcharge(w->j, v.s->bytes / 16));
        dump_string(w, v.s);
    } else if (v.kind == JV_DICT || (v.kind == JV_SEQ && v.seq->kind <= SEQ_TUPLE)) {
        TRY(jenter(w->j));
        TRY(v.kind == JV_DICT ? dump_dict(w, v.dict) : dump_list(w, v.seq));
        jleave(w->j);
    } else {
        return JFAIL(w->j, DATA, "Object of type %s is not JSON serializable", jv_type(v));
    }
    return SINTER_OK;
}

static sinter_status set_indent(struct writer *w, struct jv indent)
{
    if (indent.kind == JV_ABSENT || indent.kind == JV_NONE)
        return SINTER_OK;
    w->pretty = true;
    w->comma = (struct jstr){",", 1, 1, false};
    if (indent.kind == JV_STR) {
        w->indent = indent.s;
    } else if (jv_is_int(indent)) {
        struct jv blanks, one;
        TRY(jstr_copy(w->j, " ", 1, false, &one));
        TRY(jop_binary(w->j, J_MUL, one, indent, &blanks));
        w->indent = blanks.s;
    } else {
        return JFAIL(w->j, DATA, "tojson: indent must be an int or a string, not %s",
                     jv_type(indent));
    }
    return SINTER_OK;
}

static sinter_status set_separators(struct writer *w, struct jv s)
{
    struct jv *item;
    size_t n;
    if (!jarg_given(s))
        return SINTER_OK;
    TRY(jv_elements(w->j, s, &item, &n));
    if (n != 2 || item[0].kind != JV_STR || item[1].kind != JV_STR)
        return JFAIL(w->j, DATA, "tojson: separators must be two strings");
    w->comma = *item[0].s;
    w->colon = *item[1].s;
    return SINTER_OK;
}

/* arg: value, ensure_ascii, indent, separators, sort_keys. */
sinter_status jjson_dump(struct jinja *j, struct jv *arg, struct jv *out)
{
    struct writer w = {.j = j, .comma = {", ", 2, 2, false}, .colon = {": ", 2, 2, false}};
    w.ascii = jv_truth(arg[1]);
    w.sort = jv_truth(arg[4]);
    TRY(set_indent(&w, arg[2]));
    TRY(set_separators(&w, arg[3]));
    text_buf_init(&w.b, j->host);
    return jstr_take(j, dump(&w, arg[0]), &w.b, false, out);
}
