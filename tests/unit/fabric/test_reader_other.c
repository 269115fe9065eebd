// SPDX-License-Identifier: Apache-2.0
// ibsim's .net, ports reports, .lst; mutations of all.
#include "test_reader_help.h"

#include <unistd.h>

#include "lib/rng.h"

// The GUIDs and names were compared with what ibnetdiscover prints on ibsim 0.10 for this file.
static const char net[] =
    "# made by hand\n"
    "width=2\n"
    "speed=7\n"
    "extspeed=7\n"
    "caguid=0x0002c90300000000\n"
    "\n"
    "Ca\t1 \"gpu-1\"\t\t# \"gpu 1\"\n"
    "[1]\t\"leaf-1\"[1]\n"
    "\n"
    "Hca\t2 \"gpu-2\"\t\t# \"gpu # 2 x\"\n"
    "[2]\t\"leaf-1\"[2]\n"
    "\n"
    "switchguid=0x0008f10400400000\n"
    "Switch\t8 \"leaf-1\"\t\t# \"leaf 1\" enhanced port 0\n"
    "[1]\t\"gpu-1\"[1]\n"
    "[2]\t\"gpu-2\"[2] s=3 e=3\n"
    "[3]\t\"S-0002c900000000aa\"[1]\n"
    "\n"
    "Switch\t8 \"S-0002c900000000aa\"\t\n"
    "[1]\t\"leaf-1\"[3]\n"
    "[2] \"H-0002c900000000bb\"[1](2c900000000cc) # \"foo\" lid 99 4xSDR\n"
    "\n"
    "Ca 2 \"H-0002c900000000bb\" # \"CA with guid\" \n"
    "[1](2c900000000cc) \"S-0002c900000000aa\"[2]   # lid 77 lmc 0 \"zzz\" lid 44 4xQDR\n";

static void test_ibsim(void **state)
{
    struct findings fi;
    const struct fabric *f = parse_ok(net, &fi);
    const uint64_t leaf = 0x0008f10400400000, gpu2 = 0x0002c90300000002;

    assert_string_equal(reader_dialect(TEXT(net)), "ibsim");
    assert_findings(&fi, 1);
    assert_finding(&fi, "lid-disagrees", "t:21");
    assert_int_equal(f->num_switches, 2);
    assert_int_equal(f->num_end_nodes, 3);
    assert_linked(f, 0x0002c90300000000, 1, leaf, 1);
    assert_linked(f, gpu2, 2, leaf, 2);
    assert_linked(f, leaf + 1, 1, leaf, 3);
    assert_linked(f, 0x0002c90300000005, 1, leaf + 1, 2);
    assert_string_equal(fabric_desc(f, fabric_by_guid(f, gpu2)), "gpu # 2 x");
    assert_string_equal(fabric_desc(f, fabric_by_guid(f, leaf + 1)), "S-0002c900000000aa");
    assert_int_equal(fabric_by_guid(f, gpu2)->sys_guid, gpu2);
    assert_int_equal(port_of(f, gpu2, 2)->guid, gpu2 + 2); // node GUID + number, whatever the file has
    assert_int_equal(port_of(f, 0x0002c90300000005, 1)->guid, 0x0002c90300000006);
    assert_int_equal(port_of(f, 0x0002c90300000005, 1)->a.lid, 77);
    assert_true(fabric_by_guid(f, leaf)->enhanced_port0);
    assert_false(fabric_by_guid(f, leaf + 1)->enhanced_port0);

    const struct port_attrs *a = &port_of(f, leaf, 1)->a;
    assert_int_equal(a->state, PORT_INIT);
    assert_int_equal(a->width_active, 2);
    assert_int_equal(a->speed_active, 4);
    assert_int_equal(a->speed_ext_active, 4);
    a = &port_of(f, leaf, 2)->a; // the best that both ends enable
    assert_int_equal(a->speed_active, 2);
    assert_int_equal(a->speed_ext_active, 2);
    assert_int_equal(a->speed_ext_enabled, 3);
    assert_int_equal(port_of(f, gpu2, 2)->a.speed_ext_enabled, 7);
    assert_ptr_equal(fabric_port(f, f->sm_port), port_of(f, 0x0002c90300000000, 1));
    fabric_unref(f);
    findings_done(&fi);
}

