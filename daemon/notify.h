// SPDX-License-Identifier: Apache-2.0
// Messages to systemd: ready, stopping, and the watchdog, which the loop feeds: a loop that hangs is
// restarted. Without libsystemd these do nothing.
#ifndef WEFT_DAEMON_NOTIFY_H
#define WEFT_DAEMON_NOTIFY_H

#include "lib/loop.h"

struct notify { // the watchdog
    struct loop_timer timer;
    int64_t interval_ns;
};
void notify_start(struct notify *n, struct loop *l);
void notify_stopping(void);
void notify_done(struct notify *n);

#endif
