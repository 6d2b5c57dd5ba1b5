/* Values: accounting, strings, sequences, dicts, equality and order, str() and repr(). */
#include "text/jinja/jinja.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Errors and accounting ---------------------------------------------------------------- */

sinter_status jfail(struct jinja *j, sinter_status status, const char *fmt, ...)
{
    char what[800];
    size_t line, column;
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    if (j->in_json)
        return status_fail(j->err, status, "template variables: %s", what);
    jinja_place(j->t, j->at, &line, &column);
    return status_fail(j->err, status, "template: line %zu, column %zu: %s", line, column, what);
}

sinter_status jcharge(struct jinja *j, size_t n_step)
{
    if (n_step > j->limit.n_step - j->n_step || j->n_step > j->limit.n_step)
        return JFAIL(j, LIMIT, "more than %llu steps; shorten the conversation or raise the limit",
                     (unsigned long long)j->limit.n_step);
    j->n_step += n_step;
    return SINTER_OK;
}

sinter_status jenter(struct jinja *j)
{
    if (j->depth >= j->limit.depth)
        return JFAIL(j, LIMIT, "nested or called deeper than %d levels", j->limit.depth);
    j->depth++;
    return SINTER_OK;
}

sinter_status jalloc(struct jinja *j, size_t n, size_t each, void *out)
{
    size_t bytes;
    void *block;
    if (__builtin_mul_overflow(n, each, &bytes) || bytes > j->limit.memory_bytes ||
        j->arena.bytes > j->limit.memory_bytes - bytes)
        return JFAIL(j, LIMIT, "more than %zu bytes of values", j->limit.memory_bytes);
    if (!j->arena.host)
        arena_init(&j->arena, j->host);
    block = arena_alloc(&j->arena, bytes ? bytes : 1);
    if (!block) {
        (void)host_no_memory(j->err, n, each, "template values");
        return SINTER_E_MEMORY; /* so that the compiler sees *out set on success */
    }
    memcpy(out, &block, sizeof block);
    return SINTER_OK;
}

/* ---- Strings ------------------------------------------------------------------------------ */

bool jstr_is(const struct jstr *s, const char *text)
{
    return s->bytes == strlen(text) && !memcmp(s->text, text, s->bytes);
}

sinter_status jstr_share(struct jinja *j, const char *text, size_t bytes, bool safe, struct jv *out)
{
    struct jstr *s;
    TRY(jcharge(j, bytes / 16));
    TRY(jalloc(j, 1, sizeof *s, &s));
    *s = (struct jstr){text, bytes, jchars(text, bytes), safe};
    *out = jv_text(s);
    return SINTER_OK;
}

sinter_status jstr_copy(struct jinja *j, const char *text, size_t bytes, bool safe, struct jv *out)
{
    char *copy;
    TRY(jalloc(j, bytes, 1, &copy));
    if (bytes)
        memcpy(copy, text, bytes);
    return jstr_share(j, copy, bytes, safe, out);
}

sinter_status jstr_take(struct jinja *j, sinter_status status, struct text_buf *b, bool safe,
                        struct jv *out)
{
    if (status == SINTER_OK && b->failed)
        status = host_no_memory(j->err, b->bytes, 1, "template text");
    if (status == SINTER_OK)
        status = jstr_copy(j, b->text ? b->text : "", b->bytes, safe, out);
    text_buf_free(b);
    return status;
}

/* ---- Sequences ---------------------------------------------------------------------------- */

sinter_status jseq_new(struct jinja *j, enum jseq_kind kind, size_t n, struct jv *out)
{
    struct jseq *s;
    TRY(jcharge(j, n / 4));
    TRY(jalloc(j, 1, sizeof *s, &s));
    TRY(jalloc(j, n, sizeof *s->item, &s->item));
    s->kind = kind;
    s->n = n;
    *out = (struct jv){.kind = JV_SEQ, .seq = s};
    return SINTER_OK;
}

sinter_status jseq_copy(struct jinja *j, enum jseq_kind kind, const struct jv *item, size_t n,
                        struct jv *out)
{
    TRY(jseq_new(j, kind, n, out));
    if (n)
        memcpy(out->seq->item, item, n * sizeof *item);
    return SINTER_OK;
}

