// SPDX-License-Identifier: Apache-2.0
// Drains: the list and its place in the database. A change of the list leads to a partial sweep that reads
// nothing: it routes, proves, and writes in waves, as after a failure.
//
//     drain.c         the list, kept; who may change it, and by what
//     drain_routes.c  what a route job makes of it: what traffic is kept off, what still uses it
//     drain_check.c   what a change of it would do
//     drain_tell.c    what is told of it: events when it is asked for and when it is in force, findings
//
// In the database a blob "drains": a line of text each, fields apart by tabs.
#include "sm/drain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/guid.h"
#include "lib/log.h"
#include "lib/xalloc.h"
#include "sm/drain_priv.h"
#include "sm/sm_priv.h"

#define HEAD "drains 1\n"
#define BLOB_MAX (2u << 20)

// --- kept ---

void sm_drains_keep(struct sm *sm)
{
    const struct sm_drains *x = sm->drains;
    struct buf b = {0};

    if (sm->db == NULL)
        return;
    buf_puts(&b, HEAD);
    for (unsigned i = 0; i < x->n; i++) {
        const struct sm_drain *d = &x->item[i];
        buf_printf(&b, GUID_FMT "\t%u\t" GUID_FMT "\t%u\t%lld\t%s\t%s\t%s\t%s\n", GUID_ARG(d->at.guid),
                   d->at.port, GUID_ARG(d->far.guid), d->far.port, (long long)d->since_ns, d->name,
                   d->far_name, d->by, d->reason);
    }
    db_blob_put(sm->db, sm->o.fabric, "drains", x->n > 0 ? b.data : NULL, x->n > 0 ? b.len : 0, NULL, NULL);
    buf_done(&b);
}

static bool number(const char *s, unsigned long long max, uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(s, &end, 0);
    if (end == s || *end != 0 || errno != 0 || v > max)
        return false;
    *ret = v;
    return true;
}

static bool parse(char *line, struct sm_drain *d)
{
    char *field[9];
    uint64_t port, far, since;
    *d = (struct sm_drain){.state = SM_DRAIN_MOVING};
    for (unsigned i = 0; i < 9; i++) {
        field[i] = strsep(&line, "\t");
        if (field[i] == NULL)
            return false;
    }
    if (!number(field[0], UINT64_MAX, &d->at.guid) || !number(field[1], SWITCH_MAX_PORTS, &port) ||
        !number(field[2], UINT64_MAX, &d->far.guid) || !number(field[3], SWITCH_MAX_PORTS, &far) ||
        !number(field[4], INT64_MAX, &since) || d->at.guid == 0)
        return false;
    d->at.port = (uint8_t)port;
    d->far.port = (uint8_t)far;
    d->since_ns = (int64_t)since;
    sm_text(d->name, sizeof(d->name), field[5]);
    sm_text(d->far_name, sizeof(d->far_name), field[6]);
    sm_text(d->by, sizeof(d->by), field[7]);
    sm_text(d->reason, sizeof(d->reason), field[8]);
    return true;
}

void sm_drains_load(struct sm *sm)
{
    struct sm_drains *x = sm->drains = xcalloc(1, sizeof(*x));
    void *blob = NULL;
    size_t len = 0;
    struct sm_drain d;

    if (sm->db == NULL || db_blob_get(sm->db, sm->o.fabric, "drains", &blob, &len) != 0)
        return;
    char *at = blob;
    if (len > BLOB_MAX || strncmp(at, HEAD, strlen(HEAD)) != 0) {
        log_warning("drains-not-read", "fabric=%s text=\"the list in the database is not one\"",
                    sm->o.fabric);
        free(blob);
        return;
    }
    at += strlen(HEAD);
    for (char *line; (line = strsep(&at, "\n")) != NULL && x->n < SM_DRAINS_MAX;) {
        if (line[0] == 0)
            continue;
        if (!parse(line, &d)) {
            log_warning("drains-not-read", "fabric=%s text=\"a line is none of ours; the others hold\"",
                        sm->o.fabric);
            continue;
        }
        x->item = xreallocarray(x->item, x->n + 1u, sizeof(*x->item));
        x->item[x->n++] = d;
    }
    x->version = x->n > 0;
    free(blob);
}

void sm_drains_free(struct sm *sm)
{
    if (sm->drains == NULL)
        return;
    free(sm->drains->item);
    free(sm->drains->now);
    free(sm->drains);
    sm->drains = NULL;
}

// --- places ---

static const struct port *port_at(const struct fabric *f, const struct sm_drain_place *at)
{
    const struct node *n = f != NULL ? fabric_by_guid(f, at->guid) : NULL;
    if (n == NULL || n->type != NODE_SWITCH || at->port == 0)
        return NULL;
    port_id p = fabric_port_at(f, n, at->port);
    return port_valid(p) ? fabric_port(f, p) : NULL;
}

