/* Fuzz target of vocabularies: any GGUF bytes give a typed error or a vocabulary that encodes any
 * text (here the file itself and its own tokens) in bounded work and gives the same bytes back. */
#include "text/vocab_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x)                                                                                 \
    do {                                                                                           \
        if (!(x))                                                                                  \
            __builtin_trap();                                                                      \
    } while (0)

enum { TEXT_MAX = 4096 };

static void encode(sinter_host *host, const struct vocab *v, const char *text, size_t bytes,
                   unsigned flags)
{
    struct vocab_ids ids = {0};
    struct text_buf exact, stream;
    sinter_error err;
    struct detok d;
    uint64_t work;

    if (vocab_encode_counted(v, text, bytes, flags, &ids, &work, &err) != SINTER_OK) {
        REQUIRE(err.status == SINTER_E_DATA && ids.n == 0);
        vocab_ids_free(v, &ids);
        return;
    }
    REQUIRE(work <= 4096 + bytes * 4096);
    text_buf_init(&exact, host);
    text_buf_init(&stream, host);
    REQUIRE(vocab_decode(v, ids.id, ids.n, DETOK_SPECIAL | DETOK_START, &exact, &err) == SINTER_OK);
    if (v->model == VOCAB_BPE || v->has_bytes)
        REQUIRE(exact.bytes == bytes && (!bytes || memcmp(exact.text, text, bytes) == 0));
    detok_init(&d, v, DETOK_SPECIAL);
    for (size_t i = 0; i < ids.n; i++)
        REQUIRE(detok_push(&d, ids.id[i], &stream, &err) == SINTER_OK);
    detok_flush(&d, &stream);
    for (size_t i = 0, len; i < stream.bytes; i += len) {
        uint32_t point;
        REQUIRE(unicode_scan(stream.text + i, stream.bytes - i, &len, &point) == UNICODE_VALID);
    }
    text_buf_free(&exact);
    text_buf_free(&stream);
    vocab_ids_free(v, &ids);
}

static void use(sinter_host *host, const struct vocab *v, const char *data, size_t size)
{
    const size_t n = size < TEXT_MAX ? size : TEXT_MAX;

    if (vocab_model(v) == VOCAB_NONE)
        return;
    for (unsigned flags = 0; flags < 4; flags += VOCAB_PARSE_SPECIAL) {
        encode(host, v, data + (size - n), n, flags);
        encode(host, v, data, n, flags);
        for (int32_t id = 0; id < vocab_n(v) && id < 400; id++) {
            const struct vocab_str s = v->text[id];
            encode(host, v, s.text, s.bytes < TEXT_MAX ? s.bytes : TEXT_MAX, flags);
        }
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
    struct vocab *v = NULL;

    REQUIRE(sinter_host_create(&(sinter_host_options){.hooks = &hooks}, &host, &err) == SINTER_OK);
    if (gguf_open(host, "fuzz", &g, &err) == SINTER_OK) {
        sinter_status status = vocab_open(g, NULL, &v, &err);
        gguf_close(g);
        if (status == SINTER_OK)
            use(host, v, (const char *)data, size);
        else
            REQUIRE(err.status == status && strncmp(err.message, "fuzz", 4) == 0);
        vocab_free(v);
    }
    sinter_host_free(host);
    REQUIRE(fault.live == 0);
    return 0;
}
