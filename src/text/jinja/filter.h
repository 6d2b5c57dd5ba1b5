/* Filters on sequences, for the one table of filters. */
#ifndef TEXT_JINJA_FILTER_H
#define TEXT_JINJA_FILTER_H

#include "text/jinja/jinja.h"

JFN(jfilter_batch);
JFN(jfilter_dictsort);
JFN(jfilter_first);
JFN(jfilter_groupby);
JFN(jfilter_items);
JFN(jfilter_join);
JFN(jfilter_last);
JFN(jfilter_length);
JFN(jfilter_list);
JFN(jfilter_map);
JFN(jfilter_max);
JFN(jfilter_min);
JFN(jfilter_reject);
JFN(jfilter_rejectattr);
JFN(jfilter_reverse);
JFN(jfilter_select);
JFN(jfilter_selectattr);
JFN(jfilter_slice);
JFN(jfilter_sort);
JFN(jfilter_sum);
JFN(jfilter_unique);

#endif
