/* Random graphs: the matcher makes the groups that a naive one makes, which tries every tuple of
 * nodes and operand order and looks for cycles in the transitive closure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "fuse/fuse_mock.h"
#include "fuse/names.h"

struct naive {
    const struct fuse_table *t;
    const struct graph *g;
    const struct fuse_key *key;
    bool edge[64][64]; /* must come before, between nodes */
    int group_of[64];  /* -1: free */
    int n_group;
    const struct fuse_variant *variant[64];
};

static int naive_value(const struct naive *n, const struct group *c, int slot, int upto)
{
    int value = -1;
    for (int j = 0; j < upto; j++) {
        const struct fuse_var_node *vn = &c->variant->node[j];
        for (int o = 0; o < vn->n_out; o++)
            if (vn->out[o] == slot)
                value = n->g->node[c->node[j]].out[o];
    }
    return value;
}

/* Contracts all groups and the candidate, and looks for a cycle in the transitive closure. */
static bool naive_acyclic(const struct naive *n, const struct group *c)
{
    static bool reach[64][64];
    int id[64], n_id = n->g->n_node;
    for (int k = 0; k < n->g->n_node; k++)
        id[k] = n->group_of[k] >= 0 ? n->group_of[k] : k;
    for (int j = 0; j < c->n_node; j++)
        id[c->node[j]] = c->node[0];
    memset(reach, 0, sizeof reach);
    for (int a = 0; a < n_id; a++)
        for (int b = 0; b < n_id; b++)
            if (n->edge[a][b] && id[a] != id[b])
                reach[id[a]][id[b]] = true;
    for (int k = 0; k < n_id; k++)
        for (int a = 0; a < n_id; a++)
            for (int b = 0; b < n_id; b++)
                reach[a][b] |= reach[a][k] && reach[k][b];
    for (int a = 0; a < n_id; a++)
        if (reach[a][a])
            return false;
    return true;
}

/* All operand orders are tried by brute force over 2^n_node swaps. */
static bool naive_bound(const struct naive *n, struct group *c, unsigned swaps)
{
    const struct fuse_variant *v = c->variant;
    for (int s = 0; s < v->n_slot; s++)
        c->value[s] = naive_value(n, c, s, v->n_node);
    for (int j = 0; j < v->n_node; j++) {
        const struct node *gn = &n->g->node[c->node[j]];
        bool swap = swaps >> j & 1;
        if (gn->n_in != v->node[j].n_in || (swap && !op_row(gn->op)->commutes))
            return false;
        for (int i = 0; i < gn->n_in; i++) {
            int have = gn->in[swap && i < 2 ? 1 - i : i], *want = &c->value[v->node[j].in[i]];
            if (*want < 0)
                *want = have;
            if (*want != have)
                return false;
        }
    }
    return true;
}

static bool naive_closed(const struct naive *n, const struct group *c)
{
    const struct fuse_variant *v = c->variant;
    for (int s = 0; s < v->n_slot; s++) {
        const struct value *value = &n->g->value[c->value[s]];
        bool member = false, outside = value->port != 0, read = false;
        for (int j = 0; j < c->n_node; j++)
            member |= value->node == c->node[j];
        if (v->slot[s].input && member)
            return false;
        for (int j = 0; j < v->n_node; j++)
            for (int i = 0; i < v->node[j].n_in; i++)
                read |= v->node[j].in[i] == s;
        for (int r = 0; r < value->n_reader; r++) {
            bool in = false;
            for (int j = 0; j < c->n_node; j++)
                in |= value->reader[r] == c->node[j];
            outside |= !in;
        }
        bool may = value->kind == VALUE_STATE;
        for (int j = 0; j < v->n_node; j++)
            for (int o = 0; o < v->node[j].n_out; o++)
                may |= v->node[j].out[o] == s && v->node[j].leaves;
        if (!v->slot[s].input && read && outside && !may)
            return false;
    }
    return true;
}

