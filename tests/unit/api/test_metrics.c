// SPDX-License-Identifier: Apache-2.0
// Pages of samples: what is on them is read back line by line, and compared with the table and the fabric.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/metrics_render.h"
#include "fabric/builder.h"
#include "lib/rng.h"
#include "lib/xalloc.h"
#include "telemetry/health.h"
#include "telemetry/table.h"

// --- a fabric: a switch with an odd name and 4 ports, a spine, two adapters ---

#define LEAF 0x100u
#define SPINE 0x200u
#define HCA 0x10u
#define DUAL 0x20u
#define LEAF_NAME "leaf \"1\" \\ a"

static node_id add(struct builder *b, uint64_t guid, enum node_type type, uint8_t ports, const char *name,
                   uint16_t lid)
{
    node_id id;
    struct node_attrs a = {.guid = guid, .sys_guid = guid, .type = type, .num_ports = ports};
    assert_int_equal(builder_node(b, &a, name, strlen(name), &id, NULL), 0);
    for (unsigned i = type == NODE_SWITCH ? 0 : 1; i <= ports; i++) {
        bool end = type != NODE_SWITCH || i == 0;
        builder_port(b, id, i,
                     &(struct port_attrs){.lid = end ? (uint16_t)(lid + i - (type != NODE_SWITCH)) : 0,
                                          .state = PORT_DOWN,
                                          .width_active = 2,
                                          .speed_ext_active = 8});
        if (end)
            builder_port_guid(b, id, i, guid + i);
    }
    return id;
}

static void up(struct builder *b, node_id id, unsigned num, unsigned speed_ext, uint16_t lid)
{
    builder_port(
        b, id, num,
        &(struct port_attrs){
            .lid = lid, .state = PORT_ACTIVE, .width_active = 2, .speed_ext_active = (uint8_t)speed_ext});
}

static void link_up(struct builder *b, node_id x, unsigned xp, node_id y, unsigned yp, unsigned speed,
                    uint16_t y_lid)
{
    up(b, x, xp, speed, 0);
    up(b, y, yp, speed, y_lid);
    assert_int_equal(builder_link(b, x, xp, y, yp), 0);
}

static const struct fabric *make_fabric(bool with_dual)
{
    struct builder *b = builder_new();
    node_id leaf = add(b, LEAF, NODE_SWITCH, 4, LEAF_NAME, 9),
            spine = add(b, SPINE, NODE_SWITCH, 2, "spine", 8);
    node_id hca = add(b, HCA, NODE_CA, 1, "gpu-1 mlx5_0", 1);
    link_up(b, leaf, 1, hca, 1, 8, 1);
    link_up(b, leaf, 4, spine, 1, 1, 0);
    if (with_dual) {
        node_id dual = add(b, DUAL, NODE_CA, 2, "gpu-2 mlx5_0", 2);
        link_up(b, leaf, 2, dual, 1, 8, 2);
        link_up(b, spine, 2, dual, 2, 4, 3);
    }
    return builder_seal(b, 1, NULL);
}

// --- a table of its ports ---

enum { SLOTS = 8 };
static const struct tele_key keys[SLOTS] = {{LEAF, 1}, {LEAF, 2}, {LEAF, 4}, {SPINE, 1},
                                            {HCA, 1},  {DUAL, 1}, {DUAL, 2}, {0x999, 1}};

struct rig {
    const struct fabric *f;
    const struct tele_names *names;
    struct metrics_labels labels;
    struct metrics_copy copy;
};

static uint64_t value_of(uint32_t slot, unsigned c)
{
    return slot * 1000000007ull * 123456789 + c * 99991;
}

