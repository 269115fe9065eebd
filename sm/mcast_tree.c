// SPDX-License-Identifier: Apache-2.0
// The multicast tree: when a worker makes one (routing/mcast.h), and when the one that is there will do.
//
// While nobody is a member of any group there is none, and no work; the first join makes it, and waits for it
// as for any change of the tables. With members, each generation is compared with what the tree was made
// from: the cables between switches and which are drained, the switches that members can be on, and the
// dependencies between buffers that the unicast tables make, as their proof left them behind. Only when these
// differ is there a job; it keeps the tree as far as it lives, and where that is whole, no more than its
// proof is made again.
//
// Unicast routes go first: while a sweep may still need the workers for its routes, no job begins, for
// MCAST_YIELD at most.
//
// At any time there is one job at most, and one result at most that waits for the running round to end. A
// tree that does not hold (mcast_verify()) is told and dropped; another one is tried when there would be
// another.
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/log.h"
#include "lib/xalloc.h"
#include "sm/drain_priv.h"
#include "sm/mcast_priv.h"

#define MCAST_YIELD (200 * MONO_MS)
#define ROOTS_BLOB "mcast-roots"

// --- what it depends on ---

// Cables between switches and which are drained, and which switches members can be on.
static uint64_t topology(const struct sm *sm, const bool *needed)
{
    const struct fabric *f = sm->fabric;
    uint64_t h = f->num_switches ^ sm_drains_hash(sm);
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        const struct node *n = fabric_switch(f, sw);
        h = hash_mix64(h ^ n->guid ^ (uint64_t)needed[sw] << 63);
        for (unsigned i = 1; i <= n->num_ports; i++) {
            const struct port *p = &f->port[n->first_port + i];
            const struct node *z = fabric_peer_node(f, p);
            if (z != NULL && z->type == NODE_SWITCH && p->excluded == PORT_INCLUDED)
                h = hash_mix64(h ^ z->guid ^ (uint64_t)i << 56 ^ (uint64_t)f->port[p->peer.i].num << 48);
        }
    }
    return h;
}

static bool *find_needed(const struct sm *sm, const struct fabric *f)
{
    bool *needed = xcalloc(f->num_switches + 1, sizeof(*needed));
    uint32_t sw;
    uint8_t num;

    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct node *n = &f->node[f->port[i].node.i];
        if (n->type != NODE_SWITCH && n->role != ROLE_AGGREGATION && mcast_place(f, (port_id){i}, &sw, &num))
            needed[sw] = true;
    }
    for (uint32_t i = 0; i < sm->sa->num_groups; i++)
        for (uint32_t k = 0; k < sm->sa->group[i]->num; k++) {
            port_id id = fabric_by_port_guid(f, sm->sa->group[i]->member[k].port_guid);
            if (port_valid(id) && mcast_place(f, id, &sw, &num))
                needed[sw] = true;
        }
    return needed;
}

static void basis_done(struct mcast_basis *b)
{
    tables_unref((struct fabric_tables *)b->tables);
    route_proof_state_free(b->proof);
    *b = (struct mcast_basis){0};
}

// Whether a tree for what is in force now would be the one of that basis. proved: that one is.
static bool same_basis(const struct sm *sm, const struct mcast_basis *b, bool proved)
{
    bool same = b->tables == sm->tables || (proved && b->proof != NULL && sm->proof_state != NULL &&
                                            route_proof_state_within(sm->proof_state, b->proof));
    if (!same)
        return false;
    bool *needed = find_needed(sm, sm->fabric);
    same = b->topology == topology(sm, needed);
    free(needed);
    return same;
}

// --- the job ---

static void job_free(struct mcast_job *j)
{
    if (j == NULL)
        return;
    pool_cancel(&j->job);
    fabric_unref(j->fabric);
    fabric_unref(j->last_fabric);
    basis_done(&j->basis);
    mcast_tree_free(j->tree);
    free(j->drains);
    free(j->needed);
    free(j);
}

static void work(void *arg, struct par *par)
{
    struct mcast_job *j = arg;
    const struct fabric *open = sm_drains_fabric(j->drains, j->fabric); // the tree keeps off, too
    (void)par;
    j->tree = mcast_tree_make(open, j->basis.tables, &j->opts);
    mcast_verify(open, j->basis.tables, j->tree, j->needed, j->basis.proof, &j->verdict);
    fabric_unref(open);
}

// Whether the tree may be used: one that is known to wait in a circle may, where there is no better one.
static bool holds(const struct mcast_job *j)
{
    const struct mcast_tree *t = j->tree;
    return j->verdict.ok || (j->verdict.cycle && j->verdict.missing == 0 && (!t->proved || t->unicast_cycle));
}

