// SPDX-License-Identifier: Apache-2.0
// Between the readers of topology files. Each dialect (reader_topo.c: ibnetdiscover and ibsim,
// reader_ports.c: `ibnetdiscover -p`, reader_lst.c: .lst) scans its text once, line by line, and fills a
// `struct graph`: nodes and "edges", an edge being one port line seen from its own end. reader_graph.c then
// turns the graph into a fabric, where alone it is decided what a one-sided, repeated or contradictory link
// means.
//
// Owner of everything: struct reader, on the stack of one reader_parse() call; one thread. Spans point into
// the text, which lives as long as the reader. For fabric/ only.
#ifndef WEFT_FABRIC_READER_PRIV_H
#define WEFT_FABRIC_READER_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "fabric/builder.h"
#include "lib/buf.h"

struct arena;
struct err;

struct span {
    const char *p;
    uint32_t len;
};

// A cursor over one line. The scan_*() functions move it only when they match.
struct scan {
    const char *p, *end;
};

static inline void scan_ws(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
        s->p++;
}
static inline bool scan_done(const struct scan *s)
{
    return s->p == s->end;
}
static inline bool scan_ch(struct scan *s, char c)
{
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}
static inline bool scan_lit(struct scan *s, const char *lit)
{
    size_t n = strlen(lit);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, lit, n) != 0)
        return false;
    s->p += n;
    return true;
}
// Decimal, at most max; a larger number does not match.
bool scan_uint(struct scan *s, uint32_t max, uint32_t *ret_v);
// Hexadecimal digits, at most 16, with or without 0x.
bool scan_hex(struct scan *s, uint64_t *ret_v);
// C's strtoul base 0: 0x.., 0.., decimal.
bool scan_number(struct scan *s, uint64_t *ret_v);
// open … close; the span is what stands between the first of each.
bool scan_between(struct scan *s, char open, char close, struct span *ret_inner);
// "…" up to the LAST quote of the line: names may hold quotes, nothing behind a name does.
bool scan_quoted_greedy(struct scan *s, struct span *ret_inner);
// Letters, digits and anything up to a blank.
bool scan_word(struct scan *s, struct span *ret_word);
bool span_is(struct span s, const char *lit);

// Lines of a text: LF, CR LF, CR CR LF; a lone CR splits a line without counting one.
struct lines {
    const char *p, *end, *lf; // lf: end of the counted line p lies in
    uint32_t line;            // number of the line last returned
    bool fresh;
};
void lines_init(struct lines *l, const char *text, size_t len);
bool lines_next(struct lines *l, struct scan *ret_line);

struct raw_link { // width and speed as the port line has them; in the mask form (ibsim) what is enabled
    uint8_t width, speed, ext;
    bool fdr10;
};

struct raw_node {
    uint64_t guid, sys_guid;
    uint64_t port0_guid; // switches; 0: as guid
    struct span name;    // ibsim: what port lines call it
    struct span desc;
    uint32_t vendor_id, revision, line;
    uint16_t device_id, file;
    uint16_t lid; // switches: port 0's
    uint8_t type, num_ports, lmc;
    uint8_t top_port; // highest port number that any line gives it
    bool record;      // it has a record of its own, not only been named by others (graph_record())
    bool enhanced;
    struct raw_link defaults; // ibsim: of ports without a line
};

struct raw_edge {
    uint32_t node, far; // far: ID_NONE for a port without peer
    uint32_t line;
    uint16_t file;
    uint16_t lid, far_lid; // of the end port at either end; for switches that is port 0
    uint64_t guid, far_guid;
    struct span label;
    uint8_t num, far_num, lmc, state, vl_cap;
    bool implied; // .lst: the other half of a line, not a line of its own
    bool has_lid;
    struct raw_link link;
};

struct graph {
    struct raw_node *node;
    struct raw_edge *edge;
    uint32_t *order; // node indices in the order of their records; nodes without one come last
    uint32_t num_order;
    uint32_t num_nodes, cap_nodes, num_edges, cap_edges;
    struct u64map by_guid;     // node index; not used by ibsim's dialect
    bool masks;                // raw_link holds what is enabled: ibsim
    bool names_only;           // a node without a record is an error, not a node: ibsim
    uint8_t link_state;        // state of linked ports when the line has none
    uint64_t sm_node, sm_port; // "Initiated from", 0: unknown
    uint32_t sm_index;         // ibsim: node, ID_NONE: unknown
    bool full;                 // a bound was met; the rest was not taken
};
#define GRAPH_MAX_NODES 65536u
#define GRAPH_MAX_EDGES (4u << 20)

struct note_code {
    const char *code;
    enum finding_severity severity;
    uint32_t n;
};
#define NOTE_CODES 40
#define NOTES_PER_CODE 100 // kept one by one; the rest of a kind becomes one finding

struct reader {
    struct arena *arena;
    struct findings *out; // may be NULL
    struct note_code code[NOTE_CODES];
    unsigned num_codes;
    const char **file_name; // by file number; 0 is the file itself
    unsigned num_files;
    struct buf *text; // of included files
    unsigned num_texts;
    size_t bytes; // of all files so far
    bool may_include;
    unsigned depth;
    struct graph g;
};

// A finding at file:line; line 0: about the file.
void reader_note(struct reader *r, enum finding_severity s, const char *code, unsigned file, uint32_t line,
                 const char *fmt, ...) __attribute__((format(printf, 6, 7)));
// The line as a person may read it: at most 60 bytes, unprintable ones as dots.
const char *excerpt(const struct scan *line, char buf[72]);

// NULL when full (the finding is made).
struct raw_node *graph_add_node(struct reader *r, unsigned file, uint32_t line);
struct raw_edge *graph_add_edge(struct reader *r, unsigned file, uint32_t line);
// The node of that GUID, new (without record) when it is not there; ID_NONE when full.
uint32_t graph_node_by_guid(struct reader *r, uint64_t guid, enum node_type type, unsigned file,
                            uint32_t line);
// Marks that the node's own record was met; its id will follow those of the records before it.
void graph_record(struct reader *r, uint32_t node);
const struct fabric *graph_finish(struct reader *r, struct err *e);

// "4xHDR" and the like, cursor on the digit; unknown parts are 0. False when there is no such thing.
bool scan_rate(struct scan *s, struct raw_link *ret_link, bool *ret_unknown);
// "HDR" -> codes; false when unknown.
bool speed_by_name(struct span name, struct raw_link *link);
// "4x" -> PortInfo width code, 0 when unknown.
uint8_t width_code(uint32_t lanes);

// The dialects. text lives until graph_finish() is done.
void topo_read(struct reader *r, const char *text, size_t len, unsigned file, bool ibsim);
void ports_read(struct reader *r, const char *text, size_t len, unsigned file);
void lst_read(struct reader *r, const char *text, size_t len, unsigned file);
// How a line of each dialect is told.
bool ports_is_line(struct scan line);
bool lst_is_line(struct scan line);
enum topo_line { TOPO_NO, TOPO_IBNETDISCOVER, TOPO_IBSIM };
enum topo_line topo_kind(struct scan line);
// Opens and reads another file for `include`; false with the finding made.
bool reader_include(struct reader *r, struct span path, unsigned file, uint32_t line, struct span *ret_text,
                    unsigned *ret_file);

#endif