static bool naive_accepts(const struct naive *n, struct group *c, const struct fuse_line *line)
{
    for (unsigned swaps = 0; swaps < 1u << c->variant->n_node; swaps++) {
        if (!naive_bound(n, c, swaps) || !naive_closed(n, c))
            continue;
        bool ok = true;
        for (int i = 0; i < 6; i++) {
            const struct need *a = &c->variant->row->need[i], *b = &line->need[i];
            ok &= a->kind == NEED_NONE || need_holds(a, n->g, c, n->key);
            ok &= b->kind == NEED_NONE || need_holds(b, n->g, c, n->key);
        }
        if (ok && naive_acyclic(n, c))
            return true;
    }
    return false;
}

/* May the graph's node k be the variant's node j, by its op and by what is made inside? */
static bool naive_may(const struct naive *n, const struct group *c, int j, int k)
{
    const struct fuse_var_node *vn = &c->variant->node[j];
    const struct node *gn = &n->g->node[k];
    if (gn->op != vn->op || n->group_of[k] >= 0)
        return false;
    for (int i = 0; i < j; i++)
        if (c->node[i] == k)
            return false;
    if (j && vn->rep > 0 && c->variant->row->node[vn->row_node].repeat[1] && k < c->node[j - 1])
        return false;
    for (int i = 0; i < vn->n_in; i++) {
        int made = naive_value(n, c, vn->in[i], j), q = 0;
        while (made >= 0 && q < gn->n_in && gn->in[q] != made)
            q++;
        if (made >= 0 && q == gn->n_in)
            return false;
    }
    return true;
}

/* Node tuples in lexicographic order; the first that is accepted. */
static bool naive_tuple(const struct naive *n, struct group *c, int j, const struct fuse_line *line)
{
    if (j == c->variant->n_node)
        return naive_accepts(n, c, line);
    int first = j ? 0 : c->node[0], end = j ? n->g->n_node : first + 1;
    for (int k = first; k < end; k++) {
        if (!naive_may(n, c, j, k))
            continue;
        c->node[j] = k;
        if (naive_tuple(n, c, j + 1, line))
            return true;
    }
    return false;
}

static void naive_run(struct naive *n)
{
    for (int k = 0; k < n->g->n_node; k++)
        n->group_of[k] = -1;
    memset(n->edge, 0, sizeof n->edge);
    for (int k = 0; k < n->g->n_node; k++) {
        int pred[64], n_pred = graph_preds(n->g, k, pred, 64);
        for (int p = 0; p < n_pred; p++)
            n->edge[pred[p]][k] = true;
    }
    for (int l = 0; l < n->t->list->n_line; l++)
        for (int size = FUSE_MAX_NODE; size > 1; size--)
            for (int k = 0; k < n->g->n_node; k++)
                for (int v = 0; v < n->t->of_line[l].n; v++) {
                    struct group c = {.variant = &n->t->variant[n->t->of_line[l].first + v]};
                    c.n_node = c.variant->n_node;
                    c.node[0] = k;
                    if (c.n_node != size || !naive_tuple(n, &c, 0, &n->t->list->line[l]))
                        continue;
                    for (int j = 0; j < size; j++) {
                        n->group_of[c.node[j]] = k; /* its anchor names it */
                        n->variant[k] = c.variant;
                    }
                }
}