static void test_ibsim_odd(void **state)
{
    struct findings fi;
    const struct fabric *f = parse_ok("module=\"m\"\n"
                                      "rtguid=0x9000\n"
                                      "Switch 4 \"s\" # no quotes here base port 0 lid 7 lmc 0\n" // 3
                                      "[1] \"h\"\n"
                                      "[2] \"n#s\"[1]\n"
                                      "[3] \"nobody\"[1]\n" // 6
                                      "\n"
                                      "[4] \"r\"[2]\n" // 8: behind the record
                                      "caguid+0x100\n"
                                      "Ca 2 \"h\"\n"
                                      "[1] \"s\"[1]\n"
                                      "@[2] \"alias\"\n" // 12
                                      "Rt 2 \"r\"\n"
                                      "module=\"n\"\n"
                                      "Switch 4 \"s\"\n"
                                      "[1] \"m#s\"[2]\n"
                                      "do Unlink \"s\"[1]\n" // 17
                                      "width=77\n"
                                      "include \"other.net\"\n" // 19
                                      "pdebugging\n",
                                      &fi);
    assert_int_equal(f->num_switches, 2);
    assert_int_equal(f->num_end_nodes, 2);
    assert_linked(f, 0x200000, 1, 0x100100, 1); // ibsim counts from there
    assert_linked(f, 0x200000, 2, 0x200001, 1);
    assert_linked(f, 0x200000, 4, 0x9000, 2);
    assert_string_equal(fabric_desc(f, fabric_by_guid(f, 0x200000)), "no quotes here");
    assert_string_equal(fabric_desc(f, fabric_by_guid(f, 0x200001)), "n#s");
    assert_int_equal(port_of(f, 0x200000, 0)->a.lid, 7);
    assert_int_equal(port_of(f, 0x200000, 1)->a.speed_active, 1);
    assert_finding(&fi, "unknown-node", "t:6");
    assert_finding(&fi, "port-after-record", "t:8");
    assert_finding(&fi, "one-sided-link", "t:8");
    assert_finding(&fi, "alias-ignored", "t:12");
    assert_finding(&fi, "command-ignored", "t:17");
    assert_finding(&fi, "unknown-line", "t:18");
    assert_finding(&fi, "include-refused", "t:19");
    assert_finding(&fi, "unknown-line", "t:20");
    assert_findings(&fi, 8);
    fabric_unref(f);
    findings_done(&fi);
}

static void put(const char *dir, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *o = fopen(path, "w");
    assert_non_null(o);
    fputs(text, o);
    fclose(o);
}

static void test_include(void **state)
{
    char dir[200], path[300], where[320];
    struct findings fi = {0};
    struct err e = {0};
    snprintf(dir, sizeof(dir), "%s/weft-reader-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(dir));
    put(dir, "top.net",
        "include \"part.net\"\n"
        "include \"/etc/passwd\"\n"
        "include \"../x\"\n"
        "include \"a/../../x\"\n"
        "include \"none.net\"\n"
        "include \"link.net\"\n"
        "include \"top.net\"\n"
        "Ca 1 \"b\"\n"
        "[1] \"a\"[1]\n");
    put(dir, "part.net", "Ca 1 \"a\"\n[1] \"b\"[1]\noops\n");
    snprintf(path, sizeof(path), "%s/link.net", dir);
    assert_int_equal(symlink("part.net", path), 0);
    snprintf(path, sizeof(path), "%s/top.net", dir);
    const struct fabric *f = reader_load(path, &fi, &e);
    assert_non_null(f);
    assert_int_equal(f->num_links, 1);
    snprintf(where, sizeof(where), "%s/part.net:3", dir);
    assert_finding(&fi, "unknown-line", where); // in the file it stands in
    for (int line = 2; line <= 4; line++) {
        snprintf(where, sizeof(where), "%s/top.net:%d", dir, line);
        assert_finding(&fi, "include-refused", where);
    }
    for (int line = 5; line <= 6; line++) {
        snprintf(where, sizeof(where), "%s/top.net:%d", dir, line);
        assert_finding(&fi, "include-failed", where);
    }
    snprintf(where, sizeof(where), "%s/top.net:7", dir); // itself: ends at the depth allowed
    assert_finding(&fi, "include-refused", where);
    fabric_unref(f);
    findings_done(&fi);
    static const char *const name[] = {"top.net", "part.net", "link.net"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, name[i]);
        unlink(path);
    }
    rmdir(dir);
}

