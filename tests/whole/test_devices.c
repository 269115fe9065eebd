// SPDX-License-Identifier: Apache-2.0
// Modules and devices over a whole simulated fabric in virtual time: what ibdiagnet has seen becomes alarms
// that name the place, the far end and the cable, one a device, and that end when it is well again.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/err.h"
#include "telemetry/module.h"
#include "telemetry/telemetry.h"
#include "tests/whole/rig.h"

#define INTERVAL (10 * MONO_S)
#define MINUTE (60 * MONO_S)

struct world {
    struct rig r;
    struct tele *tele;
    struct alarms *alarms;
    int64_t wall_zero;
    bool swept;
    uint64_t spine, hca; // NodeGUIDs
    const char *fan3;    // turns a minute of the spine's
    const char *dc;      // of its second power supply
    int asic, module;    // degrees C
    int dbm;             // what the adapter receives on lane 2
    bool spine_is_named; // the file has it
};

static void on_swept(void *arg)
{
    struct world *w = arg;
    w->swept = true;
}

static const struct node *nth(const struct world *w, enum node_role role, unsigned i)
{
    const struct fabric *f = sm_fabric(w->r.sm);
    for (uint32_t n = 0; n < f->num_nodes; n++)
        if (f->node[n].role == role && i-- == 0)
            return &f->node[n];
    fail_msg("no such node");
    return NULL;
}

static int setup(void **state)
{
    static struct world w;
    struct sm_blueprint b;
    struct tele_opts o = {.interval_ns = INTERVAL, .fabric = "default"};
    struct tele_callbacks cb = {.arg = &w, .swept = on_swept};
    struct alarms_callbacks acb = {0};
    memset(&w, 0, sizeof(w));
    rig_init(&w.r, "rail-64", NULL);
    w.r.opts.sweep_interval_ns = 0;
    rig_up(&w.r);
    rig_sweeps(&w.r, 1, 60);
    w.alarms = alarms_new(w.r.loop, NULL, &acb);
    w.wall_zero = wall_now_ns() - loop_now(w.r.loop).ns;
    w.tele = tele_new(w.r.loop, w.r.engine, NULL, w.alarms, &o, &cb);
    sm_get_blueprint(w.r.sm, &b);
    tele_blueprint(w.tele, b.known);
    tele_fabric(w.tele, sm_fabric(w.r.sm), sm_tables(w.r.sm), NULL);
    w.spine = nth(&w, ROLE_SPINE, 1)->guid;
    w.hca = nth(&w, ROLE_HOST, 7)->guid;
    w.fan3 = "9000";
    w.dc = "OK";
    w.asic = 50;
    w.module = 50;
    w.dbm = 1;
    w.spine_is_named = true;
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    pool_free(w->r.pool);
    mad_engine_free(w->r.engine);
    tele_free(w->tele);
    sm_free(w->r.sm);
    w->r.transport->ops->free(w->r.transport);
    db_close(w->r.db);
    w->r.sm = NULL;
    alarms_free(w->alarms);
    rig_done(&w->r);
    return 0;
}

static void pass(struct world *w, int64_t ns)
{
    for (int64_t end = loop_now(w->r.loop).ns + ns; loop_now(w->r.loop).ns < end;) {
        w->swept = false;
        if (!loop_run_until(w->r.loop, &w->swept, 3 * INTERVAL))
            fail_msg("no sweep of counters has ended");
    }
}

static void spine_text(const struct world *w, struct buf *b)
{
    const struct node *n = fabric_by_guid(sm_fabric(w->r.sm), w->spine);
    buf_printf(
        b, "START_TEMP_SENSING\nNodeGUID,CurrentTemperature\n0x%016llx,%d\n0x%016llx,97\nEND_TEMP_SENSING\n",
        (unsigned long long)w->spine, w->asic, (unsigned long long)w->hca);
    buf_puts(b, "START_FANS_THRESHOLDS\nNodeGuid,SensorIndex,MinSpeed,MaxSpeed\n");
    for (int i = 1; i <= 4; i++)
        buf_printf(b, "0x%016llx,%d,4500,22000\n", (unsigned long long)w->spine, i);
    buf_puts(b, "END_FANS_THRESHOLDS\nSTART_FANS_SPEED\nNodeGuid,SensorIndex,FanSpeed\n");
    for (int i = 1; i <= 4; i++)
        buf_printf(b, "0x%016llx,%d,%s\n", (unsigned long long)w->spine, i, i >= 3 ? w->fan3 : "9000");
    buf_printf(b,
               "END_FANS_SPEED\nSTART_POWER_SUPPLIES\nNodeGuid,PSUIndex,IsPresent,DCState\n"
               "0x%016llx,1,Yes,OK\n0x%016llx,2,Yes,%s\n0xdeadbeef,1,Yes,ERROR\nEND_POWER_SUPPLIES\n",
               (unsigned long long)w->spine, (unsigned long long)w->spine, w->dc);
    buf_puts(b, "START_CABLE_INFO\nNodeGuid,PortNum,SN,Temperature\n");
    for (unsigned i = 1; i <= n->num_ports; i++)
        buf_printf(b, "0x%016llx,%u,T%u,%dC\n", (unsigned long long)w->spine, i, i, w->module);
    buf_puts(b, "END_CABLE_INFO\n");
}

