// SPDX-License-Identifier: Apache-2.0
// The end of a sweep, in parts of a few ms, a turn of the loop each: what else is due does not wait for all
// of it. Devices that are slow answer in between, and snapshots come: each part takes the table as it is.
// Congestion's trees, of a copy of it, are a thread's. In virtual time a step is one part, so that a run does
// not depend on how fast the machine is.
#include <string.h>

#include "telemetry/telemetry_priv.h"

#define PART_NS (3 * MONO_MS)
#define PART_PORTS 256 // between two looks at the clock
#define PART_BLOCKS 4  // of 512 ports, copied

static void part_begin(struct tele *t)
{
    t->part_until = mono_add(mono_now(), PART_NS);
}

static bool part_over(const struct tele *t)
{
    if (t->o.part_ports > 0)
        return true;
    return loop_clock(t->loop) == LOOP_REAL && mono_sub(mono_now(), t->part_until) >= 0;
}

static uint32_t part_ports(const struct tele *t)
{
    return t->o.part_ports > 0 ? t->o.part_ports : PART_PORTS;
}

// --- steps; true: done ---

static void settle_port(struct tele *t, uint32_t slot)
{
    struct tele_port *p = &t->table.port[slot];
    uint64_t due = t->data_counters | t->error_counters;
    const struct agent *a = &t->agent[t->slot_agent[slot]];
    if (a->detail)
        due |= t->detail_counters;
    t->table.have[slot] &= ~due | t->fresh[slot];
    if (t->fresh[slot] & t->data_counters)
        return;
    if (a->state == AGENT_NO_PMA)
        p->unread = p->unread == TELE_REFUSED ? TELE_REFUSED : TELE_NO_PMA;
    else if (a->lid == 0 || (p->unread == TELE_NOT_YET && p->unread_since >= t->began))
        p->unread = TELE_NOT_YET; // cannot be reached; has come amid the sweep
    else if (a->state == AGENT_READY && a->round == ROUND_SWEEP && a->misses == 0)
        p->unread = TELE_SLOW; // its round goes on
    else if (a->state == AGENT_SILENT || p->unread == TELE_READ || p->unread == TELE_NOT_YET ||
             p->unread == TELE_SLOW)
        p->unread = TELE_NO_ANSWER;
    if (p->unread_since == 0)
        p->unread_since = loop_now(t->loop).ns;
}

static bool settle(struct tele *t)
{
    while (t->end_at < t->table.num) {
        for (uint32_t k = part_ports(t); k > 0 && t->end_at < t->table.num; k--) {
            uint32_t slot = t->end_at++;
            if (t->table.port[slot].port == ID_NONE)
                continue;
            settle_port(t, slot);
            t->end_ports++;
            t->end_read += t->table.port[slot].unread == TELE_READ;
        }
        if (part_over(t))
            return false;
    }
    t->st.ports = t->end_ports;
    t->st.read = t->end_read;
    t->st.unread = t->end_ports - t->end_read;
    return true;
}

static bool waits(struct tele *t)
{
    if (t->end_at++ == 0)
        congest_feed_begin(t->congest, &t->table);
    while (!congest_feed_ports(t->congest, &t->table, part_ports(t)))
        if (part_over(t))
            return false;
    return true;
}

static void trees_work(void *arg, struct par *par)
{
    (void)par;
    struct tele *t = arg;
    int64_t began = thread_cpu_ns();
    congest_trees_work(t->congest);
    t->trees.cpu_ns = thread_cpu_ns() - began;
}

static void trees_done(void *arg)
{
    struct tele *t = arg;
    congest_trees_end(t->congest, loop_now(t->loop).ns);
    t->st.congestion_ns += (uint64_t)t->trees.cpu_ns;
    t->st.since_ns += (uint64_t)t->trees.cpu_ns;
    t->trees.running = false;
    loop_post(t->loop, &t->end_task);
}

// By a thread; the next part begins when it is done.
static bool trees(struct tele *t)
{
    if (t->o.pool == NULL || loop_clock(t->loop) == LOOP_VIRTUAL) {
        congest_feed_end(t->congest, &t->table, t->tables, t->groups, loop_now(t->loop).ns);
        return true;
    }
    if (t->end_at++ > 0)
        return true;
    congest_trees_begin(t->congest, &t->table, t->tables, t->groups);
    t->trees.job = (struct pool_job){.work = trees_work, .done = trees_done, .arg = t, .name = "trees"};
    t->trees.running = true;
    if (t->trees.pool == NULL)
        t->trees.pool = pool_new(t->loop, 1);
    pool_submit(t->trees.pool, &t->trees.job);
    return false;
}

static bool health(struct tele *t)
{
    if (t->end_at++ == 0) {
        t->errors_feeding = false; // this one sees it all
        health_feed_begin(t->health, &t->table, loop_now(t->loop).ns);
    }
    while (!health_feed_some(t->health, part_ports(t)))
        if (part_over(t))
            return false;
    return true;
}

static bool count_links(struct tele *t)
{
    if (t->end_at == 0)
        t->counting = (struct health_count){0};
    while (!health_count_some(t->health, &t->table, &t->end_at, part_ports(t), &t->counting))
        if (part_over(t))
            return false;
    t->links = t->counting;
    return true;
}