static const char report[] =
    "CA   134  1 0x0000000000000100 4x EDR - SW  1719 10 0x0000000000000010 ( 'o1 HCA-1' - 'leaf' )\n"
    "SW  1719 10 0x0000000000000010 4x EDR - CA   134  1 0x0000000000000100 ( 'leaf' - 'o1 HCA-1' )\n"
    "SW  1719  1 0x0000000000000010 4x FDR10 - SW  1516  1 0x0000000000000020 ( 'leaf' - 'it's a - b ' )\n"
    "SW  1719 37 0x0000000000000010 4x ???                                    'leaf'\n"
    "SW   479 22 0x0000000000000030 4x QDR                                   Infiniscale-IV Mellanox "
    "Technologies\n"
    "SW   479 22 0x0000000000000030 4x\n"
    "\n";

static void test_ports_report(void **state)
{
    struct findings fi;
    const struct fabric *f = parse_ok(report, &fi);

    assert_string_equal(reader_dialect(TEXT(report)), "ports-report");
    assert_int_equal(f->num_switches, 3);
    assert_int_equal(f->num_end_nodes, 1);
    assert_int_equal(f->num_links, 2);
    assert_linked(f, 0x10, 10, 0x100, 1);
    assert_linked(f, 0x10, 1, 0x20, 1);
    assert_int_equal(fabric_by_guid(f, 0x10)->num_ports, 37);
    assert_string_equal(fabric_desc(f, fabric_by_guid(f, 0x20)), "it's a - b ");
    assert_string_equal(fabric_desc(f, fabric_by_guid(f, 0x30)), "Infiniscale-IV Mellanox Technologies");
    assert_int_equal(port_of(f, 0x10, 0)->a.lid, 1719);
    assert_int_equal(port_of(f, 0x20, 0)->a.lid, 1516);
    assert_int_equal(port_of(f, 0x100, 1)->a.lid, 134);
    assert_int_equal(port_of(f, 0x100, 1)->guid, 0x100);
    assert_true(port_of(f, 0x20, 1)->a.fdr10);
    assert_int_equal(port_of(f, 0x10, 37)->a.state, PORT_DOWN);
    assert_int_equal(port_of(f, 0x30, 22)->a.speed_active, 0); // what an unlinked port prints means nothing
    assert_finding(&fi, "one-sided-link", "t:3");
    assert_finding(&fi, "duplicate-link", "t:6");
    fabric_unref(f);
    findings_done(&fi);
}

#define LST_CA                                                                                               \
    "{ CA Ports:02 SystemGUID:0000000000000103 NodeGUID:0000000000000100 PortGUID:0000000000000102 "         \
    "VenID:000002C9 DevID:101B Rev:00000001 {a {x} mlx5_0} LID:00b5 PN:02 } "
#define LST_SW                                                                                               \
    "{ SW-SM Ports:41 SystemGUID:0000000000000010 NodeGUID:0000000000000010 PortGUID:0000000000000011 "      \
    "VenID:000002C9 DevID:A87C0000 Rev:000000A0 {leaf} LID:0002 PN:0c } "
#define LST_SW2                                                                                              \
    "{ SW Ports:08 SystemGUID:0000000000000020 NodeGUID:0000000000000020 PortGUID:0000000000000020 "         \
    "VenID:000002C9 DevID:0000 Rev:00000000 {spine} LID:0003 PN:01 } "
#define LST_SWB                                                                                              \
    "{ SW-SM Ports:41 SystemGUID:0000000000000010 NodeGUID:0000000000000010 PortGUID:0000000000000011 "      \
    "VenID:000002C9 DevID:A87C0000 Rev:000000A0 {leaf} LID:0002 PN:41 } "
static const char lst[] = "# This database file was automatically generated by IBDIAG\n"
                          "\n" LST_CA LST_SW "PHY=4x LOG=ACT SPD=100\n" // 3
    LST_SW LST_CA "PHY=4x LOG=ACT SPD=100\n"                            // the same from the other end
    LST_SWB LST_SW2 "PHY=12x LOG=INI SPD=FDR10\n"                       // 5
    LST_SWB LST_SW2 "PHY=12x LOG=INI SPD=FDR10\n"                       // once too often
    LST_SWB LST_CA "PHY=4x LOG=ACT SPD=77\n"                            // taken twice, unknown speed
                          "{ XX } \n";

