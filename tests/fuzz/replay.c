/* Runs a fuzz target without a fuzzer: over every file of a corpus folder, over each cut short at
 * up to 256 places, and over up to 256 seeded damages of each (a byte set to a value that hurts).
 * A failure is a crash or a sanitizer's report; the last line is "NAME: N/N inputs". */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static unsigned long long n_input;

/* A block of exactly the input's size, so that a read past its end is seen. */
static void feed(const uint8_t *data, size_t bytes)
{
    uint8_t *copy = malloc(bytes ? bytes : 1);
    if (!copy)
        abort();
    memcpy(copy, data, bytes);
    LLVMFuzzerTestOneInput(copy, bytes);
    free(copy);
    n_input++;
}

static void feed_damaged(uint8_t *data, size_t bytes)
{
    static const uint8_t hurt[] = {0x00, 0xFF, 0x7F, 0x80, 0x01, 0xFE};
    uint64_t seed = 88172645463325252u + bytes;
    feed(data, bytes);
    for (size_t i = 0; i < 256 && i < bytes; i++)
        feed(data, bytes <= 256 ? i : i * bytes / 256);
    for (int i = 0; i < 256 && bytes; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        const size_t at = (i & 1 && bytes > 128 ? seed % 128 : seed % bytes);
        const uint8_t old = data[at];
        data[at] = hurt[seed >> 40 & 3] ^ (i % 3 ? 0 : (uint8_t)(seed >> 50));
        feed(data, bytes);
        data[at] = old;
    }
}

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    long bytes = -1;
    if (file && !fseek(file, 0, SEEK_END))
        bytes = ftell(file);
    if (bytes >= 0 && (data = malloc((size_t)bytes + 1)) && !fseek(file, 0, SEEK_SET) &&
        fread(data, 1, (size_t)bytes, file) == (size_t)bytes)
        feed_damaged(data, (size_t)bytes);
    else
        bytes = -1;
    free(data);
    if (file)
        fclose(file);
    if (bytes < 0)
        fprintf(stderr, "%s cannot be read\n", path);
    return bytes < 0;
}

int main(int n_arg, char **arg)
{
    int n_file = 0, n_bad = 0;
    const char *name;
    for (int i = 1; i < n_arg; i++) {
        DIR *folder = opendir(arg[i]);
        struct dirent *entry;
        while (folder && (entry = readdir(folder))) {
            char path[4096];
            if (entry->d_name[0] == '.')
                continue;
            snprintf(path, sizeof path, "%s/%s", arg[i], entry->d_name);
            n_bad += replay_file(path);
            n_file++;
        }
        if (folder)
            closedir(folder);
    }
    if (!n_file || n_bad) {
        fprintf(stderr, "%s: no corpus, or files of it that cannot be read\n",
                n_arg > 1 ? arg[1] : "usage: NAME FOLDER");
        return 1;
    }
    name = strrchr(arg[0], '/') ? strrchr(arg[0], '/') + 1 : arg[0];
    printf("%s: %llu/%llu inputs out of %d files\n", name, n_input, n_input, n_file);
    return 0;
}
