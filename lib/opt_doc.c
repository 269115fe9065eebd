// SPDX-License-Identifier: Apache-2.0
// The sample file and the man page, from the rows.
//
// In the sample a line of explanation begins with "# " and a letter, an option that is commented out with "#"
// directly before its key (or before two blanks within a list): so a script, and a test, can un-comment every
// option.
#include <stdlib.h>
#include <string.h>

#include "lib/arena.h"
#include "lib/opt_priv.h"

#define WIDTH 100

static const char *const reload_text[] = {
    [OPT_RELOAD_LIVE] = "takes effect on reload",
    [OPT_RELOAD_RESWEEP] = "takes effect on reload, with a full sweep",
    [OPT_RELOAD_RESTART] = "takes effect after a restart",
};

// The default as the file would have it; empty when zero, which stands for "none", is out of range.
static void default_text(const struct opt_row *row, struct buf *out)
{
    union {
        bool b;
        int64_t i;
        double d;
        const char *s;
        int e;
        uint64_t g;
        struct opt_strings strings;
        struct opt_list list;
    } v;
    struct arena *a = arena_new();

    if (row->def) {
        memset(&v, 0, sizeof(v));
        opt_value_parse(row, row->def, a, &v);
        // Durations and the like as the author wrote them ("90s", not "1.5m"); what may need quotes, or is a
        // list, by its value.
        if (row->type == OPT_STRING || row->type == OPT_STRINGS)
            opt_value_format(row, &v, out);
        else
            buf_puts(out, row->def);
    } else {
        opt_value_zero(row, &v);
        opt_value_format(row, &v, out);
        if ((row->min != 0 || row->max != 0) && (row->min > 0 || row->max < 0))
            buf_clear(out);
    }
    arena_free(a);
}

// "integer 0..15, microseconds, default 0; takes effect ..."
static void facts(const struct opt_row *row, struct buf *out)
{
    struct buf expected = {0}, def = {0};

    opt_value_expected(row, &expected);
    const char *s = expected.data;
    s += !strncmp(s, "an ", 3) ? 3 : !strncmp(s, "a ", 2) ? 2 : 0;
    buf_puts(out, s);
    if (row->unit && row->unit[0])
        buf_printf(out, ", in %s", row->unit);
    if (row->type != OPT_LIST) {
        default_text(row, &def);
        buf_printf(out, ", default %s", def.len ? def.data : "none");
    }
    buf_printf(out, "; %s", reload_text[row->reload]);
    buf_done(&expected);
    buf_done(&def);
}

// Text in comment lines that are not longer than WIDTH, unless a single word is.
static void wrap(FILE *f, int indent, const char *text)
{
    size_t at = 0;

    while (*text) {
        text += strspn(text, " \n");
        size_t n = strcspn(text, " \n");
        if (!n)
            break;
        if (at && at + 1 + n > WIDTH) {
            fputc('\n', f);
            at = 0;
        }
        at += at ? (size_t)fprintf(f, " %.*s", (int)n, text)
                 : (size_t)fprintf(f, "%*s# %.*s", indent, "", (int)n, text);
        text += n;
    }
    if (at)
        fputc('\n', f);
}

static void sample_head(const struct opt_row *row, int indent, FILE *f)
{
    struct buf text = {0};

    if (row->doc)
        wrap(f, indent, row->doc);
    if (row->type != OPT_SECTION) {
        facts(row, &text);
        wrap(f, indent, text.data);
    }
    buf_done(&text);
}

// Rows as they stand in a file, nothing commented out: the inside of a list's element, whose first key
// carries the dash.
static void plain_rows(const struct opt_row *rows, int indent, bool dash, FILE *f)
{
    for (const struct opt_row *row = rows; row->name; row++) {
        struct buf value = {0};

        sample_head(row, indent, f);
        if (dash && row == rows)
            fprintf(f, "%*s- %s:", indent - 2, "", row->name);
        else
            fprintf(f, "%*s%s:", indent, "", row->name);
        if (row->type == OPT_SECTION || row->type == OPT_LIST) {
            fputc('\n', f);
            plain_rows(row->sub, indent + (row->type == OPT_LIST ? 4 : 2), row->type == OPT_LIST, f);
        } else {
            default_text(row, &value);
            fprintf(f, "%s%s\n", value.len ? " " : "", value.len ? value.data : "");
        }
        buf_done(&value);
    }
}

static void commented_list(const struct opt_row *row, int indent, FILE *f)
{
    char *text = NULL;
    size_t size = 0;
    FILE *mem = open_memstream(&text, &size);

    if (!mem)
        abort();
    plain_rows(row->sub, 4, true, mem);
    fclose(mem);
    fprintf(f, "%*s#%s:\n", indent, "", row->name);
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) && rest;)
        fprintf(f, "%*s#%s\n", indent, "", line);
    free(text);
}

static void sample_rows(const struct opt_row *rows, int indent, FILE *f)
{
    for (const struct opt_row *row = rows; row->name; row++) {
        struct buf value = {0};

        sample_head(row, indent, f);
        if (row->type == OPT_SECTION) {
            fprintf(f, "%*s%s:\n\n", indent, "", row->name);
            sample_rows(row->sub, indent + 2, f);
            continue;
        }
        if (row->type == OPT_LIST) {
            commented_list(row, indent, f);
        } else {
            default_text(row, &value);
            fprintf(f, "%*s#%s:%s%s\n", indent, "", row->name, value.len ? " " : "",
                    value.len ? value.data : "");
        }
        fputc('\n', f);
        buf_done(&value);
    }
}

void opt_write_sample(const struct opt_row *rows, FILE *f)
{
    fputs("# Every option at its default, commented out: to change one, remove the \"#\" directly before its "
          "name.\n"
          "# Durations: ns, us, ms, s, m, h, d. Sizes: k, M, G, T (of 1024).\n\n",
          f);
    sample_rows(rows, 0, f);
}

// --- the man page ---

static void roff(FILE *f, const char *s)
{
    if (*s == '.' || *s == '\'')
        fputs("\\&", f);
    for (; *s; s++) {
        if (*s == '\\')
            fputs("\\e", f);
        else if (*s == '-')
            fputs("\\-", f);
        else
            fputc(*s, f);
    }
}

static void man_rows(const struct opt_row *rows, struct buf *path, FILE *f)
{
    size_t len = path->len;

    for (const struct opt_row *row = rows; row->name; row++) {
        struct buf text = {0};

        buf_printf(path, "%s%s", len ? "." : "", row->name);
        fputs(row->type == OPT_SECTION ? ".SS " : ".TP\n.B ", f);
        roff(f, path->data);
        fputc('\n', f);
        if (row->doc) {
            roff(f, row->doc);
            fputs(row->type == OPT_SECTION ? "\n" : ".\n", f);
        }
        if (row->type != OPT_SECTION) {
            facts(row, &text);
            fputs("(", f);
            roff(f, text.data);
            fputs(")\n", f);
        }
        if (row->type == OPT_LIST)
            buf_puts(path, "[]");
        if (row->sub)
            man_rows(row->sub, path, f);
        path->len = len;
        path->data[len] = '\0';
        buf_done(&text);
    }
}

void opt_write_man(const struct opt_row *rows, FILE *f)
{
    struct buf path = {0};
    man_rows(rows, &path, f);
    buf_done(&path);
}
