// SPDX-License-Identifier: Apache-2.0
// Adaptive routing: the job for the worker. Groups for the tables in force, their proof, and what each switch
// has to be written of it, by comparison with what it holds.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "sm/adaptive_priv.h"

// --- what is held, as numbers ---

static uint64_t not_zero(uint64_t h)
{
    return h != 0 ? h : 1;
}

static uint64_t group_hash(const struct port_set *s)
{
    uint64_t h = 0x67726f7570ull;
    for (unsigned i = 0; i < 4; i++)
        h = hash_mix64(h ^ s->w[i]);
    return not_zero(h);
}

// id GROUP_NONE: static.
static uint64_t entry_hash(uint64_t h, uint16_t id, uint8_t port)
{
    return hash_mix64(h ^ ((uint64_t)id << 8 | port));
}

uint64_t sm_adaptive_group(const struct fabric_group *g, uint8_t ret[MAD_SMP_DATA_SIZE])
{
    struct mad_adaptive_routing_group_table t = {0};
    for (unsigned p = 1; p <= SWITCH_MAX_PORTS; p++)
        if (port_set_has(&g->ports, (uint8_t)p))
            mad_ar_mask_add(t.sub_group0, (uint8_t)p);
    mad_adaptive_routing_group_table_encode(&t, ret);
    return group_hash(&g->ports);
}

uint64_t sm_adaptive_group_said(const uint8_t data[MAD_SMP_DATA_SIZE])
{
    struct mad_adaptive_routing_group_table t;
    struct port_set s = {0};
    mad_adaptive_routing_group_table_decode(data, &t);
    for (unsigned p = 0; p < 256; p++) {
        if (mad_ar_mask_has(t.sub_group1, (uint8_t)p))
            return 0;
        if (mad_ar_mask_has(t.sub_group0, (uint8_t)p))
            s.w[p / 64] |= 1ull << (p % 64);
    }
    return group_hash(&s);
}

// Where the table ends, nothing is forwarded.
static uint16_t entry_of(const struct fabric_groups *g, const struct fabric_tables *t, uint32_t sw,
                         uint32_t lid, uint8_t *ret_port)
{
    *ret_port = lid < t->lids ? tables_row(t, sw)[lid] : LFT_DROP;
    const struct fabric_group *x = groups_at(g, sw, (uint16_t)lid, *ret_port);
    return x != NULL ? x->id : GROUP_NONE;
}

uint64_t sm_adaptive_block(const struct fabric_groups *g, const struct fabric_tables *t, uint32_t sw,
                           uint32_t block, uint8_t ret[MAD_SMP_DATA_SIZE])
{
    struct mad_adaptive_routing_lft x = {0};
    uint64_t h = 0;
    for (uint32_t i = 0; i < MAD_AR_LFT_BLOCK; i++) {
        uint16_t id = entry_of(g, t, sw, block * MAD_AR_LFT_BLOCK + i, &x.port[i]);
        h = entry_hash(h, id, x.port[i]);
        x.state[i] = id != GROUP_NONE ? MAD_AR_FREE : MAD_AR_STATIC;
        x.group[i] = id != GROUP_NONE ? id : 0;
    }
    if (ret != NULL)
        mad_adaptive_routing_lft_encode(&x, ret);
    return not_zero(h);
}

uint64_t sm_adaptive_block_said(const uint8_t data[MAD_SMP_DATA_SIZE])
{
    struct mad_adaptive_routing_lft x;
    uint64_t h = 0;
    mad_adaptive_routing_lft_decode(data, &x);
    for (uint32_t i = 0; i < MAD_AR_LFT_BLOCK; i++) {
        bool is_free = x.state[i] == MAD_AR_FREE && x.group[i] < MAD_AR_GROUPS;
        if (x.table[i] != 0 || (!is_free && (x.state[i] != MAD_AR_STATIC || x.group[i] != 0)))
            return 0;
        h = entry_hash(h, is_free ? x.group[i] : GROUP_NONE, x.port[i]);
    }
    return not_zero(h);
}

