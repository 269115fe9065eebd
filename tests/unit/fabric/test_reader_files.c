// SPDX-License-Identifier: Apache-2.0
// Dumps of real fabrics, when they lie beside the sources: what each holds, by independent count.
#include "test_reader_help.h"

struct expect {
    const char *file;
    unsigned switches, ends, links;
    unsigned findings;  // of the reader; those that name roles and rails are the builder's
    const char *speeds; // "FDR10 47 QDR 145"
};

static const struct expect files[] = {
    {"ibnetdiscover/hdr-superpod-compute-4341ca.txt", 666, 4341, 12852, 0, "HDR 12852"},
    // the log's banner and last prompt; 631 ports without LID
    {"ibnetdiscover/hdr-director-cs8500-2328ca-puttylog-crlf.txt", 400, 2328, 8723, 3, "EDR 4 HDR 8719"},
    {"ibnetdiscover/ndr-dgx-rail-582ca.txt", 40, 582, 1114, 0, "NDR 1114"},
    {"ibnetdiscover/ndr-rail8-256ca-ibdiagnet-port-labels.txt", 9, 263, 271, 0, "NDR 271"},
    {"ibnetdiscover/qdr-fdr10-sx6036-144ca.txt", 8, 144, 192, 0, "QDR 145 FDR10 47"},
    {"ibnetdiscover/ddr-qdr-voltaire4036-89ca-generic-names.txt", 11, 89, 159, 0, "DDR 23 QDR 136"},
    {"ibnetdiscover/sdr-2ca.txt", 1, 2, 2, 0, "SDR 2"},
    {"ibnetdiscover/sdr-voltaire-manpage-4ca.txt", 2, 4, 7, 2, "SDR 7"}, // two links print 4x and 1x
    // one aggregation node is only named by its switch
    {"ibnetdiscover/hdr-director-faked-suffix-10ca.txt", 8, 11, 18, 1, "HDR 18"},
    {"ibnetdiscover/edr-synthetic-k4n3-fattree-128ca.txt", 80, 128, 384, 0, "EDR 384"},
    {"ibnetdiscover/ndr-single-ca-no-links.txt", 0, 1, 0, 0, ""},
    {"ibnetdiscover/sx6036-144ca-full.txt", 8, 144, 192, 0, "QDR 145 FDR10 47"},
    {"ibnetdiscover/sx6036-144ca-3-ports-unlinked.txt", 8, 142, 190, 0, "QDR 143 FDR10 47"},
    // one adapter has both ports cabled, which a ports report does not say
    {"ibnetdiscover/sx6036-144ca-ports-report.txt", 8, 145, 192, 0, "QDR 145 FDR10 47"},
    {"ibnetdiscover/ports-report-test.txt", 4, 3, 4, 1, "EDR 4"},
    {"ibnetdiscover/ports-report-test3.txt", 1, 0, 0, 0, ""},
    {"ibnetdiscover/ibsim-net.1.net", 1, 2, 2, 0, "SDR 2"},
    {"ibnetdiscover/ibsim-net.2sw2path.net", 2, 2, 4, 0, "SDR 4"},
    {"ibnetdiscover/ibsim-net.2sw2path4hca.net", 2, 4, 6, 0, "SDR 6"},
    {"ibnetdiscover/ibsim-net.2sw2path4hca2port.net", 2, 2, 6, 0, "SDR 6"},
    {"ibnetdiscover/ibsim-net.net", 2, 2, 4, 0, "SDR 4"},
    {"lft/ndr-rail8-256ca.ibdiagnet2.lst", 9, 263, 271, 0, "NDR 271"},
    {"ibdiagnet/ndr-rail8-256ca/ibdiagnet2.lst", 9, 263, 271, 0, "NDR 271"},
    {"ibdiagnet/ndr-rail8-256ca/ibdiagnet2.ibnetdiscover", 9, 263, 271, 0, "NDR 271"},
    {"lft/ibdm-sample-subnet.lst", 62, 3, 172, 344, ""}, // a line a link end, none with its speed
};

static const char *const speed_name[] = {"SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR"};

static int speed_of(const struct port_attrs *a)
{
    if (a->speed_ext_active)
        return 4 + __builtin_ctz(a->speed_ext_active);
    return a->fdr10 ? 3 : a->speed_active ? __builtin_ctz(a->speed_active) : -1;
}

static void speeds_text(const struct fabric *f, char *buf)
{
    unsigned n[9] = {0};
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        int s = speed_of(&p->a);
        if (port_valid(p->peer) && p->peer.i > i && s >= 0)
            n[s]++;
    }
    const char *sep = "";
    *buf = '\0';
    for (int s = 0; s < 9; s++) {
        if (!n[s])
            continue;
        buf += sprintf(buf, "%s%s %u", sep, speed_name[s], n[s]);
        sep = " ";
    }
}

static unsigned reader_findings(const struct findings *fi, const char *path)
{
    unsigned n = 0;
    for (size_t i = 0; i < fi->n; i++)
        if (strncmp(fi->item[i].where, path, strlen(path)) == 0)
            n += fi->item[i].count;
    return n;
}

static void test_files(void **state)
{
    char dir[400], path[600], speeds[200];
    if (!shared_dir(dir, sizeof(dir)))
        skip();
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        const struct expect *x = &files[i];
        struct findings fi = {0};
        struct err e = {0};
        snprintf(path, sizeof(path), "%s/%s", dir, x->file);
        print_message("# %s\n", x->file);
        const struct fabric *f = reader_load(path, &fi, &e);
        if (!f)
            fail_msg("%s: %s", x->file, e.text);
        assert_int_equal(f->num_switches, x->switches);
        assert_int_equal(f->num_end_nodes, x->ends);
        assert_int_equal(f->num_links, x->links);
        speeds_text(f, speeds);
        assert_string_equal(speeds, x->speeds);
        if (reader_findings(&fi, path) != x->findings)
            findings_dump(&fi);
        assert_int_equal(reader_findings(&fi, path), x->findings);
        fabric_unref(f);
        findings_done(&fi);
    }
}

// Everything there loads, or is said to be no fabric: reports, lists, tables.
static void test_rare_forms(void **state)
{
    char dir[400], path[600];
    struct findings fi = {0};
    struct err e = {0};
    if (!shared_dir(dir, sizeof(dir)))
        skip();
    snprintf(path, sizeof(path), "%s/ibnetdiscover/rare-line-forms.txt", dir);
    const struct fabric *f = reader_load(path, &fi, &e);
    assert_non_null(f);
    assert_string_equal(fabric_label(f, port_of(f, 0x0008f104003f58ef, 14)), "ext 2");
    assert_string_equal(fabric_desc(f, fabric_by_guid(f, 0xb8e924030000b928)),
                        "MF0;cobra-2132:Q3400_RA/U2/RT");
    assert_string_equal(fabric_desc(f, fabric_by_guid(f, 0x0008f10500200134)), "Voltaire 4036 # v4036");
    fabric_unref(f);
    findings_done(&fi);

    static const char *const other[] = {"lft/sx6036-144ca.ibroute.txt", "INDEX.md",
                                        "slurm/sharp_cmd-topology-torsets.conf",
                                        "ibdiagnet/ndr-rail8-256ca/ibdiagnet2.db_csv"};
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, other[i]);
        assert_null(reader_load(path, NULL, &e));
        assert_non_null(strstr(e.text, "no node record"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files), cmocka_unit_test(test_rare_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
