// SPDX-License-Identifier: Apache-2.0
// A manager among liars: devices that answer nonsense, invent fabric, send traps without end, other managers.
// No crash, every sweep ends in bounded time with bounded work, and when the devices are honest again the
// fabric comes up whole. One device with one lie: test_lies.c.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/guid.h"
#include "mad/mad.h"
#include "tests/whole/liar.h"
#include "tests/whole/rig.h"

#define LONG_S 300 // of virtual time: no sweep of a small fabric takes longer, whatever is answered

static void make_trap(uint8_t *mad, uint16_t number, uint16_t issuer)
{
    struct mad_notice n = {
        .is_generic = 1, .type = 1, .producer_type = 2, .trap_number = number, .issuer_lid = issuer};
    memset(mad, 0, MAD_SIZE);
    mad[0] = 1;
    mad[1] = MAD_CLASS_SM_LID;
    mad[2] = 1;
    mad[3] = MAD_METHOD_TRAP;
    mad[17] = MAD_ATTR_NOTICE;
    mad_notice_encode(&n, mad + MAD_SMP_DATA_OFFSET);
}

static bool take_lying(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    uint8_t copy[MAD_SIZE];
    if (status != 0)
        return false;
    memcpy(copy, mad, sizeof(copy));
    struct liar *l = r->user;
    if (liar_below(l, 2000) < l->chance) { // something comes unasked as well
        uint8_t trap[MAD_SIZE];
        make_trap(trap, (uint16_t)(128 + liar_below(l, 20)), (uint16_t)liar_below(l, 40));
        rig_deliver(r, trap, &(struct mad_addr){.lid = (uint16_t)liar_below(l, 40)}, 0);
    }
    switch (liar_answer(l, copy)) {
    case LIAR_PASSES:
        rig_deliver(r, copy, from, 0);
        break;
    case LIAR_REPEATS:
        rig_deliver(r, copy, from, 0);
        rig_deliver(r, copy, from, 0);
        break;
    case LIAR_DROPS:
        break;
    }
    return true;
}

static void one_seed(uint64_t seed, const char *name)
{
    struct rig r;
    struct liar l = {.chance = 1};
    rig_init(&r, name, &(struct sim_opts){.seed = seed, .link_latency_ns = 1000, .service_ns = 5000});
    rng_init(&l.rng, seed);
    static const uint32_t chance[] = {2, 20, 100, 300, 700};
    l.chance = chance[liar_below(&l, 5)];
    l.kinds = seed % 3 == 0 ? 1u << (seed / 3 % LIES) : 0;
    r.user = &l;
    if (seed % 5 != 0) { // from the first MAD on, or into a fabric that is up
        r.take_recv = take_lying;
        rig_up(&r);
    } else {
        rig_up(&r);
        rig_sweeps(&r, 1, LONG_S);
        r.take_recv = take_lying;
        sm_resweep(r.sm, "operator", seed % 2);
    }
    for (unsigned i = 0; i < 3; i++) {
        rig_sweeps(&r, 1, LONG_S);
        sm_resweep(r.sm, "operator", i == 1);
    }
    rig_heals(&r, 4);
    rig_done(&r);
}

static void test_seeds(void **state)
{
    (void)state;
    const char *only = getenv("SEED");
    uint64_t from = only ? strtoull(only, NULL, 0) : 1, to = only ? from : 300;
    for (uint64_t seed = from; seed <= to; seed++) {
        one_seed(seed, seed % 4 == 1 ? "rail-16" : "ft3-4-2");
    }
}

// --- fabric without end ---

// Behind one port of our leaf every probe finds a new switch.
struct inventor {
    uint8_t leaf_port; // of our leaf
    uint8_t num_ports; // of an invented switch
    uint64_t guids;
    struct loop_task task;
    struct rig *r;
    uint8_t (*queue)[MAD_SIZE];
    size_t n, cap;
};

