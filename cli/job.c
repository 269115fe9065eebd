// SPDX-License-Identifier: Apache-2.0
// weft route job: hosts of a job as people and schedulers write them, and what their traffic would meet.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/quality.h"
#include "lib/xalloc.h"

#define HOSTS_MAX 20000
#define LIST_MAX (4u << 20) // bytes of a file of hosts
#define NAME_MAX_BYTES 200

static const struct field flow_fields[] = {
    {.key = "collective", .title = "COLLECTIVE"},
    {.key = "mean", .title = "MEAN", .kind = FIELD_SECONDS},
    {.key = "worst", .title = "WORST", .kind = FIELD_SECONDS},
    {.key = "max_load", .title = "MAX LOAD", .kind = FIELD_COUNT},
    {.key = "flows", .title = "FLOWS", .kind = FIELD_COUNT},
    {.key = "failed", .title = "FAILED", .kind = FIELD_COUNT},
    {.key = "blamed", .title = "HELD BACK BY", .kind = FIELD_COUNT},
    {.key = "absent", .title = "", .flags = FIELD_WIDE},
    {0},
};

static const struct field link_fields[] = {
    {.key = "collective", .title = "COLLECTIVE"},
    {.key = "name", .title = "FROM", .flags = FIELD_SHRINK},
    {.key = "port", .title = "PORT", .kind = FIELD_NUMBER},
    {.key = "to", .title = "TO", .flags = FIELD_SHRINK},
    {.key = "to_port", .title = "PORT", .kind = FIELD_NUMBER},
    {.key = "load", .title = "FLOWS", .kind = FIELD_COUNT},
    {0},
};

// --- hosts ---

static int add(json_t *to, const char *text, size_t n, const char *where);

// "[0001-0064,0100]" between what stands before and behind; digits keep their number of places.
static int add_ranges(json_t *to, const char *text, size_t n, size_t open, size_t close, const char *where)
{
    for (size_t i = open + 1; i < close;) {
        size_t end = i;
        while (end < close && text[end] != ',')
            end++;
        char piece[64], *dash;
        if (end == i || end - i >= sizeof(piece))
            return cli_fail(CLI_USAGE, where, "\"[%.*s]\" is no list of numbers and ranges",
                            (int)(close - open - 1), text + open + 1);
        memcpy(piece, text + i, end - i);
        piece[end - i] = 0;
        dash = strchr(piece, '-');
        size_t digits = dash != NULL ? (size_t)(dash - piece) : strlen(piece);
        const char *last = dash != NULL ? dash + 1 : piece;
        if (digits == 0 || digits > 9 || strspn(piece, "0123456789") != digits || strlen(last) > 9 ||
            strspn(last, "0123456789") != (dash != NULL ? strlen(last) : digits) || last[0] == 0)
            return cli_fail(CLI_USAGE, where, "\"%s\" is no number or range", piece);
        long a = strtol(piece, NULL, 10), z = strtol(last, NULL, 10);
        if (a > z)
            return cli_fail(CLI_USAGE, where, "the range \"%s\" ends before it begins", piece);
        for (; a <= z; a++) {
            char *name = xasprintf("%.*s%0*ld%.*s", (int)open, text, (int)digits, a, (int)(n - close - 1),
                                   text + close + 1);
            int rc = add(to, name, strlen(name), where);
            free(name);
            if (rc != CLI_OK)
                return rc;
        }
        i = end + (end < close);
    }
    return CLI_OK;
}

static int add(json_t *to, const char *text, size_t n, const char *where)
{
    const char *open = memchr(text, '[', n);
    const char *close = open != NULL ? memchr(open, ']', n - (size_t)(open - text)) : NULL;
    if (n > NAME_MAX_BYTES + (close != NULL ? LIST_MAX : 0))
        return cli_fail(CLI_USAGE, where, "a name of %zu bytes", n);
    if (close != NULL)
        return add_ranges(to, text, n, (size_t)(open - text), (size_t)(close - text), where);
    if (json_array_size(to) >= HOSTS_MAX)
        return cli_fail(CLI_USAGE, where, "more than %d hosts", HOSTS_MAX);
    json_t *name = json_stringn(text, n);
    if (name == NULL)
        return cli_fail(CLI_USAGE, where, "a name that is no UTF-8");
    json_array_append_new(to, name);
    return CLI_OK;
}

