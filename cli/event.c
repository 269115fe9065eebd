// SPDX-License-Identifier: Apache-2.0
// weft event: what happened, and what happens.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/text.h"
#include "lib/when.h"

#define LAST_DEFAULT 100
#define FOLLOW_LAST 10
#define RECONNECT_SECONDS 60

static const struct field event_fields[] = {
    {.key = "id", .title = "ID", .kind = FIELD_NUMBER},
    {.key = "time", .title = "TIME                       ", .kind = FIELD_TIME_MS},
    {.key = "severity", .title = "SEVERITY", .flags = FIELD_STATE},
    {.key = "kind", .title = "KIND          ", .flags = FIELD_SHRINK},
    {.key = "subject", .title = "SUBJECT         ", .flags = FIELD_SHRINK},
    {.key = "text", .title = "TEXT", .flags = FIELD_SHRINK},
    {.key = "fabric", .flags = FIELD_WIDE},
    {.key = "data", .flags = FIELD_WIDE},
    {0},
};

struct follow {
    struct cli *c;
    long long limit, shown;  // limit 0: none
    unsigned long long last; // id
    const char *kind, *fabric;
    int64_t since_ns;
    int rc;
};

struct since {
    long long id; // events above it
    int64_t ns;   // events since then, 0: any
    bool given;
};

static int parse_since(struct cli *c, struct since *ret)
{
    const char *s = args_value(&c->args, "since");
    int64_t seconds;

    *ret = (struct since){0};
    if (s == NULL)
        return CLI_OK;
    ret->given = true;
    if (text_parse_count(s, 0, INT64_MAX, &ret->id) == 0 || when_parse(s, &ret->ns) == 0)
        return CLI_OK;
    if (when_parse_age(s, &seconds) == 0) {
        ret->ns = wall_now_ns() - seconds * MONO_S;
        return CLI_OK;
    }
    return cli_fail(CLI_USAGE, "--since",
                    "\"%s\" is no event id, time (2026-01-31T10:20:30Z) nor age (90s, 10m, 2h, 3d)", s);
}

static void add_filters(struct cli *c, struct buf *path)
{
    const char *kind = args_value(&c->args, "kind"), *fabric = args_value(&c->args, "fabric");
    if (kind != NULL)
        http_query(path, "kind", kind);
    if (fabric != NULL)
        http_query(path, "fabric", fabric);
}

static json_t *reversed(json_t *items)
{
    json_t *r = json_array();
    for (size_t i = json_array_size(items); i-- > 0;)
        json_array_append(r, json_array_get(items, i));
    json_decref(items);
    return r;
}

static bool is_since(json_t *e, int64_t ns)
{
    int64_t t;
    return ns == 0 || when_parse(js_str(e, "time"), &t) != 0 || t >= ns;
}

static json_t *only_since(json_t *items, int64_t ns)
{
    json_t *kept = json_array(), *e;
    size_t i;
    json_array_foreach(items, i, e)
    {
        if (is_since(e, ns))
            json_array_append(kept, e);
    }
    json_decref(items);
    return kept;
}

// Newest first, page by page, until the time is passed: the newest `limit` since then, oldest first.
static int newest(struct cli *c, long long limit, int64_t ns, json_t **ret)
{
    struct buf path = {0};
    json_t *items = NULL;
    int rc = CLI_OK;

    buf_puts(&path, "/api/v1/events");
    http_query(&path, "newest", "1");
    add_filters(c, &path);
    for (long long n = limit > 0 ? limit : 1000;; n *= 10) {
        rc = cli_list(c, path.data, n, &items);
        bool end = rc != CLI_OK || limit > 0 || (long long)json_array_size(items) < n ||
                   !is_since(json_array_get(items, json_array_size(items) - 1), ns);
        if (end)
            break;
        json_decref(items);
    }
    buf_done(&path);
    if (rc == CLI_OK)
        *ret = only_since(reversed(items), ns);
    return rc;
}

static int after(struct cli *c, long long id, long long limit, json_t **ret)
{
    struct buf path = {0};
    char text[24];

    snprintf(text, sizeof(text), "%lld", id);
    buf_puts(&path, "/api/v1/events");
    http_query(&path, "after", text);
    add_filters(c, &path);
    int rc = cli_list(c, path.data, limit, ret);
    buf_done(&path);
    return rc;
}

