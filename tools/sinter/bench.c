/* sinter bench: tokens per second of prompts and of generation, as llama-bench measures them.
 *
 * ppN: a prompt of N random tokens. tgN: N tokens one by one, full logits of each brought out, no
 * sampling. @ dN: behind N others, whose state is saved once and restored before each repetition.
 * One run warms up. Shares: of the measured read bandwidth (bytes of weights, K and V that a token
 * reads) and of the measured int8 rate (multiply-adds with matrices, the head once). */
#include "tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct bench_args {
    const char *model, *type_k, *type_v, *format;
    struct ints p, n, d;
    int64_t batch, ubatch, repeat;
    bool kernels, json;
};
#define AT(member) offsetof(struct bench_args, member)
static const struct opt opts[] = {
    OPT_MODEL(struct bench_args),
    {"n-prompt", "p", OPT_INTS, AT(p), "N,N", "512", 0, 1 << 20,
     "tokens of a prompt, each in turn; 0 = none"},
    {"n-gen", "n", OPT_INTS, AT(n), "N,N", "128", 0, 1 << 20,
     "tokens to generate, each in turn; 0 = none"},
    {"n-depth", "d", OPT_INTS, AT(d), "N,N", "0", 0, 1 << 20,
     "tokens in the context before, each in turn"},
    {"batch-size", "b", OPT_INT, AT(batch), "N", "2048", 1, 1 << 20,
     "prompt tokens up to the next logits"},
    {"ubatch-size", "ub", OPT_INT, AT(ubatch), "N", "512", 1, 65536,
     "most tokens computed at once (a step)"},
    OPT_THREADS,
    {"repetitions", "r", OPT_INT, AT(repeat), "N", "5", 1, 1000, "runs of each test"},
    OPT_CACHE_TYPES(struct bench_args),
    {"output", "o", OPT_WORD, AT(format), "md|csv|json", "md", 0, 0, "form of the table"},
    {"kernels", NULL, OPT_FLAG, AT(kernels), NULL, NULL, 0, 0, "the matrix kernels instead"},
    OPT_JSON(struct bench_args),
    OPT_END};
#undef AT

struct bench {
    struct tool *t;
    const struct bench_args *a;
    const char *path, *backend;
    sinter_model *model;
    sinter_model_info info;
    sinter_engine *engine;
    sinter_session *session;
    double read_rate, int8_rate; /* 0: not measured */
    uint64_t random;
    int32_t *id; /* of one step */
    void *saved; /* state of `depth` tokens */
    size_t saved_bytes;
    int32_t depth;
    int n_row;
};

struct row {
    int32_t p, n, d;
    int n_sample;
    double *ns, mean, sd;          /* tokens per second */
    double read_share, int8_share; /* 0: does not apply */
    char test[48];
};

/* ---- Running -----------------------------------------------------------------------------------
 */

static int32_t random_id(struct bench *b)
{
    b->random = b->random * 6364136223846793005u + 1442695040888963407u;
    return (int32_t)((b->random >> 33) % (uint64_t)b->info.n_vocab);
}

/* n tokens: logits at the end of every batch, as a caller of llama.cpp gets them. */
static sinter_status prompt(struct bench *b, int32_t n)
{
    const struct bench_args *a = b->a;
    for (int32_t done = 0; done < n;) {
        int64_t in_batch = done % a->batch, left = n - done;
        int64_t take = left < a->ubatch ? left : a->ubatch;
        take = take < a->batch - in_batch ? take : a->batch - in_batch;
        sinter_item item = {.session = b->session, .ids = b->id, .n_id = (int32_t)take};
        item.want =
            in_batch + take == a->batch || take == left ? SINTER_WANT_LAST : SINTER_WANT_NONE;
        for (int64_t i = 0; i < take; i++)
            b->id[i] = done + i == 0 && b->info.bos >= 0 ? b->info.bos : random_id(b);
        TRY(sinter_engine_step(b->engine, &item, 1, &b->t->err));
        done += (int32_t)take;
    }
    return SINTER_OK;
}

static sinter_status generate(struct bench *b, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        sinter_item item = {
            .session = b->session, .ids = b->id, .n_id = 1, .want = SINTER_WANT_LAST};
        b->id[0] = i == 0 && b->info.bos >= 0 ? b->info.bos : random_id(b);
        TRY(sinter_engine_step(b->engine, &item, 1, &b->t->err));
    }
    return SINTER_OK;
}