sinter_status jseq_pair(struct jinja *j, struct jv a, struct jv b, struct jv *out)
{
    return jseq_copy(j, SEQ_TUPLE, (const struct jv[]){a, b}, 2, out);
}

sinter_status jseq_push(struct jinja *j, struct jseq *s, size_t *cap, struct jv v)
{
    if (s->n == *cap) {
        struct jv *old = s->item;
        *cap = *cap ? *cap * 2 : 8;
        TRY(jalloc(j, *cap, sizeof *old, &s->item));
        if (s->n)
            memcpy(s->item, old, s->n * sizeof *old);
    }
    s->item[s->n++] = v;
    return SINTER_OK;
}

bool jv_iterable(struct jv v)
{
    return v.kind == JV_UNDEFINED || v.kind == JV_STR || v.kind == JV_SEQ || v.kind == JV_DICT;
}

static sinter_status characters(struct jinja *j, const struct jstr *s, struct jv **item, size_t *n)
{
    size_t len, i = 0;
    TRY(jcharge(j, s->n_char));
    TRY(jalloc(j, s->n_char, sizeof **item, item));
    for (*n = 0; i < s->bytes; i += len) {
        jchar_get(s->text + i, &len);
        TRY(jstr_share(j, s->text + i, len, false, &(*item)[(*n)++]));
    }
    return SINTER_OK;
}

sinter_status jv_elements(struct jinja *j, struct jv v, struct jv **item, size_t *n)
{
    if (v.kind == JV_UNDEFINED) {
        *n = 0;
        return jalloc(j, 1, sizeof **item, item);
    }
    if (v.kind == JV_STR)
        return characters(j, v.s, item, n);
    if (v.kind == JV_SEQ) {
        *item = v.seq->item + v.seq->pos;
        *n = v.seq->n - v.seq->pos;
        if (v.seq->kind == SEQ_GENERATOR)
            v.seq->pos = v.seq->n;
        return jcharge(j, *n);
    }
    if (v.kind == JV_DICT) {
        *n = v.dict->n;
        TRY(jcharge(j, *n));
        TRY(jalloc(j, *n, sizeof **item, item));
        for (size_t i = 0; i < *n; i++)
            (*item)[i] = v.dict->pair[i].key;
        return SINTER_OK;
    }
    if (v.kind == JV_LOOP)
        return JFAIL(j, UNSUPPORTED, "iterating over 'loop' is not supported");
    return JFAIL(j, DATA, "'%s' object is not iterable", jv_type(v));
}

/* ---- Dicts -------------------------------------------------------------------------------- */

enum { SMALL_DICT = 8 };

bool jv_hashable(struct jv v)
{
    if (v.kind == JV_DICT)
        return false;
    if (v.kind != JV_SEQ)
        return true;
    if (v.seq->kind != SEQ_TUPLE)
        return v.seq->kind == SEQ_RANGE || v.seq->kind == SEQ_GENERATOR;
    for (size_t i = 0; i < v.seq->n; i++)
        if (v.seq->item[i].kind == JV_SEQ || !jv_hashable(v.seq->item[i]))
            return false; /* tuples of tuples as keys are given up, too */
    return true;
}

static uint64_t hash_bytes(const char *text, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return h;
}

static uint64_t hash(struct jv v)
{
    if (v.kind == JV_STR)
        return hash_bytes(v.s->text, v.s->bytes);
    if (jv_is_number(v)) { /* 1, 1.0 and true are one key */
        const double f = jv_as_float(v) + 0.0;
        return hash_bytes((const char *)&f, sizeof f);
    }
    if (v.kind == JV_SEQ && v.seq->kind == SEQ_TUPLE) {
        uint64_t h = v.seq->n;
        for (size_t i = 0; i < v.seq->n; i++)
            h = h * 31 + hash(v.seq->item[i]);
        return h;
    }
    return (uint64_t)v.kind;
}

sinter_status jdict_new(struct jinja *j, size_t cap, struct jdict **out)
{
    TRY(jalloc(j, 1, sizeof **out, out));
    (*out)->cap = cap;
    return jalloc(j, cap, sizeof *(*out)->pair, &(*out)->pair);
}