static void rig_init(struct rig *r, const struct fabric *live, const struct fabric *known, const char *fabric,
                     struct metrics_part part)
{
    r->f = live;
    r->names = tele_names_new(keys, SLOTS, live, known);
    metrics_labels_make(&r->labels, r->names, fabric);
    r->copy = (struct metrics_copy){.f = live,
                                    .known = known,
                                    .names = r->names,
                                    .labels = &r->labels,
                                    .fabric = fabric,
                                    .part = part,
                                    .num = 0};
    r->copy.port = xcalloc(SLOTS, sizeof(*r->copy.port));
    r->copy.have = xcalloc(SLOTS, sizeof(*r->copy.have));
    r->copy.value = xcalloc(SLOTS * TELE_COUNTERS, sizeof(*r->copy.value));
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (!metrics_part_has(&part, keys[i].node_guid))
            continue;
        uint32_t k = r->copy.num++;
        r->copy.port[k] = (struct metrics_port){.slot = i,
                                                .unread = TELE_READ,
                                                .health = HEALTH_HEALTHY,
                                                .xmit_used = i == 0 ? 0.5 : NAN,
                                                .rcv_used = NAN,
                                                .held = NAN,
                                                .lost_bps = NAN,
                                                .symbol_ber = i == 1 ? 1e-15 : NAN,
                                                .raw_ber = NAN};
        r->copy.have[k] = (1ull << TELE_COUNTERS) - 1;
        for (unsigned c = 0; c < TELE_COUNTERS; c++)
            r->copy.value[k * TELE_COUNTERS + c] = value_of(i, c);
    }
}

static void rig_done(struct rig *r)
{
    metrics_labels_done(&r->labels);
    tele_names_free(r->names);
    free(r->copy.port);
    free(r->copy.have);
    free(r->copy.value);
}

static char *render(const struct rig *r, bool openmetrics, unsigned classes)
{
    struct metrics_page p;
    metrics_page_init(&p, openmetrics, false, 1u << 30);
    metrics_render(&p, &r->copy, 1, classes);
    metrics_page_end(&p);
    assert_false(p.over);
    assert_int_equal(p.text, p.out.len);
    char *text = xstrdup(p.out.data);
    metrics_page_done(&p);
    return text;
}

// --- reading back ---

// The value behind "name{labels}", NULL when there is none; fails when there are two.
static const char *sample(const char *text, const char *key)
{
    char line[700];
    snprintf(line, sizeof(line), "\n%s ", key);
    const char *at = strstr(text, line);
    if (at == NULL)
        return NULL;
    assert_null(strstr(at + 1, line));
    return at + strlen(line);
}

static void has(const char *text, const char *key, double value)
{
    const char *v = sample(text, key);
    if (v == NULL)
        fail_msg("no %s in\n%s", key, text);
    assert_true(fabs(strtod(v, NULL) - value) <= 1e-12 * fabs(value));
}

static void has_not(const char *text, const char *key)
{
    if (strstr(text, key) != NULL)
        fail_msg("%s is on the page", key);
}

#define L "guid=\"0x0000000000000100\""
#define LN "switch=\"leaf \\\"1\\\" \\\\ a\""

static void all_counters(void **state)
{
    struct rig r;
    const struct fabric *f = make_fabric(true);
    rig_init(&r, f, NULL, NULL, (struct metrics_part){.of = 1});
    char *text = render(&r, false, METRICS_ALL), key[400];
    for (unsigned c = 0; c < TELE_COUNTERS; c++) {
        uint64_t unit = tele_rows[c].unit == TELE_WORDS ? 4 : 1;
        snprintf(key, sizeof(key), "infiniband_switch_%s{" L ",port=\"2\"," LN "}", tele_rows[c].metric);
        const char *v = sample(text, key);
        assert_non_null(v);
        assert_true(strtoull(v, NULL, 10) == value_of(1, c) * unit);
        snprintf(
            key, sizeof(key),
            "infiniband_hca_%s{guid=\"0x0000000000000020\",hca=\"gpu-2 mlx5_0\",port=\"2\",switch=\"spine\"}",
            tele_rows[c].metric);
        v = sample(text, key);
        assert_non_null(v);
        assert_true(strtoull(v, NULL, 10) == value_of(6, c) * unit);
    }
    has_not(text, "0x0000000000000999"); // nobody knows what it is
    free(text);
    rig_done(&r);
    fabric_unref(f);
}

