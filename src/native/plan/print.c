/* The plan as text (one line a step) or JSON. */
#include "native/plan/plan_impl.h"

static const char *step_label(const struct plan_step *step)
{
    return step->group ? step->group->variant->label : "to int8";
}

static const char *step_name(const struct plan *p, const struct plan_step *step)
{
    if (!step->group)
        return p->graph->value[step->value].name;
    const struct node *n = &p->graph->node[step->group->node[0]];
    return p->graph->value[n->out[0]].name;
}

static void print_after(const struct plan *p, int s, struct text_buf *b, const char *sep)
{
    for (int i = 0; i < p->step[s].n_after; i++)
        text_buf_printf(b, "%s%d", i ? sep : "", p->step[s].after[i]);
}

static void print_writes(const struct plan *p, int s, struct text_buf *b)
{
    for (int i = 0; i < p->n_buf; i++)
        if (p->buf[i].writer == s)
            text_buf_printf(b, " %s%s@%zu", p->graph->value[p->buf[i].value].name,
                            p->buf[i].form == FORM_INT8 ? ".int8" : "", p->buf[i].off);
}

static void print_text(const struct plan *p, struct text_buf *b)
{
    text_buf_printf(b,
                    "plan rows %d..%d out %d seq %d%s: %d steps, %d barriers, %d converts, "
                    "%d bans, %zu bytes\n",
                    p->key.row_lo, p->key.row_hi, p->key.out_cap, p->key.seq_cap,
                    p->key.all_rows ? " all rows" : "", p->n_step, p->n_barrier, p->n_convert,
                    p->n_ban, p->bytes);
    for (int s = 0; s < p->n_step; s++) {
        const struct plan_step *step = &p->step[s];
        if (step->barrier)
            text_buf_printf(b, "---\n");
        text_buf_printf(b, "%4d %-24s %-22s %-4s", s, step_name(p, step), step_label(step),
                        fuse_share_name(step->share));
        print_writes(p, s, b);
        text_buf_printf(b, "  after ");
        print_after(p, s, b, ",");
        text_buf_printf(b, "\n");
    }
}

static void print_json(const struct plan *p, struct text_buf *b)
{
    text_buf_printf(b,
                    "{\"rows\":[%d,%d],\"out\":%d,\"seq\":%d,\"all_rows\":%s,\"ports\":%u,"
                    "\"bytes\":%zu,\"scratch\":%zu,\"score\":%zu,\"barriers\":%d,"
                    "\"converts\":%d,\"bans\":%d,\"steps\":[",
                    p->key.row_lo, p->key.row_hi, p->key.out_cap, p->key.seq_cap,
                    p->key.all_rows ? "true" : "false", p->key.ports, p->bytes, p->scratch,
                    p->score, p->n_barrier, p->n_convert, p->n_ban);
    for (int s = 0; s < p->n_step; s++) {
        const struct plan_step *step = &p->step[s];
        text_buf_printf(b,
                        "%s{\"label\":\"%s\",\"name\":\"%s\",\"share\":\"%s\",\"barrier\":%s,"
                        "\"layer\":%d,\"after\":[",
                        s ? "," : "", step_label(step), step_name(p, step),
                        fuse_share_name(step->share), step->barrier ? "true" : "false",
                        step->layer);
        print_after(p, s, b, ",");
        text_buf_printf(b, "]}");
    }
    text_buf_printf(b, "]}");
}

void plan_print(const struct plan *p, struct text_buf *b, bool json)
{
    if (json)
        print_json(p, b);
    else
        print_text(p, b);
}
