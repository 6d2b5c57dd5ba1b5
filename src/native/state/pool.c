/* The pool: sizes, memory, counted pages and slots; fork, drop, trim. */
#include "native/state/state_impl.h"

#include <string.h>

/* Pages that all sequences need together in a class of this window. */
static int64_t class_pages(const struct state_options *o, int window)
{
    int64_t full = o->n_row / o->page_rows + 2 * (int64_t)o->n_seq;
    if (!window)
        return full;
    int64_t rows = (int64_t)window + o->n_chunk * 2;
    int64_t windowed = (rows / o->page_rows + 3) * o->n_seq;
    return windowed < full ? windowed : full;
}

static int64_t rec_slots(const struct state_slot *s, const struct state_options *o)
{
    int64_t n_snap = s->n_snap > 0 ? s->n_snap : 1;
    return (1 + STATE_MAX_OPEN * n_snap) * o->n_seq;
}

static size_t slot_each(const struct state_slot *s, const struct state_options *o)
{
    if (s->kind == SLOT_REC)
        return ((size_t)s->n_row * (size_t)s->d * sizeof(float) + 63) & ~(size_t)63;
    return (kv_k_bytes(s, o->type_k, o->page_rows) + kv_v_bytes(s, o->type_v, o->page_rows) + 63) &
           ~(size_t)63;
}

size_t state_bytes_for(const struct state_slot *slot, int n_slot, const struct state_options *o)
{
    size_t bytes = 0;
    for (int i = 0; i < n_slot; i++) {
        int64_t n =
            slot[i].kind == SLOT_KV ? class_pages(o, slot[i].window) : rec_slots(&slot[i], o);
        bytes += (size_t)n * slot_each(&slot[i], o);
    }
    return bytes;
}

static sinter_status counted_init(sinter_host *host, struct counted *c, int64_t n,
                                  sinter_error *err)
{
    c->n = c->n_free = (int)n;
    NEW(host, c->free_id, n + 1, err);
    NEW(host, c->count, n + 1, err);
    for (int i = 0; i < c->n; i++)
        c->free_id[i] = c->n - 1 - i; /* lowest id on top */
    return SINTER_OK;
}

int counted_take(struct counted *c)
{
    if (!c->n_free)
        return -1;
    int id = c->free_id[--c->n_free];
    c->count[id] = 1;
    return id;
}

void counted_hold(struct counted *c, int id)
{
    c->count[id]++;
}

void counted_drop(struct counted *c, int id)
{
    if (--c->count[id] == 0)
        c->free_id[c->n_free++] = id;
}

static sinter_status find_class(struct state_pool *p, int window, int *index, sinter_error *err)
{
    for (*index = 0; *index < p->n_class; ++*index)
        if (p->class[*index].window == window)
            return SINTER_OK;
    p->class[p->n_class].window = window;
    TRY(counted_init(p->host, &p->class[p->n_class].page, class_pages(&p->o, window), err));
    p->n_class++;
    return SINTER_OK;
}

static sinter_status make_slot(struct state_pool *p, int i, const struct state_slot *slot,
                               sinter_error *err)
{
    struct slot_home *home = &p->slot[i];
    int64_t n;
    home->slot = *slot;
    home->each = slot_each(slot, &p->o);
    if (slot->kind == SLOT_KV) {
        home->v_offset = kv_k_bytes(slot, p->o.type_k, p->o.page_rows);
        TRY(find_class(p, slot->window, &home->class, err));
        n = p->class[home->class].page.n;
    } else {
        home->class = p->n_rec++;
        n = rec_slots(slot, &p->o);
        TRY(counted_init(p->host, &p->rec[home->class], n, err));
    }
    size_t bytes = (size_t)n * home->each;
    /* A row is read only after it was written: pages are touched when they are used. */
    home->base =
        (p->mem.alloc_raw ? p->mem.alloc_raw : p->mem.alloc)(p->mem.ctx, bytes ? bytes : 64);
    if (!home->base)
        return FAIL(err, MEMORY,
                    "no memory for the state of layer %d (%zu bytes); use a smaller context, fewer "
                    "sequences or a smaller cache type",
                    slot->layer, bytes);
    p->bytes += bytes;
    return SINTER_OK;
}

