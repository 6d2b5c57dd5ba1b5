/* The kernel's view of a call: names to values, values to this thread's memory. */
#include "native/call.h"

#include "native/exec.h"

#include <assert.h>
#include <string.h>

const struct native_kind *call_kind(const struct call *c)
{
    return c->exec->kind;
}

static int first_value(const struct call *c, int name, int rep)
{
    return group_value_first(c->group, name, rep);
}

static int last_value(const struct call *c, int name, int rep)
{
    return group_value(c->group, name, rep);
}

bool has(const struct call *c, int name)
{
    return first_value(c, name, 0) >= 0;
}

const struct value *val(const struct call *c, int name, int rep)
{
    return &c->graph->value[last_value(c, name, rep)];
}

int n_rep(const struct call *c, int name)
{
    return group_n_rep(c->group, name);
}

static int axis_rows(const struct call *c, enum axis axis)
{
    switch (axis) {
    case AXIS_TOK:
        return c->exec->n_tok;
    case AXIS_OUT:
        return c->exec->n_out;
    case AXIS_SEQ:
        return c->exec->batch->n_seg;
    case AXIS_ONE:
        break;
    }
    return 1;
}

int rows(const struct call *c, int name)
{
    const struct value *v = val(c, name, 0);
    return axis_rows(c, v->shape.axis) * v->shape.mult;
}

/* ---- Memory of a value --------------------------------------------------------------------- */

static int buf_index(const struct call *c, int value, enum form form)
{
    return value < 0 ? -1 : c->exec->cur->buf_of[form][value];
}

static char *buf_mem(const struct call *c, int b)
{
    const struct buf *buf = &c->exec->cur->buf[b];
    size_t copy = buf->copies > 1 ? (size_t)c->thread : 0;
    return c->exec->arena + buf->off + copy * buf->bytes;
}

static char *value_mem(const struct call *c, int value)
{
    int b = buf_index(c, value, FORM_F32);
    return b < 0 ? NULL : buf_mem(c, b);
}

static struct int8_rows int8_of(const struct call *c, int b)
{
    const struct plan *p = c->exec->cur;
    const struct int8_parts at = plan_int8_parts(p, &c->graph->value[p->buf[b].value]);
    char *mem = buf_mem(c, b);
    return (struct int8_rows){.code = (int8_t *)mem,
                              .scale = (float *)(void *)(mem + at.scale),
                              .sum = (int32_t *)(void *)(mem + at.sum),
                              .code_stride = at.n_block * 32,
                              .n_block = (int)at.n_block};
}

const float *arg_f32(const struct call *c, int name, int rep)
{
    int value = first_value(c, name, rep);
    const struct value *v = &c->graph->value[value];
    if (v->kind == VALUE_WEIGHT)
        return c->exec->weights->weight[v->index].data;
    return (const float *)(const void *)value_mem(c, value);
}

struct int8_rows arg_int8(const struct call *c, int name, int rep)
{
    int b = buf_index(c, first_value(c, name, rep), FORM_INT8);
    assert(b >= 0);
    return int8_of(c, b);
}

const int32_t *arg_ids(const struct call *c, int name, int rep)
{
    return (const int32_t *)(const void *)value_mem(c, first_value(c, name, rep));
}

const struct weight *arg_w(const struct call *c, int name, int rep)
{
    return &c->exec->weights->weight[c->graph->value[first_value(c, name, rep)].index];
}

const float *arg_table(const struct call *c, int name)
{
    return (const float *)(const void *)value_mem(c, first_value(c, name, 0));
}

float *out_f32(const struct call *c, int name, int rep)
{
    return (float *)(void *)value_mem(c, last_value(c, name, rep));
}

int32_t *out_ids(const struct call *c, int name, int rep)
{
    return (int32_t *)(void *)value_mem(c, last_value(c, name, rep));
}

float *out_table(const struct call *c, int name)
{
    return out_f32(c, name, 0);
}

bool wanted(const struct call *c, int name, int rep)
{
    int value = last_value(c, name, rep);
    return buf_index(c, value, FORM_F32) >= 0 || buf_index(c, value, FORM_INT8) >= 0;
}

/* The INT8 form is this step's to write if it is the buffer's writer (else a convert is). */
static int own_int8(const struct call *c, int value)
{
    int b = buf_index(c, value, FORM_INT8);
    const struct plan *p = c->exec->cur;
    return b >= 0 && &p->step[p->buf[b].writer] == c->step ? b : -1;
}

void put(const struct call *c, int name, int rep, int row, int col, int n, const float *src)
{
    int value = last_value(c, name, rep);
    float *f32 = (float *)(void *)value_mem(c, value);
    size_t len = (size_t)row_len(&c->graph->value[value]);
    if (f32 && f32 + (size_t)row * len + col != src)
        memcpy(f32 + (size_t)row * len + col, src, (size_t)n * sizeof *src);
    int b = own_int8(c, value);
    if (b < 0)
        return;
    struct int8_rows q = int8_of(c, b);
    size_t block = (size_t)row * (size_t)q.n_block + (size_t)col / 32;
    c->exec->kind->to_int8(src, n, q.code + (size_t)row * q.code_stride + col, q.scale + block,
                           q.sum + block);
}

