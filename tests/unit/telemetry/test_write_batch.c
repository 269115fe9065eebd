// SPDX-License-Identifier: Apache-2.0
// Points to requests: bounded, all there, and the same again from the same points. What ports are called.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/rng.h"
#include "lib/xalloc.h"
#include "telemetry/write_batch.h"

#include <snappy-c.h>

static const struct fabric *f;
static const struct tele_names *names;
static uint32_t ports;

static int setup(void **state)
{
    struct err e;
    f = topogen_make("rail-64", &e);
    struct tele_key *key = xcalloc(f->num_ports + 2ul, sizeof(*key));
    for (uint32_t i = 0; i < f->num_ports; i++)
        if (f->port[i].num != 0 && port_valid(f->port[i].peer))
            key[ports++] = (struct tele_key){f->node[f->port[i].node.i].guid, f->port[i].num};
    key[ports++] = (struct tele_key){0x999, 1}; // nobody's
    names = tele_names_new(key, ports, f, NULL);
    free(key);
    return 0;
}

static int teardown(void **state)
{
    tele_names_free(names);
    fabric_unref(f);
    return 0;
}

static void feed(struct write_maker *m, unsigned sweeps, uint64_t have, uint64_t seed)
{
    struct rng g;
    uint64_t value[TELE_COUNTERS];
    rng_init(&g, seed);
    for (uint32_t i = 0; i < ports; i++)
        for (unsigned k = 0; k < sweeps; k++) {
            uint64_t h = have & (rng_below(&g, 8) ? UINT64_MAX : rng_u64(&g));
            for (unsigned c = 0; c < TELE_COUNTERS; c++)
                value[c] = rng_u64(&g) >> 20;
            if (h != 0)
                write_maker_point(m, &(struct series_point){i, 1000000 + k * 10000, h, value});
        }
    write_maker_end(m);
}

// How many samples a request holds, by its tags.
static unsigned samples_in(const struct buf *block, size_t *ret_bytes)
{
    size_t n;
    unsigned found = 0;
    assert_int_equal(snappy_uncompressed_length(block->data, block->len, &n), SNAPPY_OK);
    uint8_t *p = malloc(n + 1);
    assert_int_equal(snappy_uncompress(block->data, block->len, (char *)p, &n), SNAPPY_OK);
    for (size_t i = 0; i < n;) {
        assert_int_equal(p[i++], 10);
        uint64_t len = 0;
        for (unsigned shift = 0;; shift += 7) {
            len |= (uint64_t)(p[i] & 0x7f) << shift;
            if (!(p[i++] & 0x80))
                break;
        }
        for (size_t end = i + len; i < end;) {
            found += p[i] == 18;
            assert_true(p[i] == 10 || p[i] == 18);
            i += 2u + p[i + 1]; // labels and samples are short here
        }
    }
    free(p);
    *ret_bytes = n;
    return found;
}

static void bounded_and_complete(void **state)
{
    static const unsigned sweeps[] = {1, 7, 60, 64, 130};
    struct write_labels labels;
    struct write_maker m;
    write_labels_make(&labels, names, NULL, (struct rw_label[]){{"cluster", "a"}}, 1);
    write_maker_init(&m);
    m.names = names;
    m.labels = &labels;
    for (unsigned i = 0; i < 5; i++) {
        write_maker_clear(&m);
        feed(&m, sweeps[i], UINT64_MAX, i);
        uint64_t sum = 0;
        for (unsigned k = 0; k < m.num; k++) {
            size_t bytes;
            assert_true(m.batch[k].samples <= WRITE_BATCH_SAMPLES);
            assert_int_equal(samples_in(&m.batch[k].block, &bytes), m.batch[k].samples);
            assert_true(bytes <= WRITE_BATCH_BYTES);
            assert_true(m.batch[k].first_ms >= 1000000 && m.batch[k].last_ms <= 1000000 + sweeps[i] * 10000);
            sum += m.batch[k].samples;
        }
        assert_int_equal(sum, m.samples);
        // Every counter of every point, but those of the port that nobody knows.
        struct rng g;
        uint64_t due = 0;
        rng_init(&g, i);
        for (uint32_t p = 0; p < ports; p++)
            for (unsigned k = 0; k < sweeps[i]; k++) {
                uint64_t h = rng_below(&g, 8) ? UINT64_MAX : rng_u64(&g);
                for (unsigned c = 0; c < TELE_COUNTERS; c++)
                    rng_u64(&g);
                due += (unsigned)__builtin_popcountll(h & ((1ull << TELE_COUNTERS) - 1));
            }
        assert_int_equal(sum + m.unnamed, due);
        assert_true(m.unnamed > 0);
    }
    write_maker_done(&m);
    write_labels_done(&labels);
}

static void the_same_again(void **state)
{
    struct write_labels labels;
    struct write_maker m[2];
    write_labels_make(&labels, names, "x", NULL, 0);
    for (unsigned i = 0; i < 2; i++) {
        write_maker_init(&m[i]);
        m[i].names = names;
        m[i].labels = &labels;
        if (i == 1) { // used before
            feed(&m[i], 3, UINT64_MAX, 99);
            write_maker_clear(&m[i]);
        }
        feed(&m[i], 20, (1ull << 20) - 1, 5);
    }
    assert_true(m[0].num > 3);
    assert_int_equal(m[0].num, m[1].num);
    for (unsigned k = 0; k < m[0].num; k++) {
        assert_int_equal(m[0].batch[k].block.len, m[1].batch[k].block.len);
        assert_memory_equal(m[0].batch[k].block.data, m[1].batch[k].block.data, m[0].batch[k].block.len);
    }
    write_maker_done(&m[0]);
    write_maker_done(&m[1]);
    write_labels_done(&labels);
}

static void names_of_ports(void **state)
{
    unsigned switches = 0, hcas = 0;
    assert_int_equal(names->num, ports);
    for (uint32_t i = 0; i + 1 < ports; i++) {
        const struct node *n = fabric_by_guid(f, names->name[i].node_guid);
        assert_string_equal(names->name[i].node, fabric_desc(f, n));
        if (n->type == NODE_SWITCH) {
            assert_int_equal(names->name[i].kind, TELE_OF_SWITCH);
            assert_string_equal(names->name[i].sw, "");
            switches++;
        } else {
            assert_int_equal(names->name[i].kind, TELE_OF_HCA);
            const struct node *peer =
                fabric_peer_node(f, fabric_port(f, fabric_port_at(f, n, names->name[i].num)));
            assert_string_equal(names->name[i].sw, fabric_desc(f, peer));
            hcas++;
        }
    }
    assert_true(switches > 0 && hcas == 64);
    assert_int_equal(names->name[ports - 1].kind, TELE_OF_NOBODY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounded_and_complete),
        cmocka_unit_test(the_same_again),
        cmocka_unit_test(names_of_ports),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
