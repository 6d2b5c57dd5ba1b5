/* Can the generated tests of the fusion table fail? With each row switched off (all its labels
 * disabled) the tests of each of its lines must fail, and with each need ignored those of its
 * label. Function calls in one process: one mutation is one run of the tests of one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fusion/lines.h"

struct count {
    int n_caught, n_all;
};

static void caught(struct count *c, bool is, const char *backend, const char *what)
{
    c->n_all++;
    c->n_caught += is;
    if (!is)
        print_message("%s: no generated test fails with %s\n", backend, what);
}

/* The generated tests of one line, matching only: without the mutation they pass. */
static bool fails(const struct native_kind *kind, sinter_host *host, const struct fuse_line *line,
                  const char *disable, const char *ignore_need)
{
    struct lines l = {.host = host,
                      .kind = kind,
                      .level = kind->name,
                      .quiet = disable || ignore_need,
                      .disable = disable,
                      .ignore_need = ignore_need};
    lines_line(&l, line);
    assert_true(l.n_all > 0);
    return l.n_ok < l.n_all;
}

/* Every label of the row, comma separated. */
static void labels_of(const struct fuse_table *t, const struct fuse_row *row, char text[512])
{
    text[0] = 0;
    for (int v = 0; v < t->n_single; v++)
        if (t->variant[v].row == row) {
            assert_true(strlen(text) + strlen(t->variant[v].label) + 2 < 512);
            strcat(strcat(text, text[0] ? "," : ""), t->variant[v].label);
        }
}

static void mutate_rows(const struct native_kind *kind, sinter_host *host,
                        const struct fuse_table *t, struct count *count)
{
    for (int r = 0; r < fuse_n_row; r++) {
        char labels[512];
        bool has_line = false, all = true;
        labels_of(t, &fuse_rows[r], labels);
        for (int l = 0; l < kind->list->n_line; l++)
            if (strcmp(kind->list->line[l].row, fuse_rows[r].name) == 0) {
                has_line = true;
                all &= fails(kind, host, &kind->list->line[l], labels, NULL);
            }
        if (has_line)
            caught(count, all, kind->name, labels);
    }
}

static void mutate_needs(const struct native_kind *kind, sinter_host *host,
                         const struct fuse_table *t, const struct fuse_line *line, int first, int n,
                         struct count *count)
{
    for (int v = first; v < first + n; v++) {
        struct need need[12];
        for (int i = 0, n_need = generate_all_needs(&t->variant[v], line, need); i < n_need; i++) {
            char name[256];
            if (!generate_speaks(&t->variant[v], &need[i]))
                continue; /* says nothing there */
            lines_need_name(host, &t->variant[v], &need[i], name);
            caught(count, fails(kind, host, line, NULL, name), kind->name, name);
        }
    }
}

static void mutations(void **state)
{
    (void)state;
    const struct native_kind *kinds[] = {cpu_kind(CPU_C), &ref_kind};
    struct count rows = {0}, needs = {0};
    for (int k = 0; k < 2; k++) {
        sinter_host *host = lines_host();
        const struct fuse_list *list = kinds[k]->list;
        struct fuse_table *t;
        sinter_error err;
        assert_int_equal(fuse_table_create(host, list, &t, &err), SINTER_OK);
        for (int l = 0; l < list->n_line; l++) {
            if (!lines_is_fusion(&list->line[l]))
                continue;
            assert_false(fails(kinds[k], host, &list->line[l], NULL, NULL));
            mutate_needs(kinds[k], host, t, &list->line[l], t->of_line[l].first, t->of_line[l].n,
                         &needs);
        }
        mutate_rows(kinds[k], host, t, &rows);
        fuse_table_free(t);
        sinter_host_free(host);
    }
    print_message("rows %d/%d needs %d/%d caught\n", rows.n_caught, rows.n_all, needs.n_caught,
                  needs.n_all);
    assert_true(rows.n_all > 0 && needs.n_all > 0);
    assert_int_equal(rows.n_caught, rows.n_all);
    assert_int_equal(needs.n_caught, needs.n_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mutations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
