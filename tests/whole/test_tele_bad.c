// SPDX-License-Identifier: Apache-2.0
// Agents that answer late, cut short, twice, or with what no answer may be; and many that are dead, slow or
// none, while error counters are read each second: each costs itself alone.
#include "tests/whole/tele_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "mad/mad.h"

// --- answers that are none ---

enum bend {
    BASE_VERSION,
    CLASS_VERSION,
    OTHER_CLASS,
    NO_ANSWER_AT_ALL, // the question itself
    ANSWER_TO_SET,
    OTHER_ATTRIBUTE,
    OTHER_TID,
    NOTHING_BEHIND_THE_HEAD,
    OTHER_PORT,
    LATE,
    TWICE,
    STATUS, // and those that follow: each code, with and without the busy bit
    STATUS_LAST = STATUS + 15,
    BENDS
};

static struct {
    uint16_t lid; // whose answers; 0: nobody's
    enum bend how;
    unsigned bent;
    struct kept { // that come late
        uint8_t mad[MAD_SIZE];
        struct mad_addr from;
    } * kept;
    unsigned num, room;
} now;

static void keep(const uint8_t *mad, const struct mad_addr *from)
{
    if (now.num == now.room)
        now.kept = xreallocarray(now.kept, now.room = now.room ? now.room * 2 : 64, sizeof(*now.kept));
    memcpy(now.kept[now.num].mad, mad, MAD_SIZE);
    now.kept[now.num++].from = *from;
}

static bool on_answer(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    uint8_t m[MAD_SIZE];
    if (status != 0 || mad[1] != MAD_CLASS_PM || from->lid != now.lid || now.lid == 0)
        return false;
    now.bent++;
    memcpy(m, mad, MAD_SIZE);
    switch (now.how) {
    case BASE_VERSION:
        m[0] = 2;
        break;
    case CLASS_VERSION:
        m[2] = 2;
        break;
    case OTHER_CLASS:
        m[1] = 0x06;
        break;
    case NO_ANSWER_AT_ALL:
        m[3] = MAD_METHOD_GET;
        break;
    case ANSWER_TO_SET:
        m[3] = MAD_METHOD_SET | 0x80;
        break;
    case OTHER_ATTRIBUTE:
        m[17] ^= 0x40;
        break;
    case OTHER_TID:
        m[15] ^= 0x55;
        break;
    case NOTHING_BEHIND_THE_HEAD:
        memset(m + 64, 0, MAD_SIZE - 64);
        break;
    case OTHER_PORT:
        m[65]++;
        break;
    case LATE:
        keep(mad, from);
        return true;
    case TWICE:
        r->tap.recv(r->tap.recv_arg, m, from, status);
        break;
    case STATUS:
    case STATUS_LAST:
    case BENDS:
    default: // codes in between
        m[5] = (uint8_t)((now.how - STATUS) % 8 << 2 | (now.how - STATUS) / 8);
        break;
    }
    r->tap.recv(r->tap.recv_arg, m, from, status);
    return true;
}

static enum tele_unread why(enum bend b)
{
    return b == TWICE || b == STATUS                         ? TELE_READ
           : b >= STATUS                                     ? TELE_REFUSED
           : b == NOTHING_BEHIND_THE_HEAD || b == OTHER_PORT ? TELE_WRONG
                                                             : TELE_NO_ANSWER;
}

