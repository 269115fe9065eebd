// SPDX-License-Identifier: Apache-2.0
#include "sm/portcfg.h"

#include <stdio.h>
#include <string.h>

#include "mad/mad.h"
#include "sm/sm.h"

static const char *const field_name[PORTCFG_FIELDS] = {
    "LID",     "MasterSMLID",   "MasterSMSL",       "GidPrefix",
    "LMC",     "SubnetTimeOut", "NeighborMTU",      "OperationalVLs",
    "HOQLife", "VLStallCount",  "error thresholds", "LinkDownDefaultState",
};

const char *portcfg_names(uint32_t fields, char *buf, unsigned long size)
{
    size_t n = 0;
    buf[0] = 0;
    for (int i = 0; i < PORTCFG_FIELDS; i++)
        if (fields >> i & 1 && n < size)
            n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? ", " : "", field_name[i]);
    return buf;
}

static uint8_t min8(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

static void want_end(const struct portcfg_in *in, const struct sm_opts *o, struct mad_port_info *w)
{
    w->lid = in->lid;
    w->master_sm_lid = in->sm_lid;
    w->master_sm_sl = in->sm_sl;
    w->gid_prefix = o->subnet_prefix;
    w->lmc = in->kind == PORTCFG_END ? in->lmc : 0;
    w->subnet_timeout = o->subnet_timeout;
}

// MTU and VLs are agreed between the two ends; a live link's are left alone, since a change may drop it.
static void want_link(const struct portcfg_in *in, const struct sm_opts *o, struct mad_port_info *w)
{
    bool live = in->now->port_state == MAD_PORT_ARMED || in->now->port_state == MAD_PORT_ACTIVE;
    uint8_t mtu = in->now->mtu_cap, vls = in->now->vl_cap;
    if (live)
        return;
    if (in->peer != NULL && in->peer->mtu_cap != 0)
        mtu = min8(mtu, in->peer->mtu_cap);
    if (in->peer != NULL && in->peer->vl_cap != 0)
        vls = min8(vls, in->peer->vl_cap);
    vls = min8(vls, o->max_vls);
    if (mtu != 0)
        w->neighbor_mtu = mtu;
    if (vls != 0)
        w->operational_vls = vls;
}

static uint32_t differing(const struct mad_port_info *a, const struct mad_port_info *b)
{
    uint32_t d = 0;
    d |= a->lid != b->lid ? PORTCFG_LID : 0;
    d |= a->master_sm_lid != b->master_sm_lid ? PORTCFG_MASTER_SM_LID : 0;
    d |= a->master_sm_sl != b->master_sm_sl ? PORTCFG_MASTER_SM_SL : 0;
    d |= a->gid_prefix != b->gid_prefix ? PORTCFG_GID_PREFIX : 0;
    d |= a->lmc != b->lmc ? PORTCFG_LMC : 0;
    d |= a->subnet_timeout != b->subnet_timeout ? PORTCFG_SUBNET_TIMEOUT : 0;
    d |= a->neighbor_mtu != b->neighbor_mtu ? PORTCFG_NEIGHBOR_MTU : 0;
    d |= a->operational_vls != b->operational_vls ? PORTCFG_OPER_VLS : 0;
    d |= a->hoq_life != b->hoq_life ? PORTCFG_HOQ_LIFE : 0;
    d |= a->vl_stall_count != b->vl_stall_count ? PORTCFG_VL_STALL_COUNT : 0;
    d |= a->local_phy_errors != b->local_phy_errors || a->overrun_errors != b->overrun_errors
             ? PORTCFG_ERROR_THRESHOLDS
             : 0;
    d |= a->link_down_default_state != b->link_down_default_state ? PORTCFG_LINK_DOWN_DEFAULT : 0;
    return d;
}

uint32_t portcfg_want(const struct portcfg_in *in, const struct sm_opts *o, struct mad_port_info *w)
{
    *w = *in->now;
    if (in->kind != PORTCFG_SWITCH_EXTERNAL)
        want_end(in, o, w);
    switch (in->kind) {
    case PORTCFG_END:
        want_link(in, o, w);
        if (in->router)
            w->hoq_life = o->hoq_life_host;
        w->local_phy_errors = o->phy_errors;
        w->overrun_errors = o->overrun_errors;
        w->link_down_default_state = MAD_PHYS_POLLING;
        break;
    case PORTCFG_SWITCH0:
        break;
    case PORTCFG_SWITCH0_ENHANCED:
        if (in->now->mtu_cap != 0)
            w->neighbor_mtu = in->now->mtu_cap;
        w->local_phy_errors = o->phy_errors;
        w->overrun_errors = o->overrun_errors;
        break;
    case PORTCFG_SWITCH_EXTERNAL:
        want_link(in, o, w);
        w->hoq_life = in->peer_is_switch ? o->hoq_life_switch : o->hoq_life_host;
        w->vl_stall_count = o->vl_stall_count;
        w->local_phy_errors = o->phy_errors;
        w->overrun_errors = o->overrun_errors;
        w->link_down_default_state = MAD_PHYS_POLLING;
        break;
    }
    uint32_t d = differing(in->now, w) & ~in->not_kept;
    // What a Set carries besides: nothing may change by being echoed.
    w->port_state = MAD_PORT_NO_CHANGE;
    w->port_physical_state = MAD_PHYS_NO_CHANGE;
    w->client_reregister = false;
    if (w->neighbor_mtu == 0) // never 0 in a Set
        w->neighbor_mtu = w->mtu_cap ? w->mtu_cap : MAD_MTU_256;
    return d;
}

uint32_t portcfg_not_kept(uint32_t asked, const struct mad_port_info *want,
                          const struct mad_port_info *answer)
{
    return differing(want, answer) & asked;
}
