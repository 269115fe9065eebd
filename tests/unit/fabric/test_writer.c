// SPDX-License-Identifier: Apache-2.0
// What is written: golden text where another program's output exists, else read back.
#include "test_reader_help.h"

#include "fabric/topogen.h"
#include "fabric/writer.h"

// As OpenSM 3.3.23 left it on ibsim 0.10 with this network.
static const char net[] = "Switch\t8 \"Switch1\"\n[1]\t\"Hca1\"[1]\n[4]\t\"Hca2\"[1]\n\n"
                          "Hca\t2 \"Hca1\"\n[1]\t\"Switch1\"[1]\n\nHca 2 \"Hca2\"\n[1] \"Switch1\"[4]\n";
static const char lfts[] = "Unicast lids [0-3] of switch Lid 1 guid 0x0000000000200000 ('Switch1'):\n"
                           "0x0001 000 # Switch portguid 0x0000000000200000: 'Switch1'\n"
                           "0x0002 001 # Channel Adapter portguid 0x0000000000100001: 'Hca1'\n"
                           "0x0003 004 # Channel Adapter portguid 0x0000000000100004: 'Hca2'\n"
                           "3 lids dumped\n";
static const char fdbs[] = "dump_ucast_routes: Switch 0x0000000000200000\n"
                           "LID    : Port : Hops : Optimal\n"
                           "0x0001 : 000  : 00   : yes\n"
                           "0x0002 : 001  : 01   : yes\n"
                           "0x0003 : 004  : 01   : yes\n";

typedef int (*topo_writer)(const struct fabric *, FILE *);
typedef int (*table_writer)(const struct fabric *, const struct fabric_tables *, FILE *);

static char *topo_text(topo_writer w, const struct fabric *f)
{
    char *text = NULL;
    size_t n;
    FILE *o = open_memstream(&text, &n);
    assert_int_equal(w(f, o), 0);
    fclose(o);
    return text;
}

static char *table_text(table_writer w, const struct fabric *f, const struct fabric_tables *t)
{
    char *text = NULL;
    size_t n;
    FILE *o = open_memstream(&text, &n);
    assert_int_equal(w(f, t, o), 0);
    fclose(o);
    return text;
}

static const struct fabric *with_lids(const struct fabric *f, const uint16_t *lid)
{
    struct builder *b = builder_from(f);
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        unsigned num = node_first_num(&f->node[i]);
        struct port_attrs a = f->port[f->node[i].first_port].a;
        a.lid = lid[i];
        builder_port(b, (node_id){i}, num, &a);
    }
    return builder_seal(b, 2, NULL);
}

static void test_tables_golden(void **state)
{
    static const uint16_t lid[] = {1, 2, 3};
    struct findings fi;
    const struct fabric *raw = parse_ok(net, &fi), *f = with_lids(raw, lid);
    struct fabric_tables *t = tables_new(f, 3, "test");
    uint8_t *row = tables_row(t, 0);
    row[1] = 0;
    row[2] = 1;
    row[3] = 4;
    char *text = table_text(write_lft_dump, f, t);
    assert_string_equal(text, lfts);
    free(text);
    text = table_text(write_fdbs, f, t);
    assert_string_equal(text, fdbs);
    free(text);
    tables_unref(t);
    fabric_unref(f);
    fabric_unref(raw);
    findings_done(&fi);
}

// Three switches in a triangle, one adapter: detours, loops, dead ends, unused LIDs.
static void test_fdbs_paths(void **state)
{
    struct builder *b = builder_new();
    node_id s[3], ca = add_ca(b, 0x100, "h");
    for (int i = 0; i < 3; i++) {
        s[i] = add_switch(b, 0x10u + (unsigned)i, 4, "s");
        set_lid(b, s[i], 0, (uint16_t)(1 + i), 0, PORT_ACTIVE);
    }
    add_link(b, s[0], 1, s[1], 1);
    add_link(b, s[1], 2, s[2], 2);
    add_link(b, s[2], 3, s[0], 3);
    add_link(b, ca, 1, s[2], 4);
    set_lid(b, ca, 1, 7, 0, PORT_ACTIVE);
    const struct fabric *f = builder_seal(b, 1, NULL);
    struct fabric_tables *t = tables_new(f, 7, "test");
    tables_row(t, 0)[7] = 1; // 0 -> 1 -> 2 -> h, though 0 -> 2 is there
    tables_row(t, 1)[7] = 2;
    tables_row(t, 2)[7] = 4;
    tables_row(t, 0)[2] = 3; // 0 -> 2 -> 0: a loop
    tables_row(t, 2)[2] = 3;
    tables_row(t, 1)[2] = 0;
    tables_row(t, 1)[1] = 4; // nothing there
    tables_row(t, 2)[1] = 99;
    char *text = table_text(write_fdbs, f, t);
    assert_non_null(strstr(text, "0x0007 : 001  : 03   : No 2 hop path possible via port 3!\n"));
    assert_non_null(strstr(text, "0x0007 : 002  : 02   : yes\n"));
    assert_non_null(strstr(text, "0x0007 : 004  : 01   : yes\n"));
    assert_non_null(strstr(text, "Switch 0x0000000000000010\nLID    : Port : Hops : Optimal\n"
                                 "0x0001 : UNREACHABLE\n0x0002 : UNREACHABLE\n"));
    assert_null(strstr(text, "0x0001 : 004"));
    assert_null(strstr(text, "0x0001 : 099"));
    free(text);
    tables_unref(t);
    fabric_unref(f);
}

