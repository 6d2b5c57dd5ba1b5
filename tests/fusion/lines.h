/* Generated tests of a backend's lines, one line x variant at a time: the graph fires alone, each
 * need missed, each inner value made a port, operands commuted; with `run` each of these graphs is
 * also run fused and as its nodes one by one, over steps of many shapes, on one thread and two:
 * a SAME line must give the same bits, an OWN one NMSE <= 1e-10.
 *
 * What was checked is counted in struct lines, so that a mutation (labels disabled, needs ignored)
 * can see that something fails. */
#ifndef TESTS_FUSION_LINES_H
#define TESTS_FUSION_LINES_H

#include <math.h>
#include <stdlib.h>

#include "backend/cpu/cpu.h"
#include "backend/ref/ref.h"
#include "fuse/internal.h"
#include "fusion/generate.h"
#include "model/dummy.h"
#include "native/device.h"

enum { LINES_MAX = 128, LINES_FLOATS = 1 << 22, LINES_N_STEP = 10 };

struct lines {
    sinter_host *host;
    const struct native_kind *kind;
    const char *level;    /* for messages: "cpu c" */
    struct device *whole; /* with all lines */
    bool run, quiet;
    const char *disable, *ignore_need; /* the mutation */
    int n_ok, n_all;
};

/* A list as a backend of its own. */
struct lines_backend {
    struct native_kind kind;
    struct fuse_list list;
    struct fuse_line line[LINES_MAX];
    struct device *device;
};

/* One line and the single ops. An OWN line is run with the other lines of its row behind it: in
 * exact mode all plans of a graph take the same OWN groups. */
struct lines_alone {
    struct lines_backend match, run;
};

static inline sinter_host *lines_host(void)
{
    sinter_host *host;
    sinter_error err;
    if (sinter_host_create(NULL, &host, &err) != SINTER_OK ||
        sinter_host_set(host, "threads", "2", &err) != SINTER_OK)
        fail_msg("%s", err.message);
    return host;
}

static inline bool lines_is_fusion(const struct fuse_line *line)
{
    return op_from_name(line->row) == OP_NONE;
}

static inline void lines_open_one(const struct lines *l, const struct fuse_line *line,
                                  bool whole_row, struct lines_backend *b)
{
    const struct fuse_list *list = l->kind->list;
    sinter_error err;
    *b = (struct lines_backend){.kind = *l->kind};
    b->line[b->list.n_line++] = *line;
    for (int i = 0; i < list->n_line; i++) {
        assert_true(b->list.n_line < LINES_MAX);
        bool other = whole_row && &list->line[i] != line && !strcmp(list->line[i].row, line->row);
        if (other || !lines_is_fusion(&list->line[i]))
            b->line[b->list.n_line++] = list->line[i];
    }
    b->list.backend = list->backend;
    b->list.line = b->line;
    b->kind.list = &b->list;
    if (native_open(l->host, &b->kind, NULL, NULL, &b->device, &err) != SINTER_OK)
        fail_msg("%s", err.message);
}

static inline void lines_open_alone(const struct lines *l, const struct fuse_line *line,
                                    struct lines_alone *a)
{
    lines_open_one(l, line, false, &a->match);
    lines_open_one(l, line, line->bits == BITS_OWN, &a->run);
}

static inline void PRINTF_LIKE(3, 4) lines_count(struct lines *l, bool ok, const char *what, ...)
{
    va_list args;
    char text[256];
    l->n_all++;
    l->n_ok += ok;
    if (ok || l->quiet)
        return;
    va_start(args, what);
    vsnprintf(text, sizeof text, what, args);
    va_end(args);
    print_message("%s: %s\n", l->level, text);
}

/* ---- Running a graph ---- */

/* All that can be seen of a run: results of every step, then the state of all sequences. */
struct lines_seen {
    float *x;
    size_t n;
    int fired[LINES_N_STEP]; /* groups of the variant that were run in the step */
    bool own;                /* a group with bits of its own was run */
    int n_fused;             /* groups of two or more nodes that were run */
};

static inline void lines_see(struct lines_seen *s, const void *x, size_t n)
{
    assert_true(s->n + n <= LINES_FLOATS);
    memcpy(s->x + s->n, x, n * sizeof *s->x);
    s->n += n;
}

