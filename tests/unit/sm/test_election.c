// SPDX-License-Identifier: Apache-2.0
// The election as a pure machine: every control in every state, handing over, standing by, second masters;
// and several machines that talk over a network that loses and delays.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/rng.h"
#include "sm/election.h"

#define OWN 100
#define KEY 7

static mono_t at(double s)
{
    return (mono_t){(int64_t)(s * 1e9)};
}

static struct mad_sm_info info(uint64_t guid, uint8_t priority, enum mad_sm_state state, uint32_t act)
{
    return (struct mad_sm_info){
        .guid = guid, .sm_key = KEY, .priority = priority, .sm_state = (uint8_t)state, .act_count = act};
}

static void init(struct election *e)
{
    election_init(e, &(struct election_opts){.guid = OWN, .sm_key = KEY, .priority = 8});
}

// All that is to be done, as a set; the last peer of each kind.
struct done {
    unsigned n[ELECTION_WRONG_KEY + 1];
    struct election_peer peer[ELECTION_WRONG_KEY + 1];
    const char *cause;
};

static struct done drain(struct election *e)
{
    struct done d = {0};
    struct election_act a;
    while (election_act(e, &a)) {
        d.n[a.kind]++;
        d.peer[a.kind] = a.peer;
        if (a.kind == ELECTION_SWEEP)
            d.cause = a.cause;
    }
    return d;
}

static void met(struct election *e, uint64_t guid, uint8_t priority, enum mad_sm_state state, double t)
{
    struct mad_sm_info si = info(guid, priority, state, (uint32_t)(t * 1000));
    election_met(e, &si, at(t));
}

static void heard(struct election *e, uint64_t guid, uint8_t priority, enum mad_sm_state state, double t)
{
    struct mad_sm_info si = info(guid, priority, state, (uint32_t)(t * 1000));
    election_heard(e, guid, &si, at(t));
}

static uint16_t control(struct election *e, uint32_t mod, uint64_t guid, enum mad_sm_state state, double t)
{
    struct mad_sm_info si = info(guid, 3, state, 1);
    return election_control(e, mod, &si, at(t));
}

// A machine in that state at time 1, nothing left to do. STANDBY: for 50, priority 9.
static void put(struct election *e, enum mad_sm_state state)
{
    init(e);
    if (state == MAD_SM_NOT_ACTIVE)
        return;
    election_begin(e, true, at(1));
    if (state == MAD_SM_STANDBY)
        met(e, 50, 9, MAD_SM_MASTER, 1);
    if (state != MAD_SM_DISCOVERING)
        (void)election_settle(e, at(1));
    assert_int_equal(e->state, state);
    (void)drain(e);
}

// --- controls ---

// New state; 9 = refused. The sender is in the state that 14.4.1 asks of it.
static const uint8_t controls[4][6] = {
    //                     -  HAND ACK DIS STBY DISC
    [MAD_SM_NOT_ACTIVE] = {9, 9, 9, 9, MAD_SM_STANDBY, 9},
    [MAD_SM_DISCOVERING] = {9, MAD_SM_DISCOVERING, 9, 9, 9, 9},
    [MAD_SM_STANDBY] = {9, MAD_SM_MASTER, MAD_SM_STANDBY, MAD_SM_NOT_ACTIVE, 9, MAD_SM_DISCOVERING},
    [MAD_SM_MASTER] = {9, MAD_SM_MASTER, 9, 9, 9, 9},
};

