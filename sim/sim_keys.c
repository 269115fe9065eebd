// SPDX-License-Identifier: Apache-2.0
// Keys: M_Key protection, lease and violations of the subnet management agent (IBA 14.2.4), P_Keys and
// Q_Keys of GMPs at end ports and at switch ports that enforce (opts.p_key_check, opts.q_key_check).
//
// Protection: 0 shows the key to everybody and lets everybody read; 1 hides it; 2 and 3 refuse reads too. A
// Set or TrapRepress always needs it while there is one. What is refused is silence: a violation is counted,
// trap 256 raised, and the lease begins to run. A request with the key stops the lease; if it runs out, the
// protection bits become 0 (the key stays, and can then be read by a new manager).
#include "sim/sim_priv.h"

#include <errno.h>

#include "lib/mono.h"

void lease_event(struct sim *s, struct sim_port *end)
{
    if (!end->lease_runs || end->lease_end != s->now)
        return;
    end->lease_runs = false;
    end->pi.m_key_protect_bits = 0;
}

static void lease_begin(struct sim *s, struct sim_port *end)
{
    if (end->lease_runs || end->pi.m_key_lease_period == 0)
        return;
    end->lease_runs = true;
    end->lease_end = s->now + end->pi.m_key_lease_period * MONO_S;
    event_at(s, EV_LEASE, port_index(s, end), end->lease_end);
}

bool m_key_allows(struct sim *s, struct sim_port *end, const struct flight *f, bool *ret_matches)
{
    struct mad_port_info *pi = &end->pi;
    *ret_matches = pi->m_key == 0 || wire_u64(f->mad + MAD_AT_M_KEY) == pi->m_key;
    if (*ret_matches) {
        end->lease_runs = false;
        return true;
    }
    if (f->mad[MAD_AT_METHOD] == MAD_METHOD_GET && pi->m_key_protect_bits < 2)
        return true;
    count_up(&pi->m_key_violations);
    s->stats.bad_m_key++;
    lease_begin(s, end);
    trap_bad_m_key(s, end, f);
    return false;
}

int sim_m_key_set(struct sim *s, uint64_t node_guid, unsigned port, uint64_t m_key, uint8_t protect,
                  uint16_t lease_s)
{
    struct sim_port *p = sim_port_by(s, node_guid, port);
    if (!p)
        return -ENOENT;
    if (end_port(s, p) != p || protect > 3)
        return -EINVAL;
    sim_touch(s);
    p->pi.m_key = m_key;
    p->pi.m_key_protect_bits = m_key ? protect : 0;
    p->pi.m_key_lease_period = m_key ? lease_s : 0;
    p->lease_runs = false;
    return 0;
}

// --- GMPs ---

static struct sim_bad_key details(const struct flight *f, uint32_t key)
{
    struct sim_bad_key k = {
        .key = key, .lid1 = f->slid, .lid2 = f->dlid, .qp1 = f->src_qp, .qp2 = 1, .sl = f->sl};
    if (f->grh)
        for (unsigned i = 0; i < sizeof(k.gid1); i++)
            k.gid1[i] = f->sgid[i];
    return k;
}

bool keys_allow(struct sim *s, struct sim_port *end, const struct flight *f)
{
    struct sim_bad_key k;
    if (s->o.p_key_check && !p_key_matches(s, end, f->p_key)) {
        count_up(&end->pi.p_key_violations);
        s->stats.bad_p_key++;
        k = details(f, f->p_key);
        trap_bad_key(s, end, MAD_TRAP_BAD_P_KEY, &k, 0);
        return false;
    }
    if (s->o.q_key_check && f->q_key != MAD_QP1_Q_KEY) {
        count_up(&end->pi.q_key_violations);
        s->stats.bad_q_key++;
        k = details(f, f->q_key);
        trap_bad_key(s, end, MAD_TRAP_BAD_Q_KEY, &k, 0);
        return false;
    }
    return true;
}

bool enforcement_allows(struct sim *s, struct sim_port *p, const struct flight *f, bool out)
{
    if (!is_switch(node_of(s, p)) || p->num == 0)
        return true;
    if (!(out ? p->pi.partition_enforcement_outbound : p->pi.partition_enforcement_inbound))
        return true;
    if (p_key_matches(s, p, f->p_key))
        return true;
    p->counter[out ? SIM_XMIT_CONSTRAINT_ERRORS : SIM_RCV_CONSTRAINT_ERRORS]++;
    struct sim_bad_key k = details(f, f->p_key);
    trap_bad_key(s, end_port(s, p), MAD_TRAP_SWITCH_BAD_P_KEY, &k, p->num);
    return false;
}
