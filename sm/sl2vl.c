// SPDX-License-Identifier: Apache-2.0
// Virtual lanes on the devices. A packet of service level s goes by lane s: SLtoVLMappingTable says so for
// every way through a switch that has cables at both ends, and for every adapter; VLArbitration serves all
// lanes alike. Phase "lanes", between the answer of the routing and the first block of the tables: lanes are
// there before anything is routed by them.
//
// Only where tables have more than one lane. With one, nothing is read or written: the lowest level goes by
// the lowest lane everywhere as devices come. Nor is anything taken back when lanes are given up, since level
// s on lane s harms no tables that need one lane.
//
// Read before write, one pair of ports at a time, and only the levels in use: what a device has for the
// others stays. What was seen to be right is remembered (struct sm_vls) until the device or the port resets,
// so a sweep that changes nothing asks nothing. Where a switch programs all inputs of an output at once
// (OptimizedSLtoVLMappingProgramming) a pair that is wrong costs one Set for all of them.
//
// A cable to an adapter with fewer lanes than are in use takes what fits: nothing waits behind it but what
// the adapter takes off the wire.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "sm/sm_priv.h"

#define ARB_BLOCKS 4       // low table's two, high table's two
#define ARB_PAIRS 32       // a block
#define ARB_WEIGHT 64      // units of 64 bytes: a packet of 4096 each turn
#define UNIT_SET 0x100000u // in a tag: this was the Set

struct sm_vls {     // what is known to be as it should
    uint32_t ports; // bits of a row: num_ports + 1
    uint8_t lanes;  // for so many
    bool settled;   // all of it
    uint8_t unkept; // a port that does not keep, or refuses, what it is told; 0: none
    uint8_t ok[];   // [in * ports + out], then [ports * ports + ARB_BLOCKS * port + block]
};

static uint32_t num_bits(uint32_t ports)
{
    return ports * ports + ARB_BLOCKS * ports;
}

uint32_t sm_lanes_units(const struct sm_dev *d)
{
    return num_bits(d->ni.num_ports + 1u);
}

static bool is_ok(const struct sm_vls *v, uint32_t unit)
{
    return v->ok[unit / 8] >> (unit % 8) & 1;
}

static void set_ok(struct sm_vls *v, uint32_t unit, bool ok)
{
    uint8_t bit = (uint8_t)(1u << (unit % 8));
    v->ok[unit / 8] = (uint8_t)(ok ? v->ok[unit / 8] | bit : v->ok[unit / 8] & ~bit);
    v->settled = v->settled && ok;
}

static void forget(struct sm_vls *v)
{
    memset(v->ok, 0, (num_bits(v->ports) + 7) / 8);
    v->settled = false;
    v->unkept = 0;
}

static void forget_port(struct sm_vls *v, unsigned num)
{
    for (uint32_t in = 0; in < v->ports; in++)
        set_ok(v, in * v->ports + num, false);
    for (uint32_t b = 0; b < ARB_BLOCKS; b++)
        set_ok(v, v->ports * v->ports + ARB_BLOCKS * num + b, false);
}

void sm_lanes_free(struct sm_dev *d)
{
    free(d->vls);
    d->vls = NULL;
}

static unsigned lanes_of(const struct fabric_tables *t)
{
    return t != NULL && t->lanes != NULL ? t->lanes->num_lanes : 1;
}

// --- how many ---

static unsigned vls_of(const struct sm_port *p)
{
    unsigned n = mad_vl_count(p->info[43] >> 4); // OperationalVLs: bits 344-347
    return n > 0 ? n : 1;
}

static bool joined(const struct sm_port *p)
{
    return sm_port_up(p) && p->peer != DEV_NONE && p->excluded == PORT_INCLUDED;
}

// *ret_dev, *ret_num: the live link that has no more, NULL when none limits. Its OperationalVLs stay as they
// are until it has been down.
static unsigned allowed(const struct sm *sm, const struct sm_dev **ret_dev, unsigned *ret_num)
{
    unsigned asked = sm->o.lanes > 0 ? sm->o.lanes : LANES_MAX, n = mad_vl_count(sm->o.max_vls);

    *ret_dev = NULL;
    n = n > 0 && n < asked ? n : asked;
    for (uint32_t i = 0; i < sm->num_dev; i++) {
        const struct sm_dev *d = sm->dev[i];
        for (unsigned num = 1; d->here && dev_is_switch(d) && num <= d->ni.num_ports; num++) {
            const struct sm_port *p = &d->port[num];
            bool live = (p->info[32] & 0x0f) >= MAD_PORT_ARMED;
            if (!joined(p) || !live || !dev_is_switch(sm->dev[p->peer]) || vls_of(p) >= n)
                continue;
            n = vls_of(p);
            *ret_dev = d;
            *ret_num = num;
        }
    }
    return n;
}

