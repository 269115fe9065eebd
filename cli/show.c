// SPDX-License-Identifier: Apache-2.0
// Lists: nodes, ports, links, counters of management packets. What a focus takes is for weftd to say.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/focus.h"
#include "cli/tele.h"
#include "cli/text.h"
#include "lib/called.h"
#include "lib/guid.h"
#include "lib/word.h"
#include "lib/xalloc.h"

static const struct field node_fields[] = {
    {.key = "guid", .title = "GUID"},
    {.key = "name", .title = "NAME", .flags = FIELD_SHRINK},
    {.key = "type", .title = "TYPE"},
    {.key = "role", .title = "ROLE"},
    {.key = "tier", .kind = FIELD_NUMBER, .flags = FIELD_WIDE},
    {.key = "su", .title = "SU", .kind = FIELD_NUMBER},
    {.key = "rail", .title = "RAIL", .kind = FIELD_NUMBER},
    {.key = "plane", .kind = FIELD_NUMBER, .flags = FIELD_WIDE},
    {.key = "host", .title = "HOST", .kind = FIELD_NUMBER},
    {.key = "lid", .title = "LID", .kind = FIELD_NUMBER},
    {.key = "ports_up", .title = "UP", .kind = FIELD_NUMBER},
    {.key = "num_ports", .title = "PORTS", .kind = FIELD_NUMBER},
    {.key = "adaptive", .flags = FIELD_WIDE},
    {.key = "vendor_id", .kind = FIELD_NUMBER, .flags = FIELD_WIDE},
    {.key = "device_id", .kind = FIELD_NUMBER, .flags = FIELD_WIDE},
    {.key = "sys_guid", .flags = FIELD_WIDE},
    {0},
};

static const struct field port_fields[] = {
    {.key = "node_guid", .flags = FIELD_WIDE},
    {.key = "node_name", .flags = FIELD_WIDE},
    {.key = "num", .title = "PORT", .kind = FIELD_NUMBER},
    {.key = "label", .title = "LABEL", .flags = FIELD_SHRINK},
    {.key = "state", .title = "STATE", .flags = FIELD_STATE},
    {.key = "phys_state", .title = "PHYSICAL"},
    {.key = "link", .title = "LINK"},
    {.key = "gbps", .title = "GBIT/S", .kind = FIELD_NUMBER},
    {.key = "lid", .title = "LID", .kind = FIELD_NUMBER},
    {.key = "mtu", .title = "MTU", .kind = FIELD_NUMBER},
    {.key = "vls", .title = "VLS", .kind = FIELD_NUMBER},
    {.key = "rail", .kind = FIELD_NUMBER, .flags = FIELD_WIDE},
    {.key = "peer", .title = "PEER", .path = "peer.name", .flags = FIELD_SHRINK},
    {.key = "peer_port", .title = "PORT", .path = "peer.port", .kind = FIELD_NUMBER},
    {.key = "excluded", .title = "EXCLUDED", .flags = FIELD_SHRINK},
    {.key = "guid", .flags = FIELD_WIDE},
    {.key = "lmc", .kind = FIELD_NUMBER, .flags = FIELD_WIDE},
    {.key = "width", .flags = FIELD_WIDE},
    {.key = "speed", .flags = FIELD_WIDE},
    {.key = "peer_guid", .path = "peer.guid", .flags = FIELD_WIDE},
    {.key = "used", .path = "tele.used", .flags = FIELD_WIDE},
    {.key = "held", .path = "tele.held", .flags = FIELD_WIDE},
    {.key = "errors", .path = "tele.errors", .flags = FIELD_WIDE},
    {.key = "health", .path = "tele.health", .flags = FIELD_WIDE},
    {.key = "ber", .path = "tele.ber", .flags = FIELD_WIDE},
    {.key = "alarm", .path = "tele.alarm", .flags = FIELD_WIDE},
    {.key = "pma", .path = "tele.pma", .flags = FIELD_WIDE},
    {0},
};

