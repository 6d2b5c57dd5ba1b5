/* `sinter fusion check`: every small dummy, fused and unfused, under every kind of plan key. The
 * counters of the fused run are compared with a committed sparse baseline, both ways; the unfused
 * run must count zero in rows of two or more nodes; logits are compared with the unfused run's and
 * with ref's. The baseline's header lists the universe: a name that comes or goes fails too. */
#include "run/run.h"

#include "base/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kinds of plan key. */
struct mode {
    const char *name;
    int n_row, n_seq, want;
    bool argmax;
};
static const struct mode modes[] = {
    {"decode", 1, 1, SINTER_WANT_LAST},       {"few", 3, 1, SINTER_WANT_LAST},
    {"chunk", 40, 1, SINTER_WANT_LAST},       {"mid", 40, 1, SINTER_WANT_NONE},
    {"all", 40, 1, SINTER_WANT_ALL},          {"seqs", 3, 2, SINTER_WANT_LAST},
    {"greedy", 1, 1, SINTER_WANT_LAST, true},
};
enum { N_MODE = sizeof modes / sizeof modes[0], PAST = 5, MAX_ROWS = 40 };

struct line {
    char *text;
    bool seen;
};

struct check {
    sinter_host *host;
    const sinter_fusion_check_options *o;
    const struct backend *backend;
    struct text_buf out;         /* what is printed */
    struct text_buf rows, names; /* the baseline as it is now */
    struct line *line;           /* the committed rows */
    int n_line;
    char *file;                    /* the committed baseline's text, cut into lines */
    char *header;                  /* its universe */
    const char *const *model_file; /* in place of the dummies */
    int n_model_file;
    int n_ok, n_all;
};

static void verdict(struct check *k, bool ok, const char *model, const char *mode, const char *what,
                    double value, double bound)
{
    k->n_all++;
    k->n_ok += ok;
    if (!ok)
        text_buf_printf(&k->out, "FAIL %s %s: %s %g, expected %g\n", model, mode, what, value,
                        bound);
}

/* ---- Baseline ---------------------------------------------------------------------------------
 */

static bool compares(const struct check *k)
{
    return k->o->baseline && !k->o->record;
}

static sinter_status read_baseline(struct check *k, sinter_error *err)
{
    size_t bytes, n = 0;
    char *save = NULL;
    TRY(host_read_file(k->host, k->o->baseline, 1 << 24, &k->file, &bytes, err));
    for (size_t i = 0; i < bytes; i++)
        n += k->file[i] == '\n';
    NEW(k->host, k->line, n + 1, err);
    for (char *t = strtok_r(k->file, "\n", &save); t; t = strtok_r(NULL, "\n", &save)) {
        if (t[0] == '#' && !k->header)
            k->header = t;
        else if (strncmp(t, "model,", 6) != 0 && t[0] != '#')
            k->line[k->n_line++].text = t;
    }
    return SINTER_OK;
}

static struct line *find_line(struct check *k, const char *text)
{
    for (int i = 0; i < k->n_line; i++)
        if (strcmp(k->line[i].text, text) == 0)
            return &k->line[i];
    return NULL;
}

static void count_row(struct check *k, const char *model, const char *label, const char *mode,
                      uint64_t count)
{
    char row[512];
    snprintf(row, sizeof row, "%s,%s,%s,%llu", model, label, mode, (unsigned long long)count);
    text_buf_printf(&k->rows, "%s\n", row);
    if (!compares(k))
        return;
    struct line *line = find_line(k, row);
    bool ok = line && !line->seen;
    k->n_all++;
    k->n_ok += ok;
    if (!ok)
        text_buf_printf(&k->out, "FAIL not in the baseline%s: %s\n", line ? " twice" : "", row);
    if (line)
        line->seen = true;
}

static bool is_of(const char *row, const char *model)
{
    size_t n = strlen(model);
    return strncmp(row, model, n) == 0 && row[n] == ',';
}

/* Is it a row of a dummy that this run leaves out? */
static bool left_out(const struct check *k, const char *row)
{
    struct dummy_options o;
    char name[64];
    if (k->n_model_file || !k->o->model || is_of(row, k->o->model))
        return false;
    for (int i = 0; dummy_small(i, &o, name); i++)
        if (is_of(row, name))
            return true;
    return false;
}

/* Rows of the baseline that did not happen. */
static void missing_rows(struct check *k)
{
    for (int i = 0; i < k->n_line; i++) {
        const char *text = k->line[i].text;
        if (k->line[i].seen || left_out(k, text))
            continue;
        k->n_all++;
        text_buf_printf(&k->out, "FAIL in the baseline, but did not happen: %s\n", text);
    }
}

