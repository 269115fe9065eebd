// SPDX-License-Identifier: Apache-2.0
// Traps (IBA 13.4.8, 13.4.9, 14.3.10): what a device tells unasked. Each is repressed, or its sender repeats
// it for ever, and leads to reading what it can be about (sm_dirty_*()), or to an event.
//
// Who speaks is the source LID on the wire, never the issuer that the notice names: the answer carries the
// M_Key of the port that it goes to, and a forged issuer may not get it another port's. LID 0 is our own
// port. Traps from LIDs that no port has, about other devices than the sender, or that make no sense are
// repressed, counted and nothing else.
//
// Everything is bounded, whoever sends what: one slot a unicast LID (slot 0 for everybody who is nobody),
// ANSWERS repressions a second and slot, and per slot and kind of read READS at once, then one each READ_NS
// (FLOOD_READ_NS while it floods). A trap that comes too soon is not lost: the read is done when it is due.
// While a device is still to be read, what its traps say is known already. A flood is an event when it begins
// and one when it is over; ports that report the same errors again and again, and violations of keys, are
// events limited by port and in all.
//
// struct sm_traps is the manager's, made with the first trap, freed by sm_trap_done(). Departure: a notice's
// toggle and count are not looked at, so a new trap that equals the last one is told from a repeat only by
// what happened meanwhile; at worst a device is read once in vain.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/log.h"
#include "lib/xalloc.h"
#include "sm/sm_priv.h"

#define SLOTS (MAD_LID_UNICAST_MAX + 1)
#define NOBODY 0
#define WINDOW MONO_S
#define ANSWERS 32 // traps of a window that are answered and looked at
#define FLOOD 250  // traps of a window
#define FLOODS_TOLD 16
#define READS 4
#define READ_NS (MONO_S / 2)
#define FLOOD_READ_NS (5 * MONO_S)
#define VIOLATION_NS (60 * MONO_S)
#define VIOLATIONS_AT_ONCE 20 // of all ports together, then one each VIOLATION_ALL_NS
#define VIOLATION_ALL_NS (3 * MONO_S)
#define BAD_PORTS 256 // that are counted at a time
#define BAD_PORTS_OF_ONE 32
#define BAD_REPEATS 10
#define BAD_FORGET_NS (60 * MONO_S)
#define BAD_QUIET_NS (300 * MONO_S)

enum reading { READ_SWITCH, READ_PORT, READ_DESC, READ_NODE, READINGS };
enum violation { BAD_M_KEY, BAD_P_KEY, BAD_Q_KEY, VIOLATIONS };
enum flood { FLOOD_NONE, FLOOD_BEGINS, FLOOD_ON, FLOOD_UNTOLD };

struct slot {
    int64_t window; // when it began
    uint32_t count; // traps in it
    uint8_t flood;  // enum flood
    uint8_t due;    // readings put off, bits
    bool active;    // on the list of those that the timer looks at
    uint16_t next;
    int64_t flood_began;
    uint64_t flood_traps;
    int64_t credit[READINGS];  // when the budget is full again
    uint64_t marked[READINGS]; // sweeps begun when it was last marked, plus 1
    struct {
        int64_t next;  // not told before
        uint32_t held; // not told since
    } violation[VIOLATIONS];
};

struct bad_port { // that reports 129..131
    uint16_t lid; // of the sender; 0 = row unused
    uint8_t num;
    uint8_t kind; // trap number - 129
    bool told;
    uint32_t count;
    int64_t first, last;
};

struct sm_traps {
    struct loop_timer timer;
    struct slot slot[SLOTS];
    uint16_t active; // first of the list; NO_SLOT
    unsigned floods_told, floods_untold;
    int64_t violation_credit;
    struct bad_port bad[BAD_PORTS];
    struct sm_trap_stats stats;
};
#define NO_SLOT 0xffff

struct trap { // one that is being looked at
    struct sm_dev *d;
    unsigned num; // the sender's end port
    uint16_t lid; // its slot; NOBODY
    struct slot *s;
    struct mad_notice n;
};

static void timer_fired(void *arg);

static int64_t now_ns(const struct sm *sm)
{
    return loop_now(sm->loop).ns;
}

