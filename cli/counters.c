// SPDX-License-Identifier: Apache-2.0
// weft counters: which there are; of ports now; of ports, rails and switches over a time.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/focus.h"
#include "cli/tele.h"
#include "cli/text.h"
#include "lib/when.h"
#include "lib/word.h"
#include "lib/xalloc.h"

// --- which there are ---

static const struct field known_fields[] = {
    {.key = "name", .title = "NAME"},
    {.key = "unit", .title = "UNIT"},
    {.key = "group", .title = "READ WITH"},
    {.key = "ibta", .title = "STANDARD", .flags = FIELD_SHRINK},
    {.key = "doc", .title = "MEANING", .flags = FIELD_SHRINK | FIELD_BELOW},
    {.key = "metric", .flags = FIELD_WIDE},
    {.key = "kind", .flags = FIELD_WIDE},
    {0},
};

static void put_markdown(struct out *o, json_t *items)
{
    json_t *x;
    size_t i;
    out_printf(o, "| counter | unit | meaning | source | metric |");
    out_newline(o);
    out_printf(o, "|---|---|---|---|---|");
    out_newline(o);
    json_array_foreach(items, i, x)
    {
        out_printf(o, "| `%s` | %s | %s | %s (%s) | `%s` |", js_str(x, "name"), js_str(x, "unit"),
                   js_str(x, "doc"), js_str(x, "ibta"), js_str(x, "group"), js_str(x, "metric"));
        out_newline(o);
    }
}

int cmd_counters_list(struct cli *c)
{
    json_t *items = NULL;
    int rc = cli_list(c, "/api/v1/counters", 0, &items);
    if (rc == CLI_OK && args_has(&c->args, "markdown"))
        put_markdown(&c->out, items);
    else if (rc == CLI_OK)
        out_list(&c->out, known_fields, items);
    json_decref(items);
    return rc;
}

// --- of ports, now ---

static const struct field port_fields[] = {
    {.key = "name", .title = "NODE", .flags = FIELD_SHRINK},
    {.key = "port", .title = "PORT", .kind = FIELD_NUMBER},
    {.key = "peer", .title = "PEER", .path = "peer.name", .flags = FIELD_SHRINK},
    {.key = "peer_port", .title = "PORT", .path = "peer.port", .kind = FIELD_NUMBER},
    {.key = "gbps", .title = "GBIT/S", .kind = FIELD_NUMBER},
    {.key = "xmit_bps", .title = "SENT", .kind = FIELD_RATE},
    {.key = "rcv_bps", .title = "RECEIVED", .kind = FIELD_RATE},
    {.key = "used", .title = "USED", .kind = FIELD_SHARE},
    {.key = "held", .title = "HELD", .kind = FIELD_SHARE},
    {.key = "errors", .title = "ERRORS", .kind = FIELD_COUNT},
    {.key = "health", .title = "HEALTH", .flags = FIELD_STATE},
    {.key = "pma", .title = "PMA"},
    {.key = "sampled_at", .title = "AGE", .kind = FIELD_AGE},
    {.key = "guid", .flags = FIELD_WIDE},
    {.key = "type", .flags = FIELD_WIDE},
    {.key = "role", .flags = FIELD_WIDE},
    {.key = "rail", .flags = FIELD_WIDE},
    {.key = "su", .flags = FIELD_WIDE},
    {.key = "tier", .flags = FIELD_WIDE},
    {.key = "kind", .flags = FIELD_WIDE},
    {.key = "rcv_used", .flags = FIELD_WIDE},
    {.key = "score", .flags = FIELD_WIDE},
    {.key = "lost_bps", .flags = FIELD_WIDE},
    {.key = "xmit_pps", .flags = FIELD_WIDE},
    {.key = "rcv_pps", .flags = FIELD_WIDE},
    {.key = "errors_per_hour", .flags = FIELD_WIDE},
    {.key = "errors_sampled_at", .flags = FIELD_WIDE},
    {.key = "ber", .flags = FIELD_WIDE},
    {.key = "raw_ber", .flags = FIELD_WIDE},
    {.key = "why", .flags = FIELD_WIDE},
    {.key = "alarm", .flags = FIELD_WIDE},
    {.key = "alarm_rule", .flags = FIELD_WIDE},
    {.key = "saturated", .flags = FIELD_WIDE},
    {.key = "resets", .flags = FIELD_WIDE},
    {.key = "reset_at", .flags = FIELD_WIDE},
    {.key = "unread_since", .flags = FIELD_WIDE},
    {.key = "complete", .flags = FIELD_WIDE},
    {.key = "module_part", .path = "module.part", .flags = FIELD_WIDE},
    {.key = "module_serial", .path = "module.serial", .flags = FIELD_WIDE},
    {.key = "module_celsius", .path = "module.celsius", .flags = FIELD_WIDE},
    {.key = "module_fault", .path = "module.fault", .flags = FIELD_WIDE},
    {0},
};
#define NUM_PORT_FIELDS (sizeof(port_fields) / sizeof(port_fields[0]) - 1)

