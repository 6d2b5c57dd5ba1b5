/* Structs of options and results that cross the library's border: the first member of each is its
 * size. */
#include "run/run.h"

sinter_status options_copy(void *dst, size_t bytes, const void *src, sinter_error *err)
{
    size_t size = 0;
    memset(dst, 0, bytes);
    if (!src)
        return SINTER_OK;
    memcpy(&size, src, sizeof size);
    if (size && size < sizeof size)
        return FAIL(err, USAGE,
                    "an option struct of %zu bytes is shorter than its first member; set that to "
                    "sizeof the struct",
                    size);
    if (size > bytes)
        return FAIL(err, USAGE,
                    "an option struct of %zu bytes, this library knows %zu: it was built with a "
                    "newer sinter.h than the library",
                    size, bytes);
    memcpy(dst, src, size ? size : bytes);
    return SINTER_OK;
}

void result_copy(void *dst, const void *src, size_t bytes)
{
    size_t size = 0;
    memcpy(&size, dst, sizeof size);
    size = size && size < bytes ? size : bytes;
    if (size > sizeof size)
        memcpy((char *)dst + sizeof size, (const char *)src + sizeof size, size - sizeof size);
}
