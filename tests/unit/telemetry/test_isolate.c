// SPDX-License-Identifier: Apache-2.0
// Isolation: proposing, acting, giving back; host links, uplinks, caps, exclusions; by hand; what is kept.
// The decision alone: test_isolate_graph.c.
#include "tests/unit/telemetry/healthtest.h"

#include <errno.h>
#include <unistd.h>

#include "db/db.h"
#include "fabric/builder.h"
#include "lib/err.h"
#include "lib/xalloc.h"
#include "telemetry/isolate.h"

static struct isolate_opts defaults(void)
{
    struct isolate_opts o;
    isolate_opts_default(&o);
    return o;
}

// Leaves 0..3, each with eight cables to two spines (4 and 5, four each), and two hosts (one adapter, of two
// ports to leaves 0 and 1; one of one port to leaf 2). Link k: slots 2k (lower tier) and 2k + 1.
enum { LEAVES = 4, CABLES = 8, TRUNKS = LEAVES * CABLES, LINKS = TRUNKS + 3 };

struct told {
    char kind[40], text[500], data[600];
};
struct rig {
    struct bed b;
    const struct fabric *f;
    struct isolate *i;
    struct isolate_opts o;
    struct db *db;
    struct loop *loop;
    char dir[200];
    bool drained[LINKS];
    int refuse;
    unsigned drains, undrains;
    bool cap;
    struct told told[500];
    unsigned num_told;
    int64_t wall;
};

static uint64_t leaf(unsigned n)
{
    return 0x100 + n;
}

static int link_at(const struct rig *x, const struct isolate_place *p)
{
    uint32_t s = tele_slot(&x->b.t, p->guid[0], p->port[0]);
    assert_true(s != TELE_SLOT_NONE);
    return (int)s / 2;
}

static int on_drain(void *arg, const struct isolate_place *p, const char *reason, struct err *e)
{
    struct rig *x = arg;
    assert_non_null(strstr(reason, "isolated"));
    if (x->refuse)
        return err_set(e, x->refuse, "", "refused here");
    x->drains++;
    x->drained[link_at(x, p)] = true;
    return 0;
}

static int on_undrain(void *arg, const struct isolate_place *p, const char *by, struct err *e)
{
    struct rig *x = arg;
    assert_true(by[0]);
    x->undrains++;
    x->drained[link_at(x, p)] = false;
    return 0;
}

static bool on_drained(void *arg, const struct isolate_place *p)
{
    const struct rig *x = arg;
    return x->drained[link_at(x, p)];
}

static void on_event(void *arg, const char *kind, const char *severity, const char *subject, const char *text,
                     const char *data)
{
    struct rig *x = arg;
    assert_true(x->num_told < 500 && severity[0] && subject[0]);
    assert_true(data[0] == '{' && data[strlen(data) - 1] == '}');
    assert_whole(subject);
    assert_whole(text);
    assert_whole(data);
    struct told *t = &x->told[x->num_told++];
    snprintf(t->kind, sizeof(t->kind), "%s", kind);
    snprintf(t->text, sizeof(t->text), "%s", text);
    snprintf(t->data, sizeof(t->data), "%s", data);
}

static void on_cap(void *arg, bool reached, const char *text)
{
    struct rig *x = arg;
    assert_true(reached == (text[0] != 0));
    x->cap = reached;
}

static void rig_start(struct rig *x)
{
    struct isolate_callbacks cb = {x, on_drain, on_undrain, on_drained, on_event, on_cap, true};
    x->i = isolate_new(x->db, "fab", &x->o, &cb);
}

static node_id add_node(struct builder *b, uint64_t guid, bool sw, uint8_t ports, const char *name)
{
    struct node_attrs a = {.guid = guid, .type = sw ? NODE_SWITCH : NODE_CA, .num_ports = ports};
    node_id n;
    assert_int_equal(builder_node(b, &a, name, strlen(name), &n, NULL), 0);
    for (unsigned p = sw ? 0 : 1; p <= ports; p++) {
        struct port_attrs pa = {
            .state = PORT_ACTIVE, .width_active = 2, .speed_ext_active = 8, .speed_active = 4};
        pa.lid = sw ? (p == 0 ? (uint16_t)guid : 0) : (uint16_t)(guid + p);
        builder_port(b, n, p, &pa);
        if (!sw)
            builder_port_guid(b, n, p, guid + p);
    }
    return n;
}

