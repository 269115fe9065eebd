// SPDX-License-Identifier: Apache-2.0
// How a finished picture becomes a reference-counted fabric. For fabric/ only.
#ifndef WEFT_FABRIC_FABRIC_PRIV_H
#define WEFT_FABRIC_FABRIC_PRIV_H

#include "fabric/fabric.h"

struct arena;

// Takes the arena that holds everything f points to, and seals it. One reference.
const struct fabric *fabric_publish(const struct fabric *f, struct arena *arena);

#endif