static struct sm_traps *traps(struct sm *sm)
{
    if (sm->traps == NULL) {
        sm->traps = xcalloc(1, sizeof(*sm->traps));
        sm->traps->active = NO_SLOT;
        loop_timer_init(&sm->traps->timer, sm->loop, "sm", timer_fired, sm);
    }
    return sm->traps;
}

void sm_trap_done(struct sm *sm)
{
    if (sm->traps == NULL)
        return;
    loop_timer_cancel(&sm->traps->timer);
    free(sm->traps);
    sm->traps = NULL;
}

// --- the timer: what becomes due ---

static void wake_at(struct sm_traps *t, int64_t at)
{
    if (!loop_timer_pending(&t->timer) || t->timer.due.ns > at)
        loop_timer_at(&t->timer, (mono_t){at});
}

static void activate(struct sm_traps *t, struct slot *s, int64_t at)
{
    if (!s->active) {
        s->active = true;
        s->next = t->active;
        t->active = (uint16_t)(s - t->slot);
    }
    wake_at(t, at);
}

// --- names ---

static struct sm_dev *own_port(const struct sm *sm, unsigned *ret_num)
{
    if (sm->own_dev == DEV_NONE)
        return NULL;
    *ret_num = dev_is_switch(sm->dev[sm->own_dev]) ? 0 : sm->own.num;
    return sm->dev[sm->own_dev];
}

// The port with this LID, in the last finished generation.
static struct sm_dev *dev_at(struct sm *sm, uint16_t lid, unsigned *ret_num)
{
    struct sm_dev *d = lid == sm->own_lid ? own_port(sm, ret_num) : NULL;
    if (d == NULL)
        d = sm_dev_by_lid(sm, lid, ret_num);
    return d != NULL && *ret_num <= d->ni.num_ports ? d : NULL;
}

// A port that got its LID in the running sweep. Looks at every port: only for traps within the budget.
static struct sm_dev *new_dev_at(struct sm *sm, uint16_t lid, unsigned *ret_num)
{
    for (uint32_t i = 0; sm->sweeping && i < sm->num_dev; i++) {
        struct sm_dev *d = sm->dev[i];
        unsigned last = dev_is_switch(d) ? 0 : d->ni.num_ports;
        for (unsigned num = 0; dev_here(sm, d) && num <= last; num++)
            if (d->port[num].lid == lid) {
                *ret_num = num;
                return d;
            }
    }
    return NULL;
}

#define NAME_SIZE 160
static const char *lid_name(struct sm *sm, uint16_t lid, const uint8_t *gid, char buf[NAME_SIZE])
{
    unsigned num;
    const struct sm_dev *d = dev_at(sm, lid, &num);
    uint64_t guid = 0;

    for (int i = 8; gid != NULL && i < 16; i++)
        guid = guid << 8 | gid[i];
    if (d != NULL)
        sm_port_text(d, num, buf, NAME_SIZE);
    else if (guid != 0)
        snprintf(buf, NAME_SIZE, "LID %u (port " GUID_FMT ")", lid, GUID_ARG(guid));
    else
        snprintf(buf, NAME_SIZE, "LID %u", lid);
    return buf;
}

static const char *slot_name(struct sm *sm, const struct slot *s, char buf[NAME_SIZE])
{
    uint16_t lid = (uint16_t)(s - sm->traps->slot);
    if (lid != NOBODY)
        return lid_name(sm, lid, NULL, buf);
    snprintf(buf, NAME_SIZE, "LIDs that no port has");
    return buf;
}

// --- floods ---

static void flood_begins(struct sm *sm, struct slot *s)
{
    struct sm_traps *t = sm->traps;
    char name[NAME_SIZE];

    if (t->floods_told == FLOODS_TOLD) {
        s->flood = FLOOD_UNTOLD;
        if (t->floods_untold++ == 0)
            sm_event(sm, "trap-flood", "warning", "",
                     "more than %u ports send floods of traps; the others are not named", FLOODS_TOLD);
        return;
    }
    s->flood = FLOOD_ON;
    t->floods_told++;
    sm_event(sm, "trap-flood", "warning", slot_name(sm, s, name),
             "sends %u traps a second; most are neither answered nor looked at until it stops", s->count);
}

