/* Dummy models. A shape is a set of metadata keys; from them the same plan is made as from a file,
 * and from the plan and tensors.def the tensors: so a new descriptor, key or tensor row needs
 * nothing here. Sizes of the small ones expose mistakes: heads x size is not the width, K and V
 * differ, RoPE turns a part of a head where the family allows it, layers differ, sizes are no
 * multiples of vector lengths, windows are shorter than prompts, epsilons and caps are large
 * enough to be seen. */
#include "model/dummy.h"

#include "base/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct dummy_shape {
    const char *name; /* of a like; NULL for small ones */
    const char *arch, *pre;
    double key[KEY_N]; /* 0: not written; families take what they use */
    struct {
        enum key_id key;
        int n, v[4];
    } list[2]; /* per-layer arrays */
    const char *scaling;
    int n_vocab; /* 0: as many as the small vocabulary has */
    bool untied, freqs, optional, fused;
    /* Of routers only. With 8-bit activations a router's scores move by some 0.005 of their
     * deviation; were the last chosen expert no further ahead of the next one, another would be
     * chosen than on ref and the logits would part by far more than the kernels do. Under these
     * seeds no choice in the texts of `fusion check` and `verify` is closer than 0.02. */
    uint64_t router_seed;
};

/* DUMMY_FUSED is DUMMY_F32 in fused tensors. */
static const struct dummy_shape small_shapes[DUMMY_N_KIND] = {
    [DUMMY_MIXED] =
        {
            .key = {[KEY_BLOCK_COUNT] = 4,
                    [KEY_WIDTH] = 256,
                    [KEY_CONTEXT] = 512,
                    [KEY_HEAD] = 4,
                    [KEY_D_K] = 96,
                    [KEY_D_V] = 64,
                    [KEY_ROT] = 64,
                    [KEY_EPS] = 0.0625,
                    [KEY_BASE] = 500,
                    [KEY_FACTOR] = 4,
                    [KEY_WINDOW] = 24,
                    [KEY_PATTERN] = 3,
                    [KEY_FINAL_CAP] = 2,
                    [KEY_EXPERT] = 8,
                    [KEY_EXPERT_USED] = 2,
                    [KEY_FF_EXP] = 96},
            .list = {{KEY_FF, 4, {512, 288, 512, 288}}, {KEY_HEAD_KV, 4, {2, 4, 1, 2}}},
            .scaling = "linear",
            .untied = true,
            .router_seed = 875,
        },
    [DUMMY_F32] =
        {
            .key = {[KEY_BLOCK_COUNT] = 2,
                    [KEY_WIDTH] = 16,
                    [KEY_CONTEXT] = 512,
                    [KEY_HEAD] = 4,
                    [KEY_D_K] = 8,
                    [KEY_D_V] = 12,
                    [KEY_ROT] = 6,
                    [KEY_EPS] = 0.03125,
                    [KEY_WINDOW] = 6,
                    [KEY_PATTERN] = 2,
                    [KEY_EXPERT] = 8,
                    [KEY_EXPERT_USED] = 2,
                    [KEY_FF_EXP] = 6},
            .list = {{KEY_FF, 2, {24, 40}}, {KEY_HEAD_KV, 2, {2, 1}}},
        },
    [DUMMY_OPTIONAL] =
        {
            .key = {[KEY_BLOCK_COUNT] = 3,  [KEY_WIDTH] = 64,     [KEY_CONTEXT] = 512,
                    [KEY_HEAD] = 6,         [KEY_HEAD_KV] = 2,    [KEY_D_K] = 32,
                    [KEY_D_V] = 32,         [KEY_ROT] = 24,       [KEY_EPS] = 0.125,
                    [KEY_SCALE] = 0.2,      [KEY_BASE] = 300,     [KEY_BASE_SWA] = 60,
                    [KEY_SCALE_LINEAR] = 2, [KEY_WINDOW] = 16,    [KEY_PATTERN] = 2,
                    [KEY_FINAL_CAP] = 3,    [KEY_EXPERT] = 8,     [KEY_EXPERT_USED] = 3,
                    [KEY_FF_EXP] = 32,      [KEY_EXPERT_NORM] = 1},
            .list = {{KEY_FF, 3, {96, 160, 128}}},
            .untied = true,
            .freqs = true,
            .optional = true,
            .router_seed = 1939,
        },
};

