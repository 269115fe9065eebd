// SPDX-License-Identifier: Apache-2.0
// Fabrics by name, for trying things without a file: "rail-<adapters>" (8 a host; rail-1024 is 128 hosts),
// "ft3-<radix>-<pods>" (three levels), "superpod-<su>" (the published DGX SuperPOD B200 counts),
// "subnet-40960" (40 pods of 32 leaves and 32 aggs, 32 planes of 32 cores). Node names and cabling are the
// usual ones (gpu-0001 mlx5_0, leaf-su01-rail0, spine-01, core-001); LIDs 0, all links up in Init, 4xHDR
// unless the name says otherwise.
#ifndef WEFT_FABRIC_TOPOGEN_H
#define WEFT_FABRIC_TOPOGEN_H

#include "fabric/fabric.h"

struct err;

// NULL and *e when the name is not one of these or its numbers make no fabric; *e lists the forms.
const struct fabric *topogen_make(const char *name, struct err *e);
// True when the name has the form of a generated fabric (whether or not its numbers are good).
bool topogen_is_name(const char *name);
const char *topogen_forms(void); // the forms of such names, as text
// topogen_make() for such a name, reader_load() otherwise: what `--simulate NAME|FILE` and `route compute
// FILE|NAME` mean.
struct findings;
const struct fabric *topogen_or_file(const char *name_or_path, struct findings *ret_findings, struct err *e);

#endif
