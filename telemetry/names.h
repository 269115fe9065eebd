// SPDX-License-Identifier: Apache-2.0
// What ports are called in metrics: by slot (which is the store's series too), kind of device, its name, and
// for adapters the name of the switch at the other end. Made of the live fabric, and of the blueprint for
// what is away just now, so that a series keeps its labels while a cable is out.
//
// Immutable; whoever made it frees it, and any thread reads until then. Strings are those of the fabrics it
// was made of, of which it holds references.
#ifndef WEFT_TELEMETRY_NAMES_H
#define WEFT_TELEMETRY_NAMES_H

#include <stdint.h>

#include "fabric/fabric.h"

enum tele_kind_of_node {
    TELE_OF_NOBODY, // neither the fabric nor the blueprint knows it
    TELE_OF_SWITCH,
    TELE_OF_HCA, // adapters and routers
};

struct tele_key {
    uint64_t node_guid;
    uint8_t num;
};
struct tele_name {
    uint64_t node_guid;
    uint8_t num;
    uint8_t kind;     // enum tele_kind_of_node
    const char *node; // description, as it is: may be empty or repeated
    const char *sw;   // of an adapter's port: the switch it is cabled to; "" otherwise
};

struct tele_names {
    const struct fabric *f, *known;
    uint32_t num;
    const struct tele_name *name; // [slot]
};

// f and known may be NULL. O(n); 10 ms for 100,000.
const struct tele_names *tele_names_new(const struct tele_key *key, uint32_t n, const struct fabric *f,
                                        const struct fabric *known);
void tele_names_free(const struct tele_names *n); // NULL is fine

#endif
