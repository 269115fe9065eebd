// SPDX-License-Identifier: Apache-2.0
// Downs: links that stay down, flaps that both ends have counted, reboots that one end has, ends that cannot
// be read, cables that are moved.
#include "tests/unit/telemetry/healthtest.h"

#include "lib/rng.h"

// Down for some time, as the subnet manager sees it and both ends count it.
static void flap(struct bed *b, uint32_t slot, int64_t down, unsigned ends)
{
    health_link(b->h, slot, false, b->now + S);
    for (unsigned e = 0; e < 2; e++)
        if (ends >> e & 1)
            add(b, slot ^ e, TELE_LINK_DOWNED, 1);
    int64_t until = b->now + S + down;
    while (b->now + b->step < until)
        tick(b);
    health_link(b->h, slot ^ 1, true, until);
    tick(b);
}

static void told_up(struct bed *b)
{
    for (uint32_t s = 0; s < b->t.num; s++)
        health_link(b->h, s, true, b->now);
    pass(b, 20 * MIN);
}

// --- L01, L03 ---

BED(down_for_ten_seconds, 2, 400000)
{
    b->step = S;
    told_up(b);
    health_link(b->h, 2, false, b->now);
    pass(b, 9 * S);
    assert_int_equal(b->num_said, 0);
    assert_int_not_equal(view(b, 2).state, HEALTH_DOWN);
    pass(b, 2 * S);
    assert_int_equal(stands(b, "L01"), ALARM_MAJOR);
    assert_int_equal(b->said[0].slot, 2);
    assert_int_equal(view(b, 2).state, HEALTH_DOWN);
    assert_int_equal(view(b, 3).state, HEALTH_DOWN);
    assert_string_equal(view(b, 3).rule, "L01");
    pass(b, 220 * S);
    assert_int_equal(raised(b, "L03"), 0);
    pass(b, 20 * S);
    assert_int_equal(stands(b, "L03"), ALARM_MAJOR);
    health_link(b->h, 2, true, b->now);
    pass(b, 55 * S);
    assert_int_equal(stands(b, "L01"), ALARM_MAJOR);
    assert_int_equal(view(b, 2).state, HEALTH_DEGRADED); // it is back, and watched
    pass(b, 10 * S);
    assert_int_equal(stands(b, "L01"), -1);
    assert_int_equal(stands(b, "L03"), ALARM_MAJOR);
    pass(b, 530 * S);
    assert_int_equal(stands(b, "L03"), ALARM_MAJOR);
    pass(b, 15 * S);
    assert_int_equal(stands(b, "L03"), -1);
    pass(b, MIN);
    assert_int_equal(view(b, 2).state, HEALTH_HEALTHY);
}

BED(down_again_begins_anew, 1, 400000)
{
    b->step = S;
    told_up(b);
    for (int i = 0; i < 20; i++) {
        health_link(b->h, 0, false, b->now);
        pass(b, 8 * S);
        health_link(b->h, 0, true, b->now);
        pass(b, 5 * S);
    }
    assert_int_equal(raised(b, "L01"), 0);
}

// Not told of: by the table, once the link was up.
BED(table_alone, 2, 400000)
{
    b->t.port[2].up = b->t.port[3].up = false; // never was
    pass(b, 20 * MIN);
    assert_int_equal(b->num_said, 0);
    b->t.port[0].up = false; // one end is enough
    pass(b, 20 * S);
    assert_int_equal(stands(b, "L01"), ALARM_MAJOR);
    assert_int_equal(b->said[0].slot, 0);
    b->t.port[0].up = true;
    pass(b, 80 * S);
    assert_int_equal(stands(b, "L01"), -1);
}

