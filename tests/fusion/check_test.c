/* `sinter fusion check` against the committed baselines: each damage to a baseline makes it fail,
 * and each label that a baseline counts is missed when it is switched off. That it passes with all
 * dummies: tests/models/fusion_check_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sinter.h"
#include "temp_folder.h"

enum { MAX_TEXT = 1 << 20, MAX_LABEL = 64 };

/* What a check printed. */
struct output {
    char text[1 << 16];
    size_t bytes;
};

static bool keep(void *ctx, const char *text, size_t bytes)
{
    struct output *o = ctx;
    size_t room = sizeof o->text - 1 - o->bytes, n = bytes < room ? bytes : room;
    memcpy(o->text + o->bytes, text, n);
    o->text[o->bytes += n] = 0;
    return true;
}

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, MAX_TEXT);
    assert_non_null(f);
    assert_non_null(text);
    assert_true(fread(text, 1, MAX_TEXT - 1, f) < MAX_TEXT - 1);
    fclose(f);
    return text;
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static const char *baseline_path(const char *backend)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/tests/fusion/%s.csv", TEST_SOURCE_DIR, backend);
    return path;
}

static sinter_status check(const char *backend, const char *baseline, const char *model,
                           const char *disable, struct output *out)
{
    sinter_host *host;
    sinter_error err;
    sinter_fusion_check_options o = {.size = sizeof o,
                                     .backend = backend,
                                     .baseline = baseline,
                                     .work = temp_folder(),
                                     .model = model};
    out->bytes = 0;
    out->text[0] = 0;
    assert_int_equal(sinter_host_create(NULL, &host, &err), SINTER_OK);
    assert_int_equal(sinter_host_set(host, "disable", disable, &err), SINTER_OK);
    sinter_status status = sinter_fusion_check(host, &o, keep, out, &err);
    sinter_host_free(host);
    return status;
}

static struct output out;

/* ---- Damaged baselines, with one small dummy. ---- */

#define DUMMY "llama-f32"

static int n_seen, n_damage;

/* The baseline `text` must make the check fail and say `expect`. */
static void must_fail(const char *what, const char *text, const char *expect)
{
    char path[TEMP_PATH];
    temp_path("damaged.csv", path);
    write_text(path, text);
    sinter_status status = check("cpu", path, DUMMY, "", &out);
    bool ok = status == SINTER_E_DATA && strstr(out.text, expect);
    if (!ok)
        print_message("%s: status %d, said\n%s", what, (int)status, out.text);
    n_seen += ok;
    n_damage++;
}

/* Puts `with` where `from` stands, for `cut` bytes. */
static void change(const char *what, const char *base, const char *from, size_t cut,
                   const char *with, const char *expect)
{
    assert_non_null(from);
    char *text = calloc(1, MAX_TEXT);
    size_t at = (size_t)(from - base);
    memcpy(text, base, at);
    strcat(text, with);
    strcat(text, from + cut);
    must_fail(what, text, expect);
    free(text);
}

static void damaged(void **state)
{
    (void)state;
    char *base = read_text(baseline_path("cpu")), row[256];
    const char *first = strstr(base, "\n" DUMMY ",");
    assert_non_null(first);
    first++;
    size_t n = strcspn(first, "\n") + 1;
    assert_true(n < sizeof row);
    snprintf(row, sizeof row, "%.*s", (int)n, first);
    assert_int_equal(check("cpu", baseline_path("cpu"), DUMMY, "", &out), SINTER_OK);
    change("row missing", base, first, n, "", "not in the baseline");
    change("row twice", base, first, 0, row, "did not happen");
    change("other count", base, first + n - 2, 1, "x", "not in the baseline");
    change("unknown label", base, first, 0, DUMMY ",ADD+SUB,decode,1\n", "did not happen");
    change("unknown mode", base, first, 0, DUMMY ",MATMUL*2,slow,1\n", "did not happen");
    change("unknown model", base, first, 0, "gpt-0,MATMUL*2,decode,1\n", "did not happen");
    change("no row at all", base, first, 0, "nonsense\n", "did not happen");
    change("model gone", base, strstr(base, " " DUMMY), strlen(" " DUMMY), "", "universe");
    change("model new", base, strstr(base, "; labels"), 0, " gpt-0", "universe");
    change("label gone", base, strstr(base, "; labels") + 8, 1, " A+B ", "universe");
    change("mode new", base, strstr(base, "; modes"), 7, "; modes slow", "universe");
    change("no header", base, base, strcspn(base, "\n"), "", "universe");
    must_fail("empty", "", "universe");
    print_message("damages seen: %d/%d\n", n_seen, n_damage);
    assert_int_equal(n_seen, n_damage);
    assert_int_equal(check("cpu", "/nonexistent.csv", DUMMY, "", &out), SINTER_E_NOT_FOUND);
    free(base);
}