/* Empties the session, then brings `depth` tokens back. */
static sinter_status rewind_to(struct bench *b, int32_t depth)
{
    struct tool *t = b->t;
    TRY(sinter_session_trim(b->session, 0, &t->err));
    if (!depth)
        return SINTER_OK;
    if (b->saved && b->depth == depth)
        return sinter_session_restore(b->session, b->saved, b->saved_bytes, &t->err);
    sinter_free(t->host, b->saved);
    b->saved = NULL;
    TRY(prompt(b, depth));
    b->depth = depth;
    return sinter_session_save(b->session, 0, depth, &b->saved, &b->saved_bytes, &t->err);
}

static sinter_status measure(struct bench *b, struct row *r)
{
    struct bar bar;
    char what[64];
    sinter_status status;
    TRY(rewind_to(b, r->d)); /* one warm-up */
    TRY(r->p ? prompt(b, r->p) : generate(b, 1));
    snprintf(what, sizeof what, "%s", r->test);
    bar_start(&bar, b->t, what);
    for (int i = 0; i < r->n_sample; i++) {
        TRY_OUT(rewind_to(b, r->d));
        uint64_t start = clock_ns();
        TRY_OUT(r->p ? prompt(b, r->p) : generate(b, r->n));
        r->ns[i] = (double)(clock_ns() - start);
        bar_update(&bar, (uint64_t)i + 1, (uint64_t)r->n_sample);
    }
    status = SINTER_OK;
out:
    bar_end(&bar);
    return status;
}

static void evaluate(struct bench *b, struct row *r)
{
    const double n = r->p ? r->p : r->n;
    double sum = 0, squares = 0;
    sinter_cost cost;
    for (int i = 0; i < r->n_sample; i++)
        sum += n * 1e9 / r->ns[i];
    r->mean = sum / r->n_sample;
    for (int i = 0; i < r->n_sample; i++)
        squares += pow(n * 1e9 / r->ns[i] - r->mean, 2);
    r->sd = r->n_sample > 1 ? sqrt(squares / (r->n_sample - 1)) : 0;
    if (r->p && b->int8_rate > 0) {
        sinter_engine_cost(b->engine, r->d, r->p, &cost);
        r->int8_share = (double)cost.macs / n * r->mean / b->int8_rate;
    } else if (!r->p && b->read_rate > 0) {
        sinter_engine_cost(b->engine, r->d + r->n / 2, 1, &cost);
        r->read_share = (double)(cost.weight_bytes + cost.kv_bytes) * r->mean / b->read_rate;
    }
}

/* ---- Printing ----------------------------------------------------------------------------------
 */

static void size_text(uint64_t bytes, char out[24])
{
    if (bytes >= 1u << 30)
        snprintf(out, 24, "%.2f GiB", (double)bytes / (1 << 30));
    else
        snprintf(out, 24, "%.2f MiB", (double)bytes / (1 << 20));
}

static void params_text(uint64_t n, char out[24])
{
    if (n >= 1000000000u)
        snprintf(out, 24, "%.2f B", (double)n * 1e-9);
    else
        snprintf(out, 24, "%.2f M", (double)n * 1e-6);
}

static const char *model_name(const struct bench *b)
{
    return *b->info.name ? b->info.name : b->info.arch;
}

/* As much of the name as the column holds. */
static void short_name(const struct bench *b, char out[29])
{
    const char *name = model_name(b);
    size_t n = strlen(name);
    if (n > 28)
        for (n = 28; n && ((unsigned char)name[n] & 0xc0) == 0x80;)
            n--;
    snprintf(out, 29, "%.*s", (int)n, name);
    clean_line(out);
    for (char *c = out; (c = strchr(c, '|'));)
        *c = '/'; /* it would end the column */
}

