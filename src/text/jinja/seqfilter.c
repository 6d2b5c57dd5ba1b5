/* Filters on sequences. What jinja2 makes lazily is made at once here: the elements are the same,
 * only an error in one that nobody asks for shows earlier. */
#include "text/jinja/filter.h"

#include <string.h>

/* "a.b.0": attributes and, where a part is a number, elements. */
static sinter_status get_path(struct jinja *j, struct jv item, const char *path, size_t bytes,
                              struct jv fallback, struct jv *out)
{
    size_t at = 0;
    do {
        const char *dot = memchr(path + at, '.', bytes - at);
        const size_t n = dot ? (size_t)(dot - path) - at : bytes - at;
        bool digits = n > 0 && n < 18;
        int64_t number = 0;
        struct jv key;
        for (size_t i = 0; i < n && digits; i++) {
            digits = path[at + i] >= '0' && path[at + i] <= '9';
            number = number * 10 + (path[at + i] - '0');
        }
        TRY(jcharge(j, 1));
        TRY(jstr_share(j, path + at, n, false, &key));
        TRY(jattr_item(j, item, digits ? jv_int(number) : key, &item));
        if (jarg_given(fallback) && item.kind == JV_UNDEFINED)
            item = fallback;
        at += n + 1;
    } while (at <= bytes);
    *out = item;
    return SINTER_OK;
}

/* The value that a filter's `attribute` argument picks from an item. */
static sinter_status get_attribute(struct jinja *j, struct jv item, struct jv attribute,
                                   struct jv fallback, struct jv *out)
{
    *out = item;
    if (!jarg_given(attribute))
        return SINTER_OK;
    if (attribute.kind == JV_STR)
        return get_path(j, item, attribute.s->text, attribute.s->bytes, fallback, out);
    TRY(jattr_item(j, item, attribute, out));
    if (jarg_given(fallback) && out->kind == JV_UNDEFINED)
        *out = fallback;
    return SINTER_OK;
}

static sinter_status ignore_case(struct jinja *j, struct jv *v)
{
    return v->kind == JV_STR ? jstr_case(j, v->s, CASE_LOWER, v) : SINTER_OK;
}

/* ---- Sorting ------------------------------------------------------------------------------ */

struct keyed {
    struct jv key, item;
};

/* Stable merge of halves; reverse keeps the order of equals, too. */
static sinter_status merge_sort(struct jinja *j, struct keyed *a, struct keyed *tmp, size_t n,
                                bool reverse)
{
    const size_t half = n / 2;
    size_t l = 0, r = half;
    if (n < 2)
        return SINTER_OK;
    TRY(merge_sort(j, a, tmp, half, reverse));
    TRY(merge_sort(j, a + half, tmp + half, n - half, reverse));
    for (size_t i = 0; i < n; i++) {
        bool right = l == half;
        if (l < half && r < n)
            TRY(reverse ? jv_less(j, a[l].key, a[r].key, &right)
                        : jv_less(j, a[r].key, a[l].key, &right));
        tmp[i] = a[right ? r++ : l++];
    }
    memcpy(a, tmp, n * sizeof *a);
    return SINTER_OK;
}

static sinter_status sort_items(struct jinja *j, struct keyed *a, size_t n, bool reverse,
                                struct jv *out)
{
    struct keyed *tmp;
    TRY(jalloc(j, n, sizeof *tmp, &tmp));
    TRY(merge_sort(j, a, tmp, n, reverse));
    TRY(jseq_new(j, SEQ_LIST, n, out));
    for (size_t i = 0; i < n; i++)
        out->seq->item[i] = a[i].item;
    return SINTER_OK;
}

/* sort's key: the list of values of the comma-separated attributes. */
static sinter_status sort_key(struct jinja *j, struct jv item, struct jv attribute,
                              bool case_sensitive, struct jv *out)
{
    const bool text = attribute.kind == JV_STR;
    const char *path = text ? attribute.s->text : NULL;
    size_t left = text ? attribute.s->bytes : 0, cap = 0;
    TRY(jseq_new(j, SEQ_LIST, 0, out));
    do {
        const char *comma = text ? memchr(path, ',', left) : NULL;
        const size_t n = comma ? (size_t)(comma - path) : left;
        struct jv v;
        if (text)
            TRY(get_path(j, item, path, n, jv_absent(), &v));
        else
            TRY(get_attribute(j, item, attribute, jv_absent(), &v));
        if (!case_sensitive)
            TRY(ignore_case(j, &v));
        TRY(jseq_push(j, out->seq, &cap, v));
        if (!comma)
            break;
        path += n + 1;
        left -= n + 1;
    } while (true);
    return SINTER_OK;
}

