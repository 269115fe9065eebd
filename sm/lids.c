// SPDX-License-Identifier: Apache-2.0
// Phase "lids": every end port gets a LID, and keeps it.
//
// In this order: the LID recorded for its GUID; the LID that it already has, if nobody else's; a new one. A
// record reserves its LID whether or not its port is here, so that a host that is down finds its LID again.
// New LIDs are handed out leaf by leaf, consecutive along the leaf's ports, switches last, from the lowest
// free number, so that forwarding tables stay short. With an LMC an adapter's port gets 2^lmc LIDs in a row,
// from a multiple of that on; a switch has one. Where that number grows, ports move that cannot have more
// beside the one they have (lids.h). Two ports that claim one LID: the recorded owner keeps it. What is new
// is committed before any Set.
//
// When no number is free, ports that are absent lose theirs. The limit is min(49,151, smallest LinearFDBCap -
// 1), where the few switches whose table does not even hold what is here do not count: they are left out of
// routing and reported, or one device with a bad answer would take everybody's LID away. Ports beyond the
// limit stay without a LID and are reported.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/xalloc.h"
#include "sm/lids.h"
#include "sm/sm_priv.h"

#define LIDS 65536

struct space {
    uint8_t reserved[LIDS / 8];               // bit per LID: recorded for somebody
    uint8_t given[LIDS / 8];                  // in this call
    uint8_t had[LIDS / 8];                    // somebody has it now
    uint32_t max, next[8], next_reclaimed[8]; // by LMC
};

static bool bit(const uint8_t *set, uint32_t lid)
{
    return set[lid >> 3] >> (lid & 7) & 1;
}

static void set_bit(uint8_t *set, uint32_t lid)
{
    set[lid >> 3] |= (uint8_t)(1u << (lid & 7));
}

static void set_bits(uint8_t *set, uint32_t lid, uint32_t n)
{
    for (uint32_t i = lid; i < lid + n && i < LIDS; i++)
        set_bit(set, i);
}

static bool any_bit(const uint8_t *set, uint32_t lid, uint32_t end)
{
    for (; lid < end; lid++)
        if (bit(set, lid))
            return true;
    return false;
}

// Whether it can be the first LID of a port that has n.
static bool usable(const struct space *s, uint32_t lid, uint32_t n)
{
    return lid >= MAD_LID_UNICAST_MIN && lid % n == 0 && lid + n - 1 <= s->max;
}

static void give(struct space *s, struct lid_port *p, uint32_t lid, enum lid_got got)
{
    set_bits(s->given, lid, 1u << p->lmc);
    p->lid = (uint16_t)lid;
    p->got = (uint8_t)got;
}

static void give_new(struct space *s, struct lid_port *p, enum lid_got got)
{
    uint32_t n = 1u << p->lmc, *next = &s->next[p->lmc], *old = &s->next_reclaimed[p->lmc];

    while (*next + n - 1 <= s->max &&
           (any_bit(s->reserved, *next, *next + n) || any_bit(s->given, *next, *next + n) ||
            (n > 1 && any_bit(s->had, *next, *next + n))))
        *next += n;
    if (*next + n - 1 <= s->max) {
        give(s, p, *next, got);
        return;
    }
    while (*old + n - 1 <= s->max && any_bit(s->given, *old, *old + n))
        *old += n;
    if (*old + n - 1 <= s->max)
        give(s, p, *old, LID_GOT_RECLAIMED);
}

// The recorded LID stays, if what is beyond the range that was recorded is nobody's.
static void give_recorded(struct space *s, struct lid_port *p, uint32_t record)
{
    uint32_t lid = LID_RECORD_LID(record), had = 1u << LID_RECORD_LMC(record), n = 1u << p->lmc;

    if (!LID_RECORD_OK(record) || !usable(s, lid, n) || any_bit(s->given, lid, lid + n))
        return;
    if (had < n && (any_bit(s->reserved, lid + had, lid + n) || any_bit(s->had, lid + had, lid + n)))
        return;
    give(s, p, lid, LID_GOT_RECORDED);
}

