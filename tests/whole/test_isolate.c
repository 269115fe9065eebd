// SPDX-License-Identifier: Apache-2.0
// Isolation of a whole simulated fabric: counters are read, health judges, links that fail are drained by the
// real manager, and given back. After each step the simulator's own tables are walked: everybody is reached.
#include "tests/whole/tele_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"
#include "telemetry/isolate.h"

struct site {
    struct world w;
    struct isolate *i;
    struct isolate_opts o;
    bool cap;
    unsigned told[4]; // isolated, ended, refused, proposed
    struct buf log;   // "kind: text data\n"
};

static int64_t wall(const struct site *s)
{
    return 1800000000 * MONO_S + loop_now(s->w.r.loop).ns;
}

// As the daemon does: by the end that is a switch's.
static struct sm_drain_place place_of(const struct site *s, const struct isolate_place *p)
{
    const struct fabric *f = sm_fabric(s->w.r.sm);
    const struct node *n = fabric_by_guid(f, p->guid[0]);
    int e = n != NULL && n->type == NODE_SWITCH ? 0 : 1;
    return (struct sm_drain_place){p->guid[e], p->port[e]};
}

static int on_drain(void *arg, const struct isolate_place *p, const char *reason, struct err *e)
{
    struct site *s = arg;
    struct sm_drain_place at = place_of(s, p);
    return rig_drain(&s->w.r, &at, "weft", reason, e);
}

static int on_undrain(void *arg, const struct isolate_place *p, const char *by, struct err *e)
{
    struct site *s = arg;
    struct sm_drain_place at = place_of(s, p);
    return rig_undrain(&s->w.r, &at, by, e);
}

static bool on_drained(void *arg, const struct isolate_place *p)
{
    const struct site *s = arg;
    struct sm_drain_place at = place_of(s, p);
    return sm_drain_find(s->w.r.sm, &at) != NULL;
}

static void on_event(void *arg, const char *kind, const char *severity, const char *subject, const char *text,
                     const char *data)
{
    static const char *const kinds[] = {"link-isolated", "isolation-ended", "isolation-refused",
                                        "isolation-proposed"};
    struct site *s = arg;
    assert_true(severity[0] && subject[0] && text[0]);
    for (unsigned i = 0; i < 4; i++)
        s->told[i] += strcmp(kind, kinds[i]) == 0;
    buf_printf(&s->log, "%s: %s %s\n", kind, text, data);
}

static void on_cap(void *arg, bool reached, const char *text)
{
    struct site *s = arg;
    (void)text;
    s->cap = reached;
}

static void site_up(struct site *s, const char *name)
{
    struct isolate_callbacks cb = {.arg = s,
                                   .drain = on_drain,
                                   .undrain = on_undrain,
                                   .drained = on_drained,
                                   .event = on_event,
                                   .cap = on_cap};
    world_up(&s->w, name, NULL);
    isolate_opts_default(&s->o);
    s->o.mode = ISOLATE_AUTO;
    s->o.clean_ns = 20 * 60 * MONO_S; // of 126 min every one is the same
    s->i = isolate_new(NULL, "default", &s->o, &cb);
}

static void site_down(struct site *s)
{
    isolate_free(s->i);
    world_down(&s->w);
    buf_done(&s->log);
}

// Counters, and what follows from them.
static void pass(struct site *s, unsigned minutes)
{
    for (unsigned i = 0; i < 6 * minutes; i++) {
        world_sweeps(&s->w, 1);
        isolate_feed(s->i, tele_health(s->w.tele), world_table(&s->w), loop_now(s->w.r.loop).ns, wall(s));
        rig_run(&s->w.r, MONO_MS); // what was asked of the manager begins
        world_fabric(&s->w);
    }
}

static void spoil(struct site *s, uint64_t guid, unsigned port)
{
    world_add(&s->w, guid, port, SIM_SYMBOL_ERRORS, 20);
}

