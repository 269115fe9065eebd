// SPDX-License-Identifier: Apache-2.0
// weft event: what happened, and what happens.
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/focus.h"
#include "cli/tele.h"
#include "cli/text.h"
#include "lib/called.h"
#include "lib/when.h"
#include "lib/word.h"
#include "lib/xalloc.h"

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

const struct field *event_focus_fields(void)
{
    return event_fields;
}

struct wanted {
    int64_t from_ns, to_ns; // 0: any
    struct focus *focus;    // NULL: any
};

struct follow {
    struct cli *c;
    long long limit, shown;  // limit 0: none
    unsigned long long last; // id
    const char *kind, *fabric;
    const struct wanted *wanted;
    int rc;
};

struct since {
    long long id; // events above it
    bool given, is_id;
};

// --- which are wanted ---

// Of a name: "leaf-1" is none of "leaf-1-2" nor of "old-leaf-1".
static bool in_name(const char *p)
{
    return isalnum((unsigned char)*p) || *p == '-' || *p == '_' ||
           (*p == '.' && isalnum((unsigned char)p[1]));
}

static bool speaks_of(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = text; n > 0 && (p = strstr(p, word)) != NULL; p++)
        if ((p == text || !in_name(p - 1)) && !in_name(p + n))
            return true;
    return false;
}

// "leaf-1[3]" and "leaf-1/3" are one port.
static bool is_about(json_t *e, const char *word)
{
    char other[256];
    unsigned port;
    const char *subject = js_str(e, "subject"), *text = js_str(e, "text");
    if (word_glob(word, subject) || speaks_of(subject, word) || speaks_of(text, word))
        return true;
    size_t n = called_split_port(word, &port);
    if (n == 0 || n > sizeof(other) - 8)
        return false;
    snprintf(other, sizeof(other), word[n] == '/' ? "%.*s[%u]" : "%.*s/%u", (int)n, word, port);
    return speaks_of(subject, other) || speaks_of(text, other);
}

static const char *field_name(const void *arg, unsigned i)
{
    (void)arg;
    return event_fields[i].key;
}

static const char *const severities[] = {"info",  "notice", "remote",   "warning", "error",
                                         "minor", "major",  "critical", NULL};

static void about(const void *arg, unsigned i, struct focus_about *ret)
{
    (void)arg;
    if (event_fields[i].kind == FIELD_NUMBER)
        ret->holds = FOCUS_NUMBER;
    if (strcmp(event_fields[i].key, "severity") == 0)
        ret->words = severities;
}

// HOST:RAIL is what its adapter is called. *ret NULL: no focus.
static int plain_focus(struct cli *c, char **ret)
{
    const char *word = c->args.num_words == 1 ? c->args.word[0] : "", *focus = args_value(&c->args, "focus");
    long rail;
    json_t *node = NULL;
    size_t n = focus_is_word(word) ? called_split_rail(word, &rail) : 0;
    *ret = n == 0 ? tele_focus(c) : NULL;
    int rc = n == 0 ? CLI_OK : cli_fabric(c);
    if (n == 0 || rc != CLI_OK)
        return rc;
    rc = cli_node(c, word, &node);
    if (rc == CLI_OK)
        *ret = xasprintf(focus ? "(%s) and '%s'" : "%s'%s'", focus ? focus : "", js_str(node, "name"));
    json_decref(node);
    return rc;
}

static int read_wanted(struct cli *c, struct wanted *w)
{
    struct err e = {0};
    int rc = tele_time(c, "until", false, &w->to_ns);
    char *text = NULL;
    if (rc == CLI_OK)
        rc = plain_focus(c, &text);
    if (text != NULL)
        w->focus = focus_new(text, &(struct focus_fields){.name = field_name, .about = about}, &e);
    if (text != NULL && w->focus == NULL) {
        cli_complain(&e);
        rc = CLI_USAGE;
    }
    free(text);
    return rc;
}

static bool is_wanted(json_t *e, const struct wanted *w)
{
    int64_t t;
    if ((w->from_ns != 0 || w->to_ns != 0) && when_parse(js_str(e, "time"), &t) == 0 &&
        (t < w->from_ns || (w->to_ns != 0 && t > w->to_ns)))
        return false;
    return w->focus == NULL || focus_has(w->focus, event_fields, e, is_about);
}