static const struct dummy_shape like_shapes[] = {
    {.name = "qwen3-0.6b",
     .arch = "qwen3",
     .pre = "qwen2",
     .n_vocab = 151936,
     .key = {[KEY_BLOCK_COUNT] = 28,
             [KEY_WIDTH] = 1024,
             [KEY_CONTEXT] = 40960,
             [KEY_FF] = 3072,
             [KEY_HEAD] = 16,
             [KEY_HEAD_KV] = 8,
             [KEY_D_K] = 128,
             [KEY_D_V] = 128,
             [KEY_EPS] = 1e-6,
             [KEY_BASE] = 1e6}},
    {.name = "qwen3-8b",
     .arch = "qwen3",
     .pre = "qwen2",
     .n_vocab = 151936,
     .untied = true,
     .key = {[KEY_BLOCK_COUNT] = 36,
             [KEY_WIDTH] = 4096,
             [KEY_CONTEXT] = 40960,
             [KEY_FF] = 12288,
             [KEY_HEAD] = 32,
             [KEY_HEAD_KV] = 8,
             [KEY_D_K] = 128,
             [KEY_D_V] = 128,
             [KEY_EPS] = 1e-6,
             [KEY_BASE] = 1e6}},
    {.name = "llama-3.2-1b",
     .arch = "llama",
     .pre = "llama-bpe",
     .n_vocab = 128256,
     .freqs = true,
     .key = {[KEY_BLOCK_COUNT] = 16,
             [KEY_WIDTH] = 2048,
             [KEY_CONTEXT] = 131072,
             [KEY_FF] = 8192,
             [KEY_HEAD] = 32,
             [KEY_HEAD_KV] = 8,
             [KEY_D_K] = 64,
             [KEY_D_V] = 64,
             [KEY_ROT] = 64,
             [KEY_EPS] = 1e-5,
             [KEY_BASE] = 5e5}},
};
enum { N_LIKE = sizeof like_shapes / sizeof like_shapes[0] };
const char *const dummy_likes[] = {"qwen3-0.6b", "qwen3-8b", "llama-3.2-1b", NULL};

const char *dummy_kind_name(enum dummy_kind kind)
{
    static const char *const names[DUMMY_N_KIND] = {"mixed", "f32", "fused", "optional"};
    return (unsigned)kind < DUMMY_N_KIND ? names[kind] : "?";
}

bool dummy_small(int i, struct dummy_options *o, char name[64])
{
    const struct arch_desc *a = i < 0 ? NULL : arch_at(i / DUMMY_N_KIND);
    if (!a)
        return false;
    *o = (struct dummy_options){.arch = a->name, .kind = (enum dummy_kind)(i % DUMMY_N_KIND)};
    snprintf(name, 64, "%s-%s", a->name, dummy_kind_name(o->kind));
    return true;
}

/* ---- The dummy in the making ---------------------------------------------------------------- */

struct dummy_tensor {
    int n_part, n_mat;
    struct draw part[FUSED_MAX];
    uint64_t part_bytes[FUSED_MAX]; /* of one matrix */
};

struct dummy {
    struct model m;   /* arena and plan; the rest is not used */
    struct gguf gguf; /* for messages */
    struct gguf_kv kv[KEY_N];
    struct gguf_writer *w;
    const struct dummy_options *o;
    struct dummy_shape shape;
    int n_tensor, n_type;
    struct dummy_tensor *tensor;
};

static double key_value(const struct dummy *d, enum key_id id)
{
    const struct dummy_shape *s = &d->shape;
    if (id == KEY_VOCAB)
        return d->m.plan.n_vocab;
    if (id == KEY_ROT && s->key[KEY_ROT] != 0 && !d->m.plan.arch->rope_partial)
        return s->key[KEY_D_K];
    return s->key[id];
}

static sinter_status no_memory(sinter_error *err)
{
    return FAIL(err, MEMORY, "no memory to make a dummy model");
}

/* The value of one key, or *v stays without data if the shape does not have it. */
static sinter_status make_value(struct dummy *d, enum key_id id, struct gguf_value *v,
                                sinter_error *err)
{
    static const enum gguf_type types[] = {GGUF_U32, GGUF_F32, GGUF_BOOL, GGUF_STRING};
    const struct dummy_shape *s = &d->shape;
    double x = key_value(d, id);
    for (size_t i = 0; i < 2; i++)
        if (s->list[i].n && s->list[i].key == id) {
            *v = (struct gguf_value){GGUF_ARRAY, GGUF_I32, (size_t)s->list[i].n, s->list[i].v};
            return SINTER_OK;
        }
    if (id == KEY_SCALING ? !s->scaling : x == 0)
        return SINTER_OK;
    void *data = arena_alloc(&d->m.arena, sizeof(struct gguf_string));
    if (!data)
        return no_memory(err);
    switch (key_rows[id].type) {
    case KEY_INT:
        *(uint32_t *)data = (uint32_t)x;
        break;
    case KEY_FLOAT:
        *(float *)data = (float)x;
        break;
    case KEY_BOOL:
        *(uint8_t *)data = x != 0;
        break;
    case KEY_TEXT:
        *(struct gguf_string *)data = (struct gguf_string){s->scaling, strlen(s->scaling)};
        break;
    }
    *v = (struct gguf_value){types[key_rows[id].type], types[key_rows[id].type], 1, data};
    return SINTER_OK;
}

