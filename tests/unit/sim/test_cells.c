// SPDX-License-Identifier: Apache-2.0
// Cells and credits by themselves, on nets small enough to be worked out by hand.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/rng.h"
#include "sim/sim_cells.h"

#define RATE 1e6 // cells/s
#define MAX 2000

// A net by hand: switches are vertices 0.., hosts 100..; every cable is two links, 2i and 2i + 1.
struct hand {
    struct cells_link link[MAX];
    struct cells_flow flow[MAX];
    uint32_t links, flows;
    uint32_t from[MAX];       // vertex of a link
    uint32_t way[400][400];   // [vertex][dest]: link, CELLS_NONE
    uint32_t other[400][400]; // a second one, to choose from
    unsigned lanes;
    unsigned lane_of_flow[MAX];
    struct cells_use use[MAX];
    double got[MAX];
};
static struct hand h;

static int setup(void **state)
{
    memset(&h, 0, sizeof(h));
    memset(h.way, 0xff, sizeof(h.way));
    memset(h.other, 0xff, sizeof(h.other));
    h.lanes = 1;
    return 0;
}

static uint32_t cable(uint32_t a, uint32_t z, double rate)
{
    uint32_t l = h.links;
    h.link[l] = (struct cells_link){.rate = rate, .to = z, .drain = 1};
    h.link[l + 1] = (struct cells_link){.rate = rate, .to = a, .drain = 1};
    h.from[l] = a;
    h.from[l + 1] = z;
    h.links += 2;
    return l;
}

// A host's cable: l is out of the host, l + 1 into it. Its switch sends to it there.
static uint32_t host(uint32_t v, uint32_t sw, double rate)
{
    uint32_t l = cable(v, sw, rate);
    h.way[sw][v] = l + 1;
    return l;
}

static uint32_t flow(uint32_t link, uint32_t to, double rate)
{
    h.flow[h.flows] = (struct cells_flow){.link = link, .dest = to, .rate = rate};
    return h.flows++;
}

static unsigned next(void *arg, uint32_t v, uint32_t f, uint32_t *ret)
{
    uint32_t d = h.flow[f].dest;
    if (v == d)
        return CELLS_HERE;
    ret[0] = h.way[v][d];
    ret[1] = h.other[v][d];
    return (ret[0] != CELLS_NONE) + (ret[1] != CELLS_NONE);
}

static unsigned lane(void *arg, uint32_t in, uint32_t out, uint32_t f)
{
    return h.lane_of_flow[f];
}

static struct cells *make(uint64_t seed, unsigned measure)
{
    struct cells_net net = {.num_links = h.links,
                            .num_flows = h.flows,
                            .link = h.link,
                            .flow = h.flow,
                            .next = next,
                            .lane = lane,
                            .lanes = h.lanes,
                            .measure = measure,
                            .seed = seed};
    return cells_new(&net);
}

static void run(void)
{
    struct cells *c = make(1, 0);
    while (!cells_run(c, 777))
        assert_true(cells_sane(c));
    assert_true(cells_sane(c));
    cells_result(c, h.use, h.got);
    cells_free(c);
}

#define NEAR(a, b, tol) assert_true(fabs((a) - (b)) <= (tol))

static void one_flow_fills_its_way(void **state)
{
    uint32_t a = host(100, 0, RATE), b = host(101, 0, RATE);
    flow(a, 101, INFINITY);
    run();
    NEAR(h.got[0], RATE, 0.01 * RATE);
    NEAR(h.use[a].used, 1, 0.01);
    NEAR(h.use[b + 1].used, 1, 0.01);
    NEAR(h.use[a].held, 0, 0.01);
    assert_true(h.use[b].sent == 0 && h.use[b].held == 0);
    assert_int_equal(h.use[a].root, CELLS_NONE);
}