static bool on_event(void *arg, const char *id, const char *data)
{
    struct follow *f = arg;
    json_error_t je;
    json_t *e = json_loads(data, 0, &je);
    unsigned long long n = strtoull(id, NULL, 10);

    if (n > f->last)
        f->last = n;
    bool wanted = json_is_object(e) && (f->kind == NULL || strcmp(js_str(e, "kind"), f->kind) == 0) &&
                  (f->fabric == NULL || strcmp(js_str(e, "fabric"), f->fabric) == 0) &&
                  is_since(e, f->since_ns);
    if (wanted) {
        out_record(&f->c->out, event_fields, e, f->shown == 0);
        f->shown++;
        f->rc = cli_flush(f->c);
    }
    json_decref(e);
    return f->rc == CLI_OK && !cli_interrupted && (f->limit == 0 || f->shown < f->limit);
}

// Takes the stream up where it broke off, for a minute.
static int follow(struct cli *c, struct follow *f)
{
    struct buf path = {0};
    int64_t lost = 0;
    struct err e = {0};
    enum cli_exit x;

    buf_puts(&path, "/api/v1/events/stream");
    add_filters(c, &path);
    for (;;) {
        unsigned long long before = f->last;
        x = http_stream(c->http, path.data, f->last, on_event, f, &e);
        if (f->rc != CLI_OK || cli_interrupted || (f->limit > 0 && f->shown >= f->limit))
            break;
        if (x != CLI_OK && x != CLI_UNREACHABLE)
            break;
        if (f->last > before || x == CLI_OK || lost == 0)
            lost = mono_now().ns;
        if (mono_now().ns - lost > RECONNECT_SECONDS * MONO_S)
            break;
        cli_progress(c, "the stream broke off; trying again");
        if (!cli_sleep(1))
            break;
    }
    cli_progress_end(c);
    buf_done(&path);
    if (f->rc != CLI_OK || cli_interrupted)
        return f->rc;
    if (x != CLI_OK)
        cli_complain(&e);
    return x;
}

static int show_and_follow(struct cli *c, json_t *items, const struct since *s, long long limit)
{
    struct follow f = {.c = c,
                       .limit = limit,
                       .last = (unsigned long long)s->id,
                       .kind = args_value(&c->args, "kind"),
                       .fabric = args_value(&c->args, "fabric"),
                       .since_ns = s->ns};
    json_t *e;
    size_t i;

    json_array_foreach(items, i, e)
    {
        out_record(&c->out, event_fields, e, f.shown == 0);
        f.shown++;
        f.last = (unsigned long long)js_int(e, "id");
    }
    int rc = cli_flush(c);
    return rc != CLI_OK || (limit > 0 && f.shown >= limit) ? rc : follow(c, &f);
}

static void show(struct cli *c, json_t *items)
{
    json_t *e;
    size_t i;
    if (c->out.format != OUT_JSON) {
        out_list(&c->out, event_fields, items);
        return;
    }
    json_array_foreach(items, i, e) out_record(&c->out, event_fields, e, i == 0);
}

int cmd_event(struct cli *c)
{
    bool following = args_has(&c->args, "follow");
    long long limit = 0;
    struct since s;
    json_t *items = NULL;

    int rc = cli_number(c, "limit", 1, 100000000, &limit);
    if (rc == CLI_OK)
        rc = parse_since(c, &s);
    if (rc == CLI_OK && args_has(&c->args, "fabric"))
        rc = cli_fabric(c);
    if (rc != CLI_OK)
        return rc;
    long long most = limit > 0 || s.given ? limit : following ? FOLLOW_LAST : LAST_DEFAULT;
    if (s.given && s.ns == 0)
        rc = after(c, s.id, most, &items);
    else
        rc = newest(c, most, s.ns, &items);
    if (rc != CLI_OK)
        return rc;
    if (following)
        rc = show_and_follow(c, items, &s, limit);
    else
        show(c, items);
    json_decref(items);
    return rc;
}
