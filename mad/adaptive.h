// SPDX-License-Identifier: Apache-2.0
//
// Adaptive routing of NVIDIA's switches: what no table says. The attributes' layouts are public (mad/attr/
// general_info.def, adaptive_routing_*.def).
//
// UNVERIFIED: no public text gives how a group, a block of LIDs and a table are packed into the attribute
// modifiers, nor which bit of a mask is which port. What stands here is a guess, made once and used on both
// sides of the simulator: against hardware it proves nothing. Whoever has seen a capture corrects this file
// and nothing else.
#ifndef WEFT_MAD_ADAPTIVE_H
#define WEFT_MAD_ADAPTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "mad/mad.h"

// Published: attribute modifier of GeneralInfo, and numbers of capabilities.
#define MAD_GENERAL_INFO_CAPABILITIES 4u
#define MAD_CAP_AR 1      // the first revision, which is not spoken here
#define MAD_CAP_AR_REV1 2 // AdaptiveRoutingLinearForwardingTable as 0xff23

static inline bool mad_general_cap(const struct mad_general_info *g, unsigned n)
{
    return g->cap_mask[n / 32 % 4] >> n % 32 & 1;
}

// Published: AdaptiveRoutingInfo.transport_disable, and states of a LID.
enum mad_ar_transport {
    MAD_AR_UD = 1,
    MAD_AR_RC = 2,
    MAD_AR_UC = 4,
    MAD_AR_DC = 8,
};
enum mad_ar_state {
    MAD_AR_BOUNDED = 0, // within the group, in order
    MAD_AR_FREE = 1,    // any port of the group, packet by packet
    MAD_AR_STATIC = 2,  // the port of the entry
    MAD_AR_HBF = 3,     // by hash
};
#define MAD_AR_LFT_BLOCK 16  // LIDs
#define MAD_AR_GROUPS 4096   // group numbers and GroupTop have 12 bits
#define MAD_AR_MASK_BYTES 32 // of a subgroup

// --- UNVERIFIED, see above ---

#define MAD_AR_INFO_MOD 0u // AdaptiveRoutingInfo: the settings

// One group of table 0.
static inline uint32_t mad_ar_group_mod(unsigned group)
{
    return group;
}

// LIDs block*16 .. +15 of private table 0.
static inline uint32_t mad_ar_lft_mod(unsigned block)
{
    return block;
}

// Bit n of a mask, the last byte's lowest first, is port n.
static inline bool mad_ar_mask_has(const uint8_t mask[MAD_AR_MASK_BYTES], uint8_t port)
{
    return mask[MAD_AR_MASK_BYTES - 1 - port / 8] >> port % 8 & 1;
}

static inline void mad_ar_mask_add(uint8_t mask[MAD_AR_MASK_BYTES], uint8_t port)
{
    mask[MAD_AR_MASK_BYTES - 1 - port / 8] |= (uint8_t)(1u << port % 8);
}

#endif
