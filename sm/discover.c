// SPDX-License-Identifier: Apache-2.0
// Phase "discover" of a full sweep: breadth first over directed routes from our own port.
//
// So that a link is not asked from both ends, the ports of switches `level` hops away are probed only when
// every answer from the levels before has come: a device's other requests (description, SwitchInfo, PortInfo,
// P_Keys) do not wait for that. A device that leaves a first try unanswered is no longer waited for; it costs
// its own time-out and is caught up with when it answers.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sm/sm_priv.h"

#define DEV_FORGET_SWEEPS 64 // what a device did not keep is remembered as long

// --- levels ---

static void discovery_over(void *arg)
{
    struct sm *sm = arg;
    sm->disc.finishing = false;
    sm->disc.over = true;
    sm_discovered(sm);
}

void sm_disc_finish(struct sm *sm)
{
    if (sm->disc.finishing || sm->disc.over)
        return;
    sm->disc.finishing = true;
    loop_task_init(&sm->disc.task, "sm", sm->sweep.full ? discovery_over : sm_partial_over, sm);
    loop_post(sm->loop, &sm->disc.task);
}

// Lets the next levels probe when the present one has nothing left that is waited for.
static void advance(struct sm *sm)
{
    while (sm->disc.wait[sm->disc.level] == 0 && sm->disc.level < MAD_MAX_HOPS) {
        uint32_t level = ++sm->disc.level;
        bool any = false;
        for (uint32_t i = 0; i < sm->num_dev; i++) {
            struct sm_dev *d = sm->dev[i];
            if (dev_here(sm, d) && d->level == level) {
                any = true;
                sm_probe_ports(sm, d);
            }
        }
        if (!any)
            break;
    }
}

void sm_disc_waited(struct sm *sm, uint32_t level)
{
    if (--sm->disc.wait[level] == 0 && level <= sm->disc.level && sm->sweep.full)
        advance(sm);
}

void sm_disc_check(struct sm *sm)
{
    if (!sm->sweep.full) {
        sm_partial_check(sm);
    } else if (sm->disc.pending == 0) {
        advance(sm);
        if (sm->disc.pending == 0 && sm->disc.num_again > 0)
            sm_probe_round(sm);
        if (sm->disc.pending == 0)
            sm_disc_finish(sm);
    }
}

static void own_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    struct mad_node_info ni;
    (void)user;

    if (r->status != 0 || r->mad_status != 0) {
        struct err e;
        err_set(&e, r->status ? r->status : -EIO, sm->transport->name,
                "the local port does not answer NodeInfo; is its driver loaded and the device healthy?");
        sm->disc.pending--;
        sm_sweep_failed(sm, &e);
        return;
    }
    mad_node_info_decode(r->data, &ni);
    if (ni.num_ports == 0 || ni.node_guid == 0 ||
        (ni.node_type != MAD_NODE_SWITCH && (sm->own.num == 0 || sm->own.num > ni.num_ports))) {
        struct err e;
        err_set(&e, -EPROTO, sm->transport->name,
                "the local node's NodeInfo makes no sense (%u ports, we sit on port %u)", ni.num_ports,
                sm->own.num);
        sm->disc.pending--;
        sm_sweep_failed(sm, &e);
        return;
    }
    sm_read_own(sm, &ni);
    sm->disc.level = 0;
    sm->disc.pending--;
    sm_disc_check(sm);
}

// Nothing is under way between sweeps: the moment to forget devices that have been away for long, or at once
// when there are too many.
static void forget_devices(struct sm *sm)
{
    uint64_t age = sm->num_dev > SM_NODES_MAX ? 1 : DEV_FORGET_SWEEPS;
    uint32_t n = 0;

    for (uint32_t i = 0; i < sm->num_dev; i++) {
        struct sm_dev *d = sm->dev[i];
        if (d->seen + age < sm->sweep.id) {
            sm_dev_free(d);
            continue;
        }
        d->index = n;
        sm->dev[n++] = d;
    }
    if (n == sm->num_dev)
        return;
    sm->num_dev = n;
    u64map_done(&sm->by_guid);
    u64map_init(&sm->by_guid, NULL, n > 64 ? n : 64);
    for (uint32_t i = 0; i < n; i++)
        u64map_set(&sm->by_guid, sm->dev[i]->guid, i);
}

void sm_discover_start(struct sm *sm)
{
    struct dr_path here = {0};

    mad_engine_cancel_gen(sm->engine, SM_ASK_GEN); // partial sweeps' questions: now everybody is asked
    sm_touch_none(sm);
    sm_dirty_none(sm);
    sm_notes_drop_all(sm);
    forget_devices(sm);
    for (uint32_t i = 0; i < sm->num_dev; i++) {
        sm->dev[i]->was_here = sm->dev[i]->here;
        sm->dev[i]->here = false;
    }
    sm_disc_reset(sm);
    sm->disc.pending = 1;
    sm->own_dev = DEV_NONE;
    mad_engine_send(sm->engine, &(struct mad_request){
                                    .mgmt_class = MAD_CLASS_SM_DR,
                                    .method = MAD_METHOD_GET,
                                    .attr_id = MAD_ATTR_NODE_INFO,
                                    .path = &here,
                                    .prio = MAD_PRIO_SMP,
                                    .device = sm->own.node_guid,
                                    .retries = -1,
                                    .done = own_done,
                                    .arg = sm,
                                });
}
