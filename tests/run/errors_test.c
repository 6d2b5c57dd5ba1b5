/* Every row of errors.def comes out of a real path, with a message that says more than its name. */
#include "fault_hooks.h"
#include "native/plan/plan_impl.h"
#include "native/stack.h"
#include "run/rig.h"

#include <math.h>

static struct rig rig;
static char path[TEMP_PATH];

static sinter_status usage(sinter_error *err)
{
    return sinter_host_set(rig.host, "no-such-option", "1", err);
}

static sinter_status data(sinter_error *err)
{
    sinter_session *s = rig_session(&rig);
    sinter_status status = sinter_session_restore(s, "garbage, and enough of it", 25, err);
    sinter_session_close(s);
    return status;
}

static sinter_status not_found(sinter_error *err)
{
    sinter_model *m;
    return sinter_model_open(rig.host, TEST_BINARY_DIR "/no/such.gguf", NULL, &m, err);
}

static sinter_status engine(sinter_engine_options o, sinter_error *err)
{
    sinter_engine *e;
    return sinter_engine_create(rig.model, &o, &e, err);
}

static sinter_status unsupported(sinter_error *err)
{
    return engine((sinter_engine_options){.type_k = "q8_0", .backend = "cpu"}, err);
}

static sinter_status device(sinter_error *err)
{
    return engine((sinter_engine_options){.backend = "abacus"}, err);
}

static sinter_status memory(sinter_error *err)
{
    return engine((sinter_engine_options){.n_ctx = 1 << 24, .n_session = 1024}, err);
}

static sinter_status io(sinter_error *err)
{
    return sinter_dummy_write(rig.host, &(sinter_dummy_options){.arch = "llama"},
                              TEST_BINARY_DIR "/no/such/folder/x.gguf", err);
}

static sinter_status with_host(const char *option, const char *value, struct fault *fault,
                               sinter_engine_options o, sinter_error *err)
{
    sinter_hooks hooks = fault_hooks(fault);
    sinter_host *host;
    sinter_model *m;
    sinter_engine *e;
    OK(sinter_host_create(&(sinter_host_options){.hooks = &hooks}, &host, err));
    OK(sinter_host_set(host, option, value, err));
    OK(sinter_model_open(host, path, NULL, &m, err));
    sinter_status status = sinter_engine_create(m, &o, &e, err);
    sinter_model_close(m);
    sinter_host_free(host);
    return status;
}

static sinter_status thread(sinter_error *err)
{
    return with_host("threads", "2", &(struct fault){.kind = FAULT_THREAD, .at = 1},
                     (sinter_engine_options){0}, err);
}

static sinter_status strict(sinter_error *err)
{
    return with_host("strict", "1", &(struct fault){0}, (sinter_engine_options){.n_ctx = 1 << 20},
                     err);
}

static sinter_status step(int n, sinter_error *err)
{
    int32_t id[64] = {0};
    sinter_session *s = rig_session(&rig);
    sinter_item it = {.session = s, .ids = id, .n_id = n};
    sinter_status status = sinter_engine_step(rig.engine, &it, 1, err);
    sinter_session_close(s);
    return status;
}

static sinter_status context(sinter_error *err)
{
    return step(33, err);
}

static sinter_status limit(sinter_error *err)
{
    return step(20, err);
}

static sinter_status state_(sinter_error *err)
{
    sinter_session *s = rig_session(&rig);
    sinter_status status = sinter_session_trim(s, 5, err);
    sinter_session_close(s);
    return status;
}

static sinter_status cancelled(sinter_error *err)
{
    int32_t id = 1;
    sinter_session *s = rig_session(&rig);
    sinter_item it = {.session = s, .ids = &id, .n_id = 1};
    sinter_session_cancel(s);
    sinter_status status = sinter_engine_step(rig.engine, &it, 1, err);
    sinter_session_close(s);
    return status;
}

static sinter_status numeric(sinter_error *err)
{
    float x[3] = {1, NAN, 2};
    int32_t id;
    sinter_sampler *s;
    OK(sinter_sampler_create(rig.host, 3, NULL, &s, err));
    sinter_status status = sinter_sampler_pick(s, x, &id, err);
    sinter_sampler_free(s);
    return status;
}

/* Two values of single ops in one place: what our own planner must never do. */
static void all_in_one_place(struct plan *p, uint64_t seed)
{
    for (int b = 0; b < p->n_buf; b++)
        p->buf[b].off = seed;
}

static sinter_status internal(sinter_error *err)
{
    struct subject llama = {.name = "llama-f32", .dummy = {.arch = "llama", .kind = DUMMY_F32}};
    struct stack k = stack_open(&llama, &(struct stack_options){.backend = "ref"});
    struct exec_options o = k.exec->o;
    struct plan_key key = exec_key(k.device->kind, &o, 1, 1, PORT_LOGITS);
    struct plan *p;
    o.offsets = all_in_one_place;
    sinter_status status = exec_plan_for(k.host, k.device->kind, k.device->table, k.graph, &key, &o,
                                         NULL, false, &p, err);
    stack_close(&k);
    return status;
}

static void test_errors(void **state)
{
    static sinter_status (*const provoke[SINTER_N_STATUS])(sinter_error * err) = {
        [SINTER_E_USAGE] = usage,
        [SINTER_E_DATA] = data,
        [SINTER_E_NOT_FOUND] = not_found,
        [SINTER_E_UNSUPPORTED] = unsupported,
        [SINTER_E_DEVICE] = device,
        [SINTER_E_MEMORY] = memory,
        [SINTER_E_IO] = io,
        [SINTER_E_THREAD] = thread,
        [SINTER_E_CONTEXT] = context,
        [SINTER_E_STATE] = state_,
        [SINTER_E_CANCELLED] = cancelled,
        [SINTER_E_NUMERIC] = numeric,
        [SINTER_E_LIMIT] = limit,
        [SINTER_E_STRICT] = strict,
        [SINTER_E_INTERNAL] = internal,
    };
    int n = 0;
    (void)state;
    for (int i = SINTER_OK + 1; i < SINTER_N_STATUS; i++) {
        sinter_error err = {0};
        sinter_status status = provoke[i] ? provoke[i](&err) : SINTER_OK;
        if (status != (sinter_status)i || err.status != status || strlen(err.message) < 20)
            fail_msg("%s: status %d, '%s'", sinter_status_text((sinter_status)i), (int)status,
                     err.message);
        assert_true(sinter_status_exit_code(status) > 0);
        n++;
    }
    printf("errors.def: %d/%d provoked\n", n, SINTER_N_STATUS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors)};
    rig = rig_open("llama", "f32", (const char *const[]){"threads=1", NULL},
                   &(sinter_engine_options){.n_ctx = 32, .n_chunk = 16});
    rig_write(rig.host, "llama", "f32", rig_path("llama", "f32", path));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    rig_close(&rig);
    return failed;
}
