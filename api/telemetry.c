// SPDX-License-Identifier: Apache-2.0
// Telemetry at a glance: how a fabric's counters are read, how its links are, its alarms, its history.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/counters.h"
#include "api/tele.h"
#include "db/series.h"
#include "lib/xalloc.h"
#include "telemetry/isolate.h"
#include "telemetry/notify.h"

// --- at a glance ---

struct links_row {
    int64_t state[HEALTH_DOWN + 1];
};
static const struct field links_fields[] = {
    {.name = "unknown", .type = FIELD_INT, .at = HEALTH_UNKNOWN * sizeof(int64_t), "not read yet"},
    {.name = "healthy", .type = FIELD_INT, .at = HEALTH_HEALTHY * sizeof(int64_t), "nothing is wrong"},
    {.name = "unsure",
     .type = FIELD_INT,
     .at = HEALTH_UNSURE * sizeof(int64_t),
     "nothing is wrong, or little, and too few bits have passed to say so"},
    {.name = "degraded",
     .type = FIELD_INT,
     .at = HEALTH_DEGRADED * sizeof(int64_t),
     "works, not as it should"},
    {.name = "flapping",
     .type = FIELD_INT,
     .at = HEALTH_FLAPPING * sizeof(int64_t),
     "goes down again and again"},
    {.name = "failing", .type = FIELD_INT, .at = HEALTH_FAILING * sizeof(int64_t), "loses data"},
    {.name = "down", .type = FIELD_INT, .at = HEALTH_DOWN * sizeof(int64_t), "is not up"},
    {0},
};
static const struct schema schema_links_health = {
    .name = "links_by_health", "Links by how they are", sizeof(struct links_row), links_fields};

struct alarm_counts_row {
    int64_t critical, major, minor, info, silenced, acked, following;
};
#define COUNT(f) offsetof(struct alarm_counts_row, f)
static const struct field count_fields[] = {
    {.name = "critical", .type = FIELD_INT, .at = COUNT(critical), "jobs die"},
    {.name = "major", .type = FIELD_INT, .at = COUNT(major), "act today"},
    {.name = "minor", .type = FIELD_INT, .at = COUNT(minor), "plan"},
    {.name = "info", .type = FIELD_INT, .at = COUNT(info), "worth knowing"},
    {.name = "silenced", .type = FIELD_INT, .at = COUNT(silenced), "silenced; in no other number"},
    {.name = "acked",
     .type = FIELD_INT,
     .at = COUNT(acked),
     "of all but the silenced: somebody has taken them on"},
    {.name = "following", .type = FIELD_INT, .at = COUNT(following), "of the same: they follow from others"},
    {0},
};
const struct schema schema_alarm_counts = {
    .name = "alarm_counts", "Alarms by severity", sizeof(struct alarm_counts_row), count_fields};

