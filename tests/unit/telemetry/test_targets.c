// SPDX-License-Identifier: Apache-2.0
// What can be said of a configuration's targets and labels before anything is opened.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/err.h"
#include "telemetry/http_post.h"
#include "telemetry/notify.h"
#include "telemetry/remote_write.h"
#include "telemetry/syslog.h"

static void urls(void **state)
{
    static const char *const good[] = {"http://a", "https://a.b:9090/x?y=z",
                                       "http://[::1]:9090/api/v1/write"};
    static const char *const bad[] = {"",        "nothing", "a:9090",          "ftp://a/",
                                      "http://", "file",    "http://a:99999/", "unix:/x"};
    struct err e = {0};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_int_equal(http_url_check(good[i], &e), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        e = (struct err){0};
        assert_int_equal(http_url_check(bad[i], &e), -EINVAL);
        assert_non_null(strstr(e.text, "no URL of HTTP"));
    }
}

static int remote(const char *url, unsigned n, const struct rw_label *label, struct err *e)
{
    *e = (struct err){0};
    return remote_write_check(&(struct remote_write_opts){.url = url, .label = label, .num_labels = n}, e);
}

static void labels(void **state)
{
    struct rw_label l[33];
    struct err e;
    l[0] = (struct rw_label){"cluster", "a"};
    l[1] = (struct rw_label){"_room2", ""};
    assert_int_equal(remote("http://a/", 2, l, &e), 0);
    assert_int_equal(remote("", 2, l, &e), 0); // nothing is sent, and the labels may stand there
    assert_int_equal(remote("ftp://a/", 2, l, &e), -EINVAL);
    static const char *const bad[] = {"", "2nd", "a-b", "__x", "guid", "fabric", "cluster"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        l[1].name = bad[i];
        assert_int_equal(remote("", 2, l, &e), -EINVAL);
        assert_string_equal(e.where, "remote_write.labels");
    }
    assert_int_equal(remote("", 33, l, &e), -E2BIG);
}

static int targets(const char *alertmanager, const char *webhook, const char *syslog)
{
    const char *a[] = {alertmanager, NULL}, *w[] = {webhook, NULL}, *s[] = {syslog, NULL};
    struct err e = {0};
    int rc = notifier_check(&(struct notifier_opts){.alertmanager = a, .webhook = w, .syslog = s}, &e);
    assert_int_equal(rc, e.code);
    return rc;
}

static void notifications(void **state)
{
    assert_int_equal(targets("http://a:9093", "https://b/x", "udp://c"), 0);
    assert_int_equal(targets(NULL, NULL, NULL), 0);
    assert_int_equal(targets("a:9093", NULL, NULL), -EINVAL);
    assert_int_equal(targets("http://a:9093", "b", NULL), -EINVAL);
    assert_int_equal(targets("http://a:9093", "http://b", "tcp://"), -EINVAL);
    assert_int_equal(targets(NULL, NULL, "unix:dev/log"), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls),
        cmocka_unit_test(labels),
        cmocka_unit_test(notifications),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
