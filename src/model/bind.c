/* Ring 1 of strict loading: each tensor of the trunk is bound exactly once, whole or as parts of a
 * fused one, with the shape that the plan asks for; any other is named in skip.def, left out by an
 * override, or refused. Driven by tensors.def. */
#include "model/internal.h"

#include "base/options.h"

#include <inttypes.h>
#include <string.h>

static const struct gguf_tensor *find(const struct model *m, const char *name)
{
    if (options_list_has(host_options(m->host)->skip_tensor, name))
        return NULL;
    return gguf_find_tensor(m->gguf, name);
}

static sinter_status check_shape(const struct model *m, const struct gguf_tensor *t,
                                 enum tensor_kind kind, int64_t n_mat, int64_t rows, int64_t cols,
                                 sinter_error *err)
{
    int n_dim = kind == KIND_EXPERTS ? 3 : kind == KIND_MATRIX ? 2 : 1;
    int64_t want[4] = {cols, n_dim > 1 ? rows : 1, n_dim > 2 ? n_mat : 1, 1};
    if (t->type == QUANT_N) {
        const char *name = quant_gguf_name(t->type_id);
        return FAIL(err, UNSUPPORTED, "%s: tensor %s has type %s (%u), which sinter cannot decode",
                    m->gguf->path, t->name, name ? name : "unknown", t->type_id);
    }
    if (kind == KIND_VECTOR && !(quant_row(t->type)->flags & QUANT_FLOAT))
        return FAIL(err, UNSUPPORTED,
                    "%s: tensor %s has type %s; a vector must be of floats (F32, F16 or BF16)",
                    m->gguf->path, t->name, quant_row(t->type)->name);
    if (memcmp(t->dim, want, sizeof want) == 0)
        return SINTER_OK;
    return FAIL(err, DATA,
                "%s: tensor %s is [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "], its "
                "metadata ask for [%" PRId64 ", %" PRId64 ", %" PRId64 ", 1]: file and metadata do "
                "not belong together",
                m->gguf->path, t->name, t->dim[0], t->dim[1], t->dim[2], t->dim[3], want[0],
                want[1], want[2]);
}

static sinter_status add_weight(struct model *m, struct model_weight w, sinter_error *err)
{
    if (!w.name)
        return host_no_memory(err, 1, TENSOR_NAME_BYTES, "a weight's name");
    m->weight_of[(w.layer + 1) * W_N + (int)w.id] = m->n_weight;
    m->weight[m->n_weight++] = w;
    m->bound[w.slice.tensor] = 1;
    return SINTER_OK;
}

static sinter_status bind_whole(struct model *m, int layer, enum tensor_id id,
                                const struct gguf_tensor *t, sinter_error *err)
{
    const struct tensor_row *row = &tensor_rows[id];
    int64_t rows = tensor_size(&m->plan, layer, row->rows);
    int64_t cols = tensor_size(&m->plan, layer, row->cols);
    int64_t n_mat = row->kind == KIND_EXPERTS ? tensor_size(&m->plan, layer, DIM_EXPERT) : 1;
    TRY(check_shape(m, t, row->kind, n_mat, rows, cols, err));
    struct model_weight w = {
        .id = id,
        .layer = layer,
        .slice = {.tensor = (int)(t - m->gguf->tensor),
                  .n_row = (int32_t)rows,
                  .period = (int32_t)rows,
                  .n_block = 1,
                  .n_mat = (int32_t)n_mat},
        .type = t->type,
        .n_row = (int32_t)rows,
        .n_col = (int32_t)cols,
        .name = t->name,
    };
    return add_weight(m, w, err);
}

/* Sizes of a fused tensor: rows (of a vector: columns) of its parts one after another. */
static int64_t part_rows(const struct model *m, int layer, enum tensor_id id)
{
    const struct tensor_row *row = &tensor_rows[id];
    return tensor_size(&m->plan, layer, row->kind == KIND_VECTOR ? row->cols : row->rows);
}