static void test_controls(void **state)
{
    (void)state;
    for (unsigned s = 0; s < 4; s++)
        for (uint32_t mod = 0; mod < 8; mod++)
            for (unsigned sender = 0; sender < 16; sender++)
                for (unsigned known = 0; known < 2; known++) {
                    struct election e;
                    put(&e, (enum mad_sm_state)s);
                    uint64_t guid = known ? 50 : 60;
                    if (known)
                        met(&e, guid, 3, (enum mad_sm_state)(sender & 3), 1.5);
                    (void)drain(&e);
                    bool right = mod == MAD_SM_ACKNOWLEDGE
                                     ? sender == MAD_SM_STANDBY || sender == MAD_SM_MASTER
                                     : sender == MAD_SM_MASTER;
                    uint8_t want = mod < 6 && right ? controls[s][mod] : 9;
                    uint16_t status = control(&e, mod, guid, (enum mad_sm_state)sender, 2);
                    struct done d = drain(&e);
                    assert_int_equal(status, want == 9 ? MAD_STATUS_BAD_VALUE : 0);
                    assert_int_equal(e.state, want == 9 ? s : want);
                    assert_int_equal(d.n[ELECTION_STATE], e.state != s);
                    bool handed = want != 9 && mod == MAD_SM_HANDOVER;
                    assert_int_equal(d.n[ELECTION_ACKNOWLEDGE], handed);
                    assert_int_equal(d.n[ELECTION_GIVEN], handed);
                    assert_int_equal(d.n[ELECTION_SWEEP], handed || (want != 9 && mod == MAD_SM_DISCOVER));
                    assert_int_equal(d.n[ELECTION_DISABLED], want != 9 && mod == MAD_SM_DISABLE);
                }
}

// The same with another key, or as if from ourselves: nothing happens, and it is told once.
static void test_wrong_key(void **state)
{
    (void)state;
    for (unsigned s = 0; s < 4; s++)
        for (uint32_t mod = 0; mod < 8; mod++) {
            struct election e;
            put(&e, (enum mad_sm_state)s);
            struct mad_sm_info si = info(77, 3, MAD_SM_MASTER, 1);
            for (unsigned i = 0; i < 3; i++) {
                si.sm_key = i; // 0, 1, 2: none is ours
                assert_int_equal(election_control(&e, mod, &si, at(2)), MAD_STATUS_BAD_VALUE);
                struct done d = drain(&e);
                assert_int_equal(d.n[ELECTION_WRONG_KEY], i == 0);
                assert_int_equal(d.n[ELECTION_STATE] + d.n[ELECTION_SWEEP] + d.n[ELECTION_ACKNOWLEDGE], 0);
            }
            assert_int_equal(control(&e, mod, OWN, MAD_SM_MASTER, 2), MAD_STATUS_BAD_VALUE);
            assert_int_equal(e.state, s);
            e.o.sm_key = 0; // trusts everybody
            if (mod < 6 && mod != MAD_SM_ACKNOWLEDGE)
                assert_int_equal(election_control(&e, mod, &si, at(2)),
                                 controls[s][mod] == 9 ? MAD_STATUS_BAD_VALUE : 0);
        }
}

// --- discovery ---

// Whom a discovering manager gives way to: any master, and whoever is active and ranks above.
static void test_discovering(void **state)
{
    (void)state;
    for (unsigned prio = 7; prio <= 9; prio++)
        for (unsigned above = 0; above < 2; above++)
            for (unsigned s = 0; s < 16; s++) {
                struct election e;
                uint64_t guid = above ? OWN - 1 : OWN + 1;
                bool is_better = prio > 8 || (prio == 8 && above);
                put(&e, MAD_SM_DISCOVERING);
                met(&e, guid, (uint8_t)prio, (enum mad_sm_state)s, 1.5);
                bool yields = s == MAD_SM_MASTER || (s > 0 && s < 3 && is_better);
                enum election_verdict v = election_settle(&e, at(2));
                struct done d = drain(&e);
                if (!yields && s > 0 && s < 3) { // below us: asked again before we write
                    assert_int_equal(v, ELECTION_WAIT);
                    assert_int_equal(d.n[ELECTION_POLL], 1);
                    assert_int_equal(election_settle(&e, at(2)), ELECTION_WAIT);
                    assert_int_equal(drain(&e).n[ELECTION_POLL], 0);
                    heard(&e, guid, (uint8_t)prio, (enum mad_sm_state)s, 2.1);
                    v = election_settle(&e, at(2.1));
                }
                assert_int_equal(v, yields ? ELECTION_STAND_BY : ELECTION_PROCEED);
                assert_int_equal(e.state, yields ? MAD_SM_STANDBY : MAD_SM_MASTER);
                assert_true(e.master == (yields ? guid : 0));
            }
}

