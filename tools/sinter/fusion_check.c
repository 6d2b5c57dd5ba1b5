/* sinter fusion check: runs the dummies against the baseline of the backend, or model files against
 * a baseline of their own. */
#include "fusion.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void print_models(struct tool *t)
{
    char name[64];
    for (int32_t i = 0; sinter_dummy_name(i, false, name); i++)
        out_printf(t, "%s\n", name);
}

/* A folder of its own, so that two checks at once do not meet. */
static sinter_status make_folder(struct tool *t, char path[512])
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, 512, "%s/sinter-XXXXXX", folder && *folder ? folder : P_tmpdir);
    if (!mkdtemp(path))
        return FAIL(t, IO, "%s: cannot be made: %s; set TMPDIR or give --work", path,
                    strerror(errno));
    return SINTER_OK;
}

static void remove_folder(const char *path)
{
    char name[64], file[640];
    for (int32_t i = 0; sinter_dummy_name(i, false, name); i++) {
        snprintf(file, sizeof file, "%s/%s.gguf", path, name);
        unlink(file);
    }
    rmdir(path);
}

/* ---- Files in place of dummies ------------------------------------------------------------- */

struct files {
    char **path;
    int n;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_files(struct files *f)
{
    for (int i = 0; i < f->n; i++)
        free(f->path[i]);
    free(f->path);
}

static sinter_status add_file(struct tool *t, struct files *f, const char *folder, const char *name)
{
    const size_t bytes = strlen(folder) + strlen(name) + 2;
    char **grown = realloc(f->path, ((size_t)f->n + 1) * sizeof *grown), *path = malloc(bytes);
    f->path = grown ? grown : f->path;
    if (!grown || !path) {
        free(path);
        return FAIL(t, MEMORY, "out of memory for the files of %s", folder);
    }
    snprintf(path, bytes, "%s/%s", folder, name);
    f->path[f->n++] = path;
    return SINTER_OK;
}

/* Sorted, so that a baseline is the same on every machine. */
static sinter_status list_folder(struct tool *t, const char *folder, struct files *f)
{
    struct stat st;
    struct dirent *e;
    sinter_status status = SINTER_OK;
    if (!stat(folder, &st) && !S_ISDIR(st.st_mode))
        return FAIL(t, USAGE,
                    "--models %s: is a file; --models takes a folder of .gguf files, "
                    "--model one file",
                    folder);
    DIR *dir = opendir(folder);
    if (!dir && errno == ENOENT)
        return FAIL(t, NOT_FOUND,
                    "--models %s: no such folder; give one with .gguf files "
                    "(--list shows the dummies)",
                    folder);
    if (!dir)
        return FAIL(t, IO, "--models %s: cannot be read: %s", folder, strerror(errno));
    while (status == SINTER_OK && (e = readdir(dir))) {
        const size_t n = strlen(e->d_name);
        if (n > 5 && !strcmp(e->d_name + n - 5, ".gguf"))
            status = add_file(t, f, folder, e->d_name);
    }
    closedir(dir);
    if (status == SINTER_OK && !f->n)
        return FAIL(t, NOT_FOUND, "--models %s: the folder holds no .gguf file", folder);
    if (f->n)
        qsort(f->path, (size_t)f->n, sizeof *f->path, by_name);
    return status;
}

static bool is_dummy(const char *given)
{
    char name[64];
    for (int32_t i = 0; sinter_dummy_name(i, false, name); i++)
        if (!strcmp(name, given))
            return true;
    return false;
}

/* The tree's baseline is the dummies'; that of other models is named, or there is none. */
static sinter_status find_baseline(struct tool *t, const char **baseline, char own[64])
{
    const struct fusion_args *a = t->args;
    struct stat st;
    snprintf(own, 64, "tests/fusion/%.20s.csv", host_value(t, "backend"));
    *baseline = a->baseline ? a->baseline : own;
    if (a->model && a->models)
        return FAIL(t, USAGE, "give --model or --models, not both");
    if (a->model && !is_dummy(a->model) && !stat(a->model, &st) && S_ISDIR(st.st_mode))
        return FAIL(t, USAGE, "--model %s: is a folder; --models takes one, --model a .gguf file",
                    a->model);
    if (a->baseline || (!a->models && (!a->model || is_dummy(a->model))))
        return SINTER_OK;
    if (a->record)
        return FAIL(t, USAGE,
                    "--record: name the file to write with --baseline; %s is the "
                    "dummies'",
                    own);
    *baseline = NULL;
    return SINTER_OK;
}

/* ---- The check --------------------------------------------------------------------------------
 */

static sinter_status check(struct tool *t, const struct files *f, const char *baseline)
{
    const struct fusion_args *a = t->args;
    char folder[512];
    if (!a->work)
        TRY(make_folder(t, folder));
    sinter_fusion_check_options o = {.size = sizeof o,
                                     .baseline = baseline,
                                     .record = a->record,
                                     .model = a->model,
                                     .file = (const char *const *)f->path,
                                     .n_file = f->n,
                                     .work = a->work ? a->work : folder};
    sinter_status status = sinter_fusion_check(t->host, &o, out_write, t, &t->err);
    if (!a->work)
        remove_folder(folder);
    if (!baseline && (status == SINTER_OK || status == SINTER_E_DATA))
        note(t, "no --baseline: how often each fusion fires is not compared");
    if (status == SINTER_E_NOT_FOUND && baseline && !a->baseline && access(baseline, F_OK))
        return FAIL(t, NOT_FOUND,
                    "%s: no such file: run the check in sinter's source tree, or name a baseline "
                    "with --baseline (with --record it is made)",
                    baseline);
    if (status == SINTER_E_DEVICE)
        out_printf(t, "SKIPPED: %s\n", t->err.message);
    if (status != SINTER_E_DATA)
        return status;
    fprintf(stderr, "sinter: %s\n", t->err.message); /* it ran, and found a difference */
    t->exit_code = 1;
    return SINTER_OK;
}

sinter_status fusion_check(struct tool *t)
{
    const struct fusion_args *a = t->args;
    struct files files = {0};
    const char *baseline;
    char own[64];
    TRY(no_more_args(t));
    if (a->json)
        return FAIL(t, USAGE, "fusion check has no --json: it prints a line per finding and N/N");
    if (a->list) {
        static const char *const used[] = {NULL};
        TRY(opt_only_with(t, "list", used));
        print_models(t);
        return SINTER_OK;
    }
    TRY(find_baseline(t, &baseline, own));
    sinter_status status = a->models ? list_folder(t, a->models, &files) : SINTER_OK;
    if (status == SINTER_OK)
        status = check(t, &files, baseline);
    free_files(&files);
    return status;
}