static void devices(void **state)
{
    struct rig r;
    const struct fabric *f = make_fabric(true);
    rig_init(&r, f, NULL, NULL, (struct metrics_part){.of = 1});
    r.copy.port[1].unread = TELE_NO_ANSWER; // the leaf's port 2
    char *text = render(&r, false, METRICS_ALL);
    has(text, "infiniband_switch_up{" L "," LN "}", 0);
    has(text, "infiniband_switch_up{guid=\"0x0000000000000200\",switch=\"spine\"}", 1);
    has(text, "infiniband_hca_up{guid=\"0x0000000000000010\",hca=\"gpu-1 mlx5_0\"}", 1);
    has(text, "infiniband_switch_info{" L "," LN ",lid=\"9\"}", 1);
    has(text, "infiniband_hca_info{guid=\"0x0000000000000010\",hca=\"gpu-1 mlx5_0\",lid=\"1\"}", 1);
    has(text,
        "infiniband_switch_uplink_info{" L ",port=\"2\"," LN ",uplink=\"gpu-2 "
        "mlx5_0\",uplink_guid=\"0x0000000000000020\",uplink_type=\"CA\",uplink_port=\"1\",uplink_lid=\"2\"}",
        1);
    has(text,
        "infiniband_hca_uplink_info{guid=\"0x0000000000000010\",hca=\"gpu-1 mlx5_0\",port=\"1\"," LN
        ",uplink=\"leaf \\\"1\\\" \\\\ "
        "a\",uplink_guid=\"0x0000000000000100\",uplink_type=\"SW\",uplink_port=\"1\","
        "uplink_lid=\"9\"}",
        1);
    has(text, "infiniband_switch_port_state{" L ",port=\"1\"," LN "}", 1);
    has(text, "infiniband_switch_port_state{" L ",port=\"3\"," LN "}", 0);
    has(text, "infiniband_switch_port_rate_bytes_per_second{" L ",port=\"1\"," LN "}", 50e9);
    has(text, "infiniband_switch_port_rate_bytes_per_second{" L ",port=\"4\"," LN "}", 6.82e9);
    has(text, "infiniband_switch_port_raw_rate_bytes_per_second{" L ",port=\"4\"," LN "}", 7.03125e9);
    has_not(text, "infiniband_switch_port_rate_bytes_per_second{" L ",port=\"3\"");
    has(text, "infiniband_hca_port_rate_bytes_per_second{guid=\"0x0000000000000020\",hca=\"gpu-2 mlx5_0\"}",
        50e9);
    has(text, "infiniband_switch_port_transmit_used_ratio{" L ",port=\"1\"," LN "}", 0.5);
    has_not(text, "infiniband_switch_port_transmit_used_ratio{" L ",port=\"2\"");
    has(text, "infiniband_switch_port_symbol_ber{" L ",port=\"2\"," LN "}", 1e-15);
    has_not(text, "infiniband_switch_port_raw_ber");
    has(text, "infiniband_switch_port_health_state{" L ",port=\"1\"," LN ",state=\"healthy\"}", 1);
    free(text);
    rig_done(&r);
    fabric_unref(f);
}

// What ibdiagnet's file has, under the names of ibswinfo's collector; nothing of what is too old.
static void environment(void **state)
{
    static const char text_of[] =
        "START_CABLE_INFO\nNodeGuid,PortNum,Temperature,RX1Power,RX2Power,TX1Power\n"
        "0x100,1,58C,-2.5,NA,1.5\n0x11,1,40C,NA,NA,NA\nEND_CABLE_INFO\n"
        "START_TEMP_SENSING\nNodeGUID,CurrentTemperature\n0x100,55\n0x10,61\n0x200,N/A\nEND_TEMP_SENSING\n"
        "START_FANS_SPEED\nNodeGuid,SensorIndex,FanSpeed\n0x100,1,9000\n0x100,2,0\n0x200,1,9000\nEND_FANS_"
        "SPEED\n"
        "START_POWER_SUPPLIES\nNodeGuid,PSUIndex,IsPresent,DCState,FanState\n"
        "0x100,1,Yes,OK,OK\n0x100,2,Yes,ERROR,OK\n0x100,3,No,N/A,N/A\nEND_POWER_SUPPLIES\n";
    struct rig r;
    const struct fabric *f = make_fabric(true);
    (void)state;
    for (int old = 0; old < 2; old++) {
        char in[sizeof(text_of)];
        memcpy(in, text_of, sizeof(in));
        rig_init(&r, f, NULL, NULL, (struct metrics_part){.of = 1});
        r.copy.modules = tele_modules_parse(in, 1000, NULL, NULL);
        r.copy.modules_from_ns = 1000 + old;
        char *text = render(&r, false, METRICS_ALL);
        if (old) {
            has_not(text, "celsius{");
            has_not(text, "rpm{");
            has_not(text, "status_info{");
        } else {
            has(text, "infiniband_switch_port_module_temperature_celsius{" L ",port=\"1\"," LN "}", 58);
            has(text, "infiniband_switch_port_module_rx_power_dbm{" L ",port=\"1\"," LN ",lane=\"1\"}", -2.5);
            has(text, "infiniband_switch_port_module_tx_power_dbm{" L ",port=\"1\"," LN ",lane=\"1\"}", 1.5);
            has_not(text, "lane=\"2\"");
            has(text, "infiniband_switch_temperature_celsius{" L "," LN "}", 55);
            has_not(text, "infiniband_switch_temperature_celsius{guid=\"0x0000000000000200\"");
            has(text, "infiniband_hca_temperature_celsius{guid=\"0x0000000000000010\",hca=\"gpu-1 mlx5_0\"}",
                61);
            has(text, "infiniband_switch_fan_rpm{" L "," LN ",fan=\"1\"}", 9000);
            has(text, "infiniband_switch_fan_rpm{" L "," LN ",fan=\"2\"}", 0);
            has(text, "infiniband_switch_fan_status_info{" L "," LN ",status=\"ERROR\"}", 1);
            has(text,
                "infiniband_switch_fan_status_info{guid=\"0x0000000000000200\",switch=\"spine\",status="
                "\"OK\"}",
                1);
            has(text, "infiniband_switch_power_supply_status_info{" L "," LN ",psu=\"1\",status=\"OK\"}", 1);
            has(text, "infiniband_switch_power_supply_status_info{" L "," LN ",psu=\"2\",status=\"ERROR\"}",
                1);
            has(text,
                "infiniband_switch_power_supply_dc_power_status_info{" L "," LN ",psu=\"1\",status=\"OK\"}",
                1);
            has(text, "infiniband_switch_power_supply_fan_status_info{" L "," LN ",psu=\"2\",status=\"OK\"}",
                1);
            has_not(text, "psu=\"3\"");
        }
        free(text);
        tele_modules_free(r.copy.modules);
        rig_done(&r);
    }
    fabric_unref(f);
}

