// SPDX-License-Identifier: Apache-2.0
// Reading and writing bytes in network order with a sticky error: do it all, then ask once whether it fitted.
// Reads after an error give zeros.
#ifndef WEFT_LIB_CURSOR_H
#define WEFT_LIB_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor {
    const uint8_t *p, *end;
    bool bad;
};

static inline void cursor_init(struct cursor *c, const void *p, size_t n)
{
    c->p = p;
    c->end = c->p + n;
    c->bad = false;
}
size_t cursor_left(const struct cursor *c);
uint8_t cursor_u8(struct cursor *c);
uint16_t cursor_u16(struct cursor *c);
uint32_t cursor_u32(struct cursor *c);
uint64_t cursor_u64(struct cursor *c);
void cursor_skip(struct cursor *c, size_t n);
const uint8_t *cursor_bytes(struct cursor *c, size_t n); // n bytes within the input, or NULL and bad

struct wcursor {
    uint8_t *p, *end;
    bool bad;
};

static inline void wcursor_init(struct wcursor *c, void *p, size_t n)
{
    c->p = p;
    c->end = c->p + n;
    c->bad = false;
}
void wcursor_u8(struct wcursor *c, uint8_t v);
void wcursor_u16(struct wcursor *c, uint16_t v);
void wcursor_u32(struct wcursor *c, uint32_t v);
void wcursor_u64(struct wcursor *c, uint64_t v);
void wcursor_bytes(struct wcursor *c, const void *p, size_t n);

#endif
