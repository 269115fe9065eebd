// SPDX-License-Identifier: Apache-2.0
// Slurm's topology files and the JSON graph.
#include "test_reader_help.h"

#include <errno.h>

#include "fabric/hostlist.h"
#include "fabric/topogen.h"
#include "fabric/writer.h"
#include "lib/buf.h"

static void test_hostlist(void **state)
{
    static const struct {
        const char *name[8], *want;
    } row[] = {
        {{"gpu-0002", "gpu-0001", "gpu-0004", "gpu-0003", "gpu-0100"}, "gpu-[0001-0004,0100]"},
        {{"n8", "n9", "n10", "n11", "n12"}, "n[8-9,10-12]"},
        {{"n08", "n09", "n10", "n8"}, "n[8,08-10]"},
        {{"login", "n1", "n1"}, "login,n1"},
        {{"a1b", "a2b"}, "a1b,a2b"},
        {{"n", "n1", "n2"}, "n,n[1-2]"},
        {{"x12345678901234567890", "x12345678901234567891"}, "x12345678901[234567890-234567891]"},
        {{"7", "8"}, "[7-8]"},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        const char *name[8];
        size_t n = 0;
        for (; n < 8 && row[i].name[n]; n++)
            name[n] = row[i].name[n];
        struct buf b = {0};
        hostlist_put(&b, name, n);
        assert_string_equal(b.data, row[i].want);
        buf_done(&b);
    }
    assert_true(hostlist_name_ok("gpu-1.a_b"));
    static const char *const bad[] = {"", "a b", "a[1]", "a,b", "a\nb", "ü", "a=b", "a#b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(hostlist_name_ok(bad[i]));
}

static char *slurm(const struct fabric *f, struct slurm_opts o, struct slurm_counts *counts, struct err *e)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    struct err none = {0};
    o.name = o.name ? o.name : "ib0";
    int rc = write_slurm(f, &o, out, counts, e ? e : &none);
    fclose(out);
    assert_int_equal(rc, e ? e->code : 0);
    if (rc != 0)
        assert_int_equal(n, 0);
    return text;
}

static const struct fabric *generated(const char *name)
{
    struct err e;
    const struct fabric *f = topogen_make(name, &e);
    assert_non_null(f);
    return f;
}

#define assert_has(text, part)                                                                               \
    do {                                                                                                     \
        if (!strstr(text, part))                                                                             \
            fail_msg("\"%s\" is not in:\n%s", part, text);                                                   \
    } while (0)

static void test_by_unit(void **state)
{
    const struct fabric *f = generated("rail-1024");
    struct slurm_counts c;
    char *text = slurm(f, (struct slurm_opts){.rail = -1}, &c, NULL);
    assert_string_equal(text, "# topology.conf of Slurm: 128 hosts of fabric ib0\n"
                              "SwitchName=ib0 Switches=ib0-su[0-3]\n"
                              "SwitchName=ib0-su0 Nodes=gpu-[0001-0032]\n"
                              "SwitchName=ib0-su1 Nodes=gpu-[0033-0064]\n"
                              "SwitchName=ib0-su2 Nodes=gpu-[0065-0096]\n"
                              "SwitchName=ib0-su3 Nodes=gpu-[0097-0128]\n");
    assert_int_equal(c.hosts, 128);
    assert_int_equal(c.left_out, 0);
    free(text);
    text = slurm(f, (struct slurm_opts){.rail = -1, .yaml = true}, &c, NULL);
    assert_has(text, "\n---\n- topology: \"ib0\"\n  cluster_default: true\n  tree:\n    switches:\n"
                     "      - switch: \"ib0\"\n        children: \"ib0-su[0-3]\"\n");
    assert_has(text, "- topology: \"ib0-rail7\"\n  cluster_default: false\n");
    assert_has(text, "      - switch: \"leaf-su04-rail7\"\n        nodes: \"gpu-[0097-0128]\"\n");
    free(text);
    fabric_unref(f);
}

static void test_by_rail(void **state)
{
    const struct fabric *f = generated("rail-1024");
    struct slurm_counts c;
    struct err e;
    char *text = slurm(f, (struct slurm_opts){.rail = 3}, &c, NULL);
    assert_has(text, "SwitchName=ib0-rail3 Switches=leaf-su01-rail3,leaf-su02-rail3,leaf-su03-rail3,"
                     "leaf-su04-rail3\nSwitchName=leaf-su01-rail3 Nodes=gpu-[0001-0032]\n");
    free(text);
    text = slurm(f, (struct slurm_opts){.rail = 3, .match = "gpu-001?"}, &c, NULL); // no switch above one
    assert_string_equal(text, "# topology.conf of Slurm: 10 hosts of fabric ib0\n"
                              "SwitchName=leaf-su01-rail3 Nodes=gpu-[0010-0019]\n");
    free(text);
    free(slurm(f, (struct slurm_opts){.rail = 8}, &c, &e));
    assert_int_equal(e.code, -ENOENT);
    assert_has(e.text, "rail 8");
    fabric_unref(f);
}

