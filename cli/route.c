// SPDX-License-Identifier: Apache-2.0
// weft route: the way between two places, and computations on saved, generated or live fabrics.
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/cli.h"
#include "cli/past.h"
#include "cli/quality.h"
#include "cli/text.h"
#include "lib/guid.h"
#include "lib/xalloc.h"

#define POLL_FIRST 0.01
#define POLL_MAX 0.5
#define ERR_WHERE_MAX 199 // bytes of a word that come back with an error

static const struct field hop_fields[] = {
    {.key = "hop", .title = "#", .kind = FIELD_NUMBER},
    {.key = "name", .title = "NODE", .flags = FIELD_SHRINK},
    {.key = "in", .title = "IN", .kind = FIELD_NUMBER},
    {.key = "out", .title = "OUT", .kind = FIELD_NUMBER},
    {.key = "link", .title = "LINK"},
    {.key = "guid", .title = "GUID"},
    {0},
};

static const struct field pair_fields[] = {
    {.key = "key", .title = "WHAT"},
    {.key = "value", .title = "VALUE"},
    {0},
};

// --- route show ---

// What weftd takes as it is: GIDs, GUIDs (also of ports), LIDs and NAME[PORT]. Names are looked up here, so
// that the candidates of an ambiguous one can be shown.
static int place(struct cli *c, const char *word, char **ret)
{
    uint64_t guid;
    uint8_t gid[16];
    json_t *node = NULL;

    if (inet_pton(AF_INET6, word, gid) == 1)
        *ret = xstrdup(word);
    else if (word[0] == '0' && (word[1] == 'x' || word[1] == 'X') && guid_parse(word, &guid) == 0)
        *ret = xasprintf(GUID_FMT, GUID_ARG(guid));
    else if (strspn(word, "0123456789") == strlen(word) && strlen(word) <= 5)
        *ret = xstrdup(word);
    else if (word[0] != 0 && word[strlen(word) - 1] == ']')
        *ret = xstrdup(word);
    else {
        int rc = cli_node(c, word, &node);
        if (rc != CLI_OK)
            return rc;
        *ret = xstrdup(js_str(node, "guid"));
        json_decref(node);
    }
    return CLI_OK;
}

static void number_hops(json_t *hops)
{
    json_t *h;
    size_t i;
    json_array_foreach(hops, i, h) json_object_set_new(h, "hop", json_integer((json_int_t)i + 1));
}

static void draw_end(struct out *o, json_t *end)
{
    out_paint(o, COLOUR_BOLD, "%s", js_str(end, "name")[0] ? js_str(end, "name") : js_str(end, "guid"));
    if (js_int(end, "port") > 0)
        out_printf(o, "/%lld", js_int(end, "port"));
}

// "LID 64, 3 more ways: route show 4 65 (or 66, 67)"
static void draw_ways(struct out *o, const char *from, json_t *r)
{
    long long lid = js_int(r, "lid"), base = js_int(r, "to.lid"), more = (1ll << js_int(r, "to.lmc")) - 1;
    const char *gap = "(or ";
    out_printf(o, " (LID %lld", lid);
    if (more > 0)
        out_printf(o, ", %lld more way%s: route show %s %lld", more, more == 1 ? "" : "s", from,
                   base + (lid == base));
    for (long long i = base + (lid == base) + 1; more > 1 && more <= 3 && i <= base + more; i++) {
        if (i == lid)
            continue;
        out_printf(o, "%s%s%lld", gap[0] == '(' ? " " : "", gap, i);
        gap = ", ";
    }
    if (more > 3)
        out_printf(o, " (all of %lld to %lld", base, base + more);
    out_printf(o, "%s)  ", more > 1 ? ")" : "");
}

static void draw_route(struct out *o, const char *from, json_t *r)
{
    json_t *hops = json_object_get(r, "hops");

    draw_end(o, json_object_get(r, "from"));
    out_printf(o, " -> ");
    draw_end(o, json_object_get(r, "to"));
    draw_ways(o, from, r);
    if (js_true(r, "reached"))
        out_paint(o, COLOUR_GREEN, "reached");
    else
        out_paint(o, COLOUR_RED, "NOT REACHED");
    if (js_str(r, "error")[0] != 0)
        out_printf(o, ": %s", js_str(r, "error"));
    out_newline(o);
    if (json_array_size(hops) > 0)
        out_list(o, hop_fields, hops);
}

