// SPDX-License-Identifier: Apache-2.0
// ClassPortInfo of subnet administration (IBA 13.4.8.1, 15.2.2): what clients may count on.
#include <string.h>

#include "sm/sa_priv.h"

#define CAP_UD_MULTICAST (1u << 9)
#define CAP_PORT_INFO_CAPMASK_MATCH (1u << 13)

#define CAP2_MFT_TOP (1u << 3)
#define CAP2_FULL_PORT_INFO (1u << 6)
#define CAP2_EXTENDED_SPEEDS (1u << 7)
#define CAP2_CAPMASK2_MATCH (1u << 10)
#define CAP2_SEND_ONLY_FULL_MEMBER (1u << 12)
#define CAP2_WIDTH_2X (1u << 13)
#define CAP2_HDR (1u << 15)
#define CAP2_NDR (1u << 17)

#define RESP_TIME 16 // 0.27 s

enum sa_step sa_class_port_info(struct sm_sa *sa, struct sa_req *r)
{
    struct mad_class_port_info c = {
        .base_version = 1,
        .class_version = 2,
        .capability_mask = CAP_UD_MULTICAST | CAP_PORT_INFO_CAPMASK_MATCH,
        .capability_mask2 = CAP2_MFT_TOP | CAP2_FULL_PORT_INFO | CAP2_EXTENDED_SPEEDS | CAP2_CAPMASK2_MATCH |
                            CAP2_SEND_ONLY_FULL_MEMBER | CAP2_WIDTH_2X | CAP2_HDR | CAP2_NDR,
        .resp_time_value = RESP_TIME,
        .redirect_qp = 1,
        .redirect_q_key = MAD_QP1_Q_KEY,
    };
    uint8_t wire[72] = {0};
    (void)sa;
    mad_class_port_info_encode(&c, wire);
    sa_emit(r, wire, sizeof(wire));
    return SA_DONE;
}
