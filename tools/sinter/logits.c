/* sinter logits: teacher-forced logits of a text, as a .npy file or the best of the last row. */
#include "tool.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct logits_args {
    const char *model, *prompt, *file, *ids, *type_k, *type_v, *out;
    int64_t chunk;
    bool no_bos, json;
};
#define AT(member) offsetof(struct logits_args, member)
static const struct opt opts[] = {
    OPT_MODEL(struct logits_args),
    {"prompt", "p", OPT_TEXT, AT(prompt), "TEXT", NULL, 0, 0, "the text; else --ids, -f or stdin"},
    {"file", "f", OPT_TEXT, AT(file), "FILE", NULL, 0, 0, "read the text from a file; - is stdin"},
    {"ids", NULL, OPT_TEXT, AT(ids), "1,2,3", NULL, 0, 0, "the tokens themselves"},
    {"no-bos", NULL, OPT_FLAG, AT(no_bos), NULL, NULL, 0, 0,
     "without the tokens that the model wants around a text"},
    {"ubatch-size", "ub", OPT_INT, AT(chunk), "N", "0", 0, 65536,
     "most tokens computed at once; 0 = what fits"},
    OPT_THREADS,
    OPT_CACHE_TYPES(struct logits_args),
    {"output", "o", OPT_TEXT, AT(out), "FILE", NULL, 0, 0,
     "write float32 [n_tok, n_vocab] as .npy; - is stdout"},
    OPT_JSON(struct logits_args),
    OPT_END};
#undef AT

struct job {
    struct tool *t;
    const char *path; /* of the model */
    sinter_model *model;
    sinter_engine *engine;
    sinter_session *session;
    sinter_model_info info;
    int32_t *id;
    size_t n_id;
    bool own_ids; /* from --ids, not from the library */
    FILE *file;
    float *last;       /* [n_vocab] */
    size_t bad0, bad1; /* tokens of the first step with a logit that is no number; 0, 0: none */
};

static sinter_status parse_ids(struct job *j, const char *text)
{
    struct tool *t = j->t;
    j->own_ids = true;
    j->id = calloc(strlen(text) + 1, sizeof *j->id);
    if (!j->id)
        return FAIL(t, MEMORY, "out of memory");
    for (const char *at = text + strspn(text, " ["); *at;) {
        char *end;
        errno = 0;
        long id = strtol(at, &end, 10);
        if (end == at || errno || id < 0 || id >= j->info.n_vocab)
            return FAIL(t, USAGE, "--ids: at \"%.20s\": each must be a token id, 0 to %d", at,
                        j->info.n_vocab - 1);
        j->id[j->n_id++] = (int32_t)id;
        at = end + strspn(end, " ]");
        if (*at && *at != ',')
            return FAIL(t, USAGE, "--ids: at \"%.20s\": separate ids by commas", at);
        if (*at && !at[1 + strspn(at + 1, " ]")])
            return FAIL(t, USAGE, "--ids: nothing stands behind the last comma");
        at += *at == ',';
        at += strspn(at, " ");
    }
    return SINTER_OK;
}

static sinter_status find_ids(struct job *j)
{
    struct tool *t = j->t;
    const struct logits_args *a = t->args;
    struct text text = {0};
    bool given = true;
    sinter_status status;
    if (a->ids && (a->prompt || a->file))
        return FAIL(t, USAGE, "both --ids and a text are given; give one");
    if (a->ids)
        TRY(opt_not_with(t, "ids", "no-bos"));
    if (a->ids)
        return parse_ids(j, a->ids);
    status = prompt_text(t, a->prompt, a->file, &text, &given);
    if (status == SINTER_OK && !given)
        status = FAIL(t, USAGE, "give a text (-p, -f, standard input) or --ids");
    unsigned flags =
        SINTER_TOKENIZE_PARSE_SPECIAL | (a->no_bos ? 0u : (unsigned)SINTER_TOKENIZE_SPECIAL);
    if (status == SINTER_OK)
        status = sinter_tokenize(j->model, text.v, text.n, flags, &j->id, &j->n_id, &t->err);
    text_free(&text);
    return status;
}

static bool put(struct job *j, const void *data, size_t bytes)
{
    if (j->file)
        return fwrite(data, 1, bytes, j->file) == bytes;
    return out_write(j->t, data, bytes);
}

/* Version 1.0 of the format; its header is padded to 64 bytes. */
static bool put_npy_head(struct job *j)
{
    char head[128], padded[129];
    int n = snprintf(head, sizeof head,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %d), }", j->n_id,
                     j->info.n_vocab);
    snprintf(padded, sizeof padded, "%-117s\n", head);
    const unsigned char before[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
    return n > 0 && n < 117 && put(j, before, sizeof before) && put(j, padded, 118);
}

/* Rows of one step: a step's logits should stay within 64 MiB. */
static int32_t chunk_of(const struct job *j)
{
    const struct logits_args *a = j->t->args;
    int64_t fit = (64 << 20) / ((int64_t)sizeof(float) * j->info.n_vocab);
    fit = fit < 1 ? 1 : fit > 512 ? 512 : fit;
    return (int32_t)(a->chunk ? a->chunk : fit);
}

