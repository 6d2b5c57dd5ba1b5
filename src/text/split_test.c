/* Splitters against PCRE2 running the regular expressions of the models' own tokenizers, on random
 * text of characters that Unicode 13 has; the table's names; UTF-8 scanning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>
#include <cmocka.h>

#include "base/utf8.h"
#include "text/split.h"
#include "text/unicode.h"

#ifdef HAVE_pcre2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

static uint64_t seed = 88172645463325252u;

static uint32_t rnd(uint32_t n)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (uint32_t)(seed >> 33) % n;
}

static const uint8_t *classes(void)
{
    static uint8_t table[UNICODE_N_CLASSED];
    unicode_classes(table);
    return table;
}

#ifdef HAVE_pcre2
/* \s as HTML, Oniguruma and Rust mean it: PCRE2's own has U+180E too. */
#define S                                                                                          \
    "\\x{9}-\\x{d} \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"          \
    "\\x{205f}\\x{3000}"
#define BLANKS "[" S "]+(?![^" S "])|[" S "]+"
#define GPT2   "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" S "\\p{L}\\p{N}]+|" BLANKS
#define LLAMA3(digits)                                                                             \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" digits "| ?[^" S           \
    "\\p{L}\\p{N}]+[\\r\\n]*|[" S "]*[\\r\\n]+|" BLANKS

static const struct {
    const char *pre, *pattern;
} patterns[] = {
    {"gpt-2", GPT2},
    {"smollm", GPT2},
    {"llama-bpe", LLAMA3("{1,3}")},
    {"qwen2", LLAMA3("")},
};

static size_t put(char *buf, uint32_t point)
{
    return unicode_put(point, buf);
}

/* One random character or short run, of what tokenizers tell apart. */
static size_t random_part(char *buf)
{
    static const char *const parts[] = {
        "the",
        "Word",
        "'s",
        "'S",
        "'re",
        "'VE",
        "'ll",
        "'\xC5\xBF",
        "'x",
        "' ",
        "''",
        "!",
        "?!",
        "...",
        " ",
        "  ",
        "     ",
        "\n",
        "\r\n",
        "\n\n",
        " \n",
        "\t",
        "\xC2\xA0",
        "\xE3\x80\x80",
        "\xE2\x80\xA8",
        "\xE1\xA0\x8E",
        "\xC2\x85",
        "1",
        "22",
        "4444",
        "\xC2\xBD",
        "\xD9\xA3",
        "\xE2\x85\xA7",
        "\xE4\xBD\xA0\xE5\xA5\xBD",
        "\xE0\xA4\x95\xE0\xA5\x8D\xE0\xA4\xB7",
        "\xD9\x85\xD8\xB1\xD8\xAD",
        "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB",
        "e\xCC\x81",
        "\xC3\xA9",
        "_",
        "<",
        "\xE2\x96\x81",
        "\xC7\x85",
        "\xCA\xB0",
    };
    const uint32_t r = rnd(60);
    if (r < sizeof parts / sizeof *parts) {
        memcpy(buf, parts[r], strlen(parts[r]));
        return strlen(parts[r]);
    }
    return r & 1 ? put(buf, 0xA0 + rnd(0x2E0)) : put(buf, 1 + rnd(0x7E));
}

/* Ends of the words of text[from .. to) as PCRE2 sees them, absolute. */
static size_t pcre_words(pcre2_code *re, pcre2_match_data *data, const char *text, size_t from,
                         size_t to, size_t *end, size_t n)
{
    for (size_t pos = 0; pos < to - from;) {
        int rc =
            pcre2_match(re, (PCRE2_SPTR)text + from, to - from, pos, PCRE2_ANCHORED, data, NULL);
        assert_true(rc > 0);
        pos = pcre2_get_ovector_pointer(data)[1];
        end[n++] = from + pos;
    }
    return n;
}

