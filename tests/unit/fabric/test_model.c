// SPDX-License-Identifier: Apache-2.0
// Look-ups, names, rates, references and sealing of a snapshot.
#include "test_model_help.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct fabric *small_fabric(void)
{
    struct builder *b = builder_new();
    node_id s = add_switch(b, 0x10, 4, "leaf"), h = add_ca(b, 0x20, "host mlx5_0"),
            anon = add_ca(b, 0x30, "");
    node_id t1 = add_ca(b, 0x40, "twin"), t2 = add_ca(b, 0x50, "twin");
    add_link(b, s, 1, h, 1);
    add_link(b, s, 2, anon, 1);
    add_link(b, s, 3, t1, 1);
    add_link(b, t2, 1, s, 4);
    set_lid(b, h, 1, 12, 0, PORT_ACTIVE);
    builder_sm_port(b, h, 1);
    return builder_seal(b, 3, NULL);
}

static void test_lookups(void **state)
{
    const struct fabric *f = small_fabric();
    const struct node *s = fabric_by_guid(f, 0x10), *h = fabric_by_guid(f, 0x20);
    assert_null(fabric_by_guid(f, 0x99));
    assert_int_equal(fabric_by_port_guid(f, 0x21).i, h->first_port);
    assert_int_equal(fabric_by_port_guid(f, 0x10).i, s->first_port); // port 0
    assert_false(port_valid(fabric_by_port_guid(f, 0x22)));
    assert_int_equal(fabric_by_lid(f, 12).i, h->first_port);
    assert_int_equal(fabric_by_lid(f, 13).i, ID_NONE);
    assert_int_equal(fabric_port_at(f, s, 0).i, s->first_port);
    assert_int_equal(fabric_port_at(f, s, 4).i, s->first_port + 4);
    assert_false(port_valid(fabric_port_at(f, s, 5)));
    assert_false(port_valid(fabric_port_at(f, h, 0)));
    assert_int_equal(fabric_port_at(f, h, 1).i, h->first_port);
    assert_ptr_equal(fabric_peer_node(f, fabric_port(f, fabric_port_at(f, s, 1))), h);
    assert_null(fabric_peer_node(f, fabric_port(f, fabric_port_at(f, s, 0))));
    assert_true(port_is_end(f, fabric_port(f, fabric_port_at(f, s, 0))));
    assert_false(port_is_end(f, fabric_port(f, fabric_port_at(f, s, 1))));
    assert_true(port_is_end(f, fabric_port(f, f->sm_port)));
    assert_int_equal(f->num_links, 4);
    assert_int_equal(f->lft_cap_min, 0xc000);
    assert_true(fabric_bytes(f) > sizeof(struct node) * f->num_nodes);
    fabric_unref(f);
}

static void assert_name(const struct fabric *f, port_id p, const char *want)
{
    char buf[100];
    assert_string_equal(fabric_port_name(f, p, buf, sizeof(buf)), want);
}

static void test_names(void **state)
{
    const struct fabric *f = small_fabric();
    assert_name(f, fabric_port_at(f, fabric_by_guid(f, 0x10), 3), "leaf[3]");
    assert_name(f, fabric_port_at(f, fabric_by_guid(f, 0x20), 1), "host mlx5_0[1]");
    assert_name(f, fabric_port_at(f, fabric_by_guid(f, 0x30), 1), "0x0000000000000030[1]");
    assert_name(f, fabric_port_at(f, fabric_by_guid(f, 0x40), 1), "twin (0x0000000000000040)[1]");
    assert_name(f, fabric_port_at(f, fabric_by_guid(f, 0x50), 1), "twin (0x0000000000000050)[1]");
    assert_name(f, PORT_NONE, "no port");
    char tiny[6];
    assert_string_equal(fabric_port_name(f, f->sm_port, tiny, sizeof(tiny)), "host ");
    fabric_unref(f);
}

static void test_enum_names(void **state)
{
    assert_string_equal(node_role_name(ROLE_HOST), "host");
    assert_string_equal(node_role_name(ROLE_SWITCH), "switch");
    assert_string_equal(node_role_name((enum node_role)99), "unknown");
    assert_string_equal(port_state_name(PORT_ACTIVE), "active");
    assert_string_equal(port_state_name(PORT_STATE_NOP), "nop");
    assert_string_equal(port_state_name((enum port_state)99), "unknown");
    assert_string_equal(port_excluded_name(PORT_EXCLUDED_BY_OPERATOR), "by-operator");
    assert_string_equal(port_excluded_name(PORT_EXCLUDED_ONE_SIDED), "one-sided");
    assert_string_equal(port_excluded_name((enum port_excluded)99), "unknown");
}

static uint32_t rate(uint8_t width, uint8_t speed, uint8_t ext)
{
    struct port_attrs a = {.width_active = width, .speed_active = speed, .speed_ext_active = ext};
    return port_rate_mbps(&a);
}

static void test_rates(void **state)
{
    assert_int_equal(rate(1, 1, 0), 2500);
    assert_int_equal(rate(2, 2, 0), 20000);
    assert_int_equal(rate(8, 4, 0), 120000);
    assert_int_equal(rate(2, 4, 1), 56000);
    assert_int_equal(rate(2, 4, 2), 100000);
    assert_int_equal(rate(2, 4, 4), 200000);
    assert_int_equal(rate(16, 4, 8), 200000); // 2x NDR
    assert_int_equal(rate(2, 4, 16), 800000);
    assert_int_equal(rate(4, 4, 4), 400000);
    assert_int_equal(rate(0, 4, 4), 0);
    assert_int_equal(rate(2, 0, 0), 0);
    assert_int_equal(rate(3, 4, 4), 0); // no code
    assert_int_equal(rate(2, 7, 0), 0);
    assert_int_equal(rate(2, 4, 3), 0);
    assert_int_equal(rate(255, 255, 255), 0);
}

static void test_references(void **state)
{
    const struct fabric *f = small_fabric();
    assert_ptr_equal(fabric_ref(f), f);
    fabric_unref(f);
    assert_string_equal(fabric_desc(f, &f->node[0]), "leaf"); // still there
    fabric_unref(f);
    fabric_unref(NULL);
}

// A stray write through a cast must fault, not change what everybody reads.
static void test_sealed(void **state)
{
    const struct fabric *f = small_fabric();
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        freopen("/dev/null", "w", stderr);
        ((struct node *)(uintptr_t)f->node)->guid = 1;
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
    fabric_unref(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lookups), cmocka_unit_test(test_names),      cmocka_unit_test(test_enum_names),
        cmocka_unit_test(test_rates),   cmocka_unit_test(test_references), cmocka_unit_test(test_sealed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
