/* Reads .gold files (README.md) and compares a backend's logits with them: NMSE, KL, argmax. */
#ifndef TESTS_GOLDEN_GOLD_H
#define TESTS_GOLDEN_GOLD_H

#include "sinter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gold {
    uint32_t n_vocab, n_tok, n_pos;
    int32_t *ids, *pos;
    uint32_t *n_rec;
    int32_t **rec; /* [n_pos][n_rec] */
    double **logit, *lse;
};

static inline void *gold_read(FILE *f, size_t n, size_t each)
{
    void *p = malloc(n * each + 1);
    if (!p || fread(p, each, n, f) != n) {
        fprintf(stderr, "a golden file is cut short\n");
        exit(1);
    }
    return p;
}

static inline uint32_t gold_u32(FILE *f)
{
    uint32_t *p = gold_read(f, 1, 4), v = *p;
    free(p);
    return v;
}

static inline bool gold_open(const char *path, struct gold *g)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    char *magic = gold_read(f, 4, 1);
    bool ok = memcmp(magic, "SGLD", 4) == 0 && gold_u32(f) == 1;
    free(magic);
    free(gold_read(f, 32, 1));
    free(gold_read(f, gold_u32(f), 1));
    g->n_vocab = gold_u32(f);
    g->n_tok = gold_u32(f);
    g->ids = gold_read(f, g->n_tok, 4);
    g->n_pos = gold_u32(f);
    g->pos = gold_read(f, g->n_pos, 4);
    g->n_rec = malloc(g->n_pos * sizeof *g->n_rec);
    g->rec = malloc(g->n_pos * sizeof *g->rec);
    g->logit = malloc(g->n_pos * sizeof *g->logit);
    g->lse = malloc(g->n_pos * sizeof *g->lse);
    for (uint32_t p = 0; ok && p < g->n_pos; p++) {
        g->n_rec[p] = gold_u32(f);
        g->rec[p] = gold_read(f, g->n_rec[p], 4);
        g->logit[p] = gold_read(f, g->n_rec[p], 8);
        double *lse = gold_read(f, 1, 8);
        g->lse[p] = *lse;
        free(lse);
    }
    fclose(f);
    return ok;
}

static inline void gold_close(struct gold *g)
{
    for (uint32_t p = 0; p < g->n_pos; p++) {
        free(g->rec[p]);
        free(g->logit[p]);
    }
    free(g->ids);
    free(g->pos);
    free(g->n_rec);
    free(g->rec);
    free(g->logit);
    free(g->lse);
}

struct gold_diff {
    double nmse, kl;
    int n_argmax, n_argmax_ok;
};

static inline double log_sum_exp(const float *x, uint32_t n)
{
    double max = -HUGE_VAL, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (uint32_t i = 0; i < n; i++)
        sum += exp(x[i] - max);
    return max + log(sum);
}

/* KL(oracle || ours) over the recorded ids and one term for the rest. */
static inline double gold_kl(const struct gold *g, uint32_t p, const float *x)
{
    double ours = log_sum_exp(x, g->n_vocab), kl = 0, p_rest = 1, q_rest = 1;
    for (uint32_t i = 0; i < g->n_rec[p]; i++) {
        double lp = g->logit[p][i] - g->lse[p], lq = (double)x[g->rec[p][i]] - ours;
        kl += exp(lp) * (lp - lq);
        p_rest -= exp(lp);
        q_rest -= exp(lq);
    }
    if (p_rest > 1e-12 && q_rest > 1e-12)
        kl += p_rest * log(p_rest / q_rest);
    return kl;
}

/* Is our argmax the oracle's, wherever the oracle's two best are at least 0.3 apart? */
static inline void gold_argmax(const struct gold *g, uint32_t p, const float *x,
                               struct gold_diff *d)
{
    double best = -HUGE_VAL, second = -HUGE_VAL;
    int32_t id = -1, ours = 0;
    for (uint32_t i = 0; i < g->n_rec[p]; i++) {
        double l = g->logit[p][i];
        if (l > best) {
            second = best;
            best = l;
            id = g->rec[p][i];
        } else if (l > second) {
            second = l;
        }
    }
    if (best - second < 0.3)
        return;
    for (uint32_t i = 1; i < g->n_vocab; i++)
        if (x[i] > x[ours])
            ours = (int32_t)i;
    d->n_argmax++;
    d->n_argmax_ok += ours == id;
}

/* rows: logits of positions pos[0..n_pos), [n_pos][n_vocab]. */
static inline struct gold_diff gold_compare(const struct gold *g, const float *rows)
{
    struct gold_diff d = {0};
    double diff = 0, sum = 0;
    for (uint32_t p = 0; p < g->n_pos; p++) {
        const float *x = rows + (size_t)p * g->n_vocab;
        for (uint32_t i = 0; i < g->n_rec[p]; i++) {
            double e = (double)x[g->rec[p][i]] - g->logit[p][i];
            diff += e * e;
            sum += g->logit[p][i] * g->logit[p][i];
        }
        d.kl += gold_kl(g, p, x) / g->n_pos;
        gold_argmax(g, p, x, &d);
    }
    d.nmse = diff / sum;
    return d;
}