static void test_became_master_meanwhile(void **state)
{
    struct election e;
    (void)state;
    put(&e, MAD_SM_DISCOVERING);
    met(&e, 300, 3, MAD_SM_DISCOVERING, 1.1);
    assert_int_equal(election_settle(&e, at(3)), ELECTION_WAIT);
    heard(&e, 300, 3, MAD_SM_MASTER, 3.1);
    assert_int_equal(election_settle(&e, at(3.1)), ELECTION_STAND_BY);
    // And one that is silent then is nobody.
    put(&e, MAD_SM_DISCOVERING);
    met(&e, 300, 3, MAD_SM_DISCOVERING, 1.1);
    assert_int_equal(election_settle(&e, at(3)), ELECTION_WAIT);
    election_silent(&e, 300, at(4));
    assert_int_equal(election_settle(&e, at(4)), ELECTION_PROCEED);
}

// A master goes before one who only ranks high; of two masters the higher.
static void test_whom_to_follow(void **state)
{
    struct election e;
    (void)state;
    put(&e, MAD_SM_DISCOVERING);
    met(&e, 1, 15, MAD_SM_STANDBY, 1);
    met(&e, 2, 1, MAD_SM_MASTER, 1);
    met(&e, 3, 2, MAD_SM_MASTER, 1);
    assert_int_equal(election_settle(&e, at(2)), ELECTION_STAND_BY);
    assert_int_equal(e.master, 3);
}

// One with another key: its fabric is respected while we discover, but it gets nothing from us.
static void test_stranger(void **state)
{
    struct election e;
    struct mad_sm_info si = info(50, 15, MAD_SM_MASTER, 1);
    (void)state;
    si.sm_key = 99;
    put(&e, MAD_SM_DISCOVERING);
    election_met(&e, &si, at(1));
    assert_int_equal(election_settle(&e, at(1)), ELECTION_STAND_BY);
    put(&e, MAD_SM_DISCOVERING);
    si.sm_state = MAD_SM_STANDBY;
    election_met(&e, &si, at(1));
    (void)election_settle(&e, at(1));
    election_heard(&e, 50, &si, at(1));
    assert_int_equal(election_settle(&e, at(1)), ELECTION_PROCEED);
    (void)drain(&e);
    election_timer(&e, true, at(10));
    assert_int_equal(drain(&e).n[ELECTION_HANDOVER], 0);
}

// Told when new and at each change, and when it is gone; a full discovery that does not meet it ends it.
static void test_told_once(void **state)
{
    struct election e;
    (void)state;
    put(&e, MAD_SM_DISCOVERING);
    met(&e, 50, 9, MAD_SM_DISCOVERING, 1);
    met(&e, 60, 3, MAD_SM_STANDBY, 1);
    assert_int_equal(drain(&e).n[ELECTION_MET], 2);
    assert_int_equal(election_settle(&e, at(1)), ELECTION_STAND_BY);
    heard(&e, 50, 9, MAD_SM_DISCOVERING, 2);
    assert_int_equal(drain(&e).n[ELECTION_MET], 0);
    heard(&e, 50, 9, MAD_SM_MASTER, 3);
    assert_int_equal(drain(&e).n[ELECTION_MET], 1);
    heard(&e, 50, 10, MAD_SM_MASTER, 4);
    assert_int_equal(drain(&e).n[ELECTION_MET], 1);
    election_begin(&e, false, at(5));
    (void)election_settle(&e, at(5));
    assert_int_equal(drain(&e).n[ELECTION_GONE], 0);
    election_begin(&e, true, at(5));
    (void)election_settle(&e, at(5));
    struct done d = drain(&e);
    assert_int_equal(d.n[ELECTION_GONE], 1); // the polls tell of the master
    assert_true(d.peer[ELECTION_GONE].guid == 60);
}

// --- standby ---

static void test_master_vanishes(void **state)
{
    struct election e;
    mono_t due;
    (void)state;
    put(&e, MAD_SM_STANDBY);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(e.state, MAD_SM_STANDBY);
        assert_true(election_due(&e, &due));
        assert_int_equal(mono_sub(due, at(1 + i)), MONO_S);
        election_timer(&e, true, due);
        struct done d = drain(&e);
        assert_int_equal(d.n[ELECTION_POLL], 1);
        assert_true(d.peer[ELECTION_POLL].guid == 50);
        election_timer(&e, true, mono_add(due, MONO_S / 2));
        assert_int_equal(drain(&e).n[ELECTION_POLL], 0);
        election_silent(&e, 50, due);
    }
    struct done d = drain(&e);
    assert_int_equal(e.state, MAD_SM_DISCOVERING);
    assert_int_equal(d.n[ELECTION_SWEEP], 1);
    assert_string_equal(d.cause, "master-gone");
    assert_int_equal(d.n[ELECTION_GONE], 1);
    election_begin(&e, true, at(6));
    assert_int_equal(election_settle(&e, at(6)), ELECTION_PROCEED);
    assert_int_equal(e.state, MAD_SM_MASTER);
}

