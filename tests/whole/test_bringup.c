// SPDX-License-Identifier: Apache-2.0
// Whole bring-ups on the simulator in virtual time: what is sent, in which order, what stands on the devices
// afterwards; loss, silence, restarts.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/builder.h"
#include "fabric/reader.h"
#include "mad/mad.h"
#include "tests/whole/rig.h"

static void up(struct rig *r)
{
    rig_up(r);
    rig_sweeps(r, 1, 300);
    if (!rig_last(r)->ok)
        fail_msg("%s", rig_last(r)->text);
}

// The lower bound of a cold bring-up: one NodeInfo a link, two PortInfo Sets a link end, and so on.
static void test_counts(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, "rail-256", NULL);
    up(&r);
    const struct fabric *f = r.plan;
    uint64_t links = f->num_links, sw = f->num_switches;
    assert_int_equal(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_NODE_INFO), links + 1);
    assert_int_equal(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_NODE_DESCRIPTION), f->num_nodes);
    assert_int_equal(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_SWITCH_INFO), sw);
    assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_SWITCH_INFO), 2 * sw);
    assert_int_equal(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO), 2 * links + sw);
    assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO), 4 * links + sw);
    assert_int_equal(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_LINEAR_FORWARDING_TABLE), 0);
    assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE),
                     sw * (f->num_nodes / 64 + 1));
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

// A light sweep on a healthy fabric is one MAD a switch and nothing else; one at once when ports have been
// brought up.
static void test_light_sweep(void **state)
{
    struct rig r;
    struct mad_engine_stats a, b;
    struct sm_status st, st2;
    (void)state;
    rig_init(&r, "rail-256", NULL);
    up(&r);
    mad_engine_stats(r.engine, &a);
    rig_run(&r, 100 * MONO_MS);
    mad_engine_stats(r.engine, &b);
    assert_int_equal(b.sent - a.sent, r.plan->num_switches);
    mad_engine_stats(r.engine, &a);
    sm_get_status(r.sm, &st);
    rig_run(&r, 10 * MONO_S + MONO_S / 2);
    mad_engine_stats(r.engine, &b);
    sm_get_status(r.sm, &st2);
    uint64_t light = st2.light_sweeps - st.light_sweeps;
    assert_in_range(light, 9, 11);
    assert_int_equal(b.sent - a.sent, light * r.plan->num_switches);
    assert_int_equal(r.sweeps, 1);
    assert_int_equal(st2.exceptions, 0);
    rig_done(&r);
}

// After a restart nothing is written: LIDs, settings, tables and states are found as they should be.
static void test_hitless_restart(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, "rail-256", NULL);
    up(&r);
    rig_down(&r);
    up(&r);
    assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE), 0);
    assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO), 0);
    assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_P_KEY_TABLE), 0);
    assert_string_equal(sm_tables(r.sm)->engine, "rail"); // its own tables are recognised
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

// With the database gone the fabric itself is the record.
static void test_restart_without_database(void **state)
{
    struct rig r;
    char cmd[400];
    (void)state;
    rig_init(&r, "rail-256", NULL);
    up(&r);
    rig_down(&r);
    snprintf(cmd, sizeof(cmd), "%s/meta.db", r.dir);
    assert_int_equal(remove(cmd), 0);
    up(&r);
    assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE), 0);
    assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO), 0);
    // They are what would be computed, whoever wrote them.
    assert_string_equal(sm_tables(r.sm)->engine, "rail");
    sm_resweep(r.sm, "operator", true);
    rig_sweeps(&r, 1, 60);
    assert_string_equal(sm_tables(r.sm)->engine, "rail");
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

// No Set of a LID before the database has it.
struct order {
    bool recorded_first;
    unsigned lid_sets;
};

static void watch_lids(struct rig *r, const uint8_t *mad)
{
    struct order *o = r->user;
    struct mad_smp smp;
    struct mad_port_info pi;
    struct db_lid *rec;

    mad_smp_decode(mad, &smp);
    if (smp.method != MAD_METHOD_SET || smp.attr_id != MAD_ATTR_PORT_INFO)
        return;
    mad_port_info_decode(mad + MAD_SMP_DATA_OFFSET, &pi);
    if (pi.lid == 0 || o->lid_sets++ > 0)
        return;
    long n = db_lids_load(r->db, r->opts.fabric, &rec); // a connection of its own: sees what is committed
    o->recorded_first = n == (long)r->plan->num_nodes;
    free(rec);
}

static void test_lids_durable_first(void **state)
{
    struct rig r;
    struct order o = {0};
    (void)state;
    rig_init(&r, "rail-256", NULL);
    r.on_send = watch_lids;
    r.user = &o;
    up(&r);
    assert_true(o.lid_sets > 0);
    assert_true(o.recorded_first);
    rig_done(&r);
}

