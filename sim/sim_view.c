// SPDX-License-Identifier: Apache-2.0
// An independent look at the simulated devices, for tests and benches, and traffic that follows their tables.
// Nothing here goes through a MAD.
#include "sim/sim_priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static const struct sim_switch *switch_by(const struct sim *s, uint64_t guid)
{
    const struct sim_node *n = sim_node_by_guid(s, guid);
    return n && is_switch(n) ? &s->sw[n->sw] : NULL;
}

int sim_lft(const struct sim *s, uint64_t switch_guid, uint16_t lid, uint8_t *ret_port)
{
    const struct sim_switch *w = switch_by(s, switch_guid);
    if (!w)
        return -ENOENT;
    *ret_port = lft_entry(s, w, lid);
    return 0;
}

int sim_port_view(const struct sim *s, uint64_t node_guid, unsigned port, struct sim_port_view *ret)
{
    const struct sim_port *p = sim_port_by(s, node_guid, port);
    if (!p)
        return -ENOENT;
    *ret = (struct sim_port_view){
        .lid = p->pi.lid,
        .sm_lid = p->pi.master_sm_lid,
        .lmc = p->pi.lmc,
        .state = p->pi.port_state,
        .neighbor_mtu = p->pi.neighbor_mtu,
        .oper_vls = p->pi.operational_vls,
        .linked = link_passes(s, p, true),
    };
    return 0;
}

static int field_of(const struct mad_attr *a, const void *host, const char *name, uint64_t *ret_value)
{
    const struct mad_field *f = mad_field_find(a, name);
    if (!f || f->is_array)
        return -EINVAL;
    *ret_value = mad_field_get(f, host, 0);
    return 0;
}

int sim_port_field(const struct sim *s, uint64_t node_guid, unsigned port, const char *field,
                   uint64_t *ret_value)
{
    const struct sim_port *p = sim_port_by(s, node_guid, port);
    return p ? field_of(&mad_attr_port_info, &p->pi, field, ret_value) : -ENOENT;
}

int sim_reregisters(const struct sim *s, uint64_t node_guid, unsigned port, uint64_t *ret_count)
{
    const struct sim_port *p = sim_port_by(s, node_guid, port);
    if (!p)
        return -ENOENT;
    *ret_count = p->reregisters;
    return 0;
}

int sim_switch_field(const struct sim *s, uint64_t switch_guid, const char *field, uint64_t *ret_value)
{
    const struct sim_switch *w = switch_by(s, switch_guid);
    return w ? field_of(&mad_attr_switch_info, &w->si, field, ret_value) : -ENOENT;
}

int sim_p_key(const struct sim *s, uint64_t node_guid, unsigned port, unsigned index, uint16_t *ret_key)
{
    const struct sim_port *p = sim_port_by(s, node_guid, port);
    if (!p)
        return -ENOENT;
    if (index >= p_key_cap(s, p))
        return -EINVAL;
    *ret_key = p_key_at(s, p, index);
    return 0;
}

int sim_mft(const struct sim *s, uint64_t switch_guid, uint16_t mlid, unsigned port, bool *ret_set)
{
    const struct sim_switch *w = switch_by(s, switch_guid);
    if (!w || port > s->node[w->node].num_ports)
        return -ENOENT;
    *ret_set = mft_has(w, mlid, port);
    return 0;
}

// --- walks ---

int sim_stopped(char *where, unsigned long size, const char *fmt, ...)
{
    if (where && size > 0) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(where, size, fmt, ap);
        va_end(ap);
    }
    return -EHOSTUNREACH;
}

static void carry(struct sim_port *out, struct sim_port *in, uint64_t words, uint64_t packets)
{
    out->counter[SIM_XMIT_DATA] += words;
    out->counter[SIM_XMIT_PKTS] += packets;
    out->counter[SIM_UNICAST_XMIT_PKTS] += packets;
    in->counter[SIM_RCV_DATA] += words;
    in->counter[SIM_RCV_PKTS] += packets;
    in->counter[SIM_UNICAST_RCV_PKTS] += packets;
}

struct load { // what sim_traffic() carries; NULL for a walk that only looks
    uint64_t words, packets;
};
struct level { // of sim_trace_sl()
    unsigned sl;
    sim_hop_fn *hop;
    void *arg;
};

