// SPDX-License-Identifier: Apache-2.0
// One lock around everything. A line is built on the stack and written with one write(2), so that lines of
// threads and processes do not mix.
//
// log_remote() counts per (peer, event) in a table of fixed size, LINES_PER_PEER a minute each and
// LINES_IN_ALL a minute together: a fabric full of broken (or forged) peers cannot fill the disk. What was
// held back is told with the peer's next line, or when a later call finds its minute over.
#include "lib/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/hash.h"
#include "lib/mono.h"

#define TEXT_MAX 2000
#define WINDOW_NS (60 * MONO_S)
#define LINES_PER_PEER 5
#define LINES_IN_ALL 300
#define SETS 256
#define WAYS 4

struct peer_rate {
    uint64_t peer;
    char event[32]; // cut: only for telling
    uint64_t event_hash;
    mono_t start;
    uint32_t lines, held;
    bool used;
};

static struct {
    pthread_mutex_t lock;
    _Atomic int level;
    void (*hook)(void *arg, enum log_level level, const char *event, const char *text);
    void *hook_arg;
    mono_t (*clock)(void);
    int journal; // -1 not looked at yet
    struct peer_rate rate[SETS][WAYS];
    unsigned hand; // the set that is looked at next for minutes that are over
    mono_t all_start;
    uint32_t all_lines;
    uint64_t all_held; // of peers whose row had to go while no more lines were allowed
} g = {.lock = PTHREAD_MUTEX_INITIALIZER, .level = LOG_LEVEL_REMOTE, .clock = mono_now, .journal = -1};

static const char *const level_name[] = {"error", "warning", "notice", "remote", "debug"};
static const int level_priority[] = {3, 4, 5, 5, 7}; // sd-daemon(3)

void log_set_level(enum log_level most_verbose)
{
    atomic_store_explicit(&g.level, (int)most_verbose, memory_order_relaxed);
}

void log_set_hook(void (*hook)(void *arg, enum log_level level, const char *event, const char *text),
                  void *arg)
{
    pthread_mutex_lock(&g.lock);
    g.hook = hook;
    g.hook_arg = arg;
    pthread_mutex_unlock(&g.lock);
}

void log_set_clock(mono_t (*now)(void))
{
    pthread_mutex_lock(&g.lock);
    g.clock = now ? now : mono_now;
    pthread_mutex_unlock(&g.lock);
}

// Length of the UTF-8 sequence at s (2..4, well-formed, not a C1 control), 0 when it is none.
static int utf8_length(const unsigned char *s)
{
    int n = s[0] >= 0xc2 && s[0] <= 0xdf   ? 2
            : (s[0] & 0xf0) == 0xe0        ? 3
            : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
                                           : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xc2 && s[1] < 0xa0) || (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

// What came from a peer may hold anything: nothing of it may start a line of its own or steer a terminal.
static void escape(char *out, size_t size, const char *in)
{
    const unsigned char *s = (const unsigned char *)in;
    size_t n = 0;

    while (*s && n + 5 < size) {
        int seq = *s >= 0x80 ? utf8_length(s) : *s >= 0x20 && *s != 0x7f;
        if (seq) {
            memcpy(out + n, s, (size_t)seq);
            n += (size_t)seq;
            s += seq;
        } else if (*s == '\n' || *s == '\t' || *s == '\r') {
            out[n++] = '\\';
            out[n++] = *s == '\n' ? 'n' : *s == '\t' ? 't' : 'r';
            s++;
        } else {
            n += (size_t)snprintf(out + n, 5, "\\x%02x", *s++);
        }
    }
    out[n] = '\0';
}

static void emit_locked(enum log_level level, const char *event, const char *raw)
{
    char text[TEXT_MAX], line[TEXT_MAX + 200], when[32];

    escape(text, sizeof(text), raw);
    if (g.journal < 0)
        g.journal = getenv("JOURNAL_STREAM") != NULL;
    const char *gap = text[0] ? " " : "";
    int n =
        g.journal
            ? snprintf(line, sizeof(line), "<%d>%.100s%s%s\n", level_priority[level], event, gap, text)
            : snprintf(line, sizeof(line), "%s %s %.100s%s%s\n",
                       wall_format(wall_now_ns(), when, sizeof(when)), level_name[level], event, gap, text);
    if (write(STDERR_FILENO, line, (size_t)n) < 0) {
        // There is no other place to tell it.
    }
    if (g.hook)
        g.hook(g.hook_arg, level, event, text);
}

static bool wanted(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&g.level, memory_order_relaxed);
}

static void vlog(enum log_level level, const char *event, const char *fmt, va_list ap)
{
    char raw[TEXT_MAX];

    if (!wanted(level))
        return;
    vsnprintf(raw, sizeof(raw), fmt, ap);
    pthread_mutex_lock(&g.lock);
    emit_locked(level, event, raw);
    pthread_mutex_unlock(&g.lock);
}

void log_error(const char *event, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vlog(LOG_LEVEL_ERROR, event, fmt, ap);
    va_end(ap);
}