uint8_t sm_lanes_allowed(const struct sm *sm)
{
    const struct sm_dev *d;
    unsigned num;
    return (uint8_t)allowed(sm, &d, &num);
}

static void tell_of_limit(struct sm *sm)
{
    const struct sm_dev *d;
    unsigned num, n = allowed(sm, &d, &num);
    char where[128];
    if (d != NULL)
        sm_note(
            sm, NOTE_ROUTES, FINDING_WARNING, "few-lanes", sm_port_text(d, num, where, sizeof(where)),
            "has %u operational VLs and is live, so no more lanes are used; more are agreed upon when it has "
            "been down",
            n);
}

// A note goes when the device is read, and comes again as long as it holds.
static void no_use(struct sm *sm, const struct sm_dev *d)
{
    char where[128];
    sm_note(sm, d->guid, FINDING_ERROR, "lanes-not-kept",
            sm_port_text(d, d->vls->unkept, where, sizeof(where)),
            "refuses or does not keep SLtoVL or VLArbitration: packets there may go by other lanes than the "
            "tables "
            "are proved for");
}

// What the sweep has read may say that a device or a port has lost what it had.
void sm_lanes_begin(struct sm *sm)
{
    if (sm->o.engine == ROUTE_SSSP)
        tell_of_limit(sm);
    for (uint32_t i = 0; i < sm->num_dev; i++) {
        struct sm_dev *d = sm->dev[i];
        if (d->vls == NULL || !d->touched)
            continue;
        d->vls->settled = false;
        if (!d->here || sm->reroute_now || (dev_is_switch(d) && d->lft != DEV_LFT_SHADOW)) {
            forget(d->vls);
            continue;
        }
        for (unsigned num = 1; num <= d->ni.num_ports; num++)
            if (!d->port[num].known || sm_port_reset(&d->port[num]))
                forget_port(d->vls, num);
        if (d->vls->unkept != 0)
            no_use(sm, d);
    }
}

// --- what is wanted ---

static unsigned arb_cap(const struct sm_port *p, unsigned block)
{
    struct mad_port_info pi;
    mad_port_info_decode(p->info, &pi);
    unsigned cap = block < 2 ? pi.vl_arbitration_low_cap : pi.vl_arbitration_high_cap;
    unsigned first = block % 2 * ARB_PAIRS;
    return cap <= first ? 0 : cap - first < ARB_PAIRS ? cap - first : ARB_PAIRS;
}

// Sets what is wrong of a row right; whether anything was.
static bool mend_row(struct mad_sltovl_mapping_table *t, unsigned lanes, unsigned vls)
{
    bool wrong = false;
    for (unsigned sl = 0; sl < lanes; sl++) {
        wrong |= t->vl[sl] != sl % vls;
        t->vl[sl] = (uint8_t)(sl % vls);
    }
    return wrong;
}

// Every lane has the same share of the block, and of the first one has some.
static bool mend_arb(struct mad_vl_arbitration_table *t, unsigned block, unsigned cap, unsigned lanes)
{
    unsigned share[16] = {0};
    bool even = true;
    for (unsigned i = 0; i < cap; i++)
        share[t->vl[i] & 15] += t->weight[i];
    for (unsigned vl = 0; vl < lanes; vl++)
        even &= share[vl] == share[0] && (block != 0 || share[vl] > 0);
    if (even)
        return false;
    memset(t, 0, sizeof(*t));
    for (unsigned vl = 0; vl < lanes && vl < cap && block == 0; vl++) {
        t->vl[vl] = (uint8_t)vl;
        t->weight[vl] = ARB_WEIGHT;
    }
    return true;
}

struct unit {
    bool arb;
    uint8_t in, out, block; // out 0: the one port of an adapter that `port` is
};

