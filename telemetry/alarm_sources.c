// SPDX-License-Identifier: Apache-2.0
#include "telemetry/alarm_sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/text.h"
#include "lib/xalloc.h"
#include "telemetry/alarm_priv.h"

#define SECOND MONO_S
#define FOR_A_MINUTE (60 * SECOND)
#define HOUR (3600 * SECOND)
#define STEP (1 * SECOND) // of the wall clock
#define LIDS_FULL 0.90

// --- tables ---

static const struct {
    const char *code;
    struct alarm_source of[FINDING_ERROR + 1]; // by severity; rule NULL: none
} finding_rows[] = {
#define ALL(r, s)                                                                                            \
    {                                                                                                        \
        [FINDING_WARNING] = {r, s}, [FINDING_ERROR] = { r, s }                                               \
    }
    {"duplicate-guid", ALL("S04", ALARM_CRITICAL)},
    {"duplicate-lid", ALL("S04", ALARM_CRITICAL)},
    {"duplicate-port-guid", ALL("S04", ALARM_CRITICAL)},
    {"lid-conflict", ALL("S04", ALARM_MAJOR)}, // settled already: one of them has got another
    {"second-master", ALL("S01", ALARM_CRITICAL)},
    {"routes-incomplete", ALL("S03", ALARM_CRITICAL)},
    {"lids-exhausted", ALL("S07", ALARM_CRITICAL)},
    {"table-too-small", ALL("S07", ALARM_CRITICAL)},
    {"too-many-nodes", ALL("S07", ALARM_CRITICAL)},
    {"lids-reclaimed", ALL("S07", ALARM_MINOR)},
    {"separate-part", ALL("S07", ALARM_CRITICAL)},
    {"peer-silent", {[FINDING_WARNING] = {"S05", ALARM_MINOR}, [FINDING_ERROR] = {"S05", ALARM_MAJOR}}},
    {"port-info-silent", ALL("S05", ALARM_MINOR)},
    {"switch-info-silent", ALL("S05", ALARM_MAJOR)},
    {"rail-miscabled", ALL("S06", ALARM_MINOR)},
    {"su-miscabled", ALL("S06", ALARM_MINOR)},
    {"self-link", ALL("S06", ALARM_MINOR)},
    {"blueprint-moved", ALL("S06", ALARM_MINOR)},
    {"blueprint-replaced", ALL("S06", ALARM_MINOR)},
    {"blueprint-growth", ALL("S06", ALARM_MINOR)},
    {"too-far", ALL("S06", ALARM_MINOR)},
    {"set-failed", ALL("S08", ALARM_MINOR)},
    {"set-ignored", ALL("S08", ALARM_MINOR)},
    {"lanes-not-kept", ALL("S08", ALARM_MINOR)},
    {"adaptive-not-kept", ALL("S08", ALARM_MINOR)},
    {"bad-node-info", ALL("S08", ALARM_MINOR)},
    {"xdr-planes", ALL("S08", ALARM_MINOR)},
#undef ALL
};

// subject NULL: that of the event.
static const struct {
    const char *kind, *severity; // NULL: any
    struct alarm_source of;
    const char *subject;
    bool momentary;
} event_rows[] = {
    {"routes-refused", NULL, {"S03", ALARM_CRITICAL}, "routes", false}, // until a sweep is all right again
    {"multicast-refused", NULL, {"S03", ALARM_MAJOR}, "multicast", true},
    {"multicast-unproved", NULL, {"S03", ALARM_MAJOR}, "multicast", true},
    {"sm-disabled", NULL, {"S02", ALARM_CRITICAL}, "disabled", true},
    {"handover-refused", NULL, {"S02", ALARM_MAJOR}, NULL, true},
    {"sm-key-wrong", NULL, {"S01", ALARM_MAJOR}, NULL, true},
    {"drift", NULL, {"S08", ALARM_MINOR}, NULL, true},
    {"trap-flood", "warning", {"S08", ALARM_MINOR}, NULL, true},
    {"lids-not-recorded", NULL, {"W02", ALARM_MAJOR}, "lids", true},
};

bool alarm_of_finding(const char *code, enum finding_severity s, struct alarm_source *ret)
{
    for (size_t i = 0; i < sizeof(finding_rows) / sizeof(finding_rows[0]); i++) {
        if (strcmp(finding_rows[i].code, code) != 0)
            continue;
        *ret = finding_rows[i].of[s];
        return ret->rule != NULL;
    }
    return false;
}

