// SPDX-License-Identifier: Apache-2.0
// weft alarm, silence, maintenance: what is wrong, who has taken it on, what nobody is told of.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/tele.h"
#include "cli/text.h"
#include "lib/when.h"
#include "lib/xalloc.h"

static const struct field alarm_fields[] = {
    {.key = "id", .title = "ID", .kind = FIELD_NUMBER},
    {.key = "severity", .title = "SEVERITY", .flags = FIELD_STATE},
    {.key = "since", .title = "SINCE", .kind = FIELD_AGE},
    {.key = "rule", .title = "RULE"},
    {.key = "title", .title = "WHAT", .flags = FIELD_SHRINK},
    {.key = "place", .title = "WHERE"},
    {.key = "reason", .title = "WHY", .flags = FIELD_SHRINK | FIELD_BELOW},
    {.key = "mark", .title = "STATE"},
    {.key = "cause", .kind = FIELD_NUMBER, .flags = FIELD_WIDE},
    {.key = "root", .kind = FIELD_NUMBER, .flags = FIELD_WIDE},
    {.key = "followers", .kind = FIELD_COUNT, .flags = FIELD_WIDE},
    {.key = "lost_gbps", .kind = FIELD_NUMBER, .flags = FIELD_WIDE},
    {.key = "hosts_cut", .kind = FIELD_COUNT, .flags = FIELD_WIDE},
    {.key = "count", .kind = FIELD_COUNT, .flags = FIELD_WIDE},
    {.key = "members", .kind = FIELD_COUNT, .flags = FIELD_WIDE},
    {.key = "active", .flags = FIELD_WIDE},
    {.key = "acked", .flags = FIELD_WIDE},
    {.key = "acked_by", .flags = FIELD_WIDE},
    {.key = "silence", .flags = FIELD_WIDE},
    {.key = "name", .flags = FIELD_WIDE},
    {.key = "subject", .flags = FIELD_WIDE},
    {.key = "cable", .flags = FIELD_WIDE},
    {.key = "peer", .flags = FIELD_WIDE},
    {.key = "advice", .flags = FIELD_WIDE},
    {.key = "fabric", .flags = FIELD_WIDE},
    {.key = "last", .flags = FIELD_WIDE},
    {0},
};

static const struct field detail_fields[] = {
    {.key = "id", .kind = FIELD_NUMBER},
    {.key = "severity", .flags = FIELD_STATE},
    {.key = "rule"},
    {.key = "title"},
    {.key = "place"},
    {.key = "cable"},
    {.key = "reason"},
    {.key = "advice"},
    {.key = "state", .path = "mark"},
    {.key = "cause", .path = "cause_text"},
    {.key = "followers", .kind = FIELD_COUNT},
    {.key = "since", .kind = FIELD_TIME},
    {.key = "last", .kind = FIELD_TIME},
    {.key = "count", .kind = FIELD_COUNT},
    {.key = "evidence"},
    {.key = "acked_by"},
    {.key = "ack_note"},
    {.key = "raised"},
    {.key = "cleared"},
    {.key = "source"},
    {.key = "fabric"},
    {.key = "subject"},
    {0},
};

// "3: receiver does not drain" stands under the alarm 3 that it follows from.
static void follower_title(json_t *a)
{
    long long root = js_int(a, "root");
    if (root > 0 && root != js_int(a, "id"))
        json_object_set_new(a, "title", json_sprintf("  of %lld: %s", root, js_str(a, "title")));
}

static void roots_line(struct cli *c, json_t *items)
{
    long long n = (long long)json_array_size(items), follow = 0;
    json_t *a;
    size_t i;
    json_array_foreach(items, i, a) follow += js_int(a, "root") > 0 && js_int(a, "root") != js_int(a, "id");
    if (c->out.format != OUT_TABLE || follow == 0)
        return;
    tele_count(&c->out, n - follow, "root", "roots");
    out_printf(&c->out, ", %lld %s", follow, follow == 1 ? "follows" : "follow");
    out_newline(&c->out);
}

