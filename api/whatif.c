// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/quality.h"
#include "api/whatif_priv.h"
#include "fabric/merge.h"
#include "lib/mono.h"
#include "lib/xalloc.h"

// --- where questions begin ---

static int compute_base(struct whatif_base *b, const struct computation *c, struct par *par, struct err *e)
{
    mono_t began = mono_now();
    e->code = 0;
    b->numbered = compute_number(c->f, NULL, e);
    if (e->code != 0)
        return e->code;
    b->f = b->blueprint = b->made_for = b->numbered != NULL ? b->numbered : c->f;
    b->opts = (struct route_opts){.engine = c->engine, .par = par};
    int rc = route_compute(b->f, &b->opts, &b->ideal, e);
    b->seconds = mono_seconds(mono_sub(mono_now(), began));
    b->computed = rc == 0;
    b->tables = b->ideal.tables;
    return rc;
}

bool *whatif_in_force(const struct fabric *f, const struct compute_routing *r)
{
    if (r->num_drains == 0)
        return NULL;
    bool *drained = xcalloc(f->num_ports + 1, sizeof(bool));
    for (size_t i = 0; i < r->num_drains; i++) {
        const struct node *n = fabric_by_guid(f, r->drain[i].guid);
        for (unsigned num = 1; n != NULL && num <= n->num_ports; num++) {
            port_id p = fabric_port_at(f, n, num), peer = fabric_port(f, p)->peer;
            if ((r->drain[i].port == 0 || r->drain[i].port == num) && port_valid(peer))
                drained[p.i] = drained[peer.i] = true;
        }
    }
    return drained;
}

int whatif_base_init(struct whatif_base *b, const struct computation *c, struct par *par, struct err *e)
{
    const struct compute_routing *r = &c->routing;
    int rc = 0;
    *b = (struct whatif_base){0};
    if (c->tables == NULL || r->made_for == NULL) {
        rc = compute_base(b, c, par, e);
        if (rc == 0 && c->tables != NULL) // in force, and not known of what
            b->tables = c->tables;
    } else {
        b->f = c->f;
        b->tables = c->tables;
        b->blueprint = r->blueprint;
        b->made_for = r->made_for;
        b->ideal = r->ideal;
        b->opts = r->opts;
        b->opts.par = par;
        b->drained = whatif_in_force(b->f, r);
    }
    return rc ? rc : route_base_new(b->made_for, &b->ideal, &b->opts, &b->base, e);
}

void whatif_base_done(struct whatif_base *b)
{
    route_base_free(b->base);
    if (b->computed)
        tables_unref(b->ideal.tables);
    fabric_unref(b->numbered);
    free(b->drained);
    *b = (struct whatif_base){0};
}

// Those that are set, malloc'd.
static port_id *ports_of(const bool *set, uint32_t num_ports, size_t *ret_n)
{
    port_id *port = xreallocarray(NULL, num_ports + 1, sizeof(*port));
    *ret_n = 0;
    for (uint32_t i = 0; i < num_ports; i++)
        if (set[i])
            port[(*ret_n)++] = (port_id){i};
    return port;
}

int whatif_repair(const struct whatif_base *b, const struct fabric *live, const bool *drained,
                  struct par *par, struct route_result *ret, struct err *e)
{
    size_t n;
    if (drained == NULL)
        return route_repair_from(b->base, live, par, ret, e);
    port_id *port = ports_of(drained, live->num_ports, &n);
    struct route_avoid *avoid = route_avoid_new(live, port, n);
    int rc = route_repair_avoiding(b->base, live, avoid, par, ret, e);
    route_avoid_free(avoid);
    free(port);
    return rc;
}

// --- one question ---

