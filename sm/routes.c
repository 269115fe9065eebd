// SPDX-License-Identifier: Apache-2.0
// Phase "route": tables for the new snapshot, proved, and the plan to write them, computed by a worker while
// ports are configured.
//
//     blueprint, learnt on from the snapshot ── ideal tables for it ── kept to in the snapshot ── proof ──
//     plan
//
// What the switches hold now is either known (written by us and not reset since), blank (LinearFDBTop 0), or
// read first. Tables found on the switches at the first sweep are ours when most switches have what was last
// written to them or meant to be (a stamp in the database: a hash of each row), or the last run ended while
// it wrote; then they are brought to what they should be. Otherwise, and when only this program's idea of
// what they should be has changed, they become the ideal as they are if they are proved: nothing is written
// then. A table that the proof refuses is never written: of computed tables those entries are that are proved
// to arrive (route_salvage()), the rest of them as LFT_DROP, said in a finding; tables from a file, and those
// that leave a cycle, are refused whole.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "sm/drain_priv.h"
#include "sm/sm_priv.h"

// The blob "tables": what was last written, or was going to be. Once it is, the blob "tables-settled" has its
// id; until then switches hold any mix of both.
struct stamp {
    char engine[16];
    uint64_t graph; // hash of the cables and LIDs that it was for
    uint64_t id;    // hash of all rows
    uint64_t n;
    struct stamp_row {
        uint64_t guid, now, before; // hashes of the switch's row, and of the one that it replaced
    } row[];
};

struct sm_route_job {
    struct pool_job job;
    struct sm *sm;
    const struct fabric *fabric;
    struct sm_learning learn;              // the blueprint so far; the next one and its ideal tables
    struct fabric_tables *old;             // what the switches hold
    bool *row_known, *blank;               // per switch
    const struct fabric_tables *proved;    // of the last generation; borrowed, like their state
    const struct route_proof_state *state; // NULL when there is none
    struct route_opts opts;
    struct sm_drain_set *drains; // NULL: none
    bool all_blank;
    bool may_adopt; // keep old when it is proved
    bool allow_credit_loops;
    struct stamp *found; // NULL when there is none
    bool found_settled;
    struct fabric_lanes *lanes; // of the last run's tables, at the first sweep; else NULL
    // results
    int status;
    bool kept;
    uint8_t *lanes_text; // lanes of the tables, to be kept
    size_t lanes_size;
    struct route_result result;
    struct route_proof proof;
    struct route_proof_state *new_state;
    struct stamp *stamp;
    struct route_plan *plan;
    uint64_t moved;
    struct err err;
};

// --- the stamp ---

static uint64_t row_hash(const struct fabric_tables *t, uint32_t sw)
{
    const uint8_t *row = tables_row(t, sw);
    uint64_t h = 0, word;
    for (uint32_t i = 0; i < t->lids; i += sizeof(word)) {
        memcpy(&word, row + i, sizeof(word));
        if (word != UINT64_MAX) // all of it dropped: as if it were not there
            h ^= hash_mix64(word ^ hash_mix64(i));
    }
    return h;
}

uint64_t sm_graph_hash(const struct fabric *f)
{
    uint64_t h = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        uint64_t at = f->node[p->node.i].guid ^ (uint64_t)p->num << 56;
        if (port_valid(p->peer))
            h ^=
                hash_mix64(hash_mix64(at) ^ f->node[f->port[p->peer.i].node.i].guid ^ f->port[p->peer.i].num);
        if (port_is_end(f, p) && p->a.lid != 0)
            h += hash_mix64(at ^ hash_mix64(p->a.lid));
    }
    return h;
}

static size_t stamp_size(uint64_t n)
{
    return sizeof(struct stamp) + n * sizeof(struct stamp_row);
}

