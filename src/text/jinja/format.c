/* Numbers as text and back, `%` formatting, str.format, strftime: as Python, in no locale. */
#include "text/jinja/jinja.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* printf of a double with the locale's decimal point made a '.'. */
static void print_double(char *buf, size_t n, const char *fmt, int precision, double f)
{
    char point[8], *at;
    size_t len;
    snprintf(point, sizeof point, "%.1f", 0.5);
    len = strlen(point) - 2; /* "0", point, "5" */
    point[1 + len] = 0;
    snprintf(buf, n, fmt, precision, f);
    at = strstr(buf, point + 1);
    if (at && strcmp(point + 1, ".") != 0) {
        *at = '.';
        memmove(at + 1, at + len, strlen(at + len) + 1);
    }
}

static double to_double(const char *text)
{
    char point[8], buf[600];
    const char *dot = strchr(text, '.');
    size_t len;
    if (!dot)
        return strtod(text, NULL);
    snprintf(point, sizeof point, "%.1f", 0.5);
    len = strlen(point) - 2;
    if (strlen(text) + len >= sizeof buf)
        return 0;
    snprintf(buf, sizeof buf, "%.*s%.*s%s", (int)(dot - text), text, (int)len, point + 1, dot + 1);
    return strtod(buf, NULL);
}

bool jfmt_parse_float(const char *text, size_t n, double *out)
{
    char buf[513];
    if (n >= sizeof buf)
        return false;
    memcpy(buf, text, n);
    buf[n] = 0;
    *out = to_double(buf);
    return true;
}

