// SPDX-License-Identifier: Apache-2.0
// The engine on a scripted transport and a virtual clock: composition, deadlines, windows, turns, endings.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_transport.h"
#include "lib/rng.h"
#include "mad/engine_priv.h"

#define TICK (1 << WHEEL_SHIFT)
#define RUN (3600ll * MONO_S)

struct rig {
    struct loop *l;
    struct fake f;
    struct mad_engine *e;
    unsigned want, got; // endings
    int last_status;
    struct mad_result last;
    int64_t last_at, first_timeout_at;
    unsigned first_timeouts;
    bool all;
    uint64_t order[4096]; // users in the order they ended
};

static struct rig *rig_new(const struct mad_engine_opts *o)
{
    struct rig *r = xcalloc(1, sizeof(*r));
    r->l = loop_new(LOOP_VIRTUAL);
    fake_init(&r->f, r->l);
    r->f.arg = r;
    r->e = mad_engine_new(r->l, &r->f.t, o);
    return r;
}

static void rig_free(struct rig *r)
{
    mad_engine_free(r->e);
    fake_done(&r->f);
    loop_free(r->l);
    free(r);
}

static void done_fn(void *arg, uint64_t user, const struct mad_result *res)
{
    struct rig *r = arg;
    if (r->got < 4096)
        r->order[r->got] = user;
    r->got++;
    r->last = *res;
    r->last_at = loop_now(r->l).ns;
    r->all = r->got >= r->want;
}

static void first_timeout_fn(void *arg, uint64_t user)
{
    struct rig *r = arg;
    r->first_timeouts++;
    r->first_timeout_at = loop_now(r->l).ns;
}

static const struct dr_path one_hop = {.hops = 1, .port = {0, 1}};

static struct mad_request get(struct rig *r, uint64_t device)
{
    return (struct mad_request){.mgmt_class = MAD_CLASS_SM_DR,
                                .method = MAD_METHOD_GET,
                                .attr_id = MAD_ATTR_NODE_INFO,
                                .path = &one_hop,
                                .device = device,
                                .retries = -1,
                                .done = done_fn,
                                .arg = r,
                                .first_timeout = first_timeout_fn};
}

static void send_n(struct rig *r, unsigned n, uint64_t device, enum mad_prio prio, uint64_t user)
{
    struct mad_request q = get(r, device);
    q.prio = prio;
    q.user = user;
    r->want += n;
    r->all = false;
    while (n--)
        mad_engine_send(r->e, &q);
}

static void run(struct rig *r)
{
    assert_true(loop_run_until(r->l, &r->all, RUN));
}

static void run_for(struct rig *r, int64_t ns)
{
    static const bool never;
    loop_run_until(r->l, &never, ns);
}

static struct mad_engine_stats stats(struct rig *r)
{
    struct mad_engine_stats s;
    mad_engine_stats(r->e, &s);
    return s;
}

static struct mad_count count_of(struct rig *r, uint8_t method, uint16_t attr)
{
    struct mad_count c[COUNT_ROWS];
    size_t n = mad_engine_counts(r->e, c, COUNT_ROWS);
    for (size_t i = 0; i < n; i++)
        if (c[i].method == method && c[i].attr_id == attr)
            return c[i];
    return (struct mad_count){0};
}

static void at(int64_t when, int64_t want, int64_t ticks)
{
    assert_in_range(when - want, 0, ticks * TICK);
}

static int prompt(struct fake *f, const uint8_t *mad, const struct mad_addr *to)
{
    fake_answer(f, mad, 10 * MONO_US);
    return 0;
}

