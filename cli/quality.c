// SPDX-License-Identifier: Apache-2.0
// weft route quality: how well routes spread traffic, beside the ideal ones and those before.
#include "cli/quality.h"

#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"

#define POLL_FIRST 0.02
#define POLL_MAX 0.5

static const struct field quality_fields[] = {
    {.key = "pattern", .title = "PATTERN"},
    {.key = "mean", .title = "MEAN", .kind = FIELD_SECONDS},
    {.key = "worst", .title = "WORST", .kind = FIELD_SECONDS},
    {.key = "max_load", .title = "MAX LOAD", .kind = FIELD_COUNT},
    {.key = "max_over_mean", .title = "/MEAN", .kind = FIELD_SECONDS},
    {.key = "failed", .title = "FAILED", .kind = FIELD_COUNT},
    {.key = "ideal_mean", .title = "IDEAL", .kind = FIELD_SECONDS},
    {.key = "ideal_max_load", .title = "LOAD", .kind = FIELD_COUNT},
    {.key = "last_mean", .title = "BEFORE", .kind = FIELD_SECONDS},
    {.key = "last_max_load", .title = "LOAD", .kind = FIELD_COUNT},
    {.key = "note", .title = "FULLEST CABLE", .flags = FIELD_SHRINK},
    {0},
};

static json_t *max_load(json_t *figures)
{
    json_t *v = json_object_get(figures, "max_load");
    return v != NULL ? v : json_object_get(figures, "max");
}

// "leaf-1[33] -> spine-2[1]", or why there are no figures. NULL when no cable is named.
static char *note(json_t *figures)
{
    json_t *link = json_object_get(figures, "link");
    if (js_str(figures, "absent")[0] != 0)
        return xasprintf("absent: %s", js_str(figures, "absent"));
    if (!json_is_object(link))
        return NULL;
    const char *from = js_str(link, "name"), *to = js_str(link, "to");
    return xasprintf("%s[%lld] -> %s[%lld]", from[0] ? from : js_str(link, "guid"), js_int(link, "port"),
                     to[0] ? to : js_str(link, "to_guid"), js_int(link, "to_port"));
}

static void put(json_t *to, const char *key, json_t *v)
{
    if (v != NULL && !json_is_null(v))
        json_object_set(to, key, v);
}

static void put_note(json_t *to, const char *key, json_t *figures)
{
    char *text = note(figures);
    if (text != NULL)
        json_object_set_new(to, key, json_string(text));
    free(text);
}

json_t *quality_line(json_t *figures)
{
    if (js_str(figures, "absent")[0] != 0) {
        char *why = note(figures);
        json_t *text = json_string(why);
        free(why);
        return text;
    }
    json_t *line = json_object();
    put(line, "mean", json_object_get(figures, "mean"));
    put(line, "worst", json_object_get(figures, "worst"));
    put(line, "max load", max_load(figures));
    put(line, "max/mean", json_object_get(figures, "max_over_mean"));
    if (js_int(figures, "failed") > 0)
        put(line, "failed", json_object_get(figures, "failed"));
    put_note(line, "at", figures);
    return line;
}

// --- a table ---

// One object a pattern, of figures beside those of the ideal and the last tables (NULL where there are none).
static json_t *rows_of(json_t *now, json_t *ideal, json_t *last)
{
    json_t *rows = json_array(), *v;
    const char *key;
    json_object_foreach(now, key, v)
    {
        if (!json_is_object(v))
            continue;
        json_t *row = json_object(), *i = json_object_get(ideal, key), *l = json_object_get(last, key);
        json_object_set_new(row, "pattern", json_string(key));
        put(row, "mean", json_object_get(v, "mean"));
        put(row, "worst", json_object_get(v, "worst"));
        put(row, "max_load", max_load(v));
        put(row, "max_over_mean", json_object_get(v, "max_over_mean"));
        put(row, "failed", json_object_get(v, "failed"));
        put(row, "ideal_mean", json_object_get(i, "mean"));
        put(row, "ideal_max_load", max_load(i));
        put(row, "last_mean", json_object_get(l, "mean"));
        put(row, "last_max_load", max_load(l));
        put_note(row, "note", v);
        json_array_append_new(rows, row);
    }
    return rows;
}

static bool has_values(json_t *rows, const char *key)
{
    json_t *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        json_t *v = json_object_get(row, key);
        if (v != NULL && !(json_is_integer(v) && json_integer_value(v) == 0))
            return true;
    }
    return false;
}

void quality_columns(const struct field *fields, json_t *rows, struct field *ret)
{
    for (const struct field *f = fields; f->key != NULL; f++)
        if (has_values(rows, f->key))
            *ret++ = *f;
    *ret = (struct field){0};
}

