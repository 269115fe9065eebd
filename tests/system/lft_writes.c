// SPDX-License-Identifier: Apache-2.0
// Preloaded into weftd on ibsim: appends each Set(LinearForwardingTable) that it sends, and each answer to
// one, to $LFT_WRITES, in their order. 264 bytes each: 0 sent or 1 received, the LID it went to (host order;
// 0 where a directed route leads), padding, the datagram.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct entry {
    uint8_t received, pad;
    uint16_t lid;
    uint32_t unused;
    uint8_t mad[256];
};

int umad_send(int fd, int agent, void *umad, int length, int timeout_ms, int retries);
int umad_recv(int fd, void *umad, int *length, int timeout_ms);

static int out = -1;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("LFT_WRITES");
    if (path != NULL)
        out = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
}

static void note(const uint8_t *umad, int received)
{
    static void *(*get_mad)(const void *);
    static ssize_t (*real_write)(int, const void *, size_t);
    struct entry e = {.received = (uint8_t)received};

    if (get_mad == NULL) {
        *(void **)&get_mad = dlsym(RTLD_DEFAULT, "umad_get_mad");
        *(void **)&real_write = dlsym(RTLD_NEXT, "write");
    }
    const uint8_t *m = get_mad(umad);
    int smp = m[1] == 0x81 || m[1] == 0x01, lft = m[16] == 0 && m[17] == 0x19;
    if (out < 0 || !smp || !lft || m[3] != (received ? 0x81 : 0x02))
        return;
    e.lid = m[1] == 0x01 ? (uint16_t)(umad[28] << 8 | umad[29]) : 0;
    memcpy(e.mad, m, sizeof(e.mad));
    if (real_write(out, &e, sizeof(e)) != sizeof(e))
        abort();
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
