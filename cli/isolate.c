// SPDX-License-Identifier: Apache-2.0
// weft isolate: links that should carry no traffic; by hand, with what stands against it said first.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/quality.h"
#include "cli/tele.h"
#include "cli/text.h"
#include "lib/xalloc.h"

static const struct field isolation_fields[] = {
    {.key = "state", .title = "STATE"},
    {.key = "name", .title = "LINK"},
    {.key = "rule", .title = "RULE"},
    {.key = "reason", .title = "WHY", .flags = FIELD_SHRINK | FIELD_BELOW},
    {.key = "since", .title = "SINCE", .kind = FIELD_AGE},
    {.key = "by", .title = "BY"},
    {.key = "why", .title = "WHAT STANDS AGAINST IT", .flags = FIELD_SHRINK | FIELD_BELOW},
    {.key = "verdict", .flags = FIELD_WIDE},
    {.key = "clean", .flags = FIELD_WIDE},
    {.key = "alarm", .flags = FIELD_WIDE},
    {.key = "a", .path = "a.name", .flags = FIELD_WIDE},
    {.key = "a_port", .path = "a.port", .flags = FIELD_WIDE},
    {.key = "a_guid", .path = "a.guid", .flags = FIELD_WIDE},
    {.key = "z", .path = "z.name", .flags = FIELD_WIDE},
    {.key = "z_port", .path = "z.port", .flags = FIELD_WIDE},
    {.key = "z_guid", .path = "z.guid", .flags = FIELD_WIDE},
    {0},
};

static const struct field exclusion_fields[] = {
    {.key = "name", .title = "NOT ISOLATED", .path = "place.name", .flags = FIELD_SHRINK},
    {.key = "port", .title = "PORT", .path = "place.port", .kind = FIELD_NUMBER},
    {.key = "guid", .path = "place.guid", .flags = FIELD_WIDE},
    {.key = "until", .title = "UNTIL", .kind = FIELD_TIME},
    {.key = "by", .title = "BY"},
    {.key = "reason", .title = "REASON", .flags = FIELD_SHRINK | FIELD_BELOW},
    {0},
};

static void user_names(json_t *items)
{
    json_t *x;
    size_t i;
    json_array_foreach(items, i, x)
    {
        if (js_str(x, "by")[0] != 0)
            json_object_set_new(x, "by", json_string(cli_user(js_str(x, "by"))));
    }
}

static int fetch(struct cli *c, const char *below, json_t **ret)
{
    char *path = xasprintf("%s/%s", c->fabric, below);
    int rc = cli_list(c, path, 0, ret);
    free(path);
    if (rc == CLI_OK)
        user_names(*ret);
    return rc;
}

// "Would isolate: 1 (cap 10): weft isolate 'leaf-1/44' --dry-run"
static void last_line(struct cli *c, json_t *items)
{
    json_t *x, *first = NULL, *fabric = NULL;
    size_t i, proposed = 0;
    json_array_foreach(items, i, x)
    {
        bool is = strcmp(js_str(x, "state"), "proposed") == 0;
        first = is && first == NULL ? x : first;
        proposed += is;
    }
    if (cli_get(c, c->fabric, &fabric) != CLI_OK)
        return;
    if (json_array_size(items) == 0)
        out_printf(&c->out, "No link need be kept free of traffic: ");
    out_printf(&c->out, "%lld isolated, %zu proposed, at most %lld.", js_int(fabric, "telemetry.isolated"),
               proposed, js_int(fabric, "telemetry.isolation_cap"));
    if (first != NULL) {
        char *port = tele_shell_port(json_object_get(first, "a"));
        out_printf(&c->out, "  next: weft isolate %s --dry-run", port);
        free(port);
    }
    out_newline(&c->out);
    json_decref(fabric);
}

static int list_all(struct cli *c)
{
    json_t *items = NULL, *excluded = NULL;
    int rc = fetch(c, "isolations", &items);
    if (rc == CLI_OK && c->out.format == OUT_TABLE)
        rc = fetch(c, "isolations/exclusions", &excluded);
    if (rc == CLI_OK) {
        if (json_array_size(items) > 0 || c->out.format != OUT_TABLE)
            out_list(&c->out, isolation_fields, items);
        if (json_array_size(excluded) > 0)
            out_list(&c->out, exclusion_fields, excluded);
        if (c->out.format == OUT_TABLE)
            last_line(c, items);
    }
    json_decref(items);
    json_decref(excluded);
    return rc;
}

