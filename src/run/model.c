/* sinter_model: a file with its plan and vocabulary, counted; and its homes on backends. */
#include "run/run.h"

#include "base/options.h"

#include <string.h>

static sinter_status open_file(sinter_model *m, const char *path, bool vocab_only,
                               sinter_error *err)
{
    if (vocab_only) {
        TRY(gguf_open(m->host, path, &m->gguf, err));
        return vocab_open(m->gguf, NULL, &m->vocab, err);
    }
    TRY(model_open(m->host, path, &m->model, err));
    return vocab_open(m->model->gguf, NULL, &m->vocab, err);
}

sinter_status sinter_model_open(sinter_host *host, const char *path,
                                const sinter_model_options *options, sinter_model **out,
                                sinter_error *err)
{
    sinter_model_options o;
    sinter_model *m;
    *out = NULL;
    TRY(options_copy(&o, sizeof o, options, err));
    host_freeze_options(host);
    NEW(host, m, 1, err);
    m->host = host;
    atomic_init(&m->count, 1);
    sinter_status status = open_file(m, path, o.vocab_only, err);
    if (status != SINTER_OK) {
        model_unref(m);
        return status;
    }
    *out = m;
    return SINTER_OK;
}

void model_unref(sinter_model *m)
{
    if (!m || atomic_fetch_sub(&m->count, 1) > 1)
        return;
    for (int i = 0; i < m->n_home; i++) {
        m->home[i].backend->unload(m->home[i].device, m->home[i].weights);
        m->home[i].backend->close(m->home[i].device);
    }
    vocab_free(m->vocab);
    model_close(m->model);
    gguf_close(m->gguf);
    host_free(m->host, m);
}

void sinter_model_close(sinter_model *model)
{
    model_unref(model);
}

sinter_status model_find_home(sinter_model *m, const struct backend *backend,
                              struct model_home **out, sinter_error *err)
{
    for (int i = 0; i < m->n_home; i++)
        if (m->home[i].backend == backend) {
            *out = &m->home[i];
            return SINTER_OK;
        }
    if (m->n_home == MODEL_MAX_HOME)
        return FAIL(err, LIMIT, "a model on more than %d backends", MODEL_MAX_HOME);
    struct model_home *home = &m->home[m->n_home];
    *home = (struct model_home){.backend = backend};
    TRY(backend->open(m->host, &home->device, err));
    m->n_home++;
    *out = home;
    return SINTER_OK;
}

static const char *general_name(const struct gguf *g)
{
    struct gguf_string s;
    return gguf_get_string(g, "general.name", &s, NULL) == SINTER_OK ? s.text : "";
}

static void describe(const sinter_model *m, sinter_model_info *info)
{
    const struct gguf *g = m->model ? m->model->gguf : m->gguf;
    const struct vocab_special *special = vocab_special(m->vocab);
    size_t bytes;
    *info = (sinter_model_info){.arch = "",
                                .name = general_name(g),
                                .n_vocab = vocab_n(m->vocab),
                                .bos = special->bos,
                                .eos = special->eos,
                                .has_vocab = vocab_model(m->vocab) != VOCAB_NONE,
                                .has_template = vocab_template(m->vocab, &bytes) != NULL};
    if (!m->model)
        return;
    info->arch = m->model->plan.arch->name;
    info->n_vocab = m->model->plan.n_vocab;
    info->n_layer = m->model->plan.n_layer;
    info->n_ctx_train = m->model->plan.n_ctx_train;
    info->d_model = m->model->plan.d_model;
    for (size_t i = 0; i < g->n_tensor; i++) {
        if (!m->model->bound[i])
            continue;
        const struct gguf_tensor *t = &g->tensor[i];
        info->weight_bytes += t->bytes;
        info->n_weight += (uint64_t)(t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3]);
    }
}

void sinter_model_describe(const sinter_model *model, sinter_model_info *info)
{
    sinter_model_info whole;
    describe(model, &whole);
    result_copy(info, &whole, sizeof whole);
}

sinter_status sinter_model_print(const sinter_model *m, bool json, sinter_write_fn write, void *ctx,
                                 sinter_error *err)
{
    struct text_buf b;
    text_buf_init(&b, m->host);
    const struct gguf *g = m->model ? m->model->gguf : m->gguf;
    if (json)
        text_buf_printf(&b, "{\"file\":");
    gguf_print(g, &b, json);
    text_buf_printf(&b, json ? ",\"vocab\":" : "\n");
    vocab_print(m->vocab, &b, json);
    if (m->model) {
        text_buf_printf(&b, json ? ",\"model\":" : "\n");
        model_print(m->model, &b, json);
    }
    if (json)
        text_buf_printf(&b, "}\n");
    sinter_status status = text_buf_flush(&b, write, ctx, err);
    text_buf_free(&b);
    return status;
}