int cmd_route_show(struct cli *c)
{
    struct buf path = {0};
    char *from = NULL, *to = NULL;
    json_t *r = NULL;

    int rc = cli_fabric(c);
    if (rc == CLI_OK)
        rc = place(c, c->args.word[0], &from);
    if (rc == CLI_OK)
        rc = place(c, c->args.word[1], &to);
    bool past = rc == CLI_OK && (args_has(&c->args, "since") || args_has(&c->args, "until"));
    if (past)
        rc = past_show(c, from, to);
    else if (rc == CLI_OK) {
        buf_printf(&path, "%s/routes", c->fabric);
        http_query(&path, "from", from);
        http_query(&path, "to", to);
        rc = cli_get(c, path.data, &r);
    }
    if (rc == CLI_OK && !past) {
        number_hops(json_object_get(r, "hops"));
        if (c->out.format == OUT_TABLE)
            draw_route(&c->out, c->args.word[0], r);
        else if (c->out.format == OUT_CSV)
            out_list(&c->out, hop_fields, json_object_get(r, "hops"));
        else
            out_json(&c->out, r);
        rc = js_true(r, "reached") ? CLI_OK : CLI_FINDINGS;
    }
    json_decref(r);
    buf_done(&path);
    free(from);
    free(to);
    return rc;
}

// --- route compute ---

// A private weftd writes the file itself: tables of a large fabric are hundreds of megabytes of text.
static void want_tables(struct cli *c, json_t *body, bool private)
{
    const char *file = args_value(&c->args, "dump-lft");
    if (file == NULL)
        return;
    if (!private) {
        json_object_set_new(body, "lft", json_true());
        return;
    }
    char *cwd = file[0] == '/' ? NULL : getcwd(NULL, 0);
    char *path = xasprintf("%s%s%s", cwd ? cwd : "", cwd ? "/" : "", file);
    json_object_set_new(body, "lft_path", json_string(path));
    free(path);
    free(cwd);
}

json_t *route_elements(struct cli *c, const char *option)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < c->args.num_given; i++)
        if (strcmp(c->args.given[i].row->name, option) == 0)
            json_array_append_new(list, json_string(c->args.given[i].value));
    return list;
}

static json_t *computation(struct cli *c, bool private)
{
    json_t *body = json_object();
    const char *engine = args_value(&c->args, "engine");

    if (engine != NULL)
        json_object_set_new(body, "engine", json_string(engine));
    json_object_set_new(body, "fail", route_elements(c, "fail"));
    want_tables(c, body, private);
    return body;
}

// The path of the job that was begun.
static char *job_path(json_t *begun)
{
    const char *at = js_str(begun, "location");
    json_t *id = json_object_get(begun, json_object_get(begun, "job") ? "job" : "id");
    if (strncmp(at, "/api/", 5) == 0)
        return xstrdup(at);
    if (json_is_integer(id))
        return xasprintf("/api/v1/jobs/%lld", (long long)json_integer_value(id));
    struct buf b = {0};
    buf_puts(&b, "/api/v1/jobs");
    http_segment(&b, json_string_value(id) ? json_string_value(id) : "");
    return buf_take(&b);
}

static bool is_element(struct cli *c, const char *where)
{
    static const char *const names[] = {"fail", "drain", "add"};
    for (unsigned i = 0; i < c->args.num_given; i++)
        for (unsigned k = 0; k < sizeof(names) / sizeof(names[0]); k++)
            if (strcmp(c->args.given[i].row->name, names[k]) == 0 &&
                strncmp(c->args.given[i].value, where, ERR_WHERE_MAX) == 0)
                return true;
    return false;
}

// A word of the caller's that means nothing to weftd is the caller's mistake.
static int job_failed(struct cli *c, json_t *job)
{
    json_t *e = json_object_get(job, "error");
    const char *text = json_is_object(e) ? js_str(e, "text") : js_str(job, "error");
    const char *where = json_is_object(e) ? js_str(e, "where") : "";
    bool blueprint = strncmp(c->args.command->name, "blueprint", 9) == 0;
    if (is_element(c, where) && strncmp(text, "there is no room", 16) == 0)
        return cli_fail(CLI_FINDINGS, where, "%s", text); // asked well, and that is the answer
    if (is_element(c, where) || (where[0] && (c->args.command->run == cmd_route_job || blueprint)))
        return cli_fail(CLI_USAGE, where, "%s", text);
    return cli_fail(CLI_FINDINGS, where[0] ? where : NULL, "%s: %s",
                    strncmp(c->args.command->name, "db", 2) == 0 ? "the files could not be checked"
                                                                 : "the routes could not be computed",
                    text[0] ? text : "weftd does not say why");
}

