// SPDX-License-Identifier: Apache-2.0
// Devices: finding them, the directed routes to them, and requests.
//
// A route is the shortest over the links that are believed alive (sm_reach()); it is made anew before the
// first request after a change, since a directed route that crosses a dead link times out although the node
// lives.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/xalloc.h"
#include "sm/sm_priv.h"

struct sm_dev *sm_dev_find(const struct sm *sm, uint64_t guid)
{
    uint32_t i;
    return u64map_get(&sm->by_guid, guid, &i) ? sm->dev[i] : NULL;
}

void sm_dev_ports_free(struct sm_dev *d)
{
    for (unsigned i = 0; i <= d->ni.num_ports; i++)
        free(d->port[i].pkey0);
    free(d->port);
    sm_lanes_free(d);
}

void sm_dev_free(struct sm_dev *d)
{
    sm_dev_ports_free(d);
    sm_adaptive_dev_free(d);
    free(d);
}

bool sm_port_up(const struct sm_port *p)
{
    return p->known && (p->info[32] & 0x0f) > MAD_PORT_DOWN; // PortState: bits 260-263
}

bool sm_path(const struct sm *sm, const struct sm_dev *d, unsigned num, struct dr_path *ret)
{
    bool own = d->index == sm->own_dev && (num == 0 || num == sm->own.num);
    if (dev_is_switch(d) || own) {
        *ret = d->path;
        return true;
    }
    if (num < 1 || num > d->ni.num_ports) { // any port will do
        for (num = 1; num <= d->ni.num_ports && d->port[num].peer == DEV_NONE; num++)
            ;
        if (num > d->ni.num_ports)
            return false;
    }
    const struct sm_port *p = &d->port[num];
    if (p->peer == DEV_NONE)
        return false;
    *ret = sm->dev[p->peer]->path;
    if (ret->hops >= MAD_MAX_HOPS)
        return false;
    ret->port[++ret->hops] = p->peer_num;
    return true;
}

uint64_t sm_window_key(uint64_t guid, unsigned what)
{
    return hash_mix64(hash_mix64(guid) ^ what);
}

uint64_t sm_m_key(const struct sm_dev *d, unsigned num)
{
    return d->port[dev_is_switch(d) || num > d->ni.num_ports ? 0 : num].m_key;
}

const char *sm_port_text(const struct sm_dev *d, unsigned num, char *buf, size_t size)
{
    if (d->desc[0] != 0)
        snprintf(buf, size, "%s[%u] (" GUID_FMT ")", d->desc, num, GUID_ARG(d->guid));
    else
        snprintf(buf, size, GUID_FMT "[%u]", GUID_ARG(d->guid), num);
    return buf;
}

void sm_request(struct sm *sm, const struct sm_dev *d, unsigned num, uint8_t method, uint16_t attr_id,
                uint32_t attr_mod, const void *data, mad_done_fn *done, void (*late)(void *, uint64_t),
                uint64_t user)
{
    struct dr_path path;
    if (!sm_path(sm, d, num, &path))
        path.hops = 0; // cannot be: it was reached in this sweep
    mad_engine_send(sm->engine, &(struct mad_request){
                                    .mgmt_class = MAD_CLASS_SM_DR,
                                    .m_key = sm_m_key(d, num),
                                    .method = method,
                                    .attr_id = attr_id,
                                    .attr_mod = attr_mod,
                                    .path = &path,
                                    .data = data,
                                    .data_len = data ? MAD_SMP_DATA_SIZE : 0,
                                    .prio = MAD_PRIO_SMP,
                                    .device = d->guid,
                                    .retries = -1,
                                    .done = done,
                                    .first_timeout = late,
                                    .arg = sm,
                                    .user = user,
                                    .gen = sm->sweeping ? 0 : SM_LIGHT_GEN,
                                });
}

void sm_heard(struct sm *sm, struct sm_dev *d, const struct mad_result *r)
{
    if (r->status == 0) {
        d->heard_in = (uint32_t)sm->sweep.id;
        d->silent = 0;
    } else if (r->status == -ETIMEDOUT && d->silent < SM_SILENT && ++d->silent == SM_SILENT) {
        mad_engine_cancel_device(sm->engine, d->guid);
    }
}

// --- directed routes ---

static bool end_dead(const struct sm_port *p)
{
    return p->known && (p->info[32] & 0x0f) == MAD_PORT_DOWN;
}

// Whoever answered by the way it has now keeps that: it is tried, the shortest may not be.
static bool path_tried(const struct sm_dev *d)
{
    return d->reading && d->ask_answered;
}