// A link of the blueprint that has not been up since the start.
BED(down_from_the_start, 1, 400000)
{
    b->t.port[0].up = b->t.port[1].up = false;
    b->t.port[0].peer = b->t.port[1].peer = TELE_SLOT_NONE;
    health_pair(b->h, 1, 0);
    health_link(b->h, 1, false, b->now); // by whichever end
    pass(b, 20 * S);
    assert_int_equal(stands(b, "L01"), ALARM_MAJOR);
    assert_int_equal(b->said[0].slot, 0);
    assert_int_equal(health_peer(b->h, 0), 1);
    b->t.port[0].up = b->t.port[1].up = true;
    b->t.port[0].peer = 1;
    b->t.port[1].peer = 0;
    health_link(b->h, 0, true, b->now);
    pass(b, 80 * S);
    assert_int_equal(stands(b, "L01"), -1);
}

BED(trunk_of_two_switches, 8, 400000)
{
    // Links 0-4 are cables between the same two switches.
    tele_table_done(&b->t);
    tele_table_init(&b->t);
    for (unsigned i = 0; i < 16; i++) {
        bool trunk = i < 10;
        tele_slot_set(&b->t, i, trunk ? 0x100 + (i & 1) : 0x1000 + i, (uint8_t)(1 + i / 2));
        struct tele_port *p = &b->t.port[i];
        p->peer = i ^ 1;
        p->port = i;
        p->rate_mbps = 400000;
        p->of_switch = p->up = true;
    }
    told_up(b);
    for (unsigned k = 0; k < 5; k++) {
        health_link(b->h, 2 * k, false, b->now);
        pass(b, 30 * S);
    }
    health_link(b->h, 12, false, b->now); // the only one between its switches
    pass(b, 30 * S);
    int last[16];
    memset(last, 0xff, sizeof(last));
    for (unsigned i = 0; i < b->num_said; i++) {
        const struct said *s = &b->said[i];
        if (strcmp(s->rule, "L01") != 0)
            continue;
        // 5 cables: with the third one two are left, less than half; that is so for all that are down.
        if (last[s->slot] < 0)
            assert_int_equal(s->severity, s->slot >= 4 && s->slot < 12 ? ALARM_CRITICAL : ALARM_MAJOR);
        last[s->slot] = (int)s->severity;
    }
    for (unsigned k = 0; k < 5; k++)
        assert_int_equal(last[2 * k], ALARM_CRITICAL);
    assert_int_equal(last[12], ALARM_MAJOR);
    assert_string_equal(view(b, 2).why, "down; 0 of 5 cables between the two are left");
    // They are counted as they are now.
    for (unsigned k = 1; k < 5; k++)
        health_link(b->h, 2 * k, true, b->now);
    tick(b);
    assert_string_equal(view(b, 0).why, "down; 4 of 5 cables between the two are left");
    assert_non_null(strstr(view(b, 2).why, "up again, after "));
    assert_null(strstr(view(b, 2).why, "left"));
    assert_int_equal(stands(b, "L01"), ALARM_MAJOR); // nothing is cut off any more
    pass(b, 70 * S);
    health_link(b->h, 2, false, b->now);
    pass(b, 30 * S);
    assert_string_equal(reason(b, "L01"), "down; 3 of 5 cables between the two are left");
    assert_int_equal(stands(b, "L01"), ALARM_MAJOR);
}

static int64_t noon(void *arg, int64_t at)
{
    (void)arg;
    return 1800014400 * S + at - 1000 * S; // 12:00:00 when a bed begins
}

// A link that is up again says since when, and when that is over; one that flaps says what to do about that.
static void up_again(void **state)
{
    static struct bed b;
    (void)state;
    bed_open(&b, 1, 400000);
    health_free(b.h);
    struct health_sink sink = {&b, bed_raise, bed_clear};
    b.h = health_new(&(struct health_opts){.wall = noon, .wall_arg = &b}, &sink);
    told_up(&b);
    for (int i = 0; i < 3; i++) {
        flap(&b, 0, 30 * S, 3);
        assert_int_equal(stands(&b, "L01"), ALARM_MAJOR);
        assert_string_equal(view(&b, 0).rule, i < 2 ? "L01" : "L02");
        assert_int_equal(view(&b, 0).state, i < 2 ? HEALTH_DEGRADED : HEALTH_FLAPPING);
        if (i == 0) {
            assert_string_equal(reason(&b, "L01"),
                                "up again since 12:20:31 UTC, after 30 s; over at 12:21:31 UTC if "
                                "it stays up");
            assert_string_equal(view(&b, 0).advice, HEALTH_BACK_ADVICE);
        }
        pass(&b, 2 * MIN);
    }
    assert_string_equal(view(&b, 0).advice, alarm_rule("L02")->advice);
    char was[300];
    snprintf(was, sizeof(was), "%s", reason(&b, "L02"));
    pass(&b, HOUR); // without another one, it says the same
    assert_string_equal(reason(&b, "L02"), was);
    assert_non_null(strstr(was, "3 drops in 5 min to 12:2"));
    bed_close(&b);
}

