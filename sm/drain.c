// SPDX-License-Identifier: Apache-2.0
// Drains: the list, its place in the database, and what a route job makes of it. A change of the list leads
// to a partial sweep that reads nothing: it routes, proves, and writes in waves, as after a failure.
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

struct sm_drains {
    struct sm_drain *item;
    unsigned n;
    uint64_t version, in_force; // of the list; of what the tables in force were made for
    uint32_t hang;
    uint32_t undone; // undrained since tables were adopted
    struct sm_drain undone_first;
    struct sm_drain_set *now; // which these were made for; NULL: none
};

const char *sm_drain_state_name(enum sm_drain_state s)
{
    static const char *const name[] = {"moving", "drained", "in-use"};
    return (unsigned)s < 3 ? name[s] : "?";
}

const char *sm_drain_no_other_way(uint32_t ends, uint32_t switches, char *buf, size_t size)
{
    char e[30] = "", s[30] = "";
    if (ends > 0)
        snprintf(e, sizeof(e), "%u end%s", ends, ends == 1 ? "" : "s");
    if (switches > 0)
        snprintf(s, sizeof(s), "%u switch%s", switches, switches == 1 ? "" : "es");
    snprintf(buf, size, "%s%s%s ha%s no other way", e, ends > 0 && switches > 0 ? " and " : "", s,
             ends + switches == 1 ? "s" : "ve");
    return buf;
}

// --- kept ---

// Printable text without tabs, as it goes into a line.
static void clean(char *to, size_t size, const char *from)
{
    size_t n = 0;
    for (; from != NULL && *from != 0 && n + 1 < size; from++)
        to[n++] = (unsigned char)*from < 0x20 || *from == 0x7f ? ' ' : *from;
    while (n > 0 && ((unsigned char)to[n - 1] & 0xc0) == 0x80 && from != NULL && *from != 0)
        n--; // not half a character
    if (n > 0 && (unsigned char)to[n - 1] >= 0xc0)
        n--;
    to[n] = 0;
}

static void keep(struct sm *sm)
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
    clean(d->name, sizeof(d->name), field[5]);
    clean(d->far_name, sizeof(d->far_name), field[6]);
    clean(d->by, sizeof(d->by), field[7]);
    clean(d->reason, sizeof(d->reason), field[8]);
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

// The switch's port at the far end of a cable between switches, or NULL.
static const struct port *far_of(const struct fabric *f, const struct port *p)
{
    const struct node *z = p != NULL && p->num > 0 ? fabric_peer_node(f, p) : NULL;
    return z != NULL && z->type == NODE_SWITCH ? fabric_port(f, p->peer) : NULL;
}

static struct sm_drain_place place_of(const struct fabric *f, const struct port *p)
{
    return (struct sm_drain_place){f->node[p->node.i].guid, p->num};
}

static bool same(const struct sm_drain_place *a, const struct sm_drain_place *b)
{
    return a->guid == b->guid && a->port == b->port;
}

static unsigned find(const struct sm *sm, const struct sm_drain_place *at)
{
    const struct sm_drains *x = sm->drains;
    for (unsigned i = 0; i < x->n; i++)
        if (same(&x->item[i].at, at))
            return i;
    const struct port *z = far_of(sm->fabric, port_at(sm->fabric, at));
    struct sm_drain_place far = z != NULL ? place_of(sm->fabric, z) : (struct sm_drain_place){0};
    for (unsigned i = 0; i < x->n && at->port > 0; i++) {
        const struct sm_drain *d = &x->item[i];
        if (z != NULL ? same(&d->at, &far) : d->at.port > 0 && same(&d->far, at))
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
        if (d->at.port > 0 ? same(&d->at, &a) || same(&d->at, &z)
                           : d->at.guid == guid || d->at.guid == far_guid)
            return true;
    }
    return false;
}

// --- changes ---

static int check_master(const struct sm *sm, struct err *e)
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
    const struct port *p = port_at(f, &d->at), *z = far_of(f, p);
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
        z = far_of(known, port_at(known, &d->at));
        f = known;
    }
    if (z == NULL)
        return err_set(e, -EINVAL, d->name,
                       "has no cable to another switch, and is not known to have had one");
    d->far = place_of(f, z);
    fabric_port_name(f, (port_id){(uint32_t)(z - f->port)}, d->far_name, sizeof(d->far_name));
    return 0;
}

