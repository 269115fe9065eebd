// SPDX-License-Identifier: Apache-2.0
#include "daemon/dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fabric/builder.h"
#include "fabric/topogen.h"
#include "fabric/writer.h"
#include "lib/err.h"

static int dump(const char *path, const struct fabric *f, const struct fabric_tables *t,
                int (*write)(const struct fabric *, const struct fabric_tables *, FILE *), struct err *e)
{
    FILE *out = fopen(path, "w");
    if (out == NULL)
        return err_set(e, -errno, path, "cannot be written (%s)", strerror(errno));
    int rc = write(f, t, out);
    if (fclose(out) != 0 || rc != 0)
        return err_set(e, -EIO, path, "could not be written in full");
    return 0;
}

// What ibdmchk wants to see of multicast: no tables.
static int dump_mcfdbs(const struct fabric *f, const struct fabric_tables *t, FILE *out)
{
    (void)f;
    (void)t;
    (void)out;
    return 0;
}

static int dump_lst(const struct fabric *f, const struct fabric_tables *t, FILE *out)
{
    (void)t;
    return write_lst(f, out);
}

static int dump_topo(const struct fabric *f, const struct fabric_tables *t, FILE *out)
{
    (void)t;
    return write_ibnetdiscover(f, out);
}

int dump_all(const struct fabric *f, const struct fabric_tables *t, const char *lft_path, const char *dir,
             struct err *e)
{
    static const struct {
        const char *name;
        int (*write)(const struct fabric *, const struct fabric_tables *, FILE *);
    } file[] = {{"weft.lft", write_lft_dump},
                {"weft.fdbs", write_fdbs},
                {"weft.mcfdbs", dump_mcfdbs},
                {"weft.lst", dump_lst},
                {"weft.topo", dump_topo}};
    char path[4096];
    int rc = 0;

    if (lft_path != NULL)
        rc = dump(lft_path, f, t, write_lft_dump, e);
    if (rc == 0 && dir != NULL && mkdir(dir, 0777) != 0 && errno != EEXIST)
        rc = err_set(e, -errno, dir, "cannot be made (%s)", strerror(errno));
    for (size_t i = 0; rc == 0 && dir != NULL && i < sizeof(file) / sizeof(file[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, file[i].name);
        rc = dump(path, f, t, file[i].write, e);
    }
    return rc;
}

int dump_print(const char *form, const char *name_or_path, struct err *e)
{
    static const struct {
        const char *form;
        int (*write)(const struct fabric *, FILE *);
    } writer[] = {{"ibnetdiscover", write_ibnetdiscover}, {"ibsim", write_ibsim_net}, {"lst", write_lst}};
    struct findings fs = {0};
    size_t i;

    for (i = 0; i < sizeof(writer) / sizeof(writer[0]) && strcmp(form, writer[i].form) != 0; i++)
        ;
    if (i == sizeof(writer) / sizeof(writer[0]))
        return err_set(e, -EINVAL, "--print-fabric",
                       "\"%s\" is not a form; there are ibnetdiscover, ibsim, lst", form);
    if (name_or_path == NULL)
        return err_set(e, -EINVAL, "--print-fabric", "needs --offline NAME|FILE: which fabric");
    const struct fabric *f = topogen_or_file(name_or_path, &fs, e);
    findings_done(&fs);
    if (f == NULL)
        return e->code ? e->code : -EIO;
    int rc = writer[i].write(f, stdout);
    fabric_unref(f);
    return rc == 0 && fflush(stdout) == 0 ? 0 : err_set(e, -EIO, "stdout", "could not be written in full");
}