#define ALL_PORT_FIELDS                                                                                      \
    {.key = "node_name", .title = "NODE", .flags = FIELD_SHRINK},                                            \
        {.key = "num", .title = "PORT", .kind = FIELD_NUMBER},                                               \
        {.key = "state", .title = "STATE", .flags = FIELD_STATE}, {.key = "link", .title = "LINK"},          \
        {.key = "peer", .title = "PEER", .path = "peer.name", .flags = FIELD_SHRINK},                        \
        {.key = "peer_port", .title = "PORT", .path = "peer.port", .kind = FIELD_NUMBER},                    \
        {.key = "used", .title = "USED", .path = "tele.used", .kind = FIELD_SHARE},                          \
        {.key = "held", .title = "HELD", .path = "tele.held", .kind = FIELD_SHARE},                          \
        {.key = "errors", .title = "ERRORS", .path = "tele.errors", .kind = FIELD_COUNT},                    \
        {.key = "health", .title = "HEALTH", .path = "tele.health", .flags = FIELD_STATE},                   \
        {.key = "pma", .title = "PMA", .path = "tele.pma"},                                                  \
        {.key = "alarm", .title = "ALARM", .path = "tele.alarm", .kind = FIELD_NUMBER},                      \
        {.key = "excluded", .title = "EXCLUDED", .flags = FIELD_SHRINK},                                     \
        {.key = "node_guid", .flags = FIELD_WIDE}, {.key = "phys_state", .flags = FIELD_WIDE},               \
        {.key = "gbps", .flags = FIELD_WIDE}, {.key = "lid", .flags = FIELD_WIDE},                           \
        {.key = "mtu", .flags = FIELD_WIDE}, {.key = "rail", .flags = FIELD_WIDE},                           \
        {.key = "ber", .path = "tele.ber", .flags = FIELD_WIDE}, {.key = "label", .flags = FIELD_WIDE},      \
        {.key = "peer_guid", .path = "peer.guid", .flags = FIELD_WIDE},

#define LINK_FIELDS                                                                                          \
    {.key = "a", .title = "A", .path = "a.name", .flags = FIELD_SHRINK},                                     \
        {.key = "a_port", .title = "PORT", .path = "a.port", .kind = FIELD_NUMBER},                          \
        {.key = "z", .title = "Z", .path = "z.name", .flags = FIELD_SHRINK},                                 \
        {.key = "z_port", .title = "PORT", .path = "z.port", .kind = FIELD_NUMBER},                          \
        {.key = "link", .title = "LINK"}, {.key = "gbps", .title = "GBIT/S", .kind = FIELD_NUMBER},          \
        {.key = "kind", .title = "KIND"}, {.key = "state", .title = "STATE", .flags = FIELD_STATE},          \
        {.key = "a_guid", .path = "a.guid", .flags = FIELD_WIDE},                                            \
        {.key = "a_label", .path = "a.label", .flags = FIELD_WIDE},                                          \
        {.key = "z_guid", .path = "z.guid", .flags = FIELD_WIDE},                                            \
        {.key = "z_label", .path = "z.label", .flags = FIELD_WIDE},                                          \
        {.key = "health", .path = "tele.state", .flags = FIELD_WIDE},                                        \
        {.key = "why", .path = "tele.why", .flags = FIELD_WIDE},                                             \
        {.key = "ber", .path = "tele.ber", .flags = FIELD_WIDE},                                             \
        {.key = "raw_ber", .path = "tele.raw_ber", .flags = FIELD_WIDE},                                     \
        {.key = "alarm", .path = "tele.alarm", .kind = FIELD_NUMBER, .flags = FIELD_WIDE},

static const struct field all_port_fields[] = {ALL_PORT_FIELDS{0}}, link_fields[] = {LINK_FIELDS{0}};

static const struct field mad_fields[] = {
    {.key = "class", .kind = FIELD_NUMBER, .flags = FIELD_WIDE},
    {.key = "method", .title = "METHOD"},
    {.key = "attribute", .title = "ATTRIBUTE"},
    {.key = "requests", .title = "REQUESTS", .kind = FIELD_COUNT},
    {.key = "sent", .title = "SENT", .kind = FIELD_COUNT},
    {.key = "retries", .title = "RETRIES", .kind = FIELD_COUNT},
    {.key = "timeouts", .title = "TIMEOUTS", .kind = FIELD_COUNT},
    {.key = "refused", .title = "REFUSED", .kind = FIELD_COUNT},
    {.key = "undeliverable", .title = "UNDELIVERABLE", .kind = FIELD_COUNT},
    {.key = "late", .title = "LATE", .kind = FIELD_COUNT},
    {0},
};

static const struct field adaptive_fields[] = {
    {.key = "guid", .flags = FIELD_WIDE},
    {.key = "name", .title = "SWITCH", .flags = FIELD_SHRINK},
    {.key = "state", .title = "STATE", .flags = FIELD_STATE},
    {.key = "groups", .title = "GROUPS", .kind = FIELD_COUNT},
    {.key = "cap", .title = "OF", .kind = FIELD_COUNT},
    {.key = "why", .title = "WHY", .flags = FIELD_SHRINK | FIELD_BELOW},
    {0},
};

