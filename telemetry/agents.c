// SPDX-License-Identifier: Apache-2.0
// From a snapshot to slots and agents: every port with a cable has a slot, the one it had before; what is
// gone keeps its slot and says so. O(ports), one look-up a node.
#include "telemetry/telemetry_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/xalloc.h"
#include "telemetry/rate.h"

void agents_done(struct tele *t)
{
    for (uint32_t i = 0; i < t->num_agents; i++)
        free(t->agent[i].slot);
    free(t->agent);
    free(t->order);
    free(t->fresh);
    free(t->slot_agent);
    free(t->meant);
}

void agents_slots(struct tele *t)
{
    uint32_t n = t->table.num;
    if (n > t->slots_room) {
        uint32_t to = t->slots_room + t->slots_room / 4 > n ? t->slots_room + t->slots_room / 4 : n;
        t->fresh = xreallocarray(t->fresh, to, sizeof(*t->fresh));
        t->slot_agent = xreallocarray(t->slot_agent, to, sizeof(*t->slot_agent));
        t->meant = xreallocarray(t->meant, to, 1);
        for (uint32_t i = t->slots_room; i < to; i++) {
            t->fresh[i] = 0;
            t->meant[i] = 0;
            t->slot_agent[i] = TELE_SLOT_NONE;
        }
        t->slots_room = to;
    }
    accum_room(&t->accum, n);
}

void agent_name(const struct tele *t, const struct agent *a, char *buf, size_t size)
{
    const struct fabric *f = t->table.fabric;
    const struct node *n = f ? fabric_by_guid(f, a->guid) : NULL;
    if (n != NULL && a->key_port == 0)
        fabric_node_name(f, n, buf, size);
    else if (n != NULL)
        fabric_port_name(f, fabric_port_at(f, n, a->key_port), buf, size);
    else
        snprintf(buf, size, "0x%016llx", (unsigned long long)a->guid);
}

static uint32_t agent_make(struct tele *t, uint64_t guid, uint8_t key_port)
{
    if (t->num_agents == t->room_agents) {
        t->room_agents = t->room_agents ? t->room_agents + t->room_agents / 2 : 64;
        t->agent = xreallocarray(t->agent, t->room_agents, sizeof(*t->agent));
    }
    t->agent[t->num_agents] = (struct agent){
        .guid = guid, .key_port = key_port, .turn = (uint32_t)(hash_mix64(guid + key_port) >> 32)};
    return t->num_agents++;
}

static bool has_cable(const struct port *p)
{
    return port_valid(p->peer) || p->excluded != PORT_INCLUDED || p->a.state > PORT_DOWN;
}

static uint32_t slot_of(struct tele *t, const struct tele_node *n, uint8_t num)
{
    uint32_t slot = n->slot[num];
    if (slot != TELE_SLOT_NONE)
        return slot;
    slot = t->series != NULL ? series_id(t->series, n->guid, num) : t->table.num;
    tele_slot_set(&t->table, slot, n->guid, num);
    agents_slots(t);
    return slot;
}

uint32_t agents_slot(struct tele *t, uint64_t guid, uint8_t num, uint8_t num_ports)
{
    return slot_of(t, tele_node_add(&t->table, guid, num_ports), num);
}

static void slot_take(struct tele *t, const struct fabric *f, uint32_t slot, uint32_t port)
{
    struct tele_port *p = &t->table.port[slot];
    const struct port *fp = &f->port[port];
    p->port = port;
    p->of_switch = f->node[fp->node.i].type == NODE_SWITCH;
    p->up = fp->a.state >= PORT_INIT || (fp->a.state == PORT_STATE_NOP && port_valid(fp->peer));
    p->rate_mbps = port_rate_mbps(&fp->a);
    p->lanes = (uint8_t)tele_lanes(fp->a.width_active);
    if (p->unread == TELE_GONE) {
        p->unread = TELE_NOT_YET;
        p->unread_since = loop_now(t->loop).ns;
    }
    accum_rate(&t->accum, slot, p->rate_mbps);
}

static void agent_add_slot(struct agent *a, uint32_t slot)
{
    if (a->num == a->room)
        a->slot = xreallocarray(a->slot, a->room = a->room ? (uint16_t)(a->room * 2) : 1, sizeof(uint32_t));
    a->slot[a->num++] = slot;
}

static void agent_at(struct tele *t, struct agent *a, uint16_t lid, bool reached)
{
    if (!reached || lid > LID_UCAST_MAX)
        lid = 0;
    if (lid == a->lid)
        return;
    a->lid = lid;
    agent_new(a);
}