static void invent_answer(struct inventor *v, uint8_t *mad)
{
    uint8_t *data = mad + MAD_SMP_DATA_OFFSET;
    struct mad_smp smp;

    mad_smp_decode(mad, &smp);
    mad[3] = MAD_METHOD_GET_RESP;
    mad[4] = 0x80;
    if (smp.attr_id == MAD_ATTR_NODE_INFO) {
        struct mad_node_info ni = {.base_version = 1,
                                   .class_version = 1,
                                   .node_type = MAD_NODE_SWITCH,
                                   .num_ports = v->num_ports,
                                   .node_guid = 0xbad0000000000000ull + ++v->guids,
                                   .local_port_num = 1};
        ni.port_guid = ni.system_image_guid = ni.node_guid;
        mad_node_info_encode(&ni, data);
    } else if (smp.attr_id == MAD_ATTR_SWITCH_INFO && smp.method == MAD_METHOD_GET) {
        struct mad_switch_info si = {.linear_fdb_cap = 49152, .life_time_value = 18};
        mad_switch_info_encode(&si, data);
    } else if (smp.attr_id == MAD_ATTR_PORT_INFO && smp.method == MAD_METHOD_GET) {
        struct mad_port_info pi = {.port_state = MAD_PORT_INIT, .mtu_cap = 5, .vl_cap = 4};
        mad_port_info_encode(&pi, data);
    }
}

static void invent_deliver(void *arg)
{
    struct inventor *v = arg;
    size_t n = v->n;
    for (size_t i = 0; i < n; i++) {
        uint8_t mad[MAD_SIZE];
        memcpy(mad, v->queue[i], MAD_SIZE);
        rig_deliver(v->r, mad, &(struct mad_addr){.lid = 0xffff}, 0);
    }
    memmove(v->queue, v->queue + n, (v->n - n) * MAD_SIZE);
    v->n -= n;
    if (v->n > 0)
        loop_post(v->r->loop, &v->task);
}

static bool take_invented(struct rig *r, const uint8_t *mad, const struct mad_addr *to)
{
    struct inventor *v = r->user;
    struct mad_smp smp;
    (void)to;
    mad_smp_decode(mad, &smp);
    if (smp.mgmt_class != MAD_CLASS_SM_DR || smp.hop_count < 2 || smp.initial_path[2] != v->leaf_port)
        return false;
    if (v->n == v->cap) {
        v->cap = v->cap ? v->cap * 2 : 256;
        v->queue = realloc(v->queue, v->cap * MAD_SIZE);
    }
    memcpy(v->queue[v->n], mad, MAD_SIZE);
    invent_answer(v, v->queue[v->n++]);
    loop_post(r->loop, &v->task);
    return true;
}

static void invent(uint8_t num_ports, unsigned max_nodes)
{
    struct rig r;
    struct inventor v = {.leaf_port = 2, .num_ports = num_ports, .r = &r};
    uint16_t lid[64];

    rig_init(&r, "rail-16", NULL);
    if (getenv("WEFT_LONG_TESTS") == NULL)
        r.opts.max_switches = 300; // as many as it takes to see the limit
    loop_task_init(&v.task, "test", invent_deliver, &v);
    rig_up(&r);
    rig_sweeps(&r, 1, LONG_S);
    rig_judge(&r, NULL, 0);
    for (uint32_t i = 0; i < r.plan->num_nodes; i++) {
        struct sim_port_view view;
        unsigned num = r.plan->node[i].type == NODE_SWITCH ? 0 : 1;
        assert_int_equal(sim_port_view(r.sim, r.plan->node[i].guid, num, &view), 0);
        lid[i] = view.lid;
    }
    r.user = &v;
    r.take_send = take_invented;
    sm_resweep(r.sm, "operator", false);
    rig_sweeps(&r, 1, LONG_S);
    for (int i = 0; i < 3; i++) {
        rig_run(&r, 30 * MONO_S);
        assert_in_range(sm_fabric(r.sm)->num_nodes, r.plan->num_nodes - 1, max_nodes);
    }
    rig_heals(&r, 3);
    for (uint32_t i = 0; i < r.plan->num_nodes; i++) {
        struct sim_port_view view;
        unsigned num = r.plan->node[i].type == NODE_SWITCH ? 0 : 1;
        assert_int_equal(sim_port_view(r.sim, r.plan->node[i].guid, num, &view), 0);
        assert_int_equal(view.lid, lid[i]);
    }
    loop_unpost(r.loop, &v.task);
    rig_done(&r);
    free(v.queue);
}

// A chain: as far as a directed route reaches.
static void test_invented_chain(void **state)
{
    (void)state;
    invent(2, 28 + 63);
}

// A tree: as many switches as are managed at all.
static void test_invented_tree(void **state)
{
    (void)state;
    invent(36, 28 + 8192);
}

