// SPDX-License-Identifier: Apache-2.0
#include "test_model_help.h"

#include "fabric/diff.h"
#include "fabric/topogen.h"

static const struct fabric *base(void)
{
    struct builder *b = builder_new();
    node_id s = add_switch(b, 0x10, 4, "leaf"), t = add_switch(b, 0x20, 4, "spine");
    node_id h = add_ca(b, 0x30, "host mlx5_0"), z = add_ca(b, 0x40, "host mlx5_1");
    add_link(b, s, 1, h, 1);
    add_link(b, s, 2, z, 1);
    add_link(b, s, 3, t, 3);
    set_lid(b, s, 0, 1, 0, PORT_ACTIVE);
    set_lid(b, h, 1, 2, 0, PORT_ACTIVE);
    set_lid(b, z, 1, 3, 0, PORT_ACTIVE);
    return builder_seal(b, 1, NULL);
}

static node_id find(struct builder *b, uint64_t guid)
{
    node_id id = NODE_NONE;
    assert_int_equal(builder_find(b, guid, &id), 0);
    return id;
}

static void assert_text(const struct change *c, const struct fabric *f, const struct fabric *g,
                        const char *want)
{
    char buf[300];
    assert_string_equal(change_text(c, f, g, buf, sizeof(buf)), want);
}

// The only change, of this kind.
static const struct change *only(const struct fabric_diff *d, enum change_kind k)
{
    assert_int_equal(d->n, 1);
    assert_int_equal(d->count[k], 1);
    assert_int_equal(d->item[0].kind, k);
    return &d->item[0];
}

static void test_nothing_and_everything(void **state)
{
    const struct fabric *f = base(), *g = builder_seal(builder_from(f), 2, NULL);
    struct fabric_diff *d = diff_make(f, g);
    assert_int_equal(d->n, 0);
    diff_free(d);
    d = diff_make(NULL, f);
    assert_int_equal(d->n, 7);
    assert_int_equal(d->count[CHANGE_NODE_ADDED], 4);
    assert_int_equal(d->count[CHANGE_LINK_ADDED], 3);
    for (size_t i = 0; i < d->n; i++) {
        char buf[200];
        assert_non_null(strstr(change_text(&d->item[i], NULL, f, buf, sizeof(buf)), "added"));
    }
    diff_free(d);
    diff_free(NULL);
    fabric_unref(f);
    fabric_unref(g);
}

static void test_node_goes_and_comes(void **state)
{
    const struct fabric *f = base();
    struct builder *b = builder_from(f);
    builder_remove(b, find(b, 0x10)); // the first: every id and port shifts
    const struct fabric *g = builder_seal(b, 2, NULL);
    struct fabric_diff *d = diff_make(f, g);
    assert_int_equal(d->n, 4);
    assert_int_equal(d->count[CHANGE_NODE_REMOVED], 1);
    assert_int_equal(d->count[CHANGE_LINK_REMOVED], 3);
    assert_text(&d->item[0], f, g, "node leaf removed");
    assert_text(&d->item[1], f, g, "link leaf[1] - host mlx5_0[1] removed");
    assert_int_equal(d->item[1].old_value, 200000);
    diff_free(d);
    d = diff_make(g, f);
    assert_int_equal(d->count[CHANGE_NODE_ADDED], 1);
    assert_int_equal(d->count[CHANGE_LINK_ADDED], 3);
    assert_int_equal(d->n, 4);
    assert_text(&d->item[1], g, f, "link leaf[1] - host mlx5_0[1] added, 200 Gb/s");
    diff_free(d);
    fabric_unref(f);
    fabric_unref(g);
}

static void test_recabled(void **state)
{
    const struct fabric *f = base();
    struct builder *b = builder_from(f);
    builder_unlink(b, find(b, 0x30), 1);
    builder_unlink(b, find(b, 0x40), 1);
    builder_link(b, find(b, 0x30), 1, find(b, 0x10), 2);
    const struct fabric *g = builder_seal(b, 2, NULL);
    struct fabric_diff *d = diff_make(f, g);
    assert_int_equal(d->count[CHANGE_LINK_REMOVED], 2);
    assert_int_equal(d->count[CHANGE_LINK_ADDED], 1);
    assert_int_equal(d->n, 3);
    diff_free(d);
    fabric_unref(g);

    b = builder_from(f); // the same two nodes, another socket at the far end
    builder_unlink(b, find(b, 0x20), 3);
    builder_link(b, find(b, 0x10), 3, find(b, 0x20), 4);
    g = builder_seal(b, 2, NULL);
    d = diff_make(f, g);
    assert_int_equal(d->count[CHANGE_LINK_REMOVED], 1);
    assert_int_equal(d->count[CHANGE_LINK_ADDED], 1);
    diff_free(d);
    fabric_unref(f);
    fabric_unref(g);
}