static void give_own(struct space *s, struct lid_port *p)
{
    uint32_t n = 1u << p->lmc;
    if (usable(s, p->had, n) && !any_bit(s->reserved, p->had, p->had + n) &&
        !any_bit(s->given, p->had, p->had + n) && !any_bit(s->had, p->had + 1u, p->had + n))
        give(s, p, p->had, LID_GOT_OWN);
}

// Who of several ports with one PortGUID is meant: the others are twins.
static void find_twins(struct lid_port *port, size_t n, const struct u64map *recorded)
{
    struct u64map seen;
    uint32_t record;

    u64map_init(&seen, NULL, n > 0 ? (uint32_t)n : 16);
    for (size_t i = 0; i < n; i++) {
        uint32_t first;
        port[i].lid = 0;
        port[i].got = LID_GOT_NONE;
        if (!u64map_get(&seen, port[i].guid, &first)) {
            u64map_set(&seen, port[i].guid, (uint32_t)i);
        } else if (u64map_get(recorded, port[i].guid, &record) && port[i].had == LID_RECORD_LID(record) &&
                   port[first].had != LID_RECORD_LID(record)) {
            port[first].got = LID_GOT_TWIN; // who has had the LID all the time is the owner
            u64map_set(&seen, port[i].guid, (uint32_t)i);
        } else {
            port[i].got = LID_GOT_TWIN;
        }
    }
    u64map_done(&seen);
}

void lids_assign(struct lid_port *port, size_t n, const struct u64map *recorded, uint16_t max)
{
    struct space *s = xcalloc(1, sizeof(*s));
    uint32_t record;

    s->max = max <= MAD_LID_UNICAST_MAX ? max : MAD_LID_UNICAST_MAX;
    for (uint32_t i = 0; i < 8; i++)
        s->next[i] = s->next_reclaimed[i] = 1u << i;
    for (uint32_t i = 0; i <= recorded->mask && recorded->count > 0; i++)
        if (recorded->slot[i].used && LID_RECORD_OK(recorded->slot[i].value))
            set_bits(s->reserved, LID_RECORD_LID(recorded->slot[i].value),
                     1u << LID_RECORD_LMC(recorded->slot[i].value));
    for (size_t i = 0; i < n; i++)
        set_bit(s->had, port[i].had);
    find_twins(port, n, recorded);
    for (size_t i = 0; i < n; i++)
        if (port[i].got == LID_GOT_NONE && u64map_get(recorded, port[i].guid, &record))
            give_recorded(s, &port[i], record);
    for (size_t i = 0; i < n; i++)
        if (port[i].got == LID_GOT_NONE)
            give_own(s, &port[i]);
    for (size_t i = 0; i < n; i++) {
        bool moves =
            port[i].lmc > 0 && (u64map_get(recorded, port[i].guid, &record) || usable(s, port[i].had, 1));
        if (port[i].got == LID_GOT_NONE)
            give_new(s, &port[i], moves ? LID_GOT_MOVED : LID_GOT_NEW);
    }
    free(s);
}

// --- of the running sweep ---

struct end { // beside each lid_port: whose it is
    struct sm_port *p;
    struct sm_dev *d;
    uint16_t before;
};

struct list {
    struct lid_port *port;
    struct end *end;
    size_t n;
};

static int leaf_order(const void *a, const void *b)
{
    const struct sm_dev *x = *(struct sm_dev *const *)a, *y = *(struct sm_dev *const *)b;
    int c = strverscmp(x->desc, y->desc); // names only order; GUIDs tell equal ones apart
    if (c != 0)
        return c;
    return x->guid < y->guid ? -1 : x->guid > y->guid;
}

static const struct sm_port *own_port(const struct sm *sm)
{
    const struct sm_dev *own = sm->dev[sm->own_dev];
    return &own->port[dev_is_switch(own) ? 0 : sm->own.num];
}

static void twin_finding(struct sm *sm, const struct sm_dev *d, unsigned num)
{
    char where[128];
    sm_note(sm, NOTE_LIDS, FINDING_ERROR, "duplicate-port-guid", sm_port_text(d, num, where, sizeof(where)),
            "another port has the same PortGUID (" GUID_FMT "); this one gets no LID",
            GUID_ARG(d->port[num].guid));
}