struct query {
    const struct field *fields;
    const char *also;  // another list below the fabric, of the same form; NULL
    bool use_words;    // the words are a focus
    const char *focus; // or this is; NULL: none
    const char *tele;  // list below the fabric that tells of counters; NULL: none
    bool (*keep)(json_t *item, void *arg);
    void *arg;
};

static void cut_list(json_t *items, long long limit)
{
    while (limit > 0 && json_array_size(items) > (size_t)limit)
        json_array_remove(items, json_array_size(items) - 1);
}

// --- what counters say of items ---

// Of an item of both lists: the port that it is about, of a link the lower end's.
static char *place_of(json_t *item)
{
    static const char *const guid[] = {"node_guid", "a.guid", "guid"}, *const port[] = {"num", "a.port",
                                                                                        "port"};
    for (size_t i = 0; i < 3; i++)
        if (js_str(item, guid[i])[0] != 0 && json_is_integer(js_at(item, port[i])))
            return xasprintf("%s/%lld", js_str(item, guid[i]), js_int(item, port[i]));
    return NULL;
}

static void keep_place(json_t *by_place, json_t *end, json_t *item)
{
    char *place = end != NULL ? place_of(end) : NULL;
    if (place != NULL)
        json_object_set(by_place, place, item);
    free(place);
}

// All that is said, by place; what cannot be had is not missed.
static json_t *tele_of(struct cli *c, const char *below)
{
    json_t *by_place = json_object(), *x;
    char *cursor = NULL;
    size_t i;
    bool more = true;

    for (unsigned pages = 0; more && pages < 10000; pages++) {
        struct buf path = {0};
        struct http_reply r;
        struct err e = {0};
        buf_printf(&path, "%s/%s", c->fabric, below);
        if (cursor != NULL)
            http_query(&path, "cursor", cursor);
        more = http_call(c->http, "GET", path.data, NULL, c->timeout, &r, &e) == CLI_OK;
        json_array_foreach(json_object_get(r.json, "items"), i, x)
        {
            keep_place(by_place, x, x);
            keep_place(by_place, json_object_get(x, "z"), x);
        }
        free(cursor);
        cursor = NULL;
        if (more && json_is_string(json_object_get(r.json, "next")))
            cursor = xstrdup(js_str(r.json, "next"));
        more = cursor != NULL;
        http_reply_done(&r);
        buf_done(&path);
    }
    free(cursor);
    return by_place;
}

static void add_tele(struct cli *c, const struct query *q, json_t *items)
{
    json_t *by_place = tele_of(c, q->tele), *item;
    size_t i;
    json_array_foreach(items, i, item)
    {
        char *place = place_of(item);
        json_t *t = place != NULL ? json_object_get(by_place, place) : NULL;
        if (t != NULL)
            json_object_set(item, "tele", t);
        free(place);
    }
    json_decref(by_place);
}

static json_t *kept(json_t *items, const struct query *q)
{
    json_t *all = json_array(), *item;
    size_t i;
    json_array_foreach(items, i, item)
    {
        if (q->keep == NULL || q->keep(item, q->arg))
            json_array_append(all, item);
    }
    json_decref(items);
    return all;
}

// Appends what the focus takes of a list. limit 0: all.
static int append(struct cli *c, const char *path, const char *focus, long long limit, json_t *items)
{
    struct buf full = {0};
    json_t *more = NULL;
    buf_puts(&full, path);
    if (focus != NULL)
        http_query(&full, "focus", focus);
    int rc = cli_list(c, full.data, limit, &more);
    json_array_extend(items, more);
    json_decref(more);
    buf_done(&full);
    return rc;
}

// How many there are without a focus; -1: not known.
static long long total_of(struct cli *c, const char *path)
{
    struct buf full = {0};
    json_t *doc = NULL;
    buf_puts(&full, path);
    http_query(&full, "limit", "1");
    bool known = cli_get(c, full.data, &doc) == CLI_OK && json_is_integer(json_object_get(doc, "total"));
    long long n = known ? js_int(doc, "total") : -1;
    json_decref(doc);
    buf_done(&full);
    return n;
}

// Says why a list that the focus asks for is empty. hits: what it takes before keep().
static bool say_empty(struct cli *c, const char *path, const char *focus, size_t hits)
{
    if (hits == 0)
        tele_nothing(c, focus, total_of(c, path), "other", "others");
    else
        tele_none_such(c, focus, (long long)hits);
    return c->out.format == OUT_TABLE;
}

