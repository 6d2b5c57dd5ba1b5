/* CPU features by CPUID and XGETBV (a level counts only if the system saves its registers), and
 * how many threads make sense here: affinity, physical cores, cgroup quota.
 *
 * /proc and /sys are facts of the system like CPUID, not files of the caller: they are read
 * directly and not through the host's hooks, and where they are missing the answer is the plain
 * count of the affinity mask. */
#include "base/cpu.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "base/cpu_impl.h"

enum { MAX_CPU = CPU_SETSIZE };

static const char *const level_names[] = {"c", "avx2", "avx512"};
_Static_assert(sizeof level_names / sizeof *level_names == CPU_N_LEVEL, "one name per level");

const char *cpu_level_name(enum cpu_level level)
{
    return level_names[level];
}

#if defined(__x86_64__) || defined(__i386__)

static bool has(unsigned reg, int bit)
{
    return reg >> bit & 1;
}

/* Which register files the system saves at a context switch (XCR0). */
static unsigned saved_state(void)
{
    unsigned lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return lo;
}

enum cpu_level cpu_level_native(void)
{
    const unsigned ymm = 0x06, zmm = 0xE6;
    unsigned a, b, c, d, c1, state;
    if (!__get_cpuid(1, &a, &b, &c1, &d) || !has(c1, 27)) /* OSXSAVE */
        return CPU_C;
    state = saved_state();
    if ((state & ymm) != ymm || !has(c1, 12) || !has(c1, 29)) /* FMA, F16C */
        return CPU_C;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has(b, 5) || !has(b, 8)) /* AVX2, BMI2 */
        return CPU_C;
    if ((state & zmm) != zmm || !has(b, 16) || !has(b, 17) || !has(b, 30) || !has(b, 31) ||
        !has(c, 11)) /* F, DQ, BW, VL; VNNI */
        return CPU_AVX2;
    return CPU_AVX512;
}

const char *cpu_model_name(char *buf, size_t bytes)
{
    unsigned r[13] = {0};
    const char *name = (const char *)r;
    if (!__get_cpuid(0x80000002, r, r + 1, r + 2, r + 3) ||
        !__get_cpuid(0x80000003, r + 4, r + 5, r + 6, r + 7) ||
        !__get_cpuid(0x80000004, r + 8, r + 9, r + 10, r + 11))
        name = "x86";
    snprintf(buf, bytes, "%s", name + strspn(name, " "));
    return buf;
}

#else

enum cpu_level cpu_level_native(void)
{
    return CPU_C;
}

const char *cpu_model_name(char *buf, size_t bytes)
{
    snprintf(buf, bytes, "unknown CPU");
    return buf;
}

#endif

sinter_status cpu_level_masked(const char *mask, enum cpu_level *level, sinter_error *err)
{
    const enum cpu_level native = cpu_level_native();
    *level = native;
    if (!*mask)
        return SINTER_OK;
    for (int i = 0; i < CPU_N_LEVEL; i++) {
        if (strcmp(mask, level_names[i]))
            continue;
        if (i > (int)native)
            return FAIL(err, DEVICE,
                        "cpu-mask %s: this machine has at most %s; leave the option "
                        "out",
                        mask, level_names[native]);
        *level = (enum cpu_level)i;
        return SINTER_OK;
    }
    return FAIL(err, USAGE, "cpu-mask: \"%s\" is not one of c, avx2, avx512", mask);
}

/* ---- Topology ----------------------------------------------------------------------------- */

/* The start of root/path as text, without the last newline; false if it cannot be read. */
static bool read_text(const char *root, const char *path, char *text, size_t bytes)
{
    char full[512];
    ssize_t n;
    int fd;
    if ((size_t)snprintf(full, sizeof full, "%s%s", root, path) >= sizeof full)
        return false;
    fd = open(full, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, bytes - 1);
    close(fd);
    if (n < 0)
        return false;
    text[n] = 0;
    return true;
}

/* The lowest allowed CPU of a list like "0,4-6", or -1. */
static int first_allowed(const char *list, const bool *allowed, int n_cpu)
{
    while (*list >= '0' && *list <= '9') {
        char *end;
        const long lo = strtol(list, &end, 10);
        const long hi = *end == '-' ? strtol(end + 1, &end, 10) : lo;
        for (long cpu = lo; cpu <= hi && cpu < n_cpu; cpu++)
            if (allowed[cpu])
                return (int)cpu;
        list = end + (*end == ',');
    }
    return -1;
}

