// SPDX-License-Identifier: Apache-2.0
// Generated fabrics: counts, names, cabling. Where the .net generator of the same shapes is at hand (it is
// not part of the project), every node, port and cable is compared with its output.
#include "test_model_help.h"

#include <stdlib.h>
#include <unistd.h>

#include "fabric/topogen.h"
#include "lib/err.h"

static const struct fabric *make(const char *name)
{
    struct err e = {0};
    const struct fabric *f = topogen_make(name, &e);
    if (!f)
        fail_msg("%s: %s", name, e.text);
    return f;
}

static void assert_cable(const struct fabric *f, const char *a, unsigned pa, const char *z, unsigned pz)
{
    const struct port *p = fabric_port(f, fabric_port_at(f, by_desc(f, a), pa));
    assert_ptr_equal(fabric_peer_node(f, p), by_desc(f, z));
    assert_int_equal(fabric_port(f, p->peer)->num, pz);
}

static void test_names(void **state)
{
    assert_true(topogen_is_name("rail-1024"));
    assert_true(topogen_is_name("rail-7"));
    assert_true(topogen_is_name("ft3-64-16"));
    assert_true(topogen_is_name("superpod-64"));
    assert_true(topogen_is_name("subnet-40960"));
    static const char *const no[] = {"",         "rail",     "rail-",         "rail-8x",     "rail--8",
                                     "rail-8-8", "ft3-64",   "ft3-64-",       "ft3-64-16-1", "xgft2-4",
                                     "RAIL-8",   "./rail-8", "rail-8.txt",    "rail-1e3",    "rail- 8",
                                     "superpod", "subnet-",  "rail-99999999", "rail-0x8",    "rail-1024 "};
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        assert_false(topogen_is_name(no[i]));
}

static void test_refused(void **state)
{
    static const char *const no[] = {"rail-0",     "rail-7",     "rail-12",    "rail-8192",   "rail-9999999",
                                     "ft3-0-0",    "ft3-0-2",    "ft3-3-2",    "ft3-256-2",   "ft3-64-0",
                                     "ft3-64-5",   "ft3-64-12",  "ft3-64-128", "ft3-254-254", "superpod-0",
                                     "superpod-5", "superpod-7", "subnet-1",   "nonsense"};
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
        struct err e = {0};
        assert_null(topogen_make(no[i], &e));
        assert_true(e.code < 0);
        assert_non_null(strstr(e.text, "rail-<adapters>")); // says what would be right
        assert_string_equal(e.where, no[i]);
        assert_null(topogen_make(no[i], NULL));
    }
}

static void assert_counts(const char *name, unsigned adapters, unsigned leaves, unsigned spines,
                          unsigned cores, unsigned links)
{
    const struct fabric *f = make(name);
    unsigned role[ROLE_SWITCH + 1] = {0};
    for (uint32_t i = 0; i < f->num_nodes; i++)
        role[f->node[i].role]++;
    assert_int_equal(f->num_end_nodes, adapters);
    assert_int_equal(role[ROLE_LEAF], leaves);
    assert_int_equal(role[ROLE_SPINE], spines);
    assert_int_equal(role[ROLE_CORE], cores);
    assert_int_equal(f->num_links, links);
    assert_int_equal(f->num_planes, 1);
    fabric_unref(f);
}

static void test_counts(void **state)
{
    assert_counts("rail-8", 8, 8, 4, 0, 8 + 256);
    assert_counts("rail-1024", 1024, 32, 16, 0, 1024 + 1024);
    assert_counts("rail-7936", 7936, 248, 32, 0, 7936 + 248 * 32);
    assert_counts("ft3-4-1", 4, 2, 2, 0, 4 + 4);
    assert_counts("ft3-8-4", 64, 16, 16, 8, 3 * 64);
    assert_counts("ft3-64-8", 8192, 256, 256, 128, 3 * 8192);
    assert_counts("ft3-64-16", 16384, 512, 512, 256, 3 * 16384);
    assert_counts("subnet-40960", 40960, 1280, 1280, 1024, 3 * 40960);
}

// The published tables of DGX SuperPOD B200.
static void test_superpods(void **state)
{
    assert_counts("superpod-1", 252, 8, 4, 0, 252 + 256);
    assert_counts("superpod-2", 512, 16, 8, 0, 512 + 512);
    assert_counts("superpod-3", 764, 24, 16, 0, 764 + 768);
    assert_counts("superpod-4", 1024, 32, 16, 0, 1024 + 1024);
    assert_counts("superpod-8", 2048, 64, 32, 0, 2048 + 2048);
    assert_counts("superpod-16", 4096, 128, 128, 64, 3 * 4096);
    assert_counts("superpod-32", 8192, 256, 256, 128, 3 * 8192);
    assert_counts("superpod-64", 16384, 512, 512, 256, 3 * 16384);
    const struct fabric *f = make("superpod-64");
    assert_int_equal(f->num_sus, 64);
    assert_int_equal(f->num_rails, 8);
    assert_int_equal(f->num_hosts, 2048);
    assert_cable(f, "gpu-0034 mlx5_7", 1, "leaf-su02-rail7", 2);
    assert_int_equal(port_rate_mbps(&f->port[0].a), 400000);
    fabric_unref(f);
}

