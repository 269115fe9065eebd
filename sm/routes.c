// SPDX-License-Identifier: Apache-2.0
// Phase "route": tables for the new snapshot, proved, and the plan to write them, computed by a worker while
// ports are configured.
//
// What the switches hold now is either known (written by us and not reset since), blank (LinearFDBTop 0), or
// read first. Tables found on the switches at the first sweep are adopted when they are proved for the LIDs
// in force: nothing is written then. Tables of ours are recognised by their fingerprint, kept in the
// database, so that a restart knows which engine made them. A table that the proof refuses is never written:
// of computed tables those entries are that are proved to arrive (route_salvage()), the rest of them as
// LFT_DROP, said in a finding; tables from a file, and those that leave a cycle, are refused whole.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "sm/sm_priv.h"

struct stamp { // the blob "tables"
    char engine[16];
    uint64_t hash;
};

struct sm_route_job {
    struct pool_job job;
    struct sm *sm;
    const struct fabric *fabric;
    struct fabric_tables *old; // what the switches hold
    bool *known, *blank;       // per switch
    struct route_opts opts;
    bool all_blank;
    bool may_keep; // keep old when it is proved
    bool allow_credit_loops;
    struct stamp stamp;
    // results
    int status;
    bool kept, ours;
    struct route_result result;
    struct route_proof proof;
    uint64_t hash; // of the new tables
    struct route_plan *plan;
    struct err err;
};

static uint64_t tables_hash(const struct fabric *f, const struct fabric_tables *t)
{
    uint64_t h = f->top_lid;
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        const uint8_t *row = tables_row(t, sw);
        uint64_t x = fabric_switch(f, sw)->guid;
        for (uint32_t lid = 1; lid <= f->top_lid && lid < t->lids; lid++)
            x = hash_mix64(x ^ row[lid]);
        h ^= hash_mix64(x);
    }
    return h;
}

static void keep(struct sm_route_job *j, struct par *par)
{
    struct verify_opts v = {.par = par};
    if (!j->may_keep || j->all_blank || !route_verify(j->fabric, j->old, &v, &j->proof))
        return;
    j->kept = true;
    j->ours = j->stamp.engine[0] != 0 && j->stamp.hash == tables_hash(j->fabric, j->old);
    snprintf(j->old->engine, sizeof(j->old->engine), "%s", j->ours ? j->stamp.engine : "adopted");
    tables_seal(j->old, false);
    j->result.tables = tables_ref(j->old);
    if (!j->ours || route_engine_parse(j->stamp.engine, &j->result.engine) != 0)
        j->result.engine = ROUTE_FILE;
    snprintf(j->result.why, sizeof(j->result.why), "%s",
             j->ours ? "the tables on the switches are ours and are proved: kept"
                     : "the tables found on the switches are proved: adopted as they are");
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
    if (j->result.engine == ROUTE_FILE) // a wrong file is for the operator to correct
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

static void work(void *arg, struct par *par)
{
    struct sm_route_job *j = arg;
    struct verify_opts v = {.par = par, .allow_credit_loops = j->allow_credit_loops};

    keep(j, par);
    if (j->kept)
        return;
    j->opts.par = par;
    j->status = route_compute(j->fabric, &j->opts, &j->result, &j->err);
    if (j->status != 0)
        return;
    if (!route_verify(j->fabric, j->result.tables, &v, &j->proof) && !salvage(j, &v)) {
        j->status = err_set(&j->err, -EPROTO, route_engine_name(j->result.engine),
                            "the computed tables do not hold: %s%s", j->proof.counter_example,
                            j->proof.credit_loop && j->result.engine != ROUTE_UPDN
                                ? "; routing.engine auto has no such loops"
                                : "");
        return;
    }
    j->hash = tables_hash(j->fabric, j->result.tables);
    tables_seal(j->old, false);
    j->status =
        route_plan_make(j->fabric, j->old, j->known, j->blank, j->result.tables, par, &j->plan, &j->err);
}

static void stamp_tables(struct sm_route_job *j)
{
    struct stamp s = {0};
    if (j->sm->db == NULL)
        return;
    snprintf(s.engine, sizeof(s.engine), "%s", route_engine_name(j->result.engine));
    s.hash = j->hash;
    db_blob_put(j->sm->db, j->sm->o.fabric, "tables", &s, sizeof(s), NULL, NULL);
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
        sm_sweep_failed(sm, &j->err);
        return;
    }
    if (!j->kept)
        stamp_tables(j);
    if (j->proof.unreached > 0)
        tell_of_gaps(sm, &j->proof);
    sm->next_tables = tables_ref(j->result.tables);
    sm_routed(sm);
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
    route_plan_free(j->plan);
    tables_unref(j->result.tables);
    tables_unref(j->old);
    fabric_unref(j->fabric);
    free(j->known);
    free(j->blank);
    free(j);
    sm->job = NULL;
}

