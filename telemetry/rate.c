// SPDX-License-Identifier: Apache-2.0
// Arithmetic on counters. Capacities are of data: what is left of the nominal rate after line coding (8b/10b
// up to QDR takes a fifth; FDR's products are named by a rate that includes 64b/66b; the others are not).
#include "telemetry/rate.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#define SECOND 1e9

double tele_capacity(const struct tele_table *t, uint32_t slot)
{
    const struct tele_port *p = &t->port[slot];
    double bytes = p->rate_mbps * 1e6 / 8;
    if (t->fabric == NULL || p->port == ID_NONE)
        return bytes;
    const struct port_attrs *a = &t->fabric->port[p->port].a;
    if (a->speed_ext_active == 0)
        return a->fdr10 ? bytes : bytes * 0.8;
    return a->speed_ext_active == 1 ? bytes * (14.0625 * 64 / 66) / 14 : bytes;
}

// Those that do not count by 8 bytes of the port: NVIDIA, ibdiagnet user manual 2.13, "Congestion Assessment
// on InfiniBand Links" (32 bytes of each lane). NodeInfo.DeviceID as in the PCI ID database: SwitchX 51000,
// Switch-IB 52000, Switch-IB 2 53000.
static const struct {
    uint32_t vendor;
    uint16_t device;
    uint8_t lane_bytes;
} slow_tick[] = {
    {0x0002c9, 0xc738, 32},
    {0x0002c9, 0xcb20, 32},
    {0x0002c9, 0xcf08, 32},
};

unsigned tele_wait_tick_bytes(uint32_t vendor_id, uint16_t device_id, unsigned lanes)
{
    for (size_t i = 0; i < sizeof(slow_tick) / sizeof(slow_tick[0]); i++)
        if (slow_tick[i].vendor == vendor_id && slow_tick[i].device == device_id)
            return slow_tick[i].lane_bytes * (lanes ? lanes : 4);
    return 8;
}

unsigned tele_lanes(unsigned widths)
{
    return widths & 8 ? 12 : widths & 4 ? 8 : widths & 2 ? 4 : widths & 16 ? 2 : widths & 1;
}

static unsigned tick_of(const struct tele_table *t, const struct tele_port *p)
{
    if (t->fabric == NULL || p->port == ID_NONE)
        return 8;
    const struct node *n = fabric_node(t->fabric, t->fabric->port[p->port].node);
    return tele_wait_tick_bytes(n->vendor_id, n->device_id, p->lanes);
}

double tele_rate(const struct tele_table *t, uint32_t slot, enum tele_counter c)
{
    uint64_t d;
    int64_t ns = tele_interval(t, slot, c);
    if (ns <= 0 || !tele_delta(t, slot, c, &d))
        return NAN;
    return (double)d * SECOND / (double)ns;
}

static double share(double part, double whole)
{
    if (isnan(part) || whole <= 0)
        return NAN;
    return part < whole ? part / whole : 1;
}

void tele_use(const struct tele_table *t, uint32_t slot, struct tele_use *ret)
{
    double bytes = tele_capacity(t, slot), ticks = tele_rate(t, slot, TELE_XMIT_WAIT);
    *ret = (struct tele_use){
        .xmit_bps = tele_rate(t, slot, TELE_XMIT_DATA) * 4,
        .rcv_bps = tele_rate(t, slot, TELE_RCV_DATA) * 4,
        .xmit_pps = tele_rate(t, slot, TELE_XMIT_PKTS),
        .rcv_pps = tele_rate(t, slot, TELE_RCV_PKTS),
    };
    ret->xmit_used = share(ret->xmit_bps, bytes);
    ret->rcv_used = share(ret->rcv_bps, bytes);
    ret->held = share(ticks * tick_of(t, &t->port[slot]), bytes);
    // A tick counts when nothing was sent in it, so both together are at most all of the time; that the two
    // are not read in one instant may make them a hundredth more.
    if (ret->held > 1.01 - ret->xmit_used)
        ret->held = 1.01 - ret->xmit_used;
    ret->lost_bps = ret->held * bytes;
}

// --- what a cable should run at ---

#define SIBLINGS_MIN 3

static unsigned highest(unsigned bits)
{
    unsigned b = 1;
    while (bits >> 1 >= b)
        b <<= 1;
    return bits ? b : 0;
}

// Best that both ends have enabled, against what is. 0 in what is not known.
static bool is_below(const struct port_attrs *a, const struct port_attrs *b, char *text, size_t size)
{
    unsigned width = a->width_enabled & b->width_enabled, ext = a->speed_ext_enabled & b->speed_ext_enabled;
    unsigned best = tele_lanes(width), active = tele_lanes(a->width_active);
    struct port_attrs can = *a;
    if (best == 0 || active == 0)
        return false;
    if (ext && a->speed_ext_active < highest(ext) && !a->fdr10) {
        can.speed_ext_active = (uint8_t)highest(ext);
        snprintf(text, size, "%ux at %.0f Gb/s where both ends can %.0f", active, port_rate_mbps(a) / 1000.0,
                 port_rate_mbps(&can) / 1000.0);
        return true;
    }
    unsigned old = a->speed_enabled & b->speed_enabled;
    if (!ext && a->speed_ext_active == 0 && old && a->speed_active && a->speed_active < highest(old)) {
        can.speed_active = (uint8_t)highest(old);
        snprintf(text, size, "%ux at %.0f Gb/s where both ends can %.0f", active, port_rate_mbps(a) / 1000.0,
                 port_rate_mbps(&can) / 1000.0);
        return true;
    }
    if (active < best) {
        snprintf(text, size, "%ux where both ends can %ux", active, best);
        return true;
    }
    return false;
}

