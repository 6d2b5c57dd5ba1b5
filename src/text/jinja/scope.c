/* After parsing: which names each frame holds, and which filters and tests are meant.
 *
 * jinja2 compiles names to Python variables, by rules that look at the order of first mention:
 * a name that a frame assigns before it mentions it in any other way, and that no outer frame
 * mentions, is the frame's own even before the assignment ran. Everything else equals looking
 * names up from the inside out when they are read; so only that rule is computed here. */
#include "text/jinja/jinja.h"

#include <string.h>

struct symbols { /* arrays by name number */
    const struct symbols *parent;
    bool *ref, *store, *hides;
    int n;
};

static sinter_status symbols_new(struct jparser *p, const struct symbols *parent, struct symbols *s)
{
    const size_t n = (size_t)p->t->n_name;
    *s = (struct symbols){.parent = parent, .n = p->t->n_name};
    NEW(p->j->host, s->ref, 3 * n + 1, p->j->err);
    s->store = s->ref + n;
    s->hides = s->store + n;
    return SINTER_OK;
}

static void symbols_free(struct jparser *p, struct symbols *s)
{
    host_free(p->j->host, s->ref);
}

static bool find_ref(const struct symbols *s, int name)
{
    for (; s; s = s->parent)
        if (s->ref[name])
            return true;
    return false;
}

static void declare(struct symbols *s, int name)
{
    s->store[name] = s->ref[name] = s->hides[name] = true;
}

static void store(struct symbols *s, int name)
{
    s->store[name] = true;
    if (s->ref[name])
        return;
    s->hides[name] = !find_ref(s->parent, name);
    s->ref[name] = true;
}

static void load(struct symbols *s, int name)
{
    if (!find_ref(s, name))
        s->ref[name] = true;
}

static void load_all(struct symbols *s, const struct jnode *n)
{
    for (; n; n = n->next) {
        if (n->kind == N_NAME)
            load(s, n->name);
        if (n->a)
            load_all(s, n->a);
        if (n->b)
            load_all(s, n->b);
        if (n->c)
            load_all(s, n->c);
        if (n->d)
            load_all(s, n->d);
        load_all(s, n->list);
        load_all(s, n->list_b);
    }
}

/* An expression alone, not what follows it in its list. */
static void load_expr(struct symbols *s, const struct jnode *n)
{
    if (!n)
        return;
    struct jnode alone = *n;
    alone.next = NULL;
    load_all(s, &alone);
}

static void targets(struct symbols *s, const struct jnode *n, bool param)
{
    if (n->kind == N_TUPLE) {
        for (const struct jnode *i = n->list; i; i = i->next)
            targets(s, i, param);
    } else if (n->kind == N_NSREF) {
        load(s, n->name);
    } else if (param) {
        declare(s, n->name);
    } else {
        store(s, n->name);
    }
}

static sinter_status analyze(struct jparser *p, struct symbols *s, const struct jnode *list);

/* One branch of an if, on a copy of the symbols. */
static sinter_status branch(struct jparser *p, const struct symbols *s, struct symbols *copy,
                            const struct jnode *list)
{
    const size_t n = (size_t)s->n;
    TRY(symbols_new(p, s->parent, copy));
    memcpy(copy->ref, s->ref, 3 * n);
    return analyze(p, copy, list);
}

static sinter_status analyze_if(struct jparser *p, struct symbols *s, const struct jnode *n)
{
    const struct jnode *list[3] = {n->list, n->list_b, n->list_c};
    struct symbols b[3] = {{0}, {0}, {0}};
    sinter_status status = SINTER_OK;
    load_expr(s, n->a);
    for (int i = 0; i < 3; i++)
        TRY_OUT(branch(p, s, &b[i], list[i]));
    for (int name = 0; name < s->n; name++) {
        const bool before = s->store[name];
        bool any = false;
        for (int i = 0; i < 3; i++) {
            if (b[i].ref[name]) {
                s->ref[name] = true;
                s->hides[name] = b[i].hides[name];
            }
            any = any || b[i].store[name];
        }
        s->store[name] = before || any;
        if (any && !before) /* stored in branches only: what is outside shows */
            s->hides[name] = false;
    }
out:
    for (int i = 0; i < 3; i++)
        symbols_free(p, &b[i]);
    return status;
}

