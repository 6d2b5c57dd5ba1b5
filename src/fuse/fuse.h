/* Fusion: one table (fusions.c), one matcher (match.c). Matcher, planner, kernels, statistics and
 * tests hold the same rows, variants and group objects.
 *
 * A row is a small SSA program: node = {ops, in names, out names}. A name may be assigned again; a
 * reader means the latest, which settles left-out nodes, chains and what the output is. EACH(W) is
 * one value per repetition; a node that reads an EACH made before repeats along. Optional nodes of
 * one number come and go together. An operand of the op that the row does not name must be absent.
 * Each later node reads something bound before. Values not read inside leave freely, state always,
 * others only from a node with .leaves; an output that nobody reads is not written.
 *
 * At start each row expands into variants (repeat counts, optional sets, op alternatives), each of
 * its own label: its ops joined by '+', runs of one op as OP*n. Each op is a row of one node too,
 * named as the op: so every node lies in exactly one group. Limits are errors, never truncation.
 *
 * The row of a single op names operands by role: x and X are X (a second x is V, then A, B, D),
 * w W, e E, v V, k K, s S, t T, i I, c C; its outputs are Y and Z, but a state's next version is S.
 * So KV_WRITE is {S, X, V} -> {S}, TOPK {X} -> {Y ids, Z weights}, PV {C, S} -> {Y}.
 *
 * A backend brings a list of lines {row, run, …}, best first; lines of single ops come after all
 * others, wherever they stand. A group = variant + line + members. */
#ifndef FUSE_FUSE_H
#define FUSE_FUSE_H

#include "graph/graph.h"

struct call; /* what a kernel sees: native/call.h */
struct group;

enum { FUSE_MAX_ROW_NODE = 8, FUSE_MAX_NODE = 12, FUSE_MAX_REP = 8, FUSE_EACH = 64 };

/* ---- Needs: a closed set; kinds and generators of near misses in needs.c, from needs.def. --- */
/* clang-format off */
enum need_kind {
    NEED_NONE,
#define NEED(name, args) NEED_##name,
#include "fuse/needs.def"
#undef NEED
    NEED_N
};
struct need { enum need_kind kind; int32_t a, b, c; };
#define NEED_WEIGHT(x) { NEED_weight, (x) & 63, 0, 0 } /* x is a weight, not an activation */
#define NEED_SAME_ROW(x, y) { NEED_same_row, (x) & 63, (y) & 63, 0 } /* one shape */
#define NEED_SAME_LEN(x, y) { NEED_same_len, (x) & 63, (y) & 63, 0 } /* one n_head * d */
#define NEED_ROWS(x, lo, hi) { NEED_rows, (x) & 63, (lo), (hi) } /* whole interval inside */
#define NEED_QUANT(x, flags) { NEED_quant, (x) & 63, (int32_t)(flags), 0 } /* type has all */
#define NEED_SAME_TYPE(x) { NEED_same_type, (x) & 63, 0, 0 }     /* all repetitions have one type */
#define NEED_COLS(x, m) { NEED_cols, (x) & 63, (m), 0 }          /* n_head * d multiple of m */
#define NEED_NARROW(x, max) { NEED_narrow, (x) & 63, (max), 0 }  /* n_head * d at most max */
#define NEED_VECTOR(x) { NEED_vector, (x) & 63, 0, 0 }           /* one row for all rows */
#define NEED_HEADS(x, min) { NEED_heads, (x) & 63, (min), 0 }    /* at least min heads */
/* clang-format on */

enum fuse_repeat_limit { FUSE_NO_REPEAT = 0 };
struct fuse_node {
    uint8_t op[4]; /* enum op: alternatives */
    uint8_t in[6]; /* names, in operand order; 0 ends */
    uint8_t out[2];
    uint8_t repeat[2]; /* {lo, hi}; {0, 0}: once, or along with an EACH it reads */
    uint8_t optional;  /* number; 0: always there */
    bool leaves;       /* its outputs that are read inside may also leave */
};
struct fuse_row {
    const char *name; /* "add_norm_mul"; lists refer to it */
    struct fuse_node node[FUSE_MAX_ROW_NODE];
    struct need need[6]; /* hold for every backend */
};

