// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lib/test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/arena.h"

static void zeroed_aligned_and_apart(void **state)
{
    struct arena *a = arena_new();
    unsigned char *p[2000];

    for (unsigned i = 0; i < 2000; i++) {
        p[i] = arena_alloc(a, i);
        assert_int_equal((uintptr_t)p[i] % 16, 0);
        for (unsigned k = 0; k < i; k++)
            assert_int_equal(p[i][k], 0);
        memset(p[i], (int)(i & 0xff), i);
    }
    for (unsigned i = 0; i < 2000; i++)
        for (unsigned k = 0; k < i; k++)
            assert_int_equal(p[i][k], i & 0xff);
    arena_free(a);
}

static void large_gets_its_own_mapping(void **state)
{
    struct arena *a = arena_new();
    char *small = arena_alloc(a, 16);
    size_t before = arena_bytes(a);
    char *large = arena_alloc(a, 5u << 20);

    assert_true(arena_bytes(a) - before >= 5u << 20);
    assert_true(arena_bytes(a) - before < (5u << 20) + 3 * 4096);
    large[0] = large[(5u << 20) - 1] = 1;
    // The current chunk is still the small one.
    before = arena_bytes(a);
    char *next = arena_alloc(a, 16);
    assert_int_equal(arena_bytes(a), before);
    assert_true(next > small && next - small < 4096);
    arena_free(a);
}

static void just_below_a_megabyte(void **state)
{
    struct arena *a = arena_new();
    char *p = arena_alloc(a, (1u << 20) - 1); // larger than the first chunks
    memset(p, 7, (1u << 20) - 1);
    arena_free(a);
}

static void copies(void **state)
{
    struct arena *a = arena_new();

    assert_string_equal(arena_strdup(a, "weft"), "weft");
    assert_string_equal(arena_strdup(a, ""), "");
    assert_string_equal(arena_strndup(a, "weft and warp", 4), "weft");
    assert_string_equal(arena_strndup(a, "weft", 40), "weft");
    assert_memory_equal(arena_memdup(a, "a\0b", 3), "a\0b", 3);
    assert_non_null(arena_memdup(a, NULL, 0));
    assert_non_null(arena_array(a, 0, 8));
    arena_free(a);
    arena_free(NULL);
}

// What fn does must end the process: with signo, or, under a sanitizer that catches it, in any other way than
// well.
static void assert_dies(void (*fn)(void), int signo)
{
    pid_t pid = fork();
    if (!pid) {
        // The sanitizer's report, or the message, is not for this test's output.
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        signal(SIGSEGV, SIG_DFL);
        fn();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == signo : WEXITSTATUS(status) != 0);
}

static void write_sealed(void)
{
    struct arena *a = arena_new();
    volatile char *p = arena_alloc(a, 100);
    arena_seal(a, 1);
    p[50] = 1;
}

static void alloc_sealed(void)
{
    struct arena *a = arena_new();
    arena_seal(a, 0);
    memset(arena_alloc(a, 1), 1, 1);
}

static void overflow_array(void)
{
    struct arena *a = arena_new();
    volatile size_t n = SIZE_MAX / 4;
    memset(arena_array(a, n, 16), 1, 1);
}

static void sealed(void **state)
{
    struct arena *a = arena_new();
    char *p = arena_alloc(a, 100), *q = arena_alloc(a, 2u << 20);

    p[0] = 'a';
    q[0] = 'b';
    arena_seal(a, 1);
    assert_int_equal(p[0] + q[0], 'a' + 'b');
    arena_free(a);
    assert_dies(write_sealed, SIGSEGV);
    assert_dies(alloc_sealed, SIGABRT);
    assert_dies(overflow_array, SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeroed_aligned_and_apart),
        cmocka_unit_test(large_gets_its_own_mapping),
        cmocka_unit_test(just_below_a_megabyte),
        cmocka_unit_test(copies),
        cmocka_unit_test(sealed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