static int check_place(const struct sm *sm, struct sm_drain *d, struct err *e)
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
        if (far_of(f, &f->port[n->first_port + num]) != NULL)
            return 0;
    return err_set(e, -EINVAL, d->name, "has no cable to another switch: nothing passes through it");
}

// Routes are made for the new list as soon as nothing else runs.
static void changed(struct sm *sm, const char *cause)
{
    sm->drains->version++;
    keep(sm);
    sm_dirty_routes(sm, cause);
    if (sm->cb.snapshot != NULL)
        sm->cb.snapshot(sm->cb.arg);
}

static const char *because(const struct sm_drain *d, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s", d->reason[0] ? ": " : "", d->reason);
    return buf;
}

// Of many: the others are told as a number.
#define TOLD_EACH 20

static void tell_asked(struct sm *sm, const struct sm_drain *d)
{
    char text[SM_DRAIN_TEXT + 8];
    if (d->at.port > 0)
        sm_event(sm, "link-drained", "notice", d->name, "%s is being drained by %s%s; the other end is %s",
                 d->name, d->by, because(d, text, sizeof(text)), d->far_name);
    else
        sm_event(sm, "node-drained", "notice", d->name, "%s is being drained by %s%s", d->name, d->by,
                 because(d, text, sizeof(text)));
}

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

    int rc = check_master(sm, e);
    for (size_t i = 0; i < n && rc == 0; i++) {
        d[i] = (struct sm_drain){.at = at[i], .since_ns = wall_now_ns()};
        rc = check_place(sm, &d[i], e);
        fresh += find(sm, &at[i]) == x->n;
    }
    if (rc == 0 && x->n + fresh > SM_DRAINS_MAX)
        rc = err_set(e, -ENOSPC, d[0].name, "%u drains are active, and no more than %d are kept", x->n,
                     SM_DRAINS_MAX);
    for (size_t i = 0; i < n && rc == 0; i++) {
        did[i] = find(sm, &at[i]) == x->n; // also when it is named twice
        if (!did[i])
            continue;
        clean(d[i].by, sizeof(d[i].by), by);
        clean(d[i].reason, sizeof(d[i].reason), reason);
        add(sm, &d[i]);
        if (done++ < TOLD_EACH)
            tell_asked(sm, &d[i]);
    }
    free(d);
    if (rc != 0 || done == 0)
        return rc != 0 ? rc : 1;
    if (done > TOLD_EACH)
        sm_event(sm, "link-drained", "notice", "", "%zu more are being drained with these", done - TOLD_EACH);
    changed(sm, "drain");
    return 0;
}

int sm_drain(struct sm *sm, const struct sm_drain_place *at, const char *by, const char *reason,
             struct err *e)
{
    bool did;
    return sm_drain_all(sm, at, 1, by, reason, &did, e);
}

int sm_undrain_all(struct sm *sm, const struct sm_drain_place *at, size_t n, const char *by, bool *did,
                   struct err *e)
{
    struct sm_drains *x = sm->drains;
    size_t done = 0;

