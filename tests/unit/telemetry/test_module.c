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
#include <sys/time.h>
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

// Powers and limits below 0 dBm come as 16 bits without a sign; a module is judged by its own limits.
static void optics(void **state)
{
    static const struct {
        const char *lines;
        bool known, fault;
        unsigned lane;
        bool rx, high;
        double dbm, limit;
    } cases[] = {
#define LIMITS                                                                                               \
    "RXPowerHighThresh: 4\nRXPowerLowThresh: 65530\nTXPowerHighThresh: 4\nTXPowerLowThresh: 65532\n"
        {LIMITS "RX1 Power: 1.585 mW, 2.000 dBm\nTX1 Power: 1.585 mW, 2.000 dBm\n", true, false, 0, false,
         false, 0, 0},
        {LIMITS "RX1 Power: inf mW, 65530.000 dBm\n", true, false, 0, false, false, 0, 0}, // at the limit
        {LIMITS "RX1 Power: inf mW, 65529.000 dBm\n", true, false, 1, true, false, -7, -6},
        {LIMITS "RX1 Power: 0.251 mW, -6.010 dBm\n", true, false, 1, true, false, -6.01, -6},
        {LIMITS "RX1 Power: inf mW, 65496.000 dBm\nRX2 Power: inf mW, 65529.000 dBm\n", true, false, 1, true,
         false, -40, -6},
        {LIMITS "RX2 Power: 2.512 mW, 4.000 dBm\n", true, false, 0, false, false, 0, 0},
        {LIMITS "RX2 Power: 2.818 mW, 4.500 dBm\n", true, false, 2, true, true, 4.5, 4},
        {LIMITS "TX3 Power: 0.316 mW, -5.000 dBm\n", true, false, 3, false, false, -5, -4},
        {LIMITS "RX1 Power: -999.999 mW, 0.000 dBm\n", false, false, 0, false, false, 0, 0}, // none
        {LIMITS "RX1 Power: N/A\n", false, false, 0, false, false, 0, 0},
        {"RX1 Power: inf mW, 65496.000 dBm\n", false, false, 0, false, false, 0, 0}, // no limits
        {"RXPowerHighThresh: 0\nRXPowerLowThresh: 0\nRX1 Power: 1.585 mW, 2.000 dBm\n"
         "TX Bias Alarm and Warning:  0x3223\n",
         false, false, 0, false, false, 0, 0}, // copper
        {"RXPowerHighThresh: 65530\nRXPowerLowThresh: 4\nRX1 Power: 10 mW, 10.000 dBm\n", false, false, 0,
         false, false, 0, 0},
        {"RXPowerHighThresh: 4\nRXPowerLowThresh: 40000\nRX1 Power: inf mW, 65496.000 dBm\n", false, false, 0,
         false, false, 0, 0},
        {"RXPowerHighThresh: 4.5 dBm\nRXPowerLowThresh: 0.1 mW, -10.0 dBm\nRX1 Power: 0.05 mW, -13.010 dBm\n",
         true, false, 1, true, false, -13.01, -10},
        {"Module Status: Fault\n", true, true, 0, false, false, 0, 0},
        {"Module State: 5\n", true, true, 0, false, false, 0, 0},
        {"Module State: 3\n", true, false, 0, false, false, 0, 0},
        {"Module Status: no fault\n", true, false, 0, false, false, 0, 0},
        {"Module Status: N/A\n", false, false, 0, false, false, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[600];
        struct err e = {0};
        struct tele_optics o;
        int n = snprintf(text, sizeof(text), "Port=1 Lid=1 GUID=0xaa\n%s", cases[i].lines);
        struct tele_modules *m = read_text(text, (size_t)n, &e);
        assert_non_null(m);
        bool known = tele_module_optics(tele_modules_find(m, 0xaa, 1), &o);
        if (known != cases[i].known || o.fault != cases[i].fault || o.lane != cases[i].lane)
            fail_msg("%s: known %d, fault %d, lane %u", cases[i].lines, known, o.fault, o.lane);
        if (o.lane > 0) {
            assert_int_equal(o.rx, cases[i].rx);
            assert_int_equal(o.high, cases[i].high);
            assert_true(fabs((double)o.dbm - cases[i].dbm) < 1e-4 &&
                        fabs((double)o.limit - cases[i].limit) < 1e-4);
        }
        tele_modules_free(m);
    }
}

static void devices(void **state)
{
    static const char text[] =
        "START_RUN_INFO\nIBDIAGNET_Version,Date,Args\n\"IBDIAGNET 2.10.0\",\"2001-02-03 04:05:06 UTC "
        "+0000\",\"\"\nEND_RUN_INFO\n"
        "START_TEMP_SENSING\nNodeGUID,CurrentTemperature\n0xa1,46\n0xa2,0\n0xa3,N/"
        "A\nnone,5\n0xa1,99\nEND_TEMP_SENSING\n"
        "START_FANS_THRESHOLDS\nNodeGuid,SensorIndex,MinSpeed,MaxSpeed\n0xa1,2,4500,22000\n0xa1,1,4500,"
        "22000\nEND_FANS_THRESHOLDS\n"
        "START_FANS_SPEED\nNodeGuid,SensorIndex,FanSpeed\n0xa1,2,4499\n0xa1,1,4500\n0xa1,3,0\n0xa1,4,N/A\n"
        "0xa2,1,0\n0xa2,2,0\n0xa1,x,7\n0xa1,70000,7\n0xa1,,7\nEND_FANS_SPEED\n"
        "START_FANS_ALERT\nNodeGuid,FansUnderLimit,FansOverLimit\n0xa1,0x0004,0x0\nEND_FANS_ALERT\n"
        "START_POWER_SUPPLIES\n"
        "NodeGuid,PSUIndex,IsPresent,IsFRU,ACInput,DCState,AlertState,FanState,TemperatureState,"
        "SerialNumber\n"
        "0xa1,1,Yes,Yes,OK,OK,OK,OK,OK,S1\n0xa1,2,Yes,Yes,OK,ERROR,Alert,OK,OK,S2\n0xa1,3,No,No,N/A,ERROR,N/"
        "A,N/A,N/A,N/A\n"
        "0xa2,1,Yes,Yes,OK,OK,OK,NOK,OK,\"S\x01\"\n0xa2,2,Yes,Yes,N/A,perhaps,N/A,N/A,N/"
        "A,\nEND_POWER_SUPPLIES\n";
    struct err e = {0};
    (void)state;
    struct tele_modules *m = read_text(text, sizeof(text) - 1, &e);
    assert_non_null(m);
    assert_int_equal(tele_modules_num(m), 0);
    assert_int_equal(tele_devices_num(m), 3);
    const struct tele_device *d = tele_device_find(m, 0xa1);
    assert_true(d->celsius == 46 && d->slow_fans == 4);
    assert_int_equal(d->taken_ns, 981173106ll * 1000000000); // when it ran, not when it was copied
    assert_int_equal(d->num_fans, 4);
    static const struct tele_fan want[] = {{0xa1, 1, 4500, 4500, 22000, PART_OK},
                                           {0xa1, 2, 4499, 4500, 22000, PART_FAILED},
                                           {0xa1, 3, 0, -1, -1, PART_FAILED},
                                           {0xa1, 4, -1, -1, -1, PART_UNKNOWN}};
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(d->fan[i].index, want[i].index);
        assert_int_equal(d->fan[i].rpm, want[i].rpm);
        assert_int_equal(d->fan[i].min, want[i].min);
        assert_int_equal(d->fan[i].max, want[i].max);
        assert_int_equal(d->fan[i].state, want[i].state);
    }
    assert_int_equal(d->num_psus, 3);
    assert_int_equal(d->psu[0].state, PART_OK);
    assert_string_equal(d->psu[0].serial, "S1");
    assert_int_equal(d->psu[1].state, PART_FAILED);
    assert_string_equal(d->psu[1].bad, "DC ERROR, alert Alert");
    assert_int_equal(d->psu[2].state, PART_ABSENT);
    assert_string_equal(d->psu[2].bad, "");
    d = tele_device_find(m, 0xa2);
    assert_true(isnan(d->celsius)); // 0: no sensor
    assert_int_equal(d->num_fans, 2);
    assert_int_equal(d->fan[0].state, PART_UNKNOWN); // none turns, and no limit
    assert_int_equal(d->psu[0].state, PART_FAILED);
    assert_string_equal(d->psu[0].serial, "S?");
    assert_int_equal(d->psu[1].state, PART_UNKNOWN); // a word that means nothing to weft
    assert_null(tele_device_find(m, 0xa4));
    assert_string_equal(told.data, "10: no NodeGUID\n"
                                   "26: no NodeGuid, or no number of the part\n"
                                   "27: no NodeGuid, or no number of the part\n"
                                   "28: no NodeGuid, or no number of the part\n");
    tele_modules_free(m);

    static const char cut[] = "START_TEMP_SENSING\nNodeGUID,CurrentTemperature\n0xa1,46\n";
    m = read_text(cut, sizeof(cut) - 1, &e);
    assert_int_equal(tele_devices_num(m), 1);
    assert_non_null(strstr(told.data, "ends within a section"));
    tele_modules_free(m);
}

