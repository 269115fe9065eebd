// SPDX-License-Identifier: Apache-2.0
#include "tests/whole/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/log.h"
#include "mad/mad.h"

static void on_event(void *arg, const struct sm_event *ev)
{
    struct rig *r = arg;
    r->events++;
    buf_printf(&r->log, "%s: %s\n", ev->kind, ev->text);
}

static void on_sweep(void *arg, const struct sm_sweep *s)
{
    struct rig *r = arg;
    (void)s;
    r->swept = true;
    r->sweeps++;
}

static int tap_send(struct transport *t, const uint8_t *mad, const struct mad_addr *to, int64_t timeout_ns)
{
    struct rig *r = (struct rig *)((char *)t - offsetof(struct rig, tap));
    if (r->on_send != NULL)
        r->on_send(r, mad);
    if (r->take_send != NULL && r->take_send(r, mad, to))
        return 0;
    return r->transport->ops->send(r->transport, mad, to, timeout_ns);
}

static int tap_port(struct transport *t, struct transport_port *ret)
{
    struct rig *r = (struct rig *)((char *)t - offsetof(struct rig, tap));
    return r->transport->ops->port(r->transport, ret);
}

static int tap_issm(struct transport *t, bool on, struct err *e)
{
    struct rig *r = (struct rig *)((char *)t - offsetof(struct rig, tap));
    return r->transport->ops->issm(r->transport, on, e);
}

static void tap_free(struct transport *t)
{
    (void)t;
}

static const struct transport_ops tap_ops = {
    .send = tap_send, .port = tap_port, .issm = tap_issm, .free = tap_free};

static void tap_recv(void *arg, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct rig *r = arg;
    if (r->take_recv == NULL || !r->take_recv(r, mad, from, status))
        r->tap.recv(r->tap.recv_arg, mad, from, status);
}

void rig_deliver(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    r->tap.recv(r->tap.recv_arg, mad, from, status);
}

static void tap_writable(void *arg)
{
    struct rig *r = arg;
    if (r->tap.writable != NULL)
        r->tap.writable(r->tap.recv_arg);
}

void rig_init_fabric(struct rig *r, const struct fabric *f, const struct sim_opts *o)
{
    const char *tmp = getenv("TMPDIR");

    memset(r, 0, sizeof(*r));
    log_set_level(LOG_LEVEL_ERROR);
    snprintf(r->dir, sizeof(r->dir), "%s/weft-test-XXXXXX", tmp != NULL ? tmp : "/tmp");
    assert_non_null(mkdtemp(r->dir));
    sm_opts_default(&r->opts);
    r->opts.audit_interval_ns = 0; // tests count MADs; those of the audit turn it on
    r->plan = f;
    r->loop = loop_new(LOOP_VIRTUAL);
    r->sim = sim_new(r->loop, f, o);
}

void rig_init(struct rig *r, const char *name, const struct sim_opts *o)
{
    struct err e = {0};
    struct findings fs = {0};
    const struct fabric *f = topogen_or_file(name, &fs, &e);
    findings_done(&fs);
    if (f == NULL)
        fail_msg("%s: %s", name, e.text);
    rig_init_fabric(r, f, o);
}

void rig_up(struct rig *r)
{
    struct db_open_report rep;
    struct err e = {0};
    struct sm_callbacks cb = {.arg = r, .event = on_event, .sweep = on_sweep};

    r->pool = pool_new(r->loop, 2);
    r->db = db_open(r->loop, r->dir, &rep, &e);
    if (r->db == NULL)
        fail_msg("%s", e.text);
    if (r->in_order) {
        pool_in_order(r->pool);
        db_in_order(r->db);
    }
    r->transport = sim_attach(r->sim, 0, &e);
    assert_non_null(r->transport);
    r->tap = (struct transport){.ops = &tap_ops, .name = r->transport->name};
    r->transport->recv = tap_recv;
    r->transport->recv_arg = r;
    r->transport->writable = tap_writable;
    assert_int_equal(r->tap.ops->issm(&r->tap, true, &e), 0);
    r->engine = mad_engine_new(r->loop, &r->tap, NULL);
    r->sm = sm_new(r->loop, r->engine, &r->tap, r->pool, r->db, &r->opts, &cb);
    sm_start(r->sm);
}

void rig_down(struct rig *r)
{
    if (r->sm == NULL)
        return;
    pool_free(r->pool);
    mad_engine_free(r->engine);
    sm_free(r->sm);
    r->transport->ops->free(r->transport);
    db_close(r->db);
    r->sm = NULL;
}

