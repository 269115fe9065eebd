// SPDX-License-Identifier: Apache-2.0
// PortInfo (IBA 14.2.5.6) and the life of a link: which Sets are refused (status 7, nothing stored), what a
// Get shows of what the device has, training, and the state machine INIT, ARMED, ACTIVE.
//
// Departures: a Set to ACTIVE wants the far end ARMED or ACTIVE already (a real device would take it and lose
// packets); MTU and VLs change at once and do not bounce the link.
#include "sim/sim_priv.h"

#include <string.h>

#define EXT_SPEEDS MAD_CAP_IS_EXTENDED_SPEEDS_SUPPORTED
#define REREGISTER MAD_CAP_IS_CLIENT_REREGISTRATION_SUPPORTED

static struct sim_port *target(struct sim *s, const struct sma_req *r, bool set)
{
    unsigned num = r->am & 0xff;
    if (r->am & 0x7fffff00)
        return NULL;
    if (r->am & MAD_PORT_INFO_EXTENDED_SPEEDS && !(r->end->pi.capability_mask & EXT_SPEEDS))
        return NULL;
    if (is_switch(r->node))
        return port_at(s, r->node, num);
    if (num == 0)
        return r->in;
    struct sim_port *p = port_at(s, r->node, num);
    return set && p != r->in ? NULL : p;
}

// --- Get ---

uint16_t port_info_get(struct sim *s, struct sma_req *r)
{
    const struct sim_port *p = target(s, r, false);
    if (!p)
        return MAD_STATUS_BAD_VALUE;
    struct mad_port_info pi = p->pi;
    pi.local_port_num = r->in->num;
    pi.client_reregister = r->reregister; // not state, but the answer to a Set shows that it was taken
    if (is_switch(r->node) && p->num != 0) {
        pi.m_key = pi.gid_prefix = 0;
        pi.lid = pi.master_sm_lid = pi.m_key_lease_period = 0;
        pi.capability_mask = 0;
        pi.capability_mask2 = 0;
    } else if (pi.m_key_protect_bits >= 1 && !r->m_key_matches) {
        pi.m_key = 0;
    }
    if (!(r->am & MAD_PORT_INFO_EXTENDED_SPEEDS)) {
        pi.link_speed_ext_active = pi.link_speed_ext_supported = pi.link_speed_ext_enabled = 0;
        pi.link_speed_ext_active2 = pi.link_speed_ext_supported2 = pi.link_speed_ext_enabled2 = 0;
    }
    mad_port_info_encode(&pi, r->data);
    return 0;
}

// --- Set: what is refused ---

static bool lid_ok(uint16_t lid)
{
    return lid >= MAD_LID_UNICAST_MIN && lid <= MAD_LID_UNICAST_MAX;
}

static bool end_fields_ok(const struct mad_port_info *want, bool base_port0)
{
    unsigned range = 1u << want->lmc;
    if (!lid_ok(want->lid) || !lid_ok(want->master_sm_lid))
        return false;
    if (base_port0 && want->lmc != 0)
        return false;
    return (want->lid & (range - 1)) == 0 && want->lid + range - 1 <= MAD_LID_UNICAST_MAX;
}

static bool enabled_ok(unsigned want, unsigned supported, unsigned all)
{
    return want == 0 || want == all || (want & ~supported) == 0;
}

static bool link_fields_ok(const struct mad_port_info *cur, const struct mad_port_info *want, bool ext)
{
    if (want->neighbor_mtu == 0 || want->neighbor_mtu > cur->mtu_cap || want->operational_vls > cur->vl_cap)
        return false;
    if (!enabled_ok(want->link_width_enabled, cur->link_width_supported, MAD_WIDTH_AS_SUPPORTED) ||
        !enabled_ok(want->link_speed_enabled, cur->link_speed_supported, MAD_SPEED_AS_SUPPORTED))
        return false;
    return !ext || want->link_speed_ext_enabled == MAD_SPEED_EXT_ENABLED_NONE ||
           enabled_ok(want->link_speed_ext_enabled, cur->link_speed_ext_supported,
                      MAD_SPEED_EXT_AS_SUPPORTED);
}

static bool phys_ok(const struct mad_port_info *want)
{
    return want->port_physical_state <= MAD_PHYS_DISABLED &&
           want->link_down_default_state <= MAD_PHYS_POLLING;
}