/* Keys of the shape that the family reads: into the file, and into a plan. */
static sinter_status put_keys(struct dummy *d, sinter_error *err)
{
    struct keys k = {{NULL}};
    const char *arch = d->m.plan.arch->name;
    for (int id = 0; id < KEY_N; id++) {
        struct gguf_kv *kv = &d->kv[id];
        if (!key_rows[id].use(d->m.plan.arch))
            continue;
        TRY(make_value(d, (enum key_id)id, &kv->value, err));
        if (!kv->value.data)
            continue;
        kv->key = arena_printf(&d->m.arena, "%s.%s", arch, key_rows[id].name);
        if (!kv->key)
            return no_memory(err);
        TRY(gguf_put_value(d->w, kv->key, &kv->value, err));
        k.kv[id] = kv;
    }
    d->m.plan.n_layer = (int)d->shape.key[KEY_BLOCK_COUNT];
    return plan_make(&d->m, &k, err);
}

/* ---- Tensors -------------------------------------------------------------------------------- */

static bool wanted(const struct dummy *d, enum tensor_id id)
{
    enum tensor_need need = tensor_rows[id].need(d->m.plan.arch);
    if (id == W_OUTPUT)
        return d->shape.untied;
    if (id == W_ROPE_FREQS)
        return d->shape.freqs && need != TENSOR_NEVER;
    return need == TENSOR_MUST || (need == TENSOR_MAY && d->shape.optional);
}

/* What llama.cpp's Q4_K_M gives a tensor: more bits for every third value and down matrix. */
static enum quant_type type_q4_k_m(const struct dummy *d, enum tensor_id id, int layer)
{
    int n = d->m.plan.n_layer;
    bool more = layer < n / 8 || layer >= 7 * n / 8 || (layer - n / 8) % 3 == 2;
    if (id == W_TOKEN_EMBD || id == W_OUTPUT)
        return QUANT_Q6_K;
    return more && (id == W_V || id == W_DOWN || id == W_DOWN_EXPS) ? QUANT_Q6_K : QUANT_Q4_K;
}

/* Rows that blocks do not fill fall back, as in llama.cpp. */
static enum quant_type fitting(enum quant_type type, int64_t cols)
{
    if (cols % quant_row(type)->block_elems == 0)
        return type;
    if (cols % 32)
        return QUANT_F16;
    return type == QUANT_Q4_K ? QUANT_Q5_0 : type == QUANT_Q5_K ? QUANT_Q5_1 : QUANT_Q8_0;
}

static enum quant_type type_of(struct dummy *d, enum tensor_id id, int layer, int64_t cols)
{
    static const enum quant_type simple[] = {QUANT_Q4_0, QUANT_Q4_1, QUANT_Q5_0, QUANT_Q5_1,
                                             QUANT_Q8_0, QUANT_F16,  QUANT_BF16};
    enum quant_type type;
    if (tensor_rows[id].kind == KIND_VECTOR || id == W_ROUTER)
        return QUANT_F32;
    if (d->o->like) { /* the head, also as a tied embedding, gets more bits than 4 */
        type = quant_from_name(d->o->type);
        bool head = id == (d->shape.untied ? W_OUTPUT : W_TOKEN_EMBD);
        return fitting(type == QUANT_Q4_0 && head ? QUANT_Q6_K : type, cols);
    }
    if (d->o->kind == DUMMY_MIXED)
        return fitting(type_q4_k_m(d, id, layer), cols);
    if (d->o->kind == DUMMY_OPTIONAL)
        return fitting(simple[d->n_type++ % (int)(sizeof simple / sizeof simple[0])], cols);
    return QUANT_F32;
}

/* One part: its stream, and its bytes per matrix. Embeddings are N(0,1) after the family's factor,
 * matrices keep the size of what they multiply. */
