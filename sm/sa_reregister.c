// SPDX-License-Identifier: Apache-2.0
// ClientReregister (IBA 14.4.11): a port that is told so joins its groups and subscribes anew. At thousands
// of hosts that is a storm, so it is asked only of a port that has to: one whose MasterSMLID was not ours
// (new, reset, or managed by somebody else), one whose paths go by other lanes now, and, where groups were
// lost, every port once, SA_REREGISTER_A_SECOND of them a second.
#include "sm/sa_priv.h"

static bool may(const struct sm_dev *d, unsigned num, struct mad_port_info *ret)
{
    bool end = dev_is_switch(d) ? num == 0 && d->si.enhanced_port0 : num > 0;
    if (!end || num > d->ni.num_ports || !d->port[num].known || d->port[num].guid == 0)
        return false;
    mad_port_info_decode(d->port[num].info, ret);
    return ret->capability_mask & MAD_CAP_IS_CLIENT_REREGISTRATION_SUPPORTED;
}

static bool told(const struct sm_sa *sa, const struct sm_port *p)
{
    uint32_t v;
    return u64map_get(&sa->told, p->guid, &v);
}

static bool is_anew(const struct sm_sa *sa, const struct sm_port *p)
{
    uint32_t v;
    return sa->num_anew > 0 && u64map_get(&sa->anew, p->guid, &v) && v != 0;
}

enum { ANEW_DONE, ANEW, ANEW_FIRST };

void sm_sa_ask_anew(struct sm *sm, uint64_t port_guid, bool first)
{
    struct sm_sa *sa = sm->sa;
    uint32_t v = ANEW_DONE;
    if (sa == NULL || port_guid == 0 ||
        (u64map_get(&sa->anew, port_guid, &v) && v >= (first ? ANEW_FIRST : ANEW)))
        return;
    u64map_set(&sa->anew, port_guid, first ? ANEW_FIRST : ANEW);
    sa->num_anew += v == ANEW_DONE;
}

static void not_anew(struct sm_sa *sa, uint64_t guid)
{
    u64map_set(&sa->anew, guid, ANEW_DONE);
    sa->num_anew--;
}

bool sm_sa_wants_reregister(struct sm *sm, const struct sm_dev *d, unsigned num)
{
    struct sm_sa *sa = sm->sa;
    struct mad_port_info pi;

    if (sa == NULL || !may(d, num, &pi))
        return false;
    sa->reregisters = true;
    if (pi.master_sm_lid != sm->own_lid) // a new manager makes the port join again in any case
        return true;
    if (is_anew(sa, &d->port[num]))
        return sa->reregister_now > 0;
    return !sa->loaded && !told(sa, &d->port[num]) && sa->reregister_now > 0;
}

void sm_sa_reregistered(struct sm *sm, const struct sm_dev *d, unsigned num)
{
    struct sm_sa *sa = sm->sa;
    if (sa == NULL || num > d->ni.num_ports || d->port[num].guid == 0)
        return;
    if (is_anew(sa, &d->port[num]))
        not_anew(sa, d->port[num].guid);
    else if (told(sa, &d->port[num]))
        return;
    u64map_set(&sa->told, d->port[num].guid, 1);
    if (sa->reregister_now > 0)
        sa->reregister_now--;
}

// Of one urgency. A port that is gone, or cannot be told, is let go.
static uint32_t mark_anew(struct sm_sa *sa, uint32_t urgency, uint32_t n)
{
    struct sm *sm = sa->sm;
    struct mad_port_info pi;

    for (uint32_t i = 0; sa->num_anew > 0 && i <= sa->anew.mask && n < SA_REREGISTER_A_SECOND; i++) {
        const struct u64map_slot *s = &sa->anew.slot[i];
        if (!s->used || s->value != urgency)
            continue;
        port_id id = fabric_by_port_guid(sa->fabric, s->key);
        const struct port *p = port_valid(id) ? fabric_port(sa->fabric, id) : NULL;
        struct sm_dev *d = p != NULL ? sm_dev_find(sm, fabric_node(sa->fabric, p->node)->guid) : NULL;
        if (d == NULL || !dev_here(sm, d) || !may(d, p->num, &pi)) {
            not_anew(sa, s->key);
            continue;
        }
        sm_dirty_port(sm, d, p->num, "reregister");
        n++;
    }
    return n;
}

// Those that are left are looked at again, so that their PortInfo is Set.
void sa_reregister_second(struct sm_sa *sa)
{
    struct sm *sm = sa->sm;
    uint32_t n = 0;

    sa->reregister_now = SA_REREGISTER_A_SECOND;
    if (sa->num_anew > 0 && sa->ready && !sm->sweeping)
        n = mark_anew(sa, ANEW, mark_anew(sa, ANEW_FIRST, 0));
    if (sa->loaded || !sa->ready || !sa->reregisters || sm->sweeping)
        return;
    for (; sa->reregister_scan < sm->num_dev && n < SA_REREGISTER_A_SECOND; sa->reregister_scan++) {
        struct sm_dev *d = sm->dev[sa->reregister_scan];
        struct mad_port_info pi;
        for (unsigned num = 0; num <= d->ni.num_ports && dev_here(sm, d); num++)
            if (may(d, num, &pi) && !told(sa, &d->port[num])) {
                sm_dirty_port(sm, d, num, "reregister");
                n++;
            }
    }
}
