/* The one table of well-formed UTF-8 (table 3-7 of the Unicode standard: shortest form, no
 * surrogates, at most U+10FFFF), and the check that messages, JSON and logs share. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a sequence by its lead byte, 0 = no lead; lo..hi = what its second byte may be. */
static inline size_t utf8_lead(uint8_t b, uint8_t *lo, uint8_t *hi)
{
    *lo = b == 0xE0 ? 0xA0 : b == 0xF0 ? 0x90 : 0x80;
    *hi = b == 0xED ? 0x9F : b == 0xF4 ? 0x8F : 0xBF;
    if (b < 0x80)
        return 1;
    if (b < 0xC2 || b > 0xF4)
        return 0;
    return b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

/* Bytes of the valid sequence that starts at text[0], or 0 if none starts there; bytes > 0. */
static inline size_t utf8_sequence(const char *text, size_t bytes)
{
    const uint8_t *s = (const uint8_t *)text;
    uint8_t lo, hi;
    const size_t n = utf8_lead(s[0], &lo, &hi);
    if (n < 2)
        return n;
    if (n > bytes || s[1] < lo || s[1] > hi)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    return n;
}

/* Is the valid sequence text[0..n) a control character? U+0080 to U+009F are: terminals obey them
 * as they do escape sequences. */
static inline bool utf8_is_control(const char *text, size_t n)
{
    const uint8_t *s = (const uint8_t *)text;
    return n == 1 ? s[0] < 0x20 || s[0] == 0x7F : n == 2 && s[0] == 0xC2 && s[1] < 0xA0;
}

#endif
