// SPDX-License-Identifier: Apache-2.0
// Where routes lead: for what comes to a switch over a port, by which of its ports it goes on. Made for ports
// that are asked about only, and kept while the routes stay.
//
// Cost of one: a search of one row for the port's number (memchr), and one look at the next switch's row for
// each LID found. With groups the LIDs of a switch are looked at together; an entry that its group's rule
// makes an exception of (groups.h: lid_whole, beside) is taken for its table's port.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "telemetry/congest_priv.h"

void congest_routes_done(struct congest_routes *r)
{
    for (uint32_t i = 0; i < r->num_at; i++)
        free(r->at[i]);
    free(r->at);
    free(r->slot_of);
    free(r->first_lid);
    free(r->lid);
    free(r->room);
    free(r->looks);
    fabric_unref(r->fabric);
    tables_unref(r->tables);
    groups_unref(r->groups);
    *r = (struct congest_routes){0};
}

static void map_slots(struct congest_routes *r, const struct tele_table *t)
{
    const struct fabric *f = r->fabric;
    r->slot_of = xmalloc(((size_t)f->num_ports + 1) * sizeof(*r->slot_of));
    memset(r->slot_of, 0xff, f->num_ports * sizeof(*r->slot_of));
    for (uint32_t i = 0; i < t->num; i++)
        if (t->port[i].port < f->num_ports)
            r->slot_of[t->port[i].port] = i;
}

// LIDs by the switch where they hang.
static void map_lids(struct congest_routes *r)
{
    const struct fabric_groups *g = r->groups;
    uint32_t n = g->num_switches;
    r->first_lid = xcalloc(n + 2, sizeof(*r->first_lid));
    r->lid = xcalloc(g->lids + 1, sizeof(*r->lid));
    for (uint32_t l = 0; l < g->lids; l++)
        if (g->lid_switch[l] < n && g->lid_whole[l])
            r->first_lid[g->lid_switch[l] + 2]++;
    for (uint32_t s = 0; s < n; s++)
        r->first_lid[s + 2] += r->first_lid[s + 1];
    for (uint32_t l = 0; l < g->lids; l++)
        if (g->lid_switch[l] < n && g->lid_whole[l])
            r->lid[r->first_lid[g->lid_switch[l] + 1]++] = (uint16_t)l;
}

void congest_routes_set(struct congest_routes *r, const struct tele_table *t,
                        const struct fabric_tables *tables, const struct fabric_groups *groups)
{
    if (!t->fabric || (tables && tables->num_switches != t->fabric->num_switches))
        tables = NULL;
    if (!tables || (groups && groups->num_switches != tables->num_switches))
        groups = NULL;
    if (r->fabric != t->fabric || r->tables != tables || r->groups != groups || r->num_at != t->num) {
        congest_routes_done(r);
        if (!t->fabric)
            return;
        r->fabric = fabric_ref(t->fabric);
        r->tables = tables ? tables_ref(tables) : NULL;
        r->groups = groups ? groups_ref(groups) : NULL;
        r->num_at = t->num;
        r->looks = xcalloc(1, sizeof(*r->looks));
        r->at = xcalloc(t->num + 1, sizeof(struct congest_ways *));
        map_slots(r, t);
        if (tables)
            r->room = xcalloc(tables->lids + 1, sizeof(*r->room));
        if (groups)
            map_lids(r);
    }
    if (r->looks)
        *r->looks = 0;
}

uint32_t congest_switch_of(const struct congest_routes *r, const struct tele_table *t, uint32_t slot)
{
    const struct fabric *f = r->fabric;
    uint32_t p = t->port[slot].port;
    return f && p < f->num_ports ? fabric_node(f, f->port[p].node)->sw : ID_NONE;
}

uint32_t congest_switch_behind(const struct congest_routes *r, const struct tele_table *t, uint32_t slot)
{
    const struct fabric *f = r->fabric;
    uint32_t p = t->port[slot].port;
    if (!f || p >= f->num_ports)
        return ID_NONE;
    const struct node *n = fabric_peer_node(f, &f->port[p]);
    return n ? n->sw : ID_NONE;
}