static void test_wire(void **state)
{
    struct rig *r = rig_new(NULL);
    struct dr_path path = {.hops = 3, .port = {9, 1, 2, 3}};
    uint8_t data[64];
    for (int i = 0; i < 64; i++)
        data[i] = (uint8_t)(i + 1);
    r->f.script = prompt;
    struct mad_request q = get(r, 1);
    q.path = &path;
    q.method = MAD_METHOD_SET;
    q.attr_id = MAD_ATTR_PORT_INFO;
    q.attr_mod = 0x80000005;
    q.m_key = 0x0102030405060708;
    q.data = data;
    q.data_len = 64;
    r->want = 1;
    mad_engine_send(r->e, &q);
    assert_int_equal(r->f.sends, 0);
    run(r);

    const uint8_t *m = r->f.log[0].mad;
    // 14.2.1.2: version, class, class version, method, status, hop pointer, hop count
    static const uint8_t head[8] = {1, 0x81, 1, 2, 0, 0, 0, 3};
    assert_memory_equal(m, head, 8);
    static const uint8_t rest[20] = {0, 0x15, 0, 0, 0x80, 0, 0,    5,    1,    2,
                                     3, 4,    5, 6, 7,    8, 0xff, 0xff, 0xff, 0xff};
    assert_memory_equal(m + 16, rest, 20);
    assert_memory_equal(m + 64, data, 64);
    static const uint8_t hops[5] = {0, 1, 2, 3, 0};
    assert_memory_equal(m + 128, hops, 5);
    assert_int_equal(r->f.to.lid, 0xffff);
    assert_int_equal(r->f.to.qp, 0);
    assert_int_equal(r->last.status, 0);
    assert_int_equal(r->last.mad_status, 0); // the direction bit is gone
    assert_int_equal(r->last.tries, 1);
    assert_int_equal(r->last.rtt_ns, 10 * MONO_US);
    assert_int_equal(r->last.data - r->last.mad, 64);
    assert_int_equal(r->f.wanted_ns, (200 + 400 + 800 + 1600) * MONO_MS);
    rig_free(r);
}

static void test_gmp_wire(void **state)
{
    struct rig *r = rig_new(NULL);
    r->f.script = prompt;
    struct mad_request q = get(r, 1);
    q.mgmt_class = MAD_CLASS_SA;
    q.lid = 7;
    q.sl = 3;
    q.attr_id = MAD_SA_ATTR_PATH_RECORD;
    q.m_key = 1;
    q.comp_mask = 0x8000000000000002;
    q.data = "xyz";
    q.data_len = 3;
    r->want = 1;
    mad_engine_send(r->e, &q);
    run(r);
    const uint8_t *m = r->f.log[0].mad;
    assert_int_equal(m[2], 2);
    assert_int_equal(m[43], 1);
    assert_int_equal(m[48], 0x80);
    assert_int_equal(m[55], 2);
    assert_memory_equal(m + 56, "xyz\0", 4);
    assert_int_equal(r->f.to.lid, 7);
    assert_int_equal(r->f.to.sl, 3);
    assert_int_equal(r->f.to.qp, 1);
    assert_int_equal(r->f.to.remote_qpn, 1);
    assert_int_equal(r->f.to.qkey, 0x80010000);
    assert_int_equal(r->last.data - r->last.mad, 56);
    rig_free(r);
}

static void test_refused_arguments(void **state)
{
    struct rig *r = rig_new(NULL);
    struct dr_path far = {.hops = 64};
    struct mad_request q = get(r, 1);
    r->want = 5;
    q.path = NULL;
    mad_engine_send(r->e, &q);
    q.path = &far;
    mad_engine_send(r->e, &q);
    q.mgmt_class = MAD_CLASS_SM_LID; // no LID
    mad_engine_send(r->e, &q);
    q.lid = 1;
    q.method = MAD_METHOD_GET_RESP;
    mad_engine_send(r->e, &q);
    q.method = MAD_METHOD_SET;
    q.data = &far;
    q.data_len = 65;
    mad_engine_send(r->e, &q);
    assert_int_equal(r->got, 0);
    run(r);
    assert_int_equal(r->got, 5);
    assert_int_equal(r->last.status, -EMSGSIZE);
    assert_int_equal(r->f.sends, 0);
    rig_free(r);
}