// Ports of a switch that lead to switches (trunk), or to adapters.
static unsigned ports_of(const struct site *s, const struct node *n, bool trunk, uint8_t *ret)
{
    const struct fabric *f = sm_fabric(s->w.r.sm);
    unsigned k = 0;
    for (unsigned p = 1; p <= n->num_ports; p++) {
        const struct port *x = &f->port[n->first_port + p];
        if (port_valid(x->peer) && (f->node[f->port[x->peer.i].node.i].type == NODE_SWITCH) == trunk)
            ret[k++] = (uint8_t)p;
    }
    return k;
}

static const struct sm_drain *drain_of(const struct site *s, uint64_t guid, unsigned port)
{
    return sm_drain_find(s->w.r.sm, &(struct sm_drain_place){guid, (uint8_t)port});
}

static const struct isolate_item *item_of(struct site *s, uint64_t guid, unsigned port)
{
    const struct isolate_item *list;
    for (uint32_t i = 0, n = isolate_list(s->i, &list); i < n; i++)
        for (int e = 0; e < 2; e++)
            if (list[i].at.guid[e] == guid && list[i].at.port[e] == port)
                return &list[i];
    fail_msg("0x%llx/%u is not in the list", (unsigned long long)guid, port);
    return NULL;
}

// Drained before anything else, everybody reached, given back when it was clean, each step with its evidence.
static void a_trunk(void **state)
{
    struct site s = {0};
    uint8_t trunk[64];
    (void)state;
    site_up(&s, "rail-16");
    const struct node *leaf = world_nth(&s.w, ROLE_LEAF, 1);
    uint64_t guid = leaf->guid;
    assert_true(ports_of(&s, leaf, true, trunk) >= 8);
    pass(&s, 5);
    spoil(&s, guid, trunk[2]);
    pass(&s, 4);
    assert_non_null(drain_of(&s, guid, trunk[2]));
    assert_int_equal(drain_of(&s, guid, trunk[2])->state, SM_DRAIN_DRAINED); // nothing uses it
    assert_non_null(strstr(drain_of(&s, guid, trunk[2])->reason, "symbol errors"));
    assert_true(item_of(&s, guid, trunk[2])->isolated);
    assert_true(rig_judge(&s.w.r, NULL, 0) > 0);
    pass(&s, 10);
    spoil(&s, guid, trunk[2]); // it is still watched, and not clean
    pass(&s, 15);
    assert_non_null(drain_of(&s, guid, trunk[2]));
    pass(&s, 130);
    assert_null(drain_of(&s, guid, trunk[2]));
    rig_run(&s.w.r, MONO_S);
    assert_true(rig_judge(&s.w.r, NULL, 0) > 0);
    assert_true(s.told[0] == 1 && s.told[1] == 1 && s.told[2] == 0);
    const char *isolated = strstr(s.log.data, "link-isolated: ");
    assert_non_null(isolated);
    assert_non_null(strstr(isolated, "\"rule\":\"L06\""));
    assert_non_null(strstr(isolated, "post-FEC symbol errors"));
    assert_non_null(strstr(isolated, "\"by\":\"weft\""));
    site_down(&s);
}