static sinter_status key_equal(struct jinja *j, const struct jpair *p, struct jv key, uint64_t h,
                               bool *out)
{
    *out = false;
    return p->hash == h ? jv_equal(j, p->key, key, out) : SINTER_OK;
}

static sinter_status find(struct jinja *j, const struct jdict *d, struct jv key, uint64_t h,
                          struct jpair **out)
{
    bool equal;
    *out = NULL;
    if (!d->index) {
        for (size_t i = 0; i < d->n && !*out; i++) {
            TRY(key_equal(j, &d->pair[i], key, h, &equal));
            if (equal)
                *out = &d->pair[i];
        }
        return SINTER_OK;
    }
    for (size_t at = h & (d->n_index - 1); d->index[at]; at = (at + 1) & (d->n_index - 1)) {
        TRY(jcharge(j, 1));
        TRY(key_equal(j, &d->pair[d->index[at] - 1], key, h, &equal));
        if (equal) {
            *out = &d->pair[d->index[at] - 1];
            return SINTER_OK;
        }
    }
    return SINTER_OK;
}

static void index_add(struct jdict *d, size_t pair)
{
    size_t at = d->pair[pair].hash & (d->n_index - 1);
    while (d->index[at])
        at = (at + 1) & (d->n_index - 1);
    d->index[at] = (uint32_t)pair + 1;
}

static sinter_status grow(struct jinja *j, struct jdict *d)
{
    struct jpair *old = d->pair;
    if (d->n == d->cap) {
        d->cap = d->cap ? d->cap * 2 : 4;
        TRY(jalloc(j, d->cap, sizeof *old, &d->pair));
        if (d->n)
            memcpy(d->pair, old, d->n * sizeof *old);
    }
    if (d->n >= SMALL_DICT && d->n * 2 >= d->n_index) {
        d->n_index = d->n_index ? d->n_index * 4 : SMALL_DICT * 4;
        TRY(jalloc(j, d->n_index, sizeof *d->index, &d->index));
        for (size_t i = 0; i < d->n; i++)
            index_add(d, i);
    }
    return SINTER_OK;
}

sinter_status jv_check_hashable(struct jinja *j, struct jv key)
{
    if (jv_hashable(key))
        return SINTER_OK;
    return JFAIL(j, DATA, "unhashable type: '%s'", jv_type(key));
}

sinter_status jdict_set(struct jinja *j, struct jdict *d, struct jv key, struct jv value)
{
    struct jpair *p;
    const uint64_t h = hash(key);
    TRY(jv_check_hashable(j, key));
    TRY(find(j, d, key, h, &p));
    if (p) {
        p->value = value;
        return SINTER_OK;
    }
    TRY(grow(j, d));
    d->pair[d->n++] = (struct jpair){key, value, h};
    if (d->index)
        index_add(d, d->n - 1);
    return SINTER_OK;
}

sinter_status jdict_set_kw(struct jinja *j, struct jdict *d, const struct jargs *args)
{
    for (size_t i = 0; i < args->n_kw; i++)
        TRY(jdict_set(j, d, jv_text(args->kw[i].name), args->kw[i].value));
    return SINTER_OK;
}

sinter_status jdict_get(struct jinja *j, const struct jdict *d, struct jv key, struct jv **out)
{
    struct jpair *p;
    TRY(jv_check_hashable(j, key));
    TRY(find(j, d, key, hash(key), &p));
    *out = p ? &p->value : NULL;
    return SINTER_OK;
}

struct jv *jdict_find(const struct jdict *d, const char *key, size_t bytes)
{
    const uint64_t h = hash_bytes(key, bytes);
    for (size_t i = d->index ? h & (d->n_index - 1) : 0; d->index ? d->index[i] != 0 : i < d->n;
         i = d->index ? (i + 1) & (d->n_index - 1) : i + 1) {
        struct jpair *p = &d->pair[d->index ? d->index[i] - 1 : i];
        if (p->hash == h && p->key.kind == JV_STR && p->key.s->bytes == bytes &&
            !memcmp(p->key.s->text, key, bytes))
            return &p->value;
    }
    return NULL;
}

/* ---- Undefined ---------------------------------------------------------------------------- */

