// SPDX-License-Identifier: Apache-2.0
// How a simulated fabric stands: what went over the wire, the other subnet managers and the hosts that are
// played, their traffic and what really holds it up.
#include <stdio.h>
#include <string.h>

#include "api/api_priv.h"
#include "sim/sim_flow.h"
#include "sm/sm.h"

#define MANAGERS_MAX 64
#define TRAFFIC_MAX 64
#define ROOTS_MAX 32

struct manager_row {
    uint64_t port_guid;
    const char *node, *state;
    bool silent, frozen, handover_open;
    int64_t lid, priority, gets, sets, refused, polls, polls_missed, traps;
};
#define MANAGER(f) offsetof(struct manager_row, f)
static const char *const manager_states[] = {"not-active", "discovering", "standby", "master", NULL};
static const struct field manager_fields[] = {
    {.name = "port_guid", .type = FIELD_GUID, .at = MANAGER(port_guid), "PortGUID of its port"},
    {.name = "node", .type = FIELD_STR, .at = MANAGER(node), "name of its node", .null = true},
    {.name = "lid", .type = FIELD_INT, .at = MANAGER(lid), "its LID", .null = true},
    {.name = "state",
     .type = FIELD_STR,
     .at = MANAGER(state),
     "its SMInfo.SMState",
     .name_of = manager_states},
    {.name = "priority", .type = FIELD_INT, .at = MANAGER(priority), "its priority"},
    {.name = "silent", .type = FIELD_BOOL, .at = MANAGER(silent), "it does not answer"},
    {.name = "frozen", .type = FIELD_BOOL, .at = MANAGER(frozen), "its ActCount stands still"},
    {.name = "handover_open",
     .type = FIELD_BOOL,
     .at = MANAGER(handover_open),
     "it sent HANDOVER, which is not acknowledged yet"},
    {.name = "gets", .type = FIELD_INT, .at = MANAGER(gets), "Get(SMInfo) that came"},
    {.name = "sets", .type = FIELD_INT, .at = MANAGER(sets), "controls that came"},
    {.name = "refused", .type = FIELD_INT, .at = MANAGER(refused), "controls that it refused"},
    {.name = "polls", .type = FIELD_INT, .at = MANAGER(polls), "how often it asked the master"},
    {.name = "polls_missed", .type = FIELD_INT, .at = MANAGER(polls_missed), "those without an answer"},
    {.name = "traps", .type = FIELD_INT, .at = MANAGER(traps), "traps that came to it"},
    {0},
};
static const struct schema schema_manager = {
    .name = "sim_manager", "A simulated subnet manager", sizeof(struct manager_row), manager_fields};

struct hosts_row {
    int64_t hosts, active, ipoib_up, joined, attempts, failures, timeouts, paths, paths_ok, paths_timeouts;
    double max_join;
};
#define HOSTS(f) offsetof(struct hosts_row, f)
static const struct field hosts_fields[] = {
    {.name = "hosts",
     .type = FIELD_INT,
     .at = HOSTS(hosts),
     "adapter ports that are played; 0: hosts are off"},
    {.name = "active", .type = FIELD_INT, .at = HOSTS(active), "those that are ACTIVE"},
    {.name = "ipoib_up", .type = FIELD_INT, .at = HOSTS(ipoib_up), "those in the broadcast group"},
    {.name = "joined", .type = FIELD_INT, .at = HOSTS(joined), "those in all their groups"},
    {.name = "attempts", .type = FIELD_INT, .at = HOSTS(attempts), "joins sent"},
    {.name = "failures", .type = FIELD_INT, .at = HOSTS(failures), "joins that were refused"},
    {.name = "timeouts", .type = FIELD_INT, .at = HOSTS(timeouts), "joins without an answer"},
    {.name = "max_join_seconds",
     .type = FIELD_NUM,
     .at = HOSTS(max_join),
     "the longest time from the start to all groups"},
    {.name = "paths", .type = FIELD_INT, .at = HOSTS(paths), "paths asked for"},
    {.name = "paths_ok", .type = FIELD_INT, .at = HOSTS(paths_ok), "paths found"},
    {.name = "paths_timeouts", .type = FIELD_INT, .at = HOSTS(paths_timeouts), "paths without an answer"},
    {0},
};
static const struct schema schema_hosts = {
    .name = "sim_hosts", "Simulated hosts with IPoIB", sizeof(struct hosts_row), hosts_fields};

