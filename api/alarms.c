// SPDX-License-Identifier: Apache-2.0
// Alarms, and what people say about them: acknowledged, silenced, maintenance windows.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/facts.h"
#include "lib/guid.h"
#include "lib/when.h"
#include "lib/word.h"
#include "lib/xalloc.h"
#include "telemetry/alarm_sources.h"

static struct alarms *alarms_of(struct request *r)
{
    if (r->api->c.alarms == NULL)
        answer_problem(r, 409, "no alarms are kept here: this weftd only looks at a file");
    return r->api->c.alarms;
}

static bool parse_id(struct request *r, const char *what, uint64_t *ret)
{
    char *end;
    size_t n = strlen(r->arg);
    *ret = n > 0 && n <= 19 && strspn(r->arg, "0123456789") == n ? strtoull(r->arg, &end, 10) : 0;
    if (*ret == 0)
        answer_problem(r, 404, "no %s \"%.40s\": ids are whole numbers; " API_BASE "/%ss lists them", what,
                       r->arg, what);
    return *ret != 0;
}

// --- rows ---

static const struct field place_fields[] = {
    {.name = "guid", .type = FIELD_GUID, .at = offsetof(struct end_row, guid), "NodeGUID"},
    {.name = "name", .type = FIELD_STR, .at = offsetof(struct end_row, name), "its description"},
    {.name = "port", .type = FIELD_INT, .at = offsetof(struct end_row, port), "port number; 0: the node"},
    {0},
};
static const struct schema schema_alarm_end = {
    .name = "alarm_end", "An end of what an alarm is about", sizeof(struct end_row), place_fields};

struct alarm_row {
    int64_t id, since, last, cleared_at, count, silence, members, group, cause, root, followers, hosts_cut;
    double lost_gbps;
    const char *fabric, *rule, *name, *title, *severity, *subject, *place, *peer, *cable, *reason, *advice,
        *evidence, *acked_by, *ack_note, *raised, *cleared, *source;
    bool active, acked, is_group;
    struct items ends, member, follower;
};
#define ROW(f) offsetof(struct alarm_row, f)
static const char *const severities[] = {"info", "minor", "major", "critical", NULL};
#define ALARM_FIELDS                                                                                         \
    {.name = "id", .type = FIELD_INT, .at = ROW(id), "rises; never given twice, also over restarts"},        \
        {.name = "severity",                                                                                 \
         .type = FIELD_STR,                                                                                  \
         .at = ROW(severity),                                                                                \
         "how bad it is",                                                                                    \
         .name_of = severities},                                                                             \
        {.name = "rule", .type = FIELD_STR, .at = ROW(rule), "such as L06; doc/alarms.md has all"},          \
        {.name = "name", .type = FIELD_STR, .at = ROW(name), "the rule's name; stable"},                     \
        {.name = "title", .type = FIELD_STR, .at = ROW(title), "the same for people"},                       \
        {.name = "fabric", .type = FIELD_STR, .at = ROW(fabric), "in which fabric; \"\": in none"},          \
        {.name = "subject", .type = FIELD_STR, .at = ROW(subject), "what it is about, as identity"},         \
        {.name = "place", .type = FIELD_STR, .at = ROW(place), "the same for people: both ends"},            \
        {.name = "peer", .type = FIELD_STR, .at = ROW(peer), "the far end's name, or \"\""},                 \
        {.name = "cable", .type = FIELD_STR, .at = ROW(cable), "serial number, or \"\""},                    \
        {.name = "reason", .type = FIELD_STR, .at = ROW(reason), "why, with numbers and limits"},            \
        {.name = "advice", .type = FIELD_STR, .at = ROW(advice), "what to do"},                              \
        {.name = "evidence",                                                                                 \
         .type = FIELD_RAW,                                                                                  \
         .at = ROW(evidence),                                                                                \
         "values that speak for it",                                                                         \
         .null = true},                                                                                      \
        {.name = "since", .type = FIELD_TIME, .at = ROW(since), "first raised"},                             \
        {.name = "last", .type = FIELD_TIME, .at = ROW(last), "raised or changed last"},                     \
        {.name = "count", .type = FIELD_INT, .at = ROW(count), "times raised"},                              \
        {.name = "active",                                                                                   \
         .type = FIELD_BOOL,                                                                                 \
         .at = ROW(active),                                                                                  \
         "the condition holds now; else it only stays for a while to be seen"},                              \
        {.name = "cleared_at",                                                                               \
         .type = FIELD_TIME,                                                                                 \
         .at = ROW(cleared_at),                                                                              \
         "when the condition went",                                                                          \
         .null = true},                                                                                      \
        {.name = "acked", .type = FIELD_BOOL, .at = ROW(acked), "somebody has taken it on"},                 \
        {.name = "acked_by", .type = FIELD_STR, .at = ROW(acked_by), "who", .null = true},                   \
        {.name = "ack_note", .type = FIELD_STR, .at = ROW(ack_note), "what was said", .null = true},         \
        {.name = "silence",                                                                                  \
         .type = FIELD_INT,                                                                                  \
         .at = ROW(silence),                                                                                 \
         "id of the silence that covers it",                                                                 \
         .null = true},                                                                                      \
        {.name = "members", .type = FIELD_INT, .at = ROW(members), "of a group; 1 otherwise"},               \
        {.name = "is_group", .type = FIELD_BOOL, .at = ROW(is_group), "one cause for several"},              \
        {.name = "group",                                                                                    \
         .type = FIELD_INT,                                                                                  \
         .at = ROW(group),                                                                                   \
         "id of the group that it is a member of",                                                           \
         .null = true},                                                                                      \
        {.name = "cause",                                                                                    \
         .type = FIELD_INT,                                                                                  \
         .at = ROW(cause),                                                                                   \
         "id of the alarm that it follows from",                                                             \
         .null = true},                                                                                      \
        {.name = "root",                                                                                     \
         .type = FIELD_INT,                                                                                  \
         .at = ROW(root),                                                                                    \
         "the last one of such a chain; its own id when it follows from none"},                              \
        {.name = "followers",                                                                                \
         .type = FIELD_INT,                                                                                  \
         .at = ROW(followers),                                                                               \
         "alarms in the list that follow from it"},                                                          \
        {.name = "lost_gbps",                                                                                \
         .type = FIELD_NUM,                                                                                  \
         .at = ROW(lost_gbps),                                                                               \
         "Gb/s that cannot be carried for it; 0: not known"},                                                \
        {.name = "hosts_cut", .type = FIELD_INT, .at = ROW(hosts_cut), "hosts that it cuts off"},            \
    {                                                                                                        \
        .name = "ends", .type = FIELD_LIST, .at = ROW(ends), "of the link, or the node", &schema_alarm_end   \
    }