// Names apart by blanks and by commas outside of brackets.
static int add_list(json_t *to, const char *text, const char *where)
{
    static const char blanks[] = " \t\r\n,";
    int rc = CLI_OK;
    while (rc == CLI_OK && *(text += strspn(text, blanks)) != 0) {
        size_t n = 0;
        bool inside = false;
        while (text[n] != 0 && (inside || strchr(blanks, text[n]) == NULL)) {
            inside = text[n] == '[' || (inside && text[n] != ']');
            n++;
        }
        rc = add(to, text, n, where);
        text += n;
    }
    if (rc == CLI_OK && json_array_size(to) == 0)
        return cli_fail(CLI_USAGE, where, "names no host");
    return rc;
}

static int add_file(json_t *to, const char *file)
{
    bool in = strcmp(file, "-") == 0;
    FILE *f = in ? stdin : fopen(file, "re");
    struct buf b = {0};
    char piece[4096];
    size_t n;
    if (f == NULL)
        return cli_fail(CLI_USAGE, file, "cannot be read: %s", strerror(errno));
    while ((n = fread(piece, 1, sizeof(piece), f)) > 0 && b.len <= LIST_MAX)
        buf_add(&b, piece, n);
    if (!in)
        fclose(f);
    int rc;
    if (b.len > LIST_MAX || (b.data != NULL && strlen(b.data) != b.len))
        rc = cli_fail(CLI_USAGE, file, "is no list of hosts");
    else
        rc = add_list(to, b.data != NULL ? b.data : "", file);
    buf_done(&b);
    return rc;
}

static int hosts_of(struct cli *c, json_t **ret)
{
    const char *word = c->args.word[0];
    *ret = json_array();
    return word[0] == '@' ? add_file(*ret, word + 1) : add_list(*ret, word, word);
}

// --- what comes of them ---

static void gather(json_t *r, json_t *rows, json_t *links)
{
    json_t *v, *link;
    const char *key;
    size_t i;
    json_object_foreach(r, key, v)
    {
        if (!json_is_object(v))
            continue;
        json_object_set_new(v, "collective", json_string(key));
        json_array_append(rows, v);
        json_array_foreach(json_object_get(v, "links"), i, link)
        {
            json_object_set_new(link, "collective", json_string(key));
            json_array_append(links, link);
        }
    }
}

static int show(struct cli *c, const char *what, json_t *r)
{
    json_t *rows = json_array(), *links = json_array(), *v;
    size_t i;
    bool failed = false;

    if (c->out.format == OUT_JSON)
        out_json(&c->out, r);
    gather(r, rows, links);
    json_array_foreach(rows, i, v) failed |= js_int(v, "failed") > 0;
    if (c->out.format == OUT_CSV)
        out_list(&c->out, flow_fields, rows);
    if (c->out.format == OUT_TABLE) {
        out_paint(&c->out, COLOUR_BOLD, "%s", what);
        out_printf(&c->out, "  %s engine, %lld hosts, %lld adapters on %lld rails", js_str(r, "engine"),
                   js_int(r, "hosts"), js_int(r, "adapters"), js_int(r, "rails"));
        out_newline(&c->out);
        out_list(&c->out, flow_fields, rows);
        if (json_array_size(links) > 0) {
            out_newline(&c->out);
            out_list(&c->out, link_fields, links);
        }
    }
    json_decref(rows);
    json_decref(links);
    return failed ? CLI_FINDINGS : CLI_OK;
}

static int rate(struct cli *c, const char *what, double seconds, route_show_fn *shown)
{
    json_t *hosts = NULL, *result = NULL;
    int rc = cli_fabric(c);
    if (rc != CLI_OK)
        return rc;
    rc = hosts_of(c, &hosts);
    if (rc == CLI_OK)
        rc = route_job(c, "job-quality",
                       json_pack("{s:O, s:o}", "hosts", hosts, "fail", route_elements(c, "fail")), seconds,
                       &result);
    if (rc == CLI_OK)
        rc = shown(c, what != NULL ? what : c->fabric_name, result);
    json_decref(hosts);
    json_decref(result);
    return rc;
}

int cmd_route_job(struct cli *c)
{
    double seconds = args_has(&c->args, "timeout") ? c->timeout : ROUTE_SECONDS;
    if (c->args.num_words > 1)
        return route_private(c, c->args.word[1], seconds, rate, show);
    return rate(c, NULL, seconds, show);
}
