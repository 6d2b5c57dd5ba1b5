/* Expressions: tokens -> nodes, in the order of jinja2's grammar. */
#include "text/jinja/jinja.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

sinter_status jparse_fail(struct jparser *p, sinter_status status, uint32_t at, const char *fmt,
                          ...)
{
    char what[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    p->j->at = at;
    return jfail(p->j, status, "%s", what);
}

static const struct jtoken *cur(const struct jparser *p)
{
    return &p->token[p->pos];
}

static const struct jtoken *look(const struct jparser *p)
{
    return cur(p)->kind == T_EOF ? cur(p) : &p->token[p->pos + 1];
}

static void advance(struct jparser *p)
{
    if (cur(p)->kind != T_EOF)
        p->pos++;
}

static bool text_is(const struct jtoken *t, const char *name)
{
    return t->kind == T_NAME && jstr_is(t->text, name);
}

bool jparse_is_op(const struct jparser *p, const char *op)
{
    return cur(p)->kind == T_OP && !strcmp(cur(p)->op, op);
}

bool jparse_is_name(const struct jparser *p, const char *name)
{
    return text_is(cur(p), name);
}

bool jparse_skip_op(struct jparser *p, const char *op)
{
    const bool is = jparse_is_op(p, op);
    if (is)
        advance(p);
    return is;
}

bool jparse_skip_name(struct jparser *p, const char *name)
{
    const bool is = jparse_is_name(p, name);
    if (is)
        advance(p);
    return is;
}

static const char *describe(const struct jtoken *t, char buf[64])
{
    static const char *const kind[] = {"the end of the template", "text", "{{", "}}", "{%", "%}"};
    if (t->kind <= T_BLOCK_END)
        return kind[t->kind];
    if (t->kind == T_NAME)
        snprintf(buf, 64, "'%.*s'", (int)(t->text->bytes < 40 ? t->text->bytes : 40),
                 t->text->text);
    else if (t->kind == T_OP)
        snprintf(buf, 64, "'%s'", t->op);
    else
        snprintf(buf, 64, "%s", t->kind == T_STRING ? "a string" : "a number");
    return buf;
}

static sinter_status unexpected(struct jparser *p, const char *want)
{
    char buf[64];
    (void)jparse_fail(p, SINTER_E_DATA, cur(p)->at, "expected %s, found %s", want,
                      describe(cur(p), buf));
    return SINTER_E_DATA;
}

sinter_status jparse_expect_op(struct jparser *p, const char *op)
{
    char want[8];
    snprintf(want, sizeof want, "'%s'", op);
    return jparse_skip_op(p, op) ? SINTER_OK : unexpected(p, want);
}

sinter_status jparse_expect(struct jparser *p, enum jtoken_kind kind, const struct jtoken **out)
{
    const struct jtoken *t = cur(p);
    if (t->kind != kind)
        return unexpected(p, kind == T_NAME        ? "a name"
                             : kind == T_BLOCK_END ? "%}"
                             : kind == T_VAR_END   ? "}}"
                                                   : "something else");
    if (out)
        *out = t;
    advance(p);
    return SINTER_OK;
}

sinter_status jparse_deeper(struct jparser *p)
{
    if (p->nesting >= TEMPLATE_MAX_NESTING)
        return jparse_fail(p, SINTER_E_LIMIT, cur(p)->at, "nested deeper than %d levels",
                           TEMPLATE_MAX_NESTING);
    p->nesting++;
    return SINTER_OK;
}

sinter_status jparse_node(struct jparser *p, enum jnode_kind kind, uint32_t at, struct jnode **out)
{
    TRY(jalloc(p->j, 1, sizeof **out, out));
    (*out)->kind = kind;
    (*out)->at = at;
    (*out)->name = -1;
    return SINTER_OK;
}

sinter_status jparse_intern(struct jparser *p, const struct jstr *text, uint32_t at, int *out)
{
    struct chat_template *t = p->t;
    for (int i = 0; i < t->n_name; i++)
        if (t->name[i]->bytes == text->bytes &&
            !memcmp(t->name[i]->text, text->text, text->bytes)) {
            *out = i;
            return SINTER_OK;
        }
    if (t->n_name == TEMPLATE_MAX_NAMES)
        return jparse_fail(p, SINTER_E_LIMIT, at, "more than %d names", TEMPLATE_MAX_NAMES);
    if (t->n_name == p->cap_name) {
        const struct jstr **old = t->name;
        p->cap_name = p->cap_name ? p->cap_name * 2 : 32;
        TRY(jalloc(p->j, (size_t)p->cap_name, sizeof *old, &t->name));
        if (t->n_name)
            memcpy(t->name, old, (size_t)t->n_name * sizeof *old);
    }
    *out = t->n_name;
    t->name[t->n_name++] = text;
    return SINTER_OK;
}

static void append(struct jnode ***tail, struct jnode *n)
{
    **tail = n;
    *tail = &n->next;
}

/* (a, b=c): arguments into n->list, keywords into n->list_b. */
static sinter_status call_args(struct jparser *p, struct jnode *n)
{
    struct jnode **pos = &n->list, **kw = &n->list_b, *arg;
    bool comma = false;
    TRY(jparse_expect_op(p, "("));
    while (!jparse_is_op(p, ")")) {
        const struct jtoken *t;
        if (comma) {
            TRY(jparse_expect_op(p, ","));
            if (jparse_is_op(p, ")"))
                break;
        }
        comma = true;
        t = cur(p);
        if (jparse_is_op(p, "*") || jparse_is_op(p, "**"))
            return jparse_fail(p, SINTER_E_UNSUPPORTED, t->at,
                               "*args and **kwargs in a call are not supported");
        if (t->kind == T_NAME && look(p)->kind == T_OP && !strcmp(look(p)->op, "=")) {
            advance(p);
            advance(p);
            TRY(jparse_node(p, N_KEYWORD, t->at, &arg));
            arg->text = t->text;
            TRY(jparse_expr(p, true, &arg->a));
            append(&kw, arg);
        } else if (n->list_b) {
            return jparse_fail(p, SINTER_E_DATA, t->at, "positional argument after a keyword");
        } else {
            TRY(jparse_expr(p, true, &arg));
            append(&pos, arg);
        }
    }
    return jparse_expect_op(p, ")");
}

static sinter_status parse_call(struct jparser *p, struct jnode **node)
{
    struct jnode *call;
    TRY(jparse_node(p, N_CALL, cur(p)->at, &call));
    call->a = *node;
    *node = call;
    return call_args(p, call);
}

/* One piece of a subscript: an expression or a slice. */
static sinter_status subscribed(struct jparser *p, struct jnode **out)
{
    struct jnode *lo = NULL, *s;
    const uint32_t at = cur(p)->at;
    if (!jparse_is_op(p, ":")) {
        TRY(jparse_expr(p, true, &lo));
        if (!jparse_is_op(p, ":")) {
            *out = lo;
            return SINTER_OK;
        }
    }
    TRY(jparse_node(p, N_SLICE, at, &s));
    s->b = lo;
    advance(p);
    if (!jparse_is_op(p, ":") && !jparse_is_op(p, "]") && !jparse_is_op(p, ","))
        TRY(jparse_expr(p, true, &s->c));
    if (jparse_skip_op(p, ":") && !jparse_is_op(p, "]") && !jparse_is_op(p, ","))
        TRY(jparse_expr(p, true, &s->d));
    *out = s;
    return SINTER_OK;
}

static sinter_status subscript(struct jparser *p, struct jnode **node)
{
    const uint32_t at = cur(p)->at;
    struct jnode *n, *index;
    if (jparse_skip_op(p, ".")) {
        const struct jtoken *t = cur(p);
        advance(p);
        if (t->kind == T_NAME) {
            TRY(jparse_node(p, N_ATTR, at, &n));
            n->text = t->text;
        } else if (t->kind == T_INT) {
            TRY(jparse_node(p, N_ITEM, at, &n));
            TRY(jparse_node(p, N_CONST, t->at, &n->b));
            n->b->value = t->value;
        } else {
            return jparse_fail(p, SINTER_E_DATA, t->at, "expected a name or number after '.'");
        }
        n->a = *node;
        *node = n;
        return SINTER_OK;
    }
    advance(p);
    if (jparse_is_op(p, "]"))
        return jparse_fail(p, SINTER_E_DATA, cur(p)->at, "expected a subscript");
    TRY(subscribed(p, &index));
    if (jparse_is_op(p, ","))
        return jparse_fail(p, SINTER_E_UNSUPPORTED, cur(p)->at,
                           "several subscripts in one pair of brackets are not supported");
    TRY(jparse_expect_op(p, "]"));
    if (index->kind == N_SLICE && !index->a) { /* bare: s[i:j] as an index is a value */
        n = index;
        n->at = at;
    } else {
        TRY(jparse_node(p, N_ITEM, at, &n));
        n->b = index;
    }
    n->a = *node;
    *node = n;
    return SINTER_OK;
}

static sinter_status postfix(struct jparser *p, struct jnode **node)
{
    for (;;) {
        if (jparse_is_op(p, ".") || jparse_is_op(p, "["))
            TRY(subscript(p, node));
        else if (jparse_is_op(p, "("))
            TRY(parse_call(p, node));
        else
            return SINTER_OK;
    }
}

static sinter_status filter_name(struct jparser *p, struct jnode *n)
{
    const struct jtoken *t = NULL;
    TRY(jparse_expect(p, T_NAME, &t));
    n->text = t->text;
    n->at = t->at;
    if (jparse_is_op(p, "."))
        return jparse_fail(p, SINTER_E_UNSUPPORTED, cur(p)->at,
                           "dotted names of filters and tests are not supported");
    return SINTER_OK;
}

sinter_status jparse_filters(struct jparser *p, struct jnode *operand, bool start_inline,
                             struct jnode **out)
{
    *out = operand;
    while (jparse_is_op(p, "|") || start_inline) {
        struct jnode *n;
        if (!start_inline)
            advance(p);
        start_inline = false;
        TRY(jparse_node(p, N_FILTER, cur(p)->at, &n));
        TRY(filter_name(p, n));
        n->a = *out;
        if (jparse_is_op(p, "("))
            TRY(call_args(p, n));
        *out = n;
    }
    return SINTER_OK;
}

static bool starts_test_argument(const struct jparser *p)
{
    const struct jtoken *t = cur(p);
    if (t->kind == T_NAME)
        return !text_is(t, "else") && !text_is(t, "or") && !text_is(t, "and");
    return t->kind == T_STRING || t->kind == T_INT || t->kind == T_FLOAT || jparse_is_op(p, "[") ||
           jparse_is_op(p, "{");
}

static sinter_status parse_test(struct jparser *p, struct jnode **node)
{
    struct jnode *n, *not = NULL;
    const uint32_t at = cur(p)->at;
    advance(p);
    if (jparse_skip_name(p, "not"))
        TRY(jparse_node(p, N_NOT, at, &not ));
    TRY(jparse_node(p, N_TEST, cur(p)->at, &n));
    TRY(filter_name(p, n));
    n->a = *node;
    if (jparse_is_op(p, "(")) {
        TRY(call_args(p, n));
    } else if (starts_test_argument(p)) {
        if (jparse_is_name(p, "is"))
            return jparse_fail(p, SINTER_E_DATA, cur(p)->at, "'is' cannot follow a test");
        TRY(jparse_primary(p, false, &n->list));
        TRY(postfix(p, &n->list));
    }
    *node = n;
    if (not ) {
        not ->a = n;
        *node = not ;
    }
    return SINTER_OK;
}

static sinter_status filter_expr(struct jparser *p, struct jnode **node)
{
    for (;;) {
        if (jparse_is_op(p, "|"))
            TRY(jparse_filters(p, *node, false, node));
        else if (jparse_is_name(p, "is"))
            TRY(parse_test(p, node));
        else if (jparse_is_op(p, "("))
            TRY(parse_call(p, node));
        else
            return SINTER_OK;
    }
}

/* "[a, b]" or "{a: b, c: d}"; a comma may stand behind the last. */
static sinter_status parse_items(struct jparser *p, enum jnode_kind kind, const char *end,
                                 struct jnode **out)
{
    struct jnode *n, **tail, *item;
    TRY(jparse_node(p, kind, cur(p)->at, &n));
    tail = &n->list;
    advance(p);
    while (!jparse_is_op(p, end)) {
        if (n->list) {
            TRY(jparse_expect_op(p, ","));
            if (jparse_is_op(p, end))
                break;
        }
        if (kind == N_LIST) {
            TRY(jparse_expr(p, true, &item));
        } else {
            TRY(jparse_node(p, N_PAIR, cur(p)->at, &item));
            TRY(jparse_expr(p, true, &item->a));
            TRY(jparse_expect_op(p, ":"));
            TRY(jparse_expr(p, true, &item->b));
        }
        append(&tail, item);
    }
    *out = n;
    return jparse_expect_op(p, end);
}

static sinter_status constant(struct jparser *p, struct jv v, uint32_t at, struct jnode **out)
{
    TRY(jparse_node(p, N_CONST, at, out));
    (*out)->value = v;
    return SINTER_OK;
}

static sinter_status parse_name(struct jparser *p, bool ns, struct jnode **out)
{
    const struct jtoken *t = cur(p), *attr;
    advance(p);
    if (text_is(t, "true") || text_is(t, "True"))
        return constant(p, jv_bool(true), t->at, out);
    if (text_is(t, "false") || text_is(t, "False"))
        return constant(p, jv_bool(false), t->at, out);
    if (text_is(t, "none") || text_is(t, "None"))
        return constant(p, jv_none(), t->at, out);
    if (text_is(t, "self"))
        return jparse_fail(p, SINTER_E_UNSUPPORTED, t->at, "'self' is not supported");
    if (ns && jparse_skip_op(p, ".")) {
        TRY(jparse_expect(p, T_NAME, &attr));
        TRY(jparse_node(p, N_NSREF, t->at, out));
        (*out)->text = attr->text;
    } else {
        TRY(jparse_node(p, N_NAME, t->at, out));
    }
    return jparse_intern(p, t->text, t->at, &(*out)->name);
}

/* Neighbouring strings are one. */
static sinter_status parse_strings(struct jparser *p, struct jnode **out)
{
    const struct jtoken *first = cur(p);
    struct jv v = jv_text(first->text);
    struct text_buf b;
    advance(p);
    if (cur(p)->kind == T_STRING) {
        text_buf_init(&b, p->j->host);
        text_buf_add(&b, first->text->text, first->text->bytes);
        for (; cur(p)->kind == T_STRING; advance(p))
            text_buf_add(&b, cur(p)->text->text, cur(p)->text->bytes);
        TRY(jstr_take(p->j, SINTER_OK, &b, false, &v));
    }
    return constant(p, v, first->at, out);
}

sinter_status jparse_primary(struct jparser *p, bool ns, struct jnode **out)
{
    const struct jtoken *t = cur(p);
    sinter_status status;
    if (t->kind == T_NAME)
        return parse_name(p, ns, out);
    if (t->kind == T_STRING)
        return parse_strings(p, out);
    if (t->kind == T_INT || t->kind == T_FLOAT) {
        advance(p);
        return constant(p, t->value, t->at, out);
    }
    if (!jparse_is_op(p, "(") && !jparse_is_op(p, "[") && !jparse_is_op(p, "{"))
        return unexpected(p, "an expression");
    TRY(jparse_deeper(p));
    if (jparse_is_op(p, "[")) {
        status = parse_items(p, N_LIST, "]", out);
    } else if (jparse_is_op(p, "{")) {
        status = parse_items(p, N_DICT, "}", out);
    } else {
        advance(p);
        status = jparse_tuple(p, TUPLE_COND | TUPLE_PAREN, NULL, out);
        if (status == SINTER_OK)
            status = jparse_expect_op(p, ")");
    }
    p->nesting--;
    return status;
}

static sinter_status unary(struct jparser *p, bool with_filter, struct jnode **out)
{
    const bool minus = jparse_is_op(p, "-");
    if (minus || jparse_is_op(p, "+")) {
        struct jnode *n;
        TRY(jparse_deeper(p));
        TRY(jparse_node(p, N_UNARY, cur(p)->at, &n));
        n->op = minus ? J_SUB : J_ADD;
        advance(p);
        TRY(unary(p, false, &n->a));
        *out = n;
        p->nesting--;
    } else {
        TRY(jparse_primary(p, false, out));
    }
    TRY(postfix(p, out));
    return with_filter ? filter_expr(p, out) : SINTER_OK;
}

static sinter_status binary(struct jparser *p, enum jop op, uint32_t at, struct jnode *right,
                            struct jnode **left)
{
    struct jnode *n;
    TRY(jparse_node(p, N_BINARY, at, &n));
    n->op = op;
    n->a = *left;
    n->b = right;
    *left = n;
    return SINTER_OK;
}

static sinter_status parse_pow(struct jparser *p, struct jnode **out)
{
    struct jnode *right;
    TRY(unary(p, true, out));
    while (jparse_is_op(p, "**")) {
        const uint32_t at = cur(p)->at;
        advance(p);
        TRY(unary(p, true, &right));
        TRY(binary(p, J_POW, at, right, out));
    }
    return SINTER_OK;
}

static bool op_in(const struct jparser *p, const char *const *text, const enum jop *ops, int n,
                  enum jop *out)
{
    for (int i = 0; i < n; i++)
        if (jparse_is_op(p, text[i])) {
            *out = ops[i];
            return true;
        }
    return false;
}

static sinter_status math2(struct jparser *p, struct jnode **out)
{
    static const char *const text[] = {"*", "/", "//", "%"};
    static const enum jop ops[] = {J_MUL, J_DIV, J_FLOORDIV, J_MOD};
    struct jnode *right;
    enum jop op;
    TRY(parse_pow(p, out));
    while (op_in(p, text, ops, 4, &op)) {
        const uint32_t at = cur(p)->at;
        advance(p);
        TRY(parse_pow(p, &right));
        TRY(binary(p, op, at, right, out));
    }
    return SINTER_OK;
}

static sinter_status concat(struct jparser *p, struct jnode **out)
{
    struct jnode *n, **tail, *item;
    TRY(math2(p, out));
    if (!jparse_is_op(p, "~"))
        return SINTER_OK;
    TRY(jparse_node(p, N_CONCAT, cur(p)->at, &n));
    n->list = *out;
    tail = &n->list->next;
    while (jparse_skip_op(p, "~")) {
        TRY(math2(p, &item));
        append(&tail, item);
    }
    *out = n;
    return SINTER_OK;
}

static sinter_status math1(struct jparser *p, struct jnode **out)
{
    static const char *const text[] = {"+", "-"};
    static const enum jop ops[] = {J_ADD, J_SUB};
    struct jnode *right;
    enum jop op;
    TRY(concat(p, out));
    while (op_in(p, text, ops, 2, &op)) {
        const uint32_t at = cur(p)->at;
        advance(p);
        TRY(concat(p, &right));
        TRY(binary(p, op, at, right, out));
    }
    return SINTER_OK;
}

static bool compare_op(struct jparser *p, enum jop *op)
{
    static const char *const text[] = {"==", "!=", "<", "<=", ">", ">="};
    static const enum jop ops[] = {J_EQ, J_NE, J_LT, J_LE, J_GT, J_GE};
    if (op_in(p, text, ops, 6, op)) {
        advance(p);
        return true;
    }
    if (jparse_skip_name(p, "in")) {
        *op = J_IN;
        return true;
    }
    if (jparse_is_name(p, "not") && text_is(look(p), "in")) {
        advance(p);
        advance(p);
        *op = J_NOTIN;
        return true;
    }
    return false;
}

static sinter_status compare(struct jparser *p, struct jnode **out)
{
    struct jnode *n = NULL, **tail = NULL, *item;
    uint32_t at;
    enum jop op;
    TRY(math1(p, out));
    for (at = cur(p)->at; compare_op(p, &op); at = cur(p)->at) {
        if (!n) {
            TRY(jparse_node(p, N_COMPARE, at, &n));
            n->a = *out;
            tail = &n->list;
            *out = n;
        }
        TRY(jparse_node(p, N_OPERAND, at, &item));
        item->op = op;
        TRY(math1(p, &item->a));
        append(&tail, item);
    }
    return SINTER_OK;
}

static sinter_status parse_not(struct jparser *p, struct jnode **out)
{
    if (!jparse_is_name(p, "not"))
        return compare(p, out);
    TRY(jparse_deeper(p));
    TRY(jparse_node(p, N_NOT, cur(p)->at, out));
    advance(p);
    TRY(parse_not(p, &(*out)->a));
    p->nesting--;
    return SINTER_OK;
}

static sinter_status logic(struct jparser *p, bool is_or, struct jnode **out)
{
    struct jnode *n;
    TRY(is_or ? logic(p, false, out) : parse_not(p, out));
    for (;;) {
        const uint32_t at = cur(p)->at;
        if (!jparse_skip_name(p, is_or ? "or" : "and"))
            return SINTER_OK;
        TRY(jparse_node(p, is_or ? N_OR : N_AND, at, &n));
        n->a = *out;
        TRY(is_or ? logic(p, false, &n->b) : parse_not(p, &n->b));
        *out = n;
    }
}

sinter_status jparse_expr(struct jparser *p, bool cond, struct jnode **out)
{
    struct jnode *n;
    TRY(jparse_deeper(p));
    TRY(logic(p, true, out));
    for (uint32_t at = cur(p)->at; cond && jparse_skip_name(p, "if"); at = cur(p)->at) {
        TRY(jparse_node(p, N_COND, at, &n));
        n->b = *out;
        TRY(logic(p, true, &n->a));
        if (jparse_skip_name(p, "else"))
            TRY(jparse_expr(p, true, &n->c));
        *out = n;
    }
    p->nesting--;
    return SINTER_OK;
}

static bool tuple_end(const struct jparser *p, const char *end)
{
    return cur(p)->kind == T_VAR_END || cur(p)->kind == T_BLOCK_END || jparse_is_op(p, ")") ||
           (end && jparse_is_name(p, end));
}

sinter_status jparse_tuple(struct jparser *p, unsigned flags, const char *end, struct jnode **out)
{
    struct jnode *first = NULL, **tail = &first, *item;
    const uint32_t at = cur(p)->at;
    bool is_tuple = false;
    while (!tuple_end(p, end)) {
        if (flags & TUPLE_SIMPLE)
            TRY(jparse_primary(p, flags & TUPLE_NS, &item));
        else
            TRY(jparse_expr(p, flags & TUPLE_COND, &item));
        append(&tail, item);
        if (!jparse_skip_op(p, ","))
            break;
        is_tuple = true;
    }
    if (!is_tuple && first) {
        *out = first;
        return SINTER_OK;
    }
    if (!first && !(flags & TUPLE_PAREN))
        return unexpected(p, "an expression");
    TRY(jparse_node(p, N_TUPLE, at, out));
    (*out)->list = first;
    return SINTER_OK;
}
