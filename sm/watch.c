// SPDX-License-Identifier: Apache-2.0
// Between sweeps: the light sweep and its standing list, the traps that devices send, and the SMInfo that
// other managers ask for.
//
// A light sweep is one Get(SwitchInfo) per switch (PortStateChange says that a port of it changed; a top
// below what was written, that it was reset) and one request for each exception: a port that is up with
// silence behind it, a device without a description. A change asks for a sweep of the whole fabric. Sweeps
// that follow each other without finding any change are spaced out, up to a minute.
#include <errno.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/log.h"
#include "sm/sm_priv.h"

#define BACKOFF_MAX (60 * MONO_S)
#define TRAP_SETTLE (2 * MONO_MS) // the other end's trap is on its way

static void changed(struct sm *sm, const char *cause)
{
    if (!sm->light.changed)
        sm->light.cause = cause;
    sm->light.changed = true;
}

static void light_end(struct sm *sm)
{
    sm->light.running = false;
    sm->num_light++;
    if (sm->light.changed && !sm->resweep) {
        log_debug("light-sweep-change", "fabric=%s cause=%s", sm->o.fabric, sm->light.cause);
        sm_resweep(sm, sm->light.cause, false);
        return;
    }
    sm_watch_arm(sm);
}

static void light_one_done(struct sm *sm)
{
    if (--sm->light.pending == 0)
        light_end(sm);
}

static void light_switch_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    struct sm_dev *d = sm->dev[user];
    struct mad_switch_info si;

    if (r->status != 0) {
        changed(sm, "switch-silent");
    } else if (r->mad_status == 0) {
        mad_switch_info_decode(r->data, &si);
        if (si.port_state_change)
            changed(sm, "switch-change");
        else if (si.linear_fdb_top < d->si.linear_fdb_top || si.life_time_value != d->si.life_time_value)
            changed(sm, "switch-reset");
    }
    light_one_done(sm);
}

static void light_probe_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    (void)user;
    if (r->status == 0 && r->mad_status == 0)
        changed(sm, "silent-device-answers");
    light_one_done(sm);
}

static void light_description_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    (void)user;
    if (r->status == 0 && r->mad_status == 0)
        changed(sm, "description");
    light_one_done(sm);
}

static void probe_exception(struct sm *sm, const struct sm_dev *d, unsigned num)
{
    struct dr_path path = d->path;
    if (path.hops >= MAD_MAX_HOPS)
        return;
    path.port[++path.hops] = (uint8_t)num;
    sm->light.pending++;
    sm->light.exceptions++;
    mad_engine_send(sm->engine, &(struct mad_request){
                                    .mgmt_class = MAD_CLASS_SM_DR,
                                    .method = MAD_METHOD_GET,
                                    .attr_id = MAD_ATTR_NODE_INFO,
                                    .path = &path,
                                    .device = hash_mix64(d->guid ^ num),
                                    .retries = 0, // it is asked again in a second
                                    .done = light_probe_done,
                                    .arg = sm,
                                });
}

static bool local_port_changed(struct sm *sm)
{
    struct transport_port now;
    if (sm->transport->ops->port(sm->transport, &now) != 0)
        return true;
    return (now.state >= MAD_PORT_INIT) != (sm->own.state >= MAD_PORT_INIT) || now.state == MAD_PORT_INIT ||
           now.port_guid != sm->own.port_guid;
}

static void light_begin(struct sm *sm)
{
    sm->light.running = true;
    sm->light.changed = false;
    sm->light.exceptions = 0;
    sm->light.pending = 1;
    if (local_port_changed(sm))
        changed(sm, "local-port");
    bool any_switch = false;
    for (uint32_t i = 0; i < sm->num_dev; i++) {
        struct sm_dev *d = sm->dev[i];
        if (!dev_here(sm, d))
            continue;
        if (dev_is_switch(d)) {
            any_switch = true;
            sm->light.pending++;
            sm_request(sm, d, 0, MAD_METHOD_GET, MAD_ATTR_SWITCH_INFO, 0, NULL, light_switch_done, NULL, i);
            for (unsigned num = 1; num <= d->ni.num_ports; num++)
                if (d->port[num].excluded == PORT_EXCLUDED_PEER_SILENT)
                    probe_exception(sm, d, num);
        }
        if (!d->have_desc) {
            sm->light.pending++;
            sm->light.exceptions++;
            sm_request(sm, d, 0, MAD_METHOD_GET, MAD_ATTR_NODE_DESCRIPTION, 0, NULL, light_description_done,
                       NULL, i);
        }
    }
    if (!any_switch) // two ports back to back: only a whole sweep tells
        changed(sm, "no-switch");
    light_one_done(sm);
}

static void timer_fired(void *arg)
{
    struct sm *sm = arg;
    if (sm->sweeping || sm->light.running)
        return;
    if (sm->resweep) {
        sm_sweep_begin_asked(sm);
        return;
    }
    if (!sm->up || sm->state != SM_MASTER)
        sm_resweep(sm, sm->state == SM_STANDBY ? "watch-master" : "retry", false);
    else
        light_begin(sm);
}

