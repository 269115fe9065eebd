// SPDX-License-Identifier: Apache-2.0
#include "api/metrics_render.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "mad/mad.h"
#include "telemetry/health.h"
#include "telemetry/table.h"

// --- labels ---

static void guid_label(struct buf *b, const char *name, uint64_t guid)
{
    static const char hex[] = "0123456789abcdef";
    char text[] = "0x0000000000000000";
    for (unsigned i = 0; i < 16; i++)
        text[2 + i] = hex[guid >> 4 * (15 - i) & 15];
    metrics_label(b, name, text);
}

static void number_label(struct buf *b, const char *name, unsigned v)
{
    char text[12] = "", *at = text + sizeof(text) - 1;
    do
        *--at = (char)('0' + v % 10);
    while ((v /= 10) != 0);
    metrics_label(b, name, at);
}

static void begin_labels(struct buf *b, const char *fabric)
{
    buf_clear(b);
    if (fabric != NULL)
        metrics_label(b, "fabric", fabric);
}

static void port_labels(struct buf *b, const char *fabric, const struct tele_name *n)
{
    begin_labels(b, fabric);
    guid_label(b, "guid", n->node_guid);
    if (n->kind == TELE_OF_HCA)
        metrics_label(b, "hca", n->node);
    number_label(b, "port", n->num);
    metrics_label(b, "switch", n->kind == TELE_OF_HCA ? n->sw : n->node);
}

// The far end, live or as it was.
static const struct port *far_end(const struct fabric *f, const struct tele_name *n)
{
    const struct node *node = f != NULL ? fabric_by_guid(f, n->node_guid) : NULL;
    port_id p = node != NULL ? fabric_port_at(f, node, n->num) : PORT_NONE;
    return port_valid(p) && port_valid(fabric_port(f, p)->peer) ? fabric_port(f, fabric_port(f, p)->peer)
                                                                : NULL;
}

static void guilbaults_labels(struct buf *b, const char *fabric, const struct tele_names *names,
                              const struct tele_name *n)
{
    const struct fabric *f = names->f;
    const struct port *far = far_end(f, n);
    if (far == NULL)
        far = far_end(f = names->known, n);
    begin_labels(b, fabric);
    if (far == NULL)
        return;
    const struct node *peer = fabric_node(f, far->node);
    metrics_label(b, "component", n->kind == TELE_OF_SWITCH ? "switch" : "ca");
    metrics_label(b, "local_name", n->node);
    guid_label(b, "local_guid", n->node_guid);
    number_label(b, "local_port", n->num);
    guid_label(b, "remote_guid", peer->guid);
    number_label(b, "remote_port", far->num);
    metrics_label(b, "remote_name", fabric_desc(f, peer));
}

static void make_labels(struct metrics_labels *ret, const struct tele_names *n, const char *fabric,
                        bool guilbaults)
{
    struct buf one = {0};
    *ret = (struct metrics_labels){.num = n->num, .at = xcalloc(n->num + 1ul, sizeof(*ret->at))};
    for (uint32_t i = 0; i < n->num; i++) {
        ret->at[i] = (uint32_t)ret->text.len;
        if (n->name[i].kind == TELE_OF_NOBODY)
            continue;
        if (guilbaults)
            guilbaults_labels(&one, fabric, n, &n->name[i]);
        else
            port_labels(&one, fabric, &n->name[i]);
        buf_add(&ret->text, one.data, one.len);
    }
    ret->at[n->num] = (uint32_t)ret->text.len;
    buf_done(&one);
}

void metrics_labels_make(struct metrics_labels *ret, const struct tele_names *n, const char *fabric)
{
    make_labels(ret, n, fabric, false);
}

void metrics_labels_guilbaults(struct metrics_labels *ret, const struct tele_names *n, const char *fabric)
{
    make_labels(ret, n, fabric, true);
}