// Two sweeps of it, of all ports of a leaf: nothing of the others is missed, nothing late, nothing counted
// twice or lost; and after it everything is read again.
static void answers_that_are_none(void **state)
{
    (void)state;
    for (unsigned b = 0; b < BENDS; b++) {
        struct world w = {0};
        world_up(&w, "rail-16", NULL);
        w.r.take_recv = on_answer;
        const struct node *leaf = world_nth(&w, ROLE_LEAF, 0);
        uint64_t guid = leaf->guid, truth;
        world_add(&w, guid, 1, SIM_SYMBOL_ERRORS, 1000);
        world_sweeps(&w, 2);
        uint64_t data = world_value(&w, guid, 1, TELE_XMIT_DATA);
        now.how = (enum bend)b;
        now.bent = now.num = 0;
        now.lid = sm_fabric(w.r.sm)->port[leaf->first_port].a.lid;
        world_sweeps(&w, 2);
        world_add(&w, guid, 1, SIM_SYMBOL_ERRORS, 10);
        const struct tele_table *t = world_table(&w);
        assert_true(now.bent > 0);
        for (uint32_t s = 0; s < t->num; s++) {
            enum tele_unread want = t->port[s].node_guid == guid ? why((enum bend)b) : TELE_READ;
            if (t->port[s].unread != want)
                fail_msg("bend %u: port %u of 0x%llx: %s, not %s", b, t->port[s].num,
                         (unsigned long long)t->port[s].node_guid,
                         tele_unread_name((enum tele_unread)t->port[s].unread), tele_unread_name(want));
            assert_true(want == TELE_READ ||
                        (!tele_have(t, s, TELE_XMIT_DATA) && t->port[s].unread_since > 0));
        }
        struct tele_unread_node *u;
        assert_int_equal(tele_unread_nodes(w.tele, &u), why((enum bend)b) != TELE_READ);
        assert_true(u == NULL || (u[0].guid == guid && u[0].why == why((enum bend)b) && u[0].since > 0));
        free(u);
        now.lid = 0;
        for (unsigned i = 0; i < now.num; i++) // what comes after all
            rig_deliver(&w.r, now.kept[i].mad, &now.kept[i].from, 0);
        world_sweeps(&w, 2);
        if (b >=
            STATUS) { // a code may mean that an attribute is not there: that is asked again after an hour
            rig_run(&w.r, 3601 * MONO_S);
            world_sweeps(&w, 2);
        }
        assert_int_equal(world_status(&w).unread, 0);
        sim_counter_get(w.r.sim, guid, 1, SIM_SYMBOL_ERRORS, &truth);
        // Another attribute was asked for meanwhile: what was counted at the change is not known.
        unsigned code = b >= STATUS ? (b - STATUS) % 8 : 0;
        uint64_t least = code == 2 || code == 3 ? 1000 : truth,
                 is = world_value(&w, guid, 1, TELE_SYMBOL_ERRORS);
        if (is < least || is > truth)
            fail_msg("bend %u: %llu errors, the device has %llu", b, (unsigned long long)is,
                     (unsigned long long)truth);
        assert_true(world_value(&w, guid, 1, TELE_XMIT_DATA) >= data);
        if (world_value(&w, guid, 1, TELE_XMIT_DATA) - data >= 1u << 30)
            fail_msg("bend %u: %llu words more", b,
                     (unsigned long long)(world_value(&w, guid, 1, TELE_XMIT_DATA) - data));
        assert_int_equal(world_status(&w).late, 0);
        assert_int_equal(world_status(&w).resets, 0);
        world_down(&w);
    }
    free(now.kept);
}

// --- errors each second, with many that do not answer ---

enum { HOSTS = 60 };

static void bad_agents(struct world *w, uint64_t bad[HOSTS])
{
    struct sim_pma none;
    for (unsigned i = 0; i < HOSTS; i++) {
        bad[i] = world_nth(w, ROLE_HOST, 3 + 4 * i)->guid;
        if (i % 3 == 0) {
            sim_node_kill(w->r.sim, bad[i], true);
        } else if (i % 3 == 1) {
            sim_node_delay(w->r.sim, bad[i], 4 * MONO_S);
        } else {
            sim_pma_get(w->r.sim, bad[i], &none);
            none.none = true;
            sim_pma_set(w->r.sim, bad[i], &none);
        }
    }
}

static const struct tele_unread_node *unread_of(const struct tele_unread_node *u, uint32_t n, uint64_t guid)
{
    for (uint32_t i = 0; i < n; i++)
        if (u[i].guid == guid)
            return &u[i];
    fail_msg("0x%llx is not in the list", (unsigned long long)guid);
    return NULL;
}