static void add_port(struct sm *sm, struct list *l, struct sm_dev *d, unsigned num)
{
    struct sm_port *p = &d->port[num];
    struct mad_port_info pi;
    uint16_t before = p->lid;

    p->lid = 0;
    if (!p->known || p->guid == 0)
        return;
    if (p != own_port(sm) && p->guid == own_port(sm)->guid) { // nobody takes our own LID from us
        twin_finding(sm, d, num);
        return;
    }
    mad_port_info_decode(p->info, &pi);
    l->end[l->n] = (struct end){.p = p, .d = d, .before = before};
    l->port[l->n++] =
        (struct lid_port){.guid = p->guid, .had = pi.lid, .lmc = dev_is_switch(d) ? 0 : sm->o.lmc};
}

// All end ports of the sweep: leaf by leaf the end nodes on its ports, then the switches' own ports, then
// what sits on no switch.
static void list_ports(struct sm *sm, struct list *l)
{
    size_t cap = 1;
    uint32_t num_sw = 0;
    struct sm_dev **sw = xcalloc(sm->num_dev ? sm->num_dev : 1, sizeof(struct sm_dev *));

    for (uint32_t i = 0; i < sm->num_dev; i++) {
        struct sm_dev *d = sm->dev[i];
        if (!dev_here(sm, d))
            continue;
        cap += dev_is_switch(d) ? 1 : d->ni.num_ports;
        if (dev_is_switch(d))
            sw[num_sw++] = d;
    }
    l->port = xcalloc(cap, sizeof(*l->port));
    l->end = xcalloc(cap, sizeof(*l->end));
    l->n = 0;
    qsort(sw, num_sw, sizeof(struct sm_dev *), leaf_order);
    for (uint32_t i = 0; i < num_sw; i++)
        for (unsigned num = 1; num <= sw[i]->ni.num_ports; num++) {
            const struct sm_port *p = &sw[i]->port[num];
            struct sm_dev *z = p->peer != DEV_NONE ? sm->dev[p->peer] : NULL;
            if (z != NULL && !dev_is_switch(z) && z->here && z->port[p->peer_num].peer == sw[i]->index &&
                z->port[p->peer_num].peer_num == num) // once, though another port still believes in it
                add_port(sm, l, z, p->peer_num);
        }
    for (uint32_t i = 0; i < num_sw; i++)
        add_port(sm, l, sw[i], 0);
    for (uint32_t i = 0; i < sm->num_dev && num_sw == 0; i++)
        for (unsigned num = 1; dev_here(sm, sm->dev[i]) && num <= sm->dev[i]->ni.num_ports; num++)
            add_port(sm, l, sm->dev[i], num);
    free(sw);
}

// Highest LID that the ports here need: those they keep, and as many as they are to have.
static uint32_t lids_needed(const struct sm *sm, const struct list *l)
{
    uint32_t need = (1u << sm->o.lmc) - 1, record; // below the first range, if switches do not fill that
    for (size_t i = 0; i < l->n; i++)
        need += 1u << l->port[i].lmc;
    for (size_t i = 0; i < l->n; i++) {
        if (!u64map_get(&sm->lid_of, l->port[i].guid, &record))
            continue;
        uint32_t last = LID_RECORD_LID(record) + (1u << l->port[i].lmc) - 1;
        if (last > need && last <= MAD_LID_UNICAST_MAX)
            need = last;
    }
    return need < MAD_LID_UNICAST_MAX ? need : MAD_LID_UNICAST_MAX;
}

