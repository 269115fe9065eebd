// SPDX-License-Identifier: Apache-2.0
// What modules and devices measure of themselves. No MAD tells it: it is written as ibdiagnet2.db_csv has it,
// and there is nothing of what was never set.
#include "sim/sim_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/buf.h"
#include "lib/guid.h"
#include "lib/xalloc.h"

#define LANES 4
#define RX_LOW (-9)
#define TX_LOW (-8)
#define DBM_HIGH 4
#define WELL_DBM 0.0
#define FAN_RPM 8000
#define FAN_MIN 4000

struct sim_sensors {
    uint64_t guid;
    unsigned port; // 0: the device
    bool adapter;
    struct sim_module module;
    struct sim_device device;
};

// Found or made.
static struct sim_sensors *sensors(struct sim *s, uint64_t guid, unsigned port)
{
    for (uint32_t i = 0; i < s->num_sensors; i++)
        if (s->sensors[i].guid == guid && s->sensors[i].port == port)
            return &s->sensors[i];
    s->sensors = xreallocarray(s->sensors, s->num_sensors + 1, sizeof(*s->sensors));
    s->sensors[s->num_sensors] = (struct sim_sensors){.guid = guid, .port = port};
    return &s->sensors[s->num_sensors++];
}

static bool is_within(double v, double low, double high)
{
    return v >= low && v <= high;
}

int sim_module_set(struct sim *s, uint64_t node_guid, unsigned port, const struct sim_module *m)
{
    const struct sim_port *p = sim_port_by(s, node_guid, port);
    if (!p)
        return -ENOENT;
    if (p->num == 0 || !is_within(m->celsius, -100, 200) || !is_within(m->rx_dbm, -60, 20) ||
        !is_within(m->tx_dbm, -60, 20))
        return -EINVAL;
    sensors(s, node_guid, port)->module = *m;
    s->sensed++;
    return 0;
}

int sim_device_set(struct sim *s, uint64_t node_guid, const struct sim_device *d)
{
    const struct sim_node *n = sim_node_by_guid(s, node_guid);
    if (!n)
        return -ENOENT;
    if (!is_within(d->celsius, -100, 200) || d->failed_fans > SIM_FANS || d->failed_supplies > SIM_SUPPLIES ||
        (!is_switch(n) && d->failed_fans + d->failed_supplies > 0))
        return -EINVAL;
    struct sim_sensors *x = sensors(s, node_guid, 0);
    x->device = *d;
    x->adapter = !is_switch(n);
    s->sensed++;
    return 0;
}

uint64_t sim_sensed(const struct sim *s)
{
    return s->sensed;
}

// Of dBm, as the file has it: 16 bits.
static unsigned word(int dbm)
{
    return (unsigned)dbm & 0xffff;
}

static void modules(const struct sim *s, struct buf *ret)
{
    buf_puts(ret, "START_CABLE_INFO\nNodeGuid,PortNum,Vendor,PN,SN,Temperature,RX1Power,RX2Power,RX3Power,"
                  "RX4Power,TX1Power,TX2Power,TX3Power,TX4Power,RXPowerHighThresh,RXPowerLowThresh,"
                  "TXPowerHighThresh,TXPowerLowThresh,ModuleStatus\n");
    for (uint32_t i = 0; i < s->num_sensors; i++) {
        const struct sim_sensors *x = &s->sensors[i];
        if (x->port == 0)
            continue;
        buf_printf(ret, GUID_FMT ",%u,Simulated,SIM-MODULE,SIM%08x%02x,%.1fC", GUID_ARG(x->guid), x->port,
                   (unsigned)x->guid, x->port, x->module.celsius);
        for (int lane = 0; lane < LANES; lane++) // one of them may not be like the others
            buf_printf(ret, ",%.2f", lane == 1 ? x->module.rx_dbm : WELL_DBM);
        for (int lane = 0; lane < LANES; lane++)
            buf_printf(ret, ",%.2f", lane == 1 ? x->module.tx_dbm : WELL_DBM);
        buf_printf(ret, ",%u,%u,%u,%u,%s\n", word(DBM_HIGH), word(RX_LOW), word(DBM_HIGH), word(TX_LOW),
                   x->module.fault ? "Fault" : "Ready");
    }
    buf_puts(ret, "END_CABLE_INFO\n");
}

static void fans(const struct sim_sensors *x, struct buf *ret, bool limits)
{
    for (unsigned k = 1; k <= SIM_FANS && x->port == 0 && !x->adapter; k++) {
        buf_printf(ret, GUID_FMT ",%u,", GUID_ARG(x->guid), k);
        if (limits)
            buf_printf(ret, "%u,%u\n", FAN_MIN, 2 * FAN_RPM);
        else
            buf_printf(ret, "%u\n", k <= x->device.failed_fans ? 0 : FAN_RPM);
    }
}

static void supplies(const struct sim_sensors *x, struct buf *ret)
{
    for (unsigned k = 1; k <= SIM_SUPPLIES && x->port == 0 && !x->adapter; k++) {
        bool failed = k <= x->device.failed_supplies;
        buf_printf(ret, GUID_FMT ",%u,Yes,%s,%s,OK,OK\n", GUID_ARG(x->guid), k, failed ? "ERROR" : "OK",
                   failed ? "ALERT" : "OK");
    }
}

void sim_sensors_text(const struct sim *s, struct buf *ret)
{
    modules(s, ret);
    buf_puts(ret, "START_TEMP_SENSING\nNodeGUID,CurrentTemperature\n");
    for (uint32_t i = 0; i < s->num_sensors; i++)
        if (s->sensors[i].port == 0)
            buf_printf(ret, GUID_FMT ",%.0f\n", GUID_ARG(s->sensors[i].guid), s->sensors[i].device.celsius);
    buf_puts(ret, "END_TEMP_SENSING\nSTART_FANS_SPEED\nNodeGuid,SensorIndex,FanSpeed\n");
    for (uint32_t i = 0; i < s->num_sensors; i++)
        fans(&s->sensors[i], ret, false);
    buf_puts(ret, "END_FANS_SPEED\nSTART_FANS_THRESHOLDS\nNodeGuid,SensorIndex,MinSpeed,MaxSpeed\n");
    for (uint32_t i = 0; i < s->num_sensors; i++)
        fans(&s->sensors[i], ret, true);
    buf_puts(ret, "END_FANS_THRESHOLDS\nSTART_POWER_SUPPLIES\nNodeGuid,PSUIndex,IsPresent,DCState,AlertState,"
                  "FanState,TemperatureState\n");
    for (uint32_t i = 0; i < s->num_sensors; i++)
        supplies(&s->sensors[i], ret);
    buf_puts(ret, "END_POWER_SUPPLIES\n");
}
