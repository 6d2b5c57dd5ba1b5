/* A dummy in memory, taken apart and put together again with a change; for tests of the loader.
 * Files are written by a serialiser of their own: the writer refuses most of them. */
#ifndef TESTS_MODELS_MUTANT_H
#define TESTS_MODELS_MUTANT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "fault_loop.h"
#include "model/internal.h"

#include <cmocka.h>

static sinter_host *host;
static struct memory_file file;
static struct fault fault = {.file = &file};

static struct {
    uint8_t *bytes; /* the dummy's file */
    size_t n;
    struct gguf *g;
    const struct arch_desc *arch;
    enum dummy_kind kind;
    struct gguf_kv kv[512];
    size_t n_kv;
    struct gguf_tensor tensor[512];
    size_t n_tensor;
} base;

static struct {
    uint8_t p[4 << 20];
    size_t n;
} out;

static void emit(const void *p, size_t n)
{
    assert_true(out.n + n <= sizeof out.p);
    memcpy(out.p + out.n, p, n);
    out.n += n;
}

static void emit_int(uint64_t v, size_t n)
{
    emit(&v, n);
}

static void emit_text(const char *text, size_t n)
{
    emit_int(n, 8);
    emit(text, n);
}

static size_t type_bytes(enum gguf_type t)
{
    static const uint8_t n[GGUF_N_TYPE] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return n[t];
}

static void emit_kv(const struct gguf_kv *kv)
{
    const struct gguf_value *v = &kv->value;
    emit_text(kv->key, strlen(kv->key));
    emit_int(v->type, 4);
    if (v->type == GGUF_ARRAY) {
        emit_int(v->elem_type, 4);
        emit_int(v->n, 8);
    }
    for (size_t i = 0; i < v->n; i++)
        if (v->elem_type == GGUF_STRING) {
            const struct gguf_string *s = (const struct gguf_string *)v->data + i;
            emit_text(s->text, s->bytes);
        } else {
            emit((const uint8_t *)v->data + i * type_bytes(v->elem_type), type_bytes(v->elem_type));
        }
}

/* The header of the lists, then the dummy's data as it was. */
static void assemble(const struct gguf_kv *kv, size_t n_kv, const struct gguf_tensor *t,
                     size_t n_tensor)
{
    out.n = 0;
    emit("GGUF", 4);
    emit_int(3, 4);
    emit_int(n_tensor, 8);
    emit_int(n_kv, 8);
    for (size_t i = 0; i < n_kv; i++)
        emit_kv(&kv[i]);
    for (size_t i = 0; i < n_tensor; i++) {
        emit_text(t[i].name, strlen(t[i].name));
        emit_int((uint64_t)t[i].n_dim, 4);
        for (int d = 0; d < t[i].n_dim; d++)
            emit_int((uint64_t)t[i].dim[d], 8);
        emit_int(t[i].type_id, 4);
        emit_int(t[i].offset - base.g->data_offset, 8);
    }
    while (out.n % 32)
        emit_int(0, 1);
    emit(base.bytes + base.g->data_offset, base.n - base.g->data_offset);
    file.data = out.p;
    file.bytes = out.n;
}

static void take_apart(const struct dummy_options *o)
{
    sinter_error err = {0};
    if (dummy_write(host, o, "dummy", &err) != SINTER_OK)
        fail_msg("%s", err.message);
    base.n = file.n_written;
    base.bytes = malloc(base.n);
    memcpy(base.bytes, file.written, base.n);
    file.data = base.bytes;
    file.bytes = base.n;
    assert_int_equal(gguf_open(host, "dummy", &base.g, NULL), SINTER_OK);
    base.arch = arch_find(o->arch);
    base.kind = o->kind;
    base.n_kv = base.g->n_kv;
    base.n_tensor = base.g->n_tensor;
    assert_true(base.n_kv < 510 && base.n_tensor < 510);
    memcpy(base.kv, base.g->kv, base.n_kv * sizeof *base.kv);
    memcpy(base.tensor, base.g->tensor, base.n_tensor * sizeof *base.tensor);
}

static void put_away(void)
{
    gguf_close(base.g);
    free(base.bytes);
}

#endif