// A fan and a power supply whose devices' numbers are chosen so that weft finds one where it looks for the
// other.
static void parts_alike(void **state)
{
    static const char supply[] = "START_POWER_SUPPLIES\nNodeGuid,PSUIndex,IsPresent,DCState\n"
                                 "0xdca827c1ee99768b,1,Yes,OK\nEND_POWER_SUPPLIES\n",
                      fan[] = "START_FANS_SPEED\nNodeGuid,SensorIndex,FanSpeed\n0xa1,4,5000\n0xa1,5,5000\n"
                              "END_FANS_SPEED\n";
    (void)state;
    for (int i = 0; i < 2; i++) {
        char text[400];
        struct err e = {0};
        int n = snprintf(text, sizeof(text), "%s%s", i ? fan : supply, i ? supply : fan);
        struct tele_modules *m = read_text(text, (size_t)n, &e);
        assert_non_null(m);
        const struct tele_device *d = tele_device_find(m, 0xa1), *o = tele_device_find(m, 0xdca827c1ee99768b);
        assert_int_equal(d->num_fans, 2);
        assert_true(d->fan[0].index == 4 && d->fan[0].rpm == 5000 && d->fan[1].index == 5);
        assert_int_equal(d->num_psus, 0);
        assert_int_equal(o->num_psus, 1);
        assert_int_equal(o->psu[0].state, PART_OK);
        assert_int_equal(o->num_fans, 0);
        tele_modules_free(m);
    }
}

