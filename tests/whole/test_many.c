// SPDX-License-Identifier: Apache-2.0
// Many cables die one after the other, each while the manager still writes what the ones before have led to:
// how long a dead cable stays in the tables meanwhile, and how long after the last one all is right.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/err.h"
#include "mad/mad.h"
#include "tests/whole/odd.h"

struct cable {
    uint64_t a, z;
    unsigned a_num, z_num;
    mono_t died;
    bool gone; // from the tables
};

struct many {
    struct odd o;
    struct cable *cable;
    unsigned n, dead;
    int64_t longest; // that one has stayed in a table
    unsigned failed; // sweeps
    uint64_t random;
    unsigned at_once, most; // die while a sweep computes its routes; of how many
    uint64_t sweep;         // that has begun to write
};

static unsigned below(struct many *m, unsigned n)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((m->random >> 33) % n);
}

// Every cable between two switches, in no order.
static void find_cables(struct many *m)
{
    const struct fabric *f = m->o.r.plan;
    m->cable = calloc(f->num_ports, sizeof(*m->cable));
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        const struct node *a = fabric_node(f, p->node);
        if (a->type != NODE_SWITCH || !port_valid(p->peer) || p->peer.i < i)
            continue;
        const struct port *q = fabric_port(f, p->peer);
        const struct node *z = fabric_node(f, q->node);
        if (z->type == NODE_SWITCH)
            m->cable[m->n++] = (struct cable){.a = a->guid, .a_num = p->num, .z = z->guid, .z_num = q->num};
    }
    for (unsigned i = m->n; i > 1; i--) {
        unsigned k = below(m, i);
        struct cable c = m->cable[i - 1];
        m->cable[i - 1] = m->cable[k];
        m->cable[k] = c;
    }
}

static bool used(const struct many *m, uint64_t guid, unsigned num)
{
    uint8_t port;
    for (unsigned lid = 1; lid < m->o.lids; lid++)
        if (sim_lft(m->o.r.sim, guid, (uint16_t)lid, &port) == 0 && port == num)
            return true;
    return false;
}

// Lets time go by and looks which of the dead cables are still in tables; how many.
static unsigned look(struct many *m, int64_t ns)
{
    unsigned left = 0;
    rig_run(&m->o.r, ns);
    for (unsigned i = 0; i < m->dead; i++) {
        struct cable *c = &m->cable[i];
        if (c->gone)
            continue;
        c->gone = !used(m, c->a, c->a_num) && !used(m, c->z, c->z_num);
        int64_t so_far = mono_sub(loop_now(m->o.r.loop), c->died);
        if (so_far > m->longest)
            m->longest = so_far;
        left += !c->gone;
    }
    return left;
}

static void tell_sweeps(const struct many *m)
{
    for (unsigned i = m->o.r.sweeps - m->o.sweeps; i-- > 0;) {
        const struct sm_sweep *s = sm_history(m->o.r.sm, i);
        if (s == NULL)
            continue;
        printf("#   %llu %s%s: %.0f ms, %llu blocks, %llu time-outs%s%s\n", (unsigned long long)s->id,
               s->cause, s->full ? ", full" : "", (double)s->ns / 1e6, (unsigned long long)s->lft_blocks_set,
               (unsigned long long)s->timeouts, s->ok ? "" : ": ", s->ok ? "" : s->text);
    }
}

static void die(struct many *m)
{
    struct cable *c = &m->cable[m->dead++];
    assert_int_equal(sim_link_set(m->o.r.sim, c->a, c->a_num, false), 0);
    c->died = loop_now(m->o.r.loop);
}

// Computing takes no virtual time: what dies meanwhile does so as the first block is written.
static void on_send(struct rig *r, const uint8_t *mad)
{
    struct many *m = r->user;
    struct sm_status st;
    struct mad_hdr h;
    mad_hdr_decode(mad, &h);
    sm_get_status(r->sm, &st);
    if (h.method != MAD_METHOD_SET || h.attr_id != MAD_ATTR_LINEAR_FORWARDING_TABLE || m->sweep == st.sweeps)
        return;
    m->sweep = st.sweeps;
    for (unsigned i = 0; i < m->at_once && m->dead < m->most; i++)
        die(m);
}

