/* What an architecture family is, as data. One file per family in this folder holds one or more
 * descriptors (struct literals, 10-30 lines, no functions); archs.def lists them.
 *
 * Every field has a neutral zero. Facts that a file states (sizes, bases, windows) are read from
 * its metadata by the model module; what a descriptor says is how the family uses them. Layers may
 * differ in everything: nothing here is a size. */
#ifndef ARCH_ARCH_H
#define ARCH_ARCH_H

#include <stdbool.h>
#include <stdint.h>

enum arch_place { PLACE_PRE, PLACE_SANDWICH };     /* norms before, or before and after, each block */
enum arch_qk_norm { QK_NORM_NONE, QK_NORM_HEAD };  /* RMS norm of each q and k head before RoPE */
enum arch_rope { ROPE_PAIRS, ROPE_HALVES };        /* (2i, 2i+1), or (i, i + n_rot/2) */
enum arch_act { ACT_SILU, ACT_GELU };              /* of the gate; GELU in its tanh form */
enum arch_emb { EMB_PLAIN, EMB_SQRT_D };           /* embeddings times sqrt(width) */
enum arch_ffn { FFN_GATED, FFN_MOE };
enum arch_scope { SCOPE_ALL, SCOPE_FULL };         /* rope scaling on all, or full layers only */
enum arch_softcap { CAP_NONE, CAP_OPTIONAL };      /* final_logit_softcapping, where the key is */

struct arch_desc {
    const char *name;        /* general.architecture */
    enum arch_place place;
    enum arch_qk_norm qk_norm;
    enum arch_rope rope;
    enum arch_act act;
    enum arch_emb emb;
    enum arch_ffn ffn;
    enum arch_softcap final_cap;
    bool qkv_bias;           /* biases of q, k and v must be there (else: bound if present) */
    bool rope_freqs;         /* rope_freqs.weight is used where present */
    struct {
        int period;          /* every period-th layer is full, the others windowed; 0: none is */
        float base;          /* RoPE base of windowed layers where the file has no key */
        enum arch_scope scaling;
    } window;
    struct {
        bool renorm;         /* weights of the chosen experts divided by their sum */
    } moe;
    struct {                 /* attention scale is 1/sqrt(n), n = head size, or … */
        int n_layer;         /* … for models with this many layers … */
        bool width_over_heads; /* … width / heads (Gemma-3 27B) */
    } scale_rule;
};

/* archs.def: ARCH(symbol) one row per descriptor `const struct arch_desc arch_<symbol>`. */
extern const struct arch_desc *const arch_list[];
extern const int arch_n;
/* NULL: unknown. */
const struct arch_desc *arch_find(const char *name);

#endif
