// SPDX-License-Identifier: Apache-2.0
// Pure: which PortInfo a port should have. Starts from a fresh read and changes only what the subnet manager
// owns (IBA 14.2.5.6; what devices require, field by field, is in doc/bringup.md).
#ifndef WEFT_SM_PORTCFG_H
#define WEFT_SM_PORTCFG_H

#include <stdbool.h>
#include <stdint.h>

#include "mad/codec.h"

struct sm_opts;

enum {
    PORTCFG_LID = 1 << 0,
    PORTCFG_MASTER_SM_LID = 1 << 1,
    PORTCFG_MASTER_SM_SL = 1 << 2,
    PORTCFG_GID_PREFIX = 1 << 3,
    PORTCFG_LMC = 1 << 4,
    PORTCFG_SUBNET_TIMEOUT = 1 << 5,
    PORTCFG_NEIGHBOR_MTU = 1 << 6,
    PORTCFG_OPER_VLS = 1 << 7,
    PORTCFG_HOQ_LIFE = 1 << 8,
    PORTCFG_VL_STALL_COUNT = 1 << 9,
    PORTCFG_ERROR_THRESHOLDS = 1 << 10,
    PORTCFG_LINK_DOWN_DEFAULT = 1 << 11,
};
#define PORTCFG_FIELDS 12
// "SubnetTimeOut, HOQLife" for the bits set; returns buf.
const char *portcfg_names(uint32_t fields, char *buf, unsigned long size);

enum portcfg_kind {
    PORTCFG_END,     // CA or router port
    PORTCFG_SWITCH0, // base switch port 0
    PORTCFG_SWITCH0_ENHANCED,
    PORTCFG_SWITCH_EXTERNAL,
};

struct portcfg_in {
    enum portcfg_kind kind;
    bool router;
    const struct mad_port_info *now;  // as read
    const struct mad_port_info *peer; // of the far end; NULL when there is none or it is not known
    bool peer_is_switch;
    uint16_t lid, sm_lid; // end ports
    uint8_t sm_sl, lmc;   // likewise: MasterSMSL; LMC of adapters and routers
    uint32_t not_kept;    // fields the device does not keep: not asked for again
};

// Fills *ret_want (a whole PortInfo to Set: PortState and PortPhysicalState 0 = no change) and returns the
// fields that differ from `now`.
uint32_t portcfg_want(const struct portcfg_in *in, const struct sm_opts *o, struct mad_port_info *ret_want);
// The fields of `asked` (bits) that an answer shows not to have been kept.
uint32_t portcfg_not_kept(uint32_t asked, const struct mad_port_info *want,
                          const struct mad_port_info *answer);

#endif