int cpu_n_core(const char *root, const bool *allowed, int n_cpu)
{
    int n = 0;
    for (int cpu = 0; cpu < n_cpu; cpu++) {
        char path[96], list[1024];
        if (!allowed[cpu])
            continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 cpu);
        if (!read_text(root, path, list, sizeof list) || first_allowed(list, allowed, n_cpu) < 0)
            n++;
        else
            n += first_allowed(list, allowed, n_cpu) == cpu; /* one CPU stands for its core */
    }
    return n;
}

static int quota_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return 0;
    return quota / period >= MAX_CPU ? 0 : (int)((quota + period - 1) / period);
}

/* The quota written in the files of one cgroup folder; 0 = none. */
static int quota_of(const char *root, const char *folder, bool v2)
{
    char path[400], text[64];
    long long quota, period;
    if (v2) {
        snprintf(path, sizeof path, "%s/cpu.max", folder);
        if (!read_text(root, path, text, sizeof text) ||
            sscanf(text, "%lld %lld", &quota, &period) != 2) /* "max 100000": no limit */
            return 0;
        return quota_cpus(quota, period);
    }
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_text(root, path, text, sizeof text) || sscanf(text, "%lld", &quota) != 1)
        return 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!read_text(root, path, text, sizeof text) || sscanf(text, "%lld", &period) != 1)
        return 0;
    return quota_cpus(quota, period);
}

/* Is `word` an item of the comma-separated list of `n` bytes? */
static bool has_controller(const char *list, size_t n, const char *word)
{
    const size_t length = strlen(word);
    for (size_t i = 0; i + length <= n; i++)
        if (!memcmp(list + i, word, length) && (!i || list[i - 1] == ',') &&
            (i + length == n || list[i + length] == ','))
            return true;
    return false;
}

/* The tightest quota of the group `path` (as /proc/self/cgroup names it) and of those above it.
 * Inside a container the path may not be visible; the mount's root then is the own group. */
static int quota_of_path(const char *root, const char *mount, const char *path, size_t n, bool v2)
{
    char folder[300];
    const size_t n_mount = strlen(mount);
    int best = 0;
    if (n_mount + n >= sizeof folder)
        n = 0;
    memcpy(folder, mount, n_mount);
    memcpy(folder + n_mount, path, n);
    folder[n_mount + n] = 0;
    for (size_t end = n_mount + n;; end--) {
        if (end > n_mount && folder[end] != '/' && folder[end] != 0)
            continue;
        folder[end] = 0;
        const int quota = quota_of(root, folder, v2);
        if (quota && (!best || quota < best))
            best = quota;
        if (end <= n_mount)
            return best;
    }
}

int cpu_quota(const char *root)
{
    char text[4096], *line = text;
    int best = 0;
    if (!read_text(root, "/proc/self/cgroup", text, sizeof text))
        return 0;
    while (line && *line) { /* hierarchy:controllers:path */
        char *next = strchr(line, '\n'), *list = strchr(line, ':');
        char *path = list ? strchr(list + 1, ':') : NULL;
        const size_t n_line = next ? (size_t)(next - line) : strlen(line);
        if (path && (size_t)(path - line) < n_line) {
            const size_t n = n_line - (size_t)(path + 1 - line);
            const bool v2 = path == list + 1;
            int quota = 0;
            if (v2)
                quota = quota_of_path(root, "/sys/fs/cgroup", path + 1, n, true);
            else if (has_controller(list + 1, (size_t)(path - list - 1), "cpu"))
                quota = quota_of_path(root, "/sys/fs/cgroup/cpu", path + 1, n, false);
            if (quota && (!best || quota < best))
                best = quota;
        }
        line = next ? next + 1 : NULL;
    }
    return best;
}

/* The affinity mask as flags; how many are set. */
static int affinity(bool allowed[static MAX_CPU])
{
    cpu_set_t set;
    int n = 0;
    if (sched_getaffinity(0, sizeof set, &set)) { /* more CPUs than the mask holds */
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        for (int i = 0; i < MAX_CPU; i++)
            n += allowed[i] = i < online;
        return n;
    }
    for (int i = 0; i < MAX_CPU; i++)
        n += allowed[i] = CPU_ISSET((size_t)i, &set);
    return n;
}

int cpu_n_logical(void)
{
    bool allowed[MAX_CPU];
    const int n = affinity(allowed);
    return n < 1 ? 1 : n;
}

int cpu_threads_default(void)
{
    bool allowed[MAX_CPU];
    int n, quota;
    affinity(allowed);
    n = cpu_n_core("", allowed, MAX_CPU);
    quota = cpu_quota("");
    if (quota && quota < n)
        n = quota;
    return n < 1 ? 1 : n;
}
