// SPDX-License-Identifier: Apache-2.0
//
// Input: a configuration file. Whatever it holds, it loads or gives one clean line that says where; what was
// loaded can be dumped and compared.
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/arena.h"
#include "lib/err.h"
#include "tests/unit/lib/opt_schema.h"

static void count(void *arg, const struct opt_row *row, const char *path)
{
    ++*(unsigned *)arg;
}

static void check_error(int r, const struct err *e)
{
    char text[700];

    if (r != e->code || !e->text[0] || !e->where[0])
        abort();
    err_str(e, text, sizeof(text));
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new();
    struct demo before, after;
    struct err e = {0};
    char *text = NULL;
    size_t len;
    unsigned differences = 0;

    memset(&before, 0, sizeof(before));
    memset(&after, 0, sizeof(after));
    opt_defaults(demo_rows, &before, a);
    opt_defaults(demo_rows, &after, a);
    int r = opt_load_text(demo_rows, &after, a, (const char *)data, size, "fuzz", &e);
    if (r < 0)
        check_error(r, &e);
    // Also after an error: what was set until then is whole.
    FILE *f = open_memstream(&text, &len);
    opt_dump(demo_rows, &after, f);
    fclose(f);
    free(text);
    opt_diff(demo_rows, &before, &after, count, &differences);
    arena_free(a);
    return 0;
}