static void test_timeouts(void **state)
{
    struct rig *r = rig_new(NULL);
    send_n(r, 1, 1, MAD_PRIO_SMP, 0);
    run(r);
    assert_int_equal(r->last.status, -ETIMEDOUT);
    assert_null(r->last.mad);
    assert_int_equal(r->last.tries, 4);
    assert_int_equal(r->f.sends, 4);
    static const int64_t ms[] = {0, 200, 600, 1400};
    for (int i = 0; i < 4; i++) {
        at(r->f.log[i].at_ns, ms[i] * MONO_MS, i);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(fake_tid(r->f.log[i].mad), fake_tid(r->f.log[j].mad));
    }
    at(r->last_at, 3000 * MONO_MS, 4);
    at(r->first_timeout_at, 200 * MONO_MS, 1);
    assert_int_equal(r->first_timeouts, 1);
    struct mad_count c = count_of(r, MAD_METHOD_GET, MAD_ATTR_NODE_INFO);
    assert_int_equal(c.requests, 1);
    assert_int_equal(c.sent, 4);
    assert_int_equal(c.retries, 3);
    assert_int_equal(c.timeouts, 4);
    assert_int_equal(mad_engine_outstanding(r->e), 0);
    rig_free(r);
}

static int bounce(struct fake *f, const uint8_t *mad, const struct mad_addr *to)
{
    fake_deliver(f, mad, 0, -110);
    return 0;
}

static int refuse(struct fake *f, const uint8_t *mad, const struct mad_addr *to)
{
    return -EIO;
}

static void undeliverable_by(int (*script)(struct fake *, const uint8_t *, const struct mad_addr *))
{
    struct rig *r = rig_new(NULL);
    r->f.script = script;
    send_n(r, 1, 1, MAD_PRIO_SMP, 0);
    run(r);
    assert_int_equal(r->last.status, -ENETUNREACH);
    assert_int_equal(r->f.sends, 13);
    static const int64_t ms[] = {0, 1, 3, 7, 15, 31, 63, 95, 127, 159, 191, 223, 255};
    for (int i = 0; i < 13; i++)
        at(r->f.log[i].at_ns, ms[i] * MONO_MS, i);
    assert_int_equal(r->first_timeouts, 1);
    assert_int_equal(r->first_timeout_at, 0);
    assert_int_equal(count_of(r, MAD_METHOD_GET, MAD_ATTR_NODE_INFO).undeliverable, 13);
    assert_int_equal(stats(r).timeouts, 0);
    rig_free(r);
}

static void test_undeliverable(void **state)
{
    undeliverable_by(bounce);
    undeliverable_by(refuse);
}

static void test_single_try(void **state)
{
    struct rig *r = rig_new(NULL);
    r->f.script = bounce;
    struct mad_request q = get(r, 1);
    q.retries = 0;
    r->want = 1;
    mad_engine_send(r->e, &q);
    run(r);
    assert_int_equal(r->f.sends, 1);
    assert_int_equal(r->first_timeouts, 0);
    rig_free(r);
}

static int answer_first_late(struct fake *f, const uint8_t *mad, const struct mad_addr *to)
{
    if (f->sends == 0)
        fake_answer(f, mad, 300 * MONO_MS);
    if (f->sends == 1)
        fake_answer(f, mad, 150 * MONO_MS);
    return 0;
}

static void test_late_answer(void **state)
{
    struct rig *r = rig_new(NULL);
    r->f.script = answer_first_late;
    send_n(r, 1, 1, MAD_PRIO_SMP, 0);
    run(r);
    assert_int_equal(r->last.status, 0);
    assert_int_equal(r->last_at, 300 * MONO_MS);
    assert_int_equal(r->last.rtt_ns, 300 * MONO_MS);
    assert_int_equal(r->f.sends, 2);
    assert_int_equal(mad_engine_outstanding(r->e), 0);
    run_for(r, MONO_S);
    assert_int_equal(stats(r).late, 1);
    assert_int_equal(stats(r).unmatched, 1); // the answer to the second try
    assert_int_equal(r->got, 1);
    rig_free(r);
}

// A new window of a device that has answered promptly waits as short as that one does; without, as long as
// for a stranger among the quick.
static void test_like(void **state)
{
    int64_t first[2];
    for (int like = 0; like < 2; like++) {
        struct rig *r = rig_new(NULL);
        r->f.script = prompt;
        send_n(r, 32, 1, MAD_PRIO_SMP, 0);
        run(r);
        r->f.script = NULL;
        struct mad_request q = get(r, 2);
        q.like = like ? 1 : 0;
        r->want = r->got + 1;
        r->all = false;
        int64_t from = loop_now(r->l).ns;
        mad_engine_send(r->e, &q);
        run(r);
        assert_int_equal(r->last.status, -ETIMEDOUT);
        first[like] = r->first_timeout_at - from;
        rig_free(r);
    }
    at(first[0], 50 * MONO_MS, 1);
    at(first[1], 20 * MONO_MS, 1);
}

