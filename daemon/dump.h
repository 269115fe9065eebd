// SPDX-License-Identifier: Apache-2.0
// Fabrics and tables in the forms of other programs, for --dump-lft, --dump-subnet and --print-fabric.
#ifndef WEFT_DAEMON_DUMP_H
#define WEFT_DAEMON_DUMP_H

#include "fabric/tables.h"

struct err;

// lft_path: OpenSM's table dump. dir (made if missing): weft.lft, weft.fdbs, weft.mcfdbs, weft.lst,
// weft.topo. Either may be NULL. 0 or negative errno with *e.
int dump_all(const struct fabric *f, const struct fabric_tables *t, const char *lft_path, const char *dir,
             struct err *e);
// Prints a saved or generated fabric on stdout as "ibnetdiscover", "ibsim" or "lst". -EINVAL for another
// form.
int dump_print(const char *form, const char *name_or_path, struct err *e);

#endif
