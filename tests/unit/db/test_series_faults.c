// SPDX-License-Identifier: Apache-2.0
// A disk that is full, fails or writes half, from the n-th call on and for a while: history pauses, says so
// and goes on by itself; what was written before and after is all there, the files are sound, minutes and
// hours are what the sweeps make. By a VFS that stands before SQLite's own.
#include "tests/unit/db/seriessteps.h"

enum mode { FULL, EIO_WRITE, SHORT_WRITE, FSYNC, OPENING, MODES };

static struct {
    enum mode mode;
    long at, until, calls; // calls at..until-1 fail
    long failed;
} fault;

struct file {
    sqlite3_file base;
    sqlite3_io_methods methods; // those of the real file, some of ours
    sqlite3_file *real;
};

static sqlite3_vfs shim;
static sqlite3_vfs *real_vfs;

static sqlite3_file *real_of(sqlite3_file *f)
{
    return ((struct file *)f)->real;
}

static bool fails(bool concerned)
{
    if (!concerned)
        return false;
    long n = fault.calls++;
    bool yes = n >= fault.at && n < fault.until;
    fault.failed += yes;
    return yes;
}

static int f_close(sqlite3_file *f)
{
    int rc = real_of(f)->pMethods ? real_of(f)->pMethods->xClose(real_of(f)) : SQLITE_OK;
    free(real_of(f));
    return rc;
}

static int f_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    return real_of(f)->pMethods->xRead(real_of(f), p, n, at);
}

static int f_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    if (fails(fault.mode == FULL || fault.mode == EIO_WRITE || fault.mode == SHORT_WRITE)) {
        if (fault.mode == SHORT_WRITE)
            (void)real_of(f)->pMethods->xWrite(real_of(f), p, n / 2, at);
        return fault.mode == FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    }
    return real_of(f)->pMethods->xWrite(real_of(f), p, n, at);
}

static int f_truncate(sqlite3_file *f, sqlite3_int64 n)
{
    return real_of(f)->pMethods->xTruncate(real_of(f), n);
}

static int f_sync(sqlite3_file *f, int flags)
{
    return fails(fault.mode == FSYNC) ? SQLITE_IOERR_FSYNC : real_of(f)->pMethods->xSync(real_of(f), flags);
}

static int f_size(sqlite3_file *f, sqlite3_int64 *n)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), n);
}

static int f_lock(sqlite3_file *f, int l)
{
    return real_of(f)->pMethods->xLock(real_of(f), l);
}

static int f_unlock(sqlite3_file *f, int l)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), l);
}

static int f_reserved(sqlite3_file *f, int *ret)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}

static int f_control(sqlite3_file *f, int op, void *arg)
{
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int f_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int f_device(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static int f_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret)
{
    if (extend && fails(fault.mode == FULL || fault.mode == OPENING))
        return SQLITE_IOERR_SHMSIZE;
    return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, ret);
}

static int f_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
}

static void f_shm_barrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int f_shm_unmap(sqlite3_file *f, int del)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), del);
}

static const sqlite3_io_methods methods = {
    2,          f_close,       f_read,      f_write,   f_truncate, f_sync,   f_size,
    f_lock,     f_unlock,      f_reserved,  f_control, f_sector,   f_device, f_shm_map,
    f_shm_lock, f_shm_barrier, f_shm_unmap, NULL,      NULL};

static int v_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
    struct file *file = (struct file *)f;
    if (fails(fault.mode == OPENING))
        return SQLITE_CANTOPEN;
    file->base.pMethods = NULL;
    file->real = xcalloc(1, (size_t)real_vfs->szOsFile);
    int rc = real_vfs->xOpen(real_vfs, name, file->real, flags, ret_flags);
    if (rc != SQLITE_OK)
        free(file->real);
    else
        file->base.pMethods = &methods;
    return rc;
}

static void make_shim(void)
{
    real_vfs = sqlite3_vfs_find(NULL);
    shim = *real_vfs;
    shim.zName = "faults";
    shim.szOsFile = sizeof(struct file);
    shim.xOpen = v_open;
    shim.pNext = NULL;
    assert_int_equal(sqlite3_vfs_register(&shim, 0), SQLITE_OK);
}

static int f_setup(void **state)
{
    int rc = s_setup(state);
    struct sfix *f = *state;
    f->o.vfs = "faults";
    fault.at = fault.until = 0;
    return rc;
}