static void take_node(struct tele *t, const struct fabric *f, const struct node *n, uint32_t *port_slot)
{
    bool sw = n->type == NODE_SWITCH;
    const struct port *zero = sw ? &f->port[n->first_port] : NULL;
    uint32_t agent = TELE_SLOT_NONE;
    struct tele_node *tn = tele_node_add(&t->table, n->guid, n->num_ports); // no other is added meanwhile
    for (unsigned num = 1; num <= n->num_ports; num++) {
        uint32_t i = n->first_port + num - node_first_num(n);
        const struct port *p = &f->port[i];
        if (!has_cable(p))
            continue;
        uint32_t slot = slot_of(t, tn, (uint8_t)num);
        slot_take(t, f, slot, i);
        port_slot[i] = slot;
        agent = sw ? tn->agent : t->slot_agent[slot];
        if (agent == TELE_SLOT_NONE)
            agent = agent_make(t, n->guid, sw ? 0 : (uint8_t)num);
        if (sw)
            tn->agent = agent;
        t->slot_agent[slot] = agent;
        agent_add_slot(&t->agent[agent], slot);
        if (!sw)
            agent_at(t, &t->agent[agent], p->a.lid,
                     p->a.state == PORT_ACTIVE || p->a.state == PORT_STATE_NOP);
    }
    if (sw && agent != TELE_SLOT_NONE)
        agent_at(t, &t->agent[agent], zero->a.lid, true);
}

static void forget_ports(struct tele *t)
{
    for (uint32_t i = 0; i < t->table.num; i++) {
        t->table.port[i].port = ID_NONE;
        t->table.port[i].peer = TELE_SLOT_NONE;
    }
    for (uint32_t i = 0; i < t->num_agents; i++) {
        struct agent *a = &t->agent[i];
        a->asked = a->cursor > 0 && a->cursor <= a->num ? t->table.port[a->slot[a->cursor - 1]].num : 0;
        a->num = 0;
    }
}

// A round that runs goes on behind the port that it has asked last.
static void find_cursors(struct tele *t)
{
    for (uint32_t i = 0; i < t->num_agents; i++) {
        struct agent *a = &t->agent[i];
        a->cursor = 0;
        while (a->cursor < a->num && t->table.port[a->slot[a->cursor]].num <= a->asked)
            a->cursor++;
    }
}

static void mark_gone(struct tele *t)
{
    for (uint32_t i = 0; i < t->table.num; i++) {
        struct tele_port *p = &t->table.port[i];
        if (p->port != ID_NONE || p->unread == TELE_GONE)
            continue;
        p->unread = TELE_GONE;
        p->unread_since = loop_now(t->loop).ns;
        p->up = false;
        t->table.have[i] = t->table.had[i] = t->fresh[i] = 0;
    }
    for (uint32_t i = 0; i < t->num_agents; i++)
        if (t->agent[i].num == 0 && t->agent[i].lid) {
            t->agent[i].lid = 0;
            agent_new(&t->agent[i]);
        }
}

static int by_turn(const void *x, const void *y, void *arg)
{
    const struct agent *a = arg, *p = &a[*(const uint32_t *)x], *q = &a[*(const uint32_t *)y];
    return p->turn != q->turn ? (p->turn > q->turn ? 1 : -1) : p->guid > q->guid ? 1 : -1;
}

static void make_order(struct tele *t)
{
    if (t->num_order == t->num_agents)
        return;
    t->order = xreallocarray(t->order, t->num_agents, sizeof(uint32_t));
    for (uint32_t i = 0; i < t->num_agents; i++)
        t->order[i] = i;
    qsort_r(t->order, t->num_agents, sizeof(uint32_t), by_turn, t->agent);
    t->num_order = t->num_agents;
}

// Nodes, a rail's together, switches first: so are the slots of new ones, and history reads a rail's fast
// (db/series.h). To be freed.
static uint32_t *by_rail(const struct fabric *f)
{
    uint32_t rails = f->num_rails + 1u, *first = xcalloc(2 * rails + 1, sizeof(uint32_t)); // the last: none
    uint32_t *order = xcalloc(f->num_nodes + 1ull, sizeof(uint32_t));
    for (int put = 0; put < 2; put++) {
        for (uint32_t i = 0; i < f->num_nodes; i++) {
            const struct node *n = &f->node[i];
            uint32_t k = (n->type == NODE_SWITCH ? 0 : rails) + (n->rail < rails ? n->rail : rails - 1);
            if (put)
                order[first[k]++] = i;
            else
                first[k + 1]++;
        }
        for (uint32_t k = 0; k < 2 * rails && !put; k++)
            first[k + 1] += first[k];
    }
    free(first);
    return order;
}

void agents_take(struct tele *t, const struct fabric *f)
{
    uint32_t *port_slot = NULL;
    forget_ports(t);
    if (f != NULL) {
        port_slot = xmalloc((f->num_ports + 1ull) * sizeof(uint32_t));
        memset(port_slot, 0xff, (f->num_ports + 1ull) * sizeof(uint32_t));
        uint32_t *order = by_rail(f);
        for (uint32_t i = 0; i < f->num_nodes; i++)
            take_node(t, f, &f->node[order[i]], port_slot);
        free(order);
        for (uint32_t i = 0; i < f->num_ports; i++)
            if (port_slot[i] != TELE_SLOT_NONE && port_valid(f->port[i].peer))
                t->table.port[port_slot[i]].peer = port_slot[f->port[i].peer.i];
        free(port_slot);
    }
    find_cursors(t);
    mark_gone(t);
    make_order(t);
}
