// SPDX-License-Identifier: Apache-2.0
// A private weftd that serves a saved fabric on a socket in a temporary folder, for commands that need no
// running one. It ends with us, however we end.
#ifndef WEFT_CLI_CHILD_H
#define WEFT_CLI_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

struct err;

struct child {
    pid_t pid;
    char dir[96], socket[108], log[108];
    bool made_dir;
};

// $WEFTD; else beside this program, in ../daemon, ../sbin; else in $PATH. 0 or -ENOENT.
int child_find(char *path, unsigned long size, struct err *e);
// Starts it and waits until it listens. Negative errno and *e with what it said.
int child_start(struct child *c, const char *fabric, double seconds, struct err *e);
void child_stop(struct child *c); // always; also when it was not started

#endif