static void flood_ends(struct sm *sm, struct slot *s, int64_t now)
{
    struct sm_traps *t = sm->traps;
    char name[NAME_SIZE];

    if (s->flood == FLOOD_UNTOLD) {
        t->floods_untold--;
    } else {
        t->floods_told--;
        sm_event(sm, "trap-flood", "notice", slot_name(sm, s, name),
                 "the flood of traps is over: %llu in %lld s", (unsigned long long)s->flood_traps,
                 (long long)((now - s->flood_began + MONO_S / 2) / MONO_S));
    }
    s->flood = FLOOD_NONE;
    t->stats.flooding--;
}

// Ends the slot's window when it is over.
static void window_roll(struct sm *sm, struct slot *s, int64_t now)
{
    if (now - s->window < WINDOW)
        return;
    switch ((enum flood)s->flood) {
    case FLOOD_NONE:
        break;
    case FLOOD_BEGINS:
        flood_begins(sm, s);
        break;
    case FLOOD_ON:
    case FLOOD_UNTOLD:
        if (s->count < FLOOD / 2)
            flood_ends(sm, s, now);
        break;
    }
    s->window = now;
    s->count = 0;
}

static void count_in(struct sm *sm, struct slot *s, int64_t now)
{
    struct sm_traps *t = sm->traps;

    window_roll(sm, s, now);
    s->count++;
    if (s->flood != FLOOD_NONE) {
        s->flood_traps++;
    } else if (s->count == FLOOD) {
        s->flood = FLOOD_BEGINS;
        s->flood_began = s->window;
        s->flood_traps = FLOOD;
        t->stats.floods++;
        t->stats.flooding++;
    }
    if (s->flood != FLOOD_NONE)
        activate(t, s, s->window + WINDOW);
}

// --- what is read ---

static void mark(struct sm *sm, struct slot *s, struct sm_dev *d, unsigned num, enum reading what,
                 int64_t now)
{
    int64_t *credit = &s->credit[what];

    *credit = (*credit > now ? *credit : now) + (s->flood != FLOOD_NONE ? FLOOD_READ_NS : READ_NS);
    s->marked[what] = sm->num_sweeps + sm->sweeping + 1;
    s->due &= (uint8_t) ~(1u << what);
    switch (what) {
    case READ_SWITCH:
        sm_dirty_told(sm, d, "trap");
        break;
    case READ_PORT:
        sm_dirty_port(sm, d, num, "trap");
        break;
    case READ_DESC:
        sm_dirty_desc(sm, d, "trap");
        break;
    case READ_NODE:
        sm_dirty_node(sm, d, "trap");
        break;
    case READINGS:
        break;
    }
}

static int64_t may_read_at(const struct slot *s, enum reading what)
{
    return s->credit[what] - (s->flood != FLOOD_NONE ? 0 : (READS - 1) * READ_NS);
}

// The running sweep has asked it and clears its PortStateChange before it reads its ports: it will see this.
static bool is_about_to_read(const struct sm *sm, const struct sm_dev *d, enum reading what)
{
    return what == READ_SWITCH && sm->sweeping && !sm->disc.over && d->reading && !d->suspect &&
           d->ports_read != (uint32_t)sm->sweep.id;
}

static void want(struct sm *sm, const struct trap *tr, enum reading what)
{
    struct slot *s = tr->s;
    int64_t now = now_ns(sm), at = may_read_at(s, what);

    if ((s->due >> what & 1) || s->marked[what] == sm->num_sweeps + sm->sweeping + 1 ||
        is_about_to_read(sm, tr->d, what)) {
        sm->traps->stats.duplicates++; // still to be read
    } else if (at > now) {
        sm->traps->stats.put_off++;
        s->due |= (uint8_t)(1u << what);
        activate(sm->traps, s, at);
    } else {
        mark(sm, s, tr->d, tr->num, what, now);
    }
}

// --- ports that report errors (129..131) ---

static const char *const bad_kind[] = {"local link integrity errors", "excessive buffer overruns",
                                       "flow control watchdog time-outs"};

static struct bad_port *bad_row(struct sm_traps *t, uint16_t lid, unsigned num, unsigned kind, int64_t now)
{
    struct bad_port *room = NULL;
    unsigned of_one = 0;

    for (unsigned i = 0; i < BAD_PORTS; i++) {
        struct bad_port *b = &t->bad[i];
        if (b->lid != 0 && !b->told && now - b->last > BAD_FORGET_NS)
            b->lid = 0;
        if (b->lid == lid && b->num == num && b->kind == kind)
            return b;
        of_one += b->lid == lid;
        if (b->lid == 0 && room == NULL)
            room = b;
    }
    if (of_one >= BAD_PORTS_OF_ONE || room == NULL)
        return NULL;
    *room = (struct bad_port){.lid = lid, .num = (uint8_t)num, .kind = (uint8_t)kind, .first = now};
    return room;
}

