// SPDX-License-Identifier: Apache-2.0
// What was found becomes alarms: health's verdicts by link, congestion trees by root, devices that are not
// read, sweeps that are late, history that pauses. Here is only who it is about: both ends by name, the
// cable, the switch that several have in common.
#include "telemetry/telemetry_priv.h"

#include <stdio.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/text.h"
#include "telemetry/module.h"

#define GROUP_SIZE 48
#define GROUP_PLACE_SIZE 140
struct place {
    char subject[40], place[300], peer[140], own[140];
    char group[2][GROUP_SIZE], group_place[2][GROUP_PLACE_SIZE]; // the likelier one first; "" = none
    uint64_t guid[2];
    uint8_t port[2];
};

// The blueprint's port of a slot, for what is away; PORT_NONE.
static port_id known_port(const struct tele *t, uint32_t slot)
{
    const struct tele_port *p = &t->table.port[slot];
    const struct node *n = t->known ? fabric_by_guid(t->known, p->node_guid) : NULL;
    return n ? fabric_port_at(t->known, n, p->num) : PORT_NONE;
}

static void subject_of(const struct tele *t, uint32_t slot, char buf[40])
{
    const struct tele_port *p = &t->table.port[slot];
    snprintf(buf, 40, "0x%016llx/%u", (unsigned long long)p->node_guid, p->num);
}

static void name_slot(const struct tele *t, uint32_t slot, char *buf, size_t size)
{
    const struct tele_port *p = &t->table.port[slot];
    const struct fabric *f = t->table.fabric;
    const struct node *n = f ? fabric_by_guid(f, p->node_guid) : NULL;
    char name[130];
    if (n == NULL && t->known != NULL)
        n = fabric_by_guid(f = t->known, p->node_guid);
    if (n != NULL)
        fabric_node_name(f, n, name, sizeof(name));
    else
        snprintf(name, sizeof(name), "0x%016llx", (unsigned long long)p->node_guid);
    text_print(buf, size, "%s/%u", name, p->num);
}

uint32_t tell_peer(const struct tele *t, uint32_t slot)
{
    uint32_t peer = t->table.port[slot].peer;
    if (peer != TELE_SLOT_NONE)
        return peer;
    port_id k = known_port(t, slot);
    if (port_valid(k) && port_valid(t->known->port[k.i].peer)) {
        const struct port *q = fabric_port(t->known, t->known->port[k.i].peer);
        return tele_slot(&t->table, t->known->node[q->node.i].guid, q->num);
    }
    return health_peer(t->health, slot);
}

// The end that other links may have gone with: a device that is away, else the switch of the higher tier.
static uint64_t common_of(const struct tele *t, const struct place *p)
{
    const struct fabric *f = t->table.fabric, *k = t->known ? t->known : f;
    uint64_t best = p->guid[0];
    int best_tier = -1;
    for (int i = 0; f != NULL && i < 2 && p->guid[i]; i++) {
        if (fabric_by_guid(f, p->guid[i]) == NULL)
            return p->guid[i];
        const struct node *n = fabric_by_guid(k, p->guid[i]);
        int tier = n && n->type == NODE_SWITCH ? (n->tier == TIER_NONE ? 0 : n->tier) : -1;
        if (tier > best_tier) {
            best_tier = tier;
            best = p->guid[i];
        }
    }
    return best;
}

// A switch, or all of a host: it is switched off as one.
static void name_group(const struct tele *t, uint32_t slot, char *group, char *place)
{
    uint32_t host = t->health != NULL ? health_host(t->health, slot) : TELE_SLOT_NONE;
    bool of_host = host != TELE_SLOT_NONE && host < t->table.num;
    snprintf(group, GROUP_SIZE, "%s0x%016llx", of_host ? "host " : "",
             (unsigned long long)t->table.port[of_host ? host : slot].node_guid);
    name_slot(t, slot, place, GROUP_PLACE_SIZE);
    char *end = strrchr(place, '/'), *blank = of_host ? strchr(place, ' ') : NULL;
    if (end != NULL)
        *end = 0;
    if (blank != NULL) // "gpu-0001 mlx5_3"
        *blank = 0;
}