// ibdiagnet runs: age ago.
static void diagnose(struct world *w, int64_t age)
{
    struct buf b = {0};
    if (w->spine_is_named)
        spine_text(w, &b);
    buf_printf(&b,
               "START_CABLE_INFO\nNodeGuid,PortNum,SN,RX1Power,RX2Power,RXPowerHighThresh,RXPowerLowThresh\n"
               "0x%016llx,1,X-77,1.5,%d,4,65530\nEND_CABLE_INFO\n",
               (unsigned long long)w->hca, w->dbm < 0 ? 65536 + w->dbm : w->dbm);
    tele_set_modules(w->tele,
                     tele_modules_parse(b.data, w->wall_zero + loop_now(w->r.loop).ns - age, NULL, NULL));
    buf_done(&b);
    pass(w, 2 * INTERVAL);
}

static void diagnose_nothing(struct world *w)
{
    tele_set_modules(w->tele, tele_modules_ref(tele_modules_of(w->tele)));
}

static const struct alarm *only(const struct world *w, const char *rule)
{
    const struct alarm *a, *found = NULL;
    uint32_t n = alarms_list(w->alarms, &a);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(a[i].rule->id, rule) == 0) {
            if (found != NULL)
                fail_msg("%s: %s; and %s", rule, found->place, a[i].place);
            found = &a[i];
        }
    return found;
}

static void none(const struct world *w)
{
    const struct alarm *a;
    if (alarms_list(w->alarms, &a) > 0)
        fail_msg("%s: %s: %s", a->rule->id, a->place, a->reason);
}

static void spines_fans(void **state)
{
    struct world *w = *state;
    pass(w, 3 * INTERVAL);
    none(w); // no source
    assert_null(tele_device(w->tele, w->spine));
    diagnose(w, 0);
    none(w); // all well; an adapter's 97 C is no switch's, 0xdeadbeef is of another fabric
    assert_true(tele_device(w->tele, w->hca)->celsius == 97);

    // Two fans stand, then a power supply fails and the ASIC gets hot: one alarm of one spine.
    w->fan3 = "1200";
    diagnose(w, 0);
    const struct alarm *a = only(w, "L18");
    assert_non_null(a);
    assert_int_equal(a->severity, ALARM_CRITICAL);
    assert_int_equal(a->node_guid[0], w->spine);
    assert_string_equal(a->place, "spine-02");
    assert_string_equal(
        a->reason,
        "fan 3 at 1200 turns a minute, 4500 at least; fan 4 at 1200 turns a minute, 4500 at least");
    assert_non_null(strstr(a->evidence, "\"fans_failed\":2"));
    assert_true(a->active && a->count == 1);
    uint64_t id = a->id;
    w->dc = "ERROR";
    w->asic = 85;
    w->module = 72; // all its modules with it: one alarm too
    diagnose(w, 0);
    a = only(w, "L18");
    assert_int_equal(a->id, id);
    assert_non_null(strstr(a->reason, "power supply 2: DC ERROR; ASIC 85 C, limit 80"));
    a = only(w, "L16");
    assert_int_equal(a->node_guid[0], w->spine);
    assert_true(a->group && a->members == fabric_by_guid(sm_fabric(w->r.sm), w->spine)->num_ports);

    // Of a spine that ibdiagnet did not reach nothing is better.
    w->spine_is_named = false;
    pass(w, 30 * MINUTE);
    diagnose(w, 0);
    assert_true(only(w, "L18")->active && only(w, "L16")->active);
    w->spine_is_named = true;
    w->fan3 = "9000";
    w->dc = "OK";
    w->asic = 76; // not 5 C below
    w->module = 60;
    diagnose(w, 0);
    assert_true(only(w, "L18")->active);
    assert_int_equal(only(w, "L18")->severity, ALARM_MINOR);
    w->asic = 60;
    pass(w, 11 * MINUTE);
    diagnose(w, 0);
    none(w);
}

