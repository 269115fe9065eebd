// SPDX-License-Identifier: Apache-2.0
// Commands that change something: sweeps asked for, raw requests.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/cli.h"
#include "cli/text.h"
#include "lib/xalloc.h"

#define WAIT_DEFAULT 600
#define POLL_SECONDS 0.1

// The finished sweep with this id, or a later one; NULL while there is none.
static int finished_sweep(struct cli *c, long long id, json_t **ret)
{
    struct buf path = {0};
    json_t *items = NULL, *s;
    size_t i;

    *ret = NULL;
    buf_printf(&path, "%s/sweeps", c->fabric);
    int rc = cli_list(c, path.data, 0, &items);
    buf_done(&path);
    if (rc != CLI_OK)
        return rc;
    json_array_foreach(items, i, s)
    {
        if (js_int(s, "id") >= id)
            *ret = s; // newest first: the last one that fits is the nearest
    }
    json_incref(*ret);
    json_decref(items);
    return CLI_OK;
}

int cli_wait_sweep(struct cli *c, long long id, double seconds, json_t **ret)
{
    int64_t deadline = mono_now().ns + (int64_t)(seconds * 1e9);
    for (;;) {
        int rc = finished_sweep(c, id, ret);
        if (rc != CLI_OK || *ret != NULL) {
            cli_progress_end(c);
            return rc;
        }
        cli_progress(c, "waiting for sweep #%lld", id);
        if (mono_now().ns >= deadline)
            return cli_fail(CLI_TIMEOUT, NULL, "sweep #%lld has not ended after %.0f s; see: weft status", id,
                            seconds);
        if (!cli_sleep(POLL_SECONDS))
            return cli_fail(CLI_INTERRUPTED, NULL, "interrupted");
    }
}

static int sweep_outcome(struct cli *c, json_t *s)
{
    bool ok = js_true(s, "ok");
    if (c->out.format == OUT_JSON) {
        out_json(&c->out, s);
    } else {
        out_printf(&c->out, "sweep #%lld %s in %.3f s: %s", js_int(s, "id"), ok ? "done" : "failed",
                   js_num(s, "seconds"), js_str(s, "text"));
        out_newline(&c->out);
    }
    return ok ? CLI_OK : CLI_FINDINGS;
}

int cli_ask_sweep(struct cli *c, const char *what)
{
    long long seconds = args_has(&c->args, "timeout") ? (long long)c->timeout : WAIT_DEFAULT;
    struct buf path = {0};
    json_t *asked = NULL, *s = NULL;

    int rc = cli_number(c, "wait", 0, 1000000, &seconds);
    if (rc == CLI_OK)
        rc = cli_fabric(c);
    if (rc != CLI_OK)
        return rc;
    buf_printf(&path, "%s/%s", c->fabric, what);
    rc = cli_post(c, path.data, NULL, &asked);
    buf_done(&path);
    if (rc != CLI_OK)
        return rc;
    long long id = js_int(asked, "sweep");
    if (args_has(&c->args, "wait")) {
        rc = cli_wait_sweep(c, id, (double)seconds, &s);
        if (rc == CLI_OK)
            rc = sweep_outcome(c, s);
    } else if (c->out.format == OUT_JSON) {
        out_json(&c->out, asked);
    } else {
        out_printf(&c->out, "sweep #%lld is asked for; its outcome: weft sweep %lld", id, id);
        out_newline(&c->out);
    }
    json_decref(s);
    json_decref(asked);
    return rc;
}

int cmd_resweep(struct cli *c)
{
    return cli_ask_sweep(c, "resweep");
}

static int parse_body(const char *text, json_t **ret)
{
    json_error_t je;
    *ret = NULL;
    if (text == NULL)
        return CLI_OK;
    *ret = json_loads(text, JSON_DECODE_ANY, &je);
    return *ret ? CLI_OK : cli_fail(CLI_USAGE, "JSON", "%s at column %d", je.text, je.column);
}

// Not JSON: line by line, escaped.
static void show_text(struct cli *c, const struct buf *b)
{
    for (size_t i = 0; i < b->len;) {
        size_t n = strcspn(b->data + i, "\n");
        out_printf(&c->out, "%.*s", (int)n, b->data + i);
        buf_putc(&c->out.text, '\n');
        i += n + 1;
    }
}

int cmd_api(struct cli *c)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    const char *method = NULL, *path = c->args.word[1];
    struct http_reply r;
    struct err e = {0};
    json_t *body;

    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (strcasecmp(c->args.word[0], methods[i]) == 0)
            method = methods[i];
    if (method == NULL)
        return cli_fail(CLI_USAGE, c->args.word[0], "no method; GET or POST?");
    if (path[0] != '/' || strpbrk(path, " \t\r\n") != NULL)
        return cli_fail(CLI_USAGE, path, "not a path; it begins with / and blanks are %%20");
    int rc = parse_body(c->args.num_words > 2 ? c->args.word[2] : NULL, &body);
    if (rc != CLI_OK)
        return rc;
    char *full = xasprintf("%s%s", strncmp(path, "/api/", 5) == 0 ? "" : "/api/v1", path);
    enum cli_exit x = http_call(c->http, method, full, body, c->timeout, &r, &e);
    if (x != CLI_OK)
        cli_complain(&e);
    else if (r.json != NULL)
        out_json(&c->out, r.json);
    else if (r.body.len > 0)
        show_text(c, &r.body);
    http_reply_done(&r);
    json_decref(body);
    free(full);
    return x;
}
