/* A conversation of `sinter run`: messages, answers, the terminal. */
#ifndef CHAT_H
#define CHAT_H

#include "tool.h"

struct run_args {
    const char *model, *prompt, *file, *system, *type_k, *type_v, *think;
    bool raw, ignore_eos, json;
    int64_t n, ctx, seed, top_k;
    double temp, top_p, min_p, penalty;
    struct texts stop;
};

struct chat {
    struct tool *t;
    const struct run_args *args;
    sinter_model *model;
    sinter_model_info info;
    sinter_engine *engine;
    sinter_session *session;
    sinter_sampler *sampler; /* NULL: greedy */
    bool chat;               /* with the template */
    struct text bos, eos;    /* as the template wants them: JSON strings */
    struct text messages;    /* {"role":…},{…} of what was said; plainly: the text so far */
};

CHECKED sinter_status chat_start(struct chat *c);
void chat_clear(struct chat *c); /* forgets what was said, but for the system prompt */
/* Writes the answer to `text` on stdout; both join what was said, or neither on an error. */
CHECKED sinter_status chat_answer(struct chat *c, const char *text, size_t n, bool *interrupted);
/* Reads and answers until /exit or the end of input. */
CHECKED sinter_status chat_talk(struct chat *c);
void chat_end(struct chat *c);

/* ---- Lines from the terminal (lines.c): libedit's, or plain ones where it is missing. ----------
 */
struct lines;
struct lines *lines_open(void); /* NULL: out of memory */
/* One line without its end. false: end of input; *interrupted: Ctrl-C, and *line is empty. */
bool lines_read(struct lines *l, const char *prompt, struct text *line, bool *interrupted);
void lines_remember(struct lines *l, const char *line);
void lines_close(struct lines *l);

#endif
