// SPDX-License-Identifier: Apache-2.0
// Modules and devices over a whole simulated fabric in virtual time: what ibdiagnet has seen becomes alarms
// that name the place, the far end and the cable, one a device, and that end when it is well again.
#include "tests/whole/tele_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"
#include "telemetry/module.h"

#define MINUTE (60 * MONO_S)

struct site {
    struct world w;
    int64_t wall_zero;
    uint64_t spine, hca; // NodeGUIDs
    const char *fan3;    // turns a minute of the spine's
    const char *dc;      // of its second power supply
    int asic, module;    // degrees C
    int dbm;             // what the adapter receives on lane 2
    bool spine_is_named; // the file has it
};

static int setup(void **state)
{
    static struct site s;
    s = (struct site){.w.alarmed = true,
                      .fan3 = "9000",
                      .dc = "OK",
                      .asic = 50,
                      .module = 50,
                      .dbm = 1,
                      .spine_is_named = true};
    world_up(&s.w, "rail-64", NULL);
    s.wall_zero = wall_now_ns() - loop_now(s.w.r.loop).ns;
    s.spine = world_nth(&s.w, ROLE_SPINE, 1)->guid;
    s.hca = world_nth(&s.w, ROLE_HOST, 7)->guid;
    *state = &s;
    return 0;
}

static int teardown(void **state)
{
    struct site *s = *state;
    world_down(&s->w);
    return 0;
}

static void pass(struct site *s, int64_t ns)
{
    for (int64_t end = loop_now(s->w.r.loop).ns + ns; loop_now(s->w.r.loop).ns < end;)
        world_sweeps(&s->w, 1);
}

static void spine_text(const struct site *s, struct buf *b)
{
    const struct node *n = fabric_by_guid(sm_fabric(s->w.r.sm), s->spine);
    buf_printf(
        b, "START_TEMP_SENSING\nNodeGUID,CurrentTemperature\n0x%016llx,%d\n0x%016llx,97\nEND_TEMP_SENSING\n",
        (unsigned long long)s->spine, s->asic, (unsigned long long)s->hca);
    buf_puts(b, "START_FANS_THRESHOLDS\nNodeGuid,SensorIndex,MinSpeed,MaxSpeed\n");
    for (int i = 1; i <= 4; i++)
        buf_printf(b, "0x%016llx,%d,4500,22000\n", (unsigned long long)s->spine, i);
    buf_puts(b, "END_FANS_THRESHOLDS\nSTART_FANS_SPEED\nNodeGuid,SensorIndex,FanSpeed\n");
    for (int i = 1; i <= 4; i++)
        buf_printf(b, "0x%016llx,%d,%s\n", (unsigned long long)s->spine, i, i >= 3 ? s->fan3 : "9000");
    buf_printf(b,
               "END_FANS_SPEED\nSTART_POWER_SUPPLIES\nNodeGuid,PSUIndex,IsPresent,DCState\n"
               "0x%016llx,1,Yes,OK\n0x%016llx,2,Yes,%s\n0xdeadbeef,1,Yes,ERROR\nEND_POWER_SUPPLIES\n",
               (unsigned long long)s->spine, (unsigned long long)s->spine, s->dc);
    buf_puts(b, "START_CABLE_INFO\nNodeGuid,PortNum,SN,Temperature\n");
    for (unsigned i = 1; i <= n->num_ports; i++)
        buf_printf(b, "0x%016llx,%u,T%u,%dC\n", (unsigned long long)s->spine, i, i, s->module);
    buf_puts(b, "END_CABLE_INFO\n");
}

