// SPDX-License-Identifier: Apache-2.0
// Reboots and replacements: what a device loses, when its links and agents come back, and who it then says it
// is.
#include "sim/sim_priv.h"

#include <errno.h>
#include <string.h>

static unsigned first_num(const struct sim_node *n)
{
    return is_switch(n) ? 0 : 1;
}

static void forget_port(struct sim *s, struct sim_port *p)
{
    uint32_t cap_sm = p->pi.capability_mask & MAD_CAP_IS_SM; // its manager, if any, lives on
    tables_forget(s, p);
    port_power_up(s, p);
    p->pi.capability_mask |= cap_sm;
    p->pi.m_key_violations = p->pi.p_key_violations = p->pi.q_key_violations = 0;
    if (p->guid)
        trap_forget(s, p);
}

static void forget_switch(struct sim *s, const struct sim_node *n)
{
    struct sim_switch *w = &s->sw[n->sw];
    w->si.linear_fdb_top = w->si.multicast_fdb_top = 0;
    w->si.life_time_value = w->si.default_port = 0;
    w->si.default_multicast_primary_port = w->si.default_multicast_not_primary_port = 0;
    w->si.port_state_change = 0; // until its links come up
    lft_forget(s, w);
}

static void links_up(struct sim *s, const struct sim_node *n)
{
    for (unsigned i = 1; i <= n->num_ports; i++)
        link_try_up(s, port_at(s, n, i));
}

void boot_event(struct sim *s, struct sim_node *n)
{
    if (n->down_until == s->now)
        links_up(s, n);
}

// Power off now; what it forgets is lost before its links go, so that it says nothing of that itself.
static void boot(struct sim *s, struct sim_node *n, int64_t down_ns, int64_t silent_ns)
{
    n->down_until = s->now + down_ns;
    n->silent_until = s->now + silent_ns;
    for (unsigned i = first_num(n); i <= n->num_ports; i++) {
        struct sim_port *p = port_at(s, n, i);
        forget_port(s, p);
        host_tell(s, p, HOST_BOOT);
    }
    for (unsigned i = 1; i <= n->num_ports; i++)
        link_down(s, port_at(s, n, i), NULL);
    if (is_switch(n))
        forget_switch(s, n);
    flow_tables_written(s);
    for (unsigned i = first_num(n); i <= n->num_ports; i++)
        memset(port_at(s, n, i)->counter, 0, sizeof(port_at(s, n, i)->counter));
    for (unsigned i = first_num(n); i <= n->num_ports && !n->os_down; i++)
        host_tell(s, port_at(s, n, i), HOST_UP);
    if (down_ns > 0)
        event_at(s, EV_BOOT, (uint32_t)(n - s->node), n->down_until);
    else
        links_up(s, n);
}

int sim_node_boot(struct sim *s, uint64_t node_guid, int64_t down_ns, int64_t silent_ns)
{
    struct sim_node *n = sim_node_by_guid(s, node_guid);
    if (!n)
        return -ENOENT;
    if (!time_ok(down_ns) || !time_ok(silent_ns))
        return -EINVAL;
    sim_touch(s);
    boot(s, n, down_ns, silent_ns);
    return 0;
}

int sim_node_reboot(struct sim *s, uint64_t node_guid)
{
    return sim_node_boot(s, node_guid, 0, 0);
}

int sim_switch_reboot(struct sim *s, uint64_t node_guid)
{
    const struct sim_node *n = sim_node_by_guid(s, node_guid);
    if (n && !is_switch(n))
        return -EINVAL;
    return sim_node_reboot(s, node_guid);
}

// --- the computer around an adapter ---

static void describe(struct sim *s, struct sim_node *n, const char *desc)
{
    char before[sizeof(n->desc)];
    memcpy(before, n->desc, sizeof(before));
    node_set_desc(n, desc);
    if (memcmp(before, n->desc, sizeof(before)) == 0)
        return;
    for (unsigned i = first_num(n); i <= (is_switch(n) ? 0u : n->num_ports); i++)
        trap_local_change(s, port_at(s, n, i), SIM_CHANGE_NODE_DESCRIPTION);
}

void os_up_event(struct sim *s, struct sim_node *n)
{
    char desc[sizeof(n->desc) + 1];
    if (!n->os_down || n->os_due != s->now)
        return;
    n->os_down = false;
    memcpy(desc, n->os_desc, sizeof(n->os_desc));
    desc[sizeof(n->os_desc)] = 0;
    describe(s, n, desc);
    for (unsigned i = 1; i <= n->num_ports; i++)
        host_tell(s, port_at(s, n, i), HOST_UP);
}