// "active", and what people have said of it.
static void mark(json_t *a)
{
    const char *word = js_true(a, "active") ? "active" : "over";
    if (json_is_integer(json_object_get(a, "silence")))
        word = "silenced";
    else if (js_true(a, "acked"))
        word = js_true(a, "active") ? "acked" : "acked, over";
    json_object_set_new(a, "mark", json_string(word));
    if (js_str(a, "acked_by")[0] != 0)
        json_object_set_new(a, "acked_by", json_string(cli_user(js_str(a, "acked_by"))));
    if (js_int(a, "members") > 1)
        json_object_set_new(a, "place", json_sprintf("%s (%lld)", js_str(a, "place"), js_int(a, "members")));
}

static bool is_finding(json_t *a)
{
    return js_true(a, "active") && !json_is_integer(json_object_get(a, "silence")) &&
           strcmp(js_str(a, "severity"), "info") != 0;
}

// NULL: of any. Findings have other words for the same.
static const char *severity_asked(const struct cli *c)
{
    static const char *const old[][2] = {{"warning", "minor"}, {"error", "major"}};
    const char *severity = args_value(&c->args, "severity");
    for (size_t i = 0; severity != NULL && i < 2; i++)
        severity = strcmp(severity, old[i][0]) == 0 ? old[i][1] : severity;
    return severity;
}

static void alarm_path(struct cli *c, const char *focus, struct buf *path)
{
    const char *severity = severity_asked(c), *fabric = args_value(&c->args, "fabric");
    buf_puts(path, "/api/v1/alarms");
    if (severity != NULL)
        http_query(path, "severity", severity);
    if (fabric != NULL)
        http_query(path, "fabric", fabric);
    if (focus != NULL)
        http_query(path, "focus", focus);
}

// None is shown: because there is none, or because others were asked for?
static int say_none(struct cli *c, const char *focus)
{
    const char *severity = severity_asked(c), *fabric = args_value(&c->args, "fabric");
    struct buf path = {0}, asked = {0};
    json_t *doc = NULL;
    int rc = CLI_OK;
    long long n = 0;

    buf_puts(&path, "/api/v1/alarms?limit=1");
    if (fabric != NULL)
        http_query(&path, "fabric", fabric);
    if (focus != NULL || severity != NULL)
        rc = cli_get(c, path.data, &doc);
    n = js_int(doc, "total");
    if (severity != NULL)
        buf_printf(&asked, "--severity %s%s", severity, focus != NULL ? " " : "");
    if (focus != NULL)
        buf_puts(&asked, focus);
    if (rc == CLI_OK && n > 0) {
        tele_nothing(c, asked.data, n, "alarm", "alarms");
    } else if (rc == CLI_OK && c->out.format == OUT_TABLE) {
        out_printf(&c->out, "no alarms");
        out_newline(&c->out);
    }
    json_decref(doc);
    buf_done(&path);
    buf_done(&asked);
    return rc;
}

static int list_alarms(struct cli *c)
{
    struct buf path = {0};
    json_t *items = NULL, *a;
    char *focus = tele_focus(c);
    long long limit = 0;
    bool bad = false;
    size_t i;

    int rc = cli_number(c, "limit", 1, 100000000, &limit);
    alarm_path(c, focus, &path);
    if (rc == CLI_OK)
        rc = cli_list(c, path.data, limit, &items);
    if (rc == CLI_OK && json_array_size(items) == 0)
        rc = say_none(c, focus);
    if (rc == CLI_OK) {
        json_array_foreach(items, i, a)
        {
            mark(a);
            bad |= is_finding(a);
            if (c->out.format == OUT_TABLE)
                follower_title(a);
        }
        if (c->out.format != OUT_TABLE || json_array_size(items) > 0)
            out_list(&c->out, alarm_fields, items);
        roots_line(c, items);
        rc = bad ? CLI_FINDINGS : CLI_OK;
    }
    json_decref(items);
    buf_done(&path);
    free(focus);
    return rc;
}