static void print_universe(struct check *k, const struct fuse_table *t, struct text_buf *b)
{
    text_buf_printf(b, "# backend %s; models%s; labels", k->backend->name, k->names.text);
    for (int v = 0; v < t->n_single; v++)
        text_buf_printf(b, " %s", t->variant[v].label);
    text_buf_printf(b, "; modes");
    for (int i = 0; i < N_MODE; i++)
        text_buf_printf(b, " %s", modes[i].name);
}

/* The errors of a handle do not know its path. */
static sinter_status write_baseline(struct check *k, const struct text_buf *b, sinter_error *err)
{
    sinter_error why;
    int handle;
    TRY(host_open(k->host, k->o->baseline, true, &handle, err));
    sinter_status status = host_write(k->host, handle, b->text, b->bytes, &why);
    const sinter_status closed = host_close(k->host, handle, status == SINTER_OK ? &why : NULL);
    status = status == SINTER_OK ? closed : status;
    return status == SINTER_OK ? status
                               : status_fail(err, status, "%s: the baseline is not whole: %s",
                                             k->o->baseline, why.message);
}

static sinter_status check_universe(struct check *k, const struct fuse_table *t, sinter_error *err)
{
    struct text_buf b;
    TRY(text_buf_end(&k->names, err));
    text_buf_init(&b, k->host);
    print_universe(k, t, &b);
    sinter_status status = text_buf_end(&b, err);
    if (status == SINTER_OK && compares(k)) {
        bool ok = k->header && strcmp(k->header, b.text) == 0;
        k->n_all++;
        k->n_ok += ok;
        if (!ok)
            text_buf_printf(&k->out, "FAIL the universe changed\n  baseline: %s\n  now:      %s\n",
                            k->header ? k->header : "(none)", b.text);
    }
    if (status == SINTER_OK && k->o->record)
        status = text_buf_end(&k->rows, err);
    if (status == SINTER_OK && k->o->record) {
        text_buf_printf(&b, "\nmodel,label,mode,count\n");
        text_buf_add(&b, k->rows.text ? k->rows.text : "", k->rows.bytes);
        status = text_buf_end(&b, err);
        if (status == SINTER_OK)
            status = write_baseline(k, &b, err);
    }
    text_buf_free(&b);
    return status;
}

/* ---- One model ---------------------------------------------------------------------------------
 */

struct runner {
    sinter_engine *engine;
    sinter_session *s[2];
    float *logits;
};

static int32_t token(int i, int n_vocab)
{
    return (int32_t)((i * 7 + 3) % n_vocab);
}

static sinter_status open_runner(sinter_model *m, const char *backend, bool fusion,
                                 struct runner *r, sinter_error *err)
{
    const struct options *ho = host_options(m->host);
    struct fuse_options fuse = {fusion, ho->disable, ho->ignore_need};
    int n_ctx = m->model->plan.n_ctx_train < 128 ? m->model->plan.n_ctx_train : 128;
    sinter_engine_options o = {.backend = backend,
                               .n_ctx = n_ctx,
                               .n_session = 2,
                               .n_chunk = 64,
                               .type_k = "f32",
                               .type_v = "f32"};
    TRY(engine_create(m, &o, &fuse, 0, &r->engine, err));
    NEW(m->host, r->logits, 2 * MAX_ROWS * (size_t)m->model->plan.n_vocab, err);
    return SINTER_OK;
}

static void close_runner(sinter_host *host, struct runner *r)
{
    for (int i = 0; i < 2; i++)
        sinter_session_close(r->s[i]);
    sinter_engine_free(r->engine);
    host_free(host, r->logits);
    *r = (struct runner){0};
}

static struct fuse_stats *runner_stats(const struct runner *r)
{
    const struct model_home *home = r->engine->home;
    return home->backend->stats(home->device);
}

/* Logits, or the ids as numbers. */
static size_t take_results(const sinter_item *item, int n_vocab, float *to)
{
    size_t n = (size_t)item->n_out * (size_t)n_vocab;
    if (item->argmax) {
        for (int i = 0; i < item->n_out; i++)
            to[i] = (float)item->argmax[i];
        return (size_t)item->n_out;
    }
    if (n)
        memcpy(to, item->logits, n * sizeof *to);
    return n;
}

