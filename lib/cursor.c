// SPDX-License-Identifier: Apache-2.0
#include "lib/cursor.h"

#include <string.h>

size_t cursor_left(const struct cursor *c)
{
    return c->bad ? 0 : (size_t)(c->end - c->p);
}

const uint8_t *cursor_bytes(struct cursor *c, size_t n)
{
    if (c->bad || n > (size_t)(c->end - c->p)) {
        c->bad = true;
        return NULL;
    }
    const uint8_t *p = c->p;
    c->p += n;
    return p;
}

void cursor_skip(struct cursor *c, size_t n)
{
    (void)cursor_bytes(c, n);
}

static uint64_t read_be(struct cursor *c, unsigned bytes)
{
    const uint8_t *p = cursor_bytes(c, bytes);
    uint64_t v = 0;

    for (unsigned i = 0; p && i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

uint8_t cursor_u8(struct cursor *c)
{
    return (uint8_t)read_be(c, 1);
}

uint16_t cursor_u16(struct cursor *c)
{
    return (uint16_t)read_be(c, 2);
}

uint32_t cursor_u32(struct cursor *c)
{
    return (uint32_t)read_be(c, 4);
}

uint64_t cursor_u64(struct cursor *c)
{
    return read_be(c, 8);
}

void wcursor_bytes(struct wcursor *c, const void *p, size_t n)
{
    if (c->bad || n > (size_t)(c->end - c->p)) {
        c->bad = true;
        return;
    }
    if (n)
        memcpy(c->p, p, n);
    c->p += n;
}

static void write_be(struct wcursor *c, uint64_t v, unsigned bytes)
{
    uint8_t b[8];

    for (unsigned i = 0; i < bytes; i++)
        b[i] = (uint8_t)(v >> (8 * (bytes - 1 - i)));
    wcursor_bytes(c, b, bytes);
}

void wcursor_u8(struct wcursor *c, uint8_t v)
{
    write_be(c, v, 1);
}

void wcursor_u16(struct wcursor *c, uint16_t v)
{
    write_be(c, v, 2);
}

void wcursor_u32(struct wcursor *c, uint32_t v)
{
    write_be(c, v, 4);
}

void wcursor_u64(struct wcursor *c, uint64_t v)
{
    write_be(c, v, 8);
}
