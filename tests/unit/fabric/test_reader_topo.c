// SPDX-License-Identifier: Apache-2.0
// ibnetdiscover's dialects.
#include "test_reader_help.h"

#define SW1 0x0002c90000000010ull
#define SW2 0x0002c90000000020ull
#define CA1 0x0002c90000000100ull
#define CA2 0x0002c90000000200ull

static const char plain[] =
    "#\n"
    "# Topology file: generated on Mon Jan  1 00:00:00 2024\n"
    "#\n"
    "# Initiated from node 0002c90000000200 port 0002c90000000202\n"
    "\n"
    "vendid=0x2c9\n"
    "devid=0xd2f0\n"
    "sysimgguid=0x2c90000000013\n"
    "switchguid=0x2c90000000010(2c90000000011)\n"
    "Switch\t36 \"S-0002c90000000010\"\t\t# \"MF0;leaf # 1:X/U1\" enhanced port 0 lid 3 lmc 0\n"
    "[1]\t\"H-0002c90000000100\"[1](2c90000000101) \t\t# \"a mlx5_1 \" lid 5 4xHDR\n"
    "[2]\t\"H-0002c90000000200\"[2](2c90000000202) \t\t# \"say \"hi\" \\ b\" lid 8 2xHDR\n"
    "[33]\t\"S-0002c90000000020\"[34]\t\t# \"spine\" lid 4 4xFDR10\n"
    "\n"
    "vendid=0x2c9\n"
    "devid=0xc738\n"
    "switchguid=0x2c90000000020(2c90000000020)\n"
    "Switch\t36 \"S-0002c90000000020\"\t\t# \"spine\" base port 0 lid 4 lmc 0\n"
    "[34]\t\"S-0002c90000000010\"[33]\t\t# \"MF0;leaf # 1:X/U1\" lid 3 4xFDR10\n"
    "\n"
    "vendid=0x2c9\n"
    "devid=0x101b\n"
    "sysimgguid=0x2c90000000103\n"
    "caguid=0x2c90000000100\n"
    "Ca\t1 \"H-0002c90000000100\"\t\t# \"a mlx5_1 \"\n"
    "[1](2c90000000101) \t\"S-0002c90000000010\"[1]\t\t# lid 5 lmc 1 \"MF0;leaf # 1:X/U1\" lid 3 4xHDR\n"
    "\n"
    "caguid=0x2c90000000200\n"
    "Ca\t2 \"H-0002c90000000200\"\t\t# \"say \"hi\" \\ b\"\n"
    "[2](2c90000000202) \t\"S-0002c90000000010\"[2]\t\t# lid 8 lmc 0 \"MF0;leaf # 1:X/U1\" lid 3 2xHDR\n";

static void check_plain(const struct fabric *f)
{
    const struct node *sw = fabric_by_guid(f, SW1), *ca1 = fabric_by_guid(f, CA1),
                      *ca2 = fabric_by_guid(f, CA2);

    assert_int_equal(f->num_switches, 2);
    assert_int_equal(f->num_end_nodes, 2);
    assert_int_equal(f->num_links, 3);
    assert_linked(f, SW1, 1, CA1, 1);
    assert_linked(f, SW1, 2, CA2, 2);
    assert_linked(f, SW1, 33, SW2, 34);
    assert_int_equal(sw->vendor_id, 0x2c9);
    assert_int_equal(sw->device_id, 0xd2f0);
    assert_int_equal(sw->sys_guid, 0x2c90000000013);
    assert_int_equal(sw->num_ports, 36);
    assert_true(sw->enhanced_port0);
    assert_false(fabric_by_guid(f, SW2)->enhanced_port0);
    assert_int_equal(fabric_by_guid(f, SW2)->sys_guid, 0); // of the record, not left over from the last
    assert_int_equal(sw->lft_cap, 49152);
    assert_string_equal(fabric_desc(f, sw), "MF0;leaf # 1:X/U1");
    assert_string_equal(fabric_desc(f, ca1), "a mlx5_1 "); // the blank is part of the name
    assert_string_equal(fabric_desc(f, ca2), "say \"hi\" \\ b");
    assert_int_equal(port_of(f, SW1, 0)->guid, 0x2c90000000011);
    assert_int_equal(port_of(f, SW1, 0)->a.lid, 3);
    assert_int_equal(port_of(f, CA1, 1)->guid, 0x2c90000000101);
    assert_int_equal(port_of(f, CA1, 1)->a.lid, 5);
    assert_int_equal(port_of(f, CA1, 1)->a.lmc, 1);
    assert_int_equal(port_of(f, SW1, 1)->guid, 0);
}

