// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/api_priv.h"

static int connection_fd(const struct request *r)
{
    const union MHD_ConnectionInfo *i = MHD_get_connection_info(r->conn, MHD_CONNECTION_INFO_CONNECTION_FD);
    return i != NULL ? i->connect_fd : -1;
}

static void auth_unix(struct request *r)
{
    struct ucred u;
    socklen_t len = sizeof(u);
    r->role = API_READ;
    if (getsockopt(connection_fd(r), SOL_SOCKET, SO_PEERCRED, &u, &len) != 0)
        return;
    r->uid = u.uid;
    if (u.uid == 0 || u.uid == geteuid())
        r->role = API_ADMIN;
}

static const char *local_address(const struct request *r, char *buf, socklen_t size)
{
    struct sockaddr_storage sa;
    socklen_t len = sizeof(sa);
    if (getsockname(connection_fd(r), (struct sockaddr *)&sa, &len) != 0)
        return NULL;
    if (sa.ss_family == AF_INET6)
        return inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&sa)->sin6_addr, buf, size);
    return inet_ntop(AF_INET, &((struct sockaddr_in *)&sa)->sin_addr, buf, size);
}

bool auth_request(struct request *r)
{
    char local[64];
    const char *host = http_header(r, "Host");

    r->uid = (uid_t)-1;
    r->role = API_READ;
    if (r->listener->is_unix) {
        auth_unix(r);
        return true;
    }
    if (host == NULL || uri_host_ok(host, r->api->address, local_address(r, local, sizeof(local))))
        return true;
    answer_problem(r, 403,
                   "the Host header \"%.100s\" is none of this machine's own addresses; use http://%s:%d/",
                   host, r->api->address, r->api->port);
    return false;
}
