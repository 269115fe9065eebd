// SPDX-License-Identifier: Apache-2.0
// The umad transport. File map: umad_priv.h.
//
// Hardware: the descriptor is polled on the loop. The kernel puts its half into the TID of requests, matches
// answers, and hands a request back with a status when its time is over; RMPP is the kernel's too.
// libumad2sim: its handle is not a descriptor, so epoll cannot watch it. A thread waits for the first MAD and
// wakes the loop; the loop then reads (a queue in our own memory: no system call) as long as something comes,
// and only then sends the thread to wait again. So a busy loop pays neither a thread switch nor a wake a MAD.
// With more than some 300 requests out libumad2sim and ibsim wait for each other for ever: send() is full at
// SIM_WINDOW, whatever the engine allows.
//
// Owner: the loop's thread owns everything; the waiting thread touches fd, gate and stop only. free() may not
// be called from recv() or writable(); from broken() it may.
// ibsim's client library stands in for open(), not for open64(): devices need no large offsets.
#undef _FILE_OFFSET_BITS
#include "mad/umad.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/umad.h>

#include "lib/xalloc.h"
#include "mad/umad_priv.h"

#define BATCH 64 // MADs read before others get a turn
#define SIM_WINDOW 128
#define SIM_HALF_NS (500 * MONO_MS)
#define FULL_NS (2 * MONO_MS)
#define LONG_MAX (16u << 20) // bytes of a reassembled answer
#define IDLE_TURNS 2

static struct umad *self(struct transport *t)
{
    return (struct umad *)t;
}

static void broken_fn(void *arg)
{
    struct umad *u = arg;
    if (u->t.broken)
        u->t.broken(u->t.broken_arg, u->broken_status); // u may be gone afterwards
}

static void set_broken(struct umad *u, int status)
{
    if (u->is_broken)
        return;
    u->is_broken = true;
    u->broken_status = status;
    if (u->readable)
        loop_fd_events(u->readable, 0);
    loop_post(u->loop, &u->broken_task);
}

// --- what is out (libumad2sim only) ---

static unsigned unanswered(const struct umad *u)
{
    return u->young + u->old;
}

static void count_answer(struct umad *u)
{
    if (u->old)
        u->old--;
    else if (u->young)
        u->young--;
}

static void forget_lost(struct umad *u)
{
    mono_t now = loop_now(u->loop);
    int64_t age = mono_sub(now, u->since);
    if (age < SIM_HALF_NS)
        return;
    u->old = age < 2 * SIM_HALF_NS ? u->young : 0;
    u->young = 0;
    u->since = now;
}

// --- receiving ---

static void source(void *umad, uint8_t mgmt_class, struct mad_addr *from)
{
    const ib_mad_addr_t *a = umad_get_mad_addr(umad);
    bool smp = mgmt_class == MAD_CLASS_SM_DR || mgmt_class == MAD_CLASS_SM_LID;

    *from = (struct mad_addr){.lid = ntohs(a->lid),
                              .sl = a->sl,
                              .qp = !smp,
                              .remote_qpn = ntohl(a->qpn),
                              .qkey = smp ? 0 : MAD_QP1_Q_KEY,
                              .pkey_index = (uint16_t)umad_get_pkey(umad),
                              .grh_present = a->grh_present};
    if (!a->grh_present)
        return;
    memcpy(from->gid, a->gid, sizeof(from->gid));
    from->hop_limit = a->hop_limit;
    from->traffic_class = a->traffic_class;
    from->gid_index = a->gid_index;
    from->flow_label = ntohl(a->flow_label);
}

static void hand_up(struct umad *u, void *umad, int len)
{
    uint8_t *mad = umad_get_mad(umad);
    struct mad_addr from;
    int status = umad_status(umad);

    if (len < 24) // not even a header: libumad2sim's word for a broken read
        return;
    if (len < MAD_SIZE)
        memset(mad + len, 0, (size_t)(MAD_SIZE - len));
    if (status || mad[3] & MAD_METHOD_RESPONSE)
        count_answer(u);
    source(umad, mad[1], &from);
    u->t.recv(u->t.recv_arg, mad, &from, status ? -status : 0);
}

// An answer of many segments does not fit; only its first 256 bytes are wanted here, but it must be read.
static int read_long(struct umad *u, int len)
{
    if (len <= 0 || (unsigned)len > LONG_MAX)
        return -EMSGSIZE;
    void *big = xcalloc(1, umad_size() + (size_t)len);
    int r = umad_recv(u->fd, big, &len, 0);
    if (r >= 0)
        hand_up(u, big, len < MAD_SIZE ? len : MAD_SIZE);
    free(big);
    return r;
}

// Reads at most BATCH; returns how many there were.
static int drain(struct umad *u)
{
    int n = 0;
    while (n < BATCH && !u->is_broken) {
        int len = MAD_SIZE, r = umad_recv(u->fd, u->in, &len, 0);
        if (r == -ENOSPC)
            r = read_long(u, len);
        else if (r >= 0)
            hand_up(u, u->in, len);
        if (r == -EINTR)
            continue;
        if (r == -EAGAIN)
            break;
        if (r < 0) {
            set_broken(u, r);
            break;
        }
        n++;
    }
    if (n && u->full) {
        u->full = false;
        loop_timer_cancel(&u->retry);
        u->t.writable(u->t.recv_arg);
    }
    return n;
}

