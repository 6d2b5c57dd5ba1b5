/* The parts of the template interpreter share this header; nobody else includes it.
 *
 *   lex.c     source -> tokens                      value.c    values, text, comparison
 *   parse.c   expressions, stmt.c statements -> nodes
 *   scope.c   names of each frame, filters and tests bound
 *   eval.c    expressions                           exec.c     statements, macros, entry
 *   op.c      operators, subscripts                 attr.c     attributes and globals
 *   filter.c, seqfilter.c, is.c, method.c           tables of filters, tests and methods
 *   json.c    JSON in and out                       format.c   numbers, %, format, strftime
 *   char.c    code points
 *
 * Invariants: values are immutable but for namespaces, loops, cyclers and the position of
 * generators. Whatever a rendering makes lies in its arena and dies with it. */
#ifndef TEXT_JINJA_H
#define TEXT_JINJA_H

#include "base/arena.h"
#include "text/template.h"

/* ---- Values ------------------------------------------------------------------------------- */

enum jv_kind {
    JV_ABSENT, /* an argument that was not given; never seen by templates */
    JV_UNDEFINED,
    JV_NONE,
    JV_BOOL,
    JV_INT,
    JV_FLOAT,
    JV_STR,
    JV_SEQ,
    JV_DICT,
    JV_NAMESPACE,
    JV_MACRO,
    JV_FUNC,
    JV_METHOD,
    JV_LOOP,
    JV_CYCLER,
    JV_JOINER
};

struct jstr { /* valid UTF-8, text need not end with NUL */
    const char *text;
    size_t bytes, n_char;
    bool safe; /* markupsafe.Markup */
};

enum jseq_kind { SEQ_LIST, SEQ_TUPLE, SEQ_RANGE, SEQ_GENERATOR, SEQ_KEYS, SEQ_VALUES, SEQ_ITEMS };

struct jv;

struct jseq {
    enum jseq_kind kind;
    struct jv *item;
    size_t n;
    size_t pos;                /* generator: what was consumed */
    int64_t start, stop, step; /* range */
    const struct jdict *names; /* of a group: fields grouper and list */
};

enum jundef_why { UNDEF_NAME, UNDEF_ATTR, UNDEF_ITEM, UNDEF_HINT, UNDEF_UNSAFE };

struct jundef {
    enum jundef_why why;
    const char *type; /* of the object */
    const char *text; /* name or hint */
    size_t bytes;
};

struct jv {
    enum jv_kind kind;
    union {
        bool b;
        int64_t i;
        double f;
        const struct jstr *s;
        struct jseq *seq;
        struct jdict *dict; /* also JV_NAMESPACE */
        struct jmacro *macro;
        const struct jrow *func;
        struct jmethod *method;
        struct jloop *loop;
        struct jcycler *cycler; /* also JV_JOINER */
        const struct jundef *undef;
    };
};

struct jpair {
    struct jv key, value;
    uint64_t hash;
};

struct jdict { /* in order of insertion */
    struct jpair *pair;
    size_t n, cap;
    uint32_t *index; /* open addressing, pair number + 1; NULL while small */
    size_t n_index;
};

struct jmacro {
    const struct jnode *node;
    struct jframe *frame; /* where it was defined */
};

struct jmethod {
    struct jv self;
    const struct jrow *row;
};

struct jloop {
    struct jv *item;
    size_t n, index0;
    struct jv changed; /* last arguments of loop.changed, or absent */
};

struct jcycler {
    struct jv *item; /* joiner: item[0] = the separator */
    size_t n, pos;
};

/* ---- Nodes -------------------------------------------------------------------------------- */