// The list at path, of what the focus takes. --limit counts what is left. *ret_said: that nothing matches was
// said.
static int fetch(struct cli *c, const char *path, const struct query *q, json_t **ret, bool *ret_said)
{
    long long limit = 0;
    json_t *items = json_array();
    char *focus = q->focus != NULL                        ? xstrdup(q->focus)
                  : q->use_words && c->args.num_words > 0 ? tele_focus(c)
                                                          : NULL;
    *ret_said = false;
    int rc = cli_number(c, "limit", 1, 100000000, &limit);
    if (rc == CLI_OK)
        rc = append(c, path, focus, q->keep != NULL ? 0 : limit, items);
    if (rc == CLI_OK && q->also != NULL) {
        struct buf also = {0};
        buf_printf(&also, "%s/%s", c->fabric, q->also);
        rc = append(c, also.data, focus, 0, items);
        buf_done(&also);
    }
    size_t hits = json_array_size(items);
    items = kept(items, q);
    cut_list(items, limit);
    if (rc == CLI_OK && q->tele != NULL && (c->out.format != OUT_TABLE || q->focus != NULL))
        add_tele(c, q, items);
    if (rc == CLI_OK && focus != NULL && json_array_size(items) == 0)
        *ret_said = say_empty(c, path, focus, hits);
    free(focus);
    *ret = items;
    return rc;
}

static int show_list(struct cli *c, const char *below, const struct query *q)
{
    struct buf path = {0};
    json_t *items = NULL;
    bool said;

    int rc = cli_fabric(c);
    if (rc != CLI_OK)
        return rc;
    buf_printf(&path, "%s/%s", c->fabric, below);
    rc = fetch(c, path.data, q, &items, &said);
    if (rc == CLI_OK && !said)
        out_list(&c->out, q->fields, items);
    json_decref(items);
    buf_done(&path);
    return rc;
}

static int show_node(struct cli *c, json_t *node)
{
    struct buf path = {0};
    json_t *full = NULL;

    buf_printf(&path, "%s/nodes", c->fabric);
    http_segment(&path, js_str(node, "guid"));
    int rc = cli_get(c, path.data, &full);
    if (rc == CLI_OK)
        out_with(&c->out, node_fields, full, "ports", port_fields);
    json_decref(full);
    buf_done(&path);
    return rc;
}

static int list_nodes(struct cli *c, const char *name, bool focus)
{
    static const char *const filter[] = {"type", "role", "name"};
    struct query q = {.fields = node_fields, .use_words = focus};
    struct buf path = {0};

    buf_puts(&path, "nodes");
    for (size_t i = 0; i < sizeof(filter) / sizeof(filter[0]); i++) {
        const char *v = args_value(&c->args, filter[i]);
        if (v == NULL && i == 2)
            v = name;
        if (v != NULL)
            http_query(&path, filter[i], v);
    }
    int rc = show_list(c, path.data, &q);
    buf_done(&path);
    return rc;
}

static bool has_name_part(json_t *items, const char *word)
{
    json_t *n;
    size_t i;
    json_array_foreach(items, i, n)
    {
        if (strstr(js_str(n, "name"), word) != NULL)
            return true;
    }
    return false;
}

// How many nodes have it in their names, and whether one is just so.
static int name_hits(struct cli *c, const char *word, bool *ret_part, bool *ret_whole)
{
    struct buf path = {0};
    json_t *items = NULL, *n;
    size_t i;

    *ret_part = *ret_whole = false;
    int rc = cli_fabric(c);
    if (rc != CLI_OK)
        return rc;
    buf_printf(&path, "%s/nodes", c->fabric);
    http_query(&path, "name", word);
    rc = cli_list(c, path.data, 0, &items);
    if (rc == CLI_OK) {
        *ret_part = has_name_part(items, word);
        json_array_foreach(items, i, n) *ret_whole |= strcmp(js_str(n, "name"), word) == 0;
    }
    json_decref(items);
    buf_done(&path);
    return rc;
}

int cmd_node(struct cli *c)
{
    const char *word = c->args.word[0];
    bool part, whole;
    json_t *node = NULL;

    if (c->args.num_words != 1 || !focus_is_word(word))
        return list_nodes(c, NULL, c->args.num_words > 0);
    int rc = name_hits(c, word, &part, &whole);
    if (rc != CLI_OK)
        return rc;
    if (part && !whole)
        return list_nodes(c, word, false);
    rc = cli_node(c, word, &node);
    if (rc == CLI_OK)
        rc = show_node(c, node);
    json_decref(node);
    return rc;
}