JFN(jfilter_sort)
{
    struct keyed *a;
    struct jv *item;
    size_t n;
    TRY(jv_elements(j, arg[0], &item, &n));
    TRY(jalloc(j, n, sizeof *a, &a));
    for (size_t i = 0; i < n; i++) {
        a[i].item = item[i];
        TRY(sort_key(j, item[i], arg[3], jv_truth(arg[2]), &a[i].key));
    }
    return sort_items(j, a, n, jv_truth(arg[1]), out);
}

JFN(jfilter_dictsort)
{
    const bool by_value = jarg_is(arg[2], "value");
    struct keyed *a;
    const struct jdict *d;
    if (arg[2].kind != JV_ABSENT && !by_value && !jarg_is(arg[2], "key"))
        return JFAIL(j, DATA, "You can only sort by either \"key\" or \"value\"");
    if (arg[0].kind == JV_UNDEFINED)
        return jundef_fail(j, arg[0]);
    if (arg[0].kind != JV_DICT)
        return JFAIL(j, DATA, "'%s' object has no attribute 'items'", jv_type(arg[0]));
    d = arg[0].dict;
    TRY(jcharge(j, d->n));
    TRY(jalloc(j, d->n, sizeof *a, &a));
    for (size_t i = 0; i < d->n; i++) {
        TRY(jseq_pair(j, d->pair[i].key, d->pair[i].value, &a[i].item));
        a[i].key = by_value ? d->pair[i].value : d->pair[i].key;
        if (!jv_truth(arg[1]))
            TRY(ignore_case(j, &a[i].key));
    }
    return sort_items(j, a, d->n, jv_truth(arg[3]), out);
}

static sinter_status group(struct jinja *j, struct jv key, const struct keyed *a, size_t n,
                           struct jv *out)
{
    struct jdict *names;
    struct jv list, name;
    TRY(jseq_new(j, SEQ_LIST, n, &list));
    for (size_t i = 0; i < n; i++)
        list.seq->item[i] = a[i].item;
    TRY(jseq_pair(j, key, list, out));
    TRY(jdict_new(j, 2, &names));
    TRY(jstr_share(j, "grouper", 7, false, &name));
    TRY(jdict_set(j, names, name, key));
    TRY(jstr_share(j, "list", 4, false, &name));
    TRY(jdict_set(j, names, name, list));
    out->seq->names = names;
    return SINTER_OK;
}

JFN(jfilter_groupby)
{
    const bool sensitive = jv_truth(arg[3]);
    struct keyed *a, *tmp;
    struct jv *item, one, key;
    size_t n, cap = 0;
    TRY(jv_elements(j, arg[0], &item, &n));
    TRY(jalloc(j, n, sizeof *a, &a));
    TRY(jalloc(j, n, sizeof *tmp, &tmp));
    for (size_t i = 0; i < n; i++) {
        a[i].item = item[i];
        TRY(get_attribute(j, item[i], arg[1], arg[2], &a[i].key));
        if (!sensitive)
            TRY(ignore_case(j, &a[i].key));
    }
    TRY(merge_sort(j, a, tmp, n, false));
    TRY(jseq_new(j, SEQ_LIST, 0, out));
    for (size_t i = 0, end; i < n; i = end) {
        bool equal = true;
        for (end = i + 1; end < n; end++) {
            TRY(jv_equal(j, a[i].key, a[end].key, &equal));
            if (!equal)
                break;
        }
        key = a[i].key;
        if (!sensitive)
            TRY(get_attribute(j, a[i].item, arg[1], arg[2], &key));
        TRY(group(j, key, a + i, end - i, &one));
        TRY(jseq_push(j, out->seq, &cap, one));
    }
    return SINTER_OK;
}

static sinter_status extreme(struct jinja *j, struct jv *arg, bool max, struct jv *out)
{
    static const char hint[] = "No aggregated item, sequence was empty.";
    struct jv *item, best, key;
    size_t n;
    TRY(jv_elements(j, arg[0], &item, &n));
    if (!n)
        return jundef_new(j, UNDEF_HINT, "list", hint, sizeof hint - 1, out);
    for (size_t i = 0; i < n; i++) {
        bool better = i == 0;
        TRY(get_attribute(j, item[i], arg[2], jv_absent(), &key));
        if (!jv_truth(arg[1]))
            TRY(ignore_case(j, &key));
        if (i)
            TRY(jv_compare(j, max ? J_GT : J_LT, key, best, &better));
        if (better) {
            best = key;
            *out = item[i];
        }
    }
    return SINTER_OK;
}

