// SPDX-License-Identifier: Apache-2.0
// weft route show --since: what each link of a way did over a time.
#include "cli/past.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/tele.h"
#include "cli/text.h"
#include "lib/xalloc.h"

static const struct field past_fields[] = {
    {.key = "hop", .title = "#", .kind = FIELD_NUMBER},
    {.key = "from", .title = "FROM", .flags = FIELD_SHRINK},
    {.key = "to", .title = "TO", .flags = FIELD_SHRINK},
    {.key = "used", .title = "USED", .kind = FIELD_SHARE},
    {.key = "held", .title = "HELD", .kind = FIELD_SHARE},
    {.key = "held_most", .title = "WORST", .kind = FIELD_SHARE},
    {.key = "held_most_at", .title = "AT", .kind = FIELD_TIME},
    {.key = "errors", .title = "ERRORS", .kind = FIELD_COUNT},
    {.key = "discards", .title = "DISCARDS", .kind = FIELD_COUNT},
    {.key = "downs", .title = "DOWNS", .kind = FIELD_COUNT},
    {.key = "health", .title = "NOW", .flags = FIELD_STATE},
    {.key = "alarm", .title = "ALARM", .kind = FIELD_NUMBER},
    {.key = "most", .flags = FIELD_WIDE},
    {.key = "complete", .flags = FIELD_WIDE},
    {.key = "from_guid", .path = "out.guid", .flags = FIELD_WIDE},
    {.key = "from_port", .path = "out.port", .flags = FIELD_WIDE},
    {.key = "to_guid", .path = "in.guid", .flags = FIELD_WIDE},
    {.key = "to_port", .path = "in.port", .flags = FIELD_WIDE},
    {0},
};

static void name_end(json_t *link, const char *end, const char *as)
{
    json_t *e = json_object_get(link, end);
    const char *name = js_str(e, "name")[0] ? js_str(e, "name") : js_str(e, "guid");
    json_object_set_new(link, as, json_sprintf("%s/%lld", name, js_int(e, "port")));
}

static void draw(struct out *o, json_t *r)
{
    out_paint(o, COLOUR_BOLD, "%s", js_str(r, "from.name"));
    out_printf(o, " -> ");
    out_paint(o, COLOUR_BOLD, "%s", js_str(r, "to.name"));
    struct buf from = {0}, to = {0};
    text_time(&from, js_str(r, "since"), false);
    text_time(&to, js_str(r, "until"), false);
    out_printf(o, " (LID %lld)  %s to %s  ", js_int(r, "lid"), from.data, to.data);
    buf_done(&from);
    buf_done(&to);
    if (js_true(r, "reached"))
        out_paint(o, COLOUR_GREEN, "reached");
    else
        out_paint(o, COLOUR_RED, "NOT REACHED: %s", js_str(r, "error"));
    out_newline(o);
    if (json_array_size(json_object_get(r, "links")) > 0)
        out_list(o, past_fields, json_object_get(r, "links"));
    if (js_str(r, "text")[0] != 0) {
        out_newline(o);
        out_printf(o, "%s", js_str(r, "text"));
        out_wrap(o, 0);
    }
}

int past_show(struct cli *c, const char *from, const char *to)
{
    struct buf path = {0};
    json_t *r = NULL, *link;
    size_t i;

    int rc = tele_since(c);
    if (rc != CLI_OK)
        return rc;
    buf_printf(&path, "%s/routes/past", c->fabric);
    http_query(&path, "from", from);
    http_query(&path, "to", to);
    tele_query_time(c, &path, "since", "since");
    tele_query_time(c, &path, "until", "until");
    rc = cli_get(c, path.data, &r);
    buf_done(&path);
    if (rc != CLI_OK)
        return rc;
    if (c->out.format == OUT_JSON)
        out_json(&c->out, r);
    json_array_foreach(json_object_get(r, "links"), i, link)
    {
        name_end(link, "out", "from");
        name_end(link, "in", "to");
    }
    if (c->out.format == OUT_CSV)
        out_list(&c->out, past_fields, json_object_get(r, "links"));
    else if (c->out.format == OUT_TABLE)
        draw(&c->out, r);
    rc = js_true(r, "reached") ? CLI_OK : CLI_FINDINGS;
    json_decref(r);
    return rc;
}
