// SPDX-License-Identifier: Apache-2.0
// Tables of the agents, kept as they stand on the wire and allocated at the first Set: P_KeyTable, GUIDInfo,
// SLtoVL, VLArbitration, linear and multicast forwarding tables. A block that does not exist, or bits of the
// attribute modifier that mean nothing, are refused.
//
// After power-up an LFT block reads as anything (opts.lft_drop: 255): a manager that trusts what it did not
// write is found out. `written` tells the blocks that somebody wrote.
#include "sim/sim_priv.h"

#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"

#define BLOCK 64

// --- P_KeyTable: AM = block, on a switch port << 16 | block ---

unsigned p_key_cap(const struct sim *s, const struct sim_port *p)
{
    const struct sim_node *n = node_of(s, p);
    return is_switch(n) && p->num != 0 ? s->sw[n->sw].si.partition_enforcement_cap : n->partition_cap;
}

static unsigned p_key_blocks(const struct sim *s, const struct sim_port *p)
{
    return (p_key_cap(s, p) + 31) / 32;
}

static void p_key_default(uint8_t *block, unsigned number)
{
    memset(block, 0, BLOCK);
    if (number == 0)
        wire_put_u16(block, MAD_DEFAULT_P_KEY);
}

uint16_t p_key_at(const struct sim *s, const struct sim_port *p, unsigned index)
{
    if (index >= p_key_cap(s, p))
        return 0;
    if (!p->p_keys)
        return index == 0 ? MAD_DEFAULT_P_KEY : 0;
    return wire_u16(p->p_keys + 2 * index);
}

bool p_key_matches(const struct sim *s, const struct sim_port *p, uint16_t key)
{
    unsigned cap = p_key_cap(s, p);
    if ((key & 0x7fff) == 0)
        return false;
    for (unsigned i = 0; i < cap; i++) {
        uint16_t mine = p_key_at(s, p, i);
        if ((mine & 0x7fff) == (key & 0x7fff) && (mine | key) & 0x8000)
            return true;
    }
    return false;
}

// NULL when there is no such port or block.
static struct sim_port *p_key_target(struct sim *s, const struct sma_req *r, unsigned *ret_block)
{
    struct sim_port *p = is_switch(r->node) ? port_at(s, r->node, r->am >> 16) : r->in;
    *ret_block = r->am & 0xffff;
    return p && *ret_block < p_key_blocks(s, p) ? p : NULL;
}

uint16_t p_key_get(struct sim *s, struct sma_req *r)
{
    unsigned block;
    const struct sim_port *p = p_key_target(s, r, &block);
    if (!p)
        return MAD_STATUS_BAD_VALUE;
    if (p->p_keys)
        memcpy(r->data, p->p_keys + block * BLOCK, BLOCK);
    else
        p_key_default(r->data, block);
    return 0;
}

uint16_t p_key_set(struct sim *s, struct sma_req *r)
{
    unsigned block;
    struct sim_port *p = p_key_target(s, r, &block);
    if (!p)
        return MAD_STATUS_BAD_VALUE;
    if (!p->p_keys) {
        p->p_keys = xmalloc((size_t)p_key_blocks(s, p) * BLOCK);
        for (unsigned i = 0; i < p_key_blocks(s, p); i++)
            p_key_default(p->p_keys + i * BLOCK, i);
    }
    memcpy(p->p_keys + block * BLOCK, r->data, BLOCK);
    unsigned left = p_key_cap(s, p) - block * 32; // a last block may be a part of one
    if (left < 32)
        memset(p->p_keys + block * BLOCK + 2 * left, 0, BLOCK - 2 * left);
    return 0;
}

// --- GUIDInfo: AM = block of 8; entry 0 is the port's own and read-only ---

static bool guid_block_ok(const struct sma_req *r)
{
    return r->am < (r->end->pi.guid_cap + 7u) / 8;
}

uint16_t guid_info_get(struct sim *s, struct sma_req *r)
{
    if (!guid_block_ok(r))
        return MAD_STATUS_BAD_VALUE;
    if (r->end->guids)
        memcpy(r->data, r->end->guids + r->am * BLOCK, BLOCK);
    else
        memset(r->data, 0, BLOCK);
    if (r->am == 0)
        wire_put_u64(r->data, r->end->guid);
    return 0;
}