// --- L02, L04 ---

static void flaps(void **state)
{
    static const struct {
        unsigned downs;
        int64_t length, apart;
        bool flaps;
    } row[] = {
        {2, 30 * S, HOUR, false},     {3, 30 * S, HOUR, true},      {3, 30 * S, 5 * HOUR + 50 * MIN, true},
        {3, 30 * S, 7 * HOUR, false}, {3, 22 * S, HOUR, false},     {3, 38 * S, 10 * MIN, true},
        {6, 12 * S, 30 * MIN, false}, {3, 5 * MIN, 20 * MIN, true}, {5, 40 * S, 2 * HOUR, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        static struct bed b;
        bed_open(&b, 2, 400000);
        told_up(&b);
        for (unsigned k = 0; k < row[i].downs; k++) {
            flap(&b, 2, row[i].length, 3);
            if (k + 1 < row[i].downs)
                pass(&b, row[i].apart);
        }
        pass(&b, 2 * MIN);
        if ((raised(&b, "L02") > 0) != row[i].flaps)
            fail_msg("row %zu", i);
        assert_int_equal(raised(&b, "L04"), 0);
        if (row[i].flaps) {
            assert_int_equal(stands(&b, "L02"), ALARM_MAJOR);
            assert_non_null(strstr(reason(&b, "L02"), "both ends"));
            assert_int_equal(view(&b, 3).state, HEALTH_FLAPPING);
            pass(&b, 122 * MIN);
            assert_int_equal(stands(&b, "L02"), ALARM_MAJOR);
            pass(&b, 5 * MIN);
            assert_int_equal(stands(&b, "L02"), -1);
            pass(&b, HOUR); // three are within 12 h, but it takes another one
            assert_int_equal(stands(&b, "L02"), -1);
        }
        bed_close(&b);
    }
}

// Only what ports have counted is known: too short for the subnet manager to see.
BED(flaps_of_counters_alone, 2, 400000)
{
    told_up(b);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(raised(b, "L02"), 0);
        add(b, 2, TELE_LINK_DOWNED, 1);
        add(b, 3, TELE_LINK_DOWNED, 1);
        pass(b, 20 * MIN);
    }
    assert_int_equal(stands(b, "L02"), ALARM_MAJOR);
    assert_int_equal(raised(b, "L04"), 0);
}

// Read by the second: both have counted long before it is known how long it lasts.
BED(read_while_it_lasts, 1, 400000)
{
    b->step = S;
    told_up(b);
    for (int i = 0; i < 3; i++) {
        flap(b, 0, 24 * S, 3);
        pass(b, MIN);
    }
    assert_int_equal(raised(b, "L02"), 0);
    for (int i = 0; i < 3; i++) {
        flap(b, 0, 60 * S, 3);
        pass(b, MIN);
    }
    assert_int_equal(stands(b, "L02"), ALARM_MAJOR);
    assert_int_equal(raised(b, "L04"), 0);
}

// The two ends are read at other times.
static void ends_read_apart(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        static struct bed b;
        struct rng r;
        rng_init(&r, seed);
        bed_open(&b, 1, 400000);
        told_up(&b);
        for (int i = 0; i < 3; i++) {
            for (int e = 0; e < 2; e++)
                add(&b, e, TELE_LINK_DOWNED, 1);
            unsigned late = rng_below(&r, 2), by = rng_below(&r, 20);
            b.unread[late] = 1;
            pass(&b, by * 10 * S);
            b.unread[late] = 0;
            pass(&b, 10 * MIN);
        }
        assert_int_equal(stands(&b, "L02"), ALARM_MAJOR);
        assert_int_equal(raised(&b, "L04"), 0);
        bed_close(&b);
    }
}

