// SPDX-License-Identifier: Apache-2.0
// Drains: what a route job makes of the list, on the worker, and what of the fabric uses what is drained.
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/xalloc.h"
#include "sm/drain_priv.h"
#include "sm/sm_priv.h"

static struct sm_drain_set *copy(const struct sm_drains *x)
{
    struct sm_drain_set *s = xcalloc(1, sizeof(*s) + (x->n + 1u) * sizeof(s->use[0]));
    s->version = x->version;
    for (unsigned i = 0; i < x->n; i++)
        s->use[s->n++].at = x->item[i].at;
    return s;
}

struct sm_drain_set *sm_drains_take(const struct sm *sm)
{
    return sm->drains->version > 0 ? copy(sm->drains) : NULL;
}

struct sm_drain_set *sm_drain_set_copy(const struct sm_drain_set *s)
{
    struct sm_drain_set *c = NULL;
    if (s != NULL && s->n > 0) {
        c = xcalloc(1, sizeof(*c) + s->n * sizeof(c->use[0]));
        memcpy(c, s, sizeof(*c) + s->n * sizeof(c->use[0]));
    }
    return c;
}

struct sm_drain_set *sm_drains_take_in_force(const struct sm *sm)
{
    return sm_drain_set_copy(sm->drains->now);
}

size_t sm_drain_cables(const struct fabric *f, const struct sm_drain_place *at, port_id ret[256])
{
    const struct node *n = fabric_by_guid(f, at->guid);
    size_t k = 0;
    if (n == NULL || n->type != NODE_SWITCH)
        return 0;
    for (unsigned num = 1; num <= n->num_ports; num++)
        if ((at->port == 0 || at->port == num) && sm_drain_far_of(f, &f->port[n->first_port + num]) != NULL)
            ret[k++] = (port_id){n->first_port + num};
    return k;
}

// Cables that are drained by themselves first: they may be pulled any moment, those of a drained switch still
// lead to it.
struct route_avoid *sm_drains_avoid(const struct sm_drain_set *s, const struct fabric *f)
{
    if (s == NULL || s->n == 0)
        return NULL;
    port_id *port = xcalloc((size_t)s->n * 256 + 1, sizeof(*port));
    size_t n = 0, first = 0;
    for (int whole = 0; whole < 2; whole++) {
        for (unsigned i = 0; i < s->n; i++)
            if ((s->use[i].at.port == 0) == whole)
                n += sm_drain_cables(f, &s->use[i].at, port + n);
        first = whole ? first : n;
    }
    struct route_avoid *x = route_avoid_graded(f, port, n, first);
    free(port);
    return x;
}

int sm_drains_repair(const struct sm_drain_set *set, const struct route_base *b, const struct fabric *f,
                     struct par *par, struct route_result *ret, struct err *e)
{
    if (set == NULL || set->n == 0)
        return route_repair_from(b, f, par, ret, e);
    struct route_avoid *x = sm_drains_avoid(set, f);
    int rc = route_repair_avoiding(b, f, x, par, ret, e);
    route_avoid_free(x);
    return rc;
}

uint32_t sm_drain_strike_own(const struct fabric *f, const struct sm_drain_place *at, size_t n, port_id *end,
                             uint32_t *ends)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *ends; i++) {
        const struct port *p = fabric_port(f, end[i]);
        const struct node *z = fabric_peer_node(f, p);
        bool own = false;
        for (size_t k = 0; k < n && z != NULL && fabric_node(f, p->node)->role == ROLE_AGGREGATION; k++)
            own |= at[k].port == 0 && at[k].guid == z->guid;
        if (!own)
            end[kept++] = end[i];
    }
    uint32_t own = *ends - kept;
    *ends = kept;
    return own;
}

