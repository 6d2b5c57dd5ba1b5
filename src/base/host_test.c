#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/host.h"
#include "base/options.h"
#include "base/pool.h"
#include "fault_loop.h"
#include "temp_folder.h"

static char file_name[TEMP_PATH];

static void test_memory(void **state)
{
    struct fault fault = {0};
    sinter_host *host = fault_host(&fault);
    struct host_usage u;
    unsigned char *a, *b;
    char *text;
    (void)state;
    a = host_alloc(host, 1000);
    b = host_alloc_raw(host, 0);
    assert_non_null(a);
    assert_non_null(b);
    for (int i = 0; i < 1000; i++) /* the hook gives filled blocks */
        assert_int_equal(a[i], 0);
    assert_int_equal((uintptr_t)a % 64, 0);
    assert_int_equal((uintptr_t)b % 64, 0);
    text = host_strndup(host, "abc", 2);
    assert_string_equal(text, "ab");
    u = host_usage(host);
    assert_int_equal(u.bytes, 1003);
    assert_int_equal(u.n_live, 3);
    assert_int_equal(u.n_alloc, 3);
    host_free(host, a);
    host_free(host, b);
    host_free(host, text);
    host_free(host, NULL);
    u = host_usage(host);
    assert_int_equal(u.bytes, 0);
    assert_int_equal(u.bytes_max, 1003);
    assert_int_equal(u.n_live, 0);
    assert_null(host_alloc(host, SIZE_MAX));
    assert_null(host_alloc(host, SIZE_MAX - 10));
    assert_null(host_alloc_n(host, SIZE_MAX / 4, 5));
    assert_null(host_strndup(host, "", SIZE_MAX));
    assert_int_equal(host_usage(host).n_alloc, 3);
    sinter_host_free(host);
    assert_int_equal(fault.live, 0);
}

/* Large blocks of the built-in hooks, whatever the size. */
static void test_big(void **state)
{
    static const size_t sizes[] = {(4u << 20) - 65, (4u << 20) - 64, 4u << 20, (6u << 20) + 12345};
    sinter_host *host;
    (void)state;
    assert_int_equal(sinter_host_create(NULL, &host, NULL), SINTER_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *p = host_alloc(host, sizes[i]);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % (sizes[i] + 64 >= 4u << 20 ? 2u << 20 : 64),
                         sizes[i] + 64 >= 4u << 20 ? 64 : 0);
        for (size_t j = 0; j < sizes[i]; j += 4096)
            assert_int_equal(p[j], 0);
        memset(p, 1, sizes[i]);
        host_free(host, p);
    }
    sinter_host_free(host);
}

static sinter_status new_n(sinter_host *host, size_t n, double **out, sinter_error *err)
{
    NEW(host, *out, n, err);
    return SINTER_OK;
}

static void test_grow(void **state)
{
    struct fault fault = {0};
    sinter_host *host = fault_host(&fault);
    sinter_error err;
    uint32_t *list = NULL;
    double *d;
    size_t cap = 0, n_grow = 0;
    (void)state;
    for (size_t n = 1; n <= 10000; n++) {
        void *block = list;
        const size_t before = cap;
        assert_int_equal(host_grow(host, &block, &cap, n, sizeof *list, &err), SINTER_OK);
        list = block;
        n_grow += cap != before;
        assert_true(cap >= n);
        assert_int_equal(list[n - 1], 0);
        list[n - 1] = (uint32_t)n;
    }
    for (size_t i = 0; i < 10000; i++)
        assert_int_equal(list[i], i + 1);
    assert_true(n_grow < 14);
    assert_int_equal(host_grow(host, (void **)&list, &cap, SIZE_MAX / 2, 4, &err), SINTER_E_MEMORY);
    assert_int_equal(list[9999], 10000); /* a failed growth changes nothing */
    host_free(host, list);
    assert_int_equal(new_n(host, 3, &d, &err), SINTER_OK);
    host_free(host, d);
    fault.at = fault.n[FAULT_ALLOC] + 1;
    assert_int_equal(new_n(host, 3, &d, &err), SINTER_E_MEMORY);
    assert_non_null(strstr(err.message, "3 x 8 bytes"));
    sinter_host_free(host);
}

static sinter_status write_file(sinter_host *host, const char *text, sinter_error *err)
{
    sinter_status status;
    int handle;
    TRY(host_open(host, file_name, true, &handle, err));
    TRY_OUT(host_write(host, handle, text, strlen(text), err));
out:
    if (status == SINTER_OK)
        return host_close(host, handle, err);
    (void)!host_close(host, handle, NULL);
    return status;
}

