// SPDX-License-Identifier: Apache-2.0
// weft congestion: who waits for whom, the root of each tree first, and what to do about it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/tele.h"
#include "cli/text.h"
#include "lib/xalloc.h"

#define SHOWN 5 // jams, unless --limit says

static const struct field tree_fields[] = {
    {.key = "id", .title = "ID"},
    {.key = "kind", .title = "KIND"},
    {.key = "title", .title = "WHAT"},
    {.key = "root", .title = "ROOT", .path = "root.name"},
    {.key = "root_port", .title = "PORT", .path = "root.port"},
    {.key = "root_guid", .title = "", .path = "root.guid"},
    {.key = "to", .title = "TO", .path = "root.peer.name"},
    {.key = "to_port", .title = "PORT", .path = "root.peer.port"},
    {.key = "to_guid", .title = "", .path = "root.peer.guid"},
    {.key = "rail", .title = "RAIL", .path = "root.rail"},
    {.key = "since", .title = "SINCE"},
    {.key = "seen", .title = "SEEN"},
    {.key = "held", .title = "HELD"},
    {.key = "used", .title = "USED"},
    {.key = "siblings_used", .title = "SIBLINGS"},
    {.key = "lost_bps", .title = "LOST"},
    {.key = "share", .title = "SHARE"},
    {.key = "explained", .title = "EXPLAINED"},
    {.key = "members_in_all", .title = "PORTS"},
    {.key = "victims", .title = "VICTIMS"},
    {.key = "adapters", .title = "ADAPTERS"},
    {.key = "alarm", .title = "ALARM"},
    {.key = "advice", .title = "ADVICE"},
    {.key = "text", .title = "TEXT"},
    {0},
};

static void span(struct out *o, const char *before, json_t *low, json_t *high)
{
    if (!json_is_number(high))
        return;
    struct buf a = {0}, b = {0};
    text_share(&a, json_number_value(low));
    text_share(&b, json_number_value(high));
    if (!json_is_number(low) || strcmp(a.data, b.data) == 0)
        out_printf(o, "%s%s", before, b.data);
    else
        out_printf(o, "%s%.*s-%s", before, (int)strcspn(a.data, " "), a.data, b.data);
    buf_done(&a);
    buf_done(&b);
}

static void end_text(struct out *o, json_t *p)
{
    out_printf(o, "%s/%lld", js_str(p, "name")[0] ? js_str(p, "name") : js_str(p, "guid"), js_int(p, "port"));
}

static void head_line(struct out *o, json_t *t, size_t n)
{
    json_t *root = json_object_get(t, "root"), *peer = json_object_get(root, "peer");
    bool host = strcmp(js_str(root, "kind"), "host") == 0 && strcmp(js_str(root, "type"), "switch") == 0;

    out_paint(o, COLOUR_BOLD, "#%zu  ", n);
    out_paint(o, strcmp(js_str(t, "kind"), "deadlock") == 0 ? COLOUR_RED : COLOUR_YELLOW, "%s",
              js_str(t, "title"));
    out_printf(o, "   ");
    if (host && json_is_object(peer)) {
        out_paint(o, COLOUR_BOLD, "%s", js_str(peer, "name"));
        if (json_is_integer(json_object_get(root, "rail")))
            out_printf(o, " (rail %lld)", js_int(root, "rail"));
    } else {
        end_text(o, root);
        if (json_is_object(peer)) {
            out_printf(o, " -> ");
            end_text(o, peer);
        }
    }
    if (js_str(t, "since")[0] != 0) {
        out_printf(o, "   since ");
        tele_age(o, js_str(t, "since"));
    }
    tele_share(o, "   explains ", json_object_get(t, "share"));
    out_printf(o, " of lost bandwidth");
    if (js_int(t, "alarm") > 0)
        out_printf(o, "   alarm %lld", js_int(t, "alarm"));
    if (!js_true(t, "seen"))
        out_paint(o, COLOUR_DIM, "   (not in the last sweep)");
    out_wrap(o, 4);
}

static void root_line(struct out *o, json_t *t)
{
    json_t *root = json_object_get(t, "root"), *peer = json_object_get(root, "peer");
    out_printf(o, "    ");
    end_text(o, root);
    if (json_is_object(peer)) {
        out_printf(o, " -> ");
        end_text(o, peer);
    }
    tele_share(o, "    held ", json_object_get(t, "held"));
    tele_share(o, "    used ", json_object_get(t, "used"));
    tele_share(o, "    siblings ", json_object_get(t, "siblings_used"));
    if (!js_true(t, "root_read"))
        out_paint(o, COLOUR_YELLOW, "    (its own counters are not read)");
    out_paint(o, COLOUR_BOLD, "    <- root");
    out_wrap(o, 8);
}

static void level_lines(struct out *o, json_t *t)
{
    json_t *l;
    size_t i;
    json_array_foreach(json_object_get(t, "levels"), i, l)
    {
        long long depth = js_int(l, "depth"), victims = js_int(l, "victims");
        if (depth == 0)
            continue;
        out_printf(o, "    %*s%s -> %s", (int)(depth < 8 ? 2 * depth : 16), "", js_str(l, "from"),
                   js_str(l, "to"));
        span(o, "    held ", json_object_get(l, "held_min"), json_object_get(l, "held_max"));
        out_printf(o, "  ");
        tele_count(o, js_int(l, "ports"), "port", "ports");
        if (victims > 0) {
            out_printf(o, "    %lld may only be in the way", victims);
        }
        out_wrap(o, 10);
    }
    if (js_int(t, "adapters") > 0) {
        out_printf(o, "    ");
        tele_count(o, js_int(t, "adapters"), "adapter may be held up", "adapters may be held up");
        out_newline(o);
    }
}