enum jnode_kind {
    /* statements */
    N_DATA,         /* text */
    N_OUTPUT,       /* a */
    N_IF,           /* a test, list body, list_b elifs (N_IF), list_c else */
    N_FOR,          /* a target, b iterable, c filter, list body, list_b else */
    N_SET,          /* a target, b value */
    N_SET_BLOCK,    /* a target, b filters (innermost operand NULL), list body */
    N_MACRO,        /* name, list body, list_b parameters (N_NAME, a = default) */
    N_CALL_BLOCK,   /* a call (NULL: generation), list body, list_b parameters */
    N_FILTER_BLOCK, /* b filters, list body */
    N_WITH,         /* list_b N_SET, list body */
    N_BREAK,
    N_CONTINUE,
    /* expressions */
    N_CONST,   /* value */
    N_NAME,    /* name */
    N_NSREF,   /* name, text: only as a target */
    N_TUPLE,   /* list */
    N_LIST,    /* list */
    N_DICT,    /* list of N_PAIR */
    N_PAIR,    /* a key, b value */
    N_COND,    /* a test, b then, c else or NULL */
    N_OR,      /* a, b */
    N_AND,     /* a, b */
    N_NOT,     /* a */
    N_COMPARE, /* a, list of N_OPERAND */
    N_OPERAND, /* op, a */
    N_BINARY,  /* op, a, b */
    N_UNARY,   /* op J_ADD or J_SUB, a */
    N_CONCAT,  /* list */
    N_CALL,    /* a callee, list arguments, list_b N_KEYWORD */
    N_KEYWORD, /* text, a */
    N_ATTR,    /* a, text */
    N_ITEM,    /* a, b */
    N_SLICE,   /* a[b:c:d] */
    N_FILTER,  /* a, text, row, list, list_b */
    N_TEST     /* a, text, row, list, list_b */
};

/* The kinds that jinja_eval takes, and those that only stand within others. */
#define CASE_EXPRESSION                                                                            \
    case N_CONST:                                                                                  \
    case N_NAME:                                                                                   \
    case N_TUPLE:                                                                                  \
    case N_LIST:                                                                                   \
    case N_DICT:                                                                                   \
    case N_COND:                                                                                   \
    case N_OR:                                                                                     \
    case N_AND:                                                                                    \
    case N_NOT:                                                                                    \
    case N_COMPARE:                                                                                \
    case N_BINARY:                                                                                 \
    case N_UNARY:                                                                                  \
    case N_CONCAT:                                                                                 \
    case N_CALL:                                                                                   \
    case N_ATTR:                                                                                   \
    case N_ITEM:                                                                                   \
    case N_SLICE:                                                                                  \
    case N_FILTER:                                                                                 \
    case N_TEST
#define CASE_PART                                                                                  \
    case N_NSREF:                                                                                  \
    case N_PAIR:                                                                                   \
    case N_OPERAND:                                                                                \
    case N_KEYWORD

enum jop {
    J_ADD,
    J_SUB,
    J_MUL,
    J_DIV,
    J_FLOORDIV,
    J_MOD,
    J_POW,
    J_EQ,
    J_NE,
    J_LT,
    J_LE,
    J_GT,
    J_GE,
    J_IN,
    J_NOTIN
};

enum jnode_flag {
    MACRO_CALLER = 1, /* the body mentions caller, kwargs, varargs */
    MACRO_KWARGS = 2,
    MACRO_VARARGS = 4,
    FOR_LOOP = 8 /* the body mentions loop */
};

struct jnode {
    enum jnode_kind kind;
    uint32_t at; /* byte offset in the source */
    enum jop op;
    int name; /* number of an interned name */
    unsigned flags;
    const struct jstr *text;
    struct jv value;
    struct jnode *a, *b, *c, *d;
    struct jnode *list, *list_b, *list_c;
    struct jnode *next;
    const struct jrow *row;                         /* NULL at run time: no such filter or test */
    const struct jscope *scope, *scope_b, *scope_c; /* of list; for: of else; for: of the filter */
};

/* The names a frame can hold. unset_hides: jinja2 decides when compiling that such a name is the
 * frame's own, so that reading it before its assignment finds nothing further out. */
struct jscope {
    int n;
    const int *name;
    const bool *unset_hides;
};

struct jframe {
    struct jframe *parent;
    const struct jscope *scope;
    struct jv *value; /* [scope->n]; JV_ABSENT while not assigned */
};

struct chat_template {
    sinter_host *host;
    struct arena arena; /* everything below */
    const char *source; /* newlines normalised */
    size_t bytes;
    const struct jstr **name; /* interned */
    int n_name;
    struct jnode *body;
    const struct jscope *scope;
};