static void test_values(void **state)
{
    const struct fabric *f = base();
    struct builder *b = builder_from(f);
    builder_desc(b, find(b, 0x20), "spine-01", 8);
    const struct fabric *g = builder_seal(b, 2, NULL);
    struct fabric_diff *d = diff_make(f, g);
    assert_text(only(d, CHANGE_NODE_DESC), f, g,
                "node 0x0000000000000020 renamed from \"spine\" to \"spine-01\"");
    diff_free(d);
    fabric_unref(g);

    b = builder_from(f);
    set_lid(b, find(b, 0x30), 1, 77, 0, PORT_ACTIVE);
    set_lid(b, find(b, 0x10), 4, 9, 0, PORT_DOWN); // what an external port says of LIDs means nothing
    g = builder_seal(b, 2, NULL);
    d = diff_make(f, g);
    assert_text(only(d, CHANGE_LID), f, g, "port host mlx5_0[1] LID 2 is now 77");
    diff_free(d);
    fabric_unref(g);

    b = builder_from(f);
    set_lid(b, find(b, 0x30), 1, 2, 0, PORT_ARMED);
    g = builder_seal(b, 2, NULL);
    d = diff_make(f, g);
    const struct change *c = only(d, CHANGE_PORT_STATE);
    assert_int_equal(c->guid_a, 0x30);
    assert_int_equal(c->port_a, 1);
    assert_int_equal(c->old_value, PORT_ACTIVE);
    assert_int_equal(c->new_value, PORT_ARMED);
    assert_text(c, f, g, "port host mlx5_0[1] went from active to armed");
    diff_free(d);
    fabric_unref(g);
    fabric_unref(f);
}

static void test_rate(void **state)
{
    const struct fabric *f = base();
    struct builder *b = builder_from(f);
    struct port_attrs slow = {.state = PORT_ACTIVE, .width_active = 1, .speed_active = 1};
    builder_port(b, find(b, 0x10), 3, &slow);
    builder_port(b, find(b, 0x20), 3, &slow);
    const struct fabric *g = builder_seal(b, 2, NULL);
    struct fabric_diff *d = diff_make(f, g);
    const struct change *c = only(d, CHANGE_LINK_RATE); // once, though both ends changed
    assert_int_equal(c->old_value, 200000);
    assert_int_equal(c->new_value, 2500);
    assert_int_equal(c->guid_z, 0x20);
    assert_text(c, f, g, "link leaf[3] - spine[3] went from 200 Gb/s to 2.5 Gb/s");
    diff_free(d);
    fabric_unref(f);
    fabric_unref(g);
}

static void test_reset(void **state)
{
    const struct fabric *f = base();
    struct builder *b = builder_from(f);
    set_lid(b, find(b, 0x30), 1, 0, 0, PORT_INIT);
    const struct fabric *g = builder_seal(b, 2, NULL);
    struct fabric_diff *d = diff_make(f, g);
    assert_int_equal(d->count[CHANGE_NODE_RESET], 1);
    assert_text(&d->item[0], f, g, "node host mlx5_0 has been reset");
    diff_free(d);
    fabric_unref(g);

    b = builder_from(f); // a switch: the LID is port 0's, the state that of its links
    set_lid(b, find(b, 0x10), 0, 0, 0, PORT_ACTIVE);
    set_lid(b, find(b, 0x10), 1, 0, 0, PORT_INIT);
    g = builder_seal(b, 2, NULL);
    d = diff_make(f, g);
    assert_int_equal(d->count[CHANGE_NODE_RESET], 1);
    assert_int_equal(d->item[0].guid_a, 0x10);
    diff_free(d);
    fabric_unref(g);

    b = builder_from(f); // a link that bounced keeps its LID: no reset
    set_lid(b, find(b, 0x30), 1, 2, 0, PORT_INIT);
    set_lid(b, find(b, 0x10), 1, 0, 0, PORT_INIT);
    g = builder_seal(b, 2, NULL);
    d = diff_make(f, g);
    assert_int_equal(d->count[CHANGE_NODE_RESET], 0);
    assert_int_equal(d->count[CHANGE_PORT_STATE], 2);
    diff_free(d);
    fabric_unref(g);
    fabric_unref(f);
}

// The GUID stays, the device does not.
static void test_other_device_under_the_guid(void **state)
{
    const struct fabric *f = base();
    struct builder *b = builder_from(f);
    builder_remove(b, find(b, 0x40));
    add_switch(b, 0x40, 200, "host mlx5_1");
    const struct fabric *g = builder_seal(b, 2, NULL);
    struct fabric_diff *d = diff_make(f, g);
    assert_int_equal(d->count[CHANGE_LINK_REMOVED], 1);
    assert_int_equal(d->n, 1);
    diff_free(d);
    d = diff_make(g, f);
    assert_int_equal(d->count[CHANGE_LINK_ADDED], 1);
    diff_free(d);
    fabric_unref(f);
    fabric_unref(g);
}

static void test_names_of_kinds(void **state)
{
    assert_string_equal(change_kind_name(CHANGE_NODE_ADDED), "node-added");
    assert_string_equal(change_kind_name(CHANGE_LID), "lid");
    assert_string_equal(change_kind_name((enum change_kind)50), "unknown");
    struct change c = {.kind = CHANGE_LINK_ADDED, .guid_a = 1, .guid_z = 2, .port_a = 3, .port_z = 4};
    assert_text(&c, NULL, NULL, "link 0x0000000000000001[3] - 0x0000000000000002[4] added, unknown rate");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_and_everything),
        cmocka_unit_test(test_node_goes_and_comes),
        cmocka_unit_test(test_recabled),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_other_device_under_the_guid),
        cmocka_unit_test(test_names_of_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
