// SPDX-License-Identifier: Apache-2.0
// Engine sssp: shortest paths on any topology, spread over what is equally short, and virtual lanes such that
// each lane's channel dependencies have no cycle. In reading order:
//   sssp_graph.c   the switch graph by GUIDs; the dimensions of grids, as colours of channels
//   sssp_tree.c    shortest paths to one switch, and the lanes that they fit
//   sssp_design.c  what lanes are made for: orders of channels, from roots
//   sssp_fill.c    which of the fitting cables each destination takes
//   sssp_lanes.c   a lane for each pair of switches
//   sssp_layers.c  lanes by the dependencies that are in them
//   sssp_reserve.c room for multicast in its lane
//   sssp_mend.c    lanes for repaired tables
//   sssp_rehome.c  other ways for entries that cannot stay, such that lanes can
//
// Lanes come first and paths are chosen to fit them, not the other way round as in DFSSSP (Domke, Hoefler,
// Nagel, "Deadlock-Free Oblivious Routing for Arbitrary Topologies", 2011): a lane is an order of channels,
// and a path fits it when its channels rise in that order, so that whatever goes by a lane makes no cycle.
// Whether a path fits is known from its first channel and what its second fits: a byte per switch says it for
// eight lanes at once. What fits no lane (few pairs, if any) gets one afterwards by search.
//
// A pair of switches has one lane for all its LIDs and both directions, as packets are answered on the
// service level that they came by.
//
// Departure from DFSSSP: no weights that add up from destination to destination, by which one lost cable
// changes what all later ones see. See sssp_fill.c.
//
// Limit: shortest paths of large irregular or damaged grids may need more than eight lanes; then there is an
// error that says how many, and no tables.
#include "routing/sssp_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/err.h"

#define ATTEMPTS 4     // with other roots, where lanes do not suffice by a few
#define NEAR 3
#define SWITCHES_MAX 16384 // a byte and a half for each pair

static const uint8_t lanes_of_code[] = {0, 1, 2, 4, 8, 15};

// The least that any cable between switches has; *ret_port: who has it. LANES_MAX when nobody says.
static uint32_t lanes_there(const struct fabric *f, const struct port **ret_port)
{
    uint32_t least = LANES_MAX, sw;
    *ret_port = NULL;
    for (uint32_t s = 0; s < f->num_switches; s++) {
        const struct node *n = fabric_switch(f, s);
        for (unsigned num = 1; num <= n->num_ports; num++) {
            const struct port *p = &f->port[n->first_port + num];
            if (p->a.vl_cap == 0 || p->a.vl_cap >= sizeof(lanes_of_code) || !rswitch_peer(f, p, &sw))
                continue;
            if (lanes_of_code[p->a.vl_cap] < least) {
                least = lanes_of_code[p->a.vl_cap];
                *ret_port = p;
            }
        }
    }
    return least;
}

uint32_t rsssp_lanes(const struct fabric *f, const struct route_opts *opts)
{
    const struct port *least;
    uint32_t max = lanes_there(f, &least);
    return opts->lanes != 0 && opts->lanes < max ? opts->lanes : max;
}

static int too_few(const struct fabric *f, uint32_t needed, uint32_t max, const struct port *least,
                   struct err *e)
{
    char name[160] = "";
    if (least)
        fabric_port_name(f, (port_id){(uint32_t)(least - f->port)}, name, sizeof(name));
    bool more = needed > SSSP_COUNTED_MAX;
    return err_set(
        e, -ENOSPC, least ? name : NULL,
        "sssp would need %s%u virtual lanes here, and may use %u%s; another engine (updn) needs one",
        more ? "more than " : "", more ? SSSP_COUNTED_MAX : needed, max,
        least ? ", as this port has no more" : "");
}

int rsssp_compute(const struct rgraph *g, const struct rorder *o, const struct route_opts *opts,
                  struct arena *a, struct fabric_tables *t, char *why, size_t size, struct err *e)
{
    struct sgraph x;
    const struct port *least;
    uint32_t max = lanes_there(g->f, &least), needed = 0;
    if (opts->lanes > LANES_MAX)
        return err_set(e, -EINVAL, NULL, "%u virtual lanes: at most %u can be used", opts->lanes, LANES_MAX);
    if (g->n > SWITCHES_MAX)
        return err_set(e, -E2BIG, NULL, "sssp takes at most %u switches, there are %u", SWITCHES_MAX, g->n);
    if (opts->lanes != 0 && opts->lanes <= max) {
        max = opts->lanes;
        least = NULL;
    }
    sgraph_build(&x, g, a);
    scolours_find(&x, o, a);
    struct fabric_lanes *l = NULL;
    uint8_t *pair = arena_array(a, (size_t)g->n + 1, (size_t)g->n + 1);
    for (uint32_t fewest = UINT32_MAX; x.attempt < ATTEMPTS && !l; x.attempt++) {
        struct arena *scratch = arena_new();
        sdesign(&x, o, opts->num_roots > 0, max, scratch);
        sfill(&x, t, pair, scratch);
        l = sassign(&x, t, pair, max, scratch, &needed);
        arena_free(scratch);
        fewest = needed < fewest ? needed : fewest;
        needed = fewest;
        if (needed > max + NEAR)
            break;
    }
    if (!l)
        return too_few(g->f, needed, max, least, e);
    tables_set_lanes(t, l);
    char parts[60] = "";
    if (g->num_comps > 1)
        snprintf(parts, sizeof(parts), "; %u parts routed each for itself", g->num_comps);
    snprintf(why, size, "asked for: shortest paths on %u virtual lane%s, none of which has a credit loop%s%s",
             needed, needed == 1 ? "" : "s", x.coloured ? "; in order of dimensions, as in a grid" : "",
             parts);
    return 0;
}