static sinter_status bind_parts(struct model *m, int layer, const struct fused_row *f,
                                const struct gguf_tensor *t, int64_t total, sinter_error *err)
{
    const struct tensor_row *row = &tensor_rows[f->part[0]];
    bool vector = row->kind == KIND_VECTOR;
    int64_t cols = vector ? total : tensor_size(&m->plan, layer, row->cols);
    int64_t n_mat = row->kind == KIND_EXPERTS ? tensor_size(&m->plan, layer, DIM_EXPERT) : 1;
    TRY(check_shape(m, t, row->kind, n_mat, vector ? 1 : total, cols, err));
    int32_t at = 0;
    for (int i = 0; i < f->n_part; i++) {
        int32_t n = (int32_t)part_rows(m, layer, f->part[i]);
        struct model_weight w = {
            .id = f->part[i],
            .layer = layer,
            .slice = {.tensor = (int)(t - m->gguf->tensor), .n_block = 1, .n_mat = (int32_t)n_mat},
            .type = t->type,
            .n_row = vector ? 1 : n,
            .n_col = vector ? n : (int32_t)cols,
            .name = arena_printf(&m->arena, "%s[%d:%d]", t->name, at, at + n),
        };
        w.slice.n_row = w.slice.period = w.n_row;
        w.slice.row0 = vector ? 0 : at;
        w.slice.col0 = vector ? at : 0;
        w.slice.n_col = vector ? n : 0;
        TRY(add_weight(m, w, err));
        at += n;
    }
    return SINTER_OK;
}

/* Does `t` hold all parts? Where it has the name of a part (ffn_up), only its size can tell. */
static bool is_fused(const struct fused_row *f, const struct gguf_tensor *t, int64_t total)
{
    for (int i = 0; i < f->n_part; i++)
        if (strcmp(tensor_rows[f->part[i]].name, f->name) == 0)
            return t->dim[tensor_rows[f->part[i]].kind == KIND_VECTOR ? 0 : 1] == total;
    return true;
}

static sinter_status bind_fused(struct model *m, int layer, const struct fused_row *f,
                                sinter_error *err)
{
    char name[TENSOR_NAME_BYTES];
    int64_t total = 0;
    if (tensor_rows[f->part[0]].need(m->plan.arch) == TENSOR_NEVER ||
        find(m, tensor_name(&m->plan, layer, tensor_rows[f->part[0]].name, name)))
        return SINTER_OK;
    const struct gguf_tensor *t = find(m, tensor_name(&m->plan, layer, f->name, name));
    for (int i = 0; i < f->n_part; i++)
        total += part_rows(m, layer, f->part[i]);
    if (!t || !is_fused(f, t, total))
        return SINTER_OK;
    return bind_parts(m, layer, f, t, total, err);
}

static sinter_status bind_one(struct model *m, int layer, enum tensor_id id, sinter_error *err)
{
    const struct tensor_row *row = &tensor_rows[id];
    enum tensor_need need = row->need(m->plan.arch);
    char name[TENSOR_NAME_BYTES];
    if (need == TENSOR_NEVER || model_weight(m, layer, id))
        return SINTER_OK;
    const struct gguf_tensor *t = find(m, tensor_name(&m->plan, layer, row->name, name));
    if (t)
        return bind_whole(m, layer, id, t, err);
    if (need == TENSOR_MAY)
        return SINTER_OK;
    return FAIL(err, NOT_FOUND, "%s: tensor %s is missing%s: the file is incomplete, or not of %s",
                m->gguf->path, name,
                gguf_find_tensor(m->gguf, name) ? " (left out by --skip-tensor)" : "",
                m->plan.arch->name);
}

