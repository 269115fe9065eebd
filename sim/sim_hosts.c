// SPDX-License-Identifier: Apache-2.0
// Live hosts: every adapter port behaves as Linux with IPoIB does (kernel: core/sa_query.c, core/multicast.c,
// ulp/ipoib). An ACTIVE port, ClientReregister, another LID or SMLID: all memberships are forgotten, the
// broadcast group is joined (it must exist), then 224.0.0.1 and the IPv6 solicited-node group, with the
// broadcast group's parameters, so that the SA may make them; ClassPortInfo is asked a second later.
//
// Structs: struct sim_hosts owns a dense array of hosts, one an adapter port, with a fixed set of jobs, each
// a request that waits for its time, for its answer, or for nothing. A host has one event in the queue, at
// the earliest time of its jobs (`wake`); one that comes at another time is stale. Requests go LID-routed
// over the programmed tables from QP1 to MasterSMLID, and cost what other MADs cost.
//
// Departures: the join that failed first is repeated after 1 s (kernels differ: 1 or 2); a request is sent
// once and times out after timeout_ns (later kernels send again within it); no IPv6 all-nodes group; P_Key
// changes are seen at the next attempt.
#include "sim/sim_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mono.h"
#include "lib/xalloc.h"

#define BACKOFF_MAX 16 // seconds
#define INFO_DELAY MONO_S
#define INFO_TRIES 3
#define NEVER INT64_MAX
#define JOIN_FULL 1
#define PATH_HZ_MAX 1000
#define PATH_HZ_MIN 1e-6

enum { // components of MCMemberRecord (IBA 15.2.5.17)
    MC_MGID = 1 << 0,
    MC_PORT_GID = 1 << 1,
    MC_Q_KEY = 1 << 2,
    MC_MTU_SELECTOR = 1 << 4,
    MC_MTU = 1 << 5,
    MC_TCLASS = 1 << 6,
    MC_P_KEY = 1 << 7,
    MC_RATE_SELECTOR = 1 << 8,
    MC_RATE = 1 << 9,
    MC_SL = 1 << 12,
    MC_FLOW_LABEL = 1 << 13,
    MC_HOP_LIMIT = 1 << 14,
    MC_JOIN_STATE = 1 << 16,

    PATH_DGID = 1 << 2,
    PATH_SGID = 1 << 3,
    PATH_TCLASS = 1 << 10,
    PATH_NUMB_PATH = 1 << 12,
    PATH_P_KEY = 1 << 13,
};

enum job_kind { // the first three are groups
    JOB_BROADCAST,
    JOB_ALL_HOSTS,
    JOB_SOLICITED,
    JOB_INFO,
    JOB_PATH,
    JOBS,
};
#define GROUPS 3

enum job_state {
    JOB_OFF,
    JOB_DUE,  // to be sent at `due`
    JOB_SENT, // its answer is awaited until `due`
    JOB_DONE,
};

struct job {
    int64_t due;
    uint32_t tid;
    uint16_t mlid;
    uint8_t state;
    uint8_t backoff; // seconds; JOB_INFO: tries
};

struct sim_host {
    uint32_t port;
    bool active;     // its port is, and its system is up
    bool booting;    // its system is not
    bool joined;     // all groups
    int64_t wake;    // of its event
    int64_t started; // joining
    int64_t join_ns; // it took
    uint32_t attempts, failures, timeouts;
    struct job job[JOBS];
    struct mad_mc_member_record broadcast; // as the SA gave it
};

struct sim_hosts {
    struct sim_hosts_opts o;
    struct rng rng;
    struct sim_host *host;
    uint32_t n;
    uint32_t *by_port; // index of a port's host, NONE
    uint32_t tid;
    struct sim_hosts_stats stats;
};

static unsigned groups(const struct sim_hosts *h)
{
    return h->o.no_ipv6 ? JOB_SOLICITED : GROUPS;
}

static struct sim_host *host_at(const struct sim *s, const struct sim_port *end)
{
    uint32_t i = s->hosts ? s->hosts->by_port[port_index(s, end)] : NONE;
    return i == NONE ? NULL : &s->hosts->host[i];
}

// --- when ---

