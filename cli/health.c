// SPDX-License-Identifier: Apache-2.0
// weft health: links that are not as they should be, worst first, and what to do about the first; devices
// behind them, or alone with --devices.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/tele.h"
#include "cli/text.h"
#include "lib/when.h"
#include "lib/xalloc.h"

static const struct field health_fields[] = {
    {.key = "state", .title = "STATE", .flags = FIELD_STATE},
    {.key = "place", .title = "LINK"},
    {.key = "cable", .title = "CABLE", .flags = FIELD_SHRINK},
    {.key = "why", .title = "WHY (RULE)", .path = "said", .flags = FIELD_SHRINK | FIELD_BELOW},
    {.key = "since", .title = "SINCE", .kind = FIELD_AGE},
    {.key = "advice", .title = "ADVICE", .flags = FIELD_SHRINK | FIELD_BELOW},
    {.key = "rule", .flags = FIELD_WIDE},
    {.key = "alarm", .kind = FIELD_NUMBER, .flags = FIELD_WIDE},
    {.key = "silenced", .flags = FIELD_WIDE},
    {.key = "a", .path = "a.name", .flags = FIELD_WIDE},
    {.key = "a_port", .path = "a.port", .flags = FIELD_WIDE},
    {.key = "a_guid", .path = "a.guid", .flags = FIELD_WIDE},
    {.key = "z", .path = "z.name", .flags = FIELD_WIDE},
    {.key = "z_port", .path = "z.port", .flags = FIELD_WIDE},
    {.key = "z_guid", .path = "z.guid", .flags = FIELD_WIDE},
    {.key = "kind", .flags = FIELD_WIDE},
    {.key = "rail", .flags = FIELD_WIDE},
    {.key = "su", .flags = FIELD_WIDE},
    {.key = "tier", .flags = FIELD_WIDE},
    {.key = "gbps", .flags = FIELD_WIDE},
    {.key = "ber", .flags = FIELD_WIDE},
    {.key = "raw_ber", .flags = FIELD_WIDE},
    {.key = "sure_at", .flags = FIELD_WIDE},
    {0},
};

static const struct field device_fields[] = {
    {.key = "state", .title = "STATE", .flags = FIELD_STATE},
    {.key = "name", .title = "DEVICE"},
    {.key = "celsius", .title = "ASIC C", .kind = FIELD_NUMBER},
    {.key = "fans_said", .title = "FANS"},
    {.key = "psus_said", .title = "POWER"},
    {.key = "why", .title = "WHY (RULE)", .path = "said", .flags = FIELD_SHRINK | FIELD_BELOW},
    {.key = "since", .title = "SINCE", .kind = FIELD_AGE},
    {.key = "sampled_at", .title = "READ", .kind = FIELD_AGE},
    {.key = "advice", .title = "ADVICE", .flags = FIELD_SHRINK | FIELD_BELOW},
    {.key = "guid", .flags = FIELD_WIDE},
    {.key = "type", .flags = FIELD_WIDE},
    {.key = "role", .flags = FIELD_WIDE},
    {.key = "rail", .flags = FIELD_WIDE},
    {.key = "su", .flags = FIELD_WIDE},
    {.key = "tier", .flags = FIELD_WIDE},
    {.key = "rule", .flags = FIELD_WIDE},
    {.key = "failed", .flags = FIELD_WIDE},
    {.key = "old", .flags = FIELD_WIDE},
    {.key = "alarm", .kind = FIELD_NUMBER, .flags = FIELD_WIDE},
    {.key = "silenced", .flags = FIELD_WIDE},
    {0},
};