enum { JINJA_MAX_TREE = 500, JINJA_MAX_DEPTH = 1000 };

/* ---- Engine state ------------------------------------------------------------------------- */

enum jflow { FLOW_NONE, FLOW_BREAK, FLOW_CONTINUE };

struct jinja {
    const struct chat_template *t;
    sinter_host *host;
    struct arena arena;
    struct template_limits limit;
    uint64_t n_step;
    int depth;
    uint32_t at;        /* source offset for messages */
    uint64_t n_ns_read; /* attributes of namespaces read */
    bool in_json;       /* the variables are being read: there is no place in the source */
    struct text_buf *out;
    enum jflow flow;
    struct jframe *frame;
    struct jv *global; /* [n_name]: variables, then built-in globals */
    int64_t now;
    sinter_error *err;
};

struct jargs {
    struct jv *pos;
    size_t n_pos;
    struct jkw {
        const struct jstr *name;
        struct jv value;
    } * kw;
    size_t n_kw;
};

/* What a row of a table of filters, tests, methods or globals calls: `raw` is what was given,
 * arg[] the same by parameter, JV_ABSENT where nothing was. */
#define JFN(name)                                                                                  \
    sinter_status name(struct jinja *j UNUSED, const struct jargs *raw UNUSED,                     \
                       struct jv *arg UNUSED, struct jv *out UNUSED)
typedef JFN((*jfn));
enum { JROW_MAX_ARG = 6 };
struct jrow {
    const char *name;
    /* Names of the parameters, blanks between; the first n_min must be given. A filter's, test's
     * or method's operand comes first. NULL: the function reads `raw` itself. '/' = no more
     * keywords up to here. */
    const char *params;
    size_t n_min;
    jfn fn; /* NULL: jinja2 has it, sinter has not */
};

const struct jrow *jrow_find(const struct jrow *rows, size_t n, const char *name, size_t bytes);
/* Binds the arguments to row->params and calls. */
CHECKED sinter_status jrow_call(struct jinja *j, const struct jrow *row, const char *what,
                                const struct jargs *raw, struct jv *out);

/* An argument of a row: was it given (and is not None); its integer, `fallback` if absent; is it
 * this text? */
static inline bool jarg_given(struct jv v)
{
    return v.kind != JV_ABSENT && v.kind != JV_NONE;
}
CHECKED sinter_status jarg_int(struct jinja *j, struct jv v, int64_t fallback, int64_t *out);
bool jarg_is(struct jv v, const char *text);

const struct jrow *jinja_filter_find(const char *name, size_t bytes);
const struct jrow *jinja_test_find(const char *name, size_t bytes);
const struct jrow *jinja_global_find(const char *name, size_t bytes);

/* ---- Errors and accounting ---------------------------------------------------------------- */