static int gather(struct whatif *w, struct err *e)
{
    struct computation *c = w->c;
    struct elements el;
    int rc = 0;
    elements_init(&el, w->base.f);
    fabric_edit_init(&w->edit, w->base.f);
    if (c->num_drain > 0)
        w->drained = xcalloc(w->base.f->num_ports + 1, sizeof(bool));
    for (size_t i = 0; i < c->num_fail && rc == 0; i++)
        rc = elements_fail(&el, &w->edit, c->fail[i], e);
    for (size_t i = 0; i < c->num_drain && rc == 0; i++)
        rc = elements_drain(&el, w->drained, c->drain[i], e);
    for (size_t i = 0; i < c->num_add && rc == 0; i++)
        rc = elements_add(&el, &w->edit, c->add[i], e);
    elements_done(&el);
    return rc;
}

// With those in force. Ports of what is added stand behind those that were there.
static void join_drained(struct whatif *w)
{
    if (w->drained == NULL && w->base.drained == NULL)
        return;
    bool asked = w->drained != NULL;
    w->drained = xreallocarray(w->drained, w->after->num_ports + 1, sizeof(bool));
    if (!asked)
        memset(w->drained, 0, w->base.f->num_ports);
    memset(w->drained + w->base.f->num_ports, 0, w->after->num_ports - w->base.f->num_ports);
    for (uint32_t i = 0; i < w->base.f->num_ports; i++) {
        w->drained[i] = asked && w->drained[i] && !w->edit.cut[i];
        w->asked.drained_links += w->drained[i] && w->after->port[i].peer.i > i;
        w->drained[i] |= w->base.drained != NULL && w->base.drained[i] && !w->edit.cut[i];
    }
}

static uint32_t count_ends(const struct fabric *f, const struct node *n)
{
    uint32_t ends = 0;
    for (unsigned num = 1; num <= n->num_ports && n->type == NODE_SWITCH; num++) {
        const struct node *peer = fabric_peer_node(f, fabric_port(f, fabric_port_at(f, n, num)));
        ends += peer != NULL && peer->host != ID_NONE;
    }
    return ends;
}

static void count_not_added(struct whatif *w)
{
    for (uint32_t i = 0; i < w->edit.num_node; i++) {
        const struct node *added = &w->after->node[w->base.f->num_nodes + i];
        if (count_ends(w->after, added) == 0)
            w->asked.ends_not_added += count_ends(w->base.f, &w->base.f->node[w->edit.node[i].like]);
    }
}

static int change_fabric(struct whatif *w, struct err *e)
{
    int rc = gather(w, e);
    if (rc != 0)
        return rc;
    w->after = w->edited = fabric_edit_apply(&w->edit, NULL);
    e->code = 0;
    if (w->edit.num_node > 0)
        w->numbered = compute_number(w->edited, w->base.blueprint, e);
    if (e->code != 0)
        return e->code;
    if (w->numbered != NULL)
        w->after = w->numbered;
    w->asked = (struct whatif_asked){.failed_nodes = w->edit.num_dead,
                                     .failed_links = w->edit.num_cut,
                                     .added_nodes = w->edit.num_node,
                                     .added_links = w->edit.num_link};
    count_not_added(w);
    join_drained(w);
    return 0;
}

static void rate(struct whatif *w, struct whatif_side *s, const struct fabric *f)
{
    // A cycle that was there before is allowed now: it was asked for.
    struct verify_opts o = {.par = w->par,
                            .allow_credit_loops = s == &w->before_side || w->before_side.proof.credit_loop};
    compute_verify(f, s->r.tables, &o, &s->proof, &s->verify);
    quality_rate_keep(f, s->r.tables, w->par, &s->q, &s->quality);
    s->row = (struct whatif_side_row){.engine = s->r.tables->engine,
                                      .why = s->r.why[0] ? s->r.why : NULL,
                                      .quality = s->quality.data,
                                      .seconds = s->seconds,
                                      .verify = &s->verify};
}

