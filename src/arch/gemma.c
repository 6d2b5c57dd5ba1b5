/* Gemma: norms before and after each block (the converter has added 1 to their weights), windowed
 * layers with a RoPE base of their own, embeddings times sqrt(width). */
#include "arch/arch.h"

const struct arch_desc arch_gemma[] = {
    {
        .name = "gemma3",
        .place = PLACE_SANDWICH,
        .qk_norm = QK_NORM_HEAD,
        .rope = ROPE_HALVES,
        .rope_partial = true,
        .act = ACT_GELU,
        .emb = EMB_SQRT_D,
        .final_cap = CAP_OPTIONAL,
        .window = {.period = 6, .base = 1e4F, .scaling = SCOPE_FULL},
        .scale_rule = {.n_layer = 62, .width_over_heads = true}, /* the 27B model */
    },
    {.name = NULL},
};
