// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/err.h"
#include "mad/mad.h"
#include "tests/whole/odd.h"

const struct sim_opts odd_wire = {.seed = 5, .link_latency_ns = 6000, .service_ns = 30000};

// --- what it cost ---

void mark(struct odd *o)
{
    struct rig *r = &o->r;
    o->sweeps = r->sweeps;
    o->events = r->events;
    buf_clear(&r->log);
    o->lft_set = rig_count(r, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE);
    o->lft_get = rig_count(r, MAD_METHOD_GET, MAD_ATTR_LINEAR_FORWARDING_TABLE);
    o->info_get = rig_count(r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO);
    o->info_set = rig_count(r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO);
    o->node_get = rig_count(r, MAD_METHOD_GET, MAD_ATTR_NODE_INFO);
    o->desc_get = rig_count(r, MAD_METHOD_GET, MAD_ATTR_NODE_DESCRIPTION);
    o->sm_get = rig_count(r, MAD_METHOD_GET, MAD_ATTR_SM_INFO);
    o->at = loop_now(r->loop);
}

unsigned lft_sets(const struct odd *o)
{
    return (unsigned)(rig_count(&o->r, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE) - o->lft_set);
}

unsigned info_gets(const struct odd *o)
{
    return (unsigned)(rig_count(&o->r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO) - o->info_get);
}

unsigned info_sets(const struct odd *o)
{
    return (unsigned)(rig_count(&o->r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO) - o->info_set);
}

// MADs of the sweeps since the mark; light sweeps are not among them.
unsigned mads(const struct odd *o)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < o->r.sweeps - o->sweeps; i++) {
        assert_non_null(sm_history(o->r.sm, i));
        n += sm_history(o->r.sm, i)->mads;
    }
    return (unsigned)n;
}

bool any_full(const struct odd *o)
{
    bool full = false;
    for (unsigned i = 0; i < o->r.sweeps - o->sweeps; i++)
        full |= sm_history(o->r.sm, i)->full;
    return full;
}

void show(const struct odd *o, const char *what, int64_t ns)
{
    printf("# %s: %u MADs, %u PortInfo read, %u written, %u blocks, %u sweeps, %u events", what, mads(o),
           info_gets(o), info_sets(o), lft_sets(o), o->r.sweeps - o->sweeps, o->r.events - o->events);
    if (ns > 0)
        printf(", %.1f ms", (double)ns / 1e6);
    printf("\n");
}

unsigned findings_of(const struct odd *o, const char *code)
{
    const struct findings *f = sm_findings(o->r.sm);
    unsigned n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += strcmp(f->item[i].code, code) == 0;
    return n;
}

// --- tables, as the simulator has them ---

uint8_t *tables(const struct odd *o)
{
    const struct fabric *f = o->r.plan;
    uint8_t *t = malloc((size_t)f->num_switches * o->lids);
    assert_non_null(t);
    for (uint32_t sw = 0; sw < f->num_switches; sw++)
        for (uint32_t lid = 0; lid < o->lids; lid++)
            if (sim_lft(o->r.sim, fabric_switch(f, sw)->guid, (uint16_t)lid, &t[sw * o->lids + lid]) != 0)
                t[sw * o->lids + lid] = LFT_DROP;
    return t;
}

// Blocks that differ from those at the last call; they are the new ones to compare with.
unsigned changed_blocks(struct odd *o)
{
    uint8_t *now = tables(o);
    unsigned n = 0;
    for (size_t i = 0; i < (size_t)o->r.plan->num_switches * o->lids; i += LFT_BLOCK)
        n += memcmp(now + i, o->before + i, LFT_BLOCK) != 0;
    free(o->before);
    o->before = now;
    return n;
}

// --- who reaches whom ---

struct end {
    uint64_t guid;
    uint16_t lid;
    bool host;
};

static struct end *ends_of(const struct fabric *f, uint32_t *ret_n)
{
    struct end *e = calloc(f->num_ports, sizeof(*e));
    *ret_n = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        bool sw = fabric_node(f, p->node)->type == NODE_SWITCH;
        if (port_is_end(f, p) && p->a.lid != 0 && (sw || port_valid(p->peer)))
            e[(*ret_n)++] = (struct end){p->guid, p->a.lid, !sw};
    }
    return e;
}

// From every host that the manager knows to everything that it knows.
bool whole(const struct odd *o)
{
    uint32_t n;
    struct end *e = ends_of(sm_fabric(o->r.sm), &n);
    uint32_t step = n > 300 ? 37 : 1;
    bool ok = true;
    for (uint32_t i = 0; i < n && ok; i++)
        for (uint32_t k = step > 1 ? i % step : 0; e[i].host && k < n && ok; k += step)
            ok = sim_trace(o->r.sim, e[i].guid, e[k].lid, NULL, 0) >= 0;
    free(e);
    return ok;
}

