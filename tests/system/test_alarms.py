# SPDX-License-Identifier: Apache-2.0
"""Alarms of a whole weftd on a simulated fabric: one cause is one alarm, isolation drains, what stands comes back after a restart."""
import pytest

from weftlib import Daemon, js, need_programs, ok, rows, wait_for

pytestmark = need_programs()
FAST = ("--set", "telemetry.interval=1s", "--set", "telemetry.detail_interval=1s", "--set", "health.isolation=auto")


@pytest.fixture
def d():
    with Daemon(simulate="rail-256", args=FAST) as daemon:
        daemon.up()
        wait_for(lambda: daemon.get("/fabrics/default")["telemetry"]["sweeps"] >= 3, "three sweeps of counters")
        yield daemon


def alarms(d, rule):
    return [a for a in d.get("/alarms")["items"] if a["rule"] == rule]


def standing(d, rule):
    return [a for a in alarms(d, rule) if a["active"]]


def test_dead_agent(d):
    """A switch that does not answer while its links are up: one alarm, none of its cables."""
    ok(d.weft("sim", "node", "kill", "spine-01"))
    wait_for(lambda: standing(d, "S05"), "that it does not answer")
    before = d.get("/fabrics/default")["telemetry"]["sweeps"]
    wait_for(lambda: d.get("/fabrics/default")["telemetry"]["sweeps"] >= before + 17, "17 sweeps")
    assert [a["place"] for a in d.get("/alarms")["items"] if a["rule"] in ("L01", "S07")] == []
    one, = standing(d, "S05")
    assert "spine-01" in one["place"] and one["severity"] == "major"


def test_dead_spine(d):
    """64 links go with it: one alarm that names it."""
    for n in range(64):
        ok(d.weft("sim", "link", "down", f"spine-01[{n + 1}]"))
    wait_for(lambda: any(a["members"] == 64 for a in standing(d, "L01")), "64 links down")
    one, = alarms(d, "L01")
    assert (one["place"], one["severity"], one["is_group"]) == ("spine-01", "critical", True)
    assert "64 of spine-01" in one["reason"]
    assert not [a for a in d.get("/alarms")["items"] if a["rule"] == "S07"]
    links = rows(d.weft("health", "--focus", "state=down", "-o", "csv").out)
    assert len(links) == 64
    assert all("spine-01/" in x["place"] for x in links)
    events = lambda: [e for e in d.get("/events?limit=1000")["items"] if e["kind"] == "alarm-raised" and "L01" in e["text"]]
    wait_for(events, "its event")
    assert len(events()) == 1


def test_host_off_and_a_window(d):
    """A host that is switched off is one alarm; its window says at the end that it is not back."""
    r = d.weft("silence", "add", "name~'^gpu-0005 '", "--maintenance", "--for", "25s", "--reason", "board swap")
    if r.rc == 2:
        r = d.weft("silence", "add", "name~'^gpu-0005 '", "--for", "25s", "--reason", "board swap")
    assert r.rc == 0, r.err
    for n in range(8):
        ok(d.weft("sim", "link", "down", f"gpu-0005 mlx5_{n}[1]"))
    wait_for(lambda: any(a["members"] == 8 for a in standing(d, "L01")), "eight links down")
    one, = alarms(d, "L01")
    assert (one["place"], one["severity"]) == ("gpu-0005", "critical")
    assert "no other link of the host" in one["reason"]
    assert d.weft("alarm").rc in (0, 1)
    wait_for(lambda: [e for e in d.get("/events?limit=1000")["items"] if e["kind"] in ("maintenance-ended", "silence-ended")], "its end")


def test_isolation(d):
    """A cable with post-FEC errors is drained; given back by hand; excluded it stays in use."""
    ok(d.weft("sim", "errors", "leaf-su01-rail0[33]", "--ber", "1e-11"))
    wait_for(lambda: standing(d, "L06"), "post-FEC errors")
    isolated = lambda: [x for x in rows(ok(d.weft("isolate", "-o", "csv"))) if x["state"] == "isolated"]
    wait_for(isolated, "isolation", 120)
    assert isolated()[0]["name"] == "leaf-su01-rail0/33 <-> spine-01/1"
    assert "isolated: " in ok(d.weft("drain"))
    kinds = [e["kind"] for e in d.get("/events?limit=1000")["items"]]
    assert "link-isolated" in kinds
    why = ok(d.weft("isolate", "exclude", "leaf-su01-rail0/33", "--for", "1h", "--reason", "a test runs"))
    assert "leaf-su01-rail0/33" in why
    ok(d.weft("isolate", "release", "leaf-su01-rail0/33"))
    wait_for(lambda: not isolated(), "that it is given back")
    wait_for(lambda: "isolation-ended" in [e["kind"] for e in d.get("/events?limit=1000")["items"]], "its event")


def test_restart(d):
    """Numbers, since and counts outlive weftd; new numbers are higher."""
    ok(d.weft("sim", "sm", "add", "gpu-0001:3", "--priority", "1", "--state", "standby"))
    wait_for(lambda: standing(d, "S01"), "a foreign manager")
    before, = standing(d, "S01")
    assert before["severity"] == "major" and "gpu-0001" in before["place"]
    ok(d.weft("alarm", "ack", str(before["id"]), "--note", "known"))
    d.stop()
    d.start()
    d.up()
    after, = [a for a in alarms(d, "S01") if a["id"] == before["id"]]
    assert (after["since"], after["acked"], after["ack_note"], after["active"]) == (before["since"], True, "known", True)
    ok(d.weft("sim", "sm", "add", "gpu-0002:3", "--priority", "1", "--state", "standby"))
    wait_for(lambda: len(standing(d, "S01")) == 2, "another one")
    assert max(a["id"] for a in standing(d, "S01")) > before["id"]
    assert js(d.weft("alarm", "show", str(before["id"]), "-o", "json"), 1)["rule"] == "S01"