static void print_md(struct bench *b, const struct row *r)
{
    char name[29], size[24], params[24], speed[48], share[2][16] = {"", ""};
    if (!b->n_row)
        out_printf(b->t,
                   "| %-28s | %10s | %8s | %-7s | %7s | %14s | %18s | %9s | %6s |\n"
                   "| %s | %s: | %s: | %s | %s: | %s: | %s: | %s: | %s: |\n",
                   "model", "size", "params", "backend", "threads", "test", "t/s", "bandwidth",
                   "int8", "----------------------------", "---------", "-------", "-------",
                   "------", "-------------", "-----------------", "--------", "-----");
    short_name(b, name);
    size_text(b->info.weight_bytes, size);
    params_text(b->info.n_weight, params);
    snprintf(speed, sizeof speed, "%.2f ± %.2f", r->mean, r->sd);
    if (r->read_share > 0)
        snprintf(share[0], sizeof share[0], "%.1f%%", r->read_share * 100);
    if (r->int8_share > 0)
        snprintf(share[1], sizeof share[1], "%.1f%%", r->int8_share * 100);
    /* "±" is two bytes and one column */
    out_printf(b->t, "| %-28s | %10s | %8s | %-7s | %7d | %14s | %19s | %9s | %6s |\n", name, size,
               params, b->backend, sinter_host_n_thread(b->t->host), r->test, speed, share[0],
               share[1]);
}

static void csv_text(struct tool *t, const char *text)
{
    char line[4096];
    snprintf(line, sizeof line, "%s", text);
    clean_line(line);
    out_write(t, "\"", 1);
    for (text = line; *text; text++)
        out_printf(t, *text == '"' ? "\"\"" : "%c", *text);
    out_write(t, "\",", 2);
}

static void print_csv(struct bench *b, const struct row *r)
{
    struct tool *t = b->t;
    if (!b->n_row)
        out_printf(t, "model_filename,model_type,model_size,model_n_params,backend,n_threads,"
                      "n_batch,n_ubatch,type_k,type_v,n_prompt,n_gen,n_depth,test,avg_ts,"
                      "stddev_ts,read_share,int8_share\n");
    csv_text(t, b->path);
    csv_text(t, model_name(b));
    out_printf(t, "%llu,%llu,%s,%d,%lld,%lld,%s,%s,%d,%d,%d,\"%s\",%.4f,%.4f,%.4f,%.4f\n",
               (unsigned long long)b->info.weight_bytes, (unsigned long long)b->info.n_weight,
               b->backend, sinter_host_n_thread(t->host), (long long)b->a->batch,
               (long long)b->a->ubatch, b->a->type_k, b->a->type_v, r->p, r->n, r->d, r->test,
               r->mean, r->sd, r->read_share, r->int8_share);
}

static void print_samples(struct tool *t, const struct row *r, bool speed)
{
    for (int i = 0; i < r->n_sample; i++)
        out_printf(t, speed ? "%s%.4f" : "%s%.0f", i ? "," : "",
                   speed ? (r->p ? r->p : r->n) * 1e9 / r->ns[i] : r->ns[i]);
}

static void print_json(struct bench *b, const struct row *r)
{
    struct tool *t = b->t;
    out_printf(t, b->n_row ? ",\n{\"model_filename\":" : "[{\"model_filename\":");
    out_json(t, b->path, strlen(b->path));
    out_printf(t, ",\"model_type\":");
    out_json(t, model_name(b), strlen(model_name(b)));
    out_printf(t,
               ",\"model_size\":%llu,\"model_n_params\":%llu,\"backend\":\"%s\",\"n_threads\":%d,"
               "\"n_batch\":%lld,\"n_ubatch\":%lld,\"type_k\":\"%s\",\"type_v\":\"%s\","
               "\"n_prompt\":%d,\"n_gen\":%d,\"n_depth\":%d,\"test\":\"%s\",\"avg_ts\":%.4f,"
               "\"stddev_ts\":%.4f,\"samples_ns\":[",
               (unsigned long long)b->info.weight_bytes, (unsigned long long)b->info.n_weight,
               b->backend, sinter_host_n_thread(t->host), (long long)b->a->batch,
               (long long)b->a->ubatch, b->a->type_k, b->a->type_v, r->p, r->n, r->d, r->test,
               r->mean, r->sd);
    print_samples(t, r, false);
    out_printf(t, "],\"samples_ts\":[");
    print_samples(t, r, true);
    out_printf(t,
               "],\"read_rate\":%.0f,\"int8_rate\":%.0f,\"read_share\":%.4f,"
               "\"int8_share\":%.4f}",
               b->read_rate, b->int8_rate, r->read_share, r->int8_share);
}

static void print(struct bench *b, const struct row *r)
{
    switch (b->a->json ? 'j' : b->a->format[0]) {
    case 'j':
        print_json(b, r);
        break;
    case 'c':
        print_csv(b, r);
        break;
    case 'm':
        print_md(b, r);
        break;
    }
    b->n_row++;
    out_flush(b->t);
}

/* ---- The verb ----------------------------------------------------------------------------------
 */

