// SPDX-License-Identifier: Apache-2.0
// Adaptive routing of switches as NVIDIA's have it: GeneralInfo, AdaptiveRoutingInfo, group table, LFT with
// groups; where packets then go, and what load that makes.
//
// What a switch does while adaptive routing is on, as far as texts tell and else as is hardest on a manager:
// the adaptive table alone counts, its static entries and ports too; a block that nobody wrote reads as
// anything; a group's ports without a live link are passed over; where none is left, the entry's port is
// taken. Off, the linear table counts. With opts.adaptive_one_table both are one table, whose ports either
// way of writing changes. What no switch would take is refused: groups beyond GroupTop, ports that do not
// exist.
#include "sim/sim_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"

#define ENTRY 4 // bytes on the wire
#define CAP_DEFAULT 1024

struct sim_adaptive {
    struct mad_adaptive_routing_info info;
    uint8_t *group;    // 64 bytes each, as on the wire; NULL: all empty
    uint8_t *entry;    // ENTRY bytes a LID, as on the wire; NULL: nobody wrote any
    uint64_t *written; // a bit a block
    uint64_t written_on;
};

static unsigned blocks(const struct sim_switch *w)
{
    return (w->lft_entries + MAD_AR_LFT_BLOCK - 1) / MAD_AR_LFT_BLOCK;
}

static void power_up(struct sim_adaptive *a, uint16_t cap, bool by_transport)
{
    free(a->group);
    free(a->entry);
    free(a->written);
    *a = (struct sim_adaptive){.info = {.by_transport_cap = by_transport,
                                        .by_sl_cap = 1,
                                        .directions_sup = 1,
                                        .group_table_cap = 1,
                                        .group_cap = cap,
                                        .sub_groups_sup = 2,
                                        .ar_version = 1}};
}

void adaptive_make(struct sim *s, struct sim_switch *w, unsigned cap)
{
    adaptive_free(w);
    if (cap == 0)
        return;
    w->adaptive = xcalloc(1, sizeof(*w->adaptive));
    power_up(w->adaptive, (uint16_t)cap, !s->o.adaptive_all_transports);
}

void adaptive_new(struct sim *s, struct sim_switch *w)
{
    if (s->o.adaptive_routing)
        adaptive_make(s, w, s->o.adaptive_groups ? s->o.adaptive_groups : CAP_DEFAULT);
}

void adaptive_free(struct sim_switch *w)
{
    if (w->adaptive)
        power_up(w->adaptive, 0, false);
    free(w->adaptive);
    w->adaptive = NULL;
}

void adaptive_forget(struct sim_switch *w)
{
    if (w->adaptive)
        power_up(w->adaptive, w->adaptive->info.group_cap, w->adaptive->info.by_transport_cap);
}

// --- attributes ---

static struct sim_adaptive *of(struct sim *s, const struct sma_req *r)
{
    return s->sw[r->node->sw].adaptive;
}

uint16_t general_info_get(struct sim *s, struct sma_req *r)
{
    struct mad_general_info g = {0};
    if (!of(s, r))
        return MAD_STATUS_BAD_METHOD_ATTR;
    if (r->am != MAD_GENERAL_INFO_CAPABILITIES)
        return MAD_STATUS_BAD_VALUE;
    g.cap_mask[0] = 1u << MAD_CAP_AR | 1u << MAD_CAP_AR_REV1;
    mad_general_info_encode(&g, r->data);
    return 0;
}

uint16_t adaptive_info_get(struct sim *s, struct sma_req *r)
{
    const struct sim_adaptive *a = of(s, r);
    if (!a)
        return MAD_STATUS_BAD_METHOD_ATTR;
    if (r->am != MAD_AR_INFO_MOD)
        return MAD_STATUS_BAD_VALUE;
    mad_adaptive_routing_info_encode(&a->info, r->data);
    return 0;
}

uint16_t adaptive_info_set(struct sim *s, struct sma_req *r)
{
    struct sim_adaptive *a = of(s, r);
    struct mad_adaptive_routing_info want;
    if (!a)
        return MAD_STATUS_BAD_METHOD_ATTR;
    mad_adaptive_routing_info_decode(r->data, &want);
    if (r->am != MAD_AR_INFO_MOD || want.group_top >= a->info.group_cap || want.fr_en || want.rn_xmit_en ||
        want.pfrn_en || want.by_vl_en || want.hbf_en || want.whbf_en ||
        want.sub_groups_active >= a->info.sub_groups_sup ||
        (want.transport_disable != 0 && !a->info.by_transport_cap))
        return MAD_STATUS_BAD_VALUE;
    a->info.ar_en = want.ar_en;
    a->info.group_top = want.group_top;
    a->info.sub_groups_active = want.sub_groups_active;
    a->info.by_sl_en = want.by_sl_en;
    a->info.sl_mask = want.sl_mask;
    a->info.transport_disable = want.transport_disable & 15;
    a->info.ageing_us = want.ageing_us;
    return 0;
}