static void refuse(struct sm_mcast *m, struct mcast_job *j)
{
    basis_done(&m->refused);
    m->refused = j->basis;
    j->basis = (struct mcast_basis){0};
    sm_event(j->sm, "multicast-refused", "error", "",
             "the multicast tree that was made does not hold, and nothing of it is written: %s; the switches "
             "keep what they have, and new members may not be reached; a fault of weft: report it",
             j->verdict.counter_example);
    job_free(j);
}

static void plan_anew(struct sm_mcast *m, bool take);
static void adopt(struct sm_mcast *m, struct mcast_job *j);

static void done(void *arg)
{
    struct mcast_job *j = arg;
    struct sm_mcast *m = j->sm->mcast;

    m->job = NULL;
    if (!holds(j)) {
        refuse(m, j);
        if (m->again) {
            m->again = false;
            plan_anew(m, true);
        }
        return;
    }
    if (m->again && !same_basis(m->sm, &j->basis, j->tree->proved)) {
        job_free(j);
        m->again = false;
        plan_anew(m, true);
    } else if (m->phase != MCAST_IDLE) {
        m->ready = j;
    } else {
        adopt(m, j);
    }
}

// The tree that is there stays as it is until the job has ended.
static void job_start(struct sm_mcast *m)
{
    struct sm *sm = m->sm;
    struct mcast_job *j = xcalloc(1, sizeof(*j));

    job_free(m->ready);
    m->ready = NULL;
    m->wanted = false;
    loop_timer_cancel(&m->start);
    j->sm = sm;
    j->fabric = fabric_ref(sm->fabric);
    j->basis.tables = tables_ref(sm->tables);
    j->basis.proof = route_proof_state_ref(sm->proof_state);
    j->needed = find_needed(sm, sm->fabric);
    j->basis.topology = topology(sm, j->needed);
    j->drains = sm_drains_take_in_force(sm);
    memcpy(j->roots, m->roots, sizeof(j->roots));
    j->opts = (struct mcast_opts){.needed = j->needed,
                                  .roots = j->roots,
                                  .num_roots = m->num_roots,
                                  .top_guid = sm->route.top_guid,
                                  .proof = j->basis.proof};
    if (m->tree != NULL) {
        j->last_fabric = fabric_ref(m->fabric);
        j->opts.last = m->tree;
        j->opts.last_fabric = j->last_fabric;
    }
    j->job = (struct pool_job){.work = work, .done = done, .arg = j, .name = "multicast"};
    m->job = j;
    m->jobs++;
    pool_submit(sm->pool, &j->job);
}

// A sweep runs whose tables are not in force yet.
static bool routing(const struct sm *sm)
{
    return sm->sweeping && (sm->next_fabric == NULL || sm->fabric != sm->next_fabric);
}

static void start(void *arg)
{
    struct sm_mcast *m = arg;
    struct sm *sm = m->sm;

    if (!m->wanted || m->job != NULL)
        return;
    if (!routing(sm) || mono_sub(loop_now(sm->loop), m->wanted_since) >= MCAST_YIELD)
        job_start(m);
    else if (!loop_timer_pending(&m->start))
        loop_timer_after(&m->start, MCAST_YIELD);
}

static void want(struct sm_mcast *m)
{
    if (!m->wanted)
        m->wanted_since = loop_now(m->sm->loop);
    m->wanted = true;
    loop_post(m->sm->loop, &m->task); // when this call comes from the end of a sweep, it is over then
    start(m);
}

void sm_mcast_tree_step(struct sm_mcast *m)
{
    if (m->tree == NULL && m->refused.tables == NULL && m->any_dirty && m->fabric != NULL && m->job == NULL &&
        !m->wanted)
        want(m);
    start(m);
}

// --- the tree ---

static void take_roots(struct sm_mcast *m)
{
    const struct mcast_tree *t = m->tree;
    uint64_t roots[MCAST_ROOTS_MAX] = {0};

    for (uint32_t i = 0; i < t->num_roots; i++)
        roots[i] = fabric_switch(m->fabric, t->root[i])->guid;
    if (t->num_roots == m->num_roots && memcmp(roots, m->roots, sizeof(roots)) == 0)
        return;
    memcpy(m->roots, roots, sizeof(roots));
    m->num_roots = t->num_roots;
    log_notice("mcast-root", "fabric=%s root=" GUID_FMT " trees=%u switches=%u proved=%d", m->sm->o.fabric,
               GUID_ARG(roots[0]), t->num_roots, t->num_in, t->proved);
    if (m->sm->db != NULL)
        db_blob_put(m->sm->db, m->sm->o.fabric, ROOTS_BLOB, roots, t->num_roots * sizeof(roots[0]), NULL,
                    NULL);
}