static int event_row(const char *kind, const char *severity)
{
    for (size_t i = 0; i < sizeof(event_rows) / sizeof(event_rows[0]); i++)
        if (strcmp(event_rows[i].kind, kind) == 0 &&
            (!event_rows[i].severity || strcmp(event_rows[i].severity, severity) == 0))
            return (int)i;
    return -1;
}

// --- what is remembered ---

struct alarm_watch {
    struct alarms *a;
    char *fabric;
    struct u64map since; // hash of (rule, subject) -> seconds, of what must last
    struct u64map next;  // the same, of the look that runs
    char state[20];      // of the manager
    int64_t moved;       // when it became that; 0: never
    bool was_master;
    char moved_text[160];
    int64_t clock; // wall clock minus loop time, at the last look
    bool clock_known;
    int64_t known_sm_gone[64]; // by known_sms: when it was missed first; 0: it is there
};

struct alarm_watch *alarm_watch_new(struct alarms *a, const char *fabric)
{
    struct alarm_watch *w = xcalloc(1, sizeof(*w));
    w->a = a;
    w->fabric = xstrdup(fabric);
    u64map_init(&w->since, NULL, 16);
    return w;
}

void alarm_watch_free(struct alarm_watch *w)
{
    if (!w)
        return;
    u64map_done(&w->since);
    free(w->fabric);
    free(w);
}

// Whether it has been so, look by look, for a time.
static bool lasts(struct alarm_watch *w, const char *rule, const char *subject, int64_t now, int64_t ns)
{
    uint64_t key = alarm_text_hash(alarm_text_hash(5, rule), subject);
    uint32_t since = (uint32_t)(now / SECOND);
    u64map_get(&w->since, key, &since);
    u64map_set(&w->next, key, since);
    return now / SECOND - since >= ns / SECOND;
}

// --- findings ---

// The port of "leaf-1[7]"; 0: it ends otherwise.
static uint8_t port_before(const char *text, const char *end)
{
    const char *at = end - 2;
    unsigned port = 0;
    if (end - text < 4 || end[-1] != ']')
        return 0;
    for (unsigned ten = 1; at > text && *at >= '0' && *at <= '9' && ten < 1000; ten *= 10)
        port += ten * (unsigned)(*at-- - '0');
    return *at == '[' && port <= UINT8_MAX ? (uint8_t)port : 0;
}

// Findings name what has no name of its own, or more than one, with its GUID: "spine-1 (0x…)"; and a port by
// the node that it is on, which is not what they are about: "leaf-1[7] (0x…)", "0x…[7]". Port 0: the node.
static uint64_t guid_in(const char *where, uint8_t *ret_port)
{
    char text[GUID_STR_SIZE] = "";
    uint64_t guid = 0;
    const char *at = strstr(where, "0x");
    for (const char *p = strstr(where, " (0x"); p; p = strstr(p + 1, " (0x"))
        at = p + 2; // a name may have anything in it
    *ret_port = 0;
    if (!at || strlen(at) < GUID_STR_SIZE - 2)
        return 0;
    memcpy(text, at, GUID_STR_SIZE - 2);
    if (guid_parse(text, &guid) != 0)
        return 0;
    if (at == where)
        *ret_port = port_before(where, where + strlen(where));
    else if (at - where > 2)
        *ret_port = port_before(where, at - 2);
    return guid;
}

static void raise_finding(struct alarm_watch *w, const struct finding *f, int64_t now)
{
    struct alarm_source src;
    char subject[300], reason[800];
    uint8_t port;
    uint64_t guid = guid_in(f->where, &port);
    if (!alarm_of_finding(f->code, f->severity, &src))
        return;
    snprintf(subject, sizeof(subject), "%s %s", f->code, f->where);
    text_clean(subject);
    if (strcmp(src.rule, "S06") == 0 && !lasts(w, src.rule, subject, now, FOR_A_MINUTE))
        return;
    text_print(reason, sizeof(reason), f->count > 1 ? "%.*s (%u of these)" : "%.*s",
               (int)text_cut(f->text, 700), f->text, f->count);
    alarm_raise(w->a, &(struct alarm_report){.fabric = w->fabric,
                                             .rule = src.rule,
                                             .subject = subject,
                                             .severity = src.severity,
                                             .place = f->where,
                                             .reason = reason,
                                             .group = f->code,
                                             .group_place = f->code,
                                             .node_guid = {guid},
                                             .port = {port},
                                             .source = ALARM_BY_WATCH});
}

