/* Qwen: RoPE on halves; from the third generation on, Q and K are normed per head. */
#include "arch/arch.h"

const struct arch_desc arch_qwen[] = {
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