static const struct field alarm_fields[] = {ALARM_FIELDS, {0}};
const struct schema schema_alarm = {
    .name = "alarm", "Something that is wrong", sizeof(struct alarm_row), alarm_fields};
static const struct field detail_fields[] = {
    ALARM_FIELDS,
    {.name = "member", .type = FIELD_LIST, .at = ROW(member), "what a group has taken in", &schema_alarm},
    {.name = "follower", .type = FIELD_LIST, .at = ROW(follower), "what follows from it", &schema_alarm},
    {.name = "raised", .type = FIELD_STR, .at = ROW(raised), "when the rule raises"},
    {.name = "cleared", .type = FIELD_STR, .at = ROW(cleared), "when it clears"},
    {.name = "source", .type = FIELD_STR, .at = ROW(source), "where the rule comes from"},
    {0},
};
const struct schema schema_alarm_detail = {
    .name = "alarm_detail", "An alarm with its rule", sizeof(struct alarm_row), detail_fields};

const struct param alarm_params[] = {
    {.name = "fabric", .type = PARAM_STR, .doc = "only of this fabric"},
    {.name = "severity", .type = PARAM_ENUM, .name_of = severities, .doc = "only this severity and worse"},
    {.name = "rule", .type = PARAM_STR, .doc = "only of this rule, such as L06"},
    {.name = "active", .type = PARAM_BOOL, .doc = "only those whose condition holds now"},
    {.name = "silenced", .type = PARAM_BOOL, .doc = "0: without those that are silenced"},
    {.name = "focus",
     .type = PARAM_STR,
     .doc = "only alarms with these fields, in the focus language: severity=major and count>3"},
    {0},
};

struct alarm_space {
    struct end_row end[2];
    char *evidence; // checked
};

static const char *name_of_node(struct api *a, const char *fabric, uint64_t guid)
{
    for (unsigned i = 0; i < a->c.num_fabrics; i++) {
        const struct fabric *f = strcmp(a->c.fabric[i]->name, fabric) == 0 ? view_fabric(&a->view[i]) : NULL;
        const struct node *n = f != NULL ? fabric_by_guid(f, guid) : NULL;
        if (n != NULL)
            return fabric_desc(f, n);
    }
    return "";
}