static void port_errors(struct sm *sm, const struct trap *tr, unsigned num)
{
    struct sm_traps *t = sm->traps;
    unsigned kind = tr->n.trap_number - MAD_TRAP_LOCAL_LINK_INTEGRITY;
    int64_t now = now_ns(sm);
    struct bad_port *b = bad_row(t, tr->lid, num, kind, now);
    char name[NAME_SIZE];

    if (b == NULL)
        return;
    b->last = now;
    if (++b->count <= BAD_REPEATS || b->told)
        return;
    b->told = true;
    t->stats.bad_ports++;
    wake_at(t, b->last + BAD_QUIET_NS);
    sm_event(sm, "port-errors", "warning", sm_port_text(tr->d, num, name, sizeof(name)),
             "reports %s, %u times in %lld s: look at its cable and at the far end", bad_kind[kind], b->count,
             (long long)((now - b->first) / MONO_S));
}

static int64_t bad_ports_due(struct sm *sm, int64_t now)
{
    struct sm_traps *t = sm->traps;
    int64_t next = INT64_MAX;
    char name[NAME_SIZE];
    unsigned num;

    for (unsigned i = 0; i < BAD_PORTS; i++) {
        struct bad_port *b = &t->bad[i];
        if (b->lid == 0 || !b->told)
            continue;
        int64_t at = b->last + BAD_QUIET_NS;
        if (at > now) {
            next = at < next ? at : next;
            continue;
        }
        const struct sm_dev *d = dev_at(sm, b->lid, &num);
        if (d != NULL)
            sm_event(sm, "port-errors", "notice", sm_port_text(d, b->num, name, sizeof(name)),
                     "no more %s for %lld s, after %u reports", bad_kind[b->kind], BAD_QUIET_NS / MONO_S,
                     b->count);
        b->lid = 0;
        t->stats.bad_ports--;
    }
    return next;
}

// --- violations of keys (256..259) ---

static const char *const violation_event[] = {"m-key-violation", "p-key-violation", "q-key-violation"};

static bool may_tell(struct sm_traps *t, int64_t now)
{
    if (t->violation_credit - (VIOLATIONS_AT_ONCE - 1) * VIOLATION_ALL_NS > now)
        return false;
    t->violation_credit = (t->violation_credit > now ? t->violation_credit : now) + VIOLATION_ALL_NS;
    return true;
}

// Whether this one is told; else it is counted for the next that is.
static bool violation_told(struct sm *sm, const struct trap *tr, enum violation kind, char more[60])
{
    int64_t now = now_ns(sm);
    struct slot *s = tr->s;

    if (now < s->violation[kind].next || !may_tell(sm->traps, now)) {
        s->violation[kind].held++;
        if (s->violation[kind].next < now)
            s->violation[kind].next = now + VIOLATION_NS;
        activate(sm->traps, s, s->violation[kind].next);
        return false;
    }
    more[0] = 0;
    if (s->violation[kind].held > 0)
        snprintf(more, 60, "; and %u more before", s->violation[kind].held);
    s->violation[kind].held = 0;
    s->violation[kind].next = now + VIOLATION_NS;
    return true;
}

static void held_violations(struct sm *sm, struct slot *s, int64_t now)
{
    char name[NAME_SIZE];

    for (unsigned k = 0; k < VIOLATIONS; k++) {
        if (s->violation[k].held == 0 || s->violation[k].next > now)
            continue;
        if (may_tell(sm->traps, now)) {
            sm_event(sm, violation_event[k], "warning", slot_name(sm, s, name),
                     "reports %u more within the last minutes", s->violation[k].held);
            s->violation[k].held = 0;
        }
        s->violation[k].next = now + VIOLATION_NS;
    }
}

