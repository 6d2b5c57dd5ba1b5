/* GGUF files, versions 2 and 3: reader and writer. The file is hostile: every count, length,
 * offset and product is checked, errors name the byte offset, and the reader asks for at most
 * 2 x file size + 256 KiB of memory. Nothing is mapped; tensor data is read with pread. */
#ifndef GGUF_GGUF_H
#define GGUF_GGUF_H

#include "base/host.h"
#include "quant/quant.h"

/* clang-format off */
enum gguf_type { /* the file's ids */
    GGUF_U8, GGUF_I8, GGUF_U16, GGUF_I16, GGUF_U32, GGUF_I32, GGUF_F32, GGUF_BOOL,
    GGUF_STRING, GGUF_ARRAY, GGUF_U64, GGUF_I64, GGUF_F64, GGUF_N_TYPE
};
/* clang-format on */

struct gguf_string { /* text[bytes] is NUL; may hold NULs */
    const char *text;
    size_t bytes;
};

struct gguf_value {
    enum gguf_type type; /* GGUF_ARRAY: elem_type and n hold; arrays of arrays are refused */
    enum gguf_type elem_type;
    size_t n;         /* elements of an array; 1 for a scalar */
    const void *data; /* packed scalars (aligned), or struct gguf_string[n] */
};

struct gguf_kv {
    const char *key;
    struct gguf_value value;
    uint64_t offset;
};

struct gguf_tensor {
    const char *name;
    uint32_t type_id;     /* as in the file */
    enum quant_type type; /* QUANT_N if sinter cannot decode it */
    int n_dim;            /* 1..4 */
    int64_t dim[4];       /* dim[0] = row length (fastest); missing ones are 1 */
    uint64_t offset;      /* absolute in the file */
    uint64_t bytes;       /* 0 if the type's block size is not known */
};

struct gguf {
    sinter_host *host;
    char *path;
    int handle; /* open for pread until gguf_close */
    uint64_t file_bytes;
    uint32_t version, alignment;
    size_t n_kv, n_tensor;
    struct gguf_kv *kv;
    struct gguf_tensor *tensor;
    uint64_t data_offset;
    void *priv; /* keys and tensors sorted by name, and all that they point to */
};

CHECKED sinter_status gguf_open(sinter_host *host, const char *path, struct gguf **out,
                                sinter_error *err);
void gguf_close(struct gguf *g);

const struct gguf_kv *gguf_find(const struct gguf *g, const char *key);
const struct gguf_tensor *gguf_find_tensor(const struct gguf *g, const char *name);

/* Typed getters: absent gives NOT_FOUND (naming key and file), another type DATA. */
CHECKED sinter_status gguf_get_bool(const struct gguf *g, const char *key, bool *out,
                                    sinter_error *err);
CHECKED sinter_status gguf_get_string(const struct gguf *g, const char *key,
                                      struct gguf_string *out, sinter_error *err);
/* The value as an array of n elements of elem_type exactly. */
CHECKED sinter_status gguf_get_array(const struct gguf *g, const char *key,
                                     enum gguf_type elem_type, const struct gguf_value **out,
                                     sinter_error *err);
/* Element i of a scalar or array (a scalar answers for every i) as int64 or double: integers of any
 * width if the value fits, as double also floats. */
CHECKED sinter_status gguf_value_int(const struct gguf_kv *kv, size_t i, int64_t *out,
                                     sinter_error *err);
CHECKED sinter_status gguf_value_float(const struct gguf_kv *kv, size_t i, double *out,
                                       sinter_error *err);

/* Bytes [offset, offset + bytes) of the tensor's data. */
CHECKED sinter_status gguf_read(const struct gguf *g, const struct gguf_tensor *t, uint64_t offset,
                                void *buf, size_t bytes, sinter_error *err);
const char *gguf_type_name(enum gguf_type type);

/* Header, keys (long arrays and texts abbreviated) and tensors, as text or as one JSON object.
 * The JSON holds scalars in full; of arrays type, length and the first elements. */
struct text_buf;
void gguf_print(const struct gguf *g, struct text_buf *b, bool json);

/* ---- Writer: first all keys and tensors, then the data in the same order. ------------------- */
struct gguf_writer;
CHECKED sinter_status gguf_writer_create(sinter_host *host, struct gguf_writer **out,
                                         sinter_error *err);
void gguf_writer_free(struct gguf_writer *w);
CHECKED sinter_status gguf_put_u32(struct gguf_writer *w, const char *key, uint32_t v,
                                   sinter_error *err);
CHECKED sinter_status gguf_put_bool(struct gguf_writer *w, const char *key, bool v,
                                    sinter_error *err);
CHECKED sinter_status gguf_put_string(struct gguf_writer *w, const char *key, const char *text,
                                      size_t bytes, sinter_error *err);
/* n packed scalars of elem_type, or n struct gguf_string. */
CHECKED sinter_status gguf_put_array(struct gguf_writer *w, const char *key,
                                     enum gguf_type elem_type, const void *data, size_t n,
                                     sinter_error *err);
CHECKED sinter_status gguf_put_value(struct gguf_writer *w, const char *key,
                                     const struct gguf_value *v, sinter_error *err);
CHECKED sinter_status gguf_put_tensor(struct gguf_writer *w, const char *name, enum quant_type type,
                                      int n_dim, const int64_t *dim, sinter_error *err);
/* Writes header and keys, then asks `fill` for each tensor's bytes in pieces of at most 1 MiB. */
typedef sinter_status (*gguf_fill_fn)(void *ctx, int tensor, uint64_t offset, void *buf,
                                      size_t bytes, sinter_error *err);
CHECKED sinter_status gguf_writer_save(struct gguf_writer *w, const char *path, gguf_fill_fn fill,
                                       void *ctx, sinter_error *err);

#endif