// All links of a leaf to the spines go bad at once: three quarters stay, and nobody is cut off.
static void all_of_a_leaf(void **state)
{
    struct site s = {0};
    uint8_t trunk[64];
    (void)state;
    site_up(&s, "rail-16");
    const struct node *leaf = world_nth(&s.w, ROLE_LEAF, 0);
    uint64_t guid = leaf->guid;
    unsigned n = ports_of(&s, leaf, true, trunk), drained = 0;
    pass(&s, 5);
    for (unsigned i = 0; i < n; i++)
        spoil(&s, guid, trunk[i]);
    pass(&s, 6);
    for (unsigned i = 0; i < n; i++)
        drained += drain_of(&s, guid, trunk[i]) != NULL;
    assert_int_equal(drained, n / 4 < 10 ? n / 4 : 10);
    assert_true(rig_judge(&s.w.r, NULL, 0) > 0);
    unsigned stand = 0;
    const struct isolate_item *list;
    for (uint32_t i = 0, k = isolate_list(s.i, &list); i < k; i++)
        stand += !list[i].isolated && (list[i].verdict == ISOLATE_UPLINKS || list[i].verdict == ISOLATE_CAP);
    assert_int_equal(stand, n - drained);
    // Beyond that only the cap, and the fabric, hold it back: the last way is never taken.
    s.o.keep_uplinks = 0;
    s.o.cap_links = 1000;
    isolate_set(s.i, &s.o);
    pass(&s, 2);
    drained = 0;
    for (unsigned i = 0; i < n; i++)
        drained += drain_of(&s, guid, trunk[i]) != NULL;
    assert_int_equal(drained, n - 1);
    rig_run(&s.w.r, MONO_S);
    assert_true(rig_judge(&s.w.r, NULL, 0) > 0);
    site_down(&s);
}

// Bad links everywhere: the cap, and not one more.
static void no_more_than_the_cap(void **state)
{
    struct site s = {0};
    (void)state;
    site_up(&s, "rail-16");
    pass(&s, 5);
    for (unsigned k = 0; k < 8; k++) {
        uint8_t trunk[64];
        const struct node *leaf = world_nth(&s.w, ROLE_LEAF, k);
        assert_true(ports_of(&s, leaf, true, trunk) >= 8);
        for (unsigned i = 0; i < 3; i++)
            spoil(&s, leaf->guid, trunk[7 * i % 8]);
    }
    pass(&s, 6);
    struct isolate_numbers n;
    isolate_numbers(s.i, &n);
    assert_true(n.links == 272 && n.cap == 10);
    assert_int_equal(n.isolated, 10);
    assert_true(s.cap);
    assert_non_null(sm_drain_nth(s.w.r.sm, 9));
    assert_null(sm_drain_nth(s.w.r.sm, 10));
    assert_true(rig_judge(&s.w.r, NULL, 0) > 0);
    site_down(&s);
}

// Nothing else leads to a host: it is said, not tried, also where hosts' links are allowed.
static void a_host(void **state)
{
    struct site s = {0};
    uint8_t down[64];
    struct err e = {0};
    (void)state;
    site_up(&s, "rail-16");
    const struct node *leaf = world_nth(&s.w, ROLE_LEAF, 3);
    uint64_t guid = leaf->guid;
    assert_true(ports_of(&s, leaf, false, down) > 0);
    pass(&s, 5);
    spoil(&s, guid, down[0]);
    pass(&s, 4);
    assert_int_equal(item_of(&s, guid, down[0])->verdict, ISOLATE_HOST);
    assert_non_null(strstr(item_of(&s, guid, down[0])->why, "health.isolation_hosts"));
    for (int h = ISOLATE_HOSTS_SPARE; h <= ISOLATE_HOSTS_ALL; h++) {
        s.o.hosts = (enum isolate_hosts)h;
        isolate_set(s.i, &s.o);
        pass(&s, 35); // longer than what is refused waits
        assert_int_equal(item_of(&s, guid, down[0])->verdict, ISOLATE_HOST);
        assert_non_null(strstr(item_of(&s, guid, down[0])->why, "take the adapter out of use at the host"));
    }
    assert_true(s.told[0] == 0 && s.told[2] == 0 && s.told[3] >= 1);
    assert_null(sm_drain_nth(s.w.r.sm, 0));
    // By hand, and forced: the manager says why not.
    assert_int_equal(isolate_now(s.i, tele_health(s.w.tele), world_table(&s.w), guid, down[0], "anna", "",
                                 true, wall(&s), &e),
                     -EINVAL);
    assert_non_null(strstr(e.text, "nothing else leads there"));
    assert_true(rig_judge(&s.w.r, NULL, 0) > 0);
    site_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trunk),
        cmocka_unit_test(all_of_a_leaf),
        cmocka_unit_test(no_more_than_the_cap),
        cmocka_unit_test(a_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
