/* sinter_engine_cost: the sum over the trunk's nodes. */
#include "run/run.h"

#include "graph/cost.h"

void sinter_engine_cost(const sinter_engine *e, int32_t n_past, int32_t n_row, sinter_cost *cost)
{
    const struct cost_step step = {.n_tok = n_row,
                                   .n_out = 1,
                                   .n_seq = 1,
                                   .n_past = n_past,
                                   .type_k = e->state_o.type_k,
                                   .type_v = e->state_o.type_v};
    struct cost sum = {0};
    for (int i = 0; i < e->graph->n_node; i++)
        cost_add(e->graph, &e->graph->node[i], &step, &sum);
    *cost = (sinter_cost){sum.weight_bytes, sum.kv_bytes, sum.macs};
}
