// SPDX-License-Identifier: Apache-2.0
// What belongs to a cable goes with it; what belongs to a host is that of the snapshot of now, also where one
// comes amid a feed. Names of cables' ends are said whole.
#include "tests/unit/telemetry/healthtest.h"

#include "fabric/builder.h"
#include "lib/buf.h"

// --- another cable ---

static void told_up(struct bed *b)
{
    for (uint32_t s = 0; s < b->t.num; s++)
        health_link(b->h, s, true, b->now);
}

// Whatever leaves something behind at both ends of link 0: downs, bit errors before FEC, errors, holes,
// waits, a hot module.
static void live(struct bed *b)
{
    told_up(b);
    for (int i = 0; i < 40; i++) {
        for (uint32_t s = 0; s < 2; s++) {
            add(b, s, TELE_FEC_CORRECTED_SYMBOLS, 50000000000);
            add(b, s, TELE_RCV_ERRORS, 3);
            add(b, s, TELE_XMIT_WAIT, 100000000000);
            add(b, s, TELE_FEC_UNCORRECTABLE_BLOCKS, 1);
            b->t.port[s].resets += i % 8 == 0;
        }
        if (i % 10 == 0) {
            health_link(b->h, 0, false, b->now);
            add(b, 0, TELE_LINK_DOWNED, 1);
            add(b, 1, TELE_LINK_DOWNED, 1);
            pass(b, 40 * S);
            health_link(b->h, 0, true, b->now);
        }
        health_module(b->h, 0, 85, b->now);
        pass(b, MIN);
        b->t.port[1].lost_at = b->now - S;
    }
    assert_int_equal(stands(b, "L02"), ALARM_MAJOR);
    assert_int_equal(stands(b, "L16"), ALARM_MINOR);
    assert_true(raised(b, "L09") > 0);
}

static void assert_same(const struct bed *b, const struct health *other, uint32_t slot)
{
    struct health_view v, w;
    for (int part = HEALTH_NOTED; part <= HEALTH_REST; part++) {
        struct buf x = {0}, y = {0};
        health_put(b->h, &b->t, slot, (enum health_part)part, b->now, &x);
        health_put(other, &b->t, slot, (enum health_part)part, b->now, &y);
        assert_int_equal(x.len, y.len);
        if (x.len > 0)
            assert_memory_equal(x.data, y.data, x.len);
        buf_done(&x);
        buf_done(&y);
    }
    health_view(b->h, &b->t, slot, &v);
    health_view(other, &b->t, slot, &w);
    assert_int_equal(v.state, w.state);
    assert_true(v.since == w.since && v.sure_at == w.sure_at);
    assert_string_equal(v.why, w.why);
    assert_true((isnan(v.raw_ber) && isnan(w.raw_ber)) || v.raw_ber == w.raw_ber);
    assert_int_equal(health_clean(b->h, &b->t, slot, 2 * HOUR), health_clean(other, &b->t, slot, 2 * HOUR));
}

// From now on the link at the slot is as one that nobody has ever seen.
static void assert_as_new(struct bed *b, uint32_t slot)
{
    static struct bed other;
    struct health_sink sink = {&other, bed_raise, bed_clear};
    memset(&other, 0, sizeof(other));
    other.h = health_new(NULL, &sink);
    for (int i = 0; i < 100; i++) {
        if (i == 0) {
            told_up(b);
            for (uint32_t s = 0; s < b->t.num; s++)
                health_link(other.h, s, true, b->now);
        }
        add(b, 0, TELE_FEC_CORRECTED_SYMBOLS, i < 50 ? 100 : 20000000000);
        add(b, 1, TELE_SYMBOL_ERRORS, i == 60);
        tick(b);
        health_feed(other.h, &b->t, b->now);
        if (i > 0) // else the far end's first reading may be a feed later
            assert_same(b, other.h, slot);
    }
    health_free(other.h);
}

BED(forgotten_it_is_a_new_one, 2, 400000)
{
    live(b);
    health_forget(b->h, 1);
    assert_as_new(b, 0);
}

BED(moved_it_is_a_new_one, 2, 400000)
{
    live(b);
    tick(b);
    b->t.port[0].peer = 3;
    b->t.port[3].peer = 0;
    b->t.port[1].peer = b->t.port[2].peer = TELE_SLOT_NONE;
    b->now += b->step;
    assert_as_new(b, 0);
}