static void test_explicit_timeout(void **state)
{
    struct rig *r = rig_new(NULL);
    r->f.script = prompt;
    send_n(r, 32, 1, MAD_PRIO_SMP, 0);
    run(r);
    r->f.script = NULL;
    r->f.sends = 0;
    struct mad_request q = get(r, 1);
    q.timeout_ns = 500 * MONO_MS;
    q.retries = 1;
    r->want = r->got + 1;
    r->all = false;
    int64_t from = loop_now(r->l).ns;
    mad_engine_send(r->e, &q);
    run(r);
    at(r->f.log[1].at_ns - from, 500 * MONO_MS, 1);
    at(r->last_at - from, 1500 * MONO_MS, 2);
    rig_free(r);
}

static int slow_agent(struct fake *f, const uint8_t *mad, const struct mad_addr *to)
{
    fake_answer(f, mad, 350 * MONO_MS);
    return 0;
}

static void test_estimate(void **state)
{
    struct rig *r = rig_new(NULL);
    // A quick device: the floor.
    r->f.script = prompt;
    send_n(r, 32, 1, MAD_PRIO_SMP, 0);
    run(r);
    r->f.script = NULL;
    r->f.sends = 0;
    int64_t from = loop_now(r->l).ns;
    send_n(r, 1, 1, MAD_PRIO_SMP, 0);
    run(r);
    static const int64_t ms[] = {0, 20, 60, 140, 300, 500, 900, 1700};
    assert_int_equal(r->f.sends, 8);
    for (int i = 0; i < 8; i++)
        at(r->f.log[i].at_ns - from, ms[i] * MONO_MS, i);
    at(r->last_at - from, 3300 * MONO_MS, 8);
    // An agent slower than the default: asked twice at first, not for ever.
    r->f.script = slow_agent;
    send_n(r, 4, 2, MAD_PRIO_SMP, 0);
    run(r);
    uint64_t before = stats(r).retries;
    send_n(r, 40, 2, MAD_PRIO_SMP, 0);
    run(r);
    assert_int_equal(stats(r).retries, before);
    // Forgotten, while all others are quick: a quarter of the default.
    r->f.script = prompt;
    send_n(r, 200, 3, MAD_PRIO_SMP, 0);
    run(r);
    mad_engine_forget_device(r->e, 1);
    r->f.script = NULL;
    r->f.sends = 0;
    from = loop_now(r->l).ns;
    send_n(r, 1, 1, MAD_PRIO_SMP, 0);
    run(r);
    at(r->f.log[1].at_ns - from, 50 * MONO_MS, 1);
    rig_free(r);
}

// Holds everything back until told.
struct held {
    unsigned n;
    uint8_t mad[1024][MAD_SIZE];
};
static struct held held;

static int hold(struct fake *f, const uint8_t *mad, const struct mad_addr *to)
{
    assert_true(held.n < 1024);
    memcpy(held.mad[held.n++], mad, MAD_SIZE);
    return 0;
}

static void release(struct rig *r)
{
    for (unsigned i = 0; i < held.n; i++)
        fake_answer(&r->f, held.mad[i], 0);
    held.n = 0;
}

static void test_window(void **state)
{
    struct rig *r = rig_new(NULL);
    unsigned last = 0;
    held.n = 0;
    r->f.script = hold;
    send_n(r, 400, 1, MAD_PRIO_SMP, 0);
    run_for(r, MONO_MS);
    assert_int_equal(held.n, 4);
    assert_int_equal(mad_engine_outstanding(r->e), 4);
    assert_int_equal(mad_engine_queued(r->e), 396);
    while (held.n) {
        assert_in_range(held.n, last ? 1 : 4, 16);
        if (held.n > last)
            last = held.n;
        release(r);
        run_for(r, 10 * MONO_US);
    }
    assert_int_equal(r->got, 400);
    assert_int_equal(last, 16);
    // One loss event halves it once, though all 16 are lost.
    send_n(r, 100, 1, MAD_PRIO_SMP, 0);
    run_for(r, MONO_MS);
    assert_int_equal(held.n, 16);
    held.n = 0;
    run_for(r, 30 * MONO_MS);
    assert_int_equal(held.n, 8);
    rig_free(r);
}