static void bad_m_key(struct sm *sm, const struct trap *tr)
{
    struct mad_trap_256 x;
    char where[NAME_SIZE], who[NAME_SIZE], what[MAD_TEXT_SIZE], more[60];

    if (!violation_told(sm, tr, BAD_M_KEY, more))
        return;
    mad_trap_256_decode(tr->n.data_details, &x);
    if (x.lid >= MAD_LID_UNICAST_MIN && x.lid <= MAD_LID_UNICAST_MAX)
        lid_name(sm, x.lid, NULL, who);
    else
        snprintf(who, sizeof(who), "somebody with a directed route of %u hops", x.dr_hop_count);
    sm_event(
        sm, violation_event[BAD_M_KEY], "warning", sm_port_text(tr->d, tr->num, where, sizeof(where)),
        "was asked %s (modifier 0x%x) with a wrong M_Key by %s%s: another manager or tool, or a key that "
        "has changed",
        mad_what_text(MAD_CLASS_SM_LID, x.method, x.attr_id, what), x.attr_mod,
        x.lid == sm->own_lid ? "this manager" : who, more);
}

static void bad_key(struct sm *sm, const struct trap *tr)
{
    enum violation kind = tr->n.trap_number == MAD_TRAP_BAD_Q_KEY ? BAD_Q_KEY : BAD_P_KEY;
    struct mad_trap_257 x;
    char where[NAME_SIZE], from[NAME_SIZE], to[NAME_SIZE], more[60];

    if (!violation_told(sm, tr, kind, more))
        return;
    mad_trap_257_decode(tr->n.data_details, &x);
    sm_event(
        sm, violation_event[kind], "warning", sm_port_text(tr->d, tr->num, where, sizeof(where)),
        "a packet from %s (QP 0x%x) to %s (QP 0x%x) carries the %s 0x%x, which its receiver does not take%s",
        lid_name(sm, x.lid1, x.gid1, from), x.qp1, lid_name(sm, x.lid2, x.gid2, to), x.qp2,
        kind == BAD_Q_KEY ? "Q_Key" : "P_Key", x.key, more);
}

static void bad_switch_p_key(struct sm *sm, const struct trap *tr)
{
    struct mad_trap_259 x;
    char where[NAME_SIZE], from[NAME_SIZE], to[NAME_SIZE], more[60];

    mad_trap_259_decode(tr->n.data_details, &x);
    if (!dev_is_switch(tr->d) || x.port_num > tr->d->ni.num_ports) {
        sm->traps->stats.nonsense++;
        return;
    }
    if (!violation_told(sm, tr, BAD_P_KEY, more))
        return;
    sm_event(sm, violation_event[BAD_P_KEY], "warning", sm_port_text(tr->d, x.port_num, where, sizeof(where)),
             "dropped a packet from %s to %s with the P_Key 0x%x, which this port does not let through%s",
             lid_name(sm, x.lid1, x.gid1, from), lid_name(sm, x.lid2, x.gid2, to), x.p_key, more);
}

// --- what each trap leads to ---

// LIDs in the details: 0 says nothing; another device's is none of the sender's business.
static bool about_sender(struct sm *sm, const struct trap *tr, uint16_t lid)
{
    unsigned num;
    if (lid == 0 || lid == tr->lid || dev_at(sm, lid, &num) == tr->d)
        return true;
    sm->traps->stats.unknown++;
    return false;
}

static void port_errors_trap(struct sm *sm, const struct trap *tr)
{
    struct mad_trap_129 x;

    mad_trap_129_decode(tr->n.data_details, &x);
    if (!about_sender(sm, tr, x.lid) || tr->s->count > ANSWERS)
        return;
    unsigned num = dev_is_switch(tr->d) || x.port_num != 0 ? x.port_num : tr->num;
    if (num > tr->d->ni.num_ports)
        sm->traps->stats.unknown++;
    else
        port_errors(sm, tr, num);
}

// Of our own port we know when IsSM changes: this manager has done it.
static void local_changes(struct sm *sm, const struct trap *tr)
{
    struct mad_trap_144 x;
    struct mad_port_info pi;

    mad_trap_144_decode(tr->n.data_details, &x);
    if (!about_sender(sm, tr, x.lid))
        return;
    mad_port_info_decode(tr->d->port[tr->num].info, &pi);
    uint32_t changed = pi.capability_mask ^ x.capability_mask;
    bool own = tr->d->index == sm->own_dev && tr->num == (dev_is_switch(tr->d) ? 0 : sm->own.num);
    bool desc = x.other_local_changes && x.node_description_change;
    bool other = x.other_local_changes &&
                 (x.link_width_enabled_change || x.link_speed_enabled_change || x.sm_priority_change ||
                  x.hierarchy_info_change || x.capability_mask2_change);
    if (desc)
        want(sm, tr, READ_DESC);
    if (own)
        changed &= ~MAD_CAP_IS_SM;
    if (other || (desc || own ? changed != 0 && x.capability_mask != 0 : true))
        want(sm, tr, READ_PORT);
}

