// SPDX-License-Identifier: Apache-2.0
// Traps (IBA 13.4.8, 14.3.10): what a device tells unasked. Each is repressed, or it is repeated for ever,
// and leads to reading what it can be about (sm_dirty_*()).
#include <string.h>

#include "lib/log.h"
#include "sm/sm_priv.h"

static void trap_repress(struct sm *sm, const uint8_t *mad, const struct mad_addr *from)
{
    uint8_t answer[MAD_SIZE];
    memcpy(answer, mad, MAD_SIZE);
    answer[3] = MAD_METHOD_TRAP_REPRESS;
    mad_engine_reply(sm->engine, answer, from);
}

void sm_trap(struct sm *sm, const uint8_t *mad, const struct mad_addr *from)
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