static void put(const char *dir, const char *name, const char *text, time_t at)
{
    char path[400];
    struct timeval when[2] = {{.tv_sec = at}, {.tv_sec = at}};
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(utimes(path, when), 0);
}

// A folder has both files: of what both tell the younger one counts, and each is as old as itself.
static void folder(void **state)
{
    char dir[300], path[400];
    struct err e = {0};
    const char *tmp = getenv("TMPDIR");
    (void)state;
    snprintf(dir, sizeof(dir), "%s/weft-module-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(tele_modules_written(dir), -1);
    assert_null(tele_modules_read(dir, tell, NULL, &e));
    for (int younger = 0; younger < 2; younger++) {
        put(dir, "ibdiagnet2.db_csv",
            "START_CABLE_INFO\nNodeGuid,PortNum,SN\n0xaa,1,CSV\n0xaa,2,CSV\nEND_CABLE_INFO\n"
            "START_TEMP_SENSING\nNodeGUID,CurrentTemperature\n0xaa,50\nEND_TEMP_SENSING\n",
            1000000);
        put(dir, "ibdiagnet2.cables",
            "# Running timestamp : 2033-01-01 00:00:00 UTC +0000\nPort=1 Lid=1 GUID=0xaa\nSN: CABLES\n",
            younger ? 1000001 : 999999);
        buf_clear(&told);
        assert_int_equal(tele_modules_written(dir), (younger ? 1000001ll : 1000000ll) * 1000000000);
        struct tele_modules *m = tele_modules_read(dir, tell, NULL, &e);
        assert_non_null(m);
        assert_int_equal(told.len, 0);
        assert_string_equal(tele_modules_find(m, 0xaa, 1)->serial, younger ? "CABLES" : "CSV");
        assert_string_equal(tele_modules_find(m, 0xaa, 2)->serial, "CSV");
        assert_int_equal(tele_device_find(m, 0xaa)->taken_ns, 1000000ll * 1000000000);
        // A time that has not come yet is none: that of the file is taken.
        assert_int_equal(tele_modules_find(m, 0xaa, 1)->taken_ns,
                         (younger ? 1000001ll : 1000000ll) * 1000000000);
        struct tele_modules *again = tele_modules_ref(m);
        tele_modules_free(m);
        assert_int_equal(tele_modules_num(again), 2);
        tele_modules_free(again);
    }
    snprintf(path, sizeof(path), "%s/ibdiagnet2.db_csv", dir);
    unlink(path);
    struct tele_modules *m = tele_modules_read(dir, tell, NULL, &e);
    assert_int_equal(tele_modules_num(m), 1);
    tele_modules_free(m);
    snprintf(path, sizeof(path), "%s/ibdiagnet2.cables", dir);
    unlink(path);
    rmdir(dir);
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
                                        "START_FANS_SPEED\nNodeGuid,SensorIndex,FanSpeed\n",
                                        "START_FANS_ALERT\nNodeGuid,FansUnderLimit\n",
                                        "START_POWER_SUPPLIES\nNodeGuid,PSUIndex,DCState\n",
                                        "START_TEMP_SENSING\nNodeGUID,CurrentTemperature\n",
                                        "START_RUN_INFO\nDate\n9999-99-99 99:99:99 +9999\n",
                                        "0x1,2,3\n",
                                        "0x1,99999999999999999999\n",
                                        "RXPowerLowThresh: 65530\n",
                                        "Module Status: ",
                                        "RX",
                                        "-999999999999999999999999999"};
    unsigned seed = 7;
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        struct buf b = {0};
        struct err e = {0};
        for (unsigned k = 0; k < 80; k++)
            buf_puts(&b,
                     piece[((seed = seed * 1103515245 + 12345) >> 16) % (sizeof(piece) / sizeof(piece[0]))]);
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
    assert_true(o->rx_low == -6 && o->rx_high == 4 && o->tx_low == -4 && o->tx_high == 4);
    assert_int_equal(o->taken_ns, 1742021684ll * 1000000000);

    // Three fibres are dark in it, all others are within their limits; copper says nothing.
    unsigned dark = 0, known = 0;
    static const uint64_t leaf[] = {0xb0cf0e0300c46640, 0xfc6a1c0300ab8300, 0xfc6a1c0300ab92c0};
    for (unsigned i = 0; i < 3; i++)
        for (unsigned p = 1; p <= 64; p++) {
            struct tele_optics x;
            o = tele_modules_find(m, leaf[i], (uint8_t)p);
            if (o == NULL || !tele_module_optics(o, &x))
                continue;
            known++;
            if (x.lane == 0 && !x.fault)
                continue;
            dark++;
            assert_int_equal(p, 32);
            assert_true(x.rx && !x.high && x.dbm == -40 && x.limit == -6);
        }
    assert_int_equal(dark, 3);
    assert_true(known >= 40);
    tele_modules_free(m);
}

