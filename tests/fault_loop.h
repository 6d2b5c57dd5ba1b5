/* The loop over faults, for cmocka tests: every call of a kind fails once, each failure is typed
 * and says something, nothing stays behind, and without a fault it all works. */
#ifndef TESTS_FAULT_LOOP_H
#define TESTS_FAULT_LOOP_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "fault_hooks.h"

/* A host on the hooks of the fault. */
static inline sinter_host *fault_host(struct fault *f)
{
    const sinter_hooks hooks = fault_hooks(f);
    sinter_error err = {0};
    sinter_host *host;
    if (sinter_host_create(&(sinter_host_options){.hooks = &hooks}, &host, &err) != SINTER_OK)
        fail_msg("%s", err.message);
    return host;
}

/* Calls run(ctx, err) with its first, second, ... call of the kind failing (or of the step-th,
 * 2 step-th, ... when that is not 1) until none fails. run gives back whatever it takes. Prints
 * "NAME KIND faults: N/N typed" and returns N. */
static inline uint64_t fault_loop_step(const char *name, struct fault *f, enum fault_kind kind,
                                       uint64_t step,
                                       sinter_status (*run)(void *ctx, sinter_error *err),
                                       void *ctx)
{
    uint64_t n = 0;
    for (uint64_t at = 1;; at += step, n++) {
        const int64_t live = f->live;
        sinter_error err = {0};
        f->kind = kind;
        f->at = f->n[kind] + at;
        f->hit = false;
        const sinter_status status = run(ctx, &err), want = f->hit ? fault_status[kind] : SINTER_OK;
        f->at = 0;
        if (f->live != live)
            fail_msg("%s: %s fault %" PRIu64 " leaves %" PRId64 " behind", name, fault_names[kind],
                     at, f->live - live);
        if (status != want || (f->hit && (err.status != status || !err.message[0])))
            fail_msg("%s: %s fault %" PRIu64 " gives status %d, not %d; error %d '%s'", name,
                     fault_names[kind], at, (int)status, (int)want, (int)err.status, err.message);
        if (!f->hit)
            break;
    }
    assert_true(n > 0);
    printf("%s %s faults: %" PRIu64 "/%" PRIu64 " typed\n", name, fault_names[kind], n, n);
    return n;
}

static inline uint64_t fault_loop(const char *name, struct fault *f, enum fault_kind kind,
                                  sinter_status (*run)(void *ctx, sinter_error *err), void *ctx)
{
    return fault_loop_step(name, f, kind, 1, run, ctx);
}

struct fault_with_host {
    struct fault *fault;
    sinter_status (*run)(sinter_host *host, void *ctx, sinter_error *err);
    void *ctx;
};

static inline sinter_status fault_run_host(void *ctx, sinter_error *err)
{
    const struct fault_with_host *w = ctx;
    const sinter_hooks hooks = fault_hooks(w->fault);
    sinter_host *host;
    sinter_status status = sinter_host_create(&(sinter_host_options){.hooks = &hooks}, &host, err);
    if (status == SINTER_OK) {
        status = w->run(host, w->ctx, err);
        sinter_host_free(host);
    }
    return status;
}

/* The same of a run that gets a new host each time, whose making may fail, too. */
static inline uint64_t
fault_loop_host(const char *name, struct fault *f, enum fault_kind kind,
                sinter_status (*run)(sinter_host *host, void *ctx, sinter_error *err), void *ctx)
{
    struct fault_with_host w = {f, run, ctx};
    return fault_loop(name, f, kind, fault_run_host, &w);
}

#endif
