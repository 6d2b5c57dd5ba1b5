/* Hand-written splitters, one per class of pretokenizers.def, in place of regular expressions: the
 * only look-ahead that the expressions need is "blanks before something that is not blank". Each
 * character is looked at a bounded number of times; an invalid byte is a character of its own. */
#include "text/split.h"

#include <string.h>

#include "base/options.h"
#include "text/unicode.h"

static enum unicode_class look(struct split_text *t, size_t pos, size_t *next)
{
    size_t len;
    uint32_t point;

    *next = pos;
    if (pos >= t->bytes)
        return UNICODE_END;
    t->work++;
    uint8_t b = (uint8_t)t->text[pos];
    if (b < 0x80) {
        *next = pos + 1;
        return t->class[b];
    }
    if (unicode_scan(t->text + pos, t->bytes - pos, &len, &point) != UNICODE_VALID)
        len = 1;
    *next = pos + len;
    return point < UNICODE_N_CLASSED ? t->class[point] : UNICODE_OTHER;
}

/* End of at most `max` characters of the class from pos on. */
static size_t run(struct split_text *t, size_t pos, enum unicode_class class, size_t max)
{
    size_t next;

    for (; max > 0 && look(t, pos, &next) == class; max--)
        pos = next;
    return pos;
}

/* End of 's 't 're 've 'm 'll 'd at pos, or pos. U+017F (long s) is an s of another case. */
static size_t contraction(const struct split_text *t, size_t pos, bool any_case)
{
    static const char end[][3] = {"s", "t", "re", "ve", "m", "ll", "d"};
    size_t left = t->bytes - pos;
    const char *p = t->text + pos;

    if (left < 2 || p[0] != '\'')
        return pos;
    for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
        size_t n = strlen(end[i]), k = 0;
        while (k < n && k + 1 < left) {
            char c = p[k + 1];
            if (any_case && c >= 'A' && c <= 'Z')
                c = (char)(c + ('a' - 'A'));
            if (c != end[i][k])
                break;
            k++;
        }
        if (k == n)
            return pos + 1 + n;
    }
    if (any_case && left >= 3 && memcmp(p + 1, "\xC5\xBF", 2) == 0)
        return pos + 3;
    return pos;
}

static bool is_newline(const struct split_text *t, size_t pos)
{
    return pos < t->bytes && (t->text[pos] == '\n' || t->text[pos] == '\r');
}

/* End of the word of blanks at pos: up to the last newline of the run if `newlines`; else the whole
 * run, less its last blank if more than one stands before something else. `before_digit`: a digit
 * counts as the end of the text. */
static size_t blanks(struct split_text *t, size_t pos, bool newlines, bool before_digit)
{
    size_t end = pos, last = pos, after_newline = pos, next;
    enum unicode_class class;

    while ((class = look(t, end, &next)) == UNICODE_SPACE) {
        if (is_newline(t, end))
            after_newline = next;
        last = end;
        end = next;
    }
    if (newlines && after_newline > pos)
        return after_newline;
    if (class == UNICODE_END || (before_digit && class == UNICODE_NUMBER) || last == pos)
        return end;
    return last;
}

static size_t gpt2_word(struct split_text *t, size_t pos, bool digits)
{
    size_t next, after, end = contraction(t, pos, false);

    if (end > pos)
        return end;
    enum unicode_class class = look(t, pos, &next);
    if (t->text[pos] == ' ') {
        enum unicode_class second = look(t, next, &after);
        if (second == UNICODE_LETTER || second == UNICODE_OTHER ||
            (second == UNICODE_NUMBER && !digits))
            return run(t, after, second, SIZE_MAX);
    }
    if (class == UNICODE_SPACE)
        return blanks(t, pos, false, digits);
    if (class == UNICODE_NUMBER && digits)
        return next;
    return run(t, next, class, SIZE_MAX);
}

static size_t llama3_word(struct split_text *t, size_t pos, size_t max_digits)
{
    size_t next, after, end = contraction(t, pos, true);

    if (end > pos)
        return end;
    enum unicode_class class = look(t, pos, &next);
    enum unicode_class second = look(t, next, &after);
    if (class == UNICODE_NUMBER)
        return run(t, pos, UNICODE_NUMBER, max_digits);
    if (class == UNICODE_LETTER)
        return run(t, next, UNICODE_LETTER, SIZE_MAX);
    if (second == UNICODE_LETTER && !is_newline(t, pos))
        return run(t, after, UNICODE_LETTER, SIZE_MAX);
    if (class == UNICODE_OTHER || (t->text[pos] == ' ' && second == UNICODE_OTHER)) {
        end = run(t, next, UNICODE_OTHER, SIZE_MAX);
        while (is_newline(t, end))
            end++;
        return end;
    }
    return blanks(t, pos, true, false);
}

static size_t split_gpt2(struct split_text *t, size_t pos)
{
    return gpt2_word(t, pos, false);
}
static size_t split_digits(struct split_text *t, size_t pos)
{
    return gpt2_word(t, pos, true);
}
static size_t split_llama3(struct split_text *t, size_t pos)
{
    return llama3_word(t, pos, 3);
}
static size_t split_qwen2(struct split_text *t, size_t pos)
{
    return llama3_word(t, pos, 1);
}

#define IGNORE_MERGES              SPLIT_IGNORE_MERGES
#define ADD_BOS                    SPLIT_ADD_BOS
#define PRE(name, splitter, flags) {name, split_##splitter, flags},
const struct split_row split_rows[] = {
#include "text/pretokenizers.def"
};
const int split_n_row = (int)(sizeof split_rows / sizeof *split_rows);
#undef PRE

const struct split_row *split_find(const char *name, size_t bytes)
{
    for (int i = 0; i < split_n_row; i++)
        if (strlen(split_rows[i].name) == bytes && memcmp(split_rows[i].name, name, bytes) == 0)
            return &split_rows[i];
    return NULL;
}

#define PRE(name, splitter, flags) name,
const char *split_nearest(const char *name)
{
    static const char *const names[] = {
#include "text/pretokenizers.def"
    };
    return options_nearest(name, names, split_n_row);
}
