// SPDX-License-Identifier: Apache-2.0
// kill -9 in the midst of writing, 200 times: what was said to be durable is there, at most the sweep in hand
// is missing, none before it; the files are sound, minutes and hours as the sweeps make them.
#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/db/seriessteps.h"

enum { ROUNDS = 200, SERIES = 520, ACKS = 10 };
#define INTERVAL 25000LL

// What series i counts at sweep k.
static void counted(uint32_t k, uint32_t i, uint64_t value[COLS])
{
    for (unsigned c = 0; c < COLS; c++)
        value[c] =
            c % 3 == 0 ? (uint64_t)k * (i + 1) * 1000003 + hash_mix64((uint64_t)k << 32 | i) % 1000 : c;
}

static void fill(struct sfix *f, uint32_t k, uint64_t *value, uint64_t *have)
{
    for (uint32_t i = 0; i < SERIES; i++) {
        counted(k, i, value + (size_t)i * COLS);
        have[i] = hash_mix64(k * SERIES + i) % 50 ? (1 << COLS) - 1 : 0;
    }
}

static int64_t time_of(uint32_t k)
{
    return T0 + k * INTERVAL;
}

static void child_main(struct sfix *f, int fd, uint32_t k)
{
    uint64_t *value = xcalloc(SERIES * COLS, 8), *have = xcalloc(SERIES, 8);
    struct err e;
    struct series *s = series_open(f->loop, f->dir, &f->o, NULL, &e);
    if (!s)
        _exit(2);
    for (uint32_t i = 0; i < SERIES; i++)
        series_id(s, G(i), 1);
    for (;; k++) {
        fill(f, k, value, have);
        series_sweep(s, time_of(k), value, have, SERIES);
        if (series_flush(s) || write(fd, &k, sizeof(k)) != sizeof(k))
            _exit(3);
    }
}

// Returns the number of the last sweep that was said to be durable, or first - 1.
static uint32_t run_and_kill(struct sfix *f, uint32_t first)
{
    int fd[2], st;
    uint32_t k, last = first - 1;
    assert_int_equal(pipe(fd), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fd[0]);
        child_main(f, fd[1], first);
    }
    close(fd[1]);
    unsigned acks = rng_below(&f->rng, ACKS);
    for (unsigned i = 0; i < acks && read(fd[0], &k, sizeof(k)) == sizeof(k); i++)
        last = k;
    // At any moment of the next: a busy wait of no length in particular.
    for (volatile uint32_t i = rng_below(&f->rng, 3000000); i; i--)
        continue;
    kill(pid, SIGKILL);
    while (read(fd[0], &k, sizeof(k)) == sizeof(k))
        last = k;
    close(fd[0]);
    assert_int_equal(waitpid(pid, &st, 0), pid);
    assert_true(WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL);
    return last;
}

// The model learns that sweeps up to k exist, written in this run.
static void model_up_to(struct sfix *f, uint32_t k, unsigned run)
{
    for (; f->n <= k; f->n++) {
        if (f->n == f->cap)
            f->sweep = xreallocarray(f->sweep, f->cap = f->cap ? f->cap * 2 : 64, sizeof(*f->sweep));
        struct msweep *m = &f->sweep[f->n];
        *m = (struct msweep){time_of((uint32_t)f->n), SERIES, run, xcalloc(SERIES * COLS, 8),
                             xcalloc(SERIES, 8)};
        fill(f, (uint32_t)f->n, m->value, m->have);
    }
}

static void tell_damage(void *arg, const char *file, const char *text)
{
    if (strncmp(text, "ok", 2) != 0)
        fail_msg("%s: %s", file, text);
}

static void nothing_durable_is_lost(void **state)
{
    struct sfix *f = *state;
    uint32_t next = 0;
    f->num = SERIES;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t acked = run_and_kill(f, next);
        assert_int_equal(series_check(f->dir, tell_damage, NULL), 0);
        s_open(f);
        assert_int_equal(f->rep.set_aside, 0);
        // None is before the first; one more than was said may be there.
        uint32_t found = f->rep.last_ms ? (uint32_t)((f->rep.last_ms - T0) / INTERVAL) : UINT32_MAX;
        assert_in_range(found - acked, 0, 1);
        next = found + 1;
        if (next > 0)
            model_up_to(f, found, round);
        assert_int_equal(f->n, next);
        series_close(f->s);
        f->s = NULL;
        s_verify(f, UINT64_MAX, time_of(next > 31 ? next - 31 : 0), INT64_MAX); // the last few, each time
    }
    assert_true(f->n > ROUNDS * ACKS / 3);
    s_verify(f, UINT64_MAX, 0, INT64_MAX);
    s_open(f); // what was in the making is written when the next sweep comes
    model_up_to(f, next + 200, ROUNDS);
    for (uint32_t i = 0; i < SERIES; i++)
        series_id(f->s, G(i), 1);
    for (uint32_t k = next; k <= next + 200; k++) {
        series_sweep(f->s, time_of(k), f->sweep[k].value, f->sweep[k].have, SERIES);
        assert_int_equal(series_flush(f->s), 0);
    }
    verify_all(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {ST(nothing_durable_is_lost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
