/* Prints a file's header, keys and tensors, as text for people or as one JSON object. Texts of the
 * file are quoted in both, so that none reaches a terminal raw. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text_buf.h"
#include "gguf/local.h"

enum { SHOWN_ELEMENTS = 8, SHOWN_BYTES = 72 };

/* At most `max` bytes of s, cut between characters. */
static void print_string(struct text_buf *b, const struct gguf_string *s, size_t max)
{
    size_t n = s->bytes;
    if (n > max) {
        n = max;
        while (n > 0 && ((unsigned char)s->text[n] & 0xc0) == 0x80)
            n--;
    }
    text_buf_json(b, s->text, n);
    if (n < s->bytes)
        text_buf_printf(b, " ... (%zu bytes)", s->bytes);
}

/* As few digits as give the same number back. JSON knows no infinities and no NaN: they are
 * strings there. */
static void print_float(struct text_buf *b, double x, bool f32, bool json)
{
    const char *quote = json && !isfinite(x) ? "\"" : "";
    char text[64];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        double back = strtod(text, NULL);
        if (isnan(x) || (f32 ? (double)(float)back == x : back == x))
            break;
    }
    text_buf_printf(b, "%s%s%s", quote, text, quote);
}

static void print_element(struct text_buf *b, const struct gguf_kv *kv, size_t i, bool json)
{
    const struct gguf_value *v = &kv->value;
    double x = 0;
    int64_t n = 0;
    if (v->elem_type == GGUF_STRING) {
        print_string(b, (const struct gguf_string *)v->data + i, json ? SIZE_MAX : SHOWN_BYTES);
    } else if (v->elem_type == GGUF_BOOL) {
        text_buf_printf(b, "%s", ((const uint8_t *)v->data)[i] ? "true" : "false");
    } else if (v->elem_type == GGUF_U64) {
        text_buf_printf(b, "%" PRIu64, ((const uint64_t *)v->data)[i]);
    } else if (v->elem_type == GGUF_F32 || v->elem_type == GGUF_F64) {
        if (gguf_value_float(kv, i, &x, NULL) == SINTER_OK)
            print_float(b, x, v->elem_type == GGUF_F32, json);
    } else if (gguf_value_int(kv, i, &n, NULL) == SINTER_OK) {
        text_buf_printf(b, "%" PRId64, n);
    }
}

static void print_elements(struct text_buf *b, const struct gguf_kv *kv, bool json)
{
    size_t shown = kv->value.n < SHOWN_ELEMENTS ? kv->value.n : SHOWN_ELEMENTS;
    text_buf_printf(b, "[");
    for (size_t i = 0; i < shown; i++) {
        text_buf_printf(b, "%s", i ? ", " : "");
        print_element(b, kv, i, json);
    }
    text_buf_printf(b, "%s]", shown < kv->value.n && !json ? ", ..." : "");
}

static void tensor_type(struct text_buf *b, const struct gguf_tensor *t)
{
    const char *name = quant_gguf_name(t->type_id);
    if (name)
        text_buf_printf(b, "%s", name);
    else
        text_buf_printf(b, "type %" PRIu32, t->type_id);
}

static void print_dims(struct text_buf *b, const struct gguf_tensor *t)
{
    text_buf_printf(b, "[");
    for (int i = 0; i < t->n_dim; i++)
        text_buf_printf(b, "%s%" PRId64, i ? ", " : "", t->dim[i]);
    text_buf_printf(b, "]");
}

static void print_json_kv(struct text_buf *b, const struct gguf_kv *kv)
{
    const struct gguf_value *v = &kv->value;
    text_buf_printf(b, "{\"key\": ");
    text_buf_json(b, kv->key, strlen(kv->key));
    text_buf_printf(b, ", \"type\": \"%s\", ", gguf_type_name(v->type));
    if (v->type == GGUF_ARRAY) {
        text_buf_printf(b, "\"elem_type\": \"%s\", \"n\": %zu, \"first\": ",
                        gguf_type_name(v->elem_type), v->n);
        print_elements(b, kv, true);
    } else {
        text_buf_printf(b, "\"value\": ");
        print_element(b, kv, 0, true);
    }
    text_buf_printf(b, "}");
}

