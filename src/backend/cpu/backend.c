/* The cpu backend behind backend.h: the level is the machine's best, or what cpu-mask allows. */
#include "backend/backend.h"

#include "backend/cpu/cpu.h"
#include "base/options.h"

#include <string.h>

static sinter_status level_of(sinter_host *host, enum cpu_level *level, sinter_error *err)
{
    const char *mask = host_options(host)->cpu_mask;
    enum cpu_level native = cpu_level_native();
    *level = native;
    if (!mask[0])
        return SINTER_OK;
    for (enum cpu_level l = CPU_C; l < CPU_N_LEVEL; l++) {
        if (strcmp(mask, cpu_level_name(l)) != 0)
            continue;
        *level = l < native ? l : native;
        if (l > native)
            return host_warn(host, err, "cpu-mask %s: this machine has %s only, which is used", mask,
                             cpu_level_name(native));
        return SINTER_OK;
    }
    return FAIL(err, USAGE, "cpu-mask '%s' is no instruction set; use c, avx2 or avx512", mask);
}

static sinter_status open(sinter_host *host, struct device **out, sinter_error *err)
{
    enum cpu_level level;
    TRY(level_of(host, &level, err));
    host_log(host, SINTER_LOG_INFO, "cpu: kernels of level %s", cpu_level_name(level));
    return native_open(host, cpu_kind(level), NULL, NULL, out, err);
}

const struct backend backend_cpu = { .name = "cpu", .what = "this machine's processor",
                                     .open = open, BACKEND_NATIVE };
