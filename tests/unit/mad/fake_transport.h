// SPDX-License-Identifier: Apache-2.0
// A scripted transport for the engine's tests: records what is sent, answers when and as the test's script
// says. Everything happens on a virtual loop.
#ifndef WEFT_TESTS_FAKE_TRANSPORT_H
#define WEFT_TESTS_FAKE_TRANSPORT_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/loop.h"
#include "lib/xalloc.h"
#include "mad/mad.h"
#include "mad/transport.h"

struct fake;
struct fake_event {
    struct fake *f;
    struct fake_event *next, *prev;
    struct loop_timer timer;
    struct mad_addr from;
    int status;
    uint8_t mad[MAD_SIZE];
};

struct fake {
    struct transport t;
    struct loop *l;
    // What send() does and returns.
    int (*script)(struct fake *f, const uint8_t *mad, const struct mad_addr *to);
    void *arg;
    unsigned sends;
    int64_t wanted_ns; // timeout of the last send
    struct mad_addr to;
    struct {
        int64_t at_ns;
        uint8_t mad[MAD_SIZE];
    } log[64];                // the first ones
    struct fake_event events; // ring
};

static inline uint32_t fake_tid(const uint8_t *mad)
{
    return (uint32_t)mad[12] << 24 | (uint32_t)mad[13] << 16 | (uint32_t)mad[14] << 8 | mad[15];
}

static inline int fake_send(struct transport *t, const uint8_t *mad, const struct mad_addr *to,
                            int64_t timeout_ns)
{
    struct fake *f = (struct fake *)t;
    int r = f->script ? f->script(f, mad, to) : 0;
    if (r == -EAGAIN)
        return r;
    f->wanted_ns = timeout_ns;
    f->to = *to;
    if (f->sends < 64) {
        f->log[f->sends].at_ns = loop_now(f->l).ns;
        memcpy(f->log[f->sends].mad, mad, MAD_SIZE);
    }
    f->sends++;
    return r;
}

static const struct transport_ops fake_ops = {.send = fake_send};

static inline void fake_init(struct fake *f, struct loop *l)
{
    *f = (struct fake){.l = l, .t = {.ops = &fake_ops, .name = "fake"}};
    f->events.next = f->events.prev = &f->events;
}

static inline void fake_event_free(struct fake_event *ev)
{
    ev->next->prev = ev->prev;
    ev->prev->next = ev->next;
    loop_timer_cancel(&ev->timer);
    free(ev);
}

static inline void fake_done(struct fake *f)
{
    while (f->events.next != &f->events)
        fake_event_free(f->events.next);
}

static inline void fake_event_fn(void *arg)
{
    struct fake_event *ev = arg;
    ev->f->t.recv(ev->f->t.recv_arg, ev->mad, &ev->from, ev->status);
    fake_event_free(ev);
}

// Hands mad to the engine after delay.
static inline struct fake_event *fake_deliver(struct fake *f, const uint8_t *mad, int64_t delay_ns,
                                              int status)
{
    struct fake_event *ev = xcalloc(1, sizeof(*ev));
    ev->f = f;
    ev->status = status;
    memcpy(ev->mad, mad, MAD_SIZE);
    ev->next = &f->events;
    ev->prev = f->events.prev;
    ev->prev->next = f->events.prev = ev;
    loop_timer_init(&ev->timer, f->l, "fake", fake_event_fn, ev);
    loop_timer_after(&ev->timer, delay_ns);
    return ev;
}

// The answer a good agent gives: the same MAD with the response method; the data goes back.
static inline struct fake_event *fake_answer(struct fake *f, const uint8_t *mad, int64_t delay_ns)
{
    struct fake_event *ev = fake_deliver(f, mad, delay_ns, 0);
    ev->mad[3] = mad[3] == MAD_METHOD_SET ? MAD_METHOD_GET_RESP : mad[3] | 0x80;
    if (mad[1] == MAD_CLASS_SM_DR)
        ev->mad[4] |= 0x80; // direction
    ev->mad[8] = 0xab;      // the transport's half of the TID
    return ev;
}

#endif