static sinter_status analyze(struct jparser *p, struct symbols *s, const struct jnode *list)
{
    for (const struct jnode *n = list; n; n = n->next) {
        switch (n->kind) {
        case N_OUTPUT:
            load_expr(s, n->a);
            break;
        case N_IF:
            TRY(analyze_if(p, s, n));
            break;
        case N_FOR:
            load_expr(s, n->b);
            break;
        case N_SET:
            load_expr(s, n->b);
            targets(s, n->a, false);
            break;
        case N_SET_BLOCK:
            targets(s, n->a, false);
            break;
        case N_MACRO:
            store(s, n->name);
            break;
        case N_CALL_BLOCK:
            load_expr(s, n->a);
            break;
        case N_FILTER_BLOCK:
            load_expr(s, n->b);
            break;
        case N_WITH:
            for (const struct jnode *i = n->list_b; i; i = i->next)
                load_expr(s, i->b);
            break;
        case N_DATA:
        case N_BREAK:
        case N_CONTINUE:
        CASE_EXPRESSION:
        CASE_PART:
            break;
        }
    }
    return SINTER_OK;
}

/* ---- Second walk: scopes from the symbols, filters and tests from their tables. ----------- */

static sinter_status walk_list(struct jparser *p, const struct symbols *s, struct jnode *n,
                               bool soft);

static sinter_status scope_of(struct jparser *p, const struct symbols *s, const struct jscope **out)
{
    struct jscope *scope;
    int *name, n = 0;
    bool *hides;
    for (int i = 0; i < s->n; i++)
        n += s->store[i];
    TRY(jalloc(p->j, 1, sizeof *scope, &scope));
    TRY(jalloc(p->j, (size_t)n, sizeof *name, &name));
    TRY(jalloc(p->j, (size_t)n, sizeof *hides, &hides));
    for (int i = 0, k = 0; i < s->n; i++)
        if (s->store[i]) {
            name[k] = i;
            hides[k++] = s->hides[i];
        }
    *scope = (struct jscope){n, name, hides};
    *out = scope;
    return SINTER_OK;
}

/* Opens a frame: `params` are its parameters (names, or targets), `list` its statements. */
struct frame {
    const struct jnode *params, *target;
    const int *extra; /* more parameters, -1 at the end */
    const struct jnode *filter;
    struct jnode *list;
    const struct jnode *exprs; /* mentioned in the frame after its body */
};

static sinter_status open_frame(struct jparser *p, const struct symbols *outer,
                                const struct frame *f, const struct jscope **scope)
{
    sinter_status status = SINTER_OK;
    struct symbols s;
    TRY(symbols_new(p, outer, &s));
    for (const int *e = f->extra; e && *e >= 0; e++)
        declare(&s, *e);
    if (f->target)
        targets(&s, f->target, true);
    for (const struct jnode *i = f->params; i; i = i->next) {
        if (i->kind == N_SET)
            targets(&s, i->a, true);
        else
            declare(&s, i->name);
    }
    for (const struct jnode *i = f->params; i; i = i->next)
        if (i->kind != N_SET)
            load_expr(&s, i->a); /* default */
    load_expr(&s, f->filter);
    TRY_OUT(analyze(p, &s, f->list));
    load_expr(&s, f->exprs);
    TRY_OUT(scope_of(p, &s, scope));
    TRY_OUT(walk_list(p, &s, f->list, false));
out:
    symbols_free(p, &s);
    return status;
}

static sinter_status intern(struct jparser *p, const char *name, int *out)
{
    struct jv v;
    TRY(jstr_share(p->j, name, strlen(name), false, &v));
    return jparse_intern(p, v.s, 0, out);
}

/* Does the list load the name anywhere, nested functions included? */
static bool mentions(const struct jnode *n, int name)
{
    for (; n; n = n->next) {
        if (n->kind == N_NAME && n->name == name)
            return true;
        if ((n->a && mentions(n->a, name)) || (n->b && mentions(n->b, name)) ||
            (n->c && mentions(n->c, name)) || (n->d && mentions(n->d, name)) ||
            mentions(n->list, name) || mentions(n->list_b, name) || mentions(n->list_c, name))
            return true;
    }
    return false;
}

