// SPDX-License-Identifier: Apache-2.0
// kill -9 in the midst of writing: every LID that was acknowledged is there, no event id is given twice.
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/db/dbtest.h"

enum { ROUNDS = 30 };

struct ack { // what the child tells, in one atomic write each
    uint64_t guid;
    uint16_t lid;
    uint64_t event_id;
};

struct child {
    struct db *db;
    int fd;
    struct put {
        struct child *c;
        struct ack ack;
    } put[8];
    unsigned next, round;
};

static void put_next(struct child *c, struct put *p);

static void acked(void *arg, int status)
{
    struct put *p = arg;
    if (status == 0 && write(p->c->fd, &p->ack, sizeof(p->ack)) != sizeof(p->ack))
        _exit(3);
    put_next(p->c, p);
}

static void put_next(struct child *c, struct put *p)
{
    unsigned n = c->round * 1000 + c->next++;
    struct db_event ev = {0, n, "a", "k", "notice", "", "t", ""};
    p->c = c;
    p->ack = (struct ack){G(n), (uint16_t)(n % 49151 + 1), db_event_add(c->db, &ev)};
    struct db_lid l = {p->ack.guid, p->ack.lid, 0};
    db_lids_put(c->db, "a", &l, 1, acked, p);
}

static void child_main(const char *dir, int fd, unsigned round)
{
    struct loop *l = loop_new(LOOP_REAL);
    struct err e;
    struct child c = {db_open(l, dir, NULL, &e), fd, .round = round};
    if (!c.db)
        _exit(2);
    for (int i = 0; i < 8; i++)
        put_next(&c, &c.put[i]);
    loop_run(l);
    _exit(4);
}

static bool read_ack(int fd, struct ack *a)
{
    ssize_t n;
    do
        n = read(fd, a, sizeof(*a));
    while (n < 0 && errno == EINTR);
    return n == sizeof(*a);
}

// Lets it acknowledge some, kills it, and reads what it had still acknowledged. Returns the number.
static size_t run_and_kill(struct fix *f, unsigned round, struct ack *ack, size_t max)
{
    int fd[2];
    size_t n = 0;
    assert_int_equal(pipe(fd), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fd[0]);
        child_main(f->dir, fd[1], round);
    }
    close(fd[1]);
    size_t kill_at = 1 + round * 7 % 40;
    while (n < max && read_ack(fd[0], &ack[n])) {
        if (++n == kill_at)
            kill(pid, SIGKILL);
    }
    close(fd[0]);
    int st;
    assert_int_equal(waitpid(pid, &st, 0), pid);
    assert_true(WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL);
    assert_true(n >= kill_at);
    return n;
}

static bool recorded(const struct db_lid *l, long n, const struct ack *a)
{
    for (long i = 0; i < n; i++) {
        if (l[i].port_guid == a->guid && l[i].lid == a->lid)
            return true;
    }
    return false;
}

static void every_acknowledged_lid_survives(void **state)
{
    struct fix *f = *state;
    enum { MAX = 4000 };
    struct ack *ack = xcalloc(ROUNDS * MAX, sizeof(*ack));
    size_t n = 0;
    uint64_t highest = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t from = n;
        n += run_and_kill(f, round, ack + n, MAX);
        for (size_t i = from; i < n; i++)
            assert_true(ack[i].event_id > highest);
        for (size_t i = from; i < n; i++)
            highest = ack[i].event_id > highest ? ack[i].event_id : highest;
        fix_open(f);
        assert_false(f->rep.set_aside);
        struct db_lid *l;
        long have = db_lids_load(f->db, "a", &l);
        for (size_t i = 0; i < n; i++)
            assert_true(recorded(l, have, &ack[i]));
        free(l);
        struct db_event ev = {.kind = "after"};
        uint64_t id = db_event_add(f->db, &ev);
        assert_true(id > highest);
        highest = id;
        db_close(f->db);
        f->db = NULL;
    }
    free(ack);
}

int main(void)
{
    const struct CMUnitTest tests[] = {T(every_acknowledged_lid_survives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