// Also marks the switches whose table is too small for what is here, unless they are more than half of all.
static uint16_t lid_limit(struct sm *sm, const struct list *l)
{
    uint32_t need = lids_needed(sm, l), max = MAD_LID_UNICAST_MAX, least = max, num = 0, small = 0;
    char where[32];

    for (uint32_t i = 0; i < sm->num_dev; i++) {
        struct sm_dev *d = sm->dev[i];
        sm->model_whole |= d->too_small;
        d->too_small = false;
        if (!dev_here(sm, d) || !dev_is_switch(d) || !d->have_si)
            continue;
        uint32_t top = d->si.linear_fdb_cap > 0 ? d->si.linear_fdb_cap - 1u : 0;
        d->too_small = top < need;
        num++;
        small += d->too_small;
        least = top < least && top > 0 ? top : least;
        max = top < max && !d->too_small ? top : max;
    }
    bool few = small * 2 <= num && small < num;
    for (uint32_t i = 0; i < sm->num_dev && small > 0; i++) {
        struct sm_dev *d = sm->dev[i];
        if (!d->too_small)
            continue;
        d->too_small = few;
        sm->model_whole = true;
        sm_note(sm, NOTE_LIDS, FINDING_ERROR, "table-too-small",
                d->desc[0] ? d->desc : guid_str(d->guid, where),
                few ? "LinearFDBCap is %u, LIDs up to %u are in use; the switch is left out of routing"
                    : "LinearFDBCap is %u, LIDs up to %u are needed; not every port gets one",
                d->si.linear_fdb_cap, need);
    }
    return (uint16_t)(few || small == 0 ? max : least);
}

static void port_finding(struct sm *sm, const struct lid_port *l, const struct end *e)
{
    unsigned num = (unsigned)(e->p - e->d->port);
    char where[128];

    if (l->got == LID_GOT_TWIN)
        twin_finding(sm, e->d, num);
    else if ((l->got == LID_GOT_NEW || l->got == LID_GOT_RECLAIMED) && l->had >= MAD_LID_UNICAST_MIN &&
             l->had <= MAD_LID_UNICAST_MAX)
        sm_note(sm, NOTE_LIDS, FINDING_WARNING, "lid-conflict", sm_port_text(e->d, num, where, sizeof(where)),
                "came with LID %u, which is another port's or beyond the limit; it gets %u", l->had, l->lid);
}

// Forgets who held the LIDs that were reclaimed; what is left over of absent ports goes when it is much.
static void forget_reclaimed(struct sm *sm, const struct list *l)
{
    uint8_t *taken = xcalloc(LIDS / 8, 1);
    struct u64map old = sm->lid_of;

    for (size_t i = 0; i < l->n; i++)
        if (l->port[i].got == LID_GOT_RECLAIMED)
            set_bits(taken, l->port[i].lid, 1u << l->port[i].lmc);
    u64map_init(&sm->lid_of, NULL, old.count + 16);
    for (uint32_t i = 0; i <= old.mask && old.count > 0; i++) {
        uint32_t v = old.slot[i].value, lid = LID_RECORD_LID(v), end = lid + (1u << LID_RECORD_LMC(v));
        if (old.slot[i].used && !any_bit(taken, lid, end < LIDS ? end : LIDS))
            u64map_set(&sm->lid_of, old.slot[i].key, v);
    }
    u64map_done(&old);
    free(taken);
}

static bool to_record(const struct sm *sm, const struct lid_port *p)
{
    uint32_t record;
    if (p->lid == 0 || !u64map_get(&sm->lid_of, p->guid, &record))
        return p->lid != 0;
    return record != LID_RECORD(p->lid, p->lmc);
}

// Takes the results over; returns the new records.
static struct db_lid *accept(struct sm *sm, const struct list *l, uint16_t max, size_t *ret_fresh)
{
    struct db_lid *fresh = xcalloc(l->n ? l->n : 1, sizeof(*fresh));
    size_t n = 0, without = 0, reclaimed = 0, moved = 0;