// An answer in between begins the count anew.
static void test_master_answers_in_between(void **state)
{
    struct election e;
    (void)state;
    put(&e, MAD_SM_STANDBY);
    for (unsigned i = 0; i < 60; i++)
        if (i % 3 == 2)
            heard(&e, 50, 9, MAD_SM_MASTER, 2 + i);
        else
            election_silent(&e, 50, at(2 + i));
    assert_int_equal(e.state, MAD_SM_STANDBY);
}

// Followed while it ranks above us; when it is no master and below, it will not come.
static void test_master_steps_down(void **state)
{
    (void)state;
    for (unsigned prio = 7; prio <= 9; prio += 2)
        for (unsigned s = 0; s < 4; s++) {
            struct election e;
            put(&e, MAD_SM_STANDBY);
            for (unsigned i = 0; i < 3; i++)
                heard(&e, 50, (uint8_t)prio, (enum mad_sm_state)s, 2 + i);
            bool followed = s == MAD_SM_MASTER || (prio > 8 && s != MAD_SM_NOT_ACTIVE);
            assert_int_equal(e.state, followed ? MAD_SM_STANDBY : MAD_SM_DISCOVERING);
        }
}

static void still(struct election *e, uint8_t prio, unsigned polls, double t)
{
    struct mad_sm_info si = info(50, prio, MAD_SM_MASTER, 5);
    for (unsigned i = 0; i < polls; i++)
        election_heard(e, 50, &si, at(t + i));
}

// A count that stands still: looked around after ten polls, then after twenty; taken over from only when it
// ranks below us, and then as from a second master.
static void test_stands_still(void **state)
{
    struct election e;
    struct mad_sm_info si = info(50, 9, MAD_SM_MASTER, 5);
    (void)state;
    put(&e, MAD_SM_STANDBY);
    still(&e, 9, 10, 2);
    assert_int_equal(e.state, MAD_SM_STANDBY);
    still(&e, 9, 1, 12);
    assert_int_equal(e.state, MAD_SM_DISCOVERING);
    assert_string_equal(drain(&e).cause, "master-still");
    election_begin(&e, true, at(13));
    election_met(&e, &si, at(13));
    assert_int_equal(election_settle(&e, at(13)), ELECTION_STAND_BY);
    still(&e, 9, 19, 14);
    assert_int_equal(e.state, MAD_SM_STANDBY);
    still(&e, 9, 1, 33);
    assert_int_equal(e.state, MAD_SM_DISCOVERING);

    put(&e, MAD_SM_STANDBY);
    si.priority = 3;
    still(&e, 3, 11, 2);
    assert_int_equal(e.state, MAD_SM_DISCOVERING);
    election_begin(&e, true, at(13));
    election_met(&e, &si, at(13));
    assert_int_equal(election_settle(&e, at(13)), ELECTION_WAIT);
    election_heard(&e, 50, &si, at(13));
    assert_int_equal(election_settle(&e, at(13)), ELECTION_WAIT); // for its handover
    (void)drain(&e);
    election_timer(&e, false, at(16));
    assert_int_equal(drain(&e).n[ELECTION_SECOND_MASTER], 1);
    assert_int_equal(election_settle(&e, at(16)), ELECTION_PROCEED);
}

