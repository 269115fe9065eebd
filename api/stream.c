// SPDX-License-Identifier: Apache-2.0
// Server-sent events. The last events are kept rendered once for all streams; a stream holds nothing but the
// id it has come to, and reads the database when it is further behind than these. So a slow reader costs no
// memory and loses nothing: it is simply late, and one that reads nothing at all is cut off by the
// connection's time-out.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_priv.h"
#include "lib/xalloc.h"

#define BEAT (15 * MONO_S)
#define CHUNK (32u << 10) // a stream's own buffer is filled up to this
#define FROM_DB 64        // events read at once by one that is far behind
#define STREAMS_MAX 2000

struct stream {
    struct stream *next, *prev;
    struct api *api;
    struct listener *listener;
    struct MHD_Connection *conn;
    char *fabric, *kind;
    uint64_t at; // id of the last event looked at
    bool suspended, beat;
    struct buf out;
    size_t sent;
};

static void put_frame(struct buf *b, const struct db_event *ev)
{
    buf_printf(b, "id: %llu\ndata: ", (unsigned long long)ev->id);
    event_put(b, ev); // one line: JSON has no raw newline
    buf_puts(b, "\n\n");
}

static bool wanted(const struct stream *s, const char *fabric, const char *kind)
{
    return (s->fabric == NULL || strcmp(s->fabric, fabric) == 0) &&
           (s->kind == NULL || strcmp(s->kind, kind) == 0);
}

// --- the frames that all streams share ---

static void frame_clear(struct frame *f)
{
    free(f->fabric);
    free(f->kind);
    free(f->text);
    *f = (struct frame){0};
}

static void add_frame(void *arg, const struct db_event *ev)
{
    struct api *a = arg;
    struct frame *f = &a->streams.frame[a->streams.head];
    struct buf b = {0};

    frame_clear(f);
    put_frame(&b, ev);
    f->id = ev->id;
    f->fabric = xstrdup(ev->fabric);
    f->kind = xstrdup(ev->kind);
    f->len = b.len;
    f->text = buf_take(&b);
    a->streams.head = (a->streams.head + 1) % FRAMES;
    a->streams.n += a->streams.n < FRAMES;
    a->streams.last_id = ev->id;
}

static const struct frame *frame_at(const struct api *a, unsigned i) // 0 = oldest
{
    return &a->streams.frame[(a->streams.head + FRAMES - a->streams.n + i) % FRAMES];
}

static void wake(struct stream *s)
{
    if (!s->suspended)
        return;
    s->suspended = false;
    MHD_resume_connection(s->conn);
    http_kick(s->listener);
}

static void wake_all(void *arg)
{
    struct api *a = arg;
    struct db_event_query q = {.after_id = a->streams.last_id, .limit = FRAMES};
    long n;

    do {
        q.after_id = a->streams.last_id;
        n = db_event_query(a->c.db, &q, add_frame, a);
    } while (n == FRAMES);
    for (struct stream *s = a->streams.first; s != NULL; s = s->next)
        wake(s);
}

void api_event(struct api *a, uint64_t event_id)
{
    if (a->streams.first != NULL && a->c.db != NULL && event_id > a->streams.last_id)
        loop_post(a->c.loop, &a->streams.wake);
}

static void beat(void *arg)
{
    struct api *a = arg;
    for (struct stream *s = a->streams.first; s != NULL; s = s->next) {
        s->beat = true;
        wake(s);
    }
    if (a->streams.first != NULL)
        loop_timer_after(&a->streams.beat, BEAT);
}

// --- one stream ---

static void from_db(void *arg, const struct db_event *ev)
{
    struct stream *s = arg;
    put_frame(&s->out, ev);
    s->at = ev->id;
}