static sinter_status add_part(struct dummy *d, struct dummy_tensor *t, enum tensor_id id, int layer,
                              enum quant_type type, sinter_error *err)
{
    const struct tensor_row *row = &tensor_rows[id];
    const struct model_plan *p = &d->m.plan;
    int64_t rows = tensor_size(p, layer, row->rows), cols = tensor_size(p, layer, row->cols);
    char name[TENSOR_NAME_BYTES];
    uint64_t seed = draw_seed(d->o->seed ^ (id == W_ROUTER ? d->shape.router_seed : 0),
                              tensor_name(p, layer, row->name, name));
    float sigma = row->init == INIT_EMBED ? 1 / p->emb_scale : 1 / sqrtf((float)cols);
    if (row->init == INIT_BRANCH)
        sigma /= sqrtf(2 * (float)p->n_layer);
    TRY(draw_init(&t->part[t->n_part], type, row->init, seed, sigma, err));
    t->part_bytes[t->n_part++] = quant_bytes(type, (size_t)(rows * cols));
    return SINTER_OK;
}

static sinter_status put_tensor(struct dummy *d, const char *row_name, const enum tensor_id *part,
                                int n_part, int layer, sinter_error *err)
{
    const struct tensor_row *row = &tensor_rows[part[0]];
    const struct model_plan *p = &d->m.plan;
    struct dummy_tensor *t = &d->tensor[d->n_tensor++];
    int64_t cols = tensor_size(p, layer, row->cols), total = 0;
    enum quant_type type = type_of(d, part[0], layer, cols);
    char name[TENSOR_NAME_BYTES];
    t->n_mat = row->kind == KIND_EXPERTS ? (int)tensor_size(p, layer, DIM_EXPERT) : 1;
    for (int i = 0; i < n_part; i++) {
        const struct tensor_row *r = &tensor_rows[part[i]];
        TRY(add_part(d, t, part[i], layer, type, err));
        total += tensor_size(p, layer, row->kind == KIND_VECTOR ? r->cols : r->rows);
    }
    int64_t dim[3] = {row->kind == KIND_VECTOR ? total : cols, total, t->n_mat};
    int n_dim = row->kind == KIND_EXPERTS ? 3 : row->kind == KIND_MATRIX ? 2 : 1;
    return gguf_put_tensor(d->w, tensor_name(p, layer, row_name, name), type, n_dim, dim, err);
}

static const struct fused_row *fused_of(const struct dummy *d, enum tensor_id id, int *part)
{
    for (int f = 0; d->shape.fused && f < fused_n_row; f++)
        for (*part = 0; *part < fused_rows[f].n_part; ++*part)
            if (fused_rows[f].part[*part] == id)
                return &fused_rows[f];
    return NULL;
}

static sinter_status put_tensors(struct dummy *d, sinter_error *err)
{
    const struct model_plan *p = &d->m.plan;
    d->tensor = arena_alloc_n(&d->m.arena, (size_t)(p->n_layer + 1) * W_N, sizeof *d->tensor);
    if (!d->tensor)
        return no_memory(err);
    for (int layer = -1; layer < p->n_layer; layer++)
        for (int i = 0; i < W_N; i++) {
            enum tensor_id id = (enum tensor_id)i;
            int part = 0;
            const struct fused_row *f = fused_of(d, id, &part);
            if ((tensor_rows[id].scope == SCOPE_MODEL) != (layer < 0) || !wanted(d, id))
                continue;
            if (f && part == 0)
                TRY(put_tensor(d, f->name, f->part, f->n_part, layer, err));
            else if (!f)
                TRY(put_tensor(d, tensor_rows[id].name, &id, 1, layer, err));
        }
    return SINTER_OK;
}

/* Matrix after matrix, in each the parts one after another. */
static sinter_status fill(void *ctx, int tensor, uint64_t offset, void *buf, size_t bytes,
                          sinter_error *err)
{
    const struct dummy_tensor *t = &((struct dummy *)ctx)->tensor[tensor];
    uint64_t mat_bytes = 0;
    uint8_t *to = buf;
    (void)err;
    for (int i = 0; i < t->n_part; i++)
        mat_bytes += t->part_bytes[i];
    while (bytes > 0) {
        uint64_t mat = offset / mat_bytes, at = offset % mat_bytes;
        int i = 0;
        while (at >= t->part_bytes[i])
            at -= t->part_bytes[i++];
        uint64_t left = t->part_bytes[i] - at;
        size_t n = left < bytes ? (size_t)left : bytes;
        draw_bytes(&t->part[i], mat * t->part_bytes[i] + at, to, n);
        to += n;
        offset += n;
        bytes -= n;
    }
    return SINTER_OK;
}