void metrics_labels_done(struct metrics_labels *l)
{
    free(l->at);
    buf_done(&l->text);
    *l = (struct metrics_labels){0};
}

static inline const char *labels_at(const struct metrics_labels *l, uint32_t slot, size_t *ret_n)
{
    *ret_n = l->at[slot + 1] - l->at[slot];
    return l->text.data + l->at[slot];
}

static inline const char *slot_labels(const struct metrics_copy *c, uint32_t slot, size_t *ret_n)
{
    return labels_at(c->labels, slot, ret_n);
}

// --- counters ---

struct render {
    struct metrics_page *p;
    const struct metrics_copy *fabric;
    unsigned n;
    struct buf scratch;
};

static const char *const kind_name[] = {[TELE_OF_SWITCH] = "switch", [TELE_OF_HCA] = "hca"};

static enum metrics_class class_of(enum tele_counter c)
{
    switch (tele_rows[c].kind) {
    case TELE_TRAFFIC:
    case TELE_WAIT:
        return METRICS_TRAFFIC;
    case TELE_ERROR:
    case TELE_FEC:
        return METRICS_ERRORS;
    }
    return METRICS_ERRORS;
}

static void counter_of(struct metrics_page *p, const struct metrics_copy *c, enum tele_counter counter,
                       unsigned kind)
{
    const struct tele_name *name = c->names->name;
    for (uint32_t i = 0; i < c->num; i++) {
        uint32_t slot = c->port[i].slot;
        size_t n;
        if (name[slot].kind != kind || !(c->have[i] >> counter & 1))
            continue;
        const char *labels = slot_labels(c, slot, &n);
        metrics_sample(p, labels, n, tele_shown(counter, c->value[(uint64_t)i * TELE_COUNTERS + counter]));
    }
}

static void counters(struct render *r, unsigned classes)
{
    char name[120];
    for (unsigned kind = TELE_OF_SWITCH; kind <= TELE_OF_HCA; kind++)
        for (unsigned c = 0; c < TELE_COUNTERS; c++) {
            if (!(classes >> class_of(c) & 1))
                continue;
            snprintf(name, sizeof(name), "infiniband_%s_%s", kind_name[kind], tele_rows[c].metric);
            metrics_family(r->p, name, METRIC_COUNTER, tele_rows[c].doc);
            for (unsigned i = 0; i < r->n; i++)
                counter_of(r->p, &r->fabric[i], c, kind);
        }
}

// Under the names of ibqueryerrors, data in words as the device counts.
static void guilbaults_of(struct metrics_page *p, const struct metrics_copy *c, enum tele_counter counter)
{
    for (uint32_t i = 0; c->guilbaults != NULL && i < c->num; i++) {
        size_t n;
        const char *labels = labels_at(c->guilbaults, c->port[i].slot, &n);
        if (n > 0 && c->have[i] >> counter & 1)
            metrics_sample(p, labels, n, c->value[(uint64_t)i * TELE_COUNTERS + counter]);
    }
}

static void guilbaults(struct render *r, unsigned classes)
{
    char name[120];
    for (unsigned c = 0; c < TELE_COUNTERS; c++) {
        if (!(classes >> class_of(c) & 1))
            continue;
        size_t n = (size_t)snprintf(name, sizeof(name), "infiniband_%s_total", tele_rows[c].ibta);
        for (size_t i = 0; i < n; i++)
            name[i] = (char)tolower((unsigned char)name[i]);
        metrics_family(r->p, name, METRIC_COUNTER, tele_rows[c].doc);
        for (unsigned i = 0; i < r->n; i++)
            guilbaults_of(r->p, &r->fabric[i], c);
    }
}

// --- what counters mean ---