struct telemetry_row {
    int64_t sweeps, late, last_sweep, ports, read, unread, unread_nodes, mads, timeouts, refused, resets,
        saturated, nonsense, held, trees, isolated, isolation_proposed, isolation_cap;
    double seconds, cpu_seconds, lost_bps;
    const struct links_row *links;
    const struct alarm_counts_row *alarms;
    const char *history, *notify;
    char notify_space[500];
    struct links_row links_space;
    struct alarm_counts_row alarms_space;
    char history_space[240];
};
#define ROW(f) offsetof(struct telemetry_row, f)
static const struct field telemetry_fields[] = {
    {.name = "sweeps", .type = FIELD_INT, .at = ROW(sweeps), "sweeps of counters since start"},
    {.name = "late", .type = FIELD_INT, .at = ROW(late), "those that began later than they should"},
    {.name = "last_sweep", .type = FIELD_TIME, .at = ROW(last_sweep), "end of the last one", .null = true},
    {.name = "seconds", .type = FIELD_NUM, .at = ROW(seconds), "how long it took"},
    {.name = "ports", .type = FIELD_INT, .at = ROW(ports), "ports to be read"},
    {.name = "read", .type = FIELD_INT, .at = ROW(read), "ports read in it"},
    {.name = "unread", .type = FIELD_INT, .at = ROW(unread), "ports not read"},
    {.name = "unread_nodes", .type = FIELD_INT, .at = ROW(unread_nodes), "devices that they are of"},
    {.name = "mads", .type = FIELD_INT, .at = ROW(mads), "datagrams sent"},
    {.name = "timeouts", .type = FIELD_INT, .at = ROW(timeouts), "requests without an answer"},
    {.name = "refused", .type = FIELD_INT, .at = ROW(refused), "answers with an error status"},
    {.name = "resets", .type = FIELD_INT, .at = ROW(resets), "counters found cleared"},
    {.name = "saturated", .type = FIELD_INT, .at = ROW(saturated), "counters found at their maximum"},
    {.name = "nonsense", .type = FIELD_INT, .at = ROW(nonsense), "answers that could not be"},
    {.name = "cpu_seconds",
     .type = FIELD_NUM,
     .at = ROW(cpu_seconds),
     "processor time of reading, rates, health and congestion"},
    {.name = "held", .type = FIELD_INT, .at = ROW(held), "ports held now"},
    {.name = "lost_bps", .type = FIELD_NUM, .at = ROW(lost_bps), "bytes a second lost to waiting now"},
    {.name = "trees", .type = FIELD_INT, .at = ROW(trees), "congestion trees now"},
    {.name = "isolated",
     .type = FIELD_INT,
     .at = ROW(isolated),
     "links that traffic is kept off for their health; null: that is off",
     .null = true},
    {.name = "isolation_proposed",
     .type = FIELD_INT,
     .at = ROW(isolation_proposed),
     "links that it should be kept off",
     .null = true},
    {.name = "isolation_cap", .type = FIELD_INT, .at = ROW(isolation_cap), "so many at most", .null = true},
    {.name = "links", .type = FIELD_OBJ, .at = ROW(links), "links by how they are", &schema_links_health},
    {.name = "alarms", .type = FIELD_OBJ, .at = ROW(alarms), "alarms by severity", &schema_alarm_counts},
    {.name = "history",
     .type = FIELD_STR,
     .at = ROW(history),
     "why history pauses; null while it is kept",
     .null = true},
    {.name = "notify",
     .type = FIELD_STR,
     .at = ROW(notify),
     "who does not take alarms, for how long and why; null while all do, or nobody is notified",
     .null = true},
    {0},
};
const struct schema schema_telemetry = {
    .name = "telemetry", "Counters of a fabric, at a glance", sizeof(struct telemetry_row), telemetry_fields};

static void fill_alarms(const struct api *a, const char *fabric, struct telemetry_row *row)
{
    struct alarms_count n = {0};
    if (a->c.alarms != NULL)
        alarms_count(a->c.alarms, fabric, &n);
    row->alarms_space = (struct alarm_counts_row){.critical = n.critical,
                                                  .major = n.major,
                                                  .minor = n.minor,
                                                  .info = n.info,
                                                  .silenced = n.silenced,
                                                  .acked = n.acked,
                                                  .following = n.following};
    row->alarms = &row->alarms_space;
}

// Of several the one that has failed for longest.
static void fill_notify(const struct api *a, struct telemetry_row *row)
{
    struct notifier_status st;
    int64_t longest = MONO_S * 60;
    for (unsigned i = 0; a->c.notifier != NULL && i < notifier_targets(a->c.notifier); i++) {
        notifier_get_status(a->c.notifier, i, &st);
        if (st.failing_ns < longest)
            continue;
        longest = st.failing_ns;
        snprintf(row->notify_space, sizeof(row->notify_space), "%s %.200s has taken nothing for %lld min: %s",
                 st.kind, st.target, (long long)(st.failing_ns / (60 * MONO_S)), st.text);
        row->notify = row->notify_space;
    }
}

static void fill_history(const struct view *v, struct telemetry_row *row)
{
    struct series_health h;
    if (v->src->series == NULL) {
        row->history = v->src->no_history;
        return;
    }
    series_health(v->src->series, &h);
    if (h.status == 0)
        return;
    snprintf(row->history_space, sizeof(row->history_space), "%s", h.text[0] ? h.text : strerror(-h.status));
    row->history = row->history_space;
}

