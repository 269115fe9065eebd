// SPDX-License-Identifier: Apache-2.0
// What has to be read again: marks on devices and ports, set by traps, the light sweep, the audit and by
// sweeps that could not finish with a device, and taken by the next partial sweep. What a sweep has read or
// joined itself is "touched": only that is configured.
#include <stdlib.h>

#include "lib/xalloc.h"
#include "sm/sm_priv.h"

static void list_add(struct sm_dev_list *l, struct sm_dev *d)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 64;
        l->index = xreallocarray(l->index, l->cap, sizeof(*l->index));
    }
    l->index[l->n++] = d->index;
}

// Whether that makes the partial sweep more urgent than it was.
static bool ask(struct sm *sm, const char *cause)
{
    if (sm->dirty_asked && sm_cause(cause)->urgency <= sm_cause(sm->dirty_cause)->urgency)
        return false;
    if (!sm->dirty_asked)
        sm->dirty_since = loop_now_precise(sm->loop);
    sm->dirty_cause = cause;
    sm->dirty_due.ns = 0;
    sm->dirty_asked = true;
    return true;
}

static void mark(struct sm *sm, struct sm_dev *d, uint8_t what, const char *cause)
{
    bool news = dev_is_switch(d) && (what & ~d->dirty & (DIRTY_SWITCH | DIRTY_TOLD));
    if (d->dirty == 0)
        list_add(&sm->dirty, d);
    d->dirty |= what;
    if (ask(sm, cause))
        news = news || !sm->sweeping;
    if (news && !sm->sweeping)
        sm_watch_arm(sm);
    else if (news && sm_cause(cause)->urgency >=
                         SM_SOON) // what an adapter tells of itself can wait for what is read now
        sm_partial_hurry(sm);
    if (sm->sweeping && sm->up && sm_cause(cause)->news)
        sm_pass_hurry(sm, false);
}

void sm_dirty_switch(struct sm *sm, struct sm_dev *d, const char *cause)
{
    mark(sm, d, DIRTY_SWITCH, cause);
}

void sm_dirty_told(struct sm *sm, struct sm_dev *d, const char *cause)
{
    mark(sm, d, DIRTY_TOLD, cause);
}

void sm_dirty_port(struct sm *sm, struct sm_dev *d, unsigned num, const char *cause)
{
    if (num > d->ni.num_ports)
        return;
    d->port[num].dirty = true;
    mark(sm, d, DIRTY_PORTS, cause);
}

void sm_dirty_probe(struct sm *sm, struct sm_dev *d, unsigned num, const char *cause)
{
    if (num > d->ni.num_ports)
        return;
    d->port[num].dirty_probe = true;
    mark(sm, d, DIRTY_PORTS, cause);
}

void sm_dirty_desc(struct sm *sm, struct sm_dev *d, const char *cause)
{
    mark(sm, d, DIRTY_DESC, cause);
}

// Asked by way of the link that leads to it: the answer says whether it is still who it was.
void sm_dirty_node(struct sm *sm, struct sm_dev *d, const char *cause)
{
    if (d->index == sm->own_dev || !d->here)
        sm_resweep(sm, cause, false);
    else
        sm_dirty_probe(sm, sm->dev[d->parent], d->parent_port, cause);
}

void sm_dirty_mute(struct sm *sm, struct sm_dev *d, const char *cause)
{
    mark(sm, d, DIRTY_MUTE, cause);
}

void sm_dirty_tables(struct sm *sm, struct sm_dev *d, const char *cause)
{
    d->lft = DEV_LFT_UNKNOWN;
    mark(sm, d, DIRTY_SWITCH, cause);
}

void sm_dirty_routes(struct sm *sm, const char *cause)
{
    ask(sm, cause);
    if (!sm->sweeping)
        sm_watch_arm(sm);
}

void sm_dirty_none(struct sm *sm)
{
    for (uint32_t i = 0; i < sm->dirty.n; i++) {
        struct sm_dev *d = sm->dev[sm->dirty.index[i]];
        d->dirty = 0;
        for (unsigned num = 0; num <= d->ni.num_ports; num++)
            d->port[num].dirty = d->port[num].dirty_probe = false;
    }
    sm->dirty.n = 0;
    sm->dirty_asked = false;
}

struct sm_dev *sm_dev_by_lid(struct sm *sm, uint16_t lid, unsigned *ret_num)
{
    port_id id = sm->fabric != NULL ? fabric_by_lid(sm->fabric, lid) : PORT_NONE;
    if (!port_valid(id))
        return NULL;
    const struct port *p = fabric_port(sm->fabric, id);
    *ret_num = p->num;
    return sm_dev_find(sm, fabric_node(sm->fabric, p->node)->guid);
}

// --- touched ---

void sm_touch(struct sm *sm, struct sm_dev *d)
{
    if (d->touched)
        return;
    d->touched = true;
    list_add(&sm->touched, d);
}

static void touched_off(struct sm_dev *d)
{
    d->touched = d->reading = d->changed = d->told = d->told_nothing = false;
}

// A link takes two: where one end was touched and is not ACTIVE, the other has to follow.
void sm_touch_far_ends(struct sm *sm)
{
    for (uint32_t i = 0, n = sm->touched.n; i < n; i++) {
        const struct sm_dev *d = sm->dev[sm->touched.index[i]];
        for (unsigned num = 1; d->here && num <= d->ni.num_ports; num++) {
            const struct sm_port *p = &d->port[num];
            if (p->peer != DEV_NONE && (p->info[32] & 0x0f) != MAD_PORT_ACTIVE)
                sm_touch(sm, sm->dev[p->peer]);
        }
    }
}

void sm_touch_none(struct sm *sm)
{
    for (uint32_t i = 0; i < sm->touched.n; i++)
        touched_off(sm->dev[sm->touched.index[i]]);
    sm->touched.n = 0;
}

void sm_touch_again(struct sm *sm)
{
    for (uint32_t i = 0; i < sm->touched.n; i++) {
        struct sm_dev *d = sm->dev[sm->touched.index[i]];
        d->reading = d->changed = d->told = d->told_nothing = false;
    }
}