// One above us that never becomes master is not waited for without end.
static void test_idle_heir(void **state)
{
    struct election e;
    double t = 2;
    (void)state;
    put(&e, MAD_SM_DISCOVERING);
    met(&e, 50, 9, MAD_SM_STANDBY, 1);
    assert_int_equal(election_settle(&e, at(1)), ELECTION_STAND_BY);
    for (; e.state == MAD_SM_STANDBY; t += 1)
        heard(&e, 50, 9, MAD_SM_STANDBY, t);
    assert_in_range((int)t, 100, 130);
    (void)drain(&e);
    election_begin(&e, true, at(t));
    met(&e, 50, 9, MAD_SM_STANDBY, t);
    (void)election_settle(&e, at(t));
    heard(&e, 50, 9, MAD_SM_STANDBY, t);
    assert_int_equal(election_settle(&e, at(t)), ELECTION_PROCEED);
    (void)drain(&e);
    election_timer(&e, true, at(t + 1));
    assert_int_equal(drain(&e).n[ELECTION_HANDOVER], 0);
    heard(&e, 50, 9, MAD_SM_MASTER, t + 2); // now it is: it outranks us
    election_timer(&e, true, at(t + 3));
    assert_int_equal(drain(&e).n[ELECTION_HANDOVER], 1);
}

// Whom we wait for has given the fabric on: all are polled until one is master, who is followed.
static void test_follows(void **state)
{
    struct election e;
    (void)state;
    put(&e, MAD_SM_DISCOVERING);
    met(&e, 40, 9, MAD_SM_STANDBY, 1);
    met(&e, 50, 9, MAD_SM_MASTER, 1);
    assert_int_equal(election_settle(&e, at(1)), ELECTION_STAND_BY);
    (void)drain(&e);
    election_timer(&e, true, at(2));
    assert_int_equal(drain(&e).n[ELECTION_POLL], 1);
    heard(&e, 40, 9, MAD_SM_MASTER, 2); // 50 still says that it is
    assert_true(e.master == 50);
    heard(&e, 50, 9, MAD_SM_STANDBY, 2);
    election_timer(&e, true, at(3));
    assert_int_equal(drain(&e).n[ELECTION_POLL], 2);
    heard(&e, 40, 9, MAD_SM_MASTER, 3);
    assert_true(e.master == 40);
    election_timer(&e, true, at(4));
    assert_int_equal(drain(&e).n[ELECTION_POLL], 1);
}

// A master below us is asked to hand over, now and then; who is above is not.
static void test_asks(void **state)
{
    struct election e;
    unsigned asked = 0;
    (void)state;
    put(&e, MAD_SM_STANDBY);
    for (unsigned i = 0; i < 20; i++) {
        heard(&e, 50, 3, MAD_SM_MASTER, 2 + i);
        asked += drain(&e).n[ELECTION_ASK];
    }
    assert_int_equal(asked, 4);
    put(&e, MAD_SM_STANDBY);
    heard(&e, 50, 9, MAD_SM_MASTER, 2);
    assert_int_equal(drain(&e).n[ELECTION_ASK], 0);
}

// --- master ---

// A better standby or master is handed over to, by a sweep before it writes or by the timer between sweeps; a
// discovering one, one below and one with another key are not.
static void test_hands_over(void **state)
{
    (void)state;
    for (unsigned quiet = 0; quiet < 2; quiet++)
        for (unsigned prio = 7; prio <= 9; prio += 2)
            for (unsigned s = 0; s < 4; s++) {
                struct election e;
                put(&e, MAD_SM_MASTER);
                met(&e, 50, (uint8_t)prio, (enum mad_sm_state)s, 2);
                (void)drain(&e);
                bool heir = prio > 8 && s >= MAD_SM_STANDBY, second = prio < 8 && s == MAD_SM_MASTER;
                if (quiet)
                    election_timer(&e, true, at(2));
                else
                    assert_int_equal(election_settle(&e, at(2)),
                                     heir || second ? ELECTION_WAIT : ELECTION_PROCEED);
                assert_int_equal(drain(&e).n[ELECTION_HANDOVER], heir);
                assert_int_equal(e.state, MAD_SM_MASTER);
                if (!heir)
                    continue;
                assert_int_equal(election_shown(&e), MAD_SM_STANDBY);
                election_timer(&e, true, at(2.1));
                assert_int_equal(election_settle(&e, at(2.1)), ELECTION_WAIT);
                assert_int_equal(drain(&e).n[ELECTION_HANDOVER], 0); // it is under way
                election_handed(&e, 50, ELECTION_HANDED, at(2.2));
                assert_int_equal(drain(&e).n[ELECTION_TAKEN], 1);
                assert_int_equal(e.state, MAD_SM_STANDBY);
                assert_true(e.master == 50);
                assert_int_equal(election_settle(&e, at(2.2)), ELECTION_STAND_BY);
            }
}