BED(many_downs_at_once, 1, 400000)
{
    told_up(b);
    add(b, 0, TELE_LINK_DOWNED, 4);
    add(b, 1, TELE_LINK_DOWNED, 5);
    pass(b, MIN);
    assert_int_equal(stands(b, "L02"), ALARM_MAJOR);
}

// A host restarts, again and again: its port begins at 0, the switch's counts.
BED(reboots, 2, 400000)
{
    told_up(b);
    for (int i = 0; i < 5; i++) {
        health_link(b->h, 2, false, b->now + S);
        add(b, 2, TELE_LINK_DOWNED, 1 + i % 2);
        b->unread[3] = 1;
        pass(b, 4 * MIN + 10 * S);
        health_link(b->h, 2, true, b->now);
        b->t.port[3].resets++;
        b->unread[3] = 0;
        pass(b, 30 * MIN);
        assert_int_equal(raised(b, "L04"), i + 1);
        assert_int_equal(stands(b, "L04"), -1); // over at once
    }
    assert_int_equal(raised(b, "L02"), 0);
    assert_non_null(strstr(reason(b, "L04"), "alone has counted"));
    assert_int_equal(view(b, 2).state, HEALTH_HEALTHY);
}

// Down twice before the adapter can be read: what it then has counted is of both.
BED(twice_before_the_far_end_is_read, 1, 400000)
{
    told_up(b);
    b->unread[1] = 1;
    for (int i = 0; i < 2; i++) {
        health_link(b->h, 0, false, b->now + S);
        add(b, 0, TELE_LINK_DOWNED, 1);
        add(b, 1, TELE_LINK_DOWNED, 1);
        pass(b, 40 * S);
        health_link(b->h, 0, true, b->now);
        pass(b, 30 * S);
    }
    b->unread[1] = 0;
    pass(b, 20 * MIN);
    assert_int_equal(raised(b, "L04") + raised(b, "L02"), 0);
    flap(b, 0, 40 * S, 3);
    pass(b, MIN);
    assert_int_equal(raised(b, "L04"), 0);
    assert_int_equal(stands(b, "L02"), ALARM_MAJOR);
    assert_non_null(strstr(reason(b, "L02"), "3 drops"));
}

// The adapter is read between the two, the switch's second count is there before its own.
BED(read_between_two, 1, 400000)
{
    told_up(b);
    for (int i = 0; i < 3; i++) {
        b->unread[1] = 1;
        health_link(b->h, 0, false, b->now + S);
        add(b, 0, TELE_LINK_DOWNED, 1);
        add(b, 1, TELE_LINK_DOWNED, 1);
        pass(b, 30 * S);
        health_link(b->h, 0, true, b->now);
        b->unread[1] = 0;
        pass(b, 10 * S);
    }
    pass(b, 20 * MIN);
    assert_int_equal(raised(b, "L04"), 0);
    assert_int_equal(stands(b, "L02"), ALARM_MAJOR);
}

// An end that was not read before the down, or whose counter cannot be followed over it, does not say that it
// has not counted: the cause is not known.
BED(far_end_read_only_after, 2, 400000)
{
    b->unread[1] = 1;
    told_up(b);
    for (int i = 0; i < 3; i++) {
        for (uint32_t s = 0; s < 4; s += 2) {
            health_link(b->h, s, false, b->now + S);
            add(b, s, TELE_LINK_DOWNED, 1);
        }
        b->unread[1] = b->unread[3] = 1;
        pass(b, 40 * S);
        b->unread[1] = b->unread[3] = 0;
        b->t.port[3].lost_at = b->now + S; // it is asked by another attribute now
        if (i > 0)
            b->t.port[1].lost_at = b->now + S;
        for (uint32_t s = 0; s < 4; s += 2)
            health_link(b->h, s, true, b->now);
        pass(b, 20 * MIN);
    }
    assert_int_equal(raised(b, "L04"), 0);
    for (uint32_t s = 0; s < 4; s++)
        assert_int_equal(view(b, s).state, HEALTH_FLAPPING);
    assert_int_equal(stands(b, "L02"), ALARM_MINOR);
    assert_non_null(strstr(reason(b, "L02"), "cause unknown"));
}