static sinter_status one(struct bench *b, int32_t p, int32_t n, int32_t d)
{
    struct row r = {.p = p, .n = n, .d = d, .n_sample = (int)b->a->repeat};
    char depth[24] = "";
    if (!p && !n)
        return SINTER_OK;
    if (d)
        snprintf(depth, sizeof depth, " @ d%d", d);
    snprintf(r.test, sizeof r.test, "%s%d%s", p ? "pp" : "tg", p ? p : n, depth);
    r.ns = calloc((size_t)r.n_sample, sizeof *r.ns);
    if (!r.ns)
        return FAIL(b->t, MEMORY, "out of memory");
    sinter_status status = measure(b, &r);
    if (status == SINTER_OK) {
        evaluate(b, &r);
        print(b, &r);
    }
    free(r.ns);
    return status;
}

static sinter_status all(struct bench *b)
{
    const struct bench_args *a = b->a;
    for (int k = 0; k < a->d.n; k++) {
        for (int i = 0; i < a->p.n; i++)
            TRY(one(b, a->p.v[i], 0, a->d.v[k]));
        for (int i = 0; i < a->n.n; i++)
            TRY(one(b, 0, a->n.v[i], a->d.v[k]));
    }
    if (!b->n_row)
        return FAIL(b->t, USAGE, "nothing to measure: both -p and -n are 0");
    if (a->json || a->format[0] == 'j')
        out_printf(b->t, "]\n");
    return SINTER_OK;
}

static int32_t most(const struct ints *list)
{
    int32_t n = 0;
    for (int i = 0; i < list->n; i++)
        n = list->v[i] > n ? list->v[i] : n;
    return n;
}

static sinter_status prepare(struct bench *b)
{
    struct tool *t = b->t;
    const struct bench_args *a = b->a;
    int32_t p = most(&a->p), n = most(&a->n), depth = most(&a->d);
    int32_t n_ctx = depth + (p > n ? p : n);
    sinter_engine_options o = {.n_ctx = n_ctx > 0 ? n_ctx : 1,
                               .n_chunk = (int32_t)a->ubatch,
                               .type_k = a->type_k,
                               .type_v = a->type_v};
    TRY(open_model(t, b->path, false, &b->model));
    b->info.size = sizeof b->info;
    sinter_model_describe(b->model, &b->info);
    TRY(open_engine(t, b->model, &o, &b->engine));
    TRY(sinter_session_create(b->engine, &b->session, &t->err));
    b->id = calloc((size_t)a->ubatch, sizeof *b->id);
    if (!b->id)
        return FAIL(t, MEMORY, "out of memory");
    b->backend = host_value(t, "backend");
    if (strcmp(b->backend, "cpu") != 0)
        return SINTER_OK; /* the shares are of this machine's cores */
    sinter_status status = sinter_machine_measure(t->host, &b->read_rate, &b->int8_rate, &t->err);
    if (status != SINTER_E_UNSUPPORTED)
        return status;
    note(t, "no shares: %s", t->err.message);
    return SINTER_OK;
}

static sinter_status run(struct tool *t)
{
    struct bench b = {.t = t, .a = t->args, .random = 1};
    sinter_status status;
    if (b.a->kernels) {
        static const char *const used[] = {"threads", "output", "json", NULL};
        TRY(no_more_args(t));
        TRY(opt_only_with(t, "kernels", used));
        if (b.a->format[0] == 'c')
            return FAIL(t, USAGE, "-o csv: kernels are printed as text or as JSON (-o json) only");
        return sinter_kernels_bench(t->host, b.a->json || b.a->format[0] == 'j', out_write, t,
                                    &t->err);
    }
    TRY(model_path(t, b.a->model, &b.path));
    TRY(no_more_args(t));
    TRY_OUT(prepare(&b));
    status = all(&b);
out:
    free(b.id);
    sinter_free(t->host, b.saved);
    sinter_session_close(b.session);
    sinter_engine_free(b.engine);
    sinter_model_close(b.model);
    return status;
}

const struct verb verb_bench = {.usage = "-m MODEL",
                                .examples = "  sinter bench -m model.gguf\n"
                                            "  sinter bench -m model.gguf -p 512 -n 64 -d 0,4096\n"
                                            "  sinter bench -m model.gguf -o json >speed.json\n"
                                            "  sinter bench --kernels\n",
                                .opt = opts,
                                .args_bytes = sizeof(struct bench_args),
                                .run = run};