static char *checked_json(const char *text)
{
    json_t *j = text != NULL && text[0] != 0 ? json_loads(text, 0, NULL) : NULL;
    char *s = json_is_object(j) ? json_dumps(j, JSON_COMPACT) : NULL;
    json_decref(j);
    return s;
}

static void fill(struct api *a, const struct alarm *x, struct alarm_row *row, struct alarm_space *s)
{
    size_t ends = 0;
    for (int i = 0; i < 2; i++)
        if (x->node_guid[i] != 0)
            s->end[ends++] = (struct end_row){.guid = x->node_guid[i],
                                              .port = x->port[i],
                                              .name = name_of_node(a, x->fabric, x->node_guid[i])};
    s->evidence = NULL;
    *row = (struct alarm_row){.id = (int64_t)x->id,
                              .severity = alarm_severity_name(x->severity),
                              .rule = x->rule->id,
                              .name = x->rule->name,
                              .title = x->rule->title,
                              .fabric = x->fabric,
                              .subject = x->subject,
                              .place = x->place,
                              .peer = x->peer,
                              .cable = x->cable,
                              .reason = x->reason,
                              .advice = x->advice,
                              .since = x->since_wall_ns,
                              .last = x->last_wall_ns,
                              .count = (int64_t)x->count,
                              .active = x->active,
                              .cleared_at = x->cleared_wall_ns,
                              .acked = x->acked,
                              .acked_by = x->acked ? x->acked_by : NULL,
                              .ack_note = x->acked ? x->ack_note : NULL,
                              .silence = x->silence != 0 ? (int64_t)x->silence : NO_INT,
                              .members = x->members,
                              .is_group = x->group,
                              .group = x->leader != 0 ? (int64_t)x->leader : NO_INT,
                              .cause = x->cause != 0 ? (int64_t)x->cause : NO_INT,
                              .root = (int64_t)(x->root != 0 ? x->root : x->id),
                              .followers = x->followers,
                              .lost_gbps = x->lost_bps * 8 / 1e9,
                              .hosts_cut = x->hosts,
                              .ends = {s->end, ends},
                              .raised = x->rule->raised,
                              .cleared = x->rule->cleared,
                              .source = x->rule->source};
}

// Parsed and written again: only for rows that are shown.
static void fill_evidence(const struct alarm *x, struct alarm_row *row, struct alarm_space *s)
{
    row->evidence = s->evidence = checked_json(x->evidence);
}

// --- the list ---

// --- by a focus ---

// What a finding's alarm is about begins with its code.
static bool has_code(const struct alarm_row *x, const char *word)
{
    char code[40];
    size_t n = strcspn(x->subject, " ");
    snprintf(code, sizeof(code), "%.*s", (int)(n < sizeof(code) ? n : 0), x->subject);
    return code[0] != 0 && word_glob(word, code);
}

static bool named(const void *row, const void *end, const char *word)
{
    const struct alarm_row *x = row;
    return (end != NULL && place_named(end, word)) || word_glob(word, x->rule) || word_glob(word, x->name) ||
           (x->cable[0] != 0 && word_glob(word, x->cable)) || word_glob(word, x->subject) ||
           has_code(x, word);
}

static const struct sieve_rows alarm_sieve = {.row = &schema_alarm,
                                              .end = &schema_facts,
                                              .end_first = PLACE_NUM,
                                              .since = "since",
                                              .named = named,
                                              .part = facts_part};

// Words that mean an alarm, not where it is; also the code of a finding that is none now.
static bool is_alarm_word(const char *word)
{
    struct alarm_source of;
    if (alarm_of_finding(word, FINDING_ERROR, &of) || alarm_of_finding(word, FINDING_WARNING, &of))
        return true;
    for (unsigned i = 0; i < alarm_num_rules; i++)
        if (word_glob(word, alarm_rules[i].id) || word_glob(word, alarm_rules[i].name))
            return true;
    return false;
}

// What a focus asks, with counters as they are in this turn of the loop, of the fabric that was asked of
// last.
struct asking {
    struct api *a;
    struct sieve *focus; // NULL: all are wanted
    struct view *v;
    struct tele_view w;
    bool counted;
};

static void asking_end(struct asking *k)
{
    if (k->counted)
        tele_view_done(&k->w);
    k->counted = false;
    k->v = NULL;
}