static void set_link(struct rig *x, unsigned k, uint64_t a, unsigned pa, uint64_t z, unsigned pz)
{
    const uint64_t guid[2] = {a, z};
    const unsigned num[2] = {pa, pz};
    for (unsigned e = 0; e < 2; e++) {
        uint32_t s = 2 * k + e;
        tele_slot_set(&x->b.t, s, guid[e], (uint8_t)num[e]);
        struct tele_port *p = &x->b.t.port[s];
        const struct node *n = fabric_by_guid(x->f, guid[e]);
        p->port = fabric_port_at(x->f, n, num[e]).i;
        p->peer = s ^ 1;
        p->rate_mbps = 400000;
        p->of_switch = n->type == NODE_SWITCH;
        p->up = true;
        p->lanes = 4;
    }
}

static void rig_open(struct rig *x)
{
    memset(x, 0, sizeof(*x));
    struct builder *b = builder_new();
    node_id sw[6], h[2];
    bed_open(&x->b, 0, 0);
    for (unsigned i = 0; i < 6; i++) {
        char name[20];
        snprintf(name, sizeof(name), i < LEAVES ? "leaf-%u" : "spine-%u", i);
        sw[i] = add_node(b, leaf(i), true, 40, name);
    }
    h[0] = add_node(b, 0x1000, false, 2, "host-a mlx5_0");
    h[1] = add_node(b, 0x2000, false, 1, "host-b mlx5_0");
    for (unsigned l = 0; l < LEAVES; l++)
        for (unsigned c = 0; c < CABLES; c++)
            builder_link(b, sw[l], 1 + c, sw[LEAVES + c / 4], 1 + l * 4 + c % 4);
    builder_link(b, h[0], 1, sw[0], 30);
    builder_link(b, h[0], 2, sw[1], 30);
    builder_link(b, h[1], 1, sw[2], 30);
    x->f = builder_seal(b, 1, NULL);
    for (unsigned l = 0; l < LEAVES; l++)
        for (unsigned c = 0; c < CABLES; c++)
            set_link(x, l * CABLES + c, leaf(l), 1 + c, leaf(LEAVES + c / 4), 1 + l * 4 + c % 4);
    set_link(x, TRUNKS, 0x1000, 1, leaf(0), 30);
    set_link(x, TRUNKS + 1, 0x1000, 2, leaf(1), 30);
    set_link(x, TRUNKS + 2, 0x2000, 1, leaf(2), 30);
    x->b.t.fabric = x->f;
    x->o = defaults();
    x->o.mode = ISOLATE_AUTO;
    x->wall = 1800000000 * S;
    rig_start(x);
    assert_int_equal(fabric_by_guid(x->f, leaf(0))->tier, 0);
    assert_int_equal(fabric_by_guid(x->f, leaf(5))->tier, 1);
}

static void rig_close(struct rig *x)
{
    isolate_free(x->i);
    bed_close(&x->b);
    fabric_unref(x->f);
}

static void run(struct rig *x, int64_t ns)
{
    for (int64_t end = x->b.now + ns; x->b.now + x->b.step <= end;) {
        tick(&x->b);
        x->wall += x->b.step;
        isolate_feed(x->i, x->b.h, &x->b.t, x->b.now, x->wall);
    }
}

static void spoil(struct rig *x, unsigned k)
{
    add(&x->b, 2 * k + 1, TELE_SYMBOL_ERRORS, 9);
}

static const struct isolate_item *item(struct rig *x, unsigned k)
{
    const struct isolate_item *list;
    uint32_t n = isolate_list(x->i, &list);
    for (uint32_t i = 0; i < n; i++)
        if (link_at(x, &list[i].at) == (int)k)
            return &list[i];
    return NULL;
}

static unsigned told(const struct rig *x, const char *kind)
{
    unsigned n = 0;
    for (unsigned i = 0; i < x->num_told; i++)
        n += strcmp(x->told[i].kind, kind) == 0;
    return n;
}