JFN(jfilter_max)
{
    return extreme(j, arg, true, out);
}

JFN(jfilter_min)
{
    return extreme(j, arg, false, out);
}

/* ---- Whole sequences ---------------------------------------------------------------------- */

JFN(jfilter_length)
{
    const struct jv v = arg[0];
    if (v.kind == JV_STR)
        *out = jv_int((int64_t)v.s->n_char);
    else if (v.kind == JV_DICT)
        *out = jv_int((int64_t)v.dict->n);
    else if (v.kind == JV_SEQ && v.seq->kind != SEQ_GENERATOR)
        *out = jv_int((int64_t)v.seq->n);
    else if (v.kind == JV_UNDEFINED)
        *out = jv_int(0);
    else if (v.kind == JV_LOOP)
        *out = jv_int((int64_t)v.loop->n);
    else
        return JFAIL(j, DATA, "object of type '%s' has no len()", jv_type(v));
    return SINTER_OK;
}

JFN(jfilter_list)
{
    struct jv *item;
    size_t n;
    TRY(jv_elements(j, arg[0], &item, &n));
    TRY(jseq_new(j, SEQ_LIST, 0, out));
    out->seq->item = item;
    out->seq->n = n;
    return SINTER_OK;
}

JFN(jfilter_first)
{
    static const char hint[] = "No first item, sequence was empty.";
    struct jv *item;
    size_t n;
    if (arg[0].kind == JV_SEQ && arg[0].seq->kind == SEQ_GENERATOR &&
        arg[0].seq->pos < arg[0].seq->n) { /* takes one and leaves the rest */
        *out = arg[0].seq->item[arg[0].seq->pos++];
        return SINTER_OK;
    }
    TRY(jv_elements(j, arg[0], &item, &n));
    if (!n)
        return jundef_new(j, UNDEF_HINT, "list", hint, sizeof hint - 1, out);
    *out = item[0];
    return SINTER_OK;
}

static sinter_status need_reversible(struct jinja *j, struct jv v)
{
    if (v.kind == JV_UNDEFINED || (v.kind == JV_SEQ && v.seq->kind == SEQ_GENERATOR) ||
        !jv_iterable(v))
        return JFAIL(j, DATA, "'%s' object is not reversible", jv_type(v));
    return SINTER_OK;
}

JFN(jfilter_last)
{
    static const char hint[] = "No last item, sequence was empty.";
    struct jv *item;
    size_t n;
    if (arg[0].kind == JV_UNDEFINED) /* reversed() of it asks __getitem__ */
        n = 0, item = NULL;
    else {
        TRY(need_reversible(j, arg[0]));
        TRY(jv_elements(j, arg[0], &item, &n));
    }
    if (!n)
        return jundef_new(j, UNDEF_HINT, "list", hint, sizeof hint - 1, out);
    *out = item[n - 1];
    return SINTER_OK;
}

JFN(jfilter_reverse)
{
    struct jv *item;
    size_t n;
    if (arg[0].kind == JV_STR)
        return jop_slice(j, arg[0], jv_none(), jv_none(), jv_int(-1), out);
    TRY(jv_elements(j, arg[0], &item, &n));
    /* A generator cannot be reversed in place: jinja2 makes a list of it. */
    TRY(jseq_new(
        j, arg[0].kind == JV_SEQ && arg[0].seq->kind == SEQ_GENERATOR ? SEQ_LIST : SEQ_GENERATOR, n,
        out));
    for (size_t i = 0; i < n; i++)
        out->seq->item[i] = item[n - 1 - i];
    return SINTER_OK;
}

JFN(jfilter_items)
{
    if (arg[0].kind == JV_UNDEFINED)
        return jseq_new(j, SEQ_GENERATOR, 0, out);
    if (arg[0].kind != JV_DICT)
        return JFAIL(j, DATA, "Can only get item pairs from a mapping.");
    TRY(jrow_find(jinja_dict_methods, jinja_n_dict_method, "items", 5)->fn(j, raw, arg, out));
    out->seq->kind = SEQ_GENERATOR;
    return SINTER_OK;
}