// What is written to switches that can be reached; tables of others stay as they are.
static int plan(struct whatif *w, struct whatif_side *s, const struct fabric_tables *old, struct err *e)
{
    struct route_plan *p;
    bool *unwritten = compute_unwritten(w->after, &w->edit, &w->reach);
    int rc = route_plan_make(w->after, old, NULL, NULL, s->r.tables, w->par, &p, e);
    if (rc == 0) {
        struct compute_changed d = {0};
        compute_compare(w->after, old, s->r.tables, unwritten, &d);
        s->changed =
            (struct whatif_changed){.entries = d.entries, .blocks = d.blocks, .switches = d.switches};
        for (uint32_t i = 0; i < p->num_waves; i++) {
            int64_t had = s->changed.mads;
            for (uint32_t k = 0; k < p->wave[i].num_blocks; k++)
                s->changed.mads += !unwritten[w->after->switch_node[p->wave[i].block[k].sw]];
            s->changed.waves += s->changed.mads > had;
        }
        s->changed.paths = (int64_t)route_paths_moved(w->after, old, s->r.tables, w->par);
        s->row.changed = &s->changed;
        route_plan_free(p);
    }
    free(unwritten);
    return rc;
}

static int repair(struct whatif *w, struct whatif_side *s, const struct whatif_base *base, struct err *e)
{
    mono_t began = mono_now();
    int rc = whatif_repair(base, w->after, w->drained, w->par, &s->r, e);
    s->seconds += mono_seconds(mono_sub(mono_now(), began));
    if (rc == 0)
        rate(w, s, w->after);
    return rc;
}

// The blueprint with what is added, the ideal for it, and what is in force then.
static int accept(struct whatif *w, struct err *e)
{
    struct whatif_side *s = &w->accepted_side;
    struct whatif_base base = {.opts = w->base.opts};
    const struct fabric *blueprint = fabric_merge(w->base.blueprint, w->after);
    mono_t began = mono_now();
    int rc = route_compute(blueprint, &base.opts, &base.ideal, e);
    base.computed = rc == 0;
    if (rc == 0)
        rc = route_base_new(blueprint, &base.ideal, &base.opts, &base.base, e);
    s->seconds = mono_seconds(mono_sub(mono_now(), began));
    if (rc == 0)
        rc = repair(w, s, &base, e);
    whatif_base_done(&base);
    fabric_unref(blueprint);
    return rc;
}

// What is in force before, by the switches of `after`.
static struct fabric_tables *old_tables(const struct whatif *w)
{
    const struct fabric_tables *t = w->base.tables;
    uint16_t top = t->top_lid;
    const struct whatif_side *s[] = {&w->after_side, &w->accepted_side};
    for (unsigned i = 0; i < 2; i++)
        if (s[i]->r.tables != NULL && s[i]->r.tables->top_lid > top)
            top = s[i]->r.tables->top_lid;
    if (fabric_same_switches(w->base.f, w->after) && top < t->lids)
        return tables_ref(t);
    struct fabric_tables *copy = tables_copy_for(t, w->base.f, w->after, top);
    tables_seal(copy, false);
    return copy;
}

static void find_drained(struct whatif *w)
{
    const struct fabric *f = w->after;
    size_t n;
    port_id *port = ports_of(w->drained, f->num_ports, &n);
    struct route_avoid *x = route_avoid_new(f, port, n);
    for (size_t i = 0; i < n; i++) {
        enum route_avoided how = route_avoid_how(x, port[i]);
        if (f->port[port[i].i].peer.i < port[i].i || how == ROUTE_AVOID_NOT) // each cable once
            continue;
        w->drained_row.links++;
        w->drained_row.spared += how == ROUTE_AVOID_SPARED;
        w->drained_row.own += how == ROUTE_AVOID_OWN;
        w->drained_row.carry_on += how == ROUTE_AVOID_CARRIES_ON;
    }
    route_avoid_free(x);
    free(port);
}

