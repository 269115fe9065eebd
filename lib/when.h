// SPDX-License-Identifier: Apache-2.0
// Times and ages as people and programs write them.
#ifndef WEFT_LIB_WHEN_H
#define WEFT_LIB_WHEN_H

#include <stdbool.h>
#include <stdint.h>

// RFC 3339 with Z or an offset: nanoseconds since 1970, or -EINVAL: also where there is no such day.
int when_parse(const char *s, int64_t *ret_wall_ns);
#define WHEN_AGE_MOST (36500ll * 86400) // seconds; with it now and ago are within what int64_t ns can say
// The same, and what people write and weft shows: "2026-01-31 10:20:30 UTC", "2026-01-31 10:20",
// "2026-01-31"; behind it Z, UTC, GMT, an offset ("+02:00") or the local zone's name, else it is local.
// "10:20" and "10:20:30", with a zone or without: the last such time of a day before now, or the next one
// (ahead), in that zone. -EINVAL.
int when_read(const char *s, int64_t now_wall_ns, bool ahead, int64_t *ret_wall_ns);
// "90s", "10m", "2h", "3d": seconds; or -EINVAL, also when it is more than WHEN_AGE_MOST.
int when_parse_age(const char *s, int64_t *ret_seconds);
// So many seconds later; -ERANGE: after 2262, which nanoseconds cannot say.
int when_after(int64_t wall_ns, int64_t seconds, int64_t *ret_wall_ns);

#endif
