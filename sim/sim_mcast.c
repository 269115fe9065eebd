// SPDX-License-Identifier: Apache-2.0
// One multicast packet carried along the programmed multicast tables (IBA 18.2.4.3.3): a switch sends a copy
// out of every port of the MLID's mask but the one it came in by, port 0 being the switch itself. Beyond
// MulticastFDBTop (where the switch has it: 0xBFFF is none, 0 no limit) and for an MLID without ports it
// discards, as a switch does whose default multicast ports are not set.
//
// Departures: P_Keys, rates, MTUs and membership are not looked at; no default multicast ports.
#include "sim/sim_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"

#define COPIES_MAX (1u << 20) // more than that in the fabric at once is a storm

struct storm { // one packet and its copies
    struct sim *s;
    uint16_t mlid;
    uint32_t *stack; // ports that a copy has come in by
    uint32_t n, cap;
    uint8_t *seen;    // switch ports a copy has come in by
    uint32_t *copies; // a port: that end ports got
    uint32_t *told;   // end ports with copies, in order
    uint32_t num_told;
    uint32_t total;
    bool loop;
};

static bool mlid_ok(uint16_t mlid)
{
    return mlid >= MAD_LID_MULTICAST_MIN && mlid <= MAD_LID_MULTICAST_MAX;
}

static void count_copy(struct sim_port *out, struct sim_port *in)
{
    out->counter[SIM_XMIT_DATA] += 8;
    out->counter[SIM_XMIT_PKTS]++;
    out->counter[SIM_MULTICAST_XMIT_PKTS]++;
    in->counter[SIM_RCV_DATA] += 8;
    in->counter[SIM_RCV_PKTS]++;
    in->counter[SIM_MULTICAST_RCV_PKTS]++;
}

static void tell(struct storm *m, const struct sim_port *end)
{
    uint32_t i = port_index(m->s, end);
    if (m->copies[i]++ == 0)
        m->told[m->num_told++] = i;
}

static void push(struct storm *m, uint32_t port)
{
    if (m->total++ >= COPIES_MAX) {
        m->loop = true;
        return;
    }
    if (m->n == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 64;
        m->stack = xreallocarray(m->stack, m->cap, sizeof(*m->stack));
    }
    m->stack[m->n++] = port;
}

static void leave(struct storm *m, struct sim_port *out)
{
    if (!link_passes(m->s, out, false)) {
        out->counter[SIM_XMIT_DISCARDS]++;
        return;
    }
    struct sim_port *in = peer_of(m->s, out);
    count_copy(out, in);
    push(m, out->peer);
}

static bool beyond_top(const struct sim *s, const struct sim_node *n, uint16_t mlid)
{
    const struct mad_port_info *pi = &s->port[n->first_port].pi;
    uint16_t top = s->sw[n->sw].si.multicast_fdb_top;
    return pi->capability_mask & MAD_CAP_IS_MULTICAST_FDB_TOP_SUPPORTED && top != 0 && mlid > top;
}

static void at_switch(struct storm *m, const struct sim_node *n, unsigned in)
{
    const struct sim_switch *w = &m->s->sw[n->sw];
    if (beyond_top(m->s, n, m->mlid))
        return;
    for (unsigned i = 0; i <= n->num_ports; i++) {
        if (i == in || !mft_has(w, m->mlid, i))
            continue;
        if (i == 0)
            tell(m, port_at(m->s, n, 0));
        else
            leave(m, port_at(m->s, n, i));
    }
}

static void arrived(struct storm *m, uint32_t i)
{
    struct sim_port *p = &m->s->port[i];
    const struct sim_node *n = node_of(m->s, p);
    if (!is_switch(n)) {
        tell(m, p);
        return;
    }
    if (m->seen[i]) {
        m->loop = true;
        return; // what it does from here on it has done already
    }
    m->seen[i] = 1;
    at_switch(m, n, p->num);
}

int sim_multicast(struct sim *s, uint64_t from_port_guid, uint16_t mlid, sim_deliver_fn *deliver, void *arg)
{
    struct sim_port *from = sim_port_by_guid(s, from_port_guid);
    if (!from)
        return -ENOENT;
    if (!mlid_ok(mlid))
        return -EINVAL;
    struct storm m = {.s = s,
                      .mlid = mlid,
                      .seen = xcalloc(s->num_ports, 1),
                      .copies = xcalloc(s->num_ports, sizeof(*m.copies)),
                      .told = xcalloc(s->num_ports, sizeof(*m.told))};
    if (is_switch(node_of(s, from)))
        at_switch(&m, node_of(s, from), 0);
    else
        leave(&m, from);
    while (m.n > 0)
        arrived(&m, m.stack[--m.n]);
    for (uint32_t i = 0; i < m.num_told && deliver; i++) {
        const struct sim_port *p = &s->port[m.told[i]];
        deliver(arg, node_of(s, p)->label, p->num, m.copies[m.told[i]]);
    }
    int ret = m.loop ? -ELOOP : (int)m.num_told;
    free(m.stack);
    free(m.seen);
    free(m.copies);
    free(m.told);
    return ret;
}
