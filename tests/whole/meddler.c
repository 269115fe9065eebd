// SPDX-License-Identifier: Apache-2.0
#include "tests/whole/meddler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/err.h"

static void take(void *arg, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct meddler *m = arg;
    struct mad_hdr h;
    (void)from;
    mad_hdr_decode(mad, &h);
    if (status != 0 || (uint32_t)h.tid != m->tid)
        return;
    memcpy(m->answer, mad, MAD_SIZE);
    m->answered = true;
}

void meddler_init(struct meddler *m, struct rig *r)
{
    struct err e = {0};
    *m = (struct meddler){.r = r, .tid = 0x4000};
    m->t = sim_attach(r->sim, 0, &e);
    assert_non_null(m->t);
    m->t->recv = take;
    m->t->recv_arg = m;
}

void meddler_done(struct meddler *m)
{
    m->t->ops->free(m->t);
}

void meddler_try(struct meddler *m, uint16_t lid, uint8_t method, uint16_t attr_id, uint32_t attr_mod,
                 const uint8_t *data)
{
    uint8_t mad[MAD_SIZE];

    m->answered = false;
    assert_int_equal(mad_smp_build(mad, &(struct mad_smp_to){.dr = false}, method, attr_id, attr_mod,
                                   ++m->tid, m->m_key, NULL, NULL),
                     0);
    if (data != NULL)
        memcpy(mad + MAD_SMP_DATA_OFFSET, data, MAD_SMP_DATA_SIZE);
    assert_int_equal(m->t->ops->send(m->t, mad, &(struct mad_addr){.lid = lid}, MONO_S), 0);
}

static void request(struct meddler *m, uint16_t lid, uint8_t method, uint16_t attr_id, uint32_t attr_mod,
                    const uint8_t *data)
{
    struct mad_hdr h;

    meddler_try(m, lid, method, attr_id, attr_mod, data);
    assert_true(loop_run_until(m->r->loop, &m->answered, MONO_S));
    mad_hdr_decode(m->answer, &h);
    assert_int_equal(mad_status(&h), 0);
}

const uint8_t *meddler_get(struct meddler *m, uint16_t lid, uint16_t attr_id, uint32_t attr_mod)
{
    request(m, lid, MAD_METHOD_GET, attr_id, attr_mod, NULL);
    return m->answer + MAD_SMP_DATA_OFFSET;
}

void meddler_set(struct meddler *m, uint16_t lid, uint16_t attr_id, uint32_t attr_mod, const uint8_t *data)
{
    request(m, lid, MAD_METHOD_SET, attr_id, attr_mod, data);
}

void meddler_change(struct meddler *m, uint16_t lid, uint16_t attr_id, uint32_t attr_mod, const char *field,
                    uint64_t value)
{
    const struct mad_attr *attr = mad_attr_find(MAD_CLASS_SM_LID, attr_id);
    uint64_t host[64];
    uint8_t data[MAD_SMP_DATA_SIZE] = {0};

    assert_true(attr->struct_size <= sizeof(host));
    mad_attr_decode(attr, meddler_get(m, lid, attr_id, attr_mod), host);
    mad_field_set(mad_field_find(attr, field), host, 0, value);
    if (attr_id == MAD_ATTR_PORT_INFO && strcmp(field, "port_state") != 0) {
        mad_field_set(mad_field_find(attr, "port_state"), host, 0, MAD_PORT_NO_CHANGE);
        mad_field_set(mad_field_find(attr, "port_physical_state"), host, 0, MAD_PHYS_NO_CHANGE);
    }
    mad_attr_encode(attr, host, data);
    meddler_set(m, lid, attr_id, attr_mod, data);
}
