// SPDX-License-Identifier: Apache-2.0
// weft whatif: what failures, maintenance and additions would do, before anybody touches a cable.
#include "cli/quality.h"

#include <stdlib.h>
#include <string.h>

#include "cli/text.h"
#include "lib/buf.h"
#include "lib/xalloc.h"

static const char *const options[] = {"fail", "drain", "add"};

static const struct field quality_fields[] = {
    {.key = "pattern", .title = "PATTERN"},
    {.key = "before_mean", .title = "BEFORE", .kind = FIELD_SECONDS},
    {.key = "before_worst", .title = "WORST", .kind = FIELD_SECONDS},
    {.key = "before_max_load", .title = "LOAD", .kind = FIELD_COUNT},
    {.key = "after_mean", .title = "AFTER", .kind = FIELD_SECONDS},
    {.key = "after_worst", .title = "WORST", .kind = FIELD_SECONDS},
    {.key = "after_max_load", .title = "LOAD", .kind = FIELD_COUNT},
    {.key = "after_failed", .title = "FAILED", .kind = FIELD_COUNT},
    {.key = "accepted_mean", .title = "ACCEPTED", .kind = FIELD_SECONDS},
    {.key = "accepted_worst", .title = "WORST", .kind = FIELD_SECONDS},
    {.key = "accepted_max_load", .title = "LOAD", .kind = FIELD_COUNT},
    {.key = "ideal_mean", .title = "IDEAL", .kind = FIELD_SECONDS},
    {.key = "ideal_max_load", .title = "LOAD", .kind = FIELD_COUNT},
    {0},
};

// --- the question ---

static json_t *question(struct cli *c)
{
    json_t *body = json_object();
    const char *engine = args_value(&c->args, "engine");
    for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        json_object_set_new(body, options[i], route_elements(c, options[i]));
    if (engine != NULL)
        json_object_set_new(body, "engine", json_string(engine));
    return body;
}

// --- the answer ---

static void count(struct out *o, const char *before, long long n, const char *one, const char *many)
{
    struct buf b = {0};
    text_count(&b, n);
    out_printf(o, "%s%s %s", before, b.data, n == 1 ? one : many);
    buf_done(&b);
}

static void draw_verdict(struct out *o, json_t *r)
{
    const char *v = js_str(r, "verdict");
    bool safe = strcmp(v, "safe") == 0;
    const char *head = safe                                ? "SAFE"
                       : strcmp(v, "cuts-off") == 0        ? "NOT SAFE"
                       : strcmp(v, "drained-in-vain") == 0 ? "DRAINED IN VAIN"
                                                           : "NOT PROVED";
    out_paint(o, safe ? COLOUR_GREEN : COLOUR_RED, "%s", head);
    out_printf(o, ": %s", js_str(r, "text"));
    out_wrap(o, 2);
}

static void draw_drained(struct out *o, const char *gap, json_t *d)
{
    static const char *const keys[] = {"spared", "own", "carry_on"};
    static const char *const words[][2] = {
        {"carries nothing", "carry nothing"},
        {"carries only what has its end there", "carry only what has its end there"},
        {"carries on for want of another way", "carry on for want of another way"}};
    out_printf(o, "%sof all drained trunks ", gap);
    gap = "";
    for (unsigned i = 0; i < 3; i++) {
        if (js_int(d, keys[i]) == 0)
            continue;
        count(o, gap, js_int(d, keys[i]), words[i][0], words[i][1]);
        gap = ", ";
    }
}

// "rail-256: 1 node fails with 32 links; 4 links drained; of all drained trunks 4 carry nothing"
static void draw_asked(struct out *o, const char *what, json_t *r)
{
    json_t *a = json_object_get(r, "asked"), *d = json_object_get(r, "drained");
    const char *gap = ": ";
    out_paint(o, COLOUR_BOLD, "%s", what);
    if (js_int(a, "failed_nodes") > 0) {
        count(o, gap, js_int(a, "failed_nodes"), "node fails with", "nodes fail with");
        count(o, " ", js_int(a, "failed_links"), "link", "links");
        gap = "; ";
    } else if (js_int(a, "failed_links") > 0) {
        count(o, gap, js_int(a, "failed_links"), "link fails", "links fail");
        gap = "; ";
    }
    if (js_int(a, "drained_links") > 0) {
        count(o, gap, js_int(a, "drained_links"), "link drained", "links drained");
        gap = "; ";
    }
    if (js_int(d, "links") > 0) {
        draw_drained(o, gap, d);
        gap = "; ";
    }
    if (js_int(a, "added_nodes") > 0) {
        count(o, gap, js_int(a, "added_nodes"), "node added with", "nodes added with");
        count(o, " ", js_int(a, "added_links"), "link", "links");
        if (js_int(a, "ends_not_added") > 0)
            count(o, ", WITHOUT the ", js_int(a, "ends_not_added"),
                  "adapter of its like: node-like-hosts: brings it too",
                  "adapters of its like: node-like-hosts: brings them too");
    } else if (js_int(a, "added_links") > 0) {
        count(o, gap, js_int(a, "added_links"), "link added", "links added");
    }
    out_wrap(o, 2);
}

