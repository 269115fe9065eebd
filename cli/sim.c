// SPDX-License-Identifier: Apache-2.0
// weft sim: what can be done to a simulated fabric. A verb is one row; weftd checks and says what it did.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/text.h"
#include "lib/xalloc.h"

// Words become fields of the request in this order; "?" may be left out. node and to_node may be NODE[PORT].
static const struct verb {
    const char *command, *word, *verb; // "" where the command has one verb only
    const char *fields;
    const char *fixed; // a field that the word itself gives, "key=0"
} verbs[] = {
    {"sim link", "down", "link-down", "node port?", NULL},
    {"sim link", "up", "link-up", "node port?", NULL},
    {"sim link", "flap", "link-flap", "node port?", NULL},
    {"sim link", "enable", "link-enable", "node port?", NULL},
    {"sim cable", "move", "cable-move", "node to_node", NULL},
    {"sim cable", "swap", "cable-swap", "node to_node", NULL},
    {"sim node", "kill", "node-kill", "node", NULL},
    {"sim node", "revive", "node-revive", "node", NULL},
    {"sim node", "reboot", "node-reboot", "node", NULL},
    {"sim node", "slow", "node-slow", "node factor?", NULL},
    {"sim node", "name", "node-name", "node text", NULL},
    {"sim switch", "reboot", "switch-reboot", "node", NULL},
    {"sim hosts", "on", "hosts-on", "", NULL},
    {"sim hosts", "off", "hosts-off", "", NULL},
    {"sim host", "reboot", "host-reboot", "node text?", NULL},
    {"sim adapter", "replace", "adapter-replace", "node guid?", NULL},
    {"sim guid", "duplicate", "guid-duplicate", "node to_node", NULL},
    {"sim guid", "restore", "guid-restore", "node", NULL},
    {"sim guid", "system", "system-guid", "node guid", NULL},
    {"sim key", "set", "m-key", "node key", NULL},
    {"sim key", "clear", "m-key", "node", "key=0"},
    {"sim trap", "raise", "trap-raise", "node number", NULL},
    {"sim trap", "lose", "trap-lose", "node count?", NULL},
    {"sim trap", "loss", "trap-loss", "share", NULL},
    {"sim set", "ignore", "set-ignore", "node what", NULL},
    {"sim set", "keep", "set-keep", "node what", NULL},
    {"sim sm", "add", "sm-add", "node", NULL},
    {"sim sm", "set", "sm-set", "node", NULL},
    {"sim sm", "remove", "sm-remove", "node", NULL},
    {"sim sm", "control", "sm-control", "node control lid", NULL},
    {"sim traffic", "stop", "traffic-stop", "id?", NULL},
    {"sim traffic", "", "traffic-start", "pattern", NULL},
    {"sim receiver", "", "receiver", "node", NULL},
    {"sim errors", "", "errors", "node port?", NULL},
    {"sim module", "", "module", "node port?", NULL},
    {"sim device", "", "device", "node", NULL},
    {"sim loss", "", "loss", "share", NULL},
};
#define NUM_VERBS (sizeof(verbs) / sizeof(verbs[0]))

enum value_type { VALUE_TEXT, VALUE_COUNT, VALUE_SHARE, VALUE_SECONDS, VALUE_NUMBER, VALUE_RATE, VALUE_YES };

