// SPDX-License-Identifier: Apache-2.0
#include "fabric/builder_priv.h"
struct adapter_name adapter_name_parse(const char *desc)
{
    (void)desc;
    return (struct adapter_name){0, ADAPTER_NO_INDEX};
}
void roles_hosts(struct draft *d)
{
    d->f.num_hosts = 0;
}
void roles_rails(struct draft *d)
{
    d->f.num_rails = d->f.num_sus = 0;
}