struct columns { // the table's, and those of each counter
    struct field *field;
    char **text;
    size_t num_text;
};

static void columns_done(struct columns *t)
{
    for (size_t i = 0; i < t->num_text; i++)
        free(t->text[i]);
    free(t->text);
    free(t->field);
}

static const char *keep(struct columns *t, char *s)
{
    t->text[t->num_text++] = s;
    return s;
}

static void columns_make(struct columns *t, json_t *known)
{
    size_t n = json_array_size(known), at = NUM_PORT_FIELDS, i;
    json_t *x;
    t->field = xcalloc(NUM_PORT_FIELDS + 2 * n + 1, sizeof(*t->field));
    t->text = xcalloc(4 * n + 1, sizeof(char *));
    memcpy(t->field, port_fields, sizeof(port_fields));
    json_array_foreach(known, i, x)
    {
        const char *name = js_str(x, "name");
        t->field[at++] = (struct field){
            .key = keep(t, xstrdup(name)), .path = keep(t, xasprintf("value.%s", name)), .flags = FIELD_WIDE};
        t->field[at++] = (struct field){.key = keep(t, xasprintf("rate.%s", name)),
                                        .path = keep(t, xasprintf("rate.%s", name)),
                                        .flags = FIELD_WIDE};
    }
}

static const struct field counter_fields[] = {
    {.key = "counter", .title = "COUNTER"},
    {.key = "value", .title = "VALUE", .kind = FIELD_COUNT},
    {.key = "rate", .title = "A SECOND", .kind = FIELD_FIGURE},
    {.key = "unit", .title = "UNIT"},
    {.key = "group", .flags = FIELD_WIDE},
    {.key = "doc", .title = "MEANING", .flags = FIELD_SHRINK | FIELD_BELOW},
    {0},
};
static const struct field head_fields[] = {
    {.key = "name"},
    {.key = "port", .kind = FIELD_NUMBER},
    {.key = "guid"},
    {.key = "peer", .path = "peer.name"},
    {.key = "peer_port", .path = "peer.port", .kind = FIELD_NUMBER},
    {.key = "gbps", .kind = FIELD_NUMBER},
    {.key = "pma", .flags = FIELD_STATE},
    {.key = "sampled_at", .kind = FIELD_TIME},
    {.key = "used", .kind = FIELD_SHARE},
    {.key = "rcv_used", .kind = FIELD_SHARE},
    {.key = "held", .kind = FIELD_SHARE},
    {.key = "lost", .path = "lost_bps", .kind = FIELD_RATE},
    {.key = "ber", .kind = FIELD_FIGURE},
    {.key = "raw_ber", .kind = FIELD_FIGURE},
    {.key = "health", .flags = FIELD_STATE},
    {.key = "why"},
    {.key = "alarm", .kind = FIELD_NUMBER},
    {.key = "resets", .kind = FIELD_COUNT},
    {.key = "module"},
    {0},
};