#define RIG(fn)                                                                                              \
    static void fn##_in(struct rig *x);                                                                      \
    static void fn(void **state)                                                                             \
    {                                                                                                        \
        static struct rig x;                                                                                 \
        (void)state;                                                                                         \
        rig_open(&x);                                                                                        \
        fn##_in(&x);                                                                                         \
        rig_close(&x);                                                                                       \
    }                                                                                                        \
    static void fn##_in(struct rig *x)

RIG(proposes)
{
    x->o.mode = ISOLATE_PROPOSE;
    isolate_set(x->i, &x->o);
    run(x, 20 * MIN);
    const struct isolate_item *list;
    assert_int_equal(isolate_list(x->i, &list), 0);
    spoil(x, 3);
    run(x, 30 * S);
    assert_int_equal(isolate_list(x->i, &list), 0); // not settled
    run(x, 2 * MIN);
    const struct isolate_item *it = item(x, 3);
    assert_non_null(it);
    assert_true(!it->isolated && it->verdict == ISOLATE_YES);
    assert_string_equal(it->rule, "L06");
    assert_string_equal(it->name, "leaf-0/4 <-> spine-4/4");
    assert_int_equal(x->drains, 0);
    assert_int_equal(told(x, "isolation-proposed"), 1);
    assert_non_null(strstr(x->told[0].data, "\"verdict\":\"yes\""));
    struct isolate_numbers n;
    isolate_numbers(x->i, &n);
    assert_true(n.links == LINKS && n.cap == 10 && n.isolated == 0 && n.proposed == 1);
    run(x, 130 * MIN); // clean again
    assert_null(item(x, 3));
    assert_int_equal(told(x, "isolation-proposed"), 1);
}

RIG(acts_and_gives_back)
{
    run(x, 20 * MIN);
    spoil(x, 3);
    run(x, 2 * MIN);
    assert_true(x->drained[3] && x->drains == 1);
    assert_int_equal(told(x, "link-isolated"), 1);
    const char *data = x->told[x->num_told - 1].data; // its evidence
    assert_non_null(strstr(data, "\"rule\":\"L06\""));
    assert_non_null(strstr(data, "\"reason\":\"9 post-FEC symbol errors within 12 min at "));
    assert_non_null(strstr(data, "\"by\":\"weft\""));
    assert_non_null(strstr(data, "/4\""));
    const struct isolate_item *it = item(x, 3);
    assert_true(it->isolated && it->verdict == ISOLATE_ALREADY && !it->clean);
    assert_string_equal(it->by, "weft");
    assert_non_null(strstr(it->reason, "symbol errors"));
    run(x, 120 * MIN);
    assert_true(x->drained[3]);
    spoil(x, 3); // once more
    run(x, 120 * MIN);
    assert_true(x->drained[3]);
    run(x, 8 * MIN);
    assert_false(x->drained[3]);
    assert_int_equal(x->undrains, 1);
    assert_int_equal(told(x, "isolation-ended"), 1);
    assert_null(item(x, 3));
    // Twice in a week it may be so.
    spoil(x, 3);
    run(x, 140 * MIN);
    assert_int_equal(x->drains, 2);
    assert_false(x->drained[3]);
    spoil(x, 3);
    run(x, 5 * MIN);
    assert_int_equal(x->drains, 2);
    assert_int_equal(item(x, 3)->verdict, ISOLATE_WEEK);
    x->wall += 7 * 86400 * S;
    run(x, MIN);
    assert_int_equal(x->drains, 3);
}

// A rule that clears sooner does not let the link back sooner.
RIG(clean_means_all_of_the_window)
{
    run(x, 20 * MIN);
    for (int i = 0; i < 60; i++) {
        add(&x->b, 7, TELE_FEC_CORRECTED_SYMBOLS, (uint64_t)(400e9 * 10 * 3e-4));
        run(x, 10 * S);
    }
    assert_true(x->drained[3]);
    assert_string_equal(item(x, 3)->rule, "L09");
    run(x, 110 * MIN);
    assert_int_equal(stands(&x->b, "L09"), -1);
    assert_true(x->drained[3]);
    run(x, 30 * MIN);
    assert_false(x->drained[3]);
}