static const struct {
    const char *field;
    enum value_type type;
} types[] = {
    {"port", VALUE_COUNT},
    {"to_port", VALUE_COUNT},
    {"factor", VALUE_COUNT},
    {"number", VALUE_COUNT},
    {"count", VALUE_COUNT},
    {"lid", VALUE_COUNT},
    {"times", VALUE_COUNT},
    {"protect", VALUE_COUNT},
    {"lease_seconds", VALUE_COUNT},
    {"priority", VALUE_COUNT},
    {"misses", VALUE_COUNT},
    {"share", VALUE_SHARE},
    {"seconds", VALUE_SECONDS},
    {"down_seconds", VALUE_SECONDS},
    {"up_seconds", VALUE_SECONDS},
    {"silent_seconds", VALUE_SECONDS},
    {"poll_seconds", VALUE_SECONDS},
    {"spread_seconds", VALUE_SECONDS},
    {"path_rate", VALUE_NUMBER},
    {"frozen", VALUE_YES},
    {"silent", VALUE_YES},
    {"quiet", VALUE_YES},
    {"orderly", VALUE_YES},
    {"load", VALUE_SHARE},
    {"shift", VALUE_COUNT},
    {"fan", VALUE_COUNT},
    {"level", VALUE_COUNT},
    {"window", VALUE_COUNT},
    {"seed", VALUE_COUNT},
    {"id", VALUE_COUNT},
    {"on_seconds", VALUE_SECONDS},
    {"off_seconds", VALUE_SECONDS},
    {"symbol", VALUE_RATE},
    {"recovery", VALUE_RATE},
    {"receive", VALUE_RATE},
    {"remote", VALUE_RATE},
    {"integrity", VALUE_RATE},
    {"overrun", VALUE_RATE},
    {"discard", VALUE_RATE},
    {"vl15", VALUE_RATE},
    {"ber", VALUE_NUMBER},
    {"raw_ber", VALUE_NUMBER},
    {"uncorrectable", VALUE_RATE},
    {"celsius", VALUE_NUMBER},
    {"rx_dbm", VALUE_NUMBER},
    {"tx_dbm", VALUE_NUMBER},
    {"fault", VALUE_YES},
    {"failed_fans", VALUE_COUNT},
    {"failed_supplies", VALUE_COUNT},
};

// Which field an option gives; of "for" it depends on the verb.
static const struct {
    const char *option, *field, *verbs; // NULL: whatever the verb
} options[] = {
    {"times", "times", NULL},
    {"gap", "up_seconds", NULL},
    {"for", "down_seconds", "link-flap node-reboot switch-reboot adapter-replace"},
    {"for", "seconds", "host-reboot node-slow"},
    {"mute", "silent_seconds", NULL},
    {"orderly", "orderly", NULL},
    {"width", "width", NULL},
    {"speed", "speed", NULL},
    {"protect", "protect", NULL},
    {"lease", "lease_seconds", NULL},
    {"priority", "priority", NULL},
    {"state", "state", NULL},
    {"sm-key", "sm_key", NULL},
    {"sm-guid", "guid", NULL},
    {"frozen", "frozen", NULL},
    {"silent", "silent", NULL},
    {"quiet", "quiet", NULL},
    {"poll", "poll_seconds", NULL},
    {"misses", "misses", NULL},
    {"spread", "spread_seconds", NULL},
    {"paths", "path_rate", NULL},
    {"hosts", "hosts", NULL},
    {"receivers", "receivers", NULL},
    {"load", "load", NULL},
    {"shift", "shift", NULL},
    {"fan", "fan", NULL},
    {"level", "level", NULL},
    {"window", "window", NULL},
    {"on", "on_seconds", NULL},
    {"off", "off_seconds", NULL},
    {"seed", "seed", NULL},
    {"as", "text", NULL},
    {"takes", "share", NULL},
    {"symbol", "symbol", NULL},
    {"ber", "ber", NULL},
    {"raw-ber", "raw_ber", NULL},
    {"uncorrectable", "uncorrectable", NULL},
    {"recovery", "recovery", NULL},
    {"receive", "receive", NULL},
    {"remote", "remote", NULL},
    {"integrity", "integrity", NULL},
    {"overrun", "overrun", NULL},
    {"discard", "discard", NULL},
    {"vl15", "vl15", NULL},
    {"celsius", "celsius", NULL},
    {"rx", "rx_dbm", NULL},
    {"tx", "tx_dbm", NULL},
    {"fault", "fault", NULL},
    {"fans", "failed_fans", NULL},
    {"supplies", "failed_supplies", NULL},
};

static enum value_type type_of(const char *field)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].field, field) == 0)
            return types[i].type;
    return VALUE_TEXT;
}

