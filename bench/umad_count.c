// SPDX-License-Identifier: Apache-2.0
// Preloaded into a subnet manager under test: counts the MADs it hands to libibumad and writes the number to $UMAD_COUNT_FILE at the end.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long count;

int umad_send(int fd, int agent, void *umad, int length, int timeout_ms, int retries);

int umad_send(int fd, int agent, void *umad, int length, int timeout_ms, int retries)
{
    static int (*real)(int, int, void *, int, int, int);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "umad_send");
    __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    return real(fd, agent, umad, length, timeout_ms, retries);
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("UMAD_COUNT_FILE");
    FILE *f = path != NULL ? fopen(path, "w") : NULL;
    if (f == NULL)
        return;
    fprintf(f, "%lu\n", count);
    fclose(f);
}