// What is not here any more has no links, and is asked nothing more. Where the far end is up all the same,
// somebody is there: the light sweep asks.
static void cut_off(struct sm *sm, struct sm_dev *d)
{
    for (unsigned i = 1; i <= d->ni.num_ports; i++) {
        struct sm_port *p = &d->port[i];
        if (p->peer == DEV_NONE || sm->dev[p->peer]->port[p->peer_num].peer != d->index)
            continue;
        struct sm_port *z = &sm->dev[p->peer]->port[p->peer_num];
        if (sm->dev[p->peer]->here && sm_port_up(z))
            z->excluded = PORT_EXCLUDED_PEER_SILENT;
        sm_unlink(sm, d, i);
    }
    sm_partial_forget(sm, d);
}

bool sm_reach(struct sm *sm, bool drop)
{
    uint32_t *queue = xcalloc(sm->num_dev + 1, sizeof(*queue)), n = 0;
    bool *seen = xcalloc(sm->num_dev + 1, 1), gone = false;

    sm->disc.routes_stale = false;
    if (sm->own_dev != DEV_NONE) {
        queue[n++] = sm->own_dev;
        seen[sm->own_dev] = true;
        sm->dev[sm->own_dev]->path.hops = 0;
        sm->dev[sm->own_dev]->level = 0;
    }
    for (uint32_t head = 0; head < n; head++) {
        struct sm_dev *d = sm->dev[queue[head]];
        if ((!dev_is_switch(d) && head > 0) || (d->suspect && !drop))
            continue; // nothing passes an end node, or whoever seems to be dead
        for (unsigned i = dev_is_switch(d) ? 1 : sm->own.num; i <= d->ni.num_ports; i++) {
            const struct sm_port *p = &d->port[i];
            struct sm_dev *z = p->peer != DEV_NONE ? sm->dev[p->peer] : NULL;
            if (z == NULL || seen[z->index] || !z->here || end_dead(p) || end_dead(&z->port[p->peer_num]) ||
                d->level >= MAD_MAX_HOPS)
                continue;
            seen[z->index] = true;
            queue[n++] = z->index;
            z->parent = d->index;
            z->parent_port = (uint8_t)i;
            z->level = (uint16_t)(d->level + 1);
            if (path_tried(z) && !drop)
                continue;
            z->path = d->path;
            z->path.port[++z->path.hops] = (uint8_t)i;
        }
    }
    for (uint32_t i = 0; i < sm->num_dev && drop; i++)
        if (sm->dev[i]->here && !seen[i]) {
            sm->dev[i]->here = false;
            gone = seen[i] = true;
        }
    for (uint32_t i = 0; i < sm->num_dev && gone; i++)
        if (!sm->dev[i]->here && seen[i])
            cut_off(sm, sm->dev[i]);
    free(queue);
    free(seen);
    return gone;
}

// Whether the way to n leads over d.
static bool over(const struct sm *sm, const struct sm_dev *n, const struct sm_dev *d)
{
    for (int hops = 0; n->index != sm->own_dev && hops <= MAD_MAX_HOPS; hops++) {
        if (n == d)
            return true;
        n = sm->dev[n->parent];
    }
    return n == d;
}

static unsigned hops_shared(const struct dr_path *a, const struct dr_path *b)
{
    unsigned n = 0;
    while (n < a->hops && n < b->hops && a->port[n + 1] == b->port[n + 1])
        n++;
    return n;
}

bool sm_other_path(const struct sm *sm, const struct sm_dev *d, struct dr_path *ret)
{
    const struct sm_dev *best = NULL;
    unsigned num = 0, least = 0;

    for (unsigned i = 1; i <= d->ni.num_ports; i++) {
        const struct sm_port *p = &d->port[i];
        const struct sm_dev *n = p->peer != DEV_NONE ? sm->dev[p->peer] : NULL;
        if (n == NULL || !dev_is_switch(n) || !n->here || n->suspect || end_dead(p) ||
            end_dead(&n->port[p->peer_num]) || n->path.hops >= MAD_MAX_HOPS || over(sm, n, d))
            continue;
        unsigned shared = hops_shared(&n->path, &d->path);
        if (shared == n->path.hops && d->path.hops == shared + 1 && d->path.port[shared + 1] == p->peer_num)
            continue; // the very same
        if (best != NULL && (least < shared || (least == shared && best->path.hops <= n->path.hops)))
            continue;
        best = n;
        num = p->peer_num;
        least = shared;
    }
    if (best == NULL)
        return false;
    *ret = best->path;
    ret->port[++ret->hops] = (uint8_t)num;
    return true;
}
