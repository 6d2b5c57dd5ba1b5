/* Source -> tokens, by jinja2's rules: trim_blocks, lstrip_blocks, '-' and '+' signs, raw, one
 * trailing newline dropped, CR LF and CR as LF. Block ends are not seen inside of brackets. */
#include "text/jinja/jinja.h"

#include <string.h>

struct lexer {
    struct jinja *j;
    const char *text;
    size_t bytes, pos;
    struct jtoken *token;
    size_t n, cap;
    bool line_starting;
    char bracket[TEMPLATE_MAX_NESTING];
    int n_bracket;
};

static sinter_status fail(struct lexer *x, size_t at, const char *what)
{
    x->j->at = (uint32_t)at;
    return JFAIL(x->j, DATA, "%s", what);
}

static sinter_status push(struct lexer *x, enum jtoken_kind kind, size_t at, struct jtoken **out)
{
    if (x->n == x->cap) {
        struct jtoken *old = x->token;
        const size_t cap = x->cap ? x->cap * 2 : 64;
        TRY(jalloc(x->j, cap, sizeof *old, &x->token));
        if (x->n)
            memcpy(x->token, old, x->n * sizeof *old);
        x->cap = cap;
    }
    x->token[x->n] = (struct jtoken){.kind = kind, .at = (uint32_t)at};
    if (out)
        *out = &x->token[x->n];
    x->n++;
    return SINTER_OK;
}

static bool at(const struct lexer *x, size_t pos, const char *what)
{
    const size_t n = strlen(what);
    return x->bytes - pos >= n && !memcmp(x->text + pos, what, n);
}

/* End of the blanks (Unicode's) that start at pos. */
static size_t skip_space(const struct lexer *x, size_t pos)
{
    size_t len;
    while (pos < x->bytes && jchar_space(jchar_get(x->text + pos, &len)))
        pos += len;
    return pos;
}

/* Length of a closing tag at pos, its newline or blanks included; 0 if there is none. */
static size_t closing(const struct lexer *x, size_t pos, const char *end, bool plus, bool trim)
{
    if (plus && x->text[pos] == '+' && at(x, pos + 1, end))
        return 3;
    if (x->text[pos] == '-' && at(x, pos + 1, end))
        return skip_space(x, pos + 3) - pos;
    if (at(x, pos, end))
        return trim && pos + 2 < x->bytes && x->text[pos + 2] == '\n' ? 3 : 2;
    return 0;
}

/* Length of `{%[+-]? name %}` at pos with what its end swallows, or 0. */
static size_t raw_tag(const struct lexer *x, size_t pos, const char *name, bool end)
{
    size_t p = pos + 2, n;
    if (!at(x, pos, "{%"))
        return 0;
    if (p < x->bytes && (x->text[p] == '-' || x->text[p] == '+'))
        p++;
    p = skip_space(x, p);
    if (!at(x, p, name))
        return 0;
    p = skip_space(x, p + strlen(name));
    if (p >= x->bytes)
        return 0;
    n = closing(x, p, "%}", end, end);
    return n ? p + n - pos : 0;
}

static size_t rstrip(const char *text, size_t n)
{
    while (n) {
        const size_t back = jchar_back(text, n);
        size_t len;
        if (!jchar_space(jchar_get(text + n - back, &len)))
            break;
        n -= back;
    }
    return n;
}

/* Template data text[start .. start + n) before a tag whose sign is `sign`. */
static sinter_status push_data(struct lexer *x, size_t start, size_t n, char sign, bool variable)
{
    const char *text = x->text + start;
    struct jtoken *t;
    if (sign == '-')
        n = rstrip(text, n);
    else if (sign != '+' && !variable) {
        size_t line = n;
        while (line && text[line - 1] != '\n')
            line--;
        if ((line || x->line_starting) && rstrip(text, n) <= line)
            n = line;
    }
    if (!n)
        return SINTER_OK;
    TRY(push(x, T_DATA, start, &t));
    struct jv v;
    TRY(jstr_share(x->j, text, n, false, &v));
    t->text = v.s;
    return SINTER_OK;
}