uint16_t guid_info_set(struct sim *s, struct sma_req *r)
{
    if (!guid_block_ok(r))
        return MAD_STATUS_BAD_VALUE;
    unsigned cap = r->end->pi.guid_cap, left = cap - r->am * 8;
    if (!r->end->guids)
        r->end->guids = xcalloc((cap + 7) / 8, BLOCK);
    memcpy(r->end->guids + r->am * BLOCK, r->data, left < 8 ? left * 8 : BLOCK);
    return 0;
}

// --- SLtoVLMappingTable: AM = input port << 8 | output port; bits 16, 17 = all outputs, inputs ---

static void sltovl_default(const struct sim *s, const struct sim_port *p, uint8_t *row)
{
    unsigned vls = mad_vl_count(p->pi.vl_cap);
    if (vls == 0 || s->o.sltovl_zero)
        vls = 1;
    for (unsigned i = 0; i < 8; i++)
        row[i] = (uint8_t)((2 * i % vls) << 4 | (2 * i + 1) % vls);
}

static unsigned sltovl_rows(const struct sim_node *n)
{
    return is_switch(n) ? n->num_ports + 1u : 1;
}

static uint8_t *sltovl_row(const struct sim *s, struct sim_port *out, unsigned in)
{
    unsigned rows = sltovl_rows(node_of(s, out));
    if (!out->sltovl) {
        out->sltovl = xmalloc((size_t)rows * 8);
        for (unsigned i = 0; i < rows; i++)
            sltovl_default(s, out, out->sltovl + i * 8);
    }
    return out->sltovl + in * 8;
}

static bool sltovl_ports(struct sim *s, const struct sma_req *r, struct sim_port **ret_out, unsigned *ret_in)
{
    *ret_in = is_switch(r->node) ? r->am >> 8 & 0xff : 0;
    *ret_out = is_switch(r->node) ? port_at(s, r->node, r->am & 0xff) : r->in;
    return *ret_out && *ret_in < sltovl_rows(r->node);
}

uint16_t sltovl_get(struct sim *s, struct sma_req *r)
{
    struct sim_port *out;
    unsigned in;
    if (!sltovl_ports(s, r, &out, &in) || (is_switch(r->node) && r->am >> 18))
        return MAD_STATUS_BAD_VALUE;
    if (out->sltovl)
        memcpy(r->data, out->sltovl + in * 8, 8);
    else
        sltovl_default(s, out, r->data);
    memset(r->data + 8, 0, BLOCK - 8);
    return 0;
}

uint16_t sltovl_set(struct sim *s, struct sma_req *r)
{
    struct sim_port *out;
    unsigned in;
    bool all_out = false, all_in = false;
    if (is_switch(r->node)) {
        all_out = r->am & MAD_SLTOVL_ALL_OUT;
        all_in = r->am & MAD_SLTOVL_ALL_IN;
        if (r->am >> 18 ||
            ((all_in || all_out) && !s->sw[r->node->sw].si.optimized_sltovl_mapping_programming))
            return MAD_STATUS_BAD_VALUE;
    }
    if (!sltovl_ports(s, r, &out, &in))
        return MAD_STATUS_BAD_VALUE;
    unsigned rows = sltovl_rows(r->node), first = out->num, last = out->num;
    if (all_out) {
        first = 1;
        last = r->node->num_ports;
    }
    for (unsigned o = first; o <= last; o++)
        for (unsigned i = all_in ? 0 : in; i < (all_in ? rows : in + 1); i++)
            memcpy(sltovl_row(s, port_at(s, r->node, o), i), r->data, 8);
    return 0;
}

unsigned port_vl(const struct sim *s, const struct sim_port *out, unsigned in, unsigned sl)
{
    uint8_t row[8];
    unsigned vls = mad_vl_count(out->pi.operational_vls);
    if (sl > 15 || in >= sltovl_rows(node_of(s, out)))
        return VL_DROP;
    if (out->sltovl)
        memcpy(row, out->sltovl + in * 8, 8);
    else
        sltovl_default(s, out, row);
    unsigned vl = sl % 2 == 0 ? row[sl / 2] >> 4 : row[sl / 2] & 15;
    return vl < (vls > 0 ? vls : 1) && port_serves(out, vl) ? vl : VL_DROP;
}

// --- VLArbitrationTable: AM high half 1, 2 = low table, 3, 4 = high table; low half = port on a switch ---

static struct sim_port *vlarb_target(struct sim *s, const struct sma_req *r, unsigned *ret_block)
{
    struct sim_port *p = is_switch(r->node) ? port_at(s, r->node, r->am & 0xffff) : r->in;
    unsigned b = r->am >> 16;
    if (!p || b < 1 || b > 4)
        return NULL;
    unsigned cap = b <= 2 ? p->pi.vl_arbitration_low_cap : p->pi.vl_arbitration_high_cap;
    *ret_block = b - 1;
    return cap > (b % 2 ? 0u : 32u) ? p : NULL;
}