// Same nodes in the same order, same ports, links, names; the states are the reader's own.
static void assert_same(const struct fabric *a, const struct fabric *b, bool guids_of_ports)
{
    assert_int_equal(a->num_nodes, b->num_nodes);
    assert_int_equal(a->num_ports, b->num_ports);
    assert_int_equal(a->num_links, b->num_links);
    assert_int_equal(a->sm_port.i, b->sm_port.i);
    for (uint32_t i = 0; i < a->num_nodes; i++) {
        const struct node *m = &a->node[i], *n = &b->node[i];
        assert_int_equal(m->guid, n->guid);
        assert_int_equal(m->sys_guid, n->sys_guid);
        assert_int_equal(m->type, n->type);
        assert_int_equal(m->vendor_id, n->vendor_id);
        assert_int_equal(m->device_id, n->device_id);
        assert_int_equal(m->enhanced_port0, n->enhanced_port0);
        assert_string_equal(fabric_desc(a, m), fabric_desc(b, n));
    }
    for (uint32_t i = 0; i < a->num_ports; i++) {
        const struct port *p = &a->port[i], *q = &b->port[i];
        assert_int_equal(p->peer.i, q->peer.i);
        if (port_valid(p->peer) || port_is_end(a, p)) {
            assert_int_equal(p->a.lid, q->a.lid);
            assert_int_equal(p->a.lmc, q->a.lmc);
        }
        assert_int_equal(p->a.width_active, q->a.width_active);
        assert_int_equal(p->a.speed_active, q->a.speed_active);
        assert_int_equal(p->a.speed_ext_active, q->a.speed_ext_active);
        assert_int_equal(p->a.fdr10, q->a.fdr10);
        if (!guids_of_ports)
            continue;
        if (port_valid(p->peer))
            assert_int_equal(p->guid, q->guid);
        assert_string_equal(fabric_label(a, p), fabric_label(b, q));
    }
}

static const char dump[] =
    "# Initiated from node 0000000000000100 port 0000000000000101\n"
    "vendid=0x2c9\ndevid=0xd2f0\nsysimgguid=0x10\nswitchguid=0x10(11)\n"
    "Switch 36 \"S-0000000000000010\" # \"say \"hi\" # w=99 {x}\" enhanced port 0 lid 3 lmc 0\n"
    "[1](1/1) \"H-0000000000000100\"[1](101) # \"h \" lid 5 4xQDR\n"
    "[2][ext 7] \"S-0000000000000020\"[3] # \"z\" lid 4 12xFDR10\n"
    "[4] \"R-0000000000000200\"[2](202) # \"rt\" lid 9 1xXDR\n"
    "[9] \"H-0000000000000100\"[2](102) # \"h \" lid 6 4x???\n"
    "vendid=0x2c9\ndevid=0xc738\nsysimgguid=0x20\nswitchguid=0x20(20)\n"
    "Switch 4 \"S-0000000000000020\" # \"z\" base port 0 lid 4 lmc 0\n"
    "[3] \"S-0000000000000010\"[2] # \"x\" lid 3 12xFDR10\n"
    "vendid=0x2c9\ndevid=0x101b\nsysimgguid=0x100\ncaguid=0x100\n"
    "Ca 2 \"H-0000000000000100\" # \"h \"\n"
    "[1](101) \"S-0000000000000010\"[1] # lid 5 lmc 0 \"x\" lid 3 4xQDR\n"
    "[2](102) \"S-0000000000000010\"[9] # lid 6 lmc 0 \"x\" lid 3 4x???\n"
    "vendid=0x1\ndevid=0x2\nsysimgguid=0x200\nrtguid=0x200\n"
    "Rt 2 \"R-0000000000000200\" # \"rt\"\n"
    "[2](202) \"S-0000000000000010\"[4] # lid 9 lmc 0 \"x\" lid 3 1xXDR\n";

static void test_ibnetdiscover(void **state)
{
    struct findings fi, back = {0};
    const struct fabric *f = parse_ok(dump, &fi);
    char *text = topo_text(write_ibnetdiscover, f);
    const struct fabric *g = parse_ok(text, &back);
    assert_same(f, g, true);
    char *again = topo_text(write_ibnetdiscover, g);
    assert_string_equal(text, again);
    assert_non_null(strstr(text, "[1](1/1)\t\"H-0000000000000100\"[1](101) \t\t# \"h \" lid 5 4xQDR\n"));
    assert_non_null(strstr(text, "[2][ext 7]\t\"S-0000000000000020\"[3]\t\t# \"z\" lid 4 12xFDR10\n"));
    free(text);
    free(again);
    findings_done(&fi);
    findings_done(&back);
    fabric_unref(f);
    fabric_unref(g);
}

