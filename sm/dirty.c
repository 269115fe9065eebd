// SPDX-License-Identifier: Apache-2.0
// What has to be read again.
#include "sm/sm_priv.h"

void sm_dirty_switch(struct sm *sm, struct sm_dev *d, const char *cause)
{
    (void)d;
    sm_resweep(sm, cause, false);
}

void sm_dirty_port(struct sm *sm, struct sm_dev *d, unsigned num, const char *cause)
{
    (void)num;
    sm_dirty_switch(sm, d, cause);
}

void sm_dirty_desc(struct sm *sm, struct sm_dev *d, const char *cause)
{
    sm_dirty_switch(sm, d, cause);
}

void sm_dirty_node(struct sm *sm, struct sm_dev *d, const char *cause)
{
    sm_dirty_switch(sm, d, cause);
}

struct sm_dev *sm_dev_by_lid(struct sm *sm, uint16_t lid, unsigned *ret_num)
{
    port_id id = sm->fabric != NULL ? fabric_by_lid(sm->fabric, lid) : PORT_NONE;
    if (!port_valid(id))
        return NULL;
    const struct port *p = fabric_port(sm->fabric, id);
    *ret_num = p->num;
    return sm_dev_find(sm, fabric_node(sm->fabric, p->node)->guid);
}
