/* What a node takes: bytes of matrices and of the KV cache that it reads, multiply-adds. For shares
 * of the machine's rates in `bench` and `profile`; by operand roles, not by op. */
#ifndef GRAPH_COST_H
#define GRAPH_COST_H

#include "graph/graph.h"

struct cost_step {
    int64_t n_tok, n_out, n_seq; /* rows of the step */
    int64_t n_past;              /* rows that the sequence held before */
    enum quant_type type_k, type_v;
};

struct cost {
    uint64_t weight_bytes; /* each matrix once, in the file's format; experts: those of one row */
    uint64_t kv_bytes;     /* K and V each once */
    uint64_t macs;         /* with matrices; attention is not counted */
};

/* Adds the node's cost to *sum. */
void cost_add(const struct graph *g, const struct node *n, const struct cost_step *step,
              struct cost *sum);

#endif