static void fill_isolation(const struct view *v, struct telemetry_row *row)
{
    struct isolate_numbers n;
    row->isolated = row->isolation_proposed = row->isolation_cap = NO_INT;
    if (v->src->isolate == NULL)
        return;
    isolate_numbers(v->src->isolate, &n);
    row->isolated = n.isolated;
    row->isolation_proposed = n.proposed;
    row->isolation_cap = n.cap;
}

const struct telemetry_row *telemetry_fill(struct api *a, struct view *v)
{
    const struct congest_tree *const *tree;
    struct tele_unread_node *unread = NULL;
    struct congest_totals totals = {0};
    struct health_count links = {0};
    struct tele_view w;

    if (!tele_view_at(a, v, &w))
        return NULL;
    struct telemetry_row *row = xcalloc(1, sizeof(*row));
    const struct congest *c = tele_congest(w.tele);
    if (c != NULL)
        congest_totals(c, &totals);
    tele_links(w.tele, &links);
    *row = (struct telemetry_row){.sweeps = (int64_t)w.st.sweeps,
                                  .late = (int64_t)w.st.late,
                                  .last_sweep = w.st.last_wall_ns,
                                  .seconds = mono_seconds(w.st.last_ns),
                                  .ports = w.st.ports,
                                  .read = w.st.read,
                                  .unread = w.st.unread,
                                  .unread_nodes = tele_unread_nodes(w.tele, &unread),
                                  .mads = (int64_t)w.st.mads,
                                  .timeouts = (int64_t)w.st.timeouts,
                                  .refused = (int64_t)w.st.refused,
                                  .resets = (int64_t)w.st.resets,
                                  .saturated = (int64_t)w.st.saturated,
                                  .nonsense = (int64_t)w.st.nonsense,
                                  .cpu_seconds = mono_seconds((int64_t)w.st.since_ns),
                                  .held = totals.held,
                                  .lost_bps = totals.lost_bps,
                                  .trees = c != NULL ? congest_trees(c, &tree) : 0};
    fill_isolation(v, row);
    for (unsigned i = 0; i <= HEALTH_DOWN; i++)
        row->links_space.state[i] = links.links[i];
    row->links = &row->links_space;
    fill_notify(a, row);
    fill_alarms(a, v->src->name, row);
    fill_history(v, row);
    free(unread);
    tele_view_done(&w);
    return row;
}

// --- history's files ---

struct tier_row {
    const char *tier;
    int64_t files, bytes, first;
};
static const char *const tier_names[] = {"raw", "minute", "hour", NULL};
static const struct field tier_fields[] = {
    {.name = "tier",
     .type = FIELD_STR,
     .at = offsetof(struct tier_row, tier),
     "raw: every sweep; minute, hour: one sample each",
     .name_of = tier_names},
    {.name = "files", .type = FIELD_INT, .at = offsetof(struct tier_row, files), "files"},
    {.name = "bytes", .type = FIELD_INT, .at = offsetof(struct tier_row, bytes), "their size"},
    {.name = "first",
     .type = FIELD_TIME,
     .at = offsetof(struct tier_row, first),
     "the oldest sample",
     .null = true},
    {0},
};
static const struct schema schema_tier = {
    .name = "history_tier", "Files of one resolution", sizeof(struct tier_row), tier_fields};