static void readable_fn(void *arg, int fd, int events)
{
    drain(arg);
}

static void drain_fn(void *arg)
{
    struct umad *u = arg;
    u->idle_turns = drain(u) ? 0 : u->idle_turns + 1;
    // What was just sent is mostly answered within a turn or two.
    if (u->idle_turns <= (unanswered(u) ? IDLE_TURNS : 0))
        loop_post(u->loop, &u->drain_task);
    else
        sem_post(&u->gate);
}

static void woken_fn(void *arg)
{
    struct umad *u = arg;
    u->idle_turns = 0;
    drain_fn(u);
}

static void *wait_thread(void *arg)
{
    struct umad *u = arg;
    while (!atomic_load(&u->stop)) {
        if (sem_wait(&u->gate))
            continue;
        int r = -1;
        while (!atomic_load(&u->stop) && (r = umad_poll(u->fd, 100)) != 0)
            if (r != -ETIMEDOUT)
                nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        if (r == 0)
            loop_waker_signal(u->waker);
    }
    return NULL;
}

// --- sending ---

static void retry_fn(void *arg)
{
    struct umad *u = arg;
    u->full = false;
    u->t.writable(u->t.recv_arg);
}

static int set_full(struct umad *u, int64_t ns)
{
    u->full = true;
    loop_timer_after(&u->retry, ns);
    return -EAGAIN;
}

static void destination(void *umad, const struct mad_addr *to)
{
    ib_mad_addr_t *a = umad_get_mad_addr(umad);

    umad_set_addr_net(umad, htons(to->lid), htonl(to->remote_qpn), to->sl, htonl(to->qkey));
    umad_set_pkey(umad, to->pkey_index);
    a->path_bits = 0;
    a->grh_present = to->grh_present;
    if (!to->grh_present)
        return;
    memcpy(a->gid, to->gid, sizeof(to->gid));
    a->hop_limit = to->hop_limit;
    a->traffic_class = to->traffic_class;
    a->gid_index = to->gid_index;
    a->flow_label = htonl(to->flow_label);
}

static int send_failed(struct umad *u, int errnum)
{
    switch (errnum) {
    case EAGAIN:
    case ENOMEM:
    case ENOBUFS:
        return set_full(u, FULL_NS);
    case ENODEV:
    case ENXIO:
    case EBADF:
    case EPIPE:
    case EIO:
    case ENOTCONN:
    case ECONNREFUSED: // ibsim is gone
    case ECONNRESET:
        set_broken(u, -errnum);
        return -ENODEV;
    default:
        return errnum ? -errnum : -EIO;
    }
}

static int put_out(struct umad *u, void *umad, size_t len, const struct mad_addr *to, int64_t timeout_ns)
{
    int agent = u->agent[((uint8_t *)umad_get_mad(umad))[1]];
    int64_t ms = (timeout_ns + MONO_MS - 1) / MONO_MS;

    if (u->is_broken)
        return -ENODEV;
    if (agent < 0)
        return -EPROTONOSUPPORT;
    if (u->full && timeout_ns > 0)
        return -EAGAIN;
    if (u->simulated && timeout_ns > 0) {
        forget_lost(u);
        if (unanswered(u) >= SIM_WINDOW)
            return set_full(u, SIM_HALF_NS);
    }
    destination(umad, to);
    // The retries are ours: each try has a TID of its own, and the kernel wants none twice.
    if (umad_send(u->fd, agent, umad, (int)len, (int)(ms < INT32_MAX ? ms : INT32_MAX), 0) < 0)
        return send_failed(u, errno);
    u->young += u->simulated && timeout_ns > 0;
    return 0;
}

static int send_mad(struct transport *t, const uint8_t *mad, const struct mad_addr *to, int64_t timeout_ns)
{
    struct umad *u = self(t);
    memcpy(umad_get_mad(u->out), mad, MAD_SIZE);
    return put_out(u, u->out, MAD_SIZE, to, timeout_ns);
}

static int send_rmpp(struct transport *t, const uint8_t *msg, size_t len, const struct mad_addr *to)
{
    struct umad *u = self(t);
    if (len < MAD_SA_DATA_OFFSET || len > LONG_MAX)
        return -EMSGSIZE;
    size_t wire = len > MAD_SIZE ? len : MAD_SIZE;
    void *umad = xcalloc(1, umad_size() + wire);
    uint8_t *mad = umad_get_mad(umad);

    memcpy(mad, msg, len);
    mad[24] = 1; // RMPP version
    mad[25] = MAD_RMPP_DATA;
    mad[26] = MAD_RMPP_ACTIVE;
    if (u->simulated) {                         // no RMPP there: the first segment is all that can go
        wire = len < MAD_SIZE ? len : MAD_SIZE; // its length tells the receiver how many records there are
        mad[26] |= MAD_RMPP_FIRST | MAD_RMPP_LAST;
        mad[31] = 1;                    // segment
        mad[35] = (uint8_t)(wire - 36); // payload length
    }
    int r = put_out(u, umad, u->simulated ? wire : len, to, 0);
    free(umad);
    return r;
}

