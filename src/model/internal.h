/* Inside of the model module: the tables keys.def, tensors.def and skip.def, and the steps of
 * model_open (plan, then bind). */
#ifndef MODEL_INTERNAL_H
#define MODEL_INTERNAL_H

#include "model/model.h"

/* ---- keys.def ------------------------------------------------------------------------------- */

enum key_id {
#define KEY(id, name, type, span, use, need, lo, hi, off) KEY_##id,
#define NEUTRAL(name, type, a, b, what)
#define INFO(name, why)
#include "model/keys.def"
#undef KEY
#undef NEUTRAL
#undef INFO
    KEY_N
};
enum key_type { KEY_INT, KEY_FLOAT, KEY_BOOL, KEY_TEXT };
enum key_span { SPAN_ONE, SPAN_LAYERS };
enum key_need { KEY_MUST, KEY_MAY };

struct key_row {
    const char *name; /* without "<arch>." */
    enum key_type type;
    enum key_span span;
    bool (*use)(const struct arch_desc *a); /* NULL: no family reads it */
    enum key_need need;
    double lo, hi;
    double neutral[2]; /* NaN: none; infinite: any value */
    const char *what;  /* what it changes, or why it changes nothing */
};
extern const struct key_row key_rows[];
extern const int key_n_row; /* the first KEY_N are those of enum key_id */

/* The file's keys `<arch>.*` by row: checked for type, span and range, so that getters cannot
 * fail. What --skip-key names is absent. */
struct keys {
    const struct gguf_kv *kv[KEY_N];
};
/* Ring 2 of strict loading: every key of the file is consumed, neutral, informational or named in
 * skip.def, or refused; unknown ones are counted warnings. n_layer comes out because arrays are
 * checked against it. */
CHECKED sinter_status keys_read(struct model *m, struct keys *k, sinter_error *err);
/* Value for a layer (0 for scalars), or `def` where the key is absent. */
int keys_int(const struct keys *k, enum key_id id, int layer, int def);
float keys_float(const struct keys *k, enum key_id id, float def);
/* Does the file give the key layer by layer? */
bool keys_is_array(const struct keys *k, enum key_id id);

/* ---- tensors.def ---------------------------------------------------------------------------- */

enum tensor_need { TENSOR_NEVER, TENSOR_MAY, TENSOR_MUST };
enum tensor_kind { KIND_VECTOR, KIND_MATRIX, KIND_EXPERTS };
enum tensor_scope { SCOPE_MODEL, SCOPE_LAYER };
enum tensor_init { INIT_EMBED, INIT_NORM, INIT_LINEAR, INIT_BRANCH, INIT_BIAS, INIT_FREQ };
enum tensor_dim {
    DIM_ONE,
    DIM_WIDTH,
    DIM_VOCAB,
    DIM_Q,
    DIM_K,
    DIM_V,
    DIM_O,
    DIM_D_K,
    DIM_FF,
    DIM_FF_EXP,
    DIM_EXPERT,
    DIM_ROT_HALF
};

struct tensor_row {
    const char *name; /* without "blk.N." */
    enum tensor_scope scope;
    enum tensor_need (*need)(const struct arch_desc *a);
    enum tensor_kind kind;
    enum tensor_dim rows, cols;
    enum tensor_init init;
};
extern const struct tensor_row tensor_rows[W_N];

enum { FUSED_MAX = 3 };
struct fused_row {
    const char *name;
    enum tensor_id part[FUSED_MAX];
    int n_part;
};
extern const struct fused_row fused_rows[];
extern const int fused_n_row;

/* "blk.3.attn_q.weight"; layer -1: the model's own. Gives buf. */
enum { TENSOR_NAME_BYTES = 128 };
const char *tensor_name(const struct model_plan *p, int layer, const char *name,
                        char buf[TENSOR_NAME_BYTES]);
/* Size by layer (-1: the model's; layer 0 answers for what all layers share). */
int64_t tensor_size(const struct model_plan *p, int layer, enum tensor_dim dim);

/* ---- Steps ---------------------------------------------------------------------------------- */

/* Fills m->plan but for n_vocab and tied, which binding finds. */
CHECKED sinter_status plan_make(struct model *m, const struct keys *k, sinter_error *err);
/* Ring 1: every tensor bound exactly once, left out by skip.def or an override, or refused. */
CHECKED sinter_status bind_tensors(struct model *m, const struct keys *k, sinter_error *err);

/* model_open; `as` (NULL: by the file) is read in place of the file's descriptor: tests flip its
 * fields. It must live as long as the model. */
CHECKED sinter_status model_open_as(sinter_host *host, const char *path, const struct arch_desc *as,
                                    struct model **out, sinter_error *err);
/* Remembers what was left out; an override counts as such. */
CHECKED sinter_status model_skip_add(struct model *m, const char *name, const char *reason,
                                     bool is_override, sinter_error *err);
/* The reason of skip.def for a key or tensor, or NULL. */
const char *skip_key_reason(const char *name);
const char *skip_tensor_reason(const char *name);
/* * in a pattern stands for any text. */
bool pattern_match(const char *pattern, const char *text);

#endif
