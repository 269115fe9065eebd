// SPDX-License-Identifier: Apache-2.0
// What a sweep makes of the blueprint, on the worker: the next one from the last one, from what was seen and
// from what was asked for, and the ideal tables for it.
//
//     state       what is seen and not in the blueprint
//     learning    becomes part of it (MERGE_LEARN)
//     accepted    new hosts on leaves that it has do so too, if nobody else's entry in the ideal tables is
//                 another one for it (MERGE_HOSTS); nothing else does (MERGE_FIXED): it is routed, and told
//                 as a finding
//
// The ideal tables are a function of the blueprint, but for those that were found on the switches: these grow
// by route_repair_from().
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "sm/sm_priv.h"

enum sm_blueprint_state sm_blueprint_state_after(enum sm_blueprint_op op, enum sm_blueprint_state now)
{
    switch (op) {
    case SM_BLUEPRINT_NONE:
    case SM_BLUEPRINT_STRIKE:
        break;
    case SM_BLUEPRINT_LEARN:
        return SM_BLUEPRINT_LEARNING;
    case SM_BLUEPRINT_ACCEPT:
    case SM_BLUEPRINT_SET:
    case SM_BLUEPRINT_REROUTE:
        return SM_BLUEPRINT_ACCEPTED;
    }
    return now;
}

const struct fabric *sm_blueprint_after(enum sm_blueprint_op op, enum sm_blueprint_state state,
                                        const struct fabric *given, const struct fabric *known,
                                        const struct fabric *live)
{
    switch (op) {
    case SM_BLUEPRINT_REROUTE:
        return fabric_merge_by(MERGE_LIVE, known, live);
    case SM_BLUEPRINT_ACCEPT:
        return fabric_merge(known, live);
    case SM_BLUEPRINT_SET:
    case SM_BLUEPRINT_STRIKE:
        known = given;
        break;
    case SM_BLUEPRINT_NONE:
    case SM_BLUEPRINT_LEARN:
        break;
    }
    bool learning = known == NULL || sm_blueprint_state_after(op, state) == SM_BLUEPRINT_LEARNING;
    return fabric_merge_by(learning ? MERGE_LEARN : MERGE_HOSTS, known, live);
}

static int ideal_for(const struct sm_learning *l, const struct fabric *blueprint, const struct route_opts *o,
                     struct sm_ideal **ret, struct err *e)
{
    struct route_result r = {0};
    int rc;

    if (l->ideal != NULL && !l->anew && blueprint == l->ideal->blueprint) {
        *ret = sm_ideal_ref(l->ideal);
        return 0;
    }
    if (l->ideal != NULL && !l->anew && l->ideal->route.engine == ROUTE_FILE && o->engine != ROUTE_FILE)
        rc = route_repair_from(l->ideal->base, blueprint, o->par, &r, e); // found ones, grown
    else
        rc = route_compute(blueprint, o, &r, e);
    if (rc != 0)
        return rc;
    *ret = sm_ideal_new(blueprint, blueprint, &r, o, e);
    tables_unref(r.tables);
    return *ret == NULL ? e->code : 0;
}

// Per host number of b: whether it has an adapter that a has not.
static bool *new_hosts(const struct fabric *a, const struct fabric *b)
{
    bool *is_new = xcalloc(b->num_hosts + 1, sizeof(bool));
    for (uint32_t i = 0; i < b->num_nodes; i++)
        if (b->node[i].host < b->num_hosts && fabric_by_guid(a, b->node[i].guid) == NULL)
            is_new[b->node[i].host] = true;
    return is_new;
}

// Whether a LID is the same end node's in both, and that is of another host than those that are new. Routes
// to switches themselves carry management only, and may turn elsewhere.
static bool is_of_others(const struct fabric *a, const struct fabric *b, const bool *is_new, uint16_t lid)
{
    if (lid > a->top_lid || lid > b->top_lid || a->lid_port[lid] == ID_NONE || b->lid_port[lid] == ID_NONE)
        return false;
    const struct port *p = &a->port[a->lid_port[lid]], *q = &b->port[b->lid_port[lid]];
    const struct node *n = fabric_node(b, q->node);
    return p->guid == q->guid && n->type != NODE_SWITCH && !(n->host < b->num_hosts && is_new[n->host]);
}

