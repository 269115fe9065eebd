// SPDX-License-Identifier: Apache-2.0
// What commands ask weftd: fabrics, whole lists, the node that a word names.
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/text.h"
#include "lib/guid.h"
#include "lib/xalloc.h"

#define PAGE 1000
#define CANDIDATES_MAX 12
#define LID_MAX 0xbfff
#define IDLE_MAX 2000 // pages in a row without an item

static enum cli_exit get(struct cli *c, const char *path, json_t **ret, struct err *e)
{
    struct http_reply r;
    enum cli_exit x = http_call(c->http, "GET", path, NULL, c->timeout, &r, e);
    if (x == CLI_OK && r.json == NULL) {
        err_set(e, -EPROTO, path, "weftd's answer is not JSON; are weft and weftd of one version?");
        x = CLI_UNREACHABLE;
    }
    if (x == CLI_OK)
        *ret = json_incref(r.json);
    http_reply_done(&r);
    return x;
}

int cli_get(struct cli *c, const char *path, json_t **ret)
{
    struct err e = {0};
    enum cli_exit x = get(c, path, ret, &e);
    if (x != CLI_OK)
        cli_complain(&e);
    return x;
}

int cli_post(struct cli *c, const char *path, json_t *body, json_t **ret)
{
    return cli_send(c, "POST", path, body, ret);
}

int cli_send(struct cli *c, const char *method, const char *path, json_t *body, json_t **ret)
{
    struct http_reply r;
    struct err e = {0};
    enum cli_exit x = http_call(c->http, method, path, body, c->timeout, &r, &e);

    json_decref(body);
    if (x != CLI_OK)
        cli_complain(&e);
    else if (ret != NULL)
        *ret = r.json ? json_incref(r.json) : json_object();
    if (x == CLI_OK && ret != NULL && r.location[0] != 0 && json_is_object(*ret))
        json_object_set_new(*ret, "location", json_string(r.location));
    http_reply_done(&r);
    return x;
}

static void add_name(struct buf *list, json_t *fabric)
{
    if (list->len < 200)
        buf_printf(list, "%s%.60s", list->len ? ", " : "", js_str(fabric, "name"));
}

// The fabric of that name, or the only one; NULL and *list with the names.
static json_t *choose(json_t *items, const char *name, struct buf *list)
{
    json_t *item, *hit = NULL;
    size_t i;
    json_array_foreach(items, i, item)
    {
        add_name(list, item);
        if (name == NULL ? json_array_size(items) == 1 : strcmp(js_str(item, "name"), name) == 0)
            hit = item;
    }
    return hit;
}

int cli_fabric(struct cli *c)
{
    const char *name = args_value(&c->args, "fabric");
    struct buf list = {0}, path = {0};
    json_t *doc = NULL;

    if (c->fabric != NULL)
        return CLI_OK;
    int rc = cli_get(c, "/api/v1/fabrics", &doc);
    if (rc != CLI_OK)
        return rc;
    json_t *hit = choose(json_object_get(doc, "items"), name, &list);
    if (hit == NULL && name != NULL)
        rc = cli_fail(CLI_USAGE, name, "no such fabric; there are: %s", list.len ? list.data : "none");
    else if (hit == NULL && list.len == 0)
        rc = cli_fail(CLI_UNREACHABLE, http_socket(c->http),
                      "weftd manages no fabric; see /etc/weft/weft.yaml");
    else if (hit == NULL)
        rc = cli_fail(CLI_USAGE, NULL, "there are several fabrics; name one with --fabric: %s", list.data);
    if (hit != NULL) {
        buf_puts(&path, "/api/v1/fabrics");
        http_segment(&path, js_str(hit, "name"));
        c->fabric = buf_take(&path);
        c->fabric_name = xstrdup(js_str(hit, "name"));
    }
    buf_done(&list);
    json_decref(doc);
    return rc;
}

struct list {
    json_t *items;
    long long limit;
    char *cursor;  // of the next page
    unsigned idle; // pages that brought nothing
};

static char *cursor_of(json_t *next)
{
    if (json_is_string(next))
        return xstrdup(json_string_value(next));
    return json_is_integer(next) ? xasprintf("%lld", (long long)json_integer_value(next)) : NULL;
}

static enum cli_exit list_page(struct cli *c, struct list *l, const char *path, struct err *e)
{
    struct buf page = {0};
    char n[24];
    json_t *doc = NULL;
    size_t have = json_array_size(l->items);
    long long left = l->limit > 0 ? l->limit - (long long)have : PAGE;