uint32_t congest_slot_at(const struct congest_routes *r, uint32_t sw, unsigned num)
{
    port_id p = fabric_port_at(r->fabric, fabric_switch(r->fabric, sw), num);
    return num && port_valid(p) ? r->slot_of[p.i] : TELE_SLOT_NONE;
}

static const struct fabric_group *group_at(const struct congest_routes *r, uint32_t sw, uint16_t lid,
                                           uint8_t port)
{
    return r->groups ? groups_at(r->groups, sw, lid, port) : NULL;
}

// --- ways ---

static void count(const struct congest_routes *r, uint32_t sw, uint16_t lid, uint32_t *dests)
{
    uint8_t port = tables_port(r->tables, sw, lid);
    const struct fabric_group *g = group_at(r, sw, lid, port);
    if (!g) {
        dests[port]++;
        return;
    }
    for (unsigned w = 0; w < 4; w++)
        for (uint64_t bits = g->ports.w[w]; bits; bits &= bits - 1)
            dests[w * 64 + (unsigned)__builtin_ctzll(bits)]++;
}

static uint32_t lids_static(const struct congest_routes *r, uint32_t sw, uint8_t num, uint16_t *ret)
{
    const uint8_t *row = tables_row(r->tables, sw);
    uint32_t lids = r->tables->lids, n = 0;
    for (uint32_t i = 1; i < lids;) {
        const uint8_t *x = memchr(row + i, num, lids - i);
        if (!x)
            break;
        for (i = (uint32_t)(x - row); i < lids && row[i] == num; i++)
            ret[n++] = (uint16_t)i;
    }
    return n;
}

// What does not have the port in its table's entry, but in its group.
static uint32_t lids_by_group(const struct congest_routes *r, uint32_t sw, uint8_t num, uint16_t *ret)
{
    const struct fabric_groups *g = r->groups;
    const struct fabric_group *own = g->group + g->first[sw];
    uint32_t n = 0;
    for (uint32_t s = 0; s < g->num_switches; s++) {
        uint16_t i = g->to[(size_t)sw * g->num_switches + s];
        if (i == GROUP_NONE || !port_set_has(&own[i].ports, num))
            continue;
        for (uint32_t k = r->first_lid[s]; k < r->first_lid[s + 1]; k++)
            if (tables_port(r->tables, sw, r->lid[k]) != num)
                ret[n++] = r->lid[k];
    }
    return n;
}

// LIDs that go out by a port of a switch; room for all that the tables have.
static uint32_t lids_of(const struct congest_routes *r, uint32_t sw, uint8_t num, uint16_t *ret)
{
    uint32_t n = lids_static(r, sw, num, ret);
    return r->groups ? n + lids_by_group(r, sw, num, ret + n) : n;
}

static struct congest_ways *make(const struct congest_routes *r, const struct tele_table *t, uint32_t slot)
{
    uint32_t dests[256] = {0}, n = 0;
    uint32_t from = congest_switch_of(r, t, slot), to = congest_switch_behind(r, t, slot);
    if (from == ID_NONE) {
        for (uint32_t lid = 1; lid < r->tables->lids; lid++)
            count(r, to, (uint16_t)lid, dests);
    } else {
        uint32_t num = lids_of(r, from, t->port[slot].num, r->room);
        for (uint32_t i = 0; i < num; i++)
            count(r, to, r->room[i], dests);
    }
    // Nothing goes back where it came from, but by a table that is wrong.
    dests[0] = dests[LFT_DROP] = 0;
    dests[t->port[slot].peer < t->num ? t->port[t->port[slot].peer].num : 0] = 0;
    for (unsigned i = 1; i < LFT_DROP; i++)
        n += dests[i] > 0;
    struct congest_ways *w = xmalloc(sizeof(*w) + n * sizeof(w->way[0]));
    w->num = 0;
    for (unsigned i = 1; i < LFT_DROP; i++)
        if (dests[i])
            w->way[w->num++] =
                (struct congest_way){(uint8_t)i, (uint16_t)(dests[i] > 0xffff ? 0xffff : dests[i])};
    return w;
}

