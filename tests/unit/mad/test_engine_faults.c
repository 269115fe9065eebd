// SPDX-License-Identifier: Apache-2.0
// The engine under random faults: whatever the wire does, every transaction ends exactly once, with its own
// answer, within its windows and without allocating once it has run for a while.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "fake_transport.h"
#include "lib/rng.h"
#include "mad/engine_priv.h"

#define N 3000
#define DEVICES 40

struct world {
    struct loop *l;
    struct fake f;
    struct mad_engine *e;
    struct rng g;
    unsigned loss, dup, spoof, bounce, full, max_delay_ms, dead; // percentages; devices below dead are silent
    struct mad_engine_opts o;
    uint8_t ended[N];
    unsigned sent, done, by_status[4], refused;
    bool all, chaos;
    struct loop_timer writable;
    unsigned out[DEVICES]; // by the wire's own account: unanswered tries younger than their deadline
};

static void send_some(struct world *w, unsigned n);

static void done_fn(void *arg, uint64_t user, const struct mad_result *r)
{
    struct world *w = arg;
    assert_true(user < N);
    assert_int_equal(w->ended[user], 0);
    w->ended[user] = 1;
    w->done++;
    if (r->status == 0) {
        uint32_t id;
        memcpy(&id, r->data, 4);
        assert_int_equal(id, user); // its own answer
        assert_true(r->rtt_ns >= 0);
        w->by_status[0]++;
        w->refused += r->mad_status != 0;
    } else {
        assert_null(r->mad);
        assert_true(r->status == -ETIMEDOUT || r->status == -ENETUNREACH || r->status == -ECANCELED);
        w->by_status[r->status == -ETIMEDOUT ? 1 : r->status == -ENETUNREACH ? 2 : 3]++;
    }
    assert_in_range(r->tries, 0, TRIES_MAX);
    if (w->chaos && rng_below(&w->g, 200) == 0)
        mad_engine_cancel_gen(w->e, 1 + rng_below(&w->g, 8));
    if (w->chaos && rng_below(&w->g, 200) == 0)
        mad_engine_cancel_device(w->e, rng_below(&w->g, DEVICES));
    if (w->chaos && rng_below(&w->g, 100) == 0)
        mad_engine_forget_device(w->e, rng_below(&w->g, DEVICES));
    send_some(w, 1);
    w->all = w->done == N;
}

static void first_timeout_fn(void *arg, uint64_t user)
{
    struct world *w = arg;
    assert_int_equal(w->ended[user], 0);
}

static void send_some(struct world *w, unsigned n)
{
    static const uint16_t attr[] = {MAD_ATTR_NODE_INFO, MAD_ATTR_PORT_INFO, MAD_ATTR_SWITCH_INFO};
    for (; n && w->sent < N; n--) {
        uint32_t id = w->sent++;
        struct dr_path path = {.hops = (uint8_t)rng_below(&w->g, MAD_MAX_HOPS + 1)};
        struct mad_request q = {.mgmt_class = rng_below(&w->g, 2) ? MAD_CLASS_SM_DR : MAD_CLASS_PM,
                                .method = (uint8_t)(1 + rng_below(&w->g, 2)),
                                .attr_id = attr[rng_below(&w->g, 3)],
                                .path = &path,
                                .lid = 5,
                                .data = &id,
                                .data_len = 4,
                                .prio = (enum mad_prio)rng_below(&w->g, 3),
                                .device = rng_below(&w->g, DEVICES),
                                .retries = (int8_t)((int)rng_below(&w->g, 7) - 1),
                                .timeout_ns = rng_below(&w->g, 3) ? 0 : rng_below(&w->g, 300) * MONO_MS,
                                .done = done_fn,
                                .arg = w,
                                .user = id,
                                .gen = 1 + rng_below(&w->g, 8),
                                .first_timeout = first_timeout_fn};
        mad_engine_send(w->e, &q);
    }
}