static void test_window_total(void **state)
{
    struct rig *r = rig_new(NULL);
    held.n = 0;
    r->f.script = hold;
    for (uint64_t d = 0; d < 200; d++)
        send_n(r, 4, d, MAD_PRIO_SMP, d);
    run_for(r, MONO_MS);
    assert_int_equal(held.n, 256);
    // Devices took turns: nobody is twice ahead.
    unsigned per[200] = {0};
    for (int i = 0; i < 64; i++)
        per[txn_at(r->e, tid_find(r->e, fake_tid(held.mad[i])))->dev]++;
    for (int i = 0; i < 64; i++)
        assert_int_equal(per[i], 1);
    while (held.n) {
        assert_true(held.n <= 256);
        release(r);
        run_for(r, 10 * MONO_US);
    }
    assert_int_equal(r->got, 800);
    assert_int_equal(stats(r).outstanding_max, 256);
    rig_free(r);
}

static void test_priority(void **state)
{
    struct mad_engine_opts o = {.window_total = 1, .retries = -1};
    struct rig *r = rig_new(&o);
    r->f.script = prompt;
    send_n(r, 3, 1, MAD_PRIO_PMA, 3);
    send_n(r, 3, 2, MAD_PRIO_SA, 2);
    send_n(r, 3, 1, MAD_PRIO_SMP, 1);
    run(r);
    static const uint64_t want[9] = {1, 1, 1, 2, 2, 2, 3, 3, 3};
    assert_memory_equal(r->order, want, sizeof(want));
    rig_free(r);
}

static void test_fair(void **state)
{
    struct mad_engine_opts o = {.window_total = 2, .retries = -1};
    struct rig *r = rig_new(&o);
    r->f.script = prompt;
    send_n(r, 500, 1, MAD_PRIO_SMP, 1);
    send_n(r, 2, 2, MAD_PRIO_SMP, 2);
    run(r);
    unsigned last = 0;
    for (unsigned i = 0; i < r->got; i++)
        if (r->order[i] == 2)
            last = i;
    assert_in_range(last, 1, 4);
    rig_free(r);
}

static int dead_above_1000(struct fake *f, const uint8_t *mad, const struct mad_addr *to)
{
    if (to->lid < 1000)
        fake_answer(f, mad, 10 * MONO_US);
    return 0;
}

// A thousand dead nodes cost their own time, in parallel. The living wait at most for first tries, never for
// repeats.
static void test_dead_nodes(void **state)
{
    struct rig *r = rig_new(NULL);
    r->f.script = dead_above_1000;
    struct mad_request q = get(r, 0);
    q.mgmt_class = MAD_CLASS_SM_LID;
    r->want = 1000;
    for (unsigned i = 0; i < 1000; i++) {
        q.lid = (uint16_t)(1000 + i);
        q.device = q.lid;
        mad_engine_send(r->e, &q);
    }
    run_for(r, 500 * MONO_MS);
    assert_int_equal(r->got, 0);
    q.lid = 1;
    q.device = 1;
    r->want = 100;
    for (unsigned i = 0; i < 100; i++)
        mad_engine_send(r->e, &q);
    int64_t from = loop_now(r->l).ns;
    run(r);
    assert_in_range(r->last_at - from, 0, 1500 * MONO_MS);
    r->want = 1100;
    r->all = false;
    run(r);
    assert_in_range(r->last_at, 0, 20 * MONO_S);
    rig_free(r);
}

static bool full;
static int when_not_full(struct fake *f, const uint8_t *mad, const struct mad_addr *to)
{
    if (full)
        return -EAGAIN;
    fake_answer(f, mad, 10);
    return 0;
}

