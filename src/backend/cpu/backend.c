/* The cpu backend behind backend.h: the level is the machine's best, or what cpu-mask allows. */
#include "backend/backend.h"

#include "backend/cpu/cpu.h"
#include "base/options.h"

static sinter_status open(sinter_host *host, struct device **out, sinter_error *err)
{
    enum cpu_level level;
    TRY(cpu_level_masked(host_options(host)->cpu_mask, &level, err));
    if (host_options(host)->far)
        host_log(host, SINTER_LOG_WARN, "option far: only the ref backend has such memory");
    host_log(host, SINTER_LOG_INFO, "cpu: kernels of level %s", cpu_level_name(level));
    return native_open(host, cpu_kind(level), NULL, NULL, out, err);
}

const struct backend backend_cpu = {.name = "cpu",
                                    .what = "this machine's processor",
                                    .kv_types = 1u << QUANT_F32 | 1u << QUANT_F16,
                                    .open = open,
                                    BACKEND_NATIVE,
                                    .measure = cpu_measure,
                                    .bench = cpu_bench};