static uint64_t rng(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

struct random {
    struct graph *g;
    uint64_t s;
    int act[64], n_act, vec[2], mat[3], slot[2], table;
    char name[32];
};

static const char *random_name(struct random *r, const char *what, int i)
{
    snprintf(r->name, sizeof r->name, "%s%d", what, i);
    return r->name;
}

static int random_weight(struct random *r, const char *what, int i, int tensor, int n_row)
{
    struct weight_slice slice = {tensor, 0, n_row, n_row, 1, 1, 0, 0};
    return graph_weight(r->g, random_name(r, what, i), slice, QUANT_F32, n_row, 8);
}

static int random_pick(struct random *r, int n)
{
    return (int)(rng(&r->s) % (uint64_t)n);
}

static void random_inputs(struct random *r)
{
    struct state_slot slot = {.kind = SLOT_KV, .n_head_kv = 1, .d_k = 8, .d_v = 8};
    union attr at = {.ROPE_TABLE = {8, 1e4f, 1}};
    int ids = graph_input(r->g, PORT_IDS), pos = graph_input(r->g, PORT_POS);
    for (int i = 0; i < 3; i++) {
        r->mat[i] = random_weight(r, "m", i, i, 8);
        int e = random_weight(r, "e", i, i + 5, 9);
        r->act[r->n_act++] =
            graph_add(r->g, random_name(r, "x", i), OP_EMBED, ATTR_NONE, 2, (int[]){e, ids});
    }
    for (int i = 0; i < 2; i++) {
        r->vec[i] = random_weight(r, "v", i, i + 3, 1);
        r->slot[i] = graph_slot(r->g, random_name(r, "s", i), slot);
    }
    r->table = graph_add(r->g, "table", OP_ROPE_TABLE, at, 1, (int[]){pos});
}

static void random_node(struct random *r, int i)
{
    static const enum op ops[] = {OP_ADD,      OP_ADD,    OP_ADD,      OP_MUL,  OP_MUL,
                                  OP_RMS_NORM, OP_MATMUL, OP_MATMUL,   OP_SILU, OP_SIN,
                                  OP_SQR,      OP_ROPE,   OP_KV_WRITE, OP_TANH};
    enum op op = ops[random_pick(r, (int)(sizeof ops / sizeof ops[0]))];
    int a = r->act[random_pick(r, 3) ? r->n_act - 1 - random_pick(r, 3) : random_pick(r, r->n_act)];
    int b = r->act[random_pick(r, r->n_act)], q = random_pick(r, 2), in[3] = {a}, n_in = 1;
    union attr at = ATTR_NONE;
    if (op == OP_ADD || op == OP_MUL) {
        in[n_in++] = random_pick(r, 3) == 0 ? r->vec[q] : b;
        if (in[1] == b && random_pick(r, 2)) {
            in[0] = b;
            in[1] = a;
        }
    } else if (op == OP_MATMUL) {
        in[n_in++] = r->mat[random_pick(r, 3)];
        at.MATMUL.n_head = 1;
    } else if (op == OP_ROPE) {
        in[n_in++] = r->table;
    } else if (op == OP_KV_WRITE) {
        in[0] = r->slot[q];
        in[1] = a;
        in[2] = b;
        n_in = 3;
    }
    int y = graph_add(r->g, random_name(r, "n", i), op, at, n_in, in);
    if (op == OP_KV_WRITE)
        r->slot[q] = y;
    else
        r->act[r->n_act++] = y;
}

/* What nobody reads goes into the states, and every weight is read at least once. */
static void random_end(struct random *r)
{
    struct graph *g = r->g;
    for (int v = 0; v < r->n_act; v++) {
        bool read = v < 2;
        for (int k = 0; k < g->n_node && v >= 2; k++)
            for (int i = 0; i < g->node[k].n_in; i++)
                read |= g->node[k].in[i] == r->act[v];
        int in[3] = {r->slot[v & 1], r->act[v], r->act[v]};
        if (!read || v < 2)
            r->slot[v & 1] = graph_add(g, random_name(r, "end", v), OP_KV_WRITE, ATTR_NONE, 3, in);
    }
    int y = graph_add(g, "all_v0", OP_ADD, ATTR_NONE, 2, (int[]){r->act[0], r->vec[0]});
    y = graph_add(g, "all_v1", OP_MUL, ATTR_NONE, 2, (int[]){y, r->vec[1]});
    y = graph_add(g, "all_t", OP_ROPE, ATTR_NONE, 2, (int[]){y, r->table});
    for (int i = 0; i < 3; i++) {
        union attr one = {.MATMUL = {1}};
        y = graph_add(g, random_name(r, "all_m", i), OP_MATMUL, one, 2, (int[]){y, r->mat[i]});
    }
    graph_port(g, y, PORT_HIDDEN);
}

/* Up to 60 nodes that like to make the rows' shapes, and near misses of them. */
static struct graph *random_graph(sinter_host *host, uint64_t seed)
{
    struct random r = {.s = seed * 0x9e3779b97f4a7c15u + 1};
    sinter_error err;
    assert_int_equal(graph_create(host, "random", &r.g, &err), SINTER_OK);
    for (int i = 0; i < 8; i++)
        rng(&r.s);
    random_inputs(&r);
    int n = 6 + random_pick(&r, 24);
    for (int i = 0; i < n; i++)
        random_node(&r, i);
    random_end(&r);
    if (graph_finish(r.g, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    return r.g;
}

static const struct fuse_row random_rows[] = {
    /* more ways to leave and to make cycles */
    {"leave", {{{ADD}, {X, R}, {A}, .leaves = true}, {{MUL}, {A, W}, {Y}}}},
    {"square",
     {{{MUL}, {X, R}, {A}, .leaves = true},
      {{ADD}, {A, X}, {Y}},
      {{SILU}, {Y}, {Y}, .optional = 1}}},
    {"fork",
     {{{MATMUL}, {X, EACH(W)}, {EACH(Y)}, .repeat = {2, 4}},
      {{ADD}, {EACH(Y), EACH(R)}, {EACH(Y)}}}},
    {"three", {{{ADD}, {X, EACH(Y)}, {X}, .repeat = {3, 3}, .leaves = true}}},
};

static int compare_naive(sinter_host *host, const struct fuse_table *t, uint64_t seed, int *n_fused)
{
    struct graph *g = random_graph(host, seed);
    struct fuse_key key = {1, 4, 2, 2};
    assert_true(g->n_node <= 64);
    struct naive n = {.t = t, .g = g, .key = &key};
    naive_run(&n);
    struct fuse_result *r = match(host, t, g, &key, NULL);
    check_result(g, r);
    bool same = true;
    for (int k = 0; k < g->n_node; k++) {
        const struct group *in = &r->group[r->group_of[k]];
        int anchor = in->n_node > 1 ? in->node[0] : -1;
        same &= anchor == n.group_of[k] && (anchor < 0 || n.variant[anchor] == in->variant);
        *n_fused += anchor == k;
    }
    if (!same)
        print_message("seed %d: groups differ from the naive ones\n", (int)seed);
    fuse_result_free(r);
    graph_free(g);
    return same;
}

static void random_graphs(void **state)
{
    (void)state;
    sinter_host *host = host_of();
    int n_same = 0, n = 0, n_fused = 0;
    for (int set = 0; set < 4; set++) {
        struct mock m = {0};
        const struct fuse_row *rows = set < 2 ? fuse_rows : random_rows;
        int n_row = set < 2 ? fuse_n_row : (int)(sizeof random_rows / sizeof random_rows[0]);
        for (int r = 0; r < n_row; r++)
            mock_add(&m, rows[set % 2 ? n_row - 1 - r : r].name);
        mock_singles(&m);
        struct fuse_table *t;
        sinter_error err;
        if (fuse_table_create_rows(host, rows, n_row, &m.list, &t, &err) != SINTER_OK)
            fail_msg("%s", err.message);
        for (uint64_t seed = 1; seed <= 150; seed++, n++)
            n_same += compare_naive(host, t, seed, &n_fused);
        fuse_table_free(t);
    }
    print_message("random graphs: %d/%d as the naive matcher, %d groups\n", n_same, n, n_fused);
    assert_int_equal(n_same, n);
    assert_true(n_fused > n);
    sinter_host_free(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