// "spine-1" or "spine-1[7]"
static void draw_place(struct out *o, json_t *item, const char *name, const char *guid, long long port)
{
    out_printf(o, "%s", js_str(item, name)[0] ? js_str(item, name) : js_str(item, guid));
    if (port > 0)
        out_printf(o, "[%lld]", port);
}

// The first of n.
static void draw_ends(struct out *o, const char *head, json_t *list, long long n)
{
    json_t *item;
    size_t i;
    if (n == 0)
        return;
    out_printf(o, "  %-10s", head);
    json_array_foreach(list, i, item)
    {
        out_printf(o, "%s", i ? ", " : "");
        draw_place(o, item, "name", "guid", js_int(item, "port") > 1 ? js_int(item, "port") : 0);
    }
    if ((long long)json_array_size(list) < n)
        count(o, " and ", n - (long long)json_array_size(list), "more", "more");
    out_wrap(o, 12);
}

static void draw_reach(struct out *o, json_t *r)
{
    json_t *x = json_object_get(r, "reach");
    out_printf(o, "  reach     ");
    count(o, "", js_int(x, "ends_cut_off"), "port of", "ports of");
    count(o, " ", js_int(x, "ends_before"), "cut off", "cut off");
    count(o, "; pairs that reach each other ", js_int(x, "pairs_before"), "->", "->");
    struct buf b = {0};
    text_count(&b, js_int(x, "pairs_after"));
    out_printf(o, " %s", b.data);
    buf_done(&b);
    out_wrap(o, 12);
    draw_ends(o, "cut off", json_object_get(x, "cut_off"), js_int(x, "ends_cut_off"));
    x = json_object_get(r, "drained");
    draw_ends(o, "in vain", json_object_get(x, "in_vain"), js_int(x, "ends_in_vain"));
}

static void draw_proof(struct out *o, const char *head, json_t *side)
{
    json_t *v = json_object_get(side, "verify");
    out_printf(o, "  %-10s", head);
    if (js_true(v, "ok"))
        out_paint(o, COLOUR_GREEN, "proved");
    else
        out_paint(o, COLOUR_RED, "NOT PROVED");
    count(o, ": ", js_int(v, "pairs"), "pair", "pairs");
    out_printf(o, ", longest path %lld switches, %s", js_int(v, "max_hops"),
               js_true(v, "credit_loop") ? "credit loops" : "no credit loop");
    if (js_str(v, "counterexample")[0] != 0)
        out_printf(o, "; %s", js_str(v, "counterexample"));
    out_wrap(o, 12);
}

static void draw_changes(struct out *o, const char *head, json_t *side)
{
    json_t *d = json_object_get(side, "changed");
    out_printf(o, "  %-10s", head);
    if (js_int(d, "entries") == 0) {
        out_printf(o, "no table entry changes");
        out_wrap(o, 12);
        return;
    }
    count(o, "", js_int(d, "entries"), "table entry in", "table entries in");
    count(o, " ", js_int(d, "blocks"), "block on", "blocks on");
    count(o, " ", js_int(d, "switches"), "switch", "switches");
    count(o, ", written by ", js_int(d, "mads"), "MAD in", "MADs in");
    count(o, " ", js_int(d, "waves"), "wave", "waves");
    count(o, "; ", js_int(d, "paths"), "path moves", "paths move");
    out_printf(o, "; %s, %.3f s", js_str(side, "engine"), js_num(side, "seconds"));
    out_wrap(o, 12);
}

static void draw_singles(struct out *o, json_t *r)
{
    json_t *s = json_object_get(r, "singles"), *item;
    size_t i;
    long long before = js_int(s, "before"), after = js_int(s, "after");
    out_printf(o, "  then      ");
    if (after == 0) {
        out_printf(o, "no single further switch or trunk cuts off others than its own");
    } else {
        out_paint(o, after > before ? COLOUR_YELLOW : COLOUR_NONE, "%lld", after);
        out_printf(o, " further switches or trunks would each cut others off (before: %lld): ", before);
    }
    json_array_foreach(json_object_get(s, "worst"), i, item)
    {
        out_printf(o, "%s", i ? ", " : "");
        draw_place(o, item, "name", "guid", js_int(item, "port"));
        if (js_int(item, "port") > 0) {
            out_printf(o, " - ");
            draw_place(o, item, "to", "to_guid", js_int(item, "to_port"));
        }
        out_printf(o, " (%lld)", js_int(item, "ends"));
    }
    if ((long long)json_array_size(json_object_get(s, "worst")) < after)
        out_printf(o, ", ...");
    out_wrap(o, 12);
}

