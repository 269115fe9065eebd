// SPDX-License-Identifier: Apache-2.0
// One path along tables, for people.
#include "routing/route.h"

#include <errno.h>

#include "lib/err.h"

static int ends(struct err *e, const struct fabric *f, const struct port *p, uint16_t lid, const char *why)
{
    char name[200];
    fabric_port_name(f, (port_id){(uint32_t)(p - f->port)}, name, sizeof(name));
    return err_set(e, -EHOSTUNREACH, name, "the path to LID %u ends here: %s", lid, why);
}

// The port a packet leaves switch n by, or NULL and *e; in: the port it came by.
static const struct port *out_of(const struct fabric *f, const struct fabric_tables *t, const struct node *n,
                                 const struct port *in, uint16_t lid, struct err *e)
{
    uint8_t out = n->sw < t->num_switches ? tables_port(t, n->sw, lid) : LFT_DROP;
    if (out == LFT_DROP) {
        ends(e, f, in, lid, "the switch has no entry");
        return NULL;
    }
    if (out > n->num_ports) {
        ends(e, f, in, lid, "the entry names a port that does not exist");
        return NULL;
    }
    return &f->port[n->first_port + out];
}

int route_trace(const struct fabric *f, const struct fabric_tables *t, port_id from, uint16_t to_lid,
                struct route_hop ret[ROUTE_MAX_HOPS], uint32_t *ret_n, struct err *e)
{
    uint32_t n = 0;
    const struct port *p = fabric_port(f, from);
    port_id to = fabric_by_lid(f, to_lid);
    *ret_n = 0;
    if (!port_valid(to))
        return err_set(e, -EHOSTUNREACH, NULL, "no port has LID %u", to_lid);
    bool at_switch = fabric_node(f, p->node)->type == NODE_SWITCH;
    ret[n++] = (struct route_hop){.node = p->node.i, .out = at_switch ? 0 : p->num};
    *ret_n = n;
    if (from.i == to.i)
        return 0;
    const struct port *in = p;
    if (!at_switch) {
        if (!port_valid(p->peer))
            return ends(e, f, p, to_lid, "the port has no usable cable");
        in = fabric_port(f, p->peer);
        ret[n++] = (struct route_hop){.node = in->node.i, .in = in->num};
    }
    for (;; ret[n++] = (struct route_hop){.node = in->node.i, .in = in->num}) {
        *ret_n = n;
        const struct node *node = fabric_node(f, in->node);
        if (node->type != NODE_SWITCH)
            return in - f->port == to.i ? 0 : ends(e, f, in, to_lid, "it is another node");
        const struct port *out = out_of(f, t, node, in, to_lid, e);
        if (!out)
            return -EHOSTUNREACH;
        if (out->num == 0)
            return out - f->port == to.i ? 0 : ends(e, f, out, to_lid, "it is another switch");
        ret[n - 1].out = out->num;
        if (!port_valid(out->peer))
            return ends(e, f, out, to_lid, "the port has no usable cable");
        if (n == ROUTE_MAX_HOPS)
            return ends(e, f, out, to_lid, "more than 64 nodes passed, it seems a loop");
        in = fabric_port(f, out->peer);
    }
}
