/* Plans: from a live graph's groups to steps with memory, made once per plan key.
 *
 *   match -> order (score loops adjacent) -> forms -> shares and barriers -> liveness -> offsets
 *   -> FULL (a refusal bans the group and planning starts again) -> after
 *
 * A plan step is a group, or a convert of a value's F32 rows to INT8. A barrier stands before a
 * step that reads what another thread may still be writing; memory is free only past the barrier
 * that follows its last reader. */
#ifndef NATIVE_PLAN_PLAN_H
#define NATIVE_PLAN_PLAN_H

#include "native/native.h"

enum { COL_UNIT = 32 }; /* COL cuts columns at its multiples: a block of INT8, a group of rows */

enum form { FORM_F32, FORM_INT8, FORM_N }; /* ids and tables live as F32: 4 bytes an element */

struct plan_key {
    int row_lo, row_hi; /* rows of TOK */
    int out_cap, seq_cap;
    unsigned ports; /* output ports wanted */
    bool all_rows;
};

struct buf {
    int value;
    enum form form;
    enum share share;  /* how it was written; EACH has n_thread copies */
    int writer;        /* step; -1: a port, written before the first step */
    int last;          /* last step that reads it; n_step: a port */
    int born, dies;    /* interval of steps in which the bytes are taken: [born, dies) */
    size_t bytes, off; /* of one copy */
    int copies;
    int alias; /* the buffer whose bytes it takes over in place; -1 */
};

struct plan_step {
    const struct group *group; /* NULL: converts `value` to INT8 */
    int value;
    enum share share; /* resolved: never ANY */
    int n_head_kv;    /* HEAD: what heads are cut by */
    int loop;         /* > 0: steps of one number run as a loop over row tiles */
    bool barrier;     /* before this step */
    int layer;
    int n_after; /* earlier steps that it must wait for, over bytes and state slots: as few */
    int *after;  /* as will do, since waiting is transitive; ascending */
};

struct plan {
    struct arena arena;
    struct plan_key key;
    struct graph *graph; /* live */
    struct fuse_result *match;
    int n_step;
    struct plan_step *step;
    int n_buf;
    struct buf *buf;
    int *buf_of[FORM_N];     /* [n_value]: buffer or -1 */
    int port[PORT_LAST + 1]; /* [enum port]: its value, -1: not in this plan */
    int n_thread;
    size_t bytes, scratch; /* of all buffers; of one thread's scratch */
    size_t score;          /* of one thread's score tile; 0: no score loop */
    int n_key;             /* most keys a row may see */
    int n_barrier, n_convert, n_ban, n_round;
    uint64_t used; /* clock of last use, for eviction */
};

/* Rows of a value at the key's upper ends. */
static inline int64_t plan_rows_cap(const struct plan *p, const struct value *v)
{
    const int cap[] = {[AXIS_TOK] = p->key.row_hi,
                       [AXIS_OUT] = p->key.out_cap,
                       [AXIS_SEQ] = p->key.seq_cap,
                       [AXIS_ONE] = 1};
    return (int64_t)cap[v->shape.axis] * v->shape.mult;
}

/* INT8 rows in a buffer: codes, then scales, then sums; each part begins at a multiple of 64. */
struct int8_parts {
    size_t n_block, scale, sum, bytes;
};
static inline struct int8_parts plan_int8_parts(const struct plan *p, const struct value *v)
{
    const size_t n_block = ((size_t)row_len(v) + 31) / 32;
    const size_t n = (size_t)plan_rows_cap(p, v) * n_block;
    const size_t code = (n * 32 + 63) & ~(size_t)63, word = (n * 4 + 63) & ~(size_t)63;
    return (struct int8_parts){n_block, code, code + word, code + 2 * word};
}

struct plan_options {
    int n_thread;
    int n_key; /* most keys a row may see: the context */
    struct fuse_options fuse;
    bool notes;                                     /* keep fuse_match's notes, for explain */
    uint64_t order_seed;                            /* tests: a random legal order */
    void (*offsets)(struct plan *p, uint64_t seed); /* tests: hostile offsets instead of ours */
    uint64_t offsets_seed;
};

/* Groups with bits of their own that FULL refused, by node of the whole graph. */
struct plan_bans {
    int n;
    struct fuse_ban *ban;
    size_t cap;
};

/* `bans` are added to; own_ban says that a group with bits of its own was banned (then every other
 * plan of the graph must go, so that all take the same). */
CHECKED sinter_status plan_create(sinter_host *host, const struct native_kind *kind,
                                  const struct fuse_table *table, const struct graph *graph,
                                  const struct plan_key *key, const struct plan_options *o,
                                  struct plan_bans *bans, bool *own_ban, struct plan **out,
                                  sinter_error *err);
void plan_free(struct plan *p);

/* One line a step, as `sinter plan` shows it; or JSON. */
void plan_print(const struct plan *p, struct text_buf *b, bool json);
/* Barriers in one repetition of the layer that has most. */
int plan_barriers_per_layer(const struct plan *p);

#endif