static void unread_is_absent(void **state)
{
    struct rig r;
    const struct fabric *f = make_fabric(true);
    rig_init(&r, f, NULL, NULL, (struct metrics_part){.of = 1});
    r.copy.have[0] = 0;
    r.copy.have[1] &= ~(1ull << TELE_QP1_DROPPED);
    r.copy.value[2 * TELE_COUNTERS + TELE_LINK_DOWNED] = 0;
    char *text = render(&r, false, METRICS_ALL);
    has_not(text, "infiniband_switch_port_link_downed_total{" L ",port=\"1\"");
    has_not(text, "infiniband_switch_port_qp1_dropped_total{" L ",port=\"2\"");
    assert_non_null(strstr(text, "infiniband_switch_port_link_downed_total{" L ",port=\"2\""));
    has(text, "infiniband_switch_port_link_downed_total{" L ",port=\"4\"," LN "}", 0);
    free(text);
    rig_done(&r);
    fabric_unref(f);
}

// What went away keeps its name, and its switch's, from the blueprint, and is said to be down.
static void names_of_what_is_away(void **state)
{
    struct rig r;
    const struct fabric *live = make_fabric(false), *known = make_fabric(true);
    rig_init(&r, live, known, "a\"b", (struct metrics_part){.of = 1});
    char *text = render(&r, false, METRICS_ALL);
    assert_non_null(
        sample(text, "infiniband_hca_port_symbol_error_total{fabric=\"a\\\"b\",guid=\"0x0000000000000020\","
                     "hca=\"gpu-2 mlx5_0\",port=\"2\",switch=\"spine\"}"));
    has_not(text, "infiniband_hca_info{fabric=\"a\\\"b\",guid=\"0x0000000000000020\""); // it is not there
    has(text, "infiniband_hca_up{fabric=\"a\\\"b\",guid=\"0x0000000000000020\",hca=\"gpu-2 mlx5_0\"}", 0);
    has(text, "infiniband_hca_up{fabric=\"a\\\"b\",guid=\"0x0000000000000010\",hca=\"gpu-1 mlx5_0\"}", 1);
    free(text);
    rig_done(&r);
    fabric_unref(live);
    fabric_unref(known);
}

