/* The random weights of dummies, the same bytes on every machine.
 *
 * Hash: 64-bit FNV-1a of the tensor's name, xor the seed. Generator: splitmix64 in counter form,
 * word i = mix(seed + (i + 1) * 0x9e3779b97f4a7c15), so that any range can be drawn. Floats: nearly
 * normal, the sum of the word's four 16-bit fields, centred and scaled (exact in binary32 but for
 * the last product). Blocks: the words' bytes, in which the f16 scale (and minimum) are replaced by
 * one of 256 sane ones. */
#include "model/dummy.h"

#include "base/hash.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 64 }; /* floats drawn at once */

/* Where a block keeps its f16 scale and minimum, and minimum / scale. -1: none. */
struct block_form {
    bool known;
    int d, m;
    float ratio;
};
static const struct block_form forms[QUANT_N] = {
    [QUANT_Q4_0] = {true, 0, -1, 0},    [QUANT_Q4_1] = {true, 0, 2, -7.5F},
    [QUANT_Q5_0] = {true, 0, -1, 0},    [QUANT_Q5_1] = {true, 0, 2, -15.5F},
    [QUANT_Q8_0] = {true, 0, -1, 0},    [QUANT_Q4_K] = {true, 0, 2, 7.5F},
    [QUANT_Q5_K] = {true, 0, 2, 15.5F}, [QUANT_Q6_K] = {true, 208, -1, 0},
};

uint64_t draw_seed(uint64_t seed, const char *name)
{
    return fnv1a(FNV1A_START, name, strlen(name)) ^ seed;
}

static inline uint64_t word(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Sum of four uniform numbers of 16 bits, centred: deviation 65536 / sqrt(3). */
static inline float normal(uint64_t w)
{
    int32_t sum = (int32_t)(w & 0xffff) + (int32_t)(w >> 16 & 0xffff) +
                  (int32_t)(w >> 32 & 0xffff) + (int32_t)(w >> 48);
    return (float)(sum - 131070) * 2.6428996e-5F; /* sqrt(3) / 65536 */
}

static inline float uniform(uint64_t w) /* [0, 1) */
{
    return (float)(w >> 40) * 0x1p-24F;
}

static float draw_float(const struct draw *d, uint64_t i)
{
    uint64_t w = word(d->seed, i);
    switch (d->init) {
    case INIT_EMBED:
    case INIT_LINEAR:
    case INIT_BRANCH:
        return normal(w) * d->sigma;
    case INIT_NORM:
        return 0.9F + 0.2F * uniform(w);
    case INIT_BIAS: /* away from zero, either sign */
        return (w & 1 ? 1.0F : -1.0F) * (0.1F + 0.3F * uniform(w));
    case INIT_FREQ:
        return 1.0F + 3.0F * uniform(w);
    }
    return 0;
}

static void draw_chunk(const struct draw *d, uint64_t chunk, uint8_t *buf)
{
    float x[CHUNK];
    if (d->init != INIT_NORM && d->init != INIT_BIAS && d->init != INIT_FREQ) /* nearly all */
        for (uint64_t i = 0; i < CHUNK; i++)
            x[i] = normal(word(d->seed, chunk * CHUNK + i)) * d->sigma;
    else
        for (uint64_t i = 0; i < CHUNK; i++)
            x[i] = draw_float(d, chunk * CHUNK + i);
    quant_row(d->type)->encode(x, buf, CHUNK);
}

static void draw_block(const struct draw *d, uint64_t block, uint8_t *buf)
{
    const struct block_form *f = &forms[d->type];
    size_t bytes = (size_t)quant_row(d->type)->block_bytes, n = (bytes + 7) / 8;
    uint64_t at = block * n, w;
    for (size_t i = 0; i < bytes / 8; i++) {
        w = word(d->seed, at + i);
        memcpy(buf + i * 8, &w, 8);
    }
    w = word(d->seed, at + n - 1);
    if (bytes % 8)
        memcpy(buf + bytes / 8 * 8, &w, bytes % 8);
    uint8_t pick = buf[f->d];
    memcpy(buf + f->d, &d->d[pick], 2);
    if (f->m >= 0)
        memcpy(buf + f->m, &d->m[pick], 2);
}

/* Deviation of blocks whose scale is `unit` and up to 1/4 away from it. */
static double deviation(const struct draw *d)
{
    enum { BLOCKS = 64, MAX_BYTES = 256, MAX_ELEMS = 256 };
    const struct quant_row *row = quant_row(d->type);
    uint8_t block[MAX_BYTES];
    float x[MAX_ELEMS];
    double sum = 0;
    for (int b = 0; b < BLOCKS; b++) {
        draw_block(d, (uint64_t)b, block);
        row->decode(block, x, (size_t)row->block_elems);
        for (int i = 0; i < row->block_elems; i++)
            sum += (double)x[i] * (double)x[i];
    }
    return sqrt(sum / (BLOCKS * row->block_elems));
}

static void set_scales(struct draw *d, double unit)
{
    for (int i = 0; i < 256; i++) {
        float scale = (float)(unit * (0.75 + i / 512.0));
        d->d[i] = quant_f32_to_f16(scale);
        d->m[i] = quant_f32_to_f16(scale * forms[d->type].ratio);
    }
}

sinter_status draw_init(struct draw *d, enum quant_type type, enum tensor_init init, uint64_t seed,
                        float sigma, sinter_error *err)
{
    *d = (struct draw){.type = type, .init = init, .seed = 0, .sigma = sigma};
    if (!(quant_row(type)->flags & QUANT_FLOAT)) {
        if (!forms[type].known)
            return FAIL(err, UNSUPPORTED,
                        "dummies cannot hold %s: add its scale's place to "
                        "src/model/dummy_draw.c",
                        quant_row(type)->name);
        set_scales(d, 1);
        set_scales(d, (double)sigma / deviation(d)); /* of seed 0: the same for all tensors */
    }
    d->seed = seed;
    return SINTER_OK;
}

void draw_bytes(const struct draw *d, uint64_t offset, void *buf, size_t bytes)
{
    enum { MAX_UNIT = 256 };
    const struct quant_row *row = quant_row(d->type);
    bool is_float = row->flags & QUANT_FLOAT;
    size_t unit = (size_t)row->block_bytes * (is_float ? CHUNK : 1);
    uint8_t *to = buf, part[MAX_UNIT];
    while (bytes > 0) {
        size_t skip = (size_t)(offset % unit), n = unit - skip < bytes ? unit - skip : bytes;
        uint8_t *at = n == unit ? to : part;
        if (is_float)
            draw_chunk(d, offset / unit, at);
        else
            draw_block(d, offset / unit, at);
        if (at == part)
            memcpy(to, part + skip, n);
        to += n;
        offset += n;
        bytes -= n;
    }
}
