/* Methods of str, list, dict, loop and cycler; arg[0] is the object itself. */
#include "text/jinja/jinja.h"

#include <string.h>

size_t jtext_find(const char *text, size_t bytes, const char *needle, size_t n, size_t from)
{
    const char *p;
    if (from > bytes || n > bytes - from)
        return SIZE_MAX;
    if (!n)
        return from;
    p = memmem(text + from, bytes - from, needle, n);
    return p ? (size_t)(p - text) : SIZE_MAX;
}

static size_t find_last(const char *text, size_t bytes, const char *needle, size_t n)
{
    if (n > bytes)
        return SIZE_MAX;
    for (size_t i = bytes - n + 1; i-- > 0;)
        if (!n || !memcmp(text + i, needle, n))
            return i;
    return SIZE_MAX;
}

static sinter_status need_str(struct jinja *j, struct jv v, const char *what)
{
    if (v.kind == JV_STR)
        return SINTER_OK;
    return JFAIL(j, DATA, "%s: a string is needed, not '%s'", what, jv_type(v));
}

/* Pieces of text marked safe would be escaped by markupsafe. */
static sinter_status need_plain(struct jinja *j, struct jv v, const char *what)
{
    TRY(need_str(j, v, what));
    if (v.s->safe)
        return JFAIL(j, UNSUPPORTED, "'%s' of text marked safe is not supported", what);
    return SINTER_OK;
}

/* ---- Letter case -------------------------------------------------------------------------- */

static bool map_char(uint32_t c, enum jcase how, bool start, uint32_t *out)
{
    switch (how) {
    case CASE_UPPER:
        return jchar_upper(c, out);
    case CASE_LOWER:
        return jchar_lower(c, out);
    case CASE_TITLE:
    case CASE_CAPITALIZE:
        return start ? jchar_title(c, out) : jchar_lower(c, out);
    case CASE_TITLE_FILTER:
        return start ? jchar_upper(c, out) : jchar_lower(c, out);
    }
    return false;
}

/* Does the character after c begin a word? */
static bool starts_word(uint32_t c, enum jcase how)
{
    if (how == CASE_TITLE)
        return jchar_case(c) == CHAR_UNCASED;
    if (how == CASE_TITLE_FILTER)
        return jchar_space(c) || (c < 0x80 && c && strchr("-({[<", (int)c) != NULL);
    return false;
}

static void put(struct text_buf *b, uint32_t c)
{
    char u[4];
    const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        u[i] = (char)(0x80 | (c & 0x3F));
    u[0] = (char)(c | (n == 1 ? 0u : n == 2 ? 0xC0u : n == 3 ? 0xE0u : 0xF0u));
    text_buf_add(b, u, n);
}

sinter_status jstr_case(struct jinja *j, const struct jstr *s, enum jcase how, struct jv *out)
{
    struct text_buf b;
    bool start = true;
    size_t len;
    TRY(jcharge(j, s->n_char / 4));
    text_buf_init(&b, j->host);
    for (size_t i = 0; i < s->bytes; i += len) {
        const uint32_t c = jchar_get(s->text + i, &len);
        uint32_t to;
        if (!map_char(c, how, start, &to) || (how == CASE_TITLE && jchar_odd_case(c))) {
            text_buf_free(&b);
            return JFAIL(j, UNSUPPORTED, "changing the case of U+%04X is not supported", c);
        }
        put(&b, to);
        start = starts_word(c, how);
    }
    return jstr_take(j, SINTER_OK, &b, s->safe, out);
}

/* ---- Tests of strings --------------------------------------------------------------------- */

static sinter_status case_test(struct jinja *j, const struct jstr *s, enum jchar_case want,
                               bool *out)
{
    bool any = false;
    size_t len;
    *out = false;
    for (size_t i = 0; i < s->bytes; i += len) {
        const uint32_t c = jchar_get(s->text + i, &len);
        const enum jchar_case is = jchar_case(c);
        if (jchar_odd_case(c))
            return JFAIL(j, UNSUPPORTED, "the case of U+%04X is not supported", c);
        if (is != CHAR_UNCASED && is != want)
            return SINTER_OK;
        any = any || is == want;
    }
    *out = any;
    return SINTER_OK;
}