int cli_parse_seconds(const char *s, double *ret)
{
    static const struct {
        const char *unit;
        double seconds;
    } unit[] = {{"", 1},      {"s", 1},  {"ms", 1e-3}, {"us", 1e-6},
                {"ns", 1e-9}, {"m", 60}, {"min", 60},  {"h", 3600}};
    char *end;
    double v = strtod(s, &end);
    for (size_t i = 0; i < sizeof(unit) / sizeof(unit[0]) && end != s && isfinite(v) && v >= 0; i++)
        if (strcmp(end, unit[i].unit) == 0) {
            *ret = v * unit[i].seconds;
            return 0;
        }
    return -EINVAL;
}

// "5/h", "0.2/s", "3/min"; a bare number is an hour's. Of an hour.
static int parse_rate(const char *s, double *ret)
{
    static const struct {
        const char *unit;
        double hours;
    } unit[] = {{"", 1}, {"/h", 1}, {"/s", 3600}, {"/min", 60}, {"/m", 60}, {"/d", 1.0 / 24}};
    char *end;
    double v = strtod(s, &end);
    for (size_t i = 0; i < sizeof(unit) / sizeof(unit[0]) && end != s && isfinite(v) && v >= 0; i++)
        if (strcmp(end, unit[i].unit) == 0) {
            *ret = v * unit[i].hours;
            return 0;
        }
    return -EINVAL;
}

static int parse_share(const char *s, double *ret)
{
    char *end;
    double share = strtod(s, &end);
    if (end != s && strcmp(end, "%") == 0) {
        share /= 100;
        end++;
    }
    if (end == s || *end != 0 || !(share >= 0 && share <= 1))
        return -EINVAL;
    *ret = share;
    return 0;
}

static int put_value(json_t *body, const char *field, const char *s)
{
    long long n;
    double d;
    char *end;

    switch (type_of(field)) {
    case VALUE_TEXT:
        if (json_object_set_new(body, field, json_string(s)) != 0)
            return cli_fail(CLI_USAGE, field, "not UTF-8");
        return CLI_OK;
    case VALUE_COUNT:
        if (text_parse_count(s, 0, 1000000000, &n) != 0)
            return cli_fail(CLI_USAGE, s,
                            strcmp(field, "port") == 0 ? "not a port number, 1 to 254"
                                                       : "not a whole number");
        json_object_set_new(body, field, json_integer(n));
        return CLI_OK;
    case VALUE_SHARE:
        if (parse_share(s, &d) != 0)
            return cli_fail(CLI_USAGE, s, "not a share, 0 to 1, or 0%% to 100%%");
        json_object_set_new(body, field, json_real(d));
        return CLI_OK;
    case VALUE_SECONDS:
        if (cli_parse_seconds(s, &d) != 0)
            return cli_fail(CLI_USAGE, s, "not a time, such as 10ms, 0.5s, 2m");
        json_object_set_new(body, field, json_real(d));
        return CLI_OK;
    case VALUE_NUMBER:
        d = strtod(s, &end);
        if (end == s || *end != 0 || !isfinite(d))
            return cli_fail(CLI_USAGE, s, "not a number");
        json_object_set_new(body, field, json_real(d));
        return CLI_OK;
    case VALUE_RATE:
        if (parse_rate(s, &d) != 0)
            return cli_fail(CLI_USAGE, s, "not a rate, such as 5/h, 3/min, 0.2/s");
        json_object_set_new(body, field, json_real(d));
        return CLI_OK;
    case VALUE_YES:
        json_object_set_new(body, field, json_boolean(strcmp(s, "no") != 0));
        return CLI_OK;
    }
    return CLI_OK;
}

// --- nodes ---

// A node that was killed is no more in the list, so what is not found here is left to weftd.
static int sim_node_name(struct cli *c, const char *word, char **ret)
{
    struct buf path = {0};
    json_t *items = NULL, *n;
    size_t i, hits = 0;

    int rc = cli_fabric(c);
    if (rc != CLI_OK)
        return rc;
    buf_printf(&path, "%s/nodes", c->fabric);
    http_query(&path, "name", word);
    rc = cli_list(c, path.data, 0, &items);
    buf_done(&path);
    if (rc != CLI_OK)
        return rc;
    json_array_foreach(items, i, n) hits += strcmp(js_str(n, "name"), word) == 0;
    json_decref(items);
    if (hits > 1 || strchr(word, ':') != NULL) {
        json_t *node = NULL;
        rc = cli_node(c, word, &node);
        if (rc == CLI_OK)
            *ret = xstrdup(js_str(node, "guid"));
        json_decref(node);
        return rc;
    }
    *ret = xstrdup(word);
    return CLI_OK;
}