    snprintf(n, sizeof(n), "%lld", left < PAGE ? left : PAGE);
    buf_puts(&page, path);
    http_query(&page, "limit", n);
    if (l->cursor != NULL)
        http_query(&page, "cursor", l->cursor);
    enum cli_exit x = get(c, page.data, &doc, e);
    buf_done(&page);
    char *before = l->cursor;
    l->cursor = NULL;
    if (x == CLI_OK) {
        json_array_extend(l->items, json_object_get(doc, "items"));
        // A page may bring nothing where the daemon looks for a few among many; but no walk is endless.
        size_t now = json_array_size(l->items);
        l->idle = now > have ? 0 : l->idle + 1;
        if (l->idle <= IDLE_MAX && (l->limit == 0 || (long long)now < l->limit))
            l->cursor = cursor_of(json_object_get(doc, "next"));
        if (l->cursor != NULL && before != NULL && strcmp(l->cursor, before) == 0) {
            free(l->cursor);
            l->cursor = NULL;
        }
        json_decref(doc);
    }
    free(before);
    return x;
}

// A cursor outlives changes of the fabric, so a walk need not begin again.
int cli_list(struct cli *c, const char *path, long long limit, json_t **ret_items)
{
    struct list l = {.items = json_array(), .limit = limit};
    struct err e = {0};
    enum cli_exit x;

    do {
        x = list_page(c, &l, path, &e);
        if (l.cursor != NULL)
            cli_progress(c, "%zu read", json_array_size(l.items));
    } while (x == CLI_OK && l.cursor != NULL);
    cli_progress_end(c);
    if (x != CLI_OK && (json_array_size(l.items) == 0 || x == CLI_INTERRUPTED)) {
        cli_complain(&e);
        json_decref(l.items);
        return x;
    }
    if (x != CLI_OK) {
        c->partial = true;
        cli_fail(CLI_PARTIAL, NULL, "only the first %zu could be read: %s; try again",
                 json_array_size(l.items), e.text);
    }
    *ret_items = l.items;
    return CLI_OK;
}

static int nodes_named(struct cli *c, const char *text, json_t **ret_items)
{
    struct buf path = {0};
    buf_printf(&path, "%s/nodes", c->fabric);
    if (text != NULL)
        http_query(&path, "name", text);
    int rc = cli_list(c, path.data, 0, ret_items);
    buf_done(&path);
    return rc;
}

static int node_by_guid(struct cli *c, uint64_t guid, json_t **ret)
{
    struct buf path = {0};
    struct err e = {0};

    buf_printf(&path, "%s/nodes/" GUID_FMT, c->fabric, GUID_ARG(guid));
    enum cli_exit x = get(c, path.data, ret, &e);
    if (x == CLI_USAGE)
        cli_fail(x, NULL, "no node has the GUID " GUID_FMT "; see: weft node", GUID_ARG(guid));
    else if (x != CLI_OK)
        cli_complain(&e);
    buf_done(&path);
    return x;
}

struct test {
    const char *name, *host;
    long long lid, rail;
};

// "gpu-0001 mlx5_3" and "gpu-0001/3" are of the host gpu-0001, "gpu-00012" is not.
static bool is_host(const char *name, const char *host)
{
    size_t n = strlen(host);
    return strncmp(name, host, n) == 0 && !isalnum((unsigned char)name[n]);
}

static bool passes(const struct test *t, json_t *n)
{
    if (t->name != NULL)
        return strcmp(js_str(n, "name"), t->name) == 0;
    if (t->host != NULL)
        return json_is_integer(json_object_get(n, "rail")) && js_int(n, "rail") == t->rail &&
               is_host(js_str(n, "name"), t->host);
    return js_int(n, "lid") == t->lid;
}

static json_t *select_nodes(json_t *items, const struct test *t)
{
    json_t *hits = json_array(), *n;
    size_t i;
    json_array_foreach(items, i, n)
    {
        if (passes(t, n))
            json_array_append(hits, n);
    }
    return hits;
}