static void classes_and_parts(void **state)
{
    const struct fabric *f = make_fabric(true);
    char *all, *part[METRICS_CLASSES];
    size_t sum = 0;
    struct rig r;

    rig_init(&r, f, NULL, NULL, (struct metrics_part){.of = 1});
    all = render(&r, false, METRICS_ALL);
    for (unsigned i = 0; i < METRICS_CLASSES; i++) {
        part[i] = render(&r, false, 1u << i);
        sum += strlen(part[i]);
    }
    assert_int_equal(sum, strlen(all));
    assert_non_null(strstr(part[METRICS_TRAFFIC], "port_transmit_data_bytes_total{"));
    assert_non_null(strstr(part[METRICS_TRAFFIC], "port_transmit_wait_total{"));
    assert_non_null(strstr(part[METRICS_ERRORS], "port_symbol_error_total{"));
    assert_non_null(strstr(part[METRICS_NODES], "infiniband_switch_port_state{"));
    for (unsigned i = 0; i < METRICS_CLASSES; i++)
        free(part[i]);
    rig_done(&r);

    sum = 0;
    for (uint32_t i = 0; i < 3; i++) {
        rig_init(&r, f, NULL, NULL, (struct metrics_part){.shard = i, .of = 3});
        char *text = render(&r, false, METRICS_ALL);
        for (const char *at = text; (at = strstr(at, "\ninfiniband_")) != NULL; at++)
            sum++;
        free(text);
        rig_done(&r);
    }
    for (const char *at = all; (at = strstr(at, "\ninfiniband_")) != NULL; at++)
        sum--;
    assert_int_equal(sum, 0);

    rig_init(&r, f, NULL, NULL, (struct metrics_part){.of = 1, .guid = SPINE});
    char *text = render(&r, false, METRICS_ALL);
    assert_non_null(strstr(text, "guid=\"0x0000000000000200\""));
    has_not(text, "{guid=\"0x0000000000000100\"");
    free(text);
    rig_done(&r);
    free(all);
    fabric_unref(f);
}

// The names of another exporter beside them: data in words, both ends on every sample.
static void other_names(void **state)
{
    struct rig r;
    struct metrics_labels other;
    const struct fabric *live = make_fabric(false), *known = make_fabric(true);
    rig_init(&r, live, known, NULL, (struct metrics_part){.of = 1});
    metrics_labels_guilbaults(&other, r.names, NULL);
    r.copy.guilbaults = &other;
    char *text = render(&r, false, METRICS_ALL);
    has(text,
        "infiniband_portxmitdata_total{component=\"switch\",local_name=\"leaf \\\"1\\\" \\\\ a\",local_guid="
        "\"0x0000000000000100\",local_port=\"1\",remote_guid=\"0x0000000000000010\",remote_port=\"1\",remote_"
        "name=\"gpu-1 "
        "mlx5_0\"}",
        (double)value_of(0, TELE_XMIT_DATA));
    has(text,
        "infiniband_linkdownedcounter_total{component=\"ca\",local_name=\"gpu-2 mlx5_0\",local_guid="
        "\"0x0000000000000020\",local_port=\"2\",remote_guid=\"0x0000000000000200\",remote_port=\"2\",remote_"
        "name=\"spine\"}",
        (double)value_of(6, TELE_LINK_DOWNED));
    assert_non_null(strstr(text, "infiniband_switch_port_link_downed_total{"));
    free(text);
    metrics_labels_done(&other);
    rig_done(&r);
    fabric_unref(live);
    fabric_unref(known);
}

// Families come once, each sample of a family behind its TYPE, no series twice.
static void form(void **state)
{
    const struct fabric *f = make_fabric(true);
    struct rig r;
    rig_init(&r, f, NULL, NULL, (struct metrics_part){.of = 1});
    for (unsigned om = 0; om < 2; om++) {
        char *text = render(&r, om, METRICS_ALL), *save = NULL, family[200] = "", type[20] = "",
             seen[300][200];
        char *copy = xstrdup(text);
        unsigned families = 0;
        for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
            if (strcmp(line, "# EOF") == 0) {
                assert_true(om && strtok_r(NULL, "\n", &save) == NULL);
                break;
            }
            if (strncmp(line, "# HELP ", 7) == 0) {
                assert_int_equal(sscanf(line, "# HELP %199s", family), 1);
                for (unsigned i = 0; i < families; i++)
                    assert_string_not_equal(seen[i], family);
                strcpy(seen[families++], family);
            } else if (strncmp(line, "# TYPE ", 7) == 0) {
                char name[200];
                assert_int_equal(sscanf(line, "# TYPE %199s %19s", name, type), 2);
                assert_string_equal(name, family);
            } else {
                size_t n = strlen(family);
                const char *rest = line + n;
                assert_memory_equal(line, family, n);
                if (om && strcmp(type, "counter") == 0) {
                    assert_memory_equal(rest, "_total", 6);
                    rest += 6;
                } else if (om && strcmp(type, "info") == 0) {
                    assert_memory_equal(rest, "_info", 5);
                    rest += 5;
                }
                assert_true(*rest == '{');
                char *end = strrchr(line, ' ');
                *end = 0;
                char series[900];
                snprintf(series, sizeof(series), "\n%s ", line);
                const char *first = strstr(copy, series);
                assert_non_null(first);
                assert_null(strstr(first + 1, series));
            }
        }
        assert_true(families > 80);
        free(text);
        free(copy);
    }
    rig_done(&r);
    fabric_unref(f);
}

