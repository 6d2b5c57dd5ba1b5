/* `sinter verify`: does a model compute the same fused, unfused and on ref, and (exact) the same
 * bits whatever threads, chunks and company? */
#include "run/run.h"

#include "base/hash.h"
#include "base/options.h"
#include "base/pool.h"

#include <math.h>
#include <string.h>

enum { TEXT_ROWS = 24, EXACT_ROWS = 288 /* more than one partial of attention */, OTHER = 2 };

struct verify {
    sinter_model *m;
    const sinter_engine_options *options;
    struct text_buf out;
    int n_vocab, n_row;
    bool failed;
};

/* Token ids that any vocabulary has: a fixed hash of the position. */
static int32_t token(uint32_t i, int n_vocab)
{
    uint32_t h = (i + 1) * 2654435761u;
    h ^= h >> 15;
    return (int32_t)(h % (uint32_t)n_vocab);
}

/* ---- Same bits ----------------------------------------------------------------------------------
 */

struct setting {
    int n_thread, n_chunk;
    bool company;
};

/* Others take part with one and with three rows a step, as far as their context goes. */
static int add_company(const struct verify *v, sinter_session *const *s, sinter_item *item,
                       int32_t (*id)[3], int n_ctx)
{
    int n = 1;
    for (int o = 0; o < OTHER; o++) {
        int n_row = o ? 3 : 1, at = sinter_session_n_tok(s[1 + o]);
        if (at + n_row > n_ctx)
            continue;
        for (int r = 0; r < n_row; r++)
            id[o][r] = token((uint32_t)(1000 * (o + 1) + at + r), v->n_vocab);
        item[n++] = (sinter_item){
            .session = s[1 + o], .ids = id[o], .n_id = n_row, .want = SINTER_WANT_LAST};
    }
    return n;
}

static sinter_status run_setting(const struct verify *v, sinter_engine *e, sinter_session *const *s,
                                 const struct setting *set, uint64_t *hash, sinter_error *err)
{
    int32_t id[EXACT_ROWS], other[OTHER][3];
    *hash = FNV1A_START;
    for (int at = 0; at < v->n_row;) {
        int n = v->n_row - at < set->n_chunk ? v->n_row - at : set->n_chunk;
        for (int i = 0; i < n; i++)
            id[i] = token((uint32_t)(at + i), v->n_vocab);
        sinter_item item[1 + OTHER] = {
            {.session = s[0], .ids = id, .n_id = n, .want = SINTER_WANT_ALL}};
        int n_item = set->company ? add_company(v, s, item, other, e->o.n_ctx) : 1;
        TRY(sinter_engine_step(e, item, n_item, err));
        *hash = fnv1a(*hash, item[0].logits, (size_t)n * (size_t)v->n_vocab * sizeof(float));
        at += n;
    }
    return SINTER_OK;
}

static sinter_status open_and_run(const struct verify *v, const struct setting *set, uint64_t *hash,
                                  sinter_error *err)
{
    sinter_engine_options o = *v->options;
    sinter_engine *e;
    sinter_session *s[1 + OTHER] = {0};
    o.n_thread = set->n_thread;
    o.n_session = 1 + OTHER;
    o.n_chunk = 512 + 4;
    o.n_ctx = v->n_row;
    TRY(sinter_engine_create(v->m, &o, &e, err));
    sinter_status status = SINTER_OK;
    for (int i = 0; i < 1 + OTHER && status == SINTER_OK; i++)
        status = sinter_session_create(e, &s[i], err);
    if (status == SINTER_OK)
        status = run_setting(v, e, s, set, hash, err);
    for (int i = 0; i < 1 + OTHER; i++)
        sinter_session_close(s[i]);
    sinter_engine_free(e);
    return status;
}

static sinter_status same_bits(struct verify *v, sinter_error *err)
{
    static const int chunks[] = {1, 7, 64, 512};
    uint64_t first = 0;
    int n_same = 0, n = 0;
    struct pool *pool;
    TRY(host_pool(v->m->host, &pool, err));
    if (pool_n_thread(pool) < 2)
        return FAIL(err, USAGE, "two threads are compared; set --threads 2");
    for (int i = 0; i < 16; i++) {
        struct setting set = {1 + i / 8, chunks[i / 2 % 4], i % 2 != 0};
        uint64_t hash = 0;
        TRY(open_and_run(v, &set, &hash, err));
        first = n++ ? first : hash;
        n_same += hash == first;
        text_buf_printf(&v->out, "threads %d chunk %3d %-16s %016llx%s\n", set.n_thread,
                        set.n_chunk, set.company ? "beside 2 others" : "alone",
                        (unsigned long long)hash, hash == first ? "" : "  DIFFERS");
    }
    text_buf_printf(&v->out, "same bits: %d/%d\n", n_same, n);
    v->failed = n_same != n;
    return SINTER_OK;
}

/* ---- Fused, unfused, ref ------------------------------------------------------------------------
 */

struct way {
    const char *name, *backend;
    bool fusion;
};

/* Logits (tap 0) or the residual stream after `tap` layers, of all rows. The state's types are f32
 * so that only kernels differ. */
