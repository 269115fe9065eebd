// SPDX-License-Identifier: Apache-2.0
// Lists: nodes, ports, links, findings, counters of management packets.
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
#define FINDING_FIELDS                                                                                       \
    {.key = "severity", .title = "SEVERITY", .flags = FIELD_STATE}, {.key = "code", .title = "CODE"},        \
        {.key = "where", .title = "WHERE", .flags = FIELD_SHRINK},                                           \
        {.key = "count", .title = "COUNT", .kind = FIELD_COUNT},                                             \
        {.key = "text", .title = "TEXT", .flags = FIELD_SHRINK},
// What a focus knows besides, of the node at either end.
#define END_FIELDS                                                                                           \
    {.key = "node", .path = "end.name"}, {.key = "name", .path = "end.name"},                                \
        {.key = "guid", .path = "end.guid"}, {.key = "port", .path = "end.port", .kind = FIELD_NUMBER},      \
        {.key = "type", .path = "end.type"}, {.key = "role", .path = "end.role"},                            \
        {.key = "rail", .path = "end.rail", .kind = FIELD_NUMBER},                                           \
        {.key = "su", .path = "end.su", .kind = FIELD_NUMBER},                                               \
        {.key = "tier", .path = "end.tier", .kind = FIELD_NUMBER},

static const struct field all_port_fields[] = {ALL_PORT_FIELDS{0}},
                          port_focus[] = {ALL_PORT_FIELDS END_FIELDS{0}}, link_fields[] = {LINK_FIELDS{0}},
                          link_focus[] = {LINK_FIELDS END_FIELDS{0}}, finding_fields[] = {FINDING_FIELDS{0}},
                          finding_focus[] = {FINDING_FIELDS END_FIELDS{0}};

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

const struct field *node_focus_fields(void)
{
    return node_fields;
}

const struct field *port_focus_fields(void)
{
    return port_focus;
}

const struct field *link_focus_fields(void)
{
    return link_focus;
}

const struct field *finding_focus_fields(void)
{
    return finding_focus;
}

struct query {
    const char *what; // "nodes"
    const struct field *fields;
    const char *names;        // fields that a bare name in a focus means
    const struct field *ends; // fields of a focus where items have ends, or a "where"; NULL: they have none
    const char *also;         // another list below the fabric, of the same form; NULL
    bool use_words;           // the words are a focus
    const char *focus;        // or this is; NULL: none
    const char *tele;         // list below the fabric that tells of counters; NULL: none
    bool (*keep)(json_t *item, void *arg);
    void *arg;
};

static void cut_list(json_t *items, long long limit)
{
    while (limit > 0 && json_array_size(items) > (size_t)limit)
        json_array_remove(items, json_array_size(items) - 1);
}

// --- by the node at either end ---

static json_t *all_nodes(struct cli *c)
{
    struct buf path = {0};
    json_t *items = NULL;
    buf_printf(&path, "%s/nodes", c->fabric);
    if (cli_list(c, path.data, 0, &items) != CLI_OK)
        items = json_array();
    buf_done(&path);
    return items;
}

// By GUID and by name.
static json_t *index_of(json_t *nodes)
{
    json_t *by = json_object(), *n;
    size_t i;
    json_array_foreach(nodes, i, n)
    {
        json_object_set(by, js_str(n, "guid"), n);
        json_object_set(by, js_str(n, "name"), n);
    }
    return by;
}

static json_t *end_of(json_t *by, const char *node, const char *name, json_t *port)
{
    json_t *n = json_object_get(by, node);
    json_t *end = n != NULL ? json_copy(n) : json_pack("{s:s, s:s}", "guid", node, "name", name);
    if (port != NULL)
        json_object_set(end, "port", port);
    return end;
}

// A link's ends, a port itself, or those that stand in a finding's "where": "leaf-1[33] - spine-2[1]".
static json_t *ends_of(json_t *by, json_t *item)
{
    static const char *const key[] = {"a", "z"};
    json_t *ends = json_array();
    for (size_t i = 0; i < 2; i++) {
        json_t *e = json_object_get(item, key[i]);
        if (json_is_object(e))
            json_array_append_new(
                ends, end_of(by, js_str(e, "guid"), js_str(e, "name"), json_object_get(e, "port")));
    }
    if (js_str(item, "node_guid")[0] != 0)
        json_array_append_new(ends, end_of(by, js_str(item, "node_guid"), js_str(item, "node_name"),
                                           json_object_get(item, "num")));
    for (const char *p = js_str(item, "where"); *p != 0;) {
        const char *gap = strstr(p, " - ");
        char *word = xasprintf("%.*s", (int)(gap != NULL ? gap - p : (ptrdiff_t)strlen(p)), p);
        unsigned port = 0;
        size_t n = called_split_port(word, &port);
        if (n > 0 && json_object_get(by, word) == NULL)
            word[n] = 0;
        json_t *num = n > 0 ? json_integer(port) : NULL;
        json_array_append_new(ends, end_of(by, word, word, num));
        json_decref(num);
        free(word);
        p += gap != NULL ? (size_t)(gap - p) + 3 : strlen(p);
    }
    return ends;
}

