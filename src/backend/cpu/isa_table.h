/* The table of one level, from the static functions that the including file has gathered: gemv_n,
 * expand_n and gemm_n once per format. */
#define FORMAT(name, bits, offset, scales, take)                                                   \
    static void gemv_##name(const uint8_t *group, const struct cpu_x *x, int n_tok, float *out)    \
    {                                                                                              \
        gemv_n((struct cpu_format){bits, offset, SCALES_##scales}, group, x, n_tok, out);          \
    }                                                                                              \
    static void expand_##name(const uint8_t *group, int col, int n, uint8_t *panel)                \
    {                                                                                              \
        expand_n((struct cpu_format){bits, offset, SCALES_##scales}, group, col, n,                \
                 (void *)panel);                                                                   \
    }                                                                                              \
    static void gemm_##name(const uint8_t *panel, const struct cpu_x *x, int col, int n,           \
                            int n_tok, float *acc)                                                 \
    {                                                                                              \
        gemm_n((struct cpu_format){bits, offset, SCALES_##scales}, (const void *)panel, x, col, n, \
               n_tok, acc);                                                                        \
    }
#include "backend/cpu/formats.def"
#undef FORMAT

#define BY_TYPE(fn)                                                                                \
    {                                                                                              \
        [QUANT_F32] = fn##_F32, [QUANT_F16] = fn##_F16, [QUANT_BF16] = fn##_BF16,                  \
        [QUANT_Q4_0] = fn##_Q4_0, [QUANT_Q4_1] = fn##_Q4_1, [QUANT_Q5_0] = fn##_Q5_0,              \
        [QUANT_Q5_1] = fn##_Q5_1, [QUANT_Q8_0] = fn##_Q8_0, [QUANT_Q4_K] = fn##_Q4_K,              \
        [QUANT_Q5_K] = fn##_Q5_K, [QUANT_Q6_K] = fn##_Q6_K                                         \
    }

const struct cpu_isa ISA_TABLE = {
    .level = ISA_LEVEL,
    .gemv = BY_TYPE(gemv),
    .expand = BY_TYPE(expand),
    .gemm = BY_TYPE(gemm),
    .to_int8 = vec_to_int8,
    .add = vec_add,
    .add_one = vec_add_one,
    .mul = vec_mul,
    .mul_one = vec_mul_one,
    .silu = vec_silu,
    .gelu = vec_gelu,
    .tanh = vec_tanh,
    .silu_mul = vec_silu_mul,
    .gelu_mul = vec_gelu_mul,
    .sum_sq = vec_sum_sq,
    .norm = vec_norm,
    .rope = vec_rope,
    .to_f16 = vec_to_f16,
    .from_f16 = vec_from_f16,
    .qk = attn_qk,
    .soft = attn_soft,
    .pv = attn_pv,
    .merge = attn_merge,
    .mask = attn_mask,
    .softmax = attn_softmax,
    .argmax = vec_argmax,
    .spin_int8 = spin_int8,
    .spin_f32 = spin_f32,
};
