// SPDX-License-Identifier: Apache-2.0
// What is done to links and to agents: cables pulled, plugged, moved, swapped, flapping; nodes that are dead,
// slow, or do not keep what they are told.
#include "sim/sim_priv.h"

#include <errno.h>

#include "lib/mono.h"
#include "lib/xalloc.h"

#define FLAPS_MAX 1000000
#define FAST_FLAPS_MAX 1000 // each leads to traps: faster than SLOW_FLAP they would pile up
#define SLOW_FLAP (10 * MONO_US)

// --- cables ---

static void cable_set(struct sim *s, struct sim_port *p, bool up)
{
    p->unplugged = peer_of(s, p)->unplugged = !up;
    if (up)
        link_try_up(s, p);
    else
        link_down(s, p, NULL);
}

static void flap_end(struct sim *s, const struct sim_port *p)
{
    for (uint32_t i = 0; i < s->num_flaps; i++)
        if (s->flap[i].used && (s->flap[i].port == port_index(s, p) || s->flap[i].port == p->peer))
            s->flap[i].used = false;
}

int sim_link_set(struct sim *s, uint64_t node_guid, unsigned port, bool up)
{
    struct sim_port *p = sim_port_by(s, node_guid, port);
    if (!p || p->peer == NONE)
        return -ENOENT;
    sim_touch(s);
    flap_end(s, p);
    cable_set(s, p, up);
    return 0;
}

static struct sim_flap *flap_slot(struct sim *s)
{
    for (uint32_t i = 0; i < s->num_flaps; i++)
        if (!s->flap[i].used)
            return &s->flap[i];
    s->flap = xreallocarray(s->flap, s->num_flaps + 1, sizeof(*s->flap));
    return &s->flap[s->num_flaps++];
}

static void flap_schedule(struct sim *s, struct sim_flap *f, int64_t after)
{
    f->due = s->now + after;
    event_at(s, EV_FLAP, (uint32_t)(f - s->flap), f->due);
}

void flap_event(struct sim *s, uint32_t i)
{
    struct sim_flap *f = &s->flap[i];
    if (!f->used || f->due != s->now)
        return;
    struct sim_port *p = &s->port[f->port];
    bool up = p->unplugged;
    cable_set(s, p, up);
    if (!up)
        flap_schedule(s, f, f->down_ns);
    else if (f->left-- > 0)
        flap_schedule(s, f, f->up_ns);
    else
        f->used = false;
}

int sim_link_flap(struct sim *s, uint64_t node_guid, unsigned port, int64_t down_ns, int64_t up_ns,
                  unsigned times)
{
    struct sim_port *p = sim_port_by(s, node_guid, port);
    if (!p || p->peer == NONE)
        return -ENOENT;
    if (!time_ok(down_ns) || !time_ok(up_ns) || times == 0 || times > FLAPS_MAX)
        return -EINVAL;
    if (times > FAST_FLAPS_MAX && down_ns + up_ns < SLOW_FLAP)
        return -EINVAL;
    sim_touch(s);
    flap_end(s, p);
    struct sim_flap *f = flap_slot(s);
    *f = (struct sim_flap){
        .used = true, .port = port_index(s, p), .left = times - 1, .down_ns = down_ns, .up_ns = up_ns};
    cable_set(s, p, false);
    f->due = s->now;
    if (down_ns > 0)
        flap_schedule(s, f, down_ns);
    else
        flap_event(s, (uint32_t)(f - s->flap));
    return 0;
}

// Takes the cable out of a port; its far end hangs loose.
static void cable_out(struct sim *s, struct sim_port *p)
{
    flap_end(s, p);
    link_down(s, p, NULL);
    struct sim_port *peer = peer_of(s, p);
    if (peer) {
        peer->peer = NONE;
        peer->unplugged = false;
    }
    p->peer = NONE;
    p->unplugged = false;
}

static void cable_in(struct sim *s, struct sim_port *a, struct sim_port *z)
{
    a->peer = port_index(s, z);
    z->peer = port_index(s, a);
    link_try_up(s, a);
}

int sim_recable(struct sim *s, uint64_t a_guid, unsigned a_port, uint64_t z_guid, unsigned z_port)
{
    struct sim_port *a = sim_port_by(s, a_guid, a_port), *z = sim_port_by(s, z_guid, z_port);
    if (!a || !z)
        return -ENOENT;
    if (a == z || a->num == 0 || z->num == 0)
        return -EINVAL;
    sim_touch(s);
    cable_out(s, a);
    cable_out(s, z);
    cable_in(s, a, z);
    return 0;
}