// A trap comes while a light sweep waits for a switch that has just died: it is acted upon at once.
static void test_trap_during_light_sweep(void **state)
{
    struct rig r;
    struct sm_status st;
    const struct node *leaf = NULL, *spine = NULL;
    (void)state;
    rig_init(&r, "rail-16", &(struct sim_opts){.seed = 1, .link_latency_ns = 1000, .service_ns = 5000});
    for (uint32_t i = 0; i < r.plan->num_nodes; i++) {
        leaf = r.plan->node[i].role == ROLE_LEAF ? &r.plan->node[i] : leaf;
        spine = r.plan->node[i].role == ROLE_SPINE ? &r.plan->node[i] : spine;
    }
    rig_up(&r);
    rig_sweeps(&r, 1, LONG_S);
    rig_run(&r, MONO_S / 2);
    sim_node_kill(r.sim, spine->guid, true);
    rig_run(&r, MONO_S / 2 + 100 * MONO_MS); // the light sweep waits now
    sm_get_status(r.sm, &st);
    assert_false(st.sweeping);
    assert_int_equal(r.sweeps, 1);
    assert_int_equal(sim_link_set(r.sim, leaf->guid, 1, false), 0);
    rig_run(&r, 5 * MONO_MS);
    sm_get_status(r.sm, &st);
    assert_true(st.sweeping || r.sweeps > 1);
    sim_link_set(r.sim, leaf->guid, 1, true);
    sim_node_kill(r.sim, spine->guid, false);
    rig_run(&r, 60 * MONO_S);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

// --- what comes unasked ---

struct flood {
    struct rig *r;
    struct loop_timer timer;
    unsigned left, per_tick;
    uint8_t mad[MAD_SIZE];
};

static void flood_tick(void *arg)
{
    struct flood *f = arg;
    for (unsigned i = 0; i < f->per_tick && f->left > 0; i++, f->left--) {
        f->mad[15] = (uint8_t)f->left;
        f->mad[14] = (uint8_t)(f->left >> 8);
        rig_deliver(f->r, f->mad, &(struct mad_addr){.lid = (uint16_t)(1 + f->left % 40000)}, 0);
    }
    if (f->left > 0)
        loop_timer_after(&f->timer, MONO_MS);
}

static void flood(uint16_t number, unsigned ticks, unsigned per_tick, unsigned min, unsigned max)
{
    struct rig r;
    struct flood f = {.r = &r, .left = ticks * per_tick, .per_tick = per_tick};
    rig_init(&r, "rail-16", &(struct sim_opts){.seed = 1, .link_latency_ns = 1000, .service_ns = 5000});
    make_trap(f.mad, number, 7);
    rig_up(&r);
    rig_sweeps(&r, 1, LONG_S);
    loop_timer_init(&f.timer, r.loop, "test", flood_tick, &f);
    loop_timer_after(&f.timer, 0);
    unsigned before = r.sweeps;
    rig_run(&r, ticks * MONO_MS + MONO_S);
    assert_int_equal(f.left, 0);
    assert_in_range(r.sweeps - before, min, max);
    rig_run(&r, 100 * MONO_S); // all is quiet again
    before = r.sweeps;
    rig_run(&r, 100 * MONO_S);
    assert_int_equal(r.sweeps, before);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

// A hundred thousand in a second: some sweeps, soon, and never one after the other.
static void test_trap_flood(void **state)
{
    (void)state;
    flood(MAD_TRAP_LINK_STATE_CHANGE, 1000, 100, 2, 8);
}

// A minute of them, from anywhere: few sweeps.
static void test_trap_storm(void **state)
{
    (void)state;
    flood(MAD_TRAP_LOCAL_CHANGES, 60000, 1, 1, 66);
}

static void test_trap_of_no_meaning(void **state)
{
    (void)state;
    flood(MAD_TRAP_BAD_Q_KEY, 1000, 10, 0, 0);
}

struct catcher {
    uint8_t mad[MAD_SIZE];
    struct mad_addr to;
    unsigned n;
};

static bool catch_answers(struct rig *r, const uint8_t *mad, const struct mad_addr *to)
{
    struct catcher *c = r->user;
    if (!(mad[3] & 0x80) && mad[3] != MAD_METHOD_TRAP_REPRESS)
        return false;
    memcpy(c->mad, mad, MAD_SIZE);
    c->to = *to;
    c->n++;
    return true;
}

static void sm_info_request(uint8_t *mad, uint8_t mgmt_class, uint8_t method)
{
    memset(mad, 0, MAD_SIZE);
    mad[0] = 1;
    mad[1] = mgmt_class;
    mad[2] = 1;
    mad[3] = method;
    if (mgmt_class == MAD_CLASS_SM_DR) {
        mad[6] = 3; // hop pointer and count: it has arrived
        mad[7] = 2;
        mad[32] = mad[33] = mad[34] = mad[35] = 0xff;
    }
    for (int i = 8; i < 16; i++)
        mad[i] = (uint8_t)(0xa0 + i);
    mad[17] = MAD_ATTR_SM_INFO;
    mad[23] = 1; // HANDOVER, in a Set
}

static void test_sm_info(void **state)
{
    struct rig r;
    struct catcher c = {0};
    uint8_t mad[MAD_SIZE];
    struct mad_sm_info si;
    struct mad_smp s;
    struct sm_status st;
    (void)state;
    rig_init(&r, "rail-16", NULL);
    rig_up(&r);
    rig_sweeps(&r, 1, LONG_S);
    r.user = &c;
    r.take_send = catch_answers;
    sm_get_status(r.sm, &st);
    uint32_t act = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint8_t cls = i & 1 ? MAD_CLASS_SM_DR : MAD_CLASS_SM_LID;
        uint8_t method = i & 2 ? MAD_METHOD_SET : MAD_METHOD_GET;
        sm_info_request(mad, cls, method);
        rig_deliver(&r, mad, &(struct mad_addr){.lid = i & 1 ? 0xffff : 9}, 0);
        assert_int_equal(c.n, i + 1);
        mad_smp_decode(c.mad, &s);
        assert_int_equal(s.method, MAD_METHOD_GET_RESP);
        assert_int_equal(s.mgmt_class, cls);
        assert_int_equal(s.direction, i & 1);
        assert_int_equal(s.status, i & 2 ? MAD_STATUS_BAD_VALUE : 0);
        assert_int_equal(s.attr_id, MAD_ATTR_SM_INFO);
        assert_memory_equal(c.mad + 8, mad + 8, 8);
        assert_int_equal(c.to.lid, i & 1 ? 0xffff : 9);
        mad_sm_info_decode(c.mad + MAD_SMP_DATA_OFFSET, &si);
        assert_true(si.guid == st.port_guid);
        assert_int_equal(si.sm_state, MAD_SM_MASTER);
        assert_int_equal(si.priority, r.opts.priority);
        assert_true(si.act_count > act);
        act = si.act_count;
    }
    sm_get_status(r.sm, &st);
    assert_int_equal(st.state, SM_MASTER);
    // A trap is repressed with its own content and TID.
    make_trap(mad, MAD_TRAP_BAD_P_KEY, 3);
    mad[15] = 77;
    rig_deliver(&r, mad, &(struct mad_addr){.lid = 3}, 0);
    assert_int_equal(c.mad[3], MAD_METHOD_TRAP_REPRESS);
    assert_memory_equal(c.mad + 8, mad + 8, MAD_SIZE - 8);
    rig_done(&r);
}

// Anything at all arrives unasked.
static void test_unsolicited_noise(void **state)
{
    struct rig r;
    struct rng rng;
    uint8_t mad[MAD_SIZE];
    static const uint8_t cls[] = {0x01, 0x81, 0x03, 0x04, 0x32, 0x00, 0xff};
    (void)state;
    rig_init(&r, "rail-16", NULL);
    rng_init(&rng, 5);
    rig_up(&r);
    for (unsigned i = 0; i < 20000; i++) {
        for (unsigned k = 0; k < MAD_SIZE; k += 8) {
            uint64_t x = rng_u64(&rng);
            memcpy(mad + k, &x, 8);
        }
        if (i & 1) {
            mad[0] = mad[2] = 1;
            mad[1] = cls[rng_below(&rng, sizeof(cls))];
            mad[3] = (uint8_t)rng_below(&rng, 9);
            mad[16] = 0;
            mad[17] = (uint8_t)(rng_below(&rng, 3) == 0 ? 0x20 : rng_below(&rng, 0x24));
        }
        rig_deliver(&r, mad, &(struct mad_addr){.lid = (uint16_t)rng_u64(&rng)}, 0);
        if (i % 100 == 0)
            rig_run(&r, 10 * MONO_MS);
    }
    rig_heals(&r, 2);
    rig_done(&r);
}

// --- another manager ---

struct rival {
    uint8_t hop2; // where it sits
    struct mad_sm_info si;
    bool gone;
};

static bool take_rival(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct rival *v = r->user;
    uint8_t copy[MAD_SIZE], *data = copy + MAD_SMP_DATA_OFFSET;
    struct mad_smp s;
    mad_smp_decode(mad, &s);
    if (v->gone || status != 0 || s.hop_count != 2 || s.initial_path[2] != v->hop2)
        return false;
    memcpy(copy, mad, MAD_SIZE);
    if (s.attr_id == MAD_ATTR_PORT_INFO) {
        data[23] |= MAD_CAP_IS_SM; // CapabilityMask bit 1
    } else if (s.attr_id == MAD_ATTR_SM_INFO) {
        copy[5] = 0;
        mad_sm_info_encode(&v->si, data);
    } else {
        return false;
    }
    rig_deliver(r, copy, from, 0);
    return true;
}

static bool rival_wins(uint8_t priority, uint64_t guid, uint8_t sm_state)
{
    struct rig r;
    struct rival v = {.hop2 = 2, .si = {.guid = guid, .priority = priority, .sm_state = sm_state}};
    struct sm_status st;

    rig_init(&r, "rail-16", NULL);
    r.user = &v;
    r.take_recv = take_rival;
    // A device with a manager behind it answers SMInfo; the simulated one refuses it, which the tap mends.
    rig_up(&r);
    rig_sweeps(&r, 1, LONG_S);
    sm_get_status(r.sm, &st);
    bool wins = st.state == SM_STANDBY;
    if (wins) {
        assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO), 0); // nothing destructive
        assert_true(st.other.guid == guid);
        rig_run(&r, 60 * MONO_S);
        assert_in_range(r.sweeps, 2, 20);
        assert_int_equal(rig_events_of(&r, "foreign-sm"), 1);
        v.gone = true;
        rig_run(&r, 30 * MONO_S);
        sm_get_status(r.sm, &st);
    }
    assert_int_equal(st.state, SM_MASTER);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
    return wins;
}