static void make_stamp(struct sm_route_job *j)
{
    const struct fabric *f = j->fabric;
    uint64_t had = j->found != NULL ? j->found->n : 0;
    struct stamp *s = xcalloc(1, stamp_size(f->num_switches + had));

    snprintf(s->engine, sizeof(s->engine), "%s", j->result.tables->engine);
    s->graph = sm_graph_hash(f);
    s->n = f->num_switches;
    for (uint32_t sw = 0; sw < f->num_switches; sw++)
        s->row[sw] = (struct stamp_row){.guid = fabric_switch(f, sw)->guid,
                                        .now = row_hash(j->result.tables, sw),
                                        .before = row_hash(j->old, sw)};
    // What was written to those that are not here now, or do not tell what they hold, stays ours.
    for (uint64_t i = 0; i < had; i++) {
        const struct node *n = fabric_by_guid(f, j->found->row[i].guid);
        bool here = n != NULL && n->type == NODE_SWITCH;
        if (here && !j->row_known[n->sw])
            s->row[n->sw].before = j->found->row[i].now;
        else if (!here && s->n < SM_SWITCHES_MAX)
            s->row[s->n++] = j->found->row[i];
    }
    for (uint64_t i = 0; i < s->n; i++)
        s->id ^= hash_mix64(hash_mix64(s->row[i].guid ^ s->row[i].now) ^ s->row[i].before);
    j->stamp = s;
}

static struct stamp *read_stamp(const struct sm *sm)
{
    void *blob = NULL;
    size_t len = 0;
    struct stamp *s;

    if (sm->db == NULL || db_blob_get(sm->db, sm->o.fabric, "tables", &blob, &len) != 0)
        return NULL;
    s = blob;
    if (len < sizeof(*s) || s->n > SM_SWITCHES_MAX || len != stamp_size(s->n)) {
        free(blob);
        return NULL;
    }
    s->engine[sizeof(s->engine) - 1] = 0;
    return s;
}

static bool is_settled(const struct sm *sm, const struct stamp *s)
{
    void *blob = NULL;
    size_t len = 0;
    if (db_blob_get(sm->db, sm->o.fabric, "tables-settled", &blob, &len) != 0)
        return false;
    bool same = len == sizeof(s->id) && memcmp(blob, &s->id, sizeof(s->id)) == 0;
    free(blob);
    return same;
}

enum whose { FOREIGN, OURS, OURS_FINISHED };

// Whether the tables found are those that were written last, or on the way there. Where most are not known
// nobody else's are there to be kept, nor where the last run ended while it wrote: any mix may be there.
static enum whose whose_tables(const struct sm_route_job *j)
{
    const struct fabric *f = j->fabric;
    uint32_t finished = 0, ours = 0, known = 0;

    for (uint32_t sw = 0; sw < f->num_switches; sw++)
        known += j->row_known[sw];
    if (known * 2 <= f->num_switches)
        return OURS;
    if (j->found == NULL)
        return FOREIGN;
    for (uint64_t i = 0; i < j->found->n; i++) {
        const struct stamp_row *r = &j->found->row[i];
        const struct node *n = fabric_by_guid(f, r->guid);
        if (n == NULL || n->type != NODE_SWITCH || !j->row_known[n->sw])
            continue;
        uint64_t h = row_hash(j->old, n->sw);
        finished += h == r->now;
        ours += h == r->now || h == r->before;
    }
    if (finished == f->num_switches)
        return OURS_FINISHED;
    return !j->found_settled || ours * 2 > known ? OURS : FOREIGN;
}

// --- the worker ---

static bool equal_to_found(const struct sm_route_job *j, const struct fabric_tables *t)
{
    for (uint32_t sw = 0; sw < j->fabric->num_switches; sw++)
        if (!j->row_known[sw] || j->blank[sw] || row_hash(j->old, sw) != row_hash(t, sw))
            return false;
    return true;
}

