/* Filters on sequences, for the one table of filters. */
#ifndef TEXT_JINJA_FILTER_H
#define TEXT_JINJA_FILTER_H

#include "text/jinja/jinja.h"

#define JFILTER(name)                                                                              \
    sinter_status jfilter_##name(struct jinja *j, const struct jargs *raw, struct jv *arg,         \
                                 struct jv *out)
JFILTER(batch);
JFILTER(dictsort);
JFILTER(first);
JFILTER(groupby);
JFILTER(items);
JFILTER(join);
JFILTER(last);
JFILTER(length);
JFILTER(list);
JFILTER(map);
JFILTER(max);
JFILTER(min);
JFILTER(reject);
JFILTER(rejectattr);
JFILTER(reverse);
JFILTER(select);
JFILTER(selectattr);
JFILTER(slice);
JFILTER(sort);
JFILTER(sum);
JFILTER(unique);

/* An int argument, or `fallback` if it was not given. */
CHECKED sinter_status jfilter_int(struct jinja *j, struct jv v, int64_t fallback, int64_t *out);

#endif
