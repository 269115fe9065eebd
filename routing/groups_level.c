// SPDX-License-Identifier: Apache-2.0
// Groups for tables without an order of switches: none so far.
#include <stdio.h>

#include "routing/groups_priv.h"

void glevel_fill(struct gmake *m, struct gtask *task, uint32_t tasks)
{
    (void)task;
    (void)tasks;
    snprintf(m->why, sizeof(m->why), "the tables keep to no order of switches: static");
}