// "; receives dBm -1.2 -0.9 (-6.0 to 4.0)"
static void powers(struct buf *b, json_t *m, const char *key, const char *word, const char *low,
                   const char *high)
{
    json_t *l;
    size_t i;
    bool any = false;
    json_array_foreach(json_object_get(m, "lanes"), i, l)
    {
        if (!json_is_number(json_object_get(l, key)))
            continue;
        if (!any)
            buf_printf(b, ", %s dBm", word);
        any = true;
        buf_printf(b, " %.1f", js_num(l, key));
    }
    if (any && js_num(m, low) < js_num(m, high))
        buf_printf(b, " (%.1f to %.1f)", js_num(m, low), js_num(m, high));
}

// What ibdiagnet's file says of the cable, in a line.
static json_t *module_line(json_t *m)
{
    struct buf b = {0};
    if (!json_is_object(m))
        return json_string("no source");
    buf_printf(&b, "%s %s %s", js_str(m, "vendor"), js_str(m, "part"), js_str(m, "serial"));
    if (json_is_number(json_object_get(m, "celsius")))
        buf_printf(&b, ", %.1f C", js_num(m, "celsius"));
    powers(&b, m, "rx_dbm", "receives", "rx_low_dbm", "rx_high_dbm");
    powers(&b, m, "tx_dbm", "sends", "tx_low_dbm", "tx_high_dbm");
    if (js_str(m, "fault")[0] != 0)
        buf_printf(&b, "; %s (L17)", js_str(m, "fault"));
    if (js_true(m, "old")) {
        buf_puts(&b, "; as it was at ");
        text_time(&b, js_str(m, "sampled_at"), false);
        buf_puts(&b, ": says nothing of now");
    }
    json_t *s = json_string(b.data);
    buf_done(&b);
    return s;
}

// One port: a line a counter that is known.
static void show_one(struct cli *c, json_t *item, json_t *known)
{
    json_t *rows = json_array(), *x;
    size_t i;
    json_array_foreach(known, i, x)
    {
        const char *name = js_str(x, "name");
        json_t *v = json_object_get(json_object_get(item, "value"), name);
        json_t *rate = json_object_get(json_object_get(item, "rate"), name);
        if (c->out.format == OUT_TABLE && !json_is_integer(v))
            continue;
        json_array_append_new(rows, json_pack("{s:s, s:O, s:O, s:O, s:O, s:O}", "counter", name, "value",
                                              v ? v : json_null(), "rate", rate ? rate : json_null(), "unit",
                                              json_object_get(x, "unit"), "group",
                                              json_object_get(x, "group"), "doc", json_object_get(x, "doc")));
    }
    if (c->out.format == OUT_TABLE) {
        json_object_set_new(item, "module", module_line(json_object_get(item, "module")));
        out_object(&c->out, head_fields, item);
        out_newline(&c->out);
    }
    out_list(&c->out, counter_fields, rows);
    json_decref(rows);
}

static void show_ports(struct cli *c, json_t *items, json_t *known, bool single)
{
    struct columns t = {0};
    if (single && json_array_size(items) == 1 && c->out.format != OUT_JSON) {
        show_one(c, json_array_get(items, 0), known);
        return;
    }
    if (single && json_array_size(items) == 1) {
        out_json(&c->out, json_array_get(items, 0));
        return;
    }
    columns_make(&t, known);
    out_list(&c->out, t.field, items);
    columns_done(&t);
}

// --- over a time ---

static json_t *known_counter(json_t *known, const char *name)
{
    json_t *x;
    size_t i;
    json_array_foreach(known, i, x)
    {
        if (strcmp(js_str(x, "name"), name) == 0)
            return x;
    }
    return NULL;
}

static const struct field sample_fields[] = {
    {.key = "at"},      {.key = "guid"}, {.key = "name"},  {.key = "port"}, {.key = "group"},
    {.key = "counter"}, {.key = "unit"}, {.key = "value"}, {.key = "rate"}, {.key = "peak"},
    {.key = "ports"},   {.key = "sum"},  {.key = "mean"},  {.key = "max"},  {0},
};

static bool same_row(json_t *a, json_t *b)
{
    static const char *const key[] = {"at", "guid", "port", "group"};
    for (size_t i = 0; i < sizeof(key) / sizeof(key[0]); i++)
        if (!json_equal(json_object_get(a, key[i]), json_object_get(b, key[i])))
            return false;
    return true;
}