int sim_swap_cables(struct sim *s, uint64_t a_guid, unsigned a_port, uint64_t b_guid, unsigned b_port)
{
    struct sim_port *a = sim_port_by(s, a_guid, a_port), *b = sim_port_by(s, b_guid, b_port);
    if (!a || !b)
        return -ENOENT;
    struct sim_port *a_far = peer_of(s, a), *b_far = peer_of(s, b);
    if (!a_far || !b_far || a == b || a == b_far)
        return -EINVAL;
    sim_touch(s);
    cable_out(s, a);
    cable_out(s, b);
    cable_in(s, a, b_far);
    cable_in(s, b, a_far);
    return 0;
}

int sim_link_enabled(struct sim *s, uint64_t node_guid, unsigned port, uint8_t width, uint8_t speed,
                     uint8_t speed_ext)
{
    struct sim_port *p = sim_port_by(s, node_guid, port);
    if (!p)
        return -ENOENT;
    struct mad_port_info *pi = &p->pi;
    if (width & ~pi->link_width_supported || speed & ~pi->link_speed_supported ||
        speed_ext & ~pi->link_speed_ext_supported)
        return -EINVAL;
    unsigned flags = 0;
    if (width && width != pi->link_width_enabled)
        flags |= SIM_CHANGE_LINK_WIDTH_ENABLED;
    if ((speed && speed != pi->link_speed_enabled) || (speed_ext && speed_ext != pi->link_speed_ext_enabled))
        flags |= SIM_CHANGE_LINK_SPEED_ENABLED;
    pi->link_width_enabled = width ? width : pi->link_width_enabled;
    pi->link_speed_enabled = speed ? speed : pi->link_speed_enabled;
    pi->link_speed_ext_enabled = speed_ext ? speed_ext : pi->link_speed_ext_enabled;
    sim_touch(s);
    if (flags)
        trap_local_change(s, end_port(s, p), flags);
    return 0;
}

// --- agents ---

int sim_node_kill(struct sim *s, uint64_t node_guid, bool dead)
{
    struct sim_node *n = sim_node_by_guid(s, node_guid);
    if (!n)
        return -ENOENT;
    n->dead = dead;
    return 0;
}

int sim_node_slow(struct sim *s, uint64_t node_guid, unsigned factor)
{
    struct sim_node *n = sim_node_by_guid(s, node_guid);
    if (!n)
        return -ENOENT;
    n->slow = (uint16_t)(factor < 1 ? 1 : factor > 10000 ? 10000 : factor);
    return 0;
}

int sim_node_delay(struct sim *s, uint64_t node_guid, int64_t extra_ns)
{
    struct sim_node *n = sim_node_by_guid(s, node_guid);
    if (!n)
        return -ENOENT;
    if (extra_ns < 0 || extra_ns > 60 * MONO_S)
        return -EINVAL;
    n->delay = extra_ns;
    return 0;
}

void sim_set_loss(struct sim *s, double loss)
{
    s->o.loss = loss;
}

static int not_kept(struct sim_node *n, uint16_t attr_id, const struct mad_field *field, bool on)
{
    for (uint32_t i = 0; i < n->num_not_kept; i++) {
        if (n->not_kept[i].attr_id != attr_id || n->not_kept[i].field != field)
            continue;
        if (!on)
            n->not_kept[i] = n->not_kept[--n->num_not_kept];
        return 0;
    }
    if (!on)
        return 0;
    n->not_kept = xreallocarray(n->not_kept, n->num_not_kept + 1, sizeof(*n->not_kept));
    n->not_kept[n->num_not_kept++] = (struct not_kept){attr_id, field};
    return 0;
}

int sim_set_not_kept(struct sim *s, uint64_t node_guid, uint16_t attr_id, bool on)
{
    struct sim_node *n = sim_node_by_guid(s, node_guid);
    return n ? not_kept(n, attr_id, NULL, on) : -ENOENT;
}

int sim_set_field_not_kept(struct sim *s, uint64_t node_guid, uint16_t attr_id, const char *field, bool on)
{
    struct sim_node *n = sim_node_by_guid(s, node_guid);
    if (!n)
        return -ENOENT;
    const struct mad_field *row = NULL;
    if (attr_id == MAD_ATTR_PORT_INFO)
        row = mad_field_find(&mad_attr_port_info, field);
    else if (attr_id == MAD_ATTR_SWITCH_INFO)
        row = mad_field_find(&mad_attr_switch_info, field);
    return row ? not_kept(n, attr_id, row, on) : -EINVAL;
}

int sim_set_lft(struct sim *s, uint64_t switch_guid, const uint8_t *entry, unsigned lids, uint16_t top)
{
    const struct sim_node *n = sim_node_by_guid(s, switch_guid);
    if (!n || !is_switch(n))
        return -ENOENT;
    struct sim_switch *w = &s->sw[n->sw];
    if (lids > w->lft_entries || top >= w->lft_entries)
        return -EINVAL;
    lft_preload(s, w, entry, lids);
    w->si.linear_fdb_top = top;
    sim_touch(s);
    flow_tables_written(s);
    return 0;
}