// --- a part that is out of reach ---

struct part {
    uint32_t switches;
    uint32_t inner; // cables within, from both ends
    uint32_t outer; // … to the rest
    uint32_t lit;   // … of these that are up
};

// Whether the far end, which is there, says that its link is up.
static bool is_lit(const struct fabric *live, const struct fabric *k, const struct port *far)
{
    const struct node *n = fabric_by_guid(live, fabric_node(k, far->node)->guid);
    port_id p = n ? fabric_port_at(live, n, far->num) : PORT_NONE;
    return port_valid(p) && live->port[p.i].a.state >= PORT_INIT;
}

static struct part part_of(const struct fabric *live, const struct fabric *k, const bool *away, uint32_t from,
                           bool *seen, uint32_t *queue)
{
    struct part part = {0};
    uint32_t at = 0;
    seen[from] = true;
    queue[part.switches++] = from;
    while (at < part.switches) {
        const struct node *x = &k->node[queue[at++]];
        for (unsigned num = 1; num <= x->num_ports; num++) {
            const struct port *p = &k->port[x->first_port + num];
            const struct node *z = port_valid(p->peer) ? fabric_peer_node(k, p) : NULL;
            uint32_t i = z ? (uint32_t)(z - k->node) : 0;
            if (!z)
                continue;
            part.inner += away[i];
            part.outer += !away[i] && z->type == NODE_SWITCH;
            part.lit += !away[i] && is_lit(live, k, fabric_port(k, p->peer));
            if (away[i] && !seen[i]) {
                seen[i] = true;
                queue[part.switches++] = i;
            }
        }
    }
    return part;
}

// Dead switches are no part. Whether what is away is dead or cut off nobody can ask it: it is cut off where
// no link to it is up and it hangs together by at least as many cables as it hung on the rest by.
static bool is_cut_off(const struct part *p)
{
    return p->switches >= 2 && p->lit == 0 && p->inner / 2 >= p->outer;
}

// Switches of the blueprint that are not seen and are cabled to each other: what joined them to the rest is
// gone, rather than each of them. The biggest such part; 0: none.
static uint32_t lost_part(const struct fabric *live, const struct fabric *k, const struct node **ret)
{
    uint32_t most = 0, missing = 0;
    for (uint32_t s = 0; s < k->num_switches; s++)
        missing += !fabric_by_guid(live, fabric_switch(k, s)->guid);
    if (missing < 2)
        return 0;
    bool *away = xcalloc(k->num_nodes, 1), *seen = xcalloc(k->num_nodes, 1);
    uint32_t *queue = xcalloc(k->num_nodes, sizeof(uint32_t));
    for (uint32_t s = 0; s < k->num_switches; s++)
        away[k->switch_node[s]] = !fabric_by_guid(live, fabric_switch(k, s)->guid);
    for (uint32_t s = 0; s < k->num_switches; s++) {
        uint32_t i = k->switch_node[s];
        struct part p = {0};
        if (away[i] && !seen[i])
            p = part_of(live, k, away, i, seen, queue);
        if (is_cut_off(&p) && p.switches > most) {
            most = p.switches;
            *ret = &k->node[i];
        }
    }
    free(away);
    free(seen);
    free(queue);
    return most;
}

static void look_at_parts(struct alarm_watch *w, const struct alarm_look *l)
{
    const struct node *n = NULL;
    char reason[300], name[140];
    uint32_t part = l->live && l->known && l->master ? lost_part(l->live, l->known, &n) : 0;
    if (part == 0)
        return;
    fabric_node_name(l->known, n, name, sizeof(name));
    text_print(reason, sizeof(reason), "a part of %u switches, %s among them, is not reached", part, name);
    alarm_raise(w->a, &(struct alarm_report){.fabric = w->fabric,
                                             .rule = "S07",
                                             .subject = "split",
                                             .severity = ALARM_CRITICAL,
                                             .place = name,
                                             .reason = reason,
                                             .node_guid = {n->guid},
                                             .source = ALARM_BY_WATCH});
}