// A switch's end that is rebooted: the host's counts.
BED(reboot_of_the_lower_end, 1, 400000)
{
    told_up(b);
    add(b, 1, TELE_LINK_DOWNED, 1);
    b->t.port[0].resets++;
    pass(b, MIN);
    assert_int_equal(raised(b, "L04"), 1);
    assert_int_equal(b->said[0].slot, 0);
}

// A port that somebody disables is not counted by anybody.
BED(disabled_by_hand, 1, 400000)
{
    told_up(b);
    for (int i = 0; i < 5; i++) {
        flap(b, 0, MIN, 0);
        pass(b, 20 * MIN);
    }
    assert_int_equal(raised(b, "L02") + raised(b, "L04"), 0);
}

// The far end has no counters: a reboot would look the same.
BED(one_end_can_be_read, 1, 400000)
{
    b->unread[1] = 1;
    told_up(b);
    for (int i = 0; i < 3; i++) {
        flap(b, 0, 40 * S, 1);
        pass(b, MIN); // nothing to wait for
        assert_int_equal(stands(b, "L02"), i < 2 ? -1 : ALARM_MINOR);
        pass(b, 20 * MIN);
    }
    assert_non_null(strstr(reason(b, "L02"), "one end alone"));
    assert_int_equal(raised(b, "L04"), 0);
}

// No end can be read: what the subnet manager has seen is all there is.
BED(no_end_can_be_read, 1, 400000)
{
    b->unread[0] = b->unread[1] = 1;
    told_up(b);
    for (int i = 0; i < 3; i++) {
        flap(b, 0, 40 * S, 0);
        pass(b, 20 * MIN);
    }
    assert_int_equal(stands(b, "L02"), ALARM_MAJOR);
}

// A clear by others between the down and the reading hides one end's count of one down, not of the next.
BED(cleared_by_others, 1, 400000)
{
    told_up(b);
    for (int i = 0; i < 6; i++) {
        b->t.port[1].resets++;
        flap(b, 0, 40 * S, i % 2 ? 3 : 1);
        pass(b, 20 * MIN);
    }
    assert_int_equal(stands(b, "L02"), ALARM_MAJOR);
}

BED(recoveries_and_downs, 1, 400000)
{
    told_up(b);
    add(b, 0, TELE_LINK_ERROR_RECOVERY, 8);
    pass(b, MIN);
    assert_int_equal(stands(b, "L02"), ALARM_MAJOR);
    pass(b, 2 * HOUR);
    flap(b, 0, 40 * S, 3); // one more thing of its kind: not clean
    pass(b, 2 * HOUR);
    assert_int_equal(stands(b, "L02"), ALARM_MAJOR);
    pass(b, 10 * MIN);
    assert_int_equal(stands(b, "L02"), -1);
}

// --- another cable ---

BED(another_peer, 2, 400000)
{
    told_up(b);
    add(b, 0, TELE_SYMBOL_ERRORS, 8);
    pass(b, MIN);
    assert_int_equal(stands(b, "L06"), ALARM_MAJOR);
    b->t.port[0].peer = 3;
    b->t.port[3].peer = 0;
    b->t.port[1].peer = b->t.port[2].peer = TELE_SLOT_NONE;
    pass(b, MIN);
    assert_int_equal(stands(b, "L06"), -1); // said of a cable that is not there any more
    assert_int_equal(health_peer(b->h, 0), 3);
    assert_int_equal(health_peer(b->h, 1), TELE_SLOT_NONE);
    add(b, 3, TELE_SYMBOL_ERRORS, 8);
    pass(b, MIN);
    assert_int_equal(stands(b, "L06"), ALARM_MAJOR);
    assert_int_equal(b->said[b->num_said - 1].slot, 0);
}