/* The table without single-op rows. */
extern const struct fuse_row fuse_rows[];
extern const int fuse_n_row;

/* ---- Lines of a backend's list -------------------------------------------------------------- */
enum fuse_bits { BITS_OWN, BITS_SAME };

/* How a step is divided among threads: EACH every thread makes its own whole copy; ROW COL HEAD by
 * rows, output columns or KV heads; ONE thread 0 only; ANY as its first input was written. */
enum share { SHARE_ONE, SHARE_EACH, SHARE_ROW, SHARE_COL, SHARE_HEAD, SHARE_ANY };
const char *fuse_share_name(enum share share); /* "col" */

struct fuse_line {
    const char *row; /* a row of fusions.c, or an op's name */
    void (*run)(const struct call *c);
    enum fuse_bits bits; /* SAME: as its nodes one by one */
    enum share share;
    bool writes_forms;     /* can write INT8 rows of its outputs itself */
    uint8_t inplace[2][2]; /* {output name, input name} that may share memory */
    struct need need[6];
    /* Bytes per thread; NULL: none. */
    size_t (*scratch)(const struct graph *graph, const struct group *g);
    size_t shared; /* bytes that all threads of a step see: zero before, left zero by the kernel */
};
struct fuse_list {
    const char *backend;
    const struct fuse_line *line;
    int n_line;
};

/* ---- Tables expanded: once per host and backend --------------------------------------------- */
struct fuse_var_node { /* one node of a variant */
    enum op op;
    int row_node, rep; /* where it comes from */
    int n_in, n_out;
    uint8_t in[OP_MAX_IN]; /* slots; FUSE_ABSENT */
    uint8_t out[OP_MAX_OUT];
    bool leaves;
};
enum { FUSE_MAX_SLOT = 40, FUSE_ABSENT = 255 };

struct fuse_variant {
    const struct fuse_row *row;
    const char *label; /* "ADD+RMS_NORM+MUL" */
    int id;            /* index in the table: counters use it */
    int n_node;
    struct fuse_var_node node[FUSE_MAX_NODE];
    int n_slot; /* values of the little program, in order of appearance */
    struct fuse_slot {
        uint8_t name, rep;
        bool input;  /* not made here */
        bool last;   /* the latest of its name */
        bool inner;  /* made here and read here */
        bool leaves; /* an inner one that may also be read outside: .leaves, or state */
    } slot[FUSE_MAX_SLOT];
};

struct fuse_range {
    int first, n;
};
struct fuse_table {
    struct arena arena;
    const struct fuse_list *list;
    int n_variant;
    struct fuse_variant *variant; /* rows of fusions.c first, then the single ops */
    int n_single;                 /* id of the first single-op variant */
    struct fuse_range *of_line;   /* [list->n_line]: the variants of its row */
};
/* Expands and checks rows and lines: unknown row names, duplicate labels, overfull rows, needs on
 * unknown names are SINTER_E_INTERNAL with the row's name. */
CHECKED sinter_status fuse_table_create(sinter_host *host, const struct fuse_list *list,
                                        struct fuse_table **out, sinter_error *err);
/* The same with other rows than fusions.c (tests). */
CHECKED sinter_status fuse_table_create_rows(sinter_host *host, const struct fuse_row *row,
                                             int n_row, const struct fuse_list *list,
                                             struct fuse_table **out, sinter_error *err);
void fuse_table_free(struct fuse_table *t);
/* The variant with this label, or NULL. */
const struct fuse_variant *fuse_variant_find(const struct fuse_table *t, const char *label);

/* ---- Matching ------------------------------------------------------------------------------- */
struct fuse_key { /* the plan's intervals, for NEED_ROWS */
    int row_lo, row_hi, out_cap, seq_cap;
};

struct group {
    const struct fuse_variant *variant;
    const struct fuse_line *line;
    int id; /* its index in fuse_result.group */
    int n_node;
    int node[FUSE_MAX_NODE];  /* graph nodes, in the variant's order */
    int value[FUSE_MAX_SLOT]; /* graph value of each slot; -1: absent */
    int n_out;                /* values that leave: read outside, a port, or state */
    int out[FUSE_MAX_SLOT];
    int n_in; /* distinct values that come in, weights and state included */
    int in[FUSE_MAX_SLOT];
};
/* The latest value of `name` in the group (repetition rep), -1 if the variant lacks it or it is
 * absent. For outputs: the last assignment. */
