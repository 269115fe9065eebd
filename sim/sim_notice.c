// SPDX-License-Identifier: Apache-2.0
// Notices raised by hand, and what becomes of traps on their way.
#include "sim/sim_priv.h"

#include <errno.h>

// The end port that would tell of it; NULL when there is no such port.
static struct sim_port *teller(const struct sim *s, uint64_t node_guid, unsigned port)
{
    struct sim_port *p = sim_port_by(s, node_guid, port);
    return p ? end_port(s, p) : NULL;
}

static struct sim_bad_key plausible(const struct sim_port *end, uint16_t number)
{
    return (struct sim_bad_key){
        .key = number == MAD_TRAP_BAD_Q_KEY ? 0x0badbad0 : 0x8bad,
        .lid1 = end->pi.master_sm_lid,
        .lid2 = end->pi.lid,
        .qp1 = 1,
        .qp2 = 1,
    };
}

// A Set of PortInfo that came from the master's LID with M_Key 0xbad.
static void plausible_256(struct sim *s, struct sim_port *end)
{
    struct flight f = {.lid_leg = true, .slid = end->pi.master_sm_lid};
    (void)mad_smp_build(f.mad, &(struct mad_smp_to){.dr = false}, MAD_METHOD_SET, MAD_ATTR_PORT_INFO, 0, 0,
                        0xbad, NULL, NULL);
    end->security_next = 0; // this one was asked for
    trap_bad_m_key(s, end, &f);
}

int sim_raise_trap(struct sim *s, uint64_t node_guid, unsigned port, uint16_t trap_number)
{
    struct sim_port *end = teller(s, node_guid, port);
    if (!end)
        return -ENOENT;
    struct sim_node *n = node_of(s, end);
    bool of_switch = trap_number == MAD_TRAP_LINK_STATE_CHANGE || trap_number == MAD_TRAP_SWITCH_BAD_P_KEY;
    if (of_switch && !is_switch(n))
        return -EINVAL;
    sim_touch(s);
    struct sim_bad_key k = plausible(end, trap_number);
    switch (trap_number) {
    case MAD_TRAP_LINK_STATE_CHANGE:
        trap_128(s, n);
        return 0;
    case MAD_TRAP_LOCAL_LINK_INTEGRITY:
    case MAD_TRAP_EXCESSIVE_BUFFER_OVERRUN:
    case MAD_TRAP_FLOW_CONTROL_WATCHDOG:
        trap_port_errors(s, end, port, trap_number);
        return 0;
    case MAD_TRAP_LOCAL_CHANGES:
        trap_local_change(s, end, 0);
        return 0;
    case MAD_TRAP_SYSTEM_IMAGE_GUID:
        trap_sys_guid(s, end);
        return 0;
    case MAD_TRAP_BAD_M_KEY:
        plausible_256(s, end);
        return 0;
    case MAD_TRAP_BAD_P_KEY:
    case MAD_TRAP_BAD_Q_KEY:
    case MAD_TRAP_SWITCH_BAD_P_KEY:
        return sim_raise_bad_key(s, node_guid, port, trap_number, &k);
    default:
        return -EINVAL;
    }
}

int sim_raise_change(struct sim *s, uint64_t node_guid, unsigned port, unsigned flags)
{
    struct sim_port *end = teller(s, node_guid, port);
    if (!end)
        return -ENOENT;
    if (flags > 0x3f)
        return -EINVAL;
    sim_touch(s);
    trap_local_change(s, end, flags);
    return 0;
}

int sim_raise_bad_key(struct sim *s, uint64_t node_guid, unsigned port, uint16_t trap_number,
                      const struct sim_bad_key *k)
{
    struct sim_port *end = teller(s, node_guid, port);
    if (!end)
        return -ENOENT;
    if (trap_number < MAD_TRAP_BAD_P_KEY || trap_number > MAD_TRAP_SWITCH_BAD_P_KEY ||
        (trap_number == MAD_TRAP_SWITCH_BAD_P_KEY && !is_switch(node_of(s, end))))
        return -EINVAL;
    sim_touch(s);
    end->security_next = 0; // this one was asked for
    trap_bad_key(s, end, trap_number, k, port);
    return 0;
}

int sim_raise_notice(struct sim *s, uint64_t node_guid, unsigned port, const struct mad_notice *n)
{
    struct sim_port *end = teller(s, node_guid, port);
    if (!end)
        return -ENOENT;
    struct mad_notice copy = *n;
    if (copy.issuer_lid == 0)
        copy.issuer_lid = end->pi.lid;
    sim_touch(s);
    trap_raise(s, end, &copy);
    return 0;
}

int sim_trap_lose(struct sim *s, uint64_t node_guid, unsigned n)
{
    struct sim_node *node = sim_node_by_guid(s, node_guid);
    if (!node)
        return -ENOENT;
    node->lose_traps = n;
    return 0;
}

void sim_trap_loss(struct sim *s, double probability)
{
    s->trap_loss = probability;
}

unsigned sim_traps_pending(const struct sim *s)
{
    return s->traps_pending;
}
