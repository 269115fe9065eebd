// SPDX-License-Identifier: Apache-2.0
// Sweeps. Each agent has its turn in the first half of the interval, always the same one (by its GUID): what
// is asked is spread, and the time between two readings of one port is the interval. A sweep ends when all
// rounds have, but for those of agents that did not keep up in the last one; at the latest when the next is
// due: those that have not ended then are slow, and go on beside the next sweep. When a great part has not
// (the way out is full, not the agents), the next sweep begins later, and that is counted.
//
// At the end of a sweep (sweep_end.c) ports that were not read say so and have no values that were due, then
// congestion, health and history are fed, then `swept` is called. The error counters' rounds between sweeps
// have turns of their own and feed health alone.
#include "telemetry/telemetry_priv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/xalloc.h"
#include "telemetry/module.h"

#define EVENTS_A_SWEEP 32

static void sweep_tick(void *arg);
static void errors_tick(void *arg);

static int64_t wall_at(void *arg, int64_t at)
{
    const struct tele *t = arg;
    return tele_wall_now(t) - (loop_now(t->loop).ns - at);
}

// --- life ---

struct tele *tele_new(struct loop *l, struct mad_engine *e, struct series *s, struct alarms *a,
                      const struct tele_opts *o, const struct tele_callbacks *cb)
{
    struct tele *t = xcalloc(1, sizeof(*t));
    t->loop = l;
    t->engine = e;
    t->series = s;
    t->alarms = a;
    t->o = *o;
    t->o.fabric = t->fabric = xstrdup(o->fabric ? o->fabric : "");
    t->o.dir = t->dir = o->dir ? xstrdup(o->dir) : NULL;
    if (t->o.per_device == 0)
        t->o.per_device = 4;
    if (cb != NULL)
        t->cb = *cb;
    tele_table_init(&t->table);
    accum_init(&t->accum);
    t->data_counters = tele_group_counters(TELE_DATA);
    t->error_counters = tele_group_counters(TELE_ERRORS);
    t->detail_counters = ~(t->data_counters | t->error_counters);
    t->details_every = 1;
    t->wall_zero = wall_now_ns() - loop_now(l).ns;
    if (o->interval_ns > 0 && o->detail_interval_ns > o->interval_ns)
        t->details_every = (unsigned)(o->detail_interval_ns / o->interval_ns);
    loop_timer_init(&t->timer, l, "telemetry", sweep_tick, t);
    loop_task_init(&t->end_task, "telemetry", sweep_end_part, t);
    loop_task_init(&t->errors_task, "telemetry", sweep_errors_part, t);
    loop_task_init(&t->keep_health.task, "telemetry", keep_health_step, t);
    loop_timer_init(&t->errors_timer, l, "telemetry", errors_tick, t);
    struct health_sink sink = {.arg = t, .raise = tell_health_raise, .clear = tell_health_clear};
    t->health = health_new(&(struct health_opts){.wall = wall_at, .wall_arg = t}, &sink);
    t->devices =
        devices_new(&(struct device_sink){.arg = t, .raise = tell_device_raise, .clear = tell_device_clear});
    t->congest = congest_new(NULL);
    keep_load(t);
    if (a != NULL) { // another collector may have raised them
        alarm_doubt(a, t->fabric, "L");
        alarm_doubt(a, t->fabric, "C01");
    }
    return t;
}

bool tele_is_idle(const struct tele *t)
{
    return !t->active && t->asked == 0 && t->vl == NULL;
}

void tele_free(struct tele *t)
{
    if (t == NULL)
        return;
    loop_timer_cancel(&t->timer);
    loop_timer_cancel(&t->errors_timer);
    sweep_end_stop(t);
    if (t->trees.pool != NULL)
        pool_free(t->trees.pool);
    while (t->vl != NULL) {
        struct vl_ask *v = t->vl;
        t->vl = v->next;
        loop_unpost(t->loop, &v->none);
        v->done(v->arg, &(struct tele_vl_waits){.status = -ECANCELED, .text = "collecting has ended"});
        free(v);
    }
    keep_save(t, true);
    health_free(t->health);
    congest_free(t->congest);
    devices_free(t->devices);
    tele_modules_free(t->modules);
    free(t->link);
    tree_ages_done(&t->ages);
    fabric_unref(t->table.fabric);
    fabric_unref(t->known);
    tables_unref(t->tables);
    groups_unref(t->groups);
    agents_done(t);
    accum_done(&t->accum);
    tele_table_done(&t->table);
    free(t->fabric);
    free(t->dir);
    free(t);
}