// ibdiagnet runs: age ago.
static void diagnose(struct site *s, int64_t age)
{
    struct buf b = {0};
    if (s->spine_is_named)
        spine_text(s, &b);
    buf_printf(&b,
               "START_CABLE_INFO\nNodeGuid,PortNum,SN,RX1Power,RX2Power,RXPowerHighThresh,RXPowerLowThresh\n"
               "0x%016llx,1,X-77,1.5,%d,4,65530\nEND_CABLE_INFO\n",
               (unsigned long long)s->hca, s->dbm < 0 ? 65536 + s->dbm : s->dbm);
    tele_set_modules(s->w.tele,
                     tele_modules_parse(b.data, s->wall_zero + loop_now(s->w.r.loop).ns - age, NULL, NULL));
    buf_done(&b);
    pass(s, 2 * INTERVAL);
}

static void diagnose_nothing(struct site *s)
{
    tele_set_modules(s->w.tele, tele_modules_ref(tele_modules_of(s->w.tele)));
}

static const struct alarm *only(const struct site *s, const char *rule)
{
    const struct alarm *a, *found = NULL;
    uint32_t n = alarms_list(s->w.alarms, &a);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(a[i].rule->id, rule) == 0) {
            if (found != NULL)
                fail_msg("%s: %s; and %s", rule, found->place, a[i].place);
            found = &a[i];
        }
    return found;
}

static void none(const struct site *s)
{
    const struct alarm *a;
    if (alarms_list(s->w.alarms, &a) > 0)
        fail_msg("%s: %s: %s", a->rule->id, a->place, a->reason);
}

static void spines_fans(void **state)
{
    struct site *s = *state;
    pass(s, 3 * INTERVAL);
    none(s); // no source
    assert_null(tele_device(s->w.tele, s->spine));
    diagnose(s, 0);
    none(s); // all well; an adapter's 97 C is no switch's, 0xdeadbeef is of another fabric
    assert_true(tele_device(s->w.tele, s->hca)->celsius == 97);

    // Two fans stand, then a power supply fails and the ASIC gets hot: one alarm of one spine.
    s->fan3 = "1200";
    diagnose(s, 0);
    const struct alarm *a = only(s, "L18");
    assert_non_null(a);
    assert_int_equal(a->severity, ALARM_CRITICAL);
    assert_int_equal(a->node_guid[0], s->spine);
    assert_string_equal(a->place, "spine-02");
    assert_string_equal(
        a->reason,
        "fan 3 at 1200 turns a minute, 4500 at least; fan 4 at 1200 turns a minute, 4500 at least");
    assert_non_null(strstr(a->evidence, "\"fans_failed\":2"));
    assert_true(a->active && a->count == 1);
    uint64_t id = a->id;
    s->dc = "ERROR";
    s->asic = 85;
    s->module = 72; // all its modules with it: one alarm too
    diagnose(s, 0);
    a = only(s, "L18");
    assert_int_equal(a->id, id);
    assert_non_null(strstr(a->reason, "power supply 2: DC ERROR; ASIC 85 C, limit 80"));
    a = only(s, "L16");
    assert_int_equal(a->node_guid[0], s->spine);
    assert_true(a->group && a->members == fabric_by_guid(sm_fabric(s->w.r.sm), s->spine)->num_ports);
    assert_int_equal(a->root, id); // of the fans and the ASIC
    assert_int_equal(only(s, "L18")->followers, 1);

    // Of a spine that ibdiagnet did not reach nothing is better.
    s->spine_is_named = false;
    pass(s, 30 * MINUTE);
    diagnose(s, 0);
    assert_true(only(s, "L18")->active && only(s, "L16")->active);
    s->spine_is_named = true;
    s->fan3 = "9000";
    s->dc = "OK";
    s->asic = 76; // not 5 C below
    s->module = 60;
    diagnose(s, 0);
    assert_true(only(s, "L18")->active);
    assert_int_equal(only(s, "L18")->severity, ALARM_MINOR);
    s->asic = 60;
    pass(s, 11 * MINUTE);
    diagnose(s, 0);
    none(s);
}