static int candidates(const char *word, json_t *items, bool many)
{
    struct buf list = {0};
    size_t i;
    json_t *n;

    json_array_foreach(items, i, n)
    {
        if (i == CANDIDATES_MAX)
            buf_printf(&list, ", and more");
        if (i >= CANDIDATES_MAX)
            break;
        buf_printf(&list, "%s%s (%s)", i ? ", " : "", js_str(n, "name"), js_str(n, "guid"));
    }
    if (list.len == 0)
        cli_fail(CLI_USAGE, word, "no such node; see: weft node; what is away: weft blueprint show");
    else if (many)
        cli_fail(CLI_USAGE, word, "several nodes have this name; give a GUID: %s", list.data);
    else
        cli_fail(CLI_USAGE, word, "no node has just this name; did you mean: %s", list.data);
    buf_done(&list);
    return CLI_USAGE;
}

// One of hits (taken), or none: 0 hits is CLI_OK with *ret NULL.
static int single(const char *word, json_t *hits, json_t **ret)
{
    int rc = CLI_OK;
    *ret = NULL;
    if (json_array_size(hits) > 1)
        rc = candidates(word, hits, true);
    else if (json_array_size(hits) == 1)
        *ret = json_incref(json_array_get(hits, 0));
    json_decref(hits);
    return rc;
}

static bool host_rail(const char *word, struct test *t, char **host)
{
    const char *colon = strrchr(word, ':');
    if (colon == NULL || text_parse_count(colon + 1, 0, 255, &t->rail) != 0)
        return false;
    *host = xasprintf("%.*s", (int)(colon - word), word);
    t->host = *host;
    return true;
}

// Of a host that has others: CLI_USAGE and said why; CLI_OK when there is no such host.
static int no_rail(const char *word, json_t *items, const struct test *t)
{
    struct buf rails = {0};
    bool seen[256] = {false};
    size_t i;
    json_t *n;

    json_array_foreach(items, i, n)
    {
        json_t *rail = json_object_get(n, "rail");
        if (json_is_integer(rail) && is_host(js_str(n, "name"), t->host))
            seen[json_integer_value(rail) & 255] = true;
    }
    for (unsigned r = 0; r < 256; r++)
        if (seen[r])
            buf_printf(&rails, "%s%u", rails.len > 0 ? ", " : "", r);
    int rc = rails.len == 0 ? CLI_OK : CLI_USAGE;
    if (rc != CLI_OK)
        cli_fail(rc, word,
                 "no adapter of %s on rail %lld is seen: there is none, or it or its leaf is away; seen are "
                 "rails %s; see: weft blueprint show",
                 t->host, t->rail, rails.data);
    buf_done(&rails);
    return rc;
}

// By LID or HOST:RAIL; *ret NULL where the word is neither.
static int node_by_number(struct cli *c, const char *word, json_t **ret)
{
    struct test t = {0};
    char *host = NULL, *end;
    json_t *items;

    *ret = NULL;
    t.lid = strtoll(word, &end, 0);
    bool is_lid = *word >= '0' && *word <= '9' && *end == 0 && t.lid > 0 && t.lid <= LID_MAX;
    if (!is_lid && !host_rail(word, &t, &host))
        return CLI_OK;
    int rc = nodes_named(c, NULL, &items);
    if (rc == CLI_OK) {
        rc = single(word, select_nodes(items, &t), ret);
        if (rc == CLI_OK && *ret == NULL && host != NULL)
            rc = no_rail(word, items, &t);
        json_decref(items);
    }
    free(host);
    return rc;
}

static bool is_guid(const char *word, uint64_t *ret)
{
    return guid_parse(word, ret) == 0 && *ret > LID_MAX;
}

int cli_node(struct cli *c, const char *word, json_t **ret)
{
    struct test t = {.name = word};
    uint64_t guid;
    json_t *items, *hit = NULL;

    int rc = cli_fabric(c);
    if (rc == CLI_OK && word[0] == '0' && (word[1] == 'x' || word[1] == 'X') && is_guid(word, &guid))
        return node_by_guid(c, guid, ret);
    if (rc == CLI_OK)
        rc = nodes_named(c, word, &items);
    if (rc != CLI_OK)
        return rc;
    rc = single(word, select_nodes(items, &t), &hit);
    if (rc == CLI_OK && hit == NULL && is_guid(word, &guid))
        rc = node_by_guid(c, guid, &hit);
    if (rc == CLI_OK && hit == NULL)
        rc = node_by_number(c, word, &hit);
    if (rc == CLI_OK && hit == NULL)
        rc = candidates(word, items, false);
    json_decref(items);
    if (rc == CLI_OK)
        *ret = hit;
    return rc;
}
