// SPDX-License-Identifier: Apache-2.0
// The writer thread: sweep after sweep from the queue; between them what can wait.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/series_priv.h"
#include "lib/log.h"
#include "lib/xalloc.h"

// Chunks, minutes and hours that cannot be written count as failure, but cost nothing: they are made later.
static int what_fails(const struct series *s, int rc, const char **ret_text)
{
    *ret_text = s->out[SERIES_RAW].file.fail_text;
    for (int t = 0; t < SERIES_TIERS && !rc; t++) {
        rc = s->out[t].chunk_error ? s->out[t].chunk_error : s->out[t].error;
        *ret_text = s->out[t].file.fail_text;
    }
    return rc;
}

static void tell(struct series *s, int rc)
{
    struct series_health *h = &s->health;
    const char *text;
    int status = what_fails(s, rc, &text);
    h->left_out += rc != 0;
    h->sweeps += rc == 0;
    if (status && !h->status)
        log_error("series-write-failed", "folder=%s error=\"%s\"", s->dir, text);
    if (!status && h->status)
        log_notice("series-write-recovered", "folder=%s left_out=%llu", s->dir,
                   (unsigned long long)h->left_out);
    h->status = status;
    snprintf(h->text, sizeof(h->text), "%.*s", (int)sizeof(h->text) - 1, status ? text : "");
}

static void report(struct series *s) // with mu held
{
    struct series_health *h = &s->health;
    h->cpu_ns = thread_cpu_ns();
    memcpy(h->bytes, s->kept.bytes, sizeof(h->bytes));
    memcpy(h->files, s->kept.files, sizeof(h->files));
    memcpy(h->first_ms, s->kept.first_ms, sizeof(h->first_ms));
    h->aside = s->kept.aside;
    h->aside_bytes = s->kept.aside_bytes;
    memcpy(h->aside_last, s->kept.aside_last, sizeof(h->aside_last));
}

static void write_frame(struct series *s, const struct series_frame *f)
{
    int64_t began = mono_now().ns;
    for (int t = 0; t < SERIES_TIERS; t++)
        series_out_watch(s, &s->out[t]);
    int rc = series_tier_write(s, SERIES_RAW, &f->s);
    int64_t end = mono_now().ns, took = end - began;
    series_keep(s, f->s.at_ms, end);
    pthread_mutex_lock(&s->mu);
    tell(s, rc);
    s->health.last_commit_ns = took;
    s->health.max_commit_ns = took > s->health.max_commit_ns ? took : s->health.max_commit_ns;
    report(s);
    pthread_mutex_unlock(&s->mu);
}

// When nothing waits.
static void idle(struct series *s)
{
    for (int t = 0; t < SERIES_TIERS; t++)
        series_out_idle(&s->out[t], mono_now().ns);
}

static void learn_keys(struct series *s, uint32_t num) // with mu held
{
    if (num <= s->wnum)
        return;
    s->wkey = xreallocarray(s->wkey, num, sizeof(*s->wkey));
    memcpy(s->wkey + s->wnum, s->key + s->wnum, (num - s->wnum) * sizeof(*s->wkey));
    s->wnum = num;
}

static struct series_frame *next_frame(struct series *s) // with mu held
{
    struct series_frame *f = s->queue;
    if (f) {
        s->queue = f->next;
        if (!s->queue)
            s->queue_tail = &s->queue;
        learn_keys(s, f->known);
    }
    return f;
}

static void done_frame(struct series *s, struct series_frame *f) // with mu held
{
    s->queued--;
    if (s->spare) { // one is enough as long as the writer keeps up
        series_frame_free(f);
    } else {
        f->next = NULL;
        s->spare = f;
    }
    pthread_cond_broadcast(&s->done);
}

void *series_writer_main(void *arg)
{
    struct series *s = arg;
    series_tier_begin(s);
    series_keep(s, 0, mono_now().ns);
    pthread_mutex_lock(&s->mu);
    report(s);
    for (;;) {
        struct series_frame *f = next_frame(s);
        if (f) {
            pthread_mutex_unlock(&s->mu);
            write_frame(s, f);
            pthread_mutex_lock(&s->mu);
            done_frame(s, f);
        }
        if (s->queue)
            continue;
        if (s->stop)
            break;
        pthread_mutex_unlock(&s->mu);
        idle(s);
        pthread_mutex_lock(&s->mu);
        while (!s->queue && !s->stop)
            pthread_cond_wait(&s->wake, &s->mu);
    }
    pthread_mutex_unlock(&s->mu);
    return NULL;
}