static void test_plain(void **state)
{
    struct findings fi;
    const struct fabric *f = parse_ok(plain, &fi);

    assert_string_equal(reader_dialect(TEXT(plain)), "ibnetdiscover");
    check_plain(f);
    assert_findings(&fi, 0);
    assert_ptr_equal(fabric_port(f, f->sm_port), port_of(f, CA2, 2));
    // ids in the order of the records, not of the lines that first name a node
    assert_int_equal(f->node[0].guid, SW1);
    assert_int_equal(f->node[1].guid, SW2);
    assert_int_equal(f->node[2].guid, CA1);
    fabric_unref(f);
    findings_done(&fi);
}

static void test_port_attributes(void **state)
{
    struct findings fi;
    const struct fabric *f = parse_ok(plain, &fi);
    const struct port_attrs *a = &port_of(f, SW1, 1)->a;

    assert_int_equal(a->state, PORT_ACTIVE);
    assert_int_equal(a->phys_state, 5);
    assert_int_equal(a->width_active, 2);
    assert_int_equal(a->width_supported, 3);
    assert_int_equal(a->speed_active, 4);
    assert_int_equal(a->speed_ext_active, 4);
    assert_int_equal(a->speed_ext_supported, 7);
    assert_int_equal(a->mtu_cap, 5);
    assert_int_equal(a->vl_cap, 4);
    assert_int_equal(port_of(f, SW1, 2)->a.width_active, 16);
    a = &port_of(f, SW2, 34)->a;
    assert_true(a->fdr10);
    assert_int_equal(a->speed_active, 4);
    assert_int_equal(a->speed_ext_active, 0);
    a = &port_of(f, SW1, 3)->a; // without link: what the node's best port can do
    assert_int_equal(a->state, PORT_DOWN);
    assert_int_equal(a->width_active, 0);
    assert_int_equal(a->speed_ext_active, 0);
    assert_int_equal(a->speed_ext_supported, 7);
    assert_int_equal(port_of(f, CA2, 1)->guid, 0);
    fabric_unref(f);
    findings_done(&fi);
}

// Line ends and blanks as terminals and mailers leave them; the fabric is the same.
static void test_damage(void **state)
{
    char crlf[2 * sizeof(plain) + 200], bare[sizeof(plain)];
    size_t n = 0, m = 0;
    struct findings fi;

    n += (size_t)sprintf(crlf, "=~=~=~= PuTTY log 2024.01.01 00:00:00 =~=~=~=\r\n\r\r\n");
    for (const char *p = plain; *p; p++) {
        if (*p == '\n')
            crlf[n++] = '\r';
        crlf[n++] = *p;
    }
    n += (size_t)sprintf(crlf + n, "\rhost [ mgmt ] (config) # ");
    const struct fabric *f = parse_ok(crlf, &fi);
    check_plain(f);
    assert_findings(&fi, 2);
    assert_finding(&fi, "unknown-line", "t:1");
    assert_finding(&fi, "unknown-line", "t:33");
    fabric_unref(f);
    findings_done(&fi);

    for (const char *p = plain; *p; p++)
        if (*p != '\t')
            bare[m++] = *p;
    bare[m] = '\0';
    f = parse_ok(bare, &fi);
    check_plain(f);
    assert_findings(&fi, 0);
    fabric_unref(f);
    findings_done(&fi);

    // a lone CR ends a line without counting one
    f = parse_ok(
        "Switch 2 \"S-0000000000000001\"# \"a\"\r[1]\"S-0000000000000002\"[1]# \"b\" lid 1 "
        "4xEDR\n[9]\"S-0000000000000002\"[2]# \"b\" lid 1 4xEDR\n"
        "Switch 2 \"S-0000000000000002\"# \"b\"\r\n[1]\"S-0000000000000001\"[1]# \"a\" lid 2 4xEDR\r",
        &fi);
    assert_int_equal(f->num_links, 1);
    assert_finding(&fi, "bad-port", "t:2");
    fabric_unref(f);
    findings_done(&fi);
}