// `weft alarm list` is `weft alarm`.
static void drop_word(struct cli *c, const char *word)
{
    if (c->args.num_words == 0 || strcmp(c->args.word[0], word) != 0)
        return;
    c->args.num_words--;
    memmove(&c->args.word[0], &c->args.word[1], c->args.num_words * sizeof(c->args.word[0]));
}

int cmd_alarm(struct cli *c)
{
    drop_word(c, "list");
    return list_alarms(c);
}

// Path of the thing with the id that is the word.
static int id_path(const char *word, const char *what, const char *below, struct buf *path)
{
    bool alarm = strcmp(what, "alarm") == 0;
    long long id;
    if (text_parse_count(word, 1, INT64_MAX, &id) != 0)
        return cli_fail(CLI_USAGE, word, "is no id; see: weft %s%s", what,
                        alarm ? " (a note goes behind --note)" : "");
    buf_printf(path, "/api/v1/%ss/%lld%s", what, id, below);
    return CLI_OK;
}

static const struct field member_fields[] = {
    {.key = "place", .title = "MEMBER"},
    {.key = "since", .title = "SINCE", .kind = FIELD_AGE},
    {.key = "reason", .title = "WHY", .flags = FIELD_SHRINK | FIELD_BELOW},
    {.key = "id", .title = "ID", .kind = FIELD_NUMBER},
    {0},
};

static const struct field follower_fields[] = {
    {.key = "id", .title = "FOLLOWS", .kind = FIELD_NUMBER},
    {.key = "rule", .title = "RULE"},
    {.key = "title", .title = "WHAT"},
    {.key = "place", .title = "WHERE"},
    {.key = "since", .title = "SINCE", .kind = FIELD_AGE},
    {0},
};

// Of what it follows from, in words.
static void cause_text(struct cli *c, json_t *a)
{
    struct buf path = {0};
    json_t *cause = NULL;
    if (js_int(a, "cause") <= 0)
        return;
    buf_printf(&path, "/api/v1/alarms/%lld", js_int(a, "cause"));
    if (cli_get(c, path.data, &cause) == CLI_OK)
        json_object_set_new(a, "cause_text",
                            json_sprintf("alarm %lld, %s %s: %s", js_int(cause, "id"), js_str(cause, "rule"),
                                         js_str(cause, "title"), js_str(cause, "place")));
    json_decref(cause);
    buf_done(&path);
}

static void show_alarm(struct cli *c, json_t *a)
{
    bool group = json_array_size(json_object_get(a, "member")) > 0;
    mark(a);
    if (c->out.format != OUT_JSON)
        cause_text(c, a);
    if (c->out.format != OUT_JSON)
        tele_advice(a, json_array_get(json_object_get(a, "ends"), 0));
    if (c->out.format == OUT_JSON)
        out_json(&c->out, a);
    else
        out_with(&c->out, detail_fields, a, group ? "member" : "follower",
                 group ? member_fields : follower_fields);
}

int cmd_alarm_show(struct cli *c)
{
    struct buf path = {0};
    json_t *a = NULL;
    int rc = id_path(c->args.word[0], "alarm", "", &path);
    if (rc == CLI_OK)
        rc = cli_get(c, path.data, &a);
    if (rc == CLI_OK) {
        rc = is_finding(a) ? CLI_FINDINGS : CLI_OK;
        show_alarm(c, a);
    }
    json_decref(a);
    buf_done(&path);
    return rc;
}

static int ack_one(struct cli *c, const char *word)
{
    const char *note = args_value(&c->args, "note");
    struct buf path = {0};
    json_t *a = NULL, *body = json_object();
    if (note != NULL)
        json_object_set_new(body, "note", json_string(note));
    int rc = id_path(word, "alarm", "/ack", &path);
    if (rc == CLI_OK)
        rc = cli_post(c, path.data, body, &a);
    else
        json_decref(body);
    if (rc == CLI_OK && c->out.format == OUT_JSON) {
        out_json(&c->out, a);
    } else if (rc == CLI_OK) {
        out_printf(&c->out, "alarm %lld (%s %s) is acknowledged", js_int(a, "id"), js_str(a, "rule"),
                   js_str(a, "place"));
        out_newline(&c->out);
    }
    json_decref(a);
    buf_done(&path);
    return rc;
}

