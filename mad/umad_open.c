// SPDX-License-Identifier: Apache-2.0
// Finding the port, registering the classes, and saying why it does not work.
//
// Threads: the loop's. /proc is read only when something failed, to name who has the device.
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/umad.h>

#include "mad/umad_priv.h"

// --- the ports of this machine ---

static void fill(struct transport_port *p, const char *ca, uint64_t node_guid, const umad_port_t *u)
{
    *p = (struct transport_port){.num = (uint8_t)u->portnum,
                                 .node_guid = node_guid,
                                 .port_guid = be64toh(u->port_guid),
                                 .lid = (uint16_t)u->base_lid,
                                 .sm_lid = (uint16_t)u->sm_lid,
                                 .state = (uint8_t)u->state,
                                 .phys_state = (uint8_t)u->phys_state,
                                 .ethernet = !strcmp(u->link_layer, "Ethernet")};
    memcpy(p->device, ca, strnlen(ca, sizeof(p->device) - 1)); // zeroed above; umad's names are shorter
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(a, b);
}

int umad_list(struct transport_port *ret, int n)
{
    char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
    int found = 0, cas;

    if (umad_init() < 0 || (cas = umad_get_cas_names(names, UMAD_MAX_DEVICES)) <= 0)
        return 0;
    qsort(names, (size_t)cas, sizeof(names[0]), by_name);
    for (int i = 0; i < cas; i++) {
        umad_ca_t ca;
        if (umad_get_ca(names[i], &ca) < 0)
            continue;
        for (int k = 0; k < UMAD_CA_MAX_PORTS; k++) {
            if (!ca.ports[k])
                continue;
            if (found < n)
                fill(&ret[found], names[i], be64toh(ca.node_guid), ca.ports[k]);
            found++;
        }
        umad_release_ca(&ca);
    }
    return found;
}

int umad_read_port(const char *device, int num, struct transport_port *ret)
{
    umad_port_t port;
    if (umad_get_port(device, num, &port) < 0)
        return -ENODEV;
    uint64_t node_guid = ret->node_guid;
    char name[sizeof(ret->device)];
    snprintf(name, sizeof(name), "%s", device);
    fill(ret, name, node_guid, &port);
    umad_release_port(&port);
    return 0;
}

// "mlx5_0/1 Active, mlx5_1/1 Ethernet"
static const char *candidates(const struct transport_port *p, int n, char *buf, size_t size)
{
    size_t len = 0;
    buf[0] = 0;
    for (int i = 0; i < n && len < size; i++) {
        const char *state = p[i].ethernet ? "Ethernet" : mad_port_state_name(p[i].state);
        int w = snprintf(buf + len, size - len, "%s%s/%u %s", i ? ", " : "", p[i].device, p[i].num,
                         state ? state : "in an unknown state");
        if (w < 0)
            break;
        len += (size_t)w;
    }
    return buf;
}

int umad_choose(const struct transport_port *p, int n, const struct umad_opts *o, struct err *e)
{
    char seen[200], where[80] = "";
    int down = -1, ethernet = -1;

    if (o->device)
        snprintf(where, sizeof(where), o->port > 0 ? "%s/%d" : "%s", o->device, o->port);
    if (n <= 0)
        return err_set(e, -ENODEV, where,
                       "this machine shows no InfiniBand device in /sys/class/infiniband: load the adapter's "
                       "driver (mlx5_ib) and ib_umad, or try weftd --simulate rail-1024 without hardware");
    for (int i = 0; i < n; i++) {
        if ((o->device && strcmp(o->device, p[i].device)) || (o->port > 0 && o->port != p[i].num))
            continue;
        if (p[i].ethernet) {
            ethernet = ethernet < 0 ? i : ethernet;
            continue;
        }
        if (p[i].state != MAD_PORT_DOWN)
            return i;
        down = down < 0 ? i : down;
    }
    if (down >= 0)
        return down;
    candidates(p, n, seen, sizeof(seen));
    if (ethernet >= 0)
        return err_set(
            e, -EPROTONOSUPPORT, where,
            "%s/%u carries Ethernet (RoCE), which has no subnet manager; choose an InfiniBand port "
            "or configure an Ethernet fabric instead; ports here: %s",
            p[ethernet].device, p[ethernet].num, seen);
    return err_set(e, -ENOENT, where, "no such InfiniBand port; ports here: %s", seen);
}

// --- who has it ---

static bool holds(const char *proc, const char *pid, const char *device_file)
{
    char path[300], target[300];
    snprintf(path, sizeof(path), "%s/%s/fd", proc, pid);
    DIR *d = opendir(path);
    struct dirent *f;
    bool found = false;

    while (d && !found && (f = readdir(d))) {
        snprintf(path, sizeof(path), "%s/%s/fd/%s", proc, pid, f->d_name);
        ssize_t len = readlink(path, target, sizeof(target) - 1);
        if (len > 0) {
            target[len] = 0;
            found = !strcmp(target, device_file);
        }
    }
    if (d)
        closedir(d);
    return found;
}

static void command_name(const char *proc, const char *pid, char *buf, size_t size)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s/comm", proc, pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, buf, size - 1) : -1;
    if (fd >= 0)
        close(fd);
    buf[len > 0 ? len : 0] = 0;
    for (char *c = buf; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = *c == '\n' ? 0 : '?';
}