static void test_labels(void **state)
{
    struct findings fi;
    const struct fabric *f =
        parse_ok("Chassis 1 (guid 0x8f104004050c6)\n"
                 "Chassis 1 Line 1\n"
                 "Switch 24 \"S-0000000000000001\" # \"line\" base port 0 lid 1 lmc 0\n"
                 "[14][ext 2]\t\"S-0000000000000002\"[24][ext 15]\t\t# \"l2\" lid 2 4xSDR\n"
                 "[1](1/1/1) \"H-0000000000000003\"[1](0000000000000003) # \"h\" lid 3 4xNDR\n"
                 "\nNon-Chassis Nodes\n\n"
                 "Switch 24 \"S-0000000000000002\" # \"l2\" base port 0 lid 2 lmc 0\n"
                 "[24][ext 15]\t\"S-0000000000000001\"[14][ext 2]\t\t# \"line\" lid 1 4xSDR\n"
                 "Ca 1 \"H-0000000000000003\" # \"h\"\n"
                 "[1](1)(0000000000000004) \"S-0000000000000001\"[1] # lid 3 lmc 0 \"line\" lid 1 4xNDR\n",
                 &fi);
    assert_findings(&fi, 0);
    assert_int_equal(f->num_links, 2);
    assert_string_equal(fabric_label(f, port_of(f, 1, 14)), "ext 2");
    assert_string_equal(fabric_label(f, port_of(f, 2, 24)), "ext 15");
    assert_string_equal(fabric_label(f, port_of(f, 1, 1)), "1/1/1");
    assert_string_equal(fabric_label(f, port_of(f, 3, 1)), "1");
    assert_int_equal(port_of(f, 3, 1)->guid, 4);
    fabric_unref(f);
    findings_done(&fi);
}

static void test_router_and_suffix(void **state)
{
    struct findings fi;
    const struct fabric *f = parse_ok("rtguid=0xb8e924030000b928\n"
                                      "Rt      8 \"R-b8e924030000b928\"          # \"MF0;Q3400/U2/RT\"\n"
                                      "[2](b8e924030000b929)   \"S-b8e924030000b921\"[149]               # "
                                      "lid 9 lmc 0 \"MF0;Q3400/U2\" lid 8 1xXDR s=4 w=1 v=2 e=16\n",
                                      &fi);
    assert_int_equal(fabric_by_guid(f, 0xb8e924030000b928)->type, NODE_ROUTER);
    const struct port_attrs *a = &port_of(f, 0xb8e924030000b928, 2)->a;
    assert_int_equal(a->speed_ext_active, 16);
    assert_int_equal(a->width_active, 1);
    assert_int_equal(a->vl_cap, 2);
    assert_int_equal(a->lid, 9);
    // a node that is only named is made from what names it
    assert_findings(&fi, 1);
    assert_finding(&fi, "node-without-record", "t:3");
    const struct node *sw = fabric_by_guid(f, 0xb8e924030000b921);
    assert_int_equal(sw->type, NODE_SWITCH);
    assert_int_equal(sw->num_ports, 149);
    assert_string_equal(fabric_desc(f, sw), "MF0;Q3400/U2");
    assert_int_equal(port_of(f, 0xb8e924030000b921, 0)->a.lid, 8);
    assert_int_equal(port_of(f, 0xb8e924030000b921, 149)->a.speed_ext_active, 16);
    fabric_unref(f);
    findings_done(&fi);
}