static void test_pause(void **state)
{
    struct rig *r = rig_new(NULL);
    r->f.script = when_not_full;
    full = true;
    send_n(r, 10, 1, MAD_PRIO_SMP, 0);
    run_for(r, MONO_S);
    assert_int_equal(r->f.sends, 0);
    assert_int_equal(mad_engine_outstanding(r->e), 0);
    full = false;
    send_n(r, 1, 1, MAD_PRIO_SMP, 0);
    run_for(r, MONO_S);
    assert_int_equal(r->f.sends, 0); // not before writable()
    r->f.t.writable(r->f.t.recv_arg);
    run(r);
    assert_int_equal(r->got, 11);
    assert_int_equal(r->f.sends, 11);
    assert_int_equal(r->last.tries, 1);
    rig_free(r);
}

static int bounce_device_2(struct fake *f, const uint8_t *mad, const struct mad_addr *to)
{
    if (to->lid == 2)
        fake_deliver(f, mad, 0, -110);
    return 0;
}

static void test_cancel(void **state)
{
    struct rig *r = rig_new(NULL);
    r->f.script = bounce_device_2;
    struct mad_request q = get(r, 1);
    q.mgmt_class = MAD_CLASS_SM_LID;
    q.lid = 1;
    q.gen = 7;
    for (int i = 0; i < 10; i++)
        mad_engine_send(r->e, &q); // 4 on the wire, 6 queued
    q.lid = 2;
    q.device = 2;
    mad_engine_send(r->e, &q); // in back-off
    q.gen = 8;
    q.lid = 3;
    q.device = 3;
    mad_engine_send(r->e, &q); // another generation
    run_for(r, 500 * MONO_US);
    assert_int_equal(mad_engine_outstanding(r->e), 5);
    mad_engine_cancel_gen(r->e, 0);
    mad_engine_cancel_gen(r->e, 7);
    mad_engine_cancel_gen(r->e, 7);
    assert_int_equal(r->got, 0);
    run_for(r, MONO_MS);
    assert_int_equal(r->got, 11);
    assert_int_equal(r->last.status, -ECANCELED);
    assert_int_equal(stats(r).cancelled, 11);
    assert_int_equal(mad_engine_queued(r->e), 0);
    assert_int_equal(mad_engine_outstanding(r->e), 5); // what is out is out
    // An answer to a cancelled one is not told again and frees its place.
    fake_answer(&r->f, r->f.log[0].mad, 0);
    run_for(r, MONO_MS);
    assert_int_equal(mad_engine_outstanding(r->e), 4);
    assert_int_equal(r->got, 11);
    run_for(r, 10 * MONO_S);
    assert_int_equal(r->got, 12);
    assert_int_equal(r->last.status, -ETIMEDOUT);
    assert_int_equal(mad_engine_outstanding(r->e), 0);
    rig_free(r);
}

static void cancel_all_fn(void *arg, uint64_t user, const struct mad_result *res)
{
    struct rig *r = arg;
    done_fn(arg, user, res);
    mad_engine_cancel_device(r->e, 1);
}

// The first failure at a device ends the rest of its queue.
static void test_cancel_device(void **state)
{
    struct rig *r = rig_new(NULL);
    struct mad_request q = get(r, 1);
    q.done = cancel_all_fn;
    r->want = 51;
    for (int i = 0; i < 50; i++)
        mad_engine_send(r->e, &q);
    q.device = 2;
    q.done = done_fn;
    mad_engine_send(r->e, &q);
    run(r);
    assert_in_range(r->last_at, 2 * MONO_S, 4 * MONO_S);
    assert_int_equal(stats(r).cancelled, 49);
    rig_free(r);
}

static unsigned handled[4];
static uint64_t handled_tid;
static void handler_fn(void *arg, const uint8_t *mad, const struct mad_addr *from)
{
    handled[(uintptr_t)arg]++;
    handled_tid = fake_tid(mad);
}