int sim_host_reboot(struct sim *s, uint64_t node_guid, int64_t os_ns, const char *boot_desc, bool orderly)
{
    struct sim_node *n = sim_node_by_guid(s, node_guid);
    if (!n)
        return -ENOENT;
    if (is_switch(n) || !time_ok(os_ns))
        return -EINVAL;
    sim_touch(s);
    if (!n->os_down)
        memcpy(n->os_desc, n->desc, sizeof(n->os_desc));
    n->os_down = true;
    n->os_due = s->now + os_ns;
    for (unsigned i = 1; i <= n->num_ports; i++) {
        struct sim_port *p = port_at(s, n, i);
        if (orderly)
            host_tell(s, p, HOST_SHUTDOWN);
        host_tell(s, p, HOST_BOOT);
        sm_forget(s, p);
        client_drop_sm(s, p);
    }
    describe(s, n, boot_desc ? boot_desc : "");
    event_at(s, EV_OS_UP, (uint32_t)(n - s->node), n->os_due);
    return 0;
}

int sim_node_desc(struct sim *s, uint64_t node_guid, const char *desc)
{
    struct sim_node *n = sim_node_by_guid(s, node_guid);
    if (!n)
        return -ENOENT;
    sim_touch(s);
    if (n->os_down) { // told when its system is up
        memset(n->os_desc, 0, sizeof(n->os_desc));
        memcpy(n->os_desc, desc, strnlen(desc, sizeof(n->os_desc)));
        return 0;
    }
    node_set_desc(n, desc);
    trap_local_change(s, &s->port[n->first_port], SIM_CHANGE_NODE_DESCRIPTION);
    return 0;
}

// --- who it says it is ---

int sim_sys_guid(struct sim *s, uint64_t node_guid, uint64_t sys_guid)
{
    struct sim_node *n = sim_node_by_guid(s, node_guid);
    if (!n)
        return -ENOENT;
    sim_touch(s);
    n->sys_guid = n->own_sys = sys_guid;
    trap_sys_guid(s, &s->port[n->first_port]);
    return 0;
}

static uint64_t port_label(const struct sim_node *n, const struct sim_port *p, uint64_t new_guid)
{
    uint64_t far = p->label - n->label;
    return new_guid + (far <= n->num_ports + 1u ? far : p->num);
}

static bool taken(const struct sim *s, const struct sim_node *n, uint64_t guid)
{
    const struct sim_port *p = sim_port_by_guid(s, guid);
    const struct sim_node *other = sim_node_by_guid(s, guid);
    return (other && other != n) || (p && node_of(s, p) != n);
}

static bool labels_taken(const struct sim *s, const struct sim_node *n, uint64_t new_guid)
{
    if (new_guid == n->label || taken(s, n, new_guid))
        return true;
    for (unsigned i = first_num(n); i <= (is_switch(n) ? 0u : n->num_ports); i++)
        if (taken(s, n, port_label(n, port_at(s, n, i), new_guid)))
            return true;
    return false;
}

static void relabel(struct sim *s, struct sim_node *n, uint64_t new_guid)
{
    unsigned last = is_switch(n) ? 0u : n->num_ports;
    uint64_t label[256];
    for (unsigned i = first_num(n); i <= last; i++) {
        struct sim_port *p = port_at(s, n, i);
        label[i] = port_label(n, p, new_guid);
        u64map_set(&s->by_port_guid, p->label, NONE);
    }
    for (unsigned i = first_num(n); i <= last; i++) {
        struct sim_port *p = port_at(s, n, i);
        p->guid = p->label = label[i];
        u64map_set(&s->by_port_guid, p->label, port_index(s, p));
    }
    u64map_set(&s->by_guid, n->label, NONE);
    n->guid = n->label = n->sys_guid = n->own_sys = new_guid;
    u64map_set(&s->by_guid, n->label, (uint32_t)(n - s->node));
}

int sim_node_replace(struct sim *s, uint64_t node_guid, uint64_t new_guid, int64_t down_ns)
{
    struct sim_node *n = sim_node_by_guid(s, node_guid);
    if (!n)
        return -ENOENT;
    if (new_guid == 0 || !time_ok(down_ns))
        return -EINVAL;
    if (labels_taken(s, n, new_guid))
        return -EEXIST;
    sim_touch(s);
    relabel(s, n, new_guid);
    boot(s, n, down_ns, 0);
    return 0;
}

int sim_guid_duplicate(struct sim *s, uint64_t node_guid, uint64_t of_guid)
{
    struct sim_node *n = sim_node_by_guid(s, node_guid);
    const struct sim_node *o = of_guid ? sim_node_by_guid(s, of_guid) : n;
    if (!n || !o)
        return -ENOENT;
    sim_touch(s);
    n->guid = o->label;
    n->sys_guid = o->own_sys;
    for (unsigned i = first_num(n); i <= (is_switch(n) ? 0u : n->num_ports); i++) {
        const struct sim_port *theirs = port_at(s, o, i);
        if (!theirs || theirs->label == 0)
            theirs = &s->port[o->first_port];
        port_at(s, n, i)->guid = theirs->label;
    }
    boot(s, n, 0, 0);
    return 0;
}