static bool is_counted(json_t *known, const char *counter)
{
    const char *kind = js_str(known_counter(known, counter), "kind");
    return strcmp(kind, "error") == 0;
}

static double seconds_between(json_t *a, json_t *b)
{
    int64_t from, to;
    if (when_parse(js_str(a, "at"), &from) != 0 || when_parse(js_str(b, "at"), &to) != 0)
        return 0;
    return (double)(to - from) / 1e9;
}

// What a counter of a port or group said before, by its key.
static char *series_key(json_t *x)
{
    return xasprintf("%s/%lld/%s/%s", js_str(x, "guid"), js_int(x, "port"), js_str(x, "group"),
                     js_str(x, "counter"));
}

// How many in the step that ends with x; NULL: not known. One port's are counted, a group's sum is a rate.
static json_t *count_in(json_t *before, json_t *x, double step)
{
    json_t *v = json_object_get(x, "value"), *sum = json_object_get(x, "sum");
    double seconds = before != NULL ? seconds_between(before, x) : step;
    if (json_is_integer(v) && before != NULL && json_is_integer(json_object_get(before, "value")))
        return json_integer(json_integer_value(v) - js_int(before, "value"));
    if (json_is_number(sum) && seconds > 0)
        return json_integer((json_int_t)(json_number_value(sum) * seconds + 0.5));
    return json_null();
}

// A line a time, a column a counter: its rate; of errors how many a step. *step: 0, or as asked for; the
// shortest where nobody has said: gaps are longer.
static json_t *pivot(json_t *items, json_t *known, double *step, json_t *names)
{
    json_t *rows = json_array(), *last = json_object(), *x, *before = NULL, *row = NULL;
    double asked = *step;
    size_t i;
    json_array_foreach(items, i, x)
    {
        const char *counter = js_str(x, "counter");
        bool group = js_str(x, "group")[0] != 0;
        if (before == NULL || !same_row(before, x)) {
            row = json_pack("{s:O}", "at", json_object_get(x, "at"));
            json_object_set_new(row, "place",
                                group ? json_string(js_str(x, "group"))
                                      : json_sprintf("%s/%lld", js_str(x, "name"), js_int(x, "port")));
            json_array_append_new(rows, row);
        }
        char *key = series_key(x);
        json_t *prior = json_object_get(last, key), *rate = json_object_get(x, group ? "mean" : "rate");
        double since = asked == 0 && prior != NULL ? seconds_between(prior, x) : 0;
        if (since > 0 && (*step == 0 || since < *step))
            *step = since;
        if (is_counted(known, counter))
            json_object_set_new(row, counter, count_in(prior, x, asked));
        else
            json_object_set(row, counter, rate ? rate : json_null());
        json_object_set(last, key, x);
        json_object_set_new(names, counter, json_true());
        free(key);
        before = x;
    }
    json_decref(last);
    return rows;
}

// "symbol_errors in 1 min", "xmit_data", "xmit_wait (ticks/s)". malloc'd.
static char *history_title(json_t *known, const char *key, double step)
{
    const char *unit = js_str(known_counter(known, key), "unit");
    struct buf b = {0};
    buf_puts(&b, key);
    if (step > 0 && is_counted(known, key)) {
        buf_puts(&b, " in ");
        text_age(&b, (int64_t)(step + 0.5));
    } else if (!is_counted(known, key) && strcmp(unit, "bytes") != 0) {
        buf_printf(&b, " (%s/s)", unit);
    }
    return buf_take(&b);
}

static double asked_step(struct cli *c)
{
    const char *s = args_value(&c->args, "step");
    long long n;
    int64_t seconds;
    if (s != NULL && when_parse_age(s, &seconds) == 0)
        return (double)seconds;
    return s != NULL && text_parse_count(s, 0, 1000000000, &n) == 0 ? (double)n : 0;
}