const char *umad_holder(const char *proc, const char *device_file, char *buf, size_t size)
{
    DIR *d = opendir(proc);
    struct dirent *p;
    const char *ret = NULL;

    while (d && !ret && (p = readdir(d))) {
        char comm[32];
        if (p->d_name[0] < '1' || p->d_name[0] > '9' || strlen(p->d_name) > 10 ||
            atoi(p->d_name) == getpid() || !holds(proc, p->d_name, device_file))
            continue;
        command_name(proc, p->d_name, comm, sizeof(comm));
        snprintf(buf, size, "%s (pid %s)", comm[0] ? comm : "a process", p->d_name);
        ret = buf;
    }
    if (d)
        closedir(d);
    return ret;
}

// --- opening and registering ---

// Device file of the port: libibumad tells only the issm's, which has the same number.
static void device_file(const struct transport_port *p, char *buf, size_t size)
{
    char issm[128];
    const char *digits;
    snprintf(buf, size, "/dev/infiniband/umad*");
    if (umad_get_issm_path(p->device, p->num, issm, sizeof(issm)) == 0 && (digits = strstr(issm, "issm")))
        snprintf(buf, size, "/dev/infiniband/umad%s", digits + 4);
}

static int open_failed(const struct transport_port *p, int r, int errnum, struct err *e)
{
    char where[80], file[64];
    snprintf(where, sizeof(where), "%s/%u", p->device, p->num);
    device_file(p, file, sizeof(file));
    if (r == -EOPNOTSUPP || r == -EINVAL || errnum == ENOENT)
        return err_set(e, -ENODEV, where,
                       "the kernel offers no management datagrams for this port (%s): load ib_umad (modprobe "
                       "ib_umad); in a container, pass /dev/infiniband on",
                       file);
    if (errnum == EACCES || errnum == EPERM)
        return err_set(e, -EACCES, where,
                       "no permission for %s: start as root, or give the service user the device's group",
                       file);
    return err_set(e, errnum ? -errnum : r, where, "cannot open %s: %s", file,
                   strerror(errnum ? errnum : -r));
}

static void mask_set(long mask[16 / sizeof(long)], uint8_t method)
{
    mask[method / (8 * sizeof(long))] |= 1l << method % (8 * sizeof(long));
}

static int reg(struct umad *u, uint8_t mgmt_class, int version, const uint8_t *methods, struct err *e)
{
    long mask[16 / sizeof(long)] = {0};
    char where[80], file[64], who[64];

    for (; methods && *methods; methods++)
        mask_set(mask, *methods);
    errno = 0;
    int id = umad_register(u->fd, mgmt_class, version, mgmt_class == MAD_CLASS_SA, mask);
    if (id >= 0 && id <= INT16_MAX) {
        u->agent[mgmt_class] = (int16_t)id;
        return 0;
    }
    snprintf(where, sizeof(where), "%s/%u", u->port.device, u->port.num);
    device_file(&u->port, file, sizeof(file));
    const char *holder = umad_holder("/proc", file, who, sizeof(who));
    return err_set(
        e, -EBUSY, where,
        "the kernel refuses management class 0x%02x: %s; another subnet manager (opensm, the vendor's "
        "SM or another weftd) probably runs on this port: stop it, or choose another port",
        mgmt_class, holder ? holder : strerror(errno ? errno : EPERM));
}

static int reg_all(struct umad *u, bool need_sm, struct err *e)
{
    static const uint8_t smp[] = {MAD_METHOD_GET, MAD_METHOD_SET, MAD_METHOD_TRAP, MAD_METHOD_TRAP_REPRESS,
                                  0};
    static const uint8_t sa[] = {MAD_METHOD_GET,
                                 MAD_METHOD_SET,
                                 MAD_METHOD_GET_TABLE,
                                 MAD_METHOD_GET_TRACE_TABLE,
                                 MAD_METHOD_GET_MULTI,
                                 MAD_METHOD_DELETE,
                                 0};
    int r = reg(u, MAD_CLASS_SM_DR, 1, need_sm ? smp : NULL, e);
    if (!r)
        r = reg(u, MAD_CLASS_SM_LID, 1, need_sm ? smp : NULL, e);
    if (!r)
        r = reg(u, MAD_CLASS_SA, 2, need_sm ? sa : NULL, e);
    if (!r)
        r = reg(u, MAD_CLASS_PM, 1, NULL, e);
    return r;
}

// libumad2sim crashes on a MAD of a class that nobody registered (a ping, say): what arrives is dropped by us
// instead.
static void reg_simulated(struct umad *u)
{
    static const uint8_t others[] = {0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x10, 0x21,
                                     0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38};
    for (size_t i = 0; i < sizeof(others); i++)
        umad_register(u->fd, others[i], 1, 0, NULL);
}

int umad_attach(struct umad *u, const struct umad_opts *o, struct err *e)
{
    struct transport_port ports[UMAD_PORTS_MAX];
    int n = umad_list(ports, UMAD_PORTS_MAX), r;

    n = n < UMAD_PORTS_MAX ? n : UMAD_PORTS_MAX;
    if ((r = umad_choose(ports, n, o, e)) < 0)
        return r;
    u->port = ports[r];
    errno = 0;
    u->fd = umad_open_port(u->port.device, u->port.num);
    if (u->fd < 0) {
        r = u->fd;
        u->fd = -1;
        return open_failed(&u->port, r, errno, e);
    }
    // Its handles are numbers that the kernel does not know.
    u->simulated = fcntl(u->fd, F_GETFD) < 0 && errno == EBADF;
    if ((r = reg_all(u, o->need_sm, e)) < 0)
        return r;
    if (u->simulated)
        reg_simulated(u);
    return 0;
}