static void look_at_lids(struct alarm_watch *w, const struct alarm_look *l)
{
    const struct fabric *f = l->live;
    char reason[200];
    uint32_t used = 0, all = LID_UCAST_MAX;
    if (!f || !l->master)
        return;
    for (uint32_t i = 1; i <= LID_UCAST_MAX; i++)
        used += f->lid_port[i] != ID_NONE;
    if (f->lft_cap_min != 0xffff && f->lft_cap_min > 0 && f->lft_cap_min - 1u < all)
        all = f->lft_cap_min - 1u;
    if (used <= LIDS_FULL * all)
        return;
    text_print(reason, sizeof(reason), "%u of %u LIDs are in use", used, all);
    alarm_raise(w->a, &(struct alarm_report){.fabric = w->fabric,
                                             .rule = "S07",
                                             .subject = "lids",
                                             .severity = ALARM_MINOR,
                                             .reason = reason,
                                             .source = ALARM_BY_WATCH});
}

// --- managers ---

static bool is_known(const struct alarm_look *l, uint64_t guid)
{
    for (unsigned i = 0; i < l->num_known_sms; i++)
        if (l->known_sms[i] == guid)
            return true;
    return false;
}

static void look_at_sms(struct alarm_watch *w, const struct alarm_look *l)
{
    static const enum alarm_severity severity[] = {ALARM_CRITICAL, ALARM_MAJOR, ALARM_MAJOR, ALARM_MINOR};
    static const char *const name[] = {"master", "standby", "discovering", "not active"};
    for (unsigned i = 0; i < l->num_sms; i++) {
        const struct alarm_sm *s = &l->sm[i];
        char subject[GUID_STR_SIZE], reason[300];
        if (is_known(l, s->guid))
            continue;
        text_print(reason, sizeof(reason),
                   "subnet manager " GUID_FMT ", priority %u, is %s and not on the list of known ones",
                   GUID_ARG(s->guid), s->priority, name[s->state]);
        alarm_raise(w->a, &(struct alarm_report){.fabric = w->fabric,
                                                 .rule = "S01",
                                                 .subject = guid_str(s->guid, subject),
                                                 .severity = severity[s->state],
                                                 .place = s->node,
                                                 .reason = reason,
                                                 .node_guid = {s->node_guid},
                                                 .port = {s->port},
                                                 .source = ALARM_BY_WATCH});
    }
}

// Known ones that are not there: nobody would take over.
static void look_at_known(struct alarm_watch *w, const struct alarm_look *l, int64_t now)
{
    for (unsigned i = 0; i < l->num_known_sms && i < 64; i++) {
        char subject[GUID_STR_SIZE], reason[200];
        bool there = false;
        for (unsigned k = 0; k < l->num_sms; k++)
            there = there || l->sm[k].guid == l->known_sms[i];
        guid_str(l->known_sms[i], subject);
        if (there || !l->master || !l->live || !lasts(w, "W04", subject, now, 3 * SECOND))
            continue;
        text_print(reason, sizeof(reason), "subnet manager %s, which is known, does not answer", subject);
        alarm_raise(w->a, &(struct alarm_report){.fabric = w->fabric,
                                                 .rule = "W04",
                                                 .subject = subject,
                                                 .severity = ALARM_MAJOR,
                                                 .reason = reason,
                                                 .source = ALARM_BY_WATCH});
    }
}

static void look_at_state(struct alarm_watch *w, const struct alarm_look *l, int64_t now)
{
    const char *state = l->state ? l->state : "";
    bool first = w->state[0] == 0;
    if (state[0] && strcmp(state, "discovering") != 0 && strcmp(state, w->state) != 0) {
        // The way up from the start is no move.
        if (!first && l->master != w->was_master &&
            (w->was_master || w->moved || strcmp(w->state, "standby") == 0)) {
            w->moved = now > 0 ? now : 1;
            snprintf(w->moved_text, sizeof(w->moved_text), "this manager was %.20s and is %.20s", w->state,
                     state);
        }
        snprintf(w->state, sizeof(w->state), "%s", state);
        w->was_master = l->master;
    }
    if (w->moved && now - w->moved < 24 * HOUR)
        alarm_raise(w->a, &(struct alarm_report){.fabric = w->fabric,
                                                 .rule = "S02",
                                                 .subject = "mastership",
                                                 .place = "weft",
                                                 .severity = now - w->moved < HOUR ? ALARM_MAJOR : ALARM_INFO,
                                                 .reason = w->moved_text,
                                                 .source = ALARM_BY_WATCH});
}