struct db_row {
    const char *fabric, *folder, *text;
    bool ok;
    int64_t series, sweeps, left_out;
    double last_commit_seconds, max_commit_seconds, cpu_seconds;
    int64_t aside, aside_bytes, lost_at;
    const char *aside_last, *lost;
    struct items tiers;
};
#define DB(f) offsetof(struct db_row, f)
static const struct field db_fields[] = {
    {.name = "fabric",
     .type = FIELD_STR,
     .at = DB(fabric),
     "whose history; \"\": the database of the daemon"},
    {.name = "folder", .type = FIELD_STR, .at = DB(folder), "where its files are", .null = true},
    {.name = "ok", .type = FIELD_BOOL, .at = DB(ok), "it can be written"},
    {.name = "text", .type = FIELD_STR, .at = DB(text), "why not", .null = true},
    {.name = "series", .type = FIELD_INT, .at = DB(series), "ports that have a history", .null = true},
    {.name = "sweeps", .type = FIELD_INT, .at = DB(sweeps), "sweeps written since the start", .null = true},
    {.name = "left_out",
     .type = FIELD_INT,
     .at = DB(left_out),
     "sweeps that were not, since writing was behind or failed",
     .null = true},
    {.name = "last_commit_seconds",
     .type = FIELD_NUM,
     .at = DB(last_commit_seconds),
     "how long the last one took",
     .null = true},
    {.name = "max_commit_seconds",
     .type = FIELD_NUM,
     .at = DB(max_commit_seconds),
     "the longest",
     .null = true},
    {.name = "cpu_seconds",
     .type = FIELD_NUM,
     .at = DB(cpu_seconds),
     "processor time of writing",
     .null = true},
    {.name = "set_aside",
     .type = FIELD_INT,
     .at = DB(aside),
     "files that were damaged and are kept for a look by hand"},
    {.name = "set_aside_bytes", .type = FIELD_INT, .at = DB(aside_bytes), "their size"},
    {.name = "set_aside_last", .type = FIELD_STR, .at = DB(aside_last), "the newest of them", .null = true},
    {.name = "lost",
     .type = FIELD_STR,
     .at = DB(lost),
     "the last file that was damaged or taken away since the start, and what became of it",
     .null = true},
    {.name = "lost_at", .type = FIELD_TIME, .at = DB(lost_at), "when that was found", .null = true},
    {.name = "tiers", .type = FIELD_LIST, .at = DB(tiers), "its files", &schema_tier},
    {0},
};
const struct schema schema_db = {
    .name = "db", "A database: can it be written, how large is it", sizeof(struct db_row), db_fields};

static void put_meta(struct list *l, struct api *a)
{
    char text[300];
    bool ok = a->c.db == NULL || db_health(a->c.db, text, sizeof(text)) == 0;
    list_item(l, &(struct db_row){.fabric = "",
                                  .ok = ok,
                                  .text = ok ? NULL : text,
                                  .series = NO_INT,
                                  .sweeps = NO_INT,
                                  .left_out = NO_INT,
                                  .last_commit_seconds = NAN,
                                  .max_commit_seconds = NAN,
                                  .cpu_seconds = NAN});
}

static void put_history(struct list *l, const struct api_fabric *f)
{
    struct series_health h;
    struct tier_row tier[SERIES_TIERS];
    if (f->series == NULL) {
        list_item(l, &(struct db_row){.fabric = f->name,
                                      .text = f->no_history,
                                      .series = NO_INT,
                                      .sweeps = NO_INT,
                                      .left_out = NO_INT,
                                      .last_commit_seconds = NAN,
                                      .max_commit_seconds = NAN,
                                      .cpu_seconds = NAN});
        return;
    }
    series_health(f->series, &h);
    for (unsigned i = 0; i < SERIES_TIERS; i++)
        tier[i] = (struct tier_row){.tier = tier_names[i],
                                    .files = h.files[i],
                                    .bytes = (int64_t)h.bytes[i],
                                    .first = h.first_ms[i] * MONO_MS};
    list_item(l, &(struct db_row){.fabric = f->name,
                                  .folder = f->series_dir,
                                  .ok = h.status == 0,
                                  .text = h.status == 0 ? NULL : h.text,
                                  .series = series_num(f->series),
                                  .sweeps = (int64_t)h.sweeps,
                                  .left_out = (int64_t)h.left_out,
                                  .last_commit_seconds = mono_seconds(h.last_commit_ns),
                                  .max_commit_seconds = mono_seconds(h.max_commit_ns),
                                  .cpu_seconds = mono_seconds(h.cpu_ns),
                                  .aside = h.aside,
                                  .aside_bytes = (int64_t)h.aside_bytes,
                                  .aside_last = h.aside_last[0] ? h.aside_last : NULL,
                                  .lost = h.lost_text[0] ? h.lost_text : NULL,
                                  .lost_at = h.lost_ns,
                                  .tiers = {tier, SERIES_TIERS}});
}

// Or should have.
static bool has_history(const struct api_fabric *f)
{
    return f->series != NULL || f->no_history != NULL;
}

