// SPDX-License-Identifier: Apache-2.0
// What the manager hears and does between sweeps: traps, the audit, subnet administration, counted; the other
// subnet managers. Part of a fabric.
#include <string.h>

#include "api/watch.h"
#include "mad/mad.h"

// --- traps ---

#define NUMBER(f) offsetof(struct trap_number_row, f)
static const struct field number_fields[] = {
    {.name = "number", .type = FIELD_INT, .at = NUMBER(number), "of the trap"},
    {.name = "name", .type = FIELD_STR, .at = NUMBER(name), "what it tells", .null = true},
    {.name = "count", .type = FIELD_INT, .at = NUMBER(count), "how often it came"},
    {0},
};
static const struct schema schema_number = {
    .name = "trap_number", "Traps of one number", sizeof(struct trap_number_row), number_fields};

#define TRAPS(f) offsetof(struct traps_row, f)
static const struct field traps_fields[] = {
    {.name = "received", .type = FIELD_INT, .at = TRAPS(received), "traps that came, repeats included"},
    {.name = "repressed", .type = FIELD_INT, .at = TRAPS(repressed), "those that were answered"},
    {.name = "unanswered",
     .type = FIELD_INT,
     .at = TRAPS(unanswered),
     "those beyond what a port is answered in a second"},
    {.name = "not_master", .type = FIELD_INT, .at = TRAPS(not_master), "those that came to a standby"},
    {.name = "duplicates", .type = FIELD_INT, .at = TRAPS(duplicates), "about what was to be read anyway"},
    {.name = "put_off",
     .type = FIELD_INT,
     .at = TRAPS(put_off),
     "read later than at once: the port had used up its budget"},
    {.name = "unknown", .type = FIELD_INT, .at = TRAPS(unknown), "from or about nobody that is here"},
    {.name = "other_issuer", .type = FIELD_INT, .at = TRAPS(other_issuer), "that named another issuer"},
    {.name = "nonsense", .type = FIELD_INT, .at = TRAPS(nonsense), "that cannot be"},
    {.name = "vendor", .type = FIELD_INT, .at = TRAPS(vendor), "of a vendor's own kinds"},
    {.name = "floods", .type = FIELD_INT, .at = TRAPS(floods), "floods of traps that have begun"},
    {.name = "flooding", .type = FIELD_INT, .at = TRAPS(flooding), "ports that send floods now"},
    {.name = "bad_ports",
     .type = FIELD_INT,
     .at = TRAPS(bad_ports),
     "ports that report errors again and again, by kind of error"},
    {.name = "by_number",
     .type = FIELD_LIST,
     .at = TRAPS(by_number),
     "those that came, by number",
     &schema_number},
    {0},
};
const struct schema schema_traps = {
    .name = "traps", "Traps since the start", sizeof(struct traps_row), traps_fields};

void traps_fill(const struct sm *sm, struct traps_row *row)
{
    struct sm_trap_stats s;
    size_t n = 0;

    sm_trap_stats(sm, &s);
    for (unsigned i = 0; i < SM_TRAP_NUMBERS; i++)
        if (s.by_number[i].count > 0)
            row->number[n++] = (struct trap_number_row){.number = s.by_number[i].number,
                                                        .name = mad_trap_name(s.by_number[i].number),
                                                        .count = (int64_t)s.by_number[i].count};
    row->received = (int64_t)s.received;
    row->repressed = (int64_t)s.repressed;
    row->unanswered = (int64_t)s.unanswered;
    row->not_master = (int64_t)s.not_master;
    row->duplicates = (int64_t)s.duplicates;
    row->put_off = (int64_t)s.put_off;
    row->unknown = (int64_t)s.unknown;
    row->other_issuer = (int64_t)s.other_issuer;
    row->nonsense = (int64_t)s.nonsense;
    row->vendor = (int64_t)s.vendor;
    row->floods = (int64_t)s.floods;
    row->flooding = s.flooding;
    row->bad_ports = s.bad_ports;
    row->by_number = (struct items){row->number, n};
}

// --- audit ---

#define AUDIT(f) offsetof(struct audit_row, f)
static const struct field audit_fields[] = {
    {.name = "running", .type = FIELD_BOOL, .at = AUDIT(running), "in the middle of a round"},
    {.name = "devices", .type = FIELD_INT, .at = AUDIT(devices), "devices of the running or last round"},
    {.name = "devices_done", .type = FIELD_INT, .at = AUDIT(devices_done), "those of them that were read"},
    {.name = "rounds", .type = FIELD_INT, .at = AUDIT(rounds), "whole rounds since the start"},
    {.name = "last_round",
     .type = FIELD_TIME,
     .at = AUDIT(last_round),
     "when the last one ended",
     .null = true},
    {.name = "last_round_seconds", .type = FIELD_NUM, .at = AUDIT(last_seconds), "how long it took"},
    {.name = "drifted", .type = FIELD_INT, .at = AUDIT(drifted), "devices that were found to differ"},
    {.name = "skipped",
     .type = FIELD_INT,
     .at = AUDIT(skipped),
     "not judged, since they were to be read anyway"},
    {0},
};
const struct schema schema_audit = {.name = "audit",
                                    "The audit reads everything again, slowly, and finds what differs",
                                    sizeof(struct audit_row),
                                    audit_fields};

