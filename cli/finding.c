// SPDX-License-Identifier: Apache-2.0
// Findings. Where they are is said in words, "leaf-1[33] - spine-2[1]": a focus is compared here, with what
// is known of the nodes that are named there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/focus.h"
#include "cli/tele.h"
#include "lib/called.h"
#include "lib/err.h"
#include "lib/guid.h"
#include "lib/word.h"
#include "lib/xalloc.h"

#define FINDING_FIELDS                                                                                       \
    {.key = "severity", .title = "SEVERITY", .flags = FIELD_STATE}, {.key = "code", .title = "CODE"},        \
        {.key = "where", .title = "WHERE", .flags = FIELD_SHRINK},                                           \
        {.key = "count", .title = "COUNT", .kind = FIELD_COUNT},                                             \
        {.key = "text", .title = "TEXT", .flags = FIELD_SHRINK},
// What a focus knows besides, of a node that is named.
#define END_FIELDS                                                                                           \
    {.key = "node", .path = "end.name"}, {.key = "name", .path = "end.name"},                                \
        {.key = "guid", .path = "end.guid"}, {.key = "port", .path = "end.port", .kind = FIELD_NUMBER},      \
        {.key = "type", .path = "end.type"}, {.key = "role", .path = "end.role"},                            \
        {.key = "rail", .path = "end.rail", .kind = FIELD_NUMBER},                                           \
        {.key = "su", .path = "end.su", .kind = FIELD_NUMBER},                                               \
        {.key = "tier", .path = "end.tier", .kind = FIELD_NUMBER},

static const struct field finding_fields[] = {FINDING_FIELDS{0}},
                          finding_focus[] = {FINDING_FIELDS END_FIELDS{0}};

