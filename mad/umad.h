// SPDX-License-Identifier: Apache-2.0
// The umad transport: libibumad on hardware, and ibsim through libumad2sim. Classes 0x81 and 0x01 on QP0, 3
// and 4 on QP1 are registered.
#ifndef WEFT_MAD_UMAD_H
#define WEFT_MAD_UMAD_H

#include "lib/loop.h"
#include "mad/transport.h"

struct err;

struct umad_opts {
    const char *device; // "mlx5_0", NULL = choose the first InfiniBand port that is not down, else the first
                        // InfiniBand port
    int port;           // 0 = any
    bool need_sm; // register for Trap, TrapRepress, SubnGet(SMInfo) and SA requests too (else a plain client)
};

// Opens the port. NULL and *e on: no umad device, no permission, no such port, port is Ethernet (RoCE), class
// taken by another process. The text says the cause, the candidates seen, and what to do; code is -ENODEV,
// -EACCES, -ENOENT, -EPROTONOSUPPORT, -EBUSY. A port that is Down opens (it may heal). The descriptor is
// polled on the loop where epoll takes it; otherwise (libumad2sim) a thread waits and the loop reads.
// The transport's free() may not be called from recv() or writable(). Its port() reads sysfs again;
// libumad2sim's sysfs shows LIDs and states for ever as they were at the start: ask PortInfo there.
struct transport *umad_open(struct loop *l, const struct umad_opts *o, struct err *e);

// Every InfiniBand-capable port of this machine, for messages and `weft status`; returns the number, writes
// at most n.
int umad_list(struct transport_port *ret, int n);

#endif