void call_convert(const struct call *c)
{
    int value = c->step->value;
    const struct value *v = &c->graph->value[value];
    const float *x = (const float *)(const void *)value_mem(c, value);
    struct int8_rows q = int8_of(c, buf_index(c, value, FORM_INT8));
    int len = row_len(v), n = axis_rows(c, v->shape.axis);
    struct span mine = {0, n};
    if (c->step->share == SHARE_ROW)
        mine = call_span(c, n, 1);
    for (int r = mine.lo * v->shape.mult; r < mine.hi * v->shape.mult; r++) {
        size_t block = (size_t)r * (size_t)q.n_block;
        c->exec->kind->to_int8(x + (size_t)r * (size_t)len, len, q.code + (size_t)r * q.code_stride,
                               q.scale + block, q.sum + block);
    }
}

/* ---- Scores --------------------------------------------------------------------------------- */

float *score(const struct call *c, int name)
{
    (void)name; /* one tile a thread: QK writes it, SOFTMAX and PV change and read it in place */
    char *mine = c->exec->scratch + (size_t)c->thread * c->exec->scratch_each;
    return (float *)(void *)(mine + c->exec->cur->scratch);
}

int score_keys(const struct call *c)
{
    return c->exec->n_key;
}

/* ---- Shares --------------------------------------------------------------------------------- */

struct span call_span(const struct call *c, int n, int unit)
{
    int n_unit = (n + unit - 1) / unit;
    int lo = (int)((int64_t)n_unit * c->thread / c->n_thread) * unit;
    int hi = (int)((int64_t)n_unit * (c->thread + 1) / c->n_thread) * unit;
    return (struct span){lo < n ? lo : n, hi < n ? hi : n};
}

static enum share share_of(const struct call *c)
{
    return c->step->share;
}

struct span call_rows(const struct call *c, int name)
{
    const struct value *v = val(c, name, 0);
    int n = axis_rows(c, v->shape.axis);
    struct span all = {0, n}, none = {0, 0};
    struct span s = all;
    if (c->tile1 >= 0)
        s = (struct span){c->tile0, c->tile1};
    else if (share_of(c) == SHARE_ROW)
        s = call_span(c, n, 1);
    else if (share_of(c) == SHARE_ONE)
        s = c->thread == 0 ? all : none;
    return (struct span){s.lo * v->shape.mult, s.hi * v->shape.mult};
}

struct span call_heads(const struct call *c, int n_head)
{
    if (share_of(c) != SHARE_HEAD)
        return (struct span){0, n_head};
    int n_kv = c->step->n_head_kv, group = n_head / n_kv > 0 ? n_head / n_kv : 1;
    struct span s = call_span(c, n_kv, 1);
    return (struct span){s.lo * group < n_head ? s.lo * group : n_head,
                         c->thread == c->n_thread - 1 ? n_head
                         : s.hi * group < n_head      ? s.hi * group
                                                      : n_head};
}

struct span call_cols(const struct call *c, int name, int rep)
{
    const struct value *v = val(c, name, rep);
    int len = row_len(v);
    if (share_of(c) == SHARE_COL)
        return call_span(c, len, COL_UNIT);
    if (share_of(c) != SHARE_HEAD)
        return (struct span){0, len};
    struct span s = call_heads(c, v->shape.n_head);
    return (struct span){s.lo * v->shape.d, s.hi * v->shape.d};
}

/* ---- Segments and state --------------------------------------------------------------------- */

int n_seg(const struct call *c)
{
    return c->exec->batch->n_seg;
}

struct seg_view seg(const struct call *c, int i)
{
    const struct batch_seg *s = &c->exec->batch->seg[i];
    return (struct seg_view){s->row0, s->n_row, s->n_past};
}

struct place place(const struct call *c, int name, int row)
{
    const struct value *v = &c->graph->value[first_value(c, name, 0)];
    int tok = row / v->shape.mult;
    if (v->shape.axis == AXIS_OUT)
        tok = c->exec->out_row[tok];
    return (struct place){c->exec->row_seg[tok], c->exec->row_abs[tok]};
}

static int slot_of(const struct call *c, int name)
{
    return c->graph->value[first_value(c, name, 0)].index;
}

struct kv_view arg_kv(const struct call *c, int name, int i)
{
    return seq_kv(c->exec->batch->seg[i].seq, slot_of(c, name));
}

const float *arg_rec(const struct call *c, int name, int i)
{
    return seq_rec_read(c->exec->batch->seg[i].seq, slot_of(c, name));
}

float *out_rec(const struct call *c, int name, int i, int snap)
{
    return seq_rec_write(c->exec->batch->seg[i].seq, slot_of(c, name), snap);
}