sinter_status jundef_new(struct jinja *j, enum jundef_why why, const char *type, const char *text,
                         size_t bytes, struct jv *out)
{
    struct jundef *u;
    TRY(jalloc(j, 1, sizeof *u, &u));
    *u = (struct jundef){why, type, text, bytes};
    *out = (struct jv){.kind = JV_UNDEFINED, .undef = u};
    return SINTER_OK;
}

sinter_status jundef_fail(struct jinja *j, struct jv v)
{
    const struct jundef *u = v.undef;
    const int n = (int)(u->bytes < 200 ? u->bytes : 200);
    switch (u->why) {
    case UNDEF_NAME:
        return JFAIL(j, DATA, "'%.*s' is undefined", n, u->text);
    case UNDEF_ATTR:
        return JFAIL(j, DATA, "'%s object' has no attribute '%.*s'", u->type, n, u->text);
    case UNDEF_ITEM:
        return JFAIL(j, DATA, "%s object has no element %.*s", u->type, n, u->text);
    case UNDEF_HINT:
        return JFAIL(j, DATA, "%.*s", n, u->text);
    case UNDEF_UNSAFE:
        return JFAIL(j, DATA, "access to attribute '%.*s' of '%s' object is unsafe", n, u->text,
                     u->type);
    }
    return SINTER_E_INTERNAL;
}

/* ---- Types, truth, equality, order -------------------------------------------------------- */

const char *jv_type(struct jv v)
{
    static const char *const kind[] = {"absent",
                                       "Undefined",
                                       "NoneType",
                                       "bool",
                                       "int",
                                       "float",
                                       "str",
                                       "",
                                       "dict",
                                       "Namespace",
                                       "Macro",
                                       "function",
                                       "builtin_function_or_method",
                                       "LoopContext",
                                       "Cycler",
                                       "Joiner"};
    static const char *const seq[] = {"list",      "tuple",       "range",     "generator",
                                      "dict_keys", "dict_values", "dict_items"};
    if (v.kind == JV_STR && v.s->safe)
        return "Markup";
    return v.kind == JV_SEQ ? seq[v.seq->kind] : kind[v.kind];
}

bool jv_truth(struct jv v)
{
    switch (v.kind) {
    case JV_ABSENT:
    case JV_UNDEFINED:
    case JV_NONE:
        return false;
    case JV_BOOL:
        return v.b;
    case JV_INT:
        return v.i != 0;
    case JV_FLOAT:
        return v.f != 0;
    case JV_STR:
        return v.s->bytes != 0;
    case JV_SEQ:
        return v.seq->kind == SEQ_GENERATOR || v.seq->n != 0;
    case JV_DICT:
        return v.dict->n != 0;
    case JV_NAMESPACE:
    case JV_MACRO:
    case JV_FUNC:
    case JV_METHOD:
    case JV_LOOP:
    case JV_CYCLER:
    case JV_JOINER:
        return true;
    }
    return true;
}

