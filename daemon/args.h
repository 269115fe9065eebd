// SPDX-License-Identifier: Apache-2.0
// weftd's command line.
#ifndef WEFT_DAEMON_ARGS_H
#define WEFT_DAEMON_ARGS_H

#include <stdbool.h>

#define ARGS_SETS 64

struct args {
    const char *config, *state, *simulate, *port, *offline, *dump_lft, *dump_subnet, *print_fabric, *socket,
        *http;
    bool once, check, print;
    const char *set[ARGS_SETS];
    unsigned num_set;
};

// Fills *a. True when the program has to end at once (help, version, a wrong word), with its exit status.
bool args_parse(int argc, char **argv, struct args *a, int *ret_status);

#endif