/* Whatever no graph reads. */
static sinter_status rest(struct model *m, sinter_error *err)
{
    for (size_t i = 0; i < m->gguf->n_tensor; i++) {
        const char *name = m->gguf->tensor[i].name;
        const char *why = skip_tensor_reason(name);
        if (m->bound[i])
            continue;
        if (options_list_has(host_options(m->host)->skip_tensor, name))
            TRY(model_skip_add(m, name, "left out by --skip-tensor", true, err));
        else if (why)
            TRY(model_skip_add(m, name, why, false, err));
        else
            return FAIL(err, UNSUPPORTED,
                        "%s: tensor %s is nothing that a %s model of sinter reads: its answers "
                        "would be wrong; --skip-tensor %s leaves it out",
                        m->gguf->path, name, m->plan.arch->name, name);
    }
    return SINTER_OK;
}

/* The vocabulary's size is that of the embedding table; keys that tell another size are wrong. */
static sinter_status find_vocab(struct model *m, const struct keys *k, sinter_error *err)
{
    const struct gguf_tensor *t = find(m, tensor_rows[W_TOKEN_EMBD].name);
    const struct gguf_kv *tokens = gguf_find(m->gguf, "tokenizer.ggml.tokens");
    const char *path = m->gguf->path;
    if (!t)
        return FAIL(err, NOT_FOUND,
                    "%s: tensor %s is missing: the file holds a vocabulary at most; inspect it "
                    "with --vocab-only, or give a file with weights",
                    path, tensor_rows[W_TOKEN_EMBD].name);
    if (t->dim[1] < 1 || t->dim[1] > INT32_MAX)
        return FAIL(err, DATA, "%s: tensor %s has %" PRId64 " rows", path, t->name, t->dim[1]);
    m->plan.n_vocab = (int)t->dim[1];
    int n = keys_int(k, KEY_VOCAB, 0, m->plan.n_vocab);
    if (n != m->plan.n_vocab)
        return FAIL(err, DATA,
                    "%s: key %s is %d, but tensor %s has %d rows; --skip-key %s goes by "
                    "the tensor",
                    path, k->kv[KEY_VOCAB]->key, n, t->name, m->plan.n_vocab,
                    k->kv[KEY_VOCAB]->key);
    if (!tokens || tokens->value.type != GGUF_ARRAY || tokens->value.n == (size_t)m->plan.n_vocab)
        return SINTER_OK;
    if (tokens->value.n > (size_t)m->plan.n_vocab)
        return FAIL(err, DATA, "%s: the vocabulary has %zu tokens, but tensor %s has %d rows", path,
                    tokens->value.n, t->name, m->plan.n_vocab);
    return host_warn(m->host, err,
                     "%s: the vocabulary has %zu tokens, the model %d: the rest have "
                     "no text",
                     path, tokens->value.n, m->plan.n_vocab);
}

sinter_status bind_tensors(struct model *m, const struct keys *k, sinter_error *err)
{
    size_t n = (size_t)(m->plan.n_layer + 1) * W_N;
    m->weight = arena_alloc_n(&m->arena, n, sizeof *m->weight);
    m->weight_of = arena_alloc_n(&m->arena, n, sizeof *m->weight_of);
    m->bound = arena_alloc_n(&m->arena, m->gguf->n_tensor + 1, sizeof *m->bound);
    if (!m->weight || !m->weight_of || !m->bound)
        return host_no_memory(err, n, sizeof *m->weight, "bindings");
    memset(m->weight_of, 0xff, n * sizeof *m->weight_of); /* -1 */
    TRY(find_vocab(m, k, err));
    for (int layer = -1; layer < m->plan.n_layer; layer++) {
        enum tensor_scope scope = layer < 0 ? SCOPE_MODEL : SCOPE_LAYER;
        for (int f = 0; f < fused_n_row; f++)
            if (tensor_rows[fused_rows[f].part[0]].scope == scope)
                TRY(bind_fused(m, layer, &fused_rows[f], err));
        for (int id = 0; id < W_N; id++)
            if (tensor_rows[id].scope == scope)
                TRY(bind_one(m, layer, (enum tensor_id)id, err));
    }
    m->plan.tied = !model_weight(m, -1, W_OUTPUT);
    for (int i = 0; i < m->plan.n_layer; i++)
        m->plan.layer[i].rope_freqs = model_weight(m, -1, W_ROPE_FREQS) != NULL;
    return rest(m, err);
}