static void real_devices(void **state)
{
    char path[400];
    struct err e = {0};
    const char *shared = getenv("WEFT_SHARED");
    (void)state;
    snprintf(path, sizeof(path), "%s/fabrics/ibdiagnet/ndr-rail8-256ca",
             shared ? shared : SOURCE_ROOT "/../shared");
    if (access(path, R_OK) != 0) {
        print_message("skipped: no %s\n", path);
        skip();
    }
    buf_clear(&told);
    struct tele_modules *m = tele_modules_read(path, tell, NULL, &e); // the folder
    assert_non_null(m);
    assert_int_equal(told.len, 0);
    assert_int_equal(tele_modules_num(m), 120);
    assert_int_equal(tele_devices_num(m), 272);
    const struct tele_device *d = tele_device_find(m, 0xb0cf0e0300f2e0c0);
    assert_true(d->celsius == 46 && d->num_fans == 0 && d->num_psus == 0);
    assert_int_equal(d->taken_ns, 1743464598ll * 1000000000);
    for (uint32_t i = 0; i < tele_devices_num(m); i++)
        assert_true(isnan(tele_device_at(m, i)->celsius) || tele_device_at(m, i)->celsius < 80);
    tele_modules_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cables),       cmocka_unit_test(csv),        cmocka_unit_test(nothing_in_it),
        cmocka_unit_test(rubbish),      cmocka_unit_test(real_files), cmocka_unit_test(optics),
        cmocka_unit_test(parts_alike),  cmocka_unit_test(devices),    cmocka_unit_test(folder),
        cmocka_unit_test(real_devices),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    buf_done(&told);
    return rc;
}
