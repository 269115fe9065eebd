// SPDX-License-Identifier: Apache-2.0
// Played subnet managers: the SMInfo side of a manager (IBA 14.4) at an end port, with state, priority and
// key as told. It sweeps nothing and writes nothing; a standby may poll its master and take over when that is
// silent; a master represses the traps that come to it.
//
// Controls (AttributeModifier of Set(SMInfo)) and where they are legal; all else is refused with status 7:
//   HANDOVER     standby -> master, master stays; answered with ACKNOWLEDGE to the sender
//   ACKNOWLEDGE  master that has sent HANDOVER -> standby
//   DISABLE      standby -> not active
//   STANDBY      not active -> standby
//   DISCOVER     standby -> discovering (and there it stays until told)
#include "sim/sim_priv.h"

#include <errno.h>
#include <string.h>

#include "lib/xalloc.h"

#define NO_STATUS 0xffff
#define POLL_MIN MONO_MS

struct played_sm {
    struct sim_sm_view v;
    bool used;
    uint32_t port;
    int64_t poll_due;
    uint32_t poll_tid, control_tid; // of the request under way, 0 none
    uint8_t control;
    unsigned missed; // in a row
};

static struct played_sm *sm_at(const struct sim *s, const struct sim_port *end)
{
    for (uint32_t i = 0; i < s->num_sms; i++)
        if (s->sm[i].used && s->sm[i].port == port_index(s, end))
            return &s->sm[i];
    return NULL;
}

static struct played_sm *sm_by_guid(const struct sim *s, uint64_t port_guid)
{
    const struct sim_port *end = sim_port_by_guid(s, port_guid);
    return end ? sm_at(s, end) : NULL;
}

bool sm_is_at(const struct sim *s, const struct sim_port *end)
{
    return s->num_sms > 0 && sm_at(s, end);
}

static struct sim_port *port_of(const struct sim *s, const struct played_sm *m)
{
    return &s->port[m->port];
}

static void write_info(const struct played_sm *m, uint8_t *data)
{
    struct mad_sm_info info = {
        .guid = m->v.sm.guid,
        .sm_key = m->v.sm.sm_key,
        .act_count = m->v.sm.act_count,
        .priority = m->v.sm.priority,
        .sm_state = m->v.sm.state,
    };
    memset(data, 0, MAD_SMP_DATA_SIZE);
    mad_sm_info_encode(&info, data);
}

// --- what it asks of others ---

static uint32_t ask(struct sim *s, struct played_sm *m, uint16_t dlid, uint8_t method, unsigned control)
{
    uint8_t data[MAD_SMP_DATA_SIZE];
    write_info(m, data);
    uint32_t tid = ++s->sm_tid;
    smp_send(s, port_of(s, m),
             &(struct smp_out){.dlid = dlid,
                               .method = method,
                               .attr_id = MAD_ATTR_SM_INFO,
                               .attr_mod = control,
                               .tid = (uint64_t)COOKIE_SM << 32 | tid,
                               .m_key = port_of(s, m)->pi.m_key,
                               .data = data});
    return tid;
}

static void send_control(struct sim *s, struct played_sm *m, uint16_t dlid, unsigned control)
{
    m->v.handovers_sent += control == MAD_SM_HANDOVER;
    m->v.acks_sent += control == MAD_SM_ACKNOWLEDGE;
    m->v.handover_open |= control == MAD_SM_HANDOVER;
    m->v.last_status = NO_STATUS;
    m->control = (uint8_t)control;
    m->control_tid = ask(s, m, dlid, MAD_METHOD_SET, control);
}

static void poll_later(struct sim *s, struct played_sm *m)
{
    if (m->v.sm.poll_ns <= 0)
        return;
    m->poll_due = s->now + m->v.sm.poll_ns;
    event_at(s, EV_SM, (uint32_t)(m - s->sm), m->poll_due);
}

static void poll(struct sim *s, struct played_sm *m)
{
    uint16_t master = port_of(s, m)->pi.master_sm_lid;
    if (m->poll_tid != 0) {
        m->v.polls_missed++;
        m->missed++;
    }
    if (m->v.sm.poll_misses > 0 && m->missed >= m->v.sm.poll_misses) {
        m->v.sm.state = MAD_SM_MASTER;
        m->poll_tid = m->missed = 0;
        return;
    }
    m->poll_tid = 0;
    if (master == 0 || node_silent(s, node_of(s, port_of(s, m))))
        return;
    m->v.polls++;
    m->poll_tid = ask(s, m, master, MAD_METHOD_GET, 0);
}

