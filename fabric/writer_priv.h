// SPDX-License-Identifier: Apache-2.0
// Shared by the writers of topologies. For fabric/ only.
#ifndef WEFT_FABRIC_WRITER_PRIV_H
#define WEFT_FABRIC_WRITER_PRIV_H

#include <stdio.h>

#include "fabric/fabric.h"

// Lanes of a PortInfo width code, 0 when unknown; the name of the active speed ("HDR"), NULL when unknown.
const char *speed_name(const struct port_attrs *a);
// desc with every byte of `bad` replaced by `instead`.
void put_desc(FILE *out, const char *desc, const char *bad, char instead);

#endif