/* Runs ids[0..n_tok) in chunks through a fresh session and keeps the logits of `pos` (rising). */
static inline sinter_status gold_run(sinter_engine *e, const int32_t *ids, uint32_t n_tok,
                                     const int32_t *pos, uint32_t n_pos, uint32_t n_vocab,
                                     float *rows, sinter_error *err)
{
    enum { CHUNK = 64 };
    sinter_session *s = NULL;
    sinter_status status = sinter_session_create(e, &s, err);
    uint32_t next = 0;
    for (uint32_t at = 0; status == SINTER_OK && at < n_tok; at += CHUNK) {
        uint32_t n = n_tok - at < CHUNK ? n_tok - at : CHUNK;
        bool any = next < n_pos && (uint32_t)pos[next] < at + n;
        sinter_item it = {.session = s,
                          .ids = ids + at,
                          .n_id = (int32_t)n,
                          .want = any ? SINTER_WANT_ALL : SINTER_WANT_NONE};
        status = sinter_engine_step(e, &it, 1, err);
        for (; status == SINTER_OK && next < n_pos && (uint32_t)pos[next] < at + n; next++)
            memcpy(rows + (size_t)next * n_vocab, it.logits + ((size_t)pos[next] - at) * n_vocab,
                   n_vocab * sizeof *rows);
    }
    sinter_session_close(s);
    return status;
}

/* One way to run a model, and how near to the oracle it must come. */
struct gold_way {
    const char *backend, *mask, *kv;
    double nmse, kl;
};
static const struct gold_way gold_ways[] = {
    {"ref", "", "f32", 1e-10, 1e-9},      {"ref", "", "f16", 1e-6, 1e-5},
    {"cpu", "c", "f16", 1e-3, 5e-3},      {"cpu", "avx2", "f16", 1e-3, 5e-3},
    {"cpu", "avx512", "f16", 1e-3, 5e-3},
};
enum { GOLD_N_WAY = sizeof gold_ways / sizeof gold_ways[0] };

struct gold_engine {
    sinter_host *host;
    sinter_model *model;
    sinter_engine *engine;
};

static inline void gold_engine_close(struct gold_engine *g)
{
    sinter_engine_free(g->engine);
    sinter_model_close(g->model);
    sinter_host_free(g->host);
    *g = (struct gold_engine){0};
}

/* SINTER_E_DEVICE: this machine lacks the instruction set. */
static inline sinter_status gold_engine_open(const char *path, const struct gold_way *way,
                                             int32_t n_ctx, struct gold_engine *g,
                                             sinter_error *err)
{
    *g = (struct gold_engine){0};
    sinter_status status = sinter_host_create(NULL, &g->host, err);
    if (status == SINTER_OK)
        status = sinter_host_set(g->host, "backend", way->backend, err);
    if (status == SINTER_OK && way->mask[0])
        status = sinter_host_set(g->host, "cpu-mask", way->mask, err);
    if (status == SINTER_OK)
        status = sinter_model_open(g->host, path, NULL, &g->model, err);
    sinter_engine_options o = {.n_ctx = n_ctx, .n_chunk = 64, .type_k = way->kv, .type_v = way->kv};
    if (status == SINTER_OK)
        status = sinter_engine_create(g->model, &o, &g->engine, err);
    if (status != SINTER_OK && g->host)
        gold_engine_close(g);
    return status;
}

/* Counts of a whole test program. */
struct gold_count {
    int ok, all, skipped;
};

/* Prints a line; counts NMSE, KL and argmax as one case. */
static inline void gold_case(const char *model_path, const char *gold_path, const char *name,
                             const struct gold_way *way, struct gold_count *count)
{
    struct gold g = {0};
    struct gold_engine e;
    sinter_error err = {0};
    count->all++;
    if (!gold_open(gold_path, &g)) {
        printf("FAIL %s: %s cannot be read\n", name, gold_path);
        return;
    }
    sinter_status status = gold_engine_open(model_path, way, (int32_t)g.n_tok, &e, &err);
    if (status == SINTER_E_DEVICE) {
        count->all--;
        count->skipped++;
        gold_close(&g);
        return;
    }
    float *rows = malloc((size_t)g.n_pos * g.n_vocab * sizeof *rows);
    if (status == SINTER_OK) {
        status = gold_run(e.engine, g.ids, g.n_tok, g.pos, g.n_pos, g.n_vocab, rows, &err);
        gold_engine_close(&e);
    }
    if (status == SINTER_OK) {
        struct gold_diff d = gold_compare(&g, rows);
        bool ok = d.nmse <= way->nmse && d.kl <= way->kl && d.n_argmax == d.n_argmax_ok;
        printf("%s %-14s %s %-6s kv %s: NMSE %.2e KL %.2e argmax %d/%d\n", ok ? "ok  " : "FAIL",
               name, way->backend, way->mask, way->kv, d.nmse, d.kl, d.n_argmax_ok, d.n_argmax);
        count->ok += ok;
    } else {
        printf("FAIL %s %s %s: %s\n", name, way->backend, way->mask, err.message);
    }
    free(rows);
    gold_close(&g);
}

#endif
