// SPDX-License-Identifier: Apache-2.0
// What carries MADs: umad (hardware, and ibsim under LD_PRELOAD), or the simulator in process. The engine
// above knows nothing else of the world.
//
// A transport sends and receives whole MADs of 256 bytes as they stand on the wire and runs on the loop
// thread: send() never blocks; what arrives is given to recv() from the loop. It does not retry and owns no
// transaction: the low 32 bits of the TID are the caller's, the high 32 the transport's. A request that the
// transport could not deliver comes back through recv() with a negative status and the request's own bytes
// (its low TID matches).
#ifndef WEFT_MAD_TRANSPORT_H
#define WEFT_MAD_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAD_SIZE 256

struct transport;
struct err;

struct mad_addr {
    uint16_t lid; // destination, or source of what arrived; 0xffff (permissive) for directed routes
    uint8_t sl;
    uint8_t qp; // 0 or 1: queue pair at our side and theirs (a QP above 1 only in remote_qpn)
    uint32_t remote_qpn;
    uint32_t qkey; // 0x80010000 for QP1
    uint16_t pkey_index;
    bool grh_present;
    uint8_t gid[16]; // of the peer, when grh_present
    uint8_t hop_limit, traffic_class, gid_index;
    uint32_t flow_label;
};

typedef void transport_recv_fn(void *arg, const uint8_t *mad, const struct mad_addr *from, int status);

struct transport_port { // the local port, as the operating system or the simulator tells
    char device[64];    // "mlx5_0"
    uint8_t num;
    uint64_t node_guid, port_guid;
    uint16_t lid, sm_lid;
    uint8_t state, phys_state; // PortInfo codes
    bool ethernet;             // link layer is Ethernet (RoCE): no subnet manager here
};

struct transport_ops {
    // 0, or -EAGAIN when the way out is full (try later: writable() is called), or another negative errno.
    // timeout_ns: how long the caller may still want the answer; a kernel that matches answers to requests
    // must be told at least that long. Requests and responses both go here.
    int (*send)(struct transport *t, const uint8_t *mad, const struct mad_addr *to, int64_t timeout_ns);
    // An answer of many records (class 3): 56 bytes of header and all the data, cut into RMPP segments by the
    // transport, which fills the RMPP header. len >= 56. May be NULL. 0 or negative errno as send().
    int (*send_rmpp)(struct transport *t, const uint8_t *msg, size_t len, const struct mad_addr *to);
    int (*port)(struct transport *t, struct transport_port *ret); // reads again; 0 or negative errno
    // Holds the issm device open (IsSM bit) or closes it; 0, -EBUSY when another process has it (e says who),
    // -EACCES, -ENOENT.
    int (*issm)(struct transport *t, bool on, struct err *e);
    void (*free)(struct transport *t);
};

struct transport {
    const struct transport_ops *ops;
    transport_recv_fn *recv; // set by the engine
    void *recv_arg;
    void (*writable)(void *arg);           // set by the engine
    void (*broken)(void *arg, int status); // set by the owner: the device is gone (unplugged, driver reset,
                                           // ibsim ended); may be NULL
    void *broken_arg;
    const char *name; // for people: "umad mlx5_0/1", "simulator"
};

#endif