static sinter_status check_types(const struct state_slot *s, const struct state_options *o,
                                 sinter_error *err)
{
    const enum quant_type type[2] = {o->type_k, o->type_v};
    const int d[2] = {s->d_k, s->d_v};
    for (int i = 0; i < 2; i++) {
        bool ok = type[i] == QUANT_F32 || type[i] == QUANT_F16 || type[i] == QUANT_Q8_0;
        if (!ok)
            return FAIL(err, UNSUPPORTED, "cache type %s; f32, f16 and q8_0 exist",
                        quant_row(type[i])->name);
        if (d[i] % quant_row(type[i])->block_elems)
            return FAIL(err, UNSUPPORTED,
                        "cache type %s needs heads of a multiple of %d values, layer %d has %d; "
                        "use f16",
                        quant_row(type[i])->name, quant_row(type[i])->block_elems, s->layer, d[i]);
    }
    return SINTER_OK;
}

sinter_status state_pool_create(sinter_host *host, const struct device_mem *mem,
                                const struct state_slot *slot, int n_slot,
                                const struct state_options *o, struct state_pool **out,
                                sinter_error *err)
{
    sinter_status status = SINTER_OK;
    struct state_pool *p;
    NEW(host, p, 1, err);
    *p = (struct state_pool){.host = host, .mem = *mem, .o = *o, .n_slot = n_slot};
    NEW_OUT(host, p->slot, n_slot + 1, err);
    NEW_OUT(host, p->class, n_slot + 1, err);
    NEW_OUT(host, p->rec, n_slot + 1, err);
    for (int i = 0; i < n_slot; i++) {
        if (slot[i].kind == SLOT_KV)
            TRY_OUT(check_types(&slot[i], o, err));
        TRY_OUT(make_slot(p, i, &slot[i], err));
    }
    *out = p;
    return SINTER_OK;
out:
    state_pool_free(p);
    return status;
}

static void counted_free(sinter_host *host, struct counted *c)
{
    host_free(host, c->free_id);
    host_free(host, c->count);
}

void state_pool_free(struct state_pool *p)
{
    if (!p)
        return;
    while (p->all)
        seq_drop(p->all);
    for (int i = 0; p->slot && i < p->n_slot; i++)
        if (p->slot[i].base)
            p->mem.free(p->mem.ctx, p->slot[i].base);
    for (int i = 0; p->class && i <= p->n_class && i < p->n_slot + 1; i++)
        counted_free(p->host, &p->class[i].page);
    for (int i = 0; p->rec && i < p->n_rec; i++)
        counted_free(p->host, &p->rec[i]);
    host_free(p->host, p->slot);
    host_free(p->host, p->class);
    host_free(p->host, p->rec);
    host_free(p->host, p);
}

size_t state_pool_bytes(const struct state_pool *p)
{
    return p->bytes;
}

int rec_n_snap(const struct state_pool *p, int r)
{
    for (int i = 0; i < p->n_slot; i++)
        if (p->slot[i].slot.kind == SLOT_REC && p->slot[i].class == r)
            return p->slot[i].slot.n_snap > 0 ? p->slot[i].slot.n_snap : 1;
    return 1;
}

int rec_max_snap(const struct state_pool *p)
{
    int most = 1;
    for (int r = 0; r < p->n_rec; r++)
        most = rec_n_snap(p, r) > most ? rec_n_snap(p, r) : most;
    return most;
}

static sinter_status seq_make(struct state_pool *p, struct seq **out, sinter_error *err)
{
    sinter_status status = SINTER_OK;
    struct seq *s;
    size_t cap = (size_t)(p->o.n_ctx / p->o.page_rows) + 4;
    NEW(p->host, s, 1, err);
    s->pool = p;
    s->next = p->all;
    p->all = s;
    p->n_seq++;
    NEW_OUT(p->host, s->class, p->n_class + 1, err);
    NEW_OUT(p->host, s->rec, p->n_rec + 1, err);
    for (int r = 0; r < p->n_rec; r++)
        s->rec[r] = -1;
    for (int i = 0; i < p->n_class; i++)
        NEW_OUT(p->host, s->class[i].page, cap, err);
    for (int i = 0; i < STATE_MAX_OPEN; i++)
        NEW_OUT(p->host, s->open[i].fresh, p->n_rec * rec_max_snap(p) + 1, err);
    *out = s;
    return SINTER_OK;
out:
    seq_drop(s);
    return status;
}