static int poll_job(struct cli *c, const char *path, int64_t deadline, json_t **ret)
{
    double pause = POLL_FIRST;
    for (;;) {
        json_t *job = NULL;
        int rc = cli_get(c, path, &job);
        if (rc != CLI_OK)
            return rc;
        const char *state = js_str(job, "state");
        if (strcmp(state, "done") == 0) {
            *ret = json_incref(json_object_get(job, "result"));
            json_decref(job);
            return CLI_OK;
        }
        if (strcmp(state, "failed") == 0)
            rc = job_failed(c, job);
        json_decref(job);
        if (rc != CLI_OK)
            return rc;
        if (mono_now().ns > deadline)
            return cli_fail(CLI_TIMEOUT, NULL, "still computing; give a longer --timeout");
        if (!cli_sleep(pause))
            return cli_fail(CLI_INTERRUPTED, NULL, "interrupted");
        pause = pause * 1.5 < POLL_MAX ? pause * 1.5 : POLL_MAX;
    }
}

static int write_lft(struct cli *c, json_t *result)
{
    const char *file = args_value(&c->args, "dump-lft");
    const char *lft = json_string_value(json_object_get(result, "lft"));

    if (file == NULL)
        return CLI_OK;
    if (lft == NULL)
        return cli_fail(CLI_PARTIAL, file, "not written: weftd gave no tables");
    FILE *f = fopen(file, "w");
    if (f == NULL)
        return cli_fail(CLI_USAGE, file, "cannot be written: %s", strerror(errno));
    bool ok = fputs(lft, f) >= 0;
    ok = fclose(f) == 0 && ok;
    return ok ? CLI_OK : cli_fail(CLI_PARTIAL, file, "could not be written in full: %s", strerror(errno));
}

// {"a": {"b": 1}} -> [{"key": "a.b", "value": 1}]
static void flatten(json_t *to, const char *prefix, json_t *v)
{
    const char *key;
    json_t *item;
    json_object_foreach(v, key, item)
    {
        char *name = xasprintf("%s%s%s", prefix, prefix[0] ? "." : "", key);
        if (json_is_object(item))
            flatten(to, name, item);
        else
            json_array_append_new(to, json_pack("{s:s, s:O}", "key", name, "value", item));
        free(name);
    }
}

void route_pairs(struct out *o, json_t *r)
{
    json_t *pairs = json_array();
    flatten(pairs, "", r);
    out_list(o, pair_fields, pairs);
    json_decref(pairs);
}

static void value_text(struct buf *b, json_t *v)
{
    if (json_is_integer(v))
        text_count(b, json_integer_value(v));
    else if (json_is_real(v))
        text_figure(b, json_real_value(v));
    else if (json_is_string(v))
        buf_puts(b, json_string_value(v));
    else
        buf_puts(b, json_is_true(v) ? "yes" : json_is_false(v) ? "no" : "-");
}

// "mean 0.998  worst 0.5"
static void draw_values(struct out *o, const char *head, const char *name, json_t *values)
{
    const char *key;
    json_t *v;
    bool plain = !json_is_object(values);

    out_printf(o, "  %-9s%s%s", head, name, name[0] ? "  " : "");
    if (plain) {
        struct buf b = {0};
        value_text(&b, values);
        out_printf(o, "%s", b.data);
        buf_done(&b);
    }
    const char *gap = "";
    json_object_foreach(values, key, v)
    {
        struct buf b = {0};
        if (json_is_object(v) || json_is_array(v))
            continue;
        value_text(&b, v);
        out_printf(o, "%s%s %s", gap, key, b.len ? b.data : "-");
        gap = "  ";
        buf_done(&b);
    }
    out_wrap(o, 11);
}

// A line a pattern, of what says most.
static void draw_quality(struct out *o, const char *head, json_t *q)
{
    json_t *v;
    const char *key;
    json_object_foreach(q, key, v)
    {
        if (!json_is_object(v))
            continue;
        json_t *line = quality_line(v);
        draw_values(o, head, key, line);
        json_decref(line);
        head = "";
    }
}

