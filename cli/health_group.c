// SPDX-License-Identifier: Apache-2.0
// weft health for people: three links or more of one device that are in one state, of one rule, are one row.
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/tele.h"
#include "cli/text.h"

#define GROUP_MIN 3

// A switch, or a host without its adapter: "gpu-0001" of "gpu-0001 mlx5_3".
static void key_of(json_t *x, const char *end, char *buf, size_t size)
{
    json_t *e = json_object_get(x, end);
    const char *name = js_str(e, "name"), *rule = js_str(x, "rule");
    int n = (int)strcspn(name, " "), head;
    buf[0] = 0;
    if (n == 0 || rule[0] == 0)
        return;
    head = snprintf(buf, size, "%.20s %.10s ", js_str(x, "state"), rule);
    snprintf(buf + head, size - (size_t)head, "%.*s", n, name);
}

// Of its two devices that with which more such links are; NULL: it is alone with both.
static const char *group_of(json_t *x, json_t *counts, char buf[300])
{
    char key[2][200] = {"", ""};
    json_int_t n[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        key_of(x, i ? "z" : "a", key[i], sizeof(key[i]));
        n[i] = key[i][0] ? json_integer_value(json_object_get(counts, key[i])) : 0;
    }
    int best = n[1] > n[0];
    if (n[best] < GROUP_MIN)
        return NULL;
    snprintf(buf, 300, "%s", key[best]);
    return buf;
}

static void count(json_t *counts, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(counts, key));
    json_object_set_new(counts, key, json_integer(n + 1));
}

static json_t *group_row(json_t *x, const char *key, json_int_t n)
{
    json_t *row = json_copy(x);
    const char *device = strchr(strchr(key, ' ') + 1, ' ') + 1;
    json_object_set_new(row, "place", json_sprintf("%s: %lld links", device, (long long)n));
    json_object_set_new(row, "said", json_sprintf("such as %s: %s", js_str(x, "place"), js_str(x, "said")));
    return row;
}

json_t *health_grouped(json_t *items)
{
    json_t *all = json_object(), *chosen = json_object(), *done = json_object(), *rows = json_array(), *x;
    char key[300];
    size_t i;
    json_array_foreach(items, i, x)
    {
        for (int e = 0; e < 2; e++) {
            key_of(x, e ? "z" : "a", key, sizeof(key));
            if (key[0])
                count(all, key);
        }
    }
    json_array_foreach(items, i, x)
    {
        if (group_of(x, all, key) != NULL)
            count(chosen, key);
    }
    json_array_foreach(items, i, x)
    {
        json_int_t n = group_of(x, all, key) != NULL ? json_integer_value(json_object_get(chosen, key)) : 0;
        if (n < GROUP_MIN) {
            json_array_append(rows, x);
        } else if (json_object_get(done, key) == NULL) {
            json_object_set_new(done, key, json_true());
            json_array_append_new(rows, group_row(x, key, n));
        }
    }
    json_decref(all);
    json_decref(chosen);
    json_decref(done);
    return rows;
}