static void print_json_tensor(struct text_buf *b, const struct gguf_tensor *t)
{
    text_buf_printf(b, "{\"name\": ");
    text_buf_json(b, t->name, strlen(t->name));
    text_buf_printf(b, ", \"type\": \"");
    tensor_type(b, t);
    text_buf_printf(b, "\", \"type_id\": %" PRIu32 ", \"dims\": ", t->type_id);
    print_dims(b, t);
    text_buf_printf(b, ", \"offset\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", t->offset, t->bytes);
}

static void print_json(const struct gguf *g, struct text_buf *b)
{
    text_buf_printf(b, "{\"path\": ");
    text_buf_json(b, g->path, strlen(g->path));
    text_buf_printf(b,
                    ", \"version\": %" PRIu32 ", \"alignment\": %" PRIu32
                    ", \"file_bytes\": %" PRIu64 ", \"data_offset\": %" PRIu64 ",\n \"keys\": [",
                    g->version, g->alignment, g->file_bytes, g->data_offset);
    for (size_t i = 0; i < g->n_kv; i++) {
        text_buf_printf(b, "%s\n  ", i ? "," : "");
        print_json_kv(b, &g->kv[i]);
    }
    text_buf_printf(b, "],\n \"tensors\": [");
    for (size_t i = 0; i < g->n_tensor; i++) {
        text_buf_printf(b, "%s\n  ", i ? "," : "");
        print_json_tensor(b, &g->tensor[i]);
    }
    text_buf_printf(b, "]}\n");
}

/* A name, quoted if it is not plain, padded to `width`. */
static void print_name(struct text_buf *b, const char *name, size_t width)
{
    bool plain = true;
    for (const char *p = name; *p; p++)
        plain = plain && *p > ' ' && *p <= '~';
    if (plain)
        text_buf_printf(b, "  %-*s", (int)width, name);
    else
        print_string(b, &(struct gguf_string){name, strlen(name)}, SHOWN_BYTES);
}

static void print_text_kv(struct text_buf *b, const struct gguf_kv *kv, size_t width)
{
    const struct gguf_value *v = &kv->value;
    print_name(b, kv->key, width);
    if (v->type == GGUF_ARRAY) {
        text_buf_printf(b, "  %s[%zu]  ", gguf_type_name(v->elem_type), v->n);
        print_elements(b, kv, false);
    } else {
        text_buf_printf(b, "  %s  ", gguf_type_name(v->type));
        print_element(b, kv, 0, false);
    }
    text_buf_printf(b, "\n");
}

static void print_text(const struct gguf *g, struct text_buf *b)
{
    size_t width = 0, max = 48;
    print_string(b, &(struct gguf_string){g->path, strlen(g->path)}, SIZE_MAX);
    text_buf_printf(b,
                    ": GGUF version %" PRIu32 ", %" PRIu64 " bytes, alignment %" PRIu32
                    ", data at byte %" PRIu64 "\n%zu keys\n",
                    g->version, g->file_bytes, g->alignment, g->data_offset, g->n_kv);
    for (size_t i = 0; i < g->n_kv; i++)
        width = strlen(g->kv[i].key) > width ? strlen(g->kv[i].key) : width;
    for (size_t i = 0; i < g->n_kv; i++)
        print_text_kv(b, &g->kv[i], width < max ? width : max);
    text_buf_printf(b, "%zu tensors\n", g->n_tensor);
    width = 0;
    for (size_t i = 0; i < g->n_tensor; i++)
        width = strlen(g->tensor[i].name) > width ? strlen(g->tensor[i].name) : width;
    for (size_t i = 0; i < g->n_tensor; i++) {
        const struct gguf_tensor *t = &g->tensor[i];
        print_name(b, t->name, width < max ? width : max);
        text_buf_printf(b, "  ");
        tensor_type(b, t);
        text_buf_printf(b, "  ");
        print_dims(b, t);
        text_buf_printf(b, "  %" PRIu64 " bytes at %" PRIu64 "\n", t->bytes, t->offset);
    }
}

void gguf_print(const struct gguf *g, struct text_buf *b, bool json)
{
    if (json)
        print_json(g, b);
    else
        print_text(g, b);
}