static void cycle_line(struct out *o, json_t *t)
{
    json_t *p;
    size_t i;
    if (json_array_size(json_object_get(t, "cycle")) == 0)
        return;
    out_printf(o, "    circle: ");
    json_array_foreach(json_object_get(t, "cycle"), i, p)
    {
        out_printf(o, i ? " -> " : "");
        end_text(o, p);
    }
    out_wrap(o, 10);
}

static void draw_tree(struct out *o, json_t *t, size_t n)
{
    head_line(o, t, n);
    root_line(o, t);
    level_lines(o, t);
    cycle_line(o, t);
    json_t *second = json_object_get(t, "second_root");
    if (json_is_object(second)) {
        out_printf(o, "    cause unclear (");
        tele_share(o, "", json_object_get(t, "explained"));
        out_printf(o, " explained); also likely: ");
        end_text(o, second);
        out_wrap(o, 8);
    }
    out_printf(o, "    do:  %s", js_str(t, "advice"));
    out_wrap(o, 9);
    if (js_str(t, "command")[0] != 0) {
        out_printf(o, "    see: %s", js_str(t, "command"));
        out_wrap(o, 9);
    }
}

static void part_lines(struct out *o, json_t *parts, const char *what)
{
    json_t *p;
    size_t i;
    bool any = false;
    json_array_foreach(parts, i, p) any |= js_int(p, "held") > 0;
    if (!any || json_array_size(parts) < 2)
        return;
    json_array_foreach(parts, i, p)
    {
        if (js_int(p, "held") == 0)
            continue;
        out_printf(o, "%s %lld: ", what, js_int(p, "number"));
        tele_count(o, js_int(p, "held"), "switch port held", "switch ports held");
        out_printf(o, " of %lld", js_int(p, "ports"));
        tele_share(o, ", used ", json_object_get(p, "mean_used"));
        tele_share(o, ", at most ", json_object_get(p, "max_used"));
        if (json_is_number(json_object_get(p, "lost_bps"))) {
            struct buf b = {0};
            text_rate(&b, js_num(p, "lost_bps"));
            out_printf(o, ", %s lost", b.data);
            buf_done(&b);
        }
        out_newline(o);
    }
}

static void draw(struct out *o, json_t *doc, size_t limit)
{
    json_t *trees = json_object_get(doc, "trees"), *t;
    size_t i, n = json_array_size(trees);
    json_array_foreach(trees, i, t)
    {
        if (i < limit)
            draw_tree(o, t, i + 1);
    }
    if (n > limit) {
        out_printf(o, "and %zu more jam%s, that explain%s less: weft congestion -n %zu", n - limit,
                   n - limit == 1 ? "" : "s", n - limit == 1 ? "s" : "", n);
        out_newline(o);
    }
    if (json_array_size(trees) == 0 && js_int(doc, "trees_in_all") == 0) {
        if (js_str(doc, "sampled_at")[0] == 0)
            out_printf(
                o, "counters have not been read yet: that takes a moment after the start; see: weft status");
        else if (js_int(doc, "held") > 0)
            tele_count(o, js_int(doc, "held"), "port is held; no tree of waits",
                       "ports are held; no tree of waits");
        else
            out_printf(o, "nobody waits");
        out_newline(o);
    }
    part_lines(o, json_object_get(doc, "rails"), "rail");
    part_lines(o, json_object_get(doc, "sus"), "su");
    if (js_str(doc, "sampled_at")[0] == 0)
        return;
    out_printf(o, "sampled ");
    tele_age(o, js_str(doc, "sampled_at"));
    out_printf(o, " ago; bursts shorter than a sweep show only in totals.");
    if (js_int(doc, "unread") > 0)
        out_paint(o, COLOUR_YELLOW, "  %lld ports unread.", js_int(doc, "unread"));
    out_wrap(o, 0);
}

int cmd_congestion(struct cli *c)
{
    struct buf path = {0};
    json_t *doc = NULL;
    long long limit = SHOWN;
    int rc = cli_fabric(c);

    if (rc == CLI_OK)
        rc = cli_number(c, "limit", 1, 1000000, &limit);
    if (rc != CLI_OK)
        return rc;
    char *focus = tele_focus(c);
    buf_printf(&path, "%s/congestion", c->fabric);
    if (focus != NULL)
        http_query(&path, "focus", focus);
    rc = cli_get(c, path.data, &doc);
    buf_done(&path);
    json_t *trees = json_object_get(doc, "trees");
    bool elsewhere = focus != NULL && json_array_size(trees) == 0 && js_int(doc, "trees_in_all") > 0;
    if (rc == CLI_OK && elsewhere)
        tele_nothing(c, focus, js_int(doc, "trees_in_all"), "tree", "trees");
    bool none = rc == CLI_OK && !elsewhere && json_array_size(trees) == 0 && tele_takes_none(c, focus);
    free(focus);
    if (rc != CLI_OK || (none && c->out.format == OUT_TABLE)) {
        json_decref(doc);
        return rc;
    }
    switch (c->out.format) {
    case OUT_JSON:
        out_json(&c->out, doc);
        break;
    case OUT_CSV:
        out_list(&c->out, tree_fields, trees);
        break;
    case OUT_TABLE:
        draw(&c->out, doc, (size_t)limit);
        break;
    }
    rc = json_array_size(trees) > 0 ? CLI_FINDINGS : CLI_OK;
    json_decref(doc);
    return rc;
}
