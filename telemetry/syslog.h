// SPDX-License-Identifier: Apache-2.0
// Syslog to others: RFC 5424 messages over UDP (RFC 5426), TCP with octet counting (RFC 6587 3.4.1) or a unix
// datagram socket such as /dev/log.
//
// Plain syslog has no acknowledgements. What can be known is: over TCP a message counts as delivered when the
// far end's system has acknowledged all its bytes; over UDP and unix when it was sent and no error came back
// at once (nobody listens: a load is repeated).
#ifndef WEFT_TELEMETRY_SYSLOG_H
#define WEFT_TELEMETRY_SYSLOG_H

#include <stdint.h>

#include "lib/buf.h"
#include "telemetry/courier.h"

struct err;

#define SYSLOG_MAX 8192u     // bytes of a message
#define SYSLOG_MAX_UDP 2048u // what every receiver takes (RFC 5426 3.2)

// "udp://host:514", "tcp://[::1]:601", "unix:/dev/log"; the port may be left out: 514, 601. 0, or -EINVAL and
// *e. The courier's deliver() takes messages as syslog_message() makes them. A load that is not sent after
// load_ns (0 = 30 s), however busily it is read, has failed.
int syslog_check(const char *text, struct err *e); // whether it is a target
int syslog_target(const char *text, int64_t load_ns, struct courier_target *ret, struct err *e);

struct syslog_param {
    const char *name, *value; // name: of ASCII letters; value: UTF-8
};
struct syslog_entry {
    unsigned facility, severity; // RFC 5424 6.2.1
    int64_t wall_ns;
    const char *host, *msgid;         // cut and cleaned; "" is "-"
    const struct syslog_param *param; // of [weft@32473 …]; those with an empty value are left out
    unsigned num_params;
    const char *text; // UTF-8
};
void syslog_message(struct buf *ret, const struct syslog_entry *m, size_t most); // ret is emptied first

#endif
