/* Samplers: penalty, top-k, temperature, top-p, min-p, draw; in that order. Greedy looks at the
 * logits as they are after penalty and mask. Draw number n of a seed is a hash of both, so a run
 * can be repeated and nothing depends on what else was sampled. */
#include "run/run.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct candidate {
    float logit, p;
    int32_t id;
};

struct sinter_sampler {
    sinter_host *host;
    sinter_sampler_options o;
    int32_t n_vocab;
    uint64_t n_draw;
    int32_t *last;          /* [repeat_last], a ring */
    int64_t n_last;         /* accepted in all */
    float *logit;           /* [n_vocab]: what penalty and mask left */
    struct candidate *cand; /* [n_vocab] */
    uint64_t *mask;         /* [(n_vocab + 63) / 64] */
};

/* splitmix64 of Steele, Lea, Flood (2014): the finaliser of a counter. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static double draw(sinter_sampler *s)
{
    return (double)(mix(mix(s->o.seed) + s->n_draw++) >> 11) * 0x1p-53;
}

static sinter_status check(const sinter_sampler_options *o, sinter_error *err)
{
    if (!(o->temperature >= 0) || isinf(o->temperature))
        return FAIL(err, USAGE, "temperature %g; it must be 0 or more", (double)o->temperature);
    if (o->top_k < 0)
        return FAIL(err, USAGE, "top-k %d; it must be 0 or more", o->top_k);
    if (!(o->top_p >= 0 && o->top_p <= 1))
        return FAIL(err, USAGE, "top-p %g; it must be 0..1", (double)o->top_p);
    if (!(o->min_p >= 0 && o->min_p <= 1))
        return FAIL(err, USAGE, "min-p %g; it must be 0..1", (double)o->min_p);
    if (!(o->repeat_penalty >= 0) || isinf(o->repeat_penalty))
        return FAIL(err, USAGE, "repeat-penalty %g; it must be 0 (none) or more",
                    (double)o->repeat_penalty);
    if (o->repeat_last < 0 || o->repeat_last > 1 << 20)
        return FAIL(err, USAGE, "repeat-last %d; it must be 0..1048576", o->repeat_last);
    return SINTER_OK;
}

sinter_status sinter_sampler_create(sinter_host *host, int32_t n_vocab,
                                    const sinter_sampler_options *options, sinter_sampler **out,
                                    sinter_error *err)
{
    sinter_status status = SINTER_OK;
    sinter_sampler *s;
    *out = NULL;
    if (n_vocab < 1)
        return FAIL(err, USAGE, "a sampler over %d tokens", n_vocab);
    NEW(host, s, 1, err);
    s->host = host;
    s->n_vocab = n_vocab;
    TRY_OUT(options_copy(&s->o, sizeof s->o, options, err));
    s->o.repeat_last = s->o.repeat_last ? s->o.repeat_last : 64;
    s->o.seed = s->o.seed ? s->o.seed : mix(host_clock_ns(host)) | 1;
    TRY_OUT(check(&s->o, err));
    NEW_OUT(host, s->last, s->o.repeat_last, err);
    NEW_OUT(host, s->logit, n_vocab, err);
    NEW_OUT(host, s->cand, n_vocab, err);
    NEW_OUT(host, s->mask, (n_vocab + 63) / 64, err);
    *out = s;
    return SINTER_OK;
out:
    sinter_sampler_free(s);
    return status;
}

void sinter_sampler_free(sinter_sampler *s)
{
    if (!s)
        return;
    host_free(s->host, s->last);
    host_free(s->host, s->logit);
    host_free(s->host, s->cand);
    host_free(s->host, s->mask);
    host_free(s->host, s);
}

int32_t sampler_n_vocab(const sinter_sampler *s)
{
    return s->n_vocab;
}

uint64_t sinter_sampler_seed(const sinter_sampler *s)
{
    return s->o.seed;
}

void sinter_sampler_accept(sinter_sampler *s, int32_t id)
{
    s->last[s->n_last++ % s->o.repeat_last] = id;
}

/* Logits of seen tokens: divided where positive, multiplied where negative (Keskar et al. 2019). */
static void penalise(sinter_sampler *s, const float *logits)
{
    float penalty = s->o.repeat_penalty;
    int64_t n = s->n_last < s->o.repeat_last ? s->n_last : s->o.repeat_last;
    for (int64_t i = 0; i < n; i++) {
        int32_t id = s->last[i];
        if (id < 0 || id >= s->n_vocab) /* each seen token once: from the untouched logit */
            continue;
        float x = logits[id] > 0 ? logits[id] / penalty : logits[id] * penalty;
        s->logit[id] = isinf(x) && isfinite(logits[id]) ? copysignf(FLT_MAX, x) : x;
    }
}

static sinter_status apply_mask(sinter_sampler *s, sinter_error *err)
{
    size_t n = ((size_t)s->n_vocab + 63) / 64;
    bool any = false;
    memset(s->mask, 0xff, n * sizeof *s->mask);
    s->o.mask(s->o.mask_ctx, s->mask, s->n_vocab);
    for (int32_t i = 0; i < s->n_vocab; i++) {
        if (!(s->mask[i / 64] >> (i % 64) & 1))
            s->logit[i] = -INFINITY;
        any = any || s->logit[i] > -INFINITY;
    }
    return any ? SINTER_OK : FAIL(err, USAGE, "the mask allows no token that can come");
}