static bool state_ok(const struct sim *s, const struct sim_port *p, unsigned to, unsigned phys)
{
    const struct sim_port *peer = peer_of(s, p);
    switch (to) {
    case MAD_PORT_NO_CHANGE:
        return true;
    case MAD_PORT_DOWN:
        return p->pi.port_state > MAD_PORT_DOWN || phys != MAD_PHYS_NO_CHANGE;
    case MAD_PORT_ARMED:
        return p->pi.port_state == MAD_PORT_INIT;
    case MAD_PORT_ACTIVE:
        return p->pi.port_state == MAD_PORT_ARMED && peer && peer->pi.port_state >= MAD_PORT_ARMED;
    }
    return false;
}

// --- Set: what is stored ---

static void store_end_fields(struct sim_port *p, const struct mad_port_info *want)
{
    struct mad_port_info *cur = &p->pi;
    cur->lid = want->lid;
    cur->lmc = want->lmc;
    cur->master_sm_lid = want->master_sm_lid;
    cur->master_sm_sl = want->master_sm_sl;
    cur->gid_prefix = want->gid_prefix;
    cur->m_key = want->m_key;
    cur->m_key_protect_bits = want->m_key_protect_bits;
    cur->m_key_lease_period = want->m_key_lease_period;
    cur->subnet_timeout = want->subnet_timeout;
    cur->init_type = want->init_type;
    p->reregisters += want->client_reregister && cur->capability_mask & REREGISTER;
    cur->multicast_pkey_trap_suppression_enabled = want->multicast_pkey_trap_suppression_enabled;
    cur->m_key_violations = want->m_key_violations;
    cur->p_key_violations = want->p_key_violations;
    cur->q_key_violations = want->q_key_violations;
}

static uint8_t enabled_value(unsigned want, unsigned cur, unsigned supported, unsigned all)
{
    return (uint8_t)(want == 0 ? cur : want == all ? supported : want);
}

static void store_link_fields(struct sim_port *p, const struct mad_port_info *want, bool ext)
{
    struct mad_port_info *cur = &p->pi;
    cur->neighbor_mtu = want->neighbor_mtu;
    if (want->operational_vls != 0)
        cur->operational_vls = want->operational_vls;
    cur->link_width_enabled = enabled_value(want->link_width_enabled, cur->link_width_enabled,
                                            cur->link_width_supported, MAD_WIDTH_AS_SUPPORTED);
    cur->link_speed_enabled = enabled_value(want->link_speed_enabled, cur->link_speed_enabled,
                                            cur->link_speed_supported, MAD_SPEED_AS_SUPPORTED);
    if (ext)
        cur->link_speed_ext_enabled =
            enabled_value(want->link_speed_ext_enabled, cur->link_speed_ext_enabled,
                          cur->link_speed_ext_supported, MAD_SPEED_EXT_AS_SUPPORTED);
    cur->vl_high_limit = want->vl_high_limit;
    cur->vl_stall_count = want->vl_stall_count;
    cur->hoq_life = want->hoq_life;
    cur->filter_raw_inbound = want->filter_raw_inbound;
    cur->filter_raw_outbound = want->filter_raw_outbound;
    if (want->link_down_default_state != 0)
        cur->link_down_default_state = want->link_down_default_state;
}

static void go_active(struct sim *s, struct sim_port *p)
{
    struct sim_port *peer = peer_of(s, p);
    p->pi.port_state = MAD_PORT_ACTIVE;
    host_tell(s, p, HOST_ACTIVE);
    if (peer && peer->pi.port_state == MAD_PORT_ARMED && s->o.auto_active > 0 &&
        rng_double(&s->rng) < s->o.auto_active)
        event_at(s, EV_GO_ACTIVE, port_index(s, peer), s->now + s->o.auto_active_ns);
}

static void apply_states(struct sim *s, struct sim_port *p, unsigned phys, unsigned state)
{
    bool disable = phys == MAD_PHYS_DISABLED || phys == MAD_PHYS_SLEEP;
    if (disable || phys == MAD_PHYS_POLLING || state == MAD_PORT_DOWN) {
        if (phys != MAD_PHYS_NO_CHANGE)
            p->disabled = disable;
        link_down(s, p, p);
        link_try_up(s, p);
        return;
    }
    if (state == MAD_PORT_ARMED)
        p->pi.port_state = MAD_PORT_ARMED;
    else if (state == MAD_PORT_ACTIVE)
        go_active(s, p);
}

