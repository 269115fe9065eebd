// SPDX-License-Identifier: Apache-2.0
// Phase "lids": every end port gets a LID, and keeps it.
//
// In this order: the LID recorded for its GUID; the LID that it already has, if nobody else's; a new one. A
// record reserves its LID whether or not its port is here, so that a host that is down finds its LID again.
// New LIDs are handed out leaf by leaf, consecutive along the leaf's ports, switches last, from the lowest
// free number, so that forwarding tables stay short. Two ports that claim one LID: the recorded owner keeps
// it. What is new is committed before any Set.
//
// The limit is min(49,151, smallest LinearFDBCap - 1): ports beyond it stay without a LID and are reported.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "sm/sm_priv.h"

struct lid_port {
    struct sm_port *p;
    const struct sm_dev *d;
    uint16_t had; // LID that the port has now, 0 = none
};

struct lid_space {
    uint8_t taken[8192]; // bit per LID: recorded, or given in this sweep
    uint16_t max, next;
};

static bool is_taken(const struct lid_space *s, uint16_t lid)
{
    return s->taken[lid >> 3] >> (lid & 7) & 1;
}

static void take(struct lid_space *s, uint16_t lid)
{
    s->taken[lid >> 3] |= (uint8_t)(1u << (lid & 7));
}

static uint16_t next_free(struct lid_space *s)
{
    while (s->next <= s->max && is_taken(s, s->next))
        s->next++;
    if (s->next > s->max)
        return 0;
    take(s, s->next);
    return s->next++;
}

static int leaf_order(const void *a, const void *b)
{
    const struct sm_dev *x = *(struct sm_dev *const *)a, *y = *(struct sm_dev *const *)b;
    int c = strverscmp(x->desc, y->desc); // names only order; GUIDs tell equal ones apart
    if (c != 0)
        return c;
    return x->guid < y->guid ? -1 : x->guid > y->guid;
}

static void add_port(struct lid_port *list, size_t *n, struct sm_dev *d, unsigned num)
{
    struct sm_port *p = &d->port[num];
    struct mad_port_info pi;

    p->lid = 0;
    if (!p->known || p->guid == 0)
        return;
    mad_port_info_decode(p->info, &pi);
    list[*n].p = p;
    list[*n].d = d;
    list[*n].had = pi.lid >= MAD_LID_UNICAST_MIN && pi.lid <= MAD_LID_UNICAST_MAX ? pi.lid : 0;
    (*n)++;
}

// All end ports of the sweep: leaf by leaf the end nodes on its ports, then the switches' own ports, then
// what sits on no switch.
static struct lid_port *list_ports(struct sm *sm, size_t *ret_n)
{
    size_t cap = 1, n = 0;
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
    struct lid_port *list = xcalloc(cap, sizeof(*list));
    qsort(sw, num_sw, sizeof(struct sm_dev *), leaf_order);
    for (uint32_t i = 0; i < num_sw; i++)
        for (unsigned num = 1; num <= sw[i]->ni.num_ports; num++) {
            const struct sm_port *p = &sw[i]->port[num];
            if (p->peer != DEV_NONE && !dev_is_switch(sm->dev[p->peer]))
                add_port(list, &n, sm->dev[p->peer], p->peer_num);
        }
    for (uint32_t i = 0; i < num_sw; i++)
        add_port(list, &n, sw[i], 0);
    for (uint32_t i = 0; i < sm->num_dev && num_sw == 0; i++)
        for (unsigned num = 1; dev_here(sm, sm->dev[i]) && num <= sm->dev[i]->ni.num_ports; num++)
            add_port(list, &n, sm->dev[i], num);
    free(sw);
    *ret_n = n;
    return list;
}

static uint16_t lid_limit(const struct sm *sm)
{
    uint32_t max = MAD_LID_UNICAST_MAX;
    for (uint32_t i = 0; i < sm->num_dev; i++) {
        const struct sm_dev *d = sm->dev[i];
        if (dev_here(sm, d) && dev_is_switch(d) && d->have_si && d->si.linear_fdb_cap > 1 &&
            d->si.linear_fdb_cap - 1u < max)
            max = d->si.linear_fdb_cap - 1u;
    }
    return (uint16_t)max;
}

