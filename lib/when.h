// SPDX-License-Identifier: Apache-2.0
// Times and ages as people and programs write them.
#ifndef WEFT_LIB_WHEN_H
#define WEFT_LIB_WHEN_H

#include <stdint.h>

// RFC 3339 with Z or an offset: nanoseconds since 1970, or -EINVAL.
int when_parse(const char *s, int64_t *ret_wall_ns);
// "90s", "10m", "2h", "3d": seconds; or -EINVAL.
int when_parse_age(const char *s, int64_t *ret_seconds);

#endif