struct traffic_row {
    const char *name, *pattern;
    bool on;
    int64_t id, senders, receivers, flows, dead;
    double offered, delivered;
};
#define TRAFFIC(f) offsetof(struct traffic_row, f)
static const struct field traffic_fields[] = {
    {.name = "id", .type = FIELD_INT, .at = TRAFFIC(id), "by which traffic-stop ends it"},
    {.name = "name", .type = FIELD_STR, .at = TRAFFIC(name), "what it was called, or its pattern"},
    {.name = "pattern", .type = FIELD_STR, .at = TRAFFIC(pattern), "who sends to whom"},
    {.name = "on", .type = FIELD_BOOL, .at = TRAFFIC(on), "false between two bursts"},
    {.name = "senders", .type = FIELD_INT, .at = TRAFFIC(senders), "ports that send"},
    {.name = "receivers", .type = FIELD_INT, .at = TRAFFIC(receivers), "ports that are sent to"},
    {.name = "flows", .type = FIELD_INT, .at = TRAFFIC(flows), "pairs of both"},
    {.name = "dead", .type = FIELD_INT, .at = TRAFFIC(dead), "pairs of which nothing arrives"},
    {.name = "offered_bytes_per_second",
     .type = FIELD_NUM,
     .at = TRAFFIC(offered),
     "what senders have to send; all that their links carry, where they send as fast as they can"},
    {.name = "delivered_bytes_per_second", .type = FIELD_NUM, .at = TRAFFIC(delivered), "what arrives"},
    {0},
};
static const struct schema schema_traffic = {
    .name = "sim_traffic", "Traffic of simulated hosts", sizeof(struct traffic_row), traffic_fields};

struct truth_row {
    uint64_t guid;
    const char *node, *kind;
    int64_t port, waiting;
    double used, held, lost;
};
#define TRUTH(f) offsetof(struct truth_row, f)
static const struct field truth_fields[] = {
    {.name = "node_guid", .type = FIELD_GUID, .at = TRUTH(guid), "node of the port that others wait for"},
    {.name = "node", .type = FIELD_STR, .at = TRUTH(node), "its name", .null = true},
    {.name = "port",
     .type = FIELD_INT,
     .at = TRUTH(port),
     "number of the port, out of which it does not go on"},
    {.name = "kind",
     .type = FIELD_STR,
     .at = TRUTH(kind),
     "receiver, incast, trunk, imbalance, slow link or circle"},
    {.name = "waiting", .type = FIELD_INT, .at = TRUTH(waiting), "other ports that mostly wait for it"},
    {.name = "used", .type = FIELD_NUM, .at = TRUTH(used), "share of time that it sends"},
    {.name = "held", .type = FIELD_NUM, .at = TRUTH(held), "share of time that it waits for credits"},
    {.name = "lost_bytes_per_second",
     .type = FIELD_NUM,
     .at = TRUTH(lost),
     "what could have been sent while ports waited for it"},
    {0},
};
static const struct schema schema_truth = {
    .name = "sim_root", "What ports of a simulated fabric wait for", sizeof(struct truth_row), truth_fields};

struct sim_row {
    int64_t mads, lost, dropped_vl15, no_route, bad_vl, loops, silent, traps, traps_pending;
    struct items managers, traffic, roots;
    const struct hosts_row *hosts;
};
#define SIM(f) offsetof(struct sim_row, f)
static const struct field sim_fields[] = {
    {.name = "mads", .type = FIELD_INT, .at = SIM(mads), "datagrams put on the wire"},
    {.name = "lost", .type = FIELD_INT, .at = SIM(lost), "lost as asked for"},
    {.name = "dropped_vl15",
     .type = FIELD_INT,
     .at = SIM(dropped_vl15),
     "dropped: the agent's buffer was full"},
    {.name = "no_route",
     .type = FIELD_INT,
     .at = SIM(no_route),
     "dropped: link down, no table entry, another's LID"},
    {.name = "bad_vl",
     .type = FIELD_INT,
     .at = SIM(bad_vl),
     "dropped: on a virtual lane that the port does not have or serve"},
    {.name = "loops", .type = FIELD_INT, .at = SIM(loops), "dropped: too many hops along the tables"},
    {.name = "silent", .type = FIELD_INT, .at = SIM(silent), "not answered: M_Key, dead, malformed"},
    {.name = "traps", .type = FIELD_INT, .at = SIM(traps), "traps sent, repeats included"},
    {.name = "traps_pending",
     .type = FIELD_INT,
     .at = SIM(traps_pending),
     "traps that are not repressed yet"},
    {.name = "managers",
     .type = FIELD_LIST,
     .at = SIM(managers),
     "subnet managers that are played",
     &schema_manager},
    {.name = "hosts", .type = FIELD_OBJ, .at = SIM(hosts), "hosts that are played", &schema_hosts},
    {.name = "traffic", .type = FIELD_LIST, .at = SIM(traffic), "data that hosts send", &schema_traffic},
    {.name = "roots",
     .type = FIELD_LIST,
     .at = SIM(roots),
     "the truth about waits, most lost first: ports that others wait for, by the simulation itself; empty "
     "while a change is being worked out",
     &schema_truth},
    {0},
};
const struct schema schema_sim = {.name = "sim", "A simulated fabric", sizeof(struct sim_row), sim_fields};

