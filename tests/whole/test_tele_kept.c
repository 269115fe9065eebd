// SPDX-License-Identifier: Apache-2.0
// What rules know over a restart of all of weftd, orderly or by kill -9, in virtual time: the devices go on
// counting meanwhile. A kill is a folder of history, and a database, as they stood at that moment.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"
#include "lib/xalloc.h"
#include "tests/whole/tele_world.h"

#define MIN (60 * MONO_S)

static struct loop *clock_of;

// The wall clock goes with virtual time, also from one run to the next.
int64_t __wrap_wall_now_ns(void);
int64_t __wrap_wall_now_ns(void)
{
    return 1800000000 * MONO_S + (clock_of ? loop_now(clock_of).ns : 0);
}

static void shell(const char *fmt, const char *a, const char *b)
{
    char *cmd = xasprintf(fmt, a, b);
    assert_int_equal(system(cmd), 0);
    free(cmd);
}

static void begin_collecting(struct world *w)
{
    struct series_opts so = {.columns = TELE_COUNTERS};
    struct series_report rep;
    struct err e = {0};
    w->series = series_open(w->r.loop, w->dir, &so, &rep, &e);
    if (w->series == NULL)
        fail_msg("%s", e.text);
    w->o.dir = w->dir;
    w->o.history_ms = rep.last_ms;
    w->alarms = alarms_new(w->r.loop, w->r.db, &(struct alarms_callbacks){0});
    world_collect(w);
}

static void end_all(struct world *w)
{
    pool_free(w->r.pool);
    mad_engine_free(w->r.engine);
    tele_free(w->tele);
    series_close(w->series);
    alarms_free(w->alarms);
    sm_free(w->r.sm);
    w->r.transport->ops->free(w->r.transport);
    db_close(w->r.db);
    w->series = NULL;
    w->alarms = NULL;
}

static void finish(struct world *w)
{
    end_all(w);
    clock_of = NULL;
    w->r.sm = NULL;
    shell("rm -rf '%s/%s'", w->r.dir, "telemetry");
    rig_done(&w->r);
    buf_done(&w->log);
}

static void restart(struct world *w, bool killed, int64_t away)
{
    char kept[400];
    snprintf(kept, sizeof(kept), "%s.kept", w->r.dir);
    db_flush(w->r.db);
    if (killed)
        shell("cp -a '%s' '%s'", w->r.dir, kept);
    end_all(w);
    if (killed)
        shell("rm -rf '%1$s' && mv '%2$s' '%1$s'", w->r.dir, kept);
    rig_up(&w->r);
    rig_sweeps(&w->r, 1, 60);
    rig_run(&w->r, away);
    begin_collecting(w);
}

static void up(struct world *w)
{
    world_up(w, "rail-16", NULL);
    clock_of = w->r.loop;
    snprintf(w->dir, sizeof(w->dir), "%s/telemetry", w->r.dir);
    restart(w, false, MONO_S);
}

static void both_ends(struct world *w, uint64_t guid, unsigned port, enum sim_counter c, uint64_t n)
{
    uint32_t peer = world_table(w)->port[world_slot(w, guid, port)].peer;
    const struct tele_port *q = &world_table(w)->port[peer];
    world_add(w, guid, port, c, n);
    world_add(w, q->node_guid, q->num, c, n);
}

static enum health_state state_of(const struct world *w, uint64_t guid, unsigned port)
{
    return health_state_at(tele_health(w->tele), world_table(w), world_slot(w, guid, port));
}

static unsigned stands(const struct world *w, const char *rule)
{
    const struct alarm *list;
    unsigned n = 0;
    for (uint32_t i = alarms_list(w->alarms, &list); i-- > 0;)
        n += strcmp(list[i].rule->id, rule) == 0 && list[i].active;
    return n;
}

static void over(bool killed)
{
    struct world w = {0};
    up(&w);
    uint64_t leaf[4];
    for (unsigned i = 0; i < 4; i++)
        leaf[i] = world_nth(&w, ROLE_LEAF, i)->guid;
    world_sweeps(&w, 6 * 60);
    assert_int_equal(state_of(&w, leaf[1], 1), HEALTH_HEALTHY);
    world_add(&w, leaf[2], 1, SIM_SYMBOL_ERRORS, 9);
    both_ends(&w, leaf[0], 1, SIM_LINK_DOWNED, 1);
    world_sweeps(&w, 6 * 30);
    assert_int_equal(stands(&w, "L06"), 1);
    both_ends(&w, leaf[0], 1, SIM_LINK_DOWNED, 1); // no file but history has it
    world_sweeps(&w, 2);
    restart(&w, killed, 5 * MIN);
    assert_int_equal(stands(&w, "L06"), 1); // as it was kept; before anything is read
    world_sweeps(&w, 3);
    assert_int_equal(state_of(&w, leaf[1], 1), HEALTH_HEALTHY);
    assert_int_equal(state_of(&w, leaf[2], 1), HEALTH_FAILING);
    assert_int_equal(stands(&w, "L06"), 1);
    assert_int_equal(stands(&w, "L02"), 0);
    both_ends(&w, leaf[0], 1, SIM_LINK_DOWNED, 1);
    world_sweeps(&w, 3);
    assert_int_equal(stands(&w, "L02"), 1);
    assert_int_equal(state_of(&w, leaf[0], 1), HEALTH_FLAPPING);
    assert_int_equal(stands(&w, "L04"), 0);
    // 126 min after its last error it is over, whatever has happened to weftd meanwhile.
    world_sweeps(&w, 6 * 60);
    restart(&w, killed, 40 * MIN);
    world_sweeps(&w, 2);
    assert_int_equal(stands(&w, "L06"), 0);
    assert_int_equal(stands(&w, "L02"), 1);
    finish(&w);
}

static void orderly(void **state)
{
    (void)state;
    over(false);
}

static void killed(void **state)
{
    (void)state;
    over(true);
}

// What came while weft was away counts, once; what was cleared meanwhile is not known to be nothing.
static void meanwhile(void **state)
{
    struct world w = {0};
    (void)state;
    up(&w);
    uint64_t leaf[4];
    for (unsigned i = 0; i < 4; i++)
        leaf[i] = world_nth(&w, ROLE_LEAF, i)->guid;
    world_add(&w, leaf[3], 1, SIM_SYMBOL_ERRORS, 100);
    world_sweeps(&w, 6 * 120); // nothing in the last two hours
    end_all(&w);
    world_add(&w, leaf[0], 1, SIM_SYMBOL_ERRORS, 9);
    world_add(&w, leaf[3], 1, SIM_SYMBOL_ERRORS, (uint64_t)-98); // cleared by somebody
    rig_up(&w.r);
    rig_sweeps(&w.r, 1, 60);
    rig_run(&w.r, 60 * MIN);
    begin_collecting(&w);
    world_sweeps(&w, 2);
    assert_int_equal(state_of(&w, leaf[0], 1), HEALTH_FAILING);
    assert_int_equal(state_of(&w, leaf[1], 1), HEALTH_HEALTHY);
    assert_int_not_equal(state_of(&w, leaf[3], 1), HEALTH_HEALTHY);
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orderly),
        cmocka_unit_test(killed),
        cmocka_unit_test(meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
