// SPDX-License-Identifier: Apache-2.0
// Repair: the tables of a damaged fabric from those of the whole one. See route.h for what is promised.
//
//   repair_live.c    base and live fabric side by side; the order; which ports are suspect
//   repair.c         which LIDs are touched; the copy
//   repair_column.c  one destination under up*/down*
//   repair_share.c   what a port finds beyond the switch that it leads to: weights for the choice
//   repair_plain.c   one destination without an order: shortest paths, and tables from elsewhere
//   repair_lanes.c   lanes for what came out
//
// The order of switches is the base's, so that a failure changes no rank. Only in a connected component where
// it has more than one local maximum (its top is dead, or cut off from something that has no other way up) an
// order is built anew, from the base's ranks.
//
// A port is suspect when the ideal means it to lead to another switch and it does not lead there now, or the
// order of the two has changed. A destination without an entry over a suspect port is as it was: all its
// paths are alive and go up and down as they did. So only rows of switches with suspect ports are searched.
//
// Memory: the base is the caller's; everything else is an arena that dies with the call, and the tables.
#include "routing/repair_priv.h"

#include <stdio.h>
#include <string.h>

// --- touched LIDs ---

struct job {
    struct rlive *v;
    struct fabric_tables *out; // NULL: only look whether there is work
    uint32_t blocks, tasks;
    _Atomic bool found; // while only looking: there is some
    struct outcome {
        uint64_t displaced;
        uint32_t columns, anew;
        bool work;
    } * done; // per task
};

enum work {
    WORK_NONE,
    WORK_REPAIR,
    WORK_ALL,
};

struct place {
    uint32_t sw;
    uint8_t port;
};

// Where a LID hangs, or false; *ret_moved: its entries are not the ideal's to tell.
static bool place_of(const struct rlive *v, uint16_t lid, struct place *ret, bool *ret_moved)
{
    const struct route_base *b = v->b;
    uint32_t base_sw = lid <= b->top_lid ? b->at_sw[lid] : ID_NONE;
    uint32_t from = base_sw == ID_NONE ? ID_NONE : v->from_base[base_sw];
    *ret_moved = false;
    if (lid <= v->f->top_lid && v->f->lid_port[lid] != ID_NONE &&
        rattachment(v->f, v->f->lid_port[lid], &ret->sw, &ret->port)) {
        *ret_moved = from != ret->sw;
        return true;
    }
    if (from == ID_NONE)
        return false;
    *ret = (struct place){from, b->at_port[lid]};
    if (rfar(v, ret->sw, ret->port) != ID_NONE) // another switch sits there now
        ret->port = LFT_DROP;
    return true;
}

static enum work work_of(const struct rlive *v, uint16_t lid, uint32_t seeds, const struct place *at,
                         bool moved)
{
    if (moved)
        return WORK_ALL;
    bool many = v->gaps || (v->extra && !v->ordered);
    return seeds > 0 || many || rideal(v, at->sw, lid) != at->port ? WORK_REPAIR : WORK_NONE;
}

static void column(struct rrepair *r, uint16_t lid, const struct place *at, const uint32_t *seed,
                   uint32_t seeds, bool all)
{
    const struct rlive *v = r->v;
    uint8_t before = rideal(v, at->sw, lid);
    r->lid = lid;
    r->t = at->sw;
    rput(r, at->sw, at->port);
    r->displaced += before != LFT_DROP && before != at->port;
    switch (v->b->engine) {
    case ROUTE_AUTO:
    case ROUTE_RAIL:
    case ROUTE_UPDN:
        rrepair_column(r, lid, at->sw, seed, seeds, all);
        break;
    case ROUTE_SSSP: // lanes come after: repair_lanes.c
    case ROUTE_MINHOP:
        rrepair_minhop(r, lid, at->sw);
        break;
    case ROUTE_FILE:
        rrepair_found(r, lid, at->sw, at->port);
        break;
    }
}

// Switches with an entry over a suspect port, by LID of the block.
struct seeds {
    uint32_t num[LFT_BLOCK];
    uint32_t *sw; // [64][switches]
};

static void find_seeds(const struct rlive *v, uint32_t lid0, struct seeds *x)
{
    uint32_t n = v->g.n;
    memset(x->num, 0, sizeof(x->num));
    if (lid0 >= v->b->ideal->lids)
        return;
    for (uint32_t i = 0; i < v->num_suspects; i++) {
        const struct rsuspect *k = &v->suspect[i];
        const uint8_t *row = tables_row(v->b->ideal, v->to_base[k->sw]) + lid0;
        for (uint32_t l = 0; l < LFT_BLOCK; l++) {
            x->sw[(size_t)l * n + x->num[l]] = k->sw;
            x->num[l] += k->port[row[l]];
        }
    }
}

// Those that have no entry though they may have a way.
static void add_gaps(const struct rlive *v, uint16_t lid, const struct place *at, struct seeds *x, uint32_t l)
{
    for (uint32_t s = 0; s < v->g.n; s++) {
        if (s != at->sw && rideal(v, s, lid) == LFT_DROP)
            x->sw[(size_t)l * v->g.n + x->num[l]++] = s;
    }
}