static void find_place(const struct tele *t, uint32_t slot, struct place *ret)
{
    const struct tele_port *p = &t->table.port[slot];
    uint32_t peer = tell_peer(t, slot);
    memset(ret, 0, sizeof(*ret));
    subject_of(t, slot, ret->subject);
    name_slot(t, slot, ret->own, sizeof(ret->own));
    ret->guid[0] = p->node_guid;
    ret->port[0] = p->num;
    if (peer != TELE_SLOT_NONE) {
        name_slot(t, peer, ret->peer, sizeof(ret->peer));
        ret->guid[1] = t->table.port[peer].node_guid;
        ret->port[1] = t->table.port[peer].num;
    }
    text_print(ret->place, sizeof(ret->place), "%s%s%s", ret->own, peer != TELE_SLOT_NONE ? " <-> " : "",
               ret->peer);
    unsigned first = peer != TELE_SLOT_NONE && common_of(t, ret) == ret->guid[1];
    for (unsigned i = 0; i < (peer != TELE_SLOT_NONE ? 2 : 1); i++) {
        unsigned end = i ? !first : first;
        name_group(t, end ? peer : slot, ret->group[i], ret->group_place[i]);
    }
}

// "weft isolate LINK" as it may be typed. Who shows it elsewhere than here has the name of no other place.
static const char *name_link(const char *advice, const char *link, char *buf, size_t size)
{
    static const char word[] = " LINK ",
                      plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/-";
    const char *at = strstr(advice, word), *quote = link[strspn(link, plain)] ? "'" : "";
    if (at == NULL || strchr(link, '\'') != NULL)
        return advice;
    text_print(buf, size, "%.*s %s%s%s %s", (int)(at - advice), advice, quote, link, quote,
               at + sizeof(word) - 1);
    return buf;
}

static double rate_of(const struct tele *t, uint32_t slot)
{
    uint32_t peer = tell_peer(t, slot), mbps = t->table.port[slot].rate_mbps;
    if (mbps == 0 && peer != TELE_SLOT_NONE)
        mbps = t->table.port[peer].rate_mbps;
    return mbps * (1e6 / 8);
}

static void raise_at(struct tele *t, uint32_t slot, struct alarm_report *r)
{
    struct place p;
    char advice[600];
    const struct tele_module *m = tele_module(t, slot);
    if ((m == NULL || m->serial[0] == 0) && t->table.port[slot].peer != TELE_SLOT_NONE)
        m = tele_module(t, t->table.port[slot].peer); // both ends are one cable
    if (t->alarms == NULL)
        return;
    find_place(t, slot, &p);
    r->fabric = t->fabric;
    r->subject = p.subject;
    r->place = p.place;
    r->peer = p.peer;
    r->cable = m != NULL ? m->serial : NULL;
    if (r->advice != NULL)
        r->advice = name_link(r->advice, p.own, advice, sizeof(advice));
    r->group = p.group[0];
    r->group_place = p.group_place[0];
    r->group2 = p.group[1][0] ? p.group[1] : NULL;
    r->group2_place = p.group_place[1];
    memcpy(r->node_guid, p.guid, sizeof(p.guid));
    memcpy(r->port, p.port, sizeof(p.port));
    alarm_raise(t->alarms, r);
}

void tell_health_raise(void *arg, const char *rule, uint32_t slot, enum alarm_severity s, const char *reason,
                       const char *evidence)
{
    const struct tele *t = arg;
    struct alarm_report r = {.rule = rule, .severity = s, .reason = reason, .evidence = evidence};
    if (strcmp(rule, "L01") == 0 && !health_is_back(t->health, slot)) {
        r.lost_bps = rate_of(t, slot);
        r.hosts = health_host_cut(t->health, slot);
    }
    r.advice = health_advice(t->health, &t->table, slot, rule);
    raise_at(arg, slot, &r);
}