    for (size_t i = 0; i < l->n; i++) {
        const struct lid_port *p = &l->port[i];
        l->end[i].p->lid = p->lid;
        l->end[i].p->lmc = p->lmc;
        if (p->lid != l->end[i].before)
            sm_touch(sm, l->end[i].d);
        without += p->got == LID_GOT_NONE;
        reclaimed += p->got == LID_GOT_RECLAIMED;
        moved += p->got == LID_GOT_MOVED;
        if (to_record(sm, p))
            fresh[n++] = (struct db_lid){.port_guid = p->guid, .lid = p->lid, .lmc = p->lmc};
        port_finding(sm, p, &l->end[i]);
    }
    if (reclaimed > 0) {
        forget_reclaimed(sm, l);
        sm_note(sm, NOTE_LIDS, FINDING_WARNING, "lids-reclaimed", "",
                "%zu new ports got LIDs that were reserved for absent ones: none else was left up to %u",
                reclaimed, max);
    }
    if (without > 0)
        sm_note(sm, NOTE_LIDS, FINDING_ERROR, "lids-exhausted", "",
                "%zu ports stay without a LID: the smallest table of the switches ends at LID %u; %s",
                without, max, sm->o.lmc > 0 ? "a smaller sm.lmc takes fewer" : "split the fabric");
    if (moved > 0)
        sm_event(sm, "lids-moved", "warning", "",
                 "%zu ports have other LIDs now: each gets %u in a row, and theirs could not be the first of "
                 "so many",
                 moved, 1u << sm->o.lmc);
    for (size_t i = 0; i < n; i++)
        u64map_set(&sm->lid_of, fresh[i].port_guid, LID_RECORD(fresh[i].lid, fresh[i].lmc));
    *ret_fresh = n;
    return fresh;
}

static void recorded(void *arg, int status)
{
    struct sm *sm = arg;
    if (status != 0 && sm->db_status == 0)
        sm_event(sm, "lids-not-recorded", "error", "",
                 "new LIDs could not be stored (%s); they hold until a restart, which reads them back from "
                 "the ports",
                 strerror(-status));
    sm->db_status = status;
    sm_lids_recorded(sm);
}

// Whether what a partial sweep has touched has the LIDs that it should have.
static bool settled(const struct sm *sm)
{
    for (uint32_t i = 0; i < sm->touched.n; i++) {
        const struct sm_dev *d = sm->dev[sm->touched.index[i]];
        uint32_t lid;
        for (unsigned num = dev_is_switch(d) ? 0 : 1; d->here && num <= d->ni.num_ports; num++) {
            const struct sm_port *p = &d->port[num];
            if (p->known && p->guid != 0 &&
                (p->lid == 0 || !u64map_get(&sm->lid_of, p->guid, &lid) || lid != LID_RECORD(p->lid, p->lmc)))
                return false;
        }
    }
    return true;
}

void sm_lids_assign(struct sm *sm)
{
    struct list l;
    size_t num_fresh;

    if (!sm->sweep.full && settled(sm)) {
        sm_lids_recorded(sm);
        return;
    }
    sm_phase(sm, "lids");
    sm_notes_drop(sm, NOTE_LIDS);
    list_ports(sm, &l);
    uint16_t max = lid_limit(sm, &l);
    lids_assign(l.port, l.n, &sm->lid_of, max);
    struct db_lid *fresh = accept(sm, &l, max, &num_fresh);
    free(l.port);
    free(l.end);
    sm->own_lid = own_port(sm)->lid;
    sm_phase(sm, "record");
    if (sm->db != NULL && num_fresh > 0)
        db_lids_put(sm->db, sm->o.fabric, fresh, num_fresh, recorded, sm);
    else
        sm_lids_recorded(sm);
    free(fresh);
}

void sm_lids_load(struct sm *sm)
{
    struct db_lid *rec = NULL;
    long n = sm->db != NULL ? db_lids_load(sm->db, sm->o.fabric, &rec) : 0;

    u64map_init(&sm->lid_of, NULL, n > 0 ? (uint32_t)n : 16);
    for (long i = 0; i < n; i++)
        if (rec[i].lid >= MAD_LID_UNICAST_MIN && rec[i].lid <= MAD_LID_UNICAST_MAX && rec[i].lmc <= 7)
            u64map_set(&sm->lid_of, rec[i].port_guid, LID_RECORD(rec[i].lid, rec[i].lmc));
    if (n < 0)
        sm_event(sm, "lids-not-read", "error", "",
                 "recorded LIDs could not be read (%s); ports keep the LIDs that they have",
                 strerror((int)-n));
    free(rec);
}
