/* The options' rows, and what they come to, as a program sees them. */
#include "base/host.h"
#include "base/options.h"
#include "base/pool.h"

bool sinter_option_at(int32_t i, sinter_option *out)
{
    static const char *const value[] = {
        [OPTION_BOOL] = "", [OPTION_INT] = "N", [OPTION_TEXT] = "TEXT"};
    if (i < 0 || i >= option_n_row)
        return false;
    const struct option_row *row = &option_rows[i];
    const bool is_switch = row->type == OPTION_BOOL;
    *out = (sinter_option){.name = row->name,
                           .value = value[row->type],
                           .def = !is_switch         ? row->def
                                  : *row->def == '1' ? "on"
                                                     : "off",
                           .help = row->help};
    return true;
}

int32_t sinter_host_n_thread(sinter_host *host)
{
    struct pool *pool;
    return host_pool(host, &pool, NULL) == SINTER_OK ? pool_n_thread(pool) : 1;
}