static void fill(struct stream *s)
{
    struct api *a = s->api;

    buf_clear(&s->out);
    s->sent = 0;
    while (a->c.db != NULL && s->at < a->streams.last_id && s->out.len < CHUNK) {
        if (a->streams.n > 0 && s->at + 1 >= frame_at(a, 0)->id) {
            for (unsigned i = 0; i < a->streams.n && s->out.len < CHUNK; i++) {
                const struct frame *f = frame_at(a, i);
                if (f->id <= s->at)
                    continue;
                if (wanted(s, f->fabric, f->kind))
                    buf_add(&s->out, f->text, f->len);
                s->at = f->id;
            }
            continue;
        }
        struct db_event_query q = {.fabric = s->fabric, .kind = s->kind, .after_id = s->at, .limit = FROM_DB};
        uint64_t newest = a->streams.last_id;
        if (db_event_query(a->c.db, &q, from_db, s) < FROM_DB && s->at < newest)
            s->at = newest; // no more of these, pruned meanwhile, or not to be read
    }
    if (s->beat && s->out.len == 0)
        buf_puts(&s->out, ": \n\n");
    s->beat = false;
}

static ssize_t stream_read(void *arg, uint64_t pos, char *to, size_t max)
{
    struct stream *s = arg;
    (void)pos;
    if (s->api->streams.closing)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (s->sent == s->out.len)
        fill(s);
    size_t n = s->out.len - s->sent;
    if (n == 0) {
        s->suspended = true;
        MHD_suspend_connection(s->conn);
        return 0;
    }
    if (n > max)
        n = max;
    memcpy(to, s->out.data + s->sent, n);
    s->sent += n;
    return (ssize_t)n;
}

static void stream_free(void *arg)
{
    struct stream *s = arg;
    struct api *a = s->api;
    if (s->prev != NULL)
        s->prev->next = s->next;
    else
        a->streams.first = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
    a->streams.count--;
    if (a->streams.first == NULL)
        loop_timer_cancel(&a->streams.beat);
    buf_done(&s->out);
    free(s->fabric);
    free(s->kind);
    free(s);
}

static uint64_t start_at(struct request *r, uint64_t newest)
{
    const char *last = http_header(r, "Last-Event-ID");
    uint64_t after = newest;
    if (last != NULL && last[0] >= '0' && last[0] <= '9')
        after = strtoull(last, NULL, 10);
    else if (query_str(r, "after") != NULL)
        after = (uint64_t)query_int(r, "after", 0);
    return after < newest ? after : newest; // an id of another database means: from now on
}

void get_stream(struct request *r)
{
    struct api *a = r->api;
    const char *fabric = query_str(r, "fabric"), *kind = query_str(r, "kind");

    if (a->streams.count >= STREAMS_MAX) {
        answer_problem(r, 503, "%d event streams are open, which is the limit", STREAMS_MAX);
        return;
    }
    r->status = 200;
    r->type = "text/event-stream";
    if (strcmp(r->method, "HEAD") == 0) // libmicrohttpd would end its empty body with a chunk
        return;
    uint64_t newest = a->c.db != NULL ? db_event_last_id(a->c.db) : 0;
    if (a->streams.first == NULL) {
        a->streams.n = 0; // what was kept may have a gap behind it
        a->streams.last_id = newest;
        loop_timer_after(&a->streams.beat, BEAT);
    }
    struct stream *s = xcalloc(1, sizeof(*s));
    *s = (struct stream){.api = a,
                         .listener = r->listener,
                         .conn = r->conn,
                         .fabric = fabric ? xstrdup(fabric) : NULL,
                         .kind = kind ? xstrdup(kind) : NULL,
                         .at = start_at(r, newest),
                         .next = a->streams.first};
    buf_printf(&s->out, ": weft\nretry: 2000\n\n");
    if (a->streams.first != NULL)
        a->streams.first->prev = s;
    a->streams.first = s;
    a->streams.count++;
    r->response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, CHUNK, stream_read, s, stream_free);
    if (r->response == NULL) {
        stream_free(s);
        answer_problem(r, 503, "no memory for another stream");
    }
}

// --- life cycle ---

void streams_init(struct api *a)
{
    loop_timer_init(&a->streams.beat, a->c.loop, "api", beat, a);
    loop_task_init(&a->streams.wake, "api", wake_all, a);
}

void streams_close(struct api *a)
{
    a->streams.closing = true;
    for (struct stream *s = a->streams.first; s != NULL; s = s->next)
        wake(s);
}

void streams_done(struct api *a)
{
    loop_timer_cancel(&a->streams.beat);
    loop_unpost(a->c.loop, &a->streams.wake);
    for (unsigned i = 0; i < FRAMES; i++)
        frame_clear(&a->streams.frame[i]);
}
