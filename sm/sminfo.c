// SPDX-License-Identifier: Apache-2.0
// SMInfo: what other subnet managers ask and tell us (IBA 14.4).
#include <string.h>

#include "lib/guid.h"
#include "sm/sm_priv.h"

// A master that ranks below us hands its fabric over. The other controls of Set(SMInfo) are not taken: 14.4.1
static bool take_handover(struct sm *sm, const uint8_t *mad)
{
    struct mad_smp smp;
    struct mad_sm_info from;

    mad_smp_decode(mad, &smp);
    if (smp.attr_mod != MAD_SM_HANDOVER || sm->state != SM_STANDBY)
        return false;
    mad_sm_info_decode(mad + MAD_SMP_DATA_OFFSET, &from);
    if (from.guid != sm->disc.foreign_info.guid)
        return false; // nobody whom we stand by for
    sm_event(sm, "handed-over", "notice", "", "the other subnet manager (" GUID_FMT ") hands the fabric over",
             GUID_ARG(from.guid));
    sm->handed_over = true;
    sm_resweep(sm, "handover", false);
    return true;
}

void sm_info_asked(struct sm *sm, const uint8_t *mad, const struct mad_addr *from)
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
    if (mad[3] == MAD_METHOD_SET && !take_handover(sm, mad))
        answer[5] = MAD_STATUS_BAD_VALUE;
    mad_sm_info_encode(&si, answer + MAD_SMP_DATA_OFFSET);
    mad_engine_reply(sm->engine, answer, from);
}