    int rc = check_master(sm, e);
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

int sm_undrain(struct sm *sm, const struct sm_drain_place *at, const char *by, struct err *e)
{
    bool did;
    return sm_undrain_all(sm, at, 1, by, &did, e);
}

// --- what a job needs ---

bool sm_drains_pending(const struct sm *sm)
{
    return sm->drains->version != sm->drains->in_force;
}

static struct sm_drain_set *copy(const struct sm_drains *x)
{
    struct sm_drain_set *s = xcalloc(1, sizeof(*s) + (x->n + 1u) * sizeof(s->use[0]));
    s->version = x->version;
    for (unsigned i = 0; i < x->n; i++)
        s->use[s->n++].at = x->item[i].at;
    return s;
}

struct sm_drain_set *sm_drains_take(const struct sm *sm)
{
    return sm->drains->version > 0 ? copy(sm->drains) : NULL;
}

static struct sm_drain_set *copy_set(const struct sm_drain_set *s)
{
    struct sm_drain_set *c = NULL;
    if (s != NULL && s->n > 0) {
        c = xcalloc(1, sizeof(*c) + s->n * sizeof(c->use[0]));
        memcpy(c, s, sizeof(*c) + s->n * sizeof(c->use[0]));
    }
    return c;
}

struct sm_drain_set *sm_drains_take_in_force(const struct sm *sm)
{
    return copy_set(sm->drains->now);
}

// The cables of one drain that are up, by their ports there.
static size_t cables_of(const struct fabric *f, const struct sm_drain_place *at, port_id ret[256])
{
    const struct node *n = fabric_by_guid(f, at->guid);
    size_t k = 0;
    if (n == NULL || n->type != NODE_SWITCH)
        return 0;
    for (unsigned num = 1; num <= n->num_ports; num++)
        if ((at->port == 0 || at->port == num) && far_of(f, &f->port[n->first_port + num]) != NULL)
            ret[k++] = (port_id){n->first_port + num};
    return k;
}

// Cables that are drained by themselves first: they may be pulled any moment, those of a drained switch still
// lead to it.
struct route_avoid *sm_drains_avoid(const struct sm_drain_set *s, const struct fabric *f)
{
    if (s == NULL || s->n == 0)
        return NULL;
    port_id *port = xcalloc((size_t)s->n * 256 + 1, sizeof(*port));
    size_t n = 0, first = 0;
    for (int whole = 0; whole < 2; whole++) {
        for (unsigned i = 0; i < s->n; i++)
            if ((s->use[i].at.port == 0) == whole)
                n += cables_of(f, &s->use[i].at, port + n);
        first = whole ? first : n;
    }
    struct route_avoid *x = route_avoid_graded(f, port, n, first);
    free(port);
    return x;
}

int sm_drains_repair(const struct sm_drain_set *set, const struct route_base *b, const struct fabric *f,
                     struct par *par, struct route_result *ret, struct err *e)
{
    if (set == NULL || set->n == 0)
        return route_repair_from(b, f, par, ret, e);
    struct route_avoid *x = sm_drains_avoid(set, f);
    int rc = route_repair_avoiding(b, f, x, par, ret, e);
    route_avoid_free(x);
    return rc;
}

// Aggregation nodes of these switches themselves are reached as the switches are: they go out of the list.
static uint32_t strike_own(const struct fabric *f, const struct sm_drain_place *at, size_t n, port_id *end,
                           uint32_t *ends)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *ends; i++) {
        const struct port *p = fabric_port(f, end[i]);
        const struct node *z = fabric_peer_node(f, p);
        bool own = false;
        for (size_t k = 0; k < n && z != NULL && fabric_node(f, p->node)->role == ROLE_AGGREGATION; k++)
            own |= at[k].port == 0 && at[k].guid == z->guid;
        if (!own)
            end[kept++] = end[i];
    }
    uint32_t own = *ends - kept;
    *ends = kept;
    return own;
}

// Switches that are joined by other cables than these, from the first.
static uint32_t flood(const struct fabric *f, const bool *shut, uint32_t first, uint32_t *part,
                      uint32_t *queue)
{
    uint32_t n = 0, ends = 0;
    part[first] = first;
    queue[n++] = first;
    for (uint32_t i = 0; i < n; i++) {
        const struct node *nd = fabric_switch(f, queue[i]);
        for (unsigned num = 1; num <= nd->num_ports; num++) {
            const struct port *p = &f->port[nd->first_port + num];
            const struct node *z = fabric_peer_node(f, p);
            ends += z != NULL && z->type != NODE_SWITCH && z->role != ROLE_AGGREGATION;
            if (far_of(f, p) == NULL || shut[nd->first_port + num] || part[z->sw] != UINT32_MAX)
                continue;
            part[z->sw] = first;
            queue[n++] = z->sw;
        }
    }
    return ends;
}

// Ends outside of the part that most of them are in when these cables are gone.
static uint32_t count_hang(const struct sm_drain_set *s, const struct fabric *f)
{
    bool *shut = xcalloc(f->num_ports + 1u, sizeof(*shut));
    uint32_t *part = xcalloc(2 * (f->num_switches + 1u), sizeof(*part)), all = 0, most = 0;
    port_id port[256];
    for (unsigned i = 0; i < s->n; i++) {
        size_t n = cables_of(f, &s->use[i].at, port);
        for (size_t k = 0; k < n; k++)
            shut[port[k].i] = shut[f->port[port[k].i].peer.i] = true;
    }
    memset(part, 0xff, f->num_switches * sizeof(*part));
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        if (part[sw] != UINT32_MAX)
            continue;
        uint32_t ends = flood(f, shut, sw, part, part + f->num_switches);
        all += ends;
        most = ends > most ? ends : most;
    }
    free(shut);
    free(part);
    return all - most;
}