static void system_image(struct sm *sm, const struct trap *tr)
{
    struct mad_trap_145 x;
    mad_trap_145_decode(tr->n.data_details, &x);
    if (about_sender(sm, tr, x.lid))
        want(sm, tr, READ_NODE);
}

static void link_state(struct sm *sm, const struct trap *tr)
{
    struct mad_trap_128 x;
    mad_trap_128_decode(tr->n.data_details, &x);
    if (!dev_is_switch(tr->d) || tr->n.producer_type != MAD_PRODUCER_SWITCH)
        sm->traps->stats.nonsense++; // adapters have no such trap
    else if (about_sender(sm, tr, x.lid))
        want(sm, tr, READ_SWITCH);
}

static void look_at(struct sm *sm, const struct trap *tr)
{
    switch (tr->n.trap_number) {
    case MAD_TRAP_LINK_STATE_CHANGE:
        link_state(sm, tr);
        break;
    case MAD_TRAP_LOCAL_LINK_INTEGRITY:
    case MAD_TRAP_EXCESSIVE_BUFFER_OVERRUN:
    case MAD_TRAP_FLOW_CONTROL_WATCHDOG:
        port_errors_trap(sm, tr);
        break;
    case MAD_TRAP_LOCAL_CHANGES:
        local_changes(sm, tr);
        break;
    case MAD_TRAP_SYSTEM_IMAGE_GUID:
        system_image(sm, tr);
        break;
    case MAD_TRAP_BAD_M_KEY:
        bad_m_key(sm, tr);
        break;
    case MAD_TRAP_BAD_P_KEY:
    case MAD_TRAP_BAD_Q_KEY:
        bad_key(sm, tr);
        break;
    case MAD_TRAP_SWITCH_BAD_P_KEY:
        bad_switch_p_key(sm, tr);
        break;
    default:
        sm->traps->stats.nonsense++; // 64..67 are what a manager tells, not what it is told
        break;
    }
}

// --- a trap comes in ---

static const uint16_t counted[SM_TRAP_NUMBERS] = {128, 129, 130, 131, 144, 145, 256, 257, 258, 259};

static void count_number(struct sm_trap_stats *st, const struct mad_notice *n)
{
    for (unsigned i = 0; i < SM_TRAP_NUMBERS; i++)
        if (n->is_generic && n->trap_number == counted[i]) {
            st->by_number[i].count++;
            return;
        }
    if (n->is_generic)
        st->other_numbers++;
    else
        st->vendor++;
}

static void repress(struct sm *sm, const uint8_t *mad, const struct mad_addr *from, const struct trap *tr)
{
    uint8_t answer[MAD_SIZE];
    struct mad_addr to = *from;
    uint64_t key = 0;

    if (tr->d != NULL) {
        key = sm_m_key(tr->d, tr->num);
        if (key == 0) { // not read yet in the running sweep: as it was
            struct mad_port_info pi;
            mad_port_info_decode(tr->d->port[dev_is_switch(tr->d) ? 0 : tr->num].info, &pi);
            key = pi.m_key;
        }
    }
    if (to.lid == 0)
        to.lid = sm->own_lid;
    memcpy(answer, mad, MAD_SIZE);
    answer[3] = MAD_METHOD_TRAP_REPRESS;
    answer[4] = answer[5] = 0;
    for (int i = 0; i < 8; i++)
        answer[24 + i] = (uint8_t)(key >> (56 - 8 * i));
    if (mad_engine_reply(sm->engine, answer, &to) == 0)
        sm->traps->stats.repressed++;
}

// False when there is nobody to answer.
static bool sender(struct sm *sm, const uint8_t *mad, const struct mad_addr *from, struct trap *tr)
{
    uint16_t lid = from->lid == 0 ? sm->own_lid : from->lid;

    if (mad[1] != MAD_CLASS_SM_LID || lid < MAD_LID_UNICAST_MIN || lid > MAD_LID_UNICAST_MAX)
        return false;
    tr->d = dev_at(sm, lid, &tr->num);
    if (tr->d == NULL &&
        (now_ns(sm) - sm->traps->slot[NOBODY].window >= WINDOW || sm->traps->slot[NOBODY].count < ANSWERS))
        tr->d = new_dev_at(sm, lid, &tr->num);
    tr->lid = tr->d != NULL ? lid : NOBODY;
    tr->s = &sm->traps->slot[tr->lid];
    return true;
}