JFN(jfilter_join)
{
    const struct jstr *sep, *s;
    struct text_buf b;
    struct jv *item, *text, v;
    size_t n, bytes = 0;
    TRY(jstr_share(j, "", 0, false, &v));
    TRY(jv_str(j, arg[1].kind == JV_ABSENT ? v : arg[1], &sep));
    TRY(jv_elements(j, arg[0], &item, &n));
    TRY(jalloc(j, n, sizeof *text, &text));
    for (size_t i = 0; i < n; i++) {
        TRY(get_attribute(j, item[i], arg[2], jv_absent(), &v));
        TRY(jv_str(j, v, &s));
        text[i] = jv_text(s);
        bytes += s->bytes + sep->bytes;
        if (bytes > j->limit.output_bytes + sep->bytes)
            return JFAIL(j, LIMIT, "more than %zu bytes of text", j->limit.output_bytes);
    }
    text_buf_init(&b, j->host);
    for (size_t i = 0; i < n; i++) {
        if (i)
            text_buf_add(&b, sep->text, sep->bytes);
        text_buf_add(&b, text[i].s->text, text[i].s->bytes);
    }
    return jstr_take(j, SINTER_OK, &b, false, out);
}

JFN(jfilter_sum)
{
    struct jv *item, v;
    size_t n;
    TRY(jv_elements(j, arg[0], &item, &n));
    *out = arg[2].kind == JV_ABSENT ? jv_int(0) : arg[2];
    if (out->kind == JV_STR)
        return JFAIL(j, DATA, "sum() can't sum strings [use ''.join(seq) instead]");
    for (size_t i = 0; i < n; i++) {
        TRY(get_attribute(j, item[i], arg[1], jv_absent(), &v));
        TRY(jop_binary(j, J_ADD, *out, v, out));
    }
    return SINTER_OK;
}

JFN(jfilter_unique)
{
    struct jv *item, key, *seen;
    struct jdict *d;
    size_t n, cap = 0;
    TRY(jv_elements(j, arg[0], &item, &n));
    TRY(jdict_new(j, 8, &d));
    TRY(jseq_new(j, SEQ_GENERATOR, 0, out));
    for (size_t i = 0; i < n; i++) {
        TRY(get_attribute(j, item[i], arg[2], jv_absent(), &key));
        if (!jv_truth(arg[1]))
            TRY(ignore_case(j, &key));
        TRY(jdict_get(j, d, key, &seen));
        if (seen)
            continue;
        TRY(jdict_set(j, d, key, jv_none()));
        TRY(jseq_push(j, out->seq, &cap, item[i]));
    }
    return SINTER_OK;
}

JFN(jfilter_batch)
{
    struct jv *item, row;
    int64_t size;
    size_t n, cap = 0, row_cap = 0;
    TRY(jarg_int(j, arg[1], 0, &size));
    if (size < 1)
        return JFAIL(j, UNSUPPORTED, "batch: fewer than one item per batch");
    TRY(jv_elements(j, arg[0], &item, &n));
    TRY(jseq_new(j, SEQ_GENERATOR, 0, out));
    for (size_t i = 0; i < n; i++) {
        if (i % (size_t)size == 0) {
            TRY(jseq_new(j, SEQ_LIST, 0, &row));
            TRY(jseq_push(j, out->seq, &cap, row));
            row_cap = 0;
        }
        TRY(jseq_push(j, row.seq, &row_cap, item[i]));
    }
    if (n && jarg_given(arg[2])) {
        TRY(jcharge(j, (size_t)size));
        while ((int64_t)row.seq->n < size)
            TRY(jseq_push(j, row.seq, &row_cap, arg[2]));
    }
    return SINTER_OK;
}

JFN(jfilter_slice)
{
    struct jv *item, row;
    int64_t slices;
    size_t n, offset = 0, cap = 0;
    TRY(jarg_int(j, arg[1], 0, &slices));
    if (slices < 1)
        return JFAIL(j, DATA, "slice: fewer than one slice");
    TRY(jv_elements(j, arg[0], &item, &n));
    TRY(jseq_new(j, SEQ_GENERATOR, 0, out));
    for (size_t k = 0; k < (size_t)slices; k++) {
        const size_t each = n / (size_t)slices, extra = n % (size_t)slices;
        const size_t start = offset + k * each;
        size_t row_cap = 0;
        TRY(jcharge(j, 1));
        offset += k < extra;
        TRY(jseq_new(j, SEQ_LIST, 0, &row));
        for (size_t i = start; i < offset + (k + 1) * each; i++)
            TRY(jseq_push(j, row.seq, &row_cap, item[i]));
        if (jarg_given(arg[2]) && k >= extra)
            TRY(jseq_push(j, row.seq, &row_cap, arg[2]));
        TRY(jseq_push(j, out->seq, &cap, row));
    }
    return SINTER_OK;
}