static bool one_place(json_t *rows)
{
    json_t *x;
    size_t i;
    json_array_foreach(rows, i, x)
    {
        if (strcmp(js_str(x, "place"), js_str(json_array_get(rows, 0), "place")) != 0)
            return false;
    }
    return true;
}

#define COLUMNS_MAX 60

static void show_history(struct cli *c, json_t *items, json_t *known)
{
    struct field fields[COLUMNS_MAX + 3] = {{.key = "at", .title = "TIME", .kind = FIELD_TIME},
                                            {.key = "place", .title = "WHERE", .flags = FIELD_SHRINK}};
    json_t *names = json_object(), *v, *rows;
    const char *key;
    size_t n = 2;
    double step = asked_step(c);
    char *title[COLUMNS_MAX] = {0};

    if (c->out.format != OUT_TABLE) {
        out_list(&c->out, sample_fields, items);
        json_decref(names);
        return;
    }
    rows = pivot(items, known, &step, names);
    if (one_place(rows))
        fields[1].flags |= FIELD_WIDE;
    json_object_foreach(names, key, v)
    {
        bool bytes = strcmp(js_str(known_counter(known, key), "unit"), "bytes") == 0;
        bool count = is_counted(known, key);
        if (n >= COLUMNS_MAX)
            break;
        title[n] = history_title(known, key, step);
        fields[n] = (struct field){.key = key,
                                   .title = title[n],
                                   .kind = bytes   ? FIELD_RATE
                                           : count ? FIELD_COUNT
                                                   : FIELD_FIGURE};
        n++;
    }
    if (json_array_size(rows) > 0)
        out_list(&c->out, fields, rows);
    else
        cli_fail(CLI_OK, NULL, "nothing is kept of this time");
    for (size_t i = 0; i < COLUMNS_MAX; i++)
        free(title[i]);
    json_decref(rows);
    json_decref(names);
}

static int history(struct cli *c, const char *place, const char *focus, json_t *known)
{
    static const char *const option[] = {"step", "counter", "by"};
    struct buf path = {0};
    json_t *doc = NULL;
    int rc = tele_since(c);

    if (rc != CLI_OK)
        return rc;
    buf_printf(&path, "%s/counters/history", c->fabric);
    if (place != NULL)
        http_query(&path, "port", place);
    if (focus != NULL)
        http_query(&path, "focus", focus);
    tele_query_time(c, &path, "since", "from");
    tele_query_time(c, &path, "until", "to");
    for (size_t i = 0; i < sizeof(option) / sizeof(option[0]); i++)
        if (args_value(&c->args, option[i]) != NULL)
            http_query(&path, option[i], args_value(&c->args, option[i]));
    if (args_has(&c->args, "peaks"))
        http_query(&path, "peaks", "1");
    rc = cli_get(c, path.data, &doc);
    buf_done(&path);
    if (rc == CLI_OK) {
        c->partial |= json_is_false(json_object_get(doc, "complete"));
        if (c->partial)
            cli_fail(CLI_PARTIAL, NULL, "some of this time cannot be read; see: weft db status");
        json_t *items = json_object_get(doc, "items");
        if (json_array_size(items) > 0 || place != NULL || !tele_takes_none(c, focus))
            show_history(c, items, known);
    }
    json_decref(doc);
    return rc;
}

// --- by virtual lane ---

static const struct field lane_fields[] = {
    {.key = "vl", .title = "VL", .kind = FIELD_NUMBER},
    {.key = "ticks", .title = "WAITED (ticks)", .kind = FIELD_COUNT},
    {.key = "bytes", .title = "LOST", .kind = FIELD_BYTES},
    {.key = "more", .title = "OR MORE"},
    {0},
};

static int by_lane(struct cli *c, const char *place)
{
    struct buf path = {0};
    json_t *doc = NULL;
    if (place == NULL)
        return cli_fail(CLI_USAGE, NULL, "which port? NODE/PORT; it is asked now");
    buf_printf(&path, "%s/counters/vl-waits", c->fabric);
    http_query(&path, "port", place);
    int rc = cli_get(c, path.data, &doc);
    buf_done(&path);
    if (rc == CLI_OK && c->out.format == OUT_JSON)
        out_json(&c->out, doc);
    else if (rc == CLI_OK)
        out_list(&c->out, lane_fields, json_object_get(doc, "lanes"));
    json_decref(doc);
    return rc;
}