// Nor has the end that is left anything of it when it gets a cable again.
BED(left_alone_and_used_again, 2, 400000)
{
    live(b);
    b->t.port[0].peer = 3;
    b->t.port[3].peer = 0;
    b->t.port[1].peer = b->t.port[2].peer = TELE_SLOT_NONE;
    tick(b);
    b->t.port[1].peer = 2;
    b->t.port[2].peer = 1;
    pass(b, 5 * MIN);
    assert_true(isnan(view(b, 1).raw_ber) || view(b, 1).raw_ber < 1e-9);
    assert_int_equal(view(b, 1).state, HEALTH_UNSURE);
}

// --- hosts ---

// host-a has adapters 0x10 and 0x20, host-b 0x30, each of one port: links 0, 1, 2 to the switch 0x1.
enum { ADAPTERS = 3 };

static const struct fabric *hosts_at(const char *leaf, unsigned adapters, uint64_t generation)
{
    static const char *const name[] = {"host-a mlx5_0", "host-a mlx5_1", "host-b mlx5_0"};
    struct port_attrs pa = {.state = PORT_ACTIVE, .width_active = 2, .speed_ext_active = 8};
    struct builder *b = builder_new();
    node_id sw, n;
    struct node_attrs a = {.guid = 1, .type = NODE_SWITCH, .num_ports = ADAPTERS};
    assert_int_equal(builder_node(b, &a, leaf, strlen(leaf), &sw, NULL), 0);
    for (unsigned p = 0; p <= ADAPTERS; p++)
        builder_port(b, sw, p, &pa);
    for (unsigned i = 0; i < adapters; i++) {
        a = (struct node_attrs){.guid = 0x10 * (i + 1), .type = NODE_CA, .num_ports = 1};
        assert_int_equal(builder_node(b, &a, name[i], strlen(name[i]), &n, NULL), 0);
        builder_port(b, n, 1, &pa);
        builder_port_guid(b, n, 1, a.guid + 1);
        builder_link(b, n, 1, sw, i + 1);
    }
    return builder_seal(b, generation, NULL);
}

static const struct fabric *hosts(unsigned adapters, uint64_t generation)
{
    return hosts_at("leaf", adapters, generation);
}

static void show(struct bed *b, const struct fabric *f)
{
    b->t.fabric = f;
    for (uint32_t s = 0; s < b->t.num; s++) {
        struct tele_port *p = &b->t.port[s];
        const struct node *n = fabric_by_guid(f, p->node_guid);
        p->port = n ? fabric_port_at(f, n, p->num).i : ID_NONE;
    }
}

static void hosts_open(struct bed *b)
{
    tele_table_done(&b->t);
    tele_table_init(&b->t);
    for (uint32_t s = 0; s < 2 * ADAPTERS; s++) {
        uint32_t k = s / 2;
        tele_slot_set(&b->t, s, s % 2 ? 1 : 0x10 * (k + 1), (uint8_t)(s % 2 ? k + 1 : 1));
        b->t.port[s].peer = s ^ 1;
        b->t.port[s].rate_mbps = 400000;
        b->t.port[s].of_switch = s % 2;
        b->t.port[s].up = true;
    }
}

// Two of one moment, the second after a feed at that moment: it is known at once, by whoever asks.
BED(the_last_link_goes_at_once, ADAPTERS, 400000)
{
    const struct fabric *f = hosts(ADAPTERS, 1);
    hosts_open(b);
    show(b, f);
    told_up(b);
    pass(b, 5 * MIN);
    health_link(b->h, 0, false, b->now);
    assert_int_equal(health_host_cut(b->h, 0), 0);
    pass(b, 20 * S);
    assert_int_equal(stands(b, "L01"), ALARM_MAJOR);
    health_link(b->h, 2, false, b->now);
    assert_int_equal(health_host_cut(b->h, 1), 1); // by either end, of either link
    assert_int_equal(health_host_cut(b->h, 2), 1);
    feed(b);
    assert_int_equal(stands(b, "L01"), ALARM_CRITICAL);
    assert_string_equal(reason(b, "L01"), "down, and no other link of the host is up");
    assert_int_equal(health_host_cut(b->h, 4), 0);
    health_link(b->h, 2, true, b->now);
    assert_int_equal(health_host_cut(b->h, 0), 0);
    feed(b);
    assert_int_equal(stands(b, "L01"), ALARM_MAJOR);
    health_forget(b->h, 2);
    assert_int_equal(health_host_cut(b->h, 0), 1);
    assert_int_equal(health_host_cut(b->h, 4711), 0);
    fabric_unref(f);
}

