// SPDX-License-Identifier: Apache-2.0
// What people call a port: its node's name or GUID, the host that an adapter is of, HOST:RAIL; each with
// /PORT or [PORT] behind it; and patterns of these (* and ?). Pure; the same for the command and the daemon.
#ifndef WEFT_LIB_CALLED_H
#define WEFT_LIB_CALLED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct called { // a port, or a node
    uint64_t guid;
    const char *name;   // "": none
    int64_t port, rail; // negative: none
};

bool called_node(const struct called *p, const char *word); // by what is said of the node alone
bool called_port(const struct called *p, const char *word); // the same, and with a port
// Length of what names the node in "NODE/3", "NODE[3]"; 0: no port is named.
size_t called_split_port(const char *word, unsigned *ret_port);
// Length of the host in "HOST:RAIL"; 0: it is no such word.
size_t called_split_rail(const char *word, long *ret_rail);

#endif