static const struct gauge {
    const char *metric, *help;
    size_t at; // in struct metrics_port; NAN: absent
    enum metrics_class class;
} gauges[] = {
    {"port_transmit_used_ratio", "Share of what the link carries that is sent now, 0 to 1",
     offsetof(struct metrics_port, xmit_used), METRICS_TRAFFIC},
    {"port_receive_used_ratio", "Share of what the link carries that is received now, 0 to 1",
     offsetof(struct metrics_port, rcv_used), METRICS_TRAFFIC},
    {"port_transmit_wait_ratio",
     "Share of time in which there was data to send and no way to send it, 0 to 1",
     offsetof(struct metrics_port, held), METRICS_TRAFFIC},
    {"port_transmit_wait_lost_bytes_per_second", "Data that the link could have carried while it waited",
     offsetof(struct metrics_port, lost_bps), METRICS_TRAFFIC},
    {"port_symbol_ber", "Bit error ratio behind FEC, the last estimate",
     offsetof(struct metrics_port, symbol_ber), METRICS_ERRORS},
    {"port_raw_ber", "Bit error ratio before FEC, the last estimate", offsetof(struct metrics_port, raw_ber),
     METRICS_ERRORS},
};

static void gauge_of(struct metrics_page *p, const struct metrics_copy *c, const struct gauge *g,
                     unsigned kind)
{
    for (uint32_t i = 0; i < c->num; i++) {
        double v = *(const double *)((const char *)&c->port[i] + g->at);
        size_t n;
        if (c->names->name[c->port[i].slot].kind != kind || isnan(v))
            continue;
        const char *labels = slot_labels(c, c->port[i].slot, &n);
        metrics_sample_double(p, labels, n, v);
    }
}

static void port_gauges(struct render *r, unsigned classes)
{
    char name[120];
    for (unsigned kind = TELE_OF_SWITCH; kind <= TELE_OF_HCA; kind++)
        for (size_t g = 0; g < sizeof(gauges) / sizeof(gauges[0]); g++) {
            if (!(classes >> gauges[g].class & 1))
                continue;
            snprintf(name, sizeof(name), "infiniband_%s_%s", kind_name[kind], gauges[g].metric);
            metrics_family(r->p, name, METRIC_GAUGE, gauges[g].help);
            for (unsigned i = 0; i < r->n; i++)
                gauge_of(r->p, &r->fabric[i], &gauges[g], kind);
        }
}

static void health_of(struct render *r, const struct metrics_copy *c, unsigned kind)
{
    for (uint32_t i = 0; i < c->num; i++) {
        size_t n;
        if (c->names->name[c->port[i].slot].kind != kind || c->port[i].health == HEALTH_UNKNOWN)
            continue;
        const char *labels = slot_labels(c, c->port[i].slot, &n);
        buf_clear(&r->scratch);
        buf_add(&r->scratch, labels, n);
        metrics_label(&r->scratch, "state", health_state_name((enum health_state)c->port[i].health));
        metrics_sample(r->p, r->scratch.data, r->scratch.len, 1);
    }
}

static void health(struct render *r)
{
    char name[80];
    for (unsigned kind = TELE_OF_SWITCH; kind <= TELE_OF_HCA; kind++) {
        snprintf(name, sizeof(name), "infiniband_%s_port_health_state", kind_name[kind]);
        metrics_family(r->p, name, METRIC_GAUGE, "1 for the state that the link is in");
        for (unsigned i = 0; i < r->n; i++)
            health_of(r, &r->fabric[i], kind);
    }
}

// --- devices ---

typedef void node_fn(struct render *r, const struct metrics_copy *c, const struct node *n);

static bool is_kind(const struct node *n, unsigned kind)
{
    return (n->type == NODE_SWITCH) == (kind == TELE_OF_SWITCH);
}

static void each_node(struct render *r, unsigned kind, node_fn *fn)
{
    for (unsigned i = 0; i < r->n; i++) {
        const struct metrics_copy *c = &r->fabric[i];
        for (uint32_t k = 0; c->f != NULL && k < c->f->num_nodes; k++)
            if (is_kind(&c->f->node[k], kind) && metrics_part_has(&c->part, c->f->node[k].guid))
                fn(r, c, &c->f->node[k]);
    }
}