void sm_drains_count(struct sm_drain_set *set, const struct fabric *f, const struct fabric_tables *t)
{
    port_id port[256];
    struct route_users u;
    for (unsigned i = 0; set != NULL && i < set->n; i++) {
        struct sm_drain_use *x = &set->use[i];
        x->cables = (uint32_t)cables_of(f, &x->at, port);
        port_id *end = route_users_list(f, t, port, x->cables, &u);
        x->own = strike_own(f, &x->at, 1, end, &u.ends);
        free(end);
        x->ends = u.ends;
        x->switches = u.switches;
        if (x->at.port == 0 && x->switches > 0) // its own, which is reached over them
            x->switches--;
    }
    if (set != NULL && set->n > 0)
        set->hang = count_hang(set, f);
}

uint32_t sm_drains_hang(const struct sm *sm)
{
    return sm->drains->n > 0 ? sm->drains->hang : 0;
}

size_t sm_drain_ends(const struct sm *sm, const struct sm_drain *d, uint32_t *end, size_t max)
{
    port_id port[256];
    struct route_users u;
    if (sm->fabric == NULL || sm->tables == NULL || sm->tables->num_switches != sm->fabric->num_switches)
        return 0;
    size_t n = cables_of(sm->fabric, &d->at, port);
    port_id *list = route_users_list(sm->fabric, sm->tables, port, n, &u);
    strike_own(sm->fabric, &d->at, 1, list, &u.ends);
    for (size_t i = 0; i < u.ends && i < max; i++)
        end[i] = list[i].i;
    free(list);
    return u.ends;
}

const struct fabric *sm_drains_fabric(const struct sm_drain_set *set, const struct fabric *f)
{
    if (set == NULL || set->n == 0)
        return fabric_ref(f);
    struct route_avoid *x = sm_drains_avoid(set, f);
    const struct fabric *open = route_avoid_open(x);
    route_avoid_free(x);
    return open;
}

// --- in force ---

static void tell_in_force(struct sm *sm, const struct sm_drain *d)
{
    const char *kind = d->at.port > 0 ? "link-drain-in-force" : "node-drain-in-force";
    char who[100];
    if (d->state == SM_DRAIN_DRAINED)
        sm_event(sm, kind, "notice", d->name, "%s is drained: %s", d->name,
                 d->at.port > 0 ? "nothing uses it" : "nothing passes through it");
    else
        sm_event(sm, kind, "warning", d->name, "%s is drained, %s and still use%s it", d->name,
                 sm_drain_no_other_way(d->ends, d->switches, who, sizeof(who)),
                 d->ends + d->switches == 1 ? "s" : "");
}

static void tell_undone(struct sm *sm)
{
    struct sm_drains *x = sm->drains;
    const struct sm_drain *d = &x->undone_first;
    char who[240];
    if (x->undone == 0)
        return;
    snprintf(who, sizeof(who), "%s is", d->name);
    if (x->undone > 1)
        snprintf(who, sizeof(who), "%s and %u more are", d->name, x->undone - 1);
    sm_event(sm, d->at.port > 0 ? "link-undrain-in-force" : "node-undrain-in-force", "notice", d->name,
             "%s undrained: traffic passes as without the drain", who);
    x->undone = 0;
}

// What the blueprint has lost, as one that was replaced does, comes back no more.
static void end_lost(struct sm *sm)
{
    struct sm_drains *x = sm->drains;
    const struct fabric *known = sm->blueprint.known;
    unsigned n = 0;
    for (unsigned i = 0; i < x->n && known != NULL; i++) {
        struct sm_drain d = x->item[i];
        bool had = d.in_blueprint;
        d.in_blueprint = fabric_by_guid(known, d.at.guid) != NULL;
        if (had && !d.in_blueprint && sm_drain_away(sm, &d)) {
            sm_event(sm, d.at.port > 0 ? "link-undrained" : "node-undrained", "notice", d.name,
                     "%s (" GUID_FMT ") is no part of the blueprint any more: its drain has ended", d.name,
                     GUID_ARG(d.at.guid));
            continue;
        }
        x->item[n++] = d;
    }
    if (known != NULL && n < x->n) {
        x->n = n;
        keep(sm);
    }
}

