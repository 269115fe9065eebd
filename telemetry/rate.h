// SPDX-License-Identifier: Apache-2.0
// What counters mean: rates, utilisation, bandwidth lost to waiting, error rates, bit error ratios with their
// confidence. Pure functions of the table and of numbers; no state.
#ifndef WEFT_TELEMETRY_RATE_H
#define WEFT_TELEMETRY_RATE_H

#include "telemetry/table.h"

// Of a port in its direction out, over its last two readings; NAN where something is missing.
struct tele_use {
    double xmit_bps, rcv_bps;   // bytes/s of data
    double xmit_used, rcv_used; // share of what the link carries, 0..1
    double xmit_pps, rcv_pps;
    double held;     // share of time in which there was data to send and no way to send it, 0..1, after
                     // the device's tick rule and never above 1 - xmit_used + measuring error
    double lost_bps; // bytes/s that this time could have carried
};
void tele_use(const struct tele_table *t, uint32_t slot, struct tele_use *ret);

// Bytes/s of data that the link carries in one direction: its rate without line coding; 0 when not known.
double tele_capacity(const struct tele_table *t, uint32_t slot);

// PortXmitWait's tick: bytes of link time. NVIDIA's Quantum switches count per 8 bytes of the port, SwitchX
// and Switch-IB per 32 bytes of each lane (ibdiagnet manual, "Congestion Assessment"); IBA leaves it open.
// Devices that nothing is known of: 8. lanes 0: 4.
unsigned tele_wait_tick_bytes(uint32_t vendor_id, uint16_t device_id, unsigned lanes);

// Of a link width's code (PortInfo), or of a set of them the widest: lanes; 0: none.
unsigned tele_lanes(unsigned widths);

// Whether a cable that is up is narrower or slower than it should be: the best that both ends have enabled;
// where the ends enable no more than they run at (one that was enabled at 1x by hand, or that lost lanes and
// was set so since), what they can and most cables like it do: to nodes of the same role, of the switch at
// either end, three others at least. text: which, for people; NULL and 0: not wanted. O(ports of a switch).
bool tele_is_slow(const struct fabric *f, const struct port *p, char *text, size_t size);

// Per second of a counter, in the unit that is stored (words, not bytes); NAN where there are not two
// readings.
double tele_rate(const struct tele_table *t, uint32_t slot, enum tele_counter c);

// Bit error ratio of `errors` among `bits` transferred: the estimate and its bounds (Poisson), each of which
// holds with 95 %; NAN without bits. About 1 us. enough:
// the bits suffice to say that it is below `limit` when there were no errors (3/limit bits), or above it.
struct tele_ber {
    double estimate, low, high;
    bool enough;
    double seconds_needed; // at this rate until it can be said; 0 when enough
};
void tele_ber(uint64_t errors, double bits, double bits_per_s, double limit, struct tele_ber *ret);

#endif