void sim_sm_event(struct sim *s, uint32_t i)
{
    struct played_sm *m = &s->sm[i];
    if (!m->used || m->poll_due != s->now)
        return;
    if (m->v.sm.state == MAD_SM_STANDBY && !m->v.sm.silent)
        poll(s, m);
    poll_later(s, m);
}

bool sm_answer(struct sim *s, const struct sim_port *end, const uint8_t *mad)
{
    struct played_sm *m = sm_at(s, end);
    uint32_t tid = wire_u32(mad + MAD_AT_TID + 4);
    if (!m || m->v.sm.silent)
        return false;
    if (tid == m->poll_tid) {
        m->poll_tid = m->missed = 0;
        return true;
    }
    if (tid != m->control_tid)
        return false;
    m->control_tid = 0;
    m->v.last_status = wire_u16(mad + MAD_AT_STATUS) & 0x7fff;
    if (m->control == MAD_SM_HANDOVER && m->v.last_status != 0)
        m->v.handover_open = false;
    return true;
}

// --- what others ask of it ---

static bool legal(const struct played_sm *m, unsigned control)
{
    uint8_t state = m->v.sm.state;
    switch (control) {
    case MAD_SM_HANDOVER:
        return state == MAD_SM_STANDBY || state == MAD_SM_MASTER;
    case MAD_SM_ACKNOWLEDGE:
        return state == MAD_SM_MASTER && m->v.handover_open;
    case MAD_SM_DISABLE:
    case MAD_SM_DISCOVER:
        return state == MAD_SM_STANDBY;
    case MAD_SM_STANDBY_REQUEST:
        return state == MAD_SM_NOT_ACTIVE;
    default:
        return false;
    }
}

static void obey(struct sim *s, struct played_sm *m, unsigned control, uint16_t from)
{
    switch ((enum mad_sm_control)control) {
    case MAD_SM_HANDOVER:
        m->v.handovers_got++;
        m->v.sm.state = MAD_SM_MASTER;
        send_control(s, m, from, MAD_SM_ACKNOWLEDGE);
        break;
    case MAD_SM_ACKNOWLEDGE:
        m->v.acks_got++;
        m->v.handover_open = false;
        m->v.sm.state = MAD_SM_STANDBY;
        break;
    case MAD_SM_DISABLE:
        m->v.sm.state = MAD_SM_NOT_ACTIVE;
        break;
    case MAD_SM_STANDBY_REQUEST:
        m->v.sm.state = MAD_SM_STANDBY;
        break;
    case MAD_SM_DISCOVER:
        m->v.sm.state = MAD_SM_DISCOVERING;
        break;
    }
}

static uint16_t set_info(struct sim *s, struct played_sm *m, const struct flight *f)
{
    struct mad_sm_info info;
    unsigned control = wire_u32(f->mad + MAD_AT_ATTR_MOD);
    mad_sm_info_decode(f->mad + MAD_AT_DATA, &info);
    m->v.sets++;
    bool key_ok = m->v.sm.sm_key == 0 || info.sm_key == m->v.sm.sm_key;
    if (!key_ok || !legal(m, control)) {
        m->v.refused++;
        return MAD_STATUS_BAD_VALUE;
    }
    obey(s, m, control, f->lid_leg ? f->slid : port_of(s, m)->pi.master_sm_lid);
    return 0;
}

static void trap_came(struct sim *s, struct played_sm *m, const struct flight *f)
{
    m->v.traps++;
    if (m->v.sm.state != MAD_SM_MASTER || !f->lid_leg)
        return;
    smp_send(s, port_of(s, m),
             &(struct smp_out){.dlid = f->slid,
                               .method = MAD_METHOD_TRAP_REPRESS,
                               .attr_id = MAD_ATTR_NOTICE,
                               .tid = wire_u64(f->mad + MAD_AT_TID),
                               .m_key = port_of(s, m)->pi.m_key,
                               .data = f->mad + MAD_AT_DATA});
}