static void two_to_one_are_held_half_the_time(void **state)
{
    uint32_t a = host(100, 0, RATE), b = host(101, 0, RATE), z = host(102, 0, RATE);
    flow(a, 102, INFINITY);
    flow(b, 102, INFINITY);
    run();
    for (unsigned i = 0; i < 2; i++) {
        NEAR(h.got[i], RATE / 2, 0.02 * RATE);
        NEAR(h.use[i ? b : a].held, 0.5, 0.02);
        NEAR(h.use[i ? b : a].used, 0.5, 0.02);
        assert_int_equal(h.use[i ? b : a].root, z + 1);
        NEAR(h.use[i ? b : a].root_share, 1, 0.01);
    }
    NEAR(h.use[z + 1].used, 1, 0.01);
    assert_true(h.use[z + 1].held < 0.01);
    NEAR(h.use[z + 1].lost, RATE, 0.2 * RATE); // one of both waits at any time
}

// Shares at a full link are by what comes in by, not by flow: the host at the end of the row gets half of it,
// the others half of what is left.
static void a_parking_lot(void **state)
{
    uint32_t out[3], z = host(110, 0, RATE);
    for (unsigned i = 0; i < 3; i++)
        out[i] = host(100 + i, i, RATE);
    uint32_t t1 = cable(1, 0, RATE), t2 = cable(2, 1, RATE);
    h.way[1][110] = t1;
    h.way[2][110] = t2;
    for (unsigned i = 0; i < 3; i++)
        flow(out[i], 110, INFINITY);
    run();
    NEAR(h.got[0], RATE / 2, 0.02 * RATE);
    NEAR(h.got[1], RATE / 4, 0.02 * RATE);
    NEAR(h.got[2], RATE / 4, 0.02 * RATE);
    NEAR(h.use[t1].used, 0.5, 0.02);
    NEAR(h.use[t1].held, 0.5, 0.02);
    NEAR(h.use[t2].held, 0.75, 0.02);
    NEAR(h.use[out[2]].held, 0.75, 0.02);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(h.use[out[i]].root, z + 1);
    assert_int_equal(h.use[t2].root, z + 1);
    assert_int_equal(h.use[t1].root, z + 1);
}

// A flow that only shares a cable with the ones that wait is held up with them, and so are its sender's
// others.
static void a_victim_shares_the_buffer(void **state)
{
    uint32_t a = host(100, 0, RATE), b = host(101, 0, RATE), c = host(102, 1, RATE);
    uint32_t slow = host(110, 1, RATE), fine = host(111, 1, RATE), t = cable(0, 1, RATE);
    h.way[0][110] = h.way[0][111] = t;
    flow(a, 110, INFINITY);
    flow(b, 111, INFINITY); // the victim
    flow(c, 110, INFINITY);
    run();
    NEAR(h.got[0], RATE / 2, 0.03 * RATE);
    NEAR(h.got[2], RATE / 2, 0.03 * RATE);
    NEAR(h.got[1], RATE / 2, 0.03 * RATE); // it could have had half of the trunk and has no more
    assert_true(h.use[fine + 1].held < 0.01);
    assert_int_equal(h.use[c].root, slow + 1);
    setup(state);
    // three to one: the trunk gets a third through, the victim goes down to as much
    uint32_t s[3];
    for (unsigned i = 0; i < 3; i++)
        s[i] = host(100 + i, i == 0 ? 0 : 1, RATE);
    b = host(105, 0, RATE);
    slow = host(110, 1, RATE);
    host(111, 1, RATE);
    t = cable(0, 1, RATE);
    h.way[0][110] = h.way[0][111] = t;
    for (unsigned i = 0; i < 3; i++)
        flow(s[i], 110, INFINITY);
    uint32_t v = flow(b, 111, INFINITY);
    run();
    NEAR(h.got[0], RATE / 3, 0.03 * RATE);
    NEAR(h.got[v], RATE / 3, 0.05 * RATE);
    NEAR(h.use[t].held, 1.0 / 3, 0.05);
    assert_int_equal(h.use[t].root, slow + 1);
    assert_int_equal(h.use[b].root, slow + 1);
}