static void test_contradictions(void **state)
{
    struct findings fi;
    const struct fabric *f =
        parse_ok("Switch 4 \"S-0000000000000001\" # \"a\" base port 0 lid 1 lmc 0\n"
                 "[1] \"S-0000000000000002\"[1] # \"b\" lid 2 4xEDR\n"
                 "[2] \"S-0000000000000002\"[2] # \"b\" lid 2 4xEDR\n" // the far port has no line
                 "[3] \"S-0000000000000002\"[1] # \"b\" lid 9 4xEDR\n" // taken, and another LID
                 "[4] \"S-0000000000000002\"[8] # \"b\" lid 2 4xEDR\n" // no such port
                 "[4] \"S-0000000000000002\"[3] # \"b\" lid 2 4xEDR\n" // twice the same port
                 "[5] \"S-0000000000000002\"[3] # \"b\" lid 2 4xEDR\n" // nor does this one have one
                 "Switch 4 \"S-0000000000000002\" # \"b\" base port 0 lid 2 lmc 0\n"
                 "[1] \"S-0000000000000001\"[1] # \"a\" lid 1 4xHDR\n" // rate
                 "[3] \"S-0000000000000002\"[4] # \"b\" lid 2 4xHDR\n" // cabled to itself
                 "Switch 4 \"S-0000000000000001\" # \"a again\" base port 0 lid 5 lmc 0\n"
                 "[4] \"S-0000000000000002\"[4] # \"b\" lid 2 4xEDR\n"
                 "[1 \"S-0000000000000002\"[1]\n"
                 "Switch 900 \"S-0000000000000004\"\n"
                 "Ca 1 \"S-0000000000000005\"\n",
                 &fi);
    assert_int_equal(f->num_switches, 2);
    assert_int_equal(f->num_links, 2);
    assert_linked(f, 1, 1, 2, 1);
    assert_linked(f, 1, 2, 2, 2);
    assert_int_equal(port_of(f, 1, 3)->excluded, PORT_EXCLUDED_ONE_SIDED);
    assert_int_equal(port_of(f, 1, 4)->excluded, PORT_EXCLUDED_ONE_SIDED);
    assert_int_equal(port_of(f, 2, 3)->excluded, PORT_EXCLUDED_SELF_LINK);
    assert_finding(&fi, "rate-disagrees", "t:2");
    assert_finding(&fi, "one-sided-link", "t:3");
    assert_finding(&fi, "link-disagrees", "t:4");
    assert_finding(&fi, "lid-disagrees", "t:4");
    assert_finding(&fi, "bad-port", "t:5");
    assert_finding(&fi, "duplicate-port", "t:6");
    assert_finding(&fi, "bad-port", "t:7");
    assert_finding(&fi, "one-sided-link", "t:10");
    assert_finding(&fi, "duplicate-record", "t:11");
    assert_finding(&fi, "bad-record", "t:14");
    assert_finding(&fi, "bad-record", "t:15");
    assert_null(finding_at(&fi, "bad-line", "t:13")); // of a record that is skipped whole
    fabric_unref(f);
    findings_done(&fi);
}

