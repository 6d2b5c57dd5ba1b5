/* Inside the fuse module: the state of one matching. */
#ifndef FUSE_MATCH_H
#define FUSE_MATCH_H

#include "fuse/internal.h"

/* LABEL.need of --ignore-need, resolved. */
struct fuse_ignore {
    const struct fuse_variant *variant;
    const char *need;
    size_t bytes;
};

struct matcher {
    sinter_host *host;
    const struct fuse_table *table;
    const struct graph *graph;
    const struct fuse_key *key;
    const struct fuse_options *options;
    const struct fuse_ban *ban;
    int n_ban;
    struct fuse_result *result;
    struct group *group; /* taken ones, in the order taken; [n_node] */
    int n_group;
    int *group_of; /* [n_node]; -1: free */
    int *replacer; /* [n_value]: node that replaces the state version, or -1 */
    int *stamp;    /* [n_node]: of the cycle search */
    int *stack;    /* [n_node] */
    int stamp_now;
    bool *disabled; /* [n_variant] */
    struct fuse_ignore *ignore;
    int n_ignore;
    int cap_note;
};

/* A search for one variant from one anchor. accept says whether a whole candidate is taken; false
 * goes on searching. */
struct trial {
    const struct matcher *m;
    struct group group; /* bound so far; value -1 = not yet */
    bool free_only;     /* members must not be in a group */
    bool (*accept)(struct trial *t);
    void *ctx;
    int deepest, broke_at; /* most nodes bound at once, and the node after which nothing fitted */
    int leak;              /* the last value that leaked out of a whole candidate; -1 */
};

bool trial_run(struct trial *t, const struct matcher *m, const struct fuse_variant *v, int anchor,
               bool free_only, bool (*accept)(struct trial *t), void *ctx);
/* The first need of the row or the line that fails, or NULL. */
const struct need *match_need(const struct matcher *m, const struct group *g,
                              const struct fuse_line *line);
bool match_banned(const struct matcher *m, const struct group *g, const struct fuse_line *line);
/* Counts of refused and lost, and with notes the reasons; after all groups are taken. */
CHECKED sinter_status match_diagnose(struct matcher *m, bool notes, sinter_error *err);
/* options->disable, ignore_need and stats into m; unknown labels and needs are SINTER_E_USAGE. */
CHECKED sinter_status match_options(struct matcher *m, sinter_error *err);

#endif