// HOST:RAIL is not known to weftd.
static int port_word(struct cli *c, char **ret)
{
    char *focus = NULL;
    int rc = tele_words(c, ret, &focus);
    free(focus);
    if (rc == CLI_OK && *ret == NULL)
        rc = cli_fail(CLI_USAGE, NULL, "which link? NODE/PORT of either end");
    return rc;
}

// What draining would move.
static int show_effect(struct cli *c, json_t *x)
{
    char *element = xasprintf("%s[%lld]", js_str(x, "a.guid"), js_int(x, "a.port"));
    json_t *r = NULL, *body = json_pack("{s:s}", "element", element);
    int rc = route_job(c, "drain-checks", body, ROUTE_SECONDS, &r);
    if (rc == CLI_OK) {
        out_printf(&c->out, "routes: %s", js_str(r, "text"));
        out_wrap(&c->out, 8);
    }
    json_decref(r);
    free(element);
    return rc;
}

static int by_hand(struct cli *c)
{
    const char *reason = args_value(&c->args, "reason");
    bool dry = args_has(&c->args, "dry-run");
    char *port = NULL, *path = xasprintf("%s/isolations", c->fabric);
    json_t *x = NULL;
    int rc = port_word(c, &port);

    if (rc == CLI_OK)
        rc = cli_post(c, path,
                      json_pack("{s:s, s:s, s:b, s:b}", "port", port, "reason", reason ? reason : "",
                                "dry_run", dry, "anyway", args_has(&c->args, "anyway")),
                      &x);
    if (rc == CLI_OK && c->out.format != OUT_TABLE) {
        out_object(&c->out, isolation_fields, x);
    } else if (rc == CLI_OK && dry) {
        bool may = strcmp(js_str(x, "verdict"), "yes") == 0;
        out_printf(&c->out, "%s: %s%s", js_str(x, "name"),
                   may ? "nothing stands against it" : "not isolated: ", may ? "" : js_str(x, "why"));
        out_wrap(&c->out, 8);
        if (js_str(x, "reason")[0] != 0) {
            out_printf(&c->out, "why: %s (%s)", js_str(x, "reason"), js_str(x, "rule"));
            out_wrap(&c->out, 8);
        }
        if (strcmp(js_str(x, "z.name"), "") != 0)
            show_effect(c, x); // a host's own cable cannot be drained: then it has said why
        rc = may ? CLI_OK : CLI_FINDINGS;
    } else if (rc == CLI_OK) {
        out_printf(&c->out, "%s is isolated; routes move off it now (weft drain)", js_str(x, "name"));
        out_wrap(&c->out, 8);
    }
    json_decref(x);
    free(port);
    free(path);
    return rc;
}

int cmd_isolate(struct cli *c)
{
    int rc = cli_fabric(c);
    if (rc != CLI_OK)
        return rc;
    if (c->args.num_words == 0 || strcmp(c->args.word[0], "list") == 0)
        return list_all(c);
    return by_hand(c);
}

static int ask(struct cli *c, const char *below, json_t *body)
{
    char *port = NULL, *path = NULL;
    json_t *r = NULL;
    int rc = cli_fabric(c);
    if (rc == CLI_OK)
        rc = port_word(c, &port);
    if (rc == CLI_OK) {
        path = xasprintf("%s/isolations/%s", c->fabric, below);
        json_object_set_new(body, "port", json_string(port));
        rc = cli_post(c, path, json_incref(body), &r);
    }
    if (rc == CLI_OK)
        cli_said(c, r);
    json_decref(body);
    json_decref(r);
    free(port);
    free(path);
    return rc;
}

int cmd_isolate_release(struct cli *c)
{
    return ask(c, "release", json_object());
}

int cmd_isolate_exclude(struct cli *c)
{
    static const char *const option[] = {"for", "until", "reason"};
    json_t *body = json_object();
    for (size_t i = 0; i < 3; i++)
        if (args_value(&c->args, option[i]) != NULL)
            json_object_set_new(body, option[i], json_string(args_value(&c->args, option[i])));
    if (args_value(&c->args, "reason") == NULL) {
        json_decref(body);
        return cli_fail(CLI_USAGE, NULL, "why? give --reason");
    }
    return ask(c, "exclude", body);
}

int cmd_isolate_include(struct cli *c)
{
    return ask(c, "include", json_object());
}