static sinter_status comment(struct lexer *x, size_t open)
{
    for (size_t p = x->pos; p < x->bytes; p++) {
        const size_t n = closing(x, p, "#}", true, true);
        if (n) {
            x->pos = p + n;
            x->line_starting = x->text[x->pos - 1] == '\n';
            return SINTER_OK;
        }
    }
    if (x->pos >= x->bytes) /* jinja2 looks for the end only if something follows */
        return SINTER_OK;
    return fail(x, open, "this comment has no end; add #}");
}

static sinter_status raw(struct lexer *x, size_t open, size_t len)
{
    const size_t start = open + len;
    x->line_starting = x->text[start - 1] == '\n';
    for (size_t p = start; p < x->bytes; p++) {
        const size_t n = raw_tag(x, p, "endraw", true);
        if (n) {
            TRY(push_data(x, start, p - start, x->text[p + 2], false));
            x->pos = p + n;
            x->line_starting = x->text[x->pos - 1] == '\n';
            return SINTER_OK;
        }
    }
    x->pos = start;
    if (start >= x->bytes)
        return SINTER_OK;
    return fail(x, open, "this raw block has no end; add {% endraw %}");
}

/* Value of n hexadecimal digits, or -1. */
static int64_t hex(const char *s, size_t have, size_t n)
{
    int64_t v = 0;
    if (have < n)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const char c = s[i];
        const int d = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
        if (d < 0)
            return -1;
        v = v * 16 + d;
    }
    return v;
}

static void put_point(struct text_buf *b, uint32_t c)
{
    char u[4];
    const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    const unsigned lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        u[i] = (char)(0x80 | (c & 0x3F));
    u[0] = (char)(lead[n] | c);
    text_buf_add(b, u, n);
}

/* The escape s[0] == '\\' of a literal; *len = bytes read. `where` is its offset. */
static sinter_status escape(struct lexer *x, struct text_buf *b, const char *s, size_t have,
                            size_t where, size_t *len)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    const char c = s[1], *simple = strchr(from, c);
    *len = 2;
    if (c && simple) {
        text_buf_add(b, &to[simple - from], 1);
    } else if (c == '\n') {
    } else if (c >= '0' && c <= '7') {
        uint32_t v = 0;
        for (*len = 1; *len < 4 && *len < have && s[*len] >= '0' && s[*len] <= '7'; ++*len)
            v = v * 8 + (uint32_t)(s[*len] - '0');
        put_point(b, v);
    } else if (c == 'x' || c == 'u' || c == 'U') {
        const size_t n = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        const int64_t v = hex(s + 2, have - 2, n);
        if (v < 0 || v > 0x10FFFF)
            return fail(x, where, "this \\x, \\u or \\U escape is cut short or no character");
        x->j->at = (uint32_t)where;
        if (v >= 0xD800 && v < 0xE000)
            return JFAIL(x->j, UNSUPPORTED, "half of a surrogate pair; write the character itself");
        put_point(b, (uint32_t)v);
        *len = 2 + n;
    } else if (c == 'N') {
        x->j->at = (uint32_t)where;
        return JFAIL(x->j, UNSUPPORTED, "\\N{name} is not supported; write the character itself");
    } else if ((unsigned char)c >= 0x80) {
        /* Python turns the character into an escape first, and that loses its backslash. */
        size_t n;
        const uint32_t v = jchar_get(s + 1, &n);
        text_buf_printf(b, v < 0x100 ? "\\x%02x" : v < 0x10000 ? "\\u%04x" : "\\U%08x", v);
        *len = 1 + n;
    } else {
        text_buf_add(b, s, 2);
    }
    return SINTER_OK;
}

static sinter_status string(struct lexer *x)
{
    const size_t start = x->pos;
    const char quote = x->text[start];
    sinter_status status = SINTER_OK;
    struct text_buf b;
    struct jtoken *t;
    struct jv v;
    size_t p = start + 1;
    TRY(push(x, T_STRING, start, &t));
    text_buf_init(&b, x->j->host);
    while (p < x->bytes && x->text[p] != quote) {
        size_t n = 1;
        if (x->text[p] != '\\') {
            while (p + n < x->bytes && x->text[p + n] != quote && x->text[p + n] != '\\')
                n++;
            text_buf_add(&b, x->text + p, n);
        } else if (p + 1 < x->bytes) {
            TRY_OUT(escape(x, &b, x->text + p, x->bytes - p, p, &n));
        }
        p += n;
    }
    if (p >= x->bytes) {
        status = fail(x, start, "this string has no end");
        goto out;
    }
    TRY_OUT(jstr_copy(x->j, b.text ? b.text : "", b.bytes, false, &v));
    if (b.failed)
        status = host_no_memory(x->j->err, b.bytes, 1, "a string literal");
    t->text = v.s;
    x->pos = p + 1;
out:
    text_buf_free(&b);
    return status;
}