/* <0, 0, >0, or 2 if a NaN is among them. Exact between int64 and double. */
static int compare_numbers(struct jv a, struct jv b)
{
    if (jv_is_int(a) && jv_is_int(b))
        return (jv_as_int(a) > jv_as_int(b)) - (jv_as_int(a) < jv_as_int(b));
    const long double x = a.kind == JV_FLOAT ? (long double)a.f : (long double)jv_as_int(a);
    const long double y = b.kind == JV_FLOAT ? (long double)b.f : (long double)jv_as_int(b);
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

static int compare_strings(const struct jstr *a, const struct jstr *b)
{
    const size_t n = a->bytes < b->bytes ? a->bytes : b->bytes;
    const int c = n ? memcmp(a->text, b->text, n) : 0; /* UTF-8 keeps the order of code points */
    return c ? c : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static sinter_status seq_equal(struct jinja *j, const struct jseq *a, const struct jseq *b,
                               bool *out)
{
    *out = a == b;
    if (*out || a->kind != b->kind || a->n != b->n || a->kind == SEQ_GENERATOR)
        return SINTER_OK;
    if (a->kind > SEQ_GENERATOR)
        return JFAIL(j, UNSUPPORTED, "comparing views of dicts is not supported; use |list");
    TRY(jenter(j));
    *out = true;
    for (size_t i = 0; i < a->n && *out; i++)
        TRY(jv_equal(j, a->item[i], b->item[i], out));
    jleave(j);
    return SINTER_OK;
}

static sinter_status dict_equal(struct jinja *j, const struct jdict *a, const struct jdict *b,
                                bool *out)
{
    *out = a == b;
    if (*out || a->n != b->n)
        return SINTER_OK;
    TRY(jenter(j));
    *out = true;
    for (size_t i = 0; i < a->n && *out; i++) {
        struct jv *other;
        TRY(jdict_get(j, b, a->pair[i].key, &other));
        if (other)
            TRY(jv_equal(j, a->pair[i].value, *other, out));
        else
            *out = false;
    }
    jleave(j);
    return SINTER_OK;
}

sinter_status jv_equal(struct jinja *j, struct jv a, struct jv b, bool *out)
{
    *out = false;
    TRY(jcharge(j, 1));
    if (jv_is_number(a) && jv_is_number(b)) {
        *out = compare_numbers(a, b) == 0;
        return SINTER_OK;
    }
    if (a.kind != b.kind)
        return SINTER_OK;
    switch (a.kind) {
    case JV_STR:
        TRY(jcharge(j, a.s->bytes / 16));
        *out = a.s->bytes == b.s->bytes && compare_strings(a.s, b.s) == 0;
        return SINTER_OK;
    case JV_SEQ:
        return seq_equal(j, a.seq, b.seq, out);
    case JV_DICT:
        return dict_equal(j, a.dict, b.dict, out);
    case JV_METHOD:
        return JFAIL(j, UNSUPPORTED, "comparing methods is not supported");
    case JV_ABSENT:
    case JV_UNDEFINED:
    case JV_NONE:
    case JV_BOOL:
    case JV_INT:
    case JV_FLOAT:
        *out = true;
        return SINTER_OK;
    case JV_NAMESPACE:
    case JV_MACRO:
    case JV_FUNC:
    case JV_LOOP:
    case JV_CYCLER:
    case JV_JOINER:
        *out = a.macro == b.macro; /* any of the pointers */
        return SINTER_OK;
    }
    return SINTER_OK;
}

static const char *op_text(enum jop op)
{
    static const char *const text[] = {
        "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
    return text[op];
}

static bool holds(enum jop op, int c)
{
    if (c == 2)
        return false;
    return op == J_LT ? c < 0 : op == J_LE ? c <= 0 : op == J_GT ? c > 0 : c >= 0;
}

static sinter_status order_seq(struct jinja *j, enum jop op, const struct jseq *a,
                               const struct jseq *b, bool *out)
{
    TRY(jenter(j));
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        bool equal;
        TRY(jv_equal(j, a->item[i], b->item[i], &equal));
        if (!equal) {
            TRY(jv_compare(j, op, a->item[i], b->item[i], out));
            jleave(j);
            return SINTER_OK;
        }
    }
    jleave(j);
    *out = holds(op, (a->n > b->n) - (a->n < b->n));
    return SINTER_OK;
}

sinter_status jv_compare(struct jinja *j, enum jop op, struct jv a, struct jv b, bool *out)
{
    if (op == J_EQ || op == J_NE) {
        TRY(jv_equal(j, a, b, out));
        *out = *out == (op == J_EQ);
        return SINTER_OK;
    }
    if (op == J_IN || op == J_NOTIN) {
        TRY(jv_contains(j, b, a, out));
        *out = *out == (op == J_IN);
        return SINTER_OK;
    }
    TRY(jcharge(j, 1));
    if (a.kind == JV_UNDEFINED || b.kind == JV_UNDEFINED)
        return jundef_fail(j, a.kind == JV_UNDEFINED ? a : b);
    if (jv_is_number(a) && jv_is_number(b)) {
        *out = holds(op, compare_numbers(a, b));
        return SINTER_OK;
    }
    if (a.kind == JV_STR && b.kind == JV_STR) {
        TRY(jcharge(j, a.s->bytes / 16));
        *out = holds(op, compare_strings(a.s, b.s));
        return SINTER_OK;
    }
    if (a.kind == JV_SEQ && b.kind == JV_SEQ && a.seq->kind == b.seq->kind &&
        a.seq->kind <= SEQ_TUPLE)
        return order_seq(j, op, a.seq, b.seq, out);
    return JFAIL(j, DATA, "'%s' not supported between instances of '%s' and '%s'", op_text(op),
                 jv_type(a), jv_type(b));
}

sinter_status jv_less(struct jinja *j, struct jv a, struct jv b, bool *out)
{
    return jv_compare(j, J_LT, a, b, out);
}

sinter_status jv_contains(struct jinja *j, struct jv box, struct jv v, bool *out)
{
    struct jv *item;
    size_t n;
    *out = false;
    if (box.kind == JV_STR) {
        if (v.kind != JV_STR)
            return JFAIL(j, DATA, "'in <string>' requires string as left operand, not %s",
                         jv_type(v));
        TRY(jcharge(j, box.s->bytes / 16));
        *out = jtext_find(box.s->text, box.s->bytes, v.s->text, v.s->bytes, 0) != SIZE_MAX;
        return SINTER_OK;
    }
    if (box.kind == JV_DICT) {
        struct jv *found;
        TRY(jdict_get(j, box.dict, v, &found));
        *out = found != NULL;
        return SINTER_OK;
    }
    if (!jv_iterable(box))
        return JFAIL(j, DATA, "argument of type '%s' is not iterable", jv_type(box));
    if (box.kind == JV_SEQ && box.seq->kind == SEQ_KEYS && !jv_hashable(v))
        return jv_check_hashable(j, v);
    TRY(jv_elements(j, box, &item, &n));
    for (size_t i = 0; i < n && !*out; i++) {
        TRY(jv_equal(j, item[i], v, out));
        if (*out && box.kind == JV_SEQ && box.seq->kind == SEQ_GENERATOR)
            box.seq->pos = (size_t)(item - box.seq->item) + i + 1;
    }
    return SINTER_OK;
}

/* ---- str() and repr() --------------------------------------------------------------------- */

static sinter_status check_output(struct jinja *j, const struct text_buf *b)
{
    if (b->failed)
        return host_no_memory(j->err, b->bytes, 1, "template text");
    if (b->bytes > j->limit.output_bytes)
        return JFAIL(j, LIMIT, "more than %zu bytes of text", j->limit.output_bytes);
    return SINTER_OK;
}

static void repr_string(const struct jstr *s, struct text_buf *b)
{
    const bool single = memchr(s->text, '\'', s->bytes) != NULL;
    const bool twice = memchr(s->text, '"', s->bytes) != NULL;
    const char quote = single && !twice ? '"' : '\'';
    size_t len;
    text_buf_add(b, &quote, 1);
    for (size_t i = 0; i < s->bytes; i += len) {
        const uint32_t c = jchar_get(s->text + i, &len);
        if (c == (unsigned char)quote || c == '\\')
            text_buf_printf(b, "\\%c", (char)c);
        else if (c == '\n' || c == '\r' || c == '\t')
            text_buf_add(b, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t", 2);
        else if (jchar_printable(c))
            text_buf_add(b, s->text + i, len);
        else
            text_buf_printf(b, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
    }
    text_buf_add(b, &quote, 1);
}

static sinter_status repr_items(struct jinja *j, const struct jv *item, size_t n,
                                struct text_buf *b)
{
    for (size_t i = 0; i < n; i++) {
        if (i)
            text_buf_add(b, ", ", 2);
        TRY(jv_repr(j, item[i], b));
    }
    return SINTER_OK;
}

static sinter_status repr_seq(struct jinja *j, const struct jseq *s, struct text_buf *b)
{
    static const char *const open[] = {"[",           "(", "", "", "dict_keys([", "dict_values([",
                                       "dict_items(["};
    static const char *const close[] = {"]", ")", "", "", "])", "])", "])"};
    if (s->kind == SEQ_GENERATOR)
        return JFAIL(j, UNSUPPORTED, "the text of a generator is an address; use |list or |join");
    if (s->kind == SEQ_RANGE) {
        text_buf_printf(b, s->step == 1 ? "range(%lld, %lld)" : "range(%lld, %lld, %lld)",
                        (long long)s->start, (long long)s->stop, (long long)s->step);
        return SINTER_OK;
    }
    text_buf_printf(b, "%s", open[s->kind]);
    TRY(repr_items(j, s->item, s->n, b));
    text_buf_printf(b, "%s%s", s->kind == SEQ_TUPLE && s->n == 1 ? "," : "", close[s->kind]);
    return SINTER_OK;
}

static sinter_status repr_dict(struct jinja *j, const struct jdict *d, struct text_buf *b)
{
    text_buf_add(b, "{", 1);
    for (size_t i = 0; i < d->n; i++) {
        if (i)
            text_buf_add(b, ", ", 2);
        TRY(jv_repr(j, d->pair[i].key, b));
        text_buf_add(b, ": ", 2);
        TRY(jv_repr(j, d->pair[i].value, b));
    }
    text_buf_add(b, "}", 1);
    return SINTER_OK;
}

static sinter_status repr_compound(struct jinja *j, struct jv v, struct text_buf *b)
{
    sinter_status status = SINTER_OK;
    TRY(jenter(j));
    if (v.kind == JV_SEQ) {
        status = repr_seq(j, v.seq, b);
    } else {
        if (v.kind == JV_NAMESPACE)
            text_buf_add(b, "<Namespace ", 11);
        status = repr_dict(j, v.dict, b);
        if (v.kind == JV_NAMESPACE)
            text_buf_add(b, ">", 1);
    }
    jleave(j);
    return status;
}

sinter_status jv_repr(struct jinja *j, struct jv v, struct text_buf *b)
{
    char buf[40];
    TRY(jcharge(j, 1));
    switch (v.kind) {
    case JV_ABSENT:
        break;
    case JV_UNDEFINED:
        text_buf_add(b, "Undefined", 9);
        break;
    case JV_NONE:
        text_buf_add(b, "None", 4);
        break;
    case JV_BOOL:
        text_buf_printf(b, "%s", v.b ? "True" : "False");
        break;
    case JV_INT:
        text_buf_printf(b, "%lld", (long long)v.i);
        break;
    case JV_FLOAT:
        jfmt_float(v.f, buf);
        text_buf_printf(b, "%s", buf);
        break;
    case JV_STR:
        TRY(jcharge(j, v.s->bytes / 16));
        text_buf_printf(b, "%s", v.s->safe ? "Markup(" : "");
        repr_string(v.s, b);
        text_buf_printf(b, "%s", v.s->safe ? ")" : "");
        break;
    case JV_SEQ:
    case JV_DICT:
    case JV_NAMESPACE:
        TRY(repr_compound(j, v, b));
        break;
    case JV_MACRO:
        text_buf_printf(b, "<Macro ");
        if (v.macro->node->kind == N_MACRO)
            repr_string(j->t->name[v.macro->node->name], b);
        else
            text_buf_printf(b, "anonymous");
        text_buf_add(b, ">", 1);
        break;
    case JV_LOOP:
        text_buf_printf(b, "<LoopContext %zu/%zu>", v.loop->index0 + 1, v.loop->n);
        break;
    case JV_FUNC:
    case JV_METHOD:
    case JV_CYCLER:
    case JV_JOINER:
        return JFAIL(j, UNSUPPORTED, "the text of a '%s' object is an address; call it",
                     jv_type(v));
    }
    return check_output(j, b);
}

sinter_status jv_print(struct jinja *j, struct jv v, struct text_buf *b)
{
    if (v.kind == JV_UNDEFINED)
        return SINTER_OK;
    if (v.kind != JV_STR)
        return jv_repr(j, v, b);
    TRY(jcharge(j, v.s->bytes / 16));
    text_buf_add(b, v.s->text, v.s->bytes);
    return check_output(j, b);
}

/* What `print` writes, as a string. */
static sinter_status written(struct jinja *j, struct jv v,
                             sinter_status (*print)(struct jinja *j, struct jv v,
                                                    struct text_buf *b),
                             const struct jstr **out)
{
    struct text_buf b;
    struct jv text;
    text_buf_init(&b, j->host);
    TRY(jstr_take(j, print(j, v, &b), &b, false, &text));
    *out = text.s;
    return SINTER_OK;
}

sinter_status jv_str(struct jinja *j, struct jv v, const struct jstr **out)
{
    if (v.kind != JV_STR)
        return written(j, v, jv_print, out);
    *out = v.s;
    return SINTER_OK;
}

sinter_status jv_repr_str(struct jinja *j, struct jv v, const struct jstr **out)
{
    return written(j, v, jv_repr, out);
}