const struct congest_ways *congest_ways(struct congest_routes *r, const struct tele_table *t, uint32_t slot)
{
    if (!r->tables || congest_switch_behind(r, t, slot) == ID_NONE)
        return NULL;
    if (!r->at[slot])
        r->at[slot] = make(r, t, slot);
    return r->at[slot];
}

unsigned congest_outs(const struct congest_routes *r, uint32_t sw, uint16_t lid, struct port_set *ret)
{
    uint8_t port = tables_port(r->tables, sw, lid);
    const struct fabric_group *g = group_at(r, sw, lid, port);
    unsigned n = 0;
    *ret = (struct port_set){0};
    if (g)
        *ret = g->ports;
    else if (port && port != LFT_DROP)
        port_set_add(ret, port);
    for (unsigned w = 0; w < 4; w++)
        n += (unsigned)__builtin_popcountll(ret->w[w]);
    return n;
}

// --- what is behind a port, and who leads there ---

static bool goes_out(const struct congest_routes *r, uint32_t sw, uint16_t lid, uint8_t num)
{
    uint8_t port = tables_port(r->tables, sw, lid);
    if (port == num)
        return true;
    if (port == LFT_DROP || !r->groups)
        return false;
    const struct fabric_group *g = group_at(r, sw, lid, port);
    return g && port_set_has(&g->ports, num);
}

void congest_behind(const struct congest_routes *r, const struct tele_table *t, uint32_t slot,
                    struct congest_behind *ret)
{
    *ret =
        (struct congest_behind){.slot = slot, .sw = congest_switch_of(r, t, slot), .num = t->port[slot].num};
    if (!r->tables || ret->sw == ID_NONE)
        return;
    uint32_t all = lids_of(r, ret->sw, ret->num, r->room), step = (all + CONGEST_DESTS - 1) / CONGEST_DESTS;
    for (uint32_t i = 0; i < all; i += step)
        ret->lid[ret->num_lids++] = r->room[i];
}

// Whether a packet for lid that is at sw may pass the port. With groups there are many ways; to look at all
// is too much where tiers are many, so each hop follows the port when it is among the choices, else the
// table.
static bool passes(const struct congest_routes *r, uint32_t sw, uint16_t lid, const struct congest_behind *to)
{
    for (unsigned hops = 0; hops < 64 && sw != ID_NONE; hops++) {
        if (sw == to->sw)
            return goes_out(r, sw, lid, to->num);
        uint8_t num = tables_port(r->tables, sw, lid);
        const struct fabric_group *g = group_at(r, sw, lid, num);
        const struct node *n = fabric_switch(r->fabric, sw);
        *r->looks += g ? n->num_ports / 4 : 1;
        if (g)
            for (unsigned i = 1; i <= n->num_ports; i++) {
                const struct node *peer = fabric_peer_node(r->fabric, &r->fabric->port[n->first_port + i]);
                if (peer && peer->sw == to->sw && peer->sw != ID_NONE && port_set_has(&g->ports, (uint8_t)i))
                    return goes_out(r, to->sw, lid, to->num);
            }
        if (num == 0 || num > n->num_ports)
            return false;
        const struct node *next = fabric_peer_node(r->fabric, &r->fabric->port[n->first_port + num]);
        sw = next ? next->sw : ID_NONE;
    }
    return false;
}

bool congest_leads(const struct congest_routes *r, const struct tele_table *t, uint32_t slot,
                   const struct congest_behind *to)
{
    uint32_t from = congest_switch_of(r, t, slot), next = congest_switch_behind(r, t, slot);
    if (slot == to->slot)
        return true;
    if (!r->tables || next == ID_NONE)
        return false;
    if (*r->looks > CONGEST_LOOKS)
        return true;
    for (uint32_t i = 0; i < to->num_lids; i++)
        if ((from == ID_NONE || goes_out(r, from, to->lid[i], t->port[slot].num)) &&
            passes(r, next, to->lid[i], to))
            return true;
    return false;
}
