/* The fusion table: what may be computed as one. Plain data; names no backend (their list.c do).
 * To add a fusion: a row here, a kernel file and a line in list.c per backend that wants it. */
#include "fuse/names.h"

/* clang-format off */
const struct fuse_row fuse_rows[] = {
    /* Residual add, then the next norm; the sum itself goes on too. */
    { "add_norm_mul",
      { { { ADD }, { X, R }, { A }, .leaves = true },
        { { RMS_NORM }, { A }, { Y } },
        { { MUL }, { Y, W }, { Y } } },
      { NEED_WEIGHT(W), NEED_SAME_ROW(X, R) } },
    /* A norm with its weight; per head it is often followed by RoPE (QK-norm). */
    { "norm_mul",
      { { { RMS_NORM }, { X }, { Y } },
        { { MUL }, { Y, W }, { Y } },
        { { ROPE }, { Y, T }, { Y }, .optional = 1 } },
      { NEED_WEIGHT(W) } },
    { "rope_kv_write",
      { { { ROPE }, { X, T }, { Y } },
        { { KV_WRITE }, { S, Y, V }, { S } } } },
    /* Matrices with one input: Q, K and V, gate and up; with their biases (Qwen2). */
    { "siblings",
      { { { MATMUL }, { X, EACH(W) }, { EACH(Y) }, .repeat = { 2, 3 } },
        { { ADD }, { EACH(Y), EACH(B) }, { EACH(Y) }, .optional = 1 } },
      { NEED_WEIGHT(B), NEED_SAME_LEN(Y, B) } }, /* no number or head for all */
    { "gate_up",
      { { { MATMUL }, { X, G }, { A } },
        { { MATMUL }, { X, U }, { B } },
        { { SILU, GELU }, { A }, { A } },
        { { MUL }, { A, B }, { Y } } },
      { NEED_SAME_ROW(A, B) } }, /* else one of them is a number per row */
    /* Matrix, then the residual add. */
    { "matmul_add",
      { { { MATMUL }, { X, W }, { Y } },
        { { ADD }, { Y, R }, { Y } } },
      { NEED_SAME_ROW(Y, R) } },
    { "attention",
      { { { QK }, { X, S }, { C } },
        { { SOFTMAX }, { C }, { C } },
        { { PV }, { C, S }, { Y } } } },
    { "matmul_argmax",
      { { { MATMUL }, { X, W }, { Y }, .leaves = true },
        { { ARGMAX }, { Y }, { Z } } } },
    { "conv_state",
      { { { CONV1D }, { X, W, S }, { Y, Z } },
        { { STATE_WRITE }, { S, Z }, { S } } } },
    { "adds",
      { { { ADD }, { X, EACH(Y) }, { X }, .repeat = { 2, 7 } } },
      { NEED_SAME_ROW(X, Y) } },
    { "snake", /* x + sin(a x)^2 / b */
      { { { MUL }, { X, W }, { Y } },
        { { SIN }, { Y }, { Y } },
        { { SQR }, { Y }, { Y } },
        { { MUL }, { Y, V }, { Y } },
        { { ADD }, { Y, X }, { Y } } },
      { NEED_WEIGHT(W), NEED_WEIGHT(V) } },
};
/* clang-format on */
const int fuse_n_row = (int)(sizeof fuse_rows / sizeof fuse_rows[0]);
