// SPDX-License-Identifier: Apache-2.0
#include "daemon/held.h"

#include "lib/log.h"

#define TELL_EVERY_NS (60 * MONO_S)

static void tell(struct held *h)
{
    const struct loop_slow *s = &h->worst;
    log_warning(
        "loop-held-up",
        "area=%s callback=%s ms=%lld cpu_ms=%lld more=%u text=\"nothing else ran meanwhile%s\"", s->area,
        s->what[0] ? s->what : "-", (long long)(s->ns / MONO_MS), (long long)(s->cpu_ns / MONO_MS), h->more,
        s->cpu_ns < s->ns / 2 ? "; most of it was waiting: is the machine busy, or its disk slow?" : "");
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
    if (h->once && mono_sub(now, h->told) < TELL_EVERY_NS)
        return;
    tell(h);
    *h = (struct held){.told = now, .once = true};
}

static void on_slow(void *arg, const struct loop_slow *s)
{
    held_slow(arg, s, mono_now());
}

void held_watch(struct held *h, struct loop *l)
{
    *h = (struct held){0};
    loop_set_slow_hook(l, on_slow, h);
}