static void test_unsolicited(void **state)
{
    struct rig *r = rig_new(NULL);
    uint8_t trap[MAD_SIZE] = {1, 1, 1, 5, [15] = 9, [17] = 2};
    memset(handled, 0, sizeof(handled));
    fake_deliver(&r->f, trap, 0, 0);
    run_for(r, 1);
    assert_int_equal(stats(r).unhandled, 1);
    mad_engine_handler(r->e, 0x01, handler_fn, (void *)1);
    mad_engine_handler(r->e, 0x03, handler_fn, (void *)2);
    fake_deliver(&r->f, trap, 0, 0);
    trap[1] = 0x81; // shares the handler
    fake_deliver(&r->f, trap, 0, 0);
    trap[3] = 7; // a TrapRepress that answers nothing of ours
    fake_deliver(&r->f, trap, 0, 0);
    trap[1] = 3;
    trap[2] = 2;
    trap[3] = 1;
    fake_deliver(&r->f, trap, 0, 0);
    run_for(r, 1);
    assert_int_equal(handled[1], 3);
    assert_int_equal(handled[2], 1);
    assert_int_equal(handled_tid, 9);
    mad_engine_handler(r->e, 0x03, NULL, NULL);
    fake_deliver(&r->f, trap, 0, 0);
    run_for(r, 1);
    assert_int_equal(stats(r).unhandled, 2);
    rig_free(r);
}

// A trap that we send is answered by a TrapRepress, which has no response bit.
static void test_own_trap(void **state)
{
    struct rig *r = rig_new(NULL);
    struct mad_request q = get(r, 1);
    q.mgmt_class = MAD_CLASS_SM_LID;
    q.lid = 4;
    q.method = MAD_METHOD_TRAP;
    q.attr_id = MAD_ATTR_NOTICE;
    r->want = 1;
    mad_engine_send(r->e, &q);
    run_for(r, MONO_MS);
    fake_deliver(&r->f, r->f.log[0].mad, 0, 0)->mad[3] = MAD_METHOD_TRAP_REPRESS;
    run(r);
    assert_int_equal(r->last.status, 0);
    rig_free(r);
}

static void test_malformed_and_spoofed(void **state)
{
    struct rig *r = rig_new(NULL);
    static const struct {
        int at;
        uint8_t v;
        bool malformed;
    } bad[] = {{0, 2, true},  {2, 2, true},     {7, 64, true},     {6, 65, true},
               {1, 1, false}, {3, 0x82, false}, {17, 0x15, false}, {15, 0x5f, false}};
    r->want = 1;
    send_n(r, 1, 1, MAD_PRIO_SMP, 0);
    run_for(r, MONO_MS);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        fake_answer(&r->f, r->f.log[0].mad, 0)->mad[bad[i].at] = bad[i].v;
    run_for(r, MONO_MS);
    assert_int_equal(r->got, 0);
    assert_int_equal(stats(r).malformed, 4);
    assert_int_equal(stats(r).unmatched, 4);
    fake_answer(&r->f, r->f.log[0].mad, 0)->mad[5] = 0x1c;
    run_for(r, MONO_MS);
    assert_int_equal(r->got, 1);
    assert_int_equal(r->last.mad_status, 0x1c);
    assert_int_equal(count_of(r, MAD_METHOD_GET, MAD_ATTR_NODE_INFO).refused, 1);
    rig_free(r);
}

// An answer to a try that was not sent yet, and a try that the kernel hands back when a later one is out.
static void test_other_tries(void **state)
{
    struct rig *r = rig_new(NULL);
    send_n(r, 1, 1, MAD_PRIO_SMP, 0);
    run_for(r, MONO_MS);
    fake_answer(&r->f, r->f.log[0].mad, 0)->mad[15] += 1;
    run_for(r, MONO_MS);
    assert_int_equal(r->got, 0);
    assert_int_equal(stats(r).unmatched, 1);
    run_for(r, 300 * MONO_MS);
    assert_int_equal(r->f.sends, 2);
    fake_deliver(&r->f, r->f.log[0].mad, 0, -110);
    run_for(r, 50 * MONO_MS);
    assert_int_equal(r->f.sends, 2);
    assert_int_equal(mad_engine_outstanding(r->e), 1);
    assert_int_equal(stats(r).undeliverable, 0);
    rig_free(r);
}

// After 2^32: a TID that is still in use is passed over, and so is 0.
static void test_tid_in_use(void **state)
{
    struct rig *r = rig_new(NULL);
    send_n(r, 1, 1, MAD_PRIO_SMP, 0);
    run_for(r, MONO_MS);
    uint32_t first = fake_tid(r->f.log[0].mad);
    r->e->next_tid = first;
    send_n(r, 1, 1, MAD_PRIO_SMP, 0);
    run_for(r, MONO_MS);
    assert_int_equal(fake_tid(r->f.log[1].mad), first + TRIES_MAX);
    r->e->next_tid = 0;
    send_n(r, 1, 1, MAD_PRIO_SMP, 0);
    run_for(r, MONO_MS);
    assert_int_equal(fake_tid(r->f.log[2].mad), first + 2 * TRIES_MAX);
    rig_free(r);
}