void tele_event(struct tele *t, const char *kind, const char *severity, const struct agent *a,
                const char *text)
{
    char name[140], all[300];
    if (t->cb.event == NULL || ++t->events > EVENTS_A_SWEEP + 1)
        return;
    if (t->events > EVENTS_A_SWEEP) {
        t->cb.event(t->cb.arg, "counters-more", "warning", "",
                    "more devices' counters came or went in this sweep; the list of unread devices has all");
        return;
    }
    agent_name(t, a, name, sizeof(name));
    snprintf(all, sizeof(all), "%s: %s", name, text);
    t->cb.event(t->cb.arg, kind, severity, name, all);
}

// --- sweeps ---

static int64_t spread(const struct tele *t)
{
    return t->o.interval_ns / 2;
}

static int64_t turn_of(const struct agent *a, int64_t span)
{
    return (int64_t)((unsigned __int128)a->turn * (uint64_t)span >> 32);
}

static void sweep_begin(struct tele *t, int64_t now)
{
    t->sweeping = true;
    t->sweep++;
    t->began = now;
    t->due = now + t->o.interval_ns;
    t->next = 0;
    t->pending = 0;
    t->events = 0;
}

static void begin_one(struct tele *t, struct agent *a)
{
    if (a->num == 0)
        return;
    a->detail = (t->sweep + a->turn) % t->details_every == 0;
    if (a->round == ROUND_SWEEP) // slow: it goes on
        return;
    a->waited = !a->slow && a->state != AGENT_SILENT;
    t->pending += a->waited;
    a->began_in = (uint32_t)t->sweep;
    if (a->round == ROUND_ERRORS)
        a->wanted = true;
    else
        round_begin(t, a, ROUND_SWEEP);
}

static void begin_those_due(struct tele *t, int64_t now)
{
    // One more is held up while beginning, so that the sweep does not end from within.
    t->pending++;
    while (t->next < t->num_order) {
        struct agent *a = &t->agent[t->order[t->next]];
        if (t->began + turn_of(a, spread(t)) > now)
            break;
        t->next++;
        begin_one(t, a);
    }
    t->pending--;
}

// In virtual time history's clock goes with it.
int64_t tele_wall_now(const struct tele *t)
{
    return loop_clock(t->loop) == LOOP_VIRTUAL ? t->wall_zero + loop_now(t->loop).ns : wall_now_ns();
}

int64_t tele_loop_time(const struct tele *t, int64_t wall_ns)
{
    int64_t ago;
    if (__builtin_sub_overflow(tele_wall_now(t), wall_ns, &ago) || ago > 1LL << 60)
        ago = 1LL << 60;
    return loop_now(t->loop).ns - (ago > 0 ? ago : 0);
}

static bool is_over(const struct tele *t)
{
    return t->sweeping && t->end == END_NONE && t->next == t->num_order && t->pending == 0;
}

// The next sweep is due and this one has not ended.
static void overdue(struct tele *t)
{
    uint32_t enough = t->num_order / 4 > 16 ? t->num_order / 4 : 16;
    if (t->next < t->num_order || t->pending > enough)
        return; // it is not the agents
    for (uint32_t i = 0; i < t->num_agents; i++) {
        struct agent *a = &t->agent[i];
        a->slow |= a->waited;
        a->waited = false;
    }
    t->pending = 0;
}

static int64_t step(const struct tele *t)
{
    int64_t s = t->o.interval_ns / 200;
    return s < MONO_MS ? MONO_MS : s > 50 * MONO_MS ? 50 * MONO_MS : s;
}

static void sweep_tick(void *arg)
{
    struct tele *t = arg;
    int64_t now = loop_now(t->loop).ns;

    if (!t->sweeping && now >= t->due) {
        t->st.late += t->sweep > 0 && now - t->due > t->o.interval_ns / 20;
        sweep_begin(t, now);
    }
    if (t->sweeping && t->end == END_NONE) {
        begin_those_due(t, now);
        if (now >= t->due)
            overdue(t);
        if (is_over(t))
            sweep_end_begin(t);
    }
    if (!t->active || t->end != END_NONE) // its end arms the timer again
        return;
    if (t->sweeping && (t->next < t->num_order || now >= t->due))
        loop_timer_after(&t->timer, step(t));
    else
        loop_timer_at(&t->timer, (mono_t){t->due > now ? t->due : now + 1});
}

