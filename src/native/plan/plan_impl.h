/* Inside native/plan: the parts of plan_create, in the order they run. */
#ifndef NATIVE_PLAN_PLAN_IMPL_H
#define NATIVE_PLAN_PLAN_IMPL_H

#include "native/plan/plan.h"

/* One operand that a step reads from outside of itself. */
struct read {
    int value;
    enum form form;
    bool whole;
};
enum { PLAN_MAX_READ = FUSE_MAX_NODE * OP_MAX_IN };

/* What step s reads; weights, scores and states are not listed. Returns the count. */
int plan_reads(const struct native_kind *kind, const struct plan *p, int s, struct read *read);

/* forms.c: steps from groups in order, buffers of every form that is read, converts. */
CHECKED sinter_status plan_forms(const struct native_kind *kind, struct plan *p, const int *order,
                                 sinter_error *err);
/* shares.c: resolves ANY, sets barriers. */
void plan_shares(const struct native_kind *kind, struct plan *p);
/* Does a thread's part of step r read (`whole`: whole rows of) v where another thread's part of
 * step w, whose outputs are cut as v is, writes? */
bool plan_crosses(const struct plan *p, const struct plan_step *w, const struct plan_step *r,
                  const struct value *v, bool whole);
/* offsets.c: last readers, intervals, in-place pairs, offsets; and the check of FULL, which gives
 * the step it refuses, or -1. */
void plan_liveness(const struct native_kind *kind, struct plan *p);
CHECKED sinter_status plan_offsets(struct plan *p, sinter_error *err);
int plan_full(const struct native_kind *kind, const struct plan *p);
/* after.c: sets n_after and after of each step. */
CHECKED sinter_status plan_set_after(const struct native_kind *kind, struct plan *p,
                                     sinter_error *err);
/* Must step s come after t (t < s), by itself? For tests. */
bool plan_conflict(const struct native_kind *kind, const struct plan *p, int s, int t);

#endif