sinter_status jstr_test(struct jinja *j, const struct jstr *s, const char *what, bool *out)
{
    const char *kind = what + 2; /* behind "is" */
    size_t len;
    TRY(jcharge(j, s->n_char / 4));
    if (!strcmp(kind, "lower") || !strcmp(kind, "upper"))
        return case_test(j, s, kind[0] == 'u' ? CHAR_UPPER : CHAR_LOWER, out);
    *out = s->bytes > 0 || !strcmp(kind, "ascii");
    for (size_t i = 0; i < s->bytes && *out; i += len) {
        const uint32_t c = jchar_get(s->text + i, &len);
        const bool odd = (c >= 0x80 && jchar_numeric(c) && !jchar_decimal(c)) ||
                         (c >= 0x3400 && jchar_alpha(c)); /* ideographs of numbers */
        if (odd && (jchar_numeric(c) || !strcmp(kind, "numeric")) &&
            (!strcmp(kind, "digit") || !strcmp(kind, "alnum") || !strcmp(kind, "numeric")))
            return JFAIL(j, UNSUPPORTED, "'%s' of U+%04X is not supported", what, c);
        *out = !strcmp(kind, "space")   ? jchar_space(c)
               : !strcmp(kind, "alpha") ? jchar_alpha(c)
               : !strcmp(kind, "alnum") ? jchar_alpha(c) || jchar_decimal(c)
               : !strcmp(kind, "ascii") ? c < 0x80
                                        : jchar_decimal(c);
    }
    return SINTER_OK;
}