static void test_random_bytes(void **state)
{
    struct rig *r = rig_new(NULL);
    struct rng g;
    rng_init(&g, 5);
    mad_engine_handler(r->e, 0x01, handler_fn, (void *)1);
    send_n(r, 20, 1, MAD_PRIO_SMP, 0);
    run_for(r, MONO_MS);
    for (int i = 0; i < 20000; i++) {
        uint8_t mad[MAD_SIZE];
        for (int k = 0; k < MAD_SIZE; k += 8) {
            uint64_t v = rng_u64(&g);
            memcpy(mad + k, &v, 8);
        }
        if (i & 1) // near a real one
            memcpy(mad, r->f.log[i / 2 % 4].mad, rng_below(&g, 24));
        fake_deliver(&r->f, mad, 0, i % 7 ? 0 : -(int)rng_below(&g, 200));
        if (i % 64 == 0)
            run_for(r, 10);
    }
    run_for(r, 100 * MONO_S); // one after the other: the window shrinks to 1
    assert_int_equal(r->got, 20);
    rig_free(r);
}

static void test_reply(void **state)
{
    struct rig *r = rig_new(NULL);
    uint8_t mad[MAD_SIZE] = {1, 1, 1, 0x81};
    struct mad_addr to = {.lid = 12};
    assert_int_equal(mad_engine_reply(r->e, mad, &to), 0);
    assert_int_equal(r->f.to.lid, 12);
    assert_int_equal(r->f.wanted_ns, 0);
    assert_int_equal(mad_engine_reply_rmpp(r->e, mad, 256, &to), -EOPNOTSUPP);
    assert_int_equal(mad_engine_outstanding(r->e), 0);
    rig_free(r);
}

static void test_count_overflow(void **state)
{
    struct rig *r = rig_new(NULL);
    r->f.script = prompt;
    struct mad_request q = get(r, 1);
    r->want = 1000;
    for (int i = 0; i < 1000; i++) {
        q.attr_id = (uint16_t)i;
        mad_engine_send(r->e, &q);
    }
    run(r);
    struct mad_count c[COUNT_ROWS];
    assert_int_equal(mad_engine_counts(r->e, c, COUNT_ROWS), 257);
    assert_int_equal(c[0].requests, 1000 - 256);
    assert_int_equal(c[1].requests, 1);
    rig_free(r);
}

static void test_devices_are_recycled(void **state)
{
    struct rig *r = rig_new(NULL);
    r->f.script = prompt;
    for (uint64_t d = 0; d < 200000; d += 1000) {
        for (uint64_t k = 0; k < 1000; k++)
            send_n(r, 1, d + k, MAD_PRIO_SMP, 0);
        run(r);
    }
    assert_int_equal(stats(r).devices, DEVICES_KEPT);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire),
        cmocka_unit_test(test_gmp_wire),
        cmocka_unit_test(test_refused_arguments),
        cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_undeliverable),
        cmocka_unit_test(test_single_try),
        cmocka_unit_test(test_late_answer),
        cmocka_unit_test(test_like),
        cmocka_unit_test(test_explicit_timeout),
        cmocka_unit_test(test_estimate),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_window_total),
        cmocka_unit_test(test_priority),
        cmocka_unit_test(test_fair),
        cmocka_unit_test(test_dead_nodes),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_device),
        cmocka_unit_test(test_unsolicited),
        cmocka_unit_test(test_own_trap),
        cmocka_unit_test(test_malformed_and_spoofed),
        cmocka_unit_test(test_other_tries),
        cmocka_unit_test(test_tid_in_use),
        cmocka_unit_test(test_random_bytes),
        cmocka_unit_test(test_reply),
        cmocka_unit_test(test_count_overflow),
        cmocka_unit_test(test_devices_are_recycled),
    };
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
