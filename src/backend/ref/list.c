/* What ref runs: every op, and three fused rows that are their nodes one by one. */
#include "backend/ref/ref.h"

#include "fuse/names.h"

void ref_embed(const struct call *c);
void ref_select_rows(const struct call *c);
void ref_select_table(const struct call *c);
void ref_add(const struct call *c);
void ref_mul(const struct call *c);
void ref_scale(const struct call *c);
void ref_silu(const struct call *c);
void ref_gelu(const struct call *c);
void ref_tanh(const struct call *c);
void ref_sin(const struct call *c);
void ref_sqr(const struct call *c);
void ref_adds(const struct call *c);
void ref_snake(const struct call *c);
void ref_rms_norm(const struct call *c);
size_t ref_matmul_scratch(const struct graph *graph, const struct group *g);
void ref_matmul(const struct call *c);
void ref_matmul_id(const struct call *c);
size_t ref_topk_scratch(const struct graph *graph, const struct group *g);
void ref_topk(const struct call *c);
void ref_sum(const struct call *c);
void ref_argmax(const struct call *c);
void ref_rope_table(const struct call *c);
void ref_rope(const struct call *c);
void ref_kv_write(const struct call *c);
size_t ref_attention_scratch(const struct graph *graph, const struct group *g);
void ref_qk(const struct call *c);
void ref_softmax(const struct call *c);
void ref_pv(const struct call *c);
void ref_conv1d(const struct call *c);
void ref_state_write(const struct call *c);
void ref_conv_state(const struct call *c);

static const struct fuse_line lines[] = {
    {"adds", ref_adds, BITS_SAME, SHARE_ROW},
    {"snake", ref_snake, BITS_SAME, SHARE_ROW},
    {"conv_state", ref_conv_state, BITS_SAME, SHARE_ONE},

    {"EMBED", ref_embed, BITS_SAME, SHARE_ROW},
    {"SELECT_ROWS", ref_select_rows, BITS_SAME, SHARE_ROW},
    {"SELECT_TABLE", ref_select_table, BITS_SAME, SHARE_ROW},
    {"ADD", ref_add, BITS_SAME, SHARE_ROW, .inplace = {{Y, X}}},
    {"MUL", ref_mul, BITS_SAME, SHARE_ROW, .inplace = {{Y, X}}},
    {"SCALE", ref_scale, BITS_SAME, SHARE_ROW, .inplace = {{Y, X}}},
    {"SILU", ref_silu, BITS_SAME, SHARE_ROW, .inplace = {{Y, X}}},
    {"GELU", ref_gelu, BITS_SAME, SHARE_ROW, .inplace = {{Y, X}}},
    {"TANH", ref_tanh, BITS_SAME, SHARE_ROW, .inplace = {{Y, X}}},
    {"SIN", ref_sin, BITS_SAME, SHARE_ROW, .inplace = {{Y, X}}},
    {"SQR", ref_sqr, BITS_SAME, SHARE_ROW, .inplace = {{Y, X}}},
    {"RMS_NORM", ref_rms_norm, BITS_SAME, SHARE_ROW},
    {"MATMUL", ref_matmul, BITS_SAME, SHARE_COL, .scratch = ref_matmul_scratch},
    {"MATMUL_ID", ref_matmul_id, BITS_SAME, SHARE_COL, .scratch = ref_matmul_scratch},
    {"TOPK", ref_topk, BITS_SAME, SHARE_ROW, .scratch = ref_topk_scratch},
    {"SUM", ref_sum, BITS_SAME, SHARE_ROW},
    {"ROPE_TABLE", ref_rope_table, BITS_SAME, SHARE_ROW},
    {"ROPE", ref_rope, BITS_SAME, SHARE_ROW},
    {"KV_WRITE", ref_kv_write, BITS_SAME, SHARE_ROW},
    {"QK", ref_qk, BITS_SAME, SHARE_ROW, .scratch = ref_attention_scratch},
    {"SOFTMAX", ref_softmax, BITS_SAME, SHARE_ROW},
    {"PV", ref_pv, BITS_SAME, SHARE_ROW, .scratch = ref_attention_scratch},
    {"CONV1D", ref_conv1d, BITS_SAME, SHARE_ONE},
    {"STATE_WRITE", ref_state_write, BITS_SAME, SHARE_ONE},
    {"ARGMAX", ref_argmax, BITS_SAME, SHARE_ROW},
};

static const struct fuse_list list = {"ref", lines, (int)(sizeof lines / sizeof lines[0])};

/* ---- Weights: the file's rows, as they are. ---- */

static void plan(struct weight *w)
{
    w->layout = 0;
    w->mat_bytes = (size_t)w->n_row * quant_bytes(w->type, (size_t)w->n_col);
}

static void pack(const struct weight *w, int mat, int64_t row, int64_t n, const void *src)
{
    size_t each = quant_bytes(w->type, (size_t)w->n_col);
    __builtin_memcpy((char *)w->data + (size_t)mat * w->mat_bytes + (size_t)row * each, src,
                     (size_t)n * each);
}

static void row_f32(const struct weight *w, int mat, int64_t row, float *dst)
{
    size_t each = quant_bytes(w->type, (size_t)w->n_col);
    const char *src = (const char *)w->data + (size_t)mat * w->mat_bytes + (size_t)row * each;
    quant_row(w->type)->decode(src, dst, (size_t)w->n_col);
}

static const struct weight_ops weight = {NULL, plan, pack, row_f32};

const struct native_kind ref_kind = {.name = "ref", .list = &list, .weight = &weight};