static void test_files(void **state)
{
    struct fault fault = {.short_io = true};
    sinter_host *host = fault_host(&fault);
    sinter_error err;
    int64_t n;
    size_t bytes;
    char buf[64], *text;
    int handle;
    (void)state;
    assert_int_equal(write_file(host, "the quick brown fox jumps", &err), SINTER_OK);
    assert_int_equal(fault.n[FAULT_WRITE], 4); /* short writes were completed */
    assert_int_equal(host_open(host, file_name, false, &handle, &err), SINTER_OK);
    assert_int_equal(host_file_bytes(host, handle, &n, &err), SINTER_OK);
    assert_int_equal(n, 25);
    assert_int_equal(host_pread(host, handle, buf, 21, 4, &err), SINTER_OK);
    assert_memory_equal(buf, "quick brown fox jumps", 21);
    assert_int_equal(host_pread(host, handle, buf, 22, 4, &err), SINTER_E_IO);
    assert_non_null(strstr(err.message, "offset 25"));
    assert_int_equal(host_pread(host, handle, buf, 0, 99, &err), SINTER_OK);
    assert_int_equal(host_pread(host, handle, buf, 1, -1, &err), SINTER_E_INTERNAL);
    assert_int_equal(host_pread(host, handle, buf, 2, INT64_MAX - 1, &err), SINTER_E_INTERNAL);
    assert_int_equal(host_close(host, handle, &err), SINTER_OK);
    assert_int_equal(host_read_file(host, file_name, 25, &text, &bytes, &err), SINTER_OK);
    assert_string_equal(text, "the quick brown fox jumps");
    assert_int_equal(bytes, 25);
    host_free(host, text);
    assert_int_equal(host_read_file(host, file_name, 24, &text, &bytes, &err), SINTER_E_LIMIT);
    assert_null(text);
    sinter_host_free(host);
    assert_int_equal(fault.live, 0);
}

/* The built-in hooks' own refusals. */
static void test_bad_paths(void **state)
{
    static const struct {
        const char *path;
        bool for_write;
        sinter_status status;
        const char *says;
    } cases[] = {
        {TEST_BINARY_DIR "/no-such-file", false, SINTER_E_NOT_FOUND, "no such file"},
        {TEST_SOURCE_DIR "/LICENSE/x", false, SINTER_E_NOT_FOUND, "no such file"},
        {TEST_BINARY_DIR, false, SINTER_E_IO, "is a directory"},
        {TEST_BINARY_DIR, true, SINTER_E_IO, "is a directory"},
        {TEST_BINARY_DIR "/no-such-folder/x", true, SINTER_E_IO, "cannot be written"},
        {"", false, SINTER_E_NOT_FOUND, "no such file"},
    };
    sinter_host *host;
    sinter_error err;
    int64_t n;
    int handle;
    (void)state;
    assert_int_equal(sinter_host_create(NULL, &host, NULL), SINTER_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(host_open(host, cases[i].path, cases[i].for_write, &handle, &err),
                         cases[i].status);
        assert_int_equal(handle, -1);
        if (!strstr(err.message, cases[i].says))
            fail_msg("\"%s\" lacks \"%s\"", err.message, cases[i].says);
    }
    assert_int_equal(host_open(host, "/dev/null", false, &handle, &err), SINTER_OK);
    assert_int_equal(host_file_bytes(host, handle, &n, &err), SINTER_E_IO);
    assert_int_equal(host_close(host, handle, &err), SINTER_OK);
    assert_int_equal(host_close(host, handle, &err), SINTER_E_IO);
    assert_int_equal(host_open(host, "/dev/full", true, &handle, &err), SINTER_OK);
    assert_int_equal(host_write(host, handle, "x", 1, &err), SINTER_E_IO);
    assert_int_equal(host_close(host, handle, &err), SINTER_OK);
    sinter_host_free(host);
}

static void nothing(void *ctx, int thread, int n_thread)
{
    (void)ctx, (void)thread, (void)n_thread;
}

/* Everything of the host once; what fails must be typed. */
static sinter_status use_everything(sinter_host *host, void *ctx, sinter_error *err)
{
    struct pool *pool;
    sinter_status status;
    char *text = NULL;
    size_t bytes;
    (void)ctx;
    TRY_OUT(sinter_host_set(host, "threads", "3", err));
    TRY_OUT(write_file(host, "some text", err));
    TRY_OUT(host_read_file(host, file_name, 100, &text, &bytes, err));
    TRY_OUT(host_pool(host, &pool, err));
    pool_run(pool, pool_n_thread(pool), nothing, NULL);
out:
    host_free(host, text);
    return status;
}

