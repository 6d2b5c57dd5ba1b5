/* Statements and macros; template_render. */
#include "text/jinja/jinja.h"

#include <string.h>
#include <time.h>

static sinter_status exec_list(struct jinja *j, const struct jnode *n);

static sinter_status frame_new(struct jinja *j, const struct jscope *scope, struct jframe *parent,
                               struct jframe **out)
{
    TRY(jalloc(j, 1, sizeof **out, out));
    (*out)->parent = parent;
    (*out)->scope = scope;
    return jalloc(j, (size_t)scope->n, sizeof *(*out)->value, &(*out)->value);
}

static void frame_reset(struct jframe *f)
{
    for (int i = 0; i < f->scope->n; i++)
        f->value[i].kind = JV_ABSENT;
}

static struct jv *frame_slot(struct jframe *f, int name)
{
    for (int i = 0; i < f->scope->n; i++)
        if (f->scope->name[i] == name)
            return &f->value[i];
    return NULL;
}

static struct jv *slot_named(struct jinja *j, struct jframe *f, const char *name)
{
    for (int i = 0; i < f->scope->n; i++) {
        if (jstr_is(j->t->name[f->scope->name[i]], name))
            return &f->value[i];
    }
    return NULL;
}

static sinter_status set_name(struct jinja *j, struct jframe *f, int name, struct jv v)
{
    struct jv *slot = frame_slot(f, name);
    if (!slot)
        return JFAIL(j, INTERNAL, "the frame does not hold an assigned name");
    *slot = v;
    return SINTER_OK;
}

static sinter_status assign(struct jinja *j, struct jframe *f, const struct jnode *target,
                            struct jv v)
{
    struct jv *item, ns;
    size_t n, want = 0;
    if (target->kind == N_NAME)
        return set_name(j, f, target->name, v);
    if (target->kind == N_NSREF) {
        const struct jnode name = {.kind = N_NAME, .at = target->at, .name = target->name};
        TRY(jinja_eval(j, &name, &ns));
        j->at = target->at;
        if (ns.kind != JV_NAMESPACE)
            return JFAIL(j, DATA, "cannot assign attribute on non-namespace object");
        return jdict_set(j, ns.dict, jv_text(target->text), v);
    }
    j->at = target->at;
    if (!jv_iterable(v))
        return JFAIL(j, DATA, "cannot unpack non-iterable %s object", jv_type(v));
    TRY(jv_elements(j, v, &item, &n));
    for (const struct jnode *i = target->list; i; i = i->next)
        want++;
    if (n != want)
        return JFAIL(j, DATA, "%s values to unpack (expected %zu, got %zu)",
                     n < want ? "not enough" : "too many", want, n);
    n = 0;
    for (const struct jnode *i = target->list; i; i = i->next)
        TRY(assign(j, f, i, item[n++]));
    return SINTER_OK;
}

/* Runs the list in a frame of its own with the output caught. */
static sinter_status capture(struct jinja *j, const struct jnode *list, struct jframe *frame,
                             struct jv *out)
{
    struct text_buf *outer_out = j->out, b;
    struct jframe *outer = j->frame;
    sinter_status status;
    text_buf_init(&b, j->host);
    j->out = &b;
    j->frame = frame;
    status = exec_list(j, list);
    j->out = outer_out;
    j->frame = outer;
    return jstr_take(j, status, &b, false, out);
}

/* The chain of filters whose innermost operand is `text`. */
static sinter_status apply_chain(struct jinja *j, const struct jnode *n, struct jv text,
                                 struct jv *out)
{
    if (!n) {
        *out = text;
        return SINTER_OK;
    }
    TRY(jenter(j));
    TRY(apply_chain(j, n->a, text, &text));
    TRY(jinja_apply(j, n, text, out));
    jleave(j);
    return SINTER_OK;
}

/* ---- Macros ------------------------------------------------------------------------------- */

static bool kw_is(const struct jkw *kw, const struct jstr *name)
{
    return kw->name->bytes == name->bytes && !memcmp(kw->name->text, name->text, name->bytes);
}

/* Takes the keyword out of the list; false if it is not there. */
static bool take_kw(struct jargs *args, const struct jstr *name, struct jv *out)
{
    for (size_t i = 0; i < args->n_kw; i++)
        if (kw_is(&args->kw[i], name)) {
            *out = args->kw[i].value;
            memmove(args->kw + i, args->kw + i + 1, (args->n_kw - i - 1) * sizeof *args->kw);
            args->n_kw--;
            return true;
        }
    return false;
}