static sinter_status function_frame(struct jparser *p, const struct symbols *s, struct jnode *n)
{
    static const char *const special[] = {"caller", "kwargs", "varargs"};
    int extra[4], k = 0;
    for (int i = 0; i < 3; i++) {
        int name;
        TRY(intern(p, special[i], &name));
        if (mentions(n->list, name)) {
            n->flags |= 1u << i;
            extra[k++] = name;
        }
    }
    extra[k] = -1;
    for (struct jnode *i = n->list_b; i; i = i->next)
        TRY(walk_list(p, s, i->a, false));
    return open_frame(p, s, &(struct frame){.params = n->list_b, .extra = extra, .list = n->list},
                      &n->scope);
}

static sinter_status for_frames(struct jparser *p, const struct symbols *s, struct jnode *n,
                                bool soft)
{
    int loop[2] = {0, -1};
    TRY(intern(p, "loop", &loop[0]));
    n->flags = mentions(n->list, loop[0]) ? FOR_LOOP : 0;
    TRY(walk_list(p, s, n->b, soft));
    TRY(walk_list(p, s, n->c, false));
    TRY(open_frame(p, s, &(struct frame){.extra = loop, .target = n->a, .list = n->list},
                   &n->scope));
    TRY(open_frame(p, s, &(struct frame){.list = n->list_b}, &n->scope_b));
    return open_frame(p, s, &(struct frame){.target = n->a, .filter = n->c}, &n->scope_c);
}

/* map('name'), select('test'), selectattr('a', 'test'): names in constants are looked up early. */
static sinter_status nested_row(struct jparser *p, const struct jnode *n)
{
    const bool is_map = jstr_is(n->text, "map");
    const bool attr = jstr_is(n->text, "selectattr") || jstr_is(n->text, "rejectattr");
    const struct jnode *arg = n->list;
    const struct jrow *row;
    if (!is_map && !attr && !jstr_is(n->text, "select") && !jstr_is(n->text, "reject"))
        return SINTER_OK;
    if (attr && arg)
        arg = arg->next;
    if (!arg || arg->kind != N_CONST || arg->value.kind != JV_STR)
        return SINTER_OK;
    row = is_map ? jinja_filter_find(arg->value.s->text, arg->value.s->bytes)
                 : jinja_test_find(arg->value.s->text, arg->value.s->bytes);
    if (row && !row->fn)
        return jparse_fail(p, SINTER_E_UNSUPPORTED, arg->at, "the %s '%s' is not supported",
                           is_map ? "filter" : "test", row->name);
    return SINTER_OK;
}

static sinter_status bind_row(struct jparser *p, struct jnode *n, bool soft)
{
    const bool filter = n->kind == N_FILTER;
    const char *what = filter ? "filter" : "test";
    n->row = filter ? jinja_filter_find(n->text->text, n->text->bytes)
                    : jinja_test_find(n->text->text, n->text->bytes);
    if (n->row && !n->row->fn)
        return jparse_fail(p, SINTER_E_UNSUPPORTED, n->at, "the %s '%s' is not supported", what,
                           n->row->name);
    if (!n->row && !soft)
        return jparse_fail(p, SINTER_E_DATA, n->at, "there is no %s '%.*s'", what, JCUT(n->text));
    return filter ? nested_row(p, n) : SINTER_OK;
}

/* Python methods that we lack are refused when they are called by name. */
static sinter_status check_call(struct jparser *p, const struct jnode *n)
{
    static const char *const lacking[] = {"encode",     "casefold",     "translate", "maketrans",
                                          "format_map", "isidentifier", "istitle",   "fromkeys",
                                          "expandtabs", "isprintable"};
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++)
        if (n->a->kind == N_ATTR && jstr_is(n->a->text, lacking[i]))
            return jparse_fail(p, SINTER_E_UNSUPPORTED, n->a->at,
                               "the method '%s' is not supported", lacking[i]);
    return SINTER_OK;
}