static void test_lst(void **state)
{
    struct findings fi, back;
    const struct fabric *f = parse_ok(dump, &fi);
    char *text = topo_text(write_lst, f);
    assert_string_equal(reader_dialect(text, strlen(text)), "lst");
    const struct fabric *g = parse_ok(text, &back);
    assert_int_equal(f->num_nodes, g->num_nodes);
    assert_int_equal(f->num_links, g->num_links);
    assert_linked(g, 0x10, 2, 0x20, 3);
    assert_linked(g, 0x10, 4, 0x200, 2);
    assert_int_equal(port_of(g, 0x100, 1)->guid, 0x101);
    assert_int_equal(port_of(g, 0x100, 2)->a.lid, 6);
    assert_int_equal(port_of(g, 0x10, 0)->guid, 0x11);
    assert_int_equal(port_of(g, 0x200, 2)->a.speed_ext_active, 16);
    assert_true(port_of(g, 0x20, 3)->a.fdr10);
    // braces end a name in this form
    assert_string_equal(fabric_desc(g, fabric_by_guid(g, 0x10)), "say \"hi\" # w=99 _x_");
    assert_ptr_equal(fabric_port(g, g->sm_port), port_of(g, 0x100, 1));
    free(text);
    findings_done(&fi);
    findings_done(&back);
    fabric_unref(f);
    fabric_unref(g);
}

static void test_ibsim(void **state)
{
    struct findings fi, back;
    const struct fabric *f = parse_ok(dump, &fi);
    char *text = topo_text(write_ibsim_net, f);
    assert_string_equal(reader_dialect(text, strlen(text)), "ibsim");
    const struct fabric *g = parse_ok(text, &back);
    assert_findings(&back, 0);
    assert_int_equal(g->num_nodes, 4);
    assert_int_equal(g->num_links, 4);
    assert_linked(g, 0x10, 1, 0x100, 1);
    assert_linked(g, 0x10, 9, 0x100, 2);
    assert_linked(g, 0x10, 4, 0x200, 2);
    assert_int_equal(g->node[0].guid, 0x100); // ibsim's clients sit at the first node
    assert_ptr_equal(fabric_port(g, g->sm_port), port_of(g, 0x100, 1));
    assert_int_equal(fabric_by_guid(g, 0x10)->device_id, 0xd2f0);
    assert_int_equal(port_of(g, 0x10, 0)->a.lid, 3);
    assert_int_equal(port_of(g, 0x100, 2)->a.lid, 6);
    assert_int_equal(port_of(g, 0x100, 1)->a.speed_active, 4);
    assert_int_equal(port_of(g, 0x100, 1)->a.speed_ext_active, 0);
    assert_true(port_of(g, 0x20, 3)->a.fdr10);
    assert_string_equal(fabric_desc(g, fabric_by_guid(g, 0x10)), "say 'hi' # w=99 {x}");
    // nothing on a port line that ibsim would take for an option
    const char *p = text;
    while ((p = strstr(p, "\n[")) != NULL) {
        p++;
        assert_null(memchr(p, '=', strcspn(p, "\n")));
    }
    free(text);
    findings_done(&fi);
    findings_done(&back);
    fabric_unref(f);
    fabric_unref(g);
}

static void test_generated(void **state)
{
    static const char *const name[] = {"rail-32", "ft3-8-4"};
    for (size_t i = 0; i < 2; i++) {
        struct err e = {0};
        struct findings back;
        const struct fabric *f = topogen_make(name[i], &e);
        assert_non_null(f);
        char *text = topo_text(write_ibnetdiscover, f);
        const struct fabric *g = parse_ok(text, &back);
        assert_same(f, g, true);
        fabric_unref(g);
        free(text);
        findings_done(&back);
        text = topo_text(write_ibsim_net, f);
        g = parse_ok(text, &back);
        assert_int_equal(g->num_nodes, f->num_nodes);
        assert_int_equal(g->num_links, f->num_links);
        fabric_unref(g);
        free(text);
        findings_done(&back);
        fabric_unref(f);
    }
}

static void test_full_disk(void **state)
{
    struct findings fi;
    const struct fabric *f = parse_ok(dump, &fi);
    struct fabric_tables *t = tables_new(f, f->top_lid, "test");
    topo_writer topo[] = {write_ibnetdiscover, write_ibsim_net, write_lst};
    table_writer table[] = {write_lft_dump, write_fdbs};
    for (size_t i = 0; i < 5; i++) {
        FILE *o = fopen("/dev/full", "w");
        assert_non_null(o);
        setvbuf(o, NULL, _IONBF, 0);
        assert_int_equal(i < 3 ? topo[i](f, o) : table[i - 3](f, t, o), -5);
        fclose(o);
    }
    tables_unref(t);
    fabric_unref(f);
    findings_done(&fi);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_golden), cmocka_unit_test(test_fdbs_paths),
        cmocka_unit_test(test_ibnetdiscover), cmocka_unit_test(test_lst),
        cmocka_unit_test(test_ibsim),         cmocka_unit_test(test_generated),
        cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