// A destination out of reach keeps the ideal's entries, which go by the base's order. Where that was made
// anew, a turn over a cable whose two ends have changed places may go down and up: that entry is dropped.
static void tame(struct rrepair *r, uint16_t lid, const struct place *at, const uint32_t *seed, uint32_t num)
{
    const struct rlive *v = r->v;
    const uint32_t *pos = v->o.pos;
    r->lid = lid;
    for (uint32_t i = 0; i < num; i++) {
        uint32_t s = seed[i], w = rideal_next(v, s, lid), x = w == ID_NONE ? ID_NONE : rideal_next(v, w, lid);
        if (w == ID_NONE || !v->renewed[v->g.comp[s]] || (at && v->g.comp[s] == v->g.comp[at->sw]))
            continue;
        bool bad = pos[w] < pos[s] && x != ID_NONE && pos[x] > pos[w];
        for (uint32_t k = v->g.goff[s]; k < v->g.goff[s + 1] && pos[w] > pos[s]; k++) {
            x = v->g.g[k].peer;
            bad |= pos[x] > pos[s] && rideal_next(v, x, lid) == s;
        }
        if (bad) {
            rput(r, s, LFT_DROP);
            r->displaced++;
        }
    }
}

static void block(struct job *j, struct rrepair *r, uint32_t lid0, struct seeds *x, struct outcome *done)
{
    const struct rlive *v = j->v;
    find_seeds(v, lid0, x);
    for (uint32_t l = 0; l < LFT_BLOCK; l++) {
        uint16_t lid = (uint16_t)(lid0 + l);
        struct place at;
        bool moved;
        if (lid == 0 || lid > v->top_lid)
            continue;
        bool placed = place_of(v, lid, &at, &moved);
        if ((v->reordered || v->depth) && x->num[l] > 0) {
            done->work = true;
            if (j->out)
                tame(r, lid, placed ? &at : NULL, x->sw + (size_t)l * v->g.n, x->num[l]);
        }
        if (!placed)
            continue;
        enum work w = work_of(v, lid, x->num[l], &at, moved);
        if (w == WORK_NONE)
            continue;
        done->work = true;
        if (!j->out) {
            j->found = true;
            return;
        }
        if (v->gaps)
            add_gaps(v, lid, &at, x, l);
        column(r, lid, &at, x->sw + (size_t)l * v->g.n, x->num[l], w == WORK_ALL);
        done->columns++;
    }
}

static void copy_rows(struct job *j, uint32_t from, uint32_t to)
{
    const struct rlive *v = j->v;
    uint32_t lids = v->b->ideal->lids < j->out->lids ? v->b->ideal->lids : j->out->lids;
    for (uint32_t s = from; s < to; s++) {
        uint8_t *row = tables_row(j->out, s);
        uint32_t known = v->to_base[s] != ID_NONE ? lids : 0;
        if (known)
            memcpy(row, tables_row(v->b->ideal, v->to_base[s]), known);
        memset(row + known, LFT_DROP, j->out->lids - known);
    }
}

static void copy_task(void *arg, unsigned i)
{
    struct job *j = arg;
    uint32_t n = j->v->g.n;
    copy_rows(j, (uint32_t)((uint64_t)n * i / j->tasks), (uint32_t)((uint64_t)n * (i + 1) / j->tasks));
}

static void block_task(void *arg, unsigned i)
{
    struct job *j = arg;
    const struct rlive *v = j->v;
    struct arena *a = arena_new();
    struct outcome *done = &j->done[i];
    struct rrepair r;
    struct seeds x;
    x.sw = ARENA_NEW_N(a, (size_t)LFT_BLOCK * v->g.n + 1, uint32_t);
    rrepair_init(&r, v, j->out, a);
    uint32_t from = (uint32_t)((uint64_t)j->blocks * i / j->tasks);
    uint32_t to = (uint32_t)((uint64_t)j->blocks * (i + 1) / j->tasks);
    *done = (struct outcome){0};
    for (uint32_t b = from; b < to && !(j->found && !j->out); b++)
        block(j, &r, b * LFT_BLOCK, &x, done);
    done->displaced = r.displaced;
    done->anew = r.anew;
    arena_free(a);
}

static struct outcome run(struct job *j, struct par *par)
{
    struct outcome sum = {0};
    rpar_run(par, j->tasks, block_task, j);
    for (uint32_t i = 0; i < j->tasks; i++) {
        sum.displaced += j->done[i].displaced;
        sum.columns += j->done[i].columns;
        sum.anew += j->done[i].anew;
        sum.work |= j->done[i].work;
    }
    return sum;
}

// --- together ---