BED(forgotten, 2, 400000)
{
    told_up(b);
    health_link(b->h, 2, false, b->now);
    pass(b, 5 * MIN);
    assert_int_equal(stands(b, "L03"), ALARM_MAJOR);
    b->t.port[2].up = b->t.port[3].up = false;
    health_forget(b->h, 3);
    assert_int_equal(stands(b, "L01"), -1);
    assert_int_equal(stands(b, "L03"), -1);
    pass(b, 10 * MIN);
    assert_int_equal(stands(b, "L01"), -1);
    health_forget(b->h, 1000);
}

// Whatever comes: no crash, and who says a rule stands also says that it does not.
static void at_random(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        static struct bed b;
        struct rng r;
        rng_init(&r, seed);
        bed_open(&b, 4, 400000);
        for (int i = 0; i < 1500; i++) {
            uint32_t s = rng_below(&r, 8);
            switch (rng_below(&r, 10)) {
            case 0:
                health_link(b.h, s, rng_below(&r, 2), b.now);
                break;
            case 1:
                add(&b, s, TELE_LINK_DOWNED, 1 + rng_below(&r, 3));
                break;
            case 2:
                b.unread[s] = rng_below(&r, 3) == 0;
                break;
            case 3:
                add(&b, s, (enum tele_counter)(TELE_SYMBOL_ERRORS + rng_below(&r, 19)), rng_below(&r, 1000));
                break;
            case 4:
                if (rng_below(&r, 30) == 0) {
                    b.t.port[s].peer = rng_below(&r, 8);
                    b.t.port[s].up = rng_below(&r, 2);
                }
                break;
            case 5:
                if (rng_below(&r, 20) == 0)
                    health_forget(b.h, s);
                break;
            case 6:
                b.t.port[s].resets++;
                b.t.port[s].saturated = rng_below(&r, 4) == 0;
                break;
            default:
                b.step = (1 + rng_below(&r, rng_below(&r, 20) ? 30 : 7200)) * S;
                tick(&b);
            }
            struct health_view v = view(&b, s);
            assert_true(v.state <= HEALTH_DOWN && v.rule && v.advice);
            struct health_count c;
            health_count(b.h, &b.t, &c);
        }
        for (uint32_t s = 0; s < 8; s++)
            health_forget(b.h, s);
        static const char *const rule[] = {"L01", "L02", "L03", "L04", "L06", "L07", "L10", "L11",
                                           "L12", "L13", "L14", "L15", "L08", "L09", "C01"};
        for (size_t k = 0; k < sizeof(rule) / sizeof(rule[0]); k++) {
            int open[8] = {0};
            for (unsigned i = 0; i < b.num_said; i++)
                if (strcmp(b.said[i].rule, rule[k]) == 0)
                    open[b.said[i].slot] = b.said[i].raised;
            for (int s = 0; s < 8; s++)
                assert_int_equal(open[s], 0);
        }
        bed_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(down_for_ten_seconds),
        cmocka_unit_test(down_again_begins_anew),
        cmocka_unit_test(table_alone),
        cmocka_unit_test(down_from_the_start),
        cmocka_unit_test(trunk_of_two_switches),
        cmocka_unit_test(up_again),
        cmocka_unit_test(flaps),
        cmocka_unit_test(flaps_of_counters_alone),
        cmocka_unit_test(ends_read_apart),
        cmocka_unit_test(read_while_it_lasts),
        cmocka_unit_test(many_downs_at_once),
        cmocka_unit_test(reboots),
        cmocka_unit_test(twice_before_the_far_end_is_read),
        cmocka_unit_test(read_between_two),
        cmocka_unit_test(far_end_read_only_after),
        cmocka_unit_test(reboot_of_the_lower_end),
        cmocka_unit_test(disabled_by_hand),
        cmocka_unit_test(one_end_can_be_read),
        cmocka_unit_test(no_end_can_be_read),
        cmocka_unit_test(cleared_by_others),
        cmocka_unit_test(recoveries_and_downs),
        cmocka_unit_test(another_peer),
        cmocka_unit_test(forgotten),
        cmocka_unit_test(at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
