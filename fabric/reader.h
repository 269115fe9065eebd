// SPDX-License-Identifier: Apache-2.0
// Reads a fabric from a file: ibnetdiscover in every dialect that was seen (lost tabs, CRLF, terminal-log
// lines, port labels, chassis records, `-f` suffixes, ibdiagnet's), `ibnetdiscover -p` reports, ibsim's .net,
// ibdiagnet's .lst. The dialect is recognised from the text. A bad line is a finding with its number and is
// skipped; the rest is used. Nodes that nothing reaches, one-sided and duplicate links are findings.
//
// What is decided here: a link that one end names is made when the far port has no line of its own, and a
// node that is only named is made from the lines that name it; where two lines contradict, the link that both
// ends name wins and the other port is excluded (PORT_EXCLUDED_ONE_SIDED). LID 65535 is none. Linked ports of
// dumps are Active, those of ibsim's files Init (its GUIDs are what ibsim gives, not what the names look
// like). A ports report does not say which ports are one adapter: each is a node of its own, with the
// PortGUID as its GUID. What files do not say is assumed (reader_graph.c): 4096-byte MTU, VL0-7, 49,152 LIDs
// in a switch's table, 1,024 multicast LIDs, 128 and 32 partitions.
//
// `include` lines of a .net are followed by reader_load() only, and only to regular files in the including
// file's folder or below, 8 deep.
//
// Findings are at "file:line"; 100 of a kind are kept, the rest of the kind is one finding with its count.
// Thread: any; nothing is shared. Cost: one pass over the text and work in proportion to its lines; memory in
// proportion to the nodes and ports it names, at most 65,536 nodes and 4 M ports.
// Map: reader.c (entry, files, findings), reader_scan.c (cursor, lines, rates), reader_topo.c,
// reader_ports.c, reader_lst.c (dialects), reader_graph.c (lines to links).
#ifndef WEFT_FABRIC_READER_H
#define WEFT_FABRIC_READER_H

#include "fabric/builder.h"

struct err;

#define READER_MAX_BYTES (512u << 20)

// The fabric, with one reference, or NULL and *e: no such file, too large, or nothing in it that is a fabric
// ("no node record in 1,234 lines; is it …").
const struct fabric *reader_load(const char *path, struct findings *ret_findings, struct err *e);
// The same from memory; name stands for the file in findings. text need not be NUL-terminated.
const struct fabric *reader_parse(const char *text, size_t len, const char *name,
                                  struct findings *ret_findings, struct err *e);
// The dialect recognised in the text: "ibnetdiscover", "ports-report", "ibsim", "lst"; NULL when none fits.
const char *reader_dialect(const char *text, size_t len);

#endif
