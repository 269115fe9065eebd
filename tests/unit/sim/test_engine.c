// SPDX-License-Identifier: Apache-2.0
// The transaction engine over the simulator: every request ends well although MADs are lost, agents are slow
// and buffers are small.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/mono.h"
#include "lib/xalloc.h"
#include "mad/engine.h"
#include "tests/unit/sim/client.h"

static unsigned good, bad;
static uint64_t *answered_by;

static void done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct mad_node_info ni;
    if (r->status != 0 || r->mad_status != 0) {
        bad++;
        return;
    }
    mad_node_info_decode(r->data, &ni);
    answered_by[user] = ni.node_guid;
    good++;
}

static void ask_all(const struct sim_opts *o, unsigned copies, unsigned want_bad)
{
    struct rig r;
    rig_start(&r, rig_fabric("rail-64"), o);
    struct mad_engine *e = mad_engine_new(r.l, r.t, &(struct mad_engine_opts){.retries = 8});
    good = bad = 0;
    answered_by = xcalloc(r.f->num_nodes, sizeof(*answered_by));
    for (unsigned c = 0; c < copies; c++)
        for (uint32_t i = 0; i < r.f->num_nodes; i++) {
            struct dest d = rig_path(&r, r.f->node[i].guid);
            struct dr_path path = {.hops = d.to.hops};
            memcpy(path.port, d.to.path, sizeof(path.port));
            struct mad_request q = {
                .mgmt_class = MAD_CLASS_SM_DR,
                .method = MAD_METHOD_GET,
                .attr_id = MAD_ATTR_NODE_INFO,
                .path = &path,
                .device = r.f->node[i].guid,
                .retries = -1,
                .done = done,
                .user = i,
            };
            mad_engine_send(e, &q);
        }
    rig_run(&r, 3600 * MONO_S);
    assert_int_equal(bad, want_bad);
    assert_int_equal(good + bad, copies * r.f->num_nodes);
    for (uint32_t i = 0; i < r.f->num_nodes; i++)
        assert_true(want_bad > 0 || answered_by[i] == r.f->node[i].guid);
    assert_int_equal(mad_engine_outstanding(e) + mad_engine_queued(e), 0);
    mad_engine_free(e);
    free(answered_by);
    rig_stop(&r);
}

static void without_latency(void **state)
{
    ask_all(NULL, 20, 0);
}

static void with_latency_and_queues(void **state)
{
    ask_all(&(struct sim_opts){.link_latency_ns = 300, .service_ns = 20000, .transit_ns = 2000}, 20, 0);
}

static void with_loss(void **state)
{
    ask_all(&(struct sim_opts){.link_latency_ns = 300, .service_ns = 20000, .loss = 0.03, .seed = 3}, 20, 0);
}

static void with_small_buffers(void **state)
{
    ask_all(&(struct sim_opts){.service_ns = 50000, .vl15_buffer = 2}, 20, 0);
}

static void with_a_dead_adapter(void **state)
{
    struct sim_opts o = {.dead_nodes = 1};
    for (o.dead_nodes_seed = 0;; o.dead_nodes_seed++) { // a seed that hits an adapter, on no one's way
        struct rig r;
        rig_start(&r, rig_fabric("rail-64"), &o);
        unsigned dead = 0, adapters = 0;
        for (uint32_t i = 0; i < r.f->num_nodes; i++) {
            struct dest d = rig_path(&r, r.f->node[i].guid);
            uint8_t data[64] = {0};
            if (rig_smp(&r, &d, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, data) == 0)
                continue;
            dead++;
            adapters += r.f->node[i].type == NODE_CA;
        }
        rig_stop(&r);
        if (dead == 1 && adapters == 1)
            break;
    }
    ask_all(&o, 3, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_latency),     cmocka_unit_test(with_latency_and_queues),
        cmocka_unit_test(with_loss),           cmocka_unit_test(with_small_buffers),
        cmocka_unit_test(with_a_dead_adapter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