static void dim_fibre(void **state)
{
    struct world *w = *state;
    w->dbm = -6; // the limit itself
    diagnose(w, 0);
    none(w);
    w->dbm = -12;
    diagnose(w, 0);
    const struct alarm *a = only(w, "L17");
    assert_non_null(a);
    assert_int_equal(a->severity, ALARM_MAJOR);
    assert_string_equal(a->cable, "X-77");
    assert_non_null(strstr(a->place, " <-> "));
    assert_true(a->peer[0] != 0 && strstr(a->place, a->peer) != NULL);
    assert_non_null(strstr(a->reason, "-12.0 dBm received on lane 2 at "));
    assert_non_null(strstr(a->evidence, "\"dbm\":-12.00,\"limit_dbm\":-6.00"));
    assert_string_equal(a->advice, a->rule->advice);
    assert_true(a->node_guid[0] == w->hca || a->node_guid[1] == w->hca);
    w->dbm = 1;
    pass(w, 5 * MINUTE);
    diagnose(w, 0);
    pass(w, 30 * MINUTE); // one good reading is none of ten minutes
    assert_true(only(w, "L17")->active);
    diagnose(w, 0);
    none(w);
}

// What is older than a day is shown and says nothing; without a source what stood is over.
static void old_and_none(void **state)
{
    struct world *w = *state;
    w->dbm = -12;
    w->fan3 = "0";
    diagnose(w, 25 * 3600 * MONO_S);
    none(w);
    assert_int_equal(tele_device(w->tele, w->spine)->fan[2].state, PART_FAILED);
    diagnose(w, 23 * 3600 * MONO_S);
    assert_non_null(only(w, "L17"));
    assert_non_null(only(w, "L18"));
    diagnose_nothing(w); // nobody writes the file any more
    assert_non_null(strstr(only(w, "L18")->reason, "; not read for 16 h"));
    assert_non_null(strstr(only(w, "L18")->evidence, ",\"not_read_hours\":16}"));
    pass(w, 75 * MINUTE);
    diagnose_nothing(w);
    pass(w, 15 * MINUTE);
    none(w);
    diagnose(w, 0);
    assert_true(only(w, "L17")->active && only(w, "L18")->active);
    tele_set_modules(w->tele, NULL);
    pass(w, 25 * MINUTE);
    none(w);
    assert_null(tele_device(w->tele, w->spine));
}

// A spine that is away keeps its alarm; one that is not meant to be there any more takes it along.
static void taken_away(void **state)
{
    struct world *w = *state;
    unsigned ports = fabric_by_guid(sm_fabric(w->r.sm), w->spine)->num_ports;
    w->fan3 = "0";
    diagnose(w, 0);
    assert_true(only(w, "L18")->active);
    struct sm_blueprint b;
    tele_blueprint(w->tele, NULL);
    tele_fabric(w->tele, NULL, NULL, NULL); // not the master for a while: what there is is not known
    diagnose_nothing(w);
    assert_true(only(w, "L18")->active);
    sm_get_blueprint(w->r.sm, &b);
    tele_blueprint(w->tele, b.known);
    for (unsigned i = 1; i <= ports; i++)
        sim_link_set(w->r.sim, w->spine, i, false);
    rig_run(&w->r, 5 * MONO_S);
    assert_null(fabric_by_guid(sm_fabric(w->r.sm), w->spine));
    tele_fabric(w->tele, sm_fabric(w->r.sm), sm_tables(w->r.sm), NULL);
    pass(w, INTERVAL);
    assert_true(only(w, "L18")->active);
    tele_blueprint(w->tele, NULL);
    tele_fabric(w->tele, sm_fabric(w->r.sm), sm_tables(w->r.sm), NULL);
    assert_false(only(w, "L18")->active);
    pass(w, 11 * MINUTE);
    assert_null(only(w, "L18"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(spines_fans), T(dim_fibre), T(old_and_none), T(taken_away)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
