// SPDX-License-Identifier: Apache-2.0
// Writes fabrics and tables in the forms other programs read: OpenSM's LFT dump (opensm-lfts.dump), .fdbs and
// .lst for ibdmchk, ibnetdiscover text, ibsim's .net.
#ifndef WEFT_FABRIC_WRITER_H
#define WEFT_FABRIC_WRITER_H

#include <stdio.h>

#include "fabric/tables.h"

// 0 or -EIO. Descriptions are escaped or blanked where the form has no way to carry them.
int write_lft_dump(const struct fabric *f, const struct fabric_tables *t, FILE *out);
int write_fdbs(const struct fabric *f, const struct fabric_tables *t, FILE *out);
int write_lst(const struct fabric *f, FILE *out);
int write_ibnetdiscover(const struct fabric *f, FILE *out);
int write_ibsim_net(const struct fabric *f, FILE *out);

#endif