static void test_odd_lines(void **state)
{
    struct findings fi;
    const struct fabric *f = parse_ok("[1] \"S-0000000000000001\"[1]\n"
                                      "switchguid=0x9(9)\n"
                                      "Switch 4 \"S-0000000000000001\" # \"a\" base port 0 lid 65535 lmc 0\n"
                                      "[1] \"H-0000000000000002\"[1](2) # \"b\" lid 65535 4x ???\n"
                                      "[2] \"what\"[1] # \"b\" lid 2 4xEDR\n"
                                      "[3] \"H-0000000000000003\"[1](3) # \"c\" lid 7 3xEDR\n"
                                      "[4] \"H-0000000000000004\"[1](4) # \"d\" liid 7\n"
                                      "[0] \"H-0000000000000004\"[1](4) # \"d\" lid 7 4xEDR\n"
                                      "is this a line?\n",
                                      &fi);
    assert_int_equal(f->num_links, 3);
    assert_int_equal(port_of(f, 1, 0)->a.lid, 0);
    assert_int_equal(port_of(f, 2, 1)->a.lid, 0);
    assert_int_equal(port_of(f, 1, 1)->a.width_active, 2);
    assert_int_equal(port_of(f, 1, 1)->a.speed_active, 0);
    assert_int_equal(port_of(f, 1, 3)->a.width_active, 0);
    assert_int_equal(port_of(f, 1, 3)->a.speed_ext_active, 2);
    assert_finding(&fi, "bad-line", "t:1");
    assert_finding(&fi, "guid-mismatch", "t:3");
    assert_finding(&fi, "unknown-speed", "t:4");
    assert_finding(&fi, "bad-line", "t:5");
    assert_finding(&fi, "unknown-speed", "t:6");
    assert_finding(&fi, "bad-line", "t:7");
    assert_finding(&fi, "bad-line", "t:8");
    assert_finding(&fi, "unknown-line", "t:9");
    assert_finding(&fi, "lid-unset", "t");
    assert_string_equal(finding_at(&fi, "lid-unset", "t")->text,
                        "LID 65535 on 2 ports: not yet configured; taken as none");
    fabric_unref(f);
    findings_done(&fi);
}

static void test_one_node(void **state)
{
    struct findings fi;
    const struct fabric *f = parse_ok("caguid=0x5\nCa\t1 \"H-0000000000000005\"\t\t# \"alone HCA-1\"\n", &fi);
    assert_int_equal(f->num_end_nodes, 1);
    assert_int_equal(f->num_links, 0);
    fabric_unref(f);
    findings_done(&fi);
}

static void test_refused(void **state)
{
    static const char *const text[] = {"",
                                       "\n",
                                       "hello\nworld\n",
                                       "Switch",
                                       "Ca 1",
                                       "Switch 4 \"S-",
                                       "[1] \"a\"[1]\n",
                                       "\r\r\r\r",
                                       "Switch\t: 0x0002c90000000010 ports 36 \"x\"\n"};
    for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
        struct findings fi = {0};
        struct err e = {0};
        assert_null(reader_dialect(text[i], strlen(text[i])));
        assert_null(reader_parse(text[i], strlen(text[i]), "t", &fi, &e));
        assert_int_equal(e.code, -22);
        assert_string_equal(e.where, "t");
        assert_non_null(strstr(e.text, "no node record in"));
        findings_done(&fi);
    }
    struct err e = {0};
    assert_null(reader_load("/nonexistent/x.txt", NULL, &e));
    assert_int_equal(e.code, -2);
    // a record, but none that can be used
    struct findings fi = {0};
    assert_null(parse_len(TEXT("Switch 0 \"S-0000000000000001\"\n"), &fi));
    assert_finding(&fi, "bad-record", "t:1");
    findings_done(&fi);
}

// What repeats a million times is told a hundred times and then counted.
static void test_findings_bounded(void **state)
{
    size_t n = 0, lines = 20000;
    char *text = malloc(lines * 16 + 100);
    struct findings fi;
    n += (size_t)sprintf(text, "Ca 1 \"H-0000000000000005\" # \"x\"\n");
    for (size_t i = 0; i < lines; i++)
        n += (size_t)sprintf(text + n, "noise %zu\n", i);
    const struct fabric *f = parse_ok(text, &fi);
    assert_int_equal(count_code(&fi, "unknown-line"), 101);
    assert_int_equal(finding_at(&fi, "unknown-line", "t")->count, lines - 100);
    assert_int_equal(fi.total, lines);
    fabric_unref(f);
    findings_done(&fi);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_port_attributes),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_router_and_suffix),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_odd_lines),
        cmocka_unit_test(test_one_node),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_findings_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
