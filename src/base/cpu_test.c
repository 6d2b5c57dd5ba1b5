#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cpu_impl.h"
#include "temp_folder.h"

/* A path below the temporary folder. */
static const char *at(const char *path)
{
    static char full[TEMP_PATH];
    return temp_path(path, full);
}

/* Writes a file, with the folders it needs. */
static void put(const char *path, const char *text)
{
    char full[1024];
    FILE *file;
    snprintf(full, sizeof full, "%s%s", temp_folder(), path);
    for (char *c = full + 1; *c; c++)
        if (*c == '/') {
            *c = 0;
            mkdir(full, 0777);
            *c = '/';
        }
    file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_level(void **state)
{
    enum cpu_level native = cpu_level_native(), level;
    sinter_error err;
    char name[64];
    (void)state;
#if defined(__x86_64__)
    __builtin_cpu_init();
    assert_int_equal(native >= CPU_AVX2,
                     __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
    assert_int_equal(native >= CPU_AVX512, !!__builtin_cpu_supports("avx512vnni"));
#endif
    assert_string_equal(cpu_level_name(CPU_AVX512), "avx512");
    for (int i = 0; i < CPU_N_LEVEL; i++) {
        const sinter_status status = cpu_level_masked(cpu_level_name(i), &level, &err);
        assert_int_equal(status, i <= (int)native ? SINTER_OK : SINTER_E_DEVICE);
        if (status == SINTER_OK)
            assert_int_equal(level, i);
    }
    assert_int_equal(cpu_level_masked("", &level, &err), SINTER_OK);
    assert_int_equal(level, native);
    assert_int_equal(cpu_level_masked("neon", &level, &err), SINTER_E_USAGE);
    assert_true(strlen(cpu_model_name(name, sizeof name)) > 2);
    assert_int_equal(strlen(cpu_model_name(name, 3)), 2);
    printf("cpu: %s, %s, %d threads\n", cpu_model_name(name, sizeof name), cpu_level_name(native),
           cpu_threads_default());
}

/* Eight CPUs, pairs on a core, as the made-up sysfs says. */
static void test_cores(void **state)
{
    bool allowed[16] = {1, 1, 1, 1, 1, 1, 1, 1};
    (void)state;
    for (int cpu = 0; cpu < 8; cpu++) {
        char path[96], list[32];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 cpu);
        if (cpu < 4) /* 0,1 2,3 written as ranges; 4,6 5,7 as lists */
            snprintf(list, sizeof list, "%d-%d\n", cpu & ~1, cpu | 1);
        else
            snprintf(list, sizeof list, "%d,%d\n", 4 + (cpu & 1), 6 + (cpu & 1));
        put(path, list);
    }
    assert_int_equal(cpu_n_core(temp_folder(), allowed, 16), 4);
    allowed[0] = false; /* its sibling still stands for the core */
    assert_int_equal(cpu_n_core(temp_folder(), allowed, 16), 4);
    allowed[1] = false;
    assert_int_equal(cpu_n_core(temp_folder(), allowed, 16), 3);
    allowed[4] = allowed[5] = false;
    assert_int_equal(cpu_n_core(temp_folder(), allowed, 16), 3);
    allowed[9] = true; /* of which the system says nothing */
    assert_int_equal(cpu_n_core(temp_folder(), allowed, 16), 4);
    assert_int_equal(cpu_n_core(at("nowhere"), allowed, 16), 5);
}

static void test_quota(void **state)
{
    (void)state;
    assert_int_equal(cpu_quota(at("nowhere")), 0);
    put("/v2/proc/self/cgroup", "0::/a/b\n");
    assert_int_equal(cpu_quota(at("v2")), 0);
    put("/v2/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    assert_int_equal(cpu_quota(at("v2")), 0);
    put("/v2/sys/fs/cgroup/a/b/cpu.max", "250000 100000\n");
    assert_int_equal(cpu_quota(at("v2")), 3);
    put("/v2/sys/fs/cgroup/a/cpu.max", "150000 100000\n"); /* the parent is tighter */
    assert_int_equal(cpu_quota(at("v2")), 2);
    put("/v2/sys/fs/cgroup/cpu.max", "1000 100000\n");
    assert_int_equal(cpu_quota(at("v2")), 1);
    put("/v1/proc/self/cgroup", "9:cpuset:/x\n5:cpu,cpuacct:/job\n1:name=systemd:/\n");
    put("/v1/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "400000\n");
    assert_int_equal(cpu_quota(at("v1")), 0);
    put("/v1/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpu_quota(at("v1")), 4);
    put("/v1/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(cpu_quota(at("v1")), 0);
    put("/bad/proc/self/cgroup", "garbage\n::\n0:\n0::\n\n0::/no\nx");
    assert_int_equal(cpu_quota(at("bad")), 0);
}

static void test_default(void **state)
{
    cpu_set_t old, one;
    (void)state;
    assert_true(cpu_threads_default() >= 1);
    assert_true(cpu_threads_default() <= cpu_n_logical());
    assert_int_equal(sched_getaffinity(0, sizeof old, &old), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &old)) {
            CPU_SET(cpu, &one);
            break;
        }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(cpu_n_logical(), 1);
    assert_int_equal(cpu_threads_default(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof old, &old), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_level), cmocka_unit_test(test_cores),
                                       cmocka_unit_test(test_quota),
                                       cmocka_unit_test(test_default)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