static void labels_of(struct render *r, const struct metrics_copy *c, const struct fabric *f,
                      const struct node *n)
{
    begin_labels(&r->scratch, c->fabric);
    guid_label(&r->scratch, "guid", n->guid);
    metrics_label(&r->scratch, n->type == NODE_SWITCH ? "switch" : "hca", fabric_desc(f, n));
}

static void node_labels(struct render *r, const struct metrics_copy *c, const struct node *n)
{
    labels_of(r, c, c->f, n);
}

static void put(struct render *r, double v)
{
    metrics_sample_double(r->p, r->scratch.data, r->scratch.len, v);
}

static unsigned node_lid(const struct fabric *f, const struct node *n)
{
    uint16_t lid = n->num_ports > 0 || n->type == NODE_SWITCH ? f->port[n->first_port].a.lid : 0;
    for (unsigned i = 1; lid == 0 && n->type != NODE_SWITCH && i < n->num_ports; i++)
        lid = f->port[n->first_port + i].a.lid;
    return lid;
}

static void info_of(struct render *r, const struct metrics_copy *c, const struct node *n)
{
    node_labels(r, c, n);
    number_label(&r->scratch, "lid", node_lid(c->f, n));
    put(r, 1);
}

static void each_port(struct render *r, const struct metrics_copy *c, const struct node *n,
                      void (*fn)(struct render *r, const struct metrics_copy *c, const struct port *p))
{
    for (unsigned i = 1; i <= n->num_ports; i++)
        fn(r, c, &c->f->port[n->first_port + i - node_first_num(n)]);
}

static void fabric_port_labels(struct render *r, const struct metrics_copy *c, const struct port *p)
{
    const struct node *n = fabric_node(c->f, p->node), *peer = fabric_peer_node(c->f, p);
    bool at_switch = peer != NULL && peer->type == NODE_SWITCH;
    port_labels(&r->scratch, c->fabric,
                &(struct tele_name){.node_guid = n->guid,
                                    .num = p->num,
                                    .kind = n->type == NODE_SWITCH ? TELE_OF_SWITCH : TELE_OF_HCA,
                                    .node = fabric_desc(c->f, n),
                                    .sw = at_switch ? fabric_desc(c->f, peer) : ""});
}

static void uplink_of_port(struct render *r, const struct metrics_copy *c, const struct port *p)
{
    const struct node *peer = fabric_peer_node(c->f, p);
    if (peer == NULL)
        return;
    const struct port *far = fabric_port(c->f, p->peer);
    fabric_port_labels(r, c, p);
    metrics_label(&r->scratch, "uplink", fabric_desc(c->f, peer));
    guid_label(&r->scratch, "uplink_guid", peer->guid);
    metrics_label(&r->scratch, "uplink_type",
                  peer->type == NODE_SWITCH ? "SW"
                  : peer->type == NODE_CA   ? "CA"
                                            : "RT");
    number_label(&r->scratch, "uplink_port", far->num);
    number_label(&r->scratch, "uplink_lid", peer->type == NODE_SWITCH ? node_lid(c->f, peer) : far->a.lid);
    put(r, 1);
}

static void uplinks_of(struct render *r, const struct metrics_copy *c, const struct node *n)
{
    each_port(r, c, n, uplink_of_port);
}

static bool port_is_up(const struct port *p)
{
    return p->a.state > PORT_DOWN;
}

static void state_of_port(struct render *r, const struct metrics_copy *c, const struct port *p)
{
    fabric_port_labels(r, c, p);
    put(r, port_is_up(p));
}

static void states_of(struct render *r, const struct metrics_copy *c, const struct node *n)
{
    each_port(r, c, n, state_of_port);
}

// --- rates ---

struct lane {
    double raw, effective; // Gb/s, as the line goes and behind its coding; 0: not known
};