// --- the rest ---

static int read_port(struct transport *t, struct transport_port *ret)
{
    struct umad *u = self(t);
    struct transport_port p = u->port;
    int r = umad_read_port(u->port.device, u->port.num, &p);
    if (!r)
        *ret = p;
    return r;
}

static int issm(struct transport *t, bool on, struct err *e)
{
    struct umad *u = self(t);
    char path[128], who[64];

    if (!on && u->issm >= 0) {
        close(u->issm);
        u->issm = -1;
    }
    if (!on || u->issm >= 0)
        return 0;
    if (umad_get_issm_path(u->port.device, u->port.num, path, sizeof(path)) < 0)
        return err_set(e, -ENOENT, u->name, "the kernel shows no issm device for this port: load ib_umad");
    // Without O_NONBLOCK the kernel lets the second opener wait until the first is gone.
    u->issm = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (u->issm >= 0)
        return 0;
    if (errno == EAGAIN || errno == EBUSY) {
        const char *holder = umad_holder("/proc", path, who, sizeof(who));
        return err_set(e, -EBUSY, path,
                       "%s holds it: another subnet manager runs on this port; stop one of the two",
                       holder ? holder : "another process");
    }
    if (errno == EACCES || errno == EPERM)
        return err_set(e, -EACCES, path,
                       "no permission: start as root, or give the service user the device's group");
    return err_set(e, -errno, path, "cannot open: %s; without it other subnet managers do not see this one",
                   strerror(errno));
}

// libumad2sim waits for itself for ever if a MAD arrives while the process exits.
static void await_answers(struct umad *u)
{
    int len = MAD_SIZE, r;
    while (unanswered(u) && (r = umad_recv(u->fd, u->in, &len, 100)) >= 0) {
        if (len >= 24 && (umad_status(u->in) || ((uint8_t *)umad_get_mad(u->in))[3] & MAD_METHOD_RESPONSE))
            count_answer(u);
        len = MAD_SIZE;
    }
}

static void umad_free_transport(struct transport *t)
{
    struct umad *u = self(t);
    if (u->waker) {
        atomic_store(&u->stop, true);
        sem_post(&u->gate);
        pthread_join(u->thread, NULL);
        loop_waker_free(u->waker);
        sem_destroy(&u->gate);
        if (!u->is_broken)
            await_answers(u);
    }
    loop_unpost(u->loop, &u->drain_task);
    loop_unpost(u->loop, &u->broken_task);
    loop_timer_cancel(&u->retry);
    if (u->readable)
        loop_fd_free(u->readable);
    if (u->issm >= 0)
        close(u->issm);
    if (u->fd >= 0)
        umad_close_port(u->fd);
    free(u->in);
    free(u->out);
    free(u);
}

static void recv_none(void *arg, const uint8_t *mad, const struct mad_addr *from, int status)
{
}

static void writable_none(void *arg)
{
}

static int start_receiving(struct umad *u, struct err *e)
{
    if (!u->simulated) {
        u->readable = loop_fd_new(u->loop, umad_get_fd(u->fd), LOOP_READ, "umad", readable_fn, u);
        return 0;
    }
    sem_init(&u->gate, 0, 1);
    u->waker = loop_waker_new(u->loop, "umad", woken_fn, u);
    int r = pthread_create(&u->thread, NULL, wait_thread, u);
    if (!r)
        return 0;
    loop_waker_free(u->waker);
    u->waker = NULL;
    sem_destroy(&u->gate);
    return err_set(e, -r, u->name, "cannot start a thread: %s", strerror(r));
}

struct transport *umad_open(struct loop *l, const struct umad_opts *o, struct err *e)
{
    static const struct transport_ops ops = {.send = send_mad,
                                             .send_rmpp = send_rmpp,
                                             .port = read_port,
                                             .issm = issm,
                                             .free = umad_free_transport};
    struct umad *u = xcalloc(1, sizeof(*u));

    u->t = (struct transport){.ops = &ops, .recv = recv_none, .writable = writable_none, .name = u->name};
    u->loop = l;
    u->fd = u->issm = -1;
    memset(u->agent, 0xff, sizeof(u->agent));
    loop_task_init(&u->drain_task, "umad", drain_fn, u);
    loop_task_init(&u->broken_task, "umad", broken_fn, u);
    loop_timer_init(&u->retry, l, "umad", retry_fn, u);
    if (umad_attach(u, o, e) < 0) {
        umad_free_transport(&u->t);
        return NULL;
    }
    snprintf(u->name, sizeof(u->name), "umad %s/%u", u->port.device, u->port.num);
    u->in = xcalloc(1, umad_size() + MAD_SIZE);
    u->out = xcalloc(1, umad_size() + MAD_SIZE);
    if (start_receiving(u, e) < 0) {
        umad_free_transport(&u->t);
        return NULL;
    }
    return &u->t;
}
