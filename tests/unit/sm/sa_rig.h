// SPDX-License-Identifier: Apache-2.0
// A manager made by hand around a routed snapshot: no sweep, a transport that takes what is answered and
// plays the switches' multicast tables. What SA answers is looked at in bytes.
#ifndef WEFT_TESTS_SA_RIG_H
#define WEFT_TESTS_SA_RIG_H

#include "sm/sa_priv.h"

struct sa_rig {
    struct loop *loop;
    struct pool *pool;
    struct transport t;
    struct sm *sm;
    const struct fabric *fabric;
    bool no_rmpp;  // the transport has none
    bool mute;     // switches do not answer
    unsigned smps; // that switches were asked
    // of the last answer
    unsigned answers;
    uint8_t mad[MAD_SIZE]; // the first 256 bytes
    uint8_t *msg;          // the whole
    size_t len;
    struct mad_addr to;
    bool rmpp;
    // of the next request
    uint16_t lid; // its source
    uint64_t sm_key;
    uint32_t attr_mod;
    uint32_t tid; // 0: a new one
    uint32_t last_tid;
};

extern unsigned sa_rig_dirty; // ports that SA wanted to be looked at

// Takes f's reference; f has LIDs. Answers are given at once.
void sa_rig_init(struct sa_rig *r, const struct fabric *f);
void sa_rig_done(struct sa_rig *r);
// Another generation of the fabric; its reference is taken.
void sa_rig_fabric(struct sa_rig *r, const struct fabric *f);
// Sends without waiting.
void sa_send(struct sa_rig *r, uint8_t method, uint16_t attr, uint64_t mask, const void *data, size_t len);
// The answer's status, or -1 when there is none within a second.
int sa_ask(struct sa_rig *r, uint8_t method, uint16_t attr, uint64_t mask, const void *data, size_t len);
void sa_run(struct sa_rig *r, int64_t ns);
// Records of the last answer, by its AttributeOffset; *ret_bytes of each.
uint32_t sa_records(const struct sa_rig *r, size_t *ret_bytes);
const uint8_t *sa_record(const struct sa_rig *r, uint32_t i);
// The i-th connected adapter port: its index in the fabric.
uint32_t sa_adapter(const struct sa_rig *r, uint32_t i);
uint32_t sa_num_adapters(const struct sa_rig *r);
uint16_t sa_lid_of(const struct sa_rig *r, uint32_t port);
void sa_gid_of(const struct sa_rig *r, uint32_t port, uint8_t ret[16]);

#endif
