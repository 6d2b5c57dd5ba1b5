/* Fuzz target of templates: source, a NUL, then JSON (or fixed variables if there is no NUL). Any
 * bytes give a typed error or a text, in bounded steps, memory and depth. */
#include <string.h>

#include "text/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x)                                                                                 \
    do {                                                                                           \
        if (!(x))                                                                                  \
            __builtin_trap();                                                                      \
    } while (0)

static const char fixed[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\" s \"},{\"role\":\"user\",\"content\":"
    "\"Gr\u00fc\u00dfe\"},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"function\":"
    "{\"name\":\"f\",\"arguments\":{\"x\":1.5,\"y\":[true,null]}}}]}],\"tools\":[{\"a\":1}],"
    "\"add_generation_prompt\":true,\"bos_token\":\"<s>\",\"n\":42,\"s\":\"a b\",\"d\":{\"k\":1}}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct template_limits limits = {
        .n_step = 200000, .output_bytes = 1 << 18, .memory_bytes = 1 << 23, .depth = 100};
    const char *source = (const char *)data;
    const char *cut = size ? memchr(data, 0, size) : NULL;
    const size_t bytes = cut ? (size_t)(cut - source) : size;
    const char *vars = cut ? cut + 1 : fixed;
    const size_t vars_bytes = cut ? size - bytes - 1 : sizeof fixed - 1;
    sinter_host *host;
    struct chat_template *t;
    struct text_buf out;
    sinter_error err = {0};
    sinter_status status;
    REQUIRE(sinter_host_create(NULL, &host, &err) == SINTER_OK);
    text_buf_init(&out, host);
    status = template_compile(host, source, bytes, &t, &err);
    REQUIRE((status == SINTER_OK) == (t != NULL));
    if (t) {
        status = template_render(t, vars, vars_bytes, 1, &limits, &out, &err);
        REQUIRE(status == SINTER_OK || out.bytes == 0);
        REQUIRE(out.bytes <= limits.output_bytes + sizeof fixed + size * 4096);
    }
    REQUIRE(status == SINTER_OK || (err.status == status && err.message[0]));
    REQUIRE(status == SINTER_OK || status == SINTER_E_DATA || status == SINTER_E_UNSUPPORTED ||
            status == SINTER_E_LIMIT);
    text_buf_free(&out);
    template_free(t);
    REQUIRE(host_usage(host).n_live == 0);
    sinter_host_free(host);
    return 0;
}