/* A past of PAST tokens, then the mode's step; *n = floats in r->logits. */
static sinter_status run_mode(struct runner *r, const struct mode *mode, int n_vocab, size_t *n,
                              sinter_error *err)
{
    int32_t past[PAST], ids[MAX_ROWS];
    sinter_item item[2];
    for (int i = 0; i < PAST; i++)
        past[i] = token(i, n_vocab);
    for (int i = 0; i < mode->n_row; i++)
        ids[i] = token(PAST + i, n_vocab);
    for (int s = 0; s < mode->n_seq; s++) {
        sinter_session_close(r->s[s]);
        r->s[s] = NULL;
        TRY(sinter_session_create(r->engine, &r->s[s], err));
        item[s] = (sinter_item){.session = r->s[s], .ids = past + s, .n_id = PAST - s};
        TRY(sinter_engine_step(r->engine, &item[s], 1, err));
        item[s] = (sinter_item){.session = r->s[s],
                                .ids = ids,
                                .n_id = mode->n_row,
                                .want = mode->want,
                                .want_argmax = mode->argmax};
    }
    fuse_stats_reset(runner_stats(r));
    TRY(sinter_engine_step(r->engine, item, mode->n_seq, err));
    *n = 0;
    for (int s = 0; s < mode->n_seq; s++)
        *n += take_results(&item[s], n_vocab, r->logits + *n);
    return SINTER_OK;
}

struct trio {
    struct runner fused, plain, ref;
};

static sinter_status check_mode(struct check *k, const char *name, const sinter_model *m,
                                struct trio *t, const struct mode *mode, sinter_error *err)
{
    int n_vocab = m->model->plan.n_vocab;
    double bound = nmse_bound(m);
    if (!k->n_model_file && bound > 1e-3)
        bound = 1e-3; /* no dummy has activations that are huge */
    size_t n;
    TRY(run_mode(&t->fused, mode, n_vocab, &n, err));
    const struct fuse_table *table = k->backend->table(t->fused.engine->home->device);
    for (int v = 0; v < table->n_single; v++) {
        uint64_t count = fuse_stats_get(runner_stats(&t->fused), v).executed;
        if (count)
            count_row(k, name, table->variant[v].label, mode->name, count);
    }
    TRY(run_mode(&t->plain, mode, n_vocab, &n, err));
    for (int v = 0; v < table->n_single; v++) {
        uint64_t count = fuse_stats_get(runner_stats(&t->plain), v).executed;
        if (count)
            verdict(k, false, name, mode->name, "executed while unfused", (double)count, 0);
    }
    TRY(run_mode(&t->ref, mode, n_vocab, &n, err));
    double unfused = nmse(t->fused.logits, t->plain.logits, n);
    double ref = nmse(t->fused.logits, t->ref.logits, n);
    if (mode->argmax && bound > NMSE_F32)
        return SINTER_OK; /* two tokens may be too close to call */
    verdict(k, unfused <= bound, name, mode->name, "NMSE fused/unfused", unfused, bound);
    verdict(k, ref <= bound, name, mode->name, "NMSE fused/ref", ref, bound);
    return SINTER_OK;
}

static sinter_status check_model(struct check *k, const char *name, const char *path,
                                 sinter_error *err)
{
    sinter_status status;
    struct trio t = {0};
    sinter_model *m = NULL;
    TRY_OUT(sinter_model_open(k->host, path, NULL, &m, err));
    TRY_OUT(open_runner(m, k->backend->name, true, &t.fused, err));
    TRY_OUT(open_runner(m, k->backend->name, false, &t.plain, err));
    TRY_OUT(open_runner(m, "ref", false, &t.ref, err));
    for (int i = 0; i < N_MODE; i++)
        TRY_OUT(check_mode(k, name, m, &t, &modes[i], err));
out:
    close_runner(k->host, &t.fused);
    close_runner(k->host, &t.plain);
    close_runner(k->host, &t.ref);
    sinter_model_close(m);
    return status;
}

/* A model that does not load or run is a failure, and the next one is tried. */
static void try_model(struct check *k, const char *name, const char *path)
{
    sinter_error why;
    k->n_all++;
    if (check_model(k, name, path, &why) == SINTER_OK)
        k->n_ok++;
    else
        text_buf_printf(&k->out, "FAIL %s: %s\n", name, why.message);
}

/* A file's name in the baseline: no folder, no ".gguf", nothing that a row or the header cuts. */
static void name_of(const char *path, char name[256])
{
    const char *base = strrchr(path, '/');
    snprintf(name, 256, "%s", base ? base + 1 : path);
    const size_t n = strlen(name);
    if (n > 5 && strcmp(name + n - 5, ".gguf") == 0)
        name[n - 5] = 0;
    for (char *c = name; *c; c++)
        *c = *c == ',' || *c == ';' || (unsigned char)*c <= ' ' ? '_' : *c;
}

static void check_files(struct check *k)
{
    char name[256];
    for (int i = 0; i < k->n_model_file; i++) {
        name_of(k->model_file[i], name);
        text_buf_printf(&k->names, " %s", name);
        try_model(k, name, k->model_file[i]);
    }
}

