/* Text and JSON of a model for `sinter inspect`: plan by layer, bindings, what was left out. Runs
 * of like layers are one line. */
#include "model/internal.h"

#include <inttypes.h>
#include <string.h>

/* Do the layers differ in number only? */
static bool same_layer(const struct model_layer *a, const struct model_layer *b)
{
    struct model_layer x;
    memcpy(&x, a, sizeof x); /* with what lies between the fields */
    x.layer = b->layer;
    x.block = b->block;
    x.slot = b->slot;
    return memcmp(&x, b, sizeof x) == 0;
}

static void layer_text(struct text_buf *b, const struct model_layer *l, int first, int last)
{
    text_buf_printf(b, "layer %d", first);
    if (last > first)
        text_buf_printf(b, "..%d", last);
    text_buf_printf(b, ": %d heads, %d KV heads, K %d V %d, scale %g, rope %d of base %g",
                    l->n_head, l->n_head_kv, l->d_k, l->d_v, (double)l->attn_scale, l->n_rot,
                    (double)l->rope_base);
    if (l->rope_factor != 1)
        text_buf_printf(b, " / %g", (double)l->rope_factor);
    if (l->rope_freqs)
        text_buf_printf(b, " with factors");
    if (l->window)
        text_buf_printf(b, ", window %d", l->window);
    if (l->n_expert)
        text_buf_printf(b, ", %d of %d experts of %d\n", l->n_expert_used, l->n_expert,
                        l->n_ff_exp);
    else
        text_buf_printf(b, ", ffn %d\n", l->n_ff);
}

static void print_text(const struct model *m, struct text_buf *b)
{
    const struct model_plan *p = &m->plan;
    text_buf_printf(b,
                    "%s: %s, %d layers, width %d, vocabulary %d, trained context %d, "
                    "norm eps %g\n",
                    m->gguf->path, p->arch->name, p->n_layer, p->d_model, p->n_vocab,
                    p->n_ctx_train, (double)p->norm_eps);
    if (p->emb_scale != 1)
        text_buf_printf(b, "embeddings times %g\n", (double)p->emb_scale);
    if (p->final_cap > 0)
        text_buf_printf(b, "logits capped at %g\n", (double)p->final_cap);
    text_buf_printf(b, "head: %s\n", p->tied ? "token_embd.weight (tied)" : "output.weight");
    for (int i = 0, n; i < p->n_layer; i = n) {
        for (n = i + 1; n < p->n_layer && same_layer(&p->layer[i], &p->layer[n]);)
            n++;
        layer_text(b, &p->layer[i], i, n - 1);
    }
    for (int i = 0; i < m->n_weight; i++) {
        const struct model_weight *w = &m->weight[i];
        text_buf_printf(b, "%-32s %-5s [%d, %d", w->name, quant_row(w->type)->name, w->n_row,
                        w->n_col);
        if (w->slice.n_mat > 1)
            text_buf_printf(b, " x %d", w->slice.n_mat);
        text_buf_printf(b, "]\n");
    }
    for (int i = 0; i < m->n_skip; i++)
        text_buf_printf(b, "not used: %s: %s\n", m->skip[i].name, m->skip[i].reason);
    if (m->n_override)
        text_buf_printf(b, "%d left out by --skip options\n", m->n_override);
    text_buf_printf(b, "hash %016" PRIx64 "%016" PRIx64 "\n", m->hash[0], m->hash[1]);
}

static void json_text(struct text_buf *b, const char *key, const char *text)
{
    text_buf_printf(b, "\"%s\":", key);
    text_buf_json(b, text, strlen(text));
}

static void layer_json(struct text_buf *b, const struct model_layer *l)
{
    text_buf_printf(b,
                    "{\"layer\":%d,\"block\":%d,\"n_head\":%d,\"n_head_kv\":%d,\"d_k\":%d,"
                    "\"d_v\":%d,\"n_rot\":%d,\"rope_base\":%.9g,\"rope_factor\":%.9g,"
                    "\"rope_freqs\":%s,\"window\":%d,\"attn_scale\":%.9g,\"n_ff\":%d,"
                    "\"n_expert\":%d,\"n_expert_used\":%d,\"n_ff_exp\":%d}",
                    l->layer, l->block, l->n_head, l->n_head_kv, l->d_k, l->d_v, l->n_rot,
                    (double)l->rope_base, (double)l->rope_factor, l->rope_freqs ? "true" : "false",
                    l->window, (double)l->attn_scale, l->n_ff, l->n_expert, l->n_expert_used,
                    l->n_ff_exp);
}

static void print_json(const struct model *m, struct text_buf *b)
{
    const struct model_plan *p = &m->plan;
    text_buf_printf(b, "{");
    json_text(b, "path", m->gguf->path);
    text_buf_printf(b, ",");
    json_text(b, "arch", p->arch->name);
    text_buf_printf(b,
                    ",\"n_layer\":%d,\"d_model\":%d,\"n_vocab\":%d,\"n_ctx_train\":%d,"
                    "\"norm_eps\":%.9g,\"emb_scale\":%.9g,\"final_cap\":%.9g,\"tied\":%s,"
                    "\"hash\":\"%016" PRIx64 "%016" PRIx64 "\",\"layers\":[",
                    p->n_layer, p->d_model, p->n_vocab, p->n_ctx_train, (double)p->norm_eps,
                    (double)p->emb_scale, (double)p->final_cap, p->tied ? "true" : "false",
                    m->hash[0], m->hash[1]);
    for (int i = 0; i < p->n_layer; i++) {
        text_buf_printf(b, "%s", i ? "," : "");
        layer_json(b, &p->layer[i]);
    }
    text_buf_printf(b, "],\"weights\":[");
    for (int i = 0; i < m->n_weight; i++) {
        const struct model_weight *w = &m->weight[i];
        text_buf_printf(b, "%s{", i ? "," : "");
        json_text(b, "name", w->name);
        text_buf_printf(b, ",\"type\":\"%s\",\"n_row\":%d,\"n_col\":%d,\"n_mat\":%d}",
                        quant_row(w->type)->name, w->n_row, w->n_col, w->slice.n_mat);
    }
    text_buf_printf(b, "],\"not_used\":[");
    for (int i = 0; i < m->n_skip; i++) {
        text_buf_printf(b, "%s{", i ? "," : "");
        json_text(b, "name", m->skip[i].name);
        text_buf_printf(b, ",");
        json_text(b, "reason", m->skip[i].reason);
        text_buf_printf(b, "}");
    }
    text_buf_printf(b, "],\"n_override\":%d}\n", m->n_override);
}

void model_print(const struct model *m, struct text_buf *b, bool json)
{
    if (json)
        print_json(m, b);
    else
        print_text(m, b);
}
