// SPDX-License-Identifier: Apache-2.0
#include "telemetry/remote_write.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "db/db.h"
#include "db/series.h"
#include "lib/err.h"
#include "lib/rng.h"
#include "lib/thread.h"
#include "lib/xalloc.h"
#include "telemetry/http_post.h"
#include "telemetry/write_batch.h"

#define LABELS_MAX 32u
#define POINTS 30720u // of a scan: what the store decodes at once; at most some megabytes of requests
#define CURSOR_SIZE 256u
#define CURSOR_NAME "remote-write-cursor"
#define BEHIND (300 * MONO_S)
#define TELL_AFTER 3u // tries
#define BACKOFF_FIRST (500 * MONO_MS)
#define BACKOFF_MOST (30 * MONO_S)

enum told { TOLD_FAILING, TOLD_RECOVERED, TOLD_REFUSED, TOLD_KINDS };

struct remote_write {
    struct loop *loop;
    struct db *db;
    struct remote_write_callbacks cb;
    char *fabric, *fabric_label, *dir, *label_text;
    struct rw_label label[LABELS_MAX];
    unsigned num_labels;
    int64_t interval_ns, backfill_ns;
    struct http_post *http;
    pthread_t thread;

    pthread_mutex_t lock; // of what follows, up to the next heading
    pthread_cond_t cond;
    bool stop;
    const struct fabric *f, *known;
    bool new_names;
    struct remote_write_status status;
    int64_t pending_ms; // time of the oldest sample that is to be sent; 0 = none is known
    char save[CURSOR_SIZE + 64];
    bool save_due;
    uint64_t saves_asked, saving, saves_done; // that the thread waits for
    bool tell[TOLD_KINDS];
    char tell_text[TOLD_KINDS][200];

    // the loop's
    struct loop_waker *waker;
    struct loop_timer save_timer, look_timer;
    bool is_behind;

    // the thread's
    struct series_reader *reader;
    char cursor[CURSOR_SIZE];
    bool at_cursor;       // there is one
    bool fixed;           // it names a window, whose end does not move any more
    unsigned done;        // batches of its scan that are through
    bool careful;         // … as far as an earlier run has noted: others may have arrived as well
    uint32_t last_series; // of the scan that runs
    const struct fabric *names_f, *names_known; // that names are of; references
    const struct tele_names *names;
    struct write_labels labels;
    struct write_maker maker;
    struct rng rng;
    unsigned tries;
    bool told_failing;
    int64_t refused_told_ns;
};

static int64_t now_ns(void)
{
    return mono_now().ns;
}

// --- from the thread to the loop ---

static void tell(struct remote_write *w, enum told what, const char *text)
{
    pthread_mutex_lock(&w->lock);
    w->tell[what] = true;
    snprintf(w->tell_text[what], sizeof(w->tell_text[what]), "%s", text);
    pthread_mutex_unlock(&w->lock);
    loop_waker_signal(w->waker);
}

static void note_taken(struct remote_write *w, uint32_t samples, size_t bytes)
{
    pthread_mutex_lock(&w->lock);
    w->status.samples += samples;
    w->status.requests++;
    w->status.bytes += bytes;
    w->status.last_wall_ns = wall_now_ns();
    w->status.failing = false;
    w->status.text[0] = 0;
    pthread_mutex_unlock(&w->lock);
    if (w->told_failing)
        tell(w, TOLD_RECOVERED, "the receiver takes samples again");
    w->told_failing = false;
    w->tries = 0;
}

static void note_failed(struct remote_write *w, const char *text)
{
    pthread_mutex_lock(&w->lock);
    w->status.retries++;
    w->status.failing = true;
    snprintf(w->status.text, sizeof(w->status.text), "%s", text);
    pthread_mutex_unlock(&w->lock);
    if (++w->tries == TELL_AFTER && !w->told_failing) {
        w->told_failing = true;
        tell(w, TOLD_FAILING, text);
    }
}

static void note_refused(struct remote_write *w, uint32_t samples, bool had, const char *text)
{
    pthread_mutex_lock(&w->lock);
    if (had)
        w->status.had += samples;
    else
        w->status.dropped += samples;
    w->status.failing = false;
    pthread_mutex_unlock(&w->lock);
    w->tries = 0;
    if (had)
        return;
    if (w->refused_told_ns == 0 || now_ns() - w->refused_told_ns > 3600 * MONO_S)
        tell(w, TOLD_REFUSED, text);
    w->refused_told_ns = now_ns();
}

