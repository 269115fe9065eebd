// SPDX-License-Identifier: Apache-2.0
// L05: links that are narrower or slower than they should be, by what their ends and cables like them say
// (tele_is_slow()), or than they were themselves before, since weftd began.
#include <stdio.h>

#include "lib/text.h"
#include "telemetry/health_priv.h"
#include "telemetry/rate.h"

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
    uint32_t does = port_rate_mbps(&a->a);
    if (tele_is_slow(h->t->fabric, a, text, size))
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
    text_print(f->reason, sizeof(f->reason), "%s", text);
    snprintf(f->evidence, sizeof(f->evidence), "{\"mbps\":%u}", h->port[l->slot[0]].rate_mbps);
}