// NODE or NODE[PORT] into "node" and "port", or "to_node" and "to_port".
static int put_place(struct cli *c, json_t *body, const char *field, const char *word)
{
    const char *open = strrchr(word, '[');
    size_t len = strlen(word);
    long long port = -1;
    char *bare = NULL, *node = NULL;

    if (open != NULL && open != word && word[len - 1] == ']') {
        char *digits = xasprintf("%.*s", (int)(word + len - 1 - open - 1), open + 1);
        if (text_parse_count(digits, 0, 254, &port) == 0)
            bare = xasprintf("%.*s", (int)(open - word), word);
        free(digits);
    }
    int rc = sim_node_name(c, bare != NULL ? bare : word, &node);
    if (rc == CLI_OK) {
        json_object_set_new(body, field, json_string(node));
        if (bare != NULL)
            json_object_set_new(body, strcmp(field, "node") == 0 ? "port" : "to_port", json_integer(port));
    }
    free(bare);
    free(node);
    return rc;
}

// --- from the command line to the request ---

static bool has_word(const char *list, const char *w)
{
    size_t n = strlen(w);
    for (const char *p = list; *p != 0; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");
        if (len == n && strncmp(p, w, n) == 0)
            return true;
        p += len;
    }
    return false;
}

static int put_words(struct cli *c, const struct verb *v, unsigned first, json_t *body)
{
    const struct args *a = &c->args;
    char field[40];
    unsigned i = first;

    for (const char *p = v->fields; *p != 0; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");
        bool may = p[len - 1] == '?';
        snprintf(field, sizeof(field), "%.*s", (int)(len - may), p);
        p += len;
        if (i == a->num_words && may)
            continue;
        if (i == a->num_words)
            return cli_fail(CLI_USAGE, a->command->name, "something is missing; usage: weft %s %s",
                            a->command->name, a->command->args);
        bool place = strcmp(field, "node") == 0 || strcmp(field, "to_node") == 0;
        int rc = place ? put_place(c, body, field, a->word[i]) : put_value(body, field, a->word[i]);
        if (rc != CLI_OK)
            return rc;
        i++;
    }
    if (i < a->num_words)
        return cli_fail(CLI_USAGE, a->word[i], "too many words; usage: weft %s %s", a->command->name,
                        a->command->args);
    return CLI_OK;
}

static int put_options(struct cli *c, const struct verb *v, json_t *body)
{
    const struct args *a = &c->args;
    int rc = CLI_OK;

    for (unsigned i = 0; i < a->num_given && rc == CLI_OK; i++)
        for (size_t k = 0; k < sizeof(options) / sizeof(options[0]) && rc == CLI_OK; k++)
            if (strcmp(options[k].option, a->given[i].row->name) == 0 &&
                (options[k].verbs == NULL || has_word(options[k].verbs, v->verb)))
                rc = put_value(body, options[k].field, a->given[i].value != NULL ? a->given[i].value : "yes");
    // A link that flaps is out as long as it is in, unless told otherwise.
    json_t *gap = json_object_get(body, "up_seconds");
    if (gap != NULL && json_object_get(body, "down_seconds") == NULL)
        json_object_set(body, "down_seconds", gap);
    return rc;
}

// Of the first word; NULL when there is no such verb.
static const struct verb *find_verb(const struct args *a)
{
    for (size_t i = 0; i < NUM_VERBS; i++)
        if (strcmp(verbs[i].command, a->command->name) == 0 &&
            (verbs[i].word[0] == 0 || strcmp(verbs[i].word, a->word[0]) == 0))
            return &verbs[i];
    return NULL;
}

