/* UTF-8 by the table of base/utf8.h, and utf8proc's categories. */
#include "text/unicode.h"

#include <stdbool.h>
#include <utf8proc.h>

#include "base/utf8.h"

enum unicode_scan unicode_scan(const char *text, size_t bytes, size_t *len, uint32_t *point)
{
    const uint8_t *b = (const uint8_t *)text;
    uint8_t lo, hi;
    size_t n = utf8_lead(b[0], &lo, &hi);

    *len = 1;
    *point = 0xFFFD;
    if (n == 0)
        return UNICODE_ILL;
    uint32_t p = n == 1 ? b[0] : b[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        *len = i;
        if (i == bytes)
            return UNICODE_CUT;
        if (b[i] < lo || b[i] > hi)
            return UNICODE_ILL;
        p = p << 6 | (b[i] & 0x3Fu);
        lo = 0x80;
        hi = 0xBF;
    }
    *len = n;
    *point = p;
    return UNICODE_VALID;
}

size_t unicode_put(uint32_t point, char buf[4])
{
    uint32_t p = point > 0x10FFFF || (point >= 0xD800 && point < 0xE000) ? 0xFFFD : point;

    if (p < 0x80) {
        buf[0] = (char)p;
        return 1;
    }
    size_t n = p < 0x800 ? 2 : p < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--) {
        buf[i] = (char)(0x80 | (p & 0x3F));
        p >>= 6;
    }
    buf[0] = (char)((0xF00u >> n & 0xF0u) | p);
    return n;
}

static bool is_white_space(uint32_t p)
{
    return (p >= 0x09 && p <= 0x0D) || p == 0x20 || p == 0x85 || p == 0xA0 || p == 0x1680 ||
           (p >= 0x2000 && p <= 0x200A) || p == 0x2028 || p == 0x2029 || p == 0x202F ||
           p == 0x205F || p == 0x3000;
}

void unicode_classes(uint8_t table[UNICODE_N_CLASSED])
{
    for (uint32_t p = 0; p < UNICODE_N_CLASSED; p++) {
        utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)p);
        uint8_t class = UNICODE_OTHER;
        if (is_white_space(p))
            class = UNICODE_SPACE;
        else if (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO)
            class = UNICODE_LETTER;
        else if (c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO)
            class = UNICODE_NUMBER;
        table[p] = class;
    }
}
