/* For tests of this folder: a backend's list made by hand, tables and matches that must succeed,
 * and small graphs op by op. */
#ifndef FUSE_MOCK_H
#define FUSE_MOCK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fuse/stats.h"

enum { MAX_LINE = 96 };
struct mock {
    struct fuse_line line[MAX_LINE];
    struct fuse_list list;
};

static inline void mock_add(struct mock *m, const char *row)
{
    assert_true(m->list.n_line < MAX_LINE);
    m->line[m->list.n_line++] = (struct fuse_line){.row = row, .bits = BITS_SAME};
    m->list.line = m->line;
    m->list.backend = "mock";
}

static inline void mock_singles(struct mock *m)
{
    for (enum op op = OP_NONE + 1; op < OP_N; op++)
        mock_add(m, op_row(op)->name);
}

static inline sinter_host *host_of(void)
{
    sinter_host *host;
    sinter_error err;
    assert_int_equal(sinter_host_create(NULL, &host, &err), SINTER_OK);
    return host;
}

static inline struct fuse_table *table_of(sinter_host *host, const struct mock *m)
{
    struct fuse_table *t;
    sinter_error err;
    if (fuse_table_create(host, &m->list, &t, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    return t;
}

static const struct fuse_options all_on = {.fusion = true};

static inline struct fuse_result *match(sinter_host *host, const struct fuse_table *t,
                                        const struct graph *g, const struct fuse_key *key,
                                        const struct fuse_options *o)
{
    struct fuse_result *r;
    sinter_error err;
    if (fuse_match(host, t, g, key, o ? o : &all_on, NULL, 0, true, &r, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    return r;
}

/* Each node in exactly one group, ends as defined. */
static inline void check_result(const struct graph *g, const struct fuse_result *r)
{
    int seen = 0;
    for (int i = 0; i < r->n_group; i++) {
        assert_int_equal(r->group[i].id, i);
        assert_non_null(r->group[i].line);
        for (int k = 0; k < r->group[i].n_node; k++, seen++)
            assert_int_equal(r->group_of[r->group[i].node[k]], i);
        for (int o = 0; o < r->group[i].n_out; o++)
            assert_int_equal(r->group_of[g->value[r->group[i].out[o]].node], i);
    }
    assert_int_equal(seen, g->n_node);
    int order[512];
    sinter_error err;
    assert_true(r->n_group <= 512);
    if (fuse_order(r, g, 0, order, &err) != SINTER_OK)
        fail_msg("%s", err.message);
}

static inline int op2(struct graph *g, const char *name, enum op op, int a, int b)
{
    return graph_add(g, name, op, ATTR_NONE, b >= 0 ? 2 : 1, (int[]){a, b});
}

static inline int embed(struct graph *g, const char *name, int tensor, int ids)
{
    char w[32];
    snprintf(w, sizeof w, "%s.w", name);
    int e = graph_weight(g, w, (struct weight_slice){tensor, 0, 9, 9, 1, 1, 0, 0}, QUANT_F32, 9, 8);
    return op2(g, name, OP_EMBED, e, ids);
}

static inline struct fuse_result *match_rows(sinter_host *host, const struct fuse_row *rows,
                                             int n_row, struct mock *m, struct fuse_table **t,
                                             struct graph *g)
{
    sinter_error err;
    if (graph_finish(g, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    *m = (struct mock){0};
    for (int i = 0; i < n_row; i++)
        mock_add(m, rows[i].name);
    mock_singles(m);
    assert_int_equal(fuse_table_create_rows(host, rows, n_row, &m->list, t, &err), SINTER_OK);
    struct fuse_key key = {1, 1, 1, 1};
    struct fuse_result *r = match(host, *t, g, &key, NULL);
    check_result(g, r);
    return r;
}

static inline int n_why(const struct fuse_result *r, enum fuse_why why)
{
    int n = 0;
    for (int i = 0; i < r->n_note; i++)
        n += r->note[i].why == why;
    return n;
}

#endif
