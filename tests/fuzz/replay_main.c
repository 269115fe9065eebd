// SPDX-License-Identifier: Apache-2.0
//
// Feeds files, or all files of directories, to a fuzz target. Fails if a path cannot be read or if there was
// no input at all. After the inputs as they are it gives each one cut short at some lengths and with single
// bytes changed, always the same ones.
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define INPUT_MAX_BYTES (16u << 20)

static unsigned inputs;

// A copy of exactly this size, so that a sanitizer sees the first byte read beyond the end.
static void feed(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void feed_variants(uint8_t *data, size_t size)
{
    feed(data, size);
    inputs++;
    size_t step = size / 64 + 1;
    for (size_t n = 0; n < size; n += step)
        feed(data, n);
    static const uint8_t flips[] = {0x01, 0x80, 0xff};
    for (size_t i = 0; i < size; i += step)
        for (unsigned k = 0; k < sizeof(flips); k++) {
            data[i] ^= flips[k];
            feed(data, size);
            data[i] ^= flips[k];
        }
}

static int replay_file(const char *path, off_t size)
{
    if (size > INPUT_MAX_BYTES) {
        fprintf(stderr, "%s: too long\n", path);
        return 1;
    }
    FILE *f = fopen(path, "rb");
    uint8_t *data = malloc(size ? (size_t)size : 1);
    if (!f || !data || fread(data, 1, (size_t)size, f) != (size_t)size) {
        fprintf(stderr, "%s: cannot be read: %s\n", path, strerror(errno));
        free(data);
        if (f)
            fclose(f);
        return 1;
    }
    fclose(f);
    feed_variants(data, (size_t)size);
    free(data);
    return 0;
}

static int replay(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 1;
    }
    if (S_ISREG(st.st_mode))
        return replay_file(path, st.st_size);
    struct dirent **names;
    int n = scandir(path, &names, NULL, alphasort), rc = n < 0;
    for (int i = 0; i < n; i++) {
        char sub[4096];
        if (names[i]->d_name[0] != '.') {
            snprintf(sub, sizeof(sub), "%s/%s", path, names[i]->d_name);
            rc |= replay(sub);
        }
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return rc;
}

int main(int argc, char **argv)
{
    int rc = 0;
    for (int i = 1; i < argc; i++)
        rc |= replay(argv[i]);
    printf("%u inputs\n", inputs);
    return rc || inputs == 0;
}