static sinter_status special_args(struct jinja *j, const struct jnode *m, struct jframe *f,
                                  struct jargs *args, size_t n_param)
{
    static const char hint[] = "No caller defined";
    const struct jstr caller = {"caller", 6, 6, false};
    struct jdict *d;
    struct jv v;
    if (m->flags & MACRO_CALLER) {
        if (!take_kw(args, &caller, &v))
            TRY(jundef_new(j, UNDEF_HINT, NULL, hint, sizeof hint - 1, &v));
        *slot_named(j, f, "caller") = v;
    }
    if (m->flags & MACRO_KWARGS) {
        TRY(jdict_new(j, args->n_kw, &d));
        TRY(jdict_set_kw(j, d, args));
        *slot_named(j, f, "kwargs") = (struct jv){.kind = JV_DICT, .dict = d};
    } else if (args->n_kw) {
        return JFAIL(j, DATA, "the macro takes no keyword argument '%.*s'", JCUT(args->kw[0].name));
    }
    if (m->flags & MACRO_VARARGS) {
        const size_t n = args->n_pos > n_param ? args->n_pos - n_param : 0;
        TRY(jseq_copy(j, SEQ_TUPLE, n ? args->pos + n_param : NULL, n, &v));
        *slot_named(j, f, "varargs") = v;
    } else if (args->n_pos > n_param) {
        return JFAIL(j, DATA, "the macro takes not more than %zu argument(s)", n_param);
    }
    return SINTER_OK;
}

/* What was not given: the default, read in the macro's frame, or undefined. */
static sinter_status default_args(struct jinja *j, const struct jnode *m, struct jframe *f)
{
    static const char hint[] = "a parameter was not provided";
    struct jframe *outer = j->frame;
    sinter_status status = SINTER_OK;
    j->frame = f;
    for (const struct jnode *p = m->list_b; p && status == SINTER_OK; p = p->next) {
        struct jv *slot = frame_slot(f, p->name), v;
        if (slot->kind != JV_ABSENT)
            continue;
        status = p->a ? jinja_eval(j, p->a, &v)
                      : jundef_new(j, UNDEF_HINT, NULL, hint, sizeof hint - 1, &v);
        if (status == SINTER_OK)
            *slot = v;
    }
    j->frame = outer;
    return status;
}

sinter_status jinja_call_macro(struct jinja *j, struct jmacro *m, const struct jargs *given,
                               struct jv *out)
{
    const struct jnode *n = m->node;
    struct jargs args = *given;
    struct jframe *f;
    size_t n_param = 0;
    TRY(frame_new(j, n->scope, m->frame, &f));
    TRY(jalloc(j, args.n_kw, sizeof *args.kw, &args.kw));
    if (args.n_kw)
        memcpy(args.kw, given->kw, args.n_kw * sizeof *args.kw);
    for (const struct jnode *p = n->list_b; p; p = p->next, n_param++) {
        struct jv v = jv_absent();
        if (n_param < args.n_pos)
            v = args.pos[n_param];
        else
            take_kw(&args, j->t->name[p->name], &v);
        TRY(set_name(j, f, p->name, v));
    }
    TRY(special_args(j, n, f, &args, n_param));
    TRY(jenter(j));
    TRY(default_args(j, n, f));
    TRY(capture(j, n->list, f, out));
    jleave(j);
    return SINTER_OK;
}

static sinter_status macro_new(struct jinja *j, const struct jnode *n, struct jv *out)
{
    struct jmacro *m;
    TRY(jalloc(j, 1, sizeof *m, &m));
    *m = (struct jmacro){n, j->frame};
    *out = (struct jv){.kind = JV_MACRO, .macro = m};
    return SINTER_OK;
}

static sinter_status exec_call_block(struct jinja *j, const struct jnode *n)
{
    static const struct jstr caller = {"caller", 6, 6, false};
    const struct jargs none = {0};
    struct jargs args;
    struct jv block, callee, text;
    TRY(macro_new(j, n, &block));
    if (!n->a) { /* generation: the body is called at once */
        TRY(jinja_call_macro(j, block.macro, &none, &text));
        return jv_print(j, text, j->out);
    }
    TRY(jinja_eval(j, n->a->a, &callee));
    TRY(jinja_args(j, n->a, 0, &args));
    args.kw[args.n_kw].name = &caller;
    args.kw[args.n_kw++].value = block;
    TRY(jinja_call(j, callee, &args, &text));
    return jv_print(j, text, j->out);
}

/* ---- Loops -------------------------------------------------------------------------------- */

static sinter_status passes(struct jinja *j, const struct jnode *n, struct jframe *test,
                            struct jv item, bool *out)
{
    struct jframe *outer = j->frame;
    struct jv v;
    *out = true;
    if (!n->c)
        return SINTER_OK;
    frame_reset(test);
    TRY(assign(j, test, n->a, item));
    j->frame = test;
    TRY(jinja_eval(j, n->c, &v));
    j->frame = outer;
    *out = jv_truth(v);
    return SINTER_OK;
}