static struct lane lane_rate(const struct port_attrs *a)
{
    static const struct lane plain
        [] = {[1] = {2.5, 2}, [2] = {5, 4}, [4] = {10, 8}},
   ext[] =
        {[1] = {14.0625, 13.64}, [2] = {25.78125, 25}, [4] = {50, 50}, [8] = {100, 100}, [16] = {200, 200}},
   fdr10 = {10.3125, 10};
    if (a->fdr10)
        return fdr10;
    if (a->speed_ext_active != 0 && a->speed_ext_active < sizeof(ext) / sizeof(ext[0]))
        return ext[a->speed_ext_active];
    return plain[a->speed_active < sizeof(plain) / sizeof(plain[0]) ? a->speed_active : 0];
}

static double bytes_per_s(const struct port *p, bool raw)
{
    struct lane l = lane_rate(&p->a);
    return port_is_up(p) ? (raw ? l.raw : l.effective) * mad_width_lanes(p->a.width_active) * 1e9 / 8 : 0;
}

static void rate_of_port(struct render *r, const struct metrics_copy *c, const struct port *p, bool raw)
{
    double v = bytes_per_s(p, raw);
    if (v == 0)
        return;
    fabric_port_labels(r, c, p);
    put(r, v);
}

static void effective_of_port(struct render *r, const struct metrics_copy *c, const struct port *p)
{
    rate_of_port(r, c, p, false);
}

static void raw_of_port(struct render *r, const struct metrics_copy *c, const struct port *p)
{
    rate_of_port(r, c, p, true);
}

// An adapter has one such series, without a port: its fastest.
static void rate_of_hca(struct render *r, const struct metrics_copy *c, const struct node *n, bool raw)
{
    double most = 0;
    for (unsigned i = 0; i < n->num_ports; i++) {
        double v = bytes_per_s(&c->f->port[n->first_port + i], raw);
        most = v > most ? v : most;
    }
    if (most == 0)
        return;
    node_labels(r, c, n);
    put(r, most);
}

static void effective_of(struct render *r, const struct metrics_copy *c, const struct node *n)
{
    if (n->type == NODE_SWITCH)
        each_port(r, c, n, effective_of_port);
    else
        rate_of_hca(r, c, n, false);
}

static void raw_of(struct render *r, const struct metrics_copy *c, const struct node *n)
{
    if (n->type == NODE_SWITCH)
        each_port(r, c, n, raw_of_port);
    else
        rate_of_hca(r, c, n, true);
}

// --- whether devices give their counters ---

enum answered {
    ANSWER_NONE_DUE,
    ANSWER_GOOD,
    ANSWER_FAILED,
};

static enum answered answered(uint8_t unread)
{
    switch ((enum tele_unread)unread) {
    case TELE_READ:
        return ANSWER_GOOD;
    case TELE_NOT_YET:
    case TELE_GONE:
        return ANSWER_NONE_DUE;
    case TELE_NO_ANSWER:
    case TELE_REFUSED:
    case TELE_NO_PMA:
    case TELE_WRONG:
    case TELE_SLOW:
        return ANSWER_FAILED;
    }
    return ANSWER_NONE_DUE;
}

// The worst of its ports, by node.
static uint8_t *worst_of_nodes(const struct metrics_copy *c)
{
    uint8_t *worst = xcalloc(c->f->num_nodes + 1ul, 1);
    uint32_t node;
    for (uint32_t i = 0; i < c->num; i++) {
        uint8_t a = answered(c->port[i].unread);
        if (u64map_get(&c->f->by_guid, c->names->name[c->port[i].slot].node_guid, &node) && a > worst[node])
            worst[node] = a;
    }
    return worst;
}