// All words are ids: that is looked at before anything is done.
static int check_ids(struct cli *c, const char *what)
{
    struct buf path = {0};
    int rc = CLI_OK;
    for (unsigned i = 0; i < c->args.num_words && rc == CLI_OK; i++)
        rc = id_path(c->args.word[i], what, "", &path);
    buf_done(&path);
    return rc;
}

// Each is tried; the exit code is that of the first that failed.
static int each_id(struct cli *c, const char *what, int (*one)(struct cli *c, const char *word))
{
    int rc = check_ids(c, what), first = rc;
    for (unsigned i = 0; i < c->args.num_words && rc == CLI_OK; i++) {
        int x = one(c, c->args.word[i]);
        first = first == CLI_OK ? x : first;
    }
    return first;
}

int cmd_alarm_ack(struct cli *c)
{
    return each_id(c, "alarm", ack_one);
}

// --- silences ---

static const struct field silence_fields[] = {
    {.key = "id", .title = "ID", .kind = FIELD_NUMBER},
    {.key = "kind", .title = "KIND"},
    {.key = "text", .title = "WHAT", .flags = FIELD_SHRINK},
    {.key = "rule", .title = "RULE"},
    {.key = "from", .title = "FROM", .kind = FIELD_TIME},
    {.key = "until", .title = "UNTIL", .kind = FIELD_TIME},
    {.key = "owner", .title = "OWNER"},
    {.key = "reason", .title = "REASON", .flags = FIELD_SHRINK | FIELD_BELOW},
    {.key = "covers", .title = "ALARMS", .kind = FIELD_COUNT},
    {.key = "focus", .flags = FIELD_WIDE},
    {.key = "maintenance", .flags = FIELD_WIDE},
    {.key = "now", .flags = FIELD_WIDE},
    {0},
};

static void silence_words(json_t *s)
{
    json_object_set_new(s, "kind", json_string(js_true(s, "maintenance") ? "maintenance" : "silence"));
    json_object_set_new(s, "owner", json_string(cli_user(js_str(s, "owner"))));
}

int cmd_silence(struct cli *c)
{
    json_t *items = NULL, *s;
    size_t i;
    int rc = cli_list(c, "/api/v1/silences", 0, &items);
    if (rc == CLI_OK) {
        json_array_foreach(items, i, s) silence_words(s);
        out_list(&c->out, silence_fields, items);
    }
    json_decref(items);
    return rc;
}

static void say_silence(struct cli *c, json_t *s)
{
    struct out *o = &c->out;
    struct buf b = {0};
    text_time(&b, js_str(s, "until"), false);
    out_printf(o, "%s %lld until %s: %s%s%s, ", js_true(s, "maintenance") ? "maintenance" : "silence",
               js_int(s, "id"), b.data, js_str(s, "text")[0] ? js_str(s, "text") : "everything",
               js_str(s, "rule")[0] ? ", rule " : "", js_str(s, "rule"));
    tele_count(o, js_int(s, "ports"), "port", "ports");
    out_printf(o, " and ");
    tele_count(o, js_int(s, "covers"), "alarm now", "alarms now");
    out_newline(o);
    if (js_int(s, "ports") == 0) {
        out_paint(o, COLOUR_YELLOW, "warning: it matches no port now, neither seen nor in the blueprint");
        out_newline(o);
    }
    buf_done(&b);
}

// What is wrong with what is asked for; CLI_OK.
static int check_silence(struct cli *c, const char *focus, const char *rule)
{
    int64_t ns;
    if (focus == NULL && rule == NULL && !args_has(&c->args, "all"))
        return cli_fail(CLI_USAGE, NULL,
                        "of what? give a focus, such as rail=3 or NODE/PORT, or --rule; everything: --all");
    if (focus != NULL && args_has(&c->args, "all"))
        return cli_fail(CLI_USAGE, "--all", "is everything: no focus goes with it");
    if (args_value(&c->args, "reason") == NULL)
        return cli_fail(CLI_USAGE, NULL, "why? give --reason; those who look for the alarm read it");
    if (args_value(&c->args, "for") == NULL && args_value(&c->args, "until") == NULL)
        return cli_fail(CLI_USAGE, NULL,
                        "until when? give --for (2h) or --until (18:00, 2026-01-31T18:00:00Z)");
    return tele_time(c, "until", true, &ns);
}

