// SPDX-License-Identifier: Apache-2.0
// weft link drain, node drain and back; weft drain: what is drained. Draining waits until the routes have
// moved, so that the next command may be said to whoever pulls the cable.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/quality.h"
#include "cli/text.h"
#include "lib/xalloc.h"

#define WAIT_DEFAULT 600

#define GUID_FIELD 1
static const struct field drain_fields[] = {
    {.key = "name", .title = "DRAINED", .flags = FIELD_SHRINK},
    {.key = "node", .title = "GUID", .flags = FIELD_WIDE},
    {.key = "far", .title = "FAR END", .flags = FIELD_SHRINK},
    {.key = "state", .title = "STATE"},
    {.key = "ends", .title = "ENDS", .kind = FIELD_COUNT},
    {.key = "switches", .title = "SWITCHES", .kind = FIELD_COUNT},
    {.key = "cables", .title = "CABLES UP", .kind = FIELD_COUNT},
    {.key = "since", .title = "SINCE", .kind = FIELD_TIME},
    {.key = "by", .title = "BY"},
    {.key = "reason", .title = "REASON", .flags = FIELD_SHRINK | FIELD_BELOW},
    {.key = "port", .title = "PORT", .kind = FIELD_NUMBER, .flags = FIELD_WIDE},
    {.key = "text", .title = "", .flags = FIELD_WIDE},
    {0},
};

static int drains(struct cli *c, json_t **ret)
{
    char *path = xasprintf("%s/drains", c->fabric);
    json_t *d;
    size_t i;
    int rc = cli_list(c, path, 0, ret);
    free(path);
    if (rc == CLI_OK) {
        json_array_foreach(*ret, i, d) json_object_set_new(d, "by", json_string(cli_user(js_str(d, "by"))));
    }
    return rc;
}

// Where the name alone does not tell which device.
static bool needs_guids(json_t *items)
{
    json_t *d, *other;
    size_t i, k;
    json_array_foreach(items, i, d)
    {
        if (strcmp(js_str(d, "state"), "away") == 0)
            return true;
        json_array_foreach(items, k, other)
        {
            if (k > i && strcmp(js_str(d, "name"), js_str(other, "name")) == 0)
                return true;
        }
    }
    return false;
}

int cmd_drain(struct cli *c)
{
    json_t *items = NULL;
    int rc = cli_fabric(c);
    if (rc == CLI_OK)
        rc = drains(c, &items);
    if (rc == CLI_OK && c->out.format == OUT_JSON) {
        out_json(&c->out, items);
    } else if (rc == CLI_OK) {
        struct field fields[sizeof(drain_fields) / sizeof(drain_fields[0])];
        memcpy(fields, drain_fields, sizeof(fields));
        fields[GUID_FIELD].flags = needs_guids(items) ? 0 : FIELD_WIDE;
        out_list(&c->out, fields, items);
    }
    json_decref(items);
    return rc;
}

// --- draining ---

// "NODE PORT", "NODE[PORT]" or "NODE".
static int element_of(struct cli *c, bool link, char **ret)
{
    const char *a = c->args.word[0], *b = c->args.num_words > 1 ? c->args.word[1] : NULL;
    size_t n = strlen(a);
    bool whole = n == 0 || a[n - 1] != ']';

    if (b != NULL && (b[0] == 0 || strspn(b, "0123456789,-*") != strlen(b) || strlen(b) > 1000))
        return cli_fail(CLI_USAGE, b, "is no port number");
    if (link && b == NULL && whole)
        return cli_fail(CLI_USAGE, a,
                        "which port? NODE PORT, or 'NODE[PORT]'; a whole switch: weft node drain");
    if (!link && !whole)
        return cli_fail(CLI_USAGE, a, "is a port: weft link drain");
    *ret = b != NULL ? xasprintf("%s[%s]", a, b) : xstrdup(a);
    return CLI_OK;
}