static void asking_of(struct asking *k, const char *fabric)
{
    struct view *v = view_named(k->a, fabric);
    if (v == k->v)
        return;
    asking_end(k);
    k->v = v;
    k->counted = v != NULL && sieve_parts(k->focus) != 0 && tele_view_at(k->a, v, &k->w);
}

static bool by_ends(struct asking *k, const struct alarm_row *row, const struct alarm *x, bool *ret_any)
{
    struct facts_space end;
    asking_of(k, x->fabric);
    for (int i = 0; i < 2; i++) {
        if (x->node_guid[i] == 0)
            continue;
        *ret_any = true;
        facts_fill(k->a, x->fabric, k->counted ? &k->w : NULL, x->node_guid[i], x->port[i],
                   sieve_parts(k->focus), &end);
        end.row.alarm = (int64_t)x->id; // itself
        end.row.alarm_rule = x->rule->id;
        if (sieve_has_end(k->focus, row, &end.row))
            return true;
    }
    return false;
}

// By either end, of its own or of what a group has taken in.
static bool focus_has(struct asking *k, const struct alarm_row *row, const struct alarm *x)
{
    const struct alarm **member = NULL;
    bool any = false;
    if (k->focus == NULL || by_ends(k, row, x, &any))
        return true;
    uint32_t n = x->group ? alarm_members(k->a->c.alarms, x->id, &member) : 0;
    bool hit = false;
    for (uint32_t i = 0; i < n && !hit; i++)
        hit = by_ends(k, row, member[i], &any);
    free(member);
    return hit || (!any && sieve_has(k->focus, row));
}

// Where nothing is collected nobody knows: that nothing matches would be no answer.
static bool take_focus(struct request *r, struct sieve **ret)
{
    struct tele_view w;
    bool any = false;
    if (!query_focus_of(r, &alarm_sieve, is_alarm_word, ret))
        return false;
    for (unsigned i = 0; i < r->api->c.num_fabrics && !any; i++)
        any = tele_view_at(r->api, &r->api->view[i], &w);
    if (any || *ret == NULL || !(sieve_parts(*ret) & FACTS_COUNTED & ~(unsigned)FACTS_ALARM))
        return true;
    answer_problem(r, 409, "no counters are collected: what they say of ports is not known");
    sieve_free(*ret);
    return false;
}

struct alarm_filter {
    const char *fabric, *rule, *silenced;
    enum alarm_severity least;
    bool active;
    struct sieve *focus;
};

static bool take_filter(struct request *r, struct alarm_filter *f)
{
    const char *severity = query_str(r, "severity");
    *f = (struct alarm_filter){.fabric = query_str(r, "fabric"),
                               .rule = query_str(r, "rule"),
                               .silenced = query_str(r, "silenced"),
                               .active = query_bool(r, "active")};
    for (unsigned i = 0; severity != NULL && severities[i] != NULL; i++)
        if (strcmp(severities[i], severity) == 0)
            f->least = (enum alarm_severity)i;
    if (f->rule != NULL && alarm_rule(f->rule) == NULL) {
        answer_problem(r, 400, "no rule \"%.40s\"; doc/alarms.md lists them", f->rule);
        return false;
    }
    return take_focus(r, &f->focus);
}

static bool passes(const struct alarm_filter *f, const struct alarm *x, bool silenced)
{
    return (f->fabric == NULL || strcmp(f->fabric, x->fabric) == 0) &&
           (f->rule == NULL || strcmp(f->rule, x->rule->id) == 0) && x->severity >= f->least &&
           (!f->active || x->active) && (f->silenced == NULL || silenced == (x->silence != 0));
}

// Done a slice a turn. Alarms come and go meanwhile: what is on the list when it begins is remembered by id.
struct alarm_walk {
    struct slices s;
    struct alarm_filter f;
    struct asking ask;
    bool silenced, begun;
    struct list l;
    uint64_t *id;
    uint64_t i, n;
    int64_t total;
};

static void walk_begin(struct alarm_walk *k, const struct alarms *all)
{
    const struct alarm *list = NULL;
    k->n = alarms_list(all, &list);
    k->id = xcalloc(k->n + 1, sizeof(*k->id));
    for (uint64_t i = 0; i < k->n; i++) {
        bool ok = passes(&k->f, &list[i], k->silenced);
        k->id[i] = ok ? list[i].id : 0;
        k->total += ok;
    }
    list_begin(&k->l, k->s.r, &schema_alarm);
    k->begun = true;
}