// Switches that are joined by other cables than these, from the first.
static uint32_t flood(const struct fabric *f, const bool *shut, uint32_t first, uint32_t *part,
                      uint32_t *queue)
{
    uint32_t n = 0, ends = 0;
    part[first] = first;
    queue[n++] = first;
    for (uint32_t i = 0; i < n; i++) {
        const struct node *nd = fabric_switch(f, queue[i]);
        for (unsigned num = 1; num <= nd->num_ports; num++) {
            const struct port *p = &f->port[nd->first_port + num];
            const struct node *z = fabric_peer_node(f, p);
            ends += z != NULL && z->type != NODE_SWITCH && z->role != ROLE_AGGREGATION;
            if (sm_drain_far_of(f, p) == NULL || shut[nd->first_port + num] || part[z->sw] != UINT32_MAX)
                continue;
            part[z->sw] = first;
            queue[n++] = z->sw;
        }
    }
    return ends;
}

// Ends outside of the part that most of them are in when these cables are gone.
static uint32_t count_hang(const struct sm_drain_set *s, const struct fabric *f)
{
    bool *shut = xcalloc(f->num_ports + 1u, sizeof(*shut));
    uint32_t *part = xcalloc(2 * (f->num_switches + 1u), sizeof(*part)), all = 0, most = 0;
    port_id port[256];
    for (unsigned i = 0; i < s->n; i++) {
        size_t n = sm_drain_cables(f, &s->use[i].at, port);
        for (size_t k = 0; k < n; k++)
            shut[port[k].i] = shut[f->port[port[k].i].peer.i] = true;
    }
    memset(part, 0xff, f->num_switches * sizeof(*part));
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        if (part[sw] != UINT32_MAX)
            continue;
        uint32_t ends = flood(f, shut, sw, part, part + f->num_switches);
        all += ends;
        most = ends > most ? ends : most;
    }
    free(shut);
    free(part);
    return all - most;
}

void sm_drains_count(struct sm_drain_set *set, const struct fabric *f, const struct fabric_tables *t)
{
    port_id port[256];
    struct route_users u;
    for (unsigned i = 0; set != NULL && i < set->n; i++) {
        struct sm_drain_use *x = &set->use[i];
        x->cables = (uint32_t)sm_drain_cables(f, &x->at, port);
        port_id *end = route_users_list(f, t, port, x->cables, &u);
        x->own = sm_drain_strike_own(f, &x->at, 1, end, &u.ends);
        free(end);
        x->ends = u.ends;
        x->switches = u.switches;
        if (x->at.port == 0 && x->switches > 0) // its own, which is reached over them
            x->switches--;
    }
    if (set != NULL && set->n > 0)
        set->hang = count_hang(set, f);
}

uint32_t sm_drains_hang(const struct sm *sm)
{
    return sm->drains->n > 0 ? sm->drains->hang : 0;
}

size_t sm_drain_ends(const struct sm *sm, const struct sm_drain *d, uint32_t *end, size_t max)
{
    port_id port[256];
    struct route_users u;
    if (sm->fabric == NULL || sm->tables == NULL || sm->tables->num_switches != sm->fabric->num_switches)
        return 0;
    size_t n = sm_drain_cables(sm->fabric, &d->at, port);
    port_id *list = route_users_list(sm->fabric, sm->tables, port, n, &u);
    sm_drain_strike_own(sm->fabric, &d->at, 1, list, &u.ends);
    for (size_t i = 0; i < u.ends && i < max; i++)
        end[i] = list[i].i;
    free(list);
    return u.ends;
}

const struct fabric *sm_drains_fabric(const struct sm_drain_set *set, const struct fabric *f)
{
    if (set == NULL || set->n == 0)
        return fabric_ref(f);
    struct route_avoid *x = sm_drains_avoid(set, f);
    const struct fabric *open = route_avoid_open(x);
    route_avoid_free(x);
    return open;
}

uint64_t sm_drains_hash(const struct sm *sm)
{
    uint64_t h = 0;
    const struct sm_drain_set *s = sm->drains->now;
    for (unsigned i = 0; s != NULL && i < s->n; i++)
        h += hash_mix64(s->use[i].at.guid ^ (uint64_t)s->use[i].at.port << 56);
    return h;
}
