# SPDX-License-Identifier: Apache-2.0
"""What somebody does to the files of history under a running weftd: it is said, what comes after it is kept, and weftd lives."""
import os
import shutil

import pytest

from test_adverse_counters import FAST, SOON, a_port, events, history, standing, store, sweeps, telemetry
from weftlib import Daemon, need_programs, ok, rows, wait_for

pytestmark = need_programs()


def raw(d):
    path, = store(d).glob("raw-*.db")
    return path


def started(d):
    d.up()
    sweeps(d, 4)
    ok(d.weft("db", "check"))
    assert not standing(d, "W02")


def went_on(d, why, restart=True):
    """Said by event, alarm and in the status of history; what is swept from now on is kept, also over a restart."""
    event = wait_for(lambda: events(d, "history-file-lost"), "the event", SOON)[0]
    assert why in event["text"], event
    alarm = wait_for(lambda: standing(d, "W02"), "the alarm", SOON)[0]
    assert why in alarm["reason"] and alarm["subject"] == "history-file", alarm
    assert telemetry(d)["history"] is None, "it goes on"
    db = [x for x in d.get("/db")["items"] if x["fabric"] == "default"][0]
    assert db["ok"] and why in db["lost"] and db["lost_at"], db
    sweeps(d, 4)
    points = history(d, a_port(d))
    assert len(points) >= 3
    ok(d.weft("db", "check"))
    if not restart:
        return
    assert d.stop() == 0
    d.start()
    d.up()
    sweeps(d, 2)
    after = history(d, a_port(d))
    assert after[:len(points)] == points and len(events(d, "history-file-lost")) == 1


def aside(d, n):
    """What is set aside is counted, also after a restart."""
    assert len([p for p in store(d).glob("*.damaged-*") if not p.name.endswith(("-wal", "-shm"))]) == n
    db = wait_for(lambda: [x for x in d.get("/db")["items"] if x["fabric"] == "default" and x["set_aside"] == n], "it is counted", SOON)[0]
    assert db["set_aside_last"].startswith("raw-") and db["set_aside_bytes"] > 0
    assert f"{n} damaged file" in d.weft("db", "status").out


@pytest.mark.parametrize("size", [0, 1000])
def test_cut_short(size):
    with Daemon(simulate="ft3-8-2", args=FAST) as d:
        started(d)
        os.truncate(raw(d), size)
        went_on(d, "somebody has cut the file short")
        aside(d, 1)


def test_written_over():
    with Daemon(simulate="ft3-8-2", args=FAST) as d:
        started(d)
        with open(raw(d), "r+b") as f:
            f.write(os.urandom(4096))
        went_on(d, "somebody has written over the file")
        aside(d, 1)


def test_index_cut_short():
    """SQLite has it mapped: nothing of it may be touched any more."""
    with Daemon(simulate="ft3-8-2", args=FAST) as d:
        started(d)
        for _ in range(3):
            os.truncate(str(raw(d)) + "-shm", 0)
            sweeps(d, 2)
            assert len(history(d, a_port(d))) >= 3
        assert not events(d, "history-file-lost") and d.process.poll() is None


def test_folder_gone():
    with Daemon(simulate="ft3-8-2", args=FAST) as d:
        started(d)
        shutil.rmtree(store(d))
        went_on(d, "somebody has taken it away")
        assert rows(ok(d.weft("db", "status", "-o", "csv")))