// Host links come last, and ACTIVE only when tables are there.
struct stages {
    struct rig *r;
    unsigned lft, lft_after_active, active;
};

static void watch_stages(struct rig *r, const uint8_t *mad)
{
    struct stages *s = r->user;
    struct mad_smp smp;
    struct mad_port_info pi;

    mad_smp_decode(mad, &smp);
    if (smp.method != MAD_METHOD_SET)
        return;
    if (smp.attr_id == MAD_ATTR_LINEAR_FORWARDING_TABLE) {
        s->lft++;
        s->lft_after_active += s->active > 0;
    }
    if (smp.attr_id == MAD_ATTR_PORT_INFO) {
        mad_port_info_decode(mad + MAD_SMP_DATA_OFFSET, &pi);
        s->active += pi.port_state == MAD_PORT_ACTIVE;
    }
}

static void test_tables_before_active(void **state)
{
    struct rig r;
    struct stages s = {0};
    (void)state;
    rig_init(&r, "ft3-8-4", NULL);
    r.on_send = watch_stages;
    r.user = &s;
    up(&r);
    assert_true(s.lft > 0 && s.active > 0);
    assert_int_equal(s.lft_after_active, 0);
    rig_done(&r);
}

static bool whole(const struct rig *r)
{
    const struct fabric *f = sm_fabric(r->sm);
    return f != NULL && rig_last(r)->ok && strstr(rig_last(r)->text, "failed") == NULL &&
           f->num_nodes == r->plan->num_nodes && f->num_links == r->plan->num_links &&
           f->top_lid == r->plan->num_nodes;
}

// A fifth of all MADs is lost at every hop: over three switches three quarters of the round trips fail. What
// a sweep misses, the next ones find.
static void test_loss(void **state)
{
    struct rig r;
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        rig_init(
            &r, "rail-256",
            &(struct sim_opts){.seed = seed, .loss = 0.2, .link_latency_ns = 10000, .service_ns = 30000});
        rig_up(&r);
        do
            rig_sweeps(&r, 1, 600);
        while (!whole(&r) && r.sweeps < 60);
        sim_set_loss(r.sim, 0);
        rig_run(&r, 130 * MONO_S);
        rig_judge(&r, NULL, 0);
        rig_done(&r);
    }
}

static void test_dead_nodes(void **state)
{
    struct rig r;
    uint64_t dead[200];
    unsigned n = 0;
    struct sm_status st;
    (void)state;
    rig_init(&r, "rail-1024", NULL);
    for (uint32_t i = 3; i < r.plan->num_nodes && n < 200; i += 5)
        if (r.plan->node[i].type == NODE_CA)
            dead[n++] = r.plan->node[i].guid;
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(sim_node_kill(r.sim, dead[i], true), 0);
    up(&r);
    assert_int_equal(n, 200);
    assert_int_equal(sm_fabric(r.sm)->num_nodes, r.plan->num_nodes - n);
    rig_judge(&r, dead, n);
    // They are on the standing list, and come up when they answer.
    rig_run(&r, 3 * MONO_S);
    sm_get_status(r.sm, &st);
    assert_int_equal(st.exceptions, n);
    for (unsigned i = 0; i < n; i++)
        sim_node_kill(r.sim, dead[i], false);
    rig_sweeps(&r, 1, 120);
    while (sm_fabric(r.sm)->num_nodes < r.plan->num_nodes)
        rig_sweeps(&r, 1, 120);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

static void test_dead_switch(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, "rail-256", NULL);
    uint64_t spine = 0;
    for (uint32_t i = 0; i < r.plan->num_nodes; i++)
        if (r.plan->node[i].role == ROLE_SPINE)
            spine = r.plan->node[i].guid;
    assert_true(spine != 0);
    sim_node_kill(r.sim, spine, true);
    up(&r);
    rig_judge(&r, &spine, 1);
    // Its 64 links time out side by side: 20 ms doubling to 1.6 s, once.
    assert_in_range(rig_last(&r)->ns, 0, 4 * MONO_S);
    rig_done(&r);
}

// A field that is answered with success but not kept is asked for once, told once, and not written again.
static void test_not_kept(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, "rail-256", NULL);
    for (uint32_t i = 0; i < r.plan->num_nodes; i++)
        sim_set_field_not_kept(r.sim, r.plan->node[i].guid, MAD_ATTR_PORT_INFO, "subnet_timeout", true);
    up(&r);
    assert_int_equal(rig_events_of(&r, "settings-not-kept"), 1);
    uint64_t sets = rig_count(&r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO);
    sm_resweep(r.sm, "operator", false);
    rig_sweeps(&r, 1, 60);
    assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO), sets);
    assert_int_equal(rig_events_of(&r, "settings-not-kept"), 1);
    rig_done(&r);
}