// The run that had adopted them ended while it wrote: entries that it had taken away first are still missing.
static bool fill_gaps(struct sm_route_job *j)
{
    struct route_result r = {0};
    if (sm_drains_repair(j->drains, j->learn.next->base, j->fabric, j->opts.par, &r, &j->err) != 0)
        return false;
    snprintf(r.why, sizeof(r.why), "%s", j->result.why);
    tables_unref(j->result.tables);
    j->result = r;
    return true;
}

// What the switches hold becomes the ideal, as it is.
static bool adopt(struct sm_route_job *j, const struct verify_opts *v)
{
    enum whose w = whose_tables(j);
    bool adopted = j->found != NULL && strcmp(j->found->engine, "adopted") == 0;
    bool drained = j->drains != NULL && j->drains->n > 0; // ours of another version would hold these for ever
    bool as_is = w == FOREIGN || adopted ||
                 (w == OURS_FINISHED && !drained && j->found->graph == sm_graph_hash(j->fabric));
    struct route_result r = {.engine = ROUTE_FILE};

    if (!as_is || !route_verify(j->fabric, j->old, v, &j->proof))
        return false;
    snprintf(j->old->engine, sizeof(j->old->engine), "%s", w == OURS_FINISHED ? j->found->engine : "adopted");
    snprintf(r.why, sizeof(r.why), "%s",
             w == OURS_FINISHED && !adopted
                 ? "the tables on the switches are ours, of another version, and are proved: kept"
                 : "the tables found on the switches are proved: adopted as they are");
    tables_seal(j->old, false);
    r.tables = j->old;
    struct sm_ideal *x = sm_ideal_new(j->learn.next->blueprint, j->fabric, &r, &j->opts, &j->err);
    if (x == NULL)
        return false;
    sm_ideal_unref(j->learn.next);
    j->learn.next = x;
    tables_unref(j->result.tables);
    j->result = r;
    tables_ref(j->old);
    return (!drained && (j->found == NULL || j->found_settled)) || fill_gaps(j);
}

static bool reaches_us(const struct fabric *f, const struct fabric_tables *t)
{
    if (!port_valid(f->sm_port))
        return false;
    const struct port *own = fabric_port(f, f->sm_port);
    const struct node *n = fabric_node(f, own->node);
    if (n->type != NODE_SWITCH)
        n = fabric_peer_node(f, own);
    return n != NULL && n->type == NODE_SWITCH && tables_port(t, n->sw, own->a.lid) != LFT_DROP;
}

// Whether a part of the computed tables is proved by which our own port is reached: takes that part.
static bool salvage(struct sm_route_job *j, const struct verify_opts *v)
{
    struct route_proof proof;
    if (j->opts.engine == ROUTE_FILE) // a wrong file is for the operator to correct
        return false;
    struct fabric_tables *t = route_salvage(j->fabric, j->result.tables, v, &proof);
    if (t == NULL)
        return false;
    if (!reaches_us(j->fabric, t)) {
        tables_unref(t);
        return false;
    }
    tables_unref(j->result.tables);
    j->result.tables = t;
    j->proof = proof;
    return true;
}

static bool prove(struct sm_route_job *j, const struct verify_opts *v)
{
    const struct fabric_tables *t = j->result.tables;
    bool ok = j->state != NULL && j->proved != NULL
                  ? route_verify_change(j->state, j->proved, j->fabric, t, v, &j->proof, &j->new_state)
                  : route_verify_keep(j->fabric, t, v, &j->proof, &j->new_state);
    if (ok || salvage(j, v))
        return true;
    j->status =
        err_set(&j->err, -EPROTO, route_engine_name(j->result.engine),
                "the computed tables do not hold: %s%s", j->proof.counter_example,
                j->proof.credit_loop && j->result.engine != ROUTE_UPDN && j->result.engine != ROUTE_RAIL
                    ? "; routing.engine auto has no such loops"
                    : "");
    return false;
}

