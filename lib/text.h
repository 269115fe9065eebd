// SPDX-License-Identifier: Apache-2.0
// Texts of a size: UTF-8, cut between characters.
#ifndef WEFT_LIB_TEXT_H
#define WEFT_LIB_TEXT_H

#include <stddef.h>

// Bytes of the UTF-8 character at s, of which so many are left (SIZE_MAX: it ends with a NUL); 0: it is none,
// that is too long for its value, a surrogate, beyond U+10FFFF or cut off (RFC 3629).
size_t text_char_len(const unsigned char *s, size_t left);
// How many bytes of s to keep, max at most, so that no half a character is left at the end. Where no
// character begins within the last four bytes it is no UTF-8, and is cut at max.
size_t text_cut(const char *s, size_t max);
// As snprintf(), but cut so; returns how many bytes there are, below size. size: 1 at least.
size_t text_print(char *buf, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
// Takes out what is no UTF-8, in place: bytes that stand alone, characters that are cut, too long, surrogates
// or beyond U+10FFFF. Returns the length.
size_t text_clean(char *s);

#endif