// Unread is not clean.
RIG(not_given_back_unread)
{
    run(x, 20 * MIN);
    spoil(x, 0);
    run(x, 2 * MIN);
    assert_true(x->drained[0]);
    x->b.unread[1] = 1;
    run(x, 300 * MIN);
    assert_true(x->drained[0]);
    x->b.unread[1] = 0;
    run(x, 2 * MIN);
    assert_false(x->drained[0]); // what was counted meanwhile is known now: nothing
}

RIG(uplinks_stay)
{
    run(x, 20 * MIN);
    for (unsigned k = 0; k < 5; k++)
        spoil(x, k);
    run(x, 5 * MIN);
    assert_int_equal(x->drains, 2); // six of eight stay
    unsigned refused = 0;
    for (unsigned k = 0; k < 5; k++)
        refused += item(x, k)->verdict == ISOLATE_UPLINKS;
    assert_int_equal(refused, 3);
    // A cable that is down counts as gone.
    for (uint32_t s = 2 * 8; s < 2 * 10; s++)
        x->b.t.port[s].up = false;
    run(x, MIN);
    spoil(x, 12);
    run(x, 5 * MIN);
    assert_int_equal(item(x, 12)->verdict, ISOLATE_UPLINKS);
    assert_int_equal(x->drains, 2);
}

RIG(cap_is_kept)
{
    x->o.cap_links = 3;
    isolate_set(x->i, &x->o);
    run(x, 20 * MIN);
    for (unsigned l = 0; l < LEAVES; l++)
        spoil(x, l * CABLES);
    run(x, 5 * MIN);
    assert_int_equal(x->drains, 3);
    assert_true(x->cap);
    struct isolate_numbers n;
    isolate_numbers(x->i, &n);
    assert_true(n.isolated == 3 && n.cap == 3);
    run(x, 130 * MIN);
    assert_false(x->cap);
    assert_int_equal(x->undrains, 3);
}

RIG(splits)
{
    // Leaf 3 has one cable left.
    for (unsigned k = 3 * CABLES + 1; k < 4 * CABLES; k++)
        x->b.t.port[2 * k].up = x->b.t.port[2 * k + 1].up = false;
    x->o.keep_uplinks = 0;
    isolate_set(x->i, &x->o);
    run(x, 20 * MIN);
    spoil(x, 3 * CABLES);
    run(x, 5 * MIN);
    assert_int_equal(item(x, 3 * CABLES)->verdict, ISOLATE_SPLITS);
    assert_int_equal(x->drains, 0);
    // What others have drained counts too.
    for (unsigned k = 1; k < CABLES; k++)
        x->drained[k] = true;
    spoil(x, 0);
    run(x, 5 * MIN);
    assert_int_equal(item(x, 0)->verdict, ISOLATE_SPLITS);
}

RIG(host_links)
{
    run(x, 20 * MIN);
    spoil(x, TRUNKS);
    spoil(x, TRUNKS + 2);
    run(x, 5 * MIN);
    assert_int_equal(item(x, TRUNKS)->verdict, ISOLATE_HOST);
    assert_int_equal(x->drains, 0);
    x->o.hosts = ISOLATE_HOSTS_SPARE;
    isolate_set(x->i, &x->o);
    run(x, MIN);
    assert_true(x->drained[TRUNKS]);
    assert_int_equal(item(x, TRUNKS + 2)->verdict, ISOLATE_LAST);
    spoil(x, TRUNKS + 1);
    run(x, 5 * MIN);
    assert_int_equal(item(x, TRUNKS + 1)->verdict, ISOLATE_LAST); // the other one is isolated
    x->o.hosts = ISOLATE_HOSTS_ALL;
    isolate_set(x->i, &x->o);
    run(x, MIN);
    assert_int_equal(x->drains, 3);
}

