/* obj.name and obj[key] as the immutable sandbox allows them; the built-in globals. */
#include "text/jinja/jinja.h"

#include <string.h>

static bool in(const struct jstr *s, const char *const *names)
{
    for (; *names; names++)
        if (jstr_is(s, *names))
            return true;
    return false;
}

static sinter_status undefined(struct jinja *j, enum jundef_why why, struct jv obj,
                               const struct jstr *name, struct jv *out)
{
    return jundef_new(j, why, jv_type(obj), name->text, name->bytes, out);
}

static sinter_status method(struct jinja *j, struct jv self, const struct jrow *row, struct jv *out)
{
    struct jmethod *m;
    if (!row->fn)
        return JFAIL(j, UNSUPPORTED, "the method '%s' of '%s' is not supported", row->name,
                     jv_type(self));
    TRY(jalloc(j, 1, sizeof *m, &m));
    *m = (struct jmethod){self, row};
    *out = (struct jv){.kind = JV_METHOD, .method = m};
    return SINTER_OK;
}

static sinter_status lack(struct jinja *j, struct jv obj, const struct jstr *name)
{
    return JFAIL(j, UNSUPPORTED, "the attribute '%.*s' of '%s' objects is not supported",
                 JCUT(name), jv_type(obj));
}

static sinter_status seq_attr(struct jinja *j, struct jv obj, const struct jstr *name, bool *found,
                              struct jv *out)
{
    static const char *const unsafe[] = {"append", "clear",  "pop",    "reverse", "insert",
                                         "sort",   "extend", "remove", NULL};
    static const char *const other[] = {
        "start",        "stop",       "step",    "close",      "send",
        "throw",        "gi_frame",   "gi_code", "gi_running", "gi_yieldfrom",
        "gi_suspended", "isdisjoint", "mapping", NULL};
    const enum jseq_kind kind = obj.seq->kind;
    const struct jrow *row;
    *found = true;
    if (kind == SEQ_LIST && in(name, unsafe))
        return undefined(j, UNDEF_UNSAFE, obj, name, out);
    if (kind <= SEQ_RANGE) {
        row = jrow_find(jinja_list_methods, jinja_n_list_method, name->text, name->bytes);
        if (row && (kind == SEQ_LIST || !jstr_is(name, "copy")))
            return method(j, obj, row, out);
    }
    if (obj.seq->names) {
        struct jv *field = jdict_find(obj.seq->names, name->text, name->bytes);
        if (field) {
            *out = *field;
            return SINTER_OK;
        }
    }
    if (kind >= SEQ_RANGE && in(name, other))
        return lack(j, obj, name);
    *found = false;
    return SINTER_OK;
}

static sinter_status loop_attr(struct jinja *j, struct jv obj, const struct jstr *name, bool *found,
                               struct jv *out)
{
    const struct jloop *l = obj.loop;
    const int64_t i = (int64_t)l->index0, n = (int64_t)l->n;
    const struct {
        const char *name;
        int64_t value;
    } number[] = {{"index", i + 1}, {"index0", i}, {"revindex", n - i}, {"revindex0", n - i - 1},
                  {"length", n},    {"depth", 1},  {"depth0", 0}};
    const struct jrow *row;
    *found = true;
    for (size_t k = 0; k < sizeof number / sizeof *number; k++)
        if (jstr_is(name, number[k].name)) {
            *out = jv_int(number[k].value);
            return SINTER_OK;
        }
    if (jstr_is(name, "first") || jstr_is(name, "last")) {
        *out = jv_bool(jstr_is(name, "first") ? i == 0 : i + 1 == n);
        return SINTER_OK;
    }
    if (jstr_is(name, "previtem") || jstr_is(name, "nextitem")) {
        const bool next = jstr_is(name, "nextitem");
        const char *hint = next ? "there is no next item" : "there is no previous item";
        if (next ? i + 1 == n : i == 0)
            return jundef_new(j, UNDEF_HINT, "LoopContext", hint, strlen(hint), out);
        *out = l->item[next ? i + 1 : i - 1];
        return SINTER_OK;
    }
    row = jrow_find(jinja_loop_methods, jinja_n_loop_method, name->text, name->bytes);
    if (row)
        return method(j, obj, row, out);
    *found = false;
    return SINTER_OK;
}

static sinter_status number_attr(struct jinja *j, struct jv obj, const struct jstr *name,
                                 bool *found, struct jv *out)
{
    static const char *const names[] = {
        "real",       "imag",      "conjugate", "as_integer_ratio", "numerator", "denominator",
        "bit_length", "bit_count", "to_bytes",  "from_bytes",       "hex",       "fromhex",
        "is_integer", NULL};
    (void)out;
    *found = in(name, names);
    return *found ? lack(j, obj, name) : SINTER_OK;
}