sinter_status seq_fork(struct state_pool *p, struct seq *from, struct seq **out, sinter_error *err)
{
    if (p->n_seq >= p->o.n_seq)
        return FAIL(err, STATE,
                    "all %d sequences of this engine are in use; close one, or make the "
                    "engine with more",
                    p->o.n_seq);
    if (from && from->n_open)
        return FAIL(err, STATE, "cannot fork a sequence while a step of it is open");
    struct seq *s;
    TRY(seq_make(p, &s, err));
    for (int i = 0; from && i < p->n_class; i++) {
        struct seq_class *a = &from->class[i], *b = &s->class[i];
        b->n_page = a->n_page;
        b->first_row = a->first_row;
        b->valid_row = a->valid_row;
        for (int j = 0; j < a->n_page; j++) {
            b->page[j] = a->page[j];
            counted_hold(&p->class[i].page, a->page[j]);
        }
    }
    for (int r = 0; from && r < p->n_rec; r++) {
        s->rec[r] = from->rec[r];
        if (s->rec[r] >= 0)
            counted_hold(&p->rec[r], s->rec[r]);
    }
    s->n_row = from ? from->n_row : 0;
    *out = s;
    return SINTER_OK;
}

void seq_drop(struct seq *s)
{
    if (!s)
        return;
    struct state_pool *p = s->pool;
    while (s->n_open && seq_commit(s, 0, NULL) == SINTER_OK)
        ; /* drops the oldest step and cannot fail */
    for (int i = 0; s->class && i < p->n_class; i++) {
        for (int j = 0; j < s->class[i].n_page; j++)
            counted_drop(&p->class[i].page, s->class[i].page[j]);
        host_free(p->host, s->class[i].page);
    }
    for (int r = 0; s->rec && r < p->n_rec; r++)
        if (s->rec[r] >= 0)
            counted_drop(&p->rec[r], s->rec[r]);
    for (int i = 0; i < STATE_MAX_OPEN; i++)
        host_free(p->host, s->open[i].fresh);
    struct seq **link = &p->all;
    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
    p->n_seq--;
    host_free(p->host, s->class);
    host_free(p->host, s->rec);
    host_free(p->host, s);
}

int seq_rows(const struct seq *s)
{
    return s->n_row;
}

int seq_end(const struct seq *s)
{
    int end = s->n_row;
    for (int i = 0; i < s->n_open; i++)
        end += s->open[i].n_row;
    return end;
}

void seq_release_from(struct seq *s, int n_row)
{
    struct state_pool *p = s->pool;
    for (int i = 0; i < p->n_class; i++) {
        struct seq_class *c = &s->class[i];
        int keep = (n_row - c->first_row + p->o.page_rows - 1) / p->o.page_rows;
        keep = keep < 0 ? 0 : keep;
        while (c->n_page > keep)
            counted_drop(&p->class[i].page, c->page[--c->n_page]);
        if (!c->n_page) {
            c->first_row = n_row / p->o.page_rows * p->o.page_rows;
            c->valid_row = n_row;
        }
    }
}

sinter_status seq_trim(struct seq *s, int n_row, sinter_error *err)
{
    struct state_pool *p = s->pool;
    if (s->n_open)
        return FAIL(err, STATE, "cannot trim a sequence while a step of it is open");
    if (n_row < 0 || n_row > s->n_row)
        return FAIL(err, STATE, "cannot trim to %d rows: the sequence has %d", n_row, s->n_row);
    if (n_row == s->n_row)
        return SINTER_OK;
    for (int i = 0; n_row && i < p->n_class; i++) {
        int window = p->class[i].window;
        int need = window && n_row - window + 1 > 0 ? n_row - window + 1 : 0;
        if (s->class[i].valid_row > need)
            return FAIL(err, STATE,
                        "cannot trim to %d rows: layers with a window of %d have dropped the rows "
                        "before %d; start again from an empty sequence",
                        n_row, window, s->class[i].valid_row);
    }
    if (n_row && p->n_rec)
        return FAIL(err, STATE,
                    "cannot trim to %d rows: recurrent layers keep no snapshot of that row; the "
                    "sequence can be kept at %d or emptied",
                    n_row, s->n_row);
    for (int r = 0; r < p->n_rec; r++) {
        if (s->rec[r] >= 0)
            counted_drop(&p->rec[r], s->rec[r]);
        s->rec[r] = -1;
    }
    s->n_row = n_row;
    seq_release_from(s, n_row);
    if (!n_row)
        for (int i = 0; i < p->n_class; i++)
            s->class[i].first_row = s->class[i].valid_row = 0;
    return SINTER_OK;
}