// While a sweep writes, the timer leaves the fabric with us.
static void test_not_while_writing(void **state)
{
    struct election e;
    (void)state;
    put(&e, MAD_SM_MASTER);
    met(&e, 50, 9, MAD_SM_STANDBY, 2);
    election_timer(&e, false, at(3));
    assert_int_equal(drain(&e).n[ELECTION_HANDOVER], 0);
}

static void test_acknowledged(void **state)
{
    struct election e;
    (void)state;
    put(&e, MAD_SM_MASTER);
    met(&e, 50, 9, MAD_SM_STANDBY, 2);
    election_timer(&e, true, at(2));
    assert_int_equal(control(&e, MAD_SM_ACKNOWLEDGE, 51, MAD_SM_STANDBY, 2), MAD_STATUS_BAD_VALUE);
    assert_int_equal(control(&e, MAD_SM_ACKNOWLEDGE, 50, MAD_SM_STANDBY, 2), 0);
    assert_int_equal(e.state, MAD_SM_STANDBY);
    (void)drain(&e);
    election_handed(&e, 50, ELECTION_HANDED, at(2.1)); // the same again
    assert_int_equal(drain(&e).n[ELECTION_TAKEN], 0);
    assert_int_equal(e.state, MAD_SM_STANDBY);
}

// Not taken: we stay master, and do not offer it again for a minute or until it has changed. A better master
// is not fought, whatever it answers; one whose answer was lost is asked what it is now.
static void test_not_taken(void **state)
{
    (void)state;
    for (unsigned lost = 0; lost < 2; lost++)
        for (unsigned s = MAD_SM_STANDBY; s <= MAD_SM_MASTER; s++)
            for (unsigned after = 0; after < 3; after++) { // standby, master, silent
                struct election e;
                put(&e, MAD_SM_MASTER);
                met(&e, 50, 9, (enum mad_sm_state)s, 2);
                election_timer(&e, true, at(2));
                (void)drain(&e);
                election_handed(&e, 50, lost ? ELECTION_LOST : ELECTION_REFUSED, at(3));
                bool gives_way = !lost && s == MAD_SM_MASTER;
                if (lost) {
                    assert_int_equal(drain(&e).n[ELECTION_POLL], 1);
                    assert_int_equal(election_settle(&e, at(3)), ELECTION_WAIT);
                    if (after == 2)
                        election_silent(&e, 50, at(3.5));
                    else
                        heard(&e, 50, 9, after ? MAD_SM_MASTER : MAD_SM_STANDBY, 3.5);
                    gives_way = after == 1;
                }
                assert_int_equal(e.state, gives_way ? MAD_SM_STANDBY : MAD_SM_MASTER);
                assert_int_equal(election_settle(&e, at(3.6)), gives_way        ? ELECTION_STAND_BY
                                                               : e.handing == 0 ? ELECTION_PROCEED
                                                                                : ELECTION_WAIT);
                if (gives_way || lost)
                    continue;
                assert_int_equal(drain(&e).n[ELECTION_NOT_TAKEN], 1);
                election_timer(&e, true, at(62));
                assert_int_equal(drain(&e).n[ELECTION_HANDOVER], 0);
                election_timer(&e, true, at(64));
                assert_int_equal(drain(&e).n[ELECTION_HANDOVER], 1);
            }
}