// The severity of a link that is down depends on what else its host has.
RIG(last_link_of_a_host)
{
    run(x, 20 * MIN);
    for (unsigned k = TRUNKS; k < LINKS; k++)
        health_link(x->b.h, 2 * k, true, x->b.now);
    health_link(x->b.h, 2 * TRUNKS, false, x->b.now);
    run(x, 20 * S);
    assert_int_equal(stands(&x->b, "L01"), ALARM_MAJOR);
    health_link(x->b.h, 2 * TRUNKS + 3, false, x->b.now);
    run(x, 20 * S);
    assert_int_equal(stands(&x->b, "L01"), ALARM_CRITICAL);
    assert_non_null(strstr(reason(&x->b, "L01"), "no other link of the host"));
    x->b.num_said = 0;
    // The first host is gone from the next snapshot, where the other one has its number.
    const struct fabric *all = x->f;
    assert_int_equal(fabric_by_guid(all, 0x1000)->host, 0);
    struct builder *b = builder_from(all);
    node_id n;
    assert_int_equal(builder_find(b, 0x1000, &n), 0);
    builder_remove(b, n);
    x->f = builder_seal(b, 2, NULL);
    assert_int_equal(fabric_by_guid(x->f, 0x2000)->host, 0);
    x->b.t.fabric = x->f;
    for (uint32_t s = 0; s < x->b.t.num; s++) {
        struct tele_port *p = &x->b.t.port[s];
        const struct node *m = fabric_by_guid(x->f, p->node_guid);
        p->port = m ? fabric_port_at(x->f, m, p->num).i : ID_NONE;
    }
    fabric_unref(all);
    run(x, 20 * S);
    health_link(x->b.h, 2 * TRUNKS, true, x->b.now);
    run(x, 20 * MIN);
    health_link(x->b.h, 2 * TRUNKS, false, x->b.now);
    run(x, 20 * S);
    assert_int_equal(stands(&x->b, "L01"), ALARM_CRITICAL);
    x->b.num_said = 0;
    health_link(x->b.h, 2 * TRUNKS + 4, false, x->b.now);
    run(x, 20 * S);
    assert_int_equal(stands(&x->b, "L01"), ALARM_CRITICAL);
}

RIG(exclusions)
{
    struct err e = {0};
    run(x, 20 * MIN);
    struct isolate_exclusion z = {
        .guid = leaf(4), .port = 4, .until_wall_ns = x->wall + HOUR, .by = "anna", .reason = "test\trun\n"};
    assert_int_equal(isolate_exclude(x->i, &z, x->wall, &e), 0);
    spoil(x, 3); // spine-4/4 is its far end
    run(x, 5 * MIN);
    assert_int_equal(item(x, 3)->verdict, ISOLATE_EXCLUDED);
    assert_non_null(strstr(item(x, 3)->why, "anna"));
    const struct isolate_exclusion *list;
    assert_int_equal(isolate_exclusions(x->i, &list), 1);
    assert_string_equal(list[0].reason, "test run ");
    struct isolate_item it; // its end holds also before anybody looks
    assert_true(isolate_check(x->i, x->b.h, &x->b.t, leaf(0), 4, z.until_wall_ns - S, &it));
    assert_int_equal(it.verdict, ISOLATE_EXCLUDED);
    assert_true(isolate_check(x->i, x->b.h, &x->b.t, leaf(0), 4, z.until_wall_ns, &it));
    assert_int_equal(it.verdict, ISOLATE_YES);
    run(x, HOUR); // it ends
    assert_int_equal(isolate_exclusions(x->i, &list), 0);
    assert_int_equal(told(x, "isolation-included"), 1); // its end is told
    assert_true(x->drained[3]);
    z = (struct isolate_exclusion){
        .guid = leaf(1), .until_wall_ns = x->wall + HOUR, .by = "bo", .reason = "all of it"};
    assert_int_equal(isolate_exclude(x->i, &z, x->wall, &e), 0);
    spoil(x, CABLES + 2);
    run(x, 5 * MIN);
    assert_int_equal(item(x, CABLES + 2)->verdict, ISOLATE_EXCLUDED);
    assert_int_equal(isolate_include(x->i, leaf(1), 3, "bo"), -ENOENT);
    assert_int_equal(isolate_include(x->i, leaf(1), 0, "bo"), 0);
    run(x, MIN);
    assert_true(x->drained[CABLES + 2]);
    assert_int_equal(told(x, "isolation-excluded"), 2);
    assert_int_equal(told(x, "isolation-included"), 2);
    z.reason = "";
    assert_int_equal(isolate_exclude(x->i, &z, x->wall, &e), -EINVAL);
    z.reason = "r";
    z.until_wall_ns = x->wall;
    assert_int_equal(isolate_exclude(x->i, &z, x->wall, &e), -EINVAL);
    z.until_wall_ns = x->wall + 400 * 86400 * S;
    assert_int_equal(isolate_exclude(x->i, &z, x->wall, &e), -EINVAL);
    z = (struct isolate_exclusion){.until_wall_ns = x->wall + S, .reason = "r"};
    assert_int_equal(isolate_exclude(x->i, &z, x->wall, &e), -EINVAL);
}

