/* Statements: tags -> nodes; and template_compile. */
#include "text/jinja/jinja.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static const struct jtoken *cur(const struct jparser *p)
{
    return &p->token[p->pos];
}

static sinter_status block(struct jparser *p, const char *const *ends, struct jnode **list);

/* `%}`, statements, `{% end`: then the name of the end is current. */
static sinter_status body(struct jparser *p, const char *const *ends, struct jnode **list)
{
    jparse_skip_op(p, ":");
    TRY(jparse_expect(p, T_BLOCK_END, NULL));
    TRY(jparse_deeper(p));
    TRY(block(p, ends, list));
    p->nesting--;
    return SINTER_OK;
}

static sinter_status body_to(struct jparser *p, const char *end, struct jnode **list)
{
    TRY(body(p, (const char *const[]){end, NULL}, list));
    p->pos++;
    return SINTER_OK;
}

/* A body that is a function of its own in jinja2: loops outside cannot be left from it. */
static sinter_status function_body(struct jparser *p, const char *end, struct jnode **list)
{
    const int n_loop = p->n_loop;
    p->n_loop = 0;
    TRY(body_to(p, end, list));
    p->n_loop = n_loop;
    return SINTER_OK;
}

static bool named(const struct jparser *p, const struct jnode *n, const char *name)
{
    return jstr_is(p->t->name[n->name], name);
}

static sinter_status check_target(struct jparser *p, const struct jnode *n)
{
    if (n->kind == N_TUPLE) {
        for (const struct jnode *i = n->list; i; i = i->next)
            TRY(check_target(p, i));
        return SINTER_OK;
    }
    if (n->kind != N_NAME && n->kind != N_NSREF)
        return jparse_fail(p, SINTER_E_DATA, n->at, "cannot assign to this expression");
    if (n->kind == N_NAME && p->n_for && named(p, n, "loop"))
        return jparse_fail(p, SINTER_E_DATA, n->at, "cannot assign to 'loop' in a loop");
    if (n->kind == N_NAME &&
        (named(p, n, "caller") || named(p, n, "kwargs") || named(p, n, "varargs")))
        return jparse_fail(p, SINTER_E_UNSUPPORTED, n->at,
                           "assigning to caller, kwargs or varargs is not supported");
    return SINTER_OK;
}

static sinter_status target(struct jparser *p, unsigned flags, const char *end, struct jnode **out)
{
    TRY(jparse_tuple(p, flags | TUPLE_SIMPLE, end, out));
    return check_target(p, *out);
}

static sinter_status parse_set(struct jparser *p, struct jnode *n)
{
    TRY(target(p, TUPLE_NS, NULL, &n->a));
    if (jparse_skip_op(p, "=")) {
        n->kind = N_SET;
        return jparse_tuple(p, TUPLE_COND, NULL, &n->b);
    }
    n->kind = N_SET_BLOCK;
    TRY(jparse_filters(p, NULL, false, &n->b));
    return body_to(p, "endset", &n->list);
}

static sinter_status parse_for(struct jparser *p, struct jnode *n)
{
    n->kind = N_FOR;
    p->n_for++;
    TRY(target(p, 0, "in", &n->a));
    if (!jparse_skip_name(p, "in"))
        return jparse_fail(p, SINTER_E_DATA, cur(p)->at, "expected 'in'");
    TRY(jparse_tuple(p, 0, "recursive", &n->b));
    if (jparse_skip_name(p, "if"))
        TRY(jparse_expr(p, true, &n->c));
    if (jparse_is_name(p, "recursive"))
        return jparse_fail(p, SINTER_E_UNSUPPORTED, cur(p)->at,
                           "recursive loops are not supported");
    p->n_loop++;
    TRY(body(p, (const char *const[]){"endfor", "else", NULL}, &n->list));
    p->n_loop--;
    if (!jparse_skip_name(p, "endfor")) {
        p->pos++;
        TRY(body_to(p, "endfor", &n->list_b));
    }
    p->n_for--;
    return SINTER_OK;
}

static sinter_status parse_if(struct jparser *p, struct jnode *n)
{
    struct jnode *branch = n, **tail = &n->list_b;
    n->kind = N_IF;
    for (;;) {
        TRY(jparse_tuple(p, 0, NULL, &branch->a));
        TRY(body(p, (const char *const[]){"elif", "else", "endif", NULL}, &branch->list));
        if (jparse_is_name(p, "elif")) {
            TRY(jparse_node(p, N_IF, cur(p)->at, &branch));
            *tail = branch;
            tail = &branch->next;
            p->pos++;
            continue;
        }
        if (jparse_skip_name(p, "else"))
            return body_to(p, "endif", &n->list_c);
        p->pos++;
        return SINTER_OK;
    }
}

