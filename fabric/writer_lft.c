// SPDX-License-Identifier: Apache-2.0
// Forwarding tables as OpenSM dumps them: opensm-lfts.dump, which OpenSM itself reads back (routing engine
// `file`), and opensm.fdbs for ibdmchk. Switches come in OpenSM's order, which compares GUIDs as they lie on
// the wire, last byte first, on a little-endian machine.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/writer.h"
#include "lib/arena.h"
#include "lib/buf.h"
#include "lib/guid.h"

#define HOPS_MAX 64 // a packet that went through more switches is in a loop
#define HOPS_NONE 0xffff

struct sw_order {
    uint64_t key;
    uint32_t sw;
};

static int by_key(const void *a, const void *b)
{
    const struct sw_order *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static struct sw_order *order_switches(const struct fabric *f, struct arena *a)
{
    struct sw_order *o = ARENA_NEW_N(a, f->num_switches + 1, struct sw_order);
    for (uint32_t i = 0; i < f->num_switches; i++)
        o[i] = (struct sw_order){__builtin_bswap64(fabric_switch(f, i)->guid), i};
    qsort(o, f->num_switches, sizeof(*o), by_key);
    return o;
}

static const char *type_name(const struct node *n)
{
    switch ((enum node_type)n->type) {
    case NODE_CA:
        return "Channel Adapter";
    case NODE_SWITCH:
        return "Switch";
    case NODE_ROUTER:
        return "Router";
    }
    return "Unknown";
}

// What each line of a LID ends with is the same in every switch's table: made once.
static size_t *line_ends(const struct fabric *f, uint16_t top, struct arena *a, struct buf *text)
{
    size_t *at = ARENA_NEW_N(a, (size_t)top + 2, size_t);
    for (unsigned lid = 0; lid <= top; lid++) {
        at[lid] = text->len;
        port_id p = fabric_by_lid(f, (uint16_t)lid);
        if (!port_valid(p)) {
            buf_puts(text, " # unknown node and type\n");
            continue;
        }
        const struct node *n = fabric_node(f, fabric_port(f, p)->node);
        buf_printf(text, " # %s portguid " GUID_FMT ": '%s'\n", type_name(n),
                   GUID_ARG(fabric_port(f, p)->guid), fabric_desc(f, n));
    }
    at[top + 1u] = text->len;
    return at;
}

int write_lft_dump(const struct fabric *f, const struct fabric_tables *t, FILE *out)
{
    struct arena *a = arena_new();
    struct buf text = {0};
    struct sw_order *order = order_switches(f, a);
    size_t *end = line_ends(f, t->top_lid, a, &text);

    for (uint32_t i = 0; i < f->num_switches; i++) {
        const struct node *n = fabric_switch(f, order[i].sw);
        fprintf(out, "Unicast lids [0-%u] of switch Lid %u guid " GUID_FMT " ('%s'):\n", t->top_lid,
                f->port[n->first_port].a.lid, GUID_ARG(n->guid), fabric_desc(f, n));
        for (unsigned lid = 1; lid <= t->top_lid; lid++) {
            uint8_t port = tables_port(t, order[i].sw, (uint16_t)lid);
            if (port == LFT_DROP)
                continue;
            fprintf(out, "0x%04x %03u", lid, port);
            fwrite(text.data + end[lid], 1, end[lid + 1] - end[lid], out);
        }
        fprintf(out, "%u lids dumped\n", t->top_lid);
    }
    buf_done(&text);
    arena_free(a);
    return ferror(out) ? -EIO : 0;
}

// ---- .fdbs

struct hops { // from one switch, by dense switch number
    uint16_t *dist;
    uint8_t *first_port; // the first port of a shortest way
    uint32_t *queue;
};

static const struct node *peer_switch(const struct fabric *f, const struct node *n, unsigned num)
{
    const struct port *p = &f->port[n->first_port + num];
    const struct node *peer = port_valid(p->peer) ? fabric_peer_node(f, p) : NULL;
    return peer && peer->type == NODE_SWITCH ? peer : NULL;
}

static void shortest(const struct fabric *f, uint32_t from, struct hops *h)
{
    memset(h->dist, 0xff, f->num_switches * sizeof(*h->dist));
    uint32_t head = 0, tail = 0;
    h->dist[from] = 0;
    h->first_port[from] = 0;
    h->queue[tail++] = from;
    while (head < tail) {
        uint32_t s = h->queue[head++];
        const struct node *n = fabric_switch(f, s);
        for (unsigned num = 1; num <= n->num_ports; num++) {
            const struct node *peer = peer_switch(f, n, num);
            if (!peer || h->dist[peer->sw] != HOPS_NONE)
                continue;
            h->dist[peer->sw] = (uint16_t)(h->dist[s] + 1);
            h->first_port[peer->sw] = s == from ? (uint8_t)num : h->first_port[s];
            h->queue[tail++] = peer->sw;
        }
    }
}

// Links from switch `sw` to the port the LID belongs to, as the tables lead; HOPS_NONE when they do not.
static unsigned follow(const struct fabric *f, const struct fabric_tables *t, uint32_t sw, uint16_t lid,
                       const struct port *to)
{
    const struct node *n = fabric_switch(f, sw);
    for (unsigned hops = 0; hops <= HOPS_MAX; hops++) {
        if (n == fabric_node(f, to->node))
            return tables_port(t, n->sw, lid) == 0 ? hops : HOPS_NONE;
        unsigned num = tables_port(t, n->sw, lid);
        if (num == 0 || num > n->num_ports)
            return HOPS_NONE;
        const struct port *p = &f->port[n->first_port + num];
        if (!port_valid(p->peer))
            return HOPS_NONE;
        const struct port *peer = fabric_port(f, p->peer);
        if (peer == to)
            return hops + 1;
        n = fabric_node(f, peer->node);
        if (n->type != NODE_SWITCH)
            return HOPS_NONE;
    }
    return HOPS_NONE;
}

static unsigned least(const struct fabric *f, const struct hops *h, const struct port *to, unsigned *ret_port)
{
    const struct node *n = fabric_node(f, to->node);
    unsigned more = 0, last = 0;
    if (n->type != NODE_SWITCH) {
        n = port_valid(to->peer) ? fabric_peer_node(f, to) : NULL;
        if (!n || n->type != NODE_SWITCH)
            return HOPS_NONE;
        more = 1;
        last = fabric_port(f, to->peer)->num;
    }
    if (h->dist[n->sw] == HOPS_NONE)
        return HOPS_NONE;
    *ret_port = h->dist[n->sw] ? h->first_port[n->sw] : last;
    return h->dist[n->sw] + more;
}

static void fdb_line(const struct fabric *f, const struct fabric_tables *t, uint32_t sw, uint16_t lid,
                     const struct hops *h, FILE *out)
{
    port_id id = fabric_by_lid(f, lid);
    const struct port *to = port_valid(id) ? fabric_port(f, id) : NULL;
    unsigned hops = to ? follow(f, t, sw, lid, to) : HOPS_NONE, port = 0;

    fprintf(out, "0x%04X : ", lid);
    if (hops == HOPS_NONE) {
        fputs("UNREACHABLE\n", out);
        return;
    }
    fprintf(out, "%03u  : %02u   : ", tables_port(t, sw, lid), hops);
    unsigned best = least(f, h, to, &port);
    if (best < hops)
        fprintf(out, "No %u hop path possible via port %u!\n", best, port);
    else
        fputs("yes\n", out);
}

int write_fdbs(const struct fabric *f, const struct fabric_tables *t, FILE *out)
{
    struct arena *a = arena_new();
    struct sw_order *order = order_switches(f, a);
    struct hops h = {
        .dist = ARENA_NEW_N(a, f->num_switches + 1, uint16_t),
        .first_port = ARENA_NEW_N(a, f->num_switches + 1, uint8_t),
        .queue = ARENA_NEW_N(a, f->num_switches + 1, uint32_t),
    };
    for (uint32_t i = 0; i < f->num_switches; i++) {
        uint32_t sw = order[i].sw;
        shortest(f, sw, &h);
        fprintf(out, "dump_ucast_routes: Switch " GUID_FMT "\nLID    : Port : Hops : Optimal\n",
                GUID_ARG(fabric_switch(f, sw)->guid));
        for (unsigned lid = 1; lid <= t->top_lid; lid++)
            fdb_line(f, t, sw, (uint16_t)lid, &h, out);
    }
    arena_free(a);
    return ferror(out) ? -EIO : 0;
}