// Where it leaves a node by `out`, having come in by `in`: false when it is dropped there.
static bool level_passes(const struct sim *s, const struct level *l, const struct sim_port *in,
                         const struct sim_port *out)
{
    const struct sim_node *n = node_of(s, out);
    unsigned vl = port_vl(s, out, is_switch(n) ? in->num : 0, l->sl);
    if (vl != VL_DROP && l->hop)
        l->hop(l->arg, n->label, out->num, vl);
    return vl != VL_DROP;
}

static int walk(const struct sim *s, uint64_t from_port_guid, uint16_t to_lid, const struct load *load,
                const struct level *level, char *where, unsigned long size)
{
    struct sim_port *p = sim_port_by_guid(s, from_port_guid);
    if (!p)
        return sim_stopped(where, size, "no end port 0x%016llx", (unsigned long long)from_port_guid);
    for (int hops = 0; hops <= SIM_HOP_LIMIT; hops++) {
        const struct sim_node *n = node_of(s, p);
        if (has_lid(end_port(s, p), to_lid))
            return hops;
        if (!is_switch(n) && hops > 0)
            return sim_stopped(where, size, "%.64s: arrived, but its LID is %u", n->desc, p->pi.lid);
        unsigned out = !is_switch(n) ? p->num
                       : load        ? adaptive_least(s, &s->sw[n->sw], to_lid, NULL)
                                     : adaptive_port(s, &s->sw[n->sw], to_lid, from_port_guid);
        struct sim_port *next = out == 0 || out == LFT_DROP ? NULL : port_at(s, n, out);
        if (!next)
            return sim_stopped(where, size, "%.64s: LFT entry %u for LID %u", n->desc, out, to_lid);
        if (!link_passes(s, next, false)) {
            if (load)
                next->counter[SIM_XMIT_DISCARDS] += load->packets;
            return sim_stopped(where, size, "%.64s[%u]: link carries no data", n->desc, out);
        }
        if (level && !level_passes(s, level, p, next))
            return sim_stopped(where, size, "%.64s[%u]: level %u has no lane out of it", n->desc, out,
                               level->sl);
        p = peer_of(s, next);
        if (load)
            carry(next, p, load->words, load->packets);
    }
    return sim_stopped(where, size, "loop to LID %u, last %.64s", to_lid, node_of(s, p)->desc);
}

int sim_trace(const struct sim *s, uint64_t from_port_guid, uint16_t to_lid, char *ret_where,
              unsigned long size)
{
    return walk(s, from_port_guid, to_lid, NULL, NULL, ret_where, size);
}

int sim_trace_sl(const struct sim *s, uint64_t from_port_guid, uint16_t to_lid, unsigned sl, sim_hop_fn *hop,
                 void *arg, char *ret_where, unsigned long size)
{
    struct level l = {.sl = sl, .hop = hop, .arg = arg};
    return walk(s, from_port_guid, to_lid, NULL, &l, ret_where, size);
}

int sim_sl2vl(const struct sim *s, uint64_t node_guid, unsigned in, unsigned out, unsigned sl,
              uint8_t *ret_vl)
{
    const struct sim_port *p = sim_port_by(s, node_guid, out);
    if (!p)
        return -ENOENT;
    *ret_vl = (uint8_t)port_vl(s, p, in, sl);
    return 0;
}

int sim_traffic(struct sim *s, uint64_t from_port_guid, uint16_t to_lid, uint64_t bytes, unsigned packet)
{
    if (packet == 0)
        packet = 4096;
    struct load load = {.words = (bytes + 3) / 4, .packets = (bytes + packet - 1) / packet};
    return walk(s, from_port_guid, to_lid, &load, NULL, NULL, 0);
}

int sim_counter_add(struct sim *s, uint64_t node_guid, unsigned port, enum sim_counter c, uint64_t delta)
{
    struct sim_port *p = sim_port_by(s, node_guid, port);
    if (!p)
        return -ENOENT;
    if (c >= SIM_COUNTERS)
        return -EINVAL;
    p->counter[c] += delta;
    return 0;
}

int sim_counter_get(const struct sim *s, uint64_t node_guid, unsigned port, enum sim_counter c,
                    uint64_t *ret_value)
{
    const struct sim_port *p = sim_port_by(s, node_guid, port);
    if (!p)
        return -ENOENT;
    if (c >= SIM_COUNTERS)
        return -EINVAL;
    flow_count((struct sim *)s, (struct sim_port *)p, 1); // as of now: a matter of when it is looked at
    *ret_value = p->counter[c];
    return 0;
}

void sim_get_stats(const struct sim *s, struct sim_stats *ret)
{
    *ret = s->stats;
}

uint64_t sim_digest(const struct sim *s)
{
    return s->digest;
}