static sinter_status check_dummies(struct check *k, sinter_error *err)
{
    struct dummy_options o;
    char name[64], path[512];
    for (int i = 0; dummy_small(i, &o, name); i++) {
        text_buf_printf(&k->names, " %s", name);
        if (k->o->model && strcmp(k->o->model, name) != 0)
            continue;
        if (snprintf(path, sizeof path, "%s/%s.gguf", k->o->work, name) >= (int)sizeof path)
            return FAIL(err, USAGE, "the path of the folder '%s' is too long", k->o->work);
        TRY(dummy_write(k->host, &o, path, err));
        try_model(k, name, path);
    }
    return SINTER_OK;
}

/* What is to run: dummies, or files. A name that is neither is refused before anything runs. */
static sinter_status find_models(struct check *k, sinter_error *err)
{
    struct dummy_options o;
    struct text_buf names;
    char name[64];
    int handle;
    k->model_file = k->o->file;
    k->n_model_file = k->o->n_file;
    if (!k->o->model)
        return SINTER_OK;
    if (k->n_model_file)
        return FAIL(err, USAGE, "give a model or files, not both");
    for (int i = 0; dummy_small(i, &o, name); i++)
        if (strcmp(k->o->model, name) == 0)
            return SINTER_OK;
    sinter_status status = host_open(k->host, k->o->model, false, &handle, err);
    if (status == SINTER_OK) {
        k->model_file = &k->o->model;
        k->n_model_file = 1;
        return host_close(k->host, handle, err);
    }
    if (status != SINTER_E_NOT_FOUND)
        return status;
    text_buf_init(&names, k->host);
    for (int i = 0; dummy_small(i, &o, name); i++)
        text_buf_printf(&names, "%s%s", i ? ", " : "", name);
    status = text_buf_end(&names, err);
    if (status == SINTER_OK)
        status =
            FAIL(err, NOT_FOUND,
                 "there is no model '%.100s': no such file, and no such dummy; the dummies: %s",
                 k->o->model, names.text);
    text_buf_free(&names);
    return status;
}

/* ---- All ----------------------------------------------------------------------------------------
 */

static sinter_status check_all(struct check *k, sinter_error *err)
{
    const struct options *ho = host_options(k->host);
    const struct fuse_options fuse = {true, ho->disable, ho->ignore_need, NULL};
    struct device *d;
    TRY(find_models(k, err));
    TRY(k->backend->open(k->host, &d, err));
    sinter_status status = fuse_options_check(k->host, k->backend->table(d), &fuse, err);
    k->backend->close(d);
    TRY(status);
    if (compares(k))
        TRY(read_baseline(k, err));
    if (k->n_model_file)
        check_files(k);
    else
        TRY(check_dummies(k, err));
    if (compares(k))
        missing_rows(k);
    TRY(k->backend->open(k->host, &d, err));
    status = check_universe(k, k->backend->table(d), err);
    k->backend->close(d);
    TRY(status);
    text_buf_printf(&k->out, "fusion: %d/%d\n", k->n_ok, k->n_all);
    return k->n_ok == k->n_all
               ? SINTER_OK
               : FAIL(err, DATA, "%d of %d fusion checks failed%s", k->n_all - k->n_ok, k->n_all,
                      compares(k) ? "; if the change is meant, `sinter fusion check "
                                    "--record` writes a new baseline"
                                  : "");
}

sinter_status sinter_fusion_check(sinter_host *host, const sinter_fusion_check_options *options,
                                  sinter_write_fn write, void *ctx, sinter_error *err)
{
    sinter_fusion_check_options o;
    struct check k = {.host = host, .o = &o};
    sinter_error second;
    TRY(options_copy(&o, sizeof o, options, err));
    TRY(backend_find(o.backend ? o.backend : host_options(host)->backend, &k.backend, err));
    if (o.record && !o.baseline)
        return FAIL(err, USAGE, "name the baseline that is to be written");
    if (o.n_file < 0 || (o.n_file && !o.file))
        return FAIL(err, USAGE, "%d files to check, but no list of them", o.n_file);
    if (o.record && o.model)
        return FAIL(err, USAGE, "a baseline is recorded of all models, not of %s alone", o.model);
    text_buf_init(&k.out, host);
    text_buf_init(&k.rows, host);
    text_buf_init(&k.names, host);
    sinter_status status = check_all(&k, err);
    sinter_status shown = text_buf_flush(&k.out, write, ctx, &second);
    if (status == SINTER_OK && shown != SINTER_OK)
        status = status_fail(err, shown, "%s", second.message);
    text_buf_free(&k.out);
    text_buf_free(&k.rows);
    text_buf_free(&k.names);
    host_free(host, k.line);
    host_free(host, k.file);
    return status;
}
