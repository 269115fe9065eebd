// SPDX-License-Identifier: Apache-2.0
// Virtual lanes as hosts know them: as service levels of paths, which they keep as long as they keep the
// path. So lanes of the tables in force are kept in the database beside the tables (blob "lanes", in the form
// of lanes_write()) and are there again after a restart; who hangs on a switch whose lanes change is asked to
// register, and so to ask, anew, those first whose old lanes may wait in a circle; and every end port is told
// the level of its way to the manager. What stands on the devices: sl2vl.c.
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "sm/sm_priv.h"

// --- service levels towards the manager ---

static const struct node *switch_of(const struct fabric *f, const struct sm *sm, const struct sm_dev *d,
                                    unsigned num)
{
    const struct sm_port *p = &d->port[num];
    uint64_t guid = d->guid;
    if (!dev_is_switch(d))
        guid = p->peer != DEV_NONE ? sm->dev[p->peer]->guid : 0;
    const struct node *n = fabric_by_guid(f, guid);
    return n != NULL && n->type == NODE_SWITCH ? n : NULL;
}

uint8_t sm_lanes_master_sl(const struct sm *sm, const struct sm_dev *d, unsigned num, uint8_t now)
{
    bool next = sm->next_tables != NULL;
    const struct fabric_tables *t = next ? sm->next_tables : sm->tables;
    const struct fabric *f = next ? sm->next_fabric : sm->fabric;
    const struct sm_dev *own = sm->dev[sm->own_dev];

    if (t == NULL || f == NULL)
        return sm->o.engine == ROUTE_SSSP || sm->lanes_kept ? now : 0; // the phase "lanes" comes to it
    if (t->lanes == NULL)
        return 0;
    const struct node *a = switch_of(f, sm, d, num);
    const struct node *b = switch_of(f, sm, own, sm->own.num);
    if (a == NULL || b == NULL)
        return now;
    unsigned lane = lanes_get(t->lanes, a->sw, b->sw);
    return lane == LANE_NONE ? now : (uint8_t)lane;
}

// --- what survives ---

void sm_lanes_load(struct sm *sm)
{
    void *text = NULL;
    size_t size = 0;
    if (sm->db == NULL || db_blob_get(sm->db, sm->o.fabric, "lanes", &text, &size) != 0)
        return;
    sm->lanes_db.text = text;
    sm->lanes_db.size = size;
    sm->lanes_kept = size > 0;
}

struct fabric_lanes *sm_lanes_kept(const struct sm *sm, const struct fabric *f)
{
    struct fabric_lanes *l = NULL;
    struct err e;
    if (sm->lanes_db.size == 0 || lanes_read(sm->lanes_db.text, sm->lanes_db.size, f, &l, &e) != 0)
        return NULL; // made anew then, and hosts are not told
    return l;
}

void sm_lanes_keep(struct sm *sm, const uint8_t *text, size_t size)
{
    if (size == sm->lanes_db.size && (size == 0 || memcmp(text, sm->lanes_db.text, size) == 0))
        return;
    free(sm->lanes_db.text);
    sm->lanes_db.text = size > 0 ? xmalloc(size) : NULL;
    sm->lanes_db.size = size;
    if (size > 0)
        memcpy(sm->lanes_db.text, text, size);
    if (sm->db != NULL)
        db_blob_put(sm->db, sm->o.fabric, "lanes", sm->lanes_db.text, size, NULL, NULL);
}

// --- who is to ask anew ---

struct sides { // lanes before and now
    const struct fabric_lanes *was, *now;
    const uint32_t *old; // number of a switch before, ID_NONE
};

static unsigned lane_at(const struct fabric_lanes *l, uint32_t a, uint32_t b)
{
    return l != NULL ? lanes_get(l, a, b) : 0;
}

static bool other_lane(const struct sides *s, uint32_t a, uint32_t b)
{
    unsigned was = lane_at(s->was, s->old[a], s->old[b]), now = lane_at(s->now, a, b);
    return was != now && was != LANE_NONE && now != LANE_NONE;
}

static void tell_hosts(struct sm *sm, const struct fabric *f, uint32_t sw, bool first)
{
    const struct node *n = fabric_switch(f, sw);
    for (unsigned num = 1; num <= n->num_ports; num++) {
        const struct port *p = &f->port[n->first_port + num];
        const struct node *z = fabric_peer_node(f, p);
        if (z != NULL && z->type != NODE_SWITCH)
            sm_sa_ask_anew(sm, fabric_port(f, p->peer)->guid, first);
    }
}

static uint32_t *old_numbers(const struct fabric *before, const struct fabric *f)
{
    uint32_t *old = xcalloc(f->num_switches + 1u, sizeof(*old));
    for (uint32_t a = 0; a < f->num_switches; a++) {
        const struct node *o = fabric_by_guid(before, fabric_switch(f, a)->guid);
        old[a] = o != NULL && o->type == NODE_SWITCH ? o->sw : ID_NONE;
    }
    return old;
}

static bool same_numbers(const struct sides *s, uint32_t n)
{
    if (s->was == NULL || s->now == NULL || s->was->num_switches != n)
        return false;
    for (uint32_t a = 0; a < n; a++)
        if (s->old[a] != a)
            return false;
    return true;
}

// Pairs are many: those of a switch are looked at one by one only where there is a difference.
static bool same_row(const struct sides *s, uint32_t a, bool alike)
{
    size_t stride = s->now != NULL ? s->now->stride : 0;
    return alike && memcmp(s->was->pair + a * stride, s->now->pair + a * stride, stride) == 0;
}

void sm_lanes_publish(struct sm *sm)
{
    bool first = sm->tables == NULL;
    const struct fabric *f = sm->next_fabric;
    struct sides s = {.was = first ? sm_route_found_lanes(sm) : sm->tables->lanes,
                      .now = sm->next_tables->lanes};
    const struct route_plan *plan = sm_route_plan(sm);
    uint32_t n = f->num_switches, changed = 0, stale = plan != NULL ? plan->num_stale : 0;

    sm->lanes_kept = false; // from here on the tables say it
    sm->levels_moved = s.was != s.now;
    if (s.was == s.now || (first && sm_route_found_blank(sm))) // nobody has a path yet
        return;
    uint32_t *old = old_numbers(first ? f : sm->fabric, f);
    s.old = old;
    bool alike = same_numbers(&s, n);
    for (uint32_t a = 0; a < n; a++) {
        bool other = false;
        if (same_row(&s, a, alike))
            continue;
        for (uint32_t b = 0; b < n && old[a] != ID_NONE && !other; b++)
            other = old[b] != ID_NONE && other_lane(&s, a, b);
        changed += other;
        if (other)
            tell_hosts(sm, f, a, false);
    }
    free(old);
    for (uint32_t i = 0; i < stale; i++) {
        tell_hosts(sm, f, plan->stale[i].a, true);
        tell_hosts(sm, f, plan->stale[i].b, true);
    }
    if (changed > 0)
        sm_event(
            sm, "lanes-changed", stale > 0 ? "warning" : "notice", "",
            "paths from and to %u switches go by other virtual lanes now; their adapters are asked to look "
            "them up again, some at a time%s",
            changed, stale > 0 ? "; until they have, packets of some may wait in a circle" : "");
}
