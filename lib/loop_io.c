// SPDX-License-Identifier: Apache-2.0
// Descriptors, signals and wakers. All wakers share one eventfd: a signal sets the waker's flag and writes
// only when the flag was clear.
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/loop_priv.h"
#include "lib/xalloc.h"

struct loop_fd {
    struct loop *loop;
    struct event *event;
    const char *area;
    loop_fd_fn *fn;
    void *arg;
    int fd, events;
};

struct loop_signal {
    struct loop *loop;
    struct event *event;
    loop_fn *fn;
    void *arg;
};

struct loop_waker {
    struct loop *loop;
    struct loop_waker *next;
    const char *area;
    loop_fn *fn;
    void *arg;
    atomic_bool signalled;
};

void loop_io_begin(struct loop *l)
{
    l->io_events++;
    if (!l->polling)
        return;
    l->polling = false;
    l->stamp = mono_now();
    if (l->clock == LOOP_REAL)
        l->now = l->stamp;
}

// --- descriptors ---

static short to_event(int events)
{
    return (short)(EV_PERSIST | (events & LOOP_READ ? EV_READ : 0) | (events & LOOP_WRITE ? EV_WRITE : 0));
}

static void fd_event(evutil_socket_t fd, short what, void *arg)
{
    struct loop_fd *f = arg;
    struct loop *l = f->loop;
    const char *area = f->area;

    loop_io_begin(l);
    f->fn(f->arg, fd, (what & EV_READ ? LOOP_READ : 0) | (what & EV_WRITE ? LOOP_WRITE : 0)); // f may be gone
    loop_account(l, area);
}

struct loop_fd *loop_fd_new(struct loop *l, int fd, int events, const char *area, loop_fd_fn *fn, void *arg)
{
    struct loop_fd *f = xmalloc(sizeof(*f));

    *f = (struct loop_fd){.loop = l, .area = area, .fn = fn, .arg = arg, .fd = fd};
    f->event = event_new(l->base, fd, to_event(LOOP_READ), fd_event, f);
    if (!f->event)
        abort();
    l->fds++;
    loop_fd_events(f, events);
    if (f->events != events) {
        int code = errno;
        loop_fd_free(f);
        errno = code;
        return NULL;
    }
    return f;
}

void loop_fd_events(struct loop_fd *f, int events)
{
    if (events == f->events)
        return;
    if (f->events)
        event_del(f->event);
    f->events = 0;
    if (!events)
        return;
    event_assign(f->event, f->loop->base, f->fd, to_event(events), fd_event, f);
    if (event_add(f->event, NULL) == 0)
        f->events = events;
}

void loop_fd_free(struct loop_fd *f)
{
    if (!f)
        return;
    f->loop->fds--;
    event_free(f->event);
    free(f);
}

// --- signals ---

static void signal_event(evutil_socket_t signo, short what, void *arg)
{
    struct loop_signal *s = arg;
    struct loop *l = s->loop;

    loop_io_begin(l);
    s->fn(s->arg); // s may be gone afterwards
    loop_account(l, "signal");
}

struct loop_signal *loop_signal_new(struct loop *l, int signo, loop_fn *fn, void *arg)
{
    struct loop_signal *s = xmalloc(sizeof(*s));

    *s = (struct loop_signal){.loop = l, .fn = fn, .arg = arg};
    s->event = evsignal_new(l->base, signo, signal_event, s);
    if (!s->event || event_add(s->event, NULL) < 0)
        abort();
    l->signals++;
    return s;
}

void loop_signal_free(struct loop_signal *s)
{
    if (!s)
        return;
    s->loop->signals--;
    event_free(s->event);
    free(s);
}

// --- wakers ---

static void wake_event(evutil_socket_t fd, short what, void *arg)
{
    struct loop *l = arg;
    uint64_t count;

    loop_io_begin(l);
    // Order matters: the descriptor is emptied before the flags are looked at, so that a signal in between
    // wakes the loop again.
    if (read(fd, &count, sizeof(count)) < 0) {
        // Emptied already: the flags still tell.
    }
    atomic_store(&l->woken, false);
    for (struct loop_waker *w = l->wakers; w; w = l->waker_next) {
        l->waker_next = w->next; // loop_waker_free() moves it on when it takes that one away
        if (!atomic_exchange(&w->signalled, false))
            continue;
        const char *area = w->area;
        w->fn(w->arg);
        loop_account(l, area);
    }
    l->waker_next = NULL;
}

struct loop_waker *loop_waker_new(struct loop *l, const char *area, loop_fn *fn, void *arg)
{
    struct loop_waker *w = xmalloc(sizeof(*w));

    *w = (struct loop_waker){.loop = l, .area = area, .fn = fn, .arg = arg};
    struct loop_waker **at = &l->wakers;
    while (*at) // in the order they were made: that order is the one they run in
        at = &(*at)->next;
    *at = w;
    return w;
}

void loop_waker_signal(struct loop_waker *w)
{
    uint64_t one = 1;

    if (atomic_exchange(&w->signalled, true))
        return;
    atomic_store(&w->loop->woken, true);
    if (write(w->loop->wake_fd, &one, sizeof(one)) < 0) {
        // Only when the counter is full: then it is readable anyway.
    }
}

void loop_waker_free(struct loop_waker *w)
{
    if (!w)
        return;
    struct loop *l = w->loop;
    struct loop_waker **at = &l->wakers;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    if (l->waker_next == w)
        l->waker_next = w->next;
    free(w);
}

int loop_io_init(struct loop *l)
{
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->wake_fd < 0)
        return -errno;
    l->wake_event = event_new(l->base, l->wake_fd, EV_READ | EV_PERSIST, wake_event, l);
    return l->wake_event && event_add(l->wake_event, NULL) == 0 ? 0 : -ENOMEM;
}

void loop_io_done(struct loop *l)
{
    if (l->wake_event)
        event_free(l->wake_event);
    if (l->wake_fd >= 0)
        close(l->wake_fd);
}