// Devices that the blueprint has and nobody sees any more: dashboards and alerts must not lose them.
static void away(struct render *r, const struct metrics_copy *c, unsigned kind)
{
    uint32_t at;
    for (uint32_t k = 0; c->f != NULL && c->known != NULL && k < c->known->num_nodes; k++) {
        const struct node *n = &c->known->node[k];
        if (!is_kind(n, kind) || !metrics_part_has(&c->part, n->guid) ||
            u64map_get(&c->f->by_guid, n->guid, &at))
            continue;
        labels_of(r, c, c->known, n);
        put(r, 0);
    }
}

static void up(struct render *r, uint8_t *const *worst, unsigned kind)
{
    for (unsigned i = 0; i < r->n; i++) {
        const struct metrics_copy *c = &r->fabric[i];
        for (uint32_t k = 0; c->f != NULL && k < c->f->num_nodes; k++) {
            if (!is_kind(&c->f->node[k], kind) || worst[i][k] == ANSWER_NONE_DUE)
                continue;
            node_labels(r, c, &c->f->node[k]);
            put(r, worst[i][k] == ANSWER_GOOD);
        }
        away(r, c, kind);
    }
}

static void ups(struct render *r)
{
    uint8_t **worst = xcalloc(r->n + 1ul, sizeof(*worst));
    for (unsigned i = 0; i < r->n; i++)
        if (r->fabric[i].f != NULL)
            worst[i] = worst_of_nodes(&r->fabric[i]);
    metrics_family(r->p, "infiniband_switch_up", METRIC_GAUGE,
                   "1 when the last sweep has read the counters of all its cabled ports, else 0; 0 too where "
                   "it is away");
    up(r, worst, TELE_OF_SWITCH);
    metrics_family(r->p, "infiniband_hca_up", METRIC_GAUGE,
                   "1 when the last sweep has read the counters of all its cabled ports, else 0; 0 too where "
                   "it is away");
    up(r, worst, TELE_OF_HCA);
    for (unsigned i = 0; i < r->n; i++)
        free(worst[i]);
    free(worst);
}

static void family_of_nodes(struct render *r, const char *name, enum metric_type type, const char *help,
                            unsigned kind, node_fn *fn)
{
    metrics_family(r->p, name, type, help);
    each_node(r, kind, fn);
}

// --- what ibdiagnet has seen: modules, temperatures, fans, power supplies ---

static const struct tele_module *module_of(const struct metrics_copy *c, const struct port *p)
{
    const struct tele_module *m = NULL;
    if (c->modules != NULL && p->num > 0) {
        m = tele_modules_find(c->modules, fabric_node(c->f, p->node)->guid, p->num);
        m = m != NULL ? m : tele_modules_find(c->modules, p->guid, p->num);
    }
    return m != NULL && m->taken_ns >= c->modules_from_ns ? m : NULL;
}

static void module_temperature(struct render *r, const struct metrics_copy *c, const struct port *p)
{
    const struct tele_module *m = module_of(c, p);
    if (m == NULL || isnan(m->celsius))
        return;
    fabric_port_labels(r, c, p);
    put(r, m->celsius);
}

static void module_powers(struct render *r, const struct metrics_copy *c, const struct port *p, bool rx)
{
    const struct tele_module *m = module_of(c, p);
    for (unsigned i = 0; m != NULL && i < m->lanes && i < MODULE_LANES; i++) {
        double v = rx ? m->rx_dbm[i] : m->tx_dbm[i];
        if (isnan(v))
            continue;
        fabric_port_labels(r, c, p);
        number_label(&r->scratch, "lane", i + 1);
        put(r, v);
    }
}

static void module_rx(struct render *r, const struct metrics_copy *c, const struct port *p)
{
    module_powers(r, c, p, true);
}

static void module_tx(struct render *r, const struct metrics_copy *c, const struct port *p)
{
    module_powers(r, c, p, false);
}

static void module_temperatures_of(struct render *r, const struct metrics_copy *c, const struct node *n)
{
    each_port(r, c, n, module_temperature);
}

static void module_rx_of(struct render *r, const struct metrics_copy *c, const struct node *n)
{
    each_port(r, c, n, module_rx);
}

