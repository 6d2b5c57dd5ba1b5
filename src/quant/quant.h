/* Block formats of tensors, driven by quants.def. Decoding is bit for bit that of the `gguf`
 * Python package; so is encoding. No other file switches over types: ask quant_row(type). */
#ifndef QUANT_QUANT_H
#define QUANT_QUANT_H

#include "base/status.h"

enum quant_type {
#define QUANT(name, id, elems, bytes, flags) QUANT_##name,
#include "quant/quants.def"
#undef QUANT
    QUANT_N
};

enum quant_flag { QUANT_ENCODE = 1, QUANT_INT8_X = 2, QUANT_FLOAT = 4, QUANT_MIN = 8 };

struct quant_row {
    const char *name; /* "Q4_K" */
    uint32_t gguf_id;
    int block_elems, block_bytes;
    unsigned flags;
    /* n_elem is a multiple of block_elems; src and dst may be unaligned. */
    void (*decode)(const void *src, float *dst, size_t n_elem);
    void (*encode)(const float *src, void *dst, size_t n_elem); /* NULL without QUANT_ENCODE */
};

/* The row of a type: quant_row(QUANT_Q4_K)->block_bytes. */
const struct quant_row *quant_row(enum quant_type type);
/* QUANT_N if sinter has no row for the id. */
enum quant_type quant_from_gguf(uint32_t gguf_id);
/* Name of any type id that GGUF defines ("IQ2_XXS", "MXFP4"), also without a row; NULL: unknown. */
const char *quant_gguf_name(uint32_t gguf_id);
/* Elements and bytes of a block of any type id that GGUF defines; false: unknown. */
bool quant_gguf_block(uint32_t gguf_id, int *block_elems, int *block_bytes);
enum quant_type quant_from_name(const char *name); /* any case; QUANT_N: none */
/* Bytes of n_elem elements (a multiple of the block). */
size_t quant_bytes(enum quant_type type, size_t n_elem);

uint16_t quant_f32_to_f16(float x); /* nearest even, NaN stays NaN */
float quant_f16_to_f32(uint16_t h);
uint16_t quant_f32_to_bf16(float x);
float quant_bf16_to_f32(uint16_t h);

#endif