static void test_lst(void **state)
{
    struct findings fi;
    const struct fabric *f = parse_ok(lst, &fi);

    assert_string_equal(reader_dialect(TEXT(lst)), "lst");
    assert_int_equal(f->num_switches, 2);
    assert_int_equal(f->num_end_nodes, 1);
    assert_int_equal(f->num_links, 2);
    assert_linked(f, 0x100, 2, 0x10, 12); // numbers are hexadecimal
    assert_linked(f, 0x10, 65, 0x20, 1);
    assert_int_equal(fabric_by_guid(f, 0x10)->num_ports, 65);
    assert_int_equal(fabric_by_guid(f, 0x10)->device_id, 0xa87c);
    assert_int_equal(fabric_by_guid(f, 0x100)->device_id, 0x101b);
    assert_string_equal(fabric_desc(f, fabric_by_guid(f, 0x100)), "a {x} mlx5_0");
    assert_int_equal(port_of(f, 0x100, 2)->a.lid, 0xb5);
    assert_int_equal(port_of(f, 0x100, 2)->guid, 0x102);
    assert_int_equal(port_of(f, 0x10, 0)->guid, 0x11);
    assert_int_equal(port_of(f, 0x10, 12)->a.speed_ext_active, 8);
    assert_int_equal(port_of(f, 0x20, 1)->a.state, PORT_INIT);
    assert_int_equal(port_of(f, 0x20, 1)->a.width_active, 8);
    assert_true(port_of(f, 0x20, 1)->a.fdr10);
    assert_ptr_equal(fabric_port(f, f->sm_port), port_of(f, 0x10, 0));
    assert_null(finding_at(&fi, "duplicate-link", "t:4"));
    assert_finding(&fi, "duplicate-link", "t:6");
    assert_finding(&fi, "unknown-speed", "t:7");
    assert_finding(&fi, "duplicate-port", "t:7");
    assert_finding(&fi, "bad-line", "t:8");
    fabric_unref(f);
    findings_done(&fi);
}

static const char ibnd[] =
    "# Initiated from node 0000000000000100 port 0000000000000101\n"
    "vendid=0x2c9\ndevid=0xd2f0\nsysimgguid=0x10\nswitchguid=0x10(11)\n"
    "Switch\t36 \"S-0000000000000010\"\t\t# \"a # b\" enhanced port 0 lid 3 lmc 0\n"
    "[1](1/1/1)\t\"H-0000000000000100\"[1](101) \t\t# \"h \" lid 5 4xHDR s=4 w=2 v=4 e=4\n"
    "[2][ext 7]\t\"S-0000000000000020\"[3]\t\t# \"z\" lid 4 4xFDR10\n\n"
    "caguid=0x100\n"
    "Ca\t2 \"H-0000000000000100\"\t\t# \"h \"\n"
    "[1](1)(101) \t\"S-0000000000000010\"[1]\t\t# lid 5 lmc 0 \"a # b\" lid 3 4xHDR\n";

// Whatever bytes come: a fabric or an error.
static void test_mutations(void **state)
{
    static const struct {
        const char *text;
        size_t len;
    } fixture[] = {{TEXT(net)}, {TEXT(report)}, {TEXT(lst)}, {TEXT(ibnd)}};
    static const char *const token[] = {"\"",
                                        "[1]",
                                        "(",
                                        "#",
                                        "\n",
                                        "lid 65535",
                                        "0x",
                                        "Switch 254 \"S-0000000000000010\"",
                                        "Ca",
                                        "{",
                                        "}",
                                        "=",
                                        "4x",
                                        "\r",
                                        "module=\"\"\n",
                                        "999999999999999999999"};
    struct rng r;
    rng_init(&r, 1);
    for (int round = 0; round < 2000; round++) {
        size_t which = rng_below(&r, 4), len = fixture[which].len, k = 1 + rng_below(&r, 8);
        char *text = malloc(len + 8 * 64);
        memcpy(text, fixture[which].text, len);
        while (k--) {
            size_t at = rng_below(&r, (uint32_t)len + 1);
            const char *t = token[rng_below(&r, 16)];
            size_t n = strlen(t), cut = rng_below(&r, 40);
            switch (rng_below(&r, 3)) {
            case 0: // one byte
                if (at < len)
                    text[at] = (char)rng_below(&r, 256);
                break;
            case 1: // more
                memmove(text + at + n, text + at, len - at);
                memcpy(text + at, t, n);
                len += n;
                break;
            default: // less
                cut = cut < len - at ? cut : len - at;
                memmove(text + at, text + at + cut, len - at - cut);
                len -= cut;
                break;
            }
        }
        struct findings fi = {0};
        fabric_unref(parse_len(text, len, &fi));
        findings_done(&fi);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ibsim),   cmocka_unit_test(test_ibsim_odd),
        cmocka_unit_test(test_include), cmocka_unit_test(test_ports_report),
        cmocka_unit_test(test_lst),     cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