static void test_faults(void **state)
{
    (void)state;
    for (int kind = 0; kind < FAULT_N_KIND; kind++)
        fault_loop_host("host", &(struct fault){0}, kind, use_everything, NULL);
}

static void test_hooks(void **state)
{
    struct fault fault = {0};
    const sinter_hooks all = fault_hooks(&fault);
    sinter_hooks h;
    sinter_host *host;
    sinter_error err;
    sinter_host_options o = {.hooks = &h};
    (void)state;
    h = all, h.free = NULL;
    assert_int_equal(sinter_host_create(&o, &host, &err), SINTER_E_USAGE);
    h = all, h.thread_join = NULL;
    assert_int_equal(sinter_host_create(&o, &host, &err), SINTER_E_USAGE);
    h = all, h.pread = NULL;
    assert_int_equal(sinter_host_create(&o, &host, &err), SINTER_E_USAGE);
    h = all, h.size = sizeof h + 8;
    assert_int_equal(sinter_host_create(&o, &host, &err), SINTER_E_USAGE);
    h = (sinter_hooks){0};
    assert_int_equal(sinter_host_create(&o, NULL, &err), SINTER_E_USAGE);
    o.size = sizeof o + 1;
    assert_int_equal(sinter_host_create(&o, &host, &err), SINTER_E_USAGE);
    assert_null(host);
    o.size = offsetof(sinter_host_options, log); /* a program of an older header */
    o.log_level = SINTER_LOG_DEBUG;
    assert_int_equal(sinter_host_create(&o, &host, &err), SINTER_OK);
    assert_true(host_clock_ns(host) > 0);
    sinter_host_free(host);
    sinter_host_free(NULL);
}

struct lines {
    int n[4];
    char last[4096];
};

static void keep_line(void *ctx, sinter_log_level level, const char *line)
{
    struct lines *lines = ctx;
    lines->n[level]++;
    snprintf(lines->last, sizeof lines->last, "%s", line);
}

static void test_log(void **state)
{
    struct lines lines = {0};
    sinter_host_options o = {.log = keep_line, .log_ctx = &lines, .log_level = SINTER_LOG_INFO};
    sinter_host *host;
    sinter_error err;
    (void)state;
    assert_int_equal(sinter_host_create(&o, &host, &err), SINTER_OK);
    host_log(host, SINTER_LOG_DEBUG, "not made");
    host_log(host, SINTER_LOG_INFO, "a\nb\x1b%d\xff\xc2\x9b", 1);
    assert_string_equal(lines.last, "a b?1???");
    host_log(host, SINTER_LOG_ERROR, "%3000d", 1);
    assert_int_equal(strlen(lines.last), 2047);
    assert_string_equal(lines.last + 2044, "...");
    assert_int_equal(host_warn(host, &err, "odd key %s", "x"), SINTER_OK);
    assert_string_equal(lines.last, "odd key x");
    assert_int_equal(host_warnings(host), 1);
    assert_int_equal(sinter_host_set(host, "strict", "on", &err), SINTER_OK);
    assert_int_equal(host_warn(host, &err, "odd key %s", "y"), SINTER_E_STRICT);
    assert_non_null(strstr(err.message, "odd key y"));
    assert_int_equal(host_warnings(host), 2);
    assert_int_equal(lines.n[SINTER_LOG_WARN], 1);
    assert_int_equal(lines.n[SINTER_LOG_DEBUG], 0);
    host_freeze_options(host);
    assert_int_equal(sinter_host_set(host, "strict", "off", &err), SINTER_E_USAGE);
    assert_true(host_options(host)->strict);
    assert_int_equal(sinter_host_set(NULL, "strict", "off", &err), SINTER_E_USAGE);
    sinter_host_free(host);
}

/* A number of threads that could no longer take effect is refused. */
static void test_late_threads(void **state)
{
    sinter_host *host;
    (void)state;
    assert_int_equal(sinter_host_create(NULL, &host, NULL), SINTER_OK);
    assert_int_equal(sinter_host_set(host, "threads", "1", NULL), SINTER_OK);
    assert_int_equal(sinter_host_n_thread(host), 1);
    assert_int_equal(sinter_host_set(host, "threads", "2", NULL), SINTER_E_USAGE);
    sinter_host_free(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),       cmocka_unit_test(test_big),
        cmocka_unit_test(test_grow),         cmocka_unit_test(test_files),
        cmocka_unit_test(test_bad_paths),    cmocka_unit_test(test_faults),
        cmocka_unit_test(test_hooks),        cmocka_unit_test(test_log),
        cmocka_unit_test(test_late_threads),
    };
    temp_path("file", file_name);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
