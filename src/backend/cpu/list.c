/* Lines of the cpu backend, best first. Few rows: steps around a matrix are EACH, because doing a
 * small thing in every thread costs less than a barrier; many rows: by rows, and the residual goes
 * into the matrix's epilogue. */
#include "backend/cpu/matmul_argmax.h"

#include <limits.h>

#include "fuse/names.h"

#define FEW(name) NEED_ROWS(name, 0, CPU_FEW)

#define KERNEL(name) void cpu_##name(const struct call *c)
KERNEL(add_norm_mul);
KERNEL(norm_mul);
KERNEL(matmul);
KERNEL(matmul_add);
KERNEL(gate_up);
KERNEL(matmul_argmax);
KERNEL(matmul_id);
KERNEL(attention);
KERNEL(qk);
KERNEL(softmax);
KERNEL(pv);
KERNEL(kv_write);
KERNEL(rope);
KERNEL(rope_table);
KERNEL(embed);
KERNEL(select_rows);
KERNEL(select_table);
KERNEL(add);
KERNEL(mul);
KERNEL(scale);
KERNEL(silu);
KERNEL(gelu);
KERNEL(tanh);
KERNEL(sum);
KERNEL(topk);
KERNEL(argmax);

#define BYTES(name) size_t cpu_##name##_bytes(const struct graph *graph, const struct group *g)
BYTES(norm);
BYTES(attention);
BYTES(scores);
BYTES(kv_write);
BYTES(topk);