// As ibsim 0.10 and ibnetdiscover show the fabric of the .net file: GUIDs, names, ports.
static void test_small_rail(void **state)
{
    const struct fabric *f = make("rail-32");
    const struct node *first = &f->node[0], *last = by_desc(f, "gpu-0004 mlx5_7");
    assert_int_equal(first->guid, 0x0002c90300000000);
    assert_int_equal(f->port[0].guid, 0x0002c90300000001);
    assert_int_equal(last->guid, 0x0002c9030000003e);
    assert_int_equal(last->sys_guid, 0x0002c90300000030); // its host's first adapter
    assert_int_equal(by_desc(f, "leaf-su01-rail0")->guid, 0x0008f10400400000);
    assert_int_equal(by_desc(f, "leaf-su01-rail7")->guid, 0x0008f10400400007);
    assert_int_equal(by_desc(f, "spine-04")->guid, 0x0008f1040040000b);
    assert_cable(f, "gpu-0004 mlx5_7", 1, "leaf-su01-rail7", 4);
    assert_cable(f, "leaf-su01-rail0", 33, "spine-01", 1);
    assert_cable(f, "leaf-su01-rail7", 64, "spine-04", 64);
    assert_int_equal(f->sm_port.i, 0);
    assert_int_equal(f->top_lid, 0);
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        bool port0 = p->num == 0;
        assert_int_equal(p->a.state, port_valid(p->peer) ? PORT_INIT : port0 ? PORT_ACTIVE : PORT_DOWN);
        assert_int_equal(port_rate_mbps(&p->a), port_valid(p->peer) ? 200000 : port0 ? 10000 : 0);
    }
    fabric_unref(f);
}

// ---------------------------------------------------------------- against the .net generator

struct net { // a node of the .net file
    char name[64], desc[64];
    bool is_switch;
    unsigned ports;
};

static unsigned net_find(const struct net *net, unsigned n, const char *name)
{
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(net[i].name, name) == 0)
            return i;
    }
    fail_msg("no %s", name);
    return 0;
}

static void net_nodes(FILE *in, const struct fabric *f, struct net *net)
{
    char line[400];
    unsigned n = 0;
    while (fgets(line, sizeof(line), in)) {
        char type[8], name[64], desc[64];
        unsigned ports;
        if (sscanf(line, "%7s %u \"%63[^\"]\" # \"%63[^\"]\"", type, &ports, name, desc) != 4)
            continue;
        assert_true(n < f->num_nodes);
        struct net *x = &net[n];
        snprintf(x->name, sizeof(x->name), "%s", name);
        snprintf(x->desc, sizeof(x->desc), "%s", desc);
        x->is_switch = strcmp(type, "Switch") == 0;
        x->ports = ports;
        assert_string_equal(fabric_desc(f, &f->node[n]), desc);
        assert_int_equal(f->node[n].type == NODE_SWITCH, x->is_switch);
        assert_int_equal(f->node[n].num_ports, ports);
        n++;
    }
    assert_int_equal(n, f->num_nodes);
}

static void net_cables(FILE *in, const struct fabric *f, const struct net *net)
{
    char line[400];
    unsigned node = 0, cables = 0;
    while (fgets(line, sizeof(line), in)) {
        char type[8], name[64];
        unsigned num, peer_num;
        if (sscanf(line, "[%u] \"%63[^\"]\"[%u]", &num, name, &peer_num) == 3) {
            const struct port *p = fabric_port(f, fabric_port_at(f, &f->node[node - 1], num));
            const struct node *z = fabric_peer_node(f, p);
            assert_non_null(z);
            assert_int_equal(z - f->node, net_find(net, f->num_nodes, name));
            assert_int_equal(fabric_port(f, p->peer)->num, peer_num);
            cables++;
        } else if (sscanf(line, "%7s %u \"%63[^\"]\"", type, &num, name) == 3) {
            node++;
        }
    }
    assert_int_equal(cables, 2 * f->num_links);
}

static void compare(const char *generator, const char *args, const char *name)
{
    char cmd[1000], dir[200], path[240];
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof(dir), "%s/weft-topogen-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/net", dir);
    snprintf(cmd, sizeof(cmd), "python3 '%s' %s > '%s'", generator, args, path);
    assert_int_equal(system(cmd), 0);
    const struct fabric *f = make(name);
    struct net *net = calloc(f->num_nodes, sizeof(*net));
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    net_nodes(in, f, net);
    rewind(in);
    net_cables(in, f, net);
    fclose(in);
    unlink(path);
    rmdir(dir);
    free(net);
    fabric_unref(f);
}

static void test_same_as_net_generator(void **state)
{
    const char *shared = getenv("WEFT_SHARED");
    char generator[400];
    snprintf(generator, sizeof(generator), "%s/tools/peer-opensm/topogen.py",
             shared ? shared : SOURCE_ROOT "/../shared");
    if (access(generator, R_OK) != 0) {
        print_message("skipped: no %s\n", generator);
        skip();
    }
    compare(generator, "rail 1", "rail-8");
    compare(generator, "rail 4", "rail-32");
    compare(generator, "rail 70", "rail-560"); // an SU that is not full, 2 links a pair
    compare(generator, "ft3 4 1", "ft3-4-1");
    compare(generator, "ft3 4 2", "ft3-4-2");
    compare(generator, "ft3 8 4", "ft3-8-4");
    compare(generator, "ft3 16 8", "ft3-16-8");
    compare(generator, "ft3 16 16", "ft3-16-16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),      cmocka_unit_test(test_refused),
        cmocka_unit_test(test_counts),     cmocka_unit_test(test_superpods),
        cmocka_unit_test(test_small_rail), cmocka_unit_test(test_same_as_net_generator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