static bool same_rows(const struct sm_ideal *a, uint32_t sw, const struct sm_ideal *b, uint32_t other,
                      const bool *is_new)
{
    const struct fabric_tables *t = a->route.tables, *u = b->route.tables;
    const uint8_t *x = tables_row(t, sw), *y = tables_row(u, other);
    uint32_t lids = t->lids < u->lids ? t->lids : u->lids;
    for (uint32_t block = 0; block < lids; block += LFT_BLOCK) {
        if (memcmp(x + block, y + block, LFT_BLOCK) == 0)
            continue;
        for (uint32_t lid = block; lid < block + LFT_BLOCK; lid++)
            if (x[lid] != y[lid] && is_of_others(a->made_for, b->made_for, is_new, (uint16_t)lid))
                return false;
    }
    return true;
}

// Whether b's tables say of all others than the new hosts what a's do, on all switches of a.
static bool others_stay(const struct sm_ideal *a, const struct sm_ideal *b)
{
    bool same = lanes_equal(a->route.tables->lanes, b->route.tables->lanes);
    bool *is_new = new_hosts(a->made_for, b->made_for);
    for (uint32_t sw = 0; sw < a->made_for->num_switches && same; sw++) {
        const struct node *n = fabric_by_guid(b->made_for, fabric_switch(a->made_for, sw)->guid);
        same = n != NULL && n->type == NODE_SWITCH && same_rows(a, sw, b, n->sw, is_new);
    }
    free(is_new);
    return same;
}

// New hosts are part of the next blueprint as long as that moves nobody else; else it is `fixed`, without.
static int ideal_with_hosts(struct sm_learning *l, const struct fabric *fixed, const struct fabric *hosts,
                            const struct route_opts *o, struct err *e)
{
    struct sm_ideal *without = NULL, *with = NULL;
    uint64_t hash = sm_graph_hash(hosts);
    int rc = ideal_for(l, fixed, o, &without, e);

    if (rc != 0 || hash == l->refused) {
        l->next = without;
        return rc;
    }
    rc = ideal_for(l, hosts, o, &with, e);
    if (rc == 0 && others_stay(without, with)) {
        l->next = with;
        sm_ideal_unref(without);
        return 0;
    }
    l->refused = hash;
    l->next = without;
    sm_ideal_unref(with);
    return 0;
}

int sm_learn(struct sm_learning *l, const struct fabric *live, const struct route_opts *o, struct err *e)
{
    const struct fabric *b = sm_blueprint_after(l->ask.op, l->state, l->ask.given, l->known, live);
    enum sm_blueprint_state state = sm_blueprint_state_after(l->ask.op, l->state);
    const struct fabric *fixed = NULL;
    int rc;

    if (state == SM_BLUEPRINT_ACCEPTED && l->ask.op == SM_BLUEPRINT_NONE && l->known != NULL && b != l->known)
        fixed = fabric_merge_by(MERGE_FIXED, l->known, live);
    if (fixed != NULL && fixed->num_links < b->num_links)
        rc = ideal_with_hosts(l, fixed, b, o, e);
    else
        rc = ideal_for(l, b, o, &l->next, e);
    if (rc == 0)
        l->more = blueprint_compare(l->next->blueprint, live, UINT32_MAX);
    if (rc == 0 && l->ask.op != SM_BLUEPRINT_NONE && l->known != NULL)
        l->less = blueprint_compare(l->known, l->next->blueprint, 0);
    if (rc == 0 && l->ask.op == SM_BLUEPRINT_REROUTE && l->known != NULL)
        blueprint_silent_text(l->known, live, l->kept, sizeof(l->kept));
    fabric_unref(fixed);
    fabric_unref(b);
    return rc;
}

void sm_learning_done(struct sm_learning *l)
{
    fabric_unref(l->known);
    sm_ideal_unref(l->ideal);
    fabric_unref(l->ask.given);
    sm_ideal_unref(l->next);
    blueprint_compare_free(l->more);
    blueprint_compare_free(l->less);
}