// A lower master gets three seconds to hand over, once; then both write and the operator is told once.
static void test_second_master(void **state)
{
    struct election e;
    (void)state;
    put(&e, MAD_SM_MASTER);
    election_begin(&e, true, at(2));
    met(&e, 300, 8, MAD_SM_MASTER, 2);
    unsigned told = 0, polls = 0;
    double t = 2;
    for (; election_settle(&e, at(t)) == ELECTION_WAIT; t += 0.25) {
        election_timer(&e, false, at(t));
        struct done d = drain(&e);
        told += d.n[ELECTION_SECOND_MASTER];
        polls += d.n[ELECTION_POLL];
        heard(&e, 300, 8, MAD_SM_MASTER, t);
    }
    assert_in_range((int)(t * 100), 500, 550);
    assert_int_equal(told, 1);
    assert_in_range(polls, 5, 8);
    for (; t < 100; t += 1) {
        election_timer(&e, true, at(t));
        told += drain(&e).n[ELECTION_SECOND_MASTER];
        heard(&e, 300, 8, MAD_SM_MASTER, t);
        assert_int_equal(election_settle(&e, at(t)), ELECTION_PROCEED);
    }
    assert_int_equal(told, 1);
    // It gives way, and comes back: anew.
    heard(&e, 300, 8, MAD_SM_STANDBY, t);
    heard(&e, 300, 8, MAD_SM_MASTER, t + 1);
    assert_int_equal(election_settle(&e, at(t + 1)), ELECTION_WAIT);
    assert_int_equal(control(&e, MAD_SM_HANDOVER, 300, MAD_SM_MASTER, t + 2), 0);
    struct done d = drain(&e);
    assert_int_equal(d.n[ELECTION_ACKNOWLEDGE], 1);
    assert_string_equal(d.cause, "handover");
    assert_int_equal(election_settle(&e, at(t + 2)), ELECTION_PROCEED);
    // Its handover again: the answer was lost. Acknowledged again, not told again.
    assert_int_equal(control(&e, MAD_SM_HANDOVER, 300, MAD_SM_MASTER, t + 3), 0);
    d = drain(&e);
    assert_int_equal(d.n[ELECTION_ACKNOWLEDGE], 1);
    assert_int_equal(d.n[ELECTION_GIVEN] + d.n[ELECTION_SWEEP], 0);
}

// Dead ones are forgotten and hold nothing up.
static void test_peer_dies(void **state)
{
    struct election e;
    (void)state;
    put(&e, MAD_SM_MASTER);
    met(&e, 300, 3, MAD_SM_MASTER, 2);
    assert_int_equal(election_settle(&e, at(2)), ELECTION_WAIT);
    for (unsigned i = 0; i < 3; i++)
        election_silent(&e, 300, at(2.5 + i / 2.0));
    struct done d = drain(&e);
    assert_int_equal(d.n[ELECTION_GONE], 1);
    assert_int_equal(election_settle(&e, at(4)), ELECTION_PROCEED);
    assert_false(election_due(&e, &(mono_t){0}));
    heard(&e, 300, 3, MAD_SM_MASTER, 5); // a late answer
    assert_int_equal(e.peers, 0);
}

// The operator's word can make another one the better.
static void test_priority(void **state)
{
    struct election e;
    (void)state;
    put(&e, MAD_SM_MASTER);
    met(&e, 300, 8, MAD_SM_STANDBY, 2);
    election_timer(&e, true, at(2));
    assert_int_equal(drain(&e).n[ELECTION_HANDOVER], 0);
    election_priority(&e, 2, at(3));
    election_timer(&e, true, at(3));
    assert_int_equal(drain(&e).n[ELECTION_HANDOVER], 1);

    put(&e, MAD_SM_STANDBY);
    election_priority(&e, 12, at(3));
    heard(&e, 50, 9, MAD_SM_MASTER, 4);
    assert_int_equal(drain(&e).n[ELECTION_ASK], 1);
}

// HANDOVER while we discover: the giver is no longer master, whatever it said when we met.
static void test_given_while_discovering(void **state)
{
    struct election e;
    (void)state;
    put(&e, MAD_SM_DISCOVERING);
    met(&e, 300, 3, MAD_SM_MASTER, 1.5);
    assert_int_equal(control(&e, MAD_SM_HANDOVER, 300, MAD_SM_MASTER, 1.6), 0);
    assert_int_equal(election_settle(&e, at(2)), ELECTION_WAIT);
    heard(&e, 300, 3, MAD_SM_STANDBY, 2.1);
    assert_int_equal(election_settle(&e, at(2.1)), ELECTION_PROCEED);
}

static void test_disabled(void **state)
{
    struct election e;
    (void)state;
    put(&e, MAD_SM_STANDBY);
    assert_int_equal(control(&e, MAD_SM_DISABLE, 50, MAD_SM_MASTER, 2), 0);
    election_begin(&e, true, at(3));
    assert_int_equal(e.state, MAD_SM_NOT_ACTIVE);
    assert_int_equal(election_settle(&e, at(3)), ELECTION_STAND_BY);
    assert_false(election_due(&e, &(mono_t){0}));
    met(&e, 50, 9, MAD_SM_MASTER, 3);
    assert_int_equal(control(&e, MAD_SM_STANDBY_REQUEST, 50, MAD_SM_MASTER, 4), 0);
    assert_int_equal(e.state, MAD_SM_STANDBY);
    assert_true(e.master == 50);
}