static int show_port(struct cli *c, json_t *ports, const char *node, long long num)
{
    json_t *p;
    size_t i;
    json_array_foreach(ports, i, p)
    {
        if (js_int(p, "num") == num) {
            out_object(&c->out, port_fields, p);
            return CLI_OK;
        }
    }
    return cli_fail(CLI_USAGE, node, "has no port %lld; see: weft port %s", num, node);
}

// Ports of a node, or of all of them by --focus.
static int list_ports(struct cli *c, json_t *node, long long num)
{
    struct query q = {.fields = port_fields, .focus = args_value(&c->args, "focus"), .tele = "counters"};
    struct buf path = {0}, tele = {0};
    json_t *ports = NULL;

    buf_printf(&path, "%s/ports", c->fabric);
    if (node != NULL) {
        http_query(&path, "node", js_str(node, "guid"));
        buf_puts(&tele, q.tele);
        http_query(&tele, "node", js_str(node, "guid"));
        q.tele = tele.data;
    }
    bool said;
    int rc = fetch(c, path.data, &q, &ports, &said);
    if (rc == CLI_OK && num >= 0)
        rc = show_port(c, ports, c->args.word[0], num);
    else if (rc == CLI_OK && !said)
        out_list(&c->out, node != NULL ? port_fields : all_port_fields, ports);
    json_decref(ports);
    buf_done(&path);
    buf_done(&tele);
    return rc;
}

int cmd_port(struct cli *c)
{
    json_t *node = NULL;
    long long num = -1;

    if (c->args.num_words > 1 && text_parse_count(c->args.word[1], 0, 254, &num) != 0)
        return cli_fail(CLI_USAGE, c->args.word[1], "not a port number, 0 to 254");
    if (c->args.num_words == 0 && args_value(&c->args, "focus") == NULL)
        return cli_fail(CLI_USAGE, NULL, "of which node? weft port NODE, or of all with --focus");
    int rc = c->args.num_words > 0 ? cli_node(c, c->args.word[0], &node) : cli_fabric(c);
    if (rc == CLI_OK)
        rc = list_ports(c, node, num);
    json_decref(node);
    return rc;
}

struct link_test {
    bool down;
    const char *guid; // NULL: of any node
};

static bool keep_link(json_t *l, void *arg)
{
    const struct link_test *t = arg;
    if (t->down && strcasecmp(js_str(l, "state"), "active") == 0)
        return false;
    return t->guid == NULL || strcmp(js_str(l, "a.guid"), t->guid) == 0 ||
           strcmp(js_str(l, "z.guid"), t->guid) == 0;
}

// A node's name; *ret NULL where it is a port's or a host's: those are a focus.
static int link_word(struct cli *c, const char *word, json_t **ret)
{
    unsigned port;
    long rail;
    if (called_split_port(word, &port) > 0 || called_split_rail(word, &rail) > 0)
        return CLI_OK;
    int rc = cli_fabric(c);
    if (rc == CLI_OK && tele_is_host(c, word))
        return CLI_OK;
    return rc == CLI_OK ? cli_node(c, word, ret) : rc;
}

int cmd_link(struct cli *c)
{
    struct link_test t = {.down = args_has(&c->args, "down")};
    struct query q = {.fields = link_fields, .keep = keep_link, .arg = &t, .tele = "health?all=1"};
    json_t *node = NULL;
    int rc = CLI_OK;

    if (c->args.num_words == 1 && focus_is_word(c->args.word[0])) {
        rc = link_word(c, c->args.word[0], &node);
        t.guid = node != NULL ? js_str(node, "guid") : NULL;
    }
    q.use_words = node == NULL;
    // Cables that are away are not among links.
    char *words = q.use_words ? tele_focus(c) : NULL;
    if (t.down || (words != NULL && strstr(words, "state") != NULL))
        q.also = "links?away=1";
    free(words);
    if (rc == CLI_OK)
        rc = show_list(c, "links", &q);
    json_decref(node);
    return rc;
}

int cli_show_list(struct cli *c, const char *below, const struct field *fields)
{
    struct query q = {.fields = fields};
    return show_list(c, below, &q);
}

int cmd_mad(struct cli *c)
{
    return cli_show_list(c, "mads", mad_fields);
}

int cmd_route_adaptive(struct cli *c)
{
    return cli_show_list(c, "adaptive-routing", adaptive_fields);
}