const struct port *sm_drain_far_of(const struct fabric *f, const struct port *p)
{
    const struct node *z = p != NULL && p->num > 0 ? fabric_peer_node(f, p) : NULL;
    return z != NULL && z->type == NODE_SWITCH ? fabric_port(f, p->peer) : NULL;
}

static struct sm_drain_place place_of(const struct fabric *f, const struct port *p)
{
    return (struct sm_drain_place){f->node[p->node.i].guid, p->num};
}

static unsigned find(const struct sm *sm, const struct sm_drain_place *at)
{
    const struct sm_drains *x = sm->drains;
    for (unsigned i = 0; i < x->n; i++)
        if (sm_drain_same(&x->item[i].at, at))
            return i;
    const struct port *z = sm_drain_far_of(sm->fabric, port_at(sm->fabric, at));
    struct sm_drain_place far = z != NULL ? place_of(sm->fabric, z) : (struct sm_drain_place){0};
    for (unsigned i = 0; i < x->n && at->port > 0; i++) {
        const struct sm_drain *d = &x->item[i];
        if (z != NULL ? sm_drain_same(&d->at, &far) : d->at.port > 0 && sm_drain_same(&d->far, at))
            return i;
    }
    return x->n;
}

const struct sm_drain *sm_drain_find(const struct sm *sm, const struct sm_drain_place *at)
{
    unsigned i = find(sm, at);
    return i < sm->drains->n ? &sm->drains->item[i] : NULL;
}

const struct sm_drain *sm_drain_nth(const struct sm *sm, unsigned i)
{
    return i < sm->drains->n ? &sm->drains->item[i] : NULL;
}

bool sm_drains_cover_switch(const struct sm *sm, uint64_t guid)
{
    for (unsigned i = 0; i < sm->drains->n; i++)
        if (sm->drains->item[i].at.port == 0 && sm->drains->item[i].at.guid == guid)
            return true;
    return false;
}

bool sm_drains_cover(const struct sm *sm, uint64_t guid, uint8_t port, uint64_t far_guid, uint8_t far_port)
{
    const struct sm_drain_place a = {guid, port}, z = {far_guid, far_port};
    for (unsigned i = 0; i < sm->drains->n; i++) {
        const struct sm_drain *d = &sm->drains->item[i];
        if (d->at.port > 0 ? sm_drain_same(&d->at, &a) || sm_drain_same(&d->at, &z)
                           : d->at.guid == guid || d->at.guid == far_guid)
            return true;
    }
    return false;
}

// --- changes ---

int sm_drain_check_master(const struct sm *sm, struct err *e)
{
    if (sm->state == SM_STANDBY || sm->state == SM_NOT_ACTIVE) {
        char name[65] = "";
        const struct fabric *f = sm->fabric;
        port_id p = f != NULL ? fabric_by_lid(f, sm->master_lid) : PORT_NONE;
        if (port_valid(p))
            snprintf(name, sizeof(name), " of %.50s",
                     fabric_desc(f, fabric_node(f, fabric_port(f, p)->node)));
        return err_set(e, -EPERM, sm->o.fabric,
                       "another subnet manager runs the fabric (port " GUID_FMT "%s, LID %u): ask that one",
                       GUID_ARG(sm->master.guid), name, sm->master_lid);
    }
    if (sm->fabric == NULL || !sm->up)
        return err_set(e, -EAGAIN, sm->o.fabric, "the fabric is not up yet; see: weft status");
    return 0;
}

// Where the node is to be found: what is there, or else the blueprint. NULL: nowhere.
static const struct fabric *home_of(const struct sm *sm, uint64_t guid)
{
    const struct fabric *known = sm->blueprint.known;
    if (sm->fabric != NULL && fabric_by_guid(sm->fabric, guid) != NULL)
        return sm->fabric;
    return known != NULL && fabric_by_guid(known, guid) != NULL ? known : NULL;
}

bool sm_drain_away(const struct sm *sm, const struct sm_drain *d)
{
    return sm->fabric != NULL && fabric_by_guid(sm->fabric, d->at.guid) == NULL;
}

// A cable between switches that is there or was, or a switch with such; fills the drain's names.
static int check_port(const struct sm *sm, const struct fabric *f, const struct node *n, struct sm_drain *d,
                      struct err *e)
{
    const struct fabric *known = sm->blueprint.known;
    const struct port *p = port_at(f, &d->at), *z = sm_drain_far_of(f, p);
    char name[200];

    if (p == NULL)
        return err_set(e, -ENOENT, d->name, "there is no port %u; %s has ports 1 to %u", d->at.port,
                       fabric_node_name(f, n, name, sizeof(name)), n->num_ports);
    fabric_port_name(f, (port_id){(uint32_t)(p - f->port)}, d->name, sizeof(d->name));
    if (port_valid(p->peer) && z == NULL)
        return err_set(e, -EINVAL, d->name,
                       "leads to %s: nothing else leads there, so it cannot be drained; only cables between "
                       "switches can",
                       fabric_port_name(f, p->peer, name, sizeof(name)));
    if (z == NULL && known != NULL) { // not plugged in just now
        z = sm_drain_far_of(known, port_at(known, &d->at));
        f = known;
    }
    if (z == NULL)
        return err_set(e, -EINVAL, d->name,
                       "has no cable to another switch, and is not known to have had one");
    d->far = place_of(f, z);
    fabric_port_name(f, (port_id){(uint32_t)(z - f->port)}, d->far_name, sizeof(d->far_name));
    return 0;
}