static void put(json_t *row, const char *side, const char *key, json_t *figures, const char *from)
{
    json_t *v = json_object_get(figures, from);
    if (v == NULL && strcmp(from, "max_load") == 0)
        v = json_object_get(figures, "max");
    if (v == NULL || json_is_null(v))
        return;
    char *name = xasprintf("%s_%s", side, key);
    json_object_set(row, name, v);
    free(name);
}

static json_t *mean_of(json_t *r, const char *pattern)
{
    json_t *item;
    size_t i;
    json_array_foreach(json_object_get(r, "bandwidth"), i, item)
    {
        if (strcmp(js_str(item, "pattern"), pattern) == 0)
            return item;
    }
    return NULL;
}

static json_t *quality_rows(json_t *r)
{
    static const char *const sides[] = {"before", "after", "accepted", "ideal"};
    json_t *rows = json_array(), *v, *q[4];
    const char *pattern;
    for (unsigned i = 0; i < 4; i++)
        q[i] = i == 3 ? json_object_get(r, "ideal") : js_at(json_object_get(r, sides[i]), "quality");
    json_object_foreach(q[0], pattern, v)
    {
        if (!json_is_object(v))
            continue;
        json_t *row = json_object(), *mean = mean_of(r, pattern);
        json_object_set_new(row, "pattern", json_string(pattern));
        for (unsigned i = 0; i < 4; i++) {
            json_t *figures = json_object_get(q[i], pattern);
            put(row, sides[i], "mean", i < 3 ? mean : figures, i < 3 ? sides[i] : "mean");
            if (i != 1 || js_int(mean, "failed") == 0) // of those that arrive: it would not compare
                put(row, sides[i], "worst", figures, "worst");
            put(row, sides[i], "max_load", figures, "max_load");
            if (i == 1 && js_int(mean, "failed") > 0)
                put(row, sides[i], "failed", mean, "failed");
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

static void draw_quality(struct out *o, json_t *r)
{
    struct field fields[sizeof(quality_fields) / sizeof(quality_fields[0])] = {{0}};
    json_t *rows = quality_rows(r), *known = json_array(), *row;
    size_t i;
    json_array_foreach(rows, i, row) if (json_object_size(row) > 1) json_array_append(known, row);
    quality_columns(quality_fields, known, fields);
    if (json_array_size(known) > 0) {
        out_newline(o);
        out_list(o, fields, known);
    }
    json_decref(known);
    json_decref(rows);
}

static void draw(struct out *o, const char *what, json_t *r)
{
    json_t *accepted = json_object_get(r, "accepted");
    draw_verdict(o, r);
    draw_asked(o, what, r);
    draw_reach(o, r);
    draw_proof(o, "proof", json_object_get(r, "after"));
    draw_changes(o, "changes", json_object_get(r, "after"));
    if (json_is_object(accepted)) {
        draw_proof(o, "accepted", accepted);
        draw_changes(o, "", accepted);
    }
    draw_singles(o, r);
    draw_quality(o, r);
}

static int show(struct cli *c, const char *what, json_t *r)
{
    if (c->out.format == OUT_JSON)
        out_json(&c->out, r);
    else if (c->out.format == OUT_CSV)
        route_pairs(&c->out, r);
    else
        draw(&c->out, what, r);
    if (c->args.num_words == 0)
        quality_say_adaptive(c);
    return strcmp(js_str(r, "verdict"), "safe") == 0 ? CLI_OK : CLI_FINDINGS;
}

static int ask(struct cli *c, const char *what, double seconds, route_show_fn *shown)
{
    json_t *result = NULL;
    int rc = cli_fabric(c);
    if (rc == CLI_OK)
        rc = route_job(c, "whatif", question(c), seconds, &result);
    if (rc == CLI_OK)
        rc = shown(c, what != NULL ? what : c->fabric_name, result);
    json_decref(result);
    return rc;
}

int cmd_whatif(struct cli *c)
{
    double seconds = args_has(&c->args, "timeout") ? c->timeout : ROUTE_SECONDS;
    bool asked = false;
    for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        asked |= args_has(&c->args, options[i]);
    if (!asked)
        return cli_fail(CLI_USAGE, NULL,
                        "what if what? Give --fail, --drain or --add; see \"weft help whatif\"");
    if (c->args.num_words > 0)
        return route_private(c, c->args.word[0], seconds, ask, show);
    if (args_has(&c->args, "engine"))
        return cli_fail(CLI_USAGE, NULL, "--engine is for a FILE or NAME; the running fabric has its routes");
    return ask(c, NULL, seconds, show);
}