static struct called called_of(json_t *end)
{
    struct called x = {.name = js_str(end, "name"), .port = -1, .rail = -1};
    guid_parse(js_str(end, "guid"), &x.guid);
    if (json_is_integer(json_object_get(end, "port")))
        x.port = js_int(end, "port");
    if (json_is_integer(json_object_get(end, "rail")))
        x.rail = js_int(end, "rail");
    return x;
}

static bool is_called(json_t *item, const char *word)
{
    struct called x = called_of(json_object_get(item, "end"));
    return called_port(&x, word) || word_glob(word, js_str(item, "code")) ||
           (js_str(item, "where")[0] != 0 && word_glob(word, js_str(item, "where")));
}

static bool passes_ends(const struct query *q, const struct focus *f, json_t *by, json_t *item)
{
    json_t *ends = ends_of(by, item), *e;
    size_t i;
    bool hit = false;
    if (json_array_size(ends) == 0)
        json_array_append_new(ends, json_object());
    json_array_foreach(ends, i, e)
    {
        json_object_set(item, "end", e);
        hit = hit || focus_has_named(f, q->ends, item, is_called);
    }
    json_object_del(item, "end");
    json_decref(ends);
    return hit;
}

static bool node_called(json_t *n, const char *word)
{
    struct called x = called_of(n);
    char node[256];
    unsigned port;
    if (called_node(&x, word))
        return true;
    size_t len = called_split_port(word, &port);
    if (len == 0 || len >= sizeof(node) || port < 1 || port > js_int(n, "num_ports"))
        return false;
    snprintf(node, sizeof(node), "%.*s", (int)len, word);
    return called_node(&x, node);
}

// Of a cable that is away: its ends may be none of the nodes.
static bool has_end(json_t *item, const char *end, const char *word)
{
    struct called x = called_of(json_object_get(item, end));
    return x.guid != 0 && called_port(&x, word);
}

// What weftd finds. A finding that is gone is none, not an unknown name.
static const char codes[] =
    "adaptive-not-kept adaptive-refused alias-ignored bad-line bad-node-info bad-port bad-record "
    "blueprint-growth blueprint-missing blueprint-moved blueprint-replaced command-ignored drained "
    "drained-away drained-in-use duplicate-guid duplicate-lid duplicate-link duplicate-port "
    "duplicate-port-guid duplicate-record few-lanes foreign-pkeys guid-mismatch include-failed "
    "include-refused lanes-not-kept lid-conflict lid-disagrees lid-not-unicast lid-unset "
    "lids-exhausted lids-reclaimed m-key no-description no-speed node-without-record one-sided-link "
    "peer-silent port-after-record port-info-silent rail-miscabled repeated-name routes-incomplete "
    "second-master self-link separate-part set-failed set-ignored su-miscabled switch-info-silent "
    "table-too-small too-far too-large too-many-nodes unconnected-node unknown-line unknown-speed "
    "virtual-ports xdr-planes";

static bool is_code(const char *word)
{
    char code[40];
    for (const char *p = codes; *p != 0; p += strcspn(p, " "), p += *p == ' ') {
        snprintf(code, sizeof(code), "%.*s", (int)strcspn(p, " "), p);
        if (word_glob(word, code))
            return true;
    }
    return false;
}

// A bare name that is neither a node's nor an item's.
static int check_names(const struct query *q, const struct focus *f, json_t *nodes, json_t *by, json_t *items)
{
    const char *word;
    json_t *n;
    size_t k;
    for (unsigned i = 0; (word = focus_bare(f, i)) != NULL; i++) {
        bool any = json_object_get(by, word) != NULL || (q->ends == finding_focus && is_code(word));
        json_array_foreach(nodes, k, n) any = any || node_called(n, word);
        json_array_foreach(items, k, n) any =
            any || is_called(n, word) || has_end(n, "a", word) || has_end(n, "z", word);
        if (!any)
            return cli_fail(CLI_USAGE, word, "no node, host or port is called so");
    }
    return CLI_OK;
}

