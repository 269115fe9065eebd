// SPDX-License-Identifier: Apache-2.0
// The sink under systemd: its own process, as the choice is made once.
#include "tests/unit/lib/test.h"

#include <unistd.h>

#include "lib/log.h"

static void priorities(void **state)
{
    static const char expect[] = "<3>a n=1\n<4>b n=2\n<5>c n=3\n<5>d peer=9 n=4\n<7>e n=5\n";
    char got[500] = "";
    int p[2];

    assert_int_equal(pipe(p), 0);
    int saved = dup(STDERR_FILENO);
    dup2(p[1], STDERR_FILENO);
    setenv("JOURNAL_STREAM", "1:2", 1);
    log_set_level(LOG_LEVEL_DEBUG);
    log_error("a", "n=%d", 1);
    log_warning("b", "n=%d", 2);
    log_notice("c", "n=%d", 3);
    log_remote(9, "d", "n=%d", 4);
    log_debug("e", "n=%d", 5);
    dup2(saved, STDERR_FILENO);
    ssize_t n = read(p[0], got, sizeof(got) - 1);
    assert_int_equal(n, sizeof(expect) - 1);
    assert_string_equal(got, expect);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(priorities)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
