// SPDX-License-Identifier: Apache-2.0
// Inside of the umad transport: mad/umad*.c and its tests only.
//
//   umad.c        the transport: sending, receiving, issm
//   umad_open.c   finding the port, registering classes, and saying why it does not work
#ifndef WEFT_MAD_UMAD_PRIV_H
#define WEFT_MAD_UMAD_PRIV_H

#include <semaphore.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "lib/err.h"
#include "mad/mad.h"
#include "mad/umad.h"

#define UMAD_PORTS_MAX 64

struct umad {
    struct transport t;
    struct loop *loop;
    struct transport_port port; // as it was when opened
    char name[80];
    int fd;             // libibumad's handle; under libumad2sim not a descriptor
    int16_t agent[256]; // by class; -1: not registered
    void *in, *out;     // struct ib_user_mad and one MAD
    int issm;           // descriptor, -1
    bool is_broken;
    int broken_status;
    struct loop_task broken_task;
    struct loop_timer retry; // the way out was full
    // A descriptor that epoll takes ...
    struct loop_fd *readable;
    // ... or, under libumad2sim, a thread that only waits, and the loop that reads.
    bool simulated;
    bool full;
    // Requests out: sent in this half second and in the one before. Older ones are lost.
    unsigned young, old;
    mono_t since; // start of this half second
    unsigned idle_turns;
    struct loop_task drain_task;
    struct loop_waker *waker;
    pthread_t thread;
    sem_t gate; // posted: wait for the next MAD
    atomic_bool stop;
};

// The index of the port to open among those of this machine, or a negative errno and *e.
int umad_choose(const struct transport_port *p, int n, const struct umad_opts *o, struct err *e);
// Who else holds the device file open, "opensm (pid 12)", or NULL when that cannot be told. proc: "/proc".
const char *umad_holder(const char *proc, const char *device_file, char *buf, size_t size);
// Opens and registers: u->port, fd, agent. 0 or negative errno and *e.
int umad_attach(struct umad *u, const struct umad_opts *o, struct err *e);
int umad_read_port(const char *device, int num, struct transport_port *ret);

#endif
