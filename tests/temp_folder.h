/* A folder for the files of a test program: made when it is first asked for, gone with all that is
 * in it when the program ends. */
#ifndef TESTS_TEMP_FOLDER_H
#define TESTS_TEMP_FOLDER_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

static inline int temp_remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st, (void)flag, (void)at;
    return remove(path);
}

static char temp_folder_name[512];

static inline void temp_remove(void)
{
    nftw(temp_folder_name, temp_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline const char *temp_folder(void)
{
    if (!temp_folder_name[0]) {
        snprintf(temp_folder_name, sizeof temp_folder_name, "%s/test-XXXXXX", TEST_BINARY_DIR);
        if (!mkdtemp(temp_folder_name) || atexit(temp_remove)) {
            perror(temp_folder_name);
            abort();
        }
    }
    return temp_folder_name;
}

enum { TEMP_PATH = 1024 };

/* The path of a file in it. */
static inline const char *temp_path(const char *name, char path[TEMP_PATH])
{
    snprintf(path, TEMP_PATH, "%s/%s", temp_folder(), name);
    return path;
}

#endif
