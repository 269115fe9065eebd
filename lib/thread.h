// SPDX-License-Identifier: Apache-2.0
// Threads beside the loop. Signals are for the loop's thread: others are made with all of them blocked.
#ifndef WEFT_LIB_THREAD_H
#define WEFT_LIB_THREAD_H

#include <pthread.h>

// name: at most 15 characters. 0 or negative errno.
int thread_start(pthread_t *ret, const char *name, void *(*fn)(void *arg), void *arg);

#endif