static void work(void *arg, struct par *par)
{
    struct sm_route_job *j = arg;
    struct verify_opts v = {.par = par, .allow_credit_loops = j->allow_credit_loops};

    j->opts.par = par;
    j->status = sm_learn(&j->learn, j->fabric, &j->opts, &j->err);
    if (j->status != 0)
        return;
    j->status = sm_drains_repair(j->drains, j->learn.next->base, j->fabric, par, &j->result, &j->err);
    if (j->status != 0)
        return;
    if (j->lanes != NULL && whose_tables(j) != FOREIGN)
        tables_set_lanes(j->old, lanes_ref(j->lanes));
    if (j->may_adopt && !j->all_blank) {
        bool equal = equal_to_found(j, j->result.tables);
        j->kept = equal || adopt(j, &v);
        if (equal)
            snprintf(j->result.why, sizeof(j->result.why),
                     "the tables on the switches are ours and are proved: kept");
    }
    if (!prove(j, &v))
        return;
    sm_drains_count(j->drains, j->fabric, j->result.tables);
    tables_seal(j->old, false);
    j->status = route_plan_proved(j->fabric, j->old, j->row_known, j->blank, j->result.tables, j->new_state,
                                  par, &j->plan, &j->err);
    if (j->status == 0 && (j->plan->num_waves > 0 || j->proved == NULL))
        make_stamp(j);
    if (j->status == 0 && j->result.tables->lanes != NULL)
        j->status = lanes_write(j->result.tables->lanes, j->fabric, &j->lanes_text, &j->lanes_size);
    if (j->status == 0 && j->proved != NULL)
        j->moved = route_paths_moved(j->fabric, j->old, j->result.tables, par);
}

static void stamp_tables(struct sm_route_job *j)
{
    if (j->sm->db != NULL)
        db_blob_put(j->sm->db, j->sm->o.fabric, "tables", j->stamp, stamp_size(j->stamp->n), NULL, NULL);
}

static void tell_of_gaps(struct sm *sm, const struct route_proof *p)
{
    char text[700];
    snprintf(text, sizeof(text),
             "%llu of %llu pairs of a leaf and an end have no route though cables join them, the others are "
             "routed: %s",
             (unsigned long long)p->unreached, (unsigned long long)p->pairs, p->counter_example);
    sm_note(sm, NOTE_ROUTES, FINDING_ERROR, "routes-incomplete", "", "%s", text);
    if (p->unreached != sm->proof.unreached)
        sm_event(sm, "routes-incomplete", "error", "", "%s", text);
}

static void done(void *arg)
{
    struct sm_route_job *j = arg;
    struct sm *sm = j->sm;

    if (j->status != 0) {
        if (sm->error.code != j->err.code ||
            strcmp(sm->error.text, j->err.text) != 0) // once, not at every retry
            sm_event(sm, "routes-refused", "error", "", "%s; the switches keep the tables that they have",
                     j->err.text);
        sm_blueprint_give_back(sm, &j->learn, &j->err);
        sm_sweep_failed(sm, &j->err);
        return;
    }
    if (j->stamp != NULL)
        stamp_tables(j);
    sm_lanes_keep(sm, j->lanes_text, j->lanes_size);
    if (j->result.replaced)
        sm_event(sm, "routes-replaced", "warning", "", "%s", j->result.why);
    sm->sweep.lft_entries = j->plan->entries;
    sm->sweep.paths_moved = j->moved;
    if (j->proof.unreached > 0)
        tell_of_gaps(sm, &j->proof);
    sm_blueprint_tell(sm, &j->learn);
    sm->next_tables = tables_ref(j->result.tables);
    sm_routed(sm);
}

const struct fabric_lanes *sm_route_found_lanes(const struct sm *sm)
{
    return sm->job != NULL ? sm->job->lanes : NULL;
}

bool sm_route_found_blank(const struct sm *sm)
{
    return sm->job != NULL && sm->job->all_blank;
}

const struct route_plan *sm_route_plan(const struct sm *sm)
{
    return sm->job != NULL ? sm->job->plan : NULL;
}

