// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lib/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/xalloc.h"

static char *dir;

static int setup(void **state)
{
    const char *tmp = getenv("TMPDIR");
    dir = xasprintf("%s/weft-buf-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    rmdir(dir);
    free(dir);
    return 0;
}

static void grows_and_stays_a_string(void **state)
{
    struct buf b = {0};

    for (int i = 0; i < 1000; i++) {
        buf_putc(&b, (char)('a' + i % 26));
        assert_int_equal(b.len, i + 1);
        assert_int_equal(b.data[b.len], 0);
    }
    buf_clear(&b);
    assert_string_equal(b.data, "");
    buf_puts(&b, "x");
    buf_printf(&b, "%d-%s", 42, "y");
    assert_string_equal(b.data, "x42-y");
    buf_add(&b, "\0z", 2);
    assert_int_equal(b.len, 7);
    buf_add(&b, NULL, 0);
    buf_done(&b);
    assert_null(b.data);
}

static void printf_of_any_length(void **state)
{
    char text[1000];

    for (int n = 0; n < 999; n++) {
        struct buf b = {0};
        memset(text, 'q', (size_t)n);
        text[n] = '\0';
        buf_printf(&b, "%s", text);
        assert_int_equal(b.len, n);
        assert_string_equal(b.data, text);
        buf_done(&b);
    }
}

static void take(void **state)
{
    struct buf b = {0};
    char *s = buf_take(&b);
    assert_string_equal(s, "");
    free(s);
    buf_puts(&b, "abc");
    s = buf_take(&b);
    assert_string_equal(s, "abc");
    assert_null(b.data);
    free(s);
}

static void file_round_trip_and_limit(void **state)
{
    char *path = xasprintf("%s/f", dir);
    struct buf b = {0}, r = {0};
    struct stat st;

    for (int i = 0; i < 200000; i++)
        buf_putc(&b, (char)i);
    assert_int_equal(buf_write_file(&b, path, 0640), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);

    assert_int_equal(buf_read_file(&r, path, b.len), 0);
    assert_int_equal(r.len, b.len);
    assert_memory_equal(r.data, b.data, b.len);
    buf_clear(&r);
    assert_int_equal(buf_read_file(&r, path, b.len - 1), -EFBIG);
    assert_int_equal(r.data[r.len], 0);
    buf_clear(&r);
    assert_int_equal(buf_read_file(&r, path, SIZE_MAX), 0);
    assert_int_equal(r.len, b.len);

    // Over an existing file; nothing temporary stays behind.
    buf_clear(&b);
    buf_puts(&b, "short");
    assert_int_equal(buf_write_file(&b, path, 0600), 0);
    buf_clear(&r);
    assert_int_equal(buf_read_file(&r, path, 100), 0);
    assert_string_equal(r.data, "short");
    int n = 0;
    DIR *d = opendir(dir);
    while (readdir(d))
        n++;
    closedir(d);
    assert_int_equal(n, 3); // ., .., f

    unlink(path);
    assert_int_equal(buf_read_file(&r, path, 100), -ENOENT);
    assert_int_equal(buf_read_file(&r, dir, 100), -EISDIR);
    free(path);
    path = xasprintf("%s/none/f", dir);
    assert_int_equal(buf_write_file(&b, path, 0600), -ENOENT);
    free(path);
    buf_done(&b);
    buf_done(&r);
}

static void empty_file(void **state)
{
    char *path = xasprintf("%s/e", dir);
    struct buf b = {0}, r = {0};

    assert_int_equal(buf_write_file(&b, path, 0600), 0);
    assert_int_equal(buf_read_file(&r, path, 0), 0);
    assert_int_equal(r.len, 0);
    assert_string_equal(r.data, "");
    unlink(path);
    free(path);
    buf_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_and_stays_a_string),
        cmocka_unit_test(printf_of_any_length),
        cmocka_unit_test(take),
        cmocka_unit_test(file_round_trip_and_limit),
        cmocka_unit_test(empty_file),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
