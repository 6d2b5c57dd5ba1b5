/* The backends of this build, from backends.def. */
#include "backend/backend.h"

#include <string.h>

#define BACKEND(name) extern const struct backend backend_##name;
#include "backend/backends.def"
#undef BACKEND

const struct backend *const backend_list[] = {
#define BACKEND(name) &backend_##name,
#include "backend/backends.def"
#undef BACKEND
};
const int backend_n = (int)(sizeof backend_list / sizeof backend_list[0]);

sinter_status backend_find(const char *name, const struct backend **out, sinter_error *err)
{
    char names[256] = "";
    for (int i = 0; i < backend_n; i++) {
        if (strcmp(backend_list[i]->name, name) == 0) {
            *out = backend_list[i];
            return SINTER_OK;
        }
        if (strlen(names) + strlen(backend_list[i]->name) + 3 < sizeof names) {
            strcat(names, i ? ", " : "");
            strcat(names, backend_list[i]->name);
        }
    }
    return FAIL(err, DEVICE, "backend '%s' is not in this build; there are: %s", name, names);
}