void sm_route_job_free(struct sm *sm)
{
    struct sm_route_job *j = sm->job;
    if (j == NULL)
        return;
    pool_cancel(&j->job);
    route_plan_free(j->plan);
    route_proof_state_free(j->new_state);
    tables_unref(j->result.tables);
    tables_unref(j->old);
    fabric_unref(j->fabric);
    sm_blueprint_give_back(sm, &j->learn, NULL);
    sm_learning_done(&j->learn);
    free(j->drains);
    free(j->row_known);
    free(j->blank);
    free(j->found);
    free(j->stamp);
    free(j->lanes_text);
    lanes_unref(j->lanes);
    free(j);
    sm->job = NULL;
}

// The route result, proof and ideal in force move to sm; called when the sweep succeeds.
void sm_route_adopt_result(struct sm *sm)
{
    struct sm_route_job *j = sm->job;
    if (j == NULL)
        return; // nothing that routes depend on has changed
    if (j->stamp != NULL && sm->db != NULL)
        db_blob_put(sm->db, sm->o.fabric, "tables-settled", &j->stamp->id, sizeof(j->stamp->id), NULL, NULL);
    sm->route = j->result;
    sm->route.tables = NULL;
    sm->proof = j->proof;
    route_proof_state_free(sm->proof_state);
    sm->proof_state = j->new_state;
    j->new_state = NULL;
    sm_blueprint_take(sm, &j->learn);
    sm_drains_adopt(sm, j->drains);
}

static void submit(struct sm *sm)
{
    struct sm_route_job *j = sm->job;
    sm_phase(sm, "route");
    j->job = (struct pool_job){.work = work, .done = done, .arg = j, .name = "routes"};
    pool_submit(sm->pool, &j->job);
}

// --- reading what the switches hold ---

static bool read_next(struct sm_pass *p, struct sm_dev *d, uint32_t *cursor, struct sm_item *it)
{
    struct sm_route_job *j = p->sm->job;
    if (!dev_is_switch(d) || d->node == ID_NONE || d->lft != DEV_LFT_UNKNOWN || !d->have_si || d->too_small)
        return false;
    uint32_t top = j->old->lids - 1, last = d->si.linear_fdb_top < top ? d->si.linear_fdb_top : top;
    if (*cursor > last / LFT_BLOCK)
        return false;
    it->tag = it->attr_mod = (*cursor)++;
    it->method = MAD_METHOD_GET;
    it->attr_id = MAD_ATTR_LINEAR_FORWARDING_TABLE;
    return true;
}

static void read_done(struct sm_pass *p, struct sm_dev *d, uint32_t tag, const struct mad_result *r)
{
    struct sm_route_job *j = p->sm->job;
    uint32_t sw = j->fabric->node[d->node].sw;

    if (r->status != 0 || r->mad_status != 0) {
        j->row_known[sw] = false;
        return;
    }
    uint8_t *row = tables_row(j->old, sw) + (size_t)tag * LFT_BLOCK;
    memcpy(row, r->data, LFT_BLOCK);
    for (uint32_t i = 0; i < LFT_BLOCK; i++) // beyond the top nothing is forwarded
        if (tag * LFT_BLOCK + i > d->si.linear_fdb_top)
            row[i] = LFT_DROP;
}

// What was read is known from now on, if the sweep ends well.
static void read_finished(struct sm_pass *p)
{
    struct sm *sm = p->sm;
    for (uint32_t i = 0; i < sm->num_dev; i++) {
        struct sm_dev *d = sm->dev[i];
        if (d->here && dev_is_switch(d) && d->node != ID_NONE && d->lft == DEV_LFT_UNKNOWN && !d->too_small &&
            sm->job->row_known[sm->job->fabric->node[d->node].sw]) {
            d->lft = DEV_LFT_SHADOW;
            d->lft_mixed = true;
        }
    }
    submit(sm);
}