static void dim_fibre(void **state)
{
    struct site *s = *state;
    s->dbm = -6; // the limit itself
    diagnose(s, 0);
    none(s);
    s->dbm = -12;
    diagnose(s, 0);
    const struct alarm *a = only(s, "L17");
    assert_non_null(a);
    assert_int_equal(a->severity, ALARM_MAJOR);
    assert_string_equal(a->cable, "X-77");
    assert_non_null(strstr(a->place, " <-> "));
    assert_true(a->peer[0] != 0 && strstr(a->place, a->peer) != NULL);
    assert_non_null(strstr(a->reason, "-12.0 dBm received on lane 2 at "));
    assert_non_null(strstr(a->evidence, "\"dbm\":-12.00,\"limit_dbm\":-6.00"));
    assert_string_equal(a->advice, a->rule->advice);
    assert_true(a->node_guid[0] == s->hca || a->node_guid[1] == s->hca);
    s->dbm = 1;
    pass(s, 5 * MINUTE);
    diagnose(s, 0);
    pass(s, 30 * MINUTE); // one good reading is none of ten minutes
    assert_true(only(s, "L17")->active);
    diagnose(s, 0);
    none(s);
}

// What is older than a day is shown and says nothing; without a source what stood is over.
static void old_and_none(void **state)
{
    struct site *s = *state;
    s->dbm = -12;
    s->fan3 = "0";
    diagnose(s, 25 * 3600 * MONO_S);
    none(s);
    assert_int_equal(tele_device(s->w.tele, s->spine)->fan[2].state, PART_FAILED);
    diagnose(s, 23 * 3600 * MONO_S);
    assert_non_null(only(s, "L17"));
    assert_non_null(only(s, "L18"));
    diagnose_nothing(s); // nobody writes the file any more
    assert_non_null(strstr(only(s, "L18")->reason, "; not read for 16 h"));
    assert_non_null(strstr(only(s, "L18")->evidence, ",\"not_read_hours\":16}"));
    pass(s, 75 * MINUTE);
    diagnose_nothing(s);
    pass(s, 15 * MINUTE);
    none(s);
    diagnose(s, 0);
    assert_true(only(s, "L17")->active && only(s, "L18")->active);
    tele_set_modules(s->w.tele, NULL);
    pass(s, 25 * MINUTE);
    none(s);
    assert_null(tele_device(s->w.tele, s->spine));
}

// A spine that is away keeps its alarm; one that is not meant to be there any more takes it along.
static void taken_away(void **state)
{
    struct site *s = *state;
    unsigned ports = fabric_by_guid(sm_fabric(s->w.r.sm), s->spine)->num_ports;
    s->fan3 = "0";
    diagnose(s, 0);
    assert_true(only(s, "L18")->active);
    struct sm_blueprint b;
    tele_blueprint(s->w.tele, NULL);
    tele_fabric(s->w.tele, NULL, NULL, NULL); // not the master for a while: what there is is not known
    diagnose_nothing(s);
    assert_true(only(s, "L18")->active);
    sm_get_blueprint(s->w.r.sm, &b);
    tele_blueprint(s->w.tele, b.known);
    for (unsigned i = 1; i <= ports; i++)
        sim_link_set(s->w.r.sim, s->spine, i, false);
    rig_run(&s->w.r, 5 * MONO_S);
    assert_null(fabric_by_guid(sm_fabric(s->w.r.sm), s->spine));
    tele_fabric(s->w.tele, sm_fabric(s->w.r.sm), sm_tables(s->w.r.sm), NULL);
    pass(s, INTERVAL);
    assert_true(only(s, "L18")->active);
    tele_blueprint(s->w.tele, NULL);
    tele_fabric(s->w.tele, sm_fabric(s->w.r.sm), sm_tables(s->w.r.sm), NULL);
    assert_false(only(s, "L18")->active);
    pass(s, 11 * MINUTE);
    assert_null(only(s, "L18"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(spines_fans), T(dim_fibre), T(old_and_none), T(taken_away)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