// The drains that the answer is about as they stand now.
static int listed(struct cli *c, json_t *answer, json_t **ret)
{
    json_t *items = NULL, *d, *asked;
    size_t i, k;
    *ret = json_array();
    int rc = drains(c, &items);
    json_array_foreach(json_object_get(answer, "items"), k, asked)
    {
        json_array_foreach(items, i, d)
        {
            if (strcmp(js_str(d, "node"), js_str(asked, "node")) == 0 &&
                json_equal(json_object_get(d, "port"), json_object_get(asked, "port"))) {
                json_object_set(d, "changed", json_object_get(asked, "changed"));
                json_array_append(*ret, d);
            }
        }
    }
    json_decref(items);
    return rc;
}

#define SHOWN 64

static void show_each(struct cli *c, json_t *drains)
{
    json_t *d;
    size_t i, n = json_array_size(drains);
    json_array_foreach(drains, i, d)
    {
        if (i == SHOWN && n > SHOWN)
            break;
        out_printf(&c->out, "%s is drained%s: %s", js_str(d, "name"), js_true(d, "changed") ? "" : " already",
                   js_str(d, "text"));
        out_newline(&c->out);
    }
    if (n > SHOWN) {
        out_printf(&c->out, "and %zu more; all: weft drain", n - SHOWN);
        out_newline(&c->out);
    }
}

static bool any_is(json_t *drains, const char *state)
{
    json_t *d;
    size_t i;
    json_array_foreach(drains, i, d)
    {
        if (strcmp(js_str(d, "state"), state) == 0)
            return true;
    }
    return false;
}

static void put_json(struct cli *c, json_t *answer, json_t *sweep, json_t *drains)
{
    size_t n = json_array_size(drains);
    json_object_set_new(answer, "drain", n == 1 ? json_incref(json_array_get(drains, 0)) : json_null());
    json_object_set(answer, "drains", drains);
    if (sweep != NULL) {
        json_object_set_new(answer, "entries", json_integer(js_int(sweep, "lft_entries")));
        json_object_set_new(answer, "paths_moved", json_integer(js_int(sweep, "paths_moved")));
        json_object_set_new(answer, "seconds", json_real(js_num(sweep, "seconds")));
    }
    out_json(&c->out, answer);
}

// What it came to: the answer, the sweep (NULL: nothing had to move, or nobody waited), the drains (empty:
// undrained).
static int show(struct cli *c, json_t *answer, json_t *sweep, json_t *drains)
{
    bool failed = sweep != NULL && !js_true(sweep, "ok");

    if (c->out.format != OUT_TABLE) {
        put_json(c, answer, sweep, drains);
    } else {
        if (json_array_size(drains) > 0 && !failed && !any_is(drains, "moving")) {
            show_each(c, drains);
        } else {
            out_printf(&c->out, "%s", js_str(answer, "text"));
            out_newline(&c->out);
        }
        if (failed)
            out_printf(&c->out, "but its routes are not in force: %s", js_str(sweep, "text"));
        else if (sweep != NULL)
            out_printf(&c->out, "%lld table entries, %lld paths moved, in %.3f s",
                       js_int(sweep, "lft_entries"), js_int(sweep, "paths_moved"), js_num(sweep, "seconds"));
        if (sweep != NULL)
            out_newline(&c->out);
    }
    return failed || any_is(drains, "in-use") ? CLI_FINDINGS : CLI_OK;
}

static int check(struct cli *c, const char *element, bool undrain)
{
    json_t *r = NULL, *body = json_pack("{s:s, s:b}", "element", element, "undrain", undrain);
    int rc =
        route_job(c, "drain-checks", body, args_has(&c->args, "timeout") ? c->timeout : WAIT_DEFAULT, &r);
    if (rc != CLI_OK)
        return rc;
    bool bad = js_int(r, "ends") + js_int(r, "switches") > 0 || !js_true(r, "proved");
    if (c->out.format != OUT_TABLE) {
        out_json(&c->out, r);
    } else {
        out_printf(&c->out, "%s: %s", element, js_str(r, "text"));
        out_newline(&c->out);
        if (!js_true(r, "proved"))
            out_printf(&c->out, "the tables would not be proved: %s", js_str(r, "counterexample"));
        else
            out_printf(&c->out, "proved; written in %lld wave%s, %lld blocks", js_int(r, "waves"),
                       js_int(r, "waves") == 1 ? "" : "s", js_int(r, "blocks"));
        out_newline(&c->out);
    }
    json_decref(r);
    return bad ? CLI_FINDINGS : CLI_OK;
}

