// SPDX-License-Identifier: Apache-2.0
// Flights and events: a slab of MADs under way, a list of those that can go on at once, a heap of those that
// wait for a time. One timer and one task of the loop drive it. Within one turn everything due is run in the
// order of (time, sequence), each at its own time, so that a chain of short hops costs one wake-up and the
// order does not depend on when the wake-up comes.
#include "sim/sim_priv.h"

#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"

#define SLAB 256
#define BATCH 256 // MADs a callback moves before the loop gets its turn

struct flight *flight_new(struct sim *s)
{
    if (!s->free_flights) {
        struct flight *slab = xcalloc(SLAB, sizeof(*slab));
        s->slab = xreallocarray(s->slab, s->slabs + 1, sizeof(*s->slab));
        s->slab[s->slabs++] = slab;
        for (unsigned i = 0; i < SLAB; i++) {
            slab[i].next = s->free_flights;
            s->free_flights = &slab[i];
        }
    }
    struct flight *f = s->free_flights;
    s->free_flights = f->next;
    memset(f, 0, offsetof(struct flight, mad));
    return f;
}

void flight_free(struct sim *s, struct flight *f)
{
    f->next = s->free_flights;
    s->free_flights = f;
}

void flight_ready(struct sim *s, struct flight *f)
{
    f->next = NULL;
    *s->ready_tail = f;
    s->ready_tail = &f->next;
    loop_post(s->loop, &s->task);
}

static bool before(const struct ev *a, const struct ev *b)
{
    return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

static void heap_push(struct sim *s, struct ev e)
{
    if (s->heap_n == s->heap_cap) {
        s->heap_cap = s->heap_cap ? s->heap_cap * 2 : 256;
        s->heap = xreallocarray(s->heap, s->heap_cap, sizeof(*s->heap));
    }
    uint32_t i = s->heap_n++;
    while (i > 0 && before(&e, &s->heap[(i - 1) / 2])) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->heap[i] = e;
}

static struct ev heap_pop(struct sim *s)
{
    struct ev top = s->heap[0], last = s->heap[--s->heap_n];
    uint32_t i = 0;
    for (;;) {
        uint32_t c = 2 * i + 1;
        if (c >= s->heap_n)
            break;
        if (c + 1 < s->heap_n && before(&s->heap[c + 1], &s->heap[c]))
            c++;
        if (!before(&s->heap[c], &last))
            break;
        s->heap[i] = s->heap[c];
        i = c;
    }
    s->heap[i] = last;
    return top;
}

static void arm(struct sim *s)
{
    if (s->running)
        return; // the runner arms when it ends
    if (s->heap_n == 0)
        loop_timer_cancel(&s->timer);
    else if (!loop_timer_pending(&s->timer) || s->timer.due.ns != s->heap[0].due)
        loop_timer_at(&s->timer, (mono_t){s->heap[0].due});
}

static void push(struct sim *s, struct ev e)
{
    e.seq = s->seq++;
    heap_push(s, e);
    arm(s);
}

void flight_at(struct sim *s, struct flight *f, int64_t due)
{
    push(s, (struct ev){.due = due, .kind = EV_FLIGHT, .flight = f});
}

void event_at(struct sim *s, enum ev_kind kind, uint32_t i, int64_t due)
{
    push(s, (struct ev){.due = due, .kind = kind, .i = i});
}

static void run_event(struct sim *s, const struct ev *e)
{
    switch (e->kind) {
    case EV_FLIGHT:
        route_run(s, e->flight);
        break;
    case EV_TRAP:
        trap_event(s, e->i);
        break;
    case EV_LINK_UP:
        link_trained(s, &s->port[e->i]);
        break;
    case EV_GO_ACTIVE:
        port_saw_traffic(s, &s->port[e->i]);
        break;
    case EV_LEASE:
        lease_event(s, &s->port[e->i]);
        break;
    case EV_FLAP:
        flap_event(s, e->i);
        break;
    case EV_BOOT:
        boot_event(s, &s->node[e->i]);
        break;
    case EV_OS_UP:
        os_up_event(s, &s->node[e->i]);
        break;
    case EV_SM:
        sim_sm_event(s, e->i);
        break;
    case EV_HOST:
        host_event(s, e->i);
        break;
    case EV_FLOW:
        loop_doing(s->loop, "traffic");
        flow_event(s);
        break;
    case EV_FLOW_TURN:
        flow_turn_event(s, e->i);
        break;
    }
}

static void run(void *arg)
{
    struct sim *s = arg;
    int64_t wall = loop_now(s->loop).ns;
    unsigned left = BATCH;
    s->running = true;
    while (left > 0) {
        if (s->heap_n > 0 && s->heap[0].due <= wall) {
            struct ev e = heap_pop(s);
            s->now = e.due;
            run_event(s, &e);
        } else if (s->ready) {
            struct flight *f = s->ready;
            s->ready = f->next;
            if (!s->ready)
                s->ready_tail = &s->ready;
            s->now = wall;
            route_run(s, f);
        } else {
            break;
        }
        left--;
    }
    s->now = wall;
    s->running = false;
    if (s->ready)
        loop_post(s->loop, &s->task);
    arm(s);
}

void queue_init(struct sim *s)
{
    s->ready_tail = &s->ready;
    s->now = loop_now(s->loop).ns;
    loop_timer_init(&s->timer, s->loop, "sim", run, s);
    loop_task_init(&s->task, "sim", run, s);
}

void queue_done(struct sim *s)
{
    loop_timer_cancel(&s->timer);
    loop_unpost(s->loop, &s->task);
    for (uint32_t i = 0; i < s->slabs; i++)
        free(s->slab[i]);
    free(s->slab);
    free(s->heap);
}