static void wake_up(struct sim *s, struct sim_host *h)
{
    int64_t min = NEVER;
    for (unsigned i = 0; i < JOBS; i++)
        if ((h->job[i].state == JOB_DUE || h->job[i].state == JOB_SENT) && h->job[i].due < min)
            min = h->job[i].due;
    if (min >= h->wake)
        return;
    h->wake = min;
    event_at(s, EV_HOST, (uint32_t)(h - s->hosts->host), min);
}

static void due_in(struct sim *s, struct job *j, int64_t ns)
{
    j->state = JOB_DUE;
    j->due = s->now + ns;
}

static int64_t random_ns(struct sim *s, int64_t up_to)
{
    return up_to > 0 ? (int64_t)(rng_double(&s->hosts->rng) * (double)up_to) : 0;
}

static int64_t path_period(const struct sim_hosts *h)
{
    return (int64_t)((double)MONO_S / h->o.path_hz);
}

static void stop(struct sim_host *h)
{
    for (unsigned i = 0; i < JOBS; i++)
        h->job[i] = (struct job){.state = JOB_OFF};
    h->joined = false;
}

static void start(struct sim *s, struct sim_host *h)
{
    int64_t after = random_ns(s, s->hosts->o.spread_ns);
    stop(h);
    s->hosts->stats.restarts++;
    h->started = s->now;
    h->join_ns = 0;
    h->job[JOB_BROADCAST].backoff = 1;
    h->job[JOB_INFO].backoff = INFO_TRIES;
    due_in(s, &h->job[JOB_BROADCAST], after);
    due_in(s, &h->job[JOB_INFO], after + INFO_DELAY);
    if (s->hosts->o.path_hz >= PATH_HZ_MIN)
        due_in(s, &h->job[JOB_PATH], after + random_ns(s, path_period(s->hosts)));
    wake_up(s, h);
}

// --- requests ---

static uint16_t ip_p_key(const struct sim_hosts *h)
{
    return h->o.p_key ? h->o.p_key : MAD_DEFAULT_P_KEY;
}

// The key that a host's SA requests go out with: the default partition's, as far as the port has it.
static uint16_t sa_p_key(const struct sim *s, const struct sim_port *p)
{
    unsigned cap = p_key_cap(s, p);
    for (unsigned i = 0; i < cap; i++) {
        uint16_t key = p_key_at(s, p, i);
        if ((key & 0x7fff) == 0x7fff)
            return key;
    }
    return p_key_at(s, p, 0);
}

static void gid_of(const struct sim_port *p, uint8_t *gid)
{
    wire_put_u64(gid, p->pi.gid_prefix);
    wire_put_u64(gid + 8, p->guid);
}

// RFC 4391: ff12:401b:<P_Key>::<low 28 bits of the IPv4 group>, ff12:601b:<P_Key>::<low 80 bits of the IPv6>.
static void mgid_of(const struct sim_hosts *hs, const struct sim_port *p, enum job_kind kind, uint8_t *mgid)
{
    memset(mgid, 0, 16);
    wire_put_u32(mgid, kind == JOB_SOLICITED ? 0xff12601b : 0xff12401b);
    wire_put_u16(mgid + 4, ip_p_key(hs) | 0x8000);
    if (kind == JOB_BROADCAST)
        wire_put_u32(mgid + 12, 0xffffffff);
    else if (kind == JOB_ALL_HOSTS)
        wire_put_u32(mgid + 12, 1);
    else {
        wire_put_u32(mgid + 8, 1);
        wire_put_u32(mgid + 12, 0xff000000 | (uint32_t)(p->guid & 0xffffff));
    }
}

static void sa_send(struct sim *s, struct sim_port *p, uint8_t method, uint16_t attr, uint64_t mask,
                    uint32_t tid, const struct mad_attr *record, const void *host)
{
    uint8_t mad[MAD_SIZE] = {0};
    struct mad_sa_hdr hdr = {
        .base_version = MAD_BASE_VERSION,
        .mgmt_class = MAD_CLASS_SA,
        .class_version = 2,
        .method = method,
        .tid = (uint64_t)COOKIE_HOST << 32 | tid,
        .attr_id = attr,
        .rmpp_version = 1,
        .component_mask = mask,
    };
    mad_sa_hdr_encode(&hdr, mad);
    if (record)
        mad_attr_encode(record, host, mad + MAD_SA_DATA_OFFSET);
    gmp_send(s, p, p->pi.master_sm_lid, sa_p_key(s, p), mad);
}

