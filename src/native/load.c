/* Weights to their homes: roles gathered over the graphs, layouts planned, rows read and packed
 * block by block on the pool. All homes lie in one allocation, so that huge pages serve small
 * matrices too. Peak memory = the homes + one block of rows. */
#include "native/exec.h"

#include <string.h>

enum { LOAD_BLOCK = 8 << 20 };

static unsigned role_bit(char letter)
{
    static const char letters[] = "wevk";
    const char *at = strchr(letters, letter);
    return at && *at ? 1u << (at - letters) : 0;
}

static void gather_roles(const struct graph *g, struct weight *weight)
{
    for (int i = 0; i < g->n_node; i++) {
        const struct node *n = &g->node[i];
        for (int j = 0; j < n->n_in; j++)
            if (n->in[j] >= 0 && g->value[n->in[j]].kind == VALUE_WEIGHT)
                weight[g->value[n->in[j]].index].roles |= role_bit(graph_role(n, j));
    }
}

/* Matrices and look-ups have a layout of the backend, vectors and constants are f32 rows. */
static sinter_status check_roles(const struct weight *w, sinter_error *err)
{
    if ((w->roles & (ROLE_MATRIX | ROLE_LOOKUP)) && (w->roles & (ROLE_VECTOR | ROLE_CONSTANT)))
        return FAIL(err, UNSUPPORTED,
                    "weight %s is read as a matrix and as a vector: no layout serves both; let the "
                    "graph take the vector as a slice of its own",
                    w->info->name);
    return SINTER_OK;
}

/* A vector beside other operands' roles ('x' of a bias, say) is a vector too. */
static void plan_home(const struct native_kind *kind, struct weight *w)
{
    if (w->roles & (ROLE_MATRIX | ROLE_LOOKUP)) {
        kind->weight->plan(w);
    } else {
        w->layout = -1;
        w->mat_bytes = (size_t)w->n_row * (size_t)w->n_col * sizeof(float);
    }
    w->mat_bytes = (w->mat_bytes + 63) & ~(size_t)63;
    w->bytes = w->mat_bytes * (size_t)w->n_mat;
}

static sinter_status copy_infos(struct weights *w, const struct graph *g, sinter_error *err)
{
    size_t n_char = 0;
    for (int i = 0; i < w->n; i++)
        n_char += strlen(g->weight[i].name) + 1;
    NEW(w->host, w->names, n_char + 1, err);
    char *at = w->names;
    for (int i = 0; i < w->n; i++) {
        size_t n = strlen(g->weight[i].name) + 1;
        w->info[i] = g->weight[i];
        w->info[i].name = memcpy(at, g->weight[i].name, n);
        at += n;
    }
    return SINTER_OK;
}

static void weight_shape(const struct graph *g, int value, struct weight *w)
{
    const struct value *v = &g->value[value];
    w->n_mat = w->info->slice.n_mat > 0 ? w->info->slice.n_mat : 1;
    w->n_row =
        (int64_t)w->info->slice.n_row * (w->info->slice.n_block > 0 ? w->info->slice.n_block : 1);
    w->n_col = v->shape.d;
    w->type = w->info->type;
}

sinter_status weights_plan(sinter_host *host, const struct native_kind *kind,
                           const struct device_mem *mem, struct graph *const *graph, int n_graph,
                           struct weights **out, sinter_error *err)
{
    sinter_status status = SINTER_OK;
    struct weights *w;
    NEW(host, w, 1, err);
    w->host = host;
    w->kind = kind;
    w->mem = *mem;
    w->n = graph[0]->n_weight;
    NEW_OUT(host, w->weight, w->n + 1, err);
    NEW_OUT(host, w->info, w->n + 1, err);
    TRY_OUT(copy_infos(w, graph[0], err));
    for (int i = 0; i < n_graph; i++)
        gather_roles(graph[i], w->weight);
    for (int v = 0; v < graph[0]->n_value; v++) {
        if (graph[0]->value[v].kind != VALUE_WEIGHT)
            continue;
        struct weight *home = &w->weight[graph[0]->value[v].index];
        home->info = &w->info[graph[0]->value[v].index];
        weight_shape(graph[0], v, home);
        TRY_OUT(check_roles(home, err));
        plan_home(kind, home);
        w->bytes += home->bytes;
    }
    *out = w;
    return SINTER_OK;
out:
    weights_free(w);
    return status;
}

void weights_free(struct weights *w)
{
    if (!w)
        return;
    if (w->home)
        w->mem.free(w->mem.ctx, w->home);
    host_free(w->host, w->weight);
    host_free(w->host, w->info);
    host_free(w->host, w->names);
    host_free(w->host, w);
}