static int no_verb(const struct args *a)
{
    struct buf b = {0};
    const char *last = NULL;

    for (size_t i = 0; i < NUM_VERBS; i++)
        if (strcmp(verbs[i].command, a->command->name) == 0) {
            if (last != NULL)
                buf_printf(&b, "%s%s", b.len ? ", " : "", last);
            last = verbs[i].word;
        }
    int rc = cli_fail(CLI_USAGE, a->word[0], "%s%s%s? usage: weft %s %s", b.len ? b.data : "",
                      b.len ? " or " : "", last != NULL ? last : "", a->command->name, a->command->args);
    buf_done(&b);
    return rc;
}

static int post(struct cli *c, const struct verb *v, json_t *body)
{
    struct buf path = {0};
    struct http_reply r;
    struct err e = {0};

    buf_printf(&path, "%s/sim/actions", c->fabric);
    json_object_set_new(body, "verb", json_string(v->verb));
    enum cli_exit x = http_call(c->http, "POST", path.data, body, c->timeout, &r, &e);
    if (x == CLI_USAGE) // weftd says where; the path of the request is of no interest
        e.where[0] = 0;
    if (x != CLI_OK)
        cli_complain(&e);
    else
        cli_said(c, r.json);
    http_reply_done(&r);
    buf_done(&path);
    return x;
}

// Says so before nodes are looked for, which a fabric without a port has none of.
static int need_simulated(struct cli *c)
{
    json_t *f = NULL;
    int rc = cli_fabric(c);
    if (rc == CLI_OK)
        rc = cli_get(c, c->fabric, &f);
    if (rc == CLI_OK && !js_true(f, "simulated"))
        rc = cli_fail(CLI_USAGE, c->fabric_name,
                      "the fabric is not simulated: this would need hands in the machine room");
    json_decref(f);
    return rc;
}

int cmd_sim(struct cli *c)
{
    const struct verb *v = find_verb(&c->args);
    json_t *body;

    if (v == NULL)
        return no_verb(&c->args);
    int rc = need_simulated(c);
    if (rc != CLI_OK)
        return rc;
    body = json_object();
    if (v->fixed != NULL) {
        char *field = xasprintf("%.*s", (int)strcspn(v->fixed, "="), v->fixed);
        put_value(body, field, strchr(v->fixed, '=') + 1);
        free(field);
    }
    rc = put_words(c, v, v->word[0] != 0, body);
    if (rc == CLI_OK)
        rc = put_options(c, v, body);
    if (rc == CLI_OK)
        rc = post(c, v, body);
    json_decref(body);
    return rc;
}

// --- how it stands ---

static const struct field manager_fields[] = {
    {.key = "node", .title = "MANAGER", .flags = FIELD_SHRINK},
    {.key = "lid", .title = "LID", .kind = FIELD_NUMBER},
    {.key = "state", .title = "STATE"},
    {.key = "priority", .title = "PRIORITY", .kind = FIELD_NUMBER},
    {.key = "silent", .title = "SILENT"},
    {.key = "frozen", .title = "FROZEN"},
    {.key = "gets", .title = "ASKED", .kind = FIELD_COUNT},
    {.key = "sets", .title = "CONTROLS", .kind = FIELD_COUNT},
    {.key = "polls_missed", .title = "MISSED", .kind = FIELD_COUNT},
    {.key = "port_guid", .flags = FIELD_WIDE},
    {0},
};

static const struct field sim_fields[] = {
    {.key = "mads", .kind = FIELD_COUNT},
    {.key = "lost", .kind = FIELD_COUNT},
    {.key = "dropped_vl15", .kind = FIELD_COUNT},
    {.key = "no_route", .kind = FIELD_COUNT},
    {.key = "bad_vl", .kind = FIELD_COUNT},
    {.key = "loops", .kind = FIELD_COUNT},
    {.key = "silent", .kind = FIELD_COUNT},
    {.key = "traps", .kind = FIELD_COUNT},
    {.key = "traps_pending", .kind = FIELD_COUNT},
    {.key = "hosts", .path = "hosts.hosts", .kind = FIELD_COUNT},
    {.key = "hosts_active", .path = "hosts.active", .kind = FIELD_COUNT},
    {.key = "hosts_ipoib_up", .path = "hosts.ipoib_up", .kind = FIELD_COUNT},
    {.key = "hosts_joined", .path = "hosts.joined", .kind = FIELD_COUNT},
    {.key = "join_timeouts", .path = "hosts.timeouts", .kind = FIELD_COUNT},
    {.key = "join_failures", .path = "hosts.failures", .kind = FIELD_COUNT},
    {.key = "max_join_seconds", .path = "hosts.max_join_seconds", .kind = FIELD_SECONDS},
    {.key = "paths", .path = "hosts.paths", .kind = FIELD_COUNT},
    {.key = "paths_ok", .path = "hosts.paths_ok", .kind = FIELD_COUNT},
    {0},
};