static void draw_result(struct out *o, const char *what, json_t *r)
{
    json_t *verify = json_object_get(r, "verify");
    const char *counter = js_str(verify, "counterexample");
    struct buf bytes = {0};

    out_paint(o, COLOUR_BOLD, "%s", what);
    out_printf(o, "  %s engine", js_str(r, "engine"));
    out_printf(o, js_str(r, "why")[0] ? " (%s)" : "%s", js_str(r, "why"));
    out_wrap(o, 11);
    out_printf(o, "  proof    ");
    if (js_true(verify, "ok"))
        out_paint(o, COLOUR_GREEN, "proved");
    else
        out_paint(o, COLOUR_RED, "NOT PROVED");
    text_count(&bytes, js_int(verify, "pairs"));
    out_printf(o, ": %s pairs in %.3f s%s%s", bytes.data, js_num(verify, "seconds"), counter[0] ? "; " : "",
               counter);
    out_wrap(o, 11);
    draw_quality(o, "quality", json_object_get(r, "quality"));
    draw_quality(o, "before", json_object_get(r, "quality_before"));
    if (js_int(r, "failed.nodes") + js_int(r, "failed.links") > 0)
        draw_values(o, "failed", "", json_object_get(r, "failed"));
    if (json_is_object(json_object_get(r, "changed")))
        draw_values(o, "changed", "by repair, as weft whatif shows:", json_object_get(r, "changed"));
    out_printf(o, "  cost     %.3f s, tables %.1f MB, peak memory %.1f MB", js_num(r, "seconds"),
               js_num(r, "lft_bytes") / 1e6, js_num(r, "peak_rss_bytes") / 1e6);
    out_wrap(o, 11);
    buf_done(&bytes);
}

static int show_result(struct cli *c, const char *what, json_t *r)
{
    bool ok = js_true(r, "verify.ok");
    json_object_del(r, "lft");
    if (c->out.format == OUT_JSON) {
        out_json(&c->out, r);
    } else if (c->out.format == OUT_CSV) {
        route_pairs(&c->out, r);
    } else {
        draw_result(&c->out, what, r);
    }
    return ok ? CLI_OK : CLI_FINDINGS;
}

// Before anything is computed: a file that cannot be written is the caller's mistake.
static int check_dump(const struct cli *c)
{
    const char *file = args_value(&c->args, "dump-lft");
    FILE *f = file != NULL ? fopen(file, "w") : NULL;
    if (file != NULL && f == NULL)
        return cli_fail(CLI_USAGE, file, "cannot be written: %s", strerror(errno));
    if (f != NULL)
        fclose(f);
    return CLI_OK;
}

int route_job(struct cli *c, const char *below, json_t *body, double seconds, json_t **ret)
{
    int64_t deadline = mono_now().ns + (int64_t)(seconds * 1e9);
    char *path = below[0] == '/' ? xstrdup(below) : xasprintf("%s/%s", c->fabric, below);
    json_t *begun = NULL;

    int rc = cli_post(c, path, body, &begun);
    free(path);
    if (rc != CLI_OK)
        return rc;
    cli_progress(c, "computing");
    char *job = job_path(begun);
    rc = poll_job(c, job, deadline, ret);
    cli_progress_end(c);
    json_decref(begun);
    free(job);
    return rc;
}

// show: what to do with the result. what: NULL for the running weftd's fabric.
static int compute(struct cli *c, const char *what, double seconds, route_show_fn *show)
{
    json_t *result = NULL;

    int rc = cli_fabric(c);
    if (rc == CLI_OK)
        rc = check_dump(c);
    if (rc == CLI_OK)
        rc = route_job(c, "route-computations", computation(c, what != NULL), seconds, &result);
    if (rc == CLI_OK && what == NULL)
        rc = write_lft(c, result);
    if (rc == CLI_OK)
        rc = show(c, what ? what : c->fabric_name, result);
    json_decref(result);
    return rc;
}

int route_private(struct cli *c, const char *what, double seconds, route_run_fn *run, route_show_fn *show)
{
    struct child child;
    struct err e = {0};

    if (args_has(&c->args, "fabric"))
        return cli_fail(CLI_USAGE, NULL, "--fabric is for the running weftd; leave out either it or \"%s\"",
                        what);
    cli_progress(c, "loading %s", what);
    int rc = child_start(&child, what, seconds, &e);
    cli_progress_end(c);
    if (rc != 0) {
        cli_complain(&e);
        rc = rc == -EINTR       ? CLI_INTERRUPTED
             : rc == -ETIMEDOUT ? CLI_TIMEOUT
             : rc == -EINVAL    ? CLI_USAGE
                                : CLI_UNREACHABLE;
    } else {
        http_free(c->http);
        c->http = http_new(child.socket);
        rc = run(c, what, seconds, show);
    }
    child_stop(&child);
    return rc;
}

int route_compute_private(struct cli *c, const char *what, double seconds, route_show_fn *show)
{
    return route_private(c, what, seconds, compute, show);
}

int cmd_route_compute(struct cli *c)
{
    double seconds = args_has(&c->args, "timeout") ? c->timeout : ROUTE_SECONDS;
    if (c->args.num_words == 0)
        return compute(c, NULL, seconds, show_result);
    return route_compute_private(c, c->args.word[0], seconds, show_result);
}
