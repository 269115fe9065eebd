// SPDX-License-Identifier: Apache-2.0
#include "tests/whole/tele_world.h"

#include <string.h>

static void on_swept(void *arg)
{
    struct world *w = arg;
    w->sweeps++;
    w->swept = true;
    if (w->series != NULL) // virtual time does not wait for the disk
        series_flush(w->series);
}

static void on_event(void *arg, const char *kind, const char *severity, const char *subject, const char *text)
{
    struct world *w = arg;
    (void)severity;
    (void)subject;
    buf_printf(&w->log, "%s: %s\n", kind, text);
}

void world_fabric(struct world *w)
{
    struct sm_blueprint b;
    sm_get_blueprint(w->r.sm, &b);
    tele_blueprint(w->tele, b.known);
    tele_fabric(w->tele, sm_fabric(w->r.sm), sm_tables(w->r.sm), NULL);
}

void world_collect(struct world *w)
{
    struct tele_callbacks cb = {.arg = w, .event = on_event, .swept = on_swept};
    w->tele = tele_new(w->r.loop, w->r.engine, w->series, w->alarms, &w->o, &cb);
    world_fabric(w);
}

void world_up(struct world *w, const char *name, const struct sim_opts *so)
{
    rig_init(&w->r, name, so);
    w->r.opts.sweep_interval_ns = 0; // nothing but telemetry and what tests do
    rig_up(&w->r);
    rig_sweeps(&w->r, 1, 60);
    w->o.interval_ns = w->o.interval_ns ? w->o.interval_ns : INTERVAL;
    w->o.detail_interval_ns = w->o.detail_interval_ns ? w->o.detail_interval_ns : INTERVAL;
    w->o.fabric = "default";
    if (w->alarmed)
        w->alarms = alarms_new(w->r.loop, NULL, &(struct alarms_callbacks){0});
    world_collect(w);
}

void world_down(struct world *w)
{
    pool_free(w->r.pool);
    mad_engine_free(w->r.engine);
    tele_free(w->tele);
    sm_free(w->r.sm);
    w->r.transport->ops->free(w->r.transport);
    db_close(w->r.db);
    w->r.sm = NULL;
    series_close(w->series);
    alarms_free(w->alarms);
    rig_done(&w->r);
    buf_done(&w->log);
}

void world_sweeps(struct world *w, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        w->swept = false;
        if (!loop_run_until(w->r.loop, &w->swept, 3 * w->o.interval_ns))
            fail_msg("no sweep of counters has ended");
    }
}

const struct tele_table *world_table(const struct world *w)
{
    return tele_table(w->tele);
}

uint32_t world_slot(const struct world *w, uint64_t guid, unsigned port)
{
    uint32_t s = tele_slot(world_table(w), guid, (uint8_t)port);
    assert_true(s != TELE_SLOT_NONE);
    return s;
}

uint64_t world_value(const struct world *w, uint64_t guid, unsigned port, enum tele_counter c)
{
    uint32_t s = world_slot(w, guid, port);
    if (!tele_have(world_table(w), s, c))
        fail_msg("%s of 0x%llx/%u is not there", tele_rows[c].name, (unsigned long long)guid, port);
    return tele_value(world_table(w), s, c);
}

void world_add(struct world *w, uint64_t guid, unsigned port, enum sim_counter c, uint64_t n)
{
    assert_int_equal(sim_counter_add(w->r.sim, guid, port, c, n), 0);
}

struct tele_status world_status(const struct world *w)
{
    struct tele_status st;
    tele_get_status(w->tele, &st);
    return st;
}

const struct node *world_nth(const struct world *w, enum node_role role, unsigned i)
{
    const struct fabric *f = sm_fabric(w->r.sm);
    for (uint32_t n = 0; n < f->num_nodes; n++)
        if (f->node[n].role == role && i-- == 0)
            return &f->node[n];
    fail_msg("no such node");
    return NULL;
}
