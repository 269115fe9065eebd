// SPDX-License-Identifier: Apache-2.0
// weft blueprint: what the fabric is meant to be; weft reroute: routes balanced anew on what is there. What
// moves routes far is shown first and done with --apply.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/quality.h"
#include "cli/text.h"
#include "lib/xalloc.h"

#define SECONDS 600.0
#define FILE_MAX (60u << 20)
#define SHOWN 12 // differences of a kind

static double seconds_of(const struct cli *c)
{
    return args_has(&c->args, "timeout") ? c->timeout : SECONDS;
}

static void put_count(struct buf *b, const char *gap, long long n, const char *one, const char *many)
{
    if (n == 0)
        return;
    buf_puts(b, b->len ? gap : "");
    text_count(b, n);
    buf_printf(b, " %s", n == 1 ? one : many);
}

// --- differences ---

static void draw_kind(struct out *o, json_t *items, const char *kind, const char *title, long long count)
{
    json_t *d;
    size_t i;
    long long shown = 0;
    if (count == 0)
        return;
    json_array_foreach(items, i, d)
    {
        if (strcmp(js_str(d, "kind"), kind) != 0 || shown >= SHOWN)
            continue;
        out_printf(o, "  %-10s %s", shown++ == 0 ? title : "", js_str(d, "text"));
        out_wrap(o, 13);
    }
    if (count > shown) {
        out_printf(o, "  %-10s and %lld more", "", count - shown);
        out_newline(o);
    }
}

static const struct field difference_fields[] = {
    {.key = "kind", .title = "KIND"},
    {.key = "guid", .title = "GUID"},
    {.key = "port", .title = "PORT", .kind = FIELD_NUMBER},
    {.key = "text", .title = "DIFFERENCE"},
    {0},
};

// --- show ---

static void draw_show(struct out *o, const char *fabric, json_t *b)
{
    json_t *items = json_object_get(b, "differences");
    struct buf n = {0};
    bool accepted = strcmp(js_str(b, "state"), "accepted") == 0;

    out_paint(o, COLOUR_BOLD, "%s", fabric);
    out_printf(o, "  blueprint ");
    out_paint(o, accepted ? COLOUR_GREEN : COLOUR_YELLOW, "%s", js_str(b, "state"));
    if (js_str(b, "since")[0])
        out_printf(o, " since %s by %s", js_str(b, "since"), cli_user(js_str(b, "by")));
    out_printf(o, accepted ? ": new hosts on its leaves become part of it, all else is growth"
                           : ": what is seen becomes part of it; fix it with: weft blueprint accept");
    out_wrap(o, 13);
    put_count(&n, ", ", js_int(b, "nodes"), "node", "nodes");
    put_count(&n, ", ", js_int(b, "switches"), "of these a switch", "of these switches");
    put_count(&n, ", ", js_int(b, "links"), "cable", "cables");
    out_printf(o, "  %-10s %s", "has", n.data ? n.data : "nothing");
    out_newline(o);
    buf_done(&n);
    draw_kind(o, items, "missing-node", "away", js_int(b, "missing_nodes"));
    draw_kind(o, items, "missing-link", "away", js_int(b, "missing_links"));
    draw_kind(o, items, "extra-node", "growth", js_int(b, "extra_nodes"));
    draw_kind(o, items, "extra-link", "growth", js_int(b, "extra_links"));
    draw_kind(o, items, "moved-cable", "moved", js_int(b, "moved"));
    draw_kind(o, items, "replaced-node", "replaced", js_int(b, "replaced"));
    long long more =
        js_int(b, "extra_nodes") + js_int(b, "extra_links") + js_int(b, "moved") + js_int(b, "replaced");
    if (more > 0 || (js_int(b, "missing_nodes") + js_int(b, "missing_links") == 0)) {
        out_printf(o, "  %-10s %s", more > 0 ? "next" : "",
                   more > 0 ? "weft blueprint accept --check" : "all of it is there, and nothing else");
        out_newline(o);
    }
}

static int save(struct cli *c, const char *file)
{
    struct http_reply r;
    struct err e = {0};
    char *path = xasprintf("%s/export?format=ibnetdiscover&of=blueprint", c->fabric);
    int rc = http_call(c->http, "GET", path, NULL, seconds_of(c), &r, &e);
    if (rc != CLI_OK) {
        cli_complain(&e);
    } else {
        int written = buf_write_file(&r.body, file, 0644);
        if (written != 0)
            rc = cli_fail(CLI_USAGE, file, "cannot be written: %s", strerror(-written));
    }
    http_reply_done(&r);
    free(path);
    return rc;
}

int cmd_blueprint_show(struct cli *c)
{
    json_t *b = NULL;
    int rc = cli_fabric(c);
    if (rc != CLI_OK)
        return rc;
    char *path = xasprintf("%s/blueprint", c->fabric);
    rc = cli_get(c, path, &b);
    free(path);
    if (rc == CLI_OK && c->out.format == OUT_JSON)
        out_json(&c->out, b);
    else if (rc == CLI_OK && c->out.format == OUT_CSV)
        out_list(&c->out, difference_fields, json_object_get(b, "differences"));
    else if (rc == CLI_OK)
        draw_show(&c->out, c->fabric_name, b);
    json_decref(b);
    return rc;
}

