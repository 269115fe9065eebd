// SPDX-License-Identifier: Apache-2.0
#include "sm/sa_priv.h"
int sm_mcast_init(struct sm *sm)
{
    return 0;
}
void sm_mcast_done(struct sm *sm)
{
}
void sm_mcast_dirty(struct sm *sm, uint16_t mlid)
{
}
uint64_t sm_mcast_ticket(struct sm *sm)
{
    return 0;
}
uint16_t sm_mcast_mlid_max(const struct sm *sm)
{
    return 0xc3ff;
}
void sm_mcast_stats(const struct sm *sm, struct sm_sa_stats *ret)
{
}
bool sm_mcast_block(const struct sm *sm, uint64_t switch_guid, unsigned block, unsigned position,
                    uint16_t ret[32])
{
    return false;
}
void sm_mcast_fabric_changed(struct sm *sm)
{
    sa_fabric_changed(sm);
}
void sm_mcast_switch_reset(struct sm *sm, const struct sm_dev *d)
{
}
uint16_t sm_mcast_top(const struct sm *sm, const struct sm_dev *d)
{
    return 0;
}
