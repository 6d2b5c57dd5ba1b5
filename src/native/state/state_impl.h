/* Inside native/state. */
#ifndef NATIVE_STATE_STATE_IMPL_H
#define NATIVE_STATE_STATE_IMPL_H

#include "native/state/state.h"

enum { STATE_MAX_OPEN = 4 };

/* Counted units of one kind: ids 0..n-1, free ones on a stack. */
struct counted {
    int n, n_free;
    int32_t *free_id;
    int32_t *count;
};

struct page_class { /* KV slots of one window share page tables */
    int window;
    struct counted page;
};

struct slot_home {
    struct state_slot slot;
    int class;       /* KV: index of its page class; REC: of its counted slots */
    char *base;      /* KV: pages; REC: slots */
    size_t each;     /* bytes of a page or slot */
    size_t v_offset; /* KV */
};

struct state_pool {
    sinter_host *host;
    struct device_mem mem;
    struct state_options o;
    int n_slot, n_class, n_rec;
    struct slot_home *slot;
    struct page_class *class;
    struct counted *rec; /* [n_rec], one per REC slot */
    int n_seq;
    size_t bytes;
    struct seq *all; /* list of living sequences */
};

struct seq_class { /* a sequence's page table of one class */
    int32_t *page; /* [cap]; page[0] holds first_row */
    int n_page, first_row;
    int valid_row; /* lowest row that holds data: >= first_row after a restore */
};

struct open_step {
    int n_past, n_row;
    int32_t *fresh; /* [n_rec * max n_snap]: slots written by the step, one per snapshot */
};

struct seq {
    struct state_pool *pool;
    int n_row; /* committed */
    int n_open;
    struct open_step open[STATE_MAX_OPEN];
    struct seq_class *class;
    int32_t *rec; /* [n_rec]: committed slot, -1: zero state */
    struct seq *next;
};

int counted_take(struct counted *c); /* -1: none free */
void counted_hold(struct counted *c, int id);
void counted_drop(struct counted *c, int id);
int seq_end(const struct seq *s);                /* committed and open rows */
void seq_release_from(struct seq *s, int n_row); /* pages past n_row rows go back */
/* Pages of a class that a step must take. */
int state_pages_wanted(const struct state_pool *p, const struct batch_seg *g, int class);
/* Rec slot r's number of snapshots. */
int rec_n_snap(const struct state_pool *p, int r);
int rec_max_snap(const struct state_pool *p);

#endif
