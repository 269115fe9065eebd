# SPDX-License-Identifier: Apache-2.0
"""weft route quality, of a running fabric through its changes and of fabrics by name."""
import csv
import io
import json

from weftlib import Daemon, need_programs, wait_for, weft

pytestmark = need_programs()
FLOWS = ("same_rail_shift", "slot_shift", "ring", "shift", "permutation")


def ok(r):
    assert r.rc == 0 and r.err == "", r
    return r.out


def quality(d):
    return json.loads(ok(d.weft("route", "quality", "-o", "json")))


def test_of_a_running_fabric():
    with Daemon(simulate="rail-512") as daemon:
        d = daemon.up()
        r = quality(d)
        assert r["state"] == "ready" and r["engine"] and r["last"] is None
        for name in FLOWS[:4]:
            assert (r["quality"][name]["max_load"], r["quality"][name]["mean"]) == (1, 1), name
            assert r["quality"][name]["link"] is None
        assert r["quality"]["alltoall"]["max_over_mean"] < 1.01 and r["quality"]["alltoall"]["flows"] == 512 * 511
        assert r["quality"]["permutation"]["link"]["load"] == r["quality"]["permutation"]["max_load"] > 1
        assert strip(r["ideal"]) == strip(r["quality"])

        ok(d.weft("sim", "link", "down", "leaf-su01-rail0[40]"))

        def moved():
            q = quality(d)
            return q if q["quality"]["alltoall"]["worst"] < 1 else None
        after = wait_for(moved, "other figures")
        assert strip(after["ideal"]) == strip(r["quality"]) == strip(after["last"])
        link = after["quality"]["alltoall"]["link"]
        assert link["name"] == "leaf-su01-rail0" or link["to"] == "leaf-su01-rail0"

        table = ok(d.weft("route", "quality")).splitlines()
        assert "512 hosts, 8 rails" in table[0] and "IDEAL" in table[1] and "BEFORE" in table[1]
        assert len(table) == 2 + 6
        assert d.weft("route", "quality", "--fail", "random:1:1").rc == 2


def strip(q):
    return {k: v for k, v in q.items() if k != "seconds"}


def test_of_a_fabric_by_name():
    r = json.loads(ok(weft("route", "quality", "rail-64", "-o", "json")))
    assert "one scalable unit" in r["quality"]["ring"]["absent"] and r["quality"]["ring"]["mean"] is None
    assert r["quality_before"] is None and r["quality"]["units"] == 1
    out = ok(weft("route", "quality", "ft3-8-4", "--fail", "random:10:1"))
    assert "BEFORE" in out and "IDEAL" not in out
    rows = list(csv.DictReader(io.StringIO(ok(weft("route", "quality", "ft3-8-4", "-o", "csv")))))
    assert [x["pattern"] for x in rows] == ["same_rail_shift", "slot_shift", "ring", "alltoall", "shift", "permutation"]
    assert float(rows[0]["mean"]) == 1 and rows[0]["max_load"] == "1"


def test_in_route_compute():
    r = json.loads(ok(weft("route", "compute", "ft3-8-4", "--fail", "random:10:1", "-o", "json")))
    for name in FLOWS:
        assert 0 < r["quality"][name]["worst"] <= r["quality"][name]["mean"] <= r["quality_before"][name]["mean"] <= 1
    assert r["quality"]["alltoall"]["max_over_mean"] > r["quality_before"]["alltoall"]["max_over_mean"]
    out = ok(weft("route", "compute", "rail-64"))
    assert "same_rail_shift  mean 1  worst 1  max load 1" in out and "ring  absent: the hosts are one" in out


def test_a_file_that_is_not_there():
    r = weft("route", "quality", "/nonexistent.topo")
    assert r.rc == weft("route", "compute", "/nonexistent.topo").rc != 0 and "/nonexistent.topo" in r.err