/* ---- map, select, reject ------------------------------------------------------------------ */

static const struct jv *keyword(const struct jargs *raw, const char *name)
{
    for (size_t i = 0; i < raw->n_kw; i++)
        if (jstr_is(raw->kw[i].name, name))
            return &raw->kw[i].value;
    return NULL;
}

/* Calls the filter or test that args->pos[0] names on `item` with the other arguments. */
static sinter_status call_named(struct jinja *j, bool filter, const struct jargs *args,
                                struct jv item, struct jv *out)
{
    struct jargs inner = *args;
    const struct jrow *row;
    const struct jstr *name;
    if (args->pos[0].kind != JV_STR)
        return JFAIL(j, DATA, "the name of a %s must be a string, not '%s'",
                     filter ? "filter" : "test", jv_type(args->pos[0]));
    name = args->pos[0].s;
    row = filter ? jinja_filter_find(name->text, name->bytes)
                 : jinja_test_find(name->text, name->bytes);
    if (!row)
        return JFAIL(j, DATA, "No %s named '%.*s'", filter ? "filter" : "test", JCUT(name));
    TRY(jalloc(j, args->n_pos, sizeof *inner.pos, &inner.pos));
    memcpy(inner.pos, args->pos, args->n_pos * sizeof *inner.pos);
    inner.pos[0] = item;
    TRY(jenter(j));
    TRY(jrow_call(j, row, filter ? "filter" : "test", &inner, out));
    jleave(j);
    return SINTER_OK;
}

JFN(jfilter_map)
{
    const struct jv *attribute = keyword(raw, "attribute"), *fallback = keyword(raw, "default");
    const bool by_name = raw->n_pos > 1 || !attribute;
    const struct jargs rest = {raw->pos + 1, raw->n_pos - 1, raw->kw, raw->n_kw};
    struct jv *item;
    size_t n;
    TRY(jseq_new(j, SEQ_GENERATOR, 0, out));
    if (!jv_truth(raw->pos[0]))
        return SINTER_OK;
    if (by_name && !rest.n_pos)
        return JFAIL(j, DATA, "map requires a filter argument");
    if (!by_name && raw->n_kw != (size_t)(1 + (fallback != NULL)))
        return JFAIL(j, DATA, "map: unexpected keyword argument");
    TRY(jv_elements(j, raw->pos[0], &item, &n));
    TRY(jseq_new(j, SEQ_GENERATOR, n, out));
    for (size_t i = 0; i < n; i++)
        TRY(by_name ? call_named(j, true, &rest, item[i], &out->seq->item[i])
                    : get_attribute(j, item[i], *attribute, fallback ? *fallback : jv_absent(),
                                    &out->seq->item[i]));
    return SINTER_OK;
}

static sinter_status pick(struct jinja *j, const struct jargs *raw, bool attr, bool want,
                          struct jv *out)
{
    const size_t used = 1 + (size_t)attr;
    struct jargs rest = *raw;
    struct jv *item;
    size_t n, cap = 0;
    TRY(jseq_new(j, SEQ_GENERATOR, 0, out));
    if (!jv_truth(raw->pos[0]))
        return SINTER_OK;
    if (raw->n_pos < used)
        return JFAIL(j, DATA, "Missing parameter for attribute name");
    rest.pos += used;
    rest.n_pos -= used;
    TRY(jv_elements(j, raw->pos[0], &item, &n));
    for (size_t i = 0; i < n; i++) {
        struct jv v = item[i];
        if (attr)
            TRY(get_attribute(j, v, raw->pos[1], jv_absent(), &v));
        if (rest.n_pos)
            TRY(call_named(j, false, &rest, v, &v));
        if (jv_truth(v) == want)
            TRY(jseq_push(j, out->seq, &cap, item[i]));
    }
    return SINTER_OK;
}

JFN(jfilter_select)
{
    return pick(j, raw, false, true, out);
}

JFN(jfilter_reject)
{
    return pick(j, raw, false, false, out);
}

JFN(jfilter_selectattr)
{
    return pick(j, raw, true, true, out);
}

JFN(jfilter_rejectattr)
{
    return pick(j, raw, true, false, out);
}