void sm_drains_adopt(struct sm *sm, const struct sm_drain_set *set)
{
    struct sm_drains *x = sm->drains;
    end_lost(sm);
    tell_undone(sm);
    x->in_force = set != NULL ? set->version : 0;
    free(x->now);
    x->now = copy_set(set);
    x->hang = set != NULL ? set->hang : 0;
    for (unsigned i = 0; set != NULL && i < set->n; i++) {
        const struct sm_drain_use *u = &set->use[i];
        for (unsigned k = 0; k < x->n; k++) {
            struct sm_drain *d = &x->item[k];
            if (!same(&d->at, &u->at))
                continue;
            enum sm_drain_state was = d->state;
            bool more = u->ends > d->ends || u->switches > d->switches;
            d->cables = u->cables;
            d->own = u->own;
            d->ends = u->ends;
            d->switches = u->switches;
            d->state = u->ends + u->switches > 0 ? SM_DRAIN_IN_USE : SM_DRAIN_DRAINED;
            if (was != d->state || (d->state == SM_DRAIN_IN_USE && more))
                tell_in_force(sm, d);
        }
    }
}

static const char *port_word(const struct sm_drain *d, char *buf, size_t size)
{
    buf[0] = 0;
    if (d->at.port > 0)
        snprintf(buf, size, " %u", d->at.port);
    return buf;
}

void sm_drains_find(const struct sm *sm, struct findings *f)
{
    char since[40], text[SM_DRAIN_TEXT + 8], who[100], port[8];
    for (unsigned i = 0; i < sm->drains->n; i++) {
        const struct sm_drain *d = &sm->drains->item[i];
        if (d->state == SM_DRAIN_IN_USE)
            findings_add(f, FINDING_WARNING, "drained-in-use", d->name, "is drained, %s and still use%s it",
                         sm_drain_no_other_way(d->ends, d->switches, who, sizeof(who)),
                         d->ends + d->switches == 1 ? "s" : "");
        if (sm_drain_away(sm, d)) {
            findings_add(f, FINDING_INFO, "drained-away", d->name,
                         "(" GUID_FMT ") is drained and no longer there; it holds for when it comes back, or "
                         "ends by: weft %s undrain " GUID_FMT "%s",
                         GUID_ARG(d->at.guid), d->at.port > 0 ? "link" : "node", GUID_ARG(d->at.guid),
                         port_word(d, port, sizeof(port)));
            continue;
        }
        wall_format(d->since_ns, since, sizeof(since));
        findings_add(f, FINDING_INFO, "drained", d->name, "is drained since %s by %s%s", since, d->by,
                     because(d, text, sizeof(text)));
    }
}

uint64_t sm_drains_hash(const struct sm *sm)
{
    uint64_t h = 0;
    const struct sm_drain_set *s = sm->drains->now;
    for (unsigned i = 0; s != NULL && i < s->n; i++)
        h += hash_mix64(s->use[i].at.guid ^ (uint64_t)s->use[i].at.port << 56);
    return h;
}

// --- what it would do ---

struct sm_drain_check {
    struct sm_ideal *ideal;
    const struct fabric *f;
    const struct fabric_tables *tables;
    struct sm_drain_set *set;
    struct sm_drain_place *at; // those that would change
    size_t n;
    bool undrain, allow_credit_loops;
};

// The list as it would be then; c->at: what changes.
static void change_set(const struct sm *sm, struct sm_drain_check *c, const struct sm_drain_place *at,
                       size_t n)
{
    struct sm_drain_set *s = xcalloc(1, sizeof(*s) + (sm->drains->n + n + 1) * sizeof(s->use[0]));
    bool *gone = xcalloc(sm->drains->n + 1u, sizeof(*gone));
    s->version = sm->drains->version;
    c->at = xcalloc(n + 1, sizeof(*c->at));
    for (size_t i = 0; i < n; i++) {
        unsigned k = find(sm, &at[i]);
        if ((k < sm->drains->n) != c->undrain || (c->undrain && gone[k]))
            continue;
        gone[k] = c->undrain;
        c->at[c->n++] = c->undrain ? sm->drains->item[k].at : at[i];
    }
    for (unsigned i = 0; i < sm->drains->n; i++)
        if (!gone[i])
            s->use[s->n++].at = sm->drains->item[i].at;
    for (size_t i = 0; i < c->n && !c->undrain; i++)
        s->use[s->n++].at = c->at[i];
    free(gone);
    c->set = s;
}