static void each_second_of_a_thousand_ports(void **state)
{
    struct world w = {.alarmed = true,
                      .o = {.errors_interval_ns = MONO_S, .detail_interval_ns = 60 * MONO_S}};
    struct sim_opts so = {.link_latency_ns = 1000, .service_ns = 2000};
    uint64_t bad[HOSTS];
    (void)state;
    world_up(&w, "rail-256", &so);
    uint64_t slow_leaf = world_nth(&w, ROLE_LEAF, 2)->guid, leaf = world_nth(&w, ROLE_LEAF, 1)->guid;
    bad_agents(&w, bad);
    sim_node_delay(w.r.sim, slow_leaf, MONO_S); // its 64 ports take longer than a sweep
    world_sweeps(&w, 4);
    int64_t since = loop_now(w.r.loop).ns;
    uint64_t mads = world_status(&w).mads, rounds = w.sweeps;
    world_sweeps(&w, 6);
    rounds = w.sweeps - rounds;
    const struct tele_table *t = world_table(&w);
    assert_true(t->num >= 1000);
    assert_int_equal(world_status(&w).late, 0);
    assert_true(world_status(&w).last_ns < w.o.interval_ns * 6 / 10);
    for (uint32_t s = 0; s < t->num; s++) {
        bool is_bad = t->port[s].node_guid == slow_leaf;
        for (unsigned i = 0; i < HOSTS; i++)
            is_bad |= t->port[s].node_guid == bad[i];
        if (!is_bad && t->port[s].unread != TELE_READ)
            fail_msg("port %u of 0x%llx is not read", t->port[s].num,
                     (unsigned long long)t->port[s].node_guid);
    }
    // Who, why and since when.
    struct tele_unread_node *u;
    uint32_t n = tele_unread_nodes(w.tele, &u);
    assert_in_range(n, HOSTS, HOSTS + 1);
    for (unsigned i = 0; i < HOSTS; i++) {
        const struct tele_unread_node *x = unread_of(u, n, bad[i]);
        assert_int_equal(x->why, i % 3 == 2 ? TELE_NO_PMA : TELE_NO_ANSWER);
        assert_true(x->ports == 1 && x->since > 0 && x->since < since);
    }
    free(u);
    // A MAD a sweep for who is known to be silent, none for who has no agent; the rest as ever: each port in
    // the sweep, adapters and switches' sums each second, details once a minute.
    uint64_t adapters = sm_fabric(w.r.sm)->num_end_nodes, switches = sm_fabric(w.r.sm)->num_switches;
    uint64_t usual = rounds * (t->num + 10 * (adapters + switches)) + 3ull * t->num;
    assert_true(world_status(&w).mads - mads <= usual);
    // An error elsewhere is seen within its second.
    rig_run(&w.r, MONO_S); // between two sweeps
    uint64_t sweeps = world_status(&w).sweeps;
    world_add(&w, leaf, 5, SIM_SYMBOL_ERRORS, 21);
    rig_run(&w.r, 3 * MONO_S / 2);
    assert_int_equal(world_status(&w).sweeps, sweeps);
    assert_int_equal(world_value(&w, leaf, 5, TELE_SYMBOL_ERRORS), 21);
    // Who does not answer is an alarm each; that sweeps are late is none.
    const struct alarm *a;
    n = alarms_list(w.alarms, &a);
    for (uint32_t i = 0; i < n; i++)
        assert_string_not_equal(a[i].rule->id, "W01");
    world_down(&w);
}

// --- an interval that cannot be kept to ---

static unsigned alarms_of(const struct world *w, const char *rule)
{
    const struct alarm *a;
    unsigned k = 0;
    for (uint32_t i = 0, n = alarms_list(w->alarms, &a); i < n; i++)
        k += strcmp(a[i].rule->id, rule) == 0;
    return k;
}

static void sooner_than_it_can_be(void **state)
{
    struct world w = {.alarmed = true, .o = {.interval_ns = 100 * MONO_MS, .detail_interval_ns = MONO_S}};
    (void)state;
    world_up(&w, "rail-64", NULL);
    uint64_t leaf = world_nth(&w, ROLE_LEAF, 0)->guid;
    const struct fabric *f = sm_fabric(w.r.sm);
    for (uint32_t i = 0; i < f->num_nodes; i++)
        sim_node_delay(w.r.sim, f->node[i].guid, 150 * MONO_MS); // even an adapter of one port takes longer
    world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, 5);
    for (unsigned i = 0; i < 40; i++) {
        w.swept = false;
        assert_true(loop_run_until(w.r.loop, &w.swept, 60 * MONO_S));
    }
    printf("%llu sweeps, %llu late, the last took %.3f s\n", (unsigned long long)world_status(&w).sweeps,
           (unsigned long long)world_status(&w).late, mono_seconds(world_status(&w).last_ns));
    assert_true(world_status(&w).late >= 2);
    assert_int_equal(alarms_of(&w, "W01"), 1); // it is said that it cannot be kept to
    assert_int_equal(tele_value(world_table(&w), world_slot(&w, leaf, 1), TELE_SYMBOL_ERRORS), 5);
    assert_int_equal(world_status(&w).nonsense + world_status(&w).resets, 0);
    world_down(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_that_are_none),
        cmocka_unit_test(each_second_of_a_thousand_ports),
        cmocka_unit_test(sooner_than_it_can_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