static void join_send(struct sim *s, struct sim_host *h, enum job_kind kind, uint8_t method)
{
    struct sim_port *p = &s->port[h->port];
    struct mad_mc_member_record r = {.join_state = JOIN_FULL};
    uint64_t mask = MC_MGID | MC_PORT_GID | MC_JOIN_STATE;
    if (method == MAD_METHOD_SET) {
        mask |= MC_P_KEY;
        if (kind != JOB_BROADCAST) {
            r = h->broadcast;
            r.mlid = 0;
            r.mtu_selector = r.rate_selector = 2; // exactly
            r.join_state = JOIN_FULL;
            mask |= MC_Q_KEY | MC_MTU_SELECTOR | MC_MTU | MC_TCLASS | MC_RATE_SELECTOR | MC_RATE | MC_SL |
                    MC_FLOW_LABEL | MC_HOP_LIMIT;
        }
        r.p_key = ip_p_key(s->hosts) | 0x8000;
    }
    mgid_of(s->hosts, p, kind, r.mgid);
    gid_of(p, r.port_gid);
    sa_send(s, p, method, MAD_SA_ATTR_MC_MEMBER_RECORD, mask, h->job[kind].tid, &mad_attr_mc_member_record,
            &r);
}

static void path_send(struct sim *s, const struct sim_host *h)
{
    struct sim_hosts *hs = s->hosts;
    const struct sim_host *to = &hs->host[rng_below(&hs->rng, hs->n)];
    struct mad_path_record r = {.p_key = ip_p_key(hs) | 0x8000, .numb_path = 1};
    gid_of(&s->port[h->port], r.sgid);
    gid_of(&s->port[to->port], r.dgid);
    hs->stats.paths++;
    sa_send(s, &s->port[h->port], MAD_METHOD_GET, MAD_SA_ATTR_PATH_RECORD,
            PATH_SGID | PATH_DGID | PATH_P_KEY | PATH_NUMB_PATH | PATH_TCLASS, h->job[JOB_PATH].tid,
            &mad_attr_path_record, &r);
}

// --- jobs ---

static void retry(struct sim *s, struct job *j)
{
    due_in(s, j, j->backoff * MONO_S);
    j->backoff = j->backoff * 2 > BACKOFF_MAX ? BACKOFF_MAX : (uint8_t)(j->backoff * 2);
}

static void again(struct sim *s, struct sim_host *h, enum job_kind kind)
{
    struct job *j = &h->job[kind];
    if (kind < GROUPS)
        retry(s, j);
    else if (kind == JOB_PATH)
        due_in(s, j, path_period(s->hosts));
    else if (--j->backoff > 0)
        due_in(s, j, (int64_t)(INFO_TRIES - j->backoff) * MONO_S);
    else
        j->state = JOB_OFF;
}

static bool can_send(const struct sim *s, const struct sim_host *h)
{
    const struct sim_port *p = &s->port[h->port];
    return p->pi.lid != 0 && p->pi.master_sm_lid != 0 && p_key_matches(s, p, ip_p_key(s->hosts) | 0x8000);
}

static void do_job(struct sim *s, struct sim_host *h, enum job_kind kind)
{
    struct job *j = &h->job[kind];
    if (!can_send(s, h)) {
        again(s, h, kind);
        return;
    }
    j->tid = ++s->hosts->tid;
    j->state = JOB_SENT;
    j->due = s->now + s->hosts->o.timeout_ns;
    if (kind == JOB_INFO) {
        s->hosts->stats.infos++;
        sa_send(s, &s->port[h->port], MAD_METHOD_GET, MAD_ATTR_CLASS_PORT_INFO, 0, j->tid, NULL, NULL);
    } else if (kind == JOB_PATH) {
        path_send(s, h);
    } else {
        h->attempts++;
        s->hosts->stats.attempts++;
        join_send(s, h, kind, MAD_METHOD_SET);
    }
}

