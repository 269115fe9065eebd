// SPDX-License-Identifier: Apache-2.0
#include "lib/thread.h"

#include <signal.h>

int thread_start(pthread_t *ret, const char *name, void *(*fn)(void *arg), void *arg)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(ret, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc == 0)
        pthread_setname_np(*ret, name);
    return -rc;
}