void audit_fill(const struct sm *sm, struct audit_row *row)
{
    struct sm_audit_stats s;
    sm_audit_stats(sm, &s);
    *row = (struct audit_row){.running = s.running,
                              .devices = s.devices,
                              .devices_done = s.devices_done,
                              .rounds = (int64_t)s.rounds,
                              .last_round = s.last_round_wall_ns,
                              .last_seconds = mono_seconds(s.last_round_ns),
                              .drifted = (int64_t)s.drifted,
                              .skipped = (int64_t)s.skipped};
}

// --- subnet administration ---

#define SA(f) offsetof(struct sa_row, f)
static const struct field sa_fields[] = {
    {.name = "ready", .type = FIELD_BOOL, .at = SA(ready), "requests are answered"},
    {.name = "groups", .type = FIELD_INT, .at = SA(groups), "multicast groups"},
    {.name = "members", .type = FIELD_INT, .at = SA(members), "memberships in them"},
    {.name = "subscriptions", .type = FIELD_INT, .at = SA(subscriptions), "subscriptions to notices"},
    {.name = "requests", .type = FIELD_INT, .at = SA(requests), "requests since the start"},
    {.name = "answered", .type = FIELD_INT, .at = SA(answered), "those that were answered with success"},
    {.name = "refused", .type = FIELD_INT, .at = SA(refused), "those that were answered with an error"},
    {.name = "merged", .type = FIELD_INT, .at = SA(merged), "repeats of one that was waiting"},
    {.name = "dropped", .type = FIELD_INT, .at = SA(dropped), "those that were not answered"},
    {.name = "waiting", .type = FIELD_INT, .at = SA(waiting), "requests that wait now"},
    {.name = "answers_last_second", .type = FIELD_INT, .at = SA(last_second), "answers in the last second"},
    {.name = "answers_most_a_second", .type = FIELD_INT, .at = SA(most_a_second), "most answers in a second"},
    {.name = "mft_blocks_set",
     .type = FIELD_INT,
     .at = SA(mft_blocks_set),
     "blocks of multicast forwarding tables written"},
    {0},
};
const struct schema schema_sa = {
    .name = "sa", "Subnet administration: what hosts ask the manager", sizeof(struct sa_row), sa_fields};

void sa_fill(const struct sm *sm, struct sa_row *row)
{
    struct sm_sa_stats s;
    sm_sa_stats(sm, &s);
    *row = (struct sa_row){
        .ready = s.ready,
        .groups = s.groups,
        .members = s.members,
        .subscriptions = s.subscriptions,
        .requests = (int64_t)s.requests,
        .answered = (int64_t)s.answered,
        .refused = (int64_t)s.refused,
        .merged = (int64_t)s.merged,
        .dropped = (int64_t)(s.dropped_not_ready + s.dropped_sm_key + s.dropped_method + s.dropped_stale +
                             s.dropped_full + s.dropped_unknown),
        .waiting = s.waiting,
        .last_second = s.last_second,
        .most_a_second = s.most_a_second,
        .mft_blocks_set = (int64_t)s.mft_blocks_set,
    };
}

// --- other subnet managers ---

static const char *const states[] = {"not-active", "discovering", "standby", "master", NULL};
#define MANAGER(f) offsetof(struct manager_row, f)
static const struct field manager_fields[] = {
    {.name = "guid", .type = FIELD_GUID, .at = MANAGER(guid), "its PortGUID"},
    {.name = "priority", .type = FIELD_INT, .at = MANAGER(priority), "its priority, 0 to 15"},
    {.name = "state", .type = FIELD_STR, .at = MANAGER(state), "its SMInfo.SMState", .name_of = states},
    {.name = "above", .type = FIELD_BOOL, .at = MANAGER(above), "it ranks above weft"},
    {.name = "other_key", .type = FIELD_BOOL, .at = MANAGER(other_key), "its SM_Key is another one"},
    {.name = "node", .type = FIELD_STR, .at = MANAGER(node), "name of its node", .null = true},
    {.name = "node_guid", .type = FIELD_GUID, .at = MANAGER(node_guid), "GUID of its node", .null = true},
    {.name = "port", .type = FIELD_INT, .at = MANAGER(port), "its port there", .null = true},
    {.name = "lid", .type = FIELD_INT, .at = MANAGER(lid), "its LID", .null = true},
    {.name = "missed", .type = FIELD_INT, .at = MANAGER(missed), "questions in a row without an answer"},
    {.name = "last_heard",
     .type = FIELD_TIME,
     .at = MANAGER(heard),
     "when it last answered; a standby asks its master only"},
    {0},
};
const struct schema schema_manager = {
    .name = "manager", "Another subnet manager", sizeof(struct manager_row), manager_fields};

void managers_fill(const struct sm *sm, struct managers *m)
{
    int64_t now = wall_now_ns();

    m->n = sm_peers(sm, m->peer);
    for (unsigned i = 0; i < m->n; i++) {
        const struct sm_peer *p = &m->peer[i];
        m->row[i] = (struct manager_row){
            .guid = p->guid,
            .priority = p->priority,
            .state = sm_state_name(p->state),
            .above = p->above,
            .other_key = p->other_key,
            .node = p->node[0] ? p->node : NULL,
            .node_guid = p->node_guid,
            .port = p->node_guid ? p->port : NO_INT,
            .lid = p->lid ? p->lid : NO_INT,
            .missed = p->missed,
            .heard = now - p->heard_ns,
        };
    }
}