// --- the command ---

static int say_nothing(struct cli *c, const char *what)
{
    json_t *doc = NULL;
    char *path = xasprintf("%s/counters?limit=1", c->fabric);
    int rc = cli_get(c, path, &doc);
    if (rc == CLI_OK)
        tele_nothing(c, what, js_int(doc, "total"), "port", "ports");
    json_decref(doc);
    free(path);
    return rc;
}

static int now(struct cli *c, const char *place, const char *focus, json_t *known)
{
    struct buf path = {0};
    json_t *items = NULL;
    long long limit = 0;

    int rc = cli_number(c, "limit", 1, 100000000, &limit);
    if (rc != CLI_OK)
        return rc;
    buf_printf(&path, "%s/counters", c->fabric);
    if (place != NULL)
        http_query(&path, "node", place);
    if (focus != NULL)
        http_query(&path, "focus", focus);
    rc = cli_list(c, path.data, limit, &items);
    buf_done(&path);
    bool nothing = rc == CLI_OK && json_array_size(items) == 0 && (place != NULL || focus != NULL);
    if (nothing)
        rc = say_nothing(c, place != NULL && focus == NULL ? c->args.word[0] : focus);
    if (rc == CLI_OK && !(nothing && c->out.format == OUT_TABLE))
        show_ports(c, items, known, place != NULL);
    json_decref(items);
    return rc;
}

int cmd_counters(struct cli *c)
{
    bool over = args_has(&c->args, "since") || args_has(&c->args, "until") || args_has(&c->args, "step") ||
                args_has(&c->args, "by") || args_has(&c->args, "peaks");
    char *place = NULL, *focus = NULL;
    json_t *known = NULL;
    int rc = cli_fabric(c);

    if (rc == CLI_OK)
        rc = tele_words(c, &place, &focus);
    if (rc == CLI_OK && !over && place != NULL && focus == NULL && tele_is_host(c, place)) {
        focus = xasprintf("'%s *'", place);
        free(place);
        place = NULL;
    }
    if (rc == CLI_OK && over && focus != NULL && !args_has(&c->args, "by"))
        rc = cli_fail(
            CLI_USAGE, NULL,
            "over a time a FOCUS goes with --by (rail, su, tier, switch); else name a port: NODE/PORT");
    if (rc == CLI_OK && over && place == NULL && !args_has(&c->args, "by"))
        rc = cli_fail(CLI_USAGE, NULL, "which ports? NODE/PORT, or all of them taken together: --by rail");
    if (rc == CLI_OK && args_has(&c->args, "vl")) {
        rc = by_lane(c, place);
        free(place);
        free(focus);
        return rc;
    }
    if (rc == CLI_OK)
        rc = cli_list(c, "/api/v1/counters", 0, &known);
    if (rc == CLI_OK)
        rc = over ? history(c, place, focus, known) : now(c, place, focus, known);
    json_decref(known);
    free(place);
    free(focus);
    return rc;
}

// --- top ---

static const struct field top_fields[] = {
    {.key = "rank", .title = "#", .kind = FIELD_NUMBER},
    {.key = "name", .title = "NODE", .flags = FIELD_SHRINK},
    {.key = "port", .title = "PORT", .kind = FIELD_NUMBER},
    {.key = "peer", .title = "TO", .path = "peer.name", .flags = FIELD_SHRINK},
    {.key = "peer_port", .title = "PORT", .path = "peer.port", .kind = FIELD_NUMBER},
    {.key = "value", .title = "VALUE", .kind = FIELD_FIGURE},
    {.key = "used", .title = "USED", .kind = FIELD_SHARE},
    {.key = "held", .title = "HELD", .kind = FIELD_SHARE},
    {.key = "lost_bps", .title = "LOST", .kind = FIELD_RATE},
    {.key = "errors_per_hour", .title = "ERRORS/H", .kind = FIELD_FIGURE},
    {.key = "health", .title = "HEALTH", .flags = FIELD_STATE},
    {.key = "alarm", .title = "ALARM", .kind = FIELD_NUMBER},
    {.key = "most", .flags = FIELD_WIDE},
    {.key = "by", .flags = FIELD_WIDE},
    {.key = "unit", .flags = FIELD_WIDE},
    {.key = "guid", .flags = FIELD_WIDE},
    {.key = "rail", .flags = FIELD_WIDE},
    {.key = "su", .flags = FIELD_WIDE},
    {.key = "kind", .flags = FIELD_WIDE},
    {.key = "gbps", .flags = FIELD_WIDE},
    {.key = "rcv_used", .flags = FIELD_WIDE},
    {.key = "sampled_at", .flags = FIELD_WIDE},
    {0},
};
#define TOP_VALUE 5 // its place among them