// Without the cables between switches that are drained.
static const struct fabric *pull(const struct fabric *f, const bool *drained, uint32_t ports)
{
    size_t n = 0;
    port_id *port = xreallocarray(NULL, ports + 1, sizeof(*port));
    for (uint32_t i = 0; i < ports; i++) {
        const struct node *peer = drained[i] ? fabric_peer_node(f, &f->port[i]) : NULL;
        if (peer != NULL && peer->type == NODE_SWITCH && fabric_node(f, f->port[i].node)->type == NODE_SWITCH)
            port[n++] = (port_id){i};
    }
    const struct fabric *without = n > 0 ? fabric_without_links(f, port, n) : fabric_ref(f);
    free(port);
    return without;
}

// Beside what is drained already.
static void find_in_vain(struct whatif *w)
{
    const struct fabric *before = w->base.drained != NULL
                                      ? pull(w->after, w->base.drained, w->base.f->num_ports)
                                      : fabric_ref(w->after);
    const struct fabric *pulled = pull(w->after, w->drained, w->after->num_ports);
    reach_compare(before, pulled, NULL, &w->in_vain);
    w->drained_row.ends_in_vain = w->in_vain.num_end;
    fabric_unref(pulled);
    fabric_unref(before);
}

// --- bandwidth ---

static bool adapters_fail(const struct whatif *w)
{
    const struct fabric *f = w->base.f;
    for (uint32_t i = 0; i < f->num_nodes && w->edit.num_dead > 0; i++)
        if (w->edit.dead[i] && f->node[i].type != NODE_SWITCH)
            return true;
    return false;
}

static void find_means(struct whatif *w)
{
    whatif_means(&w->before_side.q, &w->after_side.q,
                 w->accepted_side.r.tables != NULL ? &w->accepted_side.q : NULL,
                 w->reach.num_end > 0 && !adapters_fail(w), w->mean);
}

// --- together ---

static int answer(struct whatif *w, struct err *e)
{
    struct whatif_side *before = &w->before_side;
    int rc = whatif_base_init(&w->base, w->c, w->par, e);
    if (rc == 0)
        rc = change_fabric(w, e);
    if (rc != 0)
        return rc;
    before->r = w->base.ideal;
    before->r.tables = tables_ref(w->base.tables);
    before->seconds = w->base.computed ? w->base.seconds : NAN;
    rate(w, before, w->base.f);
    if (w->base.ideal.tables != w->base.tables)
        quality_rate(w->base.made_for, w->base.ideal.tables, w->par, &w->ideal);
    reach_compare(w->base.f, w->after, w->edit.dead, &w->reach);
    rc = repair(w, &w->after_side, &w->base, e);
    if (rc == 0 && w->edit.num_node + w->edit.num_link > 0)
        rc = accept(w, e);
    if (rc != 0)
        return rc;
    struct fabric_tables *old = old_tables(w);
    rc = plan(w, &w->after_side, old, e);
    if (rc == 0 && w->accepted_side.r.tables != NULL)
        rc = plan(w, &w->accepted_side, old, e);
    tables_unref(old);
    if (rc == 0 && w->drained != NULL)
        find_drained(w);
    if (rc == 0 && w->drained != NULL && w->c->num_drain > 0)
        find_in_vain(w);
    if (rc == 0)
        find_means(w);
    return rc;
}

static void side_done(struct whatif_side *s)
{
    tables_unref(s->r.tables);
    buf_done(&s->quality);
}

void whatif_run(struct computation *c, struct par *par)
{
    struct whatif *w = xcalloc(1, sizeof(*w));
    mono_t began = mono_now();
    w->c = c;
    w->par = par;
    if (answer(w, &c->err) == 0)
        whatif_render(w, mono_seconds(mono_sub(mono_now(), began)));
    side_done(&w->before_side);
    side_done(&w->after_side);
    side_done(&w->accepted_side);
    reach_change_done(&w->reach);
    reach_change_done(&w->in_vain);
    buf_done(&w->ideal);
    free(w->drained);
    fabric_unref(w->numbered);
    fabric_unref(w->edited);
    fabric_edit_done(&w->edit);
    whatif_base_done(&w->base);
    free(w);
}
