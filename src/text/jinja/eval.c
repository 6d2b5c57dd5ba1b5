/* Expressions: nodes -> values. */
#include "text/jinja/jinja.h"

#include <string.h>

static sinter_status eval_name(struct jinja *j, const struct jnode *n, struct jv *out)
{
    const struct jstr *name = j->t->name[n->name];
    for (const struct jframe *f = j->frame; f; f = f->parent)
        for (int i = 0; i < f->scope->n; i++) {
            if (f->scope->name[i] != n->name)
                continue;
            if (f->value[i].kind != JV_ABSENT) {
                *out = f->value[i];
                return SINTER_OK;
            }
            if (f->scope->unset_hides[i])
                return jundef_new(j, UNDEF_NAME, NULL, name->text, name->bytes, out);
            break;
        }
    *out = j->global[n->name];
    if (out->kind != JV_ABSENT)
        return SINTER_OK;
    return jundef_new(j, UNDEF_NAME, NULL, name->text, name->bytes, out);
}

static sinter_status eval_items(struct jinja *j, const struct jnode *n, struct jv *out)
{
    size_t count = 0;
    struct jv v;
    for (const struct jnode *i = n->list; i; i = i->next)
        count++;
    TRY(jseq_new(j, n->kind == N_TUPLE ? SEQ_TUPLE : SEQ_LIST, count, &v));
    count = 0;
    for (const struct jnode *i = n->list; i; i = i->next)
        TRY(jinja_eval(j, i, &v.seq->item[count++]));
    *out = v;
    return SINTER_OK;
}

static sinter_status eval_dict(struct jinja *j, const struct jnode *n, struct jv *out)
{
    struct jdict *d;
    TRY(jdict_new(j, 4, &d));
    for (const struct jnode *i = n->list; i; i = i->next) {
        struct jv key, value;
        TRY(jinja_eval(j, i->a, &key));
        TRY(jinja_eval(j, i->b, &value));
        j->at = i->at;
        TRY(jdict_set(j, d, key, value));
    }
    *out = (struct jv){.kind = JV_DICT, .dict = d};
    return SINTER_OK;
}

static sinter_status eval_cond(struct jinja *j, const struct jnode *n, struct jv *out)
{
    static const char hint[] = "the inline if-expression evaluated to false and no else section "
                               "was defined.";
    struct jv test;
    TRY(jinja_eval(j, n->a, &test));
    if (jv_truth(test))
        return jinja_eval(j, n->b, out);
    if (n->c)
        return jinja_eval(j, n->c, out);
    return jundef_new(j, UNDEF_HINT, NULL, hint, sizeof hint - 1, out);
}

static sinter_status eval_logic(struct jinja *j, const struct jnode *n, struct jv *out)
{
    TRY(jinja_eval(j, n->a, out));
    return jv_truth(*out) == (n->kind == N_AND) ? jinja_eval(j, n->b, out) : SINTER_OK;
}

/* a < b < c: the first comparison that fails decides. */
static sinter_status eval_compare(struct jinja *j, const struct jnode *n, struct jv *out)
{
    struct jv left, right;
    bool holds = true;
    TRY(jinja_eval(j, n->a, &left));
    for (const struct jnode *i = n->list; i && holds; i = i->next) {
        TRY(jinja_eval(j, i->a, &right));
        j->at = i->at;
        TRY(jv_compare(j, i->op, left, right, &holds));
        left = right;
    }
    *out = jv_bool(holds);
    return SINTER_OK;
}

static sinter_status eval_binary(struct jinja *j, const struct jnode *n, struct jv *out)
{
    struct jv a, b;
    TRY(jinja_eval(j, n->a, &a));
    TRY(jinja_eval(j, n->b, &b));
    j->at = n->at;
    return jop_binary(j, n->op, a, b, out);
}

static sinter_status eval_concat(struct jinja *j, const struct jnode *n, struct jv *out)
{
    sinter_status status = SINTER_OK;
    struct text_buf b;
    struct jv v;
    text_buf_init(&b, j->host);
    for (const struct jnode *i = n->list; i; i = i->next) {
        TRY_OUT(jinja_eval(j, i, &v));
        j->at = i->at;
        TRY_OUT(jv_print(j, v, &b));
    }
out:
    return jstr_take(j, status, &b, false, out);
}

static sinter_status eval_optional(struct jinja *j, const struct jnode *n, struct jv *out)
{
    *out = jv_none();
    return n ? jinja_eval(j, n, out) : SINTER_OK;
}

static sinter_status eval_slice(struct jinja *j, const struct jnode *n, struct jv *out)
{
    struct jv v, lo, hi, step;
    TRY(jinja_eval(j, n->a, &v));
    TRY(eval_optional(j, n->b, &lo));
    TRY(eval_optional(j, n->c, &hi));
    TRY(eval_optional(j, n->d, &step));
    j->at = n->at;
    return jop_slice(j, v, lo, hi, step, out);
}

static sinter_status eval_subscript(struct jinja *j, const struct jnode *n, struct jv *out)
{
    struct jv obj, key;
    TRY(jinja_eval(j, n->a, &obj));
    if (n->kind == N_ATTR) {
        j->at = n->at;
        return jattr_get(j, obj, n->text, out);
    }
    TRY(jinja_eval(j, n->b, &key));
    j->at = n->at;
    return jattr_item(j, obj, key, out);
}