// How long to wait before a sweep that the last ones make look useless: nothing changed in it, or it failed.
static int64_t backoff(struct sm *sm)
{
    const struct sm_sweep *s = sm_history(sm, 0);
    bool useless =
        s != NULL && (!s->ok || (s->lft_blocks_set == 0 && s->port_sets == 0 &&
                                 s->nodes_added + s->nodes_removed + s->links_added + s->links_removed == 0));
    if (!useless) {
        sm->light.backoff_ns = 0;
        return 0;
    }
    sm->light.backoff_ns = sm->light.backoff_ns ? sm->light.backoff_ns * 2 : 100 * MONO_MS;
    if (sm->light.backoff_ns > BACKOFF_MAX)
        sm->light.backoff_ns = BACKOFF_MAX;
    return sm->light.backoff_ns;
}

void sm_watch_arm(struct sm *sm)
{
    if (sm->sweeping || sm->light.running)
        return;
    bool asked = sm->resweep && sm->resweep_cause != NULL;
    if (asked) {
        bool by_hand = strcmp(sm->resweep_cause, "start") == 0 ||
                       strcmp(sm->resweep_cause, "operator") == 0 || sm->reroute;
        bool by_trap = strcmp(sm->resweep_cause, "trap") == 0;
        loop_timer_after(&sm->light.timer, by_hand ? 0 : by_trap ? TRAP_SETTLE : backoff(sm));
    } else if (sm->state == SM_STANDBY) {
        loop_timer_after(&sm->light.timer, 5 * MONO_S);
    } else if (!sm->up) {
        int64_t b = backoff(sm);
        loop_timer_after(&sm->light.timer, b > MONO_S ? b : MONO_S);
    } else if (sm->o.sweep_interval_ns > 0) {
        loop_timer_after(&sm->light.timer, sm->o.sweep_interval_ns);
    }
}

// --- unsolicited ---

static void trap_repress(struct sm *sm, const uint8_t *mad, const struct mad_addr *from)
{
    uint8_t answer[MAD_SIZE];
    memcpy(answer, mad, MAD_SIZE);
    answer[3] = MAD_METHOD_TRAP_REPRESS;
    mad_engine_reply(sm->engine, answer, from);
}

static void trap(struct sm *sm, const uint8_t *mad, const struct mad_addr *from)
{
    struct mad_notice n;

    mad_notice_decode(mad + MAD_SMP_DATA_OFFSET, &n);
    trap_repress(sm, mad, from);
    if (!n.is_generic) {
        log_remote(from->lid, "trap-vendor", "fabric=%s", sm->o.fabric);
        return;
    }
    if (n.issuer_lid == sm->own_lid && n.trap_number == MAD_TRAP_LOCAL_CHANGES)
        return; // our own IsSM bit
    log_remote(from->lid, "trap", "fabric=%s number=%u issuer_lid=%u", sm->o.fabric, n.trap_number,
               n.issuer_lid);
    if (sm->state == SM_MASTER &&
        (n.trap_number == MAD_TRAP_LINK_STATE_CHANGE || n.trap_number == MAD_TRAP_LOCAL_CHANGES))
        sm_resweep(sm, "trap", false);
}

static void answer_sm_info(struct sm *sm, const uint8_t *mad, const struct mad_addr *from)
{
    uint8_t answer[MAD_SIZE];
    struct mad_sm_info si = {
        .guid = sm->own.port_guid,
        .sm_key = sm->o.sm_key,
        .act_count = ++sm->act_count,
        .priority = sm->o.priority,
        .sm_state = (uint8_t)sm->state,
    };
    memcpy(answer, mad, MAD_SIZE);
    answer[3] = MAD_METHOD_GET_RESP;
    answer[4] = mad[1] == MAD_CLASS_SM_DR ? 0x80 : 0; // the direction bit
    answer[5] = 0;
    memset(answer + MAD_SMP_DATA_OFFSET, 0, MAD_SMP_DATA_SIZE);
    if (mad[3] == MAD_METHOD_SET) // election comes by Set; not taken: 14.4.1
        answer[5] = MAD_STATUS_BAD_VALUE;
    mad_sm_info_encode(&si, answer + MAD_SMP_DATA_OFFSET);
    mad_engine_reply(sm->engine, answer, from);
}

static void unsolicited(void *arg, const uint8_t *mad, const struct mad_addr *from)
{
    struct sm *sm = arg;
    struct mad_hdr h;

    mad_hdr_decode(mad, &h);
    if (h.method == MAD_METHOD_TRAP && h.attr_id == MAD_ATTR_NOTICE)
        trap(sm, mad, from);
    else if ((h.method == MAD_METHOD_GET || h.method == MAD_METHOD_SET) && h.attr_id == MAD_ATTR_SM_INFO)
        answer_sm_info(sm, mad, from);
}

void sm_watch_init(struct sm *sm)
{
    loop_timer_init(&sm->light.timer, sm->loop, "sm", timer_fired, sm);
    mad_engine_handler(sm->engine, MAD_CLASS_SM_LID, unsolicited, sm);
}

void sm_watch_done(struct sm *sm)
{
    loop_timer_cancel(&sm->light.timer);
}