// Returns how long after the last cable's death nothing leads over a dead one any more.
static int64_t many_die(struct many *m, const char *name, unsigned per_mille, int64_t pause, unsigned at_once)
{
    const char *tell = getenv("MANY_TELL");
    memset(m, 0, sizeof(*m));
    m->random = 11;
    up_on(&m->o, name);
    find_cables(m);
    unsigned n = m->most = (unsigned)((uint64_t)m->n * per_mille / 1000);
    m->at_once = at_once;
    m->o.r.user = m;
    m->o.r.on_send = on_send;
    while (m->dead < n) {
        die(m);
        look(m, pause);
    }
    m->o.r.on_send = NULL;
    mono_t last = m->cable[n - 1].died;
    while (look(m, 10 * MONO_MS) > 0)
        assert_true(mono_sub(loop_now(m->o.r.loop), last) < 60 * MONO_S);
    int64_t right = mono_sub(loop_now(m->o.r.loop), last);
    unsigned full = 0;
    for (unsigned i = 0; i < m->o.r.sweeps - m->o.sweeps && sm_history(m->o.r.sm, i) != NULL; i++) {
        m->failed += !sm_history(m->o.r.sm, i)->ok;
        full += sm_history(m->o.r.sm, i)->full;
    }
    printf("# %s: %u of %u trunks in %.1f s: in tables for up to %.2f s, right %.2f s after the last; "
           "%u sweeps, %u failed, %u full, %u blocks\n",
           name, n, m->n, (double)mono_sub(last, m->o.at) / 1e9, (double)m->longest / 1e9,
           (double)right / 1e9, m->o.r.sweeps - m->o.sweeps, m->failed, full, lft_sets(&m->o));
    if (tell != NULL)
        tell_sweeps(m);
    return right;
}

static void many_done(struct many *m)
{
    free(m->cable);
    done(&m->o);
}

static void test_while_computing(void **state)
{
    const char *name = getenv("MANY"), *at_once = getenv("MANY_AT_ONCE");
    struct many m;
    (void)state;
    int64_t right = many_die(&m, name != NULL ? name : "superpod-4", 50, 250 * MONO_MS,
                             at_once != NULL ? (unsigned)atoi(at_once) : 10);
    assert_int_equal(m.failed, 0);
    assert_true(right < 3 * MONO_S / 2); // of many sweeps, the last follow each other once a second
    assert_true(m.longest < 2 * MONO_S);
    many_done(&m);
}

static bool take_tables(struct rig *r, const uint8_t *mad, const struct mad_addr *to)
{
    struct mad_hdr h;
    (void)r;
    (void)to;
    mad_hdr_decode(mad, &h);
    return h.method == MAD_METHOD_SET && h.attr_id == MAD_ATTR_LINEAR_FORWARDING_TABLE;
}

// Nobody takes what is written: the sweep that fails names a switch.
static void test_named(void **state)
{
    struct many m = {.random = 11};
    unsigned named = 0, failed = 0;
    (void)state;
    up_on(&m.o, "superpod-4");
    find_cables(&m);
    m.o.r.take_send = take_tables;
    while (m.dead < m.n / 20)
        die(&m);
    rig_run(&m.o.r, 10 * MONO_S);
    for (unsigned i = 0; i < m.o.r.sweeps - m.o.sweeps; i++) {
        const struct sm_sweep *s = sm_history(m.o.r.sm, i);
        if (s == NULL || s->ok)
            continue;
        failed++;
        for (uint32_t k = 0; k < m.o.r.plan->num_switches; k++) {
            const char *desc = fabric_desc(m.o.r.plan, fabric_switch(m.o.r.plan, k));
            named += strncmp(s->text, desc, strlen(desc)) == 0 && s->text[strlen(desc)] == '[';
        }
    }
    assert_true(failed > 0);
    assert_int_equal(named, failed);
    many_done(&m);
}

static bool take_odd(struct rig *r, const uint8_t *mad, const struct mad_addr *to)
{
    struct mad_hdr h;
    mad_hdr_decode(mad, &h);
    return take_tables(r, mad, to) && h.attr_mod % 2 == 1;
}

// News while a failed sweep waits to be tried again does not put that off.
static void test_not_put_off(void **state)
{
    struct many m = {.random = 11};
    struct sm_status st;
    int64_t idle = 0, longest = 0, pause = 10 * MONO_MS;
    (void)state;
    up_on(&m.o, "superpod-4");
    find_cables(&m);
    m.o.r.take_send = take_odd;
    while (m.dead < m.n / 20)
        die(&m);
    while (m.dead < m.n / 3) {
        die(&m);
        rig_run(&m.o.r, pause);
        sm_get_status(m.o.r.sm, &st);
        idle = st.sweeping ? 0 : idle + pause;
        longest = idle > longest ? idle : longest;
    }
    printf("# idle for up to %.2f s while cables die\n", (double)longest / 1e9);
    if (getenv("MANY_TELL") != NULL)
        tell_sweeps(&m);
    assert_true(longest <= 11 * MONO_S / 10);
    many_done(&m);
}

static void test_trunks_die(void **state)
{
    const char *name = getenv("MANY");
    struct many m;
    (void)state;
    int64_t right = many_die(&m, name != NULL ? name : "superpod-4", 50, 25 * MONO_MS, 0);
    assert_int_equal(m.failed, 0);
    assert_true(right < 3 * MONO_S / 2); // of many sweeps, the last follow each other once a second
    assert_true(m.longest < 2 * MONO_S);
    many_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trunks_die),
        cmocka_unit_test(test_while_computing),
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_not_put_off),
    };
    cmocka_set_test_filter(getenv("MANY_TEST"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