static void put_alarm(struct alarm_walk *k, const struct alarm *x)
{
    struct alarm_row row;
    struct alarm_space space;
    fill(k->s.r->api, x, &row, &space);
    if (!focus_has(&k->ask, &row, x))
        return;
    fill_evidence(x, &row, &space);
    list_item(&k->l, &row);
    free(space.evidence);
}

static bool walk_step(struct slices *s)
{
    struct alarm_walk *k = (struct alarm_walk *)s;
    const struct alarms *all = s->r->api->c.alarms;
    char next[24];

    if (!k->begun)
        walk_begin(k, all);
    k->ask = (struct asking){.a = s->r->api, .focus = k->f.focus};
    for (; k->i < k->n && !list_full(&k->l) && !slice_over(s); k->i++) {
        const struct alarm *x = k->id[k->i] != 0 ? alarm_by_id(all, k->id[k->i]) : NULL;
        if (x != NULL)
            put_alarm(k, x);
    }
    asking_end(&k->ask);
    if (k->i < k->n && !list_full(&k->l))
        return false;
    list_end(&k->l, k->i < k->n ? number_text(k->i, next) : NULL, k->f.focus == NULL ? k->total : NO_INT,
             NO_INT, wall_now_ns());
    return true;
}

static void walk_free(struct slices *s)
{
    struct alarm_walk *k = (struct alarm_walk *)s;
    sieve_free(k->f.focus);
    free(k->id);
    free(k);
}

void get_alarms(struct request *r)
{
    struct alarm_filter f;
    uint64_t i;

    if (alarms_of(r) == NULL || !cursor_number(r, &i) || !take_filter(r, &f))
        return;
    struct alarm_walk *k = xcalloc(1, sizeof(*k));
    k->s.step = walk_step;
    k->s.free = walk_free;
    k->f = f;
    k->silenced = query_bool(r, "silenced");
    k->i = i;
    slices_run(r, &k->s);
}

#define MEMBERS_MAX 1000

struct alarm_rows {
    struct alarm_row *row;
    struct alarm_space *space;
    uint32_t n;
};

static void rows_of(struct api *a, const struct alarm **list, uint32_t n, struct alarm_rows *ret)
{
    n = n < MEMBERS_MAX ? n : MEMBERS_MAX;
    *ret = (struct alarm_rows){xcalloc(n + 1, sizeof(*ret->row)), xcalloc(n + 1, sizeof(*ret->space)), n};
    for (uint32_t i = 0; i < n; i++) {
        fill(a, list[i], &ret->row[i], &ret->space[i]);
        fill_evidence(list[i], &ret->row[i], &ret->space[i]);
    }
    free(list);
}

static void rows_done(struct alarm_rows *x)
{
    for (uint32_t i = 0; i < x->n; i++)
        free(x->space[i].evidence);
    free(x->row);
    free(x->space);
}

static void answer_alarm(struct request *r, const struct alarms *all, const struct alarm *x)
{
    const struct alarm **member = NULL, **follower = NULL, *list;
    struct alarm_rows members, followers;
    struct alarm_row row;
    struct alarm_space space;
    uint32_t n = x->group ? alarm_members(all, x->id, &member) : 0;

    alarms_list(all, &list); // causes are of now
    rows_of(r->api, member, n, &members);
    n = alarm_followers(all, x->id, &follower);
    rows_of(r->api, follower, n, &followers);
    fill(r->api, x, &row, &space);
    fill_evidence(x, &row, &space);
    row.member = (struct items){members.row, members.n};
    row.follower = (struct items){followers.row, followers.n};
    answer_struct(r, 200, &schema_alarm_detail, &row);
    rows_done(&members);
    rows_done(&followers);
    free(space.evidence);
}

static const struct alarm *asked(struct request *r, struct alarms **ret)
{
    uint64_t id;
    *ret = alarms_of(r);
    if (*ret == NULL || !parse_id(r, "alarm", &id))
        return NULL;
    const struct alarm *x = alarm_by_id(*ret, id);
    if (x == NULL)
        answer_problem(r, 404,
                       "no alarm %.40s: it is over (its end is in " API_BASE
                       "/events?kind=alarm-cleared), or never was",
                       r->arg);
    return x;
}

void get_alarm(struct request *r)
{
    struct alarms *all;
    const struct alarm *x = asked(r, &all);
    if (x != NULL)
        answer_alarm(r, all, x);
}

// --- acknowledged ---

