// SPDX-License-Identifier: Apache-2.0
#include "lib/mono.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t clock_ns(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * MONO_S + ts.tv_nsec;
}

mono_t mono_now(void)
{
    return (mono_t){clock_ns(CLOCK_MONOTONIC)};
}

int64_t wall_now_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

int64_t cpu_now_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t thread_cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t peak_rss_bytes(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    unsigned long long kib = 0;
    char line[256];

    if (!f)
        return 0;
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, "VmHWM: %llu kB", &kib) == 1)
            break;
    fclose(f);
    return kib * 1024;
}

const char *wall_format(int64_t wall_ns, char *buf, unsigned long size)
{
    int64_t s = wall_ns / MONO_S, ns = wall_ns % MONO_S;
    if (ns < 0) { // before 1970
        s--;
        ns += MONO_S;
    }
    time_t t = (time_t)s;
    struct tm tm;
    gmtime_r(&t, &tm);
    size_t n = strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(buf + n, size - n, ".%03dZ", (int)(ns / MONO_MS));
    return buf;
}