// What is cut is cut between characters, wherever that comes.
RIG(words_are_whole)
{
    struct err e = {0};
    run(x, 20 * MIN);
    for (unsigned k = 0; k < 4; k++) {
        char by[64] = "", reason[300] = "";
        memset(by, 'b', k);
        memset(reason, 'r', k);
        while (strlen(by) < 60)
            strcat(by, "\u00fc");
        while (strlen(reason) < 290)
            strcat(reason, "\u20ac");
        struct isolate_exclusion z = {
            .guid = leaf(k), .port = 1, .until_wall_ns = x->wall + 10 * HOUR, .by = by, .reason = reason};
        assert_int_equal(isolate_exclude(x->i, &z, x->wall, &e), 0);
        spoil(x, k * CABLES);
        run(x, 5 * MIN);
        assert_int_equal(item(x, k * CABLES)->verdict, ISOLATE_EXCLUDED);
        assert_non_null(strstr(item(x, k * CABLES)->why, "\u20ac"));
        assert_whole(item(x, k * CABLES)->why);
    }
    const struct isolate_exclusion *list;
    for (uint32_t i = 0, n = isolate_exclusions(x->i, &list); i < n; i++) {
        assert_whole(list[i].by);
        assert_whole(list[i].reason);
    }
}

RIG(refused_drains)
{
    x->refuse = -EPERM;
    run(x, 20 * MIN);
    spoil(x, 3);
    run(x, 10 * MIN);
    assert_int_equal(told(x, "isolation-refused"), 1); // asked once
    assert_int_equal(item(x, 3)->verdict, ISOLATE_REFUSED);
    assert_string_equal(item(x, 3)->why, "refused here");
    run(x, HOUR);
    assert_int_equal(told(x, "isolation-refused"), 1); // told once, tried again
    x->refuse = 0;
    run(x, 30 * MIN);
    assert_true(x->drained[3]);
}

// Where draining cannot do it for hosts' links: said, and nothing is tried.
RIG(host_links_by_people)
{
    struct isolate_callbacks cb = {x, on_drain, on_undrain, on_drained, on_event, on_cap, false};
    struct err e = {0};
    isolate_free(x->i);
    x->o.hosts = ISOLATE_HOSTS_SPARE;
    x->i = isolate_new(NULL, "fab", &x->o, &cb);
    run(x, 20 * MIN);
    spoil(x, TRUNKS);
    spoil(x, TRUNKS + 2);
    spoil(x, 3);
    run(x, 10 * MIN);
    assert_int_equal(item(x, TRUNKS)->verdict, ISOLATE_HOST);
    assert_non_null(strstr(item(x, TRUNKS)->why, "at the host"));
    assert_int_equal(item(x, TRUNKS + 2)->verdict, ISOLATE_LAST);
    assert_true(x->drains == 1 && x->drained[3]);
    assert_int_equal(told(x, "isolation-refused"), 0);
    assert_int_equal(isolate_now(x->i, x->b.h, &x->b.t, 0x1000, 1, "anna", "", false, x->wall, &e), -EPERM);
    x->o.hosts = ISOLATE_HOSTS_ALL;
    isolate_set(x->i, &x->o);
    run(x, MIN);
    assert_int_equal(item(x, TRUNKS + 2)->verdict, ISOLATE_HOST);
    assert_int_equal(x->drains, 1);
}

