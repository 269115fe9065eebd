// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/resolve.h"
#include "fabric/builder.h"

static const struct fabric *f;

// sw (0x100, LID 9) - a (0x10, ports 0x11 LID 1, 0x12 LID 2), two called "twin" (0x20, 0x30), "12" (0x40)
static void add(struct builder *b, uint64_t guid, enum node_type type, uint8_t ports, const char *name,
                uint16_t lid)
{
    node_id id;
    struct node_attrs a = {.guid = guid, .sys_guid = guid, .type = type, .num_ports = ports};
    assert_int_equal(builder_node(b, &a, name, strlen(name), &id, NULL), 0);
    unsigned first = type == NODE_SWITCH ? 0 : 1, last = type == NODE_SWITCH ? 0 : ports;
    for (unsigned i = first; i <= last; i++) {
        builder_port(b, id, i,
                     &(struct port_attrs){.lid = (uint16_t)(lid + i - first), .state = PORT_ACTIVE});
        builder_port_guid(b, id, i, type == NODE_SWITCH ? guid : guid + i);
    }
    if (type != NODE_SWITCH)
        assert_int_equal(builder_link(b, (node_id){0}, (unsigned)(guid >> 4), id, 1), 0);
}

static int setup(void **state)
{
    struct builder *b = builder_new();
    (void)state;
    add(b, 0x100, NODE_SWITCH, 16, "sw", 9);
    add(b, 0x10, NODE_CA, 2, "gpu a[0]", 1);
    add(b, 0x20, NODE_CA, 1, "twin", 3);
    add(b, 0x30, NODE_CA, 1, "twin", 4);
    add(b, 0x40, NODE_CA, 1, "12", 5);
    f = builder_seal(b, 1, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fabric_unref(f);
    return 0;
}

static void found(const char *text, int flags, uint64_t guid, int port)
{
    struct place at;
    struct err e = {0};
    int rc = resolve(f, text, flags, &at, &e);
    if (rc != 0)
        fail_msg("%s: %s", text, e.text);
    assert_int_equal(at.node->guid, guid);
    assert_int_equal(port_valid(at.port) ? fabric_port(f, at.port)->num : -1, port);
}

static void test_found(void **state)
{
    (void)state;
    found("sw", 0, 0x100, -1);
    found("sw[3]", 0, 0x100, 3);
    found("sw[0]", 0, 0x100, 0);
    found("0x100", 0, 0x100, -1);
    found("0x100[3]", 0, 0x100, 3);
    found("gpu a[0]", 0, 0x10, -1); // a name that ends like a port
    found("gpu a[0][2]", 0, 0x10, 2);
    found("0x12", 0, 0x10, 2);     // a PortGUID
    found("fe80::12", 0, 0x10, 2); // a GID
    found("fe80:0000:0000:0000:0000:0000:0000:0012", 0, 0x10, 2);
    found("fec0:0:0:1::100", 0, 0x100, -1);
    found("2", RESOLVE_LID, 0x10, 2);
    found("9", RESOLVE_LID, 0x100, 0);
    found("12", 0, 0x40, -1); // no LIDs wanted: a name
    found("0x0000000000000020", 0, 0x20, -1);
}

static void not_found(const char *text, int flags, int code, const char *why)
{
    struct place at;
    struct err e = {0};
    assert_int_equal(resolve(f, text, flags, &at, &e), code);
    if (strstr(e.text, why) == NULL)
        fail_msg("%s: %s", text, e.text);
}

static void test_not_found(void **state)
{
    (void)state;
    not_found("twin", 0, -EEXIST, "0x0000000000000020, 0x0000000000000030");
    not_found("twin[1]", 0, -EEXIST, "2 nodes");
    not_found("TWI", 0, -ENOENT, "\"twin\", \"twin\"");
    not_found("", 0, -ENOENT, "no node or port");
    not_found("nobody", 0, -ENOENT, "no node or port");
    not_found("sw[99]", 0, -ENOENT, "no port 99");
    not_found("gpu a[0][0]", 0, -ENOENT, "no port 0");
    not_found("sw[]", 0, -ENOENT, "no node");
    not_found("sw[3", 0, -ENOENT, "no node");
    not_found("sw[99999999999999999999]", 0, -ENOENT, "no node");
    not_found("[1]", 0, -ENOENT, "no node");
    not_found("ff12::12", 0, -ENOENT, "no node"); // a group's
    not_found("fe80::", 0, -ENOENT, "no node");
    not_found("fe80::99", 0, -ENOENT, "no node");
    not_found("777", RESOLVE_LID, -ENOENT, "LID 777");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_found), cmocka_unit_test(test_not_found)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