// What stood at its maximum before has not been counted: history has a gap, not a rate of 0. What is read
// from here on is the next sweep's.
static bool keep_fresh(struct tele *t)
{
    for (uint32_t i = 0; i < t->table.num; i++)
        t->fresh[i] &= ~(t->table.port[i].full & ~t->table.had[i]);
    if (t->series != NULL)
        t->frame = series_begin(t->series, t->st.last_wall_ns / MONO_MS, t->fresh, t->table.num);
    if (t->table.num > 0)
        memset(t->fresh, 0, t->table.num * sizeof(*t->fresh));
    return true;
}

static bool copy_values(struct tele *t)
{
    while (t->frame != NULL) {
        if (series_some(t->series, t->frame, t->table.value, t->o.part_ports > 0 ? 1 : PART_BLOCKS))
            t->frame = NULL;
        else if (part_over(t))
            return false;
    }
    return true;
}

static bool end_step(struct tele *t)
{
    switch (t->end) {
    case END_NONE:
        break;
    case END_SETTLE:
        return settle(t);
    case END_WAITS:
        return waits(t);
    case END_TREES:
        return trees(t);
    case END_HEALTH:
        return health(t);
    case END_COUNT:
        return count_links(t);
    case END_TELL:
        devices_age(t->devices, loop_now(t->loop).ns);
        tell_sweep(t);
        return true;
    case END_FRESH:
        return keep_fresh(t);
    case END_HISTORY:
        return copy_values(t);
    }
    return true;
}

// --- one after the other ---

static void account(struct tele *t, int64_t cpu)
{
    uint64_t *const of[] = {[END_WAITS] = &t->st.congestion_ns,
                            [END_TREES] = &t->st.congestion_ns,
                            [END_HEALTH] = &t->st.health_ns,
                            [END_FRESH] = &t->st.history_ns,
                            [END_HISTORY] = &t->st.history_ns};
    if (of[t->end] != NULL)
        *of[t->end] += (uint64_t)cpu;
    t->st.since_ns += (uint64_t)cpu;
}

static void sweep_done(struct tele *t)
{
    t->st.sweeps++;
    t->sweeping = false;
    loop_doing(t->loop, "keep");
    keep_save(t, false);
    loop_doing(t->loop, "swept");
    loop_timer_at(&t->timer, (mono_t){t->due});
    if (t->cb.swept != NULL)
        t->cb.swept(t->cb.arg);
}

void sweep_end_part(void *arg)
{
    static const char *const name[] = {
        [END_NONE] = "end",    [END_SETTLE] = "settle", [END_WAITS] = "waits",
        [END_TREES] = "trees", [END_HEALTH] = "health", [END_COUNT] = "count-links",
        [END_TELL] = "tell",   [END_FRESH] = "fresh",   [END_HISTORY] = "history",
    };
    struct tele *t = arg;
    int64_t began = thread_cpu_ns();
    loop_doing(t->loop, name[t->end]);
    part_begin(t);
    bool over = end_step(t);
    account(t, thread_cpu_ns() - began);
    if (over) {
        t->end_at = 0;
        t->end = t->end == END_HISTORY ? END_NONE : t->end + 1;
    }
    if (t->end == END_NONE)
        sweep_done(t);
    else if (!t->trees.running)
        loop_post(t->loop, &t->end_task);
}

void sweep_end_begin(struct tele *t)
{
    t->st.last_ns = loop_now(t->loop).ns - t->began;
    t->st.last_wall_ns = tele_wall_now(t);
    t->end = END_SETTLE;
    t->end_at = t->end_ports = t->end_read = 0;
    loop_post(t->loop, &t->end_task);
}

void sweep_end_stop(struct tele *t)
{
    t->end = END_NONE;
    t->errors_feeding = false;
    loop_unpost(t->loop, &t->end_task);
    loop_unpost(t->loop, &t->errors_task);
    if (t->trees.running)
        pool_cancel(&t->trees.job);
    t->trees.running = false;
    if (t->frame != NULL)
        series_drop(t->series, t->frame);
    t->frame = NULL;
    if (t->table.num > 0)
        memset(t->fresh, 0, t->table.num * sizeof(*t->fresh));
}

// --- error counters between sweeps ---

void sweep_errors_part(void *arg)
{
    struct tele *t = arg;
    if (!t->errors_feeding)
        return;
    loop_doing(t->loop, "health");
    part_begin(t);
    while (t->errors_feeding) {
        if (health_feed_some(t->health, part_ports(t)))
            t->errors_feeding = false;
        else if (part_over(t))
            break;
    }
    if (t->errors_feeding)
        loop_post(t->loop, &t->errors_task);
}

// Also amid a sweep: each reading counts once, by its time. What still looks at the ones before sees those of
// now too, or they are for the next round.
void sweep_errors_begin(struct tele *t)
{
    if (!t->errors_read || t->errors_feeding || t->end == END_HEALTH)
        return;
    t->errors_read = false;
    t->errors_feeding = true;
    health_feed_begin(t->health, &t->table, loop_now(t->loop).ns);
    sweep_errors_part(t);
}