static struct unit unit_of(const struct sm_vls *v, uint32_t i)
{
    uint32_t pairs = v->ports * v->ports, k = i - pairs;
    if (i < pairs)
        return (struct unit){.in = (uint8_t)(i / v->ports), .out = (uint8_t)(i % v->ports)};
    return (struct unit){.arb = true, .out = (uint8_t)(k / ARB_BLOCKS), .block = (uint8_t)(k % ARB_BLOCKS)};
}

static bool concerns(const struct sm_dev *d, const struct unit *u)
{
    bool sw = dev_is_switch(d);
    if (u->out == 0 || !joined(&d->port[u->out]) || (d->port[u->out].info[37] >> 4) <= 1) // VLCap: one lane
        return false;
    if (u->arb)
        return arb_cap(&d->port[u->out], u->block) > 0;
    return u->in == 0 || (sw && u->in != u->out && joined(&d->port[u->in]));
}

// --- on the wire ---

static void item(const struct sm_dev *d, uint32_t i, const struct unit *u, struct sm_item *it)
{
    bool sw = dev_is_switch(d);
    *it = (struct sm_item){.tag = i, .method = MAD_METHOD_GET, .port = sw ? 0 : u->out};
    if (u->arb) {
        it->attr_id = MAD_ATTR_VL_ARBITRATION_TABLE;
        it->attr_mod = (u->block + 1u) << 16 | (sw ? u->out : 0);
    } else {
        it->attr_id = MAD_ATTR_SLTOVL_MAPPING_TABLE;
        it->attr_mod = sw ? (uint32_t)u->in << 8 | u->out : 0;
    }
}

// Makes room; false when the device has nothing to do with lanes.
static bool prepare(const struct sm *sm, struct sm_dev *d)
{
    unsigned lanes = lanes_of(sm->next_tables);
    uint32_t bits = sm_lanes_units(d);

    if (lanes <= 1 || !d->here || d->node == ID_NONE || d->too_small)
        return false;
    if (d->vls != NULL && d->vls->ports != d->ni.num_ports + 1u)
        sm_lanes_free(d);
    if (d->vls == NULL) {
        d->vls = xcalloc(1, sizeof(*d->vls) + (bits + 7) / 8);
        d->vls->ports = d->ni.num_ports + 1u;
    }
    if (d->vls->lanes < lanes) {
        forget(d->vls);
        d->vls->lanes = (uint8_t)lanes;
    }
    return true;
}

// The first unit from *i on that is not known to be right.
static bool find_unit(const struct sm_dev *d, uint32_t *i, struct unit *ret)
{
    for (uint32_t end = sm_lanes_units(d); *i < end; ++*i) {
        *ret = unit_of(d->vls, *i);
        if (!is_ok(d->vls, *i) && concerns(d, ret))
            return true;
    }
    return false;
}

bool sm_lanes_needed(struct sm *sm)
{
    for (uint32_t k = 0; k < sm->num_dev && lanes_of(sm->next_tables) > 1; k++) {
        struct sm_dev *d = sm->dev[k];
        struct unit u;
        uint32_t i = 0;
        if (!prepare(sm, d) || d->vls->settled)
            continue;
        if (find_unit(d, &i, &u))
            return true;
        d->vls->settled = true;
    }
    return false;
}

// The device's next question.
bool sm_lanes_next(struct sm *sm, struct sm_dev *d, uint32_t *cursor, struct sm_item *it)
{
    struct unit u;
    if ((*cursor == 0 && !prepare(sm, d)) || d->vls == NULL || (*cursor == 0 && d->vls->settled))
        return false;
    if (*cursor == 0)
        d->vls->settled = true; // unless something turns out not to be
    if (!find_unit(d, cursor, &u))
        return false;
    item(d, (*cursor)++, &u, it);
    return true;
}

static bool mend(const struct sm_dev *d, const struct unit *u, unsigned lanes, const uint8_t *data,
                 uint8_t *ret)
{
    unsigned vls = vls_of(&d->port[u->out]);
    bool wrong;

    memset(ret, 0, MAD_SMP_DATA_SIZE);
    if (u->arb) {
        struct mad_vl_arbitration_table t;
        mad_vl_arbitration_table_decode(data, &t);
        wrong = mend_arb(&t, u->block, arb_cap(&d->port[u->out], u->block), lanes < vls ? lanes : vls);
        mad_vl_arbitration_table_encode(&t, ret);
    } else {
        struct mad_sltovl_mapping_table t;
        mad_sltovl_mapping_table_decode(data, &t);
        wrong = mend_row(&t, lanes, vls);
        mad_sltovl_mapping_table_encode(&t, ret);
    }
    return wrong;
}

