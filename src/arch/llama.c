/* Llama, and what is exported under its name: Mistral 7B, Yi, SmolLM2, TinyLlama. The converter
 * permutes the rows of Q and K so that RoPE turns adjacent pairs. */
#include "arch/arch.h"

const struct arch_desc arch_llama[] = {
    {
        .name = "llama",
        .rope = ROPE_PAIRS,
        .rope_freqs = true,
        .scale_key = true,
    },
    {.name = NULL},
};