// Time from the mark until everybody reaches everybody, in steps of a millisecond.
int64_t repaired(struct odd *o, int64_t limit)
{
    for (;;) {
        struct sm_status st;
        sm_get_status(o->r.sm, &st);
        if (!st.sweeping && o->r.sweeps > o->sweeps && rig_last(&o->r)->ok && whole(o))
            return mono_sub(loop_now(o->r.loop), o->at);
        if (mono_sub(loop_now(o->r.loop), o->at) > limit)
            fail_msg("not repaired after %.1f s: %s", (double)limit / 1e9,
                     o->r.log.data ? o->r.log.data : "");
        rig_run(&o->r, MONO_MS);
    }
}

// --- the fabric ---

const struct node *nth(const struct odd *o, enum node_role role, unsigned n)
{
    const struct fabric *f = o->r.plan;
    for (uint32_t i = 0; i < f->num_nodes; i++) // not the manager's own
        if (f->node[i].role == role && f->port[f->sm_port.i].node.i != i && n-- == 0)
            return &f->node[i];
    fail();
    return NULL;
}

const struct port *port_of(const struct odd *o, const struct node *n, unsigned num)
{
    return fabric_port(o->r.plan, fabric_port_at(o->r.plan, n, num));
}

const struct node *peer_of(const struct odd *o, const struct node *n, unsigned num, unsigned *ret_num)
{
    const struct port *p = port_of(o, n, num);
    if (!port_valid(p->peer))
        return NULL;
    if (ret_num != NULL)
        *ret_num = fabric_port(o->r.plan, p->peer)->num;
    return fabric_peer_node(o->r.plan, p);
}

unsigned uplink(const struct odd *o, const struct node *leaf, unsigned nth_one)
{
    for (unsigned num = 1; num <= leaf->num_ports; num++) {
        const struct node *z = peer_of(o, leaf, num, NULL);
        if (z != NULL && z->type == NODE_SWITCH && nth_one-- == 0)
            return num;
    }
    fail();
    return 0;
}

const struct node *own_leaf(const struct odd *o)
{
    return fabric_peer_node(o->r.plan, fabric_port(o->r.plan, o->r.plan->sm_port));
}

uint16_t lid_of(const struct odd *o, uint64_t port_guid)
{
    const struct fabric *f = sm_fabric(o->r.sm);
    port_id p = fabric_by_port_guid(f, port_guid);
    return port_valid(p) ? fabric_port(f, p)->a.lid : 0;
}

const struct node *peer_now(const struct odd *o, uint64_t guid, unsigned num)
{
    const struct fabric *f = sm_fabric(o->r.sm);
    const struct node *n = fabric_by_guid(f, guid);
    return n != NULL ? fabric_peer_node(f, fabric_port(f, fabric_port_at(f, n, num))) : NULL;
}

void all_links(struct odd *o, const struct node *n, bool up)
{
    for (unsigned num = 1; num <= n->num_ports; num++)
        if (peer_of(o, n, num, NULL) != NULL)
            assert_int_equal(sim_link_set(o->r.sim, n->guid, num, up), 0);
}

uint8_t state_of(const struct odd *o, uint64_t guid, unsigned num)
{
    struct sim_port_view v;
    assert_int_equal(sim_port_view(o->r.sim, guid, num, &v), 0);
    return v.linked ? v.state : PORT_DOWN;
}

void bring_up(struct odd *o)
{
    rig_up(&o->r);
    rig_sweeps(&o->r, 1, 300);
    assert_true(rig_last(&o->r)->ok);
    rig_run(&o->r, 3 * MONO_S);
    rig_judge(&o->r, NULL, 0);
    o->lids = (sm_fabric(o->r.sm)->top_lid / LFT_BLOCK + 2u) * LFT_BLOCK;
    o->before = tables(o);
    mark(o);
}

static void up_with(struct odd *o, const char *name, const struct sim_opts *sim,
                    void (*opts)(struct sm_opts *))
{
    memset(o, 0, sizeof(*o));
    rig_init(&o->r, name, sim);
    if (opts != NULL)
        opts(&o->r.opts);
    bring_up(o);
}

void up_on(struct odd *o, const char *name)
{
    up_with(o, name, &odd_wire, NULL);
}

void done(struct odd *o)
{
    free(o->before);
    rig_done(&o->r);
}

// Nothing more comes of it. repeats: switches whose trap may have been lost on the way that failed; each is
// sent again, and read.
void quiet(struct odd *o, int seconds, unsigned repeats)
{
    unsigned sweeps = o->r.sweeps, events = o->r.events;
    uint64_t n = 0;
    rig_run(&o->r, seconds * MONO_S);
    for (unsigned i = 0; i < o->r.sweeps - sweeps; i++) {
        n += sm_history(o->r.sm, i)->mads;
        if (repeats == 0 || strcmp(sm_history(o->r.sm, i)->cause, "trap") != 0)
            fail_msg("one more sweep: %s", sm_history(o->r.sm, i)->cause);
    }
    assert_in_range(n, 0, repeats * 68);
    assert_int_equal(o->r.events, events);
}
