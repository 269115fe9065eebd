// SPDX-License-Identifier: Apache-2.0
// Monotonic time as a type of its own, so that it cannot mix with wall time or with a count of milliseconds.
// Below the services time comes in as an argument; only the loop and the log read clocks.
#ifndef WEFT_LIB_MONO_H
#define WEFT_LIB_MONO_H

#include <stdint.h>

typedef struct {
    int64_t ns; // since an arbitrary start; in virtual time since the loop was made
} mono_t;

#define MONO_US 1000LL
#define MONO_MS 1000000LL
#define MONO_S 1000000000LL

static inline mono_t mono_add(mono_t t, int64_t ns)
{
    return (mono_t){t.ns + ns};
}
static inline int64_t mono_sub(mono_t a, mono_t b)
{
    return a.ns - b.ns;
}
static inline double mono_seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

mono_t mono_now(void);         // CLOCK_MONOTONIC
int64_t wall_now_ns(void);     // CLOCK_REALTIME, ns since 1970
int64_t cpu_now_ns(void);      // CPU time of this process
int64_t thread_cpu_ns(void);   // CPU time of this thread
uint64_t peak_rss_bytes(void); // VmHWM
// RFC 3339 UTC with milliseconds, "2026-01-31T10:20:30.123Z"; buf of at least 32 bytes; returns buf.
const char *wall_format(int64_t wall_ns, char *buf, unsigned long size);

#endif
