/* Ring 2 of strict loading: the metadata keys, driven by keys.def and skip.def. */
#include "model/internal.h"

#include "base/options.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool use_ALL(const struct arch_desc *a)
{
    return a != NULL;
}

static bool use_DENSE(const struct arch_desc *a)
{
    return a->ffn == FFN_GATED;
}

static bool use_MOE(const struct arch_desc *a)
{
    return a->ffn == FFN_MOE;
}

static bool use_WINDOW(const struct arch_desc *a)
{
    return a->window.period > 0;
}

static bool use_CAP(const struct arch_desc *a)
{
    return a->final_cap == CAP_OPTIONAL;
}

static bool use_SCALE(const struct arch_desc *a)
{
    return a->scale_key;
}

#define NO  ((double)NAN)
#define ANY ((double)INFINITY)
const struct key_row key_rows[] = {
#define KEY(id, name, type, span, use, need, lo, hi, off)                                          \
    {name, KEY_##type, SPAN_##span, use_##use, KEY_##need, lo, hi, {off, off}, "the computation"},
#define NEUTRAL(name, type, a, b, what)
#define INFO(name, why)
#include "model/keys.def"
#undef KEY
#undef NEUTRAL
#undef INFO
#define KEY(id, name, type, span, use, need, lo, hi, off)
#define NEUTRAL(name, type, a, b, what)                                                            \
    {name, KEY_##type, SPAN_LAYERS, NULL, KEY_MAY, 0, 0, {a, b}, what},
#define INFO(name, why) {name, KEY_INT, SPAN_LAYERS, NULL, KEY_MAY, 0, 0, {ANY, ANY}, why},
#include "model/keys.def"
#undef KEY
#undef NEUTRAL
#undef INFO
};
const int key_n_row = (int)(sizeof key_rows / sizeof key_rows[0]);

bool pattern_match(const char *pattern, const char *text)
{
    const char *star = NULL, *from = NULL;
    for (;;) {
        if (*pattern == '*') {
            star = ++pattern;
            from = text;
        } else if (*pattern == *text) {
            if (!*text)
                return true;
            pattern++;
            text++;
        } else if (star && *from) { /* the last star takes one more character */
            pattern = star;
            text = ++from;
        } else {
            return false;
        }
    }
}

static const struct model_skip skip_keys[] = {
#define SKIP_KEY(pattern, why) {pattern, why},
#define SKIP_TENSOR(pattern, why)
#include "model/skip.def"
#undef SKIP_KEY
#undef SKIP_TENSOR
};

static const struct model_skip skip_tensors[] = {
#define SKIP_KEY(pattern, why)
#define SKIP_TENSOR(pattern, why) {pattern, why},
#include "model/skip.def"
#undef SKIP_KEY
#undef SKIP_TENSOR
};

static const char *reason(const struct model_skip *skip, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (pattern_match(skip[i].name, name))
            return skip[i].reason;
    return NULL;
}

const char *skip_key_reason(const char *name)
{
    return reason(skip_keys, sizeof skip_keys / sizeof skip_keys[0], name);
}

const char *skip_tensor_reason(const char *name)
{
    return reason(skip_tensors, sizeof skip_tensors / sizeof skip_tensors[0], name);
}

/* ---- Checks --------------------------------------------------------------------------------- */

static bool skipped(const struct model *m, const char *key)
{
    return options_list_has(host_options(m->host)->skip_key, key);
}

static int find_row(const char *name)
{
    for (int r = 0; r < key_n_row; r++)
        if (pattern_match(key_rows[r].name, name))
            return r;
    return -1;
}

/* Element i as a number, whatever scalar it is; false: a text. */
static bool number(const struct gguf_kv *kv, size_t i, double *x)
{
    if (kv->value.elem_type == GGUF_BOOL) {
        *x = ((const uint8_t *)kv->value.data)[i] != 0;
        return true;
    }
    return gguf_value_float(kv, i, x, NULL) == SINTER_OK;
}

static sinter_status check_type(const struct model *m, const struct key_row *row,
                                const struct gguf_kv *kv, size_t i, sinter_error *err)
{
    static const char *const want[] = {"an integer", "a number", "a bool", "a text"};
    enum gguf_type t = kv->value.elem_type;
    int64_t n;
    double x;
    bool ok = false;
    switch (row->type) {
    case KEY_INT: /* a pattern may be written as bools, one per layer */
        ok = gguf_value_int(kv, i, &n, NULL) == SINTER_OK ||
             (t == GGUF_BOOL && row->span == SPAN_LAYERS && kv->value.type == GGUF_ARRAY);
        break;
    case KEY_FLOAT:
        ok = gguf_value_float(kv, i, &x, NULL) == SINTER_OK;
        break;
    case KEY_BOOL:
        ok = t == GGUF_BOOL;
        break;
    case KEY_TEXT:
        ok = t == GGUF_STRING;
        break;
    }
    if (ok)
        return SINTER_OK;
    return FAIL(err, DATA, "%s: key %s (byte %" PRIu64 ") is of type %s, it must be %s",
                m->gguf->path, kv->key, kv->offset, gguf_type_name(t), want[row->type]);
}

/* A key that this family reads: type, span and range of each element. */
static sinter_status check_used(const struct model *m, const struct key_row *row,
                                const struct gguf_kv *kv, sinter_error *err)
{
    const char *path = m->gguf->path;
    bool array = kv->value.type == GGUF_ARRAY;
    if (array && row->span == SPAN_ONE)
        return FAIL(err, DATA, "%s: key %s (byte %" PRIu64 ") is an array, it must be one value",
                    path, kv->key, kv->offset);
    if (array && kv->value.n != (size_t)m->plan.n_layer)
        return FAIL(err, DATA,
                    "%s: key %s (byte %" PRIu64 ") has %zu elements, the model has %d layers", path,
                    kv->key, kv->offset, kv->value.n, m->plan.n_layer);
    for (size_t i = 0; i < (array ? kv->value.n : 1); i++) {
        double x;
        TRY(check_type(m, row, kv, i, err));
        if (row->type != KEY_INT && row->type != KEY_FLOAT)
            continue;
        if (!number(kv, i, &x) || !(x >= row->lo && x <= row->hi))
            return FAIL(err, DATA, "%s: key %s (byte %" PRIu64 ") is %.9g, it must be %.9g to %.9g",
                        path, kv->key, kv->offset, x, row->lo, row->hi);
    }
    return SINTER_OK;
}

/* A key that this family does not read: fine only where it changes nothing. */
static sinter_status check_unused(struct model *m, const struct key_row *row,
                                  const struct gguf_kv *kv, sinter_error *err)
{
    size_t n = kv->value.type == GGUF_ARRAY ? kv->value.n : 1;
    if (isinf(row->neutral[0]))
        return model_skip_add(m, kv->key, row->use ? "this family does not use it" : row->what,
                              false, err);
    for (size_t i = 0; i < n; i++) {
        double x = NAN;
        if (number(kv, i, &x) && (x == row->neutral[0] || x == row->neutral[1]))
            continue;
        char is[32] = "not at its neutral value";
        if (!isnan(x))
            snprintf(is, sizeof is, "%.9g", x);
        return FAIL(err, UNSUPPORTED,
                    "%s: key %s (byte %" PRIu64 ") is %s: it changes %s, and sinter has no code "
                    "for that in %s; --skip-key %s runs the model as if the key were not there",
                    m->gguf->path, kv->key, kv->offset, is, row->what, m->plan.arch->name, kv->key);
    }
    return model_skip_add(m, kv->key, "at the value that changes nothing", false, err);
}

/* What is used before the other keys are looked at cannot be left out any more. */
static bool read_before(const char *key)
{
    return !strcmp(key, "general.architecture") || !strcmp(key, "general.alignment");
}

static sinter_status check_key(struct model *m, struct keys *k, const struct gguf_kv *kv,
                               sinter_error *err)
{
    size_t prefix = strlen(m->plan.arch->name);
    const char *why = skip_key_reason(kv->key);
    if (skipped(m, kv->key) && read_before(kv->key))
        return FAIL(err, USAGE, "--skip-key %s: without it %s cannot be understood; do not name it",
                    kv->key, m->gguf->path);
    if (skipped(m, kv->key))
        return model_skip_add(m, kv->key, "left out by --skip-key", true, err);
    if (strncmp(kv->key, m->plan.arch->name, prefix) != 0 || kv->key[prefix] != '.') {
        if (why)
            return model_skip_add(m, kv->key, why, false, err);
        TRY(host_warn(m->host, err,
                      "%s: key %s is unknown and was not used; --skip-key %s says "
                      "that this is fine",
                      m->gguf->path, kv->key, kv->key));
        return model_skip_add(m, kv->key, "unknown", false, err);
    }
    int r = find_row(kv->key + prefix + 1);
    if (r < 0) {
        TRY(host_warn(m->host, err,
                      "%s: key %s is unknown and was not used: if it changes the "
                      "computation, the model's answers are wrong; --skip-key %s says that it "
                      "does not",
                      m->gguf->path, kv->key, kv->key));
        return model_skip_add(m, kv->key, "unknown", false, err);
    }
    const struct key_row *row = &key_rows[r];
    if (!row->use || !row->use(m->plan.arch))
        return check_unused(m, row, kv, err);
    TRY(check_used(m, row, kv, err));
    k->kv[r] = kv;
    return SINTER_OK;
}

/* block_count first: arrays are measured by it. */
static sinter_status read_n_layer(struct model *m, sinter_error *err)
{
    const struct key_row *row = &key_rows[KEY_BLOCK_COUNT];
    char key[128];
    snprintf(key, sizeof key, "%s.%s", m->plan.arch->name, row->name);
    const struct gguf_kv *kv = gguf_find(m->gguf, key);
    int64_t n = 0;
    if (!kv || skipped(m, key))
        return FAIL(
            err, NOT_FOUND,
            "%s: key %s is missing, and there is no default for it; convert the model again",
            m->gguf->path, key);
    TRY(check_used(m, row, kv, err));
    TRY(gguf_value_int(kv, 0, &n, err));
    m->plan.n_layer = (int)n;
    return SINTER_OK;
}

sinter_status keys_read(struct model *m, struct keys *k, sinter_error *err)
{
    memset(k, 0, sizeof *k);
    TRY(read_n_layer(m, err));
    for (size_t i = 0; i < m->gguf->n_kv; i++)
        TRY(check_key(m, k, &m->gguf->kv[i], err));
    for (int r = 0; r < KEY_N; r++) {
        const struct key_row *row = &key_rows[r];
        if (!k->kv[r] && row->need == KEY_MUST && row->use(m->plan.arch))
            return FAIL(
                err, NOT_FOUND,
                "%s: key %s.%s is missing, and there is no default for it; convert the model again",
                m->gguf->path, m->plan.arch->name, row->name);
    }
    return SINTER_OK;
}

/* ---- Getters: what keys_read has checked cannot fail ---------------------------------------- */

static double value(const struct gguf_kv *kv, int layer)
{
    double x = 0;
    (void)number(kv, kv->value.type == GGUF_ARRAY ? (size_t)layer : 0, &x);
    return x;
}

int keys_int(const struct keys *k, enum key_id id, int layer, int def)
{
    return k->kv[id] ? (int)value(k->kv[id], layer) : def;
}

float keys_float(const struct keys *k, enum key_id id, float def)
{
    return k->kv[id] ? (float)value(k->kv[id], 0) : def;
}

bool keys_is_array(const struct keys *k, enum key_id id)
{
    return k->kv[id] && k->kv[id]->value.type == GGUF_ARRAY;
}
