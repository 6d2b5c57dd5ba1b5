/* Inside of the dummy generator: what dummy.c lists and dummy_draw.c draws. */
#ifndef MODEL_DUMMY_H
#define MODEL_DUMMY_H

#include "model/internal.h"

/* One stream of random weights. Its bytes depend on seed, name, type and sigma alone, and any
 * range of them can be drawn. */
struct draw {
    enum quant_type type;
    enum tensor_init init;
    uint64_t seed;           /* of the stream: draw_seed(dummy's seed, tensor's name) */
    float sigma;             /* standard deviation of the weights */
    uint16_t d[256], m[256]; /* blocks: f16 scales and minima, picked by a random byte */
};

uint64_t draw_seed(uint64_t seed, const char *name);
/* Refuses, by name, a block format that it cannot draw. */
CHECKED sinter_status draw_init(struct draw *d, enum quant_type type, enum tensor_init init,
                                uint64_t seed, float sigma, sinter_error *err);
void draw_bytes(const struct draw *d, uint64_t offset, void *buf, size_t bytes);

/* Tokens of the small vocabulary; larger ones are filled up. */
int dummy_vocab_small(void);
CHECKED sinter_status dummy_put_vocab(struct gguf_writer *w, struct arena *a, const char *pre,
                                      int n_vocab, sinter_error *err);

#endif
