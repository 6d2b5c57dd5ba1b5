/* Qwen: RoPE on halves. The second generation has biases on Q, K and V; from the third on, Q and K
 * are normed per head. */
#include "arch/arch.h"

const struct arch_desc arch_qwen[] = {
    {
        .name = "qwen2",
        .rope = ROPE_HALVES,
        .rope_partial = true,
        .qkv_bias = true,
    },
    {
        .name = "qwen3",
        .qk_norm = QK_NORM_HEAD,
        .rope = ROPE_HALVES,
        .rope_partial = true,
    },
    {
        .name = "qwen3moe",
        .qk_norm = QK_NORM_HEAD,
        .rope = ROPE_HALVES,
        .rope_partial = true,
        .ffn = FFN_MOE,
        .moe = {.renorm = true},
    },
    {.name = NULL},
};