void tell_health_clear(void *arg, const char *rule, uint32_t slot)
{
    struct tele *t = arg;
    char subject[40];
    if (t->alarms == NULL)
        return;
    subject_of(t, slot, subject);
    alarm_clear(t->alarms, t->fabric, rule, subject);
}

// --- devices ---

void tell_device_raise(void *arg, uint64_t guid, enum alarm_severity s, const char *reason,
                       const char *evidence)
{
    struct tele *t = arg;
    const struct fabric *f = t->table.fabric;
    const struct node *n = f != NULL ? fabric_by_guid(f, guid) : NULL;
    char subject[GUID_STR_SIZE], name[140];
    if (t->alarms == NULL)
        return;
    if (n == NULL && t->known != NULL)
        n = fabric_by_guid(f = t->known, guid);
    guid_str(guid, subject);
    snprintf(name, sizeof(name), "%s", subject);
    if (n != NULL)
        fabric_node_name(f, n, name, sizeof(name));
    alarm_raise(t->alarms, &(struct alarm_report){.fabric = t->fabric,
                                                  .rule = "L18",
                                                  .subject = subject,
                                                  .severity = s,
                                                  .place = name,
                                                  .reason = reason,
                                                  .evidence = evidence,
                                                  .node_guid = {guid}});
}

void tell_device_clear(void *arg, uint64_t guid)
{
    struct tele *t = arg;
    char subject[GUID_STR_SIZE];
    if (t->alarms != NULL)
        alarm_clear(t->alarms, t->fabric, "L18", guid_str(guid, subject));
}

// --- congestion ---

// How long a tree must have stood to be an alarm (sweeps, and time), and which.
static const struct {
    const char *rule;
    enum alarm_severity severity;
    unsigned sweeps;
    int64_t ns;
} tree_rule[] = {
    [CONGEST_SLOW_LINK] = {"C03", ALARM_MINOR, 3, 300 * MONO_S},
    [CONGEST_RECEIVER] = {"C02", ALARM_MAJOR, 3, 0},
    [CONGEST_INCAST] = {"C03", ALARM_MINOR, 3, 300 * MONO_S},
    [CONGEST_OVERSUBSCRIBED] = {"C03", ALARM_MINOR, 3, 300 * MONO_S},
    [CONGEST_IMBALANCE] = {"C03", ALARM_MINOR, 3, 300 * MONO_S},
    [CONGEST_DEADLOCK] = {"C04", ALARM_CRITICAL, 2, 0},
    [CONGEST_UNCLEAR] = {NULL, ALARM_INFO, 0, 0}, // nothing that a person could go to
};

// What the tree's ports have lost, and thrown away, follows from the tree; it itself from a cable that is
// slower than it should be.
static void explain_waits(struct tele *t, const struct congest_tree *c)
{
    static const char *const waits[] = {"C01", "L13"};
    char root[40], subject[40];
    subject_of(t, c->root, root);
    for (uint32_t i = 0; i < c->num_members; i++) {
        uint32_t slot = c->member[i].slot, peer = health_peer(t->health, slot);
        if (!health_noted(t->health, slot))
            continue;
        subject_of(t, peer < slot ? peer : slot, subject);
        for (unsigned k = 0; k < sizeof(waits) / sizeof(waits[0]); k++)
            alarm_explain(t->alarms, t->fabric, waits[k], subject, tree_rule[c->kind].rule, root);
    }
    uint32_t peer = health_peer(t->health, c->root);
    subject_of(t, peer < c->root ? peer : c->root, subject);
    alarm_explain(t->alarms, t->fabric, tree_rule[c->kind].rule, root, "L05", subject);
}