/* Where the body reads `loop`, all items are filtered before the first is shown. */
static sinter_status filter_all(struct jinja *j, const struct jnode *n, struct jframe *test,
                                struct jloop *l)
{
    const uint64_t n_ns_read = j->n_ns_read;
    struct jv *kept;
    size_t k = 0;
    TRY(jalloc(j, l->n, sizeof *kept, &kept));
    for (size_t i = 0; i < l->n; i++) {
        bool pass;
        TRY(passes(j, n, test, l->item[i], &pass));
        if (pass)
            kept[k++] = l->item[i];
    }
    l->item = kept;
    l->n = k;
    if (j->n_ns_read != n_ns_read)
        return JFAIL(j, UNSUPPORTED,
                     "a loop that reads 'loop' and filters by a namespace is not "
                     "supported; put the condition into the body");
    return SINTER_OK;
}

static sinter_status exec_items(struct jinja *j, const struct jnode *n, struct jloop *l,
                                struct jframe *test, bool *any)
{
    struct jframe *outer = j->frame, *f;
    const bool early = (n->flags & FOR_LOOP) != 0;
    bool stop = false;
    TRY(frame_new(j, n->scope, outer, &f));
    for (size_t i = 0; i < l->n && !stop; i++) {
        bool pass = true;
        TRY(jcharge(j, 1));
        if (!early)
            TRY(passes(j, n, test, l->item[i], &pass));
        if (!pass)
            continue;
        l->index0 = i;
        frame_reset(f);
        TRY(assign(j, f, n->a, l->item[i]));
        if (early)
            *slot_named(j, f, "loop") = (struct jv){.kind = JV_LOOP, .loop = l};
        j->frame = f;
        TRY(exec_list(j, n->list));
        j->frame = outer;
        /* jinja2's `else` runs unless some body ran to its end: not after break or continue. */
        *any = *any || j->flow == FLOW_NONE;
        stop = j->flow == FLOW_BREAK;
        j->flow = FLOW_NONE;
    }
    return SINTER_OK;
}

static sinter_status exec_for(struct jinja *j, const struct jnode *n)
{
    struct jframe *outer = j->frame, *test = NULL, *f;
    struct jloop *l;
    struct jv v;
    bool any = false;
    TRY(jinja_eval(j, n->b, &v));
    j->at = n->b->at;
    TRY(jalloc(j, 1, sizeof *l, &l));
    TRY(jv_elements(j, v, &l->item, &l->n));
    if (n->c)
        TRY(frame_new(j, n->scope_c, outer, &test));
    if (n->c && (n->flags & FOR_LOOP))
        TRY(filter_all(j, n, test, l));
    TRY(exec_items(j, n, l, test, &any));
    if (any || !n->list_b)
        return SINTER_OK;
    TRY(frame_new(j, n->scope_b, outer, &f));
    j->frame = f;
    TRY(exec_list(j, n->list_b));
    j->frame = outer;
    return SINTER_OK;
}

/* ---- Other statements --------------------------------------------------------------------- */

static sinter_status exec_if(struct jinja *j, const struct jnode *n)
{
    struct jv v;
    TRY(jinja_eval(j, n->a, &v));
    if (jv_truth(v))
        return exec_list(j, n->list);
    for (const struct jnode *i = n->list_b; i; i = i->next) {
        TRY(jinja_eval(j, i->a, &v));
        if (jv_truth(v))
            return exec_list(j, i->list);
    }
    return exec_list(j, n->list_c);
}

/* The caught text of a block behind its filters; when the flow left it, that is for nobody. */
static sinter_status filtered(struct jinja *j, const struct jnode *n, struct jv *out)
{
    struct jframe *outer = j->frame, *f;
    TRY(frame_new(j, n->scope, outer, &f));
    TRY(capture(j, n->list, f, out));
    if (j->flow != FLOW_NONE)
        return SINTER_OK;
    j->frame = f;
    TRY(apply_chain(j, n->b, *out, out));
    j->frame = outer;
    return SINTER_OK;
}

static sinter_status exec_set_block(struct jinja *j, const struct jnode *n)
{
    struct jv text;
    TRY(filtered(j, n, &text));
    return j->flow == FLOW_NONE ? assign(j, j->frame, n->a, text) : SINTER_OK;
}

static sinter_status exec_filter_block(struct jinja *j, const struct jnode *n)
{
    struct jv text;
    TRY(filtered(j, n, &text));
    if (j->flow != FLOW_NONE)
        return SINTER_OK;
    if (text.kind != JV_STR)
        return JFAIL(j, DATA, "a filter block gives a value of type '%s', not a string",
                     jv_type(text));
    return jv_print(j, text, j->out);
}