// A list without what focus and keep() leave out. NULL: a name in the focus is none. *ret_hits: what the
// focus alone takes.
static json_t *filtered(struct cli *c, json_t *items, const struct query *q, const struct focus *f,
                        size_t *ret_hits)
{
    bool ends = f != NULL && q->ends != NULL;
    json_t *kept = json_array(), *item, *nodes = ends ? all_nodes(c) : NULL,
           *by = ends ? index_of(nodes) : NULL;
    size_t i;
    if (ends && check_names(q, f, nodes, by, items) != CLI_OK) {
        json_decref(kept);
        kept = NULL;
    }
    json_array_foreach(items, i, item)
    {
        bool hit = f == NULL || (ends ? passes_ends(q, f, by, item) : focus_has(f, q->fields, item));
        *ret_hits += hit;
        if (kept != NULL && hit && (q->keep == NULL || q->keep(item, q->arg)))
            json_array_append(kept, item);
    }
    json_decref(nodes);
    json_decref(by);
    json_decref(items);
    return kept;
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

// Whether somebody asks for a field that counters tell of.
static bool wants_tele(struct cli *c, const struct query *q, const char *focus)
{
    if (q->tele == NULL)
        return false;
    for (const struct field *f = q->fields; focus != NULL && f->key; f++)
        if (f->path != NULL && strncmp(f->path, "tele.", 5) == 0 && strstr(focus, f->key) != NULL)
            return true;
    return c->out.format != OUT_TABLE || q->focus != NULL;
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

static int append(struct cli *c, const char *below, json_t *items)
{
    struct buf path = {0};
    json_t *more = NULL;
    buf_printf(&path, "%s/%s", c->fabric, below);
    int rc = cli_list(c, path.data, 0, &more);
    json_array_extend(items, more);
    json_decref(more);
    buf_done(&path);
    return rc;
}

static int read_focus(struct cli *c, const struct query *q, char **ret_text, struct focus **ret)
{
    struct err e = {0};
    *ret = NULL;
    *ret_text = q->focus != NULL                        ? xstrdup(q->focus)
                : q->use_words && c->args.num_words > 0 ? tele_focus(c)
                                                        : NULL;
    if (*ret_text == NULL)
        return CLI_OK;
    *ret = focus_of(*ret_text, q->ends != NULL ? q->ends : q->fields, q->names, &e);
    if (*ret != NULL)
        return CLI_OK;
    cli_complain(&e);
    return CLI_USAGE;
}

// The list at path (below the fabric), filtered. --limit counts what is left. *ret_said: that nothing matches
// was said.
static int fetch(struct cli *c, const char *path, const struct query *q, json_t **ret, bool *ret_said)
{
    struct focus *f = NULL;
    char *text = NULL;
    long long limit = 0, before = 0;
    size_t hits = 0;
    json_t *items = NULL;

    *ret_said = false;
    int rc = cli_number(c, "limit", 1, 100000000, &limit);
    if (rc == CLI_OK)
        rc = read_focus(c, q, &text, &f);
    bool later = f != NULL || q->keep != NULL;
    if (rc == CLI_OK)
        rc = cli_list(c, path, later ? 0 : limit, &items);
    if (rc == CLI_OK && q->also != NULL)
        rc = append(c, q->also, items);
    if (rc == CLI_OK && wants_tele(c, q, text))
        add_tele(c, q, items);
    before = (long long)json_array_size(items);
    if (rc == CLI_OK && later) {
        items = filtered(c, items, q, f, &hits);
        rc = items == NULL ? CLI_USAGE : CLI_OK;
    }
    if (rc == CLI_OK) {
        cut_list(items, limit);
        *ret = items;
    }
    if (rc == CLI_OK && text != NULL && json_array_size(items) == 0) {
        if (hits == 0)
            tele_nothing(c, text, before, "other", "others");
        else
            tele_none_such(c, text, (long long)hits);
        *ret_said = c->out.format == OUT_TABLE;
    }
    free(text);
    focus_free(f);
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
    struct query q = {.fields = node_fields, .names = "name guid", .use_words = focus};
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
    struct query q = {.fields = port_fields,
                      .ends = port_focus,
                      .names = "node_name node_guid peer",
                      .focus = args_value(&c->args, "focus"),
                      .tele = "counters"};
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
    struct query q = {.fields = link_fields,
                      .ends = link_focus,
                      .names = "a z a_guid z_guid",
                      .keep = keep_link,
                      .arg = &t,
                      .tele = "health?all=1"};
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

static int rank(const char *severity)
{
    static const char *const word[] = {"error", "critical", "major", "warning", "minor"};
    for (size_t i = 0; i < sizeof(word) / sizeof(word[0]); i++)
        if (strcmp(severity, word[i]) == 0)
            return i < 3 ? 0 : 1;
    return 2;
}

static bool keep_finding(json_t *f, void *arg)
{
    return rank(js_str(f, "severity")) <= *(const int *)arg;
}

static json_t *worst_first(json_t *items)
{
    json_t *sorted = json_array(), *f;
    size_t i;
    for (int r = 0; r <= 2; r++)
        json_array_foreach(items, i, f)
        {
            if (rank(js_str(f, "severity")) == r)
                json_array_append(sorted, f);
        }
    json_decref(items);
    return sorted;
}

int cmd_finding(struct cli *c)
{
    const char *severity = args_value(&c->args, "severity");
    int least = severity ? rank(severity) : 2;
    struct query q = {.fields = finding_fields,
                      .ends = finding_focus,
                      .names = "where code",
                      .use_words = true,
                      .keep = keep_finding,
                      .arg = &least};
    struct buf path = {0};
    json_t *items = NULL;

    int rc = cli_fabric(c);
    if (rc != CLI_OK)
        return rc;
    buf_printf(&path, "%s/findings", c->fabric);
    bool said;
    rc = fetch(c, path.data, &q, &items, &said);
    if (rc == CLI_OK) {
        items = worst_first(items);
        if (!said)
            out_list(&c->out, finding_fields, items);
        if (rank(js_str(json_array_get(items, 0), "severity")) == 0)
            rc = CLI_FINDINGS;
    }
    json_decref(items);
    buf_done(&path);
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