static int32_t greedy(const float *logit, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (logit[i] > logit[best])
            best = i;
    return best;
}

/* The k-th greatest logit, by halving the interval of its bit pattern: 32 passes at most. */
static uint32_t key_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u >> 31 ? ~u : u | 0x80000000u;
}

static uint32_t threshold(const float *logit, int32_t n, int32_t k)
{
    uint32_t t = 0;
    for (int bit = 31; bit >= 0; bit--) {
        uint32_t next = t | 1u << bit;
        int32_t above = 0;
        for (int32_t i = 0; i < n; i++)
            above += key_of(logit[i]) >= next;
        if (above >= k)
            t = next;
    }
    return t;
}

/* The top k tokens (of equal logits the lower ids) in the order of their ids, without those that
 * can never be drawn. Returns their number. */
static int32_t choose(sinter_sampler *s)
{
    int32_t n_vocab = s->n_vocab, n = 0, k = s->o.top_k > 0 ? s->o.top_k : n_vocab, n_tie = 0;
    uint32_t least = k < n_vocab ? threshold(s->logit, n_vocab, k) : 0;
    float best = s->logit[greedy(s->logit, n_vocab)];
    /* exp(-104) is below the smallest f32 */
    float floor_ = best - 104 * (s->o.temperature > 1 ? s->o.temperature : 1);
    for (int32_t i = 0; i < n_vocab; i++)
        n_tie -= key_of(s->logit[i]) > least;
    n_tie += k; /* how many that are just at the threshold belong to the k */
    for (int32_t i = 0; i < n_vocab; i++) {
        uint32_t key = key_of(s->logit[i]);
        bool is_top = key > least || (key == least && n_tie-- > 0);
        if (is_top && s->logit[i] >= floor_ && s->logit[i] > -INFINITY)
            s->cand[n++] = (struct candidate){s->logit[i], 0, i};
    }
    return n;
}

static double to_probs(sinter_sampler *s, int32_t n)
{
    float best = s->cand[0].logit;
    double sum = 0;
    for (int32_t i = 1; i < n; i++)
        best = s->cand[i].logit > best ? s->cand[i].logit : best;
    for (int32_t i = 0; i < n; i++) {
        double p = exp((double)(s->cand[i].logit - best) / (double)s->o.temperature);
        s->cand[i].p = (float)p;
        sum += p;
    }
    return sum;
}

/* ---- A heap, best on top: qsort may allocate, and mostly only a few of the best are asked for. */

static bool is_better(const struct candidate *a, const struct candidate *b)
{
    return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

static void swap(struct candidate *a, struct candidate *b)
{
    struct candidate c = *a;
    *a = *b;
    *b = c;
}

static void sift(struct candidate *c, int32_t n, int32_t at)
{
    for (int32_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && is_better(&c[child + 1], &c[child]);
        if (!is_better(&c[child], &c[at]))
            return;
        swap(&c[at], &c[child]);
    }
}

/* What top-p and min-p leave of the n candidates: c[*first .. n). */
static void cut(const sinter_sampler *s, int32_t n, double sum, int32_t *first)
{
    bool top_p = s->o.top_p > 0 && s->o.top_p < 1;
    struct candidate *c = s->cand;
    double cumulated = 0;
    int32_t left = n;
    *first = 0;
    if (!top_p && s->o.min_p <= 0)
        return;
    for (int32_t i = n / 2; i-- > 0;)
        sift(c, n, i);
    while (left > 0 && (left == n || c[0].p >= s->o.min_p * c[n - 1].p)) {
        cumulated += (double)c[0].p;
        swap(&c[0], &c[--left]);
        sift(c, left, 0);
        if (top_p && cumulated >= (double)s->o.top_p * sum)
            break;
    }
    *first = left;
}

static int32_t pick(sinter_sampler *s)
{
    int32_t n = choose(s), first, id = -1;
    double sum = to_probs(s, n), at;
    cut(s, n, sum, &first);
    sum = 0;
    for (int32_t i = first; i < n; i++)
        sum += (double)s->cand[i].p;
    at = draw(s) * sum;
    for (int32_t i = n; i-- > first && at >= 0;) {
        at -= (double)s->cand[i].p;
        if (s->cand[i].p > 0) /* where rounding leaves a rest, the last that can come */
            id = s->cand[i].id;
    }
    return id;
}

static sinter_status check_logits(const float *logits, int32_t n, sinter_error *err)
{
    bool any = false;
    for (int32_t i = 0; i < n; i++) {
        any |= logits[i] > -INFINITY;
        if (isnan(logits[i]) || logits[i] == INFINITY)
            return FAIL(err, NUMERIC, "logit %d is not a number; run `sinter verify` on the model",
                        i);
    }
    return any ? SINTER_OK : FAIL(err, NUMERIC, "all %d logits are -infinity", n);
}

sinter_status sinter_sampler_pick(sinter_sampler *s, const float *logits, int32_t *id,
                                  sinter_error *err)
{
    TRY(check_logits(logits, s->n_vocab, err));
    memcpy(s->logit, logits, (size_t)s->n_vocab * sizeof *logits);
    if (s->o.repeat_penalty > 0 && s->o.repeat_penalty != 1)
        penalise(s, logits);
    if (s->o.mask)
        TRY(apply_mask(s, err));
    *id = s->o.temperature > 0 ? pick(s) : greedy(s->logit, s->n_vocab);
    return SINTER_OK;
}
