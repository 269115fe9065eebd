// SPDX-License-Identifier: Apache-2.0
#include "daemon/held.h"

#include "lib/log.h"

#define TELL_EVERY_NS (60 * MONO_S)

static void tell(struct held *h, mono_t now)
{
    const struct loop_slow *s = &h->worst;
    log_warning(
        "loop-held-up",
        "area=%s callback=%s ms=%lld cpu_ms=%lld more=%u text=\"nothing else ran meanwhile%s\"", s->area,
        s->what[0] ? s->what : "-", (long long)(s->ns / MONO_MS), (long long)(s->cpu_ns / MONO_MS), h->more,
        s->cpu_ns < s->ns / 2 ? "; most of it was waiting: is the machine busy, or its disk slow?" : "");
    h->worst = (struct loop_slow){0};
    h->more = 0;
    h->told = now;
    h->once = true;
}

void held_slow(struct held *h, const struct loop_slow *s, mono_t now)
{
    log_debug("slow-callback", "area=%s callback=%s ms=%lld cpu_ms=%lld", s->area, s->what[0] ? s->what : "-",
              (long long)(s->ns / MONO_MS), (long long)(s->cpu_ns / MONO_MS));
    if (s->ns < LOOP_HELD_NS || loop_area_is_simulated(s->area))
        return;
    if (h->worst.ns > 0)
        h->more++;
    if (s->ns > h->worst.ns)
        h->worst = *s;
    held_due(h, now);
}

void held_due(struct held *h, mono_t now)
{
    int64_t left = h->once ? TELL_EVERY_NS - mono_sub(now, h->told) : 0;
    if (h->worst.ns == 0)
        return;
    if (left <= 0)
        tell(h, now);
    else if (h->timer.loop != NULL) // nobody may be held up again for a long time
        loop_timer_after(&h->timer, left);
}

static void on_slow(void *arg, const struct loop_slow *s)
{
    held_slow(arg, s, mono_now());
}

static void on_due(void *arg)
{
    held_due(arg, mono_now());
}

void held_watch(struct held *h, struct loop *l)
{
    *h = (struct held){0};
    loop_timer_init(&h->timer, l, "daemon", on_due, h);
    loop_set_slow_hook(l, on_slow, h);
}

void held_done(struct held *h)
{
    if (h->timer.loop == NULL)
        return;
    loop_set_slow_hook(h->timer.loop, NULL, NULL);
    loop_timer_cancel(&h->timer);
    if (h->worst.ns > 0)
        tell(h, mono_now());
    h->timer.loop = NULL;
}