struct pack_job {
    const struct native_kind *kind;
    const struct weight *w;
    int mat;
    int64_t row, n;
    size_t row_bytes;
    const char *src;
};

static void pack_rows(void *ctx, int thread, int n_thread)
{
    const struct pack_job *j = ctx;
    int64_t n_unit = (j->n + 63) / 64;
    int64_t lo = n_unit * thread / n_thread * 64, hi = n_unit * (thread + 1) / n_thread * 64;
    hi = hi < j->n ? hi : j->n;
    if (lo >= hi)
        return;
    const char *src = j->src + (size_t)lo * j->row_bytes;
    if (j->w->layout >= 0) {
        j->kind->weight->pack(j->w, j->mat, j->row + lo, hi - lo, src);
        return;
    }
    float *dst = (float *)(void *)((char *)j->w->data + (size_t)j->mat * j->w->mat_bytes);
    for (int64_t r = lo; r < hi; r++)
        quant_row(j->w->type)
            ->decode(src + (size_t)(r - lo) * j->row_bytes,
                     dst + (size_t)(j->row + r) * (size_t)j->w->n_col, (size_t)j->w->n_col);
}

struct loading {
    struct weights *w;
    const struct weight_source *src;
    struct pool *pool;
    char *block;
    uint64_t done, total;
};

static sinter_status load_mat(struct loading *l, const struct weight *w, int mat, sinter_error *err)
{
    size_t row_bytes = quant_bytes(w->type, (size_t)w->n_col);
    int64_t n_block = row_bytes ? (int64_t)(LOAD_BLOCK / row_bytes) / 64 * 64 : 64;
    n_block = n_block < 64 ? 64 : n_block;
    for (int64_t row = 0; row < w->n_row; row += n_block) {
        int64_t n = w->n_row - row < n_block ? w->n_row - row : n_block;
        TRY(l->src->read(l->src->ctx, w->info, mat, row, n, l->block, err));
        struct pack_job job = {l->w->kind, w, mat, row, n, row_bytes, l->block};
        pool_run(l->pool, pool_n_thread(l->pool), pack_rows, &job);
        l->done += (uint64_t)n * row_bytes;
        if (l->src->progress && !l->src->progress(l->src->ctx, l->done, l->total))
            return FAIL(err, CANCELLED, "loading was cancelled at %llu of %llu bytes",
                        (unsigned long long)l->done, (unsigned long long)l->total);
    }
    return SINTER_OK;
}

static size_t block_bytes(const struct weights *w)
{
    size_t most = LOAD_BLOCK;
    for (int i = 0; i < w->n; i++) {
        if (!w->weight[i].info)
            continue;
        size_t rows64 = 64 * quant_bytes(w->weight[i].type, (size_t)w->weight[i].n_col);
        size_t all =
            (size_t)w->weight[i].n_row * quant_bytes(w->weight[i].type, (size_t)w->weight[i].n_col);
        size_t need = rows64 < all ? rows64 : all;
        most = need > most ? need : most;
    }
    return most;
}

sinter_status weights_load(struct weights *w, const struct weight_source *src, struct pool *pool,
                           sinter_error *err)
{
    sinter_status status = SINTER_OK;
    struct loading l = {.w = w, .src = src, .pool = pool};
    for (int i = 0; i < w->n; i++)
        if (w->weight[i].info)
            l.total += (uint64_t)w->weight[i].n_mat * (uint64_t)w->weight[i].n_row *
                       quant_bytes(w->weight[i].type, (size_t)w->weight[i].n_col);
    size_t bytes = block_bytes(w);
    l.block = host_alloc_raw(w->host, bytes < l.total ? bytes : l.total + 64);
    if (!l.block)
        return host_no_memory(err, bytes, 1, "a block of weights");
    w->home = w->mem.alloc(w->mem.ctx, w->bytes ? w->bytes : 64);
    if (!w->home)
        FAIL_OUT(
            err, MEMORY,
            "no memory for the weights (%zu bytes); use a smaller model or type, or free memory",
            w->bytes);
    size_t off = 0;
    for (int i = 0; i < w->n; i++) {
        struct weight *one = &w->weight[i];
        if (!one->info)
            continue;
        one->data = w->home + off;
        off += one->bytes;
        for (int m = 0; m < one->n_mat; m++)
            TRY_OUT(load_mat(&l, one, m, err));
    }
out:
    host_free(w->host, l.block);
    return status;
}