static sinter_status walk_expr(struct jparser *p, const struct symbols *s, struct jnode *n,
                               bool soft)
{
    soft = soft || n->kind == N_COND;
    if (n->kind == N_FILTER || n->kind == N_TEST)
        TRY(bind_row(p, n, soft));
    if (n->kind == N_CALL)
        TRY(check_call(p, n));
    TRY(walk_list(p, s, n->a, soft));
    TRY(walk_list(p, s, n->b, soft));
    TRY(walk_list(p, s, n->c, soft));
    TRY(walk_list(p, s, n->d, soft));
    TRY(walk_list(p, s, n->list, soft));
    return walk_list(p, s, n->list_b, soft);
}

static sinter_status walk(struct jparser *p, const struct symbols *s, struct jnode *n, bool soft)
{
    switch (n->kind) {
    case N_IF:
        TRY(walk_list(p, s, n->a, true));
        TRY(walk_list(p, s, n->list, true));
        TRY(walk_list(p, s, n->list_b, true));
        return walk_list(p, s, n->list_c, true);
    case N_FOR:
        return for_frames(p, s, n, soft);
    case N_SET_BLOCK:
        TRY(walk_list(p, s, n->b, false));
        return open_frame(p, s, &(struct frame){.list = n->list}, &n->scope);
    case N_MACRO:
        return function_frame(p, s, n);
    case N_CALL_BLOCK:
        TRY(walk_list(p, s, n->a, soft));
        return function_frame(p, s, n);
    case N_FILTER_BLOCK:
        TRY(walk_list(p, s, n->b, false));
        return open_frame(p, s, &(struct frame){.list = n->list, .exprs = n->b}, &n->scope);
    case N_WITH:
        for (struct jnode *i = n->list_b; i; i = i->next)
            TRY(walk_list(p, s, i->b, soft));
        return open_frame(p, s, &(struct frame){.params = n->list_b, .list = n->list}, &n->scope);
    case N_DATA:
    case N_OUTPUT:
    case N_SET:
    case N_BREAK:
    case N_CONTINUE:
    CASE_EXPRESSION:
    CASE_PART:
        break;
    }
    return walk_expr(p, s, n, soft);
}

static sinter_status walk_list(struct jparser *p, const struct symbols *s, struct jnode *n,
                               bool soft)
{
    if (++p->nesting > JINJA_MAX_TREE)
        return jparse_fail(p, SINTER_E_LIMIT, n ? n->at : 0,
                           "more than %d levels of nodes; split the expression", JINJA_MAX_TREE);
    for (; n; n = n->next)
        TRY(walk(p, s, n, soft));
    p->nesting--;
    return SINTER_OK;
}

/* Depth first, before anything recurses freely over the tree. */
static sinter_status check_depth(struct jparser *p, const struct jnode *n, int depth)
{
    for (; n; n = n->next) {
        const struct jnode *child[] = {n->a, n->b, n->c, n->d, n->list, n->list_b, n->list_c};
        if (depth > JINJA_MAX_TREE)
            return jparse_fail(p, SINTER_E_LIMIT, n->at,
                               "more than %d levels of nodes; split the expression",
                               JINJA_MAX_TREE);
        for (size_t i = 0; i < sizeof child / sizeof *child; i++)
            if (child[i])
                TRY(check_depth(p, child[i], depth + 1));
    }
    return SINTER_OK;
}

sinter_status jinja_scopes(struct jparser *p)
{
    static const char *const special[] = {"caller", "kwargs", "varargs", "loop"};
    struct chat_template *t = p->t;
    sinter_status status = SINTER_OK;
    struct symbols root;
    int ignored;
    /* All names must be known before the arrays by name are made. */
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        TRY(intern(p, special[i], &ignored));
    TRY(check_depth(p, t->body, 0));
    p->nesting = 0;
    TRY(symbols_new(p, NULL, &root));
    TRY_OUT(analyze(p, &root, t->body));
    TRY_OUT(scope_of(p, &root, &t->scope));
    TRY_OUT(walk_list(p, &root, t->body, false));
out:
    symbols_free(p, &root);
    return status;
}