// Hosts that a new snapshot has, counted of the old one at the same moment.
BED(more_hosts_at_once, ADAPTERS, 400000)
{
    const struct fabric *few = hosts(1, 1), *all = hosts(ADAPTERS, 2);
    hosts_open(b);
    show(b, few);
    told_up(b);
    pass(b, MIN);
    health_link(b->h, 0, false, b->now);
    health_link(b->h, 4, false, b->now);
    pass(b, 20 * S);
    assert_int_equal(health_host_cut(b->h, 0), 1);
    assert_int_equal(health_host_cut(b->h, 4), 0); // whose it is is not known
    show(b, all);
    feed(b);
    assert_int_equal(health_host(b->h, 4), 4);
    assert_int_equal(health_host_cut(b->h, 4), 1);
    assert_int_equal(health_host_cut(b->h, 0), 0);
    assert_string_equal(view(b, 4).why, "down, and no other link of the host is up");
    assert_string_equal(view(b, 0).why, "down");
    fabric_unref(few);
    fabric_unref(all);
}

// A snapshot that comes between two parts of a feed, wherever that is: all of it is learned by the next feed.
static void snapshot_amid_a_feed(void **state)
{
    const struct fabric *few = hosts(1, 1), *all = hosts(ADAPTERS, 2);
    (void)state;
    for (int at = 0;; at++) {
        static struct bed b;
        bool over = false;
        bed_open(&b, ADAPTERS, 400000);
        hosts_open(&b);
        show(&b, few);
        b.now += b.step;
        health_feed_begin(b.h, &b.t, b.now);
        for (int i = 0; i < at && !over; i++)
            over = health_feed_some(b.h, 100);
        show(&b, all);
        while (!health_feed_some(b.h, 100))
            ;
        tick(&b);
        assert_int_equal(health_host(b.h, 0), 0);
        assert_int_equal(health_host(b.h, 2), 0);
        assert_int_equal(health_host(b.h, 4), 4);
        bed_close(&b);
        if (over)
            break;
        assert_true(at < 20);
    }
    fabric_unref(few);
    fabric_unref(all);
}

// --- names ---

// A name of characters of two bytes, long enough that what is said is cut, at each byte.
static void long_names(void **state)
{
    (void)state;
    for (unsigned pad = 0; pad < 4; pad++) {
        static struct bed b;
        char leaf[140] = "";
        memset(leaf, 'x', pad);
        while (strlen(leaf) + 2 <= 127)
            strcat(leaf, "\u00fc");
        const struct fabric *f = hosts_at(leaf, ADAPTERS, 1);
        bed_open(&b, ADAPTERS, 400000);
        hosts_open(&b);
        show(&b, f);
        told_up(&b);
        pass(&b, MIN);
        add(&b, 3, TELE_SYMBOL_ERRORS, 2);
        pass(&b, MIN);
        assert_int_equal(view(&b, 3).state, HEALTH_UNSURE);
        assert_non_null(strstr(view(&b, 3).why, "\u00fc"));
        assert_whole(view(&b, 3).why);
        add(&b, 1, TELE_SYMBOL_ERRORS, 20);
        pass(&b, 2 * MIN);
        assert_non_null(strstr(reason(&b, "L06"), leaf));
        for (int i = 0; i < 130 && strncmp(reason(&b, "L06"), "was ", 4) != 0; i++)
            pass(&b, MIN);
        assert_int_equal(strncmp(reason(&b, "L06"), "was ", 4), 0); // fades
        assert_non_null(strstr(reason(&b, "L06"), "\u00fc"));
        b.t.port[1].full = 1ull << TELE_SYMBOL_ERRORS;
        pass(&b, 5 * MIN);
        assert_non_null(strstr(reason(&b, "L06"), "at its maximum"));
        assert_whole(view(&b, 1).why);
        bed_close(&b);
        fabric_unref(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forgotten_it_is_a_new_one),
        cmocka_unit_test(moved_it_is_a_new_one),
        cmocka_unit_test(left_alone_and_used_again),
        cmocka_unit_test(the_last_link_goes_at_once),
        cmocka_unit_test(more_hosts_at_once),
        cmocka_unit_test(snapshot_amid_a_feed),
        cmocka_unit_test(long_names),
    };
    return cmocka_run_group_tests_name("health_cables", tests, NULL, NULL);
}