// Where to go on, to be saved; wait: until it is durable, or was tried in vain. False: stop.
static bool note_cursor(struct remote_write *w, bool wait)
{
    pthread_mutex_lock(&w->lock);
    snprintf(w->save, sizeof(w->save), "%s\n%u", w->cursor, w->done);
    w->save_due = true;
    uint64_t turn = wait && w->db != NULL ? ++w->saves_asked : 0;
    loop_waker_signal(w->waker);
    while (!w->stop && w->saves_done < turn)
        pthread_cond_wait(&w->cond, &w->lock);
    bool go = !w->stop;
    pthread_mutex_unlock(&w->lock);
    return go;
}

static void note_pending(struct remote_write *w, int64_t first_ms)
{
    pthread_mutex_lock(&w->lock);
    w->pending_ms = first_ms;
    pthread_mutex_unlock(&w->lock);
}

// --- waiting; false: stop ---

static bool wait_for(struct remote_write *w, int64_t ns)
{
    int64_t until = now_ns() + ns;
    struct timespec t = {.tv_sec = until / MONO_S, .tv_nsec = until % MONO_S};
    pthread_mutex_lock(&w->lock);
    while (!w->stop && now_ns() < until)
        pthread_cond_timedwait(&w->cond, &w->lock, &t);
    bool go = !w->stop;
    pthread_mutex_unlock(&w->lock);
    return go;
}

static bool wait_for_names(struct remote_write *w)
{
    pthread_mutex_lock(&w->lock);
    while (!w->stop && w->f == NULL)
        pthread_cond_wait(&w->cond, &w->lock);
    bool go = !w->stop;
    pthread_mutex_unlock(&w->lock);
    return go;
}

// --- names ---

static void make_names(struct remote_write *w)
{
    uint32_t n = series_reader_num(w->reader);
    struct tele_key *key = xcalloc(n + 1ul, sizeof(*key));
    for (uint32_t i = 0; i < n; i++)
        series_reader_key(w->reader, i, &key[i].node_guid, &key[i].num);
    tele_names_free(w->names);
    write_labels_done(&w->labels);
    w->names = tele_names_new(key, n, w->names_f, w->names_known);
    write_labels_make(&w->labels, w->names, w->fabric_label, w->label, w->num_labels);
    w->maker.names = w->names;
    w->maker.labels = &w->labels;
    free(key);
}

static void look_at_names(struct remote_write *w)
{
    const struct fabric *old_f = NULL, *old_known = NULL;
    pthread_mutex_lock(&w->lock);
    bool fresh = w->new_names;
    if (fresh) {
        old_f = w->names_f;
        old_known = w->names_known;
        w->names_f = fabric_ref(w->f);
        w->names_known = w->known != NULL ? fabric_ref(w->known) : NULL;
        w->new_names = false;
    }
    pthread_mutex_unlock(&w->lock);
    if (fresh || w->names == NULL || w->names->num < series_reader_num(w->reader))
        make_names(w);
    fabric_unref(old_f);
    fabric_unref(old_known);
}

// --- sending; false: stop ---

static bool send_block(struct remote_write *w, const struct buf *block, uint32_t samples, bool *unsure,
                       struct http_answer *ret)
{
    for (;;) {
        http_post(w->http, block->data, block->len, ret);
        *unsure = *unsure || ret->unsure;
        switch (ret->outcome) {
        case HTTP_TAKEN:
            note_taken(w, samples, block->len);
            return true;
        case HTTP_REFUSED:
            return true;
        case HTTP_ABORTED:
            return false;
        case HTTP_LATER:
            break;
        }
        note_failed(w, ret->text);
        int64_t wait = http_backoff(w->tries, BACKOFF_FIRST, BACKOFF_MOST, rng_u64(&w->rng));
        if (!wait_for(w, ret->retry_after_ns > wait ? ret->retry_after_ns : wait))
            return false;
    }
}

static bool send_batch(struct remote_write *w, const struct write_batch *b)
{
    struct http_answer a;
    bool unsure = w->careful;

    if (!send_block(w, &b->block, b->samples, &unsure, &a))
        return false;
    if (a.outcome == HTTP_REFUSED)
        note_refused(w, b->samples, unsure, a.text);
    return true;
}