// Two machines, gpu-1 with its second adapter out: on that rail it lies where its unit lies.
static void test_missing_adapter(void **state)
{
    const struct fabric *f = generated("rail-256");
    struct slurm_counts c;
    struct builder *b = builder_from(f);
    for (uint32_t i = 0; i < f->num_nodes; i++)
        if (strcmp(fabric_desc(f, &f->node[i]), "gpu-0005 mlx5_2") == 0)
            builder_exclude(b, (node_id){i}, 1, PORT_EXCLUDED_BY_OPERATOR);
    const struct fabric *g = builder_seal(b, 2, NULL);
    assert_int_equal(g->num_links + 1, f->num_links);
    char *was = slurm(f, (struct slurm_opts){.rail = 2}, &c, NULL);
    char *is = slurm(g, (struct slurm_opts){.rail = 2}, &c, NULL);
    assert_string_equal(was, is);
    free(was);
    free(is);
    fabric_unref(g);
    fabric_unref(f);
}

static void test_pods(void **state)
{
    const struct fabric *f = generated("ft3-8-4");
    struct slurm_counts c;
    char *text = slurm(f, (struct slurm_opts){.rail = -1}, &c, NULL);
    assert_has(text, "SwitchName=ib0 Switches=ib0-pod[0-3]\nSwitchName=ib0-pod0 Switches=ib0-su[0-1]\n");
    assert_has(text, "SwitchName=ib0-su7 Nodes=gpu-0008\n");
    free(text);
    fabric_unref(f);
}

// Two parts; names that repeat, that nobody has given, that Slurm would not take; switches of one name.
static void test_names_and_parts(void **state)
{
    static const char *const host[] = {"n1 mlx5_0", "n2 mlx5_0",     "twin mlx5_0", "twin mlx5_0",
                                       "",          "a,b=c# mlx5_0", "n3 mlx5_0",   "n4 mlx5_0"};
    struct builder *b = builder_new();
    node_id s[3];
    struct slurm_counts c;
    for (unsigned i = 0; i < 3; i++)
        s[i] = add_switch(b, 0x10u + i, 8, i == 2 ? "ib0-su0" : "MF0;sw:MQM/U1");
    add_link(b, s[0], 8, s[1], 8);
    for (unsigned i = 0; i < 8; i++)
        add_link(b, add_ca(b, 0x100u + i, host[i]), 1, s[i < 6 ? i % 2 : 2], 1 + i % 7);
    add_ca(b, 0x200, "alone mlx5_0");
    const struct fabric *f = builder_seal(b, 1, NULL);
    char *text = slurm(f, (struct slurm_opts){.rail = -1}, &c, NULL);
    assert_string_equal(
        text,
        "# topology.conf of Slurm: 4 hosts of fabric ib0; 5 left out, as they have no cable or no name of "
        "their own\n"
        "SwitchName=ib0 Switches=MF0_sw_MQM_U1-0000000[000000010-000000011]\n"
        "SwitchName=MF0_sw_MQM_U1-0000000000000010 Nodes=n1\n"
        "SwitchName=MF0_sw_MQM_U1-0000000000000011 Nodes=n2\n"
        "SwitchName=ib0-su0-0000000000000012 Nodes=n[3-4]\n");
    assert_int_equal(c.left_out, 5);
    free(text);
    fabric_unref(f);
}

static void test_never_empty(void **state)
{
    const struct fabric *f = generated("rail-256");
    struct slurm_counts c;
    struct err e;
    free(slurm(f, (struct slurm_opts){.rail = -1, .match = "cpu-*"}, &c, &e));
    assert_int_equal(e.code, -ENOENT);
    free(slurm(f, (struct slurm_opts){.rail = -1, .name = "a b"}, &c, &e));
    assert_int_equal(e.code, -EINVAL);
    fabric_unref(f);
    struct builder *b = builder_new();
    f = builder_seal(b, 1, NULL);
    free(slurm(f, (struct slurm_opts){.rail = -1, .yaml = true}, &c, &e));
    assert_int_equal(e.code, -ENOENT);
    fabric_unref(f);
}

static void test_json(void **state)
{
    struct builder *b = builder_new();
    node_id s = add_switch(b, 0x10, 4, "a \"b\" \\");
    add_link(b, add_ca(b, 0x100, "h mlx5_0"), 1, s, 3);
    const struct fabric *f = builder_seal(b, 7, NULL);
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    assert_int_equal(write_graph_json(f, "x", out), 0);
    fclose(out);
    assert_has(text, "{\"directed\":false,\"multigraph\":true,\"graph\":{\"name\":\"x\",\"generation\":7},");
    assert_has(text, "\"name\":\"a \\\"b\\\" \\\\\",\"type\":\"switch\"");
    assert_has(text, "\"source_port\":");
    assert_has(text, "\"target\":\"0x0000000000000");
    free(text);
    fabric_unref(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostlist),    cmocka_unit_test(test_by_unit),
        cmocka_unit_test(test_by_rail),     cmocka_unit_test(test_missing_adapter),
        cmocka_unit_test(test_pods),        cmocka_unit_test(test_names_and_parts),
        cmocka_unit_test(test_never_empty), cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
