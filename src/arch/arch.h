/* What an architecture family is, as data. One file per family in this folder holds an array of
 * descriptors (struct literals, no functions), and archs.def has one row per family: an
 * architecture of a known family is one literal in one file, and its dummies and loader tests
 * follow from it.
 *
 * Every field has a neutral zero. Facts that a file states (sizes, bases, windows) are read from
 * its metadata by the model module; what a descriptor says is how the family uses them. Layers may
 * differ in everything: nothing here is a size. */
#ifndef ARCH_ARCH_H
#define ARCH_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum arch_place { PLACE_PRE, PLACE_SANDWICH };    /* norms before, or before and after blocks */
enum arch_qk_norm { QK_NORM_NONE, QK_NORM_HEAD }; /* RMS norm of each q and k head before RoPE */
enum arch_rope { ROPE_PAIRS, ROPE_HALVES };       /* (2i, 2i+1), or (i, i + n_rot/2) */
enum arch_act { ACT_SILU, ACT_GELU };             /* of the gate; GELU in its tanh form */
enum arch_emb { EMB_PLAIN, EMB_SQRT_D };          /* embeddings times sqrt(width) */
enum arch_ffn { FFN_GATED, FFN_MOE };
enum arch_scope { SCOPE_ALL, SCOPE_FULL };    /* rope scaling on all, or full layers only */
enum arch_softcap { CAP_NONE, CAP_OPTIONAL }; /* final_logit_softcapping, where the key is */

struct arch_desc {
    const char *name; /* general.architecture */
    enum arch_place place;
    enum arch_qk_norm qk_norm;
    enum arch_rope rope;
    enum arch_act act;
    enum arch_emb emb;
    enum arch_ffn ffn;
    enum arch_softcap final_cap;
    bool qkv_bias;     /* biases of q, k and v must be there (else: bound if present) */
    bool rope_freqs;   /* rope_freqs.weight is used where present */
    bool rope_partial; /* rope.dimension_count may be less than the head size (a family whose
                          converter permutes Q and K over whole heads has no such form) */
    bool scale_key;    /* attention.scale is used where present and not 0 */
    struct {
        int period; /* every period-th layer is full, the others windowed; 0: none is */
        float base; /* RoPE base of windowed layers where the file has no key */
        enum arch_scope scaling;
    } window;
    struct {
        bool renorm; /* weights of the chosen experts divided by their sum */
    } moe;
    struct {                   /* attention scale is 1/sqrt(n), n = head size, or … */
        int n_layer;           /* … for models with this many layers … */
        bool width_over_heads; /* … width / heads (Gemma-3 27B) */
    } scale_rule;
};

/* Descriptor number i in the order of archs.def and its families' arrays; NULL past the end. */
const struct arch_desc *arch_at(int i);
/* NULL: unknown. */
const struct arch_desc *arch_find(const char *name);
/* Their names, for messages: "llama, qwen2, …", cut at bytes - 1. */
void arch_names(char *text, size_t bytes);

/* A family's array, ended by a row without a name. */
#define FAMILY(name) extern const struct arch_desc arch_##name[];
#include "arch/archs.def"
#undef FAMILY

#endif