// A sweep that may fail: it is in the model when the store says that it was written. Returns the status.
static int try_sweep(struct sfix *f, int64_t at_ms)
{
    struct series_health before, after;
    size_t bytes = (size_t)f->num * COLS * sizeof(uint64_t);
    if (f->n == f->cap)
        f->sweep = xreallocarray(f->sweep, f->cap = f->cap ? f->cap * 2 : 64, sizeof(*f->sweep));
    struct msweep *m = &f->sweep[f->n];
    *m = (struct msweep){at_ms, f->num, f->run, xmalloc(bytes + 1), xcalloc(f->num + 1, sizeof(uint64_t))};
    memcpy(m->value, f->now, bytes);
    for (uint32_t i = 0; i < f->num; i++)
        m->have[i] = s_have(f, i);
    series_health(f->s, &before);
    series_sweep(f->s, at_ms, m->value, m->have, f->num);
    int rc = series_flush(f->s);
    series_health(f->s, &after);
    if (after.sweeps > before.sweeps) {
        f->n++;
        return rc;
    }
    assert_true(rc < 0);
    assert_int_equal(after.left_out, before.left_out + 1);
    assert_true(after.text[0]);
    free(m->value);
    free(m->have);
    f->run++; // no rise over what was left out
    return rc;
}

static void tell_ok(void *arg, const char *file, const char *text)
{
    if (strncmp(text, "ok", 2) != 0)
        fail_msg("%s: %s", file, text);
}

static void forget(struct sfix *f)
{
    series_close(f->s);
    f->s = NULL;
    char *cmd = xasprintf("rm -rf '%s'/*", f->dir);
    assert_int_equal(system(cmd), 0);
    free(cmd);
    for (size_t i = 0; i < f->n; i++) {
        free(f->sweep[i].value);
        free(f->sweep[i].have);
    }
    f->n = f->num = 0;
}

// 250 sweeps over minutes, hours and midnight; calls at.. fail, `length` of them.
static void run_with(struct sfix *f, enum mode mode, long at, long length)
{
    int64_t t = T0 / DAY * DAY + DAY - 3000000;
    s_open(f);
    s_series(f, 30);
    fault.mode = mode;
    fault.calls = fault.failed = 0;
    fault.at = at;
    fault.until = at + length;
    int rc = 0;
    for (int i = 0; i < 250; i++) {
        s_count(f);
        if (i == 100)
            s_series(f, 540);
        rc = try_sweep(f, t += 20000);
    }
    fault.until = 0; // healed, if it was not already
    for (int i = 0; i < 5; i++) {
        s_count(f);
        rc = try_sweep(f, t += 20000);
    }
    assert_int_equal(rc, 0);
    assert_int_equal(series_check(f->dir, tell_ok, NULL), 0);
    s_verify(f, UINT64_MAX, 0, INT64_MAX);
    verify_all(f);
}

static void whatever_fails_for_a_while(void **state)
{
    struct sfix *f = *state;
    long failed = 0;
    for (unsigned i = 0; i < 40; i++) {
        enum mode mode = (enum mode)(i % MODES);
        long most = mode == OPENING ? 30 : mode == FSYNC ? 12 : 2500;
        run_with(f, mode, (long)rng_below(&f->rng, (uint32_t)most),
                 1 + (long)rng_below(&f->rng, mode == FULL ? 300 : 20));
        failed += fault.failed;
        forget(f);
    }
    assert_true(failed > 100);
}

static void a_full_disk_is_told_and_heals(void **state)
{
    struct sfix *f = *state;
    struct series_health h;
    int64_t t = T0;
    s_open(f);
    s_series(f, 10);
    for (int i = 0; i < 10; i++) {
        s_count(f);
        assert_int_equal(try_sweep(f, t += 10000), 0);
    }
    fault.mode = FULL;
    fault.at = fault.calls;
    fault.until = INT32_MAX;
    for (int i = 0; i < 10; i++) {
        s_count(f);
        assert_int_equal(try_sweep(f, t += 10000), -ENOSPC);
    }
    series_health(f->s, &h);
    assert_int_equal(h.status, -ENOSPC);
    assert_non_null(strstr(h.text, "disk is full"));
    assert_int_equal(h.left_out, 10);
    // What there is can be read meanwhile.
    s_verify(f, UINT64_MAX, 0, INT64_MAX);
    fault.until = 0;
    s_count(f);
    assert_int_equal(try_sweep(f, t += 10000), 0);
    series_health(f->s, &h);
    assert_int_equal(h.status, 0);
    assert_string_equal(h.text, "");
    s_verify(f, UINT64_MAX, 0, INT64_MAX);
    // It can be opened on a full disk.
    series_close(f->s);
    f->run++;
    fault.until = INT32_MAX;
    fault.at = 0;
    s_open(f);
    assert_int_equal(series_num(f->s), 10);
    assert_int_equal(f->rep.set_aside, 0);
    s_count(f);
    assert_true(try_sweep(f, t += 10000) < 0); // the shim's refusal of shared memory has no errno
    fault.until = 0;
    s_count(f);
    assert_int_equal(try_sweep(f, t += 10000), 0);
    s_verify(f, UINT64_MAX, 0, INT64_MAX);
    verify_all(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whatever_fails_for_a_while, f_setup, s_teardown),
        cmocka_unit_test_setup_teardown(a_full_disk_is_told_and_heals, f_setup, s_teardown),
    };
    make_shim();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