static bool digit(const struct lexer *x, size_t p)
{
    return p < x->bytes && x->text[p] >= '0' && x->text[p] <= '9';
}

/* End of (\d+_)*\d+ at p; p itself if there is none. */
static size_t digits(const struct lexer *x, size_t p)
{
    while (digit(x, p) || (p < x->bytes && x->text[p] == '_' && digit(x, p + 1) && digit(x, p - 1)))
        p++;
    return p;
}

static int digit_value(char c)
{
    const char low = (char)(c | 0x20);
    return c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : 99;
}

/* Integer of the given base at p (prefix already behind); *end is past it. */
static sinter_status integer(struct lexer *x, size_t start, size_t p, int base, size_t *end)
{
    int64_t v = 0;
    struct jtoken *t;
    while (p < x->bytes) {
        const bool bar = x->text[p] == '_' && p + 1 < x->bytes;
        const int d = digit_value(x->text[bar ? p + 1 : p]);
        if (d >= base)
            break;
        if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v)) {
            x->j->at = (uint32_t)start;
            return JFAIL(x->j, UNSUPPORTED, "this integer needs more than 64 bits");
        }
        p += bar ? 2 : 1;
    }
    *end = p;
    TRY(push(x, T_INT, start, &t));
    t->value = jv_int(v);
    return SINTER_OK;
}

static sinter_status float_number(struct lexer *x, size_t start, size_t end)
{
    char buf[512];
    size_t n = 0;
    double f;
    struct jtoken *t;
    for (size_t i = start; i < end; i++)
        if (x->text[i] != '_') {
            if (n == sizeof buf)
                return fail(x, start, "this number is too long");
            buf[n++] = x->text[i];
        }
    if (!jfmt_parse_float(buf, n, &f))
        return fail(x, start, "this is no number");
    TRY(push(x, T_FLOAT, start, &t));
    t->value = jv_float(f);
    x->pos = end;
    return SINTER_OK;
}

static sinter_status number(struct lexer *x)
{
    const size_t start = x->pos, whole = digits(x, start);
    const bool after_dot = start && x->text[start - 1] == '.';
    size_t p = whole;
    bool is_float = false;
    if (p < x->bytes && x->text[p] == '.' && digit(x, p + 1)) {
        p = digits(x, p + 1);
        is_float = true;
    }
    if (p < x->bytes && (x->text[p] | 0x20) == 'e') {
        const size_t e = p + 1 + (p + 1 < x->bytes && strchr("+-", x->text[p + 1]) != NULL);
        if (digit(x, e)) {
            p = digits(x, e);
            is_float = true;
        }
    }
    if (is_float && !after_dot)
        return float_number(x, start, p);
    if (x->text[start] == '0' && start + 2 < x->bytes) {
        const char c = (char)(x->text[start + 1] | 0x20);
        const int base = c == 'b' ? 2 : c == 'o' ? 8 : c == 'x' ? 16 : 0;
        const size_t first = start + 2 + (x->text[start + 2] == '_');
        if (base && first < x->bytes && digit_value(x->text[first]) < base)
            return integer(x, start, first, base, &x->pos);
    }
    if (x->text[start] == '0') { /* 0(_?0)* and nothing more */
        p = start + 1;
        while (p < whole && (x->text[p] == '0' || (x->text[p] == '_' && x->text[p + 1] == '0')))
            p++;
        if (p < whole)
            return fail(x, start, "a number does not start with 0");
    }
    return integer(x, start, start, 10, &x->pos);
}

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static sinter_status name(struct lexer *x)
{
    const size_t start = x->pos;
    struct jtoken *t;
    struct jv v;
    while (x->pos < x->bytes && name_char(x->text[x->pos]))
        x->pos++;
    TRY(push(x, T_NAME, start, &t));
    TRY(jstr_share(x->j, x->text + start, x->pos - start, false, &v));
    t->text = v.s;
    return SINTER_OK;
}