static void test_rivals(void **state)
{
    (void)state;
    assert_true(rival_wins(9, 0x9999, MAD_SM_DISCOVERING));
    assert_true(rival_wins(9, 0x9999, MAD_SM_STANDBY));
    assert_false(rival_wins(9, 0x9999, MAD_SM_NOT_ACTIVE));
    assert_false(rival_wins(7, 0x9999, MAD_SM_STANDBY));
    assert_true(rival_wins(7, 0x9999, MAD_SM_MASTER)); // it runs the fabric: taken over only when it goes
    assert_true(rival_wins(8, 0x1, MAD_SM_DISCOVERING));
    assert_false(rival_wins(8, UINT64_MAX, MAD_SM_DISCOVERING));
    assert_false(rival_wins(8, UINT64_MAX, 15));
}

// Another master turns up in a fabric that we run: two subnets were joined. Only a better one is given way
// to.
static void test_second_master(void **state)
{
    (void)state;
    for (unsigned better = 0; better < 2; better++) {
        struct rig r;
        struct sm_status st;
        struct rival v = {.hop2 = 2,
                          .gone = true,
                          .si = {.guid = 0x77, .priority = better ? 15 : 0, .sm_state = MAD_SM_MASTER}};
        rig_init(&r, "rail-16", NULL);
        r.user = &v;
        r.take_recv = take_rival;
        rig_up(&r);
        rig_sweeps(&r, 1, LONG_S);
        v.gone = false;
        uint64_t sets = rig_count(&r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO);
        sm_resweep(r.sm, "operator", false);
        rig_sweeps(&r, 1, LONG_S);
        rig_run(&r, 30 * MONO_S);
        sm_get_status(r.sm, &st);
        assert_int_equal(st.state, better ? SM_STANDBY : SM_MASTER);
        assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO), sets);
        v.gone = true;
        rig_run(&r, 30 * MONO_S);
        sm_get_status(r.sm, &st);
        assert_int_equal(st.state, SM_MASTER);
        rig_judge(&r, NULL, 0);
        rig_done(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_invented_chain),
        cmocka_unit_test(test_invented_tree),
        cmocka_unit_test(test_trap_during_light_sweep),
        cmocka_unit_test(test_trap_flood),
        cmocka_unit_test(test_trap_storm),
        cmocka_unit_test(test_trap_of_no_meaning),
        cmocka_unit_test(test_sm_info),
        cmocka_unit_test(test_unsolicited_noise),
        cmocka_unit_test(test_rivals),
        cmocka_unit_test(test_second_master),
    };
    if (getenv("ONLY"))
        cmocka_set_test_filter(getenv("ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