static bool chance(struct world *w, unsigned percent)
{
    return rng_below(&w->g, 100) < percent;
}

static void writable_fn(void *arg)
{
    struct world *w = arg;
    w->f.t.writable(w->f.t.recv_arg);
}

static int faulty(struct fake *f, const uint8_t *mad, const struct mad_addr *to)
{
    struct world *w = f->arg;
    int64_t delay = rng_below(&w->g, w->max_delay_ms * 1000 + 1) * MONO_US;

    assert_true(mad_engine_outstanding(w->e) < w->o.window_total);
    for (uint32_t i = 0; i < w->e->devs.used; i++)
        assert_true(dev_at(w->e, i)->outstanding <= w->o.window_max);
    if (chance(w, w->full)) {
        loop_timer_after(&w->writable, rng_below(&w->g, 5000) * MONO_US);
        return -EAGAIN;
    }
    if (chance(w, 1))
        return -EINVAL;
    uint32_t i = tid_find(w->e, fake_tid(mad));
    bool dead = i != NONE && dev_at(w->e, txn_at(w->e, i)->dev)->key < w->dead;
    if (chance(w, w->spoof)) {
        struct fake_event *ev = fake_answer(f, mad, delay / 2 + 1);
        ev->mad[1 + rng_below(&w->g, 3) * 2] ^= (uint8_t)(1 + rng_below(&w->g, 255)); // class, method, status
        if (ev->mad[1] == mad[1] && (ev->mad[3] & 0x7f) != 0) {
            ev->mad[13] ^= 0x40; // never its own TID otherwise
        }
    }
    if (dead || chance(w, w->loss))
        return 0;
    if (chance(w, w->bounce)) {
        fake_deliver(f, mad, delay / 8, -110);
        return 0;
    }
    fake_answer(f, mad, delay)->mad[5] = chance(w, 5) ? 4 : 0;
    while (chance(w, w->dup))
        fake_answer(f, mad, delay * (1 + rng_below(&w->g, 3)));
    return 0;
}

static void world_run(uint64_t seed, uint32_t first_tid, bool chaos)
{
    struct world *w = xcalloc(1, sizeof(*w));

    rng_init(&w->g, seed);
    w->l = loop_new(LOOP_VIRTUAL);
    fake_init(&w->f, w->l);
    w->f.arg = w;
    w->f.script = faulty;
    w->loss = rng_below(&w->g, 30);
    w->dup = rng_below(&w->g, 30);
    w->spoof = rng_below(&w->g, 20);
    w->bounce = rng_below(&w->g, 30);
    w->full = rng_below(&w->g, 5);
    w->dead = rng_below(&w->g, 4);
    w->max_delay_ms = 1 + rng_below(&w->g, rng_below(&w->g, 2) ? 400 : 5);
    w->chaos = chaos;
    w->o = (struct mad_engine_opts){.window_total = 1 + rng_below(&w->g, 256),
                                    .window_start = 1 + rng_below(&w->g, 8),
                                    .window_max = 8 + rng_below(&w->g, 16),
                                    .retries = (int)rng_below(&w->g, 5) - 1,
                                    .first_tid = first_tid};
    w->e = mad_engine_new(w->l, &w->f.t, &w->o);
    loop_timer_init(&w->writable, w->l, "test", writable_fn, w);
    send_some(w, 400);
    bool ok = loop_run_until(w->l, &w->all, 100000 * MONO_S);
    if (!ok)
        print_error("seed %llu: %u of %u ended\n", (unsigned long long)seed, w->done, N);
    assert_true(ok);
    assert_int_equal(mad_engine_queued(w->e), 0);
    static const bool never;
    loop_run_until(w->l, &never, 1000 * MONO_S); // cancelled tries leave the wire, late answers come
    assert_int_equal(mad_engine_outstanding(w->e), 0);
    assert_int_equal(w->done, N);
    assert_int_equal(w->e->tid_count, 0);
    assert_int_equal(w->e->wheel.count, 0);
    assert_int_equal(w->e->repeats, 0);
    for (uint32_t i = 0; i < w->e->devs.used; i++) {
        assert_int_equal(dev_at(w->e, i)->outstanding, 0);
        assert_int_equal(dev_at(w->e, i)->txns, 0);
    }
    // 400 at a time, and as many more at most as cancelled ones hold the wire.
    assert_true(w->e->txns.used <= 400 + 256 + 1);
    loop_timer_cancel(&w->writable);
    mad_engine_free(w->e);
    fake_done(&w->f);
    loop_free(w->l);
    free(w);
}