static sinter_status bracket(struct lexer *x, char c, size_t where)
{
    static const char open[] = "([{", close[] = ")]}";
    const char *o = strchr(open, c), *e = strchr(close, c);
    if (o) {
        if (x->n_bracket == TEMPLATE_MAX_NESTING) {
            x->j->at = (uint32_t)where;
            return JFAIL(x->j, LIMIT, "more than %d open brackets", TEMPLATE_MAX_NESTING);
        }
        x->bracket[x->n_bracket++] = close[o - open];
    } else if (e && (!x->n_bracket || x->bracket[--x->n_bracket] != c)) {
        x->j->at = (uint32_t)where;
        return JFAIL(x->j, DATA, "unexpected '%c'", c);
    }
    return SINTER_OK;
}

static sinter_status operator_token(struct lexer *x)
{
    static const char *const pair[] = {"**", "//", "==", "!=", "<=", ">="};
    const char c = x->text[x->pos];
    const size_t where = x->pos;
    size_t n = 0;
    struct jtoken *t;
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
        if (at(x, where, pair[i]))
            n = 2;
    if (!n && (!c || !strchr("+-/*%~[](){}><=.:|,;", c))) {
        x->j->at = (uint32_t)where;
        if ((unsigned char)c >= 0x80)
            return JFAIL(x->j, UNSUPPORTED,
                         "a character beyond ASCII in an expression; put text "
                         "into quotes, and name variables in ASCII");
        return JFAIL(x->j, DATA, "unexpected character '%c' (0x%02x)", c >= ' ' ? c : '?',
                     (unsigned char)c);
    }
    n = n ? n : 1;
    if (n == 1)
        TRY(bracket(x, c, where));
    TRY(push(x, T_OP, where, &t));
    memcpy(t->op, x->text + where, n);
    x->pos += n;
    return SINTER_OK;
}

/* The tokens of one tag, from behind its opening to behind its end. */
static sinter_status tag(struct lexer *x, bool variable, size_t open)
{
    x->n_bracket = 0;
    TRY(push(x, variable ? T_VAR_BEGIN : T_BLOCK_BEGIN, open, NULL));
    for (;;) {
        size_t n;
        x->pos = skip_space(x, x->pos);
        if (x->pos >= x->bytes)
            return fail(x, open, "this tag has no end");
        n = x->n_bracket ? 0 : closing(x, x->pos, variable ? "}}" : "%}", !variable, !variable);
        if (n) {
            TRY(push(x, variable ? T_VAR_END : T_BLOCK_END, x->pos, NULL));
            x->pos += n;
            x->line_starting = x->text[x->pos - 1] == '\n';
            return SINTER_OK;
        }
        if (digit(x, x->pos))
            TRY(number(x));
        else if (name_char(x->text[x->pos]))
            TRY(name(x));
        else if (x->text[x->pos] == '\'' || x->text[x->pos] == '"')
            TRY(string(x));
        else
            TRY(operator_token(x));
    }
}

sinter_status jinja_lex(struct jinja *j, struct jtoken **token, size_t *n)
{
    struct lexer x = {.j = j, .text = j->t->source, .bytes = j->t->bytes, .line_starting = true};
    while (x.pos < x.bytes) {
        const size_t start = x.pos;
        size_t p = start, raw_len;
        char kind, sign;
        while (p < x.bytes && !at(&x, p, "{{") && !at(&x, p, "{%") && !at(&x, p, "{#"))
            p++;
        if (p >= x.bytes) {
            TRY(push_data(&x, start, x.bytes - start, '+', true));
            break;
        }
        kind = x.text[p + 1];
        sign = p + 2 < x.bytes ? x.text[p + 2] : 0;
        TRY(push_data(&x, start, p - start, sign, kind == '{'));
        raw_len = raw_tag(&x, p, "raw", false);
        x.pos = p + 2 + (sign == '-' || sign == '+');
        if (raw_len)
            TRY(raw(&x, p, raw_len));
        else if (kind == '#')
            TRY(comment(&x, p));
        else
            TRY(tag(&x, kind == '{', p));
    }
    TRY(push(&x, T_EOF, x.bytes, NULL));
    *token = x.token;
    *n = x.n;
    return SINTER_OK;
}