// All its ports that had counted anything begin at 0: it is another one now, or the same anew.
static void look_for_reset(struct tele *t, struct agent *a)
{
    char text[120];
    bool anew = a->began_anew > 0 && a->stood == 0;
    if (a->resets == 0)
        return;
    snprintf(text, sizeof(text), "counters of %u of its ports began anew: %s", a->resets,
             anew ? "it was started again, or all of them were cleared" : "somebody has cleared them");
    tele_event(t, "counters-reset", "info", a, text);
    a->resets = 0;
    if (!anew)
        return;
    t->st.reboots++;
    agent_new(a);
}

void tele_round_ended(struct tele *t, struct agent *a, enum agent_round r)
{
    look_for_reset(t, a);
    if (r == ROUND_SWEEP) {
        a->slow &= a->began_in != (uint32_t)t->sweep;
        if (a->waited) {
            a->waited = false;
            t->pending--;
        }
    }
    if (a->wanted) {
        a->wanted = false;
        if (t->active)
            round_begin(t, a, ROUND_SWEEP);
        return;
    }
    if (is_over(t))
        loop_timer_at(&t->timer, loop_now(t->loop)); // not from within an answer
}

// --- error counters between sweeps ---

static void errors_tick(void *arg)
{
    struct tele *t = arg;
    int64_t now = loop_now(t->loop).ns, every = t->o.errors_interval_ns;
    if (!t->active)
        return;
    if (now >= t->errors_began + every) {
        sweep_errors_begin(t);
        t->errors_began = now;
        t->errors_next = 0;
    }
    while (t->errors_next < t->num_order) {
        struct agent *a = &t->agent[t->order[t->errors_next]];
        if (t->errors_began + turn_of(a, every / 2) > now)
            break;
        t->errors_next++;
        if (a->num > 0 && a->round == ROUND_NONE)
            round_begin(t, a, ROUND_ERRORS);
    }
    int64_t s = every / 200 < MONO_MS ? MONO_MS : every / 200;
    if (t->errors_next < t->num_order)
        loop_timer_after(&t->errors_timer, s);
    else
        loop_timer_at(&t->errors_timer, (mono_t){t->errors_began + every});
}

// --- the fabric ---

// The blueprint's links by slot: they change seldom, and are told with each snapshot.
static void find_links(struct tele *t)
{
    const struct fabric *k = t->known;
    free(t->link);
    t->link = k != NULL ? xcalloc(k->num_links + 1ull, sizeof(*t->link)) : NULL;
    t->num_links = 0;
    for (uint32_t i = 0; k != NULL && i < k->num_ports; i++) {
        const struct port *p = &k->port[i], *q;
        if (!port_valid(p->peer) || p->num == 0 || p->peer.i < i || t->num_links == k->num_links)
            continue;
        q = fabric_port(k, p->peer);
        const struct node *n = fabric_node(k, p->node), *m = fabric_node(k, q->node);
        t->link[t->num_links++] = (struct tele_link){agents_slot(t, n->guid, p->num, n->num_ports),
                                                     agents_slot(t, m->guid, q->num, m->num_ports)};
    }
    t->links_stale = false;
}

// Of an end that is away: whether the other one, which is there, says that something is at the end of the
// cable.
static bool is_lit(const struct tele *t, uint32_t there)
{
    const struct tele_port *p = &t->table.port[there];
    return p->port != ID_NONE && p->peer == TELE_SLOT_NONE && p->up;
}

// Nodes that are away while a link to them is up: their agents are dead, not they.
static void find_silent(const struct tele *t, struct u64map *ret)
{
    u64map_init(ret, NULL, 16);
    for (uint32_t i = 0; i < t->num_links; i++) {
        uint32_t a = t->link[i].a, z = t->link[i].z;
        bool a_away = tele_is_away(&t->table, a), z_away = tele_is_away(&t->table, z);
        if (a_away != z_away && is_lit(t, a_away ? z : a))
            u64map_set(ret, t->table.port[a_away ? a : z].node_guid, 1);
    }
}

// 1: up, 0: down, -1: nobody knows. An agent that does not answer takes no link down.
static int link_state(const struct tele *t, const struct u64map *silent, uint32_t a, uint32_t z)
{
    uint32_t is;
    const struct tele_port *x = &t->table.port[a], *y = &t->table.port[z];
    bool x_away = tele_is_away(&t->table, a), y_away = tele_is_away(&t->table, z);
    if (x_away && y_away)
        return u64map_get(silent, x->node_guid, &is) || u64map_get(silent, y->node_guid, &is) ? -1 : 0;
    if (x_away || y_away)
        return is_lit(t, x_away ? z : a);
    return x->port != ID_NONE && x->peer == z && x->up;
}