static inline sinter_status lines_read(void *ctx, const struct graph_weight *w, int mat,
                                       int64_t row, int64_t n, void *buf, sinter_error *err)
{
    const struct graph *g = ctx;
    int v = 0;
    while (g->value[v].kind != VALUE_WEIGHT ||
           strcmp(g->weight[g->value[v].index].name, w->name) != 0)
        v++;
    int n_col = g->value[v].shape.d, n_row = g->value[v].shape.mult;
    float sigma = n_row == 1 || n_row == GENERATE_VOCAB ? 1 : 1 / sqrtf((float)n_col);
    size_t each = quant_bytes(w->type, (size_t)n_col);
    struct draw d;
    TRY(draw_init(&d, w->type, INIT_LINEAR, draw_seed(7, w->name), sigma, err));
    draw_bytes(&d, ((uint64_t)mat * (uint64_t)n_row + (uint64_t)row) * each, buf, (size_t)n * each);
    return SINTER_OK;
}

static inline void lines_see_state(struct lines_seen *s, const struct graph *g,
                                   const struct seq *seq)
{
    float row[2048];
    for (int i = 0; i < g->n_slot; i++) {
        const struct state_slot *slot = &g->slot[i];
        if (slot->kind == SLOT_REC) {
            const float *x = seq_rec_read(seq, i);
            if (x)
                lines_see(s, x, (size_t)(slot->n_row * slot->d));
            continue;
        }
        struct kv_view v = seq_kv(seq, i);
        assert_true(slot->d_k <= 2048 && slot->d_v <= 2048);
        for (int r = v.first_row; r < seq_rows(seq); r++)
            for (int h = 0; h < slot->n_head_kv; h++) {
                kv_get_k(&v, r, h, row);
                lines_see(s, row, (size_t)slot->d_k);
                kv_get_v(&v, r, h, row);
                lines_see(s, row, (size_t)slot->d_v);
            }
    }
}

/* New rows of two sequences, step by step: 1, 3, 5, 40 rows and others; pasts around the edges of
 * pages of 16 rows; both sequences in one step. */
static const int lines_steps[LINES_N_STEP][2] = {{15, 17}, {1, 0},  {1, 2},   {3, 0}, {5, 0},
                                                 {2, 3},   {40, 0}, {27, 13}, {1, 0}, {0, 1}};

static inline void lines_step(struct exec *x, struct seq *const *seq, int step, unsigned ports,
                              struct lines_seen *seen)
{
    struct batch_seg seg[2];
    struct batch_out out[64];
    int32_t id[64];
    struct result r;
    sinter_error err;
    struct batch b = {.seg = seg, .id = id, .out = out};
    for (int s = 0; s < 2; s++) {
        int n = lines_steps[step][s], past = seq_rows(seq[s]);
        if (!n)
            continue;
        seg[b.n_seg++] = (struct batch_seg){seq[s], b.n_row, n, past};
        for (int i = 0; i < n; i++, b.n_row++) {
            id[b.n_row] =
                (int32_t)((unsigned)(past + i + 50 * s) * 2654435761u >> 8) % GENERATE_VOCAB;
            id[b.n_row] = id[b.n_row] < 0 ? -id[b.n_row] : id[b.n_row];
            out[b.n_row] = (struct batch_out){b.n_row, ports};
        }
    }
    b.n_out = ports ? b.n_row : 0;
    if (exec_reserve(x, &b, &err) != SINTER_OK || exec_submit(x, &b, &err) != SINTER_OK ||
        exec_wait(x, &r, &err) != SINTER_OK)
        fail_msg("%s: %s", x->graph->name, err.message);
    for (int i = 0; i < b.n_seg; i++)
        assert_int_equal(seq_commit(seg[i].seq, seg[i].n_row, &err), SINTER_OK);
    size_t n = (size_t)r.n_out;
    if (r.logits)
        lines_see(seen, r.logits, n * (size_t)r.n_vocab);
    if (r.hidden)
        lines_see(seen, r.hidden, n * (size_t)r.d_model);
    if (r.argmax)
        lines_see(seen, r.argmax, n);
}

static inline void lines_count_step(const struct device *d, int variant, int step,
                                    struct lines_seen *seen)
{
    for (int v = 0; v < d->table->n_single; v++) {
        int n = (int)fuse_stats_get(d->stats, v).executed;
        seen->n_fused += n;
        if (v == variant)
            seen->fired[step] = n;
        for (int l = 0; n && l < d->table->list->n_line; l++)
            seen->own |= strcmp(d->table->list->line[l].row, d->table->variant[v].row->name) == 0 &&
                         d->table->list->line[l].bits == BITS_OWN;
    }
}