static sinter_status parameter(struct jparser *p, bool defaults, struct jnode **out)
{
    const struct jtoken *t;
    struct jnode *n;
    TRY(jparse_expect(p, T_NAME, &t));
    TRY(jparse_node(p, N_NAME, t->at, &n));
    TRY(jparse_intern(p, t->text, t->at, &n->name));
    if (named(p, n, "caller") || named(p, n, "kwargs") || named(p, n, "varargs"))
        return jparse_fail(p, SINTER_E_UNSUPPORTED, t->at,
                           "parameters named caller, kwargs or varargs are not supported");
    if (jparse_skip_op(p, "="))
        TRY(jparse_expr(p, true, &n->a));
    else if (defaults)
        return jparse_fail(p, SINTER_E_DATA, t->at, "a parameter without default after one with");
    *out = n;
    return SINTER_OK;
}

static sinter_status signature(struct jparser *p, struct jnode **list)
{
    struct jnode **tail = list, *n = NULL;
    TRY(jparse_expect_op(p, "("));
    while (!jparse_is_op(p, ")")) {
        const bool defaults = n && n->a;
        if (n)
            TRY(jparse_expect_op(p, ","));
        TRY(parameter(p, defaults, &n));
        for (const struct jnode *i = *list; i; i = i->next)
            if (i->name == n->name)
                return jparse_fail(p, SINTER_E_DATA, n->at, "two parameters of the same name");
        *tail = n;
        tail = &n->next;
    }
    p->pos++;
    return SINTER_OK;
}

static sinter_status parse_macro(struct jparser *p, struct jnode *n)
{
    const struct jtoken *t;
    n->kind = N_MACRO;
    TRY(jparse_expect(p, T_NAME, &t));
    TRY(jparse_intern(p, t->text, t->at, &n->name));
    TRY(signature(p, &n->list_b));
    return function_body(p, "endmacro", &n->list);
}

static sinter_status parse_call(struct jparser *p, struct jnode *n)
{
    n->kind = N_CALL_BLOCK;
    if (jparse_is_op(p, "("))
        TRY(signature(p, &n->list_b));
    TRY(jparse_expr(p, true, &n->a));
    if (n->a->kind != N_CALL)
        return jparse_fail(p, SINTER_E_DATA, n->at, "expected a call");
    return function_body(p, "endcall", &n->list);
}

static sinter_status parse_filter(struct jparser *p, struct jnode *n)
{
    n->kind = N_FILTER_BLOCK;
    TRY(jparse_filters(p, NULL, true, &n->b));
    return body_to(p, "endfilter", &n->list);
}

static sinter_status parse_with(struct jparser *p, struct jnode *n)
{
    struct jnode **tail = &n->list_b, *set;
    n->kind = N_WITH;
    while (cur(p)->kind != T_BLOCK_END) {
        if (n->list_b)
            TRY(jparse_expect_op(p, ","));
        TRY(jparse_node(p, N_SET, cur(p)->at, &set));
        TRY(target(p, 0, NULL, &set->a));
        TRY(jparse_expect_op(p, "="));
        TRY(jparse_expr(p, true, &set->b));
        *tail = set;
        tail = &set->next;
    }
    return body_to(p, "endwith", &n->list);
}

static sinter_status parse_generation(struct jparser *p, struct jnode *n)
{
    n->kind = N_CALL_BLOCK;
    return function_body(p, "endgeneration", &n->list);
}

static sinter_status parse_loop_control(struct jparser *p, struct jnode *n)
{
    if (p->n_loop)
        return SINTER_OK;
    return jparse_fail(p, SINTER_E_DATA, n->at, "break or continue outside of a loop");
}

static sinter_status parse_break(struct jparser *p, struct jnode *n)
{
    n->kind = N_BREAK;
    return parse_loop_control(p, n);
}

static sinter_status parse_continue(struct jparser *p, struct jnode *n)
{
    n->kind = N_CONTINUE;
    return parse_loop_control(p, n);
}

/* {% print a, b %} is one output per expression: a chain through `next`. */
static sinter_status parse_print(struct jparser *p, struct jnode *n)
{
    n->kind = N_OUTPUT;
    TRY(jparse_expr(p, true, &n->a));
    if (!jparse_is_op(p, ","))
        return SINTER_OK;
    return jparse_fail(p, SINTER_E_UNSUPPORTED, cur(p)->at,
                       "print with several expressions is not supported");
}

static const struct {
    const char *name;
    sinter_status (*parse)(struct jparser *p,
                           struct jnode *n); /* NULL: jinja2 has it, we lack it */
} statements[] = {
    {"set", parse_set},     {"for", parse_for},
    {"if", parse_if},       {"macro", parse_macro},
    {"call", parse_call},   {"filter", parse_filter},
    {"with", parse_with},   {"generation", parse_generation},
    {"break", parse_break}, {"continue", parse_continue},
    {"print", parse_print}, {"block", NULL},
    {"extends", NULL},      {"include", NULL},
    {"import", NULL},       {"from", NULL},
    {"autoescape", NULL},
};