// The wall clock is set back: what was isolated within a week is remembered, and what was refused is tried
// again when its time has passed.
RIG(clock_goes_back)
{
    run(x, 20 * MIN);
    for (int i = 0; i < 2; i++) {
        spoil(x, 3);
        run(x, 140 * MIN);
        assert_int_equal(x->drains, i + 1);
        x->wall -= 2 * 86400 * S;
    }
    spoil(x, 8); // another one, which makes the list be gone through
    run(x, 2 * MIN);
    assert_int_equal(x->drains, 3);
    spoil(x, 3);
    run(x, 5 * MIN);
    assert_int_equal(item(x, 3)->verdict, ISOLATE_WEEK);
    x->refuse = -EPERM;
    spoil(x, 16);
    run(x, 5 * MIN);
    assert_int_equal(item(x, 16)->verdict, ISOLATE_REFUSED);
    x->refuse = 0;
    x->wall -= 86400 * S;
    run(x, MIN);
    assert_true(x->drained[16]);
}

RIG(undrained_by_others)
{
    run(x, 20 * MIN);
    spoil(x, 3);
    run(x, 2 * MIN);
    assert_true(x->drained[3]);
    x->drained[3] = false;
    run(x, 10 * S);
    assert_int_equal(told(x, "isolation-ended"), 1);
    assert_int_equal(x->undrains, 0);
}

RIG(by_hand)
{
    struct err e = {0};
    struct isolate_item it;
    x->o.mode = ISOLATE_PROPOSE;
    isolate_set(x->i, &x->o);
    run(x, 20 * MIN);
    assert_false(isolate_check(x->i, x->b.h, &x->b.t, 0x9999, 1, x->wall, &it));
    assert_true(isolate_check(x->i, x->b.h, &x->b.t, leaf(4), 4, x->wall, &it));
    assert_int_equal(it.verdict, ISOLATE_YES);
    assert_string_equal(it.name, "leaf-0/4 <-> spine-4/4");
    assert_string_equal(it.rule, "");
    assert_int_equal(isolate_now(x->i, x->b.h, &x->b.t, leaf(4), 4, "anna", "looks odd", false, x->wall, &e),
                     0);
    assert_true(x->drained[3] && item(x, 3)->isolated);
    assert_string_equal(item(x, 3)->by, "anna");
    assert_string_equal(item(x, 3)->reason, "looks odd");
    assert_int_equal(isolate_now(x->i, x->b.h, &x->b.t, leaf(0), 4, "anna", "", false, x->wall, &e),
                     -EALREADY);
    assert_int_equal(isolate_now(x->i, x->b.h, &x->b.t, 0x9999, 4, "anna", "", false, x->wall, &e), -ENOENT);
    assert_int_equal(isolate_now(x->i, x->b.h, &x->b.t, 0x2000, 1, "anna", "", false, x->wall, &e), -EPERM);
    assert_int_equal(isolate_now(x->i, x->b.h, &x->b.t, 0x2000, 1, "anna", "", true, x->wall, &e), 0);
    assert_true(x->drained[TRUNKS + 2]);
    run(x, 140 * MIN); // who isolated it gives it back
    assert_true(x->drained[3] && item(x, 3)->clean);
    x->o.mode = ISOLATE_AUTO;
    isolate_set(x->i, &x->o);
    run(x, MIN);
    assert_true(x->drained[3]);
    assert_int_equal(isolate_release(x->i, leaf(4), 5, "anna", &e), -ENOENT);
    assert_int_equal(isolate_release(x->i, leaf(4), 4, "anna", &e), 0);
    assert_false(x->drained[3]);
    x->refuse = -ENOSPC;
    assert_int_equal(isolate_now(x->i, x->b.h, &x->b.t, leaf(4), 4, "anna", "", false, x->wall, &e), -ENOSPC);
    assert_null(item(x, 3));
}

RIG(off)
{
    x->o.mode = ISOLATE_OFF;
    isolate_set(x->i, &x->o);
    run(x, 20 * MIN);
    spoil(x, 3);
    run(x, 10 * MIN);
    assert_int_equal(x->drains + x->num_told, 0);
    struct isolate_item it;
    assert_true(isolate_check(x->i, x->b.h, &x->b.t, leaf(0), 4, x->wall, &it));
    assert_int_equal(it.verdict, ISOLATE_OFFED);
}