static bool is_bad(json_t *link)
{
    static const char *const good[] = {"unknown", "healthy", "unsure"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (strcmp(js_str(link, "state"), good[i]) == 0)
            return false;
    return true;
}

// The rule behind the reason; what is awaited instead of advice.
static void say(json_t *items)
{
    json_t *x;
    size_t i;
    json_array_foreach(items, i, x)
    {
        const char *why = js_str(x, "why"), *rule = js_str(x, "rule"), *sure = js_str(x, "sure_at");
        struct buf b = {0};
        if (why[0] != 0 && rule[0] != 0)
            json_object_set_new(x, "said", json_sprintf("%s (%s)", why, rule));
        else
            json_object_set(x, "said", json_object_get(x, "why"));
        tele_advice(x, json_object_get(x, "a"));
        if (sure[0] != 0 && js_str(x, "advice")[0] == 0) {
            buf_puts(&b, "wait until ");
            text_time(&b, sure, false);
            json_object_set_new(x, "advice", json_string(b.data));
        }
        buf_done(&b);
    }
}

// "12 ok", "1 of 12 failed", "no source".
static void say_parts(json_t *x, const char *list, const char *key)
{
    size_t n = json_array_size(json_object_get(x, list)), failed = 0, absent = 0, i;
    json_t *part;
    json_array_foreach(json_object_get(x, list), i, part)
    {
        failed += strcmp(js_str(part, "state"), "failed") == 0;
        absent += strcmp(js_str(part, "state"), "absent") == 0;
    }
    json_object_set_new(x, key,
                        n == 0       ? json_string("no source")
                        : failed > 0 ? json_sprintf("%zu of %zu failed", failed, n)
                        : absent > 0 ? json_sprintf("%zu ok, %zu absent", n - absent, absent)
                                     : json_sprintf("%zu ok", n));
}

static void say_devices(json_t *items)
{
    json_t *x;
    size_t i;
    json_array_foreach(items, i, x)
    {
        say_parts(x, "fans", "fans_said");
        say_parts(x, "power_supplies", "psus_said");
        if (js_true(x, "old") && js_str(x, "why")[0] == 0)
            json_object_set_new(x, "why", json_string("read more than a day ago: says nothing of now"));
    }
    say(items);
}

static long long counted(json_t *fabric, const char *state)
{
    char path[60];
    snprintf(path, sizeof(path), "telemetry.links.%s", state);
    return js_int(fabric, path);
}

// "2,039 healthy, 3 named, 1 unsure, 4 unread, 1 down."
static void counts_line(struct out *o, json_t *fabric)
{
    long long named = counted(fabric, "degraded") + counted(fabric, "flapping") + counted(fabric, "failing");
    long long unread = js_int(fabric, "telemetry.unread");
    tele_count(o, counted(fabric, "healthy"), "healthy", "healthy");
    out_printf(o, ", ");
    out_paint(o, named > 0 ? COLOUR_YELLOW : COLOUR_NONE, "%lld named", named);
    out_printf(o, ", ");
    tele_count(o, counted(fabric, "unsure"), "unsure", "unsure");
    out_printf(o, ", ");
    out_paint(o, unread > 0 ? COLOUR_YELLOW : COLOUR_NONE, "%lld unread", unread);
    out_printf(o, ", ");
    out_paint(o, counted(fabric, "down") > 0 ? COLOUR_RED : COLOUR_NONE, "%lld down",
              counted(fabric, "down"));
    if (counted(fabric, "unknown") > 0) {
        out_printf(o, ", ");
        tele_count(o, counted(fabric, "unknown"), "not known yet", "not known yet");
    }
    out_printf(o, ".");
    if (js_int(fabric, "telemetry.isolated") > 0)
        out_printf(o, "  Isolated: %lld.", js_int(fabric, "telemetry.isolated"));
    if (js_int(fabric, "telemetry.isolation_proposed") > 0)
        out_printf(o, "  Would isolate: %lld (cap %lld).", js_int(fabric, "telemetry.isolation_proposed"),
                   js_int(fabric, "telemetry.isolation_cap"));
    out_newline(o);
}

// What ended within the time: alarms of links that are over.
static int past(struct cli *c, json_t **ret)
{
    const char *since = args_value(&c->args, "since");
    struct buf path = {0};
    json_t *items = NULL, *e;
    int64_t from;
    size_t i;

    *ret = json_array();
    if (since == NULL)
        return CLI_OK;
    int rc = tele_time(c, "since", false, &from);
    if (rc != CLI_OK)
        return rc;
    buf_puts(&path, "/api/v1/events");
    http_query(&path, "newest", "1");
    http_query(&path, "kind", "alarm-cleared");
    http_query(&path, "fabric", c->fabric_name);
    rc = cli_list(c, path.data, 1000, &items);
    buf_done(&path);
    json_array_foreach(items, i, e)
    {
        int64_t at;
        if (when_parse(js_str(e, "time"), &at) == 0 && at >= from)
            json_array_append(*ret, e);
    }
    json_decref(items);
    return rc;
}

static void past_lines(struct out *o, json_t *events)
{
    json_t *e;
    size_t i;
    json_array_foreach(events, i, e)
    {
        struct buf b = {0};
        text_time(&b, js_str(e, "time"), false);
        out_paint(o, COLOUR_DIM, "over     ");
        out_printf(o, "%s  %s", b.data, js_str(e, "text"));
        out_wrap(o, 9);
        buf_done(&b);
    }
}

static void next_line(struct out *o, json_t *first, long long proposed)
{
    if (proposed > 0)
        out_printf(o, "next: weft isolate");
    else if (js_int(first, "alarm") > 0)
        out_printf(o, "next: weft alarm show %lld", js_int(first, "alarm"));
    else if (json_is_object(json_object_get(first, "a"))) {
        char *port = tele_shell_port(json_object_get(first, "a"));
        out_printf(o, "next: weft counters %s --since 2h --counter all", port);
        free(port);
    } else
        return;
    out_newline(o);
}

// Why so many are unsure at first, and how long yet.
static void unsure_line(struct out *o, json_t *fabric)
{
    if (counted(fabric, "unsure") == 0)
        return;
    out_printf(o,
               "unsure: too little seen so far to call them healthy; without an error that takes 12 min at "
               "400 Gb/s, 24 at 200, 48 at 100 and less (each: weft health --all)");
    out_wrap(o, 8);
}

struct answer {
    json_t *items, *devices, *fabric, *over;
    char *focus;   // NULL: none
    bool is_there; // something that the focus means
};

static void draw(struct cli *c, const struct answer *a)
{
    struct out *o = &c->out;
    json_t *items = a->items, *devices = a->devices, *fabric = a->fabric;
    json_t *first = json_array_get(items, 0);
    json_t *rows = a->focus == NULL ? health_grouped(items) : json_incref(items);
    if (json_array_size(rows) > 0)
        out_list(o, health_fields, rows);
    json_decref(rows);
    if (json_array_size(items) > 0 && json_array_size(devices) > 0)
        out_newline(o);
    if (json_array_size(devices) > 0)
        out_list(o, device_fields, devices);
    past_lines(o, a->over);
    if (a->is_there && a->focus != NULL && json_array_size(items) + json_array_size(devices) == 0)
        out_printf(o, "Nothing wrong there so far.  ");
    if (a->focus != NULL)
        out_printf(o, "The whole fabric: ");
    counts_line(o, fabric);
    unsure_line(o, fabric);
    json_t *device = json_array_get(devices, 0);
    if (device != NULL && (!is_bad(first) || (strcmp(js_str(first, "state"), "degraded") == 0 &&
                                              strcmp(js_str(device, "state"), "failing") == 0)))
        first = device;
    if (is_bad(first))
        next_line(o, first, js_int(fabric, "telemetry.isolation_proposed"));
    else if (js_int(fabric, "telemetry.unread") > 0) {
        out_printf(o, "next: weft counters 'pma!=read'");
        out_newline(o);
    }
}

static void health_path(struct cli *c, const char *focus, struct buf *path)
{
    buf_printf(path, "%s/health", c->fabric);
    if (args_has(&c->args, "all"))
        http_query(path, "all", "1");
    if (focus != NULL)
        http_query(path, "focus", focus);
}

// Devices that are not well; with --devices as they are. Where links are selected by what links alone have,
// none.
static int get_devices(struct cli *c, const char *focus, bool alone, json_t **ret)
{
    struct buf path = {0};
    long long limit = 0;
    int rc = alone ? cli_number(c, "limit", 1, 100000000, &limit) : CLI_OK;
    if (rc != CLI_OK)
        return rc;
    buf_printf(&path, "%s/devices", c->fabric);
    if (alone)
        http_query(&path, "all", "1");
    if (focus != NULL)
        http_query(&path, "focus", focus);
    if (focus == NULL || alone || tele_only_names(c))
        rc = cli_list(c, path.data, limit, ret);
    else
        *ret = json_array();
    if (rc == CLI_OK)
        say_devices(*ret);
    buf_done(&path);
    return rc;
}

static bool any_bad(json_t *items)
{
    json_t *x;
    size_t i;
    json_array_foreach(items, i, x) if (is_bad(x) && !js_true(x, "silenced")) return true;
    return false;
}

static int show_devices(struct cli *c)
{
    json_t *items = NULL;
    char *focus = tele_focus(c);
    int rc = get_devices(c, focus, true, &items);
    if (rc == CLI_OK && json_array_size(items) == 0 && focus != NULL)
        tele_nothing(c, focus, -1, "", "");
    if (rc == CLI_OK && (json_array_size(items) > 0 || focus == NULL || c->out.format != OUT_TABLE))
        out_list(&c->out, device_fields, items);
    if (rc == CLI_OK)
        rc = any_bad(items) ? CLI_FINDINGS : CLI_OK;
    json_decref(items);
    free(focus);
    return rc;
}

// Whether the focus is of any link at all, also of one that is well.
static int any_there(struct cli *c, const char *focus, bool *ret)
{
    struct buf path = {0};
    json_t *items = NULL;
    buf_printf(&path, "%s/health", c->fabric);
    http_query(&path, "all", "1");
    http_query(&path, "focus", focus);
    int rc = cli_list(c, path.data, 1, &items);
    *ret = json_array_size(items) > 0;
    json_decref(items);
    buf_done(&path);
    return rc;
}

static int ask(struct cli *c, struct answer *a)
{
    struct buf path = {0};
    long long limit = 0;
    int rc = cli_number(c, "limit", 1, 100000000, &limit);
    if (rc == CLI_OK)
        rc = tele_since(c);
    a->focus = tele_focus(c);
    if (rc == CLI_OK)
        health_path(c, a->focus, &path);
    if (rc == CLI_OK)
        rc = cli_list(c, path.data, limit, &a->items);
    if (rc == CLI_OK)
        rc = get_devices(c, a->focus, false, &a->devices);
    if (rc == CLI_OK)
        rc = cli_get(c, c->fabric, &a->fabric);
    if (rc == CLI_OK)
        rc = past(c, &a->over);
    a->is_there = a->focus == NULL || json_array_size(a->items) + json_array_size(a->devices) > 0;
    if (rc == CLI_OK && !a->is_there)
        rc = any_there(c, a->focus, &a->is_there);
    buf_done(&path);
    return rc;
}

int cmd_health(struct cli *c)
{
    struct answer a = {0};
    int rc = cli_fabric(c);
    if (rc == CLI_OK && args_has(&c->args, "devices"))
        return show_devices(c);
    if (rc == CLI_OK)
        rc = ask(c, &a);
    if (rc == CLI_OK) {
        say(a.items);
        if (!a.is_there)
            tele_nothing(c, a.focus, -1, "", "");
        if (c->out.format == OUT_TABLE)
            draw(c, &a);
        else
            out_list(&c->out, health_fields, a.items);
        if (c->out.format != OUT_TABLE && any_bad(a.devices))
            cli_fail(CLI_OK, NULL, "devices are not well, too: weft health --devices");
        rc = any_bad(a.items) || any_bad(a.devices) ? CLI_FINDINGS : CLI_OK;
    }
    json_decref(a.items);
    json_decref(a.devices);
    json_decref(a.fabric);
    json_decref(a.over);
    free(a.focus);
    return rc;
}