// One end that goes ACTIVE pulls the other along on some devices: the refusal of our Set is then no failure.
static void test_auto_active(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, "rail-256", &(struct sim_opts){.seed = 5, .auto_active = 0.7, .link_latency_ns = 1000});
    up(&r);
    assert_null(strstr(rig_last(&r)->text, "failed"));
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

static void test_link_down_and_up(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, "rail-256", NULL);
    up(&r);
    const struct node *leaf = NULL;
    for (uint32_t i = 0; i < r.plan->num_nodes && leaf == NULL; i++)
        if (r.plan->node[i].role == ROLE_LEAF)
            leaf = &r.plan->node[i];
    assert_non_null(leaf);
    assert_int_equal(sim_link_set(r.sim, leaf->guid, 33, false), 0);
    rig_sweeps(&r, 1, 5);
    assert_true(rig_last(&r)->ok);
    assert_int_equal(sm_fabric(r.sm)->num_links, r.plan->num_links - 1);
    assert_int_equal(rig_last(&r)->links_removed, 1);
    rig_judge(&r, NULL, 0);
    assert_int_equal(sim_link_set(r.sim, leaf->guid, 33, true), 0);
    while (sm_fabric(r.sm)->num_links != r.plan->num_links)
        rig_sweeps(&r, 1, 30);
    rig_judge(&r, NULL, 0);
    // Nothing goes on after that: no sweep without a cause.
    unsigned sweeps = r.sweeps;
    rig_run(&r, 30 * MONO_S);
    assert_true(r.sweeps - sweeps <= 2);
    rig_done(&r);
}

// An agent that dies on a live switch is one finding, not one a link.
static void test_dying_switch(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, "rail-256", NULL);
    up(&r);
    uint64_t spine = fabric_switch(r.plan, r.plan->num_switches - 1)->guid;
    sim_node_kill(r.sim, spine, true);
    rig_sweeps(&r, 1, 60);
    const struct findings *f = sm_findings(r.sm);
    unsigned silent = 0, count = 0;
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->item[i].code, "peer-silent") == 0) {
            silent++;
            count = f->item[i].count;
            assert_int_equal(f->item[i].severity, FINDING_ERROR);
        }
    assert_int_equal(silent, 1);
    assert_int_equal(count, 64);
    rig_judge(&r, &spine, 1);
    rig_done(&r);
}

static void test_switch_reboot(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, "rail-256", NULL);
    up(&r);
    uint64_t spine = 0;
    for (uint32_t i = 0; i < r.plan->num_nodes; i++)
        if (r.plan->node[i].role == ROLE_SPINE)
            spine = r.plan->node[i].guid;
    assert_int_equal(sim_switch_reboot(r.sim, spine), 0);
    rig_sweeps(&r, 1, 30);
    rig_run(&r, 20 * MONO_S);
    assert_int_equal(rig_events_of(&r, "node-reset"), 1);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

static const struct fabric *blueprint(struct rig *r)
{
    void *p;
    size_t n;
    assert_int_equal(db_flush(r->db), 0);
    assert_int_equal(db_blob_get(r->db, r->opts.fabric, "blueprint", &p, &n), 0);
    const struct fabric *f = reader_parse(p, n, "blueprint", NULL, NULL);
    assert_non_null(f);
    free(p);
    return f;
}

// What was seen whole once is remembered, whatever is missing later.
static void test_blueprint(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, "rail-256", NULL);
    up(&r);
    rig_run(&r, MONO_S);
    for (int i = 0; i < 2; i++) {
        const struct fabric *f = blueprint(&r);
        assert_int_equal(f->num_nodes, r.plan->num_nodes);
        assert_int_equal(f->num_links, r.plan->num_links);
        fabric_unref(f);
        rig_down(&r);
        sim_link_set(r.sim, r.plan->node[r.plan->switch_node[0]].guid, 40, false);
        up(&r);
        rig_run(&r, MONO_S);
        assert_int_equal(sm_fabric(r.sm)->num_links, r.plan->num_links - 1);
    }
    rig_done(&r);
}