static sinter_status other_attr(struct jinja *j, struct jv obj, const struct jstr *name,
                                bool *found, struct jv *out)
{
    const struct jrow *row;
    *found = true;
    if (obj.kind == JV_CYCLER) {
        row = jrow_find(jinja_cycler_methods, jinja_n_cycler_method, name->text, name->bytes);
        if (row)
            return method(j, obj, row, out);
        if (jstr_is(name, "current")) {
            *out = obj.cycler->item[obj.cycler->pos];
            return SINTER_OK;
        }
    }
    if (obj.kind == JV_MACRO && jstr_is(name, "name") && obj.macro->node->kind == N_MACRO) {
        *out = jv_text(j->t->name[obj.macro->node->name]);
        return SINTER_OK;
    }
    if (obj.kind != JV_NONE)
        return lack(j, obj, name);
    *found = false;
    return SINTER_OK;
}

sinter_status jattr_python(struct jinja *j, struct jv obj, const struct jstr *name, bool *found,
                           struct jv *out)
{
    static const char *const unsafe[] = {"clear", "pop", "popitem", "setdefault", "update", NULL};
    const struct jrow *row = NULL;
    *found = true;
    if (obj.kind == JV_UNDEFINED)
        return jundef_fail(j, obj);
    if (name->bytes > 2 && !memcmp(name->text, "__", 2)) {
        if (obj.kind == JV_DICT && jdict_find(obj.dict, name->text, name->bytes))
            return lack(j, obj, name);
        return undefined(j, UNDEF_UNSAFE, obj, name, out);
    }
    if (obj.kind == JV_NAMESPACE) {
        struct jv *v = jdict_find(obj.dict, name->text, name->bytes);
        j->n_ns_read++;
        if (v && name->bytes && name->text[0] == '_')
            return undefined(j, UNDEF_UNSAFE, obj, name, out);
        *found = v != NULL;
        if (v)
            *out = *v;
        return SINTER_OK;
    }
    if (obj.kind == JV_SEQ)
        return seq_attr(j, obj, name, found, out);
    if (obj.kind == JV_LOOP)
        return loop_attr(j, obj, name, found, out);
    if (jv_is_number(obj))
        return number_attr(j, obj, name, found, out);
    if (obj.kind == JV_DICT && in(name, unsafe))
        return undefined(j, UNDEF_UNSAFE, obj, name, out);
    if (obj.kind == JV_DICT)
        row = jrow_find(jinja_dict_methods, jinja_n_dict_method, name->text, name->bytes);
    else if (obj.kind == JV_STR)
        row = jrow_find(jinja_str_methods, jinja_n_str_method, name->text, name->bytes);
    else
        return other_attr(j, obj, name, found, out);
    if (row)
        return method(j, obj, row, out);
    *found = false;
    return SINTER_OK;
}

/* obj[key] of Python; *found = false stands for TypeError and LookupError. */
static sinter_status python_item(struct jinja *j, struct jv obj, struct jv key, bool *found,
                                 struct jv *out)
{
    const bool is_seq = obj.kind == JV_SEQ && obj.seq->kind <= SEQ_RANGE;
    *found = false;
    if (obj.kind == JV_UNDEFINED)
        return jundef_fail(j, obj);
    if (obj.kind == JV_DICT && jv_hashable(key)) {
        struct jv *v;
        TRY(jdict_get(j, obj.dict, key, &v));
        *found = v != NULL;
        if (v)
            *out = *v;
    } else if ((is_seq || obj.kind == JV_STR) && jv_is_int(key)) {
        const int64_t n = (int64_t)(is_seq ? obj.seq->n : obj.s->n_char);
        int64_t i = jv_as_int(key);
        i += i < 0 ? n : 0;
        *found = i >= 0 && i < n;
        if (*found && is_seq) {
            *out = obj.seq->item[i];
        } else if (*found) {
            const size_t at = jchar_offset(obj.s, (size_t)i);
            size_t len;
            TRY(jcharge(j, at / 64));
            jchar_get(obj.s->text + at, &len);
            return jstr_share(j, obj.s->text + at, len, obj.s->safe, out);
        }
    }
    return SINTER_OK;
}

sinter_status jattr_get(struct jinja *j, struct jv obj, const struct jstr *name, struct jv *out)
{
    bool found;
    TRY(jattr_python(j, obj, name, &found, out));
    if (!found)
        TRY(python_item(j, obj, jv_text(name), &found, out));
    return found ? SINTER_OK : undefined(j, UNDEF_ATTR, obj, name, out);
}

sinter_status jattr_item(struct jinja *j, struct jv obj, struct jv key, struct jv *out)
{
    const struct jstr *text;
    bool found;
    TRY(python_item(j, obj, key, &found, out));
    if (!found && key.kind == JV_STR)
        TRY(jattr_python(j, obj, key.s, &found, out));
    if (found)
        return SINTER_OK;
    if (key.kind == JV_STR)
        return undefined(j, UNDEF_ATTR, obj, key.s, out);
    if (!jv_is_number(key))
        return jundef_new(j, UNDEF_ITEM, jv_type(obj), "of this key", 11, out);
    TRY(jv_repr_str(j, key, &text));
    return undefined(j, UNDEF_ITEM, obj, text, out);
}

/* ---- Globals ------------------------------------------------------------------------------ */

