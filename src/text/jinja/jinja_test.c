/* Templates against jinja2: small cases of every part of the language, whole templates over
 * recorded conversations, refusals with line and column, hostile templates, failing memory.
 * Given a file of cases as argument, runs that alone. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include <jansson.h>

#include "fault_loop.h"
#include "text/template.h"

static sinter_host *host;

static int setup(void **state)
{
    (void)state;
    return sinter_host_create(NULL, &host, NULL) != SINTER_OK;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(host_usage(host).n_live, 0);
    sinter_host_free(host);
    return 0;
}

/* ---- Cases recorded from jinja2 ----------------------------------------------------------- */

struct tally {
    int n, ok, skipped, refused;
};

static int64_t clock_of(const char *now)
{
    struct tm tm = {0};
    if (!now || !strptime(now, "%Y-%m-%dT%H:%M:%S", &tm))
        return 0;
    return (int64_t)timegm(&tm);
}

static char *read_text(const char *path, size_t *bytes)
{
    char *text = NULL;
    if (access(path, R_OK) != 0)
        return NULL;
    if (host_read_file(host, path, 64 << 20, &text, bytes, NULL) != SINTER_OK)
        fail_msg("cannot read %s", path);
    return text;
}

/* The template's file: beside the cases, or in the shared folder; NULL if it is not there. */
static char *template_file(const char *name, size_t *bytes)
{
    char path[1024];
    char *text;
    snprintf(path, sizeof path, "%s/tests/golden/templates/%s", TEST_SOURCE_DIR, name);
    text = read_text(path, bytes);
    if (text)
        return text;
    snprintf(path, sizeof path, "%s/templates/%s", TEST_SHARED_DIR, name);
    return read_text(path, bytes);
}

static bool judge(const json_t *c, sinter_status status, const sinter_error *err,
                  const struct text_buf *b)
{
    const json_t *text = json_object_get(c, "text");
    const char *error = json_string_value(json_object_get(c, "error"));
    if (text && status == SINTER_OK)
        return json_string_length(text) == b->bytes &&
               (!b->bytes || !memcmp(json_string_value(text), b->text, b->bytes));
    if (text || status == SINTER_OK)
        return false;
    if (!strstr(err->message, "line ") || !strstr(err->message, "column "))
        return false;
    return error ? strstr(err->message, error) != NULL : true;
}

static void complain(const json_t *c, sinter_status status, const sinter_error *err,
                     const struct text_buf *b)
{
    char *vars = json_dumps(json_object_get(c, "vars"), JSON_ENCODE_ANY);
    const char *text = json_string_value(json_object_get(c, "text"));
    const char *source = json_string_value(json_object_get(c, "source"));
    const char *name = json_string_value(json_object_get(c, "name"));
    const char *file = json_string_value(json_object_get(c, "template"));
    if (source)
        fprintf(stderr, "CASE %s\n", source);
    else
        fprintf(stderr, "CASE %s: %s\n", file, name ? name : "");
    if (source)
        fprintf(stderr, "  vars %s\n", vars ? vars : "");
    fprintf(stderr, "  want %s%s\n", text ? "" : "(an error) ",
            text ? text : json_string_value(json_object_get(c, "fails")));
    fprintf(stderr, "  have %s\n", status == SINTER_OK ? (b->text ? b->text : "") : err->message);
    free(vars);
}

static void run_case(const json_t *c, struct tally *t)
{
    const char *source = json_string_value(json_object_get(c, "source"));
    const char *file = json_string_value(json_object_get(c, "template"));
    char *own = NULL, *vars = json_dumps(json_object_get(c, "vars"), JSON_ENCODE_ANY);
    size_t bytes = source ? json_string_length(json_object_get(c, "source")) : 0;
    struct chat_template *template = NULL;
    sinter_error err = {0};
    struct text_buf b;
    sinter_status status;
    if (!source)
        source = own = template_file(file, &bytes);
    if (!source) {
        t->skipped++;
        free(vars);
        return;
    }
    t->n++;
    text_buf_init(&b, host);
    status = template_compile(host, source, bytes, &template, &err);
    if (status == SINTER_OK)
        status =
            template_render(template, vars ? vars : "{}", strlen(vars ? vars : "{}"),
                            clock_of(json_string_value(json_object_get(c, "now"))), NULL, &b, &err);
    if (judge(c, status, &err, &b))
        t->ok++;
    else
        complain(c, status, &err, &b);
    t->refused += status == SINTER_E_UNSUPPORTED;
    text_buf_free(&b);
    template_free(template);
    host_free(host, own);
    free(vars);
}