static void a_slow_host_holds_its_cable(void **state)
{
    uint32_t a = host(100, 0, RATE), z = host(101, 0, RATE);
    h.link[z + 1].drain = 0.2f;
    flow(a, 101, INFINITY);
    run();
    NEAR(h.got[0], 0.2 * RATE, 0.01 * RATE);
    NEAR(h.use[z + 1].used, 0.2, 0.01);
    NEAR(h.use[z + 1].held, 0.8, 0.01);
    NEAR(h.use[a].held, 0.8, 0.01);
    assert_int_equal(h.use[z + 1].root, z + 1);
    assert_int_equal(h.use[a].root, z + 1);
    assert_false(h.use[a].stuck);
    h.link[z + 1].drain = 0;
    run();
    assert_true(h.got[0] == 0 && h.use[z + 1].stuck && h.use[a].stuck);
    assert_false(h.use[a].circle);
    assert_int_equal(h.use[a].root, z + 1);
}

static void links_of_all_speeds(void **state)
{
    uint32_t a = host(100, 0, 4 * RATE), z = host(101, 1, RATE), t = cable(0, 1, 1.5 * RATE);
    h.way[0][101] = t;
    flow(a, 101, INFINITY);
    run();
    NEAR(h.got[0], RATE, 0.02 * RATE);
    NEAR(h.use[a].used, 0.25, 0.01);
    NEAR(h.use[a].held, 0.75, 0.02);
    NEAR(h.use[t].used, 0.667, 0.02);
    NEAR(h.use[t].held, 0.333, 0.02);
    assert_int_equal(h.use[a].root, z + 1);
    h.link[t].rate = RATE / 16; // the trunk is the narrow place
    run();
    NEAR(h.got[0], RATE / 16, 0.01 * RATE);
    assert_int_equal(h.use[a].root, t);
    assert_true(h.use[t].held < 0.01);
}

static void what_is_asked_for_is_carried(void **state)
{
    uint32_t a = host(100, 0, RATE), z = host(101, 0, RATE), b = host(102, 0, RATE);
    flow(a, 101, 0.3 * RATE);
    flow(b, 101, 0.4 * RATE);
    run();
    assert_true(h.got[0] == 0.3 * RATE && h.got[1] == 0.4 * RATE); // to the last cell
    NEAR(h.use[z + 1].used, 0.7, 1e-9);
    assert_true(h.use[a].held < 0.01);
    flow(host(103, 0, RATE), 101, 1e-5 * RATE); // less than one while it is watched
    run();
    assert_true(h.got[2] == 1e-5 * RATE);
    NEAR(h.use[z + 1].sent, 0.70001 * RATE, 1e-6 * RATE);
    h.flow[0].rate = 0.9 * RATE; // more than goes
    run();
    NEAR(h.got[0] + h.got[1], RATE, 0.01 * RATE);
    NEAR(h.got[1], 0.4 * RATE, 0.02 * RATE); // below its half: it has all it asks for
}

static void a_window_bounds_what_is_under_way(void **state)
{
    uint32_t a = host(100, 0, RATE), b = host(101, 0, RATE), z = host(102, 0, RATE),
             other = host(103, 0, RATE);
    flow(a, 102, INFINITY);
    flow(b, 102, INFINITY);
    flow(a, 103, INFINITY);
    run();
    NEAR(h.got[2], RATE / 2, 0.03 * RATE); // held up by its sender's other flow
    for (unsigned i = 0; i < 3; i++)
        h.flow[i].window = 3;
    run();
    assert_true(h.got[2] > 0.49 * RATE && h.got[0] > 0.45 * RATE);
    assert_true(h.use[a].held < 0.02); // three cells of each never fill a buffer of eight
    assert_true(h.use[z + 1].used > 0.95);
    (void)other;
}