static JFN(global_range)
{
    int64_t v[3] = {0, 0, 1}, n = 0;
    if (raw->n_kw || raw->n_pos < 1 || raw->n_pos > 3)
        return JFAIL(j, DATA, "range expected 1 to 3 arguments, got %zu", raw->n_pos);
    for (size_t i = 0; i < raw->n_pos; i++) {
        TRY(jarg_int(j, raw->pos[i], 0, &v[raw->n_pos == 1 ? 1 : i]));
    }
    if (!v[2])
        return JFAIL(j, DATA, "range() arg 3 must not be zero");
    if (v[2] > 0 ? v[1] > v[0] : v[1] < v[0]) {
        const uint64_t span =
            v[2] > 0 ? (uint64_t)v[1] - (uint64_t)v[0] : (uint64_t)v[0] - (uint64_t)v[1];
        const uint64_t by = v[2] > 0 ? (uint64_t)v[2] : 0 - (uint64_t)v[2];
        const uint64_t count = (span - 1) / by + 1;
        if (count > 100000)
            return JFAIL(j, LIMIT,
                         "Range too big. The sandbox blocks ranges larger than "
                         "MAX_RANGE (100000).");
        n = (int64_t)count;
    }
    TRY(jcharge(j, (size_t)n));
    TRY(jseq_new(j, SEQ_RANGE, (size_t)n, out));
    out->seq->start = v[0];
    out->seq->stop = v[1];
    out->seq->step = v[2];
    for (int64_t i = 0; i < n; i++)
        out->seq->item[i] = jv_int(v[0] + i * v[2]);
    return SINTER_OK;
}

/* dict(mapping or pairs, key=value, ...) */
static sinter_status make_dict(struct jinja *j, const struct jargs *raw, struct jdict **out)
{
    TRY(jdict_new(j, raw->n_kw, out));
    if (raw->n_pos > 1)
        return JFAIL(j, DATA, "dict expected at most 1 argument, got %zu", raw->n_pos);
    if (raw->n_pos && raw->pos[0].kind == JV_DICT) {
        const struct jdict *d = raw->pos[0].dict;
        for (size_t i = 0; i < d->n; i++)
            TRY(jdict_set(j, *out, d->pair[i].key, d->pair[i].value));
    } else if (raw->n_pos) {
        struct jv *item, *pair;
        size_t n, two;
        TRY(jv_elements(j, raw->pos[0], &item, &n));
        for (size_t i = 0; i < n; i++) {
            TRY(jv_elements(j, item[i], &pair, &two));
            if (two != 2)
                return JFAIL(j, DATA,
                             "dictionary update sequence element #%zu has length %zu; 2 "
                             "is required",
                             i, two);
            TRY(jdict_set(j, *out, pair[0], pair[1]));
        }
    }
    return jdict_set_kw(j, *out, raw);
}

static JFN(global_dict)
{
    out->kind = JV_DICT;
    return make_dict(j, raw, &out->dict);
}

static JFN(global_namespace)
{
    out->kind = JV_NAMESPACE;
    return make_dict(j, raw, &out->dict);
}

static JFN(global_raise)
{
    const struct jstr *s;
    (void)out;
    TRY(jv_str(j, arg[0], &s));
    return JFAIL(j, DATA, "the template refuses: %.*s", (int)(s->bytes < 700 ? s->bytes : 700),
                 s->text);
}

static JFN(global_strftime)
{
    if (arg[0].kind != JV_STR)
        return JFAIL(j, DATA, "strftime_now: the format must be a string, not %s", jv_type(arg[0]));
    return jfmt_strftime(j, arg[0].s, out);
}

static JFN(global_cycler)
{
    struct jcycler *c;
    if (!raw->n_pos || raw->n_kw)
        return JFAIL(j, DATA, "at least one item has to be provided");
    TRY(jalloc(j, 1, sizeof *c, &c));
    *c = (struct jcycler){raw->pos, raw->n_pos, 0};
    *out = (struct jv){.kind = JV_CYCLER, .cycler = c};
    return SINTER_OK;
}

static JFN(global_joiner)
{
    struct jcycler *c;
    TRY(jalloc(j, 1, sizeof *c, &c));
    *c = (struct jcycler){NULL, 1, 0};
    TRY(jalloc(j, 1, sizeof *c->item, &c->item));
    if (arg[0].kind == JV_ABSENT)
        TRY(jstr_copy(j, ", ", 2, false, &c->item[0]));
    else
        c->item[0] = arg[0];
    *out = (struct jv){.kind = JV_JOINER, .cycler = c};
    return SINTER_OK;
}

static const struct jrow globals[] = {
    {"range", NULL, 0, global_range},
    {"dict", NULL, 0, global_dict},
    {"namespace", NULL, 0, global_namespace},
    {"raise_exception", "message", 1, global_raise},
    {"strftime_now", "format", 1, global_strftime},
    {"cycler", NULL, 0, global_cycler},
    {"joiner", "sep", 0, global_joiner},
    {"lipsum", NULL, 0, NULL},
};

const struct jrow *jinja_global_find(const char *name, size_t bytes)
{
    return jrow_find(globals, sizeof globals / sizeof *globals, name, bytes);
}
