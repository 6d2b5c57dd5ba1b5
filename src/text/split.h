/* Pre-tokenizers by name: rows of pretokenizers.def. */
#ifndef TEXT_SPLIT_H
#define TEXT_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct split_text {
    const uint8_t *class; /* unicode_classes */
    const char *text;
    size_t bytes;
    uint64_t work; /* characters looked at, for the test of linear time */
};

enum { SPLIT_IGNORE_MERGES = 1, SPLIT_ADD_BOS = 2 };

struct split_row {
    const char *name;
    /* End of the word that begins at pos < bytes; always > pos. Any bytes are legal. */
    size_t (*next)(struct split_text *t, size_t pos);
    unsigned flags;
};
extern const struct split_row split_rows[];
extern const int split_n_row;

const struct split_row *split_find(const char *name, size_t bytes); /* NULL: unknown */
const char *split_nearest(const char *name); /* the known name nearest to it, or NULL */

#endif