static void reserve_recorded(struct sm *sm, struct lid_space *s)
{
    for (uint32_t i = 0; i <= sm->lid_of.mask && sm->lid_of.count > 0; i++)
        if (sm->lid_of.slot[i].used && sm->lid_of.slot[i].value <= MAD_LID_UNICAST_MAX)
            take(s, (uint16_t)sm->lid_of.slot[i].value);
}

static void conflict(struct sm *sm, const struct lid_port *l)
{
    char where[128];
    findings_add(&sm->findings_new, FINDING_WARNING, "lid-conflict",
                 sm_port_text(l->d, (unsigned)(l->p - l->d->port), where, sizeof(where)),
                 "came with LID %u, which is another port's; it gets a new one", l->had);
}

// Gives LIDs; returns how many are new records, which are moved to the front of *out.
static size_t assign(struct sm *sm, struct lid_port *list, size_t n, struct lid_space *s, struct db_lid *out)
{
    size_t fresh = 0, without = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t lid;
        if (u64map_get(&sm->lid_of, list[i].p->guid, &lid) && lid >= MAD_LID_UNICAST_MIN && lid <= s->max)
            list[i].p->lid = (uint16_t)lid;
    }
    for (size_t i = 0; i < n; i++) {
        if (list[i].p->lid != 0 || list[i].had == 0 || list[i].had > s->max)
            continue;
        if (is_taken(s, list[i].had)) {
            conflict(sm, &list[i]);
            continue;
        }
        list[i].p->lid = list[i].had;
        take(s, list[i].had);
        out[fresh++] = (struct db_lid){.port_guid = list[i].p->guid, .lid = list[i].had};
    }
    for (size_t i = 0; i < n; i++) {
        if (list[i].p->lid != 0)
            continue;
        list[i].p->lid = next_free(s);
        if (list[i].p->lid == 0)
            without++;
        else
            out[fresh++] = (struct db_lid){.port_guid = list[i].p->guid, .lid = list[i].p->lid};
    }
    if (without > 0)
        findings_add(&sm->findings_new, FINDING_ERROR, "lids-exhausted", "",
                     "%zu ports stay without a LID: the smallest table of the switches ends at LID %u; "
                     "forget hosts that are gone for good, or split the fabric",
                     without, s->max);
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

void sm_lids_assign(struct sm *sm)
{
    struct lid_space *s = xcalloc(1, sizeof(*s));
    size_t n;
    struct lid_port *list = list_ports(sm, &n);
    struct db_lid *fresh = xcalloc(n ? n : 1, sizeof(*fresh));

    s->max = lid_limit(sm);
    s->next = MAD_LID_UNICAST_MIN;
    reserve_recorded(sm, s);
    size_t num_fresh = assign(sm, list, n, s, fresh);
    for (size_t i = 0; i < num_fresh; i++)
        u64map_set(&sm->lid_of, fresh[i].port_guid, fresh[i].lid);
    const struct sm_dev *own = sm->dev[sm->own_dev];
    sm->own_lid = own->port[dev_is_switch(own) ? 0 : sm->own.num].lid;
    sm_phase(sm, "record");
    if (sm->db != NULL && num_fresh > 0)
        db_lids_put(sm->db, sm->o.fabric, fresh, num_fresh, recorded, sm);
    else
        sm_lids_recorded(sm);
    free(fresh);
    free(list);
    free(s);
}

void sm_lids_load(struct sm *sm)
{
    struct db_lid *rec = NULL;
    long n = sm->db != NULL ? db_lids_load(sm->db, sm->o.fabric, &rec) : 0;

    u64map_init(&sm->lid_of, NULL, n > 0 ? (uint32_t)n : 16);
    for (long i = 0; i < n; i++)
        if (rec[i].lid >= MAD_LID_UNICAST_MIN && rec[i].lid <= MAD_LID_UNICAST_MAX)
            u64map_set(&sm->lid_of, rec[i].port_guid, rec[i].lid);
    if (n < 0)
        sm_event(sm, "lids-not-read", "error", "",
                 "recorded LIDs could not be read (%s); ports keep the LIDs that they have",
                 strerror((int)-n));
    free(rec);
}