static struct tally run_file(const char *path)
{
    struct tally t = {0, 0, 0, 0};
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    if (!f)
        fail_msg("cannot open %s", path);
    while ((n = getline(&line, &cap, f)) > 0) {
        json_error_t e;
        json_t *c = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, &e);
        if (!c)
            fail_msg("%s: %s in %.200s", path, e.text, line);
        run_case(c, &t);
        json_decref(c);
    }
    free(line);
    fclose(f);
    return t;
}

static void test_cases(void **state)
{
    struct tally t = run_file(TEST_SOURCE_DIR "/tests/templates/jinja_cases.jsonl");
    (void)state;
    printf("jinja cases: %d/%d\n", t.ok, t.n);
    assert_int_equal(t.ok, t.n);
    assert_true(t.n >= 300);
}

static void test_templates(void **state)
{
    struct tally t = run_file(TEST_SOURCE_DIR "/tests/golden/templates/cases.jsonl");
    (void)state;
    if (t.skipped)
        printf("templates: SKIPPED %d cases whose templates are not here\n", t.skipped);
    printf("templates: %d/%d\n", t.ok, t.n);
    assert_int_equal(t.ok, t.n);
    assert_true(t.n + t.skipped >= 300);
}

/* ---- Refusals ----------------------------------------------------------------------------- */

static sinter_status render(const char *source, const char *vars,
                            const struct template_limits *limits, struct text_buf *b,
                            sinter_error *err)
{
    struct chat_template *t;
    sinter_status status = template_compile(host, source, strlen(source), &t, err);
    if (status != SINTER_OK)
        return status;
    status = template_render(t, vars, strlen(vars), 1, limits, b, err);
    template_free(t);
    return status;
}

static void expect(const char *source, const char *vars, sinter_status want, const char *message)
{
    sinter_error err = {0};
    struct text_buf b;
    text_buf_init(&b, host);
    const sinter_status status = render(source, vars, NULL, &b, &err);
    if (status != want || (want != SINTER_OK && !strstr(err.message, message)))
        fail_msg("%s\n  gives %d %s\n  not %d %s", source, status,
                 status == SINTER_OK ? b.text : err.message, want, message);
    if (want == SINTER_OK)
        assert_string_equal(b.text ? b.text : "", message);
    text_buf_free(&b);
}

/* What jinja2 can and sinter cannot: refused when compiling, at its place. */
static const struct {
    const char *source, *place;
} lacking[] = {
    {"a\n {% include 'x' %}", "line 2, column 5:"},
    {"{% extends 'x' %}", "line 1, column 4:"},
    {"{% import 'x' as y %}", "line 1, column 4:"},
    {"{% from 'x' import y %}", "line 1, column 4:"},
    {"{% block a %}{% endblock %}", "line 1, column 4:"},
    {"{% autoescape true %}{% endautoescape %}", "line 1, column 4:"},
    {"é{% for x in y recursive %}{% endfor %}", "line 1, column 16:"},
    {"{{ f(*a) }}", "line 1, column 6:"},
    {"{{ f(**a) }}", "line 1, column 6:"},
    {"{{ x|urlize }}", "line 1, column 6:"},
    {"{{ x|wordwrap(3) }}", "line 1, column 6:"},
    {"{{ x|random }}", "line 1, column 6:"},
    {"{{ x|pprint }}", "line 1, column 6:"},
    {"{{ x|map('urlencode')|list }}", "line 1, column 10:"},
    {"{{ x|striptags }}", "line 1, column 6:"},
    {"{{ x|xmlattr }}", "line 1, column 6:"},
    {"{{ x|filesizeformat }}", "line 1, column 6:"},
    {"{{ x.encode('utf-8') }}", "line 1, column 5:"},
    {"{{ self.x() }}", "line 1, column 4:"},
    {"{{ x[1, 2] }}", "line 1, column 7:"},
    {"{{ 'a\\N{DASH}' }}", "line 1, column 6:"},
    {"{{ '\\ud83d' }}", "line 1, column 5:"},
    {"{{ 99999999999999999999 }}", "line 1, column 4:"},
    {"{{ größe }}", "line 1, column 6:"},
    {"{% macro f(caller=1) %}{% endmacro %}", "line 1, column 12:"},
    {"{% print 1, 2 %}", "line 1, column 11:"},
};