// Columns that say nothing are for CSV only.
void quality_table(struct cli *c, json_t *now, json_t *ideal, json_t *last)
{
    struct field fields[sizeof(quality_fields) / sizeof(quality_fields[0])];
    json_t *rows = rows_of(now, ideal, last);
    quality_columns(quality_fields, rows, fields);
    out_list(&c->out, c->out.format == OUT_TABLE ? fields : quality_fields, rows);
    json_decref(rows);
}

// --- of a file ---

static int show_computed(struct cli *c, const char *what, json_t *r)
{
    json_t *now = json_object_get(r, "quality"), *before = json_object_get(r, "quality_before");
    bool ok = js_true(r, "verify.ok");
    if (c->out.format == OUT_JSON) {
        json_t *o = json_pack("{s:s, s:O?, s:O?}", "engine", js_str(r, "engine"), "quality", now,
                              "quality_before", before);
        out_json(&c->out, o);
        json_decref(o);
    } else {
        if (c->out.format == OUT_TABLE) {
            out_paint(&c->out, COLOUR_BOLD, "%s", what);
            out_printf(&c->out, "  %s engine, %lld adapters, %lld rails", js_str(r, "engine"),
                       js_int(now, "hosts"), js_int(now, "rails"));
            out_newline(&c->out);
        }
        quality_table(c, now, NULL, before);
    }
    if (!ok)
        return cli_fail(CLI_FINDINGS, what, "the routes could not be proved: %s",
                        js_str(r, "verify.counterexample"));
    return CLI_OK;
}

// --- of the fabric in use ---

static int wait_ready(struct cli *c, const char *path, double seconds, json_t **ret)
{
    int64_t deadline = mono_now().ns + (int64_t)(seconds * 1e9);
    for (double pause = POLL_FIRST;; pause = pause * 1.5 < POLL_MAX ? pause * 1.5 : POLL_MAX) {
        json_t *r = NULL;
        int rc = cli_get(c, path, &r);
        if (rc != CLI_OK)
            return rc;
        if (strcmp(js_str(r, "state"), "computing") != 0) {
            *ret = r;
            return CLI_OK;
        }
        json_decref(r);
        cli_progress(c, "computing");
        if (mono_now().ns > deadline)
            return cli_fail(CLI_TIMEOUT, NULL, "still computing; give a longer --timeout");
        if (!cli_sleep(pause))
            return cli_fail(CLI_INTERRUPTED, NULL, "interrupted");
    }
}

void quality_say_adaptive(struct cli *c)
{
    json_t *f = NULL;
    if (c->out.format != OUT_TABLE || cli_get(c, c->fabric, &f) != CLI_OK)
        return;
    long long n = js_int(f, "adaptive.enabled");
    if (n > 0) {
        out_printf(&c->out,
                   "%lld switch%s adaptively: figures are those of the tables, which traffic may leave", n,
                   n == 1 ? " routes" : "es route");
        out_wrap(&c->out, 0);
    }
    json_decref(f);
}

static int show_live(struct cli *c, json_t *r)
{
    json_t *now = json_object_get(r, "quality");
    if (c->out.format == OUT_JSON) {
        out_json(&c->out, r);
        return CLI_OK;
    }
    if (c->out.format == OUT_TABLE) {
        out_paint(&c->out, COLOUR_BOLD, "%s", c->fabric_name);
        out_printf(&c->out, "  %s engine, %lld adapters, %lld rails", js_str(r, "engine"),
                   js_int(now, "hosts"), js_int(now, "rails"));
        out_newline(&c->out);
    }
    quality_table(c, now, json_object_get(r, "ideal"), json_object_get(r, "last"));
    quality_say_adaptive(c);
    return CLI_OK;
}

int cmd_route_quality(struct cli *c)
{
    double seconds = args_has(&c->args, "timeout") ? c->timeout : ROUTE_SECONDS;
    json_t *r = NULL;

    if (c->args.num_words > 0)
        return route_compute_private(c, c->args.word[0], seconds, show_computed);
    if (args_has(&c->args, "engine") || args_has(&c->args, "fail"))
        return cli_fail(
            CLI_USAGE, NULL,
            "--engine and --fail are for a FILE or NAME; \"weft route compute\" takes them for the "
            "running fabric too");
    int rc = cli_fabric(c);
    if (rc != CLI_OK)
        return rc;
    char *path = xasprintf("%s/route-quality", c->fabric);
    rc = wait_ready(c, path, seconds, &r);
    cli_progress_end(c);
    if (rc == CLI_OK)
        rc = show_live(c, r);
    json_decref(r);
    free(path);
    return rc;
}
