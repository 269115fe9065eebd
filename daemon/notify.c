// SPDX-License-Identifier: Apache-2.0
#include "daemon/notify.h"

#ifdef WEFT_SYSTEMD
#include <systemd/sd-daemon.h>

static void feed(void *arg)
{
    struct notify *n = arg;
    sd_notify(0, "WATCHDOG=1");
    loop_timer_after(&n->timer, n->interval_ns);
}

void notify_start(struct notify *n, struct loop *l)
{
    uint64_t usec = 0;
    loop_timer_init(&n->timer, l, "daemon", feed, n);
    sd_notify(0, "READY=1");
    if (sd_watchdog_enabled(0, &usec) > 0 && usec > 0) {
        n->interval_ns = (int64_t)usec * MONO_US / 3;
        loop_timer_after(&n->timer, n->interval_ns);
    }
}

void notify_stopping(void)
{
    sd_notify(0, "STOPPING=1");
}

#else

void notify_start(struct notify *n, struct loop *l)
{
    loop_timer_init(&n->timer, l, "daemon", NULL, n);
}

void notify_stopping(void)
{
}

#endif

void notify_done(struct notify *n)
{
    if (n->timer.loop != NULL)
        loop_timer_cancel(&n->timer);
}