static bool all_inputs(const struct sm_dev *d, const struct unit *u)
{
    return !u->arb && dev_is_switch(d) && d->si.optimized_sltovl_mapping_programming;
}

static void mark(struct sm_dev *d, uint32_t i, const struct unit *u, bool ok)
{
    for (uint32_t in = 0; in < d->vls->ports && all_inputs(d, u); in++)
        set_ok(d->vls, in * d->vls->ports + u->out, ok);
    set_ok(d->vls, i, ok);
}

static void unkept(struct sm *sm, struct sm_dev *d, uint8_t port)
{
    if (d->vls->unkept != 0)
        return;
    d->vls->unkept = port;
    no_use(sm, d);
}

// An answer to what sm_lanes_next() has asked, or to the Set that followed.
void sm_lanes_answer(struct sm_pass *p, struct sm_dev *d, uint32_t tag, const struct mad_result *r)
{
    struct sm *sm = p->sm;
    uint32_t i = tag & (UNIT_SET - 1);
    struct unit u = unit_of(d->vls, i);
    unsigned lanes = lanes_of(sm->next_tables);
    struct sm_item it;

    if (r->status != 0) {
        item(d, i, &u, &it);
        mark(d, i, &u, false);
        sm_set_refused(sm, d, u.out, tag & UNIT_SET ? MAD_METHOD_SET : MAD_METHOD_GET, it.attr_id, r);
        return;
    }
    if (r->mad_status != 0) { // it will say the same the next time
        mark(d, i, &u, true);
        unkept(sm, d, u.out);
        return;
    }
    item(d, i, &u, &it);
    bool wrong = mend(d, &u, lanes, r->data, it.data);
    if (tag & UNIT_SET) {
        sm->progress = true;
        if (wrong)
            unkept(sm, d, u.out);
    } else if (wrong && !is_ok(d->vls, i)) { // not yet by another's Set
        it.tag |= UNIT_SET;
        it.method = MAD_METHOD_SET;
        it.has_data = true;
        if (all_inputs(d, &u))
            it.attr_mod = MAD_SLTOVL_ALL_IN | u.out;
        mark(d, i, &u, true);
        sm_pass_send(p, d, &it);
        return;
    }
    set_ok(d->vls, i, true);
}

// --- for the audit ---

// How many settings are known to be right, and so can have drifted; 0 where one lane is enough.
uint32_t sm_lanes_known(const struct sm *sm, const struct sm_dev *d)
{
    uint32_t n = 0, bytes = (sm_lanes_units(d) + 7) / 8;
    if (lanes_of(sm->tables) <= 1 || d->vls == NULL || d->vls->ports != d->ni.num_ports + 1u)
        return 0;
    for (uint32_t i = 0; i < bytes; i++)
        n += (uint32_t)__builtin_popcount(d->vls->ok[i]);
    return n;
}

bool sm_lanes_is_known(const struct sm_dev *d, uint32_t unit)
{
    struct unit u = unit_of(d->vls, unit);
    return is_ok(d->vls, unit) && concerns(d, &u);
}

void sm_lanes_item(const struct sm_dev *d, uint32_t unit, struct sm_item *it)
{
    struct unit u = unit_of(d->vls, unit);
    item(d, unit, &u, it);
}

// Then it is asked for again by the next sweep that reads the device.
bool sm_lanes_drifted(struct sm *sm, struct sm_dev *d, uint32_t unit, const uint8_t *data, char *what,
                      unsigned long size)
{
    uint8_t wire[MAD_SMP_DATA_SIZE];
    if (d->vls == NULL || d->vls->ports != d->ni.num_ports + 1u)
        return false;
    struct unit u = unit_of(d->vls, unit);
    if (!sm_lanes_is_known(d, unit) || d->vls->unkept || !mend(d, &u, lanes_of(sm->tables), data, wire))
        return false;
    mark(d, unit, &u, false);
    if (u.arb)
        snprintf(what, size, "port %u: VLArbitration does not serve all lanes alike", u.out);
    else
        snprintf(what, size, "levels that come in by port %u leave by port %u on other lanes", u.in, u.out);
    return true;
}