static void test_two_hosts_back_to_back(void **state)
{
    struct rig r;
    struct builder *b = builder_new();
    node_id n[2];
    (void)state;
    for (uint64_t i = 0; i < 2; i++) {
        struct node_attrs a = {
            .guid = 0x100 + i * 16, .type = NODE_CA, .num_ports = 1, .partition_cap = 32, .vendor_id = 0x2c9};
        assert_int_equal(builder_node(b, &a, i ? "b mlx5_0" : "a mlx5_0", 8, &n[i], NULL), 0);
        struct port_attrs p = {.state = PORT_INIT,
                               .phys_state = 5,
                               .width_active = 2,
                               .width_supported = 2,
                               .width_enabled = 2,
                               .speed_active = 1,
                               .speed_supported = 1,
                               .speed_enabled = 1,
                               .mtu_cap = 5,
                               .vl_cap = 4};
        builder_port(b, n[i], 1, &p);
        builder_port_guid(b, n[i], 1, 0x101 + i * 16);
    }
    assert_int_equal(builder_link(b, n[0], 1, n[1], 1), 0);
    rig_init_fabric(&r, builder_seal(b, 1, NULL), NULL);
    up(&r);
    struct sim_port_view v;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sim_port_view(r.sim, 0x100 + (uint64_t)i * 16, 1, &v), 0);
        assert_int_equal(v.state, PORT_ACTIVE);
        assert_true(v.lid != 0);
    }
    rig_done(&r);
}

static const char *shared(char *buf, size_t size, const char *file)
{
    const char *dir = getenv("WEFT_SHARED");
    FILE *f;
    snprintf(buf, size, "%s/fabrics/ibnetdiscover/%s", dir != NULL ? dir : SOURCE_ROOT "/../shared", file);
    f = fopen(buf, "r");
    if (f == NULL) {
        print_message("skipped: %s is not here\n", file);
        skip();
    }
    fclose(f);
    return buf;
}

// What PortInfo cannot tell: FDR10.
static void test_fdr10(void **state)
{
    struct rig r;
    char path[4096];
    unsigned n = 0;
    (void)state;
    rig_init(&r, shared(path, sizeof(path), "qdr-fdr10-sx6036-144ca.txt"), NULL);
    up(&r);
    const struct fabric *f = sm_fabric(r.sm);
    for (uint32_t i = 0; i < f->num_ports; i++)
        n += f->port[i].a.fdr10 && port_valid(f->port[i].peer) && f->port[i].peer.i > i;
    assert_int_equal(n, 47);
    rig_done(&r);
}

static void real_dump(const char *file)
{
    struct rig r;
    char path[4096];
    struct sm_status st;
    rig_init(&r, shared(path, sizeof(path), file), NULL);
    up(&r);
    sm_get_status(r.sm, &st);
    assert_true(st.proof.ok);
    assert_int_equal(st.proof.unreached, 0);
    assert_int_equal(sm_fabric(r.sm)->num_nodes, r.plan->num_nodes);
    assert_int_equal(sm_fabric(r.sm)->num_links, r.plan->num_links);
    if (st.proof.disconnected == 0)
        rig_judge(&r, NULL, 0);
    rig_done(&r);
}

#define REAL(name, file)                                                                                     \
    static void name(void **state)                                                                           \
    {                                                                                                        \
        (void)state;                                                                                         \
        real_dump(file);                                                                                     \
    }
REAL(test_real_superpod, "hdr-superpod-compute-4341ca.txt")
REAL(test_real_director, "hdr-director-cs8500-2328ca-puttylog-crlf.txt")
REAL(test_real_dgx_rail, "ndr-dgx-rail-582ca.txt")
REAL(test_real_rail8, "ndr-rail8-256ca-ibdiagnet-port-labels.txt")
REAL(test_real_mesh, "qdr-fdr10-sx6036-144ca.txt")
REAL(test_real_voltaire, "ddr-qdr-voltaire4036-89ca-generic-names.txt")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_light_sweep),
        cmocka_unit_test(test_hitless_restart),
        cmocka_unit_test(test_restart_without_database),
        cmocka_unit_test(test_lids_durable_first),
        cmocka_unit_test(test_tables_before_active),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_dead_nodes),
        cmocka_unit_test(test_dead_switch),
        cmocka_unit_test(test_not_kept),
        cmocka_unit_test(test_auto_active),
        cmocka_unit_test(test_link_down_and_up),
        cmocka_unit_test(test_dying_switch),
        cmocka_unit_test(test_switch_reboot),
        cmocka_unit_test(test_blueprint),
        cmocka_unit_test(test_two_hosts_back_to_back),
        cmocka_unit_test(test_fdr10),
        cmocka_unit_test(test_real_superpod),
        cmocka_unit_test(test_real_director),
        cmocka_unit_test(test_real_dgx_rail),
        cmocka_unit_test(test_real_rail8),
        cmocka_unit_test(test_real_mesh),
        cmocka_unit_test(test_real_voltaire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