// --- weft itself ---

static void look_at_weft(struct alarm_watch *w, const struct alarm_look *l, int64_t now, int64_t wall)
{
    int64_t clock = wall - now, step = clock - w->clock;
    char reason[300];
    if (w->clock_known && (step > STEP || step < -STEP)) {
        text_print(reason, sizeof(reason), "the clock was set %s by %.1f s", step > 0 ? "forward" : "back",
                   mono_seconds(step > 0 ? step : -step));
        alarm_raise(w->a, &(struct alarm_report){.fabric = "",
                                                 .rule = "W05",
                                                 .subject = "clock",
                                                 .severity = ALARM_MINOR,
                                                 .place = "weft",
                                                 .reason = reason});
        alarm_clear(w->a, "", "W05", "clock");
    }
    w->clock = clock;
    w->clock_known = true;
    if (l->db_anew)
        alarm_raise(w->a,
                    &(struct alarm_report){.fabric = w->fabric,
                                           .rule = "W02",
                                           .subject = "database-written-anew",
                                           .severity = ALARM_MAJOR,
                                           .place = "weft",
                                           .reason = l->db_anew,
                                           .advice = "find out who takes files out of state_dir; what stood "
                                                     "in place of meta.db is kept beside it",
                                           .source = ALARM_BY_WATCH});
    if (l->db_status == 0)
        return;
    text_print(reason, sizeof(reason), "the database cannot be written: %s", l->db_text ? l->db_text : "");
    alarm_raise(w->a, &(struct alarm_report){.fabric = w->fabric,
                                             .rule = "W02",
                                             .subject = "database",
                                             .severity = ALARM_MAJOR,
                                             .place = "weft",
                                             .reason = reason,
                                             .source = ALARM_BY_WATCH});
}

void alarm_watch_look(struct alarm_watch *w, const struct alarm_look *l, int64_t now, int64_t wall)
{
    static const char *const rules[] = {"S01", "S02", "S04", "S05", "S06", "S07", "S08", "W02", "W04"};
    u64map_init(&w->next, NULL, w->since.count + 16);
    for (size_t i = 0; l->findings && i < l->findings->n; i++)
        raise_finding(w, &l->findings->item[i], now);
    look_at_parts(w, l);
    look_at_lids(w, l);
    look_at_sms(w, l);
    look_at_known(w, l, now);
    look_at_state(w, l, now);
    look_at_weft(w, l, now, wall);
    u64map_done(&w->since);
    w->since = w->next;
    if (l->running || !l->down) // without a manager what it found last is all that is known
        for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
            alarm_round_of(w->a, w->fabric, rules[i], ALARM_BY_WATCH);
    if (l->sweep_ok)
        alarm_clear(w->a, w->fabric, "S03", "routes");
    alarm_round_of(w->a, w->fabric, "S03", ALARM_BY_WATCH);
}

void alarm_watch_event(struct alarm_watch *w, const char *kind, const char *severity, const char *subject,
                       const char *text)
{
    int i = event_row(kind, severity);
    if (i < 0)
        return;
    const char *about = event_rows[i].subject ? event_rows[i].subject : subject;
    char id[300];
    snprintf(id, sizeof(id), "%s%s%.200s", event_rows[i].subject ? "" : kind,
             event_rows[i].subject ? "" : " ", about);
    text_clean(id);
    alarm_raise(w->a, &(struct alarm_report){.fabric = w->fabric,
                                             .rule = event_rows[i].of.rule,
                                             .subject = id,
                                             .severity = event_rows[i].of.severity,
                                             .place = subject,
                                             .reason = text,
                                             .group = kind,
                                             .source = ALARM_BY_EVENT});
    if (event_rows[i].momentary)
        alarm_clear(w->a, w->fabric, event_rows[i].of.rule, id);
}

void alarm_watch_cap(struct alarm_watch *w, bool reached, const char *text)
{
    if (reached)
        alarm_raise(w->a, &(struct alarm_report){.fabric = w->fabric,
                                                 .rule = "W06",
                                                 .subject = "isolation",
                                                 .severity = ALARM_MAJOR,
                                                 .reason = text,
                                                 .source = ALARM_BY_EVENT});
    else
        alarm_clear(w->a, w->fabric, "W06", "isolation");
}