uint16_t adaptive_group_get(struct sim *s, struct sma_req *r)
{
    const struct sim_adaptive *a = of(s, r);
    if (!a)
        return MAD_STATUS_BAD_METHOD_ATTR;
    if (r->am >= a->info.group_cap)
        return MAD_STATUS_BAD_VALUE;
    if (a->group)
        memcpy(r->data, a->group + (size_t)r->am * 64, 64);
    else
        memset(r->data, 0, 64);
    return 0;
}

uint16_t adaptive_group_set(struct sim *s, struct sma_req *r)
{
    struct sim_adaptive *a = of(s, r);
    if (!a)
        return MAD_STATUS_BAD_METHOD_ATTR;
    if (r->am > a->info.group_top)
        return MAD_STATUS_BAD_VALUE;
    for (unsigned p = 0; p < 256; p++)
        if ((p == 0 || p > r->node->num_ports) && (mad_ar_mask_has(r->data, (uint8_t)p) ||
                                                   mad_ar_mask_has(r->data + MAD_AR_MASK_BYTES, (uint8_t)p)))
            return MAD_STATUS_BAD_VALUE;
    if (!a->group)
        a->group = xcalloc(a->info.group_cap, 64);
    memcpy(a->group + (size_t)r->am * 64, r->data, 64);
    a->written_on += a->info.ar_en;
    return 0;
}

static bool written(const struct sim_adaptive *a, unsigned block)
{
    return a->entry && a->written[block / 64] >> (block % 64) & 1;
}

// As the agent would answer for it.
static void entry_at(const struct sim *s, const struct sim_switch *w, unsigned lid, uint8_t ret[ENTRY])
{
    const struct sim_adaptive *a = w->adaptive;
    if (lid < w->lft_entries && written(a, lid / MAD_AR_LFT_BLOCK)) {
        memcpy(ret, a->entry + (size_t)lid * ENTRY, ENTRY);
        return;
    }
    unsigned ports = s->node[w->node].num_ports + 1u;
    uint8_t port = (uint8_t)(hash_mix64(w->garbage ^ (uint64_t)lid << 20) % ports);
    ret[0] = MAD_AR_STATIC << 6;
    ret[1] = lid >= w->lft_entries || s->o.lft_drop ? LFT_DROP : port;
    if (s->o.adaptive_one_table)
        ret[1] = lft_stored(s, w, (uint16_t)lid);
    ret[2] = ret[3] = 0;
}

static bool block_ok(const struct sim_switch *w, uint32_t am)
{
    return am < blocks(w);
}

uint16_t adaptive_lft_get(struct sim *s, struct sma_req *r)
{
    const struct sim_switch *w = &s->sw[r->node->sw];
    if (!w->adaptive)
        return MAD_STATUS_BAD_METHOD_ATTR;
    if (!block_ok(w, r->am))
        return MAD_STATUS_BAD_VALUE;
    for (unsigned i = 0; i < MAD_AR_LFT_BLOCK; i++)
        entry_at(s, w, r->am * MAD_AR_LFT_BLOCK + i, r->data + i * ENTRY);
    return 0;
}

static bool entries_ok(const struct sim_node *n, const struct sim_adaptive *a,
                       const struct mad_adaptive_routing_lft *t)
{
    for (unsigned i = 0; i < MAD_AR_LFT_BLOCK; i++) {
        if (t->state[i] == MAD_AR_HBF || t->table[i] >= a->info.group_table_cap)
            return false;
        if (t->state[i] != MAD_AR_STATIC && t->group[i] > a->info.group_top)
            return false;
        if (t->port[i] > n->num_ports && t->port[i] != LFT_DROP)
            return false;
    }
    return true;
}

uint16_t adaptive_lft_set(struct sim *s, struct sma_req *r)
{
    struct sim_switch *w = &s->sw[r->node->sw];
    struct sim_adaptive *a = w->adaptive;
    struct mad_adaptive_routing_lft t;
    if (!a)
        return MAD_STATUS_BAD_METHOD_ATTR;
    mad_adaptive_routing_lft_decode(r->data, &t);
    if (!block_ok(w, r->am) || !entries_ok(r->node, a, &t))
        return MAD_STATUS_BAD_VALUE;
    if (!a->entry) {
        a->entry = xcalloc((size_t)blocks(w) * MAD_AR_LFT_BLOCK, ENTRY);
        a->written = xcalloc(blocks(w) / 64 + 1, sizeof(uint64_t));
    }
    memcpy(a->entry + (size_t)r->am * 64, r->data, 64);
    a->written_on += a->info.ar_en;
    a->written[r->am / 64] |= 1ull << (r->am % 64);
    for (unsigned i = 0; i < MAD_AR_LFT_BLOCK && s->o.adaptive_one_table; i++)
        lft_store(s, w, (uint16_t)(r->am * MAD_AR_LFT_BLOCK + i), t.port[i]);
    return 0;
}

