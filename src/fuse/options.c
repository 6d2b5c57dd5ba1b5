/* --disable, --ignore-need and set_enabled, resolved against the table. A label or a need that does
 * not exist is refused, never skipped. */
#include "fuse/match.h"

#include "base/options.h"
#include "fuse/stats.h"

#include <string.h>

sinter_status fuse_label(sinter_host *host, const struct fuse_table *t, const char *label,
                         size_t bytes, const struct fuse_variant **out, sinter_error *err)
{
    const char **name;
    for (int v = 0; v < t->n_variant; v++) {
        if (strlen(t->variant[v].label) != bytes || memcmp(t->variant[v].label, label, bytes) != 0)
            continue;
        if (v >= t->n_single)
            return FAIL(err, USAGE, "%.*s is a single operation: only fusions are switched off",
                        (int)bytes, label);
        *out = &t->variant[v];
        return SINTER_OK;
    }
    char text[128];
    bytes = bytes < sizeof text ? bytes : sizeof text - 1;
    memcpy(text, label, bytes);
    text[bytes] = 0;
    NEW(host, name, t->n_single + 1, err);
    for (int v = 0; v < t->n_single; v++)
        name[v] = t->variant[v].label;
    const char *near = options_nearest(text, name, t->n_single);
    host_free(host, name);
    return FAIL(err, USAGE, "there is no fusion %s%s%s; `sinter fusion list` shows all", text,
                near ? "; did you mean " : "", near ? near : "");
}

/* The next item of a comma-separated list, blanks cut off; false at the end. */
static bool next_item(const char **list, const char **item, size_t *bytes)
{
    while (**list == ',' || **list == ' ')
        (*list)++;
    *item = *list;
    *bytes = strcspn(*list, ",");
    *list += *bytes;
    while (*bytes && (*item)[*bytes - 1] == ' ')
        (*bytes)--;
    return *bytes > 0;
}

static bool has_need(const struct fuse_table *t, const struct fuse_row *row, const char *need,
                     size_t bytes)
{
    for (int i = 0; i < need_count(row->need); i++)
        if (need_is(&row->need[i], need, bytes))
            return true;
    for (int l = 0; l < t->list->n_line; l++)
        for (int i = 0;
             t->variant[t->of_line[l].first].row == row && i < need_count(t->list->line[l].need);
             i++)
            if (need_is(&t->list->line[l].need[i], need, bytes))
                return true;
    return false;
}

static sinter_status ignore_add(struct matcher *m, const char *item, size_t bytes,
                                sinter_error *err)
{
    struct fuse_ignore *to = &m->ignore[m->n_ignore];
    const char *dot = memchr(item, '.', bytes);
    if (!dot)
        return FAIL(err, USAGE, "ignore-need %.*s: write LABEL.need", (int)bytes, item);
    TRY(fuse_label(m->host, m->table, item, (size_t)(dot - item), &to->variant, err));
    to->need = dot + 1;
    to->bytes = bytes - (size_t)(dot + 1 - item);
    if (!has_need(m->table, to->variant->row, to->need, to->bytes))
        return FAIL(err, USAGE, "ignore-need: %s has no need %.*s; `sinter fusion list` shows all",
                    to->variant->label, (int)to->bytes, to->need);
    m->n_ignore++;
    return SINTER_OK;
}

/* A need may hold commas (same_row:A,W): what has no dot belongs to the item before it. */
static sinter_status ignores(struct matcher *m, const char *list, sinter_error *err)
{
    const char *item, *more;
    size_t bytes, more_bytes, n = 1;
    for (const char *c = list; *c; c++)
        n += *c == ',';
    NEW(m->host, m->ignore, n, err);
    bool have = next_item(&list, &item, &bytes);
    while (have) {
        have = next_item(&list, &more, &more_bytes);
        if (have && !memchr(more, '.', more_bytes)) {
            bytes = (size_t)(more + more_bytes - item);
            continue;
        }
        TRY(ignore_add(m, item, bytes, err));
        item = more;
        bytes = more_bytes;
    }
    return SINTER_OK;
}

sinter_status match_options(struct matcher *m, sinter_error *err)
{
    const struct fuse_options *o = m->options;
    const char *list = o->disable ? o->disable : "", *item;
    size_t bytes;
    while (next_item(&list, &item, &bytes)) {
        const struct fuse_variant *v;
        TRY(fuse_label(m->host, m->table, item, bytes, &v, err));
        m->disabled[v->id] = true;
    }
    for (int v = 0; o->stats && v < m->table->n_single; v++)
        m->disabled[v] |= !fuse_stats_enabled(o->stats, v);
    return o->ignore_need && o->ignore_need[0] ? ignores(m, o->ignore_need, err) : SINTER_OK;
}

sinter_status fuse_options_check(sinter_host *host, const struct fuse_table *t,
                                 const struct fuse_options *options, sinter_error *err)
{
    struct matcher m = {.host = host, .table = t, .options = options};
    NEW(host, m.disabled, t->n_variant, err);
    const sinter_status status = match_options(&m, err);
    host_free(host, m.disabled);
    host_free(host, m.ignore);
    return status;
}