int sm_drain_check_place(const struct sm *sm, struct sm_drain *d, struct err *e)
{
    const struct fabric *f = home_of(sm, d->at.guid);
    char guid[GUID_STR_SIZE];

    if (f == NULL)
        return err_set(e, -ENOENT, guid_str(d->at.guid, guid), "no such node is there, nor in the blueprint");
    const struct node *n = fabric_by_guid(f, d->at.guid);
    fabric_node_name(f, n, d->name, sizeof(d->name));
    if (n->type != NODE_SWITCH)
        return err_set(e, -EINVAL, d->name,
                       "is no switch: nothing passes through it, and nothing else leads to it");
    if (d->at.port > 0)
        return check_port(sm, f, n, d, e);
    for (unsigned num = 1; num <= n->num_ports; num++)
        if (sm_drain_far_of(f, &f->port[n->first_port + num]) != NULL)
            return 0;
    return err_set(e, -EINVAL, d->name, "has no cable to another switch: nothing passes through it");
}

// Routes are made for the new list as soon as nothing else runs.
static void changed(struct sm *sm, const char *cause)
{
    sm->drains->version++;
    sm_drains_keep(sm);
    sm_dirty_routes(sm, cause);
    if (sm->cb.snapshot != NULL)
        sm->cb.snapshot(sm->cb.arg);
}

// Of many: the others are told as a number.
#define TOLD_EACH 20

static void add(struct sm *sm, const struct sm_drain *d)
{
    struct sm_drains *x = sm->drains;
    x->item = xreallocarray(x->item, x->n + 1u, sizeof(*x->item));
    x->item[x->n++] = *d;
}

int sm_drain_all(struct sm *sm, const struct sm_drain_place *at, size_t n, const char *by, const char *reason,
                 bool *did, struct err *e)
{
    struct sm_drains *x = sm->drains;
    struct sm_drain *d = xcalloc(n + 1, sizeof(*d));
    size_t fresh = 0, done = 0;

    int rc = sm_drain_check_master(sm, e);
    for (size_t i = 0; i < n && rc == 0; i++) {
        d[i] = (struct sm_drain){.at = at[i], .since_ns = wall_now_ns()};
        rc = sm_drain_check_place(sm, &d[i], e);
        fresh += find(sm, &at[i]) == x->n;
    }
    if (rc == 0 && x->n + fresh > SM_DRAINS_MAX)
        rc = err_set(e, -ENOSPC, d[0].name, "%u drains are active, and no more than %d are kept", x->n,
                     SM_DRAINS_MAX);
    for (size_t i = 0; i < n && rc == 0; i++) {
        did[i] = find(sm, &at[i]) == x->n; // also when it is named twice
        if (!did[i])
            continue;
        sm_text(d[i].by, sizeof(d[i].by), by);
        sm_text(d[i].reason, sizeof(d[i].reason), reason);
        add(sm, &d[i]);
        if (done++ < TOLD_EACH)
            sm_drain_tell_asked(sm, &d[i]);
    }
    free(d);
    if (rc != 0 || done == 0)
        return rc != 0 ? rc : 1;
    if (done > TOLD_EACH)
        sm_event(sm, "link-drained", "notice", "", "%zu more are being drained with these", done - TOLD_EACH);
    changed(sm, "drain");
    return 0;
}

int sm_undrain_all(struct sm *sm, const struct sm_drain_place *at, size_t n, const char *by, bool *did,
                   struct err *e)
{
    struct sm_drains *x = sm->drains;
    size_t done = 0;

    int rc = sm_drain_check_master(sm, e);
    for (size_t k = 0; k < n && rc == 0; k++) {
        unsigned i = find(sm, &at[k]);
        did[k] = i < x->n;
        if (!did[k])
            continue;
        struct sm_drain d = x->item[i];
        memmove(&x->item[i], &x->item[i + 1], (x->n - i - 1u) * sizeof(*x->item));
        x->n--;
        if (x->undone++ == 0)
            x->undone_first = d;
        if (done++ < TOLD_EACH)
            sm_event(sm, d.at.port > 0 ? "link-undrained" : "node-undrained", "notice", d.name,
                     "%s is undrained by %s", d.name, by);
    }
    if (rc != 0 || done == 0)
        return rc != 0 ? rc : 1;
    if (done > TOLD_EACH)
        sm_event(sm, "link-undrained", "notice", "", "%zu more are undrained with these", done - TOLD_EACH);
    changed(sm, "undrain");
    return 0;
}

bool sm_drains_pending(const struct sm *sm)
{
    return sm->drains->version != sm->drains->in_force;
}