static void module_tx_of(struct render *r, const struct metrics_copy *c, const struct node *n)
{
    each_port(r, c, n, module_tx);
}

static const struct tele_device *device_of(const struct metrics_copy *c, const struct node *n)
{
    const struct tele_device *d = c->modules != NULL ? tele_device_find(c->modules, n->guid) : NULL;
    return d != NULL && d->taken_ns >= c->modules_from_ns ? d : NULL;
}

static void temperature_of(struct render *r, const struct metrics_copy *c, const struct node *n)
{
    const struct tele_device *d = device_of(c, n);
    if (d == NULL || isnan(d->celsius))
        return;
    node_labels(r, c, n);
    put(r, d->celsius);
}

static void fans_of(struct render *r, const struct metrics_copy *c, const struct node *n)
{
    const struct tele_device *d = device_of(c, n);
    for (uint32_t i = 0; d != NULL && i < d->num_fans; i++) {
        if (d->fan[i].rpm < 0)
            continue;
        node_labels(r, c, n);
        number_label(&r->scratch, "fan", d->fan[i].index);
        put(r, d->fan[i].rpm);
    }
}

// Of all fans together, as the device's own tool has it.
static void fan_status_of(struct render *r, const struct metrics_copy *c, const struct node *n)
{
    const struct tele_device *d = device_of(c, n);
    bool known = false, failed = d != NULL && d->slow_fans != 0;
    for (uint32_t i = 0; d != NULL && i < d->num_fans; i++) {
        known = known || d->fan[i].state != PART_UNKNOWN;
        failed = failed || d->fan[i].state == PART_FAILED;
    }
    if (!known && !failed)
        return;
    node_labels(r, c, n);
    metrics_label(&r->scratch, "status", failed ? "ERROR" : "OK");
    put(r, 1);
}

static void psu_info(struct render *r, const struct metrics_copy *c, const struct node *n,
                     const struct tele_psu *p, const char *status)
{
    node_labels(r, c, n);
    number_label(&r->scratch, "psu", p->index);
    metrics_label(&r->scratch, "status", status);
    put(r, 1);
}

static void psus_of(struct render *r, const struct metrics_copy *c, const struct node *n)
{
    const struct tele_device *d = device_of(c, n);
    for (uint32_t i = 0; d != NULL && i < d->num_psus; i++)
        if (d->psu[i].state == PART_OK || d->psu[i].state == PART_FAILED)
            psu_info(r, c, n, &d->psu[i], d->psu[i].state == PART_OK ? "OK" : "ERROR");
}

static void psu_dc_of(struct render *r, const struct metrics_copy *c, const struct node *n)
{
    const struct tele_device *d = device_of(c, n);
    for (uint32_t i = 0; d != NULL && i < d->num_psus; i++)
        if (d->psu[i].dc[0] != 0 && d->psu[i].state != PART_ABSENT)
            psu_info(r, c, n, &d->psu[i], d->psu[i].dc);
}

static void psu_fans_of(struct render *r, const struct metrics_copy *c, const struct node *n)
{
    const struct tele_device *d = device_of(c, n);
    for (uint32_t i = 0; d != NULL && i < d->num_psus; i++)
        if (d->psu[i].fan[0] != 0 && d->psu[i].state != PART_ABSENT)
            psu_info(r, c, n, &d->psu[i], d->psu[i].fan);
}