static void tell_tree(struct tele *t, const struct congest_tree *c)
{
    char reason[300], evidence[400], way[60] = "", who[60];
    struct congest_waits w;
    if (tree_rule[c->kind].rule == NULL ||
        !tree_ages_are(&t->ages, c, tree_rule[c->kind].sweeps, tree_rule[c->kind].ns, loop_now(t->loop).ns))
        return;
    congest_waits(c, &w);
    if (w.ports > 0)
        snprintf(who, sizeof(who), "%u port%s for it", w.ports, w.ports == 1 ? " waits" : "s wait");
    else
        snprintf(who, sizeof(who), "it alone waits");
    if (c->num_victims > 0)
        snprintf(way, sizeof(way), ", %u of them perhaps only in the way", c->num_victims);
    text_print(reason, sizeof(reason), "%s: %s%s; %.1f Gb/s lost, %.0f %% of what the fabric loses",
               congest_kind_title(c->kind), who, way, w.lost_bps * 8 / 1e9, c->share * 100);
    snprintf(evidence, sizeof(evidence),
             "{\"tree\": %llu, \"kind\": \"%s\", \"waiting_ports\": %u, \"victims\": %u, \"switches\": %u, "
             "\"adapters\": %u, \"lost_gbps\": %.1f, \"share_of_all_lost\": %.3f, \"explained\": %.3f}",
             (unsigned long long)c->id, congest_kind_name(c->kind), w.ports, c->num_victims, c->num_switches,
             c->num_adapters, w.lost_bps * 8 / 1e9, c->share, c->explained);
    raise_at(t, c->root,
             &(struct alarm_report){.rule = tree_rule[c->kind].rule,
                                    .severity = tree_rule[c->kind].severity,
                                    .reason = reason,
                                    .evidence = evidence,
                                    .advice = congest_kind_advice(c->kind),
                                    .lost_bps = w.lost_bps});
    explain_waits(t, c);
}

static void tell_congestion(struct tele *t)
{
    static const char *const rules[] = {"C02", "C03", "C04"};
    const struct congest_tree *const *tree;
    uint32_t n = congest_trees(t->congest, &tree);
    tree_ages_note(&t->ages, tree, n, loop_now(t->loop).ns);
    while (n > 0) // of two trees that explain one wait that counts which loses more
        tell_tree(t, tree[--n]);
    for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        alarm_round(t->alarms, t->fabric, rules[i]);
}

// --- reading itself ---

#define UNREAD_SWEEPS 3

static void tell_unread(struct tele *t, const struct agent *a)
{
    char subject[40], name[140], reason[200];
    int64_t since = 0, now = loop_now(t->loop).ns;
    for (unsigned i = 0; i < a->num; i++) {
        const struct tele_port *p = &t->table.port[a->slot[i]];
        if (p->unread == TELE_READ) // some of it is read
            return;
        if (since == 0 || p->unread_since < since)
            since = p->unread_since;
    }
    if (a->num == 0 || a->state == AGENT_NO_PMA || now - since < UNREAD_SWEEPS * t->o.interval_ns)
        return;
    agent_name(t, a, name, sizeof(name));
    if (a->key_port == 0)
        snprintf(subject, sizeof(subject), "0x%016llx", (unsigned long long)a->guid);
    else
        snprintf(subject, sizeof(subject), "0x%016llx/%u", (unsigned long long)a->guid, a->key_port);
    // The same words each sweep: how long it has been so is the alarm's to say.
    text_print(reason, sizeof(reason),
               "counters of its %u ports have not been read for %u sweeps or more: %s", a->num, UNREAD_SWEEPS,
               tele_unread_name(t->table.port[a->slot[0]].unread));
    alarm_raise(t->alarms, &(struct alarm_report){.fabric = t->fabric,
                                                  .rule = "S05",
                                                  .subject = subject,
                                                  .severity = a->key_port == 0 ? ALARM_MAJOR : ALARM_MINOR,
                                                  .place = name,
                                                  .reason = reason,
                                                  .node_guid = {a->guid},
                                                  .port = {a->key_port}});
}