static inline void lines_run(const struct lines *l, struct device *d, const struct weights *w,
                             const struct graph *g, bool fusion, int n_thread, int variant,
                             struct lines_seen *seen)
{
    const struct state_options so = {.page_rows = 16,
                                     .type_k = QUANT_F32,
                                     .type_v = QUANT_F32,
                                     .n_seq = 2,
                                     .n_row = 256,
                                     .n_ctx = 128,
                                     .n_chunk = 40};
    const struct exec_options eo = {.n_thread = n_thread,
                                    .n_ctx = 128,
                                    .n_chunk = 40,
                                    .n_seq = 2,
                                    .fuse = {fusion, l->disable, l->ignore_need}};
    struct state_pool *pool;
    struct exec *x;
    struct seq *seq[2];
    unsigned ports = 0;
    sinter_error err;
    if (native_pool_make(d, g, &so, &pool, &err) != SINTER_OK ||
        native_build(d, g, w, pool, &eo, &x, &err) != SINTER_OK ||
        seq_fork(pool, NULL, &seq[0], &err) != SINTER_OK ||
        seq_fork(pool, NULL, &seq[1], &err) != SINTER_OK)
        fail_msg("%s: %s", g->name, err.message);
    for (int v = 0; v < g->n_value; v++)
        ports |= g->value[v].port & ~(unsigned)PORT_INS;
    seen->n = 0;
    seen->n_fused = 0;
    seen->own = false;
    for (int i = 0; i < LINES_N_STEP; i++) {
        fuse_stats_reset(d->stats);
        lines_step(x, seq, i, ports, seen);
        lines_count_step(d, variant, i, seen);
    }
    for (int s = 0; s < 2; s++) {
        lines_see_state(seen, g, seq[s]);
        seq_drop(seq[s]);
    }
    exec_free(x);
    state_pool_free(pool);
}

/* Is the variant taken in a step of so many rows? By its needs on rows, all else holds; of an OWN
 * row some line takes it. */
static inline bool lines_takes(const struct lines *l, const struct fuse_variant *v,
                               const struct fuse_line *line, int n_row)
{
    struct need need[12];
    int few = l->kind->rows_few, lo = few && n_row > few ? few + 1 : 1;
    int hi = few && n_row <= few ? few : 40;
    for (int i = 0, n = generate_all_needs(v, line, need); i < n; i++)
        if (line->bits == BITS_SAME && need[i].kind == NEED_rows && generate_speaks(v, &need[i]) &&
            (lo < need[i].b || (need[i].c && hi > need[i].c)))
            return false;
    return true;
}

/* A buffer per way, kept over all cases. */
static inline struct lines_seen *lines_buffers(void)
{
    static struct lines_seen seen[2];
    for (int i = 0; i < 2; i++)
        if (!seen[i].x)
            seen[i].x = malloc(LINES_FLOATS * sizeof *seen[i].x);
    return seen;
}

static inline bool lines_equal(const struct lines_seen *a, const struct lines_seen *b)
{
    double diff = 0, sum = 0;
    if (a->n != b->n || !b->n)
        return false;
    if (!a->own)
        return memcmp(a->x, b->x, a->n * sizeof *a->x) == 0;
    for (size_t i = 0; i < a->n; i++) {
        double x = a->x[i], y = b->x[i];
        diff += (x - y) * (x - y);
        sum += y * y;
    }
    return diff <= 1e-10 * sum;
}

/* Runs the graph on the device both ways. line: what must take the variant in the steps that its
 * needs allow, once each; NULL: whatever the device takes. */
static inline void lines_both_ways(struct lines *l, struct device *d, const struct fuse_variant *v,
                                   const struct fuse_line *line, const struct graph *g,
                                   const char *what)
{
    const struct weight_source source = {.ctx = (void *)(uintptr_t)g, .read = lines_read};
    struct graph *graphs[1] = {(struct graph *)(uintptr_t)g};
    struct lines_seen *seen = lines_buffers();
    struct weights *w;
    sinter_error err;
    if (native_load(d, graphs, 1, &source, &w, &err) != SINTER_OK)
        fail_msg("%s: %s", v->label, err.message);
    lines_run(l, d, w, g, false, 1, v->id, &seen[0]);
    bool finite = true;
    for (size_t i = 0; i < seen[0].n; i++)
        finite &= isfinite(seen[0].x[i]);
    lines_count(l, finite && seen[0].n_fused == 0, "%s %s: unfused run, finite %d, fusions %d",
                v->label, what, finite, seen[0].n_fused);
    for (int n_thread = 1; n_thread <= 2; n_thread++) {
        lines_run(l, d, w, g, true, n_thread, v->id, &seen[1]);
        bool fired = true;
        for (int i = 0; line && i < LINES_N_STEP; i++)
            fired &=
                seen[1].fired[i] == lines_takes(l, v, line, lines_steps[i][0] + lines_steps[i][1]);
        lines_count(l, fired && lines_equal(&seen[1], &seen[0]),
                    "%s %s on %d threads: fired as it should %d, bits %s", v->label, what, n_thread,
                    fired, lines_equal(&seen[1], &seen[0]) ? "equal" : "differ");
    }
    native_unload(d, w);
}