// Every link of the blueprint: whether it is there as it is meant to be.
static void tell_links(struct tele *t)
{
    int64_t now = loop_now(t->loop).ns;
    if (t->links_stale)
        find_links(t);
    for (uint32_t i = 0; i < t->table.num; i++)
        t->meant[i] &= 1;
    struct u64map silent;
    find_silent(t, &silent);
    for (uint32_t i = 0; i < t->num_links; i++) {
        uint32_t a = t->link[i].a, z = t->link[i].z;
        int up = link_state(t, &silent, a, z);
        health_pair(t->health, a, z);
        if (up >= 0)
            health_link(t->health, a, up, now);
        t->meant[a] = t->meant[z] = 3;
    }
    u64map_done(&silent);
    for (uint32_t i = 0; i < t->table.num; i++)
        if (t->meant[i] == 1) {
            health_forget(t->health, i);
            t->meant[i] = 0;
        }
}

void tele_blueprint(struct tele *t, const struct fabric *known)
{
    const struct fabric *old = t->known;
    if (known == old)
        return;
    t->known = known ? fabric_ref(known) : NULL;
    fabric_unref(old);
    t->links_stale = true;
    t->links_due = true;
}

int64_t tele_modules_age(const struct tele *t, int64_t taken_ns)
{
    int64_t age = tele_wall_now(t) - taken_ns;
    return age > 0 ? age : 0;
}

// A reading is as old as its file, however often it is told.
static void tell_module(struct tele *t, uint32_t slot, int64_t now)
{
    const struct tele_module *m = tele_module(t, slot);
    struct tele_optics optics;
    int64_t age = m != NULL ? tele_modules_age(t, m->taken_ns) : 0;
    if (t->modules == NULL) {
        health_module(t->health, slot, NAN, now);
        health_optics(t->health, slot, NULL, now);
    } else if (m == NULL || age > TELE_MODULES_OLD_NS) { // not read: that is not well again
        health_module_unread(t->health, slot);
    } else {
        health_module(t->health, slot, m->celsius, now - age);
        health_optics(t->health, slot, tele_module_optics(m, &optics) ? &optics : NULL, now - age);
    }
}

// A node of the snapshot, or of what is meant to be there; NULL.
static const struct node *node_of(const struct tele *t, uint64_t guid)
{
    const struct node *n = t->table.fabric != NULL ? fabric_by_guid(t->table.fabric, guid) : NULL;
    return n == NULL && t->known != NULL ? fabric_by_guid(t->known, guid) : n;
}

static void tell_devices(struct tele *t, int64_t now)
{
    uint64_t *guid;
    uint32_t standing = devices_standing(t->devices, &guid);
    for (uint32_t i = 0; i < standing; i++)
        if (t->modules == NULL || (t->table.fabric != NULL && node_of(t, guid[i]) == NULL))
            devices_forget(t->devices, guid[i]);
    devices_age(t->devices, now);
    free(guid);
    for (uint32_t i = 0; t->modules != NULL && i < tele_devices_num(t->modules); i++) {
        const struct tele_device *d = tele_device_at(t->modules, i);
        const struct node *n = node_of(t, d->guid);
        int64_t age = tele_modules_age(t, d->taken_ns);
        if (n != NULL && age <= TELE_MODULES_OLD_NS)
            devices_feed(t->devices, d, n->type == NODE_SWITCH, now - age);
    }
}

static void tell_modules(struct tele *t)
{
    int64_t now = loop_now(t->loop).ns;
    tell_devices(t, now);
    for (uint32_t i = 0; i < t->table.num; i++)
        tell_module(t, i, now);
}

void tele_set_modules(struct tele *t, struct tele_modules *m)
{
    struct tele_modules *old = t->modules;
    t->modules = m;
    tell_modules(t);
    tele_modules_free(old);
}

static void begin(struct tele *t)
{
    int64_t now = loop_now(t->loop).ns;
    t->active = true;
    t->due = now;
    loop_timer_at(&t->timer, (mono_t){now});
    if (t->o.errors_interval_ns > 0 && t->o.errors_interval_ns < t->o.interval_ns) {
        t->errors_began = now;
        t->errors_next = t->num_order;
        loop_timer_at(&t->errors_timer, (mono_t){now + t->o.errors_interval_ns});
    }
}