void adaptive_lft_written(struct sim *s, struct sim_switch *w, unsigned first, unsigned count)
{
    const struct sim_adaptive *a = w->adaptive;
    for (unsigned lid = first; a && s->o.adaptive_one_table && lid < first + count; lid++)
        if (lid < w->lft_entries && written(a, lid / MAD_AR_LFT_BLOCK))
            a->entry[(size_t)lid * ENTRY + 1] = w->lft[lid];
}

// --- where packets go ---

static bool alive(const struct sim *s, const struct sim_node *n, unsigned port)
{
    const struct sim_port *p = port == 0 ? NULL : port_at(s, n, port);
    return p && link_passes(s, p, false);
}

unsigned adaptive_choices(const struct sim *s, const struct sim_switch *w, uint16_t lid, unsigned transport,
                          uint8_t ret[256])
{
    const struct sim_adaptive *a = w->adaptive;
    const struct sim_node *n = &s->node[w->node];
    uint8_t e[ENTRY];
    unsigned count = 0;

    if (!a || !a->info.ar_en || lid == 0 || lid > w->si.linear_fdb_top) {
        ret[0] = lft_entry(s, w, lid);
        return ret[0] != LFT_DROP;
    }
    entry_at(s, w, lid, e);
    bool group = e[0] >> 6 != MAD_AR_STATIC && a->group && !(a->info.transport_disable & transport);
    for (unsigned sub = 0; group && sub <= a->info.sub_groups_active && count == 0; sub++)
        for (unsigned p = 1; p <= n->num_ports; p++)
            if (mad_ar_mask_has(a->group + (size_t)wire_u16(e + 2) * 64 + sub * 32, (uint8_t)p) &&
                alive(s, n, p))
                ret[count++] = (uint8_t)p;
    if (count > 0)
        return count;
    ret[0] = e[1];
    return e[1] != LFT_DROP;
}

uint8_t adaptive_port(const struct sim *s, const struct sim_switch *w, uint16_t lid, uint64_t flow)
{
    uint8_t port[256];
    if (!w->adaptive)
        return lft_entry(s, w, lid);
    unsigned n = adaptive_choices(s, w, lid, MAD_AR_UD, port);
    return n == 0 ? LFT_DROP : port[hash_mix64(flow ^ w->garbage) % n];
}

uint8_t adaptive_least(const struct sim *s, const struct sim_switch *w, uint16_t lid, const uint64_t *load)
{
    const struct sim_node *n = &s->node[w->node];
    uint8_t port[256];
    unsigned count = adaptive_choices(s, w, lid, MAD_AR_RC, port), best = 0;
    for (unsigned i = 0; i < count && count > 1; i++) {
        const struct sim_port *p = port_at(s, n, port[i]), *q = port_at(s, n, port[best]);
        uint64_t here = load ? load[port_index(s, p)] : p->counter[SIM_XMIT_DATA];
        uint64_t there = load ? load[port_index(s, q)] : q->counter[SIM_XMIT_DATA];
        if (here < there)
            best = i;
    }
    return count == 0 ? LFT_DROP : port[best];
}

// --- views ---

int sim_adaptive_cap(struct sim *s, uint64_t switch_guid, unsigned groups)
{
    const struct sim_node *n = sim_node_by_guid(s, switch_guid);
    if (!n)
        return -ENOENT;
    if (!is_switch(n) || groups >= MAD_AR_GROUPS)
        return -EINVAL;
    adaptive_make(s, &s->sw[n->sw], groups);
    sim_touch(s);
    flow_tables_written(s);
    return 0;
}

int sim_adaptive_view(const struct sim *s, uint64_t switch_guid, struct sim_adaptive_view *ret)
{
    const struct sim_node *n = sim_node_by_guid(s, switch_guid);
    if (!n || !is_switch(n))
        return -ENOENT;
    const struct sim_adaptive *a = s->sw[n->sw].adaptive;
    *ret = (struct sim_adaptive_view){0};
    if (a)
        *ret = (struct sim_adaptive_view){.supported = true,
                                          .enabled = a->info.ar_en,
                                          .group_cap = a->info.group_cap,
                                          .group_top = a->info.group_top,
                                          .transport_disable = a->info.transport_disable,
                                          .written_on = a->written_on};
    return 0;
}

