/* The profile of an exec: time, bytes and multiply-adds per row of the fusion table, as thread 0
 * sees them. Two more rows: converts to INT8, and the waiting at barriers. */
#ifndef NATIVE_PROFILE_H
#define NATIVE_PROFILE_H

#include "graph/cost.h"
#include "native/exec.h"

struct exec_prof {
    uint64_t ns, calls;
    struct cost cost;
};
/* Rows of x->prof: the table's variants, then these. */
enum { PROFILE_CONVERT, PROFILE_BARRIER, PROFILE_N_MORE };

/* The wait from `start` until now; gives now. */
uint64_t profile_wait(struct exec *x, uint64_t start);
/* The plan step that ran from `start` until now; gives now. */
uint64_t profile_step(struct exec *x, const struct plan_step *step, uint64_t start);
/* Sorted by time, as text or JSON; the counters start anew. */
CHECKED sinter_status profile_print(struct exec *x, struct text_buf *b, bool json,
                                    sinter_error *err);

#endif