bool port_serves(const struct sim_port *p, unsigned vl)
{
    if (!p->vlarb || mad_vl_count(p->pi.operational_vls) <= 1)
        return true; // as after power-up: all in turn
    unsigned cap[] = {p->pi.vl_arbitration_low_cap, p->pi.vl_arbitration_high_cap};
    for (unsigned table = 0; table < 2; table++)
        for (unsigned i = 0; i < cap[table] && i < 64; i++) {
            const uint8_t *e = p->vlarb + table * 2 * BLOCK + 2 * i;
            if ((e[0] & 15u) == vl && e[1] > 0)
                return true;
        }
    return false;
}

uint16_t vlarb_get(struct sim *s, struct sma_req *r)
{
    unsigned b;
    const struct sim_port *p = vlarb_target(s, r, &b);
    if (!p)
        return MAD_STATUS_BAD_VALUE;
    if (p->vlarb)
        memcpy(r->data, p->vlarb + b * BLOCK, BLOCK);
    else
        memset(r->data, 0, BLOCK);
    return 0;
}

uint16_t vlarb_set(struct sim *s, struct sma_req *r)
{
    unsigned b;
    struct sim_port *p = vlarb_target(s, r, &b);
    if (!p)
        return MAD_STATUS_BAD_VALUE;
    if (!p->vlarb)
        p->vlarb = xcalloc(4, BLOCK);
    memcpy(p->vlarb + b * BLOCK, r->data, BLOCK);
    return 0;
}

// --- LinearForwardingTable: AM = block of 64 ---

static bool written(const struct sim_switch *w, unsigned block)
{
    return w->written[block / 64] >> (block % 64) & 1;
}

static uint8_t unwritten_entry(const struct sim *s, const struct sim_switch *w, uint16_t lid)
{
    const struct sim_node *n = &s->node[w->node];
    if (s->o.lft_drop)
        return LFT_DROP;
    return (uint8_t)(hash_mix64(w->garbage ^ lid) % (n->num_ports + 1u));
}

static uint8_t entry(const struct sim *s, const struct sim_switch *w, uint16_t lid)
{
    if (lid >= w->lft_entries)
        return LFT_DROP;
    return written(w, lid / BLOCK) ? w->lft[lid] : unwritten_entry(s, w, lid);
}

uint8_t lft_entry(const struct sim *s, const struct sim_switch *w, uint16_t lid)
{
    return lid == 0 || lid > w->si.linear_fdb_top ? LFT_DROP : entry(s, w, lid);
}

static void read_block(const struct sim *s, const struct sim_switch *w, unsigned block, uint8_t *ret)
{
    for (unsigned i = 0; i < BLOCK; i++)
        ret[i] = entry(s, w, (uint16_t)(block * BLOCK + i));
}

static bool lft_block_ok(const struct sim_switch *w, uint32_t am)
{
    return am <= LID_UCAST_MAX / BLOCK && am * BLOCK < w->lft_entries;
}

uint16_t lft_block_get(struct sim *s, struct sma_req *r)
{
    const struct sim_switch *w = &s->sw[r->node->sw];
    if (!lft_block_ok(w, r->am))
        return MAD_STATUS_BAD_VALUE;
    if (written(w, r->am) && (r->am + 1) * BLOCK <= w->lft_entries)
        memcpy(r->data, w->lft + r->am * BLOCK, BLOCK);
    else
        read_block(s, w, r->am, r->data);
    return 0;
}

uint16_t lft_block_set(struct sim *s, struct sma_req *r)
{
    struct sim_switch *w = &s->sw[r->node->sw];
    if (!lft_block_ok(w, r->am))
        return MAD_STATUS_BAD_VALUE;
    memcpy(w->lft + r->am * BLOCK, r->data, BLOCK);
    w->written[r->am / 64] |= 1ull << (r->am % 64);
    adaptive_lft_written(s, w, r->am * BLOCK, BLOCK);
    return 0;
}

uint8_t lft_stored(const struct sim *s, const struct sim_switch *w, uint16_t lid)
{
    return entry(s, w, lid);
}

