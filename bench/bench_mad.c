// SPDX-License-Identifier: Apache-2.0
// How fast MADs go through the engine and the umad transport: NodeInfo Gets to the leaf, one hop away, as on
// ibsim through libumad2sim. Prints MADs a second and CPU time a MAD (the whole process: the engine, libumad,
// and libumad2sim with its receiving thread).
//
//   LD_PRELOAD=libumad2sim.so bench_mad [-n MADS] [-w WINDOW] [-d DEVICES] [-s (Sets of a table block)] [-v]
//   bench_mad -f: no transport but a function that answers at once (the engine alone)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/err.h"
#include "lib/xalloc.h"
#include "mad/engine.h"
#include "mad/mad.h"
#include "mad/umad.h"

struct bench {
    struct loop *l;
    struct mad_engine *e;
    unsigned long left, out, done, failed;
    unsigned devices;
    bool set, finished;
};

static void done_fn(void *arg, uint64_t user, const struct mad_result *r);

static void send_one(struct bench *b)
{
    static const struct dr_path leaf = {.hops = 1, .port = {0, 1}};
    static const uint8_t block[64];
    struct mad_request q = {.mgmt_class = MAD_CLASS_SM_DR,
                            .method = b->set ? MAD_METHOD_SET : MAD_METHOD_GET,
                            .attr_id = b->set ? MAD_ATTR_LINEAR_FORWARDING_TABLE : MAD_ATTR_NODE_INFO,
                            .path = &leaf,
                            .data = b->set ? block : NULL,
                            .data_len = b->set ? 64 : 0,
                            .device = b->left % b->devices,
                            .retries = -1,
                            .done = done_fn,
                            .arg = b};
    b->left--;
    b->out++;
    mad_engine_send(b->e, &q);
}

static void done_fn(void *arg, uint64_t user, const struct mad_result *r)
{
    struct bench *b = arg;
    b->out--;
    b->done++;
    b->failed += r->status != 0;
    if (b->left)
        send_one(b);
    else if (!b->out)
        b->finished = true;
}

static void broken_fn(void *arg, int status)
{
    struct bench *b = arg;
    fprintf(stderr, "bench_mad: the port is gone: %s\n", strerror(-status));
    loop_stop(b->l);
}

// --- the transport that answers at once ---

#define HELD 256
struct echo {
    struct transport t;
    struct loop *l;
    struct loop_task task;
    unsigned n;
    uint8_t mad[HELD][MAD_SIZE];
};

static void echo_fn(void *arg)
{
    struct echo *c = arg;
    struct mad_addr from = {.lid = 0xffff};
    for (unsigned i = 0, n = c->n; i < n; i++) {
        c->mad[i][3] = MAD_METHOD_GET_RESP;
        c->t.recv(c->t.recv_arg, c->mad[i], &from, 0);
    }
    c->n = 0;
}

static int echo_send(struct transport *t, const uint8_t *mad, const struct mad_addr *to, int64_t timeout_ns)
{
    struct echo *c = (struct echo *)t;
    memcpy(c->mad[c->n++], mad, MAD_SIZE);
    loop_post(c->l, &c->task);
    return 0;
}

static void echo_free(struct transport *t)
{
    free(t);
}

static struct transport *echo_new(struct loop *l)
{
    static const struct transport_ops ops = {.send = echo_send, .free = echo_free};
    struct echo *c = xcalloc(1, sizeof(*c));
    c->t.ops = &ops;
    c->l = l;
    loop_task_init(&c->task, "echo", echo_fn, c);
    return &c->t;
}

int main(int argc, char **argv)
{
    struct bench b = {.left = 300000, .devices = 64};
    struct mad_engine_opts o = {.window_total = 256, .retries = -1};
    bool echo = false, verbose = false;
    struct err e;
    char text[700];

    for (int c; (c = getopt(argc, argv, "n:w:d:sfv")) != -1;) {
        if (c == 'n')
            b.left = strtoul(optarg, NULL, 10);
        else if (c == 'w')
            o.window_total = (unsigned)strtoul(optarg, NULL, 10);
        else if (c == 'd')
            b.devices = (unsigned)strtoul(optarg, NULL, 10);
        else if (c == 's')
            b.set = true;
        else if (c == 'v')
            verbose = true;
        else if (c == 'f')
            echo = true;
        else
            return 2;
    }
    b.devices = b.devices ? b.devices : 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    b.l = loop_new(LOOP_REAL);
    struct transport *t = echo ? echo_new(b.l) : umad_open(b.l, &(struct umad_opts){.need_sm = true}, &e);
    if (!t) {
        fprintf(stderr, "bench_mad: %s\n", err_str(&e, text, sizeof(text)));
        return 1;
    }
    t->broken = broken_fn;
    t->broken_arg = &b;
    b.e = mad_engine_new(b.l, t, &o);
    mono_t start = mono_now();
    int64_t cpu = cpu_now_ns(), loop_cpu = thread_cpu_ns();
    for (unsigned i = 0; i < 512 && b.left; i++)
        send_one(&b);
    loop_run_until(b.l, &b.finished, 600 * MONO_S);
    double s = mono_seconds(mono_sub(mono_now(), start)), n = (double)b.done;
    cpu = cpu_now_ns() - cpu;
    loop_cpu = thread_cpu_ns() - loop_cpu;
    struct mad_engine_stats st;
    mad_engine_stats(b.e, &st);
    printf("%lu MADs, %lu failed, %.0f MAD/s, CPU us a MAD: %.2f (loop thread %.2f); window %u, most out %u, "
           "sent "
           "%llu, late %llu, timeouts %llu, undeliverable %llu\n",
           b.done, b.failed, n / s, (double)cpu / 1e3 / n, (double)loop_cpu / 1e3 / n, o.window_total,
           st.outstanding_max, (unsigned long long)st.sent, (unsigned long long)st.late,
           (unsigned long long)st.timeouts, (unsigned long long)st.undeliverable);
    struct loop_area_stats area[16];
    size_t areas = loop_stats(b.l, area, 16);
    for (size_t i = 0; i < areas && i < 16 && verbose; i++)
        printf("  %s: %llu calls, %.3f s, longest %.1f ms\n", area[i].area, (unsigned long long)area[i].calls,
               mono_seconds(area[i].total_ns), (double)area[i].max_ns / 1e6);
    mad_engine_free(b.e);
    t->ops->free(t);
    loop_free(b.l);
    return b.finished ? 0 : 1;
}
