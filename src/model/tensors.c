/* The table of tensors.def: needs by family, sizes by layer. */
#include "model/internal.h"

#include <stdio.h>

static enum tensor_need need_ALWAYS(const struct arch_desc *a)
{
    return a ? TENSOR_MUST : TENSOR_NEVER;
}

static enum tensor_need need_MAYBE(const struct arch_desc *a)
{
    return a ? TENSOR_MAY : TENSOR_NEVER;
}

static enum tensor_need need_FREQS(const struct arch_desc *a)
{
    return a->rope_freqs ? TENSOR_MAY : TENSOR_NEVER;
}

static enum tensor_need need_QKV_BIAS(const struct arch_desc *a)
{
    return a->qkv_bias ? TENSOR_MUST : TENSOR_MAY;
}

static enum tensor_need need_QK_NORM(const struct arch_desc *a)
{
    return a->qk_norm == QK_NORM_HEAD ? TENSOR_MUST : TENSOR_NEVER;
}

static enum tensor_need need_SANDWICH(const struct arch_desc *a)
{
    return a->place == PLACE_SANDWICH ? TENSOR_MUST : TENSOR_NEVER;
}

static enum tensor_need need_DENSE(const struct arch_desc *a)
{
    return a->ffn == FFN_GATED ? TENSOR_MUST : TENSOR_NEVER;
}

static enum tensor_need need_DENSE_MAYBE(const struct arch_desc *a)
{
    return a->ffn == FFN_GATED ? TENSOR_MAY : TENSOR_NEVER;
}

static enum tensor_need need_MOE(const struct arch_desc *a)
{
    return a->ffn == FFN_MOE ? TENSOR_MUST : TENSOR_NEVER;
}

const struct tensor_row tensor_rows[W_N] = {
#define TENSOR(id, scope, name, need, kind, rows, cols, init)                                      \
    [W_##id] = {name, SCOPE_##scope, need_##need, KIND_##kind, DIM_##rows, DIM_##cols, INIT_##init},
#define FUSED(...)
#include "model/tensors.def"
#undef TENSOR
#undef FUSED
};

/* Two or three parts; the third may be absent. */
#define PARTS_2(a, b)             {W_##a, W_##b, W_N}, 2
#define PARTS_3(a, b, c)          {W_##a, W_##b, W_##c}, 3
#define PARTS_OF(a, b, c, n, ...) n
#define PARTS(...)                PARTS_OF(__VA_ARGS__, PARTS_3, PARTS_2, )(__VA_ARGS__)
const struct fused_row fused_rows[] = {
#define TENSOR(...)
#define FUSED(name, ...) {name, PARTS(__VA_ARGS__)},
#include "model/tensors.def"
#undef TENSOR
#undef FUSED
};
const int fused_n_row = (int)(sizeof fused_rows / sizeof fused_rows[0]);

const char *tensor_name(const struct model_plan *p, int layer, const char *name,
                        char buf[TENSOR_NAME_BYTES])
{
    if (layer < 0)
        snprintf(buf, TENSOR_NAME_BYTES, "%s", name);
    else
        snprintf(buf, TENSOR_NAME_BYTES, "blk.%d.%s", p->layer[layer].block, name);
    return buf;
}

int64_t tensor_size(const struct model_plan *p, int layer, enum tensor_dim dim)
{
    const struct model_layer *l = &p->layer[layer < 0 ? 0 : layer];
    switch (dim) {
    case DIM_ONE:
        return 1;
    case DIM_WIDTH:
        return p->d_model;
    case DIM_VOCAB:
        return p->n_vocab;
    case DIM_Q:
        return (int64_t)l->n_head * l->d_k;
    case DIM_K:
        return (int64_t)l->n_head_kv * l->d_k;
    case DIM_V:
        return (int64_t)l->n_head_kv * l->d_v;
    case DIM_O:
        return (int64_t)l->n_head * l->d_v;
    case DIM_D_K:
        return l->d_k;
    case DIM_FF:
        return l->n_ff;
    case DIM_FF_EXP:
        return l->n_ff_exp;
    case DIM_EXPERT:
        return l->n_expert;
    case DIM_ROT_HALF:
        return l->n_rot / 2;
    }
    return 0;
}
