// SPDX-License-Identifier: Apache-2.0
// What handlers about counters share: the collector of a request's fabric, ports as rows, times.
#ifndef WEFT_API_TELE_H
#define WEFT_API_TELE_H

#include "api/api_priv.h"
#include "api/sieve.h"
#include "lib/hash.h"
#include "telemetry/telemetry.h"

struct tele_view { // of this moment
    struct api *api;
    struct view *v;
    struct tele *tele;
    const struct tele_table *t;
    struct tele_status st;
    uint32_t slots;         // of the table; later ones are for the next question
    int64_t wall_less_loop; // wall clock minus loop clock
    struct u64map alarm;    // place -> index into the list of alarms, the worst of a place; tele_alarms()
    bool alarms_known;
};
// The collector of the request's fabric, or false with an answer: it is a file, is not managed, or no
// counters are collected. tele_view_done() ends it.
bool tele_view_of(struct request *r, struct tele_view *ret);
bool tele_view_at(struct api *a, struct view *v, struct tele_view *ret); // false: there is none
// In a later turn of the loop: what is below w is as it is now, status and slots are of the beginning. False
// with an answer: there is another collector.
bool tele_view_again(struct request *r, struct tele_view *w);
void tele_view_done(struct tele_view *w);
// The slot of the cable's other end, now or when it was last seen; TELE_SLOT_NONE.
uint32_t tele_far(const struct tele_view *w, uint32_t slot);
int64_t tele_wall(const struct tele_view *w, int64_t loop_ns); // 0 stays 0
// The worst active alarm about a port, NULL: none.
const struct alarm *tele_alarm_of(struct tele_view *w, uint64_t guid, unsigned port);

struct end_row { // one end of a link
    uint64_t guid;
    const char *name, *label;
    int64_t port;
};
extern const struct schema schema_end, schema_peer;

struct spot { // a port, as lists name it
    uint64_t guid;
    const char *name, *type, *role, *kind;
    int64_t port, rail, su, tier;
    double gbps;
    const struct end_row *peer;
    struct end_row peer_space;
};
void spot_fill(const struct tele_view *w, uint32_t slot,
               struct spot *ret); // stays where it is: peer points into it
// Fields of a struct that begins with a spot.
#define SPOT(f) offsetof(struct spot, f)
#define SPOT_FIELDS                                                                                          \
    {.name = "guid", .type = FIELD_GUID, .at = SPOT(guid), "NodeGUID"},                                      \
        {.name = "name", .type = FIELD_STR, .at = SPOT(name), "the node's description; may be empty"},       \
        {.name = "port", .type = FIELD_INT, .at = SPOT(port), "port number"},                                \
        {.name = "type",                                                                                     \
         .type = FIELD_STR,                                                                                  \
         .at = SPOT(type),                                                                                   \
         "what the node is; null when it is gone",                                                           \
         .null = true,                                                                                       \
         .name_of = node_type_names},                                                                        \
        {.name = "role",                                                                                     \
         .type = FIELD_STR,                                                                                  \
         .at = SPOT(role),                                                                                   \
         "what it is in this fabric",                                                                        \
         .null = true,                                                                                       \
         .name_of = node_role_names},                                                                        \
        {.name = "rail",                                                                                     \
         .type = FIELD_INT,                                                                                  \
         .at = SPOT(rail),                                                                                   \
         "rail of a host's port or a leaf",                                                                  \
         .null = true},                                                                                      \
        {.name = "su", .type = FIELD_INT, .at = SPOT(su), "scalable unit", .null = true},                    \
        {.name = "tier", .type = FIELD_INT, .at = SPOT(tier), "leaf 0, spine 1, core 2", .null = true},      \
        {.name = "kind",                                                                                     \
         .type = FIELD_STR,                                                                                  \
         .at = SPOT(kind),                                                                                   \
         "host: of a cable to an adapter or router; trunk: between switches",                                \
         .null = true,                                                                                       \
         .name_of = link_kinds},                                                                             \
        {.name = "gbps", .type = FIELD_NUM, .at = SPOT(gbps), "rate of the link as it is", .null = true},    \
    {                                                                                                        \
        .name = "peer", .type = FIELD_OBJ, .at = SPOT(peer), "the other end", &schema_peer, .null = true     \
    }
extern const char *const link_kinds[], *const port_states[];

#define PLACE_TEXT 300
// "leaf-r3-04/44"; a GUID where there is no name.
const char *spot_text(const struct spot *s, char ret[PLACE_TEXT]);
// What people write for a port: "NODE/NUM", "NODE[NUM]", NODE being a GUID or a unique name. *ret_port -1:
// the node alone. -ENOENT, -EEXIST, -EINVAL and *e. A GUID is taken although nothing is there now.
int port_parse(const struct fabric *f, const char *text, uint64_t *ret_guid, int *ret_port, struct err *e);
// The same of a fabric that is looked at; names of nodes that are away are known from its blueprint.
int view_port_parse(struct view *v, const char *text, uint64_t *ret_guid, int *ret_port, struct err *e);
// A node that is away, as the blueprint has it; NULL where it is there, or never was.
const struct node *view_away(struct view *v, uint64_t guid);
// The description of a node, there or away; "".
const char *view_node_name(struct view *v, uint64_t guid);

