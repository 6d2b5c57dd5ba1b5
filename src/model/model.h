/* From a GGUF file to a model: plan, strict binding of tensors, graphs, weight reading.
 *
 *   model_open: file -> descriptor + metadata + tensor presence -> model_plan -> binding (3 rings)
 *   model_graph: plan -> graph of a variant, over the same weight slices
 *   model_read_rows: the file's bytes of a slice, for backends that pack them
 * No later code reads a metadata key, and no width is computed anywhere else. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "arch/arch.h"
#include "gguf/gguf.h"
#include "graph/graph.h"

enum mixer { MIXER_ATTENTION };

struct model_layer {
    int layer; /* number for reports */
    int block; /* blk.N of its weights */
    struct {
        int first, n;
    } slot; /* its state slots in the graph */
    enum mixer mixer;
    int n_head, n_head_kv, d_k, d_v;
    int n_rot;
    float rope_base, rope_factor; /* linear scaling divides positions by the factor */
    bool rope_freqs;              /* use the model's rope_freqs */
    int window;                   /* 0: sees everything before it */
    float attn_scale;
    int n_ff; /* 0: MoE */
    int n_expert, n_expert_used, n_ff_exp;
    bool renorm; /* weights of the chosen experts divided by their sum */
};

struct model_plan {
    const struct arch_desc *arch;
    int n_layer, d_model, n_vocab;
    int n_ctx_train;
    float norm_eps;
    float emb_scale; /* 1 = none */
    float final_cap; /* 0 = none */
    bool tied;       /* output.weight is absent: the head is token_embd */
    struct model_layer *layer;
};

/* clang-format off */
enum tensor_id { /* tensors.def: what a tensor is to the graph */
#define TENSOR(id, scope, name, need, kind, rows, cols, init) W_##id,
#define FUSED(...)
#include "model/tensors.def"
#undef TENSOR
#undef FUSED
    W_N
};
/* clang-format on */

/* A bound tensor, or a part of a fused one. */
struct model_weight {
    enum tensor_id id;
    int layer; /* -1: the model's own */
    struct weight_slice slice;
    enum quant_type type;
    int32_t n_row, n_col; /* of one matrix */
    const char *name;     /* the tensor's, with [rows] if it is a part */
};

struct model_skip { /* a tensor or key left out, and why */
    const char *name, *reason;
};

struct model {
    sinter_host *host;
    struct arena arena;
    struct gguf *gguf;
    struct model_plan plan;
    int n_weight;
    struct model_weight *weight;
    int *weight_of; /* [1 + n_layer][W_N]: index in weight[] or -1; row 0: its own */
    int *bound;     /* per tensor of the file: 1 = a graph reads it, 0 = skipped */
    int n_skip;     /* what was left out, with reasons from skip.def or an override */
    struct model_skip *skip;
    int n_override;   /* how many of them a --skip option left out */
    uint64_t hash[2]; /* identifies the model for saved states: metadata that shapes the
                         graph, tensor names, types, sizes, first bytes */
};

CHECKED sinter_status model_open(sinter_host *host, const char *path, struct model **out,
                                 sinter_error *err);
void model_close(struct model *m);
/* The weight that serves as `id` in a layer (-1: the model's own), or NULL. */
const struct model_weight *model_weight(const struct model *m, int layer, enum tensor_id id);

struct model_variant {
    int n_ctx;   /* rows a sequence may have; a window never needs more */
    bool argmax; /* with an ARGMAX behind the logits (PORT_ARGMAX) */
    int tap;     /* > 0: PORT_HIDDEN is the residual stream after so many layers */
};
/* The trunk: ports IDS, POS, OUT_ROWS in; LOGITS, ARGMAX, HIDDEN out. Weight and slot numbering
 * depend on the model alone, so graphs of one model share weights and state. */
CHECKED sinter_status model_graph(const struct model *m, const struct model_variant *v,
                                  struct graph **out, sinter_error *err);

/* Raw rows [row, row + n) of matrix `mat` of the slice, in the file's format, into buf. */
CHECKED sinter_status model_read_rows(const struct model *m, const struct graph_weight *w, int mat,
                                      int64_t row, int64_t n, void *buf, sinter_error *err);
size_t model_row_bytes(const struct model *m, const struct graph_weight *w);

/* Text or JSON for `sinter inspect`: plan by layer, bindings, what was skipped and why. */
void model_print(const struct model *m, struct text_buf *b, bool json);

/* ---- Dummy models: random weights, specified hash and generator, same bytes everywhere. ----- */

enum dummy_kind {
    DUMMY_MIXED,    /* types as in Q4_K_M, unequal layers, own head; about 1 MB */
    DUMMY_F32,      /* all F32, tied head, at most 64 KiB */
    DUMMY_FUSED,    /* the same numbers as DUMMY_F32, in fused tensors */
    DUMMY_OPTIONAL, /* every tensor and key that may be missing is there; the simple block types */
    DUMMY_N_KIND
};
struct dummy_options {
    const char *arch;     /* small ones: a descriptor's name */
    const char *like;     /* a name of dummy_likes: real shapes; NULL: small */
    const char *type;     /* with like: "q4_0", "q8_0" or "bf16" */
    enum dummy_kind kind; /* small ones */
    uint64_t seed;
};
CHECKED sinter_status dummy_write(sinter_host *host, const struct dummy_options *o,
                                  const char *path, sinter_error *err);
/* Every small dummy: each descriptor x kind. "llama-mixed"; false past the end. A new descriptor
 * has its dummies by itself. */
bool dummy_small(int i, struct dummy_options *o, char name[64]);
const char *dummy_kind_name(enum dummy_kind kind); /* "mixed", "f32", "fused", "optional" */
/* Names that dummy_options.like knows; NULL ends. */
extern const char *const dummy_likes[];

#endif
