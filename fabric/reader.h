// SPDX-License-Identifier: Apache-2.0
// Reads a fabric from a file: ibnetdiscover in every dialect that was seen (lost tabs, CRLF, terminal-log
// lines, port labels, chassis records, `-f` suffixes, ibdiagnet's), `ibnetdiscover -p` reports, ibsim's .net,
// ibdiagnet's .lst. The dialect is recognised from the text. A bad line is a finding with its number and is
// skipped; the rest is used. Nodes that nothing reaches, one-sided and duplicate links are findings.
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
// The dialect recognised in the last bytes: "ibnetdiscover", "ports-report", "ibsim", "lst"; NULL when none
// fits.
const char *reader_dialect(const char *text, size_t len);

#endif
