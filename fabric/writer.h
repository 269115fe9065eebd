// SPDX-License-Identifier: Apache-2.0
// Writes fabrics and tables in the forms other programs read: OpenSM's LFT dump (opensm-lfts.dump), .fdbs and
// .lst for ibdmchk, ibnetdiscover text, ibsim's .net, Slurm's topology.conf and topology.yaml, JSON.
#ifndef WEFT_FABRIC_WRITER_H
#define WEFT_FABRIC_WRITER_H

#include <stdio.h>

#include "fabric/tables.h"

struct err;

// 0 or -EIO. Descriptions go out as they are, except where the form cannot carry them: `{}` become `_` in
// .lst,
// `"` becomes `'` in .net; other readers than ours end an ibnetdiscover name at its first `"`.
//
// The tables' forms are OpenSM 3.3.23's to the byte, switches in its order; entries of LFT_DROP are left out
// of the dump and UNREACHABLE in .fdbs, as is what the tables lead into a loop or nowhere. Hops in .fdbs are
// those of the path the tables take; t must be of f (same dense switch numbers).
// ibnetdiscover text read by reader_parse() gives the same fabric, port states apart. The .net is for ibsim
// 0.10: the node of f->sm_port comes first (clients attach there), port GUIDs become node GUID + number, NDR
// and XDR are written as HDR.
int write_lft_dump(const struct fabric *f, const struct fabric_tables *t, FILE *out);
int write_fdbs(const struct fabric *f, const struct fabric_tables *t, FILE *out);
int write_lst(const struct fabric *f, FILE *out);
int write_ibnetdiscover(const struct fabric *f, FILE *out);
int write_ibsim_net(const struct fabric *f, FILE *out);

// The topology for Slurm; see writer_slurm.c. Nothing is written, and *e says why, where it would be empty:
// Slurm's controller does not start with an empty file. Any thread; O(ports log ports).
struct slurm_opts {
    const char *name; // of the fabric; part of names in the file
    int rail;         // hosts lie under their leaves of this rail; -1: under their scalable units
    bool yaml; // topology.yaml (Slurm 25.05 and later), for rail -1 with one topology more for each rail
    const char *match; // only hosts whose names match this shell pattern; NULL: all
};
struct slurm_counts {
    uint32_t hosts, left_out;
    char example[64]; // one of those left out, or ""
};
int write_slurm(const struct fabric *f, const struct slurm_opts *o, FILE *out, struct slurm_counts *ret,
                struct err *e);

// All nodes and cables as one JSON object, node-link form: {"directed", "multigraph", "graph", "nodes",
// "links"}, which networkx.node_link_graph(d, edges="links") and others read. "source" and "target" are
// the nodes' "id", their GUIDs.
int write_graph_json(const struct fabric *f, const char *name, FILE *out);

#endif