static bool send_all(struct remote_write *w)
{
    struct write_maker *m = &w->maker;
    pthread_mutex_lock(&w->lock);
    w->status.unnamed += m->unnamed;
    pthread_mutex_unlock(&w->lock);
    if (m->num == 0 || !note_cursor(w, true))
        return m->num == 0;
    for (unsigned i = w->done; i < m->num; i++) {
        note_pending(w, m->batch[i].first_ms);
        if (!send_batch(w, &m->batch[i]))
            return false;
        w->done = i + 1;
        note_cursor(w, false);
    }
    return true;
}

// --- scanning ---

static bool stop_at_once(void *arg, const struct series_point *p)
{
    (void)arg;
    (void)p;
    return false;
}

// Up to the end of a window.
static bool on_point(void *arg, const struct series_point *p)
{
    struct remote_write *w = arg;
    if (p->series < w->last_series)
        return false;
    w->last_series = p->series;
    if (p->series >= w->names->num)
        make_names(w);
    write_maker_point(&w->maker, p);
    return true;
}

static bool scan_failed(struct remote_write *w, const struct err *e)
{
    note_failed(w, e->text);
    series_reader_free(w->reader);
    w->reader = NULL;
    return false;
}

// A reader and a cursor whose window is fixed; false: nothing is new.
static bool begin_scan(struct remote_write *w, struct err *e)
{
    char next[CURSOR_SIZE] = "";
    if (w->reader == NULL)
        w->reader = series_reader_new(w->dir, e);
    if (w->reader == NULL)
        return false;
    if (!w->at_cursor && series_scan_begin(w->reader, wall_now_ns() / MONO_MS - w->backfill_ns / MONO_MS,
                                           w->cursor, sizeof(w->cursor), e) != 0)
        return false;
    w->at_cursor = true;
    if (w->fixed)
        return true;
    long n = series_scan(w->reader, w->cursor, 1, stop_at_once, NULL, next, sizeof(next), e);
    if (n <= 0)
        return false;
    memcpy(w->cursor, next, sizeof(next));
    w->fixed = true;
    return true;
}

static void end_scan(struct remote_write *w, const char *next)
{
    snprintf(w->cursor, sizeof(w->cursor), "%s", next);
    w->done = 0;
    w->fixed = w->careful = false;
    note_cursor(w, false);
}

// One scan and what it found. False: nothing more for now, or stop.
static bool scan(struct remote_write *w)
{
    char next[CURSOR_SIZE] = "";
    struct err e = {0};

    if (!begin_scan(w, &e)) {
        note_pending(w, 0);
        return e.code != 0 ? scan_failed(w, &e) : false;
    }
    look_at_names(w);
    write_maker_clear(&w->maker);
    w->last_series = 0;
    if (series_scan(w->reader, w->cursor, POINTS, on_point, w, next, sizeof(next), &e) < 0)
        return scan_failed(w, &e);
    write_maker_end(&w->maker);
    if (!send_all(w))
        return false;
    end_scan(w, next);
    return true;
}

static void *thread_main(void *arg)
{
    struct remote_write *w = arg;
    bool go = wait_for_names(w);
    while (go) {
        while (scan(w))
            ;
        go = wait_for(w, w->interval_ns);
    }
    return NULL;
}

// --- the loop's side ---