static void tell_late(struct tele *t)
{
    char reason[160];
    t->late_row = t->st.late != t->late_seen ? t->late_row + 1 : 0;
    t->late_seen = t->st.late;
    if (t->late_row >= 2) {
        text_print(reason, sizeof(reason),
                   "%u sweeps in a row began late; the last one took %.1f s of %.1f s", t->late_row,
                   mono_seconds(t->st.last_ns), mono_seconds(t->o.interval_ns));
        alarm_raise(t->alarms, &(struct alarm_report){.fabric = t->fabric,
                                                      .rule = "W01",
                                                      .subject = "counters",
                                                      .severity = ALARM_MINOR,
                                                      .place = "weft",
                                                      .reason = reason});
    }
    alarm_round(t->alarms, t->fabric, "W01");
}

#define LOST_TOLD (3600 * MONO_S)

// A file that was damaged or taken away is lost: history goes on in a new one, but somebody has to know.
static void tell_lost(struct tele *t, const struct series_health *h)
{
    char text[sizeof(h->lost_text)];
    if (series_news(t->series, text, sizeof(text)) && t->cb.event != NULL)
        t->cb.event(t->cb.arg, "history-file-lost", "error", "history", text);
    if (h->lost_ns == 0 || wall_now_ns() - h->lost_ns > LOST_TOLD)
        return;
    alarm_raise(t->alarms, &(struct alarm_report){
                               .fabric = t->fabric,
                               .rule = "W02",
                               .subject = "history-file",
                               .severity = ALARM_MAJOR,
                               .place = "weft",
                               .reason = h->lost_text,
                               .advice = "find out who or what did it: people, backups, the disk, the "
                                         "kernel's log; what is set aside is for a look by hand, then "
                                         "delete it"});
}

static void tell_history(struct tele *t)
{
    struct series_health h;
    const char *why = t->o.no_history;
    if (t->series != NULL) {
        series_health(t->series, &h);
        why = h.status != 0 ? h.text : NULL;
        tell_lost(t, &h);
    }
    if (why != NULL)
        alarm_raise(t->alarms, &(struct alarm_report){.fabric = t->fabric,
                                                      .rule = "W02",
                                                      .subject = "history",
                                                      .severity = ALARM_MAJOR,
                                                      .place = "weft",
                                                      .reason = why});
    alarm_round(t->alarms, t->fabric, "W02");
}

// Whether any of its ports was read in the last sweep.
static bool gives(const struct tele *t, const struct agent *a)
{
    for (unsigned i = 0; i < a->num; i++)
        if (t->table.port[a->slot[i]].unread == TELE_READ)
            return true;
    return false;
}

// Nothing is read any more, but perhaps of weft's own adapter, which needs no cable for that: it is weft's
// own way into the fabric, and no word about the devices.
static bool tell_cut_off(struct tele *t)
{
    uint32_t n = 0, give = 0;
    for (uint32_t i = 0; i < t->num_agents && give < 2; i++) {
        n += t->agent[i].num > 0 && t->agent[i].state != AGENT_NO_PMA;
        give += gives(t, &t->agent[i]);
    }
    t->empty_row = give < 2 && n > 3 ? t->empty_row + 1 : 0;
    if (t->empty_row == 0)
        return false;
    char reason[200];
    text_print(reason, sizeof(reason),
               "none of %u devices, or one, gives its counters for %u sweeps or more: weft's own port or its "
               "cable is "
               "the likely cause",
               n, UNREAD_SWEEPS);
    if (t->empty_row >= UNREAD_SWEEPS)
        alarm_raise(t->alarms, &(struct alarm_report){.fabric = t->fabric,
                                                      .rule = "W01",
                                                      .subject = "all counters",
                                                      .severity = ALARM_MAJOR,
                                                      .place = "weft",
                                                      .reason = reason});
    return true;
}

void tell_sweep(struct tele *t)
{
    if (t->alarms == NULL)
        return;
    tell_congestion(t);
    if (!tell_cut_off(t)) { // else devices are as they were, as far as is known
        for (uint32_t i = 0; i < t->num_agents; i++)
            tell_unread(t, &t->agent[i]);
        alarm_round(t->alarms, t->fabric, "S05");
    }
    tell_late(t);
    tell_history(t);
}