static sinter_status run_steps(struct job *j, int32_t chunk)
{
    struct tool *t = j->t;
    const struct logits_args *a = t->args;
    size_t n_vocab = (size_t)j->info.n_vocab;
    struct bar bar;
    sinter_status status = SINTER_OK;
    bar_start(&bar, t, "logits");
    for (size_t at = 0; at < j->n_id && status == SINTER_OK;) {
        size_t n = j->n_id - at < (size_t)chunk ? j->n_id - at : (size_t)chunk;
        sinter_item item = {.session = j->session,
                            .ids = j->id + at,
                            .n_id = (int32_t)n,
                            .want = a->out ? SINTER_WANT_ALL : SINTER_WANT_LAST};
        status = sinter_engine_step(j->engine, &item, 1, &t->err);
        if (status != SINTER_OK)
            break;
        if (item.status != SINTER_OK && !j->bad1) {
            j->bad0 = at;
            j->bad1 = at + n;
        }
        if (a->out && !put(j, item.logits, (size_t)item.n_out * n_vocab * sizeof *item.logits))
            status = FAIL(t, IO, "%s: cannot be written: %s", a->out, strerror(errno));
        memcpy(j->last, item.logits + (size_t)(item.n_out - 1) * n_vocab,
               n_vocab * sizeof *j->last);
        at += n;
        bar_update(&bar, at, j->n_id);
    }
    bar_end(&bar);
    return status;
}

/* The ten highest of the last row. */
static sinter_status print_best(struct job *j)
{
    struct tool *t = j->t;
    const struct logits_args *a = t->args;
    for (int k = 0; k < 10 && k < j->info.n_vocab; k++) {
        int32_t best = -1;
        for (int32_t i = 0; i < j->info.n_vocab; i++)
            if (!isnan(j->last[i]) && (best < 0 || j->last[i] > j->last[best]))
                best = i;
        char *text, value[32] = "null"; /* JSON has no infinity */
        size_t n;
        TRY(sinter_detokenize(j->model, &best, 1, SINTER_TEXT_SPECIAL, &text, &n, &t->err));
        if (isfinite(j->last[best]))
            snprintf(value, sizeof value, "%.9g", (double)j->last[best]);
        if (a->json)
            out_printf(t, "%s{\"id\":%d,\"logit\":%s,\"text\":", k ? ",\n " : "[", best, value);
        else
            out_printf(t, "%8d %12.6f  ", best, (double)j->last[best]);
        out_json(t, text, n);
        out_printf(t, a->json ? "}" : "\n");
        sinter_free(t->host, text);
        j->last[best] = NAN; /* listed */
    }
    if (a->json)
        out_printf(t, "]\n");
    return SINTER_OK;
}

/* Is the output the model that was given, under whatever name? */
static bool is_model(const struct job *j, const char *path)
{
    struct stat a, b;
    return !stat(j->path, &a) && !stat(path, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static sinter_status work(struct job *j)
{
    struct tool *t = j->t;
    const struct logits_args *a = t->args;
    int32_t chunk = chunk_of(j);
    if (!j->n_id)
        return FAIL(t, USAGE, "the text has no tokens; give at least one");
    if (a->out && is_model(j, a->out))
        return FAIL(t, USAGE, "%s: the output would overwrite the model; name another file",
                    a->out);
    if (j->n_id > 1 << 24)
        return FAIL(t, LIMIT, "%zu tokens; at most %d", j->n_id, 1 << 24);
    sinter_engine_options o = {
        .n_ctx = (int32_t)j->n_id, .n_chunk = chunk, .type_k = a->type_k, .type_v = a->type_v};
    TRY(open_engine(t, j->model, &o, &j->engine));
    TRY(sinter_session_create(j->engine, &j->session, &t->err));
    j->last = calloc((size_t)j->info.n_vocab, sizeof *j->last);
    if (!j->last)
        return FAIL(t, MEMORY, "out of memory for a row of logits");
    if (a->out && strcmp(a->out, "-"))
        TRY(write_file(t, &j->file, a->out));
    if (a->out && !put_npy_head(j))
        return FAIL(t, IO, "%s: cannot be written: %s", a->out, strerror(errno));
    TRY(run_steps(j, chunk));
    return a->out || j->bad1 ? SINTER_OK : print_best(j);
}

static sinter_status run(struct tool *t)
{
    const struct logits_args *a = t->args;
    struct job j = {.t = t, .info.size = sizeof j.info};
    sinter_status status;
    TRY_OUT(model_path(t, a->model, &j.path));
    TRY_OUT(no_more_args(t));
    if (a->out)
        TRY_OUT(opt_not_with(t, "output", "json"));
    TRY_OUT(open_model(t, j.path, false, &j.model));
    sinter_model_describe(j.model, &j.info);
    TRY_OUT(find_ids(&j));
    status = work(&j);
out:
    if (j.file)
        status = close_file(t, j.file, a->out, status);
    if (status == SINTER_OK && j.bad1)
        status = FAIL(t, NUMERIC, "a logit of tokens %zu..%zu is not a number; run `sinter verify`",
                      j.bad0, j.bad1 - 1);
    free(j.last);
    if (j.own_ids)
        free(j.id);
    else
        sinter_free(t->host, j.id);
    sinter_session_close(j.session);
    sinter_engine_free(j.engine);
    sinter_model_close(j.model);
    return status;
}

const struct verb verb_logits = {
    .usage = "MODEL",
    .examples =
        "  sinter logits model.gguf -p \"The capital of France is\"\n"
        "  sinter logits model.gguf --ids 1,2,3 --backend ref -ctk f32 -ctv f32 -o ref.npy\n"
        "  sinter logits model.gguf -f text.txt --no-fusion -o unfused.npy\n",
    .opt = opts,
    .args_bytes = sizeof(struct logits_args),
    .run = run};