static int parse_since(struct cli *c, struct since *ret, struct wanted *w)
{
    const char *s = args_value(&c->args, "since");
    *ret = (struct since){.given = s != NULL};
    if (s == NULL)
        return CLI_OK;
    ret->is_id = text_parse_count(s, 0, INT64_MAX, &ret->id) == 0;
    return ret->is_id ? CLI_OK : tele_time(c, "since", false, &w->from_ns);
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

static json_t *only_wanted(json_t *items, const struct wanted *w)
{
    json_t *kept = json_array(), *e;
    size_t i;
    json_array_foreach(items, i, e)
    {
        if (is_wanted(e, w))
            json_array_append(kept, e);
    }
    json_decref(items);
    return kept;
}

static void keep_first(json_t *items, long long n)
{
    while (n > 0 && (long long)json_array_size(items) > n)
        json_array_remove(items, json_array_size(items) - 1);
}

// Newest first, page by page, until the time is passed or enough are found: the newest `limit`, oldest first.
static int newest(struct cli *c, long long limit, const struct wanted *w, json_t **ret)
{
    struct buf path = {0};
    json_t *items = NULL;
    bool choosy = w->focus != NULL || w->to_ns != 0, end;
    int rc;

    buf_puts(&path, "/api/v1/events");
    http_query(&path, "newest", "1");
    add_filters(c, &path);
    for (long long n = limit > 0 && !choosy ? limit : 1000;; n *= 10) {
        int64_t oldest = 0;
        rc = cli_list(c, path.data, n, &items);
        if (rc != CLI_OK)
            break;
        long long got = (long long)json_array_size(items);
        if (got > 0)
            when_parse(js_str(json_array_get(items, (size_t)got - 1), "time"), &oldest);
        end = got < n || (w->from_ns != 0 && oldest < w->from_ns);
        items = only_wanted(items, w);
        if (end || (limit > 0 && (!choosy || (long long)json_array_size(items) >= limit)))
            break;
        json_decref(items);
        items = NULL;
    }
    buf_done(&path);
    if (rc == CLI_OK) {
        keep_first(items, limit);
        *ret = reversed(items);
    }
    return rc;
}

static int after(struct cli *c, long long id, long long limit, const struct wanted *w, json_t **ret)
{
    struct buf path = {0};
    char text[24];
    bool choosy = w->focus != NULL || w->to_ns != 0;

    snprintf(text, sizeof(text), "%lld", id);
    buf_puts(&path, "/api/v1/events");
    http_query(&path, "after", text);
    add_filters(c, &path);
    int rc = cli_list(c, path.data, choosy ? 0 : limit, ret);
    if (rc == CLI_OK) {
        *ret = only_wanted(*ret, w);
        keep_first(*ret, limit);
    }
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
                  is_wanted(e, f->wanted);
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

static int show_and_follow(struct cli *c, json_t *items, const struct since *s, const struct wanted *w,
                           long long limit)
{
    struct follow f = {.c = c,
                       .limit = limit,
                       .last = (unsigned long long)s->id,
                       .kind = args_value(&c->args, "kind"),
                       .fabric = args_value(&c->args, "fabric"),
                       .wanted = w};
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

// Of a kind that nobody has told of: mistyped, or just none yet.
static int check_kind(struct cli *c)
{
    const char *kind = args_value(&c->args, "kind");
    struct buf path = {0}, list = {0};
    json_t *items = NULL, *seen = json_object(), *e;
    size_t i;
    const char *key;

    buf_puts(&path, "/api/v1/events?newest=1");
    http_query(&path, "kind", kind);
    int rc = cli_list(c, path.data, 1, &items);
    size_t n = json_array_size(items);
    json_decref(items);
    items = NULL;
    if (rc == CLI_OK && n == 0)
        rc = cli_list(c, "/api/v1/events?newest=1", 10000, &items);
    json_array_foreach(items, i, e) json_object_set_new(seen, js_str(e, "kind"), json_true());
    json_object_foreach(seen, key, e) buf_printf(&list, "%s%s", list.len > 0 ? ", " : "", key);
    if (rc == CLI_OK && n == 0)
        cli_fail(CLI_OK, "--kind", "no event of the kind \"%s\" was ever told; those that were: %s", kind,
                 list.len > 0 ? list.data : "none");
    json_decref(items);
    json_decref(seen);
    buf_done(&list);
    buf_done(&path);
    return rc;
}

static int show_events(struct cli *c, const struct since *s, const struct wanted *w, long long limit)
{
    bool following = args_has(&c->args, "follow");
    json_t *items = NULL;
    bool bounded = s->given || w->to_ns != 0;
    long long most = limit > 0 || bounded ? limit : following ? FOLLOW_LAST : LAST_DEFAULT;
    int rc = s->is_id ? after(c, s->id, most, w, &items) : newest(c, most, w, &items);

    bool none = rc == CLI_OK && json_array_size(items) == 0;
    char *focus = none && w->focus != NULL ? tele_focus(c) : NULL;
    if (none && args_has(&c->args, "kind"))
        rc = check_kind(c);
    if (focus != NULL && !following) {
        tele_nothing(c, focus, -1, "", "");
        none = c->out.format == OUT_TABLE;
    } else {
        none = false;
    }
    free(focus);
    if (rc == CLI_OK && following && w->to_ns == 0)
        rc = show_and_follow(c, items, s, w, limit);
    else if (rc == CLI_OK && !none)
        show(c, items);
    json_decref(items);
    return rc;
}

int cmd_event(struct cli *c)
{
    long long limit = 0;
    struct since s;
    struct wanted w = {0};

    int rc = cli_number(c, "limit", 1, 100000000, &limit);
    if (rc == CLI_OK)
        rc = parse_since(c, &s, &w);
    if (rc == CLI_OK)
        rc = read_wanted(c, &w);
    if (rc == CLI_OK && args_has(&c->args, "fabric"))
        rc = cli_fabric(c);
    if (rc == CLI_OK)
        rc = show_events(c, &s, &w, limit);
    focus_free(w.focus);
    return rc;
}
