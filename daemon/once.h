// SPDX-License-Identifier: Apache-2.0
// `weftd --once`: bring the fabric up, print one JSON object, exit.
#ifndef WEFT_DAEMON_ONCE_H
#define WEFT_DAEMON_ONCE_H

#include "daemon/fab.h"

struct once {
    struct loop *loop;
    mono_t began;
    int sweeps;
    bool over, ok;
    struct err err;
};

// Looks at a finished sweep: over when the fabric is up with nothing left to retry, or when it will not come
// up.
void once_swept(struct once *o, struct fab *f, const struct sm_sweep *s);
// The result as one JSON object and a newline; every key is always there. f may be NULL when nothing could be
// opened. 0 or negative errno when it could not be written.
int once_print(const struct once *o, struct fab *f, const char *fabric_name, FILE *out);

#endif
