// SPDX-License-Identifier: Apache-2.0
#include "fabric/topogen.h"

#include <errno.h>
#include <string.h>

#include "fabric/reader.h"
#include "lib/err.h"

const struct fabric *topogen_or_file(const char *name_or_path, struct findings *ret_findings, struct err *e)
{
    if (topogen_is_name(name_or_path))
        return topogen_make(name_or_path, e);
    const struct fabric *f = reader_load(name_or_path, ret_findings, e);
    if (f == NULL && e->code == -ENOENT && strchr(name_or_path, '/') == NULL)
        err_set(e, -ENOENT, name_or_path, "no such file, and no name of a generated fabric: %s",
                topogen_forms());
    return f;
}
