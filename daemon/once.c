// SPDX-License-Identifier: Apache-2.0
#include "daemon/once.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "mad/mad.h"

#define ONCE_SWEEPS 6 // under heavy loss a Set may need another sweep

void once_swept(struct once *o, struct fab *f, const struct sm_sweep *s)
{
    struct sm_status st;

    if (o->over)
        return;
    o->sweeps++;
    sm_get_status(fab_sm(f), &st);
    bool clean = s->ok && strstr(s->text, "some Sets failed") == NULL;
    if (clean || (s->ok && o->sweeps >= ONCE_SWEEPS)) {
        o->ok = st.proof.ok;
        if (!o->ok)
            err_set(&o->err, -EPROTO, st.route.why, "not every end is reached: %s", st.proof.counter_example);
    } else if (s->ok || (st.error.code != -EBUSY && st.error.code != -ENETDOWN && o->sweeps < ONCE_SWEEPS)) {
        return;
    } else {
        o->err = st.error;
    }
    o->over = true;
    loop_stop(o->loop);
}

// The keys that only an opened or discovered fabric has a value for.
static void put_unknown(json_t *o)
{
    static const char *const null[] = {"nodes", "switches", "links", "engine", "why", "proof"};
    for (size_t i = 0; i < sizeof(null) / sizeof(null[0]); i++)
        json_object_set_new(o, null[i], json_null());
    json_object_set_new(o, "mads", json_object());
    json_object_set_new(o, "mads_sent", json_integer(0));
    json_object_set_new(o, "phases", json_array());
    json_object_set_new(o, "verified", json_false());
    json_object_set_new(o, "findings", json_array());
}

static json_t *mads_json(const struct fab *f, uint64_t *ret_sent)
{
    struct mad_count c[256];
    size_t n = mad_engine_counts(fab_api((struct fab *)f)->engine, c, 256);
    json_t *o = json_object();
    char key[64];

    *ret_sent = 0;
    for (size_t i = 0; i < n && i < 256; i++) {
        if (c[i].sent == 0)
            continue;
        const char *attr = mad_attr_name(c[i].mgmt_class, c[i].attr_id),
                   *method = mad_method_name(c[i].method);
        *ret_sent += c[i].sent;
        snprintf(key, sizeof(key), "%s.%s", attr ? attr : "?", method ? method : "?");
        json_object_set_new(
            o, key, json_integer(json_integer_value(json_object_get(o, key)) + (json_int_t)c[i].sent));
    }
    return o;
}

static json_t *phases_json(const struct sm *sm, int sweeps)
{
    json_t *a = json_array();
    for (int i = sweeps - 1; i >= 0; i--) {
        const struct sm_sweep *s = sm_history(sm, (unsigned)i);
        for (unsigned k = 0; s != NULL && k < s->num_phases; k++)
            json_array_append_new(a, json_pack("{s:s, s:f, s:I, s:i}", "name", s->phase[k].name, "seconds",
                                               mono_seconds(s->phase[k].ns), "mads",
                                               (json_int_t)s->phase[k].mads, "sweep", sweeps - i));
    }
    return a;
}

static const char *severity_name(enum finding_severity s)
{
    static const char *const name[] = {"info", "warning", "error"};
    return name[s];
}

static void add_findings(json_t *a, const struct findings *f)
{
    for (size_t i = 0; f != NULL && i < f->n; i++)
        json_array_append_new(a, json_pack("{s:s, s:s, s:s, s:s, s:i}", "severity",
                                           severity_name(f->item[i].severity), "code", f->item[i].code,
                                           "where", f->item[i].where, "text", f->item[i].text, "count",
                                           (int)f->item[i].count));
}

static void put_fabric(json_t *o, struct fab *f, const struct once *once)
{
    struct sm *sm = fab_sm(f);
    const struct fabric *fb = sm_fabric(sm);
    struct sm_status st;
    uint64_t sent;
    json_t *findings = json_array();

    sm_get_status(sm, &st);
    json_object_set_new(o, "mads", mads_json(f, &sent));
    json_object_set_new(o, "mads_sent", json_integer((json_int_t)sent));
    json_object_set_new(o, "phases", phases_json(sm, once->sweeps));
    json_object_set_new(o, "verified", json_boolean(once->ok && st.proof.ok));
    add_findings(findings, fab_api(f)->offline_findings);
    add_findings(findings, sm_findings(sm));
    json_object_set_new(o, "findings", findings);
    if (fb == NULL)
        return;
    json_object_set_new(o, "nodes", json_integer(fb->num_nodes));
    json_object_set_new(o, "switches", json_integer(fb->num_switches));
    json_object_set_new(o, "links", json_integer(fb->num_links));
    json_object_set_new(o, "engine", json_string(sm_tables(sm)->engine));
    json_object_set_new(o, "why", json_string(st.route.why));
    json_object_set_new(o, "proof",
                        json_pack("{s:I, s:I, s:I, s:i, s:i, s:s}", "pairs", (json_int_t)st.proof.pairs,
                                  "disconnected", (json_int_t)st.proof.disconnected, "unreached",
                                  (json_int_t)st.proof.unreached, "max_hops", (int)st.proof.max_hops,
                                  "channels", (int)st.proof.channels, "counter_example",
                                  st.proof.counter_example));
}

static const char *error_code(int code)
{
    switch (code) {
    case -ENODEV:
        return "no-device";
    case -EACCES:
    case -EPERM:
        return "no-permission";
    case -ENOENT:
        return "not-found";
    case -EPROTONOSUPPORT:
        return "not-infiniband";
    case -EBUSY:
        return "busy";
    case -ENETDOWN:
        return "port-down";
    case -ETIMEDOUT:
        return "timeout";
    case -EINVAL:
        return "invalid";
    default:
        return "failed";
    }
}

int once_print(const struct once *once, struct fab *f, const char *fabric_name, FILE *out)
{
    json_t *o = json_object();

    json_object_set_new(o, "ok", json_boolean(once->ok));
    json_object_set_new(o, "fabric", json_string(fabric_name));
    json_object_set_new(o, "seconds",
                        json_real(mono_seconds(mono_sub(loop_now_precise(once->loop), once->began))));
    json_object_set_new(o, "cpu_seconds", json_real(mono_seconds(cpu_now_ns())));
    json_object_set_new(o, "peak_rss_bytes", json_integer((json_int_t)peak_rss_bytes()));
    put_unknown(o);
    if (f != NULL && fab_sm(f) != NULL)
        put_fabric(o, f, once);
    if (!once->ok)
        json_object_set_new(o, "error",
                            json_pack("{s:s, s:s, s:s}", "code", error_code(once->err.code), "text",
                                      once->err.text, "where", once->err.where));
    else
        json_object_set_new(o, "error", json_null());
    errno = 0;
    bool written = json_dumpf(o, out, JSON_COMPACT | JSON_REAL_PRECISION(9)) == 0 &&
                   fputc('\n', out) != EOF && fflush(out) == 0;
    json_decref(o);
    return written ? 0 : errno ? -errno : -EIO;
}
