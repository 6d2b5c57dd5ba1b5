/* sinter plan: bytes per class that an engine would take; refuses what memory cannot hold. */
#include "tool.h"

struct plan_args {
    const char *model, *type_k, *type_v;
    int64_t ctx, chunk, n_session;
    bool steps, json;
};
#define AT(member) offsetof(struct plan_args, member)
static const struct opt opts[] = {
    OPT_MODEL(struct plan_args),
    OPT_CTX(struct plan_args),
    {"ubatch-size", "ub", OPT_INT, AT(chunk), "N", "512", 1, 65536,
     "most tokens computed at once (a step)"},
    {"parallel", "np", OPT_INT, AT(n_session), "N", "1", 1, 1024, "sessions at once"},
    OPT_CACHE_TYPES(struct plan_args),
    OPT_THREADS,
    {"steps", NULL, OPT_FLAG, AT(steps), NULL, NULL, 0, 0,
     "load the model and show the steps of a prompt and of a token"},
    OPT_JSON(struct plan_args),
    OPT_END};
#undef AT

/* Plans are made when they are first needed: a short prompt, then one token. */
static sinter_status print_steps(struct tool *t, sinter_model *model, sinter_engine_options *o)
{
    const struct plan_args *a = t->args;
    static const int32_t ids[8] = {0};
    sinter_engine *engine = NULL;
    sinter_session *session = NULL;
    sinter_status status;
    TRY_OUT(open_engine(t, model, o, &engine));
    TRY_OUT(sinter_session_create(engine, &session, &t->err));
    for (int i = 0; i < 2; i++) {
        int32_t room = sinter_engine_n_ctx(engine) - 1, n = i ? 1 : 8;
        sinter_item item = {.session = session, .ids = ids, .want = SINTER_WANT_LAST};
        item.n_id = n > room && !i ? room : n;
        item.n_id = item.n_id > a->chunk ? (int32_t)a->chunk : item.n_id;
        if (item.n_id > 0)
            TRY_OUT(sinter_engine_step(engine, &item, 1, &t->err));
    }
    status = sinter_engine_report(engine, SINTER_REPORT_PLAN, a->json, out_write, t, &t->err);
out:
    sinter_session_close(session);
    sinter_engine_free(engine);
    return status;
}

static sinter_status run(struct tool *t)
{
    const struct plan_args *a = t->args;
    sinter_engine_options o = {.size = sizeof o,
                               .n_ctx = (int32_t)a->ctx,
                               .n_chunk = (int32_t)a->chunk,
                               .n_session = (int32_t)a->n_session,
                               .type_k = a->type_k,
                               .type_v = a->type_v};
    sinter_model *model;
    const char *path;
    TRY(model_path(t, a->model, &path));
    TRY(no_more_args(t));
    TRY(open_model(t, path, false, &model));
    sinter_status status = a->steps ? print_steps(t, model, &o)
                                    : sinter_plan_print(model, &o, a->json, out_write, t, &t->err);
    sinter_model_close(model);
    return status;
}

const struct verb verb_plan = {.usage = "MODEL",
                               .examples = "  sinter plan model.gguf -c 8192\n"
                                           "  sinter plan model.gguf --memory 4096 --json\n"
                                           "  sinter plan model.gguf --steps\n",
                               .opt = opts,
                               .args_bytes = sizeof(struct plan_args),
                               .run = run};