// --- what is kept ---

static void over_restarts(void **state)
{
    static struct rig x;
    const char *tmp = getenv("TMPDIR");
    struct db_open_report rep;
    struct err e = {0};
    (void)state;
    rig_open(&x);
    isolate_free(x.i);
    snprintf(x.dir, sizeof(x.dir), "%s/weft-isolate-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(x.dir));
    x.loop = loop_new(LOOP_REAL);
    x.db = db_open(x.loop, x.dir, &rep, &e);
    assert_non_null(x.db);
    rig_start(&x);
    run(&x, 20 * MIN);
    spoil(&x, 3);
    struct isolate_exclusion z = {
        .guid = leaf(5), .port = 7, .until_wall_ns = x.wall + 10 * HOUR, .by = "anna\n\t", .reason = "r"};
    assert_int_equal(isolate_exclude(x.i, &z, x.wall, &e), 0);
    run(&x, 2 * MIN);
    assert_true(x.drained[3]);
    db_flush(x.db);
    isolate_free(x.i);
    db_close(x.db);
    // A new run knows nothing of counters.
    struct health_sink sink = {&x.b, bed_raise, bed_clear};
    health_free(x.b.h);
    x.b.h = health_new(NULL, &sink);
    x.db = db_open(x.loop, x.dir, &rep, &e);
    rig_start(&x);
    const struct isolate_exclusion *list;
    assert_int_equal(isolate_exclusions(x.i, &list), 1);
    assert_true(list[0].guid == leaf(5) && list[0].port == 7);
    run(&x, 120 * MIN);
    assert_true(x.drained[3] && item(&x, 3)->isolated);
    assert_string_equal(item(&x, 3)->rule, "L06");
    assert_non_null(strstr(item(&x, 3)->reason, "symbol errors"));
    run(&x, 10 * MIN);
    assert_false(x.drained[3]);
    spoil(&x, 3); // the second time of this week
    run(&x, 140 * MIN);
    assert_int_equal(x.drains, 2);
    spoil(&x, 3);
    run(&x, 5 * MIN);
    assert_int_equal(x.drains, 2);
    db_flush(x.db);
    // What is no such list is not believed.
    static const char *const bad[] = {"",
                                      "isolation 2\n",
                                      "isolation 1\ni\tx\n\ni\t1\t1\n",
                                      "isolation 1\nz\t1\t1\t1\t1\t1\n",
                                      "isolation 1\ni\t0x1\t300\t0x2\t1\t1\ta\tb\tc\td\n",
                                      "isolation 1\nii\t1\t1\t1\t1\t1\t1\t1\t1\t1"};
    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
        db_blob_put(x.db, "fab", "isolation", bad[k], strlen(bad[k]), NULL, NULL);
        db_flush(x.db);
        isolate_free(x.i);
        rig_start(&x);
        const struct isolate_item *items;
        assert_int_equal(isolate_list(x.i, &items), 0);
        assert_int_equal(isolate_exclusions(x.i, &list), 0);
    }
    rig_close(&x);
    db_close(x.db);
    loop_free(x.loop);
    char *cmd = xasprintf("rm -rf '%s'", x.dir);
    assert_int_equal(system(cmd), 0);
    free(cmd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(proposes),
        cmocka_unit_test(acts_and_gives_back),
        cmocka_unit_test(clean_means_all_of_the_window),
        cmocka_unit_test(not_given_back_unread),
        cmocka_unit_test(uplinks_stay),
        cmocka_unit_test(cap_is_kept),
        cmocka_unit_test(splits),
        cmocka_unit_test(host_links),
        cmocka_unit_test(last_link_of_a_host),
        cmocka_unit_test(exclusions),
        cmocka_unit_test(words_are_whole),
        cmocka_unit_test(refused_drains),
        cmocka_unit_test(host_links_by_people),
        cmocka_unit_test(clock_goes_back),
        cmocka_unit_test(undrained_by_others),
        cmocka_unit_test(by_hand),
        cmocka_unit_test(off),
        cmocka_unit_test(over_restarts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
