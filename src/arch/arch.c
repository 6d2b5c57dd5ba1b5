/* Finds descriptors: the families of archs.def one after another. */
#include "arch/arch.h"

#include <stdio.h>
#include <string.h>

static const struct arch_desc *const families[] = {
#define FAMILY(name) arch_##name,
#include "arch/archs.def"
#undef FAMILY
};

const struct arch_desc *arch_at(int i)
{
    if (i < 0)
        return NULL;
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++)
        for (const struct arch_desc *a = families[f]; a->name; a++)
            if (i-- == 0)
                return a;
    return NULL;
}

const struct arch_desc *arch_find(const char *name)
{
    const struct arch_desc *a;
    for (int i = 0; (a = arch_at(i)) != NULL; i++)
        if (strcmp(a->name, name) == 0)
            return a;
    return NULL;
}

void arch_names(char *text, size_t bytes)
{
    const struct arch_desc *a;
    text[0] = 0;
    for (int i = 0; (a = arch_at(i)) != NULL; i++) {
        size_t n = strlen(text);
        snprintf(text + n, bytes - n, "%s%s", i ? ", " : "", a->name);
    }
}
