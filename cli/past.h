// SPDX-License-Identifier: Apache-2.0
#ifndef WEFT_CLI_PAST_H
#define WEFT_CLI_PAST_H

#include "cli/cli.h"

// The links of the way between two places (as the API takes them) over --since and --until.
int past_show(struct cli *c, const char *from, const char *to);

#endif
