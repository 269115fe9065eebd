// SPDX-License-Identifier: Apache-2.0
// L05: links that are narrower or slower than they should be. What they should be: the best that both ends
// have enabled; where the ends enable no more than they run at (a cable that was enabled at 1x by hand, or
// that lost lanes and was set so since), what they can and most cables like it of the same switch do; and
// what the link itself ran at before, since weftd began.
#include <stdio.h>

#include "telemetry/health_priv.h"
#include "telemetry/rate.h"

#define SIBLINGS_MIN 3

static unsigned highest(unsigned bits)
{
    unsigned b = 1;
    while (bits >> 1 >= b)
        b <<= 1;
    return bits ? b : 0;
}

// Best that both ends have enabled, against what is. 0 in what is not known.
static bool is_slow(const struct port_attrs *a, const struct port_attrs *b, char *text, size_t size)
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

static const struct port *port_of(const struct health *h, uint32_t slot)
{
    const struct fabric *f = h->t->fabric;
    const struct tele_port *p = &h->t->port[slot];
    if (!f || p->port == ID_NONE || p->port >= f->num_ports)
        return NULL;
    const struct port *a = &f->port[p->port];
    return port_valid(a->peer) && a->a.state >= PORT_INIT ? a : NULL;
}

static bool slow_now(const struct health *h, uint32_t slot, char *text, size_t size)
{
    const struct port *a = port_of(h, slot);
    if (!a)
        return false;
    const struct port *z = fabric_port(h->t->fabric, a->peer);
    uint32_t does = port_rate_mbps(&a->a);
    if (is_slow(&a->a, &z->a, text, size) || is_behind(h->t->fabric, a, text, size) ||
        is_behind(h->t->fabric, z, text, size))
        return true;
    if (does == 0 || h->port[slot].rate_most <= does)
        return false;
    snprintf(text, size, "%ux at %.0f Gb/s; it ran at %.0f before", tele_lanes(a->a.width_active),
             does / 1000.0, h->port[slot].rate_most / 1000.0);
    return true;
}

// What it ran at, while it was in use.
static void note_rate(struct health *h, uint32_t slot)
{
    const struct port *a = port_of(h, slot);
    uint32_t mbps = a && a->a.state == PORT_ACTIVE ? port_rate_mbps(&a->a) : 0;
    if (mbps > h->port[slot].rate_most)
        h->port[slot].rate_most = mbps;
}

// A new snapshot: links that have become slow, or are no more.
void judge_slow(struct health *h)
{
    char text[160];
    for (uint32_t s = 0; s < h->num; s++) {
        if (h->port[s].mate == TELE_SLOT_NONE || h->port[s].mate < s)
            continue;
        note_rate(h, s);
        bool slow = slow_now(h, s, text, sizeof(text));
        if (!slow && !h->port[s].link)
            continue;
        struct health_link *l = health_link_get(h, s);
        if (!slow)
            l->slow_since = 0;
        else if (!l->slow_since)
            l->slow_since = h->now > 0 ? h->now : 1;
        health_wake(l, RULE_L05);
    }
}

void slow_judge(struct health *h, struct health_link *l, struct health_finding *f)
{
    const struct health_rule *rule = &health_rules[RULE_L05];
    char text[160] = "";
    f->seen_to = h->now;
    if (!l->slow_since)
        return;
    f->bad_at[0] = h->now;
    if (h->now - l->slow_since < rule->level[0].window || !slow_now(h, l->slot[0], text, sizeof(text)))
        return;
    f->level = 0;
    f->severity = rule->level[0].severity;
    snprintf(f->reason, sizeof(f->reason), "%s", text);
    snprintf(f->evidence, sizeof(f->evidence), "{\"mbps\":%u}", h->port[l->slot[0]].rate_mbps);
}