uint16_t port_info_set(struct sim *s, struct sma_req *r)
{
    struct sim_port *p = target(s, r, true);
    struct mad_port_info want;
    mad_port_info_decode(r->data, &want);
    if (!p)
        return MAD_STATUS_BAD_VALUE;
    bool ext = r->am & MAD_PORT_INFO_EXTENDED_SPEEDS, sw = is_switch(r->node);
    bool port0 = sw && p->num == 0, base0 = port0 && !s->sw[r->node->sw].si.enhanced_port0;
    bool end = !sw || port0;
    if (end && !end_fields_ok(&want, base0))
        return MAD_STATUS_BAD_VALUE;
    if (!base0 && !link_fields_ok(&p->pi, &want, ext))
        return MAD_STATUS_BAD_VALUE;
    if (!phys_ok(&want) || !state_ok(s, p, want.port_state, want.port_physical_state) ||
        (port0 && want.port_state != MAD_PORT_NO_CHANGE))
        return MAD_STATUS_BAD_VALUE;
    r->reregister = end && want.client_reregister && p->pi.capability_mask & REREGISTER;
    uint16_t lid = p->pi.lid, sm_lid = p->pi.master_sm_lid;
    if (end)
        store_end_fields(p, &want);
    if (!base0) {
        store_link_fields(p, &want, ext);
        p->pi.local_phy_errors = want.local_phy_errors;
        p->pi.overrun_errors = want.overrun_errors;
    }
    if (sw && !port0 && s->sw[r->node->sw].si.partition_enforcement_cap > 0) {
        p->pi.partition_enforcement_inbound = want.partition_enforcement_inbound;
        p->pi.partition_enforcement_outbound = want.partition_enforcement_outbound;
    }
    if (!port0)
        apply_states(s, p, want.port_physical_state, want.port_state);
    if (r->reregister || p->pi.lid != lid || p->pi.master_sm_lid != sm_lid)
        host_tell(s, p, HOST_RESTART);
    return 0;
}

// --- links ---

void port_power_up(struct sim *s, struct sim_port *p)
{
    struct mad_port_info *pi = &p->pi;
    bool end = p->guid != 0;
    pi->lid = pi->master_sm_lid = 0;
    pi->lmc = pi->master_sm_sl = 0;
    pi->gid_prefix = end ? MAD_DEFAULT_GID_PREFIX : 0;
    pi->m_key = 0;
    pi->m_key_protect_bits = 0;
    pi->m_key_lease_period = 0;
    pi->subnet_timeout = 0;
    pi->operational_vls = pi->vl_cap;
    pi->neighbor_mtu = pi->mtu_cap < MAD_MTU_2048 ? pi->mtu_cap : MAD_MTU_2048;
    pi->link_down_default_state = MAD_PHYS_POLLING;
    pi->vl_high_limit = pi->vl_stall_count = pi->hoq_life = 0;
    pi->local_phy_errors = pi->overrun_errors = 0;
    pi->partition_enforcement_inbound = pi->partition_enforcement_outbound = 0;
    pi->link_width_enabled = pi->link_width_supported;
    pi->link_speed_enabled = pi->link_speed_supported;
    pi->link_speed_ext_enabled = pi->link_speed_ext_supported;
    pi->link_speed_ext_enabled2 = pi->link_speed_ext_supported2;
    p->disabled = false;
    p->lease_runs = false;
}

// A port's state changed: by_set is the port whose own Set did it, which its switch does not announce.
static void announce(struct sim *s, struct sim_port *p, const struct sim_port *by_set)
{
    if (is_switch(node_of(s, p)) && p != by_set)
        trap_link_state(s, node_of(s, p));
}

static void end_down(struct sim *s, struct sim_port *p, const struct sim_port *by_set)
{
    bool was_up = p->pi.port_state > MAD_PORT_DOWN;
    p->pi.port_state = MAD_PORT_DOWN;
    p->pi.port_physical_state = p->disabled ? MAD_PHYS_DISABLED : MAD_PHYS_POLLING;
    if (!was_up)
        return;
    p->counter[SIM_LINK_DOWNED]++;
    announce(s, p, by_set);
    host_tell(s, p, HOST_DOWN);
}

void link_down(struct sim *s, struct sim_port *p, const struct sim_port *by_set)
{
    struct sim_port *peer = peer_of(s, p);
    flow_link_down(s, p);
    p->training = false; // begins anew
    end_down(s, p, by_set);
    if (!peer)
        return;
    peer->training = false;
    end_down(s, peer, by_set);
}

static bool may_train(const struct sim *s, const struct sim_port *p)
{
    const struct sim_port *peer = peer_of(s, p);
    return peer && !p->unplugged && !peer->unplugged && !p->disabled && !peer->disabled &&
           node_of(s, p)->down_until <= s->now && node_of(s, peer)->down_until <= s->now &&
           p->pi.port_state == MAD_PORT_DOWN && peer->pi.port_state == MAD_PORT_DOWN;
}