// More managers than anybody has: the table stays bounded, and a master still finds its place.
static void test_many(void **state)
{
    struct election e;
    (void)state;
    put(&e, MAD_SM_DISCOVERING);
    for (unsigned i = 0; i < 1000; i++) {
        met(&e, 1000 + i, 3, MAD_SM_STANDBY, 2);
        (void)drain(&e);
    }
    assert_int_equal(e.peers, ELECTION_PEERS);
    met(&e, 5000, 3, MAD_SM_MASTER, 2);
    assert_int_equal(election_settle(&e, at(3)), ELECTION_STAND_BY);
    assert_true(e.master == 5000);
    for (unsigned i = 0; i < 1000; i++)
        met(&e, 10000 + i, 15, MAD_SM_MASTER, 4), (void)drain(&e);
    assert_non_null(election_peer(&e, 5000));
    election_begin(&e, true, at(5));
    (void)election_settle(&e, at(5));
    assert_int_equal(drain(&e).n[ELECTION_GONE], ELECTION_PEERS - 1);
}

// Anything in any order: no assertion of the machine's own, and what it promises of itself.
static void test_noise(void **state)
{
    struct election e;
    struct rng r;
    double t = 1;
    (void)state;
    rng_init(&r, 11);
    init(&e);
    for (unsigned i = 0; i < 300000; i++) {
        uint64_t guid = 95 + rng_below(&r, 10);
        struct mad_sm_info si = info(guid, (uint8_t)(6 + rng_below(&r, 4)),
                                     (enum mad_sm_state)rng_below(&r, 5), rng_below(&r, 3));
        si.sm_key = rng_below(&r, 8) ? KEY : rng_below(&r, 2);
        t += rng_below(&r, 100) / 100.0;
        switch (rng_below(&r, 9)) {
        case 0:
            election_begin(&e, rng_below(&r, 2), at(t));
            break;
        case 1:
            if (guid != OWN)
                election_met(&e, &si, at(t));
            break;
        case 2:
            (void)election_settle(&e, at(t));
            break;
        case 3:
            election_heard(&e, guid, &si, at(t));
            break;
        case 4:
            election_silent(&e, guid, at(t));
            break;
        case 5:
            election_handed(&e, guid, (enum election_handed)rng_below(&r, 3), at(t));
            break;
        case 6:
            (void)election_control(&e, rng_below(&r, 7), &si, at(t));
            break;
        case 7:
            election_priority(&e, (uint8_t)(6 + rng_below(&r, 4)), at(t));
            break;
        default:
            election_timer(&e, rng_below(&r, 2), at(t));
            break;
        }
        (void)drain(&e);
        assert_true(e.handing == 0 || e.state == MAD_SM_MASTER);
        assert_true((e.master != 0) == (e.state == MAD_SM_STANDBY));
        assert_true(e.master == 0 || election_peer(&e, e.master) != NULL);
        assert_null(election_peer(&e, OWN));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_controls),
        cmocka_unit_test(test_wrong_key),
        cmocka_unit_test(test_discovering),
        cmocka_unit_test(test_became_master_meanwhile),
        cmocka_unit_test(test_whom_to_follow),
        cmocka_unit_test(test_stranger),
        cmocka_unit_test(test_told_once),
        cmocka_unit_test(test_master_vanishes),
        cmocka_unit_test(test_master_answers_in_between),
        cmocka_unit_test(test_master_steps_down),
        cmocka_unit_test(test_stands_still),
        cmocka_unit_test(test_idle_heir),
        cmocka_unit_test(test_follows),
        cmocka_unit_test(test_asks),
        cmocka_unit_test(test_hands_over),
        cmocka_unit_test(test_not_while_writing),
        cmocka_unit_test(test_acknowledged),
        cmocka_unit_test(test_not_taken),
        cmocka_unit_test(test_second_master),
        cmocka_unit_test(test_peer_dies),
        cmocka_unit_test(test_priority),
        cmocka_unit_test(test_given_while_discovering),
        cmocka_unit_test(test_disabled),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
