// SPDX-License-Identifier: Apache-2.0
// Preloaded into a subnet manager under test: writes down, with CLOCK_MONOTONIC, every MAD that it hands to
// libibumad and every one that it takes from there.
//
// $UMAD_TIMES_FILE is made and mapped: a head of 64 bytes with the number of records begun (u64, host order),
// then $UMAD_TIMES_MAX records (default 2^22) used as a ring. A reader in another process sees a record as
// complete when its time is not 0 and its number (`seq`) is the one expected.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define HEAD 64

struct record {   // 40 bytes; bench/failoverlib.py reads it
    uint64_t seq; // number + 1
    uint64_t ns;
    uint64_t tid;      // as on the wire
    uint32_t modifier; // host order, as the next two
    uint16_t attr;
    uint16_t extra; // trap number of a notice; PortState of a Set(PortInfo)
    uint8_t received, class, method, status;
    uint32_t unused;
};

static uint8_t *base;
static uint64_t room;

int umad_send(int fd, int agent, void *umad, int length, int timeout_ms, int retries);
int umad_recv(int fd, void *umad, int *length, int timeout_ms);

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("UMAD_TIMES_FILE"), *max = getenv("UMAD_TIMES_MAX");
    if (path == NULL)
        return;
    room = max != NULL ? strtoull(max, NULL, 10) : 1u << 22;
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || room == 0 || ftruncate(fd, (off_t)(HEAD + room * sizeof(struct record))) < 0) {
        perror(path);
        exit(3);
    }
    base = mmap(NULL, HEAD + room * sizeof(struct record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        perror(path);
        exit(3);
    }
    close(fd);
}

static uint16_t be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static void note(const void *umad, int received)
{
    static void *(*get_mad)(const void *);
    uint32_t status;
    struct timespec t;

    if (base == NULL)
        return;
    clock_gettime(CLOCK_MONOTONIC, &t);
    if (get_mad == NULL)
        *(void **)&get_mad = dlsym(RTLD_DEFAULT, "umad_get_mad"); // its head is shorter on old kernels
    const uint8_t *m = get_mad(umad);
    memcpy(&status, (const uint8_t *)umad + 4, sizeof(status));
    uint64_t n = __atomic_fetch_add((uint64_t *)base, 1, __ATOMIC_RELAXED);
    struct record *r = (struct record *)(base + HEAD) + n % room;
    r->ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    memcpy(&r->tid, m + 8, 8);
    r->attr = be16(m + 16);
    r->modifier = (uint32_t)be16(m + 20) << 16 | be16(m + 22);
    r->class = m[1];
    r->method = m[3];
    r->received = (uint8_t)received;
    r->status = (uint8_t)(received ? status : 0);
    int smp = m[1] == 0x81 || m[1] == 0x01;
    r->extra = smp && r->attr == 0x15 ? m[64 + 32] & 15 : smp && r->attr == 2 ? be16(m + 64 + 4) : 0;
    __atomic_store_n(&r->seq, n + 1, __ATOMIC_RELEASE);
}

int umad_send(int fd, int agent, void *umad, int length, int timeout_ms, int retries)
{
    static int (*real)(int, int, void *, int, int, int);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "umad_send");
    note(umad, 0);
    return real(fd, agent, umad, length, timeout_ms, retries);
}

int umad_recv(int fd, void *umad, int *length, int timeout_ms)
{
    static int (*real)(int, void *, int *, int);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "umad_recv");
    int r = real(fd, umad, length, timeout_ms);
    if (r >= 0)
        note(umad, 1);
    return r;
}
