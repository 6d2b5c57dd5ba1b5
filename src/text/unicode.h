/* UTF-8 and the classes of characters that pre-tokenizers tell apart. */
#ifndef TEXT_UNICODE_H
#define TEXT_UNICODE_H

#include <stddef.h>
#include <stdint.h>

enum unicode_scan {
    UNICODE_VALID, /* one whole character */
    UNICODE_ILL,   /* cannot become valid, whatever follows */
    UNICODE_CUT    /* the text ends inside of a so far valid sequence */
};

/* Looks at the sequence that text[0 .. bytes) begins with, bytes > 0; reads nothing past it.
 * *len = its bytes (of an ill-formed one: the maximal part, at least 1), *point = the character,
 * or U+FFFD. */
enum unicode_scan unicode_scan(const char *text, size_t bytes, size_t *len, uint32_t *point);

/* Bytes of `point` as UTF-8 (1..4) into buf. Surrogates and what is past U+10FFFF give U+FFFD. */
size_t unicode_put(uint32_t point, char buf[4]);

enum unicode_class {
    UNICODE_OTHER, /* also invalid bytes, and all from U+40000 on, where nothing else is assigned */
    UNICODE_LETTER, /* L* */
    UNICODE_NUMBER, /* N* */
    UNICODE_SPACE,  /* property White_Space */
    UNICODE_END     /* past the end of the text */
};

enum { UNICODE_N_CLASSED = 0x40000 };
/* table[U+0000 .. U+3FFFF] */
void unicode_classes(uint8_t table[UNICODE_N_CLASSED]);

#endif