const struct field *finding_focus_fields(void)
{
    return finding_focus;
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

static json_t *end_of(json_t *by, const char *node, json_t *port)
{
    json_t *n = json_object_get(by, node);
    json_t *end = n != NULL ? json_copy(n) : json_pack("{s:s, s:s}", "guid", node, "name", node);
    if (port != NULL)
        json_object_set(end, "port", port);
    return end;
}

// Those that stand in its "where": "leaf-1[33] - spine-2[1]".
static json_t *ends_of(json_t *by, json_t *item)
{
    json_t *ends = json_array();
    for (const char *p = js_str(item, "where"); *p != 0;) {
        const char *gap = strstr(p, " - ");
        char *word = xasprintf("%.*s", (int)(gap != NULL ? gap - p : (ptrdiff_t)strlen(p)), p);
        unsigned port = 0;
        size_t n = called_split_port(word, &port);
        if (n > 0 && json_object_get(by, word) == NULL)
            word[n] = 0;
        json_t *num = n > 0 ? json_integer(port) : NULL;
        json_array_append_new(ends, end_of(by, word, num));
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

static bool passes(const struct focus *f, json_t *by, json_t *item)
{
    json_t *ends = ends_of(by, item), *e;
    size_t i;
    bool hit = false;
    if (json_array_size(ends) == 0)
        json_array_append_new(ends, json_object());
    json_array_foreach(ends, i, e)
    {
        json_object_set(item, "end", e);
        hit = hit || focus_has(f, finding_focus, item, is_called);
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

// What weftd finds. A finding that is gone is none, not an unknown name.
static const char codes[] =
    "adaptive-not-kept adaptive-refused alias-ignored bad-line bad-node-info bad-port bad-record "
    "blueprint-growth blueprint-missing blueprint-moved blueprint-replaced command-ignored "
    "drained drained-away drained-in-use duplicate-guid duplicate-lid duplicate-link "
    "duplicate-port duplicate-port-guid duplicate-record few-lanes foreign-pkeys guid-mismatch "
    "include-failed include-refused lanes-not-kept lid-conflict lid-disagrees lid-not-unicast "
    "lid-unset lids-exhausted lids-reclaimed m-key no-description no-speed node-without-record "
    "one-sided-link peer-silent port-after-record port-info-silent rail-miscabled repeated-name "
    "routes-incomplete second-master self-link separate-part set-failed set-ignored su-miscabled "
    "switch-info-silent table-too-small too-far too-large too-many-nodes unconnected-node "
    "unknown-line unknown-speed virtual-ports xdr-planes";

static bool is_code(const char *word)
{
    char code[40];
    for (const char *p = codes; *p != 0; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        memcpy(code, p, n < sizeof(code) ? n : 0);
        code[n < sizeof(code) ? n : 0] = 0;
        if (word_glob(word, code))
            return true;
        p += n;
    }
    return false;
}

// A bare name that is neither a node's nor an item's.
static int check_names(const struct focus *f, json_t *nodes, json_t *by, json_t *items)
{
    const char *word;
    json_t *n;
    size_t k;
    for (unsigned i = 0; (word = focus_bare(f, i)) != NULL; i++) {
        bool any = json_object_get(by, word) != NULL || is_code(word);
        json_array_foreach(nodes, k, n) any = any || node_called(n, word);
        json_array_foreach(items, k, n) any = any || is_called(n, word);
        if (!any)
            return cli_fail(CLI_USAGE, word, "no node, host or port is called so");
    }
    return CLI_OK;
}

// Leaves out what the focus does not take. What is not CLI_OK was said.
static int take(struct cli *c, const struct focus *f, json_t **items)
{
    json_t *kept = json_array(), *item, *nodes = all_nodes(c), *by = index_of(nodes);
    size_t i;
    int rc = check_names(f, nodes, by, *items);
    json_array_foreach(*items, i, item)
    {
        if (rc == CLI_OK && passes(f, by, item))
            json_array_append(kept, item);
    }
    json_decref(nodes);
    json_decref(by);
    json_decref(*items);
    *items = kept;
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

// Those of that rank at least. limit 0: all.
static json_t *worst_first(json_t *items, int least, long long limit)
{
    json_t *sorted = json_array(), *f;
    size_t i;
    for (int r = 0; r <= least; r++)
        json_array_foreach(items, i, f)
        {
            if (rank(js_str(f, "severity")) == r)
                json_array_append(sorted, f);
        }
    while (limit > 0 && json_array_size(sorted) > (size_t)limit)
        json_array_remove(sorted, json_array_size(sorted) - 1);
    json_decref(items);
    return sorted;
}

static int read_focus(struct cli *c, char **ret_text, struct focus **ret)
{
    struct err e = {0};
    *ret_text = c->args.num_words > 0 ? tele_focus(c) : NULL;
    *ret = *ret_text != NULL ? focus_of(*ret_text, finding_focus, &e) : NULL;
    if (*ret_text == NULL || *ret != NULL)
        return CLI_OK;
    cli_complain(&e);
    return CLI_USAGE;
}

// That there is nothing of what was asked for; false: it is an empty table.
static bool say_empty(struct cli *c, const char *focus, size_t hits, size_t all)
{
    if (hits == 0)
        tele_nothing(c, focus, (long long)all, "other", "others");
    else
        tele_none_such(c, focus, (long long)hits);
    return c->out.format == OUT_TABLE;
}

int cmd_finding(struct cli *c)
{
    const char *severity = args_value(&c->args, "severity");
    struct buf path = {0};
    json_t *items = NULL;
    char *text = NULL;
    struct focus *f = NULL;
    long long limit = 0;

    int rc = cli_number(c, "limit", 1, 100000000, &limit);
    rc = rc == CLI_OK ? cli_fabric(c) : rc;
    rc = rc == CLI_OK ? read_focus(c, &text, &f) : rc;
    buf_printf(&path, "%s/findings", rc == CLI_OK ? c->fabric : "");
    rc = rc == CLI_OK ? cli_list(c, path.data, 0, &items) : rc;
    size_t all = json_array_size(items);
    if (rc == CLI_OK && f != NULL)
        rc = take(c, f, &items);
    if (rc == CLI_OK) {
        size_t hits = json_array_size(items);
        items = worst_first(items, severity ? rank(severity) : 2, limit);
        bool said = text != NULL && json_array_size(items) == 0 && say_empty(c, text, hits, all);
        if (!said)
            out_list(&c->out, finding_fields, items);
        if (rank(js_str(json_array_get(items, 0), "severity")) == 0)
            rc = CLI_FINDINGS;
    }
    json_decref(items);
    focus_free(f);
    free(text);
    buf_done(&path);
    return rc;
}