void sm_trap(struct sm *sm, const uint8_t *mad, const struct mad_addr *from)
{
    struct sm_traps *t = traps(sm);
    struct sm_trap_stats *st = &t->stats;
    struct trap tr = {0};

    st->received++;
    if (sm->state != SM_MASTER) {
        st->not_master++; // the master answers; a port that has not heard of it yet repeats
        return;
    }
    mad_notice_decode(mad + MAD_SMP_DATA_OFFSET, &tr.n);
    count_number(st, &tr.n);
    if (!sender(sm, mad, from, &tr)) {
        st->nonsense++;
        return;
    }
    count_in(sm, tr.s, now_ns(sm));
    bool known = tr.d != NULL;
    if (!known)
        st->unknown++;
    else if (tr.n.issuer_lid != tr.lid)
        st->other_issuer++;
    if (tr.s->count <= ANSWERS) {
        repress(sm, mad, from, &tr);
        if (known && tr.n.is_generic)
            log_debug("trap", "fabric=%s lid=%u number=%u issuer_lid=%u", sm->o.fabric, from->lid,
                      tr.n.trap_number, tr.n.issuer_lid);
        else
            log_remote(tr.lid, tr.n.is_generic ? "trap" : "trap-vendor",
                       "fabric=%s lid=%u number=%u issuer_lid=%u", sm->o.fabric, from->lid, tr.n.trap_number,
                       tr.n.issuer_lid);
    } else {
        st->unanswered++;
    }
    if (!known || !tr.n.is_generic)
        return;
    if (tr.n.producer_type < MAD_PRODUCER_CA || tr.n.producer_type > MAD_PRODUCER_CLASS_MANAGER)
        st->nonsense++;
    else
        look_at(sm, &tr);
}

// What of a slot is due is done; returns when to look again, INT64_MAX for not.
static int64_t slot_due(struct sm *sm, struct slot *s, int64_t now)
{
    struct sm_traps *t = sm->traps;
    uint16_t lid = (uint16_t)(s - t->slot);
    int64_t next = INT64_MAX;
    unsigned num = 0;

    window_roll(sm, s, now);
    if (s->flood != FLOOD_NONE)
        next = s->window + WINDOW;
    struct sm_dev *d = lid != NOBODY && s->due != 0 ? dev_at(sm, lid, &num) : NULL;
    if (d == NULL || sm->state != SM_MASTER)
        s->due = 0; // it is gone, or the fabric is another's
    for (unsigned r = 0; r < READINGS; r++) {
        if (!(s->due >> r & 1))
            continue;
        int64_t at = may_read_at(s, (enum reading)r);
        if (at <= now)
            mark(sm, s, d, num, (enum reading)r, now);
        else
            next = at < next ? at : next;
    }
    held_violations(sm, s, now);
    for (unsigned k = 0; k < VIOLATIONS; k++)
        if (s->violation[k].held > 0 && s->violation[k].next < next)
            next = s->violation[k].next;
    return next;
}

static void timer_fired(void *arg)
{
    struct sm *sm = arg;
    struct sm_traps *t = sm->traps;
    int64_t now = now_ns(sm), next = bad_ports_due(sm, now);

    for (uint16_t i = t->active, *link = &t->active; i != NO_SLOT; i = *link) {
        struct slot *s = &t->slot[i];
        int64_t at = slot_due(sm, s, now);
        if (at == INT64_MAX) {
            s->active = false;
            *link = s->next;
        } else {
            link = &s->next;
            next = at < next ? at : next;
        }
    }
    if (next != INT64_MAX)
        wake_at(t, next);
}

void sm_trap_stats(const struct sm *sm, struct sm_trap_stats *ret)
{
    *ret = sm->traps != NULL ? sm->traps->stats : (struct sm_trap_stats){0};
    for (unsigned i = 0; i < SM_TRAP_NUMBERS; i++)
        ret->by_number[i].number = counted[i];
}