void lft_store(struct sim *s, struct sim_switch *w, uint16_t lid, uint8_t port)
{
    uint8_t block[BLOCK];
    if (lid >= w->lft_entries)
        return;
    if (!written(w, lid / BLOCK)) {
        read_block(s, w, lid / BLOCK, block);
        memcpy(w->lft + lid / BLOCK * BLOCK, block, BLOCK);
        w->written[lid / BLOCK / 64] |= 1ull << (lid / BLOCK % 64);
    }
    w->lft[lid] = port;
}

void lft_preload(struct sim *s, struct sim_switch *w, const uint8_t *from, unsigned lids)
{
    for (unsigned b = 0; b * BLOCK < lids; b++) {
        unsigned n = lids - b * BLOCK < BLOCK ? lids - b * BLOCK : BLOCK;
        uint8_t block[BLOCK];
        read_block(s, w, b, block);
        memcpy(block, from + b * BLOCK, n);
        memcpy(w->lft + b * BLOCK, block, BLOCK);
        w->written[b / 64] |= 1ull << (b % 64);
    }
}

void lft_forget(struct sim *s, struct sim_switch *w)
{
    memset(w->written, 0, (LID_UCAST_MAX / BLOCK + 1) / 8);
    w->garbage = rng_u64(&s->rng);
    free(w->mft);
    w->mft = NULL;
    adaptive_forget(w);
}

// --- MulticastForwardingTable: AM bits 8:0 = block of 32, bits 31:28 = position ---

static size_t mft_offset(const struct sim_switch *w, uint32_t am)
{
    return ((size_t)(am >> 28) * w->si.multicast_fdb_cap + (am & 0x1ff) * 32) * 2;
}

static bool mft_ok(const struct sim *s, const struct sim_switch *w, uint32_t am)
{
    return (am & 0x0ffffe00) == 0 && (am & 0x1ff) * 32 < w->si.multicast_fdb_cap &&
           am >> 28 <= s->node[w->node].num_ports / 16u;
}

static size_t mft_block_bytes(const struct sim_switch *w, uint32_t am)
{
    unsigned left = w->si.multicast_fdb_cap - (am & 0x1ff) * 32;
    return left < 32 ? left * 2 : BLOCK;
}

uint16_t mft_get(struct sim *s, struct sma_req *r)
{
    const struct sim_switch *w = &s->sw[r->node->sw];
    if (!mft_ok(s, w, r->am))
        return MAD_STATUS_BAD_VALUE;
    memset(r->data, 0, BLOCK);
    if (w->mft)
        memcpy(r->data, w->mft + mft_offset(w, r->am), mft_block_bytes(w, r->am));
    return 0;
}

uint16_t mft_set(struct sim *s, struct sma_req *r)
{
    struct sim_switch *w = &s->sw[r->node->sw];
    if (!mft_ok(s, w, r->am))
        return MAD_STATUS_BAD_VALUE;
    if (!w->mft)
        w->mft = xcalloc((size_t)(r->node->num_ports / 16 + 1) * w->si.multicast_fdb_cap, 2);
    memcpy(w->mft + mft_offset(w, r->am), r->data, mft_block_bytes(w, r->am));
    return 0;
}

bool mft_has(const struct sim_switch *w, uint16_t mlid, unsigned port)
{
    unsigned i = mlid - 0xc000u;
    if (!w->mft || mlid < 0xc000 || i >= w->si.multicast_fdb_cap)
        return false;
    return wire_u16(w->mft + ((size_t)(port / 16) * w->si.multicast_fdb_cap + i) * 2) >> (port % 16) & 1;
}

// --- SwitchPortStateTable: AM = block of 128 ports ---

uint16_t port_states_get(struct sim *s, struct sma_req *r)
{
    struct mad_switch_port_state_table t = {0};
    if (!(r->end->pi.capability_mask2 & MAD_CAP2_IS_SWITCH_PORT_STATE_TABLE_SUPPORTED))
        return MAD_STATUS_BAD_METHOD_ATTR;
    if (r->am > r->node->num_ports / 128u)
        return MAD_STATUS_BAD_VALUE;
    for (unsigned i = 0; i < 128; i++) {
        const struct sim_port *p = port_at(s, r->node, r->am * 128 + i);
        t.port_state[i] = p ? p->pi.port_state : 0;
    }
    mad_switch_port_state_table_encode(&t, r->data);
    return 0;
}

void tables_forget(struct sim *s, struct sim_port *p)
{
    free(p->p_keys);
    free(p->sltovl);
    free(p->vlarb);
    free(p->guids);
    p->p_keys = p->sltovl = p->vlarb = p->guids = NULL;
}