static void timed_out(struct sim *s, struct sim_host *h, enum job_kind kind)
{
    if (kind < GROUPS) {
        h->timeouts++;
        s->hosts->stats.timeouts++;
    } else if (kind == JOB_PATH) {
        s->hosts->stats.paths_timeouts++;
    }
    again(s, h, kind);
}

void host_event(struct sim *s, uint32_t i)
{
    if (!s->hosts || i >= s->hosts->n || s->hosts->host[i].wake != s->now)
        return;
    struct sim_host *h = &s->hosts->host[i];
    h->wake = NEVER;
    for (unsigned k = 0; k < JOBS; k++) {
        if (h->job[k].due > s->now)
            continue;
        if (h->job[k].state == JOB_DUE)
            do_job(s, h, k);
        else if (h->job[k].state == JOB_SENT)
            timed_out(s, h, k);
    }
    wake_up(s, h);
}

// --- answers ---

static void joined(struct sim *s, struct sim_host *h, enum job_kind kind)
{
    struct sim_hosts_stats *st = &s->hosts->stats;
    h->job[kind].state = JOB_DONE;
    for (unsigned i = kind + 1; kind == JOB_BROADCAST && i < groups(s->hosts); i++) {
        h->job[i].backoff = 1;
        due_in(s, &h->job[i], 0);
    }
    for (unsigned i = 0; i < groups(s->hosts); i++)
        if (h->job[i].state != JOB_DONE)
            return;
    h->joined = true;
    h->join_ns = s->now - h->started;
    st->joins++;
    st->sum_join_ns += h->join_ns;
    st->max_join_ns = h->join_ns > st->max_join_ns ? h->join_ns : st->max_join_ns;
}

static void join_answer(struct sim *s, struct sim_host *h, enum job_kind kind, const uint8_t *mad)
{
    struct mad_mc_member_record r;
    uint8_t mgid[16];
    mad_mc_member_record_decode(mad + MAD_SA_DATA_OFFSET, &r);
    mgid_of(s->hosts, &s->port[h->port], kind, mgid);
    if (wire_u16(mad + MAD_AT_STATUS) != 0 || r.mlid < MAD_LID_MULTICAST_MIN ||
        r.mlid > MAD_LID_MULTICAST_MAX || memcmp(r.mgid, mgid, sizeof(mgid)) != 0) {
        h->failures++;
        s->hosts->stats.failures++;
        again(s, h, kind);
        return;
    }
    h->job[kind].mlid = r.mlid;
    if (kind == JOB_BROADCAST)
        h->broadcast = r;
    joined(s, h, kind);
}

static void take(struct sim *s, struct sim_host *h, enum job_kind kind, const uint8_t *mad)
{
    bool ok = wire_u16(mad + MAD_AT_STATUS) == 0;
    if (kind < GROUPS) {
        join_answer(s, h, kind, mad);
    } else if (kind == JOB_PATH) {
        s->hosts->stats.paths_ok += ok;
        again(s, h, kind);
    } else if (ok) {
        s->hosts->stats.infos_ok++;
        h->job[kind].state = JOB_DONE;
    } else {
        again(s, h, kind);
    }
}

bool host_answer(struct sim *s, struct sim_port *end, const uint8_t *mad)
{
    struct sim_host *h = host_at(s, end);
    uint32_t tid = wire_u32(mad + MAD_AT_TID + 4);
    if (!h || mad[MAD_AT_CLASS] != MAD_CLASS_SA)
        return false;
    for (unsigned k = 0; k < JOBS; k++) {
        if (h->job[k].state != JOB_SENT || h->job[k].tid != tid)
            continue;
        take(s, h, k, mad);
        wake_up(s, h);
        return true;
    }
    return false; // too late, or of nobody
}

// --- what happens to it ---

static void leave_all(struct sim *s, struct sim_host *h)
{
    for (unsigned k = 0; k < GROUPS; k++) {
        if (h->job[k].state != JOB_DONE)
            continue;
        h->job[k].tid = ++s->hosts->tid;
        s->hosts->stats.leaves++;
        join_send(s, h, k, MAD_METHOD_DELETE);
    }
}