// Counter by name; -1 with an answer (400) that names the nearest.
int counter_of(struct request *r, const char *name);
const char *counter_nearest(const char *name); // NULL
// A time as people write it: RFC 3339, an age ("2h": so long ago), or milliseconds since 1970. Absent: def.
// False with an answer.
bool query_when(struct request *r, const char *name, int64_t def_ms, int64_t *ret_ms);
// A duration: "10s", "5m", "1h" or seconds. Absent: def. False with an answer.
bool query_span(struct request *r, const char *name, int64_t def_ms, int64_t *ret_ms);
// From focus=: *ret NULL when it is absent. False with an answer. A bare name that names nothing is refused,
// unless other() knows it (NULL is fine).
bool query_focus_of(struct request *r, const struct sieve_rows *rows, bool (*other)(const char *word),
                    struct sieve **ret);
// The same of ports, by what is known of them without their counters; focus of such a one.
bool query_port_focus(struct request *r, struct sieve **ret);
bool tele_focus_has(struct tele_view *w, struct sieve *focus, uint32_t slot);

// --- place.c ---
struct place_row { // what a focus knows of a port, or of a node (port 0), that stays from sweep to sweep
    uint64_t guid;
    const char *fabric, *name, *place, *element, *type, *role, *kind;
    int64_t port, rail, su, tier, plane, host;
};
// Fields of a struct that begins with one.
#define PLACE(f) offsetof(struct place_row, f)
#define PLACE_FIELDS                                                                                         \
    {.name = "fabric", .type = FIELD_STR, .at = PLACE(fabric), ""},                                          \
        {.name = "guid", .type = FIELD_GUID, .at = PLACE(guid), ""},                                         \
        {.name = "name", .type = FIELD_STR, .at = PLACE(name), ""},                                          \
        {.name = "node", .type = FIELD_STR, .at = PLACE(name), ""},                                          \
        {.name = "port", .type = FIELD_INT, .at = PLACE(port), ""},                                          \
        {.name = "place", .type = FIELD_STR, .at = PLACE(place), ""},                                        \
        {.name = "element", .type = FIELD_STR, .at = PLACE(element), ""},                                    \
        {.name = "type", .type = FIELD_STR, .at = PLACE(type), "", .name_of = node_type_names},              \
        {.name = "role", .type = FIELD_STR, .at = PLACE(role), "", .name_of = node_role_names},              \
        {.name = "kind", .type = FIELD_STR, .at = PLACE(kind), "", .name_of = link_kinds},                   \
        {.name = "rail", .type = FIELD_INT, .at = PLACE(rail), ""},                                          \
        {.name = "su", .type = FIELD_INT, .at = PLACE(su), ""},                                              \
        {.name = "tier", .type = FIELD_INT, .at = PLACE(tier), ""},                                          \
        {.name = "plane", .type = FIELD_INT, .at = PLACE(plane), ""},                                        \
    {                                                                                                        \
        .name = "host", .type = FIELD_INT, .at = PLACE(host), ""                                             \
    }
#define PLACE_NUM 15
struct place_space {
    struct place_row row;
    char place[PLACE_TEXT], element[PLACE_TEXT];
};
void place_fill(struct api *a, const char *fabric, uint64_t node_guid, unsigned port,
                struct place_space *ret);                    // stays where it is
int place_check(const char *focus, struct err *e);           // 0, or not understood and *e
struct sieve *place_sieve(const char *focus, struct err *e); // of ends alone
// Whether it is what people call it: node, GUID, host, HOST:RAIL, each with /PORT or [PORT]; globs.
bool place_named(const struct place_row *p, const char *word);
bool place_is_named(const void *row, const void *end, const char *word); // of sieves whose ends are places
// Whether a row is wanted by what the focus knows of it and of a port. focus NULL: all are.
bool tele_end_wanted(struct tele_view *w, struct sieve *focus, const void *row, uint64_t guid, unsigned port);
// 0 where something is called so, in the fabric as it is or as it is meant to be; else -ENOENT and *e. only
// NULL: in any fabric.
int place_word(struct api *a, const struct view *only, const char *word, struct err *e);

// --- telemetry of a fabric at a glance: telemetry.c ---
struct telemetry_row;
extern const struct schema schema_telemetry;
const struct telemetry_row *telemetry_fill(struct api *a, struct view *v); // malloc'd; NULL: none

#endif
