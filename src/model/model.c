/* Opens and closes models: file -> descriptor -> keys -> plan -> binding -> hash. */
#include "model/internal.h"

#include "base/hash.h"
#include "base/options.h"

#include <stdio.h>
#include <string.h>

const struct model_weight *model_weight(const struct model *m, int layer, enum tensor_id id)
{
    int i = m->weight_of[(layer + 1) * W_N + (int)id];
    return i < 0 ? NULL : &m->weight[i];
}

sinter_status model_skip_add(struct model *m, const char *name, const char *reason,
                             bool is_override, sinter_error *err)
{
    size_t cap = m->gguf->n_kv + m->gguf->n_tensor; /* each key and tensor at most once */
    if (!m->skip)
        m->skip = arena_alloc_n(&m->arena, cap + 1, sizeof *m->skip);
    if (!m->skip)
        return host_no_memory(err, cap + 1, sizeof *m->skip, "the list of what was left out");
    m->skip[m->n_skip++] = (struct model_skip){name, reason};
    m->n_override += is_override;
    return SINTER_OK;
}

static sinter_status find_arch(struct model *m, sinter_error *err)
{
    struct gguf_string s;
    char known[512];
    TRY(gguf_get_string(m->gguf, "general.architecture", &s, err));
    m->plan.arch = strlen(s.text) == s.bytes ? arch_find(s.text) : NULL; /* no NUL in it */
    if (m->plan.arch)
        return SINTER_OK;
    arch_names(known, sizeof known);
    return FAIL(err, UNSUPPORTED,
                "%s: key general.architecture is \"%.64s\", unknown to sinter; it runs %s",
                m->gguf->path, s.text, known);
}

/* An override that names nothing in the file is a mistake in spelling. */
static sinter_status check_overrides(struct model *m, const char *list, const char *option,
                                     sinter_error *err)
{
    while (*list) {
        size_t n = strcspn(list, ",");
        bool found = false;
        for (int i = 0; i < m->n_skip; i++)
            found |= strlen(m->skip[i].name) == n && memcmp(m->skip[i].name, list, n) == 0;
        if (n && !found)
            TRY(host_warn(m->host, err, "%s: --%s names %.*s, which the file does not have",
                          m->gguf->path, option, n < 256 ? (int)n : 256, list));
        list += n + (list[n] == ',');
    }
    return SINTER_OK;
}

/* ---- Hash ----------------------------------------------------------------------------------- */

/* Two sums of FNV-1a's kind, the second over other numbers: no guard against forgery, but against
 * taking one model's state for another's. */
static void hash_bytes(uint64_t h[2], const void *data, size_t bytes)
{
    const uint8_t *p = data;
    h[0] = fnv1a(h[0], data, bytes);
    for (size_t i = 0; i < bytes; i++)
        h[1] = (h[1] ^ (p[i] + 0x9eu)) * FNV1A_PRIME;
}

static void hash_key(uint64_t h[2], const struct gguf_kv *kv)
{
    const struct gguf_value *v = &kv->value;
    hash_bytes(h, kv->key, strlen(kv->key) + 1);
    for (size_t i = 0; i < v->n; i++) {
        double x;
        if (v->elem_type == GGUF_STRING) {
            const struct gguf_string *s = (const struct gguf_string *)v->data + i;
            hash_bytes(h, s->text, s->bytes + 1);
        } else if (gguf_value_float(kv, i, &x, NULL) == SINTER_OK) {
            hash_bytes(h, &x, sizeof x);
        } else {
            hash_bytes(h, (const uint8_t *)v->data + i, 1); /* bools */
        }
    }
}

static sinter_status hash_tensor(struct model *m, const struct gguf_tensor *t, sinter_error *err)
{
    enum { SAMPLE_BYTES = 256 }; /* tells fine-tuned models from their base */
    uint8_t sample[SAMPLE_BYTES];
    size_t n = t->bytes < SAMPLE_BYTES ? (size_t)t->bytes : SAMPLE_BYTES;
    hash_bytes(m->hash, t->name, strlen(t->name) + 1);
    hash_bytes(m->hash, &t->type_id, sizeof t->type_id);
    hash_bytes(m->hash, t->dim, sizeof t->dim);
    TRY(gguf_read(m->gguf, t, 0, sample, n, err));
    hash_bytes(m->hash, sample, n);
    return SINTER_OK;
}

static sinter_status hash_model(struct model *m, sinter_error *err)
{
    size_t prefix = strlen(m->plan.arch->name);
    m->hash[0] = FNV1A_START;
    m->hash[1] = 0x84222325cbf29ce4u;
    hash_bytes(m->hash, m->plan.arch->name, prefix + 1);
    for (size_t i = 0; i < m->gguf->n_kv; i++)
        if (strncmp(m->gguf->kv[i].key, m->plan.arch->name, prefix) == 0)
            hash_key(m->hash, &m->gguf->kv[i]);
    for (size_t i = 0; i < m->gguf->n_tensor; i++)
        if (m->bound[i])
            TRY(hash_tensor(m, &m->gguf->tensor[i], err));
    for (int i = 0; i < m->n_skip; i++) /* an override makes another model */
        if (m->n_override)
            hash_bytes(m->hash, m->skip[i].name, strlen(m->skip[i].name) + 1);
    return SINTER_OK;
}

/* ---- Open and close ------------------------------------------------------------------------- */

static sinter_status open_steps(struct model *m, const char *path, const struct arch_desc *as,
                                sinter_error *err)
{
    struct keys k;
    const struct options *o = host_options(m->host);
    TRY(gguf_open(m->host, path, &m->gguf, err));
    TRY(find_arch(m, err));
    if (as)
        m->plan.arch = as;
    TRY(keys_read(m, &k, err));
    TRY(plan_make(m, &k, err));
    TRY(bind_tensors(m, &k, err));
    TRY(check_overrides(m, o->skip_key, "skip-key", err));
    TRY(check_overrides(m, o->skip_tensor, "skip-tensor", err));
    return hash_model(m, err);
}

sinter_status model_open(sinter_host *host, const char *path, struct model **out, sinter_error *err)
{
    return model_open_as(host, path, NULL, out, err);
}

sinter_status model_open_as(sinter_host *host, const char *path, const struct arch_desc *as,
                            struct model **out, sinter_error *err)
{
    struct model *m;
    *out = NULL;
    NEW(host, m, 1, err);
    m->host = host;
    arena_init(&m->arena, host);
    sinter_status status = open_steps(m, path, as, err);
    if (status != SINTER_OK) {
        model_close(m);
        return status;
    }
    *out = m;
    return SINTER_OK;
}

void model_close(struct model *m)
{
    if (!m)
        return;
    gguf_close(m->gguf);
    arena_free(&m->arena);
    host_free(m->host, m);
}