// Takes focus.
static int add_silence(struct cli *c, char *focus, const char *rule, bool maintenance)
{
    static const char *const option[] = {"for", "reason", "owner"};
    char until[40];
    int64_t ns = 0;
    json_t *s = NULL;

    if (args_value(&c->args, "rule") != NULL)
        rule = args_value(&c->args, "rule");
    int rc = check_silence(c, focus, rule);
    json_t *body = json_pack("{s:s, s:b}", "focus", focus != NULL ? focus : "", "maintenance", maintenance);
    free(focus);
    if (rc != CLI_OK) {
        json_decref(body);
        return rc;
    }
    if (rule != NULL)
        json_object_set_new(body, "rule", json_string(rule));
    for (size_t i = 0; i < sizeof(option) / sizeof(option[0]); i++)
        if (args_value(&c->args, option[i]) != NULL)
            json_object_set_new(body, option[i], json_string(args_value(&c->args, option[i])));
    if (args_value(&c->args, "until") != NULL && tele_time(c, "until", true, &ns) == CLI_OK)
        json_object_set_new(body, "until", json_string(wall_format(ns, until, sizeof(until))));
    rc = cli_post(c, "/api/v1/silences", body, &s);
    if (rc == CLI_OK && c->out.format == OUT_JSON)
        out_json(&c->out, s);
    else if (rc == CLI_OK)
        say_silence(c, s);
    json_decref(s);
    return rc;
}

int cmd_silence_add(struct cli *c)
{
    return add_silence(c, tele_focus(c), NULL, false);
}

int cmd_maintenance(struct cli *c)
{
    char *focus = tele_focus(c);
    if (focus == NULL)
        return cli_fail(CLI_USAGE, NULL, "of what? give a focus, such as 'leaf-r3-*' or 'su=4'");
    return add_silence(c, focus, NULL, true);
}

// The ends of the alarm, as a focus.
static char *focus_of_alarm(json_t *a)
{
    struct buf b = {0};
    json_t *e;
    size_t i;
    json_array_foreach(json_object_get(a, "ends"), i, e)
    {
        buf_printf(&b, "%sguid=%s", b.len ? " or " : "", js_str(e, "guid"));
        if (js_int(e, "port") > 0)
            buf_printf(&b, " port=%lld", js_int(e, "port"));
    }
    return b.len > 0 ? buf_take(&b) : NULL;
}

int cmd_alarm_silence(struct cli *c)
{
    struct buf path = {0};
    json_t *a = NULL;
    int rc = id_path(c->args.word[0], "alarm", "", &path);
    if (rc == CLI_OK)
        rc = cli_get(c, path.data, &a);
    if (rc == CLI_OK) {
        char *focus = focus_of_alarm(a);
        if (focus == NULL && args_value(&c->args, "rule") == NULL)
            rc =
                cli_fail(CLI_USAGE, c->args.word[0],
                         "is about no port; silence its rule: weft silence add --rule %s", js_str(a, "rule"));
        else
            rc = add_silence(c, focus, js_str(a, "rule"), false);
    }
    json_decref(a);
    buf_done(&path);
    return rc;
}

static int end_one(struct cli *c, const char *word)
{
    struct buf path = {0};
    json_t *r = NULL;
    int rc = id_path(word, "silence", "", &path);
    if (rc == CLI_OK)
        rc = cli_send(c, "DELETE", path.data, NULL, &r);
    if (rc == CLI_OK)
        cli_said(c, r);
    json_decref(r);
    buf_done(&path);
    return rc;
}

int cmd_silence_end(struct cli *c)
{
    return each_id(c, "silence", end_one);
}