static void against_pcre(void **state)
{
    size_t n_case = 0, n_ok = 0;
    const uint8_t *class = classes();
    (void)state;
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
        int code;
        PCRE2_SIZE at;
        pcre2_code *re = pcre2_compile((PCRE2_SPTR)patterns[p].pattern, PCRE2_ZERO_TERMINATED,
                                       PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
        assert_non_null(re);
        pcre2_match_data *data = pcre2_match_data_create_from_pattern(re, NULL);
        const struct split_row *row = split_find(patterns[p].pre, strlen(patterns[p].pre));
        const bool digits = strcmp(patterns[p].pre, "smollm") == 0;
        for (int round = 0; round < 3000; round++) {
            char text[2048];
            size_t want[2048], n = 0, n_want = 0, from = 0, len, k = 0;
            uint32_t point;
            const size_t max = 1 + rnd(round < 2000 ? 30 : 1500);
            while (n < max)
                n += random_part(text + n);
            for (size_t i = 0; digits && i < n; i += len) { /* digits apart, first */
                unicode_scan(text + i, n - i, &len, &point);
                if (class[point] != UNICODE_NUMBER)
                    continue;
                n_want = pcre_words(re, data, text, from, i, want, n_want);
                want[n_want++] = from = i + len;
            }
            n_want = pcre_words(re, data, text, from, n, want, n_want);
            struct split_text t = {.class = class, .text = text, .bytes = n};
            bool same = true;
            for (size_t pos = 0; pos < n && same; k++) {
                pos = row->next(&t, pos);
                same = k < n_want && want[k] == pos;
            }
            n_case++;
            n_ok += same && k == n_want;
            if (!same)
                print_error("%s: word %zu of '%.*s'\n", row->name, k, (int)n, text);
        }
        pcre2_match_data_free(data);
        pcre2_code_free(re);
    }
    printf("split: %zu/%zu\n", n_ok, n_case);
    assert_int_equal(n_ok, n_case);
}
#endif

static void invalid_text(void **state)
{
    const uint8_t *class = classes();
    (void)state;
    for (int round = 0; round < 20000; round++) {
        char text[40];
        const size_t n = 1 + rnd(sizeof text);
        for (size_t i = 0; i < n; i++)
            text[i] = rnd(3) ? (char)rnd(256) : "' a1\n"[rnd(5)];
        char *exact = test_malloc(n); /* a read past the end is seen */
        memcpy(exact, text, n);
        struct split_text t = {.class = class, .text = exact, .bytes = n};
        const struct split_row *row = &split_rows[rnd((uint32_t)split_n_row)];
        for (size_t pos = 0, end; pos < n; pos = end) {
            end = row->next(&t, pos);
            assert_true(end > pos && end <= n);
        }
        test_free(exact);
    }
}

static void names(void **state)
{
    (void)state;
    for (int i = 0; i < split_n_row; i++)
        assert_ptr_equal(split_find(split_rows[i].name, strlen(split_rows[i].name)),
                         &split_rows[i]);
    assert_null(split_find("qwen", 4));
    assert_null(split_find("", 0));
    assert_string_equal(split_nearest("qwen3"), "qwen2");
    assert_null(split_nearest("nothing like it"));
}

static void scan(void **state)
{
    size_t len;
    uint32_t point;
    char buf[4];
    (void)state;
    for (uint32_t p = 0; p < 0x110000; p++) {
        const size_t n = unicode_put(p, buf);
        const bool surrogate = p >= 0xD800 && p < 0xE000;
        assert_int_equal(unicode_scan(buf, n, &len, &point), UNICODE_VALID);
        assert_true(len == n && point == (surrogate ? 0xFFFD : p));
        for (size_t cut = 1; cut < n && p % 61 == 0; cut++) {
            char *exact = test_malloc(cut); /* a read past the end is seen */
            memcpy(exact, buf, cut);
            assert_true(unicode_scan(exact, cut, &len, &point) == UNICODE_CUT && len == cut);
            test_free(exact);
        }
    }
    for (int round = 0; round < 2000000; round++) { /* as base/utf8.h sees it */
        for (int i = 0; i < 4; i++)
            buf[i] = (char)(rnd(4) ? 0x80 + rnd(128) : rnd(256));
        const size_t n = 1 + rnd(4), want = utf8_sequence(buf, n);
        const enum unicode_scan got = unicode_scan(buf, n, &len, &point);
        assert_true((got == UNICODE_VALID) == (want > 0));
        assert_true(len >= 1 && len <= n && (!want || len == want));
    }
}

/* What lies past the table has no class of its own. */
static void class_table(void **state)
{
    const uint8_t *class = classes();
    (void)state;
    for (int32_t p = UNICODE_N_CLASSED; p < 0x110000; p++) {
        utf8proc_category_t c = utf8proc_category(p);
        assert_true(c == UTF8PROC_CATEGORY_CN || c == UTF8PROC_CATEGORY_CO ||
                    c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_MN);
    }
    assert_true(class['a'] == UNICODE_LETTER && class['1'] == UNICODE_NUMBER &&
                class[' '] == UNICODE_SPACE && class['!'] == UNICODE_OTHER &&
                class[0x20000] == UNICODE_LETTER && class[0x180E] == UNICODE_OTHER &&
                class[0x3000] == UNICODE_SPACE && class[0x94D] == UNICODE_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef HAVE_pcre2
        cmocka_unit_test(against_pcre),
#endif
        cmocka_unit_test(invalid_text), cmocka_unit_test(names),
        cmocka_unit_test(scan),         cmocka_unit_test(class_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