static void stop(struct tele *t)
{
    t->active = t->sweeping = false;
    t->pending = 0;
    sweep_end_stop(t);
    for (uint32_t i = 0; i < t->num_agents; i++)
        t->agent[i].waited = t->agent[i].wanted = false;
    loop_timer_cancel(&t->timer);
    loop_timer_cancel(&t->errors_timer);
}

// A sweep that runs goes on with the agents that have not begun; new ones before its place wait for the next.
static void resume(struct tele *t, uint32_t agents_before)
{
    if (!t->sweeping || t->num_order == agents_before)
        return;
    int64_t now = loop_now(t->loop).ns;
    t->next = 0;
    while (t->next < t->num_order && t->began + turn_of(&t->agent[t->order[t->next]], spread(t)) <= now)
        t->next++;
    t->errors_next = t->num_order;
}

void tele_fabric(struct tele *t, const struct fabric *f, const struct fabric_tables *tables,
                 const struct fabric_groups *groups)
{
    const struct fabric *old = t->table.fabric;
    const struct fabric_tables *old_tables = t->tables;
    const struct fabric_groups *old_groups = t->groups;
    uint32_t before = t->num_order;

    t->tables = tables ? tables_ref(tables) : NULL;
    t->groups = groups ? groups_ref(groups) : NULL;
    tables_unref(old_tables);
    groups_unref(old_groups);
    if (f == old && (!t->links_due || f == NULL))
        return;
    if (f == old) {
        tell_links(t);
        t->links_due = false;
        tell_devices(t, loop_now(t->loop).ns);
        return;
    }
    t->table.fabric = f ? fabric_ref(f) : NULL;
    agents_take(t, f);
    fabric_unref(old);
    t->links_due = true;
    if (f != NULL) {
        tell_links(t);
        t->links_due = false;
        if (t->modules != NULL)
            tell_modules(t);
    }
    if (f == NULL)
        stop(t);
    else if (!t->active && t->o.interval_ns > 0)
        begin(t);
    else
        resume(t, before);
}

// --- questions ---

const struct tele_table *tele_table(const struct tele *t)
{
    return &t->table;
}

const struct congest *tele_congest(const struct tele *t)
{
    return t->congest;
}

struct health *tele_health(struct tele *t)
{
    return t->health;
}

const struct tele_module *tele_module(const struct tele *t, uint32_t slot)
{
    if (t->modules == NULL || slot >= t->table.num)
        return NULL;
    const struct tele_port *p = &t->table.port[slot];
    const struct tele_module *m = tele_modules_find(t->modules, p->node_guid, p->num);
    if (m == NULL && t->table.fabric != NULL && p->port != ID_NONE)
        m = tele_modules_find(t->modules, t->table.fabric->port[p->port].guid, p->num); // named by PortGUID
    return m;
}

const struct tele_device *tele_device(const struct tele *t, uint64_t guid)
{
    return t->modules != NULL ? tele_device_find(t->modules, guid) : NULL;
}

struct tele_modules *tele_modules_of(const struct tele *t)
{
    return t->modules;
}

const struct devices *tele_devices(const struct tele *t)
{
    return t->devices;
}

void tele_links(const struct tele *t, struct health_count *ret)
{
    *ret = t->links;
}

void tele_get_status(const struct tele *t, struct tele_status *ret)
{
    *ret = t->st;
}

uint32_t tele_unread_nodes(const struct tele *t, struct tele_unread_node **ret)
{
    uint32_t n = 0;
    *ret = NULL;
    for (uint32_t i = 0; i < t->num_agents; i++) {
        const struct agent *a = &t->agent[i];
        struct tele_unread_node u = {.guid = a->guid, .why = TELE_READ};
        for (unsigned j = 0; j < a->num; j++) {
            const struct tele_port *p = &t->table.port[a->slot[j]];
            if (p->unread == TELE_READ || p->unread == TELE_GONE)
                continue;
            if (u.ports++ == 0 || p->unread_since < u.since) {
                u.since = p->unread_since;
                u.why = p->unread;
            }
        }
        if (u.ports == 0)
            continue;
        if (n % 64 == 0)
            *ret = xreallocarray(*ret, n + 64, sizeof(**ret));
        (*ret)[n++] = u;
    }
    return n;
}
