/* sinter profile: time per row of the fusion table, sorted. The first tokens are not counted. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

enum { N_SKIP = 4 }; /* tokens run before counting: plans, pages and caches are warm then */

struct profile_args {
    const char *model, *type_k, *type_v;
    int64_t n, p, depth, chunk;
    bool json;
};
#define AT(member) offsetof(struct profile_args, member)
static const struct opt opts[] = {
    OPT_MODEL(struct profile_args),
    {"n-gen", "n", OPT_INT, AT(n), "N", "32", 0, 1 << 20, "tokens to generate"},
    {"n-prompt", "p", OPT_INT, AT(p), "N", "0", 0, 1 << 20, "profile a prompt of N tokens instead"},
    {"n-depth", "d", OPT_INT, AT(depth), "N", "0", 0, 1 << 20, "tokens in the context before"},
    {"ubatch-size", "ub", OPT_INT, AT(chunk), "N", "512", 1, 65536,
     "most tokens computed at once (a step)"},
    OPT_THREADS,
    OPT_CACHE_TYPES(struct profile_args),
    OPT_JSON(struct profile_args),
    OPT_END};
#undef AT

struct job {
    struct tool *t;
    const struct profile_args *a;
    sinter_engine *engine;
    sinter_session *session;
    sinter_model_info info;
    int32_t *ids; /* of one step */
};

static bool swallow(void *ctx, const char *text, size_t bytes)
{
    (void)ctx;
    (void)text;
    (void)bytes;
    return true;
}

/* n tokens in steps of at most `chunk`. */
static sinter_status feed(struct job *j, int64_t n, int64_t chunk)
{
    for (int64_t done = 0; done < n;) {
        int64_t take = n - done < chunk ? n - done : chunk;
        sinter_item item = {.session = j->session, .ids = j->ids, .n_id = (int32_t)take};
        item.want = done + take == n || chunk == 1 ? SINTER_WANT_LAST : SINTER_WANT_NONE;
        for (int64_t i = 0; i < take; i++)
            j->ids[i] = (int32_t)((done + i) * 7919 % j->info.n_vocab);
        TRY(sinter_engine_step(j->engine, &item, 1, &j->t->err));
        done += take;
    }
    return SINTER_OK;
}

static sinter_status measure(struct job *j)
{
    const struct profile_args *a = j->a;
    int64_t n = a->p ? a->p : a->n, chunk = a->p ? a->chunk : 1;
    struct tool *t = j->t;
    TRY(feed(j, a->depth, a->chunk));
    if (a->p) { /* one whole prompt warms up */
        TRY(feed(j, n, chunk));
        TRY(sinter_session_trim(j->session, 0, &t->err));
        TRY(feed(j, a->depth, a->chunk));
    } else {
        TRY(feed(j, N_SKIP, 1));
    }
    /* The report starts the counters anew. */
    TRY(sinter_engine_report(j->engine, SINTER_REPORT_PROFILE, false, swallow, NULL, &t->err));
    uint64_t start = clock_ns();
    TRY(feed(j, n, chunk));
    double s = (double)(clock_ns() - start) * 1e-9;
    note(t, "%lld tokens of %s behind %lld others, %.3f ms a token, %.1f t/s", (long long)n,
         a->p ? "a prompt" : "an answer", (long long)(a->depth + (a->p ? 0 : N_SKIP)),
         s * 1e3 / (double)n, (double)n / s);
    return sinter_engine_report(j->engine, SINTER_REPORT_PROFILE, a->json, out_write, t, &t->err);
}

static sinter_status run(struct tool *t)
{
    struct job j = {.t = t, .a = t->args, .info.size = sizeof j.info};
    const struct profile_args *a = j.a;
    sinter_engine_options o = {.n_ctx = (int32_t)(a->depth + (a->p ? a->p : a->n) + N_SKIP),
                               .n_chunk = (int32_t)a->chunk,
                               .type_k = a->type_k,
                               .type_v = a->type_v,
                               .profile = true};
    sinter_model *model = NULL;
    const char *path;
    sinter_status status;
    TRY_OUT(model_path(t, a->model, &path));
    TRY_OUT(no_more_args(t));
    if (!a->n && !a->p)
        return FAIL(t, USAGE, "nothing to profile: give -n or -p");
    if (a->n && a->p)
        TRY(opt_not_with(t, "n-prompt", "n-gen"));
    TRY_OUT(open_model(t, path, false, &model));
    sinter_model_describe(model, &j.info);
    TRY_OUT(open_engine(t, model, &o, &j.engine));
    TRY_OUT(sinter_session_create(j.engine, &j.session, &t->err));
    j.ids = calloc((size_t)a->chunk, sizeof *j.ids);
    if (!j.ids)
        TRY_OUT(FAIL(t, MEMORY, "out of memory"));
    status = measure(&j);
out:
    free(j.ids);
    sinter_session_close(j.session);
    sinter_engine_free(j.engine);
    sinter_model_close(model);
    return status;
}

const struct verb verb_profile = {.usage = "MODEL",
                                  .examples = "  sinter profile model.gguf\n"
                                              "  sinter profile model.gguf -p 512\n"
                                              "  sinter profile model.gguf -n 64 -d 4096 --json\n",
                                  .opt = opts,
                                  .args_bytes = sizeof(struct profile_args),
                                  .run = run};
