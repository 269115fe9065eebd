// SPDX-License-Identifier: Apache-2.0
// Text for terminals and files. Everything that weftd reports may hold what a device or a file said, so it
// passes through text_escape() before it is shown. Columns are those of wcwidth(): in a locale that is not
// UTF-8 only ASCII is shown and a byte is a column.
#ifndef WEFT_CLI_TEXT_H
#define WEFT_CLI_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/buf.h"

// Adds s with control characters, broken UTF-8, invisible and direction-changing characters as \n, \xNN or
// \u{N}; without utf8 every character beyond ASCII too.
void text_escape(struct buf *b, const char *s, bool utf8);
unsigned text_width(const char *s); // columns of an escaped string
// Adds an escaped s, cut to width columns (its end becomes "…" or "~") and padded to it: on the left when
// right is set.
void text_fit(struct buf *b, const char *s, unsigned width, bool right, bool utf8);

void text_count(struct buf *b, long long n); // 1,024
void text_figure(struct buf *b, double x);   // 0.9983, 18,930
void text_share(struct buf *b, double x);    // 12.3 %, 0.04 %
void text_rate(struct buf *b, double bytes); // of bytes a second, as rates of links are told: 9.84 Gb/s
void text_bytes(struct buf *b, double x, const char *per); // 1.23 GB/s, in powers of 1000
void text_age(struct buf *b, int64_t seconds);             // 12 s, 3 min, 2 h 10 min, 4 d
// A time as the API writes it (RFC 3339 UTC) in local time with its zone; adds s itself when it is none.
void text_time(struct buf *b, const char *s, bool millis);
int text_parse_count(const char *s, long long min, long long max, long long *ret); // or -EINVAL

#endif