// What both ends say that they can, 0: they do not say.
static uint32_t best_mbps(const struct port_attrs *a, const struct port_attrs *z)
{
    static const uint8_t order[] = {8, 4, 2, 16, 1}; // 12x, 8x, 4x, 2x, 1x
    struct port_attrs best = *a;
    uint8_t widths = a->width_supported & z->width_supported;
    best.fdr10 = 0;
    best.width_active = 0;
    for (unsigned i = 0; i < sizeof(order) && !best.width_active; i++)
        best.width_active = widths & order[i];
    best.speed_ext_active = (uint8_t)highest(a->speed_ext_supported & z->speed_ext_supported);
    best.speed_active = (uint8_t)highest(a->speed_supported & z->speed_supported);
    return best.width_active ? port_rate_mbps(&best) : 0;
}

// Of the switch's other cables to nodes of the same role: most are faster, and both ends could.
static bool is_behind(const struct fabric *f, const struct port *p, char *text, size_t size)
{
    const struct node *n = fabric_node(f, p->node), *peer = fabric_peer_node(f, p);
    uint32_t does = port_rate_mbps(&p->a), faster = 0, others = 0;
    if (n->type != NODE_SWITCH || !peer || !does || best_mbps(&p->a, &fabric_port(f, p->peer)->a) <= does)
        return false;
    for (unsigned i = 1; i <= n->num_ports; i++) {
        const struct port *q = &f->port[n->first_port + i];
        const struct node *z = fabric_peer_node(f, q);
        if (!z || q == p || z->role != peer->role || q->a.state < PORT_INIT)
            continue;
        others++;
        faster += port_rate_mbps(&q->a) > does;
    }
    if (others < SIBLINGS_MIN || faster * 2 <= others)
        return false;
    snprintf(text, size, "%ux at %.0f Gb/s where %u of %u cables like it of the same switch are faster",
             tele_lanes(p->a.width_active), does / 1000.0, faster, others);
    return true;
}

bool tele_is_slow(const struct fabric *f, const struct port *p, char *text, size_t size)
{
    if (!port_valid(p->peer) || p->a.state < PORT_INIT)
        return false;
    const struct port *z = fabric_port(f, p->peer);
    return is_below(&p->a, &z->a, text, size) || is_behind(f, p, text, size) || is_behind(f, z, text, size);
}

// --- bit errors ---

// Mean of the Poisson distribution of which n is the 5 % or 95 % point, after Wilson and Hilferty (chi-square
// of 2n or 2n + 2 degrees); exact for none, within 1 % from 5 on.
#define Z95 1.6448536

static double wilson_hilferty(double degrees, double z)
{
    double d = 2 / (9 * degrees), x = 1 - d + z * sqrt(d);
    return x > 0 ? degrees * x * x * x / 2 : 0;
}

// Of few errors the distribution itself: P(X <= n) at a mean.
static double at_most(unsigned n, double mean)
{
    double term = exp(-mean), sum = term;
    for (unsigned k = 1; k <= n; k++)
        sum += term *= mean / k;
    return sum;
}

static double mean_where(unsigned n, double chance)
{
    double lo = 0, hi = n * 2 + 20;
    for (int i = 0; i < 40; i++) {
        double mid = (lo + hi) / 2;
        if (at_most(n, mid) > chance)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

#define FEW 20

static double bound_low(double n)
{
    if (n <= 0)
        return 0;
    return n <= FEW && n == floor(n) ? mean_where((unsigned)n - 1, 0.95) : wilson_hilferty(2 * n, -Z95);
}

static double bound_high(double n)
{
    if (n <= 0)
        return -log(0.05);
    return n <= FEW && n == floor(n) ? mean_where((unsigned)n, 0.05) : wilson_hilferty(2 * n + 2, Z95);
}

static bool can_say(double errors, double bits, double limit)
{
    return bits > 0 && (bound_high(errors) <= limit * bits || bound_low(errors) > limit * bits);
}

// Times as many bits and errors, until it can be said.
static double times_needed(double errors, double bits, double limit)
{
    double lo = 1, hi = 1;
    if (errors <= 0)
        return -log(0.05) / limit / bits;
    while (hi < 1e9 && !can_say(errors * hi, bits * hi, limit))
        hi *= 2;
    for (int i = 0; i < 30 && hi < 1e9; i++) {
        double mid = (lo + hi) / 2;
        if (can_say(errors * mid, bits * mid, limit))
            hi = mid;
        else
            lo = mid;
    }
    return hi;
}

void tele_ber(uint64_t errors, double bits, double bits_per_s, double limit, struct tele_ber *ret)
{
    double n = (double)errors;
    *ret = (struct tele_ber){.estimate = NAN, .low = NAN, .high = NAN};
    if (bits > 0)
        *ret =
            (struct tele_ber){.estimate = n / bits, .low = bound_low(n) / bits, .high = bound_high(n) / bits};
    ret->enough = limit > 0 && can_say(n, bits, limit);
    if (ret->enough || limit <= 0)
        return;
    double need = bits > 0 ? bits * times_needed(n, bits, limit) : -log(0.05) / limit;
    ret->seconds_needed = bits_per_s > 0 ? (need - bits) / bits_per_s : INFINITY;
}
