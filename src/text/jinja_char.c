/* Code points as Python's str sees them. Without utf8proc only ASCII is classified or mapped. */
#include "text/jinja.h"

#ifdef HAVE_utf8proc
#include <utf8proc.h>
#endif

uint32_t jchar_get(const char *text, size_t *len)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80) {
        *len = 1;
        return s[0];
    }
    if (s[0] < 0xE0) {
        *len = 2;
        return (uint32_t)(s[0] & 0x1F) << 6 | (s[1] & 0x3F);
    }
    if (s[0] < 0xF0) {
        *len = 3;
        return (uint32_t)(s[0] & 0x0F) << 12 | (uint32_t)(s[1] & 0x3F) << 6 | (s[2] & 0x3F);
    }
    *len = 4;
    return (uint32_t)(s[0] & 0x07) << 18 | (uint32_t)(s[1] & 0x3F) << 12 |
           (uint32_t)(s[2] & 0x3F) << 6 | (s[3] & 0x3F);
}

size_t jchar_back(const char *text, size_t bytes)
{
    size_t n = 1;
    while (n < bytes && ((unsigned char)text[bytes - n] & 0xC0) == 0x80)
        n++;
    return n;
}

size_t jchars(const char *text, size_t bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++)
        n += ((unsigned char)text[i] & 0xC0) != 0x80;
    return n;
}

size_t jchar_offset(const struct jstr *s, size_t n_char)
{
    size_t i = 0, len;
    if (s->bytes == s->n_char)
        return n_char;
    for (; n_char; n_char--, i += len)
        jchar_get(s->text + i, &len);
    return i;
}

bool jchar_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

/* Upper-casing (and so title-casing) these gives several characters. */
static bool upper_expands(uint32_t c)
{
    static const struct {
        uint32_t lo, hi;
    } range[] = {
        {0xDF, 0xDF},     {0x149, 0x149},   {0x1F0, 0x1F0},   {0x390, 0x390},   {0x3B0, 0x3B0},
        {0x587, 0x587},   {0x1E96, 0x1E9A}, {0x1F50, 0x1F50}, {0x1F52, 0x1F52}, {0x1F54, 0x1F54},
        {0x1F56, 0x1F56}, {0x1F80, 0x1FAF}, {0x1FB2, 0x1FB4}, {0x1FB6, 0x1FB7}, {0x1FBC, 0x1FBC},
        {0x1FC2, 0x1FC4}, {0x1FC6, 0x1FC7}, {0x1FCC, 0x1FCC}, {0x1FD2, 0x1FD3}, {0x1FD6, 0x1FD7},
        {0x1FE2, 0x1FE4}, {0x1FE6, 0x1FE7}, {0x1FF2, 0x1FF4}, {0x1FF6, 0x1FF7}, {0x1FFC, 0x1FFC},
        {0xFB00, 0xFB06}, {0xFB13, 0xFB17},
    };
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (c >= range[i].lo && c <= range[i].hi)
            return true;
    return false;
}

#ifdef HAVE_utf8proc

static utf8proc_category_t category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

bool jchar_upper(uint32_t c, uint32_t *out)
{
    *out = (uint32_t)utf8proc_toupper((utf8proc_int32_t)c);
    return !upper_expands(c);
}

bool jchar_title(uint32_t c, uint32_t *out)
{
    *out = (uint32_t)utf8proc_totitle((utf8proc_int32_t)c);
    return !upper_expands(c);
}

/* U+0130 gives two characters; a sigma's form depends on its neighbours. */
bool jchar_lower(uint32_t c, uint32_t *out)
{
    *out = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    return c != 0x130 && c != 0x3A3;
}

bool jchar_alpha(uint32_t c)
{
    const utf8proc_category_t k = category(c);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool jchar_decimal(uint32_t c)
{
    return category(c) == UTF8PROC_CATEGORY_ND;
}

bool jchar_numeric(uint32_t c)
{
    const utf8proc_category_t k = category(c);
    return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

bool jchar_cased(uint32_t c, bool *upper)
{
    const utf8proc_category_t k = category(c);
    *upper = k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LT;
    return *upper || k == UTF8PROC_CATEGORY_LL;
}

bool jchar_printable(uint32_t c)
{
    const utf8proc_category_t k = category(c);
    return c == ' ' ||
           (k != UTF8PROC_CATEGORY_CN && k != UTF8PROC_CATEGORY_CC && k != UTF8PROC_CATEGORY_CF &&
            k != UTF8PROC_CATEGORY_CS && k != UTF8PROC_CATEGORY_CO && k != UTF8PROC_CATEGORY_ZL &&
            k != UTF8PROC_CATEGORY_ZP && k != UTF8PROC_CATEGORY_ZS);
}

#else

bool jchar_upper(uint32_t c, uint32_t *out)
{
    *out = c >= 'a' && c <= 'z' ? c - 32 : c;
    return c < 0x80 && !upper_expands(c);
}

bool jchar_title(uint32_t c, uint32_t *out)
{
    return jchar_upper(c, out);
}

bool jchar_lower(uint32_t c, uint32_t *out)
{
    *out = c >= 'A' && c <= 'Z' ? c + 32 : c;
    return c < 0x80;
}

bool jchar_alpha(uint32_t c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

bool jchar_decimal(uint32_t c)
{
    return c >= '0' && c <= '9';
}

bool jchar_numeric(uint32_t c)
{
    return jchar_decimal(c);
}

bool jchar_cased(uint32_t c, bool *upper)
{
    *upper = c >= 'A' && c <= 'Z';
    return jchar_alpha(c);
}

bool jchar_printable(uint32_t c)
{
    return c >= ' ' && c != 0x7F;
}

#endif