// A switch whose ports are all in INIT has come up anew, though its LinearFDBTop may have been written since.
static bool was_reset(const struct sm_dev *d)
{
    bool any = false;
    for (unsigned i = 1; i <= d->ni.num_ports; i++) {
        if (sm_port_up(&d->port[i]) && (d->port[i].info[32] & 0x0f) != MAD_PORT_INIT)
            return false;
        any |= sm_port_up(&d->port[i]);
    }
    return any;
}

// Sorts the switches into known, blank and to be read; returns whether any has to be read.
static bool sort_switches(struct sm *sm, struct sm_route_job *j)
{
    bool read = false;
    j->all_blank = true;
    for (uint32_t i = 0; i < sm->num_dev; i++) {
        struct sm_dev *d = sm->dev[i];
        if (!dev_here(sm, d) || !dev_is_switch(d) || d->node == ID_NONE)
            continue;
        uint32_t sw = j->fabric->node[d->node].sw;
        if (d->too_small) { // nothing is written to it
            d->lft = DEV_LFT_UNKNOWN;
            j->row_known[sw] = true;
            continue;
        }
        j->row_known[sw] = d->have_si;
        if (d->lft_mixed) // written by a sweep that did not end well
            d->lft = DEV_LFT_UNKNOWN;
        if (!d->touched && d->lft != DEV_LFT_UNKNOWN) {
            j->all_blank = false;
            continue;
        }
        bool lost = d->lft == DEV_LFT_SHADOW && d->si.linear_fdb_top < (sm->tables ? sm->tables->top_lid : 0);
        if (d->have_si && d->si.linear_fdb_top == 0)
            d->lft = DEV_LFT_BLANK;
        else if (lost || was_reset(d) || sm->reroute_now || d->lft == DEV_LFT_BLANK)
            d->lft = DEV_LFT_UNKNOWN;
        if (d->lft_before == DEV_LFT_SHADOW && (d->lft == DEV_LFT_BLANK || was_reset(d)))
            sm_event(sm, "node-reset", "warning", d->desc,
                     "switch %s has been reset: its tables and settings are lost and written anew", d->desc);
        if (d->lft != DEV_LFT_SHADOW) {
            sm_mcast_switch_reset(sm, d);
            sm_adaptive_reset(sm, d);
        }
        j->row_known[sw] = d->have_si;
        j->blank[sw] = d->lft == DEV_LFT_BLANK;
        j->all_blank &= j->blank[sw];
        read |= d->lft == DEV_LFT_UNKNOWN && d->have_si;
    }
    return read;
}

// What was written to a switch that has lost it since, or is read anew, counts for nothing.
static void forget_rows(const struct sm *sm, struct sm_route_job *j)
{
    for (uint32_t i = 0; i < sm->num_dev; i++) {
        const struct sm_dev *d = sm->dev[i];
        if (dev_here(sm, d) && dev_is_switch(d) && d->node != ID_NONE && d->lft != DEV_LFT_SHADOW)
            memset(tables_row(j->old, j->fabric->node[d->node].sw), LFT_DROP, j->old->lids);
    }
}

bool sm_same_routes(const struct fabric *a, const struct fabric *b)
{
    if (a->num_nodes != b->num_nodes || a->num_ports != b->num_ports || a->top_lid != b->top_lid)
        return false;
    for (uint32_t i = 0; i < a->num_nodes; i++)
        if (a->node[i].guid != b->node[i].guid || a->node[i].type != b->node[i].type)
            return false;
    for (uint32_t i = 0; i < a->num_ports; i++)
        if (a->port[i].peer.i != b->port[i].peer.i || a->port[i].a.lid != b->port[i].a.lid ||
            a->port[i].a.lmc != b->port[i].a.lmc)
            return false;
    return true;
}

