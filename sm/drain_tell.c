// SPDX-License-Identifier: Apache-2.0
// Drains: what is told of them, and what becomes of them when tables are in force.
#include <stdio.h>
#include <stdlib.h>

#include "lib/guid.h"
#include "lib/mono.h"
#include "sm/drain_priv.h"
#include "sm/sm_priv.h"

const char *sm_drain_state_name(enum sm_drain_state s)
{
    static const char *const name[] = {"moving", "drained", "in-use"};
    return (unsigned)s < 3 ? name[s] : "?";
}

const char *sm_drain_no_other_way(uint32_t ends, uint32_t switches, char *buf, size_t size)
{
    char e[30] = "", s[30] = "";
    if (ends > 0)
        snprintf(e, sizeof(e), "%u end%s", ends, ends == 1 ? "" : "s");
    if (switches > 0)
        snprintf(s, sizeof(s), "%u switch%s", switches, switches == 1 ? "" : "es");
    snprintf(buf, size, "%s%s%s ha%s no other way", e, ends > 0 && switches > 0 ? " and " : "", s,
             ends + switches == 1 ? "s" : "ve");
    return buf;
}

static const char *because(const struct sm_drain *d, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s", d->reason[0] ? ": " : "", d->reason);
    return buf;
}

void sm_drain_tell_asked(struct sm *sm, const struct sm_drain *d)
{
    char text[SM_DRAIN_TEXT + 8];
    if (d->at.port > 0)
        sm_event(sm, "link-drained", "notice", d->name, "%s is being drained by %s%s; the other end is %s",
                 d->name, d->by, because(d, text, sizeof(text)), d->far_name);
    else
        sm_event(sm, "node-drained", "notice", d->name, "%s is being drained by %s%s", d->name, d->by,
                 because(d, text, sizeof(text)));
}

static void tell_in_force(struct sm *sm, const struct sm_drain *d)
{
    const char *kind = d->at.port > 0 ? "link-drain-in-force" : "node-drain-in-force";
    char who[100];
    if (d->state == SM_DRAIN_DRAINED)
        sm_event(sm, kind, "notice", d->name, "%s is drained: %s", d->name,
                 d->at.port > 0 ? "nothing uses it" : "nothing passes through it");
    else
        sm_event(sm, kind, "warning", d->name,
                 "%s is drained, %s and still use%s it; pulling it cuts them off", d->name,
                 sm_drain_no_other_way(d->ends, d->switches, who, sizeof(who)),
                 d->ends + d->switches == 1 ? "s" : "");
}

static void tell_undone(struct sm *sm)
{
    struct sm_drains *x = sm->drains;
    const struct sm_drain *d = &x->undone_first;
    char who[240];
    if (x->undone == 0)
        return;
    snprintf(who, sizeof(who), "%s is", d->name);
    if (x->undone > 1)
        snprintf(who, sizeof(who), "%s and %u more are", d->name, x->undone - 1);
    sm_event(sm, d->at.port > 0 ? "link-undrain-in-force" : "node-undrain-in-force", "notice", d->name,
             "%s undrained: traffic passes as without the drain", who);
    x->undone = 0;
}

// What the blueprint has lost, as one that was replaced does, comes back no more.
static void end_lost(struct sm *sm)
{
    struct sm_drains *x = sm->drains;
    const struct fabric *known = sm->blueprint.known;
    unsigned n = 0;
    for (unsigned i = 0; i < x->n && known != NULL; i++) {
        struct sm_drain d = x->item[i];
        bool had = d.in_blueprint;
        d.in_blueprint = fabric_by_guid(known, d.at.guid) != NULL;
        if (had && !d.in_blueprint && sm_drain_away(sm, &d)) {
            sm_event(sm, d.at.port > 0 ? "link-undrained" : "node-undrained", "notice", d.name,
                     "%s (" GUID_FMT ") is no part of the blueprint any more: its drain has ended", d.name,
                     GUID_ARG(d.at.guid));
            continue;
        }
        x->item[n++] = d;
    }
    if (known != NULL && n < x->n) {
        x->n = n;
        sm_drains_keep(sm);
    }
}

void sm_drains_adopt(struct sm *sm, const struct sm_drain_set *set)
{
    struct sm_drains *x = sm->drains;
    end_lost(sm);
    tell_undone(sm);
    x->in_force = set != NULL ? set->version : 0;
    free(x->now);
    x->now = sm_drain_set_copy(set);
    x->hang = set != NULL ? set->hang : 0;
    for (unsigned i = 0; set != NULL && i < set->n; i++) {
        const struct sm_drain_use *u = &set->use[i];
        for (unsigned k = 0; k < x->n; k++) {
            struct sm_drain *d = &x->item[k];
            if (!sm_drain_same(&d->at, &u->at))
                continue;
            enum sm_drain_state was = d->state;
            bool more = u->ends > d->ends || u->switches > d->switches;
            d->cables = u->cables;
            d->own = u->own;
            d->ends = u->ends;
            d->switches = u->switches;
            d->state = u->ends + u->switches > 0 ? SM_DRAIN_IN_USE : SM_DRAIN_DRAINED;
            if (was != d->state || (d->state == SM_DRAIN_IN_USE && more))
                tell_in_force(sm, d);
        }
    }
}

static const char *port_word(const struct sm_drain *d, char *buf, size_t size)
{
    buf[0] = 0;
    if (d->at.port > 0)
        snprintf(buf, size, " %u", d->at.port);
    return buf;
}

void sm_drains_find(const struct sm *sm, struct findings *f)
{
    char since[40], text[SM_DRAIN_TEXT + 8], who[100], port[8];
    for (unsigned i = 0; i < sm->drains->n; i++) {
        const struct sm_drain *d = &sm->drains->item[i];
        if (d->state == SM_DRAIN_IN_USE)
            findings_add(f, FINDING_WARNING, "drained-in-use", d->name,
                         "is drained, %s and still use%s it; pulling it cuts them off",
                         sm_drain_no_other_way(d->ends, d->switches, who, sizeof(who)),
                         d->ends + d->switches == 1 ? "s" : "");
        if (sm_drain_away(sm, d)) {
            findings_add(f, FINDING_INFO, "drained-away", d->name,
                         "(" GUID_FMT ") is drained and no longer there; it holds for when it comes back, or "
                         "ends by: weft %s undrain " GUID_FMT "%s",
                         GUID_ARG(d->at.guid), d->at.port > 0 ? "link" : "node", GUID_ARG(d->at.guid),
                         port_word(d, port, sizeof(port)));
            continue;
        }
        wall_format(d->since_ns, since, sizeof(since));
        findings_add(f, FINDING_INFO, "drained", d->name, "is drained since %s by %s%s", since, d->by,
                     because(d, text, sizeof(text)));
    }
}
