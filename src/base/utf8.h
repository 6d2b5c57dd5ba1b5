/* The one UTF-8 check that messages, JSON and logs share: shortest form, no surrogates, at most
 * U+10FFFF. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>

/* Bytes of the valid sequence that starts at text[0], or 0 if none starts there; bytes > 0. */
static inline size_t utf8_sequence(const char *text, size_t bytes)
{
    const unsigned char *s = (const unsigned char *)text;
    unsigned lo = 0x80, hi = 0xBF; /* what the second byte may be */
    size_t n;
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xC2 || s[0] > 0xF4)
        return 0;
    n = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    if (s[0] == 0xE0)
        lo = 0xA0;
    else if (s[0] == 0xED)
        hi = 0x9F;
    else if (s[0] == 0xF0)
        lo = 0x90;
    else if (s[0] == 0xF4)
        hi = 0x8F;
    if (n > bytes || s[1] < lo || s[1] > hi)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    return n;
}

#endif