static void test_lacking(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++)
        expect(lacking[i].source, "{}", SINTER_E_UNSUPPORTED, lacking[i].place);
    printf("jinja lacking: %zu/%zu\n", sizeof lacking / sizeof *lacking,
           sizeof lacking / sizeof *lacking);
}

/* Syntax errors are told at their place, too. */
static void test_syntax(void **state)
{
    (void)state;
    expect("a\nb {{ x", "{}", SINTER_E_DATA, "line 2, column 3:");
    expect("{% if x %}", "{}", SINTER_E_DATA, "line 1, column 11:");
    expect("{% if x %}{% endfor %}", "{}", SINTER_E_DATA,
           "line 1, column 14: unknown or misplaced");
    expect("{% nope %}", "{}", SINTER_E_DATA, "'nope'");
    expect("{{ x|nope }}", "{}", SINTER_E_DATA, "there is no filter 'nope'");
    expect("{{ x is nope }}", "{}", SINTER_E_DATA, "there is no test 'nope'");
    expect("{{ (x] }}", "{}", SINTER_E_DATA, "line 1, column 6: unexpected ']'");
    expect("{{ 'x }}", "{}", SINTER_E_DATA, "this string has no end");
    expect("{# x", "{}", SINTER_E_DATA, "no end");
    expect("{% raw %} x", "{}", SINTER_E_DATA, "no end");
    expect("{% break %}", "{}", SINTER_E_DATA, "outside of a loop");
    expect("\xff", "{}", SINTER_E_DATA, "not UTF-8");
    expect("{{ messages }}", "[]", SINTER_E_DATA, "an object is needed");
    expect("{{ x }}", "{\"x\": 1e}", SINTER_E_DATA, "JSON byte 8");
    expect("{{ x }}", "{\"x\": 99999999999999999999}", SINTER_E_UNSUPPORTED, "64 bits");
    expect("{{ x }}", "{\"x\": \"\\ud800\"}", SINTER_E_DATA, "surrogate");
    expect("{{ x }}", "{} x", SINTER_E_DATA, "something follows");
}

/* ---- Hostile ------------------------------------------------------------------------------ */

static void chain(char *to, size_t n, const char *unit, int times, const char *end)
{
    size_t at = strlen(to);
    assert_true(at + strlen(unit) * (size_t)times + strlen(end) < n);
    for (int i = 0; i < times; i++, at += strlen(unit))
        memcpy(to + at, unit, strlen(unit));
    strcpy(to + at, end);
}

