// SPDX-License-Identifier: Apache-2.0
// What people call a port.
#include "tests/unit/lib/test.h"

#include "lib/called.h"

static const struct called adapter = {0x0008f10500050060, "gpu-0012 mlx5_3", 1, 3};
static const struct called leaf = {0x0008f10500200001, "leaf-su01-rail3", 12, 3};
static const struct called nobody = {0x0008f10500200002, "", -1, -1};

static void test_hits(void **state)
{
    static const struct {
        const struct called *p;
        const char *word;
    } t[] = {{&adapter, "gpu-0012 mlx5_3"},    {&adapter, "gpu-0012"},    {&adapter, "gpu-0012:3"},
             {&adapter, "gpu-0012:3/1"},       {&adapter, "gpu-*"},       {&adapter, "gpu-0012/1"},
             {&adapter, "gpu-0012[1]"},        {&leaf, "leaf-su01-*"},    {&leaf, "leaf-su01-rail3/12"},
             {&leaf, "leaf-su01-rail3[12]"},   {&leaf, "leaf-su01-*/12"}, {&leaf, "0x0008f10500200001"},
             {&leaf, "0x0008f10500200001/12"}, {&leaf, "0x*200001"},      {&nobody, "0x0008f10500200002"}};
    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
        if (!called_port(t[i].p, t[i].word))
            fail_msg("%s", t[i].word);
}

static void test_misses(void **state)
{
    static const struct {
        const struct called *p;
        const char *word;
    } t[] = {{&adapter, "gpu-001"},
             {&adapter, "gpu"},
             {&adapter, "gpu-0012:4"},
             {&adapter, "gpu-0012:3/2"},
             {&adapter, "gpu-0012:"},
             {&adapter, ":3"},
             {&adapter, ""},
             {&leaf, "leaf"},
             {&leaf, "leaf-su01"},
             {&leaf, "leaf-su01-rail3/1"},
             {&leaf, "leaf-su01-rail3/"},
             {&leaf, "leaf-su01-rail3[12"},
             {&leaf, "leaf-su01-rail3:3"},
             {&leaf, "0x0008f10500200002"},
             {&nobody, "*"},
             {&nobody, "x:255"},
             {&leaf, "leaf-su01-rail3/99999999999999999999"}};
    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
        if (called_port(t[i].p, t[i].word))
            fail_msg("%s", t[i].word);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hits), cmocka_unit_test(test_misses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
