/* What a plan step did, for the profile: bytes of weights and cache read, multiply-adds. */
#ifndef NATIVE_PROFILE_H
#define NATIVE_PROFILE_H

#include "native/exec.h"

struct step_work { uint64_t bytes, macs; };
/* Of the step that x runs now (x->cur, x->batch); a convert does no work that is counted. */
struct step_work step_work(const struct exec *x, const struct plan_step *step);

#endif
