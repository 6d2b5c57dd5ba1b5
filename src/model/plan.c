/* Descriptor + metadata -> model_plan: one record per layer. Defaults of missing keys stand here,
 * each with its reason; no later code reads a key. */
#include "model/internal.h"

#include <math.h>
#include <string.h>

static bool is_text(const struct gguf_string *s, const char *text)
{
    return s->bytes == strlen(text) && memcmp(s->text, text, s->bytes) == 0;
}

/* RoPE scaling: none, or linear (positions divided by a factor), which is also what a factor
 * without a type means. */
static sinter_status rope_factor(const struct model *m, const struct keys *k, float *factor,
                                 sinter_error *err)
{
    float f = keys_float(k, KEY_FACTOR, keys_float(k, KEY_SCALE_LINEAR, 1));
    *factor = f == 0 ? 1 : f; /* old converters write 0 for "none" */
    if (!k->kv[KEY_SCALING])
        return SINTER_OK;
    const struct gguf_string *s = k->kv[KEY_SCALING]->value.data;
    if (is_text(s, "linear"))
        return SINTER_OK;
    *factor = 1;
    if (is_text(s, "none"))
        return SINTER_OK;
    return FAIL(err, UNSUPPORTED,
                "%s: key %s is \"%.32s\"; sinter scales RoPE by none or linear only. --skip-key %s "
                "runs the model without it, which is right for short contexts at most",
                m->gguf->path, k->kv[KEY_SCALING]->key, s->text, k->kv[KEY_SCALING]->key);
}

/* Is the layer windowed? By the file's list, by its period, or by the family's: every period-th
 * layer is full. */
static bool windowed(const struct model *m, const struct keys *k, int layer)
{
    int period = m->plan.arch->window.period;
    if (keys_int(k, KEY_WINDOW, 0, 0) == 0)
        return false;
    if (keys_is_array(k, KEY_PATTERN))
        return keys_int(k, KEY_PATTERN, layer, 0) != 0;
    period = keys_int(k, KEY_PATTERN, 0, period);
    return period == 0 || layer % period < period - 1;
}

static float attn_scale(const struct model *m, const struct keys *k, const struct model_layer *l)
{
    const struct arch_desc *a = m->plan.arch;
    float scale = keys_float(k, KEY_SCALE, 0);
    double n = l->d_k;
    if (scale > 0)
        return scale;
    if (a->scale_rule.width_over_heads && a->scale_rule.n_layer == m->plan.n_layer)
        n = (double)m->plan.d_model / l->n_head;
    return (float)(1.0 / sqrt(n));
}

static sinter_status check_heads(const struct model *m, const struct keys *k,
                                 const struct model_layer *l, sinter_error *err)
{
    const char *path = m->gguf->path;
    if (l->n_head % l->n_head_kv)
        return FAIL(err, DATA, "%s: layer %d has %d heads and %d KV heads, no multiple", path,
                    l->layer, l->n_head, l->n_head_kv);
    if (!k->kv[KEY_D_K] && m->plan.d_model % l->n_head)
        return FAIL(err, DATA,
                    "%s: layer %d: width %d is no multiple of %d heads, and key %s.%s is missing",
                    path, l->layer, m->plan.d_model, l->n_head, m->plan.arch->name,
                    key_rows[KEY_D_K].name);
    if ((int64_t)l->n_head * (l->d_k > l->d_v ? l->d_k : l->d_v) > 1 << 24)
        return FAIL(err, LIMIT, "%s: layer %d: %d heads of %d and %d columns are more than 2^24",
                    path, l->layer, l->n_head, l->d_k, l->d_v);
    if (l->n_rot % 2 || l->n_rot > l->d_k)
        return FAIL(err, DATA,
                    "%s: layer %d: RoPE turns %d columns of heads of %d: it must be even and not "
                    "more",
                    path, l->layer, l->n_rot, l->d_k);
    if (l->n_rot < l->d_k && !m->plan.arch->rope_partial)
        return FAIL(err, UNSUPPORTED,
                    "%s: key %s.%s is %d and a head has %d columns: RoPE on a part of a head means "
                    "nothing in %s; --skip-key %s.%s turns whole heads",
                    path, m->plan.arch->name, key_rows[KEY_ROT].name, l->n_rot, l->d_k,
                    m->plan.arch->name, m->plan.arch->name, key_rows[KEY_ROT].name);
    return SINTER_OK;
}

static sinter_status plan_layer(struct model *m, const struct keys *k, int i, float factor,
                                sinter_error *err)
{
    const struct arch_desc *a = m->plan.arch;
    struct model_layer *l = &m->plan.layer[i];
    bool win = windowed(m, k, i);
    l->layer = l->block = l->slot.first = i;
    l->slot.n = 1;
    l->mixer = MIXER_ATTENTION;
    l->n_head = keys_int(k, KEY_HEAD, i, 0);
    l->n_head_kv = keys_int(k, KEY_HEAD_KV, i, l->n_head); /* missing: as many as heads */
    l->d_k = keys_int(k, KEY_D_K, 0, m->plan.d_model / l->n_head);
    l->d_v = keys_int(k, KEY_D_V, 0, l->d_k);
    l->n_rot = keys_int(k, KEY_ROT, 0, l->d_k); /* missing: the whole head */
    l->window = win ? keys_int(k, KEY_WINDOW, 0, 0) : 0;
    l->rope_base = win ? keys_float(k, KEY_BASE_SWA, a->window.base)
                       : keys_float(k, KEY_BASE, 1e4F); /* the base of the first RoPE models */
    l->rope_factor = win && a->window.scaling == SCOPE_FULL ? 1 : factor;
    l->attn_scale = attn_scale(m, k, l);
    if (a->ffn == FFN_GATED) {
        l->n_ff = keys_int(k, KEY_FF, i, 0);
    } else {
        l->n_expert = keys_int(k, KEY_EXPERT, 0, 0);
        l->n_expert_used = keys_int(k, KEY_EXPERT_USED, 0, 0);
        l->n_ff_exp = keys_int(k, KEY_FF_EXP, 0, 0);
        l->renorm = keys_int(k, KEY_EXPERT_NORM, 0, a->moe.renorm) != 0;
        if (l->n_expert_used > l->n_expert)
            return FAIL(err, DATA, "%s: a token uses %d experts, the model has %d", m->gguf->path,
                        l->n_expert_used, l->n_expert);
    }
    return check_heads(m, k, l, err);
}

sinter_status plan_make(struct model *m, const struct keys *k, sinter_error *err)
{
    struct model_plan *p = &m->plan;
    float factor;
    p->d_model = keys_int(k, KEY_WIDTH, 0, 0);
    p->n_ctx_train = keys_int(k, KEY_CONTEXT, 0, 0);
    p->norm_eps = keys_float(k, KEY_EPS, 0);
    p->emb_scale = p->arch->emb == EMB_SQRT_D ? (float)sqrt(p->d_model) : 1;
    p->final_cap = keys_float(k, KEY_FINAL_CAP, 0);
    p->layer = arena_alloc_n(&m->arena, (size_t)p->n_layer, sizeof *p->layer);
    if (!p->layer)
        return host_no_memory(err, (size_t)p->n_layer, sizeof *p->layer, "layers of the plan");
    TRY(rope_factor(m, k, &factor, err));
    for (int i = 0; i < p->n_layer; i++)
        TRY(plan_layer(m, k, i, factor, err));
    return SINTER_OK;
}