void link_try_up(struct sim *s, struct sim_port *p)
{
    if (!may_train(s, p) || p->training || peer_of(s, p)->training)
        return;
    p->training = true;
    p->train_due = s->now + s->o.train_ns;
    if (s->o.train_ns == 0)
        link_trained(s, p);
    else
        event_at(s, EV_LINK_UP, port_index(s, p), p->train_due);
}

static unsigned highest(unsigned mask)
{
    while (mask & (mask - 1))
        mask &= mask - 1;
    return mask;
}

static unsigned widest(unsigned mask)
{
    static const uint8_t order[] = {MAD_WIDTH_12X, MAD_WIDTH_8X, MAD_WIDTH_4X, MAD_WIDTH_2X, MAD_WIDTH_1X};
    for (unsigned i = 0; i < sizeof(order); i++)
        if (mask & order[i])
            return order[i];
    return MAD_WIDTH_1X;
}

static void negotiate(struct mad_port_info *a, struct mad_port_info *z, unsigned lanes)
{
    unsigned ext = a->link_speed_ext_enabled & z->link_speed_ext_enabled;
    unsigned xdr = a->link_speed_ext_enabled2 & z->link_speed_ext_enabled2 & 1;
    if (a->link_speed_ext_enabled == MAD_SPEED_EXT_ENABLED_NONE ||
        z->link_speed_ext_enabled == MAD_SPEED_EXT_ENABLED_NONE)
        ext = xdr = 0;
    unsigned speed = highest(a->link_speed_enabled & z->link_speed_enabled);
    a->link_width_active = z->link_width_active =
        (uint8_t)widest(a->link_width_enabled & z->link_width_enabled & lanes);
    a->link_speed_active = z->link_speed_active = (uint8_t)(speed ? speed : MAD_SPEED_SDR);
    a->link_speed_ext_active = z->link_speed_ext_active = (uint8_t)(xdr ? 0 : highest(ext));
    a->link_speed_ext_active2 = z->link_speed_ext_active2 = (uint8_t)xdr;
}

void link_trained(struct sim *s, struct sim_port *p)
{
    struct sim_port *peer = peer_of(s, p);
    if (!p->training || p->train_due != s->now)
        return; // of a training that was broken off
    p->training = false;
    if (!may_train(s, p))
        return;
    errors_count(s, p); // none came while it was down
    errors_count(s, peer);
    negotiate(&p->pi, &peer->pi, p->lanes & peer->lanes);
    p->pi.port_state = peer->pi.port_state = MAD_PORT_INIT;
    p->pi.port_physical_state = peer->pi.port_physical_state = MAD_PHYS_LINK_UP;
    announce(s, p, NULL);
    announce(s, peer, NULL);
}

void port_saw_traffic(struct sim *s, struct sim_port *p)
{
    if (p->pi.port_state != MAD_PORT_ARMED)
        return;
    p->pi.port_state = MAD_PORT_ACTIVE; // no PortStateChange: that tells of links that came or went
    flow_dirty(s);
    host_tell(s, p, HOST_ACTIVE);
}

// --- Mellanox ExtPortInfo: FDR10 ---

static struct sim_port *mlnx_target(struct sim *s, const struct sma_req *r)
{
    if (r->node->vendor_id != 0x2c9)
        return NULL;
    return is_switch(r->node) ? port_at(s, r->node, r->am & 0xff) : r->in;
}

uint16_t mlnx_port_get(struct sim *s, struct sma_req *r)
{
    const struct sim_port *p = mlnx_target(s, r);
    if (!p)
        return MAD_STATUS_BAD_METHOD_ATTR;
    struct mad_mlnx_ext_port_info x = {
        .link_speed_supported = p->fdr10 ? MAD_MLNX_SPEED_FDR10 : 0,
        .link_speed_enabled = p->fdr10 ? MAD_MLNX_SPEED_FDR10 : 0,
        .link_speed_active = p->fdr10 && p->pi.port_state > MAD_PORT_DOWN ? MAD_MLNX_SPEED_FDR10 : 0,
    };
    mad_mlnx_ext_port_info_encode(&x, r->data);
    return 0;
}

// Taken and ignored: nothing here is slower or faster for it.
uint16_t mlnx_port_set(struct sim *s, struct sma_req *r)
{
    return mlnx_target(s, r) ? 0 : MAD_STATUS_BAD_METHOD_ATTR;
}