#define STR_TEST(name)                                                                             \
    static JFN(str_##name)                                                                         \
    {                                                                                              \
        out->kind = JV_BOOL;                                                                       \
        return jstr_test(j, arg[0].s, #name, &out->b);                                             \
    }

STR_TEST(isalnum)
STR_TEST(isalpha)
STR_TEST(isascii)
STR_TEST(isdecimal)
STR_TEST(isdigit)
STR_TEST(islower)
STR_TEST(isnumeric)
STR_TEST(isspace)
STR_TEST(isupper)

#define STR_CASE(name, how)                                                                        \
    static JFN(str_##name)                                                                         \
    {                                                                                              \
        return jstr_case(j, arg[0].s, how, out);                                                   \
    }

STR_CASE(upper, CASE_UPPER)
STR_CASE(lower, CASE_LOWER)
STR_CASE(title, CASE_TITLE)
STR_CASE(capitalize, CASE_CAPITALIZE)

/* ---- Strip, pad, replace ------------------------------------------------------------------ */

static bool strips(uint32_t c, struct jv chars)
{
    size_t len;
    if (chars.kind != JV_STR)
        return jchar_space(c);
    for (size_t i = 0; i < chars.s->bytes; i += len)
        if (jchar_get(chars.s->text + i, &len) == c)
            return true;
    return false;
}

sinter_status jstr_strip(struct jinja *j, const struct jstr *s, struct jv chars, int sides,
                         struct jv *out)
{
    size_t start = 0, end = s->bytes, len;
    if (jarg_given(chars)) {
        TRY(need_str(j, chars, "strip"));
        TRY(jcharge(j, s->bytes / 16 * (1 + chars.s->bytes / 8)));
    }
    while ((sides & 1) && start < end && strips(jchar_get(s->text + start, &len), chars))
        start += len;
    while ((sides & 2) && end > start) {
        const size_t back = jchar_back(s->text, end);
        if (!strips(jchar_get(s->text + end - back, &len), chars))
            break;
        end -= back;
    }
    return jstr_share(j, s->text + start, end - start, s->safe, out);
}

#define STR_STRIP(name, sides)                                                                     \
    static JFN(str_##name)                                                                         \
    {                                                                                              \
        return jstr_strip(j, arg[0].s, arg[1], sides, out);                                        \
    }

STR_STRIP(strip, 3)
STR_STRIP(lstrip, 1)
STR_STRIP(rstrip, 2)

sinter_status jstr_pad(struct jinja *j, const struct jstr *s, int64_t width, char fill, int where,
                       struct jv *out)
{
    struct text_buf b;
    int64_t n = width - (int64_t)s->n_char, left;
    if (n < 0)
        n = 0;
    if (n > (int64_t)(j->limit.output_bytes / 2))
        return JFAIL(j, LIMIT, "more than %zu bytes of text", j->limit.output_bytes);
    TRY(jcharge(j, (size_t)n));
    left = where < 0 ? 0 : where > 0 ? n : n / 2 + (n & width & 1);
    text_buf_init(&b, j->host);
    for (int64_t i = 0; i < left; i++)
        text_buf_add(&b, &fill, 1);
    text_buf_add(&b, s->text, s->bytes);
    for (int64_t i = left; i < n; i++)
        text_buf_add(&b, &fill, 1);
    return jstr_take(j, SINTER_OK, &b, s->safe, out);
}

static sinter_status pad(struct jinja *j, struct jv *arg, int where, struct jv *out)
{
    int64_t width;
    TRY(jarg_int(j, arg[1], 0, &width));
    if (arg[2].kind != JV_ABSENT && (arg[2].kind != JV_STR || arg[2].s->bytes != 1))
        return JFAIL(j, UNSUPPORTED, "the fill must be one ASCII character");
    return jstr_pad(j, arg[0].s, width, arg[2].kind == JV_ABSENT ? ' ' : arg[2].s->text[0], where,
                    out);
}

#define STR_PAD(name, where)                                                                       \
    static JFN(str_##name)                                                                         \
    {                                                                                              \
        return pad(j, arg, where, out);                                                            \
    }

STR_PAD(ljust, -1)
STR_PAD(center, 0)
STR_PAD(rjust, 1)

static JFN(str_zfill)
{
    const struct jstr *s = arg[0].s;
    const bool sign = s->bytes && (s->text[0] == '+' || s->text[0] == '-');
    const struct jstr rest = {s->text + sign, s->bytes - sign, s->n_char - sign, false};
    int64_t width;
    struct jv padded, sign_text;
    TRY(jarg_int(j, arg[1], 0, &width));
    TRY(jstr_pad(j, &rest, width > INT32_MIN ? width - sign : width, '0', 1, &padded));
    TRY(jstr_share(j, s->text, sign, false, &sign_text));
    return jop_binary(j, J_ADD, sign_text, padded, out);
}

sinter_status jstr_replace(struct jinja *j, const struct jstr *s, const struct jstr *from,
                           const struct jstr *to, int64_t count, struct jv *out)
{
    struct text_buf b;
    size_t at = 0;
    TRY(jcharge(j, s->bytes / 16));
    text_buf_init(&b, j->host);
    for (; count; count -= count > 0) {
        size_t hit = jtext_find(s->text, s->bytes, from->text, from->bytes, at), len = 0;
        if (hit == SIZE_MAX || (hit == s->bytes && from->bytes))
            break;
        text_buf_add(&b, s->text + at, hit - at);
        text_buf_add(&b, to->text, to->bytes);
        at = hit + from->bytes;
        if (b.bytes > j->limit.output_bytes || jcharge(j, 1 + to->bytes / 16) != SINTER_OK) {
            text_buf_free(&b);
            return JFAIL(j, LIMIT, "replace gives too much text");
        }
        if (!from->bytes) { /* between all characters */
            if (at >= s->bytes) {
                at = s->bytes;
                break;
            }
            jchar_get(s->text + at, &len);
            text_buf_add(&b, s->text + at, len);
            at += len;
        }
    }
    text_buf_add(&b, s->text + at, s->bytes - at);
    return jstr_take(j, SINTER_OK, &b, s->safe, out);
}

static JFN(str_replace)
{
    int64_t count;
    TRY(need_plain(j, arg[0], "replace"));
    TRY(need_str(j, arg[1], "replace"));
    TRY(need_str(j, arg[2], "replace"));
    TRY(jarg_int(j, arg[3], -1, &count));
    return jstr_replace(j, arg[0].s, arg[1].s, arg[2].s, count, out);
}

/* ---- Search ------------------------------------------------------------------------------- */

/* start and end as Python counts them: from the end where they are negative. */
static void clamp(int64_t n, int64_t *lo, int64_t *hi)
{
    *lo = *lo < 0 ? (*lo + n < 0 ? 0 : *lo + n) : *lo;
    *hi = *hi < 0 ? (*hi + n < 0 ? 0 : *hi + n) : *hi > n ? n : *hi;
}

/* The part of the string that start and end (in characters) leave; false: an empty match, too,
 * is outside. */
static sinter_status window(struct jinja *j, struct jv *arg, struct jstr *out, size_t *start,
                            bool *inside)
{
    const struct jstr *s = arg[0].s;
    const int64_t n = (int64_t)s->n_char;
    int64_t lo = 0, hi = n;
    size_t from;
    if (jarg_given(arg[2]))
        TRY(jarg_int(j, arg[2], 0, &lo));
    if (jarg_given(arg[3]))
        TRY(jarg_int(j, arg[3], n, &hi));
    clamp(n, &lo, &hi);
    *inside = lo <= n && lo <= hi;
    if (!*inside)
        lo = hi = 0;
    from = jchar_offset(s, (size_t)lo);
    *start = (size_t)lo;
    *out =
        (struct jstr){s->text + from, jchar_offset(s, (size_t)hi) - from, (size_t)(hi - lo), false};
    return jcharge(j, s->bytes / 16);
}

static sinter_status find_char(struct jinja *j, struct jv *arg, bool last, int64_t *out)
{
    struct jstr w;
    size_t start, at;
    bool inside;
    TRY(need_str(j, arg[1], "find"));
    TRY(window(j, arg, &w, &start, &inside));
    at = !inside ? SIZE_MAX
         : last  ? find_last(w.text, w.bytes, arg[1].s->text, arg[1].s->bytes)
                 : jtext_find(w.text, w.bytes, arg[1].s->text, arg[1].s->bytes, 0);
    *out = at == SIZE_MAX ? -1 : (int64_t)(start + jchars(w.text, at));
    return SINTER_OK;
}

#define STR_FIND(name, last, must)                                                                 \
    static JFN(str_##name)                                                                         \
    {                                                                                              \
        out->kind = JV_INT;                                                                        \
        TRY(find_char(j, arg, last, &out->i));                                                     \
        if (must && out->i < 0)                                                                    \
            return JFAIL(j, DATA, "substring not found");                                          \
        return SINTER_OK;                                                                          \
    }

STR_FIND(find, false, false)
STR_FIND(rfind, true, false)
STR_FIND(index, false, true)
STR_FIND(rindex, true, true)

static JFN(str_count)
{
    struct jstr w;
    size_t start, n = 0;
    bool inside;
    TRY(need_str(j, arg[1], "count"));
    TRY(window(j, arg, &w, &start, &inside));
    if (!arg[1].s->bytes)
        n = inside ? w.n_char + 1 : 0;
    else
        for (size_t at = 0;
             (at = jtext_find(w.text, w.bytes, arg[1].s->text, arg[1].s->bytes, at)) != SIZE_MAX;
             at += arg[1].s->bytes)
            n++;
    *out = jv_int((int64_t)n);
    return SINTER_OK;
}

static sinter_status edge(struct jinja *j, struct jv *arg, bool end, struct jv *out)
{
    const bool many = arg[1].kind == JV_SEQ && arg[1].seq->kind == SEQ_TUPLE;
    const struct jv *item = many ? arg[1].seq->item : &arg[1];
    struct jstr w;
    size_t start;
    bool inside;
    TRY(window(j, arg, &w, &start, &inside));
    *out = jv_bool(false);
    for (size_t i = 0; i < (many ? arg[1].seq->n : 1); i++) {
        TRY(need_str(j, item[i], end ? "endswith" : "startswith"));
        if (inside && item[i].s->bytes <= w.bytes &&
            !memcmp(w.text + (end ? w.bytes - item[i].s->bytes : 0), item[i].s->text,
                    item[i].s->bytes))
            *out = jv_bool(true);
    }
    return SINTER_OK;
}

static JFN(str_startswith)
{
    return edge(j, arg, false, out);
}

static JFN(str_endswith)
{
    return edge(j, arg, true, out);
}

/* The string without `fix` at its start or end, if that is there. */
static sinter_status without(struct jinja *j, struct jv *arg, bool end, struct jv *out)
{
    const struct jstr *s = arg[0].s, *fix;
    TRY(need_str(j, arg[1], end ? "removesuffix" : "removeprefix"));
    fix = arg[1].s;
    if (fix->bytes > s->bytes ||
        memcmp(s->text + (end ? s->bytes - fix->bytes : 0), fix->text, fix->bytes) != 0) {
        *out = arg[0];
        return SINTER_OK;
    }
    return jstr_share(j, s->text + (end ? 0 : fix->bytes), s->bytes - fix->bytes, s->safe, out);
}

static JFN(str_removeprefix)
{
    return without(j, arg, false, out);
}

static JFN(str_removesuffix)
{
    return without(j, arg, true, out);
}

/* ---- Split and join ----------------------------------------------------------------------- */

/* A list of parts of s that grows. */
struct pieces {
    struct jinja *j;
    const struct jstr *s;
    struct jseq *list;
    size_t cap;
};

static sinter_status pieces_new(struct pieces *p, struct jinja *j, const struct jstr *s,
                                struct jv *out)
{
    TRY(jseq_new(j, SEQ_LIST, 0, out));
    *p = (struct pieces){.j = j, .s = s, .list = out->seq};
    return jcharge(j, s->bytes / 16);
}

static sinter_status piece(struct pieces *p, size_t from, size_t to)
{
    struct jv v;
    TRY(jcharge(p->j, 1));
    TRY(jstr_share(p->j, p->s->text + from, to - from, p->s->safe, &v));
    return jseq_push(p->j, p->list, &p->cap, v);
}

static size_t skip(const struct jstr *s, size_t at, bool space)
{
    size_t len;
    for (; at < s->bytes; at += len)
        if (jchar_space(jchar_get(s->text + at, &len)) != space)
            break;
    return at;
}

static size_t skip_back(const struct jstr *s, size_t end, bool space)
{
    while (end) {
        const size_t back = jchar_back(s->text, end);
        size_t len;
        if (jchar_space(jchar_get(s->text + end - back, &len)) != space)
            break;
        end -= back;
    }
    return end;
}

static sinter_status split_blanks(struct pieces *p, int64_t max)
{
    const struct jstr *s = p->s;
    for (size_t at = skip(s, 0, true); at < s->bytes;) {
        size_t end = skip(s, at, false);
        if (max >= 0 && (int64_t)p->list->n == max)
            end = s->bytes;
        TRY(piece(p, at, end));
        at = skip(s, end, true);
    }
    return SINTER_OK;
}

static sinter_status rsplit_blanks(struct pieces *p, int64_t max)
{
    const struct jstr *s = p->s;
    for (size_t end = skip_back(s, s->bytes, true); end;) {
        size_t at = skip_back(s, end, false);
        if (max >= 0 && (int64_t)p->list->n == max)
            at = 0;
        TRY(piece(p, at, end));
        end = skip_back(s, at, true);
    }
    return SINTER_OK;
}

static sinter_status split_text(struct pieces *p, const struct jstr *sep, int64_t max, bool last)
{
    size_t at = 0, end = p->s->bytes;
    while (max < 0 || (int64_t)p->list->n < max) {
        const size_t hit = last ? find_last(p->s->text, end, sep->text, sep->bytes)
                                : jtext_find(p->s->text, end, sep->text, sep->bytes, at);
        if (hit == SIZE_MAX)
            break;
        TRY(last ? piece(p, hit + sep->bytes, end) : piece(p, at, hit));
        at = last ? 0 : hit + sep->bytes;
        end = last ? hit : end;
    }
    return piece(p, at, end);
}

static sinter_status split(struct jinja *j, struct jv *arg, bool last, struct jv *out)
{
    struct pieces p;
    int64_t max;
    TRY(jarg_int(j, arg[2], -1, &max));
    TRY(pieces_new(&p, j, arg[0].s, out));
    if (!jarg_given(arg[1])) {
        TRY(last ? rsplit_blanks(&p, max) : split_blanks(&p, max));
    } else {
        TRY(need_str(j, arg[1], "split"));
        if (!arg[1].s->bytes)
            return JFAIL(j, DATA, "empty separator");
        TRY(split_text(&p, arg[1].s, max, last));
    }
    for (struct jv *a = p.list->item, *b = a + p.list->n; last && a + 1 < b; a++) { /* reversed */
        const struct jv t = *a;
        *a = *--b;
        *b = t;
    }
    return SINTER_OK;
}

static JFN(str_split)
{
    return split(j, arg, false, out);
}

static JFN(str_rsplit)
{
    return split(j, arg, true, out);
}

static sinter_status partition(struct jinja *j, struct jv *arg, bool last, struct jv *out)
{
    const struct jstr *s = arg[0].s;
    size_t hit;
    struct jv t;
    TRY(need_plain(j, arg[0], "partition"));
    TRY(need_str(j, arg[1], "partition"));
    if (!arg[1].s->bytes)
        return JFAIL(j, DATA, "empty separator");
    hit = last ? find_last(s->text, s->bytes, arg[1].s->text, arg[1].s->bytes)
               : jtext_find(s->text, s->bytes, arg[1].s->text, arg[1].s->bytes, 0);
    TRY(jcharge(j, s->bytes / 16));
    TRY(jseq_new(j, SEQ_TUPLE, 3, &t));
    *out = t;
    if (hit == SIZE_MAX) {
        const size_t whole = last ? 2 : 0;
        TRY(jstr_share(j, s->text, 0, false, &t.seq->item[0]));
        t.seq->item[1] = t.seq->item[2] = t.seq->item[0];
        t.seq->item[whole] = arg[0];
        return SINTER_OK;
    }
    TRY(jstr_share(j, s->text, hit, false, &t.seq->item[0]));
    t.seq->item[1] = arg[1];
    hit += arg[1].s->bytes;
    return jstr_share(j, s->text + hit, s->bytes - hit, false, &t.seq->item[2]);
}

static JFN(str_partition)
{
    return partition(j, arg, false, out);
}

static JFN(str_rpartition)
{
    return partition(j, arg, true, out);
}

static bool line_end(uint32_t c)
{
    return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

sinter_status jstr_lines(struct jinja *j, const struct jstr *s, bool keep, struct jv *out)
{
    struct pieces p;
    size_t start = 0, len;
    TRY(pieces_new(&p, j, s, out));
    for (size_t i = 0; i < s->bytes; i += len) {
        const uint32_t c = jchar_get(s->text + i, &len);
        if (!line_end(c))
            continue;
        if (c == '\r' && i + 1 < s->bytes && s->text[i + 1] == '\n')
            len = 2;
        TRY(piece(&p, start, keep ? i + len : i));
        start = i + len;
    }
    if (start < s->bytes)
        TRY(piece(&p, start, s->bytes));
    return SINTER_OK;
}

static JFN(str_splitlines)
{
    return jstr_lines(j, arg[0].s, jv_truth(arg[1]), out);
}

static JFN(str_join)
{
    sinter_status status = SINTER_OK;
    struct text_buf b;
    struct jv *item;
    size_t n;
    TRY(need_plain(j, arg[0], "join"));
    TRY(jv_elements(j, arg[1], &item, &n));
    for (size_t i = 0; i < n; i++)
        if (item[i].kind != JV_STR)
            return JFAIL(j, DATA, "sequence item %zu: expected str instance, %s found", i,
                         jv_type(item[i]));
    text_buf_init(&b, j->host);
    for (size_t i = 0; i < n && status == SINTER_OK; i++) {
        if (i)
            text_buf_add(&b, arg[0].s->text, arg[0].s->bytes);
        status = jv_print(j, item[i], &b);
    }
    return jstr_take(j, status, &b, false, out);
}

static JFN(str_format)
{
    const struct jargs rest = {raw->pos + 1, raw->n_pos - 1, raw->kw, raw->n_kw};
    return jfmt_format(j, raw->pos[0].s, &rest, out);
}

/* '/' in a row: Python takes what stands before it by position only. */
const struct jrow jinja_str_methods[] = {
    {"upper", "self /", 1, str_upper},
    {"lower", "self /", 1, str_lower},
    {"title", "self /", 1, str_title},
    {"capitalize", "self /", 1, str_capitalize},
    {"strip", "self chars /", 1, str_strip},
    {"lstrip", "self chars /", 1, str_lstrip},
    {"rstrip", "self chars /", 1, str_rstrip},
    {"ljust", "self width fill /", 2, str_ljust},
    {"center", "self width fill /", 2, str_center},
    {"rjust", "self width fill /", 2, str_rjust},
    {"zfill", "self width /", 2, str_zfill},
    {"replace", "self old new count /", 3, str_replace},
    {"find", "self sub start end /", 2, str_find},
    {"rfind", "self sub start end /", 2, str_rfind},
    {"index", "self sub start end /", 2, str_index},
    {"rindex", "self sub start end /", 2, str_rindex},
    {"count", "self sub start end /", 2, str_count},
    {"startswith", "self prefix start end /", 2, str_startswith},
    {"endswith", "self suffix start end /", 2, str_endswith},
    {"removeprefix", "self prefix /", 2, str_removeprefix},
    {"removesuffix", "self suffix /", 2, str_removesuffix},
    {"split", "self / sep maxsplit", 1, str_split},
    {"rsplit", "self / sep maxsplit", 1, str_rsplit},
    {"partition", "self sep /", 2, str_partition},
    {"rpartition", "self sep /", 2, str_rpartition},
    {"splitlines", "self / keepends", 1, str_splitlines},
    {"join", "self iterable /", 2, str_join},
    {"format", NULL, 1, str_format},
    {"isalnum", "self /", 1, str_isalnum},
    {"isalpha", "self /", 1, str_isalpha},
    {"isascii", "self /", 1, str_isascii},
    {"isdecimal", "self /", 1, str_isdecimal},
    {"isdigit", "self /", 1, str_isdigit},
    {"islower", "self /", 1, str_islower},
    {"isnumeric", "self /", 1, str_isnumeric},
    {"isspace", "self /", 1, str_isspace},
    {"isupper", "self /", 1, str_isupper},
    {"encode", NULL, 1, NULL},
    {"casefold", NULL, 1, NULL},
    {"expandtabs", NULL, 1, NULL},
    {"format_map", NULL, 1, NULL},
    {"isidentifier", NULL, 1, NULL},
    {"isprintable", NULL, 1, NULL},
    {"istitle", NULL, 1, NULL},
    {"maketrans", NULL, 1, NULL},
    {"swapcase", NULL, 1, NULL},
    {"translate", NULL, 1, NULL},
};
const size_t jinja_n_str_method = sizeof jinja_str_methods / sizeof *jinja_str_methods;

/* ---- list, tuple, range ------------------------------------------------------------------- */

static JFN(list_index)
{
    const struct jseq *s = arg[0].seq;
    const int64_t n = (int64_t)s->n;
    int64_t lo, hi;
    TRY(jarg_int(j, arg[2], 0, &lo));
    TRY(jarg_int(j, arg[3], n, &hi));
    clamp(n, &lo, &hi);
    for (int64_t i = lo; i < hi; i++) {
        bool equal;
        TRY(jv_equal(j, s->item[i], arg[1], &equal));
        if (equal) {
            *out = jv_int(i);
            return SINTER_OK;
        }
    }
    return JFAIL(j, DATA, "the value is not in the list");
}

static JFN(list_count)
{
    int64_t n = 0;
    for (size_t i = 0; i < arg[0].seq->n; i++) {
        bool equal;
        TRY(jv_equal(j, arg[0].seq->item[i], arg[1], &equal));
        n += equal;
    }
    *out = jv_int(n);
    return SINTER_OK;
}

static JFN(list_copy)
{
    *out = arg[0]; /* lists never change */
    return SINTER_OK;
}

const struct jrow jinja_list_methods[] = {
    {"index", "self value start stop /", 2, list_index},
    {"count", "self value /", 2, list_count},
    {"copy", "self /", 1, list_copy},
};
const size_t jinja_n_list_method = sizeof jinja_list_methods / sizeof *jinja_list_methods;

/* ---- dict --------------------------------------------------------------------------------- */

static JFN(dict_get)
{
    struct jv *found;
    TRY(jdict_get(j, arg[0].dict, arg[1], &found));
    *out = found ? *found : arg[2].kind == JV_ABSENT ? jv_none() : arg[2];
    return SINTER_OK;
}

static JFN(dict_keys)
{
    const struct jdict *d = arg[0].dict;
    TRY(jseq_new(j, SEQ_KEYS, d->n, out));
    for (size_t i = 0; i < d->n; i++)
        out->seq->item[i] = d->pair[i].key;
    return SINTER_OK;
}

static JFN(dict_values)
{
    const struct jdict *d = arg[0].dict;
    TRY(jseq_new(j, SEQ_VALUES, d->n, out));
    for (size_t i = 0; i < d->n; i++)
        out->seq->item[i] = d->pair[i].value;
    return SINTER_OK;
}

static JFN(dict_items)
{
    const struct jdict *d = arg[0].dict;
    TRY(jseq_new(j, SEQ_ITEMS, d->n, out));
    for (size_t i = 0; i < d->n; i++) {
        TRY(jseq_pair(j, d->pair[i].key, d->pair[i].value, &out->seq->item[i]));
    }
    return SINTER_OK;
}

const struct jrow jinja_dict_methods[] = {
    {"get", "self key default /", 2, dict_get}, {"keys", "self /", 1, dict_keys},
    {"values", "self /", 1, dict_values},       {"items", "self /", 1, dict_items},
    {"copy", "self /", 1, list_copy},           {"fromkeys", NULL, 1, NULL},
};
const size_t jinja_n_dict_method = sizeof jinja_dict_methods / sizeof *jinja_dict_methods;

/* ---- loop, cycler ------------------------------------------------------------------------- */

static JFN(loop_cycle)
{
    if (raw->n_pos < 2 || raw->n_kw)
        return JFAIL(j, DATA, "no items for cycling given");
    *out = raw->pos[1 + raw->pos[0].loop->index0 % (raw->n_pos - 1)];
    return SINTER_OK;
}

static JFN(loop_changed)
{
    struct jloop *l = raw->pos[0].loop;
    bool equal = false;
    struct jv now;
    if (raw->n_kw)
        return JFAIL(j, DATA, "loop.changed takes no keywords");
    TRY(jseq_copy(j, SEQ_TUPLE, raw->pos + 1, raw->n_pos - 1, &now));
    if (l->changed.kind != JV_ABSENT)
        TRY(jv_equal(j, l->changed, now, &equal));
    l->changed = now;
    *out = jv_bool(!equal);
    return SINTER_OK;
}

const struct jrow jinja_loop_methods[] = {
    {"cycle", NULL, 1, loop_cycle},
    {"changed", NULL, 1, loop_changed},
};
const size_t jinja_n_loop_method = sizeof jinja_loop_methods / sizeof *jinja_loop_methods;

static JFN(cycler_next)
{
    struct jcycler *c = arg[0].cycler;
    *out = c->item[c->pos];
    c->pos = (c->pos + 1) % c->n;
    return SINTER_OK;
}

static JFN(cycler_reset)
{
    arg[0].cycler->pos = 0;
    *out = jv_none();
    return SINTER_OK;
}

const struct jrow jinja_cycler_methods[] = {
    {"next", "self /", 1, cycler_next},
    {"reset", "self /", 1, cycler_reset},
};
const size_t jinja_n_cycler_method = sizeof jinja_cycler_methods / sizeof *jinja_cycler_methods;