bool sm_process(struct sim *s, struct flight *f, uint16_t *ret_status)
{
    struct played_sm *m = sm_at(s, end_port(s, &s->port[f->port]));
    uint8_t method = f->mad[MAD_AT_METHOD];
    if (!m || m->v.sm.silent)
        return false;
    if (method == MAD_METHOD_TRAP) {
        trap_came(s, m, f);
        return false;
    }
    if (method != MAD_METHOD_GET && method != MAD_METHOD_SET) {
        *ret_status = MAD_STATUS_BAD_METHOD_ATTR;
        return true;
    }
    m->v.gets += method == MAD_METHOD_GET;
    m->v.sm.act_count += !m->v.sm.frozen;
    *ret_status = method == MAD_METHOD_SET ? set_info(s, m, f) : 0;
    write_info(m, f->mad + MAD_AT_DATA);
    return true;
}

// --- what is done to it ---

static bool values_ok(const struct sim_sm *sm)
{
    return sm->state <= MAD_SM_MASTER && sm->priority <= 15 && time_ok(sm->poll_ns) &&
           (sm->poll_ns == 0 || sm->poll_ns >= POLL_MIN);
}

int sim_sm_add(struct sim *s, uint64_t port_guid, const struct sim_sm *sm)
{
    struct sim_port *end = sim_port_by_guid(s, port_guid);
    if (!end)
        return -ENOENT;
    if (!values_ok(sm))
        return -EINVAL;
    if (sm_at(s, end) || client_has_sm(s, end))
        return -EEXIST;
    uint32_t i = 0;
    while (i < s->num_sms && s->sm[i].used)
        i++;
    if (i == s->num_sms)
        s->sm = xreallocarray(s->sm, ++s->num_sms, sizeof(*s->sm));
    struct played_sm *m = &s->sm[i];
    *m = (struct played_sm){.used = true, .port = port_index(s, end), .v = {.sm = *sm}};
    m->v.last_status = NO_STATUS;
    if (m->v.sm.guid == 0)
        m->v.sm.guid = end->guid;
    sim_touch(s);
    end->pi.capability_mask |= MAD_CAP_IS_SM;
    trap_local_change(s, end, 0);
    poll_later(s, m);
    return 0;
}

int sim_sm_set(struct sim *s, uint64_t port_guid, const struct sim_sm *sm)
{
    struct played_sm *m = sm_by_guid(s, port_guid);
    if (!m)
        return -ENOENT;
    if (!values_ok(sm))
        return -EINVAL;
    sim_touch(s);
    struct sim_sm before = m->v.sm;
    m->v.sm = *sm;
    if (m->v.sm.guid == 0)
        m->v.sm.guid = before.guid;
    if (sm->priority != before.priority && !sm->quiet && !sm->silent)
        trap_local_change(s, port_of(s, m), SIM_CHANGE_SM_PRIORITY);
    if (sm->state != before.state)
        m->poll_tid = m->missed = 0;
    if (sm->poll_ns != before.poll_ns)
        poll_later(s, m);
    return 0;
}

void sm_forget(struct sim *s, struct sim_port *end)
{
    struct played_sm *m = s->num_sms > 0 ? sm_at(s, end) : NULL;
    if (!m)
        return;
    m->used = false;
    end->pi.capability_mask &= ~MAD_CAP_IS_SM;
    trap_local_change(s, end, 0);
}

int sim_sm_remove(struct sim *s, uint64_t port_guid)
{
    struct played_sm *m = sm_by_guid(s, port_guid);
    if (!m)
        return -ENOENT;
    sim_touch(s);
    sm_forget(s, port_of(s, m));
    return 0;
}

int sim_sm_control(struct sim *s, uint64_t port_guid, uint16_t to_lid, unsigned control)
{
    struct played_sm *m = sm_by_guid(s, port_guid);
    if (!m)
        return -ENOENT;
    if (control < MAD_SM_HANDOVER || control > MAD_SM_DISCOVER)
        return -EINVAL;
    sim_touch(s);
    send_control(s, m, to_lid, control);
    return 0;
}

static void view(const struct sim *s, const struct played_sm *m, struct sim_sm_view *ret)
{
    *ret = m->v;
    ret->port_guid = port_of(s, m)->label;
    ret->lid = port_of(s, m)->pi.lid;
}

int sim_sm_view(const struct sim *s, uint64_t port_guid, struct sim_sm_view *ret)
{
    const struct played_sm *m = sm_by_guid(s, port_guid);
    if (!m)
        return -ENOENT;
    view(s, m, ret);
    return 0;
}

int sim_sm_at(const struct sim *s, unsigned i, struct sim_sm_view *ret)
{
    for (uint32_t k = 0; k < s->num_sms; k++) {
        if (!s->sm[k].used || i-- > 0)
            continue;
        view(s, &s->sm[k], ret);
        return 0;
    }
    return -ENOENT;
}