static sinter_status exec_with(struct jinja *j, const struct jnode *n)
{
    struct jframe *outer = j->frame, *f;
    struct jv v;
    TRY(frame_new(j, n->scope, outer, &f));
    for (const struct jnode *i = n->list_b; i; i = i->next) {
        TRY(jinja_eval(j, i->b, &v));
        TRY(assign(j, f, i->a, v));
    }
    j->frame = f;
    TRY(exec_list(j, n->list));
    j->frame = outer;
    return SINTER_OK;
}

static sinter_status exec_data(struct jinja *j, const struct jnode *n)
{
    const struct jv text = jv_text(n->text);
    j->at = n->at;
    return jv_print(j, text, j->out);
}

static sinter_status exec(struct jinja *j, const struct jnode *n)
{
    struct jv v;
    switch (n->kind) {
    case N_DATA:
        return exec_data(j, n);
    case N_OUTPUT:
        TRY(jinja_eval(j, n->a, &v));
        j->at = n->at;
        return jv_print(j, v, j->out);
    case N_IF:
        return exec_if(j, n);
    case N_FOR:
        return exec_for(j, n);
    case N_SET:
        TRY(jinja_eval(j, n->b, &v));
        return assign(j, j->frame, n->a, v);
    case N_SET_BLOCK:
        return exec_set_block(j, n);
    case N_MACRO:
        TRY(macro_new(j, n, &v));
        return set_name(j, j->frame, n->name, v);
    case N_CALL_BLOCK:
        return exec_call_block(j, n);
    case N_FILTER_BLOCK:
        return exec_filter_block(j, n);
    case N_WITH:
        return exec_with(j, n);
    case N_BREAK:
    case N_CONTINUE:
        j->flow = n->kind == N_BREAK ? FLOW_BREAK : FLOW_CONTINUE;
        return SINTER_OK;
    CASE_EXPRESSION:
    CASE_PART:
        break;
    }
    return JFAIL(j, INTERNAL, "a node of kind %d is no statement", (int)n->kind);
}

static sinter_status exec_list(struct jinja *j, const struct jnode *n)
{
    TRY(jenter(j));
    for (; n && j->flow == FLOW_NONE; n = n->next) {
        j->at = n->at;
        TRY(jcharge(j, 1));
        TRY(exec(j, n));
    }
    jleave(j);
    return SINTER_OK;
}

/* ---- Entry -------------------------------------------------------------------------------- */

static sinter_status set_globals(struct jinja *j, const char *vars, size_t bytes)
{
    const struct chat_template *t = j->t;
    struct jv all;
    j->in_json = true;
    TRY(jjson_parse(j, vars, bytes, &all));
    if (all.kind != JV_DICT)
        return JFAIL(j, DATA, "an object is needed, not %s", jv_type(all));
    j->in_json = false;
    TRY(jalloc(j, (size_t)t->n_name, sizeof *j->global, &j->global));
    for (int i = 0; i < t->n_name; i++) {
        const struct jstr *s = t->name[i];
        const struct jv *v = jdict_find(all.dict, s->text, s->bytes);
        const struct jrow *row = jinja_global_find(s->text, s->bytes);
        if (v)
            j->global[i] = *v;
        else if (row)
            j->global[i] = (struct jv){.kind = JV_FUNC, .func = row};
    }
    return SINTER_OK;
}

static void set_limits(struct jinja *j, const struct template_limits *limits)
{
    const struct template_limits none = {0}, *l = limits ? limits : &none;
    j->limit.n_step = l->n_step ? l->n_step : 50000000;
    j->limit.output_bytes = l->output_bytes ? l->output_bytes : (size_t)64 << 20;
    j->limit.memory_bytes = l->memory_bytes ? l->memory_bytes : (size_t)256 << 20;
    j->limit.depth = l->depth > 0 ? l->depth : 500;
    if (j->limit.depth > JINJA_MAX_DEPTH)
        j->limit.depth = JINJA_MAX_DEPTH;
}

sinter_status template_render(const struct chat_template *t, const char *vars, size_t vars_bytes,
                              int64_t now, const struct template_limits *limits,
                              struct text_buf *out, sinter_error *err)
{
    struct jinja j = {.t = t, .host = t->host, .err = err};
    sinter_status status;
    struct text_buf b;
    set_limits(&j, limits);
    j.now = now ? now : (int64_t)time(NULL);
    text_buf_init(&b, t->host);
    j.out = &b;
    arena_init(&j.arena, t->host);
    TRY_OUT(set_globals(&j, vars, vars_bytes));
    TRY_OUT(frame_new(&j, t->scope, NULL, &j.frame));
    TRY_OUT(exec_list(&j, t->body));
    TRY_OUT(text_buf_end(&b, err));
    text_buf_add(out, b.text ? b.text : "", b.bytes);
out:
    text_buf_free(&b);
    arena_free(&j.arena);
    return status;
}