int sim_choices(const struct sim *s, uint64_t switch_guid, uint16_t lid, uint8_t ret_port[256])
{
    const struct sim_node *n = sim_node_by_guid(s, switch_guid);
    if (!n || !is_switch(n))
        return -ENOENT;
    return (int)adaptive_choices(s, &s->sw[n->sw], lid, MAD_AR_RC, ret_port);
}

struct search {
    const struct sim *s;
    uint16_t lid;
    uint8_t *hops; // [switch]: 0 not seen, UNDER_WAY, else longest way from here + 1
    char *where;
    unsigned long size;
};
#define UNDER_WAY 255

static int search(struct search *q, const struct sim_port *in, unsigned depth)
{
    const struct sim *s = q->s;
    const struct sim_node *n = node_of(s, in);
    int longest = 0;
    uint8_t port[256];

    if (has_lid(&s->port[is_switch(n) ? n->first_port : port_index(s, in)], q->lid))
        return 0;
    if (!is_switch(n))
        return sim_stopped(q->where, q->size, "%.64s: arrived, but its LID is %u", n->desc, in->pi.lid);
    if (q->hops[n->sw] == UNDER_WAY || depth > SIM_HOP_LIMIT) {
        sim_stopped(q->where, q->size, "%.64s: a choice comes back here on the way to LID %u", n->desc,
                    q->lid);
        return -ELOOP;
    }
    if (q->hops[n->sw] != 0)
        return q->hops[n->sw] - 1;
    q->hops[n->sw] = UNDER_WAY;
    unsigned count = adaptive_choices(s, &s->sw[n->sw], q->lid, MAD_AR_RC, port);
    if (count == 0)
        return sim_stopped(q->where, q->size, "%.64s: no entry for LID %u", n->desc, q->lid);
    for (unsigned i = 0; i < count; i++) {
        if (!alive(s, n, port[i]))
            return sim_stopped(q->where, q->size, "%.64s[%u]: link carries no data to LID %u", n->desc,
                               port[i], q->lid);
        int rc = search(q, peer_of(s, port_at(s, n, port[i])), depth + 1);
        if (rc < 0)
            return rc;
        longest = rc + 1 > longest ? rc + 1 : longest;
    }
    q->hops[n->sw] = (uint8_t)(longest + 1);
    return longest;
}

int sim_trace_all(const struct sim *s, uint64_t from_port_guid, uint16_t to_lid, char *ret_where,
                  unsigned long size)
{
    const struct sim_port *p = sim_port_by_guid(s, from_port_guid);
    if (!p)
        return sim_stopped(ret_where, size, "no end port 0x%016llx", (unsigned long long)from_port_guid);
    struct search q = {.s = s, .lid = to_lid, .where = ret_where, .size = size};
    q.hops = xcalloc(s->num_switches + 1, 1);
    int rc = 0;
    if (is_switch(node_of(s, p)) || has_lid(p, to_lid))
        rc = search(&q, p, 0);
    else if (!link_passes(s, p, false))
        rc = sim_stopped(ret_where, size, "its own link carries no data");
    else if ((rc = search(&q, peer_of(s, p), 1)) >= 0)
        rc++;
    free(q.hops);
    return rc;
}

int sim_flows(const struct sim *s, const struct sim_flow *flow, unsigned n, bool adaptive,
              struct sim_load *ret)
{
    uint64_t *load = xcalloc(s->num_ports + 1, sizeof(*load));
    *ret = (struct sim_load){0};
    for (unsigned i = 0; i < n; i++) {
        const struct sim_port *p = sim_port_by_guid(s, flow[i].from_port_guid);
        unsigned hops = 0;
        while (p && !has_lid(end_port(s, (struct sim_port *)p), flow[i].to_lid) && hops++ <= SIM_HOP_LIMIT) {
            const struct sim_node *nd = node_of(s, p);
            unsigned out = !is_switch(nd) ? (hops == 1 ? p->num : 0)
                           : adaptive     ? adaptive_least(s, &s->sw[nd->sw], flow[i].to_lid, load)
                                          : adaptive_port(s, &s->sw[nd->sw], flow[i].to_lid, i);
            const struct sim_port *o = alive(s, nd, out) ? port_at(s, nd, out) : NULL;
            p = o ? peer_of(s, o) : NULL;
            if (o)
                load[port_index(s, o)]++;
        }
        ret->arrived += p && has_lid(end_port(s, (struct sim_port *)p), flow[i].to_lid);
    }
    for (uint32_t i = 0; i < s->num_ports; i++) {
        const struct sim_port *z = peer_of(s, &s->port[i]);
        bool fabric = z && is_switch(node_of(s, &s->port[i])) && is_switch(node_of(s, z));
        ret->max = load[i] > ret->max ? (unsigned)load[i] : ret->max;
        if (fabric && load[i] > ret->max_between)
            ret->max_between = (unsigned)load[i];
    }
    free(load);
    return 0;
}