int cmd_blueprint_save(struct cli *c)
{
    int rc = cli_fabric(c);
    return rc == CLI_OK ? save(c, c->args.word[0]) : rc;
}

// --- what a change comes to ---

static void draw_moves(struct cli *c, json_t *routes)
{
    struct out *o = &c->out;
    struct buf n = {0};
    json_t *q = json_object_get(routes, "quality");
    if (js_int(routes, "entries") > 0) {
        put_count(&n, ", ", js_int(routes, "entries"), "table entry", "table entries");
        buf_puts(&n, " on ");
        text_count(&n, js_int(routes, "switches"));
        buf_puts(&n, js_int(routes, "switches") == 1 ? " switch" : " switches");
        put_count(&n, ", ", js_int(routes, "paths"), "path", "paths");
        put_count(&n, ": ", js_int(routes, "blocks"), "MAD", "MADs");
        put_count(&n, " in ", js_int(routes, "waves"), "wave", "waves");
    }
    out_printf(o, "  %-10s %s", "moves", n.data ? n.data : "nothing");
    out_wrap(o, 13);
    out_printf(o, "  %-10s %s engine, ", "routes", js_str(routes, "engine"));
    if (js_true(routes, "proved"))
        out_paint(o, COLOUR_GREEN, "proved");
    else
        out_paint(o, COLOUR_RED, "NOT PROVED");
    out_printf(o, ", in %.3f s", js_num(routes, "seconds"));
    if (js_str(routes, "counterexample")[0])
        out_printf(o, ": %s", js_str(routes, "counterexample"));
    out_wrap(o, 13);
    out_printf(o, "  %-10s %s", "gain", js_str(routes, "verdict"));
    out_wrap(o, 13);
    if (json_is_object(q) && js_int(routes, "entries") > 0)
        quality_table(c, q, NULL, json_object_get(routes, "quality_before"));
    buf_done(&n);
}

static void draw_change(struct cli *c, json_t *r)
{
    struct out *o = &c->out;
    json_t *items = json_object_get(r, "changes"), *w;
    size_t i;
    struct buf n = {0};

    put_count(&n, ", ", js_int(r, "nodes"), "node", "nodes");
    put_count(&n, ", ", js_int(r, "links"), "cable", "cables");
    out_printf(o, "  %-10s %s: %s", "blueprint", js_str(r, "state"), n.data ? n.data : "nothing");
    out_wrap(o, 13);
    buf_done(&n);
    json_array_foreach(json_object_get(r, "warnings"), i, w)
    {
        out_printf(o, "  %-10s %s", i == 0 ? "odd" : "", json_string_value(w));
        out_wrap(o, 13);
    }
    if (js_str(r, "kept")[0]) {
        out_printf(o, "  %-10s as it does not answer though its cables are up: %s", "kept",
                   js_str(r, "kept"));
        out_wrap(o, 13);
    }
    draw_kind(o, items, "missing-node", "drops", js_int(r, "dropped_nodes"));
    draw_kind(o, items, "missing-link", "drops", js_int(r, "dropped_links"));
    draw_kind(o, items, "extra-node", "takes in", js_int(r, "added_nodes"));
    draw_kind(o, items, "extra-link", "takes in", js_int(r, "added_links"));
    draw_kind(o, items, "moved-cable", "moved", js_int(r, "moved"));
    draw_kind(o, items, "replaced-node", "replaced", js_int(r, "replaced"));
    if (json_is_object(json_object_get(r, "routes")))
        draw_moves(c, json_object_get(r, "routes"));
}

// After the sweep that does it.
static int outcome(struct cli *c, json_t *r)
{
    json_t *s = NULL;
    long long id = js_int(r, "sweep");
    if (args_has(&c->args, "no-wait")) {
        if (c->out.format == OUT_JSON) {
            out_json(&c->out, r);
        } else {
            out_printf(&c->out, "sweep #%lld does it; its outcome: weft sweep %lld", id, id);
            out_newline(&c->out);
        }
        return CLI_OK;
    }
    int rc = cli_wait_sweep(c, id, seconds_of(c), &s);
    if (rc != CLI_OK)
        return rc;
    bool ok = js_true(s, "ok");
    if (c->out.format == OUT_JSON) {
        json_object_set(r, "done", s);
        out_json(&c->out, r);
    } else {
        draw_change(c, r);
        out_printf(&c->out, "  %-10s %lld table entries, %lld paths, %lld table blocks written in %.3f s%s%s",
                   ok ? "done" : "failed", js_int(s, "lft_entries"), js_int(s, "paths_moved"),
                   js_int(s, "lft_blocks_set"), js_num(s, "seconds"), ok ? "" : ": ",
                   ok ? "" : js_str(s, "text"));
        out_newline(&c->out);
    }
    json_decref(s);
    return ok ? CLI_OK : CLI_FINDINGS;
}