/* ---- Matching ---- */

/* One group of the variant by the line and nothing else fused? */
static inline bool lines_fires(const struct lines *l, const struct lines_alone *a,
                               const struct fuse_variant *v, const struct generated *g,
                               const char *ignore_need)
{
    const struct fuse_options o = {true, l->disable, ignore_need};
    struct fuse_result *r;
    sinter_error err;
    if (fuse_match(l->host, a->match.device->table, g->graph, &g->key, &o, NULL, 0, false, &r,
                   &err) != SINTER_OK)
        fail_msg("%s: %s", v->label, err.message);
    const struct group *in = &r->group[r->group_of[g->node[0]]];
    bool fired = r->count[v->id].matched == 1 && in->variant == v && in->line == &a->match.line[0];
    for (int j = 0; fired && j < v->n_node; j++)
        fired = r->group_of[g->node[j]] == in->id;
    for (int i = 0; fired && i < r->n_group; i++)
        fired = &r->group[i] == in || r->group[i].n_node == 1;
    fuse_result_free(r);
    return fired;
}

static inline bool lines_refused(const struct lines *l, const struct lines_alone *a,
                                 const struct fuse_variant *v, const struct generated *g,
                                 const struct need *need)
{
    const struct fuse_options o = {true, l->disable, l->ignore_need};
    struct fuse_result *r;
    sinter_error err;
    if (fuse_match(l->host, a->match.device->table, g->graph, &g->key, &o, NULL, 0, true, &r,
                   &err) != SINTER_OK)
        fail_msg("%s: %s", v->label, err.message);
    bool noted = false;
    for (int i = 0; i < r->n_note; i++)
        noted |= r->note[i].variant == v && r->note[i].node == g->node[0] &&
                 r->note[i].why == FUSE_NEED && memcmp(&r->note[i].need, need, sizeof *need) == 0;
    noted &= r->count[v->id].matched == 0;
    fuse_result_free(r);
    return noted;
}

static inline void lines_make(sinter_status status, const struct fuse_variant *v,
                              const sinter_error *err)
{
    if (status != SINTER_OK)
        fail_msg("%s: %s", v->label, err->message);
}

/* ---- Cases of one line x variant ---- */

static inline void lines_case_fires(struct lines *l, const struct lines_alone *a,
                                    const struct fuse_variant *v,
                                    const struct generate_shape *shape)
{
    struct generated g;
    sinter_error err;
    char what[64];
    snprintf(what, sizeof what, "d %d %s window %d", shape->d, quant_row(shape->type)->name,
             shape->window);
    lines_make(generate(l->host, v, &a->match.line[0], shape, -1, -1, -1, &g, &err), v, &err);
    lines_count(l, lines_fires(l, a, v, &g, l->ignore_need), "%s %s does not fire", v->label, what);
    if (l->run)
        lines_both_ways(l, a->run.device, v, &a->match.line[0], g.graph, what);
    graph_free(g.graph);
}

/* label.need, as --ignore-need takes it. */
static inline void lines_need_name(sinter_host *host, const struct fuse_variant *v,
                                   const struct need *need, char text[256])
{
    struct text_buf b;
    sinter_error err;
    text_buf_init(&b, host);
    text_buf_printf(&b, "%s.", v->label);
    need_print(need, &b);
    if (text_buf_end(&b, &err) != SINTER_OK || b.bytes >= 256)
        fail_msg("%s", err.message);
    memcpy(text, b.text, b.bytes + 1);
    text_buf_free(&b);
}

