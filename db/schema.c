// SPDX-License-Identifier: Apache-2.0
// The schema as a list of steps. PRAGMA user_version is the number of steps done. A step is never edited once
// released: a change is a new step.
//
// GUIDs are 64 bits and are stored as SQLite's signed integers, bit for bit. No AUTOINCREMENT: event ids are
// given by weftd, which reserves them ahead in `reserved`.
#include <stdio.h>

#include "db/db_priv.h"

static const char *const step[] = {
    // 1: LIDs and blobs
    "CREATE TABLE lid ("
    "  fabric TEXT NOT NULL,"
    "  guid INTEGER NOT NULL,"
    "  lid INTEGER NOT NULL CHECK (lid BETWEEN 1 AND 49151),"
    "  lmc INTEGER NOT NULL CHECK (lmc BETWEEN 0 AND 7),"
    "  PRIMARY KEY (fabric, guid)) WITHOUT ROWID;"
    "CREATE UNIQUE INDEX lid_by_lid ON lid (fabric, lid);"
    "CREATE TABLE blob ("
    "  fabric TEXT NOT NULL,"
    "  name TEXT NOT NULL,"
    "  data BLOB NOT NULL,"
    "  PRIMARY KEY (fabric, name));",
    // 2: events, and the ids reserved for them
    "CREATE TABLE event ("
    "  id INTEGER PRIMARY KEY,"
    "  wall_ns INTEGER NOT NULL,"
    "  fabric TEXT NOT NULL,"
    "  kind TEXT NOT NULL,"
    "  severity TEXT NOT NULL,"
    "  subject TEXT NOT NULL,"
    "  text TEXT NOT NULL,"
    "  data TEXT NOT NULL);"
    "CREATE INDEX event_by_kind ON event (kind);" // an index ends with the id: rows of a kind in order
    "CREATE INDEX event_by_fabric ON event (fabric);"
    "CREATE INDEX event_by_time ON event (wall_ns);"
    "CREATE TABLE reserved (name TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID;",
    // 3: multicast groups (guid 0) and their members
    "CREATE TABLE mcast ("
    "  fabric TEXT NOT NULL,"
    "  mgid BLOB NOT NULL CHECK (length(mgid) = 16),"
    "  guid INTEGER NOT NULL,"
    "  record BLOB NOT NULL CHECK (length(record) = 56),"
    "  PRIMARY KEY (fabric, mgid, guid)) WITHOUT ROWID;",
    // 4: alarms that stand, and silences
    "CREATE TABLE alarm ("
    "  id INTEGER PRIMARY KEY,"
    "  fabric TEXT NOT NULL,"
    "  rule TEXT NOT NULL,"
    "  subject TEXT NOT NULL,"
    "  place TEXT NOT NULL,"
    "  peer TEXT NOT NULL,"
    "  cable TEXT NOT NULL,"
    "  reason TEXT NOT NULL,"
    "  evidence TEXT NOT NULL,"
    "  acked_by TEXT NOT NULL,"
    "  ack_note TEXT NOT NULL,"
    "  advice TEXT NOT NULL,"
    "  grouping TEXT NOT NULL,"
    "  leader INTEGER NOT NULL,"
    "  is_group INTEGER NOT NULL,"
    "  severity INTEGER NOT NULL CHECK (severity BETWEEN 0 AND 3),"
    "  since_ns INTEGER NOT NULL,"
    "  last_ns INTEGER NOT NULL,"
    "  cleared_ns INTEGER NOT NULL," // 0: the condition holds
    "  count INTEGER NOT NULL,"
    "  acked INTEGER NOT NULL,"
    "  guid_a INTEGER NOT NULL,"
    "  guid_b INTEGER NOT NULL,"
    "  port_a INTEGER NOT NULL,"
    "  port_b INTEGER NOT NULL);"
    "CREATE TABLE silence ("
    "  id INTEGER PRIMARY KEY,"
    "  focus TEXT NOT NULL,"
    "  rule TEXT NOT NULL,"
    "  owner TEXT NOT NULL,"
    "  reason TEXT NOT NULL,"
    "  from_ns INTEGER NOT NULL,"
    "  until_ns INTEGER NOT NULL,"
    "  maintenance INTEGER NOT NULL);",
};

const int db_schema_newest = sizeof(step) / sizeof(step[0]);

static int run_step(sqlite3 *c, int i)
{
    char pragma[100];
    // application_id with every step: also a file whose first step an early version did is marked.
    snprintf(pragma, sizeof(pragma), "PRAGMA application_id = %d; PRAGMA user_version = %d",
             DB_APPLICATION_ID, i + 1);
    int rc = db_exec(c, "BEGIN IMMEDIATE");
    if (!rc)
        rc = db_exec(c, step[i]);
    if (!rc)
        rc = db_exec(c, pragma);
    if (!rc)
        rc = db_exec(c, "COMMIT");
    if (rc && !sqlite3_get_autocommit(c))
        (void)db_exec(c, "ROLLBACK");
    return rc;
}

int db_schema_migrate(sqlite3 *c, int version)
{
    int rc = 0;
    for (int i = version; i < db_schema_newest && !rc; i++)
        rc = run_step(c, i);
    return rc;
}
