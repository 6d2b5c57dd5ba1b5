/* The table of formats, expanded from quants.def, and look-ups in it; others.def adds names and
 * sizes of the types without a row. */
#include <strings.h>

#include "quant/block.h"

/* The flag words of quants.def. */
enum {
    FLAG_ENCODE = QUANT_ENCODE,
    FLAG_INT8_X = QUANT_INT8_X,
    FLAG_FLOAT = QUANT_FLOAT,
    FLAG_MIN = QUANT_MIN
};
#define ENCODE FLAG_ENCODE
#define INT8_X FLAG_INT8_X
#define FLOAT  FLAG_FLOAT
#define MIN    FLAG_MIN

static const struct quant_row rows[QUANT_N] = {
/* The condition is constant: a format without ENCODE needs no encoder to link. */
#define QUANT(name, id, elems, bytes, flags)                                                       \
    {#name,                                                                                        \
     id,                                                                                           \
     elems,                                                                                        \
     bytes,                                                                                        \
     flags,                                                                                        \
     quant_decode_##name,                                                                          \
     (flags)&ENCODE ? quant_encode_##name : NULL},
#include "quant/quants.def"
#undef QUANT
};

struct type_size {
    const char *name;
    uint32_t gguf_id;
    int block_elems, block_bytes;
};

static const struct type_size sizes[] = {
#define QUANT(name, id, elems, bytes, flags) {#name, id, elems, bytes},
#define OTHER(name, id, elems, bytes)        {#name, id, elems, bytes},
#include "quant/others.def"
#include "quant/quants.def"
#undef OTHER
#undef QUANT
};

static const struct type_size *find_size(uint32_t gguf_id)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].gguf_id == gguf_id)
            return &sizes[i];
    return NULL;
}

const struct quant_row *quant_row(enum quant_type type)
{
    return &rows[type];
}

enum quant_type quant_from_gguf(uint32_t gguf_id)
{
    for (int i = 0; i < QUANT_N; i++)
        if (rows[i].gguf_id == gguf_id)
            return (enum quant_type)i;
    return QUANT_N;
}

const char *quant_gguf_name(uint32_t gguf_id)
{
    const struct type_size *size = find_size(gguf_id);
    return size ? size->name : NULL;
}

bool quant_gguf_block(uint32_t gguf_id, int *block_elems, int *block_bytes)
{
    const struct type_size *size = find_size(gguf_id);
    if (size) {
        *block_elems = size->block_elems;
        *block_bytes = size->block_bytes;
    }
    return size != NULL;
}

enum quant_type quant_from_name(const char *name)
{
    for (int i = 0; i < QUANT_N; i++)
        if (strcasecmp(rows[i].name, name) == 0)
            return (enum quant_type)i;
    return QUANT_N;
}

size_t quant_bytes(enum quant_type type, size_t n_elem)
{
    return n_elem / (size_t)rows[type].block_elems * (size_t)rows[type].block_bytes;
}