static void lanes_do_not_hold_each_other_up(void **state)
{
    uint32_t a = host(100, 0, RATE), dead = host(110, 1, RATE), z = host(111, 1, RATE), t = cable(0, 1, RATE);
    h.way[0][110] = h.way[0][111] = t;
    h.link[dead + 1].drain = 0;
    flow(a, 110, INFINITY);
    flow(a, 111, INFINITY);
    run();
    assert_true(h.got[1] == 0); // all behind the one that does not move
    assert_int_equal(h.use[a].root, dead + 1);
    h.lanes = 2;
    h.lane_of_flow[1] = 1;
    run();
    NEAR(h.got[1], RATE, 0.01 * RATE);
    assert_true(h.use[a].held < 0.01 && h.use[t].held < 0.01);
    (void)z;
}

static void who_may_choose_takes_both(void **state)
{
    uint32_t a = host(100, 0, RATE), b = host(101, 0, RATE), t1 = cable(0, 1, RATE), t2 = cable(0, 1, RATE);
    host(110, 1, RATE);
    host(111, 1, RATE);
    h.way[0][110] = h.way[0][111] = t1;
    flow(a, 110, INFINITY);
    flow(b, 111, INFINITY);
    run();
    NEAR(h.got[0], RATE / 2, 0.02 * RATE);
    assert_int_equal(h.use[a].root, t1);
    h.other[0][110] = h.other[0][111] = t2;
    run();
    NEAR(h.got[0], RATE, 0.02 * RATE);
    NEAR(h.got[1], RATE, 0.02 * RATE);
    NEAR(h.use[t1].used, 1, 0.05);
    NEAR(h.use[t2].used, 1, 0.05);
}

static void what_has_no_way_is_counted(void **state)
{
    uint32_t a = host(100, 0, RATE), dead = host(101, 0, 0);
    flow(a, 101, INFINITY);
    run();
    assert_true(h.got[0] == 0);
    NEAR(h.use[dead + 1].discarded, RATE, 0.01 * RATE);
    NEAR(h.use[a].used, 1, 0.01);
    h.way[0][101] = CELLS_NONE;
    run();
    NEAR(h.use[a].unrouted, RATE, 0.01 * RATE);
    assert_true(h.use[dead + 1].discarded == 0);
}

// A ring of switches in which everybody sends two on, all the same way round: buffers wait for each other.
static void ring_of(unsigned n, unsigned lanes, unsigned step)
{
    uint32_t out[32], way[32];
    for (unsigned i = 0; i < n; i++)
        out[i] = host(100 + i, i, RATE);
    for (unsigned i = 0; i < n; i++)
        way[i] = cable(i, (i + 1) % n, RATE);
    for (unsigned i = 0; i < n; i++)
        for (unsigned d = 0; d < n; d++)
            if (d != i)
                h.way[i][100 + d] = way[i];
    for (unsigned i = 0; i < n; i++)
        flow(out[i], 100 + (i + step) % n, INFINITY);
    h.lanes = lanes;
}

static void a_circle_stands_still(void **state)
{
    ring_of(5, 1, 3);
    run();
    unsigned stuck = 0, circle = 0;
    for (uint32_t l = 0; l < h.links; l++) {
        stuck += h.use[l].stuck;
        circle += h.use[l].circle;
    }
    for (unsigned f = 0; f < 5; f++)
        assert_true(h.got[f] == 0);
    assert_int_equal(stuck, 10); // hosts and the five cables round
    assert_int_equal(circle, 5);
    // with a second lane from the fifth switch on it moves
    h.lanes = 2;
    for (unsigned f = 2; f < 5; f++)
        h.lane_of_flow[f] = 1;
    run();
    for (unsigned f = 0; f < 5; f++)
        assert_true(h.got[f] > 0.1 * RATE);
}