static inline void lines_case_needs(struct lines *l, const struct lines_alone *a,
                                    const struct fuse_variant *v)
{
    struct need all[12];
    for (int i = 0, n = generate_all_needs(v, &a->match.line[0], all); i < n; i++) {
        struct generated g;
        sinter_error err;
        char name[256];
        if (!generate_speaks(v, &all[i]))
            continue;
        lines_make(generate_near_miss(l->host, NULL, v, &a->match.line[0], i, &g, &err), v, &err);
        lines_need_name(l->host, v, &all[i], name);
        /* off by this need, and by nothing else */
        lines_count(l, lines_refused(l, a, v, &g, &all[i]) && lines_fires(l, a, v, &g, name),
                    "near miss of %s", name);
        if (l->run)
            lines_both_ways(l, l->whole, v, NULL, g.graph, name + strlen(v->label) + 1);
        graph_free(g.graph);
    }
}

static inline void lines_case_leaks(struct lines *l, const struct lines_alone *a,
                                    const struct fuse_variant *v)
{
    for (int s = 0; s < v->n_slot; s++) {
        struct generated g;
        sinter_error err;
        if (!v->slot[s].inner)
            continue;
        sinter_status status = generate_leak(l->host, NULL, v, &a->match.line[0], s, &g, &err);
        if (status == SINTER_E_INTERNAL && strstr(err.message, "of another kind"))
            continue; /* a score and a state are no ports */
        lines_make(status, v, &err);
        lines_count(l, lines_fires(l, a, v, &g, l->ignore_need) == v->slot[s].leaves,
                    "%s with inner value %d as a port", v->label, s);
        /* other ports than of tokens are no results */
        if (l->run && g.graph->value[g.value[s]].shape.axis == AXIS_TOK)
            lines_both_ways(l, v->slot[s].leaves ? a->run.device : l->whole, v,
                            v->slot[s].leaves ? &a->match.line[0] : NULL, g.graph, "leaking");
        graph_free(g.graph);
    }
}

static inline void lines_case_commuted(struct lines *l, const struct lines_alone *a,
                                       const struct fuse_variant *v)
{
    for (int j = 0; j < v->n_node; j++) {
        struct generated g;
        sinter_error err;
        if (!op_row(v->node[j].op)->commutes)
            continue;
        sinter_status status = generate_commuted(l->host, NULL, v, &a->match.line[0], j, &g, &err);
        if (status == SINTER_E_DATA || status == SINTER_E_INTERNAL)
            continue; /* a weight is no operand 0 */
        lines_make(status, v, &err);
        lines_count(l, lines_fires(l, a, v, &g, l->ignore_need), "%s commuted", v->label);
        if (l->run)
            lines_both_ways(l, a->run.device, v, &a->match.line[0], g.graph, "commuted");
        graph_free(g.graph);
    }
}

/* The type is what a matrix of the variant has, if it has one. */
static inline bool lines_has_matrix(const struct fuse_variant *v)
{
    for (int j = 0; j < v->n_node; j++)
        if (v->node[j].op == OP_MATMUL)
            return true;
    return false;
}

static inline bool lines_has_score(const struct fuse_variant *v)
{
    for (int j = 0; j < v->n_node; j++)
        if (v->node[j].op == OP_QK)
            return true;
    return false;
}

static inline void lines_variant(struct lines *l, const struct lines_alone *a,
                                 const struct fuse_variant *v)
{
    lines_case_fires(l, a, v, &(struct generate_shape){64, QUANT_F32, 0});
    lines_case_needs(l, a, v);
    lines_case_leaks(l, a, v);
    lines_case_commuted(l, a, v);
    if (!l->run)
        return;
    lines_case_fires(l, a, v, &(struct generate_shape){56, QUANT_F32, 0});
    lines_case_fires(l, a, v, &(struct generate_shape){160, QUANT_F32, 0});
    if (lines_has_score(v))
        lines_case_fires(l, a, v, &(struct generate_shape){64, QUANT_F32, 19});
    for (int t = 0; lines_has_matrix(v) && t < QUANT_N; t++) {
        struct generate_shape shape = {.type = (enum quant_type)t};
        shape.d = quant_row(shape.type)->block_elems > 96 ? 256 : 96;
        lines_case_fires(l, a, v, &shape);
    }
}

/* All variants of one line. */
static inline void lines_line(struct lines *l, const struct fuse_line *line)
{
    struct lines_alone a;
    lines_open_alone(l, line, &a);
    const struct fuse_table *t = a.match.device->table;
    for (int v = 0; v < t->of_line[0].n; v++)
        lines_variant(l, &a, &t->variant[t->of_line[0].first + v]);
    native_close(a.match.device);
    native_close(a.run.device);
}

#endif