static void environment(struct render *r)
{
    char name[90];
    for (unsigned kind = TELE_OF_SWITCH; kind <= TELE_OF_HCA; kind++) {
        snprintf(name, sizeof(name), "infiniband_%s_temperature_celsius", kind_name[kind]);
        family_of_nodes(r, name, METRIC_GAUGE, "Temperature of the ASIC, from ibdiagnet's file", kind,
                        temperature_of);
        snprintf(name, sizeof(name), "infiniband_%s_port_module_temperature_celsius", kind_name[kind]);
        family_of_nodes(r, name, METRIC_GAUGE, "Temperature of the module, from ibdiagnet's file", kind,
                        module_temperatures_of);
        snprintf(name, sizeof(name), "infiniband_%s_port_module_rx_power_dbm", kind_name[kind]);
        family_of_nodes(r, name, METRIC_GAUGE, "Optical power received by lane, from ibdiagnet's file", kind,
                        module_rx_of);
        snprintf(name, sizeof(name), "infiniband_%s_port_module_tx_power_dbm", kind_name[kind]);
        family_of_nodes(r, name, METRIC_GAUGE, "Optical power sent by lane, from ibdiagnet's file", kind,
                        module_tx_of);
    }
    family_of_nodes(r, "infiniband_switch_fan_rpm", METRIC_GAUGE, "Turns a minute of a fan", TELE_OF_SWITCH,
                    fans_of);
    family_of_nodes(r, "infiniband_switch_fan_status_info", METRIC_INFO, "Whether all fans are well",
                    TELE_OF_SWITCH, fan_status_of);
    family_of_nodes(r, "infiniband_switch_power_supply_status_info", METRIC_INFO,
                    "Whether a power supply is well", TELE_OF_SWITCH, psus_of);
    family_of_nodes(r, "infiniband_switch_power_supply_dc_power_status_info", METRIC_INFO,
                    "Its DC side, in the device's words", TELE_OF_SWITCH, psu_dc_of);
    family_of_nodes(r, "infiniband_switch_power_supply_fan_status_info", METRIC_INFO,
                    "Its fan, in the device's words", TELE_OF_SWITCH, psu_fans_of);
}

static void devices(struct render *r)
{
    environment(r);
    ups(r);
    family_of_nodes(r, "infiniband_switch_port_state", METRIC_GAUGE, "1 when the link is up, else 0",
                    TELE_OF_SWITCH, states_of);
    family_of_nodes(r, "infiniband_switch_info", METRIC_INFO, "A switch and its LID", TELE_OF_SWITCH,
                    info_of);
    family_of_nodes(r, "infiniband_hca_info", METRIC_INFO, "An adapter and its LID", TELE_OF_HCA, info_of);
    family_of_nodes(r, "infiniband_switch_uplink_info", METRIC_INFO, "What a port is cabled to",
                    TELE_OF_SWITCH, uplinks_of);
    family_of_nodes(r, "infiniband_hca_uplink_info", METRIC_INFO, "What a port is cabled to", TELE_OF_HCA,
                    uplinks_of);
}

static void rates(struct render *r)
{
    family_of_nodes(r, "infiniband_switch_port_rate_bytes_per_second", METRIC_GAUGE,
                    "What the link carries, behind its coding", TELE_OF_SWITCH, effective_of);
    family_of_nodes(r, "infiniband_switch_port_raw_rate_bytes_per_second", METRIC_GAUGE,
                    "What the link signals, before its coding", TELE_OF_SWITCH, raw_of);
    family_of_nodes(r, "infiniband_hca_port_rate_bytes_per_second", METRIC_GAUGE,
                    "What the adapter's fastest link carries, behind its coding", TELE_OF_HCA, effective_of);
    family_of_nodes(r, "infiniband_hca_port_raw_rate_bytes_per_second", METRIC_GAUGE,
                    "What the adapter's fastest link signals, before its coding", TELE_OF_HCA, raw_of);
}

void metrics_render(struct metrics_page *p, const struct metrics_copy *fabric, unsigned n, unsigned classes)
{
    struct render r = {.p = p, .fabric = fabric, .n = n};
    counters(&r, classes);
    guilbaults(&r, classes);
    port_gauges(&r, classes);
    if (classes >> METRICS_ERRORS & 1)
        health(&r);
    if (classes >> METRICS_TRAFFIC & 1)
        rates(&r);
    if (classes >> METRICS_NODES & 1)
        devices(&r);
    buf_done(&r.scratch);
}