static const struct field traffic_fields[] = {
    {.key = "id", .title = "ID", .kind = FIELD_NUMBER},
    {.key = "name", .title = "TRAFFIC", .flags = FIELD_SHRINK},
    {.key = "pattern", .title = "PATTERN"},
    {.key = "on", .title = "ON"},
    {.key = "senders", .title = "SENDERS", .kind = FIELD_COUNT},
    {.key = "receivers", .title = "RECEIVERS", .kind = FIELD_COUNT},
    {.key = "flows", .title = "FLOWS", .kind = FIELD_COUNT},
    {.key = "dead", .title = "DEAD", .kind = FIELD_COUNT},
    {.key = "offered_bytes_per_second", .title = "OFFERED", .kind = FIELD_RATE},
    {.key = "delivered_bytes_per_second", .title = "DELIVERED", .kind = FIELD_RATE},
    {0},
};

static const struct field root_fields[] = {
    {.key = "node", .title = "WAITED FOR", .flags = FIELD_SHRINK},
    {.key = "port", .title = "PORT", .kind = FIELD_NUMBER},
    {.key = "kind", .title = "WHAT IT IS"},
    {.key = "waiting", .title = "WAITING", .kind = FIELD_COUNT},
    {.key = "used", .title = "USED", .kind = FIELD_SHARE},
    {.key = "held", .title = "HELD", .kind = FIELD_SHARE},
    {.key = "lost_bytes_per_second", .title = "LOST", .kind = FIELD_RATE},
    {.key = "node_guid", .flags = FIELD_WIDE},
    {0},
};

static int get_sim(struct cli *c, json_t **ret)
{
    struct buf path = {0};
    int rc = need_simulated(c);
    if (rc != CLI_OK)
        return rc;
    buf_printf(&path, "%s/sim", c->fabric);
    rc = cli_get(c, path.data, ret);
    buf_done(&path);
    return rc;
}

static void list_below(struct cli *c, const struct field *fields, json_t *items)
{
    if (json_array_size(items) == 0)
        return;
    out_newline(&c->out);
    out_list(&c->out, fields, items);
}

int cmd_sim_show(struct cli *c)
{
    json_t *s = NULL;
    int rc = get_sim(c, &s);
    if (rc != CLI_OK)
        return rc;
    if (c->out.format == OUT_JSON) {
        out_json(&c->out, s);
    } else {
        out_object(&c->out, sim_fields, s);
        if (c->out.format == OUT_TABLE) {
            list_below(c, manager_fields, json_object_get(s, "managers"));
            list_below(c, traffic_fields, json_object_get(s, "traffic"));
            list_below(c, root_fields, json_object_get(s, "roots"));
        }
    }
    json_decref(s);
    return rc;
}

// Starting and stopping are verbs like others.
int cmd_sim_traffic(struct cli *c)
{
    json_t *s = NULL;
    if (strcmp(c->args.word[0], "list") != 0)
        return cmd_sim(c);
    if (c->args.num_words > 1)
        return cli_fail(CLI_USAGE, c->args.word[1], "too many words; usage: weft sim traffic list");
    int rc = get_sim(c, &s);
    if (rc != CLI_OK)
        return rc;
    out_list(&c->out, traffic_fields, json_object_get(s, "traffic"));
    if (c->out.format == OUT_TABLE)
        list_below(c, root_fields, json_object_get(s, "roots"));
    json_decref(s);
    return rc;
}