static void remove_dir(const char *dir)
{
    static const char *const file[] = {"meta.db", "meta.db-wal", "meta.db-shm", "weftd.lock"};
    char path[400];
    for (size_t i = 0; i < sizeof(file) / sizeof(file[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, file[i]);
        unlink(path);
    }
    rmdir(dir);
}

void rig_done(struct rig *r)
{
    rig_down(r);
    sim_free(r->sim);
    fabric_unref(r->plan);
    loop_free(r->loop);
    buf_done(&r->log);
    remove_dir(r->dir);
}

void rig_sweeps(struct rig *r, unsigned n, int seconds)
{
    for (unsigned i = 0; i < n; i++) {
        r->swept = false;
        if (!loop_run_until(r->loop, &r->swept, seconds * MONO_S))
            fail_msg("no sweep has ended within %d s of virtual time", seconds);
    }
}

void rig_run(struct rig *r, int64_t ns)
{
    bool never = false;
    loop_run_until(r->loop, &never, ns);
}

int rig_drain(struct rig *r, const struct sm_drain_place *at, const char *by, const char *reason,
              struct err *e)
{
    bool did;
    return sm_drain_all(r->sm, at, 1, by, reason, &did, e);
}

int rig_undrain(struct rig *r, const struct sm_drain_place *at, const char *by, struct err *e)
{
    bool did;
    return sm_undrain_all(r->sm, at, 1, by, &did, e);
}

const struct sm_sweep *rig_last(const struct rig *r)
{
    return sm_history(r->sm, 0);
}

uint64_t rig_count(const struct rig *r, uint8_t method, uint16_t attr_id)
{
    struct mad_count c[256];
    size_t n = mad_engine_counts(r->engine, c, 256);
    for (size_t i = 0; i < n && i < 256; i++)
        if (c[i].mgmt_class == MAD_CLASS_SM_LID && c[i].method == method && c[i].attr_id == attr_id)
            return c[i].sent;
    return 0;
}

uint64_t rig_events_of(const struct rig *r, const char *kind)
{
    uint64_t n = 0;
    char key[80];
    snprintf(key, sizeof(key), "%s: ", kind);
    for (const char *s = r->log.data; s != NULL && *s != 0; s = strchr(s, '\n') + 1)
        n += strncmp(s, key, strlen(key)) == 0;
    return n;
}

static bool is_dead(uint64_t guid, const uint64_t *dead, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (dead[i] == guid)
            return true;
    return false;
}

struct end {
    uint64_t guid, node;
    uint16_t lid;
};

// End ports that are connected (or a switch's own), with the LID the simulated device has.
static struct end *ends(const struct rig *r, const uint64_t *dead, unsigned num_dead, uint32_t *ret_n)
{
    const struct fabric *f = r->plan;
    struct end *list = calloc(f->num_ports, sizeof(*list));
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        const struct node *nd = fabric_node(f, p->node);
        struct sim_port_view v;
        bool sw0 = nd->type == NODE_SWITCH && p->num == 0;
        if (!port_is_end(f, p) || (!sw0 && !port_valid(p->peer)) || is_dead(nd->guid, dead, num_dead))
            continue;
        if (!sw0 && is_dead(fabric_node(f, f->port[p->peer.i].node)->guid, dead, num_dead))
            continue;
        assert_int_equal(sim_port_view(r->sim, nd->guid, p->num, &v), 0);
        list[n++] = (struct end){.guid = p->guid, .node = nd->guid, .lid = v.lid};
        if (v.lid == 0 || v.lid > LID_UCAST_MAX)
            fail_msg("port %u of "
                     "0x%016llx has LID %u",
                     p->num, (unsigned long long)nd->guid, v.lid);
    }
    *ret_n = n;
    return list;
}

static void judge_states(const struct rig *r, const uint64_t *dead, unsigned num_dead)
{
    const struct fabric *f = r->plan;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        struct sim_port_view v;
        if (p->num == 0 || !port_valid(p->peer))
            continue;
        uint64_t a = fabric_node(f, p->node)->guid, z = fabric_node(f, f->port[p->peer.i].node)->guid;
        if (is_dead(a, dead, num_dead) || is_dead(z, dead, num_dead))
            continue;
        assert_int_equal(sim_port_view(r->sim, a, p->num, &v), 0);
        if (v.linked && v.state != PORT_ACTIVE)
            fail_msg("port %u of 0x%016llx is %s", p->num, (unsigned long long)a,
                     port_state_name((enum port_state)v.state));
    }
}

uint64_t rig_judge(const struct rig *r, const uint64_t *dead, unsigned num_dead)
{
    uint32_t n;
    struct end *e = ends(r, dead, num_dead, &n);
    uint8_t *seen = calloc(65536, 1);
    uint64_t pairs = 0;
    char where[200];

    judge_states(r, dead, num_dead);
    for (uint32_t i = 0; i < n; i++)
        if (seen[e[i].lid]++)
            fail_msg("LID %u twice", e[i].lid);
    // From every adapter (a switch's port 0 answers only) to everything; strided when there are very many
    // pairs.
    uint32_t step = n > 3000 ? n / 997 : 1;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = step > 1 ? i % step : 0; k < n; k += step) {
            int hops = sim_trace(r->sim, e[i].guid, e[k].lid, where, sizeof(where));
            if (hops < 0)
                fail_msg("from 0x%016llx to LID %u: %s", (unsigned long long)e[i].guid, e[k].lid, where);
            pairs++;
        }
    free(seen);
    free(e);
    return pairs;
}

void rig_heals(struct rig *r, unsigned max_sweeps)
{
    r->take_recv = NULL;
    r->take_send = NULL;
    sm_resweep(r->sm, "operator", false);
    for (unsigned i = 0; i < max_sweeps; i++) {
        rig_sweeps(r, 1, 300);
        const struct fabric *f = sm_fabric(r->sm);
        if (rig_last(r)->ok && f->num_nodes == r->plan->num_nodes && f->num_links == r->plan->num_links)
            break;
        sm_resweep(r->sm, "operator", false);
    }
    rig_run(r, 5 * MONO_S);
    rig_judge(r, NULL, 0);
}
