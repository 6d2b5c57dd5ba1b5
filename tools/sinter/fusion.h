/* Options of the three parts of `sinter fusion`. */
#ifndef FUSION_H
#define FUSION_H

#include "tool.h"

struct fusion_args {
    const char *model;
    const char *baseline, *work, *models; /* check */
    bool json, record, list;
};

CHECKED sinter_status fusion_check(struct tool *t);

#endif
