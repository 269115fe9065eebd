// SPDX-License-Identifier: Apache-2.0
// Preloaded into weftd on ibsim. $ADVERSITY names a file of 32 bytes that the test maps too (host order):
//   0 i64 seconds that CLOCK_REALTIME is ahead of what it is
//   8 u32 when not 0: the Set(LinearForwardingTable) after which, counted down from here, weftd is killed
//  12 u32 Sets(LinearForwardingTable) sent
//  16 i64 CLOCK_MONOTONIC in ns of the last of them
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct control {
    int64_t ahead;
    uint32_t kill_after, sets;
    int64_t last_ns, unused;
};

int umad_send(int fd, int agent, void *umad, int length, int timeout_ms, int retries);

static volatile struct control *control;
static int (*real_clock)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("ADVERSITY");
    int fd = path != NULL ? open(path, O_RDWR) : -1;
    if (fd < 0)
        return;
    void *p = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p != MAP_FAILED)
        control = p;
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
    if (real_clock == NULL)
        *(void **)&real_clock = dlsym(RTLD_NEXT, "clock_gettime");
    int r = real_clock(id, ret);
    if (r == 0 && control != NULL && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        ret->tv_sec += control->ahead;
    return r;
}

time_t time(time_t *ret)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (ret != NULL)
        *ret = t.tv_sec;
    return t.tv_sec;
}

// libumad2sim is told the time as it is: it makes of it the end of a wait by the kernel's clock, which is not
// set here.
int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec t;
    Dl_info caller;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    if (control != NULL && dladdr(__builtin_return_address(0), &caller) != 0 &&
        strstr(caller.dli_fname, "umad2sim") != NULL)
        t.tv_sec -= control->ahead;
    *ret = (struct timeval){.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
    return 0;
}

int umad_send(int fd, int agent, void *umad, int length, int timeout_ms, int retries)
{
    static int (*real)(int, int, void *, int, int, int);
    static void *(*get_mad)(const void *);
    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "umad_send");
        *(void **)&get_mad = dlsym(RTLD_DEFAULT, "umad_get_mad");
    }
    const uint8_t *m = get_mad(umad);
    int set = (m[1] == 0x81 || m[1] == 0x01) && m[3] == 0x02 && m[16] == 0 && m[17] == 0x19;
    int r = real(fd, agent, umad, length, timeout_ms, retries);
    if (control == NULL || !set || r != 0)
        return r;
    struct timespec t;
    real_clock(CLOCK_MONOTONIC, &t);
    control->sets++;
    control->last_ns = t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
    if (control->kill_after != 0 && --control->kill_after == 0)
        kill(getpid(), SIGKILL);
    return r;
}
