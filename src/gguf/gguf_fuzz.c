/* Fuzz target of the GGUF reader: any bytes give a typed error that names the byte, or a file that
 * prints whole and whose tensors can be read; memory stays within the bound; nothing leaks. */
#include "base/text_buf.h"
#include "fault_hooks.h"
#include "gguf/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x)                                                                                 \
    do {                                                                                           \
        if (!(x))                                                                                  \
            __builtin_trap();                                                                      \
    } while (0)

static void use(sinter_host *host, const struct gguf *g)
{
    struct text_buf b;
    uint8_t buf[64];
    for (int json = 0; json < 2; json++) {
        text_buf_init(&b, host);
        gguf_print(g, &b, json != 0);
        REQUIRE(text_buf_end(&b, NULL) == SINTER_OK);
        text_buf_free(&b);
    }
    for (size_t i = 0; i < g->n_kv; i++)
        REQUIRE(gguf_find(g, g->kv[i].key) == &g->kv[i]);
    for (size_t i = 0; i < g->n_tensor; i++) {
        const struct gguf_tensor *t = &g->tensor[i];
        REQUIRE(gguf_find_tensor(g, t->name) == t);
        uint64_t n = t->bytes < sizeof buf ? t->bytes : sizeof buf;
        if (n > 0)
            REQUIRE(gguf_read(g, t, t->bytes - n, buf, (size_t)n, NULL) == SINTER_OK);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memory_file m = {.data = data, .bytes = size};
    struct fault fault = {.file = &m};
    sinter_hooks hooks = fault_hooks(&fault);
    sinter_host *host;
    sinter_error err;
    struct gguf *g;
    REQUIRE(sinter_host_create(&(sinter_host_options){.hooks = &hooks}, &host, &err) == SINTER_OK);
    const int64_t live = fault.live;
    const uint64_t asked = fault.asked;
    sinter_status status = gguf_open(host, "fuzz", &g, &err);
    REQUIRE(fault.asked - asked <= 2 * (uint64_t)size + 256 * 1024);
    if (status == SINTER_OK)
        use(host, g);
    else
        REQUIRE(err.status == status && strstr(err.message, ": byte "));
    gguf_close(g);
    REQUIRE(fault.live == live);
    sinter_host_free(host);
    REQUIRE(fault.live == 0);
    return 0;
}