static void explain(const struct rlive *v, struct route_result *r)
{
    snprintf(r->why, sizeof(r->why), "%s", v->b->why);
    if (!v->ordered || v->g.n == 0)
        return;
    uint32_t *size = ARENA_NEW_N(v->a, v->g.num_comps + 1, uint32_t), best = 0;
    for (uint32_t s = 0; s < v->g.n; s++)
        size[v->g.comp[s]]++;
    for (uint32_t c = 1; c < v->g.num_comps; c++) {
        if (size[c] > size[best])
            best = c;
    }
    r->top_guid = v->g.guid[v->o.top[best]];
}

static void repair(struct rlive *v, struct par *par, struct route_result *ret)
{
    const struct fabric_tables *ideal = v->b->ideal;
    struct job j = {.v = v, .blocks = v->top_lid / LFT_BLOCK + 1u};
    struct route_result r = {.engine = v->b->engine, .reordered = v->reordered};
    bool same = v->same_numbers && v->top_lid < ideal->lids && v->top_lid == ideal->top_lid;
    j.tasks = par && par->width > 1 ? par->width * 4 : 1;
    j.tasks = j.tasks < j.blocks ? j.tasks : j.blocks;
    j.done = ARENA_NEW_N(v->a, j.tasks, struct outcome);
    explain(v, &r);
    struct outcome sum = run(&j, par);
    if (sum.work || !same) {
        j.out = tables_new_unset(v->f, v->top_lid, ideal->engine);
        rpar_run(par, j.tasks, copy_task, &j);
        sum = run(&j, par);
        r.displaced = sum.displaced;
        r.columns = sum.columns;
        r.anew = sum.anew;
    }
    if (same && sum.displaced == 0 && j.out && tables_compare(j.out, ideal).entries == 0) {
        tables_unref(j.out);
        j.out = NULL;
    }
    if (j.out)
        tables_seal(j.out, false);
    r.tables = j.out ? j.out : tables_ref(ideal);
    *ret = r;
}

static int repair_found(const struct route_base *b, const struct fabric *live, const struct route_avoid *x,
                        struct par *par, struct route_result *r, struct err *e);

int route_repair_from(const struct route_base *b, const struct fabric *live, struct par *par,
                      struct route_result *ret, struct err *e)
{
    return route_repair_avoiding(b, live, NULL, par, ret, e);
}

int route_repair_avoiding(const struct route_base *b, const struct fabric *live, const struct route_avoid *x,
                          struct par *par, struct route_result *ret, struct err *e)
{
    struct arena *a = arena_new();
    struct route_result r;
    repair(rlive_new(b, live, x, par, a), par, &r);
    arena_free(a);
    if (b->ideal->lanes) {
        const struct fabric *open = x && x->any ? ravoid_fabric(x) : fabric_ref(live);
        int rc = rrepair_lanes(b, open, x && x->sunk ? x->depth : NULL, par, &r, e);
        fabric_unref(open);
        if (rc == 0)
            *ret = r;
        return rc;
    }
    int rc = b->engine == ROUTE_FILE && r.displaced > 0 ? repair_found(b, live, x, par, &r, e) : 0;
    if (rc == 0)
        *ret = r;
    return rc;
}

static bool has_credit_loop(const struct fabric *f, const struct fabric_tables *t, struct par *par)
{
    struct verify_opts o = {.par = par};
    struct route_proof p;
    route_verify(f, t, &o, &p);
    return p.credit_loop;
}

// Tables without an order may get a credit loop by what is put in place of dead entries. If they had none,
// they are given up for what auto chooses, kept to in the same way.
static int repair_found(const struct route_base *b, const struct fabric *live, const struct route_avoid *x,
                        struct par *par, struct route_result *r, struct err *e)
{
    if (!has_credit_loop(live, r->tables, par) || has_credit_loop(b->f, b->ideal, par))
        return 0;
    struct route_opts o = b->opts;
    struct route_result ideal, other;
    char had[sizeof(ideal.why)];
    memcpy(had, r->why, sizeof(had));
    tables_unref(r->tables);
    o.engine = ROUTE_AUTO;
    o.par = par;
    int rc = route_compute(b->f, &o, &ideal, e);
    if (rc)
        return rc;
    struct route_base *base;
    rc = route_base_new(b->f, &ideal, &o, &base, e);
    if (rc == 0) {
        rc = route_repair_avoiding(base, live, x, par, &other, e);
        route_base_free(base);
    }
    tables_unref(ideal.tables);
    if (rc)
        return rc;
    *r = other;
    r->replaced = true;
    snprintf(r->why, sizeof(r->why),
             "given up, as repairing them would make a credit loop: %.60s; now engine %s in their place", had,
             route_engine_name(other.engine));
    return 0;
}

int route_repair(const struct fabric *blueprint, const struct route_result *ideal, const struct fabric *live,
                 const struct route_opts *o, struct route_result *ret, struct err *e)
{
    struct route_base *b;
    int rc = route_base_new(blueprint, ideal, o, &b, e);
    if (rc)
        return rc;
    rc = route_repair_from(b, live, o->par, ret, e);
    route_base_free(b);
    return rc;
}