static void adopt(struct sm_mcast *m, struct mcast_job *j)
{
    bool was = m->tree == NULL || m->tree->proved || m->tree->unicast_cycle;

    mcast_tree_free(m->tree);
    m->tree = j->tree;
    j->tree = NULL;
    basis_done(&m->refused);
    basis_done(&m->basis);
    m->basis = j->basis;
    j->basis = (struct mcast_basis){0};
    sm_mcast_take_fabric(m, j->fabric);
    job_free(j);
    take_roots(m);
    if (was && !m->tree->proved && !m->tree->unicast_cycle)
        sm_event(m->sm, "multicast-unproved", "warning", "",
                 "no spanning tree is free of buffer cycles together with the unicast tables; the least bad "
                 "one is used");
    sm_mcast_all_dirty(m);
    if (m->again) {
        m->again = false;
        plan_anew(m, true);
    }
}

// Members, or tables that are still to be taken from the switches.
static bool is_needed(const struct sm_mcast *m)
{
    bool later = false;
    for (unsigned i = 0; i < BLOCKS_MAX / 64; i++)
        later |= m->later[i] != 0;
    return m->sm->sa->num_members > 0 || m->any_dirty || m->phase != MCAST_IDLE || later;
}

// The tree is the one that there would be for the fabric in force.
static void stay(struct sm_mcast *m)
{
    const struct sm *sm = m->sm;
    const struct fabric_tables *t = tables_ref(sm->tables);

    tables_unref((struct fabric_tables *)m->basis.tables);
    m->basis.tables = t;
    sm_mcast_take_fabric(m, sm->fabric);
    sm_mcast_all_dirty(m); // members may be elsewhere
}

// A new tree, unless it would be the same. take: the fabric is another one in any case.
static void plan_anew(struct sm_mcast *m, bool take)
{
    struct sm *sm = m->sm;

    m->lacking = false;
    if (m->job != NULL) {
        m->again |= take;
        return;
    }
    if (!is_needed(m)) {
        m->wanted = false;
        mcast_tree_free(m->tree);
        m->tree = NULL;
        basis_done(&m->basis);
        sm_mcast_take_fabric(m, sm->fabric);
        return;
    }
    const struct mcast_basis *b = m->ready != NULL ? &m->ready->basis : &m->basis;
    const struct mcast_tree *t = m->ready != NULL ? m->ready->tree : m->tree;
    if (t != NULL && same_basis(sm, b, t->proved)) {
        m->wanted = false;
        if (take && m->phase == MCAST_IDLE)
            stay(m);
        else
            m->again |= take;
        return;
    }
    if (m->refused.tables == NULL || !same_basis(sm, &m->refused, true))
        want(m);
}

void sm_mcast_tree_round_over(struct sm_mcast *m)
{
    struct mcast_job *j = m->ready;

    m->ready = NULL;
    if (j != NULL) {
        adopt(m, j);
    } else if (m->again && m->job == NULL) {
        m->again = false;
        plan_anew(m, true);
    }
    if (m->lacking)
        plan_anew(m, false);
}

void sm_mcast_fabric_changed(struct sm *sm)
{
    struct sm_mcast *m = sm->mcast;

    if (m == NULL || sm->fabric == NULL || sm->tables == NULL)
        return;
    sa_fabric_changed(sm);
    plan_anew(m, true);
}

// --- life ---

void sm_mcast_tree_init(struct sm_mcast *m)
{
    void *roots = NULL;
    size_t n = 0;
    struct sm *sm = m->sm;

    loop_timer_init(&m->start, sm->loop, "sa", start, m);
    if (sm->db != NULL && db_blob_get(sm->db, sm->o.fabric, ROOTS_BLOB, &roots, &n) == 0 &&
        n <= sizeof(m->roots) && n % sizeof(m->roots[0]) == 0) {
        memcpy(m->roots, roots, n);
        m->num_roots = (uint32_t)(n / sizeof(m->roots[0]));
    }
    free(roots);
}

void sm_mcast_tree_done(struct sm_mcast *m)
{
    loop_timer_cancel(&m->start);
    job_free(m->job);
    job_free(m->ready);
    mcast_tree_free(m->tree);
    basis_done(&m->basis);
    basis_done(&m->refused);
}
