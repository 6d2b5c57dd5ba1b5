/* Inside the fuse module. */
#ifndef FUSE_INTERNAL_H
#define FUSE_INTERNAL_H

#include "fuse/fuse.h"

/* Why the need says nothing on this row (its name is unknown there, or the shape rules make it
 * always or never true), or NULL. Such a need is an error at start. */
const char *need_wrong(const struct need *need, const struct fuse_row *row);
int need_count(const struct need *needs); /* of an array of 6, ended by NEED_NONE */

/* Does need_print write exactly this? */
bool need_is(const struct need *need, const char *text, size_t bytes);

/* The variant of two or more nodes with this label; SINTER_E_USAGE names the nearest one. */
CHECKED sinter_status fuse_label(sinter_host *host, const struct fuse_table *t, const char *label,
                                 size_t bytes, const struct fuse_variant **out, sinter_error *err);

const char *fuse_why_name(enum fuse_why why);
/* One line of a backend in words: "line 2: same, row". */
void fuse_line_print(const struct fuse_list *list, const struct fuse_line *line,
                     struct text_buf *b);

enum { FUSE_N_NEED = 6 };

#endif
