#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

static void none(void **state)
{
}
int main(void)
{
    const struct CMUnitTest t[] = {cmocka_unit_test(none)};
    return cmocka_run_group_tests(t, NULL, NULL);
}