static const struct field ack_fields[] = {
    {.name = "note", .type = FIELD_STR, .at = 0, "what to say about it"},
    {0},
};
const struct schema schema_ack_body = {.name = "ack", "An alarm is taken on", 1, ack_fields, true};

void post_alarm_ack(struct request *r)
{
    const char *note = json_string_value(json_object_get(r->json, "note"));
    char by[USER_TEXT];
    struct alarms *all;
    const struct alarm *x = asked(r, &all);
    if (x == NULL)
        return;
    uint64_t id = x->id;
    alarm_ack(all, id, user_text(r, by), note != NULL ? note : "");
    x = alarm_by_id(all, id);
    audit_action(r, x->place, "alarm %llu (%s) is acknowledged%s%.200s", (unsigned long long)id, x->rule->id,
                 note != NULL ? ": " : "", note != NULL ? note : "");
    answer_alarm(r, all, x);
}

// --- silences ---

struct silence_row {
    int64_t id, from, until, covers, ports;
    const char *focus, *text, *rule, *owner, *reason;
    bool maintenance, now;
};
#define SILENCE(f) offsetof(struct silence_row, f)
static const struct field silence_fields[] = {
    {.name = "id", .type = FIELD_INT, .at = SILENCE(id), "its id"},
    {.name = "focus",
     .type = FIELD_STR,
     .at = SILENCE(focus),
     "ports that it covers, in the focus language; \"\": all"},
    {.name = "text", .type = FIELD_STR, .at = SILENCE(text), "the same for people: with names, not GUIDs"},
    {.name = "rule", .type = FIELD_STR, .at = SILENCE(rule), "only alarms of this rule; \"\": of any"},
    {.name = "owner", .type = FIELD_STR, .at = SILENCE(owner), "whose it is"},
    {.name = "reason", .type = FIELD_STR, .at = SILENCE(reason), "why"},
    {.name = "from", .type = FIELD_TIME, .at = SILENCE(from), "its beginning"},
    {.name = "until", .type = FIELD_TIME, .at = SILENCE(until), "its end"},
    {.name = "now", .type = FIELD_BOOL, .at = SILENCE(now), "it has begun"},
    {.name = "maintenance",
     .type = FIELD_BOOL,
     .at = SILENCE(maintenance),
     "at its end what has not come back is listed"},
    {.name = "covers", .type = FIELD_INT, .at = SILENCE(covers), "alarms that it covers now"},
    {.name = "ports",
     .type = FIELD_INT,
     .at = SILENCE(ports),
     "ports that it covers, seen or of the blueprint; counted only when it is added",
     .null = true},
    {0},
};
const struct schema schema_silence = {.name = "silence",
                                      "Alarms that nobody is told of for a time",
                                      sizeof(struct silence_row),
                                      silence_fields};

static const struct field silence_body_fields[] = {
    {.name = "focus",
     .type = FIELD_STR,
     .at = 0,
     "ports, in the focus language, by fields node, name, guid, port, place, role, type, rail, su, tier, "
     "plane, "
     "kind; \"\": all"},
    {.name = "rule", .type = FIELD_STR, .at = 0, "only this rule"},
    {.name = "for", .type = FIELD_STR, .at = 0, "for so long: 30m, 2h, 3d"},
    {.name = "until", .type = FIELD_STR, .at = 0, "or until then: 2026-01-31T18:00:00Z"},
    {.name = "from", .type = FIELD_STR, .at = 0, "from then on; now when absent"},
    {.name = "owner", .type = FIELD_STR, .at = 0, "whose it is; who asks, when absent"},
    {.name = "reason", .type = FIELD_STR, .at = 0, "why", .need = true},
    {.name = "maintenance", .type = FIELD_BOOL, .at = 0, "a maintenance window"},
    {0},
};
const struct schema schema_silence_body = {
    .name = "silence_asked", "Alarms to be silent", 1, silence_body_fields, true};

// The name of the node of which "guid=0x…" at p tells; "": p says nothing of the kind, or nobody is called
// so.
static const char *named_at(struct api *a, const char *p)
{
    static const char key[] = "guid=";
    char guid[GUID_STR_SIZE];
    uint64_t v;
    const char *name = "";
    if (strncmp(p, key, sizeof(key) - 1) != 0)
        return "";
    snprintf(guid, sizeof(guid), "%.18s", p + sizeof(key) - 1);
    if (strlen(guid) == 18 && guid_parse(guid, &v) == 0)
        for (unsigned i = 0; i < a->c.num_fabrics && name[0] == 0; i++)
            name = view_node_name(&a->view[i], v);
    return name;
}

