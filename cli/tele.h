// SPDX-License-Identifier: Apache-2.0
// Between the commands about counters, health, congestion and alarms.
#ifndef WEFT_CLI_TELE_H
#define WEFT_CLI_TELE_H

#include "cli/cli.h"

// The words of the command, with --focus: a place (*ret_place, as the API takes it: "0x…/3", "0x…"), or a
// focus
// (*ret_focus); NULL where there is none. The caller's.
int tele_words(struct cli *c, char **ret_place, char **ret_focus);
// Whether no node is called so, but some are "WORD mlx5_3": adapters of a host.
bool tele_is_host(struct cli *c, const char *word);
// --focus and the words as one focus; NULL: none. The caller's.
char *tele_focus(struct cli *c);
bool tele_only_names(const struct cli *c); // no fields are asked for
// "nothing matches 'rail=9': 3 alarms elsewhere"; n of what the focus has left out, -1: not known. On stderr
// where the answer is for a program.
// … that something matches, n in all, but none of that as it was asked for.
void tele_none_such(struct cli *c, const char *focus, long long n);
void tele_nothing(struct cli *c, const char *focus, long long n, const char *one, const char *many);
// Of an empty answer: says so where the focus (NULL: all) takes no port at all: that is not that all is well.
bool tele_takes_none(struct cli *c, const char *focus);
// An end {name, port, guid} as a word for a shell: a name is what a device says. The caller's.
char *tele_shell_port(json_t *end);
// What x's advice says of LINK becomes a word that can be typed: its end.
void tele_advice(json_t *x, json_t *end);
// --since and --until are times or ages, not the ids that they may be of events.
int tele_since(struct cli *c);
// An option as wall time, 0: not given. ahead: of what is to come.
int tele_time(struct cli *c, const char *name, bool ahead, int64_t *ret_ns);
// Adds one of them to a query, in the form that weftd takes; checked before.
void tele_query_time(struct cli *c, struct buf *path, const char *option, const char *as);
// "12 min" since a time as the API writes it.
void tele_age(struct out *o, const char *when);
// "1 link", "2 links".
void tele_count(struct out *o, long long n, const char *one, const char *many);
void tele_share(struct out *o, const char *before, json_t *v); // nothing where v is no number

// Links of weft health, three or more of one device as one row; a new list.
json_t *health_grouped(json_t *items);

#endif
