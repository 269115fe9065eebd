// SPDX-License-Identifier: Apache-2.0
// Walks over a schema: defaults, one option by path, dump, differences, and which key was meant.
#include "lib/opt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/arena.h"
#include "lib/err.h"
#include "lib/opt_priv.h"

void opt_defaults(const struct opt_row *rows, void *base, struct arena *a)
{
    for (const struct opt_row *row = rows; row->name; row++) {
        void *field = opt_field(row, base);
        if (row->type == OPT_SECTION) {
            opt_defaults(row->sub, field, a);
            continue;
        }
        opt_value_zero(row, field);
        if (row->def && opt_value_parse(row, row->def, a, field) < 0) {
            fprintf(stderr, "weft: option %s: its default \"%s\" is not valid\n", row->name, row->def);
            abort();
        }
    }
}

const struct opt_row *opt_find(const struct opt_row *rows, const char *name)
{
    for (const struct opt_row *row = rows; row->name; row++)
        if (!strcmp(row->name, name))
            return row;
    return NULL;
}

// --- which key was meant ---

#define KEY_MAX 64

// Optimal string alignment: insertions, deletions, substitutions and swapped neighbours count one.
static unsigned distance(const char *a, const char *b)
{
    unsigned row[3][KEY_MAX + 1], na = (unsigned)strlen(a), nb = (unsigned)strlen(b);
    unsigned *before = row[0], *last = row[1], *now = row[2];

    for (unsigned j = 0; j <= nb; j++)
        last[j] = j;
    for (unsigned i = 1; i <= na; i++) {
        now[0] = i;
        for (unsigned j = 1; j <= nb; j++) {
            unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
        unsigned *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[nb];
}

static const struct opt_row *nearest(const struct opt_row *rows, const char *key)
{
    const struct opt_row *found = NULL;
    size_t len = strlen(key);
    unsigned best = len < 4 ? 2 : (unsigned)len / 2 + 1; // further away is another word

    if (len > KEY_MAX)
        return NULL;
    for (const struct opt_row *row = rows; row->name; row++) {
        if (strlen(row->name) > KEY_MAX)
            continue;
        unsigned d = distance(key, row->name);
        if (d < best) {
            best = d;
            found = row;
        }
    }
    return found;
}

// The same name in another section (not in lists): its path into out.
static bool elsewhere(const struct opt_row *rows, const char *key, struct buf *out)
{
    if (opt_find(rows, key)) {
        buf_puts(out, key);
        return true;
    }
    for (const struct opt_row *row = rows; row->name; row++) {
        if (row->type != OPT_SECTION)
            continue;
        size_t len = out->len;
        buf_printf(out, "%s.", row->name);
        if (elsewhere(row->sub, key, out))
            return true;
        out->len = len;
        out->data[len] = '\0';
    }
    return false;
}

void opt_unknown(const struct opt_row *root, const struct opt_row *rows, const char *key, struct buf *out)
{
    struct buf path = {0};
    const struct opt_row *row;

    buf_puts(out, "unknown key");
    if (elsewhere(root, key, &path)) {
        buf_printf(out, "; did you mean \"%s\"?", path.data);
    } else if ((row = nearest(rows, key))) {
        buf_printf(out, "; did you mean \"%s\"?", row->name);
    } else {
        buf_puts(out, "; known here:");
        for (row = rows; row->name && out->len < 300; row++)
            buf_printf(out, "%s %s", row == rows ? "" : ",", row->name);
        if (row->name)
            buf_puts(out, ", ...");
    }
    buf_done(&path);
}

// --- one option by path ---

static int set_at(const struct opt_row *rows, void *base, struct arena *a, const char *path,
                  const char *value, struct buf *why)
{
    const struct opt_row *row, *root = rows;
    char key[KEY_MAX + 1];

    for (const char *rest = path;;) {
        size_t n = strcspn(rest, ".");
        if (n > KEY_MAX) {
            buf_puts(why, "unknown key");
            return -EINVAL;
        }
        memcpy(key, rest, n);
        key[n] = '\0';
        row = opt_find(rows, key);
        if (!row) {
            opt_unknown(root, rows, key, why);
            return -EINVAL;
        }
        rest += n;
        if (!*rest)
            break;
        rest++;
        if (row->type != OPT_SECTION) {
            buf_printf(why, "%s has no options below it that can be set here", row->name);
            return -EINVAL;
        }
        base = opt_field(row, base);
        rows = row->sub;
    }
    if (row->type == OPT_SECTION || row->type == OPT_LIST) {
        buf_printf(why, "is a %s: set it in the file", row->type == OPT_LIST ? "list" : "section");
        return -EINVAL;
    }
    if (opt_value_parse(row, value, a, opt_field(row, base)) < 0) {
        opt_value_complaint(row, value, why);
        return -EINVAL;
    }
    return 0;
}

int opt_set(const struct opt_row *rows, void *base, struct arena *a, const char *path, const char *value,
            struct err *e)
{
    struct buf why = {0};

    opt_show(path, &why);
    buf_puts(&why, ": ");
    int r = set_at(rows, base, a, path, value, &why);
    if (r < 0)
        err_set(e, r, NULL, "%s", why.data);
    buf_done(&why);
    return r;
}

// --- dump, differences ---

typedef void visit_fn(void *arg, const struct opt_row *row, const char *path, const void *field);

static void visit(const struct opt_row *rows, const void *base, struct buf *path, visit_fn *fn, void *arg)
{
    size_t len = path->len;

    for (const struct opt_row *row = rows; row->name; row++) {
        const void *field = (const char *)base + row->offset;
        buf_printf(path, "%s%s", len ? "." : "", row->name);
        if (row->type == OPT_SECTION)
            visit(row->sub, field, path, fn, arg);
        else
            fn(arg, row, path->data, field);
        path->len = len;
        path->data[len] = '\0';
    }
}

static void dump_one(void *arg, const struct opt_row *row, const char *path, const void *field);

static void dump_list(struct buf *out, const struct opt_row *row, const char *path,
                      const struct opt_list *list)
{
    struct buf at = {0};

    if (!list->n)
        buf_printf(out, "%s: []\n", path);
    for (size_t i = 0; i < list->n; i++) {
        buf_clear(&at);
        buf_printf(&at, "%s[%zu]", path, i);
        visit(row->sub, (const char *)list->item + i * row->elem_size, &at, dump_one, out);
    }
    buf_done(&at);
}

static void dump_one(void *arg, const struct opt_row *row, const char *path, const void *field)
{
    struct buf *out = arg;

    if (row->type == OPT_LIST) {
        dump_list(out, row, path, field);
        return;
    }
    buf_printf(out, "%s: ", path);
    opt_value_format(row, field, out);
    buf_putc(out, '\n');
}

void opt_dump(const struct opt_row *rows, const void *base, FILE *f)
{
    struct buf out = {0}, path = {0};

    visit(rows, base, &path, dump_one, &out);
    if (out.len)
        fwrite(out.data, 1, out.len, f);
    buf_done(&out);
    buf_done(&path);
}

struct diff {
    const char *before, *after; // the structs
    opt_diff_fn *fn;
    void *arg;
};

static void diff_one(void *arg, const struct opt_row *row, const char *path, const void *field)
{
    struct diff *d = arg;
    struct buf a = {0}, b = {0};

    // Nested sections only add offsets, so the same distance leads to the same field of the other struct.
    dump_one(&a, row, path, field);
    dump_one(&b, row, path, d->after + ((const char *)field - d->before));
    if (strcmp(a.data, b.data))
        d->fn(d->arg, row, path);
    buf_done(&a);
    buf_done(&b);
}

void opt_diff(const struct opt_row *rows, const void *before, const void *after, opt_diff_fn *fn, void *arg)
{
    struct diff d = {.before = before, .after = after, .fn = fn, .arg = arg};
    struct buf path = {0};

    visit(rows, before, &path, diff_one, &d);
    buf_done(&path);
}