sinter_status jinja_args(struct jinja *j, const struct jnode *n, size_t n_before, struct jargs *out)
{
    size_t i = n_before;
    out->n_pos = n_before;
    out->n_kw = 0;
    for (const struct jnode *a = n->list; a; a = a->next)
        out->n_pos++;
    for (const struct jnode *a = n->list_b; a; a = a->next)
        out->n_kw++;
    /* One keyword more: a call block adds `caller`. */
    TRY(jalloc(j, out->n_pos, sizeof *out->pos, &out->pos));
    TRY(jalloc(j, out->n_kw + 1, sizeof *out->kw, &out->kw));
    for (const struct jnode *a = n->list; a; a = a->next)
        TRY(jinja_eval(j, a, &out->pos[i++]));
    i = 0;
    for (const struct jnode *a = n->list_b; a; a = a->next, i++) {
        out->kw[i].name = a->text;
        TRY(jinja_eval(j, a->a, &out->kw[i].value));
    }
    j->at = n->at;
    return SINTER_OK;
}

static sinter_status call_joiner(struct jinja *j, struct jcycler *c, const struct jargs *args,
                                 struct jv *out)
{
    if (args->n_pos || args->n_kw)
        return JFAIL(j, DATA, "a joiner takes no arguments");
    if (c->pos++)
        *out = c->item[0];
    else
        return jstr_share(j, "", 0, false, out);
    return SINTER_OK;
}

sinter_status jinja_call(struct jinja *j, struct jv callee, const struct jargs *args,
                         struct jv *out)
{
    struct jargs with_self = *args;
    if (callee.kind == JV_MACRO)
        return jinja_call_macro(j, callee.macro, args, out);
    if (callee.kind == JV_FUNC)
        return jrow_call(j, callee.func, "function", args, out);
    if (callee.kind == JV_JOINER)
        return call_joiner(j, callee.cycler, args, out);
    if (callee.kind == JV_UNDEFINED)
        return jundef_fail(j, callee);
    if (callee.kind == JV_LOOP)
        return JFAIL(j, DATA,
                     "The loop must have the 'recursive' marker to be called recursively.");
    if (callee.kind != JV_METHOD)
        return JFAIL(j, DATA, "'%s' object is not callable", jv_type(callee));
    TRY(jalloc(j, args->n_pos + 1, sizeof *with_self.pos, &with_self.pos));
    with_self.pos[0] = callee.method->self;
    memcpy(with_self.pos + 1, args->pos, args->n_pos * sizeof *args->pos);
    with_self.n_pos++;
    return jrow_call(j, callee.method->row, "method", &with_self, out);
}

static sinter_status eval_call(struct jinja *j, const struct jnode *n, struct jv *out)
{
    struct jv callee;
    struct jargs args;
    TRY(jinja_eval(j, n->a, &callee));
    TRY(jinja_args(j, n, 0, &args));
    return jinja_call(j, callee, &args, out);
}

sinter_status jinja_apply(struct jinja *j, const struct jnode *n, struct jv operand, struct jv *out)
{
    const char *what = n->kind == N_FILTER ? "filter" : "test";
    struct jargs args;
    TRY(jinja_args(j, n, 1, &args));
    args.pos[0] = operand;
    if (!n->row)
        return JFAIL(j, DATA, "No %s named '%.*s' found.", what, JCUT(n->text));
    return jrow_call(j, n->row, what, &args, out);
}

static sinter_status eval_applied(struct jinja *j, const struct jnode *n, struct jv *out)
{
    struct jv operand;
    TRY(jinja_eval(j, n->a, &operand));
    return jinja_apply(j, n, operand, out);
}

static sinter_status eval_unary(struct jinja *j, const struct jnode *n, struct jv *out)
{
    struct jv v;
    TRY(jinja_eval(j, n->a, &v));
    j->at = n->at;
    if (n->kind == N_UNARY)
        return jop_unary(j, n->op, v, out);
    *out = jv_bool(!jv_truth(v));
    return SINTER_OK;
}

static sinter_status eval_kind(struct jinja *j, const struct jnode *n, struct jv *out)
{
    switch (n->kind) {
    case N_CONST:
        *out = n->value;
        return SINTER_OK;
    case N_NAME:
        return eval_name(j, n, out);
    case N_TUPLE:
    case N_LIST:
        return eval_items(j, n, out);
    case N_DICT:
        return eval_dict(j, n, out);
    case N_COND:
        return eval_cond(j, n, out);
    case N_OR:
    case N_AND:
        return eval_logic(j, n, out);
    case N_NOT:
    case N_UNARY:
        return eval_unary(j, n, out);
    case N_COMPARE:
        return eval_compare(j, n, out);
    case N_BINARY:
        return eval_binary(j, n, out);
    case N_CONCAT:
        return eval_concat(j, n, out);
    case N_CALL:
        return eval_call(j, n, out);
    case N_ATTR:
    case N_ITEM:
        return eval_subscript(j, n, out);
    case N_SLICE:
        return eval_slice(j, n, out);
    case N_FILTER:
    case N_TEST:
        return eval_applied(j, n, out);
    case N_DATA:
    case N_OUTPUT:
    case N_IF:
    case N_FOR:
    case N_SET:
    case N_SET_BLOCK:
    case N_MACRO:
    case N_CALL_BLOCK:
    case N_FILTER_BLOCK:
    case N_WITH:
    case N_BREAK:
    case N_CONTINUE:
    CASE_PART:
        break;
    }
    return JFAIL(j, INTERNAL, "a node of kind %d is no expression", (int)n->kind);
}

sinter_status jinja_eval(struct jinja *j, const struct jnode *n, struct jv *out)
{
    const uint32_t at = j->at;
    j->at = n->at;
    TRY(jcharge(j, 1));
    TRY(jenter(j));
    TRY(eval_kind(j, n, out));
    jleave(j);
    j->at = at;
    return SINTER_OK;
}