static void fill_manager(const struct view *v, const struct sim_sm_view *m, struct manager_row *row,
                         char name[200])
{
    port_id p = v->f != NULL ? fabric_by_port_guid(v->f, m->port_guid) : PORT_NONE;
    if (port_valid(p))
        fabric_node_name(v->f, fabric_node(v->f, fabric_port(v->f, p)->node), name, 200);
    *row = (struct manager_row){.port_guid = m->port_guid,
                                .node = port_valid(p) ? name : NULL,
                                .lid = m->lid ? m->lid : NO_INT,
                                .state = manager_states[m->sm.state & 3],
                                .priority = m->sm.priority,
                                .silent = m->sm.silent,
                                .frozen = m->sm.frozen,
                                .handover_open = m->handover_open,
                                .gets = (int64_t)m->gets,
                                .sets = (int64_t)m->sets,
                                .refused = (int64_t)m->refused,
                                .polls = (int64_t)m->polls,
                                .polls_missed = (int64_t)m->polls_missed,
                                .traps = (int64_t)m->traps};
}

static void fill_hosts(const struct sim *sim, struct hosts_row *row)
{
    struct sim_hosts_stats h;
    sim_hosts_stats(sim, &h);
    *row = (struct hosts_row){.hosts = h.hosts,
                              .active = h.active,
                              .ipoib_up = h.ipoib_up,
                              .joined = h.joined,
                              .attempts = (int64_t)h.attempts,
                              .failures = (int64_t)h.failures,
                              .timeouts = (int64_t)h.timeouts,
                              .max_join = mono_seconds(h.max_join_ns),
                              .paths = (int64_t)h.paths,
                              .paths_ok = (int64_t)h.paths_ok,
                              .paths_timeouts = (int64_t)h.paths_timeouts};
}

struct moving { // room for what is shown
    struct sim_flow_info info[TRAFFIC_MAX];
    struct traffic_row traffic[TRAFFIC_MAX];
    struct sim_flow_root root[ROOTS_MAX];
    struct truth_row truth[ROOTS_MAX];
    char name[ROOTS_MAX][200];
    unsigned traffics, truths;
};

static void fill_moving(const struct view *v, struct sim *sim, struct moving *m)
{
    for (; m->traffics < TRAFFIC_MAX && sim_flow_list(sim, m->traffics, &m->info[m->traffics]) == 0;
         m->traffics++) {
        const struct sim_flow_info *i = &m->info[m->traffics];
        m->traffic[m->traffics] = (struct traffic_row){.id = i->id,
                                                       .name = i->name,
                                                       .pattern = sim_pattern_name(i->pattern),
                                                       .on = i->on,
                                                       .senders = i->senders,
                                                       .receivers = i->receivers,
                                                       .flows = i->flows,
                                                       .dead = i->dead,
                                                       .offered = i->offered,
                                                       .delivered = i->delivered};
    }
    unsigned roots = sim_flow_settled(sim) ? sim_flow_roots(sim, m->root, ROOTS_MAX) : 0;
    for (; m->truths < roots && m->truths < ROOTS_MAX; m->truths++) {
        const struct sim_flow_root *x = &m->root[m->truths];
        const struct node *n = v->f != NULL ? fabric_by_guid(v->f, x->node_guid) : NULL;
        if (n != NULL)
            fabric_node_name(v->f, n, m->name[m->truths], sizeof(m->name[0]));
        m->truth[m->truths] = (struct truth_row){.guid = x->node_guid,
                                                 .node = n != NULL ? m->name[m->truths] : NULL,
                                                 .port = x->port,
                                                 .kind = sim_root_kind_name(x->kind),
                                                 .waiting = x->waiting,
                                                 .used = x->used,
                                                 .held = x->held,
                                                 .lost = x->lost_bps};
    }
}

void get_sim(struct request *r)
{
    struct sim *sim = sim_of(r);
    struct manager_row manager[MANAGERS_MAX];
    char name[MANAGERS_MAX][200];
    struct hosts_row hosts;
    struct sim_sm_view m;
    struct sim_stats s;
    struct moving moving = {0};
    unsigned n = 0;

    if (sim == NULL)
        return;
    view_fabric(r->view);
    for (; n < MANAGERS_MAX && sim_sm_at(sim, n, &m) == 0; n++)
        fill_manager(r->view, &m, &manager[n], name[n]);
    fill_hosts(sim, &hosts);
    fill_moving(r->view, sim, &moving);
    sim_get_stats(sim, &s);
    answer_struct(r, 200, &schema_sim,
                  &(struct sim_row){.mads = (int64_t)s.mads,
                                    .lost = (int64_t)s.lost,
                                    .dropped_vl15 = (int64_t)s.dropped_vl15,
                                    .no_route = (int64_t)s.no_route,
                                    .bad_vl = (int64_t)s.bad_vl,
                                    .loops = (int64_t)s.loops,
                                    .silent = (int64_t)s.silent,
                                    .traps = (int64_t)s.traps,
                                    .traps_pending = sim_traps_pending(sim),
                                    .managers = {manager, n},
                                    .traffic = {moving.traffic, moving.traffics},
                                    .roots = {moving.truth, moving.truths},
                                    .hosts = &hosts});
}