static void refresh(struct sim *s, struct sim_host *h)
{
    bool active = s->port[h->port].pi.port_state == MAD_PORT_ACTIVE && !h->booting;
    h->active = active;
    if (active)
        start(s, h);
    else
        stop(h);
}

void host_tell(struct sim *s, struct sim_port *end, enum host_news news)
{
    struct sim_host *h = host_at(s, end);
    if (!h)
        return;
    switch (news) {
    case HOST_ACTIVE:
    case HOST_DOWN:
        refresh(s, h);
        break;
    case HOST_RESTART:
        if (h->active)
            start(s, h);
        break;
    case HOST_SHUTDOWN:
        if (h->active)
            leave_all(s, h);
        break;
    case HOST_BOOT:
        h->booting = true;
        refresh(s, h);
        break;
    case HOST_UP:
        h->booting = false;
        refresh(s, h);
        break;
    }
}

static void make_hosts(struct sim *s, struct sim_hosts *hs)
{
    hs->by_port = xcalloc(s->num_ports + 1, sizeof(*hs->by_port));
    hs->host = xcalloc(s->num_ports + 1, sizeof(*hs->host)); // untouched pages cost nothing
    for (uint32_t i = 0; i < s->num_ports; i++) {
        const struct sim_node *n = node_of(s, &s->port[i]);
        hs->by_port[i] = NONE;
        if (n->type != MAD_NODE_CA)
            continue;
        hs->by_port[i] = hs->n;
        hs->host[hs->n++] = (struct sim_host){.port = i, .wake = NEVER, .booting = n->os_down};
    }
}

static int64_t bounded(int64_t ns)
{
    return ns > SIM_TIME_MAX ? SIM_TIME_MAX : ns;
}

void sim_hosts_start(struct sim *s, const struct sim_hosts_opts *o)
{
    sim_touch(s);
    sim_hosts_stop(s);
    struct sim_hosts *hs = xcalloc(1, sizeof(*hs));
    if (o)
        hs->o = *o;
    if (hs->o.timeout_ns <= 0)
        hs->o.timeout_ns = 3 * MONO_S;
    hs->o.timeout_ns = bounded(hs->o.timeout_ns);
    hs->o.spread_ns = bounded(hs->o.spread_ns);
    if (hs->o.path_hz > PATH_HZ_MAX)
        hs->o.path_hz = PATH_HZ_MAX;
    rng_init(&hs->rng, s->o.seed ^ 0x686f737473); // of its own: the rest of a run is as without hosts
    make_hosts(s, hs);
    s->hosts = hs;
    for (uint32_t i = 0; i < hs->n; i++)
        refresh(s, &hs->host[i]);
}

void sim_hosts_stop(struct sim *s)
{
    if (!s->hosts)
        return;
    free(s->hosts->host);
    free(s->hosts->by_port);
    free(s->hosts);
    s->hosts = NULL;
}

// --- looks ---

void sim_hosts_stats(const struct sim *s, struct sim_hosts_stats *ret)
{
    *ret = (struct sim_hosts_stats){0};
    if (!s->hosts)
        return;
    *ret = s->hosts->stats;
    ret->hosts = s->hosts->n;
    for (uint32_t i = 0; i < s->hosts->n; i++) {
        const struct sim_host *h = &s->hosts->host[i];
        ret->active += h->active;
        ret->ipoib_up += h->job[JOB_BROADCAST].state == JOB_DONE;
        ret->joined += h->joined;
    }
}

int sim_host_view(const struct sim *s, uint64_t node_guid, unsigned port, struct sim_host_view *ret)
{
    const struct sim_port *p = sim_port_by(s, node_guid, port);
    const struct sim_host *h = p ? host_at(s, p) : NULL;
    if (!h)
        return -ENOENT;
    *ret = (struct sim_host_view){
        .active = h->active,
        .booting = h->booting,
        .joined = h->joined,
        .ipoib_up = h->job[JOB_BROADCAST].state == JOB_DONE,
        .attempts = h->attempts,
        .failures = h->failures,
        .timeouts = h->timeouts,
        .join_ns = h->join_ns,
    };
    for (unsigned k = 0; k < GROUPS; k++)
        ret->mlid[k] = h->job[k].mlid;
    return 0;
}