static void show_top(struct cli *c, json_t *items)
{
    struct field fields[sizeof(top_fields) / sizeof(top_fields[0])];
    json_t *first = json_array_get(items, 0);
    const char *unit = js_str(first, "unit"), *by = js_str(first, "by");
    char title[80];

    memcpy(fields, top_fields, sizeof(fields));
    snprintf(title, sizeof(title), "%s", unit[0] ? by : "VALUE");
    for (char *p = title; *p; p++)
        *p = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
    if (strcmp(unit, "share") == 0)
        fields[TOP_VALUE].kind = FIELD_SHARE;
    else if (strcmp(unit, "bytes/s") == 0)
        fields[TOP_VALUE].kind = FIELD_RATE;
    else if (unit[0] != 0)
        snprintf(title + strlen(title), sizeof(title) - strlen(title), " (%s)", unit);
    fields[TOP_VALUE].title = title;
    // What is a column of its own is not shown twice; what is of now, not over a time.
    bool over = args_has(&c->args, "since") || args_has(&c->args, "until");
    static const char *const now[] = {"used", "held", "lost_bps", "errors_per_hour"};
    for (size_t i = 0; fields[i].key; i++)
        for (size_t k = 0; i != TOP_VALUE && k < sizeof(now) / sizeof(now[0]); k++)
            if (strcmp(fields[i].key, now[k]) == 0 &&
                (over || (by[0] != 0 && strncmp(now[k], by, strlen(by)) == 0)))
                fields[i].flags |= FIELD_WIDE;
    if (c->out.format != OUT_TABLE || first != NULL) {
        out_list(&c->out, fields, items);
    } else {
        out_printf(&c->out, c->args.num_words > 0 || args_has(&c->args, "focus")
                                ? "no port there has any of it"
                                : "no port has any of it");
        out_newline(&c->out);
    }
}

int cmd_top(struct cli *c)
{
    static const char *const option[][2] = {{"by", "by"}, {"limit", "n"}};
    struct buf path = {0};
    json_t *doc = NULL;
    long long n = 20;

    int rc = cli_fabric(c);
    if (rc == CLI_OK)
        rc = cli_number(c, "limit", 1, 1000, &n);
    if (rc == CLI_OK)
        rc = tele_since(c);
    if (rc != CLI_OK)
        return rc;
    char *focus = tele_focus(c);
    buf_printf(&path, "%s/top", c->fabric);
    if (focus != NULL)
        http_query(&path, "focus", focus);
    tele_query_time(c, &path, "since", "from");
    tele_query_time(c, &path, "until", "to");
    for (size_t i = 0; i < sizeof(option) / sizeof(option[0]); i++)
        if (args_value(&c->args, option[i][0]) != NULL)
            http_query(&path, option[i][1], args_value(&c->args, option[i][0]));
    rc = cli_get(c, path.data, &doc);
    buf_done(&path);
    json_t *items = json_object_get(doc, "items");
    bool none = rc == CLI_OK && json_array_size(items) == 0 && tele_takes_none(c, focus);
    free(focus);
    if (rc == CLI_OK && !(none && c->out.format == OUT_TABLE))
        show_top(c, items);
    json_decref(doc);
    return rc;
}