// Whether anything would be another than it is: routes, or what the blueprint is.
static bool is_change(json_t *r)
{
    static const char *const count[] = {"routes.entries", "added_nodes", "added_links", "dropped_nodes",
                                        "dropped_links",  "moved",       "replaced"};
    if (strcmp(js_str(r, "op"), "reroute") == 0)
        return js_int(r, "routes.entries") > 0;
    for (size_t i = 0; i < sizeof(count) / sizeof(count[0]); i++)
        if (js_int(r, count[i]) > 0)
            return true;
    return strcmp(js_str(r, "state"), js_str(r, "state_before")) != 0;
}

static int show_plan(struct cli *c, json_t *r, const char *next)
{
    if (c->out.format == OUT_TABLE) {
        draw_change(c, r);
        if (is_change(r)) {
            out_printf(&c->out, "  %-10s nothing is done yet; do it with: %s", "next", next);
            out_newline(&c->out);
        }
    } else {
        out_json(&c->out, r);
    }
    return js_true(r, "routes.proved") ? CLI_OK : CLI_FINDINGS;
}

// body is taken. next: the command that does it.
static int change(struct cli *c, const char *below, json_t *body, bool dry_run, const char *next)
{
    json_t *r = NULL;
    json_object_set_new(body, "dry_run", json_boolean(dry_run));
    int rc = route_job(c, below, body, seconds_of(c), &r);
    if (rc == CLI_OK)
        rc = dry_run ? show_plan(c, r, next) : outcome(c, r);
    json_decref(r);
    return rc;
}

int cmd_blueprint_accept(struct cli *c)
{
    int rc = cli_fabric(c);
    if (rc != CLI_OK)
        return rc;
    return change(c, "blueprint/accept", json_object(), args_has(&c->args, "check"), "weft blueprint accept");
}

int cmd_blueprint_learn(struct cli *c)
{
    int rc = cli_fabric(c);
    if (rc != CLI_OK)
        return rc;
    return change(c, "blueprint/learn", json_object(), args_has(&c->args, "check"), "weft blueprint learn");
}

int cmd_blueprint_strike(struct cli *c)
{
    int rc = cli_fabric(c);
    if (rc != CLI_OK)
        return rc;
    return change(c, "blueprint/strike", json_pack("{s:s}", "element", c->args.word[0]),
                  !args_has(&c->args, "apply"), "the same with --apply");
}

static int read_text(const char *file, struct buf *b)
{
    char piece[65536];
    size_t n;
    FILE *f = fopen(file, "re");
    if (f == NULL)
        return cli_fail(CLI_USAGE, file, "cannot be read: %s", strerror(errno));
    while ((n = fread(piece, 1, sizeof(piece), f)) > 0 && b->len <= FILE_MAX)
        buf_add(b, piece, n);
    bool bad = ferror(f) != 0;
    fclose(f);
    if (bad)
        return cli_fail(CLI_USAGE, file, "cannot be read to its end");
    if (b->len == 0)
        return cli_fail(CLI_USAGE, file, "is empty");
    if (b->len > FILE_MAX)
        return cli_fail(CLI_USAGE, file, "is larger than %u MiB", FILE_MAX >> 20);
    return CLI_OK;
}

// What is no UTF-8 (names may hold anything) is sent as "?".
static json_t *text_json(struct buf *b)
{
    json_t *v = json_stringn(b->data, b->len);
    for (size_t i = 0; v == NULL && i < b->len; i++)
        if ((unsigned char)b->data[i] >= 0x80 || b->data[i] == 0)
            b->data[i] = '?';
    return v != NULL ? v : json_stringn(b->data, b->len);
}

int cmd_blueprint_set(struct cli *c)
{
    const char *file = c->args.word[0];
    struct buf text = {0};
    int rc = cli_fabric(c);
    if (rc == CLI_OK)
        rc = read_text(file, &text);
    if (rc == CLI_OK) {
        json_t *body = json_pack("{s:s, s:b}", "name", file, "force", args_has(&c->args, "force"));
        json_object_set_new(body, "text", text_json(&text));
        rc = change(c, "blueprint/set", body, args_has(&c->args, "check"), "the same without --check");
    }
    buf_done(&text);
    return rc;
}

// --- reroute ---

int cmd_reroute(struct cli *c)
{
    bool apply = args_has(&c->args, "apply");
    if (apply)
        return cli_ask_sweep(c, "reroute");
    if (args_has(&c->args, "wait"))
        return cli_fail(
            CLI_USAGE, NULL,
            "without --apply nothing is done that could be waited for: weft reroute --apply --wait");
    int rc = cli_fabric(c);
    return rc == CLI_OK ? change(c, "reroute", json_object(), true, "weft reroute --apply") : rc;
}
