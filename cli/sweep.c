// SPDX-License-Identifier: Apache-2.0
// weft sweep: what weft did and how long it took; of one also what had happened.
#include <string.h>

#include "cli/cli.h"
#include "cli/text.h"

static const struct field sweep_fields[] = {
    {.key = "id", .title = "ID", .kind = FIELD_NUMBER},
    {.key = "began_at", .title = "AGE", .kind = FIELD_AGE},
    {.key = "cause", .title = "CAUSE"},
    {.key = "ok", .title = "OK", .flags = FIELD_STATE},
    {.key = "full", .flags = FIELD_WIDE},
    {.key = "devices", .title = "READ", .kind = FIELD_COUNT},
    {.key = "seconds", .title = "SECONDS", .kind = FIELD_SECONDS},
    {.key = "reaction_seconds", .title = "REPAIR", .kind = FIELD_SECONDS},
    {.key = "mads", .title = "MADS", .kind = FIELD_COUNT},
    {.key = "retries", .kind = FIELD_COUNT, .flags = FIELD_WIDE},
    {.key = "timeouts", .kind = FIELD_COUNT, .flags = FIELD_WIDE},
    {.key = "lft_blocks_set", .title = "BLOCKS", .kind = FIELD_COUNT},
    {.key = "lft_entries", .kind = FIELD_COUNT, .flags = FIELD_WIDE},
    {.key = "paths_moved", .title = "PATHS", .kind = FIELD_COUNT},
    {.key = "port_sets", .kind = FIELD_COUNT, .flags = FIELD_WIDE},
    {.key = "nodes_added", .kind = FIELD_COUNT, .flags = FIELD_WIDE},
    {.key = "nodes_removed", .kind = FIELD_COUNT, .flags = FIELD_WIDE},
    {.key = "links_added", .kind = FIELD_COUNT, .flags = FIELD_WIDE},
    {.key = "links_removed", .kind = FIELD_COUNT, .flags = FIELD_WIDE},
    {.key = "same_rail_shift", .path = "quality.same_rail_shift", .kind = FIELD_SECONDS, .flags = FIELD_WIDE},
    {.key = "ring", .path = "quality.ring", .kind = FIELD_SECONDS, .flags = FIELD_WIDE},
    {.key = "shift", .path = "quality.shift", .kind = FIELD_SECONDS, .flags = FIELD_WIDE},
    {.key = "alltoall", .path = "quality.alltoall", .kind = FIELD_SECONDS, .flags = FIELD_WIDE},
    {.key = "alltoall_max", .path = "quality.alltoall_max", .kind = FIELD_COUNT, .flags = FIELD_WIDE},
    {.key = "text", .title = "OUTCOME", .flags = FIELD_SHRINK | FIELD_BELOW},
    {.key = "phases", .kind = FIELD_PHASES, .flags = FIELD_WIDE},
    {0},
};

static const struct field phase_fields[] = {
    {.key = "name", .title = "PHASE"},
    {.key = "seconds", .title = "SECONDS", .kind = FIELD_SECONDS},
    {.key = "mads", .title = "MADS", .kind = FIELD_COUNT},
    {0},
};

static const struct field event_fields[] = {
    {.key = "id", .title = "EVENT", .kind = FIELD_NUMBER},
    {.key = "time", .title = "TIME", .kind = FIELD_TIME_MS},
    {.key = "severity", .title = "SEVERITY", .flags = FIELD_STATE},
    {.key = "kind", .title = "KIND"},
    {.key = "subject", .flags = FIELD_WIDE},
    {.key = "text", .title = "TEXT", .flags = FIELD_SHRINK | FIELD_BELOW},
    {0},
};

#define EVENTS_MAX 1000 // newest ones that are looked through

// Those that carry the sweep's id and are not of a run before, oldest first.
static int events_of(struct cli *c, json_t *sweep, json_t **ret)
{
    struct buf path = {0};
    json_t *items = NULL;

    buf_puts(&path, "/api/v1/events");
    http_query(&path, "newest", "1");
    http_query(&path, "fabric", c->fabric_name);
    int rc = cli_list(c, path.data, EVENTS_MAX, &items);
    buf_done(&path);
    if (rc != CLI_OK)
        return rc;
    *ret = json_array();
    for (size_t i = json_array_size(items); i-- > 0;) {
        json_t *e = json_array_get(items, i);
        if (js_int(e, "data.sweep") == js_int(sweep, "id") &&
            strcmp(js_str(e, "time"), js_str(sweep, "began_at")) >= 0) // both RFC 3339 in UTC
            json_array_append(*ret, e);
    }
    json_decref(items);
    return CLI_OK;
}

static void show_whole(struct cli *c, json_t *sweep, json_t *events)
{
    struct out *o = &c->out;
    json_t *phases = json_object_get(sweep, "phases");

    if (o->format == OUT_JSON) {
        json_t *whole = out_pack(sweep_fields, sweep);
        json_object_set_new(whole, "phases", out_pack_list(phase_fields, phases));
        json_object_set_new(whole, "events", out_pack_list(event_fields, events));
        out_json(o, whole);
        json_decref(whole);
        return;
    }
    out_object(o, sweep_fields, sweep);
    if (o->format != OUT_TABLE)
        return;
    out_newline(o);
    out_list(o, phase_fields, phases);
    if (json_array_size(events) > 0) {
        out_newline(o);
        out_list(o, event_fields, events);
    }
}

static int show_sweep(struct cli *c, long long id)
{
    struct buf path = {0};
    json_t *items = NULL, *s, *hit = NULL, *events = NULL;
    size_t i;

    int rc = cli_fabric(c);
    if (rc != CLI_OK)
        return rc;
    buf_printf(&path, "%s/sweeps", c->fabric);
    rc = cli_list(c, path.data, 0, &items);
    buf_done(&path);
    if (rc != CLI_OK)
        return rc;
    json_array_foreach(items, i, s) hit = js_int(s, "id") == id ? s : hit;
    if (hit == NULL)
        rc = cli_fail(CLI_USAGE, c->args.word[0], "no such sweep is remembered; see: weft sweep");
    else if ((rc = events_of(c, hit, &events)) == CLI_OK)
        show_whole(c, hit, events);
    json_decref(events);
    json_decref(items);
    return rc;
}

int cmd_sweep(struct cli *c)
{
    long long id;

    if (c->args.num_words == 0)
        return cli_show_list(c, "sweeps", sweep_fields);
    if (text_parse_count(c->args.word[0], 0, INT64_MAX, &id) != 0)
        return cli_fail(CLI_USAGE, c->args.word[0], "not the id of a sweep; see: weft sweep");
    return show_sweep(c, id);
}
