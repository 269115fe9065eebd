// SPDX-License-Identifier: Apache-2.0
// weft db: history's files, and whether they are sound.
#include <string.h>

#include "cli/cli.h"
#include "cli/quality.h"
#include "cli/tele.h"
#include "cli/text.h"

static const struct field db_fields[] = {
    {.key = "fabric", .title = "OF"},
    {.key = "ok", .title = "OK", .flags = FIELD_STATE},
    {.key = "series", .title = "PORTS", .kind = FIELD_COUNT},
    {.key = "sweeps", .title = "SWEEPS", .kind = FIELD_COUNT},
    {.key = "left_out", .title = "LEFT OUT", .kind = FIELD_COUNT},
    {.key = "raw", .title = "RAW", .path = "raw.bytes", .kind = FIELD_BYTES},
    {.key = "minute", .title = "MINUTE", .path = "minute.bytes", .kind = FIELD_BYTES},
    {.key = "hour", .title = "HOUR", .path = "hour.bytes", .kind = FIELD_BYTES},
    {.key = "first", .title = "OLDEST", .kind = FIELD_AGE},
    {.key = "text", .title = "WHAT IS WRONG", .flags = FIELD_SHRINK | FIELD_BELOW},
    {.key = "folder", .title = "FOLDER", .flags = FIELD_SHRINK},
    {.key = "aside", .title = "SET ASIDE", .flags = FIELD_SHRINK | FIELD_BELOW},
    {.key = "lost", .title = "LOST", .flags = FIELD_SHRINK | FIELD_BELOW},
    {.key = "files", .kind = FIELD_COUNT, .flags = FIELD_WIDE},
    {.key = "last_commit_seconds", .kind = FIELD_SECONDS, .flags = FIELD_WIDE},
    {.key = "max_commit_seconds", .kind = FIELD_SECONDS, .flags = FIELD_WIDE},
    {.key = "cpu_seconds", .kind = FIELD_SECONDS, .flags = FIELD_WIDE},
    {0},
};

static void db_words(json_t *d)
{
    json_t *t;
    size_t i;
    long long files = 0;
    const char *first = "";
    if (js_str(d, "fabric")[0] == 0)
        json_object_set_new(d, "fabric", json_string("weftd"));
    json_array_foreach(json_object_get(d, "tiers"), i, t)
    {
        json_object_set(d, js_str(t, "tier"), t);
        files += js_int(t, "files");
        const char *at = js_str(t, "first");
        if (at[0] != 0 && (first[0] == 0 || strcmp(at, first) < 0)) // both RFC 3339 in UTC
            first = at;
    }
    long long aside = js_int(d, "set_aside");
    if (aside > 0) {
        struct buf b = {0};
        buf_printf(&b, "%lld damaged %s, ", aside, aside == 1 ? "file" : "files");
        text_bytes(&b, (double)js_int(d, "set_aside_bytes"), "");
        buf_printf(&b, ", the newest is %s: nothing reads them; delete what nobody wants to look at",
                   js_str(d, "set_aside_last"));
        json_object_set_new(d, "aside", json_string(b.data));
        buf_done(&b);
    }
    json_object_set_new(d, "files", json_integer(files));
    json_object_set_new(d, "first", first[0] ? json_string(first) : json_null());
}

int cmd_db_status(struct cli *c)
{
    json_t *items = NULL, *d;
    size_t i;
    bool bad = false;
    int rc = cli_list(c, "/api/v1/db", 0, &items);
    if (rc == CLI_OK) {
        json_array_foreach(items, i, d)
        {
            db_words(d);
            bad |= !js_true(d, "ok");
        }
        out_list(&c->out, db_fields, items);
        rc = bad ? CLI_FINDINGS : CLI_OK;
    }
    json_decref(items);
    return rc;
}

static const struct field file_fields[] = {
    {.key = "file", .title = "FILE", .flags = FIELD_SHRINK},
    {.key = "ok", .title = "OK", .flags = FIELD_STATE},
    {.key = "text", .title = "", .flags = FIELD_SHRINK},
    {.key = "fabric", .flags = FIELD_WIDE},
    {0},
};

int cmd_db_check(struct cli *c)
{
    double seconds = args_has(&c->args, "timeout") ? c->timeout : ROUTE_SECONDS;
    json_t *r = NULL;
    int rc = route_job(c, "/api/v1/db/check", json_object(), seconds, &r);
    if (rc != CLI_OK)
        return rc;
    if (c->out.format == OUT_JSON) {
        out_json(&c->out, r);
    } else {
        out_list(&c->out, file_fields, json_object_get(r, "files"));
        if (c->out.format == OUT_TABLE) {
            tele_count(&c->out, (long long)json_array_size(json_object_get(r, "files")), "file", "files");
            out_printf(&c->out, ", %lld damaged", js_int(r, "damaged"));
            out_newline(&c->out);
        }
    }
    rc = js_int(r, "damaged") > 0 ? CLI_FINDINGS : CLI_OK;
    json_decref(r);
    return rc;
}
