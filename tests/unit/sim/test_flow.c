// SPDX-License-Identifier: Apache-2.0
// Traffic of a simulated fabric: along the programmed tables, with waits where they would be, and counters
// that move in the loop's time.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sim/sim_flow.h"
#include "tests/unit/sim/client.h"

#define BPS 25e9 // 4xHDR
#define NEAR(a, b, tol) assert_true(fabs((double)(a) - (double)(b)) <= (tol))

static struct rig rig;
static struct rig_ends e;

static int setup(void **state)
{
    rig_up(&rig, NULL, &e);
    return 0;
}

static int teardown(void **state)
{
    rig_stop(&rig);
    return 0;
}

static uint64_t counter(uint64_t guid, unsigned port, enum sim_counter c)
{
    uint64_t v = 0;
    assert_int_equal(sim_counter_get(rig.s, guid, port, c, &v), 0);
    return v;
}

// Adapters' port GUIDs in the fabric's order.
static unsigned hosts(uint64_t ret[64], uint64_t node[64])
{
    unsigned n = 0;
    for (uint32_t i = 0; i < rig.f->num_nodes && n < 64; i++)
        if (rig.f->node[i].type == NODE_CA) {
            node[n] = rig.f->node[i].guid;
            ret[n++] = rig.f->port[rig.f->node[i].first_port].guid;
        }
    return n;
}

static void pairs(const uint64_t *from, const uint64_t *to, unsigned n, double load)
{
    struct sim_flow_spec d = {.pattern = SIM_FLOW_PAIRS,
                              .host = from,
                              .num_hosts = n,
                              .receiver = to,
                              .num_receivers = n,
                              .load = load};
    assert_int_equal(sim_flow_start(rig.s, &d, NULL), 0);
}

static void counters_move_in_time(void **state)
{
    uint64_t port[64], node[64];
    hosts(port, node);
    pairs(&port[0], &port[5], 1, 0.5);
    rig_run(&rig, 100 * MONO_MS);
    uint64_t x = counter(node[0], 1, SIM_XMIT_DATA), r = counter(node[5], 1, SIM_RCV_DATA);
    uint64_t px = counter(node[0], 1, SIM_XMIT_PKTS);
    rig_run(&rig, 2 * MONO_S);
    uint64_t sent = counter(node[0], 1, SIM_XMIT_DATA) - x, got = counter(node[5], 1, SIM_RCV_DATA) - r;
    uint64_t packets = counter(node[0], 1, SIM_XMIT_PKTS) - px;
    NEAR(4.0 * (double)sent, 0.5 * 2 * BPS, 0.01 * BPS);
    NEAR(sent, got, 2);
    NEAR(4.0 * (double)sent / (double)packets, rig_field(&rig, node[0], 1, "neighbor_mtu") == 5 ? 4126 : 2078,
         1);
    assert_int_equal(counter(node[0], 1, SIM_XMIT_WAIT), 0);
    assert_int_equal(sim_flow_stop(rig.s, 0), 0);
    rig_run(&rig, MONO_S);
    x = counter(node[0], 1, SIM_XMIT_DATA);
    rig_run(&rig, MONO_S);
    assert_int_equal(counter(node[0], 1, SIM_XMIT_DATA), x);
}

static void waits_are_ticks_of_eight_bytes(void **state)
{
    uint64_t port[64], node[64], from[2], to[2];
    hosts(port, node);
    from[0] = port[0], from[1] = port[1], to[0] = to[1] = port[7];
    pairs(from, to, 2, 1);
    sim_flow_settle(rig.s);
    uint64_t w = counter(node[0], 1, SIM_XMIT_WAIT), x = counter(node[0], 1, SIM_XMIT_DATA);
    rig_run(&rig, MONO_S);
    w = counter(node[0], 1, SIM_XMIT_WAIT) - w;
    x = counter(node[0], 1, SIM_XMIT_DATA) - x;
    NEAR(8.0 * (double)w, BPS / 2, 0.03 * BPS);
    NEAR(8.0 * (double)w + 4.0 * (double)x, BPS, 0.01 * BPS); // it sends, or it waits
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counters_move_in_time, setup, teardown),
        cmocka_unit_test_setup_teardown(waits_are_ticks_of_eight_bytes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