// A port that was reset, a description: tables and their proof stay.
static bool nothing_to_route(const struct sm *sm)
{
    if (sm->sweep.full || sm->tables == NULL || sm->unrouted || sm_drains_pending(sm) ||
        sm->blueprint.ask.op != SM_BLUEPRINT_NONE || !sm_same_routes(sm->fabric, sm->next_fabric))
        return false;
    for (uint32_t i = 0; i < sm->num_dev; i++)
        if (sm->dev[i]->here && dev_is_switch(sm->dev[i]) && sm->dev[i]->lft != DEV_LFT_SHADOW)
            return false;
    for (uint32_t i = 0; i < sm->touched.n; i++) {
        const struct sm_dev *d = sm->dev[sm->touched.index[i]];
        if (d->here && dev_is_switch(d) &&
            (was_reset(d) || d->si.linear_fdb_top < sm->tables->top_lid || d->lft_mixed))
            return false;
    }
    return true;
}

// What the switches hold as far as we have written it, by the numbers of the new snapshot.
static struct fabric_tables *old_tables(const struct sm *sm)
{
    const struct fabric *f = sm->next_fabric;
    uint16_t top = f->top_lid;

    if (sm->blueprint.known != NULL && sm->blueprint.known->top_lid > top)
        top = sm->blueprint.known->top_lid;
    if (sm->tables == NULL)
        return tables_new(f, top, "found");
    bool all_shadow = true;
    for (uint32_t i = 0; i < sm->num_dev; i++)
        all_shadow &= !sm->dev[i]->here || !dev_is_switch(sm->dev[i]) || sm->dev[i]->lft == DEV_LFT_SHADOW;
    if (all_shadow && top < sm->tables->lids && fabric_same_switches(sm->fabric, f))
        return tables_ref(sm->tables);
    return tables_copy_for(sm->tables, sm->fabric, f, top > sm->tables->top_lid ? top : sm->tables->top_lid);
}

struct route_opts sm_route_opts(const struct sm *sm)
{
    struct route_opts o = {
        .engine = sm->o.engine, .root_guids = sm->o.root_guids, .num_roots = sm->o.num_roots};
    if (sm->o.engine == ROUTE_SSSP)
        o.lanes = sm_lanes_allowed(sm);
    if (sm->o.lft_file != NULL) {
        o.file_text = sm->o.lft_file;
        o.file_len = strlen(sm->o.lft_file);
    }
    return o;
}

void sm_route_start(struct sm *sm)
{
    if (nothing_to_route(sm)) {
        sm->next_tables = tables_ref(sm->tables);
        sm_routed(sm);
        return;
    }
    struct sm_route_job *j = xcalloc(1, sizeof(*j));
    uint32_t n = sm->next_fabric->num_switches;

    sm_notes_drop(sm, NOTE_ROUTES);
    sm->job = j;
    j->sm = sm;
    j->fabric = fabric_ref(sm->next_fabric);
    sm_blueprint_begin(sm, &j->learn);
    j->drains = sm_drains_take(sm);
    j->proved = sm->tables;
    j->state = sm->proof_state;
    j->row_known = xcalloc(n ? n : 1, sizeof(bool));
    j->blank = xcalloc(n ? n : 1, sizeof(bool));
    j->opts = sm_route_opts(sm);
    j->allow_credit_loops = sm->o.allow_credit_loops;
    j->may_adopt = sm->o.adopt && !j->learn.anew && sm->tables == NULL && !sm->tables_begun;
    bool read = sort_switches(sm, j);
    j->old = old_tables(sm);
    forget_rows(sm, j);
    j->found = read_stamp(sm);
    j->found_settled = j->found != NULL && is_settled(sm, j->found);
    if (sm->tables == NULL)
        j->lanes = sm_lanes_kept(sm, j->fabric);
    if (!read) {
        submit(sm);
        return;
    }
    sm_phase(sm, "read tables");
    sm->pass_read.name = "read tables";
    sm->pass_read.next = read_next;
    sm->pass_read.done = read_done;
    sm->pass_read.finished = read_finished;
    sm_pass_start(&sm->pass_read, sm);
}