int group_value(const struct group *g, int name, int rep);
/* The first one: for names assigned again, what the group reads from outside. */
int group_value_first(const struct group *g, int name, int rep);
int group_n_rep(const struct group *g, int name); /* repetitions of EACH(name); 1 if not EACH */
/* The group's first graph node of `op`: where a kernel finds attributes. */
const struct node *group_node(const struct graph *graph, const struct group *g, enum op op);

struct fuse_stats;
struct fuse_options {
    bool fusion;             /* false: single ops only */
    const char *disable;     /* labels of two or more nodes, comma separated; NULL: none */
    const char *ignore_need; /* LABEL.need, comma separated; need as need_print writes it: tests */
    const struct fuse_stats *stats; /* what set_enabled switched off; NULL: nothing */
};

/* Do the labels and needs that the options name exist? SINTER_E_USAGE names the nearest. */
CHECKED sinter_status fuse_options_check(sinter_host *host, const struct fuse_table *t,
                                         const struct fuse_options *options, sinter_error *err);

/* Counters per variant. For one live graph: matched = groups taken; refused = the edges fit, but no
 * line took it (the last need that failed is in the note); lost = a member went to another row.
 * Only rows of two or more nodes have refused and lost. Per device: fuse/stats.h. */
struct fuse_count {
    uint64_t matched, refused, lost, executed;
};

/* Why an attempt at a variant on an anchor node failed; collected only when asked for. */
/* clang-format off */
enum fuse_why { FUSE_TAKEN, FUSE_BROKE, FUSE_LEAKS, FUSE_NEED, FUSE_DISABLED, FUSE_LOST, FUSE_CYCLE,
                FUSE_BANNED, FUSE_NO_LINE };
/* clang-format on */
struct fuse_note {
    const struct fuse_variant *variant;
    const struct fuse_line *line; /* NULL: before any line was asked */
    int node;                     /* the graph node it started at */
    int at;                       /* the graph node or value at which it broke off; -1: none */
    enum fuse_why why;
    struct need need; /* of FUSE_NEED */
    int winner;       /* group id of FUSE_LOST; -1 */
};

struct fuse_ban { /* a group refused in FULL */
    const struct fuse_line *line;
    int first_node;
};

struct fuse_result {
    struct arena arena;
    int n_group;
    struct group *group;      /* each node of the graph in exactly one */
    int *group_of;            /* [n_node] */
    struct fuse_count *count; /* [n_variant]: matched, refused, lost of this live graph */
    int n_note;
    struct fuse_note *note;
};

/* STRUCTURAL matching of a live graph: candidates whose needs hold, taken by line, size, position;
 * a taken group is contracted if the graph stays acyclic and no inner value leaves. A node that no
 * line takes: SINTER_E_UNSUPPORTED naming op, node, backend and failed need. */
CHECKED sinter_status fuse_match(sinter_host *host, const struct fuse_table *t,
                                 const struct graph *graph, const struct fuse_key *key,
                                 const struct fuse_options *options, const struct fuse_ban *ban,
                                 int n_ban, bool notes, struct fuse_result **out,
                                 sinter_error *err);
void fuse_result_free(struct fuse_result *r);

/* A legal order of groups (group ids), in graph order where free; with a seed, a random legal one
 * (tests). order has n_group entries. */
CHECKED sinter_status fuse_order(const struct fuse_result *r, const struct graph *graph,
                                 uint64_t seed, int *order, sinter_error *err);

/* Needs, one by one (match.c and tests). */
bool need_holds(const struct need *need, const struct graph *graph, const struct group *g,
                const struct fuse_key *key);
/* "same_row:A,W", shell-safe. */
void need_print(const struct need *need, struct text_buf *b);

/* Text of `sinter fusion list` and `explain`. */
void fuse_list_print(const struct fuse_table *t, struct text_buf *b, bool json);
void fuse_explain_print(const struct fuse_table *t, const struct graph *graph,
                        const struct fuse_result *r, struct text_buf *b, bool json);

#endif