// What was drained before and has come into use again by this, and what hangs on all of it.
static void show_others(struct cli *c, json_t *before, json_t *after, json_t *asked)
{
    json_t *d, *o, *f = NULL;
    size_t i, k, n = 0;
    char names[700] = "";
    json_array_foreach(after, i, d)
    {
        bool was = false;
        if (strcmp(js_str(d, "state"), "in-use") != 0)
            continue;
        json_array_foreach(before, k, o) was |=
            strcmp(js_str(o, "node"), js_str(d, "node")) == 0 &&
            json_equal(json_object_get(o, "port"), json_object_get(d, "port")) &&
            strcmp(js_str(o, "state"), "drained") == 0;
        if (was && n++ < 8)
            snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%.70s", n > 1 ? ", " : "",
                     js_str(d, "name"));
    }
    json_t *first = json_array_get(json_object_get(json_array_get(asked, 0), "no_other_way"), 0);
    if (json_array_size(asked) == 1 && first != NULL) {
        json_array_foreach(json_object_get(json_array_get(asked, 0), "no_other_way"), i, d)
        {
            if (i < 8)
                out_printf(&c->out, "%s%s", i == 0 ? "no other way: " : ", ", json_string_value(d));
        }
        out_printf(&c->out, i > 8 ? ", and %zu more" : "", i - 8);
        out_newline(&c->out);
    }
    if (n > 0) {
        out_printf(&c->out, "%zu drained before %s in use again: %s%s", n, n == 1 ? "is" : "are", names,
                   n > 8 ? ", …" : "");
        out_newline(&c->out);
    }
    if (any_is(asked, "in-use") && cli_get(c, c->fabric, &f) == CLI_OK && js_int(f, "drained_ends") > 0) {
        long long ends = js_int(f, "drained_ends");
        out_printf(&c->out, "%lld end%s now hang%s on drained cables alone: pulling them cuts %s off", ends,
                   ends == 1 ? "" : "s", ends == 1 ? "s" : "", ends == 1 ? "it" : "these");
        out_newline(&c->out);
    }
    json_decref(f);
}

static int ask(struct cli *c, const char *element, bool undrain)
{
    const char *reason = args_value(&c->args, "reason");
    double seconds = args_has(&c->args, "timeout") ? c->timeout : WAIT_DEFAULT;
    json_t *body = json_pack("{s:s}", "element", element), *answer = NULL, *sweep = NULL, *of = NULL,
           *before = NULL, *after = NULL;

    if (reason != NULL)
        json_object_set_new(body, "reason", json_string(reason));
    char *path = xasprintf("%s/%s", c->fabric, undrain ? "undrain" : "drains");
    int rc = drains(c, &before);
    if (rc == CLI_OK)
        rc = cli_post(c, path, body, &answer);
    else
        json_decref(body);
    free(path);
    if (rc == CLI_OK && js_true(answer, "changed") && !args_has(&c->args, "no-wait"))
        rc = cli_wait_sweep(c, js_int(answer, "sweep"), seconds, &sweep);
    if (rc == CLI_OK && !undrain)
        rc = listed(c, answer, &of);
    if (rc == CLI_OK)
        rc = show(c, answer, sweep, of);
    json_decref(answer);
    json_decref(sweep);
    if (rc == CLI_FINDINGS && !undrain && c->out.format == OUT_TABLE && drains(c, &after) == CLI_OK)
        show_others(c, before, after, of);
    json_decref(before);
    json_decref(after);
    json_decref(of);
    return rc;
}

static int run(struct cli *c, bool link, bool undrain)
{
    char *element = NULL;
    int rc = element_of(c, link, &element);
    if (rc == CLI_OK)
        rc = cli_fabric(c);
    if (rc == CLI_OK)
        rc = args_has(&c->args, "check") ? check(c, element, undrain) : ask(c, element, undrain);
    free(element);
    return rc;
}

int cmd_link_drain(struct cli *c)
{
    return run(c, true, false);
}

int cmd_link_undrain(struct cli *c)
{
    return run(c, true, true);
}

int cmd_node_drain(struct cli *c)
{
    return run(c, false, false);
}

int cmd_node_undrain(struct cli *c)
{
    return run(c, false, true);
}