void get_db(struct request *r)
{
    struct api *a = r->api;
    struct list l;
    uint64_t i;
    int64_t n = 1;
    char next[24];

    if (!cursor_number(r, &i))
        return;
    for (unsigned k = 0; k < a->c.num_fabrics; k++)
        n += has_history(a->c.fabric[k]);
    list_begin(&l, r, &schema_db);
    for (; i <= a->c.num_fabrics && !list_full(&l); i++) {
        if (i == 0)
            put_meta(&l, a);
        else if (has_history(a->c.fabric[i - 1]))
            put_history(&l, a->c.fabric[i - 1]);
    }
    list_end(&l, i <= a->c.num_fabrics ? number_text(i, next) : NULL, n, NO_INT, wall_now_ns());
}

// --- checked on a worker ---

struct file_row {
    char *fabric, *file, *text;
    bool ok;
};
struct db_check {
    unsigned num;
    char **fabric, **dir;
    struct file_row *file;
    size_t num_files;
    unsigned at; // the folder that is being checked
};
static const struct field file_fields[] = {
    {.name = "fabric", .type = FIELD_STR, .at = offsetof(struct file_row, fabric), "whose"},
    {.name = "file", .type = FIELD_STR, .at = offsetof(struct file_row, file), "its name"},
    {.name = "ok", .type = FIELD_BOOL, .at = offsetof(struct file_row, ok), "all of it can be read"},
    {.name = "text", .type = FIELD_STR, .at = offsetof(struct file_row, text), "what is in it, or is wrong"},
    {0},
};
static const struct schema schema_db_file = {
    .name = "db_file", "A file that was checked", sizeof(struct file_row), file_fields};
struct checked_row {
    int64_t damaged;
    struct items files;
};
static const struct field checked_fields[] = {
    {.name = "damaged", .type = FIELD_INT, .at = offsetof(struct checked_row, damaged), "files with damage"},
    {.name = "files",
     .type = FIELD_LIST,
     .at = offsetof(struct checked_row, files),
     "all files of history",
     &schema_db_file},
    {0},
};
const struct schema schema_db_checked = {
    .name = "db_checked", "Files of history, checked", sizeof(struct checked_row), checked_fields};

void db_check_free(struct db_check *c)
{
    for (unsigned i = 0; c != NULL && i < c->num; i++) {
        free(c->fabric[i]);
        free(c->dir[i]);
    }
    for (size_t i = 0; c != NULL && i < c->num_files; i++) {
        free(c->file[i].fabric);
        free(c->file[i].file);
        free(c->file[i].text);
    }
    if (c != NULL) {
        free(c->fabric);
        free(c->dir);
        free(c->file);
    }
    free(c);
}

static void tell(void *arg, const char *file, const char *text)
{
    struct db_check *c = arg;
    c->file = xreallocarray(c->file, c->num_files + 1, sizeof(*c->file));
    c->file[c->num_files++] = (struct file_row){.fabric = xstrdup(c->fabric[c->at]),
                                                .file = xstrdup(file),
                                                .text = xstrdup(text),
                                                .ok = strncmp(text, "ok", 2) == 0};
}

void db_check_work(struct db_check *c, struct buf *result, struct err *e)
{
    long damaged = 0;
    for (c->at = 0; c->at < c->num; c->at++) {
        long n = series_check(c->dir[c->at], tell, c);
        if (n < 0) {
            err_set(e, (int)n, c->dir[c->at], "cannot be read (%s)", strerror((int)-n));
            return;
        }
        damaged += n;
    }
    json_put_struct(result, &schema_db_checked,
                    &(struct checked_row){.damaged = damaged, .files = {c->file, c->num_files}});
}

void post_db_check(struct request *r)
{
    struct api *a = r->api;
    struct db_check *c = xcalloc(1, sizeof(*c));
    c->fabric = xcalloc(a->c.num_fabrics + 1, sizeof(char *));
    c->dir = xcalloc(a->c.num_fabrics + 1, sizeof(char *));
    const char *why = "no history is kept, so there is nothing to check";
    for (unsigned i = 0; i < a->c.num_fabrics; i++) {
        const struct api_fabric *f = a->c.fabric[i];
        why = f->no_history != NULL ? f->no_history : why;
        if (f->series_dir != NULL) {
            c->fabric[c->num] = xstrdup(f->name);
            c->dir[c->num++] = xstrdup(f->series_dir);
        }
    }
    if (c->num == 0) {
        db_check_free(c);
        answer_problem(r, 409, "%s", why);
        return;
    }
    jobs_db_check(r, c);
}