// The route result and proof in force move to sm; called when the sweep succeeds.
void sm_route_adopt_result(struct sm *sm)
{
    if (sm->job == NULL)
        return; // nothing that routes depend on has changed
    sm->route = sm->job->result;
    sm->route.tables = NULL;
    sm->proof = sm->job->proof;
}

static void submit(struct sm *sm)
{
    struct sm_route_job *j = sm->job;
    sm_phase(sm, "route");
    j->job = (struct pool_job){.work = work, .done = done, .arg = j};
    pool_submit(sm->pool, &j->job);
}

// --- reading what the switches hold ---

static bool read_next(struct sm_pass *p, struct sm_dev *d, uint32_t *cursor, struct sm_item *it)
{
    struct sm_route_job *j = p->sm->job;
    if (!dev_is_switch(d) || d->node == ID_NONE || d->lft != DEV_LFT_UNKNOWN || !d->have_si || d->too_small)
        return false;
    uint32_t last = d->si.linear_fdb_top < j->fabric->top_lid ? d->si.linear_fdb_top : j->fabric->top_lid;
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
        j->known[sw] = false;
        return;
    }
    uint8_t *row = tables_row(j->old, sw) + (size_t)tag * LFT_BLOCK;
    memcpy(row, r->data, LFT_BLOCK);
    for (uint32_t i = 0; i < LFT_BLOCK; i++) // beyond the top nothing is forwarded
        if (tag * LFT_BLOCK + i > d->si.linear_fdb_top)
            row[i] = LFT_DROP;
}

static void read_finished(struct sm_pass *p)
{
    submit(p->sm);
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
            j->known[sw] = true;
            continue;
        }
        j->known[sw] = d->have_si;
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
                     "the switch has been reset: its tables and settings are lost and written anew");
        if (d->lft != DEV_LFT_SHADOW)
            sm_mcast_switch_reset(sm, d);
        j->known[sw] = d->have_si;
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
    if (sm->sweep.full || sm->tables == NULL || sm->unrouted || !sm_same_routes(sm->fabric, sm->next_fabric))
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
    j->known = xcalloc(n ? n : 1, sizeof(bool));
    j->blank = xcalloc(n ? n : 1, sizeof(bool));
    j->opts = (struct route_opts){
        .engine = sm->o.engine, .root_guids = sm->o.root_guids, .num_roots = sm->o.num_roots};
    if (sm->o.lft_file != NULL) {
        j->opts.file_text = sm->o.lft_file;
        j->opts.file_len = strlen(sm->o.lft_file);
    }
    j->allow_credit_loops = sm->o.allow_credit_loops;
    bool adopted = sm->tables != NULL && strcmp(sm->tables->engine, "adopted") == 0;
    j->may_keep = sm->o.adopt && !sm->reroute_now && (sm->tables == NULL || adopted);
    bool read = sort_switches(sm, j);
    j->old = sm->tables != NULL
                 ? tables_copy_for(sm->tables, sm->fabric, sm->next_fabric, sm->next_fabric->top_lid)
                 : tables_new(sm->next_fabric, sm->next_fabric->top_lid, "found");
    forget_rows(sm, j);
    void *blob = NULL;
    size_t len = 0;
    if (sm->db != NULL && j->may_keep && db_blob_get(sm->db, sm->o.fabric, "tables", &blob, &len) == 0 &&
        len == sizeof(j->stamp))
        memcpy(&j->stamp, blob, len);
    free(blob);
    j->stamp.engine[sizeof(j->stamp.engine) - 1] = 0;
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
