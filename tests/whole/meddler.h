// SPDX-License-Identifier: Apache-2.0
// Somebody else on the fabric: a second client at the manager's own port that reads and writes devices with
// SMPs of its own, behind the manager's back, by the LIDs and routes that the manager has programmed.
#ifndef WEFT_TESTS_WHOLE_MEDDLER_H
#define WEFT_TESTS_WHOLE_MEDDLER_H

#include "mad/mad.h"
#include "tests/whole/rig.h"

struct meddler {
    struct rig *r;
    struct transport *t;
    uint64_t m_key; // of its requests
    uint32_t tid;
    bool answered;
    uint8_t answer[MAD_SIZE];
};

void meddler_init(struct meddler *m, struct rig *r);
void meddler_done(struct meddler *m); // before rig_done()
// Sends one request and waits for its answer; fails the test when there is none or it is refused.
const uint8_t *meddler_get(struct meddler *m, uint16_t lid, uint16_t attr_id, uint32_t attr_mod);
void meddler_set(struct meddler *m, uint16_t lid, uint16_t attr_id, uint32_t attr_mod, const uint8_t *data);
// Sends one request that may be refused or go unanswered.
void meddler_try(struct meddler *m, uint16_t lid, uint8_t method, uint16_t attr_id, uint32_t attr_mod,
                 const uint8_t *data);
// Get, one field changed by its name in the codec, Set. PortInfo is set without a change of state.
void meddler_change(struct meddler *m, uint16_t lid, uint16_t attr_id, uint32_t attr_mod, const char *field,
                    uint64_t value);

#endif