// Random small trees: nothing is lost, nothing is made up, whoever can send does (cells_sane at all times),
// and what goes into a switch comes out.
static void what_goes_in_comes_out(void **state)
{
    struct rng r;
    rng_init(&r, 7);
    for (unsigned round = 0; round < 40; round++) {
        setup(state);
        unsigned leaves = 2 + rng_below(&r, 4), spines = 1 + rng_below(&r, 3), per = 1 + rng_below(&r, 5);
        uint32_t up[8][4], out[64];
        for (unsigned i = 0; i < leaves * per; i++)
            out[i] = host(100 + i, i / per, RATE * (1 + rng_below(&r, 2)));
        for (unsigned i = 0; i < leaves; i++)
            for (unsigned k = 0; k < spines; k++)
                up[i][k] = cable(i, 20 + k, RATE);
        for (unsigned d = 0; d < leaves * per; d++)
            for (unsigned i = 0; i < leaves; i++)
                for (unsigned k = 0; k < spines; k++) {
                    if (i != d / per && k == d % spines)
                        h.way[i][100 + d] = up[i][k];
                    if (i == d / per)
                        h.way[20 + k][100 + d] = up[i][k] + 1;
                }
        for (unsigned i = 0; i < leaves * per; i++)
            h.link[out[i] + 1].drain = rng_below(&r, 4) ? 1 : 0.3f;
        unsigned flows = 1 + rng_below(&r, 40);
        for (unsigned i = 0; i < flows; i++) {
            uint32_t a = rng_below(&r, leaves * per), b = rng_below(&r, leaves * per);
            if (a != b)
                flow(out[a], 100 + b, rng_below(&r, 2) ? INFINITY : RATE * rng_double(&r));
        }
        run();
        double in[32] = {0}, gone[32] = {0};
        for (uint32_t l = 0; l < h.links; l++) {
            assert_true(h.use[l].used + h.use[l].held <= 1 + 1e-9);
            if (h.link[l].to < 32)
                in[h.link[l].to] += h.use[l].sent;
            if (h.from[l] < 32)
                gone[h.from[l]] += h.use[l].sent;
        }
        for (unsigned v = 0; v < 32; v++)
            NEAR(in[v], gone[v], 1e-6 * RATE);
    }
}

static void the_same_seed_the_same_end(void **state)
{
    struct cells_use use[MAX];
    double got[MAX];
    ring_of(8, 1, 2);
    for (unsigned f = 0; f < 8; f++)
        h.flow[f].rate = 0.45 * RATE;
    run();
    memcpy(use, h.use, sizeof(use));
    memcpy(got, h.got, sizeof(got));
    struct cells *c = make(1, 0);
    assert_true(cells_run(c, UINT64_MAX / 2));
    cells_result(c, h.use, h.got);
    cells_free(c);
    assert_memory_equal(use, h.use, h.links * sizeof(use[0]));
    assert_memory_equal(got, h.got, h.flows * sizeof(got[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_flow_fills_its_way, setup),
        cmocka_unit_test_setup(two_to_one_are_held_half_the_time, setup),
        cmocka_unit_test_setup(a_parking_lot, setup),
        cmocka_unit_test_setup(a_victim_shares_the_buffer, setup),
        cmocka_unit_test_setup(a_slow_host_holds_its_cable, setup),
        cmocka_unit_test_setup(links_of_all_speeds, setup),
        cmocka_unit_test_setup(what_is_asked_for_is_carried, setup),
        cmocka_unit_test_setup(a_window_bounds_what_is_under_way, setup),
        cmocka_unit_test_setup(lanes_do_not_hold_each_other_up, setup),
        cmocka_unit_test_setup(who_may_choose_takes_both, setup),
        cmocka_unit_test_setup(what_has_no_way_is_counted, setup),
        cmocka_unit_test_setup(a_circle_stands_still, setup),
        cmocka_unit_test_setup(what_goes_in_comes_out, setup),
        cmocka_unit_test_setup(the_same_seed_the_same_end, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