/* ---- Labels ---- */

struct label {
    char text[128], model[64];
};

/* The labels that the baseline counts, each with a dummy that has it; small ones (F32) first. */
static int labels_of(char *base, struct label *label)
{
    int n = 0;
    char *save = NULL;
    for (char *t = strtok_r(base, "\n", &save); t; t = strtok_r(NULL, "\n", &save)) {
        char model[64], text[128];
        int k = 0;
        if (t[0] == '#' || strncmp(t, "model,", 6) == 0)
            continue;
        assert_int_equal(sscanf(t, "%63[^,],%127[^,],", model, text), 2);
        while (k < n && strcmp(label[k].text, text) != 0)
            k++;
        bool small = strstr(model, "-f32") != NULL;
        if (k < n && (!small || strstr(label[k].model, "-f32")))
            continue;
        assert_true(k < MAX_LABEL);
        snprintf(label[k].text, sizeof label[k].text, "%s", text);
        snprintf(label[k].model, sizeof label[k].model, "%s", model);
        n += k == n;
    }
    return n;
}

static void labels(void **state)
{
    (void)state;
    static struct label label[MAX_LABEL];
    int n_ok = 0, n_all = 0;
    static const char *const backends[] = {"cpu", "ref"};
    for (int b = 0; b < 2; b++) {
        char *base = read_text(baseline_path(backends[b]));
        int n = labels_of(base, label);
        for (int i = 0; i < n; i++, n_all++) {
            sinter_status status =
                check(backends[b], baseline_path(backends[b]), label[i].model, label[i].text, &out);
            bool ok = status == SINTER_E_DATA && strstr(out.text, "did not happen");
            if (!ok)
                print_message("%s without %s on %s: status %d\n%s", backends[b], label[i].text,
                              label[i].model, (int)status, out.text);
            n_ok += ok;
        }
        free(base);
    }
    print_message("labels: %d/%d\n", n_ok, n_all);
    assert_true(n_all >= 10);
    assert_int_equal(n_ok, n_all);
}

/* ---- What cannot be checked ---- */

static void failures(void **state)
{
    (void)state;
    char path[TEMP_PATH];
    sinter_host *host;
    sinter_error err;
    temp_path("broken.gguf", path);
    write_text(path, "GGUF");
    assert_int_equal(check("cpu", baseline_path("cpu"), path, "", &out), SINTER_E_DATA);
    assert_non_null(strstr(out.text, "FAIL"));
    assert_int_equal(check("cpu", baseline_path("cpu"), "/nonexistent.gguf", "", &out),
                     SINTER_E_NOT_FOUND);
    assert_int_equal(check("cpu", baseline_path("cpu"), DUMMY, "MATMUL*9", &out), SINTER_E_USAGE);
    assert_int_equal(check("abacus", baseline_path("cpu"), NULL, "", &out), SINTER_E_DEVICE);
    /* a baseline of one model would lose the others */
    assert_int_equal(sinter_host_create(NULL, &host, &err), SINTER_OK);
    sinter_fusion_check_options o = {.size = sizeof o,
                                     .backend = "cpu",
                                     .baseline = path,
                                     .record = true,
                                     .work = temp_folder(),
                                     .model = DUMMY};
    assert_int_equal(sinter_fusion_check(host, &o, keep, &out, &err), SINTER_E_USAGE);
    sinter_host_free(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged),
        cmocka_unit_test(labels),
        cmocka_unit_test(failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