void log_warning(const char *event, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vlog(LOG_LEVEL_WARNING, event, fmt, ap);
    va_end(ap);
}

const char *log_quote(const char *s, char *buf, unsigned long size)
{
    size_t n = 0;
    for (; *s != 0 && n + 3 < size; s++) {
        if (*s == '"' || *s == '\\')
            buf[n++] = '\\';
        buf[n++] = *s;
    }
    buf[n] = 0;
    return buf;
}

void log_notice(const char *event, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vlog(LOG_LEVEL_NOTICE, event, fmt, ap);
    va_end(ap);
}

void log_debug(const char *event, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vlog(LOG_LEVEL_DEBUG, event, fmt, ap);
    va_end(ap);
}

// --- peers ---

static const char *peer_text(uint64_t peer, char buf[32])
{
    snprintf(buf, 32, peer > 0xffff ? "0x%016llx" : "%llu", (unsigned long long)peer);
    return buf;
}

static bool over(mono_t start, mono_t now)
{
    return mono_sub(now, start) >= WINDOW_NS;
}

// One more line for all peers together?
static bool all_allow(mono_t now)
{
    if (over(g.all_start, now)) {
        g.all_start = now;
        g.all_lines = 0;
    }
    if (g.all_lines >= LINES_IN_ALL)
        return false;
    g.all_lines++;
    return true;
}

static void tell_held(struct peer_rate *r, mono_t now)
{
    char raw[100], who[32];

    if (!r->held)
        return;
    if (!all_allow(now)) {
        g.all_held += r->held;
    } else {
        snprintf(raw, sizeof(raw), "peer=%s suppressed=%u", peer_text(r->peer, who), r->held);
        emit_locked(LOG_LEVEL_REMOTE, r->event, raw);
    }
    r->held = 0;
}

static void tell_over(unsigned set, mono_t now)
{
    for (unsigned w = 0; w < WAYS; w++) {
        struct peer_rate *r = &g.rate[set][w];
        if (r->used && over(r->start, now)) {
            tell_held(r, now);
            r->used = false;
        }
    }
}

static struct peer_rate *rate_find(uint64_t peer, const char *event, mono_t now)
{
    uint64_t h = 0;
    for (const char *s = event; *s; s++)
        h = hash_mix64(h ^ (unsigned char)*s);
    struct peer_rate *row = g.rate[hash_mix64(h ^ peer) % SETS], *victim = row;

    for (unsigned w = 0; w < WAYS; w++) {
        if (row[w].used && row[w].peer == peer && row[w].event_hash == h)
            return &row[w];
        if (victim->used && (!row[w].used || row[w].start.ns < victim->start.ns))
            victim = &row[w];
    }
    if (victim->used)
        tell_held(victim, now);
    *victim = (struct peer_rate){.peer = peer, .event_hash = h, .start = now, .used = true};
    snprintf(victim->event, sizeof(victim->event), "%s", event);
    return victim;
}

static void remote_locked(uint64_t peer, const char *event, const char *raw)
{
    char line[TEXT_MAX + 100], who[32];
    mono_t now = g.clock();

    struct peer_rate *r = rate_find(peer, event, now);
    uint32_t held = 0;
    if (over(r->start, now)) {
        held = r->held;
        r->start = now;
        r->lines = r->held = 0;
    }
    if (r->lines >= LINES_PER_PEER || !all_allow(now)) {
        r->held += held + 1;
        return;
    }
    r->lines++;
    int n = snprintf(line, sizeof(line), "peer=%s ", peer_text(peer, who));
    if (held)
        n += snprintf(line + n, sizeof(line) - (size_t)n, "suppressed=%u ", held);
    snprintf(line + n, sizeof(line) - (size_t)n, "%s", raw);
    emit_locked(LOG_LEVEL_REMOTE, event, line);
    if (g.all_held && all_allow(now)) {
        snprintf(line, sizeof(line), "suppressed=%llu", (unsigned long long)g.all_held);
        g.all_held = 0;
        emit_locked(LOG_LEVEL_REMOTE, "remote-flood", line);
    }
}

void log_remote(uint64_t peer, const char *event, const char *fmt, ...)
{
    char raw[TEXT_MAX];
    va_list ap;

    if (!wanted(LOG_LEVEL_REMOTE))
        return;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof(raw), fmt, ap);
    va_end(ap);
    pthread_mutex_lock(&g.lock);
    remote_locked(peer, event, raw);
    g.hand = (g.hand + 1) % SETS;
    tell_over(g.hand, g.clock());
    pthread_mutex_unlock(&g.lock);
}

void log_flush(void)
{
    pthread_mutex_lock(&g.lock);
    mono_t now = g.clock();
    for (unsigned s = 0; s < SETS; s++)
        for (unsigned w = 0; w < WAYS; w++)
            if (g.rate[s][w].used)
                tell_held(&g.rate[s][w], now);
    pthread_mutex_unlock(&g.lock);
}