// "guid=0x… port=3" becomes "leaf-1/3". malloc'd.
static char *with_names(struct api *a, const char *focus)
{
    struct buf b = {0};
    buf_puts(&b, "");
    for (const char *p = focus; *p != 0;) {
        unsigned port;
        int n = 0;
        const char *name = named_at(a, p);
        if (name[0] == 0) {
            buf_putc(&b, *p++);
            continue;
        }
        p += strlen("guid=0x0123456789abcdef");
        buf_puts(&b, name);
        if (sscanf(p, " port=%3u%n", &port, &n) == 1 && n > 0)
            buf_printf(&b, "/%u", port);
        p += n;
    }
    return buf_take(&b);
}

// text is the caller's.
static void fill_silence(struct api *a, const struct alarm_silence *s, struct silence_row *row)
{
    const struct alarm *list = NULL;
    uint32_t n = alarms_list(a->c.alarms, &list);
    *row = (struct silence_row){.id = (int64_t)s->id,
                                .ports = NO_INT,
                                .focus = s->focus,
                                .text = with_names(a, s->focus),
                                .rule = s->rule,
                                .owner = s->owner,
                                .reason = s->reason,
                                .from = s->from_wall_ns,
                                .until = s->until_wall_ns,
                                .now = s->from_wall_ns <= wall_now_ns(),
                                .maintenance = s->maintenance};
    for (uint32_t i = 0; i < n; i++)
        row->covers += list[i].silence == s->id;
}

void get_silences(struct request *r)
{
    struct alarms *all = alarms_of(r);
    const struct alarm_silence *s = NULL;
    struct silence_row row;
    struct list l;
    uint64_t i;
    char next[24];

    if (all == NULL || !cursor_number(r, &i))
        return;
    uint32_t n = alarm_silences(all, &s);
    list_begin(&l, r, &schema_silence);
    for (; i < n && !list_full(&l); i++) {
        fill_silence(r->api, &s[i], &row);
        list_item(&l, &row);
        free((char *)row.text);
    }
    list_end(&l, i < n ? number_text(i, next) : NULL, n, NO_INT, wall_now_ns());
}

static bool take_time(struct request *r, const char *name, int64_t *ret)
{
    const char *s = body_str(r, name);
    if (s[0] == 0 || when_read(s, wall_now_ns(), true, ret) == 0)
        return true;
    answer_problem(r, 400, "\"%s\" must be a time such as 2026-01-31T18:00:00Z, not \"%.60s\"", name, s);
    return false;
}

static bool take_end(struct request *r, struct alarm_silence *s)
{
    const char *span = body_str(r, "for");
    int64_t seconds = 0;
    if (!take_time(r, "from", &s->from_wall_ns) || !take_time(r, "until", &s->until_wall_ns))
        return false;
    if (span[0] != 0 && when_parse_age(span, &seconds) != 0) {
        answer_problem(r, 400, "\"for\" must be a time such as 30m, 2h, 3d (36500d at most), not \"%.60s\"",
                       span);
        return false;
    }
    if ((s->until_wall_ns != 0) == (span[0] != 0)) {
        answer_problem(r, 400,
                       "a silence needs an end: give \"for\" (2h) or \"until\" (2026-01-31T18:00:00Z)");
        return false;
    }
    if (span[0] != 0 &&
        when_after(s->from_wall_ns ? s->from_wall_ns : wall_now_ns(), seconds, &s->until_wall_ns) != 0) {
        answer_problem(r, 400, "the end would be after the year 2262");
        return false;
    }
    return true;
}

static const struct alarm_silence *silence_by_id(const struct alarms *a, uint64_t id)
{
    const struct alarm_silence *s = NULL;
    uint32_t n = alarm_silences(a, &s);
    for (uint32_t i = 0; i < n; i++)
        if (s[i].id == id)
            return &s[i];
    return NULL;
}

// --- how many ports one covers, counted a slice a turn ---

struct counted {
    struct slices s;
    uint64_t id;
    struct sieve *focus; // NULL: all
    unsigned fabric;
    bool away; // what is of the blueprint alone
    uint32_t i;
    int64_t n;
};

static const struct fabric *counted_fabric(struct counted *k, struct view *v)
{
    struct sm_blueprint b = {0};
    if (!k->away)
        return view_fabric(v);
    if (v->src->sm != NULL)
        sm_get_blueprint(v->src->sm, &b);
    return b.known;
}

