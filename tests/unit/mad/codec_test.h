// SPDX-License-Identifier: Apache-2.0
//
// What the codec tests share: a repeatable random source and hexadecimal text to bytes.
#ifndef WEFT_TESTS_CODEC_TEST_H
#define WEFT_TESTS_CODEC_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

// splitmix64
static inline uint64_t test_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static inline void test_fill(uint64_t *state, void *buf, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)buf)[i] = (uint8_t)test_random(state);
}

// Blanks and newlines between digits are skipped; bytes beyond the text are 0.
static inline void test_hex(const char *text, uint8_t *buf, size_t size)
{
    memset(buf, 0, size);
    size_t n = 0;
    for (; *text; text++) {
        const char *digits = "0123456789abcdef", *d = strchr(digits, *text);
        if (!d)
            continue;
        assert_true(n / 2 < size);
        buf[n / 2] = (uint8_t)(buf[n / 2] << 4 | (d - digits));
        n++;
    }
    assert_int_equal(n % 2, 0);
}

#endif
