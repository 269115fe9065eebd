// SPDX-License-Identifier: Apache-2.0
// Cables and modules out of ibdiagnet's files: both forms, what is odd in them, what is wrong.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "telemetry/module.h"

static struct buf told;

static void tell(void *arg, unsigned line, const char *text)
{
    (void)arg;
    buf_printf(&told, "%u: %s\n", line, text);
}

static struct tele_modules *read_text(const char *text, size_t n, struct err *e)
{
    char path[300];
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof(path), "%s/weft-module-XXXXXX", tmp ? tmp : "/tmp");
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, n) == (ssize_t)n);
    close(fd);
    buf_clear(&told);
    struct tele_modules *m = tele_modules_read(path, tell, NULL, e);
    unlink(path);
    return m;
}

static void cables(void **state)
{
    static const char text[] = "# made by hand\r\n"
                               "-----\n"
                               "Port=1 Lid=0x0018 GUID=0x00000000000000aa Port Name=S/P1/1/1\n"
                               "-----\n"
                               "Vendor: Someone\n"
                               "PN: XYZ-800\n"
                               "SN: S0001\n"
                               "Rev: A1\n"
                               "Length: NA\n"
                               "Type: 850 nm VCSEL\n"
                               "Temperature: 58C\n"
                               "RX1 Power: 0.871 mW, -0.600 dBm\n"
                               "RX2 Power: -999.999 mW, 0.000 dBm\n"
                               "TX1 Power: 1.000 mW, 0.000 dBm\n"
                               "RX Power Alarm and Warning: 0x0000\n"
                               "Port=2 Lid=0x0018 GUID=0x00000000000000aa Port Name=S/P1/1/2\n"
                               "Vendor: Copper\n"
                               "Length: 2 m\n"
                               "Temperature: 0C\n"
                               "Port=255 Lid=1 GUID=0xaa\n"
                               "Port=3 Lid=1\n"
                               "Port=1 Lid=0x18 GUID=0xaa\n"
                               "SN: other\n";
    struct err e = {0};
    (void)state;
    struct tele_modules *m = read_text(text, sizeof(text) - 1, &e);
    assert_non_null(m);
    assert_int_equal(tele_modules_num(m), 2);
    const struct tele_module *o = tele_modules_find(m, 0xaa, 1);
    assert_non_null(o);
    assert_string_equal(o->vendor, "Someone");
    assert_string_equal(o->part, "XYZ-800");
    assert_string_equal(o->serial, "S0001");
    assert_string_equal(o->kind, "850 nm VCSEL");
    assert_true(o->celsius == 58 && isnan(o->metres) && o->lanes == 1);
    assert_true(o->rx_dbm[0] == -0.6 && isnan(o->rx_dbm[1]) && o->tx_dbm[0] == 0);
    o = tele_modules_find(m, 0xaa, 2);
    assert_true(isnan(o->celsius) && o->metres == 2 && o->serial[0] == 0);
    assert_null(tele_modules_find(m, 0xaa, 3));
    assert_null(tele_modules_find(m, 0xab, 1));
    assert_string_equal(told.data, "20: no GUID, or a port number beyond 1..254\n"
                                   "21: a head line without GUID=0x…\n"
                                   "22: the port was named before; the first one counts\n");
    tele_modules_free(m);
}

static void csv(void **state)
{
    static const char text[] =
        "START_NODES\nNodeDesc,x\n\"a,b\",1\nEND_NODES\n\n"
        "START_CABLE_INFO\n"
        "NodeGuid,PortGuid,PortNum,Vendor,PN,SN,Temperature,LengthDesc,RX1Power,TX1Power\n"
        "0xaa,0xab,5,\"Some, one\",P1,S9,70C,30 m,-2.5,NA\n"
        "0xaa,0xab,6,Z\n"
        "zz,0xab,6,Z,,,,,,\n"
        "0xaa,0xab,7,N/A,\"P2\",\"S8\",-1,,,\n"
        "END_CABLE_INFO\n";
    struct err e = {0};
    (void)state;
    struct tele_modules *m = read_text(text, sizeof(text) - 1, &e);
    assert_non_null(m);
    assert_int_equal(tele_modules_num(m), 2);
    const struct tele_module *o = tele_modules_find(m, 0xaa, 5);
    assert_string_equal(o->vendor, "Some, one");
    assert_true(o->celsius == 70 && o->metres == 30 && o->rx_dbm[0] == -2.5 && isnan(o->tx_dbm[0]));
    o = tele_modules_find(m, 0xaa, 7);
    assert_true(isnan(o->celsius) && o->vendor[0] == 0);
    assert_string_equal(o->serial, "S8");
    assert_string_equal(told.data, "9: another number of values than the section has columns\n"
                                   "10: no NodeGuid or PortNum\n");
    tele_modules_free(m);
}

static void nothing_in_it(void **state)
{
    struct err e = {0};
    (void)state;
    assert_null(read_text("", 0, &e));
    assert_non_null(strstr(e.text, "--get_cable_info"));
    assert_null(read_text("START_NODES\nEND_NODES\n", 22, &e));
    assert_null(tele_modules_read("/nowhere/at/all", tell, NULL, &e));
    assert_non_null(strstr(e.text, "cannot be read"));
}

// Whatever is in it: no crash, no more than a line's worth told a line.
static void rubbish(void **state)
{
    static const char *const piece[] = {"START_CABLE_INFO\n",
                                        "NodeGuid,PortNum",
                                        ",",
                                        "\"",
                                        "0x1",
                                        "\n",
                                        "Port=",
                                        "GUID=0x",
                                        "RX9 Power: ",
                                        ":",
                                        "mW",
                                        "\xff",
                                        "END_CABLE_INFO\n",
                                        "RX",
                                        "-999999999999999999999999999"};
    unsigned seed = 7;
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        struct buf b = {0};
        struct err e = {0};
        for (unsigned k = 0; k < 80; k++)
            buf_puts(&b, piece[((seed = seed * 1103515245 + 12345) >> 16) % 15]);
        tele_modules_free(read_text(b.data, b.len, &e));
        buf_done(&b);
    }
}

static void real_files(void **state)
{
    char path[400];
    struct err e = {0};
    const char *shared = getenv("WEFT_SHARED");
    (void)state;
    snprintf(path, sizeof(path), "%s/fabrics/ibdiagnet/ndr-rail8-256ca/ibdiagnet2.cables",
             shared ? shared : SOURCE_ROOT "/../shared");
    if (access(path, R_OK) != 0) {
        print_message("skipped: no %s\n", path);
        skip();
    }
    buf_clear(&told);
    struct tele_modules *m = tele_modules_read(path, tell, NULL, &e);
    assert_non_null(m);
    assert_int_equal(tele_modules_num(m), 120);
    assert_int_equal(told.len, 0);
    const struct tele_module *o = tele_modules_find(m, 0xb0cf0e0300c46640, 1);
    assert_non_null(o);
    assert_true(o->celsius == 58);
    assert_string_equal(o->serial, "G2478744326");
    tele_modules_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cables),  cmocka_unit_test(csv),        cmocka_unit_test(nothing_in_it),
        cmocka_unit_test(rubbish), cmocka_unit_test(real_files),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    buf_done(&told);
    return rc;
}