static sinter_status run_way(const struct verify *v, const struct way *way, int tap, float **rows,
                             size_t *n, sinter_error *err)
{
    sinter_host *host = v->m->host;
    const struct options *ho = host_options(host);
    struct fuse_options fuse = {way->fusion, ho->disable, ho->ignore_need};
    sinter_engine_options o = *v->options;
    int32_t id[TEXT_ROWS];
    sinter_engine *e;
    sinter_session *s = NULL;
    struct batch_out out[TEXT_ROWS];
    struct result r;
    o.backend = way->backend;
    o.type_k = o.type_v = "f32";
    o.n_ctx = v->n_row;
    o.n_session = 1;
    o.n_chunk = TEXT_ROWS;
    TRY(engine_create(v->m, &o, &fuse, tap, &e, err));
    sinter_status status = SINTER_OK;
    TRY_OUT(sinter_session_create(e, &s, err));
    for (int i = 0; i < v->n_row; i++) {
        id[i] = token((uint32_t)i, v->n_vocab);
        out[i] = (struct batch_out){i, tap ? PORT_HIDDEN : PORT_LOGITS};
    }
    struct batch_seg seg = {s->seq, 0, v->n_row, 0};
    struct batch b = {
        .n_seg = 1, .n_row = v->n_row, .n_out = v->n_row, .seg = &seg, .id = id, .out = out};
    TRY_OUT(e->home->backend->reserve(e->exec, &b, err));
    TRY_OUT(e->home->backend->submit(e->exec, &b, err));
    TRY_OUT(e->home->backend->wait(e->exec, &r, err));
    TRY_OUT(e->home->backend->commit(s->seq, v->n_row, err));
    *n = (size_t)v->n_row * (size_t)(tap ? r.d_model : r.n_vocab);
    NEW_OUT(host, *rows, *n, err);
    memcpy(*rows, tap ? r.hidden : r.logits, *n * sizeof **rows);
out:
    sinter_session_close(s);
    sinter_engine_free(e);
    return status;
}

static sinter_status distance(const struct verify *v, const struct way *a, const struct way *b,
                              int tap, double *d, sinter_error *err)
{
    float *x = NULL, *y = NULL;
    size_t n = 0;
    sinter_status status = run_way(v, a, tap, &x, &n, err);
    if (status == SINTER_OK)
        status = run_way(v, b, tap, &y, &n, err);
    if (status == SINTER_OK)
        *d = nmse(x, y, n);
    host_free(v->m->host, x);
    host_free(v->m->host, y);
    return status;
}

/* The first layer after which the two are further apart than the bound; by halving. */
static sinter_status first_layer(const struct verify *v, const struct way *a, const struct way *b,
                                 double bound, int *layer, sinter_error *err)
{
    int lo = 0, hi = v->m->model->plan.n_layer;
    while (lo + 1 < hi) {
        int mid = (lo + hi) / 2;
        double d;
        TRY(distance(v, a, b, mid, &d, err));
        if (d <= bound)
            lo = mid;
        else
            hi = mid;
    }
    *layer = hi - 1;
    return SINTER_OK;
}

static sinter_status compare(struct verify *v, const struct way *a, const struct way *b,
                             double bound, sinter_error *err)
{
    double d = 0, hidden = 0;
    int layer = 0, n_layer = v->m->model->plan.n_layer;
    TRY(distance(v, a, b, 0, &d, err));
    bool ok = d <= bound;
    text_buf_printf(&v->out, "%-13s against %-13s NMSE %.3g (bound %.0e) %s\n", a->name, b->name, d,
                    bound, ok ? "ok" : "DEPARTS");
    if (ok)
        return SINTER_OK;
    v->failed = true;
    TRY(distance(v, a, b, n_layer, &hidden, err));
    if (hidden <= bound) {
        text_buf_printf(&v->out, "  all %d layers agree: it is the output head\n", n_layer);
        return SINTER_OK;
    }
    TRY(first_layer(v, a, b, bound, &layer, err));
    text_buf_printf(&v->out, "  the first layer that departs is %d of 0..%d\n", layer, n_layer - 1);
    return SINTER_OK;
}

static sinter_status three_ways(struct verify *v, sinter_error *err)
{
    const char *name =
        v->options->backend ? v->options->backend : host_options(v->m->host)->backend;
    const struct way fused = {"fused", name, true}, plain = {"unfused", name, false};
    const struct way ref = {"ref", "ref", false};
    double bound = nmse_bound(v->m);
    TRY(compare(v, &fused, &plain, bound, err));
    TRY(compare(v, &fused, &ref, bound, err));
    return compare(v, &plain, &ref, bound, err);
}

sinter_status sinter_verify(sinter_model *model, const sinter_engine_options *options, bool exact,
                            sinter_write_fn write, void *ctx, sinter_error *err)
{
    sinter_engine_options o;
    sinter_error second;
    struct verify v = {.m = model, .options = &o};
    TRY(options_copy(&o, sizeof o, options, err));
    if (!model->model)
        return FAIL(err, USAGE, "the file was opened for its vocabulary only");
    int train = model->model->plan.n_ctx_train;
    v.n_vocab = model->model->plan.n_vocab;
    v.n_row = exact ? EXACT_ROWS : TEXT_ROWS;
    v.n_row = train > 0 && train < v.n_row ? train : v.n_row;
    v.n_row = o.n_ctx > 0 && o.n_ctx < v.n_row ? o.n_ctx : v.n_row;
    text_buf_init(&v.out, model->host);
    sinter_status status = exact ? same_bits(&v, err) : three_ways(&v, err);
    sinter_status shown = text_buf_flush(&v.out, write, ctx, &second);
    text_buf_free(&v.out);
    TRY(status);
    if (shown != SINTER_OK)
        return status_fail(err, shown, "%s", second.message);
    return v.failed ? FAIL(err, NUMERIC, "the model does not compute what it should; see above")
                    : SINTER_OK;
}