static void saved(void *arg, int status)
{
    struct remote_write *w = arg;
    (void)status; // it is tried again by itself, and there is nothing else to do
    pthread_mutex_lock(&w->lock);
    w->saves_done = w->saving; // the thread asks for no other one before
    pthread_cond_broadcast(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

static void save(void *arg)
{
    struct remote_write *w = arg;
    char text[sizeof(w->save)];

    loop_timer_cancel(&w->save_timer);
    pthread_mutex_lock(&w->lock);
    bool due = w->save_due, wait = w->saves_asked > w->saves_done && w->saving <= w->saves_done;
    memcpy(text, w->save, sizeof(text));
    w->save_due = false;
    if (wait)
        w->saving = w->saves_asked;
    pthread_mutex_unlock(&w->lock);
    if (due && w->db != NULL)
        db_blob_put(w->db, w->fabric, CURSOR_NAME, text, strlen(text), wait ? saved : NULL, w);
}

static void on_wake(void *arg)
{
    static const char *const kind[] = {"remote-write-failing", "remote-write-recovered",
                                       "remote-write-refused"};
    static const char *const severity[] = {"warning", "notice", "error"};
    struct remote_write *w = arg;
    bool due[TOLD_KINDS];
    char text[TOLD_KINDS][200];

    pthread_mutex_lock(&w->lock);
    memcpy(due, w->tell, sizeof(due));
    memcpy(text, w->tell_text, sizeof(text));
    memset(w->tell, 0, sizeof(w->tell));
    bool save_due = w->save_due, waits = w->saves_asked > w->saving;
    pthread_mutex_unlock(&w->lock);
    for (unsigned k = 0; k < TOLD_KINDS; k++)
        if (due[k] && w->cb.event != NULL)
            w->cb.event(w->cb.arg, kind[k], severity[k], text[k]);
    if (save_due && waits)
        save(w);
    else if (save_due && !loop_timer_pending(&w->save_timer))
        loop_timer_after(&w->save_timer, MONO_S);
}

static void look(void *arg)
{
    struct remote_write *w = arg;
    struct remote_write_status st;
    char text[300];

    loop_timer_after(&w->look_timer, 10 * MONO_S);
    remote_write_get_status(w, &st);
    if (w->is_behind ? st.lag_ns > 0 && st.failing : st.lag_ns > BEHIND)
        w->is_behind = true;
    else if (st.lag_ns <= BEHIND / 5)
        w->is_behind = false;
    if (w->cb.behind == NULL)
        return;
    snprintf(text, sizeof(text), "%lld min behind%s%s", (long long)(st.lag_ns / (60 * MONO_S)),
             st.text[0] ? ": " : "", st.text);
    w->cb.behind(w->cb.arg, w->is_behind, text);
}

void remote_write_get_status(struct remote_write *w, struct remote_write_status *ret)
{
    pthread_mutex_lock(&w->lock);
    *ret = w->status;
    int64_t pending = w->pending_ms;
    pthread_mutex_unlock(&w->lock);
    int64_t age = pending != 0 ? wall_now_ns() - pending * MONO_MS : 0;
    ret->lag_ns = age > 0 ? age : 0;
}

void remote_write_names(struct remote_write *w, const struct fabric *f, const struct fabric *known)
{
    if (f == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    const struct fabric *old_f = w->f, *old_known = w->known;
    w->f = fabric_ref(f);
    w->known = known != NULL ? fabric_ref(known) : NULL;
    w->new_names = true;
    pthread_cond_broadcast(&w->cond);
    pthread_mutex_unlock(&w->lock);
    fabric_unref(old_f);
    fabric_unref(old_known);
}

// --- life cycle ---

static void load_cursor(struct remote_write *w)
{
    void *p = NULL;
    size_t n;
    if (w->db == NULL || db_blob_get(w->db, w->fabric, CURSOR_NAME, &p, &n) != 0)
        return;
    char *text = p, *end = strchr(text, '\n');
    unsigned done;
    if (end != NULL && end - text < (long)sizeof(w->cursor) && sscanf(end, "%u", &done) == 1) {
        memcpy(w->cursor, text, (size_t)(end - text));
        w->done = done;
        w->at_cursor = w->careful = true;
    }
    free(p);
}

int remote_write_check(const struct remote_write_opts *o, struct err *e)
{
    static const char *const taken[] = {"guid", "port", "switch", "hca", "fabric"};
    if (o->num_labels > LABELS_MAX)
        return err_set(e, -E2BIG, "remote_write.labels", "at most %u labels", LABELS_MAX);
    for (unsigned i = 0; i < o->num_labels; i++) {
        for (unsigned k = 0; k < sizeof(taken) / sizeof(taken[0]); k++)
            if (strcmp(taken[k], o->label[i].name) == 0)
                return err_set(e, -EINVAL, "remote_write.labels", "\"%s\" is a label of weft's own",
                               taken[k]);
        for (unsigned k = 0; k < i; k++)
            if (strcmp(o->label[k].name, o->label[i].name) == 0)
                return err_set(e, -EINVAL, "remote_write.labels", "\"%.60s\" is there twice",
                               o->label[i].name);
        if (!rw_label_name_ok(o->label[i].name))
            return err_set(
                e, -EINVAL, "remote_write.labels",
                "\"%.60s\" is no name of a label: letters, digits and \"_\", not beginning with a digit",
                o->label[i].name);
    }
    return o->url[0] != 0 ? http_url_check(o->url, e) : 0;
}

static void take_labels(struct remote_write *w, const struct remote_write_opts *o)
{
    struct buf text = {0};
    for (unsigned i = 0; i < o->num_labels; i++) { // one piece of memory for all
        buf_add(&text, o->label[i].name, strlen(o->label[i].name) + 1);
        buf_add(&text, o->label[i].value, strlen(o->label[i].value) + 1);
    }
    w->label_text = buf_take(&text);
    for (const char *p = w->label_text; w->num_labels < o->num_labels; w->num_labels++) {
        w->label[w->num_labels].name = p;
        p += strlen(p) + 1;
        w->label[w->num_labels].value = p;
        p += strlen(p) + 1;
    }
}

static int open_http(struct remote_write *w, const struct remote_write_opts *o, struct err *e)
{
    static const char *const header[] = {"Content-Encoding: snappy", "Content-Type: application/x-protobuf",
                                         "X-Prometheus-Remote-Write-Version: 0.1.0", NULL};
    w->http = http_post_new(&(struct http_post_opts){.url = o->url,
                                                     .header = header,
                                                     .bearer_token_file = o->bearer_token_file,
                                                     .ca_file = o->ca_file},
                            e);
    return w->http != NULL ? 0 : e->code;
}

static void init_lock(struct remote_write *w)
{
    pthread_condattr_t attr;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->cond, &attr);
    pthread_condattr_destroy(&attr);
}

static void free_all(struct remote_write *w)
{
    http_post_free(w->http);
    series_reader_free(w->reader);
    fabric_unref(w->f);
    fabric_unref(w->known);
    fabric_unref(w->names_f);
    fabric_unref(w->names_known);
    tele_names_free(w->names);
    write_labels_done(&w->labels);
    write_maker_done(&w->maker);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->cond);
    free(w->fabric);
    free(w->fabric_label);
    free(w->dir);
    free(w->label_text);
    free(w);
}

struct remote_write *remote_write_new(struct loop *l, struct db *db, const struct remote_write_opts *o,
                                      const struct remote_write_callbacks *cb, struct err *e)
{
    if (remote_write_check(o, e) != 0)
        return NULL;
    struct remote_write *w = xcalloc(1, sizeof(*w));
    *w = (struct remote_write){.loop = l,
                               .db = db,
                               .cb = *cb,
                               .fabric = xstrdup(o->fabric),
                               .fabric_label = o->fabric_label != NULL ? xstrdup(o->fabric_label) : NULL,
                               .dir = xstrdup(o->dir),
                               .interval_ns = o->interval_ns,
                               .backfill_ns = o->backfill_ns};
    write_maker_init(&w->maker);
    init_lock(w);
    take_labels(w, o);
    if (open_http(w, o, e) != 0) {
        free_all(w);
        return NULL;
    }
    load_cursor(w);
    rng_init(&w->rng, (uint64_t)now_ns());
    w->waker = loop_waker_new(l, "remote-write", on_wake, w);
    loop_timer_init(&w->save_timer, l, "remote-write", save, w);
    loop_timer_init(&w->look_timer, l, "remote-write", look, w);
    loop_timer_after(&w->look_timer, 10 * MONO_S);
    if (thread_start(&w->thread, "weft-remote", thread_main, w) != 0) {
        err_set(e, -EAGAIN, "remote_write", "no thread can be made");
        loop_timer_cancel(&w->look_timer);
        loop_waker_free(w->waker);
        free_all(w);
        return NULL;
    }
    return w;
}

void remote_write_free(struct remote_write *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->cond);
    pthread_mutex_unlock(&w->lock);
    http_post_abort(w->http);
    pthread_join(w->thread, NULL);
    if (w->db != NULL)
        db_cancel(w->db, w);
    w->saving = w->saves_asked;
    save(w);
    loop_timer_cancel(&w->look_timer);
    loop_waker_free(w->waker);
    free_all(w);
}