static const struct {
    const char *source;
    sinter_status status;
} hostile[] = {
    {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
     SINTER_E_LIMIT},
    {"{% for a in range(99999) %}{{ 'x' * 9999 }}{% endfor %}", SINTER_E_LIMIT},
    {"{{ 'x' * 99999999999 }}", SINTER_E_LIMIT},
    {"{{ [0] * 99999999999 }}", SINTER_E_LIMIT},
    {"{{ 2 ** 62 * 4 }}", SINTER_E_UNSUPPORTED},
    {"{{ range(100001) }}", SINTER_E_LIMIT},
    {"{{ range(0, 9223372036854775807, 1) }}", SINTER_E_LIMIT},
    {"{{ range(-9223372036854775807, 9223372036854775807) }}", SINTER_E_LIMIT},
    {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", SINTER_E_LIMIT},
    {"{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}"
     "{% endfor %}",
     SINTER_E_LIMIT},
    {"{% set ns = namespace(x=[]) %}{% for i in range(2000) %}{% set ns.x = [ns.x] %}{% endfor %}"
     "{{ ns.x }}",
     SINTER_E_LIMIT},
    {"{% set ns = namespace(x=[]) %}{% for i in range(2000) %}{% set ns.x = [ns.x] %}{% endfor %}"
     "{{ ns.x|tojson }}",
     SINTER_E_LIMIT},
    {"{% set ns = namespace(x=[], y=[]) %}{% for i in range(2000) %}{% set ns.x = [ns.x] %}"
     "{% set ns.y = [ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
     SINTER_E_LIMIT},
    {"{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}"
     "{% endfor %}{{ ns.x }}",
     SINTER_E_LIMIT},
    {"{{ 'x'.center(99999999999) }}", SINTER_E_LIMIT},
    {"{{ '%9999999999d' % 1 }}", SINTER_E_UNSUPPORTED},
    {"{{ ('a' * 99999).replace('', 'b' * 9999) }}", SINTER_E_LIMIT},
    {"{{ ('a,' * 9999999).split(',')|length }}", SINTER_E_LIMIT},
    {"{{ ('a' * 9999999)|list|length }}", SINTER_E_LIMIT},
    {"{{ [1]|batch(99999999999, 0)|list }}", SINTER_E_LIMIT},
    {"{{ [1]|slice(99999999999)|list }}", SINTER_E_LIMIT},
    {"{{ 'a\\nb'|indent(99999999999) }}", SINTER_E_LIMIT},
    {"{{ x|tojson(indent=99999999999) }}", SINTER_E_LIMIT},
    {"{{ ''.__class__.__mro__ }}", SINTER_E_DATA},
    {"{{ ''.__class__() }}", SINTER_E_DATA},
    {"{{ ''['__class__']['__mro__'] }}", SINTER_E_DATA},
    {"{{ (''|attr('__class__')).__mro__ }}", SINTER_E_DATA},
    {"{{ [''.__class__]|map(attribute='__mro__')|list }}", SINTER_E_DATA},
    {"{{ '{0.__class__}'.format('') }}", SINTER_E_UNSUPPORTED},
    {"{{ [].append(1) }}", SINTER_E_DATA},
    {"{{ {}.update({}) }}", SINTER_E_DATA},
    {"{{ {}.pop('x') }}", SINTER_E_DATA},
    {"{{ raise_exception('no') }}", SINTER_E_DATA},
    {"{{ raise_exception.__globals__.x }}", SINTER_E_DATA},
    {"{{ namespace.__init__.x }}", SINTER_E_DATA},
};

static void test_hostile(void **state)
{
    const int n = (int)(sizeof hostile / sizeof *hostile);
    int ok = 0;
    (void)state;
    for (int i = 0; i < n; i++) {
        const struct template_limits limits = {
            .n_step = 3000000, .memory_bytes = (size_t)64 << 20, .output_bytes = (size_t)8 << 20};
        sinter_error err = {0};
        struct text_buf b;
        text_buf_init(&b, host);
        const sinter_status status = render(hostile[i].source, "{\"x\": [1]}", &limits, &b, &err);
        ok += status == hostile[i].status && b.bytes == 0;
        if (status != hostile[i].status)
            fprintf(stderr, "HOSTILE %s gives %d: %s\n", hostile[i].source, status, err.message);
        text_buf_free(&b);
    }
    printf("jinja hostile: %d/%d\n", ok, n);
    assert_int_equal(ok, n);
}

/* Renders the text, frees it, and wants this status of it. */
static void gives(char *text, const char *unit, int times, sinter_status want)
{
    sinter_error err = {0};
    struct text_buf b;
    text_buf_init(&b, host);
    const sinter_status status = render(text, "{\"x\": {}}", NULL, &b, &err);
    if (status != want)
        fail_msg("%d times %s gives %d: %s", times, unit, status, err.message);
    text_buf_free(&b);
    free(text);
}

static void nested(const char *open, const char *middle, const char *close, int times,
                   sinter_status want)
{
    const size_t n = 4u << 20;
    char *text = calloc(n, 1);
    chain(text, n, open, times, middle);
    chain(text, n, close, times, "");
    gives(text, open, times, want);
}

static void test_nesting(void **state)
{
    (void)state;
    nested("{% if true %}", "x", "{% endif %}", 90, SINTER_OK);
    nested("{% if true %}", "x", "{% endif %}", 5000, SINTER_E_LIMIT);
    nested("{% for x in [1] %}", "x", "{% endfor %}", 90, SINTER_OK);
    nested("{% for x in [1] %}", "x", "{% endfor %}", 5000, SINTER_E_LIMIT);
    nested("{% macro f() %}", "x", "{% endmacro %}", 90, SINTER_OK);
    nested("{% set x %}", "x", "{% endset %}", 90, SINTER_OK);
    nested("{{ ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((("
           "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((",
           "x", "", 1, SINTER_E_LIMIT);
    nested("{{ 1", "", "+ 1", 1, SINTER_E_DATA);
    nested("", "{{ 1", "", 1, SINTER_E_DATA);
    nested("", "{{ 1 ", "+ 1 ", 300, SINTER_E_DATA); /* no end */
}

static void deep_expression(const char *start, const char *unit, int times, const char *end,
                            sinter_status want)
{
    const size_t n = 900000;
    char *text = calloc(n, 1);
    chain(text, n, start, 1, "");
    chain(text, n, unit, times, end);
    gives(text, unit, times, want);
}

static void test_deep_expressions(void **state)
{
    (void)state;
    deep_expression("{{ 1", " + 1", 300, " }}", SINTER_OK);
    deep_expression("{{ 1", " + 1", 100000, " }}", SINTER_E_LIMIT);
    deep_expression("{{ 1", "|abs", 300, " }}", SINTER_OK);
    deep_expression("{{ 1", "|abs", 100000, " }}", SINTER_E_LIMIT);
    deep_expression("{{ 1", " ~ 1", 100000, " }}", SINTER_OK);
    deep_expression("{{ x", ".x", 100000, " }}", SINTER_E_LIMIT);
    deep_expression("{{ ", "not ", 100000, "x }}", SINTER_E_LIMIT);
    deep_expression("{{ ", "- ", 100000, "1 }}", SINTER_E_LIMIT);
    deep_expression("{{ 1", " if x else 1", 50000, " }}", SINTER_E_LIMIT);
    deep_expression("{{ [", "[", 100000, " }}", SINTER_E_LIMIT);
    deep_expression("{{ x", " and x", 100000, " }}", SINTER_E_LIMIT);
    deep_expression("{% if x %}", "{% elif x %}", 50000, "{% endif %}", SINTER_OK);
    deep_expression("", "{{ a }}{# c #}{% set b = 1 %}", 20000, "", SINTER_OK);
}

static void test_deep_json(void **state)
{
    const size_t n = 200000;
    char *text = malloc(n + 64);
    sinter_error err = {0};
    struct text_buf b;
    (void)state;
    memcpy(text, "{\"x\":", 5);
    memset(text + 5, '[', n);
    text[5 + n] = 0;
    text_buf_init(&b, host);
    assert_int_equal(render("{{ x }}", text, NULL, &b, &err), SINTER_E_LIMIT);
    text_buf_free(&b);
    free(text);
}

/* ---- Contract ----------------------------------------------------------------------------- */

static void test_contract(void **state)
{
    static const char source[] = "{% set a = 1 %}{% for m in messages %}{{ m.x }}{% endfor %}"
                                 "{% if enable_thinking is defined %}{% endif %}{{ tools }}";
    static const char good[] = "{\"messages\":[{\"x\":1}],\"tools\":2}";
    static const char bad[] = "{\"messages\":[{\"x\":1},null,{}],\"tools\":";
    struct chat_template *t;
    sinter_error err;
    struct text_buf b;
    (void)state;
    assert_int_equal(template_compile(host, source, strlen(source), &t, &err), SINTER_OK);
    /* The text is added; a failure adds nothing. */
    text_buf_init(&b, host);
    text_buf_add(&b, "<", 1);
    assert_int_equal(template_render(t, good, strlen(good), 1, NULL, &b, &err), SINTER_OK);
    assert_string_equal(b.text, "<12");
    assert_int_equal(template_render(t, bad, strlen(bad), 1, NULL, &b, &err), SINTER_E_DATA);
    assert_string_equal(b.text, "<12");
    text_buf_free(&b);
    template_free(t);
    template_free(NULL);
    assert_int_equal(template_compile(host, source, (size_t)TEMPLATE_MAX_BYTES + 1, &t, &err),
                     SINTER_E_LIMIT);
    expect("{{ strftime_now('%Y') }}", "{}", SINTER_OK, "1970");
}

/* ---- Failing memory ----------------------------------------------------------------------- */

static const char faulty[] =
    "{% macro f(a, b='x' ~ 1) %}{{ a }}{{ caller() }}{{ b|upper }}{% endmacro %}"
    "{% set ns = namespace(n=0, t='') %}"
    "{% for m in messages if m.role != 'x' %}{% set ns.n = ns.n + 1 %}"
    "{% set c %}{{ m.content|trim|replace('a', 'bb') }}{% endset %}"
    "{{ loop.index }}{{ c.split('b')|join('-') }}{{ m|tojson(indent=1) }}{{ m|dictsort }}"
    "{% call f(m.role) %}{{ m.items()|list }}{% endcall %}"
    "{% filter upper %}{{ '%s %d' % (c, 3) }}{{ '{}'.format(c) }}{% endfilter %}{% endfor %}"
    "{{ messages|map(attribute='role')|sort|unique|list }}{{ messages|groupby('role') }}"
    "{{ strftime_now('%d %b %Y') }}{{ [1.5, 'a', none, (1,), {}] }}{{ 'x\ty'|e }}"
    "{% generation %}{{ ns.t }}{% endgeneration %}{{ {'a': 1, 'b': 2} }}{{ 'a\nb'|indent }}";
static const char faulty_vars[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \" a b a \"}, {\"role\": \"assistant\","
    "\"content\": \"b\\u00e9\", \"k1\": 1, \"k2\": 2, \"k3\": [], \"k4\": {}, \"k5\": 5.5,"
    "\"k6\": true, \"k7\": null, \"k8\": -1}]}";

static sinter_status render_faulty(sinter_host *faulty_host, void *ctx, sinter_error *err)
{
    struct chat_template *t = NULL;
    struct text_buf b;
    (void)ctx;
    text_buf_init(&b, faulty_host);
    sinter_status status = template_compile(faulty_host, faulty, strlen(faulty), &t, err);
    if (status == SINTER_OK)
        status = template_render(t, faulty_vars, strlen(faulty_vars), 1, NULL, &b, err);
    if (status == SINTER_OK)
        status = text_buf_end(&b, err);
    text_buf_free(&b);
    template_free(t);
    return status;
}

static void test_faults(void **state)
{
    (void)state;
    assert_true(fault_loop_host("jinja", &(struct fault){0}, FAULT_ALLOC, render_faulty, NULL) >
                20);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_templates),
        cmocka_unit_test(test_lacking),
        cmocka_unit_test(test_syntax),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_deep_expressions),
        cmocka_unit_test(test_deep_json),
        cmocka_unit_test(test_contract),
        cmocka_unit_test(test_faults),
    };
    if (argc > 1) {
        struct tally t;
        setup(NULL);
        t = run_file(argv[1]);
        printf("cases: %d/%d, %d refused as unsupported, %d skipped\n", t.ok, t.n, t.refused,
               t.skipped);
        teardown(NULL);
        return t.ok != t.n;
    }
    return cmocka_run_group_tests(tests, setup, teardown);
}
