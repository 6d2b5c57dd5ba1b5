/* Logits of the tiny models against transformers in float64: every backend and ISA level. */
#include "golden/gold.h"

#include <dirent.h>

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_gold(const struct dirent *d)
{
    const char *dot = strrchr(d->d_name, '.');
    return dot && strcmp(dot, ".gold") == 0;
}

int main(void)
{
    const char *dir = TEST_SOURCE_DIR "/tests/golden/tiny";
    struct dirent **list;
    struct gold_count count = {0};
    int n = scandir(dir, &list, is_gold, by_name);
    for (int i = 0; i < n; i++) {
        char gold[1024], model[1024], name[256];
        snprintf(name, sizeof name, "%.*s", (int)(strlen(list[i]->d_name) - 5), list[i]->d_name);
        snprintf(gold, sizeof gold, "%s/%s.gold", dir, name);
        snprintf(model, sizeof model, "%s/%s.gguf", dir, name);
        for (int w = 0; w < GOLD_N_WAY; w++)
            gold_case(model, gold, name, &gold_ways[w], &count);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    if (count.skipped)
        printf("SKIPPED: %d need an isa level that this machine lacks\n", count.skipped);
    printf("logits: %d/%d\n", count.ok, count.all);
    return count.all > 0 && count.ok == count.all ? 0 : 1;
}
