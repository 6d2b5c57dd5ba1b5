/* For tests: a vocabulary of a file, compared with the ids that other programs gave for texts. */
#ifndef TEXT_VOCAB_GOLDEN_H
#define TEXT_VOCAB_GOLDEN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gguf/gguf.h"
#include "text/vocab_priv.h"

#ifdef HAVE_jansson
#include <jansson.h>
#endif

struct golden {
    sinter_host *host;
    struct vocab *v;
    size_t n_case, n_ok;
};

static inline bool golden_open(struct golden *t, const char *path, sinter_error *err)
{
    struct gguf *g = NULL;
    *t = (struct golden){0};
    bool ok = sinter_host_create(NULL, &t->host, err) == SINTER_OK &&
              gguf_open(t->host, path, &g, err) == SINTER_OK &&
              vocab_open(g, NULL, &t->v, err) == SINTER_OK;
    gguf_close(g);
    return ok;
}

static inline void golden_close(struct golden *t)
{
    vocab_free(t->v);
    sinter_host_free(t->host);
}

/* Do the bytes come back? */
static inline bool golden_round_trips(struct golden *t, const char *text, size_t bytes,
                                      unsigned flags)
{
    struct vocab_ids ids = {0};
    struct text_buf b;
    sinter_error err = {0};
    text_buf_init(&b, t->host);
    bool ok =
        vocab_encode(t->v, text, bytes, flags, &ids, &err) == SINTER_OK &&
        vocab_decode(t->v, ids.id, ids.n, DETOK_SPECIAL | DETOK_START, &b, &err) == SINTER_OK &&
        b.bytes == bytes && (!bytes || memcmp(b.text, text, bytes) == 0);
    if (!ok)
        fprintf(stderr, "%s: '%.*s' does not come back: %s\n", t->v->path, (int)bytes, text,
                err.message);
    text_buf_free(&b);
    vocab_ids_free(t->v, &ids);
    return ok;
}

/* SentencePiece itself makes a blank of U+2581, which is lost then, and puts no blank after a
 * user-defined token, where Hugging Face does: of such texts only the bytes are compared. */
static inline bool golden_departs(const struct golden *t, const char *text, size_t bytes)
{
    if (vocab_model(t->v) != VOCAB_SPM)
        return false;
    const int32_t id = vocab_index_find(&t->v->by_text, "</s>", 4);
    return memmem(text, bytes, "\xE2\x96\x81", 3) ||
           (t->v->space_prefix && id >= 0 && t->v->type[id] == VOCAB_USER_DEFINED &&
            memmem(text, bytes, "</s>", 4));
}

/* Counts one case: exactly these ids. */
static inline void golden_case(struct golden *t, const char *text, size_t bytes, unsigned flags,
                               const int32_t *want, size_t n)
{
    struct vocab_ids ids = {0};
    sinter_error err = {0};
    size_t same = 0;
    if (golden_departs(t, text, bytes)) {
        t->n_case++;
        t->n_ok += golden_round_trips(t, text, bytes, flags);
        return;
    }
    sinter_status status = vocab_encode(t->v, text, bytes, flags, &ids, &err);
    while (same < ids.n && same < n && ids.id[same] == want[same])
        same++;
    const bool ok = status == SINTER_OK && same == ids.n && same == n;
    if (!ok)
        fprintf(stderr, "%s: '%.*s': %zu ids, not %zu; id %zu is %d, not %d %s\n", t->v->path,
                (int)(bytes < 200 ? bytes : 200), text, ids.n, n, same,
                same < ids.n ? ids.id[same] : -1, same < n ? want[same] : -1, err.message);
    t->n_case++;
    t->n_ok += ok;
    vocab_ids_free(t->v, &ids);
}

#ifdef HAVE_jansson
/* JSON lines {"text": ..., "ids": [...]}; others (comments on the file) have no "ids". */
static inline bool golden_jsonl(struct golden *t, const char *path, unsigned flags)
{
    FILE *file = fopen(path, "rb");
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    bool ok = file != NULL;
    while (file && (n = getline(&line, &cap, file)) > 0) {
        json_t *row = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, NULL);
        json_t *text = json_object_get(row, "text"), *ids = json_object_get(row, "ids");
        const size_t n_id = json_array_size(ids);
        int32_t *want = calloc(n_id + 1, sizeof *want);
        for (size_t i = 0; i < n_id; i++)
            want[i] = (int32_t)json_integer_value(json_array_get(ids, i));
        if (!row)
            ok = false;
        else if (text && ids)
            golden_case(t, json_string_value(text), json_string_length(text), flags, want, n_id);
        free(want);
        json_decref(row);
    }
    free(line);
    if (file)
        fclose(file);
    return ok;
}
#endif

/* PATH.inp: texts with a line __ggml_vocab_test__ between; PATH.out: one line of ids for each. */
static inline bool golden_inp_out(struct golden *t, const char *path, sinter_error *err)
{
    static const char mark[] = "\n__ggml_vocab_test__\n";
    char name[512], *inp = NULL, *out = NULL;
    size_t n_inp, n_out;
    snprintf(name, sizeof name, "%s.inp", path);
    if (host_read_file(t->host, name, 1 << 24, &inp, &n_inp, err) != SINTER_OK)
        return false;
    snprintf(name, sizeof name, "%s.out", path);
    if (host_read_file(t->host, name, 1 << 24, &out, &n_out, err) != SINTER_OK) {
        host_free(t->host, inp);
        return false;
    }
    char *line = out;
    for (char *text = inp, *next; text; text = next) {
        int32_t want[4096];
        size_t n = 0;
        char *end = strstr(text, mark), *eol = strchr(line, '\n');
        next = end ? end + sizeof mark - 1 : NULL;
        if (!end && !*text)
            break;
        for (char *p = line; n < 4096 && p && (!eol || p < eol); n++) {
            while (*p == ' ')
                p++;
            if (p == eol || !*p)
                break;
            want[n] = (int32_t)strtol(p, &p, 10);
        }
        golden_case(t, text, end ? (size_t)(end - text) : strlen(text), 0, want, n);
        line = eol ? eol + 1 : line + strlen(line);
    }
    host_free(t->host, inp);
    host_free(t->host, out);
    return true;
}

#endif