static void test_faults(void **state)
{
    for (uint64_t seed = 1; seed <= 60; seed++)
        world_run(seed, 0, false);
}

static void test_faults_and_cancelling(void **state)
{
    for (uint64_t seed = 1001; seed <= 1060; seed++)
        world_run(seed, 0, true);
}

static void test_tid_wrap(void **state)
{
    for (uint64_t seed = 2001; seed <= 2020; seed++)
        world_run(seed, UINT32_MAX - rng_below(&(struct rng){{seed, 2, 3, 4}}, 20000), seed & 1);
}

// 20 % of the MADs are dropped, told at once as ibsim does: everything gets through by default.
static int lossy(struct fake *f, const uint8_t *mad, const struct mad_addr *to)
{
    struct world *w = f->arg;
    if (chance(w, 20))
        fake_deliver(f, mad, 0, -110);
    else
        fake_answer(f, mad, 20 * MONO_US);
    return 0;
}

// The same in silence.
static int silent(struct fake *f, const uint8_t *mad, const struct mad_addr *to)
{
    if (!chance(f->arg, 20))
        fake_answer(f, mad, 20 * MONO_US);
    return 0;
}

static void count_failed(void *arg, uint64_t user, const struct mad_result *r)
{
    struct world *w = arg;
    w->by_status[r->status != 0]++;
    w->all = ++w->done == 200000;
}

static void loss_20_percent(int (*script)(struct fake *, const uint8_t *, const struct mad_addr *),
                            unsigned most)
{
    struct world *w = xcalloc(1, sizeof(*w));
    rng_init(&w->g, 1);
    w->l = loop_new(LOOP_VIRTUAL);
    fake_init(&w->f, w->l);
    w->f.arg = w;
    w->f.script = script;
    w->e = mad_engine_new(w->l, &w->f.t, NULL);
    struct dr_path path = {.hops = 1};
    struct mad_request q = {.mgmt_class = MAD_CLASS_SM_DR,
                            .method = MAD_METHOD_GET,
                            .attr_id = MAD_ATTR_NODE_INFO,
                            .path = &path,
                            .retries = -1,
                            .done = count_failed,
                            .arg = w};
    for (unsigned i = 0; i < 200000; i++) {
        q.device = i % 100;
        mad_engine_send(w->e, &q);
    }
    assert_true(loop_run_until(w->l, &w->all, 1000 * MONO_S));
    assert_in_range(w->by_status[1], 0, most);
    uint32_t chunks = w->e->txns.chunks;
    w->done = 0;
    w->all = false;
    for (unsigned i = 0; i < 200000; i++)
        mad_engine_send(w->e, &q);
    assert_true(loop_run_until(w->l, &w->all, 1000 * MONO_S));
    assert_int_equal(w->e->txns.chunks, chunks); // nothing new is allocated
    mad_engine_free(w->e);
    fake_done(&w->f);
    loop_free(w->l);
    free(w);
}

static void test_loss_20_percent(void **state)
{
    loss_20_percent(lossy, 0);
    loss_20_percent(silent, 3); // 100 first contacts have 6 tries, all others 8
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_faults_and_cancelling),
        cmocka_unit_test(test_tid_wrap),
        cmocka_unit_test(test_loss_20_percent),
    };
    return cmocka_run_group_tests_name("engine_faults", tests, NULL, NULL);
}