static void compressed(void **state)
{
    struct metrics_page p, q;
    struct rng g;
    char labels[100];

    metrics_page_init(&p, false, true, 1u << 30);
    metrics_page_init(&q, false, false, 1u << 30);
    rng_init(&g, 3);
    for (unsigned i = 0; i < 50000; i++) {
        if (i % 10000 == 0) {
            metrics_family(&p, "a_total", METRIC_COUNTER, "help");
            metrics_family(&q, "a_total", METRIC_COUNTER, "help");
        }
        uint64_t v = rng_u64(&g) >> rng_below(&g, 64);
        int n = snprintf(labels, sizeof(labels), "guid=\"%u\"", i);
        metrics_sample(&p, labels, (size_t)n, v);
        metrics_sample(&q, labels, (size_t)n, v);
    }
    metrics_page_end(&p);
    metrics_page_end(&q);
    assert_true(p.out.len < q.out.len / 2);
    assert_int_equal(p.text, q.out.len);
    assert_int_equal(p.samples, 50000);
    char *plain = xmalloc(q.out.len + 1);
    z_stream z = {.next_in = (Bytef *)p.out.data,
                  .avail_in = (uInt)p.out.len,
                  .next_out = (Bytef *)plain,
                  .avail_out = (uInt)q.out.len + 1};
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.total_out, q.out.len);
    assert_memory_equal(plain, q.out.data, q.out.len);
    inflateEnd(&z);
    free(plain);
    metrics_page_done(&p);
    metrics_page_done(&q);
}

static void too_large(void **state)
{
    struct metrics_page p;
    metrics_page_init(&p, false, false, 100000);
    metrics_family(&p, "a", METRIC_GAUGE, "help");
    for (unsigned i = 0; i < 100000; i++)
        metrics_sample(&p, "x=\"y\"", 5, i);
    metrics_page_end(&p);
    assert_true(p.over);
    assert_int_equal(p.out.len, 0);
    metrics_page_done(&p);
}

static void numbers(void **state)
{
    struct metrics_page p;
    metrics_page_init(&p, false, false, 100000);
    metrics_family(&p, "a", METRIC_GAUGE, "help");
    metrics_family(&p, "b", METRIC_GAUGE, "help"); // a has no sample: it leaves no trace
    metrics_sample(&p, "", 0, 0);
    metrics_sample(&p, "x=\"y\"", 5, UINT64_MAX);
    metrics_sample_double(&p, "", 0, NAN);
    metrics_sample_double(&p, "", 0, -INFINITY);
    metrics_sample_double(&p, "", 0, 0.1);
    metrics_page_end(&p);
    assert_string_equal(
        p.out.data,
        "# HELP b help\n# TYPE b gauge\nb 0\nb{x=\"y\"} 18446744073709551615\nb NaN\nb -Inf\nb 0.1\n");
    metrics_page_done(&p);
}

static void escaping(void **state)
{
    struct buf b = {0};
    metrics_label(&b, "a", "q\" b\\ n\n µ \xff\xc3");
    metrics_label(&b, "b", "");
    assert_string_equal(b.data, "a=\"q\\\" b\\\\ n\\n µ \xef\xbf\xbd\xef\xbf\xbd\",b=\"\"");
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_counters),
        cmocka_unit_test(devices),
        cmocka_unit_test(environment),
        cmocka_unit_test(unread_is_absent),
        cmocka_unit_test(names_of_what_is_away),
        cmocka_unit_test(classes_and_parts),
        cmocka_unit_test(other_names),
        cmocka_unit_test(form),
        cmocka_unit_test(compressed),
        cmocka_unit_test(too_large),
        cmocka_unit_test(numbers),
        cmocka_unit_test(escaping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