/* The shortest digits that read back as f, laid out as Python's repr does. */
void jfmt_float(double f, char buf[40])
{
    char e[40], digit[24];
    int n = 0, exponent, precision = 0;
    char *p = buf;
    if (f != f || f - f != 0) {
        snprintf(buf, 40, "%s", f != f ? "nan" : f > 0 ? "inf" : "-inf");
        return;
    }
    for (; precision < 17; precision++) {
        print_double(e, sizeof e, "%.*e", precision, f);
        if (to_double(e) == f)
            break;
    }
    exponent = atoi(strchr(e, 'e') + 1);
    for (const char *s = e; *s != 'e'; s++)
        if (*s >= '0' && *s <= '9')
            digit[n++] = *s;
    if (signbit(f))
        *p++ = '-';
    if (exponent < -4 || exponent >= 16) {
        snprintf(p, 36, "%c%s%.*se%c%02d", digit[0], n > 1 ? "." : "", n - 1, digit + 1,
                 exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    if (exponent < 0) {
        p += snprintf(p, 10, "0.%.*s", -exponent - 1, "0000");
        snprintf(p, 24, "%.*s", n, digit);
        return;
    }
    for (int i = 0; i <= exponent || i < n; i++) {
        if (i == exponent + 1)
            *p++ = '.';
        *p++ = i < n ? digit[i] : '0';
    }
    if (n <= exponent + 1) {
        *p++ = '.';
        *p++ = '0';
    }
    *p = 0;
}

sinter_status jfmt_round(struct jinja *j, double f, int64_t digits, double *out)
{
    char buf[400];
    if (digits < 0)
        return JFAIL(j, UNSUPPORTED, "rounding to tens, hundreds, ... is not supported");
    if (f != f || f - f != 0 || digits > 25) {
        *out = f;
        return SINTER_OK;
    }
    print_double(buf, sizeof buf, "%.*f", (int)digits, f);
    *out = to_double(buf);
    return SINTER_OK;
}

/* ---- % ------------------------------------------------------------------------------------ */

struct spec {
    bool minus, zero, plus, blank, alt;
    int width, precision; /* precision < 0: none */
    char type;
};

static int number(const struct jstr *s, size_t *i)
{
    int v = 0;
    while (*i < s->bytes && s->text[*i] >= '0' && s->text[*i] <= '9' && v < 100000)
        v = v * 10 + (s->text[(*i)++] - '0');
    return v;
}

static sinter_status read_spec(struct jinja *j, const struct jstr *s, size_t *i, struct spec *f)
{
    *f = (struct spec){.precision = -1};
    for (; *i < s->bytes; ++*i) {
        const char c = s->text[*i];
        bool *flag = c == '-'   ? &f->minus
                     : c == '0' ? &f->zero
                     : c == '+' ? &f->plus
                     : c == ' ' ? &f->blank
                     : c == '#' ? &f->alt
                                : NULL;
        if (!flag)
            break;
        *flag = true;
    }
    f->width = number(s, i);
    if (*i < s->bytes && s->text[*i] == '.') {
        ++*i;
        f->precision = number(s, i);
    }
    if (*i >= s->bytes)
        return JFAIL(j, DATA, "incomplete format");
    f->type = s->text[(*i)++];
    if (f->width > 10000 || f->precision > 100 || f->alt || !strchr("sdiurfFeEgGxXoc%", f->type) ||
        !f->type)
        return JFAIL(j, UNSUPPORTED, "this %% format is not supported");
    return SINTER_OK;
}

static void pad(struct text_buf *b, const char *text, size_t bytes, size_t n_char,
                const struct spec *f, bool numeric)
{
    const size_t width = (size_t)f->width, fill = n_char < width ? width - n_char : 0;
    size_t sign = 0;
    if (f->minus)
        text_buf_add(b, text, bytes);
    else if (numeric && f->zero) {
        sign = bytes && strchr("+- ", text[0]) ? 1 : 0;
        text_buf_add(b, text, sign);
    }
    for (size_t i = 0; i < fill; i++)
        text_buf_add(b, numeric && f->zero && !f->minus ? "0" : " ", 1);
    if (!f->minus)
        text_buf_add(b, text + sign, bytes - sign);
}

static sinter_status percent_number(struct jinja *j, const struct spec *f, struct jv v,
                                    struct text_buf *b)
{
    char buf[500], fmt[8] = "%.*f", *p = buf + 1;
    const bool is_float = strchr("fFeEgG", f->type) != NULL;
    if (v.kind == JV_UNDEFINED)
        return jundef_fail(j, v);
    if (!jv_is_number(v) || (strchr("xXo", f->type) && !jv_is_int(v)))
        return JFAIL(j, DATA, "%%%c format: a number is required, not %s", f->type, jv_type(v));
    if (f->precision >= 0 && !is_float)
        return JFAIL(j, UNSUPPORTED, "a precision of integers is not supported");
    if (is_float) {
        fmt[3] = f->type;
        print_double(p, sizeof buf - 1, fmt, f->precision < 0 ? 6 : f->precision, jv_as_float(v));
    } else {
        const double d = jv_as_float(v);
        if (v.kind == JV_FLOAT && !(fabs(d) < 9e18))
            return JFAIL(j, UNSUPPORTED, "this float is too large for %%d");
        const int64_t i = v.kind == JV_FLOAT ? (int64_t)d : jv_as_int(v);
        const uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
        const char *how = f->type == 'x'   ? "%s%llx"
                          : f->type == 'X' ? "%s%llX"
                          : f->type == 'o' ? "%s%llo"
                                           : "%s%llu";
        snprintf(p, sizeof buf - 1, how, i < 0 ? "-" : "", (unsigned long long)u);
    }
    if (*p != '-' && (f->plus || f->blank))
        *--p = f->plus ? '+' : ' ';
    pad(b, p, strlen(p), strlen(p), f, true);
    return SINTER_OK;
}

static sinter_status percent_one(struct jinja *j, const struct spec *f, struct jv v,
                                 struct text_buf *b)
{
    const struct jstr *s;
    struct jstr cut;
    if (f->type == 'r') {
        TRY(jv_repr_str(j, v, &s));
    } else if (f->type == 's') {
        TRY(jv_str(j, v, &s));
    } else if (f->type == 'c') {
        return JFAIL(j, UNSUPPORTED, "%%c is not supported; use %%s");
    } else {
        return percent_number(j, f, v, b);
    }
    cut = *s;
    if (f->precision >= 0 && (size_t)f->precision < s->n_char) {
        cut.n_char = (size_t)f->precision;
        cut.bytes = jchar_offset(s, cut.n_char);
    }
    pad(b, cut.text, cut.bytes, cut.n_char, f, false);
    return SINTER_OK;
}

/* The next argument of `%`: of a tuple in order, of a dict by %(name). */
static sinter_status percent_arg(struct jinja *j, const struct jstr *fmt, size_t *i, struct jv args,
                                 size_t *used, struct jv *out)
{
    const bool tuple = args.kind == JV_SEQ && args.seq->kind == SEQ_TUPLE;
    if (*i < fmt->bytes && fmt->text[*i] == '(') {
        const char *start = fmt->text + *i + 1;
        const char *end = memchr(start, ')', fmt->bytes - *i - 1);
        struct jv *found;
        if (args.kind != JV_DICT || !end)
            return JFAIL(j, DATA, "format requires a mapping");
        found = jdict_find(args.dict, start, (size_t)(end - start));
        if (!found)
            return JFAIL(j, DATA, "key '%.*s' of the format is missing", (int)(end - start), start);
        *out = *found;
        *i += (size_t)(end - start) + 2;
        *used = SIZE_MAX;
        return SINTER_OK;
    }
    if (*used == SIZE_MAX)
        return JFAIL(j, UNSUPPORTED, "named and unnamed pieces in one %% format");
    if (*used >= (tuple ? args.seq->n : 1))
        return JFAIL(j, DATA, "not enough arguments for format string");
    *out = tuple ? args.seq->item[*used] : args;
    ++*used;
    return SINTER_OK;
}

static sinter_status percent(struct jinja *j, const struct jstr *fmt, struct jv args,
                             struct text_buf *b)
{
    size_t used = 0;
    for (size_t i = 0; i < fmt->bytes;) {
        const char *p = memchr(fmt->text + i, '%', fmt->bytes - i);
        const size_t n = p ? (size_t)(p - fmt->text) - i : fmt->bytes - i;
        struct spec f;
        struct jv v;
        text_buf_add(b, fmt->text + i, n);
        i += n + 1;
        if (!p)
            break;
        if (i < fmt->bytes && fmt->text[i] == '%') {
            text_buf_add(b, "%", 1);
            i++;
            continue;
        }
        TRY(jcharge(j, 1));
        TRY(percent_arg(j, fmt, &i, args, &used, &v));
        TRY(read_spec(j, fmt, &i, &f));
        if (f.type == '%')
            return JFAIL(j, UNSUPPORTED, "this %% format is not supported");
        TRY(percent_one(j, &f, v, b));
        if (b->bytes > j->limit.output_bytes)
            return JFAIL(j, LIMIT, "more than %zu bytes of text", j->limit.output_bytes);
    }
    /* What can be subscripted, but for tuples and strings, counts as a mapping: none is missed. */
    if (args.kind == JV_SEQ && args.seq->kind == SEQ_TUPLE
            ? used < args.seq->n
            : !used && args.kind != JV_DICT && args.kind != JV_SEQ && args.kind != JV_UNDEFINED)
        return JFAIL(j, DATA, "not all arguments converted during string formatting");
    return SINTER_OK;
}

sinter_status jfmt_percent(struct jinja *j, const struct jstr *fmt, struct jv args, struct jv *out)
{
    struct text_buf b;
    if (fmt->safe)
        return JFAIL(j, UNSUPPORTED, "formatting text marked safe is not supported");
    text_buf_init(&b, j->host);
    return jstr_take(j, percent(j, fmt, args, &b), &b, false, out);
}

/* ---- str.format: {} {0} {name} without attribute, conversion or format. ------------------- */

static sinter_status format_field(struct jinja *j, const char *name, size_t n,
                                  const struct jargs *args, size_t *next, struct jv *out)
{
    size_t at = 0;
    bool digits = n > 0;
    for (size_t i = 0; i < n; i++) {
        if (strchr(".[!:{", name[i]))
            return JFAIL(j, UNSUPPORTED, "format: only {}, {0} and {name} are supported");
        digits = digits && name[i] >= '0' && name[i] <= '9' && at < 1000;
        at = digits ? at * 10 + (size_t)(name[i] - '0') : at;
    }
    if (n && !digits) {
        for (size_t i = 0; i < args->n_kw; i++)
            if (args->kw[i].name->bytes == n && !memcmp(args->kw[i].name->text, name, n)) {
                *out = args->kw[i].value;
                return SINTER_OK;
            }
        return JFAIL(j, DATA, "format: no argument '%.*s'", (int)(n < 60 ? n : 60), name);
    }
    if ((n && *next && *next != SIZE_MAX) || (!n && *next == SIZE_MAX))
        return JFAIL(j, DATA, "format: {} and {0} cannot be mixed");
    if (n)
        *next = SIZE_MAX;
    else
        at = (*next)++;
    if (at >= args->n_pos)
        return JFAIL(j, DATA, "Replacement index %zu out of range for positional args tuple", at);
    *out = args->pos[at];
    return SINTER_OK;
}

static sinter_status format(struct jinja *j, const struct jstr *fmt, const struct jargs *args,
                            struct text_buf *b)
{
    size_t next = 0;
    for (size_t i = 0; i < fmt->bytes; i++) {
        const char c = fmt->text[i];
        const bool twice = i + 1 < fmt->bytes && fmt->text[i + 1] == c;
        const char *end;
        struct jv v;
        if ((c == '{' || c == '}') && twice) {
            text_buf_add(b, &c, 1);
            i++;
            continue;
        }
        if (c == '}')
            return JFAIL(j, DATA, "format: single '}'");
        if (c != '{') {
            text_buf_add(b, &c, 1);
            continue;
        }
        end = memchr(fmt->text + i, '}', fmt->bytes - i);
        if (!end)
            return JFAIL(j, DATA, "format: '{' without '}'");
        TRY(jcharge(j, 1));
        TRY(format_field(j, fmt->text + i + 1, (size_t)(end - fmt->text) - i - 1, args, &next, &v));
        TRY(jv_print(j, v, b));
        i = (size_t)(end - fmt->text);
    }
    return SINTER_OK;
}

sinter_status jfmt_format(struct jinja *j, const struct jstr *fmt, const struct jargs *args,
                          struct jv *out)
{
    struct text_buf b;
    if (fmt->safe)
        return JFAIL(j, UNSUPPORTED, "formatting text marked safe is not supported");
    text_buf_init(&b, j->host);
    return jstr_take(j, format(j, fmt, args, &b), &b, false, out);
}

/* ---- strftime ----------------------------------------------------------------------------- */

struct date {
    int64_t year;
    int month, day, hour, minute, second, weekday, yearday; /* from 0, but the day of the month */
};

/* Civil date of `now` seconds since 1970-01-01, by the proleptic Gregorian calendar. */
static struct date date_of(int64_t now)
{
    const int64_t day = now / 86400 - (now % 86400 < 0);
    const int64_t second = now - day * 86400;
    /* Eras of 400 years that start on the first of March. */
    const int64_t z = day + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
    const int64_t doe = z - era * 146097;
    const int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    const int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    struct date d = {.year = yoe + era * 400 + (mp >= 10)};
    const bool leap = (d.year % 4 == 0 && d.year % 100 != 0) || d.year % 400 == 0;
    d.month = (int)(mp < 10 ? mp + 2 : mp - 10);
    d.day = (int)(doy - (153 * mp + 2) / 5 + 1);
    d.hour = (int)(second / 3600);
    d.minute = (int)(second / 60 % 60);
    d.second = (int)(second % 60);
    d.weekday = (int)(((day + 4) % 7 + 7) % 7);
    d.yearday = before[d.month] + d.day - 1 + (leap && d.month > 1);
    return d;
}

static const char *const weekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};

static bool strftime_text(const struct date *d, char c, struct text_buf *b)
{
    const char *name = c == 'a' || c == 'A' ? weekdays[d->weekday] : months[d->month];
    if (c == 'a' || c == 'b' || c == 'h')
        text_buf_add(b, name, 3);
    else if (c == 'A' || c == 'B')
        text_buf_printf(b, "%s", name);
    else if (c == 'p')
        text_buf_printf(b, d->hour < 12 ? "AM" : "PM");
    else if (c == 'F')
        text_buf_printf(b, "%lld-%02d-%02d", (long long)d->year, d->month + 1, d->day);
    else if (c == 'D' || c == 'x')
        text_buf_printf(b, "%02d/%02d/%02d", d->month + 1, d->day, (int)(d->year % 100));
    else if (c == 'T' || c == 'X')
        text_buf_printf(b, "%02d:%02d:%02d", d->hour, d->minute, d->second);
    else if (c == 'R')
        text_buf_printf(b, "%02d:%02d", d->hour, d->minute);
    else if (c == 'c')
        text_buf_printf(b, "%.3s %.3s %2d %02d:%02d:%02d %lld", weekdays[d->weekday],
                        months[d->month], d->day, d->hour, d->minute, d->second,
                        (long long)d->year);
    else if (c == 'f')
        text_buf_printf(b, "000000");
    else if (c == '%' || c == 'n' || c == 't')
        text_buf_add(b, c == '%' ? "%" : c == 'n' ? "\n" : "\t", 1);
    else
        return c == 'z' || c == 'Z'; /* the wall clock knows no zone */
    return true;
}

/* A number: its value, or -1; *width as `%c` prints it. */
static int64_t strftime_number(const struct date *d, char c, int *width)
{
    const int hour12 = d->hour % 12 ? d->hour % 12 : 12;
    *width = c == 'j' ? 3 : c == 'Y' || c == 'u' || c == 'w' ? 1 : 2;
    return c == 'd' || c == 'e' ? d->day
           : c == 'm'           ? d->month + 1
           : c == 'Y'           ? d->year
           : c == 'y'           ? d->year % 100
           : c == 'C'           ? d->year / 100
           : c == 'H'           ? d->hour
           : c == 'I'           ? hour12
           : c == 'M'           ? d->minute
           : c == 'S'           ? d->second
           : c == 'j'           ? d->yearday + 1
           : c == 'u'           ? (d->weekday ? d->weekday : 7)
           : c == 'w'           ? d->weekday
           : c == 'U'           ? (d->yearday + 7 - d->weekday) / 7
           : c == 'W'           ? (d->yearday + 7 - (d->weekday + 6) % 7) / 7
                                : -1;
}

static sinter_status strftime_all(struct jinja *j, const struct jstr *fmt, struct text_buf *b)
{
    const struct date d = date_of(j->now);
    for (size_t i = 0; i < fmt->bytes; i++) {
        int width;
        int64_t v;
        char c = fmt->text[i];
        if (c != '%') {
            text_buf_add(b, &c, 1);
            continue;
        }
        const bool bare = i + 1 < fmt->bytes && fmt->text[i + 1] == '-';
        i += bare ? 2 : 1;
        c = i < fmt->bytes ? fmt->text[i] : 0;
        v = strftime_number(&d, c, &width);
        if (v >= 0)
            text_buf_printf(b, c == 'e' && !bare ? "%*lld" : "%0*lld", bare ? 1 : width,
                            (long long)v);
        else if (bare || !c || !strftime_text(&d, c, b))
            return JFAIL(j, UNSUPPORTED, "strftime_now: the format %%%s%c is not supported",
                         bare ? "-" : "", c >= ' ' ? c : '?');
    }
    return SINTER_OK;
}

sinter_status jfmt_strftime(struct jinja *j, const struct jstr *fmt, struct jv *out)
{
    struct text_buf b;
    /* Years 1 to 9999, as in Python's datetime. */
    if (j->now < -62135596800 || j->now > 253402300799)
        return JFAIL(j, DATA, "strftime_now: the clock is outside of the years 1 to 9999");
    text_buf_init(&b, j->host);
    return jstr_take(j, strftime_all(j, fmt, &b), &b, false, out);
}
