/* Code points as Python's str sees them. Without utf8proc only ASCII is classified or mapped. */
#include "text/jinja/jinja.h"

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

struct range {
    uint32_t lo, hi;
};

static bool in_range(uint32_t c, const struct range *range, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (c >= range[i].lo && c <= range[i].hi)
            return true;
    return false;
}

/* Upper-casing (and so title-casing) these gives several characters. */
static bool upper_expands(uint32_t c)
{
    static const struct range range[] = {
        {0xDF, 0xDF},     {0x149, 0x149},   {0x1F0, 0x1F0},   {0x390, 0x390},   {0x3B0, 0x3B0},
        {0x587, 0x587},   {0x1E96, 0x1E9A}, {0x1F50, 0x1F50}, {0x1F52, 0x1F52}, {0x1F54, 0x1F54},
        {0x1F56, 0x1F56}, {0x1F80, 0x1FAF}, {0x1FB2, 0x1FB4}, {0x1FB6, 0x1FB7}, {0x1FBC, 0x1FBC},
        {0x1FC2, 0x1FC4}, {0x1FC6, 0x1FC7}, {0x1FCC, 0x1FCC}, {0x1FD2, 0x1FD3}, {0x1FD6, 0x1FD7},
        {0x1FE2, 0x1FE4}, {0x1FE6, 0x1FE7}, {0x1FF2, 0x1FF4}, {0x1FF6, 0x1FF7}, {0x1FFC, 0x1FFC},
        {0xFB00, 0xFB06}, {0xFB13, 0xFB17},
    };
    return in_range(c, range, sizeof range / sizeof *range);
}

/* Cased though no letter of category Lu, Ll or Lt: signs, Roman numerals, circled letters. */
bool jchar_odd_case(uint32_t c)
{
    static const struct range range[] = {
        {0xAA, 0xAA},       {0xBA, 0xBA},       {0x2B0, 0x2B8},     {0x2C0, 0x2C1},
        {0x2E0, 0x2E4},     {0x345, 0x345},     {0x37A, 0x37A},     {0x1D2C, 0x1D6A},
        {0x1D78, 0x1D78},   {0x1D9B, 0x1DBF},   {0x2071, 0x2071},   {0x207F, 0x207F},
        {0x2090, 0x209C},   {0x2160, 0x217F},   {0x24B6, 0x24E9},   {0x2C7C, 0x2C7D},
        {0xA69C, 0xA69D},   {0xA770, 0xA770},   {0xA7F8, 0xA7F9},   {0xAB5C, 0xAB5F},
        {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA},
        {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
    return in_range(c, range, sizeof range / sizeof *range);
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

enum jchar_case jchar_case(uint32_t c)
{
    const utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_LU   ? CHAR_UPPER
           : k == UTF8PROC_CATEGORY_LL ? CHAR_LOWER
           : k == UTF8PROC_CATEGORY_LT ? CHAR_TITLE
                                       : CHAR_UNCASED;
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

enum jchar_case jchar_case(uint32_t c)
{
    return !jchar_alpha(c) ? CHAR_UNCASED : c >= 'a' ? CHAR_LOWER : CHAR_UPPER;
}

bool jchar_printable(uint32_t c)
{
    return c >= ' ' && c != 0x7F;
}

#endif