sinter_status jfail(struct jinja *j, sinter_status status, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The comma tells the compiler that the value is no success. */
#define JFAIL(j, name, ...) ((void)jfail((j), SINTER_E_##name, __VA_ARGS__), SINTER_E_##name)
/* The start of a name, for "%.*s" of a message. */
#define JCUT(s) (int)((s)->bytes < 60 ? (s)->bytes : 60), (s)->text
/* "template: line L, column C: " for offset `at`. */
void jinja_place(const struct chat_template *t, uint32_t at, size_t *line, size_t *column);
CHECKED sinter_status jcharge(struct jinja *j, size_t n_step);
CHECKED sinter_status jenter(struct jinja *j); /* one level deeper; jleave goes back */
static inline void jleave(struct jinja *j)
{
    j->depth--;
}
CHECKED sinter_status jalloc(struct jinja *j, size_t n, size_t each, void *out);

/* ---- Values: value.c ---------------------------------------------------------------- */

static inline struct jv jv_absent(void)
{
    return (struct jv){.kind = JV_ABSENT};
}
static inline struct jv jv_none(void)
{
    return (struct jv){.kind = JV_NONE};
}
static inline struct jv jv_bool(bool b)
{
    return (struct jv){.kind = JV_BOOL, .b = b};
}
static inline struct jv jv_int(int64_t i)
{
    return (struct jv){.kind = JV_INT, .i = i};
}
static inline struct jv jv_float(double f)
{
    return (struct jv){.kind = JV_FLOAT, .f = f};
}
static inline bool jv_is_int(struct jv v) /* bool is an int */
{
    return v.kind == JV_INT || v.kind == JV_BOOL;
}
static inline int64_t jv_as_int(struct jv v)
{
    return v.kind == JV_BOOL ? v.b : v.i;
}
static inline bool jv_is_number(struct jv v)
{
    return jv_is_int(v) || v.kind == JV_FLOAT;
}
static inline double jv_as_float(struct jv v)
{
    return v.kind == JV_FLOAT ? v.f : (double)jv_as_int(v);
}

static inline struct jv jv_text(const struct jstr *s)
{
    return (struct jv){.kind = JV_STR, .s = s};
}

bool jstr_is(const struct jstr *s, const char *text);
size_t jchars(const char *text, size_t bytes); /* code points of valid UTF-8 */
/* A string that shares or copies the bytes. */
CHECKED sinter_status jstr_share(struct jinja *j, const char *text, size_t bytes, bool safe,
                                 struct jv *out);
CHECKED sinter_status jstr_copy(struct jinja *j, const char *text, size_t bytes, bool safe,
                                struct jv *out);
/* Takes what the buffer holds (or its failure, or `status` of what filled it) and frees it. */
CHECKED sinter_status jstr_take(struct jinja *j, sinter_status status, struct text_buf *b,
                                bool safe, struct jv *out);
CHECKED sinter_status jseq_new(struct jinja *j, enum jseq_kind kind, size_t n, struct jv *out);
CHECKED sinter_status jseq_copy(struct jinja *j, enum jseq_kind kind, const struct jv *item,
                                size_t n, struct jv *out);
CHECKED sinter_status jseq_pair(struct jinja *j, struct jv a, struct jv b, struct jv *out);
/* Appends to a sequence that jseq_new made with n = 0; *cap starts as 0. */
CHECKED sinter_status jseq_push(struct jinja *j, struct jseq *s, size_t *cap, struct jv v);
CHECKED sinter_status jdict_new(struct jinja *j, size_t cap, struct jdict **out);
CHECKED sinter_status jdict_set(struct jinja *j, struct jdict *d, struct jv key, struct jv value);
CHECKED sinter_status jdict_set_kw(struct jinja *j, struct jdict *d, const struct jargs *args);
/* *out = NULL if absent; an unhashable key fails. */
CHECKED sinter_status jdict_get(struct jinja *j, const struct jdict *d, struct jv key,
                                struct jv **out);
struct jv *jdict_find(const struct jdict *d, const char *key, size_t bytes);
bool jv_hashable(struct jv v);
/* Python's error where it is not. */
CHECKED sinter_status jv_check_hashable(struct jinja *j, struct jv v);
CHECKED sinter_status jundef_new(struct jinja *j, enum jundef_why why, const char *type,
                                 const char *text, size_t bytes, struct jv *out);
sinter_status jundef_fail(struct jinja *j, struct jv v);

const char *jv_type(struct jv v); /* Python's name of the type */
bool jv_truth(struct jv v);
CHECKED sinter_status jv_equal(struct jinja *j, struct jv a, struct jv b, bool *out);
CHECKED sinter_status jv_less(struct jinja *j, struct jv a, struct jv b, bool *out);
CHECKED sinter_status jv_compare(struct jinja *j, enum jop op, struct jv a, struct jv b, bool *out);
CHECKED sinter_status jv_contains(struct jinja *j, struct jv box, struct jv v, bool *out);
CHECKED sinter_status jv_print(struct jinja *j, struct jv v, struct text_buf *b); /* str() */
CHECKED sinter_status jv_repr(struct jinja *j, struct jv v, struct text_buf *b);
CHECKED sinter_status jv_str(struct jinja *j, struct jv v, const struct jstr **out); /* str() */
CHECKED sinter_status jv_repr_str(struct jinja *j, struct jv v, const struct jstr **out);
/* All elements that iterating gives; a generator is consumed. */
CHECKED sinter_status jv_elements(struct jinja *j, struct jv v, struct jv **item, size_t *n);
bool jv_iterable(struct jv v);

/* ---- The other parts ---------------------------------------------------------------------- */

/* char.c */
bool jchar_space(uint32_t c);
bool jchar_upper(uint32_t c, uint32_t *out); /* false: maps to several, or no table */
bool jchar_lower(uint32_t c, uint32_t *out);
bool jchar_title(uint32_t c, uint32_t *out);
bool jchar_alpha(uint32_t c);
bool jchar_decimal(uint32_t c);
bool jchar_numeric(uint32_t c);
enum jchar_case { CHAR_UNCASED, CHAR_UPPER, CHAR_LOWER, CHAR_TITLE };
enum jchar_case jchar_case(uint32_t c);
bool jchar_odd_case(uint32_t c); /* cased, but jchar_case does not tell how */
bool jchar_printable(uint32_t c);
uint32_t jchar_get(const char *text, size_t *len); /* of valid UTF-8 */
size_t jchar_back(const char *text, size_t bytes); /* bytes of the last character */
size_t jchar_offset(const struct jstr *s, size_t n_char);

/* lex.c */
enum jtoken_kind {
    T_EOF,
    T_DATA,
    T_VAR_BEGIN,
    T_VAR_END,
    T_BLOCK_BEGIN,
    T_BLOCK_END,
    T_NAME,
    T_STRING,
    T_INT,
    T_FLOAT,
    T_OP
};
struct jtoken {
    enum jtoken_kind kind;
    uint32_t at;
    char op[3]; /* T_OP: the characters */
    const struct jstr *text;
    struct jv value;
};
CHECKED sinter_status jinja_lex(struct jinja *j, struct jtoken **token, size_t *n);

/* parse.c, stmt.c: the parser works with the template's own arena in j. */
struct jparser {
    struct jinja *j;
    struct chat_template *t;
    struct jtoken *token; /* ends with T_EOF */
    size_t pos;
    int nesting;
    int n_for;  /* enclosing loops of any kind: `loop` may not be assigned */
    int n_loop; /* enclosing loops that break and continue can leave */
    int cap_name;
};
CHECKED sinter_status jparse_template(struct jparser *p, struct jnode **list);
CHECKED sinter_status jparse_expr(struct jparser *p, bool cond, struct jnode **out);
CHECKED sinter_status jparse_primary(struct jparser *p, bool ns, struct jnode **out);
enum jtuple_flag { TUPLE_COND = 1, TUPLE_SIMPLE = 2, TUPLE_PAREN = 4, TUPLE_NS = 8 };
CHECKED sinter_status jparse_tuple(struct jparser *p, unsigned flags, const char *end,
                                   struct jnode **out);
CHECKED sinter_status jparse_filters(struct jparser *p, struct jnode *operand, bool start_inline,
                                     struct jnode **out);
CHECKED sinter_status jparse_node(struct jparser *p, enum jnode_kind kind, uint32_t at,
                                  struct jnode **out);
CHECKED sinter_status jparse_intern(struct jparser *p, const struct jstr *text, uint32_t at,
                                    int *out);
CHECKED sinter_status jparse_expect_op(struct jparser *p, const char *op);
CHECKED sinter_status jparse_expect(struct jparser *p, enum jtoken_kind kind,
                                    const struct jtoken **out);
sinter_status jparse_fail(struct jparser *p, sinter_status status, uint32_t at, const char *fmt,
                          ...) PRINTF_LIKE(4, 5);
bool jparse_is_op(const struct jparser *p, const char *op);
bool jparse_is_name(const struct jparser *p, const char *name);
bool jparse_skip_op(struct jparser *p, const char *op);
bool jparse_skip_name(struct jparser *p, const char *name);
CHECKED sinter_status jparse_deeper(struct jparser *p);

/* scope.c */
CHECKED sinter_status jinja_scopes(struct jparser *p);

/* eval.c */
CHECKED sinter_status jinja_eval(struct jinja *j, const struct jnode *n, struct jv *out);
CHECKED sinter_status jinja_call(struct jinja *j, struct jv callee, const struct jargs *args,
                                 struct jv *out);
CHECKED sinter_status jinja_args(struct jinja *j, const struct jnode *n, size_t n_before,
                                 struct jargs *out);
/* Calls a filter (or test) node with `operand`. */
CHECKED sinter_status jinja_apply(struct jinja *j, const struct jnode *n, struct jv operand,
                                  struct jv *out);

/* exec.c */
CHECKED sinter_status jinja_call_macro(struct jinja *j, struct jmacro *m, const struct jargs *args,
                                       struct jv *out);

/* op.c */
CHECKED sinter_status jop_binary(struct jinja *j, enum jop op, struct jv a, struct jv b,
                                 struct jv *out);
CHECKED sinter_status jop_unary(struct jinja *j, enum jop op, struct jv a, struct jv *out);
CHECKED sinter_status jop_slice(struct jinja *j, struct jv v, struct jv lo, struct jv hi,
                                struct jv step, struct jv *out);
CHECKED sinter_status jstr_escape(struct jinja *j, struct jv v, struct jv *out); /* markup */

/* attr.c */
CHECKED sinter_status jattr_get(struct jinja *j, struct jv obj, const struct jstr *name,
                                struct jv *out); /* obj.name */
CHECKED sinter_status jattr_item(struct jinja *j, struct jv obj, struct jv key,
                                 struct jv *out); /* obj[key] */
/* Only Python's attributes, as getattr; *found tells. */
CHECKED sinter_status jattr_python(struct jinja *j, struct jv obj, const struct jstr *name,
                                   bool *found, struct jv *out);

/* method.c */
extern const struct jrow jinja_str_methods[], jinja_list_methods[], jinja_dict_methods[],
    jinja_loop_methods[], jinja_cycler_methods[];
extern const size_t jinja_n_str_method, jinja_n_list_method, jinja_n_dict_method,
    jinja_n_loop_method, jinja_n_cycler_method;
enum jcase { CASE_UPPER, CASE_LOWER, CASE_TITLE, CASE_CAPITALIZE, CASE_TITLE_FILTER };
CHECKED sinter_status jstr_case(struct jinja *j, const struct jstr *s, enum jcase how,
                                struct jv *out);
CHECKED sinter_status jstr_strip(struct jinja *j, const struct jstr *s, struct jv chars, int sides,
                                 struct jv *out); /* sides: 1 left, 2 right */
CHECKED sinter_status jstr_replace(struct jinja *j, const struct jstr *s, const struct jstr *from,
                                   const struct jstr *to, int64_t count, struct jv *out);
CHECKED sinter_status jstr_lines(struct jinja *j, const struct jstr *s, bool keep, struct jv *out);
CHECKED sinter_status jstr_pad(struct jinja *j, const struct jstr *s, int64_t width, char fill,
                               int where, struct jv *out); /* where: -1 left-aligned, 0, 1 */
CHECKED sinter_status jstr_test(struct jinja *j, const struct jstr *s, const char *what, bool *out);
/* Byte offset of `needle` in text[from..], or SIZE_MAX. */
size_t jtext_find(const char *text, size_t bytes, const char *needle, size_t n, size_t from);

/* json.c */
CHECKED sinter_status jjson_parse(struct jinja *j, const char *text, size_t bytes, struct jv *out);
CHECKED sinter_status jjson_dump(struct jinja *j, struct jv *arg, struct jv *out);

/* format.c */
void jfmt_float(double f, char buf[40]);                        /* repr */
bool jfmt_parse_float(const char *text, size_t n, double *out); /* [digits][.digits][e±digits] */
CHECKED sinter_status jfmt_percent(struct jinja *j, const struct jstr *fmt, struct jv args,
                                   struct jv *out);
CHECKED sinter_status jfmt_format(struct jinja *j, const struct jstr *fmt, const struct jargs *args,
                                  struct jv *out);
CHECKED sinter_status jfmt_strftime(struct jinja *j, const struct jstr *fmt, struct jv *out);
CHECKED sinter_status jfmt_round(struct jinja *j, double f, int64_t digits, double *out);

#endif
