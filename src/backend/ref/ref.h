/* The ref backend: every op in plain C with sums in double, one rounding to f32 at the end; the
 * oracle of all kernels. Matrices keep the file's rows. Kernels, by file; list.c names them. */
#ifndef BACKEND_REF_REF_H
#define BACKEND_REF_REF_H

#include "native/native.h"

extern const struct native_kind ref_kind;

/* rows.c */
void ref_embed(const struct call *c);
void ref_select_rows(const struct call *c);
void ref_select_table(const struct call *c);
/* elementwise.c */
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
/* norm.c */
void ref_rms_norm(const struct call *c);
/* matmul.c */
size_t ref_matmul_scratch(const struct graph *graph, const struct group *g);
void ref_matmul(const struct call *c);
void ref_matmul_id(const struct call *c);
/* moe.c */
void ref_topk(const struct call *c);
void ref_sum(const struct call *c);
void ref_argmax(const struct call *c);
/* rope.c */
void ref_rope_table(const struct call *c);
void ref_rope(const struct call *c);
/* attention.c */
void ref_kv_write(const struct call *c);
void ref_qk(const struct call *c);
void ref_softmax(const struct call *c);
void ref_pv(const struct call *c);
/* conv.c */
void ref_conv1d(const struct call *c);
void ref_state_write(const struct call *c);
void ref_conv_state(const struct call *c);

#endif