// Goes on in the fabric; false: the slice is over.
static bool count_in(struct counted *k, struct view *v, const struct fabric *f)
{
    struct place_space end;
    for (; f != NULL && k->i < f->num_ports; k->i++) {
        const struct port *p = &f->port[k->i];
        uint64_t guid = fabric_node(f, p->node)->guid;
        if (slice_over(&k->s))
            return false;
        if (p->num == 0 || (k->away && view_away(v, guid) == NULL))
            continue;
        if (k->focus != NULL)
            place_fill(k->s.r->api, v->src->name, guid, p->num, &end);
        k->n += k->focus == NULL || sieve_has_end(k->focus, NULL, &end.row);
    }
    return true;
}

static bool count_step(struct slices *s)
{
    struct counted *k = (struct counted *)s;
    struct api *a = s->r->api;
    struct silence_row row;
    for (; k->fabric < a->c.num_fabrics; k->fabric++)
        for (;; k->away = true, k->i = 0) {
            if (!count_in(k, &a->view[k->fabric], counted_fabric(k, &a->view[k->fabric])))
                return false;
            if (k->away) {
                k->away = false;
                k->i = 0;
                break;
            }
        }
    const struct alarm_silence *x = silence_by_id(a->c.alarms, k->id);
    if (x == NULL) {
        answer_problem(s->r, 404, "silence %llu is over already", (unsigned long long)k->id);
        return true;
    }
    fill_silence(a, x, &row);
    row.ports = k->n;
    answer_struct(s->r, 200, &schema_silence, &row);
    free((char *)row.text);
    return true;
}

static void count_free(struct slices *s)
{
    struct counted *k = (struct counted *)s;
    sieve_free(k->focus);
    free(k);
}

static void count_ports(struct request *r, uint64_t id, const char *focus)
{
    struct err e = {0};
    struct counted *k = xcalloc(1, sizeof(*k));
    k->s.step = count_step;
    k->s.free = count_free;
    k->id = id;
    k->focus = focus[0] != 0 ? place_sieve(focus, &e) : NULL;
    slices_run(r, &k->s);
}

void post_silence(struct request *r)
{
    struct alarms *all = alarms_of(r);
    struct err e = {0};
    char by[USER_TEXT];

    if (all == NULL)
        return;
    struct alarm_silence s = {.focus = body_str(r, "focus"),
                              .rule = body_str(r, "rule"),
                              .owner = body_str(r, "owner"),
                              .reason = body_str(r, "reason"),
                              .maintenance = json_is_true(json_object_get(r->json, "maintenance"))};
    user_text(r, by);
    if (s.owner[0] == 0)
        s.owner = by;
    if (!take_end(r, &s))
        return;
    if (s.rule[0] != 0 && alarm_rule(s.rule) == NULL) {
        answer_problem(r, 400, "no rule \"%.40s\"; doc/alarms.md lists them", s.rule);
        return;
    }
    if (s.focus[0] != 0 && place_check(s.focus, &e) != 0) {
        answer_problem(r, 400, "%s: %s", e.where, e.text);
        return;
    }
    if (!later_room(r, LATER_SLICES)) // before it is there: whoever tries again would have two
        return;
    uint64_t id = alarm_silence_add(all, &s, &e);
    if (id == 0) {
        answer_problem(r, 400, "%s%s%s", e.where, e.where[0] ? ": " : "", e.text);
        return;
    }
    audit_action(r, s.focus, "%s %llu: alarms%s%s%s%.200s are silent: %.200s",
                 s.maintenance ? "maintenance" : "silence", (unsigned long long)id, s.rule[0] ? " " : "",
                 s.rule, s.focus[0] ? " of " : "", s.focus, s.reason);
    count_ports(r, id, s.focus);
}

void delete_silence(struct request *r)
{
    struct alarms *all = alarms_of(r);
    char by[USER_TEXT];
    uint64_t id;

    if (all == NULL || !parse_id(r, "silence", &id))
        return;
    if (alarm_silence_end(all, id, user_text(r, by)) != 0) {
        answer_problem(r, 404, "no silence %llu: it is over, or never was; " API_BASE "/silences lists them",
                       (unsigned long long)id);
        return;
    }
    audit_action(r, "", "silence %llu is ended", (unsigned long long)id);
    char text[80];
    snprintf(text, sizeof(text), "silence %llu is ended", (unsigned long long)id);
    answer_ok(r, text);
}