/* ---- All of it ------------------------------------------------------------------------------ */

static sinter_status find_arch(struct dummy *d, const char *arch, sinter_error *err)
{
    char known[512];
    d->m.plan.arch = arch ? arch_find(arch) : NULL;
    if (d->m.plan.arch)
        return SINTER_OK;
    arch_names(known, sizeof known);
    return FAIL(err, USAGE, "no architecture is called \"%.64s\"; there are %s", arch ? arch : "",
                known);
}

static sinter_status choose(struct dummy *d, sinter_error *err)
{
    const struct dummy_options *o = d->o;
    const char *arch = o->arch;
    if (o->like) {
        for (int i = 0; i < N_LIKE; i++)
            if (strcmp(like_shapes[i].name, o->like) == 0)
                d->shape = like_shapes[i];
        if (!d->shape.name)
            return FAIL(err, USAGE, "no shape is called \"%s\"; there are %s, %s, %s", o->like,
                        dummy_likes[0], dummy_likes[1], dummy_likes[2]);
        if (o->arch || o->kind)
            return FAIL(err, USAGE,
                        "a dummy like %s has its architecture and no kind: leave out %s", o->like,
                        o->arch ? "arch" : "kind");
        if (!o->type || !options_list_has("q4_0,q8_0,bf16", o->type))
            return FAIL(err, USAGE, "type \"%s\" of a dummy: it must be q4_0, q8_0 or bf16",
                        o->type ? o->type : "");
        arch = d->shape.arch;
    } else {
        if (o->type)
            return FAIL(err, USAGE,
                        "type \"%s\" of a dummy: only one with like has a type; leave it out",
                        o->type);
        if ((unsigned)o->kind >= DUMMY_N_KIND)
            return FAIL(err, USAGE, "kind %d of a dummy: it must be below %d", (int)o->kind,
                        (int)DUMMY_N_KIND);
        d->shape = small_shapes[o->kind == DUMMY_FUSED ? DUMMY_F32 : o->kind];
        d->shape.fused = o->kind == DUMMY_FUSED;
    }
    TRY(find_arch(d, arch, err));
    d->m.plan.n_vocab = d->shape.n_vocab ? d->shape.n_vocab : dummy_vocab_small();
    return SINTER_OK;
}

static sinter_status put_general(struct dummy *d, sinter_error *err)
{
    const char *arch = d->m.plan.arch->name, *kind = dummy_kind_name(d->o->kind);
    char name[96];
    /* llama.cpp's numbers: F32 0, Q4_0 2, Q8_0 7, Q4_K_M 15, BF16 32 */
    uint32_t type = d->o->kind == DUMMY_MIXED ? 15 : d->o->kind == DUMMY_OPTIONAL ? 2 : 0;
    if (d->o->like)
        type = quant_from_name(d->o->type) == QUANT_Q4_0   ? 2
               : quant_from_name(d->o->type) == QUANT_Q8_0 ? 7
                                                           : 32;
    if (d->o->like)
        snprintf(name, sizeof name, "dummy like %s", d->o->like);
    else
        snprintf(name, sizeof name, "dummy %s %s", arch, kind);
    TRY(gguf_put_string(d->w, "general.architecture", arch, strlen(arch), err));
    TRY(gguf_put_string(d->w, "general.name", name, strlen(name), err));
    TRY(gguf_put_u32(d->w, "general.file_type", type, err));
    return gguf_put_u32(d->w, "general.quantization_version", 2, err);
}

sinter_status dummy_write(sinter_host *host, const struct dummy_options *o, const char *path,
                          sinter_error *err)
{
    char what[] = "dummy";
    sinter_status status = SINTER_OK;
    struct dummy *d;
    NEW(host, d, 1, err);
    d->o = o;
    d->m.host = host;
    d->m.gguf = &d->gguf;
    d->gguf.path = what;
    arena_init(&d->m.arena, host);
    TRY_OUT(choose(d, err));
    TRY_OUT(gguf_writer_create(host, &d->w, err));
    TRY_OUT(put_general(d, err));
    TRY_OUT(put_keys(d, err));
    TRY_OUT(dummy_put_vocab(d->w, &d->m.arena, d->shape.pre ? d->shape.pre : "smollm",
                            d->m.plan.n_vocab, err));
    TRY_OUT(put_tensors(d, err));
    TRY_OUT(gguf_writer_save(d->w, path, fill, d, err));
out:
    gguf_writer_free(d->w);
    arena_free(&d->m.arena);
    host_free(host, d);
    return status;
}