int sm_drain_check_new(const struct sm *sm, const struct sm_drain_place *at, size_t n, bool undrain,
                       struct sm_drain_check **ret, struct err *e)
{
    *ret = NULL;
    int rc = check_master(sm, e);
    for (size_t i = 0; i < n && rc == 0 && !undrain; i++) {
        struct sm_drain d = {.at = at[i]};
        rc = check_place(sm, &d, e);
    }
    if (rc != 0)
        return rc;
    if (sm->blueprint.ideal == NULL || sm->tables == NULL)
        return err_set(e, -EAGAIN, sm->o.fabric, "there are no tables yet");
    struct sm_drain_check *c = xcalloc(1, sizeof(*c));
    c->undrain = undrain;
    change_set(sm, c, at, n);
    if (c->n == 0) {
        sm_drain_check_free(c);
        return 1;
    }
    c->ideal = sm_ideal_ref(sm->blueprint.ideal);
    c->f = fabric_ref(sm->fabric);
    c->tables = tables_ref(sm->tables);
    c->allow_credit_loops = sm->o.allow_credit_loops;
    *ret = c;
    return 0;
}

// What still uses what would be drained.
static void count_effect(const struct sm_drain_check *c, const struct fabric_tables *t,
                         struct sm_drain_effect *ret)
{
    port_id *port = xcalloc(c->n * 256 + 1, sizeof(*port));
    uint32_t whole = 0;
    struct route_users u;
    for (size_t i = 0; i < c->n; i++) {
        size_t n = cables_of(c->f, &c->at[i], port + ret->cables);
        ret->cables += (uint32_t)n;
        whole += c->at[i].port == 0 && n > 0;
    }
    port_id *end = route_users_list(c->f, t, port, ret->cables, &u);
    strike_own(c->f, c->at, c->n, end, &u.ends);
    free(end);
    free(port);
    if (c->undrain)
        return;
    ret->ends = u.ends;
    ret->switches = u.switches > whole ? u.switches - whole : 0;
}

int sm_drain_check_run(struct sm_drain_check *c, struct par *par, struct sm_drain_effect *ret, struct err *e)
{
    struct route_result r;
    struct route_proof *proof = xcalloc(1, sizeof(*proof));
    struct verify_opts v = {.par = par, .allow_credit_loops = c->allow_credit_loops};
    struct route_plan *plan = NULL;

    *ret = (struct sm_drain_effect){0};
    int rc = sm_drains_repair(c->set, c->ideal->base, c->f, par, &r, e);
    if (rc == 0) {
        struct tables_diff d = tables_compare(c->tables, r.tables);
        ret->entries = d.entries;
        ret->blocks = d.blocks;
        ret->table_switches = d.switches;
        ret->paths = route_paths_moved(c->f, c->tables, r.tables, par);
        count_effect(c, r.tables, ret);
        ret->proved = route_verify(c->f, r.tables, &v, proof);
        snprintf(ret->counter_example, sizeof(ret->counter_example), "%s",
                 ret->proved ? "" : proof->counter_example);
        rc = route_plan_make(c->f, c->tables, NULL, NULL, r.tables, par, &plan, e);
        ret->waves = rc == 0 ? plan->num_waves : 0;
        route_plan_free(plan);
        tables_unref(r.tables);
    }
    free(proof);
    return rc;
}

bool sm_drain_check_undrains(const struct sm_drain_check *c)
{
    return c->undrain;
}

void sm_drain_check_free(struct sm_drain_check *c)
{
    if (c == NULL)
        return;
    sm_ideal_unref(c->ideal);
    fabric_unref(c->f);
    tables_unref((struct fabric_tables *)c->tables);
    free(c->set);
    free(c->at);
    free(c);
}