static sinter_status statement(struct jparser *p, struct jnode **out)
{
    const struct jtoken *t;
    TRY(jparse_expect(p, T_NAME, &t));
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        if (!jstr_is(t->text, statements[i].name))
            continue;
        if (!statements[i].parse)
            return jparse_fail(p, SINTER_E_UNSUPPORTED, t->at, "the tag '%s' is not supported",
                               statements[i].name);
        TRY(jparse_node(p, N_DATA, t->at, out));
        TRY(statements[i].parse(p, *out));
        return jparse_expect(p, T_BLOCK_END, NULL);
    }
    return jparse_fail(p, SINTER_E_DATA, t->at, "unknown or misplaced tag '%.*s'", JCUT(t->text));
}

static bool at_end(const struct jparser *p, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (jparse_is_name(p, *ends))
            return true;
    return false;
}

static sinter_status block(struct jparser *p, const char *const *ends, struct jnode **list)
{
    struct jnode **tail = list, *n;
    for (;;) {
        const struct jtoken *t = cur(p);
        if (t->kind == T_EOF) {
            if (!ends)
                return SINTER_OK;
            return jparse_fail(p, SINTER_E_DATA, t->at, "the template ends before {%% %s %%}",
                               ends[1] ? ends[ends[2] ? 2 : 0] : ends[0]);
        }
        p->pos++;
        if (t->kind == T_DATA) {
            TRY(jparse_node(p, N_DATA, t->at, &n));
            n->text = t->text;
        } else if (t->kind == T_VAR_BEGIN) {
            TRY(jparse_node(p, N_OUTPUT, t->at, &n));
            TRY(jparse_tuple(p, TUPLE_COND, NULL, &n->a));
            TRY(jparse_expect(p, T_VAR_END, NULL));
        } else {
            if (at_end(p, ends))
                return SINTER_OK;
            TRY(statement(p, &n));
        }
        *tail = n;
        tail = &n->next;
    }
}

sinter_status jparse_template(struct jparser *p, struct jnode **list)
{
    return block(p, NULL, list);
}

void jinja_place(const struct chat_template *t, uint32_t at, size_t *line, size_t *column)
{
    size_t start = 0;
    *line = 1;
    for (size_t i = 0; i < at && i < t->bytes; i++)
        if (t->source[i] == '\n') {
            ++*line;
            start = i + 1;
        }
    *column = 1 + jchars(t->source + start, (at < t->bytes ? at : t->bytes) - start);
}

/* Checks UTF-8, makes every newline LF, drops one at the end. */
static sinter_status normalise(struct chat_template *t, const char *source, size_t bytes,
                               sinter_error *err)
{
    char *copy = arena_strndup(&t->arena, source, bytes);
    size_t n = 0;
    if (!copy)
        return host_no_memory(err, bytes, 1, "the template's source");
    for (size_t i = 0; i < bytes;) {
        const size_t len = utf8_sequence(source + i, bytes - i);
        if (!len)
            return FAIL(err, DATA, "template: byte %zu is not UTF-8; convert the template", i);
        if (source[i] == '\r') {
            copy[n++] = '\n';
            i += i + 1 < bytes && source[i + 1] == '\n' ? 2 : 1;
            continue;
        }
        memmove(copy + n, source + i, len);
        n += len;
        i += len;
    }
    if (n && copy[n - 1] == '\n')
        n--;
    copy[n] = 0;
    t->source = copy;
    t->bytes = n;
    return SINTER_OK;
}

static sinter_status compile(struct chat_template *t, struct jinja *j)
{
    struct jparser p = {.j = j, .t = t};
    size_t n;
    TRY(jinja_lex(j, &p.token, &n));
    TRY(jparse_template(&p, &t->body));
    return jinja_scopes(&p);
}

sinter_status template_compile(sinter_host *host, const char *source, size_t bytes,
                               struct chat_template **out, sinter_error *err)
{
    struct jinja j = {.host = host, .err = err};
    struct chat_template *t = NULL;
    sinter_status status;
    *out = NULL;
    if (bytes > TEMPLATE_MAX_BYTES)
        return FAIL(err, LIMIT, "template: %zu bytes; at most %d are taken", bytes,
                    TEMPLATE_MAX_BYTES);
    NEW(host, t, 1, err);
    t->host = host;
    arena_init(&t->arena, host);
    TRY_OUT(normalise(t, source, bytes, err));
    /* The parser allocates through j, whose arena the template then keeps. */
    j.t = t;
    j.limit = (struct template_limits){UINT64_MAX, SIZE_MAX, (size_t)512 << 20, 0};
    j.arena = t->arena;
    status = compile(t, &j);
    t->arena = j.arena;
out:
    if (status == SINTER_OK)
        *out = t;
    else
        template_free(t);
    return status;
}

void template_free(struct chat_template *t)
{
    if (!t)
        return;
    arena_free(&t->arena);
    host_free(t->host, t);
}