const struct fabric_group *sm_adaptive_group_by_id(const struct fabric_groups *g, uint32_t sw, uint16_t id)
{
    uint32_t lo = g->first[sw], hi = g->first[sw + 1];
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (g->group[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < g->first[sw + 1] && g->group[lo].id == id ? &g->group[lo] : NULL;
}

// --- the worker ---

static void grow(uint64_t **p, uint32_t *n, uint32_t to)
{
    if (to <= *n)
        return;
    *p = xreallocarray(*p, to, sizeof(**p));
    memset(*p + *n, 0, (to - *n) * sizeof(**p));
    *n = to;
}

static void compare(void *arg, unsigned sw)
{
    const struct adaptive_job *j = arg;
    const struct fabric_groups *g = j->result.groups;
    struct sm_adaptive_dev *a = j->dev[sw];

    if (a == NULL)
        return;
    a->want = g != NULL && groups_of(g, sw) > 0;
    a->num_todo_groups = a->num_todo_blocks = 0;
    if (!a->want)
        return;
    uint32_t n = groups_of(g, sw), blocks = (j->tables->lids + MAD_AR_LFT_BLOCK - 1) / MAD_AR_LFT_BLOCK;
    const struct fabric_group *own = g->group + g->first[sw];
    a->groups = (uint16_t)n;
    a->top = own[n - 1].id > a->info.group_top ? own[n - 1].id : a->info.group_top; // it is never lowered
    grow(&a->group, &a->num_groups, a->top + 1u);
    grow(&a->block, &a->num_blocks, blocks);
    a->todo_group = xreallocarray(a->todo_group, n, sizeof(*a->todo_group));
    for (uint32_t i = 0; i < n; i++)
        if (a->group[own[i].id] != group_hash(&own[i].ports))
            a->todo_group[a->num_todo_groups++] = own[i].id;
    a->todo_block = xreallocarray(a->todo_block, blocks, sizeof(*a->todo_block));
    for (uint32_t b = 0; b < blocks; b++)
        if (a->block[b] != sm_adaptive_block(g, j->tables, sw, b, NULL))
            a->todo_block[a->num_todo_blocks++] = b;
}

static void work(void *arg, struct par *par)
{
    struct adaptive_job *j = arg;

    if (j->anew) {
        struct route_avoid *avoid = j->opts.base != NULL ? sm_drains_avoid(j->drains, j->fabric) : NULL;
        j->opts.par = par;
        j->opts.avoid = avoid;
        j->status = route_groups(j->fabric, j->tables, &j->opts, &j->result, &j->err);
        route_avoid_free(avoid);
    } else if (j->last != NULL) {
        j->result.groups = groups_ref(j->last);
    }
    struct groups_verify v = {.cap = j->cap, .par = par};
    if (j->status == 0 && j->result.groups != NULL && j->anew &&
        !route_verify_groups(j->fabric, j->tables, j->result.groups, &v, &j->proof)) {
        j->status = err_set(&j->err, -EPROTO, "adaptive routing", "the groups do not hold: %s",
                            j->proof.counter_example);
        groups_unref(j->result.groups);
        j->result.groups = NULL;
    }
    par->run(par, j->fabric->num_switches, compare, j);
}

// --- the loop ---

static uint16_t cap_of(const struct sm_dev *d)
{
    const struct sm_adaptive_dev *a = d->adaptive;
    return d->here && a != NULL && a->can == ADAPTIVE_CAN && !d->too_small ? a->info.group_cap : 0;
}

static uint64_t caps_of(const struct sm *sm)
{
    uint64_t h = 0;
    for (uint32_t i = 0; i < sm->num_dev; i++)
        if (cap_of(sm->dev[i]) > 0)
            h ^= hash_mix64(sm->dev[i]->guid ^ hash_mix64(cap_of(sm->dev[i])));
    return h;
}

void sm_adaptive_job_start(struct sm *sm, void (*done)(void *arg))
{
    struct sm_adaptive *x = sm->adaptive;
    struct adaptive_job *j = xcalloc(1, sizeof(*j));
    const struct fabric *f = sm->next_fabric;
    uint64_t caps = caps_of(sm);

    j->sm = sm;
    j->fabric = fabric_ref(f);
    j->tables = tables_ref(sm->tables);
    j->ideal = sm_ideal_ref(sm->blueprint.ideal);
    j->last = x->groups != NULL ? groups_ref(x->groups) : NULL;
    j->last_fabric = x->fabric != NULL ? fabric_ref(x->fabric) : NULL;
    j->anew =
        sm->job != NULL || x->tables != sm->tables || x->caps != caps || !fabric_same_switches(x->fabric, f);
    j->drains = sm_drains_take_in_force(sm);
    j->status = j->anew ? 0 : x->status;
    j->err = x->err;
    x->caps = caps;
    j->cap = xcalloc(f->num_switches + 1, sizeof(*j->cap));
    j->dev = xcalloc(f->num_switches + 1, sizeof(struct sm_adaptive_dev *));
    for (uint32_t i = 0; i < sm->num_dev; i++) {
        struct sm_dev *d = sm->dev[i];
        if (!d->here || d->node == ID_NONE || cap_of(d) == 0)
            continue;
        j->cap[f->node[d->node].sw] = cap_of(d);
        j->dev[f->node[d->node].sw] = d->adaptive;
    }
    j->opts = (struct groups_opts){
        .base = j->ideal != NULL ? j->ideal->base : NULL,
        .engine = sm->route.engine,
        .last = j->last,
        .last_fabric = j->last_fabric,
        .cap = j->cap,
    };
    x->job = j;
    j->job = (struct pool_job){.work = work, .done = done, .arg = j, .name = "adaptive"};
    pool_submit(sm->pool, &j->job);
}

void sm_adaptive_job_free(struct adaptive_job *j)
{
    if (j == NULL)
        return;
    pool_cancel(&j->job);
    groups_unref(j->result.groups);
    groups_unref(j->last);
    fabric_unref(j->last_fabric);
    fabric_unref(j->fabric);
    tables_unref(j->tables);
    sm_ideal_unref(j->ideal);
    free(j->drains);
    free(j->cap);
    free(j->dev);
    free(j);
}