static const struct fuse_line lines[] = {
    {"add_norm_mul", cpu_add_norm_mul, BITS_SAME, SHARE_EACH, .writes_forms = true,
     .need = {FEW(X)}, .scratch = cpu_norm_bytes},
    {"gate_up", cpu_gate_up, BITS_SAME, SHARE_COL, .writes_forms = true, .scratch = cpu_work_bytes},
    {"siblings", cpu_matmul, BITS_SAME, SHARE_COL, .scratch = cpu_work_bytes},
    {"matmul_argmax", cpu_matmul_argmax, BITS_SAME, SHARE_COL,
     .need = {NEED_ROWS(X, 0, CPU_ARGMAX_ROWS)}, .scratch = cpu_work_bytes,
     .shared = CPU_ARGMAX_SHARED},
    {"matmul_add", cpu_matmul_add, BITS_SAME, SHARE_COL, .inplace = {{Y, R}},
     .scratch = cpu_work_bytes},
    {"add_norm_mul", cpu_add_norm_mul, BITS_SAME, SHARE_ROW, .writes_forms = true,
     .inplace = {{A, X}}, .scratch = cpu_norm_bytes},
    {"norm_mul", cpu_norm_mul, BITS_SAME, SHARE_EACH, .writes_forms = true, .need = {FEW(X)},
     .scratch = cpu_norm_bytes},
    {"norm_mul", cpu_norm_mul, BITS_SAME, SHARE_ROW, .writes_forms = true,
     .scratch = cpu_norm_bytes},
    {"rope_kv_write", cpu_kv_write, BITS_SAME, SHARE_HEAD, .need = {FEW(X)},
     .scratch = cpu_kv_write_bytes},
    {"rope_kv_write", cpu_kv_write, BITS_SAME, SHARE_ROW, .scratch = cpu_kv_write_bytes},
    /* Few rows: the thread that wrote a head's keys reads them, no barrier. Many rows, or one
     * KV head: by output columns, which splits finer. */
    {"attention", cpu_attention, BITS_OWN, SHARE_HEAD, .writes_forms = true,
     .need = {NEED_HEADS(S, 2), FEW(X)}, .scratch = cpu_attention_bytes},
    {"attention", cpu_attention, BITS_OWN, SHARE_COL, .writes_forms = true,
     .scratch = cpu_attention_bytes},

    {"EMBED", cpu_embed, BITS_SAME, SHARE_EACH, .need = {FEW(I)}},
    {"EMBED", cpu_embed, BITS_SAME, SHARE_ROW},
    {"SELECT_ROWS", cpu_select_rows, BITS_SAME, SHARE_EACH, .need = {FEW(X)}},
    {"SELECT_ROWS", cpu_select_rows, BITS_SAME, SHARE_ROW},
    {"SELECT_TABLE", cpu_select_table, BITS_SAME, SHARE_EACH, .need = {FEW(T)}},
    {"SELECT_TABLE", cpu_select_table, BITS_SAME, SHARE_ROW},
    {"ROPE_TABLE", cpu_rope_table, BITS_SAME, SHARE_EACH, .need = {FEW(I)}},
    {"ROPE_TABLE", cpu_rope_table, BITS_SAME, SHARE_ROW},
    {"ROPE", cpu_rope, BITS_SAME, SHARE_EACH, .inplace = {{Y, X}}, .need = {FEW(X)}},
    {"ROPE", cpu_rope, BITS_SAME, SHARE_ROW, .inplace = {{Y, X}}},
    {"RMS_NORM", cpu_norm_mul, BITS_SAME, SHARE_EACH, .writes_forms = true, .need = {FEW(X)},
     .scratch = cpu_norm_bytes},
    {"RMS_NORM", cpu_norm_mul, BITS_SAME, SHARE_ROW, .writes_forms = true,
     .scratch = cpu_norm_bytes},
    {"ADD", cpu_add, BITS_SAME, SHARE_ANY, .inplace = {{Y, X}}},
    {"MUL", cpu_mul, BITS_SAME, SHARE_ANY, .inplace = {{Y, X}}},
    {"SCALE", cpu_scale, BITS_SAME, SHARE_ANY, .inplace = {{Y, X}}},
    {"SILU", cpu_silu, BITS_SAME, SHARE_ANY, .inplace = {{Y, X}}},
    {"GELU", cpu_gelu, BITS_SAME, SHARE_ANY, .inplace = {{Y, X}}},
    {"TANH", cpu_tanh, BITS_SAME, SHARE_ANY, .inplace = {{Y, X}}},
    {"SUM", cpu_sum, BITS_SAME, SHARE_EACH, .need = {FEW(Y)}},
    {"SUM", cpu_sum, BITS_SAME, SHARE_ROW},
    /* A router of few experts is a part of one group of rows: one thread worked, all waited. */
    {"MATMUL", cpu_matmul, BITS_SAME, SHARE_EACH, .need = {FEW(X), NEED_NARROW(Y, CPU_NARROW)},
     .scratch = cpu_work_bytes},
    {"MATMUL", cpu_matmul, BITS_SAME, SHARE_COL, .scratch = cpu_work_bytes},
    {"MATMUL_ID", cpu_matmul_id, BITS_SAME, SHARE_COL, .scratch = cpu_work_bytes},
    {"TOPK", cpu_topk, BITS_SAME, SHARE_EACH, .need = {FEW(X)}, .scratch = cpu_topk_bytes},
    {"TOPK", cpu_topk, BITS_SAME, SHARE_ROW, .scratch = cpu_topk_bytes},
    {"ARGMAX", cpu_argmax, BITS_SAME, SHARE_ROW},
    {"KV_WRITE", cpu_kv_write, BITS_SAME, SHARE_HEAD, .need = {FEW(X)},
     .scratch = cpu_kv_write_bytes},
    {"KV_WRITE", cpu_kv_write, BITS_SAME, SHARE_ROW, .scratch = cpu_kv_write_bytes},
    {"QK", cpu_qk, BITS_SAME, SHARE_ROW, .scratch = cpu_scores_bytes},
    {"SOFTMAX", cpu_softmax, BITS_SAME, SHARE_ROW},
    {"PV", cpu_pv, BITS_SAME, SHARE_ROW, .scratch = cpu_scores_bytes},
};

const struct fuse_list cpu_list = {"cpu", lines, (int)(sizeof lines / sizeof lines[0])};
